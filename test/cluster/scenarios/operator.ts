import { isObject, type JsonObject, numberAt, stringAt } from '../../../src/base/json.ts';
import type { KubeObject, Ref } from '../client.ts';
import { apiVersionOf } from '../inventory.ts';
import {
  accountSubject,
  type Common,
  customObject,
  customType,
  grant,
  pluralOf,
  podSpec,
  serviceAccount,
  type TypeOptions,
  type WorkloadKind,
  workload,
  workloadApi,
} from '../objects.ts';
import {
  type OperatorBehaviour,
  type Operator as Process,
  readyPods,
  startOperatorProcess,
} from '../servers/operator-process.ts';
import { runPodsIn } from '../servers/stand-in.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';

/** An operator as charts install it: type, ServiceAccount, rights, workload. */
export interface Operator extends Process {
  workload: WorkloadKind;
  account: string;
}

export interface OperatorOptions {
  group?: string;
  version?: string;
  kind?: string;
  name?: string;
  /** Unless given, the namespace under test. */
  namespace?: string;
  workload?: WorkloadKind;
  replicas?: number;
  account?: string;
  manager?: string;
  finalizer?: string;
  /** Rights by a Role in its namespace, or by a ClusterRole, which outlives the namespace. */
  scope?: 'namespace' | 'cluster';
  /** What it may do with its own objects. */
  verbs?: readonly string[];
  /** All that it may do, in place of what operators may. */
  rules?: readonly JsonObject[];
  /** A ClusterRole that is there already, in place of one of its own. */
  role?: string;
  /** Its type; `false`: installed already, or not at all. */
  type?: false | Partial<TypeOptions>;
  /** Of its workload. */
  metadata?: Pick<Common, 'labels' | 'annotations'>;
  /** Of its container: `name`, `args`, `env`. */
  container?: JsonObject;
  /** Name of a ConfigMap with settings that its container mounts. */
  settings?: string;
}

export const READ = ['get', 'list', 'watch'];
export const FULL = [...READ, 'update', 'patch'];

export const rule = (apiGroup: string, resources: string[], verbs: string[]) => ({
  apiGroups: [apiGroup],
  resources,
  verbs,
});

export function operatorOf(world: World, options: OperatorOptions = {}): Operator {
  const group = options.group ?? 'example.com';
  const kind = options.kind ?? 'Widget';
  const name = options.name ?? `${kind.toLowerCase()}-operator`;
  return {
    group,
    version: options.version ?? 'v1',
    kind,
    namespace: options.namespace ?? world.namespace,
    name,
    workload: options.workload ?? 'Deployment',
    account: options.account ?? name,
    manager: options.manager ?? name,
    finalizer: options.finalizer ?? `${pluralOf(kind)}.${group}/cleanup`,
  };
}

/** Creates all of it; the namespace must exist. */
export async function install(world: World, options: OperatorOptions = {}): Promise<Operator> {
  const operator = operatorOf(world, options);
  const { group, version, kind, namespace, name, account } = operator;
  const { labels, annotations } = options.metadata ?? {};
  if (options.type !== false) {
    const metadata = { labels: { 'app.kubernetes.io/part-of': name } };
    await world.createType(
      customType({ group, kind, versions: [version], metadata, ...options.type }),
    );
  }
  await world.ensure(serviceAccount(namespace, account));
  await world.createAll(rights(operator, options));
  const spec = podSpec(account);
  const [main] = spec['containers'] as [JsonObject];
  await world.create(
    workload(operator.workload, namespace, name, {
      replicas: options.replicas ?? 1,
      labels: { 'app.kubernetes.io/name': name, 'app.kubernetes.io/managed-by': 'Helm', ...labels },
      ...(annotations === undefined ? {} : { annotations }),
      podSpec: {
        ...{ ...spec, ...volumesOf(options) },
        containers: [withMount({ ...main, ...options.container }, options)],
      },
      node: 'node-1',
    }),
    { fieldManager: 'helm' },
  );
  return operator;
}

const MOUNT = { name: 'settings', mountPath: '/etc/operator' };

const withMount = (container: JsonObject, { settings }: OperatorOptions): JsonObject =>
  settings === undefined ? container : { ...container, volumeMounts: [MOUNT] };

const volumesOf = ({ settings }: OperatorOptions): JsonObject =>
  settings === undefined ? {} : { volumes: [{ name: MOUNT.name, configMap: { name: settings } }] };

/** Its pods run, if it has any, and what is in them works as long as they do. */
export async function start(
  world: World,
  operator: Operator,
  behaviour?: OperatorBehaviour,
): Promise<void> {
  await runPods(world, operator);
  await startOperatorProcess(world, operator, behaviour);
}

/** Its pods run, and nothing of what is in them shows. */
export async function runPods(world: World, operator: Operator): Promise<void> {
  await runPodsIn(world, operator.namespace);
  const { client } = world;
  if (isAsleep(await client.get(workloadRef(operator)))) return;
  // A CronJob begins with the minute.
  await waitUntil(
    `${operator.name} to run`,
    async () => (await readyPods(client, operator)).length > 0,
    { timeoutMs: 90_000 },
  );
  const counts = operator.workload === 'Deployment' || operator.workload === 'StatefulSet';
  await client.waitFor(
    workloadRef(operator),
    'counts its pod',
    (found) => !counts || (numberAt(found, 'status', 'readyReplicas') ?? 0) > 0,
  );
}

function isAsleep({ spec }: KubeObject): boolean {
  return (
    numberAt(spec, 'replicas') === 0 ||
    (isObject(spec) && spec['suspend'] === true) ||
    stringAt(spec, 'template', 'spec', 'nodeSelector', 'kubernetes.io/hostname') === 'none'
  );
}

/** An object of the operator's type with its finalizer, written by the operator itself. */
export async function createGuarded(
  world: World,
  operator: Operator,
  name: string,
  namespace = world.namespace,
  spec: JsonObject = {},
): Promise<void> {
  const { kind, finalizer, manager } = operator;
  const apiVersion = apiVersionOf(operator);
  await world.create({ ...customObject(apiVersion, kind, namespace, name), spec });
  await world.client.patch(
    { apiVersion, kind, namespace, name },
    { metadata: { finalizers: [finalizer] } },
    { fieldManager: manager },
  );
}

export function workloadRef(operator: Operator): Ref {
  const { workload: kind, namespace, name } = operator;
  return { apiVersion: workloadApi(kind), kind, namespace, name };
}

export function operatorRules(
  { group, kind }: Pick<Operator, 'group' | 'kind'>,
  verbs: readonly string[] = FULL,
) {
  const plural = pluralOf(kind);
  return [
    { apiGroups: [group], resources: [plural], verbs: [...verbs] },
    {
      apiGroups: [group],
      resources: [`${plural}/status`, `${plural}/finalizers`],
      verbs: ['update', 'patch'],
    },
    { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['*'] },
  ];
}

function rights(operator: Operator, options: OperatorOptions): JsonObject[] {
  const { namespace, name, account } = operator;
  const rules = [...(options.rules ?? operatorRules(operator, options.verbs))];
  const subject = accountSubject(namespace, account);
  const isCluster = options.scope === 'cluster';
  const metadata = isCluster ? { name: clusterName(operator) } : { namespace, name };
  return grant(metadata, [subject], options.role ?? rules);
}

/** Of its ClusterRole and the binding: of two installs each has its own. */
export function clusterName({ namespace, name }: Operator): string {
  return `${namespace}-${name}`;
}
