import type {
  Candidate,
  LabelRequirement,
  MatchRule,
  PolicyBindingFacts,
  PolicyFacts,
  ResourceType,
  WebhookFacts,
} from '../../model/snapshot.ts';
import { type Context, itemsIn, typeName, webhooksOf, withService } from '../context.ts';
import { type Account, NAMESPACE_CONTROLLERS } from '../rights.ts';
import {
  type AdmissionRequest,
  evaluateCondition,
  meetsConditions,
  type Requester,
} from './expressions.ts';

/** A webhook or policy that the API server applies before it changes anything. */
export const ADMISSION_SOURCES = [
  'validatingWebhooks',
  'mutatingWebhooks',
  'validatingPolicies',
  'validatingPolicyBindings',
  'mutatingPolicies',
  'mutatingPolicyBindings',
] as const;

export function policiesOf({ now: { cluster } }: Context): PolicyFacts[] {
  return [...itemsIn(cluster.validatingPolicies), ...itemsIn(cluster.mutatingPolicies)];
}

export function bindingsOf({ now: { cluster } }: Context): PolicyBindingFacts[] {
  return [...itemsIn(cluster.validatingPolicyBindings), ...itemsIn(cluster.mutatingPolicyBindings)];
}

/** A webhook, or a policy with one of its bindings, whose rules and namespace selectors match a request. */
export interface Guard {
  /** "policy keep, bound by keep". */
  text: string;
  webhook?: WebhookFacts;
  policy?: PolicyFacts;
  binding?: PolicyBindingFacts;
  isMutating: boolean;
  /** The part of a request that its expressions read and that a dry run of the gate has differently. */
  looksAt: readonly string[];
}

export type Operation = AdmissionRequest['operation'];

/**
 * Lists the guards that the API server may apply to requests for the type; exclusions of a policy are not
 * evaluated.
 */
export function guardsFor(context: Context, operation: Operation, type: ResourceType): Guard[] {
  const { labels } = context.now.namespace;
  const looksAt = (read: WebhookFacts | PolicyFacts): string[] => [
    ...(read.dependsOnUser ? ['who asks'] : []),
    ...(read.dependsOnDryRun ? ['whether it is a dry run'] : []),
    // During a deletion, a dry run sees what the real request sees.
    ...(read.dependsOnDeletion && context.now.forecast !== undefined
      ? ['whether something is being deleted']
      : []),
  ];
  const isHere = ({ namespaceSelector }: PolicyFacts | PolicyBindingFacts): boolean =>
    matchesPlace(labels, namespaceSelector, type);
  const policies = policiesOf(context).filter(
    (policy) =>
      policy.rules.some((rule) => matchesRule(rule, operation, type, false)) && isHere(policy),
  );
  return [
    ...webhooksOf(context)
      .filter((webhook) => matchesWebhook(webhook, operation, type, labels))
      .map((webhook) => {
        const { kind, name } = webhook.configuration;
        return {
          text: `webhook ${webhook.name} of ${kind} ${name}`,
          webhook,
          isMutating: kind === 'MutatingWebhookConfiguration',
          looksAt: looksAt(webhook),
        };
      }),
    ...bindingsOf(context)
      .filter(isHere)
      .flatMap((binding) =>
        policies
          .filter(({ name }) => name === binding.policy)
          .map((policy) => ({
            text: `policy ${policy.name}, bound by ${binding.name}`,
            policy,
            binding,
            isMutating: policy.kind === 'MutatingAdmissionPolicy',
            looksAt: looksAt(policy),
          })),
      ),
  ];
}

/** Returns the labels that an object needs for the guard to be asked about it. */
export function objectSelectorOf({ webhook, policy, binding }: Guard): LabelRequirement[] {
  return [webhook, policy, binding].flatMap((one) => one?.objectSelector ?? []);
}

/** Reports whether the guard can refuse anything: a binding that only warns or audits does not. */
export function mayDeny({ binding }: Guard): boolean {
  return binding?.actions.includes('Deny') !== false;
}

/** Reports whether the guard is asked about the request; undefined if its conditions cannot be evaluated. */
export function isGuardAsked(guard: Guard, request: AdmissionRequest): boolean | undefined {
  const { webhook, policy } = guard;
  const { operation, type, object } = request;
  // A deletion of a collection has no name (apiserver, rest.AdmissionToValidateObjectDeleteFunc).
  const isOfMany = operation === 'DELETE' && type.verbs.includes('deletecollection');
  const isNamed = ({ resourceNames: names }: MatchRule): boolean =>
    names.length === 0 || (!isOfMany && names.includes(object.name));
  const rules = policy?.rules.filter((rule) => matchesRule(rule, operation, type, false));
  if (rules?.some(isNamed) === false) return false;
  if (!matchesLabels(objectSelectorOf(guard), object.labels)) return false;
  return meetsConditions((webhook ?? policy)?.matchConditions ?? [], request);
}

/** Returns the first validation that is false for the request; undefined: which one cannot be evaluated. */
export function denialOf(
  { validations = [], variables = [] }: PolicyFacts,
  request: AdmissionRequest,
): { expression: string; message: string } | 'none' | undefined {
  const results = validations.map(({ expression }) =>
    evaluateCondition(expression, request, variables),
  );
  return validations[results.indexOf(false)] ?? (results.includes(undefined) ? undefined : 'none');
}

/** Reports whether the guard is asked about the request and may refuse it. */
export function mayRefuse(guard: Guard, request: AdmissionRequest): boolean {
  const mayDeny = guard.policy === undefined || denialOf(guard.policy, request) !== 'none';
  return isGuardAsked(guard, request) === true && mayDeny;
}

/** Returns the first object, and one more for each guard that applies only to updates of other objects. */
export function oneForEachGuard<T extends Candidate>(
  context: Context,
  type: ResourceType,
  objects: readonly T[],
): T[] {
  const meant = guardsFor(context, 'UPDATE', type).map((guard) =>
    objects.find((object) => mayRefuse(guard, realRequests(context, 'UPDATE', type, object)[0])),
  );
  return [...new Set([objects[0], ...meant])].filter((object) => object !== undefined);
}

/**
 * Returns the webhooks and bound policies that the API server applies to such a request, in a fixed order. Undefined if
 * that is not known: a list was not read, conditions of a webhook cannot be evaluated, the object is in a namespace
 * whose labels were not read.
 */
export function guardsAsked(
  context: Context,
  operation: Operation,
  type: ResourceType,
  object: Candidate,
): Guard[] | undefined {
  const { cluster, namespace } = context.now;
  const isElsewhere = type.namespaced && object.namespace !== namespace.name;
  if (isElsewhere || ADMISSION_SOURCES.some((key) => cluster[key]?.ok !== true)) return undefined;
  const requests = realRequests(context, operation, type, object);
  const guards = guardsFor(context, operation, type).map((guard) => {
    const [first, ...others] = requests.map((request) => isGuardAsked(guard, request));
    return { guard, asked: others.every((other) => other === first) ? first : undefined };
  });
  if (guards.some(({ guard, asked }) => guard.webhook && asked === undefined)) return undefined;
  return guards
    .flatMap(({ guard, asked }) => (asked === false ? [] : [guard]))
    .sort((a, b) => (a.text < b.text ? -1 : 1));
}

/** Returns a workload's account as the API server sees it. */
export function requesterOf({ namespace, name }: Account): Requester {
  if (namespace === undefined) return { username: name, groups: ['system:authenticated'] };
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  const username = `system:serviceaccount:${namespace}:${name}`;
  return { username, groups: [...groups, 'system:authenticated'] };
}

/** Returns the kubelet of a node as the API server sees it (kubernetes pkg/auth/nodeidentifier). */
export function kubeletOf(node: string): Requester {
  return { username: `system:node:${node}`, groups: ['system:nodes', 'system:authenticated'] };
}

/**
 * Returns the requests that may be sent, the most likely first: the gate's own dry run says nothing about their
 * user.
 */
export function realRequests(
  { now: { namespace } }: Context,
  operation: Operation,
  type: ResourceType,
  // A snapshot has only some of the annotations of an object: a condition about them is unknown, not false.
  { name, namespace: place, labels, allAnnotations: annotations }: Candidate,
): [AdmissionRequest, ...AdmissionRequest[]] {
  const object = { name, namespace: place, labels, annotations };
  const request = {
    ...{ operation, type, object, namespaceLabels: namespace.labels },
    // Finalizers are removed from terminating objects, whose namespace is terminating then.
    ...{ isDryRun: false, isTerminating: operation === 'UPDATE', isNamespaceTerminating: true },
  };
  const [requester, ...others] = sendersOf(`${operation} ${typeName(type)}`);
  return [{ ...request, requester }, ...others.map((other) => ({ ...request, requester: other }))];
}

/** Returns the same request as the gate has sent it, as a dry run. */
export function asTried(
  { now: { forecast } }: Context,
  request: AdmissionRequest,
): AdmissionRequest {
  const isUnderWay = forecast === undefined;
  return {
    ...request,
    ...{ requester: 'unnamed', isDryRun: true },
    isTerminating: request.isTerminating && isUnderWay,
    isNamespaceTerminating: isUnderWay,
  };
}

/** Returns who may send a request: anyone deletes a Namespace, and any controller removes a finalizer. */
function sendersOf(request: string): AdmissionRequest['requester'][] {
  if (request === 'DELETE namespaces') return ['unnamed'];
  return /^DELETE |^UPDATE namespaces\/finalize$/.test(request)
    ? NAMESPACE_CONTROLLERS.map(requesterOf)
    : [undefined];
}

/** Returns the webhooks whose Service such a request needs. */
export function closedWebhooks(
  context: Context,
  operation: Operation,
  type: ResourceType,
  labels: Record<string, string>,
  place = context.now.namespace.labels,
) {
  return withService(webhooksOf(context)).filter(
    (webhook) =>
      webhook.failurePolicy === 'Fail' &&
      matchesWebhook(webhook, operation, type, place) &&
      matchesLabels(webhook.objectSelector, labels),
  );
}

/** Reports whether a webhook is asked (apiserver pkg/admission/plugin/webhook/predicates). */
function matchesWebhook(
  { matchPolicy, namespaceSelector, rules }: WebhookFacts,
  operation: Operation,
  type: ResourceType,
  place: Record<string, string>,
): boolean {
  return (
    rules.some((rule) => matchesRule(rule, operation, type, matchPolicy === 'Exact')) &&
    matchesPlace(place, namespaceSelector, type)
  );
}

/**
 * Reports whether a namespace selector matches. It is applied to a Namespace by its own labels, and not to other
 * cluster-scoped objects (apiserver pkg/admission/plugin/webhook/predicates/namespace/matcher.go).
 */
function matchesPlace(
  place: Record<string, string>,
  selector: readonly LabelRequirement[],
  type: ResourceType,
): boolean {
  const hasLabels = type.namespaced || /^namespaces(?:\/|$)/.test(typeName(type));
  return !hasLabels || matchesLabels(selector, place);
}

/** Matches a rule; with matchPolicy Equivalent, a request in another version of the type is converted and matched. */
export function matchesRule(
  rule: MatchRule,
  operation: Operation,
  { group, version, resource, namespaced }: ResourceType,
  isExact: boolean,
): boolean {
  const has = (list: readonly string[], value: string): boolean =>
    list.includes('*') || list.includes(value);
  const scope = namespaced ? 'Namespaced' : 'Cluster';
  return (
    has(rule.operations, operation) &&
    has(rule.apiGroups, group) &&
    (!isExact || has(rule.apiVersions, version)) &&
    has([rule.scope], scope) &&
    rule.resources.some((name) => reachesResource(name, resource))
  );
}

/**
 * Reports whether a pattern matches: `*` matches no subresource, `pods/*` matches pods (apiserver
 * pkg/admission/plugin/webhook/predicates/rules).
 */
function reachesResource(pattern: string, asked: string): boolean {
  const [own = '', sub = ''] = pattern.split('/');
  const [resource, subresource = ''] = asked.split('/');
  return [resource, '*'].includes(own) && [subresource, '*'].includes(sub);
}

/** Reports whether the labels meet all requirements (apimachinery pkg/labels/selector.go). */
export function matchesLabels(
  requirements: readonly LabelRequirement[],
  labels: Record<string, string>,
): boolean {
  return requirements.every(({ key, operator, values }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    const isAmong = value !== undefined && (values.length === 0 || values.includes(value));
    return isAmong === (operator === 'In' || operator === 'Exists');
  });
}
