import { type NamespaceConditions, namespaceConditions } from '../model/conditions.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { type ContentError, classifyErrorText } from './error-texts.ts';

/** A snapshot with what its texts mean: the input of every rule. Rules do no I/O. */
export interface Context {
  now: Snapshot;
  /** An earlier snapshot of the same wait, to tell slow from stuck. */
  before: Snapshot | undefined;
  conditions: NamespaceConditions;
  /** Why types could not be deleted, by the conditions of the namespace. */
  contentErrors: ContentError[];
  /** `now.takenAt` in ms since the epoch: the server's clock. */
  nowMs: number;
}

export function contextOf(now: Snapshot, before?: Snapshot): Context {
  const conditions = namespaceConditions(now.namespace.conditions);
  const contentErrors = classifyErrorText(conditions.contentFailure ?? '');
  return { now, before, conditions, contentErrors, nowMs: Date.parse(now.takenAt) };
}

/** Reports whether an object is deleted together with this namespace, because it is in it. */
export function isInside({ now }: Context, namespace: string | undefined): boolean {
  return namespace === now.namespace.name;
}

/** Reports whether a forecast is about the deletion of this namespace: the examined one, or one deleted with it. */
export function willBeDeleted(context: Context, namespace: string | undefined): boolean {
  const { forecast } = context.now;
  if (forecast === undefined || namespace === undefined) return false;
  return isInside(context, namespace) || forecast.together.includes(namespace);
}

/** Reports whether a deletion, by default that of the namespace, is only foreseen: a forecast dates it to the time of the snapshot. */
export function isForeseen({ now }: Context, held?: { since: string }): boolean {
  const since = held?.since ?? now.namespace.deletionTimestamp;
  return now.forecast !== undefined && since === now.takenAt;
}

/** Returns "was in this namespace and was deleted with it", or the same in the words of a forecast. */
export function fateText(context: Context, namespace?: string): string {
  if (context.now.forecast === undefined) return 'was in this namespace and was deleted with it';
  return namespace === undefined || isInside(context, namespace)
    ? 'is in this namespace and would be deleted with it'
    : `is in namespace ${namespace}, which would be deleted at the same time`;
}

/** Returns a function that computes its result once for each object: a run may have a thousand diagnoses. */
export function remember<K extends object, T>(find: (key: K) => T): (key: K) => T {
  const found = new WeakMap<K, T>();
  return (key) => {
    const result = found.get(key) ?? find(key);
    found.set(key, result);
    return result;
  };
}
