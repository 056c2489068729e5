import { isSameAccount } from '../rights.ts';
import { CLUES, type ClueKind } from './clues.ts';
import { isSameProgram } from './names.ts';
import { hasClue, mayRun, type Suspect } from './suspects.ts';

/** The clues that may name an owner. */
const NAMING: readonly ClueKind[] = CLUES.flatMap((row) =>
  row.about === 'anyone' || (row.about === 'type' && row.names === 'ranks') ? [] : [row.kind],
);

/** A reason to name no owner, although clues point to one suspect more than to any other. */
interface Doubt {
  /** The sentence that the report shows about the first suspect. */
  reason: string;
  applies: (best: Suspect, rival: Suspect) => boolean;
}

/** Every doubt about the suspect to which the clues point. Logs and accounts that were named are never doubted. */
export const DOUBTS: readonly Doubt[] = [
  {
    reason: 'another installation of its program has other arguments that select objects',
    applies: isOtherInstallation,
  },
  {
    reason: 'only a name that frameworks give to every controller points to it',
    applies: ({ clues }) =>
      clues.every(({ kind }) => kind === 'framework' || !NAMING.includes(kind)),
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
