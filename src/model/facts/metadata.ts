import {
  arrayAt,
  dictionary,
  isObject,
  type Json,
  type JsonObject,
  recordAt,
  stringAt,
  stringsAt,
  valueAt,
} from '../../base/json.ts';
import { at, type Field, NAME, PLACED, shape } from './shape.ts';

export type Condition = ReturnType<typeof condition>;
export const condition = shape({
  type: at.text('type'),
  status: at.text('status'),
  reason: at.message('reason'),
  message: at.message('message'),
  lastTransitionTime: at.textIfAny('lastTransitionTime'),
  observedGeneration: at.number('observedGeneration'),
});
const conditionList = at.each('status.conditions', condition);

/** Reads `status.conditions`: a list, or an object with the types as keys. */
export function conditionsOf(object: Json | undefined): Condition[] {
  const map = valueAt(object, 'status', 'conditions');
  const found: Condition[] = isObject(map)
    ? Object.entries(map).map(([type, item]) => ({ ...condition(item), type }))
    : conditionList(object);
  return found.filter(({ type }) => type !== '');
}

export type OwnerReference = ReturnType<typeof ownerReferences>[number];
export const ownerReferences = at.each(
  'metadata.ownerReferences',
  shape({
    apiVersion: at.text('apiVersion'),
    kind: at.text('kind'),
    name: at.text('name'),
    uid: at.text('uid'),
    controller: at.isTrue('controller'),
  }),
);

/** `manager`: `fieldManager` of the request, or its User-Agent up to the first slash. */
const write = shape({ manager: at.text('manager'), time: at.textIfAny('time') });

/** Returns the managedFields, oldest first. */
function managedFields(object: Json | undefined): Json[] {
  const timeOf = (entry: Json): number => Date.parse(stringAt(entry, 'time') ?? '') || 0;
  return arrayAt(object, 'metadata', 'managedFields').toSorted((a, b) => timeOf(a) - timeOf(b));
}

/** Returns who last set a field, also by a subresource. */
export function lastWrite(object: Json | undefined, ...field: string[]) {
  const last = managedFields(object).findLast((entry) => hasSet(entry, ...field));
  return last === undefined ? undefined : write(last);
}

function hasSet(entry: Json, ...field: string[]): boolean {
  return valueAt(entry, 'fieldsV1', ...field) !== undefined;
}

export type FinalizerWriter = ReturnType<typeof finalizerWriters>[number];

/** Returns the last field manager of each finalizer. `isAuthor`: it wrote the rest of the object together with it. */
export function finalizerWriters(object: Json | undefined) {
  const finalizers = new Set(stringsAt(object, 'metadata', 'finalizers'));
  if (finalizers.size === 0) return [];
  const entries = managedFields(object);
  const authors = entries.filter((entry) =>
    Object.keys(valueAt(entry, 'fieldsV1') ?? {}).some((key) => !/^f:(metadata|status)$/.test(key)),
  );
  return [...finalizers].flatMap((finalizer) => {
    const key = `v:${JSON.stringify(finalizer)}`;
    const last = entries.findLast((entry) => hasSet(entry, 'f:metadata', 'f:finalizers', key));
    if (last === undefined) return [];
    const isManifest = authors.length === 1 || stringAt(last, 'operation') === 'Apply';
    const isAuthor = isManifest && authors.includes(last) && { isAuthor: true as const };
    return { finalizer, ...write(last), ...isAuthor };
  });
}

export function managersOf(object: Json | undefined): string[] | undefined {
  return [...new Set(managedFields(object).flatMap((entry) => stringAt(entry, 'manager') ?? []))];
}

/** Writes of the status, the latest last. */
function statusWriters(object: Json | undefined): ReturnType<typeof write>[] {
  return managedFields(object)
    .filter(
      (one) =>
        stringAt(one, 'subresource') === 'status' || isObject(valueAt(one, 'fieldsV1', 'f:status')),
    )
    .map(write);
}

/** Writes since the deletion began. */
function lateWriters(object: Json | undefined): ReturnType<typeof write>[] | undefined {
  const since = stringAt(object, 'metadata', 'deletionTimestamp');
  if (since === undefined) return undefined;
  return managedFields(object)
    .map(write)
    .filter(({ time = '' }) => time > since);
}

const MAX_ANNOTATION_CHARS = 200;

export const shortAnnotations = at.field('metadata.annotations', (all) =>
  Object.entries(recordAt(all)).filter(([, value]) => value.length <= MAX_ANNOTATION_CHARS),
);

/** Annotations that show the installer (Helm, OLM, Argo CD), that pause a controller, or that name a class (`ingress.class`). */
const USEFUL_ANNOTATIONS =
  /^argocd\.argoproj\.io\/tracking-id$|^meta\.helm\.sh\/|coreos\.com\/|^olm\.|paus|reconcil|suspend|ignore|\/managed$|[./]class$|\/storage-provisioner$/i;
export const usefulAnnotations: Field<Record<string, string>> = (object) =>
  dictionary(
    shortAnnotations(object).filter(
      ([key, value]) => USEFUL_ANNOTATIONS.test(key) || forbidsDeletion(key, value),
    ),
  );

/** `preventDestroy`, `deletionProtectionEnabled`, `maintenanceMode`; not `disableDeletionProtection`. */
const FORBIDS_DELETION =
  /^(?:is|enable)?(?:(?:prevent|protect|forbid|deny|disallow|disable)\w*?(?:delet|destr|terminat|remov)(?!\w*(?:protect|prevent|lock))\w*|(?:delet|destr|terminat)\w*?(?:protect|prevent|lock|forbid)\w*|maintenance(?:mode)?)$/i;
/** `allow-delete`, `deletionAllowed`. */
const PERMITS_DELETION =
  /^(?!.*(?:protect|prevent|lock))(?:(?:allow|permit)\w*(?:delet|destr|remov)\w*|(?:delet|destr|remov)\w*(?:allowed|permitted))$/i;

/** Reports whether a field or annotation, by its name and its value, forbids a deletion. */
export function forbidsDeletion(key: string, value: string): boolean {
  const name = key.slice(key.indexOf('/') + 1).replace(/[^a-z]/gi, '');
  // KubeBlocks writes `terminationPolicy: DoNotTerminate`.
  if (/^do-?not-?(?:terminate|delete|destroy|remove)$/i.test(value)) return true;
  return /^(?:true|yes|on|enabled?)$/i.test(value)
    ? FORBIDS_DELETION.test(name)
    : /^(?:false|no|off|disabled?)$/i.test(value) && PERMITS_DELETION.test(name);
}

/** Name and UID. An object that was created again has another UID. */
const IDENTITY = { ...NAME, uid: at.text('metadata.uid') };
export const identity = shape(IDENTITY);
export const LABELS = { labels: at.record('metadata.labels') };
export const INSTALLED = { ...LABELS, annotations: usefulAnnotations };
export const TIMES = {
  creationTimestamp: at.textIfAny('metadata.creationTimestamp'),
  deletionTimestamp: at.textIfAny('metadata.deletionTimestamp'),
};

const METADATA = {
  ...{ ...IDENTITY, ...LABELS, ...TIMES },
  resourceVersion: at.text('metadata.resourceVersion'),
  finalizers: at.texts('metadata.finalizers'),
  writers: finalizerWriters,
};

export type NamespaceFacts = ReturnType<typeof namespaceFacts>;
export const namespaceFacts = shape({
  ...METADATA,
  phase: at.textIfAny('status.phase'),
  specFinalizers: at.texts('spec.finalizers'),
  /** They may name the object that stands for it. */
  annotations: (object) => dictionary(shortAnnotations(object)),
  conditions: conditionsOf,
  /** Conditions have no other time of their last check. */
  statusWrittenAt: (object) =>
    statusWriters(object).findLast(({ manager }) => manager === 'kube-controller-manager')?.time,
});

const objectMetadata = shape({
  ...{ ...PLACED, ...METADATA },
  /** Set by the API server for most types and raised by the deletion (apiserver, rest.BeforeDelete). */
  generation: at.number('metadata.generation'),
  annotations: usefulAnnotations,
  ...{ ownerReferences, statusWriters, lateWriters, managers: managersOf },
});

export type ObjectFacts = ReturnType<typeof objectFacts>;

/** `object` may be only its metadata; a list leaves out apiVersion and kind. */
export function objectFacts(object: JsonObject, type: TypeRef & Pick<ResourceType, 'kind'>) {
  return { apiVersion: apiVersionOf(type), kind: type.kind, ...objectMetadata(object) };
}

/** A resource type in the version that the server prefers for it. */
export interface ResourceType {
  /** Empty for the core group. */
  group: string;
  version: string;
  resource: string;
  kind: string;
  namespaced: boolean;
  verbs: string[];
}
export type TypeRef = Pick<ResourceType, 'group' | 'version' | 'resource'>;

const CORE = { group: '', version: 'v1', verbs: [] };
export const POD_TYPE: ResourceType = { ...CORE, resource: 'pods', kind: 'Pod', namespaced: true };
const NAMESPACE = { ...CORE, kind: 'Namespace', namespaced: false };
export const NAMESPACE_TYPE: ResourceType = { ...NAMESPACE, resource: 'namespaces' };
/** The last write of the namespace controller. Admission and RBAC may refuse it too. */
export const FINALIZE: ResourceType = { ...NAMESPACE, resource: 'namespaces/finalize' };
/** The entry of the namespace controller in `spec.finalizers`, removed once the content is deleted. */
export const KUBERNETES_FINALIZER = 'kubernetes';
/** The finalizer of a claim that a pod may still use. */
export const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';

/** Recognizes groups that the API server itself serves: without a dot, or of Kubernetes' own API (kubernetes/api). */
export function isBuiltIn(group: string): boolean {
  return !group.includes('.') || BUILT_IN.test(group);
}

const BUILT_IN =
  /^(?:admissionregistration|apiextensions|apiregistration|authentication|(?:rbac\.)?authorization|certificates|coordination|discovery|events|(?:flowcontrol|internal)\.apiserver|networking|node|resource|scheduling|storage(?:migration)?)\.k8s\.io$/;

/** Returns the name that kubectl accepts on a command line: `widgets.example.com`, `configmaps`. */
export function typeName({ group, resource }: Pick<TypeRef, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`;
}

export function apiVersionOf({ group, version }: Pick<TypeRef, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

export function groupOf(apiVersion: string): string {
  return apiVersion.slice(0, Math.max(0, apiVersion.indexOf('/')));
}

/**
 * Builds a patch that removes these finalizers from the list as it was read. If the object was replaced or its list has
 * changed, a `test` fails and the server answers 422 without a change.
 */
export function removalPatch(
  { uid, finalizers }: Pick<ObjectFacts, 'uid' | 'finalizers'>,
  remove: readonly string[],
): JsonObject[] {
  const indexes = finalizers.flatMap((entry, index) => (remove.includes(entry) ? [index] : []));
  const path = (index: number): string => `/metadata/finalizers/${index}`;
  return [
    { op: 'test', path: '/metadata/uid', value: uid },
    ...indexes.map((index) => ({ op: 'test', path: path(index), value: finalizers[index] })),
    ...indexes.toReversed().map((index) => ({ op: 'remove', path: path(index) })),
  ];
}
