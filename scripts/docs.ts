/**
 * `npm run docs`: writes the generated parts of the documentation, each between two markers, and the
 * files that are generated as a whole. With `--check` it only says which are out of date.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from '../test/stub/action-yml.ts';
import { generateBlocks, generateFiles, insertBlock } from './docs/generate.ts';

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

for (const [file, text] of Object.entries(generateFiles())) {
  const path = join(REPOSITORY, file);
  if (existsSync(path) && readFileSync(path, 'utf8') === text) continue;
  if (isCheck) {
    console.error(`${file} is not what "npm run docs" writes`);
    process.exitCode = 1;
  } else {
    writeFileSync(path, text);
  }
}
