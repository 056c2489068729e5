import { execFileSync, spawn } from 'node:child_process';
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/base/json.ts';
import { commentTrouble } from '../../src/publish/advice.ts';
import type { ApiFailure } from '../../src/publish/host-api.ts';
import {
  commentKey,
  readOnlyReason,
  readWorkflowRun,
  runUrl,
  secretsHint,
  type WorkflowRun,
} from '../../src/publish/workflow-run.ts';
import { expectPairs } from '../stub/pairs.ts';

const ENV = {
  GITHUB_REPOSITORY: 'octo-org/shop',
  GITHUB_EVENT_NAME: 'pull_request',
  GITHUB_SERVER_URL: 'https://github.com',
  GITHUB_API_URL: 'https://api.github.com',
  GITHUB_RUN_ID: '9001',
  GITHUB_RUN_NUMBER: '812',
  GITHUB_RUN_ATTEMPT: '2',
  GITHUB_WORKFLOW: 'preview',
  GITHUB_JOB: 'teardown',
  GITHUB_STEP_SUMMARY: '/summary.md',
};
const GHES = {
  ...ENV,
  GITHUB_SERVER_URL: 'https://ghes.example/',
  GITHUB_API_URL: 'https://ghes.example/api/v3',
};
/** gitea.com/gitea/runner 1.0.8, act/runner/run_context.go and internal/app/run/runner.go. */
const GITEA = {
  ...ENV,
  GITEA_ACTIONS: 'true',
  GITHUB_SERVER_URL: 'https://gitea.example/git',
  GITHUB_API_URL: 'https://gitea.example/git/api/v1',
  GITHUB_GRAPHQL_URL: '',
};
/** code.forgejo.org/forgejo/runner 11, internal/app/run/runner.go. */
const FORGEJO = { ...GITEA, FORGEJO_ACTIONS: 'true', GITHUB_SERVER_URL: 'https://forgejo.example' };

function run(env: Record<string, string | undefined> = ENV, matrix = ''): WorkflowRun {
  const read = readWorkflowRun(env, matrix);
  if (read === undefined) throw new Error('no run');
  return read;
}

const HOSTS: Record<string, Record<string, string>> = { GITHUB: ENV, GHES, GITEA, FORGEJO };

describe('the workflow run', () => {
  test('has its host, the address of its page and the folder for reports', () =>
    expectPairs('workflow-runs.txt', (line) => {
      const { on, env, matrix = '' } = JSON.parse(line);
      const read = readWorkflowRun({ ...HOSTS[on], ...env }, matrix);
      if (read === undefined) return 'none';
      const { host, where, label } = read;
      const { name, hasSummary } = host;
      return { name, hasSummary, where, label, url: runUrl(read) };
    }));

  test.each([
    { what: 'github.com', env: { ...ENV }, is: 'https://api.github.com' },
    { what: 'GHES', env: { ...GHES }, is: 'https://ghes.example/api/v3' },
    { what: 'Gitea', env: { ...GITEA }, is: 'https://gitea.example/git/api/v1' },
    { what: 'Gitea of unknown address', env: { ...GITEA, GITHUB_SERVER_URL: '' }, is: '' },
  ])('$what has its own API, also if the runner does not say it', ({ env, is }) => {
    expect(run({ ...env, GITHUB_API_URL: '' }).host.apiUrl).toBe(is);
  });

  test('reads the payload of the event and the start of the job, if they exist', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'event-'));
    try {
      const path = join(folder, 'event.json');
      const read = (file: string): Pick<WorkflowRun, 'event' | 'startedAt'> =>
        run({ ...ENV, GITHUB_EVENT_PATH: file });
      await writeFile(path, '{"action":"closed"}');
      await utimes(path, new Date(), new Date(Date.now() - 60_000));
      expect(read(path).event.payload).toEqual({ action: 'closed' });
      expect(Date.now() - (read(path).startedAt ?? 0)).toBeGreaterThanOrEqual(59_000);
      // As act copies it into a container.
      await utimes(path, new Date(0), new Date(0));
      expect(read(path).startedAt).toBeUndefined();
      await writeFile(path, 'not JSON');
      expect(read(path).event.payload).toBeNull();
      expect(read(join(folder, 'none.json'))).toMatchObject({
        event: { payload: null },
        startedAt: undefined,
      });
      expect(read('').event.payload).toBeNull();
      // The writer is there so that a reader who waits for one fails instead of hanging.
      const pipe = join(folder, 'pipe');
      execFileSync('mkfifo', [pipe]);
      const writer = spawn('sh', ['-c', 'echo "{}" > "$0"', pipe], { stdio: 'ignore' });
      expect(read(pipe).event.payload).toBeNull();
      writer.kill();
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('the key of the comment', () => {
  const key = (env: Record<string, string>, matrix = '', given = ''): string =>
    commentKey(given, run({ ...ENV, ...env }, matrix));

  test('is 16 hexadecimal characters for any input', () => {
    expect(key({ GITHUB_JOB: '--> <!-- \n' })).toMatch(/^[0-9a-f]{16}$/);
    expect(key({}, '', '--> <!-- \n')).toMatch(/^[0-9a-f]{16}$/);
  });

  test.each([
    { what: 'the run', other: key({ GITHUB_RUN_ID: '1', GITHUB_RUN_ATTEMPT: '9' }), isSame: true },
    { what: 'the event', other: key({ GITHUB_EVENT_NAME: 'schedule' }), isSame: true },
    { what: 'the workflow', other: key({ GITHUB_WORKFLOW: 'sweep' }), isSame: false },
    { what: 'the job', other: key({ GITHUB_JOB: 'other' }), isSame: false },
    { what: 'the matrix', other: key({}, '{"zone":"eu"}'), isSame: false },
    { what: 'the input comment-key', other: key({}, '', 'x'), isSame: false },
  ])('with another $what is the same: $isSame', ({ other, isSame }) => {
    expect(other === key({})).toBe(isSame);
  });

  test('depends only on the input, if it is given', () => {
    expect(key({ GITHUB_JOB: 'other' }, '{"zone":"eu"}', 'x')).toBe(key({}, '', 'x'));
  });
});

const FORK: Json = { pull_request: { head: { repo: { full_name: 'fork/shop' } } } };
const OWN: Json = { pull_request: { head: { repo: { full_name: 'Octo-Org/Shop' } } } };
const GONE: Json = { pull_request: { head: { repo: null } } };

function started(env: Record<string, string>, payload: Json = {}): WorkflowRun {
  const read = run({ ...ENV, ...env });
  return { ...read, event: { ...read.event, payload } };
}

describe('a run without secrets and with a token that cannot write', () => {
  test.each([
    { what: 'a fork', run: started({}, FORK), is: 'GitHub' },
    { what: 'a fork that is gone', run: started({}, GONE), is: 'GitHub' },
    { what: 'a fork on Gitea', run: started(GITEA, FORK), is: 'Gitea' },
    { what: 'this repository', run: started({}, OWN), is: undefined },
    {
      what: 'a fork, with the target',
      run: started({ GITHUB_EVENT_NAME: 'pull_request_target' }, FORK),
      is: undefined,
    },
    {
      what: 'Dependabot',
      run: started({ GITHUB_EVENT_NAME: 'push', GITHUB_ACTOR: 'dependabot[bot]' }),
      is: 'Dependabot',
    },
    { what: 'a schedule', run: started({ GITHUB_EVENT_NAME: 'schedule' }), is: undefined },
  ])('$what: $is', ({ run: given, is }) => {
    for (const said of [readOnlyReason(given), secretsHint(given)]) {
      if (is === undefined) expect(said).toBeUndefined();
      else expect(said).toContain(is);
    }
  });
});

describe('advice for a token that may not write', () => {
  test('names the permission and the file to change', () =>
    expectPairs('comment-advice.txt', (line) => {
      const { on, ...given } = JSON.parse(line);
      const failure: ApiFailure = { kind: 'forbidden', status: 403, ...given };
      return commentTrouble(
        'could not write',
        failure,
        run(HOSTS[on]),
        'the step log has the report',
      );
    }));

  test.each([{ env: ENV }, { env: GITEA }, { env: FORGEJO }])(
    'the advice names only the place that it was given, and its host: $env',
    ({ env }) => {
      const hostName = run(env).host.name;
      const kinds = [
        'forbidden',
        'not-found',
        'unauthorized',
        'throttled',
        'conflict',
        'network',
        'timeout',
      ] as const;
      for (const kind of kinds) {
        for (const payload of [{}, FORK]) {
          const given = { ...run(env), event: { ...run(env).event, payload } };
          const trouble = commentTrouble('x', { kind, message: 'y' }, given, 'it is there');
          const text = [trouble?.message, ...(trouble?.fix ?? [])].join('\n');
          expect(text).not.toMatch(/summary|log/);
          if (hostName !== 'GitHub') expect(text).not.toContain('GitHub');
          if (kind === 'network') expect(text).toContain('It is there.');
        }
      }
    },
  );
});
