import { stringAt } from '../base/json.ts';
import { namespacePath } from '../kubernetes/paths.ts';
import { type NamespaceAction, namespaceTarget } from './force-plan.ts';
import type { Journal } from './journal.ts';
import { describeLeftover, listLeftovers, orphansOf, remainsOf, withUnseen } from './leftovers.ts';
import { describeRemains, isEmpty } from './remains.ts';
import type { Run } from './run.ts';

/** Said once per run, where there are orphans: what can still be done about them, and how. */
const RECOVERY =
  'they can be deleted, but not changed: taking off a finalizer answers 404 until a namespace of this name exists again; to clean up, create it, remove what holds them, and delete it';

/**
 * Looks at all of the namespace's content right before its own entries are touched: there has to be
 * none, and nothing unread, or leaving it behind has to be accepted.
 */
export async function mayLeaveBehind(
  run: Run,
  actions: readonly NamespaceAction[],
  journal: Journal,
): Promise<boolean> {
  const left = await listLeftovers(run);
  const remains = remainsOf(left);
  if (isEmpty(remains)) return true;
  const target = namespaceTarget(run.plan.namespace.name);
  const text = describeRemains(remains);
  if (run.plan.orphans === 'refuse') {
    journal.refuse(
      target,
      `${text}; only force-orphans: accept would finalize the namespace and leave it behind`,
    );
    for (const action of actions) {
      journal.act(target, action, false, 'not done: content remains or could not be read');
    }
    return false;
  }
  // Before the write that strands them: should this process die now, the log still has the list.
  const lines = left.objects.map((object) => `${describeLeftover(object)} uid ${object.uid}`);
  run.log.group(`May be left behind: ${left.objects.length} objects`, [...lines, text]);
  journal.inventory = left;
  return true;
}

/** Nothing but a 404 for the name, or another UID, is "gone"; then everything that still answers is listed. */
export async function verifyEnd(
  run: Run,
  journal: Journal,
): Promise<'forced' | 'deleted' | 'recreated' | undefined> {
  const { name, uid } = run.plan.namespace;
  const got = await run.api.get(namespacePath(name), { signal: run.signal });
  const found = got.ok ? stringAt(got.value, 'metadata', 'uid') : undefined;
  const isReplaced = found !== undefined && found !== uid;
  const isGone = !got.ok && got.failure.kind === 'not-found';
  if (!isGone && !isReplaced) return undefined;
  if (journal.writes === 0) return isGone ? 'deleted' : 'recreated';
  const created = got.ok ? stringAt(got.value, 'metadata', 'creationTimestamp') : undefined;
  const left = withUnseen(await listLeftovers(run, created), journal.inventory);
  journal.orphans = orphansOf(left);
  journal.unread.push(...left.unread);
  if (journal.orphans.length > 0) {
    const count =
      journal.orphans.length === 1 ? '1 object is' : `${journal.orphans.length} objects are`;
    journal.note(namespaceTarget(name), `${count} left behind: ${RECOVERY}`);
  }
  for (const { what, reason } of left.unread) {
    journal.note(what, `not searched for what is left behind: ${reason}`);
  }
  return 'forced';
}
