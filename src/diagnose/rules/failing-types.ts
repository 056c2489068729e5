import type { Subject } from '../../model/finding.ts';
import type { ResourceType } from '../../model/snapshot.ts';
import { typeName, typeSubject } from '../display.ts';
import { type Draft, namespaceSubject, type View } from '../draft.ts';
import type { CallFailure, ContentError } from '../error-kinds.ts';
import { apiFailingRemedies, conversionWebhookRemedies } from '../remedies/api.ts';
import { deletionForbiddenRemedies } from '../remedies/forbidden.ts';
import { storageUnreadableRemedies } from '../remedies/general.ts';

type ErrorOf<K extends ContentError['kind']> = Extract<ContentError, { kind: K }>;

/**
 * A broken conversion keeps the API server from filling its cache of the type, so it holds namespaces
 * without a single such object too (apiextensions-apiserver pkg/apiserver/conversion).
 */
export function conversionDraft(view: View, error: ErrorOf<'conversion-failed'>): Draft {
  const type = findType(view, error.group, (entry) => entry.kind === error.objectKind);
  const name = type === undefined ? `${error.objectKind}.${error.group}` : typeName(type);
  const crd = view.now.details?.crds[name];
  const service = error.service ?? (crd?.ok === true ? crd.value?.conversionService : undefined);
  const inside = service?.namespace === view.now.namespace.name;
  const backend =
    service === undefined
      ? 'its conversion webhook'
      : `Service ${service.namespace}/${service.name}`;
  return {
    code: 'conversion-webhook-failing',
    subject: { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', name },
    message: `has objects that cannot be read or deleted: they need conversion, and ${backend} ${STATE[error.cause]}`,
    evidence: [error.text],
    scope: 'cluster',
    remedies: conversionWebhookRemedies({
      crd: name,
      cause: error.cause,
      service,
      insideNamespace: inside,
    }),
    blocksNamespace: `${name} cannot be listed or deleted, and no namespace is finished before every type is`,
    ...(inside
      ? { waitsForNamespace: `${backend} was in this namespace and has been deleted with it` }
      : {}),
  };
}

const STATE: Record<CallFailure, string> = {
  'service-not-found': 'does not exist',
  'no-endpoints': 'has no ready endpoints',
  refused: 'refuses the connection',
  certificate: 'has a certificate that the API server does not accept',
  timeout: 'does not answer in time',
  other: 'does not answer as it should',
};

export function deletionForbiddenDraft(view: View, error: ErrorOf<'forbidden'>): Draft {
  const type = findType(view, error.group, (entry) => entry.resource === error.resource);
  const target = type ?? { group: error.group, version: 'v1', resource: error.resource };
  return {
    code: 'deletion-forbidden',
    subject: typeSubject(target),
    message: `may not be deleted by ${error.user ?? 'the namespace controller'}: ${error.message}`,
    quote: error.message,
    evidence: [error.text],
    scope: 'cluster',
    remedies: deletionForbiddenRemedies({
      type: target,
      namespace: view.now.namespace.name,
      user: error.user,
      verb: error.verb,
      backend: backendOf(view, target.group),
    }),
    blocksNamespace: `the namespace controller is not allowed to delete ${typeName(target)}`,
  };
}

export function storageDraft(view: View, error: ErrorOf<'storage'>, failing?: ResourceType): Draft {
  const resource = error.resource;
  const type =
    failing ??
    (resource === undefined
      ? view.now.content.find(({ read }) => !read.ok && read.failure.kind === 'server-error')?.type
      : findType(view, error.group ?? '', (entry) => entry.resource === resource));
  const subject: Subject =
    type === undefined ? namespaceSubject(view.now.namespace.name) : typeSubject(type);
  return {
    code: 'storage-unreadable',
    subject,
    message:
      error.name === undefined
        ? 'has an object that the API server cannot read from its storage, which stops every list of the type'
        : `has an object, ${error.name}, that the API server cannot read from its storage, which stops every list of the type`,
    evidence: [error.text],
    scope: 'cluster',
    remedies: storageUnreadableRemedies({
      type,
      namespace: view.now.namespace.name,
      name: error.name,
    }),
    blocksNamespace: 'what cannot be listed cannot be deleted',
  };
}

/**
 * An extension API server's answer reaches the condition as its bare words, without the status code,
 * so the words have to tell a refusal (403) from a failure.
 */
const REFUSAL =
  /\b(?:forbidden|unauthorized|denied|prohibited|refused to|not (?:allowed|permitted|authorized)|(?:may|must|can) ?not be (?:deleted|removed)|403|401)\b/i;

/** The API is Available, yet a request for this type fails, or is refused. */
export function failingApiDraft(view: View, type: ResourceType, text: string): Draft {
  const backend = backendOf(view, type.group);
  const served =
    backend === undefined
      ? ''
      : `; its API is served by Service ${backend.namespace}/${backend.name}`;
  if (REFUSAL.test(text)) {
    return {
      code: 'deletion-forbidden',
      subject: typeSubject(type),
      message: `may not be deleted by the namespace controller: ${text}`,
      quote: text,
      evidence: [text, `objects of this type were never asked to go${served}`],
      scope: 'cluster',
      remedies: deletionForbiddenRemedies({
        type,
        namespace: view.now.namespace.name,
        backend,
      }),
      blocksNamespace: `${typeName(type)} cannot be deleted`,
    };
  }
  return {
    code: 'api-failing',
    subject: typeSubject(type),
    message: `cannot be listed or deleted: ${text}`,
    quote: text,
    evidence: [text, `the group can be discovered, yet this type fails${served}`],
    scope: 'cluster',
    remedies: apiFailingRemedies({ type, namespace: view.now.namespace.name, backend }),
    blocksNamespace: `${typeName(type)} cannot be deleted`,
  };
}

function findType(
  view: View,
  group: string,
  fits: (type: ResourceType) => boolean,
): ResourceType | undefined {
  return view.now.content.find(({ type }) => type.group === group && fits(type))?.type;
}

function backendOf(view: View, group: string): { namespace: string; name: string } | undefined {
  const services = view.now.details?.apiServices;
  if (services?.ok !== true) return undefined;
  return services.value.find((entry) => entry.group === group && entry.service !== undefined)
    ?.service;
}
