import { listNames } from '../base/text.ts';
import { serverTimestamp, type TimelineEntry } from '../base/time.ts';
import { type OrderStep, orderEntry, orderOf } from '../forecast/order.ts';
import { collectItems } from '../kubernetes/api.ts';
import { collectionPath, deleteRequest, objectPath } from '../kubernetes/paths.ts';
import { apiVersionOf, objectFacts, typeName } from '../model/facts/metadata.ts';
import { lacksPermission } from '../model/read.ts';
import type { Deletion } from '../model/result.ts';
import type { ObjectFacts } from '../model/snapshot.ts';
import { inParallel } from '../observe/collections.ts';
import { readNamespace } from '../observe/namespaces.ts';
import { MISTAKE } from '../observe/observe.ts';
import { isDeletedOrReplaced } from '../observe/trials.ts';
import { EXAMINE_LIMIT_MS, type Examination, examine } from './examine.ts';
import { causeText } from './progress.ts';
import type { Existing, Run, Target } from './run.ts';

const POLL_MS = 1_000;

/**
 * Deletes the objects that need a running controller, inside these namespaces only: one group after the other, each until
 * it is gone, each object with its UID as a precondition. What remains is explained, and the teardown continues.
 */
export async function deleteInOrder(targets: readonly Existing[], run: Run): Promise<Target[]> {
  const { clock, inputs, signal, startedAt } = run;
  const namespaces = targets.map(({ first: namespace }) => ({ namespace }));
  const seen = await examine(namespaces, EXAMINE_LIMIT_MS, run, run);
  if (signal.aborted) return [...targets];
  const latest = startedAt + Math.max(inputs.timeoutMs, inputs.orderTimeoutMs);
  const deadline = Math.min(clock.now() + inputs.orderTimeoutMs, latest);
  return inParallel([...targets.entries()], ([index, target]) => {
    const one = { target, deadline, run, deletions: new Map(), timeline: [] };
    return perform(one, seen[index] as Examination);
  });
}

type Listed = Pick<OrderStep, 'type'> & { object: ObjectFacts };

interface Ordered {
  target: Existing;
  deadline: number;
  run: Run;
  deletions: Map<string, Deletion>;
  timeline: TimelineEntry[];
}

async function perform(one: Ordered, { snapshot }: Examination): Promise<Target> {
  const { deletions, target, timeline } = one;
  const mistake = snapshot.unread.find(({ reason }) => reason.startsWith(MISTAKE));
  if (mistake !== undefined) {
    const refusal = `nothing was deleted, because the order is not known: ${mistake.reason}`;
    return { ...target, refusal };
  }
  const { theirs = [], ours = [] } = Object.groupBy(orderOf(snapshot), ({ isByHand }) =>
    isByHand ? 'theirs' : 'ours',
  );
  for (const { command, why } of theirs.map((step) => orderEntry(target.name, step)))
    note(one, `not done, because it may reach beyond this namespace: ${command} (${why})`);
  if (ours.length === 0) note(one, 'no object in it has to be deleted first');
  for (const group of Map.groupBy(ours, (step) => step.place).values())
    if (!(await deleteGroup(one, group))) break;
  return { ...target, timeline, deletions: [...deletions.values()] };
}

function note(one: Ordered, event: string): void {
  if (one.timeline.some((entry) => entry.event === event)) return;
  one.run.log.line(`${one.target.name}: ${event}`);
  one.timeline.push({ at: serverTimestamp(one.run), event });
}

const NOT_ALLOWED =
  'this identity is not allowed to delete any of them, so the gate does not wait for them; rbac/delete-ordered.yaml has the permission that it lacks';

/** Reports whether the next group may follow. A refused request is repeated: a webhook may be restarting. */
async function deleteGroup(one: Ordered, steps: readonly OrderStep[]): Promise<boolean> {
  const { clock, signal } = one.run;
  for (let hadAny = false; ; ) {
    const now = await readNamespace(one.target.name, one.run);
    // Objects of a new namespace with this name must not be deleted.
    if (now.ok && now.value?.uid !== one.target.first.uid) {
      note(one, 'the namespace was deleted or replaced meanwhile: nothing more is deleted in it');
      return false;
    }
    const looks = await inParallel(steps, (step) => list(one, step));
    const left = looks.flatMap((look) => look ?? []);
    const isRead = now.ok && looks.every((look) => look !== undefined);
    if (left.length === 0 && (isRead || !hadAny)) {
      if (hadAny) note(one, 'they were deleted');
      return true;
    }
    for (const [index, { type, why }] of steps.entries()) {
      const many = looks[index]?.length ?? 0;
      if (!hadAny && many > 0) note(one, `first ${many} ${typeName(type)}, because ${why}`);
    }
    hadAny ||= left.length > 0;
    const timeLeft = signal.aborted ? 0 : Math.max(0, one.deadline - clock.now());
    if (timeLeft === 0) {
      await explainRemaining(one, left);
      return false;
    }
    const asked = left.filter(({ object }) => now.ok && object.deletionTimestamp === undefined);
    const forbidden = await inParallel(asked, (object) => requestDeletion(one, object));
    if (left.length > 0 && forbidden.filter(Boolean).length === left.length) {
      note(one, NOT_ALLOWED);
      return true;
    }
    await clock.sleep(Math.min(POLL_MS, timeLeft), signal);
  }
}

/** Lists the objects of a step; undefined if they could not be read, which does not mean that none is left. */
async function list(one: Ordered, { type, matches }: OrderStep): Promise<Listed[] | undefined> {
  const { api, signal } = one.run;
  const begin = collectItems((item) => objectFacts(item, type));
  const path = collectionPath(type, one.target.name);
  const listed = await api.list(path, begin, { signal, metadataOnly: true });
  if (listed.ok) return listed.value.kept.filter(matches).map((object) => ({ type, object }));
  if (!signal.aborted)
    note(one, `${typeName(type)} could not be listed: ${listed.failure.message}`);
  return undefined;
}

/** Reports whether this identity lacks the permission. */
async function requestDeletion(one: Ordered, { type, object }: Listed): Promise<boolean> {
  const { api, log, signal } = one.run;
  if (signal.aborted) return false;
  const { kind } = type;
  const { name, uid, managers = [] } = object;
  const answered = (result: string) =>
    one.deletions.set(uid, { apiVersion: apiVersionOf(type), kind, name, uid, result });
  // The log has the deletion before it is first sent, because the run may end before the answer arrives.
  if (!one.deletions.has(uid)) {
    const by = managers[0] ? `, by manager ${managers[0]}` : '';
    if (one.deletions.values().some((other) => other.kind === kind && other.name === name))
      note(one, `${kind} ${name} was created again after its deletion${by}`);
    log.line(`${one.target.name}: deleting ${kind} ${name} (UID ${uid})`);
  }
  answered('deletion requested, without an answer');
  const options = { preconditions: { uid }, propagationPolicy: 'Background' };
  const path = objectPath(type, one.target.name, name);
  // The next look repeats a deletion that failed.
  const sent = await api.send(deleteRequest(path, options), { signal, retries: 0 });
  if (sent.ok) answered('deletion requested');
  else if (isDeletedOrReplaced(sent.failure)) answered('deleted');
  else if (!signal.aborted) {
    answered(sent.failure.message);
    note(one, `${kind} ${name} cannot be deleted: ${sent.failure.message}`);
    return lacksPermission(sent.failure);
  }
  return false;
}

/** Logs why objects remain, while their controller still runs and its log can be read. */
async function explainRemaining(one: Ordered, left: readonly Listed[]): Promise<void> {
  if (one.run.signal.aborted) return;
  const which =
    listNames(left.map(({ object: { kind, name } }) => `${kind} ${name}`)) || 'something';
  // Its deletion was not requested yet. The diagnosis treats it as requested, because it is about the objects.
  const namespace = { ...one.target.first, deletionTimestamp: serverTimestamp(one.run) };
  const [seen] = await examine([{ namespace }], EXAMINE_LIMIT_MS, one.run);
  const cause = seen && causeText(seen.diagnosis);
  const why = cause === undefined ? '' : `: ${cause}`;
  note(one, `${which} could not be deleted in time${why}; the teardown continues`);
}
