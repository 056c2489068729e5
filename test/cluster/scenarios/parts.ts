import assert from 'node:assert/strict';
import type { Ref } from '../client.ts';
import { customType, service } from '../objects.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import { containerStatus, unready } from '../servers/stand-in.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ownerMissing, ref, stuck } from './links.ts';
import {
  createGuarded,
  FULL,
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
} from './situation.ts';

/** What a controller was started with, by which Lease it leads, and which other program works beside it. */

/** Some finding, or what it advises, has each of these words. */
const _says =
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
    'partner-not-there',
    'two workloads of a product work on the object: the agent has no pod on the node of the object',
    {
      agent: { workload: 'DaemonSet' },
      node: 'node-2',
      expected: {
        certainty: ['likely'],
        says: [/virt-handler works on such objects too and has no ready pod/],
      },
    },
  ),
];

export const parts: Scenario[] = [readsEverything, addressedService, ...partners];
