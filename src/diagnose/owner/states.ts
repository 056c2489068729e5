import { lowerFirst } from '../../base/text.ts';
import { formatDuration } from '../../base/time.ts';
import { NAMESPACE_TYPE } from '../../model/facts/metadata.ts';
import { NOT_READY } from '../../model/facts/workloads.ts';
import type { Certainty, FindingCode, Remedy } from '../../model/finding.ts';
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
import { lostWithNamespace, type Need, needsOfOwner } from './needs.ts';
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

/** The states of an owner. The first with evidence is reported; `fix` is its first remedy. */
const STATES: readonly {
  state: string;
  code: FindingCode;
  fix: string;
  /** Returns the evidence for the state, if there is any. */
  find: (owner: Signs) => Found | undefined;
}[] = [
  { state: 'is lost with the namespace', code: 'owner-not-ready', fix: 'remove', find: isLost },
  { state: 'has 0 replicas', code: 'owner-scaled-to-zero', fix: 'scale up', find: scaledToZero },
  { state: 'has no ready pod', code: 'owner-not-ready', fix: 'what its pods lack', find: notReady },
  { state: 'leaves it out', code: 'owner-not-acting', fix: 'the argument', find: leavesOut },
  { state: 'says that it fails', code: 'owner-failing', fix: 'what it says', find: reportsErrors },
  { state: 'is paused', code: 'owner-not-acting', fix: 'end the pause', find: paused },
  { state: 'may not remove it', code: 'owner-failing', fix: 'the guard, a right', find: isRefused },
  { state: 'is being deleted', code: 'owner-running', fix: 'install again', find: isGoing },
  { state: 'does not lead', code: 'owner-running', fix: 'restart', find: doesNotLead },
  { state: 'lacks a pod on the node', code: 'owner-not-ready', fix: 'that pod', find: lacksAgent },
  { state: 'will lose its right', code: 'owner-failing', fix: 'an order', find: losesRight },
  { state: 'lacks what it needs', code: 'owner-failing', fix: 'an order', find: lacksNeeds },
  { state: 'shows no reason', code: 'owner-running', fix: 'read its log', find: showsNoReason },
];

/** An owner with what it was seen to do. */
interface Signs extends Owner {
  isAhead: boolean;
  /** Its current errors about the objects. */
  refusals: ReturnType<typeof refusalsFor>;
  /** Texts of the objects since the deletion that report no error. */
  statements: ReturnType<typeof statusTexts>;
}

/** Returns the findings about the state of the owner. In a forecast, nothing may stand against it. */
export function stateResults(owner: Owner): RuleResult[] {
  const signs = signsOf(owner);
  for (const { code, find } of STATES) {
    const found = find(signs);
    if (found === undefined) continue;
    const { says, remedies, more = {}, causes = [] } = found;
    const evidence = [...owner.common.evidence, ...(more.evidence ?? [])];
    const certainty = more.certainty ?? owner.certainty;
    const message = `${roleText(owner.certainty, certainty)}${says}`;
    return [{ ...owner.common, code, ...more, certainty, message, evidence, remedies }, ...causes];
  }
  return [];
}

/** Says that it is the controller; a finding that is proven has a sentence that says so anyway. */
function roleText(owner: Certainty, finding: Certainty): string {
  if (owner !== 'proven') return 'is most likely its controller, and ';
  return finding === 'proven' ? '' : 'is its controller, and ';
}

function signsOf(owner: Owner): Signs {
  const { actor, context, held } = owner;
  const isLeading = lostLease(context, held, actor) === undefined;
  // Whether the clean-up may create objects here, the catalogue says of a known product.
  const mayCreate = knownFinalizer(held)?.needs?.some(({ action }) => action === 'create') ?? true;
  return {
    ...owner,
    isAhead: isForeseen(context, held),
    statements: statusTexts(context, held, actor),
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

function isLost({ actor, context, removal }: Signs): Found | undefined {
  const isHere = isInside(context, actor.namespace) && isEnding(context, actor);
  if (!isHere || actor.ready > 0 || actor.pods.length > 0) return undefined;
  return {
    says: 'is being deleted itself and has no pods, and no new ones can be created here',
    remedies: removalAsFirstStep(removal),
    more: { waitsForNamespace: true },
  };
}

function scaledToZero(owner: Signs): Found | undefined {
  const { actor, context, removal } = owner;
  if (actor.wanted !== 0) return undefined;
  const { manager, time } = actor.scaledBy ?? {};
  const at = time === undefined ? '' : ` at ${time}`;
  const by = manager && `field manager "${manager}" set its replicas${at} (managedFields)`;
  const isEnded = isEnding(context, actor);
  return {
    says: `${scaledToZeroText(actor)}${isEnded ? ', and is being deleted itself' : ''}`,
    remedies: [isEnded ? returnRemedy(owner) : scaleUpRemedy(actor, REMOVES), ...removal],
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
function notReady({ actor, context, removal }: Signs): Found | undefined {
  if (actor.ready > 0) return undefined;
  const { conditions, kind, namespace, pods, ready, uid, wanted } = actor;
  const who = actorText(actor);
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
  const fix = denied ? [withRole('now', { text })] : podRemedies(actor, who, REMOVES);
  const told = causes.length > 0 ? ': they are refused' : why === undefined ? '' : `: ${why}`;
  const refused = denied ? [`its pods are refused (${denied.reason}): ${denied.message}`] : [];
  return {
    says: `${kind === 'Pod' ? 'is not ready' : `has ${ready} of ${wanted} pods ready`}${told}`,
    remedies: [...fix, ...logRemedies(context, actor), ...removal],
    more: {
      waitsForNamespace: isInside(context, namespace),
      quote: causes.length > 0 ? undefined : why,
      evidence: [...refused, ...troubles.slice(0, 5)],
      waitsFor: causes.map(resultId),
    },
    causes,
  };
}

/** Its arguments leave the object out: nothing that it does matters, unless it has written the object since its deletion. */
function leavesOut({ actor, candidate, context, held, removal }: Signs): Found | undefined {
  const hasWritten = lateWrites(held).some(({ manager }) => hasProgramName(actor, manager));
  if (candidate.restriction === undefined || hasWritten) return undefined;
  const { kind, name } = held.subject;
  const details = restrictionText(context, actor).join(' ');
  const text = `Let ${actorText(actor)} handle ${kind} ${name}: change what leaves it out${details && ` (${details})`}`;
  return {
    says: `does not handle it: ${candidate.restriction}`,
    remedies: [withRole('now', { text }), ...removal],
    more: { evidence: details === '' ? [] : [details] },
  };
}

/** Explains that requests of the owner fail, by its own words. */
function reportsErrors(owner: Signs): Found | undefined {
  const { actor, candidate, common, context, held, obstacles, refusals, removal } = owner;
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
  const isCured = causes.length > 0 && refusesOtherChange(error);
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
      ...(isEnding(context, actor) ? [withRole('or', returnRemedy(owner))] : []),
      ...logRemedies(context, actor),
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
  const { actor, certainty, context, held, isAhead, statements } = owner;
  const pause = pausedBy(context, held);
  const isHeard = isAhead || statements.length > 0;
  if (pause === undefined || (pause.isGuess && isHeard)) return undefined;
  const { object, by, isUnclear } = pause;
  const what = `${object.kind} ${object.name}`;
  const resume = resumeRemedy(servedType(context, object) ?? held.type, object, by);
  return {
    says: `runs, but ${isUnclear ? 'may be' : 'is'} configured to ignore ${what}: ${by}`,
    remedies: [resume, ...logRemedies(context, actor)],
    more: { evidence: [`${what}: ${by}`], certainty: isUnclear ? 'likely' : certainty },
  };
}

/** The removal is refused to this gate, or RBAC does not let the owner remove the finalizer. */
function isRefused(owner: Signs): Found | undefined {
  const { actor, candidate, context, held, obstacles } = owner;
  const { change, impersonates } = candidate.rights;
  const mayChange = change !== undefined || impersonates || !isRbacRead(context);
  if (mayChange && obstacles.length === 0) return undefined;
  const lack = `RBAC lets it neither update nor patch ${typeName(held.type)}`;
  const refused = 'the removal is refused, at least to this gate';
  return {
    says: `runs, but ${obstacles.length > 0 ? refused : lack}`,
    remedies: [
      ...cureRemedies(owner, undefined, !mayChange),
      ...escapeRemedies(held),
      ...logRemedies(context, actor),
    ],
    more: { evidence: mayChange ? [] : [lack], waitsFor: obstacles.map(resultId) },
    causes: obstacles,
  };
}

function isGoing(owner: Signs): Found | undefined {
  const { actor, context } = owner;
  if (!isEnding(context, actor)) return undefined;
  const remedies = [returnRemedy(owner), ...logRemedies(context, actor)];
  return { says: 'still runs, but is being deleted itself', remedies };
}

/** Returns the remedy to install an owner again that is being deleted. */
function returnRemedy({ actor, context, held }: Owner): Remedy {
  const where = isInside(context, actor.namespace) ? ' in another namespace' : '';
  return installRemedy(context, held, actorText(actor), where);
}

/** None of its pods leads: another process holds the Lease, or nobody has renewed it. */
function doesNotLead({ actor, context, held, isAhead }: Signs): Found | undefined {
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
  const who = actorText(actor);
  const isLed = isRenewed(context, lease);
  const restart = `Restart ${who}, so that one of its pods becomes the leader`;
  const text = `Let ${who} become the leader, or end the process that holds the Lease`;
  return {
    says: `runs, but may ${isLed ? 'not lead' : 'have no leader'}: ${what} is held by ${holder}`,
    remedies: [
      ...logRemedies(context, actor),
      showObjectRemedy(`See which pod holds ${what}`, { kind: 'Lease', namespace, name }),
      ...(isLed ? [withRole('now', { text })] : restartRemedies(context, actor, restart)),
    ],
    more: {
      ...(isLed ? {} : { code: 'owner-not-acting' as const }),
      evidence: [`${what} was last renewed at ${renewTime}, by ${holder}`],
      // The process that leads may act in time.
      certainty: isLed && isAhead ? 'unknown' : 'likely',
    },
  };
}

/** Returns a node that a held object names and on which the DaemonSet that serves it has no ready pod. */
export function lostAgent(context: Context, held: Held, { kind, pods }: Actor) {
  if (kind !== 'DaemonSet' || pods.length === 0) return undefined;
  return held.objects
    .flatMap((object) => (detailOf(context, object)?.nodes ?? []).map((node) => ({ node, object })))
    .map((one) => ({ ...one, own: pods.filter(({ nodeName }) => nodeName === one.node) }))
    .find(({ own }) => own.every(({ ready }) => !ready));
}

function lacksAgent({ actor, certainty, context, held, removal }: Signs): Found | undefined {
  const agent = lostAgent(context, held, actor);
  if (agent === undefined) return undefined;
  const { node, object, own } = agent;
  const [pod] = own;
  const state = pod ? `has Pod ${pod.name}, not ready,` : 'may not act, because it has no pod';
  const then = pod ? '' : `If node ${node} is gone for good: `;
  return {
    says: `${state} on node ${node}, which ${object.kind} ${object.name} names`,
    remedies: [
      ...podRemedies(actor, `the pod of ${actorText(actor)} on node ${node}`, REMOVES),
      ...removal.map((one) => ({ ...one, text: then ? then + lowerFirst(one.text) : one.text })),
    ],
    // A name without a pod may be another name than that of a node.
    more: { certainty: pod ? certainty : 'likely' },
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
  const { actor, common, context, held, isAhead, removal } = owner;
  if (!isAhead && !isSilent(owner)) return undefined;
  const needs = needsOfOwner(context, held, actor);
  const clauses = [
    ...needs.map((one) => needText(one, isAhead)),
    ...(isAhead ? doubtsOf(owner) : []),
  ];
  const [first] = clauses;
  if (first === undefined) return undefined;
  const textsOf = (...kinds: Need['kind'][]): string[] =>
    needs.flatMap(({ kind, text }) => (kinds.includes(kind) ? [text] : []));
  const names = listNames(textsOf('object', 'create'));
  const text = `Find out before the deletion whether this keeps ${actorText(actor)} from removing ${held.finalizer}, and resolve it`;
  return {
    says: `runs; ${first.replace(/ \(.*\)(?= here,)/, '')}`,
    remedies: [
      ...textsOf('absent').map((what) =>
        withRole('now', { text: `Create ${what} again, as it was` }),
      ),
      ...(isAhead && names === '' ? [withRole('now', { text })] : []),
      ...logRemedies(context, actor),
      ...(names === '' ? [] : orderRemedies(context, held, names)),
      ...removal,
    ],
    more: {
      certainty: isAhead ? (needs[0]?.certainty ?? 'unknown') : 'likely',
      evidence: [...new Set(clauses)],
      quote: quotedIn(first),
      scope: isAhead || names === '' ? common.scope : 'namespace',
      waitsForNamespace: isAhead && names !== '',
    },
  };
}

function needText({ kind, text }: Need, isAhead: boolean): string {
  switch (kind) {
    case 'object':
      return `it may need ${text}, ${isAhead ? 'deleted with this namespace' : 'which does not exist here'}`;
    case 'create':
      return `it may have to create ${text} here, which a terminating namespace refuses`;
    case 'absent':
      return `${text} does not exist`;
    case 'state':
      return text;
  }
}

/** Reports whether nothing shows that it has noticed the deletion, and it waits for no other object. */
function isSilent({ actor, context, held, statements }: Signs): boolean {
  return [
    ...statements,
    ...lateWriters(held),
    ...logLinesAbout(context, held, actor),
    ...idsAwaited(context, held, actor),
  ].every((one) => one === undefined);
}

/** Returns what may keep an owner from acting that runs and reports no failure. */
function doubtsOf({ actor, context, held, isAhead, questions }: Signs): string[] {
  const { objects } = held;
  const pause = isAhead ? pausedBy(context, held) : undefined;
  const ahead = [
    ...namespacesAwaited(context, held).map(
      ({ subject }) => `it waits until Namespace ${subject.name} is deleted`,
    ),
    ...objects.flatMap((object) =>
      poorHealth(context, object).map(
        (text) => `${object.kind} ${object.name} says in its status: ${shortQuote(text)}`,
      ),
    ),
  ];
  return [
    ...questions,
    ...(isAhead ? ahead : []),
    ...protectionsOf(context, held),
    ...limitsOf(context, held, actor),
    ...(pause
      ? [`its controller may ignore ${pause.object.kind} ${pause.object.name}: ${pause.by}`]
      : []),
  ];
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
  const { actor, certainty, context, held, isAhead, questions, statements } = owner;
  if (isAhead) return undefined;
  const who = actorText(actor);
  const what = `${held.subject.kind} ${held.subject.name}`;
  const [said] = statements;
  const [doubt] = said ? [] : doubtsOf(owner);
  const [line] = currentLogLines(context, held, actor);
  const last = said ? undefined : lastComplaint(context, held, actor);
  const age = Date.parse(held.since) - Date.parse(last?.at ?? '');
  const before = age >= 0 ? `${formatDuration(age)} before` : 'before';
  const told = said
    ? { by: `${what} says`, text: said.text }
    : line
      ? { by: 'Its log says', text: line.text }
      : last &&
        !last.isOfOthers && {
          by: `${last.by === 'status' ? what : last.source} said ${before} the deletion`,
          text: last.text,
        };
  const quote = told && shortQuote(told.text);
  const log = logRemedies(context, actor);
  const ask = { text: `Find out whether this keeps ${who} from acting: ${doubt}` };
  const fix =
    said && !GOES_ON.test(said.text)
      ? [sayingRemedy(`the status of ${said.object.kind} ${said.object.name}`, said.text)]
      : doubt && [withRole('now', ask)];
  const time = { text: `Give ${who} more time: raise the timeout` };
  const searched = isLogRead(context, actor)
    ? ', and the newest lines of its log'
    : '; its log was not read';
  return {
    says: doubt
      ? `runs; ${doubt}`
      : told
        ? `runs. ${told.by}: ${quote}`
        : 'runs, but nothing that was read shows why',
    remedies: fix
      ? [...log, ...fix]
      : [
          ...log.map((one) => withRole('now', one)),
          ...escapeRemedies(held),
          withRole(log.length > 0 ? 'or' : 'now', time),
        ],
    more: {
      evidence: [
        ...(said ? [`${said.source}: ${said.text}`] : []),
        ...(last ? [`${last.source}, ${ageText(last)}: ${last.text}`] : []),
        ...questions,
        `searched: its status and Events${searched}`,
      ],
      quote: (doubt ? quotedIn(doubt) : quote) || undefined,
      certainty: doubt ? 'likely' : certainty,
    },
  };
}

/** A text which only says that the work goes on: nothing in it can be resolved. */
const GOES_ON =
  /\b\d{1,3} ?%|\b(?:deleting|terminating|draining|uninstalling|requeu\w+)\b|\bin progress\b/i;

const CRASHED_LATELY_MS = 10 * 60_000;
const MANY_RESTARTS = 3;
/** A limit that lists types, and not one that is about all objects. */
const LISTS_TYPES = /^--?(?:disable|skip|exclude)/;

/** Returns why an owner that is ready may not act on these objects: by how it was started, or because it crashes again and again. */
function limitsOf(context: Context, held: Held, actor: Actor): string[] {
  const { subject, type } = held;
  const { kind, limits = [], pods, ready, wanted } = actor;
  const isAhead = isForeseen(context, held);
  const types = [type.kind.toLowerCase(), type.resource];
  // A controller that wrote the status handles the object, whatever its settings say.
  const isOpen = isAhead && held.objects.every((one) => !one.statusWriters[0]);
  const started = limits.flatMap((limit) => {
    const words = limit.toLowerCase().split(/[=,]/);
    const isMeant = !LISTS_TYPES.test(limit) || words.some((one) => types.includes(one));
    if (limit.startsWith('-'))
      return isMeant ? [`it was started with ${limit}, which may leave it out`] : [];
    return isOpen ? [`it has settings that this gate does not read: ${limit}`] : [];
  });
  const crashes = pods
    .filter((pod) => pod.ready)
    .map(({ containers = [] }) =>
      containers.find(
        ({ crashedAt = '', restarts = 0 }) =>
          restarts >= MANY_RESTARTS && context.nowMs - Date.parse(crashedAt) < CRASHED_LATELY_MS,
      ),
    );
  const crash = crashes.every(Boolean) ? crashes[0] : undefined;
  const isPart = !isAhead && ready < wanted && !hasLeader(context, actor);
  return [
    ...started,
    ...(kind === 'CronJob' ? ['it may act only while its schedule runs a Job'] : []),
    ...(crash
      ? [
          `it has restarted ${crash.restarts} times, the last time after a crash at ${crash.crashedAt}`,
        ]
      : []),
    ...(isPart
      ? [
          `only ${ready} of ${wanted} pods are ready: the one for ${subject.kind} ${subject.name} may not be`,
        ]
      : []),
  ];
}

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
