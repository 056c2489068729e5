import type { Subject } from '../model/finding.ts';
import type { LabelRequirement, WebhookFacts } from '../model/snapshot.ts';
import { typeName } from './display.ts';
import type { Draft, View } from './draft.ts';
import type { CallFailure, ContentError, ServiceRef } from './error-kinds.ts';
import {
  admissionWebhookRemedies,
  policyDeniedRemedies,
  webhookDeniedRemedies,
} from './remedies/admission.ts';

/** Findings about whoever refuses a request of the API server on the way to storage. */
export type AdmissionError = Extract<
  ContentError,
  { kind: 'webhook-unreachable' | 'webhook-denied' | 'policy-denied' }
>;

export function isAdmissionError(error: ContentError): error is AdmissionError {
  return (
    error.kind === 'webhook-unreachable' ||
    error.kind === 'webhook-denied' ||
    error.kind === 'policy-denied'
  );
}

export function admissionDraft(view: View, error: AdmissionError, request: string): Draft {
  if (error.kind === 'webhook-unreachable') return unreachable(view, error, request);
  if (error.kind === 'webhook-denied') return denied(view, error, request);
  return {
    code: 'admission-denied',
    subject: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      name: error.policy,
    },
    message: `denies ${request}: ${error.message}`,
    quote: error.message,
    evidence: [error.text],
    scope: 'cluster',
    remedies: policyDeniedRemedies({ policy: error.policy, binding: error.binding }),
  };
}

function unreachable(
  view: View,
  error: Extract<AdmissionError, { kind: 'webhook-unreachable' }>,
  request: string,
): Draft {
  const webhook = findWebhook(view, error.webhook);
  const service = webhook?.service ?? error.service;
  return webhookDraft(view, {
    name: error.webhook,
    webhook,
    service,
    cause: error.cause,
    request,
    evidence: [error.text],
  });
}

interface DeadWebhook {
  /** `webhooks[].name` */
  name: string;
  /** Undefined when no configuration could be read that has it. */
  webhook: WebhookFacts | undefined;
  service: ServiceRef | undefined;
  cause: CallFailure;
  request: string;
  evidence: string[];
}

function webhookDraft(view: View, dead: DeadWebhook): Draft {
  const { name, webhook, service, cause } = dead;
  const inside = service?.namespace === view.now.namespace.name;
  const backend = service === undefined ? '' : ` Service ${service.namespace}/${service.name}`;
  return {
    code: 'admission-webhook-failing',
    subject: configurationSubject(webhook, name),
    message: `must allow ${dead.request} but cannot be asked: webhook ${name},${backend} ${WHY[cause]}`,
    evidence: [
      ...dead.evidence,
      ...(webhook === undefined
        ? ['the webhook configuration that has it could not be read']
        : [
            `${webhook.configuration.kind} ${webhook.configuration.name}: failurePolicy ${webhook.failurePolicy}`,
          ]),
    ],
    scope: inside ? 'namespace' : 'cluster',
    remedies: admissionWebhookRemedies({
      configuration:
        webhook === undefined ? undefined : { ...webhook.configuration, ...placeOf(view, webhook) },
      webhook: name,
      cause,
      service,
      insideNamespace: inside,
    }),
    ...(inside
      ? { waitsForNamespace: `its${backend} was in this namespace and has been deleted with it` }
      : {}),
  };
}

const WHY: Record<CallFailure, string> = {
  'service-not-found': 'does not exist',
  'no-endpoints': 'has no ready endpoints',
  refused: 'refuses the connection',
  certificate: 'has a certificate that the API server does not accept',
  timeout: 'does not answer in time',
  other: 'does not answer',
};

function denied(
  view: View,
  error: Extract<AdmissionError, { kind: 'webhook-denied' }>,
  request: string,
): Draft {
  const webhook = findWebhook(view, error.webhook);
  return {
    code: 'admission-denied',
    subject: configurationSubject(webhook, error.webhook),
    message: `denies ${request}: ${error.message === '' ? 'without explanation' : error.message}`,
    quote: error.message,
    evidence: [error.text],
    scope: 'cluster',
    remedies: webhookDeniedRemedies({
      configuration: webhook?.configuration,
      webhook: error.webhook,
    }),
  };
}

/**
 * Webhooks that are certain to refuse an UPDATE of the object: they match it, fail closed, and their
 * Service does not exist. CEL match conditions cannot be judged here, so such webhooks are left out.
 */
export function deadUpdateWebhooks(
  view: View,
  type: { group: string; resource: string },
  labels: Record<string, string>,
): Draft[] {
  const details = view.now.details;
  if (details?.webhooks?.ok !== true) return [];
  return details.webhooks.value
    .filter(
      (webhook) =>
        webhook.failurePolicy === 'Fail' &&
        !webhook.hasMatchConditions &&
        matchesRules(webhook, 'UPDATE', type) &&
        matchesLabels(webhook.namespaceSelector, view.now.namespace.labels) &&
        matchesLabels(webhook.objectSelector, labels),
    )
    .flatMap((webhook) => {
      const { service } = webhook;
      if (service === undefined) return [];
      const read = details.services[`${service.namespace}/${service.name}`];
      if (read?.ok !== true || read.value !== undefined) return [];
      return webhookDraft(view, {
        name: webhook.name,
        webhook,
        service,
        cause: 'service-not-found',
        request: `UPDATE of ${typeName(type)}`,
        evidence: [
          `it matches UPDATE of ${typeName(type)} in this namespace, and there is no Service ${service.namespace}/${service.name}`,
        ],
      });
    });
}

/** Sources: apiserver pkg/admission/plugin/webhook/predicates/rules/rules.go. */
export function matchesRules(
  webhook: WebhookFacts,
  operation: string,
  type: { group: string; resource: string },
): boolean {
  const has = (list: readonly string[], value: string): boolean =>
    list.includes('*') || list.includes(value);
  return webhook.rules.some(
    (rule) =>
      has(rule.operations, operation) &&
      has(rule.apiGroups, type.group) &&
      [type.resource, `${type.resource}/*`, '*', '*/*'].some((name) =>
        rule.resources.includes(name),
      ),
  );
}

/** Sources: apimachinery pkg/labels/selector.go. */
export function matchesLabels(
  requirements: readonly LabelRequirement[],
  labels: Record<string, string>,
): boolean {
  return requirements.every(({ key, operator, values }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    switch (operator) {
      case 'In':
        return value !== undefined && values.includes(value);
      case 'NotIn':
        return value === undefined || !values.includes(value);
      case 'Exists':
        return value !== undefined;
      case 'DoesNotExist':
        return value === undefined;
      default:
        return false;
    }
  });
}

function findWebhook(view: View, name: string): WebhookFacts | undefined {
  const webhooks = view.now.details?.webhooks;
  return webhooks?.ok === true
    ? webhooks.value.find((webhook) => webhook.name === name)
    : undefined;
}

function configurationSubject(webhook: WebhookFacts | undefined, name: string): Subject {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: webhook?.configuration.kind ?? 'ValidatingWebhookConfiguration',
    name: webhook?.configuration.name ?? name,
  };
}

/** Where the webhook stands among those of its configuration. */
function placeOf(view: View, webhook: WebhookFacts): { index: number; webhooks: number } {
  const all = view.now.details?.webhooks;
  const { kind, name } = webhook.configuration;
  const siblings = (all?.ok === true ? all.value : [webhook]).filter(
    ({ configuration }) => configuration.kind === kind && configuration.name === name,
  );
  return { index: siblings.indexOf(webhook), webhooks: siblings.length };
}
