import { ActionError } from './errors.ts';
import { plainText, shorten } from './text.ts';

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
 * Returns the time by the API server's clock, in milliseconds. Deletion timestamps, grace periods and Leases use
 * that clock, and the clock of a runner may be wrong by hours. Therefore every time that is compared or reported
 * is the server's.
 */
export function serverTime({ api, clock }: Clocks): number {
  return clock.now() + api.clockOffsetMs();
}

/** Returns the time by the API server's clock as ISO 8601. */
export function serverTimestamp(clocks: Clocks): string {
  return new Date(serverTime(clocks)).toISOString();
}

const MS_PER_UNIT = { s: 1_000, m: 60_000, h: 3_600_000 } as const;
/** Five days: the limit of a job on a self-hosted runner. A hosted job ends after 6 h. */
const MAX_DURATION_MS = 5 * 24 * MS_PER_UNIT.h;
const MAX_SHOWN = 80;

/**
 * Parses "90s", "10m" or "1h" into milliseconds. A number without a unit is refused because its unit would be a
 * guess.
 */
export function parseDuration(input: string, value: string): number {
  const match = /^(\d{1,6})(s|m|h)$/.exec(value);
  const ms = match ? Number(match[1]) * MS_PER_UNIT[match[2] as keyof typeof MS_PER_UNIT] : -1;
  if (ms < 0 || ms > MAX_DURATION_MS) {
    throw new ActionError(
      'invalid-input',
      `input "${input}" is "${shorten(plainText(value), MAX_SHOWN)}"; write a whole number and a unit up to 120h, for example 90s, 10m or 1h`,
    );
  }
  return ms;
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
