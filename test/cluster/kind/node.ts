import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringAt } from '../../../src/base/json.ts';
import type { Client, KubeObject, Ref } from '../client.ts';
import { conditionsOf, type World } from '../world.ts';

const run = promisify(execFile);

/** A node of a kind cluster: a container on this machine, with a real kubelet inside. */
export interface KindNode {
  /** Of the Node object and of the container. */
  name: string;
  /** `docker`, or what else kind has made it with. */
  engine: string;
}

const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
/** Starts again what was stopped, should the tests be killed. */
const RESCUE = 'teardown-gate-rescue';
const RESCUE_AFTER_SECONDS = 400;

/** A worker, if there is one: less stands still with it. */
export async function findKindNode(client: Client): Promise<KindNode | undefined> {
  const nodes = (await client.list('v1', 'Node')).flatMap((node) => {
    // kind://ENGINE/CLUSTER/CONTAINER
    const id = /^kind:\/\/([a-z]+)\/[^/]+\/([^/]+)$/.exec(
      stringAt(node, 'spec', 'providerID') ?? '',
    );
    const [, engine, name] = id ?? [];
    return engine !== undefined && name !== undefined ? [{ node, engine, name }] : [];
  });
  const worker = nodes.find(
    ({ node }) => stringAt(node, 'metadata', 'labels', CONTROL_PLANE) === undefined,
  );
  const found = worker ?? nodes[0];
  return found && { name: found.name, engine: found.engine };
}

export async function kindNode(world: World): Promise<KindNode> {
  const node = await findKindNode(world.client);
  if (!node) throw new Error('no node of this cluster is a container of kind');
  return node;
}

/** Why its kubelet cannot be stopped from here; undefined when it can. */
export async function whyNoKubelet(client: Client): Promise<string | undefined> {
  const node = await findKindNode(client);
  if (!node) return 'no node here is a container of kind, whose kubelet could be stopped';
  try {
    await inNode(node, 'systemctl', 'is-active', 'kubelet');
    return undefined;
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    return `the kubelet of ${node.name} cannot be reached: ${words.replaceAll(/\s+/g, ' ').trim()}`;
  }
}

/** Until the scenario ends; then the node is Ready again before anything else happens. */
export async function stopKubelet(world: World, node: KindNode): Promise<void> {
  world.atEnd(() => startKubelet(world, node));
  await change(node, 'systemctl stop kubelet', START_KUBELET);
}

export async function startKubelet(world: World, node: KindNode): Promise<void> {
  await undo(node, START_KUBELET);
  await world.client.waitFor(nodeRef(node.name), 'is Ready', isReady, { timeoutMs: 120_000 });
}

const START_KUBELET = 'systemctl start kubelet';

/** Something of the node that fails, until it is repaired or the scenario ends. */
export type Fault = 'network' | 'signals';
const FAULTS = readFileSync(join(import.meta.dirname, 'faults.sh'), 'utf8');
const turned = (fault: Fault, to: 'on' | 'off'): string => `set -eu -- ${fault} ${to}\n${FAULTS}`;

export async function breakNode(world: World, node: KindNode, fault: Fault): Promise<void> {
  world.atEnd(() => repairNode(node, fault));
  await change(node, turned(fault, 'on'), turned(fault, 'off'));
}

export function repairNode(node: KindNode, fault: Fault): Promise<void> {
  return undo(node, turned(fault, 'off'));
}

/** Should the tests be killed, the node is soon as it was. */
async function change(node: KindNode, now: string, atEnd: string): Promise<void> {
  const rescue = ['--unit', RESCUE, '--on-active', String(RESCUE_AFTER_SECONDS)];
  await inNode(node, 'systemd-run', ...rescue, 'sh', '-c', atEnd);
  await inNode(node, 'sh', '-c', now);
}

async function undo(node: KindNode, command: string): Promise<void> {
  await inNode(node, 'sh', '-c', command);
  await inNode(node, 'systemctl', 'stop', `${RESCUE}.timer`).catch(() => {}); // stopped already
}

/** The node lifecycle controller waits 50 s for a kubelet that says nothing. */
export function notReady(world: World, node: KindNode): Promise<unknown> {
  return world.client.waitFor(nodeRef(node.name), 'is not Ready', (found) => !isReady(found), {
    timeoutMs: 120_000,
  });
}

function nodeRef(name: string): Ref {
  return { apiVersion: 'v1', kind: 'Node', name };
}

function isReady(node: KubeObject | undefined): boolean {
  return conditionsOf(node).some(({ type, status }) => type === 'Ready' && status === 'True');
}

/** Runs the command in the container that is the node, and returns its standard output. */
export async function inNode({ engine, name }: KindNode, ...command: string[]): Promise<string> {
  return (await run(engine, ['exec', name, ...command])).stdout;
}
