import { FINALIZE, NAMESPACE_TYPE, typeName } from '../../model/facts/metadata.ts';
import type {
  Candidate,
  LabelRequirement,
  MatchRule,
  PolicyBindingFacts,
  PolicyFacts,
  ResourceType,
  WebhookFacts,
} from '../../model/snapshot.ts';
import { type Context, itemsIn, webhooksOf, withService } from '../context.ts';
import type { Account } from '../rights.ts';
import { type AdmissionRequest, evaluateCondition } from './expressions.ts';

// Which webhooks and policies the API server asks about a request (apiserver pkg/admission/plugin).

export const ADMISSION_SOURCES = [
  'validatingWebhooks',
  'mutatingWebhooks',
  'validatingPolicies',
  'validatingPolicyBindings',
  'mutatingPolicies',
  'mutatingPolicyBindings',
] as const;

export type Operation = AdmissionRequest['operation'];

/** A webhook, or a policy with one of its bindings, whose rules and selectors match a request. */
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

export function policiesOf({ now: { cluster } }: Context): PolicyFacts[] {
  return [...itemsIn(cluster.validatingPolicies), ...itemsIn(cluster.mutatingPolicies)];
}

export function bindingsOf({ now: { cluster } }: Context): PolicyBindingFacts[] {
  return [...itemsIn(cluster.validatingPolicyBindings), ...itemsIn(cluster.mutatingPolicyBindings)];
}

/** Lists the guards that the API server may apply to requests for the type; a policy's exclusions are not evaluated. */
export function guardsFor(
  context: Context,
  operation: Operation,
  type: ResourceType,
  place = context.now.namespace.labels,
): Guard[] {
  const isHere = ({ namespaceSelector }: WebhookFacts | PolicyFacts | PolicyBindingFacts) =>
    matchesPlace(place, namespaceSelector, type);
  const looksAt = (owner: WebhookFacts | PolicyFacts): string[] => [
    ...(owner.dependsOnUser ? ['who asks'] : []),
    ...(owner.dependsOnDryRun ? ['whether it is a dry run'] : []),
    // During a deletion, a dry run sees what the real request sees.
    ...(owner.dependsOnDeletion && context.now.forecast
      ? ['whether something is being deleted']
      : []),
  ];
  const webhooks = webhooksOf(context)
    .filter(isHere)
    .filter(({ matchPolicy, rules }) =>
      rules.some((rule) => matchesRule(rule, operation, type, matchPolicy === 'Exact')),
    )
    .map((webhook): Guard => {
      const { kind, name } = webhook.configuration;
      return {
        text: `webhook ${webhook.name} of ${kind} ${name}`,
        ...{ webhook, looksAt: looksAt(webhook), matchConditions: webhook.matchConditions },
        isMutating: kind === 'MutatingWebhookConfiguration',
        mayDeny: true,
        objectSelector: webhook.objectSelector,
      };
    });
  const bound = policiesOf(context)
    .filter(isHere)
    .filter(({ rules }) => rules.some((rule) => matchesRule(rule, operation, type)))
    .flatMap((policy) =>
      bindingsOf(context)
        .filter((binding) => isHere(binding) && binding.policy === policy.name)
        .map(
          (binding): Guard => ({
            text: `policy ${policy.name}, bound by ${binding.name}`,
            ...{ policy, binding, looksAt: looksAt(policy) },
            matchConditions: policy.matchConditions ?? [],
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
  const isMeant = ({ resourceNames: names, ...rule }: MatchRule): boolean =>
    matchesRule(rule, operation, type) &&
    (names.length === 0 || (!isOfMany && (name === undefined || names.includes(name))));
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

/** Returns the guards of a request for an object; undefined if they were not read, or the labels of its namespace. */
export function guardsAsked(
  context: Context,
  operation: Operation,
  type: ResourceType,
  object: Candidate,
): Guard[] | undefined {
  const { cluster, namespace } = context.now;
  const isElsewhere = type.namespaced && object.namespace !== namespace.name;
  const isRead = ADMISSION_SOURCES.every((key) => cluster[key]?.ok === true);
  if (!isRead || isElsewhere) return undefined;
  const request = realRequest(context, operation, type, object);
  return guardsFor(context, operation, type).filter((one) => isGuardAsked(one, request) !== false);
}

/** Returns the request as it will be sent: by the account of an owner, the namespace controller, or anyone. */
export function realRequest(
  { now: { namespace } }: Context,
  operation: Operation,
  type: ResourceType,
  // A snapshot has only some of the annotations of an object: a condition about them is unknown, not false.
  { name, namespace: place, labels, allAnnotations: annotations }: Candidate,
  owner?: Account,
): AdmissionRequest {
  const isOfController = operation === 'DELETE' || typeName(type) === typeName(FINALIZE);
  const account = isOfController ? NAMESPACE_CONTROLLER : owner;
  return {
    ...{ operation, type, object: { name, namespace: place, labels, annotations } },
    namespaceLabels: namespace.labels,
    requester: type === NAMESPACE_TYPE ? 'unnamed' : account && requesterOf(account),
  };
}

const NAMESPACE_CONTROLLER: Account = { namespace: 'kube-system', name: 'namespace-controller' };

function requesterOf({ namespace, name }: Account) {
  const all = 'system:authenticated';
  if (namespace === undefined) return { username: name, groups: [all] };
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, all];
  return { username: `system:serviceaccount:${namespace}:${name}`, groups };
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
