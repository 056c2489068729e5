/**
 * The public vocabulary of findings: README, outputs, reports and tests use exactly these. In the order in
 * which a person has to fix them: causes that hold every namespace of the cluster, then pods (nothing else is deleted
 * before them), then what holds single objects.
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
 * `now`: has to be done, all of these, in order. `or`: instead of them, if they are impossible. `look`:
 * shows more and changes nothing. `next`: prevents it the next time.
 */
export type RemedyRole = 'now' | 'or' | 'look' | 'next';

export interface Remedy {
  text: string;
  /** Can be pasted as it is; report.json has it too. */
  command?: string;
  /** A possible loss or damage; absent if the remedy is safe. */
  risk?: string;
  /** `now` unless given. */
  role?: RemedyRole;
}

/** How well a finding about an owner is proven. `proven`: identity evidence, and nothing contradicts. */
export type Certainty = 'proven' | 'likely' | 'unknown';

/** An object that another one waits for, and why it does not proceed. The shape of report.json. */
export interface Finding {
  id: string;
  code: FindingCode;
  subject: Subject;
  finalizer?: string;
  /** A predicate about the subject, beginning with its verb and without a full stop: "is held by finalizer x". */
  message: string;
  /**
   * The same where the subject and the finalizer have just been named, as a whole clause: "nothing in the
   * cluster shows who should remove it". Not in report.json.
   */
  continuation?: string;
  /**
   * The text of another program with which `message` ends, unchanged. Renderers keep it in one piece. Not in
   * report.json.
   */
  quote?: string;
  /** The missing or unknown owner: findings with an equal one are reported as one cause. Not in report.json. */
  cause?: string | undefined;
  evidence: string[];
  /** Lines of the controller's log about the object, at most three. Only with the input `owner-logs`. */
  ownerLog?: { at: string; line: string; pod: string }[];
  /** ISO 8601. */
  since?: string;
  scope: 'namespace' | 'cluster';
  /** On findings about an owner. */
  certainty?: Certainty;
  /**
   * On `owner-missing`: the gate itself saw the owner's workload deleted with this namespace. The workload was in the
   * baseline, or its own namespace is terminating as well, and no pod of it runs any more. Together with certainty `proven`
   * this is the only fact that lets a pattern of `force-finalizers` reach the finalizer; "nobody was found" never sets it.
   * Not in report.json.
   */
  wasDeletedWithNamespace?: boolean;
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
  /** Findings that the namespace itself waits for. */
  blockers: string[];
  /** Where the chains end, most important first. */
  rootCauses: string[];
  /** Circles that nobody inside can resolve. */
  deadlocks: string[][];
  queued: QueuedContent[];
  notInspected: NotInspected[];
  /** Lines in which the namespace's conditions and what was found contradict each other. */
  contradictions: string[];
  /** Other namespaces that are Terminating and, by their own conditions, wait for the same cause. */
  alsoHeld: HeldNamespace[];
  movement: Movement;
  /** The namespace itself could not be read any more: nobody knows whether it is still there. */
  namespaceUnread: boolean;
  /** A forecast lacks something that decides: content that could not be read, or admission that could not be asked. */
  undecided: boolean;
  /** Resource types whose content was read, for "all 38 resource types inspected". */
  inspectedTypes: number;
}

/** The findings with these ids, in their order. */
export function findingsOf(
  { findings }: Pick<Diagnosis, 'findings'>,
  ids: readonly string[],
): Finding[] {
  const byId = new Map(findings.map((finding) => [finding.id, finding]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

export interface HeldNamespace {
  name: string;
  /** Its deletionTimestamp, ISO 8601. */
  since: string;
}

export interface QueuedContent {
  apiVersion: string;
  kind: string;
  count: number;
}

/** A source that was needed and could not be read. */
export interface NotInspected {
  /** For people: "Deployments of the cluster". */
  what: string;
  reason: string;
  /** Key of the source in the table, where it is of one. Not in report.json. */
  source?: string;
  /** The RBAC rule that would show it, where missing rights were the reason. */
  grant?: { apiGroup: string; resource: string; verb: string };
}

/** Whether things still happen, from comparing two looks. */
export type Movement =
  | { kind: 'none' }
  | { kind: 'unknown' }
  /** The namespace controller begins 5 s after the request, and has not yet. */
  | { kind: 'starting' }
  /** The problem in its conditions is fixed; Kubernetes tries again within a minute. */
  | { kind: 'retrying' }
  | { kind: 'shrinking'; before: number; now: number; comparedMs: number }
  | { kind: 'grace-period'; until: string };
