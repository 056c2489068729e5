import type { Ref } from '../client.ts';
import type { Link, Scenario } from '../scenario.ts';
import { containerStatus, unready } from '../servers/stand-in.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ref, stuck } from './links.ts';
import {
  createGuarded,
  install,
  type Operator,
  type OperatorOptions,
  runPods,
} from './operator.ts';
import { settledByFinalizer } from './situation.ts';

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

export const parts: Scenario[] = [...partners];
