import {
  arrayAt,
  at,
  isObject,
  type Json,
  type JsonObject,
  numberAt,
  recordAt,
  stringAt,
  stringsAt,
} from '../base/json.ts';
import type { ResourceType } from '../kubernetes/api.ts';
import type {
  ApiServiceFacts,
  Condition,
  FinalizerWriter,
  NamespaceFacts,
  NodeFacts,
  ObjectFacts,
  OwnerReference,
  PodFacts,
} from '../model/snapshot.ts';

/** A field manager is at most 128 characters (apimachinery, fieldManager validation). */
const NO_MANAGER = '';

export function namespaceFacts(object: JsonObject): NamespaceFacts {
  return {
    name: stringAt(object, 'metadata', 'name') ?? '',
    uid: stringAt(object, 'metadata', 'uid') ?? '',
    resourceVersion: stringAt(object, 'metadata', 'resourceVersion') ?? '',
    phase: stringAt(object, 'status', 'phase'),
    creationTimestamp: stringAt(object, 'metadata', 'creationTimestamp'),
    deletionTimestamp: stringAt(object, 'metadata', 'deletionTimestamp'),
    labels: recordAt(object, 'metadata', 'labels'),
    finalizers: stringsAt(object, 'metadata', 'finalizers'),
    writers: finalizerWriters(object),
    specFinalizers: stringsAt(object, 'spec', 'finalizers'),
    conditions: conditionsOf(object),
    statusWrittenAt: arrayAt(object, 'metadata', 'managedFields')
      .filter(
        (entry) =>
          stringAt(entry, 'manager') === 'kube-controller-manager' &&
          stringAt(entry, 'subresource') === 'status',
      )
      .map((entry) => stringAt(entry, 'time'))
      .findLast((time) => time !== undefined),
  };
}

export function conditionsOf(object: JsonObject): Condition[] {
  return arrayAt(object, 'status', 'conditions').flatMap((entry) => {
    const type = stringAt(entry, 'type');
    if (type === undefined) return [];
    const lastTransitionTime = stringAt(entry, 'lastTransitionTime');
    return {
      type,
      status: stringAt(entry, 'status') ?? '',
      reason: stringAt(entry, 'reason') ?? '',
      message: stringAt(entry, 'message') ?? '',
      ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }),
    };
  });
}

/** `object` may be the full object or only its metadata; a list leaves out apiVersion and kind. */
export function objectFacts(object: JsonObject, type: ResourceType): ObjectFacts {
  return {
    apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
    kind: type.kind,
    namespace: stringAt(object, 'metadata', 'namespace') ?? '',
    name: stringAt(object, 'metadata', 'name') ?? '',
    uid: stringAt(object, 'metadata', 'uid') ?? '',
    resourceVersion: stringAt(object, 'metadata', 'resourceVersion') ?? '',
    creationTimestamp: stringAt(object, 'metadata', 'creationTimestamp'),
    deletionTimestamp: stringAt(object, 'metadata', 'deletionTimestamp'),
    finalizers: stringsAt(object, 'metadata', 'finalizers'),
    labels: recordAt(object, 'metadata', 'labels'),
    ownerReferences: arrayAt(object, 'metadata', 'ownerReferences').map(ownerReference),
    writers: finalizerWriters(object),
  };
}

export function podFacts(object: JsonObject, type: ResourceType): PodFacts {
  return {
    ...objectFacts(object, type),
    phase: stringAt(object, 'status', 'phase'),
    nodeName: stringAt(object, 'spec', 'nodeName'),
    deletionGracePeriodSeconds: numberAt(object, 'metadata', 'deletionGracePeriodSeconds'),
    serviceAccountName: stringAt(object, 'spec', 'serviceAccountName'),
    claims: arrayAt(object, 'spec', 'volumes').flatMap((volume) => claimOf(object, volume) ?? []),
  };
}

/** Generic ephemeral volumes have claims too (component-helpers, storage/ephemeral.VolumeClaimName). */
function claimOf(pod: JsonObject, volume: Json): string | undefined {
  if (!isObject(at(volume, 'ephemeral'))) {
    return stringAt(volume, 'persistentVolumeClaim', 'claimName');
  }
  return `${stringAt(pod, 'metadata', 'name')}-${stringAt(volume, 'name')}`;
}

function ownerReference(entry: unknown): OwnerReference {
  const object = isObject(entry) ? entry : {};
  return {
    apiVersion: stringAt(object, 'apiVersion') ?? '',
    kind: stringAt(object, 'kind') ?? '',
    name: stringAt(object, 'name') ?? '',
    uid: stringAt(object, 'uid') ?? '',
  };
}

/**
 * Who put each finalizer there: the managedFields entry whose set holds `v:"<finalizer>"` under
 * f:metadata, f:finalizers. Several managers may own the same entry; the last writer is named.
 */
export function finalizerWriters(object: JsonObject): FinalizerWriter[] {
  const finalizers = stringsAt(object, 'metadata', 'finalizers');
  if (finalizers.length === 0) return [];
  const entries = arrayAt(object, 'metadata', 'managedFields')
    .map((entry) => ({ entry, set: at(entry, 'fieldsV1', 'f:metadata', 'f:finalizers') }))
    .filter(({ set }) => isObject(set))
    .sort((a, b) =>
      (stringAt(a.entry, 'time') ?? '').localeCompare(stringAt(b.entry, 'time') ?? ''),
    );
  return finalizers.flatMap((finalizer) => {
    const owner = entries.findLast(
      ({ set }) => at(set, `v:${JSON.stringify(finalizer)}`) !== undefined,
    );
    if (owner === undefined) return [];
    return {
      finalizer,
      manager: stringAt(owner.entry, 'manager') ?? NO_MANAGER,
      operation: stringAt(owner.entry, 'operation') ?? '',
      time: stringAt(owner.entry, 'time'),
    };
  });
}

export function nodeFacts(object: JsonObject): NodeFacts {
  const ready = conditionsOf(object).find((condition) => condition.type === 'Ready');
  return {
    name: stringAt(object, 'metadata', 'name') ?? '',
    exists: true,
    ready: ready?.status,
    readyReason: ready === undefined ? undefined : `${ready.reason}: ${ready.message}`,
    readySince: ready?.lastTransitionTime,
    taints: arrayAt(object, 'spec', 'taints').flatMap((taint) => stringAt(taint, 'key') ?? []),
  };
}

export function apiServiceFacts(object: JsonObject): ApiServiceFacts {
  const service = at(object, 'spec', 'service');
  const available = conditionsOf(object).find((condition) => condition.type === 'Available');
  return {
    name: stringAt(object, 'metadata', 'name') ?? '',
    group: stringAt(object, 'spec', 'group') ?? '',
    version: stringAt(object, 'spec', 'version') ?? '',
    service: isObject(service)
      ? {
          namespace: stringAt(service, 'namespace') ?? '',
          name: stringAt(service, 'name') ?? '',
          port: numberAt(service, 'port'),
        }
      : undefined,
    available:
      available === undefined
        ? undefined
        : {
            status: available.status,
            reason: available.reason,
            message: available.message,
            ...(available.lastTransitionTime === undefined
              ? {}
              : { since: available.lastTransitionTime }),
          },
  };
}
