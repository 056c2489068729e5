/** What became of a namespace, from best to worst; the worst is the outcome of the run. */
export const OUTCOMES = [
  'deleted',
  'not-found',
  'recreated',
  'forced',
  'progressing',
  'not-terminating',
  'inconclusive',
  'stuck',
  'cancelled',
] as const;

export type Outcome = (typeof OUTCOMES)[number];

export const FAIL_ON = ['not-deleted', 'stuck', 'never'] as const;
export const IF_NOT_FOUND = ['ok', 'error'] as const;

export interface Policy {
  failOn: (typeof FAIL_ON)[number];
  ifNotFound: (typeof IF_NOT_FOUND)[number];
}

export type Verdict = 'pass' | 'warn' | 'fail';

/** No default case: a new outcome must not compile until somebody decides it here. */
export function verdict(outcome: Outcome, policy: Policy): Verdict {
  switch (outcome) {
    case 'deleted':
      return 'pass';
    case 'recreated':
    case 'forced':
      return 'warn';
    case 'not-found':
      return policy.ifNotFound === 'ok' ? 'pass' : 'fail';
    case 'progressing':
      return policy.failOn === 'not-deleted' ? 'fail' : 'warn';
    case 'stuck':
    case 'inconclusive':
    case 'not-terminating':
      return policy.failOn === 'never' ? 'warn' : 'fail';
    case 'cancelled':
      return 'fail';
  }
}

/** `not-found` ranks with its verdict: an error that was asked for outranks what merely hangs on. */
export function worstOutcome(outcomes: readonly Outcome[], policy: Policy): Outcome {
  const rank = (outcome: Outcome): number =>
    OUTCOMES.indexOf(outcome) + (verdict(outcome, policy) === 'fail' ? OUTCOMES.length : 0);
  return outcomes.reduce((worst, next) => (rank(next) > rank(worst) ? next : worst), 'deleted');
}
