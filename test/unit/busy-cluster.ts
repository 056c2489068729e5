import type { JsonObject } from '../../src/base/json.ts';
import { bindingFacts, leaseFacts, roleFacts } from '../../src/model/facts/cluster.ts';
import { namespaceFacts, type ResourceType } from '../../src/model/facts/metadata.ts';
import { workloadFacts } from '../../src/model/facts/workloads.ts';
import { type Read, readOk } from '../../src/model/read.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';

/** Software that most clusters have, with the permissions of its charts: its API group, namespace, workload and rules. */
const SOFTWARE: readonly Software[] = [
  ['argoproj.io', 'argocd', 'argocd-application-controller', [rule('*', '*', '*')]],
  ['velero.io', 'velero', 'velero', [rule('*', '*', '*')]],
  ['kustomize.toolkit.fluxcd.io', 'flux-system', 'kustomize-controller', [rule('*', '*', '*')]],
  ['operators.coreos.com', 'olm', 'olm-operator', [rule('*', '*', '*')]],
  [
    'cert-manager.io',
    'cert-manager',
    'cert-manager',
    [
      rule('cert-manager.io', '*', '*'),
      rule('', 'secrets', '*'),
      rule('networking.k8s.io', 'ingresses', '*'),
    ],
  ],
  [
    'monitoring.coreos.com',
    'monitoring',
    'prometheus-operator',
    [
      rule('monitoring.coreos.com', '*', '*'),
      rule('apps', 'statefulsets', '*'),
      rule('', 'configmaps', '*'),
      rule('', 'services', '*'),
    ],
  ],
  [
    'kyverno.io',
    'kyverno',
    'kyverno-background-controller',
    [rule('kyverno.io', '*', '*'), rule('*', '*', 'get', 'list', 'watch')],
  ],
  [
    'networking.k8s.io',
    'ingress-nginx',
    'ingress-nginx-controller',
    [
      rule('networking.k8s.io', 'ingresses', 'get', 'list', 'watch'),
      rule('networking.k8s.io', 'ingresses/status', 'update'),
    ],
  ],
  [
    '',
    'kube-system',
    'cloud-controller-manager',
    [
      rule('', 'nodes', '*'),
      rule('', 'services', 'list', 'watch', 'update', 'patch'),
      rule('', 'services/status', 'update', 'patch'),
    ],
  ],
  ['', 'kube-system', 'coredns', [rule('', 'services', 'list', 'watch')]],
];

type Software = [group: string, namespace: string, name: string, rules: JsonObject[]];

function rule(group: string, resource: string, ...verbs: string[]): JsonObject {
  return { apiGroups: [group], resources: [resource], verbs };
}

/** Returns the same cluster with this software, all of it healthy, unless the recording has some of the product. */
export function inBusyCluster(now: Snapshot): Snapshot {
  const text = JSON.stringify([now.content, now.cluster.deployments, now.cluster.statefulSets]);
  const software = SOFTWARE.filter(
    ([group, , name]) =>
      !text.includes(name) && !(group.includes('.') && text.includes(`"${group}`)),
  );
  const known = now.cluster.namespaces?.ok ? now.cluster.namespaces.value : [];
  const places = new Set(software.map(([, namespace]) => namespace));
  const add = <K extends keyof Snapshot['cluster']>(source: K, items: unknown[]) => {
    const read = now.cluster[source] as Read<unknown[]> | undefined;
    return read?.ok ? { [source]: readOk([...read.value, ...items]) } : {};
  };
  const { discovery } = now;
  return {
    ...now,
    discovery: discovery.ok
      ? readOk({
          ...discovery.value,
          types: [...discovery.value.types, ...software.flatMap(typeOf)],
        })
      : discovery,
    cluster: {
      ...now.cluster,
      ...add(
        'namespaces',
        [...places]
          .filter((place) => known.every(({ name }) => name !== place))
          .map((name) =>
            namespaceFacts({
              metadata: { name, uid: `busy-${name}` },
              status: { phase: 'Active' },
            }),
          ),
      ),
      ...add('deployments', software.map(deployment)),
      ...add(
        'clusterRoles',
        software.map(([, , name, rules]) => roleFacts({ metadata: { name }, rules })),
      ),
      ...add('clusterRoleBindings', software.map(binding)),
      ...add(
        'leases',
        software.map((one) => lease(one, now.takenAt)),
      ),
    },
  };
}

/** Returns a type of the product, if it serves one of its own. */
function typeOf([group]: Software): ResourceType[] {
  const isOwn = group.includes('.') && !group.endsWith('k8s.io');
  const names = { resource: 'busies', kind: 'Busy', namespaced: false };
  return isOwn ? [{ group, version: 'v1', ...names, verbs: [] }] : [];
}

function deployment([, namespace, name]: Software) {
  return workloadFacts(
    'apps/v1',
    'Deployment',
  )({
    metadata: { namespace, name, uid: `busy-${name}` },
    spec: {
      replicas: 1,
      template: {
        spec: { serviceAccountName: name, containers: [{ name, image: `example/${name}:1` }] },
      },
    },
    status: { readyReplicas: 1 },
  });
}

function binding([, namespace, name]: Software) {
  return bindingFacts({
    metadata: { name },
    roleRef: { kind: 'ClusterRole', name },
    subjects: [{ kind: 'ServiceAccount', namespace, name }],
  });
}

function lease([, namespace, name]: Software, renewTime: string) {
  return leaseFacts({
    metadata: { namespace, name: `${name}-leader` },
    spec: { holderIdentity: `${name}-7d9f_1`, renewTime, leaseDurationSeconds: 15 },
  });
}
