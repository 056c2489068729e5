import { describe, expect, test, vi } from 'vitest';
import { connectHost, failureOf, type HostApi } from '../../src/publish/host-api.ts';
import { createAuthority, issue } from '../stub/certificates.ts';
import { startFaultProxy } from '../stub/fault-proxy.ts';
import type { Fault, Github } from '../stub/github.ts';
import { expectPairs } from '../stub/pairs.ts';
import { REPOSITORY_NAME } from '../stub/runner.ts';
import { serveGithub } from '../stub/serve.ts';

interface More {
  signal?: AbortSignal;
  callTimeoutMs?: number;
}

const NEVER = new AbortController().signal;

function connect(github: Pick<Github, 'url' | 'token'>, more: More = {}): Promise<HostApi> {
  const { url: apiUrl, token } = github;
  const limits = { signal: NEVER, callTimeoutMs: 5_000 };
  return connectHost({ token, apiUrl, repository: REPOSITORY_NAME, ...limits, ...more });
}

const MARK = '<!-- mine -->';
const isMine = (body: string): boolean => body.startsWith(MARK);

describe.each(['api.github.com', 'ghes-3.17'] as const)(
  'every request is one that %s describes',
  (description) => {
    test('of comments', async () => {
      const github = await serveGithub({ description });
      const api = await connect(github);
      const created = await api.createComment(7, `${MARK} first`);
      expect(created.url).toContain('/pull/7#issuecomment-');
      await api.updateComment(created.id, `${MARK} second`);
      expect(await api.comments(7, isMine)).toMatchObject([
        { id: created.id, body: `${MARK} second`, authorType: 'Bot' },
      ]);
      await api.deleteComment(created.id);
      expect(github.commentsOn(7)).toEqual([]);
    });

    test('of pull requests', async () => {
      const github = await serveGithub({ description });
      const api = await connect(github);
      github.addPull({ number: 5, commits: ['abc'], headRef: 'feature/x' });
      expect(await api.pullsOfCommit('abc')).toMatchObject([{ number: 5 }]);
      expect(await api.pullsOfCommit('def')).toEqual([]);
      expect(await api.pullsOfBranch('octo-org', 'feature/x')).toMatchObject([{ number: 5 }]);
    });

    test.each([
      { tellsViewer: true, is: 'ci-bot' },
      { tellsViewer: false, is: undefined },
    ] as const)('of the user of the token, if GraphQL tells it: $tellsViewer', async (row) => {
      const github = await serveGithub({ description, login: 'ci-bot', ...row });
      expect(await (await connect(github)).viewer()).toBe(row.is);
    });
  },
);

test('a host that names a next page on another server gets no more requests, nor does that', async () => {
  const [github, elsewhere] = [await serveGithub(), await serveGithub()];
  const headers = { link: `<${elsewhere.url}/repos/octo-org/shop/issues/7/comments>; rel="next"` };
  const body = [{ id: 3, body: MARK, html_url: '', user: null }];
  github.fail({ request: /comments/, answer: { status: 200, headers, body } });
  expect(await (await connect(github)).comments(7, isMine)).toMatchObject([{ id: 3 }]);
  expect(github.requests).toHaveLength(1);
  expect(elsewhere.requests).toEqual([]);
});

/** The failure of reading comments. */
async function failureOn(github: Pick<Github, 'url' | 'token'>, more: More = {}) {
  try {
    await (await connect(github, more)).comments(7, isMine);
  } catch (error) {
    return failureOf(error, more.signal ?? NEVER);
  }
  throw new Error('it did not fail');
}

describe('a call that fails', () => {
  test('is classified', () =>
    expectPairs('host-failures.txt', async (line) => {
      const answer = JSON.parse(line) as Fault['answer'];
      const github = await serveGithub();
      github.fail({ request: /GET .*comments/, answer });
      const failure = await failureOn(github, { callTimeoutMs: answer === 'hang' ? 300 : 5_000 });
      expect(JSON.stringify(failure)).not.toContain(github.token);
      const { status, message, retryMs } = failure;
      // How a reset is worded is for Node to say.
      return [answer === 'reset' ? '' : message, retryMs, status];
    }));

  test('of an unknown authority is told without what Node advises', async () => {
    const tls = await issue(await createAuthority('company'));
    const host = await startFaultProxy({ target: 'http://127.0.0.1:1', tls });
    const { message } = await failureOn({ url: host.url, token: 'x' });
    expect(message).toMatch(/^unable to verify the first certificate \(UNABLE_TO_\w+\)$/);
    await host.close();
  });

  test('ends at once if the run is cancelled', async () => {
    const github = await serveGithub();
    github.fail({ request: /comments/, answer: 'hang' });
    const cancel = new AbortController();
    const got = failureOn(github, { signal: cancel.signal });
    await vi.waitUntil(() => github.requests.length > 0);
    cancel.abort();
    expect((await got).retryMs).toBeUndefined();
  });

  test('ends when the time for publishing is over', async () => {
    const github = await serveGithub();
    github.fail({ request: /./, answer: 'hang' });
    expect(await failureOn(github, { signal: AbortSignal.timeout(100) })).toEqual({
      message: 'no answer within the time for publishing',
    });
  });
});
