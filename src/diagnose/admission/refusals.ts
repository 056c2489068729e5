import type { Remedy, Subject } from '../../model/finding.ts';
import type { Candidate, ObjectFacts, ResourceType, WebhookFacts } from '../../model/snapshot.ts';
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
  realRequest,
} from './guards.ts';

// The findings about webhooks and policies that refuse a request, with their remedies.

const API = 'admissionregistration.k8s.io/v1';
const NAME_LABEL = 'kubernetes.io/metadata.name';
/** Labels that say nothing else; `environment=production` does. */
const EXEMPTING = /ignore|skip|exempt|exclude|disable|bypass|webhook|validat|polic/i;

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
  return (
    named.find(({ service }) => service !== undefined && serviceText(service) === called) ??
    named.find((one) => matchesLabels(one.namespaceSelector, context.now.namespace.labels)) ??
    named[0]
  );
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
  const path = `/webhooks/${webhook?.index}/failurePolicy`;
  const answer = ['other', 'error-status'].includes(cause) ? ANSWER.exec(text)?.[1] : undefined;
  const quote = answer === undefined ? undefined : shortQuote(answer);
  const result = unansweredCall(context, {
    code: 'admission-webhook-failing',
    ...{ subject, quote },
    // Whether the host of a webhook's own URL leads to a Service depends on the resolver of the API server.
    service: webhook === undefined ? service : webhook.service,
    failure: cause,
    says: (server) =>
      `cannot ask ${server}, about ${request}${quote === undefined ? '' : `: ${quote}`}`,
    evidence: [
      text,
      ...(webhook ? [`${what}: failurePolicy ${webhook.failurePolicy} of webhook ${name}`] : []),
    ],
    or: [
      withRole('or', {
        text: `Let requests pass while webhook ${name} of ${what} cannot be called`,
        ...(webhook && {
          command: patchWebhook(webhook, { op: 'replace', path, value: 'Ignore' }),
        }),
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
  const isPolicy = error.kind === 'policy-denied';
  const webhook = isPolicy ? undefined : findWebhook(context, error);
  const binding = isPolicy && bindingsOf(context).find(({ name }) => name === error.binding);
  const kind = `${/\bValidatingAdmissionPolicy '/.test(error.text) ? 'Validating' : 'Mutating'}AdmissionPolicy`;
  const subject = isPolicy
    ? { apiVersion: API, kind, name: error.policy }
    : configurationSubject(webhook, error.webhook);
  const words = error.message || 'without explanation';
  const by = isPolicy ? '' : ` by its webhook ${error.webhook}`;
  const who = `${subject.kind} ${subject.name}`;
  const asks = `Do what ${who} asks for, or fix what it reports: "${shortQuote(words)}"`;
  const exempt =
    engineRemedies(error) ??
    exemptions(context, isHere, { kind, webhook, binding: binding || undefined });
  return {
    ...{ code: 'admission-denied', subject, quote: words, certainty: 'likely' },
    message: `denies ${request}${by}: ${words}`,
    evidence: [error.text],
    remedies: [
      ...exempt.map((one, at) => (at === 0 ? { ...one, role: 'now' as const } : one)),
      withRole(exempt.length > 0 ? 'or' : 'now', { text: asks }),
      subject.kind === 'Webhook'
        ? findConfiguration(subject.name)
        : showObjectRemedy(`See what ${who} asks for`, subject),
    ],
  };
}

/** Policy engines: their webhooks name the policy that denies, and they set changes of their configurations back. */
const ENGINES = [
  {
    ...{ webhook: /\.kyverno\.svc/, what: 'Kyverno policy', field: 'spec.rules[].exclude' },
    ...{ type: 'clusterpolicies.kyverno.io', policy: /policies\s{1,9}([a-z0-9.-]{1,253}):/ },
  },
  {
    ...{ webhook: /\.gatekeeper\.sh$/, what: 'Gatekeeper constraint' },
    ...{ field: 'spec.match.excludedNamespaces', type: 'constraints' },
    policy: /^\s{0,9}\[([a-z0-9.-]{1,253})\]/,
  },
];

/** Returns the remedies for the policy of an engine; undefined for other webhooks and policies. */
function engineRemedies(
  error: ErrorOf<'webhook-denied' | 'policy-denied'>,
): [Remedy, Remedy] | undefined {
  if (error.kind !== 'webhook-denied') return undefined;
  const engine = ENGINES.find(({ webhook }) => webhook.test(error.webhook));
  const name = engine?.policy.exec(error.message)?.[1];
  if (engine === undefined || name === undefined) return undefined;
  const { field, type, what } = engine;
  const risk = 'it no longer checks anything in this namespace';
  const text = `Exclude this namespace from ${what} ${name}, in ${field}`;
  const found = ['--field-selector', `metadata.name=${name}`, '-o', 'yaml'];
  return [
    withRole('now', { text, risk }),
    lookRemedy(`See ${what} ${name}`, kubectl('get', type, ...found)),
  ];
}

interface Exempting {
  kind: string;
  webhook?: Guard['webhook'] | undefined;
  binding?: Guard['binding'] | undefined;
}

/** Returns the remedy to exempt this namespace, where the object is, from a webhook or from a policy of this kind. */
function exemptions(
  { now: { namespace } }: Context,
  isHere: boolean,
  { kind, webhook, binding }: Exempting,
): Remedy[] {
  // matchLabels become expressions, so nothing is lost.
  const matchExpressions = [
    ...((webhook ?? binding)?.namespaceSelector ?? []),
    { key: NAME_LABEL, operator: 'NotIn', values: [namespace.name] },
  ].map(({ values, ...rest }) => (values.length === 0 ? rest : { ...rest, values }));
  if (isHere && webhook !== undefined) {
    const { configuration, index, name } = webhook;
    const path = `/webhooks/${index}/namespaceSelector`;
    const text = `Exempt this namespace from webhook ${name} of ${configuration.kind} ${configuration.name}`;
    // The label that the configuration itself provides for it changes this namespace alone.
    const exempt = webhook.namespaceSelector.find(
      ({ key, operator }) =>
        /^(?:DoesNotExist|NotIn)$/.test(operator) &&
        EXEMPTING.test(key) &&
        namespace.labels[key] === undefined,
    );
    const label = exempt && `${exempt.key}=${exempt.values[0] ?? 'true'}`;
    const command = label
      ? kubectl('label', 'namespace', namespace.name, label, '--overwrite')
      : patchWebhook(webhook, { op: 'add', path, value: { matchExpressions } });
    const risk =
      'the webhook no longer checks anything in this namespace: what it refused is carried out, deletions included';
    return [withRole('or', { text, command, risk })];
  }
  if (!isHere || binding === undefined) return [];
  const target = objectArgs({ kind: `${kind}Binding`, name: binding.name });
  // A merge patch keeps labels that are not named: expressions replace all of them.
  const namespaceSelector = { matchLabels: null, matchExpressions };
  const patch = JSON.stringify({ spec: { matchResources: { namespaceSelector } } });
  const text = `Exempt this namespace from binding ${binding.name}`;
  const command = kubectl('patch', ...target, '--type=merge', '-p', patch);
  const risk = 'the policy no longer checks or changes anything in this namespace';
  return [withRole('or', { text, command, risk })];
}

/** A refusal of a change to a field that may not be changed; the removal of a finalizer changes no such field. */
const UNCHANGEABLE =
  /\bimmutable\b|\bmay not (?:be )?change|\bupdates? (?:may not|to .{1,300} are forbidden)|\b(?:cannot|must not|can't) be (?:changed|updated|modified)/i;

/** Reports whether an error refuses the change of a field of such an object, which the removal of a finalizer does not change. */
export function refusesOtherChange(error: ContentError, { kind }: { kind: string }): boolean {
  return error.kind === 'invalid' && error.resource === kind && UNCHANGEABLE.test(error.text);
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
  const guards = guardsFor(context, 'UPDATE', type).filter(
    (guard) => guard.isMutating && isGuardAsked(guard, request) !== false,
  );
  return guards.flatMap((guard) => {
    const { webhook, policy, text } = guard;
    const { kind, name } = webhook?.configuration ?? policy ?? { kind: '', name: '' };
    const { rules = [] } = webhook ?? policy ?? {};
    const isCertain = guards.length === 1 && isGuardAsked(guard, request) === true;
    const place = webhook
      ? `/webhooks/${webhook.index}/rules`
      : '/spec/matchConstraints/resourceRules';
    const limits = rules.flatMap((rule, index) =>
      matchesRule(rule, 'UPDATE', type) && matchesRule(rule, 'CREATE', type)
        ? { op: 'replace', path: `${place}/${index}/operations`, value: ['CREATE'] }
        : [],
    );
    const limit = withRole('now', {
      text: `Limit ${webhook ? `webhook ${webhook.name} of ${kind}` : 'policy'} ${name} to CREATE`,
      command: webhook
        ? patchWebhook(webhook, ...limits)
        : patchCommand(objectArgs({ kind, name }), limits),
      risk: 'it no longer changes objects that are updated, in the whole cluster',
    });
    const others = exemptions(context, isInside(context, object.namespace), { kind, ...guard });
    return {
      code: 'admission-denied',
      subject: { apiVersion: API, kind, name },
      message: `${isCertain ? 'most likely' : 'may be what'} ${does}`,
      evidence: [`admission asks ${text} about UPDATE of ${typeName(type)}`],
      certainty: isCertain ? 'likely' : 'unknown',
      // A rule about updates alone has nothing to say about new objects.
      remedies: limits.length > 0 ? [limit, ...others] : others.map((one) => withRole('now', one)),
    };
  });
}
