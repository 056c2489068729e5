import type { TimelineEntry } from '../base/time.ts';
import { leakOf } from '../diagnose/catalogue.ts';
import { diagnose } from '../diagnose/diagnose.ts';
import { applyForce } from '../force/apply.ts';
import { readHostedBackends } from '../force/backends.ts';
import type { ForcePlan } from '../force/force-plan.ts';
import { planForce } from '../force/plan.ts';
import { type ActivePolicy, isActive } from '../force/policy.ts';
import { recordPlan, renderPlan } from '../force/render-plan.ts';
import type { Inputs } from '../inputs.ts';
import type { Diagnosis, NotInspected } from '../model/finding.ts';
import type { Outcome } from '../model/outcome.ts';
import type { ForceRecord } from '../model/result.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { Teardown, TeardownDeps } from './examine.ts';
import { look } from './examine.ts';
import { followNamespace, readNamespace } from './wait.ts';

/** Looking again between writes is bounded like every look. */
const LOOK_LIMIT_MS = 45_000;

/** A plan that was printed; nothing has been changed yet. */
export interface Planned {
  plan: ForcePlan;
  record: ForceRecord;
  policy: ActivePolicy;
  startUid: string;
}

export interface Forced {
  record: ForceRecord;
  /** What became of the namespace; undefined: the diagnosed outcome stands. */
  outcome: Outcome | undefined;
  unread: NotInspected[];
  timeline: TimelineEntry[];
}

/** Only what is still there at the timeout and was diagnosed may be forced. */
export async function planFor(
  teardown: Teardown,
  inputs: Pick<Inputs, 'force'>,
  deps: TeardownDeps,
): Promise<Planned | undefined> {
  const { snapshot, diagnosis, outcome } = teardown;
  const isStillThere =
    outcome === 'stuck' || outcome === 'inconclusive' || outcome === 'progressing';
  if (!isActive(inputs.force) || !isStillThere) return undefined;
  if (snapshot === undefined || diagnosis === undefined) return undefined;
  const startUid = teardown.last.uid;
  const plan = await makePlan(snapshot, diagnosis, inputs.force, startUid, deps);
  for (const line of renderPlan(plan)) deps.log.line(line);
  return { plan, record: recordPlan(plan), policy: inputs.force, startUid };
}

async function makePlan(
  snapshot: Snapshot,
  diagnosis: Diagnosis,
  policy: ActivePolicy,
  startUid: string,
  { api, signal }: TeardownDeps,
): Promise<ForcePlan> {
  const backends = await readHostedBackends(api, snapshot.namespace.name, signal);
  const { ownNamespace } = api.target;
  return planForce({ snapshot, diagnosis, policy, startUid, ownNamespace, backends, leakOf });
}

/** Carries the plan out; in mode `plan` it stops before the first write. */
export async function force(
  planned: Planned,
  teardown: Teardown,
  deps: TeardownDeps,
): Promise<Forced> {
  const { api, clock, log, signal } = deps;
  const result = await applyForce(planned.plan, {
    api,
    clock,
    log,
    signal,
    waitGone: (untilMs) => waitGone(teardown, untilMs, deps),
    replan: () => replan(planned, deps),
  });
  const { record, outcome, unread, timeline } = result;
  return { record, outcome, unread, timeline };
}

async function waitGone(
  teardown: Teardown,
  untilMs: number,
  deps: TeardownDeps,
): Promise<'gone' | 'still-there'> {
  const follower = followNamespace(teardown.last, deps);
  try {
    await deps.clock.sleep(Math.max(0, untilMs - deps.clock.now()), follower.over);
    if (!follower.over.aborted) return 'still-there';
    const { how } = await follower.ended;
    return how === 'deleted' || how === 'recreated' ? 'gone' : 'still-there';
  } finally {
    follower.stop();
  }
}

/**
 * The diagnosis does not compare with a look from before: what our own writes set in motion is not
 * somebody at work.
 */
async function replan(planned: Planned, deps: TeardownDeps): Promise<ForcePlan | undefined> {
  const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(LOOK_LIMIT_MS)]);
  const now = await readNamespace(deps.api, planned.plan.namespace.name, signal);
  if (!now.ok || now.value === undefined || now.value.uid !== planned.startUid) return undefined;
  const snapshot = await look(now.value, undefined, undefined, { ...deps, signal });
  if (signal.aborted) return undefined;
  return makePlan(snapshot, diagnose(snapshot), planned.policy, planned.startUid, deps);
}
