import type { Diagnosis, Movement, QueuedContent } from '../model/finding.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { actorText } from './actors.ts';
import { openQuestions } from './admission/foreseen.ts';
import {
  apiVersionOf,
  behindId,
  type Context,
  contextOf,
  countsOf,
  isForeseen,
  type Rule,
  type RuleResult,
  resultId,
  snapshotsBehind,
  totalCount,
} from './context.ts';
import { buildGraph } from './graph.ts';
import { movementOf, movementWithoutFinding } from './movement.ts';
import { heldByFinalizers } from './owner/finalizers.ts';
import { failingApis } from './rules/apis.ts';
import {
  isUnprocessed,
  namespaceControllerInactive,
  unexplainedHang,
  unprocessedNamespace,
} from './rules/controller.ts';
import { podGracePeriod, podLongGrace, podOverdue, volumeInUse } from './rules/pods.ts';
import { contentDeleting, crdTerminating, failingTypes } from './rules/types.ts';

/** All rules. Each one is applied, and the graph ranks their findings. */
const RULES: readonly Rule[] = [
  failingApis,
  podGracePeriod,
  podLongGrace,
  podOverdue,
  failingTypes,
  namespaceControllerInactive,
  heldByFinalizers,
  volumeInUse,
  crdTerminating,
];

/**
 * Explains from a snapshot why the namespace still exists. No I/O: the same snapshots give the same
 * diagnosis. `before` is an earlier snapshot of the same wait; without it, a slow and a stuck deletion cannot be
 * distinguished.
 */
export function diagnose(now: Snapshot, before?: Snapshot): Diagnosis {
  const { context, results, ...own } = explain(now, before);
  const earlier = before === undefined ? [] : snapshotsBehind(before);
  const others = snapshotsBehind(now).map((other) =>
    explain(
      other,
      earlier.find(({ namespace }) => namespace.uid === other.namespace.uid),
    ),
  );
  const movement =
    [own, ...others].map((one) => one.movement).find((one) => !isWithoutMovement(one)) ??
    own.movement;
  const graph = buildGraph(others.reduce(linkToOtherNamespace, results));
  return {
    ...graph,
    queued: queuedOf(now),
    notInspected: notInspected(context),
    contradictions: contradictionsOf(context),
    movement,
    namespaceUnread: now.trouble !== undefined,
    inspectedTypes: countsOf(now).length,
  };
}

interface Explained {
  context: Context;
  results: RuleResult[];
  movement: Movement;
}

function blocks({ blocksNamespace }: RuleResult): boolean {
  return blocksNamespace !== undefined;
}

function isWithoutMovement({ kind }: Movement): boolean {
  return kind === 'none' || kind === 'unknown';
}

/** Puts what another namespace waits for behind the objects of this one that wait for that namespace. */
function linkToOtherNamespace(
  results: readonly RuleResult[],
  { context, ...other }: Explained,
): RuleResult[] {
  const blocking = other.results.filter(blocks);
  const ends = blocking.length > 0 ? blocking : [unexplainedHang(context)];
  const placeholder = behindId(context.now.namespace.name);
  const inner = [...other.results, ...ends].map((result) => ({
    ...result,
    blocksNamespace: undefined,
    waitsForNamespace: undefined,
  }));
  return [...results, ...inner].map((result) => ({
    ...result,
    waitsFor: result.waitsFor?.flatMap((link) =>
      link.id !== placeholder
        ? [link]
        : ends.map((end) => ({
            id: resultId(end),
            because: `${link.because}; there, ${end.blocksNamespace}`,
          })),
    ),
  }));
}

/** Finds what holds one namespace, and whether its content still becomes less. */
function explain(now: Snapshot, before: Snapshot | undefined): Explained {
  const context = contextOf(now, before);
  const found = RULES.flatMap((rule) => rule(context));
  const isHeld = found.some(blocks);
  const deleting = contentDeleting(context);
  const results = withServers([...found, ...deleting]);
  const moving = movementOf(context, isHeld);
  const blocking = results.filter(blocks);
  // Without a request for the deletion no controller has begun.
  const isAsked = !isForeseen(context, { since: now.namespace.deletionTimestamp ?? '' });
  const trying =
    isAsked && now.unread.length === 0 ? retryMovement(context, blocking, moving) : undefined;
  const movement = trying ?? moving;
  const mayEnd = now.forecast === undefined && now.trouble === undefined;
  if (mayEnd && blocking.length === 0 && now.unread.length === 0 && isWithoutMovement(movement)) {
    results.push(isUnprocessed(context) ? unprocessedNamespace(context) : unexplainedHang(context));
  }
  return { context, results, movement };
}

/** Links a finding to the owner that serves it, if that owner does not run: its start ends both. */
function withServers(results: readonly RuleResult[]): RuleResult[] {
  return results.map((result) => {
    const server = results.find(
      ({ code, subject }) =>
        ['owner-scaled-to-zero', 'owner-not-ready'].includes(code) &&
        actorText(subject) === result.servedBy,
    );
    if (server === undefined) return result;
    const link = { id: resultId(server), because: `${server.subject.name} serves it as well` };
    return { ...result, waitsFor: [...(result.waitsFor ?? []), link] };
  });
}

/** Reports whether nothing blocks the namespace controller: it has not begun, tries again, or is slow. */
function retryMovement(
  context: Context,
  blocking: readonly RuleResult[],
  moving: Movement,
): Movement | undefined {
  if (blocking.length === 0) return movementWithoutFinding(context);
  const isSlow = blocking.every(({ code }) => code === 'content-deleting');
  // A second snapshot would have shown the speed.
  return isSlow && moving.kind === 'unknown' ? { kind: 'retrying' } : undefined;
}

function notInspected(context: Context): Diagnosis['notInspected'] {
  const { unread, trouble, namespace } = context.now;
  const own = { what: `namespace ${namespace.name}`, reason: trouble?.message ?? '' };
  const grant = { apiGroup: '', resource: 'namespaces', verb: 'get' };
  const first =
    trouble === undefined ? [] : [trouble.kind === 'forbidden' ? { ...own, grant } : own];
  const all = [...first, ...unread, ...openQuestions(context)];
  return [...new Map(all.map((entry) => [`${entry.what}\n${entry.reason}`, entry])).values()];
}

function queuedOf(now: Snapshot): QueuedContent[] {
  return countsOf(now)
    .filter(({ queued }) => queued > 0)
    .map(({ type, queued: count }) => ({ apiVersion: apiVersionOf(type), kind: type.kind, count }))
    .sort((a, b) => b.count - a.count || (a.kind < b.kind ? -1 : 1));
}

/** Returns what the conditions of the namespace contradict of the objects that were read. */
function contradictionsOf({ now }: Context): string[] {
  const objects = totalCount(now);
  const saysEmpty = now.namespace.conditions.some(
    (condition) => condition.type === 'NamespaceContentRemaining' && condition.status === 'False',
  );
  if (!saysEmpty || objects === 0) return [];
  return [
    `the namespace's own condition says "All content successfully removed", but it still contains objects: ${objects}`,
  ];
}
