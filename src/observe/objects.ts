import { type JsonObject, recordAt, stringAt, valueAt } from '../base/json.ts';
import { collectItems } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import type { ObjectDetail } from '../model/facts/detail.ts';
import { type ObjectFacts, objectFacts, typeName } from '../model/facts/metadata.ts';
import { type Read, readFailed, readOk } from '../model/read.ts';
import { partnerKey, type SampleFound, type Wanted, type WantedSample } from '../model/snapshot.ts';
import {
  type Gathered,
  inParallel,
  listIn,
  notInspectedEntries,
  type Reading,
} from './collections.ts';

/**
 * Reads of single objects, for all namespaces of an examination at once. They use only `list`: the sweep needs
 * that permission anyway, and `get` on everything includes pods/exec and nodes/proxy.
 */

/** Limit for reading the objects of a type in a namespace with their status. */
const MAX_DETAILED = 1_000;
const GONE = readFailed({ kind: 'not-found', message: 'it was deleted meanwhile' });

type WithParser<Item> = Item & Pick<Wanted, 'parseDetail'>;
type Detailed = WithParser<Wanted['details'][number]>;
type Partner = Wanted['partners'][number];

/** By UID; one list for each type. */
export async function readDetails(
  items: readonly Detailed[],
  deps: Reading,
): Promise<Map<string, Gathered<Read<ObjectDetail>>>> {
  const answers = new Map<string, Gathered<Read<ObjectDetail>>>();
  const wanted = new Set(items.map(({ object }) => object.uid));
  const groups = Map.groupBy(items, ({ type }) => typeName(type));
  await inParallel([...groups.values()], async (group) => {
    const [{ type, parseDetail }] = group as [Detailed];
    const add = (item: JsonObject): void => {
      const uid = stringAt(item, 'metadata', 'uid') ?? '';
      if (wanted.has(uid)) answers.set(uid, { value: readOk(parseDetail(item)) });
    };
    // An object that is in two lists is kept once.
    const begin = () => ({ add, kept: true });
    const places = Map.groupBy(group, ({ object }) => object.namespace);
    const ends = await listIn(type, [...places.keys()], begin, { maxItems: MAX_DETAILED }, deps);
    for (const [namespace, end] of ends) {
      const cut = { kind: 'aborted', message: `only the first ${MAX_DETAILED} are read` } as const;
      const missing = !end.ok ? end : end.value.complete ? GONE : readFailed(cut);
      const what = `status of ${type.resource}`;
      const unread = missing === GONE ? [] : notInspectedEntries(what, missing, type);
      for (const { object } of places.get(namespace) ?? [])
        if (!answers.has(object.uid)) answers.set(object.uid, { value: missing, unread });
    }
  });
  return answers;
}

/** Reads an object outside of the namespace; `undefined` if it does not exist. */
export async function readPartner(
  { type, namespace, name, parseDetail }: WithParser<Partner>,
  { api, signal }: Reading,
): Promise<Gathered<Read<ObjectFacts | undefined>>> {
  const begin = collectItems((item) => ({
    facts: objectFacts(item, type),
    detail: parseDetail(item),
  }));
  const end = await api.list(collectionPath(type, namespace), begin, {
    ...{ signal, fieldSelector: `metadata.name=${name}`, maxItems: 1 },
    // The contents of Secrets and ConfigMaps are never requested.
    metadataOnly: type.group === '' && type.namespaced,
  });
  const found = end.ok ? end.value.kept.find(({ facts }) => facts.name === name) : undefined;
  if (found !== undefined)
    return { value: readOk(found.facts), details: { [found.facts.uid]: readOk(found.detail) } };
  if (end.ok && end.value.complete) return { value: readOk(undefined) };
  const value = end.ok ? UNSELECTED : end;
  return { value, unread: notInspectedEntries(`${type.kind} ${name}`, value, type) };
}

const UNSELECTED = readFailed({
  ...{ kind: 'unreadable', message: 'the server does not select objects by name' },
});

export function partnerId({ type, namespace, name }: Partner): string {
  return partnerKey({ ...type, namespace, name });
}

const MAX_SEARCHED = 5_000;

export type SampleIn = WantedSample & { namespace: string };

/** Searches types for objects that `isMeant` accepts: one list for each type and namespace. */
export async function readSamples(
  items: readonly SampleIn[],
  { api, signal }: Reading,
): Promise<Map<string, Gathered<SampleFound>>> {
  const found = new Map<string, Gathered<SampleFound>>();
  const lists = Map.groupBy(items, (one) => `${typeName(one.type)} ${one.namespace}`);
  await inParallel([...lists.values()], async (some) => {
    const [{ type, namespace }] = some as [SampleIn];
    const add = (object: JsonObject): void => {
      if (valueAt(object, 'metadata', 'deletionTimestamp') !== undefined) return;
      const allAnnotations = recordAt(object, 'metadata', 'annotations');
      const sample = { ...objectFacts(object, type), allAnnotations };
      for (const one of some)
        if (!found.has(sampleId(one)) && one.isMeant(sample))
          found.set(sampleId(one), { value: { sample } });
    };
    const path = collectionPath(type, namespace);
    const limits = { signal, metadataOnly: true, maxItems: MAX_SEARCHED };
    const end = await api.list(path, () => ({ add, kept: true }), limits);
    const reason = end.ok ? `only the first ${MAX_SEARCHED} are searched` : end.failure.message;
    const what = `whether an owner of a finalizer needs any of the ${typeName(type)}`;
    const unread = end.ok && end.value.complete ? [] : [{ what, reason }];
    for (const one of some)
      if (!found.has(sampleId(one))) found.set(sampleId(one), { value: {}, unread });
  });
  return found;
}

export function sampleId({ namespace, key }: SampleIn): string {
  return `${namespace} ${key}`;
}
