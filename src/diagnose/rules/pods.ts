import { listNames, shortQuote } from '../../base/text.ts';
import { formatDuration } from '../../base/time.ts';
import { CLAIM_PROTECTION, isBuiltIn } from '../../model/facts/metadata.ts';
import { hasPodEnded, isInGracePeriod, isOverdue } from '../../model/facts/workloads.ts';
import type { Remedy } from '../../model/finding.ts';
import { itemsIn, valueIn } from '../../model/read.ts';
import type { NodeFacts, ObjectFacts, PodFacts, Snapshot, Wanted } from '../../model/snapshot.ts';
import { partnerKey } from '../../model/snapshot.ts';
import { type Actor, actorsOf, actorText } from '../actors.ts';
import {
  fixRemedy,
  kubectl,
  lookRemedy,
  nameArgs,
  namespaceArgs,
  objectArgs,
  preventionRemedies,
  startRemedies,
  withRole,
} from '../commands.ts';
import { countsOf, detailOf, eventsAbout, servedType, terminatingPods } from '../content.ts';
import { type Context, remember } from '../context.ts';
import { isAdmissionError } from '../error-texts.ts';
import { isUnattended } from '../movement.ts';
import { foldSubjects, idsOfHeld, type RuleResult, resultId, subjectOf } from '../results.ts';
import { refusalOfContent } from './types.ts';

const namesOf = (pods: readonly PodFacts[]): string => listNames(pods.map(({ name }) => name));

/** Longer than a job can wait, in seconds: GitHub ends a job after 6 h. */
const ENDLESS_GRACE = 6 * 3_600;

/** Finds pods that have not ended, each finding with all of its pods: in their grace period, or overdue, by node. */
export const unendedPods = remember((context: Context) => {
  const { now, nowMs } = context;
  const inTime = terminatingPods(context)
    .filter((pod) => isInGracePeriod(pod, nowMs) && !isUnattended(now, pod))
    .sort((a, b) => (b.deletionTimestamp ?? '').localeCompare(a.deletionTimestamp ?? ''));
  const graceful = inTime.slice(0, 1).map((last) => {
    return { pods: inTime, result: gracePeriodResult(context, inTime, last) };
  });
  const overdue = [...overdueByNode(context)].map(([node, pods]) => {
    return { pods, result: overdueResult(context, node, pods) };
  });
  return [...graceful, ...overdue];
});

/**
 * Returns the finding about pods in their grace period. A pod's deletionTimestamp is the time of the request plus that period
 * (registry/core/pod/strategy.go, CheckGracefulDelete). On Kubernetes >= 1.33 all conditions are False meanwhile.
 */
function gracePeriodResult(context: Context, pods: PodFacts[], last: PodFacts): RuleResult {
  const { deletionTimestamp: until, deletionGracePeriodSeconds: seconds = 0, nodeName } = last;
  const grace = formatDuration(1_000 * seconds);
  const wait = `Give the pod more time: a timeout above the grace period of ${grace}`;
  const shorter = `let the containers of Pod ${last.name} end on SIGTERM, or lower its terminationGracePeriodSeconds`;
  const lower = preventionRemedies(context, shorter);
  const isEndless = seconds > ENDLESS_GRACE;
  // It waits for half of the grace period, or until its next list of all namespaces (--namespace-sync-period).
  const again = '; Kubernetes looks at the namespace again within 5 minutes';
  const force = forceRemedy(pods, isEndless ? 'now' : 'or', again);
  return {
    ...{ code: 'pod-grace-period', scope: 'namespace' },
    ...foldSubjects(pods),
    message: `is still shutting down: its grace period of ${grace} runs until ${until}`,
    evidence: [`deletionTimestamp ${until}, grace period ${grace}, node ${nodeName}`],
    remedies: isEndless ? [force, ...lower] : [fixRemedy(wait), ...lower, force],
  };
}

/** Reports whether no kubelet can confirm its end. The pod garbage collector deletes pods of a deleted node. */
export function isNodeLost({ nodes }: Snapshot, { nodeName }: PodFacts): boolean {
  const node = valueIn(nodes[nodeName ?? '']);
  return node !== undefined && node.ready !== 'True';
}

// What the kubelet of a ready node waits for before it confirms the end of a pod. Its Events say it of a pod that was
// deleted before its namespace, which then accepts no new ones. Else the pod shows how far the kubelet came: containers,
// network and devices, volumes (kubernetes pkg/kubelet/kubelet.go, SyncTerminatingPod and SyncTerminatedPod).

/** Parts of a node: what they do not do, which pods wait for them, an Event about each, and the DaemonSets that run them. */
interface Part {
  what: string;
  does: string;
  isLeft: (pod: PodFacts) => boolean;
  event: RegExp;
  agents?: RegExp;
  /** The objects by which a pod uses a driver. */
  claims?: { kind: string; of: (pod: PodFacts) => readonly string[] };
}

const PARTS: readonly Part[] = [
  {
    ...{ what: 'network plugin', does: "release the pod's network" },
    isLeft: (pod) => isHalfway(pod) && !pod.devices?.length,
    // containerd and CRI-O, which quote libcni; an uninstalled plugin has no file or no configuration.
    event:
      /plugin type=|failed to find plugin |destroy network for (?:pod )?sandbox|networkPlugin cni failed|cni plugin not initialized/,
    agents:
      /calico|canal|cilium|flannel|kindnet|aws-node|antrea|multus|weave|ovn|kube-router|\bcni\b/,
  },
  {
    ...{ what: 'DRA driver', does: "release the pod's devices" },
    isLeft: (pod) => isHalfway(pod) && !!pod.devices?.length,
    ...{ event: /dynamic resources|(?:Unp|P)repareResources/i, agents: /\bdra\b/ },
    claims: { kind: 'ResourceClaim', of: ({ devices = [] }) => devices },
  },
  {
    ...{ what: 'CSI driver', does: "unmount the pod's volume" },
    isLeft: (pod) => hasPodEnded(pod) && [...pod.claims, ...(pod.drivers ?? [])].length > 0,
    ...{ event: /\b(?:un)?mount[\w.]* .{0,60}?volume \\{0,3}"/i, agents: /\bcsi\b/ },
    claims: { kind: 'PersistentVolumeClaim', of: (pod) => pod.claims },
  },
  {
    ...{ what: 'container runtime', does: "end the pod's container" },
    isLeft: ({ hasStopped }) => hasStopped === false,
    event: /KillContainerError/,
  },
];

/** Reports whether its containers have ended, and its kubelet has not yet said that the pod has. */
function isHalfway(pod: PodFacts): boolean {
  return pod.hasStopped === true && !hasPodEnded(pod);
}

/** Warnings about pods that are shut down as they should be: failed probes, ConfigMaps that were deleted first. */
const ORDINARY =
  /^(?:Unhealthy|Probe\w*|BackOff|DNSConfigForming|FailedScheduling|NodeNotReady|FailedToRetrieveImagePullSecret): |^FailedMount: .*(?:not registered|not found)$/;
const ENDING = /^(?:FailedKillPod|ExceededGracePeriod|\w*unmount\w*|\w*unprepare\w*): /i;

type Wait = ReturnType<typeof waitOf>;

/** Returns the warnings about pods since their deletion, the one that says what their kubelet waits for, that part of the node, and who may run it. */
function waitOf(context: Context, pods: readonly PodFacts[]) {
  const requested = pods.map(
    ({ deletionTimestamp = '', deletionGracePeriodSeconds = 0 }) =>
      Date.parse(deletionTimestamp) - 1_000 * deletionGracePeriodSeconds,
  );
  const warnings = eventsAbout(context, { objects: pods })
    .filter(({ type, at = '' }) => type === 'Warning' && Date.parse(at) >= Math.min(...requested))
    .toSorted((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1))
    .map(({ reason, message }) => `${reason}: ${message}`);
  const telling = warnings.filter((text) => !ORDINARY.test(text));
  const told = telling.find((text) => ENDING.test(text)) ?? telling[0];
  const part = PARTS.find((one) => (told ? one.event.test(told) : pods.every(one.isLeft)));
  const drivers = part ? driversOf(context, part, pods, told) : [];
  const agents = drivers.map((driver) => ({ driver, all: agentsFor(context, part, driver) }));
  return { warnings, told, part, agents };
}

/** Returns the pods whose grace period is over, by node: only its kubelet may confirm that nothing runs any more (kubernetes/pkg/kubelet/kubelet_pods.go). */
const overdueByNode = remember((context: Context): Map<string, PodFacts[]> => {
  const { now, nowMs } = context;
  const overdue = terminatingPods(context).filter(
    (pod) => isOverdue(pod, nowMs) || (isInGracePeriod(pod, nowMs) && isUnattended(now, pod)),
  );
  return Map.groupBy(overdue, ({ nodeName = '' }) => nodeName);
});

/** Returns the finding about overdue pods of a node: it is lost, or its kubelet waits for something. */
function overdueResult(context: Context, nodeName: string, pods: PodFacts[]): RuleResult {
  const { forecast, nodes } = context.now;
  const read = nodes[nodeName];
  const node = valueIn(read);
  const names = namesOf(pods);
  const end = pods[0]?.deletionTimestamp;
  const wait = waitOf(context, pods);
  const { told, warnings } = wait;
  const because = `(${shortQuote(node?.readyReason ?? 'no reason')})`;
  const none = read?.ok ? 'does not exist' : 'was not read';
  const evidence = [
    `Pod ${names}${forecast === undefined ? `; grace period until ${end}` : ''}`,
    ...[...new Set(told === undefined ? warnings : [told, ...warnings])].slice(0, 5),
    `Node ${nodeName}: ${node ? `Ready=${node.ready} ${because}` : none}`,
  ];
  const force = forceRemedy(pods);
  if (read?.ok && node?.ready !== 'True') {
    const isFaulty = node?.ready === 'False';
    const lost = node === undefined ? 'no longer exists' : 'is not ready';
    return {
      code: 'pod-node-unavailable',
      subject: { apiVersion: 'v1', kind: 'Node', name: nodeName },
      examples: pods.slice(0, 10).map(subjectOf),
      message: `${lost}${isFaulty ? ` ${because}` : ''}, so no kubelet confirms the end of Pod ${names}`,
      ...{ evidence, since: node?.readySince },
      // A kubelet that reports itself as not ready may still end pods.
      certainty: forecast !== undefined && isFaulty ? 'unknown' : undefined,
      remedies: [...nodeRemedies(nodeName, node), force],
    };
  }
  const quote = told && shortQuote(told);
  const { waits, remedies } = kubeletTrouble(context, pods, nodeName, wait);
  const restart = `If nothing else helps, restart the container runtime or the kubelet on node ${nodeName} (with containerd: systemctl restart containerd kubelet); its other pods keep running`;
  return {
    code: 'pod-not-confirmed',
    ...foldSubjects(pods),
    message: `is overdue, and ${waits}${quote === undefined ? '' : `: ${quote}`}`,
    ...{ quote, evidence, since: end, scope: 'cluster' },
    remedies: [...remedies, force, withRole('or', { text: restart })],
  };
}

/** Says what the kubelet of a ready node waits for, by an Event (`told`) or by the pods, and how to end that. */
function kubeletTrouble(context: Context, pods: readonly PodFacts[], node: string, wait: Wait) {
  const { agents, part, told } = wait;
  const [pod = { kind: 'Pod', name: '' }] = pods;
  const awaited = `See what the kubelet of node ${node} waits for: a container, a volume to unmount, or a cgroup`;
  const see = lookRemedy(awaited, kubectl('describe', ...objectArgs(pod)));
  const log = `Read on node ${node} what its kubelet says of Pod ${pod.name}: journalctl -u kubelet --since=-10min | grep ${pod.name}`;
  if (part === undefined) {
    const fix = fixRemedy(told ? `Resolve what the kubelet of node ${node} reports` : log);
    const waits = `the kubelet of node ${node} has not confirmed that it has ended`;
    return { waits, remedies: told ? [fix, see] : [fix] };
  }
  const failing = agents.flatMap((one) => agentOf(context, one, node));
  const found = failing.length === 1 ? failing[0] : undefined;
  const driver = found?.driver ?? (agents.length === 1 ? agents[0]?.driver : undefined);
  // The Event names it.
  const what = `${part.what}${told === undefined && driver ? ` ${driver}` : ''}`;
  const claims = [...new Set(pods.flatMap((one) => part.claims?.of(one) ?? []))];
  const claim = claims.length === 1 ? ` (claim ${claims[0]})` : '';
  const fails = `${told === undefined ? 'most likely ' : ''}does not ${part.does}${claim}`;
  const waits = `on node ${node} the ${what} ${fails}`;
  const repair = `Repair the ${what} on node ${node}`;
  if (found === undefined) {
    const text = `${repair}: it ${fails}`;
    // Without an Event the part is a guess, which the log of the kubelet confirms.
    const remedies = told ? [fixRemedy(text), see] : [fixRemedy(log), withRole('or', { text })];
    return { waits, remedies };
  }
  const { agent, trouble } = found;
  const who = actorText(agent);
  const absent = `See which nodes ${who} selects, and what it tolerates: node ${node} has no pod of it`;
  const seeAgent = lookRemedy(
    found.pod ? `See why Pod ${found.pod.name} is not ready` : absent,
    kubectl('describe', ...objectArgs(found.pod ?? agent)),
  );
  const state = `${agent.ready} of ${agent.wanted} ready; it ${trouble}`;
  // What uses a driver needs it. A network plugin without pods may have been replaced by another one on purpose.
  const start =
    part.claims && agent.wanted === 0
      ? startRemedies(context, agent, `its pod on node ${node} can then ${part.does}`)
      : [fixRemedy(`${repair}, which ${who} runs (${state}): it ${fails}`)];
  const remedies = [...start, seeAgent, told ? see : withRole('look', { text: log })];
  return { waits: `${waits}; ${who} ${trouble}`, remedies };
}

/** Returns what ends the pods of a node: one that no longer exists, that reports a fault itself, or that is silent. */
function nodeRemedies(name: string, node: NodeFacts | undefined): Remedy[] {
  const wait =
    'Wait: the pod garbage collector deletes pods of a node that no longer exists within about a minute (not those with finalizers)';
  if (node === undefined) return [fixRemedy(wait)];
  const target = nameArgs('node', name);
  const fix =
    node.ready === 'False'
      ? `Fix what the kubelet of node ${name} reports: "${shortQuote(node.readyReason ?? 'no reason')}" (with containerd: systemctl restart containerd)`
      : `Start the machine or the kubelet of node ${name} again`;
  const drop = withRole('or', {
    text: `If the machine of node ${name} will not return, delete its Node object; the pod garbage collector then deletes its pods within about a minute`,
    command: kubectl('delete', ...target),
    risk: 'if the machine still runs, its pods keep running and Kubernetes does not know it',
  });
  const see = lookRemedy(`See the state of node ${name}`, kubectl('describe', ...target));
  const then = fixRemedy(`${fix}; the kubelet then confirms that the pods have ended`);
  return node.ready === 'False' ? [then, see] : [then, see, drop];
}

/** Returns the remedy that deletes pods at once. A shorter grace period does not reach containers that are being stopped (kubelet.go, SyncTerminatingPod). */
function forceRemedy(pods: readonly PodFacts[], role: Remedy['role'] = 'or', then = ''): Remedy {
  return {
    text: `Delete Pod ${namesOf(pods)} without waiting for a kubelet${then}`,
    command: deletePodsCommand(pods, '--grace-period=0', '--force'),
    risk: 'the Pod object is deleted although its containers may still run and use their volumes',
    role,
  };
}

function deletePodsCommand(pods: readonly PodFacts[], ...flags: string[]): string {
  const names = nameArgs('pod', ...pods.map(({ name }) => name));
  return kubectl('delete', ...names, ...namespaceArgs(pods[0]?.namespace), ...flags);
}

/** How Events name a plugin or driver; in its name, words that many have. */
const NAME =
  /(?:(?:plugin type=|failed to find plugin )\\{0,3}"|"kubernetes\.io\/csi\/|\b(?:driver|plugin)(?: name)? \\{0,3}"?(?=[\w-]{1,63}\.\w))([\w-]{1,63}(?:\.[\w-]{1,63}){0,9})/;
const COMMON = /^(?:.|csi|cni|dra|driver|plugin|shim|com|io|org|net|dev|k8s)$/;

/** Returns the plugin that an Event names, or else the drivers of what the pods use: at least one, whose name may not be known. */
function driversOf(context: Context, part: Part, pods: readonly PodFacts[], told?: string) {
  if (told !== undefined) return [NAME.exec(told)?.[1]];
  const claimed = claimsOf(context, part, pods).flatMap(({ object }) => {
    const volumes = volumesOf(context, object).flatMap((name) => {
      return valueIn(context.now.partners[partnerKey({ ...VOLUME, name })]) ?? [];
    });
    return [object, ...volumes].flatMap((one) => detailOf(context, one)?.names ?? []);
  });
  const own = part.claims?.kind === CLAIM ? pods.flatMap(({ drivers = [] }) => drivers) : [];
  const drivers = claimed.flatMap(({ field, name }) => (DRIVER.test(field) ? name : []));
  const all = [...new Set([...own, ...drivers])];
  return all.length > 0 ? all : [undefined];
}

const CLAIM = 'PersistentVolumeClaim';
const VOLUME = { group: '', kind: 'PersistentVolume', namespace: undefined };
/** Of a PersistentVolume, and of a device that a ResourceClaim was given. */
const DRIVER = /^(?:spec\.csi|status\.allocation\.devices\.results\[\])\.driver$/;

/** Returns the objects by which pods use the drivers of a part. */
function claimsOf({ now }: Context, { claims }: Part, pods: readonly PodFacts[]) {
  const names = pods.flatMap((pod) => claims?.of(pod) ?? []);
  return countsOf(now).flatMap(({ type, terminating, guarded }) => {
    const isMeant = type.kind === claims?.kind && isBuiltIn(type.group);
    const all = isMeant ? [...terminating, ...guarded].flatMap(({ examples }) => examples) : [];
    return all.flatMap((object) => (names.includes(object.name) ? { type, object } : []));
  });
}

function volumesOf(context: Context, claim: ObjectFacts): string[] {
  const { references = [] } = detailOf(context, claim) ?? {};
  return references.flatMap(({ kind, name }) => (kind === VOLUME.kind ? name : []));
}

/** Returns the DaemonSets that may run a part: that serve this driver, or whose names have all words of its name. */
function agentsFor(context: Context, { agents = /^$/ }: Partial<Part> = {}, driver = ''): Actor[] {
  const all = actorsOf(context).filter(({ kind, isGone }) => kind === 'DaemonSet' && !isGone);
  const serving = all.filter(({ serves = [] }) => serves.includes(driver));
  if (serving.length > 0) return serving;
  const words = driver.split(/[.-]/).filter((one) => one !== '' && !COMMON.test(one));
  const textOf = (one: Actor) => `${one.namespace} ${one.name} ${one.programs.join(' ')}`;
  const named = all.filter((one) => words.every((word) => textOf(one).includes(word)));
  const usual = named.filter((one) => agents.test(textOf(one)));
  return words.length > 0 && usual.length === 0 ? named : usual;
}

/** Returns the one of these DaemonSets whose pod on the node is not ready; or, if none of them has one there, the only one. */
function agentOf({ now }: Context, { all, driver }: Wait['agents'][number], node: string) {
  if (all.some(({ namespace }) => now.places[namespace]?.pods?.ok !== true)) return [];
  const failing = ({ pods }: Actor) => pods.find((pod) => pod.nodeName === node && !pod.ready);
  const isThere = all.some(({ pods }) => pods.some(({ nodeName }) => nodeName === node));
  const [agent, ...others] = all
    .filter((one) => !isThere || failing(one))
    .toSorted((a, b) => a.name.length - b.name.length);
  // `ebs-csi-node` and `ebs-csi-node-windows`, `cilium` and `cilium-envoy`.
  const isOne = others.every(
    (one) => one.namespace === agent?.namespace && one.name.startsWith(`${agent.name}-`),
  );
  if (agent === undefined || !isOne) return [];
  const pod = failing(agent);
  const trouble = pod ? `has Pod ${pod.name} there, which is not ready` : 'has no pod there';
  return [{ agent, driver, pod, trouble }];
}

/** Returns what to read about pods that end: Events, nodes, and of the parts for which kubelets wait the drivers, the DaemonSets, and then their pods. */
export function wantedForPods(context: Context): Partial<Wanted> {
  const { now, nowMs } = context;
  const nodes = terminatingPods(context)
    // A silent node is noticed within a minute.
    .filter((pod) => isOverdue(pod, nowMs) || (pod.deletionGracePeriodSeconds ?? 0) > 60)
    .flatMap(({ nodeName }) => nodeName ?? []);
  if (nodes.length === 0) return {};
  const volumes = servedType(context, { apiVersion: 'v1', kind: VOLUME.kind });
  const waits = [...overdueByNode(context).values()].flatMap((pods) => {
    const { agents, part, told } = waitOf(context, pods);
    return part ? { agents, details: told ? [] : claimsOf(context, part, pods) } : [];
  });
  const details = waits.flatMap((one) => one.details);
  const names = details.flatMap(({ object }) => volumesOf(context, object));
  const agents = waits.flatMap((one) => one.agents.flatMap(({ all }) => all.slice(0, 5)));
  const homes = agents.map(({ namespace }) => ({ namespace, sources: ['pods' as const] }));
  return {
    ...{ nodes, cluster: waits.length === 0 ? [] : ['daemonSets'], details },
    places: [{ namespace: now.namespace.name, sources: ['events'] }, ...homes],
    partners: volumes ? names.map((name) => ({ type: volumes, namespace: undefined, name })) : [],
  };
}

/**
 * Finds claims that a scheduled pod still names, finished pods included (pvc_protection_controller.go). No remedy removes
 * their finalizer: the data would be deleted with the claim while the pod uses it.
 */
export function volumeInUse(context: Context): RuleResult[] {
  const groups = countsOf(context.now).flatMap(({ terminating }) => terminating);
  return groups.flatMap(({ examples }) => examples.flatMap((one) => inUse(context, one) ?? []));
}

export function isClaimInUse(context: Context, object: ObjectFacts, finalizer: string): boolean {
  return finalizer === CLAIM_PROTECTION && usersOf(context, object).length > 0;
}

/** Returns the ids of the findings about an object that is terminating: its finalizers, the end of a pod, or the pods that use a claim. */
export function idsOfObject(context: Context, object: ObjectFacts): string[] {
  const used = inUse(context, object);
  if (used) return [resultId(used)];
  const own = unendedPods(context).filter(({ pods }) => pods.some(({ uid }) => uid === object.uid));
  return [...idsOfHeld(object), ...own.map(({ result }) => resultId(result))];
}

function usersOf({ now }: Context, { kind, finalizers, name }: ObjectFacts): PodFacts[] {
  const isProtected = kind === CLAIM && finalizers.includes(CLAIM_PROTECTION);
  const all = isProtected ? itemsIn(now.pods) : [];
  return all.filter(({ nodeName, claims }) => nodeName !== undefined && claims.includes(name));
}

function inUse(context: Context, claim: ObjectFacts): RuleResult | undefined {
  const pods = usersOf(context, claim);
  if (pods.length === 0) return undefined;
  const names = namesOf(pods);
  const staying = pods.filter((pod) => pod.deletionTimestamp === undefined);
  const text = `Delete the pods that use claim ${claim.name}; finished pods count too. Kubernetes then deletes the claim`;
  const deletion = fixRemedy(text, { command: deletePodsCommand(staying, '--wait=false') });
  // The namespace controller deletes pods first: admission refused the deletion of one that stays.
  const refusals = (staying.length === 0 ? [] : context.contentErrors)
    .filter(isAdmissionError)
    .map((error) => resultId(refusalOfContent(context, error)));
  return {
    code: 'volume-in-use',
    subject: subjectOf(claim),
    message: `is still used by Pod ${names}`,
    evidence: [
      `finalizer ${CLAIM_PROTECTION} stays while a scheduled pod uses the claim: ${names}`,
      ...staying.map(({ name }) => `Pod ${name} is not marked for deletion`),
    ],
    ...{ since: claim.deletionTimestamp, scope: 'namespace' },
    remedies: staying.length > 0 && refusals.length === 0 ? [deletion] : [],
    waitsFor: [...refusals, ...pods.flatMap((pod) => idsOfObject(context, pod))],
  };
}
