import { FINALIZE, NAMESPACE_TYPE } from '../../model/facts/metadata.ts';
import type { Remedy } from '../../model/finding.ts';
import type { ResourceType, TypeContent } from '../../model/snapshot.ts';
import { foreseenAdmission, judgeLastRequest } from '../admission/foreseen.ts';
import { admissionResult, deadWebhooks } from '../admission/refusals.ts';
import { backendOf, backendRemedies, HEALS, unansweredCall } from '../backends.ts';
import {
  kubectl,
  lookRemedy,
  nameArgs,
  patchCommand,
  permissionRemedy,
  preventionRemedies,
  rawRemedy,
  withRole,
} from '../commands.ts';
import {
  apiVersionOf,
  type Context,
  conversionsOf,
  countsOf,
  definitionSubject,
  definitionsOf,
  extensionApis,
  isAggregated,
  isBuiltIn,
  isContentRead,
  isForeseen,
  itemsIn,
  listNames,
  namespaceSubject,
  type RuleResult,
  resultId,
  servedType,
  serviceText,
  shortQuote,
  type TypeRef,
  typeName,
  typeSubject,
  valueIn,
  willBeDeleted,
} from '../context.ts';
import {
  type CallFailure,
  type ContentError,
  callFailure,
  classifyErrorText,
  type ErrorOf,
  isAdmissionError,
} from '../error-texts.ts';
import { shrinkingTypes, sum } from '../movement.ts';
import { mayController } from '../rights.ts';
import { endpointOf } from './apis.ts';

/**
 * Finds types that the namespace controller could not delete, from NamespaceDeletionContentFailure, and
 * types that the gate could not list. Only current failures: overdue pods have rules of their own, and a text
 * that is older than a success of the gate is no evidence.
 */
export function failingTypes(context: Context): RuleResult[] {
  const errors = context.conditions.contentFailure?.errors ?? [];
  return [
    ...errors.flatMap((error) => errorResults(context, error)),
    ...context.now.content.flatMap((content) => failedListResults(context, content)),
    ...foreseenFailures(context),
  ];
}

/**
 * Finds what a forecast can know about the deletion of single types: the answer of admission to a dry run, webhooks
 * and conversions without a backend that will answer, and types that the namespace controller may not delete.
 */
function foreseenFailures(context: Context): RuleResult[] {
  if (!isForeseen(context, { since: context.now.namespace.deletionTimestamp ?? '' })) return [];
  const refused = foreseenAdmission(context).flatMap(({ results }) => results);
  return [
    ...blocking(refused),
    ...foreseenConversions(context),
    ...context.now.content
      .filter(({ type }) => !isAggregated(context, type) && !mayController(context, type))
      .slice(0, MAX_FORBIDDEN)
      .map(({ type }) => missingRule(context, type)),
    ...refusedLastRequest(context),
  ];
}

const MAX_FORBIDDEN = 10;

function blocking(results: readonly RuleResult[]): RuleResult[] {
  return results.map((result) => ({ ...result, blocksNamespace: true }));
}

/** Finds that the last request of the namespace controller is refused, although all content was or will be deleted. */
export function refusedLastRequest(context: Context): RuleResult[] {
  return [...forbiddenEnd(context), ...blocking(judgeLastRequest(context).results)];
}

/** The namespace controller with `--use-service-account-credentials`; without it, kube-controller-manager. */
const CONTROLLER = 'system:serviceaccount:kube-system:namespace-controller';
const ROLE = 'system:controller:namespace-controller';

function forbiddenEnd(context: Context): RuleResult[] {
  if (mayController(context, FINALIZE, ['update'])) return [];
  const result = missingRule(context, FINALIZE, 'update', 'update namespaces/finalize');
  const message = `cannot be deleted, because the last request of the namespace controller is refused: ${result.quote}`;
  return [{ ...result, subject: typeSubject(NAMESPACE_TYPE), message, blocksNamespace: true }];
}

/** Returns the finding about the error with which the API server would refuse a request of the namespace controller. */
function missingRule(
  context: Context,
  type: TypeRef,
  verb = 'deletecollection',
  does = `list and delete ${typeName(type)} in this namespace`,
): RuleResult {
  const message = `no rule lets ${CONTROLLER} ${does}`;
  const error = { user: CONTROLLER, verb, message, text: `RBAC: ${message}` };
  return deletionForbidden(context, { kind: 'forbidden', ...type, ...error });
}

function deletionForbidden(context: Context, error: ErrorOf<'forbidden'>): RuleResult {
  const { user = CONTROLLER, verb = 'deletecollection', message, text } = error;
  const target = findType(context, error) ?? { ...error, version: 'v1' };
  const grant = `Give ${user} the permission back. Kubernetes grants it by ClusterRole and ClusterRoleBinding ${ROLE}; a restart of kube-apiserver restores both unless their annotation rbac.authorization.kubernetes.io/autoupdate is false`;
  return {
    code: 'deletion-forbidden',
    subject: typeSubject(target),
    message: `may not be deleted by ${error.user ?? 'the namespace controller'}: ${message}`,
    quote: message,
    evidence: [text],
    remedies: [
      withRole('now', { text: grant }),
      permissionRemedy(user, verb, typeName(target), context.now.namespace.name),
    ],
    blocksNamespace: true,
  };
}

function findType(
  { now }: Context,
  named: Pick<TypeRef, 'group' | 'resource'>,
): ResourceType | undefined {
  return now.content.find(({ type }) => typeName(type) === typeName(named))?.type;
}

/**
 * The number of objects from which a collection delete may exceed 60 s; observed with 100,000 objects on two cores. The
 * request of the namespace controller is cut off, the condition reports an error, and it begins again: that is slow,
 * and no fault of the API.
 */
const CROWD = 5_000;

function errorResults(context: Context, error: ContentError): RuleResult[] {
  if (isAdmissionError(error)) return refusedDeletions(context, error);
  switch (error.kind) {
    case 'conversion-failed':
      return [conversionFailing(context, error)];
    case 'storage':
      return storageResults(context, error);
    case 'unexpected-items':
      return [];
    case 'forbidden': {
      // A text without a user is no refusal by an authorizer, but by an extension API or admission.
      const type = findType(context, error);
      return error.user === undefined && type !== undefined
        ? [apiFailing(context, type, error.text)]
        : [deletionForbidden(context, error)];
    }
    default:
      return suspectTypes(context)
        .filter(({ total }) => error.kind !== 'timeout' || total < CROWD)
        .map(({ type }) => apiFailing(context, type, error.text));
  }
}

function refusedDeletions(
  context: Context,
  error: Parameters<typeof admissionResult>[1],
): RuleResult[] {
  // DELETE admission is called per object (rest.AdmissionToValidateObjectDeleteFunc): without objects, no refusal.
  if (suspectTypes(context).length === 0 && isContentRead(context.now)) return [];
  const told = admissionResult(context, error, 'DELETE of its content');
  // An answer shows only the first refusal.
  const dead = countsOf(context.now).flatMap(({ type, sample }) =>
    sample === undefined ? [] : deadWebhooks(context, type, sample, 'DELETE'),
  );
  const all = [told, ...dead.filter((one) => resultId(one) !== resultId(told))];
  // The request of the namespace controller itself is refused, so this is proven.
  const proven = all.map((one) => ({ ...one, certainty: one.certainty && ('proven' as const) }));
  return blocking(proven);
}

/**
 * Returns types that an error without a name can be about. The controller deletes every type it lists, so
 * it failed at a type that still has objects without a deletionTimestamp. An extension API comes first,
 * since its backend answers with texts of its own.
 */
function suspectTypes(context: Context) {
  const left = countsOf(context.now).filter(({ queued }) => queued > 0);
  const extension = left.filter(({ type }) => isAggregated(context, type));
  const custom = left.filter(({ type }) => !isBuiltIn(type.group));
  return [extension, custom].find((list) => list.length > 0) ?? left;
}

/**
 * Finds types whose LIST failed for the gate although their group answers: the controller lists them too. A
 * refusal is a missing permission of the gate, not a fault of the API.
 */
function failedListResults(context: Context, { type, read }: TypeContent): RuleResult[] {
  if (read.ok) return [];
  const { kind, message } = read.failure;
  // A backend that sends no JSON, or nothing, is behind the API server, which itself answers for other types. The
  // namespace controller waits longer than the gate, and its condition says if it got no answer either.
  const isSilent = kind === 'timeout' && context.conditions.contentFailure !== undefined;
  const isOfBackend = isAggregated(context, type) && (kind === 'unreadable' || isSilent);
  if (kind !== 'server-error' && !isOfBackend) return [];
  for (const error of classifyErrorText(message)) {
    if (error.kind === 'conversion-failed') return [conversionFailing(context, error)];
    if (error.kind === 'storage') return storageResults(context, error, type);
  }
  return [apiFailing(context, type, message)];
}

/**
 * A refusal (403) by an extension API server. Its answer reaches the condition as a bare text, without the status code,
 * so the text has to distinguish a refusal from a failure.
 */
const REFUSAL =
  /\b(?:forbidden|unauthorized|denied|prohibited|refused to|not (?:allowed|permitted|authorized)|(?:may|must|can) ?not be (?:deleted|removed)|403|401)\b/i;

/** Finds an API that is Available although a request for this type fails or is refused. */
function apiFailing(context: Context, type: ResourceType, text: string): RuleResult {
  const name = typeName(type);
  const server = extensionApis(context).find(({ group }) => group === type.group);
  const backend = server && backendOf(context, server.service);
  const place = backend && serviceText(backend.service);
  const served = place === undefined ? '' : `; its API is served by ${place}`;
  const finding = {
    subject: typeSubject(type),
    quote: text,
    blocksNamespace: true,
  };
  if (REFUSAL.test(text)) {
    const grant =
      place === undefined
        ? `Let the namespace controller (${CONTROLLER}) delete ${name}`
        : `Do what the refusal by the extension API behind ${place} asks for; if it lacks permissions, give the namespace controller (${CONTROLLER}) list and deletecollection there`;
    return {
      code: 'deletion-forbidden',
      ...finding,
      message: `may not be deleted by the namespace controller: ${text}`,
      evidence: [text, `objects of this type were never marked for deletion${served}`],
      remedies: [withRole('now', { text: grant })],
    };
  }
  const fix = `Fix the API of ${name}; the log of kube-apiserver has the error`;
  return {
    code: 'api-failing',
    ...finding,
    message: `cannot be listed or deleted: ${text}`,
    evidence: [text, `the group can be discovered, yet this type fails${served}`],
    remedies: [
      ...(server === undefined
        ? [withRole('now', { text: fix })]
        : backendRemedies(context, backend, endpointOf(server), callFailure(text))),
      rawRemedy(`${name} now`, `${pathOf(context, type)}?limit=1`),
    ],
  };
}

/** Returns the path of the objects of a type in the namespace. */
function pathOf({ now: { namespace } }: Context, type: TypeRef): string {
  const root = `${type.group === '' ? '/api' : '/apis'}/${apiVersionOf(type)}`;
  return `${root}/namespaces/${namespace.name}/${type.resource}`;
}

type Conversion = ReturnType<typeof conversionsOf>[number];

/**
 * Finds conversions that will fail. Objects stored in another version than the served one need the webhook to be read,
 * in every namespace; whether other namespaces have such objects is not known, and a LIST with a limit does not show it.
 */
function foreseenConversions(context: Context): RuleResult[] {
  // If the gate's own LIST failed, another finding says it.
  const counts = countsOf(context.now.forecast?.present ?? context.now);
  return conversionsOf(itemsIn(context.now.cluster.conversions)).flatMap((crd) => {
    const count = counts.find(({ type }) => typeName(type) === crd.name);
    if (count === undefined || backendOf(context, crd.service).isDead !== true) return [];
    const { type, total } = count;
    const isGone = willBeDeleted(context, crd.service.namespace);
    const needsIt = crd.storedVersions.some((version) => version !== type.version);
    if (!needsIt || (isGone && total === 0)) return [];
    const text = `CRD ${crd.name}: objects are stored as ${crd.storedVersions.join(', ')} and read as ${type.version}`;
    const result = brokenConversion(context, crd, 'service-not-found', text);
    return [{ ...result, certainty: isGone ? undefined : ('unknown' as const) }];
  });
}

/** Returns the finding about the error that the API server would report. */
function brokenConversion(
  context: Context,
  { group, kind: objectKind, service }: Conversion,
  cause: CallFailure,
  text: string,
): RuleResult {
  const error = { group, objectKind, cause, service, url: undefined, text };
  return conversionFailing(context, { kind: 'conversion-failed', ...error });
}

/**
 * Finds a broken conversion. It keeps the API server from filling its cache of the type, so it holds namespaces
 * without a single such object too (apiextensions-apiserver pkg/apiserver/conversion).
 */
function conversionFailing(context: Context, error: ErrorOf<'conversion-failed'>): RuleResult {
  const { group, objectKind: kind, text, url } = error;
  const type = servedType(context, { apiVersion: apiVersionOf({ group, version: 'v1' }), kind });
  const name = type === undefined ? `${kind}.${group}` : typeName(type);
  const { caInjection, conversionService } = valueIn(context.now.definitions[name]) ?? {};
  // If no call failed, this is the webhook's own message (apiextensions-apiserver, webhook_converter.go).
  const said = url === undefined ? / failed: (.+)/s.exec(text)?.[1] : undefined;
  const quote = said === undefined ? undefined : shortQuote(said);
  const fix = `Fix the error of its conversion webhook: "${quote}"; ${HEALS}`;
  const without = `et the API server do without the conversion webhook of ${name}`;
  const field = 'spec.conversion.webhook.clientConfig';
  const none = { op: 'replace', path: '/spec/conversion', value: { strategy: 'None' } };
  return unansweredCall(context, {
    code: 'conversion-webhook-failing',
    subject: definitionSubject(name),
    service: error.service ?? conversionService,
    failure: error.cause,
    endpoint: {
      object: definitionSubject(name),
      caBundle: `${field}.caBundle of CRD ${name}`,
      caInjection,
    },
    says: (server) =>
      `has objects that cannot be read or deleted: they need conversion by ${quote === undefined ? server : `a webhook that refuses it: ${quote}`}`,
    quote,
    evidence: [text],
    stop: {
      before: `l${without}, or delete its objects and the CRD before the namespace of the webhook`,
      late: `L${without}: its Service is being deleted with its namespace`,
      end: `l${without}`,
      changesObjects: true,
      command: patchCommand(nameArgs('crd', name), [none]),
      risk: 'objects stored in another version are served as they were written: fields that were renamed or moved read as missing, in the whole cluster',
    },
    ...(quote === undefined ? {} : { fix: [withRole('now', { text: fix })] }),
    blocksNamespace: true,
  });
}

/** Recognizes "storage is (re)initializing", the text of Kubernetes <= 1.32 for a dead conversion, without the type. */
export function isInitializing(error: ContentError): boolean {
  return error.kind === 'storage' && error.problem === 'initializing';
}

/** Finds an object that cannot be read, or the CRD whose conversion cannot answer: the API server cannot fill its cache. */
function storageResults(
  context: Context,
  error: ErrorOf<'storage'>,
  failing?: ResourceType,
): RuleResult[] {
  const all = isInitializing(error) ? conversionsOf(definitionsOf(context)) : [];
  const dead = all.flatMap((crd) => {
    const { isDead, failure } = backendOf(context, crd.service);
    const text = `${error.text}; its conversion goes to ${serviceText(crd.service)}`;
    return isDead ? [brokenConversion(context, crd, failure, text)] : [];
  });
  if (dead.length > 0) return dead;
  const { group = '', name, resource } = error;
  const unlisted = context.now.content.find(
    ({ read }) => !read.ok && read.failure.kind === 'server-error',
  );
  const named = resource === undefined ? unlisted?.type : findType(context, { group, resource });
  const type = failing ?? named;
  return [
    {
      code: 'storage-unreadable',
      subject:
        type === undefined ? namespaceSubject(context.now.namespace.name) : typeSubject(type),
      message: `has an object${name === undefined ? '' : ` "${name}"`} that the API server cannot read from its storage, so every list of the type fails`,
      evidence: [error.text],
      remedies: storageRemedies(context, type, name),
      blocksNamespace: true,
    },
  ];
}

/**
 * Returns remedies for an object that cannot be decrypted or decoded: it breaks every list of its type. The unsafe
 * delete needs the feature AllowUnsafeMalformedObjectDeletion (KEP-3926) and the verb
 * unsafe-delete-ignore-read-errors; kubectl has no flag for it.
 */
function storageRemedies(
  context: Context,
  type: ResourceType | undefined,
  name: string | undefined,
): Remedy[] {
  const restore = withRole('now', {
    text: 'Restore the object from a backup of etcd; if it is encrypted, let the API server have the key (EncryptionConfiguration)',
  });
  if (type === undefined || name === undefined) {
    const text = 'The log of kube-apiserver names the object that cannot be read';
    return [restore, withRole('look', { text })];
  }
  const body =
    '{"apiVersion":"v1","kind":"DeleteOptions","ignoreStoreReadErrorWithClusterBreakingPotential":true}';
  const path = `${pathOf(context, type)}/${name}`;
  return [
    restore,
    withRole('or', {
      text: `If the content of "${name}" is lost, delete it without reading it; the API server needs the feature gate AllowUnsafeMalformedObjectDeletion for that`,
      command: `echo '${body}' | ${kubectl('delete', '--raw', path, '-f', '-')}`,
      risk: 'finalizers and owner references of the object are ignored: what they protect is left behind',
    }),
  ];
}

/**
 * Finds a CRD that is terminating. The CRD waits for its objects, and they do not wait for it, so this
 * contributes and is never the cause (apiextensions-apiserver pkg/controller/finalizer).
 */
export function crdTerminating(context: Context): RuleResult[] {
  return definitionsOf(context)
    .filter(({ deletionTimestamp }) => deletionTimestamp !== undefined)
    .map(({ name, deletionTimestamp, conditions }) => ({
      code: 'crd-terminating',
      subject: definitionSubject(name),
      message: 'is itself being deleted and waits for its last objects',
      evidence: [
        `deletionTimestamp ${deletionTimestamp}`,
        ...conditions
          .filter(({ type }) => type === 'Terminating')
          .map(({ status, reason, message }) => `Terminating=${status} (${reason}): ${message}`),
      ],
      since: deletionTimestamp,
      remedies: [
        lookRemedy(
          `Find what holds the remaining ${name}, in any namespace; the CRD is deleted after the last one`,
          kubectl('get', name, '--all-namespaces'),
        ),
        ...preventionRemedies(
          context,
          'delete the objects first, then their operator, then the CRD',
        ),
      ],
    }));
}

/** Finds objects that are being deleted right now: slow, not stuck. */
export function contentDeleting({ before, now, nowMs }: Context): RuleResult[] {
  if (before === undefined) return [];
  const seconds = Math.max(1, Math.round((nowMs - Date.parse(before.takenAt)) / 1_000));
  const byType = Map.groupBy(shrinkingTypes(before, now), ({ content }) => typeName(content.type));
  return [...byType.values()].flatMap((list): RuleResult[] => {
    const type = list[0]?.content.type;
    const had = sum(list.map((moving) => moving.before));
    const left = sum(list.map((moving) => moving.now));
    if (type === undefined || left === 0) return [];
    const rate = (had - left) / seconds;
    const more = rate > 0 ? `, so about ${Math.ceil(left / rate)} s are left` : '';
    const finalizers = [...new Set(list.flatMap((moving) => moving.finalizers))];
    const progress =
      rate > 0
        ? `${had} objects ${seconds} s ago, ${left} now`
        : `${listNames(finalizers)} is removed from one object after the other`;
    return [
      {
        code: 'content-deleting',
        subject: typeSubject(type),
        message: `are still being deleted: ${progress}`,
        evidence: [
          `${had} then, ${left} now, ${Math.round(rate * 60)} a minute${more}`,
          ...finalizers.map((name) => `each still has ${name}, which is being removed one by one`),
        ],
        scope: 'namespace',
        count: left > 1 ? left : undefined,
        remedies: [withRole('now', { text: 'Give the deletion more time: raise the timeout' })],
        blocksNamespace: true,
      },
    ];
  });
}
