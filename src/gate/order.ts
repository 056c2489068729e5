import { type Clock, serverTimestamp, type TimelineEntry } from '../base/time.ts';
import { apiVersionOf, typeName } from '../diagnose/context.ts';
import { type OrderStep, orderOf } from '../forecast/order.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { collectionPath, objectPath } from '../kubernetes/paths.ts';
import type { Deletion } from '../model/result.ts';
import type { NamespaceFacts, ObjectFacts } from '../model/snapshot.ts';
import { inParallel } from '../observe/collections.ts';
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
  const deadline = Math.min(
    clock.now() + inputs.orderTimeoutMs,
    startedAt + Math.max(inputs.timeoutMs, inputs.orderTimeoutMs),
  );
  const seen = await examine(namespaces.map(unexamined), EXAMINE_LIMIT_MS, run, { isPodsFirst });
  const found = new Map<string, Ordered>();
  await inParallel(namespaces, CONCURRENCY, async (namespace) => {
    const snapshot = seen[namespaces.indexOf(namespace)]?.snapshot;
    const steps = snapshot === undefined ? [] : orderOf(snapshot);
    found.set(namespace.name, await new Order(namespace, run, deadline).walk(steps));
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

  constructor(namespace: NamespaceFacts, run: Run, deadline: number) {
    this.namespace = namespace;
    this.run = run;
    this.api = run.api;
    this.clock = run.clock;
    this.deadline = deadline;
  }

  async walk(steps: readonly OrderStep[]): Promise<Ordered> {
    if (steps.length === 0) this.note('nothing in it has to go before it');
    for (const together of Map.groupBy(steps, ({ place }) => place).values()) {
      if (this.isOver()) break;
      const asked = (await Promise.all(together.map((step) => this.ask(step)))).flat();
      if (asked.length > 0) await this.waitFor(together, new Set(asked));
    }
    return this.ordered;
  }

  private isOver(): boolean {
    return this.run.signal.aborted || this.clock.now() >= this.deadline;
  }

  private note(event: string): void {
    this.run.log.line(`${this.namespace.name}: ${event}`);
    this.ordered.timeline.push({ at: serverTimestamp(this.run), event });
  }

  /** UIDs of those that it takes its leave of. */
  private async ask(step: OrderStep): Promise<string[]> {
    const { type, which, why } = step;
    const isMeant = ({ uid, finalizers }: ObjectFacts): boolean =>
      which === 'all' ||
      ('uids' in which
        ? which.uids.includes(uid)
        : finalizers.some((name) => which.finalizers.includes(name)));
    const there = await this.list(step);
    const meant = there.filter((object) => isMeant(object));
    const asked = meant.filter(({ deletionTimestamp }) => deletionTimestamp === undefined);
    if (asked.length > 0) this.note(`first ${asked.length} ${typeName(type)}: ${why}`);
    await inParallel(asked, CONCURRENCY, async ({ name, uid }) => {
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
      const isGone = !sent.ok && sent.failure.kind === 'not-found';
      const result = sent.ok ? 'asked to go' : isGone ? 'gone' : sent.failure.message;
      const { kind } = type;
      this.ordered.deletions.push({ apiVersion: apiVersionOf(type), kind, name, uid, result });
      if (!sent.ok && !isGone) this.note(`${kind} ${name} cannot be deleted: ${result}`);
    });
    return meant.map(({ uid }) => uid);
  }

  private async list({ type }: OrderStep): Promise<ObjectFacts[]> {
    const found: ObjectFacts[] = [];
    const end = await this.api.list(collectionPath(type, this.namespace.name), {
      signal: this.run.signal,
      metadataOnly: true,
      onItem: (item) => found.push(objectFacts(item, type)),
      onRestart: () => {
        found.length = 0;
      },
    });
    if (!end.ok) this.note(`${typeName(type)} could not be listed: ${end.failure.message}`);
    return found;
  }

  private async waitFor(steps: readonly OrderStep[], asked: ReadonlySet<string>): Promise<void> {
    let pause = POLL_MS.first;
    let shown = asked.size;
    for (;;) {
      const left = (await Promise.all(steps.map((step) => this.list(step))))
        .flat()
        .filter(({ uid }) => asked.has(uid));
      if (left.length === 0) return this.note('they are gone');
      if (left.length < shown) this.note(`${left.length} of them are left`);
      shown = left.length;
      if (this.isOver()) return this.explain(left);
      const rest = Math.max(0, this.deadline - this.clock.now());
      await this.clock.sleep(Math.min(pause, rest), this.run.signal);
      pause = Math.min(pause * POLL_MS.factor, POLL_MS.most);
    }
  }

  /** While the controller that should have acted is still there, and its log can be read. */
  private async explain(left: readonly ObjectFacts[]): Promise<void> {
    const [first] = left;
    const which = `${first?.kind} ${first?.name}${left.length > 1 ? ` and ${left.length - 1} more` : ''}`;
    const [seen] = this.run.signal.aborted
      ? []
      : await examine([unexamined(this.namespace)], EXAMINE_LIMIT_MS, this.run);
    const cause = seen && causeText(seen.diagnosis);
    this.note(
      `${which} did not go in time${cause === undefined ? '' : `: ${cause}`}; the teardown goes on`,
    );
  }
}
