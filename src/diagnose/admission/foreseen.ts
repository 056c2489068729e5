import { FINALIZE, KUBERNETES_FINALIZER, NAMESPACE_TYPE } from '../../model/facts/metadata.ts';
import type { NotInspected } from '../../model/finding.ts';
import {
  type Candidate,
  type Forecast,
  type ObjectFacts,
  type ResourceType,
  type Trial,
  trialKey,
} from '../../model/snapshot.ts';
import { type Context, countsOf, detailOf, isAggregated, listNames, typeName } from '../context.ts';
import { classifyErrorText, isAdmissionError } from '../error-texts.ts';
import type { AdmissionRequest } from './expressions.ts';
import {
  denialOf,
  type Guard,
  guardsAsked,
  guardsFor,
  isGuardAsked,
  realRequest,
} from './guards.ts';
import { type Judgement, judgeAdmission } from './judge.ts';

/** A deletion that a forecast judges, and the last request of the namespace controller. */
interface Step {
  request: AdmissionRequest;
  object: Candidate;
  /** Who sends it. */
  who: string;
  what: string;
  trial: Trial | undefined;
}

/** An object whose deletion a forecast judges, and the key of its dry run, which kubectl accepts as a name. */
interface Sample {
  type: ResourceType;
  object: Candidate & Pick<ObjectFacts, 'uid'>;
  key: string;
}

/** Lists one object of each type, and the namespace. */
export function collectSamples({ now: { forecast, namespace } }: Context): Sample[] {
  if (forecast === undefined) return [];
  const inside = countsOf(forecast.present).flatMap(({ type, sample: object }) =>
    object === undefined ? [] : { type, object, key: typeName(type) },
  );
  const object = { ...namespace, namespace: '' };
  return [...inside, { type: NAMESPACE_TYPE, object, key: typeName(NAMESPACE_TYPE) }];
}

function deletionsOf(context: Context): Step[] {
  return collectSamples(context).map(({ type, object, key }) => ({
    object,
    request: realRequest(context, 'DELETE', type, object),
    who: type === NAMESPACE_TYPE ? 'the user who deletes it' : 'the namespace controller',
    what: key,
    trial: context.now.forecast?.deletions[key],
  }));
}

function endOf(context: Context): Step {
  const { namespace, trials } = context.now;
  const object = { ...namespace, namespace: '' };
  return {
    object,
    request: realRequest(context, 'UPDATE', FINALIZE, object),
    ...{ who: 'the namespace controller', what: 'the namespace' },
    trial: trials[trialKey(namespace.uid, KUBERNETES_FINALIZER)],
  };
}

const judge = (context: Context, { request, who, trial }: Step): Judgement =>
  judgeAdmission(context, request, who, trial);

/** Judges the deletion of one object of each type. */
export function foreseenAdmission(context: Context): Judgement[] {
  return deletionsOf(context)
    .filter(({ request: { type } }) => !isAggregated(context, type))
    .map((step) => judge(context, step));
}

/** Judges the last request of the namespace controller. */
export function judgeLastRequest(context: Context): Judgement {
  return judge(context, endOf(context));
}

/**
 * Returns what a forecast could not try, and refusals of the gate's own requests, which prove nothing about other
 * users.
 */
export function openQuestions(context: Context): NotInspected[] {
  const { forecast, namespace, takenAt } = context.now;
  if (forecast === undefined) return [];
  const isForeseen = namespace.deletionTimestamp === takenAt;
  const end = endOf(context);
  const deletions = deletionsOf(context).map((step) => {
    const isJudged = isForeseen && !isAggregated(context, step.request.type);
    const questions = isJudged ? judge(context, step).questions : [];
    return {
      step,
      reasons: [...untried(context, step), ...questions, ...otherObjects(context, step)],
    };
  });
  const last = {
    step: end,
    reasons: [...untried(context, end), ...judgeLastRequest(context).questions],
  };
  return [
    ...[...deletions, last].flatMap(({ step, reasons }) =>
      reasons.map((reason) => ({ what: `whether admission lets ${step.what} be deleted`, reason })),
    ),
    ...slowDeletions(forecast),
    ...cutNames(context),
  ];
}

/** Returns why a request could not be tried, with the guards that would decide, and the rule to add. */
function untried(context: Context, { object, request, trial }: Step): string[] {
  if (trial?.answer !== 'unknown' && trial?.answer !== 'refused') return [];
  // A refusal is a finding. An answer about dry runs alone leaves the question open.
  const isRefusal = classifyErrorText(trial.message).some(isAdmissionError);
  if (trial.answer === 'refused' && isRefusal) return [];
  const { operation, type } = request;
  const asked = guardsAsked(context, operation, type, object) ?? [];
  const remedy =
    type === FINALIZE
      ? 'the right to update namespaces/finalize lets the gate try it'
      : 'rbac/forecast.yaml lets the gate try it by dry runs';
  const who = listNames(asked.map(({ text }) => text));
  return [trial.message + (asked.length === 0 ? '' : `; asked is ${who}: ${remedy}`)];
}

/** Returns the guards that may decide otherwise about the objects of the type that were not tried. */
function otherObjects(context: Context, { object, request }: Step): string[] {
  const { operation, type } = request;
  const counts = countsOf(context.now.forecast?.present ?? { content: [] });
  const total = counts.find((one) => typeName(one.type) === typeName(type))?.total ?? 0;
  if (total < 2) return [];
  const any = { ...request, object: { namespace: object.namespace } };
  return guardsFor(context, operation, type)
    .filter((guard) => guard.mayDeny && isSelective(guard))
    .filter((guard) => isGuardAsked(guard, any) !== false && denialOf(guard, any) !== 'none')
    .map(({ text }) => `${text} looks at the object, and only 1 of ${total} was tried`);
}

/** Reports whether the decision of the guard about a deletion depends on the object; `object` is null then. */
function isSelective({ matchConditions, objectSelector, policy }: Guard): boolean {
  const { rules = [], validations = [], variables = [] } = policy ?? {};
  const own = [...validations, ...variables].map(({ expression }) => expression);
  return (
    objectSelector.length > 0 ||
    rules.some(({ resourceNames }) => resourceNames.length > 0) ||
    [...matchConditions, ...own].some((text) => /\boldObject\b/.test(text))
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

/** Longer than a deletion should take. The API server deletes one object after the other (apiserver, registry/store.go). */
const LONG_SECONDS = 600;

function slowDeletions({ deletions, present }: Forecast): NotInspected[] {
  return countsOf(present).flatMap(({ type, total }) => {
    const trial = deletions[typeName(type)];
    const seconds = trial?.answer === 'accepted' ? (trial.seconds ?? 0) : 0;
    if (seconds * total < LONG_SECONDS) return [];
    const reason = `admission takes ${seconds} s for each of ${total}, one after the other`;
    return [{ what: `whether ${typeName(type)} are deleted in time`, reason }];
  });
}
