import { viewOf } from '../../src/diagnose/ask.ts';
import type { View } from '../../src/diagnose/draft.ts';
import { failed, type Read, type ReadFailure, read } from '../../src/model/read.ts';
import type {
  ApiServiceFacts,
  Condition,
  NamespaceFacts,
  NodeFacts,
  ObjectFacts,
  ObjectGroup,
  PodFacts,
  ResourceType,
  Snapshot,
  TypeContent,
} from '../../src/model/snapshot.ts';
import {
  type CrdFacts,
  type Details,
  type Grant,
  noDetails,
  type ServiceFacts,
  type WebhookFacts,
  type WorkloadFacts,
} from '../../src/model/snapshot.ts';

/** Snapshots for one question at a time. What whole clusters look like is recorded, not built. */

export const DEMO = 'preview-7';
export const DELETED_AT = '2026-03-02T10:00:00Z';
/** Half a minute after the first look, a good minute after the deletion. */
export const NOW = '2026-03-02T10:01:30.000Z';
export const EARLIER = '2026-03-02T10:01:00.000Z';

export const PODS = typeOf('', 'pods', 'Pod');
export const CONFIG_MAPS = typeOf('', 'configmaps', 'ConfigMap');
export const CLAIMS = typeOf('', 'persistentvolumeclaims', 'PersistentVolumeClaim');
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
    conditions: GREEN,
    statusWrittenAt: '2026-03-02T10:00:06Z',
    ...given,
  };
}

export function condition(type: string, status: string, message = '', reason = ''): Condition {
  return { type, status, reason, message };
}

/** All five, as on Kubernetes >= 1.33 while a pod remains, and whenever nothing is wrong. */
export const GREEN: Condition[] = [
  condition('NamespaceDeletionDiscoveryFailure', 'False'),
  condition('NamespaceDeletionGroupVersionParsingFailure', 'False'),
  condition('NamespaceDeletionContentFailure', 'False'),
  condition('NamespaceContentRemaining', 'False', 'All content successfully removed'),
  condition('NamespaceFinalizersRemaining', 'False'),
];

/** The green ones, but for these. */
export function conditions(...given: Condition[]): Condition[] {
  return GREEN.map((one) => given.find(({ type }) => type === one.type) ?? one);
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
    finalizers: [],
    labels: {},
    ownerReferences: [],
    writers: [],
    ...given,
  };
}

export function podFacts(name: string, given: Partial<PodFacts> = {}): PodFacts {
  return {
    ...objectFacts(PODS, name),
    phase: 'Running',
    nodeName: 'node-1',
    deletionGracePeriodSeconds: 30,
    serviceAccountName: 'default',
    claims: [],
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
  const called =
    names ?? Array.from({ length: Math.min(count, 10) }, (_, index) => `${type.resource}-${index}`);
  const writers =
    manager === undefined ? [] : finalizers.map((finalizer) => writer(finalizer, manager));
  return {
    finalizers,
    managers: Object.fromEntries(writers.map((entry) => [entry.finalizer, entry.manager])),
    count,
    since: DELETED_AT,
    examples: called.map((name) => objectFacts(type, name, { finalizers, writers })),
    ...rest,
  };
}

export function writer(finalizer: string, manager: string) {
  return { finalizer, manager, operation: 'Update', time: '2026-03-02T09:30:00Z' };
}

export function contentOf(
  type: ResourceType,
  terminating: ObjectGroup[] = [],
  queued = 0,
): TypeContent {
  const total = terminating.reduce((sum, { count }) => sum + count, 0) + queued;
  return { type, read: read({ total, queued, terminating }) };
}

export function unreadable(type: ResourceType, failure: Partial<ReadFailure> = {}): TypeContent {
  return { type, read: failed(failureOf(failure)) };
}

export function failureOf(given: Partial<ReadFailure> = {}): ReadFailure {
  return { kind: 'forbidden', status: 403, message: '403 Forbidden: no', ...given };
}

export function snapshot(given: Partial<Snapshot> = {}): Snapshot {
  const content = given.content ?? [];
  return {
    takenAt: NOW,
    namespace: namespaceFacts(),
    discovery: read({
      namespacedTypes: content.length,
      groups: [...new Set(content.map(({ type }) => type.group))].filter((name) => name !== ''),
      failedGroups: [],
    }),
    content,
    pods: read([]),
    ...given,
  };
}

/** The same cluster half a minute before. */
export function earlier(content: TypeContent[], given: Partial<Snapshot> = {}): Snapshot {
  return snapshot({ takenAt: EARLIER, content, ...given });
}

export function view(now: Partial<Snapshot> = {}, before?: Snapshot): View {
  return viewOf(snapshot(now), before);
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
  return snapshot({ content: [contentOf(PODS, terminating)], pods: read(pods), ...given });
}

export function nodeFacts(
  name: string,
  given: Partial<NodeFacts> = {},
): Record<string, Read<NodeFacts>> {
  return {
    [name]: read({
      name,
      exists: true,
      ready: 'True',
      readyReason: 'KubeletReady: kubelet is posting ready status',
      readySince: '2026-03-02T08:00:00Z',
      taints: [],
      ...given,
    }),
  };
}

export function detailsOf(given: Partial<Details> = {}): Details {
  return { ...noDetails(), ...given };
}

/** Everything that was asked for was there to be read, and empty. */
export function lookedEverywhere(given: Partial<Details> = {}): Details {
  return detailsOf({
    workloads: read([]),
    grants: read([]),
    webhooks: read([]),
    apiServices: read([]),
    isOnProvider: read(false),
    ...given,
  });
}

export function workload(name: string, given: Partial<WorkloadFacts> = {}): WorkloadFacts {
  return {
    kind: 'Deployment',
    namespace: 'ops',
    name,
    uid: `uid-${name}`,
    deletionTimestamp: undefined,
    wanted: 1,
    ready: 1,
    serviceAccount: name,
    podLabels: { app: name },
    containers: ['main'],
    labels: {},
    conditions: [],
    ...given,
  };
}

export function grant(serviceAccount: string, given: Partial<Grant> = {}): Grant {
  const [namespace = '', name = ''] = serviceAccount.split('/');
  return {
    serviceAccount: { namespace, name },
    role: `ClusterRole ${name}`,
    binding: name,
    namespace: undefined,
    apiGroups: ['example.com'],
    resources: ['widgets', 'widgets/finalizers'],
    verbs: ['watch', 'update', 'patch'],
    ...given,
  };
}

export function crd(given: Partial<CrdFacts> = {}): Record<string, Read<CrdFacts | undefined>> {
  const name = given.name ?? 'widgets.example.com';
  return {
    [name]: read({
      name,
      group: 'example.com',
      kind: 'Widget',
      deletionTimestamp: undefined,
      conditions: [],
      conversionService: undefined,
      labels: {},
      ...given,
    }),
  };
}

export function webhook(given: Partial<WebhookFacts> = {}): WebhookFacts {
  return {
    configuration: { kind: 'ValidatingWebhookConfiguration', name: 'guard' },
    name: 'guard.example.com',
    failurePolicy: 'Fail',
    service: { namespace: 'ops', name: 'guard' },
    url: undefined,
    rules: [{ apiGroups: ['example.com'], resources: ['widgets'], operations: ['*'] }],
    namespaceSelector: [],
    objectSelector: [],
    hasMatchConditions: false,
    ...given,
  };
}

export function service(
  key: string,
  selector: Record<string, string> | undefined,
): Record<string, Read<ServiceFacts | undefined>> {
  const [namespace = '', name = ''] = key.split('/');
  return { [key]: read(selector === undefined ? undefined : { namespace, name, selector }) };
}

export function apiService(name: string, given: Partial<ApiServiceFacts> = {}): ApiServiceFacts {
  const [version = '', ...rest] = name.split('.');
  return {
    name,
    group: rest.join('.'),
    version,
    service: { namespace: 'ops', name: 'backend', port: 443 },
    available: { status: 'True', reason: 'Passed', message: 'all checks passed' },
    ...given,
  };
}
