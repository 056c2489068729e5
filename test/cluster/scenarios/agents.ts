import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { type JsonObject, numberAt, stringAt } from '../../../src/base/json.ts';
import { type KubeObject, type Ref, refOf } from '../client.ts';
import { breakNode, type Fault, kindNode, repairNode } from '../kind/node.ts';
import { loadPodImage, realPodSpec } from '../kind/pod-image.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { podRef, stuck } from './links.ts';
import { settledOverdue } from './pods.ts';

/** Pods on a ready node whose kubelet waits for another program of the node, which is taken away before they are to go. */

const podOf = ({ namespace }: World): Ref => podRef(namespace, 'web-0');

let isLoaded: Promise<unknown> | undefined;

/** Builds what `agents/<name>.yaml` describes; then its first DaemonSet has no pod on the node any more. */
async function takeAway(world: World, name: string, fault?: Fault): Promise<void> {
  const node = await kindNode(world);
  isLoaded ??= Promise.all([loadPodImage(node), loadPodImage(node, 'agent')]);
  await isLoaded;
  await world.createNamespace();
  for (const object of manifests(world, name, node.name)) {
    if (object['kind'] === 'Pod' && fault) await breakNode(world, node, fault);
    const ref = refOf(await world.create(object));
    if (ref.kind === 'Pod') await world.client.waitFor(ref, 'runs', isRunning);
    if (ref.kind === 'DaemonSet') await world.client.waitFor(ref, 'is ready', isReady);
  }
  const agent = agentOf(world, name);
  // A kubelet would go on with a pod that is no longer there.
  world.atEnd(async () => {
    await start(world, agent);
    await world.client.delete(podOf(world));
    await world.gone(podOf(world), { timeoutMs: 120_000 });
  });
  await select(world, agent, 'nobody');
  await waitUntil('the pod of the agent to be gone', async () => {
    const pods = await world.client.list('v1', 'Pod', agent.namespace);
    return !pods.some((pod) => stringAt(pod, 'metadata', 'labels', 'app') === agent.name);
  });
}

function manifests({ namespace }: World, name: string, node = ''): KubeObject[] {
  const text = readFileSync(join(import.meta.dirname, 'agents', `${name}.yaml`), 'utf8');
  return loadAll(text.replaceAll('NODE', node).replaceAll('NAMESPACE', namespace)) as KubeObject[];
}

function agentOf(world: World, name: string): Ref {
  const found = manifests(world, name).find(({ kind }) => kind === 'DaemonSet');
  if (!found) throw new Error(`no DaemonSet in ${name}.yaml`);
  return refOf(found);
}

const isRunning = (pod?: KubeObject) => stringAt(pod, 'status', 'phase') === 'Running';
const isReady = (set?: KubeObject) => numberAt(set, 'status', 'numberReady') === 1;

/** As people stop a DaemonSet: no node has such a label. */
function select(world: World, agent: Ref, stopped: string | null): Promise<unknown> {
  const spec: JsonObject = { nodeSelector: { stopped } };
  return world.client.patch(agent, { spec: { template: { spec } } });
}

const start = (world: World, agent: Ref): Promise<unknown> => select(world, agent, null);

/** It says so; then its first advice is followed, and the namespace goes. */
const stays = (world: World, words: Words, repair: () => Promise<unknown>): Expectation => ({
  ...stuck([{ code: 'pod-not-confirmed', subject: podOf(world), ...words }]),
  never: [{ kind: 'DaemonSet', name: 'file-csi-node' }],
  also: async () => {
    await repair();
    await world.namespaceIs('is gone', (found) => found === undefined);
  },
});

/** Its Events say why it stays, for the namespace still accepts them. */
async function podFirst(world: World): Promise<void> {
  await world.client.delete(podOf(world));
  await waitUntil('its kubelet to say why it stays', async () => {
    const events = await world.client.list('v1', 'Event', world.namespace);
    return events.some((event) => stringAt(event, 'reason') === 'FailedKillPod');
  });
  await world.deleteNamespace();
}

type Words = Pick<Link, 'says' | 'advises'>;

/** `agents/<name>.yaml` names the DaemonSet that is gone. */
const gone = (id: string, name: string, title: string, words: Words, fault?: Fault): Scenario => ({
  ...{ id, title: `${title}: no pod of its DaemonSet is on the node`, needs: 'agents' },
  setUp: (world) => takeAway(world, name, fault),
  settle: settledOverdue,
  expect: (world) => stays(world, words, () => start(world, agentOf(world, name))),
});

const NO_CALICO =
  /^Repair the network plugin on node \S+, which DaemonSet kube-system\/calico-node runs \(0 of 0 ready; it has no pod there\)/;
const network = gone(
  ...(['cni-gone', 'network', 'a pod whose network is not released'] as const),
  {
    says: [/plugin most likely does not release .*; DaemonSet \S+calico-node has no pod there$/m],
    advises: [NO_CALICO],
  },
  'network',
);

const networkTold = {
  ...gone(
    ...(['cni-gone-told', 'network', 'the same, and an Event says it'] as const),
    {
      says: [/calico-node has no pod there: FailedKillPod: .*is running and has mounted \S+calico/],
      advises: [NO_CALICO],
    },
    'network',
  ),
  delete: podFirst,
};

const volume = gone('csi-gone', 'volume', 'a pod whose volume is not unmounted', {
  says: [
    /the CSI driver disk\.csi\.example\.com most likely does not unmount the pod's volume \(claim data\); DaemonSet storage\/disk-csi-node has no pod there$/m,
  ],
  advises: [
    /^Let nodes take the pods of DaemonSet storage\/disk-csi-node again; .* unmount the pod's volume\nkubectl patch daemonset disk-csi-node -n storage .*nodeSelector/,
  ],
});

const device = gone('dra-gone', 'device', 'a pod whose device is not released', {
  says: [
    /the DRA driver gpu\.example\.com most likely does not release the pod's devices \(claim gpu\); DaemonSet gpus\/example-gpu-kubelet-plugin has no pod there$/m,
  ],
  advises: [
    /^Let nodes take the pods of DaemonSet gpus\/example-gpu-kubelet-plugin again; .* release the pod's devices\nkubectl patch daemonset example-gpu-kubelet-plugin -n gpus .*nodeSelector/,
  ],
});

const runtime: Scenario = {
  id: 'runtime-fails',
  title: 'a pod whose container the runtime of its node cannot end',
  needs: 'agents',
  setUp: async (world) => {
    const node = await kindNode(world);
    const { namespace, name } = podOf(world);
    await world.createNamespace();
    await world.create({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name } },
      spec: realPodSpec(node),
    });
    await world.client.waitFor(podOf(world), 'runs', isRunning);
    await breakNode(world, node, 'signals');
  },
  delete: podFirst,
  settle: settledOverdue,
  expect: (world) => {
    const words = {
      says: [/the container runtime does not end .*: unable to signal init: permission denied/],
      advises: [/^Repair the container runtime on node \S+: it does not end the pod's container/],
    };
    return stays(world, words, async () => repairNode(await kindNode(world), 'signals'));
  },
};

export const agents = [network, networkTold, volume, device, runtime];
