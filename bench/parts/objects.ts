import { withBareClient } from '../bare-command.ts';
import { type Bench, type Run, runAlternating, summarize } from '../bench.ts';
import type { Bulk } from '../results.ts';

const RUNS = 5;

/** The gate against a program that reads the same pages and does nothing with them. */
export async function measureBulk(
  bench: Bench,
  namespace: string,
  small: string,
  objects: number,
): Promise<Bulk> {
  bench.say(`objects: ${objects}, against a bare client`);
  return withBareClient(bench, namespace, small, async ({ command: bare, explained }) => {
    const gate = bench.tools.gate(bench.kubeconfig, [namespace, '--now', '--format', 'json']);
    const runs = await runAlternating(bench, {
      gate: { command: gate, runs: RUNS },
      bareClient: { command: bare, runs: RUNS },
    });
    return {
      objects,
      pages: pagesOf(runs.bareClient),
      gate: summarize(runs.gate),
      bareClient: summarize(runs.bareClient),
      reportBytes: Buffer.byteLength(explained.stdout),
    };
  });
}

function pagesOf(runs: readonly Run[]): number {
  for (const { ended } of runs) {
    if (ended.exitCode !== 0) throw new Error(`the bare client failed: ${ended.stderr}`);
  }
  return Number(runs[0]?.ended.stdout ?? 0);
}
