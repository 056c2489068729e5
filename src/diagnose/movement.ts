import { typeName } from '../model/facts/metadata.ts';
import { isInGracePeriod } from '../model/facts/workloads.ts';
import type { Movement } from '../model/finding.ts';
import { itemsIn, valueIn } from '../model/read.ts';
import type { ObjectGroup, PodFacts, Snapshot } from '../model/snapshot.ts';
import { countsOf, isContentRead } from './content.ts';
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
    const sets = shrinkingTypes(before, now);
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
export function shrinkingTypes(before: Snapshot, now: Snapshot) {
  const earlier = new Map(before.content.map(({ type, read }) => [typeName(type), valueIn(read)]));
  return now.content.flatMap(({ type, read }) => {
    const old = earlier.get(typeName(type))?.terminating;
    const left = valueIn(read)?.terminating;
    if (old === undefined || left === undefined) return [];
    const had = countsBySet(old);
    return [...countsBySet(left)].flatMap(([set, now]) => {
      const before = had.get(set) ?? 0;
      const finalizers: string[] = JSON.parse(set);
      return now < before ? { type, before, now, finalizers } : [];
    });
  });
}

function countsBySet(groups: readonly ObjectGroup[]): Map<string, number> {
  const bySet = Map.groupBy(groups, ({ finalizers }) => finalizerSet(finalizers));
  return new Map([...bySet].map(([set, same]) => [set, sum(same.map(({ count }) => count))]));
}

/** Returns a key that is equal for the same finalizers in any order. */
export function finalizerSet(finalizers: readonly string[]): string {
  return JSON.stringify([...finalizers].sort());
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
