import type { Log } from '../base/log.ts';
import { applyForce, FRESH_MS, type Look } from '../force/apply.ts';
import { machineryReasons, readRegistrations } from '../force/machinery.ts';
import { planForce, recordPlan, renderPlan } from '../force/plan.ts';
import type { Inputs } from '../inputs.ts';
import type { Diagnosis } from '../model/finding.ts';
import { verdict } from '../model/outcome.ts';
import { type ActivePolicy, isActive } from '../model/policy.ts';
import type { RunResult } from '../model/result.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { EXAMINE_LIMIT_MS, type Examination, type Examined, examine } from './examine.ts';
import type { Case } from './gate.ts';
import type { GateDeps } from './run.ts';
import { createFollowing, readNamespace } from './wait.ts';

/** For all namespaces together, planning and verifying included. */
const BUDGET_MS = 120_000;
/** No write begins after this, so that what was done can still be verified. */
const LAST_WRITE_MS = 105_000;
/** No waiting after this where the namespace itself may have to be written to. */
const LAST_WAIT_MS = 80_000;
/** Between two looks that are to show whether anything moves. */
const COMPARE_MS = 10_000;

/** What all namespaces of one run of forcing share. */
interface Forcing {
  policy: ActivePolicy;
  inputs: Inputs;
  deps: GateDeps;
  startedAt: number;
  /** Why no further write may begin. */
  over(): string | undefined;
  examine: (one: Examined) => Promise<Examination>;
}

/** A namespace that is still there, and how its plans are made. */
interface Forced {
  one: Case;
  plan(seen: Examination): Look;
  /** The snapshot to compare the next one with. */
  last: Snapshot;
  first: Look;
}

/**
 * Side by side over the namespaces, within one budget. All plans are made, printed and reported before
 * anything is changed.
 */
export async function forceAll(
  cases: readonly Case[],
  inputs: Inputs,
  deps: GateDeps,
  conclude: () => Promise<RunResult>,
): Promise<void> {
  const policy = inputs.force;
  const open = cases.filter(
    ({ result, examinations }) =>
      ['stuck', 'inconclusive', 'progressing'].includes(result.outcome) && examinations.length > 0,
  );
  if (!isActive(policy) || open.length === 0 || deps.signal.aborted) return;
  const isDone = new AbortController();
  const isOver = new AbortController();
  const startedAt = deps.clock.now();
  void deps.clock.sleep(BUDGET_MS, isDone.signal).then(() => isOver.abort());
  const signal = AbortSignal.any([deps.signal, isOver.signal]);
  const bounded = { ...deps, signal };
  const forcing: Forcing = {
    policy,
    inputs,
    deps: bounded,
    startedAt,
    over: () => {
      if (deps.signal.aborted) return 'the run was cancelled';
      const isLate = signal.aborted || deps.clock.now() - startedAt >= LAST_WRITE_MS;
      return isLate ? `the ${BUDGET_MS / 1_000} s for forcing are over` : undefined;
    },
    examine: examiner(bounded),
  };
  try {
    const forced = await planAll(open, forcing);
    if (policy.mode !== 'plan' && !signal.aborted) await deps.announce?.(await conclude());
    await Promise.all(forced.map((each) => carryOut(each, forcing, deps.signal)));
  } finally {
    isDone.abort();
  }
}

async function planAll(open: readonly Case[], forcing: Forcing): Promise<Forced[]> {
  const { deps, policy } = forcing;
  const registrations = await readRegistrations(deps.api, deps.signal);
  return Promise.all(
    open.map(async (one) => {
      const { name, uid } = one.result;
      const machinery = await machineryReasons(name, registrations, deps.api, deps.signal);
      const { ownNamespace } = deps.api.target;
      const plan = ({ snapshot, diagnosis, at, cost }: Examination): Look => ({
        plan: planForce({ snapshot, diagnosis, policy, startUid: uid, ownNamespace, machinery }),
        at: at + cost.ms,
        isStuck: isStuck(diagnosis),
      });
      const known = one.examinations.at(-1) as Examination;
      const each: Forced = { one, plan, last: known.snapshot, first: plan(known) };
      each.first = (await secondLook(each, known, forcing)) ?? each.first;
      for (const line of renderPlan(each.first.plan)) deps.log.line(line);
      one.result = { ...one.result, forced: recordPlan(each.first.plan) };
      return each;
    }),
  );
}

/**
 * Where the facts are old, or one look alone cannot show whether somebody is at work and that decides:
 * only what is named exactly is removed all the same.
 */
async function secondLook(
  each: Forced,
  { at, cost, diagnosis }: Examination,
  forcing: Forcing,
): Promise<Look | undefined> {
  const { clock, signal, log } = forcing.deps;
  const { mode, finalizers } = forcing.policy;
  const isUnsure =
    diagnosis.movement.kind === 'unknown' &&
    (mode !== 'objects' || finalizers.some((name) => name.includes('*')));
  const readAt = at + cost.ms;
  if (!isUnsure && clock.now() - readAt <= FRESH_MS) return undefined;
  if (isUnsure) {
    log.line(`${each.one.result.name}: looking a second time, to see whether anything moves`);
    await clock.sleep(Math.max(0, readAt + COMPARE_MS - clock.now()), signal);
  }
  return lookAt(each, true, forcing);
}

async function lookAt(each: Forced, compare: boolean, forcing: Forcing): Promise<Look | undefined> {
  const { deps } = forcing;
  const { result, baseline } = each.one;
  const now = await readNamespace(deps.api, result.name, deps.signal);
  if (!now.ok || now.value === undefined || now.value.uid !== result.uid) return undefined;
  const before = compare ? each.last : undefined;
  const seen = await forcing.examine({ namespace: now.value, before, baseline });
  if (deps.signal.aborted) return undefined;
  each.last = seen.snapshot;
  return each.plan(seen);
}

function isStuck({ movement, blockers, findings }: Diagnosis): boolean {
  const holding = findings.filter(({ id }) => blockers.includes(id));
  return movement.kind === 'none' && holding.some(({ code }) => code !== 'unexplained');
}

async function carryOut(each: Forced, forcing: Forcing, cancelled: AbortSignal): Promise<void> {
  const { one } = each;
  const { deps, inputs, policy, over, startedAt } = forcing;
  const { record, outcome, unread, timeline } = await applyForce(each.first, {
    ...deps,
    log: prefixed(deps.log, one.result.name),
    over,
    waitGone: (untilMs) => waitGone(one, untilMs, deps),
    look: (compare) => lookAt(each, compare, forcing),
    settleUntil: startedAt + (policy.mode === 'namespace' ? LAST_WAIT_MS : LAST_WRITE_MS),
  });
  const end = outcome ?? (cancelled.aborted ? 'cancelled' : one.result.outcome);
  const { diagnosis } = one.result;
  one.result = {
    ...one.result,
    outcome: end,
    verdict: verdict(end, inputs.policy),
    diagnosis: diagnosis && {
      ...diagnosis,
      notInspected: [...diagnosis.notInspected, ...unread],
    },
    timeline: [...one.result.timeline, ...timeline],
    forced: record,
  };
}

/** Several namespaces are forced side by side. */
function prefixed(log: Log, name: string): Pick<Log, 'line' | 'group'> {
  return {
    line: (text) => log.line(`${name}: ${text}`),
    group: (title, lines) => log.group(`${name}: ${title}`, lines),
  };
}

async function waitGone(
  { follower }: Case,
  untilMs: number,
  deps: GateDeps,
): Promise<'gone' | 'still-there'> {
  if (follower === undefined) return 'still-there';
  const following = createFollowing(deps);
  const again = following.add(follower.last);
  following.start();
  try {
    await deps.clock.sleep(Math.max(0, untilMs - deps.clock.now()), again.over);
    if (!again.over.aborted) return 'still-there';
    const { how } = await again.ended;
    return how === 'deleted' || how === 'recreated' ? 'gone' : 'still-there';
  } finally {
    again.stop();
  }
}

/** Namespaces that ask at about the same time, or while others are being examined, are examined together. */
function examiner(deps: GateDeps): (one: Examined) => Promise<Examination> {
  let waiting: { one: Examined; answer: (seen: Promise<Examination>) => void }[] = [];
  let isBusy = false;
  const work = async (): Promise<void> => {
    if (isBusy) return;
    isBusy = true;
    while (waiting.length > 0) {
      await deps.clock.sleep(GATHER_MS, deps.signal);
      const batch = waiting;
      waiting = [];
      const all = examine(
        batch.map(({ one }) => one),
        EXAMINE_LIMIT_MS,
        deps,
      );
      batch.forEach(({ answer }, index) => {
        answer(all.then((found) => found[index] as Examination));
      });
      await all.catch(() => undefined);
    }
    isBusy = false;
  };
  return (one) =>
    new Promise((answer) => {
      waiting.push({ one, answer });
      void work();
    });
}

const GATHER_MS = 200;
