import type { JsonObject } from '../base/json.ts';
import { stringAt } from '../base/json.ts';
import { type Clock, serverTimestamp } from '../base/time.ts';
import type { Discovery, KubernetesApi } from '../kubernetes/api.ts';
import { collectionPath, objectPath } from '../kubernetes/paths.ts';
import { failed, type Read, read } from '../model/read.ts';
import {
  type Baseline,
  type ClusterSources,
  deletionKey,
  type NamespaceFacts,
  type ObjectDetail,
  type ObjectFacts,
  type PlaceSources,
  partnerKey,
  type ResourceType,
  type Snapshot,
  type Trial,
  trialKey,
  type Unread,
  type Wanted,
} from '../model/snapshot.ts';
import { definitionDetail, nodeFacts, objectDetail, objectFacts } from './parse.ts';
import { CLUSTER, missingRight, PLACE, readSource, type Source } from './sources.ts';
import { CONCURRENT_LISTS, inParallel, sweep, sweepableTypes } from './sweep.ts';

export interface ObserveDeps {
  api: KubernetesApi;
  clock: Clock;
  /** Ends the reading; what was not read by then is "not inspected". */
  signal: AbortSignal;
}

/** Content and cluster-wide sources; then per object; then what those objects led to. */
const ROUNDS = 3;
const MAX_NODES = 50;
const MAX_TRIALS = 20;
/** Up to this many objects of a type are read in one list; of more, only the examples are. */
const MAX_DETAILED = 200;

/**
 * Reads the cluster into one snapshot for each namespace. Never throws and never judges: what could not
 * be read stays in the snapshot as a failed read. `want` says what each snapshot lacks; it is asked
 * again after each round, and what one namespace needs of the cluster is read once for all.
 */
export async function observe(
  namespaces: readonly NamespaceFacts[],
  want: (snapshot: Snapshot) => Wanted,
  deps: ObserveDeps,
): Promise<Snapshot[]> {
  const { api, signal } = deps;
  const takenAt = serverTimestamp(deps);
  const discovery = await api.discover({ signal });
  const types = discovery.ok ? sweepableTypes(discovery.value.types) : [];
  const unread = new Map(namespaces.map(({ name }) => [name, unreadDiscovery(discovery)]));
  const swept = await sweep(
    api,
    namespaces.map(({ name }) => name),
    types,
    signal,
    (name, entry) => unread.get(name)?.push(entry),
  );
  const snapshots = namespaces.map((namespace): Snapshot => {
    const { content, pods } = swept.get(namespace.name) ?? { content: [], pods: read([]) };
    return {
      takenAt,
      namespace,
      discovery: discovery.ok
        ? read({ types: discovery.value.types, failedGroups: discovery.value.failedGroups })
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
  const shared = new SharedReads(deps, discovery.ok ? discovery.value.types : []);
  for (let round = 0; round < ROUNDS && !signal.aborted; round++) {
    await inParallel(snapshots, CONCURRENT_LISTS, async (snapshot) =>
      answer(want(snapshot), snapshot, shared, deps),
    );
  }
  return snapshots;
}

/** What several namespaces ask for is read once. */
class SharedReads {
  private readonly reads = new Map<string, Promise<unknown>>();
  private readonly notes = new Map<string, Unread[]>();
  private readonly deps: ObserveDeps;
  readonly types: readonly ResourceType[];

  constructor(deps: ObserveDeps, types: readonly ResourceType[]) {
    this.deps = deps;
    this.types = types;
  }

  once<T>(key: string, read: () => Promise<T>): Promise<T> {
    const known = this.reads.get(key) as Promise<T> | undefined;
    const reading = known ?? read();
    this.reads.set(key, reading);
    return reading;
  }

  async source<T>(
    key: string,
    source: Source<T>,
    into: Snapshot,
    namespace?: string,
  ): Promise<Read<T[]>> {
    const { api, signal } = this.deps;
    const id = `${key} ${namespace ?? ''}`;
    const result = await this.once(id, async () => {
      if (source.isOptional && !this.isServed(source)) return read<T[]>([]);
      const notes: Unread[] = [];
      this.notes.set(id, notes);
      return readSource(key, source, api, signal, (note) => notes.push(note), namespace);
    });
    into.unread.push(...(this.notes.get(id) ?? []));
    return result;
  }

  private isServed({ type }: Source<unknown>): boolean {
    return this.types.some(
      ({ group, version, resource }) =>
        group === type.group && version === type.version && resource === type.resource,
    );
  }
}

async function answer(
  wanted: Wanted,
  snapshot: Snapshot,
  shared: SharedReads,
  deps: ObserveDeps,
): Promise<void> {
  const { api, signal } = deps;
  const jobs: Promise<unknown>[] = [];
  const { cluster, places } = snapshot;
  const readCluster = async <K extends keyof ClusterSources>(key: K): Promise<void> => {
    const source: Source<ClusterSources[K][number]> = CLUSTER[key];
    cluster[key] = (await shared.source(key, source, snapshot)) as (typeof cluster)[K];
  };
  const readPlace = async <K extends keyof PlaceSources>(
    namespace: string,
    key: K,
  ): Promise<void> => {
    const source: Source<PlaceSources[K][number]> = PLACE[key];
    const place = { ...places[namespace] };
    place[key] = (await shared.source(key, source, snapshot, namespace)) as (typeof place)[K];
    places[namespace] = { ...places[namespace], ...place };
  };
  for (const key of new Set(wanted.cluster)) {
    if (cluster[key] === undefined) jobs.push(readCluster(key));
  }
  for (const { namespace, sources } of wanted.places) {
    for (const key of sources) {
      if (places[namespace]?.[key] === undefined) jobs.push(readPlace(namespace, key));
    }
  }
  const nodes = [...new Set(wanted.nodes)].filter((name) => snapshot.nodes[name] === undefined);
  for (const name of nodes.slice(0, MAX_NODES)) {
    // By name, and `get` only: a cluster may have thousands, and a role often grants no more.
    jobs.push(
      shared
        .once(`node ${name}`, () => one(api, NODE, undefined, name, nodeFacts, signal))
        .then((value) => {
          snapshot.nodes[name] = value;
          noteUnread(snapshot, 'nodes', `node ${name}`, value, NODE, 'get');
        }),
    );
  }
  cutBeyond(nodes, MAX_NODES, 'nodes of overdue pods', snapshot);
  for (const name of new Set(wanted.definitions)) {
    if (snapshot.definitions[name] !== undefined) continue;
    jobs.push(
      shared
        .once(`crd ${name}`, () => one(api, CRD, undefined, name, definitionDetail, signal))
        .then((value) => {
          snapshot.definitions[name] = value;
          noteUnread(snapshot, 'definitions', `CRD ${name}`, value, CRD, 'get');
        }),
    );
  }
  for (const { type, objects, total } of wanted.details) {
    const unread = objects.filter(({ uid }) => snapshot.details[uid] === undefined);
    if (unread.length > 0) {
      jobs.push(readDetails({ type, objects: unread, total }, snapshot, deps));
    }
  }
  for (const { type, namespace, name } of wanted.partners) {
    const key = partnerKey({ group: type.group, kind: type.kind, namespace, name });
    if (snapshot.partners[key] !== undefined) continue;
    jobs.push(
      readPartner(type, namespace, name, deps).then(({ facts, detail }) => {
        snapshot.partners[key] = facts;
        noteUnread(snapshot, 'partners', `${type.kind} ${name}`, facts, type, 'list');
        if (facts.ok && facts.value !== undefined && detail !== undefined) {
          snapshot.details[facts.value.uid] = read(detail);
        }
      }),
    );
  }
  if (wanted.dependents && snapshot.dependents === undefined) {
    jobs.push(
      readDependents(snapshot.namespace.uid, shared.types, deps).then((value) => {
        snapshot.dependents = value;
        const what = 'cluster-scoped objects that the namespace owns';
        noteUnread(snapshot, 'dependents', what, value, EVERYTHING, 'list');
      }),
    );
  }
  const trials = wanted.trials.filter(
    ({ object, finalizer }) => snapshot.trials[trialKey(object.uid, finalizer)] === undefined,
  );
  for (const request of trials.slice(0, MAX_TRIALS)) {
    jobs.push(
      tryRemoval(request, deps).then((trial) => {
        snapshot.trials[trialKey(request.object.uid, request.finalizer)] = trial;
      }),
    );
  }
  for (const { object, finalizer } of trials.slice(MAX_TRIALS)) {
    const message = `only ${MAX_TRIALS} removals are tried`;
    snapshot.trials[trialKey(object.uid, finalizer)] = { answer: 'unknown', message };
  }
  const { forecast } = snapshot;
  const deletions = wanted.deletions.filter(
    ({ type }) => forecast !== undefined && forecast.deletions[deletionKey(type)] === undefined,
  );
  for (const request of deletions) {
    jobs.push(
      tryDeletion(request, deps).then((trial) => {
        if (forecast !== undefined) forecast.deletions[deletionKey(request.type)] = trial;
      }),
    );
  }
  await Promise.all(jobs);
}

function cutBeyond(list: readonly string[], most: number, what: string, into: Snapshot): void {
  if (list.length <= most) return;
  into.unread.push({
    source: 'nodes',
    what: `${list.length - most} more ${what}`,
    reason: `only ${most} are read`,
  });
  for (const name of list.slice(most)) {
    into.nodes[name] = failed({ kind: 'aborted', message: `only ${most} nodes are read` });
  }
}

function noteUnread(
  into: Snapshot,
  source: string,
  what: string,
  read: Read<unknown>,
  type: Pick<ResourceType, 'group' | 'resource'>,
  verb: string,
): void {
  if (read.ok) return;
  const { failure } = read;
  into.unread.push({
    source,
    what,
    reason: failure.message,
    ...missingRight(failure, type, verb),
  });
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

const EVERYTHING = { group: '*', resource: '*' };
const NODE = { group: '', version: 'v1', resource: 'nodes' };
const CRD = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  resource: 'customresourcedefinitions',
};

/** `undefined` when the API server says that the object does not exist: a fact, not a failed read. */
async function one<T>(
  api: KubernetesApi,
  type: Pick<ResourceType, 'group' | 'version' | 'resource'>,
  namespace: string | undefined,
  name: string,
  facts: (object: JsonObject) => T,
  signal: AbortSignal,
): Promise<Read<T | undefined>> {
  const got = await api.get(objectPath(type, namespace, name), { signal });
  if (got.ok) return read(facts(got.value));
  return got.failure.kind === 'not-found' ? read(undefined) : got;
}

async function readDetails(
  { type, objects, total }: Wanted['details'][number],
  snapshot: Snapshot,
  { api, signal }: ObserveDeps,
): Promise<void> {
  const { namespace, details } = snapshot;
  const path = collectionPath(type, namespace.name);
  const keep = (item: JsonObject): void => {
    const uid = stringAt(item, 'metadata', 'uid');
    if (uid !== undefined) details[uid] = read(objectDetail(item));
  };
  // Always a list: `list` is what the sweep needs anyway, and `get` on everything reaches further than
  // it looks (pods/exec, nodes/proxy).
  const fail = (uid: string, failure: { ok: false } & Read<never>): void => {
    details[uid] ??= failure;
  };
  if (total <= MAX_DETAILED) {
    const end = await api.list(path, { signal, limit: 100, onItem: keep });
    for (const { uid } of objects) fail(uid, end.ok ? GONE : end);
    noteUnread(snapshot, 'details', `status of ${type.resource}`, end, type, 'list');
    return;
  }
  await Promise.all(
    objects.map(async ({ name, uid }) => {
      const only = { fieldSelector: `metadata.name=${name}` };
      const end = await api.list(path, { signal, ...only, onItem: keep });
      fail(uid, end.ok ? GONE : end);
    }),
  );
  snapshot.unread.push({
    source: 'details',
    what: `status of ${total - objects.length} more ${type.resource}`,
    reason: `of so many only ${objects.length} are read one by one`,
  });
}

const GONE = failed({ kind: 'not-found', message: 'it is gone meanwhile' });

async function readPartner(
  type: ResourceType,
  namespace: string | undefined,
  name: string,
  { api, signal }: ObserveDeps,
): Promise<{ facts: Read<ObjectFacts | undefined>; detail: ObjectDetail | undefined }> {
  let facts: ObjectFacts | undefined;
  let detail: ObjectDetail | undefined;
  const end = await api.list(collectionPath(type, namespace), {
    signal,
    fieldSelector: `metadata.name=${name}`,
    maxItems: 1,
    // What is in Secrets and their like is nobody's business.
    metadataOnly: type.group === '' && type.namespaced,
    onItem: (item) => {
      facts = objectFacts(item, type);
      detail = objectDetail(item);
    },
  });
  return { facts: end.ok ? read(facts) : end, detail };
}

/** Cluster-scoped objects with an owner reference to the namespace; its own content is swept anyway. */
async function readDependents(
  uid: string,
  types: readonly ResourceType[],
  { api, signal }: ObserveDeps,
): Promise<Read<ObjectFacts[]>> {
  const found: ObjectFacts[] = [];
  let failure: Read<never> | undefined;
  const wanted = types.filter(({ namespaced, verbs }) => !namespaced && verbs.includes('list'));
  await inParallel(wanted, CONCURRENT_LISTS, async (type) => {
    const end = await api.list(collectionPath(type), {
      signal,
      metadataOnly: true,
      onItem: (item) => {
        const facts = objectFacts(item, type);
        if (facts.ownerReferences.some((owner) => owner.uid === uid)) found.push(facts);
      },
    });
    if (!end.ok) failure ??= end;
  });
  return failure !== undefined && found.length === 0 ? failure : read(found);
}

/**
 * Answers to the trial that say nothing about the owner's request: a right that we lack, a webhook that
 * knows no dry runs, and a failed `test` of the patch, because the object has changed since it was read.
 */
const OUR_OWN =
  /cannot (?:patch|delete) resource|does not support dry run|the server rejected our request due to an error in our request/;

/**
 * Would the API server let the finalizer be removed? Pinned to the UID and to the place of the
 * finalizer, and only ever as a dry run: which webhook or policy refuses is in the answer.
 */
async function tryRemoval(
  { type, object, finalizer }: Wanted['trials'][number],
  { api, signal }: ObserveDeps,
): Promise<Trial> {
  const place = `/metadata/finalizers/${object.finalizers.indexOf(finalizer)}`;
  const sent = await api.send(
    {
      method: 'PATCH',
      path: objectPath(type, object.namespace || undefined, object.name),
      contentType: 'application/json-patch+json',
      dryRun: true,
      body: [
        { op: 'test', path: '/metadata/uid', value: object.uid },
        { op: 'test', path: place, value: finalizer },
        { op: 'remove', path: place },
      ],
    },
    { signal },
  );
  return trialOf(sent);
}

/** Would the API server let the object be deleted? Only ever as a dry run, and of exactly this object. */
async function tryDeletion(
  { type, object: { namespace, name, uid } }: Wanted['deletions'][number],
  { api, signal }: ObserveDeps,
): Promise<Trial> {
  const sent = await api.send(
    {
      method: 'DELETE',
      path: objectPath(type, namespace || undefined, name),
      dryRun: true,
      body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } },
    },
    { signal },
  );
  return trialOf(sent);
}

function trialOf(sent: Read<unknown>): Trial {
  if (sent.ok) return { answer: 'accepted' };
  const { failure } = sent;
  const isOurs = OUR_OWN.test(failure.message);
  const hasAnswer =
    failure.kind === 'forbidden' || failure.kind === 'invalid' || failure.kind === 'server-error';
  return { answer: hasAnswer && !isOurs ? 'refused' : 'unknown', message: failure.message };
}

/** It is a bonus: nobody waits long for it. */
const BASELINE_LIMIT_MS = 10_000;
/** A deletion this young may still have its workloads; an older one has lost them. */
const YOUNG_MS = 30_000;

/**
 * What is in the namespace while it still is: when an operator is deleted together with its objects,
 * its Deployment, its rights and its complaints are gone before anybody asks who should have removed
 * the finalizer.
 */
export async function readBaseline(namespace: string, deps: ObserveDeps): Promise<Baseline> {
  const { api } = deps;
  const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(BASELINE_LIMIT_MS)]);
  const from = <T>(source: Source<T>): Promise<Read<T[]>> =>
    readSource('baseline', source, api, signal, () => undefined, namespace);
  const { deployments, statefulSets, daemonSets } = CLUSTER;
  const [workloads, roles, roleBindings, events] = await Promise.all([
    Promise.all([deployments, statefulSets, daemonSets].map(from)),
    from(PLACE.roles),
    from(PLACE.roleBindings),
    from(PLACE.events),
  ]);
  const unread = workloads.find((list) => !list.ok);
  return {
    at: serverTimestamp(deps),
    workloads: unread ?? read(workloads.flatMap((list) => (list.ok ? list.value : []))),
    roles,
    roleBindings,
    events: events.ok ? read(events.value.filter(({ type }) => type === 'Warning')) : events,
  };
}

export function isYoung(deletionTimestamp: string | undefined, serverNow: number): boolean {
  return deletionTimestamp === undefined || serverNow - Date.parse(deletionTimestamp) < YOUNG_MS;
}
