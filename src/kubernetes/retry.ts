import type { Clock } from '../base/time.ts';
import { failed, type Read, type ReadFailure } from '../model/read.ts';
import type { CallOptions } from './api.ts';

/** How one try failed, and whether another one may go better. */
export interface TryFailure extends ReadFailure {
  /** `busy`: the server will answer later; then more tries are worth it. */
  again?: 'maybe' | 'busy' | undefined;
  retryAfterMs?: number | undefined;
}

export type Try<T> = Read<T, TryFailure>;

export const STOPPED = failed({ kind: 'aborted', message: 'stopped before the answer came' });

const RETRIES = 3;
/** While the server is busy: a try is cheap for it, and somebody waits for the answer. */
const THROTTLED_RETRIES = 8;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4_000;
/** A server that asks for more than this, all in all, gets no further try: the caller decides then. */
const LONGEST_WAIT_MS = 30_000;

/**
 * Tries until one succeeds or another would not go better. `random` is 0 to 1, for the jitter: many jobs
 * that were turned away together should not come back together.
 */
export async function withRetries<T>(
  attempt: () => Promise<Try<T>>,
  { retries, signal }: CallOptions,
  { clock, random }: { clock: Clock; random: () => number },
): Promise<Read<T>> {
  let waitedMs = 0;
  for (let tries = 0; ; tries++) {
    const result = await attempt();
    if (result.ok) return result;
    const { again, retryAfterMs = 0, ...failure } = result.failure;
    const most = retries ?? (again === 'busy' ? THROTTLED_RETRIES : RETRIES);
    const backoff = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries);
    const pause = Math.max(retryAfterMs, backoff * (0.5 + random() / 2));
    waitedMs += pause;
    if (again === undefined || tries >= most || waitedMs > LONGEST_WAIT_MS) return failed(failure);
    await clock.sleep(pause, signal);
    if (signal?.aborted) return STOPPED;
  }
}

/**
 * How many requests may be under way at once, found out as TCP does (additive increase, multiplicative
 * decrease): priority and fairness has few seats for a ServiceAccount and answers 429 beyond its queue
 * (KEP-1040). Who waits for its turn waits here, where no time limit of a request runs yet; between two
 * tries nobody's turn is taken.
 */
export class Throttle {
  /** At most this many at once, at the moment. */
  width: number;
  private readonly most: number;
  private underWay = 0;
  private answeredSince = 0;
  private readonly queue: (() => void)[] = [];

  constructor(most: number) {
    this.most = most;
    this.width = most;
  }

  /** Runs `work` when it is its turn, unless the signal comes first. */
  async run<T>(work: () => Promise<Try<T>>, signal: AbortSignal | undefined): Promise<Try<T>> {
    if (signal?.aborted || !(await this.turn(signal))) return STOPPED;
    const widthAtStart = this.width;
    try {
      const result = await work();
      if (!result.ok && result.failure.again === 'busy') this.narrow(widthAtStart);
      else this.widen();
      return result;
    } finally {
      this.underWay--;
      while (this.underWay < this.width && this.queue.length > 0) this.queue.shift()?.();
    }
  }

  /** False when the signal came first. */
  private async turn(signal: AbortSignal | undefined): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const leave = (): void => {
      this.queue.splice(this.queue.indexOf(enter), 1);
      resolve(false);
    };
    const enter = (): void => {
      this.underWay++;
      signal?.removeEventListener('abort', leave);
      resolve(true);
    };
    if (this.underWay < this.width) {
      enter();
    } else {
      this.queue.push(enter);
      signal?.addEventListener('abort', leave, { once: true });
    }
    return promise;
  }

  /** Requests that were sent together are turned away together: that halves once. */
  private narrow(widthAtStart: number): void {
    if (widthAtStart <= this.width) this.width = Math.max(1, Math.floor(this.width / 2));
    this.answeredSince = 0;
  }

  private widen(): void {
    this.answeredSince++;
    if (this.width >= this.most || this.answeredSince < this.width) return;
    this.width++;
    this.answeredSince = 0;
  }
}
