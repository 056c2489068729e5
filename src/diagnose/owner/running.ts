import { escapeForRegExp, upperFirst } from '../../base/text.ts';
import { NOT_READY, SETTINGS } from '../../model/facts/workloads.ts';
import type { Certainty, Remedy } from '../../model/finding.ts';
import type { EventFacts, LeaseFacts, ObjectFacts, Snapshot } from '../../model/snapshot.ts';
import { type Actor, actorText, isEnding } from '../actors.ts';
import { admissionResult } from '../admission/judge.ts';
import { memoryFix } from '../backends.ts';
import { linksInside, linksNamedIn, namespacesBehind } from '../chains.ts';
import { kubectl, lookRemedy, objectArgs, showObjectRemedy, withRole } from '../commands.ts';
import {
  type Context,
  definitionsOf,
  detailOf,
  isForeseen,
  isInside,
  itemsIn,
  linksTo,
  listNames,
  type RuleResult,
  resultId,
  servedType,
  shortQuote,
  typeName,
} from '../context.ts';
import { type ErrorOf, FAILURE, isAdmissionError } from '../error-texts.ts';
import { departedGrant, isRbacRead } from '../rights.ts';
import { isNodeLost } from '../rules/pods.ts';
import { type Held, knownFinalizer, lateWriters } from './held.ts';
import { hasLeader, isHolder, isRenewed, lostLease } from './leases.ts';
import { hasWord, isLogRead, logLinesAbout } from './logs.ts';
import { hasProgramName } from './names.ts';
import {
  absentObjects,
  type FailedObject,
  failedInputs,
  goneNeeds,
  lostService,
  type Need,
  namedInNamespace,
  neededCreations,
  needsOfOwner,
} from './needs.ts';
import { foregroundParts, partnerLinks } from './partners.ts';
import {
  cureRemedies,
  installRemedy,
  logRemedy,
  orderRemedies,
  removalAsFirstStep,
  restartRemedies,
  resumeRemedy,
  statusRemedy,
} from './remedies.ts';
import { untriedAdmission } from './removal.ts';
import {
  type LostAgent,
  lastComplaint,
  lostAgent,
  PROGRESS,
  pausedBy,
  poorHealth,
  protectionsOf,
  type Refusal,
  recentWarnings,
  refusalsFor,
  reportsConflict,
  statusTexts,
  typeOfResource,
} from './state.ts';
import { isMoreThanAble, type Suspect } from './suspects.ts';

interface Partner {
  actor: Actor;
  /** A predicate: "has no ready pod". */
  state: string;
  remedies: Remedy[];
}

/** Returns how another workload of the product is down: everywhere, or on the node that a held object names. */
export function partnerDown(context: Context, held: Held, actor: Actor): Partner[] {
  const then = 'the finalizer can be removed after that';
  if (actor.ready === 0 && actor.wanted > 0) {
    const remedies = podRemedies(actor, actorText(actor), then);
    return [{ actor, state: 'has no ready pod', remedies }];
  }
  const agent = lostAgent(context, held, actor);
  if (agent === undefined) return [];
  const { node, object } = agent;
  const state = `has no ready pod on node ${node}, which ${object.kind} ${object.name} names`;
  return [{ actor, state, remedies: agentRemedies(actor, agent, then) }];
}

/** An owner that exists, and the parts that all findings about it share. */
export interface OwnerCase {
  context: Context;
  held: Held;
  candidate: Suspect;
  actor: Actor;
  removal: Remedy[];
  /** The guards that refuse the update that removes the finalizer. */
  obstacles: RuleResult[];
  /** The open questions about that. */
  questions: string[];
  common: Pick<RuleResult, 'subject' | 'finalizer' | 'scope' | 'evidence'> &
    Partial<RuleResult> & { certainty: Certainty };
  /** "should remove x", with the certainty. */
  duty: string;
  /** The other workloads that the catalogue lists for the finalizer and that are down, for these objects at least. */
  partners: Partner[];
}

/** Returns a finding about the owner: what it should do, and in `words` why it is not done. */
export function findingAbout(
  { common, duty }: Pick<OwnerCase, 'common' | 'duty'>,
  code: RuleResult['code'],
  words: string,
  remedies: Remedy[],
  more: Partial<RuleResult> = {},
): RuleResult {
  const evidence = [...common.evidence, ...(more.evidence ?? [])];
  return { ...common, ...more, code, message: duty + words, evidence, remedies };
}

/** The removal of the finalizer is refused: the finding about what refuses it is linked by this sentence. */
export const REFUSED = 'it refuses the update that removes the finalizer';

/** An owner that runs, and what it was seen to do. */
interface RunningOwner extends OwnerCase {
  /** Its current errors about the objects. */
  refusals: Refusal[];
  /** Why RBAC does not let it remove the finalizer. */
  lack: string | undefined;
  /** Texts of the objects since the deletion that report no error. */
  statements: ReturnType<typeof statusTexts>;
  /** Nothing shows that it has noticed the deletion, and it waits for no other object. */
  isSilent: boolean;
}

/** Returns the findings about one reason, if there is evidence for it. */
type Reason = (owner: RunningOwner) => RuleResult[] | undefined;

/** Why an owner that runs has not removed the finalizer. The first reason with evidence is reported. */
const REASONS: readonly Reason[] = [
  // A controller that reports an error has tried: it is neither paused nor without its definition.
  reportsErrors,
  // The controller will not act.
  isPaused,
  // The controller cannot act.
  isRefused,
  isBeingDeleted,
  // A part of the controller is down.
  doesNotLead,
  lacksAgent,
  runsBySchedule,
];
/** Further reasons in a forecast: what the deletion of the namespace takes away. */
const IN_FORECASTS: readonly Reason[] = [losesItsPermission, willLackNeeds];
/** Further reasons if nothing shows that the owner has noticed the deletion: it may lack what it needs. */
const OF_SILENCE: readonly Reason[] = [mayLackNeeds, stoppedWatching];

/** Explains why a running owner has not removed the finalizer. In a forecast, nothing may stand against it. */
export function runningOwner(ownerCase: OwnerCase): RuleResult[] {
  const { actor, candidate, context, held } = ownerCase;
  const { change, impersonates } = candidate.rights;
  const lacksRight = change === undefined && !impersonates && isRbacRead(context);
  const statements = statusTexts(context, held, actor);
  const isLeading = lostLease(context, held, actor) === undefined;
  const signs = [
    ...statements,
    ...lateWriters(context, held),
    ...logLinesAbout(context, held, actor),
    ...partnerLinks(context, held),
    ...linksInside(context, held, actor),
  ];
  const owner: RunningOwner = {
    ...ownerCase,
    // A text that names an object which holds this one back reports a wait, which has a finding of its own. Without
    // the lead, an error from before the deletion is no reason.
    refusals: refusalsFor(context, held, actor).filter(
      ({ error: { kind, text }, at }) =>
        (isLeading || at >= held.since) &&
        (kind !== 'namespace-terminating' || mayCreateHere(held)) &&
        linksNamedIn(context, held, text).length === 0,
    ),
    lack: lacksRight ? `RBAC lets it neither update nor patch ${typeName(held.type)}` : undefined,
    statements,
    isSilent: signs.length === 0,
  };
  const further = isForeseen(context, held)
    ? IN_FORECASTS
    : [...(owner.isSilent ? OF_SILENCE : []), namesFailure, showsNoReason];
  for (const reason of [...REASONS, ...further]) {
    const results = reason(owner);
    if (results !== undefined) return results;
  }
  return [];
}

/** Reports whether the clean-up may create objects in the namespace. Of a known product the catalogue says whether it does. */
function mayCreateHere(held: Held): boolean {
  return knownFinalizer(held)?.needs?.some(({ action }) => action === 'create') ?? true;
}

function reportsErrors(owner: RunningOwner): RuleResult[] | undefined {
  return owner.refusals.length === 0 ? undefined : failingOwner(owner);
}

function isRefused(owner: RunningOwner): RuleResult[] | undefined {
  return owner.obstacles.length === 0 && owner.lack === undefined ? undefined : failingOwner(owner);
}

function isPaused(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, common, context, held } = owner;
  const paused = pausedBy(context, held);
  if (paused === undefined) return undefined;
  const { object, by, isUnclear } = paused;
  const what = `${object.kind} ${object.name}`;
  const words = ` and runs, but ${isUnclear ? 'may be' : 'is'} configured to ignore ${what}: ${by}`;
  const resume = resumeRemedy(servedType(context, object) ?? held.type, object, by);
  return [
    findingAbout(owner, 'owner-not-acting', words, [resume, logRemedy(context, actor)], {
      evidence: [`${what}: ${by}`],
      certainty: isUnclear ? 'likely' : common.certainty,
    }),
  ];
}

/** Explains that requests of the owner fail: by its own words, by what refuses them, or by its permissions. */
function failingOwner(owner: RunningOwner): RuleResult[] {
  const { actor, candidate, context, held, lack, obstacles, refusals, removal } = owner;
  const fateOf = (refusal: Refusal): string | undefined =>
    deletedWithNamespaceText(context, held, candidate, refusal);
  // An error that does not end by waiting decides over the others.
  const first = refusals.find((refusal) => fateOf(refusal) !== undefined) ?? refusals[0];
  const circle = first && fateOf(first);
  const admission = refusals.flatMap(({ error }) =>
    isAdmissionError(error)
      ? [admissionResult(context, error, `UPDATE of ${typeName(held.type)}`)]
      : [],
  );
  const causes = [
    ...new Map([...admission, ...obstacles].map((cause) => [resultId(cause), cause])).values(),
  ];
  const quote = first && shortQuote(first.error.text);
  // A permission can be granted from outside; an object of this namespace cannot be created again.
  const isGrantable =
    first?.error.kind === 'forbidden' &&
    impersonatedHere(first.error, context.now.namespace.name) === undefined;
  const isHopeless = circle !== undefined && !isGrantable;
  const why = quote ?? lack ?? 'the removal is refused, at least to this gate';
  // A text that quotes no answer of the API server need not be about a request.
  const fails = first?.error.kind === 'other' ? `${first.source} says` : 'its requests fail';
  const words = isHopeless
    ? ` and runs, but cannot succeed however long it tries, because ${circle}: ${why}`
    : ` and runs, but ${fails}: ${why}`;
  const cures = isHopeless
    ? removalAsFirstStep(removal)
    : cureRemedies(owner, first?.error, lack !== undefined);
  const remedies = [
    ...cures,
    ...(circle === undefined
      ? []
      : orderRemedies(context, held, 'the objects that their controller needs')),
    ...(isEnding(context, actor) ? [withRole('or', returnRemedy(owner))] : []),
    logRemedy(context, actor),
  ];
  const said = refusals
    .filter(({ source }) => !source.startsWith('the log of '))
    .map(({ error, source }) => `${source}: ${error.text}`);
  const failing = findingAbout(owner, 'owner-failing', words, remedies, {
    quote,
    evidence: [...said.slice(0, 10), ...(lack === undefined ? [] : [lack])],
    waitsFor: linksTo(causes, REFUSED),
    waitsForNamespace: circle,
  });
  return [failing, ...causes];
}

/**
 * Finds what the owner needs and was deleted with this namespace: a Secret that the object names, the
 * RoleBinding that let it act here. Nothing can be created in a terminating namespace, so it is a circle.
 */
function deletedWithNamespaceText(
  context: Context,
  held: Held,
  { account }: Suspect,
  { error }: Refusal,
): string | undefined {
  const { name } = context.now.namespace;
  // A text that it does not exist does not show that it ever did.
  const isAbsent = (what: string): string =>
    `${what} does not exist, and a terminating namespace accepts no new objects`;
  switch (error.kind) {
    case 'namespace-terminating':
      return error.namespace === name
        ? `it must create ${error.resource ?? 'an object'} here, and a terminating namespace accepts no new objects`
        : undefined;
    case 'forbidden': {
      const impersonated = impersonatedHere(error, name);
      if (impersonated !== undefined) {
        return `ServiceAccount ${impersonated}, as which it acts, was deleted with this namespace`;
      }
      const binding = account === undefined ? undefined : departedGrant(context, account);
      return (
        binding &&
        `RoleBinding ${binding}, which gave it permissions here, was deleted with this namespace`
      );
    }
    case 'not-found': {
      const { name: what, namespace, text } = error;
      const type = typeOfResource(context, error);
      const kind = type?.kind ?? error.resource;
      if (held.objects.some((one) => one.kind === kind && one.name === what)) return undefined;
      // The API server names no namespace. Operators name what they make after the object that it is for:
      // `rabbit-default-user` of RabbitmqCluster rabbit.
      const isNamed =
        (type?.namespaced !== false &&
          held.objects.some((one) => isNamedHere(context, one, what))) ||
        namedInNamespace(context, held).some((one) => `${what}-`.startsWith(`${one.name}-`));
      const isSaid =
        [`${name}/${what}`, `${what}.${name}`].some((word) => hasWord(text, word)) ||
        new RegExp(insideOf(name)).test(text);
      const isHere = namespace === undefined ? isNamed || isSaid : isInside(context, namespace);
      return isHere ? isAbsent(`${kind} ${what}`) : undefined;
    }
    case 'other':
    case 'unavailable':
    case 'timeout': {
      const gone = ABSENT.test(error.text)
        ? namedInNamespace(context, held).find((one) => hasWord(error.text, one.name))
        : undefined;
      const what = gone
        ? `${gone.type.kind} ${gone.name} (${gone.by})`
        : (absentName(name, error.text, held) ?? lostService(context, error.text));
      return what && isAbsent(what);
    }
    default:
      return undefined;
  }
}

/**
 * Reports whether a field of the spec is this name, and the object mentions no other namespace, where it could be as well. The
 * namespace of a reference need not exist any more.
 */
function isNamedHere(context: Context, object: ObjectFacts, name: string): boolean {
  const { names = [], mentions = [], references = [] } = detailOf(context, object) ?? {};
  const { cluster, namespace } = context.now;
  const { namespaces } = cluster;
  const places = references.flatMap((one) => (one.name === name ? (one.namespace ?? []) : []));
  return (
    places.every((place) => place === namespace.name) &&
    names.some((one) => one.field.startsWith('spec.') && one.name === name) &&
    namespaces?.ok === true &&
    namespaces.value.every((one) => one.name === namespace.name || !mentions.includes(one.name))
  );
}

/** Returns the ServiceAccount of this namespace that the account may not impersonate: it no longer has any permission. */
function impersonatedHere({ text }: ErrorOf<'forbidden'>, namespace: string): string | undefined {
  const place = `\\\\?"${escapeForRegExp(namespace)}\\\\?"`;
  return new RegExp(
    `"(?:system:serviceaccount:[^"\\\\:]{1,63}:)?([^"\\\\:]{1,253})\\\\?" is forbidden: .{1,500} cannot impersonate resource \\\\?"serviceaccounts\\\\?" .{1,99} in the namespace ${place}`,
  ).exec(text)?.[1];
}

const ABSENT =
  /not found|notfound|not exist|missing|no such|(?:cannot|can't|could not|couldn't|unable to) (?:be )?(?:find|found|get|read)/i;

/** Matches "in namespace team-1" and "from the namespace "team-1"". */
function insideOf(namespace: string): string {
  return `\\b(?:in|from) (?:the )?namespace[ :]{1,2}["'\`\\\\]*${escapeForRegExp(namespace)}(?![\\w-]|\\.\\w)`;
}

/**
 * Returns the object that the text calls missing with its namespace: `credential "team-1/login" was not found`, `cannot
 * get secret "login" from namespace "team-1"`.
 */
function absentName(namespace: string, text: string, { objects }: Held): string | undefined {
  const name = '([a-z0-9][a-z0-9.-]*[a-z0-9])';
  const path = `(?<![\\w./-])${escapeForRegExp(namespace)}/${name}`;
  const isAbsent =
    '["\'`)]* (?:(?:was|is|does|could|has) )?(?:been )?(?:not (?:be )?(?:found|exist)|missing)';
  const found =
    new RegExp(path + isAbsent, 'i').exec(text) ??
    (ABSENT.test(text)
      ? new RegExp(`${name}["'\`]* ${insideOf(namespace)}`, 'i').exec(text)
      : null);
  const absent = found?.[1];
  return absent && objects.every((one) => one.name !== absent)
    ? `${namespace}/${absent}`
    : undefined;
}

function losesItsPermission(owner: RunningOwner): RuleResult[] | undefined {
  const { candidate, context, held } = owner;
  const { because, isLocal } = candidate.rights;
  if (!isLocal) return undefined;
  const words = ` and runs, but may do so only by ${because[0]}, which is deleted with this namespace`;
  const waitsForNamespace =
    'the binding that gives it permissions here is deleted with this namespace';
  const remedies = orderRemedies(context, held, "their controller's permissions");
  return [findingAbout(owner, 'owner-failing', words, remedies, { waitsForNamespace })];
}

function isBeingDeleted(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context } = owner;
  if (!isEnding(context, actor)) return undefined;
  const remedies = [returnRemedy(owner), logRemedy(context, actor)];
  const words = ' and still runs, but is being deleted itself';
  return [findingAbout(owner, 'owner-running', words, remedies)];
}

/** Returns the remedy to install an owner again that is being deleted. */
export function returnRemedy({ actor, context, held }: OwnerCase): Remedy {
  const isElsewhere = isInside(context, actor.namespace);
  return installRemedy(held, actorText(actor), isElsewhere ? ' in another namespace' : '');
}

/**
 * Finds an owner without the lead. A Lease that is not renewed may be an old one: a candidate takes it within its
 * duration.
 */
function doesNotLead(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context, held } = owner;
  const lease = lostLease(context, held, actor);
  if (lease === undefined || hasWrittenSince(held, actor, lease)) return undefined;
  const { namespace, name, holder, renewTime } = lease;
  const what = `Lease ${namespace}/${name}`;
  const log = logRemedy(context, actor);
  if (isHolder(actor, lease)) {
    const words = ` and runs, but its pod holds ${what} and has not renewed it since ${renewTime}`;
    const why = `Restart ${actorText(actor)}, which is the leader and does nothing`;
    const remedies = [log, ...restartRemedies(context, actor, why)];
    return [findingAbout(owner, 'owner-running', words, remedies)];
  }
  const see = showObjectRemedy(`See which pod holds ${what}`, { kind: 'Lease', namespace, name });
  const isLed = isRenewed(context, lease);
  const words = ` and runs, but ${isLed ? 'may not lead' : 'may have no leader'}: ${what} was last renewed at ${renewTime}, by ${holder}`;
  const why = `Restart ${actorText(actor)}, so that one of its pods becomes the leader`;
  const restart = isLed ? [] : restartRemedies(context, actor, why);
  const text = `Let ${actorText(actor)} become the leader, or end the process that holds the Lease`;
  const fix = restart.length > 0 ? restart : [withRole('now', { text })];
  const remedies = [log, see, ...fix];
  // The process that leads may act in time.
  const certainty = isLed && isForeseen(context, held) ? 'unknown' : 'likely';
  return [findingAbout(owner, 'owner-running', words, remedies, { certainty })];
}

/** Reports whether the owner wrote the status of a held object after the Lease had expired: it leads by another one. */
function hasWrittenSince({ objects }: Held, actor: Actor, lease: LeaseFacts): boolean {
  const end = Date.parse(lease.renewTime ?? '') + 1_000 * (lease.durationSeconds ?? 15);
  return objects
    .flatMap(({ statusWriters }) => statusWriters)
    .some(({ manager, time }) => hasProgramName(actor, manager) && Date.parse(time ?? '') > end);
}

function lacksAgent(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, common, context, held, removal } = owner;
  const agent = lostAgent(context, held, actor);
  if (agent === undefined) return undefined;
  const { node, pod, object } = agent;
  const what =
    pod === undefined
      ? ' and may not act, because it has no pod'
      : `, but its pod ${pod} is not ready`;
  const words = `${what} on node ${node}, which ${object.kind} ${object.name} names`;
  const ifGone = removal.map((one) =>
    pod === undefined ? { ...one, text: `If node ${node} is gone for good: ${one.text}` } : one,
  );
  const remedies = [...agentRemedies(actor, agent, REMOVES), ...ifGone];
  // A name without a pod may be another name than that of a node.
  const certainty = pod === undefined ? 'likely' : common.certainty;
  return [findingAbout(owner, 'owner-not-ready', words, remedies, { certainty })];
}

/** Returns the remedies for a node on which no pod of a workload is ready. */
function agentRemedies(actor: Actor, { node, pod }: LostAgent, then: string): Remedy[] {
  const who = actorText(actor);
  if (pod !== undefined) return podRemedies(actor, `the pod of ${who} on node ${node}`, then);
  const labels = Object.entries(actor.nodeSelector).map(([key, value]) => `${key}=${value}`);
  const selector = labels.length === 0 ? '' : ` (its nodeSelector is ${labels.join(', ')})`;
  const text = `Let ${who} have a pod on node ${node}${selector}; ${then}`;
  return [withRole('now', { text }), seeRemedy(actor)];
}

/** Finds an object elsewhere that a held object names and that has failed, if the status says nothing: its credentials, say. */
function namesFailure(owner: RunningOwner): RuleResult[] | undefined {
  const [input] = owner.statements.length > 0 ? [] : failedInputs(owner.context, owner.held);
  return input && [failureElsewhere(owner, input)];
}

/** `named`: the evidence that the owner waits for the object; unless given, it only may need it. */
function failureElsewhere(owner: RunningOwner, failed: FailedObject, named?: string): RuleResult {
  const { type, object, what, by, failure } = failed;
  const { actor, context, removal } = owner;
  const isSure = named !== undefined;
  const needs = isSure ? `waits for ${what}` : `may need ${what} (${by})`;
  const who = actorText(actor);
  const words = ` and runs, but ${needs}, which says: ${shortQuote(failure)}`;
  const then = isSure
    ? `; ${who} then removes the finalizer`
    : `, if that keeps ${who} from acting`;
  const remedies = [
    showObjectRemedy(`See what ${what} says`, object, typeName(type)),
    withRole('now', { text: `Resolve what ${what} says${then}` }),
    ...removal,
    logRemedy(context, actor),
  ];
  return findingAbout(owner, isSure ? 'owner-not-acting' : 'owner-failing', words, remedies, {
    ...(!isSure && { certainty: 'likely' }),
    quote: shortQuote(failure),
    evidence: [...(isSure ? [named] : []), `${what}: ${failure}`],
  });
}

/** Returns the remedies for pods of the owner that are not ready. */
export function podRemedies(actor: Actor, who: string, then = REMOVES): Remedy[] {
  const fix = memoryFix(actor, who) ?? `Fix what keeps ${who} from being ready`;
  return [withRole('now', { text: `${fix}; ${then}` }), seeRemedy(actor)];
}

const REMOVES = 'it then removes the finalizer';

function seeRemedy(actor: Actor): Remedy {
  return lookRemedy(
    `See the state of ${actorText(actor)}`,
    kubectl('describe', ...objectArgs(actor)),
  );
}

/** A CronJob acts, and can fail, only while a Job runs. */
function runsBySchedule(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, common, context, held } = owner;
  const { name, namespace, kind } = actor;
  if (kind !== 'CronJob') return undefined;
  const text = `Start a Job of ${actorText(actor)} while the namespace is being deleted; it then removes the finalizer`;
  const command = kubectl(
    'create',
    'job',
    `${name}-now`,
    `--from=cronjob/${name}`,
    '-n',
    namespace,
  );
  const words = ', but acts only while its schedule runs a Job';
  // The next Job may begin before the timeout.
  const certainty = isForeseen(context, held) ? 'unknown' : common.certainty;
  const remedies = [withRole('now', { text, command })];
  return [findingAbout(owner, 'owner-running', words, remedies, { certainty })];
}

/** Finds what a silent owner may need and cannot get. */
function mayLackNeeds(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, common, context, held, removal } = owner;
  const gone = goneNeeds(context, held, actor).map(
    ({ what, by }) => `${what} (${by}), which does not exist in this namespace`,
  );
  const absent = absentObjects(context, held);
  const isLate = held.since >= (context.now.namespace.deletionTimestamp ?? '');
  const created = isLate ? neededCreations(context, held) : [];
  const lacks = [
    ...gone,
    ...absent.map((what) => `${what}, which does not exist`),
    ...created.map((what) => `to create ${what} here, which a terminating namespace refuses`),
  ];
  if (lacks.length === 0) return undefined;
  const words = ` and runs, but may need ${lacks.join(', and ')}`;
  const remedies = [
    ...absent.map((what) => withRole('now', { text: `Create ${what} again, as it was` })),
    ...(gone.length === 0 ? [] : orderRemedies(context, held, 'the objects that it may need')),
    ...removal,
    logRemedy(context, actor),
  ];
  const isOfNamespace = gone.length + created.length > 0;
  const more = {
    certainty: 'likely',
    evidence: lacks.map((what) => `it may need ${what}`),
    scope: isOfNamespace ? 'namespace' : common.scope,
  } as const;
  return [findingAbout(owner, 'owner-failing', words, remedies, more)];
}

const CRASHED_LATELY_MS = 10 * 60_000;
const MANY_RESTARTS = 3;

/** Returns why an owner that is ready may not act on these objects: by how it was started, or because it crashes again and again. */
function limitsOf(context: Context, held: Held, { limits = [], pods }: Actor): string[] {
  const { type, objects } = held;
  // A controller that writes here does not leave the namespace out: before the deletion a status, since then anything.
  const writes = isForeseen(context, held)
    ? objects.flatMap(({ statusWriters }) => statusWriters)
    : lateWriters(context, held);
  const names = [type.kind.toLowerCase(), type.resource];
  const isAboutType = (limit: string): boolean =>
    !LISTS_TYPES.test(limit) ||
    limit
      .toLowerCase()
      .split(/[=,]/)
      .some((one) => names.includes(one));
  const own = limits
    .filter((limit) => isAboutType(limit) && mayLeaveOut(context, limit))
    .filter((limit) => writes.length === 0 || !hasSettings(limit))
    .map((limit) => (hasSettings(limit) ? settingsText(limit) : `it was started with ${limit}`));
  const crashes = pods
    .filter(({ ready }) => ready)
    .map(({ containers = [] }) =>
      containers.find(
        ({ crashedAt = '', restarts = 0 }) =>
          restarts >= MANY_RESTARTS && context.nowMs - Date.parse(crashedAt) < CRASHED_LATELY_MS,
      ),
    );
  const [first] = crashes;
  if (first !== undefined && !crashes.includes(undefined)) {
    own.push(
      `it has restarted ${first.restarts} times, the last time after a crash at ${first.crashedAt}`,
    );
  }
  return own;
}

/** A limit that lists types, and not one that is about all objects. */
const LISTS_TYPES = /^--?(?:disable|skip|exclude)/;

const hasSettings = (limit: string): boolean => SETTINGS.test(limit.replace(/=.*/s, ''));
const settingsText = (limit: string): string =>
  `it has settings that this gate does not read: ${limit}`;

/** Returns where a controller has settings that are not read. */
export const unreadSettings = (actor: Actor): string[] =>
  (actor.limits ?? []).filter(hasSettings).map(settingsText);

/** Reports whether a limit is no namespace, or another one that exists. What a single namespace is for only hindsight asks. */
function mayLeaveOut({ now }: Context, limit: string): boolean {
  const place = /_NAMESPACE=(.+)$/.exec(limit)?.[1];
  return (
    place === undefined ||
    (now.forecast === undefined &&
      place !== now.namespace.name &&
      itemsIn(now.cluster.namespaces).some(({ name }) => name === place))
  );
}

/**
 * Finds what a running owner needs and will lack. Only the owner knows whether it can work without what a deletion
 * of the namespace takes away, unless the catalogue or an earlier deletion says so.
 */
function willLackNeeds(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context, held } = owner;
  const states = [
    ...owner.questions,
    ...owner.partners.map(partnerText),
    ...namespacesBehind(context, held).map(({ because }) => because),
    ...held.objects.flatMap((object) =>
      poorHealth(context, object).map(
        (text) => `${object.kind} ${object.name} says in its status: ${shortQuote(text)}`,
      ),
    ),
    ...recentWarnings(context, held, actor),
    ...protectionsOf(context, held),
    ...limitsOf(context, held, actor),
    ...foregroundParts(context, held).map(
      ({ kind, name, finalizers }) =>
        `it waits until ${kind} ${name} is deleted, and what that waits for (${listNames(finalizers)}) was not examined`,
    ),
  ].map((text): Need => ({ kind: 'state', text, certainty: 'unknown' }));
  const known = needsOfOwner(context, held, actor);
  const needs = [...known, ...states.filter(({ text }) => known.every((one) => one.text !== text))];
  const [first] = needs;
  if (first === undefined) return undefined;
  const words = { object: 'it may need', create: 'it may have to create', state: '' };
  const fates = {
    object: ', deleted with this namespace',
    create: ' here, which a terminating namespace refuses',
    state: '',
  };
  const clauses = needs.map(({ kind, text }) => `${words[kind]} ${text}${fates[kind]}`.trim());
  const names = listNames(needs.flatMap(({ kind, text }) => (kind === 'state' ? [] : [text])));
  const text = `Find out before the deletion whether this keeps ${actorText(actor)} from removing ${held.finalizer}, and resolve it`;
  const remedies =
    names === ''
      ? [withRole('now', { text }), logRemedy(context, actor)]
      : orderRemedies(context, held, names);
  return [
    findingAbout(owner, 'owner-failing', ` and runs; ${clauses.slice(0, 5).join('; ')}`, remedies, {
      certainty: first.certainty,
      evidence: clauses,
      waitsForNamespace:
        names === '' ? undefined : `${names}: not available while this namespace terminates`,
    }),
  ];
}

/**
 * Finds a CRD that was deleted before the objects: some controllers then end their watch, although the API server
 * still serves one.
 */
function stoppedWatching(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context, held, removal } = owner;
  const crd = definitionsOf(context).find(({ name }) => name === typeName(held.type));
  const isEarlier = Date.parse(crd?.deletionTimestamp ?? '') <= Date.parse(held.since);
  if (crd === undefined || !isEarlier) return undefined;
  const fate = `${crd.name} has been terminating since ${crd.deletionTimestamp}`;
  const words = ` and runs, but may no longer watch ${held.type.kind}: ${fate}, and nothing shows that it has noticed the deletion of ${held.subject.kind} ${held.subject.name}`;
  const why = 'Restart the controller, so that it watches again';
  const remedies = [...restartRemedies(context, actor, why), ...removal, logRemedy(context, actor)];
  const evidence = [`CustomResourceDefinition ${fate}`];
  const more = { certainty: 'likely', evidence } as const;
  return [findingAbout(owner, 'owner-not-acting', words, remedies, more)];
}

/**
 * Says what was looked at. What the status has said since the deletion is the state; the last error from before is only
 * quoted. Admission that was not asked may refuse what the owner does, and only a part of the owner may be down.
 */
function showsNoReason(owner: RunningOwner): RuleResult[] {
  const { actor, common, context, held, questions, removal, statements } = owner;
  const { kind, name } = held.subject;
  const who = actorText(actor);
  const [said] = statements;
  const complaint = said === undefined ? lastComplaint(context, held, actor) : undefined;
  const quoted = said ?? (complaint?.isOfOthers ? undefined : complaint);
  const quote = quoted && shortQuote(quoted.text);
  const looked = complaint?.isOfOthers
    ? 'only another program reports an error in the status'
    : reportsConflict(context, held, actor)
      ? 'the only error that is reported, a conflict, heals by itself'
      : isLogRead(context, actor)
        ? 'status, Events and the newest lines of its log report no error about it'
        : 'status and Events report no error about it (the log was not read)';
  const untried = untriedAdmission(context, held, actor);
  const [open] = [...questions, ...untried];
  const protections = protectionsOf(context, held);
  const [limit] = said === undefined ? [...protections, ...limitsOf(context, held, actor)] : [];
  const isPart = actor.ready < actor.wanted && !hasLeader(context, actor);
  const [partner] = owner.partners;
  const state = said
    ? `. ${said.object.kind} ${said.object.name} says: ${quote}`
    : complaint !== undefined && quoted !== undefined
      ? `; it may be slow or in back-off. ${upperFirst(complaint.who)} says: ${quote}`
      : open === undefined
        ? `; ${looked}, so it may be slow or in back-off`
        : '';
  const words = [
    ` and runs, ${actor.ready} of ${actor.wanted} ready`,
    isPart ? `: the one that handles ${kind} ${name} may be one that is not` : '',
    state,
    open === undefined ? '' : `; ${open.replace(/: .*/s, '')}`,
    limit === undefined ? '' : `; ${limit}`,
    partner === undefined ? '' : `; ${partnerText(partner)}`,
  ];
  const down = actor.pods.filter(({ ready }) => !ready).map((pod) => pod.name);
  const grant = `. With permission to patch ${typeName(held.type)}, this gate tries it by a dry run`;
  const ask = `Find out whether admission refuses the update that removes the finalizer${untried.length > 0 ? grant : ''}`;
  const { candidate } = owner;
  const isSeen = isMoreThanAble(candidate);
  const time = isSeen
    ? `Give ${who} more time: raise the timeout`
    : `Find out from its log whether ${who} handles ${kind} ${name}: nothing else shows it. If it does, raise the timeout`;
  const remedies = [
    logRemedy(context, actor),
    ...(isPart
      ? [...podRemedies(actor, `Pod ${listNames(down)} of ${who}`), ...removal]
      : partner !== undefined
        ? partner.remedies
        : said !== undefined && !goesOn(said.text)
          ? [statusRemedy(said.object, said.text)]
          : limit !== undefined
            ? [
                withRole('now', {
                  text: `Find out whether this keeps ${who} from acting: ${limit}`,
                }),
              ]
            : [withRole('now', { text: open === undefined ? time : ask })]),
  ];
  const evidence = [
    ...[said, complaint].flatMap((one) => (one ? [`${one.source}: ${one.text}`] : [])),
    ...[...(isPart ? [actor] : []), ...owner.partners.map((one) => one.actor)].flatMap((one) =>
      podTroubles(context, one).slice(0, 3),
    ),
    ...untried,
  ];
  const isSure = ![open, limit, partner].some(Boolean) && !isPart && !complaint?.isOfOthers;
  const certainty = isSure ? common.certainty : 'likely';
  const scope = said === undefined && protections.length > 0 ? 'namespace' : common.scope;
  const more = { evidence, quote, certainty, scope };
  return [findingAbout(owner, 'owner-running', words.join(''), remedies, more)];
}

const partnerText = ({ actor, state }: Partner): string =>
  `${actorText(actor)} works on such objects too and ${state}`;

/** Reports whether a text only says that the work goes on: nothing in it can be resolved. */
function goesOn(text: string): boolean {
  return PROGRESS.test(text) || (ONGOING.test(text) && !FAILURE.test(text));
}

const ONGOING = /\b(?:deleting|terminating|draining|uninstalling|requeu\w+)\b|\bin progress\b/i;

/** Returns the problems of its pods: of the node, of the containers, and in Warning Events. */
export function podTroubles({ now }: Context, { namespace, pods }: Actor): string[] {
  const events = warningsIn(now, namespace);
  return pods.flatMap((pod) => {
    // The condition Ready only says that containers are not ready; Events say why, as of a volume that cannot be mounted.
    const { symptoms = [], reasons = [] } = Object.groupBy(pod.troubles, (text) =>
      text.startsWith(NOT_READY) ? 'symptoms' : 'reasons',
    );
    return [
      ...(isNodeLost(now, pod) ? [`its node ${pod.nodeName} is not ready`] : []),
      ...reasons,
      ...events.flatMap(({ regarding, reason, message }) =>
        regarding.uid === pod.uid ? `${reason}: ${message}` : [],
      ),
      ...symptoms,
    ].map((text) => `Pod ${pod.name}: ${text}`);
  });
}

/** Returns the Warning Events of a namespace, newest first. */
export function warningsIn({ places }: Snapshot, namespace: string): EventFacts[] {
  return itemsIn(places[namespace]?.events)
    .filter(({ type }) => type === 'Warning')
    .toSorted((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1));
}
