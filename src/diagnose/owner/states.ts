import { lowerFirst } from '../../base/text.ts';
import { formatDuration } from '../../base/time.ts';
import { NAMESPACE_TYPE } from '../../model/facts/metadata.ts';
import { NOT_READY } from '../../model/facts/workloads.ts';
import type { Certainty, FindingCode, Remedy } from '../../model/finding.ts';
import type { EventFacts, Snapshot } from '../../model/snapshot.ts';
import { type Actor, actorText, isEnding } from '../actors.ts';
import { admissionResult, refusesOtherChange } from '../admission/refusals.ts';
import {
  kubectl,
  objectArgs,
  podRemedies,
  scaleUpRemedy,
  showObjectRemedy,
  withRole,
} from '../commands.ts';
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
import { isMoreThanAble, type Suspect } from './clues.ts';
import { type Held, knownFinalizer, lateWriters, lateWrites } from './held.ts';
import { hasLeader, isHolder, isRenewed, lostLease } from './leases.ts';
import { currentLogLines, isLogRead, logLinesAbout } from './logs.ts';
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
import {
  ageText,
  lastComplaint,
  PROGRESS,
  poorHealth,
  type Refusal,
  refusalsFor,
  statusTexts,
} from './statements.ts';

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
  { state: 'has 0 replicas', code: 'owner-scaled-to-zero', find: scaledToZero },
  { state: 'has no ready pod', code: 'owner-not-ready', find: notReady },
  { state: 'does not watch this namespace', code: 'owner-not-acting', find: leavesOut },
  { state: 'says that it fails', code: 'owner-failing', find: reportsErrors },
  { state: 'is paused', code: 'owner-not-acting', find: paused },
  { state: 'is refused, or has lost its right', code: 'owner-failing', find: refused },
  { state: 'is being deleted itself', code: 'owner-running', find: beingDeleted },
  { state: 'does not lead', code: 'owner-running', find: doesNotLead },
  { state: 'has no ready pod on the node', code: 'owner-not-ready', find: lacksAgent },
  { state: 'loses its right', code: 'owner-failing', in: 'forecast', find: losesItsRight },
  { state: 'will lack what it needs', code: 'owner-failing', in: 'forecast', find: willLackNeeds },
  { state: 'may lack what it needs', code: 'owner-failing', in: 'silent', find: mayLackNeeds },
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
    const { says, remedies, more = {}, causes = [] } = found;
    const evidence = [...owner.common.evidence, ...(more.evidence ?? [])];
    const certainty = more.certainty ?? owner.certainty;
    const restriction = restrictionOf(owner);
    const isTold = restriction === undefined || find === leavesOut || more.quote !== undefined;
    const also = isTold ? '' : `; besides, ${restriction}`;
    const message = `${roleText(owner.certainty, certainty)}${says}${also}`;
    return [{ ...owner.common, code, ...more, certainty, message, evidence, remedies }, ...causes];
  }
  return [];
}

/** Says that it is the controller; a finding that is proven has a sentence that says so anyway. */
function roleText(owner: Certainty, finding: Certainty): string {
  if (owner !== 'proven') return 'is most likely its controller, and ';
  return finding === 'proven' ? '' : 'is its controller, and ';
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

/** Returns what leaves the object out, unless the owner has written it since its deletion. */
function restrictionOf({ actor, candidate, held }: Owner): string | undefined {
  const hasWritten = lateWrites(held).some(({ manager }) => hasProgramName(actor, manager));
  return hasWritten ? undefined : candidate.restriction;
}

/** Its arguments leave the object out: nothing that it does matters. */
function leavesOut(owner: Signs): Found | undefined {
  const { actor, context, held, removal } = owner;
  const restriction = restrictionOf(owner);
  if (restriction === undefined) return undefined;
  const { kind, name } = held.subject;
  const details = restrictionText(context, actor).join(' ');
  const text = `Let ${actorText(actor)} handle ${kind} ${name}: change what leaves it out${details && ` (${details})`}`;
  return {
    says: `does not handle it: ${restriction}`,
    remedies: [withRole('now', { text }), ...removal],
    more: { evidence: details === '' ? [] : [details] },
  };
}

/** Returns what both states of an owner without a ready pod have in common. */
function asleep(owner: Owner) {
  const { actor, context, held } = owner;
  const isHere = isInside(context, actor.namespace);
  const gone = isForeseen(context, held) ? [] : goneNeeds(context, held, actor);
  const needs = listNames(gone);
  return {
    /** It is deleted with the namespace, and no pod of it can be created any more. */
    isLost: isHere && isEnding(context, actor) && actor.pods.length === 0,
    waitsForNamespace: isHere,
    /** What it meets next, once it runs again. */
    next:
      gone.length === 0
        ? ''
        : `. It may then still fail: ${needs} does not exist any more, and nothing can be created in this namespace`,
  };
}

function scaledToZero(owner: Signs): Found | undefined {
  const { actor, context, removal } = owner;
  if (actor.wanted !== 0) return undefined;
  const { isLost, next, waitsForNamespace } = asleep(owner);
  const { scaledBy } = actor;
  const isGoing = isEnding(context, actor);
  const at = scaledBy?.time === undefined ? '' : ` at ${scaledBy.time}`;
  const by =
    scaledBy && `field manager "${scaledBy.manager}" set its replicas${at} (managedFields)`;
  const wake = isGoing ? returnRemedy(owner) : scaleUpRemedy(actor, REMOVES);
  return {
    says: `${scaledToZeroText(actor)}${isGoing ? ', and is being deleted itself' : ''}`,
    remedies: isLost
      ? removalAsFirstStep(removal)
      : [{ ...wake, text: wake.text + next }, ...removal],
    more: { waitsForNamespace, evidence: by === undefined ? [] : [by] },
  };
}

function scaledToZeroText({ kind, nodeSelector }: Actor): string {
  const labels = Object.entries(nodeSelector).map(([key, value]) => `${key}=${value}`);
  switch (kind) {
    case 'DaemonSet':
      return labels.length === 0
        ? 'has no node that takes its pods'
        : `has no node with the labels of its nodeSelector (${labels.join(', ')})`;
    case 'CronJob':
    case 'Job':
      return 'is suspended';
    default:
      return 'is scaled to zero';
  }
}

/** Explains why none of its pods is ready, and what that waits for in turn. */
function notReady(owner: Signs): Found | undefined {
  const { actor, context, removal } = owner;
  if (actor.ready > 0) return undefined;
  const { isLost, next, waitsForNamespace } = asleep(owner);
  if (isLost) {
    const says = 'is being deleted itself and has no pods, and no new ones can be created here';
    return { says, remedies: removalAsFirstStep(removal), more: { waitsForNamespace } };
  }
  const { conditions, namespace, pods, uid } = actor;
  const who = actorText(actor);
  const troubles = podTroubles(context, actor);
  // Only ReplicaSets report refused pods in a condition; all others do in Events (kubernetes pkg/controller).
  const denied =
    conditions.find(({ type }) => type === 'ReplicaFailure') ??
    (pods.length > 0
      ? undefined
      : warningsIn(context.now, namespace).find(({ regarding }) => regarding.uid === uid));
  const isPaused = conditions.find(({ reason }) => reason === 'DeploymentPaused');
  const halted = troubles.length > 0 ? undefined : isPaused;
  const said = denied?.message ?? troubles[0] ?? halted?.message;
  const why = said && shortQuote(said);
  const causes = classifyErrorText(denied?.message ?? '')
    .filter(isAdmissionError)
    .map((error) => admissionResult(context, error, `CREATE of pods of ${who}`, namespace));
  const fixes = podRemedies(actor, who, REMOVES + next);
  const refused = {
    // The pauses of a ReplicaSet double up to 1,000 s (client-go, DefaultTypedControllerRateLimiter).
    text: `Fix what refuses the pods of ${who}; ${REMOVES}. Kubernetes waits up to 17 minutes between attempts to create pods; "kubectl rollout restart" tries at once${next}`,
  };
  // A rollout that was paused before it began has created no pods (deployment_controller.go, sync).
  const resume = halted && {
    text: `Resume the rollout of ${who}; ${REMOVES}${next}`,
    command: kubectl('rollout', 'resume', ...objectArgs(actor)),
  };
  const told = causes.length > 0 ? ': they are refused' : why === undefined ? '' : `: ${why}`;
  const evidence = denied ? [`its pods are refused (${denied.reason}): ${denied.message}`] : [];
  return {
    says: `${actor.kind === 'Pod' ? 'is not ready' : `has ${actor.ready} of ${actor.wanted} pods ready`}${told}`,
    remedies: [
      ...(denied ? [withRole('now', refused)] : resume ? [withRole('now', resume)] : fixes),
      ...logRemedies(context, actor),
      ...removal,
    ],
    more: {
      waitsForNamespace,
      quote: causes.length > 0 ? undefined : why,
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
  const { actor, candidate, common, context, held, obstacles, refusals, removal } = owner;
  const lack = lostRight(owner);
  // An error that does not end by waiting decides over the others.
  const lost = refusals.flatMap((refusal) => {
    const found = lostWithNamespace(context, held, candidate.account, refusal.error);
    return found === undefined ? [] : [{ refusal, ...found }];
  })[0];
  const first = lost?.refusal ?? refusals[0];
  const place = held.type === NAMESPACE_TYPE ? undefined : (held.subject.namespace ?? '');
  const admission = refusals.flatMap(({ error }) =>
    isAdmissionError(error)
      ? [admissionResult(context, error, `UPDATE of ${typeName(held.type)}`, place)]
      : [],
  );
  const unique = new Map([...admission, ...obstacles].map((one) => [resultId(one), one]));
  const causes = [...unique.values()];
  const isHopeless = lost !== undefined && !lost.isGrantable;
  const isTold = causes.length > 0 && (first === undefined || isAdmissionError(first.error));
  const quote = first && shortQuote(first.error.text);
  // What changes the request has a finding of its own, with its remedy.
  const isNamed = causes.length > 0 && first !== undefined && refusesOtherChange(first.error);
  const escapes = escapeRemedies(held);
  // What nobody here may be able to resolve: a refusal of a cloud, or an object that belongs in this namespace.
  const isOutside = first?.error.kind === 'other' || first?.error.kind === 'not-found';
  const byHand = isOutside && !isTold ? removal : [];
  const isOfLog = first?.source.startsWith('the log of ');
  // A text that quotes no answer of the API server need not be about a request.
  const fails =
    first?.error.kind === 'other'
      ? `${isOfLog ? 'its log' : first.source} says`
      : 'its requests fail';
  const said = refusals
    .filter(
      ({ error, source }) => error.text === first?.error.text || !source.startsWith('the log'),
    )
    .map(({ error, source }) => `${source}: ${error.text}`);
  return {
    // What refuses the request has a finding of its own, with the text.
    says: isHopeless
      ? `can never succeed: ${lost.text}`
      : isTold
        ? `runs, but ${first === undefined ? 'the removal is refused, at least to this gate' : 'its request is refused'}`
        : quote !== undefined
          ? `runs, but ${fails}: ${quote}`
          : `runs, but ${lack ?? 'the removal is refused, at least to this gate'}`,
    remedies: [
      ...(isHopeless || (first !== undefined && isGoneOutside(first.error))
        ? removalAsFirstStep([...removal, ...escapes])
        : [
            ...(isNamed ? [] : cureRemedies(owner, first?.error, lack !== undefined)),
            ...escapes,
            ...byHand,
          ]),
      ...(lost === undefined
        ? []
        : orderRemedies(context, held, 'the objects that their controller needs')),
      ...(isEnding(context, actor) ? [withRole('or', returnRemedy(owner))] : []),
      ...logRemedies(context, actor),
    ],
    more: {
      quote: isHopeless || isTold ? undefined : quote,
      evidence: [...said.slice(0, 10), ...(lack === undefined ? [] : [lack])],
      scope: isHopeless ? 'namespace' : common.scope,
      waitsFor: causes.map(resultId),
      waitsForNamespace: lost !== undefined,
    },
    causes,
  };
}

/** A field of a known product may stop what it runs, and not its controller: it counts in a hang in which nothing is said. */
function paused({ actor, certainty, context, held, statements }: Signs): Found | undefined {
  const pause = pausedBy(context, held);
  const isSilent = statements.length === 0 && !isForeseen(context, held);
  if (pause === undefined || (pause.isGuess && !isSilent)) return undefined;
  const { object, by, isUnclear } = pause;
  const what = `${object.kind} ${object.name}`;
  const resume = resumeRemedy(servedType(context, object) ?? held.type, object, by);
  return {
    says: `runs, but ${isUnclear ? 'may be' : 'is'} configured to ignore ${what}: ${by}`,
    remedies: [resume, ...logRemedies(context, actor)],
    more: { evidence: [`${what}: ${by}`], certainty: isUnclear ? 'likely' : certainty },
  };
}

function beingDeleted(owner: Signs): Found | undefined {
  const { actor, context } = owner;
  if (!isEnding(context, actor)) return undefined;
  const remedies = [returnRemedy(owner), ...logRemedies(context, actor)];
  return { says: 'still runs, but is being deleted itself', remedies };
}

/** Returns the remedy to install an owner again that is being deleted. */
function returnRemedy({ actor, context, held }: Owner): Remedy {
  const isElsewhere = isInside(context, actor.namespace);
  return installRemedy(context, held, actorText(actor), isElsewhere ? ' in another namespace' : '');
}

/** Finds an owner without the lead. */
function doesNotLead({ actor, context, held }: Signs): Found | undefined {
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
  const isHung = isHolder(actor, lease);
  const isLed = isRenewed(context, lease);
  const why = isHung
    ? 'which is the leader and does nothing'
    : 'so that one of its pods becomes the leader';
  const restart = isLed
    ? []
    : restartRemedies(context, actor, `Restart ${actorText(actor)}, ${why}`);
  const text = `Let ${actorText(actor)} become the leader, or end the process that holds the Lease`;
  return {
    says: isHung
      ? `runs, but its pod may hang: it holds ${what} and does not renew it`
      : `runs, but may ${isLed ? 'not lead' : 'have no leader'}: ${what} is held by ${holder}`,
    remedies: [
      ...logRemedies(context, actor),
      showObjectRemedy(`See which pod holds ${what}`, { kind: 'Lease', namespace, name }),
      ...(restart.length > 0 || isHung ? restart : [withRole('now', { text })]),
    ],
    more: {
      ...(isLed && !isHung ? {} : { code: 'owner-not-acting' as const }),
      evidence: [`${what} was last renewed at ${renewTime}, by ${holder}`],
      // The process that leads may act in time, and one that hangs is restarted by its probe.
      certainty: isLed && isForeseen(context, held) ? 'unknown' : 'likely',
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
  const which = pod ? 'the pod of ' : '';
  return {
    says: `${state} on node ${node}, which ${object.kind} ${object.name} names`,
    remedies: [
      ...podRemedies(actor, `${which}${actorText(actor)} on node ${node}`, REMOVES),
      ...removal.map((one) =>
        pod ? one : { ...one, text: `If node ${node} is gone for good: ${lowerFirst(one.text)}` },
      ),
    ],
    // A name without a pod may be another name than that of a node.
    more: { certainty: pod ? certainty : 'likely' },
  };
}

function losesItsRight({ candidate, context, held }: Signs): Found | undefined {
  const { because, isLocal } = candidate.rights;
  if (!isLocal) return undefined;
  return {
    says: 'would lose its permission, which is deleted with this namespace',
    remedies: orderRemedies(context, held, "their controller's permissions"),
    more: {
      evidence: [`it may change the object only by ${because[0]}`],
      waitsForNamespace: true,
    },
  };
}

/**
 * Finds what a running owner needs and will lack. Only the owner knows whether it can work without what a deletion
 * of the namespace takes away, unless the catalogue or an earlier deletion says so.
 */
function willLackNeeds(owner: Signs): Found | undefined {
  const { actor, context, held } = owner;
  // A pause that is plain has a state of its own.
  const pause = pausedBy(context, held);
  const states = [
    ...owner.questions,
    ...namespacesAwaited(context, held).map(
      ({ subject }) => `it waits until Namespace ${subject.name} is deleted`,
    ),
    ...held.objects.flatMap((object) =>
      poorHealth(context, object).map(
        (text) => `${object.kind} ${object.name} says in its status: ${shortQuote(text)}`,
      ),
    ),
    ...protectionsOf(context, held),
    ...limitsOf(context, held, actor),
    ...(pause
      ? [`its controller may ignore ${pause.object.kind} ${pause.object.name}: ${pause.by}`]
      : []),
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
    says: `runs; ${clauses[0]}`,
    remedies: names === '' ? find : orderRemedies(context, held, names),
    more: {
      certainty: first.certainty,
      evidence: clauses,
      quote: quotedIn(clauses[0] ?? ''),
      waitsForNamespace: names !== '',
    },
  };
}

/** Returns the words of another program with which a clause ends. */
function quotedIn(clause: string): string | undefined {
  return /(?<= says(?: in its status)?: ).*$/s.exec(clause)?.[0];
}

/** Finds what a silent owner may need and cannot get. */
function mayLackNeeds({ actor, common, context, held, removal }: Signs): Found | undefined {
  const gone = goneNeeds(context, held, actor).map((one) => `${one}, which does not exist here`);
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
    says: `runs, but may need ${lacks[0]?.replace(/ \(.*\)(?= here,)/, '')}`,
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
 * Says that nothing that was read shows a reason. What the status has said since the deletion is the state; the last error
 * from before is only quoted. Its log comes first: more time helps only an owner that is at work.
 */
function showsNoReason(owner: Signs): Found {
  const { actor, candidate, certainty, common, context, held, questions, statements } = owner;
  const who = actorText(actor);
  const what = `${held.subject.kind} ${held.subject.name}`;
  const [said] = statements;
  const last = said ? undefined : lastComplaint(context, held, actor);
  const [line] = currentLogLines(context, held, actor);
  const [poor] = held.objects.flatMap((object) => poorHealth(context, object));
  const quoted = said
    ? { by: what, says: 'says', text: said.text || said.words }
    : line
      ? { by: 'Its log', says: 'says', text: line.text }
      : last && !last.isOfOthers
        ? {
            by: last.by === 'status' ? what : last.source,
            says: `said ${earlierText(last.at, held.since)}before the deletion`,
            text: last.text || last.words,
          }
        : poor && { by: what, says: 'says', text: poor };
  const quote = quoted && shortQuote(quoted.text);
  const protections = said ? [] : protectionsOf(context, held);
  const failed = failedInputs(context, held).map(
    ({ what: input, by, failure }) =>
      `it may need ${input} (${by}), which says: ${shortQuote(failure)}`,
  );
  const limits = said ? [] : [...protections, ...limitsOf(context, held, actor), ...failed];
  const [doubt] = [...limits, ...questions];
  const isPart = actor.ready < actor.wanted && !hasLeader(context, actor);
  const down = actor.pods.filter(({ ready }) => !ready).map((pod) => pod.name);
  const isQuoted = !isPart && (said !== undefined || (doubt === undefined && quoted !== undefined));
  const says = isPart
    ? `runs, but only ${actor.ready} of ${actor.wanted} pods are ready: the one for ${what} may not be`
    : doubt !== undefined && said === undefined
      ? `runs; ${limits[0] ?? doubt.replace(/: .*/s, '')}`
      : quoted
        ? `runs. ${quoted.by} ${quoted.says}: ${quote}`
        : 'runs, but nothing that was read shows why';
  const log = logRemedies(context, actor);
  const fix = isPart
    ? [...podRemedies(actor, `Pod ${listNames(down)} of ${who}`, REMOVES), ...owner.removal]
    : said && !goesOn(said.text)
      ? [sayingRemedy(`the status of ${said.object.kind} ${said.object.name}`, said.text)]
      : doubt !== undefined
        ? [withRole('now', { text: `Find out whether this keeps ${who} from acting: ${doubt}` })]
        : undefined;
  const wait = isMoreThanAble(candidate)
    ? `Give ${who} more time`
    : `If ${who} handles ${what}, give it more time`;
  const time = withRole(log.length > 0 ? 'or' : 'now', {
    text: `${said ? '' : `${silenceText(owner)}. `}${wait}: raise the timeout`,
  });
  const searched = isLogRead(context, actor)
    ? ', and the newest lines of its log'
    : '; its log was not read';
  return {
    says,
    remedies: fix
      ? [...log, ...fix]
      : [...log.map((one) => withRole('now', one)), ...escapeRemedies(held), time],
    more: {
      evidence: [
        ...(said ? [`${said.source}: ${said.text}`] : []),
        ...(last ? [`${last.source}, ${ageText(last)}: ${last.text}`] : []),
        ...(isPart ? podTroubles(context, actor).slice(0, 3) : []),
        ...questions,
        `searched: its status and Events${searched}`,
      ],
      quote: isQuoted ? quote : isPart ? undefined : quotedIn(doubt ?? ''),
      certainty: doubt === undefined && !isPart ? certainty : 'likely',
      scope: protections.length > 0 ? 'namespace' : common.scope,
    },
  };
}

/** Returns "5m " for a text of five minutes before the deletion; nothing where it has no date. */
function earlierText(at: string, since: string): string {
  const age = Date.parse(since) - Date.parse(at);
  return age >= 0 ? `${formatDuration(age)} ` : '';
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
  return PROGRESS.test(text) || ONGOING.test(text);
}

const ONGOING = /\b(?:deleting|terminating|draining|uninstalling|requeu\w+)\b|\bin progress\b/i;

const CRASHED_LATELY_MS = 10 * 60_000;
const MANY_RESTARTS = 3;

/** Returns why an owner that is ready may not act on these objects: by how it was started, or because it crashes again and again. */
function limitsOf(context: Context, held: Held, actor: Actor): string[] {
  const names = [held.type.kind.toLowerCase(), held.type.resource];
  // A controller that wrote the status handles the object, whatever its settings say.
  const isOpen = isForeseen(context, held) && held.objects.every((one) => !one.statusWriters[0]);
  const own = (actor.limits ?? []).flatMap((limit) => {
    if (!limit.startsWith('-'))
      return isOpen ? [`it has settings that this gate does not read: ${limit}`] : [];
    const words = limit.toLowerCase().split(/[=,]/);
    const isMeant = !LISTS_TYPES.test(limit) || words.some((one) => names.includes(one));
    return isMeant ? [`it was started with ${limit}, which may leave it out`] : [];
  });
  if (actor.kind === 'CronJob') own.push('it may act only while its schedule runs a Job');
  const ready = actor.pods.filter((pod) => pod.ready);
  const crashed = ready.flatMap(({ containers = [] }) =>
    containers.filter(
      ({ crashedAt = '', restarts = 0 }) =>
        restarts >= MANY_RESTARTS && context.nowMs - Date.parse(crashedAt) < CRASHED_LATELY_MS,
    ),
  );
  const [first] = crashed;
  if (first !== undefined && crashed.length >= ready.length) {
    own.push(
      `it has restarted ${first.restarts} times, the last time after a crash at ${first.crashedAt}`,
    );
  }
  return own;
}

/** A limit that lists types, and not one that is about all objects. */
const LISTS_TYPES = /^--?(?:disable|skip|exclude)/;

/** Returns the problems of its pods: of the node, of the containers, and in Warning Events. */
function podTroubles({ now }: Context, { namespace, pods }: Actor): string[] {
  const events = warningsIn(now, namespace);
  return pods.flatMap((pod) => {
    // The condition Ready only says that containers are not ready; Events say why, as of a volume that cannot be mounted.
    const { symptoms = [], reasons = [] } = Object.groupBy(pod.troubles, (text) =>
      text.startsWith(NOT_READY) ? 'symptoms' : 'reasons',
    );
    const [first, ...others] = reasons;
    const isLooping = others.some((text) => text.startsWith(`waiting: ${CRASH_LOOP}`));
    return [
      ...(isNodeLost(now, pod) ? [`its node ${pod.nodeName} is not ready`] : []),
      ...(first === undefined ? [] : [isLooping ? `${CRASH_LOOP}, ${first}` : first, ...others]),
      ...events.flatMap(({ regarding, reason, message }) =>
        regarding.uid === pod.uid ? `${reason}: ${message}` : [],
      ),
      ...(reasons.length > 0 ? [] : symptoms),
    ].map((text) => `Pod ${pod.name}: ${text}`);
  });
}

/** The reason of a container that ends again and again; how it ended is told with it. */
const CRASH_LOOP = 'CrashLoopBackOff';

/** Returns the Warning Events of a namespace, newest first. */
function warningsIn({ places }: Snapshot, namespace: string): EventFacts[] {
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
