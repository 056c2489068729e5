import { stringAt } from '../base/json.ts';
import type { TimelineEntry } from '../base/time.ts';
import { namespacePath } from '../kubernetes/paths.ts';
import type { NotInspected } from '../model/finding.ts';
import type { ForceRecord } from '../model/result.ts';
import { Journal } from './journal.ts';
import {
  checkNamespace,
  entryStep,
  inventory,
  type Leftovers,
  recordOrphans,
} from './namespace.ts';
import { freeObjects, GUARD_MS } from './objects.ts';
import {
  type ForceAction,
  type ForcePlan,
  isNamespaceAction,
  isObjectAction,
  keyOf,
  namespaceTarget,
  renderPlan,
} from './plan.ts';
import { grantRules, missingRights, rightFor, rightText } from './rights.ts';
import { atMostEvery, type Run, runStep } from './step.ts';

/** Facts about owners may be this old when an action begins; older ones are read again first. */
export const FRESH_MS = 30_000;
/** How long to wait before looking whether something new has begun to terminate. */
const LOOK_AGAIN_MS = 10_000;
/** After a write most namespaces go by themselves; the controller may be in a back-off of up to 60 s. */
const SETTLE_MS = 70_000;

/** A plan, and what it was made from. */
export interface Look {
  plan: ForcePlan;
  /** When its facts had been read, in ms since the epoch. */
  at: number;
  /** Nothing moves, and what holds the namespace is known: waiting achieves nothing. */
  isStuck: boolean;
}

export interface ForceDeps extends Omit<Run, 'plan'> {
  /** Waits without writing until the namespace is gone or this time (ms since the epoch) has come. */
  waitGone(untilMs: number): Promise<'gone' | 'still-there'>;
  /**
   * Reads, diagnoses and plans again. `compare`: with the look before; not after our own writes, since
   * what they set in motion is not somebody at work. Undefined: the namespace is gone or cannot be read.
   */
  look(compare: boolean): Promise<Look | undefined>;
  /** No waiting after this time, so that what comes after it still has time. */
  settleUntil: number;
}

export interface ForceResult {
  record: ForceRecord;
  /** What became of the namespace, where forcing settled it; otherwise the diagnosed outcome stands. */
  outcome: 'forced' | 'deleted' | 'recreated' | undefined;
  /** Types in which nobody could look for orphans. */
  unread: NotInspected[];
  timeline: TimelineEntry[];
}

/**
 * Does what the plan allows, in its order, and tells what became of it. The plan must have been shown
 * before. Mode `plan` goes the same way up to the first write, and stops there.
 */
export async function applyForce(first: Look, deps: ForceDeps): Promise<ForceResult> {
  const force = new Force(first, deps);
  return force.carryOut();
}

class Force {
  private readonly deps: ForceDeps;
  private readonly run: Run;
  private readonly journal: Journal;
  private readonly guard: () => Promise<string | undefined>;
  private seen: Look;
  /** By their keys: actions that were told of, and those that a later plan need not try again. */
  private readonly told = new Set<string>();
  private readonly spent = new Set<string>();
  /** What was in the namespace right before its own entries were touched. */
  private left: Leftovers | undefined;

  constructor(first: Look, deps: ForceDeps) {
    this.seen = first;
    this.deps = deps;
    const { api, clock, log, signal, over } = deps;
    this.run = { api, clock, log, signal, over, plan: first.plan };
    this.journal = new Journal(this.run);
    const ask = atMostEvery(GUARD_MS, clock, () => checkNamespace(this.run));
    this.guard = async () => {
      const standing = over() === undefined ? await ask() : undefined;
      return over() ?? (standing?.ok === false ? standing.reason : undefined);
    };
  }

  async carryOut(): Promise<ForceResult> {
    const { mode } = this.seen.plan;
    const outcome = mode === 'plan' ? await this.tellPlan() : await this.act();
    const { actions, orphans, refused, unread, timeline } = this.journal;
    // Of several plans, the last one: what an earlier one refused may have settled itself.
    const record = { mode, actions, orphans, refused: [...this.seen.plan.refused, ...refused] };
    return { record, outcome, unread, timeline };
  }

  private async tellPlan(): Promise<undefined> {
    const lacking = await this.lackingRights();
    for (const action of this.open()) {
      const right = rightText(rightFor(action));
      const missing = lacking.includes(right) ? `, but rights are missing: ${right}` : '';
      this.tell(action, `would be done${missing}`);
    }
  }

  private async act(): Promise<ForceResult['outcome']> {
    if ((await this.freeObjects()) === 'go-on') await this.freeNamespace();
    const why = this.deps.over() ?? 'it was not reached';
    for (const action of this.open()) this.tell(action, `not done: ${why}`);
    return this.verify();
  }

  private open(): ForceAction[] {
    return this.seen.plan.actions.filter((action) => !this.spent.has(keyOf(action)));
  }

  private tell(action: ForceAction, result: string): void {
    this.spent.add(keyOf(action));
    if (this.told.has(keyOf(action))) return;
    this.told.add(keyOf(action));
    this.journal.note(action.target, result, action.finalizer);
  }

  /** Objects first: what was queued behind a pod, or held by another object, terminates only after it. */
  private async freeObjects(): Promise<'gone' | 'go-on'> {
    while (await this.mayAct()) {
      const before = this.journal.writes;
      const actions = this.open().filter(isObjectAction);
      if (actions.length === 0) return 'go-on';
      for (const action of actions) {
        if (this.deps.over() !== undefined) return 'go-on';
        this.told.add(keyOf(action));
        const { takenAt } = this.seen.plan;
        const worth = await freeObjects(this.run, action, takenAt, this.guard, this.journal);
        if (worth === 'finished') this.spent.add(keyOf(action));
      }
      if (this.journal.writes > before && (await this.settle()) === 'gone') return 'gone';
    }
    return 'go-on';
  }

  /** Whether there is something to do, with facts that are fresh and rights that suffice. */
  private async mayAct(): Promise<boolean> {
    if (this.deps.over() !== undefined || this.open().length === 0) return false;
    if (this.deps.clock.now() - this.seen.at > FRESH_MS && !(await this.lookAgain(true))) {
      const standing = await checkNamespace(this.run);
      const why = standing.ok ? 'its owner could not be looked for again' : standing.reason;
      for (const action of this.open()) this.tell(action, `not done: ${why}`);
      return false;
    }
    // All or nothing: half of a forced teardown helps nobody who has to grant the rest anyway.
    const lacking = await this.lackingRights();
    const why = `not done: rights are missing: ${lacking.join(', ')}`;
    for (const action of lacking.length > 0 ? this.open() : []) this.tell(action, why);
    return this.open().length > 0;
  }

  private async lackingRights(): Promise<string[]> {
    const missing = await missingRights(this.run, this.open());
    const lacking = missing.map(rightText);
    if (lacking.length > 0) {
      this.journal.refuse(
        namespaceTarget(this.run.plan.namespace.name),
        `rights are missing: ${lacking.join(', ')}; these rules grant just them: ${grantRules(missing)}`,
      );
    }
    return lacking;
  }

  /** Waits for the namespace to go by itself, or for a new plan to have something more to do. */
  private async settle(): Promise<'gone' | 'go-on'> {
    const { clock, over, settleUntil, waitGone } = this.deps;
    const until = Math.min(settleUntil, clock.now() + SETTLE_MS);
    for (let compare = false; over() === undefined && clock.now() < until; ) {
      const step = Math.min(until, clock.now() + LOOK_AGAIN_MS);
      if ((await waitGone(step)) === 'gone') return 'gone';
      if (over() !== undefined || !(await this.lookAgain(compare))) continue;
      if (this.open().some(isObjectAction) || this.seen.isStuck) return 'go-on';
      compare = true;
    }
    return 'go-on';
  }

  private async lookAgain(compare: boolean): Promise<boolean> {
    const next = await this.deps.look(compare);
    if (next === undefined) return false;
    const known = new Set(this.seen.plan.actions.map(keyOf));
    const isNew = next.plan.actions.some((action) => !known.has(keyOf(action)));
    this.seen = next;
    if (isNew) this.run.log.group('Looked again: the plan has changed', renderPlan(next.plan));
    return true;
  }

  private async freeNamespace(): Promise<void> {
    if (!(await this.mayAct())) return;
    const actions = this.open().filter(isNamespaceAction);
    if (actions.length === 0) return;
    this.left = await inventory(this.run, this.journal);
    for (const action of actions) {
      if (this.deps.over() !== undefined) return;
      if (this.left === undefined) {
        this.tell(action, 'not done: content remains or could not be read');
        continue;
      }
      this.spent.add(keyOf(action));
      await runStep(this.run, entryStep(this.run, action), this.journal);
    }
    if (this.left !== undefined) await this.deps.waitGone(this.deps.clock.now() + LOOK_AGAIN_MS);
  }

  /** Nothing but a 404 for the name, or another UID, is "gone"; then everything that still answers is listed. */
  private async verify(): Promise<ForceResult['outcome']> {
    const { name, uid } = this.run.plan.namespace;
    const got = await this.run.api.get(namespacePath(name), { signal: this.run.signal });
    const found = got.ok ? stringAt(got.value, 'metadata', 'uid') : undefined;
    const isGone = !got.ok && got.failure.kind === 'not-found';
    if (!isGone && (found === undefined || found === uid)) return undefined;
    if (this.journal.writes === 0) return isGone ? 'deleted' : 'recreated';
    const created = got.ok ? stringAt(got.value, 'metadata', 'creationTimestamp') : undefined;
    if (this.left !== undefined) await recordOrphans(this.run, this.left, created, this.journal);
    return 'forced';
  }
}
