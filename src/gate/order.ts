import { type Clock, serverTimestamp, type TimelineEntry } from '../base/time.ts';
import { apiVersionOf, typeName } from '../diagnose/context.ts';
import { type OrderStep, orderOf } from '../forecast/order.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { collectionPath, objectPath } from '../kubernetes/paths.ts';
import type { Diagnosis } from '../model/finding.ts';
import type { Deletion } from '../model/result.ts';
import type { NamespaceFacts, ObjectFacts } from '../model/snapshot.ts';
import { inParallel } from '../observe/collections.ts';
import { isOfAnother } from '../observe/objects.ts';
import { objectFacts } from '../observe/parse.ts';
import { EXAMINE_LIMIT_MS, examine } from './examine.ts';
import { causeText } from './progress.ts';
import type { Run } from './run.ts';

/** What was deleted inside of a namespace before the namespace itself, and what was said about it. */
export interface Ordered {
  deletions: Deletion[];
  timeline: TimelineEntry[];
}

/** Requests at the same time; a ServiceAccount has few seats in priority and fairness. */
const CONCURRENCY = 8;
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
  const found = new Map<string, Ordered>();
  await inParallel(namespaces, CONCURRENCY, async (namespace) => {
    const one = seen[namespaces.indexOf(namespace)];
    const order = new Order(namespace, run, deadline);
    if (one !== undefined) order.warn(one.diagnosis);
    found.set(namespace.name, await order.walk(one === undefined ? [] : orderOf(one.snapshot)));
  });
  return found;
}

function unexamined(namespace: NamespaceFacts) {
  return { namespace, before: undefined, baseline: undefined };
}

class Order {
  private readonly namespace: NamespaceFacts;
  private readonly run: Run;
  private readonly api: KubernetesApi;
  private readonly clock: Clock;
  private readonly deadline: number;
  private readonly ordered: Ordered = { deletions: [], timeline: [] };
  /** Types whose trouble was told. */
  private readonly unread = new Set<string>();

  constructor(namespace: NamespaceFacts, run: Run, deadline: number) {
    this.namespace = namespace;
    this.run = run;
    this.api = run.api;
    this.clock = run.clock;
    this.deadline = deadline;
  }

  /** No deletion in the namespace helps against an API whose backend goes with it: that would be cluster-scoped. */
  warn({ findings, rootCauses }: Diagnosis): void {
    for (const { id, code, subject, message } of findings) {
      if (code !== 'apiservice-unavailable' || !rootCauses.includes(id)) continue;
      this.note(
        `${subject.kind} ${subject.name} ${message}; only who deletes it first lets the namespace go`,
      );
    }
  }

  async walk(steps: readonly OrderStep[]): Promise<Ordered> {
    if (steps.length === 0) this.note('nothing in it has to go before it');
    // What was made again while another went gets another turn.
    for (let round = 0; round < MAX_ROUNDS; round++) {
      let asked = 0;
      for (const together of Map.groupBy(steps, ({ place }) => place).values()) {
        if (this.isOver()) {
          const types = together.map(({ type }) => typeName(type)).join(', ');
          this.note(`no time is left to delete ${types} first`);
          return this.ordered;
        }
        const isAgain = round > 0;
        const meant = (await Promise.all(together.map((step) => this.ask(step, isAgain)))).flat();
        asked += meant.length;
        if (meant.length > 0 && !(await this.haveGone(together, new Set(meant)))) {
          return this.ordered;
        }
      }
      if (asked === 0) return this.ordered;
    }
    this.note('something makes it again as often as it is deleted; the teardown goes on');
    return this.ordered;
  }

  private isOver(): boolean {
    return this.run.signal.aborted || this.clock.now() >= this.deadline;
  }

  private note(event: string): void {
    this.run.log.line(`${this.namespace.name}: ${event}`);
    this.ordered.timeline.push({ at: serverTimestamp(this.run), event });
  }

  /** Asks what the step is about to go; UIDs of all that have to be gone before the next. */
  private async ask(step: OrderStep, isAgain: boolean): Promise<string[]> {
    const { type, which, why } = step;
    const isMeant = ({ uid, finalizers }: ObjectFacts): boolean =>
      which === 'all' ||
      ('uids' in which
        ? which.uids.includes(uid)
        : finalizers.some((name) => which.finalizers.includes(name)));
    const meant = ((await this.list(step)) ?? []).filter(isMeant);
    const asked = meant.filter(({ deletionTimestamp }) => deletionTimestamp === undefined);
    const what = `${asked.length} ${typeName(type)}`;
    if (asked.length > 0) {
      this.note(
        isAgain
          ? `${what} were made again, and are deleted again: what makes them has to go before them`
          : `first ${what}, because ${why}`,
      );
    }
    await inParallel(asked, CONCURRENCY, (object) => this.delete(object, step));
    return meant.map(({ uid }) => uid);
  }

  private async delete({ name, uid }: ObjectFacts, { type }: OrderStep): Promise<void> {
    if (this.run.signal.aborted) return;
    const sent = await this.api.send(
      {
        method: 'DELETE',
        path: objectPath(type, this.namespace.name, name),
        body: {
          apiVersion: 'v1',
          kind: 'DeleteOptions',
          preconditions: { uid },
          propagationPolicy: 'Background',
        },
      },
      { signal: this.run.signal },
    );
    const isGone = !sent.ok && isOfAnother(sent.failure);
    const result = sent.ok ? 'asked to go' : isGone ? 'gone' : sent.failure.message;
    const { kind } = type;
    const known = this.ordered.deletions.find((one) => one.uid === uid);
    if (!sent.ok && !isGone && known?.result !== result) {
      this.note(`${kind} ${name} cannot be deleted: ${result}`);
    }
    if (known !== undefined) known.result = result;
    else this.ordered.deletions.push({ apiVersion: apiVersionOf(type), kind, name, uid, result });
  }

  /** Undefined when it could not be read: that is no sign that nothing is left. */
  private async list({ type }: OrderStep): Promise<ObjectFacts[] | undefined> {
    const found: ObjectFacts[] = [];
    const end = await this.api.list(collectionPath(type, this.namespace.name), {
      signal: this.run.signal,
      metadataOnly: true,
      onItem: (item) => found.push(objectFacts(item, type)),
      onRestart: () => {
        found.length = 0;
      },
    });
    if (end.ok) return found;
    if (!this.run.signal.aborted && !this.unread.has(typeName(type))) {
      this.note(`${typeName(type)} could not be listed: ${end.failure.message}`);
      this.unread.add(typeName(type));
    }
    return undefined;
  }

  /** What was refused, by a webhook that restarts perhaps, is asked again. */
  private async haveGone(steps: readonly OrderStep[], asked: Set<string>): Promise<boolean> {
    let pause = POLL_MS.first;
    for (;;) {
      const left: ObjectFacts[] = [];
      let isKnown = true;
      for (const step of steps) {
        const there = await this.list(step);
        isKnown &&= there !== undefined;
        const mine = (there ?? []).filter(({ uid }) => asked.has(uid));
        left.push(...mine);
        const refused = mine.filter(({ deletionTimestamp }) => deletionTimestamp === undefined);
        await inParallel(refused, CONCURRENCY, (object) => this.delete(object, step));
      }
      if (isKnown && left.length === 0) {
        this.note('they are gone');
        return true;
      }
      if (isKnown && left.length < asked.size) {
        this.note(`${left.length} of them are left`);
        asked = new Set(left.map(({ uid }) => uid));
      }
      if (this.isOver()) {
        await this.explain(left);
        return false;
      }
      const rest = Math.max(0, this.deadline - this.clock.now());
      await this.clock.sleep(Math.min(pause, rest), this.run.signal);
      pause = Math.min(pause * POLL_MS.factor, POLL_MS.most);
    }
  }

  /** While the controller that should have acted is still there, and its log can be read. */
  private async explain([first, ...others]: readonly ObjectFacts[]): Promise<void> {
    if (this.run.signal.aborted) return;
    const more = others.length > 0 ? ` and ${others.length} more` : '';
    const which = first === undefined ? 'something' : `${first.kind} ${first.name}${more}`;
    // Of what is to go, only the namespace itself has not been asked yet: this is about the others.
    const going = { ...this.namespace, deletionTimestamp: serverTimestamp(this.run) };
    const [seen] = await examine([unexamined(going)], EXAMINE_LIMIT_MS, this.run);
    const cause = seen && causeText(seen.diagnosis);
    const why = cause === undefined ? '' : `: ${cause}`;
    this.note(`${which} did not go in time${why}; the teardown goes on`);
  }
}
