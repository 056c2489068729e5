import type { TimelineEntry } from '../base/time.ts';
import type { NotInspected } from '../model/finding.ts';
import type { ForceRecord } from '../model/result.ts';
import { deletePods } from './delete-pods.ts';
import { removeOwnEntry } from './finalize-namespace.ts';
import {
  type ForceAction,
  type ForcePlan,
  isNamespaceAction,
  isObjectAction,
  keyOf,
  type NamespaceAction,
  namespaceTarget,
  type ObjectAction,
} from './force-plan.ts';
import { checkNamespace } from './guard.ts';
import { Journal } from './journal.ts';
import { mayLeaveBehind, verifyEnd } from './left-behind.ts';
import { preflight } from './preflight.ts';
import { removeFinalizer } from './remove-finalizer.ts';
import { describeTarget, finalizerOf, renderPlan } from './render-plan.ts';
import {
  describeRight,
  grantManifest,
  grantRules,
  isSameRight,
  type Right,
  rightFor,
} from './rights.ts';
import type { Run } from './run.ts';

/** After writes most namespaces go by themselves; the controller may be in a back-off of up to 60 s. */
const SETTLE_MS = 90_000;
/** How long to wait before looking whether something new has begun to terminate. */
const LOOK_AGAIN_MS = 10_000;
/** Pods, what was queued behind them, what that held: each needs a round of its own. */
const MAX_ROUNDS = 10;

export interface ForceDeps extends Omit<Run, 'plan'> {
  /** Waits without writing until the namespace is gone or this time (ms since the epoch) has come. */
  waitGone(untilMs: number): Promise<'gone' | 'still-there'>;
  /**
   * Looks, diagnoses and plans again after writes. The diagnosis must not compare with a look from
   * before: what our own writes set in motion is not somebody at work. `undefined`: could not look.
   */
  replan?(): Promise<ForcePlan | undefined>;
  /** 90 s unless given. */
  settleMs?: number;
}

export interface ForceResult {
  record: ForceRecord;
  /** What became of the namespace, where forcing settled it; otherwise the diagnosed outcome stands. */
  outcome: 'forced' | 'deleted' | 'recreated' | undefined;
  /** Writes that changed, or may have changed, the cluster. */
  writes: number;
  /** Types in which nobody could look for orphans. */
  unread: NotInspected[];
  /** The manifest that grants the missing rights; absent when none are missing. */
  grant?: string[];
  timeline: TimelineEntry[];
}

/**
 * Does what the plan allows, in its order, and tells what became of it. The plan must have been shown
 * before. Mode `plan` goes the same way up to the first write, and stops there.
 */
export async function applyForce(plan: ForcePlan, deps: ForceDeps): Promise<ForceResult> {
  const force = new Force(plan, deps);
  await force.go();
  return force.result();
}

class Force {
  private readonly deps: ForceDeps;
  private readonly run: Run;
  private readonly journal: Journal;
  private readonly mode: ForcePlan['mode'];
  private plan: ForcePlan;
  /** Actions that are finished with: nothing was left to do, or they do not work. */
  private readonly spent = new Set<string>();
  private readonly checked = new Set<string>();
  private grant: string[] | undefined;
  private outcome: ForceResult['outcome'];

  constructor(plan: ForcePlan, deps: ForceDeps) {
    this.plan = plan;
    this.mode = plan.mode;
    this.deps = deps;
    const { api, clock, log, signal } = deps;
    this.run = { api, clock, log, signal, plan };
    this.journal = new Journal(this.run);
  }

  async go(): Promise<void> {
    for (let round = 1; round <= MAX_ROUNDS && !this.deps.signal.aborted; round++) {
      const actions = this.openActions();
      if (actions.length === 0 || !(await this.check(actions))) break;
      const objects = this.openActions().filter(isObjectAction);
      if (this.mode === 'plan') break;
      if (objects.length === 0) {
        await this.freeNamespace(this.openActions().filter(isNamespaceAction));
        break;
      }
      await this.freeObjects(objects);
      if ((await this.settle()) === 'gone') break;
    }
    this.tellWhatWasNotDone();
    if (this.mode !== 'plan') this.outcome = await verifyEnd(this.run, this.journal);
  }

  result(): ForceResult {
    const { actions, orphans, refused, unread, timeline, writes } = this.journal;
    return {
      // Of several plans, the last one: what an earlier one refused may have settled itself.
      record: { mode: this.mode, actions, orphans, refused: [...this.plan.refused, ...refused] },
      outcome: this.outcome,
      writes,
      unread,
      ...(this.grant === undefined ? {} : { grant: this.grant }),
      timeline,
    };
  }

  private openActions(): ForceAction[] {
    return this.plan.actions.filter((action) => !this.spent.has(keyOf(action)));
  }

  /** Rights and dry runs, once for every action, always before its first write. */
  private async check(actions: readonly ForceAction[]): Promise<boolean> {
    const fresh = actions.filter((action) => !this.checked.has(keyOf(action)));
    const standing = await checkNamespace(this.run);
    if (!standing.ok) {
      const isOver = standing.ended === 'gone' || standing.ended === 'replaced';
      if (!isOver) this.journal.refuse(this.target(), standing.reason);
      for (const action of actions) this.giveUp(action, standing.reason);
      return false;
    }
    const { missing, refused } = await preflight(this.run, fresh);
    for (const action of fresh) {
      this.checked.add(keyOf(action));
      const why = refused.get(keyOf(action));
      if (why !== undefined) this.giveUp(action, `the API server refuses it in a dry run: ${why}`);
    }
    if (missing.length === 0) return true;
    this.tellMissing(missing);
    return false;
  }

  /** All or nothing: half of a forced teardown helps nobody who has to grant the rest anyway. */
  private tellMissing(missing: readonly Right[]): void {
    const rights = missing.map(describeRight).join(', ');
    this.grant = grantManifest(missing);
    this.run.log.group(`Missing rights: ${rights}`, this.grant);
    this.journal.refuse(
      this.target(),
      `rights are missing: ${rights}; these rules grant just them: [${grantRules(missing).join(', ')}]`,
    );
    const name = this.plan.namespace.name;
    const ofObjects = this.openActions()
      .filter(isObjectAction)
      .map((one) => rightFor(one, name));
    const lacking = missing.filter((right) => ofObjects.some((one) => isSameRight(one, right)));
    for (const action of this.openActions()) {
      // The plan of mode `objects` needs no rights on namespaces.
      const isFine = this.mode === 'plan' && isObjectAction(action) && lacking.length === 0;
      if (!isFine) this.giveUp(action, `rights are missing: ${rights}`);
    }
  }

  private giveUp(action: ForceAction, reason: string): void {
    if (this.spent.has(keyOf(action))) return;
    this.spent.add(keyOf(action));
    this.journal.act(describeTarget(action, this.plan), action, false, `not done: ${reason}`);
  }

  /** One kind of step at a time: pods only after the finalizers of everything have been tried. */
  private async freeObjects(actions: readonly ObjectAction[]): Promise<void> {
    const step = actions[0]?.step;
    for (const action of actions.filter((one) => one.step === step)) {
      if (this.deps.signal.aborted) return;
      const worth =
        action.step === 'object-finalizer'
          ? await removeFinalizer(this.run, action, this.journal)
          : await deletePods(this.run, action, this.journal);
      // What was on its way when the run was cancelled has been told; it is not "not done" as well.
      const isOver = this.deps.replan === undefined || this.deps.signal.aborted;
      if (worth === 'finished' || isOver) this.spent.add(keyOf(action));
    }
  }

  /** Waits for the namespace to go by itself, or for a new plan to have something more to do. */
  private async settle(): Promise<'gone' | 'go-on'> {
    if (this.journal.writes === 0) return 'go-on';
    const { clock, signal } = this.deps;
    const until = clock.now() + (this.deps.settleMs ?? SETTLE_MS);
    while (!signal.aborted && clock.now() < until) {
      const step = Math.min(until, clock.now() + LOOK_AGAIN_MS);
      if ((await this.deps.waitGone(step)) === 'gone') return 'gone';
      await this.lookAgain();
      if (!this.plan.controllerAtWork) return 'go-on';
      if (this.openActions().some(isObjectAction)) return 'go-on';
    }
    return 'go-on';
  }

  private async lookAgain(): Promise<void> {
    const next = await this.deps.replan?.();
    if (next === undefined || next.namespace.uid !== this.plan.namespace.uid) return;
    const known = new Set(this.plan.actions.map(keyOf));
    const isNew = next.actions.some((action) => !known.has(keyOf(action)));
    this.plan = { ...next, mode: this.mode };
    if (isNew) this.run.log.group('Looked again: the plan has changed', renderPlan(this.plan));
  }

  private async freeNamespace(actions: readonly NamespaceAction[]): Promise<void> {
    if (actions.length === 0 || !(await mayLeaveBehind(this.run, actions, this.journal))) return;
    for (const action of actions) {
      if (this.deps.signal.aborted) return;
      this.spent.add(keyOf(action));
      if ((await removeOwnEntry(this.run, action, this.journal)) === 'stop') break;
    }
    await this.deps.waitGone(this.deps.clock.now() + LOOK_AGAIN_MS);
  }

  private tellWhatWasNotDone(): void {
    const cancelled = this.deps.signal.aborted;
    for (const action of this.openActions()) {
      const target = describeTarget(action, this.plan);
      if (this.mode === 'plan') {
        this.journal.actions.push({
          target,
          finalizer: finalizerOf(action),
          result: 'would be done',
        });
      } else if (cancelled) {
        this.giveUp(action, 'the run was cancelled');
      }
    }
  }

  private target(): string {
    return namespaceTarget(this.plan.namespace.name);
  }
}
