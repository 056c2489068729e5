import { carryOut, LAST_WRITE_MS } from '../force/apply.ts';
import { type ForcePlan, planForce, recordPlan, renderPlan } from '../force/plan.ts';
import { type ActivePolicy, isActive, outcomeOf, verdictOf } from '../model/outcome.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { EXAMINE_LIMIT_MS, type Examination, examine } from './examine.ts';
import type { Follower } from './follow.ts';
import type { Run } from './run.ts';
import type { Waited } from './wait.ts';

/** Time for all namespaces together, planning and verification included. */
const BUDGET_MS = 120_000;
/** Time between two examinations that are compared. */
const COMPARE_MS = 10_000;
/** The greatest age of the facts of a plan. */
const FRESH_MS = 30_000;

/** A namespace to force. */
interface Forced extends Waited {
  waited: NonNullable<Waited['waited']>;
}

interface Planned extends Forced {
  plan: ForcePlan;
}

type Done = Awaited<ReturnType<typeof carryOut>>;

/**
 * Forces all namespaces at the same time, within one budget. All plans are fresh, and made, logged and reported before
 * the first change. Returns the results of all namespaces.
 */
export async function forceAll(
  all: readonly Waited[],
  run: Run,
  conclude: (results: NamespaceResult[]) => RunResult,
): Promise<NamespaceResult[]> {
  const { clock, log, signal: cancelled } = run;
  const results = all.map(({ result }) => result);
  const open = all.filter(isOpen);
  if (!isActive(run.inputs.force) || open.length === 0 || cancelled.aborted) return results;
  const startedAt = clock.now();
  const isDone = new AbortController();
  const isOver = new AbortController();
  void clock.sleep(BUDGET_MS, isDone.signal).then(() => isOver.abort());
  const signal = AbortSignal.any([cancelled, isOver.signal]);
  const bounded = { ...run, signal };
  const stopReason = (): string | undefined => {
    if (cancelled.aborted) return 'the run was cancelled';
    const isLate = signal.aborted || clock.now() - startedAt >= LAST_WRITE_MS;
    return isLate ? `the ${BUDGET_MS / 1_000} s for forcing are over` : undefined;
  };
  const replaced = (changed: readonly NamespaceResult[]): NamespaceResult[] =>
    results.map((result) => changed.find(({ name }) => name === result.name) ?? result);
  try {
    const planned = await planAll(open, bounded);
    for (const { plan } of planned) for (const line of renderPlan(plan)) log.line(line);
    if (run.inputs.force.mode !== 'plan' && !signal.aborted) {
      const told = planned.map(({ result, plan }) => ({ ...result, forced: recordPlan(plan) }));
      await run.announce?.(conclude(replaced(told)));
    }
    const done = await Promise.all(
      planned.map(async ({ plan, waited: { follower } }) => {
        const isDeletedBy = (untilMs: number) => isDeleted(follower, untilMs, bounded);
        return carryOut(plan, { ...bounded, startedAt, stopReason, isDeletedBy });
      }),
    );
    // Not compared with earlier facts: the effects of the gate's own writes would look like the work of a controller.
    const changed = planned.filter(({ waited: { follower } }, index) => {
      const { hasWritten, outcome } = done[index] as Done;
      return hasWritten && outcome === undefined && !follower.over.aborted;
    });
    const seen = signal.aborted ? [] : await lookAgain(changed, () => undefined, bounded);
    const ended = planned.map((one, index) => {
      const again = signal.aborted ? undefined : seen[changed.indexOf(one)];
      return resultAfter(one, done[index] as Done, again, run);
    });
    return replaced(await Promise.all(ended));
  } finally {
    isDone.abort();
  }
}

/** Without credentials, or an examination, nothing can be written. */
function isOpen(one: Waited): one is Forced {
  return (
    one.waited?.follower.over.aborted === false &&
    ['stuck', 'inconclusive', 'progressing'].includes(one.result.outcome) &&
    one.waited.examinations.length > 0
  );
}

async function lookAgain(
  some: readonly Forced[],
  beforeOf: (one: Forced) => Snapshot | undefined,
  run: Run,
): Promise<Examination[]> {
  const examined = some.map((one) => {
    const { follower, target } = one.waited;
    return { namespace: follower.last, before: beforeOf(one), baseline: target.baseline };
  });
  return some.length === 0 ? [] : examine(examined, EXAMINE_LIMIT_MS, run);
}

/**
 * Plans from fresh facts. A single examination does not show whether content is still being deleted; then the
 * namespace itself would not be finalized.
 */
async function planAll(open: readonly Forced[], run: Run): Promise<Planned[]> {
  const { api, clock, inputs, log, signal } = run;
  const policy = inputs.force as ActivePolicy;
  const lastOf = ({ waited }: Forced) => waited.examinations.at(-1) as Examination;
  const last = open.map(lastOf);
  const readAt = Math.min(...last.map(({ at, cost }) => at + cost.ms));
  const isUnsure =
    policy.mode !== 'objects' &&
    last.some(({ diagnosis }) => diagnosis.movement.kind === 'unknown');
  if (isUnsure) {
    log.line('examining a second time, to see whether the deletion makes progress');
    await clock.sleep(Math.max(0, readAt + COMPARE_MS - clock.now()), signal);
  }
  const isFresh = !isUnsure && clock.now() - readAt <= FRESH_MS;
  const again = isFresh ? [] : await lookAgain(open, (one) => lastOf(one).snapshot, run);
  const { ownNamespace } = api.target;
  return open.map((one, index) => {
    const { snapshot, diagnosis } =
      (signal.aborted ? undefined : again[index]) ?? (last[index] as Examination);
    const startUid = one.result.uid;
    return { ...one, plan: planForce({ snapshot, diagnosis, startUid, ownNamespace, policy }) };
  });
}

/** Waits until this time without writing, and reports whether the namespace was deleted meanwhile. */
async function isDeleted(
  { ended, over }: Follower,
  untilMs: number,
  { clock, signal }: Run,
): Promise<boolean> {
  await clock.sleep(Math.max(0, untilMs - clock.now()), AbortSignal.any([signal, over]));
  return over.aborted && 'event' in (await ended);
}

async function resultAfter(
  { result, waited: { follower } }: Planned,
  done: Done,
  seen: Examination | undefined,
  { clock, inputs, signal, startedAt }: Run,
): Promise<NamespaceResult> {
  const ended = follower.over.aborted ? await follower.ended : undefined;
  // For a deleted namespace the diagnosis from before the writes counts; otherwise the one after the writes.
  const isGone = done.outcome !== undefined || (done.hasWritten && ended && 'event' in ended);
  const diagnosis = isGone ? result.diagnosis : (seen?.diagnosis ?? result.diagnosis);
  const unchanged = signal.aborted ? 'cancelled' : diagnosis && outcomeOf(diagnosis);
  const outcome = done.outcome ?? (isGone ? 'forced' : (unchanged ?? result.outcome));
  return {
    ...result,
    outcome,
    verdict: verdictOf(outcome, inputs.policy),
    elapsedMs: (ended?.at ?? clock.now()) - startedAt,
    conditions: follower.last.conditions,
    diagnosis: diagnosis && {
      ...diagnosis,
      notInspected: [...diagnosis.notInspected, ...done.unread],
    },
    timeline: [...result.timeline, ...done.timeline].sort((a, b) => a.at.localeCompare(b.at)),
    forced: done.forced,
  };
}
