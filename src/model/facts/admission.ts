import { arrayAt, type JsonObject, stringAt } from '../../base/json.ts';
import { serviceInUrl, serviceRef } from './cluster.ts';
import { identity } from './metadata.ts';
import { at, NAME, newer, shape } from './shape.ts';

/** A rule of a webhook or policy (admissionregistration/v1, RuleWithOperations). */
export type MatchRule = ReturnType<typeof matchRule>;
const matchRule = shape({
  operations: at.texts('operations'),
  apiGroups: at.texts('apiGroups'),
  apiVersions: at.texts('apiVersions'),
  resources: at.texts('resources'),
  /** In a policy: only objects of these names; empty for all. */
  resourceNames: at.texts('resourceNames'),
  scope: at.text('scope', '*'),
});

const mentions = (path: string, words: RegExp) =>
  at.field(path, (expressions) => words.test(JSON.stringify(expressions ?? null)));

/** Whether expressions may give another user, a request that is no dry run, or a terminating object another answer (KEP-3488). */
const dependencies = (path: string) => ({
  dependsOnUser: mentions(path, /\brequest\.\??userInfo\b|\bauthorizer\b/),
  dependsOnDeletion: mentions(path, /\bdeletionTimestamp\b|\bnamespaceObject\.status\b/),
  dependsOnDryRun: newer(
    mentions(path, /\brequest\.\??dryRun\b|\boptions\.\??(?:dryRun|preconditions)\b/),
  ),
});

const webhook = shape({
  name: at.text('name'),
  failurePolicy: at.text('failurePolicy', 'Fail'),
  matchPolicy: at.text('matchPolicy', 'Equivalent'),
  service: at.ifAny('clientConfig.service', serviceRef),
  /** The Service whose DNS name is the host of `url`. Whether the API server resolves that name is not known. */
  serviceInUrl: (object) => serviceInUrl(stringAt(object, 'clientConfig', 'url')),
  rules: at.each('rules', matchRule),
  namespaceSelector: at.selector('namespaceSelector'),
  objectSelector: at.selector('objectSelector'),
  matchConditions: at.textOfEach('matchConditions', 'expression'),
  ...dependencies('matchConditions'),
});

export type WebhookFacts = ReturnType<ReturnType<typeof webhookFacts>>[number];
export function webhookFacts(kind: string) {
  return (object: JsonObject) => {
    const configuration = { kind, ...identity(object) };
    const entries = arrayAt(object, 'webhooks');
    return entries.map((entry, index) => ({ configuration, index, ...webhook(entry) }));
  };
}

const expression = at.text('expression');
const policy = shape({
  ...NAME,
  rules: at.each('spec.matchConstraints.resourceRules', matchRule),
  namespaceSelector: at.selector('spec.matchConstraints.namespaceSelector'),
  objectSelector: at.selector('spec.matchConstraints.objectSelector'),
  ...dependencies('spec'),
  matchConditions: newer(at.textOfEach('spec.matchConditions', 'expression')),
  validations: newer(
    at.each('spec.validations', shape({ expression, message: at.text('message') })),
  ),
  /** Named expressions that its validations read. */
  variables: newer(at.each('spec.variables', shape({ expression, name: at.text('name') }))),
});

/** A ValidatingAdmissionPolicy or a MutatingAdmissionPolicy. */
export type PolicyFacts = ReturnType<ReturnType<typeof policyFacts>>;
export function policyFacts(kind: string) {
  return (object: JsonObject) => ({ kind, ...policy(object) });
}

export type PolicyBindingFacts = ReturnType<typeof policyBindingFacts>;
export const policyBindingFacts = shape({
  ...NAME,
  policy: at.text('spec.policyName'),
  /** `Deny`, `Warn`, `Audit`; empty for mutating policies. */
  actions: at.texts('spec.validationActions'),
  namespaceSelector: at.selector('spec.matchResources.namespaceSelector'),
  objectSelector: newer(at.selector('spec.matchResources.objectSelector')),
  /** Where the parameters are without which it denies; empty: in the namespace of the object. */
  parametersIn: at.ifAny('spec.paramRef', (ref) =>
    stringAt(ref, 'parameterNotFoundAction') === 'Deny'
      ? (stringAt(ref, 'namespace') ?? '')
      : undefined,
  ),
});
