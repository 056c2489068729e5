import { formatDuration } from '../../base/time.ts';
import { CLAIM_PROTECTION, typeName } from '../../model/facts/metadata.ts';
import { isInGracePeriod } from '../../model/facts/workloads.ts';
import { itemsIn, valueIn } from '../../model/read.ts';
import type { ObjectFacts, PodFacts, Snapshot } from '../../model/snapshot.ts';
import { preventionRemedies, withRole } from '../commands.ts';
import { groupsOf, terminatingPods } from '../content.ts';
import type { Context } from '../context.ts';
import { isAdmissionError } from '../error-texts.ts';
import { isUnattended } from '../movement.ts';
import { foldSubjects, idsOfHeld, type RuleResult, resultId, subjectOf } from '../results.ts';
import {
  deletePodsCommand,
  forceRemedy,
  namesOf,
  overdueByNode,
  overdueResult,
} from './kubelet.ts';
import { refusalOfContent } from './types.ts';

/** Longer than a job can wait, in seconds: GitHub ends a job after 6 h. */
const ENDLESS_GRACE = 6 * 3_600;

/**
 * Finds pods within their grace period. A pod's deletionTimestamp is the time of the request plus that period
 * (registry/core/pod/strategy.go, CheckGracefulDelete). On Kubernetes >= 1.33 all conditions are False meanwhile.
 */
export function podGracePeriod(context: Context): RuleResult[] {
  const { now, nowMs } = context;
  const pods = terminatingPods(context)
    .filter((pod) => isInGracePeriod(pod, nowMs) && !isUnattended(now, pod))
    .sort((a, b) => (b.deletionTimestamp ?? '').localeCompare(a.deletionTimestamp ?? ''));
  const [last] = pods;
  if (last === undefined) return [];
  const { deletionTimestamp: until, deletionGracePeriodSeconds: seconds = 0, nodeName } = last;
  const grace = formatDuration(1_000 * seconds);
  const wait = `Give the pod more time: a timeout above the grace period of ${grace}`;
  const lower = preventionRemedies(
    context,
    `let the containers of Pod ${last.name} end on SIGTERM, or lower its terminationGracePeriodSeconds`,
  );
  const { text, ...rest } = forceRemedy(pods);
  // It waits for half of the grace period, or until its next list of all namespaces (--namespace-sync-period).
  const force = {
    text: `${text}; Kubernetes looks at the namespace again within 5 minutes`,
    ...rest,
  };
  return [
    {
      ...{ code: 'pod-grace-period', scope: 'namespace', blocksNamespace: true },
      ...foldSubjects(pods),
      message: `is still shutting down: its grace period of ${grace} runs until ${until}`,
      evidence: [`deletionTimestamp ${until}, grace period ${grace}, node ${nodeName}`],
      remedies:
        seconds > ENDLESS_GRACE
          ? [withRole('now', force), ...lower]
          : [withRole('now', { text: wait }), ...lower, withRole('or', force)],
    },
  ];
}

/** Reports whether no kubelet can confirm its end. The pod garbage collector deletes pods of a deleted node. */
export function isNodeLost({ nodes }: Snapshot, { nodeName }: PodFacts): boolean {
  const node = valueIn(nodes[nodeName ?? '']);
  return node !== undefined && node.ready !== 'True';
}

/** Returns the finding, shared with other pods, that says why a terminating pod has not ended. */
export function findingsOfPod(context: Context, pod: PodFacts): RuleResult[] {
  const { nodeName = '', uid } = pod;
  const overdue = overdueByNode(context).get(nodeName) ?? [];
  if (overdue.some((one) => one.uid === uid)) return [overdueResult(context, nodeName, overdue)];
  return isInGracePeriod(pod, context.nowMs) ? podGracePeriod(context) : [];
}

/**
 * Finds claims that a scheduled pod still names, finished pods included (pvc_protection_controller.go). No remedy removes
 * their finalizer: the data would be deleted with the claim while the pod uses it.
 */
export function volumeInUse(context: Context): RuleResult[] {
  return groupsOf(context.now)
    .filter(({ type }) => typeName(type) === 'persistentvolumeclaims')
    .flatMap(({ examples }) => examples)
    .flatMap((claim) => claimResults(context, claim));
}

export function isClaimInUse(context: Context, object: ObjectFacts, finalizer: string): boolean {
  return finalizer === CLAIM_PROTECTION && usersOf(context, object).length > 0;
}

/** Returns the ids of the findings about an object that is terminating: its finalizers, or the pods that use a claim. */
export function idsOfObject(context: Context, object: ObjectFacts): string[] {
  const [inUse] = claimResults(context, object);
  return inUse === undefined ? idsOfHeld(object) : [resultId(inUse)];
}

function usersOf({ now }: Context, { finalizers, name }: ObjectFacts): PodFacts[] {
  return itemsIn(now.pods).filter(
    ({ nodeName, claims }) =>
      finalizers.includes(CLAIM_PROTECTION) && nodeName !== undefined && claims.includes(name),
  );
}

function claimResults(context: Context, claim: ObjectFacts): RuleResult[] {
  const pods = usersOf(context, claim);
  if (pods.length === 0) return [];
  const names = namesOf(pods);
  const staying = pods.filter((pod) => pod.deletionTimestamp === undefined);
  const deletion = withRole('now', {
    text: `Delete the pods that use claim ${claim.name}; finished pods count too. Kubernetes then deletes the claim`,
    command: deletePodsCommand(staying, '--wait=false'),
  });
  // The namespace controller deletes pods first: admission refused the deletion of one that stays.
  const refusals = (staying.length === 0 ? [] : context.contentErrors)
    .filter(isAdmissionError)
    .map((error) => resultId(refusalOfContent(context, error)));
  return [
    {
      code: 'volume-in-use',
      subject: subjectOf(claim),
      message: `is still used by Pod ${names}`,
      evidence: [
        `finalizer ${CLAIM_PROTECTION} stays while a scheduled pod uses the claim: ${names}`,
        ...staying.map(({ name }) => `Pod ${name} is not marked for deletion`),
      ],
      ...{ since: claim.deletionTimestamp, scope: 'namespace', blocksNamespace: true },
      remedies: staying.length > 0 && refusals.length === 0 ? [deletion] : [],
      waitsFor: [
        ...refusals,
        ...pods.flatMap((pod) => [...idsOfHeld(pod), ...findingsOfPod(context, pod).map(resultId)]),
      ],
    },
  ];
}
