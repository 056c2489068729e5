import { listNames, shortQuote, upperFirst } from '../../base/text.ts';
import { formatDuration } from '../../base/time.ts';
import { POD_TYPE, typeName } from '../../model/facts/metadata.ts';
import { NOT_READY } from '../../model/facts/workloads.ts';
import type { FindingCode, Remedy } from '../../model/finding.ts';
import { itemsIn } from '../../model/read.ts';
import type { EventFacts } from '../../model/snapshot.ts';
import { type Actor, actorText, isEnding } from '../actors.ts';
import { guardsOf, realRequest } from '../admission/guards.ts';
import type { Judgement } from '../admission/judge.ts';
import { refusalResult } from '../admission/refusals.ts';
import {
  fixRemedy,
  kubectl,
  podRemedies,
  showObjectRemedy,
  startRemedies,
  withoutPeriod,
  withRole,
} from '../commands.ts';
import { detailOf } from '../content.ts';
import { type Context, isForeseen, isInside } from '../context.ts';
import { classifyErrorText, isAdmissionError } from '../error-texts.ts';
import { nameOf, type RuleResult, resultId, subjectOf } from '../results.ts';
import { isRbacRead } from '../rights.ts';
import { isNodeLost } from '../rules/pods.ts';
import { idsTold, namespacesAwaited } from '../waits.ts';
import { evidenceFor, exclusionEvidence, hasClue, suspectText, unreadEvidence } from './clues.ts';
import { type Held, lateWrites, removalRequest } from './held.ts';
import { isRenewed, lostLease } from './leases.ts';
import { currentLogLines, isLogRead, quotedLines } from './logs.ts';
import { hasProgramName } from './names.ts';
import { CLOSED, type Doubt, lostDoubt, lostWithNamespace, needsOfOwner } from './needs.ts';
import {
  attemptRemedies,
  cureRemedies,
  escapeRemedies,
  installRemedy,
  isGoneOutside,
  logRemedies,
  orderRemedies,
  removalAsFirstStep,
  restartCommands,
  resumeRemedy,
  type Sufferer,
  sayingRemedy,
} from './remedies.ts';
import { pausedBy, protectionsOf } from './settings.ts';
import { lastComplaint, refusalsFor, statusEvidence, statusTexts } from './statements.ts';
import type { Ownership } from './verdict.ts';

/** An owner that exists, and what judges the update that removes its finalizer. */
interface Owner extends Sufferer, Judgement {
  removal: Remedy[];
}

/** What shows that the owner is in a state: all that its finding has beside what the findings of all states have. */
interface Found extends Partial<RuleResult> {
  /** A predicate about the owner: "is scaled to zero". */
  says: string;
  remedies: Remedy[];
  causes?: RuleResult[];
}

/** The states of an owner. The first with evidence is reported. */
const STATES: readonly [code: FindingCode, find: (owner: Signs) => Found | undefined][] = [
  ['owner-not-ready', (owner) => (owner.actor.ready > 0 ? undefined : isGoing(owner))],
  ['owner-scaled-to-zero', scaledToZero],
  ['owner-not-ready', notReady],
  ['owner-not-acting', leavesOut],
  ['owner-failing', fails],
  ['owner-not-acting', paused],
  ['owner-running', isGoing],
  ['owner-running', doesNotLead],
  ['owner-running', mayBeKept],
  ['owner-running', runs],
];

/** What the state of an owner is read from, with the names and commands of its sentences. */
type Signs = ReturnType<typeof signsOf>;

function signsOf({ certainty, suspects, excluded, unread }: Ownership, owner: Owner) {
  const { context, held, candidate, actor } = owner;
  const who = actorText(actor);
  const isAhead = isForeseen(context, held);
  const needs = isAhead ? [] : needsOfOwner(context, held, actor);
  const need = needs.find(({ created, lost = created }) => lost);
  const quoted = quotedLines(context, held, [actor]);
  const rivals = suspects
    .slice(0, 3)
    .map((other) => `another candidate is ${suspectText(other)}: ${other.clues[0]?.text}`);
  const partners = suspects.flatMap((other) =>
    other.actor !== undefined &&
    hasClue(other, 'catalogue') &&
    (other.actor.ready === 0 || lostNode(context, held, other.actor))
      ? `${suspectText(other)} works on such objects too and has no ready pod`
      : [],
  );
  return {
    ...{ ...owner, certainty, who, what: nameOf(held.subject), log: logRemedies(context, actor) },
    isAhead,
    /** What it lacks once it acts again, since the namespace has taken it. */
    need,
    removes: `it then removes the finalizer${need ? `, but ${need.says}` : ''}`,
    /** What the held objects have said since the deletion. */
    statements: isAhead ? [] : statusTexts(context, held),
    /** What its log says about them now. */
    lines: currentLogLines(context, held, actor),
    questions: [...owner.questions, ...partners],
    // A guard that the owner itself runs keeps others from changing its objects.
    obstacles: owner.results.filter(({ servedBy }) => servedBy !== who),
    common: {
      subject: subjectOf(actor),
      finalizer: held.finalizer,
      scope: isInside(context, actor.namespace) ? 'namespace' : 'cluster',
      evidence: [
        ...quoted.evidence,
        ...evidenceFor(candidate),
        ...rivals,
        ...exclusionEvidence(excluded),
        ...unreadEvidence(unread),
      ],
      ownerLog: quoted.ownerLog,
    },
  } as const;
}

/** Returns the findings about the state of the owner. In a forecast, nothing may stand against it. */
export function stateResults(ownership: Ownership, owner: Owner): RuleResult[] {
  const signs = signsOf(ownership, owner);
  const { actor, common, need, removal } = signs;
  const isVain = actor.ready === 0 && need?.certainty === 'likely' && need.created !== undefined;
  const vain = isVain ? [need.says] : [];
  const lack = vain.map((one) => `; ${one.replace(`, ${CLOSED}`, '')}`).join('');
  for (const [code, find] of STATES) {
    const found = find(signs);
    if (found === undefined) continue;
    const { says, causes = [], certainty = signs.certainty, evidence = [], ...more } = found;
    // A finding that is proven has a sentence that names the controller anyway.
    const isNamed = certainty === 'proven' ? '' : 'is its controller, and ';
    const role = signs.certainty === 'proven' ? isNamed : 'is most likely its controller, and ';
    const message = `${role}${says}${lack}`;
    const all = [...common.evidence, ...evidence, ...vain];
    const last = vain[0] ? { remedies: removalAsFirstStep(removal) } : {};
    return [{ ...common, code, ...more, ...last, certainty, message, evidence: all }, ...causes];
  }
  return [];
}

/** It is deleted with its namespace: one that still has a ready pod may act in time. */
function isGoing({ actor, context, held, log, removal, who }: Signs): Found | undefined {
  if (!isEnding(context, actor)) return undefined;
  const isHere = isInside(context, actor.namespace);
  const isUp = actor.ready > 0;
  const isAsleep = actor.wanted === 0;
  const still = isAsleep ? scaledToZeroText(actor) : isUp ? 'still runs' : 'has no ready pod';
  const again = installRemedy(context, held, who, isHere ? ' in another namespace' : '');
  return {
    says: `${still}, and is being deleted itself`,
    remedies: isUp ? [again, ...log] : isHere ? removalAsFirstStep(removal) : [again, ...removal],
    waitsForNamespace: isHere && !isUp,
    ...(isAsleep && { code: 'owner-scaled-to-zero' }),
  };
}

function scaledToZero({ actor, context, removal, removes }: Signs): Found | undefined {
  if (actor.wanted !== 0) return undefined;
  const { manager, time } = actor.scaledBy ?? {};
  const at = time === undefined ? '' : ` at ${time}`;
  const by = manager && `field manager "${manager}" set its replicas${at} (managedFields)`;
  return {
    says: scaledToZeroText(actor),
    remedies: [...startRemedies(context, actor, removes), ...removal],
    evidence: by ? [by] : [],
  };
}

function scaledToZeroText({ kind, nodeSelector }: Actor): string {
  if (/Job$/.test(kind)) return 'is suspended';
  if (kind !== 'DaemonSet') return 'is scaled to zero';
  const labels = Object.entries(nodeSelector).map(([key, value]) => `${key}=${value}`);
  return `has no node that takes its pods${labels[0] ? ` (nodeSelector ${labels.join(', ')})` : ''}`;
}

function notReady({ actor, context, log, removal, removes, who }: Signs): Found | undefined {
  if (actor.ready > 0) return undefined;
  const { conditions, kind, namespace, pods, ready, uid, wanted } = actor;
  const troubles = podTroubles(context, actor);
  // Only ReplicaSets report refused pods in a condition; all others do in Events (kubernetes pkg/controller).
  const events = pods.length > 0 ? [] : warningsIn(context, namespace);
  const denied =
    conditions.find(({ type }) => type === 'ReplicaFailure') ??
    events.find(({ regarding }) => regarding.uid === uid);
  const created = realRequest(context, 'CREATE', POD_TYPE, { namespace, labels: actor.podLabels });
  const causes = classifyErrorText(denied?.message ?? '')
    .filter(isAdmissionError)
    .map((error) => refusalResult(context, error, created, `CREATE of pods of ${who}`));
  // What refuses the pods has a finding of its own, with the text.
  const said = causes.length > 0 ? undefined : (denied?.message ?? troubles[0]);
  const quote = said && withoutPeriod(shortQuote(said));
  const why = quote ?? (denied && 'they are refused');
  // The pauses of a ReplicaSet double up to 1,000 s (client-go, DefaultTypedControllerRateLimiter).
  const again = restartCommands(context, actor);
  const text = `Fix what refuses the pods of ${who}; ${removes}. Kubernetes waits up to 17 minutes between attempts to create pods${again.map((one) => `; "${one}" tries at once`)}`;
  const { name } = actor.account;
  const create = kubectl('create', 'serviceaccount', name, '-n', namespace);
  const fix = denied?.message.includes(`serviceaccount "${name}" not found`)
    ? fixRemedy(`Create ServiceAccount ${namespace}/${name} again, with its rights; ${removes}`, {
        command: [create, ...again].join(' && '),
      })
    : fixRemedy(text);
  const refused = denied ? [`its pods are refused (${denied.reason}): ${denied.message}`] : [];
  return {
    says: `${kind === 'Pod' ? 'is not ready' : `has ${ready} of ${wanted} pods ready`}${why ? `: ${why}` : ''}`,
    remedies: [...(denied ? [fix] : podRemedies(actor, removes)), ...log, ...removal],
    quote,
    evidence: [...refused, ...troubles.slice(0, 5)],
    waitsFor: causes.map(resultId),
    causes,
  };
}

/** Its arguments leave the object out: nothing that it does matters, unless it has written the object since its deletion. */
function leavesOut({ actor, candidate, held, removal, what, who }: Signs): Found | undefined {
  const { restriction } = candidate;
  const hasWritten = lateWrites(held).some(({ manager }) => hasProgramName(actor, manager));
  if (restriction === undefined || hasWritten) return undefined;
  const fix = fixRemedy(`Let ${who} handle ${what}: change what leaves it out`);
  return { says: `does not handle it: ${restriction}`, remedies: [fix, ...removal] };
}

/** Its requests fail: by its own words, by a dry run of the removal, or by RBAC. */
function fails(owner: Signs): Found | undefined {
  const { actor, candidate, common, context, held, isAhead, log, obstacles, removal } = owner;
  const { change, impersonates } = candidate.rights;
  const mayChange = change !== undefined || impersonates || !isRbacRead(context);
  // A text that names an object which holds this one back reports a wait, which has a finding of its own. What was said before
  // the deletion does not say why one that has lost its Lease does not act: who leads works on for seconds after that.
  const isLed = lostLease(context, held, actor) === undefined;
  const refusals = refusalsFor(context, held, actor).filter(
    ({ at, error }) =>
      (isLed || !(Date.parse(at) < Date.parse(held.since))) &&
      idsTold(context, held, [error.text]).length === 0,
  );
  // An error that does not end by waiting decides over the others.
  const fates = refusals.map(({ error }) => lostWithNamespace(context, held, error));
  const lost = fates.find((fate) => fate !== undefined);
  const first = refusals[fates.indexOf(lost)];
  if (first === undefined && mayChange && obstacles.length === 0) return undefined;
  const request = removalRequest(context, held);
  const errors = refusals.map(({ error }) => error).filter(isAdmissionError);
  const admission = errors.map((error) => refusalResult(context, error, request));
  const unique = new Map([...admission, ...obstacles].map((one) => [resultId(one), one]));
  const causes = [...unique.values()];
  const lack = `RBAC lets it neither update nor patch ${typeName(held.type)}`;
  // What refuses the request has a finding of its own, with the text and the remedy.
  const isTold = first && !isAdmissionError(first.error);
  const quote = isTold && !lost ? shortQuote(first.error.text) : undefined;
  // A text that quotes no answer of the API server need not be about a request; the log is evidence of all states.
  const others = refusals.filter(({ source }) => !source.startsWith('the log of '));
  const by = others[0] === first ? first?.source : 'its log';
  const told = `${first?.error.kind === 'other' ? `${by} says` : 'its requests fail'}: ${quote}`;
  const refused = first
    ? 'its request is refused'
    : 'the removal is refused, at least to this gate';
  const reason = isTold ? told : causes.length > 0 ? refused : lack;
  const isOver = lost !== undefined || (first !== undefined && isGoneOutside(first.error));
  const cures = first || !mayChange ? cureRemedies(owner, first?.error) : [];
  // What nobody here may be able to resolve: a refusal of a cloud, a server that is gone, a fault of the controller.
  const isOutside = !isOver && cures.some(({ command }) => command === undefined);
  return {
    says: lost ? `can never succeed: ${lost}` : `runs, but ${reason}`,
    remedies: [
      ...(isOver ? removalAsFirstStep(removal) : cures),
      ...escapeRemedies(held),
      ...(isOutside ? removal : []),
      ...(lost ? orderRemedies(context, held, 'the objects that their controller needs') : []),
      ...log,
    ],
    quote,
    // An Event from before a deletion is about other work, which may have begun to fail seconds ago.
    ...(isAhead && first?.source.startsWith('Event ') && { certainty: 'unknown' }),
    evidence: [
      ...others.slice(0, 10).map((one) => `${one.source}: ${one.error.text}`),
      ...(mayChange ? [] : [lack]),
    ],
    scope: lost ? 'namespace' : common.scope,
    waitsFor: causes.map(resultId),
    waitsForNamespace: lost !== undefined,
    causes,
  };
}

/** A field of a known product may stop what it runs, and not its controller: it counts in a hang in which nothing is said. */
function paused(owner: Signs): Found | undefined {
  const { certainty, context, held, isAhead, log, statements } = owner;
  const pause = pausedBy(context, held);
  if (pause === undefined) return undefined;
  const { object, by, isGuess, isUnclear } = pause;
  if (isGuess && (isAhead || statements.length > 0)) return undefined;
  const name = nameOf(object);
  return {
    says: `runs, but ${isUnclear ? 'may be' : 'is'} configured to ignore ${name}: ${by}`,
    remedies: [resumeRemedy(held.type, pause), ...log],
    evidence: [`${name}: ${by}`],
    certainty: isUnclear ? 'likely' : certainty,
    ...(isInside(context, object.namespace) && { scope: 'namespace' }),
  };
}

/** None of its pods leads: another process holds the Lease, or nobody has renewed it. */
function doesNotLead({ actor, context, held, isAhead, log, who }: Signs): Found | undefined {
  const lease = lostLease(context, held, actor);
  if (lease === undefined) return undefined;
  const { namespace, name, holder, renewTime } = lease;
  const what = `Lease ${namespace}/${name}`;
  const isLed = isRenewed(context, lease);
  const [command] = isLed ? [] : restartCommands(context, actor);
  const fix = command
    ? fixRemedy(`Restart ${who}, so that one of its pods becomes the leader`, { command })
    : fixRemedy(`Let ${who} become the leader, or end the process that holds the Lease`);
  const show = showObjectRemedy(`See which pod holds ${what}`, { kind: 'Lease', namespace, name });
  return {
    says: `${isLed ? 'runs, but may not lead' : 'may have no leader'}: ${what} ${isLed ? `is held by ${holder}` : `was last renewed at ${renewTime}`}`,
    remedies: isLed ? [...log, show, fix] : [fix, ...log, show],
    ...(!isLed && { code: 'owner-not-acting' }),
    evidence: [`${what} was last renewed at ${renewTime}, by ${holder}`],
    // The process that leads may act in time.
    certainty: isLed && isAhead ? 'unknown' : 'likely',
  };
}

/** An argument that lists types, and not one that is about all objects. */
const LISTS_TYPES = /^--?(?:disable|skip|exclude)/;

/** Returns what may keep an owner from acting that is ready and reports no failure, the surest first: nothing if it has noticed the deletion. */
function doubtsOf(owner: Signs): Doubt[] {
  const { actor, candidate, context, held, isAhead, lines, questions, what } = owner;
  const { because, isLocal } = candidate.rights;
  const { objects, since, type } = held;
  const { kind, limits = [], pods } = actor;
  // Anybody annotates an object that hangs, and other finalizers leave it; its status is written by its controllers.
  const writes = objects.flatMap(({ statusWriters }) => statusWriters);
  const isWorkedOn = writes.some(({ time = '' }) => Date.parse(time) > Date.parse(since));
  const names = [type.kind.toLowerCase(), type.resource];
  // A controller that wrote the status handles the object, whatever its settings say.
  const isOpen = isAhead && writes.length === 0;
  const started = limits.map((limit) => {
    const words = limit.toLowerCase().split(/[=,]/);
    const isMeant = !LISTS_TYPES.test(limit) || words.some((one) => names.includes(one));
    return limit.startsWith('-')
      ? isMeant && `it was started with ${limit}, which may leave it out`
      : isOpen && `it has settings that this gate does not read: ${limit}`;
  });
  const containers = pods.flatMap((pod) => pod.containers ?? []);
  const crash = containers.find(
    ({ crashedAt = '', restarts = 0 }) =>
      restarts > 2 && context.nowMs - Date.parse(crashedAt) < 10 * 60_000,
  );
  const awaited = isAhead ? namespacesAwaited(context, held) : [];
  const node = lostNode(context, held, actor);
  const pause = isAhead ? pausedBy(context, held) : undefined;
  const others = [
    ...questions,
    ...awaited.map(({ subject }) => `it waits until ${nameOf(subject)} is deleted`),
    ...protectionsOf(context, held),
    ...started,
    kind === 'CronJob' &&
      (podTroubles(context, actor)[0] ?? 'it may act only while its schedule runs a Job'),
    crash &&
      `it has restarted ${crash.restarts} times, the last time after a crash at ${crash.crashedAt}`,
    node && `it has no ready pod on node ${node}, which ${what} names`,
    pause && `it may ignore ${nameOf(pause.object)}: ${pause.by}`,
  ].flatMap((says) => (says ? [{ says, certainty: 'unknown' as const }] : []));
  const right = `its permission here (${because[0]})`;
  return [
    ...(isAhead && isLocal ? [lostDoubt(context, right, 'likely')] : []),
    ...(lines.length === 0 && !isWorkedOn ? needsOfOwner(context, held, actor) : []),
    ...others,
  ];
}

/** Returns a node that a held object names and on which the DaemonSet that serves it has no ready pod. */
function lostNode(context: Context, { objects }: Held, { kind, pods }: Actor) {
  if (kind !== 'DaemonSet' || pods.length === 0) return undefined;
  const nodes = objects.flatMap((object) => detailOf(context, object)?.nodes ?? []);
  return nodes.find((node) => pods.every((pod) => pod.nodeName !== node || !pod.ready));
}

/** It is ready and reports no failure, but may lack what its clean-up needs, or be kept from it: it has said nothing since the deletion. */
function mayBeKept(owner: Signs): Found | undefined {
  const { context, held, isAhead, log, removal, statements, who } = owner;
  const doubts = statements.length > 0 ? [] : doubtsOf(owner);
  const [doubt] = doubts;
  if (doubt === undefined) return undefined;
  const lost = listNames(doubts.flatMap(({ lost = [] }) => lost));
  const isTaken = lost !== '' || doubts.some(({ created }) => created);
  const isNeeded = isAhead || doubt.certainty === 'likely';
  const find = `Find out ${isAhead ? 'before the deletion ' : ''}whether this keeps ${who} from removing ${held.finalizer}, and resolve it`;
  return {
    says: `runs; ${doubt.says}`,
    remedies: [
      ...(isTaken ? [] : [fixRemedy(doubt.fix ?? find)]),
      ...log,
      ...(isAhead ? [] : escapeRemedies(held)),
      ...(isTaken ? [...orderRemedies(context, held, lost), ...removal] : []),
    ],
    ...(isNeeded && { code: 'owner-failing', certainty: doubt.certainty }),
    evidence: [...doubts.map(({ says }) => says), ...(isAhead ? [] : searchedBy(owner))],
    // The words of another program with which a doubt ends.
    quote: / says(?: in its status)?: (.*)$/s.exec(doubt.says)?.[1],
    waitsForNamespace: isNeeded && isTaken,
  };
}

/** Nothing shows what keeps it: with what is said since the deletion, by its log, or the last error from before. */
function runs(owner: Signs): Found | undefined {
  const { actor, context, held, isAhead, lines, log, questions, statements, what, who } = owner;
  if (isAhead) return undefined;
  const [said] = statements;
  const [line] = said ? [] : lines;
  const last = said || line ? undefined : lastComplaint(context, held, actor);
  const told = said ?? last;
  const isToResolve = told && !GOES_ON.test(told.text);
  const quote = shortQuote((told ?? line)?.text ?? '');
  const age = Date.parse(held.since) - Date.parse(last?.at ?? '');
  const earlier = age >= 0 ? ` (${formatDuration(age)} earlier)` : '';
  const now = said ? `${what} says` : 'Its log says';
  const by = last ? `${upperFirst(last.source)} has said since before the deletion${earlier}` : now;
  const time = { text: `Give ${who} more time: raise the timeout` };
  const isGuarded = guardsOf(context, removalRequest(context, held)).length > 0;
  const nothing = 'runs, but nothing that was read shows why the finalizer stays';
  return {
    says: quote ? `runs. ${by}: ${quote}` : nothing,
    remedies: [
      ...(said && isToResolve ? log : log.map((one) => withRole('now', one))),
      ...(isToResolve ? [sayingRemedy(told.source)] : []),
      ...(quote || !isGuarded ? [] : attemptRemedies(context, held)),
      ...escapeRemedies(held),
      // More time helps only an owner that is at work.
      ...(isToResolve ? [] : [withRole(log.length > 0 ? 'or' : 'now', time)]),
    ],
    evidence: [...(said ? questions : []), ...searchedBy(owner)],
    quote: quote || undefined,
  };
}

function searchedBy({ actor, context, held }: Signs): string[] {
  const unread = '; the log of the controller was not read';
  const log = isLogRead(context, actor) ? ', and the newest lines of the log' : unread;
  return [...statusEvidence(context, held), `searched: the status and Events of the object${log}`];
}

/** A text in which nothing can be resolved: the work goes on, or the namespace accepts nothing new. */
const GOES_ON =
  /because it is being terminated|\b\d{1,3} ?%|\b(?:deleting|terminating|draining|uninstalling|requeu\w+)\b|\bin progress\b|\bbeing (?:deleted|removed|destroyed)\b/i;

function podTroubles(context: Context, { namespace, pods }: Actor): string[] {
  const events = warningsIn(context, namespace);
  return pods.flatMap((pod) => {
    // The condition Ready only says that containers are not ready; Events say why, as of a volume that cannot be mounted.
    const [first, ...others] = pod.troubles.filter((text) => !text.startsWith(NOT_READY));
    // How a container ended is told with it.
    const isLooping = others.some((text) => text.startsWith('waiting: CrashLoopBackOff'));
    return [
      ...(isNodeLost(context.now, pod) ? [`its node ${pod.nodeName} is not ready`] : []),
      ...(first ? [isLooping ? `CrashLoopBackOff, ${first}` : first, ...others] : []),
      ...events.flatMap(({ regarding, reason, message }) =>
        regarding.uid === pod.uid ? `${reason}: ${message}` : [],
      ),
      ...(first ? [] : pod.troubles),
    ].map((text) => `Pod ${pod.name}: ${text}`);
  });
}

function warningsIn({ now: { places } }: Context, namespace: string): EventFacts[] {
  const warnings = itemsIn(places[namespace]?.events).filter(({ type }) => type === 'Warning');
  return warnings.sort((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1));
}

/** Returns the state of a suspect in a few words: what a reader asks first of a controller that may be the owner. */
export function stateText(context: Context, actor: Actor): string {
  if (actor.wanted === 0) return scaledToZeroText(actor).replace(/^(?:is|has) /, '');
  if (actor.ready > 0) return isEnding(context, actor) ? 'running, and being deleted' : 'running';
  const [trouble = ''] = podTroubles(context, actor);
  const [reason] = trouble.replace(/^Pod \S+: (?:waiting: )?/, '').split(/[:,] /);
  return `0 of ${actor.wanted} ready${reason === '' ? '' : `: ${reason}`}`;
}
