import type { Held } from '../../src/diagnose/owner/held.ts';
import { type Read, type ReadFailure, readFailed, readOk } from '../../src/model/read.ts';
import type {
  ClusterSources,
  Condition,
  NamespaceFacts,
  NamespaceSources,
  ObjectFacts,
  ObjectGroup,
  PodFacts,
  ResourceType,
  Snapshot,
  TypeContent,
} from '../../src/model/snapshot.ts';
import { CLUSTER_SOURCES, NAMESPACE_SOURCES } from '../../src/model/sources.ts';
import { GREEN_CONDITIONS } from '../stub/green-conditions.ts';

/** Snapshots for one question at a time. What whole clusters look like is recorded, not built. */

export const DEMO = 'preview-7';
export const DELETED_AT = '2026-03-02T10:00:00Z';
/** Half a minute after the first snapshot, a good minute after the deletion. */
export const NOW = '2026-03-02T10:01:30.000Z';
export const EARLIER = '2026-03-02T10:01:00.000Z';

export const PODS = typeOf('', 'pods', 'Pod');
export const CONFIG_MAPS = typeOf('', 'configmaps', 'ConfigMap');
export const WIDGETS = typeOf('example.com', 'widgets', 'Widget');
export const CLEANUP = 'widgets.example.com/cleanup';

export function typeOf(group: string, resource: string, kind: string): ResourceType {
  const verbs = ['get', 'list', 'watch', 'delete', 'patch'];
  return { group, version: 'v1', resource, kind, namespaced: true, verbs };
}

export function namespaceFacts(given: Partial<NamespaceFacts> = {}): NamespaceFacts {
  return {
    name: DEMO,
    uid: 'ns-uid',
    resourceVersion: '10',
    phase: 'Terminating',
    creationTimestamp: '2026-03-02T09:00:00Z',
    deletionTimestamp: DELETED_AT,
    labels: { 'kubernetes.io/metadata.name': DEMO },
    finalizers: [],
    writers: [],
    specFinalizers: ['kubernetes'],
    conditions: GREEN_CONDITIONS,
    statusWrittenAt: '2026-03-02T10:00:06Z',
    annotations: {},
    ...given,
  };
}

export function condition(type: string, status: string, message = '', reason = ''): Condition {
  return { type, status, reason, message };
}

/** The green ones, but for these. */
export function conditions(...given: Condition[]): Condition[] {
  return GREEN_CONDITIONS.map((one) => given.find(({ type }) => type === one.type) ?? one);
}

export function objectFacts(
  type: ResourceType,
  name: string,
  given: Partial<ObjectFacts> = {},
): ObjectFacts {
  return {
    apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
    kind: type.kind,
    namespace: DEMO,
    name,
    uid: `uid-${type.resource}-${name}`,
    resourceVersion: '1',
    creationTimestamp: '2026-03-02T09:00:00Z',
    deletionTimestamp: DELETED_AT,
    generation: undefined,
    finalizers: [],
    labels: {},
    annotations: {},
    ownerReferences: [],
    writers: [],
    statusWriters: [],
    ...given,
  };
}

/** Its controller should remove the finalizer of this Widget. */
export function heldWidget(given: Partial<Held> = {}, facts: Partial<ObjectFacts> = {}): Held {
  const object = objectFacts(WIDGETS, 'db', { finalizers: [CLEANUP], ...facts });
  return {
    ...{ finalizer: CLEANUP, type: WIDGETS, subject: object, objects: [object], count: 1 },
    ...{ since: DELETED_AT, writers: [], ...given },
  };
}

export function podFacts(name: string, given: Partial<PodFacts> = {}): PodFacts {
  return {
    ...objectFacts(PODS, name),
    phase: 'Running',
    ready: true,
    nodeName: 'node-1',
    deletionGracePeriodSeconds: 30,
    containers: [{ name: 'main' }],
    claims: [],
    troubles: [],
    account: 'default',
    podLabels: {},
    programs: [],
    watches: undefined,
    ...{ selectors: [], addresses: [], limits: [] },
    ...given,
  };
}

export function group(
  type: ResourceType,
  finalizers: string[],
  given: Partial<ObjectGroup> & { names?: string[]; manager?: string } = {},
): ObjectGroup {
  const { names, manager, ...rest } = given;
  const count = rest.count ?? names?.length ?? 1;
  const some = Array.from({ length: Math.min(count, 10) }, (_, at) => `${type.resource}-${at}`);
  const by = { manager: manager ?? '', time: '2026-03-02T09:30:00Z' };
  const writers =
    manager === undefined ? [] : finalizers.map((finalizer) => ({ finalizer, ...by }));
  const examples = (names ?? some).map((name) => objectFacts(type, name, { finalizers, writers }));
  return { finalizers, count, since: DELETED_AT, examples, ...rest };
}

export function contentOf(
  type: ResourceType,
  terminating: ObjectGroup[] = [],
  queued = 0,
): TypeContent {
  const total = terminating.reduce((sum, { count }) => sum + count, 0) + queued;
  return { type, read: readOk({ total, queued, terminating, guarded: [] }) };
}

export function unreadable(type: ResourceType): TypeContent {
  return { type, read: readFailed(failureOf()) };
}

export function failureOf(given: Partial<ReadFailure> = {}): ReadFailure {
  return { kind: 'forbidden', status: 403, message: '403 Forbidden: no', ...given };
}

/** Everything that a diagnosis may ask for was read, and is empty. */
export function snapshot(given: Partial<Snapshot> = {}): Snapshot {
  const content = given.content ?? [];
  const unread = content
    .filter((entry) => !entry.read.ok)
    .map(({ type }) => ({ source: 'content', what: type.resource, reason: '403 Forbidden: no' }));
  return {
    takenAt: NOW,
    namespace: namespaceFacts(),
    discovery: readOk({ types: content.map(({ type }) => type), failedGroups: [] }),
    content,
    pods: readOk([]),
    cluster: emptySources<ClusterSources>(CLUSTER_SOURCES),
    places: { [DEMO]: emptySources<NamespaceSources>(NAMESPACE_SOURCES) },
    nodes: {},
    definitions: {},
    details: {},
    partners: {},
    trials: {},
    unread,
    ...given,
  };
}

function emptySources<Sources extends object>(
  table: {
    [K in keyof Sources]: unknown;
  },
): { [K in keyof Sources]: Read<Sources[K]> } {
  return Object.fromEntries(Object.keys(table).map((key) => [key, readOk([])])) as {
    [K in keyof Sources]: Read<Sources[K]>;
  };
}

/** The same cluster half a minute before. */
export function earlier(content: TypeContent[]): Snapshot {
  return snapshot({ takenAt: EARLIER, content });
}

/** A namespace whose terminating pods are these; their content is in step with them. */
export function withPods(pods: PodFacts[], given: Partial<Snapshot> = {}): Snapshot {
  const terminating = pods.map((pod) => ({
    finalizers: pod.finalizers,
    managers: {},
    count: 1,
    since: pod.deletionTimestamp ?? DELETED_AT,
    examples: [pod],
  }));
  return snapshot({ content: [contentOf(PODS, terminating)], pods: readOk(pods), ...given });
}
