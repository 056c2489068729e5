import { at, stringAt } from '../base/json.ts';
import { formatDuration, serverTime, serverTimestamp } from '../base/time.ts';
import type { Inputs } from '../inputs.ts';
import { namespacePath } from '../kubernetes/paths.ts';
import { type Outcome, verdict, worstOutcome } from '../model/outcome.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import { callRoll, isWorthwhile } from '../observe/roll-call.ts';
import {
  lookTurns,
  type Teardown,
  type TeardownDeps,
  type TeardownsDeps,
  tearDown,
} from './examine.ts';
import { type Forced, force, type Planned, planFor } from './forcing.ts';
import { describeStart } from './progress.ts';
import { cannot, findTargets, refuseProtected, requestDeletion, type Target } from './targets.ts';

export interface GateDeps extends TeardownDeps {
  gateVersion: string;
  /** Reports what is known before the first forced write: a write may destroy the evidence. */
  announce?: (result: RunResult) => Promise<void>;
}

/**
 * The story: find the namespaces, ask for their deletion if told to, wait for each, explain those that
 * stay, force what may be forced. Reporting is the caller's; it never changes what is decided here.
 */
export async function runGate(inputs: Inputs, deps: GateDeps): Promise<RunResult> {
  const startedAt = deps.clock.now();
  const cluster = readCluster(deps);
  const found = await findTargets(inputs, deps.api, deps.signal);
  deps.log.line(
    `namespace-teardown-gate ${deps.gateVersion} · ${deps.api.target.server} (Kubernetes ${(await cluster).version}), context ${deps.api.target.context}`,
  );
  const targets = inputs.delete ? await deleteAll(found, deps) : found;
  const cases = await guardAll(targets, inputs, startedAt, deps);
  const conclude = async (): Promise<RunResult> =>
    runResult(
      cases.map(({ result }) => result),
      { cluster: await cluster, startedAt },
      inputs,
      deps,
    );
  await forceAll(cases, inputs, deps, conclude);
  return conclude();
}

/** A namespace on its way through the run. */
interface Case {
  result: NamespaceResult;
  teardown: Teardown | undefined;
}

/** All plans are made, printed and reported before anything is changed. */
async function forceAll(
  cases: readonly Case[],
  inputs: Inputs,
  deps: GateDeps,
  conclude: () => Promise<RunResult>,
): Promise<void> {
  const planned: { at: Case; teardown: Teardown; plan: Planned }[] = [];
  for (const at of cases) {
    if (at.teardown === undefined) continue;
    const plan = await planFor(at.teardown, inputs, deps);
    if (plan === undefined) continue;
    planned.push({ at, teardown: at.teardown, plan });
    at.result = { ...at.result, forced: plan.record };
  }
  if (planned.length === 0 || deps.signal.aborted) return;
  if (inputs.force.mode !== 'plan') await deps.announce?.(await conclude());
  for (const { at, teardown, plan } of planned) {
    if (deps.signal.aborted) return;
    const forced = await force(plan, teardown, deps);
    at.result = withForced(at.result, forced, inputs, deps.signal.aborted);
  }
}

function withForced(
  result: NamespaceResult,
  forced: Forced,
  inputs: Inputs,
  isCancelled: boolean,
): NamespaceResult {
  const outcome = forced.outcome ?? (isCancelled ? 'cancelled' : result.outcome);
  const { diagnosis } = result;
  return {
    ...result,
    outcome,
    verdict: verdict(outcome, inputs.policy),
    diagnosis:
      diagnosis === undefined
        ? undefined
        : { ...diagnosis, notInspected: [...diagnosis.notInspected, ...forced.unread] },
    timeline: [...result.timeline, ...forced.timeline],
    forced: forced.record,
  };
}

function runResult(
  namespaces: NamespaceResult[],
  { cluster, startedAt }: { cluster: RunResult['cluster']; startedAt: number },
  inputs: Inputs,
  deps: GateDeps,
): RunResult {
  const outcome =
    deps.signal.aborted && namespaces.length === 0 ? 'cancelled' : worst(namespaces, inputs);
  return {
    kind: 'teardown',
    gateVersion: deps.gateVersion,
    finishedAt: serverTimestamp(deps),
    elapsedMs: deps.clock.now() - startedAt,
    timeoutMs: inputs.timeoutMs,
    cluster,
    outcome,
    verdict: verdict(outcome, inputs.policy),
    namespaces,
    sharedCauses: [],
  };
}

/** A selector that matches nothing is "not found": it may be a typo, or everything is gone. */
function worst(namespaces: readonly NamespaceResult[], inputs: Inputs): Outcome {
  if (namespaces.length === 0) return 'not-found';
  return worstOutcome(
    namespaces.map(({ outcome }) => outcome),
    inputs.policy,
  );
}

/** Nice to know, and nothing to wait for. Every cluster has kube-system, and its UID is the cluster's own. */
async function readCluster({ api, signal }: GateDeps): Promise<RunResult['cluster']> {
  const options = { signal, timeoutMs: 5_000, retries: 0 };
  const [version, system] = await Promise.all([
    api.get('/version', options),
    api.get(namespacePath('kube-system'), options),
  ]);
  const metadata = system.ok ? at(system.value, 'metadata') : undefined;
  const createdAt = stringAt(metadata, 'creationTimestamp');
  return {
    server: api.target.server,
    version: (version.ok ? stringAt(version.value, 'gitVersion') : undefined) ?? 'unknown',
    uid: stringAt(metadata, 'uid'),
    ...(createdAt === undefined ? {} : { createdAt }),
  };
}

/** Asks who is in each namespace first: once its content goes, nobody can tell any more. */
async function deleteAll(targets: readonly Target[], deps: GateDeps): Promise<Target[]> {
  const asked: Target[] = [];
  for (const target of targets) refuseProtected(target, deps.api);
  for (const target of targets) {
    if (deps.signal.aborted) {
      asked.push(target);
      continue;
    }
    const isActive = target.first !== undefined && target.first.deletionTimestamp === undefined;
    const rollCall = isActive ? await callRoll(target.name, deps) : undefined;
    const after = await requestDeletion(target, deps.api, deps.signal);
    if (isActive) deps.log.line(`${target.name}: asked for its deletion`);
    asked.push(rollCall === undefined ? after : { ...after, rollCall: Promise.resolve(rollCall) });
  }
  return asked;
}

/** All at the same time. When one of them cannot go on at all, the others do not wait any longer. */
async function guardAll(
  targets: readonly Target[],
  inputs: Inputs,
  startedAt: number,
  deps: GateDeps,
): Promise<Case[]> {
  const failed = new AbortController();
  const signal = AbortSignal.any([deps.signal, failed.signal]);
  const together = { ...deps, signal, turns: lookTurns() };
  try {
    return await Promise.all(targets.map((target) => guard(target, inputs, startedAt, together)));
  } catch (error) {
    failed.abort();
    throw error;
  }
}

/** From one target to its result. */
async function guard(
  target: Target,
  inputs: Inputs,
  startedAt: number,
  deps: GateDeps & TeardownsDeps,
): Promise<Case> {
  const { first } = target;
  if (first === undefined) {
    const event = 'it does not exist';
    const result = settled(target.name, 'not-found', event, inputs, startedAt, deps);
    return { result, teardown: undefined };
  }
  if (first.deletionTimestamp === undefined && target.wentAtOnce !== true) {
    const [outcome, event] = deps.signal.aborted
      ? (['cancelled', 'the run was cancelled'] as const)
      : (['not-terminating', 'it exists and nobody has asked for its deletion'] as const);
    const result = {
      ...settled(target.name, outcome, event, inputs, startedAt, deps),
      uid: first.uid,
      conditions: first.conditions,
    };
    return { result, teardown: undefined };
  }
  deps.log.line(
    `${target.name}: ${describeStart(first)}${inputs.timeoutMs === 0 ? '' : `, waiting up to ${formatDuration(inputs.timeoutMs)}`}`,
  );
  const isYoung = inputs.timeoutMs > 0 && isWorthwhile(first.deletionTimestamp, serverTime(deps));
  const rollCall = target.rollCall ?? (isYoung ? callRoll(target.name, deps) : undefined);
  const teardown = await tearDown(first, inputs, startedAt, deps, rollCall);
  if (teardown.unauthorized !== undefined) {
    throw cannot('get', `namespace "${target.name}"`, teardown.unauthorized.failure, deps.api);
  }
  return { result: resultOf(teardown, inputs, startedAt, deps), teardown };
}

function settled(
  name: string,
  outcome: Outcome,
  event: string,
  inputs: Inputs,
  startedAt: number,
  deps: GateDeps,
): NamespaceResult {
  const now = deps.clock.now();
  return {
    name,
    uid: '',
    outcome,
    verdict: verdict(outcome, inputs.policy),
    elapsedMs: now - startedAt,
    deletionTimestamp: undefined,
    conditions: [],
    diagnosis: undefined,
    timeline: [{ at: serverTimestamp(deps), event }],
    forced: null,
    leftBehind: undefined,
    look: undefined,
  };
}

function resultOf(
  teardown: Teardown,
  inputs: Inputs,
  startedAt: number,
  deps: GateDeps,
): NamespaceResult {
  const { last, outcome, diagnosis, timeline, look } = teardown;
  return {
    name: last.name,
    uid: last.uid,
    outcome,
    verdict: verdict(outcome, inputs.policy),
    elapsedMs: deps.clock.now() - startedAt,
    deletionTimestamp: last.deletionTimestamp,
    conditions: last.conditions,
    diagnosis,
    timeline,
    forced: null,
    leftBehind: undefined,
    look,
  };
}
