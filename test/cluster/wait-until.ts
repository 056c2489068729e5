import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  timeoutMs?: number;
  everyMs?: number;
}

/**
 * For what never comes: controllers on a busy machine may stay in a back-off of 60 s, more than once, and an API server that
 * rejects requests asks for pauses of up to 32 s, ten times.
 */
const LIMIT_MS = 300_000;

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

/** Waits until what is done next is later by the times of the API, which have whole seconds. */
export async function laterSecond(): Promise<void> {
  await sleep(1_010 - (Date.now() % 1_000));
}

/** Pauses between looks at what has just changed, and at what stays as it is: many of these stand by for a test. */
const LOOK_MS = { first: 200, factor: 1.4, most: 1_000 };

/** Looks again and again until the signal. `look` returns what it has seen; the pauses grow while that stays the same. */
export async function whileLooking(stop: AbortSignal, look: () => Promise<string>): Promise<void> {
  const { first, factor, most } = LOOK_MS;
  let pause = first;
  for (let before: string | undefined; !stop.aborted; ) {
    const seen = await look();
    pause = seen === before ? Math.min(pause * factor, most) : first;
    before = seen;
    await sleep(pause, undefined, { signal: stop }).catch(() => {});
  }
}
