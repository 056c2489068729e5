import type { PodFacts } from '../../model/snapshot.ts';
import type { Draft, View } from '../draft.ts';
import { CONFIRMATION_MS } from '../movement.ts';
import { podGraceRemedies } from '../remedies/pods.ts';
import { foldSubjects } from '../subjects.ts';

/**
 * A pod's deletionTimestamp is the time of the request plus its grace period, so until then its
 * containers may still be shutting down (kubernetes/pkg/registry/core/pod/strategy.go,
 * CheckGracefulDelete). On Kubernetes >= 1.33 all conditions are False meanwhile.
 */
export function podGracePeriod(view: View): Draft[] {
  const pods = view.now.pods.ok
    ? view.now.pods.value.filter((pod) => inGrace(pod, view.nowMs))
    : [];
  if (pods.length === 0) return [];
  pods.sort((a, b) => (b.deletionTimestamp ?? '').localeCompare(a.deletionTimestamp ?? ''));
  const last = pods[0] as PodFacts;
  const until = last.deletionTimestamp ?? '';
  return [
    {
      code: 'pod-grace-period',
      ...foldSubjects(pods),
      message: `is still shutting down: its grace period of ${last.deletionGracePeriodSeconds ?? 0} s runs until ${until}`,
      evidence: [
        `deletionTimestamp ${until}, deletionGracePeriodSeconds ${last.deletionGracePeriodSeconds ?? 0}, node ${last.nodeName ?? ''}`,
      ],
      scope: 'namespace',
      remedies: podGraceRemedies({ pod: last }),
      blocksNamespace: 'pods are deleted first, and its grace period still runs',
    },
  ];
}

/** Grace 0 means that the kubelet has confirmed, or that no node ever had the pod. */
export function inGrace(pod: PodFacts, nowMs: number): boolean {
  return (
    pod.nodeName !== undefined &&
    (pod.deletionGracePeriodSeconds ?? 0) > 0 &&
    Date.parse(pod.deletionTimestamp ?? '') + CONFIRMATION_MS > nowMs
  );
}
