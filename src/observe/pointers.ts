import { arrayAt, type JsonObject, stringAt, valueAt } from '../base/json.ts';
import { collectItems } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { webhookFacts } from '../model/facts/admission.ts';
import { type TypeRef, typeName } from '../model/facts/metadata.ts';
import type { NotInspected } from '../model/finding.ts';
import type { LeftBehind } from '../model/result.ts';
import { MAX_ITEMS, typeNamed } from '../model/sources.ts';
import { notInspectedEntries, type Reading } from './collections.ts';

type Pointer = Pick<LeftBehind, 'namespace' | 'why'> & Partial<LeftBehind>;

/** A type whose objects may point into a namespace; each is read with one list for all namespaces. */
interface PointingType extends TypeRef {
  apiVersion: string;
  kind: string;
  points: (item: JsonObject) => Pointer[];
}

const pointing = (
  apiVersion: string,
  kind: string,
  points: PointingType['points'],
): PointingType => ({ ...typeNamed(apiVersion, kind), apiVersion, kind, points });
const ADMISSION = 'admissionregistration.k8s.io/v1';
const RBAC = 'rbac.authorization.k8s.io/v1';
const API = servicePointers(
  'spec.service',
  'until it responds, no namespace of the cluster can be deleted',
);
const CONVERSION = servicePointers(
  'spec.conversion.webhook.clientConfig.service',
  'without it, objects in another version can be neither read nor deleted',
);

export const POINTING_TYPES: readonly PointingType[] = [
  pointing('v1', 'PersistentVolume', volumePointers),
  pointing(ADMISSION, 'ValidatingWebhookConfiguration', webhookPointers),
  pointing(ADMISSION, 'MutatingWebhookConfiguration', webhookPointers),
  pointing('apiregistration.k8s.io/v1', 'APIService', API),
  pointing('apiextensions.k8s.io/v1', 'CustomResourceDefinition', CONVERSION),
  pointing(RBAC, 'ClusterRoleBinding', bindingPointers),
  pointing(RBAC, 'RoleBinding', bindingPointers),
];

function volumePointers({ spec, status }: JsonObject): Pointer[] {
  const namespace = stringAt(spec, 'claimRef', 'namespace');
  if (namespace === undefined) return [];
  const phase = stringAt(status, 'phase');
  const policy = stringAt(spec, 'persistentVolumeReclaimPolicy') ?? 'unknown';
  // The controller that should delete the volume failed; its message says why.
  const error = phase === 'Failed' ? (stringAt(status, 'message') ?? '') : '';
  const state = `${phase ?? 'no phase'}${error && `: ${error}`}, reclaim policy ${policy}`;
  const isGoing = policy === 'Delete' && phase !== 'Failed';
  const meaning = isGoing
    ? 'it should be deleted automatically, and is still there'
    : 'the volume, and what is on it, still exist';
  const released = { at: stringAt(status, 'lastPhaseTransitionTime') };
  const claim = `PersistentVolumeClaim ${namespace}/${stringAt(spec, 'claimRef', 'name')}`;
  const why = `its spec.claimRef names ${claim} (${state}): ${meaning}`;
  const isReleased = phase !== undefined && phase !== 'Bound';
  return [{ namespace, why, isGoing, ...(isReleased && { released }) }];
}

function webhookPointers(item: JsonObject): Pointer[] {
  return webhookFacts('')(item).flatMap((webhook) => {
    const { failurePolicy, index, namespaceSelector, rules } = webhook;
    const { namespace, name } = webhook.service ?? webhook.serviceInUrl ?? {};
    if (namespace === undefined) return [];
    const isOnlyForIt = namespaceSelector.some(
      ({ key, operator, values }) =>
        key === 'kubernetes.io/metadata.name' &&
        operator === 'In' &&
        values.every((value) => value === namespace),
    );
    // A namespaceSelector does not apply to cluster-scoped objects, unless the rules exclude them.
    const isCalledByOthers = !isOnlyForIt || rules.some(({ scope }) => scope !== 'Namespaced');
    const breaksOthers = isCalledByOthers && failurePolicy === 'Fail';
    const meaning = ': requests that it matches are refused, in the whole cluster';
    const field = `its webhooks[${index}].clientConfig names Service ${namespace}/${name}`;
    return [{ namespace, why: `${field}${breaksOthers ? meaning : ''}`, breaksOthers }];
  });
}

function servicePointers(field: string, meaning: string): PointingType['points'] {
  return (item) => {
    const service = valueAt(item, ...field.split('.'));
    const namespace = stringAt(service, 'namespace');
    if (namespace === undefined) return [];
    const target = `Service ${namespace}/${stringAt(service, 'name')}`;
    return [{ namespace, why: `its ${field} names ${target}: ${meaning}`, breaksOthers: true }];
  };
}

/** A binding inside the namespace is deleted with it. */
function bindingPointers(item: JsonObject): Pointer[] {
  const own = stringAt(item, 'metadata', 'namespace');
  const place = own === undefined ? '' : `in namespace ${own}, `;
  return arrayAt(item, 'subjects').flatMap((subject, index) => {
    const kind = stringAt(subject, 'kind') ?? '';
    const name = stringAt(subject, 'name') ?? '';
    const isAccount = kind === 'ServiceAccount';
    // The names of accounts and their groups (apiserver pkg/authentication/serviceaccount/util.go).
    const namespace = isAccount
      ? stringAt(subject, 'namespace')
      : /^system:serviceaccounts?:([^:]+)/.exec(name)?.[1];
    if (namespace === undefined || namespace === own) return [];
    const who = isAccount ? `${namespace}/${name}` : name;
    const why = `${place}its subjects[${index}] still grants permissions to ${kind} ${who}: anyone who creates a namespace and an account of these names gets them`;
    return [{ namespace, why }];
  });
}

const MAX_POINTERS = 500;

/** Reads all objects outside of these namespaces that point into them. */
export async function readPointers(
  namespaces: readonly { name: string }[],
  { api, signal }: Reading,
): Promise<{ pointers: LeftBehind[]; unread: NotInspected[] }> {
  const names = new Set(namespaces.map(({ name }) => name));
  const unread: NotInspected[] = [];
  let isBlind = true;
  const lists = POINTING_TYPES.map(async (type) => {
    const begin = collectItems((item) => pointersOf(type, item, names));
    const end = await api.list(collectionPath(type), begin, { signal, maxItems: MAX_ITEMS });
    isBlind &&= !end.ok && end.failure.kind === 'forbidden';
    if (end.ok && end.value.complete) return end.value.kept;
    const cut = { what: typeName(type), reason: `only the first ${MAX_ITEMS} are read` };
    for (const one of end.ok ? [cut] : notInspectedEntries(typeName(type), end, type)) {
      const reason = `not searched for objects that point into the namespace: ${one.reason}`;
      unread.push({ ...one, reason });
    }
    return end.ok ? end.value.kept : [];
  });
  const pointers = (await Promise.all(lists)).flat();
  if (isBlind) {
    // An identity that may only wait gets one entry instead of one per type.
    const what = 'objects outside of the namespace that point into it';
    return { pointers: [], unread: [{ what, reason: 'none of it may be listed: 403 Forbidden' }] };
  }
  if (pointers.length > MAX_POINTERS) {
    const reason = `only the first ${MAX_POINTERS} are listed`;
    unread.push({ what: 'more objects that are left behind', reason });
  }
  return { pointers: pointers.slice(0, MAX_POINTERS), unread };
}

/** Returns what an object points to, once for each namespace: the field first that disturbs other namespaces. */
function pointersOf(
  { apiVersion, kind, points }: PointingType,
  item: JsonObject,
  names: ReadonlySet<string>,
): LeftBehind[] {
  const found = points(item).filter(({ namespace }) => names.has(namespace));
  const name = stringAt(item, 'metadata', 'name') ?? '';
  const isDeleted = valueAt(item, 'metadata', 'deletionTimestamp') !== undefined;
  return [...Map.groupBy(found, ({ namespace }) => namespace).values()].map((all) => {
    const worst = all.find(({ breaksOthers }) => breaksOthers) ?? (all[0] as Pointer);
    const { breaksOthers = false, isGoing = false } = worst;
    return { apiVersion, kind, name, ...worst, breaksOthers, isGoing: isGoing || isDeleted };
  });
}
