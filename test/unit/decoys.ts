import type { JsonObject } from '../../src/base/json.ts';
import { type Read, readOk } from '../../src/model/read.ts';
import type { EventFacts, ObjectFacts, PodFacts, Snapshot } from '../../src/model/snapshot.ts';
import {
  CLUSTER_SOURCES,
  type ClusterSources,
  NAMESPACE_SOURCES,
} from '../../src/model/sources.ts';

/** The same reads with these objects as well, where such objects were read. */
function plus<T extends object>(
  reads: T,
  sources: Record<string, { parse: (item: never) => unknown }>,
  objects: Record<string, JsonObject[]>,
): T {
  const all = { ...reads } as Record<string, Read<unknown[]> | undefined>;
  for (const [source, items] of Object.entries(objects))
    all[source] = added(all[source], items.flatMap(sources[source]?.parse as () => unknown[]));
  return all as T;
}

const withMore = (
  now: Snapshot,
  objects: { [K in keyof ClusterSources]?: JsonObject[] },
): Snapshot => ({ ...now, cluster: plus(now.cluster, CLUSTER_SOURCES, objects) });

function added<T, R extends Read<T[]> | undefined>(read: R, items: unknown[]): R {
  return (read?.ok ? readOk([...read.value, ...(items as T[])]) : read) as R;
}

const STAYS = 'decoy-stays';
const OLD = '2026-01-01T00:00:00Z';
const named = (name: string, more: JsonObject = {}): JsonObject => ({
  metadata: { name, ...more },
});
const roleRef = (name: string) => ({ roleRef: { kind: 'ClusterRole', name } });
const leaseOf = (holder: string, renewTime: string): JsonObject => ({
  spec: { holderIdentity: holder, renewTime, leaseDurationSeconds: 15 },
});

/** Nobody has it. */
const ROLE = { ...named('decoy'), rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] };
/** The first binding names a role that does not exist, the second has no subjects. */
const BINDINGS: JsonObject[] = [
  {
    ...{ ...named('decoy-dangling'), ...roleRef('decoy-does-not-exist') },
    subjects: [{ kind: 'Group', name: 'system:serviceaccounts' }],
  },
  { ...named('decoy-empty'), ...roleRef('decoy') },
];

const everything = {
  ...{ apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], operations: ['*'] },
};
/** None of these is asked about what a deletion does. */
const WEBHOOKS: JsonObject = {
  ...named('decoy'),
  webhooks: [
    { name: 'connects.decoy', rules: [{ ...everything, operations: ['CONNECT'] }] },
    { name: 'group.decoy', rules: [{ ...everything, apiGroups: ['decoy.example.net'] }] },
    {
      name: 'labels.decoy',
      namespaceSelector: { matchLabels: { decoy: 'yes' } },
      rules: [everything],
    },
  ].map((one) => ({ ...one, clientConfig: { service: { namespace: STAYS, name: 'webhook' } } })),
};

/** An aggregated API of another product, which answers. */
const API: JsonObject = {
  ...named('v1.decoy.example.net'),
  spec: {
    ...{ group: 'decoy.example.net', version: 'v1' },
    service: { namespace: STAYS, name: 'api' },
  },
  status: { conditions: [{ type: 'Available', status: 'True', reason: 'Passed', message: '' }] },
};

/** A Job that has done its work; nothing names its account. */
const endedJob = (name: string): JsonObject => ({
  ...named(`install-${name}`, { namespace: STAYS, uid: `decoy-job-${name}` }),
  spec: { template: { spec: { serviceAccountName: 'decoy', containers: [{ name: 'hook' }] } } },
  status: { conditions: [{ type: 'Complete', status: 'True' }] },
});

/** Reads the type of the object, and nobody has it. */
const roleBeside = ({ apiVersion, kind }: ObjectFacts): JsonObject => {
  const [group = ''] = apiVersion.includes('/') ? apiVersion.split('/') : [''];
  const word = kind.toLowerCase();
  return {
    ...named(`decoy-${word}`),
    rules: [{ apiGroups: [group], resources: [`${word}s`], verbs: ['*'] }],
  };
};

/**
 * What busy clusters have beside what counts: namesakes of another kind or group, permissions that no binding grants,
 * guards of other types, what has ended. Nothing of it may change an answer.
 */
export function withDecoys(now: Snapshot): Snapshot {
  const held = now.content.flatMap(({ read }) =>
    read.ok
      ? [...read.value.terminating, ...read.value.guarded].flatMap(({ examples }) =>
          examples.slice(0, 1),
        )
      : [],
  );
  const { deployments, statefulSets, daemonSets, leases } = now.cluster;
  const workloads = [deployments, statefulSets, daemonSets].flatMap((read) =>
    read?.ok ? read.value : [],
  );
  const more = withMore(now, {
    namespaces: [
      {
        ...named('decoy-ends', { uid: 'decoy-1', deletionTimestamp: OLD }),
        ...{ spec: { finalizers: ['kubernetes'] }, status: { phase: 'Terminating' } },
      },
      { ...named(STAYS, { uid: 'decoy-2' }), status: { phase: 'Active' } },
    ],
    apiServices: [API],
    // A type of another group with the kind of the object, whose CRD is going away.
    definitions: held.map(({ kind }) =>
      named(`${kind.toLowerCase()}s.decoy.example.net`, { deletionTimestamp: OLD }),
    ),
    validatingWebhooks: [WEBHOOKS],
    mutatingWebhooks: [WEBHOOKS],
    jobs: workloads.map(({ name }) => endedJob(name)),
    clusterRoles: [ROLE, ...held.map(roleBeside)],
    clusterRoleBindings: BINDINGS,
    // Of programs that have ended; each Lease of the cluster has a namesake.
    leases: [
      { ...named('decoy', { namespace: STAYS }), ...leaseOf('decoy_1', OLD) },
      ...(leases?.ok ? leases.value : []).map(({ name }) => ({
        ...named(name, { namespace: STAYS, managedFields: [{ manager: 'decoy' }] }),
        ...leaseOf('decoy_1', OLD),
      })),
    ],
  });
  const events = [...held, ...workloads].map((object) => eventAbout(object, now.takenAt));
  const places = Object.entries(now.places).map(([namespace, given]) => {
    const here = ({ metadata, ...rest }: JsonObject): JsonObject => ({
      ...{ ...rest, metadata: { ...(metadata as JsonObject), namespace } },
    });
    const roles = { roles: [ROLE].map(here), roleBindings: BINDINGS.map(here) };
    const place = plus(given, NAMESPACE_SOURCES, roles);
    if (place.events) place.events = added(place.events, events);
    if (place.pods && namespace !== now.namespace.name) place.pods = besideEvicted(place.pods);
    return [namespace, place];
  });
  const logs = now.logs && { logs: otherLines(now.logs, held, now.takenAt) };
  return { ...more, ...logs, places: Object.fromEntries(places) };
}

/** Pods that a node has evicted, and that others have replaced, stay until somebody deletes them. */
function besideEvicted(pods: Read<PodFacts[]>): Read<PodFacts[]> {
  const troubles = ['ended: Evicted: The node was low on resource: memory'];
  const evicted = (pods.ok ? pods.value : [])
    .filter(({ ready, ownerReferences: [by] }) => ready && by !== undefined && by.kind !== 'Node')
    .slice(0, 2)
    .map((pod) => ({
      ...{ ...pod, name: `${pod.name}-evicted`, uid: `${pod.uid}-evicted` },
      ...{ phase: 'Failed', ready: false, troubles },
    }));
  return added(pods, evicted);
}

/** Log lines about objects with the same name elsewhere, and with a longer name here. */
function otherLines(logs: NonNullable<Snapshot['logs']>, held: readonly ObjectFacts[], ts: string) {
  const failed = { level: 'error', ts, msg: 'Reconciler error', error: 'AccessDenied' };
  const lines = held.flatMap(({ namespace, name, kind }) => {
    const elsewhere = { name, namespace: STAYS };
    return [
      JSON.stringify({ ...failed, [kind]: elsewhere, ...elsewhere }),
      JSON.stringify({ ...failed, namespace, name: `${name}-decoy` }),
    ];
  });
  return Object.fromEntries(Object.entries(logs).map(([key, read]) => [key, added(read, lines)]));
}

/** A warning about an object of another kind with the name of this one. */
function eventAbout({ namespace, name }: { namespace: string; name: string }, at: string) {
  return {
    ...{ type: 'Warning', reason: 'DecoyFailed', component: 'decoy-operator', instance: '', at },
    message: `cannot delete ${name}: AccessDenied`,
    regarding: { kind: 'Decoy', namespace, name, uid: `decoy-${name}` },
  } as EventFacts;
}

/** Its API group, its namespace and workload, and what it may do: `group/resource=verbs`. */
const SOFTWARE = [
  'argoproj.io argocd/argocd-application-controller */*=*',
  'velero.io velero/velero */*=*',
  'kustomize.toolkit.fluxcd.io flux-system/kustomize-controller */*=*',
  'operators.coreos.com olm/olm-operator */*=*',
  'cert-manager.io cert-manager/cert-manager cert-manager.io/*=* /secrets=* networking.k8s.io/ingresses=*',
  'monitoring.coreos.com monitoring/prometheus-operator monitoring.coreos.com/*=* apps/statefulsets=* /configmaps=* /services=*',
  'kyverno.io kyverno/kyverno-background-controller kyverno.io/*=* */*=get,list,watch',
  'networking.k8s.io ingress-nginx/ingress-nginx-controller networking.k8s.io/ingresses=get,list,watch networking.k8s.io/ingresses/status=update',
  ' kube-system/cloud-controller-manager /nodes=* /services=list,watch,update,patch /services/status=update,patch',
  ' kube-system/coredns /services=list,watch',
];

function ruleOf(text: string): JsonObject {
  const [, group = '', resource = '', verbs = ''] = /^([^/]*)\/(.*)=(.*)$/.exec(text) ?? [];
  return { apiGroups: [group], resources: [resource], verbs: verbs.split(',') };
}

/**
 * The same cluster with software that most clusters have, with the permissions of its charts, all of it healthy, unless
 * the recording has some of the product.
 */
export function inBusyCluster(now: Snapshot): Snapshot {
  const text = JSON.stringify([now.content, now.cluster.deployments, now.cluster.statefulSets]);
  const software = SOFTWARE.map((line) => {
    const [group = '', place = '', ...rules] = line.split(' ');
    const [namespace = '', name = ''] = place.split('/');
    return { group, namespace, name, rules: rules.map(ruleOf) };
  }).filter(
    ({ group, name }) =>
      !text.includes(name) && !(group.includes('.') && text.includes(`"${group}`)),
  );
  const known = now.cluster.namespaces?.ok ? now.cluster.namespaces.value : [];
  const places = [...new Set(software.map(({ namespace }) => namespace))].filter((place) =>
    known.every(({ name }) => name !== place),
  );
  const status = { phase: 'Active' };
  const more = withMore(now, {
    namespaces: places.map((name) => ({ ...named(name, { uid: `busy-${name}` }), status })),
    deployments: software.map(({ namespace, name }) => {
      const containers = [{ name, image: `example/${name}:1` }];
      return {
        ...named(name, { namespace, uid: `busy-${name}` }),
        spec: { replicas: 1, template: { spec: { serviceAccountName: name, containers } } },
        status: { readyReplicas: 1 },
      };
    }),
    clusterRoles: software.map(({ name, rules }) => ({ ...named(name), rules })),
    clusterRoleBindings: software.map(({ namespace, name }) => ({
      ...{ ...named(name), ...roleRef(name) },
      subjects: [{ kind: 'ServiceAccount', namespace, name }],
    })),
    leases: software.map(({ namespace, name }) => ({
      ...named(`${name}-leader`, { namespace }),
      ...leaseOf(`${name}-7d9f_1`, now.takenAt),
    })),
  });
  // A type of the product, if it serves one of its own.
  const types = software
    .filter(({ group }) => group.includes('.') && !group.endsWith('k8s.io'))
    .map(({ group }) => ({
      ...{ group, version: 'v1', resource: 'busies', kind: 'Busy', namespaced: false, verbs: [] },
    }));
  const { discovery } = now;
  if (!discovery.ok) return more;
  const all = { ...discovery.value, types: [...discovery.value.types, ...types] };
  return { ...more, discovery: readOk(all) };
}
