import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { ADMIN_TOKEN, type ApiServer, startApiServer } from '../stub/api-server.ts';
import { createAuthority, issue } from '../stub/certificates.ts';
import { type FaultRule, startFaultProxy } from '../stub/fault-proxy.ts';
import { edit, notFoundNamespace, unauthorized } from '../stub/faults.ts';
import { type Github, startGithub } from '../stub/github.ts';
import { readRecording } from '../stub/recordings.ts';
import { REPOSITORY_NAME, runStep, type StepOptions, startStep } from '../stub/runner.ts';
import { commandsIn } from '../stub/runner-commands.ts';
import { runTerminal } from '../stub/terminal.ts';
import { annotations, Bench, NAME, NAMESPACE } from './bench.ts';

/** Where the comment of the shipped bundle goes, run after run. The tests mostly wait: each has a pull request of its own. */

const PULL = 5;
const bench = new Bench();
let server: ApiServer;
let github: Github;
beforeAll(async () => {
  server = await startApiServer({ recording: readRecording('S4') });
  github = await startGithub();
});
afterAll(async () => {
  await Promise.all([server.close(), github.close()]);
  bench.remove();
});

const GONE: FaultRule = {
  request: new RegExp(`^GET ${NAMESPACE}$`),
  fault: notFoundNamespace(NAME),
};
const REFUSED: FaultRule = { request: /./, fault: unauthorized };

interface Given extends Partial<StepOptions> {
  rules?: readonly FaultRule[];
  id?: number;
  pull?: number;
}

async function step({ rules = [], id = 1, pull = PULL, env, inputs, ...more }: Given) {
  const proxy = await startFaultProxy({ target: server.url, rules });
  try {
    return await runStep({
      inputs: {
        namespace: NAME,
        timeout: '1s',
        kubeconfig: bench.kubeconfig({ server: proxy.url, user: { token: ADMIN_TOKEN } }),
        ...inputs,
      },
      event: { name: 'pull_request', payload: pullRequest(REPOSITORY_NAME, pull) },
      githubApiUrl: github.url,
      token: github.token,
      env: { GITHUB_RUN_ID: String(id), ...env },
      ...more,
    });
  } finally {
    await proxy.close();
  }
}

function pullRequest(head: string, number = PULL): JsonObject {
  return { pull_request: { number, head: { repo: { full_name: head } } } };
}

function headline(pull: number): string {
  const [only, ...more] = github.commentsOn(pull);
  expect(more).toEqual([]);
  return /^### (.*)$/m.exec(only?.body ?? '')?.[1] ?? '';
}

test('the comment of a job turns green with its next run, and the one of another job stays red', async () => {
  const job = (name: string, id: number, rules: readonly FaultRule[]) =>
    step({ pull: 1, id, env: { GITHUB_JOB: name }, rules, matrix: { zone: 'eu' } });
  await Promise.all([job('a', 1, []), job('b', 1, [])]);
  await job('a', 2, [GONE]);
  const told = github.commentsOn(1).map(({ body }) => /^### (\S+)/m.exec(body)?.[1]);
  expect(told.sort()).toEqual(['✅', '🔴']);
});

describe.concurrent('a gate that cannot work', () => {
  test('is reported in summary and comment, also to a host whose authority only the system knows', async () => {
    const authority = await createAuthority('company');
    const host = await startFaultProxy({ target: github.url, tls: await issue(authority) });
    const env = { SSL_CERT_FILE: bench.file(authority.cert) };
    await step({ pull: 7, id: 1, rules: [GONE], inputs: { comment: 'always' } });
    expect(headline(7)).toContain('✅');
    const run = await step({ pull: 7, id: 2, rules: [REFUSED], githubApiUrl: host.url, env });
    await host.close();
    expect(headline(7)).toContain('🔴 The teardown gate could not work');
    expect(run.summary).toContain('401');
    expect(run.outputs).toMatchObject({
      outcome: 'error',
      'comment-url': expect.stringContaining('#'),
    });
  });

  test('in a run for a fork has a hint about missing secrets', async () => {
    const run = await step({
      inputs: { kubeconfig: '' },
      event: { name: 'pull_request', payload: pullRequest('somebody/shop', 9) },
    });
    const hint = 'A run for a fork gets no secrets';
    expect(run.stdout).toContain(hint);
    expect(run.summary.replace(/&#\d+;/g, '')).toContain(hint);
  });
});

describe.concurrent('a host that does not answer', () => {
  test('changes neither outcome nor outputs, and is a warning', async () => {
    const silent = await startGithub();
    silent.fail({ request: /./, answer: 'hang' });
    const started = await startStep({
      inputs: {
        namespace: NAME,
        timeout: '1s',
        kubeconfig: bench.kubeconfig({ server: server.url, user: { token: ADMIN_TOKEN } }),
      },
      event: { name: 'pull_request', payload: pullRequest(REPOSITORY_NAME) },
      githubApiUrl: silent.url,
      token: silent.token,
    });
    silent.onRequest = () => {
      silent.onRequest = undefined;
      started.send('SIGKILL');
    };
    const killed = await started.ended;
    expect(killed.outputs).toMatchObject({ outcome: 'stuck', 'comment-url': '' });
    expect(killed.summary).toContain('is stuck');
    silent.onRequest = undefined;
    const run = await step({ githubApiUrl: silent.url });
    expect(run.outputs['outcome']).toBe('stuck');
    expect(annotations(run, 'warning')).toEqual([
      expect.stringMatching(/no answer.*The step log has the report\.$/),
    ]);
    await silent.close();
  });
});

describe.concurrent('in a step of a workflow, the terminal prints no command for the runner', () => {
  const HOSTILE =
    'x\n::error::a\r::stop-commands::b\n##[error]c ##[add-mask]d\u2028::set-output name=e::f';
  const hostile: FaultRule = {
    request: new RegExp(`^GET ${NAMESPACE}(\\?|$)`),
    fault: edit((namespace) => {
      const status = namespace['status'] as { conditions: JsonObject[] };
      for (const condition of status.conditions) condition['message'] = HOSTILE;
    }),
  };

  test.each(['text', 'markdown', 'json'])('%s', async (format) => {
    const proxy = await startFaultProxy({ target: server.url, rules: [hostile] });
    try {
      const kubeconfig = bench.kubeconfig({ server: proxy.url, user: { token: ADMIN_TOKEN } });
      const args = [NAME, '--timeout', '2s', '--kubeconfig', kubeconfig, '--format', format];
      const run = await runTerminal(args, { DEBUG: '1' });
      expect(run.stdout.length).toBeGreaterThan(100);
      expect(commandsIn(`${run.stdout}\n${run.stderr}`)).toEqual([]);
      if (format === 'json') expect(JSON.stringify(JSON.parse(run.stdout))).toContain('##[error]c');
    } finally {
      await proxy.close();
    }
  });
});
