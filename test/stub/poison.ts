import type { RunResult } from '../../src/model/result.ts';

/** Members that the program itself writes: identifiers, words of its own vocabulary, addresses. */
const OURS = new Set([
  'id',
  'code',
  'scope',
  'outcome',
  'verdict',
  'mode',
  'waitsFor',
  'blockers',
  'rootCauses',
  'deadlocks',
  'from',
  'to',
  'gateVersion',
  'finishedAt',
  'verb',
  'role',
  'certainty',
]);

/** The same result with `text` in the place of every text that a cluster could have written. */
export function poison(result: RunResult, text: (original: string) => string): RunResult {
  const { kind } = result;
  return { ...(replace(result, text, '') as RunResult), kind };
}

function replace(value: unknown, text: (original: string) => string, key: string): unknown {
  if (OURS.has(key)) return value;
  if (typeof value === 'string') return text(value);
  if (Array.isArray(value)) return value.map((item) => replace(item, text, key));
  if (typeof value !== 'object' || value === null) return value;
  const isMovement = key === 'movement';
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      isMovement && name === 'kind' ? item : replace(item, text, name),
    ]),
  );
}
