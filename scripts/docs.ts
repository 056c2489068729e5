/**
 * `npm run docs`: writes the generated parts of the README, each between two markers. With `--check`
 * it only says which are out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HELP } from '../src/arguments.ts';
import { REPOSITORY, readActionYml } from '../test/stub/action-yml.ts';
import { commentPicture } from './docs/picture.ts';
import {
  findingTable,
  inputTable,
  outcomeTable,
  outputTable,
  readFindingDocs,
} from './docs/tables.ts';

const README = join(REPOSITORY, 'README.md');

async function generate(): Promise<Record<string, string>> {
  const action = readActionYml();
  const findings = readFileSync(join(REPOSITORY, 'docs', 'findings.md'), 'utf8');
  return {
    picture: await commentPicture(),
    outcomes: outcomeTable(),
    findings: findingTable(readFindingDocs(findings)),
    inputs: inputTable(action),
    outputs: outputTable(action),
    help: `\`\`\`text\n${HELP}\`\`\``,
  };
}

/** Everything between `<!-- name:begin … -->` and `<!-- name:end -->` is replaced. */
function insert(markdown: string, name: string, block: string): string {
  const pattern = new RegExp(`(<!-- ${name}:begin[^>]*-->\n)[\\s\\S]*?(<!-- ${name}:end -->)`);
  if (!pattern.test(markdown)) throw new Error(`README.md has no markers for "${name}"`);
  return markdown.replace(pattern, (_all, begin, end) => `${begin}\n${block}\n\n${end}`);
}

const blocks = await generate();
const before = readFileSync(README, 'utf8');
const stale = Object.entries(blocks).filter(
  ([name, block]) => insert(before, name, block) !== before,
);
if (!process.argv.includes('--check')) {
  const after = Object.entries(blocks).reduce(
    (text, [name, block]) => insert(text, name, block),
    before,
  );
  writeFileSync(README, after);
} else if (stale.length > 0) {
  const names = stale.map(([name]) => name).join(', ');
  console.error(`README.md is not what "npm run docs" writes; out of date: ${names}`);
  process.exitCode = 1;
}
