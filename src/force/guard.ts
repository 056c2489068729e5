import { type JsonObject, recordAt, stringAt } from '../base/json.ts';
import { namespacePath } from '../kubernetes/paths.ts';
import { protectedBecause } from '../model/policy.ts';
import type { Run } from './run.ts';

/** Whether the namespace may be written to at this moment. */
export type Standing =
  | { ok: true; object: JsonObject }
  | { ok: false; ended: 'gone' | 'replaced' | 'not-allowed' | 'unread'; reason: string };

/**
 * Reads the namespace and asks everything again that can have changed since the plan was made. Runs
 * before every batch of writes: a label that somebody takes off is a way to say "stop".
 */
export async function checkNamespace(run: Run): Promise<Standing> {
  const { namespace, label } = run.plan;
  const why = protectedBecause(namespace.name, run.api.target.ownNamespace);
  if (why !== undefined) return refuse('not-allowed', `the namespace is protected: ${why}`);
  const got = await run.api.get(namespacePath(namespace.name), { signal: run.signal });
  if (!got.ok) {
    return got.failure.kind === 'not-found'
      ? refuse('gone', 'the namespace is gone')
      : refuse('unread', `the namespace could not be read again: ${got.failure.message}`);
  }
  const object = got.value;
  const uid = stringAt(object, 'metadata', 'uid');
  if (uid === undefined || uid !== namespace.uid) {
    return refuse('replaced', `another namespace has the name now (UID ${uid ?? 'unknown'})`);
  }
  const isTerminating =
    stringAt(object, 'metadata', 'deletionTimestamp') !== undefined &&
    stringAt(object, 'status', 'phase') === 'Terminating';
  if (!isTerminating) return refuse('not-allowed', 'the namespace is not Terminating');
  if (label !== undefined && recordAt(object, 'metadata', 'labels')[label.key] !== label.value) {
    return refuse(
      'not-allowed',
      `the namespace no longer has the label ${label.key}=${label.value}`,
    );
  }
  return { ok: true, object };
}

function refuse(ended: Exclude<Standing, { ok: true }>['ended'], reason: string): Standing {
  return { ok: false, ended, reason };
}
