import { configMap, customObject, customType, pod, secret, typeRef } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { startStandIn } from '../servers/stand-in.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ownerMissing, podRef, ref } from './links.ts';

/** Pods go first since Kubernetes 1.33: while one remains, nothing else is even asked to go. */

const DUAL_PODS = 'dual-pods.llm-d.ai/provider';

const s5: Scenario = {
  id: 'S5',
  title: 'a pod with a finalizer whose controller was removed; all conditions are green',
  setUp: createHeldPod,
  settle: settledWithPod,
  expect: (world) => ({ outcome: 'stuck', chains: [heldPod(world)] }),
};

const s6: Scenario = {
  id: 'S6',
  title: 'the same, with a ConfigMap, a Secret and a custom resource queued behind the pod',
  setUp: async (world) => {
    const group = world.domain('example.com');
    await createHeldPod(world);
    await world.createType(customType({ group, kind: 'Widget' }));
    await world.createAll([
      configMap(world.namespace, 'settings'),
      secret(world.namespace, 'credentials'),
      customObject(`${group}/v1`, 'Widget', world.namespace, 'db', {
        finalizers: [`${group}/cleanup`],
      }),
    ]);
  },
  settle: settledWithPod,
  expect: async (world) => {
    if (await world.deletesPodsFirst()) {
      return {
        outcome: 'stuck',
        chains: [heldPod(world)],
        queued: { kinds: ['ConfigMap', 'Secret', 'ServiceAccount', 'Widget'], exactly: true },
      };
    }
    const group = world.domain('example.com');
    const widget = ref(`${group}/v1`, 'Widget', world.namespace, 'db');
    const finalizer = `${group}/cleanup`;
    return {
      outcome: 'stuck',
      chains: [
        heldPod(world),
        [objectFinalizer(widget, finalizer), ownerMissing(typeRef(group, 'Widget'), finalizer)],
      ],
      queued: { kinds: [], exactly: true },
    };
  },
  beyondCommands: 'what is queued behind the pod holds in its turn: that is the next report',
};

const s30: Scenario = {
  id: 'S30',
  title: 'a pod with 600 s of grace on a ready node',
  setUp: async (world) => {
    const node = world.name('node-ready');
    await world.createNamespace();
    await startStandIn(world, { node });
    await world.create(pod(world.namespace, 'stubborn', { nodeName: node, graceSeconds: 600 }));
  },
  settle: settledWithPod,
  expect: (world) => ({
    outcome: 'progressing',
    chains: [
      [{ code: 'pod-grace-period', subject: podRef(world.namespace, 'stubborn'), says: [/until/] }],
    ],
  }),
};

const WEEK = 7 * 24 * 3_600;

const aWeek: Scenario = {
  ...s30,
  id: 'week-of-grace',
  title: 'three pods with a week of grace on a ready node',
  setUp: async (world) => {
    const node = world.name('node-ready');
    await world.createNamespace();
    const { namespace } = world;
    await startStandIn(world, { node, namespaces: [namespace], stopsAfterMs: 1_000 * WEEK });
    const runner = { nodeName: node, graceSeconds: WEEK };
    await world.createAll(['a', 'b', 'c'].map((name) => pod(namespace, name, runner)));
  },
  expect: () => ({
    outcome: 'progressing',
    chains: [
      [{ code: 'pod-grace-period', subject: 'any', advises: [/^Shorten the grace period of Pod/] }],
    ],
  }),
};

async function createHeldPod(world: World): Promise<void> {
  await world.createNamespace();
  await world.create(pod(world.namespace, 'provider-0'));
  await world.client.patch(
    podRef(world.namespace, 'provider-0'),
    { metadata: { finalizers: [DUAL_PODS] } },
    { fieldManager: 'dual-pods-controller' },
  );
}

/** Conditions alone do not tell: before 1.33 they name the pod, since then they are green. */
export async function settledWithPod(world: World): Promise<void> {
  await world.settled();
  for (const { metadata } of await world.client.list('v1', 'Pod', world.namespace)) {
    await world.terminating(podRef(world.namespace, metadata.name));
  }
}

function heldPod(world: World) {
  const held = podRef(world.namespace, 'provider-0');
  return [objectFinalizer(held, DUAL_PODS), ownerMissing(held, DUAL_PODS)];
}

export const pods = [s5, s6, s30, aWeek];
