import type { Read, ReadFailure } from './read.ts';

/**
 * What is read on top of the sweep because a finding raised a question: who owns a finalizer, what
 * state the owner is in, which webhook refuses. Every source keeps its read status.
 */
export interface Details {
  apiServices?: Read<ApiServiceFacts[]>;
  /** Names of the other namespaces that are Terminating, for "not caused by this change". */
  otherTerminating?: Read<string[]>;
  /** By name (`widgets.example.com`); `undefined` in it: the API server has no such CRD. */
  crds: Record<string, Read<CrdFacts | undefined>>;
  /** CRDs that convert through the webhook of a Service. */
  conversions?: Read<CrdFacts[]>;
  /** Status of blocking objects, by UID. */
  statuses: Record<string, Read<ObjectStatus>>;
  /** Deployments, StatefulSets and DaemonSets of the whole cluster. */
  workloads?: Read<WorkloadFacts[]>;
  /** ServiceAccounts that may watch or change objects, and by which binding. */
  grants?: Read<Grant[]>;
  webhooks?: Read<WebhookFacts[]>;
  /** By `namespace/name`; `undefined` in it: there is no such Service. */
  services: Record<string, Read<ServiceFacts | undefined>>;
  /** Warning events by namespace. */
  events: Record<string, Read<EventFacts[]>>;
  /** Leases by namespace. */
  leases: Record<string, Read<LeaseFacts[]>>;
  /** Removals of a finalizer that were tried as dry runs, by `uid finalizer`. */
  trials: Record<string, Trial>;
  /** Attachments of volumes to nodes, for claims that wait for a detach. */
  attachments?: Read<AttachmentFacts[]>;
  /** Whether the nodes are a cloud provider's, whose own controllers run out of sight. */
  isOnProvider?: Read<boolean>;
}

export function noDetails(): Details {
  return { crds: {}, statuses: {}, services: {}, events: {}, leases: {}, trials: {} };
}

/** Who was in the namespace when the gate began, before its content was deleted. */
export interface RollCall {
  at: string;
  workloads: Read<WorkloadFacts[]>;
  grants: Read<Grant[]>;
}

export interface CrdFacts {
  name: string;
  group: string;
  kind: string;
  deletionTimestamp: string | undefined;
  conditions: Condition[];
  conversionService: { namespace: string; name: string } | undefined;
  labels: Record<string, string>;
}

export interface ObjectStatus {
  conditions: Condition[];
  /** Other short texts of the status that may say why: `message`, `reason`, `error`, `lastError`. */
  texts: string[];
  /** Bound volume of a claim. */
  volumeName: string | undefined;
}

export interface WorkloadFacts {
  kind: 'Deployment' | 'StatefulSet' | 'DaemonSet';
  namespace: string;
  name: string;
  uid: string;
  deletionTimestamp: string | undefined;
  /** Wanted and ready replicas (nodes, for a DaemonSet). */
  wanted: number;
  ready: number;
  serviceAccount: string;
  podLabels: Record<string, string>;
  containers: string[];
  labels: Record<string, string>;
  conditions: Condition[];
}

/** One rule that lets a ServiceAccount watch or change objects, with the binding that gives it. */
export interface Grant {
  serviceAccount: { namespace: string; name: string };
  role: string;
  binding: string;
  /** Where it holds; undefined: in all namespaces. */
  namespace: string | undefined;
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

export interface WebhookFacts {
  configuration: {
    kind: 'ValidatingWebhookConfiguration' | 'MutatingWebhookConfiguration';
    name: string;
  };
  name: string;
  failurePolicy: string;
  service: { namespace: string; name: string } | undefined;
  url: string | undefined;
  rules: { apiGroups: string[]; resources: string[]; operations: string[] }[];
  namespaceSelector: LabelRequirement[];
  objectSelector: LabelRequirement[];
  /** CEL conditions, which only the API server can evaluate. */
  hasMatchConditions: boolean;
}

export interface LabelRequirement {
  key: string;
  /** In, NotIn, Exists, DoesNotExist. */
  operator: string;
  values: string[];
}

export interface ServiceFacts {
  namespace: string;
  name: string;
  selector: Record<string, string>;
}

export interface EventFacts {
  type: string;
  reason: string;
  message: string;
  /** The object it is about. */
  regarding: { kind: string; namespace: string; name: string; uid: string };
  /** Component that reported it. */
  source: string;
  at: string | undefined;
}

export interface LeaseFacts {
  namespace: string;
  name: string;
  holder: string | undefined;
  renewTime: string | undefined;
  durationSeconds: number | undefined;
}

/** What the API server answered to the removal of a finalizer, without storing it. */
export type Trial =
  | { answer: 'accepted' }
  | { answer: 'refused'; message: string }
  /** Not allowed to try, or the dry run itself is not supported. */
  | { answer: 'unknown'; message: string };

export interface AttachmentFacts {
  name: string;
  attacher: string;
  volume: string;
  node: string;
  attached: boolean;
  error: string | undefined;
}

export interface ApiServiceFacts {
  name: string;
  group: string;
  version: string;
  /** Absent for built-in and CRD groups, which the API server serves itself. */
  service: { namespace: string; name: string; port: number | undefined } | undefined;
  /** The `Available` condition; undefined when it was never evaluated. */
  available: { status: string; reason: string; message: string; since?: string } | undefined;
}

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  lastTransitionTime?: string;
}

/**
 * Plain data read from the cluster at one time. Every source keeps its read status; a source that
 * was not needed is absent. Rules read this and nothing else, so a recorded snapshot is a test.
 */
export interface Snapshot {
  /** When reading began, by the server's clock. ISO 8601. */
  takenAt: string;
  namespace: NamespaceFacts;
  /** Why the namespace itself could not be read any more; `namespace` is then its last known state. */
  trouble?: ReadFailure;
  discovery: Read<DiscoveryFacts>;
  /** One entry per resource type that can be listed and deleted; pods among them. */
  content: TypeContent[];
  /** Pods that have been asked to go, in full; at most `MAX_POD_FACTS`, the rest only counted. */
  pods: Read<PodFacts[]>;
  /** Nodes of overdue pods, by name. */
  nodes?: Record<string, Read<NodeFacts>>;
  /** What was in the namespace when the gate began; only where it began early enough. */
  rollCall?: RollCall;
  /** What was read on top because a finding raised a question. */
  details?: Details;
}

export const MAX_EXAMPLES = 10;
export const MAX_POD_FACTS = 1_000;

export interface NamespaceFacts {
  name: string;
  uid: string;
  resourceVersion: string;
  phase: string | undefined;
  creationTimestamp: string | undefined;
  deletionTimestamp: string | undefined;
  labels: Record<string, string>;
  finalizers: string[];
  /** Who set each of `finalizers`, from managedFields. */
  writers: FinalizerWriter[];
  specFinalizers: string[];
  conditions: Condition[];
  /** When kube-controller-manager last wrote the status (managedFields): the only freshness stamp. */
  statusWrittenAt: string | undefined;
}

export interface DiscoveryFacts {
  /** How many resource types the server serves in namespaces. */
  namespacedTypes: number;
  /** API groups that are served, without the core group. */
  groups: string[];
  failedGroups: FailedGroup[];
}

/** What a namespace holds of one type. */
export interface TypeContent {
  type: ResourceType;
  read: Read<ContentCount>;
}

export interface ContentCount {
  /** Objects of this type in the namespace. */
  total: number;
  /** Objects without deletionTimestamp: nobody has asked for their deletion yet. */
  queued: number;
  /** Terminating objects, grouped by their finalizers and who wrote them. */
  terminating: ObjectGroup[];
}

/** Objects of one type that are terminating with the same finalizers. Ten thousand are one group. */
export interface ObjectGroup {
  finalizers: string[];
  /** Field manager per finalizer, the same for all objects of the group. */
  managers: Record<string, string>;
  count: number;
  /** Earliest deletionTimestamp of the group. */
  since: string;
  /** The first `MAX_EXAMPLES` objects, in the server's order (by name). */
  examples: ObjectFacts[];
}

export interface ObjectFacts {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
  uid: string;
  resourceVersion: string;
  creationTimestamp: string | undefined;
  deletionTimestamp: string | undefined;
  finalizers: string[];
  labels: Record<string, string>;
  ownerReferences: OwnerReference[];
  writers: FinalizerWriter[];
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
}

/** The managedFields entry that owns `f:metadata` → `f:finalizers` → `v:"<finalizer>"`. */
export interface FinalizerWriter {
  finalizer: string;
  /** Field manager: `fieldManager` of the request, or its User-Agent up to the first slash. */
  manager: string;
  operation: string;
  time: string | undefined;
}

export interface PodFacts extends ObjectFacts {
  phase: string | undefined;
  nodeName: string | undefined;
  deletionGracePeriodSeconds: number | undefined;
  serviceAccountName: string | undefined;
  /** PersistentVolumeClaims that its volumes name. */
  claims: string[];
}

export interface NodeFacts {
  name: string;
  exists: boolean;
  /** Status of the Ready condition: "True", "False", "Unknown"; undefined when it has none. */
  ready: string | undefined;
  readyReason: string | undefined;
  readySince: string | undefined;
  taints: string[];
}

/** What was asked for and could not be read. */
export interface FailedRead {
  what: string;
  failure: ReadFailure;
}

/** A resource type in the version that the server prefers for it. */
export interface ResourceType {
  /** Empty for the core group. */
  group: string;
  version: string;
  /** Plural, as in paths. */
  resource: string;
  kind: string;
  namespaced: boolean;
  verbs: string[];
  categories?: string[];
}

export interface FailedGroup {
  group: string;
  version: string;
  /** `freshness: Stale` in aggregated discovery, or the error of `/apis/<group>/<version>`. */
  reason: string;
}
