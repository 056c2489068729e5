export interface TimelineEntry {
  at: string;
  event: string;
}

export interface Clock {
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

/** After the abort, the work continues for others that wait for it; its later errors are ignored. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal?.reason);
    void work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', stop));
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

/** Every time that is compared or reported is the API server's: the clock of a runner may be wrong by hours. */
export function serverTime({ api, clock }: Clocks): number {
  return clock.now() + api.clockOffsetMs();
}

export function serverTimestamp(clocks: Clocks): string {
  return new Date(serverTime(clocks)).toISOString();
}

function sixtieths(count: number): [string, string] {
  return [String(Math.floor(count / 60)), String(count % 60).padStart(2, '0')];
}

const secondsOf = (ms: number): number => Math.max(0, Math.round(ms / 1_000));

/** Formats 302_000 as "5m 02s"; from two days on, only the days count: "7 days". */
export function formatDuration(ms: number): string {
  const seconds = secondsOf(ms);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${sixtieths(seconds).join('m ')}s`;
  const days = Math.floor(seconds / 86_400);
  if (days >= 2) return `${days} days`;
  return `${sixtieths(Math.floor(seconds / 60)).join('h ')}m`;
}

export const formatClock = (ms: number): string => sixtieths(secondsOf(ms)).join(':');
