import type { Readable } from 'node:stream';
import { isObject, type JsonObject, numberAt } from '../base/json.ts';
import { failed, type Read, read } from '../model/read.ts';
import type { WatchEnd, WatchEvent, WatchOptions } from './api.ts';
import { withQuery } from './paths.ts';

export const WATCH_SECONDS = 240;
/** A connection that died without a word is given up this long after the server should have closed. */
const OVERDUE_MS = 15_000;
/** Twice the largest object that etcd takes, with its old version and some air. */
const MAX_LINE_CHARS = 16 * 1024 * 1024;

export function watchPath(path: string, options: WatchOptions): string {
  return withQuery(path, {
    watch: 1,
    allowWatchBookmarks: 'true',
    timeoutSeconds: options.watchSeconds ?? WATCH_SECONDS,
    fieldSelector: options.fieldSelector,
    resourceVersion: options.resourceVersion === '' ? undefined : options.resourceVersion,
  });
}

/**
 * Reads events until the stream ends. Silence is normal: a namespace that hangs sends nothing. An
 * accepted watch that breaks is `closed`, like one that the server ends; both mean "look again".
 */
export async function readEvents(body: Readable, options: WatchOptions): Promise<Read<WatchEnd>> {
  const seconds = options.watchSeconds ?? WATCH_SECONDS;
  const overdue = setTimeout(() => body.destroy(), seconds * 1_000 + OVERDUE_MS);
  try {
    options.onOpen?.();
    for await (const line of lines(body)) {
      const event = parseEvent(line);
      if (event === undefined) {
        return failed({
          kind: 'unreadable',
          message: 'the watch sent a line that is not an event',
        });
      }
      options.onEvent(event);
      if (options.signal?.aborted) return read('aborted');
      if (event.type === 'ERROR') {
        return read(numberAt(event.object, 'code') === 410 ? 'expired' : 'closed');
      }
    }
  } catch (error) {
    if (!(error instanceof BrokenStream)) throw error;
  } finally {
    clearTimeout(overdue);
    body.on('error', () => undefined).destroy();
  }
  return read(options.signal?.aborted ? 'aborted' : 'closed');
}

/** Tells the network's errors from those of the caller's `onEvent`. */
class BrokenStream extends Error {}

async function* lines(body: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  for (;;) {
    const chunk = await chunks.next().catch((error: unknown) => {
      throw new BrokenStream('the watch broke off', { cause: error });
    });
    if (chunk.done === true) return;
    const parts = (rest + decoder.decode(chunk.value, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    if (rest.length > MAX_LINE_CHARS) throw new BrokenStream('a line without end');
    for (const part of parts) if (part.trim() !== '') yield part;
  }
}

const TYPES = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'] as const;

function parseEvent(line: string): WatchEvent | undefined {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isObject(event)) return undefined;
  const type = TYPES.find((known) => known === event['type']);
  const object: JsonObject | undefined = isObject(event['object']) ? event['object'] : undefined;
  return type === undefined || object === undefined ? undefined : { type, object };
}
