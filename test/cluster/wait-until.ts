import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  timeoutMs?: number;
  everyMs?: number;
}

/**
 * Asks again until the answer is neither undefined nor false, and returns it. `describe` is for the
 * error: it may tell what was seen last.
 */
export async function waitUntil<T>(
  describe: string | (() => string),
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  { timeoutMs = 60_000, everyMs = 150 }: WaitOptions = {},
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
