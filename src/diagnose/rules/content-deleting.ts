import { typeSubject } from '../display.ts';
import type { Draft, View } from '../draft.ts';
import { type Shrinking, shrinkingTypes } from '../movement.ts';
import { contentDeletingRemedies } from '../remedies/general.ts';

/** Objects that are going away right now: slow, not stuck. */
export function contentDeleting(view: View): Draft[] {
  if (view.before === undefined) return [];
  const seconds = Math.max(1, Math.round((view.nowMs - Date.parse(view.before.takenAt)) / 1_000));
  const byType = new Map<string, Shrinking[]>();
  for (const moving of shrinkingTypes(view.before, view.now)) {
    const key = `${moving.content.type.resource}.${moving.content.type.group}`;
    byType.set(key, [...(byType.get(key) ?? []), moving]);
  }
  return [...byType.values()].map((list) => toDraft(list, seconds));
}

function toDraft(list: Shrinking[], seconds: number): Draft {
  const type = (list[0] as Shrinking).content.type;
  const before = list.reduce((total, moving) => total + moving.before, 0);
  const now = list.reduce((total, moving) => total + moving.now, 0);
  const rate = (before - now) / seconds;
  const left = rate > 0 ? `, so about ${Math.ceil(now / rate)} s to go` : '';
  const finalizers = [...new Set(list.flatMap((moving) => moving.finalizers))];
  return {
    code: 'content-deleting',
    subject: typeSubject(type),
    message: `are still going away: ${before} objects ${seconds} s ago, ${now} now`,
    evidence: [
      `${before} then, ${now} now, ${(rate * 60).toFixed(rate * 60 < 10 ? 1 : 0)} a minute${left}`,
      ...(finalizers.length === 0
        ? []
        : [`each still has ${finalizers.join(', ')}, which is being removed one by one`]),
    ],
    scope: 'namespace',
    ...(now > 1 ? { count: now } : {}),
    remedies: contentDeletingRemedies({ type }),
    blocksNamespace: `${now} of them are left`,
  };
}
