import type { JsonObject } from '../../src/base/json.ts';
import type { Ref } from './client.ts';

/** The objects that scenarios are made of, as short as the API server accepts them. */

export interface Common extends JsonObject {
  finalizers?: string[];
  labels?: JsonObject;
  annotations?: JsonObject;
}

export function configMap(
  namespace: string,
  name: string,
  metadata: Common = {},
  data: JsonObject = {},
): JsonObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...metadata, namespace, name }, data };
}

export function secret(namespace: string, name: string, metadata: Common = {}): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...metadata, namespace, name },
    stringData: { password: 'not-a-secret' },
  };
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
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, namespace, name },
    spec: {
      ...podSpec(),
      ...(nodeName === undefined ? {} : { nodeName }),
      ...(graceSeconds === undefined ? {} : { terminationGracePeriodSeconds: graceSeconds }),
      volumes: claims.map((claimName) => ({
        name: claimName,
        persistentVolumeClaim: { claimName },
      })),
    },
  };
}

/** Pods that no real scheduler takes and no taint evicts. */
export const NO_SCHEDULER = 'none-of-the-cluster';

export function podSpec(serviceAccountName = 'default'): JsonObject {
  return {
    serviceAccountName,
    schedulerName: NO_SCHEDULER,
    tolerations: [{ operator: 'Exists' }],
    containers: [{ name: 'main', image: 'example.com/none:1', resources: {} }],
  };
}

export type WorkloadKind =
  | 'Deployment'
  | 'StatefulSet'
  | 'DaemonSet'
  | 'ReplicaSet'
  | 'Pod'
  | 'Job'
  | 'CronJob';

export interface WorkloadOptions {
  /** 0: a DaemonSet has a selector that no node meets, a Job or CronJob is suspended. */
  replicas?: number;
  serviceAccountName?: string;
  labels?: JsonObject;
  annotations?: JsonObject;
  /** Of its pods, where they are to run really. */
  podSpec?: JsonObject;
  /** The one node of a DaemonSet. */
  node?: string;
}

export function deployment(
  namespace: string,
  name: string,
  options: WorkloadOptions = {},
): JsonObject {
  return workload('Deployment', namespace, name, options);
}

/** Any workload; its pods have the label `app: <name>`. */
export function workload(
  kind: WorkloadKind,
  namespace: string,
  name: string,
  options: WorkloadOptions = {},
): JsonObject {
  const { replicas = 1, annotations = {} } = options;
  const labels = { app: name };
  const metadata = { namespace, name, labels: { ...labels, ...options.labels }, annotations };
  const spec = options.podSpec ?? podSpec(options.serviceAccountName);
  const selector = { matchLabels: labels };
  const template = { metadata: { labels }, spec };
  const once = { metadata: { labels }, spec: { ...spec, restartPolicy: 'Never' } };
  const node = replicas === 0 ? 'none' : (options.node ?? 'none');
  const nodeSelector = { 'kubernetes.io/hostname': node };
  const specs: Record<WorkloadKind, JsonObject> = {
    Deployment: { replicas, selector, template },
    StatefulSet: { replicas, selector, template, serviceName: name },
    ReplicaSet: { replicas, selector, template },
    DaemonSet: { selector, template: { ...template, spec: { ...spec, nodeSelector } } },
    Pod: spec,
    Job: { suspend: replicas === 0, template: once },
    CronJob: {
      schedule: '* * * * *',
      suspend: replicas === 0,
      jobTemplate: { spec: { template: once } },
    },
  };
  return { apiVersion: workloadApi(kind), kind, metadata, spec: specs[kind] };
}

export function workloadApi(kind: WorkloadKind): string {
  if (kind === 'Pod') return 'v1';
  return kind === 'Job' || kind === 'CronJob' ? 'batch/v1' : 'apps/v1';
}

export function volumeClaim(
  namespace: string,
  name: string,
  spec: JsonObject = {},
  metadata: Common = {},
): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...metadata, namespace, name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: '',
      ...spec,
    },
  };
}

/** Retained, and for this claim. */
export function volume(
  name: string,
  claimRef: JsonObject,
  spec: JsonObject = {},
  metadata: Common = {},
): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { ...metadata, name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      csi: { driver: 'csi.example.com', volumeHandle: name },
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: '',
      claimRef,
      ...spec,
    },
  };
}

export function service(namespace: string, name: string, extra: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name },
    spec: { ports: [{ port: 443, targetPort: 443, protocol: 'TCP' }], ...extra },
  };
}

export function serviceAccount(namespace: string, name: string): JsonObject {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name } };
}

export const RBAC = 'rbac.authorization.k8s.io';

/** As the subject of a binding. */
export function accountSubject(namespace: string, name: string): JsonObject {
  return { kind: 'ServiceAccount', namespace, name };
}

/** A Role, or without a namespace a ClusterRole, and its binding; or a binding to the ClusterRole of this name. */
export function grant(
  metadata: { namespace?: string; name: string } & JsonObject,
  subjects: JsonObject[],
  rules: readonly JsonObject[] | string,
): JsonObject[] {
  const apiVersion = `${RBAC}/v1`;
  const kind = metadata.namespace === undefined ? 'ClusterRole' : 'Role';
  const isThere = typeof rules === 'string';
  const roleRef = isThere
    ? { apiGroup: RBAC, kind: 'ClusterRole', name: rules }
    : { apiGroup: RBAC, kind, name: metadata.name };
  const binding = { apiVersion, kind: `${kind}Binding`, metadata, roleRef, subjects };
  return isThere ? [binding] : [{ apiVersion, kind, metadata, rules: [...rules] }, binding];
}

export interface TypeOptions {
  group: string;
  kind: string;
  /** The last one is the storage version. */
  versions?: readonly string[];
  conversion?: JsonObject;
  scope?: 'Namespaced' | 'Cluster';
  metadata?: Common;
}

/** A CustomResourceDefinition that accepts any fields. */
export function customType(options: TypeOptions): JsonObject {
  const {
    group,
    kind,
    versions = ['v1'],
    conversion,
    scope = 'Namespaced',
    metadata = {},
  } = options;
  const plural = pluralOf(kind);
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { ...metadata, name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: versions.map((name, index) => ({
        name,
        served: true,
        storage: index === versions.length - 1,
        schema: { openAPIV3Schema: ANY_OBJECT },
        subresources: { status: {} },
      })),
      ...(conversion === undefined ? {} : { conversion }),
    },
  };
}

const ANY_OBJECT = {
  type: 'object',
  properties: {
    spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
};

export function customObject(
  apiVersion: string,
  kind: string,
  namespace: string,
  name: string,
  metadata: Common = {},
): JsonObject {
  return { apiVersion, kind, metadata: { ...metadata, namespace, name }, spec: {} };
}

export function typeRef(group: string, kind: string): Ref {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    name: `${pluralOf(kind)}.${group}`,
  };
}

/** An APIService whose backend is this Service. */
export function apiService(
  group: string,
  version: string,
  backend: { namespace: string; name: string; port?: number },
  extra: JsonObject = {},
): JsonObject {
  return {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: `${version}.${group}` },
    spec: {
      group,
      version,
      groupPriorityMinimum: 1_000,
      versionPriority: 15,
      insecureSkipTLSVerify: true,
      service: backend,
      ...extra,
    },
  };
}

export function apiServiceRef(group: string, version: string): Ref {
  return {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    name: `${version}.${group}`,
  };
}

export function pluralOf(kind: string): string {
  return `${kind.toLowerCase()}s`;
}
