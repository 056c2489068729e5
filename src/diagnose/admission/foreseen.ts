import { formatDuration } from '../../base/time.ts';
import { FINALIZE, KUBERNETES_FINALIZER, NAMESPACE_TYPE } from '../../model/facts/metadata.ts';
import { hasPodEnded } from '../../model/facts/workloads.ts';
import type { NotInspected } from '../../model/finding.ts';
import {
  type Candidate,
  type ObjectFacts,
  type ResourceType,
  type Trial,
  trialKey,
} from '../../model/snapshot.ts';
import {
  type Context,
  countsOf,
  detailOf,
  isAggregated,
  itemsIn,
  listNames,
  type RuleResult,
  typeName,
} from '../context.ts';
import { classifyErrorText, isAdmissionError } from '../error-texts.ts';
import {
  denialOf,
  type Guard,
  guardsAsked,
  guardsFor,
  isGuardAsked,
  realRequest,
} from './guards.ts';
import { type Judgement, judgeAdmission } from './judge.ts';

/** A request that the deletion of the namespace sends, and the answer to its dry run. */
interface Step {
  operation: 'DELETE' | 'UPDATE';
  type: ResourceType;
  object: Candidate & Pick<ObjectFacts, 'uid'>;
  trial: Trial | undefined;
}

/** Lists the deletion of one object of each type, and that of the namespace. */
export function foreseenDeletions({ now: { forecast, namespace } }: Context): Step[] {
  if (forecast === undefined) return [];
  const inside = countsOf(forecast.present).flatMap(({ type, sample: object }) =>
    object === undefined ? [] : { type, object },
  );
  const own = { type: NAMESPACE_TYPE, object: { ...namespace, namespace: '' } };
  return [...inside, own].map((one) => {
    const trial = forecast.deletions[typeName(one.type)];
    return { operation: 'DELETE', ...one, trial };
  });
}

/** Returns the last request of the namespace controller. */
function lastStep({ now: { namespace, trials } }: Context): Step {
  const object = { ...namespace, namespace: '' };
  const trial = trials[trialKey(namespace.uid, KUBERNETES_FINALIZER)];
  return { operation: 'UPDATE', type: FINALIZE, object, trial };
}

function judge(context: Context, { operation, type, object, trial }: Step): Judgement {
  const who = type === NAMESPACE_TYPE ? 'the user who deletes it' : 'the namespace controller';
  return judgeAdmission(context, realRequest(context, operation, type, object), who, trial);
}

/** Finds what would refuse the deletion of one object of each type. */
export function foreseenRefusals(context: Context): RuleResult[] {
  return foreseenDeletions(context)
    .filter(({ type }) => !isAggregated(context, type))
    .flatMap((step) => judge(context, step).results);
}

/** Finds what refuses the last request of the namespace controller. */
export function refusalsOfLastRequest(context: Context): RuleResult[] {
  return judge(context, lastStep(context)).results;
}

/**
 * Returns what a forecast could not try, and refusals of the gate's own requests, which prove nothing about other
 * users.
 */
export function openQuestions(context: Context): NotInspected[] {
  const { forecast, namespace, takenAt } = context.now;
  if (forecast === undefined) return [];
  const isRequested = namespace.deletionTimestamp !== takenAt;
  const steps = [...foreseenDeletions(context), lastStep(context)].flatMap((step) => {
    const { operation, type } = step;
    const isSettled = operation === 'DELETE' && (isRequested || isAggregated(context, type));
    const questions = isSettled ? [] : judge(context, step).questions;
    const what = `whether admission lets ${type === FINALIZE ? 'the namespace' : typeName(type)} be deleted`;
    const reasons = [...untried(context, step), ...questions, ...otherObjects(context, step)];
    return reasons.map((reason) => ({ what, reason }));
  });
  const slow = countsOf(forecast.present).flatMap(({ type, total }) => {
    const trial = forecast.deletions[typeName(type)];
    const seconds = trial?.answer === 'accepted' ? (trial.seconds ?? 0) : 0;
    if (seconds * total < LONG_SECONDS) return [];
    const reason = `admission takes ${seconds} s for each of ${total}, one after the other`;
    return [{ what: `whether ${typeName(type)} are deleted in time`, reason }];
  });
  const pods = itemsIn(forecast.present.pods)
    .filter((pod) => pod.nodeName !== undefined && !hasPodEnded(pod))
    .filter(({ graceSeconds = 0 }) => graceSeconds > LONG_GRACE)
    .map(({ name, graceSeconds = 0 }) => ({
      what: `whether Pod ${name} ends in time`,
      reason: `its grace period is ${formatDuration(1_000 * graceSeconds)}`,
    }));
  return [...steps, ...slow, ...pods, ...cutNames(context)];
}

/** Longer than a deletion should take. The API server deletes one object after the other (apiserver, registry/store.go). */
const LONG_SECONDS = 600;
const LONG_GRACE = 3_600;

/** Returns why a request could not be tried, with the guards that would decide, and the rule to add. */
function untried(context: Context, { operation, type, object, trial }: Step): string[] {
  if (trial?.answer !== 'unknown' && trial?.answer !== 'refused') return [];
  // A refusal is a finding. An answer about dry runs alone leaves the question open.
  const isRefusal = classifyErrorText(trial.message).some(isAdmissionError);
  if (trial.answer === 'refused' && isRefusal) return [];
  const asked = guardsAsked(context, operation, type, object) ?? [];
  const remedy =
    type === FINALIZE
      ? 'the right to update namespaces/finalize lets the gate try it'
      : 'rbac/forecast.yaml lets the gate try it by dry runs';
  const who = listNames(asked.map(({ text }) => text));
  return [trial.message + (asked.length === 0 ? '' : `; asked is ${who}: ${remedy}`)];
}

/** Returns the guards that may decide otherwise about the objects of the type that were not tried. */
function otherObjects(context: Context, { operation, type, object }: Step): string[] {
  const counts = countsOf(context.now.forecast?.present ?? { content: [] });
  const total = counts.find((one) => typeName(one.type) === typeName(type))?.total ?? 0;
  const { namespace } = object;
  const any = { ...realRequest(context, operation, type, object), object: { namespace } };
  return (total < 2 ? [] : guardsFor(context, operation, type))
    .filter((guard) => guard.mayDeny && isSelective(guard))
    .filter((guard) => isGuardAsked(guard, any) !== false && denialOf(guard, any) !== 'none')
    .map(({ text }) => `${text} looks at the object, and only 1 of ${total} was tried`);
}

/** Reports whether the decision of the guard about a deletion depends on the object; `object` is null then. */
function isSelective({ matchConditions, objectSelector, policy }: Guard): boolean {
  const { rules = [], validations, variables } = policy ?? {};
  return (
    objectSelector.length > 0 ||
    rules.some(({ resourceNames }) => resourceNames.length > 0) ||
    JSON.stringify([matchConditions, validations, variables]).includes('oldObject')
  );
}

/** Returns held objects with more names in their specs than were compared with the objects of the namespace. */
function cutNames(context: Context): NotInspected[] {
  return countsOf(context.now.forecast?.present ?? { content: [] })
    .flatMap(({ guarded }) => guarded.flatMap(({ examples }) => examples))
    .filter((object) => detailOf(context, object)?.hasMoreNames)
    .map(({ kind, name }) => ({
      what: `whether ${kind} ${name} names what its owner needs`,
      reason: 'it is too large: only a part of its names was compared',
    }));
}
