import type { Outcome } from '../outcome.ts';
import type { Diagnosis } from './diagnosis.ts';

/** What a namespace that is still there at the timeout is called. */
export function outcomeOf(
  diagnosis: Diagnosis,
): Extract<Outcome, 'progressing' | 'stuck' | 'inconclusive'> {
  switch (diagnosis.movement.kind) {
    case 'grace-period':
    case 'shrinking':
    case 'starting':
    case 'retrying':
      return 'progressing';
    case 'none':
    case 'unknown':
      // A hang that was explained is explained, whatever else could not be read.
      return diagnosis.rootCauses.length === 0 && diagnosis.notInspected.length > 0
        ? 'inconclusive'
        : 'stuck';
  }
}
