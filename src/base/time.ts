/** An event during the run. */
export interface TimelineEntry {
  /** ISO 8601, by the API server's clock. */
  at: string;
  event: string;
}

/** Clock as a parameter, so that the stages of a run do not depend on the real time. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms`, or at once when the signal aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export interface Clocks {
  /** Server clock minus local clock, in milliseconds. */
  api: { clockOffsetMs(): number };
  clock: Clock;
}

export const systemClock: Clock = {
  // The monotonic clock: a correction of the system clock (NTP, a suspended machine) must not end a wait.
  now: () => Math.floor(performance.timeOrigin + performance.now()),
  sleep: (ms, signal) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    return unlessAborted(promise, signal)
      .catch(() => undefined)
      .finally(() => clearTimeout(timer));
  },
};

/**
 * Waits for the work until the signal aborts. The work continues for others that wait for it; its later errors
 * are ignored.
 */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal?.reason);
    void work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', stop));
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

/**
 * Returns the time by the API server's clock, in milliseconds. Every time that is compared or reported is the
 * server's: the clock of a runner may be wrong by hours.
 */
export function serverTime({ api, clock }: Clocks): number {
  return clock.now() + api.clockOffsetMs();
}

export function serverTimestamp(clocks: Clocks): string {
  return new Date(serverTime(clocks)).toISOString();
}

/** Formats 302_000 as "5m 02s", for headlines. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  const two = (value: number): string => String(value).padStart(2, '0');
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3_600)}h ${two(Math.floor((seconds % 3_600) / 60))}m`;
}

/** Formats 302_000 as "5:02", for the left column of the progress log. */
export function formatClock(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
