import { EventEmitter } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { isObject, type Json, stringAt } from '../../src/base/json.ts';

/** Waits until something has changed since it was made, at most so long, or until the signal. */
export type Pulse = (limitMs: number, stop?: AbortSignal) => Promise<void>;

const AGAIN_MS = 1_000;

/**
 * Says that objects of one type may have changed, by a watch, so that whoever waits for them asks only then. What it
 * is told wakes and decides nothing: a watch that breaks or lags costs time only.
 */
export class Pulses {
  readonly #counts = new Map<string, number>();
  readonly #events = new EventEmitter().setMaxListeners(0);
  readonly #open: () => Promise<Readable>;
  #isClosed = false;

  /** `open` returns the lines of a watch. */
  constructor(open: () => Promise<Readable>) {
    this.#open = open;
    void this.#follow();
  }

  /** From now on, for objects in one of these namespaces or, if they are in none, with one of these names. */
  since(keys: readonly string[]): Pulse {
    const before = this.#countOf(keys);
    return (limitMs, stop) => {
      if (this.#countOf(keys) !== before || stop?.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          this.#events.off('change', heard);
          stop?.removeEventListener('abort', done);
          resolve();
        };
        const heard = (key: string): void => {
          if (keys.includes(key)) done();
        };
        const timer = setTimeout(done, limitMs);
        this.#events.on('change', heard);
        stop?.addEventListener('abort', done);
      });
    };
  }

  close(): void {
    this.#isClosed = true;
  }

  #countOf(keys: readonly string[]): number {
    return keys.reduce((sum, key) => sum + (this.#counts.get(key) ?? 0), 0);
  }

  async #follow(): Promise<void> {
    while (!this.#isClosed) {
      await this.#read().catch(() => {}); // a server that restarts, or a client that was closed
      for (const key of this.#counts.keys()) this.#tell(key);
      await sleep(AGAIN_MS, undefined, { ref: false });
    }
  }

  async #read(): Promise<void> {
    let rest = '';
    for await (const text of (await this.#open()).setEncoding('utf8')) {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const event = JSON.parse(line) as Json;
        const metadata = isObject(event) && isObject(event['object']) ? event['object'] : {};
        const key =
          stringAt(metadata, 'metadata', 'namespace') ?? stringAt(metadata, 'metadata', 'name');
        if (key !== undefined) this.#tell(key);
      }
    }
  }

  #tell(key: string): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    this.#events.emit('change', key);
  }
}
