import { serverTimestamp, type TimelineEntry } from '../base/time.ts';
import { commandsElsewhere, commandsFirst, type OrderStep, orderOf } from '../forecast/order.ts';
import { collectItems } from '../kubernetes/api.ts';
import { collectionPath, deleteRequest, objectPath } from '../kubernetes/paths.ts';
import { apiVersionOf, objectFacts, typeName } from '../model/facts/metadata.ts';
import { ADMISSION } from '../model/read.ts';
import type { Deletion } from '../model/result.ts';
import type { NamespaceFacts, ObjectFacts } from '../model/snapshot.ts';
import { inParallel } from '../observe/collections.ts';
import { readNamespace } from '../observe/namespaces.ts';
import { MISTAKE } from '../observe/observe.ts';
import { isDeletedOrReplaced } from '../observe/trials.ts';
import { deletesPodsFirst, EXAMINE_LIMIT_MS, type Examination, examine } from './examine.ts';
import { causeText } from './progress.ts';
import type { Existing, Run, Target } from './run.ts';

const POLL_MS = { first: 500, factor: 1.5, most: 5_000 };

/** The run, and the state of an ordered deletion in one namespace. */
interface OrderedRun extends Run {
  namespace: NamespaceFacts;
  /** Deletions by the UID of the object. */
  deletions: Map<string, Deletion>;
  /** Logs an event and records it, once. */
  note(event: string): void;
  /** Returns the time until the deadline, in milliseconds; 0 if the run was cancelled. */
  timeLeft(): number;
}

/**
 * Deletes the objects that need a running controller, inside these namespaces only: one group after the other, each until
 * it is gone. Never deletes anything cluster-scoped and never removes a finalizer; each object has its UID as a
 * precondition. Objects that remain are explained while their controller still runs, and the teardown continues.
 */
export async function deleteInOrder(targets: readonly Existing[], run: Run): Promise<Target[]> {
  const { clock, inputs, signal, startedAt } = run;
  const namespaces = targets.map(({ first: namespace }) => ({ namespace }));
  const foresight = { isPodsFirst: deletesPodsFirst(run) };
  const seen = await examine(namespaces, EXAMINE_LIMIT_MS, run, foresight);
  if (signal.aborted) return [...targets];
  const deadline = Math.min(
    clock.now() + inputs.orderTimeoutMs,
    startedAt + Math.max(inputs.timeoutMs, inputs.orderTimeoutMs),
  );
  const timeLeft = (): number => (signal.aborted ? 0 : Math.max(0, deadline - clock.now()));
  return inParallel([...targets.entries()], ([index, target]) =>
    deleteIn(target, seen[index] as Examination, timeLeft, run),
  );
}

async function deleteIn(
  target: Existing,
  { snapshot, diagnosis }: Examination,
  timeLeft: () => number,
  run: Run,
): Promise<Target> {
  const { namespace } = snapshot;
  const mistake = snapshot.unread.find(({ reason }) => reason.startsWith(MISTAKE));
  if (mistake !== undefined) {
    const refusal = `nothing was deleted, because the order is not known: ${mistake.reason}`;
    return { ...target, refusal };
  }
  const timeline: TimelineEntry[] = [];
  const deletions = new Map<string, Deletion>();
  const note = (event: string): void => {
    if (timeline.some((entry) => entry.event === event)) return;
    run.log.line(`${namespace.name}: ${event}`);
    timeline.push({ at: serverTimestamp(run), event });
  };
  for (const { command, why } of commandsFirst(snapshot, diagnosis))
    note(`not done, because it is cluster-scoped: ${command} (${why})`);
  for (const { command, why } of commandsElsewhere(snapshot))
    note(`not done, because it may reach beyond this namespace: ${command} (${why})`);
  const steps = orderOf(snapshot);
  if (steps.length === 0) note('no object in it has to be deleted first');
  const ordered = { ...run, namespace, deletions, note, timeLeft };
  for (const group of Map.groupBy(steps, (step) => step.place).values())
    if (!(await deleteGroup(group, ordered))) break;
  return { ...target, timeline, deletions: [...deletions.values()] };
}

/**
 * Requests the deletion of the objects of these steps until none is left, and reports whether the next group may follow.
 * A refused request is repeated, because a webhook may be restarting.
 */
async function deleteGroup(steps: readonly OrderStep[], run: OrderedRun): Promise<boolean> {
  const { clock, namespace, note, signal, timeLeft } = run;
  const known = new Set<string>();
  for (let pause = POLL_MS.first; ; pause = Math.min(pause * POLL_MS.factor, POLL_MS.most)) {
    const now = await readNamespace(namespace.name, run);
    // Objects of a new namespace with this name must not be deleted.
    if (now.ok && now.value?.uid !== namespace.uid) {
      note('the namespace was deleted or replaced meanwhile: nothing more is deleted in it');
      return false;
    }
    const left: ObjectFacts[] = [];
    let forbidden = 0;
    let isKnown = now.ok;
    for (const step of steps) {
      const there = await listObjects(step, run);
      isKnown &&= there !== undefined;
      const mine = (there ?? []).filter((one) => known.has(one.uid) || step.matches(one));
      const fresh = mine.filter(({ uid }) => !known.has(uid));
      const what = `${fresh.length} ${typeName(step.type)}`;
      if (fresh.length > 0)
        note(
          known.size === 0
            ? `first ${what}, because ${step.why}`
            : `${what} were created again, and are deleted again: delete what creates them first`,
        );
      left.push(...mine);
      const asked = mine.filter(({ deletionTimestamp }) => deletionTimestamp === undefined);
      const isForbidden = (object: ObjectFacts) => requestObjectDeletion(object, step, run);
      if (now.ok && timeLeft() > 0)
        forbidden += (await inParallel(asked, isForbidden)).filter(Boolean).length;
    }
    for (const { uid } of left) known.add(uid);
    if (left.length === 0 && (isKnown || known.size === 0)) {
      if (known.size > 0) note('they were deleted');
      return true;
    }
    if (forbidden > 0 && forbidden === left.length) {
      note(
        'this identity is not allowed to delete any of them, so the gate does not wait for them; rbac/delete-ordered.yaml has the permission that it lacks',
      );
      return true;
    }
    if (timeLeft() === 0) {
      await explainRemaining(left, run);
      return false;
    }
    await clock.sleep(Math.min(pause, timeLeft()), signal);
  }
}

/** Lists the objects of a step; undefined if they could not be read, which does not mean that none is left. */
async function listObjects(
  { type }: OrderStep,
  { api, namespace, note, signal }: OrderedRun,
): Promise<ObjectFacts[] | undefined> {
  const path = collectionPath(type, namespace.name);
  const begin = collectItems((item) => objectFacts(item, type));
  const listed = await api.list(path, begin, { signal, metadataOnly: true });
  if (listed.ok) return listed.value.kept;
  if (!signal.aborted) note(`${typeName(type)} could not be listed: ${listed.failure.message}`);
  return undefined;
}

/** Requests the deletion of one object, and reports whether this identity lacks the permission. */
async function requestObjectDeletion(
  { name, uid }: ObjectFacts,
  { type }: OrderStep,
  { api, deletions, log, namespace, note, signal }: OrderedRun,
): Promise<boolean> {
  if (signal.aborted) return false;
  const { kind } = type;
  // The log has the deletion before it is sent, because the run may end before the answer arrives.
  log.line(`${namespace.name}: deleting ${kind} ${name} (UID ${uid})`);
  const entry = { apiVersion: apiVersionOf(type), kind, name, uid };
  deletions.set(uid, { ...entry, result: 'deletion requested, without an answer' });
  const options = { preconditions: { uid }, propagationPolicy: 'Background' };
  const path = objectPath(type, namespace.name, name);
  // The next look repeats a deletion that failed.
  const sent = await api.send(deleteRequest(path, options), { signal, retries: 0 });
  if (sent.ok) deletions.set(uid, { ...entry, result: 'deletion requested' });
  else if (isDeletedOrReplaced(sent.failure)) deletions.set(uid, { ...entry, result: 'deleted' });
  else if (!signal.aborted) {
    const { kind: failure, message } = sent.failure;
    deletions.set(uid, { ...entry, result: message });
    note(`${kind} ${name} cannot be deleted: ${message}`);
    // A webhook may accept a second request; a missing permission does not change.
    return failure === 'forbidden' && !ADMISSION.test(message);
  }
  return false;
}

/** Logs why objects remain, while their controller still runs and its log can be read. */
async function explainRemaining(
  [first, ...others]: readonly ObjectFacts[],
  run: OrderedRun,
): Promise<void> {
  if (run.signal.aborted) return;
  const more = others.length > 0 ? ` and ${others.length} more` : '';
  const which = first === undefined ? 'something' : `${first.kind} ${first.name}${more}`;
  // The deletion of the namespace was not requested yet. The diagnosis treats it as requested, because it is
  // about the objects.
  const namespace = { ...run.namespace, deletionTimestamp: serverTimestamp(run) };
  const [seen] = await examine([{ namespace }], EXAMINE_LIMIT_MS, run);
  const cause = seen && causeText(seen.diagnosis);
  const why = cause === undefined ? '' : `: ${cause}`;
  run.note(`${which} could not be deleted in time${why}; the teardown continues`);
}
