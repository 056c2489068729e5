import { expect, test } from 'vitest';
import { type Attempt, withRetries } from '../../src/kubernetes/retry.ts';

const broken = {
  ok: false,
  failure: { kind: 'network', message: 'reset' },
  isTransient: true,
} as const;

async function run(
  attempts: readonly Attempt<string>[],
  retries: number,
  random = 1,
): Promise<{ result: unknown; slept: number[]; tries: number }> {
  const slept: number[] = [];
  let tries = 0;
  const result = await withRetries(
    async () => attempts[Math.min(tries++, attempts.length - 1)] ?? broken,
    {
      retries,
      throttledRetries: 8,
      signal: undefined,
      random: () => random,
      clock: {
        now: () => 0,
        sleep: async (ms) => {
          slept.push(ms);
        },
      },
    },
  );
  return { result, slept, tries };
}

test('waits longer each time, up to a limit, and not after the last try', async () => {
  const { slept, tries } = await run([broken], 6);
  expect(tries).toBe(7);
  expect(slept).toEqual([250, 500, 1_000, 2_000, 4_000, 4_000]);
});

test('half of each pause is chance', async () => {
  expect((await run([broken], 2, 0)).slept).toEqual([125, 250]);
});

test('a busy server is asked more often than one that fails', async () => {
  expect((await run([{ ...broken, isThrottled: true }], 3)).tries).toBe(9);
});

test('what cannot get better is not repeated', async () => {
  const { slept, tries, result } = await run([{ ...broken, isTransient: false }], 5);
  expect({ slept, tries }).toEqual({ slept: [], tries: 1 });
  expect(result).toEqual({ ok: false, failure: broken.failure });
});

test('stopping during a pause ends it, without another try', async () => {
  const stop = new AbortController();
  let tries = 0;
  const result = await withRetries(
    async () => {
      tries++;
      return broken;
    },
    {
      retries: 3,
      throttledRetries: 8,
      signal: stop.signal,
      random: () => 1,
      clock: { now: () => 0, sleep: async () => stop.abort() },
    },
  );
  expect(result).toMatchObject({ ok: false, failure: { kind: 'aborted' } });
  expect(tries).toBe(1);
});

test('a wish of the server is kept, where it is longer than our own pause', async () => {
  const { slept } = await run(
    [
      { ...broken, retryAfterMs: 3_000 },
      { ...broken, retryAfterMs: 1 },
    ],
    2,
  );
  expect(slept).toEqual([3_000, 500]);
});

test('more than half a minute is for the caller to decide', async () => {
  const { tries } = await run([{ ...broken, retryAfterMs: 31_000 }], 3);
  expect(tries).toBe(1);
});
