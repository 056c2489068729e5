import { at, isObject, type JsonObject, stringAt } from '../base/json.ts';
import type { ListOptions } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import {
  apiServiceFacts,
  apiVersionOf,
  attachmentFacts,
  bindingFacts,
  clusterServiceVersionFacts,
  definitionDetail,
  definitionFacts,
  eventFacts,
  identity,
  leaseFacts,
  namespaceFacts,
  type ObjectDetail,
  podFacts,
  policyBindingFacts,
  policyFacts,
  type ResourceType,
  roleFacts,
  serviceFacts,
  type TypeRef,
  typeName,
  type WorkloadFacts,
  webhookFacts,
  workloadFacts,
} from '../model/facts.ts';
import { type Read, type ReadFailure, read } from '../model/read.ts';
import type { ClusterSources, PlaceSources, Unread } from '../model/snapshot.ts';
import { inParallel, listIn, type Reading, readList } from './collections.ts';

/**
 * Everything that is read besides the namespace's content, in one table: reading, "not inspected" and
 * the rights to ask for derive from it. `list` on the type is all that any source needs.
 */
export interface Source<T> {
  /** As it stands in a sentence: "Deployments could not be read". */
  label: string;
  type: TypeRef;
  parse: (item: JsonObject) => T | T[];
  options: Pick<ListOptions, 'metadataOnly' | 'fieldSelector' | 'labelSelector' | 'limit'> & {
    maxItems: number;
  };
  /** Served by some clusters only: where discovery does not know it, there is nothing to read. */
  isOptional: boolean;
}

/** No list is read to its end at any price; what a limit cuts off is said. */
export const MANY = 20_000;

function source<T>(
  apiVersion: string,
  kind: string,
  parse: Source<T>['parse'],
  given: Partial<Source<T>['options'] & Pick<Source<T>, 'label' | 'isOptional'>> = {},
): Source<T> {
  const { label = plural(kind), isOptional = false, ...options } = given;
  const type = typeNamed(apiVersion, kind);
  return { label, type, parse, options: { maxItems: MANY, ...options }, isOptional };
}

export function typeNamed(apiVersion: string, kind: string): TypeRef {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  return { group, version, resource: plural(kind).toLowerCase() };
}

/** As Kubernetes names its own types (apimachinery, meta.UnsafeGuessKindToResource). */
function plural(kind: string): string {
  if (kind.endsWith('s')) return `${kind}es`;
  return kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`;
}

const workloads = (apiVersion: string, kind: string) =>
  source(apiVersion, kind, workloadFacts(apiVersion, kind));
const webhooks = (kind: 'ValidatingWebhookConfiguration' | 'MutatingWebhookConfiguration') =>
  source(ADMISSION, kind, webhookFacts(kind));
const policies = (kind: 'ValidatingAdmissionPolicy' | 'MutatingAdmissionPolicy') =>
  source(ADMISSION, kind, policyFacts(kind), { isOptional: true });
const policyBindings = (kind: string) =>
  source(ADMISSION, kind, policyBindingFacts, { isOptional: true });

const ADMISSION = 'admissionregistration.k8s.io/v1';
const CRDS = ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'] as const;
const RBAC = 'rbac.authorization.k8s.io/v1';
export const PODS = source('v1', 'Pod', podFacts, { label: 'pods' });

export const CLUSTER: {
  [K in Exclude<keyof ClusterSources, 'otherWorkloads'>]: Source<ClusterSources[K][number]>;
} = {
  namespaces: source('v1', 'Namespace', namespaceFacts, { label: 'namespaces' }),
  apiServices: source('apiregistration.k8s.io/v1', 'APIService', apiServiceFacts),
  definitions: source(...CRDS, definitionFacts, { metadataOnly: true }),
  validatingWebhooks: webhooks('ValidatingWebhookConfiguration'),
  mutatingWebhooks: webhooks('MutatingWebhookConfiguration'),
  validatingPolicies: policies('ValidatingAdmissionPolicy'),
  validatingPolicyBindings: policyBindings('ValidatingAdmissionPolicyBinding'),
  mutatingPolicies: policies('MutatingAdmissionPolicy'),
  mutatingPolicyBindings: policyBindings('MutatingAdmissionPolicyBinding'),
  deployments: workloads('apps/v1', 'Deployment'),
  statefulSets: workloads('apps/v1', 'StatefulSet'),
  daemonSets: workloads('apps/v1', 'DaemonSet'),
  replicaSets: workloads('apps/v1', 'ReplicaSet'),
  jobs: workloads('batch/v1', 'Job'),
  cronJobs: workloads('batch/v1', 'CronJob'),
  pods: PODS,
  clusterRoles: source(RBAC, 'ClusterRole', roleFacts),
  clusterRoleBindings: source(RBAC, 'ClusterRoleBinding', bindingFacts),
  // One for each node is there, and none of them is a controller's.
  leases: source('coordination.k8s.io/v1', 'Lease', leaseFacts, {
    fieldSelector: 'metadata.namespace!=kube-node-lease',
  }),
  // Their schemas make them the largest objects of a cluster.
  conversions: source(
    ...CRDS,
    (item) => [definitionDetail(item)].filter((one) => one.conversionService !== undefined),
    { limit: 50 },
  ),
  // OLM copies each into every namespace.
  clusterServiceVersions: source(
    'operators.coreos.com/v1alpha1',
    'ClusterServiceVersion',
    clusterServiceVersionFacts,
    { labelSelector: '!olm.copiedFrom', limit: 50, isOptional: true },
  ),
  volumeAttachments: source('storage.k8s.io/v1', 'VolumeAttachment', attachmentFacts),
  providerNodes: source(
    'v1',
    'Node',
    (node) => ({ providerId: stringAt(node, 'spec', 'providerID') ?? '' }),
    { label: 'nodes', limit: 1, maxItems: 1 },
  ),
};

/** Whose volumes are whose, once they are gone. */
export const CLAIMS = source('v1', 'PersistentVolumeClaim', identity, { metadataOnly: true });

export const PLACE: { [K in keyof PlaceSources]: Source<PlaceSources[K][number]> } = {
  roles: source(RBAC, 'Role', roleFacts),
  roleBindings: source(RBAC, 'RoleBinding', bindingFacts),
  pods: PODS,
  services: source('v1', 'Service', serviceFacts),
  events: source('v1', 'Event', eventFacts, { label: 'events', maxItems: 5_000 }),
};

/** How a failed read stands under "not inspected", with the right that was missing. */
export function unreadOf(
  source: string,
  what: string,
  result: Read<unknown>,
  type: Pick<TypeRef, 'group' | 'resource'>,
  verb = 'list',
): Unread[] {
  if (result.ok) return [];
  const { failure } = result;
  return [{ source, what, reason: failure.message, ...missingRight(failure, type, verb) }];
}

export function missingRight(
  failure: ReadFailure,
  { group, resource }: Pick<TypeRef, 'group' | 'resource'>,
  verb = 'list',
): Pick<Unread, 'grant'> {
  return failure.kind === 'forbidden' ? { grant: { apiGroup: group, resource, verb } } : {};
}

/** What was read, and what of it is missing. */
export interface Answer<T> {
  value: T;
  unread?: Unread[];
  /** What objects say that were read on the way, by UID. */
  details?: Record<string, Read<ObjectDetail>>;
}

/** The whole collection, or why not. */
export async function readSource<T>(
  key: string,
  source: Source<T>,
  { api, signal }: Reading,
): Promise<Answer<Read<T[]>>> {
  const path = collectionPath(source.type);
  const listed = await readList(api, path, source.parse, { ...source.options, signal });
  return answerOf(key, source, listed, listed.ok ? listed.value.items : []);
}

/** What scales and makes pods from a template, of any type that is not read by its name. */
export async function readOtherWorkloads(
  types: readonly ResourceType[],
  deps: Reading,
): Promise<Answer<Read<WorkloadFacts[]>>> {
  const key = 'otherWorkloads';
  const kinds = types.filter(
    ({ scales, namespaced, group, verbs }) =>
      scales && namespaced && group !== 'apps' && verbs.includes('list'),
  );
  const answers = await inParallel(kinds, (type) => {
    const facts = workloadFacts(apiVersionOf(type), type.kind);
    const parse = (item: JsonObject): WorkloadFacts[] =>
      isObject(at(item, 'spec', 'template', 'spec')) ? [facts(item)] : [];
    const options = { maxItems: MANY };
    return readSource(key, { label: typeName(type), type, parse, options, isOptional: true }, deps);
  });
  return {
    value: read(answers.flatMap(({ value }) => (value.ok ? value.value : []))),
    unread: answers.flatMap(({ unread = [] }) => unread),
  };
}

/** The collections of these namespaces. */
export async function readPlaces<T>(
  key: string,
  source: Source<T>,
  namespaces: readonly string[],
  deps: Reading,
): Promise<Map<string, Answer<Read<T[]>>>> {
  const found = new Map<string, T[]>(namespaces.map((name) => [name, []]));
  const { type, parse, options } = source;
  const listing = {
    maxItems: options.maxItems,
    maxInAll: Math.min(MANY, 5 * options.maxItems),
    onItem: (namespace: string, item: JsonObject) =>
      found.get(namespace)?.push(...([parse(item)].flat() as T[])),
    onRestart: (namespace: string) => found.set(namespace, []),
  };
  const ends = await listIn(type, namespaces, listing, deps);
  return new Map(
    [...ends].map(([name, end]) => [name, answerOf(key, source, end, found.get(name) ?? [], name)]),
  );
}

function answerOf<T>(
  key: string,
  { label, type, options }: Source<T>,
  end: Read<{ complete: boolean }>,
  found: T[],
  namespace?: string,
): Answer<Read<T[]>> {
  const place = namespace === undefined ? 'of the cluster' : `in namespace ${namespace}`;
  if (!end.ok) return { value: end, unread: unreadOf(key, `${label} ${place}`, end, type) };
  if (end.value.complete || options.maxItems === 1) return { value: read(found) };
  const what = `more ${label} ${place}`;
  const reason = `only the first ${found.length} are read`;
  return { value: read(found), unread: [{ source: key, what, reason }] };
}
