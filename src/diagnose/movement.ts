import { type TypeRef, typeName } from '../model/facts/metadata.ts';
import { isInGracePeriod } from '../model/facts/workloads.ts';
import type { Movement } from '../model/finding.ts';
import { itemsIn, valueIn } from '../model/read.ts';
import type { PodFacts, Snapshot } from '../model/snapshot.ts';
import { countsOf, groupsOf, isContentRead } from './content.ts';
import { type Context, isForeseen } from './context.ts';
import type { RuleResult } from './results.ts';

/** Reports whether content is still being deleted, or the controller is about to. `blocking`: what holds the namespace, which may be all that stays. */
export function movementOf(context: Context, blocking: readonly RuleResult[]): Movement {
  const { before, now, nowMs } = context;
  const graces = itemsIn(now.pods)
    .filter((pod) => isInGracePeriod(pod, nowMs))
    // The pod garbage collector soon deletes the pods of a node that was deleted.
    .filter((pod) => !isUnattended(now, pod) || !valueIn(now.nodes[pod.nodeName ?? '']))
    .flatMap((pod) => pod.deletionTimestamp ?? []);
  const until = graces.sort().at(-1);
  if (until !== undefined) return { kind: 'grace-period', until };
  if (before !== undefined) {
    const sets = shrinkingSets(before, now);
    const [had, left] =
      sets.length > 0
        ? [sum(sets.map((one) => one.before)), sum(sets.map((one) => one.now))]
        : [lastingOf(before), lastingOf(now)];
    const isHeld = blocking.some(({ code }) => code !== 'content-deleting');
    const isRest = !isHeld && left < had && isContentRead(now);
    if (sets.length > 0 || isRest) return { kind: 'shrinking', before: had, now: left };
  }
  const isSilent = blocking.length === 0 && now.unread.length === 0;
  const begins = isSilent ? movementOfController(context) : undefined;
  return begins ?? { kind: before === undefined ? 'unknown' : 'none' };
}

/** The time until the first pass of the controller, which writes conditions: 5 s by design, more under load. */
const FIRST_PASS_MS = 15_000;
/** The longest pause between retries after errors (namespace_controller.go, nsControllerRateLimiter). */
const RETRY_MS = 90_000;

/** Decides, where nothing holds the namespace, whether the controller has not begun or is about to try again. */
function movementOfController(context: Context): Movement | undefined {
  const { conditions, now, nowMs } = context;
  const { deletionTimestamp = '', statusWrittenAt = '', conditions: all } = now.namespace;
  // Without a request for the deletion no controller has begun.
  if (isForeseen(context)) return undefined;
  if (!conditions.present)
    return nowMs - Date.parse(deletionTimestamp) < FIRST_PASS_MS ? { kind: 'starting' } : undefined;
  const hasFailed = all.some(({ type, status }) =>
    /^NamespaceDeletion\w+Failure True$/.test(`${type} ${status}`),
  );
  const saidMs = nowMs - Date.parse(statusWrittenAt);
  return hasFailed && saidMs < RETRY_MS ? { kind: 'retrying' } : undefined;
}

/** Returns the sets of objects (by type and finalizers, whoever wrote these) of which some are left, and fewer than before. */
export function shrinkingSets(before: Snapshot, now: Snapshot) {
  const earlier = Map.groupBy(groupsOf(before), keyOfSet);
  return [...Map.groupBy(groupsOf(now), keyOfSet)].flatMap(([key, groups]) => {
    const [had = 0, left = 0] = [earlier.get(key), groups].map((all = []) =>
      sum(all.map(({ count }) => count)),
    );
    return groups.slice(0, left < had ? 1 : 0).map((one) => ({ ...one, before: had, now: left }));
  });
}

/** Returns a key that is equal for the same finalizers in any order, on objects of one type. */
export function keyOfSet(set: { type: TypeRef; finalizers: readonly string[] }): string {
  return JSON.stringify([typeName(set.type), ...set.finalizers.toSorted()]);
}

/** Reports whether no kubelet shuts the pod down, whatever grace period is left: its node is silent or was deleted. */
export function isUnattended({ nodes }: Snapshot, { nodeName }: PodFacts): boolean {
  const read = nodes[nodeName ?? ''];
  return read?.ok === true && !/^(?:True|False)$/.test(read.value?.ready ?? '');
}

/** Types whose objects expire and are renewed independently of the namespace. */
const TRANSIENT = new Set(['events', 'events.events.k8s.io', 'leases.coordination.k8s.io']);

function lastingOf(now: Snapshot): number {
  return sum(countsOf(now).map(({ type, total }) => (TRANSIENT.has(typeName(type)) ? 0 : total)));
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
