import { withBareClient } from '../bare-command.ts';
import { type Bench, runAlternating, summarize } from '../bench.ts';
import { mustExplain } from '../explanation.ts';
import type { ExplainSize } from '../results.ts';
import { countListableTypes, FINALIZER } from '../situations.ts';
import { oneGet, oneLiner } from '../tools.ts';

/** The one-liner takes half a minute with 300 CRDs: one run has to do. */
const RUNS = { gate: 5, oneGet: 3, oneLiner: 1 };

/** The whole explanation against the two commands that people look with, and against mere reading. */
export async function measureExplain(
  bench: Bench,
  namespace: string,
  small: string,
  size: { crds: number; objects: number },
): Promise<ExplainSize> {
  const { tools, kubeconfig, plane } = bench;
  bench.say(`explain: ${size.crds} CRDs, ${size.objects} objects`);
  const runs = await withBareClient(bench, namespace, small, ({ command: bare }) =>
    runAlternating(bench, {
      gate: {
        command: tools.gate(kubeconfig, [namespace, '--now', '--format', 'json']),
        runs: RUNS.gate,
      },
      'bare-client': { command: bare, runs: RUNS.gate },
      'one-get': { command: tools.shell(kubeconfig, oneGet(namespace)), runs: RUNS.oneGet },
      'one-liner': { command: tools.shell(kubeconfig, oneLiner(namespace)), runs: RUNS.oneLiner },
    }),
  );
  for (const { ended } of runs['bare-client']) {
    if (ended.exitCode !== 0) throw new Error(`the bare client failed: ${ended.stderr}`);
  }
  for (const { ended } of runs.gate) mustExplain(ended, FINALIZER);
  for (const { ended } of [...runs['one-get'], ...runs['one-liner']]) {
    // The other side has to have seen it too; its exit code is 123 when one type cannot be listed.
    if (!ended.stdout.includes('configmap/held-0')) {
      throw new Error(`kubectl did not show what hangs:\n${ended.stderr.slice(0, 2_000)}`);
    }
  }
  return {
    ...size,
    listableTypes: await countListableTypes(plane.admin),
    tools: {
      gate: summarize(runs.gate),
      'bare-client': summarize(runs['bare-client']),
      'one-get': summarize(runs['one-get']),
      'one-liner': summarize(runs['one-liner']),
    },
  };
}
