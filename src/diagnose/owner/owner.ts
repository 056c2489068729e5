import { listNames, shortQuote } from '../../base/text.ts';
import { POD_TYPE } from '../../model/facts/metadata.ts';
import type { FindingCode, Remedy } from '../../model/finding.ts';
import { itemsIn } from '../../model/read.ts';
import { type ObjectFacts, trialKey } from '../../model/snapshot.ts';
import { type Actor, actorText } from '../actors.ts';
import { realRequest } from '../admission/guards.ts';
import { type Judgement, judgeAdmission, UNDECIDED } from '../admission/judge.ts';
import { mutatingResults, refusalResult, refusesOtherChange } from '../admission/refusals.ts';
import { withRole } from '../commands.ts';
import { detailOf, isAggregated } from '../content.ts';
import { type Context, isForeseen, willBeDeleted } from '../context.ts';
import { classifyErrorText, isAdmissionError } from '../error-texts.ts';
import { nameOf, type RuleResult, resultId } from '../results.ts';
import type { Account } from '../rights.ts';
import { controllerManager, MANAGER_LEASE, unprocessedNamespace } from '../rules/controller.ts';
import { idsOfObject } from '../rules/pods.ts';
import { idsAwaited, objectsAwaited, unreadPartner } from '../waits.ts';
import { missingOwner, unknownOwner } from './absent.ts';
import { type Suspect, workloadExists } from './clues.ts';
import {
  finalizersOfObject,
  type Held,
  isKnownWorkload,
  isOfControllerManager,
  isProviderManaged,
  knownFinalizer,
  removalRequest,
  statusWriters,
} from './held.ts';
import { identifiesProgram } from './names.ts';
import { attemptRemedies, removalAsFirstStep, removalRemedies } from './remedies.ts';
import { refusalsFor } from './statements.ts';
import { stateResults } from './states.ts';
import { findOwner } from './verdict.ts';

/** The findings about the owner of a finalizer: its state, and what it waits for in turn. */
export interface OwnerResults {
  /** The findings that the held object waits for. */
  waitsFor: string[];
  results: RuleResult[];
  /** The removal of the finalizer, which ends a circle of objects that wait for each other. */
  wayOut?: Remedy[];
  /** No running controller will remove the finalizer: a person may. */
  isRemovable: boolean;
  /** In a forecast: the owner runs, nothing contradicts it, so it is expected to remove the finalizer. */
  isExpected: boolean;
}

const OPEN: OwnerResults = { waitsFor: [], results: [], isRemovable: false, isExpected: false };
const EXPECTED: OwnerResults = { ...OPEN, isExpected: true };

const RUNNING: readonly FindingCode[] = ['owner-running', 'owner-failing', 'owner-not-acting'];

/** Returns the findings about the owner. `siblings`: other finalizers that a person may remove as well; `behind`: UIDs of objects that wait for this one. */
export function ownerResults(
  context: Context,
  held: Held,
  siblings: readonly string[] = [],
  behind: readonly string[] = [],
): OwnerResults {
  if (isOfControllerManager(held)) return controllerManagerResults(context, held);
  const ownership = findOwner(context, held);
  const { verdict, owner, suspects, excluded } = ownership;
  const isAhead = isForeseen(context, held);
  const isInCluster = [owner, ...suspects, ...excluded].some(workloadExists);
  if (!isInCluster && isAhead && isOfTheCloud(held)) return EXPECTED;
  const judgement = judgeRemoval(context, held, owner);
  const obstacles = judgement.results;
  // Before a deletion nobody removes a finalizer whose owner may exist: what it protects would be left behind.
  const mayExist = isAhead && verdict !== 'missing';
  const removal = mayExist ? [] : removalRemedies(context, held, siblings, obstacles[0]?.subject);
  const { actor } = owner ?? {};
  const isThere = verdict === 'found' && !willBeDeleted(context, actor?.namespace);
  const there = isThere ? owner : undefined;
  const common = { ...judgement, context, held, removal };
  const [first, ...causes] =
    verdict === 'unknown'
      ? [unknownOwner(context, held, ownership, removal)]
      : there?.actor
        ? stateResults(ownership, { ...common, candidate: there, actor: there.actor })
        : [missingOwner(context, held, ownership, removal)];
  if (first === undefined) {
    const waitsFor = heldByPartner(context, held, behind);
    return { ...EXPECTED, waitsFor, isExpected: waitsFor.length === 0 };
  }
  const { code } = first;
  // One that is not known may wait as well, unless it was deleted: where the chain goes on, it is no root cause.
  const isRunning = code === 'owner-running';
  const mayWait = isRunning || (code === 'owner-unknown' && owner === undefined);
  const awaited = mayWait ? idsAwaited(context, held, isRunning ? actor : undefined) : [];
  const isTold = !isRunning || awaited.length === 0;
  const cut = unreadPartner(context, held);
  const unread = cut ? [`${nameOf(held.subject)} ${cut}, which was not read in time`] : [];
  const result = {
    ...{ ...first, isCut: cut !== undefined, evidence: [...first.evidence, ...unread] },
    waitsFor: [...(first.waitsFor ?? []), ...awaited],
  };
  // A refusal of an owner that fails is linked below it; any other program meets the refusal when it acts.
  const beside = [
    ...(RUNNING.includes(code) ? [] : obstacles),
    ...(code === 'owner-scaled-to-zero' ? refusedPods(context, actor) : []),
  ];
  const own = isTold ? [result] : [];
  return {
    waitsFor: [...(isTold ? [] : awaited), ...[...own, ...beside].map(resultId)],
    results: [...own, ...(isTold ? causes : []), ...beside],
    wayOut: removal,
    isRemovable: first.remedies.some(({ text }) => removal.some((one) => one.text === text)),
    isExpected: false,
  };
}

/** Finds dead webhooks that refuse the pods of an owner that is scaled to zero. One that it serves itself has to be removed first. */
function refusedPods(context: Context, actor: Actor | undefined): RuleResult[] {
  if (actor === undefined) return [];
  const pod = { namespace: actor.namespace, labels: actor.podLabels };
  const request = realRequest(context, 'CREATE', POD_TYPE, pod);
  return judgeAdmission(context, { request }).results.map((result) => {
    if (result.servedBy !== actorText(actor)) return result;
    const ends = result.remedies.filter(({ role }) => role === 'or').slice(0, 1);
    return { ...result, servedBy: undefined, remedies: removalAsFirstStep(ends) };
  });
}

/** Returns the findings about terminating objects that the finalizer of another owner holds: a running owner may wait for these. */
function heldByPartner(context: Context, held: Held, behind: readonly string[]): string[] {
  const waiting = [...behind, ...held.objects.map(({ uid }) => uid)];
  return objectsAwaited(context, held, ['named', 'owned'])
    .filter(({ uid }) => !waiting.includes(uid))
    .flatMap((object) => finalizersOfObject(context, object))
    .filter((other) => !ownerResults(context, other, [], waiting).isExpected)
    .map(({ subject, finalizer }) => resultId({ code: 'object-finalizer', subject, finalizer }));
}

/** Reports whether a cloud controller wrote the status: that of a managed control plane is visible only by its writes (KEP-2392). */
export function isOfTheCloud(held: Held): boolean {
  return (
    (isProviderManaged(held) || isKnownWorkload(held, 'cloud-controller-manager')) &&
    statusWriters(held).some(({ manager }) => identifiesProgram(manager))
  );
}

/** Returns for what else than the pods that go with the namespace a ResourceClaim is reserved (`status.reservedFor`). */
function usersOf(context: Context, held: Held): string[] {
  const pods = new Set(itemsIn(context.now.forecast?.present.pods).map(({ uid }) => uid));
  return held.objects
    .flatMap((object) => detailOf(context, object)?.references ?? [])
    .filter(({ field, uid = '' }) => field.startsWith('status.') && uid !== '' && !pods.has(uid))
    .map(({ kind, name }) => `${kind} ${name}`);
}

/** Judges kube-controller-manager, which no workload shows: by its Lease, by what refuses its requests, and by what it waits for. */
function controllerManagerResults(context: Context, held: Held): OwnerResults {
  const { finalizer, subject, type } = held;
  const { evidence, state } = controllerManager(context);
  const endAt = (...results: [RuleResult, ...RuleResult[]]): OwnerResults => {
    return { ...OPEN, waitsFor: [resultId(results[0])], results };
  };
  if (state === 'stale') return endAt(unprocessedNamespace(context));
  const isAhead = isForeseen(context, held);
  const { results: obstacles } = judgeRemoval(context, held);
  // Errors from before the deletion are about other work, such as the provisioning of a volume.
  const [refusal] = isAhead ? [] : refusalsFor(context, held);
  const runs = state === 'fresh' ? 'runs' : 'seems to run';
  const quote = refusal && obstacles.length === 0 ? shortQuote(refusal.error.text) : undefined;
  const says = obstacles[0] ? 'the removal is refused' : quote && `its requests fail: ${quote}`;
  const known = {
    subject: { apiVersion: 'v1', kind: 'Pod', ...MANAGER_LEASE },
    finalizer,
    certainty: state === 'fresh' ? ('proven' as const) : ('likely' as const),
    evidence: [`${finalizer} is removed by the ${knownFinalizer(held)?.owner}`, evidence],
  };
  if (says !== undefined) {
    const failing = { ...known, code: 'owner-failing' as const, quote, remedies: [] };
    const message = `${runs}, but ${says}`;
    return endAt({ ...failing, message, waitsFor: obstacles.map(resultId) }, ...obstacles);
  }
  const users = usersOf(context, held);
  if (isAhead && users.length === 0) return EXPECTED;
  // The status of a ResourceClaim names the pod for which it is reserved; a claim of a volume names what waits for it.
  const isReserved = type.group === 'resource.k8s.io';
  const ties = isReserved ? (['named', 'owned'] as const) : (['owned'] as const);
  const parts = objectsAwaited(context, held, ties).flatMap((one) => idsOfObject(context, one));
  if (parts.length > 0) return { ...OPEN, waitsFor: parts };
  const { kind, name } = subject;
  const who = listNames(users, 3);
  const [fix = { text: 'Give the deletion more time: raise the timeout' }] = who
    ? [{ text: `End what uses ${kind} ${name}: ${who}` }]
    : attemptRemedies(context, held);
  return endAt({
    ...{ ...known, code: 'owner-running', ...(isAhead && { certainty: 'unknown' }) },
    message: `${runs}; ${who ? `it waits as long as ${who} uses it` : 'it may be slow'}`,
    remedies: [withRole('now', fix)],
  });
}

const CHANGES = 'changes a field at every update, which the API server refuses';

/** Finds what refuses the update that removes the finalizer: by a dry run, a dead webhook, or what the objects or their Events say. */
function judgeRemoval(context: Context, held: Held, owner?: Suspect): Judgement {
  if (isAggregated(context, held.type)) return UNDECIDED;
  const all = held.objects.map((object) => judgeObject(context, held, object, owner?.account));
  const told = isForeseen(context, held) ? [] : refusalsFor(context, held, owner?.actor);
  const request = removalRequest(context, held);
  const results = [
    ...all.flatMap((one) => one.results),
    ...told.flatMap(({ error }) =>
      // What an owner says is read with its other errors.
      owner?.actor === undefined && isAdmissionError(error)
        ? refusalResult(context, error, request)
        : refusesOtherChange(error, held.type)
          ? held.objects.flatMap((one) => mutatingResults(context, held.type, one, CHANGES))
          : [],
    ),
  ];
  return {
    // Texts that name their objects would each bring a remedy.
    results: [...new Map(results.map((result) => [resultId(result), result])).values()],
    questions: [...new Set(all.flatMap(({ questions }) => questions))],
  };
}

function judgeObject(context: Context, held: Held, object: ObjectFacts, account?: Account) {
  const { finalizer, type } = held;
  const trial = context.now.trials[trialKey(object.uid, finalizer)];
  // A webhook that answers now may be deleted with the namespace.
  if (trial?.answer === 'accepted' && context.now.forecast === undefined) return UNDECIDED;
  const errors = trial?.answer === 'refused' ? classifyErrorText(trial.message) : [];
  // The trial adds no finalizer, so a mutating webhook or policy does.
  const isAdded = errors.some(({ kind }) => kind === 'new-finalizers-refused');
  const does = isAdded
    ? 'adds a finalizer to the object, which the API server refuses'
    : trial?.answer === 'undone'
      ? `puts ${finalizer} back on the object`
      : errors.some((one) => refusesOtherChange(one, type)) && CHANGES;
  if (does) return { ...UNDECIDED, results: mutatingResults(context, type, object, does) };
  const request = realRequest(context, 'UPDATE', type, object, account);
  return judgeAdmission(context, { request, trial });
}
