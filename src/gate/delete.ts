import { ActionError } from '../base/errors.ts';
import { serverTimestamp, type TimelineEntry } from '../base/time.ts';
import { classifyErrorText, isAdmissionError } from '../diagnose/error-texts.ts';
import { type OrderStep, orderOf } from '../forecast/order.ts';
import type { Mutation } from '../kubernetes/api.ts';
import { collectionPath, deletion, namespacePath, objectPath } from '../kubernetes/paths.ts';
import { apiVersionOf, namespaceFacts, objectFacts, typeName } from '../model/facts.ts';
import { findingsOf } from '../model/finding.ts';
import { protectedBecause } from '../model/outcome.ts';
import type { Deletion } from '../model/result.ts';
import type { NamespaceFacts, ObjectFacts } from '../model/snapshot.ts';
import { inParallel, readList } from '../observe/collections.ts';
import { readNamespace } from '../observe/namespaces.ts';
import { isOfAnother } from '../observe/objects.ts';
import { readBaselines } from '../observe/observe.ts';
import { deletesPodsFirst, EXAMINE_LIMIT_MS, type Examination, examine } from './examine.ts';
import { causeText } from './progress.ts';
import type { Run } from './run.ts';
import { cannot, type Target } from './targets.ts';

/** What was deleted inside of a namespace before the namespace itself, and what was said about it. */
export interface Ordered {
  deletions: Deletion[];
  timeline: TimelineEntry[];
}

/** Asks for the deletion of all that nobody has asked to go yet. What came of it stands in the targets. */
export async function deleteAll(targets: readonly Target[], run: Run): Promise<void> {
  const { api, inputs, log } = run;
  const asked = targets.filter(isDeletable);
  // A run that may not do all of it does nothing.
  for (const { name } of asked) {
    const reason = protectedBecause(name, api.target.ownNamespace);
    if (reason === undefined) continue;
    throw new ActionError('invalid-input', `namespace "${name}" is never deleted: ${reason}`);
  }
  if (targets.every(({ first }) => first === undefined)) {
    log.notice('no namespace existed, so nothing was deleted: check the names, or the selector');
  }
  const names = asked.map(({ name }) => name);
  // Who is in each namespace: once its content goes, nobody can tell any more.
  const baselines = await readBaselines(names, run);
  for (const target of asked) target.baseline = baselines.get(target.name);
  // All are tried before the first is deleted; a refusal is the result of one, not the end of the others.
  await inParallel(asked, (target) => tryDeletion(target, run));
  if (inputs.delete === 'ordered') await deleteInOrder(asked.filter(isDeletable), run);
  // What was deleted inside has changed nothing about the namespace itself.
  await inParallel(asked.filter(isDeletable), (target) => requestDeletion(target, run));
}

type Existing = Target & { first: NamespaceFacts };

/** It is there, nobody has asked it to go, and nothing refuses that. */
function isDeletable(target: Target): target is Existing {
  const { first, refusal } = target;
  return first !== undefined && first.deletionTimestamp === undefined && refusal === undefined;
}

function deletionOf({ name, uid, resourceVersion }: NamespaceFacts): Mutation {
  return deletion(namespacePath(name), { preconditions: { uid, resourceVersion } });
}

/** Only what the real request would meet as well; a webhook that knows no dry runs says nothing. */
async function tryDeletion(target: Existing, { api, signal }: Run): Promise<void> {
  const sent = await api.send({ ...deletionOf(target.first), dryRun: true }, { signal });
  if (sent.ok) return;
  const { kind, message } = sent.failure;
  const errors = classifyErrorText(message);
  if (errors.some((error) => error.kind === 'dry-run-unsupported')) return;
  if (kind === 'forbidden' || errors.some(isAdmissionError)) target.refusal = message;
}

/** A namespace that changes all the time is not chased for ever. */
const MAX_DELETE_TRIES = 3;
const LOOK_AGAIN_MS = 2_000;

/**
 * Asks for the deletion of exactly the namespace that was read, in exactly the state that was read. An
 * answered DELETE is not the end of the namespace: the wait decides that.
 */
async function requestDeletion(target: Existing, { api, clock, log, signal }: Run): Promise<void> {
  const { name, first } = target;
  if (signal.aborted) return;
  for (let attempt = 1; ; attempt++) {
    const sent = await api.send(deletionOf(target.first), { signal });
    // The answer may have been lost, the namespace changed or replaced, or (before 1.20) the 409 means
    // "being removed already". What is there now tells.
    const now = await readNamespace(name, { api, signal });
    if (signal.aborted) break;
    if (!now.ok) {
      const answered = sent.ok ? namespaceFacts(sent.value) : undefined;
      if (answered?.uid === first.uid && answered.deletionTimestamp !== undefined) {
        target.first = answered;
        break;
      }
      // A second DELETE is pinned as the first one was; it cannot do more.
      if (attempt === MAX_DELETE_TRIES)
        throw cannot('get', `namespace "${name}"`, now.failure, api);
      await clock.sleep(LOOK_AGAIN_MS, signal);
      continue;
    }
    // Gone or replaced: the follower, pinned to the old UID, says which.
    if (now.value?.uid !== first.uid) {
      target.wentAtOnce = true;
      break;
    }
    target.first = now.value;
    if (now.value.deletionTimestamp !== undefined || sent.ok) break;
    if (sent.failure.kind === 'conflict' && attempt < MAX_DELETE_TRIES) continue;
    target.refusal = sent.failure.message;
    return;
  }
  log.line(`${name}: asked for its deletion`);
}

const MAX_ROUNDS = 3;
const POLL_MS = { first: 500, factor: 1.5, most: 5_000 };

/**
 * Deletes, inside these namespaces only, what needs a living controller to go, and waits until it is gone. Never
 * anything cluster-scoped and never a finalizer; each object with its UID as precondition. What does not go in time
 * is explained while its controller still lives, and the teardown goes on.
 */
async function deleteInOrder(targets: readonly Existing[], run: Run): Promise<void> {
  const { clock, inputs, startedAt } = run;
  const namespaces = targets.map(({ first: namespace }) => ({ namespace }));
  const seen = await examine(namespaces, EXAMINE_LIMIT_MS, run, {
    isPodsFirst: deletesPodsFirst(run),
  });
  const deadline = Math.min(
    clock.now() + inputs.orderTimeoutMs,
    startedAt + Math.max(inputs.timeoutMs, inputs.orderTimeoutMs),
  );
  await inParallel([...targets.entries()], async ([index, target]) => {
    target.ordered = { deletions: [], timeline: [] };
    await deleteSteps(seen[index] as Examination, target.ordered, run, deadline);
  });
}

async function deleteSteps(
  { snapshot, diagnosis }: Examination,
  ordered: Ordered,
  run: Run,
  deadline: number,
): Promise<void> {
  const { namespace } = snapshot;
  const steps = orderOf(snapshot);
  const { api, clock, log, signal } = run;
  /** Types whose trouble was told. */
  const unread = new Set<string>();
  const isOver = (): boolean => signal.aborted || clock.now() >= deadline;
  const note = (event: string): void => {
    log.line(`${namespace.name}: ${event}`);
    ordered.timeline.push({ at: serverTimestamp(run), event });
  };

  const remove = async ({ name, uid }: ObjectFacts, { type }: OrderStep): Promise<void> => {
    if (signal.aborted) return;
    const options = { preconditions: { uid }, propagationPolicy: 'Background' };
    const path = objectPath(type, namespace.name, name);
    const sent = await api.send(deletion(path, options), { signal });
    const isGone = !sent.ok && isOfAnother(sent.failure);
    const result = sent.ok ? 'asked to go' : isGone ? 'gone' : sent.failure.message;
    const { kind } = type;
    const known = ordered.deletions.find((one) => one.uid === uid);
    if (!sent.ok && !isGone && known?.result !== result) {
      note(`${kind} ${name} cannot be deleted: ${result}`);
    }
    if (known !== undefined) known.result = result;
    else ordered.deletions.push({ apiVersion: apiVersionOf(type), kind, name, uid, result });
  };

  /** Undefined when it could not be read: that is no sign that nothing is left. */
  const list = async ({ type }: OrderStep): Promise<ObjectFacts[] | undefined> => {
    const path = collectionPath(type, namespace.name);
    const options = { signal, metadataOnly: true };
    const listed = await readList(api, path, (item) => objectFacts(item, type), options);
    if (listed.ok) return listed.value.items;
    if (!signal.aborted && !unread.has(typeName(type))) {
      note(`${typeName(type)} could not be listed: ${listed.failure.message}`);
      unread.add(typeName(type));
    }
    return undefined;
  };

  /** Somebody else may have deleted and made it again: objects of that one are nobody's leftovers. */
  const isSame = async (): Promise<boolean | undefined> => {
    const now = await readNamespace(namespace.name, { api, signal });
    return now.ok ? now.value?.uid === namespace.uid : undefined;
  };

  /**
   * Asks what these steps are about to go, and waits until it is gone. What was refused, by a webhook that
   * restarts perhaps, is asked again.
   */
  const clear = async (
    together: readonly OrderStep[],
    isAgain: boolean,
  ): Promise<'nothing' | 'gone' | 'stayed'> => {
    let meant: ReadonlySet<string> | undefined;
    for (let pause = POLL_MS.first; ; ) {
      const left: ObjectFacts[] = [];
      const isMine = await isSame();
      if (isMine === false) {
        note('the namespace is gone or another one by now: nothing more is deleted in it');
        return 'stayed';
      }
      let isKnown = isMine === true;
      for (const step of together) {
        const there = await list(step);
        isKnown &&= there !== undefined;
        const mine = (there ?? []).filter((one) => meant?.has(one.uid) ?? step.isMeant(one));
        const asked = mine.filter(({ deletionTimestamp }) => deletionTimestamp === undefined);
        const what = `${asked.length} ${typeName(step.type)}`;
        if (meant === undefined && asked.length > 0) {
          note(
            isAgain
              ? `${what} were made again, and are deleted again: what makes them has to go before them`
              : `first ${what}, because ${step.why}`,
          );
        }
        if (isMine) await inParallel(asked, (object) => remove(object, step));
        left.push(...mine);
      }
      const isFirst = meant === undefined;
      if (isFirst && left.length === 0) return 'nothing';
      if (isKnown && left.length === 0) {
        note('they are gone');
        return 'gone';
      }
      if (isFirst || (isKnown && left.length < (meant?.size ?? 0))) {
        if (!isFirst) note(`${left.length} of them are left`);
        meant = new Set(left.map(({ uid }) => uid));
      }
      if (isFirst) continue;
      if (isOver()) {
        await explain(left);
        return 'stayed';
      }
      await clock.sleep(Math.min(pause, Math.max(0, deadline - clock.now())), signal);
      pause = Math.min(pause * POLL_MS.factor, POLL_MS.most);
    }
  };

  /** While the controller that should have acted is still there, and its log can be read. */
  const explain = async ([first, ...others]: readonly ObjectFacts[]): Promise<void> => {
    if (signal.aborted) return;
    const more = others.length > 0 ? ` and ${others.length} more` : '';
    const which = first === undefined ? 'something' : `${first.kind} ${first.name}${more}`;
    // Of what is to go, only the namespace itself has not been asked yet: this is about the others.
    const going = { ...namespace, deletionTimestamp: serverTimestamp(run) };
    const [seen] = await examine([{ namespace: going }], EXAMINE_LIMIT_MS, run);
    const cause = seen && causeText(seen.diagnosis);
    const why = cause === undefined ? '' : `: ${cause}`;
    note(`${which} did not go in time${why}; the teardown goes on`);
  };

  // No deletion in the namespace helps against an API whose backend goes with it: that would be cluster-scoped.
  for (const { code, subject, message } of findingsOf(diagnosis, diagnosis.rootCauses)) {
    if (code !== 'apiservice-unavailable') continue;
    note(
      `${subject.kind} ${subject.name} ${message}; only who deletes it first lets the namespace go`,
    );
  }
  if (steps.length === 0) note('nothing in it has to go before it');
  // What was made again while another went gets another turn.
  for (let round = 0; round < MAX_ROUNDS; round++) {
    let isDone = true;
    for (const together of Map.groupBy(steps, ({ place }) => place).values()) {
      if (isOver()) {
        const types = together.map(({ type }) => typeName(type)).join(', ');
        return note(`no time is left to delete ${types} first`);
      }
      const end = await clear(together, round > 0);
      if (end === 'stayed') return;
      isDone &&= end === 'nothing';
    }
    if (isDone) return;
  }
  note('something makes it again as often as it is deleted; the teardown goes on');
}
