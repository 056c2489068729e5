import { listNames, shortQuote } from '../../base/text.ts';
import { apiVersionOf, isBuiltIn, POD_TYPE, typeName } from '../../model/facts/metadata.ts';
import type { Subject } from '../../model/finding.ts';
import { itemsIn, valueIn } from '../../model/read.ts';
import type { ApiServiceFacts, ResourceType, TypeContent } from '../../model/snapshot.ts';
import { realRequest } from '../admission/guards.ts';
import { deletionSteps, judgeAdmission, lastStep } from '../admission/judge.ts';
import { refusalResult } from '../admission/refusals.ts';
import { backendOf, backendRemedies, unansweredCall } from '../backends.ts';
import { fixRemedy, kubectl, nameArgs, patchCommand, preventionRemedies } from '../commands.ts';
import {
  conversionsOf,
  countsOf,
  definitionsOf,
  extensionApis,
  isAggregated,
  isContentRead,
  servedType,
} from '../content.ts';
import { type Context, isForeseen, willBeDeleted } from '../context.ts';
import {
  type AdmissionError,
  type ContentError,
  callFailure,
  classifyErrorText,
  type ErrorOf,
  isAdmissionError,
} from '../error-texts.ts';
import { shrinkingSets, sum } from '../movement.ts';
import { definitionSubject, namespaceSubject, type RuleResult, typeSubject } from '../results.ts';
import { mayController } from '../rights.ts';

type GroupVersion = Pick<ApiServiceFacts, 'group' | 'version'>;

export function isSameVersion(a: GroupVersion, b: GroupVersion): boolean {
  return apiVersionOf(a) === apiVersionOf(b);
}

/**
 * Finds API groups that do not respond. The namespace controller needs a complete discovery to finish, so one of
 * them holds every namespace (namespaced_resources_deleter.go, deleteAllContent). Available=False alone is no proof, nor is
 * Available=True: discovery asks the backend for /apis, the availability check for /apis/<group>/<version>.
 */
export function failingApis(context: Context): RuleResult[] {
  // The gate's own discovery decides; the namespace's condition, up to a minute old, is added as evidence, and stands
  // alone only when discovery could not be read.
  const { discovery } = context.now;
  const said = context.conditions.discoveryFailures;
  const found = discovery.ok ? discovery.value.failedGroups : said;
  // In a forecast, a group whose backend is deleted with the namespace keeps every deletion from finishing.
  const going = extensionApis(context)
    .filter(({ service }) => willBeDeleted(context, service.namespace))
    .filter((one) => !found.some((other) => isSameVersion(one, other)));
  return [...found, ...going].map((one) => {
    const own = 'reason' in one ? [`discovery of ${apiVersionOf(one)}: ${one.reason}`] : [];
    const told = said
      .filter((other) => isSameVersion(one, other))
      .map(({ error }) => `the namespace's condition NamespaceDeletionDiscoveryFailure: ${error}`);
    return failingApi(context, one, [...own, ...told]);
  });
}

function failingApi(context: Context, group: GroupVersion, reasons: readonly string[]): RuleResult {
  const api = itemsIn(context.now.cluster.apiServices).find((one) => isSameVersion(one, group));
  const name = `${group.version}.${group.group}`;
  const subject = { apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', name };
  const { available, service } = api ?? {};
  const isGoing = willBeDeleted(context, service?.namespace);
  const isDown = isGoing || available?.status !== 'True';
  if (api === undefined || (service === undefined && !isDown)) {
    const text =
      'If the control plane is being upgraded, wait: until that is done, its API servers serve different versions. Otherwise read the log of kube-apiserver';
    return {
      ...{ code: 'discovery-failed', subject },
      message: 'cannot be discovered',
      evidence: [...reasons, 'no APIService for it could be read'],
      remedies: [fixRemedy(text)],
    };
  }
  const reason = available?.status === 'True' ? '' : (available?.message ?? '');
  const failure = callFailure(reason);
  const answers = failure === 'error-status';
  const quote = reason && (answers || failure === 'other') ? shortQuote(reason) : undefined;
  const does = isGoing ? 'will stop responding' : answers ? 'is not available' : 'does not respond';
  const state = isDown ? does : 'cannot be discovered, although its condition Available is True';
  const condition =
    available === undefined
      ? 'the API server has never checked it'
      : `Available=${available.status} (${available.reason}): ${available.message}`;
  return unansweredCall(context, {
    ...{ subject, failure, quote, service },
    code: isDown ? 'apiservice-unavailable' : 'discovery-failed',
    says: (server) => `${state}: its backend is ${server}${quote ? `: ${quote}` : ''}`,
    evidence: [condition, ...reasons],
    since: isDown ? available?.since : undefined,
    stop: {
      text: `delete APIService ${name}`,
      command: kubectl('delete', ...nameArgs('apiservice', name)),
      risk: `the API ${apiVersionOf(group)} disappears for the whole cluster`,
    },
  });
}

/** Finds types that could not be deleted, by the namespace's condition, or listed; in a forecast those whose deletion will fail. */
export function failingTypes(context: Context): RuleResult[] {
  const { content } = context.now;
  const own = content.filter(({ type }) => !isAggregated(context, type));
  return [
    ...context.contentErrors.flatMap((error) => errorResults(context, error)),
    ...content.flatMap((one) => failedListResults(context, one)),
    ...(isForeseen(context)
      ? [
          ...deletionSteps(context).flatMap((step) => judgeAdmission(context, step).results),
          ...foreseenConversions(context),
          ...own.flatMap(({ type }) => missingRule(context, type, 'deletecollection', 'list')),
          ...refusedLastRequest(context),
        ]
      : []),
  ];
}

/** Finds that the last request of the namespace controller is refused, although all content was or will be deleted. */
export function refusedLastRequest(context: Context): RuleResult[] {
  const step = lastStep(context);
  return [...missingRule(context, step.type, 'update'), ...judgeAdmission(context, step).results];
}

/** The namespace controller with `--use-service-account-credentials`; without it, kube-controller-manager. */
const CONTROLLER = 'system:serviceaccount:kube-system:namespace-controller';
const GRANT =
  'Kubernetes grants it by ClusterRole and ClusterRoleBinding system:controller:namespace-controller; a restart of kube-apiserver restores both unless their annotation rbac.authorization.kubernetes.io/autoupdate is false';

/** Finds the error with which the API server would refuse a request of the namespace controller. */
function missingRule(context: Context, type: ResourceType, verb: string, ...more: string[]) {
  if (mayController(context, type, verb, ...more)) return [];
  const message = `no rule lets ${CONTROLLER} ${verb} ${typeName(type)}`;
  return [deletionForbidden(typeSubject(type), `RBAC: ${message}`, message, CONTROLLER)];
}

function deletionForbidden(subject: Subject, text: string, why: string, user?: string): RuleResult {
  return {
    ...{ code: 'deletion-forbidden', subject },
    message: `may not be deleted by ${user ?? 'the namespace controller'}: ${why}`,
    quote: why,
    evidence: [text],
    remedies: [fixRemedy(`Give ${user ?? CONTROLLER} the permission back. ${GRANT}`)],
  };
}

function errorResults(context: Context, error: ContentError, listed?: ResourceType): RuleResult[] {
  if (isAdmissionError(error)) return refusedDeletions(context, error);
  const { kind, text } = error;
  if (kind === 'conversion-failed') return [conversionFailing(context, error)];
  if (kind === 'storage') return [storageUnreadable(context, text, listed)];
  if (kind === 'unexpected-items') return [];
  if (kind === 'forbidden') {
    // A text without a user is no refusal by an authorizer, but by an extension API or admission.
    const type = context.now.content.find((one) => typeName(one.type) === typeName(error))?.type;
    const subject = typeSubject(type ?? { ...error, version: 'v1' });
    return type && error.user === undefined
      ? [apiFailing(context, type, text)]
      : [deletionForbidden(subject, text, error.message, error.user)];
  }
  // With thousands of objects, a collection delete may exceed the 60 s that the API server gives it: slow, and no fault.
  return suspectTypes(context)
    .filter(({ total }) => callFailure(text) !== 'timeout' || total < 5_000)
    .map(({ type }) => apiFailing(context, type, text));
}

function refusedDeletions(context: Context, error: AdmissionError): RuleResult[] {
  // DELETE admission is called per object (rest.AdmissionToValidateObjectDeleteFunc): without objects, no refusal.
  if (suspectTypes(context).length === 0 && isContentRead(context.now)) return [];
  const told = refusalOfContent(context, error);
  const all = deletionSteps(context).flatMap((step) => judgeAdmission(context, step).results);
  // The request of the namespace controller itself is refused, so this is proven; an answer shows only the first refusal.
  const dead = all.filter(({ code }) => code === 'admission-webhook-failing');
  return [{ ...told, certainty: told.certainty && 'proven' }, ...dead];
}

/** Returns the finding for a refusal that does not say which object it is about. */
export function refusalOfContent(context: Context, error: AdmissionError): RuleResult {
  const { type = POD_TYPE, sample } = suspectTypes(context)[0] ?? {};
  const object = sample ?? { namespace: context.now.namespace.name, labels: {} };
  const request = realRequest(context, 'DELETE', type, object);
  return refusalResult(context, error, request, "DELETE of the namespace's content");
}

/** Returns types with objects that an error without a name can be about. An extension API comes first: its backend has texts of its own. */
function suspectTypes(context: Context) {
  const left = countsOf(context.now).filter(({ queued }) => queued > 0);
  const extension = left.filter(({ type }) => isAggregated(context, type));
  const custom = left.filter(({ type }) => !isBuiltIn(type.group));
  return [extension, custom].find((list) => list.length > 0) ?? left;
}

/** Finds types whose LIST failed although their group answers. A refusal is a missing permission of the gate, not a fault of the API. */
function failedListResults(context: Context, { type, read }: TypeContent): RuleResult[] {
  if (read.ok) return [];
  const { kind, message } = read.failure;
  // A backend that sends no JSON, or nothing, is behind the API server, which itself answers for other types. The
  // namespace controller waits longer than the gate, and its condition says if it got no answer either.
  const isSilent = kind === 'timeout' && context.conditions.contentFailure !== undefined;
  const isOfBackend = isAggregated(context, type) && (kind === 'unreadable' || isSilent);
  if (kind !== 'server-error' && !isOfBackend) return [];
  const known = classifyErrorText(message).find(({ kind }) => /^(?:conversion|storage)/.test(kind));
  return known ? errorResults(context, known, type) : [apiFailing(context, type, message)];
}

function apiFailing(context: Context, type: ResourceType, text: string): RuleResult {
  const name = typeName(type);
  const server = extensionApis(context).find(({ group }) => group === type.group)?.service;
  return {
    code: 'api-failing',
    subject: typeSubject(type),
    message: `cannot be listed or deleted: ${text}`,
    quote: text,
    evidence: [text, 'the group can be discovered, yet this type fails'],
    remedies: server
      ? backendRemedies(context, callFailure(text), server)
      : [fixRemedy(`Fix the API of ${name}; the log of kube-apiserver has the error`)],
  };
}

/** Finds conversions that will fail, of objects stored in another version than the served one; no LIST with a limit shows those of other namespaces. */
function foreseenConversions(context: Context): RuleResult[] {
  // If the gate's own LIST failed, another finding says it.
  const counts = countsOf(context.now.forecast?.present ?? context.now);
  return conversionsOf(itemsIn(context.now.cluster.conversions)).flatMap((crd): RuleResult[] => {
    const { group, kind: objectKind, name, service, storedVersions } = crd;
    const { type, total } = counts.find((one) => typeName(one.type) === name) ?? {};
    const isGone = willBeDeleted(context, service.namespace);
    const { isDead } = backendOf(context, service);
    const isConverted = storedVersions.some((version) => version !== type?.version);
    if (type === undefined || !isDead || !isConverted || (isGone && total === 0)) return [];
    const text = `CRD ${name}: objects are stored as ${storedVersions.join(', ')} and read as ${type.version}`;
    const error = { kind: 'conversion-failed', cause: 'no-endpoints', service, text } as const;
    const result = conversionFailing(context, { ...error, group, objectKind });
    return [{ ...result, certainty: isGone ? undefined : 'unknown' }];
  });
}

/** Finds a broken conversion. It keeps the API server from filling its cache, and so holds namespaces without such an object (pkg/apiserver/conversion). */
function conversionFailing(context: Context, error: ErrorOf<'conversion-failed'>): RuleResult {
  const { group, objectKind: kind, text } = error;
  const type = servedType(context, { apiVersion: `${group}/`, kind });
  const name = type === undefined ? `${kind}.${group}` : typeName(type);
  const { conversionService } = valueIn(context.now.definitions[name]) ?? {};
  const none = { op: 'replace', path: '/spec/conversion', value: { strategy: 'None' } };
  return unansweredCall(context, {
    ...{ code: 'conversion-webhook-failing', subject: definitionSubject(name), evidence: [text] },
    ...{ service: error.service ?? conversionService, failure: error.cause },
    says: (by) => `has objects that cannot be read or deleted: they need conversion by ${by}`,
    stop: {
      text: `set the conversion of ${name} to None`,
      command: patchCommand(nameArgs('crd', name), [none]),
      risk: 'objects stored in another version are served as they were written: fields that were renamed or moved read as missing, and the next write of an object deletes them, in the whole cluster',
      losesData: true,
    },
  });
}

/** Finds an object that cannot be read. The gate's own list of its type fails as well, unless the gate may not list that type. */
function storageUnreadable({ now }: Context, text: string, listed?: ResourceType): RuleResult {
  const isUnreadable = ({ read }: TypeContent): boolean =>
    !read.ok && classifyErrorText(read.failure.message).some(({ kind }) => kind === 'storage');
  const type = listed ?? now.content.find(isUnreadable)?.type;
  const restore =
    'Restore the object from a backup of etcd; if it is encrypted, let the API server have the key (EncryptionConfiguration). The log of kube-apiserver names it';
  return {
    code: 'storage-unreadable',
    subject: type ? typeSubject(type) : namespaceSubject(now.namespace.name),
    message:
      'has an object that the API server cannot read from its storage, so every list of the type fails',
    evidence: [text],
    remedies: [fixRemedy(restore)],
  };
}

/** Finds a terminating CRD. It waits for its objects, and they do not wait for it: it is never the cause (pkg/controller/finalizer). */
export function crdTerminating(context: Context): RuleResult[] {
  const order = 'delete the objects first, then their operator, then the CRD';
  return definitionsOf(context)
    .filter(({ deletionTimestamp }) => deletionTimestamp !== undefined)
    .map(({ name, deletionTimestamp: since }) => ({
      ...{ code: 'crd-terminating', subject: definitionSubject(name), since },
      message: 'is itself being deleted and waits for its last objects',
      evidence: [`deletionTimestamp ${since}`],
      remedies: preventionRemedies(context, order),
    }));
}

/** Finds objects that are being deleted right now: slow, not stuck. */
export function contentDeleting({ before, now, nowMs }: Context): RuleResult[] {
  if (before === undefined) return [];
  const seconds = Math.max(1, Math.round((nowMs - Date.parse(before.takenAt)) / 1_000));
  const byType = Map.groupBy(shrinkingSets(before, now), ({ type }) => type);
  return [...byType].map(([type, sets]) => {
    const had = sum(sets.map((set) => set.before));
    const left = sum(sets.map((set) => set.now));
    const finalizers = [...new Set(sets.flatMap((set) => set.finalizers))];
    return {
      ...{ code: 'content-deleting', subject: typeSubject(type), scope: 'namespace' },
      message: `are still being deleted: ${had} objects ${seconds} s ago, ${left} now`,
      evidence: [`${listNames(finalizers)} is removed from one object after the other`],
      count: left > 1 ? left : undefined,
      remedies: [fixRemedy('Give the deletion more time: raise the timeout')],
    };
  });
}
