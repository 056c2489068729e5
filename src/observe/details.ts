import type { Read } from '../read.ts';

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
