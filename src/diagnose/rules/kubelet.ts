import type { Remedy } from '../../model/finding.ts';
import type { ObjectFacts, PodFacts, Wanted } from '../../model/snapshot.ts';
import { type Actor, actorsOf, actorText } from '../actors.ts';
import { kubectl, lookRemedy, withRole } from '../commands.ts';
import { type Context, eventsAbout, groupsOf, listNames, shortQuote } from '../context.ts';

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

/** Reads the warnings about pods since their deletion, and about volumes or devices of pods that never started. */
export function kubeletTrouble(context: Context, pods: readonly PodFacts[]): KubeletTrouble {
  const since = Math.min(
    ...pods.map(
      ({ deletionTimestamp, deletionGracePeriodSeconds = 0 }) =>
        Date.parse(deletionTimestamp ?? '') - 1_000 * deletionGracePeriodSeconds,
    ),
  );
  const isStarted = pods.some(({ phase }) => phase !== 'Pending');
  const warnings = eventsAbout(context, { objects: [...pods] })
    .filter(({ type }) => type === 'Warning')
    .map(({ reason, message, at = '' }) => ({ at, text: `${reason}: ${message}` }))
    .map((one) => ({ ...one, isLate: Date.parse(one.at) >= since, part: partIn(one.text) }))
    .filter(({ isLate, part }) => isLate || (part !== undefined && !isStarted))
    .map((one) => ({
      ...one,
      rank: ORDINARY.test(one.text) ? 3 : ENDING.test(one.text) ? 0 : one.part ? 1 : 2,
    }))
    .toSorted((a, b) => a.rank - b.rank || (a.at < b.at ? 1 : -1));
  const [first] = warnings;
  const told = first === undefined || first.rank === 3 ? undefined : first;
  const before = told?.isLate === false ? 'before the deletion it reported ' : '';
  return {
    said: [...new Set(warnings.map(({ text }) => text))],
    why: told && before + shortQuote(told.text),
    part: told?.part && withDriver(context, pods, told.part),
  };
}

/** Names as the runtime quotes them, once more inside of each other message. */
const quoted = (name: string): string => `\\\\{0,3}"(?<name>${name})`;
const LABEL = '[\\w.-]{1,100}';
const DNS = '[a-z0-9-]{1,63}(?:\\.[a-z0-9-]{1,63})+';
/** containerd and CRI-O, which quote libcni; an uninstalled plugin has no file or no configuration. */
const NETWORK = [
  new RegExp(`plugin type=${quoted(LABEL)}`),
  new RegExp(`failed to find plugin ${quoted(LABEL)}`),
  /destroy network for (?:pod )?sandbox|networkPlugin cni failed|cni plugin not initialized/,
];
const DEVICES = /dynamic resources|UnprepareResources|PrepareResources/i;
const VOLUME = /\b(?:un)?mount[\w.]* .{0,60}?volume \\{0,3}"(?<name>[^"\\]{1,253})/i;
const DRIVERS = [
  /UniqueName: \\{0,3}"kubernetes\.io\/csi\/(?<name>[\w.-]{1,100})\^/,
  new RegExp(`\\b(?:driver|plugin)(?: name)? \\\\{0,3}"?(?<name>${DNS})`),
];
const CLAIM =
  /\b(?:Resource)?[Cc]laim (?!not\b|info\b)\\{0,3}"?(?<name>[\w.-]{1,253}(?:\/[\w.-]{1,253})?)/;

function nameBy(patterns: readonly RegExp[], text: string): string | undefined {
  for (const pattern of patterns) {
    const found = pattern.exec(text);
    if (found !== null) return found.groups?.['name'] ?? '';
  }
  return undefined;
}

function partIn(text: string): NodePart | undefined {
  const network = nameBy(NETWORK, text);
  if (network !== undefined) {
    const does = "release the pod's network";
    return { text: named('network plugin', network), name: network, does, word: '' };
  }
  const name = nameBy(DRIVERS, text) ?? '';
  if (DEVICES.test(text)) {
    const claim = nameBy([CLAIM], text);
    const does = claim === undefined ? "release the pod's devices" : `release claim ${claim}`;
    return { text: named('DRA driver', name), name, does, word: 'dra' };
  }
  const volume = nameBy([VOLUME], text);
  if (volume === undefined) return undefined;
  return { text: driverText(name), name, does: `unmount volume ${volume}`, word: 'csi' };
}

const named = (what: string, name: string): string =>
  name === '' ? `the ${what}` : `${what} ${name}`;
const driverText = (name: string): string =>
  name === '' ? 'the driver of the volume' : `CSI driver ${name}`;

const PROVISIONER = /\bstorage-provisioner$/;

/** Adds the driver of the claims that the pods use, where an Event names a volume without it. */
function withDriver(context: Context, pods: readonly PodFacts[], part: NodePart): NodePart {
  if (part.word !== 'csi' || part.name !== '') return part;
  const used = new Set(pods.flatMap(({ claims }) => claims));
  const claims = groupsOf(context.now)
    .flatMap(({ examples }) => examples)
    .filter(({ kind, name }) => kind === 'PersistentVolumeClaim' && used.has(name));
  const drivers = new Set(claims.flatMap(provisionersOf));
  const [name = ''] = drivers.size === 1 ? drivers : [];
  return { ...part, name, text: driverText(name) };
}

const provisionersOf = ({ annotations }: ObjectFacts): string[] =>
  Object.entries(annotations).flatMap(([key, value]) => (PROVISIONER.test(key) ? [value] : []));

/** Words that the names of many plugins and drivers have. */
const COMMON = /^(?:csi|cni|dra|driver|plugin|shim|com|io|org|net|dev|k8s)$/;

/** Returns the only DaemonSet whose own name, or else whose programs or namespace, have all words of the part's name. */
function agentOf(context: Context, { name, word }: NodePart): Actor | undefined {
  const words = name.split(/[.-]/).filter((one) => one.length > 1 && !COMMON.test(one));
  if (words.length === 0) return undefined;
  const fits = (text: string): boolean => words.every((one) => text.includes(one));
  const all = actorsOf(context).filter(({ kind, isGone }) => kind === 'DaemonSet' && !isGone);
  const own = all.filter((one) => fits(one.name));
  const found =
    own.length > 0
      ? own
      : all.filter((one) => fits(`${one.namespace} ${one.name} ${one.programs.join(' ')}`));
  const special = found.filter((one) => one.name.includes(word));
  const left = special.length > 0 ? special : found;
  // `calico-node` and `calico-node-windows`, `cilium` and `cilium-envoy`.
  const [first, ...others] = left.toSorted((a, b) => a.name.length - b.name.length);
  const isFirst = others.every(
    (one) => one.namespace === first?.namespace && one.name.startsWith(`${first.name}-`),
  );
  return isFirst ? first : undefined;
}

/** Returns what to read about the parts for which kubelets wait: the DaemonSets, and then their pods. */
export function wantedAgents(
  context: Context,
  nodes: readonly PodFacts[][],
): Pick<Wanted, 'cluster' | 'places'> | undefined {
  const parts = nodes.flatMap((pods) => kubeletTrouble(context, pods).part ?? []);
  if (parts.length === 0) return undefined;
  const agents = parts.flatMap((part) => agentOf(context, part) ?? []);
  const places = agents.map(({ namespace }) => ({ namespace, sources: ['pods' as const] }));
  return { cluster: ['daemonSets'], places };
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
  const who = agent === undefined ? absentText(context, part) : agentText(context, agent, node);
  const text = `Repair ${part.text} on node ${node}${who}: it does not ${part.does}`;
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
  const none = isRead && here.length === 0 ? ['it has no pod there'] : states;
  const counts = [`${ready} of ${wanted} ready`, ...(none.length === 0 ? [] : [listNames(none)])];
  return `, which ${actorText(agent)} runs (${counts.join('; ')})`;
}

/** A driver that was uninstalled has no DaemonSet any more; other names say nothing. */
function absentText(context: Context, { name }: NodePart): string {
  const { daemonSets } = context.now.cluster;
  const words = name.split(/[.-]/).filter((one) => one.length > 2 && !COMMON.test(one));
  const isSeen = actorsOf(context).some(({ kind, name: own, programs }) => {
    const text = `${own} ${programs.join(' ')}`;
    return kind === 'DaemonSet' && words.some((one) => text.includes(one));
  });
  return daemonSets?.ok !== true || words.length === 0 || isSeen
    ? ''
    : ' (no DaemonSet has a name like it: if it was uninstalled, install it again)';
}
