import { type Diagnosis, type FindingCode, findingsOf } from './finding.ts';

/** Outcomes, ordered from best to worst. A run reports its worst. */
export const OUTCOMES = [
  'clear',
  'deleted',
  'not-found',
  'recreated',
  'forced',
  'progressing',
  'not-terminating',
  'inconclusive',
  'would-hang',
  'stuck',
  'cancelled',
] as const;

export type Outcome = (typeof OUTCOMES)[number];

export const FAIL_ON = ['not-deleted', 'stuck', 'never'] as const;
export const IF_NOT_FOUND = ['ok', 'error'] as const;
export type Policy = {
  failOn: (typeof FAIL_ON)[number];
  ifNotFound: (typeof IF_NOT_FOUND)[number];
};
export const VERDICTS = ['pass', 'warn', 'fail'] as const;
export type Verdict = (typeof VERDICTS)[number];

export function verdictOf(outcome: Outcome, { failOn, ifNotFound }: Policy): Verdict {
  if (outcome === 'not-found') return ifNotFound === 'ok' ? 'pass' : 'fail';
  if (outcome === 'clear' || outcome === 'deleted') return 'pass';
  if (outcome === 'recreated' || outcome === 'forced') return 'warn';
  if (outcome === 'progressing') return failOn === 'not-deleted' ? 'fail' : 'warn';
  return outcome === 'cancelled' || failOn !== 'never' ? 'fail' : 'warn';
}

/** `not-found` is ranked by its verdict: with `if-not-found: error` it is worse than a hang that does not fail. */
export function worstOutcome(outcomes: readonly Outcome[], policy: Policy): Outcome {
  const rank = (outcome: Outcome): number =>
    OUTCOMES.indexOf(outcome) + (verdictOf(outcome, policy) === 'fail' ? OUTCOMES.length : 0);
  return outcomes.toSorted((a, b) => rank(b) - rank(a))[0] ?? 'deleted';
}

/** Returns the outcome of a namespace that is not deleted at the timeout. */
export function outcomeOf(diagnosis: Diagnosis): 'progressing' | 'stuck' | 'inconclusive' {
  if (isMoving(diagnosis)) return 'progressing';
  // A hang with a root cause is explained, even if something else could not be read.
  if (diagnosis.rootCauses.length > 0 || diagnosis.notInspected.length === 0) return 'stuck';
  return 'inconclusive';
}

function isMoving({ movement: { kind } }: Diagnosis): boolean {
  return kind !== 'none' && kind !== 'unknown';
}

/** Root causes that no retry heals: a person has to act. */
const PERMANENT: readonly FindingCode[] = [
  'owner-missing',
  'owner-scaled-to-zero',
  'owner-not-acting',
  'apiservice-unavailable',
  'conversion-webhook-failing',
  'admission-webhook-failing',
  'admission-denied',
  'deletion-forbidden',
  'storage-unreadable',
];

export function isPermanent(diagnosis: Diagnosis): boolean {
  if (isMoving(diagnosis)) return false;
  return findingsOf(diagnosis, diagnosis.rootCauses).some(
    ({ code, certainty }) =>
      PERMANENT.includes(code) &&
      (code.startsWith('owner-') ? certainty === 'proven' : certainty !== 'unknown'),
  );
}

export function movingReason({ movement: { kind } }: Diagnosis): string | undefined {
  if (kind === 'none') return undefined;
  return kind === 'unknown'
    ? 'it was examined only once, which does not show whether its deletion makes progress'
    : 'its deletion still makes progress';
}

export interface ForcePolicy {
  mode: 'off' | ActivePolicy['mode'];
  namespaces: string[];
  label: { key: string; value: string } | undefined;
  /** Finalizers that may be removed, each written out in full; a pattern is refused. */
  finalizers: string[];
  /** Permits the deletion of overdue pods with grace period 0 if their node is lost. */
  pods: boolean;
  /** Whether the namespace may be finalized while content remains or could not be read. */
  orphans: 'refuse' | 'accept';
}

export type ActivePolicy = Omit<ForcePolicy, 'mode'> & { mode: 'plan' | 'objects' | 'namespace' };

export function isActive(policy: ForcePolicy): policy is ActivePolicy {
  return policy.mode !== 'off';
}

/** Returns why this namespace is never written to, whatever the inputs say. The plan and every single write check it. */
export function protectedBecause(name: string, ownNamespace?: string): string | undefined {
  if (name === '') return 'it has no name';
  if (name === 'default') return '"default" belongs to the cluster';
  if (name.startsWith('kube-')) return 'names that begin with "kube-" belong to Kubernetes';
  if (name.startsWith('openshift')) return 'names that begin with "openshift" belong to OpenShift';
  return name === ownNamespace ? 'the gate itself runs in a namespace of this name' : undefined;
}
