import type { Remedy, Subject } from '../../model/finding.ts';
import type {
  Candidate,
  LabelRequirement,
  ObjectFacts,
  PolicyBindingFacts,
  ResourceType,
  WebhookFacts,
} from '../../model/snapshot.ts';
import { backendOf, unansweredCall } from '../backends.ts';
import {
  kubectl,
  lookRemedy,
  objectArgs,
  patchCommand,
  showObjectRemedy,
  withRole,
} from '../commands.ts';
import {
  type Context,
  isInside,
  type RuleResult,
  serviceText,
  shortQuote,
  typeName,
  webhooksOf,
} from '../context.ts';
import type { AdmissionError, ContentError, ErrorOf } from '../error-texts.ts';
import {
  bindingsOf,
  closedWebhooks,
  type Guard,
  guardsFor,
  isGuardAsked,
  matchesLabels,
  matchesRule,
  type Operation,
  policiesOf,
  realRequest,
} from './guards.ts';

// The findings about webhooks and policies that refuse a request, with their remedies.

const API = 'admissionregistration.k8s.io/v1';

/**
 * Returns the finding for a refusal: a webhook that cannot be called, or a webhook or policy that denies. `place`: the
 * namespace of the object, empty for a cluster-scoped one.
 */
export function admissionResult(
  context: Context,
  error: AdmissionError,
  request: string,
  place = context.now.namespace.name,
): RuleResult {
  return error.kind === 'webhook-unreachable'
    ? unreachableWebhook(context, error, request, findWebhook(context, error))
    : denied(context, error, request, isInside(context, place));
}

/**
 * Finds a webhook by its name. Several configurations may have webhooks of one name; the Service in the error
 * decides, then whether they select this namespace at all.
 */
function findWebhook(
  context: Context,
  error: Exclude<AdmissionError, { kind: 'policy-denied' }>,
): WebhookFacts | undefined {
  const named = webhooksOf(context).filter(({ name }) => name === error.webhook);
  const called = 'service' in error && error.service ? serviceText(error.service) : undefined;
  const isCalled = ({ service }: WebhookFacts): boolean =>
    service !== undefined && serviceText(service) === called;
  const isHere = ({ namespaceSelector }: WebhookFacts): boolean =>
    matchesLabels(namespaceSelector, context.now.namespace.labels);
  return named.find(isCalled) ?? named.find(isHere) ?? named[0];
}

/** Reports whether the error is a refusal by this webhook or policy. */
export function isErrorOf(context: Context, error: AdmissionError, guard: Guard): boolean {
  if (error.kind === 'policy-denied') return guard.policy?.name === error.policy;
  return guard.webhook !== undefined && guard.webhook === findWebhook(context, error);
}

/** Returns the configuration of a webhook, or the webhook alone: its name does not show the kind of configuration. */
function configurationSubject(webhook: WebhookFacts | undefined, name: string): Subject {
  const { kind, name: own } = webhook?.configuration ?? { kind: 'Webhook', name };
  return { apiVersion: API, kind, name: own };
}

/** Writes a patch of one webhook; its name proves that the position is still the same. */
function patchWebhook({ configuration, index, name }: WebhookFacts, ...patch: object[]): string {
  const test = { op: 'test', path: `/webhooks/${index}/name`, value: name };
  return patchCommand(objectArgs(configuration), [test, ...patch]);
}

/** Returns the remedy to search the configuration: the name of a webhook is not the name of an object. */
function findConfiguration(webhook: string): Remedy {
  const all = 'validatingwebhookconfigurations,mutatingwebhookconfigurations';
  const columns = 'custom-columns=KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name';
  const command = kubectl('get', all, '-o', columns);
  return lookRemedy(`Find the configuration that has webhook ${webhook}`, command);
}

/** What the API server quotes of a failed call (apiserver pkg/util/webhook/error.go), after the address. */
const ANSWER = /failed to call webhook: (?:Post \\?"[^"]*": )?(.+)/s;

function unreachableWebhook(
  context: Context,
  { webhook: name, service, cause, text }: ErrorOf<'webhook-unreachable'>,
  request: string,
  webhook: WebhookFacts | undefined,
): RuleResult {
  const subject = configurationSubject(webhook, name);
  const what = `${subject.kind} ${subject.name}`;
  const place = `/webhooks/${webhook?.index}`;
  const ignoring = { op: 'replace', path: `${place}/failurePolicy`, value: 'Ignore' };
  const answer = ['other', 'error-status'].includes(cause) ? ANSWER.exec(text)?.[1] : undefined;
  const quote = answer === undefined ? undefined : shortQuote(answer);
  const result = unansweredCall(context, {
    code: 'admission-webhook-failing',
    ...{ subject, quote },
    // Whether the host of a webhook's own URL leads to a Service depends on the resolver of the API server.
    service: webhook === undefined ? service : webhook.service,
    failure: cause,
    says: (server) =>
      `cannot be called for ${request}: its webhook ${name} is served by ${server}${quote === undefined ? '' : `: ${quote}`}`,
    evidence: [text, ...(webhook ? [`${what}: failurePolicy ${webhook.failurePolicy}`] : [])],
    or: [
      withRole('or', {
        text: `Let requests pass while webhook ${name} of ${what} cannot be called`,
        ...(webhook && { command: patchWebhook(webhook, ignoring) }),
        risk: 'until failurePolicy is set back to Fail, requests that it would refuse or change pass in the whole cluster',
      }),
    ],
    stop: {
      text: `delete ${what}`,
      command: kubectl('delete', ...objectArgs(subject)),
      risk: 'all its webhooks stop for the whole cluster',
    },
  });
  // Its configuration, which the commands name, is not known.
  return webhook === undefined ? { ...result, remedies: [findConfiguration(name)] } : result;
}

/**
 * Returns webhooks that are certain to refuse the operation on the object: they match it, fail closed, and nothing is
 * behind their Service. Those with match conditions are left out.
 */
export function deadWebhooks(
  context: Context,
  type: ResourceType,
  object: Pick<ObjectFacts, 'labels'>,
  operation: Operation,
  place = context.now.namespace.labels,
): RuleResult[] {
  return closedWebhooks(context, operation, type, object.labels, place)
    .filter(({ matchConditions }) => matchConditions.length === 0)
    .flatMap((webhook) => deadWebhook(context, webhook, `${operation} of ${typeName(type)}`) ?? []);
}

/** Returns the finding for a webhook that fails closed and has nothing behind its Service; undefined for any other. */
export function deadWebhook(
  context: Context,
  webhook: WebhookFacts,
  request: string,
): RuleResult | undefined {
  const { failurePolicy, name, service } = webhook;
  const backend = failurePolicy === 'Fail' && service ? backendOf(context, service) : undefined;
  if (backend?.isDead !== true) return undefined;
  const text = `it matches ${request} there and fails closed`;
  const call = { webhook: name, cause: backend.failure, service, url: undefined, text };
  return unreachableWebhook(context, { kind: 'webhook-unreachable', ...call }, request, webhook);
}

/** Returns the finding about a webhook or policy that says no; outside of this namespace, its exemption is of no use. */
function denied(
  context: Context,
  error: ErrorOf<'webhook-denied' | 'policy-denied'>,
  request: string,
  isHere: boolean,
): RuleResult {
  const webhook = error.kind === 'webhook-denied' ? findWebhook(context, error) : undefined;
  const subject =
    error.kind === 'webhook-denied'
      ? configurationSubject(webhook, error.webhook)
      : policySubject(context, error);
  const words = error.message || 'without explanation';
  const by = error.kind === 'webhook-denied' ? ` by its webhook ${error.webhook}` : '';
  const who = `${subject.kind} ${subject.name}`;
  const text = `Do what the message of ${who} asks for, or fix the error that it reports`;
  const bound =
    error.kind === 'policy-denied' &&
    bindingsOf(context).find(({ name }) => name === error.binding);
  return {
    ...{ code: 'admission-denied', subject, quote: words, certainty: 'likely' },
    message: `denies ${request}${by}: ${words}`,
    evidence: [error.text],
    remedies: [
      withRole('now', { text }),
      ...(webhook && isHere ? [exemption(context, webhook, request)] : []),
      ...(bound && isHere ? [bindingExemption(context, subject.kind, bound)] : []),
      subject.kind === 'Webhook'
        ? findConfiguration(subject.name)
        : showObjectRemedy(`See what ${who} asks for`, subject),
    ],
  };
}

function policySubject(context: Context, { policy, text }: ErrorOf<'policy-denied'>): Subject {
  const isValidating = /\bValidatingAdmissionPolicy '/.test(text);
  const known = policiesOf(context).find(({ name }) => name === policy);
  const kind = known?.kind ?? `${isValidating ? 'Validating' : 'Mutating'}AdmissionPolicy`;
  return { apiVersion: API, kind, name: policy };
}

/** Adds an exemption of this namespace to a selector; matchLabels become expressions, so nothing is lost. */
function withExemption({ now: { namespace } }: Context, selector: readonly LabelRequirement[]) {
  const own = { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [namespace.name] };
  return [...selector, own].map(({ values, ...rest }) =>
    values.length === 0 ? rest : { ...rest, values },
  );
}

function bindingExemption(
  context: Context,
  policy: string,
  { name, namespaceSelector: own }: PolicyBindingFacts,
): Remedy {
  const target = objectArgs({ kind: `${policy}Binding`, name });
  // A merge patch keeps labels that are not named: expressions replace all of them.
  const namespaceSelector = { matchLabels: null, matchExpressions: withExemption(context, own) };
  const patch = { spec: { matchResources: { namespaceSelector } } };
  return withRole('or', {
    text: `Exempt this namespace from binding ${name}`,
    command: kubectl('patch', ...target, '--type=merge', '-p', JSON.stringify(patch)),
    risk: 'the policy no longer checks or changes anything in this namespace',
  });
}

function exemption(context: Context, webhook: WebhookFacts, request: string): Remedy {
  const { configuration, index, name, namespaceSelector } = webhook;
  const matchExpressions = withExemption(context, namespaceSelector);
  const path = `/webhooks/${index}/namespaceSelector`;
  const all = request.startsWith('DELETE') ? ', with all that it deletes' : '';
  return withRole('or', {
    text: `Exempt this namespace from webhook ${name} of ${configuration.kind} ${configuration.name}`,
    command: patchWebhook(webhook, { op: 'add', path, value: { matchExpressions } }),
    risk: `the webhook no longer checks anything in this namespace: the ${request} that it refused is carried out${all}`,
  });
}

/** A refusal of a change to a field that may not be changed; the removal of a finalizer changes no such field. */
const UNCHANGEABLE =
  /\bimmutable\b|\bmay not (?:be )?change|\bupdates? (?:may not|to .{1,300} are forbidden)|\b(?:cannot|must not|can't) be (?:changed|updated|modified)/i;

/** Reports whether an error refuses the change of a field that the removal of a finalizer does not change. */
export function refusesOtherChange({ kind, text }: ContentError): boolean {
  return kind === 'invalid' && UNCHANGEABLE.test(text);
}

/** Returns the remedy to find what makes such a change, which need not be one of the guards that were read. */
export function changerRemedy(text: string): Remedy {
  return lookRemedy(
    `Find the mutating webhook or policy that changes this field when the object is updated, and limit it to CREATE: "${shortQuote(text)}"`,
    kubectl('get', 'mutatingwebhookconfigurations', '-o', 'yaml'),
  );
}

/**
 * Returns findings about the mutating guards that may be asked about an update which only removes a finalizer, where its
 * answer shows that one of them `does` something else to the object.
 */
export function mutatingResults(
  context: Context,
  type: ResourceType,
  object: Candidate,
  does: string,
): RuleResult[] {
  const request = realRequest(context, 'UPDATE', type, object);
  const guards = guardsFor(context, 'UPDATE', type)
    .filter(({ isMutating }) => isMutating)
    .map((guard) => ({ guard, asked: isGuardAsked(guard, request) }))
    .filter(({ asked }) => asked !== false);
  return guards.flatMap(({ guard, asked }) => {
    const { webhook, policy, binding, looksAt, text } = guard;
    const { kind, name } = webhook?.configuration ?? policy ?? {};
    if (kind === undefined || name === undefined) return [];
    const isCertain = guards.length === 1 && asked === true && looksAt.length === 0;
    const target = objectArgs({ kind, name });
    const limits = limitsOf(guard, type);
    const limit = {
      text: `Limit ${webhook ? `webhook ${webhook.name} of ${kind}` : 'policy'} ${name} to CREATE`,
      command: webhook ? patchWebhook(webhook, ...limits) : patchCommand(target, limits),
      risk: 'it no longer changes objects that are updated, in the whole cluster',
    };
    const isHere = isInside(context, object.namespace);
    const exempt = [
      ...(webhook && isHere ? [exemption(context, webhook, 'UPDATE')] : []),
      ...(binding && isHere ? [bindingExemption(context, kind, binding)] : []),
    ];
    return {
      code: 'admission-denied',
      subject: { apiVersion: API, kind, name },
      message: `${isCertain ? 'most likely' : 'may be what'} ${does}`,
      evidence: [`admission asks ${text} about UPDATE of ${typeName(type)}`],
      certainty: isCertain ? 'likely' : 'unknown',
      // A rule about updates alone has nothing to say about new objects.
      remedies:
        limits.length > 0
          ? [withRole('now', limit), ...exempt]
          : exempt.map((one) => withRole('now', one)),
    };
  });
}

/** Returns the patch that leaves rules about new and updated objects of the type those about new ones; empty if others match. */
function limitsOf({ webhook, policy }: Guard, type: ResourceType): object[] {
  const place = webhook
    ? `/webhooks/${webhook.index}/rules`
    : '/spec/matchConstraints/resourceRules';
  const matching = ((webhook ?? policy)?.rules ?? []).flatMap((rule, index) =>
    matchesRule(rule, 'UPDATE', type) ? [{ rule, index }] : [],
  );
  return matching.every(({ rule }) => matchesRule(rule, 'CREATE', type))
    ? matching.map(({ index }) => ({
        ...{ op: 'replace', path: `${place}/${index}/operations`, value: ['CREATE'] },
      }))
    : [];
}
