import {
  type CurrentPlan,
  carryOut,
  type ForceDeps,
  FRESH_MS,
  LAST_WRITE_MS,
} from '../force/apply.ts';
import { readMachinery } from '../force/machinery.ts';
import { planForce, recordPlan, renderPlan } from '../force/plan.ts';
import { type ActivePolicy, isActive, isHanging, outcomeOf, verdictOf } from '../model/outcome.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import { readNamespace } from '../observe/namespaces.ts';
import { EXAMINE_LIMIT_MS, type Examination, type Examined, examine } from './examine.ts';
import type { Follower } from './follow.ts';
import type { Run } from './run.ts';
import type { Waited } from './wait.ts';

/** Time for all namespaces together, planning and verification included. */
const BUDGET_MS = 120_000;
/** Time between two examinations that are compared. */
const COMPARE_MS = 10_000;

/** State that all namespaces share while they are forced. */
interface Forcing extends Pick<ForceDeps, 'startedAt' | 'stopReason'> {
  /**
   * Run whose signal also aborts when the time for forcing is over; `cancelled` aborts only with the run itself.
   */
  run: Run;
  cancelled: AbortSignal;
  policy: ActivePolicy;
  examine(one: Examined): Promise<Examination>;
}

/** A namespace to force. */
interface Forced extends Waited {
  follower: Follower;
}

/**
 * Forces all namespaces at the same time, within one budget. All plans are made, logged and reported before the
 * first change. Returns the results of all namespaces.
 */
export async function forceAll(
  waited: readonly Waited[],
  run: Run,
  conclude: (results: NamespaceResult[]) => RunResult,
): Promise<NamespaceResult[]> {
  const { clock, signal: cancelled } = run;
  const policy = run.inputs.force;
  const results = waited.map(({ result }) => result);
  const open = waited.filter(isOpen);
  if (!isActive(policy) || open.length === 0 || cancelled.aborted) return results;
  const isDone = new AbortController();
  const isOver = new AbortController();
  const startedAt = clock.now();
  void clock.sleep(BUDGET_MS, isDone.signal).then(() => isOver.abort());
  const signal = AbortSignal.any([cancelled, isOver.signal]);
  const bounded = { ...run, signal };
  const stopReason = (): string | undefined => {
    if (cancelled.aborted) return 'the run was cancelled';
    const isLate = signal.aborted || clock.now() - startedAt >= LAST_WRITE_MS;
    return isLate ? `the ${BUDGET_MS / 1_000} s for forcing are over` : undefined;
  };
  const together = examinerFor(bounded);
  const forcing = { run: bounded, cancelled, policy, startedAt, stopReason, examine: together };
  const replaced = (changed: readonly NamespaceResult[]): NamespaceResult[] =>
    results.map((result) => changed.find(({ name }) => name === result.name) ?? result);
  try {
    const machineryOf = await readMachinery(
      open.map(({ result }) => result),
      bounded,
    );
    const planned = await Promise.all(
      open.map((one) => planOne(one, machineryOf(one.result.name), forcing)),
    );
    if (policy.mode !== 'plan' && !signal.aborted)
      await run.announce?.(conclude(replaced(planned.map(({ result }) => result))));
    return replaced(await Promise.all(planned.map(({ carryOut }) => carryOut())));
  } finally {
    isDone.abort();
  }
}

/** Without credentials, or an examination, nothing can be written. */
function isOpen(one: Waited): one is Forced {
  const { result, examinations, follower } = one;
  return (
    follower?.over.aborted === false &&
    ['stuck', 'inconclusive', 'progressing'].includes(result.outcome) &&
    examinations.length > 0
  );
}

/** Makes and logs the plan for one namespace. Returns its result with the plan, and a function that carries it out. */
async function planOne(
  one: Forced,
  machinery: string[],
  forcing: Forcing,
): Promise<{ result: NamespaceResult; carryOut: () => Promise<NamespaceResult> }> {
  const { run, policy, examine } = forcing;
  const { api, clock, log, signal } = run;
  const { name, uid } = one.result;
  let last = one.examinations.at(-1) as Examination;
  const plan = (): CurrentPlan => {
    const { snapshot, diagnosis, at, cost } = last;
    const { ownNamespace } = api.target;
    return {
      ...planForce({ snapshot, diagnosis, policy, startUid: uid, ownNamespace, machinery }),
      readAt: at + cost.ms,
      isStuck: isHanging(diagnosis),
    };
  };
  const planAgain = async (compare: boolean): Promise<CurrentPlan | undefined> => {
    const now = await readNamespace(name, run);
    if (!now.ok || now.value?.uid !== uid) return undefined;
    const before = compare ? last.snapshot : undefined;
    const { baseline } = one.target;
    const seen = await examine({ namespace: now.value, before, baseline });
    if (signal.aborted) return undefined;
    last = seen;
    return plan();
  };
  const isDeletedBy = async (untilMs: number): Promise<boolean> => {
    const { ended, over } = one.follower;
    await clock.sleep(Math.max(0, untilMs - clock.now()), AbortSignal.any([signal, over]));
    if (!over.aborted) return false;
    const { how } = await ended;
    return how === 'deleted' || how === 'recreated';
  };

  let first = plan();
  // A single examination does not show whether content is still being deleted. Then the namespace itself is
  // not finalized.
  const isUnsure = last.diagnosis.movement.kind === 'unknown' && policy.mode !== 'objects';
  if (isUnsure) {
    log.line(`${name}: examining a second time, to see whether its deletion makes progress`);
    await clock.sleep(Math.max(0, first.readAt + COMPARE_MS - clock.now()), signal);
  }
  if (isUnsure || clock.now() - first.readAt > FRESH_MS) first = (await planAgain(true)) ?? first;
  for (const line of renderPlan(first)) log.line(line);
  const result = { ...one.result, forced: recordPlan(first) };
  const carryOutPlan = async (): Promise<NamespaceResult> => {
    const done = await carryOut(first, { ...run, ...forcing, planAgain, isDeletedBy });
    // For a deleted namespace the diagnosis from before the writes counts; otherwise the one after the writes.
    const diagnosis = done.outcome === undefined ? last.diagnosis : result.diagnosis;
    const seen = diagnosis === undefined ? result.outcome : outcomeOf(diagnosis);
    const outcome = done.outcome ?? (forcing.cancelled.aborted ? 'cancelled' : seen);
    const ended = one.follower.over.aborted ? await one.follower.ended : undefined;
    return {
      ...result,
      outcome,
      verdict: verdictOf(outcome, run.inputs.policy),
      elapsedMs: (ended?.at ?? clock.now()) - run.startedAt,
      conditions: one.follower.last.conditions,
      diagnosis: diagnosis && {
        ...diagnosis,
        notInspected: [...diagnosis.notInspected, ...done.unread],
      },
      timeline: [...result.timeline, ...done.timeline].sort((a, b) => a.at.localeCompare(b.at)),
      forced: done.forced,
    };
  };
  return { result, carryOut: carryOutPlan };
}

const GATHER_MS = 200;

/**
 * Returns a function that examines namespaces. Requests that arrive together, or during an examination, are
 * combined into one.
 */
function examinerFor(run: Run): Forcing['examine'] {
  let batch: Examined[] = [];
  let turn = Promise.resolve<Examination[]>([]);
  const examineBatch = async (busy: Promise<unknown>): Promise<Examination[]> => {
    await busy.catch(() => undefined);
    await run.clock.sleep(GATHER_MS, run.signal);
    const together = batch;
    batch = [];
    return examine(together, EXAMINE_LIMIT_MS, run);
  };
  return async (one) => {
    const index = batch.push(one) - 1;
    if (index === 0) turn = examineBatch(turn);
    return (await turn)[index] as Examination;
  };
}
