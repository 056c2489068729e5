import { FINALIZE, NAMESPACE_TYPE, typeName } from '../../model/facts/metadata.ts';
import { itemsIn } from '../../model/read.ts';
import type * as Facts from '../../model/snapshot.ts';
import { webhooksOf, withService } from '../content.ts';
import { type Context, remember } from '../context.ts';
import { type Account, hasOne, NAMESPACE_CONTROLLER } from '../rights.ts';
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

/** A webhook, or a policy with one of its bindings. */
export interface Guard {
  /** "policy keep (binding keep)". */
  text: string;
  /** The configuration of the webhook, or the policy. */
  source: Pick<Facts.PolicyFacts, 'kind' | 'name'>;
  own: Facts.WebhookFacts | Facts.PolicyFacts;
  webhook?: Facts.WebhookFacts;
  policy?: Facts.PolicyFacts;
  binding?: Facts.PolicyBindingFacts;
}

export const everyGuard = remember((context: Context): Guard[] => {
  const { cluster } = context.now;
  const webhooks = webhooksOf(context).map((webhook): Guard => {
    const { configuration: source, name } = webhook;
    const text = `webhook ${name} of ${source.kind} ${source.name}`;
    return { text, source, own: webhook, webhook };
  });
  const families = [
    { policies: cluster.validatingPolicies, bindings: cluster.validatingPolicyBindings },
    { policies: cluster.mutatingPolicies, bindings: cluster.mutatingPolicyBindings },
  ];
  const bound = families.flatMap(({ policies, bindings }) =>
    itemsIn(bindings).flatMap((binding): Guard[] => {
      const policy = itemsIn(policies).find(({ name }) => name === binding.policy);
      // One that only warns or audits is asked, and refuses nothing.
      const mayDeny = binding.actions.length === 0 || binding.actions.includes('Deny');
      if (policy === undefined || !mayDeny) return [];
      const text = `policy ${policy.name} (binding ${binding.name})`;
      return [{ text, source: policy, own: policy, policy, binding }];
    }),
  );
  return [...webhooks, ...bound];
});

/** Lists the guards that are asked about a request, or may be. */
export function guardsOf(context: Context, request: AdmissionRequest): Guard[] {
  return everyGuard(context).filter((guard) => isAsked(guard, request) !== false);
}

/** Reports whether the guard is asked about the request; undefined: its conditions cannot be evaluated. A policy's exclusions are not. */
export function isAsked({ binding, own }: Guard, request: AdmissionRequest): boolean | undefined {
  const { namespaceLabels, object, operation, type } = request;
  // A deletion of a collection has no name (apiserver, rest.AdmissionToValidateObjectDeleteFunc).
  const isOfMany = operation === 'DELETE' && type.verbs.includes('deletecollection');
  const name = isOfMany ? '' : object.name;
  const isExact = 'matchPolicy' in own && own.matchPolicy === 'Exact';
  const isMeant = own.rules.some(
    ({ resourceNames: names, ...rule }) =>
      matchesRule(rule, operation, type, isExact) &&
      (names.length === 0 || name === undefined || names.includes(name)),
  );
  const hasPlace = namespaceOf(request) !== undefined;
  const selects = (all: Requirements = [], labels?: Record<string, string>) =>
    all.length === 0 || (labels && matchesLabels(all, labels));
  const isSelected = [own, ...(binding ? [binding] : [])].flatMap((one) => [
    !hasPlace || selects(one.namespaceSelector, namespaceLabels),
    selects(one.objectSelector, object.labels),
  ]);
  if (!isMeant || isSelected.includes(false)) return false;
  // One condition that is false is enough, whatever the others are (KEP-3716).
  const conditions = own.matchConditions ?? [];
  const results = [...isSelected, ...conditions.map((one) => evaluateCondition(one, request))];
  return results.includes(false) ? false : results.includes(undefined) ? undefined : true;
}

/** Returns the namespace that selectors look at: that of the object, a Namespace itself, or none (predicates/namespace/matcher.go). */
export function namespaceOf({ object, type }: AdmissionRequest): string | undefined {
  if (type.namespaced) return object.namespace;
  return /^namespaces(?:\/|$)/.test(typeName(type)) ? object.name : undefined;
}

/** Returns the first validation that is false for the request; undefined: which one cannot be evaluated, or a webhook. */
export function denialOf({ binding, policy }: Guard, request: AdmissionRequest) {
  // Without its parameters a policy may deny, whatever its expressions say.
  if (policy === undefined || binding?.parametersIn !== undefined) return undefined;
  const { validations = [], variables } = policy;
  const results = validations.map((one) => evaluateCondition(one.expression, request, variables));
  return validations[results.indexOf(false)] ?? (results.includes(undefined) ? undefined : 'none');
}

type Target = Omit<Facts.Candidate, 'name'> & { name?: string };

/** Returns the request as it will be sent: by the account of an owner, the namespace controller, or anyone. */
export function realRequest(
  context: Context,
  operation: Operation,
  type: Facts.ResourceType,
  { name, namespace: place, labels, allAnnotations: annotations }: Target,
  owner?: Account,
): AdmissionRequest {
  const { cluster, namespace } = context.now;
  const isOfController = operation === 'DELETE' || typeName(type) === typeName(FINALIZE);
  const account = isOfController ? NAMESPACE_CONTROLLER : owner;
  const other = itemsIn(cluster.namespaces).find((one) => one.name === place);
  return {
    // A snapshot has only some of the annotations of an object: a condition about them is unknown, not false.
    ...{ operation, type, object: { name, namespace: place, labels, annotations } },
    namespaceLabels: ['', namespace.name].includes(place) ? namespace.labels : other?.labels,
    requester: type === NAMESPACE_TYPE ? 'unnamed' : account && requesterOf(account),
  };
}

function requesterOf({ namespace, name }: Account) {
  const all = 'system:authenticated';
  if (namespace === undefined) return { username: name, groups: [all] };
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, all];
  return { username: `system:serviceaccount:${namespace}:${name}`, groups };
}

/** Returns the webhooks that fail closed and whose Service such a request needs. */
export function closedWebhooks(context: Context, request: AdmissionRequest) {
  const asked = guardsOf(context, request).flatMap(({ webhook }) => webhook ?? []);
  return withService(asked.filter(({ failurePolicy }) => failurePolicy === 'Fail'));
}

/** Matches a rule (predicates/rules): `*` matches no subresource, `pods/*` matches pods; only `isExact` asks for the same version. */
export function matchesRule(
  rule: Omit<Facts.MatchRule, 'resourceNames'>,
  operation: Operation,
  { group, version, resource: path, namespaced }: Facts.ResourceType,
  isExact = false,
): boolean {
  const [resource, subresource = ''] = path.split('/');
  return (
    hasOne(rule.operations, operation) &&
    hasOne(rule.apiGroups, group) &&
    (!isExact || hasOne(rule.apiVersions, version)) &&
    hasOne([rule.scope], namespaced ? 'Namespaced' : 'Cluster') &&
    rule.resources.some((pattern) => {
      const [own, sub = ''] = pattern.split('/');
      return [resource, '*'].includes(own) && [subresource, '*'].includes(sub);
    })
  );
}

type Requirements = readonly Facts.LabelRequirement[];

/** Reports whether the labels meet all requirements (apimachinery pkg/labels/selector.go). */
export function matchesLabels(all: Requirements, labels: Record<string, string>): boolean {
  return all.every(({ key, operator, values }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    const isAmong = value !== undefined && (values.length === 0 || values.includes(value));
    return isAmong === (operator === 'In' || operator === 'Exists');
  });
}
