import { arrayAt, type JsonObject, stringAt } from '../../../src/base/json.ts';
import { type Client, type KubeObject, type Ref, refOf, versionsOf } from '../client.ts';
import { whileLooking } from '../wait-until.ts';
import type { World } from '../world.ts';

/** What the stand-in for a kubelet (and a scheduler) does in a namespace. */
export interface StandInOptions {
  /** Name of its node. */
  node: string;
  /** Namespaces whose pods it takes, makes Ready, and whose deletion it confirms. */
  namespaces?: readonly string[];
  /** False: it never confirms a deletion, as a kubelet with a confused container runtime. */
  confirms?: boolean;
}

/** The node lifecycle controller gives up on a node after 50 s; a kubelet renews every 10 s. */
const RENEW_EVERY_MS = 8_000;

/**
 * A node and what a kubelet and a scheduler would do for it, as far as the API can see. It ends with
 * the scenario.
 */
export async function startStandIn(world: World, options: StandInOptions): Promise<void> {
  await world.create({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: options.node, labels: { 'kubernetes.io/hostname': options.node } },
  });
  const stop = new AbortController();
  await reportNode(world.client, options.node);
  const working = work(world.client, options, stop.signal);
  world.atEnd(async () => {
    stop.abort();
    await working;
  });
}

/** What runs pods in a scenario unless it says more: one node, and the namespaces that it serves. */
const served = new WeakMap<World, Promise<string[]>>();

/** From now on pods of this namespace are scheduled, run, and end when they are deleted. */
export async function runPodsIn(world: World, namespace: string): Promise<void> {
  const known = served.get(world);
  if (known !== undefined) {
    (await known).push(namespace);
    return;
  }
  const namespaces = [namespace];
  const started = startStandIn(world, { node: 'node-1', namespaces });
  const ready = started.then(() => namespaces);
  served.set(world, ready);
  await ready;
}

/** A node that is there and not heard of, as after a crash. */
export async function createDeadNode(world: World, node: string): Promise<void> {
  await world.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: node } });
  await reportNode(world.client, node, 'Unknown');
}

async function work(client: Client, options: StandInOptions, stop: AbortSignal): Promise<void> {
  let renewedAt = Date.now();
  const look = async (): Promise<string> => {
    if (Date.now() - renewedAt > RENEW_EVERY_MS) {
      renewedAt = Date.now();
      await reportNode(client, options.node).catch(() => {}); // deleted meanwhile
    }
    let seen = '';
    for (const namespace of options.namespaces ?? []) {
      const pods = await client.list('v1', 'Pod', namespace).catch(() => []); // restarted API servers
      seen += versionsOf(pods);
      for (const pod of pods) {
        await takeCareOf(client, options, pod).catch(() => {
          seen += ` unfinished at ${Date.now()}`;
        });
      }
    }
    return seen;
  };
  await whileLooking(stop, look);
}

async function takeCareOf(
  client: Client,
  { node, confirms = true }: StandInOptions,
  pod: KubeObject,
): Promise<void> {
  const ref = refOf(pod);
  const nodeName = stringAt(pod, 'spec', 'nodeName');
  if (pod.metadata['deletionTimestamp'] !== undefined) {
    const uid = stringAt(pod, 'metadata', 'uid') ?? '';
    if (confirms && nodeName === node) await confirmDeletion(client, ref, uid);
  } else if (nodeName === undefined) {
    await bind(client, ref, node);
  } else if (nodeName === node && stringAt(pod, 'status', 'phase') === 'Pending') {
    await client.patchStatus(ref, runningStatus());
  }
}

/** A kubelet that has stopped the containers deletes with grace period 0, for this very pod. */
function confirmDeletion(client: Client, ref: Ref, uid: string): Promise<void> {
  return client.delete(ref, { gracePeriodSeconds: 0, uid });
}

export async function bind(client: Client, ref: Ref, node: string): Promise<void> {
  await client.call('POST', await client.pathOf(ref, 'binding'), {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name: ref.name },
    target: { apiVersion: 'v1', kind: 'Node', name: node },
  });
}

function runningStatus(): JsonObject {
  const at = now();
  const podIP = '198.51.100.7';
  const conditions = ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'];
  return {
    phase: 'Running',
    podIP,
    podIPs: [{ ip: podIP }],
    startTime: at,
    conditions: conditions.map((type) => ({ type, status: 'True', lastTransitionTime: at })),
  };
}

/** Of the container `main`, as the kubelet reports one that is not ready. */
export function containerStatus(state: JsonObject, more: JsonObject = {}): JsonObject {
  const image = { image: 'example.com/none:1', imageID: '' };
  return { name: 'main', ...image, ready: false, restartCount: 0, state, ...more };
}

/** Conditions of a pod whose containers are not ready. */
export function unready(): JsonObject[] {
  const words = { reason: 'ContainersNotReady', message: 'containers with unready status: [main]' };
  const types = ['Ready', 'ContainersReady'];
  return [
    { type: 'PodScheduled', status: 'True' },
    ...types.map((type) => ({ type, status: 'False', ...words })),
  ];
}

/** `Unknown` is the node lifecycle controller's word for a kubelet that says nothing any more. */
const SAID = {
  True: { reason: 'KubeletReady', message: 'kubelet is posting ready status' },
  Unknown: { reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' },
};

export async function reportNode(
  client: Client,
  name: string,
  ready: keyof typeof SAID = 'True',
): Promise<void> {
  const at = now();
  const ref: Ref = { apiVersion: 'v1', kind: 'Node', name };
  const node = await client.get(ref);
  const before = arrayAt(node, 'status', 'conditions').find(
    (condition) => stringAt(condition, 'type') === 'Ready',
  );
  const unchanged = stringAt(before, 'status') === ready;
  const condition = {
    type: 'Ready',
    status: ready,
    ...SAID[ready],
    lastHeartbeatTime: at,
    lastTransitionTime: unchanged ? (stringAt(before, 'lastTransitionTime') ?? at) : at,
  };
  await client.patchStatus(ref, { conditions: [condition] }, { fieldManager: 'kubelet' });
}

function now(): string {
  return new Date().toISOString().replace(/\.\d+/, '');
}
