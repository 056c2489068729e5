import { apiVersionOf } from '../model/facts/metadata.ts';
import type { Diagnosis } from '../model/finding.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { actorText } from './actors.ts';
import { openQuestions } from './admission/judge.ts';
import { countsOf } from './content.ts';
import { type Context, contextOf } from './context.ts';
import { buildGraph } from './graph.ts';
import { movementOf } from './movement.ts';
import { everythingHeld, heldResults } from './owner/finalizers.ts';
import { type RuleResult, resultId } from './results.ts';
import { namespaceControllerInactive, unexplainedHang } from './rules/controller.ts';
import { unendedPods, volumeInUse } from './rules/pods.ts';
import { contentDeleting, crdTerminating, failingApis, failingTypes } from './rules/types.ts';

/** What holds a namespace itself, and why that does not proceed. The graph links and ranks the findings of all rules. */
const RULES: readonly ((context: Context) => RuleResult[])[] = [
  failingApis,
  (context) => unendedPods(context).map(({ result }) => result),
  failingTypes,
  namespaceControllerInactive,
  volumeInUse,
  contentDeleting,
];

/** Explains from a snapshot why the namespace still exists. `before`, of the same wait: without it, slow and stuck cannot be told apart. */
export function diagnose(now: Snapshot, before?: Snapshot): Diagnosis {
  const context = contextOf(now, before);
  const holding = RULES.flatMap((rule) => rule(context));
  const found = withServers([
    ...holding.map((result) => ({ ...result, blocksNamespace: true })),
    ...everythingHeld(context).flatMap((held) => heldResults(context, held)),
    ...crdTerminating(context),
  ]);
  const blocking = found.filter(({ blocksNamespace }) => blocksNamespace);
  const movement = movementOf(context, blocking);
  const isRead = now.forecast === undefined && now.unread.length === 0;
  const isUnexplained = isRead && blocking.length === 0 && /^(?:none|unknown)$/.test(movement.kind);
  const open = [...now.unread, ...openQuestions(context)];
  return {
    ...buildGraph(isUnexplained ? [...found, unexplainedHang(context)] : found),
    queued: countsOf(now)
      .filter(({ queued }) => queued > 0)
      .map(({ type: t, queued: count }) => ({ apiVersion: apiVersionOf(t), kind: t.kind, count }))
      .sort((a, b) => b.count - a.count || (a.kind < b.kind ? -1 : 1)),
    notInspected: [...new Map(open.map((one) => [`${one.what}\n${one.reason}`, one])).values()],
    movement,
    inspectedTypes: countsOf(now).length,
  };
}

/** Links a finding to the owner that serves it, if that owner does not run: its start ends both. */
function withServers(found: readonly RuleResult[]): RuleResult[] {
  const asleep = found.filter(({ code }) => /^owner-(?:scaled-to-zero|not-ready)$/.test(code));
  return found.map((result) => {
    const server = asleep.find(({ subject }) => actorText(subject) === result.servedBy);
    if (server === undefined) return result;
    return { ...result, waitsFor: [...(result.waitsFor ?? []), resultId(server)] };
  });
}
