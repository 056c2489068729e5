import type { Readable } from 'node:stream';
import { arrayAt, isObject, type JsonObject, parseObject, stringAt } from '../base/json.ts';
import { type Read, readOk } from '../model/read.ts';
import type { Fold, ListOptions, ListResult, WatchEvent, WatchOptions } from './api.ts';
import { unreadable } from './failures.ts';
import { withQuery } from './paths.ts';

/** Servers without support for it send whole objects. */
const METADATA_ONLY =
  'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';
export const PLAIN_JSON = 'application/json';
const PAGE_SIZE = 500;

export type GetJson = (path: string, accept: string) => Promise<Read<JsonObject>>;

export async function listPages<T>(
  path: string,
  begin: () => Fold<T>,
  options: ListOptions,
  get: GetJson,
): Promise<Read<ListResult<T>>> {
  const { labelSelector, fieldSelector, limit = PAGE_SIZE, maxItems = Infinity } = options;
  const accept = options.metadataOnly === true ? METADATA_ONLY : PLAIN_JSON;
  let [room, fold] = [maxItems, begin()];
  let token: string | undefined;
  let hasRestarted = false;
  for (;;) {
    const query = { limit: Math.min(limit, room), continue: token, labelSelector, fieldSelector };
    const answer = await get(withQuery(path, query), accept);
    if (!answer.ok) {
      // The continue token has expired. A second restart would probably fail in the same way.
      if (answer.failure.status !== 410 || token === undefined || hasRestarted) return answer;
      hasRestarted = true;
      token = undefined;
      [room, fold] = [maxItems, begin()];
      continue;
    }
    const page = answer.value;
    // Some servers write an empty list as null (Go). An answer without `items` is not an empty list.
    const hasItems = page['items'] === null || Array.isArray(page['items']);
    if (!hasItems || stringAt(page, 'kind')?.endsWith('List') !== true)
      return unreadable(`the server sent an answer that is not a list for ${path}`);
    const items = arrayAt(page, 'items').filter(isObject);
    for (const item of items.slice(0, room)) fold.add(item);
    room -= items.length;

    const next = stringAt(page, 'metadata', 'continue') || undefined;
    const isCut = room < 0 || (room === 0 && next !== undefined);
    if (isCut || next === undefined) return readOk({ kept: fold.kept, complete: !isCut });
    if (next === token)
      return unreadable(`the server sent the same page over and over for ${path}`);
    token = next;
  }
}

/** Then the server closes the watch. */
const WATCH_SECONDS = 240;
/** A silent connection is given up so long after the server should have closed it. */
const OVERDUE_MS = 15_000;
/** Limit of one event: twice the largest object that etcd accepts, with its old version and a reserve. */
const MAX_LINE_CHARS = 16 * 1024 * 1024;

/** Without a resourceVersion the server starts from its latest state, so the version cannot be "too old". */
export function watchPath(path: string, { fieldSelector }: WatchOptions): string {
  const timeoutSeconds = WATCH_SECONDS;
  return withQuery(path, { watch: 1, allowWatchBookmarks: 'true', timeoutSeconds, fieldSelector });
}

/** Reads events until the stream ends. Silence is normal: a namespace that hangs sends nothing. */
export async function readEvents(body: Readable, options: WatchOptions): Promise<Read<undefined>> {
  const overdue = setTimeout(() => body.destroy(), WATCH_SECONDS * 1_000 + OVERDUE_MS);
  try {
    options.onOpen?.();
    for await (const line of lines(body)) {
      const event = parseObject(line);
      const { type, object } = event ?? {};
      if (typeof type !== 'string' || !isObject(object))
        return unreadable('the watch sent a line that is not an event');
      options.onEvent({ type: type as WatchEvent['type'], object });
      if (options.signal?.aborted || type === 'ERROR') break;
    }
  } finally {
    clearTimeout(overdue);
    body.on('error', () => undefined).destroy();
  }
  return readOk(undefined);
}

async function* lines(body: Readable): AsyncGenerator<string> {
  let rest = '';
  try {
    for await (const chunk of body.setEncoding('utf8') as AsyncIterable<string>) {
      const parts = (rest + chunk).split('\n');
      rest = parts.pop() ?? '';
      yield* parts.filter((line) => line.trim() !== '');
      if (rest.length > MAX_LINE_CHARS) return;
    }
  } catch {
    // An error of the network; errors of the caller do not get here.
  }
}
