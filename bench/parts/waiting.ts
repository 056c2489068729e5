import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from '../bench.ts';
import type { Waiting } from '../results.ts';
import { startCommand } from '../run-command.ts';
import { countSince, markNow } from '../server-counters.ts';

/** Start, the first reads and the look at who is in the namespace are over by then. */
const SKIPPED_SECONDS = 5;

/** What waiting costs the API server while a watch works: both tools on the same namespace. */
export async function measureWaiting(
  bench: Bench,
  namespace: string,
  seconds: number,
): Promise<Waiting> {
  const { tools, kubeconfig, plane } = bench;
  bench.say(`waiting: ${seconds} s`);
  const mark = await markNow(plane);
  const startedAt = Date.now();
  // Longer than anybody looks on: no look for an explanation comes in between.
  const waiters = [
    await startCommand(tools.gate(kubeconfig, [namespace, '--timeout', '30m'])),
    await startCommand(
      tools.kubectl(kubeconfig, [
        'wait',
        '--for=delete',
        `namespace/${namespace}`,
        '--timeout=30m',
      ]),
    ),
  ];
  await sleep((SKIPPED_SECONDS + seconds) * 1_000);
  const until = Date.now();
  for (const waiter of waiters) waiter.process.kill('SIGKILL');
  await Promise.all(waiters.map(({ ended }) => ended));
  const { requests } = await countSince(plane, mark);
  const within = requests.filter(
    ({ at }) => at >= startedAt + SKIPPED_SECONDS * 1_000 && at < until,
  );
  const byKubectl = within.filter(({ userAgent }) => userAgent.startsWith('kubectl/')).length;
  return {
    seconds,
    skippedSeconds: SKIPPED_SECONDS,
    requests: { gate: within.length - byKubectl, 'kubectl-wait': byKubectl },
  };
}
