import { customObject, customType } from '../objects.ts';
import type { Expectation, Scenario } from '../scenario.ts';
import { readyPods } from '../servers/operator-process.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ref } from './links.ts';
import {
  ADMIN,
  createGuarded,
  NAMELESS,
  type Operator,
  type OperatorOptions,
  operatorRules,
  READ,
  rule,
  workloadRef,
} from './operator.ts';
import {
  advisesNot,
  asleepOrUnknown,
  guardedRef,
  heldBy,
  NOBODY_IS_MISSING,
  owner,
  RIGHTS,
  release,
  releaseGuarded,
  type Step,
  situation,
  writesStatus,
} from './situation.ts';
import { createEvent, createOwnLease, helm } from './traces.ts';

/** One source points to somebody, and another one says that it is not this one, or that it may be others as well. */

const groupOf = (world: World): string => world.domain('example.com');
const WIDGETS = (world: World) => operatorRules({ group: groupOf(world), kind: 'Widget' });

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

export const contradicted = [...traces, ...names, ...duties];
