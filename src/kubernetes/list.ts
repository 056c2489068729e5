import { arrayAt, at, isObject, type JsonObject, numberAt, stringAt } from '../base/json.ts';
import { failed, type Read, read } from '../model/read.ts';
import type { ListEnd, ListOptions } from './api.ts';
import { withQuery } from './paths.ts';

/** Without the plain type at the end, servers that cannot do the other one answer 406. */
const METADATA_ONLY =
  'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';
export const PLAIN_JSON = 'application/json';
const PAGE_SIZE = 500;

/** One GET, with retries. */
export type GetJson = (path: string, accept: string) => Promise<Read<JsonObject>>;

export async function listPages(
  path: string,
  options: ListOptions,
  get: GetJson,
): Promise<Read<ListEnd>> {
  let accept = options.metadataOnly === true ? METADATA_ONLY : PLAIN_JSON;
  let hasRestarted = false;
  let handedOver = 0;
  let token = '';
  for (;;) {
    const answer = await get(pagePath(path, options, token, handedOver), accept);
    if (!answer.ok) {
      if (answer.failure.status === 406 && accept !== PLAIN_JSON) {
        accept = PLAIN_JSON;
        continue;
      }
      // The continue token outlived the server's history; a second time it would do so again.
      if (answer.failure.status !== 410 || token === '' || hasRestarted) return answer;
      hasRestarted = true;
      handedOver = 0;
      token = '';
      options.onRestart?.();
      continue;
    }
    const page = answer.value;
    if (!isList(page)) return notAList(path, 'an answer that is not a list');
    const items = arrayAt(page, 'items').filter(isObject);
    const room = (options.maxItems ?? Number.POSITIVE_INFINITY) - handedOver;
    for (const item of items.slice(0, room)) options.onItem(item);
    handedOver += Math.min(items.length, room);

    const next = stringAt(page, 'metadata', 'continue') ?? '';
    const resourceVersion = stringAt(page, 'metadata', 'resourceVersion') ?? '';
    if (items.length > room || (next !== '' && items.length >= room)) {
      return read({ resourceVersion, complete: false, ...remaining(page, items.length - room) });
    }
    if (next === '') return read({ resourceVersion, complete: true });
    if (next === token) return notAList(path, 'the same page over and over');
    token = next;
  }
}

function pagePath(path: string, options: ListOptions, token: string, handedOver: number): string {
  const room = (options.maxItems ?? Number.POSITIVE_INFINITY) - handedOver;
  return withQuery(path, {
    limit: Math.max(1, Math.min(options.limit ?? PAGE_SIZE, room)),
    continue: token === '' ? undefined : token,
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
  });
}

/** Go writes an empty list as null in some servers. */
function isList(page: JsonObject): boolean {
  const items = at(page, 'items');
  const isListKind = stringAt(page, 'kind')?.endsWith('List') ?? false;
  return isListKind && (Array.isArray(items) || items === null || items === undefined);
}

function remaining(page: JsonObject, unused: number): { remaining?: number } {
  const beyond = numberAt(page, 'metadata', 'remainingItemCount');
  return beyond === undefined && unused === 0 ? {} : { remaining: (beyond ?? 0) + unused };
}

function notAList(path: string, what: string): Read<never> {
  return failed({ kind: 'unreadable', message: `the server sent ${what} for ${path}` });
}
