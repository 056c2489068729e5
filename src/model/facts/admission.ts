import { arrayAt, type JsonObject, stringAt } from '../../base/json.ts';
import { serviceInUrl, serviceRef } from './cluster.ts';
import {
  each,
  type Field,
  fieldAt,
  ifAny,
  NAME,
  newer,
  selector,
  shape,
  text,
  textOfEach,
  texts,
} from './shape.ts';

/** A rule of a webhook or policy (admissionregistration/v1, RuleWithOperations). */
export type MatchRule = ReturnType<typeof matchRule>;
const matchRule = shape({
  operations: texts('operations'),
  apiGroups: texts('apiGroups'),
  apiVersions: texts('apiVersions'),
  resources: texts('resources'),
  /** In a policy: only objects of these names; empty for all. */
  resourceNames: texts('resourceNames'),
  scope: text('scope', '*'),
});

export function mentions(path: string, words: RegExp): Field<boolean> {
  return fieldAt(path, (expressions) => words.test(JSON.stringify(expressions ?? null)));
}

/** Whether expressions may give another user, a request that is no dry run, or a terminating object another answer (KEP-3488). */
const dependencies = (path: string) => ({
  dependsOnUser: mentions(path, /\brequest\.\??userInfo\b|\bauthorizer\b/),
  dependsOnDeletion: mentions(path, /\bdeletionTimestamp\b|\bnamespaceObject\.status\b/),
  dependsOnDryRun: newer(
    mentions(path, /\brequest\.\??dryRun\b|\boptions\.\??(?:dryRun|preconditions)\b/),
  ),
});

const webhook = shape({
  name: text('name'),
  failurePolicy: text('failurePolicy', 'Fail'),
  matchPolicy: text('matchPolicy', 'Equivalent'),
  service: ifAny('clientConfig.service', serviceRef),
  /** The Service whose DNS name is the host of `url`. Whether the API server resolves that name is not known. */
  serviceInUrl: (object) => serviceInUrl(stringAt(object, 'clientConfig', 'url')),
  rules: each('rules', matchRule),
  namespaceSelector: selector('namespaceSelector'),
  objectSelector: selector('objectSelector'),
  matchConditions: textOfEach('matchConditions', 'expression'),
  ...dependencies('matchConditions'),
});

const registration = shape({ ...NAME, uid: text('metadata.uid') });

export type WebhookFacts = ReturnType<ReturnType<typeof webhookFacts>>[number];
export function webhookFacts(kind: string) {
  return (object: JsonObject) => {
    const configuration = { kind, ...registration(object) };
    const entries = arrayAt(object, 'webhooks');
    return entries.map((entry, index) => ({ configuration, index, ...webhook(entry) }));
  };
}

const validation = shape({ expression: text('expression'), message: text('message') });
const variable = shape({ name: text('name'), expression: text('expression') });
const policy = shape({
  ...NAME,
  failurePolicy: text('spec.failurePolicy', 'Fail'),
  rules: each('spec.matchConstraints.resourceRules', matchRule),
  namespaceSelector: selector('spec.matchConstraints.namespaceSelector'),
  objectSelector: selector('spec.matchConstraints.objectSelector'),
  ...dependencies('spec'),
  matchConditions: newer(textOfEach('spec.matchConditions', 'expression')),
  validations: newer(each('spec.validations', validation)),
  /** The kind of its parameters. */
  paramKind: newer(text('spec.paramKind.kind')),
  /** Named expressions that its validations read. */
  variables: newer(each('spec.variables', variable)),
});

/** A ValidatingAdmissionPolicy or a MutatingAdmissionPolicy. */
export type PolicyFacts = ReturnType<ReturnType<typeof policyFacts>>;
export function policyFacts(kind: string) {
  return (object: JsonObject) => ({ kind, ...policy(object) });
}

export type PolicyBindingFacts = ReturnType<typeof policyBindingFacts>;
export const policyBindingFacts = shape({
  ...NAME,
  policy: text('spec.policyName'),
  /** `Deny`, `Warn`, `Audit`; empty for mutating policies. */
  actions: texts('spec.validationActions'),
  namespaceSelector: selector('spec.matchResources.namespaceSelector'),
  objectSelector: newer(selector('spec.matchResources.objectSelector')),
  /** Where the parameters are without which it denies; empty: in the namespace of the object. */
  parametersIn: ifAny('spec.paramRef', (ref) =>
    stringAt(ref, 'parameterNotFoundAction') === 'Deny'
      ? (stringAt(ref, 'namespace') ?? '')
      : undefined,
  ),
});
