import { describe, expect, test } from 'vitest';
import type { NamespaceResult, RunResult } from '../../src/model/result.ts';
import { publish } from '../../src/publish/publish.ts';
import { historyIn } from '../../src/report/comment.ts';
import type { Fault, Github } from '../stub/github.ts';
import { type DeskOptions, desk, PULL_REQUEST } from '../stub/publishing.ts';
import { deadApiService, deadlock, gone, runOf, settled } from '../stub/results.ts';
import { serveGithub } from '../stub/serve.ts';

async function report(
  github: Github,
  result: RunResult,
  options: DeskOptions = {},
): Promise<{ said: string[]; commentUrl: string; warnings: string[] }> {
  const parts = desk({ github, ...options });
  const published = await publish(result, parts);
  return { said: parts.said, ...published };
}

const RED = runOf([deadlock()]);
const GREEN = runOf([gone()]);
const YELLOW = runOf([settled('recreated', 'warn')]);

describe('when a comment is written', () => {
  test.each([
    { mode: 'off', result: RED, comments: 0 },
    { mode: 'off', result: GREEN, comments: 0 },
    { mode: 'on-failure', result: RED, comments: 1 },
    { mode: 'on-failure', result: YELLOW, comments: 0 },
    { mode: 'on-failure', result: GREEN, comments: 0 },
    { mode: 'always', result: RED, comments: 1 },
    { mode: 'always', result: YELLOW, comments: 1 },
    { mode: 'always', result: GREEN, comments: 1 },
  ] as const)('$mode, $result.outcome: $comments', async ({ mode, result, comments }) => {
    const github = await serveGithub();
    const { commentUrl, said } = await report(github, result, { mode });
    expect(github.commentsOn(PULL_REQUEST)).toHaveLength(comments);
    expect(commentUrl === '').toBe(comments === 0);
    expect(said).toEqual([]);
    if (mode === 'off') expect(github.requests).toEqual([]);
  });

  test('not while there is nothing better to say: a cancelled run leaves it as it is', async () => {
    const github = await serveGithub();
    await report(github, RED);
    const before = github.commentsOn(PULL_REQUEST)[0]?.body;
    await report(github, runOf([settled('cancelled', 'fail')]), { runLabel: 'run 813, attempt 1' });
    expect(github.commentsOn(PULL_REQUEST)).toMatchObject([{ body: before }]);
  });
});

describe('a comment over time', () => {
  test('turns green, red and green again, and remembers', async () => {
    const github = await serveGithub();
    const say = async (result: RunResult, run: number): Promise<string> => {
      await report(github, result, { runLabel: `run ${run}, attempt 1` });
      const [only, ...more] = github.commentsOn(PULL_REQUEST);
      expect(more).toEqual([]);
      return only?.body ?? '';
    };
    expect(await say(RED, 1)).toContain('### 🔴 Namespace');
    const green = await say(GREEN, 2);
    expect(green).toContain('### ✅ Namespace');
    expect(green).toContain('Earlier on this pull request: 🔴 16 s `owner-missing`');
    expect(await say(runOf([deadApiService()]), 3)).toContain('### 🔴 Namespace');
    const last = await say(GREEN, 4);
    expect(last).toContain('`apiservice-unavailable`');
    expect(historyIn(last).map(({ outcome }) => outcome)).toEqual([
      'stuck',
      'deleted',
      'stuck',
      'deleted',
    ]);
    expect(
      github.requests
        .filter(({ method }) => method === 'POST')
        .filter(({ path }) => path.includes('comments')),
    ).toHaveLength(1);
  });

  test('keeps the last twenty teardowns', async () => {
    const github = await serveGithub();
    for (let run = 1; run <= 23; run++) {
      await report(github, run % 2 === 0 ? GREEN : RED, { runLabel: `run ${run}, attempt 1` });
    }
    const history = historyIn(github.commentsOn(PULL_REQUEST)[0]?.body ?? '');
    expect(history).toHaveLength(20);
    expect(history.at(-1)?.run).toBe('run 23, attempt 1');
  });

  test('counts a run once, however often it is published', async () => {
    const github = await serveGithub();
    await report(github, RED);
    await report(github, runOf([{ ...deadlock(), outcome: 'forced', verdict: 'warn' }]));
    const history = historyIn(github.commentsOn(PULL_REQUEST)[0]?.body ?? '');
    expect(history).toMatchObject([{ outcome: 'forced' }]);
  });

  test('keeps its history when its text is edited with Windows line ends', async () => {
    const github = await serveGithub();
    await report(github, RED, { runLabel: 'run 1, attempt 1' });
    const [comment] = github.commentsOn(PULL_REQUEST);
    if (comment !== undefined) comment.body = comment.body.replaceAll('\n', '\r\n');
    await report(github, GREEN, { runLabel: 'run 2, attempt 1' });
    expect(historyIn(github.commentsOn(PULL_REQUEST)[0]?.body ?? '')).toHaveLength(2);
  });

  test.each(['', 'bm9uc2Vuc2U=', 'W3sib3V0Y29tZSI6ImdvbmUifV0=', 'W251bGxd', '!!!'])(
    'starts anew when its history is "%s"',
    async (history) => {
      const github = await serveGithub();
      await report(github, RED, { runLabel: 'run 1, attempt 1' });
      const [comment] = github.commentsOn(PULL_REQUEST);
      if (comment !== undefined) {
        comment.body = comment.body.replace(/history=\S+/, `history=${history}`);
      }
      await report(github, GREEN, { runLabel: 'run 2, attempt 1' });
      expect(historyIn(github.commentsOn(PULL_REQUEST)[0]?.body ?? '')).toHaveLength(1);
    },
  );
});

describe('whose comment it is', () => {
  test('somebody else may write our marker and is left alone', async () => {
    const github = await serveGithub();
    await report(github, RED);
    const ours = github.commentsOn(PULL_REQUEST)[0];
    const body = ours?.body ?? '';
    if (ours !== undefined) ours.user = { login: 'mallory', type: 'User' };
    await report(github, GREEN, { mode: 'always' });
    const comments = github.commentsOn(PULL_REQUEST);
    expect(comments).toHaveLength(2);
    expect(comments[0]?.body).toBe(body);
    expect(comments[1]?.body).toContain('✅');
  });

  test('a quote of ours is not ours', async () => {
    const github = await serveGithub();
    await report(github, RED);
    const body = github.commentsOn(PULL_REQUEST)[0]?.body ?? '';
    github.addComment(PULL_REQUEST, `> ${body}\n\nWhat is this?`);
    await report(github, GREEN);
    expect(github.commentsOn(PULL_REQUEST).map(({ body: text }) => text.startsWith('> '))).toEqual([
      false,
      true,
    ]);
  });

  test.each([
    { who: 'an app', login: 'my-app[bot]' },
    { who: 'a person with a token', login: 'octocat' },
  ])('$who finds its own again', async ({ login }) => {
    const github = await serveGithub({ login });
    await report(github, RED);
    await report(github, GREEN);
    expect(github.commentsOn(PULL_REQUEST)).toMatchObject([
      { body: expect.stringContaining('✅') },
    ]);
  });

  test('without an answer who we are, a person named like a bot of another server is not us', async () => {
    const github = await serveGithub({ isViewerKnown: false });
    await report(github, RED);
    const [comment] = github.commentsOn(PULL_REQUEST);
    if (comment !== undefined) comment.user = { login: 'gitea-actions', type: 'User' };
    await report(github, GREEN);
    expect(github.commentsOn(PULL_REQUEST)).toMatchObject([
      { body: expect.stringContaining('🔴') },
    ]);
  });

  test('without an answer who we are, the bot of workflows is us', async () => {
    const github = await serveGithub({ isViewerKnown: false });
    await report(github, RED);
    await report(github, GREEN);
    expect(github.commentsOn(PULL_REQUEST)).toMatchObject([
      { body: expect.stringContaining('✅') },
    ]);
  });

  test('an update that is refused becomes a new comment, once', async () => {
    const github = await serveGithub();
    await report(github, RED);
    github.fail({ request: /^PATCH/, answer: { status: 403, body: { message: 'Forbidden' } } });
    const { said } = await report(github, RED, { runLabel: 'run 813, attempt 1' });
    expect(github.commentsOn(PULL_REQUEST)).toHaveLength(2);
    expect(said).toEqual([]);
  });
});

describe('several gates on one pull request', () => {
  test('have a comment each when their keys differ', async () => {
    const github = await serveGithub();
    await report(github, RED, { commentKey: 'a' });
    await report(github, RED, { commentKey: 'b' });
    await report(github, GREEN, { commentKey: 'a' });
    const marks = github.commentsOn(PULL_REQUEST).map(({ body }) => /### (\S+)/.exec(body)?.[1]);
    expect(marks).toEqual(['✅', '🔴']);
  });

  test('with one key that create at the same time keep one comment with both teardowns', async () => {
    const github = await serveGithub();
    await Promise.all(
      [1, 2, 3].map((run) => report(github, RED, { runLabel: `run ${run}, attempt 1` })),
    );
    const comments = github.commentsOn(PULL_REQUEST);
    expect(comments).toHaveLength(1);
    expect(historyIn(comments[0]?.body ?? '').length).toBeGreaterThanOrEqual(2);
  });

  test('clean up duplicates that an earlier race has left', async () => {
    const github = await serveGithub();
    await report(github, RED);
    const first = github.commentsOn(PULL_REQUEST)[0];
    github.addComment(PULL_REQUEST, first?.body ?? '');
    github.addComment(PULL_REQUEST, first?.body ?? '');
    await report(github, GREEN);
    expect(github.commentsOn(PULL_REQUEST)).toMatchObject([{ id: first?.id }]);
  });

  test('find theirs behind 250 others', async () => {
    const github = await serveGithub();
    for (let at = 0; at < 250; at++) {
      github.addComment(PULL_REQUEST, `chatter ${at}`, { login: 'octocat', type: 'User' });
    }
    await report(github, RED);
    await report(github, GREEN);
    const ours = github.commentsOn(PULL_REQUEST).filter(({ body }) => body.startsWith('<!--'));
    expect(ours).toMatchObject([{ body: expect.stringContaining('✅') }]);
  });

  test('tell all their namespaces in one comment', async () => {
    const github = await serveGithub();
    const namespaces: NamespaceResult[] = [
      gone('a'),
      deadlock(),
      { ...deadApiService(), name: 'c' },
    ];
    await report(github, runOf(namespaces));
    const [comment, ...more] = github.commentsOn(PULL_REQUEST);
    expect(more).toEqual([]);
    for (const name of ['a', 'preview-pr-42', 'c']) expect(comment?.body).toContain(`\`${name}\``);
  });
});

describe('what does not work is one warning, and never more', () => {
  const refused = { status: 403, body: { message: 'Resource not accessible by integration' } };
  const FIX = ['    permissions:', '      pull-requests: write'];

  test.each<{ what: string; fault: Fault; says: RegExp; fix?: string[] }>([
    {
      what: 'may not write',
      fault: { request: /POST .*comments/, answer: refused },
      says: /^warning: could not write the comment on pull request 42: 403 Resource not accessible by integration\. The token lacks the permission "pull-requests: write"; add these two lines to the job:$/,
      fix: FIX,
    },
    {
      what: 'may not read',
      fault: { request: /GET .*comments/, answer: refused },
      says: /^warning: could not read the comment on pull request 42: 403 .*pull-requests: write/,
      fix: FIX,
    },
    {
      what: 'a locked conversation',
      fault: {
        request: /POST .*comments/,
        answer: {
          status: 403,
          body: { message: 'Unable to create comment because issue is locked.' },
        },
      },
      says: /^warning: .*is locked\. The conversation is locked; unlock it/,
    },
    {
      what: 'a bad token',
      fault: { request: /./, answer: { status: 401, body: { message: 'Bad credentials' } } },
      says: /^warning: .*401 Bad credentials\. The input "github-token" is no valid token/,
    },
    {
      what: 'a used-up limit',
      fault: {
        request: /POST .*comments/,
        answer: {
          status: 403,
          headers: { 'x-ratelimit-remaining': '0' },
          body: { message: 'API rate limit exceeded' },
        },
      },
      says: /^warning: .*API rate limit exceeded\. The rate limit is used up/,
    },
    {
      what: 'a secondary limit without a time',
      fault: {
        request: /POST .*comments/,
        answer: { status: 403, body: { message: 'You have exceeded a secondary rate limit' } },
      },
      says: /^warning: .*The rate limit is used up; the next run writes the comment\.$/,
    },
    {
      what: 'a broken server',
      fault: { request: /comments/, answer: { status: 502, text: '<html>' } },
      says: /^warning: could not read the comment on pull request 42: 502 .*The job summary has the report\.$/,
    },
    {
      what: 'a connection that is cut',
      fault: { request: /comments/, answer: 'reset' },
      says: /^warning: could not read the comment on pull request 42: .*The job summary has the report\.$/,
    },
    {
      what: 'a text that is too long',
      fault: {
        request: /POST .*comments/,
        answer: { status: 422, body: { message: 'body is too long' } },
      },
      says: /^warning: could not write .*422 body is too long\. The job summary has the report\.$/,
    },
  ])('$what', async ({ fault, says, fix }) => {
    const github = await serveGithub();
    github.fail(fault);
    const { said, warnings, commentUrl } = await report(github, RED);
    expect(said[0]).toMatch(says);
    expect(said.slice(1)).toEqual(fix ?? []);
    expect(warnings).toHaveLength(1);
    expect(commentUrl).toBe('');
  });

  test.each([
    {
      who: 'a fork',
      event: {
        name: 'pull_request',
        payload: { pull_request: { number: 42, head: { repo: { full_name: 'fork/shop' } } } },
      },
      says: 'from a fork a read-only token',
    },
    {
      who: 'Dependabot',
      event: {
        name: 'pull_request',
        payload: { pull_request: { number: 42, head: { repo: { full_name: 'octo-org/shop' } } } },
        actor: 'dependabot[bot]',
      },
      says: 'Dependabot started a read-only token',
    },
  ])('for $who it is a notice: there is nothing to mend', async ({ event, says }) => {
    const github = await serveGithub();
    github.fail({ request: /POST .*comments/, answer: refused });
    const { said, warnings } = await report(github, RED, { event });
    expect(said).toEqual([expect.stringMatching(new RegExp(`^notice: .*${says}`))]);
    expect(warnings).toEqual([]);
  });
});

describe('which pull request', () => {
  test('there is none: a notice', async () => {
    const github = await serveGithub();
    const { said, warnings } = await report(github, RED, {
      event: { name: 'schedule', payload: {} },
    });
    expect(said).toEqual([
      expect.stringMatching(/^notice: no pull request comment: .*schedule.*pr-number/),
    ]);
    expect(warnings).toEqual([]);
    expect(github.requests).toEqual([]);
  });

  test('the input names none of ours: a notice, and no comment', async () => {
    const github = await serveGithub({ hasAnyPull: false });
    github.addPull({ number: 7, baseRepository: 'somebody/else' });
    for (const prNumber of [7, 8]) {
      const { said } = await report(github, RED, { prNumber });
      expect(said).toEqual([
        `notice: no pull request comment: this repository has no pull request ${prNumber}`,
      ]);
    }
    expect(github.requests.every(({ method }) => method === 'GET')).toBe(true);
  });

  test('of a merge, of a removed branch, of a fork that ran', async () => {
    const github = await serveGithub();
    const sha = '9f3c2e1a7b5d4c6e8f0a1b2c3d4e5f6a7b8c9d0e';
    github.addPull({
      number: 3,
      commits: [sha],
      mergedAt: '2026-03-02T10:00:00Z',
      mergeCommitSha: sha,
    });
    github.addPull({ number: 4, headRef: 'feature/x' });
    github.addPull({ number: 5, headRef: 'patch-1', headOwner: 'fork', headSha: sha });
    const events = [
      { issue: 3, event: { name: 'push', payload: { after: sha } } },
      { issue: 4, event: { name: 'delete', payload: { ref_type: 'branch', ref: 'feature/x' } } },
      {
        issue: 5,
        event: {
          name: 'workflow_run',
          payload: {
            workflow_run: {
              pull_requests: [],
              head_repository: { owner: { login: 'fork' } },
              head_branch: 'patch-1',
              head_sha: sha,
            },
          },
        },
      },
    ];
    for (const { issue, event } of events) {
      await report(github, RED, { event });
      expect(github.commentsOn(issue)).toHaveLength(1);
    }
  });

  test('cannot be looked up: one warning', async () => {
    const github = await serveGithub();
    github.fail({ request: /commits/, answer: { status: 500, body: { message: 'oops' } } });
    const { said } = await report(github, RED, { event: { name: 'push', payload: {} } });
    expect(said).toEqual([
      'warning: could not read the pull requests of the commit: 500 oops. The job summary has the report.',
    ]);
  });

  test('cannot be read with "issues: write" alone, which is enough for the comment', async () => {
    const github = await serveGithub();
    github.fail({ request: /GET .*\/pulls\/42/, answer: { status: 403, body: { message: 'no' } } });
    const { said } = await report(github, RED);
    expect(said).toEqual([]);
    expect(github.commentsOn(PULL_REQUEST)).toHaveLength(1);
  });
});

describe('Gitea and Forgejo', () => {
  test.each(['gitea-actions', 'forgejo-actions'])('%s finds its comment again', async (login) => {
    const github = await serveGithub({ flavour: 'gitea', login });
    for (let at = 0; at < 120; at++) {
      github.addComment(PULL_REQUEST, 'chatter', { login: 'someone', type: '' });
    }
    await report(github, RED);
    const { said } = await report(github, GREEN);
    const ours = github.commentsOn(PULL_REQUEST).filter(({ body }) => body.startsWith('<!--'));
    expect(ours).toMatchObject([{ body: expect.stringContaining('✅') }]);
    expect(said).toEqual([]);
  });

  test('find the pull request of a merge', async () => {
    const github = await serveGithub({ flavour: 'gitea' });
    const sha = '9f3c2e1a7b5d4c6e8f0a1b2c3d4e5f6a7b8c9d0e';
    github.addPull({ number: 3, commits: [sha], mergedAt: '2026-03-02T10:00:00Z' });
    await report(github, RED, { event: { name: 'push', payload: { after: sha } } });
    expect(github.commentsOn(3)).toHaveLength(1);
  });

  test('find the pull request of a branch although they cannot filter', async () => {
    const github = await serveGithub({ flavour: 'gitea' });
    github.addPull({ number: 3, headRef: 'other' });
    github.addPull({ number: 4, headRef: 'feature/x' });
    await report(github, RED, {
      event: { name: 'delete', payload: { ref_type: 'branch', ref: 'feature/x' } },
    });
    expect(github.commentsOn(4)).toHaveLength(1);
  });
});
