import {
  isObject,
  type Json,
  type JsonObject,
  numberAt,
  stringAt,
  stringsAt,
  valueAt,
} from '../../../src/base/json.ts';
import { applyJsonPatch } from './json-patch.ts';
import { withType } from './lists.ts';
import type { Objects } from './objects.ts';
import { keyOf, type Route } from './routes.ts';
import {
  conflict,
  forbidden,
  invalidField,
  modified,
  NotSupported,
  notFound,
  qualifiedName,
  type Target,
} from './status.ts';

/** The namespaces that the NamespaceLifecycle plugin protects (kube-node-lease is not one). */
const IMMORTAL_NAMESPACES = ['default', 'kube-system', 'kube-public'];

export interface Writing {
  objects: Objects;
  route: Route;
  dryRun: boolean;
  now: Date;
}

export function patchObject(writing: Writing, patch: Json): JsonObject {
  const before = existing(writing);
  const target = targetOf(writing.route);
  refuseInGoneNamespace(writing);
  const after = applyJsonPatch(withType(writing.route.type, before), patch) as JsonObject;
  const changedUid = stringAt(after, 'metadata', 'uid');
  if (changedUid !== stringAt(before, 'metadata', 'uid')) {
    const why = `Invalid value: "${changedUid}": field is immutable`;
    throw invalidField(target, 'metadata.uid', 'FieldValueInvalid', why);
  }
  refuseOldVersion(target, before, after);
  const had = stringsAt(before, 'metadata', 'finalizers');
  const added = stringsAt(after, 'metadata', 'finalizers').filter((name) => !had.includes(name));
  if (isTerminating(before) && added.length > 0) {
    const quoted = added.map((name) => `"${name}"`).join(', ');
    const why = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${quoted}}`;
    throw invalidField(target, 'metadata.finalizers', 'FieldValueForbidden', why);
  }
  // The main resource keeps what belongs to /finalize: 200, and nothing changes.
  if (isNamespace(writing.route)) after['spec'] = before['spec'];
  return store(writing, after);
}

/** PUT …/finalize: the one way to change a namespace's `spec.finalizers`. */
export function finalizeNamespace(writing: Writing, body: Json): JsonObject {
  const before = existing(writing);
  const target = targetOf(writing.route);
  const given = isObject(body) ? body : {};
  const uid = stringAt(before, 'metadata', 'uid');
  const wanted = stringAt(given, 'metadata', 'uid');
  if (wanted !== undefined && wanted !== uid) {
    const key = `Key: /registry/namespaces/${target.name}`;
    const why = `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${uid}`;
    throw conflict(
      target,
      `StorageError: invalid object, Code: 4, ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`,
    );
  }
  refuseOldVersion(target, before, given);
  const finalizers = stringsAt(given, 'spec', 'finalizers');
  const spec = finalizers.length === 0 ? {} : { finalizers };
  return store(writing, { ...withType(writing.route.type, before), spec });
}

export function deleteObject(writing: Writing, body: Json): JsonObject {
  const before = existing(writing);
  const target = targetOf(writing.route);
  const policy = stringAt(body, 'propagationPolicy') ?? 'Background';
  if (policy !== 'Background') throw new NotSupported(`propagationPolicy "${policy}"`);
  if (isNamespace(writing.route) && IMMORTAL_NAMESPACES.includes(target.name)) {
    throw forbidden(target, 'this namespace may not be deleted');
  }
  refuseUnmetPreconditions(writing.route, before, body);
  const grace = graceSeconds(writing.route, before, body);
  if (isTerminating(before)) {
    // A second DELETE changes nothing, but a shorter grace period ends a pod.
    if (grace > 0 || !isPod(writing.route) || hasFinalizers(before)) {
      return withType(writing.route.type, before);
    }
  } else if (isNamespace(writing.route) || hasFinalizers(before) || grace > 0) {
    return store(writing, terminating(writing, before, grace));
  }
  if (!writing.dryRun) writing.objects.remove(keyOf(writing.route));
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: {
      name: target.name,
      ...(target.group === '' ? {} : { group: target.group }),
      kind: target.resource,
      uid: stringAt(before, 'metadata', 'uid'),
    },
  };
}

/** Stores; what is terminating and has nothing left to wait for is gone, as in the registry. */
function store(writing: Writing, after: JsonObject): JsonObject {
  if (writing.dryRun) return after;
  const key = keyOf(writing.route);
  const stored = writing.objects.put(key, after);
  if (isTerminating(stored) && nothingToWaitFor(writing.route, stored)) writing.objects.remove(key);
  return stored;
}

function nothingToWaitFor(route: Route, object: JsonObject): boolean {
  if (hasFinalizers(object)) return false;
  if (isNamespace(route)) return stringsAt(object, 'spec', 'finalizers').length === 0;
  return (numberAt(object, 'metadata', 'deletionGracePeriodSeconds') ?? 0) === 0;
}

function terminating({ route, now }: Writing, object: JsonObject, grace: number): JsonObject {
  const at = new Date(now.getTime() + grace * 1_000).toISOString().replace(/\.\d+Z$/, 'Z');
  const metadata = { ...asObject(object['metadata']), deletionTimestamp: at };
  const typed = withType(route.type, object);
  if (isNamespace(route)) {
    return { ...typed, metadata, status: { ...asObject(object['status']), phase: 'Terminating' } };
  }
  return { ...typed, metadata: { ...metadata, deletionGracePeriodSeconds: grace } };
}

/** Only pods on a node have a grace period; the others are deleted at once. */
function graceSeconds(route: Route, object: JsonObject, body: Json): number {
  if (!isPod(route) || valueAt(object, 'spec', 'nodeName') === undefined) return 0;
  const fallback = numberAt(object, 'spec', 'terminationGracePeriodSeconds') ?? 30;
  return numberAt(body, 'gracePeriodSeconds') ?? fallback;
}

function refuseUnmetPreconditions(route: Route, object: JsonObject, body: Json): void {
  const target = targetOf(route);
  const uid = stringAt(object, 'metadata', 'uid');
  const wantedUid = stringAt(body, 'preconditions', 'uid') ?? uid;
  const version = stringAt(object, 'metadata', 'resourceVersion');
  const wantedVersion = stringAt(body, 'preconditions', 'resourceVersion') ?? version;
  if (isNamespace(route) && wantedUid !== uid) {
    const why = `UID in precondition: ${wantedUid}, UID in object meta: ${uid}`;
    throw conflict(target, `Precondition failed: ${why}`);
  }
  if (wantedUid !== uid) {
    const why = `the UID in the precondition (${wantedUid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`;
    throw conflict({ ...target, resource: target.kind }, why);
  }
  if (wantedVersion !== version) {
    const why = `the ResourceVersion in the precondition (${wantedVersion}) does not match the ResourceVersion in record (${version}). The object might have been modified`;
    throw conflict({ ...target, resource: target.kind }, why);
  }
}

function refuseOldVersion(target: Target, before: JsonObject, after: JsonObject): void {
  const version = stringAt(after, 'metadata', 'resourceVersion');
  if (version === undefined || version === '') return;
  if (version !== stringAt(before, 'metadata', 'resourceVersion')) throw modified(target);
}

/** What a forced namespace leaves behind can only be deleted: UPDATE and PATCH answer 404. */
function refuseInGoneNamespace({ objects, route }: Writing): void {
  if (route.namespace === '') return;
  const namespace = { collection: '/api/v1/namespaces', namespace: '', name: route.namespace };
  if (objects.get(namespace) !== undefined) return;
  throw notFound({ group: '', resource: 'namespaces', name: route.namespace });
}

function existing({ objects, route }: Writing): JsonObject {
  const object = objects.get(keyOf(route));
  if (object === undefined) throw notFound(targetOf(route));
  return object;
}

function targetOf(route: Route): Required<Target> & { name: string; kind: string } {
  const { group, resource, kind } = route.type;
  return { group, resource, kind, name: route.name ?? '' };
}

function isNamespace({ type }: Route): boolean {
  return qualifiedName(type) === 'namespaces';
}

function isPod({ type }: Route): boolean {
  return qualifiedName(type) === 'pods';
}

function isTerminating(object: JsonObject): boolean {
  return stringAt(object, 'metadata', 'deletionTimestamp') !== undefined;
}

function hasFinalizers(object: JsonObject): boolean {
  return stringsAt(object, 'metadata', 'finalizers').length > 0;
}

function asObject(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
