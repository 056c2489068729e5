import { configMap, RBAC } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import {
  clusterName,
  createGuarded,
  FULL,
  install,
  type Operator,
  type OperatorOptions,
  operatorOf,
  rule,
  start,
  workloadRef,
} from './operator.ts';
import {
  asleepOrUnknown,
  either,
  GUARDED,
  missingOrUnknown,
  nobodyKnown,
  owner,
  releaseGuarded,
  type Step,
  settledByFinalizer,
  situation,
  writesStatus,
} from './situation.ts';
import { serveOwnWebhook } from './traces.ts';

/** Ways in which well-known operators name things, run and share, without being one of them. */

/** What an operator of operators installs: owned by an object of its own, with names that it made up. */
const ownedBySomething: Step = async (world, operator) => {
  const parent = configMap(operator.namespace, 'revision');
  const { metadata } = await world.client.create(parent);
  const { name, uid = '' } = metadata;
  const controller = { apiVersion: 'v1', kind: 'ConfigMap', name, uid: `${uid}`, controller: true };
  await world.client.patch(workloadRef(operator), {
    metadata: { ownerReferences: [controller] },
  });
};

/** A provider that a package manager installed; its finalizer has the domain of the framework. */
const provider: OperatorOptions = {
  name: 'provider-store-0a1b2c3d4e5f',
  namespace: 'packages',
  manager: 'provider-store',
  container: { name: 'package-runtime' },
  finalizer: 'finalizer.managedresource.example.net',
};

const packaged: Scenario[] = [
  situation({
    id: 'shape-packaged',
    title: 'a package manager made the Deployment of the operator, which has 0 replicas',
    operator: { ...provider, replicas: 0 },
    afterwards: ownedBySomething,
    owner: 'owner-scaled-to-zero',
  }),
];

/** A controller and its webhook as one account, in names that say nothing; rules for all of a group. */
const part = (name: string, more: OperatorOptions = {}) => {
  return (world: World): OperatorOptions => ({
    name,
    account: 'controller',
    namespace: 'serving',
    manager: 'controller',
    container: { name },
    rules: [
      rule(
        world.domain('example.com'),
        ['*', '*/status', '*/finalizers'],
        [...FULL, 'create', 'delete'],
      ),
    ],
    ...more,
  });
};

const sharedAccount: Scenario[] = [
  situation({
    id: 'shape-sibling-webhook',
    title: 'the controller has 0 replicas; its webhook, with the same account, runs',
    operator: (world) => ({
      ...part('controller', { replicas: 0 })(world),
      finalizer: `widgets.${world.domain('example.com')}`,
    }),
    bystanders: (world) => [{ ...part('webhook')(world), rules: [] }],
    afterwards: (world, operator) => serveOwnWebhook(world, { ...operator, name: 'webhook' }),
    expect: either(
      (_, operator) => owner(operator, 'owner-scaled-to-zero', { certainty: ['likely'] }),
      nobodyKnown,
    ),
  }),
];

/** A second product signs what the first one makes, with a finalizer below the first one's domain. */
const seals =
  (more: OperatorOptions = {}) =>
  (world: World): OperatorOptions => ({
    name: 'acme-seals-controller',
    namespace: 'seals',
    manager: 'controller',
    container: { name: 'controller' },
    finalizer: `seals.${world.domain('example.com')}`,
    ...more,
  });

const reportsStatus: Step = writesStatus({ phase: 'Done' }, 'widget-operator');

const removed: Step = async (world, operator) => {
  await world.client.delete(workloadRef(operator), { propagationPolicy: 'Foreground' });
  await world.gone(workloadRef(operator));
  for (const kind of ['ClusterRoleBinding', 'ClusterRole']) {
    await world.client.delete({ apiVersion: `${RBAC}/v1`, kind, name: clusterName(operator) });
  }
};

const secondProducts: Scenario[] = [
  situation({
    id: 'shape-second-product',
    title:
      'a second product has 0 replicas; its finalizer ends in the group of the first, which runs',
    operator: seals({ replicas: 0 }),
    bystanders: [{ name: 'widget-operator' }],
    afterwards: reportsStatus,
    expect: asleepOrUnknown,
  }),
  situation({
    id: 'shape-second-product-gone',
    title: 'the same, and the second product is uninstalled',
    operator: seals(),
    bystanders: [{ name: 'widget-operator' }],
    afterwards: async (world, operator) => {
      await reportsStatus(world, operator);
      await removed(world, operator);
    },
    expect: missingOrUnknown,
  }),
];

/** One program with many commands, as cluster-admin: it writes as `keeper-server`. */
const commands: Scenario[] = [
  situation({
    id: 'shape-subcommand',
    title: 'a cluster-admin that writes by the names of its program and its command has 0 replicas',
    operator: {
      name: 'keeper',
      namespace: 'keeper',
      manager: 'keeper-server',
      role: 'cluster-admin',
      replicas: 0,
      container: { name: 'main', command: ['/keeper'], args: ['server', '--log-level=info'] },
    },
    bystanders: [{ name: 'delivery', namespace: 'delivery', role: 'cluster-admin' }],
    expect: asleepOrUnknown,
  }),
];

/**
 * A cluster operator, elsewhere, runs a second operator in the namespace itself. To give that one its rights it
 * has to have them, too.
 */
const entity = (world: World): Operator =>
  operatorOf(world, { name: 'db-entity-operator', manager: 'acme-entity-operator' });

const inside: Scenario = {
  id: 'shape-inside',
  title: 'the operator was in the namespace; the one that made it runs, with the same rights',
  namespace: 'preview-shape-inside',
  setUp: async (world) => {
    const namespace = world.name('acme-operators');
    await world.createNamespace();
    await world.createNamespace(namespace);
    const made = await install(world, {
      name: 'db-entity-operator',
      manager: 'acme-entity-operator',
    });
    await start(world, made, { hangs: true });
    const maker = await install(world, {
      name: 'widget-cluster-operator',
      namespace,
      scope: 'cluster',
      type: false,
    });
    await start(world, maker, { alsoAfter: [], cleanUp: () => 'not mine', tells: false });
    await createGuarded(world, made, GUARDED);
  },
  settle: settledByFinalizer,
  expect: (world) => {
    return {
      outcome: 'stuck',
      ...missingOrUnknown(world, entity(world)),
      never: [{ kind: 'Deployment', name: 'widget-cluster-operator' }],
    };
  },
  cure: (world) => releaseGuarded(world, entity(world)),
};

export const shapes: readonly Scenario[] = [
  ...packaged,
  ...sharedAccount,
  ...secondProducts,
  ...commands,
  inside,
];
