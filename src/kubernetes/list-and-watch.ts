import type { Readable } from 'node:stream';
import {
  arrayAt,
  isObject,
  type JsonObject,
  numberAt,
  parseObject,
  stringAt,
} from '../base/json.ts';
import { type Read, readOk } from '../model/read.ts';
import type { Fold, ListOptions, ListResult, WatchEvent, WatchOptions } from './api.ts';
import { unreadable } from './failures.ts';
import { withQuery } from './paths.ts';

/**
 * Accept header for metadata only. Without the plain type at the end, servers without support for it answer 406.
 */
const METADATA_ONLY =
  'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';
export const PLAIN_JSON = 'application/json';
const PAGE_SIZE = 500;

/** Sends one GET, with retries. */
export type GetJson = (path: string, accept: string) => Promise<Read<JsonObject>>;

export async function listPages<T>(
  path: string,
  begin: () => Fold<T>,
  options: ListOptions,
  get: GetJson,
): Promise<Read<ListResult<T>>> {
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
      // The continue token has expired. A second restart would probably fail in the same way.
      if (answer.failure.status !== 410 || token === undefined || hasRestarted) return answer;
      hasRestarted = true;
      room = options.maxItems ?? Number.POSITIVE_INFINITY;
      token = undefined;
      fold = begin();
      continue;
    }
    const page = answer.value;
    if (!isList(page))
      return unreadable(`the server sent an answer that is not a list for ${path}`);
    const items = arrayAt(page, 'items').filter(isObject);
    for (const item of items.slice(0, room)) fold.add(item);
    room -= items.length;

    const next = stringAt(page, 'metadata', 'continue') || undefined;
    if (room < 0 || (room === 0 && next !== undefined)) {
      // Servers do not count the rest of lists with a selector (metav1.ListMeta, remainingItemCount).
      const beyond = next === undefined ? 0 : numberAt(page, 'metadata', 'remainingItemCount');
      const remaining = beyond === undefined ? {} : { remaining: beyond - room };
      return readOk({ kept: fold.kept, complete: false, ...remaining });
    }
    if (next === undefined) return readOk({ kept: fold.kept, complete: true });
    if (next === token)
      return unreadable(`the server sent the same page over and over for ${path}`);
    token = next;
  }
}

/**
 * Reports whether a page is a list. Some servers write an empty list as null (Go). An answer without `items` is
 * not an empty list but an answer to something else.
 */
function isList(page: JsonObject): boolean {
  const { items } = page;
  const hasItems = items === null || Array.isArray(items);
  return hasItems && stringAt(page, 'kind')?.endsWith('List') === true;
}

/** Time after which the server closes the watch. */
const WATCH_SECONDS = 240;
/** Time after which a silent connection is given up, counted from when the server should have closed it. */
const OVERDUE_MS = 15_000;
/** Limit of one event: twice the largest object that etcd accepts, with its old version and a reserve. */
const MAX_LINE_CHARS = 16 * 1024 * 1024;

/**
 * Returns the path of a watch without a resourceVersion. The server then starts from its latest state, so the
 * version cannot be "too old".
 */
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
      if (event === undefined) return unreadable('the watch sent a line that is not an event');
      options.onEvent(event);
      if (options.signal?.aborted || event.type === 'ERROR') break;
    }
  } finally {
    clearTimeout(overdue);
    body.on('error', () => undefined).destroy();
  }
  return readOk(undefined);
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
    // An error of the network; errors of the caller do not get here.
  }
}

const TYPES = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'] as const;

function parseEvent(line: string): WatchEvent | undefined {
  const event = parseObject(line);
  const type = TYPES.find((known) => known === event?.['type']);
  const object = event?.['object'];
  return type === undefined || !isObject(object) ? undefined : { type, object };
}
