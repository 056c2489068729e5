import { escapeForRegExp, upperFirst } from '../../base/text.ts';
import { POD_TYPE } from '../../model/facts.ts';
import type { Certainty, FindingCode, Remedy, Subject } from '../../model/finding.ts';
import { type LeaseFacts, type ObjectFacts, trialKey } from '../../model/snapshot.ts';
import { type Actor, accountText, actorsOf, actorText, isAlive, isEnding } from '../actors.ts';
import { productName } from '../catalogue.ts';
import {
  chainCutText,
  isWaitText,
  linksInside,
  linksNamedIn,
  namespacesBehind,
} from '../chains.ts';
import {
  kubectl,
  lookRemedy,
  objectArgs,
  showObjectRemedy,
  withoutPeriod,
  withRole,
} from '../commands.ts';
import {
  type Context,
  definitionSubject,
  definitionsOf,
  detailOf,
  fateText,
  groupsOf,
  isAggregated,
  isForeseen,
  isInside,
  itemsIn,
  type Link,
  linksTo,
  linksToHeld,
  listNames,
  type RuleResult,
  resultId,
  servedType,
  shortQuote,
  subjectOf,
  textsAbout,
  typeName,
  willBeDeleted,
} from '../context.ts';
import { classifyErrorText, isAdmissionError } from '../error-texts.ts';
import { guardsAsked, realRequests, requesterOf } from '../guards.ts';
import { type Account, departedGrant, isRbacRead } from '../rights.ts';
import {
  admissionResult,
  deadWebhooks,
  EVALUATED_PREFIX,
  type Judgement,
  judgeAdmission,
  onlyGuardResults,
} from '../rules/admission.ts';
import { controllerManager, inactiveControllerManager } from '../rules/controller.ts';
import { isNodeLost } from '../rules/pods.ts';
import { RUNS_OUTSIDE_TEXT } from './clues.ts';
import type { Excluded } from './exclusions.ts';
import {
  finalizerDomain,
  finalizersOfObject,
  type Held,
  isOfControllerManager,
  isProviderManaged,
  isSetByHand,
  knownFinalizer,
  lateWriters,
  specificFieldManager,
  writerOf,
} from './held.ts';
import {
  hasLeader,
  isHolder,
  isRenewed,
  leasesOfGroups,
  leasesOfProgram,
  lostLease,
} from './leases.ts';
import { hasWord, isLogRead, logEvidence, logLinesAbout, quotedLines } from './logs.ts';
import { hasProgramName, identifiesProgram } from './names.ts';
import {
  absentObjects,
  goneNeeds,
  type Need,
  namedInNamespace,
  neededCreations,
  needsOfOwner,
} from './needs.ts';
import { nextObstacles } from './next.ts';
import { childrenOf, partnerLinks, partnersOf, usersOf } from './partners.ts';
import {
  cureRemedies,
  endSyncRemedy,
  installRemedy,
  knownRemedies,
  logRemedy,
  orderRemedies,
  removalAsFirstStep,
  removalRemedies,
  restartRemedies,
  resumeRemedy,
  scaleUpRemedies,
} from './remedies.ts';
import {
  deadLeader,
  kindOfResource,
  lastComplaint,
  lostAgent,
  lostDefinition,
  pausedBy,
  type Refusal,
  refusalsFor,
  statusTexts,
} from './state.ts';
import { hasObjectClue, type Suspect, suspectText, workloadExists } from './suspects.ts';
import { waitingSync } from './syncs.ts';
import { findOwner, type Ownership, unreadSources } from './verdict.ts';

/** The findings about the owner of a finalizer: its state, and what it waits for in turn. */
export interface OwnerResults {
  /** The findings that the held object waits for. */
  waitsFor: Link[];
  results: RuleResult[];
  /** What holds the object once the owner acts again. */
  next?: string[];
  /** The removal of the finalizer, which ends a circle of objects that wait for each other. */
  wayOut?: Remedy[];
  /** No running controller will remove the finalizer: a person may. */
  isRemovable: boolean;
  /** In a forecast: the owner runs, nothing contradicts it, so it is expected to remove the finalizer. */
  isExpected: boolean;
}

export const NO_OWNER_EXPECTED: OwnerResults = {
  waitsFor: [],
  results: [],
  isRemovable: false,
  isExpected: false,
};

const EXPECTED: OwnerResults = { ...NO_OWNER_EXPECTED, isExpected: true };

const RUNNING: readonly FindingCode[] = ['owner-running', 'owner-failing', 'owner-not-acting'];

const BECAUSE = 'only its owner removes the finalizer';
const REFUSED = 'it refuses the update that removes the finalizer';

/**
 * Returns the findings about the owner. `siblings`: the other finalizers of the same objects that a person may
 * remove as well. `behind`: UIDs of objects that wait for this one; objects that are bound to each other name each
 * other.
 */
export function ownerResults(
  context: Context,
  held: Held,
  siblings: readonly string[] = [],
  behind: readonly string[] = [],
): OwnerResults {
  if (isOfControllerManager(held)) return controllerManagerResults(context, held);
  const attribution = findOwner(context, held);
  const { results: obstacles, ...open } = judgeRemoval(context, held, attribution.owner?.account);
  const [refusing] = [...open.toGate, ...obstacles];
  const removal = removalRemedies(context, held, siblings, refusing?.subject);
  const { verdict, owner } = attribution;
  if (verdict === 'missing' && isForeseen(context, held) && isOfTheCloud(held)) return EXPECTED;
  const results =
    verdict === 'found' && owner?.actor !== undefined
      ? workloadResults(attribution, {
          ...{ context, held, removal, obstacles, questions: open.questions },
          candidate: owner,
          actor: owner.actor,
        })
      : verdict === 'missing'
        ? [missingOwner(context, held, attribution, removal)]
        : [unknownOwner(context, held, attribution, removal)];
  const [first] = results;
  if (first === undefined) return { ...EXPECTED, ...heldByPartner(context, held, behind) };
  const isRunning = RUNNING.includes(first.code);
  const isRemovable = first.remedies.some(({ text }) => removal.some((one) => one.text === text));
  // An owner that ignores an object ignores its parts: the finding about the whole says it.
  const whole = first.code === 'owner-not-acting' ? pausedBy(context, held)?.object : undefined;
  if (whole !== undefined && !held.objects.includes(whole) && whole.finalizers.length > 0) {
    const group = groupsOf(context.now).find(({ examples }) => examples.includes(whole));
    const because = `it is a part of it, and its controller ignores ${whole.kind} ${whole.name}`;
    return { ...NO_OWNER_EXPECTED, waitsFor: linksToHeld(group?.examples[0] ?? whole, because) };
  }
  const mayWait = first.code === 'owner-running';
  const partners =
    mayWait || verdict !== 'found'
      ? [...partnerLinks(context, held), ...linksInside(context, held, owner?.actor)]
      : [];
  const cut = mayWait && partners.length === 0 ? chainCutText(context, held) : undefined;
  if (cut !== undefined) {
    const why = `what ${held.subject.kind} ${held.subject.name} waits for was not followed further: ${cut}`;
    results[0] = { ...first, isCut: true, evidence: [...first.evidence, why] };
  }
  const others = mayWait && partners.length > 0 ? [] : results;
  // A refusal of a running owner is linked below it; any other program meets the refusal when it acts.
  const extra = isRunning ? [] : obstacles;
  const wakeless = first.code === 'owner-scaled-to-zero' ? refusedPods(context, owner?.actor) : [];
  const shown = [...others, ...extra, ...wakeless];
  const next =
    verdict === 'unknown' || (mayWait && partners.length === 0)
      ? []
      : nextObstacles(context, held, owner, shown, obstacles);
  return {
    waitsFor: [
      ...partners,
      ...linksTo(others.slice(0, 1), BECAUSE),
      ...linksTo(extra, REFUSED),
      ...linksTo(wakeless, 'it would refuse the pods of its owner'),
    ],
    results: shown,
    ...(next.length > 0 && { next }),
    ...(mayWait && partners.length > 0 && { wayOut: removal }),
    isRemovable,
    isExpected: false,
  };
}

/**
 * Finds dead webhooks that refuse the pods of an owner that is scaled to zero. If the owner itself serves one, that
 * webhook has to be removed first: scaling up would create no pod.
 */
function refusedPods(context: Context, actor: Actor | undefined): RuleResult[] {
  if (actor === undefined) return [];
  const place = itemsIn(context.now.cluster.namespaces).find(
    ({ name }) => name === actor.namespace,
  );
  if (place === undefined) return [];
  return deadWebhooks(context, POD_TYPE, { labels: actor.podLabels }, 'CREATE', place.labels).map(
    ({ servedBy, ...result }) =>
      servedBy === actorText(actor)
        ? {
            ...result,
            remedies: result.remedies
              .filter(({ role: when }) => when === 'or')
              .map((remedy, index) => (index === 0 ? withRole('now', remedy) : remedy)),
          }
        : result,
  );
}

/** Finds terminating objects that the finalizer of another owner holds: a running owner may wait for these. */
function heldByPartner(
  context: Context,
  held: Held,
  behind: readonly string[],
): Partial<OwnerResults> {
  const waiting = [...behind, ...held.objects.map(({ uid }) => uid)];
  const partners = partnersOf(context, held).filter(({ object }) => !waiting.includes(object.uid));
  const waitsFor = partners.flatMap(({ object, because }) =>
    finalizersOfObject(context, object)
      .filter((other) => !ownerResults(context, other, [], waiting).isExpected)
      .flatMap(({ finalizer }) => linksToHeld({ ...object, finalizers: [finalizer] }, because)),
  );
  return waitsFor.length === 0 ? {} : { waitsFor, isExpected: false };
}

/** Returns the sentence about the duty of an owner, with its certainty and with the sources that were not read. */
function shouldRemove(held: Held, certainty: Certainty, unread: readonly string[]): string {
  if (certainty === 'proven') return `should remove ${held.finalizer}`;
  const gap = unread.length === 0 ? '' : ` (${unreadText(unread)})`;
  return `should most likely remove ${held.finalizer}${gap}`;
}

function unreadText(labels: readonly string[]): string {
  return `${listNames(labels, 3)} could not be read`;
}

function evidenceFor({ clues, rights, actor }: Suspect): string[] {
  const because = rights.because.slice(0, 3).join('; ');
  const isShown = clues.some(({ about, text }) => about !== 'anyone' && text.includes(because));
  return [
    ...clues.flatMap(({ about, text }) => (about === 'anyone' ? [] : [text])),
    ...(because === '' || isShown ? [] : [`RBAC: ${because}`]),
    ...(actor === undefined || actor.isGone || isBySchedule(actor)
      ? []
      : [`${actorText(actor)}: ${actor.ready} of ${actor.wanted} ready`]),
    ...(actor === undefined || actor.selectors.length === 0
      ? []
      : [`it was started with ${actor.selectors.join(' ')}`]),
  ];
}

function evidenceOf(candidate: Suspect, { suspects, excluded, unread }: Ownership): string[] {
  return [
    ...evidenceFor(candidate),
    ...suspects
      .slice(0, 3)
      .map((other) => `also points to ${suspectText(other)}: ${other.clues[0]?.text}`),
    ...excludedTexts(excluded),
    ...(unread.length === 0 ? [] : [unreadText(unread)]),
  ];
}

/** An owner that exists, and the parts that all findings about it share. */
interface OwnerCase {
  context: Context;
  held: Held;
  candidate: Suspect;
  actor: Actor;
  removal: Remedy[];
  /** The guards that refuse the update that removes the finalizer. */
  obstacles: RuleResult[];
  /** The open questions about that. */
  questions: string[];
  common: Pick<RuleResult, 'subject' | 'finalizer' | 'scope' | 'certainty' | 'evidence'> &
    Partial<RuleResult>;
  /** "should remove x", with the certainty. */
  duty: string;
}

/** Returns a finding about the owner: what it should do, and in `words` why it is not done. */
function findingAbout(
  { common, duty }: Pick<OwnerCase, 'common' | 'duty'>,
  code: RuleResult['code'],
  words: string,
  remedies: Remedy[],
  more: Partial<RuleResult> = {},
): RuleResult {
  const evidence = [...common.evidence, ...(more.evidence ?? [])];
  return { ...common, ...more, code, message: duty + words, evidence, remedies };
}

function workloadResults(
  attribution: Ownership,
  given: Omit<OwnerCase, 'common' | 'duty'>,
): RuleResult[] {
  const { context, held, candidate, actor, removal, obstacles } = given;
  const { certainty, unread } = attribution;
  if (willBeDeleted(context, actor.namespace))
    return [missingOwner(context, held, attribution, removal)];
  const inside = isInside(context, actor.namespace);
  const lines = logLinesAbout(context, held, actor);
  const common = {
    subject: subjectOf(actor),
    finalizer: held.finalizer,
    scope: inside ? ('namespace' as const) : ('cluster' as const),
    certainty,
    evidence: [
      ...logEvidence(context, lines),
      ...evidenceOf(candidate, attribution),
      ...admissionOf(context, held),
    ],
    ...(lines.length > 0 && { ownerLog: quotedLines(lines) }),
  };
  const duty = shouldRemove(held, certainty, unread);
  const waitsForNamespace = inside
    ? 'it is in this namespace and is being deleted with it'
    : undefined;
  if (actor.wanted === 0) {
    const isOver = isEnding(context, actor);
    const words = `, but ${scaledToZeroText(actor)}${isOver ? ', and is being deleted itself' : ''}`;
    const wake = isOver ? [installRemedy(held, actorText(actor))] : scaleUpRemedies(context, actor);
    const more = { waitsForNamespace, evidence: scaledText(actor) };
    return [
      findingAbout({ common, duty }, 'owner-scaled-to-zero', words, [...wake, ...removal], more),
    ];
  }
  if (!isAlive(actor) || actor.ready === 0) {
    return notReady({ ...given, duty, common: { ...common, waitsForNamespace } });
  }
  // A guard that the owner itself runs keeps others from changing its objects.
  const others = obstacles.filter(
    ({ code, servedBy }) => code !== 'admission-denied' || servedBy !== actorText(actor),
  );
  return runningOwner({ ...given, duty, common, obstacles: others });
}

function scaledText({ scaledBy }: Actor): string[] {
  if (scaledBy === undefined) return [];
  const { manager, time } = scaledBy;
  return [
    `field manager "${manager}" set its replicas${time === undefined ? '' : ` at ${time}`} (managedFields)`,
  ];
}

function scaledToZeroText({ kind, nodeSelector }: Actor): string {
  switch (kind) {
    case 'DaemonSet': {
      const labels = Object.entries(nodeSelector).map(([key, value]) => `${key}=${value}`);
      return labels.length === 0
        ? 'no node takes its pods'
        : `no node has the labels of its nodeSelector (${labels.join(', ')})`;
    }
    case 'CronJob':
    case 'Job':
      return 'is suspended';
    default:
      return 'is scaled to zero';
  }
}

/** Explains why none of its pods is ready, and what that waits for in turn. */
function notReady(ownerCase: OwnerCase): RuleResult[] {
  const { actor, context, held, removal } = ownerCase;
  const who = actorText(actor);
  const hasPods = actor.pods.length > 0;
  const { failure, troubles } = podTroubles(context, actor);
  // A rollout that was paused before it began has created no pods (deployment_controller.go, sync).
  const refused = failure && POD_SECURITY.exec(failure.message)?.[0];
  const halted = actor.conditions.find(({ reason }) => reason === 'DeploymentPaused');
  const said = failure?.message ?? troubles[0] ?? halted?.message;
  const why = said && shortQuote(said);
  const state = (): string => {
    if (isEnding(context, actor)) return 'is being deleted itself';
    if (failure !== undefined && !hasPods) return 'no pod of it can be created';
    if (actor.wanted === 1) return 'its one replica is not ready';
    return `none of its ${actor.wanted} replicas is ready`;
  };
  const cure = (): Omit<Remedy, 'role'> => {
    const then = 'it then removes the finalizer';
    if (isEnding(context, actor)) return installRemedy(held, who);
    if (refused !== undefined) {
      const text = `Give the pods of ${who} what the Pod Security Standards require that label ${ENFORCE} of Namespace ${actor.namespace} names; ${then}`;
      return { text };
    }
    if (failure !== undefined) {
      // The pauses of a ReplicaSet double up to 1,000 s (client-go, DefaultTypedControllerRateLimiter).
      return {
        text: `Fix what refuses the pods of ${who}; ${then}. Kubernetes waits up to 17 minutes between attempts to create pods; "kubectl rollout restart" tries at once`,
      };
    }
    if (halted !== undefined && !hasPods) {
      const command = kubectl('rollout', 'resume', ...objectArgs(actor));
      return { text: `Resume the rollout of ${who}; ${then}`, command };
    }
    const pods = actor.kind === 'Pod' ? who : `the pods of ${who}`;
    return { text: `Fix what keeps ${pods} from starting; ${then}` };
  };
  const causes = classifyErrorText(failure?.message ?? '')
    .filter(isAdmissionError)
    .map((error) => admissionResult(context, error, `CREATE of pods of ${who}`));
  const words = `, but ${state()}${why === undefined ? '' : `: ${why}`}`;
  const remedies = [
    withRole('now', cure()),
    ...(refused === undefined ? [] : [relaxRemedy(context, actor)]),
    lookRemedy(`See the state of ${who}`, kubectl('describe', ...objectArgs(actor))),
    ...(hasPods ? [logRemedy(context, actor)] : []),
    ...removal,
  ];
  const evidence = failure && `its pods are refused (${failure.reason}): ${failure.message}`;
  const sleeping = findingAbout(ownerCase, 'owner-not-ready', words, remedies, {
    quote: why,
    evidence: [...(evidence ? [evidence] : []), ...troubles.slice(0, 5)],
    waitsFor: linksTo(causes, 'it refuses the pods of the controller'),
  });
  return [sleeping, ...causes];
}

const ENFORCE = 'pod-security.kubernetes.io/enforce';
/** The text of a refusal by Pod Security (k8s.io/pod-security-admission admission/admission.go). */
const POD_SECURITY = /violates PodSecurity/;

/** Returns the remedy to relax Pod Security. The label overrides the default of the admission plugin. */
function relaxRemedy(context: Context, actor: Actor): Remedy {
  const label = kubectl(
    'label',
    'namespace',
    actor.namespace,
    `${ENFORCE}=privileged`,
    '--overwrite',
  );
  const restart = restartRemedies(context, actor).flatMap(({ command }) => command ?? []);
  return withRole('or', {
    text: `Let every pod start in Namespace ${actor.namespace}: set its label ${ENFORCE} to privileged`,
    command: [label, ...restart].join(' && '),
    risk: 'no Pod Security Standard is enforced in that namespace until the label is set back',
  });
}

/** Returns refusals of its pods, and the problems of existing pods, the most specific first. */
function podTroubles(
  { now }: Context,
  { kind, namespace, name, conditions, pods }: Actor,
): { failure: { reason: string; message: string } | undefined; troubles: string[] } {
  const events = itemsIn(now.places[namespace]?.events)
    .filter(({ type }) => type === 'Warning')
    .toSorted((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1));
  // Only ReplicaSets report refused pods in a condition; all others do in Events (kubernetes pkg/controller).
  const failure =
    conditions.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True') ??
    events.find(
      ({ reason, regarding }) =>
        pods.length === 0 &&
        reason === 'FailedCreate' &&
        regarding.kind === kind &&
        regarding.name === name,
    );
  const said = pods.flatMap((pod) =>
    [
      ...(isNodeLost(now, pod) ? [`its node ${pod.nodeName} is not ready`] : []),
      ...pod.troubles,
      ...events.flatMap(({ regarding, reason, message }) =>
        regarding.uid === pod.uid ? `${reason}: ${message}` : [],
      ),
    ].map((text) => ({
      text: `Pod ${pod.name}: ${text}`,
      // Past problems, and texts without a reason, come last.
      isLate: pod.phase === 'Failed' || text.startsWith('not ready'),
    })),
  );
  const troubles = said.toSorted((a, b) => Number(a.isLate) - Number(b.isLate));
  return { failure, troubles: troubles.map(({ text }) => text) };
}

/**
 * Returns refusals, without vague status texts about a wait that has a finding of its own: `Waiting for
 * AcmeCluster to be deleted`.
 */
function refusalsWithoutWaits(context: Context, held: Held, owner: Actor): Refusal[] {
  const refusals = refusalsFor(context, held, owner).filter(
    ({ error: { kind, text } }) =>
      kind !== 'other' || linksNamedIn(context, held, text).length === 0,
  );
  const awaited = [...partnersOf(context, held), ...childrenOf(context, held)];
  if (refusals.length === 0 || awaited.length === 0) return refusals;
  const said = held.objects.flatMap((object) => textsAbout(context, object));
  const waits = said
    .flatMap((text) => text.split('\n'))
    .filter((line) => /\bwait(?:s|ing)?\b/i.test(line))
    .some((line) =>
      awaited.some(({ object }) =>
        new RegExp(`\\b${escapeForRegExp(object.kind)}s?\\b`, 'i').test(line),
      ),
    );
  const isVague = ({ error: { kind, text } }: Refusal): boolean =>
    kind === 'other' && said.some((words) => words.includes(text));
  return waits ? refusals.filter((refusal) => !isVague(refusal)) : refusals;
}

/** Explains why a running owner has not removed the finalizer: paused, not the leader, refused, or slow. */
function runningOwner(ownerCase: OwnerCase): RuleResult[] {
  const { actor, candidate, context, held, obstacles, removal } = ownerCase;
  const refusals = refusalsWithoutWaits(context, held, actor);
  const paused = pausedBy(context, held);
  // An owner whose requests are refused is not paused.
  if (paused !== undefined && refusals.length === 0) {
    const { object, by } = paused;
    const what = `${object.kind} ${object.name}`;
    // For Jobs and similar types it suspends the described work, not the controller that deletes them.
    const isUnclear = by.startsWith('spec.suspend');
    const words = ` and runs, but ${isUnclear ? 'may be' : 'is'} configured to ignore ${what}: ${by}`;
    const resume = resumeRemedy(servedType(context, object) ?? held.type, object, by);
    const evidence = [`${what}: ${by}`];
    const certainty = isUnclear ? 'likely' : ownerCase.common.certainty;
    const remedies = [resume, logRemedy(context, actor)];
    return [findingAbout(ownerCase, 'owner-not-acting', words, remedies, { evidence, certainty })];
  }
  const lost = lostDefinition(context, held);
  const isStopped = lost?.since === undefined || !hasReactedToDeletion(context, held, actor);
  if (lost !== undefined && isStopped && refusals.length === 0) {
    const what = `${lost.type.kind} ${lost.name}`;
    const [serves, fate] =
      lost.since === undefined
        ? ['no longer serves', 'no longer exists']
        : ['may no longer serve', `has been terminating since ${lost.since}`];
    const words = ` and runs, but ${serves} ${held.type.kind}: ${what}, which defines it, ${fate}`;
    const restore = withRole('now', {
      text: `Create ${what} again, as it was: ${actorText(actor)} then serves ${held.type.kind} and removes the finalizer`,
    });
    const remedies = [...(lost.since === undefined ? [restore] : []), ...removal];
    const more = {
      evidence: [
        `${lost.field} names ${what}, which ${lost.since === undefined ? 'does not exist' : fate}`,
      ],
      certainty: lost.since === undefined ? ownerCase.common.certainty : ('likely' as const),
    };
    remedies.push(logRemedy(context, actor));
    return [findingAbout(ownerCase, 'owner-not-acting', words, remedies, more)];
  }
  const synced = waitingSync(context, held, [actor.namespace]);
  if (synced !== undefined) {
    const { sync, hook, text } = synced;
    const what = `Application ${sync.namespace}/${sync.name}`;
    const words = ` and runs, but waits until ${hook.kind} ${hook.name} completes, which the running sync of ${what} started; it cannot complete while it is being deleted`;
    return [
      findingAbout(
        ownerCase,
        'owner-not-acting',
        words,
        [endSyncRemedy(sync), ...removal, logRemedy(context, actor)],
        {
          quote: shortQuote(text),
          evidence: [`status of ${what}: ${text}`],
        },
      ),
    ];
  }
  const isOver = isEnding(context, actor);
  const lease = isOver ? undefined : lostLease(context, actor);
  // A controller that does not lead sends no requests: its refusals are in the past.
  if (lease !== undefined) return [notLeadingOwner(ownerCase, lease)];
  const reasons = refusals
    .filter(({ source }) => !source.startsWith('log of '))
    .map(({ error, source }) => `${source}: ${error.text}`);
  const { change, watch, impersonates } = candidate.rights;
  const lacksRight = change === undefined && !impersonates && isRbacRead(context);
  // A refusal that does not end by waiting decides over the others.
  const first =
    refusals.find(
      (refusal) => deletedWithNamespaceText(context, held, candidate, refusal) !== undefined,
    ) ?? refusals[0];
  if (first !== undefined || obstacles.length > 0 || lacksRight) {
    const admission = refusals.flatMap(({ error }) =>
      isAdmissionError(error)
        ? [admissionResult(context, error, `UPDATE of ${typeName(held.type)}`)]
        : [],
    );
    const causes = [
      ...new Map([...admission, ...obstacles].map((cause) => [resultId(cause), cause])).values(),
    ];
    const circle = deletedWithNamespaceText(context, held, candidate, first);
    // A permission can be granted from outside; an object of this namespace cannot be created again.
    const isHopeless = circle !== undefined && first?.error.kind !== 'forbidden';
    const type = typeName(held.type);
    const lack =
      watch === undefined
        ? `RBAC lets it neither watch nor change ${type}`
        : `RBAC lets it watch ${type}, but neither update nor patch them`;
    // Other refusals follow; a guard that denies the gate may accept the owner.
    const why = first === undefined ? lacksRight && lack : shortQuote(first.error.text);
    const isDenied = obstacles.every(
      ({ code, evidence: [said = ''] }) =>
        code === 'admission-denied' && !said.startsWith(EVALUATED_PREFIX),
    );
    const words = why ? `: ${why}` : isDenied ? ', at least to this gate' : '';
    const refused = isHopeless
      ? ` and runs, but cannot succeed however long it tries, because ${circle}${words}`
      : ` and runs, but ${refusalText(first)}${words}`;
    const cures = isHopeless
      ? [
          ...removalAsFirstStep(removal),
          ...orderRemedies(context, held, 'the objects that their controller needs'),
        ]
      : cureRemedies(ownerCase, first, lacksRight, circle !== undefined);
    const remedies = [...cures, logRemedy(context, actor)];
    const failing = findingAbout(ownerCase, 'owner-failing', refused, remedies, {
      quote: first && shortQuote(first.error.text),
      evidence: [...reasons.slice(0, 10), ...(lacksRight ? [lack] : [])],
      waitsFor: linksTo(causes, REFUSED),
      waitsForNamespace: circle,
    });
    return [failing, ...causes];
  }
  const local = candidate.rights.isLocal && isForeseen(context, held);
  if (local) {
    const [because] = candidate.rights.because;
    const words = ` and runs, but may do so only by ${because}, which is deleted with this namespace`;
    const waitsForNamespace =
      'the binding that gives it permissions here is deleted with this namespace';
    const remedies = orderRemedies(context, held, "their controller's permissions");
    return [findingAbout(ownerCase, 'owner-failing', words, remedies, { waitsForNamespace })];
  }
  if (isOver) {
    const remedies = [logRemedy(context, actor), installRemedy(held, actorText(actor))];
    return [
      findingAbout(
        ownerCase,
        'owner-running',
        ' and still runs, but is being deleted itself',
        remedies,
      ),
    ];
  }
  const dead = hasReactedToDeletion(context, held, actor) ? undefined : deadLeader(context, actor);
  if (dead !== undefined) {
    const { lock, pod } = dead;
    const what = `Pod ${pod.namespace}/${pod.name}`;
    const words = ` and runs, but may not lead: ConfigMap ${lock.namespace}/${lock.name} belongs to ${what}, which has ended`;
    const remedies = [
      withRole('now', {
        text: `Delete ${what}, and with it the ConfigMap; another pod of ${actorText(actor)} then leads and removes the finalizer`,
        command: kubectl('delete', 'pod', pod.name, '-n', pod.namespace),
      }),
      ...removal,
      logRemedy(context, actor),
    ];
    return [
      findingAbout(ownerCase, 'owner-not-acting', words, remedies, {
        certainty: 'likely',
        evidence: pod.troubles.slice(0, 3),
      }),
    ];
  }
  const agent = lostAgent(context, held, actor);
  if (agent !== undefined) {
    const { node, pod, object } = agent;
    const what = pod === undefined ? 'has no pod' : `its pod ${pod} is not ready`;
    const words = `, but ${what} on node ${node}, which ${object.kind} ${object.name} names`;
    const text = `Fix what keeps the pod of ${actorText(actor)} on node ${node} from running; it then removes the finalizer. If the node will not return, only a person can remove it`;
    const remedies = [
      withRole('now', { text }),
      lookRemedy(`See the state of ${actorText(actor)}`, kubectl('describe', ...objectArgs(actor))),
      ...removal,
    ];
    return [findingAbout(ownerCase, 'owner-not-ready', words, remedies)];
  }
  if (isBySchedule(actor)) {
    const { name, namespace } = actor;
    const command = kubectl(
      'create',
      'job',
      `${name}-now`,
      `--from=cronjob/${name}`,
      '-n',
      namespace,
    );
    const text = `Start a Job of ${actorText(actor)} while the namespace is being deleted; it then removes the finalizer`;
    const words = ', but acts only when its schedule starts a Job; none runs now';
    return [findingAbout(ownerCase, 'owner-running', words, [withRole('now', { text, command })])];
  }
  if (isForeseen(context, held)) return ownerWithNeeds(ownerCase);
  const [waiting] = statusTexts(context, held, actor);
  const crd = waiting === undefined ? unwatchedDefinition(context, held, actor) : undefined;
  if (crd !== undefined) {
    const words = ` and runs, but may no longer watch ${held.type.kind}: ${crd.name} has been terminating since ${crd.deletionTimestamp}, and nothing shows that it has noticed the deletion of ${held.subject.kind} ${held.subject.name}`;
    const remedies = [
      ...restartRemedies(context, actor, 'Restart the controller, so that it watches again'),
      ...removal,
      logRemedy(context, actor),
    ];
    const evidence = [
      `CustomResourceDefinition ${crd.name}: deletionTimestamp ${crd.deletionTimestamp}`,
    ];
    const more = { certainty: 'likely', evidence } as const;
    return [findingAbout(ownerCase, 'owner-not-acting', words, remedies, more)];
  }
  const gone = goneNeeds(context, held).map(({ what, by }) => `${what} (${by}) no longer exists`);
  const absent = absentObjects(context, held);
  if (waiting === undefined && !waitsForOthers(context, held, actor)) {
    const lack = lackText(context, held, actor, { gone, absent });
    if (lack !== undefined) {
      const restore = absent.map((what) =>
        withRole('now', { text: `Create ${what} again, as it was` }),
      );
      const remedies = [
        ...(gone.length === 0 ? restore : []),
        ...removal,
        logRemedy(context, actor),
      ];
      const evidence = [...gone, ...absent.map((what) => `${what} does not exist`)];
      const more = { certainty: 'likely', evidence } as const;
      return [findingAbout(ownerCase, 'owner-failing', ` and runs, but ${lack}`, remedies, more)];
    }
  }
  const complaint = lastComplaint(context, held, actor);
  const log = isLogRead(context, actor) ? ', also not in its log' : '';
  const said = waiting ?? complaint;
  const quote = said && shortQuote(said.text);
  const who =
    waiting === undefined ? complaint?.who : `${waiting.object.kind} ${waiting.object.name}`;
  const isPart = actor.ready < actor.wanted && !hasLeader(context, actor);
  const part = `${actor.ready} of ${actor.wanted} ready`;
  const runs = isPart
    ? ` and runs, ${part}: the one that handles ${held.subject.kind} ${held.subject.name} may be one that is not`
    : ` and runs${actor.ready < actor.wanted ? `, ${part}` : ''}`;
  const untried = ownerCase.questions[0]?.replace(/: .*/s, '');
  const silent = untried === undefined ? 'so it may be slow or in back-off' : `and ${untried}`;
  const slow =
    quote === undefined
      ? `${runs}; no error was found${log}, ${silent}`
      : `${runs}; it may be slow or in back-off. ${upperFirst(who ?? '')} says: ${quote}`;
  const what = waiting && isWaitText(waiting.text) ? waiting.object : undefined;
  const remedies = [
    logRemedy(context, actor),
    ...(isPart ? replicaRemedies(actor) : []),
    what !== undefined ? resolveRemedy(what) : isPart ? [] : moreTimeRemedy(actor),
    ...restartRemedies(context, actor),
  ].flat();
  const statements = [waiting, complaint].flatMap((one) =>
    one === undefined ? [] : `${one.source}: ${one.text}`,
  );
  const troubles = isPart ? podTroubles(context, actor).troubles.slice(0, 3) : [];
  const evidence = [...statements, ...troubles, ...gone];
  const more = { evidence, quote, ...(isPart && { certainty: 'likely' as const }) };
  return [findingAbout(ownerCase, 'owner-running', slow, remedies, more)];
}

/** Returns the remedies for replicas that are not ready: each may handle objects of its own. */
function replicaRemedies(actor: Actor): Remedy[] {
  const pods = actor.pods.filter(({ ready }) => !ready);
  const who =
    pods.length === 0
      ? `the missing pods of ${actorText(actor)}`
      : `Pod ${listNames(pods.map(({ name }) => name))} of ${actorText(actor)}`;
  const text = `Fix what keeps ${who} from being ready; a pod that handles this object then removes the finalizer`;
  return [
    withRole('now', { text }),
    lookRemedy(`See the state of ${actorText(actor)}`, kubectl('describe', ...objectArgs(actor))),
  ];
}

/** Returns the trouble in the owner's first error. Without an error, RBAC or admission refuses its requests. */
function refusalText(first: Refusal | undefined): string {
  switch (first?.error.kind) {
    case 'not-found':
      return 'something that it needs does not exist';
    case 'other':
    case 'timeout':
    case 'unavailable':
      return 'an error is reported';
    default:
      return 'its requests are refused';
  }
}

/**
 * Returns the CRD of the type, if the CRD was deleted before the objects: some controllers then end their watch, although the API
 * server still serves one. Not if the owner has said something about the objects since.
 */
function unwatchedDefinition(context: Context, held: Held, actor: Actor) {
  const crd = definitionsOf(context).find(({ name }) => name === typeName(held.type));
  const isEarlier = Date.parse(crd?.deletionTimestamp ?? '') <= Date.parse(held.since);
  const isUnaware =
    !hasReactedToDeletion(context, held, actor) && !waitsForOthers(context, held, actor);
  return isEarlier && isUnaware ? crd : undefined;
}

function waitsForOthers(context: Context, held: Held, actor: Actor): boolean {
  return partnerLinks(context, held).length + linksInside(context, held, actor).length > 0;
}

/** Reports whether a program wrote the objects since their deletion, or the owner's log is about them. */
function hasReactedToDeletion(context: Context, held: Held, actor: Actor): boolean {
  return lateWriters(context, held).length > 0 || logLinesAbout(context, held, actor).length > 0;
}

/** Reports whether it is a CronJob without a pod: it acts, and can fail, only while a Job runs. */
function isBySchedule({ kind, pods }: Actor): boolean {
  return kind === 'CronJob' && pods.length === 0;
}

/** Says what a silent owner may need and cannot get. */
function lackText(
  context: Context,
  held: Held,
  actor: Actor,
  { gone, absent }: Record<'gone' | 'absent', readonly string[]>,
): string | undefined {
  if (gone.length > 0) return `may need what was in this namespace: ${listNames(gone)}`;
  if (absent.length > 0) return `may need ${listNames(absent)}, which does not exist`;
  const created = neededCreations(held);
  const isLate = held.since >= (context.now.namespace.deletionTimestamp ?? '');
  if (created.length === 0 || !isLate || hasReactedToDeletion(context, held, actor))
    return undefined;
  return `may have to create ${listNames(created)} here, which a terminating namespace refuses`;
}

/**
 * Finds an owner without the lead. A Lease that is not renewed may be an old one: a candidate takes it within its
 * duration.
 */
function notLeadingOwner(ownerCase: OwnerCase, lease: LeaseFacts): RuleResult {
  const { actor, context } = ownerCase;
  const { namespace, name, holder, renewTime } = lease;
  const what = `Lease ${namespace}/${name}`;
  const log = logRemedy(context, actor);
  if (isHolder(actor, lease)) {
    const words = ` and runs, but its pod holds ${what} and has not renewed it since ${renewTime}`;
    const why = `Restart ${actorText(actor)}, which is the leader and does nothing`;
    return findingAbout(ownerCase, 'owner-running', words, [
      log,
      ...restartRemedies(context, actor, why),
    ]);
  }
  const see = showObjectRemedy(`See which pod holds ${what}`, { kind: 'Lease', namespace, name });
  if (isRenewed(context, lease)) {
    const words = ` and runs, but does not lead: ${what} is held by ${holder}, and was last renewed at ${renewTime}`;
    const text = `Let ${actorText(actor)} become the leader, or end the process that holds the Lease`;
    return findingAbout(ownerCase, 'owner-running', words, [log, see, withRole('now', { text })]);
  }
  const words = ` and runs, but may have no leader: ${what} was last renewed at ${renewTime}, by ${holder}`;
  const remedies = [log, see, moreTimeRemedy(actor), ...restartRemedies(context, actor)];
  return findingAbout(ownerCase, 'owner-running', words, remedies);
}

/** Returns the remedy for a controller that waits for another object: more time does not help. */
function resolveRemedy(object: Pick<Subject, 'kind' | 'name'>): Remedy {
  const what = `${object.kind} ${object.name}`;
  return withRole('now', {
    text: `Resolve what ${what} waits for; its status says what that is`,
  });
}

function moreTimeRemedy(actor: Actor): Remedy {
  return withRole('now', { text: `Give ${actorText(actor)} more time: raise the timeout` });
}

/** Reports whether a claim was deleted while pods use it that are deleted with the namespace and then release it. */
function isUsedByDeletedPods(
  { now: { forecast, namespace, takenAt } }: Context,
  held: Held,
): boolean {
  return (
    forecast !== undefined &&
    namespace.deletionTimestamp === takenAt &&
    held.objects.every(
      ({ kind, name }) =>
        kind === 'PersistentVolumeClaim' &&
        itemsIn(forecast.present.pods).some(({ claims }) => claims.includes(name)),
    )
  );
}

/**
 * Reports whether a cloud controller wrote the status. Those of a managed control plane run outside of the cluster
 * (KEP-2392) and are visible only by their writes: they are expected to handle such objects.
 */
export function isOfTheCloud(held: Held): boolean {
  const known = knownFinalizer(held);
  return (
    known !== undefined &&
    (isProviderManaged(known) ||
      known.workload.some(({ name }) => name === 'cloud-controller-manager')) &&
    held.objects.length > 0 &&
    held.objects.every(({ statusWriters }) =>
      statusWriters.some(({ manager }) => identifiesProgram(manager)),
    )
  );
}

/**
 * Finds what a running owner needs and will lack. Only the owner knows whether it can work without what a deletion
 * of the namespace takes away, unless the catalogue or an earlier deletion says so.
 */
function ownerWithNeeds(ownerCase: OwnerCase): RuleResult[] {
  const { actor, common, context, held } = ownerCase;
  const all = [
    ...needsOfOwner(context, held, actor),
    ...[
      ...ownerCase.questions,
      ...namespacesBehind(context, held).map(({ because }) => because),
    ].map((text): Need => ({ kind: 'state', text, certainty: 'unknown' })),
  ];
  const isLikely = all[0]?.certainty === 'likely' && common.certainty !== 'unknown';
  const needs = all.filter(({ certainty }) => !isLikely || certainty === 'likely');
  if (needs.length === 0) return [];
  const among = (kind: Need['kind']): string[] =>
    needs.flatMap((need) => (need.kind === kind ? [need.text] : []));
  const [objects, created, states] = [among('object'), among('create'), among('state')];
  const clauses = [
    ...(objects.length === 0
      ? []
      : [
          `it ${isLikely ? 'needs' : 'may need'} ${listNames(objects)}, which ${objects.length === 1 ? 'is' : 'are'} deleted with this namespace`,
        ]),
    ...(created.length === 0
      ? []
      : [
          `it ${isLikely ? 'has to' : 'may have to'} create ${listNames(created)} here, which a terminating namespace refuses`,
        ]),
    ...states.slice(0, 3),
  ];
  const names = listNames([...objects, ...created]);
  const remedies = names === '' ? [logRemedy(context, actor)] : orderRemedies(context, held, names);
  return [
    findingAbout(ownerCase, 'owner-failing', ` and runs; ${clauses.join('; ')}`, remedies, {
      certainty: isLikely ? 'likely' : 'unknown',
      evidence: all.map(({ text }) => text),
      waitsForNamespace:
        names === '' ? undefined : `${names}: not available while this namespace terminates`,
    }),
  ];
}

/**
 * Finds what the owner needs and was deleted with this namespace: a Secret that the object names, the
 * RoleBinding that let it act here. Nothing can be created in a terminating namespace, so it is a circle.
 */
function deletedWithNamespaceText(
  context: Context,
  held: Held,
  { account }: Suspect,
  refusal: Refusal | undefined,
): string | undefined {
  if (refusal === undefined) return undefined;
  const { error, object } = refusal;
  const { namespace } = context.now;
  if (error.kind === 'namespace-terminating') {
    if (error.namespace !== namespace.name) return undefined;
    return `it must create ${error.resource ?? 'an object'} here, and a terminating namespace accepts no new objects`;
  }
  if (error.kind === 'not-found') {
    // The API server names no namespace; a controller that passes the text on mostly names that of its object.
    const detail = detailOf(context, object);
    const isElsewhere = detail?.references.some(
      (one) =>
        one.name === error.name && one.namespace !== undefined && !isInside(context, one.namespace),
    );
    // Operators name what they make after the object that it is for: `rabbit-default-user` of RabbitmqCluster rabbit.
    const isMeant =
      error.text.includes(`${namespace.name}/${error.name}`) ||
      (isElsewhere !== true &&
        (detail?.mentions.includes(error.name) === true ||
          namedInNamespace(context, held).some(({ name }) =>
            `${error.name}-`.startsWith(`${name}-`),
          )));
    return isMeant
      ? `${kindOfResource(context, error)} ${error.name} was in this namespace and was deleted with it`
      : undefined;
  }
  if (error.kind === 'other' && ABSENT.test(error.text)) {
    const gone = namedInNamespace(context, held).find(({ name }) => hasWord(error.text, name));
    const what =
      gone === undefined
        ? absentName(error.text, namespace.name, held)
        : `${gone.type.kind} ${gone.name} (${gone.by})`;
    return what && `${what} was in this namespace and was deleted with it`;
  }
  if (error.kind === 'forbidden' && account !== undefined) {
    const binding = departedGrant(context, account);
    if (binding === undefined) return undefined;
    return `RoleBinding ${binding}, which gave it permissions here, was deleted with this namespace`;
  }
  return undefined;
}

const ABSENT =
  /not found|notfound|not exist|missing|no such|(?:cannot|can't|could not|couldn't|unable to) (?:be )?(?:find|found|get|read)/i;

/** Returns the object that the text calls missing with its namespace: `credential "team-1/login" was not found`. */
function absentName(text: string, namespace: string, { objects }: Held): string | undefined {
  const object = `(?<![\\w./-])${escapeForRegExp(namespace)}/([a-z0-9][a-z0-9.-]*[a-z0-9])`;
  const isAbsent =
    '["\'`)]* (?:(?:was|is|does|could|has) )?(?:been )?(?:not (?:be )?(?:found|exist)|missing)';
  const name = new RegExp(`${object}${isAbsent}`, 'i').exec(text)?.[1];
  return name && objects.every((one) => one.name !== name) ? `${namespace}/${name}` : undefined;
}

const ELSEWHERE =
  'a controller outside of the cluster (hosted control plane, parent cluster, k3s, a cloud) would not be visible';

const OUTSIDE = 'a controller outside of the cluster would not be visible';

/**
 * Returns the finding that no controller was found: about the deleted workload, else the CRD, else the object
 * itself.
 */
function missingOwner(
  context: Context,
  held: Held,
  { owner, suspects, excluded, others, certainty, wasDeletedWithNamespace }: Ownership,
  removal: Remedy[],
): RuleResult {
  const { finalizer } = held;
  const known = knownFinalizer(held);
  const gone = owner?.actor;
  const place = gone?.namespace ?? owner?.account?.namespace;
  const inside = isInside(context, place);
  const isForecast = willBeDeleted(context, gone?.namespace);
  const definition = itemsIn(context.now.cluster.definitions).find(
    ({ name }) => name === typeName(held.type),
  );
  const home = itemsIn(context.now.cluster.namespaces).find(({ name }) => name === place);
  const fate = inside
    ? 'which was deleted with this namespace'
    : home?.deletionTimestamp &&
      `whose namespace has been terminating since ${home.deletionTimestamp}`;
  const ran =
    owner?.account === undefined || fate === undefined
      ? ''
      : `: its controller may have run as ${accountText(owner.account)}, ${fate}`;
  const message = (): string => {
    if (gone !== undefined) {
      const end = inside || isForecast ? fateText(context, place) : 'was deleted';
      const [duty, beyond] =
        certainty === 'proven'
          ? ['', '']
          : [' it most likely owned the finalizer, and', `; ${OUTSIDE}`];
      return `${end};${duty} ${otherSuspectsText(suspects, others)} remove ${finalizer}${beyond}`;
    }
    const whose = known === undefined ? '' : ` (the finalizer belongs to ${known.owner})`;
    return `has no controller that was found in this cluster${whose}${ran}; ${OUTSIDE}`;
  };
  return {
    code: 'owner-missing',
    subject: subjectForMissing(held, gone, definition?.name),
    finalizer,
    // A deleted workload is the subject itself.
    cause:
      gone !== undefined
        ? undefined
        : ((inside ? owner?.account?.name : owner?.account && accountText(owner.account)) ??
          known?.owner ??
          (specificFieldManager(held) || undefined)),
    message: message(),
    continuation:
      known === undefined
        ? `no controller that would remove it was found in this cluster${ran}`
        : `it belongs to ${known.owner}, which was not found in this cluster${ran}`,
    evidence: [
      ...(owner === undefined ? [] : evidenceFor(owner)),
      ...writerText(context, held),
      ...purposeOf(held),
      ...(isForecast ? [] : [`searched: ${SEARCHED}; ${ELSEWHERE}`]),
      ...staleLeases(context, held),
      ...excludedTexts(excluded),
      ...others,
    ],
    scope: inside ? 'namespace' : 'cluster',
    certainty,
    wasDeletedWithNamespace: wasDeletedWithNamespace || undefined,
    remedies: [
      ...((inside || isForecast) && held.objects.length > 0
        ? orderRemedies(context, held, gone === undefined ? 'their controller' : actorText(gone))
        : []),
      ...(isForecast
        ? []
        : [
            installRemedy(
              held,
              productText(held, gone, definition !== undefined),
              fate !== undefined,
              known && isProviderManaged(known),
            ),
            ...knownRemedies(held, true),
            ...removal,
          ]),
    ],
    waitsForNamespace: inside
      ? gone === undefined
        ? 'its controller was in this namespace, where nothing can be created before the namespace is deleted'
        : `it ${fateText(context)}`
      : undefined,
  };
}

function otherSuspectsText(suspects: readonly Suspect[], others: readonly string[]): string {
  return suspects.length + others.length > 0
    ? 'others may'
    : 'no other controller was found in this cluster that would';
}

const SEARCHED =
  'workloads of every kind, pods of accounts with permission on the type, RBAC, Leases, webhooks and CRDs';

function subjectForMissing(held: Held, gone: Actor | undefined, definition?: string): Subject {
  if (gone !== undefined) return subjectOf(gone);
  return definition === undefined ? held.subject : definitionSubject(definition);
}

function productText(held: Held, gone: Actor | undefined, isDefined: boolean): string {
  const known = knownFinalizer(held);
  const name = known && productName(known);
  if (name !== undefined) return name;
  if (gone !== undefined) return actorText(gone);
  if (isDefined) return `the controller of ${held.subject.kind}`;
  const manager = specificFieldManager(held);
  return manager === '' ? `the controller of ${held.finalizer}` : `"${manager}"`;
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

const MAX_SUSPECTS = 5;

/** Returns the finding that several controllers could be the owner, or that none is likely enough. */
function unknownOwner(
  context: Context,
  held: Held,
  ownership: Ownership,
  removal: Remedy[],
): RuleResult {
  const { finalizer, subject } = held;
  const { suspects, excluded, others } = ownership;
  const known = knownFinalizer(held);
  const lines = suspects
    .slice(0, MAX_SUSPECTS)
    .flatMap(({ actor }) => (actor ? logLinesAbout(context, held, actor) : []));
  const absent = suspects.length === 0 && known === undefined && absentWriter(context, held);
  const why = whyUnknown(context, held, ownership);
  const what = `${subject.kind} ${subject.name}`;
  const isOne = (held.objects[0]?.finalizers.length ?? 1) === 1;
  const inquiry =
    suspects.length > 0
      ? `Find out which controller removes ${finalizer}: the log of a suspect may name ${what}`
      : `Ask the author of ${what} what its ${isOne ? 'finalizer is' : 'finalizers are'} for`;
  return {
    code: 'owner-unknown',
    subject,
    finalizer,
    cause: suspects.length > 0 ? undefined : (known?.owner ?? (absent || undefined)),
    message: `has finalizer ${finalizer}, and ${why}`,
    continuation: why,
    evidence: [
      ...writerText(context, held),
      ...suspects
        .slice(0, MAX_SUSPECTS)
        .map((one) => `suspect ${suspectText(one)}: ${evidenceFor(one).join('; ')}`),
      ...(ownership.doubt === undefined ? [] : [ownership.doubt]),
      ...excludedTexts(excluded),
      ...logEvidence(context, lines),
      ...others,
      ...(known === undefined
        ? ['not a well-known finalizer']
        : [`well-known finalizer of ${known.owner}`, ...purposeOf(held)]),
      ...statusTexts(context, held).map(({ source, text }) => `${source}: ${text}`),
      ...attachments(context, held),
    ],
    scope: 'namespace',
    certainty: 'unknown',
    ...(lines.length > 0 && { ownerLog: quotedLines(lines) }),
    remedies: [
      ...(known === undefined
        ? [
            withRole('now', {
              text: absent ? `Restart the program that ran as "${absent}"` : inquiry,
            }),
          ]
        : knownRemedies(held)),
      ...removal,
    ],
  };
}

/** Returns the exclusions of workloads to which a clue other than a permission points. */
function excludedTexts(excluded: readonly Excluded[]): string[] {
  return excluded
    .slice(0, MAX_SUSPECTS)
    .map(
      ({ suspect, by }) =>
        `ruled out ${suspectText(suspect)}: ${by.reason}. What points to it: ${suspect.clues[0]?.text}`,
    );
}

const OPEN = 'its owner is not known';

function whyUnknown(
  context: Context,
  held: Held,
  { owner, suspects, excluded, unread, others }: Ownership,
): string {
  if (unread.length > 0) return `${OPEN}: ${unreadText(unread)}`;
  const known = knownFinalizer(held);
  const whose = known === undefined ? '' : `it belongs to ${known.owner}; `;
  const [lost] = excluded.filter(({ suspect }) => workloadExists(suspect));
  const lostText = lost && `clues point to ${suspectText(lost.suspect)}, but ${lost.by.reason}`;
  if (suspects.length > 0) {
    const names = listNames(suspects.map(suspectText), MAX_SUSPECTS);
    const first =
      lost && hasObjectClue(lost.suspect) && !suspects.some(hasObjectClue) ? `${lostText}; ` : '';
    return suspects.length > 1
      ? `${whose}${first}several controllers could remove it: ${names}`
      : `${whose}${first}${names} could remove it; the evidence does not show whether it should`;
  }
  const departed = owner === undefined ? '' : departedText(owner);
  if (departed !== '') return `${whose}${departed}; whether another controller does is not known`;
  if (lostText !== undefined) return `${whose}${lostText}; ${OPEN}`;
  const outside = others.find((text) => text.startsWith(RUNS_OUTSIDE_TEXT));
  if (known !== undefined) {
    return `${whose}${outside ?? 'nothing that was read shows where this controller runs'}`;
  }
  const absent = absentWriter(context, held);
  if (absent !== undefined) {
    return `field manager "${absent}" has set it, and no workload in the cluster has this name; ${OPEN}`;
  }
  if (isSetByHand(held)) return `a person has set it, with "${writerOf(held)?.manager}"; ${OPEN}`;
  return others.length === 0
    ? 'nothing in the cluster shows which controller should remove it'
    : `no clue points to its owner; ${outside ?? 'the evidence lists the controllers that may act'}`;
}

function departedText({ actor, account }: Suspect): string {
  if (actor !== undefined) return `${actorText(actor)}, which may remove it, was deleted`;
  return account === undefined
    ? ''
    : `nothing runs as ${accountText(account)}, which may remove it`;
}

/** Returns the finalizer's field manager if it identifies a program, and all was read and no workload has its name. */
function absentWriter(context: Context, held: Held): string | undefined {
  const name = specificFieldManager(held);
  const isPresent = actorsOf(context).some((actor) => !actor.isGone && hasProgramName(actor, name));
  return name === '' || isPresent || unreadSources(context).length > 0 ? undefined : name;
}

/** Returns the attachments of a claim's volume, for which the claim may wait. */
function attachments(context: Context, held: Held): string[] {
  const named = held.objects.flatMap((object) => detailOf(context, object)?.references ?? []);
  return itemsIn(context.now.cluster.volumeAttachments)
    .filter(({ volume }) =>
      named.some(({ kind, name }) => kind === 'PersistentVolume' && name === volume),
    )
    .map(
      ({ name, attacher, node, attached, error }) =>
        `VolumeAttachment ${name}: attacher ${attacher}, node ${node}, attached=${attached}${error === undefined ? '' : `, ${error}`}`,
    );
}

/**
 * Finds what refuses the update that removes the finalizer: proven by a dry run, or certain because a webhook
 * matches, fails closed and nothing is behind its Service. A dry run that is accepted clears admission.
 */
function judgeRemoval(context: Context, held: Held, account?: Account): Judgement {
  const isOurs = !isAggregated(context, held.type);
  const all = (isOurs ? held.objects : []).map((object) =>
    judgeObject(context, held, object, account),
  );
  const results = all.flatMap((one) => one.results);
  return {
    results: [...new Map(results.map((result) => [resultId(result), result])).values()],
    questions: [...new Set(all.flatMap(({ questions }) => questions))],
    toGate: all.flatMap(({ toGate }) => toGate),
  };
}

function judgeObject(
  context: Context,
  { finalizer, type }: Held,
  object: ObjectFacts,
  account: Account | undefined,
): Judgement {
  const trial = context.now.trials[trialKey(object.uid, finalizer)];
  const none = { results: [], questions: [], toGate: [] };
  // A webhook that answers now may be deleted with the namespace.
  if (trial?.answer === 'accepted' && context.now.forecast === undefined) return none;
  const request = `UPDATE of ${typeName(type)}`;
  const asked = guardsAsked(context, 'UPDATE', type, object) ?? [];
  const mutating = asked.filter(({ isMutating }) => isMutating);
  const errors = trial?.answer === 'refused' ? classifyErrorText(trial.message) : [];
  const does =
    trial?.answer === 'undone'
      ? `puts ${finalizer} back on the object`
      : // The trial adds no finalizer, so a mutating webhook or policy does.
        errors.some(({ kind }) => kind === 'new-finalizers-refused') &&
        'adds a finalizer to the object, which the API server refuses';
  if (does) return { ...none, results: onlyGuardResults(context, mutating, request, does) };
  const [real] = realRequests(context, 'UPDATE', type, object);
  const requester = account && requesterOf(account);
  const who = account === undefined ? 'its owner' : accountText(account);
  return judgeAdmission(context, { ...real, requester }, who, trial);
}

/** Describes how admission decides about the removal, if no guard can be named for it. */
function admissionOf(context: Context, held: Held): string[] {
  const [object] = held.objects;
  if (object === undefined) return [];
  const trial = context.now.trials[trialKey(object.uid, held.finalizer)];
  const asked = guardsAsked(context, 'UPDATE', held.type, object) ?? [];
  return [
    ...(trial?.answer === 'undone'
      ? ['in a dry run the finalizer came back at once: admission adds it again']
      : []),
    ...(trial?.answer === 'unknown' && asked.length > 0
      ? [
          `whether ${listNames(asked.map(({ text }) => text))} allows its removal could not be tried: ${shortQuote(trial.message)}`,
        ]
      : []),
    ...asked
      .filter((one) => one.dependsOnUser)
      .map(
        ({ text }) =>
          `admission asks ${text}, and the answer depends on the account that removes it`,
      ),
  ];
}

/** Judges kube-controller-manager as any other owner: by its Lease and its writes. */
function controllerManagerResults(context: Context, held: Held): OwnerResults {
  const manager = controllerManager(context);
  const name = knownFinalizer(held)?.owner ?? 'kube-controller-manager';
  const { links, names: users } = usersOf(context, held);
  const children = [
    ...links,
    ...(childrenOf(context, held).length > 0 ? partnerLinks(context, held) : []),
  ];
  if (manager.state === 'stale') {
    const result = inactiveControllerManager(context, manager);
    return {
      ...NO_OWNER_EXPECTED,
      waitsFor: linksTo([result], BECAUSE),
      results: [result],
      // A workload with another replica still exists: that replica takes over and then removes its finalizers.
    };
  }
  const { results: obstacles } = judgeRemoval(context, held);
  const refusals = refusalsFor(context, held);
  const common = {
    subject: {
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: 'kube-system',
      name: 'kube-controller-manager',
    },
    finalizer: held.finalizer,
    scope: 'cluster' as const,
    certainty: manager.state === 'fresh' ? ('proven' as const) : ('likely' as const),
    evidence: [`${held.finalizer} is removed by the ${name}`, manager.evidence],
  };
  const [first] = refusals;
  const isUpcoming = isForeseen(context, held) || isUsedByDeletedPods(context, held);
  if (isUpcoming && obstacles.length + users.length === 0) return EXPECTED;
  const result: RuleResult =
    obstacles.length > 0 || first !== undefined
      ? {
          ...common,
          code: 'owner-failing',
          message: `should remove ${held.finalizer}, but its requests are refused${first === undefined ? '' : `: ${shortQuote(first.error.text)}`}`,
          quote: first && shortQuote(first.error.text),
          remedies: [],
          waitsFor: linksTo(obstacles, REFUSED),
        }
      : {
          ...common,
          // Whoever uses it may end that when the deletion begins.
          ...(isUpcoming ? { certainty: 'unknown' } : {}),
          code: 'owner-running',
          message: `should remove ${held.finalizer}, and ${manager.state === 'fresh' ? 'runs' : 'seems to run'}; ${users.length === 0 ? 'it may be slow' : `it waits as long as ${listNames(users, 3)}`}`,
          remedies: [
            withRole('now', {
              text:
                users.length === 0
                  ? 'Give the deletion more time: raise the timeout'
                  : `End what uses ${held.subject.kind} ${held.subject.name}: ${listNames(users, 3)}`,
            }),
          ],
        };
  const isWaiting = result.code === 'owner-running' && children.length > 0;
  return {
    ...NO_OWNER_EXPECTED,
    waitsFor: isWaiting ? children : linksTo([result], BECAUSE),
    results: isWaiting ? [] : [result, ...obstacles],
  };
}
