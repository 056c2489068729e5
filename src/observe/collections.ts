import { at, isObject, type JsonObject, stringAt } from '../base/json.ts';
import { type Fold, type KubernetesApi, keeping, type ListOptions } from '../kubernetes/api.ts';
import { collectionPath, isPathSegment } from '../kubernetes/paths.ts';
import {
  apiVersionOf,
  type ObjectDetail,
  type ResourceType,
  type TypeRef,
  typeName,
  type WorkloadFacts,
  workloadFacts,
} from '../model/facts.ts';
import type { NotInspected } from '../model/finding.ts';
import { type Read, type ReadFailure, read } from '../model/read.ts';
import { MANY, type Source } from '../model/sources.ts';

/** As many as the client sends at once: more would delay the calls that notice the end. */
const WIDTH = 8;
/** For so few, a request for each costs less than a page of what is not theirs. */
export const FEW = 4;
/** Items of a page: of metadata and other small things, and of objects in full. */
export const PAGE = { small: 500, full: 100 };
/** A full page is as much work for the server, the network and us as this many answers with little in them. */
const PAGE_COST = 4;

/** What reading needs. */
export interface Reading {
  api: KubernetesApi;
  /** Ends the reading; what was not read by then is "not inspected". */
  signal: AbortSignal;
}

/** Answers in the order of the items. */
export async function inParallel<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  width = WIDTH,
): Promise<R[]> {
  const answers = new Array<R>(items.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) answers[at] = await work(items[at] as T);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  return answers;
}

interface WholeOptions {
  /** Page size. */
  limit: number;
  metadataOnly?: boolean;
  /** So many requests are never too many. */
  few?: number;
}

/** One list instead of `many` requests; undefined where it would cost more than they. */
export async function listTogether<T>(
  path: string,
  many: number,
  begin: () => Fold<T>,
  { limit, metadataOnly = false, few = FEW }: WholeOptions,
  { api, signal }: Reading,
): Promise<Read<T | undefined>> {
  if (many <= few) return read(undefined);
  const options = { signal, limit, metadataOnly };
  const first = await api.list(path, begin, { ...options, maxItems: limit });
  if (!first.ok) return first;
  if (first.value.complete) return read(first.value.kept);
  // The first page is read again; how many more there are is the server's estimate, where it gives one.
  const pages = 1 + Math.ceil((first.value.remaining ?? Number.POSITIVE_INFINITY) / limit);
  if (pages * PAGE_COST > many) return read(undefined);
  const all = await api.list(path, begin, options);
  return all.ok ? read(all.value.kept) : all;
}

interface Share<T> {
  /** Undefined until there is something for it. */
  fold?: Fold<T>;
  count: number;
  complete: boolean;
}

/**
 * What is kept of the objects of one type in each of these namespaces, by one list of the whole cluster
 * where that is allowed and cheaper. What each namespace gets is the same either way; undefined for none.
 */
export async function listIn<T>(
  type: TypeRef,
  namespaces: readonly string[],
  begin: () => Fold<T>,
  options: Pick<ListOptions, 'metadataOnly' | 'limit' | 'maxItems'> & { maxInAll?: number },
  { api, signal }: Reading,
): Promise<Map<string, Read<{ kept: T | undefined; complete: boolean }>>> {
  const { metadataOnly = false, maxItems = Number.POSITIVE_INFINITY } = options;
  const { maxInAll = Number.POSITIVE_INFINITY } = options;
  const shares = new Map<string, Share<T>>();
  let inAll = 0;
  const start = (name: string): void => {
    inAll -= shares.get(name)?.count ?? 0;
    shares.set(name, { count: 0, complete: true });
  };
  const take = (namespace: string, item: JsonObject): void => {
    const share = shares.get(namespace);
    if (share === undefined) return; // a foreign one
    // No request can reach it; only a broken extension API server lists such a thing.
    if (!isPathSegment(stringAt(item, 'metadata', 'name') ?? '')) return;
    if (share.count >= maxItems || inAll >= maxInAll) {
      share.complete = false;
      return;
    }
    share.count++;
    inAll++;
    share.fold ??= begin();
    share.fold.add(item);
  };
  const keptOf = (name: string, isWhole = true) => {
    const { fold, complete } = shares.get(name) as Share<T>;
    return read({ kept: fold?.kept, complete: complete && isWhole });
  };

  let isTold = true;
  const beginAll = (): Fold<true> => {
    namespaces.forEach(start);
    const add = (item: JsonObject): void => {
      const namespace = stringAt(item, 'metadata', 'namespace');
      // Some extension API servers leave it out: then only a list of its own says whose it is.
      if (namespace === undefined) isTold = false;
      else take(namespace, item);
    };
    return { add, kept: true };
  };
  const whole = metadataOnly ? { limit: PAGE.small, metadataOnly, few: 1 } : { limit: PAGE.full };
  const deps = { api, signal };
  const path = collectionPath(type);
  const together = await listTogether(path, namespaces.length, beginAll, whole, deps);
  if (together.ok && together.value && isTold) {
    return new Map(namespaces.map((name) => [name, keptOf(name)]));
  }
  namespaces.forEach(start);
  const listOne = async (name: string) => {
    const beginOne = (): Fold<true> => {
      start(name);
      const add = (item: JsonObject): void => {
        const { metadata } = item;
        if (isObject(metadata)) metadata['namespace'] ??= name;
        // A broken extension API server may ignore the namespace in the path.
        if (stringAt(item, 'metadata', 'namespace') === name) take(name, item);
      };
      return { add, kept: true };
    };
    const end = await api.list(collectionPath(type, name), beginOne, {
      signal,
      metadataOnly,
      ...(options.limit === undefined ? {} : { limit: options.limit }),
      maxItems: Math.min(maxItems, Math.max(1, maxInAll - inAll)),
    });
    return [name, end.ok ? keptOf(name, end.value.complete) : end] as const;
  };
  // A type that does not answer must not take the turns of all the others.
  const isSlow = !together.ok && together.failure.kind === 'timeout';
  return new Map(await inParallel(namespaces, listOne, isSlow ? 1 : WIDTH));
}

/** How a failed read stands under "not inspected", with the right that was missing. */
export function unreadOf(
  source: string,
  what: string,
  result: Read<unknown>,
  type: Pick<TypeRef, 'group' | 'resource'>,
  verb = 'list',
): NotInspected[] {
  if (result.ok) return [];
  const { failure } = result;
  return [{ source, what, reason: failure.message, ...grantFor(failure, type, verb) }];
}

export function grantFor(
  failure: ReadFailure,
  { group, resource }: Pick<TypeRef, 'group' | 'resource'>,
  verb = 'list',
): Pick<NotInspected, 'grant'> {
  return failure.kind === 'forbidden' ? { grant: { apiGroup: group, resource, verb } } : {};
}

/** What was read, and what of it is missing. */
export interface Gathered<T> {
  value: T;
  unread?: NotInspected[];
  /** What objects say that were read on the way, by UID. */
  details?: Record<string, Read<ObjectDetail>>;
}

/** The whole collection, or why not. */
export async function readSource<T>(
  key: string,
  source: Source<T>,
  { api, signal }: Reading,
): Promise<Gathered<Read<T[]>>> {
  const options = { ...source.options, signal };
  const listed = await api.list(collectionPath(source.type), keeping(source.parse), options);
  return answerOf(key, source, listed);
}

/** What scales and makes pods from a template, of any type that is not read by its name. */
export async function readOtherWorkloads(
  types: readonly ResourceType[],
  deps: Reading,
): Promise<Gathered<Read<WorkloadFacts[]>>> {
  const key = 'otherWorkloads';
  const kinds = types.filter(
    ({ scales, namespaced, group, verbs }) =>
      scales && namespaced && group !== 'apps' && verbs.includes('list'),
  );
  const answers = await inParallel(kinds, (type) => {
    const facts = workloadFacts(apiVersionOf(type), type.kind);
    const parse = (item: JsonObject): WorkloadFacts[] =>
      isObject(at(item, 'spec', 'template', 'spec')) ? [facts(item)] : [];
    const options = { maxItems: MANY };
    return readSource(key, { label: typeName(type), type, parse, options, isOptional: true }, deps);
  });
  return {
    value: read(answers.flatMap(({ value }) => (value.ok ? value.value : []))),
    unread: answers.flatMap(({ unread = [] }) => unread),
  };
}

/** The collections of these namespaces. */
export async function readPlaces<T>(
  key: string,
  source: Source<T>,
  namespaces: readonly string[],
  deps: Reading,
): Promise<Map<string, Gathered<Read<T[]>>>> {
  const { type, parse, options } = source;
  const limits = { maxItems: options.maxItems, maxInAll: Math.min(MANY, 5 * options.maxItems) };
  const ends = await listIn(type, namespaces, keeping(parse), limits, deps);
  return new Map([...ends].map(([name, end]) => [name, answerOf(key, source, end, name)]));
}

function answerOf<T>(
  key: string,
  { label, type, options }: Source<T>,
  end: Read<{ kept: T[] | undefined; complete: boolean }>,
  namespace?: string,
): Gathered<Read<T[]>> {
  const place = namespace === undefined ? 'of the cluster' : `in namespace ${namespace}`;
  if (!end.ok) return { value: end, unread: unreadOf(key, `${label} ${place}`, end, type) };
  const { kept: found = [], complete } = end.value;
  if (complete || options.maxItems === 1) return { value: read(found) };
  const what = `more ${label} ${place}`;
  const reason = `only the first ${found.length} are read`;
  return { value: read(found), unread: [{ source: key, what, reason }] };
}
