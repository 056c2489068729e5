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
} from './context.ts';
import { buildGraph } from './graph.ts';
import { isWithoutMovement, movementOf, movementWithoutFinding } from './movement.ts';
import { heldByFinalizers } from './owner/finalizers.ts';
import { failingApis } from './rules/apis.ts';
import {
  isUnprocessed,
  namespaceControllerInactive,
  unexplainedHang,
  unprocessedNamespace,
} from './rules/controller.ts';
import { podGracePeriod, podOverdue, volumeInUse } from './rules/pods.ts';
import { contentDeleting, crdTerminating, failingTypes } from './rules/types.ts';

/**
 * Explains from a snapshot why the namespace still exists. No I/O: the same snapshots give the same diagnosis.
 * `before` is an earlier snapshot of the same wait; without it, a slow and a stuck deletion cannot be distinguished.
 */
export function diagnose(now: Snapshot, before?: Snapshot): Diagnosis {
  const [own, ...others] = interpret(now, before).map(explain) as [Explained, ...Explained[]];
  const linked = others.reduce(linkToOtherNamespace, own.results);
  const moving = [own, ...others].find(({ movement }) => !isWithoutMovement(movement)) ?? own;
  return {
    ...buildGraph(linked),
    queued: queuedOf(now),
    notInspected: notInspected(own.context),
    movement: moving.movement,
    namespaceUnread: now.trouble !== undefined,
    inspectedTypes: countsOf(now).length,
  };
}

/** Reads the snapshots of the namespace, and of those for which its objects wait. */
function interpret(now: Snapshot, before: Snapshot | undefined): Context[] {
  const earlier = before === undefined ? [] : snapshotsBehind(before);
  const others = snapshotsBehind(now).map((other) =>
    contextOf(
      other,
      earlier.find(({ namespace }) => namespace.uid === other.namespace.uid),
    ),
  );
  return [contextOf(now, before), ...others];
}

/** What may hold a namespace. The graph ranks the findings of all rules. */
const RULES: readonly Rule[] = [
  failingApis,
  podGracePeriod,
  podOverdue,
  failingTypes,
  namespaceControllerInactive,
  heldByFinalizers,
  volumeInUse,
  crdTerminating,
  contentDeleting,
];

interface Explained {
  context: Context;
  results: RuleResult[];
  movement: Movement;
}

function explain(context: Context): Explained {
  const { now } = context;
  const results = withServers(RULES.flatMap((rule) => rule(context)));
  const blocking = results.filter(blocks);
  const movement = movementBeside(context, blocking);
  const isRead = now.forecast === undefined && now.trouble === undefined && now.unread.length === 0;
  const isUnexplained = isRead && blocking.length === 0 && isWithoutMovement(movement);
  const rest = isUnprocessed(context) ? unprocessedNamespace : unexplainedHang;
  return { context, results: isUnexplained ? [...results, rest(context)] : results, movement };
}

function blocks({ blocksNamespace = false }: RuleResult): boolean {
  return blocksNamespace;
}

/** Links a finding to the owner that serves it, if that owner does not run: its start ends both. */
function withServers(results: readonly RuleResult[]): RuleResult[] {
  const asleep = results.filter(({ code }) => /^owner-(?:scaled-to-zero|not-ready)$/.test(code));
  return results.map((result) => {
    const server = asleep.find(({ subject }) => actorText(subject) === result.servedBy);
    if (server === undefined) return result;
    return { ...result, waitsFor: [...(result.waitsFor ?? []), resultId(server)] };
  });
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
    waitsFor: result.waitsFor?.flatMap((id) => (id === placeholder ? ends.map(resultId) : [id])),
  }));
}

/** Says whether the content becomes less, or, where only slow content blocks it, whether the controller is at work. */
function movementBeside(context: Context, blocking: readonly RuleResult[]): Movement {
  const { now } = context;
  const isSlow = blocking.every(({ code }) => code === 'content-deleting');
  const moving = movementOf(context, !isSlow);
  // Without a request for the deletion no controller has begun.
  const isForecast = isForeseen(context, { since: now.namespace.deletionTimestamp ?? '' });
  if (isForecast || now.unread.length > 0) return moving;
  if (blocking.length === 0) return movementWithoutFinding(context) ?? moving;
  // A second snapshot would have shown the speed.
  return isSlow && moving.kind === 'unknown' ? { kind: 'retrying' } : moving;
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
