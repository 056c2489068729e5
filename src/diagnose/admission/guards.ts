import { FINALIZE, NAMESPACE_TYPE } from '../../model/facts/metadata.ts';
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
import type { Account } from '../rights.ts';
import { type AdmissionRequest, evaluateCondition, type Requester } from './expressions.ts';

// Which webhooks and policies the API server asks about a request (apiserver pkg/admission/plugin).

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
  /** Whether it can refuse anything: a binding that only warns or audits does not. */
  mayDeny: boolean;
  matchConditions: readonly string[];
  /** The labels that an object needs for the guard to be asked about it. */
  objectSelector: readonly LabelRequirement[];
  /** The part of a request that its expressions read and that a dry run of the gate has differently. */
  looksAt: readonly string[];
}

export type Operation = AdmissionRequest['operation'];

/** Lists the guards that the API server may apply to requests for the type; a policy's exclusions are not evaluated. */
export function guardsFor(
  context: Context,
  operation: Operation,
  type: ResourceType,
  labels = context.now.namespace.labels,
): Guard[] {
  const { forecast } = context.now;
  const isHere = ({ namespaceSelector }: WebhookFacts | PolicyFacts | PolicyBindingFacts) =>
    matchesPlace(labels, namespaceSelector, type);
  const common = ({ matchConditions = [], ...owner }: WebhookFacts | PolicyFacts) => ({
    matchConditions,
    looksAt: [
      ...(owner.dependsOnUser ? ['who asks'] : []),
      ...(owner.dependsOnDryRun ? ['whether it is a dry run'] : []),
      // During a deletion, a dry run sees what the real request sees.
      ...(owner.dependsOnDeletion && forecast ? ['whether something is being deleted'] : []),
    ],
  });
  const webhooks = webhooksOf(context)
    .filter(isHere)
    .filter(({ matchPolicy, rules }) =>
      rules.some((rule) => matchesRule(rule, operation, type, matchPolicy === 'Exact')),
    )
    .map((webhook): Guard => {
      const { kind, name } = webhook.configuration;
      return {
        ...common(webhook),
        text: `webhook ${webhook.name} of ${kind} ${name}`,
        webhook,
        isMutating: kind === 'MutatingWebhookConfiguration',
        mayDeny: true,
        objectSelector: webhook.objectSelector,
      };
    });
  const policies = policiesOf(context).filter(
    (policy) => isHere(policy) && policy.rules.some((rule) => matchesRule(rule, operation, type)),
  );
  const bound = policies.flatMap((policy) =>
    bindingsOf(context)
      .filter((binding) => isHere(binding) && binding.policy === policy.name)
      .map(
        (binding): Guard => ({
          ...common(policy),
          text: `policy ${policy.name}, bound by ${binding.name}`,
          policy,
          binding,
          isMutating: policy.kind === 'MutatingAdmissionPolicy',
          mayDeny: binding.actions.includes('Deny'),
          objectSelector: [...policy.objectSelector, ...(binding.objectSelector ?? [])],
        }),
      ),
  );
  return [...webhooks, ...bound];
}

/** Reports whether the guard is asked about the request; undefined if its conditions cannot be evaluated. */
export function isGuardAsked(guard: Guard, request: AdmissionRequest): boolean | undefined {
  const { operation, type } = request;
  const { name, labels } = request.object;
  // A deletion of a collection has no name (apiserver, rest.AdmissionToValidateObjectDeleteFunc).
  const isOfMany = operation === 'DELETE' && type.verbs.includes('deletecollection');
  const isNamed = (names: readonly string[]): boolean =>
    names.length === 0 || (!isOfMany && (name === undefined || names.includes(name)));
  const isMeant = ({ resourceNames, ...rule }: MatchRule): boolean =>
    matchesRule(rule, operation, type) && isNamed(resourceNames);
  if (guard.policy?.rules.some(isMeant) === false) return false;
  if (labels && !matchesLabels(guard.objectSelector, labels)) return false;
  // One condition that is false is enough, whatever the others are (KEP-3716).
  const results = guard.matchConditions.map((one) => evaluateCondition(one, request));
  return results.includes(false) ? false : results.includes(undefined) ? undefined : true;
}

/** Returns the first validation that is false for the request; undefined: which one cannot be evaluated, or a webhook. */
export function denialOf(
  { policy }: Guard,
  request: AdmissionRequest,
): { expression: string; message: string } | 'none' | undefined {
  if (policy === undefined) return undefined;
  const { validations = [], variables } = policy;
  const results = validations.map(({ expression }) =>
    evaluateCondition(expression, request, variables),
  );
  return validations[results.indexOf(false)] ?? (results.includes(undefined) ? undefined : 'none');
}

/** Reports whether the guard is asked about the request and may refuse it. */
export function mayRefuse(guard: Guard, request: AdmissionRequest): boolean {
  return isGuardAsked(guard, request) === true && denialOf(guard, request) !== 'none';
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
  const request = realRequest(context, operation, type, object);
  const guards = guardsFor(context, operation, type).map((guard) => ({
    guard,
    asked: isGuardAsked(guard, request),
  }));
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

const NAMESPACE_CONTROLLER: Account = { namespace: 'kube-system', name: 'namespace-controller' };

/** Returns the request that will be sent: anyone deletes a Namespace, and any controller removes a finalizer. */
export function realRequest(
  { now: { namespace } }: Context,
  operation: Operation,
  type: ResourceType,
  // A snapshot has only some of the annotations of an object: a condition about them is unknown, not false.
  { name, namespace: place, labels, allAnnotations: annotations }: Candidate,
): AdmissionRequest {
  const isOfController = operation === 'DELETE' || typeName(type) === typeName(FINALIZE);
  const controller = isOfController ? requesterOf(NAMESPACE_CONTROLLER) : undefined;
  return {
    ...{ operation, type, object: { name, namespace: place, labels, annotations } },
    namespaceLabels: namespace.labels,
    requester: type === NAMESPACE_TYPE ? 'unnamed' : controller,
    // Finalizers are removed from terminating objects, whose namespace is terminating then.
    ...{ isDryRun: false, isTerminating: operation === 'UPDATE', isNamespaceTerminating: true },
  };
}

/** Returns the webhooks that fail closed and whose Service such a request needs. */
export function closedWebhooks(
  context: Context,
  operation: Operation,
  type: ResourceType,
  labels: Record<string, string>,
  place = context.now.namespace.labels,
) {
  const asked = guardsFor(context, operation, type, place)
    .filter(({ objectSelector }) => matchesLabels(objectSelector, labels))
    .flatMap(({ webhook }) => (webhook?.failurePolicy === 'Fail' ? [webhook] : []));
  return withService(asked);
}

/**
 * Reports whether a namespace selector matches. It is applied to a Namespace by its own labels, and not to other
 * cluster-scoped objects (predicates/namespace/matcher.go).
 */
function matchesPlace(
  place: Record<string, string>,
  selector: readonly LabelRequirement[],
  type: ResourceType,
): boolean {
  const hasLabels = type.namespaced || /^namespaces(?:\/|$)/.test(typeName(type));
  return !hasLabels || matchesLabels(selector, place);
}

/**
 * Matches a rule (predicates/rules): `*` matches no subresource, `pods/*` matches pods. With matchPolicy Equivalent, a
 * request in another version of the type is converted and matched.
 */
export function matchesRule(
  rule: Omit<MatchRule, 'resourceNames'>,
  operation: Operation,
  { group, version, resource: path, namespaced }: ResourceType,
  isExact = false,
): boolean {
  const has = (list: readonly string[], value: string): boolean =>
    list.includes('*') || list.includes(value);
  const [resource, subresource = ''] = path.split('/');
  return (
    has(rule.operations, operation) &&
    has(rule.apiGroups, group) &&
    (!isExact || has(rule.apiVersions, version)) &&
    has([rule.scope], namespaced ? 'Namespaced' : 'Cluster') &&
    rule.resources.some((pattern) => {
      const [own, sub = ''] = pattern.split('/');
      return [resource, '*'].includes(own) && [subresource, '*'].includes(sub);
    })
  );
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
