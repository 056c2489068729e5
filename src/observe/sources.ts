import type { JsonObject } from '../base/json.ts';
import { stringAt } from '../base/json.ts';
import type { KubernetesApi, ListOptions } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { type Read, type ReadFailure, read } from '../model/read.ts';
import type {
  Claim,
  ClusterSources,
  PlaceSources,
  ResourceType,
  Unread,
} from '../model/snapshot.ts';
import { listIn } from './collections.ts';
import {
  apiServiceFacts,
  attachmentFacts,
  bindingFacts,
  clusterServiceVersionFacts,
  definitionDetail,
  definitionFacts,
  eventFacts,
  leaseFacts,
  namespaceFacts,
  podFacts,
  policyBindingFacts,
  policyFacts,
  roleFacts,
  serviceFacts,
  webhookFacts,
  workloadFacts,
} from './parse.ts';

/**
 * Everything that is read besides the namespace's content, in one table: reading, "not inspected" and
 * the rights to ask for derive from it. `list` on the type is all that any source needs.
 */
export interface Source<T> {
  /** As it stands in a sentence: "Deployments could not be read". */
  label: string;
  type: Pick<ResourceType, 'group' | 'version' | 'resource'>;
  parse: (item: JsonObject) => T | T[];
  options?: Pick<
    ListOptions,
    'metadataOnly' | 'fieldSelector' | 'labelSelector' | 'limit' | 'maxItems'
  >;
  /** Served by some clusters only: where discovery does not know it, there is nothing to read. */
  isOptional?: true;
}

const PODS: ResourceType = {
  group: '',
  version: 'v1',
  resource: 'pods',
  kind: 'Pod',
  namespaced: true,
  verbs: [],
};

/** No list is read to its end at any price; what a limit cuts off is said. */
const MANY = 20_000;
const MAX_EVENTS = 5_000;

const apps = (resource: string, kind: string): Source<ClusterSources['deployments'][number]> => ({
  label: `${kind}s`,
  type: { group: 'apps', version: 'v1', resource },
  parse: workloadFacts(kind),
  options: { maxItems: MANY },
});

const batch = (resource: string, kind: string): Source<ClusterSources['jobs'][number]> => ({
  ...apps(resource, kind),
  type: { group: 'batch', version: 'v1', resource },
});

const ADMISSION = { group: 'admissionregistration.k8s.io', version: 'v1' };
const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1' };

export const CLUSTER: { [K in keyof ClusterSources]: Source<ClusterSources[K][number]> } = {
  namespaces: {
    label: 'namespaces',
    type: { group: '', version: 'v1', resource: 'namespaces' },
    parse: namespaceFacts,
    options: { maxItems: MANY },
  },
  apiServices: {
    label: 'APIServices',
    type: { group: 'apiregistration.k8s.io', version: 'v1', resource: 'apiservices' },
    parse: apiServiceFacts,
  },
  definitions: {
    label: 'CustomResourceDefinitions',
    type: {
      group: 'apiextensions.k8s.io',
      version: 'v1',
      resource: 'customresourcedefinitions',
    },
    parse: definitionFacts,
    options: { metadataOnly: true },
  },
  validatingWebhooks: {
    label: 'ValidatingWebhookConfigurations',
    type: { ...ADMISSION, resource: 'validatingwebhookconfigurations' },
    parse: webhookFacts('ValidatingWebhookConfiguration'),
  },
  mutatingWebhooks: {
    label: 'MutatingWebhookConfigurations',
    type: { ...ADMISSION, resource: 'mutatingwebhookconfigurations' },
    parse: webhookFacts('MutatingWebhookConfiguration'),
  },
  validatingPolicies: {
    label: 'ValidatingAdmissionPolicies',
    type: { ...ADMISSION, resource: 'validatingadmissionpolicies' },
    parse: policyFacts('ValidatingAdmissionPolicy'),
    isOptional: true,
  },
  validatingPolicyBindings: {
    label: 'ValidatingAdmissionPolicyBindings',
    type: { ...ADMISSION, resource: 'validatingadmissionpolicybindings' },
    parse: policyBindingFacts,
    isOptional: true,
  },
  mutatingPolicies: {
    label: 'MutatingAdmissionPolicies',
    type: { ...ADMISSION, resource: 'mutatingadmissionpolicies' },
    parse: policyFacts('MutatingAdmissionPolicy'),
    isOptional: true,
  },
  mutatingPolicyBindings: {
    label: 'MutatingAdmissionPolicyBindings',
    type: { ...ADMISSION, resource: 'mutatingadmissionpolicybindings' },
    parse: policyBindingFacts,
    isOptional: true,
  },
  deployments: apps('deployments', 'Deployment'),
  statefulSets: apps('statefulsets', 'StatefulSet'),
  daemonSets: apps('daemonsets', 'DaemonSet'),
  replicaSets: apps('replicasets', 'ReplicaSet'),
  jobs: batch('jobs', 'Job'),
  cronJobs: batch('cronjobs', 'CronJob'),
  pods: {
    label: 'pods',
    type: PODS,
    parse: (item) => podFacts(item, PODS),
    options: { maxItems: MANY },
  },
  clusterRoles: {
    label: 'ClusterRoles',
    type: { ...RBAC, resource: 'clusterroles' },
    parse: roleFacts,
    options: { maxItems: MANY },
  },
  clusterRoleBindings: {
    label: 'ClusterRoleBindings',
    type: { ...RBAC, resource: 'clusterrolebindings' },
    parse: bindingFacts,
    options: { maxItems: MANY },
  },
  leases: {
    label: 'Leases',
    type: { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' },
    parse: leaseFacts,
    // One for each node is there, and none of them is a controller's.
    options: { fieldSelector: 'metadata.namespace!=kube-node-lease', maxItems: MANY },
  },
  conversions: {
    label: 'CustomResourceDefinitions',
    type: {
      group: 'apiextensions.k8s.io',
      version: 'v1',
      resource: 'customresourcedefinitions',
    },
    parse: (item) => {
      const definition = definitionDetail(item);
      return definition.conversionService === undefined ? [] : definition;
    },
    // Their schemas make them the largest objects of a cluster.
    options: { limit: 50, maxItems: MANY },
  },
  clusterServiceVersions: {
    label: 'ClusterServiceVersions',
    type: {
      group: 'operators.coreos.com',
      version: 'v1alpha1',
      resource: 'clusterserviceversions',
    },
    parse: clusterServiceVersionFacts,
    // OLM copies each into every namespace.
    options: { labelSelector: '!olm.copiedFrom', limit: 50 },
    isOptional: true,
  },
  volumeAttachments: {
    label: 'VolumeAttachments',
    type: { group: 'storage.k8s.io', version: 'v1', resource: 'volumeattachments' },
    parse: attachmentFacts,
    options: { maxItems: MANY },
  },
  providerNodes: {
    label: 'nodes',
    type: { group: '', version: 'v1', resource: 'nodes' },
    parse: (node) => ({ providerId: stringAt(node, 'spec', 'providerID') ?? '' }),
    options: { limit: 1, maxItems: 1 },
  },
};

/** Whose volumes are whose, once they are gone. */
export const CLAIMS: Source<Claim> = {
  label: 'PersistentVolumeClaims',
  type: { group: '', version: 'v1', resource: 'persistentvolumeclaims' },
  parse: (item) => ({
    name: stringAt(item, 'metadata', 'name') ?? '',
    uid: stringAt(item, 'metadata', 'uid') ?? '',
  }),
  options: { metadataOnly: true, maxItems: MANY },
};

export const PLACE: { [K in keyof PlaceSources]: Source<PlaceSources[K][number]> } = {
  roles: { label: 'Roles', type: { ...RBAC, resource: 'roles' }, parse: roleFacts },
  roleBindings: {
    label: 'RoleBindings',
    type: { ...RBAC, resource: 'rolebindings' },
    parse: bindingFacts,
  },
  pods: {
    label: 'pods',
    type: PODS,
    parse: (item) => podFacts(item, PODS),
    options: { maxItems: MANY },
  },
  services: {
    label: 'Services',
    type: { group: '', version: 'v1', resource: 'services' },
    parse: serviceFacts,
  },
  events: {
    label: 'events',
    type: { group: '', version: 'v1', resource: 'events' },
    parse: eventFacts,
    options: { maxItems: MAX_EVENTS },
  },
};

/** How a failed read stands under "not inspected", with the right that was missing. */
export function unreadOf(
  source: string,
  what: string,
  result: Read<unknown>,
  type: Pick<ResourceType, 'group' | 'resource'>,
  verb: string,
): Unread[] {
  if (result.ok) return [];
  const { failure } = result;
  return [{ source, what, reason: failure.message, ...missingRight(failure, type, verb) }];
}

export function missingRight(
  failure: ReadFailure,
  { group, resource }: Pick<ResourceType, 'group' | 'resource'>,
  verb: string,
): Pick<Unread, 'grant'> {
  return failure.kind === 'forbidden' ? { grant: { apiGroup: group, resource, verb } } : {};
}

/** What was read, and what of it is missing. */
export interface Answer<T> {
  value: T;
  unread?: Unread[];
}

/** The whole collection, or why not. */
export async function readSource<T>(
  key: string,
  source: Source<T>,
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Answer<Read<T[]>>> {
  const found: T[] = [];
  const end = await api.list(collectionPath(source.type), {
    ...source.options,
    signal,
    onItem: (item) => found.push(...parsed(source, item)),
    onRestart: () => {
      found.length = 0;
    },
  });
  return answerOf(key, source, end, found);
}

/** The collections of these namespaces. */
export async function readPlaces<T>(
  key: string,
  source: Source<T>,
  namespaces: readonly string[],
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Map<string, Answer<Read<T[]>>>> {
  const found = new Map<string, T[]>(namespaces.map((name) => [name, []]));
  const ends = await listIn(
    api,
    source.type,
    namespaces,
    {
      maxItems: source.options?.maxItems,
      maxInAll: MANY,
      onItem: (namespace, item) => found.get(namespace)?.push(...parsed(source, item)),
      onRestart: (namespace) => found.set(namespace, []),
    },
    signal,
  );
  return new Map(
    [...ends].map(([name, end]) => [
      name,
      answerOf(key, source, end, found.get(name) as T[], name),
    ]),
  );
}

function parsed<T>({ parse }: Source<T>, item: JsonObject): T[] {
  const value = parse(item);
  return Array.isArray(value) ? value : [value];
}

function answerOf<T>(
  key: string,
  source: Source<T>,
  end: Read<{ complete: boolean }>,
  found: T[],
  namespace?: string,
): Answer<Read<T[]>> {
  const place = namespace === undefined ? 'of the cluster' : `in namespace ${namespace}`;
  const { label, type } = source;
  if (!end.ok) return { value: end, unread: unreadOf(key, `${label} ${place}`, end, type, 'list') };
  if (end.value.complete || source.options?.maxItems === 1) return { value: read(found) };
  const reason = `only the first ${found.length} are read`;
  return {
    value: read(found),
    unread: [{ source: key, what: `more ${label} ${place}`, reason }],
  };
}
