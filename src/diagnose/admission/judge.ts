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
  listWords,
  type RuleResult,
  resultId,
  typeName,
} from '../context.ts';
import {
  type AdmissionError,
  classifyErrorText,
  isAdmissionError,
  isKindNamed,
} from '../error-texts.ts';
import type { AdmissionRequest } from './expressions.ts';
import { denialOf, everyGuard, type Guard, guardsOf, isAsked, realRequest } from './guards.ts';
import { deadWebhook, isErrorOf, refusalResult } from './refusals.ts';

export interface Judgement {
  results: RuleResult[];
  /** Questions that decide and have no known answer. */
  questions: string[];
}

export const UNDECIDED: Judgement = { results: [], questions: [] };

/** Judges a request as it will be sent: by the answer to the dry run, dead webhooks (an answer shows only the first refusal), and expressions. */
export function judgeAdmission(
  context: Context,
  request: AdmissionRequest,
  who: string,
  trial: Trial | undefined,
): Judgement {
  const errors = trial?.answer === 'refused' ? classifyErrorText(trial.message) : [];
  const refusals = errors.filter(isAdmissionError);
  const guards = everyGuard(context).filter(mayDeny);
  const verdicts = guards.flatMap((guard): (RuleResult | string)[] => {
    const refusal = refusals.find((one) => isErrorOf(context, one, guard, request));
    const verdict = verdictOf(context, guard, request, who, refusal);
    return typeof verdict === 'string' ? [`${guard.text} ${verdict}`] : verdict ? [verdict] : [];
  });
  const results = [
    ...refusals
      .filter((one) => !guards.some((guard) => isErrorOf(context, one, guard, request)))
      .map((one) => refusalResult(context, one, request)),
    ...verdicts.filter((verdict) => typeof verdict !== 'string'),
  ];
  return {
    results: [...new Map(results.map((one) => [resultId(one), one])).values()],
    questions: verdicts.filter((verdict) => typeof verdict === 'string'),
  };
}

/** Reports whether the guard can refuse anything: a binding that only warns or audits does not. */
function mayDeny({ binding }: Guard): boolean {
  return binding === undefined || binding.actions.includes('Deny');
}

/** Judges one guard, which gave the gate this refusal. Returns the finding; undefined: it lets the request pass; or why that is not known. */
function verdictOf(
  context: Context,
  guard: Guard,
  request: AdmissionRequest,
  who: string,
  refusal: AdmissionError | undefined,
): RuleResult | string | undefined {
  const { binding, looksAt, own, policy, webhook } = guard;
  const asked = isAsked(guard, request);
  const differs = `looks at ${listWords(looksAt)}`;
  const toGate = refusal && `refused it to this gate: ${refusal.text}`;
  if (refusal && isDoubtful(context, request, refusal)) {
    return `refuses it now, and its message is about who asks or names what would be deleted as well: ${refusal.text}`;
  }
  // A rule about a name is not asked about a collection, and its refusal may have hidden another one.
  if (asked === false) {
    const isExempt = isAsked({ ...guard, own: { ...own, matchConditions: [] } }, request) !== false;
    return isExempt && looksAt.length > 0 ? undefined : toGate;
  }
  const dead = webhook && deadWebhook(context, webhook, request);
  const unanswered = 'does not answer, and its match conditions could not be evaluated';
  if (dead) return asked ? dead : unanswered;
  if (refusal && (looksAt.length === 0 || (webhook && asked))) {
    return refusalResult(context, refusal, request);
  }
  const loses = 'denies without its parameters, which are in this namespace';
  // They are still there when the namespace itself is to be deleted.
  const isLost = guard.losesParameters && request.type !== NAMESPACE_TYPE;
  if (looksAt.length === 0) return isLost ? loses : undefined;
  if (policy === undefined) return toGate ? `${differs}, and ${toGate}` : differs;
  const denial = denialOf(guard, request);
  if (denial === 'none') return undefined;
  if (!asked || !denial) return `${differs}, and its expressions could not be evaluated`;
  return refusalResult(
    context,
    {
      ...{ kind: 'policy-denied', policy: policy.name, binding: binding?.name },
      message: denial.message || `expression ${denial.expression} is false for ${who}`,
      text: `ValidatingAdmissionPolicy '${policy.name}': its expressions were evaluated for ${who}`,
    },
    request,
  );
}

/** Words of a refusal that is about who asks, or about a deletion of the whole namespace. */
const ABOUT_OTHERS =
  /\b(?:users?|usernames?|service ?accounts?|admin(?:istrator)?s?|controllers?)\b|\bsystem:|\bdelet\w* (?:(?:the|this|its|whole|entire) )*namespace\b/i;

/** Reports whether a webhook's refusal of one deletion may not hold when the whole namespace goes: its message decides. */
function isDoubtful(
  { now: { forecast } }: Context,
  { operation, type }: AdmissionRequest,
  error: AdmissionError,
): boolean {
  if (!forecast || operation !== 'DELETE' || error.kind !== 'webhook-denied') return false;
  const { message } = error;
  const others = countsOf(forecast.present).filter(
    ({ total, type: { kind } }) => total > 0 && kind !== type.kind,
  );
  return (
    (type.namespaced && ABOUT_OTHERS.test(message)) ||
    others.some(({ type: { kind } }) => isKindNamed(message, kind))
  );
}

/** A request that the deletion of the namespace sends, and the answer to its dry run. */
interface Step {
  type: ResourceType;
  object: Candidate & Pick<ObjectFacts, 'uid' | 'finalizers'>;
  request: AdmissionRequest;
  trial: Trial | undefined;
}

/** Lists the deletion of one object of each type, and that of the namespace. */
export function foreseenDeletions(context: Context): Step[] {
  const { forecast, namespace } = context.now;
  if (forecast === undefined) return [];
  const inside = countsOf(forecast.present).flatMap(({ type, sample: object }) =>
    object === undefined ? [] : { type, object },
  );
  const own = { type: NAMESPACE_TYPE, object: { ...namespace, namespace: '' } };
  return [...inside, own].map(({ type, object }) => {
    const request = realRequest(context, 'DELETE', type, object);
    return { type, object, request, trial: forecast.deletions[typeName(type)] };
  });
}

/** Returns the last request of the namespace controller. */
export function lastStep(context: Context): Step {
  const { namespace, trials } = context.now;
  const object = { ...namespace, namespace: '' };
  const trial = trials[trialKey(namespace.uid, KUBERNETES_FINALIZER)];
  const request = realRequest(context, 'UPDATE', FINALIZE, object);
  return { type: FINALIZE, object, request, trial };
}

function judge(context: Context, { request, trial, type }: Step): Judgement {
  const who = type === NAMESPACE_TYPE ? 'the user who deletes it' : 'the namespace controller';
  return judgeAdmission(context, request, who, trial);
}

export function foreseenRefusals(context: Context): RuleResult[] {
  return foreseenDeletions(context)
    .filter(({ type }) => !isAggregated(context, type))
    .flatMap((step) => judge(context, step).results);
}

export function refusalsOfLastRequest(context: Context): RuleResult[] {
  return judge(context, lastStep(context)).results;
}

/** Longer than a deletion should take, in seconds. */
const LONG_SECONDS = 600;
const LONG_GRACE = 3_600;

/** Returns what a forecast could not try, and refusals of the gate's own requests, which prove nothing about other users. */
export function openQuestions(context: Context): NotInspected[] {
  const { forecast, namespace, takenAt } = context.now;
  if (forecast === undefined) return [];
  const counts = countsOf(forecast.present);
  const isRequested = namespace.deletionTimestamp !== takenAt;
  const steps = [...foreseenDeletions(context), lastStep(context)].flatMap((step) => {
    const { type } = step;
    const isSettled = type !== FINALIZE && (isRequested || isAggregated(context, type));
    const questions = isSettled ? [] : judge(context, step).questions;
    const what = `whether admission lets ${type === FINALIZE ? 'the namespace' : typeName(type)} be deleted`;
    const reasons = [...untried(context, step), ...questions, ...otherObjects(context, step)];
    return reasons.map((reason) => ({ what, reason }));
  });
  const slow = counts.flatMap(({ type, total }) => {
    const trial = forecast.deletions[typeName(type)];
    const seconds = trial?.answer === 'accepted' ? (trial.seconds ?? 0) : 0;
    // The API server deletes one object after the other (apiserver, registry/store.go).
    const reason = `admission takes ${seconds} s for each of ${total}, one after the other`;
    const what = `whether ${typeName(type)} are deleted in time`;
    return seconds * total < LONG_SECONDS ? [] : { what, reason };
  });
  const pods = itemsIn(forecast.present.pods)
    .filter((pod) => pod.nodeName !== undefined && !hasPodEnded(pod))
    .filter(({ graceSeconds = 0 }) => graceSeconds > LONG_GRACE)
    .map(({ name, graceSeconds = 0 }) => ({
      what: `whether Pod ${name} ends in time`,
      reason: `its grace period is ${formatDuration(1_000 * graceSeconds)}`,
    }));
  // Held objects with more names in their specs than were compared with the objects of the namespace.
  const cut = counts
    .flatMap(({ guarded }) => guarded.flatMap(({ examples }) => examples))
    .filter((object) => detailOf(context, object)?.hasMoreNames)
    .map(({ kind, name }) => ({
      what: `whether ${kind} ${name} names what its owner needs`,
      reason: 'it is too large: only a part of its names was compared',
    }));
  return [...steps, ...slow, ...pods, ...cut];
}

/** Returns why a request could not be tried, with the guards that would decide, and the rule to add. */
function untried(context: Context, { request, trial, type }: Step): string[] {
  if (trial?.answer !== 'unknown' && trial?.answer !== 'refused') return [];
  // A refusal is a finding. An answer about dry runs alone leaves the question open.
  const isRefusal = classifyErrorText(trial.message).some(isAdmissionError);
  if (trial.answer === 'refused' && isRefusal) return [];
  const asked = guardsOf(context, request);
  const remedy =
    type === FINALIZE
      ? 'the right to update namespaces/finalize lets the gate try it'
      : 'rbac/forecast.yaml lets the gate try it by dry runs';
  const who = listNames(asked.map(({ text }) => text));
  return [trial.message + (asked.length === 0 ? '' : `; asked is ${who}: ${remedy}`)];
}

/** Returns the guards that may decide otherwise about the objects of the type that were not tried. */
function otherObjects(context: Context, { request, type }: Step): string[] {
  const counts = countsOf(context.now.forecast?.present ?? { content: [] });
  const total = counts.find((one) => typeName(one.type) === typeName(type))?.total ?? 0;
  const any = { ...request, object: { namespace: request.object.namespace } };
  return (total < 2 ? [] : guardsOf(context, any))
    .filter((guard) => mayDeny(guard) && isSelective(guard) && denialOf(guard, any) !== 'none')
    .map(({ text }) => `${text} looks at the object, and only 1 of ${total} was tried`);
}

/** Reports whether the decision of the guard about a deletion depends on the object; `object` is null then. */
function isSelective({ binding, own, policy }: Guard): boolean {
  const expressions = [own.matchConditions, policy?.validations, policy?.variables];
  return (
    [own, binding].some((one) => (one?.objectSelector ?? []).length > 0) ||
    own.rules.some(({ resourceNames }) => resourceNames.length > 0) ||
    JSON.stringify(expressions).includes('oldObject')
  );
}
