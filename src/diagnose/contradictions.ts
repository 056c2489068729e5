import type { View } from './draft.ts';

/** One line for each way in which the namespace's conditions say something else than was found. */
export function contradictionsOf(view: View): string[] {
  const { now, conditions } = view;
  if (!conditions.present) return [];
  const lines: string[] = [];
  const objects = now.content.reduce(
    (total, { read }) => total + (read.ok ? read.value.total : 0),
    0,
  );
  const saysEmpty = now.namespace.conditions.some(
    (condition) => condition.type === 'NamespaceContentRemaining' && condition.status === 'False',
  );
  if (saysEmpty && objects > 0) {
    lines.push(
      `the namespace's own condition says "All content successfully removed", but ${objects} ${objects === 1 ? 'object is' : 'objects are'} still there`,
    );
  }
  // Of queued objects only the number is known; the conditions count their finalizers as well.
  const isComplete =
    now.discovery.ok && now.content.every(({ read }) => read.ok && read.value.queued === 0);
  const there = new Set(
    now.content.flatMap(({ read }) =>
      read.ok ? read.value.terminating.flatMap(({ finalizers }) => finalizers) : [],
    ),
  );
  for (const { finalizer } of conditions.finalizersRemaining) {
    if (isComplete && !there.has(finalizer)) {
      lines.push(
        `the namespace's conditions still name finalizer ${finalizer}, but no object has it any more (they can be a minute old)`,
      );
    }
  }
  return lines;
}
