import { customObject, customType, RBAC } from '../objects.ts';
import type { Expectation, Scenario } from '../scenario.ts';
import { readyPods } from '../servers/operator-process.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ref } from './links.ts';
import {
  ADMIN,
  createGuarded,
  FULL,
  NAMELESS,
  type Operator,
  type OperatorOptions,
  operatorRules,
  READ,
  rule,
  uninstall,
  workloadRef,
} from './operator.ts';
import { settledWithPod } from './pods.ts';
import {
  advisesNot,
  asleepOrUnknown,
  either,
  guardedRef,
  HANGS,
  heldBy,
  KEPT,
  keeper,
  missingOrUnknown,
  NOBODY_IS_MISSING,
  nobodyKnown,
  owner,
  RIGHTS,
  release,
  releaseGuarded,
  type Situation,
  type Step,
  situation,
  writesStatus,
} from './situation.ts';
import { createEvent, createLease, createOwnLease, helm, serveOwnWebhook } from './traces.ts';

/** One source points to somebody, and another one says that it is not this one, or that it may be others as well. */

const groupOf = (world: World): string => world.domain('example.com');
const WIDGETS = (world: World) => operatorRules({ group: groupOf(world), kind: 'Widget' });

/** It watches the type and writes a condition, as its rights let it: that is all that it is for. */
const reporter = (world: World): OperatorOptions => ({
  name: 'widget-reporter',
  namespace: 'tools',
  rules: [
    rule(groupOf(world), ['widgets'], READ),
    rule(groupOf(world), ['widgets/status'], ['get', 'patch']),
  ],
});
const reports = writesStatus({ phase: 'Ready' }, 'widget-reporter');

const reportsAfterwards: Pick<Situation, 'afterwards' | 'expect' | 'cure'> = {
  afterwards: async (world, operator) => {
    await reports(world, operator);
    await uninstall(world, operator);
  },
  expect: missingOrUnknown,
  cure: releaseGuarded,
};

const reporters: Scenario[] = [
  situation({
    ...reportsAfterwards,
    id: 'reporter',
    title: 'somebody who may only report in the status runs; the operator is uninstalled',
    bystanders: (world) => [reporter(world)],
  }),
  situation({
    ...reportsAfterwards,
    id: 'reporter-by-hand',
    title: 'the same, and it was a person who has set the finalizer',
    operator: { manager: 'kubectl-edit' },
    bystanders: (world) => [reporter(world)],
  }),
  situation({
    ...reportsAfterwards,
    id: 'reporter-able',
    title:
      'who reports in the status may change everything of the type; the operator is uninstalled',
    bystanders: [{ name: 'widget-reporter', namespace: 'tools' }],
  }),
  situation({
    id: 'reporter-nameless',
    title: 'the same; the nameless operator has 0 replicas, and its container another name',
    operator: { manager: 'manager', container: { name: 'operator' }, name: 'brain', replicas: 0 },
    bystanders: (world) => [{ ...reporter(world), rules: WIDGETS(world) }],
    afterwards: reports,
    expect: asleepOrUnknown,
  }),
  situation({
    id: 'renamed',
    title: 'the operator has another name since it wrote the finalizer, and hangs',
    operator: { name: 'widgets-controller', manager: 'acme-widgetd' },
    behaviour: HANGS,
    afterwards: writesStatus({ phase: 'Ready' }, 'widgets-controller'),
    expect: either(
      (_, operator) => owner(operator, 'owner-running', { certainty: ['likely'] }),
      nobodyKnown,
    ),
  }),
];

const OURS = { ...NAMELESS, name: 'brain', replicas: 0 };

/** May patch the objects, as who annotates or scales them; the rules of an operator are others. */
const patcher =
  (name: string) =>
  (world: World): OperatorOptions[] => [
    { name, namespace: 'tools', rules: [rule(groupOf(world), ['widgets'], [...READ, 'patch'])] },
  ];

const podOf = async (world: World, operator: Operator, name: string): Promise<string> => {
  const [pod] = await readyPods(world.client, {
    ...operator,
    namespace: world.name('tools'),
    name,
  });
  return pod?.metadata.name ?? '';
};

const traces: Scenario[] = [
  situation({
    id: 'auditor',
    title: 'an auditor of the type reports Events about the object; the operator has 0 replicas',
    identity: 'teardown-gate', // it was there before the deletion, which Events do not survive
    delete: false,
    inputs: { delete: 'true' },
    operator: OURS,
    bystanders: patcher('widget-auditor'),
    afterwards: async (world, operator) => {
      const component = 'widget-auditor';
      await createEvent(world, {
        about: guardedRef(world, operator),
        component,
        instance: await podOf(world, operator, component),
        note: 'has no label team',
      });
    },
    expect: (world, operator) => ({
      ...asleepOrUnknown(world, operator),
      mutations: [`delete namespaces/${world.namespace}`],
    }),
  }),
  situation({
    id: 'console-called-manager',
    title:
      'a console has rules for the type and the container name of the operator, which is asleep',
    operator: { ...ADMIN, ...OURS, namespace: 'platform', type: { metadata: {} } },
    bystanders: (world) => [
      { ...NAMELESS, name: 'console', namespace: 'tools', rules: WIDGETS(world) },
    ],
    afterwards: writesStatus({ phase: 'Ready' }, 'manager'),
    expect: asleepOrUnknown,
  }),
  situation({
    id: 'scaler-leads',
    title: 'a scaler of the type leads by a Lease in its group; the operator has 0 replicas',
    operator: OURS,
    bystanders: patcher('scaler'),
    afterwards: async (world, operator) =>
      createLease(world, {
        namespace: world.name('tools'),
        name: `scaler.${operator.group}`,
        holder: `${await podOf(world, operator, 'scaler')}_9d41c0`,
      }),
    expect: asleepOrUnknown,
  }),
  situation({
    id: 'release-of-a-console',
    title: 'the type came with the Helm release of a console; the operator has 0 replicas',
    operator: (world) => ({
      ...OURS,
      type: { metadata: { annotations: helm('console', world.name('tools')) } },
    }),
    bystanders: (world) =>
      patcher('console')(world).map((console) => ({
        ...console,
        metadata: { annotations: helm('console', world.name('tools')) },
      })),
    expect: asleepOrUnknown,
  }),
  situation({
    id: 'hook-beside',
    title: 'a Deployment beside the operator with rights of its own serves the webhook of the type',
    operator: { ...NAMELESS, replicas: 0 },
    bystanders: (world) => [{ ...NAMELESS, name: 'widget-webhook', rules: WIDGETS(world) }],
    afterwards: (world, operator) =>
      serveOwnWebhook(world, { ...operator, name: 'widget-webhook' }),
    expect: asleepOrUnknown,
  }),
  situation({
    id: 'restored-in-place',
    title: 'a backup tool has put the finalizer back on an object that was there',
    own: true,
    operator: { manager: 'velero', replicas: 0 },
    bystanders: [{ ...ADMIN, name: 'velero', namespace: 'velero' }],
    expect: asleepOrUnknown,
  }),
];

const names: Scenario[] = [
  situation({
    id: 'called-after-type',
    title: 'somebody with rules as an operator is called after the type; the operator is not',
    operator: (world) => ({
      name: 'brain',
      manager: 'Go-http-client',
      replicas: 0,
      rules: [rule(groupOf(world), ['*'], ['*'])],
      type: {},
    }),
    bystanders: (world) => [{ name: 'widget-checker', namespace: 'tools', rules: WIDGETS(world) }],
    expect: asleepOrUnknown,
  }),
  situation({
    id: 'may-do-all-of-its-group',
    title:
      'the operator, with 0 replicas, may do everything in its group; pipelines may edit the type',
    operator: (world) => ({
      manager: 'Go-http-client',
      replicas: 0,
      rules: [rule(groupOf(world), ['*'], ['*'])],
    }),
    before: async (world) => {
      const labels = { 'tests.example.com/aggregate-to': world.name('pipelines') };
      const role = { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole' };
      await world.create({
        ...role,
        metadata: { name: world.name('widgets-edit'), labels },
        rules: [rule(groupOf(world), ['widgets'], [...FULL, 'create', 'delete'])],
      });
      await world.create({
        ...role,
        metadata: { name: world.name('pipelines') },
        aggregationRule: { clusterRoleSelectors: [{ matchLabels: labels }] },
        rules: [],
      });
    },
    bystanders: (world) => [{ name: 'runner', namespace: 'ci', role: world.name('pipelines') }],
    owner: { code: 'owner-scaled-to-zero', certainty: ['likely'] },
  }),
  situation({
    id: 'container-called-main',
    title: 'the container of somebody with the same rights is called as what wrote the finalizer',
    operator: { ...OURS, manager: 'main', container: { name: 'app' }, type: {} },
    bystanders: (world) => [
      { name: 'scaler', namespace: 'tools', container: { name: 'main' }, rules: WIDGETS(world) },
    ],
    expect: asleepOrUnknown,
  }),
  situation({
    ...KEPT,
    id: 'controllers-of-pods',
    title: 'the container of another controller of pods is called as what wrote the finalizer',
    settle: settledWithPod,
    operator: (world) => ({
      ...keeper(world),
      manager: 'controller',
      container: { name: 'drainer' },
      replicas: 0,
    }),
    bystanders: [
      {
        name: 'autoscaler',
        namespace: 'autoscaler',
        container: { name: 'controller' },
        rules: [rule('', ['pods'], FULL)],
      },
    ],
    expect: asleepOrUnknown,
  }),
];

const COMPANY = 'acme.example';

/** Of a company whose operators share a group; only what installs the other one labels its type. */
const vaults = (
  more: OperatorOptions = {},
): Pick<Situation, 'operator' | 'before' | 'bystanders'> => {
  const labels = { 'app.kubernetes.io/part-of': 'cache' };
  const rules = (world: World, resource: string) => [
    rule('', ['configmaps'], FULL),
    rule(world.domain(COMPANY), [resource, `${resource}/status`], FULL),
  ];
  return {
    operator: (world) => ({
      ...NAMELESS,
      group: '',
      ownGroup: false,
      kind: 'ConfigMap',
      type: false,
      name: 'vault',
      namespace: 'vault',
      finalizer: `${world.domain(COMPANY)}/keep`,
      rules: rules(world, 'vaults'),
      ...more,
    }),
    before: async (world) => {
      const group = world.domain(COMPANY);
      await world.createType(customType({ group, kind: 'Vault' }));
      await world.createType(customType({ group, kind: 'Cache', metadata: { labels } }));
    },
    bystanders: (world) => [
      {
        ...NAMELESS,
        name: 'cache',
        namespace: 'cache',
        metadata: { labels },
        rules: rules(world, 'caches'),
      },
    ],
  };
};

const domains: Scenario[] = [
  situation({
    ...vaults({ replicas: 0 }),
    id: 'company-types',
    title: 'two operators of one group; the domain of the finalizer is that group',
    expect: asleepOrUnknown,
  }),
  situation({
    ...vaults(),
    id: 'company-types-gone',
    title: 'the same, and the one that has set the finalizer is uninstalled',
    afterwards: uninstall,
    expect: either(nobodyKnown),
    cure: releaseGuarded,
  }),
  situation({
    id: 'old-group',
    title:
      'the finalizer is of a group before this one; the operator of the type knows nothing of it',
    operator: (world) => ({
      ...NAMELESS,
      name: 'new-widgets',
      finalizer: `${world.domain('old.example.org')}/cleanup`,
    }),
    behaviour: HANGS,
    before: (world) =>
      world.createType(customType({ group: world.domain('old.example.org'), kind: 'Widget' })),
    afterwards: writesStatus({ phase: 'Ready' }, 'new-widgets'),
    expect: (world, operator) => ({
      ...either(
        (_, { finalizer }) => ({ code: 'owner-missing', subject: 'any', finalizer }),
        nobodyKnown,
      )(world, operator),
      never: [{ kind: 'Deployment', name: 'new-widgets' }],
    }),
    cure: releaseGuarded,
  }),
];

/** May watch these types of its group and write their status, and change none. */
const lostRights =
  (...groups: readonly string[]) =>
  (world: World): OperatorOptions => ({
    finalizer: `${groupOf(world)}/cleanup`,
    rules: ['example.com', ...groups].flatMap((group) => [
      rule(world.domain(group), ['widgets'], READ),
      rule(world.domain(group), ['widgets/status'], ['patch']),
    ]),
  });

const SILENT = { tells: false };

const second = (world: World, group: string) =>
  ref(`${world.domain(group)}/v1`, 'Widget', world.namespace, 'second');

/** Of a type of another group that is called alike, held by the same finalizer. */
const guardSecond =
  (group: string, spec = {}): Step =>
  async (world, { finalizer, manager }) => {
    const { apiVersion, kind, name } = second(world, group);
    await world.createType(customType({ group: world.domain(group), kind }));
    await world.create({ ...customObject(apiVersion, kind, world.namespace, name), spec });
    const metadata = { finalizers: [finalizer] };
    await world.client.patch(second(world, group), { metadata }, { fieldManager: manager });
  };

/** Its controller leaves the pods of a Deployment alone that is on its way out. */
const isEnding: Step = async (world, operator) => {
  const metadata = { finalizers: ['hold.example.net/by-hand'] };
  await world.client.patch(workloadRef(operator), { metadata });
  await world.client.delete(workloadRef(operator), { propagationPolicy: 'Background' });
  world.atEnd(() => release(world, workloadRef(operator)).catch(() => undefined)); // gone with its servers
};

const OTHER = 'acme.example';

const bothHeld =
  (code: 'owner-failing' | 'owner-not-acting', ...words: RegExp[]) =>
  (world: World, operator: Operator): Partial<Expectation> => {
    const end = owner(operator, code, { advises: words });
    return {
      chains: [
        [heldBy(world, operator), end],
        [objectFinalizer(second(world, OTHER), operator.finalizer), end],
      ],
    };
  };

const releaseBoth: Step = async (world, operator) => {
  await release(world, second(world, OTHER));
  await releaseGuarded(world, operator);
};

const duties: Scenario[] = [
  situation({
    id: 'ending-lost',
    title: 'the operator has lost its right and is being deleted; its pod runs on',
    operator: lostRights(),
    behaviour: SILENT,
    afterwards: isEnding,
    owner: { code: 'owner-failing', advises: [/Install \S+ \S+ again\. Once/] },
    expect: () => ({ also: advisesNot(/restart/) }),
    cure: releaseGuarded,
    mayChange: () => RIGHTS,
  }),
  situation({
    id: 'ending-leads',
    title:
      'the operator is being deleted; its pod runs on, holds its Lease and has ceased to renew it',
    afterwards: async (world, operator) => {
      await createOwnLease(world, operator, { name: operator.group, silentForSeconds: 300 });
      await isEnding(world, operator);
    },
    owner: { code: 'owner-running', says: [/is being deleted itself/] },
    expect: () => ({ also: advisesNot(/restart/) }),
    cure: releaseGuarded,
    beyondCommands: 'it has to be installed again',
  }),
  situation({
    id: 'lost-for-two-objects',
    title: 'the operator has lost its right; it is granted for the objects that are held',
    operator: lostRights(),
    behaviour: SILENT,
    afterwards: (world, operator) => createGuarded(world, operator, 'second'),
    expect: (world, operator) => {
      const advises = [/--resource-name=db --resource-name=second/];
      const end = owner(operator, 'owner-failing', { advises });
      return { chains: [[{ ...heldBy(world, operator), count: 2 }, end]] };
    },
    cure: async (world, operator) => {
      await release(world, { ...guardedRef(world, operator), name: 'second' });
      await releaseGuarded(world, operator);
    },
    mayChange: () => RIGHTS,
  }),
  situation({
    id: 'lost-for-two-finalizers',
    title: 'the operator has lost its right, and has two finalizers on the object',
    operator: lostRights(),
    behaviour: SILENT,
    afterwards: (world, operator) => {
      const finalizers = [operator.finalizer, `${operator.group}/second`];
      return world.client.patch(
        guardedRef(world, operator),
        { metadata: { finalizers } },
        { fieldManager: operator.manager },
      );
    },
    expect: (world, operator) => {
      const both = { ...operator, finalizer: `${operator.group}/second` };
      return {
        chains: [operator, both].map((one) => [heldBy(world, one), owner(one, 'owner-failing')]),
      };
    },
    cure: releaseGuarded,
    mayChange: () => RIGHTS,
    beyondCommands: 'its stand-in removes one of them only',
  }),
  situation({
    id: 'lost-for-two-types',
    own: true, // where groups have no suffix
    title: 'the operator has lost its right on two types of one name, and has one finalizer',
    operator: lostRights(OTHER),
    behaviour: { ...SILENT, alsoAfter: [{ apiVersion: `${OTHER}/v1`, kind: 'Widget' }] },
    afterwards: guardSecond(OTHER),
    expect: bothHeld(
      'owner-failing',
      /Grant .* widgets\.\S*example\.com/,
      /Grant .* widgets\.\S*acme/,
    ),
    cure: releaseBoth,
    mayChange: () => RIGHTS,
  }),
  situation({
    id: 'two-types-suspended',
    title: 'one operator, one finalizer, two types: an object of each is suspended',
    operator: (world) => ({
      finalizer: `${groupOf(world)}/cleanup`,
      rules: [...WIDGETS(world), ...operatorRules({ group: world.domain(OTHER), kind: 'Widget' })],
    }),
    spec: { suspend: true },
    behaviour: HANGS,
    afterwards: guardSecond(OTHER, { suspend: true }),
    expect: bothHeld('owner-not-acting', /Widget db again/, /Widget second again/),
    cure: releaseBoth,
    beyondCommands: 'its stand-in looks after one of them only',
  }),
  situation({
    id: 'asleep-for-one-type',
    title: 'the operator has 0 replicas, and no right on the second of two types that it holds',
    operator: { replicas: 0 },
    afterwards: guardSecond(OTHER),
    expect: () => ({ chains: 'any', never: [NOBODY_IS_MISSING] }),
    cure: releaseBoth,
    mayChange: (_, operator) => [workloadRef(operator)],
    beyondCommands: 'nobody knows which right it had',
  }),
];

export const contradicted = [...reporters, ...traces, ...names, ...domains, ...duties];
