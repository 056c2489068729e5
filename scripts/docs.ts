/**
 * `npm run docs`: writes the generated parts of the README, each between two markers. With `--check`
 * it only says which are out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from '../test/stub/action-yml.ts';
import { generateBlocks, insertBlock } from './docs/generate.ts';

const README = join(REPOSITORY, 'README.md');
const before = readFileSync(README, 'utf8');
const blocks = Object.entries(await generateBlocks());

if (process.argv.includes('--check')) {
  const stale = blocks.filter(([name, block]) => insertBlock(before, name, block) !== before);
  const names = stale.map(([name]) => name).join(', ');
  if (names !== '') {
    console.error(`README.md is not what "npm run docs" writes; out of date: ${names}`);
    process.exitCode = 1;
  }
} else {
  const after = blocks.reduce((text, [name, block]) => insertBlock(text, name, block), before);
  if (after !== before) writeFileSync(README, after);
}
