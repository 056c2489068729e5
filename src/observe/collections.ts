import { isObject, type JsonObject, stringAt } from '../base/json.ts';
import type { Clock } from '../base/time.ts';
import {
  collectItems,
  type Fold,
  type KubernetesApi,
  type ListOptions,
  type ListResult,
} from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import type { ObjectDetail } from '../model/facts/detail.ts';
import type { TypeRef } from '../model/facts/metadata.ts';
import type { NotInspected } from '../model/finding.ts';
import { type Read, readOk } from '../model/read.ts';
import type { Source } from '../model/sources.ts';

/** Number of concurrent reads. More would delay the calls that notice the deletion. */
const WIDTH = 8;
/** Fewer single requests are never replaced by one list: a page of other objects costs more. */
export const MAX_SINGLE_READS = 4;
/** Items per page of whole objects. */
const FULL_PAGE = 100;
/** Cost of a full page, compared with an almost empty answer. */
const PAGE_COST = 4;

export interface Reading {
  api: KubernetesApi;
  /** Ends the reading; sources that were not read by then are "not inspected". */
  signal: AbortSignal;
}

/** Longest time that computing may delay other work, such as a cancel signal. */
const TURN_MS = 50;

/** Lets other work run in between. After an abort, the results of the remaining items are undefined. */
export async function oneAfterAnother<T, R>(
  items: readonly T[],
  work: (item: T) => R,
  { clock, signal }: Pick<Reading, 'signal'> & { clock: Clock },
): Promise<(R | undefined)[]> {
  const results = new Array<R | undefined>(items.length);
  let turn = performance.now();
  for (const [index, item] of items.entries()) {
    if (performance.now() - turn > TURN_MS) {
      await clock.sleep(0, signal);
      turn = performance.now();
    }
    if (signal.aborted) break;
    results[index] = work(item);
  }
  return results;
}

/** The results are in the order of the items. */
export async function inParallel<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  width = WIDTH,
): Promise<R[]> {
  const answers = new Array<R>(items.length);
  const rest = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of rest) answers[index] = await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  return answers;
}

/** Reads objects with one list instead of `many` single requests; undefined if the list would cost more. */
export async function listTogether<T>(
  path: string,
  many: number,
  few: number,
  begin: () => Fold<T>,
  page: { limit: number; metadataOnly?: boolean },
  { api, signal }: Reading,
): Promise<Read<T | undefined>> {
  if (many <= few) return readOk(undefined);
  const maxItems = page.limit * Math.max(1, Math.floor(many / PAGE_COST));
  const end = await api.list(path, begin, { ...page, signal, maxItems });
  if (!end.ok) return end;
  return readOk(end.value.complete ? end.value.kept : undefined);
}

/** Reads one type in each of these namespaces, by one list of the whole cluster if that is allowed and cheaper. */
export async function listIn<T>(
  type: TypeRef,
  namespaces: readonly string[],
  begin: () => Fold<T>,
  limits: Pick<ListOptions, 'metadataOnly' | 'maxItems'>,
  { api, signal }: Reading,
): Promise<Map<string, Read<ListResult<T>>>> {
  const { metadataOnly = false, maxItems = Number.POSITIVE_INFINITY } = limits;
  const page = metadataOnly ? { limit: 500, metadataOnly } : { limit: FULL_PAGE };
  const beginAll = () => {
    const shares = new Map(namespaces.map((name) => [name, { fold: begin(), count: 0 }]));
    const all = { shares, isTold: true };
    const add = (item: JsonObject): void => {
      const namespace = stringAt(item, 'metadata', 'namespace');
      const share = shares.get(namespace ?? '');
      // Some extension API servers omit the namespace: then only a list of one namespace shows where an object is.
      if (!namespace) all.isTold = false;
      if (share !== undefined && share.count++ < maxItems) share.fold.add(item);
    };
    return { add, kept: all };
  };
  /** In a list of one namespace, an object without a namespace is in that one; a broken server lists those of others. */
  const beginIn = (name: string) => () => {
    const { add, kept } = begin();
    return {
      kept,
      add: (item: JsonObject) => {
        const { metadata } = item;
        if (isObject(metadata)) metadata['namespace'] ||= name;
        if (stringAt(item, 'metadata', 'namespace') === name) add(item);
      },
    };
  };
  const few = metadataOnly ? 1 : MAX_SINGLE_READS;
  const path = collectionPath(type);
  const deps = { api, signal };
  const together = await listTogether(path, namespaces.length, few, beginAll, page, deps);
  if (!together.ok && together.failure.kind === 'timeout') {
    // A type that does not answer must not use up the places of the other types.
    return new Map(namespaces.map((name) => [name, together]));
  }
  const all = together.ok && together.value?.isTold ? together.value.shares : undefined;
  const lists = await inParallel(namespaces, async (name) => {
    const share = all?.get(name);
    const end =
      share === undefined
        ? await api.list(collectionPath(type, name), beginIn(name), { ...limits, ...page, signal })
        : readOk({ kept: share.fold.kept, complete: share.count <= maxItems });
    return [name, end] as const;
  });
  return new Map(lists);
}

export function notInspectedEntries(
  what: string,
  result: Read<unknown>,
  { group, resource }: Pick<TypeRef, 'group' | 'resource'>,
  verb = 'list',
): NotInspected[] {
  if (result.ok) return [];
  const { kind, message } = result.failure;
  const grant = kind === 'forbidden' && { grant: { apiGroup: group, resource, verb } };
  return [{ what, reason: message, ...grant }];
}

/** A value, and the parts of it that could not be read. */
export interface Gathered<T> {
  value: T;
  unread?: NotInspected[];
  /** Of objects that were read for this value, by UID. */
  details?: Record<string, Read<ObjectDetail>>;
}

export async function readSource<T>(
  source: Source<T>,
  { api, signal }: Reading,
): Promise<Gathered<Read<T[]>>> {
  const { type, parse } = source;
  const end = await api.list(collectionPath(type), collectItems(parse), { ...source, signal });
  return answerOf(source, end, 'of the cluster');
}

export async function readInNamespaces<T>(
  source: Source<T>,
  namespaces: readonly string[],
  deps: Reading,
): Promise<Map<string, Gathered<Read<T[]>>>> {
  const { type, parse, maxItems } = source;
  const ends = await listIn(type, namespaces, collectItems(parse), { maxItems }, deps);
  return new Map(
    [...ends].map(([name, end]) => [name, answerOf(source, end, `in namespace ${name}`)]),
  );
}

function answerOf<T>(
  { label, type, maxItems }: Source<T>,
  end: Read<ListResult<T[]>>,
  place: string,
): Gathered<Read<T[]>> {
  if (!end.ok) return { value: end, unread: notInspectedEntries(`${label} ${place}`, end, type) };
  const { kept, complete } = end.value;
  if (complete || maxItems === 1) return { value: readOk(kept) };
  const reason = `only the first ${kept.length} are read`;
  return { value: readOk(kept), unread: [{ what: `more ${label} ${place}`, reason }] };
}
