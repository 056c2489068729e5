import type {
  BindingFacts,
  DefinitionDetail,
  EventFacts,
  NodeFacts,
  RoleFacts,
} from './facts/cluster.ts';
import type { DetailParser, ObjectDetail, Reference } from './facts/detail.ts';
import type { NamespaceFacts, ObjectFacts, ResourceType } from './facts/metadata.ts';
import type { PodFacts, WorkloadFacts } from './facts/workloads.ts';
import type { NotInspected } from './finding.ts';
import type { Read } from './read.ts';
import type { ClusterSources, NamespaceSources } from './sources.ts';

export type * from './facts/admission.ts';
export type * from './facts/cluster.ts';
export type * from './facts/detail.ts';
export type * from './facts/metadata.ts';
export type * from './facts/shape.ts';
export type * from './facts/workloads.ts';
export type { ClusterSources, NamespaceSources };

/** Plain data read from the cluster at one time. A source that was not needed is absent. Rules read only this. */
export interface Snapshot {
  takenAt: string;
  namespace: NamespaceFacts;
  discovery: Read<Discovery>;
  /** The content by resource type, of all types that can be listed and deleted, pods included. */
  content: TypeContent[];
  /** In full; at most `MAX_PODS`. */
  pods: Read<PodFacts[]>;
  cluster: Partial<{ [K in keyof ClusterSources]: Read<ClusterSources[K]> }>;
  /** By name: this namespace and those of controllers. */
  places: Record<string, Partial<{ [K in keyof NamespaceSources]: Read<NamespaceSources[K]> }>>;
  /** Nodes by name. `undefined` inside a successful read: the API server says that the node does not exist. */
  nodes: Record<string, Read<NodeFacts | undefined>>;
  definitions: Record<string, Read<DefinitionDetail | undefined>>;
  /** Of held objects, by UID. */
  details: Record<string, Read<ObjectDetail>>;
  /** Objects outside of the namespace that a held object waits for, by `partnerKey`. */
  partners: Record<string, Read<ObjectFacts | undefined>>;
  /** Removals of a finalizer that were tried as dry runs, by `trialKey`. */
  trials: Record<string, Trial>;
  /** Log lines of suspected controllers about this namespace, by `logKey`. Absent unless `owner-logs` allows it. */
  logs?: Record<string, Read<string[]>>;
  baseline?: Baseline;
  forecast?: Forecast;
  unread: NotInspected[];
}

/** What a forecast adds; `content` and `pods` are then what would be left after a deletion. */
export interface Forecast {
  /** Deletions that were sent as dry runs, by the name of the type. */
  deletions: Record<string, Trial>;
  present: Pick<Snapshot, 'content' | 'pods'>;
  /** Other namespaces that would be deleted at the same time. */
  together: string[];
  /** Objects that an owner may need, by type and finalizer; see `wantedInputs`. */
  samples?: Record<string, SampleFound>;
}

export type SampleFound = { sample?: ObjectFacts & Candidate };

export type Candidate = Pick<ObjectFacts, 'name' | 'namespace' | 'labels'> & {
  /** Undefined if only some of them are known. */
  allAnnotations?: Record<string, string>;
};

export const MAX_EXAMPLES = 10;
export const MAX_PODS = 2_000;

export interface Discovery {
  types: ResourceType[];
  /** Group-versions whose resources could not be read. */
  failedGroups: { group: string; version: string; reason: string }[];
}

export type TypeContent = { type: ResourceType; read: Read<ContentCount> };

export interface ContentCount {
  total: number;
  /** Objects whose deletion was not requested yet. */
  queued: number;
  terminating: ObjectGroup[];
  /** Of the queued objects those with finalizers: after a deletion request they would terminate. */
  guarded: ObjectGroup[];
  /** A queued object, for a dry run of its deletion. */
  sample?: ObjectFacts;
}

/** Objects of one type with the same finalizers by the same field managers. Ten thousand such objects are one group. */
export interface ObjectGroup {
  finalizers: string[];
  count: number;
  /** The earliest deletionTimestamp; empty if nothing is terminating. */
  since: string;
  /** The first `MAX_EXAMPLES` objects, in the server's order (by name). */
  examples: ObjectFacts[];
}

/** The answer of the API server to a dry run. */
export type Trial =
  | { answer: 'accepted' /** From 1 s on. */; seconds?: number }
  | { answer: 'refused'; message: string }
  /** Accepted, but the finalizer was still there in the answer: a webhook or the type put it back. */
  | { answer: 'undone' }
  /** The dry run was not permitted or is not supported. */
  | { answer: 'unknown'; message: string };

/** From before the content was deleted, if the gate began early enough. */
export interface Baseline {
  workloads: Read<WorkloadFacts[]>;
  roles: Read<RoleFacts[]>;
  roleBindings: Read<BindingFacts[]>;
  /** Warning Events. They are deleted with the namespace, which refuses new ones. */
  events: Read<EventFacts[]>;
}

type PartnerRef = Pick<Reference, 'kind' | 'group' | 'namespace' | 'name'>;

export function partnerKey(ref: PartnerRef): string {
  return `${ref.kind}.${ref.group ?? ''}/${ref.namespace ?? ''}/${ref.name}`;
}

export function trialKey(uid: string, finalizer: string): string {
  return `${uid} ${finalizer}`;
}

/** A container of a suspected controller; `isPrevious`: its log before the last crash. */
export type LogSource = { namespace: string; pod: string; container: string; isPrevious: boolean };

export function logKey({ namespace, pod, container, isPrevious }: LogSource): string {
  return `${namespace}/${pod}/${container}${isPrevious ? ' (previous)' : ''}`;
}

type Identity = Pick<ObjectFacts, 'namespace' | 'name' | 'uid'>;

export interface WantedSample {
  key: string;
  type: ResourceType;
  isMeant: (candidate: ObjectFacts & Candidate) => boolean;
}

/** Sources that the diagnosis of a snapshot needs beyond its content, whether or not they were read. */
export interface Wanted {
  cluster: (keyof ClusterSources)[];
  places: { namespace: string; sources: (keyof NamespaceSources)[] }[];
  nodes: string[];
  definitions: string[];
  details: { type: ResourceType; object: ObjectFacts }[];
  partners: { type: ResourceType; namespace: string | undefined; name: string }[];
  /** For `details` and `partners`. */
  parseDetail: DetailParser;
  /** Removals to send as dry runs; never for aggregated types, whose servers may ignore `dryRun`. */
  trials: {
    /** `namespaces/finalize` stands for the last request of the namespace controller. */
    type: ResourceType;
    object: Identity & Pick<ObjectFacts, 'finalizers'>;
    finalizer: string;
  }[];
  /** In a forecast: objects that an owner may need. */
  samples?: WantedSample[];
  logs: LogSource[];
  /** In a forecast; never for aggregated types. */
  deletions: { type: ResourceType; object: Identity; key?: string }[];
}
