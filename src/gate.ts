import { formatDuration } from './duration.ts';
import type { Inputs } from './inputs.ts';
import { stringAt } from './json.ts';
import { type Outcome, verdict, worstOutcome } from './outcome.ts';
import type { NamespaceResult, RunResult } from './report/report.ts';
import { cannot, findTargets, requestDeletion, type Target } from './targets.ts';
import { type Teardown, type TeardownDeps, tearDown } from './teardown.ts';

export interface GateDeps extends TeardownDeps {
  gateVersion: string;
}

/**
 * The story: find the namespaces, ask for their deletion if told to, wait for each, explain those that
 * stay, force what may be forced. Reporting is the caller's; it never changes what is decided here.
 */
export async function runGate(inputs: Inputs, deps: GateDeps): Promise<RunResult> {
  const startedAt = deps.clock.now();
  const version = readVersion(deps);
  const found = await findTargets(inputs, deps.api, deps.signal);
  deps.log.line(
    `namespace-teardown-gate ${deps.gateVersion} · ${deps.api.target.server} (Kubernetes ${await version}), context ${deps.api.target.context}`,
  );
  const targets = inputs.delete ? await deleteAll(found, deps) : found;
  const namespaces = await Promise.all(
    targets.map((target) => guard(target, inputs, startedAt, deps)),
  );
  const outcome = worst(namespaces, inputs);
  return {
    gateVersion: deps.gateVersion,
    finishedAt: new Date(deps.clock.now()).toISOString(),
    elapsedMs: deps.clock.now() - startedAt,
    timeoutMs: inputs.timeoutMs,
    cluster: { server: deps.api.target.server, version: await version, identity: undefined },
    outcome,
    verdict: verdict(outcome, inputs.policy),
    namespaces,
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

async function readVersion(deps: GateDeps): Promise<string> {
  const got = await deps.api.get('/version', { signal: deps.signal });
  return got.ok ? (stringAt(got.value, 'gitVersion') ?? 'unknown') : 'unknown';
}

async function deleteAll(targets: readonly Target[], deps: GateDeps): Promise<Target[]> {
  const asked: Target[] = [];
  for (const target of targets) {
    const after = await requestDeletion(target, deps.api, deps.signal);
    if (after !== target) deps.log.line(`${target.name}: asked for its deletion`);
    asked.push(after);
  }
  return asked;
}

/** From one target to its result. */
async function guard(
  target: Target,
  inputs: Inputs,
  startedAt: number,
  deps: GateDeps,
): Promise<NamespaceResult> {
  const { first } = target;
  if (first === undefined) {
    return settled(target.name, 'not-found', 'it does not exist', inputs, startedAt, deps);
  }
  if (first.deletionTimestamp === undefined) {
    const event = 'it exists and nobody has asked for its deletion';
    return {
      ...settled(target.name, 'not-terminating', event, inputs, startedAt, deps),
      uid: first.uid,
      conditions: first.conditions,
    };
  }
  deps.log.line(
    `${target.name}: terminating since ${first.deletionTimestamp}${inputs.timeoutMs === 0 ? '' : `, waiting up to ${formatDuration(inputs.timeoutMs)}`}`,
  );
  const teardown = await tearDown(first, inputs, startedAt, deps);
  if (teardown.unauthorized !== undefined) {
    throw cannot('get', `namespace "${target.name}"`, teardown.unauthorized.failure, deps.api);
  }
  return resultOf(teardown, inputs, startedAt, deps);
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
    timeline: [{ at: new Date(now).toISOString(), event }],
    forced: null,
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
    look,
  };
}
