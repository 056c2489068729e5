import { type Bench, runAlternating, summarize } from '../bench.ts';
import { mustExplain } from '../explanation.ts';
import type { GrowthPoint } from '../results.ts';
import { FINALIZER } from '../situations.ts';

const RUNS = 3;

/** What one more explanation costs at this size. */
export async function measurePoint(
  bench: Bench,
  at: number,
  namespaces: readonly string[],
): Promise<GrowthPoint> {
  bench.say(`growth: ${at}, ${namespaces.length} namespaces`);
  const args = [...namespaces, '--now', '--format', 'json'];
  const command = bench.tools.gate(bench.kubeconfig, args);
  const { gate } = await runAlternating(bench, { gate: { command, runs: RUNS } });
  for (const { ended } of gate) mustExplain(ended, FINALIZER);
  const { wallMs, requests, memory } = summarize(gate);
  return {
    at,
    wallMs,
    requests,
    ...(memory === undefined ? {} : { memoryMiB: memory.largestMiB }),
  };
}
