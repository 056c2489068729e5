import { CLAIM_PROTECTION, NODE_TYPE } from '../../model/facts/metadata.ts';
import { hasPodEnded, isInGracePeriod, isOverdue } from '../../model/facts/workloads.ts';
import type { Remedy } from '../../model/finding.ts';
import {
  type NodeFacts,
  type ObjectFacts,
  type PodFacts,
  partnerKey,
  type Snapshot,
  type Wanted,
} from '../../model/snapshot.ts';
import { type Actor, actorsOf, actorText } from '../actors.ts';
import { admissionResult } from '../admission/judge.ts';
import {
  kubectl,
  lookRemedy,
  nameArgs,
  namespaceArgs,
  objectArgs,
  preventionRemedies,
  withRole,
} from '../commands.ts';
import {
  type Context,
  eventsAbout,
  foldSubjects,
  groupsOf,
  itemsIn,
  type Link,
  linksTo,
  linksToHeld,
  listNames,
  type RuleResult,
  shortQuote,
  subjectOf,
  typeName,
  valueIn,
} from '../context.ts';
import { isAdmissionError } from '../error-texts.ts';
import { isKubeletReporting, isKubeletSilent } from '../movement.ts';

/** Returns the terminating pods. */
export function terminatingPods({ now }: Context): PodFacts[] {
  return itemsIn(now.pods).filter(({ deletionTimestamp }) => deletionTimestamp !== undefined);
}

/** Longer than a deletion is expected to take, in seconds. */
const LONG_GRACE = 3_600;
/** Longer than a job can wait: GitHub ends a job after 6 h. */
const ENDLESS_GRACE = 6 * 3_600;

/**
 * Finds pods of a forecast whose grace period is longer than a deletion should take. Most containers end at once, but
 * this is not known before.
 */
export function podLongGrace({ now, nowMs }: Context): RuleResult[] {
  const graceOf = ({ graceSeconds = 0 }: PodFacts): number => graceSeconds;
  const pods = itemsIn(now.forecast?.present.pods)
    .filter((pod) => pod.nodeName !== undefined && !hasPodEnded(pod) && graceOf(pod) > LONG_GRACE)
    .toSorted((a, b) => graceOf(b) - graceOf(a));
  const [last] = pods;
  if (last === undefined || now.namespace.deletionTimestamp === undefined) return [];
  const seconds = graceOf(last);
  const until = new Date(nowMs + 1_000 * seconds).toISOString().replace(/\.\d+/, '');
  return [
    {
      code: 'pod-grace-period',
      ...foldSubjects(pods),
      message: `may take until ${until} to shut down: its terminationGracePeriodSeconds is ${seconds}`,
      evidence: [`terminationGracePeriodSeconds ${seconds}, node ${last.nodeName}`],
      scope: 'namespace',
      certainty: 'unknown',
      remedies: [
        withRole('now', {
          text: `Delete Pod ${last.name} with a shorter grace period before the namespace, or lower its terminationGracePeriodSeconds`,
        }),
      ],
      blocksNamespace: 'pods are deleted first, and its containers may still run',
    },
  ];
}

/**
 * Finds pods within their grace period. A pod's deletionTimestamp is the time of the request plus that period, so its
 * containers may still be shutting down (kubernetes/pkg/registry/core/pod/strategy.go,
 * CheckGracefulDelete). On Kubernetes >= 1.33 all conditions are False meanwhile.
 */
export function podGracePeriod(context: Context): RuleResult[] {
  const pods = terminatingPods(context)
    .filter((pod) => isInGracePeriod(pod, context.nowMs) && !isUnattended(context.now, pod))
    .sort((a, b) => (b.deletionTimestamp ?? '').localeCompare(a.deletionTimestamp ?? ''));
  const [last] = pods;
  if (last === undefined) return [];
  const until = last.deletionTimestamp ?? '';
  const seconds = last.deletionGracePeriodSeconds ?? 0;
  const isOver = Date.parse(until) <= context.nowMs;
  const end = isOver
    ? `ended at ${until}; its kubelet may take a moment to confirm that`
    : `runs until ${until}`;
  const isEndless = seconds > ENDLESS_GRACE && !isOver;
  const names = listNames(pods.map(({ name }) => name));
  const shorten = withRole(isEndless ? 'now' : 'or', {
    text: `Shorten the grace period of Pod ${names} now`,
    command: deletePodsCommand(context, pods, '--grace-period=1', '--wait=false'),
    risk: 'its containers are killed before they have finished shutting down',
  });
  return [
    {
      code: 'pod-grace-period',
      ...foldSubjects(pods),
      message: `is still shutting down: its grace period of ${seconds} s ${end}`,
      evidence: [
        `deletionTimestamp ${until}, deletionGracePeriodSeconds ${seconds}, node ${last.nodeName ?? ''}`,
        ...(isNodeLost(context.now, last) ? [`node ${last.nodeName} is not ready`] : []),
      ],
      scope: 'namespace',
      remedies: [
        ...(isEndless
          ? []
          : [
              withRole('now', {
                text: `Give the pod more time: a timeout above the grace period of ${seconds} s`,
              }),
            ]),
        ...preventionRemedies(
          context,
          `let the containers of Pod ${last.name} end on SIGTERM, or lower its terminationGracePeriodSeconds`,
        ),
        ...(isOver ? [] : [shorten]),
      ],
      blocksNamespace: 'pods are deleted first, and its containers may still run',
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

/**
 * Finds pods whose grace period is over. Only the kubelet of their node may confirm that nothing runs any
 * more (kubernetes/pkg/kubelet/kubelet_pods.go), so the node decides which finding it is.
 */
export function podOverdue(context: Context): RuleResult[] {
  return [...overdueByNode(context)].map(([name, pods]) => nodeResult(context, name, pods));
}

const NODE_STAYS =
  'its Node object is being deleted, and the pod garbage collector deletes its pods once it is gone';

/** Returns the Node objects of such pods that are being deleted themselves: a finalizer holds them. */
export function terminatingNodes(context: Context): ObjectFacts[] {
  return [...overdueByNode(context).keys()].flatMap((name) => nodeObject(context, name) ?? []);
}

function nodeObject({ now }: Context, name: string): ObjectFacts | undefined {
  const found = valueIn(now.partners[partnerKey({ ...NODE_TYPE, namespace: undefined, name })]);
  return found?.deletionTimestamp === undefined ? undefined : found;
}

function overdueByNode(context: Context): Map<string, PodFacts[]> {
  const { now, nowMs } = context;
  const overdue = terminatingPods(context).filter(
    (pod) => isOverdue(pod, nowMs) || (isInGracePeriod(pod, nowMs) && isUnattended(now, pod)),
  );
  return Map.groupBy(overdue, ({ nodeName = '' }) => nodeName);
}

/** Returns the finding, shared with other pods, that says why a terminating pod has not ended. */
export function findingsOfPod(context: Context, pod: PodFacts): RuleResult[] {
  const { nodeName = '', name } = pod;
  const overdue = overdueByNode(context).get(nodeName) ?? [];
  if (overdue.some((one) => one.name === name)) return [nodeResult(context, nodeName, overdue)];
  return isInGracePeriod(pod, context.nowMs) ? podGracePeriod(context) : [];
}

/** Returns warnings since the deletion: about containers, volumes, sandboxes. Newest first. */
function troubleEnding(context: Context, pods: readonly PodFacts[]): string[] {
  const since = Math.min(
    ...pods.map(
      ({ deletionTimestamp, deletionGracePeriodSeconds = 0 }) =>
        Date.parse(deletionTimestamp ?? '') - 1_000 * deletionGracePeriodSeconds,
    ),
  );
  return eventsAbout(context, { objects: [...pods] })
    .filter(({ type, at }) => type === 'Warning' && Date.parse(at ?? '') >= since)
    .toSorted((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1))
    .map(({ reason, message }) => `${reason}: ${message}`);
}

function nodeResult(context: Context, nodeName: string, pods: PodFacts[]): RuleResult {
  const { now } = context;
  const first = pods[0] as PodFacts;
  const read = now.nodes[nodeName];
  const names = listNames(pods.map(({ name }) => name));
  const isForeseen = now.forecast !== undefined;
  const overdue = isForeseen ? `on it: Pod ${names}` : overdueText(context, pods, names);
  const node = valueIn(read);
  const said = [...new Set(troubleEnding(context, pods))];
  const heldNode = nodeObject(context, nodeName);
  if (read?.ok === true && node?.ready !== 'True') {
    return {
      code: 'pod-node-unavailable',
      subject: { apiVersion: 'v1', kind: 'Node', name: nodeName },
      examples: pods.slice(0, 10).map(subjectOf),
      message: `${nodeWords(node)}, so no kubelet confirms the end of Pod ${names}`,
      evidence: [overdue, nodeEvidence(nodeName, read), ...said.slice(0, 5)],
      since: node?.readySince,
      // A kubelet that reports itself as not ready may still end pods.
      certainty: isForeseen && node?.ready === 'False' ? 'unknown' : undefined,
      remedies: nodeRemedies(context, nodeName, node, pods),
      waitsFor: heldNode === undefined ? [] : linksToHeld(heldNode, NODE_STAYS),
      blocksNamespace: `Pod ${names} on it is terminating and only its kubelet can confirm the end`,
    };
  }
  const why = said[0] === undefined ? undefined : shortQuote(said[0]);
  const isMachine = node?.isVirtual !== true;
  const restart = isMachine
    ? `If nothing else helps, restart the container runtime or the kubelet on node ${nodeName} ${RESTART}`
    : `If nothing else helps, restart the virtual kubelet of node ${nodeName}`;
  const part = nodePartIn(said);
  return {
    code: 'pod-not-confirmed',
    ...foldSubjects(pods),
    message: `is overdue, and the kubelet of node ${nodeName} has not confirmed that it has ended${why === undefined ? '' : `: ${why}`}`,
    quote: why,
    evidence: [overdue, ...said.slice(0, 5), nodeEvidence(nodeName, read)],
    since: first.deletionTimestamp,
    scope: 'cluster',
    remedies: [
      ...(part !== undefined
        ? partRemedies(context, part, nodeName)
        : why === undefined
          ? []
          : [withRole('now', { text: `Resolve what the kubelet of node ${nodeName} reports` })]),
      lookRemedy(
        `See what the kubelet of node ${nodeName} waits for: a container, a volume to unmount, or a cgroup`,
        kubectl('describe', ...objectArgs(first)),
      ),
      forceDelete(context, pods, `Delete Pod ${names} without waiting for the kubelet`),
      withRole('or', { text: restart }),
    ],
    blocksNamespace: `it should have ended at ${first.deletionTimestamp}`,
  };
}

/** A part of a node for which its kubelet waits, by the kubelet's Events. */
interface NodePart {
  /** "network plugin calico". */
  text: string;
  /** The name of the plugin or driver; empty if the Event does not say it. */
  name: string;
  /** "release the network of the pod". */
  does: string;
}

const NETWORK = /plugin type=\\?"(?<name>[\w.-]{1,100})/;
const CSI_DRIVER = /UniqueName: \\?"kubernetes\.io\/csi\/(?<name>[\w.-]{1,100})\^/;
const DYNAMIC = /dynamic resources|UnprepareResources/i;
const DRIVER = /\b(?:driver|plugin)(?: name)? \\?"?(?<name>[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+)/;

/** Reads the kubelet's warnings: of a network plugin, a volume, or a driver of claimed devices (kubernetes pkg/kubelet). */
function nodePartIn(warnings: readonly string[]): NodePart | undefined {
  for (const text of warnings) {
    const network = NETWORK.exec(text)?.groups?.['name'];
    if (network !== undefined) {
      return {
        text: `network plugin ${network}`,
        name: network,
        does: "release the pod's network",
      };
    }
    if (DYNAMIC.test(text)) {
      const name = DRIVER.exec(text)?.groups?.['name'] ?? '';
      const claim = /\bclaim \\?"?([\w./-]{1,300})/.exec(text)?.[1];
      const does = `release ${claim === undefined ? "the pod's devices" : `claim ${claim}`}`;
      return { text: `DRA driver ${name}`.trim(), name, does };
    }
    const volume = /\bUnmount.{0,200}? volume \\?"([^"\\]{1,253})/.exec(text)?.[1];
    if (volume !== undefined) {
      const name = CSI_DRIVER.exec(text)?.groups?.['name'] ?? '';
      const driver = name === '' ? 'the driver of the volume' : `CSI driver ${name}`;
      return { text: driver, name, does: `unmount volume ${volume}` };
    }
  }
  return undefined;
}

/** Words of drivers' names that many have. */
const COMMON_WORD = /^(?:csi|driver|plugin|com|io|org|net|dev|k8s)$/;

/** Returns the only DaemonSet whose own name, or else whose programs, contain all words of the part's name. */
function agentOf(context: Context, { name }: NodePart): Actor | undefined {
  const words = name.split('.').filter((word) => word.length > 1 && !COMMON_WORD.test(word));
  if (words.length === 0) return undefined;
  const fits = (text: string): boolean => words.every((word) => text.includes(word));
  const all = actorsOf(context).filter(({ kind }) => kind === 'DaemonSet');
  const named = all.filter((one) => fits(one.name));
  const found = named.length > 0 ? named : all.filter(({ programs }) => fits(programs.join(' ')));
  return found.length === 1 ? found[0] : undefined;
}

/** Returns what to read about the parts for which kubelets wait: the DaemonSets, and then their pods. */
export function wantedNodeAgents(context: Context): Pick<Wanted, 'cluster' | 'places'> | undefined {
  const parts = [...overdueByNode(context).values()].flatMap(
    (pods) => nodePartIn(troubleEnding(context, pods)) ?? [],
  );
  if (parts.length === 0) return undefined;
  const agents = parts.flatMap((part) => agentOf(context, part) ?? []);
  const places = agents.map(({ namespace }) => ({ namespace, sources: ['pods' as const] }));
  return { cluster: ['daemonSets'], places };
}

function partRemedies(context: Context, part: NodePart, node: string): Remedy[] {
  const agent = agentOf(context, part);
  const repair = (who: string): Remedy =>
    withRole('now', {
      text: `Repair ${part.text} on node ${node}${who}: it does not ${part.does}`,
    });
  if (agent === undefined) return [repair('')];
  const { namespace, pods, ready, wanted } = agent;
  const here = pods.filter(({ nodeName }) => nodeName === node);
  const states = here.map((pod) => `Pod ${pod.name} there is ${pod.ready ? '' : 'not '}ready`);
  const counts = `${ready} of ${wanted} ready${states.length === 0 ? '' : `; ${listNames(states)}`}`;
  return [
    repair(`, which ${actorText(agent)} runs (${counts})`),
    lookRemedy(
      `See the pods of ${actorText(agent)} on node ${node}`,
      kubectl(
        ...['get', 'pods', '-n', namespace, '-o', 'wide'],
        ...['--field-selector', `spec.nodeName=${node}`],
      ),
    ),
  ];
}

const RESTART =
  '(with containerd: systemctl restart containerd kubelet); its other pods keep running';

function overdueText({ nowMs }: Context, pods: readonly PodFacts[], names: string): string {
  const end = pods[0]?.deletionTimestamp;
  return pods.some((pod) => isInGracePeriod(pod, nowMs))
    ? `terminating: Pod ${names}; no kubelet ends it when the grace period is over at ${end}`
    : `overdue: Pod ${names}; the grace period ended at ${end}`;
}

function nodeWords(node: NodeFacts | undefined): string {
  if (node === undefined) return 'no longer exists';
  const state = node.isVirtual ? 'is a virtual node that is not ready' : 'is not ready';
  return isKubeletReporting(node)
    ? `${state} (${shortQuote(node.readyReason ?? 'no reason')})`
    : state;
}

function nodeEvidence(name: string, read: Snapshot['nodes'][string] | undefined): string {
  if (read?.ok !== true) {
    return `node ${name} could not be read${read === undefined ? '' : `: ${read.failure.message}`}`;
  }
  const node = read.value;
  if (node === undefined) {
    return `there is no Node ${name}; the pod garbage collector deletes such pods after about 60 s unless they have finalizers`;
  }
  const taints = node.taints.length === 0 ? '' : `; taints ${[...new Set(node.taints)].join(', ')}`;
  const end =
    node.deletionTimestamp === undefined
      ? ''
      : `; it has been terminating since ${node.deletionTimestamp}`;
  return `Node ${name}: Ready=${node.ready ?? 'never reported'} (${node.readyReason ?? 'no condition'})${taints}${end}`;
}

function nodeRemedies(
  context: Context,
  name: string,
  node: NodeFacts | undefined,
  pods: readonly PodFacts[],
): Remedy[] {
  if (node === undefined) {
    return [
      withRole('now', {
        text: 'Wait: the pod garbage collector deletes pods of a node that no longer exists within about a minute (not those with finalizers)',
      }),
      forceDelete(context, pods, 'If they stay, delete them without waiting for a kubelet'),
    ];
  }
  const see = lookRemedy(
    `See the state of node ${name}`,
    kubectl('describe', ...nameArgs('node', name)),
  );
  const without = forceDelete(context, pods, 'Delete the pods without waiting for a kubelet');
  if (isKubeletReporting(node)) {
    return [
      withRole('now', {
        text: `Fix what the kubelet of node ${name} reports: "${shortQuote(node.readyReason ?? '')}"${node.isVirtual ? '' : ' (with containerd: systemctl restart containerd)'}. The kubelet then confirms that the pods have ended`,
      }),
      see,
      without,
    ];
  }
  // Its deletion was requested, and its machine will not return.
  if (node.deletionTimestamp !== undefined) return [without, see];
  if (node.isVirtual) {
    return [
      withRole('now', {
        text: `Start the virtual kubelet of node ${name} again: no machine is behind this node, but a program, often a pod of this cluster. It then confirms that the pods have ended`,
      }),
      see,
      withRole('or', {
        text: `If the virtual kubelet of node ${name} was removed for good, delete its Node object; the pod garbage collector then deletes its pods within about a minute`,
        command: kubectl('delete', ...nameArgs('node', name)),
        risk: ELSEWHERE,
      }),
      { ...without, risk: ELSEWHERE },
    ];
  }
  return [
    withRole('now', {
      text: `Start the machine or the kubelet of node ${name} again; the kubelet then confirms that the pods have ended`,
    }),
    see,
    withRole('or', {
      text: `If the machine of node ${name} will not return, delete its Node object; the pod garbage collector then deletes its pods within about a minute`,
      command: kubectl('delete', ...nameArgs('node', name)),
      risk: 'if the machine still runs, its pods keep running and Kubernetes does not know it',
    }),
    withRole('or', {
      text: `If the machine of node ${name} is off but will return, mark it as out of service; its pods and volume attachments are then removed`,
      command: kubectl(
        ...['taint', 'nodes', name, 'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute'],
      ),
      risk: 'if the machine still runs, two nodes may write to one volume; remove the taint afterwards',
    }),
    without,
  ];
}

const ELSEWHERE =
  'the containers that the virtual kubelet started elsewhere, for example in a cloud, keep running and may cost money';

function forceDelete(context: Context, pods: readonly PodFacts[], text: string): Remedy {
  return withRole('or', {
    text,
    command: deletePodsCommand(context, pods, '--grace-period=0', '--force'),
    risk: 'the Pod object is deleted although its containers may still run and use their volumes',
  });
}

/** From this number of pods on, a command selects them, if a selector means them all and no others. */
const MANY = 10;

/** Returns the command that deletes all these pods. */
function deletePodsCommand(
  { now }: Context,
  pods: readonly PodFacts[],
  ...flags: string[]
): string {
  const uids = new Set(pods.map(({ uid }) => uid));
  const [{ nodeName = '' } = {}] = pods;
  const isEach = (others: readonly PodFacts[]): boolean => others.every(({ uid }) => uids.has(uid));
  const onNode = itemsIn(now.pods).filter((pod) => pod.nodeName === nodeName);
  const isSelected = pods.length > MANY && onNode.length >= pods.length && isEach(onNode);
  const which = isSelected
    ? ['pods', '--field-selector', `spec.nodeName=${nodeName}`]
    : nameArgs('pod', ...pods.map(({ name }) => name));
  return kubectl('delete', ...which, ...namespaceArgs(pods[0]?.namespace), ...flags);
}

/**
 * Finds claims in use. A claim that a scheduled pod still names keeps its protection finalizer, finished pods included
 * (kubernetes/pkg/controller/volume/pvcprotection/pvc_protection_controller.go). No remedy removes
 * it: the data would be deleted with the claim while the pod uses it.
 */
export function volumeInUse(context: Context): RuleResult[] {
  return groupsOf(context.now)
    .filter(({ type }) => typeName(type) === 'persistentvolumeclaims')
    .flatMap(({ examples }) => examples)
    .filter(({ finalizers }) => finalizers.includes(CLAIM_PROTECTION))
    .flatMap((claim) => claimResults(context, claim));
}

export function isClaimInUse(context: Context, object: ObjectFacts, finalizer: string): boolean {
  return finalizer === CLAIM_PROTECTION && usersOf(context, object).length > 0;
}

/** Returns links to the findings about an object that is terminating: its finalizers, or the pods that use a claim. */
export function linksToObject(context: Context, object: ObjectFacts, because: string): Link[] {
  const [inUse] = object.finalizers.includes(CLAIM_PROTECTION) ? claimResults(context, object) : [];
  return inUse === undefined ? linksToHeld(object, because) : linksTo([inUse], because);
}

function usersOf({ now }: Context, claim: ObjectFacts): PodFacts[] {
  return itemsIn(now.pods).filter(
    (pod) => pod.nodeName !== undefined && pod.claims.includes(claim.name),
  );
}

function claimResults(context: Context, claim: ObjectFacts): RuleResult[] {
  const pods = usersOf(context, claim);
  if (pods.length === 0) return [];
  const names = listNames(pods.map(({ name }) => name));
  const staying = pods.filter((pod) => pod.deletionTimestamp === undefined);
  const deletion = withRole('now', {
    text: `Delete the pods that use claim ${claim.name}; finished pods count too. Kubernetes then deletes the claim`,
    command: deletePodsCommand(context, staying, '--wait=false'),
  });
  // The namespace controller deletes pods first: admission refused the deletion of one that stays.
  const refused =
    staying.length === 0
      ? []
      : (context.conditions.contentFailure?.errors ?? [])
          .filter(isAdmissionError)
          .map((error) => admissionResult(context, error, 'DELETE of pods'));
  return [
    {
      code: 'volume-in-use',
      subject: subjectOf(claim),
      message: `is still used by Pod ${names}`,
      evidence: [
        `finalizer ${CLAIM_PROTECTION} stays while a scheduled pod uses the claim: ${names}`,
        ...staying.map(
          ({ name }) => `Pod ${name} is not marked for deletion, or its deletion was refused`,
        ),
      ],
      since: claim.deletionTimestamp,
      scope: 'namespace',
      remedies: staying.length > 0 && refused.length === 0 ? [deletion] : [],
      blocksNamespace: `it is terminating and Pod ${names} still uses it`,
      waitsFor: [
        ...pods.flatMap((pod) => podFindings(context, pod)),
        ...linksTo(refused, `it refuses the deletion of Pod ${names}`),
      ],
    },
    ...refused,
  ];
}

/** Returns links to the findings of the pod, which also hold its claim. */
function podFindings(context: Context, pod: PodFacts): Link[] {
  const because = `Pod ${pod.name} uses the claim`;
  // The finding may stand for many pods under the name of the first.
  const group = groupsOf(context.now).find(({ examples }) =>
    examples.some(({ uid }) => uid === pod.uid),
  );
  const held = linksToHeld(group?.examples[0] ?? pod, because);
  return [...held, ...linksTo(findingsOfPod(context, pod), because)];
}
