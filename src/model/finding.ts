/** The public codes of findings, by what a person has to fix first: what holds every namespace, then pods, then single objects. */
export const FINDING_CODES = [
  'namespace-controller-inactive',
  'apiservice-unavailable',
  'discovery-failed',
  'conversion-webhook-failing',
  'storage-unreadable',
  'api-failing',
  'pod-node-unavailable',
  'pod-not-confirmed',
  'admission-webhook-failing',
  'admission-denied',
  'deletion-forbidden',
  'owner-failing',
  'owner-missing',
  'owner-scaled-to-zero',
  'owner-not-ready',
  'owner-not-acting',
  'owner-unknown',
  'owner-running',
  'namespace-finalizer',
  'namespace-spec-finalizer',
  'object-finalizer',
  'volume-in-use',
  'crd-terminating',
  'pod-grace-period',
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

/** `now`: has to be done, in order; `or`: instead of those; `look`: shows more, changes nothing; `next`: prevents the next hang. */
export type RemedyRole = 'now' | 'or' | 'look' | 'next';
export type Remedy = { text: string; command?: string; risk?: string; role?: RemedyRole };

/** `proven`: identity evidence, and nothing contradicts. */
export type Certainty = 'proven' | 'likely' | 'unknown';

/** An object that another one waits for, and why it does not proceed. The shape of report.json. */
export interface Finding {
  id: string;
  code: FindingCode;
  subject: Subject;
  finalizer?: string;
  /** A predicate about the subject. It begins with its verb and has no full stop: "is held by finalizer x". */
  message: string;
  /** The message as a whole clause, where the subject and the finalizer were just named. Not in report.json. */
  continuation?: string;
  /** The text of another program with which `message` ends; it stays in one piece. Not in report.json. */
  quote?: string;
  /** Key of the missing or unknown owner. Findings with the same key are reported as one cause. Not in report.json. */
  cause?: string | undefined;
  evidence: string[];
  /** Lines of the controller's log about the object, at most three. Only with the input `owner-logs`. */
  ownerLog?: { at: string; line: string; pod: string }[];
  since?: string;
  scope: 'namespace' | 'cluster';
  certainty?: Certainty;
  count?: number;
  examples?: Subject[];
  waitsFor: string[];
  remedies: Remedy[];
}

/** The start or end of an edge that is the namespace itself, not a finding. */
export const NAMESPACE_NODE = 'namespace';
/** `from` cannot proceed before `to` does. */
export type Edge = { from: string; to: string };

export interface Diagnosis {
  findings: Finding[];
  edges: Edge[];
  blockers: string[];
  /** The ends of the chains, most important first. */
  rootCauses: string[];
  deadlocks: string[][];
  queued: QueuedContent[];
  notInspected: NotInspected[];
  movement: Movement;
  inspectedTypes: number;
}

export function findingsOf(
  { findings }: Pick<Diagnosis, 'findings'>,
  ids: readonly string[],
): Finding[] {
  const byId = new Map(findings.map((finding) => [finding.id, finding]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

export type QueuedContent = Pick<Subject, 'apiVersion' | 'kind'> & { count: number };

/** A source that was needed and could not be read. */
export interface NotInspected {
  /** For people: "Deployments of the cluster". */
  what: string;
  reason: string;
  /** Its key in the table of sources, if it has one. Not in report.json. */
  source?: string;
  /** The RBAC rule that would permit the read, if a permission was missing. */
  grant?: { apiGroup: string; resource: string; verb: string };
}

/** Whether the deletion is making progress, from a comparison of two examinations. */
export type Movement =
  | { kind: 'none' }
  | { kind: 'unknown' }
  /** The namespace controller starts 5 s after the request, and has not started yet. */
  | { kind: 'starting' }
  /** The problem in its conditions is fixed; Kubernetes tries again within a minute. */
  | { kind: 'retrying' }
  | { kind: 'shrinking'; before: number; now: number }
  | { kind: 'grace-period'; until: string };
