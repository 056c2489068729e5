import type { Remedy } from '../../model/finding.ts';
import { accountText, actorsOf, actorText } from '../actors.ts';
import { withoutPeriod, withRole } from '../commands.ts';
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
import { type Excluded, restrictionText } from './exclusions.ts';
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
import { type Pause, pausedBy } from './pauses.ts';
import {
  installRemedy,
  knownRemedies,
  orderRemedies,
  resumeRemedy,
  sayingRemedy,
  statusRemedy,
} from './remedies.ts';
import { lateWarnings, statusEvidence, statusTexts } from './statements.ts';
import { stateText } from './states.ts';
import { isMoreThanAble, type Suspect, suspectText, workloadExists } from './suspects.ts';
import { type Ownership, RUNS_OUTSIDE_TEXT, unreadSources } from './verdict.ts';

// The findings that no controller was found, and that several could be the owner.

const SEARCHED =
  'searched: workloads of every kind, pods of accounts with permission on the type, RBAC, Leases, webhooks and CRDs; a controller outside of the cluster would not be visible';
const MAX_SUSPECTS = 5;

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
  const known = knownFinalizer(held);
  const { actor: gone, account } = owner ?? {};
  const place = gone?.namespace ?? account?.namespace;
  const inside = isInside(context, place);
  const isForecast = willBeDeleted(context, gone?.namespace);
  const isLost = inside || isForecast;
  const definition = itemsIn(context.now.cluster.definitions).find(
    ({ name }) => name === typeName(held.type),
  );
  const home = itemsIn(context.now.cluster.namespaces).find(({ name }) => name === place);
  const isEnding = inside || home?.deletionTimestamp !== undefined;
  const manager = owner?.program ?? '';
  const left = inside
    ? 'was deleted with this namespace'
    : home?.deletionTimestamp === undefined
      ? 'no workload uses any more'
      : `is in a namespace that has been terminating since ${home.deletionTimestamp}`;
  // What is likely about a workload that was deleted is that it was the controller.
  const why =
    gone !== undefined
      ? `it ${certainty === 'proven' ? 'was' : 'was most likely'} the controller that removes ${held.finalizer}`
      : account !== undefined
        ? `it most likely ran as ${accountText(account)}, which ${left}`
        : manager !== ''
          ? `"${manager}" set it, and nothing of that name runs here`
          : known === undefined
            ? 'nobody may change objects of its type but general tools and people'
            : `it belongs to ${known.owner}`;
  const nobody = 'no controller that removes it was found in this cluster';
  const state = isLost ? fateText(context, place) : 'was deleted';
  const binding =
    account && owner?.rights.change === undefined
      ? departedGrant(context, account, held.type)
      : undefined;
  const where =
    binding === undefined
      ? ''
      : `, with a ClusterRoleBinding: RoleBinding ${binding} was deleted, and a terminating namespace accepts no new one`;
  const installed = installRemedy(
    held,
    gone && actorText(gone),
    `${isEnding ? ' in another namespace' : ''}${where}`,
  );
  return {
    code: 'owner-missing',
    subject: gone
      ? subjectOf(gone)
      : definition
        ? definitionSubject(definition.name)
        : held.subject,
    finalizer: held.finalizer,
    // A deleted workload is the subject itself.
    cause: gone
      ? undefined
      : ((account && (inside ? account.name : accountText(account))) ??
        known?.owner ??
        (manager || undefined)),
    message: gone ? `${state}; ${why}` : `has no controller that was found in this cluster: ${why}`,
    continuation: `${nobody}: ${why}`,
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
    certainty,
    remedies: [
      ...(isLost ? orderRemedies(context, held, gone ? actorText(gone) : 'their controller') : []),
      ...(isForecast
        ? []
        : [installed, ...pauseRemedies(context, held), ...knownRemedies(held, true), ...removal]),
    ],
    waitsForNamespace: inside,
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
    .filter(
      ({ suspect, by }) => workloadExists(suspect) && (by.isRestriction || isMoreThanAble(suspect)),
    )
    .slice(0, MAX_SUSPECTS - suspects.length);
  const known = knownFinalizer(held);
  const lines = suspects.flatMap(({ actor }) => (actor ? logLinesAbout(context, held, actor) : []));
  const paused = pausedBy(context, held);
  const [said] = statusTexts(context, held);
  const warnings = lateWarnings(context, held);
  const [warned] = said === undefined ? warnings : [];
  const listed = [
    ...[...suspects, ...(owner === undefined ? [] : [owner])].map((one) => withState(context, one)),
    ...restricted.map(({ suspect, by }) => `${suspectText(suspect)} (${by.reason})`),
  ];
  const outside = others.find((text) => text.startsWith(RUNS_OUTSIDE_TEXT));
  const reason =
    listed.length > 1
      ? `its controller is one of: ${listed.join(', ')}`
      : listed.length === 1
        ? `its controller is not known; it could be ${listed[0]}`
        : `its controller is not known: ${
            unread.length > 0
              ? unreadText(unread)
              : isSetByHand(held)
                ? `a person set it, with "${writerOf(held)?.manager}"`
                : known === undefined
                  ? (outside ?? 'no clue points to a controller')
                  : `it belongs to ${known.owner}`
          }`;
  const quoted = said
    ? `; ${said.object.kind} ${said.object.name} says: ${shortQuote(said.text)}`
    : warned
      ? `; ${warned.what} says: ${shortQuote(warned.message)}`
      : '';
  const what = `${subject.kind} ${subject.name}`;
  const { stopped = [], running = [] } = Object.groupBy(suspects, ({ actor }) =>
    actor?.ready === 0 ? 'stopped' : 'running',
  );
  // Workloads that do not run have no log that would tell.
  const ways = [
    ...(running.length > 0
      ? [`look for ${what} in the log of ${listNames(running.map(suspectText))}`]
      : stopped.length > 0
        ? []
        : [
            known === undefined
              ? `look for ${what} in the logs of controllers, or ask its author`
              : `see whether ${known.owner} is installed, or runs outside of this cluster`,
          ]),
    ...(stopped.length === 0
      ? []
      : [`if it is ${listNames(stopped.map(suspectText))}, make it ready`]),
  ];
  const search = { text: `Find out which controller removes ${finalizer}: ${ways.join('; ')}` };
  const isAway = suspects.length === 0 && known !== undefined && isProviderManaged(known);
  const find = isAway ? installRemedy(held, undefined, '') : search;
  // Facts that the object itself shows do not depend on its owner.
  const restrictions = restrictionRemedies(context, held, restricted);
  const facing = [
    ...pauseRemedies(context, held),
    ...restrictions,
    ...(said === undefined ? [] : [statusRemedy(said.object, said.text)]),
    ...(warned === undefined ? [] : [sayingRemedy(warned.what, warned.message)]),
  ];
  // The log of a controller that was ruled out does not name the object, and that of one outside cannot be read here.
  const isFound = restrictions.length > 0 && suspects.length === 0;
  return {
    code: 'owner-unknown',
    subject,
    finalizer,
    cause:
      suspects.length > 0 ? undefined : (known?.owner ?? (specificFieldManager(held) || undefined)),
    message: `has finalizer ${finalizer}, and ${reason}${quoted}`,
    continuation: reason + quoted,
    evidence: [
      ...writerText(context, held),
      ...(unread.length === 0 ? [] : [unreadText(unread)]),
      ...suspects.map((one) => `suspect ${suspectText(one)}: ${evidenceFor(one).join('; ')}`),
      ...exclusionEvidence(excluded),
      ...logEvidence(context, lines),
      ...others,
      ...(known === undefined ? ['not a well-known finalizer'] : purposeOf(held)),
      ...(paused === undefined ? [] : [pauseText(paused)]),
      ...statusEvidence(context, held),
      ...warnings.map(
        ({ what: about, component, at, message }) =>
          `${about}, by ${component} at ${at}: ${message}`,
      ),
    ],
    scope: 'namespace',
    certainty: 'unknown',
    ownerLog: lines.length > 0 ? quotedLines(lines) : undefined,
    remedies: [
      ...facing,
      ...(isFound ? [] : [withRole(facing.length > 0 ? 'or' : 'now', find)]),
      ...knownRemedies(held),
      ...removal,
    ],
  };
}

/** Returns how a controller to which clues point handles the object again, if its arguments leave it or its namespace out. */
function restrictionRemedies(
  context: Context,
  held: Held,
  excluded: readonly Excluded[],
): Remedy[] {
  const meant = excluded.flatMap(({ suspect, by }) =>
    by.isRestriction && isMoreThanAble(suspect) ? [suspect] : [],
  );
  if (meant.length === 0) return [];
  const { kind, name } = held.subject;
  const details = [
    ...meant.flatMap(({ actor }) => (actor ? restrictionText(context, actor) : [])),
    ...labelTexts(held, meant),
  ].join('; ');
  const text = `Let ${meant.map(suspectText).join(' or ')} handle ${kind} ${name}, if the object is its own: its arguments or environment leave the object out${details && ` (${details})`}`;
  return [withRole('now', { text })];
}

/** Returns its name with its state. */
function withState(context: Context, suspect: Suspect): string {
  const { actor } = suspect;
  const state = actor === undefined || actor.isGone ? 'gone' : stateText(context, actor);
  return `${suspectText(suspect)} (${state})`;
}

/** Returns the labels of the object that selectors of these controllers name. */
function labelTexts({ objects }: Held, restricted: readonly Suspect[]): string[] {
  const selectors = restricted.flatMap(({ actor }) => actor?.selectors ?? []);
  const labels = Object.entries(objects[0]?.labels ?? {})
    .filter(([key]) => selectors.some((selector) => selector.includes(key)))
    .map(([key, value]) => `${key}=${value}`);
  return labels.length === 0 ? [] : [`the object has ${listNames(labels)}`];
}

function pauseText({ object, by }: Pause): string {
  return `${object.kind} ${object.name} has ${by}, so its controller may ignore it`;
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
  const isMarked = clues.some(({ kind }) => kind === 'marks');
  const isWriter = clues.some(({ kind }) => kind === 'writer');
  return [
    ...clues.flatMap(({ kind, text }) =>
      (isMarked && kind === 'permission') || (isWriter && kind === 'author') ? [] : [text],
    ),
    ...(isShown ? [] : [`RBAC: ${because}`]),
    ...(actor === undefined || actor.isGone
      ? []
      : [`${actorText(actor)}: ${actor.ready} of ${actor.wanted} ready`]),
    ...(actor === undefined || actor.selectors.length === 0
      ? []
      : [`it was started with ${actor.selectors.join(' ')}`]),
  ];
}

/** Returns the exclusions with what points to the suspects. */
export function exclusionEvidence(excluded: readonly Excluded[]): string[] {
  return excluded
    .slice(0, MAX_SUSPECTS)
    .map(
      ({ suspect, by }) =>
        `ruled out ${suspectText(suspect)}: ${by.reason}. What points to it: ${suspect.clues[0]?.text}`,
    );
}

export function unreadText(labels: readonly string[]): string {
  return `${listNames(labels, 3)} could not be read`;
}

/** Returns the finalizer's field manager if it identifies a program, and all was read and no workload has its name. */
function absentWriter(context: Context, held: Held): string | undefined {
  const name = specificFieldManager(held);
  const isPresent = actorsOf(context).some((actor) => hasProgramName(actor, name));
  return name === '' || isPresent || unreadSources(context).length > 0 ? undefined : name;
}

function writerText(context: Context, held: Held): string[] {
  const writer = writerOf(held);
  if (writer === undefined) return ['managedFields name no writer of the finalizer'];
  const { manager, time } = writer;
  const absent = absentWriter(context, held) === undefined ? '' : ', and no workload has this name';
  return [
    `field manager "${manager}" wrote the finalizer${time === undefined ? '' : ` at ${time}`} (managedFields)${absent}`,
  ];
}

function purposeOf(held: Held): string[] {
  const known = knownFinalizer(held);
  return known === undefined
    ? []
    : [`${held.finalizer} protects: ${withoutPeriod(known.protects)}`];
}
