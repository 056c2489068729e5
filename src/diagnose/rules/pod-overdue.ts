import type { NodeFacts, PodFacts } from '../../model/snapshot.ts';
import type { Draft, View } from '../draft.ts';
import { nodeUnavailableRemedies, podNotConfirmedRemedies } from '../remedies/pods.ts';
import { foldSubjects, namesOf, subjectOf } from '../subjects.ts';
import { inGrace } from './pod-grace-period.ts';

/**
 * Pods whose grace period is over. Only the kubelet of their node may confirm that nothing runs any
 * more (kubernetes/pkg/kubelet/kubelet_pods.go), so the node decides which finding it is.
 */
export function podOverdue(view: View): Draft[] {
  if (!view.now.pods.ok) return [];
  const overdue = view.now.pods.value.filter((pod) => isOverdue(pod, view.nowMs));
  const byNode = Map.groupBy(overdue, (pod) => pod.nodeName ?? '');
  return [...byNode].map(([name, pods]) => toDraft(view, name, pods));
}

/** Grace 0 with a finalizer means that the kubelet has confirmed: the finalizer alone holds it. */
function isOverdue(pod: PodFacts, nowMs: number): boolean {
  const isConfirmed = pod.deletionGracePeriodSeconds === 0 && pod.finalizers.length > 0;
  return pod.nodeName !== undefined && !isConfirmed && !inGrace(pod, nowMs);
}

function toDraft(view: View, nodeName: string, pods: PodFacts[]): Draft {
  const first = pods[0] as PodFacts;
  const node = view.now.nodes?.[nodeName];
  const names = namesOf(pods);
  const overdue = `${pods.length === 1 ? `Pod ${names} is` : `${pods.length} pods are`} overdue: the grace period ended at ${first.deletionTimestamp}`;
  if (node?.ok === true && node.value.ready !== 'True') {
    const { subject: _pod, ...folded } = foldSubjects(pods);
    return {
      code: 'pod-node-unavailable',
      subject: { apiVersion: 'v1', kind: 'Node', name: nodeName },
      ...folded,
      examples: pods.slice(0, 10).map(subjectOf),
      message: `${stateOf(node.value)}, so nobody confirms that Pod ${names} has ended`,
      evidence: [overdue, evidenceOf(node.value)],
      ...(node.value.readySince === undefined ? {} : { since: node.value.readySince }),
      scope: 'cluster',
      remedies: nodeUnavailableRemedies({ node: node.value, pods }),
      blocksNamespace: `Pod ${names} on it is terminating and only its kubelet can confirm the end`,
    };
  }
  return {
    code: 'pod-not-confirmed',
    ...foldSubjects(pods),
    message: `is overdue, and the kubelet of node ${nodeName} has not confirmed that it has ended`,
    evidence: [
      overdue,
      node === undefined || !node.ok
        ? `node ${nodeName} could not be read${node?.ok === false ? `: ${node.failure.message}` : ''}`
        : evidenceOf(node.value),
    ],
    ...(first.deletionTimestamp === undefined ? {} : { since: first.deletionTimestamp }),
    scope: 'namespace',
    remedies: podNotConfirmedRemedies({ pod: first, nodeName }),
    blocksNamespace: `it should have ended at ${first.deletionTimestamp}`,
  };
}

function stateOf(node: NodeFacts): string {
  return node.exists ? 'is not ready' : 'does not exist any more';
}

function evidenceOf(node: NodeFacts): string {
  if (!node.exists) {
    return `there is no Node ${node.name}; the pod garbage collector removes such pods after about 60 s unless they have finalizers`;
  }
  const taints = node.taints.length === 0 ? '' : `; taints ${node.taints.join(', ')}`;
  return `Node ${node.name}: Ready=${node.ready ?? 'never reported'} (${node.readyReason ?? 'no condition'})${taints}`;
}
