import type { Remedy } from '../../model/finding.ts';
import type { PodFacts, Wanted } from '../../model/snapshot.ts';
import { type Actor, actorsOf, actorText } from '../actors.ts';
import { kubectl, lookRemedy, withRole } from '../commands.ts';
import { type Context, eventsAbout, listNames, shortQuote } from '../context.ts';

// What the kubelet of a ready node waits for before it confirms the end of a pod, by its Events. It reports a
// sandbox or container that it cannot stop (kubernetes pkg/kubelet/kubelet.go, SyncTerminatingPod); for an unmount or
// devices that are not released, often only the mount or preparation that failed before.

/** What a kubelet reports about pods that it does not end. */
export interface KubeletTrouble {
  /** All its warnings, the most telling first. */
  said: string[];
  /** The warning that says what it waits for. */
  why: string | undefined;
  part: NodePart | undefined;
}

/** A part of a node for which its kubelet waits. */
interface NodePart {
  /** "network plugin calico". */
  text: string;
  /** The name of the plugin or driver; empty if the Event does not say it. */
  name: string;
  /** "release the pod's network". */
  does: string;
  /** A word in the names of workloads that run such parts. */
  word: string;
}

/** Warnings about pods that are shut down as they should be: failed probes, ConfigMaps that were deleted first. */
const ORDINARY =
  /^(?:Unhealthy|Probe\w*|BackOff|DNSConfigForming|FailedScheduling|NodeNotReady|FailedToRetrieveImagePullSecret): |^FailedMount: .*(?:not registered|not found)$/;
const ENDING = /^(?:FailedKillPod|ExceededGracePeriod|\w*unmount\w*|\w*unprepare\w*): /i;

/** Reads the warnings about pods since their deletion. */
export function kubeletTrouble(context: Context, pods: readonly PodFacts[]): KubeletTrouble {
  const since = Math.min(
    ...pods.map(
      ({ deletionTimestamp, deletionGracePeriodSeconds = 0 }) =>
        Date.parse(deletionTimestamp ?? '') - 1_000 * deletionGracePeriodSeconds,
    ),
  );
  const warnings = eventsAbout(context, { objects: pods })
    .filter(({ type, at = '' }) => type === 'Warning' && Date.parse(at) >= since)
    .map(({ reason, message, at = '' }) => ({ at, text: `${reason}: ${message}` }))
    .map((one) => ({ ...one, part: partIn(one.text) }))
    .map((one) => ({
      ...one,
      rank: ORDINARY.test(one.text) ? 3 : ENDING.test(one.text) ? 0 : one.part ? 1 : 2,
    }))
    .toSorted((a, b) => a.rank - b.rank || (a.at < b.at ? 1 : -1));
  const told = warnings.find(({ rank }) => rank < 3);
  return {
    said: [...new Set(warnings.map(({ text }) => text))],
    why: told && shortQuote(told.text),
    part: told?.part,
  };
}

/** A name as the runtime quotes it, once more inside of each other message. */
const QUOTED = '\\\\{0,3}"(?<name>[\\w.-]{1,100})';
/** containerd and CRI-O, which quote libcni; an uninstalled plugin has no file or no configuration. */
const NETWORK = [
  new RegExp(`(?:plugin type=|failed to find plugin )${QUOTED}`),
  /destroy network for (?:pod )?sandbox|networkPlugin cni failed|cni plugin not initialized/,
];
const DEVICES = [/dynamic resources|UnprepareResources|PrepareResources/i];
const VOLUME = [/\b(?:un)?mount[\w.]* .{0,60}?volume \\{0,3}"(?<name>[^"\\]{1,253})/i];
const DRIVERS = [
  /UniqueName: \\{0,3}"kubernetes\.io\/csi\/(?<name>[\w.-]{1,100})\^/,
  /\b(?:driver|plugin)(?: name)? \\{0,3}"?(?<name>[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+)/,
];
const CLAIM = [
  /\b(?:Resource)?[Cc]laim (?!not\b|info\b)\\{0,3}"?(?<name>[\w.-]{1,253}(?:\/[\w.-]{1,253})?)/,
];

/** Returns the name that the first pattern which fits finds; empty if it finds none. */
function nameBy(patterns: readonly RegExp[], text: string): string | undefined {
  const found = patterns.map((pattern) => pattern.exec(text)).find((match) => match !== null);
  return found && (found.groups?.['name'] ?? '');
}

function partIn(text: string): NodePart | undefined {
  const part = (what: string, name: string, does: string, word: string): NodePart => ({
    ...{ text: name === '' ? `the ${what}` : `${what} ${name}`, name, does, word },
  });
  const plugin = nameBy(NETWORK, text);
  if (plugin !== undefined) return part('network plugin', plugin, "release the pod's network", '');
  const driver = nameBy(DRIVERS, text) ?? '';
  if (nameBy(DEVICES, text) !== undefined) {
    const claim = nameBy(CLAIM, text);
    const what = claim === undefined ? "the pod's devices" : `claim ${claim}`;
    return part('DRA driver', driver, `release ${what}`, 'dra');
  }
  const volume = nameBy(VOLUME, text);
  return volume === undefined
    ? undefined
    : part('CSI driver', driver, `unmount volume ${volume}`, 'csi');
}

/** Words that the names of many plugins and drivers have. */
const COMMON = /^(?:csi|cni|dra|driver|plugin|shim|com|io|org|net|dev|k8s)$/;

/** Returns the DaemonSet whose name, or else whose programs or namespace, have all words of the part's name, if it is one. */
function agentOf(context: Context, { name, word }: NodePart): Actor | undefined {
  const words = name.split(/[.-]/).filter((one) => one.length > 1 && !COMMON.test(one));
  const fits = (text: string): boolean => words.every((one) => text.includes(one));
  const all = actorsOf(context).filter(({ kind, isGone }) => kind === 'DaemonSet' && !isGone);
  const own = all.filter((one) => fits(one.name));
  const wide = all.filter((one) => fits(`${one.namespace} ${one.name} ${one.programs.join(' ')}`));
  const special = (own.length > 0 ? own : wide).filter((one) => one.name.includes(word));
  const found = [special, own, wide].find((list) => list.length > 0) ?? [];
  // `calico-node` and `calico-node-windows`, `cilium` and `cilium-envoy`.
  const [first, ...others] = found.toSorted((a, b) => a.name.length - b.name.length);
  const isOne = others.every(
    (one) => one.namespace === first?.namespace && one.name.startsWith(`${first.name}-`),
  );
  return words.length > 0 && isOne ? first : undefined;
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
  const runs = agent === undefined ? '' : `, which ${agentText(context, agent, node)}`;
  const text = `Repair ${part.text} on node ${node}${runs}: it does not ${part.does}`;
  const repair = withRole('now', { text });
  if (agent === undefined) return [repair];
  const where = ['--field-selector', `spec.nodeName=${node}`, '-o', 'wide'];
  return [
    repair,
    lookRemedy(
      `See the pods of ${actorText(agent)} on node ${node}`,
      kubectl('get', 'pods', '-n', agent.namespace, ...where),
    ),
  ];
}

function agentText(context: Context, agent: Actor, node: string): string {
  const { namespace, pods, ready, wanted } = agent;
  const here = pods.filter(({ nodeName }) => nodeName === node);
  const states = here.map((pod) => `Pod ${pod.name} there is ${pod.ready ? '' : 'not '}ready`);
  const isRead = context.now.places[namespace]?.pods?.ok === true;
  const none = isRead && here.length === 0 ? '; it has no pod there' : '';
  const state = states.length === 0 ? none : `; ${listNames(states)}`;
  return `${actorText(agent)} runs (${ready} of ${wanted} ready${state})`;
}
