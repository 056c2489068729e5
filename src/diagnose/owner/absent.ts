import { lowerFirst, shellQuote } from '../../base/text.ts';
import { productName } from '../../model/catalogue.ts';
import type { Remedy } from '../../model/finding.ts';
import { accountText, actorText, isAlive, isEndingNamespace } from '../actors.ts';
import { lookRemedy, scaleUpRemedy, withoutPeriod, withRole } from '../commands.ts';
import {
  type Context,
  definitionSubject,
  fateText,
  isInside,
  itemsIn,
  listNames,
  type RuleResult,
  servedType,
  shortQuote,
  subjectOf,
  typeName,
  willBeDeleted,
} from '../context.ts';
import { departedGrant } from '../rights.ts';
import {
  hasClue,
  isMoreThanAble,
  MAY_NOT_CHANGE,
  type Suspect,
  suspectText,
  workloadExists,
} from './clues.ts';
import {
  type Held,
  isProviderManaged,
  isSetByHand,
  knownFinalizer,
  specificFieldManager,
  writerOf,
} from './held.ts';
import { logEvidence, logLinesAbout, quotedLines } from './logs.ts';
import { pausedBy } from './pauses.ts';
import { reachesOut } from './reach.ts';
import {
  installRemedy,
  knownRemedies,
  logRemedies,
  orderRemedies,
  removalAsFirstStep,
  resumeRemedy,
  sayingRemedy,
} from './remedies.ts';
import { restrictionText } from './restrictions.ts';
import { refusalsFor, statusEvidence, statusTexts } from './statements.ts';
import { stateText } from './states.ts';
import { type Ownership, RUNS_OUTSIDE_TEXT } from './verdict.ts';

// The findings that no controller was found, and that several could be the owner.

const SEARCHED =
  'searched: workloads of every kind, pods of accounts with permission on the type, RBAC, Leases, webhooks and CRDs; a controller outside of the cluster would not be visible';
const MAX_SUSPECTS = 5;
/** What the suspects may take of the 30 words of a cause. */
const MAX_LISTED_WORDS = 16;

/** Returns the finding that no controller was found: about the deleted workload, else the CRD, else the object itself. */
export function missingOwner(
  context: Context,
  held: Held,
  { certainty, excluded, others, owner }: Ownership,
  removal: Remedy[],
): RuleResult {
  const { finalizer, subject, type } = held;
  const known = knownFinalizer(held);
  const { actor: gone, account, program = '' } = owner ?? {};
  const place = gone?.namespace ?? account?.namespace;
  const isHere = isInside(context, place);
  const isForecast = willBeDeleted(context, gone?.namespace);
  const isLost = isHere || isForecast;
  const isEnding = isHere || isEndingNamespace(context, place);
  const who = account && (isHere ? account.name : accountText(account));
  const traces = program
    ? `"${program}" set it, and nothing of that name runs here`
    : (belonging(held) ?? 'no workload may change objects of its type but general tools');
  const nobody =
    who && isHere
      ? `its controller most likely ran in this namespace, as ServiceAccount ${who}, and was deleted with it`
      : `no controller that removes it was found: ${who ? `it most likely ran as ${who}, which ${isEnding ? 'is in a terminating namespace' : 'no workload uses any more'}` : traces}`;
  const binding =
    account && owner?.rights.change === undefined && departedGrant(context, account, type);
  const stays = known || place ? '' : ' in a namespace that stays';
  const again = `${isEnding ? ' in another namespace' : stays}${binding ? ', with a ClusterRoleBinding: a terminating namespace accepts no RoleBinding' : ''}`;
  const isReaching = !isForecast && reachesOut(context, held);
  const definition = itemsIn(context.now.cluster.definitions).find(
    ({ name }) => name === typeName(type),
  );
  // What is likely about a workload that was deleted is that it was the controller.
  const fate = isLost ? fateText(context, place) : 'was deleted';
  const about = gone
    ? {
        subject: subjectOf(gone),
        message: certainty === 'proven' ? fate : `most likely was its controller, and ${fate}`,
      }
    : {
        subject: definition ? definitionSubject(definition.name) : subject,
        cause: who ?? known?.owner ?? (program || `${finalizer} of ${type.group}`),
        message: `${definition ? 'defines objects with' : 'has'} finalizer ${finalizer}; ${nobody}`,
        continuation: nobody,
      };
  return {
    ...about,
    ...{ code: 'owner-missing', finalizer, certainty, waitsForNamespace: isHere },
    evidence: [
      ...(owner === undefined ? [] : evidenceFor(owner)),
      writerText(held),
      ...purposeOf(held),
      ...exclusionEvidence(excluded),
      ...others,
      ...(isForecast ? [] : [SEARCHED, ...statusEvidence(context, held)]),
    ],
    scope: isLost ? 'namespace' : 'cluster',
    remedies: [
      ...(isReaching ? removalAsFirstStep(removal) : []),
      ...(isLost ? orderRemedies(context, held, gone ? actorText(gone) : 'their controller') : []),
      ...(isForecast
        ? []
        : [
            installRemedy(context, held, gone && actorText(gone), again),
            ...pauseRemedies(context, held),
            ...knownRemedies(held, true),
            ...(isReaching ? [] : removal),
          ]),
    ],
  };
}

/** Returns the finding that several controllers could be the owner, or that none is likely enough. */
export function unknownOwner(
  context: Context,
  held: Held,
  ownership: Ownership,
  removal: Remedy[],
): RuleResult {
  const { finalizer, subject } = held;
  const { excluded, others, owner, unread } = ownership;
  const known = knownFinalizer(held);
  // People also set finalizers of products, as that of an Argo CD Application.
  const byHand = known === undefined && isSetByHand(held);
  const suspects = ownership.suspects.slice(0, MAX_SUSPECTS);
  const ruledOut = excluded
    .filter((one) => workloadExists(one) && (one.restriction || isMoreThanAble(one)))
    .slice(0, MAX_SUSPECTS - suspects.length);
  const all = [...suspects, ...(owner ? [owner] : []), ...ruledOut];
  const listed = byHand ? [] : all.map((one) => withState(context, one));
  const why = byHand
    ? `a person set it, with "${writerOf(held)?.manager}"`
    : unread.length > 0
      ? unreadText(unread)
      : (belonging(held) ??
        others.find((text) => text.startsWith(RUNS_OUTSIDE_TEXT)) ??
        'no clue points to a controller');
  const reason =
    listed.length > 1
      ? `its controller is one of: ${listOf(listed)}`
      : `its controller is not known${listed[0] ? `; it could be ${listed[0]}` : `: ${why}`}`;
  const [status] = statusTexts(context, held);
  const [refusal] = refusalsFor(context, held);
  const said = status
    ? { who: `${status.object.kind} ${status.object.name}`, text: status.text }
    : refusal && { who: refusal.source, text: refusal.error.text };
  const quote = said && shortQuote(said.text);
  const told = said ? `${reason}; ${said.who} says: ${quote}` : reason;
  const lines = suspects.flatMap(({ actor }) => (actor ? logLinesAbout(context, held, actor) : []));
  // Facts that the object itself shows do not depend on its owner.
  const facing = [
    ...pauseRemedies(context, held),
    ...(said ? [sayingRemedy(`${status ? 'the status of ' : ''}${said.who}`, said.text)] : []),
  ];
  const isAway = suspects.length === 0 && known !== undefined && isProviderManaged(known);
  const find = byHand
    ? removalAsFirstStep(removal)
    : isAway
      ? [installRemedy(context, held, undefined, '')]
      : findRemedies(context, held, suspects.length > 0 ? suspects : ruledOut);
  const isSecond = facing.length > 0;
  return {
    ...{ code: 'owner-unknown', subject, finalizer, quote },
    cause: suspects[0] ? undefined : known?.owner || specificFieldManager(held) || undefined,
    message: `has finalizer ${finalizer}, and ${told}`,
    continuation: told,
    evidence: [
      writerText(held),
      ...(unread.length > 0 ? [unreadText(unread)] : []),
      ...suspects.map(
        (one) => `suspect ${withState(context, one)}: ${evidenceFor(one).join('; ')}`,
      ),
      ...exclusionEvidence(excluded),
      ...logEvidence(context, lines),
      ...others,
      ...(known === undefined ? ['not a well-known finalizer'] : purposeOf(held)),
      ...statusEvidence(context, held),
    ],
    scope: 'namespace',
    certainty: 'unknown',
    ownerLog: lines.length > 0 ? quotedLines(lines) : undefined,
    remedies: [
      ...facing,
      ...find.map((one) => (isSecond && one.role === 'now' ? withRole('or', one) : one)),
      ...knownRemedies(held),
      ...(byHand && !isSecond ? [] : removal),
    ],
  };
}

function belonging(held: Held): string | undefined {
  const known = knownFinalizer(held);
  return known && `it belongs to ${productName(known) ?? known.owner}`;
}

/** Lists as many suspects as a sentence takes, at least one. Evidence has all of them. */
function listOf(listed: readonly string[]): string {
  let words = 0;
  const fitting = listed.filter((one, at) => {
    words += one.split(' ').length;
    return at === 0 || words <= MAX_LISTED_WORDS;
  });
  const more = listed.length - fitting.length;
  return `${fitting.join(', ')}${more > 0 ? ` or ${more} more` : ''}`;
}

/** The most suspects that the fix goes through. */
const MAX_STEPS = 3;

/**
 * Returns how to find the controller. A suspect that is down explains the hang better than one that runs, and only one that
 * runs has a log that would tell.
 */
function findRemedies(context: Context, held: Held, suspects: readonly Suspect[]): Remedy[] {
  const { kind, name } = held.subject;
  const known = knownFinalizer(held);
  const then = `it then removes ${held.finalizer}`;
  const fixes = suspects
    .filter(workloadExists)
    .flatMap(({ actor, against, restriction }): Remedy[] => {
      if (actor === undefined) return [];
      const who = actorText(actor);
      if (restriction) {
        const by = restrictionText(context, actor).join(' ');
        return [
          { text: `If it is ${who}: change what leaves ${kind} ${name} out${by && ` (${by})`}` },
        ];
      }
      if (against === MAY_NOT_CHANGE) {
        const right = `its right to change ${typeName(held.type)}`;
        return [
          {
            text: `If it is ${who}: give it back ${right} (restore its binding, or install it again); ${then}`,
          },
        ];
      }
      if (against || isAlive(actor)) return [];
      if (actor.wanted > 0) {
        return [{ text: `If it is ${who}, make it ready (${stateText(context, actor)}); ${then}` }];
      }
      const wake = scaleUpRemedy(actor, then);
      return [{ ...wake, text: `If it is ${who}: ${lowerFirst(wake.text)}` }];
    });
  const running = suspects
    .flatMap(({ actor, against }) => (actor && !against && isAlive(actor) ? [actor] : []))
    .slice(0, MAX_STEPS);
  const search =
    running.length > 0
      ? `look for ${kind} ${name} in the log of ${listNames(running.map(actorText))}`
      : known === undefined
        ? `look for ${kind} ${name} in the logs of the controllers in this cluster`
        : `see whether ${known.owner} is installed, or runs outside of this cluster`;
  const text = `Find out which controller removes ${held.finalizer}: ${search}`;
  const looks = running.flatMap((actor) =>
    logRemedies(context, actor).map(({ command = '' }) =>
      lookRemedy(
        `Look for ${kind} ${name} in the log of ${actorText(actor)}`,
        command.replace(/--tail=\d+$/, `--tail=-1 | grep -F ${shellQuote(name)}`),
      ),
    ),
  );
  return fixes.length > 0
    ? [
        ...fixes.slice(0, MAX_STEPS).map((one) => withRole('now', one)),
        ...(looks.length > 0 ? looks : [withRole('look', { text })]),
      ]
    : [withRole('now', { text }), ...looks];
}

/** Returns its name with its state. */
function withState(context: Context, suspect: Suspect): string {
  const { actor, against, program, restriction } = suspect;
  const name = program === undefined ? suspectText(suspect) : `"${program}"`;
  const state = restriction
    ? 'not for this object'
    : against
      ? against === MAY_NOT_CHANGE
        ? 'may not change it'
        : 'made by such an object'
      : actor === undefined || actor.isGone
        ? 'gone'
        : stateText(context, actor);
  return `${name} (${state})`;
}

/** Returns the remedy that ends a pause of the object, whichever controller is its owner. */
function pauseRemedies(context: Context, held: Held): Remedy[] {
  const paused = pausedBy(context, held);
  if (paused === undefined) return [];
  const type = servedType(context, paused.object) ?? held.type;
  return [resumeRemedy(type, paused.object, paused.by)];
}

/** What a clue says with it. */
const IMPLIED = [['marks', 'permission'] as const, ['writer', 'namesake'] as const];

/** Returns what points to a suspect, its permissions, and its state. */
export function evidenceFor(suspect: Suspect): string[] {
  const { actor, clues, rights } = suspect;
  const because = rights.because.slice(0, 3).join('; ');
  const isShown = clues.some(({ text }) => text.includes(because));
  return [
    ...clues
      .filter(({ kind }) => !IMPLIED.some(([by, it]) => kind === it && hasClue(suspect, by)))
      .map(({ text }) => text),
    ...(isShown ? [] : [`RBAC: ${because}`]),
    ...(actor && !actor.isGone
      ? [`${actorText(actor)}: ${actor.ready} of ${actor.wanted} ready`]
      : []),
    ...(actor?.selectors[0] ? [`it was started with ${actor.selectors.join(' ')}`] : []),
  ];
}

/** Returns the exclusions with what points to the suspects. */
export function exclusionEvidence(excluded: readonly Suspect[]): string[] {
  return excluded
    .slice(0, MAX_SUSPECTS)
    .map(
      (one) =>
        `ruled out ${suspectText(one)}: ${one.against}. What points to it: ${one.clues[0]?.text}`,
    );
}

export function unreadText(labels: readonly string[]): string {
  return `${listNames(labels, 3)} could not be read`;
}

export function writerText(held: Held): string {
  const { manager, time } = writerOf(held) ?? {};
  return manager === undefined
    ? 'managedFields name no writer of the finalizer'
    : `field manager "${manager}" wrote the finalizer${time === undefined ? '' : ` at ${time}`} (managedFields)`;
}

function purposeOf(held: Held): string[] {
  const known = knownFinalizer(held);
  return known ? [`${held.finalizer} protects: ${withoutPeriod(known.protects)}`] : [];
}
