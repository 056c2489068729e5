import type { JsonObject } from '../../../src/base/json.ts';
import { customObject, customType, deployment, pluralOf, serviceAccount } from '../objects.ts';
import type { World } from '../world.ts';

/** An operator as charts install it: type, ServiceAccount, rights, Deployment. */
export interface Operator {
  /** API group of its type, and domain of its finalizer. */
  group: string;
  kind: string;
  /** Where its workload lives. */
  namespace: string;
  name: string;
  finalizer: string;
}

export interface OperatorOptions {
  group?: string;
  kind?: string;
  name?: string;
  /** Unless given, the namespace under test. */
  namespace?: string;
  replicas?: number;
  /** Rights by a Role in its namespace, or by a ClusterRole, which outlives the namespace. */
  scope?: 'namespace' | 'cluster';
  /** What it may do with its own objects. */
  verbs?: readonly string[];
}

const FULL = ['get', 'list', 'watch', 'update', 'patch'];

export function operatorOf(world: World, options: OperatorOptions = {}): Operator {
  const group = world.domain(options.group ?? 'example.com');
  const kind = options.kind ?? 'Widget';
  return {
    group,
    kind,
    namespace: options.namespace ?? world.namespace,
    name: options.name ?? `${kind.toLowerCase()}-operator`,
    finalizer: `${pluralOf(kind)}.${group}/cleanup`,
  };
}

/** Creates all of it; the namespace must exist. */
export async function install(world: World, options: OperatorOptions = {}): Promise<Operator> {
  const operator = operatorOf(world, options);
  const { group, kind, namespace, name } = operator;
  await world.createType(
    customType({
      group,
      kind,
      metadata: { labels: { 'app.kubernetes.io/part-of': name } },
    }),
  );
  await world.create(serviceAccount(namespace, name));
  await world.createAll(rights(world, operator, options));
  await world.create(
    deployment(namespace, name, {
      replicas: options.replicas ?? 1,
      serviceAccountName: name,
      labels: { 'app.kubernetes.io/name': name, 'app.kubernetes.io/managed-by': 'Helm' },
    }),
    { fieldManager: 'helm' },
  );
  return operator;
}

/** An object of the operator's type with its finalizer, written by the operator itself. */
export async function createGuarded(
  world: World,
  operator: Operator,
  name: string,
  namespace = world.namespace,
): Promise<void> {
  const { group, kind, finalizer } = operator;
  const object = customObject(`${group}/v1`, kind, namespace, name);
  await world.create(object);
  await world.client.patch(
    { apiVersion: `${group}/v1`, kind, namespace, name },
    { metadata: { finalizers: [finalizer] } },
    { fieldManager: operator.name },
  );
}

function rights(world: World, operator: Operator, options: OperatorOptions): JsonObject[] {
  const { group, kind, namespace, name } = operator;
  const cluster = options.scope === 'cluster';
  const api = 'rbac.authorization.k8s.io';
  const plural = pluralOf(kind);
  const rules = [
    { apiGroups: [group], resources: [plural], verbs: [...(options.verbs ?? FULL)] },
    {
      apiGroups: [group],
      resources: [`${plural}/status`, `${plural}/finalizers`],
      verbs: ['update', 'patch'],
    },
    { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['*'] },
  ];
  const metadata = cluster ? { name: world.name(name) } : { namespace, name };
  const kinds = cluster ? ['ClusterRole', 'ClusterRoleBinding'] : ['Role', 'RoleBinding'];
  const apiVersion = `${api}/v1`;
  return [
    { apiVersion, kind: kinds[0] ?? '', metadata, rules },
    {
      apiVersion,
      kind: kinds[1] ?? '',
      metadata,
      roleRef: { apiGroup: api, kind: kinds[0] ?? '', name: metadata.name },
      subjects: [{ kind: 'ServiceAccount', namespace, name }],
    },
  ];
}
