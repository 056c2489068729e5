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
import {
  each,
  type Field,
  fieldAt,
  isTrue,
  message,
  NAME,
  number,
  PLACED,
  record,
  shape,
  text,
  textIfAny,
  textOfEach,
  texts,
} from './shape.ts';

export type Condition = ReturnType<typeof condition>;
export const condition = shape({
  type: text('type'),
  status: text('status'),
  reason: message('reason'),
  message: message('message'),
  lastTransitionTime: textIfAny('lastTransitionTime'),
  observedGeneration: number('observedGeneration'),
});

/** Reads `status.conditions`: a list, or an object with the types as keys. */
export function conditionsOf(object: Json | undefined): Condition[] {
  const list = valueAt(object, 'status', 'conditions');
  const found: Condition[] = isObject(list)
    ? Object.entries(list).map(([type, item]) => ({ ...condition(item), type }))
    : each('status.conditions', condition)(object);
  return found.filter(({ type }) => type !== '');
}

export type OwnerReference = ReturnType<typeof ownerReference>;
const ownerReference = shape({
  apiVersion: text('apiVersion'),
  kind: text('kind'),
  name: text('name'),
  uid: text('uid'),
  controller: isTrue('controller'),
});

export const ownerReferences = each('metadata.ownerReferences', ownerReference);

export function controllerOf(object: Json | undefined): OwnerReference | undefined {
  return ownerReferences(object).find(({ controller }) => controller);
}

const write = shape({ manager: text('manager'), time: textIfAny('time') });
export const writer = shape({
  /** Field manager: `fieldManager` of the request, or its User-Agent up to the first slash. */
  manager: text('manager'),
  operation: text('operation'),
  time: textIfAny('time'),
});

export type FinalizerWriter = ReturnType<typeof finalizerWriters>[number];

/**
 * Returns the last field manager of each finalizer (`f:metadata` → `f:finalizers` → `v:"<finalizer>"`). `isAuthor`: it
 * applied a manifest or created the object, and the finalizer came with the rest of the object.
 */
export function finalizerWriters(object: Json | undefined) {
  const entries = managedFields(object);
  const authors = entries.filter((entry) =>
    Object.keys(valueAt(entry, 'fieldsV1') ?? {}).some((key) => !/^f:(metadata|status)$/.test(key)),
  );
  return [...new Set(stringsAt(object, 'metadata', 'finalizers'))].flatMap((finalizer) => {
    const key = `v:${JSON.stringify(finalizer)}`;
    const owner = lastOf(entries, ['f:metadata', 'f:finalizers', key]);
    if (owner === undefined) return [];
    const isManifest = authors.length === 1 || stringAt(owner, 'operation') === 'Apply';
    const isAuthor = isManifest && authors.includes(owner);
    return { finalizer, ...writer(owner), ...(isAuthor && { isAuthor: true as const }) };
  });
}

function statusWriters(object: Json | undefined): ReturnType<typeof write>[] {
  const isOfStatus = (entry: Json): boolean =>
    stringAt(entry, 'subresource') === 'status' || isObject(valueAt(entry, 'fieldsV1', 'f:status'));
  return managedFields(object).filter(isOfStatus).map(write);
}

/** Returns the managedFields, oldest first. */
function managedFields(object: Json | undefined): Json[] {
  const timeOf = (entry: Json): number => Date.parse(stringAt(entry, 'time') ?? '') || 0;
  return arrayAt(object, 'metadata', 'managedFields').toSorted((a, b) => timeOf(a) - timeOf(b));
}

/** Returns the entry of the field manager that last set a field, also by a subresource. */
export function lastWrite(object: Json | undefined, ...field: string[]): Json | undefined {
  return lastOf(managedFields(object), field);
}

function lastOf(entries: readonly Json[], field: readonly string[]): Json | undefined {
  return entries.findLast((entry) => valueAt(entry, 'fieldsV1', ...field) !== undefined);
}

/** All field managers. Absent in snapshots that were recorded earlier. */
export function managersOf(object: Json | undefined): string[] | undefined {
  return [...new Set(managedFields(object).flatMap((entry) => stringAt(entry, 'manager') ?? []))];
}

const MAX_ANNOTATION_CHARS = 200;

export const shortAnnotations = fieldAt('metadata.annotations', (all) =>
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

const METADATA = {
  uid: text('metadata.uid'),
  resourceVersion: text('metadata.resourceVersion'),
  creationTimestamp: textIfAny('metadata.creationTimestamp'),
  deletionTimestamp: textIfAny('metadata.deletionTimestamp'),
  finalizers: texts('metadata.finalizers'),
  labels: record('metadata.labels'),
  /** Field managers that set each of `finalizers`. */
  writers: finalizerWriters,
};

export type NamespaceFacts = ReturnType<typeof namespaceFacts>;
export const namespaceFacts = shape({
  ...NAME,
  ...METADATA,
  phase: textIfAny('status.phase'),
  specFinalizers: texts('spec.finalizers'),
  /** They may name the object that stands for it, as its annotations. */
  owners: textOfEach('metadata.ownerReferences', 'uid'),
  annotations: (object) => dictionary(shortAnnotations(object)),
  conditions: conditionsOf,
  /** Conditions have no other time of their last check. */
  statusWrittenAt: (object) =>
    statusWriters(object).findLast(({ manager }) => manager === 'kube-controller-manager')?.time,
});

/** A resource type in the version that the server prefers for it. */
export interface ResourceType {
  /** Empty for the core group. */
  group: string;
  version: string;
  resource: string;
  kind: string;
  namespaced: boolean;
  verbs: string[];
  /** `kubectl scale` can change it. */
  scales?: true;
}

const coreType = (kind: string, namespaced: boolean): ResourceType => ({
  ...{ group: '', version: 'v1', resource: `${kind.toLowerCase()}s`, kind, namespaced, verbs: [] },
});

export const NAMESPACE_TYPE = coreType('Namespace', false);
/** The last write of the namespace controller. Admission and RBAC may refuse it too. */
export const FINALIZE: ResourceType = { ...NAMESPACE_TYPE, resource: 'namespaces/finalize' };
/** The entry of the namespace controller in `spec.finalizers`, removed once the content is deleted. */
export const KUBERNETES_FINALIZER = 'kubernetes';
export const POD_TYPE = coreType('Pod', true);
/** The finalizer of a claim that a pod may still use. */
export const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';
export type TypeRef = Pick<ResourceType, 'group' | 'version' | 'resource'>;

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

const objectMetadata = shape({
  ...PLACED,
  ...METADATA,
  /** Set by the API server for most types and raised by the deletion (apiserver, rest.BeforeDelete). */
  generation: number('metadata.generation'),
  annotations: usefulAnnotations,
  ownerReferences,
  /** Field managers of the status, the latest last. */
  statusWriters,
  managers: managersOf,
  /** Field managers that wrote anything since the deletion began. Absent in snapshots that were recorded earlier. */
  lateWriters: (object) => {
    const since = stringAt(object, 'metadata', 'deletionTimestamp');
    const writes = managedFields(object).map(write);
    return since === undefined ? undefined : writes.filter(({ time = '' }) => time > since);
  },
});

export type ObjectFacts = ReturnType<typeof objectFacts>;

/** `object` may be only its metadata; a list leaves out apiVersion and kind. */
export function objectFacts(
  object: JsonObject,
  type: Pick<ResourceType, 'group' | 'version' | 'kind'>,
) {
  return { apiVersion: apiVersionOf(type), kind: type.kind, ...objectMetadata(object) };
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

export const INSTALLED = { labels: record('metadata.labels'), annotations: usefulAnnotations };

/** Name and UID. An object that was created again has another UID. */
export const identity = shape({ ...NAME, uid: text('metadata.uid') });
