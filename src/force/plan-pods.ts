import type { ActivePolicy } from '../model/policy.ts';
import type { Read } from '../model/read.ts';
import { MAX_EXAMPLES, type NodeFacts, type PodFacts, type Snapshot } from '../model/snapshot.ts';
import { OVERDUE_AFTER_MS, type PodAction, plural, type Refusal } from './force-plan.ts';

/** Overdue pods, by node: only a node that cannot answer gives a reason to do without its kubelet. */
export function planPods(
  snapshot: Snapshot,
  policy: ActivePolicy,
): { actions: PodAction[]; refused: Refusal[] } {
  const actions: PodAction[] = [];
  const refused: Refusal[] = [];
  for (const [node, pods] of overdueByNode(snapshot)) {
    const state = nodeState(snapshot.nodes[node]);
    const target = pods.length === 1 ? `pods/${pods[0]?.name}` : plural(pods.length, 'pod');
    const { reason } = state;
    if (reason !== undefined) {
      refused.push({ target, reason: `overdue on node ${node}, but ${reason}` });
    } else if (!policy.pods) {
      refused.push({
        target,
        reason: `overdue, and node ${node} ${state.text}; force-pods: true would delete with grace period 0`,
      });
    } else {
      const examples = pods.slice(0, MAX_EXAMPLES).map(({ name }) => name);
      actions.push({
        step: 'overdue-pods',
        node,
        nodeState: state.text,
        count: pods.length,
        examples,
      });
    }
  }
  return { actions, refused };
}

function overdueByNode(snapshot: Snapshot): Map<string, PodFacts[]> {
  const byNode = new Map<string, PodFacts[]>();
  const nowMs = Date.parse(snapshot.takenAt);
  for (const pod of snapshot.pods.ok ? snapshot.pods.value : []) {
    if (
      pod.deletionTimestamp === undefined ||
      pod.nodeName === undefined ||
      !isOverdue(pod.deletionTimestamp, nowMs)
    )
      continue;
    byNode.set(pod.nodeName, [...(byNode.get(pod.nodeName) ?? []), pod]);
  }
  return byNode;
}

/** `nowMs` is the server's clock; anything that is no time is not overdue. */
export function isOverdue(deletionTimestamp: string | undefined, nowMs: number): boolean {
  return Date.parse(deletionTimestamp ?? '') + OVERDUE_AFTER_MS <= nowMs;
}

/** In words, and why the pod has to be left to it; a node that could not be read is not a dead one. */
export function nodeState(node: Read<NodeFacts | undefined> | undefined): {
  text: string;
  reason?: string;
} {
  if (node === undefined) return { text: 'was not read', reason: 'the node was not read' };
  if (!node.ok) {
    return { text: 'unread', reason: `the node could not be read: ${node.failure.message}` };
  }
  if (node.value === undefined) return { text: 'does not exist' };
  const { ready, readySince } = node.value;
  if (ready === 'True') {
    return { text: 'is Ready', reason: 'the node is Ready and its kubelet has to confirm the end' };
  }
  if (ready === undefined) return { text: 'unknown', reason: 'the node has no Ready condition' };
  return {
    text: `is not ready (Ready=${ready}${readySince === undefined ? '' : ` since ${readySince}`})`,
  };
}
