import { describeError } from '../base/errors.ts';
import { dictionary, type JsonObject } from '../base/json.ts';
import { type Clock, serverTimestamp } from '../base/time.ts';
import { isPathSegment, objectPath } from '../kubernetes/paths.ts';
import { definitionDetail, nodeFacts } from '../model/facts/cluster.ts';
import { typeName } from '../model/facts/metadata.ts';
import type { NotInspected } from '../model/finding.ts';
import { itemsIn, type Read, readFailed, readOk, valueIn } from '../model/read.ts';
import {
  type Baseline,
  type Discovery,
  logKey,
  type NamespaceFacts,
  type NodeFacts,
  type ResourceType,
  type Snapshot,
  type Trial,
  type TypeRef,
  trialKey,
  type Wanted,
} from '../model/snapshot.ts';
import { CLUSTER_SOURCES, NAMESPACE_SOURCES, type Source } from '../model/sources.ts';
import {
  type Gathered,
  inParallel,
  notInspectedEntries,
  oneAfterAnother,
  type Reading,
  readInNamespaces,
  readSource,
} from './collections.ts';
import { readLog } from './logs.ts';
import {
  partnerId,
  readDetails,
  readPartner,
  readSamples,
  type SampleIn,
  sampleId,
} from './objects.ts';
import { NO_PODS, readNamespaceContents } from './sweep.ts';
import { tryDeletion, tryRemoval } from './trials.ts';

export interface ObserveDeps extends Reading {
  clock: Clock;
}

/** Each link of a chain that leaves the namespace needs a round. */
const MAX_ROUNDS = 30;
/** Limits for all namespaces that are examined together. */
const MAX_NODES = 100;
const MAX_TRIALS = 200;
const MAX_LOGS = 40;

/**
 * Reads the cluster into one snapshot for each namespace. It never throws and never judges. `want` returns the sources
 * that a snapshot needs, and is called after each round. Sources that several namespaces need are read once.
 */
export async function observe(
  namespaces: readonly NamespaceFacts[],
  want: (snapshot: Snapshot) => Wanted,
  deps: ObserveDeps,
  /** What `want` most likely returns. Of this, what could not be read is told only if `want` returns it. */
  wantAnyway?: (snapshot: Snapshot) => Wanted,
): Promise<Snapshot[]> {
  const { api, signal } = deps;
  const takenAt = serverTimestamp(deps);
  const discovery = await api.discover({ signal });
  const types = valueIn(discovery)?.types ?? [];
  const snapshots = namespaces.map(
    (namespace): Snapshot => ({
      takenAt,
      namespace,
      discovery,
      ...{ content: [], pods: NO_PODS, cluster: {}, places: dictionary(), nodes: dictionary() },
      ...{ definitions: dictionary(), details: dictionary(), partners: dictionary() },
      ...{ trials: dictionary(), unread: unreadDiscovery(discovery) },
    }),
  );
  const fillers = partsOf(snapshots, types, deps);
  const fillAll: Fill = async (wishes, isTold) => {
    const filled = await Promise.allSettled(fillers.map((fill) => fill(wishes, isTold)));
    const failed = filled.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return filled.some((one) => one.status === 'fulfilled' && one.value);
  };
  const early = new Map(wantAnyway && snapshots.map((one) => [one, wantAnyway(one)]));
  await Promise.all([
    readNamespaceContents(snapshots, types, deps),
    // A round that needs what failed will say so.
    fillAll(early, false).catch(() => false),
  ]);
  // No round follows.
  if (signal.aborted) await fillAll(early, true).catch(() => false);
  let isNew = true;
  for (let round = 0; isNew && round < MAX_ROUNDS && !signal.aborted; round++) {
    try {
      const wanted = await oneAfterAnother(snapshots, (one) => [one, want(one)] as const, deps);
      isNew = await fillAll(new Map(wanted.filter((one) => one !== undefined)), true);
    } catch (error) {
      // A mistake of this program must not hide what was read before.
      const reason = `${MISTAKE} (${describeError(error)}): please report this mistake`;
      for (const { unread } of snapshots)
        unread.push({ what: 'what the diagnosis asks for', reason });
      return snapshots;
    }
  }
  const what = 'what is at the end of a chain of references';
  const reason = 'it was not followed further in this examination';
  for (const { unread } of isNew ? snapshots : []) unread.push({ what, reason });
  return snapshots;
}

/** How the reason begins if this program made a mistake while it read. */
export const MISTAKE = 'this gate failed to read it';

/** A kind of source that snapshots need beyond their content. */
interface Part<Item, Value> {
  wants: (wanted: Wanted, snapshot: Snapshot) => readonly Item[];
  /** Items with the same identity are read once. */
  idOf: (item: Item) => string;
  /** The part of a snapshot that holds the value, under the key of `keyOf`, by default the id. */
  placeOf: (snapshot: Snapshot, item: Item) => Record<string, Value | undefined>;
  keyOf?: (item: Item) => string;
  readOne?: (item: Item) => Promise<Gathered<Value>>;
  /** Returns the values by id. */
  readAll?: (items: readonly Item[]) => Promise<ReadonlyMap<string, Gathered<Value>>>;
  /** Limit for all namespaces together; items beyond it get the value `beyond`. */
  limit?: { most: number; what: string; beyond: (message: string) => Value };
}

/**
 * Reads what the snapshots need and do not have yet, each once, and adds it. Reports whether anything was added. `isTold`:
 * what could not be read is told.
 */
type Fill = (wishes: ReadonlyMap<Snapshot, Wanted>, isTold: boolean) => Promise<boolean>;

function fillerOf<Item, Value>(part: Part<Item, Value>): Fill {
  const { wants, idOf, placeOf, keyOf = idOf, readOne, readAll, limit } = part;
  const known = new Map<string, Gathered<Value>>();
  const reason = `only ${limit?.most} are read in one run`;
  const unread = [{ what: `more ${limit?.what}`, reason }];
  const beyond: Gathered<Value> | undefined = limit && { value: limit.beyond(reason), unread };
  return async (wishes, isTold) => {
    const wished = [...wishes].flatMap(([snapshot, wanted]) =>
      wants(wanted, snapshot).map((item) => {
        return { snapshot, item, id: idOf(item), place: placeOf(snapshot, item), key: keyOf(item) };
      }),
    );
    const asked = wished.filter(({ place, key }) => place[key] === undefined);
    const fresh = new Map(asked.flatMap(({ id, item }) => (known.has(id) ? [] : [[id, item]])));
    const room = limit === undefined ? fresh.size : Math.max(0, limit.most - known.size);
    const now = [...fresh.values()].slice(0, room);
    for (const [id, answer] of (await readAll?.(now)) ?? []) known.set(id, answer);
    if (readOne !== undefined)
      await inParallel(now, async (item) => known.set(idOf(item), await readOne(item)));
    let isFilled = false;
    for (const { snapshot, id, place, key } of wished) {
      const answer = known.get(id) ?? beyond;
      if (answer === undefined) continue;
      if (place[key] === undefined) {
        isFilled = true;
        place[key] = answer.value;
        Object.assign(snapshot.details, answer.details);
      }
      if (!isTold || place[key] !== answer.value) continue;
      // One entry may be about many items, such as all of a type.
      const isNew = (entry: NotInspected): boolean => !snapshot.unread.includes(entry);
      snapshot.unread.push(...(answer.unread ?? []).filter(isNew));
    }
    return isFilled;
  };
}

function partsOf(
  snapshots: readonly Snapshot[],
  types: readonly ResourceType[],
  deps: ObserveDeps,
): Fill[] {
  type Place = { namespace: string; key: keyof typeof NAMESPACE_SOURCES };
  const unknown = (message: string): Trial => ({ answer: 'unknown', message });
  const failed = (message: string) => readFailed({ kind: 'aborted', message });
  const anywhere = <T>(place: object): Record<string, T | undefined> =>
    place as Record<string, T | undefined>;
  return [
    fillerOf({
      wants: ({ cluster }) => cluster,
      idOf: String,
      placeOf: ({ cluster }) => anywhere<Read<unknown[]>>(cluster),
      readOne: async (key: Wanted['cluster'][number]) =>
        withSourceName(key, await readCluster(key, types, deps)),
    }),
    fillerOf<Place, Read<unknown[]>>({
      wants: ({ places }) =>
        places
          .filter(({ namespace }) => isPathSegment(namespace))
          .flatMap(({ namespace, sources }) => sources.map((key) => ({ namespace, key }))),
      idOf: ({ namespace, key }) => `${key} ${namespace}`,
      placeOf: ({ places }, { namespace }) => {
        places[namespace] ??= {};
        return anywhere(places[namespace]);
      },
      keyOf: ({ key }) => key,
      readAll: async (items) => {
        const groups = Map.groupBy(items, ({ key }) => key);
        const read = await inParallel([...groups], async ([key, some]) => {
          const source: Source<unknown> = NAMESPACE_SOURCES[key];
          const names = some.map(({ namespace }) => namespace);
          return [...(await readInNamespaces(source, names, deps))].map(
            ([name, answer]) => [`${key} ${name}`, withSourceName(key, answer)] as const,
          );
        });
        return new Map(read.flat());
      },
    }),
    fillerOf({
      wants: ({ nodes }) => nodes,
      idOf: String,
      placeOf: ({ nodes }) => nodes,
      readOne: (name: string) => readNode(name, deps),
      limit: { most: MAX_NODES, what: 'nodes of overdue pods', beyond: failed },
    }),
    fillerOf({
      wants: ({ definitions }) => definitions,
      idOf: String,
      placeOf: ({ definitions }) => definitions,
      readOne: (name: string) => readNamed(CRD, name, 'CRD', definitionDetail, deps),
    }),
    fillerOf({
      wants: ({ details, parseDetail }) => details.map((one) => ({ ...one, parseDetail })),
      idOf: ({ object }) => object.uid,
      placeOf: ({ details }) => details,
      readAll: (items) => readDetails(items, deps),
    }),
    fillerOf({
      wants: ({ partners, parseDetail }) => partners.map((one) => ({ ...one, parseDetail })),
      idOf: partnerId,
      placeOf: ({ partners }) => partners,
      readOne: (item) => readPartner(item, deps),
    }),
    fillerOf({
      wants: ({ trials }) => trials,
      idOf: ({ object, finalizer }) => trialKey(object.uid, finalizer),
      placeOf: ({ trials }) => trials,
      readOne: async (item) => ({ value: await tryRemoval(item, deps) }),
      limit: { most: MAX_TRIALS, what: 'removals to try', beyond: unknown },
    }),
    fillerOf({
      wants: ({ deletions }, { forecast }) => (forecast === undefined ? [] : deletions),
      idOf: ({ type, object }) => `${typeName(type)} ${object.uid}`,
      placeOf: ({ forecast }) => forecast?.deletions ?? {},
      keyOf: ({ type, key = typeName(type) }) => key,
      readOne: async (item) => ({ value: await tryDeletion(item, deps) }),
      limit: { most: MAX_TRIALS, what: 'deletions to try', beyond: unknown },
    }),
    fillerOf({
      wants: ({ samples = [] }, { forecast, namespace: { name: namespace } }): SampleIn[] =>
        forecast === undefined ? [] : samples.map((one) => ({ ...one, namespace })),
      idOf: sampleId,
      placeOf: ({ forecast }) => {
        if (forecast === undefined) return {};
        forecast.samples ??= {};
        return forecast.samples;
      },
      keyOf: ({ key }) => key,
      readAll: (items) => readSamples(items, deps),
    }),
    fillerOf({
      wants: ({ logs }, snapshot) => (snapshot.logs === undefined ? [] : logs),
      idOf: logKey,
      placeOf: ({ logs = {} }) => logs,
      readOne: (source) => readLog(source, snapshots, deps),
      limit: { most: MAX_LOGS, what: 'logs of controllers', beyond: failed },
    }),
  ];
}

function withSourceName<T>(source: string, { value, unread = [] }: Gathered<T>): Gathered<T> {
  return { value, unread: unread.map((one) => ({ ...one, source })) };
}

async function readCluster(
  key: Wanted['cluster'][number],
  types: readonly ResourceType[],
  deps: Reading,
): Promise<Gathered<Read<unknown[]>>> {
  const source: Source<unknown> = CLUSTER_SOURCES[key];
  if (!source.isOptional) return readSource(source, deps);
  const { group, resource } = source.type;
  const type = types.find((one) => one.group === group && one.resource === resource);
  return type === undefined ? { value: readOk([]) } : readSource({ ...source, type }, deps);
}

const CRD = CLUSTER_SOURCES.definitions.type;

export function readNode(
  name: string,
  deps: Reading,
): Promise<Gathered<Read<NodeFacts | undefined>>> {
  return readNamed(CLUSTER_SOURCES.providerNodes.type, name, 'node', nodeFacts, deps);
}

/** Only with `get`: a role often grants no more. `undefined`: the API server says that the object does not exist. */
async function readNamed<T>(
  type: TypeRef,
  name: string,
  what: string,
  facts: (object: JsonObject) => T,
  { api, signal }: Reading,
): Promise<Gathered<Read<T | undefined>>> {
  if (!isPathSegment(name))
    return { value: readFailed({ kind: 'invalid', message: 'no object can have this name' }) };
  const got = await api.get(objectPath(type, undefined, name), { signal });
  if (got.ok) return { value: readOk(facts(got.value)) };
  if (got.failure.kind === 'not-found') return { value: readOk(undefined) };
  return { value: got, unread: notInspectedEntries(`${what} ${name}`, got, type, 'get') };
}

function unreadDiscovery(discovery: Read<Discovery>): NotInspected[] {
  if (!discovery.ok)
    return [{ what: 'all resource types (API discovery)', reason: discovery.failure.message }];
  return discovery.value.failedGroups.map(({ group, version, reason }) => {
    return { what: `API group ${group}/${version}`, reason };
  });
}

/** A run works without the baseline as well. */
const BASELINE_LIMIT_MS = 10_000;

/** Reads what is needed later to find the owner of a finalizer if an operator is deleted together with its objects. */
export async function readBaselines(
  namespaces: readonly string[],
  { api, signal }: Reading,
): Promise<Map<string, Baseline>> {
  const deps = { api, signal: AbortSignal.any([signal, AbortSignal.timeout(BASELINE_LIMIT_MS)]) };
  const from = async <T>(source: Source<T>): Promise<(namespace: string) => Read<T[]>> => {
    const answers = await readInNamespaces(source, namespaces, deps);
    return (namespace) => (answers.get(namespace) as Gathered<Read<T[]>>).value;
  };
  const { deployments, statefulSets, daemonSets, jobs, cronJobs } = CLUSTER_SOURCES;
  const [workloads, roles, roleBindings, events] = await Promise.all([
    Promise.all([deployments, statefulSets, daemonSets, jobs, cronJobs].map(from)),
    from(NAMESPACE_SOURCES.roles),
    from(NAMESPACE_SOURCES.roleBindings),
    from(NAMESPACE_SOURCES.events),
  ]);
  const baselineOf = (name: string): Baseline => {
    const lists = workloads.map((list) => list(name));
    const said = events(name);
    return {
      workloads: lists.find((list) => !list.ok) ?? readOk(lists.flatMap(itemsIn)),
      ...{ roles: roles(name), roleBindings: roleBindings(name) },
      events: said.ok ? readOk(said.value.filter(({ type }) => type === 'Warning')) : said,
    };
  };
  return new Map(namespaces.map((name) => [name, baselineOf(name)]));
}
