import type { Movement } from '../model/finding.ts';
import type {
  ContentCount,
  ObjectFacts,
  ObjectGroup,
  Snapshot,
  TypeContent,
} from '../model/snapshot.ts';
import { type Context, typeName } from './context.ts';

/** After the end of its grace period a pod is given this long to be confirmed by its kubelet. */
export const CONFIRMATION_MS = 5_000;

/**
 * Whether content still goes away. What remains is compared, not totals: when everything else was
 * swept out and one object stays put, that is a hang, however much went before. `isHeld`: something is
 * found that holds the namespace; then only what goes in spite of it counts.
 */
export function movementOf(context: Context, isHeld: boolean): Movement {
  const { before, now, nowMs } = context;
  const grace = latestGrace(context);
  if (grace !== undefined) return { kind: 'grace-period', until: grace };
  if (before === undefined) return { kind: 'unknown' };
  const comparedMs = nowMs - Date.parse(before.takenAt);
  const shrunk = shrinkingTypes(before, now).filter(({ isQueue }) => !isQueue || !isHeld);
  if (shrunk.length > 0) {
    const had = sum(shrunk.map((pair) => pair.before));
    return { kind: 'shrinking', before: had, now: sum(shrunk.map((pair) => pair.now)), comparedMs };
  }
  const had = totalOf(before);
  // The last object has just gone: the controller finishes with its next pass, 8 s later at most.
  if (!isHeld && totalOf(now) === 0 && had > 0 && allRead(now)) {
    return { kind: 'shrinking', before: had, now: 0, comparedMs };
  }
  return { kind: 'none' };
}

/** Until its first pass the controller has written nothing: 5 s by design, more under load. */
const FIRST_PASS_MS = 15_000;
/** Errors are retried at most 60 s apart (namespace_controller.go, nsControllerRateLimiter). */
const RETRY_MS = 90_000;

/** Nothing is found that holds it: has the controller not begun, or is it about to try again? */
export function healing({ now, nowMs, conditions }: Context): Movement | undefined {
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
  /** Counted objects of what has shrunk, not of the whole type. */
  before: number;
  now: number;
  /** Finalizers of the shrinking group; empty when it is the queue of the type that shrinks. */
  finalizers: string[];
  isQueue: boolean;
}

/** They expire and are renewed by themselves, whatever becomes of the namespace. */
const TRANSIENT: ReadonlySet<string> = new Set([
  'events',
  'events.events.k8s.io',
  'leases.coordination.k8s.io',
]);

/** Equal objects (type, set of finalizers) that are there in both snapshots and have become fewer. */
export function shrinkingTypes(before: Snapshot, now: Snapshot): Shrinking[] {
  const earlier = new Map(before.content.map((content) => [typeName(content.type), content]));
  return now.content.flatMap((content) => {
    const name = typeName(content.type);
    const old = earlier.get(name);
    if (TRANSIENT.has(name) || !content.read.ok || old === undefined || !old.read.ok) return [];
    return shrunkGroups(content, old.read.value, content.read.value);
  });
}

function shrunkGroups(content: TypeContent, old: ContentCount, count: ContentCount): Shrinking[] {
  const earlier = bySet(old.terminating);
  const known = new Map(
    old.terminating.flatMap(({ examples }) => examples.map((object) => [object.uid, object])),
  );
  const sets = [...bySet(count.terminating)].flatMap(([key, groups]): Shrinking[] => {
    const had = sum((earlier.get(key) ?? []).map((group) => group.count));
    const left = sum(groups.map((group) => group.count));
    const isShrinking = left < had || groups.some((group) => hasShorterList(group, known));
    const { finalizers } = groups[0] as ObjectGroup;
    return isShrinking
      ? [{ content, before: Math.max(had, left), now: left, finalizers, isQueue: false }]
      : [];
  });
  if (sets.length > 0) return sets;
  // A queue that empties only into "terminating" is not progress; fewer objects in all are.
  const queueShrinks = count.queued > 0 && count.queued < old.queued && count.total < old.total;
  return queueShrinks
    ? [{ content, before: old.queued, now: count.queued, finalizers: [], isQueue: true }]
    : [];
}

/** Groups also differ in who wrote the finalizers, and in their order: objects move between those. */
function bySet(groups: readonly ObjectGroup[]): Map<string, ObjectGroup[]> {
  return Map.groupBy(groups, ({ finalizers }) => finalizerSet(finalizers));
}

/** The same for the same finalizers in any order. */
export function finalizerSet(finalizers: readonly string[]): string {
  return JSON.stringify([...finalizers].sort());
}

/** An object that has lost one of its finalizers since the earlier snapshot. */
function hasShorterList(group: ObjectGroup, known: ReadonlyMap<string, ObjectFacts>): boolean {
  return group.examples.some(
    ({ uid, finalizers }) =>
      uid !== '' && finalizers.length < (known.get(uid)?.finalizers.length ?? 0),
  );
}

function latestGrace({ now, nowMs }: Context): string | undefined {
  if (!now.pods.ok) return undefined;
  const ends = now.pods.value
    .filter((pod) => pod.nodeName !== undefined && (pod.deletionGracePeriodSeconds ?? 0) > 0)
    .flatMap((pod) => pod.deletionTimestamp ?? [])
    .filter((end) => Date.parse(end) + CONFIRMATION_MS > nowMs)
    .sort();
  return ends[ends.length - 1];
}

function totalOf({ content }: Snapshot): number {
  return sum(
    content.map(({ type, read }) =>
      read.ok && !TRANSIENT.has(typeName(type)) ? read.value.total : 0,
    ),
  );
}

function allRead(snapshot: Snapshot): boolean {
  return snapshot.discovery.ok && snapshot.content.every(({ read }) => read.ok);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
