import type { Clock } from '../base/time.ts';
import { failed, type Read, type ReadFailure } from '../model/read.ts';

/** One try, and whether another one may go better. */
export type Attempt<T> = { ok: true; value: T } | Failed;

export interface Failed {
  ok: false;
  failure: ReadFailure;
  isTransient: boolean;
  /** The server is busy and will answer later; then more tries are worth it. */
  isThrottled?: boolean;
  retryAfterMs?: number;
}

export interface RetryOptions {
  retries: number;
  /** Instead of `retries`, while the server is busy: a try is cheap for it, and somebody waits for the answer. */
  throttledRetries: number;
  signal: AbortSignal | undefined;
  clock: Clock;
  /** 0 to 1, for the jitter. */
  random: () => number;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4_000;
/** A server that asks for more than this, all in all, gets no further try: the caller decides then. */
const LONGEST_WAIT_MS = 30_000;

/** For reads only: nobody knows what became of a mutation that was not answered. */
export async function withRetries<T>(
  attempt: () => Promise<Attempt<T>>,
  options: RetryOptions,
): Promise<Read<T>> {
  let waitedMs = 0;
  for (let tries = 0; ; tries++) {
    const result = await attempt();
    if (result.ok) return result;
    const pause = pauseMs(result, tries, options);
    if (pause === undefined || waitedMs + pause > LONGEST_WAIT_MS) return failed(result.failure);
    waitedMs += pause;
    await options.clock.sleep(pause, options.signal);
    if (options.signal?.aborted) return failed(ABORTED);
  }
}

const ABORTED: ReadFailure = { kind: 'aborted', message: 'stopped before the answer came' };

export const STOPPED: Failed = { ok: false, failure: ABORTED, isTransient: false };

function pauseMs(result: Failed, tries: number, options: RetryOptions): number | undefined {
  const most = result.isThrottled === true ? options.throttledRetries : options.retries;
  if (!result.isTransient || tries >= most) return undefined;
  const asked = result.retryAfterMs ?? 0;
  // Jitter: many jobs that were turned away together should not come back together.
  const backoff = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries);
  return Math.max(asked, backoff * (0.5 + options.random() / 2));
}

/**
 * How many requests may be under way at once, found out as TCP does (additive increase, multiplicative
 * decrease): priority and fairness has few seats for a ServiceAccount and answers 429 beyond its queue
 * (KEP-1040). Who waits for its turn waits here, where no time limit of a request runs yet.
 */
export class Throttle {
  private readonly most: number;
  private limit: number;
  private underWay = 0;
  private answeredSince = 0;
  private readonly queue: (() => void)[] = [];

  constructor(most: number) {
    this.most = most;
    this.limit = most;
  }

  /** At most this many at once, at the moment. */
  get width(): number {
    return this.limit;
  }

  /** Runs `work` when it is its turn; rejects with the signal's reason when that comes first. */
  async run<T>(
    work: () => Promise<T>,
    wasThrottled: (result: T) => boolean,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    await this.turn(signal);
    const widthAtStart = this.limit;
    try {
      const result = await work();
      if (wasThrottled(result)) this.narrow(widthAtStart);
      else this.widen();
      return result;
    } finally {
      this.underWay--;
      this.next();
    }
  }

  private turn(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.underWay < this.limit) {
      this.underWay++;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal?.removeEventListener('abort', leave);
        this.underWay++;
        resolve();
      };
      const leave = (): void => {
        this.queue.splice(this.queue.indexOf(enter), 1);
        reject(signal?.reason);
      };
      this.queue.push(enter);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** Requests that were sent together are turned away together: that halves once. */
  private narrow(widthAtStart: number): void {
    if (widthAtStart <= this.limit) this.limit = Math.max(1, Math.floor(this.limit / 2));
    this.answeredSince = 0;
  }

  private widen(): void {
    this.answeredSince++;
    if (this.limit >= this.most || this.answeredSince < this.limit) return;
    this.limit++;
    this.answeredSince = 0;
  }

  private next(): void {
    while (this.underWay < this.limit) {
      const enter = this.queue.shift();
      if (enter === undefined) return;
      enter();
    }
  }
}
