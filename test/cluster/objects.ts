import type { JsonObject } from '../../src/base/json.ts';
import type { Ref } from './client.ts';

/** The objects that scenarios are made of, as short as the API server accepts them. */

export interface Common extends JsonObject {
  finalizers?: string[];
  labels?: JsonObject;
  annotations?: JsonObject;
}

const object =
  (apiVersion: string, kind: string) =>
  (metadata: { namespace?: string; name: string } & JsonObject, rest: JsonObject): JsonObject => ({
    ...{ apiVersion, kind, metadata },
    ...rest,
  });
const core = (kind: string) => object('v1', kind);

export const configMap = (namespace: string, name: string, metadata: Common = {}): JsonObject =>
  core('ConfigMap')({ ...metadata, namespace, name }, { data: {} });

export const secret = (namespace: string, name: string, metadata: Common = {}): JsonObject =>
  core('Secret')({ ...metadata, namespace, name }, { stringData: { password: 'not-a-secret' } });

export const serviceAccount = (namespace: string, name: string): JsonObject =>
  core('ServiceAccount')({ namespace, name }, {});

export function service(namespace: string, name: string, extra: JsonObject = {}): JsonObject {
  const ports = [{ port: 443, targetPort: 443, protocol: 'TCP' }];
  return core('Service')({ namespace, name }, { spec: { ports, ...extra } });
}

export interface PodOptions {
  metadata?: Common;
  /** Without a node a pod has no grace period: it goes at once unless a finalizer holds it. */
  nodeName?: string;
  graceSeconds?: number;
  claims?: readonly string[];
}

export function pod(namespace: string, name: string, options: PodOptions = {}): JsonObject {
  const { metadata = {}, nodeName, graceSeconds, claims = [] } = options;
  const spec = {
    ...podSpec(),
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(graceSeconds === undefined ? {} : { terminationGracePeriodSeconds: graceSeconds }),
    volumes: claims.map((claimName) => ({
      ...{ name: claimName, persistentVolumeClaim: { claimName } },
    })),
  };
  return core('Pod')({ ...metadata, namespace, name }, { spec });
}

/** Of pods that no real scheduler takes and no taint evicts. */
export function podSpec(serviceAccountName = 'default'): JsonObject {
  return {
    serviceAccountName,
    schedulerName: 'none-of-the-cluster',
    tolerations: [{ operator: 'Exists' }],
    containers: [{ name: 'main', image: 'example.com/none:1', resources: {} }],
  };
}

export interface WorkloadOptions {
  replicas?: number;
  serviceAccountName?: string;
  labels?: JsonObject;
  annotations?: JsonObject;
  /** Of its pods, where they are to run really. */
  podSpec?: JsonObject;
}

export const deployment = (namespace: string, name: string, options: WorkloadOptions = {}) =>
  workload('Deployment', namespace, name, options);

/** Its pods have the label `app: <name>`. */
export function workload(
  kind: 'Deployment' | 'StatefulSet',
  namespace: string,
  name: string,
  options: WorkloadOptions = {},
): JsonObject {
  const { replicas = 1, annotations = {} } = options;
  const labels = { app: name };
  const spec = options.podSpec ?? podSpec(options.serviceAccountName);
  const selected = { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } };
  const serviceName = kind === 'StatefulSet' ? { serviceName: name } : {};
  return object('apps/v1', kind)(
    { namespace, name, labels: { ...labels, ...options.labels }, annotations },
    { spec: { replicas, ...selected, ...serviceName } },
  );
}

const GIBIBYTE = { storage: '1Gi' };
const ONCE = { accessModes: ['ReadWriteOnce'], storageClassName: '' };

export const volumeClaim = (namespace: string, name: string, spec: JsonObject = {}): JsonObject =>
  core('PersistentVolumeClaim')(
    { namespace, name },
    { spec: { ...ONCE, resources: { requests: GIBIBYTE }, ...spec } },
  );

/** Retained, and for this claim. */
export const volume = (name: string, claimRef: JsonObject, spec: JsonObject = {}): JsonObject =>
  core('PersistentVolume')(
    { name },
    {
      spec: {
        ...ONCE,
        capacity: GIBIBYTE,
        csi: { driver: 'csi.example.com', volumeHandle: name },
        persistentVolumeReclaimPolicy: 'Retain',
        claimRef,
        ...spec,
      },
    },
  );

export const RBAC = 'rbac.authorization.k8s.io';

/** As the subject of a binding. */
export const accountSubject = (namespace: string, name: string): JsonObject => ({
  ...{ kind: 'ServiceAccount', namespace, name },
});

/** A Role, or without a namespace a ClusterRole, and its binding; or a binding to the ClusterRole of this name. */
export function grant(
  metadata: { namespace?: string; name: string } & JsonObject,
  subjects: JsonObject[],
  rules: readonly JsonObject[] | string,
): JsonObject[] {
  const kind = metadata.namespace === undefined ? 'ClusterRole' : 'Role';
  const isThere = typeof rules === 'string';
  const roleRef = isThere
    ? { apiGroup: RBAC, kind: 'ClusterRole', name: rules }
    : { apiGroup: RBAC, kind, name: metadata.name };
  const binding = object(`${RBAC}/v1`, `${kind}Binding`)(metadata, { roleRef, subjects });
  return isThere
    ? [binding]
    : [object(`${RBAC}/v1`, kind)(metadata, { rules: [...rules] }), binding];
}

const API_EXTENSIONS = 'apiextensions.k8s.io/v1';

export interface TypeOptions {
  group: string;
  kind: string;
  /** The last one is the storage version. */
  versions?: readonly string[];
  conversion?: JsonObject;
  metadata?: Common;
}

/** A CustomResourceDefinition that accepts any fields. */
export function customType(options: TypeOptions): JsonObject {
  const { group, kind, versions = ['v1'], conversion, metadata = {} } = options;
  const plural = pluralOf(kind);
  const spec = {
    ...{ group, scope: 'Namespaced' },
    names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: versions.map((name, index) => ({
      ...{ name, served: true, storage: index === versions.length - 1 },
      schema: { openAPIV3Schema: { type: 'object', properties: { spec: ANY, status: ANY } } },
      subresources: { status: {} },
    })),
    ...(conversion === undefined ? {} : { conversion }),
  };
  const made = object(API_EXTENSIONS, 'CustomResourceDefinition');
  return made({ ...metadata, name: `${plural}.${group}` }, { spec });
}

const ANY = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

export const customObject = (
  apiVersion: string,
  kind: string,
  namespace: string,
  name: string,
  metadata: Common = {},
): JsonObject => object(apiVersion, kind)({ ...metadata, namespace, name }, { spec: {} });

export const typeRef = (group: string, kind: string): Ref => ({
  ...{ apiVersion: API_EXTENSIONS, kind: 'CustomResourceDefinition' },
  name: `${pluralOf(kind)}.${group}`,
});

/** An APIService whose backend is this Service. */
export function apiService(
  group: string,
  version: string,
  backend: { namespace: string; name: string },
  extra: JsonObject = {},
): JsonObject {
  const { apiVersion, kind, name } = apiServiceRef(group, version);
  const priorities = { groupPriorityMinimum: 1_000, versionPriority: 15 };
  const spec = { group, version, ...priorities, insecureSkipTLSVerify: true, service: backend };
  return object(apiVersion, kind)({ name }, { spec: { ...spec, ...extra } });
}

export const apiServiceRef = (group: string, version: string): Ref => ({
  ...{ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', name: `${version}.${group}` },
});

export function pluralOf(kind: string): string {
  return `${kind.toLowerCase()}s`;
}
