import type { JsonObject } from '../base/json.ts';
import { type Clock, serverTimestamp } from '../base/time.ts';
import type { Discovery, KubernetesApi } from '../kubernetes/api.ts';
import { objectPath } from '../kubernetes/paths.ts';
import { failed, type Read, read } from '../model/read.ts';
import {
  type Baseline,
  deletionKey,
  type NamespaceFacts,
  partnerKey,
  type ResourceType,
  type Snapshot,
  type Trial,
  trialKey,
  type Unread,
  type Wanted,
} from '../model/snapshot.ts';
import { readDependents, readDetails, readPartners, readTrials, tryDeletion } from './objects.ts';
import { definitionDetail, nodeFacts } from './parse.ts';
import {
  type Answer,
  CLAIMS,
  CLUSTER,
  PLACE,
  readPlaces,
  readSource,
  type Source,
  unreadOf,
} from './sources.ts';
import { sweep, sweepableTypes } from './sweep.ts';

export interface ObserveDeps {
  api: KubernetesApi;
  clock: Clock;
  /** Ends the reading; what was not read by then is "not inspected". */
  signal: AbortSignal;
}

/** Content and cluster-wide sources; then per object; then what those objects led to. */
const ROUNDS = 3;
/** Of all namespaces that are examined together. */
const MAX_NODES = 100;
const MAX_TRIALS = 200;

/**
 * Reads the cluster into one snapshot for each namespace. Never throws and never judges: what could not
 * be read stays in the snapshot as a failed read. `want` says what each snapshot lacks; it is asked
 * again after each round, and what several namespaces need is read once for all.
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
  const unread = new Map(namespaces.map(({ name }) => [name, unreadDiscovery(discovery)]));
  const swept = await sweep(
    api,
    namespaces.map(({ name }) => name),
    sweepableTypes(types),
    signal,
    (name, entries) => unread.get(name)?.push(...entries),
  );
  const snapshots = namespaces.map((namespace): Snapshot => {
    const { content, pods } = swept.get(namespace.name) ?? { content: [], pods: read([]) };
    return {
      takenAt,
      namespace,
      discovery: discovery.ok
        ? read({ types, failedGroups: discovery.value.failedGroups })
        : discovery,
      content,
      pods,
      cluster: {},
      places: {},
      nodes: {},
      definitions: {},
      details: {},
      partners: {},
      trials: {},
      unread: unread.get(namespace.name) ?? [],
    };
  });
  const shelves = shelvesFor(types, deps);
  for (let round = 0; round < ROUNDS && !signal.aborted; round++) {
    const wishes = snapshots.map((snapshot) => ({ snapshot, wanted: want(snapshot) }));
    await Promise.all(shelves.map((fill) => fill(wishes)));
  }
  return snapshots;
}

interface Wish {
  snapshot: Snapshot;
  wanted: Wanted;
}

/** One kind of thing that snapshots want beyond their content. */
interface Kind<Item, Value> {
  /** What this snapshot wants and has not got. */
  lacks: (wish: Wish) => Item[];
  /** The same for what has to be read only once. */
  idOf: (item: Item) => string;
  /** By id. Whatever can be read together is. */
  read: (items: Item[]) => Promise<Map<string, Answer<Value>>>;
  put: (snapshot: Snapshot, item: Item, value: Value) => void;
  /** Of all namespaces together; what is beyond it gets this value. */
  limit?: { most: number; what: string; beyond: Value };
}

/** Collects what all snapshots lack, reads what nobody has read yet, and hands it out. */
function shelf<Item, Value>(kind: Kind<Item, Value>): (wishes: readonly Wish[]) => Promise<void> {
  const known = new Map<string, Answer<Value>>();
  return async (wishes) => {
    const asked = wishes.map((wish) => ({
      snapshot: wish.snapshot,
      items: new Map(kind.lacks(wish).map((item) => [kind.idOf(item), item])),
    }));
    const fresh = new Map(asked.flatMap(({ items }) => [...items]));
    for (const id of known.keys()) fresh.delete(id);
    const room = (kind.limit?.most ?? Number.POSITIVE_INFINITY) - known.size;
    const answers = await kind.read([...fresh.values()].slice(0, Math.max(0, room)));
    for (const [id, answer] of answers) known.set(id, answer);
    for (const { snapshot, items } of asked) {
      let beyond = 0;
      for (const [id, item] of items) {
        const answer = known.get(id);
        if (answer !== undefined) {
          kind.put(snapshot, item, answer.value);
          snapshot.unread.push(...(answer.unread ?? []));
        } else if (kind.limit !== undefined) {
          kind.put(snapshot, item, kind.limit.beyond);
          beyond++;
        }
      }
      if (beyond > 0) {
        const { what, most } = kind.limit as { what: string; most: number };
        const reason = `only ${most} are read in one run`;
        snapshot.unread.push({ source: what, what: `${beyond} more ${what}`, reason });
      }
    }
  };
}

type Fill = (wishes: readonly Wish[]) => Promise<void>;

function shelvesFor(types: readonly ResourceType[], { api, signal }: ObserveDeps): Fill[] {
  return [
    shelf({
      lacks: ({ snapshot, wanted }) => wanted.cluster.filter((key) => !snapshot.cluster[key]),
      idOf: String,
      read: (keys) =>
        each(keys, async (key): Promise<Answer<Read<unknown[]>>> => {
          const source: Source<unknown> = CLUSTER[key];
          if (!source.isOptional) return readSource(key, source, api, signal);
          const { group, resource } = source.type;
          const type = types.find((one) => one.group === group && one.resource === resource);
          if (type === undefined) return { value: read([]) };
          return readSource(key, { ...source, type }, api, signal);
        }),
      put: (snapshot, key, value) => {
        snapshot.cluster[key] = value as never;
      },
    }),
    shelf<{ namespace: string; key: keyof typeof PLACE }, Read<unknown[]>>({
      lacks: ({ snapshot, wanted }) =>
        wanted.places.flatMap(({ namespace, sources }) =>
          sources.flatMap((key) => (snapshot.places[namespace]?.[key] ? [] : { namespace, key })),
        ),
      idOf: ({ namespace, key }) => `${key} ${namespace}`,
      read: async (items) => {
        const read = await Promise.all(
          [...Map.groupBy(items, ({ key }) => key)].map(async ([key, ofKey]) => {
            const source: Source<unknown> = PLACE[key];
            const names = ofKey.map(({ namespace }) => namespace);
            const answers = await readPlaces(key, source, names, api, signal);
            return [...answers].map(([name, answer]) => [`${key} ${name}`, answer] as const);
          }),
        );
        return new Map(read.flat());
      },
      put: (snapshot, { namespace, key }, value) => {
        snapshot.places[namespace] = { ...snapshot.places[namespace], [key]: value };
      },
    }),
    shelf({
      lacks: ({ snapshot, wanted }) => wanted.nodes.filter((name) => !snapshot.nodes[name]),
      idOf: String,
      read: (names) => each(names, (name) => readNamed(NODE, name, nodeFacts, 'node', api, signal)),
      put: (snapshot, name, value) => {
        snapshot.nodes[name] = value;
      },
      limit: {
        most: MAX_NODES,
        what: 'nodes of overdue pods',
        beyond: failed({ kind: 'aborted', message: `only ${MAX_NODES} nodes are read` }),
      },
    }),
    shelf({
      lacks: ({ snapshot, wanted }) =>
        wanted.definitions.filter((name) => !snapshot.definitions[name]),
      idOf: String,
      read: (names) =>
        each(names, (name) => readNamed(CRD, name, definitionDetail, 'CRD', api, signal)),
      put: (snapshot, name, value) => {
        snapshot.definitions[name] = value;
      },
    }),
    shelf({
      lacks: ({ snapshot, wanted }) =>
        wanted.dependents && snapshot.dependents === undefined ? [snapshot.namespace.uid] : [],
      idOf: String,
      read: (uids) => readDependents(uids, types, api, signal),
      put: (snapshot, _, value) => {
        snapshot.dependents = value;
      },
    }),
    shelf({
      lacks: ({ snapshot, wanted }) =>
        wanted.details.flatMap(({ type, objects, total }) =>
          objects
            .filter(({ uid }) => !snapshot.details[uid])
            .map((object) => ({ type, object, total })),
        ),
      idOf: ({ object }) => object.uid,
      read: (items) => readDetails(items, api, signal),
      put: (snapshot, { object }, value) => {
        snapshot.details[object.uid] = value;
      },
    }),
    shelf({
      lacks: ({ snapshot, wanted }) =>
        wanted.partners
          .map((partner) => ({ ...partner, key: partnerKey({ ...partner.type, ...partner }) }))
          .filter(({ key }) => !snapshot.partners[key]),
      idOf: ({ key }) => key,
      read: (items) => readPartners(items, api, signal),
      put: (snapshot, { key }, { facts, detail }) => {
        snapshot.partners[key] = facts;
        if (facts.ok && facts.value !== undefined && detail !== undefined) {
          snapshot.details[facts.value.uid] = read(detail);
        }
      },
    }),
    shelf<Wanted['trials'][number], Trial>({
      lacks: ({ snapshot, wanted }) =>
        wanted.trials.filter(
          ({ object, finalizer }) => !snapshot.trials[trialKey(object.uid, finalizer)],
        ),
      idOf: ({ object, finalizer }) => trialKey(object.uid, finalizer),
      read: (items) => readTrials(items, api, signal),
      put: (snapshot, { object, finalizer }, trial) => {
        snapshot.trials[trialKey(object.uid, finalizer)] = trial;
      },
      limit: {
        most: MAX_TRIALS,
        what: 'removals to try',
        beyond: { answer: 'unknown', message: `only ${MAX_TRIALS} removals are tried` },
      },
    }),
    shelf<Wanted['deletions'][number], Trial>({
      lacks: ({ snapshot: { forecast }, wanted }) =>
        wanted.deletions.filter(({ type }) => forecast?.deletions[deletionKey(type)] === undefined),
      idOf: ({ type, object }) => `${deletionKey(type)} ${object.uid}`,
      read: async (items) =>
        new Map(
          await Promise.all(
            items.map(async (item) => {
              const id = `${deletionKey(item.type)} ${item.object.uid}`;
              return [id, { value: await tryDeletion(item, api, signal) }] as const;
            }),
          ),
        ),
      put: ({ forecast }, { type }, trial) => {
        if (forecast !== undefined) forecast.deletions[deletionKey(type)] = trial;
      },
      limit: {
        most: MAX_TRIALS,
        what: 'deletions to try',
        beyond: { answer: 'unknown', message: `only ${MAX_TRIALS} deletions are tried` },
      },
    }),
  ];
}

/** One request for each name; the client sends a few at once. */
async function each<Name extends string, Value>(
  names: readonly Name[],
  ask: (name: Name) => Promise<Answer<Value>>,
): Promise<Map<string, Answer<Value>>> {
  return new Map(await Promise.all(names.map(async (name) => [name, await ask(name)] as const)));
}

const NODE = { group: '', version: 'v1', resource: 'nodes' };
const CRD = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  resource: 'customresourcedefinitions',
};

/**
 * By name, and `get` only: a cluster may have thousands, and a role often grants no more. `undefined` when
 * the API server says that there is none: a fact, not a failed read.
 */
async function readNamed<T>(
  type: Source<unknown>['type'],
  name: string,
  facts: (object: JsonObject) => T,
  what: string,
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Answer<Read<T | undefined>>> {
  const got = await api.get(objectPath(type, undefined, name), { signal });
  if (got.ok) return { value: read(facts(got.value)) };
  if (got.failure.kind === 'not-found') return { value: read(undefined) };
  return { value: got, unread: unreadOf(type.resource, `${what} ${name}`, got, type, 'get') };
}

function unreadDiscovery(discovery: Read<Discovery>): Unread[] {
  if (!discovery.ok) {
    const what = 'all resource types (API discovery)';
    return [{ source: 'discovery', what, reason: discovery.failure.message }];
  }
  return discovery.value.failedGroups.map(({ group, version, reason }) => ({
    source: 'discovery',
    what: `API group ${group}/${version}`,
    reason,
  }));
}

/** It is a bonus: nobody waits long for it. */
const BASELINE_LIMIT_MS = 10_000;
/** A deletion this young may still have its workloads; an older one has lost them. */
const YOUNG_MS = 30_000;

/**
 * What is in the namespaces while they still are: when an operator is deleted together with its objects,
 * its Deployment, its rights and its complaints are gone before anybody asks who should have removed
 * the finalizer.
 */
export async function readBaselines(
  namespaces: readonly string[],
  deps: ObserveDeps,
): Promise<Map<string, Baseline>> {
  const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(BASELINE_LIMIT_MS)]);
  const from = async <T>(source: Source<T>): Promise<(namespace: string) => Read<T[]>> => {
    const answers = await readPlaces('baseline', source, namespaces, deps.api, signal);
    return (namespace) => (answers.get(namespace) as Answer<Read<T[]>>).value;
  };
  const { deployments, statefulSets, daemonSets, jobs, cronJobs } = CLUSTER;
  const [workloads, roles, roleBindings, events, claims] = await Promise.all([
    Promise.all([deployments, statefulSets, daemonSets, jobs, cronJobs].map(from)),
    from(PLACE.roles),
    from(PLACE.roleBindings),
    from(PLACE.events),
    from(CLAIMS),
  ]);
  const baselineOf = (name: string): Baseline => {
    const lists = workloads.map((list) => list(name));
    const said = events(name);
    return {
      at: serverTimestamp(deps),
      workloads:
        lists.find((list) => !list.ok) ??
        read(lists.flatMap((list) => (list.ok ? list.value : []))),
      roles: roles(name),
      roleBindings: roleBindings(name),
      events: said.ok ? read(said.value.filter(({ type }) => type === 'Warning')) : said,
      claims: claims(name),
    };
  };
  return new Map(namespaces.map((name) => [name, baselineOf(name)]));
}

export function isYoung(deletionTimestamp: string | undefined, serverNow: number): boolean {
  return deletionTimestamp === undefined || serverNow - Date.parse(deletionTimestamp) < YOUNG_MS;
}
