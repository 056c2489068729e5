import type { ObjectFacts, PodFacts } from '../../model/snapshot.ts';
import { type Draft, findingId, type View } from '../draft.ts';
import { volumeInUseRemedies } from '../remedies/pods.ts';
import { namesOf, subjectOf } from '../subjects.ts';

export const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';

/**
 * A claim that a scheduled pod still names keeps its protection finalizer, finished pods included
 * (kubernetes/pkg/controller/volume/pvcprotection/pvc_protection_controller.go).
 */
export function volumeInUse(view: View): Draft[] {
  return view.now.content
    .filter(({ type }) => type.group === '' && type.resource === 'persistentvolumeclaims')
    .flatMap(({ read }) => (read.ok ? read.value.terminating : []))
    .flatMap((group) => group.examples)
    .filter((claim) => isClaimInUse(view, claim, CLAIM_PROTECTION))
    .map((claim) => toDraft(view, claim));
}

export function isClaimInUse(view: View, object: ObjectFacts, finalizer: string): boolean {
  return (
    finalizer === CLAIM_PROTECTION &&
    object.kind === 'PersistentVolumeClaim' &&
    object.finalizers.includes(CLAIM_PROTECTION) &&
    usersOf(view, object).length > 0
  );
}

function usersOf(view: View, claim: ObjectFacts): PodFacts[] {
  if (!view.now.pods.ok) return [];
  return view.now.pods.value.filter(
    (pod) => pod.nodeName !== undefined && pod.claims.includes(claim.name),
  );
}

function toDraft(view: View, claim: ObjectFacts): Draft {
  const pods = usersOf(view, claim);
  const names = namesOf(pods);
  return {
    code: 'volume-in-use',
    subject: subjectOf(claim),
    message: `is still used by Pod ${names}`,
    evidence: [
      `finalizer ${CLAIM_PROTECTION} stays while a scheduled pod names the claim: ${names}`,
    ],
    ...(claim.deletionTimestamp === undefined ? {} : { since: claim.deletionTimestamp }),
    scope: 'namespace',
    remedies: volumeInUseRemedies({ claim, pods }),
    blocksNamespace: `it is terminating and Pod ${names} still uses it`,
    waitsFor: pods.flatMap((pod) => podFindingIds(view, pod)),
  };
}

/** Whatever holds the pod holds the claim. Ids that no rule produced are dropped by the graph. */
function podFindingIds(view: View, pod: PodFacts): { id: string; because: string }[] {
  const because = `Pod ${pod.name} names the claim`;
  const held = pod.finalizers.map((finalizer) => ({
    id: findingId('object-finalizer', foldedSubject(view, pod, finalizer), finalizer),
    because,
  }));
  const node = { apiVersion: 'v1', kind: 'Node', name: pod.nodeName ?? '' };
  return [
    ...held,
    { id: findingId('pod-grace-period', subjectOf(pod)), because },
    { id: findingId('pod-not-confirmed', subjectOf(pod)), because },
    { id: findingId('pod-node-unavailable', node), because },
  ];
}

/** The pod's finding may stand for many pods, under the name of the first. */
function foldedSubject(view: View, pod: PodFacts, finalizer: string): ReturnType<typeof subjectOf> {
  const group = view.now.content
    .filter(({ type }) => type.group === '' && type.resource === 'pods')
    .flatMap(({ read }) => (read.ok ? read.value.terminating : []))
    .find(
      ({ examples, finalizers }) =>
        finalizers.includes(finalizer) && examples.some((example) => example.uid === pod.uid),
    );
  return subjectOf(group?.examples[0] ?? pod);
}
