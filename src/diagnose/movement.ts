import { isInGracePeriod } from '../model/facts/workloads.ts';
import type { Movement } from '../model/finding.ts';
import type {
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
  const shrunk = shrinkingTypes(before, now);
  if (shrunk.length > 0) {
    const had = sum(shrunk.map((pair) => pair.before));
    return { kind: 'shrinking', before: had, now: sum(shrunk.map((pair) => pair.now)), comparedMs };
  }
  const [had, left] = [lastingOf(before), lastingOf(now)];
  if (isHeld || left >= had || !isContentRead(now)) return { kind: 'none' };
  return { kind: 'shrinking', before: had, now: left, comparedMs };
}

export function isWithoutMovement({ kind }: Movement): boolean {
  return kind === 'none' || kind === 'unknown';
}

/** The interval at which the namespace controller counts the rest and writes it: about 8 s. */
const PASS_MS = 10_000;

/**
 * Returns the queue in front of a finalizer whose last two counted steps, while the gate waited, made it shorter, and
 * whose next step is not late: 6, then 5, then 4. Counts of a pass that failed are not compared.
 */
function watchedQueue({ now, nowMs }: Context): Movement | undefined {
  const isComplete = !hasFailedPass(now) && isContentRead(now);
  const groups = countsOf(now).flatMap(({ terminating }) => terminating);
  for (const { finalizer, counts } of isComplete ? (now.watched ?? []) : []) {
    const steps = counts.slice(-3);
    const [a, b, c] = steps.map(({ at }) => Date.parse(at));
    if (a === undefined || b === undefined || c === undefined) continue;
    const held = groups.filter(({ finalizers }) => finalizers.includes(finalizer));
    const left = sum(held.map(({ count }) => count));
    const numbers = steps.map(({ count }) => count);
    const isFalling = [...numbers.slice(1), left].every((n, index) => n <= (numbers[index] ?? 0));
    if (isFalling && nowMs - c <= 2 * Math.max(b - a, c - b) + PASS_MS) {
      return { kind: 'shrinking', before: numbers[0] ?? left, now: left, comparedMs: nowMs - a };
    }
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
  const saidMs = nowMs - Date.parse(namespace.statusWrittenAt ?? '');
  return hasFailedPass(now) && saidMs < RETRY_MS ? { kind: 'retrying' } : undefined;
}

/** Reports whether the last pass of the namespace controller met an error. */
function hasFailedPass({ namespace }: Snapshot): boolean {
  return namespace.conditions.some(({ type, status }) =>
    /^NamespaceDeletion\w+Failure True$/.test(`${type} ${status}`),
  );
}

interface Shrinking {
  content: TypeContent;
  /** Counts of the group that became smaller, not of the whole type. */
  before: number;
  now: number;
  finalizers: string[];
}

/** Types whose objects expire and are renewed independently of the namespace. */
const TRANSIENT = new Set(['events', 'events.events.k8s.io', 'leases.coordination.k8s.io']);

/**
 * Returns groups of equal objects (type, set of finalizers) that exist in both snapshots and became fewer, or whose
 * finalizer became rarer on another type: its controller works. Types of another product do not count, nor those of
 * another API group of the same product: it may use one name for finalizers of several controllers. Built-in objects
 * count for both.
 */
export function shrinkingTypes(before: Snapshot, now: Snapshot): Shrinking[] {
  const earlier = new Map(before.content.map(({ type, read }) => [typeName(type), valueIn(read)]));
  const pairs = now.content.flatMap((content) => {
    const old = earlier.get(typeName(content.type))?.terminating;
    const left = valueIn(content.read)?.terminating;
    if (old === undefined || left === undefined) return [];
    const { group } = content.type;
    const product = isBuiltIn(group) ? ANY : group;
    return [{ content, product, old, had: groupBySet(old), left: groupBySet(left) }];
  });
  return pairs.flatMap(({ content, product, old, had, left }) => {
    const alike = pairs.filter((pair) => product === ANY || [product, ANY].includes(pair.product));
    const known = new Map(
      old.flatMap(({ examples }) => examples.map((object) => [object.uid, object])),
    );
    return [...new Map([...had, ...left])].flatMap(([key, groups]): Shrinking[] => {
      const all = sum(alike.map((pair) => countOf(pair.left, key)));
      const isRarer = all > 0 && all < sum(alike.map((pair) => countOf(pair.had, key)));
      if (!isRarer && !groups.some((group) => hasShorterList(group, known))) return [];
      const { finalizers } = groups[0] as ObjectGroup;
      const stay = countOf(left, key);
      return [{ content, before: Math.max(countOf(had, key), stay), now: stay, finalizers }];
    });
  });
}

/** In place of the product of built-in objects, on which any product may put its finalizer. */
const ANY = '';

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

/** Reports whether an object lost one of its finalizers since the earlier snapshot. */
function hasShorterList(group: ObjectGroup, known: ReadonlyMap<string, ObjectFacts>): boolean {
  return group.examples.some(
    ({ uid, finalizers }) => finalizers.length < (known.get(uid)?.finalizers.length ?? 0),
  );
}

function latestGrace({ now, nowMs }: Context): string | undefined {
  return itemsIn(now.pods)
    .filter((pod) => isInGracePeriod(pod, nowMs) && !isKubeletSilent(now, pod))
    .flatMap((pod) => pod.deletionTimestamp ?? [])
    .sort()
    .at(-1);
}

/** Reports whether its kubelet is silent, whatever grace period is left. */
export function isKubeletSilent({ nodes }: Snapshot, { nodeName }: PodFacts): boolean {
  const node = valueIn(nodes[nodeName ?? '']);
  return node !== undefined && !['True', 'False'].includes(node.ready ?? '');
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

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
