import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HELP } from '../../src/arguments.ts';
import { REPOSITORY } from '../../test/stub/action-yml.ts';
import { actionYml } from './action-yml.ts';
import { commentPicture } from './picture.ts';
import { sourceRules } from './rights.ts';
import {
  clueTable,
  findingTable,
  inputTable,
  outcomeTable,
  outputTable,
  readFindingDocs,
} from './tables.ts';

/** Generated blocks by the names of their markers. */
type Blocks = Record<string, string>;

/** Returns the generated blocks of each file. */
export async function generateBlocks(): Promise<Record<string, Blocks>> {
  return {
    'README.md': await readmeBlocks(),
    'docs/terminal.md': { help: fenced(HELP) },
    'docs/permissions.md': { sources: sourceRules() },
    'docs/owners.md': { clues: clueTable() },
  };
}

/** Returns the files that are generated as a whole. */
export function generateFiles(): Record<string, string> {
  return { 'action.yml': actionYml() };
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

/** Replaces everything between `<!-- name:begin … -->` and `<!-- name:end -->`. */
export function insertBlock(markdown: string, name: string, block: string): string {
  const pattern = new RegExp(`(<!-- ${name}:begin[^>]*-->\n)[\\s\\S]*?(<!-- ${name}:end -->)`);
  if (!pattern.test(markdown)) throw new Error(`there are no markers for "${name}"`);
  return markdown.replace(pattern, (_all, begin, end) => `${begin}\n${block}\n\n${end}`);
}

function fenced(text: string): string {
  return `\`\`\`text\n${text}\`\`\``;
}
