import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN_TOKEN, type ApiServer, startApiServer } from '../stub/api-server.ts';
import { readRecording } from '../stub/recordings.ts';
import { runStep } from '../stub/runner.ts';
import { runTerminal } from '../stub/terminal.ts';
import { annotations, Bench, misdeeds, mutations, NAME } from './bench.ts';

/** What people and runners give by mistake: one sentence each, and the exit that was promised. Unit tests have the rest. */

const bench = new Bench();
let server: ApiServer;
let kubeconfig = '';
beforeAll(async () => {
  server = await startApiServer({ recording: readRecording('S4') });
  kubeconfig = bench.kubeconfig({ server: server.url, user: { token: ADMIN_TOKEN } });
});
afterAll(async () => {
  await server.close();
  bench.remove();
});

type Variables = Record<string, string | undefined>;

const file = (content: string) => () => ({ kubeconfig: bench.file(content) });
/** Each line ten times the one before. */
const BOMB = Array.from('abcdefghij', (name, at) => {
  const item = at === 0 ? 'x' : `*${'abcdefghij'[at - 1]}`;
  return `${name}: &${name} [${Array(10).fill(item).join(',')}]\n`;
}).join('');

describe.concurrent('the action', () => {
  test.each<[what: string, inputs: () => Record<string, string>, says: RegExp, env?: Variables]>([
    [
      'a namespace that runs commands',
      () => ({ namespace: 'x;::set-env name=A::b' }),
      /no namespace name/,
    ],
    ['a whole file as namespace', () => ({ namespace: 'x'.repeat(100_000) }), /entry "x{79}…"/],
    ['a folder as kubeconfig', () => ({ kubeconfig: tmpdir() }), /it is a folder/],
    ['a device as kubeconfig', () => ({ kubeconfig: '/dev/zero' }), /is a device or a pipe/],
    ['a pipe as kubeconfig', () => ({ kubeconfig: bench.pipe() }), /is a device or a pipe/],
    ['a file of more than 10 MB', file('x'.repeat(10 * 1024 * 1024 + 1)), /is larger than 10 MB/],
    ['YAML that grows', file(BOMB), /found no cluster|not valid YAML|no current-context/],
    ['a YAML tag that runs code', file('a: !!js/function "function(){}"\n'), /not valid YAML/],
    [
      'the variables of a pod without its files',
      () => ({ kubeconfig: '' }),
      /found no cluster to talk to: .*no service account of a pod was found/,
      { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' },
    ],
  ])('does not begin with %s', async (_, inputs, says, env = {}) => {
    const run = await runStep({ inputs: { namespace: NAME, kubeconfig, ...inputs() }, env });
    expect(annotations(run)).toEqual([expect.stringMatching(says)]);
    expect(run.exitCode).toBe(1);
    expect(run.outputs['outcome']).toBe('error');
    expect(misdeeds(run)).toEqual([]);
    expect(run.summary).toMatch(/^### 🔴 The teardown gate could not work\n/);
  });

  const event = (name: string, text: string) => () => ({
    GITHUB_EVENT_NAME: name,
    GITHUB_EVENT_PATH: bench.file(text),
  });
  test.each<[what: string, env: () => Variables, says: RegExp]>([
    [
      'GITHUB_OUTPUT does not exist',
      () => ({ GITHUB_OUTPUT: '/nonexistent/output' }),
      /could not set the outputs of this step: .*\/nonexistent\/output/,
    ],
    [
      'GITHUB_STEP_SUMMARY is a folder',
      () => ({ GITHUB_STEP_SUMMARY: bench.folder }),
      /could not write the job summary: .*EISDIR/,
    ],
    [
      'there is no folder for temporary files at all',
      () => ({ RUNNER_TEMP: '/nonexistent/a', TMPDIR: '/dev/null/nonexistent' }),
      /could not write .*report\.json: .*give another folder as "report-dir"/,
    ],
    ['HOME is not set', () => ({ HOME: undefined }), /never-existed/],
    ['the event is garbage', event('issue_comment', '{"issue":'), /no pull request comment/],
    [
      'the event has other types than it should',
      event('workflow_run', '{"workflow_run":{"pull_requests":"x","head_sha":7}}'),
      /no pull request comment/,
    ],
    [
      'the event is 40 MB long',
      event('pull_request', `{"pull_request":{"body":"${'x'.repeat(40_000_000)}"}}`),
      /no pull request comment/,
    ],
    [
      'the run has no numbers',
      () => ({ GITHUB_RUN_ID: '../..', GITHUB_RUN_ATTEMPT: 'x', GITHUB_RUN_NUMBER: '<b>' }),
      /never-existed/,
    ],
  ])('does its work although %s', async (_, env, says) => {
    const given = { comment: 'always', 'github-token': 'token-for-nobody', kubeconfig };
    const run = await runStep({ inputs: { namespace: 'never-existed', ...given }, env: env() });
    const isOutputLost = run.outputs['outcome'] === undefined;
    const expected = isOutputLost ? /^output "[a-z-]+" is not set$/ : /^$/;
    expect(run.stdout).toMatch(says);
    expect(run.exitCode, run.stdout).toBe(0);
    expect(annotations(run, 'error')).toEqual([]);
    expect(misdeeds(run).filter((line) => !expected.test(line))).toEqual([]);
    expect(mutations(server)).toEqual([]);
  });
});

describe.concurrent('the terminal', () => {
  test.each<[what: string, args: () => string[], says: RegExp, exitCode: number]>([
    [
      'an option that does not exist',
      () => ['demo', '--tiemout', '5m'],
      /unknown option --tiemout/,
      3,
    ],
    ['no namespace', () => ['--now'], /"namespace" and "selector" are both empty/, 3],
    [
      'a kubeconfig that is not there',
      () => ['demo', '--kubeconfig', '/nonexistent/config'],
      /found no cluster to talk to: \/nonexistent\/config does not exist/,
      2,
    ],
    [
      'a server that nobody listens on',
      () => ['demo', '--kubeconfig', bench.kubeconfig({ server: 'http://127.0.0.1:9' })],
      /cannot get namespace "demo" on http:\/\/127\.0\.0\.1:9: connection refused/,
      2,
    ],
    [
      'a folder for reports that cannot be written',
      () => ['never-existed', '--kubeconfig', kubeconfig, '--report-dir', '/dev/null/nope'],
      /cannot write the reports to "\/dev\/null\/nope"/,
      2,
    ],
  ])('refuses %s', async (_, args, says, exitCode) => {
    const run = await runTerminal(args());
    const errors = run.stderr.split('\n').filter((line) => line.startsWith('error: '));
    expect(errors).toEqual([expect.stringMatching(says)]);
    expect(run.exitCode).toBe(exitCode);
    expect(run.stderr).not.toMatch(/^\s+at |\binternal error: |\[object Object\]/m);
  });
});
