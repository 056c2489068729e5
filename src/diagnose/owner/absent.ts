import type { Remedy } from '../../model/finding.ts';
import { accountText, actorsOf, actorText } from '../actors.ts';
import { productName } from '../catalogue.ts';
import { withoutPeriod, withRole } from '../commands.ts';
import {
  type Context,
  definitionSubject,
  detailOf,
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
import { RUNS_OUTSIDE_TEXT } from './clues.ts';
import type { Excluded } from './exclusions.ts';
import {
  finalizerDomain,
  type Held,
  isSetByHand,
  knownFinalizer,
  specificFieldManager,
  writerOf,
} from './held.ts';
import { leasesOfGroups, leasesOfProgram } from './leases.ts';
import { logEvidence, logLinesAbout, quotedLines } from './logs.ts';
import { hasProgramName } from './names.ts';
import {
  installRemedy,
  knownRemedies,
  orderRemedies,
  resumeRemedy,
  statusRemedy,
} from './remedies.ts';
import { type Pause, pausedBy, statusEvidence, statusTexts } from './state.ts';
import { hasClue, hasClueThat, type Suspect, suspectText, workloadExists } from './suspects.ts';
import { type Ownership, unreadSources } from './verdict.ts';

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
  const { owner, suspects, excluded, others, permitted, certainty } = ownership;
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
  const state = isLost ? fateText(context, place) : 'was deleted';
  const [other] = [...suspects.map(suspectText), ...others];
  const alone =
    other === undefined
      ? 'no other controller that would remove it was found in this cluster'
      : `others may remove it: ${other}`;
  // The author of an object may have copied the finalizer.
  const link = owner && hasClueThat(owner, 'proven') ? 'most likely owned' : 'may have owned';
  const facts = [
    ...(known === undefined ? [] : [`the finalizer belongs to ${known.owner}`]),
    ...(gone !== undefined
      ? [isProven ? alone : `it ${link} ${finalizer}, and ${alone}`]
      : account === undefined
        ? []
        : [`its controller may have run as ${account}${fate ?? ''}`]),
    ...ruledOut(excluded.filter(({ by }) => by.isForLackOfPermission === undefined)).slice(0, 1),
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
      ...staleLeases(context, held),
      ...exclusionEvidence(excluded),
      ...others,
      ...permitted,
      ...(isForecast ? [] : statusEvidence(context, held)),
    ],
    scope: inside ? 'namespace' : 'cluster',
    certainty,
    wasDeletedWithNamespace: ownership.wasDeletedWithNamespace || undefined,
    remedies: [
      ...(isLost ? orderRemedies(context, held, gone ? actorText(gone) : 'their controller') : []),
      ...(isForecast
        ? []
        : [
            installRemedy(held, gone && actorText(gone), fate !== undefined),
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
  const { owner, excluded, others, unread, doubt } = ownership;
  const suspects = ownership.suspects.slice(0, MAX_SUSPECTS);
  const known = knownFinalizer(held);
  const lines = suspects.flatMap(({ actor }) => (actor ? logLinesAbout(context, held, actor) : []));
  const absent = absentWriter(context, held);
  const paused = pausedBy(context, held);
  const [said] = statusTexts(context, held);
  const facts = [
    ...(unread.length === 0 ? [] : [unreadText(unread)]),
    ...(known === undefined ? [] : [`it belongs to ${known.owner}`]),
    ...(owner === undefined || workloadExists(owner)
      ? []
      : [`${suspectText(owner)}, which may remove it, does not run any more`]),
    ...(suspects.length === 0 ? [] : [`it could be ${listNames(suspects.map(suspectText))}`]),
    // A permission may have been lost: what points to this controller still does.
    ...ruledOut(
      suspects.length === 0
        ? excluded
        : excluded.filter(
            ({ suspect, by }) => by.isForLackOfPermission && hasClueThat(suspect, 'proven'),
          ),
    ).slice(0, 1),
    ...(absent === undefined
      ? []
      : [`field manager "${absent}" has set it, and no workload has this name`]),
    ...(isSetByHand(held) ? [`a person has set it, with "${writerOf(held)?.manager}"`] : []),
    ...others.filter((text) => text.startsWith(RUNS_OUTSIDE_TEXT)).slice(0, 1),
    ...(paused === undefined ? [] : [pauseText(paused)]),
    ...(said ? [`${said.object.kind} ${said.object.name} says: ${shortQuote(said.text)}`] : []),
  ];
  const why = `its owner is not known: ${facts.join('; ') || 'no clue points to a controller'}`;
  const what = `${subject.kind} ${subject.name}`;
  const logs =
    suspects.length > 0
      ? 'the log of each suspect'
      : known
        ? `the log of ${productName(known) ?? 'its usual controller'}`
        : 'the logs of controllers, or ask its author';
  const text = `Find out which controller removes ${finalizer}: look for ${what} in ${logs}`;
  // Facts that the object itself shows do not depend on its owner.
  const pauses = pauseRemedies(context, held);
  const facing = [
    ...pauses,
    ...restrictionRemedies(context, excluded),
    ...(said !== undefined && pauses.length === 0 ? [statusRemedy(said.object)] : []),
  ];
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
      ...(doubt === undefined ? [] : [doubt]),
      ...exclusionEvidence(excluded),
      ...logEvidence(context, lines),
      ...others,
      ...(known === undefined ? ['not a well-known finalizer'] : purposeOf(held)),
      ...(paused === undefined ? [] : [pauseText(paused)]),
      ...statusEvidence(context, held),
      ...attachments(context, held),
    ],
    scope: 'namespace',
    certainty: 'unknown',
    ownerLog: lines.length > 0 ? quotedLines(lines) : undefined,
    remedies: [
      ...facing,
      withRole(facing.length > 0 ? 'or' : 'now', { text }),
      ...knownRemedies(held),
      ...removal,
    ],
  };
}

/** Returns how the writer of the finalizer handles the object again, if its arguments leave this namespace out. */
function restrictionRemedies({ now }: Context, excluded: readonly Excluded[]): Remedy[] {
  return excluded
    .filter(({ suspect, by }) => by.isRestriction && hasClue(suspect, 'writer'))
    .slice(0, 1)
    .map(({ suspect }) =>
      withRole('now', {
        text: `Let ${suspectText(suspect)} watch Namespace ${now.namespace.name}, if the object is its own: it has the name of the finalizer's writer, and its arguments or environment leave this namespace out`,
      }),
    );
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
  const texts = clues.flatMap(({ about, text }) => (about === 'anyone' ? [] : [text]));
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

/**
 * Returns the exclusions of workloads that exist and that a clue other than a permission points to; those by permissions
 * last, which may have changed.
 */
function ruledOut(excluded: readonly Excluded[]): string[] {
  const rank = ({ by }: Excluded): number => Number(by.isForLackOfPermission === true);
  return excluded
    .filter(({ suspect }) => workloadExists(suspect))
    .toSorted((a, b) => rank(a) - rank(b))
    .map(({ suspect, by }) => `${suspectText(suspect)} is ruled out: ${by.reason}`);
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

function staleLeases(context: Context, held: Held): string[] {
  const leases = [
    ...leasesOfGroups(context, finalizerDomain(context, held)),
    ...leasesOfProgram(context, specificFieldManager(held)),
  ];
  return [...new Set(leases)].map(
    ({ namespace, name, holder, renewTime }) =>
      `Lease ${namespace}/${name} was last renewed at ${renewTime}${holder === undefined ? '' : ` by ${holder}`}`,
  );
}

/** Returns the attachments of a claim's volume, for which the claim may wait. */
function attachments(context: Context, held: Held): string[] {
  const named = held.objects.flatMap((object) => detailOf(context, object)?.references ?? []);
  return itemsIn(context.now.cluster.volumeAttachments)
    .filter(({ volume }) => named.some(({ name }) => name === volume))
    .map(
      ({ name, attacher, node, attached, error }) =>
        `VolumeAttachment ${name}: attacher ${attacher}, node ${node}, attached=${attached}${error === undefined ? '' : `, ${error}`}`,
    );
}
