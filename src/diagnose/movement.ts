import type { Movement } from '../model/finding.ts';
import type {
  ContentCount,
  ObjectFacts,
  ObjectGroup,
  Snapshot,
  TypeContent,
} from '../model/snapshot.ts';
import type { View } from './draft.ts';

/** After the end of its grace period a pod is given this long to be confirmed by its kubelet. */
export const CONFIRMATION_MS = 5_000;

/**
 * Whether content still goes away. What remains is compared, not totals: when everything else was
 * swept out and one object stays put, that is a hang, however much went before.
 */
export function movementOf(view: View): Movement {
  const grace = latestGrace(view);
  if (grace !== undefined) return { kind: 'grace-period', until: grace };
  if (view.before === undefined) return { kind: 'unknown' };
  const comparedMs = view.nowMs - Date.parse(view.before.takenAt);
  const shrunk = shrinkingTypes(view.before, view.now);
  const before = sum(shrunk.map((pair) => pair.before));
  const now = sum(shrunk.map((pair) => pair.now));
  if (shrunk.length > 0) return { kind: 'shrinking', before, now, comparedMs };
  const hadContent = totalOf(view.before);
  const hasContent = totalOf(view.now);
  // The last object has just gone: the controller finishes with its next pass, 8 s later at most.
  if (hasContent === 0 && hadContent > 0 && allRead(view.now)) {
    return { kind: 'shrinking', before: hadContent, now: 0, comparedMs };
  }
  return { kind: 'none', comparedMs };
}

/** Until its first pass the controller has written nothing: 5 s by design, more under load. */
const FIRST_PASS_MS = 15_000;
/** Errors are retried at most 60 s apart (namespace_controller.go, nsControllerRateLimiter). */
const RETRY_MS = 90_000;

/** Nothing is found that holds it: has the controller not begun, or is it about to try again? */
export function healing(view: View): Movement | undefined {
  const { namespace } = view.now;
  const ageMs = view.nowMs - Date.parse(namespace.deletionTimestamp ?? '');
  if (!view.conditions.present) return ageMs < FIRST_PASS_MS ? { kind: 'starting' } : undefined;
  const complains =
    view.conditions.discoveryFailures.length > 0 ||
    view.conditions.discoveryRaw !== undefined ||
    view.conditions.contentFailure !== undefined;
  const saidMs = view.nowMs - Date.parse(namespace.statusWrittenAt ?? '');
  return complains && saidMs < RETRY_MS ? { kind: 'retrying' } : undefined;
}

export interface Shrinking {
  content: TypeContent;
  /** Counted objects of what has shrunk, not of the whole type. */
  before: number;
  now: number;
  /** Finalizers of the shrinking group; empty when it is the queue of the type that shrinks. */
  finalizers: string[];
}

/** Equal objects (type, set of finalizers) that are there in both looks and have become fewer. */
export function shrinkingTypes(before: Snapshot, now: Snapshot): Shrinking[] {
  const earlier = new Map(before.content.map((content) => [keyOf(content), content]));
  return now.content.flatMap((content) => {
    const old = earlier.get(keyOf(content));
    if (!content.read.ok || old === undefined || !old.read.ok) return [];
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
    const now = sum(groups.map((group) => group.count));
    const isShrinking = now < had || groups.some((group) => hasShorterList(group, known));
    const { finalizers } = groups[0] as ObjectGroup;
    return isShrinking ? [{ content, before: Math.max(had, now), now, finalizers }] : [];
  });
  if (sets.length > 0) return sets;
  // A queue that empties only into "terminating" is not progress; fewer objects in all are.
  const queueShrinks = count.queued > 0 && count.queued < old.queued && count.total < old.total;
  return queueShrinks ? [{ content, before: old.queued, now: count.queued, finalizers: [] }] : [];
}

/** Groups also differ in who wrote the finalizers, and in their order: objects move between those. */
function bySet(groups: readonly ObjectGroup[]): Map<string, ObjectGroup[]> {
  return Map.groupBy(groups, ({ finalizers }) => finalizerSet(finalizers));
}

/** The same for the same finalizers in any order. */
export function finalizerSet(finalizers: readonly string[]): string {
  return JSON.stringify([...finalizers].sort());
}

/** An object that has lost one of its finalizers since the earlier look. */
function hasShorterList(group: ObjectGroup, known: ReadonlyMap<string, ObjectFacts>): boolean {
  return group.examples.some(
    ({ uid, finalizers }) =>
      uid !== '' && finalizers.length < (known.get(uid)?.finalizers.length ?? 0),
  );
}

function latestGrace(view: View): string | undefined {
  if (!view.now.pods.ok) return undefined;
  const ends = view.now.pods.value
    .filter((pod) => pod.nodeName !== undefined && (pod.deletionGracePeriodSeconds ?? 0) > 0)
    .flatMap((pod) => pod.deletionTimestamp ?? [])
    .filter((end) => Date.parse(end) + CONFIRMATION_MS > view.nowMs)
    .sort();
  return ends[ends.length - 1];
}

function totalOf(snapshot: Snapshot): number {
  return sum(snapshot.content.map(({ read }) => (read.ok ? read.value.total : 0)));
}

function allRead(snapshot: Snapshot): boolean {
  return snapshot.discovery.ok && snapshot.content.every(({ read }) => read.ok);
}

function keyOf({ type }: TypeContent): string {
  return `${type.resource}.${type.group}`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
