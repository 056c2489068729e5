import { arrayAt, type Json, type JsonObject, stringAt, stringsAt, valueAt } from '../base/json.ts';
import { collectItems } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { webhookFacts } from '../model/facts/admission.ts';
import { identity, type TypeRef, typeName } from '../model/facts/metadata.ts';
import { isOnlyFor } from '../model/facts/selectors.ts';
import type { NotInspected } from '../model/finding.ts';
import type { LeftBehind } from '../model/result.ts';
import { MAX_ITEMS, typeNamed } from '../model/sources.ts';
import { missingPermission, type Reading } from './collections.ts';

/** A field that points into a namespace. */
interface Pointed {
  namespace: string;
  /** The field and its target: "its spec.claimRef names PersistentVolumeClaim preview-7/data". */
  how: string;
  breaksOthers?: boolean;
  /** Whether garbage collection deletes the object. */
  isOwned?: true;
}

/** A cluster-scoped type whose objects may point into a namespace. */
interface PointingType extends TypeRef {
  apiVersion: string;
  kind: string;
  /**
   * Returns the fields that point into a namespace. Undefined: only its metadata can point (Helm, owner
   * references).
   */
  points?: (item: JsonObject) => Pointed[];
  state?: (item: JsonObject) => string;
  /** Reports whether its controller deletes it once the object that it points to is deleted. */
  isGoing?: (item: JsonObject) => boolean;
  /** The consequence if the object stays; `broken`: the consequence for other namespaces. */
  meaning?: string;
  broken?: string;
  isOptional?: true;
}

function pointingType(
  apiVersion: string,
  kind: string,
  how: Omit<PointingType, 'apiVersion' | 'kind' | keyof TypeRef> = {},
): PointingType {
  return { ...typeNamed(apiVersion, kind), apiVersion, kind, ...how };
}

/** Field with a Service whose absence breaks other namespaces. */
const callsService = (field: string): Pick<PointingType, 'points'> => ({
  points: (item) => pointerTo(item, field, 'Service', true),
});

const reclaimPolicy = (item: JsonObject) => stringAt(item, 'spec', 'persistentVolumeReclaimPolicy');
const phaseOf = (item: JsonObject) => stringAt(item, 'status', 'phase');
const deletionPolicy = (item: JsonObject) => stringAt(item, 'spec', 'deletionPolicy');

const CRDS = pointingType('apiextensions.k8s.io/v1', 'CustomResourceDefinition', {
  ...callsService('spec.conversion.webhook.clientConfig.service'),
  broken: 'without it, objects in another version can be neither read nor deleted',
});

export const POINTING_TYPES: readonly PointingType[] = [
  pointingType('v1', 'PersistentVolume', {
    points: (item) => pointerTo(item, 'spec.claimRef', 'PersistentVolumeClaim'),
    state: (item) => {
      const phase = phaseOf(item) ?? 'no phase';
      // The controller that should delete the volume failed; its message says why.
      const message = phase === 'Failed' ? (stringAt(item, 'status', 'message') ?? '') : '';
      const policy = reclaimPolicy(item) ?? 'unknown';
      return `${phase}${message === '' ? '' : `: ${message}`}, reclaim policy ${policy}`;
    },
    isGoing: (item) => reclaimPolicy(item) === 'Delete' && phaseOf(item) !== 'Failed',
    meaning: 'the volume, and what is on it, still exist',
  }),
  pointingType('snapshot.storage.k8s.io/v1', 'VolumeSnapshotContent', {
    points: (item) => pointerTo(item, 'spec.volumeSnapshotRef', 'VolumeSnapshot'),
    state: (item) => {
      const error = stringAt(item, 'status', 'error', 'message');
      const policy = deletionPolicy(item) ?? 'unknown';
      return `deletion policy ${policy}${error === undefined ? '' : `: ${error}`}`;
    },
    isGoing: (item) =>
      deletionPolicy(item) === 'Delete' && valueAt(item, 'status', 'error') === undefined,
    meaning: 'the snapshot in the storage still exists',
    isOptional: true,
  }),
  webhooks('ValidatingWebhookConfiguration'),
  webhooks('MutatingWebhookConfiguration'),
  pointingType('apiregistration.k8s.io/v1', 'APIService', {
    ...callsService('spec.service'),
    meaning: 'until it responds, no namespace of the cluster can be deleted',
  }),
  CRDS,
  pointingType('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', {
    points: (item) =>
      arrayAt(item, 'subjects').flatMap((subject, index) => {
        const namespace = placeOfSubject(subject);
        const name = stringAt(subject, 'name') ?? '';
        const who = stringAt(subject, 'kind') === 'ServiceAccount' ? `${namespace}/${name}` : name;
        const how = `its subjects[${index}] still grants permissions to ${stringAt(subject, 'kind')} ${who}`;
        return namespace === undefined ? [] : [{ namespace, how }];
      }),
    state: (item) => totalText(arrayAt(item, 'subjects').length, 'subjects'),
    meaning: 'anyone who creates a namespace and an account of these names gets them',
  }),
  pointingType('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicyBinding', {
    points: (item) => {
      const action = stringAt(item, 'spec', 'paramRef', 'parameterNotFoundAction');
      return pointerTo(item, 'spec.paramRef', 'its parameters', action !== 'Allow');
    },
    isOptional: true,
  }),
  pointingType('rbac.authorization.k8s.io/v1', 'ClusterRole', { points: () => [] }),
  pointingType('storage.k8s.io/v1', 'StorageClass'),
  pointingType('networking.k8s.io/v1', 'IngressClass'),
  pointingType('scheduling.k8s.io/v1', 'PriorityClass'),
];

const ATTACHMENTS = pointingType('storage.k8s.io/v1', 'VolumeAttachment', {
  state: (item) => `attacher ${stringAt(item, 'spec', 'attacher') ?? 'unknown'}`,
  isGoing: (item) => valueAt(item, 'status', 'detachError') === undefined,
  meaning: 'the volume is still attached to its node',
});

function webhooks(kind: string): PointingType {
  return pointingType('admissionregistration.k8s.io/v1', kind, {
    points: (item) =>
      webhookFacts(kind)(item).flatMap((webhook) => {
        const { failurePolicy, index, namespaceSelector } = webhook;
        const service = webhook.service ?? webhook.serviceInUrl;
        if (service === undefined) return [];
        const { namespace, name } = service;
        const how = `its webhooks[${index}].clientConfig names Service ${namespace}/${name}`;
        const breaksOthers = failurePolicy === 'Fail' && !isOnlyFor(namespace, namespaceSelector);
        return [{ namespace, how, breaksOthers }];
      }),
    state: (item) => totalText(arrayAt(item, 'webhooks').length, 'webhooks'),
  });
}

/** Describes that the object also points elsewhere. */
function totalText(count: number, what: string): string {
  return count > 1 ? `${count} ${what} in all` : '';
}

function pointerTo(item: JsonObject, field: string, kind: string, breaksOthers = false): Pointed[] {
  const target = valueAt(item, ...field.split('.'));
  const namespace = stringAt(target, 'namespace');
  if (namespace === undefined) return [];
  const name = stringAt(target, 'name') ?? '*';
  const how = `its ${field} names ${kind} ${namespace}/${name}`;
  return [{ namespace, how, breaksOthers }];
}

/**
 * Returns the namespace in the name of an account or group (apiserver
 * pkg/authentication/serviceaccount/util.go).
 */
function placeOfSubject(subject: Json): string | undefined {
  if (stringAt(subject, 'kind') === 'ServiceAccount') return stringAt(subject, 'namespace');
  const name = stringAt(subject, 'name') ?? '';
  return /^system:serviceaccounts?:([^:]+)/.exec(name)?.[1];
}

/** Limit for the list, so that the report remains readable. */
const MAX_POINTERS = 500;

/**
 * Reads all cluster-scoped objects that point into these namespaces, with one list for each of a fixed number of
 * types. Objects that point elsewhere are dropped while they are read.
 */
export async function readPointers(
  namespaces: readonly { name: string; uid: string }[],
  { api, signal }: Reading,
): Promise<{ pointers: LeftBehind[]; unread: NotInspected[] }> {
  const names = new Set(namespaces.map(({ name }) => name));
  const owners = new Map(namespaces.map(({ name, uid }) => [uid, name]));
  const unread: NotInspected[] = [];
  const reconcilers = new Reconcilers();
  let isBlind = true;
  const list = async <T>(
    type: PointingType,
    parse: (item: JsonObject) => T[],
    metadataOnly = false,
  ): Promise<T[]> => {
    const options = { signal, metadataOnly, maxItems: MAX_ITEMS };
    const end = await api.list(collectionPath(type), collectItems(parse), options);
    isBlind &&= !end.ok && end.failure.kind === 'forbidden';
    const isThere = end.ok || !type.isOptional || end.failure.status !== 404;
    const missing = end.ok ? `only the first ${MAX_ITEMS} are read` : end.failure.message;
    if (isThere && !(end.ok && end.value.complete)) {
      const reason = `not searched for objects that point into the namespace: ${missing}`;
      const grant = end.ok ? {} : missingPermission(end.failure, type);
      unread.push({ what: typeName(type), reason, ...grant });
    }
    return end.ok ? end.value.kept : [];
  };
  const pointingIn = (type: PointingType) =>
    list(
      type,
      (item) => {
        reconcilers.add(type.kind, item);
        const found = [...(type.points?.(item) ?? []), ...byMetadata(item, owners)];
        return [...Map.groupBy(found, ({ namespace }) => namespace)].flatMap(
          ([namespace, points]) => (names.has(namespace) ? pointerOf(type, item, points) : []),
        );
      },
      type.points === undefined,
    );
  const [attachments, ...lists] = await Promise.all([
    list(ATTACHMENTS, (item) => [item]),
    ...POINTING_TYPES.map(pointingIn),
  ]);
  if (isBlind) {
    // An identity that may only wait gets one entry instead of one per type.
    const what = 'objects outside of the namespace that point into it';
    const reason = 'none of it may be listed: 403 Forbidden';
    return { pointers: [], unread: [{ what, reason }] };
  }
  const pointers = lists.flat();
  const volumes = new Map(
    pointers.flatMap((one) => (one.claim === undefined ? [] : [[one.name, one]])),
  );
  for (const item of attachments) {
    const volume = stringAt(item, 'spec', 'source', 'persistentVolumeName') ?? '';
    const of = volumes.get(volume);
    if (of === undefined) continue;
    const how = `its spec.source names PersistentVolume ${volume}, whose claim was in the namespace`;
    pointers.push({ ...of, ...pointerOf(ATTACHMENTS, item, [{ namespace: of.namespace, how }]) });
  }
  if (unread.length === 0) pointers.push(...reconcilers.definitionsWithoutController(names));
  if (pointers.length > MAX_POINTERS) {
    const reason = `only the first ${MAX_POINTERS} are listed`;
    unread.push({ what: 'more objects that are left behind', reason });
  }
  return { pointers: pointers.slice(0, MAX_POINTERS), unread };
}

/**
 * Describes an object that points into one namespace by several fields. A field whose broken reference disturbs other
 * namespaces is named first.
 */
function pointerOf(type: PointingType, item: JsonObject, points: readonly Pointed[]): LeftBehind {
  const worst = points.find((point) => point.breaksOthers) ?? (points[0] as Pointed);
  const { namespace, how, breaksOthers = false } = worst;
  const isDeleted = valueAt(item, 'metadata', 'deletionTimestamp') !== undefined;
  const isGoing =
    isDeleted || type.isGoing?.(item) === true || points.some(({ isOwned }) => isOwned);
  const state = [type.state?.(item) ?? '', isDeleted ? 'being deleted' : '']
    .filter((one) => one !== '')
    .join(', ');
  const broken = type.broken ?? 'requests that it matches are refused, in the whole cluster';
  const meaning = isGoing
    ? 'it should be deleted automatically, and is still there'
    : (type.meaning ?? (breaksOthers ? broken : ''));
  const why = `${how}${state === '' ? '' : ` (${state})`}${meaning === '' ? '' : `: ${meaning}`}`;
  const { apiVersion, kind } = type;
  const name = stringAt(item, 'metadata', 'name') ?? '';
  const pointer = { apiVersion, kind, name, why, namespace, breaksOthers, isGoing };
  if (kind !== 'PersistentVolume') return pointer;
  const claim = identity({ metadata: valueAt(item, 'spec', 'claimRef') });
  const isReleased = !['Bound', undefined].includes(phaseOf(item));
  const released = { at: stringAt(item, 'status', 'lastPhaseTransitionTime') };
  return { ...pointer, claim, ...(isReleased ? { released } : {}) };
}

const RELEASE = 'meta.helm.sh/release-namespace';

/**
 * Returns the metadata that point into a namespace: a Helm release in it, or an owner reference to the
 * Namespace.
 */
function byMetadata(item: JsonObject, owners: ReadonlyMap<string, string>): Pointed[] {
  const release = stringAt(item, 'metadata', 'annotations', RELEASE);
  const owned = arrayAt(item, 'metadata', 'ownerReferences').flatMap((reference, index) => {
    const namespace = owners.get(stringAt(reference, 'uid') ?? '');
    const how = `its ownerReferences[${index}] names the Namespace`;
    return namespace === undefined ? [] : [{ namespace, how, isOwned: true as const }];
  });
  if (release === undefined) return owned;
  return [{ namespace: release, how: `its annotation ${RELEASE} names the namespace` }, ...owned];
}

/** Reads CRDs and the accounts that may write the status or the finalizers of their objects: their controllers, by RBAC. */
class Reconcilers {
  private readonly definitions = new Set<string>();
  /** Names of CRDs by ClusterRole. */
  private readonly roles = new Map<string, string[]>();
  /** Bindings by name, so that a list that starts again does not count them twice. */
  private readonly bindings = new Map<string, { role: string; places: (string | undefined)[] }>();

  add(kind: string, item: JsonObject): void {
    const name = stringAt(item, 'metadata', 'name') ?? '';
    if (kind === CRDS.kind) this.definitions.add(name);
    if (kind === 'ClusterRole') {
      const types = arrayAt(item, 'rules')
        .filter((rule) =>
          stringsAt(rule, 'verbs').some((verb) => /^(?:update|patch|\*)$/.test(verb)),
        )
        .flatMap((rule) =>
          stringsAt(rule, 'resources')
            .flatMap((resource) => /^(.+)\/(?:status|finalizers)$/.exec(resource)?.[1] ?? [])
            .flatMap((type) => stringsAt(rule, 'apiGroups').map((group) => `${type}.${group}`)),
        );
      if (types.length > 0) this.roles.set(name, types);
    }
    if (kind === 'ClusterRoleBinding') {
      const role = stringAt(item, 'roleRef', 'name') ?? '';
      this.bindings.set(name, { role, places: arrayAt(item, 'subjects').map(placeOfSubject) });
    }
  }

  /** Returns the CRDs whose only controllers ran as accounts of one of these namespaces. */
  definitionsWithoutController(namespaces: ReadonlySet<string>): LeftBehind[] {
    const holders = [...this.bindings.values()].flatMap(({ role, places }) =>
      (this.roles.get(role) ?? []).flatMap((type) =>
        places.map((place) => ({ type, role, place })),
      ),
    );
    const byType = Map.groupBy(holders, ({ type }) => type);
    return [...this.definitions].flatMap((name) => {
      const [first, ...others] = byType.get(name) ?? [];
      const namespace = first?.place;
      if (first === undefined || namespace === undefined || !namespaces.has(namespace)) return [];
      if (others.some(({ place }) => place !== namespace)) return [];
      const how = `only accounts of the namespace may write the status of its objects (ClusterRole ${first.role}): without the namespace they have no controller`;
      return [pointerOf(CRDS, { metadata: { name } }, [{ namespace, how }])];
    });
  }
}
