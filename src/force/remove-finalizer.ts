import { objectPath } from '../kubernetes/paths.ts';
import { type FinalizerAction, listNames, plural, typeName } from './force-plan.ts';
import { checkNamespace } from './guard.ts';
import { type Holder, listHolders } from './holders.ts';
import type { Done, Journal } from './journal.ts';
import { describeTarget } from './render-plan.ts';
import { inBatches, type Run } from './run.ts';
import { type Reread, removalPatch, type Written, write } from './write.ts';

/** Whether a later plan may do the same again: only while that changes something. */
export type Worth = 'again' | 'finished';

interface Seen extends Done {
  isBack?: boolean;
}

/**
 * Takes one finalizer off every terminating object of a type, one JSON Patch per object. The list is
 * read first and the namespace after it: objects that were read before the namespace was found to be
 * the same one belong to it, and their UID is tested in every patch.
 */
export async function removeFinalizer(
  run: Run,
  action: FinalizerAction,
  journal: Journal,
): Promise<Worth> {
  const type = typeName(action.type);
  const listed = await listHolders(run, action);
  if (!listed.ok) {
    journal.act(
      describeTarget(action, run.plan),
      action,
      false,
      `not done: ${type} could not be listed: ${listed.failure.message}`,
    );
    return 'finished';
  }
  const toDo = listed.value.filter(({ isTerminating }) => isTerminating);
  refuseOthers(action, listed.value, journal);
  if (toDo.length === 0) {
    journal.act(
      describeTarget(action, run.plan),
      action,
      false,
      'nothing to do: no terminating object has it',
    );
    return 'finished';
  }
  const before = journal.writes;
  const done: (Done & { uid: string })[] = [];
  let stopped: string | undefined;
  await inBatches(toDo, async (batch) => {
    if (run.signal.aborted) stopped = 'the run was cancelled';
    const standing = stopped === undefined ? await checkNamespace(run) : undefined;
    if (standing !== undefined && !standing.ok) stopped = standing.reason;
    if (stopped !== undefined) return 'stop';
    const written = await Promise.all(batch.map((holder) => removeFromOne(run, action, holder)));
    batch.forEach(({ name, uid }, index) => {
      const { reached, result, wrote } = written[index] as Written;
      if (wrote) journal.writes++;
      done.push({ name, uid, byUs: wrote && reached, result });
    });
    return 'go-on';
  });
  const left = toDo.slice(done.length).map(({ name }) => ({
    name,
    byUs: false,
    result: `not done: ${stopped ?? ''}`,
  }));
  const seen = await findAddedAgain(run, action, done);
  journal.actOnObjects(type, action, [...seen, ...left]);
  const isFoughtOver = seen.some(({ isBack }) => isBack);
  return stopped === undefined && !isFoughtOver && journal.writes > before ? 'again' : 'finished';
}

async function removeFromOne(run: Run, action: FinalizerAction, holder: Holder): Promise<Written> {
  const path = objectPath(action.type, run.plan.namespace.name, holder.name);
  return write(run, holder, {
    done: 'removed',
    request: ({ uid, finalizers }) => ({
      method: 'PATCH',
      path,
      contentType: 'application/json-patch+json',
      body: removalPatch(uid, finalizers, action.finalizer),
    }),
    reread: () => rereadHolder(run, action, holder),
  });
}

async function rereadHolder(
  run: Run,
  action: FinalizerAction,
  before: Holder,
): Promise<Reread<Holder>> {
  const listed = await listHolders(run, action, before.name);
  if (!listed.ok) {
    return {
      now: 'stop',
      result: `not done: it could not be read again: ${listed.failure.message}`,
    };
  }
  const now = listed.value[0];
  if (now === undefined) return { now: 'reached', result: 'no longer there' };
  if (now.uid !== before.uid || !now.isTerminating) {
    return { now: 'stop', result: 'not done: another object has the name now' };
  }
  const standing = await checkNamespace(run);
  if (!standing.ok) return { now: 'stop', result: `not done: ${standing.reason}` };
  return { now: 'to-do', state: now };
}

/** One look after all writes of the type: an owner that puts the finalizer back is named. */
async function findAddedAgain(
  run: Run,
  action: FinalizerAction,
  done: readonly (Done & { uid: string })[],
): Promise<Seen[]> {
  if (!done.some(({ byUs }) => byUs)) return [...done];
  const listed = await listHolders(run, action);
  const holders = new Map((listed.ok ? listed.value : []).map((holder) => [holder.uid, holder]));
  return done.map((entry) => {
    if (!entry.byUs) return entry;
    if (!listed.ok) {
      return { ...entry, result: `${entry.result}; not read back: ${listed.failure.message}` };
    }
    const back = holders.get(entry.uid);
    if (back === undefined) return entry;
    const by = back.manager === undefined ? 'by an unknown manager' : `by manager ${back.manager}`;
    return { ...entry, byUs: false, isBack: true, result: `removed, and added again ${by}` };
  });
}

function refuseOthers(action: FinalizerAction, holders: readonly Holder[], journal: Journal): void {
  const others = holders.filter(({ isTerminating }) => !isTerminating);
  if (others.length === 0) return;
  const names = others.map(({ name }) => name);
  const type = typeName(action.type);
  journal.refuse(
    others.length === 1
      ? `${type}/${names[0]}`
      : `${plural(others.length, 'object')} of ${type} (${listNames(names)})`,
    `has ${action.finalizer} and no deletionTimestamp: only terminating objects are touched`,
  );
}
