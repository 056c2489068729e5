import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN_TOKEN, type ApiServer, startApiServer } from '../stub/api-server.ts';
import { startAll } from '../stub/parallel.ts';
import { readRecording } from '../stub/recordings.ts';
import { runStep, type StepRun } from '../stub/runner.ts';
import { runTerminal, type TerminalRun } from '../stub/terminal.ts';
import { ARGUMENTS } from './bad-input/arguments.ts';
import type { ActionCase, Bad } from './bad-input/case.ts';
import { ENVIRONMENT } from './bad-input/environment.ts';
import { INPUTS } from './bad-input/inputs.ts';
import { KUBECONFIGS } from './bad-input/kubeconfigs.ts';
import { annotations, Bench, misdeeds, mutations, NAME } from './bench.ts';

/** What people and runners give the gate by mistake: one sentence each, and the exit that was promised. */

const ACTION: readonly ActionCase[] = [...INPUTS, ...KUBECONFIGS, ...ENVIRONMENT];
const AT_ONCE = 4;

const bench = new Bench();
let server: ApiServer;
let steps: Promise<StepRun>[];
let runs: Promise<TerminalRun>[];
beforeAll(async () => {
  server = await startApiServer({ recording: readRecording('S4') });
  const kubeconfig = bench.kubeconfig({ server: server.url, user: { token: ADMIN_TOKEN } });
  const bad: Bad = { bench, server, kubeconfig };
  steps = startAll(ACTION, AT_ONCE, ({ inputs, env }) =>
    runStep({
      inputs: { namespace: NAME, timeout: '1s', ...inputs?.(bad) },
      env: { ...env?.(bad) },
    }),
  );
  runs = startAll(ARGUMENTS, AT_ONCE, ({ args, env }) => runTerminal(args(bad), env?.(bad)));
});
afterAll(async () => {
  await Promise.allSettled([...steps, ...runs]);
  await server.close();
  bench.remove();
});

describe('the action', () => {
  const cases = ACTION.map((given, index) => ({ ...given, index }));

  test.each(cases.filter(({ works }) => works !== true))(
    'does not begin with $what',
    async ({ says, index }) => {
      const run = await (steps[index] as Promise<StepRun>);

      expect(annotations(run)).toEqual([expect.stringMatching(says)]);
      expect(run.exitCode).toBe(1);
      expect(run.outputs['outcome']).toBe('error');
      expect(misdeeds(run)).toEqual([]);
      expect(run.summary).toMatch(/^### 🔴 The teardown gate could not work\n/);
    },
  );

  test.each(cases.filter(({ works }) => works === true))(
    'does its work although $what',
    async ({ says, index }) => {
      const run = await (steps[index] as Promise<StepRun>);
      const isOutputLost = run.outputs['outcome'] === undefined;
      const expected = isOutputLost ? /^output "[a-z-]+" is not set$/ : /^$/;

      expect(run.stdout).toMatch(says);
      expect(run.exitCode, run.stdout).toBe(0);
      expect(annotations(run, 'error')).toEqual([]);
      expect(misdeeds(run).filter((line) => !expected.test(line))).toEqual([]);
    },
  );

  test('changed nothing in the cluster', async () => {
    await Promise.allSettled(steps);
    expect(mutations(server)).toEqual([]);
  });
});

describe('the terminal', () => {
  test.each(ARGUMENTS.map((given, index) => ({ ...given, index })))(
    'refuses $what',
    async ({ says, exitCode, index }) => {
      const run = await (runs[index] as Promise<TerminalRun>);
      const errors = run.stderr.split('\n').filter((line) => line.startsWith('error: '));

      expect(errors).toEqual([expect.stringMatching(says)]);
      expect(run.exitCode).toBe(exitCode);
      expect(run.stderr).not.toMatch(/^\s+at |\binternal error: |\[object Object\]/m);
    },
  );
});
