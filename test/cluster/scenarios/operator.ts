import { type JsonObject, numberAt } from '../../../src/base/json.ts';
import type { Ref } from '../client.ts';
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
  workload,
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
  workload: 'Deployment' | 'StatefulSet';
  account: string;
}

export interface OperatorOptions {
  group?: string;
  version?: string;
  kind?: string;
  name?: string;
  /** Unless given, the namespace under test. */
  namespace?: string;
  workload?: Operator['workload'];
  replicas?: number;
  account?: string;
  manager?: string;
  finalizer?: string;
  /** Rights by a Role in its namespace, or by a ClusterRole, which outlives the namespace. */
  scope?: 'namespace' | 'cluster';
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
  const { group = 'example.com', kind = 'Widget', version = 'v1' } = options;
  const { name = `${kind.toLowerCase()}-operator`, namespace = world.namespace } = options;
  const { account = name, manager = name, workload: as = 'Deployment' } = options;
  const { finalizer = `${pluralOf(kind)}.${group}/cleanup` } = options;
  return { group, version, kind, namespace, name, workload: as, account, manager, finalizer };
}

/** Creates all of it; the namespace must exist. */
export async function install(world: World, options: OperatorOptions = {}): Promise<Operator> {
  const operator = operatorOf(world, options);
  const { group, version, kind, namespace, name, account } = operator;
  const { replicas = 1, settings, container, type } = options;
  const { labels, ...annotated } = options.metadata ?? {};
  if (type !== false) {
    const metadata = { labels: { 'app.kubernetes.io/part-of': name } };
    await world.createType(customType({ group, kind, versions: [version], metadata, ...type }));
  }
  await world.ensure(serviceAccount(namespace, account));
  const rules = [...(options.rules ?? operatorRules(operator))];
  // Of two installs each has its own.
  const own = options.scope === 'cluster' ? { name: `${namespace}-${name}` } : { namespace, name };
  await world.createAll(grant(own, [accountSubject(namespace, account)], options.role ?? rules));
  const spec = podSpec(account);
  const [main] = spec['containers'] as [JsonObject];
  const mounts = settings && { volumeMounts: [{ name: 'settings', mountPath: '/etc/operator' }] };
  const volumes = settings && { volumes: [{ name: 'settings', configMap: { name: settings } }] };
  await world.create(
    workload(operator.workload, namespace, name, {
      replicas,
      labels: { 'app.kubernetes.io/name': name, 'app.kubernetes.io/managed-by': 'Helm', ...labels },
      ...annotated,
      podSpec: { ...spec, ...volumes, containers: [{ ...main, ...container, ...mounts }] },
    }),
    { fieldManager: 'helm' },
  );
  return operator;
}

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
  if (numberAt(await client.get(workloadRef(operator)), 'spec', 'replicas') === 0) return;
  await waitUntil(
    `${operator.name} to run`,
    async () => (await readyPods(client, operator)).length > 0,
  );
  await client.waitFor(
    workloadRef(operator),
    'counts its pod',
    (found) => (numberAt(found, 'status', 'readyReplicas') ?? 0) > 0,
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

export function workloadRef({ workload: kind, namespace, name }: Operator): Ref {
  return { apiVersion: 'apps/v1', kind, namespace, name };
}

function operatorRules({ group, kind }: Operator): JsonObject[] {
  const plural = pluralOf(kind);
  return [
    rule(group, [plural], FULL),
    rule(group, [`${plural}/status`, `${plural}/finalizers`], ['update', 'patch']),
    rule('', ['events'], ['create', 'patch']),
    rule('coordination.k8s.io', ['leases'], ['*']),
  ];
}
