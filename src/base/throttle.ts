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
