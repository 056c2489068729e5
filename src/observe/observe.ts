import { describeError } from '../base/errors.ts';
import { dictionary, type JsonObject } from '../base/json.ts';
import { type Clock, serverTimestamp } from '../base/time.ts';
import { isPathSegment, objectPath } from '../kubernetes/paths.ts';
import { definitionDetail } from '../model/facts/apis.ts';
import { type NodeFacts, nodeFacts } from '../model/facts/cluster.ts';
import {
  type NamespaceFacts,
  type ResourceType,
  type TypeRef,
  typeName,
} from '../model/facts/metadata.ts';
import type { NotInspected } from '../model/finding.ts';
import { type Read, type ReadFailure, readFailed, readOk } from '../model/read.ts';
import {
  type Baseline,
  type Discovery,
  type LogSource,
  logKey,
  type NamespaceContent,
  partnerKey,
  type Snapshot,
  type Trial,
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
  readOtherWorkloads,
  readSource,
} from './collections.ts';
import { keepMentions, MAX_LOGS, readLog } from './logs.ts';
import {
  readDependents,
  readDetails,
  readPartners,
  readSamples,
  readTrials,
  tryDeletion,
} from './objects.ts';
import { NO_PODS, readNamespaceContents } from './sweep.ts';

export interface ObserveDeps extends Reading {
  clock: Clock;
}

/** Limit for rounds of reading. Each link of a chain that leaves the namespace needs a round. */
const MAX_ROUNDS = 30;
/** Limit for nodes, of all namespaces that are examined together. */
const MAX_NODES = 100;
const MAX_TRIALS = 200;

/**
 * Reads the cluster into one snapshot for each namespace. It never throws and never judges: a failed read is
 * kept in the snapshot. `want` returns the sources that a snapshot lacks and is called after each round. Sources
 * that several namespaces need are read once.
 */
export async function observe(
  namespaces: readonly NamespaceFacts[],
  want: (snapshot: Snapshot) => Wanted,
  deps: ObserveDeps,
): Promise<Snapshot[]> {
  const { api, signal } = deps;
  const takenAt = serverTimestamp(deps);
  const discovery = await api.discover({ signal });
  const types = discovery.ok ? discovery.value.types : [];
  const snapshots = namespaces.map(
    (namespace): Snapshot => ({
      takenAt,
      namespace,
      discovery,
      content: [],
      pods: NO_PODS,
      cluster: {},
      places: dictionary(),
      nodes: dictionary(),
      definitions: dictionary(),
      details: dictionary(),
      partners: dictionary(),
      trials: dictionary(),
      unread: unreadDiscovery(discovery),
    }),
  );
  await readNamespaceContents(snapshots, types, deps);
  // A log that several namespaces need is read once, from the start of the first of these deletions.
  const [since] = namespaces.flatMap(({ deletionTimestamp }) => deletionTimestamp ?? []).sort();
  const fillers = sourceFillers(types, since, deps);
  let isNew = true;
  for (let round = 0; isNew && round < MAX_ROUNDS && !signal.aborted; round++) {
    try {
      const wanted = await oneAfterAnother(snapshots, (one) => [one, want(one)] as const, deps);
      const wishes = new Map(wanted.filter((one) => one !== undefined));
      const filled = await Promise.allSettled(fillers.map((fill) => fill(wishes)));
      const failed = filled.find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
      isNew = filled.some((one) => one.status === 'fulfilled' && one.value);
    } catch (error) {
      // A mistake of this program must not hide what was read before.
      const reason = `${MISTAKE} (${describeError(error)}): please report this mistake`;
      for (const { unread } of snapshots)
        unread.push({ what: 'what the diagnosis asks for', reason });
      return snapshots;
    }
  }
  if (isNew) for (const snapshot of snapshots) noteUnfollowed(snapshot, want(snapshot));
  return snapshots;
}

/** How the reason begins if this program made a mistake while it read. */
export const MISTAKE = 'this gate failed to read it';

/** Reports a chain that has more links than the examination can follow as not inspected. */
function noteUnfollowed({ partners, unread }: Snapshot, wanted: Wanted): void {
  for (const { type, namespace, name } of wanted.partners) {
    if (partners[partnerKey({ ...type, namespace, name })] !== undefined) continue;
    const reason = 'the chain that leads to it was not followed further in this examination';
    unread.push({ what: `${type.kind} ${name}`, reason });
  }
}

/** A kind of source that snapshots need beyond their content. */
interface FillerOptions<Item, Value> {
  wants: (wanted: Wanted, snapshot: Snapshot) => Item[];
  /** Returns the identity of an item, by default its text. Items with the same identity are read once. */
  idOf?: (item: Item) => string;
  /** Returns the part of a snapshot that holds the value, under its id or the key of `keyOf`. */
  placeOf: (snapshot: Snapshot, item: Item) => object;
  keyOf?: (item: Item) => string;
  read: ReadItems<Item, Value>;
  /** Limit for all namespaces together; items beyond it get the value `beyond`. */
  limit?: { most: number; what: string; beyond: (failure: ReadFailure) => Value };
  /** Returns the part of a value that a snapshot keeps; by default all of it. */
  share?: (value: Value, snapshot: Snapshot) => Value;
}

/** Returns values by the identity of their item. Items that can be read by one request are. */
type ReadItems<Item, Value> = (
  items: Item[],
  idOf: (item: Item) => string,
) => Promise<Map<string, Gathered<Value>>>;

/** Reads each item by requests of its own. */
function oneByOne<Item, Value>(
  read: (item: Item) => Promise<Gathered<Value>>,
): ReadItems<Item, Value> {
  return async (items, idOf) =>
    new Map(await inParallel(items, async (item) => [idOf(item), await read(item)] as const));
}

/** Reports whether anything was put into a snapshot. */
type Fill = (wishes: ReadonlyMap<Snapshot, Wanted>) => Promise<boolean>;

/** Reads the sources that the snapshots need and do not have yet, each once, and adds them. */
function sourceFiller<Item, Value>(given: FillerOptions<Item, Value>): Fill {
  const { wants, idOf = String, placeOf, read, limit, share = (value) => value } = given;
  const { keyOf = idOf } = given;
  const known = new Map<string, Gathered<Value>>();
  const holderOf = (snapshot: Snapshot, item: Item): Record<string, unknown> =>
    placeOf(snapshot, item) as Record<string, unknown>;
  return async (wishes) => {
    const asked = [...wishes].map(([snapshot, wanted]) => {
      const lacking = wants(wanted, snapshot).filter(
        (item) => holderOf(snapshot, item)[keyOf(item)] === undefined,
      );
      return [snapshot, new Map(lacking.map((item) => [idOf(item), item]))] as const;
    });
    const fresh = new Map(asked.flatMap(([, items]) => [...items]));
    for (const id of known.keys()) fresh.delete(id);
    const room = (limit?.most ?? Number.POSITIVE_INFINITY) - known.size;
    const answers = await read([...fresh.values()].slice(0, Math.max(0, room)), idOf);
    for (const [id, answer] of answers) known.set(id, answer);
    const reason = `only ${limit?.most} are read in one run`;
    const beyond = limit?.beyond({ kind: 'aborted', message: reason });
    let isFilled = false;
    for (const [snapshot, items] of asked) {
      let left = 0;
      for (const [id, item] of items) {
        const answer = known.get(id) ?? (beyond && { value: beyond });
        if (answer === undefined) continue;
        isFilled = true;
        holderOf(snapshot, item)[keyOf(item)] = share(answer.value, snapshot);
        snapshot.unread.push(...(answer.unread ?? []));
        Object.assign(snapshot.details, answer.details);
        if (!known.has(id)) left++;
      }
      if (left > 0) snapshot.unread.push({ what: `${left} more ${limit?.what}`, reason });
    }
    return isFilled;
  };
}

type Part = 'nodes' | 'definitions' | 'details' | 'partners' | 'behind' | 'trials';

/** Returns a filler for a part that has the same name in `Wanted` and in `Snapshot`. */
function partFiller<P extends Part>(
  part: P,
  options: Omit<
    FillerOptions<Wanted[P][number], NonNullable<Snapshot[P]>[string]>,
    'wants' | 'placeOf'
  >,
): Fill {
  return sourceFiller({
    wants: (wanted): Wanted[P][number][] => wanted[part],
    placeOf: (snapshot) => {
      const place = snapshot[part] ?? (dictionary() as NonNullable<Snapshot[P]>);
      snapshot[part] = place;
      return place;
    },
    ...options,
  });
}

function sourceFillers(
  types: readonly ResourceType[],
  since: string | undefined,
  deps: ObserveDeps,
): Fill[] {
  return [
    sourceFiller({
      wants: ({ cluster }) => cluster,
      placeOf: ({ cluster }) => cluster,
      read: oneByOne(async (key: Wanted['cluster'][number]) =>
        withSourceName(key, await readCluster(key, types, deps)),
      ),
    }),
    sourceFiller({
      wants: ({ places }) =>
        places
          .filter(({ namespace }) => isPathSegment(namespace))
          .flatMap(({ namespace, sources }) => sources.map((key) => ({ namespace, key }))),
      idOf: ({ namespace, key }) => `${key} ${namespace}`,
      placeOf: ({ places }, { namespace }) => {
        places[namespace] ??= {};
        return places[namespace];
      },
      keyOf: ({ key }) => key,
      read: async (items) => {
        const byKey = await Promise.all(
          [...Map.groupBy(items, ({ key }) => key)].map(async ([key, ofKey]) => {
            const source: Source<unknown> = NAMESPACE_SOURCES[key];
            const names = ofKey.map(({ namespace }) => namespace);
            return [...(await readInNamespaces(source, names, deps))].map(
              ([name, answer]) => [`${key} ${name}`, withSourceName(key, answer)] as const,
            );
          }),
        );
        return new Map(byKey.flat());
      },
    }),
    partFiller('nodes', {
      read: oneByOne((name) => readNode(name, deps)),
      limit: { most: MAX_NODES, what: 'nodes of overdue pods', beyond: readFailed },
    }),
    partFiller('definitions', {
      read: oneByOne((name) => readNamed(CRD, name, 'CRD', definitionDetail, deps)),
    }),
    sourceFiller({
      wants: ({ dependents }, { namespace }) => (dependents ? [namespace.uid] : []),
      placeOf: (snapshot) => snapshot,
      keyOf: () => 'dependents',
      read: (uids) => readDependents(uids, types, deps),
    }),
    partFiller('details', {
      idOf: ({ object }) => object.uid,
      read: (items) => readDetails(items, deps),
    }),
    partFiller('partners', {
      idOf: (one) => partnerKey({ ...one.type, ...one }),
      read: (items) => readPartners(items, deps),
    }),
    partFiller('behind', {
      idOf: ({ name }) => name,
      read: async (namespaces) => {
        const contents = namespaces.map(
          (namespace): NamespaceContent => ({ namespace, content: [], pods: NO_PODS, unread: [] }),
        );
        if (contents.length > 0) await readNamespaceContents(contents, types, deps);
        return new Map(
          contents.map((value) => {
            const { name } = value.namespace;
            const unread = value.unread.map((one) => ({
              ...one,
              what: `${one.what} of namespace ${name}`,
            }));
            return [name, { value, unread }];
          }),
        );
      },
    }),
    partFiller('trials', {
      idOf: ({ object, finalizer }) => trialKey(object.uid, finalizer),
      read: (items) => readTrials(items, deps),
      limit: { most: MAX_TRIALS, what: 'removals to try', beyond: unknownTrial },
    }),
    sourceFiller<LogSource, Read<string[]>>({
      wants: ({ logs }, snapshot) => (snapshot.logs === undefined ? [] : logs),
      idOf: logKey,
      placeOf: (snapshot) => snapshot.logs ?? {},
      share: keepMentions,
      read: oneByOne((source) => readLog(source, since, deps)),
      limit: { most: MAX_LOGS, what: 'logs of controllers', beyond: readFailed },
    }),
    sourceFiller({
      wants: ({ samples = [] }, { forecast, namespace }) =>
        forecast === undefined ? [] : samples.map((one) => ({ ...one, namespace: namespace.name })),
      idOf: ({ key, namespace }) => `${namespace} ${key}`,
      placeOf: ({ forecast }) => {
        if (forecast === undefined) return {};
        forecast.samples ??= {};
        return forecast.samples;
      },
      keyOf: ({ key }) => key,
      read: async (items) => readSamples(items, deps),
    }),
    sourceFiller({
      wants: ({ deletions }, { forecast }) => (forecast === undefined ? [] : deletions),
      idOf: ({ type, object }) => `${typeName(type)} ${object.uid}`,
      placeOf: ({ forecast }) => forecast?.deletions ?? {},
      keyOf: ({ type, key = typeName(type) }) => key,
      read: oneByOne(async (item) => ({ value: await tryDeletion(item, deps) })),
      limit: { most: MAX_TRIALS, what: 'deletions to try', beyond: unknownTrial },
    }),
  ];
}

/** Adds the key of the source to its entries under "not inspected". */
function withSourceName<T>(source: string, { value, unread = [] }: Gathered<T>): Gathered<T> {
  return { value, unread: unread.map((one) => ({ ...one, source })) };
}

async function readCluster(
  key: Wanted['cluster'][number],
  types: readonly ResourceType[],
  deps: Reading,
): Promise<Gathered<Read<unknown[]>>> {
  if (key === 'otherWorkloads') return readOtherWorkloads(types, deps);
  const source: Source<unknown> = CLUSTER_SOURCES[key];
  if (!source.isOptional) return readSource(source, deps);
  const { group, resource } = source.type;
  const type = types.find((one) => one.group === group && one.resource === resource);
  return type === undefined ? { value: readOk([]) } : readSource({ ...source, type }, deps);
}

function unknownTrial({ message }: ReadFailure): Trial {
  return { answer: 'unknown', message };
}

const CRD = CLUSTER_SOURCES.definitions.type;

export function readNode(
  name: string,
  deps: Reading,
): Promise<Gathered<Read<NodeFacts | undefined>>> {
  return readNamed(CLUSTER_SOURCES.providerNodes.type, name, 'node', nodeFacts, deps);
}

/**
 * Reads objects by name, only with `get`: a cluster may have thousands of them, and a role often grants no more.
 * `undefined` means that the API server says the object does not exist, which is not a failed read.
 */
async function readNamed<T>(
  type: TypeRef,
  name: string,
  what: string,
  facts: (object: JsonObject) => T,
  { api, signal }: Reading,
): Promise<Gathered<Read<T | undefined>>> {
  if (!isPathSegment(name)) {
    return { value: readFailed({ kind: 'invalid', message: 'no object can have this name' }) };
  }
  const got = await api.get(objectPath(type, undefined, name), { signal });
  if (got.ok) return { value: readOk(facts(got.value)) };
  if (got.failure.kind === 'not-found') return { value: readOk(undefined) };
  return { value: got, unread: notInspectedEntries(`${what} ${name}`, got, type, 'get') };
}

function unreadDiscovery(discovery: Read<Discovery>): NotInspected[] {
  if (!discovery.ok) {
    const what = 'all resource types (API discovery)';
    return [{ what, reason: discovery.failure.message }];
  }
  return discovery.value.failedGroups.map(({ group, version, reason }) => {
    return { what: `API group ${group}/${version}`, reason };
  });
}

/** Limit for the baseline, without which a run works as well. */
const BASELINE_LIMIT_MS = 10_000;
/**
 * Reads workloads, permissions and warnings of the namespaces before their content is deleted. If an operator is
 * deleted together with its objects, they are needed later to find the owner of a finalizer.
 */
export async function readBaselines(
  namespaces: readonly string[],
  deps: ObserveDeps,
): Promise<Map<string, Baseline>> {
  const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(BASELINE_LIMIT_MS)]);
  const from = async <T>(source: Source<T>): Promise<(namespace: string) => Read<T[]>> => {
    const answers = await readInNamespaces(source, namespaces, { ...deps, signal });
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
      workloads:
        lists.find((list) => !list.ok) ??
        readOk(lists.flatMap((list) => (list.ok ? list.value : []))),
      roles: roles(name),
      roleBindings: roleBindings(name),
      events: said.ok ? readOk(said.value.filter(({ type }) => type === 'Warning')) : said,
    };
  };
  return new Map(namespaces.map((name) => [name, baselineOf(name)]));
}
