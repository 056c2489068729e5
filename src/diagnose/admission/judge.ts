import { isKindNamed } from '../../base/text.ts';
import type { ResourceType, Trial } from '../../model/snapshot.ts';
import {
  type Context,
  countsOf,
  listNames,
  listWords,
  type RuleResult,
  resultId,
  typeName,
} from '../context.ts';
import { type AdmissionError, classifyErrorText, isAdmissionError } from '../error-texts.ts';
import type { AdmissionRequest } from './expressions.ts';
import { denialOf, type Guard, guardsFor, isGuardAsked } from './guards.ts';
import { admissionResult, deadWebhook, isErrorOf } from './refusals.ts';

/** The decision of admission about a request. */
export interface Judgement {
  results: RuleResult[];
  /** Questions that decide and have no known answer. */
  questions: string[];
}

export const UNDECIDED: Judgement = { results: [], questions: [] };

/**
 * Judges a request as it will be sent. Uses the answer to the gate's dry run; webhooks that cannot answer, since an
 * answer shows only the first refusal; and the expressions of guards that look at what the dry run differs in: the
 * user, the dry run itself, and whether something is being deleted.
 */
export function judgeAdmission(
  context: Context,
  request: AdmissionRequest,
  who: string,
  trial: Trial | undefined,
): Judgement {
  const { operation, type } = request;
  const guards = guardsFor(context, operation, type).filter(({ mayDeny }) => mayDeny);
  const errors = trial?.answer === 'refused' ? classifyErrorText(trial.message) : [];
  const refusals = errors.filter(isAdmissionError);
  const ofNone = refusals.filter((one) => !guards.some((guard) => isErrorOf(context, one, guard)));
  const verdicts = guards.map((guard) => {
    const refusal = refusals.find((one) => isErrorOf(context, one, guard));
    return { guard, verdict: verdictOf(context, guard, request, who, refusal) };
  });
  const does = `${operation} of ${typeName(type)}`;
  // Selectors of namespaces are asked about a Namespace itself, but about no other cluster-scoped object.
  const isNamespace = type.group === '' && type.kind === 'Namespace';
  const place = isNamespace ? undefined : request.object.namespace;
  const results = [
    ...ofNone.map((error) => admissionResult(context, error, does, place)),
    ...verdicts.flatMap(({ guard: { webhook }, verdict }) => {
      if (verdict === 'dead') return (webhook && deadWebhook(context, webhook, does)) ?? [];
      return typeof verdict === 'object' ? admissionResult(context, verdict, does, place) : [];
    }),
  ];
  return {
    results: [...new Map(results.map((one) => [resultId(one), one])).values()],
    questions: verdicts.flatMap(({ guard, verdict }) =>
      typeof verdict === 'string' && verdict !== 'dead' ? `${guard.text} ${verdict}` : [],
    ),
  };
}

/**
 * Judges one guard. `refusal`: its answer to the gate.
 * @returns the error of the real request; `dead`: it cannot be called; undefined: it lets the request pass; or why that
 * is not known
 */
function verdictOf(
  context: Context,
  guard: Guard,
  request: AdmissionRequest,
  who: string,
  refusal: AdmissionError | undefined,
): AdmissionError | string | undefined {
  const { binding, looksAt, policy, webhook } = guard;
  const asked = isGuardAsked(guard, request);
  const differs = `looks at ${listWords(looksAt)}`;
  const toGate = refusal && `refused it to this gate: ${refusal.text}`;
  // Whoever removes a finalizer later gets the same answer; a deletion may be refused until others are deleted.
  const isDeletion = request.operation === 'DELETE';
  const doubt = isDeletion && refusal && doubtAboutRefusal(context, refusal, request.type);
  if (doubt) return `refuses it now, ${doubt}: ${refusal?.text}`;
  // A rule about a name is not asked about a collection, and its refusal may have hidden another one.
  if (asked === false) return looksAt.length === 0 ? toGate : undefined;
  if (webhook !== undefined && deadWebhook(context, webhook, '') !== undefined) {
    return asked ? 'dead' : 'does not answer, and its match conditions could not be evaluated';
  }
  if (looksAt.length === 0) return refusal;
  if (policy === undefined) {
    if (refusal !== undefined) return asked ? refusal : `${differs}, and ${toGate}`;
    const isSeen = isGuardAsked(guard, asTried(context, request)) === true;
    return isSeen ? undefined : `${differs}, and was not asked about the dry run of this gate`;
  }
  const denial = denialOf(guard, request);
  if (denial === 'none') return undefined;
  if (asked === undefined || denial === undefined) {
    return `${differs}, and its expressions could not be evaluated`;
  }
  return {
    kind: 'policy-denied',
    policy: policy.name,
    binding: binding?.name,
    message: denial.message || `expression ${denial.expression} is false for ${who}`,
    text: `its expressions were evaluated for ${who}`,
  };
}

/** Returns the same request as the gate has sent it, as a dry run. */
function asTried({ now: { forecast } }: Context, request: AdmissionRequest): AdmissionRequest {
  const isUnderWay = forecast === undefined;
  const isTerminating = request.isTerminating && isUnderWay;
  const tried = { isDryRun: true, isTerminating, isNamespaceTerminating: isUnderWay };
  return { ...request, requester: 'unnamed', ...tried };
}

/** Words of a refusal that is about who asks. */
const ABOUT_USERS =
  /\b(?:users?|usernames?|service ?accounts?|admin(?:istrator)?s?|controllers?)\b|\bsystem:/i;
const DELETED_WITH_NAMESPACE = /\bdelet\w* (?:(?:the|this|its|whole|entire) )*namespace\b/i;

/**
 * Says why the refusal of a webhook in a forecast may not hold for the real request: its code is not known, so its
 * message decides.
 */
function doubtAboutRefusal(
  { now: { forecast } }: Context,
  error: AdmissionError,
  type: ResourceType,
): string | undefined {
  if (forecast === undefined || error.kind !== 'webhook-denied') return undefined;
  const { message } = error;
  if (type.namespaced && ABOUT_USERS.test(message)) return 'and its message is about who asks';
  const others = countsOf(forecast.present)
    .filter(({ total, type: { kind } }) => total > 0 && kind !== type.kind)
    .filter(({ type: { kind } }) => isKindNamed(message, kind))
    .map((one) => one.type.resource);
  if (type.namespaced && DELETED_WITH_NAMESPACE.test(message)) others.push('the namespace');
  return others.length === 0
    ? undefined
    : `and names ${listNames(others)}, which would be deleted as well`;
}
