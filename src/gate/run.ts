import { stringAt } from '../base/json.ts';
import type { Log } from '../base/log.ts';
import { type Clock, serverTimestamp } from '../base/time.ts';
import type { Inputs } from '../inputs.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import type { NotInspected } from '../model/finding.ts';
import { type Outcome, verdictOf, worstOutcome } from '../model/outcome.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import type { NamespaceFacts } from '../model/snapshot.ts';
import { ANCHOR_NAMESPACES, type ConfirmDeps, readAnchor } from './confirm.ts';
import type { Target } from './targets.ts';

export interface GateDeps {
  api: KubernetesApi;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  gateVersion: string;
  /** Publishes what is known before the first forced write, because a write may destroy the evidence. */
  announce?: (result: RunResult) => Promise<void>;
  /** Receives the outcomes as soon as they are known, before what stayed behind is read. */
  concluded?: (result: RunResult) => void;
}

/** A run of the gate, with everything that its namespaces share. */
export interface Run extends GateDeps, Pick<ConfirmDeps, 'anchor' | 'marks'> {
  inputs: Inputs;
  /** Start of the run, in milliseconds since the epoch. */
  startedAt: number;
  cluster: RunResult['cluster'];
  /** Namespaces that a limit excludes from the run. */
  leftOut: NotInspected[];
}

export async function startRun(inputs: Inputs, deps: GateDeps): Promise<Run> {
  const startedAt = deps.clock.now();
  const [version, anchor] = await Promise.all([
    deps.api.get('/version', { signal: deps.signal, timeoutMs: 5_000, retries: 0 }),
    readAnchor(deps),
  ]);
  const cluster = {
    server: deps.api.target.server,
    version: version.ok ? (stringAt(version.value, 'gitVersion') ?? 'unknown') : 'unknown',
    uid: anchor?.name === ANCHOR_NAMESPACES[0] ? anchor?.uid : undefined,
    ...(anchor?.createdAt === undefined ? {} : { createdAt: anchor.createdAt }),
  };
  return { ...deps, inputs, startedAt, anchor, cluster, marks: new Set(), leftOut: [] };
}

/** Returns the result of a namespace without an examination. What was deleted inside of it is always reported. */
export function resultOf(
  { name, ordered, refusal }: Omit<Target, 'first'>,
  facts: NamespaceFacts | undefined,
  outcome: Outcome,
  event: string,
  run: Run,
): NamespaceResult {
  return {
    name,
    uid: facts?.uid ?? '',
    createdAt: facts?.creationTimestamp,
    deletionTimestamp: facts?.deletionTimestamp,
    conditions: facts?.conditions ?? [],
    outcome,
    verdict: verdictOf(outcome, run.inputs.policy),
    elapsedMs: run.clock.now() - run.startedAt,
    diagnosis: undefined,
    timeline: [...(ordered?.timeline ?? []), { at: serverTimestamp(run), event }],
    forced: null,
    ...(ordered === undefined ? {} : { deletions: [...ordered.deletions.values()] }),
    ...(refusal === undefined ? {} : { refusal }),
  };
}

export function runResult(namespaces: NamespaceResult[], run: Run): RunResult {
  const { clock, cluster, gateVersion, inputs, leftOut, startedAt } = run;
  const outcome = worstOfRun(namespaces, run);
  return {
    kind: inputs.forecast ? 'forecast' : 'teardown',
    gateVersion,
    finishedAt: serverTimestamp(run),
    elapsedMs: clock.now() - startedAt,
    timeoutMs: inputs.timeoutMs,
    cluster,
    outcome,
    // Leftovers may fail a run although all namespaces were deleted.
    verdict: namespaces.some((one) => one.verdict === 'fail')
      ? 'fail'
      : verdictOf(outcome, inputs.policy),
    namespaces,
    ...(leftOut.length === 0 ? {} : { leftOut }),
  };
}

/**
 * Returns the worst outcome. A selector without matches is "not found": it may be a typo, or every namespace was
 * deleted.
 */
function worstOfRun(namespaces: readonly NamespaceResult[], run: Run): Outcome {
  const { inputs, leftOut, signal } = run;
  if (namespaces.length === 0 && signal.aborted) return 'cancelled';
  const { selector, terminating } = inputs;
  const isWholeCluster = terminating?.forMs === 0 && selector === '';
  // Without a match it is unknown whether anything was deleted.
  if (namespaces.length === 0) return isWholeCluster ? 'deleted' : 'not-found';
  const outcomes = namespaces.map(({ outcome }) => outcome);
  // The outcomes do not cover namespaces that a limit excluded.
  return worstOutcome(leftOut.length > 0 ? [...outcomes, 'inconclusive'] : outcomes, inputs.policy);
}
