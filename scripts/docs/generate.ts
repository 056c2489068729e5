import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FULL_HELP } from '../../src/arguments.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { treeLines } from '../../src/report/plain-text.ts';
import { rowsOf } from '../../src/report/view.ts';
import { REPOSITORY } from '../../test/stub/action-yml.ts';
import { readRecordedLook } from '../../test/unit/recorded-looks.ts';
import { actionYml } from './action-yml.ts';
import { performancePages } from './performance.ts';
import { commentPicture } from './picture.ts';
import { sourceRules } from './rights.ts';
import { sideBySide } from './side-by-side.ts';
import {
  clueTable,
  exclusionList,
  findingTable,
  inputTable,
  outcomeTable,
  outputTable,
  readFindingDocs,
} from './tables.ts';

/** Generated blocks by the names of their markers. */
type Blocks = Record<string, string>;

/** Scenarios that docs/examples.md explains. */
const EXAMPLES = ['SEED-1c', 'SEED-2c', 'SEED-3a', 'SEED-4a', 'SEED-5b'];

/** Returns the generated blocks of each file. */
export async function generateBlocks(): Promise<Record<string, Blocks>> {
  return {
    'README.md': await readmeBlocks(),
    'docs/terminal.md': { help: fenced(FULL_HELP) },
    'docs/permissions.md': { sources: sourceRules() },
    'docs/examples.md': exampleBlocks(),
    'docs/owners.md': { clues: clueTable(), exclusions: exclusionList() },
    'docs/measurements.md': performancePages().blocks,
    'docs/ordered-deletion.md': { 'side-by-side': sideBySide() },
  };
}

/** Returns the files that are generated as a whole. */
export function generateFiles(): Record<string, string> {
  return { 'action.yml': actionYml(), ...performancePages().files };
}

async function readmeBlocks(): Promise<Blocks> {
  const findings = readFileSync(join(REPOSITORY, 'docs', 'findings.md'), 'utf8');
  return {
    picture: await commentPicture(),
    outcomes: outcomeTable(),
    findings: findingTable(readFindingDocs(findings)),
    inputs: inputTable('everywhere'),
    'action-inputs': inputTable('only in the action'),
    outputs: outputTable(),
  };
}

/** Returns the trees that the gate prints for the recordings of docs/examples.md. */
function exampleBlocks(): Blocks {
  return Object.fromEntries(
    EXAMPLES.map((id) => {
      const { before, now } = readRecordedLook(id);
      const scene = { home: now.namespace.name, now: now.takenAt };
      const lines = treeLines(rowsOf(diagnose(now, before), scene));
      return [id, fenced(`${lines.join('\n')}\n`)];
    }),
  );
}

/** Replaces everything between `<!-- name:begin … -->` and `<!-- name:end -->`. */
export function insertBlock(markdown: string, name: string, block: string): string {
  const pattern = new RegExp(`(<!-- ${name}:begin[^>]*-->\n)[\\s\\S]*?(<!-- ${name}:end -->)`);
  if (!pattern.test(markdown)) throw new Error(`there are no markers for "${name}"`);
  return markdown.replace(pattern, (_all, begin, end) => `${begin}\n${block}\n\n${end}`);
}

function fenced(text: string): string {
  return `\`\`\`text\n${text}\`\`\``;
}
