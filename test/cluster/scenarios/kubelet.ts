import { numberAt, stringAt } from '../../../src/base/json.ts';
import type { KubeObject, Ref } from '../client.ts';
import { kindNode, nodeRef, notReady, startOnNode, stopOnNode } from '../kind/node.ts';
import { type RealPodOptions, realPodSpec } from '../kind/pod-image.ts';
import { configMap, deployment, service } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { deploymentRef, podRef, stuck } from './links.ts';
import { settledWithPod } from './pods.ts';
import { reportsRuntime, settledOverdue } from './pods-and-nodes.ts';
import { noReadyEndpoint } from './webhooks.ts';

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
      deployment(namespace, 'web', { replicas: 2, podSpec: realPodSpec({ node }) }),
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

const s19: Scenario = {
  ...noReadyEndpoint(
    'S19-kubelet',
    'the pod behind the Service of a webhook runs and never becomes ready',
    async (world, hooks) => {
      const node = await kindNode(world);
      const nobodyListens = { httpGet: { port: 443, scheme: 'HTTPS' } };
      const spec = realPodSpec({ node, readinessProbe: nobodyListens });
      await world.create(deployment(hooks, 'guard', { podSpec: spec }));
      await waitUntil('the pod of the webhook to run', async () =>
        (await world.client.list('v1', 'Pod', hooks)).some(isRunning),
      );
    },
    /Deployment \S+\/guard has 0 of 1 replicas ready/,
  ),
  needs: 'kubelet',
};

const s30: Scenario = {
  id: 'S30-kubelet',
  title: 'a pod that does not end when it is asked to, with 600 s of grace',
  needs: 'kubelet',
  setUp: (world) => createRunningPod(world, 'stubborn', { stubborn: true, graceSeconds: 600 }),
  settle: settledWithPod,
  expect: ({ namespace }) => ({
    outcome: 'progressing',
    chains: [
      [{ code: 'pod-grace-period', subject: podRef(namespace, 'stubborn'), says: [/until/] }],
    ],
  }),
};

const overdue = (unit: 'kubelet' | 'containerd'): Pick<Scenario, 'setUp' | 'settle'> => ({
  setUp: async (world) => {
    await createRunningPod(world, 'web-0', { graceSeconds: 1 });
    await stopOnNode(world, await kindNode(world), unit);
  },
  settle: async (world) => {
    await settledOverdue(world);
    await notReady(world, await kindNode(world));
  },
});

const kubeletReturns: Scenario = {
  ...overdue('kubelet'),
  settle: settledOverdue,
  id: 'S28-returns',
  title: 'the kubelet is stopped for a while: the namespace goes when it is back',
  needs: 'kubelet',
  inputs: { timeout: '120s' },
  meanwhile: async (world, gate) => {
    await gate.says(new RegExp(`${world.namespace}: terminating`));
    await startOnNode(world, await kindNode(world), 'kubelet');
  },
  expect: () => ({ outcome: 'deleted' }),
};

const s28: Scenario = {
  ...overdue('kubelet'),
  id: 'S28-kubelet',
  title: 'SEED-5b, an overdue pod on a node whose kubelet is stopped',
  needs: 'kubelet',
  expect: async (world) => {
    const { name } = await kindNode(world);
    const subject = nodeRef(name);
    return stuck([{ code: 'pod-node-unavailable', subject, says: [/web-0|not ready/i] }]);
  },
};

const runtimeDown: Scenario = {
  ...overdue('containerd'),
  id: 'S93-kubelet',
  title: 'the container runtime is stopped, and the kubelet of the node reports it',
  needs: 'kubelet',
  expect: async (world) => reportsRuntime(nodeRef((await kindNode(world)).name)),
};

async function createRunningPod(
  world: World,
  name: string,
  options: Omit<RealPodOptions, 'node'>,
): Promise<void> {
  const node = await kindNode(world);
  const ref: Ref = podRef(world.namespace, name);
  await world.createNamespace();
  // At the end nobody waits for its grace period.
  world.atEnd(() => world.client.delete(ref, { gracePeriodSeconds: 0 }));
  await world.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: world.namespace, name },
    spec: realPodSpec({ ...options, node }),
  });
  await world.client.waitFor(ref, 'is running', isRunning);
}

function isRunning(pod: KubeObject | undefined): boolean {
  return stringAt(pod, 'status', 'phase') === 'Running';
}

export const kubelet = [deleted, s19, s30, kubeletReturns, s28, runtimeDown];
