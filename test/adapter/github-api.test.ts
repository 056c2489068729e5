import { describe, expect, test, vi } from 'vitest';
import type { Clock } from '../../src/base/time.ts';
import { type Comment, connectHost, type HostApi } from '../../src/publish/host-api.ts';
import { type Fault, type Github, type GithubOptions, startGithub } from '../stub/github.ts';
import type { Description } from '../stub/host-description.ts';
import { expectPairs } from '../stub/pairs.ts';
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

interface More {
  clock?: Clock;
  token?: string;
  signal?: AbortSignal;
  callTimeoutMs?: number;
}

function connect(github: Github, more: More = {}): Promise<HostApi> {
  return connectHost({
    token: more.token ?? github.token,
    repository: REPOSITORY_NAME,
    host: github.host,
    signal: more.signal ?? new AbortController().signal,
    clock: more.clock ?? fastClock(),
    callTimeoutMs: more.callTimeoutMs ?? 5_000,
  });
}

const MARK = '<!-- mine -->';
const isMine = async ({ body }: Comment): Promise<boolean> => body.startsWith(MARK);

/** Every host that is supported, by the oldest and the newest description of it. */
const HOSTS: { description: Description; flavour: NonNullable<GithubOptions['flavour']> }[] = [
  { description: 'api.github.com', flavour: 'github' },
  { description: 'ghec', flavour: 'github' },
  { description: 'ghes-3.17', flavour: 'github' },
  { description: 'ghes-3.19', flavour: 'github' },
  { description: 'gitea', flavour: 'gitea' },
  { description: 'gitea', flavour: 'forgejo' },
];

describe.each(HOSTS)('every request is one that $description describes ($flavour)', (options) => {
  test('of comments', async () => {
    const github = await serveGithub(options);
    const api = await connect(github);
    const created = await api.createComment(7, `${MARK} first`);
    if (!created.ok) throw new Error(created.failure.message);
    expect(created.value.url).toContain('/pull/7#issuecomment-');
    const { id } = created.value;
    expect(await api.updateComment(id, `${MARK} second`)).toMatchObject({ ok: true });
    expect(await api.comment(id)).toMatchObject({ ok: true, value: { body: `${MARK} second` } });
    expect(await api.comments(7, isMine)).toMatchObject({ ok: true, value: [{ id }] });
    expect(await api.deleteComment(id)).toEqual({ ok: true, value: true });
    expect(github.commentsOn(7)).toEqual([]);
  });

  test('of pull requests', async () => {
    const github = await serveGithub(options);
    const api = await connect(github);
    github.addPull({
      number: 5,
      commits: ['abc'],
      mergedAt: '2026-03-02T10:00:00Z',
      headRef: 'feature/x',
    });
    expect(await api.pull(5)).toMatchObject({ ok: true, value: { headBranch: 'feature/x' } });
    expect(await api.pullsOfCommit('abc')).toMatchObject({
      ok: true,
      value: [{ number: 5, isMerged: true }],
    });
    expect(await api.pullsOfCommit('def')).toEqual({ ok: true, value: [] });
    const of = await api.pullsOfBranch('octo-org', 'feature/x');
    expect(of).toMatchObject({ ok: true, value: [{ number: 5, headBranch: 'feature/x' }] });
  });

  test('of the user of the token', async () => {
    const github = await serveGithub({ ...options, isViewerKnown: true, login: 'ci-bot' });
    expect(await (await connect(github)).viewer()).toEqual({ ok: true, value: 'ci-bot' });
    const silent = await serveGithub({ ...options, isViewerKnown: false });
    expect(await (await connect(silent)).viewer()).toMatchObject({
      ok: false,
      failure: { kind: 'forbidden' },
    });
  });
});

describe('long lists', () => {
  test('of 10,000 comments are read to their end', async () => {
    const github = await serveGithub();
    for (let at = 0; at < 10_000; at++)
      github.addComment(7, at % 2_500 === 0 ? `${MARK} ${at}` : 'x');
    github.addComment(8, `${MARK} of another`);
    const got = await (await connect(github)).comments(7, isMine);
    expect(got.ok && got.value.map(({ body }) => body)).toEqual(
      [0, 2_500, 5_000, 7_500].map((at) => `${MARK} ${at}`),
    );
    expect(github.requests).toHaveLength(100);
  });

  test('of a host whose last page links to itself as the next page end there', async () => {
    const github = await serveGithub();
    const link = `<${github.url}/repos/octo-org/shop/issues/7/comments>; rel="next"`;
    const body = [{ id: 3, body: MARK }] as never;
    github.fail({ request: /comments/, answer: { status: 200, headers: { link }, body } });
    const got = await (await connect(github)).comments(7, isMine);
    expect(got).toMatchObject({ ok: true, value: [{ id: 3 }] });
    expect(github.requests).toHaveLength(2);
  });

  test('of a host without pages are read in one request', async () => {
    const github = await serveGithub({ flavour: 'gitea' });
    for (let at = 0; at < 250; at++) github.addComment(7, MARK);
    const got = await (await connect(github)).comments(7, isMine);
    expect(got.ok && got.value.length).toBe(250);
    expect(github.requests).toHaveLength(1);
  });

  test('of pull requests of a host that cannot filter are read until the branch is found', async () => {
    const github = await serveGithub({ flavour: 'gitea' });
    github.addPull({ number: 1, headRef: 'feature/x', closedAt: '2026-03-02T10:00:00Z' });
    for (let number = 2; number < 130; number++) github.addPull({ number, headRef: 'other' });
    const got = await (await connect(github)).pullsOfBranch('octo-org', 'feature/x');
    // Gone: only its label tells the name of the branch.
    expect(got.ok && got.value.find(({ number }) => number === 1)).toMatchObject({
      headBranch: 'feature/x',
    });
    expect(github.requests).toHaveLength(3);
  });

  test('never lead the token to another server', async () => {
    const elsewhere = await startGithub();
    const github = await serveGithub({ flavour: 'gitea', publicUrl: elsewhere.url });
    for (let number = 1; number < 60; number++) github.addPull({ number, headRef: 'other' });
    const got = await (await connect(github)).pullsOfBranch('octo-org', 'feature/x');
    expect(got.ok && got.value.length).toBe(59);
    expect(github.requests).toHaveLength(2);
    expect(elsewhere.requests).toEqual([]);
    await elsewhere.close();
  });
});

describe('a call that fails', () => {
  test('is classified, after retries if they may help', () =>
    expectPairs('host-failures.txt', async (line) => {
      const answer = JSON.parse(line) as Fault['answer'];
      const github = await serveGithub();
      github.fail({ request: /GET .*comments/, answer });
      const callTimeoutMs = answer === 'hang' ? 300 : 5_000;
      const got = await (await connect(github, { callTimeoutMs })).comments(7, isMine);
      if (got.ok) throw new Error('it did not fail');
      expect(JSON.stringify(got)).not.toContain(github.token);
      const { kind, message } = got.failure;
      // How a reset is worded is for Node to say.
      return [kind, kind === 'network' ? '' : message, `${github.requests.length} tries`];
    }));

  test('succeeds after a retry', async () => {
    const github = await serveGithub();
    github.addComment(7, MARK);
    github.fail({ request: /comments/, times: 2, answer: { status: 503 } });
    expect(await (await connect(github)).comments(7, isMine)).toMatchObject({ ok: true });
    expect(github.requests).toHaveLength(3);
  });

  test.each([
    { what: 'a reset', answer: 'reset' },
    { what: 'silence', answer: 'hang' },
    { what: 'an error of the server', answer: { status: 500, body: { message: 'oops' } } },
  ] as const)(
    'by $what: a comment is sent only once, because the write may have been processed',
    async ({ answer }) => {
      const github = await serveGithub();
      github.fail({ request: /(POST|PATCH) .*comments/, answer });
      const { id } = github.addComment(7, MARK);
      const callTimeoutMs = answer === 'hang' ? 300 : 5_000;
      const api = await connect(github, { callTimeoutMs });
      expect(await api.createComment(7, 'x')).toMatchObject({ ok: false });
      expect(await api.updateComment(id, 'x')).toMatchObject({ ok: false });
      expect(github.requests).toHaveLength(2);
    },
  );

  test.each([
    {
      what: 'a secondary limit',
      answer: {
        status: 403,
        headers: { 'retry-after': '3' },
        body: { message: 'You have exceeded a secondary rate limit' },
      },
      waits: 3_000,
    },
    {
      what: 'a used-up limit that begins anew',
      answer: {
        status: 403,
        headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1' },
        body: { message: 'API rate limit exceeded' },
      },
      waits: 0,
    },
  ])('by $what is sent again, unless it writes a comment', async ({ answer, waits }) => {
    const github = await serveGithub();
    github.fail({ request: /comments/, times: 1, answer });
    const clock = fastClock();
    const api = await connect(github, { clock });
    expect(await api.comments(7, isMine)).toMatchObject({ ok: true });
    expect(clock.slept).toEqual([waits]);
    const { id } = github.addComment(7, MARK);
    const before = github.requests.length;
    const failure = { kind: 'throttled', retryAfterMs: waits };
    github.fail({ request: /(POST|PATCH) .*comments/, times: 2, answer });
    expect(await api.createComment(7, 'x')).toMatchObject({ ok: false, failure });
    expect(await api.updateComment(id, 'x')).toMatchObject({ ok: false, failure });
    expect(github.requests).toHaveLength(before + 2);
    expect(clock.slept).toEqual([waits]);
  });

  test('by a host to which a redirect led names that host: the client sends it no token', async () => {
    const [github, moved] = [await serveGithub(), await serveGithub()];
    const location = `${moved.url}/repos/octo-org/shop/issues/7/comments`;
    github.fail({ request: /./, answer: { status: 302, headers: { location }, body: {} } });
    moved.fail({ request: /./, answer: { status: 401, body: { message: 'Bad credentials' } } });
    const got = await (await connect(github)).comments(7, isMine);
    const message = `401 after a redirect to ${new URL(moved.url).origin}, `;
    expect(got).toMatchObject({
      ok: false,
      failure: { kind: 'unreadable', message: expect.stringContaining(message) },
    });
  });

  test('by a rate limit that lasts longer than the gate waits fails at once', async () => {
    const github = await serveGithub();
    const headers = { 'retry-after': '60' };
    const body = { message: 'You have exceeded a secondary rate limit' };
    github.fail({ request: /POST .*comments/, answer: { status: 403, headers, body } });
    const clock = fastClock();
    const got = await (await connect(github, { clock })).createComment(7, 'x');
    expect(got).toMatchObject({ ok: false, failure: { kind: 'throttled' } });
    expect(clock.slept).toEqual([]);
    expect(github.requests).toHaveLength(1);
  });

  test('ends at once if the run is cancelled, and is not sent again', async () => {
    const github = await serveGithub();
    github.fail({ request: /comments/, answer: 'hang' });
    const cancel = new AbortController();
    const got = (await connect(github, { signal: cancel.signal })).comments(7, isMine);
    await vi.waitUntil(() => github.requests.length > 0);
    cancel.abort();
    expect(await got).toMatchObject({ ok: false, failure: { kind: 'aborted' } });
    expect(github.requests).toHaveLength(1);
  });

  test('ends when the time for publishing is over', async () => {
    const github = await serveGithub();
    github.fail({ request: /./, answer: 'hang' });
    const api = await connect(github, { signal: AbortSignal.timeout(100) });
    const over = {
      ok: false,
      failure: { kind: 'timeout', message: 'no answer within the time for publishing' },
    };
    expect(await api.comments(7, isMine)).toEqual(over);
    expect(await api.viewer()).toEqual(over);
    expect(await api.createComment(7, 'x')).toEqual(over);
    expect(github.requests.length).toBeLessThanOrEqual(1);
  });

  test('without a server is a network failure', async () => {
    const github = await startGithub();
    await github.close();
    const got = await (await connect(github)).createComment(7, 'x');
    expect(got).toMatchObject({ ok: false, failure: { kind: 'network', message: /ECONNREFUSED/ } });
  });

  test('with a bad token has a message about the token', async () => {
    const github = await serveGithub();
    const api = await connect(github, { token: 'another-token' });
    expect(await api.comments(7, isMine)).toMatchObject({
      ok: false,
      failure: { kind: 'unauthorized' },
    });
  });

  test('to an invalid address is a failed read, not an exception', async () => {
    const github = await serveGithub();
    const host = { ...github.host, apiUrl: 'not a url' };
    const api = await connect({ ...github, host, token: github.token });
    expect(await api.pull(7)).toMatchObject({ ok: false, failure: { kind: 'network' } });
  });
});
