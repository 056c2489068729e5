import type { FailedGroup, ResourceType } from '../kubernetes/api.ts';
import type { Read, ReadFailure } from '../read.ts';
import type { Condition, Details, RollCall } from './details.ts';

export type { FailedGroup, ResourceType } from '../kubernetes/api.ts';
export type { ApiServiceFacts, Condition } from './details.ts';

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
