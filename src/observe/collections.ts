import { at, isObject, type JsonObject, stringAt } from '../base/json.ts';
import type { KubernetesApi, ListOptions } from '../kubernetes/api.ts';
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

/** A collection in one piece: what `parse` makes of each item, which may be nothing or several things. */
export async function readList<T>(
  api: KubernetesApi,
  path: string,
  parse: (item: JsonObject) => T | readonly T[],
  options: Omit<ListOptions, 'onItem' | 'onRestart'>,
): Promise<Read<{ items: T[]; complete: boolean }>> {
  const items: T[] = [];
  const end = await api.list(path, {
    ...options,
    onItem: (item) => items.push(...([parse(item)].flat() as T[])),
    onRestart: () => {
      items.length = 0;
    },
  });
  return end.ok ? read({ items, complete: end.value.complete }) : end;
}

type Whole = Pick<ListOptions, 'metadataOnly' | 'onItem'> & { page: number; onRestart: () => void };

/** One list instead of `many` requests; unless it says `true`, nothing that was handed over counts. */
export async function listTogether(
  path: string,
  many: number,
  { page, ...rest }: Whole,
  { api, signal }: Reading,
): Promise<Read<boolean>> {
  const options = { ...rest, signal, limit: page };
  const first = await api.list(path, { ...options, maxItems: page });
  if (first.ok && first.value.complete) return read(true);
  rest.onRestart();
  if (!first.ok) return first;
  // The first page is read again; how many more there are is the server's estimate, where it gives one.
  const pages = 1 + Math.ceil((first.value.remaining ?? Number.POSITIVE_INFINITY) / page);
  if (pages * PAGE_COST > many) return read(false);
  const all = await api.list(path, options);
  if (all.ok) return read(true);
  rest.onRestart();
  return all;
}

interface Listing {
  metadataOnly?: boolean;
  /** Page size in a list of one namespace. */
  limit?: number;
  /** Of each namespace at most, and of all of them. */
  maxItems?: number | undefined;
  maxInAll?: number;
  onItem: (namespace: string, item: JsonObject) => void;
  /** Forget what was handed over of this namespace. */
  onRestart: (namespace: string) => void;
}

/**
 * The objects of one type in these namespaces, by one list of the whole cluster where that is allowed and
 * cheaper. What each namespace gets is the same either way.
 */
export async function listIn(
  type: TypeRef,
  namespaces: readonly string[],
  listing: Listing,
  { api, signal }: Reading,
): Promise<Map<string, Read<{ complete: boolean }>>> {
  const { metadataOnly = false, maxItems = Number.POSITIVE_INFINITY } = listing;
  const { maxInAll = Number.POSITIVE_INFINITY } = listing;
  const handedOver = new Map(namespaces.map((name) => [name, 0]));
  const cut = new Set<string>();
  let inAll = 0;
  const take = (namespace: string, item: JsonObject): void => {
    const count = handedOver.get(namespace);
    if (count === undefined) return; // a foreign one
    // No request can reach it; only a broken extension API server lists such a thing.
    if (!isPathSegment(stringAt(item, 'metadata', 'name') ?? '')) return;
    if (count >= maxItems || inAll >= maxInAll) {
      cut.add(namespace);
      return;
    }
    handedOver.set(namespace, count + 1);
    inAll++;
    listing.onItem(namespace, item);
  };
  const forget = (namespace: string): void => {
    inAll -= handedOver.get(namespace) ?? 0;
    handedOver.set(namespace, 0);
    cut.delete(namespace);
    listing.onRestart(namespace);
  };
  const forgetAll = (): void => namespaces.forEach(forget);

  let isTold = true;
  const isMany = namespaces.length > (metadataOnly ? 1 : FEW);
  const whole: Whole = {
    metadataOnly,
    page: metadataOnly ? PAGE.small : PAGE.full,
    onItem: (item) => {
      const namespace = stringAt(item, 'metadata', 'namespace');
      // Some extension API servers leave it out: then only a list of its own says whose it is.
      if (namespace === undefined) isTold = false;
      else take(namespace, item);
    },
    onRestart: forgetAll,
  };
  const together = isMany
    ? await listTogether(collectionPath(type), namespaces.length, whole, { api, signal })
    : read(false);
  const ended = (name: string): Read<{ complete: boolean }> => read({ complete: !cut.has(name) });
  if (together.ok && together.value && isTold)
    return new Map(namespaces.map((name) => [name, ended(name)]));
  forgetAll();
  // A type that does not answer must not take the turns of all the others.
  const isSlow = !together.ok && together.failure.kind === 'timeout';
  const ends = new Map<string, Read<{ complete: boolean }>>();
  const listOne = async (name: string): Promise<void> => {
    const end = await api.list(collectionPath(type, name), {
      signal,
      metadataOnly,
      ...(listing.limit === undefined ? {} : { limit: listing.limit }),
      maxItems: Math.min(maxItems, Math.max(1, maxInAll - inAll)),
      // A broken extension API server may ignore the namespace in the path.
      onItem: (item) => {
        const { metadata } = item;
        if (isObject(metadata)) metadata['namespace'] ??= name;
        if (stringAt(item, 'metadata', 'namespace') === name) take(name, item);
      },
      onRestart: () => forget(name),
    });
    if (end.ok && !end.value.complete) cut.add(name);
    ends.set(name, end.ok ? ended(name) : end);
  };
  await inParallel(namespaces, listOne, isSlow ? 1 : WIDTH);
  return ends;
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
  const path = collectionPath(source.type);
  const listed = await readList(api, path, source.parse, { ...source.options, signal });
  return answerOf(key, source, listed, listed.ok ? listed.value.items : []);
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
  const found = new Map<string, T[]>(namespaces.map((name) => [name, []]));
  const { type, parse, options } = source;
  const listing = {
    maxItems: options.maxItems,
    maxInAll: Math.min(MANY, 5 * options.maxItems),
    onItem: (namespace: string, item: JsonObject) =>
      found.get(namespace)?.push(...([parse(item)].flat() as T[])),
    onRestart: (namespace: string) => found.set(namespace, []),
  };
  const ends = await listIn(type, namespaces, listing, deps);
  return new Map(
    [...ends].map(([name, end]) => [name, answerOf(key, source, end, found.get(name) ?? [], name)]),
  );
}

function answerOf<T>(
  key: string,
  { label, type, options }: Source<T>,
  end: Read<{ complete: boolean }>,
  found: T[],
  namespace?: string,
): Gathered<Read<T[]>> {
  const place = namespace === undefined ? 'of the cluster' : `in namespace ${namespace}`;
  if (!end.ok) return { value: end, unread: unreadOf(key, `${label} ${place}`, end, type) };
  if (end.value.complete || options.maxItems === 1) return { value: read(found) };
  const what = `more ${label} ${place}`;
  const reason = `only the first ${found.length} are read`;
  return { value: read(found), unread: [{ source: key, what, reason }] };
}
