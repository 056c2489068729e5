import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/base/time.ts';
import type { GithubApi } from '../../src/publish/github-api.ts';
import { createGithub, nextPage } from '../../src/publish/octokit.ts';
import { type Fault, type Github, startGithub } from '../stub/github.ts';
import { REPOSITORY_NAME } from '../stub/runner.ts';
import { serveGithub } from '../stub/serve.ts';

/** Sleeps without time passing, and remembers how long it would have been. */
function fastClock(): Clock & { slept: number[] } {
  const slept: number[] = [];
  return {
    slept,
    now: () => Date.now(),
    sleep: async (ms) => {
      slept.push(ms);
    },
  };
}

function connect(github: Github, more: { clock?: Clock; token?: string } = {}): GithubApi {
  return createGithub({
    token: more.token ?? github.token,
    repository: REPOSITORY_NAME,
    apiUrl: github.url,
    graphqlUrl: `${github.url}/graphql`,
    clock: more.clock ?? fastClock(),
    callTimeoutMs: 300,
  });
}

const PREFIX = '<!-- mine -->';

describe('comments', () => {
  test('are read from all pages, and only those that start with the prefix are kept', async () => {
    const github = await serveGithub({ pageSize: 3 });
    for (let at = 0; at < 10; at++) github.addComment(7, `${at % 4 === 0 ? PREFIX : 'x'} ${at}`);
    github.addComment(7, `> ${PREFIX} quoted`);
    github.addComment(8, `${PREFIX} of another`);

    const got = await connect(github).comments(7, PREFIX);

    expect(got).toMatchObject({
      ok: true,
      value: [0, 4, 8].map((at) => ({ body: `${PREFIX} ${at}` })),
    });
    expect(github.requests).toHaveLength(4);
  });

  test('are read from a server without pages', async () => {
    const github = await serveGithub({ flavour: 'gitea' });
    for (let at = 0; at < 250; at++) github.addComment(7, PREFIX);
    const got = await connect(github).comments(7, PREFIX);
    expect(got.ok && got.value.length).toBe(250);
    expect(github.requests).toHaveLength(1);
  });

  test('are created, updated and deleted', async () => {
    const github = await serveGithub();
    const api = connect(github);
    const created = await api.createComment(7, 'first');
    if (!created.ok) throw new Error('not created');
    expect(created.value).toMatchObject({
      body: 'first',
      author: 'github-actions[bot]',
      authorType: 'Bot',
    });
    expect(created.value.url).toContain('/pull/7#issuecomment-');
    expect(await api.updateComment(created.value.id, 'second')).toMatchObject({ ok: true });
    expect(github.commentsOn(7)).toMatchObject([{ body: 'second' }]);
    expect(await api.deleteComment(created.value.id)).toEqual({ ok: true, value: true });
    expect(github.commentsOn(7)).toEqual([]);
  });
});

describe('the page after this one', () => {
  const API = 'https://ghes.example/api/v3';

  test.each([
    {
      link: `<${API}/x?page=2>; rel="next", <${API}/x?page=9>; rel="last"`,
      url: `${API}/x?page=2`,
    },
    {
      link: `<${API}/x?page=1>; rel="prev", <${API}/x?page=3>; rel="next"`,
      url: `${API}/x?page=3`,
    },
    { link: `<${API}/x?page=1>; rel="prev"`, url: undefined },
    { link: '<https://evil.example/x?page=2>; rel="next"', url: undefined },
    { link: '<nonsense>; rel="next"', url: undefined },
    { link: '', url: undefined },
    { link: undefined, url: undefined },
  ])('$link', ({ link, url }) => {
    expect(nextPage(link, API)).toBe(url);
  });
});

describe('who the token is', () => {
  test('comes from GraphQL', async () => {
    expect(await connect(await serveGithub()).viewer()).toEqual({
      ok: true,
      value: 'github-actions[bot]',
    });
  });

  test('comes from /user where there is no GraphQL', async () => {
    const github = await serveGithub({ flavour: 'gitea', isViewerKnown: true, login: 'ci-bot' });
    expect(await connect(github).viewer()).toEqual({ ok: true, value: 'ci-bot' });
  });

  test('is a failure where nobody tells', async () => {
    const github = await serveGithub({ flavour: 'gitea' });
    expect(await connect(github).viewer()).toMatchObject({
      ok: false,
      failure: { kind: 'forbidden' },
    });
  });
});

describe('pull requests', () => {
  test('of a commit, on GitHub and on Gitea', async () => {
    for (const flavour of ['github', 'gitea'] as const) {
      const github = await serveGithub({ flavour });
      github.addPull({ number: 5, commits: ['abc'], mergedAt: '2026-03-02T10:00:00Z' });
      const got = await connect(github).pullsOfCommit('abc');
      expect(got).toMatchObject({ ok: true, value: [{ number: 5, isMerged: true }] });
      expect(await connect(github).pullsOfCommit('def')).toEqual({ ok: true, value: [] });
    }
  });

  test('of a branch with a slash in its name', async () => {
    const github = await serveGithub();
    github.addPull({ number: 5, headRef: 'feature/x' });
    github.addPull({ number: 6, headRef: 'feature/y' });
    const got = await connect(github).pullsOfBranch('octo-org', 'feature/x');
    expect(got).toMatchObject({ ok: true, value: [{ number: 5, headRef: 'feature/x' }] });
  });
});

describe('a call that fails', () => {
  const html = { status: 502, text: '<html>Bad gateway</html>' };

  test.each<{
    what: string;
    answer: Fault['answer'];
    kind: string;
    message: RegExp;
    tries: number;
  }>([
    {
      what: '401',
      answer: { status: 401, body: { message: 'Bad credentials' } },
      kind: 'unauthorized',
      message: /^401 Bad credentials$/,
      tries: 1,
    },
    {
      what: '403',
      answer: { status: 403, body: { message: 'Resource not accessible by integration' } },
      kind: 'forbidden',
      message: /^403 Resource not accessible by integration$/,
      tries: 1,
    },
    {
      what: '404',
      answer: { status: 404, body: { message: 'Not Found' } },
      kind: 'not-found',
      message: /^404 Not Found$/,
      tries: 1,
    },
    {
      what: '422',
      answer: { status: 422, body: { message: 'Validation Failed' } },
      kind: 'invalid',
      message: /^422 Validation Failed$/,
      tries: 1,
    },
    {
      what: '429 for ever',
      answer: { status: 429, headers: { 'retry-after': '1' }, body: { message: 'slow down' } },
      kind: 'throttled',
      message: /^429 slow down$/,
      tries: 4,
    },
    { what: 'a page of a proxy', answer: html, kind: 'server-error', message: /^502 /, tries: 4 },
    { what: 'a reset', answer: 'reset', kind: 'network', message: /./, tries: 4 },
    { what: 'silence', answer: 'hang', kind: 'timeout', message: /no answer in time/, tries: 4 },
    {
      what: 'a page in place of a list',
      answer: { status: 200, text: '<html>login</html>' },
      kind: 'unreadable',
      message: /is not what a GitHub API gives/,
      tries: 1,
    },
  ])('with $what says so after $tries tries', async ({ answer, kind, message, tries }) => {
    const github = await serveGithub();
    github.fail({ request: /GET .*comments/, answer });
    const got = await connect(github).comments(7, PREFIX);
    expect(got).toMatchObject({
      ok: false,
      failure: { kind, message: expect.stringMatching(message) },
    });
    expect(JSON.stringify(got)).not.toContain(github.token);
    expect(github.requests).toHaveLength(tries);
  });

  test('is tried again and then works', async () => {
    const github = await serveGithub();
    github.addComment(7, PREFIX);
    github.fail({ request: /comments/, times: 2, answer: { status: 503 } });
    const clock = fastClock();
    expect(await connect(github, { clock }).comments(7, PREFIX)).toMatchObject({ ok: true });
    expect(clock.slept).toEqual([1_000, 2_000]);
  });

  test('is a POST only sent once when it may have arrived', async () => {
    const github = await serveGithub();
    github.fail({ request: /POST .*comments/, answer: 'reset' });
    expect(await connect(github).createComment(7, 'x')).toMatchObject({ ok: false });
    expect(github.requests).toHaveLength(1);
  });

  test('ends at once when the run is cancelled', async () => {
    const github = await serveGithub();
    github.fail({ request: /comments/, answer: 'hang' });
    const cancel = new AbortController();
    const got = connect(github).comments(7, PREFIX, cancel.signal);
    setTimeout(() => cancel.abort(), 50);
    expect(await got).toMatchObject({ ok: false, failure: { kind: 'aborted' } });
    expect(github.requests).toHaveLength(1);
  });

  test('against nobody is a network failure', async () => {
    const github = await startGithub();
    await github.close();
    const got = await connect(github).createComment(7, 'x');
    expect(got).toMatchObject({ ok: false, failure: { kind: 'network', message: /ECONNREFUSED/ } });
  });

  test('with a bad token says that', async () => {
    const github = await serveGithub();
    const got = await connect(github, { token: 'another-token' }).comments(7, PREFIX);
    expect(got).toMatchObject({ ok: false, failure: { kind: 'unauthorized' } });
  });
});
