import { stringAt } from '../../../src/base/json.ts';
import type { Ref } from '../client.ts';
import { pod } from '../objects.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import { createDeadNode, startStandIn } from '../servers/stand-in.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { CONTENT_FAILURE, podRef, stuck } from './links.ts';
import { settledWithPod } from './pods.ts';
import { advisesNot } from './situation.ts';

/** Pods without a finalizer that stay because nobody confirms their end. */

/** A node of this scenario's own. */
export const nodeRef = (world: World, base: string): Ref => ({
  apiVersion: 'v1',
  kind: 'Node',
  name: world.name(base),
});

/** Overdue: the one second of grace is over, and the controller has noticed. */
export async function settledOverdue(world: World): Promise<void> {
  await world.settled({
    [CONTENT_FAILURE]: ['True', /unexpected items still remain .*Resource=pods/],
  });
  await waitUntil('its pods to be overdue', async () => {
    const pods = await world.client.list('v1', 'Pod', world.namespace);
    return pods.every((one) => isPast(stringAt(one, 'metadata', 'deletionTimestamp')));
  });
}

/** Since more than a second: the gate's last look is then later than the kubelet may take. */
const isPast = (at = ''): boolean => !(Date.parse(at) + 1_000 > Date.now());

const unavailable = (world: World, node: string, ...says: RegExp[]): Link => ({
  code: 'pod-node-unavailable',
  subject: nodeRef(world, node),
  says,
});

function onDeadNode(id: string, title: string, names: readonly string[]): Scenario {
  return {
    id,
    title,
    setUp: async (world) => {
      const node = world.name('node-dead');
      await world.createNamespace();
      await createDeadNode(world, node);
      await world.createAll(
        names.map((name) => pod(world.namespace, name, { nodeName: node, graceSeconds: 1 })),
      );
    },
    settle: settledOverdue,
    expect: (world) => stuck([unavailable(world, 'node-dead', /web-0|not ready/i)]),
  };
}

const s28 = onDeadNode('S28', 'an overdue pod on a node that is not ready', ['web-0']);

/** More than a command names. */
const folded = onDeadNode(
  'many-on-dead-node',
  'a dozen overdue pods on a node that is not ready',
  Array.from({ length: 12 }, (_, at) => `web-${at}`),
);

/** Nobody shuts it down, and nobody will. */
const noNode: Scenario = {
  ...s28,
  id: 'no-node',
  title: 'a pod with an hour of grace on a node that does not exist, and nobody collects such pods',
  own: { controllers: ['*', '-pod-garbage-collector-controller'] },
  setUp: async (world) => {
    await world.createNamespace();
    const nodeName = world.name('node-none');
    await world.create(pod(world.namespace, 'web-0', { nodeName, graceSeconds: 3_600 }));
  },
  settle: settledWithPod,
  expect: (world) => ({
    outcome: 'progressing',
    chains: [[unavailable(world, 'node-none', /no longer exists/)]],
  }),
};

const seed5a: Scenario = {
  id: 'SEED-5a',
  title: 'an overdue pod on a ready node: the kubelet cannot finish it',
  setUp: async (world) => {
    const node = world.name('node-ready');
    await world.createNamespace();
    await startStandIn(world, { node, namespaces: [world.namespace], confirms: false });
    await world.create(pod(world.namespace, 'web-0', { nodeName: node, graceSeconds: 1 }));
  },
  settle: settledOverdue,
  expect: (world) =>
    stuck([
      {
        code: 'pod-not-confirmed',
        subject: podRef(world.namespace, 'web-0'),
        advises: [/kubelet/],
      },
    ]),
};

export const reportsRuntime = (subject: Ref): Expectation => ({
  ...stuck([
    {
      code: 'pod-node-unavailable',
      subject,
      says: [/is not ready \(KubeletNotReady: .*container runtime is down/],
      advises: [/Fix what the kubelet of node \S+ reports/],
    },
  ]),
  also: advisesNot(/delete node|out-of-service|start its machine/),
});

export const podsAndNodes = [s28, folded, noNode, seed5a];
