import type { Condition } from '../observe/snapshot.ts';

/** The public vocabulary of findings: README, outputs, reports and tests use exactly these. */
export const FINDING_CODES = [
  'object-finalizer',
  'namespace-finalizer',
  'namespace-spec-finalizer',
  'owner-missing',
  'owner-scaled-to-zero',
  'owner-not-ready',
  'owner-failing',
  'owner-running',
  'owner-unknown',
  'apiservice-unavailable',
  'discovery-failed',
  'api-failing',
  'conversion-webhook-failing',
  'admission-webhook-failing',
  'admission-denied',
  'pod-grace-period',
  'pod-node-unavailable',
  'pod-not-confirmed',
  'volume-in-use',
  'crd-terminating',
  'deletion-forbidden',
  'storage-unreadable',
  'namespace-controller-inactive',
  'content-deleting',
  'unexplained',
] as const;

export type FindingCode = (typeof FINDING_CODES)[number];

export interface Subject {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name: string;
}

export interface Remedy {
  text: string;
  command?: string;
  /** What it may cost or break; absent when it is safe. */
  risk?: string;
}

/** One thing that something else waits for, and why it does not proceed. The shape of report.json. */
export interface Finding {
  id: string;
  code: FindingCode;
  subject: Subject;
  finalizer?: string;
  /** A clause about the subject, without naming it: "is held by finalizer x". */
  message: string;
  evidence: string[];
  /** ISO 8601. */
  since?: string;
  scope: 'namespace' | 'cluster';
  /** How many objects it stands for, when more than one. */
  count?: number;
  examples?: Subject[];
  waitsFor: string[];
  remedies: Remedy[];
}

/** Where an edge starts or ends when it is not a finding. */
export const NAMESPACE = 'namespace';

/** `from` cannot proceed before `to` does. Both are finding ids or `NAMESPACE`. */
export interface Edge {
  from: string;
  to: string;
  because: string;
}

export interface Diagnosis {
  findings: Finding[];
  edges: Edge[];
  /** What the namespace itself waits for. */
  blockers: string[];
  /** Where the chains end, most important first. */
  rootCauses: string[];
  /** Circles that nobody inside can resolve. */
  deadlocks: string[][];
  queued: QueuedContent[];
  notInspected: NotInspected[];
  conditions: Condition[];
  /** Lines in which the namespace's conditions and what was found contradict each other. */
  contradictions: string[];
  /** Other namespaces that are Terminating and wait for the same cluster-scoped cause. */
  alsoAffected: string[];
  movement: Movement;
  /** Resource types whose content was read, for "all 38 resource types inspected". */
  inspectedTypes: number;
}

export interface QueuedContent {
  apiVersion: string;
  kind: string;
  count: number;
}

export interface NotInspected {
  what: string;
  reason: string;
  /** The RBAC rule that would show it, where missing rights were the reason. */
  grant?: { apiGroup: string; resource: string; verb: string };
}

/** Whether things still happen, from comparing two looks. */
export type Movement =
  | { kind: 'none'; comparedMs: number }
  | { kind: 'unknown' }
  /** The namespace controller begins 5 s after the request, and has not yet. */
  | { kind: 'starting' }
  /** What its conditions complain about is mended; Kubernetes tries again within a minute. */
  | { kind: 'retrying' }
  | { kind: 'shrinking'; before: number; now: number; comparedMs: number }
  | { kind: 'grace-period'; until: string };
