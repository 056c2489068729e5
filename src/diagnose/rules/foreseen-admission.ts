import { NAMESPACE_TYPE } from '../../model/facts.ts';
import type { NotInspected } from '../../model/finding.ts';
import type {
  Candidate,
  ObjectFacts,
  PolicyBindingFacts,
  PolicyFacts,
  ResourceType,
  Trial,
  WebhookFacts,
} from '../../model/snapshot.ts';
import {
  type AdmissionRequest,
  evaluateCondition,
  meetsConditions,
} from '../admission-expressions.ts';
import { backendOf } from '../backends.ts';
import { type Context, idOf, type RuleResult, typeName, webhooksOf } from '../context.ts';
import { type AdmissionError, classifyErrorText, isAdmissionError } from '../error-texts.ts';
import {
  admissionResult,
  bindingsOf,
  findWebhook,
  matchesLabels,
  matchesPlace,
  matchesRule,
  NAMESPACE_CONTROLLERS,
  policiesOf,
  unreachable,
} from './admission.ts';

/** Most clusters start kube-controller-manager with `--use-service-account-credentials`. */
const [NAMESPACE_CONTROLLER] = NAMESPACE_CONTROLLERS;

/** A webhook, or a policy with one of its bindings, whose rules and namespace selectors match a request. */
interface Guard {
  /** "policy keep, bound by keep". */
  text: string;
  webhook?: WebhookFacts;
  policy?: PolicyFacts;
  binding?: PolicyBindingFacts;
}

type Operation = 'UPDATE' | 'DELETE';

function guardsFor(context: Context, operation: Operation, type: ResourceType): Guard[] {
  const { labels } = context.now.namespace;
  const webhooks = webhooksOf(context).filter(
    ({ failurePolicy, matchPolicy, namespaceSelector, rules, url, service }) =>
      rules.some((rule) => matchesRule(rule, operation, type, matchPolicy === 'Exact')) &&
      matchesPlace(labels, namespaceSelector, type) &&
      (failurePolicy === 'Fail' || (url ?? service) !== undefined),
  );
  const isHere = ({ namespaceSelector }: PolicyFacts | PolicyBindingFacts): boolean =>
    matchesPlace(labels, namespaceSelector, type);
  const policies = policiesOf(context).filter(
    (policy) =>
      policy.rules.some((rule) => matchesRule(rule, operation, type, false)) && isHere(policy),
  );
  return [
    ...webhooks.map((webhook) => ({
      text: `webhook ${webhook.name} of ${webhook.configuration.kind} ${webhook.configuration.name}`,
      webhook,
    })),
    ...bindingsOf(context)
      .filter((binding) => isHere(binding) && binding.actions.includes('Deny'))
      .flatMap((binding) =>
        policies
          .filter(({ name }) => name === binding.policy)
          .map((policy) => ({
            text: `policy ${policy.name}, bound by ${binding.name}`,
            policy,
            binding,
          })),
      ),
  ];
}

function requestOf(
  context: Context,
  operation: Operation,
  type: ResourceType,
  { name, namespace, labels, allAnnotations }: Candidate,
  requester: AdmissionRequest['requester'],
): AdmissionRequest {
  const annotations = allAnnotations === undefined ? {} : { annotations: allAnnotations };
  const object = { name, namespace, labels, ...annotations };
  const namespaceLabels = context.now.namespace.labels;
  return { operation, type, object, namespaceLabels, requester };
}

/** Reports whether the guard is asked about the request; undefined if its conditions cannot be evaluated. */
function isAsked({ webhook, policy, binding }: Guard, request: AdmissionRequest) {
  const { labels, name } = request.object;
  const selectors = [webhook, policy, binding].map((one) => one?.objectSelector ?? []);
  const names = policy?.rules.map(({ resourceNames }) => resourceNames) ?? [];
  const isNamed =
    names.length === 0 || names.some((list) => list.length === 0 || list.includes(name));
  if (!isNamed || !selectors.every((selector) => matchesLabels(selector, labels))) return false;
  return meetsConditions((webhook ?? policy)?.matchConditions ?? [], request);
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
export interface Judgement {
  results: RuleResult[];
  /** What decides and could not be known. */
  questions: NotInspected[];
}

/**
 * Judges a request for the user that will send it: what the gate's dry run was answered, webhooks that cannot answer,
 * and policies and conditions that look at the user. What they answer to the gate says nothing about others.
 */
export function judgeAdmission(
  context: Context,
  operation: Operation,
  type: ResourceType,
  object: Candidate,
  trial: Trial | undefined,
): Judgement {
  const isNamespace = type === NAMESPACE_TYPE;
  const requester = isNamespace ? 'unnamed' : NAMESPACE_CONTROLLER;
  const who = isNamespace ? 'the user who deletes it' : 'the namespace controller';
  const real = requestOf(context, operation, type, object, requester);
  const unnamed = requestOf(context, operation, type, object, 'unnamed');
  const does = `${operation} of ${typeName(type)}`;
  const judgement: Judgement = { results: [], questions: [] };
  const ask = ({ text }: Guard, why: string): void => {
    const reason = `${text} ${why}`;
    judgement.questions.push({
      what: `whether admission lets ${who} ${verbFor(type, operation)}`,
      reason,
    });
  };
  const add = (result: RuleResult): void => {
    const isKnown = judgement.results.some((one) => idOf(one) === idOf(result));
    if (!isKnown) judgement.results.push(result);
  };
  const guards = guardsFor(context, operation, type);
  const said = trial?.answer === 'refused' ? classifyErrorText(trial.message) : [];
  for (const error of said.filter(isAdmissionError)) {
    const guard = guards.find((one) => isSaidBy(context, error, one));
    const { dependsOnUser = false } = guard?.webhook ?? guard?.policy ?? {};
    const isDecided = guard?.policy === undefined ? true : denies(guard.policy, real);
    const isReal = !dependsOnUser || guard === undefined ? true : isAsked(guard, real) && isDecided;
    if (isReal === true) add(admissionResult(context, error, does));
    if (isReal === undefined && guard)
      ask(guard, `refused it to this gate, and looks at who asks: ${error.text}`);
  }
  for (const guard of guards) {
    const { webhook, policy, binding } = guard;
    const asked = isAsked(guard, real);
    if (asked === false) continue;
    if (webhook?.failurePolicy === 'Fail' && webhook.service !== undefined) {
      const { name, service } = webhook;
      const backend = backendOf(context, service);
      if (backend.isDead === true) {
        if (asked === undefined)
          ask(guard, 'does not answer, and its match conditions could not be evaluated');
        else {
          const evidence = [`it matches ${does} there and fails closed`];
          add(
            unreachable(context, webhook, {
              name,
              service,
              failure: backend.failure,
              request: does,
              evidence,
            }),
          );
        }
        continue;
      }
    }
    const isUserChecked = (webhook ?? policy)?.dependsOnUser === true;
    if (!isUserChecked || trial === undefined) continue;
    if (webhook !== undefined && isAsked(guard, unnamed) !== true) {
      ask(
        guard,
        `is asked ${asked ? '' : 'perhaps '}by its match conditions, and was not asked about the dry run of this gate`,
      );
    }
    const isDenied = policy && denies(policy, real);
    if (policy !== undefined && asked === true && isDenied === true) {
      const failing = policy.validations?.find(
        ({ expression }) => evaluateCondition(expression, real) === false,
      );
      const message = failing?.message || `expression ${failing?.expression} is false for ${who}`;
      const error = {
        kind: 'policy-denied',
        policy: policy.name,
        binding: binding?.name,
        message,
      } as const;
      add(
        admissionResult(context, { ...error, text: `its expressions, evaluated for ${who}` }, does),
      );
    } else if (policy !== undefined && isDenied !== false) {
      ask(guard, 'looks at who asks, and its expressions could not be evaluated');
    }
  }
  return judgement;
}

function verbFor(type: ResourceType, operation: Operation): string {
  return operation === 'DELETE' ? `delete ${typeName(type)}` : 'end the namespace';
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
    const request = requestOf(context, 'DELETE', type, candidate, NAMESPACE_CONTROLLER);
    if (isAsked(guard, request) !== true) return false;
    const isDenied = guard.policy && denies(guard.policy, request);
    return isDenied !== false;
  };
  return guardsFor(context, 'DELETE', type)
    .filter((guard) => isSelective(guard) && !known.some((one) => concerns(guard, one)))
    .map((guard) => ({
      key: `${typeName(type)} ${guard.text}`,
      type,
      text: guard.text,
      labelSelector: [guard.webhook, guard.policy, guard.binding]
        .flatMap((one) => (one?.objectSelector ?? []).map(selectorText))
        .join(','),
      isMeant: (candidate) => concerns(guard, candidate),
    }));
}

/** Reports whether what the guard makes of an object depends on the object. */
function isSelective({ webhook, policy, binding }: Guard): boolean {
  const selectors = [webhook, policy, binding].flatMap((one) => one?.objectSelector ?? []);
  const texts = [
    ...((webhook ?? policy)?.matchConditions ?? []),
    ...(policy?.validations ?? []).map(({ expression }) => expression),
  ];
  const names = policy?.rules.flatMap(({ resourceNames }) => resourceNames) ?? [];
  return (
    selectors.length + names.length > 0 || texts.some((text) => /\b(?:o|oldO)bject\b/.test(text))
  );
}

/** Kubernetes label selectors, apimachinery pkg/labels/selector.go. */
function selectorText({ key, operator, values }: PolicyFacts['objectSelector'][number]): string {
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
