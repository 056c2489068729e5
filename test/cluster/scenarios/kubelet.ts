import { numberAt, stringAt } from '../../../src/base/json.ts';
import type { KubeObject } from '../client.ts';
import { kindNode, notReady, startKubelet, stopKubelet } from '../kind/node.ts';
import { realPodSpec } from '../kind/pod-image.ts';
import { configMap, deployment, service } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { deploymentRef, podRef } from './links.ts';
import { lostNode, settledOverdue } from './pods.ts';

/** Pods that really run on a node of kind. Each has the node to itself. */

const deleted: Scenario = {
  id: 'deleted-kubelet',
  title: 'a namespace with a running Deployment goes; the kubelet confirms its pods',
  needs: 'kubelet',
  identity: 'teardown-gate',
  setUp: async (world) => {
    const { namespace } = world;
    const node = await kindNode(world);
    await world.createNamespace();
    await world.createAll([
      configMap(namespace, 'settings'),
      service(namespace, 'web', { selector: { app: 'web' } }),
      deployment(namespace, 'web', { replicas: 2, podSpec: realPodSpec(node) }),
    ]);
    await world.client.waitFor(
      deploymentRef(namespace, 'web'),
      'is available',
      (web) => numberAt(web, 'status', 'availableReplicas') === 2,
    );
  },
  delete: false,
  inputs: { delete: 'true', timeout: '90s' },
  expect: (world) => ({ outcome: 'deleted', mutations: [`delete namespaces/${world.namespace}`] }),
};

const overdue: Pick<Scenario, 'setUp' | 'settle'> = {
  setUp: async (world) => {
    const node = await kindNode(world);
    const { namespace } = world;
    const ref = podRef(namespace, 'web-0');
    await world.createNamespace();
    // At the end nobody waits for its grace period.
    world.atEnd(() => world.client.delete(ref, { gracePeriodSeconds: 0 }));
    await world.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace, name: ref.name },
      spec: realPodSpec(node),
    });
    await world.client.waitFor(ref, 'is running', isRunning);
    await stopKubelet(world, node);
  },
  settle: async (world) => {
    await settledOverdue(world);
    await notReady(world, await kindNode(world));
  },
};

const kubeletReturns: Scenario = {
  ...overdue,
  settle: settledOverdue,
  id: 'S28-returns',
  title: 'the kubelet is stopped for a while: the namespace goes when it is back',
  needs: 'kubelet',
  inputs: { timeout: '120s' },
  meanwhile: async (world, gate) => {
    await gate.says(new RegExp(`${world.namespace}: terminating`));
    await startKubelet(world, await kindNode(world));
  },
  expect: () => ({ outcome: 'deleted' }),
};

const s28: Scenario = {
  ...overdue,
  id: 'S28-kubelet',
  title: 'SEED-5b, an overdue pod on a node whose kubelet is stopped',
  needs: 'kubelet',
  expect: async (world) => lostNode((await kindNode(world)).name),
};

function isRunning(pod: KubeObject | undefined): boolean {
  return stringAt(pod, 'status', 'phase') === 'Running';
}

export const kubelet = [deleted, kubeletReturns, s28];
