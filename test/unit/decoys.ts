import type { JsonObject } from '../../src/base/json.ts';
import { webhookFacts } from '../../src/model/facts/admission.ts';
import {
  apiServiceFacts,
  bindingFacts,
  definitionFacts,
  leaseFacts,
  roleFacts,
} from '../../src/model/facts/cluster.ts';
import { namespaceFacts } from '../../src/model/facts/metadata.ts';
import { workloadFacts } from '../../src/model/facts/workloads.ts';
import { type Read, readOk } from '../../src/model/read.ts';
import type {
  EventFacts,
  LeaseFacts,
  ObjectFacts,
  PodFacts,
  Snapshot,
} from '../../src/model/snapshot.ts';

/**
 * What busy clusters have beside what counts: namesakes of another kind or group, permissions that no binding grants,
 * guards of other types, what has ended. Nothing of it may change an answer.
 */
export function withDecoys(now: Snapshot): Snapshot {
  const held = heldObjects(now);
  const { cluster, places } = now;
  const workloads = [cluster.deployments, cluster.statefulSets, cluster.daemonSets].flatMap(
    (read) => (read?.ok ? read.value : []),
  );
  const more = <K extends keyof Snapshot['cluster']>(source: K, ...items: unknown[]) => ({
    [source]: added(cluster[source] as Read<unknown[]> | undefined, items),
  });
  return {
    ...now,
    ...(now.logs && { logs: otherLines(now.logs, held, now.takenAt) }),
    cluster: {
      ...cluster,
      ...more('namespaces', ...PLACES.map((place) => namespaceFacts(place))),
      ...more('apiServices', apiServiceFacts(API)),
      ...more('definitions', ...held.map((object) => definitionFacts(namesakeType(object)))),
      ...more(
        'validatingWebhooks',
        ...WEBHOOKS.flatMap(webhookFacts('ValidatingWebhookConfiguration')),
      ),
      ...more(
        'mutatingWebhooks',
        ...WEBHOOKS.flatMap(webhookFacts('MutatingWebhookConfiguration')),
      ),
      ...more('jobs', ...workloads.map(({ name }) => endedJob(name))),
      ...more(
        'clusterRoles',
        roleFacts(ROLE),
        ...held.map((object) => roleFacts(roleBeside(object))),
      ),
      ...more('clusterRoleBindings', ...BINDINGS.map((binding) => bindingFacts(binding))),
      ...more('leases', leaseFacts(LEASE), ...namesakesOfLeases(cluster.leases)),
    },
    places: Object.fromEntries(
      Object.entries(places).map(([namespace, place]) => [
        namespace,
        {
          ...place,
          ...(place.roles && { roles: added(place.roles, [{ ...roleFacts(ROLE), namespace }]) }),
          ...(place.roleBindings && {
            roleBindings: added(
              place.roleBindings,
              BINDINGS.map((binding) => ({ ...bindingFacts(binding), namespace })),
            ),
          }),
          ...(place.pods &&
            namespace !== now.namespace.name && { pods: besideEvicted(place.pods) }),
          ...(place.events && {
            events: added(place.events, [
              ...held.map((object) => eventAbout(object, now.takenAt)),
              ...workloads.map((object) => eventAbout(object, now.takenAt)),
            ]),
          }),
        },
      ]),
    ),
  };
}

/** Pods that a node has evicted, and that others have replaced, stay until somebody deletes them. */
function besideEvicted(pods: Read<PodFacts[]>): Read<PodFacts[]> {
  const evicted = (pods.ok ? pods.value : [])
    .filter(isReplaced)
    .slice(0, 2)
    .map((pod) => ({
      ...{ ...pod, name: `${pod.name}-evicted`, uid: `${pod.uid}-evicted` },
      ...{
        phase: 'Failed',
        ready: false,
        troubles: ['ended: Evicted: The node was low on resource: memory'],
      },
    }));
  return added(pods, evicted);
}

const isReplaced = ({ ready, ownerReferences: [by] }: PodFacts): boolean =>
  ready && by !== undefined && by.kind !== 'Node';

/** Leases with the same names, of programs that have ended. */
function namesakesOfLeases(leases: Read<LeaseFacts[]> | undefined): LeaseFacts[] {
  return (leases?.ok ? leases.value : []).map((lease) => ({
    ...lease,
    ...{ namespace: 'decoy-stays', holder: 'decoy_1', renewTime: OLD, writers: ['decoy'] },
  }));
}

/** Log lines about objects with the same name elsewhere, and with a longer name here. */
function otherLines(logs: NonNullable<Snapshot['logs']>, held: readonly ObjectFacts[], at: string) {
  const lines = held.flatMap(({ namespace, name, kind }) => [
    JSON.stringify({
      level: 'error',
      ts: at,
      msg: 'Reconciler error',
      [kind]: { name, namespace: 'decoy-stays' },
      namespace: 'decoy-stays',
      name,
      error: 'AccessDenied',
    }),
    JSON.stringify({
      level: 'error',
      ts: at,
      msg: 'Reconciler error',
      namespace,
      name: `${name}-decoy`,
      error: 'AccessDenied',
    }),
  ]);
  return Object.fromEntries(Object.entries(logs).map(([key, read]) => [key, added(read, lines)]));
}

function added<T, R extends Read<T[]> | undefined>(read: R, items: unknown[]): R {
  return (read?.ok ? readOk([...read.value, ...(items as T[])]) : read) as R;
}

function heldObjects({ content }: Snapshot): ObjectFacts[] {
  return content.flatMap(({ read }) =>
    read.ok
      ? [...read.value.terminating, ...read.value.guarded].flatMap(({ examples }) =>
          examples.slice(0, 1),
        )
      : [],
  );
}

const OLD = '2026-01-01T00:00:00Z';

const PLACES: JsonObject[] = [
  {
    metadata: { name: 'decoy-ends', uid: 'decoy-1', deletionTimestamp: OLD },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Terminating' },
  },
  { metadata: { name: 'decoy-stays', uid: 'decoy-2' }, status: { phase: 'Active' } },
];

/** An aggregated API of another product, which answers. */
const API: JsonObject = {
  metadata: { name: 'v1.decoy.example.net' },
  spec: {
    group: 'decoy.example.net',
    version: 'v1',
    service: { namespace: 'decoy-stays', name: 'api' },
  },
  status: { conditions: [{ type: 'Available', status: 'True', reason: 'Passed', message: '' }] },
};

/** A type of another group with the kind of the object, whose CRD is going away. */
function namesakeType({ kind }: ObjectFacts): JsonObject {
  const name = `${kind.toLowerCase()}s.decoy.example.net`;
  return { metadata: { name, deletionTimestamp: OLD } };
}

const clientConfig = { service: { namespace: 'decoy-stays', name: 'webhook' } };
const everything = { apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] };
/** None of these is asked about what a deletion does. */
const WEBHOOKS: JsonObject[] = [
  {
    metadata: { name: 'decoy' },
    webhooks: [
      { name: 'connects.decoy', clientConfig, rules: [{ ...everything, operations: ['CONNECT'] }] },
      {
        name: 'group.decoy',
        clientConfig,
        rules: [{ ...everything, apiGroups: ['decoy.example.net'], operations: ['*'] }],
      },
      {
        name: 'labels.decoy',
        clientConfig,
        namespaceSelector: { matchLabels: { decoy: 'yes' } },
        rules: [{ ...everything, operations: ['*'] }],
      },
    ],
  },
];

/** A Job that has done its work; nothing names its account. */
function endedJob(name: string): JsonObject {
  return workloadFacts(
    'batch/v1',
    'Job',
  )({
    metadata: { namespace: 'decoy-stays', name: `install-${name}`, uid: `decoy-job-${name}` },
    spec: { template: { spec: { serviceAccountName: 'decoy', containers: [{ name: 'hook' }] } } },
    status: { conditions: [{ type: 'Complete', status: 'True' }] },
  }) as unknown as JsonObject;
}

const allRules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
/** Nobody has it. */
const ROLE: JsonObject = { metadata: { name: 'decoy' }, rules: allRules };

/** Reads the type of the object, and nobody has it. */
function roleBeside({ apiVersion, kind }: ObjectFacts): JsonObject {
  const [group = ''] = apiVersion.includes('/') ? apiVersion.split('/') : [''];
  const resources = [`${kind.toLowerCase()}s`];
  return {
    metadata: { name: `decoy-${kind.toLowerCase()}` },
    rules: [{ apiGroups: [group], resources, verbs: ['*'] }],
  };
}

const everybody = [{ kind: 'Group', name: 'system:serviceaccounts' }];
/** The first binding names a role that does not exist, the second has no subjects. */
const BINDINGS: JsonObject[] = [
  {
    metadata: { name: 'decoy-dangling' },
    roleRef: { kind: 'ClusterRole', name: 'decoy-does-not-exist' },
    subjects: everybody,
  },
  { metadata: { name: 'decoy-empty' }, roleRef: { kind: 'ClusterRole', name: 'decoy' } },
];

/** Of a program that has ended. */
const LEASE: JsonObject = {
  metadata: { namespace: 'decoy-stays', name: 'decoy' },
  spec: { holderIdentity: 'decoy_1', renewTime: OLD, leaseDurationSeconds: 15 },
};

/** A warning about an object of another kind with the name of this one. */
function eventAbout(
  { namespace, name }: Pick<ObjectFacts, 'namespace' | 'name'>,
  at: string,
): EventFacts {
  return {
    type: 'Warning',
    reason: 'DecoyFailed',
    message: `cannot delete ${name}: AccessDenied`,
    regarding: { kind: 'Decoy', namespace, name, uid: `decoy-${name}` },
    component: 'decoy-operator',
    instance: '',
    at,
  } as EventFacts;
}
