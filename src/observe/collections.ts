import { isObject, type JsonObject, stringAt, valueAt } from '../base/json.ts';
import type { Clock } from '../base/time.ts';
import {
  collectItems,
  type Fold,
  type KubernetesApi,
  type ListOptions,
  type ListResult,
} from '../kubernetes/api.ts';
import { collectionPath, isPathSegment } from '../kubernetes/paths.ts';
import type { ObjectDetail } from '../model/facts/detail.ts';
import {
  apiVersionOf,
  type ResourceType,
  type TypeRef,
  typeName,
} from '../model/facts/metadata.ts';
import { type WorkloadFacts, workloadFacts } from '../model/facts/workloads.ts';
import type { NotInspected } from '../model/finding.ts';
import { type Read, type ReadFailure, readOk } from '../model/read.ts';
import { MAX_ITEMS, type Source } from '../model/sources.ts';

/**
 * Number of concurrent reads, the same as the limit of the client. More would delay the calls that notice the
 * deletion.
 */
const WIDTH = 8;
/**
 * Number of single requests that are never replaced by one list, because a page of other objects costs more.
 */
export const MAX_SINGLE_READS = 4;
/** Items per page: of metadata and other small objects, and of whole objects. */
export const PAGE_SIZES = { small: 500, full: 100 };
/** Cost of a full page, compared with an almost empty answer. */
const PAGE_COST = 4;

/** Dependencies of every read. */
export interface Reading {
  api: KubernetesApi;
  /** Ends the reading; sources that were not read by then are "not inspected". */
  signal: AbortSignal;
}

/** Longest time that computing may delay other work, such as a cancel signal. */
const TURN_MS = 50;

/**
 * Calls `work` for one item after the other until the signal aborts, and lets other work run in between. The
 * results of the remaining items are undefined.
 */
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

/** Calls `work` for several items at the same time. The results are in the order of the items. */
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

/**
 * Reads objects with one list instead of `many` single requests. Returns undefined if the list would cost more, or
 * if there are at most `few` requests.
 */
export async function listTogether<T>(
  path: string,
  many: number,
  begin: () => Fold<T>,
  page: { limit: number; metadataOnly?: boolean; few?: number },
  { api, signal }: Reading,
): Promise<Read<T | undefined>> {
  const { few = MAX_SINGLE_READS, ...options } = { ...page, signal };
  if (many <= few) return readOk(undefined);
  const maxItems = page.limit * Math.max(1, Math.floor(many / PAGE_COST));
  const end = await api.list(path, begin, { ...options, maxItems });
  if (!end.ok) return end;
  return readOk(end.value.complete ? end.value.kept : undefined);
}

/**
 * Reads the objects of one type in each of these namespaces, by one list of the whole cluster if that is
 * allowed and cheaper. The result per namespace is the same either way.
 */
export async function listIn<T>(
  type: TypeRef,
  namespaces: readonly string[],
  begin: () => Fold<T>,
  options: Pick<ListOptions, 'metadataOnly' | 'limit' | 'maxItems'> & { maxInAll?: number },
  deps: Reading,
): Promise<Map<string, Read<ListResult<T>>>> {
  const { maxInAll = Number.POSITIVE_INFINITY, ...limits } = options;
  const { metadataOnly = false, maxItems = Number.POSITIVE_INFINITY } = limits;
  const shares = new Map<string, { fold: Fold<T>; count: number; complete: boolean }>();
  let inAll = 0;
  const forget = (name: string): void => {
    inAll -= shares.get(name)?.count ?? 0;
    shares.delete(name);
  };
  const wanted = new Set(namespaces);
  const take = (namespace: string, item: JsonObject): void => {
    // An object with such a name cannot be requested; only a broken extension API server lists it.
    const isReal = isPathSegment(stringAt(item, 'metadata', 'name') ?? '');
    if (!wanted.has(namespace) || !isReal) return;
    const share = shares.get(namespace) ?? { fold: begin(), count: 0, complete: true };
    shares.set(namespace, share);
    if (share.count >= maxItems || inAll >= maxInAll) {
      share.complete = false;
      return;
    }
    share.count++;
    inAll++;
    share.fold.add(item);
  };
  const shareOf = (name: string, isWhole = true): Read<ListResult<T>> => {
    const { fold = begin(), complete = true } = shares.get(name) ?? {};
    return readOk({ kept: fold.kept, complete: complete && isWhole });
  };

  let isTold = true;
  const beginIn = (places: readonly string[], only?: string): Fold<true> => {
    places.forEach(forget);
    const add = (item: JsonObject): void => {
      const { metadata } = item;
      if (only !== undefined && isObject(metadata)) metadata['namespace'] ??= only;
      const namespace = stringAt(metadata, 'namespace');
      // Some extension API servers omit the namespace. Then only a list of one namespace shows where the
      // object is.
      if (namespace === undefined) isTold = false;
      // A broken extension API server may ignore the namespace in the path.
      else if (namespace === (only ?? namespace)) take(namespace, item);
    };
    return { add, kept: true };
  };
  const whole = metadataOnly
    ? { limit: PAGE_SIZES.small, metadataOnly, few: 1 }
    : { limit: PAGE_SIZES.full };
  const together = await listTogether(
    collectionPath(type),
    namespaces.length,
    () => beginIn(namespaces),
    whole,
    deps,
  );
  if (together.ok && together.value && isTold) {
    return new Map(namespaces.map((name) => [name, shareOf(name)]));
  }
  namespaces.forEach(forget);
  const listOne = async (name: string) => {
    const end = await deps.api.list(collectionPath(type, name), () => beginIn([name], name), {
      ...limits,
      signal: deps.signal,
      maxItems: Math.min(maxItems, Math.max(1, maxInAll - inAll)),
    });
    return [name, end.ok ? shareOf(name, end.value.complete) : end] as const;
  };
  // A type that does not answer must not use up the places of the other types.
  const isSlow = !together.ok && together.failure.kind === 'timeout';
  return new Map(await inParallel(namespaces, listOne, isSlow ? 1 : WIDTH));
}

/** Returns the entry under "not inspected" for a failed read, with the missing permission. */
export function notInspectedEntries(
  what: string,
  result: Read<unknown>,
  type: Pick<TypeRef, 'group' | 'resource'>,
  verb = 'list',
): NotInspected[] {
  if (result.ok) return [];
  const { failure } = result;
  return [{ what, reason: failure.message, ...missingPermission(failure, type, verb) }];
}

export function missingPermission(
  failure: ReadFailure,
  { group, resource }: Pick<TypeRef, 'group' | 'resource'>,
  verb = 'list',
): Pick<NotInspected, 'grant'> {
  return failure.kind === 'forbidden' ? { grant: { apiGroup: group, resource, verb } } : {};
}

/** A value, and the parts of it that could not be read. */
export interface Gathered<T> {
  value: T;
  unread?: NotInspected[];
  /** Details of objects that were read for this value, by UID. */
  details?: Record<string, Read<ObjectDetail>>;
}

/** Reads the whole collection. */
export async function readSource<T>(
  source: Source<T>,
  { api, signal }: Reading,
): Promise<Gathered<Read<T[]>>> {
  const { type, parse } = source;
  const end = await api.list(collectionPath(type), collectItems(parse), { ...source, signal });
  return answerOf(source, end);
}

/** Reads workloads of types outside of group apps that have a scale subresource and a pod template. */
export async function readOtherWorkloads(
  types: readonly ResourceType[],
  deps: Reading,
): Promise<Gathered<Read<WorkloadFacts[]>>> {
  const kinds = types.filter(
    ({ scales, namespaced, group, verbs }) =>
      scales && namespaced && group !== 'apps' && verbs.includes('list'),
  );
  const answers = await inParallel(kinds, (type) => {
    const facts = workloadFacts(apiVersionOf(type), type.kind);
    const parse = (item: JsonObject): WorkloadFacts[] =>
      isObject(valueAt(item, 'spec', 'template', 'spec')) ? [facts(item)] : [];
    const label = typeName(type);
    return readSource({ label, type, parse, maxItems: MAX_ITEMS, isOptional: true }, deps);
  });
  return {
    value: readOk(answers.flatMap(({ value }) => (value.ok ? value.value : []))),
    unread: answers.flatMap(({ unread = [] }) => unread),
  };
}

/** Reads a collection in each of these namespaces. */
export async function readInNamespaces<T>(
  source: Source<T>,
  namespaces: readonly string[],
  deps: Reading,
): Promise<Map<string, Gathered<Read<T[]>>>> {
  const { type, parse, maxItems } = source;
  const limits = { maxItems, maxInAll: Math.min(MAX_ITEMS, 5 * maxItems) };
  const ends = await listIn(type, namespaces, collectItems(parse), limits, deps);
  return new Map([...ends].map(([name, end]) => [name, answerOf(source, end, name)]));
}

function answerOf<T>(
  { label, type, maxItems }: Source<T>,
  end: Read<ListResult<T[]>>,
  namespace?: string,
): Gathered<Read<T[]>> {
  const place = namespace === undefined ? 'of the cluster' : `in namespace ${namespace}`;
  if (!end.ok) return { value: end, unread: notInspectedEntries(`${label} ${place}`, end, type) };
  const { kept: found, complete } = end.value;
  if (complete || maxItems === 1) return { value: readOk(found) };
  const what = `more ${label} ${place}`;
  const reason = `only the first ${found.length} are read`;
  return { value: readOk(found), unread: [{ what, reason }] };
}
