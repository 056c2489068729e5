import { leakOf } from '../diagnose/catalogue.ts';
import { applyForce } from '../force/apply.ts';
import { readHostedBackends } from '../force/backends.ts';
import type { ForcePlan } from '../force/force-plan.ts';
import { planForce } from '../force/plan.ts';
import { recordPlan, renderPlan } from '../force/render-plan.ts';
import type { Inputs } from '../inputs.ts';
import { verdict } from '../model/outcome.ts';
import { type ActivePolicy, isActive } from '../model/policy.ts';
import type { RunResult } from '../model/result.ts';
import { EXAMINE_LIMIT_MS, type Examination, examine } from './examine.ts';
import type { Case, GateDeps } from './gate.ts';
import { Following, readNamespace } from './wait.ts';

interface Planned {
  one: Case;
  plan: ForcePlan;
  policy: ActivePolicy;
  uid: string;
}

/** All plans are made, printed and reported before anything is changed. */
export async function forceAll(
  cases: readonly Case[],
  inputs: Inputs,
  deps: GateDeps,
  conclude: () => Promise<RunResult>,
): Promise<void> {
  const policy = inputs.force;
  if (!isActive(policy)) return;
  const planned: Planned[] = [];
  for (const one of cases) {
    const { outcome, uid } = one.result;
    const isStillThere = ['stuck', 'inconclusive', 'progressing'].includes(outcome);
    const last = one.examinations.at(-1);
    if (!isStillThere || last === undefined || deps.signal.aborted) continue;
    const plan = await makePlan(last, policy, uid, deps);
    for (const line of renderPlan(plan)) deps.log.line(line);
    one.result = { ...one.result, forced: recordPlan(plan) };
    planned.push({ one, plan, policy, uid });
  }
  if (planned.length === 0 || deps.signal.aborted) return;
  if (policy.mode !== 'plan') await deps.announce?.(await conclude());
  for (const each of planned) {
    if (deps.signal.aborted) return;
    await apply(each, inputs, deps);
  }
}

async function makePlan(
  { snapshot, diagnosis }: Examination,
  policy: ActivePolicy,
  startUid: string,
  { api, signal }: GateDeps,
): Promise<ForcePlan> {
  const backends = await readHostedBackends(api, snapshot.namespace.name, signal);
  const { ownNamespace } = api.target;
  return planForce({ snapshot, diagnosis, policy, startUid, ownNamespace, backends, leakOf });
}

/** Carries the plan out; in mode `plan` it stops before the first write. */
async function apply(planned: Planned, inputs: Inputs, deps: GateDeps): Promise<void> {
  const { one, plan } = planned;
  const { api, clock, log, signal } = deps;
  const { record, outcome, unread, timeline } = await applyForce(plan, {
    api,
    clock,
    log,
    signal,
    waitGone: (untilMs) => waitGone(one, untilMs, deps),
    replan: () => replan(planned, deps),
  });
  const end = outcome ?? (signal.aborted ? 'cancelled' : one.result.outcome);
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

async function waitGone(
  { follower }: Case,
  untilMs: number,
  deps: GateDeps,
): Promise<'gone' | 'still-there'> {
  if (follower === undefined) return 'still-there';
  const following = new Following(deps);
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

/**
 * The diagnosis does not compare with an examination from before: what our own writes set in motion is not
 * somebody at work.
 */
async function replan(
  { plan, policy, uid }: Planned,
  deps: GateDeps,
): Promise<ForcePlan | undefined> {
  const now = await readNamespace(deps.api, plan.namespace.name, deps.signal);
  if (!now.ok || now.value === undefined || now.value.uid !== uid) return undefined;
  const [seen] = await examine(
    [{ namespace: now.value, before: undefined, baseline: undefined }],
    EXAMINE_LIMIT_MS,
    deps,
  );
  return seen === undefined || deps.signal.aborted ? undefined : makePlan(seen, policy, uid, deps);
}
