import { type Clock, unlessAborted } from '../base/time.ts';
import { type Read, type ReadFailure, readFailed } from '../model/read.ts';
import type { CallOptions } from './api.ts';

export interface TryFailure extends ReadFailure {
  /** `busy`: the server will answer later, so more attempts are worth it. */
  again?: 'maybe' | 'busy' | undefined;
  retryAfterMs?: number | undefined;
}
export type Try<T> = Read<T, TryFailure>;

const STOPPED = 'stopped before the answer came';
export const STOPPED_REQUEST = readFailed({ kind: 'aborted', message: STOPPED });

const RETRIES = 3;
/** While the server is busy: an attempt costs it little. */
const THROTTLED_RETRIES = 8;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4_000;
/** In all. If a server asks for more, there is no further attempt. */
const LONGEST_WAIT_MS = 30_000;

/** Jobs that were refused together should not come back together: `random` is 0 to 1. */
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
    if (again === undefined || tries >= most || waitedMs > LONGEST_WAIT_MS)
      return readFailed(failure);
    await clock.sleep(pause, signal);
    if (signal?.aborted) return STOPPED_REQUEST;
  }
}

/**
 * Limits concurrent requests like TCP (additive increase, multiplicative decrease): priority and fairness answers 429
 * beyond its queue (KEP-1040). A request waits here before its time limit starts; a pause between attempts takes no place.
 */
export class Throttle {
  width: number;
  private readonly most: number;
  private underWay = 0;
  private answeredSince = 0;
  private readonly queue: (() => void)[] = [];

  constructor(most: number) {
    this.most = most;
    this.width = most;
  }

  async run<T>(work: () => Promise<Try<T>>, signal: AbortSignal | undefined): Promise<Try<T>> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.queue.push(resolve);
    this.admit();
    try {
      await unlessAborted(promise, signal);
    } catch {
      const index = this.queue.indexOf(resolve);
      // Its turn may have come in the same moment.
      if (index < 0) this.leave();
      else this.queue.splice(index, 1);
      return STOPPED_REQUEST;
    }
    const widthAtStart = this.width;
    try {
      const result = await work();
      this.adapt(!result.ok && result.failure.again === 'busy', widthAtStart);
      return result;
    } finally {
      this.leave();
    }
  }

  private admit(): void {
    for (; this.underWay < this.width && this.queue.length > 0; this.underWay++)
      this.queue.shift()?.();
  }

  private leave(): void {
    this.underWay--;
    this.admit();
  }

  /** Halves the limit once for all requests that were sent and refused together, and widens it after a round of answers. */
  private adapt(isBusy: boolean, widthAtStart: number): void {
    this.answeredSince++;
    if (isBusy) {
      if (widthAtStart <= this.width) this.width = Math.max(1, Math.floor(this.width / 2));
    } else if (this.width < this.most && this.answeredSince >= this.width) this.width++;
    else return;
    this.answeredSince = 0;
  }
}
