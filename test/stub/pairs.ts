import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';

/**
 * Checks a golden file of blocks of two lines: an input, and the result for it as JSON. To add a
 * block, write its input and run with `-u`, which writes the result; read it before you commit it.
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
