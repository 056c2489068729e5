import { isSameAccount } from '../rights.ts';
import { DECIDING, NAMING } from './clues.ts';
import { isSameProgram } from './names.ts';
import { hasClue, mayRun, type Suspect } from './suspects.ts';

/** A reason to name no owner, although clues point to one suspect more than to any other. */
interface Doubt {
  /** The sentence that the report shows about the first suspect. */
  reason: string;
  /** The rivals are those that were ruled out for lack of a permission, instead of the other suspects. */
  isAboutPowerless?: boolean;
  applies: (best: Suspect, rival: Suspect) => boolean;
}

/** Every doubt about the suspect to which the clues point. Logs and accounts that were named are never doubted. */
export const DOUBTS: readonly Doubt[] = [
  {
    reason: 'another installation of its program has other arguments that select objects',
    applies: isOtherInstallation,
  },
  {
    reason:
      'it is scaled to zero, and a controller of the type has written the status since the deletion began',
    applies: ({ actor, account }, rival) =>
      actor !== undefined &&
      !mayRun(actor) &&
      hasClue(rival, 'active') &&
      hasClue(rival, 'permission') &&
      !isSameAccount(rival.account, account),
  },
  {
    reason:
      'it may change everything, as backup and GitOps tools do, and a controller of the type exists',
    applies: ({ rights, clues }, rival) =>
      rights.change === 'everything' &&
      clues.every(({ kind }) => ['writer', 'author', 'wide'].includes(kind)) &&
      hasClue(rival, 'permission'),
  },
  {
    reason: 'a clue points only to a controller that lacks the permission, which it may have lost',
    isAboutPowerless: true,
    applies: (best, rival) =>
      (hasClue(best, ...DECIDING) ? DECIDING : NAMING).some(
        (kind) => hasClue(rival, kind) && !hasClue(best, kind),
      ),
  },
];

/** Reports whether two workloads run one program, with arguments that select different objects. */
function isOtherInstallation({ actor: one }: Suspect, { actor: other }: Suspect): boolean {
  return (
    one !== undefined &&
    other !== undefined &&
    one !== other &&
    !other.isGone &&
    isSameProgram(one, other) &&
    one.selectors.join() !== other.selectors.join()
  );
}
