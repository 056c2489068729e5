/**
 * `npm run docs`: writes the generated parts of the documentation, each between two markers. With
 * `--check` it only says which are out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from '../test/stub/action-yml.ts';
import { generateBlocks, insertBlock } from './docs/generate.ts';

const isCheck = process.argv.includes('--check');

for (const [file, blocks] of Object.entries(await generateBlocks())) {
  const path = join(REPOSITORY, file);
  const before = readFileSync(path, 'utf8');
  const stale = Object.entries(blocks).filter(
    ([name, block]) => insertBlock(before, name, block) !== before,
  );
  if (stale.length === 0) continue;
  if (isCheck) {
    const names = stale.map(([name]) => name).join(', ');
    console.error(`${file} is not what "npm run docs" writes; out of date: ${names}`);
    process.exitCode = 1;
  } else {
    writeFileSync(
      path,
      stale.reduce((text, [name, block]) => insertBlock(text, name, block), before),
    );
  }
}
