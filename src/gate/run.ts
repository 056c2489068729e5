import { stringAt } from '../base/json.ts';
import type { Log } from '../base/log.ts';
import { isVersionFrom } from '../base/text.ts';
import { type Clock, serverTimestamp, type TimelineEntry } from '../base/time.ts';
import type { Inputs } from '../inputs.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import type { NotInspected } from '../model/finding.ts';
import { type Outcome, verdictOf, worstOutcome } from '../model/outcome.ts';
import type { Deletion, NamespaceResult, RunResult } from '../model/result.ts';
import type { Baseline, NamespaceFacts } from '../model/snapshot.ts';
import { ANCHOR_NAMESPACES, type ConfirmDeps, readAnchor } from './confirm.ts';

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

export interface Run extends GateDeps, Pick<ConfirmDeps, 'anchor'> {
  inputs: Inputs;
  startedAt: number;
  cluster: RunResult['cluster'];
  /** Kubernetes deletes pods first since 1.33 (KEP-5080, feature gate OrderedNamespaceDeletion). */
  isPodsFirst: boolean;
}

export interface Target {
  name: string;
  first: NamespaceFacts | undefined;
  /** Its deletion was requested, so the wait must find out the result. */
  isAsked?: boolean;
  /** Why its deletion was refused. */
  refusal?: string;
  /** With `delete: ordered`: deletions inside it before its own. */
  deletions?: Deletion[];
  timeline?: TimelineEntry[];
  baseline?: Baseline | undefined;
}

export type Existing = Target & { first: NamespaceFacts };

export async function startRun(inputs: Inputs, deps: GateDeps): Promise<Run> {
  const startedAt = deps.clock.now();
  const [version, anchor] = await Promise.all([
    deps.api.get('/version', { signal: deps.signal, timeoutMs: 5_000, retries: 0 }),
    readAnchor(deps),
  ]);
  const { server } = deps.api.target;
  const gitVersion = version.ok ? stringAt(version.value, 'gitVersion') : undefined;
  const cluster = { server, version: gitVersion ?? 'unknown' };
  const isPodsFirst = isVersionFrom(cluster.version, 1, 33);
  return { ...deps, inputs, startedAt, anchor, cluster, isPodsFirst };
}

export function logStart({ anchor, api, cluster, gateVersion, log, signal }: Run): void {
  const { context, server } = api.target;
  log.line(
    `namespace-teardown-gate ${gateVersion} · ${server} (Kubernetes ${cluster.version}), context ${context}`,
  );
  if (anchor !== undefined || signal.aborted) return;
  log.warning(
    `whether the address leads to the same cluster until the end cannot be checked: ${ANCHOR_NAMESPACES.join(' and ')} could not be read; if this identity lacks the permission, allow it to get one of them`,
  );
}

/** Without an examination. What was deleted inside of it is always reported. */
export function resultOf(
  { name, deletions, timeline = [], refusal }: Omit<Target, 'first'>,
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
    timeline: [...timeline, { at: serverTimestamp(run), event }],
    forced: null,
    ...(deletions === undefined ? {} : { deletions }),
    ...(refusal === undefined ? {} : { refusal }),
  };
}

/** `leftOut`: namespaces that a limit excludes from the run; they are not among the outcomes. */
export function runResult(
  namespaces: NamespaceResult[],
  leftOut: NotInspected[],
  run: Run,
): RunResult {
  const { clock, cluster, gateVersion, inputs, signal, startedAt } = run;
  const { forecast, policy, selector, terminating, timeoutMs } = inputs;
  const outcomes = namespaces.map((one) => one.outcome);
  if (leftOut.length > 0) outcomes.push('inconclusive');
  // A selector without a match may be a typo, and it is unknown whether anything was deleted.
  const isWholeCluster = terminating?.forMs === 0 && selector === '';
  const none = signal.aborted ? 'cancelled' : isWholeCluster ? 'deleted' : 'not-found';
  const outcome = outcomes.length > 0 ? worstOutcome(outcomes, policy) : none;
  // Leftovers may fail a run although all namespaces were deleted.
  const isFailed = namespaces.some(({ verdict }) => verdict === 'fail');
  return {
    kind: forecast ? 'forecast' : 'teardown',
    ...{ gateVersion, cluster, outcome, namespaces, timeoutMs },
    finishedAt: serverTimestamp(run),
    elapsedMs: clock.now() - startedAt,
    verdict: isFailed ? 'fail' : verdictOf(outcome, policy),
    ...(leftOut.length > 0 && { leftOut }),
  };
}
