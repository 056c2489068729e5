import { formatDuration } from '../../base/time.ts';
import { NAMESPACE_TYPE } from '../../model/facts/metadata.ts';
import { NOT_READY } from '../../model/facts/workloads.ts';
import type { Certainty, FindingCode, Remedy, Subject } from '../../model/finding.ts';
import type { EventFacts } from '../../model/snapshot.ts';
import { type Actor, actorText, isEnding } from '../actors.ts';
import { admissionResult, refusesOtherChange } from '../admission/refusals.ts';
import { podRemedies, scaleUpRemedy, showObjectRemedy, withRole } from '../commands.ts';
import {
  type Context,
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
import { classifyErrorText, isAdmissionError } from '../error-texts.ts';
import { isRbacRead } from '../rights.ts';
import { isNodeLost } from '../rules/pods.ts';
import { idsAwaited, idsInText, namespacesAwaited } from '../waits.ts';
import type { Suspect } from './clues.ts';
import { type Held, knownFinalizer, lateWriters, lateWrites } from './held.ts';
import { hasLeader, isRenewed, lostLease } from './leases.ts';
import { currentLogLines, isLogRead, logLinesAbout } from './logs.ts';
import { hasProgramName } from './names.ts';
import { lostWithNamespace, needsOfOwner } from './needs.ts';
import { pausedBy, protectionsOf } from './pauses.ts';
import {
  cureRemedies,
  escapeRemedies,
  installRemedy,
  isGoneOutside,
  logRemedies,
  orderRemedies,
  removalAsFirstStep,
  restartRemedies,
  resumeRemedy,
  sayingRemedy,
} from './remedies.ts';
import { restrictionText } from './restrictions.ts';
import { ageText, lastComplaint, poorHealth, refusalsFor, statusTexts } from './statements.ts';

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
}

/** What shows that the owner is in a state. */
interface Found {
  /** A predicate about the owner: "is scaled to zero". */
  says: string;
  remedies: Remedy[];
  more?: Partial<RuleResult>;
  /** The findings about what keeps it in the state. */
  causes?: RuleResult[];
}

/** The states of an owner. The first with evidence is reported. */
const STATES: readonly {
  state: string;
  code: FindingCode;
  /** Returns the evidence for the state, if there is any. */
  find: (owner: Signs) => Found | undefined;
}[] = [
  { state: 'is lost with the namespace', code: 'owner-not-ready', find: isLost },
  { state: 'has 0 replicas', code: 'owner-scaled-to-zero', find: scaledToZero },
  { state: 'has no ready pod', code: 'owner-not-ready', find: notReady },
  { state: 'leaves it out', code: 'owner-not-acting', find: leavesOut },
  { state: 'says that it fails', code: 'owner-failing', find: reportsErrors },
  { state: 'is paused', code: 'owner-not-acting', find: paused },
  { state: 'may not remove it', code: 'owner-failing', find: isRefused },
  { state: 'is being deleted', code: 'owner-running', find: isGoing },
  { state: 'does not lead', code: 'owner-running', find: doesNotLead },
  { state: 'will lose its right', code: 'owner-failing', find: losesRight },
  { state: 'lacks what it needs', code: 'owner-failing', find: lacksNeeds },
  { state: 'shows no reason', code: 'owner-running', find: showsNoReason },
];

/** An owner with what it was seen to do. */
interface Signs extends Owner {
  isAhead: boolean;
  who: string;
  /** The held object. */
  what: string;
  /** How to read its log. */
  log: Remedy[];
  /** Its current errors about the objects. */
  refusals: ReturnType<typeof refusalsFor>;
  /** Texts of the objects since the deletion that report no error. */
  statements: ReturnType<typeof statusTexts>;
}

/** Returns the findings about the state of the owner. In a forecast, nothing may stand against it. */
export function stateResults(owner: Owner): RuleResult[] {
  const { actor, common, context, held } = owner;
  const signs = {
    ...{ ...owner, isAhead: isForeseen(context, held) },
    ...{ who: actorText(actor), what: nameOf(held.subject), log: logRemedies(context, actor) },
    ...{ refusals: errorsOf(owner), statements: statusTexts(context, held) },
  };
  for (const { code, find } of STATES) {
    const found = find(signs);
    if (found === undefined) continue;
    const { says, remedies, more = {}, causes = [] } = found;
    const evidence = [...common.evidence, ...(more.evidence ?? [])];
    const certainty = more.certainty ?? owner.certainty;
    // A finding that is proven has a sentence that names the controller anyway.
    const isNamed = certainty === 'proven' ? '' : 'is its controller, and ';
    const role = owner.certainty === 'proven' ? isNamed : 'is most likely its controller, and ';
    const message = `${role}${says}`;
    return [{ ...common, code, ...more, certainty, message, evidence, remedies }, ...causes];
  }
  return [];
}

function errorsOf({ actor, context, held }: Owner): Signs['refusals'] {
  const isLeading = lostLease(context, held, actor) === undefined;
  // Whether the clean-up may create objects here, the catalogue says of a known product.
  const mayCreate = knownFinalizer(held)?.needs?.some(({ action }) => action === 'create') ?? true;
  // A text that names an object which holds this one back reports a wait, which has a finding of its own. Without the
  // lead, an error from before the deletion is no reason.
  return refusalsFor(context, held, actor).filter(
    ({ error: { kind, text }, at }) =>
      (isLeading || at >= held.since) &&
      (kind !== 'namespace-terminating' || mayCreate) &&
      idsInText(context, held, text).length === 0,
  );
}

const REMOVES = 'it then removes the finalizer';

const now = (text: string): Remedy => withRole('now', { text });

function isLost(owner: Signs): Found | undefined {
  const { actor, context, removal } = owner;
  if (!isEnding(context, actor) || actor.ready > 0) return undefined;
  const isHere = isInside(context, actor.namespace);
  const isAsleep = actor.wanted === 0;
  return {
    says: `${isAsleep ? scaledToZeroText(actor) : 'has no ready pod'}, and is being deleted itself`,
    remedies: isHere ? removalAsFirstStep(removal) : [returnRemedy(owner), ...removal],
    more: { ...(isAsleep && { code: 'owner-scaled-to-zero' }), waitsForNamespace: isHere },
  };
}

function scaledToZero({ actor, removal }: Signs): Found | undefined {
  if (actor.wanted !== 0) return undefined;
  const { manager, time } = actor.scaledBy ?? {};
  const at = time === undefined ? '' : ` at ${time}`;
  const by = manager && `field manager "${manager}" set its replicas${at} (managedFields)`;
  return {
    says: scaledToZeroText(actor),
    remedies: [scaleUpRemedy(actor, REMOVES), ...removal],
    more: { evidence: by ? [by] : [] },
  };
}

function scaledToZeroText({ kind, nodeSelector }: Actor): string {
  const labels = Object.entries(nodeSelector).map(([key, value]) => `${key}=${value}`);
  if (kind === 'CronJob' || kind === 'Job') return 'is suspended';
  if (kind !== 'DaemonSet') return 'is scaled to zero';
  return labels.length === 0
    ? 'has no node that takes its pods'
    : `has no node with the labels of its nodeSelector (${labels.join(', ')})`;
}

/** Explains why none of its pods is ready, and what that waits for in turn. */
function notReady({ actor, context, log, removal, who }: Signs): Found | undefined {
  if (actor.ready > 0) return undefined;
  const { conditions, kind, namespace, pods, ready, uid, wanted } = actor;
  const troubles = podTroubles(context, actor);
  // Only ReplicaSets report refused pods in a condition; all others do in Events (kubernetes pkg/controller).
  const events = pods.length > 0 ? [] : warningsIn(context, namespace);
  const denied =
    conditions.find(({ type }) => type === 'ReplicaFailure') ??
    events.find(({ regarding }) => regarding.uid === uid);
  const said = denied?.message ?? troubles[0];
  const why = said && shortQuote(said);
  const causes = classifyErrorText(denied?.message ?? '')
    .filter(isAdmissionError)
    .map((error) => admissionResult(context, error, `CREATE of pods of ${who}`, namespace));
  // The pauses of a ReplicaSet double up to 1,000 s (client-go, DefaultTypedControllerRateLimiter).
  const text = `Fix what refuses the pods of ${who}; ${REMOVES}. Kubernetes waits up to 17 minutes between attempts to create pods; "kubectl rollout restart" tries at once`;
  const fix = denied ? [now(text)] : podRemedies(actor, who, REMOVES);
  const told = causes.length > 0 ? ': they are refused' : why === undefined ? '' : `: ${why}`;
  const refused = denied ? [`its pods are refused (${denied.reason}): ${denied.message}`] : [];
  return {
    says: `${kind === 'Pod' ? 'is not ready' : `has ${ready} of ${wanted} pods ready`}${told}`,
    remedies: [...fix, ...log, ...removal],
    more: {
      quote: causes.length > 0 ? undefined : why,
      evidence: [...refused, ...troubles.slice(0, 5)],
      waitsFor: causes.map(resultId),
    },
    causes,
  };
}

/** Its arguments leave the object out: nothing that it does matters, unless it has written the object since its deletion. */
function leavesOut({ actor, candidate, context, held, removal, what, who }: Signs) {
  const { restriction } = candidate;
  const hasWritten = lateWrites(held).some(({ manager }) => hasProgramName(actor, manager));
  if (restriction === undefined || hasWritten) return undefined;
  const details = restrictionText(context, actor);
  const setting = details.length === 0 ? '' : ` (${details.join(' ')})`;
  return {
    says: `does not handle it: ${restriction}`,
    remedies: [now(`Let ${who} handle ${what}: change what leaves it out${setting}`), ...removal],
    more: { evidence: details },
  };
}

/** Explains that requests of the owner fail, by its own words. */
function reportsErrors(owner: Signs): Found | undefined {
  const { candidate, common, context, held, log, obstacles, refusals, removal } = owner;
  // An error that does not end by waiting decides over the others.
  const [lost] = refusals.flatMap((refusal) => {
    const found = lostWithNamespace({ context, held, ...candidate }, refusal.error);
    return found === undefined ? [] : [{ refusal, ...found }];
  });
  const first = lost?.refusal ?? refusals[0];
  if (first === undefined) return undefined;
  const { error, source } = first;
  const place = held.type === NAMESPACE_TYPE ? undefined : (held.subject.namespace ?? '');
  const admission = refusals
    .flatMap((one) => (isAdmissionError(one.error) ? [one.error] : []))
    .map((one) => admissionResult(context, one, `UPDATE of ${typeName(held.type)}`, place));
  const unique = new Map([...admission, ...obstacles].map((one) => [resultId(one), one]));
  const causes = [...unique.values()];
  const isHopeless = lost !== undefined && !lost.isGrantable;
  // What refuses or changes the request has a finding of its own, with the text and the remedy.
  const isTold = causes.length > 0 && isAdmissionError(error);
  const isCured = causes.length > 0 && refusesOtherChange(error, held.type);
  const quote = shortQuote(error.text);
  // A text that quotes no answer of the API server need not be about a request.
  const by = source.startsWith('the log of ') ? 'its log' : source;
  const fails = error.kind === 'other' ? `${by} says` : 'its requests fail';
  const escapes = escapeRemedies(held);
  // What nobody here may be able to resolve: a refusal of a cloud, or an object that belongs in this namespace.
  const byHand = error.kind === 'other' || error.kind === 'not-found' ? removal : [];
  return {
    says: isHopeless
      ? `can never succeed: ${lost.text}`
      : `runs, but ${isTold ? 'its request is refused' : `${fails}: ${quote}`}`,
    remedies: [
      ...(isHopeless || isGoneOutside(error)
        ? removalAsFirstStep([...removal, ...escapes])
        : [...(isCured ? [] : cureRemedies(owner, error, false)), ...escapes, ...byHand]),
      ...(lost ? orderRemedies(context, held, 'the objects that their controller needs') : []),
      ...log,
    ],
    more: {
      quote: isHopeless || isTold ? undefined : quote,
      evidence: refusals.slice(0, 10).map((one) => `${one.source}: ${one.error.text}`),
      scope: isHopeless ? 'namespace' : common.scope,
      waitsFor: causes.map(resultId),
      waitsForNamespace: lost !== undefined,
    },
    causes,
  };
}

/** A field of a known product may stop what it runs, and not its controller: it counts in a hang in which nothing is said. */
function paused(owner: Signs): Found | undefined {
  const { certainty, context, held, isAhead, log, statements } = owner;
  const pause = pausedBy(context, held);
  if (pause === undefined || (pause.isGuess && (isAhead || statements.length > 0)))
    return undefined;
  const { object, by, isUnclear } = pause;
  const resume = resumeRemedy(servedType(context, object) ?? held.type, object, by);
  return {
    says: `runs, but ${isUnclear ? 'may be' : 'is'} configured to ignore ${nameOf(object)}: ${by}`,
    remedies: [resume, ...log],
    more: { evidence: [`${nameOf(object)}: ${by}`], certainty: isUnclear ? 'likely' : certainty },
  };
}

/** The removal is refused to this gate, or RBAC does not let the owner remove the finalizer. */
function isRefused(owner: Signs): Found | undefined {
  const { candidate, context, held, log, obstacles } = owner;
  const { change, impersonates } = candidate.rights;
  const mayChange = change !== undefined || impersonates || !isRbacRead(context);
  if (mayChange && obstacles.length === 0) return undefined;
  const lack = `RBAC lets it neither update nor patch ${typeName(held.type)}`;
  const refused = 'the removal is refused, at least to this gate';
  return {
    says: `runs, but ${obstacles.length > 0 ? refused : lack}`,
    remedies: [...cureRemedies(owner, undefined, !mayChange), ...escapeRemedies(held), ...log],
    more: { evidence: mayChange ? [] : [lack], waitsFor: obstacles.map(resultId) },
    causes: obstacles,
  };
}

function isGoing(owner: Signs): Found | undefined {
  const remedies = [returnRemedy(owner), ...owner.log];
  return isEnding(owner.context, owner.actor)
    ? { says: 'still runs, but is being deleted itself', remedies }
    : undefined;
}

/** Returns the remedy to install an owner again that is being deleted. */
function returnRemedy({ actor, context, held }: Owner): Remedy {
  const where = isInside(context, actor.namespace) ? ' in another namespace' : '';
  return installRemedy(context, held, actorText(actor), where);
}

/** None of its pods leads: another process holds the Lease, or nobody has renewed it. */
function doesNotLead({ actor, context, held, isAhead, log, who }: Signs): Found | undefined {
  const lease = lostLease(context, held, actor);
  if (lease === undefined) return undefined;
  const { namespace, name, holder, renewTime, durationSeconds = 15 } = lease;
  const end = Date.parse(renewTime ?? '') + 1_000 * durationSeconds;
  const writes = held.objects.flatMap(({ statusWriters }) => statusWriters);
  // It leads by another Lease.
  const hasWritten = writes.some(
    (one) => hasProgramName(actor, one.manager) && Date.parse(one.time ?? '') > end,
  );
  if (hasWritten) return undefined;
  const what = `Lease ${namespace}/${name}`;
  const isLed = isRenewed(context, lease);
  const again = `Restart ${who}, so that one of its pods becomes the leader`;
  const restart = isLed ? [] : restartRemedies(context, actor, again);
  const lead = now(`Let ${who} become the leader, or end the process that holds the Lease`);
  return {
    says: `runs, but may ${isLed ? 'not lead' : 'have no leader'}: ${what} is held by ${holder}`,
    remedies: [
      ...log,
      showObjectRemedy(`See which pod holds ${what}`, { kind: 'Lease', namespace, name }),
      ...(restart.length > 0 ? restart : [lead]),
    ],
    more: {
      ...(isLed ? {} : { code: 'owner-not-acting' as const }),
      evidence: [`${what} was last renewed at ${renewTime}, by ${holder}`],
      // The process that leads may act in time.
      certainty: isLed && isAhead ? 'unknown' : 'likely',
    },
  };
}

function losesRight({ candidate, context, held, isAhead }: Signs): Found | undefined {
  const { because, isLocal } = candidate.rights;
  if (!isAhead || !isLocal) return undefined;
  return {
    says: 'would lose its permission, which is deleted with this namespace',
    remedies: orderRemedies(context, held, "their controller's permissions"),
    more: {
      evidence: [`it may change the object only by ${because[0]}`],
      waitsForNamespace: true,
    },
  };
}

/** What it needs and will not have, or, if it is silent, does not have; before a deletion also what else may keep it. */
function lacksNeeds(owner: Signs): Found | undefined {
  const { actor, common, context, held, isAhead, log, removal, who } = owner;
  if (!isAhead && !isSilent(owner)) return undefined;
  const needs = needsOfOwner(context, held, actor);
  const clauses = [...needs.map(({ clause }) => clause), ...(isAhead ? doubtsOf(owner) : [])];
  const [first] = clauses;
  if (first === undefined) return undefined;
  const textsOf = (...kinds: string[]): string[] =>
    needs.flatMap(({ kind, text }) => (kinds.includes(kind) ? [text] : []));
  const again = textsOf('absent').map((what) => `Create ${what} again, as it was`);
  const taken = listNames(textsOf('object', 'create'));
  const find = `Find out before the deletion whether this keeps ${who} from removing ${held.finalizer}, and resolve it`;
  return {
    says: `runs; ${first.replace(/ \(.*\)(?= here,)/, '')}`,
    remedies: [
      ...[...again, ...(isAhead && !taken ? [find] : [])].map(now),
      ...log,
      ...(taken ? orderRemedies(context, held, taken) : []),
      ...removal,
    ],
    more: {
      certainty: isAhead ? (needs[0]?.certainty ?? 'unknown') : 'likely',
      evidence: clauses,
      quote: quotedIn(first),
      scope: taken && !isAhead ? 'namespace' : common.scope,
      waitsForNamespace: isAhead && taken !== '',
    },
  };
}

/** Reports whether nothing shows that it has noticed the deletion, and it waits for no other object. */
function isSilent({ actor, context, held, statements }: Signs): boolean {
  const lines = logLinesAbout(context, held, actor);
  const awaited = idsAwaited(context, held, actor);
  return statements.length + lateWriters(held).length + lines.length + awaited.length === 0;
}

const CRASHED_LATELY_MS = 10 * 60_000;
const MANY_RESTARTS = 3;
/** An argument that lists types, and not one that is about all objects. */
const LISTS_TYPES = /^--?(?:disable|skip|exclude)/;

/** Returns what may keep an owner from acting that is ready and reports no failure. */
function doubtsOf({ actor, context, held, isAhead, questions, what }: Signs): string[] {
  const { objects, type } = held;
  const { kind, limits = [], pods, ready, wanted } = actor;
  const names = [type.kind.toLowerCase(), type.resource];
  // A controller that wrote the status handles the object, whatever its settings say.
  const isOpen = isAhead && objects.every(({ statusWriters }) => statusWriters.length === 0);
  const started = limits.map((limit) => {
    const words = limit.toLowerCase().split(/[=,]/);
    const isMeant = !LISTS_TYPES.test(limit) || words.some((one) => names.includes(one));
    return limit.startsWith('-')
      ? isMeant && `it was started with ${limit}, which may leave it out`
      : isOpen && `it has settings that this gate does not read: ${limit}`;
  });
  const isCrash = ({ crashedAt = '', restarts = 0 }): boolean =>
    restarts >= MANY_RESTARTS && context.nowMs - Date.parse(crashedAt) < CRASHED_LATELY_MS;
  const crashes = pods
    .filter((pod) => pod.ready)
    .map(({ containers = [] }) => containers.find(isCrash));
  const [crash] = crashes.every(Boolean) ? crashes : [];
  const isPart = !isAhead && ready < wanted && !hasLeader(context, actor);
  const node = lostNode(context, held, actor);
  const pause = isAhead ? pausedBy(context, held) : undefined;
  const ill = (isAhead ? objects : []).flatMap((object) =>
    poorHealth(context, object).map(
      (text) => `${nameOf(object)} says in its status: ${shortQuote(text)}`,
    ),
  );
  return [
    ...questions,
    ...(isAhead ? namespacesAwaited(context, held) : []).map(
      (one) => `it waits until ${nameOf(one.subject)} is deleted`,
    ),
    ...ill,
    ...protectionsOf(context, held),
    ...started,
    kind === 'CronJob' && 'it may act only while its schedule runs a Job',
    crash &&
      `it has restarted ${crash.restarts} times, the last time after a crash at ${crash.crashedAt}`,
    node && `it has no ready pod on node ${node}, which ${what} names`,
    isPart && `only ${ready} of ${wanted} pods are ready: the one for ${what} may not be`,
    pause && `its controller may ignore ${nameOf(pause.object)}: ${pause.by}`,
  ].filter((one) => typeof one === 'string');
}

/** Returns a node that a held object names and on which the DaemonSet that serves it has no ready pod. */
export function lostNode(context: Context, { objects }: Held, { kind, pods }: Actor) {
  if (kind !== 'DaemonSet' || pods.length === 0) return undefined;
  const nodes = objects.flatMap((object) => detailOf(context, object)?.nodes ?? []);
  return nodes.find((node) => pods.every((pod) => pod.nodeName !== node || !pod.ready));
}

function nameOf({ kind, name }: Pick<Subject, 'kind' | 'name'>): string {
  return `${kind} ${name}`;
}

/** Returns the words of another program with which a clause ends. */
function quotedIn(clause: string): string | undefined {
  return /(?<= says(?: in its status)?: ).*$/s.exec(clause)?.[0];
}

/**
 * Says that nothing that was read shows a reason, with what comes nearest to one: what the status has said since the deletion,
 * a doubt, its log, or the last error from before. Its log comes first: more time helps only an owner that is at work.
 */
function showsNoReason(owner: Signs): Found | undefined {
  const { actor, certainty, context, held, isAhead, log, questions, statements, what, who } = owner;
  if (isAhead) return undefined;
  const [said] = statements;
  const [doubt] = said ? [] : doubtsOf(owner);
  const [line] = said ? [] : currentLogLines(context, held, actor);
  const last = said ? undefined : lastComplaint(context, held, actor);
  const age = Date.parse(held.since) - Date.parse(last?.at ?? '');
  const before = age >= 0 ? `${formatDuration(age)} before` : 'before';
  const by = said
    ? `${what} says`
    : line
      ? 'Its log says'
      : `${last?.by === 'status' ? `${what} has said since` : `${last?.source} said`} ${before} the deletion`;
  const text = (said ?? line ?? last)?.text;
  const quote = text && shortQuote(text);
  const told = quote ? `runs. ${by}: ${quote}` : 'runs, but nothing that was read shows why';
  const ask = `Find out whether this keeps ${who} from acting: ${doubt}`;
  const fix =
    said && !GOES_ON.test(said.text)
      ? [sayingRemedy(`the status of ${nameOf(said.object)}`, said.text)]
      : doubt && [now(ask)];
  const time = { text: `Give ${who} more time: raise the timeout` };
  const searched = isLogRead(context, actor)
    ? ', and the newest lines of its log'
    : '; its log was not read';
  return {
    says: doubt ? `runs; ${doubt}` : told,
    remedies: fix
      ? [...log, ...fix]
      : [
          ...log.map((one) => withRole('now', one)),
          ...escapeRemedies(held),
          withRole(log.length > 0 ? 'or' : 'now', time),
        ],
    more: {
      evidence: [
        said && `${said.source}: ${said.text}`,
        last && `${last.source}, ${ageText(last)}: ${last.text}`,
        ...questions,
        `searched: its status and Events${searched}`,
      ].filter((one) => one !== undefined),
      quote: doubt ? quotedIn(doubt) : quote,
      certainty: doubt ? 'likely' : certainty,
    },
  };
}

/** A text which only says that the work goes on: nothing in it can be resolved. */
const GOES_ON =
  /\b\d{1,3} ?%|\b(?:deleting|terminating|draining|uninstalling|requeu\w+)\b|\bin progress\b|\bbeing (?:deleted|removed|destroyed)\b/i;

/** Returns the problems of its pods: of the node, of the containers, and in Warning Events. */
function podTroubles(context: Context, { namespace, pods }: Actor): string[] {
  const events = warningsIn(context, namespace);
  return pods.flatMap((pod) => {
    // The condition Ready only says that containers are not ready; Events say why, as of a volume that cannot be mounted.
    const reasons = pod.troubles.filter((text) => !text.startsWith(NOT_READY));
    const [first, ...others] = reasons;
    const isLooping = others.some((text) => text.startsWith(`waiting: ${CRASH_LOOP}`));
    return [
      ...(isNodeLost(context.now, pod) ? [`its node ${pod.nodeName} is not ready`] : []),
      ...(first === undefined ? [] : [isLooping ? `${CRASH_LOOP}, ${first}` : first, ...others]),
      ...events.flatMap(({ regarding, reason, message }) =>
        regarding.uid === pod.uid ? `${reason}: ${message}` : [],
      ),
      ...(first === undefined ? pod.troubles : []),
    ].map((text) => `Pod ${pod.name}: ${text}`);
  });
}

/** The reason of a container that ends again and again; how it ended is told with it. */
const CRASH_LOOP = 'CrashLoopBackOff';

/** Returns the Warning Events of a namespace, newest first. */
function warningsIn({ now: { places } }: Context, namespace: string): EventFacts[] {
  return itemsIn(places[namespace]?.events)
    .filter(({ type }) => type === 'Warning')
    .toSorted((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1));
}

/** Returns the state of a suspect in a few words: what a reader asks first of a controller that may be the owner. */
export function stateText(context: Context, actor: Actor): string {
  if (actor.wanted === 0) return scaledToZeroText(actor).replace(/^(?:is|has) /, '');
  if (actor.ready > 0) return isEnding(context, actor) ? 'running, and being deleted' : 'running';
  const [trouble = ''] = podTroubles(context, actor);
  const [reason] = trouble.replace(/^Pod \S+: (?:waiting: )?/, '').split(/[:,] /);
  return `0 of ${actor.wanted} ready${reason === '' ? '' : `: ${reason}`}`;
}
