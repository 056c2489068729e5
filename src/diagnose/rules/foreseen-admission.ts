import { FINALIZE, KUBERNETES_FINALIZER, NAMESPACE_TYPE } from '../../model/facts.ts';
import type { Diagnosis, NotInspected } from '../../model/finding.ts';
import {
  type Candidate,
  type LabelRequirement,
  type ObjectFacts,
  type PolicyFacts,
  type ResourceType,
  type Trial,
  trialKey,
} from '../../model/snapshot.ts';
import { type AdmissionRequest, evaluateCondition } from '../admission-expressions.ts';
import {
  type Context,
  countsOf,
  idOf,
  isAggregated,
  listNames,
  type RuleResult,
  type TypeRef,
  typeName,
} from '../context.ts';
import { type AdmissionError, classifyErrorText, isAdmissionError } from '../error-texts.ts';
import {
  askedAbout,
  type Guard,
  guardsFor,
  isAsked,
  objectSelectorOf,
  realRequests,
} from '../guards.ts';
import { admissionResult, deadWebhook, dependsOnUser, findWebhook } from './admission.ts';

/** Returns what admission makes of the deletion of each type's samples, and of the namespace. */
export function foreseenAdmission(context: Context): Judgement[] {
  const { forecast, namespace } = context.now;
  if (forecast === undefined) return [];
  const judge = (type: ResourceType, object: Candidate, key: string): Judgement =>
    judgeDeletion(context, type, object, forecast.deletions[key]);
  return [
    ...countsOf(forecast.present).flatMap(({ type, sample }) => {
      if (sample === undefined || isAggregated(context, type)) return [];
      const { name, namespace: place, labels } = sample;
      const first = judge(type, { name, namespace: place, labels }, typeName(type));
      const others = samplesOf(context, type).filter(({ uid }) => uid !== sample.uid);
      return [first, ...others.map((one) => judge(type, one, sampleKey(type, one)))];
    }),
    judge(NAMESPACE_TYPE, { ...namespace, namespace: '' }, typeName(NAMESPACE_TYPE)),
  ];
}

/** Under which key the dry run about a further sample of a type stands; `kubectl` takes it as a name. */
export function sampleKey(type: TypeRef, { name }: Pick<ObjectFacts, 'name'>): string {
  return `${typeName(type)}/${name}`;
}

/** What a forecast could not try, or what was refused to the gate and says nothing about others. */
export function openQuestions(context: Context): Diagnosis['notInspected'] {
  const { forecast, namespace, trials } = context.now;
  const end = forecast && trials[trialKey(namespace.uid, KUBERNETES_FINALIZER)];
  const asked = Object.entries(forecast?.deletions ?? {}).map(([type, trial]) => ({
    type,
    does: `${type} be deleted`,
    trial,
  }));
  if (end !== undefined) {
    asked.push({ type: FINALIZE.resource, does: 'the namespace be deleted', trial: end });
  }
  const tried = asked.flatMap(({ type, does, trial }) => {
    if (trial.answer !== 'unknown' && trial.answer !== 'refused') return [];
    const isOfEnd = trial === end;
    const isAnswered =
      trial.answer === 'refused' &&
      classifyErrorText(trial.message).some(
        (error) => isAdmissionError(error) && !(isOfEnd && dependsOnUser(context, error)),
      );
    const reason = trial.message + (trial.answer === 'unknown' ? guardsText(context, type) : '');
    return isAnswered ? [] : [{ what: `whether admission lets ${does}`, reason }];
  });
  const isDeletable = namespace.deletionTimestamp === context.now.takenAt;
  const judged = isDeletable ? foreseenAdmission(context) : [];
  const unsearched = Object.values(forecast?.samples ?? {}).flatMap((one) => one.unsearched ?? []);
  return [...tried, ...unsearched, ...judged.flatMap(({ questions }) => questions)];
}

/** Names the webhooks and policies that a dry run would have asked, and how to let the gate ask them. */
function guardsText(context: Context, key: string): string {
  const { forecast, namespace } = context.now;
  const own = { ...namespace, namespace: '' };
  const content = countsOf(forecast?.present ?? { content: [] }).find(
    ({ type }) => typeName(type) === key.split('/')[0],
  );
  if (content === undefined && !key.startsWith(NAMESPACE_TYPE.resource)) return '';
  const asked =
    key === FINALIZE.resource
      ? askedAbout(context, 'UPDATE', FINALIZE, own)
      : askedAbout(context, 'DELETE', content?.type ?? NAMESPACE_TYPE, content?.sample ?? own);
  const remedy =
    key === FINALIZE.resource
      ? 'the right to update namespaces/finalize lets the gate try it'
      : 'rbac/forecast.yaml lets the gate try it by dry runs';
  return asked === undefined || asked.length === 0
    ? ''
    : `; asked is ${listNames(asked.map(({ text }) => text))}: ${remedy}`;
}

/** Reports whether a policy denies the request that it is asked about; undefined if that cannot be evaluated. */
function denies(policy: PolicyFacts, request: AdmissionRequest): boolean | undefined {
  const results = (policy.validations ?? []).map(({ expression }) =>
    evaluateCondition(expression, request),
  );
  if (results.includes(false)) return true;
  return results.includes(undefined) ? undefined : false;
}

/** Admission of the deletion of an object, as the namespace controller will send it. */
interface Judgement {
  results: RuleResult[];
  /** What decides and could not be known. */
  questions: NotInspected[];
}

/** Who may refuse a deletion: what only warns or audits does not. */
function guardsOfDeletion(context: Context, type: ResourceType): Guard[] {
  return guardsFor(context, 'DELETE', type).filter(
    ({ binding }) => binding?.actions.includes('Deny') !== false,
  );
}

/**
 * Judges a deletion for the user that will send it: what the gate's dry run was answered, webhooks that cannot answer,
 * and policies and conditions that look at the user. What they answer to the gate says nothing about others.
 */
function judgeDeletion(
  context: Context,
  type: ResourceType,
  object: Candidate,
  trial: Trial | undefined,
): Judgement {
  const who = type === NAMESPACE_TYPE ? 'the user who deletes it' : 'the namespace controller';
  const [real] = realRequests(context, 'DELETE', type, object);
  const does = `DELETE of ${typeName(type)}`;
  const judgement: Judgement = { results: [], questions: [] };
  const ask = ({ text }: Guard, why: string): void => {
    const what = `whether admission lets ${who} delete ${typeName(type)}`;
    judgement.questions.push({ what, reason: `${text} ${why}` });
  };
  const add = (result: RuleResult): void => {
    const isKnown = judgement.results.some((one) => idOf(one) === idOf(result));
    if (!isKnown) judgement.results.push(result);
  };
  const guards = guardsOfDeletion(context, type);
  const said = trial?.answer === 'refused' ? classifyErrorText(trial.message) : [];
  for (const error of said.filter(isAdmissionError)) {
    const guard = guards.find((one) => isSaidBy(context, error, one));
    const isDecided = guard?.policy === undefined || denies(guard.policy, real);
    const isReal = guard?.dependsOnUser ? isAsked(guard, real) && isDecided : true;
    if (isReal === true) add(admissionResult(context, error, does));
    if (isReal === undefined && guard)
      ask(guard, `refused it to this gate, and looks at who asks: ${error.text}`);
  }
  for (const guard of guards) {
    const { webhook, policy, binding } = guard;
    const asked = isAsked(guard, real);
    if (asked === false) continue;
    const dead = webhook && deadWebhook(context, webhook, does);
    if (dead !== undefined) {
      if (asked) add(dead);
      else ask(guard, 'does not answer, and its match conditions could not be evaluated');
    }
    if (dead !== undefined || !guard.dependsOnUser || trial === undefined) continue;
    if (policy === undefined) {
      if (isAsked(guard, { ...real, requester: 'unnamed' }) === true) continue;
      const perhaps = asked ? '' : 'perhaps ';
      const why = 'by its match conditions, and was not asked about the dry run of this gate';
      ask(guard, `is asked ${perhaps}${why}`);
      continue;
    }
    const isDenied = denies(policy, real);
    if (asked === true && isDenied === true) {
      const failing = policy.validations?.find(
        ({ expression }) => evaluateCondition(expression, real) === false,
      );
      const message = failing?.message || `expression ${failing?.expression} is false for ${who}`;
      const text = `its expressions, evaluated for ${who}`;
      const error = { policy: policy.name, binding: binding?.name, message, text };
      add(admissionResult(context, { kind: 'policy-denied', ...error }, does));
    } else if (isDenied !== false) {
      ask(guard, 'looks at who asks, and its expressions could not be evaluated');
    }
  }
  return judgement;
}

function isSaidBy(
  context: Context,
  error: AdmissionError,
  { webhook, policy, binding }: Guard,
): boolean {
  if (error.kind === 'policy-denied') {
    return policy?.name === error.policy && (error.binding ?? binding?.name) === binding?.name;
  }
  return webhook !== undefined && webhook === findWebhook(context, error);
}

/** A search for an object of a type that a guard is asked about, where none of the known ones is certain to be. */
export interface SampleSearch {
  key: string;
  type: ResourceType;
  /** What the search is about: "policy keep, bound by keep". */
  text: string;
  labelSelector: string;
  isMeant: (candidate: Candidate) => boolean;
}

/** Returns which objects have to be looked for, so that each guard is asked about one that concerns it. */
export function samplesWanted(
  context: Context,
  type: ResourceType,
  known: readonly Candidate[],
): SampleSearch[] {
  const concerns = (guard: Guard, candidate: Candidate): boolean => {
    const [request] = realRequests(context, 'DELETE', type, candidate);
    return (
      isAsked(guard, request) === true && (!guard.policy || denies(guard.policy, request) !== false)
    );
  };
  return guardsOfDeletion(context, type)
    .filter((guard) => isSelective(guard) && !known.some((one) => concerns(guard, one)))
    .map((guard) => ({
      key: `${typeName(type)} ${guard.text}`,
      type,
      text: guard.text,
      labelSelector: objectSelectorOf(guard).map(selectorText).join(','),
      isMeant: (candidate) => concerns(guard, candidate),
    }));
}

/** Reports whether what the guard makes of an object depends on the object. */
function isSelective(guard: Guard): boolean {
  const { webhook, policy } = guard;
  const texts = [
    ...((webhook ?? policy)?.matchConditions ?? []),
    ...(policy?.validations ?? []).map(({ expression }) => expression),
  ];
  const names = policy?.rules.flatMap(({ resourceNames }) => resourceNames) ?? [];
  return (
    objectSelectorOf(guard).length + names.length > 0 ||
    texts.some((text) => /\b(?:o|oldO)bject\b/.test(text))
  );
}

/** Kubernetes label selectors, apimachinery pkg/labels/selector.go. */
function selectorText({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'In':
    case 'NotIn':
      return `${key} ${operator.toLowerCase()} (${values.join(',')})`;
    case 'Exists':
      return key;
    default:
      return `!${key}`;
  }
}

/** Objects of one type that were looked at as samples, each once. */
export function samplesOf({ now }: Context, type: ResourceType): (ObjectFacts & Candidate)[] {
  const found = Object.entries(now.forecast?.samples ?? {}).flatMap(([key, { sample }]) =>
    key.startsWith(`${typeName(type)} `) && sample !== undefined ? [sample] : [],
  );
  return [...new Map(found.map((one) => [one.uid, one])).values()];
}
