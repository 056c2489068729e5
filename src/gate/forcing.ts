import type { Log } from '../base/log.ts';

import { machineryReasons, readRegistrations } from '../force/machinery.ts';
import { grantRules, missingRights, rightFor, rightText } from '../force/missing-rights.ts';
import {
  checkNamespace,
  entryStep,
  inventory,
  type Leftovers,
  recordOrphans,
} from '../force/namespace-steps.ts';
import { freeObjectsOf, GUARD_MS } from '../force/object-steps.ts';
import {
  type ForceAction,
  type ForcePlan,
  isNamespaceAction,
  isObjectAction,
  keyOf,
  namespaceTarget,
  planForce,
  recordPlan,
  renderPlan,
} from '../force/plan.ts';
import { atMostEvery, type ForceRun, Journal, runStep } from '../force/step.ts';
import { type ActivePolicy, isActive, isHanging, type Outcome, verdict } from '../model/outcome.ts';
import type { RunResult } from '../model/result.ts';
import { EXAMINE_LIMIT_MS, type Examination, type Examined, examine } from './examine.ts';
import type { Waiting } from './gate.ts';
import type { Run } from './run.ts';
import { readNamespace } from './wait.ts';

/** For all namespaces together, planning and verifying included. */
const BUDGET_MS = 120_000;
/** No write begins after this, so that what was done can still be verified. */
const LAST_WRITE_MS = 105_000;
/** No waiting after this where the namespace itself may have to be written to. */
const LAST_WAIT_MS = 80_000;
/** Between two looks that are to show whether anything moves. */
const COMPARE_MS = 10_000;
/** Facts about owners may be this old when an action begins; older ones are read again first. */
const FRESH_MS = 30_000;
/** How long to wait before looking whether something new has begun to terminate. */
const LOOK_AGAIN_MS = 10_000;
/** After a write most namespaces go by themselves; the controller may be in a back-off of up to 60 s. */
const SETTLE_MS = 70_000;

/** What all namespaces share while they are forced. */
interface Forcing {
  /** Its signal ends with the time for forcing, too; `cancelled` with the run itself only. */
  run: Run;
  cancelled: AbortSignal;
  policy: ActivePolicy;
  startedAt: number;
  /** Why no further write may begin. */
  over(): string | undefined;
  examine(one: Examined): Promise<Examination>;
}

/**
 * Side by side over the namespaces, within one budget. All plans are made, printed and reported before
 * anything is changed.
 */
export async function forceAll(
  waiting: readonly Waiting[],
  run: Run,
  conclude: () => RunResult,
): Promise<void> {
  const { clock, signal: cancelled } = run;
  const policy = run.inputs.force;
  const open = waiting.filter(
    ({ result, examinations }) =>
      ['stuck', 'inconclusive', 'progressing'].includes(result.outcome) && examinations.length > 0,
  );
  if (!isActive(policy) || open.length === 0 || cancelled.aborted) return;
  const isDone = new AbortController();
  const isOver = new AbortController();
  const startedAt = clock.now();
  void clock.sleep(BUDGET_MS, isDone.signal).then(() => isOver.abort());
  const signal = AbortSignal.any([cancelled, isOver.signal]);
  const bounded = { ...run, signal };
  const over = (): string | undefined => {
    if (cancelled.aborted) return 'the run was cancelled';
    const isLate = signal.aborted || clock.now() - startedAt >= LAST_WRITE_MS;
    return isLate ? `the ${BUDGET_MS / 1_000} s for forcing are over` : undefined;
  };
  const together = examiner(bounded);
  const forcing = { run: bounded, cancelled, policy, startedAt, over, examine: together };
  try {
    const registrations = await readRegistrations(bounded);
    const planned = await Promise.all(
      open.map(async (one) => {
        const machinery = await machineryReasons(one.result.name, registrations, bounded);
        return planOne(one, machinery, forcing);
      }),
    );
    if (policy.mode !== 'plan' && !signal.aborted) await run.announce?.(conclude());
    await Promise.all(planned.map((carryOut) => carryOut()));
  } finally {
    isDone.abort();
  }
}

/** A plan, and what it was made from. */
interface Look {
  plan: ForcePlan;
  /** When its facts had been read, in ms since the epoch. */
  at: number;
  /** Nothing moves, and what holds the namespace is known: waiting achieves nothing. */
  isStuck: boolean;
}

/**
 * Reads, diagnoses and plans again. `compare`: with the look before; not after our own writes, since what
 * they set in motion is not somebody at work. Undefined: the namespace is gone or cannot be read.
 */
type LookAgain = (compare: boolean) => Promise<Look | undefined>;

/** Makes the plan, says it, and answers how to carry it out. */
async function planOne(
  one: Waiting,
  machinery: string[],
  forcing: Forcing,
): Promise<() => Promise<void>> {
  const { run, policy, examine } = forcing;
  const { api, clock, log, signal } = run;
  const { name, uid } = one.result;
  let last = one.examinations.at(-1) as Examination;
  const plan = (): Look => {
    const { snapshot, diagnosis, at, cost } = last;
    const { ownNamespace } = api.target;
    return {
      plan: planForce({ snapshot, diagnosis, policy, startUid: uid, ownNamespace, machinery }),
      at: at + cost.ms,
      isStuck: isHanging(diagnosis),
    };
  };
  const look: LookAgain = async (compare) => {
    const now = await readNamespace(name, run);
    if (!now.ok || now.value?.uid !== uid) return undefined;
    const before = compare ? last.snapshot : undefined;
    const { baseline } = one.target;
    const seen = await examine({ namespace: now.value, before, baseline });
    if (signal.aborted) return undefined;
    last = seen;
    return plan();
  };

  let first = plan();
  // One look alone cannot show whether somebody is at work; what is named exactly is removed all the same.
  const isUnsure =
    last.diagnosis.movement.kind === 'unknown' &&
    (policy.mode !== 'objects' || policy.finalizers.some((entry) => entry.includes('*')));
  if (isUnsure) {
    log.line(`${name}: looking a second time, to see whether anything moves`);
    await clock.sleep(Math.max(0, first.at + COMPARE_MS - clock.now()), signal);
  }
  if (isUnsure || clock.now() - first.at > FRESH_MS) first = (await look(true)) ?? first;
  for (const line of renderPlan(first.plan)) log.line(line);
  one.result = { ...one.result, forced: recordPlan(first.plan) };
  return () => carryOut(one, first, look, forcing);
}

/**
 * Does what the plan allows, in its order, and tells what became of it. The plan must have been shown
 * before. Mode `plan` goes the same way up to the first write, and stops there.
 */
async function carryOut(
  one: Waiting,
  first: Look,
  look: LookAgain,
  forcing: Forcing,
): Promise<void> {
  const { over, startedAt, cancelled } = forcing;
  const { api, clock, signal } = forcing.run;
  const { mode, namespace } = first.plan;
  const target = namespaceTarget(namespace.name);
  // Several namespaces are forced side by side.
  const log: Pick<Log, 'line' | 'group'> = {
    line: (text) => forcing.run.log.line(`${namespace.name}: ${text}`),
    group: (title, lines) => forcing.run.log.group(`${namespace.name}: ${title}`, lines),
  };
  const askAgain = atMostEvery(GUARD_MS, clock, () => checkNamespace(run));
  const guard = async (): Promise<string | undefined> => {
    const now = over() === undefined ? await askAgain() : undefined;
    return over() ?? (now?.ok === false ? now.failure.message : undefined);
  };
  const journal = new Journal({ api, clock, log });
  const run: ForceRun = { api, clock, log, signal, over, guard, journal, plan: first.plan };
  let seen = first;
  /** By their keys: actions that were told of, and those that a later plan need not try again. */
  const told = new Set<string>();
  const spent = new Set<string>();
  /** What was in the namespace right before its own entries were touched. */
  let left: Leftovers | undefined;

  const open = (): ForceAction[] => run.plan.actions.filter((action) => !spent.has(keyOf(action)));

  const tell = (action: ForceAction, result: string): void => {
    spent.add(keyOf(action));
    if (told.has(keyOf(action))) return;
    told.add(keyOf(action));
    journal.note(action.target, result, action.finalizer);
  };
  const tellAll = (result: string): void => {
    for (const action of open()) tell(action, result);
  };

  /** Waits without writing; whether the namespace is gone by this time (ms since the epoch). */
  const isGoneBy = async (untilMs: number): Promise<boolean> => {
    const ended = one.follower.over;
    await clock.sleep(Math.max(0, untilMs - clock.now()), AbortSignal.any([signal, ended]));
    if (!ended.aborted) return false;
    const { how } = await one.follower.ended;
    return how === 'deleted' || how === 'recreated';
  };

  const lackingRights = async (): Promise<string[]> => {
    const missing = await missingRights(run, open());
    const lacking = missing.map(rightText);
    if (lacking.length > 0) {
      const rules = grantRules(missing);
      const reason = `rights are missing: ${lacking.join(', ')}; these rules grant just them: ${rules}`;
      journal.refuse(target, reason);
    }
    return lacking;
  };

  const lookAgain = async (compare: boolean): Promise<boolean> => {
    const next = await look(compare);
    if (next === undefined) return false;
    const known = new Set(run.plan.actions.map(keyOf));
    const isNew = next.plan.actions.some((action) => !known.has(keyOf(action)));
    seen = next;
    run.plan = next.plan;
    if (isNew) log.group('Looked again: the plan has changed', renderPlan(next.plan));
    return true;
  };

  /** What is still to be done, with facts that are fresh and rights that suffice. */
  const due = async (): Promise<ForceAction[]> => {
    if (over() !== undefined || open().length === 0) return [];
    if (clock.now() - seen.at > FRESH_MS && !(await lookAgain(true))) {
      const now = await checkNamespace(run);
      const why = now.ok ? 'its owner could not be looked for again' : now.failure.message;
      tellAll(`not done: ${why}`);
      return [];
    }
    // All or nothing: half of a forced teardown helps nobody who has to grant the rest anyway.
    const lacking = await lackingRights();
    if (lacking.length > 0) tellAll(`not done: rights are missing: ${lacking.join(', ')}`);
    return open();
  };

  /** Whether the namespace goes by itself before a new plan has something more to do. */
  const settles = async (): Promise<boolean> => {
    const latest = startedAt + (mode === 'namespace' ? LAST_WAIT_MS : LAST_WRITE_MS);
    const until = Math.min(latest, clock.now() + SETTLE_MS);
    for (let compare = false; over() === undefined && clock.now() < until; ) {
      if (await isGoneBy(Math.min(until, clock.now() + LOOK_AGAIN_MS))) return true;
      if (over() !== undefined || !(await lookAgain(compare))) continue;
      if (open().some(isObjectAction) || seen.isStuck) return false;
      compare = true;
    }
    return false;
  };

  /**
   * Objects first: what was queued behind a pod, or held by another object, terminates only after it. Whether
   * that was enough.
   */
  const freeObjects = async (): Promise<boolean> => {
    for (;;) {
      const actions = (await due()).filter(isObjectAction);
      if (actions.length === 0) return false;
      const before = journal.writes;
      for (const action of actions) {
        if (over() !== undefined) return false;
        told.add(keyOf(action));
        const worth = await freeObjectsOf(run, action);
        if (worth === 'finished') spent.add(keyOf(action));
      }
      if (journal.writes > before && (await settles())) return true;
    }
  };

  const freeNamespace = async (): Promise<void> => {
    const actions = (await due()).filter(isNamespaceAction);
    if (actions.length === 0) return;
    left = await inventory(run);
    for (const action of actions) {
      if (over() !== undefined) return;
      if (left === undefined) {
        tell(action, 'not done: content remains or could not be read');
        continue;
      }
      spent.add(keyOf(action));
      await runStep(run, entryStep(run, action));
    }
    if (left !== undefined) await isGoneBy(clock.now() + LOOK_AGAIN_MS);
  };

  /**
   * Nothing but a 404 for the name, or another UID, is "gone"; then everything that still answers is listed.
   * Undefined: forcing settled nothing, and the diagnosed outcome stands.
   */
  const verify = async (): Promise<Outcome | undefined> => {
    const now = await readNamespace(namespace.name, forcing.run);
    if (!now.ok || now.value?.uid === namespace.uid) return undefined;
    if (journal.writes === 0) return now.value === undefined ? 'deleted' : 'recreated';
    if (left !== undefined) await recordOrphans(run, left, now.value?.creationTimestamp);
    return 'forced';
  };

  let outcome: Outcome | undefined;
  if (mode === 'plan') {
    const lacking = await lackingRights();
    for (const action of open()) {
      const right = rightText(rightFor(action));
      const missing = lacking.includes(right) ? `, but rights are missing: ${right}` : '';
      tell(action, `would be done${missing}`);
    }
  } else {
    if (!(await freeObjects())) await freeNamespace();
    tellAll(`not done: ${over() ?? 'it was not reached'}`);
    outcome = await verify();
  }
  const { actions, orphans, unread, timeline } = journal;
  const { result } = one;
  const end = outcome ?? (cancelled.aborted ? 'cancelled' : result.outcome);
  one.result = {
    ...result,
    outcome: end,
    verdict: verdict(end, forcing.run.inputs.policy),
    diagnosis: result.diagnosis && {
      ...result.diagnosis,
      // Types in which nobody could look for orphans.
      notInspected: [...result.diagnosis.notInspected, ...unread],
    },
    timeline: [...result.timeline, ...timeline],
    // Of several plans, the last one: what an earlier one refused may have settled itself.
    forced: { mode, actions, orphans, refused: [...run.plan.refused, ...journal.refused] },
  };
}

const GATHER_MS = 200;

/** Namespaces that ask at about the same time, or while others are being examined, are examined together. */
function examiner(run: Run): Forcing['examine'] {
  let waiting: Examined[] = [];
  let next: Promise<Examination[]> | undefined;
  let busy: Promise<unknown> = Promise.resolve();
  const examineWaiting = async (): Promise<Examination[]> => {
    await busy;
    await run.clock.sleep(GATHER_MS, run.signal);
    const batch = waiting;
    waiting = [];
    next = undefined;
    const seen = examine(batch, EXAMINE_LIMIT_MS, run);
    busy = seen.catch(() => undefined);
    return seen;
  };
  return async (one) => {
    const index = waiting.push(one) - 1;
    next ??= examineWaiting();
    return (await next)[index] as Examination;
  };
}
