import { escapeForRegExp, upperFirst } from '../../base/text.ts';
import type { Remedy, Subject } from '../../model/finding.ts';
import type {
  Candidate,
  LabelRequirement,
  ObjectFacts,
  PolicyBindingFacts,
  PolicyFacts,
  ResourceType,
  WebhookFacts,
} from '../../model/snapshot.ts';
import { actorText } from '../actors.ts';
import { actorsBehind, backendOf, unansweredCall } from '../backends.ts';
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
  type RuleResult,
  serviceText,
  shortQuote,
  typeName,
  webhooksOf,
} from '../context.ts';
import {
  type AdmissionError,
  type ContentError,
  classifyErrorText,
  type ErrorOf,
  UNNAMED_WEBHOOK,
} from '../error-texts.ts';
import {
  bindingsOf,
  closedWebhooks,
  type Guard,
  guardsAsked,
  guardsFor,
  isGuardAsked,
  matchesLabels,
  matchesRule,
  type Operation,
  policiesOf,
  realRequests,
} from './guards.ts';

// The findings about webhooks and policies that refuse a request, with their remedies.

const API = 'admissionregistration.k8s.io/v1';

/** Returns the finding for a refusal: a webhook that cannot be called, or a webhook or policy that denies. */
export function admissionResult(
  context: Context,
  error: AdmissionError,
  request: string,
): RuleResult {
  switch (error.kind) {
    case 'policy-denied':
      return policyDenied(context, error, request);
    case 'webhook-denied':
      return webhookDenied(context, error, request, findWebhook(context, error));
    default:
      return unreachableWebhook(context, error, request, findWebhook(context, error));
  }
}

/**
 * Finds a webhook by its name. Several configurations may have webhooks of one name; the Service in the error
 * decides, then whether they select this namespace at all.
 */
export function findWebhook(
  context: Context,
  error: Exclude<AdmissionError, { kind: 'policy-denied' }>,
): WebhookFacts | undefined {
  const named = webhooksOf(context).filter(({ name, matchConditions }) =>
    error.webhook === UNNAMED_WEBHOOK
      ? matchConditions.some((one) => error.text.includes(`'${one}'`))
      : name === error.webhook,
  );
  const service = error.kind === 'webhook-unreachable' ? error.service : undefined;
  const called = named.filter(
    (webhook) =>
      service === undefined ||
      (webhook.service && serviceText(webhook.service) === serviceText(service)),
  );
  const selecting = (called.length > 0 ? called : named).filter(({ namespaceSelector }) =>
    matchesLabels(namespaceSelector, context.now.namespace.labels),
  );
  return selecting[0] ?? called[0] ?? named[0];
}

/** Returns the configuration of a webhook, or the webhook alone: its name does not show the kind of configuration. */
function configurationSubject(webhook: WebhookFacts | undefined, name: string): Subject {
  const { kind, name: own } = webhook?.configuration ?? { kind: 'Webhook', name };
  return { apiVersion: API, kind, name: own };
}

/** Returns "webhook guard.example.com of ValidatingWebhookConfiguration guard". */
function webhookText({ configuration: { kind, name: own }, name }: WebhookFacts): string {
  return `webhook ${name} of ${kind} ${own}`;
}

/** Writes a patch of one webhook; its name proves that the position is still the same. */
function patchWebhook({ configuration, index, name }: WebhookFacts, ...patch: object[]): string {
  const test = { op: 'test', path: `/webhooks/${index}/name`, value: name };
  return patchCommand(objectArgs(configuration), [test, ...patch]);
}

/** Returns the remedy to search the configuration: the name of a webhook is not the name of an object. */
function findConfiguration(webhook: string): Remedy {
  return lookRemedy(
    `Find the configuration that has webhook ${webhook}`,
    kubectl(
      ...['get', 'validatingwebhookconfigurations,mutatingwebhookconfigurations', '-o'],
      'custom-columns=KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name',
    ),
  );
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
  const { end, ...how } =
    webhook !== undefined && isShared(context, webhook)
      ? {
          end: `remove webhook ${name} from ${what}`,
          command: patchWebhook(webhook, { op: 'remove', path: place }),
          risk: 'this webhook stops for the whole cluster',
        }
      : {
          end: `delete ${what}`,
          command: kubectl('delete', ...objectArgs(subject)),
          risk: 'all its webhooks stop for the whole cluster',
        };
  const ignoring = { op: 'replace', path: `${place}/failurePolicy`, value: 'Ignore' };
  const field = `webhooks[${webhook?.index}].clientConfig`;
  const answer = ['other', 'error-status'].includes(cause) ? ANSWER.exec(text)?.[1] : undefined;
  const quote = answer === undefined ? undefined : shortQuote(answer);
  const told = quote === undefined ? '' : `: ${quote}`;
  const result = unansweredCall(context, {
    code: 'admission-webhook-failing',
    ...{ subject, quote },
    // Whether the host of a webhook's own URL leads to a Service depends on the resolver of the API server.
    service: webhook === undefined ? service : webhook.service,
    failure: cause,
    endpoint: {
      object: subject,
      caBundle: `${field}.caBundle of ${what}`,
      caInjection: webhook?.configuration.caInjection,
    },
    says: (server) =>
      `cannot be called for ${request}: its webhook ${name} is served by ${server}${told}`,
    evidence: [
      text,
      webhook === undefined
        ? 'the webhook configuration that has it could not be read'
        : `${what}: failurePolicy ${webhook.failurePolicy}`,
    ],
    or: [
      withRole('or', {
        text: `Let requests pass while webhook ${name} of ${what} cannot be called`,
        ...(webhook && { command: patchWebhook(webhook, ignoring) }),
        risk: 'until failurePolicy is set back to Fail, requests that it would refuse or change pass in the whole cluster',
      }),
    ],
    stop: {
      before: `${end} before the namespace that serves it`,
      late: `${upperFirst(end)}: its Service is being deleted with its namespace, so it can no longer be called`,
      end,
      ...how,
    },
  });
  // Its configuration, which the commands name, is not known.
  return webhook === undefined ? { ...result, remedies: [findConfiguration(name)] } : result;
}

/** Reports whether other webhooks of the configuration are served from elsewhere: they must stay. */
function isShared(context: Context, { configuration, service }: WebhookFacts): boolean {
  return webhooksOf(context).some(
    (other) =>
      other.configuration.uid === configuration.uid &&
      other.service?.namespace !== service?.namespace,
  );
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

/** Says where a denial can be ended: a message that names an object of this namespace, or a field, is about an object. */
function scopeOf({ now: { namespace } }: Context, message: string): 'namespace' | 'cluster' {
  const path = new RegExp(`(?<![\\w.-])${escapeForRegExp(namespace.name)}/[a-z0-9]`);
  // Expressions of policies read `object.spec`, and finalizers are not what a person changes.
  const isOfField = /(?<![\w.])(?:spec\.\w|metadata\.(?:labels|annotations)\b)/.test(message);
  return path.test(message) || isOfField ? 'namespace' : 'cluster';
}

function webhookDenied(
  context: Context,
  error: ErrorOf<'webhook-denied'>,
  request: string,
  webhook: WebhookFacts | undefined,
): RuleResult {
  const name = webhook?.name ?? error.webhook;
  const subject = configurationSubject(webhook, name);
  const words = error.message === '' ? 'without explanation' : error.message;
  const servers = webhook?.service ? actorsBehind(context, webhook.service).map(actorText) : [];
  return {
    code: 'admission-denied',
    subject,
    // The workload that answers, if only one can.
    servedBy: servers.length === 1 ? servers[0] : undefined,
    message: `denies ${request} by its webhook ${name}: ${words}`,
    quote: words,
    scope: scopeOf(context, words),
    evidence: [error.text],
    certainty: 'likely',
    remedies: [
      satisfyRemedy(`webhook ${name}`, words),
      ...(webhook === undefined
        ? [findConfiguration(name)]
        : [
            showObjectRemedy(`See which requests ${subject.kind} ${subject.name} checks`, subject),
            webhookExemption(context, webhook, request),
          ]),
    ],
  };
}

function policyDenied(
  context: Context,
  error: ErrorOf<'policy-denied'>,
  request: string,
): RuleResult {
  const { message } = error;
  const policy = policiesOf(context).find(({ name }) => name === error.policy);
  const binding = bindingsOf(context).find(({ name }) => name === error.binding);
  const isValidating = /\bValidatingAdmissionPolicy '/.test(error.text);
  const kind = policy?.kind ?? `${isValidating ? 'Validating' : 'Mutating'}AdmissionPolicy`;
  const subject = { apiVersion: API, kind, name: error.policy };
  const exemption = binding && bindingExemption(context, kind, binding);
  return {
    code: 'admission-denied',
    subject,
    message: `denies ${request}: ${message}`,
    quote: message,
    scope: scopeOf(context, message),
    evidence: [error.text],
    certainty: 'likely',
    remedies: [
      satisfyRemedy(`${kind} ${error.policy}`, message),
      showObjectRemedy(`See what ${kind} ${error.policy} asks for`, subject),
      ...(exemption === undefined ? [] : [withRole('or', exemption)]),
    ],
  };
}

/** The texts of a policy that fails instead of deciding (policy_dispatcher.go, policy/validating/validator.go). */
const FAILS = /^failed to configure (?:policy|binding): | resulted in error: /;

function satisfyRemedy(who: string, words: string): Remedy {
  const misses = classifyErrorText(words).some(({ kind }) => kind === 'not-found');
  return withRole('now', {
    text: FAILS.test(words)
      ? `Fix the error of ${who}: ${shortQuote(words)}`
      : misses
        ? `Create what ${who} does not find, unless it belongs in this namespace: a terminating namespace accepts no new objects`
        : `Do what the message of ${who} asks for`,
  });
}

/** Adds an exemption of this namespace to a selector; matchLabels become expressions, so nothing is lost. */
function withExemption({ now: { namespace } }: Context, selector: readonly LabelRequirement[]) {
  const own = { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [namespace.name] };
  return [...selector, own].map(({ values, ...rest }) =>
    values.length === 0 ? rest : { ...rest, values },
  );
}

function webhookExemption(context: Context, webhook: WebhookFacts, request: string): Remedy {
  const matchExpressions = withExemption(context, webhook.namespaceSelector);
  const path = `/webhooks/${webhook.index}/namespaceSelector`;
  const all = request.startsWith('DELETE') ? ', with all that it deletes' : '';
  return withRole('or', {
    text: `Exempt this namespace from ${webhookText(webhook)}`,
    command: patchWebhook(webhook, { op: 'add', path, value: { matchExpressions } }),
    risk: `the webhook no longer checks anything in this namespace: the ${request} that it refused is carried out${all}`,
  });
}

function bindingExemption(
  context: Context,
  policy: string,
  { name, namespaceSelector: own }: PolicyBindingFacts,
): Omit<Remedy, 'role'> {
  const target = objectArgs({ kind: `${policy}Binding`, name });
  // A merge patch keeps labels that are not named: expressions replace all of them.
  const namespaceSelector = { matchLabels: null, matchExpressions: withExemption(context, own) };
  const patch = { spec: { matchResources: { namespaceSelector } } };
  return {
    text: `Exempt this namespace from binding ${name}`,
    command: kubectl('patch', ...target, '--type=merge', '-p', JSON.stringify(patch)),
    risk: 'the policy no longer checks or changes anything in this namespace',
  };
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
  return withRole('now', {
    text: `Find the mutating webhook or policy that changes this field when the object is updated, and limit it to CREATE: "${shortQuote(text)}"`,
    command: kubectl('get', 'mutatingwebhookconfigurations', '-o', 'yaml'),
  });
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
  const requests = realRequests(context, 'UPDATE', type, object);
  const guards = guardsFor(context, 'UPDATE', type).filter(
    (guard) => guard.isMutating && requests.some((one) => isGuardAsked(guard, one) !== false),
  );
  const isKnown = guardsAsked(context, 'UPDATE', type, object) !== undefined;
  const isCertain = isKnown && guards.length === 1 && guards[0]?.looksAt.length === 0;
  return guards.map(({ webhook, policy, binding, text }) => {
    const { kind, name } = webhook?.configuration ?? (policy as PolicyFacts);
    const subject = { apiVersion: API, kind, name };
    const limit = limitRemedy(webhook ?? (policy as PolicyFacts), type);
    const exemption = webhook
      ? webhookExemption(context, webhook, 'UPDATE')
      : binding && bindingExemption(context, kind, binding);
    const last = exemption && withRole(limit === undefined ? 'now' : 'or', exemption);
    return {
      code: 'admission-denied',
      subject,
      message: `${isCertain ? 'most likely' : 'may be what'} ${does}`,
      evidence: [`admission asks ${text} about UPDATE of ${typeName(type)}`],
      certainty: isCertain ? 'likely' : 'unknown',
      remedies: [
        ...(limit === undefined ? [] : [limit]),
        ...(last === undefined ? [] : [last]),
        showObjectRemedy(`See which requests ${kind} ${name} changes`, subject),
      ],
    };
  });
}

/**
 * Returns the remedy that limits a mutating webhook or policy to new objects; none if a rule is about updates alone.
 */
function limitRemedy(guard: WebhookFacts | PolicyFacts, type: ResourceType): Remedy | undefined {
  const isWebhook = 'configuration' in guard;
  const what = isWebhook ? webhookText(guard) : `policy ${guard.name}`;
  const place = isWebhook
    ? `/webhooks/${guard.index}/rules`
    : '/spec/matchConstraints/resourceRules';
  const matching = guard.rules.flatMap((rule, index) =>
    matchesRule(rule, 'UPDATE', type, false) ? [{ rule, index }] : [],
  );
  if (matching.some(({ rule }) => !matchesRule(rule, 'CREATE', type, false))) return undefined;
  const patch = matching.map(({ index }) => ({
    ...{ op: 'replace', path: `${place}/${index}/operations`, value: ['CREATE'] },
  }));
  return withRole('now', {
    text: `Limit ${what} to CREATE`,
    command: isWebhook ? patchWebhook(guard, ...patch) : patchCommand(objectArgs(guard), patch),
    risk: 'it no longer changes objects that are updated, in the whole cluster',
  });
}

/** Reports whether the error is a refusal by this webhook or policy. */
export function isErrorOf(context: Context, error: AdmissionError, guard: Guard): boolean {
  if (error.kind === 'policy-denied') return guard.policy?.name === error.policy;
  return guard.webhook !== undefined && guard.webhook === findWebhook(context, error);
}
