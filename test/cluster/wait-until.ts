import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  timeoutMs?: number;
  everyMs?: number;
}

/** For what never comes: controllers on a busy machine may stay in a back-off of 60 s, more than once. */
const LIMIT_MS = 180_000;

/**
 * Asks again until the answer is neither undefined nor false, and returns it. `describe` is for the
 * error: it may tell what was seen last.
 */
export async function waitUntil<T>(
  describe: string | (() => string),
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  { timeoutMs = LIMIT_MS, everyMs = 150 }: WaitOptions = {},
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() >= deadline) {
      const what = typeof describe === 'string' ? describe : describe();
      throw new Error(`waited ${timeoutMs / 1_000} s in vain for: ${what}`);
    }
    await sleep(everyMs);
  }
}
