import { arrayAt, at, type Json, type JsonObject, stringAt, stringsAt } from '../base/json.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import type { Pointer, Unread } from '../model/snapshot.ts';
import { missingRight } from './sources.ts';

interface Pointed {
  namespace: string;
  field: string;
  breaksOthers?: boolean;
}

/** A cluster-scoped type whose objects may point into a namespace. */
interface PointingType {
  group: string;
  version: string;
  resource: string;
  kind: string;
  /** Undefined: only its metadata can point (Helm, owner references). */
  points?: (item: JsonObject) => Pointed[];
  state?: (item: JsonObject) => string;
  isOptional?: true;
}

const ADMISSION = { group: 'admissionregistration.k8s.io', version: 'v1' };
const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1' };

export const POINTING_TYPES: readonly PointingType[] = [
  {
    group: '',
    version: 'v1',
    resource: 'persistentvolumes',
    kind: 'PersistentVolume',
    points: (item) => pointed(at(item, 'spec', 'claimRef'), 'spec.claimRef'),
    state: (item) =>
      `${stringAt(item, 'status', 'phase') ?? 'no phase'}, reclaim policy ${stringAt(item, 'spec', 'persistentVolumeReclaimPolicy') ?? 'unknown'}`,
  },
  {
    group: 'snapshot.storage.k8s.io',
    version: 'v1',
    resource: 'volumesnapshotcontents',
    kind: 'VolumeSnapshotContent',
    points: (item) => pointed(at(item, 'spec', 'volumeSnapshotRef'), 'spec.volumeSnapshotRef'),
    state: (item) => `deletion policy ${stringAt(item, 'spec', 'deletionPolicy') ?? 'unknown'}`,
    isOptional: true,
  },
  webhooks('ValidatingWebhookConfiguration'),
  webhooks('MutatingWebhookConfiguration'),
  {
    group: 'apiregistration.k8s.io',
    version: 'v1',
    resource: 'apiservices',
    kind: 'APIService',
    points: (item) => breaking(pointed(at(item, 'spec', 'service'), 'spec.service')),
  },
  {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    resource: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    points: (item) =>
      breaking(
        pointed(
          at(item, 'spec', 'conversion', 'webhook', 'clientConfig', 'service'),
          'spec.conversion.webhook.clientConfig.service',
        ),
      ),
  },
  {
    ...RBAC,
    resource: 'clusterrolebindings',
    kind: 'ClusterRoleBinding',
    points: (item) =>
      arrayAt(item, 'subjects').flatMap((subject, index) => {
        const namespace = placeOfSubject(subject);
        return namespace === undefined ? [] : [{ namespace, field: `subjects[${index}]` }];
      }),
  },
  {
    ...ADMISSION,
    resource: 'validatingadmissionpolicybindings',
    kind: 'ValidatingAdmissionPolicyBinding',
    points: (item) => breaking(pointed(at(item, 'spec', 'paramRef'), 'spec.paramRef')),
    isOptional: true,
  },
  { ...RBAC, resource: 'clusterroles', kind: 'ClusterRole', points: () => [] },
  { group: 'storage.k8s.io', version: 'v1', resource: 'storageclasses', kind: 'StorageClass' },
  {
    group: 'networking.k8s.io',
    version: 'v1',
    resource: 'ingressclasses',
    kind: 'IngressClass',
  },
  {
    group: 'scheduling.k8s.io',
    version: 'v1',
    resource: 'priorityclasses',
    kind: 'PriorityClass',
  },
];

function webhooks(
  kind: 'ValidatingWebhookConfiguration' | 'MutatingWebhookConfiguration',
): PointingType {
  return {
    ...ADMISSION,
    resource: `${kind.toLowerCase()}s`,
    kind,
    points: (item) =>
      arrayAt(item, 'webhooks').flatMap((webhook, index) =>
        pointed(
          at(webhook, 'clientConfig', 'service'),
          `webhooks[${index}].clientConfig.service`,
        ).map((point) => ({
          ...point,
          breaksOthers: (stringAt(webhook, 'failurePolicy') ?? 'Fail') === 'Fail',
        })),
      ),
  };
}

function pointed(value: Json | undefined, field: string): Pointed[] {
  const namespace = stringAt(value, 'namespace');
  const name = stringAt(value, 'name');
  if (namespace === undefined) return [];
  return [{ namespace, field: name === undefined ? field : `${field} (${namespace}/${name})` }];
}

function breaking(points: Pointed[]): Pointed[] {
  return points.map((point) => ({ ...point, breaksOthers: true }));
}

/** Names of accounts and groups: apiserver pkg/authentication/serviceaccount/util.go. */
function placeOfSubject(subject: Json): string | undefined {
  if (stringAt(subject, 'kind') === 'ServiceAccount') return stringAt(subject, 'namespace');
  const name = stringAt(subject, 'name') ?? '';
  return /^system:serviceaccounts?:([^:]+)/.exec(name)?.[1];
}

const MANY = 20_000;
/** Reports are for reading. */
const MAX_POINTERS = 500;

/**
 * Everything cluster-scoped that points into these namespaces, of a constant number of types: one list each. What
 * points elsewhere is forgotten while it is read.
 */
export async function readPointers(
  namespaces: readonly { name: string; uid: string }[],
  { api, signal }: { api: KubernetesApi; signal: AbortSignal },
): Promise<{ pointers: Pointer[]; unread: Unread[] }> {
  const names = new Set(namespaces.map(({ name }) => name));
  const owners = new Map(namespaces.map(({ name, uid }) => [uid, name]));
  const pointers: Pointer[] = [];
  const attachments: { name: string; volume: string; attacher: string }[] = [];
  const unread: Unread[] = [];
  const reconcilers = new Reconcilers();
  const list = async (
    type: Pick<PointingType, 'group' | 'version' | 'resource' | 'kind' | 'isOptional'>,
    onItem: (item: JsonObject) => void,
    metadataOnly: boolean,
  ): Promise<void> => {
    const end = await api.list(collectionPath(type), {
      signal,
      metadataOnly,
      maxItems: MANY,
      onItem,
    });
    const what = `${type.kind}s that may point into a namespace that is gone`;
    if (!end.ok) {
      if (type.isOptional && end.failure.kind === 'not-found') return;
      const reason = end.failure.message;
      unread.push({ source: 'pointers', what, reason, ...missingRight(end.failure, type, 'list') });
    } else if (!end.value.complete) {
      unread.push({ source: 'pointers', what, reason: `only the first ${MANY} are read` });
    }
  };
  await Promise.all([
    ...POINTING_TYPES.map((type) =>
      list(
        type,
        (item) => {
          reconcilers.add(type.kind, item);
          const found = [...(type.points?.(item) ?? []), ...byMetadata(item, owners)];
          const here = new Map(
            found.filter(({ namespace }) => names.has(namespace)).map((p) => [p.namespace, p]),
          );
          for (const { namespace, field, breaksOthers = false } of here.values()) {
            if (pointers.length >= MAX_POINTERS) return;
            pointers.push({
              apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
              kind: type.kind,
              name: stringAt(item, 'metadata', 'name') ?? '',
              namespace,
              field,
              state: type.state?.(item) ?? '',
              breaksOthers,
            });
          }
        },
        type.points === undefined,
      ),
    ),
    list(
      ATTACHMENTS,
      (item) =>
        attachments.push({
          name: stringAt(item, 'metadata', 'name') ?? '',
          volume: stringAt(item, 'spec', 'source', 'persistentVolumeName') ?? '',
          attacher: stringAt(item, 'spec', 'attacher') ?? '',
        }),
      false,
    ),
  ]);
  const volumes = new Map(
    pointers.flatMap((one) => (one.kind === 'PersistentVolume' ? [[one.name, one]] : [])),
  );
  for (const { name, volume, attacher } of attachments) {
    const of = volumes.get(volume);
    if (of === undefined) continue;
    pointers.push({
      apiVersion: 'storage.k8s.io/v1',
      kind: ATTACHMENTS.kind,
      name,
      namespace: of.namespace,
      field: `spec.source.persistentVolumeName (${volume})`,
      state: `attacher ${attacher}`,
      breaksOthers: false,
    });
  }
  if (unread.length === 0) pointers.push(...reconcilers.left(names));
  if (pointers.length >= MAX_POINTERS) {
    const reason = `only the first ${MAX_POINTERS} are listed`;
    unread.push({ source: 'pointers', what: 'more that stayed behind', reason });
  }
  return { pointers, unread };
}

const ATTACHMENTS = {
  group: 'storage.k8s.io',
  version: 'v1',
  resource: 'volumeattachments',
  kind: 'VolumeAttachment',
};

const RELEASE = 'meta.helm.sh/release-namespace';

/** Of one Helm release with what was in it, or owned by the Namespace itself. */
function byMetadata(item: JsonObject, owners: ReadonlyMap<string, string>): Pointed[] {
  const release = stringAt(item, 'metadata', 'annotations', RELEASE);
  const owned = arrayAt(item, 'metadata', 'ownerReferences').flatMap((reference, index) => {
    const namespace = owners.get(stringAt(reference, 'uid') ?? '');
    return namespace === undefined ? [] : [{ namespace, field: `ownerReferences[${index}]` }];
  });
  return [
    ...(release === undefined ? [] : [{ namespace: release, field: `annotation ${RELEASE}` }]),
    ...owned,
  ];
}

/** CRDs and who may write the status or the finalizers of their objects: their controllers, by RBAC. */
class Reconcilers {
  private readonly definitions: string[] = [];
  /** Names of CRDs by ClusterRole. */
  private readonly roles = new Map<string, string[]>();
  private readonly bindings: { role: string; places: (string | undefined)[] }[] = [];

  add(kind: string, item: JsonObject): void {
    const name = stringAt(item, 'metadata', 'name') ?? '';
    if (kind === 'CustomResourceDefinition') this.definitions.push(name);
    if (kind === 'ClusterRole') {
      const types = arrayAt(item, 'rules').flatMap((rule) =>
        stringsAt(rule, 'verbs').some((verb) => ['update', 'patch', '*'].includes(verb))
          ? stringsAt(rule, 'resources')
              .flatMap((resource) => /^(.+)\/(?:status|finalizers)$/.exec(resource)?.[1] ?? [])
              .flatMap((type) => stringsAt(rule, 'apiGroups').map((group) => `${type}.${group}`))
          : [],
      );
      if (types.length > 0) this.roles.set(name, types);
    }
    if (kind === 'ClusterRoleBinding') {
      const role = stringAt(item, 'roleRef', 'name') ?? '';
      this.bindings.push({ role, places: arrayAt(item, 'subjects').map(placeOfSubject) });
    }
  }

  /** CRDs whose only controllers ran as accounts of one of these namespaces. */
  left(namespaces: ReadonlySet<string>): Pointer[] {
    const byType = new Map<string, { role: string; place: string | undefined }[]>();
    for (const { role, places } of this.bindings) {
      for (const type of this.roles.get(role) ?? []) {
        const known = byType.get(type) ?? [];
        byType.set(type, [...known, ...places.map((place) => ({ role, place }))]);
      }
    }
    return this.definitions.flatMap((name) => {
      const holders = byType.get(name) ?? [];
      const [first] = holders;
      const namespace = first?.place;
      const isOnly = holders.every(({ place }) => place === namespace);
      if (first === undefined || namespace === undefined || !isOnly) return [];
      if (!namespaces.has(namespace)) return [];
      return [
        {
          apiVersion: 'apiextensions.k8s.io/v1',
          kind: 'CustomResourceDefinition',
          name,
          namespace,
          field: `ClusterRole ${first.role}, which lets only accounts of it write the status of the type`,
          state: '',
          breaksOthers: false,
        },
      ];
    });
  }
}
