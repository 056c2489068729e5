import assert from 'node:assert/strict';
import type { JsonObject } from '../../../src/base/json.ts';
import type { Ref } from '../client.ts';
import { customType, service } from '../objects.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import { containerStatus, unready } from '../servers/stand-in.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ownerMissing, ref, stuck } from './links.ts';
import {
  createGuarded,
  FULL,
  firstPod,
  install,
  NAMELESS,
  type Operator,
  type OperatorOptions,
  READ,
  rule,
  runPods,
  uninstall,
} from './operator.ts';
import { settledWithPod } from './pods.ts';
import {
  either,
  guardedRef,
  HANGS,
  KEPT,
  keeper,
  nobodyKnown,
  settledByFinalizer,
  situation,
  writesStatus,
} from './situation.ts';
import { createLease } from './traces.ts';

/** What a controller was started with, by which Lease it leads, and which other program works beside it. */

/** Some finding, or what it advises, has each of these words. */
const says =
  (...all: string[]): NonNullable<Expectation['also']> =>
  ({ namespace }) => {
    const texts = namespace.findings.flatMap(({ message, remedies }) => [
      message,
      ...remedies.map(({ text }) => text),
    ]);
    for (const words of all) {
      assert.ok(
        texts.some((text) => text.includes(words)),
        `nothing says "${words}": ${texts.join('; ')}`,
      );
    }
  };

/** Its Lease is named after a hash and the domain above its group, as operator-sdk names it. */
const hashLease = ({ group }: Pick<Operator, 'group'>): string =>
  `9f193cf8.${group.split('.').slice(1).join('.')}`;

const readsEverything = situation({
  ...KEPT,
  id: 'reads-everything',
  title: 'a policy engine may change pods and read everything; the finalizer is of another group',
  settle: settledWithPod,
  before: (world) =>
    world.createType(customType({ group: world.domain('store.example.org'), kind: 'Cluster' })),
  operator: (world) => ({
    ...keeper(world),
    ...NAMELESS,
    finalizer: `${world.domain('store.example.org')}/membership`,
  }),
  bystanders: [
    {
      name: 'policy-engine',
      namespace: 'policy-system',
      rules: [rule('*', ['*'], READ), rule('', ['pods'], FULL)],
    },
  ],
  afterwards: (world, operator) => uninstall(world, operator),
  expect: either(
    (world, operator) => ownerMissing(guardedRef(world, operator), operator.finalizer),
    nobodyKnown,
  ),
});

const lostItsUpdate = situation({
  id: 'lost-its-update',
  title: 'a nameless controller leads by a Lease of the domain, and its role was cut to reading',
  operator: (world) => ({ ...NAMELESS, group: 'net.example.com', verbs: READ, ...named(world) }),
  behaviour: HANGS,
  afterwards: async (world, operator) => {
    const pod = await firstPod(world, operator.namespace);
    const holder = `${pod.metadata.name}_1`;
    await createLease(world, { namespace: operator.namespace, name: hashLease(operator), holder });
  },
  owner: 'owner-unknown',
  expect: (_, operator) => ({
    chains: 'any',
    also: says(`it could be Deployment ${operator.namespace}/`),
  }),
});

const named = (_: World): OperatorOptions => ({ name: 'net-operator', namespace: 'net-system' });

const staleLease = situation({
  id: 'suspect-without-lead',
  title: 'the only suspect has not renewed its Lease for two hours',
  operator: (world) => ({
    ...{ manager: 'manager', group: 'net.example.com', ...named(world) },
    ...{ finalizer: 'storage-finalizer' },
  }),
  behaviour: HANGS,
  afterwards: (world, { namespace, name }) =>
    createLease(world, { namespace, name, holder: `${name}-gone_1`, silentForSeconds: 7_200 }),
  expect: (_, operator) => ({
    chains: 'any',
    also: says(`Lease ${operator.namespace}/${operator.name}`),
  }),
});

const settingsIn = (id: string, title: string, container: JsonObject): Scenario =>
  situation({
    id,
    title,
    operator: { container },
    behaviour: HANGS,
    owner: {
      code: 'owner-running',
      certainty: ['proven'],
      says: [/nothing that was read shows why/],
      advises: [/raise the timeout/],
    },
  });

const settingsElsewhere = [
  settingsIn(
    'settings-elsewhere',
    'the settings of the controller are in a ConfigMap: it may watch other namespaces',
    { env: [{ name: 'CONFIG_MAP_NAME', value: 'widget-settings' }] },
  ),
  settingsIn(
    'settings-in-environment',
    'all variables of the controller come from a ConfigMap: it may watch other namespaces',
    { envFrom: [{ configMapRef: { name: 'widget-environment', optional: true } }] },
  ),
];

const SHARD = 'sharding.example.com/key';

const shardsBySet = situation({
  id: 'shards-by-set',
  title: 'two shards select objects by sets of labels, and the shard of this object is not there',
  operator: { container: { args: [`--watch-label-selector=!${SHARD}`] } },
  behaviour: HANGS,
  bystanders: [
    {
      namespace: 'team-b-system',
      container: { args: [`--watch-label-selector=${SHARD} in (one, three)`] },
    },
  ],
  afterwards: (world, operator) =>
    world.client.patch(guardedRef(world, operator), { metadata: { labels: { [SHARD]: 'two' } } }),
  expect: (_, operator) => ({
    chains: 'any',
    never: [{ kind: 'Deployment', namespace: operator.namespace, name: operator.name }],
    also: says('but its arguments select objects by other labels', `the object has ${SHARD}=two`),
  }),
});

const recordsInside = situation({
  id: 'records-inside',
  title: 'the error stands in a list of records inside of a list, from seconds before the deletion',
  behaviour: HANGS,
  afterwards: (world, operator) => {
    const timestamp = new Date(Date.now() - 2_000).toISOString();
    const message = 'rpc error: dial tcp 10.0.3.9:31767: connect: connection refused';
    const events = [{ type: 'Failed', operation: 'Recover', message, timestamp }];
    const records = [{ id: 'web-0', phase: 'Injected', events }];
    return writesStatus({ experiment: { records } }, operator.manager)(world, operator);
  },
  owner: { code: 'owner-running', says: [/connection refused/] },
});

const addressedService = situation({
  id: 'addressed-service',
  title: 'a variable of the controller addresses a Service that goes with the namespace',
  operator: (world) => ({
    container: { env: [{ name: 'SERVERS', value: `store.${world.namespace}.svc:9092` }] },
  }),
  behaviour: HANGS,
  afterwards: async (world, operator) => {
    // A label of the owner's project does not show that the owner made the object.
    const labels = { [`${operator.group}/cluster`]: 'store' };
    await world.client.patch(guardedRef(world, operator), { metadata: { labels } });
    await world.create(service(world.namespace, 'store'));
  },
  owner: {
    code: 'owner-failing',
    certainty: ['likely'],
    says: [/may need Service store \(its settings address it\), which does not exist here/],
  },
});

const VIRTUAL = { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachineInstance' };
const VIRT_SYSTEM = 'kubevirt';
const ENDS_GUEST = 'foregroundDeleteVirtualMachine';

/** The controller runs, and beside it another workload of the product, which the catalogue lists for the finalizer. */
const beside = (
  id: string,
  title: string,
  given: {
    agent: OperatorOptions;
    /** The node that the object names. */
    node?: string;
    /** The first pod of the agent crashes. */
    isCrashing?: true;
    expected: Pick<Link, 'certainty' | 'says' | 'advises'>;
  },
): Scenario => ({
  id,
  title,
  own: true, // the product's own API group
  setUp: async (world) => {
    await world.createNamespace();
    await world.ensureNamespace(VIRT_SYSTEM);
    const operator = await install(world, virtController());
    await runPods(world, operator);
    const name = 'virt-handler';
    const agent = await install(world, { ...virtController(), name, type: false, ...given.agent });
    await runPods(world, agent);
    if (given.isCrashing) await crashFirst(world, agent);
    await createGuarded(world, operator, 'desktop');
    if (given.node === undefined) return;
    const status = { nodeName: world.name(given.node) };
    await world.client.patchStatus(desktop(world), status, { fieldManager: name });
  },
  settle: settledByFinalizer,
  expect: (world) => {
    const { name, namespace = '' } = virtController();
    const subject = ref('apps/v1', 'Deployment', namespace, name ?? '');
    const link = { code: 'owner-running' as const, subject, finalizer: ENDS_GUEST };
    return stuck([objectFinalizer(desktop(world), ENDS_GUEST), { ...link, ...given.expected }]);
  },
  beyondCommands: 'a person has to find what makes the pod crash',
});

const virtController = (): OperatorOptions => ({
  ...VIRTUAL,
  ...{ namespace: VIRT_SYSTEM, name: 'virt-controller', manager: 'virt-controller' },
  ...{ ownGroup: false, finalizer: ENDS_GUEST, scope: 'cluster' },
});

const desktop = ({ namespace }: World): Ref =>
  ref('kubevirt.io/v1', VIRTUAL.kind, namespace, 'desktop');

async function crashFirst({ client }: World, { namespace, name }: Operator): Promise<void> {
  const pods = await client.list('v1', 'Pod', namespace);
  const pod = pods.find(({ metadata }) => metadata.name.startsWith(name));
  await client.patchStatus(ref('v1', 'Pod', namespace, pod?.metadata.name ?? ''), {
    conditions: unready('Ready', 'ContainersReady'),
    containerStatuses: [
      containerStatus({ waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } }),
    ],
  });
}

const partners = [
  beside(
    'partner-down',
    'two workloads of a product work on the object: the controller runs, the agent crashes',
    {
      agent: { workload: 'DaemonSet' },
      isCrashing: true,
      expected: {
        certainty: ['likely'],
        says: [/DaemonSet kubevirt\/virt-handler works on such objects too and has no ready pod/],
        advises: [/Find out whether this keeps .*virt-handler/],
      },
    },
  ),
  beside('partner-not-there', 'the same, and the agent has no pod on the node of the object', {
    agent: { workload: 'DaemonSet' },
    node: 'node-2',
    expected: {
      certainty: ['likely'],
      says: [/virt-handler works on such objects too and has no ready pod/],
    },
  }),
  beside('partner-partly-down', 'the same, and one of two pods of the other workload crashes', {
    agent: { replicas: 2 },
    isCrashing: true,
    expected: {
      says: [/nothing that was read shows why/],
      advises: [/Give Deployment kubevirt\/virt-controller more time/],
    },
  }),
];

export const parts: Scenario[] = [
  readsEverything,
  lostItsUpdate,
  staleLease,
  ...settingsElsewhere,
  shardsBySet,
  recordsInside,
  addressedService,
  ...partners,
];
