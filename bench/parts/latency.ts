import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, Ref } from '../../test/cluster/client.ts';
import { type Bench, peakOf } from '../bench.ts';
import { type Latency, type PeakMemory, WAITERS, type Waiter } from '../results.ts';
import { type Command, startCommand } from '../run-command.ts';
import { countSince, markNow } from '../server-counters.ts';
import { createReleasable, release } from '../situations.ts';
import { median } from '../statistics.ts';
import { watchDeletions } from '../watch-deletions.ts';

/** Everybody has started and watches by then. */
const SETTLED_MS = 2_000;

interface Round {
  latencyMs: number;
  requests: number;
  memory: PeakMemory | undefined;
}

/** How long after the end of a namespace each tool ends, in turns. */
export async function measureLatency(bench: Bench, rounds: number): Promise<Latency> {
  const { tools, kubeconfig, plane } = bench;
  bench.say(`latency: ${rounds} rounds`);
  const commands: Record<Waiter, (name: string) => Command> = {
    gate: (name) => tools.gate(kubeconfig, [name, '--timeout', '2m']),
    'kubectl-wait': (name) =>
      tools.kubectl(kubeconfig, ['wait', '--for=delete', `namespace/${name}`, '--timeout=2m']),
    'kubectl-delete': (name) => tools.kubectl(kubeconfig, ['delete', 'namespace', name, '--wait']),
  };
  const seen: Record<Waiter, Round[]> = { gate: [], 'kubectl-wait': [], 'kubectl-delete': [] };
  for (let round = 0; round < rounds; round++) {
    for (const waiter of WAITERS) {
      const name = `bench-ends-${waiter}-${round}`;
      const ref = await createReleasable(plane.admin, name);
      seen[waiter].push(await oneRound(bench, plane.admin, ref, commands[waiter](name)));
    }
  }
  const ofTool = (waiter: Waiter): Latency['tools'][Waiter] => {
    const memory = peakOf(seen[waiter].map((each) => each.memory));
    return {
      latenciesMs: seen[waiter].map(({ latencyMs }) => Math.round(latencyMs * 10) / 10),
      requests: median(seen[waiter].map(({ requests }) => requests)),
      ...(memory === undefined ? {} : { memory }),
    };
  };
  return {
    tools: {
      gate: ofTool('gate'),
      'kubectl-wait': ofTool('kubectl-wait'),
      'kubectl-delete': ofTool('kubectl-delete'),
    },
  };
}

async function oneRound(bench: Bench, admin: Client, ref: Ref, command: Command): Promise<Round> {
  const mark = await markNow(bench.plane);
  const deletion = await watchDeletions(bench.plane, ref.name);
  try {
    const started = await startCommand(command);
    await sleep(SETTLED_MS);
    if (started.process.exitCode !== null) {
      const { stdout, stderr } = await started.ended;
      throw new Error(`${command.args.join(' ')} did not wait: ${stdout}${stderr}`);
    }
    await release(admin, ref);
    const [deletedAt, ended] = await Promise.all([deletion.seen, started.ended]);
    if (ended.exitCode !== 0) {
      throw new Error(`${command.args.join(' ')} failed: ${ended.stdout}${ended.stderr}`);
    }
    const { requests } = await countSince(bench.plane, mark);
    return {
      latencyMs: ended.endedAt - deletedAt,
      requests: requests.length,
      memory: ended.memory,
    };
  } finally {
    deletion.close();
  }
}
