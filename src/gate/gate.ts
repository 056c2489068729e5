import type { Inputs } from '../inputs.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import { readNamespaces } from '../observe/namespaces.ts';
import { deleteAll } from './delete.ts';
import { forceAll } from './forcing.ts';
import { forecastAll } from './forecast.ts';
import { addLeftBehind } from './left-behind.ts';
import { type GateDeps, logStart, runResult, startRun } from './run.ts';
import { findTargets } from './targets.ts';
import { waitForAll } from './wait.ts';

/** The caller publishes the report, which never changes the result. */
export async function runGate(inputs: Inputs, deps: GateDeps): Promise<RunResult> {
  // Beside what a run begins with: each answer that is waited for takes as long as the way to the cluster.
  const named = readNamespaces(
    inputs.namespaces.map((name) => ({ name })),
    deps,
  );
  const run = await startRun(inputs, deps);
  const { targets, leftOut } = await findTargets(await named, run);
  const conclude = (results: NamespaceResult[]): RunResult => runResult(results, leftOut, run);
  logStart(run);
  if (inputs.forecast) return conclude(await forecastAll(targets, run));
  const asked = inputs.delete === false ? targets : await deleteAll(targets, run);
  const done = new AbortController();
  try {
    const waited = await waitForAll(asked, run, AbortSignal.any([run.signal, done.signal]));
    const results = await forceAll(waited, run, conclude);
    if (results.some(isGone)) run.concluded?.(conclude(results));
    return conclude(await addLeftBehind(results, isGone, run));
  } finally {
    done.abort();
  }
}

function isGone({ outcome }: NamespaceResult): boolean {
  return ['deleted', 'forced', 'recreated'].includes(outcome);
}
