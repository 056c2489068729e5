import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';

/**
 * A golden file of blocks of two lines, what is given and what comes of it as JSON. A new block is
 * written with its first line alone; `-u` writes the second ones, to be read before they are kept.
 */
export async function expectPairs(
  name: string,
  answer: (given: string) => unknown | Promise<unknown>,
): Promise<void> {
  const path = join(expect.getState().testPath ?? '', '..', 'golden', name);
  const told: string[] = [];
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line === '' || line.startsWith('= ')) continue;
    told.push(line);
    if (!line.startsWith('#')) told.push(`= ${JSON.stringify(await answer(line))}`, '');
  }
  await expect(told.join('\n')).toMatchFileSnapshot(path);
}
