import type { Log } from '../../src/base/log.ts';
import { runGate } from '../../src/gate/gate.ts';
import type { GateDeps } from '../../src/gate/run.ts';
import { type InputName, type Inputs, readInputs } from '../../src/inputs.ts';
import type { NamespaceResult, RunResult } from '../../src/model/result.ts';
import { FakeClock } from './fake-clock.ts';
import { FakeCluster } from './fake-cluster.ts';

export const DEMO = 'preview-7';

export interface Stage {
  clock: FakeClock;
  cluster: FakeCluster;
  lines: string[];
  /** What was concluded, and after how many requests. */
  concluded: { outcome: string; requests: number }[];
  /** As the runner does when somebody cancels the job. */
  cancel: AbortController;
  inputs: (given: Partial<Record<InputName, string>>) => Inputs;
  run: (given?: Partial<Record<InputName, string>>) => Promise<RunResult>;
  /** For runs with one namespace. */
  runOne: (given?: Partial<Record<InputName, string>>) => Promise<NamespaceResult>;
}

/** A gate and a fake cluster that has these terminating namespaces. */
export function stage(...namespaces: string[]): Stage {
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock);
  for (const name of namespaces) cluster.namespace(name);
  const cancel = new AbortController();
  const lines: string[] = [];
  const concluded: Stage['concluded'] = [];
  const deps: GateDeps = {
    api: cluster,
    clock,
    log: recordTo(lines),
    signal: cancel.signal,
    gateVersion: '1.0.0',
    concluded: ({ outcome }) => void concluded.push({ outcome, requests: cluster.requests.length }),
  };
  const inputs: Stage['inputs'] = (given) => readInputs({ namespace: DEMO, ...given });
  const run: Stage['run'] = (given = {}) => clock.run(runGate(inputs(given), deps));
  const runOne: Stage['runOne'] = async (given) => {
    const { namespaces: results } = await run(given);
    const [only, ...others] = results;
    if (only === undefined || others.length > 0) throw new Error(`${results.length} results`);
    return only;
  };
  return { clock, cluster, lines, concluded, cancel, inputs, run, runOne };
}

/** A log that adds every line to `lines`, of whatever level it is, except debug. */
export function recordTo(lines: string[]): Log {
  const line = (text: string): void => {
    lines.push(text);
  };
  return {
    line,
    group: (title, more) => lines.push(title, ...more),
    notice: line,
    warning: line,
    error: line,
    debug: () => undefined,
  };
}

/** The codes of the root causes, the most important first. */
export function causes({ diagnosis }: NamespaceResult): string[] {
  return (diagnosis?.rootCauses ?? []).flatMap(
    (id) =>
      diagnosis?.findings.filter((finding) => finding.id === id).map(({ code }) => code) ?? [],
  );
}

export function events({ timeline }: NamespaceResult): string[] {
  return timeline.map(({ event }) => event);
}
