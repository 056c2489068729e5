import { upperFirst } from '../../base/text.ts';
import { formatDuration } from '../../base/time.ts';
import { SETTINGS } from '../../model/facts/programs.ts';
import { NOT_READY } from '../../model/facts/workloads.ts';
import type { Certainty, FindingCode, Remedy } from '../../model/finding.ts';
import type { EventFacts, ObjectFacts, Snapshot } from '../../model/snapshot.ts';
import { type Actor, actorText, isEnding } from '../actors.ts';
import { admissionResult } from '../admission/judge.ts';
import { kubectl, objectArgs, showObjectRemedy, withRole } from '../commands.ts';
import {
  type Context,
  definitionsOf,
  detailOf,
  isForeseen,
  isInside,
  itemsIn,
  listNames,
  type RuleResult,
  resultId,
  servedType,
  shortQuote,
  typeName,
} from '../context.ts';
import { classifyErrorText, FAILURE, isAdmissionError } from '../error-texts.ts';
import { isRbacRead } from '../rights.ts';
import { isNodeLost } from '../rules/pods.ts';
import { idsAwaited, idsInText, namespacesAwaited } from '../waits.ts';
import { restrictionText } from './exclusions.ts';
import { type Held, knownFinalizer, lateWriters } from './held.ts';
import { hasLeader, isHolder, isRenewed, lostLease } from './leases.ts';
import { isLogRead, logLinesAbout } from './logs.ts';
import { hasProgramName } from './names.ts';
import {
  absentObjects,
  failedInputs,
  goneNeeds,
  lostWithNamespace,
  type Need,
  neededCreations,
  needsOfOwner,
} from './needs.ts';
import { foregroundParts } from './partners.ts';
import { pausedBy, protectionsOf } from './pauses.ts';
import {
  agentRemedies,
  cureRemedies,
  escapeRemedies,
  installRemedy,
  logRemedies,
  orderRemedies,
  podRemedies,
  removalAsFirstStep,
  restartRemedies,
  resumeRemedy,
  scaleUpRemedy,
  statusRemedy,
} from './remedies.ts';
import { untriedAdmission } from './removal.ts';
import {
  ageText,
  lastComplaint,
  PROGRESS,
  poorHealth,
  type Refusal,
  recentWarnings,
  refusalsFor,
  reportsConflict,
  statusTexts,
} from './statements.ts';
import { isMoreThanAble, type Suspect } from './suspects.ts';

/** An owner that exists, and what was read of it. */
export interface Owner {
  context: Context;
  held: Held;
  candidate: Suspect;
  actor: Actor;
  certainty: Certainty;
  /** What all its findings have in common. */
  common: Pick<RuleResult, 'subject' | 'finalizer' | 'evidence'> & Partial<RuleResult>;
  /** The removal of the finalizer by hand. */
  removal: Remedy[];
  /** The guards that refuse the update that removes the finalizer, and open questions about that. */
  obstacles: RuleResult[];
  questions: string[];
  /** Other workloads that the catalogue lists for the finalizer and that are down, for these objects at least. */
  partners: Partner[];
}

interface Partner {
  actor: Actor;
  /** A predicate: "has no ready pod". */
  state: string;
  remedies: Remedy[];
}

/** What shows that the owner is in a state. */
interface Found {
  /** What follows "should remove x". */
  words: string;
  remedies: Remedy[];
  more?: Partial<RuleResult>;
  /** The findings about what keeps it in the state. */
  causes?: RuleResult[];
}

interface State {
  state: string;
  code: FindingCode;
  /** `hang`: not in a forecast. `silent`: only in a hang in which nothing shows that it has noticed the deletion. */
  in?: 'hang' | 'silent' | 'forecast';
  /** Returns the evidence for the state, if there is any. */
  find: (owner: Signs) => Found | undefined;
}

/** The states of an owner. The first with evidence is reported. */
const STATES: readonly State[] = [
  { state: 'is being deleted and has no pods', code: 'owner-not-ready', find: endedInside },
  { state: 'has 0 replicas', code: 'owner-scaled-to-zero', find: scaledToZero },
  { state: 'has no ready pod', code: 'owner-not-ready', find: notReady },
  { state: 'does not watch this namespace', code: 'owner-not-acting', find: leavesOut },
  { state: 'says that it fails', code: 'owner-failing', find: reportsErrors },
  { state: 'is paused', code: 'owner-not-acting', find: paused },
  { state: 'is refused, or has lost its right', code: 'owner-failing', find: refused },
  { state: 'is being deleted itself', code: 'owner-running', find: beingDeleted },
  { state: 'does not lead', code: 'owner-running', find: doesNotLead },
  { state: 'has no ready pod on the node', code: 'owner-not-ready', find: lacksAgent },
  { state: 'acts by a schedule', code: 'owner-running', find: runsBySchedule },
  { state: 'loses its right', code: 'owner-failing', in: 'forecast', find: losesItsRight },
  { state: 'will lack what it needs', code: 'owner-failing', in: 'forecast', find: willLackNeeds },
  { state: 'may lack what it needs', code: 'owner-failing', in: 'silent', find: mayLackNeeds },
  { state: 'may not watch', code: 'owner-not-acting', in: 'silent', find: stoppedWatching },
  { state: 'may need what fails', code: 'owner-failing', in: 'hang', find: needsWhatFails },
  { state: 'runs', code: 'owner-running', in: 'hang', find: showsNoReason },
];

/** Returns the findings about the state of the owner. In a forecast, nothing may stand against it. */
export function stateResults(owner: Owner): RuleResult[] {
  const signs = signsOf(owner);
  const isAhead = isForeseen(owner.context, owner.held);
  const kinds = isAhead ? ['forecast'] : ['hang', ...(signs.isSilent ? ['silent'] : [])];
  for (const { code, in: when, find } of STATES) {
    const found = when === undefined || kinds.includes(when) ? find(signs) : undefined;
    if (found === undefined) continue;
    const { words, remedies, more = {}, causes = [] } = found;
    const evidence = [...owner.common.evidence, ...(more.evidence ?? [])];
    const certainty = more.certainty ?? owner.certainty;
    const { restriction } = owner.candidate;
    const also = restriction === undefined || find === leavesOut ? '' : `; besides, ${restriction}`;
    const message = `${dutyOf(owner)}${words}${also}`;
    return [{ ...owner.common, code, ...more, certainty, message, evidence, remedies }, ...causes];
  }
  return [];
}

export function dutyOf({ held, certainty }: Pick<Owner, 'held' | 'certainty'>): string {
  return `should ${certainty === 'proven' ? '' : 'most likely '}remove ${held.finalizer}`;
}

/** An owner with what it was seen to do. */
interface Signs extends Owner {
  /** Its current errors about the objects. */
  refusals: Refusal[];
  /** Texts of the objects since the deletion that report no error. */
  statements: ReturnType<typeof statusTexts>;
  /** Nothing shows that it has noticed the deletion, and it waits for no other object. */
  isSilent: boolean;
}

function signsOf(owner: Owner): Signs {
  const { actor, context, held } = owner;
  const statements = statusTexts(context, held, actor);
  const isLeading = lostLease(context, held, actor) === undefined;
  const signs = [
    ...statements,
    ...lateWriters(held),
    ...logLinesAbout(context, held, actor),
    ...idsAwaited(context, held, actor),
  ];
  // Whether the clean-up may create objects here, the catalogue says of a known product.
  const mayCreate = knownFinalizer(held)?.needs?.some(({ action }) => action === 'create') ?? true;
  return {
    ...owner,
    statements,
    isSilent: signs.length === 0,
    // A text that names an object which holds this one back reports a wait, which has a finding of its own. Without
    // the lead, an error from before the deletion is no reason.
    refusals: refusalsFor(context, held, actor).filter(
      ({ error: { kind, text }, at }) =>
        (isLeading || at >= held.since) &&
        (kind !== 'namespace-terminating' || mayCreate) &&
        idsInText(context, held, text).length === 0,
    ),
  };
}

const REMOVES = 'it then removes the finalizer';

/** A workload that is deleted with the namespace does not start again in it. */
function asleepInside({ actor, context }: Owner): Pick<RuleResult, 'waitsForNamespace'> {
  return { waitsForNamespace: isInside(context, actor.namespace) };
}

/** Its arguments leave the object out: nothing that it does matters. */
function leavesOut({ actor, candidate, context, held, removal }: Signs): Found | undefined {
  const { restriction } = candidate;
  if (restriction === undefined) return undefined;
  const { kind, name } = held.subject;
  const details = restrictionText(context, actor).join(' ');
  const text = `Let ${actorText(actor)} handle ${kind} ${name}: change what leaves it out${details && ` (${details})`}`;
  return {
    words: `, but ${restriction}${details && ` (${details})`}`,
    remedies: [withRole('now', { text }), ...removal],
  };
}

function endedInside(owner: Signs): Found | undefined {
  const { actor, context, removal } = owner;
  const isInsideOf = isInside(context, actor.namespace);
  if (!isInsideOf || !isEnding(context, actor) || actor.pods.length > 0) return undefined;
  const words =
    ', but is being deleted itself and has no pods, and a terminating namespace accepts no new ones';
  const code = actor.wanted === 0 ? ('owner-scaled-to-zero' as const) : undefined;
  const more = { ...asleepInside(owner), ...(code && { code }) };
  return { words, remedies: removalAsFirstStep(removal), more };
}

function scaledToZero(owner: Signs): Found | undefined {
  const { actor, context, held, removal } = owner;
  if (actor.wanted !== 0) return undefined;
  const { scaledBy } = actor;
  const isGoing = isEnding(context, actor);
  const wake = isGoing ? returnRemedy(owner) : scaleUpRemedy(actor);
  const at = scaledBy?.time === undefined ? '' : ` at ${scaledBy.time}`;
  const by =
    scaledBy && `field manager "${scaledBy.manager}" set its replicas${at} (managedFields)`;
  // What it meets next, once it runs again.
  const gone = isForeseen(context, held) ? [] : goneNeeds(context, held, actor);
  const needs = listNames(gone.map(({ what, by: field }) => `${what} (${field})`));
  const warning = `. It may then still fail: ${needs} does not exist any more, and nothing can be created in this namespace`;
  const first = gone.length === 0 ? wake : { ...wake, text: wake.text + warning };
  return {
    words: `, but ${scaledToZeroText(actor)}${isGoing ? ', and is being deleted itself' : ''}`,
    remedies: [first, ...removal],
    more: { ...asleepInside(owner), evidence: by === undefined ? [] : [by] },
  };
}

function scaledToZeroText({ kind, nodeSelector }: Actor): string {
  const labels = Object.entries(nodeSelector).map(([key, value]) => `${key}=${value}`);
  switch (kind) {
    case 'DaemonSet':
      return labels.length === 0
        ? 'no node takes its pods'
        : `no node has the labels of its nodeSelector (${labels.join(', ')})`;
    case 'CronJob':
    case 'Job':
      return 'is suspended';
    default:
      return 'is scaled to zero';
  }
}

/** Explains why none of its pods is ready, and what that waits for in turn. */
function notReady(owner: Signs): Found | undefined {
  const { actor, context, held, removal } = owner;
  // Readiness decides about traffic; a controller that is not ready may reconcile, and says so in its log.
  const lines = logLinesAbout(context, held, actor);
  if (actor.ready > 0 || lines.some(({ isError, at }) => isError && at >= held.since)) {
    return undefined;
  }
  const { conditions, namespace, pods, uid } = actor;
  const who = actorText(actor);
  const troubles = podTroubles(context, actor);
  const isPaused = conditions.find(({ reason }) => reason === 'DeploymentPaused');
  const halted = troubles.length > 0 ? undefined : isPaused;
  // Only ReplicaSets report refused pods in a condition; all others do in Events (kubernetes pkg/controller).
  const denied =
    conditions.find(({ type }) => type === 'ReplicaFailure') ??
    (pods.length > 0
      ? undefined
      : warningsIn(context.now, namespace).find(({ regarding }) => regarding.uid === uid));
  const said = denied?.message ?? troubles[0] ?? halted?.message;
  const why = said && shortQuote(said);
  const causes = classifyErrorText(denied?.message ?? '')
    .filter(isAdmissionError)
    .map((error) => admissionResult(context, error, `CREATE of pods of ${who}`));
  const [fix, ...looks] = podRemedies(actor, who, REMOVES);
  const cure =
    denied !== undefined
      ? {
          // The pauses of a ReplicaSet double up to 1,000 s (client-go, DefaultTypedControllerRateLimiter).
          text: `Fix what refuses the pods of ${who}; ${REMOVES}. Kubernetes waits up to 17 minutes between attempts to create pods; "kubectl rollout restart" tries at once`,
        }
      : halted !== undefined
        ? // A rollout that was paused before it began has created no pods (deployment_controller.go, sync).
          {
            text: `Resume the rollout of ${who}; ${REMOVES}`,
            command: kubectl('rollout', 'resume', ...objectArgs(actor)),
          }
        : fix;
  const state =
    actor.kind === 'Pod' ? 'is not ready' : `${actor.ready} of ${actor.wanted} replicas are ready`;
  const evidence = denied ? [`its pods are refused (${denied.reason}): ${denied.message}`] : [];
  return {
    words: `, but ${state}${why === undefined ? '' : `: ${why}`}`,
    remedies: [
      ...(cure ? [withRole('now', cure)] : []),
      ...looks,
      ...logRemedies(context, actor),
      ...removal,
    ],
    more: {
      ...asleepInside(owner),
      quote: why,
      evidence: [...evidence, ...troubles.slice(0, 5)],
      waitsFor: causes.map(resultId),
    },
    causes,
  };
}

function reportsErrors(owner: Signs): Found | undefined {
  return owner.refusals.length === 0 ? undefined : failing(owner);
}

/** The removal is refused, or RBAC does not let it remove the finalizer. */
function refused(owner: Signs): Found | undefined {
  return owner.obstacles.length === 0 && lostRight(owner) === undefined
    ? undefined
    : failing(owner);
}

function lostRight({ candidate, context, held }: Signs): string | undefined {
  const { change, impersonates } = candidate.rights;
  return change === undefined && !impersonates && isRbacRead(context)
    ? `RBAC lets it neither update nor patch ${typeName(held.type)}`
    : undefined;
}

/** Explains that requests of the owner fail: by its own words, by what refuses them, or by its permissions. */
function failing(owner: Signs): Found {
  const { actor, candidate, context, held, obstacles, refusals, removal } = owner;
  const lack = lostRight(owner);
  // An error that does not end by waiting decides over the others.
  const lost = refusals.flatMap((refusal) => {
    const found = lostWithNamespace(context, held, candidate.account, refusal.error);
    return found === undefined ? [] : [{ refusal, ...found }];
  })[0];
  const first = lost?.refusal ?? refusals[0];
  const admission = refusals.flatMap(({ error }) =>
    isAdmissionError(error)
      ? [admissionResult(context, error, `UPDATE of ${typeName(held.type)}`)]
      : [],
  );
  const unique = new Map([...admission, ...obstacles].map((one) => [resultId(one), one]));
  const causes = [...unique.values()];
  const quote = first && shortQuote(first.error.text);
  const isHopeless = lost !== undefined && !lost.isGrantable;
  const escapes = escapeRemedies(held);
  const why = quote ?? lack ?? 'the removal is refused, at least to this gate';
  // A text that quotes no answer of the API server need not be about a request.
  const fails = first?.error.kind === 'other' ? `${first.source} says` : 'its requests fail';
  const said = refusals
    .filter(({ source }) => !source.startsWith('the log of '))
    .map(({ error, source }) => `${source}: ${error.text}`);
  return {
    words: isHopeless
      ? ` and runs, but cannot succeed however long it tries, because ${lost.text}: ${why}`
      : ` and runs, but ${fails}: ${why}`,
    remedies: [
      ...(isHopeless
        ? removalAsFirstStep([...removal, ...escapes])
        : [...cureRemedies(owner, first?.error, lack !== undefined), ...escapes]),
      ...(lost === undefined
        ? []
        : orderRemedies(context, held, 'the objects that their controller needs')),
      ...(isEnding(context, actor) ? [withRole('or', returnRemedy(owner))] : []),
      ...logRemedies(context, actor),
    ],
    more: {
      quote,
      evidence: [...said.slice(0, 10), ...(lack === undefined ? [] : [lack])],
      waitsFor: causes.map(resultId),
      waitsForNamespace: lost !== undefined,
    },
    causes,
  };
}

function paused({ actor, certainty, context, held }: Signs): Found | undefined {
  const pause = pausedBy(context, held);
  if (pause === undefined) return undefined;
  const { object, by, isUnclear } = pause;
  const what = `${object.kind} ${object.name}`;
  const resume = resumeRemedy(servedType(context, object) ?? held.type, object, by);
  return {
    words: ` and runs, but ${isUnclear ? 'may be' : 'is'} configured to ignore ${what}: ${by}`,
    remedies: [resume, ...logRemedies(context, actor)],
    more: { evidence: [`${what}: ${by}`], certainty: isUnclear ? 'likely' : certainty },
  };
}

function beingDeleted(owner: Signs): Found | undefined {
  const { actor, context } = owner;
  if (!isEnding(context, actor)) return undefined;
  const remedies = [returnRemedy(owner), ...logRemedies(context, actor)];
  return { words: ' and still runs, but is being deleted itself', remedies };
}

/** Returns the remedy to install an owner again that is being deleted. */
function returnRemedy({ actor, context, held }: Owner): Remedy {
  const isElsewhere = isInside(context, actor.namespace);
  return installRemedy(held, actorText(actor), isElsewhere ? ' in another namespace' : '');
}

/**
 * Finds an owner without the lead. A Lease that is not renewed may be an old one: a candidate takes it within its
 * duration.
 */
function doesNotLead({ actor, certainty, context, held }: Signs): Found | undefined {
  const lease = lostLease(context, held, actor);
  if (lease === undefined) return undefined;
  const { namespace, name, holder, renewTime, durationSeconds = 15 } = lease;
  // A status that it wrote after the Lease had expired shows that it leads by another one.
  const end = Date.parse(renewTime ?? '') + 1_000 * durationSeconds;
  const writes = held.objects.flatMap(({ statusWriters }) => statusWriters);
  const isLate = writes.some(
    ({ manager, time }) => hasProgramName(actor, manager) && Date.parse(time ?? '') > end,
  );
  if (isLate) return undefined;
  const what = `Lease ${namespace}/${name}`;
  const log = logRemedies(context, actor);
  if (isHolder(actor, lease)) {
    const why = `Restart ${actorText(actor)}, which is the leader and does nothing`;
    return {
      words: ` and runs, but its pod holds ${what} and has not renewed it since ${renewTime}`,
      remedies: [...log, ...restartRemedies(context, actor, why)],
      more: { certainty },
    };
  }
  const see = showObjectRemedy(`See which pod holds ${what}`, { kind: 'Lease', namespace, name });
  const isLed = isRenewed(context, lease);
  const why = `Restart ${actorText(actor)}, so that one of its pods becomes the leader`;
  const restart = isLed ? [] : restartRemedies(context, actor, why);
  const text = `Let ${actorText(actor)} become the leader, or end the process that holds the Lease`;
  return {
    words: ` and runs, but ${isLed ? 'may not lead' : 'may have no leader'}: ${what} was last renewed at ${renewTime}, by ${holder}`,
    remedies: [...log, see, ...(restart.length > 0 ? restart : [withRole('now', { text })])],
    // The process that leads may act in time.
    more: { certainty: isLed && isForeseen(context, held) ? 'unknown' : 'likely' },
  };
}

/** A node without a ready pod of a DaemonSet; `pod` is the one that is not ready. */
interface LostAgent {
  node: string;
  pod: string | undefined;
  object: ObjectFacts;
}

/** Returns a node that a held object names and on which the DaemonSet that serves it has no ready pod. */
export function lostAgent(
  context: Context,
  held: Held,
  { kind, pods }: Actor,
): LostAgent | undefined {
  if (kind !== 'DaemonSet' || pods.length === 0) return undefined;
  const named = held.objects.flatMap((object) =>
    (detailOf(context, object)?.nodes ?? []).map((node) => ({ node, object })),
  );
  return named.flatMap(({ node, object }) => {
    const own = pods.filter(({ nodeName }) => nodeName === node);
    return own.every(({ ready }) => !ready) ? [{ node, pod: own[0]?.name, object }] : [];
  })[0];
}

function lacksAgent({ actor, certainty, context, held, removal }: Signs): Found | undefined {
  const agent = lostAgent(context, held, actor);
  if (agent === undefined) return undefined;
  const { node, pod, object } = agent;
  const isAbsent = pod === undefined;
  const what = isAbsent
    ? ' and may not act, because it has no pod'
    : `, but its pod ${pod} is not ready`;
  const byHand = removal.map((one) =>
    isAbsent ? { ...one, text: `If node ${node} is gone for good: ${one.text}` } : one,
  );
  return {
    words: `${what} on node ${node}, which ${object.kind} ${object.name} names`,
    remedies: [...agentRemedies(actor, agent, REMOVES), ...byHand],
    // A name without a pod may be another name than that of a node.
    more: { certainty: isAbsent ? 'likely' : certainty },
  };
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

const partnerText = ({ actor, state }: Partner): string =>
  `${actorText(actor)} works on such objects too and ${state}`;

/** A CronJob acts, and can fail, only while a Job runs. */
function runsBySchedule({ actor, certainty, context, held }: Signs): Found | undefined {
  const { name, namespace, kind } = actor;
  if (kind !== 'CronJob') return undefined;
  const text = `Start a Job of ${actorText(actor)} while the namespace is being deleted; ${REMOVES}`;
  const from = `--from=cronjob/${name}`;
  const command = kubectl('create', 'job', `${name}-now`, from, '-n', namespace);
  return {
    words: ', but acts only while its schedule runs a Job',
    remedies: [withRole('now', { text, command })],
    // The next Job may begin before the timeout.
    more: { certainty: isForeseen(context, held) ? 'unknown' : certainty },
  };
}

function losesItsRight({ candidate, context, held }: Signs): Found | undefined {
  const { because, isLocal } = candidate.rights;
  if (!isLocal) return undefined;
  return {
    words: ` and runs, but may do so only by ${because[0]}, which is deleted with this namespace`,
    remedies: orderRemedies(context, held, "their controller's permissions"),
    more: { waitsForNamespace: true },
  };
}

/**
 * Finds what a running owner needs and will lack. Only the owner knows whether it can work without what a deletion
 * of the namespace takes away, unless the catalogue or an earlier deletion says so.
 */
function willLackNeeds(owner: Signs): Found | undefined {
  const { actor, context, held } = owner;
  const states = [
    ...owner.questions,
    ...owner.partners.map(partnerText),
    ...namespacesAwaited(context, held).map(
      ({ name }) => `it waits until Namespace ${name} is deleted`,
    ),
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
  const clauses = needs.map(({ kind, text }) =>
    kind === 'object'
      ? `it may need ${text}, deleted with this namespace`
      : kind === 'create'
        ? `it may have to create ${text} here, which a terminating namespace refuses`
        : text,
  );
  const names = listNames(needs.flatMap(({ kind, text }) => (kind === 'state' ? [] : [text])));
  const text = `Find out before the deletion whether this keeps ${actorText(actor)} from removing ${held.finalizer}, and resolve it`;
  const find = [withRole('now', { text }), ...logRemedies(context, actor)];
  return {
    words: ` and runs; ${clauses.slice(0, 5).join('; ')}`,
    remedies: names === '' ? find : orderRemedies(context, held, names),
    more: {
      certainty: first.certainty,
      evidence: clauses,
      waitsForNamespace: names !== '',
    },
  };
}

/** Finds what a silent owner may need and cannot get. */
function mayLackNeeds({ actor, common, context, held, removal }: Signs): Found | undefined {
  const gone = goneNeeds(context, held, actor).map(
    ({ what, by }) => `${what} (${by}), which does not exist in this namespace`,
  );
  const absent = absentObjects(context, held);
  const isLate = held.since >= (context.now.namespace.deletionTimestamp ?? '');
  const created = isLate ? neededCreations(context, held) : [];
  const lacks = [
    ...gone,
    ...absent.map(({ what }) => `${what}, which does not exist`),
    ...created.map((what) => `to create ${what} here, which a terminating namespace refuses`),
  ];
  if (lacks.length === 0) return undefined;
  const isOfNamespace = gone.length + created.length > 0;
  return {
    words: ` and runs, but may need ${lacks.join(', and ')}`,
    remedies: [
      ...absent.flatMap(({ what, isHere }) =>
        // Nothing can be created in a terminating namespace.
        isHere ? [] : [withRole('now', { text: `Create ${what} again, as it was` })],
      ),
      ...logRemedies(context, actor),
      ...(gone.length === 0 ? [] : orderRemedies(context, held, 'the objects that it may need')),
      ...removal,
    ],
    more: {
      certainty: 'likely',
      evidence: lacks.map((what) => `it may need ${what}`),
      scope: isOfNamespace ? 'namespace' : common.scope,
    },
  };
}

/**
 * Finds a CRD that was deleted before the objects: some controllers then end their watch, although the API server
 * still serves one.
 */
function stoppedWatching({ actor, context, held, removal }: Signs): Found | undefined {
  const crd = definitionsOf(context).find(({ name }) => name === typeName(held.type));
  const isEarlier = Date.parse(crd?.deletionTimestamp ?? '') <= Date.parse(held.since);
  if (crd === undefined || !isEarlier) return undefined;
  const fate = `${crd.name} has been terminating since ${crd.deletionTimestamp}`;
  const why = 'Restart the controller, so that it watches again';
  return {
    words: ` and runs, but may no longer watch ${held.type.kind}: ${fate}, and nothing shows that it has noticed the deletion of ${held.subject.kind} ${held.subject.name}`,
    remedies: [...restartRemedies(context, actor, why), ...removal, ...logRemedies(context, actor)],
    more: { certainty: 'likely', evidence: [`CustomResourceDefinition ${fate}`] },
  };
}

/** Finds an object elsewhere that a held object names and that has failed, if the status says nothing: its credentials, say. */
function needsWhatFails({ actor, context, held, removal, statements }: Signs): Found | undefined {
  const [failed] = statements.length > 0 ? [] : failedInputs(context, held);
  if (failed === undefined) return undefined;
  const { type, object, what, by, failure } = failed;
  const text = `Resolve what ${what} says, if that keeps ${actorText(actor)} from acting`;
  return {
    words: ` and runs, but may need ${what} (${by}), which says: ${shortQuote(failure)}`,
    remedies: [
      showObjectRemedy(`See what ${what} says`, object, typeName(type)),
      withRole('now', { text }),
      ...removal,
      ...logRemedies(context, actor),
    ],
    more: {
      certainty: 'likely',
      quote: shortQuote(failure),
      evidence: [`${what}: ${failure}`],
    },
  };
}

/**
 * Says what was looked at, and that nothing of it shows a reason. What the status has said since the deletion is the state;
 * the last error from before is only quoted. Admission that was not asked may refuse what the owner does, and only a part of
 * the owner may be down.
 */
function showsNoReason(owner: Signs): Found {
  const { actor, candidate, certainty, common, context, held, questions, statements } = owner;
  const { kind, name } = held.subject;
  const who = actorText(actor);
  const what = `${kind} ${name}`;
  const [said] = statements;
  const last = said === undefined ? lastComplaint(context, held, actor) : undefined;
  const isOfOthers = last?.isOfOthers === true;
  const quoted = said ?? (isOfOthers ? undefined : last);
  const quote = quoted && shortQuote(quoted.text || quoted.words);
  const untried = untriedAdmission(context, held, actor);
  const [open] = [...questions, ...untried];
  const protections = protectionsOf(context, held);
  const [limit] = said === undefined ? [...protections, ...limitsOf(context, held, actor)] : [];
  const isPart = actor.ready < actor.wanted && !hasLeader(context, actor);
  const [partner] = owner.partners;
  const looked = isOfOthers
    ? 'it may be slow: only another program reports an error in the status'
    : reportsConflict(context, held, actor)
      ? 'the only error that is reported, a conflict, heals by itself'
      : isLogRead(context, actor)
        ? 'nothing in its status, Events and the newest lines of its log shows why'
        : 'nothing in its status and Events shows why (the log was not read)';
  const state = said
    ? `. ${said.object.kind} ${said.object.name} says: ${quote}`
    : quoted !== undefined
      ? `. ${upperFirst(quoted.source)}, ${ageText(quoted)}, says: ${quote}`
      : open === undefined
        ? `; ${looked}`
        : '';
  const words = [
    ` and runs, ${actor.ready} of ${actor.wanted} ready`,
    isPart ? `: the one that handles ${what} may be one that is not` : '',
    state,
    open === undefined ? '' : `; ${open.replace(/: .*/s, '')}`,
    limit === undefined ? '' : `; ${limit}`,
    partner === undefined ? '' : `; ${partnerText(partner)}`,
  ];
  const down = actor.pods.filter(({ ready }) => !ready).map((pod) => pod.name);
  const grant = `. With permission to patch ${typeName(held.type)}, this gate tries it by a dry run`;
  const ask = `Find out whether admission refuses the update that removes the finalizer${untried.length > 0 ? grant : ''}`;
  const log = logRemedies(context, actor);
  const fix = isPart
    ? [...podRemedies(actor, `Pod ${listNames(down)} of ${who}`, REMOVES), ...owner.removal]
    : partner !== undefined
      ? partner.remedies
      : said !== undefined && !goesOn(said.text)
        ? [statusRemedy(said.object, said.text)]
        : limit !== undefined
          ? [withRole('now', { text: `Find out whether this keeps ${who} from acting: ${limit}` })]
          : open !== undefined
            ? [withRole('now', { text: ask })]
            : undefined;
  const isSeen = isMoreThanAble(candidate);
  const more = said === undefined ? `${silenceText(owner)}. ` : '';
  const time = `${more}${isSeen ? `Give ${who} more time` : `If ${who} handles ${what}, give it more time`}: raise the timeout`;
  // Its log says what it does; more time helps only an owner that is at work.
  const evidence = [
    ...(said ? [`${said.source}: ${said.text}`] : []),
    ...(last ? [`${last.source}, ${ageText(last)}: ${last.text}`] : []),
    ...[...(isPart ? [actor] : []), ...owner.partners.map((one) => one.actor)].flatMap((one) =>
      podTroubles(context, one).slice(0, 3),
    ),
    ...untried,
  ];
  const isSure = ![open, limit, partner].some(Boolean) && !isPart && !isOfOthers;
  return {
    words: words.join(''),
    remedies:
      fix !== undefined
        ? [...log, ...fix]
        : [
            ...log.map((one) => withRole('now', one)),
            withRole(log.length > 0 ? 'or' : 'now', { text: time }),
          ],
    more: {
      evidence,
      quote,
      certainty: isSure ? certainty : 'likely',
      scope: said === undefined && protections.length > 0 ? 'namespace' : common.scope,
    },
  };
}

/** Says for how long the owner has written nothing about the objects. */
function silenceText({ actor, context, held }: Signs): string {
  const times = [
    held.since,
    ...held.objects.flatMap(({ statusWriters }) => statusWriters.map(({ time }) => time)),
    ...logLinesAbout(context, held, actor).map(({ at }) => at),
  ].map((time) => Date.parse(time ?? ''));
  const last = Math.max(...times.filter((time) => !Number.isNaN(time)));
  const { kind, name } = held.subject;
  return `Nothing was written about ${kind} ${name} for ${formatDuration(Math.max(0, context.nowMs - last))}`;
}

/** Reports whether a text only says that the work goes on: nothing in it can be resolved. */
function goesOn(text: string): boolean {
  return PROGRESS.test(text) || (ONGOING.test(text) && !FAILURE.test(text));
}

const ONGOING = /\b(?:deleting|terminating|draining|uninstalling|requeu\w+)\b|\bin progress\b/i;

const CRASHED_LATELY_MS = 10 * 60_000;
const MANY_RESTARTS = 3;

/** Returns why an owner that is ready may not act on these objects: by how it was started, or because it crashes again and again. */
function limitsOf(context: Context, held: Held, actor: Actor): string[] {
  const { type, objects } = held;
  // A controller that writes here does not leave the namespace out: before the deletion a status, since then anything.
  const writes = isForeseen(context, held)
    ? objects.flatMap(({ statusWriters }) => statusWriters)
    : lateWriters(held);
  const names = [type.kind.toLowerCase(), type.resource];
  const isAboutType = (limit: string): boolean =>
    !LISTS_TYPES.test(limit) ||
    limit
      .toLowerCase()
      .split(/[=,]/)
      .some((one) => names.includes(one));
  const own = (actor.limits ?? [])
    .filter((limit) => isAboutType(limit) && mayLeaveOut(context, limit))
    .filter((limit) => writes.length === 0 || !hasSettings(limit))
    .map((limit) => (hasSettings(limit) ? settingsText(limit) : `it was started with ${limit}`));
  const ready = actor.pods.filter((pod) => pod.ready);
  const crashes = ready.flatMap(({ containers = [] }) =>
    containers
      .filter(
        ({ crashedAt = '', restarts = 0 }) =>
          restarts >= MANY_RESTARTS && context.nowMs - Date.parse(crashedAt) < CRASHED_LATELY_MS,
      )
      .slice(0, 1),
  );
  const [first] = crashes.length === ready.length ? crashes : [];
  return first === undefined
    ? own
    : [
        ...own,
        `it has restarted ${first.restarts} times, the last time after a crash at ${first.crashedAt}`,
      ];
}

/** A limit that lists types, and not one that is about all objects. */
const LISTS_TYPES = /^--?(?:disable|skip|exclude)/;

const hasSettings = (limit: string): boolean => SETTINGS.test(limit.replace(/=.*/s, ''));
const settingsText = (limit: string): string =>
  `it has settings that this gate does not read: ${limit}`;

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
function warningsIn({ places }: Snapshot, namespace: string): EventFacts[] {
  return itemsIn(places[namespace]?.events)
    .filter(({ type }) => type === 'Warning')
    .toSorted((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1));
}

/** Returns the state of a suspect in a few words: what a reader asks first of a controller that may be the owner. */
export function stateText(context: Context, actor: Actor): string {
  if (actor.wanted === 0) return scaledToZeroText(actor).replace(/^is /, '');
  const [trouble] = actor.ready === 0 ? podTroubles(context, actor) : [];
  const why = trouble === undefined ? '' : `: ${shortQuote(trouble)}`;
  if (actor.ready === 0) return `0 of ${actor.wanted} ready${why}`;
  return isEnding(context, actor) ? 'running, and being deleted' : 'running';
}
