import { listNames, shortQuote } from '../../base/text.ts';
import { typeName } from '../../model/facts/metadata.ts';
import type { Remedy, Subject } from '../../model/finding.ts';
import type { Candidate, ResourceType, WebhookFacts } from '../../model/snapshot.ts';
import { backendOf, unansweredCall } from '../backends.ts';
import { kubectl, objectArgs, patchCommand, showObjectRemedy, withRole } from '../commands.ts';
import { webhooksOf } from '../content.ts';
import { type Context, isInside } from '../context.ts';
import type { AdmissionError, ContentError, ErrorOf } from '../error-texts.ts';
import { type RuleResult, serviceText } from '../results.ts';
import type { AdmissionRequest } from './expressions.ts';
import {
  everyGuard,
  type Guard,
  guardsOf,
  isAsked,
  matchesLabels,
  matchesRule,
  namespaceOf,
  realRequest,
} from './guards.ts';

// The findings about webhooks and policies that refuse a request, with their remedies.

function requestText({ operation, type }: AdmissionRequest): string {
  return `${operation} of ${typeName(type)}`;
}

/** Returns the finding for a refusal. `does`: what the request does, if more is known than its type. */
export function refusalResult(
  context: Context,
  error: AdmissionError,
  request: AdmissionRequest,
  does?: string,
): RuleResult {
  const guard = guardOf(context, error, request);
  // Controllers also quote refusals of requests about other objects.
  const isOther = guard && isAsked(guard, request) === false;
  const what = does ?? (isOther ? 'another request of the controller' : requestText(request));
  if (error.kind === 'webhook-unreachable') return unreachableWebhook(context, error, what, guard);
  const isPolicy = error.kind === 'policy-denied';
  const named = isPolicy
    ? { kind: policyKind(error), name: error.policy }
    : { kind: 'Webhook', name: error.webhook };
  const subject = subjectOfGuard(guard?.source ?? named);
  const words = error.message || 'without explanation';
  const by = isPolicy ? '' : ` by its webhook ${error.webhook}`;
  const who = `${subject.kind} ${subject.name}`;
  const isEngine = !isPolicy && ENGINE.test(error.webhook) && NAMES_POLICY.test(words);
  const exempt = isEngine ? EXCLUDE : exemption(context, request, guard);
  const asks = { text: `Do what ${who} asks for, or fix what it reports: "${shortQuote(words)}"` };
  return {
    ...{ code: 'admission-denied', subject, quote: words, certainty: 'likely' },
    message: `denies ${what}${by}: ${words}`,
    evidence: [error.text],
    remedies: [
      ...(exempt ? [withRole('now', exempt), withRole('or', asks)] : [withRole('now', asks)]),
      subject.kind === 'Webhook'
        ? findConfiguration(subject.name)
        : showObjectRemedy(`See what ${who} asks for`, subject),
    ],
  };
}

/** Policy engines: their webhooks name the policy that denies, and they set changes of their configurations back. */
const ENGINE = /\.kyverno\.svc|\.gatekeeper\.sh$/;
const NAMES_POLICY = /\bpolic(?:y|ies)\b|^\s{0,9}\[[a-z0-9.-]{1,253}\]/i;
const EXCLUDE = {
  text: 'Exclude this namespace from the policy that the message names (Kyverno: in spec.rules[].exclude; Gatekeeper: in spec.match.excludedNamespaces)',
  risk: 'it no longer checks anything in this namespace',
};

/** Finds the guard that an error names; among several webhooks of one name by the Service in the error, then by what they are asked about. */
export function guardOf(context: Context, error: AdmissionError, request: AdmissionRequest) {
  const isNamed = ({ binding, source, webhook }: Guard): boolean =>
    error.kind === 'policy-denied'
      ? source.kind === policyKind(error) &&
        source.name === error.policy &&
        [undefined, binding?.name].includes(error.binding)
      : webhook?.name === error.webhook;
  const named = everyGuard(context).filter(isNamed);
  const called = 'service' in error && error.service ? serviceText(error.service) : undefined;
  return (
    named.find(({ webhook }) => webhook?.service && serviceText(webhook.service) === called) ??
    named.find((one) => isAsked(one, request) !== false) ??
    named.find(({ own }) => matchesLabels(own.namespaceSelector, context.now.namespace.labels)) ??
    named[0]
  );
}

/** Mutating policies are named without their kind (apiserver, pkg/admission/plugin/policy/mutating). */
function policyKind({ text }: { text: string }): string {
  return `${/\bValidatingAdmissionPolicy '/.test(text) ? 'Validating' : 'Mutating'}AdmissionPolicy`;
}

/** Returns the policy, or the configuration of a webhook; if that was not read, the webhook alone. */
function subjectOfGuard({ kind, name }: Guard['source']): Subject {
  return { apiVersion: 'admissionregistration.k8s.io/v1', kind, name };
}

/** Writes the patch of a webhook; its name proves that the position is still the same. */
function patchOf({ index, name }: WebhookFacts, ...patch: object[]): object[] {
  return [{ op: 'test', path: `/webhooks/${index}/name`, value: name }, ...patch];
}

/** Returns the remedy to search the configuration: the name of a webhook is not the name of an object. */
function findConfiguration(webhook: string): Remedy {
  const all = 'validatingwebhookconfigurations,mutatingwebhookconfigurations';
  const columns = 'custom-columns=KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name';
  const command = kubectl('get', all, '-o', columns);
  return withRole('look', { text: `Find the configuration that has webhook ${webhook}`, command });
}

/** What the API server quotes of a failed call (apiserver pkg/util/webhook/error.go), after the address. */
const ANSWER = /failed to call webhook: (?:Post \\?"[^"]*": )?(.+)/s;

function unreachableWebhook(
  context: Context,
  { webhook: name, service, cause, text }: ErrorOf<'webhook-unreachable'>,
  request: string,
  { source, webhook }: Partial<Guard> = {},
): RuleResult {
  const subject = subjectOfGuard(source ?? { kind: 'Webhook', name });
  const what = `${subject.kind} ${subject.name}`;
  // Those of the configuration that have the same Service and fail closed may be asked next.
  const serverOf = (one?: WebhookFacts) =>
    JSON.stringify([one?.configuration, one?.failurePolicy, one?.service ?? one?.index]);
  const closed = webhooksOf(context).filter((one) => serverOf(one) === serverOf(webhook));
  const patch = closed.flatMap((one) =>
    patchOf(one, { op: 'replace', path: `/webhooks/${one.index}/failurePolicy`, value: 'Ignore' }),
  );
  const [, answer] = (['other', 'error-status'].includes(cause) && ANSWER.exec(text)) || [];
  const quote = answer && shortQuote(answer);
  const result = unansweredCall(context, {
    code: 'admission-webhook-failing',
    ...{ subject, quote },
    // Whether the host of a webhook's own URL leads to a Service depends on the resolver of the API server.
    service: webhook === undefined ? service : webhook.service,
    failure: cause,
    says: (server) => `blocks ${request}: it calls ${server}${quote ? `: ${quote}` : ''}`,
    evidence: [
      text,
      ...(webhook ? [`${what}: failurePolicy ${webhook.failurePolicy} of webhook ${name}`] : []),
    ],
    or: [
      withRole('or', {
        text: `Let requests pass while webhook${closed.length > 1 ? 's' : ''} ${listNames(closed.map((one) => one.name))} of ${what} cannot be called`,
        command: patchCommand(objectArgs(subject), patch),
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

/** Returns the finding for a webhook that fails closed and has nothing behind its Service; undefined for any other. */
export function deadWebhook(context: Context, guard: Guard, request: AdmissionRequest) {
  const { failurePolicy, name = '', service }: Partial<WebhookFacts> = guard.webhook ?? {};
  const backend = failurePolicy === 'Fail' && service ? backendOf(context, service) : undefined;
  if (backend?.isDead !== true) return undefined;
  const does = requestText(request);
  const text = `it matches ${does} there and fails closed`;
  const error = { kind: 'webhook-unreachable', cause: 'no-endpoints', service, text } as const;
  return unreachableWebhook(context, { ...error, webhook: name }, does, guard);
}

/** Returns the remedy to exempt this namespace from a guard; outside of the namespace it is of no use. */
function exemption(context: Context, request: AdmissionRequest, guard: Guard | undefined) {
  const { binding, source, text, webhook }: Partial<Guard> = guard ?? {};
  const selecting = webhook ?? binding;
  if (!selecting || !isInside(context, namespaceOf(request))) return undefined;
  // matchLabels become expressions, so nothing is lost.
  const matchExpressions = [
    ...selecting.namespaceSelector,
    { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [context.now.namespace.name] },
  ].map(({ values, ...rest }) => (values.length === 0 ? rest : { ...rest, values }));
  const risk = `the ${webhook ? 'webhook' : 'policy'} no longer checks anything in this namespace: what it refused is carried out, deletions included`;
  const path = `/webhooks/${webhook?.index}/namespaceSelector`;
  // A merge patch keeps labels that are not named: expressions replace all of them.
  const selector = { matchLabels: null, matchExpressions };
  const merge = JSON.stringify({ spec: { matchResources: { namespaceSelector: selector } } });
  const target = objectArgs({ kind: `${source?.kind}Binding`, name: selecting.name });
  const patch = webhook ? patchOf(webhook, { op: 'add', path, value: { matchExpressions } }) : [];
  const command = webhook
    ? patchCommand(objectArgs(webhook.configuration), patch)
    : kubectl('patch', ...target, '--type=merge', '-p', merge);
  return { text: `Exempt this namespace from ${text}`, command, risk };
}

/** A refusal of a change to a field that may not be changed; the removal of a finalizer changes no such field. */
const UNCHANGEABLE =
  /\bimmutable\b|\bmay not (?:be )?change|\bupdates? (?:may not|to .{1,300} are forbidden)|\b(?:cannot|must not|can't) be (?:changed|updated|modified)/i;

/** Reports whether an error refuses the change of a field of such an object, which the removal of a finalizer does not change. */
export function refusesOtherChange(error: ContentError, { kind }: { kind: string }): boolean {
  return error.kind === 'invalid' && error.resource === kind && UNCHANGEABLE.test(error.text);
}

/** Returns findings about the mutating guards of an update that only removes a finalizer, of which one `does` something else to the object. */
export function mutatingResults(
  context: Context,
  type: ResourceType,
  object: Candidate,
  does: string,
): RuleResult[] {
  const request = realRequest(context, 'UPDATE', type, object);
  const guards = guardsOf(context, request).filter((one) => one.source.kind.startsWith('Mutating'));
  return guards.map((guard) => {
    const { own, source, text, webhook } = guard;
    const isCertain = guards.length === 1 && isAsked(guard, request) === true;
    const rules = webhook
      ? `webhooks/${webhook.index}/rules`
      : 'spec/matchConstraints/resourceRules';
    // A rule about updates alone has nothing to say about new objects.
    const patch = own.rules.flatMap((rule, index) =>
      matchesRule(rule, 'UPDATE', type) && matchesRule(rule, 'CREATE', type)
        ? { op: 'replace', path: `/${rules}/${index}/operations`, value: ['CREATE'] }
        : [],
    );
    const limit = {
      text: `Limit ${webhook ? `webhook ${webhook.name} of ${source.kind}` : 'policy'} ${source.name} to CREATE`,
      command: patchCommand(objectArgs(source), webhook ? patchOf(webhook, ...patch) : patch),
      risk: 'it no longer changes objects that are updated, in the whole cluster',
    };
    const ways = [patch.length > 0 ? limit : [], exemption(context, request, guard) ?? []].flat();
    return {
      code: 'admission-denied',
      subject: subjectOfGuard(source),
      message: `${isCertain ? 'most likely' : 'may be what'} ${does}`,
      evidence: [`admission asks ${text} about ${requestText(request)}`],
      certainty: isCertain ? 'likely' : 'unknown',
      remedies: ways.map((way, index) => withRole(index === 0 ? 'now' : 'or', way)),
    };
  });
}
