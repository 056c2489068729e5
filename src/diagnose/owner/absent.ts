import { lowerFirst, shellQuote } from '../../base/text.ts';
import { productName } from '../../model/catalogue.ts';
import type { Remedy } from '../../model/finding.ts';
import { accountText, actorsOf, actorText, isAlive, isEndingNamespace } from '../actors.ts';
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
import { isMoreThanAble, type Suspect, suspectText, workloadExists } from './clues.ts';
import {
  type Held,
  isProviderManaged,
  isSetByHand,
  knownFinalizer,
  specificFieldManager,
  writerOf,
} from './held.ts';
import { logEvidence, logLinesAbout, quotedLines } from './logs.ts';
import { hasProgramName } from './names.ts';
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
import { type Ownership, RUNS_OUTSIDE_TEXT, unreadSources } from './verdict.ts';

// The findings that no controller was found, and that several could be the owner.

const SEARCHED =
  'searched: workloads of every kind, pods of accounts with permission on the type, RBAC, Leases, webhooks and CRDs; a controller outside of the cluster would not be visible';
const MAX_SUSPECTS = 5;
/** What the suspects may take of the 30 words of a cause. */
const MAX_LISTED_WORDS = 16;

/**
 * Returns the finding that no controller was found: about the deleted workload, else the CRD, else the object
 * itself.
 */
export function missingOwner(
  context: Context,
  held: Held,
  ownership: Ownership,
  removal: Remedy[],
): RuleResult {
  const { owner, excluded, others, certainty } = ownership;
  const { finalizer } = held;
  const known = knownFinalizer(held);
  const { actor: gone, account, program = '' } = owner ?? {};
  const place = gone?.namespace ?? account?.namespace;
  const isHere = isInside(context, place);
  const isForecast = willBeDeleted(context, gone?.namespace);
  const isLost = isHere || isForecast;
  const isEnding = isHere || isEndingNamespace(context, place);
  const who = account && (isHere ? account.name : accountText(account));
  const nobody = who
    ? isHere
      ? `its controller most likely ran in this namespace, as ServiceAccount ${who}, and was deleted with it`
      : `no controller that removes it was found: it most likely ran as ${who}, which ${isEnding ? 'is in a terminating namespace' : 'no workload uses any more'}`
    : `no controller that removes it was found: ${
        program !== ''
          ? `"${program}" set it, and nothing of that name runs here`
          : known === undefined
            ? 'no workload may change objects of its type but general tools'
            : `it belongs to ${productName(known) ?? known.owner}`
      }`;
  const isReaching = !isForecast && reachesOut(context, held);
  const binding =
    account && owner?.rights.change === undefined && departedGrant(context, account, held.type);
  const grant = binding
    ? `, with a ClusterRoleBinding: RoleBinding ${binding} was deleted, and a terminating namespace accepts no new one`
    : '';
  const where = isEnding
    ? ' in another namespace'
    : known || place || isForecast
      ? ''
      : ' in a namespace that stays';
  const again = `${where}${grant}`;
  const common: Omit<RuleResult, 'subject' | 'message'> = {
    code: 'owner-missing',
    finalizer,
    certainty,
    evidence: [
      ...(owner === undefined ? [] : evidenceFor(owner)),
      ...writerText(context, held),
      ...purposeOf(held),
      ...(isForecast ? [] : [SEARCHED]),
      ...exclusionEvidence(excluded),
      ...others,
      ...(isForecast ? [] : statusEvidence(context, held)),
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
    waitsForNamespace: isHere,
  };
  if (gone !== undefined) {
    // What is likely about a workload that was deleted is that it was the controller.
    const fate = isLost ? fateText(context, place) : 'was deleted';
    const message = certainty === 'proven' ? fate : `most likely was its controller, and ${fate}`;
    return { ...common, subject: subjectOf(gone), message };
  }
  const definition = itemsIn(context.now.cluster.definitions).find(
    ({ name }) => name === typeName(held.type),
  );
  const has = definition ? 'defines objects with' : 'has';
  return {
    ...common,
    subject: definition ? definitionSubject(definition.name) : held.subject,
    cause: who ?? known?.owner ?? (program || `${finalizer} of ${held.type.group}`),
    message: `${has} finalizer ${finalizer}; ${nobody}`,
    continuation: nobody,
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
  const { owner, excluded, others, unread } = ownership;
  const suspects = ownership.suspects.slice(0, MAX_SUSPECTS);
  const restricted = excluded
    .filter((one) => workloadExists(one) && (one.restriction || isMoreThanAble(one)))
    .slice(0, MAX_SUSPECTS - suspects.length);
  const known = knownFinalizer(held);
  const lines = suspects.flatMap(({ actor }) => (actor ? logLinesAbout(context, held, actor) : []));
  const listed = [
    ...[...suspects, ...(owner ? [owner] : [])].map((one) => withState(context, one)),
    ...restricted.map(
      (one) =>
        `${suspectText(one)} (${one.restriction ? 'not for this object' : 'may not change it'})`,
    ),
  ];
  const unreadTexts = unread.length === 0 ? [] : [unreadText(unread)];
  // People also set finalizers of products, as that of an Argo CD Application.
  const byHand =
    known === undefined && isSetByHand(held)
      ? `a person set it, with "${writerOf(held)?.manager}"`
      : undefined;
  const nobody =
    byHand ??
    unreadTexts[0] ??
    (known === undefined
      ? (others.find((text) => text.startsWith(RUNS_OUTSIDE_TEXT)) ??
        'no clue points to a controller')
      : `it belongs to ${productName(known) ?? known.owner}`);
  const reason =
    listed.length > 1 && !byHand
      ? `its controller is one of: ${listOf(listed)}`
      : `its controller is not known${listed[0] && !byHand ? `; it could be ${listed[0]}` : `: ${nobody}`}`;
  const [status] = statusTexts(context, held);
  const [refusal] = refusalsFor(context, held);
  const source = status ? `${status.object.kind} ${status.object.name}` : refusal?.source;
  const said = status?.text ?? refusal?.error.text;
  const quote = said && shortQuote(said);
  const told = quote === undefined ? reason : `${reason}; ${source} says: ${quote}`;
  const isAway = suspects.length === 0 && known !== undefined && isProviderManaged(known);
  const find = byHand
    ? removalAsFirstStep(removal)
    : isAway
      ? [installRemedy(context, held, undefined, '')]
      : findRemedies(context, held, suspects);
  // Facts that the object itself shows do not depend on its owner.
  const restrictions = restrictionRemedies(context, held, restricted);
  const facing = [
    ...pauseRemedies(context, held),
    ...restrictions,
    ...(said ? [sayingRemedy(`${status ? 'the status of ' : ''}${source}`, said)] : []),
  ];
  // The log of a controller that was ruled out does not name the object, and that of one outside cannot be read here.
  const isFound = restrictions.length > 0 && suspects.length === 0;
  const paused = pausedBy(context, held);
  return {
    code: 'owner-unknown',
    subject,
    finalizer,
    cause: suspects[0] ? undefined : known?.owner || specificFieldManager(held) || undefined,
    message: `has finalizer ${finalizer}, and ${told}`,
    continuation: told,
    quote,
    evidence: [
      ...writerText(context, held),
      ...unreadTexts,
      ...suspects.map(
        (one) => `suspect ${withState(context, one)}: ${evidenceFor(one).join('; ')}`,
      ),
      ...exclusionEvidence(excluded),
      ...logEvidence(context, lines),
      ...others,
      ...(known === undefined ? ['not a well-known finalizer'] : purposeOf(held)),
      ...(paused
        ? [
            `${paused.object.kind} ${paused.object.name} has ${paused.by}: its controller may ignore it`,
          ]
        : []),
      ...statusEvidence(context, held),
    ],
    scope: 'namespace',
    certainty: 'unknown',
    ownerLog: lines.length > 0 ? quotedLines(lines) : undefined,
    remedies: [
      ...facing,
      ...(isFound ? [] : facing.length > 0 ? find.map(asAlternative) : find),
      ...knownRemedies(held),
      ...(byHand && facing.length === 0 ? [] : removal),
    ],
  };
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

/**
 * Returns how to find the controller. A suspect that is down explains the hang better than one that runs, and only one that
 * runs has a log that would tell.
 */
function findRemedies(context: Context, held: Held, suspects: readonly Suspect[]): Remedy[] {
  const known = knownFinalizer(held);
  const { kind, name } = held.subject;
  const then = `it then removes ${held.finalizer}`;
  const actors = suspects.filter(workloadExists).flatMap(({ actor }) => actor ?? []);
  const running = actors.filter(isAlive).slice(0, MAX_STEPS);
  const down = actors.filter((one) => !isAlive(one)).slice(0, MAX_STEPS);
  const fixes = down.map((actor): Remedy => {
    const who = actorText(actor);
    if (actor.wanted > 0) {
      return { text: `If it is ${who}, make it ready (${stateText(context, actor)}); ${then}` };
    }
    const wake = scaleUpRemedy(actor, then);
    return { ...wake, text: `If it is ${who}: ${lowerFirst(wake.text)}` };
  });
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
  return [...(fixes[0] ? fixes : [{ text }]).map((one) => withRole('now', one)), ...looks];
}

const asAlternative = (one: Remedy): Remedy => (one.role === 'now' ? withRole('or', one) : one);

/** The most suspects that the fix goes through. */
const MAX_STEPS = 3;

/** Returns how a controller to which clues point handles the object again, if its arguments leave it or its namespace out. */
function restrictionRemedies(context: Context, held: Held, excluded: readonly Suspect[]): Remedy[] {
  const meant = excluded.filter((one) => one.restriction && isMoreThanAble(one));
  if (meant.length === 0) return [];
  const { kind, name } = held.subject;
  const details = meant
    .flatMap(({ actor }) => (actor ? restrictionText(context, actor) : []))
    .join('; ');
  const text = `Let ${meant.map(suspectText).join(' or ')} handle ${kind} ${name}, if the object is its own: its arguments or environment leave the object out${details && ` (${details})`}`;
  return [withRole('now', { text })];
}

/** Returns its name with its state. */
function withState(context: Context, suspect: Suspect): string {
  const { actor, program } = suspect;
  const name = program === undefined ? suspectText(suspect) : `"${program}"`;
  return `${name} (${actor === undefined || actor.isGone ? 'gone' : stateText(context, actor)})`;
}

/** Returns the remedy that ends a pause of the object, whichever controller is its owner. */
function pauseRemedies(context: Context, held: Held): Remedy[] {
  const paused = pausedBy(context, held);
  if (paused === undefined) return [];
  const type = servedType(context, paused.object) ?? held.type;
  return [resumeRemedy(type, paused.object, paused.by)];
}

/** Returns what points to a suspect, its permissions, and its state. */
export function evidenceFor({ clues, rights, actor }: Suspect): string[] {
  const because = rights.because.slice(0, 3).join('; ');
  const isShown = clues.some(({ text }) => text.includes(because));
  const implied = [
    ...(clues.some(({ kind }) => kind === 'marks') ? ['permission'] : []),
    ...(clues.some(({ kind }) => kind === 'writer') ? ['namesake'] : []),
  ];
  const present = actor === undefined || actor.isGone ? undefined : actor;
  return [
    ...clues.filter(({ kind }) => !implied.includes(kind)).map(({ text }) => text),
    ...(isShown ? [] : [`RBAC: ${because}`]),
    ...(present ? [`${actorText(present)}: ${present.ready} of ${present.wanted} ready`] : []),
    ...(actor === undefined || actor.selectors.length === 0
      ? []
      : [`it was started with ${actor.selectors.join(' ')}`]),
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

/** Returns who wrote the finalizer, and whether a program that it identifies is in the cluster, if all was read. */
function writerText(context: Context, held: Held): string[] {
  const writer = writerOf(held);
  if (writer === undefined) return ['managedFields name no writer of the finalizer'];
  const name = specificFieldManager(held);
  const isAbsent =
    name !== '' &&
    unreadSources(context).length === 0 &&
    actorsOf(context).every((actor) => !hasProgramName(actor, name));
  const { manager, time } = writer;
  return [
    `field manager "${manager}" wrote the finalizer${time === undefined ? '' : ` at ${time}`} (managedFields)${isAbsent ? ', and no workload has this name' : ''}`,
  ];
}

function purposeOf(held: Held): string[] {
  const known = knownFinalizer(held);
  return known === undefined
    ? []
    : [`${held.finalizer} protects: ${withoutPeriod(known.protects)}`];
}
