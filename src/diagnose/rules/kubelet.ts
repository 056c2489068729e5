import type { Remedy } from '../../model/finding.ts';
import type { PodFacts, Wanted } from '../../model/snapshot.ts';
import { type Actor, actorsOf, actorText } from '../actors.ts';
import { kubectl, lookRemedy, withRole } from '../commands.ts';
import { type Context, eventsAbout, shortQuote } from '../context.ts';

// What the kubelet of a ready node waits for before it confirms the end of a pod, by its Events. It reports a
// sandbox or container that it cannot stop (kubernetes pkg/kubelet/kubelet.go, SyncTerminatingPod); for an unmount or
// devices that are not released, often only the mount or preparation that failed before.

export interface KubeletTrouble {
  /** All its warnings, the most telling first. */
  said: string[];
  /** The warning that says what it waits for. */
  why: string | undefined;
  part: NodePart | undefined;
}

/** A part of a node for which its kubelet waits. */
interface NodePart {
  /** "network plugin calico" does not "release the pod's network"; "CSI driver x" not "unmount volume data". */
  text: string;
  does: string;
  /** The name of the plugin or driver; empty if the Event does not say it. */
  name: string;
  /** A word in the names of workloads that run such parts. */
  word: string;
}

/** The name of a driver: in the name of a volume, or as the kubelet calls it. */
const DRIVERS = [
  /UniqueName: \\{0,3}"kubernetes\.io\/csi\/([\w.-]{1,100})\^/,
  /\b(?:driver|plugin)(?: name)? \\{0,3}"?([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+)/,
];

/** The parts: a text about each, where it says the part's name, and what the part does not do. */
const PARTS = [
  {
    what: 'network plugin',
    // containerd and CRI-O, which quote libcni; an uninstalled plugin has no file or no configuration.
    text: /plugin type=|failed to find plugin |destroy network for (?:pod )?sandbox|networkPlugin cni failed|cni plugin not initialized/,
    names: [/(?:plugin type=|failed to find plugin )\\{0,3}"([\w.-]{1,100})/],
    ...{ does: "release the pod's network", word: '', object: undefined, of: '' },
  },
  {
    what: 'DRA driver',
    text: /dynamic resources|(?:Unp|P)repareResources/i,
    ...{ names: DRIVERS, does: "release the pod's devices", word: 'dra', of: 'of ResourceClaim ' },
    object:
      /\b(?:ResourceClaim \\{0,3}"?(?:[\w.-]{1,63}\/)?|claim \\{0,3}"?[\w.-]{1,63}\/)(?<name>[\w.-]{1,253})/,
  },
  {
    what: 'CSI driver',
    text: /\b(?:un)?mount[\w.]* .{0,60}?volume \\{0,3}"/i,
    ...{ names: DRIVERS, does: "unmount the pod's volume", word: 'csi', of: '' },
    object: /\bvolume \\{0,3}"(?<name>[^"\\]{1,253})/,
  },
  {
    what: 'container runtime',
    text: /KillContainerError/,
    ...{ names: [], does: "end the pod's container", word: '', of: '' },
    object: /"KillContainer\\{0,3}" for \\{0,3}"(?<name>[\w.-]{1,63})/,
  },
];

function partIn(event: string, pods: readonly PodFacts[]): NodePart | undefined {
  const row = PARTS.find(({ text }) => text.test(event));
  if (row === undefined) return undefined;
  const { what, word } = row;
  const name = row.names.flatMap((pattern) => pattern.exec(event)?.[1] ?? [])[0] ?? '';
  const object = row.object?.exec(event)?.groups?.['name'];
  const does = object === undefined ? row.does : `${row.does} ${row.of}${object}`;
  const claims = [...new Set(pods.flatMap((pod) => pod.claims))];
  // The claims of a StatefulSet begin with the name of the volume.
  const claim =
    claims.length === 1 ? claims[0] : claims.find((one) => one.startsWith(`${object}-`));
  const isClaimed = word === 'csi' && object !== undefined && claim !== undefined;
  const text = name === '' ? `the ${what}` : `${what} ${name}`;
  return { text, does: isClaimed ? `${does} (claim ${claim})` : does, name, word };
}

/** Warnings about pods that are shut down as they should be: failed probes, ConfigMaps that were deleted first. */
const ORDINARY =
  /^(?:Unhealthy|Probe\w*|BackOff|DNSConfigForming|FailedScheduling|NodeNotReady|FailedToRetrieveImagePullSecret): |^FailedMount: .*(?:not registered|not found)$/;
const ENDING = /^(?:FailedKillPod|ExceededGracePeriod|\w*unmount\w*|\w*unprepare\w*): /i;

/** Reads the warnings about pods since their deletion. */
export function kubeletTrouble(context: Context, pods: readonly PodFacts[]): KubeletTrouble {
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
  return {
    said: [...new Set([...(told === undefined ? [] : [told]), ...warnings])],
    why: told && shortQuote(told),
    part: told === undefined ? undefined : partIn(told, pods),
  };
}

/** Words that the names of many plugins and drivers have. */
const COMMON = /^(?:csi|cni|dra|driver|plugin|shim|com|io|org|net|dev|k8s)$/;

/** Returns the DaemonSet whose name, or else whose programs or namespace, have all words of the part's name, if it is one. */
function agentOf(context: Context, { name, word }: NodePart): Actor | undefined {
  const words = name.split(/[.-]/).filter((one) => one.length > 1 && !COMMON.test(one));
  const fits = (text: string): boolean => words.every((one) => text.includes(one));
  const rank = (one: Actor): number => (fits(one.name) ? 2 : 0) + (one.name.includes(word) ? 1 : 0);
  const all = actorsOf(context)
    .filter(({ kind, isGone }) => kind === 'DaemonSet' && !isGone)
    .filter((one) => fits(`${one.namespace} ${one.name} ${one.programs.join(' ')}`))
    .toSorted((a, b) => rank(b) - rank(a) || a.name.length - b.name.length);
  const [first, ...others] = all;
  if (first === undefined || words.length === 0) return undefined;
  // `calico-node` and `calico-node-windows`, `cilium` and `cilium-envoy`.
  const isOne = others.every(
    (one) =>
      rank(one) < rank(first) ||
      (one.namespace === first.namespace && one.name.startsWith(`${first.name}-`)),
  );
  return isOne ? first : undefined;
}

/** Returns what to read about the parts for which kubelets wait: the DaemonSets, and then their pods. */
export function wantedAgents(
  context: Context,
  nodes: readonly PodFacts[][],
): Partial<Pick<Wanted, 'cluster' | 'places'>> {
  const parts = nodes.flatMap((pods) => kubeletTrouble(context, pods).part ?? []);
  const agents = parts.flatMap((part) => agentOf(context, part) ?? []);
  const places = agents.map(({ namespace }) => ({ namespace, sources: ['pods' as const] }));
  return parts.length === 0 ? {} : { cluster: ['daemonSets'], places };
}

/** Returns the remedies for what the kubelet of a node reports. */
export function kubeletRemedies(
  context: Context,
  { part, why }: KubeletTrouble,
  node: string,
): Remedy[] {
  if (why === undefined) return [];
  if (part === undefined) {
    return [withRole('now', { text: `Resolve what the kubelet of node ${node} reports` })];
  }
  const agent = agentOf(context, part);
  const trouble = agent && troubleThere(context, agent, node);
  const runs = agent
    ? `, which ${actorText(agent)} runs (${[readyText(agent), trouble].filter(Boolean).join('; it ')})`
    : '';
  const text = `Repair ${part.text} on node ${node}${runs}: it does not ${part.does}`;
  const repair = withRole('now', { text });
  if (agent === undefined) return [repair];
  const where = ['-n', agent.namespace, '--field-selector', `spec.nodeName=${node}`, '-o', 'wide'];
  const see = `See the pods of ${actorText(agent)} on node ${node}`;
  return [repair, lookRemedy(see, kubectl('get', 'pods', ...where))];
}

/** Says what is wrong with the pod of a part on a node; empty if nothing was seen. */
export function partTrouble(context: Context, { part }: KubeletTrouble, node: string): string {
  const agent = part && agentOf(context, part);
  const trouble = agent && troubleThere(context, agent, node);
  return trouble ? `; ${actorText(agent)} (${readyText(agent)}) ${trouble}` : '';
}

const readyText = ({ ready, wanted }: Actor): string => `${ready} of ${wanted} ready`;

function troubleThere(context: Context, { namespace, pods }: Actor, node: string): string {
  const here = pods.filter(({ nodeName }) => nodeName === node);
  const isRead = context.now.places[namespace]?.pods?.ok === true;
  const [other] = here.filter((pod) => !pod.ready);
  if (other !== undefined) return `has Pod ${other.name} there, which is not ready`;
  return isRead && here.length === 0 ? 'has no pod there' : '';
}
