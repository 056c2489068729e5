/**
 * The public codes of findings, used by README, outputs, reports and tests. They are ordered by what a person has to
 * fix first: causes that hold every namespace of the cluster, then pods (which are deleted before anything else), then
 * causes that hold single objects.
 */
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

/**
 * The role of a remedy. `now`: has to be done, with all others of this role, in order. `or`: replaces them if they are
 * impossible. `look`: shows more and changes nothing. `next`: prevents the hang the next time.
 */
export type RemedyRole = 'now' | 'or' | 'look' | 'next';

export interface Remedy {
  text: string;
  /** A command that can be pasted as it is; also in report.json. */
  command?: string;
  risk?: string;
  role?: RemedyRole;
}

/** The certainty of a finding about an owner. `proven`: identity evidence, and nothing contradicts. */
export type Certainty = 'proven' | 'likely' | 'unknown';

/** An object that another one waits for, and why it does not proceed. The shape of report.json. */
export interface Finding {
  id: string;
  code: FindingCode;
  subject: Subject;
  finalizer?: string;
  /** A predicate about the subject. It begins with its verb and has no full stop: "is held by finalizer x". */
  message: string;
  /**
   * The message as a whole clause, for places where the subject and the finalizer were just named: "nothing in the
   * cluster shows which controller should remove it". Not in report.json.
   */
  continuation?: string;
  /**
   * The text of another program with which `message` ends, unchanged. Renderers keep it in one piece. Not in
   * report.json.
   */
  quote?: string;
  /** Key of the missing or unknown owner. Findings with the same key are reported as one cause. Not in report.json. */
  cause?: string | undefined;
  evidence: string[];
  /** Lines of the controller's log about the object, at most three. Only with the input `owner-logs`. */
  ownerLog?: { at: string; line: string; pod: string }[];
  since?: string;
  scope: 'namespace' | 'cluster';
  certainty?: Certainty;
  /** Number of objects that the finding is about, if more than one. */
  count?: number;
  examples?: Subject[];
  waitsFor: string[];
  remedies: Remedy[];
}

/** The start or end of an edge that is the namespace itself, not a finding. */
export const NAMESPACE_NODE = 'namespace';

/** A dependency: `from` cannot proceed before `to` does. Both are finding ids or `NAMESPACE_NODE`. */
export interface Edge {
  from: string;
  to: string;
}

export interface Diagnosis {
  findings: Finding[];
  edges: Edge[];
  blockers: string[];
  /** The ends of the chains, most important first. */
  rootCauses: string[];
  deadlocks: string[][];
  queued: QueuedContent[];
  notInspected: NotInspected[];
  /** Contradictions between the namespace's conditions and the findings, one per line. */
  contradictions: string[];
  movement: Movement;
  /** Whether the namespace itself could no longer be read, so it may still exist or not. */
  namespaceUnread: boolean;
  /** Number of resource types whose content was read, for "all 38 resource types inspected". */
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
  /** Name of the source for people: "Deployments of the cluster". */
  what: string;
  reason: string;
  /** Key of the source in the table of sources, if it has one. Not in report.json. */
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
  | { kind: 'shrinking'; before: number; now: number; comparedMs: number }
  | { kind: 'grace-period'; until: string };
