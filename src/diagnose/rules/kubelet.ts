import type { Remedy } from '../../model/finding.ts';
import type { PodFacts, Wanted } from '../../model/snapshot.ts';
import { type Actor, actorsOf, actorText } from '../actors.ts';
import { kubectl, lookRemedy, withRole } from '../commands.ts';
import { type Context, eventsAbout, shortQuote } from '../context.ts';

// What the kubelet of a ready node waits for before it confirms the end of a pod, by its Events. It reports a
// sandbox or container that it cannot stop (kubernetes pkg/kubelet/kubelet.go, SyncTerminatingPod); for an unmount or
// devices that are not released, often only the mount or preparation that failed before.

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
const DRIVER =
  /UniqueName: \\{0,3}"kubernetes\.io\/csi\/([\w.-]{1,100})\^|\b(?:driver|plugin)(?: name)? \\{0,3}"?([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+)/;

/** The parts: a text about each, where it says the part's name, and what the part does not do to which object. */
const PARTS = [
  {
    ...{ what: 'network plugin', does: "release the pod's network", word: '' },
    // containerd and CRI-O, which quote libcni; an uninstalled plugin has no file or no configuration.
    text: /plugin type=|failed to find plugin |destroy network for (?:pod )?sandbox|networkPlugin cni failed|cni plugin not initialized/,
    name: /(?:plugin type=|failed to find plugin )\\{0,3}"([\w.-]{1,100})/,
    object: undefined,
  },
  {
    ...{ what: 'DRA driver', does: "release the pod's devices of ResourceClaim", word: 'dra' },
    ...{ text: /dynamic resources|(?:Unp|P)repareResources/i, name: DRIVER },
    object:
      /\b(?:ResourceClaim \\{0,3}"?(?:[\w.-]{1,63}\/)?|claim \\{0,3}"?[\w.-]{1,63}\/)([\w.-]{1,253})/,
  },
  {
    ...{ what: 'CSI driver', does: "unmount the pod's volume", word: 'csi' },
    ...{ text: /\b(?:un)?mount[\w.]* .{0,60}?volume \\{0,3}"/i, name: DRIVER },
    object: /\bvolume \\{0,3}"([^"\\]{1,253})/,
  },
  {
    ...{ what: 'container runtime', does: "end the pod's container", word: '' },
    ...{ text: /KillContainerError/, name: undefined },
    object: /"KillContainer\\{0,3}" for \\{0,3}"([\w.-]{1,63})/,
  },
];

function partIn(event: string, pods: readonly PodFacts[]): NodePart | undefined {
  const row = PARTS.find(({ text }) => text.test(event));
  if (row === undefined) return undefined;
  const { does, what, word } = row;
  const find = (pattern?: RegExp): string => pattern?.exec(event)?.slice(1).find(Boolean) ?? '';
  const [name, object] = [find(row.name), find(row.object)];
  const text = name === '' ? `the ${what}` : `${what} ${name}`;
  if (object === '') return { text, does: does.replace(' of ResourceClaim', ''), name, word };
  const claims = [...new Set(pods.flatMap((pod) => pod.claims))];
  // The claims of a StatefulSet begin with the name of the volume.
  const named = claims.find((one) => one.startsWith(`${object}-`));
  const claim = claims.length === 1 ? claims[0] : named;
  const of = word === 'csi' && claim ? ` (claim ${claim})` : '';
  return { text, does: `${does} ${object}${of}`, name, word };
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
  const part = told === undefined ? undefined : partIn(told, pods);
  if (part === undefined) {
    const waits = `the kubelet of node ${node} has not confirmed that it has ended`;
    const text = `Resolve what the kubelet of node ${node} reports`;
    return { waits, quote, said, remedies: quote === undefined ? [] : [withRole('now', { text })] };
  }
  const missing = `does not ${part.does}`;
  const repair = `Repair ${part.text} on node ${node}`;
  const agent = agentOf(context, part);
  if (agent === undefined) {
    const remedies = [withRole('now', { text: `${repair}: it ${missing}` })];
    return { waits: `on node ${node} ${part.text} ${missing}`, quote, said, remedies };
  }
  const who = actorText(agent);
  const ready = `${agent.ready} of ${agent.wanted} ready`;
  const here = agent.pods.filter(({ nodeName }) => nodeName === node);
  const isRead = context.now.places[agent.namespace]?.pods?.ok === true;
  const failing = here.find((pod) => !pod.ready);
  const none = isRead && here.length === 0 ? 'has no pod there' : '';
  const trouble = failing ? `has Pod ${failing.name} there, which is not ready` : none;
  const runs = `which ${who} runs (${ready}${trouble && `; it ${trouble}`})`;
  const where = ['-n', agent.namespace, '--field-selector', `spec.nodeName=${node}`, '-o', 'wide'];
  return {
    waits: `on node ${node} ${part.text} ${missing}${trouble && `; ${who} (${ready}) ${trouble}`}`,
    ...{ quote, said },
    remedies: [
      withRole('now', { text: `${repair}, ${runs}: it ${missing}` }),
      lookRemedy(`See the pods of ${who} on node ${node}`, kubectl('get', 'pods', ...where)),
    ],
  };
}

/** Words that the names of many plugins and drivers have. */
const COMMON = /^(?:csi|cni|dra|driver|plugin|shim|com|io|org|net|dev|k8s)$/;

/** Returns the DaemonSet whose name, or else whose programs or namespace, have all words of the part's name, if it is one. */
function agentOf(context: Context, { name, word }: NodePart): Actor | undefined {
  const words = name.split(/[.-]/).filter((one) => one.length > 1 && !COMMON.test(one));
  const fits = (text: string): boolean => words.every((one) => text.includes(one));
  const rank = (one: Actor): number => (fits(one.name) ? 2 : 0) + (one.name.includes(word) ? 1 : 0);
  const [first, ...others] = actorsOf(context)
    .filter(({ kind, isGone }) => kind === 'DaemonSet' && !isGone)
    .filter((one) => fits(`${one.namespace} ${one.name} ${one.programs.join(' ')}`))
    .toSorted((a, b) => rank(b) - rank(a) || a.name.length - b.name.length);
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
export function wantedAgents(context: Context, nodes: readonly PodFacts[][]): Partial<Wanted> {
  const parts = nodes.flatMap(
    (pods) => partIn(warningsAbout(context, pods).told ?? '', pods) ?? [],
  );
  const agents = parts.flatMap((part) => agentOf(context, part) ?? []);
  const places = agents.map(({ namespace }) => ({ namespace, sources: ['pods' as const] }));
  return parts.length === 0 ? {} : { cluster: ['daemonSets'], places };
}
