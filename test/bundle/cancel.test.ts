import { afterAll, describe, expect, test } from 'vitest';
import { type ApiServer, startApiServer } from '../stub/api-server.ts';
import { type FaultProxy, type FaultRule, startFaultProxy } from '../stub/fault-proxy.ts';
import { blackHole, edit } from '../stub/faults.ts';
import { type Github, startGithub } from '../stub/github.ts';
import { plantedSecret } from '../stub/planted.ts';
import { readRecording } from '../stub/recordings.ts';
import { type RunningStep, type StepRun, startStep } from '../stub/runner.ts';
import { Bench, misdeeds, mutations, NAME, NAMESPACE } from './bench.ts';

interface Phase {
  phase: string;
  rules?: readonly FaultRule[];
  inputs?: Readonly<Record<string, string>>;
  hangingGithub?: boolean;
  /** Resolves when the gate is in that phase. */
  reached: (at: { proxy: FaultProxy; github: Github; step: RunningStep }) => Promise<unknown>;
  outcome: 'cancelled' | 'stuck';
}

const LISTS = new RegExp(`^GET /apis?/.*/namespaces/${NAME}/[a-z]+\\?`);

function asked(pattern: RegExp): Phase['reached'] {
  return ({ proxy }) => until(() => proxy.lines.some((line) => pattern.test(line)));
}

const PHASES: readonly Phase[] = [
  {
    phase: 'reading the namespace for the first time',
    rules: [{ request: new RegExp(`^GET ${NAMESPACE}$`), fault: blackHole }],
    reached: asked(new RegExp(`^GET ${NAMESPACE}$`)),
    outcome: 'cancelled',
  },
  {
    phase: 'asking for the deletion',
    inputs: { delete: 'true' },
    rules: [
      {
        request: new RegExp(`^GET ${NAMESPACE}$`),
        fault: edit((namespace) => {
          delete (namespace['metadata'] as Record<string, unknown>)['deletionTimestamp'];
        }),
      },
      { request: /^DELETE /, fault: blackHole },
    ],
    reached: asked(/^DELETE /),
    outcome: 'cancelled',
  },
  {
    phase: 'waiting',
    reached: asked(/watch=1/),
    inputs: { timeout: '5m' },
    outcome: 'cancelled',
  },
  ...['false', 'true'].map((forecast) => ({
    phase: `reading lists for the diagnosis, or a forecast: ${forecast}`,
    rules: [{ request: LISTS, fault: blackHole }],
    inputs: { forecast },
    reached: asked(new RegExp(`namespaces/${NAME}/configmaps\\?`)),
    outcome: 'cancelled' as const,
  })),
  {
    phase: 'publishing to a GitHub that hangs',
    hangingGithub: true,
    reached: ({ github }) => until(() => github.requests.length > 0),
    outcome: 'stuck',
  },
  {
    phase: 'forcing, with the patch on its way',
    inputs: {
      'force-finalize': 'namespace',
      'force-namespaces': 'preview-*',
      'force-finalizers': 'widgets.example.com/cleanup',
      'force-orphans': 'accept',
    },
    rules: [{ request: /^PATCH (?!.*dryRun)/, fault: blackHole }],
    reached: asked(/^PATCH (?!.*dryRun)/),
    outcome: 'cancelled',
  },
];
/** Both signals have one handler: the second one is tried in one phase. */
const ROWS = PHASES.flatMap((phase) => {
  const both = phase.phase === 'waiting' ? (['SIGINT', 'SIGTERM'] as const) : (['SIGINT'] as const);
  return both.map((signal) => ({ ...phase, signal }));
});

const bench = new Bench();
afterAll(() => bench.remove());
interface Cancelled {
  run: StepRun;
  server: ApiServer;
  /** Requests that came after the signal and would change something. */
  late: string[];
}

async function cancel(row: (typeof ROWS)[number]): Promise<Cancelled> {
  const token = plantedSecret();
  const server = await startApiServer({ recording: readRecording('S4'), token });
  const proxy = await startFaultProxy({ target: server.url, rules: row.rules ?? [] });
  const github = await startGithub();
  if (row.hangingGithub === true) github.fail({ request: /./, answer: 'hang' });
  try {
    const step = await startStep({
      inputs: {
        namespace: NAME,
        timeout: '1s',
        kubeconfig: bench.kubeconfig({ server: proxy.url, user: { token } }),
        ...row.inputs,
      },
      event: { name: 'pull_request', payload: { pull_request: { number: 1 } } },
      githubApiUrl: github.url,
      token: github.token,
    });
    const early = step.ended.then((run) => {
      throw new Error(`it ended before:\n${run.stdout}${run.stderr}`);
    });
    await Promise.race([row.reached({ proxy, github, step }), early]);
    early.catch(() => undefined);
    const seen = proxy.lines.length;
    step.send(row.signal);
    const run = await step.ended;
    const late = proxy.lines.slice(seen).filter((line) => !/^GET |dryRun=All/.test(line));
    return { run, server, late };
  } finally {
    await Promise.all([proxy.close(), server.close(), github.close()]);
  }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 20));
}

describe.concurrent('a run that is cancelled', { timeout: 120_000 }, () => {
  test.each(ROWS)('by $signal while $phase', async (row) => {
    const { outcome, phase } = row;
    const { run, server, late } = await cancel(row);

    expect(run.outputs['outcome'], run.stdout).toBe(outcome);
    expect(run.exitCode).toBe(1);
    expect(late).toEqual([]);
    expect(mutations(server)).toEqual([]);
    expect(run.summary).toMatch(outcome === 'stuck' ? /stuck/ : /cancelled/i);
    expect(run.report?.outcome).toBe(outcome);
    expect(misdeeds(run)).toEqual([]);
    if (phase.startsWith('forcing')) {
      expect(run.report?.namespaces[0]?.forced?.actions).toEqual([
        expect.objectContaining({
          target: 'widgets.example.com/db',
          result: expect.stringContaining('it may have been done'),
        }),
        expect.objectContaining({ result: 'not done: the run was cancelled' }),
      ]);
    }
  });
});
