import { listNames, listWords } from '../../base/text.ts';
import { formatDuration } from '../../base/time.ts';
import {
  FINALIZE,
  KUBERNETES_FINALIZER,
  NAMESPACE_TYPE,
  typeName,
} from '../../model/facts/metadata.ts';
import { hasPodEnded } from '../../model/facts/workloads.ts';
import type { NotInspected } from '../../model/finding.ts';
import { itemsIn } from '../../model/read.ts';
import { type ResourceType, type Trial, trialKey, type Wanted } from '../../model/snapshot.ts';
import { countsOf, detailOf, isAggregated } from '../content.ts';
import { type Context, isForeseen } from '../context.ts';
import { classifyErrorText, isAdmissionError, isKindNamed } from '../error-texts.ts';
import type { AdmissionRequest } from './expressions.ts';
import { denialOf, everyGuard, type Guard, guardsOf, isAsked, realRequest } from './guards.ts';
import { deadWebhook, guardOf, refusalResult } from './refusals.ts';

export type Judgement = ReturnType<typeof judgeAdmission>;

export const UNDECIDED: Judgement = { results: [], questions: [] };

/** Judges a request as it will be sent: by the answer to the dry run, dead webhooks (an answer shows only the first refusal), and expressions. */
export function judgeAdmission(context: Context, { request, trial }: Asked) {
  const refusals = Map.groupBy(refusalsIn(trial), (error) => guardOf(context, error, request));
  const guards = everyGuard(context).filter(mayDeny);
  const verdicts = guards.map((guard) => {
    return verdictOf(context, guard, { request, trial }, refusals.get(guard)?.[0]);
  });
  const others = [...refusals].flatMap(([by, all]) => (by && guards.includes(by) ? [] : all));
  const told = others.map((error) => refusalResult(context, error, request));
  return {
    results: [...told, ...verdicts.filter((verdict) => typeof verdict === 'object')],
    /** What decides and has no known answer. */
    questions: verdicts.filter((verdict) => typeof verdict === 'string'),
  };
}

type Refusal = ReturnType<typeof refusalsIn>[number];

function refusalsIn(trial?: Trial) {
  if (trial?.answer !== 'refused') return [];
  return classifyErrorText(trial.message).filter(isAdmissionError);
}

/** A mutating policy, whose bindings have no actions, refuses only where it fails, as a dry run shows. */
function mayDeny({ binding }: Guard): boolean {
  return binding?.actions.length !== 0;
}

/** Judges one guard, which gave the gate this refusal. Returns the finding; undefined: it lets the request pass; or why that is not known. */
function verdictOf(context: Context, guard: Guard, step: Asked, refusal?: Refusal) {
  const { request, trial } = step;
  const { binding, own, policy, text, webhook } = guard;
  const asked = isAsked(guard, request);
  const parts = partsThatDiffer(context, guard);
  const toGate = refusal ? [`refused it to this gate: ${refusal.text}`] : [];
  if (refusal && isDoubtful(context, request, refusal)) {
    return `${text} refuses it now, and its message is about who asks or names what would be deleted as well: ${refusal.text}`;
  }
  // A rule about a name is not asked about a collection, and its refusal may have hidden another one.
  if (asked === false) {
    const isExempt = isAsked({ ...guard, own: { ...own, matchConditions: [] } }, request) !== false;
    return refusal && !(isExempt && parts.length > 0) ? `${text} ${toGate}` : undefined;
  }
  const dead = deadWebhook(context, guard, request);
  const unanswered = 'does not answer, and its match conditions could not be evaluated';
  if (dead) return asked ? dead : `${text} ${unanswered}`;
  if (refusal && (parts.length === 0 || (webhook && asked)))
    return refusalResult(context, refusal, request);
  // They are still there when the deletion of the namespace itself is requested.
  const mayLose = context.now.forecast !== undefined && request.type !== NAMESPACE_TYPE;
  if (mayLose && ['', context.now.namespace.name].includes(binding?.parametersIn ?? '-')) {
    return `${text} denies without its parameters, which are in this namespace`;
  }
  const denial = denialOf(guard, request);
  if (parts.length === 0 || denial === 'none') return undefined;
  const { requester } = request;
  // This gate may be the one who asks, and its user was let through.
  const isAllowed = requester === 'unnamed' && trial?.answer === 'accepted';
  if (!policy || !asked || !denial || isAllowed) {
    return `${text} ${[`looks at ${listWords(parts)}`, ...toGate].join(', and ')}`;
  }
  const user = requester === 'unnamed' ? 'the user who deletes it' : requester?.username;
  const who = user ?? 'its owner';
  const message = denial.message || `expression ${denial.expression} is false for ${who}`;
  const evaluated = `ValidatingAdmissionPolicy '${policy.name}': its expressions were evaluated for ${who}`;
  const error = { kind: 'policy-denied', policy: policy.name, binding: binding?.name } as const;
  return refusalResult(context, { ...error, message, text: evaluated }, request);
}

/** Returns the parts of a request that a guard reads and that a dry run of the gate has differently. */
function partsThatDiffer({ now }: Context, { own }: Guard): string[] {
  return [
    ...(own.dependsOnUser ? ['who asks'] : []),
    ...(own.dependsOnDryRun ? ['whether it is a dry run'] : []),
    // During a deletion, a dry run sees what the real request sees.
    ...(own.dependsOnDeletion && now.forecast ? ['whether something is being deleted'] : []),
  ];
}

/** Words of a refusal that is about who asks, or about a deletion of the whole namespace. */
const ABOUT_OTHERS =
  /\b(?:users?|usernames?|service ?accounts?|admin(?:istrator)?s?|controllers?)\b|\bsystem:|\bdelet\w* (?:(?:the|this|its|whole|entire) )*namespace\b/i;

/** Reports whether a webhook's refusal of one deletion may not hold when the whole namespace goes: its message decides. */
function isDoubtful({ now }: Context, { operation, type }: AdmissionRequest, error: Refusal) {
  const { forecast } = now;
  if (!forecast || operation !== 'DELETE' || error.kind !== 'webhook-denied') return false;
  if (type.namespaced && ABOUT_OTHERS.test(error.message)) return true;
  return countsOf(forecast.present).some(
    ({ total, type: { kind } }) =>
      total > 0 && kind !== type.kind && isKindNamed(error.message, kind),
  );
}

/** A request, and the answer to its dry run. */
type Asked = { request: AdmissionRequest; trial?: Trial | undefined };

/** A request that the deletion of the namespace sends. */
interface Step extends Asked {
  type: ResourceType;
  object: Wanted['trials'][number]['object'];
  /** Objects that such requests are sent for. */
  total: number;
}

/** Lists the deletion of one object of each type, and in a forecast that of the namespace. Aggregated servers decide by themselves. */
export function deletionSteps(context: Context): Step[] {
  const { forecast, namespace } = context.now;
  const inside = countsOf(forecast?.present ?? context.now).flatMap(({ type, sample, total }) =>
    sample && !isAggregated(context, type) ? { type, object: sample, total } : [],
  );
  const own = { type: NAMESPACE_TYPE, object: { ...namespace, namespace: '' }, total: 1 };
  return [...inside, ...(forecast ? [own] : [])].map((step) => {
    const request = realRequest(context, 'DELETE', step.type, step.object);
    return { ...step, request, trial: forecast?.deletions[typeName(step.type)] };
  });
}

/** Returns the last request of the namespace controller. */
export function lastStep(context: Context) {
  const { namespace, trials } = context.now;
  const object = { ...namespace, namespace: '' };
  const trial = trials[trialKey(namespace.uid, KUBERNETES_FINALIZER)];
  const request = realRequest(context, 'UPDATE', FINALIZE, object);
  return { type: FINALIZE, finalizer: KUBERNETES_FINALIZER, object, total: 1, request, trial };
}

/** Longer than a deletion should take, in seconds. */
const LONG_S = 600;
const LONG_GRACE_S = 3_600;

/** Returns what a forecast could not try, and refusals of the gate's own requests, which prove nothing about other users. */
export function openQuestions(context: Context): NotInspected[] {
  const { forecast } = context.now;
  if (forecast === undefined) return [];
  const deletions = isForeseen(context) ? deletionSteps(context) : [];
  const steps = [...deletions, lastStep(context)].flatMap((step) => {
    const { total, trial, type } = step;
    const what = `whether admission lets ${type === FINALIZE ? 'the namespace' : typeName(type)} be deleted`;
    const { questions } = judgeAdmission(context, step);
    // The API server deletes one object after the other (apiserver, registry/store.go).
    const seconds = trial?.answer === 'accepted' ? (trial.seconds ?? 0) : 0;
    const slow = `it takes ${seconds} s for each of ${total}, one after the other`;
    const others = [...otherObjects(context, step), ...(seconds * total < LONG_S ? [] : [slow])];
    const reasons = [...untried(context, step), ...questions, ...others];
    return reasons.map((reason) => ({ what, reason }));
  });
  const pods = itemsIn(forecast.present.pods).flatMap((pod) => {
    const { graceSeconds = 0, name, nodeName } = pod;
    const reason = `its grace period is ${formatDuration(1_000 * graceSeconds)}`;
    const isLong = nodeName !== undefined && !hasPodEnded(pod) && graceSeconds > LONG_GRACE_S;
    return isLong ? { what: `whether Pod ${name} ends in time`, reason } : [];
  });
  // Held objects with more names in their specs than were compared with the objects of the namespace.
  const cut = countsOf(forecast.present)
    .flatMap(({ guarded }) => guarded.flatMap(({ examples }) => examples))
    .filter((object) => detailOf(context, object)?.hasMoreNames)
    .map(({ kind, name }) => ({
      what: `whether ${kind} ${name} names what its owner needs`,
      reason: 'it is too large: only a part of its names was compared',
    }));
  return [...steps, ...pods, ...cut];
}

/** Returns why a request could not be tried, with the guards that would decide, and the rule to add. */
function untried(context: Context, { request, trial, type }: Step): string[] {
  // A refusal is a finding. An answer about dry runs alone leaves the question open.
  if (trial === undefined || !('message' in trial) || refusalsIn(trial).length > 0) return [];
  const asked = guardsOf(context, request);
  const by = type === FINALIZE ? 'the right to update namespaces/finalize' : 'rbac/forecast.yaml';
  const who = `; asked is ${listNames(asked.map(({ text }) => text))}: ${by} lets the gate try it`;
  return [trial.message + (asked.length === 0 ? '' : who)];
}

/** Returns the guards that may decide otherwise about the objects of the type that were not tried. */
function otherObjects(context: Context, { request, total }: Step): string[] {
  const any = { ...request, object: { namespace: request.object.namespace } };
  return (total < 2 ? [] : guardsOf(context, any))
    .filter((guard) => mayDeny(guard) && isSelective(guard) && denialOf(guard, any) !== 'none')
    .map(({ text }) => `${text} looks at the object, and only 1 of ${total} was tried`);
}

/** Reports whether the decision of the guard about a deletion depends on the object; `object` is null then. */
function isSelective({ binding, own, policy }: Guard): boolean {
  const expressions = [own.matchConditions, policy?.validations, policy?.variables];
  const selectors = [own.objectSelector, binding?.objectSelector ?? []];
  return selectors.flat().length > 0 || JSON.stringify(expressions).includes('oldObject');
}
