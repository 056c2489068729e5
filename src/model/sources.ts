import type { JsonObject } from '../base/json.ts';
import { policyBindingFacts, policyFacts, webhookFacts } from './facts/admission.ts';
import {
  apiServiceFacts,
  bindingFacts,
  definitionDetail,
  definitionFacts,
  eventFacts,
  leaseFacts,
  roleFacts,
  serviceFacts,
} from './facts/cluster.ts';
import { namespaceFacts, type TypeRef } from './facts/metadata.ts';
import { at, shape } from './facts/shape.ts';
import { podFacts, workloadFacts } from './facts/workloads.ts';

/** All that is read besides the namespace's content. Reading, "not inspected" and the permissions derive from it. */
export interface Source<T> {
  label: string;
  type: TypeRef;
  parse: (item: JsonObject) => T | T[];
  metadataOnly?: boolean;
  fieldSelector?: string;
  limit?: number;
  maxItems: number;
  /** Whether only some clusters serve the type. If discovery does not know it, there is nothing to read. */
  isOptional: boolean;
}

/** A list that reaches it is reported as incomplete. */
export const MAX_ITEMS = 20_000;

function source<T>(
  apiVersion: string,
  kind: string,
  parse: Source<T>['parse'],
  given: Partial<Source<T>> = {},
): Source<T> {
  const type = typeNamed(apiVersion, kind);
  return { label: plural(kind), type, parse, maxItems: MAX_ITEMS, isOptional: false, ...given };
}

export function typeNamed(apiVersion: string, kind: string): TypeRef {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  return { group, version, resource: plural(kind).toLowerCase() };
}

/** As Kubernetes derives the resource of its own kinds (apimachinery, meta.UnsafeGuessKindToResource). */
function plural(kind: string): string {
  if (kind.endsWith('s')) return `${kind}es`;
  return kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`;
}

const ADMISSION = 'admissionregistration.k8s.io/v1';
const isOptional = true;
const workloads = (apiVersion: string, kind: string) =>
  source(apiVersion, kind, workloadFacts(apiVersion, kind));
const webhooks = (kind: string) => source(ADMISSION, kind, webhookFacts(kind));
const policies = (kind: string) => source(ADMISSION, kind, policyFacts(kind), { isOptional });
const bindings = (kind: string) => source(ADMISSION, kind, policyBindingFacts, { isOptional });
const CRDS = ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'] as const;
const RBAC = 'rbac.authorization.k8s.io/v1';
export const POD_SOURCE = source('v1', 'Pod', podFacts, { label: 'pods' });

export const CLUSTER_SOURCES = {
  namespaces: source('v1', 'Namespace', namespaceFacts, { label: 'namespaces' }),
  apiServices: source('apiregistration.k8s.io/v1', 'APIService', apiServiceFacts),
  // The schemas of CRDs are large, and the metadata names the installer.
  definitions: source(...CRDS, definitionFacts, { metadataOnly: true }),
  validatingWebhooks: webhooks('ValidatingWebhookConfiguration'),
  mutatingWebhooks: webhooks('MutatingWebhookConfiguration'),
  validatingPolicies: policies('ValidatingAdmissionPolicy'),
  validatingPolicyBindings: bindings('ValidatingAdmissionPolicyBinding'),
  mutatingPolicies: policies('MutatingAdmissionPolicy'),
  mutatingPolicyBindings: bindings('MutatingAdmissionPolicyBinding'),
  deployments: workloads('apps/v1', 'Deployment'),
  statefulSets: workloads('apps/v1', 'StatefulSet'),
  daemonSets: workloads('apps/v1', 'DaemonSet'),
  replicaSets: workloads('apps/v1', 'ReplicaSet'),
  jobs: workloads('batch/v1', 'Job'),
  cronJobs: workloads('batch/v1', 'CronJob'),
  // Pods are read only if a binding to all accounts makes every pod a possible controller.
  pods: POD_SOURCE,
  clusterRoles: source(RBAC, 'ClusterRole', roleFacts),
  clusterRoleBindings: source(RBAC, 'ClusterRoleBinding', bindingFacts),
  // The excluded namespace has a Lease for each node, and none of a controller.
  leases: source('coordination.k8s.io/v1', 'Lease', leaseFacts, {
    fieldSelector: 'metadata.namespace!=kube-node-lease',
  }),
  // CRDs with a conversion webhook.
  conversions: source(
    ...CRDS,
    (item) => [definitionDetail(item)].filter((one) => one.conversionService !== undefined),
    { limit: 50 },
  ),
  // A single node shows whether the nodes are a cloud provider's, whose controllers are not visible in the cluster.
  providerNodes: source('v1', 'Node', shape({ providerId: at.text('spec.providerID') }), {
    ...{ label: 'nodes', limit: 1, maxItems: 1 },
  }),
};

export const NAMESPACE_SOURCES = {
  roles: source(RBAC, 'Role', roleFacts),
  roleBindings: source(RBAC, 'RoleBinding', bindingFacts),
  pods: POD_SOURCE,
  services: source('v1', 'Service', serviceFacts),
  events: source('v1', 'Event', eventFacts, { label: 'events', maxItems: 5_000 }),
};

type Facts<T> = { [K in keyof T]: T[K] extends Source<infer F> ? F[] : never };
export type ClusterSources = Facts<typeof CLUSTER_SOURCES>;
export type NamespaceSources = Facts<typeof NAMESPACE_SOURCES>;
