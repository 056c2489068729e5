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

describe('the workflow run', () => {
  const PAGE = '/octo-org/shop/actions/runs/';

  test.each([
    { what: 'on GitHub', env: ENV, url: `https://github.com${PAGE}9001/attempts/2` },
    {
      what: 'on GitHub Enterprise Server',
      env: GHES,
      url: `https://ghes.example${PAGE}9001/attempts/2`,
    },
    {
      what: 'on Gitea 1.26',
      env: GITEA,
      version: '1.26.0',
      url: `https://gitea.example/git${PAGE}9001`,
    },
    {
      what: 'on Gitea 1.27',
      env: GITEA,
      version: '1.27.3+dev-8',
      url: `https://gitea.example/git${PAGE}9001`,
    },
    // Later versions redirect it, earlier ones do not look at the query.
    {
      what: 'on Gitea 1.25',
      env: GITEA,
      version: '1.25.9',
      url: `https://gitea.example/git${PAGE}812?by_index=1`,
    },
    {
      what: 'on Gitea of no version',
      env: GITEA,
      url: `https://gitea.example/git${PAGE}812?by_index=1`,
    },
    { what: 'on Forgejo', env: FORGEJO, url: `https://forgejo.example${PAGE}812` },
    { what: 'that has no number', env: { ...GITEA, GITHUB_RUN_NUMBER: '' }, url: undefined },
    { what: 'that has no id', env: { ...ENV, GITHUB_RUN_ID: '1) [x](http://h' }, url: undefined },
    {
      what: 'of a Gitea that does not say where',
      env: { ...GITEA, GITHUB_SERVER_URL: '' },
      url: undefined,
    },
  ])('$what has its page', ({ env, version, url }) => {
    expect(runUrl(run(env), version)).toBe(url);
  });

  test.each([
    { env: ENV, name: 'GitHub', hasSummary: true },
    { env: { ...ENV, GITHUB_STEP_SUMMARY: undefined }, name: 'GitHub', hasSummary: false },
    { env: GHES, name: 'GitHub', hasSummary: true },
    { env: GITEA, name: 'Gitea', hasSummary: false },
    { env: FORGEJO, name: 'Forgejo', hasSummary: false },
  ])('knows its host: $name, $hasSummary', ({ env, name, hasSummary }) => {
    expect(run(env).host).toMatchObject({ name, hasSummary });
  });

  test.each([
    { what: 'outside of a workflow', env: {} },
    { what: 'without an event', env: { ...ENV, GITHUB_EVENT_NAME: '' } },
    { what: 'without a repository', env: { ...ENV, GITHUB_REPOSITORY: 'nonsense' } },
  ])('is none $what', ({ env }) => {
    expect(readWorkflowRun(env, '')).toBeUndefined();
  });

  test.each([
    { what: 'a job', env: ENV, matrix: '', where: 'preview / teardown' },
    { what: 'no matrix', env: ENV, matrix: 'null', where: 'preview / teardown' },
    {
      what: 'what is not evaluated',
      env: ENV,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of a workflow
      matrix: '${{ toJSON(matrix) }}',
      where: 'preview / teardown',
    },
    {
      what: 'a matrix',
      env: ENV,
      matrix: '{\n  "zone": "eu",\n  "k8s": 1.36\n}',
      where: 'preview / teardown (1.36, eu)',
    },
    {
      what: 'a workflow without a name',
      env: { ...ENV, GITHUB_WORKFLOW: '.github/workflows/preview.yml' },
      matrix: '',
      where: 'preview.yml / teardown',
    },
  ])('says where it is, with $what', ({ env, matrix, where }) => {
    expect(run(env, matrix)).toMatchObject({ where, label: 'run 812, attempt 2' });
  });

  test('reads the payload of the event and when the job began, and does without', async () => {
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
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('the key of the comment', () => {
  const key = (env: Record<string, string>, matrix = '', given = ''): string =>
    commentKey(given, run({ ...ENV, ...env }, matrix));

  test('is 16 hexadecimal characters, whatever goes in', () => {
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
  ])('with another: $what; the same: $isSame', ({ other, isSame }) => {
    expect(other === key({})).toBe(isSame);
  });

  test('is nothing but the input, where it is given', () => {
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

describe('what helps a token that may not write', () => {
  const refused = (message: string, more: Partial<ApiFailure> = {}): ApiFailure => ({
    kind: 'forbidden',
    status: 403,
    message: `403 ${message}`,
    ...more,
  });
  const LINES = ['permissions:', '  pull-requests: write'];

  test.each<{
    who: string;
    env: Record<string, string>;
    token?: string;
    failure: ApiFailure;
    says: RegExp;
    fix?: string[];
  }>([
    {
      who: "GitHub's own",
      env: ENV,
      token: 'ghs_x',
      failure: refused('Resource not accessible by integration'),
      says: /lacks the permission "pull-requests: write"; add these two lines to the job:$/,
      fix: LINES,
    },
    {
      who: 'fine-grained',
      env: ENV,
      failure: refused('Resource not accessible by personal access token'),
      says: /fine-grained token needs .*"Pull requests: Read and write"/,
    },
    {
      who: 'fine-grained, by its prefix',
      env: GHES,
      token: 'github_pat_x',
      failure: refused('Not Found', { kind: 'not-found', status: 404 }),
      says: /fine-grained token/,
    },
    {
      who: 'classic, by what the host says',
      env: ENV,
      failure: refused('Must have rights', { scopes: 'read:org' }),
      says: /needs the scope "repo" \("public_repo" .*\); it has: read:org\.$/,
    },
    {
      who: 'classic, by its prefix',
      env: ENV,
      token: 'ghp_x',
      failure: refused('x'),
      says: /needs the scope "repo"/,
    },
    {
      who: "an app's user",
      env: ENV,
      token: 'ghu_x',
      failure: refused('x'),
      says: /The app that the token is of/,
    },
    {
      who: "Gitea's own",
      env: GITEA,
      failure: refused('user should have a permission to write'),
      says: /add these two lines to the job, within what the settings of the repository allow:$/,
      fix: LINES,
    },
    {
      who: "a person's on Gitea",
      env: GITEA,
      failure: refused(
        'token does not have at least one of required scope(s), required=[write:issue]',
      ),
      says: /scopes "write:issue" and "read:repository"\.$/,
    },
    {
      who: "Forgejo's own",
      env: FORGEJO,
      failure: refused('no'),
      says: /give another with the scopes/,
    },
  ])('$who', ({ env, token = 'x', failure, says, fix }) => {
    const trouble = commentTrouble('could not write', failure, run(env), token);
    expect(trouble).toMatchObject({
      level: 'warning',
      message: expect.stringMatching(says),
      fix: fix ?? [],
    });
  });

  test.each([
    { env: GITEA, message: '423 octo-org/shop is archived', says: /archived: nobody can comment/ },
    { env: ENV, message: '403 Repository was archived so is read-only.', says: /archived: nobody/ },
    {
      env: ENV,
      message: '403 Unable to create comment because issue is locked.',
      says: /unlock it/,
    },
    { env: GITEA, message: '403 You cannot comment on a locked issue.', says: /unlock it/ },
  ])('nothing: $message', ({ env, message, says }) => {
    const failure: ApiFailure = { kind: 'forbidden', message };
    expect(commentTrouble('x', failure, run(env), 'x')?.message).toMatch(says);
  });

  test.each([
    { env: ENV, place: 'job summary' },
    { env: GITEA, place: 'step log' },
    { env: FORGEJO, place: 'step log' },
    { env: { ...ENV, GITHUB_STEP_SUMMARY: '' }, place: 'step log' },
  ])('nothing names a place or a host that is not there: $place', ({ env, place }) => {
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
        const trouble = commentTrouble('x', { kind, message: 'y' }, given, 't');
        const text = [trouble?.message, ...(trouble?.fix ?? [])].join('\n');
        if (place === 'step log') expect(text).not.toContain('summary');
        if (hostName !== 'GitHub') expect(text).not.toContain('GitHub');
        if (kind === 'network') expect(text).toContain(place);
      }
    }
  });
});
