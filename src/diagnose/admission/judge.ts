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
import { asTried, denialOf, type Guard, guardsFor, isGuardAsked } from './guards.ts';
import { admissionResult, deadWebhook, isErrorOf } from './refusals.ts';

/** The decision of admission about a request. */
export interface Judgement {
  results: RuleResult[];
  /** Questions that decide and have no known answer. */
  questions: string[];
  /** Refusals of the gate's own request, which prove nothing about other users. */
  toGate: RuleResult[];
}

export const UNDECIDED: Judgement = { results: [], questions: [], toGate: [] };

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
  const guards = guardsFor(context, operation, type);
  const errors = trial?.answer === 'refused' ? classifyErrorText(trial.message) : [];
  const judged = [
    ...errors.filter(isAdmissionError).map((error) => {
      const guard = guards.find((one) => isErrorOf(context, error, one));
      return judgeRefusal(context, request, does, error, guard);
    }),
    ...guards
      .filter(({ mayDeny }) => mayDeny)
      .map((guard) => judgeGuard(context, request, does, guard, who)),
  ];
  const results = judged.flatMap((one) => one.results ?? []);
  return {
    results: [
      ...new Map(results.toReversed().map((one) => [resultId(one), one])).values(),
    ].toReversed(),
    questions: judged.flatMap((one) => one.questions ?? []),
    toGate: judged.flatMap((one) => one.toGate ?? []),
  };
}

/** Judges a refusal of the gate's dry run: whether it holds for the real request. */
function judgeRefusal(
  context: Context,
  request: AdmissionRequest,
  does: string,
  error: AdmissionError,
  guard: Guard | undefined,
): { [K in keyof Judgement]?: Judgement[K] } {
  const name = guard?.text ?? 'a policy';
  const doubt = doubtAboutRefusal(context, error, request.type);
  if (doubt !== undefined) {
    return { questions: [`${name} refuses it now, ${doubt}: ${error.text}`] };
  }
  const asked = guard && isGuardAsked(guard, request);
  const results = [admissionResult(context, error, does)];
  const looksAt = guard?.looksAt ?? (error.kind === 'policy-denied' ? ['who asks'] : []);
  if (looksAt.length === 0) {
    // Not asked about a collection. Its refusal may have hidden another one.
    return asked === false
      ? { questions: [`${name} refused it to this gate only: ${error.text}`] }
      : { results };
  }
  const ours = `${does} by this gate (its conditions look at ${listWords(looksAt)})`;
  const toGate = [{ ...admissionResult(context, error, ours), certainty: 'unknown' as const }];
  // The decision of a policy about the real request is evaluated by itself.
  if (guard?.policy !== undefined || asked === false) return { toGate };
  const open = `${name} refused it to this gate, and looks at ${listWords(looksAt)}: ${error.text}`;
  return asked ? { toGate, results } : { toGate, questions: [open] };
}

/** Judges what a dry run does not show: a webhook without a backend, and what is decided by other than the object. */
function judgeGuard(
  context: Context,
  request: AdmissionRequest,
  does: string,
  guard: Guard,
  who: string,
): { [K in keyof Judgement]?: Judgement[K] } {
  const { binding, looksAt, policy, text, webhook } = guard;
  const question = (words: string) => ({ questions: [`${text} ${words}`] });
  const asked = isGuardAsked(guard, request);
  if (asked === false) return {};
  const dead = webhook && deadWebhook(context, webhook, does);
  if (dead !== undefined) {
    return asked
      ? { results: [dead] }
      : question('does not answer, and its match conditions could not be evaluated');
  }
  if (looksAt.length === 0) return {};
  if (policy === undefined) {
    return isGuardAsked(guard, asTried(context, request)) === true
      ? {}
      : question(
          'may be asked, by its match conditions, and was not asked about the dry run of this gate',
        );
  }
  const denial = denialOf(guard, request);
  if (denial === 'none') return {};
  if (asked === undefined || denial === undefined) {
    return question(`looks at ${listWords(looksAt)}, and its expressions could not be evaluated`);
  }
  const error = {
    kind: 'policy-denied',
    policy: policy.name,
    binding: binding?.name,
    message: denial.message || `expression ${denial.expression} is false for ${who}`,
    text: `its expressions were evaluated for ${who}`,
  } as const;
  return { results: [admissionResult(context, error, does)] };
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
