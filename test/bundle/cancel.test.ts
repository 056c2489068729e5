import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiServer, startApiServer } from '../stub/api-server.ts';
import { type FaultProxy, type FaultRule, startFaultProxy } from '../stub/fault-proxy.ts';
import { blackHole, edit } from '../stub/faults.ts';
import { type Github, startGithub } from '../stub/github.ts';
import { startAll } from '../stub/parallel.ts';
import { plantedSecret } from '../stub/planted.ts';
import { readRecording } from '../stub/recordings.ts';
import { type RunningStep, type StepRun, startStep } from '../stub/runner.ts';
import { Bench, misdeeds, mutations, NAME, NAMESPACE } from './bench.ts';

const AT_ONCE = 5;

interface Phase {
  phase: string;
  rules?: readonly FaultRule[];
  inputs?: Readonly<Record<string, string>>;
  /** A credential plugin in place of the token. */
  plugin?: boolean;
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
    phase: 'connecting, with a plugin that waits for somebody',
    plugin: true,
    // A shell creates the file before it writes.
    reached: () => until(() => existsSync(PID_FILE) && statSync(PID_FILE).size > 0),
    outcome: 'cancelled',
  },
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
  {
    phase: 'reading lists for the diagnosis',
    rules: [{ request: LISTS, fault: blackHole }],
    reached: asked(new RegExp(`namespaces/${NAME}/configmaps\\?`)),
    outcome: 'cancelled',
  },
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
/** Of the plugin that was started, and of what it started. */
const pids = (): number[] => readFileSync(PID_FILE, 'utf8').trim().split(/\s+/).map(Number);
const PID_FILE = join(bench.folder, 'pids');

interface Cancelled {
  run: StepRun;
  server: ApiServer;
  /** Requests that came after the signal and would change something. */
  late: string[];
}

async function cancel(row: (typeof ROWS)[number]): Promise<Cancelled> {
  const token = plantedSecret();
  const server = await startApiServer({
    recording: readRecording('S4'),
    token,
  });
  const proxy = await startFaultProxy({ target: server.url, rules: row.rules ?? [] });
  const github = await startGithub();
  if (row.hangingGithub === true) github.fail({ request: /./, answer: 'hang' });
  try {
    const step = await startStep({
      inputs: {
        namespace: NAME,
        timeout: '1s',
        kubeconfig: bench.kubeconfig({
          server: proxy.url,
          user: row.plugin === true ? hangingPlugin() : { token },
        }),
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

/** Starts a helper of its own, as wrappers do. */
function hangingPlugin(): { exec: Record<string, string> } {
  const command = bench.file(`#!/bin/sh\nsleep 600 &\necho "$! $$" >> ${PID_FILE}\nwait\n`);
  chmodSync(command, 0o700);
  return {
    exec: {
      apiVersion: 'client.authentication.k8s.io/v1',
      command,
      interactiveMode: 'Never',
    },
  };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 20));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie that nobody has waited for has ended as well.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

let results: Promise<Cancelled>[];
beforeAll(() => {
  results = startAll(ROWS, AT_ONCE, cancel);
});
afterAll(async () => {
  await Promise.allSettled(results);
  bench.remove();
});

describe('a run that is cancelled', () => {
  test.each(ROWS.map((row, index) => ({ ...row, index })))(
    'by $signal while $phase',
    async ({ index, outcome, phase }) => {
      const { run, server, late } = await (results[index] as Promise<Cancelled>);

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
    },
  );

  test('leaves no process behind', async () => {
    await Promise.allSettled(results);

    expect(pids()).toHaveLength(2);
    expect(pids().filter(isAlive)).toEqual([]);
  });

  test('ends with the second signal if it cannot write its summary', async () => {
    const server = await startApiServer({ recording: readRecording('S4') });
    const pipe = join(bench.folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const step = await startStep({
      inputs: {
        namespace: NAME,
        kubeconfig: await server.kubeconfig(join(bench.folder, 'again')),
      },
      env: { GITHUB_STEP_SUMMARY: pipe },
    });
    await server.mutate(({ watches }) => watches.untilOpen());
    step.send('SIGINT');
    await step.says(/cancelled/);
    // Nobody reads the pipe: writing to it never ends.
    await new Promise((resolve) => setTimeout(resolve, 500));
    step.send('SIGTERM');
    const run = await step.ended;
    await server.close();

    expect(run.signal).toBe('SIGTERM');
  });
});
