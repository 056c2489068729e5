import { shortQuote } from '../../base/text.ts';
import { hasPodEnded } from '../../model/facts/workloads.ts';
import type { Remedy } from '../../model/finding.ts';
import type { PodFacts, Wanted } from '../../model/snapshot.ts';
import { type Actor, actorsOf, actorText } from '../actors.ts';
import { kubectl, lookRemedy, withRole } from '../commands.ts';
import { eventsAbout } from '../content.ts';
import type { Context } from '../context.ts';

// What the kubelet of a ready node waits for before it confirms the end of a pod. Its Events say it of a pod that was
// deleted before its namespace, which then accepts no new ones. Else the pod shows how far the kubelet came: containers,
// network and devices, volumes (kubernetes pkg/kubelet/kubelet.go, SyncTerminatingPod and SyncTerminatedPod).

/** Parts of a node: what they do not do, which pods wait for them, an Event about each, and the DaemonSets that run them. */
const PARTS: readonly {
  what: string;
  does: string;
  isLeft: (pod: PodFacts) => boolean;
  event: RegExp;
  agents?: RegExp;
}[] = [
  {
    ...{ what: 'network plugin', does: "release the pod's network" },
    isLeft: (pod) => isHalfway(pod) && pod.hasDevices !== true,
    // containerd and CRI-O, which quote libcni; an uninstalled plugin has no file or no configuration.
    event:
      /plugin type=|failed to find plugin |destroy network for (?:pod )?sandbox|networkPlugin cni failed|cni plugin not initialized/,
    agents:
      /calico|canal|cilium|flannel|kindnet|aws-node|antrea|multus|weave|ovn|kube-router|\bcni\b/,
  },
  {
    ...{ what: 'DRA driver', does: "release the pod's devices" },
    isLeft: (pod) => isHalfway(pod) && pod.hasDevices === true,
    ...{ event: /dynamic resources|(?:Unp|P)repareResources/i, agents: /\bdra\b/ },
  },
  {
    ...{ what: 'CSI driver', does: "unmount the pod's volume" },
    isLeft: (pod) => hasPodEnded(pod) && pod.claims.length > 0,
    ...{ event: /\b(?:un)?mount[\w.]* .{0,60}?volume \\{0,3}"/i, agents: /\bcsi\b/ },
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

function partOf(told: string | undefined, pods: readonly PodFacts[]) {
  return PARTS.find(({ event, isLeft }) =>
    told === undefined ? pods.every(isLeft) : event.test(told),
  );
}

/** Warnings about pods that are shut down as they should be: failed probes, ConfigMaps that were deleted first. */
const ORDINARY =
  /^(?:Unhealthy|Probe\w*|BackOff|DNSConfigForming|FailedScheduling|NodeNotReady|FailedToRetrieveImagePullSecret): |^FailedMount: .*(?:not registered|not found)$/;
const ENDING = /^(?:FailedKillPod|ExceededGracePeriod|\w*unmount\w*|\w*unprepare\w*): /i;

/** Returns the warnings about pods since their deletion, and of these the one that says what a kubelet waits for. */
function warningsAbout(context: Context, pods: readonly PodFacts[]) {
  const requested = pods.map(
    ({ deletionTimestamp = '', deletionGracePeriodSeconds = 0 }) =>
      Date.parse(deletionTimestamp) - 1_000 * deletionGracePeriodSeconds,
  );
  const warnings = eventsAbout(context, { objects: pods })
    .filter(({ type, at = '' }) => type === 'Warning' && Date.parse(at) >= Math.min(...requested))
    .toSorted((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1))
    .map(({ reason, message }) => `${reason}: ${message}`);
  const telling = warnings.filter((text) => !ORDINARY.test(text));
  return { warnings, told: telling.find((text) => ENDING.test(text)) ?? telling[0] };
}

/** Says what the kubelet of a node waits for, and how to end that. */
export function kubeletTrouble(
  context: Context,
  pods: readonly PodFacts[],
  node: string,
): { waits: string; quote: string | undefined; said: string[]; remedies: Remedy[] } {
  const { told, warnings } = warningsAbout(context, pods);
  const quote = told && shortQuote(told);
  const said = [...new Set(told === undefined ? warnings : [told, ...warnings])];
  const part = partOf(told, pods);
  const [{ name } = { name: '' }] = pods;
  const log = {
    text: `Read on node ${node} what its kubelet says of Pod ${name}: journalctl -u kubelet --since=-10min | grep ${name}`,
  };
  if (part === undefined) {
    const waits = `the kubelet of node ${node} has not confirmed that it has ended`;
    const report = { text: `Resolve what the kubelet of node ${node} reports` };
    return { waits, quote, said, remedies: [withRole('now', quote === undefined ? log : report)] };
  }
  const claims = [...new Set(pods.flatMap((pod) => pod.claims))];
  const claim = part.what === 'CSI driver' && claims.length === 1 ? ` (claim ${claims[0]})` : '';
  const fails = `${told === undefined ? 'most likely ' : ''}does not ${part.does}${claim}`;
  const repair = `Repair the ${part.what} on node ${node}`;
  const found = agentOf(context, agentsFor(context, part.agents, told), node);
  const waits = `on node ${node} the ${part.what} ${fails}`;
  const logs = quote === undefined ? [log] : [];
  if (found === undefined) {
    const [first, ...more] = [...logs, { text: `${repair}: it ${fails}` }];
    const remedies = [withRole('now', first as Remedy), ...more.map((one) => withRole('or', one))];
    return { waits, quote, said, remedies };
  }
  const { agent, trouble } = found;
  const who = actorText(agent);
  const runs = `which ${who} runs (${agent.ready} of ${agent.wanted} ready; it ${trouble})`;
  const where = ['-n', agent.namespace, '--field-selector', `spec.nodeName=${node}`, '-o', 'wide'];
  return {
    waits: `${waits}; ${who} ${trouble}`,
    ...{ quote, said },
    remedies: [
      withRole('now', { text: `${repair}, ${runs}: it ${fails}` }),
      lookRemedy(`See the pods of ${who} on node ${node}`, kubectl('get', 'pods', ...where)),
      ...logs.map((one) => withRole('look', one)),
    ],
  };
}

/** How Events name a plugin or driver; in its name, words that many have. */
const NAMES = [
  /(?:plugin type=|failed to find plugin )\\{0,3}"([\w.-]{1,100})/,
  /UniqueName: \\{0,3}"kubernetes\.io\/csi\/([\w.-]{1,100})\^/,
  /\b(?:driver|plugin)(?: name)? \\{0,3}"?([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+)/,
];
const COMMON = /^(?:.|csi|cni|dra|driver|plugin|shim|com|io|org|net|dev|k8s)$/;

/** Returns the DaemonSets that may run a part: those with all words of its name, where an Event says it. */
function agentsFor(context: Context, agents = /^$/, told = ''): Actor[] {
  const [name = ''] = NAMES.flatMap((pattern) => pattern.exec(told)?.[1] ?? []);
  const words = name.split(/[.-]/).filter((one) => one !== '' && !COMMON.test(one));
  const textOf = (one: Actor) => `${one.namespace} ${one.name} ${one.programs.join(' ')}`;
  const all = actorsOf(context)
    .filter(({ kind, isGone }) => kind === 'DaemonSet' && !isGone)
    .filter((one) => words.every((word) => textOf(one).includes(word)))
    .toSorted((a, b) => a.name.length - b.name.length);
  const usual = all.filter((one) => agents.test(textOf(one)));
  return words.length > 0 && usual.length === 0 ? all : usual;
}

/** Returns the one of these DaemonSets whose pod on the node is not ready; or, if none of them has one there, the only one. */
function agentOf(context: Context, all: readonly Actor[], node: string) {
  if (all.some(({ namespace }) => context.now.places[namespace]?.pods?.ok !== true))
    return undefined;
  const there = ({ pods }: Actor): PodFacts[] => pods.filter(({ nodeName }) => nodeName === node);
  const isThere = all.some((agent) => there(agent).length > 0);
  const [agent, ...others] = isThere
    ? all.filter((one) => there(one).some(({ ready }) => !ready))
    : all;
  // `calico-node` and `calico-node-windows`, `cilium` and `cilium-envoy`.
  const isOne = others.every(
    (one) => one.namespace === agent?.namespace && one.name.startsWith(`${agent.name}-`),
  );
  if (agent === undefined || !isOne) return undefined;
  const failing = there(agent).find(({ ready }) => !ready);
  const trouble = failing
    ? `has Pod ${failing.name} there, which is not ready`
    : 'has no pod there';
  return { agent, trouble };
}

/** Returns what to read about the parts for which kubelets wait: the DaemonSets, and then their pods. */
export function wantedAgents(context: Context, nodes: readonly PodFacts[][]): Partial<Wanted> {
  const parts = nodes.flatMap((pods) => {
    const { told } = warningsAbout(context, pods);
    const part = partOf(told, pods);
    return part ? [agentsFor(context, part.agents, told).slice(0, 5)] : [];
  });
  const agents = parts.flat();
  const places = agents.map(({ namespace }) => ({ namespace, sources: ['pods' as const] }));
  return parts.length === 0 ? {} : { cluster: ['daemonSets'], places };
}
