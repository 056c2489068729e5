import { readFileSync } from 'node:fs';
import { expect } from 'vitest';

/**
 * A golden file of blocks of two lines, what is given and what comes of it as JSON. A new block is
 * written with its first line alone; `-u` writes the second ones, to be read before they are kept.
 */
export async function expectPairs(file: string, answer: (given: string) => unknown): Promise<void> {
  const path = `golden/${file}`;
  const lines = readFileSync(new URL(path, import.meta.url), 'utf8').split('\n');
  const isAnswer = (line: string): boolean => line === '' || line.startsWith('= ');
  const told = lines
    .filter((line) => !isAnswer(line))
    .flatMap((given) => [
      ...(given.startsWith('#') ? [given] : [given, `= ${JSON.stringify(answer(given))}`, '']),
    ]);
  await expect(told.join('\n')).toMatchFileSnapshot(path);
}
