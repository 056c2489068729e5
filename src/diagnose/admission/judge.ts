import { isKindNamed } from '../../base/text.ts';
import type { ResourceType, Trial } from '../../model/snapshot.ts';
import {
  type Context,
  countsOf,
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
  const does = `${operation} of ${typeName(type)}`;
  // Selectors of namespaces are asked about a Namespace itself, but about no other cluster-scoped object.
  const place = typeName(type) === 'namespaces' ? undefined : request.object.namespace;
  const errors = trial?.answer === 'refused' ? classifyErrorText(trial.message) : [];
  const refusals = errors.filter(isAdmissionError);
  const guards = guardsFor(context, operation, type).filter(({ mayDeny }) => mayDeny);
  const ofNone = refusals.filter((one) => !guards.some((guard) => isErrorOf(context, one, guard)));
  const verdicts = guards.map((guard) => {
    const refusal = refusals.find((one) => isErrorOf(context, one, guard));
    const verdict = verdictOf(context, guard, request, who, refusal);
    return typeof verdict === 'string' ? `${guard.text} ${verdict}` : verdict;
  });
  const results = [...ofNone, ...verdicts].flatMap((verdict) => {
    if (verdict === undefined || typeof verdict === 'string') return [];
    return 'subject' in verdict ? verdict : admissionResult(context, verdict, does, place);
  });
  return {
    results: [...new Map(results.map((one) => [resultId(one), one])).values()],
    questions: verdicts.filter((verdict) => typeof verdict === 'string'),
  };
}

/**
 * Judges one guard. `refusal`: its answer to the gate.
 * @returns the finding or the error of the real request; undefined: it lets the request pass; or why that is not known
 */
function verdictOf(
  context: Context,
  guard: Guard,
  request: AdmissionRequest,
  who: string,
  refusal: AdmissionError | undefined,
): RuleResult | AdmissionError | string | undefined {
  const { binding, looksAt, policy, webhook } = guard;
  const { operation, type } = request;
  const asked = isGuardAsked(guard, request);
  const differs = `looks at ${listWords(looksAt)}`;
  const toGate = refusal && `refused it to this gate: ${refusal.text}`;
  const denied = (message: string, text: string): AdmissionError => ({
    ...{ kind: 'policy-denied', policy: policy?.name ?? '', binding: binding?.name, message, text },
  });
  // Whoever removes a finalizer later gets the same answer; a deletion may be refused until others are deleted.
  const doubt =
    operation === 'DELETE' && refusal ? doubtAboutRefusal(context, refusal, type) : undefined;
  if (doubt) return `refuses it now, and ${doubt}: ${refusal?.text}`;
  // A rule about a name is not asked about a collection, and its refusal may have hidden another one.
  if (asked === false) return looksAt.length === 0 ? toGate : undefined;
  const dead = webhook && deadWebhook(context, webhook, `${operation} of ${typeName(type)}`);
  if (dead && asked) return dead;
  if (dead) return 'does not answer, and its match conditions could not be evaluated';
  if (asked && !refusal && hasLostParameters(context, guard, request)) {
    const message = `its parameters (${policy?.paramKind}) were deleted with this namespace`;
    const text = `${policy?.kind} '${policy?.name}' with binding '${binding?.name}' denies where it finds no parameters (parameterNotFoundAction)`;
    return denied(message, text);
  }
  if (looksAt.length === 0) return refusal;
  if (policy === undefined) {
    if (refusal === undefined) return differs;
    return asked ? refusal : `${differs}, and ${toGate}`;
  }
  const denial = denialOf(guard, request);
  if (denial === 'none') return undefined;
  if (!asked || !denial) return `${differs}, and its expressions could not be evaluated`;
  const message = denial.message || `expression ${denial.expression} is false for ${who}`;
  const text = `ValidatingAdmissionPolicy '${policy.name}': its expressions were evaluated for ${who}`;
  return denied(message, text);
}

/** Reports whether the parameters of a policy were in this namespace, which has none left: then its binding denies. */
function hasLostParameters(
  { now }: Context,
  { binding, policy }: Guard,
  { object, operation }: AdmissionRequest,
): boolean {
  const place = binding?.parametersIn;
  const isHere =
    object.namespace === now.namespace.name && ['', now.namespace.name].includes(place ?? '?');
  return (
    isHere &&
    operation === 'UPDATE' &&
    countsOf(now).some(({ total, type }) => type.kind === policy?.paramKind && total === 0)
  );
}

/** Words of a refusal that is about who asks, or about a deletion of the whole namespace. */
const ABOUT_USERS =
  /\b(?:users?|usernames?|service ?accounts?|admin(?:istrator)?s?|controllers?)\b|\bsystem:/i;
const DELETED_WITH_NAMESPACE = /\bdelet\w* (?:(?:the|this|its|whole|entire) )*namespace\b/i;

/** Says why the refusal of a webhook in a forecast may not hold for the real request: its message decides. */
function doubtAboutRefusal(
  { now: { forecast } }: Context,
  error: AdmissionError,
  type: ResourceType,
): string | undefined {
  if (forecast === undefined || error.kind !== 'webhook-denied') return undefined;
  const { message } = error;
  if (type.namespaced && ABOUT_USERS.test(message)) {
    return 'its message is about who asks';
  }
  const isOfOthers = countsOf(forecast.present).some(
    ({ total, type: { kind } }) => total > 0 && kind !== type.kind && isKindNamed(message, kind),
  );
  return isOfOthers || (type.namespaced && DELETED_WITH_NAMESPACE.test(message))
    ? 'names what would be deleted as well'
    : undefined;
}
