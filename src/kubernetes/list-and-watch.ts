import type { Readable } from 'node:stream';
import {
  arrayAt,
  isObject,
  type JsonObject,
  numberAt,
  parseObject,
  stringAt,
} from '../base/json.ts';
import { failed, type Read, read } from '../model/read.ts';
import type { Fold, Listed, ListOptions, WatchEvent, WatchOptions } from './api.ts';
import { withQuery } from './paths.ts';

/** Without the plain type at the end, servers that cannot do the other one answer 406. */
const METADATA_ONLY =
  'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';
export const PLAIN_JSON = 'application/json';
const PAGE_SIZE = 500;

/** One GET, with retries. */
export type GetJson = (path: string, accept: string) => Promise<Read<JsonObject>>;

export async function listPages<T>(
  path: string,
  begin: () => Fold<T>,
  options: ListOptions,
  get: GetJson,
): Promise<Read<Listed<T>>> {
  const { labelSelector, fieldSelector, limit = PAGE_SIZE } = options;
  let accept = options.metadataOnly === true ? METADATA_ONLY : PLAIN_JSON;
  let room = options.maxItems ?? Number.POSITIVE_INFINITY;
  let hasRestarted = false;
  let token: string | undefined;
  let fold = begin();
  for (;;) {
    const size = Math.max(1, Math.min(limit, room));
    const query = { limit: size, continue: token, labelSelector, fieldSelector };
    const answer = await get(withQuery(path, query), accept);
    if (!answer.ok) {
      if (answer.failure.status === 406 && accept !== PLAIN_JSON) {
        accept = PLAIN_JSON;
        continue;
      }
      // The continue token outlived the server's history; a second time it would do so again.
      if (answer.failure.status !== 410 || token === undefined || hasRestarted) return answer;
      hasRestarted = true;
      room = options.maxItems ?? Number.POSITIVE_INFINITY;
      token = undefined;
      fold = begin();
      continue;
    }
    const page = answer.value;
    if (!isList(page)) return notAList(path, 'an answer that is not a list');
    const items = arrayAt(page, 'items').filter(isObject);
    for (const item of items.slice(0, room)) fold.add(item);
    room -= items.length;

    const next = stringAt(page, 'metadata', 'continue') || undefined;
    if (room < 0 || (room === 0 && next !== undefined)) {
      // Servers do not count for lists with a selector (metav1.ListMeta, remainingItemCount).
      const beyond = next === undefined ? 0 : numberAt(page, 'metadata', 'remainingItemCount');
      const remaining = beyond === undefined ? {} : { remaining: beyond - room };
      return read({ kept: fold.kept, complete: false, ...remaining });
    }
    if (next === undefined) return read({ kept: fold.kept, complete: true });
    if (next === token) return notAList(path, 'the same page over and over');
    token = next;
  }
}

/** Go writes an empty list as null in some servers. One without `items` is an answer to something else, not empty. */
function isList(page: JsonObject): boolean {
  const { items } = page;
  const hasItems = items === null || Array.isArray(items);
  return hasItems && stringAt(page, 'kind')?.endsWith('List') === true;
}

function notAList(path: string, what: string): Read<never> {
  return failed({ kind: 'unreadable', message: `the server sent ${what} for ${path}` });
}

/** The server closes the watch after this. */
const WATCH_SECONDS = 240;
/** A connection that died without a word is given up this long after the server should have closed. */
const OVERDUE_MS = 15_000;
/** Twice the largest object that etcd takes, with its old version and some air. */
const MAX_LINE_CHARS = 16 * 1024 * 1024;

/** Without a version the server starts from its latest state, so an old one cannot be "too old". */
export function watchPath(path: string, { fieldSelector }: WatchOptions): string {
  return withQuery(path, {
    watch: 1,
    allowWatchBookmarks: 'true',
    timeoutSeconds: WATCH_SECONDS,
    fieldSelector,
  });
}

/** Reads events until the stream ends. Silence is normal: a namespace that hangs sends nothing. */
export async function readEvents(body: Readable, options: WatchOptions): Promise<Read<undefined>> {
  const overdue = setTimeout(() => body.destroy(), WATCH_SECONDS * 1_000 + OVERDUE_MS);
  try {
    options.onOpen?.();
    for await (const line of lines(body)) {
      const event = parseEvent(line);
      if (event === undefined) {
        const message = 'the watch sent a line that is not an event';
        return failed({ kind: 'unreadable', message });
      }
      options.onEvent(event);
      if (options.signal?.aborted || event.type === 'ERROR') break;
    }
  } finally {
    clearTimeout(overdue);
    body.on('error', () => undefined).destroy();
  }
  return read(undefined);
}

async function* lines(body: Readable): AsyncGenerator<string> {
  let line = '';
  try {
    for await (const chunk of body.setEncoding('utf8') as AsyncIterable<string>) {
      for (const [index, part] of chunk.split('\n').entries()) {
        if (index > 0) {
          if (line.trim() !== '') yield line;
          line = '';
        }
        line += part;
      }
      if (line.length > MAX_LINE_CHARS) return;
    }
  } catch {
    // The network's error; those of the caller do not come here.
  }
}

const TYPES = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'] as const;

function parseEvent(line: string): WatchEvent | undefined {
  const event = parseObject(line);
  const type = TYPES.find((known) => known === event?.['type']);
  const object = event?.['object'];
  return type === undefined || !isObject(object) ? undefined : { type, object };
}
