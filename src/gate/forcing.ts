import { listWords } from '../base/text.ts';
import { carryOut, LAST_WRITE_MS } from '../force/apply.ts';
import { type ForcePlan, planForce, recordPlan, renderPlan } from '../force/plan.ts';
import { type ActivePolicy, isActive, outcomeOf, verdictOf } from '../model/outcome.ts';
import type { Read } from '../model/read.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import type { NamespaceFacts } from '../model/snapshot.ts';
import { confirmEnds } from './confirm.ts';
import { EXAMINE_LIMIT_MS, type Examination } from './examine.ts';
import type { Follower } from './follow.ts';
import type { Run } from './run.ts';
import { examineCases, type Waited } from './wait.ts';

const BUDGET_MS = 120_000;
const COMPARE_MS = 10_000;
const FRESH_MS = 30_000;

type Forced = Required<Waited>;

/** All at the same time, within one budget. All plans are fresh, and made, logged and reported before the first change. */
export async function forceAll(
  all: readonly Waited[],
  run: Run,
  conclude: (results: NamespaceResult[]) => RunResult,
): Promise<NamespaceResult[]> {
  const { clock, inputs, log, signal: cancelled } = run;
  const results = all.map(({ result }) => result);
  const open = all.filter(isOpen);
  if (open.length > 0 && inputs.unused.length > 0)
    log.warning(`no effect while "force-finalize" is "off": ${listWords(inputs.unused)}`);
  if (!isActive(inputs.force) || open.length === 0 || cancelled.aborted) return results;
  const startedAt = clock.now();
  const over = new AbortController();
  void clock.sleep(BUDGET_MS, over.signal).then(() => over.abort());
  const signal = AbortSignal.any([cancelled, over.signal]);
  const bounded = { ...run, signal };
  const stopReason = (): string | undefined => {
    if (cancelled.aborted) return 'the run was cancelled';
    const isLate = signal.aborted || clock.now() - startedAt >= LAST_WRITE_MS;
    return isLate ? `the ${BUDGET_MS / 1_000} s for forcing are over` : undefined;
  };
  const replaced = (changed: readonly NamespaceResult[]): NamespaceResult[] =>
    results.map((result) => changed.find(({ name }) => name === result.name) ?? result);
  const forceOne = async (one: Forced, plan: ForcePlan): Promise<NamespaceResult> => {
    const { follower } = one.waited;
    const isDeletedBy = async (untilMs: number): Promise<boolean> => {
      const until = AbortSignal.any([signal, follower.over.signal]);
      await clock.sleep(Math.max(0, untilMs - clock.now()), until);
      return isGone(follower);
    };
    const confirmEnd = async () => {
      const sure = await confirmEnds([follower], bounded);
      return sure.get(follower.name) as Read<NamespaceFacts | undefined>;
    };
    const deps = { ...bounded, startedAt, stopReason, isDeletedBy, confirmEnd };
    const done = await carryOut(plan, deps);
    const hasChanged = done.hasWritten && done.outcome === undefined && !follower.ended;
    // Not compared with earlier facts: the effects of the gate's own writes would look like the work of a controller.
    const [seen] =
      hasChanged && !signal.aborted
        ? await examineCases([one.waited], EXAMINE_LIMIT_MS, bounded, false)
        : [];
    return resultAfter(one, done, signal.aborted ? undefined : seen, run);
  };
  try {
    const plans = await planAll(open, bounded);
    for (const plan of plans) for (const line of renderPlan(plan)) log.line(line);
    if (inputs.force.mode !== 'plan' && !signal.aborted) {
      const told = plans.map((plan, at) => {
        return { ...(open[at] as Forced).result, forced: recordPlan(plan) };
      });
      await run.announce?.(conclude(replaced(told)));
    }
    const done = plans.map((plan, at) => forceOne(open[at] as Forced, plan));
    return replaced(await Promise.all(done));
  } finally {
    over.abort();
  }
}

/** Without credentials, or an examination, nothing can be written. */
function isOpen(one: Waited): one is Forced {
  const { result, waited } = one;
  const isThere = ['stuck', 'inconclusive', 'progressing'].includes(result.outcome);
  return isThere && waited?.follower.ended === undefined && !!waited?.examinations.length;
}

/** A single examination does not show whether content is still being deleted; then the namespace would not be finalized. */
async function planAll(open: readonly Forced[], run: Run): Promise<ForcePlan[]> {
  const { api, clock, inputs, log, signal } = run;
  const policy = inputs.force as ActivePolicy;
  const cases = open.map(({ waited }) => waited);
  const last = cases.map(({ examinations }) => examinations.at(-1) as Examination);
  const readAt = Math.min(...last.map(({ endedAt }) => endedAt));
  const isCompared = last.every(({ diagnosis }) => diagnosis.movement.kind !== 'unknown');
  const isUnsure = policy.mode !== 'objects' && !isCompared;
  if (isUnsure) {
    log.line('examining a second time, to see whether the deletion makes progress');
    await clock.sleep(Math.max(0, readAt + COMPARE_MS - clock.now()), signal);
  }
  const isFresh = !isUnsure && clock.now() - readAt <= FRESH_MS;
  const again = isFresh ? [] : await examineCases(cases, EXAMINE_LIMIT_MS, run);
  const { ownNamespace } = api.target;
  return open.map(({ result }, index) => {
    const seen = signal.aborted ? undefined : again[index];
    const { snapshot, diagnosis } = seen ?? (last[index] as Examination);
    return planForce({ snapshot, diagnosis, startUid: result.uid, ownNamespace, policy });
  });
}

function isGone({ ended }: Follower): boolean {
  return ended !== undefined && 'event' in ended;
}

function resultAfter(
  { result, waited: { follower } }: Forced,
  done: Awaited<ReturnType<typeof carryOut>>,
  seen: Examination | undefined,
  { clock, inputs, signal, startedAt }: Run,
): NamespaceResult {
  // For a deleted namespace the diagnosis from before the writes counts; otherwise the one after the writes.
  const hasEnded = done.outcome !== undefined || (done.hasWritten && isGone(follower));
  const diagnosis = hasEnded ? result.diagnosis : (seen?.diagnosis ?? result.diagnosis);
  const now = seen ? outcomeOf(seen.diagnosis) : result.outcome;
  const outcome = done.outcome ?? (hasEnded ? 'forced' : signal.aborted ? 'cancelled' : now);
  const notInspected = [...(diagnosis?.notInspected ?? []), ...done.unread];
  return {
    ...result,
    outcome,
    verdict: verdictOf(outcome, inputs.policy),
    elapsedMs: (follower.ended?.at ?? clock.now()) - startedAt,
    conditions: follower.last.conditions,
    diagnosis: diagnosis && { ...diagnosis, notInspected },
    timeline: [...result.timeline, ...done.timeline].sort((a, b) => a.at.localeCompare(b.at)),
    forced: done.forced,
  };
}
