import { matchesGlob } from '../base/text.ts';
import { hasPodEnded } from '../model/facts/workloads.ts';
import type { Subject } from '../model/finding.ts';
import { itemsIn } from '../model/read.ts';
import type { ClusterSources, OwnerReference, PodFacts, WorkloadFacts } from '../model/snapshot.ts';
import { type Context, remember } from './context.ts';
import type { Account } from './rights.ts';

/** A workload of any kind that runs a program, or would run it with replicas, found by its pods or in a list of workloads. */
export interface Actor extends Omit<WorkloadFacts, 'account' | 'uid'> {
  /** Undefined: the workload was not read; the workloads and pods that it controls were. */
  uid: string | undefined;
  account: Account;
  /** Its pods, if those of its namespace were read. */
  pods: PodFacts[];
  /** The workload existed when the gate began, and was deleted since. */
  isGone: boolean;
}

export const WORKLOAD_SOURCES = [
  'deployments',
  'statefulSets',
  'daemonSets',
  'replicaSets',
  'jobs',
  'cronJobs',
] as const satisfies (keyof ClusterSources)[];

/** Returns every workload that was read, each once. */
export const actorsOf = remember((context: Context): Actor[] => {
  const { now } = context;
  const workloads = WORKLOAD_SOURCES.flatMap((key) => itemsIn(now.cluster[key]));
  const byUid = new Map(workloads.map((workload) => [workload.uid, workload]));
  const found = new Map<string, Actor>();
  const add = (actor: Actor): Actor => {
    const key = actorText(actor);
    // A ReplicaSet known only by its pods may belong to a Deployment that was read.
    const known = found.get(key) ?? actor;
    known.isGone &&= actor.isGone;
    found.set(key, known);
    return known;
  };
  for (const workload of workloads) {
    if (hasEnded(workload) || makerOf(workload, byUid) !== undefined) continue;
    const actor = add(actorOfWorkload(workload));
    // A Rollout or the like is not listed: its ReplicaSets give the replicas.
    if (actor.uid === undefined) {
      actor.wanted += workload.wanted;
      actor.ready += workload.ready;
    }
  }
  for (const pod of podsOf(context)) {
    const top = topOf(pod, byUid, now);
    if (top === undefined) continue;
    const actor = add(top);
    actor.pods.push(pod);
    actor.programs = [...new Set([...actor.programs, ...pod.programs])];
    // For a workload that was not read, its pods are counted, without those that others have replaced.
    const current = actor.pods.filter((one) => !hasPodEnded(one)).length;
    if (actor.uid === undefined) actor.wanted = Math.max(actor.wanted, current, 1);
    // Workloads of other types count replicas in fields of their own, or not at all.
    actor.ready = Math.max(actor.ready, actor.pods.filter(({ ready }) => ready).length);
  }
  return [...found.values(), ...departedWorkloads(context, byUid)];
});

/** Reports whether a Job creates no more pods, unlike a suspended one. No other workload has these conditions. */
function hasEnded({ conditions }: WorkloadFacts): boolean {
  return conditions.some(({ type, status }) =>
    /^(?:Complete|Failed) True$/.test(`${type} ${status}`),
  );
}

/** Returns every pod that was read. Reports quote the first ones: the troubles of those that have ended come last. */
function podsOf({ now }: Context): PodFacts[] {
  const everywhere = itemsIn(now.cluster.pods);
  const places = Object.values(now.places).flatMap(({ pods }) => itemsIn(pods));
  const own = now.places[now.namespace.name]?.pods === undefined ? itemsIn(now.pods) : [];
  const all = new Map([...everywhere, ...places, ...own].map((pod) => [pod.uid, pod]));
  return [...all.values()].sort((a, b) => Number(hasPodEnded(a)) - Number(hasPodEnded(b)));
}

/** Returns the Deployment of a ReplicaSet or the CronJob of a Job. A Deployment that another one owns is a program of its own. */
function makerOf({ kind, owner }: WorkloadFacts, byUid: ReadonlyMap<string, WorkloadFacts>) {
  return /^(?:ReplicaSet|Job)$/.test(kind) ? byUid.get(owner?.uid ?? '') : undefined;
}

/** Follows a pod's controllers up to the workload that a person would name. Undefined: that workload has ended. */
function topOf(pod: PodFacts, byUid: ReadonlyMap<string, WorkloadFacts>, now: Context['now']) {
  const controller = pod.ownerReferences.find((owner) => owner.controller);
  // Without a controller, the workload of a pod that ends was deleted.
  const isGone = pod.deletionTimestamp !== undefined && !pod.ready;
  // Static pods are "controlled" by their Node (kubelet, mirror pods).
  if (controller === undefined || controller.kind === 'Node') {
    const { annotations, deletionTimestamp } = pod;
    return { ...actorBehind(pod, pod), annotations, deletionTimestamp, isGone };
  }
  let top = byUid.get(controller.uid);
  if (top === undefined) {
    const plural = `${controller.kind}s`.toLowerCase();
    const isRead = WORKLOAD_SOURCES.some(
      (key) => key.toLowerCase() === plural && now.cluster[key]?.ok,
    );
    return { ...actorBehind(skipReplicaSet(controller, pod), pod), isGone: isRead && isGone };
  }
  top = makerOf(top, byUid) ?? top;
  return hasEnded(top) ? undefined : actorOfWorkload(top);
}

/** Returns the workload, or the controller of a ReplicaSet. A Deployment that an operator of operators made still runs the program. */
function actorOfWorkload(workload: WorkloadFacts): Actor {
  const { kind, owner } = workload;
  return kind === 'ReplicaSet' && owner !== undefined
    ? actorBehind(owner, workload)
    : actorOf(workload);
}

/** Returns the Deployment of a ReplicaSet by the name of the ReplicaSet; any other controller unchanged. */
function skipReplicaSet(controller: OwnerReference, { labels }: PodFacts): OwnerReference {
  const suffix = `-${labels['pod-template-hash']}`;
  return controller.name.endsWith(suffix)
    ? { ...controller, kind: 'Deployment', name: controller.name.slice(0, -suffix.length) }
    : controller;
}

function actorOf(seen: Omit<WorkloadFacts, 'uid'> & Pick<Actor, 'uid'>): Actor {
  const { account: own, namespace, name, selectors = [] } = seen;
  const account = { namespace, name: own };
  const programs = [...new Set([name, ...seen.programs])];
  return { ...seen, account, programs, selectors, pods: [], isGone: false };
}

/** What is not known of a workload that was not read. */
const UNREAD = {
  uid: undefined,
  annotations: {},
  owner: undefined,
  scaledBy: undefined,
  creationTimestamp: undefined,
  deletionTimestamp: undefined,
  conditions: [],
  nodeSelector: {},
  wanted: 0,
  ready: 0,
};

/** Returns a workload that is known only by its pods, or by the workloads that it controls. */
function actorBehind(
  { apiVersion, kind, name }: Pick<Actor, 'apiVersion' | 'kind' | 'name'>,
  by: PodFacts | WorkloadFacts,
): Actor {
  return actorOf({ ...by, ...UNREAD, apiVersion, kind, name });
}

/** Returns the workloads that were in the namespace at the start and, by complete lists, were deleted since. */
function departedWorkloads({ now }: Context, byUid: ReadonlyMap<string, WorkloadFacts>): Actor[] {
  const { baseline, cluster } = now;
  const lists = [cluster.deployments, cluster.statefulSets, cluster.daemonSets];
  if (lists.some((list) => list?.ok !== true)) return [];
  return itemsIn(baseline?.workloads)
    .filter((workload) => !byUid.has(workload.uid) && !hasEnded(workload))
    .map((workload) => ({ ...actorOf(workload), ready: 0, isGone: true }));
}

/** Returns a setting that lists namespaces without this one: `ARGOCD_APPLICATION_NAMESPACES=team-*`. What fits no namespace is no such list. */
export function listOfOthers({ now }: Context, { selectors }: Actor): string | undefined {
  const existing = itemsIn(now.cluster.namespaces).map(({ name }) => name);
  return selectors.find((setting) => {
    const [, list = ''] = LIST_OF_NAMESPACES.exec(setting) ?? [];
    const fits = (name: string): boolean =>
      list.split(/[, ]+/).some((pattern) => matchesGlob(pattern, name));
    return existing.some(fits) && !fits(now.namespace.name);
  });
}

/** A setting that lists the namespaces in which a controller works, and not those that it ignores. */
const LIST_OF_NAMESPACES =
  /^(?![^=]*(?:den[iy]|exclu|exempt|ignor|skip|black))[^=]*namespaces=([-a-z0-9*, ]+)$/i;

/** Reports whether at least one of its pods has started and not ended, or its own status says so. */
export function isAlive({ ready, pods }: Actor): boolean {
  return ready > 0 || pods.some(({ phase }) => phase === 'Running');
}

/** Reports whether the kubelet runs it from a file: it then has no ServiceAccount and uses credentials of its own. */
export function isStatic({ pods }: Actor): boolean {
  return pods.some(({ ownerReferences: [by] }) => by?.kind === 'Node');
}

/** Reports whether no more pods of it are created: a restart would end those that are left. */
export function isEnding(context: Context, { namespace, deletionTimestamp }: Actor): boolean {
  return deletionTimestamp !== undefined || isEndingNamespace(context, namespace);
}

/** Reports whether a namespace is being deleted: it accepts no new pods then. */
export function isEndingNamespace(context: Context, namespace: string | undefined): boolean {
  const home = itemsIn(context.now.cluster.namespaces).find(({ name }) => name === namespace);
  return home?.deletionTimestamp !== undefined;
}

export function actorText({ kind, namespace, name }: Subject): string {
  return `${kind} ${namespace}/${name}`;
}

export function accountText({ namespace, name }: Account): string {
  return namespace === undefined ? `user ${name}` : `ServiceAccount ${namespace}/${name}`;
}
