import { at, stringAt } from '../base/json.ts';
import type { Log } from '../base/log.ts';
import { type Clock, serverTimestamp } from '../base/time.ts';
import { leftBehind } from '../forecast/left-behind.ts';
import type { Inputs } from '../inputs.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import type { NotInspected } from '../model/finding.ts';
import { type Outcome, verdict, worstOutcome } from '../model/outcome.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import type { Claim } from '../model/snapshot.ts';
import { readPointers } from '../observe/left-behind.ts';
import { sharedCausesOf } from '../report/causes.ts';
import { readNamespaces } from './wait.ts';

export interface GateDeps {
  api: KubernetesApi;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  gateVersion: string;
  /** Reports what is known before the first forced write: a write may destroy the evidence. */
  announce?: (result: RunResult) => Promise<void>;
}

/** One run of the gate, and what all its namespaces have in common. */
export interface Run extends GateDeps {
  inputs: Inputs;
  /** In ms since the epoch. */
  startedAt: number;
  cluster: Omit<RunResult['cluster'], 'server'>;
  /** Namespaces that a limit keeps out of it. */
  leftOut: NotInspected[];
}

export async function startRun(inputs: Inputs, deps: GateDeps): Promise<Run> {
  const startedAt = deps.clock.now();
  return { ...deps, inputs, startedAt, cluster: await readCluster(deps), leftOut: [] };
}

export function logStart({ api, cluster, gateVersion, log }: Run): void {
  const { server, context } = api.target;
  log.line(
    `namespace-teardown-gate ${gateVersion} · ${server} (Kubernetes ${cluster.version}), context ${context}`,
  );
}

/** Nice to know, and nothing to wait for. */
async function readCluster({ api, signal }: GateDeps): Promise<Run['cluster']> {
  const options = { signal, timeoutMs: 5_000, retries: 0 };
  const [version, system] = await Promise.all([
    api.get('/version', options),
    api.get('/api/v1/namespaces/kube-system', options),
  ]);
  const metadata = system.ok ? at(system.value, 'metadata') : undefined;
  const createdAt = stringAt(metadata, 'creationTimestamp');
  return {
    version: version.ok ? (stringAt(version.value, 'gitVersion') ?? 'unknown') : 'unknown',
    uid: stringAt(metadata, 'uid'),
    ...(createdAt === undefined ? {} : { createdAt }),
  };
}

/** It is a bonus: nobody waits long for it. */
const LEFT_BEHIND_MS = 10_000;
/** What takes volumes away, and garbage collection, come after the namespace. */
const SECOND_LOOK_MS = 4_000;

/** What stayed, or would stay, outside of these namespaces and still points into them; read for all at once. `claims`: what is known of each, by its name. */
export async function addLeftBehind(
  results: readonly NamespaceResult[],
  { api, clock, inputs, signal }: Run,
  claims: ReadonlyMap<string, readonly Claim[]>,
): Promise<void> {
  if (results.length === 0 || signal.aborted) return;
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LEFT_BEHIND_MS)]);
  const look = async () => {
    const { pointers, unread } = await readPointers(results, { api, signal: limited });
    const now = inputs.forecast ? undefined : await readNamespaces(api, results, limited);
    const left = results.map(({ name, createdAt, outcome }) => {
      const there = now?.get(name);
      const isReplaced = outcome === 'recreated' || (there?.ok && there.value !== undefined);
      const fate = inputs.forecast ? 'expected' : isReplaced ? 'replaced' : 'gone';
      return leftBehind({ name, createdAt, fate, claims: claims.get(name) ?? [] }, pointers);
    });
    return { left, unread: unread.map(({ source: _, ...entry }): NotInspected => entry) };
  };
  let { left, unread } = await look();
  if (left.flat().some(({ isGoing }) => isGoing)) {
    await clock.sleep(SECOND_LOOK_MS, limited);
    const second = await look();
    if (!limited.aborted) ({ left, unread } = second);
  }
  results.forEach((result, index) => {
    const mine = left[index] ?? [];
    result.leftBehind = mine;
    result.leftBehindUnread = unread;
    if (inputs.failOnLeftBehind && mine.some(({ isGoing }) => !isGoing)) result.verdict = 'fail';
  });
}

/** What is said of a namespace of which nothing more is known. */
export function resultOf(
  name: string,
  outcome: Outcome,
  { clock, inputs, startedAt }: Run,
): NamespaceResult {
  return {
    name,
    uid: '',
    outcome,
    verdict: verdict(outcome, inputs.policy),
    elapsedMs: clock.now() - startedAt,
    deletionTimestamp: undefined,
    conditions: [],
    diagnosis: undefined,
    timeline: [],
    forced: null,
    leftBehind: undefined,
    examination: undefined,
  };
}

export function runResult(namespaces: NamespaceResult[], run: Run): RunResult {
  const { api, clock, cluster, gateVersion, inputs, leftOut, signal, startedAt } = run;
  const outcome = signal.aborted && namespaces.length === 0 ? 'cancelled' : worst(namespaces, run);
  return {
    kind: inputs.forecast ? 'forecast' : 'teardown',
    gateVersion,
    finishedAt: serverTimestamp(run),
    elapsedMs: clock.now() - startedAt,
    timeoutMs: inputs.timeoutMs,
    cluster: { server: api.target.server, ...cluster },
    outcome,
    // What stayed behind may fail a run whose namespaces all went.
    verdict: namespaces.some((one) => one.verdict === 'fail')
      ? 'fail'
      : verdict(outcome, inputs.policy),
    namespaces,
    sharedCauses: sharedCausesOf(namespaces),
    ...(leftOut.length === 0 ? {} : { leftOut }),
  };
}

/** A selector that matches nothing is "not found": it may be a typo, or everything is gone. */
function worst(namespaces: readonly NamespaceResult[], { inputs, leftOut }: Run): Outcome {
  if (namespaces.length === 0) return inputs.terminating === undefined ? 'not-found' : 'deleted';
  const outcomes = namespaces.map(({ outcome }) => outcome);
  // That those which were looked at are gone says nothing about the others.
  return worstOutcome(leftOut.length > 0 ? [...outcomes, 'inconclusive'] : outcomes, inputs.policy);
}
