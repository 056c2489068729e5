import { type Bench, runAlternating, summarize } from '../bench.ts';
import { mustExplain } from '../explanation.ts';
import type { SweepSize } from '../results.ts';
import { FINALIZER } from '../situations.ts';
import { oneGet } from '../tools.ts';

const RUNS = 3;

/** Every namespace that is stuck, asked about in one run; then the first of them alone. */
export async function measureSweep(
  bench: Bench,
  namespaces: readonly string[],
  objects: number,
  { loop }: { loop: boolean },
): Promise<SweepSize> {
  const { tools, kubeconfig } = bench;
  bench.say(`sweep: ${namespaces.length} namespaces, ${objects} objects in each`);
  const ask = (names: readonly string[]) =>
    tools.gate(kubeconfig, [...names, '--now', '--format', 'json']);
  const runs = await runAlternating(bench, {
    gate: { command: ask(namespaces), runs: RUNS },
    alone: { command: ask(namespaces.slice(0, 1)), runs: RUNS },
    // Minutes long: one run has to do.
    loop: {
      command: tools.shell(kubeconfig, namespaces.map(oneGet).join('; ')),
      runs: loop ? 1 : 0,
    },
  });
  for (const { ended } of [...runs.gate, ...runs.alone]) mustExplain(ended, FINALIZER);
  return {
    namespaces: namespaces.length,
    objects,
    gate: summarize(runs.gate),
    alone: summarize(runs.alone),
    ...(loop ? { loop: summarize(runs.loop) } : {}),
  };
}
