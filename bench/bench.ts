import type { ControlPlane } from '../test/cluster/control-plane.ts';
import type { AuditedRequest } from './audit-count.ts';
import type { Measured, PeakMemory } from './results.ts';
import { type Command, type Ended, runCommand } from './run-command.ts';
import { countSince, markNow } from './server-counters.ts';
import { median } from './statistics.ts';
import type { Tools } from './tools.ts';

/** What all parts measure with. */
export interface Bench {
  plane: ControlPlane;
  tools: Tools;
  /** Of the user that everybody is. */
  kubeconfig: string;
  say(line: string): void;
}

export interface Run {
  ended: Ended;
  requests: AuditedRequest[];
  responseBytes: number;
}

export async function runOnce(bench: Bench, command: Command): Promise<Run> {
  const mark = await markNow(bench.plane);
  const ended = await runCommand(command);
  return { ended, ...(await countSince(bench.plane, mark)) };
}

/** Tools side by side: one run of each, then the next of each, so that all see the same machine. */
export async function runAlternating<Name extends string>(
  bench: Bench,
  commands: Record<Name, { command: Command; runs: number }>,
): Promise<Record<Name, Run[]>> {
  const entries = Object.entries(commands) as [Name, { command: Command; runs: number }][];
  const runs = Object.fromEntries(entries.map(([name]) => [name, []])) as unknown as Record<
    Name,
    Run[]
  >;
  const rounds = Math.max(...entries.map(([, { runs: wanted }]) => wanted));
  for (let round = 0; round < rounds; round++) {
    for (const [name, { command, runs: wanted }] of entries) {
      if (round < wanted) runs[name].push(await runOnce(bench, command));
    }
  }
  return runs;
}

export function summarize(runs: readonly Run[]): Measured {
  const times = runs.map(({ ended }) => ended.wallMs);
  const memory = peakOf(runs.map(({ ended }) => ended.memory));
  const cpu = runs.flatMap(({ ended }) => ended.cpuMs ?? []);
  return {
    runs: runs.length,
    wallMs: Math.round(median(times)),
    fastestMs: Math.round(Math.min(...times)),
    slowestMs: Math.round(Math.max(...times)),
    requests: median(runs.map(({ requests }) => requests.length)),
    responseBytes: median(runs.map(({ responseBytes }) => responseBytes)),
    ...(memory === undefined ? {} : { memory }),
    ...(cpu.length === 0 ? {} : { cpuMs: median(cpu) }),
  };
}

/** The worst of the runs: what a machine must have. */
export function peakOf(memories: readonly (PeakMemory | undefined)[]): PeakMemory | undefined {
  const known = memories.filter((memory) => memory !== undefined);
  if (known.length === 0) return undefined;
  return {
    largestMiB: Math.max(...known.map(({ largestMiB }) => largestMiB)),
    sumMiB: Math.max(...known.map(({ sumMiB }) => sumMiB)),
  };
}
