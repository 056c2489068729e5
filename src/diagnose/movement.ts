import type { Movement } from '../model/finding.ts';
import type {
  ContentCount,
  NodeFacts,
  ObjectFacts,
  ObjectGroup,
  PodFacts,
  Snapshot,
  TypeContent,
} from '../model/snapshot.ts';
import {
  type Context,
  countsOf,
  isBuiltIn,
  isContentRead,
  itemsIn,
  typeName,
  valueIn,
} from './context.ts';

/** The time after its grace period in which the kubelet should confirm the end of a pod. */
const CONFIRMATION_MS = 5_000;

/**
 * Reports whether content is still being deleted. Compares the rest, not totals: when everything else was
 * deleted and one object stays, that is a hang, however much was deleted before. `isHeld`: a finding
 * holds the namespace; then only deletions in spite of it count.
 */
export function movementOf(context: Context, isHeld: boolean): Movement {
  const { before, now, nowMs } = context;
  const grace = latestGrace(context);
  if (grace !== undefined) return { kind: 'grace-period', until: grace };
  const queue = watchedQueue(context);
  if (queue !== undefined) return queue;
  if (before === undefined) return { kind: 'unknown' };
  const comparedMs = nowMs - Date.parse(before.takenAt);
  const shrunk = shrinkingTypes(before, now).filter(({ isQueue }) => !isQueue || !isHeld);
  if (shrunk.length > 0) {
    const had = sum(shrunk.map((pair) => pair.before));
    return { kind: 'shrinking', before: had, now: sum(shrunk.map((pair) => pair.now)), comparedMs };
  }
  const had = lastingOf(before);
  // The last object was just deleted: the controller finishes with its next pass, at most 8 s later.
  if (!isHeld && lastingOf(now) === 0 && had > 0 && isContentRead(now)) {
    return { kind: 'shrinking', before: had, now: 0, comparedMs };
  }
  return { kind: 'none' };
}

/** The interval at which the namespace controller counts the rest and writes it: about 8 s. */
const PASS_MS = 10_000;

/**
 * Returns the queue in front of a finalizer that became shorter at least twice while the gate waited, and no
 * longer ago than its pace explains: 6, then 5, then 4. Counts of a pass that failed are not compared.
 */
function watchedQueue({ now, nowMs, conditions }: Context): Movement | undefined {
  const isComplete =
    conditions.contentFailure === undefined && conditions.discoveryFailures.length === 0;
  for (const { finalizer, counts } of isComplete && isContentRead(now) ? (now.watched ?? []) : []) {
    const first = counts.findLastIndex(
      ({ count }, index) => index === 0 || count >= (counts[index - 1]?.count ?? 0),
    );
    const falling = counts.slice(Math.max(0, first)).map(({ at, count }) => {
      return { count, atMs: Date.parse(at) };
    });
    const [start, ...steps] = falling;
    const last = steps.at(-1);
    const groups = countsOf(now).flatMap(({ terminating }) => terminating);
    const left = sum(
      groups.filter((group) => group.finalizers.includes(finalizer)).map(({ count }) => count),
    );
    if (start === undefined || last === undefined || steps.length < 2 || left === 0) continue;
    const longest = Math.max(
      ...steps.map(({ atMs }, index) => atMs - (falling[index]?.atMs ?? atMs)),
    );
    if (left > last.count || nowMs - last.atMs > 2 * longest + PASS_MS) continue;
    const comparedMs = nowMs - start.atMs;
    return { kind: 'shrinking', before: start.count, now: left, comparedMs };
  }
  return undefined;
}

/** The time until the first pass of the controller, which writes conditions: 5 s by design, more under load. */
const FIRST_PASS_MS = 15_000;
/** The longest pause between retries after errors (namespace_controller.go, nsControllerRateLimiter). */
const RETRY_MS = 90_000;

/** Decides, where no finding holds the namespace, whether the controller has not begun or is about to try again. */
export function movementWithoutFinding({ now, nowMs, conditions }: Context): Movement | undefined {
  const { namespace } = now;
  const ageMs = nowMs - Date.parse(namespace.deletionTimestamp ?? '');
  if (!conditions.present) return ageMs < FIRST_PASS_MS ? { kind: 'starting' } : undefined;
  const complains =
    conditions.discoveryFailures.length > 0 ||
    conditions.discoveryRaw !== undefined ||
    conditions.contentFailure !== undefined;
  const saidMs = nowMs - Date.parse(namespace.statusWrittenAt ?? '');
  return complains && saidMs < RETRY_MS ? { kind: 'retrying' } : undefined;
}

interface Shrinking {
  content: TypeContent;
  /** Counts of the group that became smaller, not of the whole type. */
  before: number;
  now: number;
  /** Finalizers of the shrinking group; empty when the queue of the type shrinks. */
  finalizers: string[];
  isQueue: boolean;
}

/** Types whose objects expire and are renewed independently of the namespace. */
const TRANSIENT: ReadonlySet<string> = new Set([
  'events',
  'events.events.k8s.io',
  'leases.coordination.k8s.io',
]);

/**
 * Returns groups of equal objects (type, set of finalizers) that exist in both snapshots and became fewer, or whose
 * finalizer became rarer on another type: its controller works. Types of another product do not count, nor those of
 * another API group of the same product: it may use one name for finalizers of several controllers. Built-in objects
 * count for both.
 */
export function shrinkingTypes(before: Snapshot, now: Snapshot): Shrinking[] {
  const earlier = new Map(before.content.map((content) => [typeName(content.type), content]));
  const pairs = now.content.flatMap((content) => {
    const name = typeName(content.type);
    const old = earlier.get(name);
    if (TRANSIENT.has(name) || !content.read.ok || old === undefined || !old.read.ok) return [];
    return [{ content, old: old.read.value, count: content.read.value }];
  });
  const groups = Map.groupBy(pairs, ({ content: { type } }) =>
    isBuiltIn(type.group) ? BUILT_IN : type.group,
  );
  return [...groups].flatMap(([name, group]) => {
    const alike = name === BUILT_IN ? pairs : [...group, ...(groups.get(BUILT_IN) ?? [])];
    const had = groupBySet(alike.flatMap(({ old }) => old.terminating));
    const left = groupBySet(alike.flatMap(({ count }) => count.terminating));
    const isWorkedOn = (key: string): boolean => {
      const stay = countOf(left, key);
      return key !== NO_FINALIZER && stay > 0 && stay < countOf(had, key);
    };
    return group.flatMap(({ content, old, count }) =>
      shrunkGroups(content, old, count, isWorkedOn),
    );
  });
}

const BUILT_IN = '';

function shrunkGroups(
  content: TypeContent,
  old: ContentCount,
  count: ContentCount,
  isWorkedOn: (key: string) => boolean,
): Shrinking[] {
  const earlier = groupBySet(old.terminating);
  const later = groupBySet(count.terminating);
  const known = new Map(
    old.terminating.flatMap(({ examples }) => examples.map((object) => [object.uid, object])),
  );
  const sets = [...new Map([...earlier, ...later])].flatMap(([key, groups]): Shrinking[] => {
    const had = countOf(earlier, key);
    const left = countOf(later, key);
    const isShrinking =
      isWorkedOn(key) ||
      (left > 0 && (left < had || groups.some((group) => hasShorterList(group, known))));
    const { finalizers } = groups[0] as ObjectGroup;
    return isShrinking
      ? [{ content, before: Math.max(had, left), now: left, finalizers, isQueue: false }]
      : [];
  });
  if (sets.length > 0) return sets;
  // A queue whose objects only become terminating is no progress; fewer objects in total are.
  const queueShrinks = count.queued > 0 && count.queued < old.queued && count.total < old.total;
  return queueShrinks
    ? [{ content, before: old.queued, now: count.queued, finalizers: [], isQueue: true }]
    : [];
}

function countOf(sets: ReadonlyMap<string, readonly ObjectGroup[]>, key: string): number {
  return sum((sets.get(key) ?? []).map(({ count }) => count));
}

/** Puts groups together that differ only in the writers or the order of finalizers: objects move between those. */
function groupBySet(groups: readonly ObjectGroup[]): Map<string, ObjectGroup[]> {
  return Map.groupBy(groups, ({ finalizers }) => finalizerSet(finalizers));
}

/** Returns a key that is equal for the same finalizers in any order. */
export function finalizerSet(finalizers: readonly string[]): string {
  return JSON.stringify([...finalizers].sort());
}

const NO_FINALIZER = finalizerSet([]);

/** Reports whether an object lost one of its finalizers since the earlier snapshot. */
function hasShorterList(group: ObjectGroup, known: ReadonlyMap<string, ObjectFacts>): boolean {
  return group.examples.some(
    ({ uid, finalizers }) =>
      uid !== '' && finalizers.length < (known.get(uid)?.finalizers.length ?? 0),
  );
}

function latestGrace({ now, nowMs }: Context): string | undefined {
  return itemsIn(now.pods)
    .filter((pod) => isInGracePeriod(pod, nowMs) && !isKubeletSilent(now, pod))
    .flatMap((pod) => pod.deletionTimestamp ?? [])
    .sort()
    .at(-1);
}

/** Reports whether the kubelet still waits for the containers. With grace period 0, it has confirmed their end. */
export function isInGracePeriod(pod: PodFacts, nowMs: number): boolean {
  return (
    pod.nodeName !== undefined &&
    (pod.deletionGracePeriodSeconds ?? 0) > 0 &&
    Date.parse(pod.deletionTimestamp ?? '') + CONFIRMATION_MS > nowMs
  );
}

/** Reports whether its kubelet is silent, whatever grace period is left. */
export function isKubeletSilent({ nodes }: Snapshot, { nodeName }: PodFacts): boolean {
  const node = valueIn(nodes[nodeName ?? '']);
  return node !== undefined && node.ready !== 'True' && !isKubeletReporting(node);
}

/**
 * Reports whether the kubelet writes the status. It writes `False` itself, with a reason; for a silent kubelet the
 * node lifecycle controller writes `Unknown` (kubernetes
 * pkg/controller/nodelifecycle/node_lifecycle_controller.go).
 */
export function isKubeletReporting({ ready }: NodeFacts): boolean {
  return ready === 'False';
}

function lastingOf(now: Snapshot): number {
  return sum(countsOf(now).map(({ type, total }) => (TRANSIENT.has(typeName(type)) ? 0 : total)));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
