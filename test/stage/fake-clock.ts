import { setImmediate as macrotask } from 'node:timers/promises';
import type { Clock } from '../../src/base/time.ts';

interface Alarm {
  at: number;
  ring: () => void;
}

/** Nothing that is tested takes longer; a promise that never settles must not hang the test. */
const MOST_MS = 12 * 3_600_000;

/**
 * Virtual time: it stands still while anything is being done, and jumps to the next alarm when all is
 * quiet. An hour of waiting takes no time, and always the same.
 */
export class FakeClock implements Clock {
  readonly start = Date.parse('2026-03-02T10:00:00.000Z');
  #now = this.start;
  readonly #alarms = new Set<Alarm>();

  now(): number {
    return this.#now;
  }

  /** ms since the clock was made. */
  get elapsed(): number {
    return this.#now - this.start;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = (): void => {
        this.#alarms.delete(alarm);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const alarm = { at: this.#now + Math.max(0, ms), ring: done };
      this.#alarms.add(alarm);
      signal?.addEventListener('abort', done, { once: true });
    });
  }

  /** Does it when `ms` have passed since the beginning. */
  at(ms: number, work: () => void): void {
    const alarm: Alarm = {
      at: this.start + ms,
      ring: () => {
        this.#alarms.delete(alarm);
        work();
      },
    };
    this.#alarms.add(alarm);
  }

  /** How many are asleep: none when everything has ended. */
  get sleepers(): number {
    return this.#alarms.size;
  }

  /** Lets time pass until the promise settles. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = promise.finally(() => {
      isSettled = true;
    });
    settled.catch(() => undefined);
    for (;;) {
      await quiet();
      if (isSettled) return settled;
      const next = this.#next();
      if (next === undefined) throw new Error('everybody waits, and no alarm is set');
      if (next.at - this.start > MOST_MS) throw new Error('it did not end within 12 hours');
      this.#now = Math.max(this.#now, next.at);
      next.ring();
    }
  }

  #next(): Alarm | undefined {
    let first: Alarm | undefined;
    for (const alarm of this.#alarms) if (first === undefined || alarm.at < first.at) first = alarm;
    return first;
  }
}

/** Everything that can go on without time passing has gone on. */
async function quiet(): Promise<void> {
  await macrotask();
  await macrotask();
}
