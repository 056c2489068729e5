import { serverTimestamp, type TimelineEntry } from '../base/time.ts';
import { apiVersionOf, typeName } from '../diagnose/context.ts';
import { type OrderStep, orderOf } from '../forecast/order.ts';
import { collectionPath, deletion, objectPath } from '../kubernetes/paths.ts';
import { objectFacts } from '../model/facts.ts';
import type { Deletion } from '../model/result.ts';
import type { NamespaceFacts, ObjectFacts } from '../model/snapshot.ts';
import { inParallel, readList } from '../observe/collections.ts';
import { isOfAnother } from '../observe/objects.ts';
import { EXAMINE_LIMIT_MS, type Examination, examine } from './examine.ts';
import { causeText } from './progress.ts';
import type { Run } from './run.ts';

/** What was deleted inside of a namespace before the namespace itself, and what was said about it. */
export interface Ordered {
  deletions: Deletion[];
  timeline: TimelineEntry[];
}

const MAX_ROUNDS = 3;
const POLL_MS = { first: 500, factor: 1.5, most: 5_000 };

/**
 * Deletes, inside these namespaces only, what needs a living controller to go, and waits until it is gone. Never
 * anything cluster-scoped and never a finalizer; each object with its UID as precondition. What does not go in time
 * is explained while its controller still lives, and the teardown goes on.
 */
export async function deleteInOrder(
  namespaces: readonly NamespaceFacts[],
  isPodsFirst: boolean,
  run: Run,
): Promise<Map<string, Ordered>> {
  const { clock, inputs, startedAt } = run;
  const seen = await examine(namespaces.map(unexamined), EXAMINE_LIMIT_MS, run, { isPodsFirst });
  const deadline = Math.min(
    clock.now() + inputs.orderTimeoutMs,
    startedAt + Math.max(inputs.timeoutMs, inputs.orderTimeoutMs),
  );
  const found = await inParallel(seen, async (one) => {
    const { name } = one.snapshot.namespace;
    return [name, await deleteSteps(one, run, deadline)] as const;
  });
  return new Map(found);
}

function unexamined(namespace: NamespaceFacts) {
  return { namespace, before: undefined, baseline: undefined };
}

async function deleteSteps(
  { snapshot, diagnosis }: Examination,
  run: Run,
  deadline: number,
): Promise<Ordered> {
  const { namespace } = snapshot;
  const steps = orderOf(snapshot);
  const { api, clock, log, signal } = run;
  const ordered: Ordered = { deletions: [], timeline: [] };
  /** Types whose trouble was told. */
  const unread = new Set<string>();
  const isOver = (): boolean => signal.aborted || clock.now() >= deadline;
  const note = (event: string): void => {
    log.line(`${namespace.name}: ${event}`);
    ordered.timeline.push({ at: serverTimestamp(run), event });
  };

  /** Asks what the step is about to go; UIDs of all that have to be gone before the next. */
  const ask = async (step: OrderStep, isAgain: boolean): Promise<string[]> => {
    const { type, which, why } = step;
    const isMeant = ({ uid, finalizers }: ObjectFacts): boolean =>
      which === 'all' ||
      ('uids' in which
        ? which.uids.includes(uid)
        : finalizers.some((name) => which.finalizers.includes(name)));
    const meant = ((await list(step)) ?? []).filter(isMeant);
    const asked = meant.filter(({ deletionTimestamp }) => deletionTimestamp === undefined);
    const what = `${asked.length} ${typeName(type)}`;
    if (asked.length > 0) {
      note(
        isAgain
          ? `${what} were made again, and are deleted again: what makes them has to go before them`
          : `first ${what}, because ${why}`,
      );
    }
    await inParallel(asked, (object) => remove(object, step));
    return meant.map(({ uid }) => uid);
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

  /** What was refused, by a webhook that restarts perhaps, is asked again. */
  const haveGone = async (together: readonly OrderStep[], meant: string[]): Promise<boolean> => {
    let asked = new Set(meant);
    let pause = POLL_MS.first;
    for (;;) {
      const left: ObjectFacts[] = [];
      let isKnown = true;
      for (const step of together) {
        const there = await list(step);
        isKnown &&= there !== undefined;
        const mine = (there ?? []).filter(({ uid }) => asked.has(uid));
        left.push(...mine);
        const refused = mine.filter(({ deletionTimestamp }) => deletionTimestamp === undefined);
        await inParallel(refused, (object) => remove(object, step));
      }
      if (isKnown && left.length === 0) {
        note('they are gone');
        return true;
      }
      if (isKnown && left.length < asked.size) {
        note(`${left.length} of them are left`);
        asked = new Set(left.map(({ uid }) => uid));
      }
      if (isOver()) {
        await explain(left);
        return false;
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
    const [seen] = await examine([unexamined(going)], EXAMINE_LIMIT_MS, run);
    const cause = seen && causeText(seen.diagnosis);
    const why = cause === undefined ? '' : `: ${cause}`;
    note(`${which} did not go in time${why}; the teardown goes on`);
  };

  // No deletion in the namespace helps against an API whose backend goes with it: that would be cluster-scoped.
  for (const { id, code, subject, message } of diagnosis.findings) {
    if (code !== 'apiservice-unavailable' || !diagnosis.rootCauses.includes(id)) continue;
    note(
      `${subject.kind} ${subject.name} ${message}; only who deletes it first lets the namespace go`,
    );
  }
  if (steps.length === 0) note('nothing in it has to go before it');
  // What was made again while another went gets another turn.
  for (let round = 0; round < MAX_ROUNDS; round++) {
    let asked = 0;
    for (const together of Map.groupBy(steps, ({ place }) => place).values()) {
      if (isOver()) {
        const types = together.map(({ type }) => typeName(type)).join(', ');
        note(`no time is left to delete ${types} first`);
        return ordered;
      }
      const isAgain = round > 0;
      const meant = (await Promise.all(together.map((step) => ask(step, isAgain)))).flat();
      asked += meant.length;
      if (meant.length > 0 && !(await haveGone(together, meant))) return ordered;
    }
    if (asked === 0) return ordered;
  }
  note('something makes it again as often as it is deleted; the teardown goes on');
  return ordered;
}
