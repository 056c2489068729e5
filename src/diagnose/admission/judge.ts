import { escapeForRegExp, isKindNamed, upperFirst } from '../../base/text.ts';
import type { Remedy, Subject } from '../../model/finding.ts';
import type {
  Candidate,
  LabelRequirement,
  ObjectFacts,
  PolicyBindingFacts,
  ResourceType,
  Trial,
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
  countsOf,
  listNames,
  listWords,
  type RuleResult,
  resultId,
  servedType,
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
  isAdmissionError,
  UNNAMED_WEBHOOK,
} from '../error-texts.ts';
import type { AdmissionRequest } from './expressions.ts';

import {
  asTried,
  bindingsOf,
  closedWebhooks,
  denialOf,
  type Guard,
  guardsAsked,
  guardsFor,
  isGuardAsked,
  matchesLabels,
  matchesRule,
  mayDeny,
  type Operation,
  policiesOf,
  realRequests,
} from './guards.ts';

/**
 * Returns the finding for a refusal by admission: a webhook that cannot be called, or a webhook or policy that
 * denies.
 */
export function admissionResult(
  context: Context,
  error: AdmissionError,
  request: string,
  known?: WebhookFacts,
): RuleResult {
  if (error.kind === 'policy-denied') return policyDenied(context, error, request);
  const webhook = known ?? findWebhook(context, error);
  return error.kind === 'webhook-denied'
    ? webhookDenied(context, error, request, webhook)
    : unreachableWebhook(context, error, request, webhook);
}

/** Says where a denial can be ended: a message that names an object of this namespace, or a field, is about an object. */
function scopeOf({ now: { namespace } }: Context, message: string): 'namespace' | 'cluster' {
  const path = new RegExp(`(?<![\\w.-])${escapeForRegExp(namespace.name)}/[a-z0-9]`);
  // Expressions of policies read `object.spec`, and finalizers are not what a person changes.
  const isOfField = /(?<![\w.])(?:spec\.\w|metadata\.(?:labels|annotations)\b)/.test(message);
  const isAboutObject = path.test(message) || isOfField;
  return isAboutObject ? 'namespace' : 'cluster';
}

/** The decision of admission about a request. */
export interface Judgement {
  results: RuleResult[];
  /** Questions that decide and have no known answer. */
  questions: string[];
  /** Refusals of the gate's own request, which prove nothing about other users. */
  toGate: RuleResult[];
}

/**
 * Judges a request as it will be sent. Uses the answer to the gate's dry run; webhooks that cannot answer, since an
 * answer shows only the first refusal; and the expressions of guards that look at what the dry run differs in: the
 * user, the dry run itself, and whether something is being deleted.
 */
export function judgeAdmission(
  context: Context,
  request: AdmissionRequest,
  who: string,
  trial: Trial | undefined,
): Judgement {
  const { operation, type } = request;
  const does = `${operation} of ${typeName(type)}`;
  const results = new Map<string, RuleResult>();
  const judgement: Judgement = { results: [], questions: [], toGate: [] };
  const add = (result: RuleResult): void => {
    if (!results.has(resultId(result))) results.set(resultId(result), result);
  };
  const guards = guardsFor(context, operation, type);
  const said = trial?.answer === 'refused' ? classifyErrorText(trial.message) : [];
  for (const error of said.filter(isAdmissionError)) {
    const guard = guards.find((one) => isErrorOfGuard(context, error, one));
    const asked = guard && isGuardAsked(guard, request);
    const doubt = doubtAboutRefusal(context, error, type);
    if (doubt !== undefined) {
      judgement.questions.push(`${guard?.text} refuses it now, ${doubt}: ${error.text}`);
      continue;
    }
    const looksAt = guard?.looksAt ?? (error.kind === 'policy-denied' ? ['who asks'] : []);
    if (looksAt.length > 0) {
      const ours = `${does} by this gate (its conditions look at ${listWords(looksAt)})`;
      judgement.toGate.push({ ...admissionResult(context, error, ours), certainty: 'unknown' });
      // The decision of a policy about the real request is evaluated below.
      if (guard?.policy !== undefined) continue;
    }
    if (asked ?? looksAt.length === 0) add(admissionResult(context, error, does));
    else if (looksAt.length === 0) {
      // Not asked about a collection. Its refusal may have hidden another one.
      judgement.questions.push(`${guard?.text} refused it to this gate only: ${error.text}`);
    } else if (asked === undefined) {
      const refused = `${guard?.text ?? 'a policy'} refused it to this gate, and looks at ${listWords(looksAt)}`;
      judgement.questions.push(`${refused}: ${error.text}`);
    }
  }
  for (const guard of guards.filter(mayDeny)) {
    const asked = isGuardAsked(guard, request);
    if (asked === false) continue;
    const dead = guard.webhook && deadWebhook(context, guard.webhook, does);
    const answer = asked ? dead : dead && UNEVALUATED;
    const judged = answer ?? judgedByExpressions(context, guard, request, asked, who);
    if (typeof judged === 'string') judgement.questions.push(`${guard.text} ${judged}`);
    else if (judged !== undefined) add(judged);
  }
  return { ...judgement, results: [...results.values()] };
}

/** Words of a refusal that is about who asks. */
const ABOUT_USERS =
  /\b(?:users?|usernames?|service ?accounts?|admin(?:istrator)?s?|controllers?)\b|\bsystem:/i;

/**
 * Says why the refusal of a webhook in a forecast may not hold for the real request: its code is not known, so its
 * message decides.
 */
function doubtAboutRefusal(
  context: Context,
  error: AdmissionError,
  type: ResourceType,
): string | undefined {
  if (context.now.forecast === undefined || error.kind !== 'webhook-denied') return undefined;
  if (type.namespaced && ABOUT_USERS.test(error.message))
    return 'and its message is about who asks';
  const others = countsOf(context.now.forecast.present)
    .filter(
      (one) =>
        one.total > 0 && one.type.kind !== type.kind && isKindNamed(error.message, one.type.kind),
    )
    .map((one) => one.type.resource);
  if (type.namespaced && DELETED_WITH_NAMESPACE.test(error.message)) others.push('the namespace');
  return others.length === 0
    ? undefined
    : `and names ${listNames(others)}, which would be deleted as well`;
}

const DELETED_WITH_NAMESPACE = /\bdelet\w* (?:(?:the|this|its|whole|entire) )*namespace\b/i;

const UNEVALUATED = 'does not answer, and its match conditions could not be evaluated';

/**
 * Judges the real request by a guard whose expressions look at what a dry run of the gate differs in, or says what could
 * not be evaluated.
 */
function judgedByExpressions(
  context: Context,
  guard: Guard,
  request: AdmissionRequest,
  asked: true | undefined,
  who: string,
): RuleResult | string | undefined {
  if (guard.looksAt.length === 0) return undefined;
  const { binding, policy } = guard;
  if (policy === undefined) {
    return isGuardAsked(guard, asTried(context, request)) === true
      ? undefined
      : 'may be asked, by its match conditions, and was not asked about the dry run of this gate';
  }
  const denial = denialOf(policy, request);
  if (denial === 'none') return undefined;
  if (asked === undefined || denial === undefined)
    return `looks at ${listWords(guard.looksAt)}, and its expressions could not be evaluated`;
  const message = denial.message || `expression ${denial.expression} is false for ${who}`;
  const text = `its expressions were evaluated for ${who}`;
  const error = { policy: policy.name, binding: binding?.name, message, text };
  const does = `${request.operation} of ${typeName(request.type)}`;
  return policyDenied(context, { kind: 'policy-denied', ...error }, does);
}

function isErrorOfGuard(
  context: Context,
  error: AdmissionError,
  { webhook, policy }: Guard,
): boolean {
  if (error.kind === 'policy-denied') return policy?.name === error.policy;
  return webhook !== undefined && webhook === findWebhook(context, error);
}

/**
 * Finds a webhook by its name. Several configurations may have webhooks of one name; the Service in the error
 * decides, then whether they select this namespace at all.
 */
function findWebhook(
  context: Context,
  error: Exclude<AdmissionError, { kind: 'policy-denied' }>,
): WebhookFacts | undefined {
  const all = webhooksOf(context);
  const named = all.filter(({ name, matchConditions }) =>
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

function unreachableWebhook(
  context: Context,
  { webhook: name, service, cause, text }: ErrorOf<'webhook-unreachable'>,
  request: string,
  webhook: WebhookFacts | undefined,
): RuleResult {
  const subject = configurationSubject(webhook, name);
  const { kind, name: configuration } = subject;
  const type = objectArgs(subject);
  const place = `/webhooks/${webhook?.index}`;
  const ignore = withRole('or', {
    text: `Let requests pass while webhook ${name} of ${configuration} cannot be called`,
    command: patchCommand(type, [
      { op: 'test', path: `${place}/name`, value: name },
      { op: 'replace', path: `${place}/failurePolicy`, value: 'Ignore' },
    ]),
    risk: 'until failurePolicy is set back to Fail, requests that it would refuse or change pass in the whole cluster',
  });
  const { end, ...how } =
    webhook !== undefined && isShared(context, webhook)
      ? {
          end: `remove webhook ${name} from ${kind} ${configuration}`,
          command: patchCommand(type, [
            { op: 'test', path: `${place}/name`, value: name },
            { op: 'remove', path: place },
          ]),
          risk: 'this webhook stops for the whole cluster',
        }
      : {
          end: `delete ${kind} ${configuration}`,
          command: kubectl('delete', ...type),
          risk: 'all its webhooks stop for the whole cluster',
        };
  const result = unansweredCall(context, {
    code: 'admission-webhook-failing',
    subject,
    // Whether the host of a webhook's own URL leads to a Service depends on the resolver of the API server.
    service: webhook === undefined ? service : webhook.service,
    failure: cause,
    endpoint: {
      object: subject,
      caBundle: `webhooks[${webhook?.index}].clientConfig.caBundle of ${kind} ${configuration}`,
      caInjection: webhook?.configuration.caInjection,
    },
    says: (server) => `cannot be called for ${request}: its webhook ${name} is served by ${server}`,
    evidence: [
      text,
      webhook === undefined
        ? 'the webhook configuration that has it could not be read'
        : `${kind} ${configuration}: failurePolicy ${webhook.failurePolicy}`,
    ],
    or: [ignore],
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
            exemptionRemedy(context, webhook, request),
          ]),
    ],
  };
}

/** Adds an exemption of this namespace to a selector; matchLabels become expressions, so nothing is lost. */
function withExemption({ now: { namespace } }: Context, selector: readonly LabelRequirement[]) {
  const own = { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [namespace.name] };
  return [...selector, own].map(({ values, ...rest }) =>
    values.length === 0 ? rest : { ...rest, values },
  );
}

function exemptionRemedy(context: Context, webhook: WebhookFacts, request: string): Remedy {
  const { kind, name } = webhook.configuration;
  const place = `/webhooks/${webhook.index}`;
  const matchExpressions = withExemption(context, webhook.namespaceSelector);
  return withRole('or', {
    text: `Exempt this namespace from webhook ${webhook.name} of ${name}`,
    command: patchCommand(objectArgs({ kind, name }), [
      { op: 'test', path: `${place}/name`, value: webhook.name },
      { op: 'add', path: `${place}/namespaceSelector`, value: { matchExpressions } },
    ]),
    risk: `the webhook no longer checks anything in this namespace: the ${request} that it refused is carried out${request.startsWith('DELETE') ? ', with all that it deletes' : ''}`,
  });
}

function policyDenied(
  context: Context,
  error: ErrorOf<'policy-denied'>,
  request: string,
): RuleResult {
  const policy = policiesOf(context).find(({ name }) => name === error.policy);
  const binding = bindingsOf(context).find(({ name }) => name === error.binding);
  const isValidating = /\bValidatingAdmissionPolicy '/.test(error.text);
  const kind = policy?.kind ?? `${isValidating ? 'Validating' : 'Mutating'}AdmissionPolicy`;
  // Without a namespace, parameters are searched in the namespace of the object.
  const isLost =
    NO_PARAMS.test(error.text) &&
    binding?.paramRef?.namespace === undefined &&
    policy?.paramKind !== undefined &&
    servedType(context, policy.paramKind)?.namespaced === true;
  const subject = { apiVersion: 'admissionregistration.k8s.io/v1', kind, name: error.policy };
  return {
    code: 'admission-denied',
    subject,
    message: `denies ${request}: ${error.message}`,
    quote: error.message,
    scope: scopeOf(context, error.message),
    evidence: [error.text],
    certainty: 'likely',
    remedies: [
      ...(isLost ? [] : [satisfyRemedy(`${kind} ${error.policy}`, error.message)]),
      showObjectRemedy(`See what ${kind} ${error.policy} asks for`, subject),
      ...(binding === undefined
        ? []
        : [withRole(isLost ? 'now' : 'or', exemptionFromBinding(context, kind, binding))]),
    ],
    // Its parameters were in this namespace, where nothing can be created.
    waitsForNamespace: isLost,
  };
}

/** The text for a binding whose parameters do not exist (apiserver, policy/generic/policy_dispatcher.go). */
const NO_PARAMS = /no params found for policy binding/;

/**
 * The texts of a policy that fails instead of deciding (policy/generic/policy_dispatcher.go,
 * policy/validating/validator.go).
 */
const FAILS = /^failed to configure (?:policy|binding): | resulted in error: /;

function satisfyRemedy(who: string, words: string): Remedy {
  const misses = classifyErrorText(words).some(({ kind }) => kind === 'not-found');
  return withRole('now', {
    text: FAILS.test(words)
      ? `Fix the error of ${who}: ${shortQuote(words)}`
      : misses
        ? `Create what ${who} does not find, unless it belongs in this namespace: a terminating namespace accepts no new objects`
        : `Do what the message of ${who} asks for, or ask its maintainers for an exemption`,
  });
}

function exemptionFromBinding(context: Context, policy: string, binding: PolicyBindingFacts) {
  const { name, namespaceSelector: own } = binding;
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

/**
 * Returns the finding for a webhook that fails closed and has nothing behind its Service; undefined for any other
 * webhook.
 */
function deadWebhook(
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

/**
 * Returns a finding about the only guard that applies: it must be the one that `does` it, although no text names
 * it.
 */
export function onlyGuardResults(
  context: Context,
  asked: readonly Guard[],
  request: string,
  does: string,
): RuleResult[] {
  const [only] = asked.length === 1 ? asked : [];
  if (only === undefined || only.looksAt.length > 0) return [];
  const message = `most likely ${does}: no other webhook or policy applies to ${request}`;
  return [{ ...guardResult(context, only, request), message, certainty: 'likely' }];
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
 * Returns findings about the mutating guards that may be asked about an update which removes a finalizer, where the API
 * server refuses the change of another field: one of them makes that change.
 */
export function changingGuardResults(
  context: Context,
  type: ResourceType,
  object: Candidate,
): RuleResult[] {
  const requests = realRequests(context, 'UPDATE', type, object);
  const guards = guardsFor(context, 'UPDATE', type).filter(
    (guard) => guard.isMutating && requests.some((one) => isGuardAsked(guard, one) !== false),
  );
  const isKnown = guardsAsked(context, 'UPDATE', type, object) !== undefined;
  const [word, certainty] =
    guards.length === 1 && isKnown
      ? (['most likely changes', 'likely'] as const)
      : (['may be what changes', 'unknown'] as const);
  const request = `UPDATE of ${typeName(type)}`;
  return guards.map((guard) => ({
    ...guardResult(context, guard, request),
    message: `${word} a field in the ${request}, which the API server then refuses`,
    certainty,
    remedies: limitRemedies(guard, type),
  }));
}

/** Returns the remedies that limit a mutating guard, which is to change nothing but new objects, to these. */
function limitRemedies({ webhook, policy, text }: Guard, type: ResourceType): Remedy[] {
  const owner = webhook?.configuration ?? policy;
  const rules = (webhook ?? policy)?.rules ?? [];
  if (owner === undefined) return [];
  const place =
    webhook === undefined
      ? '/spec/matchConstraints/resourceRules'
      : `/webhooks/${webhook.index}/rules`;
  const matching = rules.flatMap((rule, index) =>
    matchesRule(rule, 'UPDATE', type, false) ? [{ rule, path: `${place}/${index}` }] : [],
  );
  const isOfUpdates = matching.some(({ rule }) => !matchesRule(rule, 'CREATE', type, false));
  const test = { op: 'test', path: `/webhooks/${webhook?.index}/name`, value: webhook?.name };
  const patch = [
    ...(webhook === undefined ? [] : [test]),
    ...matching.map(({ path }) => ({
      ...{ op: 'replace', path: `${path}/operations`, value: ['CREATE'] },
    })),
  ];
  const what = webhook === undefined ? `policy ${owner.name}` : text;
  return [
    withRole(
      'now',
      isOfUpdates
        ? { text: `Let ${what} leave objects alone that are being deleted` }
        : {
            text: `Limit ${what} to CREATE`,
            command: patchCommand(objectArgs(owner), patch),
            risk: 'it no longer changes objects that are updated, in the whole cluster',
          },
    ),
    showObjectRemedy(`See which requests ${owner.kind} ${owner.name} changes`, owner),
  ];
}

/** Returns the finding about a guard that refuses a request without a text. */
function guardResult(context: Context, guard: Guard, request: string): RuleResult {
  const { webhook, policy, binding, text } = guard;
  const said = { message: '', text: `admission asks ${text} about ${request}` };
  const error: AdmissionError = webhook
    ? { kind: 'webhook-denied', webhook: webhook.name, ...said }
    : { kind: 'policy-denied', policy: policy?.name ?? '', binding: binding?.name, ...said };
  const { quote: _, ...rest } = admissionResult(context, error, request, webhook);
  return rest;
}

/** Returns the configuration of a webhook, or the webhook alone: its name does not show the kind of configuration. */
function configurationSubject(webhook: WebhookFacts | undefined, name: string): Subject {
  const { kind, name: own } = webhook?.configuration ?? { kind: 'Webhook', name };
  return { apiVersion: 'admissionregistration.k8s.io/v1', kind, name: own };
}
