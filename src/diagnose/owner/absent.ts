import { productName } from '../../model/catalogue.ts';
import type { Remedy } from '../../model/finding.ts';
import { accountText, actorsOf, actorText, listOfOthers } from '../actors.ts';
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
import type { Excluded } from './exclusions.ts';
import {
  type Held,
  isProviderManaged,
  isSetByHand,
  knownFinalizer,
  specificFieldManager,
  writerOf,
} from './held.ts';
import { leadText } from './leases.ts';
import { logEvidence, logLinesAbout, quotedLines } from './logs.ts';
import { hasProgramName } from './names.ts';
import {
  installRemedy,
  knownRemedies,
  orderRemedies,
  resumeRemedy,
  sayingRemedy,
  statusRemedy,
} from './remedies.ts';
import { podTroubles } from './running.ts';
import { lateWarnings, type Pause, pausedBy, statusEvidence, statusTexts } from './state.ts';
import { hasClue, isMoreThanAble, type Suspect, suspectText, workloadExists } from './suspects.ts';
import { type Ownership, RUNS_OUTSIDE_TEXT, unreadSources } from './verdict.ts';

// The findings that no controller was found, and that several could be the owner.

const SEARCHED =
  'searched: workloads of every kind, pods of accounts with permission on the type, RBAC, Leases, webhooks and CRDs';
const OUTSIDE = 'a controller outside of the cluster would not be visible';
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
  const { finalizer } = held;
  const { owner, excluded, others, certainty } = ownership;
  const { definitions, namespaces } = context.now.cluster;
  const known = knownFinalizer(held);
  const gone = owner?.actor;
  const place = gone?.namespace ?? owner?.account?.namespace;
  const inside = isInside(context, place);
  const isForecast = willBeDeleted(context, gone?.namespace);
  const isLost = inside || isForecast;
  const definition = itemsIn(definitions).find(({ name }) => name === typeName(held.type));
  const home = itemsIn(namespaces).find(({ name }) => name === place);
  const isProven = certainty === 'proven';
  const account = owner?.account && accountText(owner.account);
  const fate = inside
    ? ', which was deleted with this namespace'
    : home?.deletionTimestamp &&
      `, whose namespace has been terminating since ${home.deletionTimestamp}`;
  const binding =
    owner?.account && owner.rights.change === undefined
      ? departedGrant(context, owner.account, held.type)
      : undefined;
  const where =
    binding === undefined
      ? ''
      : `, with a ClusterRoleBinding: RoleBinding ${binding} was deleted, and a terminating namespace accepts no new one`;
  const state = isLost ? fateText(context, place) : 'was deleted';
  const [other] = others;
  // Administrators and GitOps tools have such a permission in every cluster. The evidence names them.
  const alone =
    other === undefined
      ? `no other controller that would remove it was found in this cluster`
      : `others may remove it: ${other}`;
  const facts = [
    ...(known === undefined ? [] : [`the finalizer belongs to ${known.owner}`]),
    ...(gone !== undefined
      ? [isProven ? alone : `it may have owned ${finalizer}, and ${alone}`]
      : account === undefined
        ? []
        : [`its controller may have run as ${account}${fate ?? ''}`]),
    ...ruledOut(excluded.filter(({ by }) => by.isRestriction)).slice(0, 1),
    ...(isProven ? [] : [OUTSIDE]),
  ].join('; ');
  return {
    code: 'owner-missing',
    subject: gone
      ? subjectOf(gone)
      : definition
        ? definitionSubject(definition.name)
        : held.subject,
    finalizer,
    // A deleted workload is the subject itself.
    cause:
      gone === undefined
        ? ((inside ? owner?.account?.name : account) ??
          known?.owner ??
          (specificFieldManager(held) || undefined))
        : undefined,
    message: `${gone === undefined ? 'has no controller that was found in this cluster' : state}; ${facts}`,
    continuation: `no controller that would remove it was found in this cluster; ${facts}`,
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
    wasDeletedWithNamespace: ownership.wasDeletedWithNamespace || undefined,
    remedies: [
      ...(isLost ? orderRemedies(context, held, gone ? actorText(gone) : 'their controller') : []),
      ...(isForecast
        ? []
        : [
            installRemedy(
              held,
              gone && actorText(gone),
              `${fate === undefined ? '' : ' in another namespace'}${where}`,
            ),
            ...pauseRemedies(context, held),
            ...knownRemedies(held, true),
            ...removal,
          ]),
    ],
    waitsForNamespace: inside
      ? `${gone === undefined ? 'its controller' : 'it'} ${fateText(context)}`
      : undefined,
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
  const known = knownFinalizer(held);
  const lines = suspects.flatMap(({ actor }) => (actor ? logLinesAbout(context, held, actor) : []));
  const leads = suspects.flatMap(({ actor }) => {
    if (actor === undefined) return [];
    const lead = leadText(context, held, actor);
    return lead === undefined ? [] : [`${actorText(actor)} may not lead: ${lead}`];
  });
  const absent = absentWriter(context, held);
  const paused = pausedBy(context, held);
  const [said] = statusTexts(context, held);
  const warnings = lateWarnings(context, held);
  const [warned] = said === undefined ? warnings : [];
  const isPresent =
    unread.length > 0 ||
    owner !== undefined ||
    ownership.suspects.some((one) => isMoreThanAble(one)) ||
    excluded.some(({ suspect, by }) => by.isRestriction || hasClue(suspect, 'catalogue'));
  const facts = [
    ...(unread.length === 0 ? [] : [unreadText(unread)]),
    ...(known === undefined
      ? []
      : [
          `the finalizer belongs to ${known.owner}${isPresent ? '' : ', and no workload of it was found'}`,
        ]),
    ...(owner === undefined
      ? []
      : [`${suspectText(owner)}, which may remove it, does not run any more`]),
    ...(suspects.length === 0
      ? []
      : [`it could be ${listNames(suspects.map((one) => stateText(context, one)))}`]),
    ...(suspects.length === 1 ? leads : []),
    // A clue to this controller may count more than the reason that rules it out: a permission may have been lost.
    ...ruledOut(
      excluded.filter(({ suspect, by }) => by.isRestriction || isMoreThanAble(suspect)),
    ).slice(0, MAX_SUSPECTS),
    ...(absent === undefined
      ? []
      : [`field manager "${absent}" has set it, and no workload has this name`]),
    ...(isSetByHand(held) ? [`a person has set it, with "${writerOf(held)?.manager}"`] : []),
    ...others.filter((text) => text.startsWith(RUNS_OUTSIDE_TEXT)).slice(0, 1),
    ...(paused === undefined ? [] : [pauseText(paused)]),
    ...(said ? [`${said.object.kind} ${said.object.name} says: ${shortQuote(said.text)}`] : []),
    ...(warned ? [`${warned.what} says: ${shortQuote(warned.message)}`] : []),
  ];
  const why = `its owner is not known: ${facts.join('; ') || 'no clue points to a controller'}`;
  const what = `${subject.kind} ${subject.name}`;
  const { stopped = [], running = [] } = Object.groupBy(suspects, ({ actor }) =>
    actor?.ready === 0 ? 'stopped' : 'running',
  );
  const product = known && (productName(known) ?? 'its usual controller');
  const look = (logs: string): string => `look for ${what} in ${logs}`;
  const search =
    running.length > 0
      ? look('the log of each suspect that runs')
      : known && isProviderManaged(known)
        ? `ask the provider of the cluster about ${product}`
        : product === undefined
          ? look('the logs of controllers, or ask its author')
          : isPresent
            ? look(`the log of ${product}`)
            : `see whether ${product} is installed, or runs outside of this cluster`;
  // Workloads that do not run have no log that would tell.
  const ways = [
    ...(running.length > 0 || stopped.length === 0 ? [search] : []),
    ...(stopped.length === 0
      ? []
      : [
          `if it is ${listNames(stopped.map(suspectText))}, ${stopped.length === 1 ? 'which is not ready' : 'none of which is ready'}, make it ready`,
        ]),
  ];
  const shownAsExcluded = excluded
    .slice(0, MAX_SUSPECTS)
    .map(({ suspect }) => suspectText(suspect));
  const text = `Find out which controller removes ${finalizer}: ${ways.join('; ')}`;
  // Facts that the object itself shows do not depend on its owner.
  const restrictions = restrictionRemedies(context, held, ownership);
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
    cause: suspects.length > 0 ? undefined : (known?.owner ?? absent),
    message: `has finalizer ${finalizer}, and ${why}`,
    continuation: why,
    evidence: [
      ...writerText(context, held),
      ...suspects.map((one) => `suspect ${suspectText(one)}: ${evidenceFor(one).join('; ')}`),
      ...leads,
      ...exclusionEvidence(excluded),
      ...logEvidence(context, lines),
      ...others.filter((one) => !shownAsExcluded.some((who) => one.startsWith(who))),
      ...(known === undefined ? ['not a well-known finalizer'] : purposeOf(held)),
      ...(paused === undefined ? [] : [pauseText(paused)]),
      ...statusEvidence(context, held),
      ...warnings.map(
        ({ what, component, at, message }) => `${what}, by ${component} at ${at}: ${message}`,
      ),
    ],
    scope: 'namespace',
    certainty: 'unknown',
    ownerLog: lines.length > 0 ? quotedLines(lines) : undefined,
    remedies: [
      ...facing,
      ...(isFound ? [] : [withRole(facing.length > 0 ? 'or' : 'now', { text })]),
      ...knownRemedies(held),
      ...removal,
    ],
  };
}

/** Returns how a controller to which clues point handles the object again, if its arguments leave it or its namespace out. */
function restrictionRemedies(
  context: Context,
  held: Held,
  { suspects, excluded }: Ownership,
): Remedy[] {
  const restricted = [
    ...excluded.flatMap(({ suspect, by }) => (by.isRestriction ? suspect : [])),
    ...suspects.filter(({ actor }) => actor !== undefined && listOfOthers(context, actor)),
  ];
  const meant = restricted.filter((one) => isMoreThanAble(one)).slice(0, MAX_SUSPECTS);
  if (meant.length === 0) return [];
  const { kind, name } = held.subject;
  const details = [
    ...meant.flatMap((one) => restrictionText(context, one)),
    ...labelTexts(held, meant),
  ].join('; ');
  const text = `Let ${meant.map(suspectText).join(' or ')} handle ${kind} ${name}, if the object is its own: its arguments or environment leave the object out${details && ` (${details})`}`;
  return [withRole('now', { text })];
}

/** Returns its name and, if none of its pods is ready, why. */
function stateText(context: Context, suspect: Suspect): string {
  const { actor } = suspect;
  if (actor?.ready !== 0) return suspectText(suspect);
  const [trouble] = podTroubles(context, actor);
  const ready = actor.wanted === 0 ? 'scaled to zero' : `0 of ${actor.wanted} ready`;
  return `${suspectText(suspect)} (${ready}${trouble === undefined ? '' : `: ${shortQuote(trouble)}`})`;
}

/** Returns what restricts it to other namespaces or labels. */
function restrictionText(context: Context, { actor }: Suspect): string[] {
  if (actor === undefined) return [];
  const { watches, ignores = [], selectors } = actor;
  const setting = listOfOthers(context, actor);
  if (setting !== undefined) return [setting];
  if (watches !== undefined) return [`it watches only ${listNames(watches)}`];
  if (ignores.length > 0) return [`it ignores ${listNames(ignores)}`];
  return selectors;
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
  const texts = clues.flatMap(({ kind, text }) =>
    isMarked && kind === 'permission' ? [] : [text],
  );
  // Several clues may come from one field manager, which is named once.
  const byManager = Map.groupBy(texts, (text) => /: (field manager ".*")$/.exec(text)?.[1]);
  const said = [...byManager].flatMap(([manager, those]) =>
    manager === undefined || those.length === 1
      ? those
      : [`${manager}: ${those.map((text) => text.slice(0, -manager.length - 2)).join('; ')}`],
  );
  return [
    ...said,
    ...(isShown ? [] : [`RBAC: ${because}`]),
    ...(actor === undefined || actor.isGone
      ? []
      : [`${actorText(actor)}: ${actor.ready} of ${actor.wanted} ready`]),
    ...(actor === undefined || actor.selectors.length === 0
      ? []
      : [`it was started with ${actor.selectors.join(' ')}`]),
  ];
}

/** Returns the exclusions of workloads that exist and that a clue other than a permission points to. */
function ruledOut(excluded: readonly Excluded[]): string[] {
  return excluded
    .filter(({ suspect }) => workloadExists(suspect))
    .map(({ suspect, by }) =>
      by.isRestriction
        ? `it could be ${suspectText(suspect)}, but ${by.reason}`
        : `${suspectText(suspect)} is ruled out: ${by.reason}`,
    );
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
