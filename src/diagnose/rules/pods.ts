import { listNames, shortQuote } from '../../base/text.ts';
import { formatDuration } from '../../base/time.ts';
import { CLAIM_PROTECTION, typeName } from '../../model/facts/metadata.ts';
import { isInGracePeriod, isOverdue } from '../../model/facts/workloads.ts';
import type { Remedy } from '../../model/finding.ts';
import { itemsIn, valueIn } from '../../model/read.ts';
import type { NodeFacts, ObjectFacts, PodFacts, Snapshot, Wanted } from '../../model/snapshot.ts';
import {
  kubectl,
  lookRemedy,
  nameArgs,
  namespaceArgs,
  objectArgs,
  preventionRemedies,
  withRole,
} from '../commands.ts';
import { groupsOf } from '../content.ts';
import type { Context } from '../context.ts';
import { isAdmissionError } from '../error-texts.ts';
import { isKubeletSilent } from '../movement.ts';
import { remember } from '../remember.ts';
import { foldSubjects, idsOfHeld, type RuleResult, resultId, subjectOf } from '../results.ts';
import { kubeletTrouble, wantedAgents } from './kubelet.ts';
import { refusalOfContent } from './types.ts';

export function terminatingPods({ now }: Context): PodFacts[] {
  return itemsIn(now.pods).filter(({ deletionTimestamp }) => deletionTimestamp !== undefined);
}

const namesOf = (pods: readonly PodFacts[]): string => listNames(pods.map(({ name }) => name));

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
  return [
    {
      ...{ code: 'pod-grace-period', scope: 'namespace', blocksNamespace: true },
      ...foldSubjects(pods),
      message: `is still shutting down: its grace period of ${grace} runs until ${until}`,
      evidence: [`deletionTimestamp ${until}, grace period ${grace}, node ${nodeName}`],
      remedies:
        seconds > ENDLESS_GRACE
          ? [withRole('now', forceRemedy(pods)), ...lower]
          : [withRole('now', { text: wait }), ...lower, withRole('or', forceRemedy(pods))],
    },
  ];
}

/** Reports whether no kubelet shuts the pod down, whatever grace period is left. */
function isUnattended(now: Snapshot, pod: PodFacts): boolean {
  const node = now.nodes[pod.nodeName ?? ''];
  return isKubeletSilent(now, pod) || (node?.ok === true && node.value === undefined);
}

/** Reports whether no kubelet can confirm its end. The pod garbage collector deletes pods of a deleted node. */
export function isNodeLost({ nodes }: Snapshot, { nodeName }: PodFacts): boolean {
  const node = valueIn(nodes[nodeName ?? '']);
  return node !== undefined && node.ready !== 'True';
}

/** Returns the pods whose grace period is over, by node: only its kubelet may confirm that nothing runs any more (kubernetes/pkg/kubelet/kubelet_pods.go). */
const overdueByNode = remember((context: Context): Map<string, PodFacts[]> => {
  const { now, nowMs } = context;
  const overdue = terminatingPods(context).filter(
    (pod) => isOverdue(pod, nowMs) || (isInGracePeriod(pod, nowMs) && isUnattended(now, pod)),
  );
  return Map.groupBy(overdue, ({ nodeName = '' }) => nodeName);
});

export function podOverdue(context: Context): RuleResult[] {
  return [...overdueByNode(context)].map(([name, pods]) => overdueResult(context, name, pods));
}

export function wantedNodeAgents(context: Context): Partial<Wanted> {
  return wantedAgents(context, [...overdueByNode(context).values()]);
}

/** Returns the finding, shared with other pods, that says why a terminating pod has not ended. */
export function findingsOfPod(context: Context, pod: PodFacts): RuleResult[] {
  const { nodeName = '', uid } = pod;
  const overdue = overdueByNode(context).get(nodeName) ?? [];
  if (overdue.some((one) => one.uid === uid)) return [overdueResult(context, nodeName, overdue)];
  return isInGracePeriod(pod, context.nowMs) ? podGracePeriod(context) : [];
}

function overdueResult(context: Context, nodeName: string, pods: PodFacts[]): RuleResult {
  const { forecast, nodes } = context.now;
  const read = nodes[nodeName];
  const node = valueIn(read);
  const names = namesOf(pods);
  const end = pods[0]?.deletionTimestamp;
  const { quote, remedies, said, waits } = kubeletTrouble(context, pods, nodeName);
  const because = `(${shortQuote(node?.readyReason ?? 'no reason')})`;
  const none = read?.ok ? 'does not exist' : 'was not read';
  const common = {
    evidence: [
      `Pod ${names}${forecast === undefined ? `; grace period until ${end}` : ''}`,
      ...said.slice(0, 5),
      `Node ${nodeName}: ${node ? `Ready=${node.ready} ${because}` : none}`,
    ],
    blocksNamespace: true,
  };
  const force = withRole('or', forceRemedy(pods));
  if (read?.ok && node?.ready !== 'True') {
    const isFaulty = node?.ready === 'False';
    const lost = node === undefined ? 'no longer exists' : 'is not ready';
    return {
      code: 'pod-node-unavailable',
      subject: { apiVersion: 'v1', kind: 'Node', name: nodeName },
      examples: pods.slice(0, 10).map(subjectOf),
      message: `${lost}${isFaulty ? ` ${because}` : ''}, so no kubelet confirms the end of Pod ${names}`,
      ...common,
      since: node?.readySince,
      // A kubelet that reports itself as not ready may still end pods.
      certainty: forecast !== undefined && isFaulty ? 'unknown' : undefined,
      remedies: [...nodeRemedies(nodeName, node), force],
    };
  }
  const see = `See what the kubelet of node ${nodeName} waits for: a container, a volume to unmount, or a cgroup`;
  const restart = `If nothing else helps, restart the container runtime or the kubelet on node ${nodeName} (with containerd: systemctl restart containerd kubelet); its other pods keep running`;
  return {
    code: 'pod-not-confirmed',
    ...foldSubjects(pods),
    message: `is overdue, and ${waits}${quote === undefined ? '' : `: ${quote}`}`,
    ...{ quote, ...common, since: end, scope: 'cluster' },
    remedies: [
      ...remedies,
      ...(quote === undefined
        ? []
        : [lookRemedy(see, kubectl('describe', ...objectArgs(pods[0] as PodFacts)))]),
      force,
      withRole('or', { text: restart }),
    ],
  };
}

/** Returns what ends the pods of a node: one that no longer exists, that reports a fault itself, or that is silent. */
function nodeRemedies(name: string, node: NodeFacts | undefined): Remedy[] {
  if (node === undefined) {
    const text =
      'Wait: the pod garbage collector deletes pods of a node that no longer exists within about a minute (not those with finalizers)';
    return [withRole('now', { text })];
  }
  const target = nameArgs('node', name);
  const isReporting = node.ready === 'False';
  const fix = isReporting
    ? `Fix what the kubelet of node ${name} reports: "${shortQuote(node.readyReason ?? 'no reason')}" (with containerd: systemctl restart containerd)`
    : `Start the machine or the kubelet of node ${name} again`;
  const drop = withRole('or', {
    text: `If the machine of node ${name} will not return, delete its Node object; the pod garbage collector then deletes its pods within about a minute`,
    command: kubectl('delete', ...target),
    risk: 'if the machine still runs, its pods keep running and Kubernetes does not know it',
  });
  return [
    withRole('now', { text: `${fix}; the kubelet then confirms that the pods have ended` }),
    lookRemedy(`See the state of node ${name}`, kubectl('describe', ...target)),
    ...(isReporting ? [] : [drop]),
  ];
}

/**
 * Returns the remedy that deletes pods at once. A shorter grace period does not reach containers that are being stopped
 * (kubernetes pkg/kubelet/kubelet.go: SyncTerminatingPod does not heed that its context is cancelled).
 */
function forceRemedy(pods: readonly PodFacts[]): Remedy {
  return {
    text: `Delete Pod ${namesOf(pods)} without waiting for a kubelet`,
    command: deletePodsCommand(pods, '--grace-period=0', '--force'),
    risk: 'the Pod object is deleted although its containers may still run and use their volumes',
  };
}

function deletePodsCommand(pods: readonly PodFacts[], ...flags: string[]): string {
  const names = nameArgs('pod', ...pods.map(({ name }) => name));
  return kubectl('delete', ...names, ...namespaceArgs(pods[0]?.namespace), ...flags);
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
