import { describe, expect, test } from 'vitest';
import { publishingMs } from '../../src/publish/publish.ts';
import { readComment } from '../../src/report/comment.ts';
import { type Failure, type View, viewOf } from '../../src/report/view.ts';
import type { Github } from '../stub/github.ts';
import { expectPairs } from '../stub/pairs.ts';
import { type DeskOptions, desk, PULL_REQUEST, report } from '../stub/publishing.ts';
import { deadlock, FINISHED_AT, gone, runOf, settled } from '../stub/results.ts';
import { serveGithub } from '../stub/serve.ts';

const RED = runOf([{ ...deadlock(), elapsedMs: 302_000 }]);
const GREEN = runOf([gone()]);
const YELLOW = runOf([settled('recreated', 'warn')]);
const LENIENT = runOf([{ ...deadlock(), verdict: 'warn' }]);
const CANCELLED = runOf([settled('cancelled', 'fail')]);
const FAILED: Failure = {
  message: 'cannot get namespace "x" on https://kind.example:6443: 401 Unauthorized',
  hints: ['The credentials are refused. @octocat <img src=x>'],
  at: FINISHED_AT,
};

/** The only comment there is. */
function body(github: Github): string {
  const [only, ...more] = github.commentsOn(PULL_REQUEST);
  expect(more).toEqual([]);
  return only?.body ?? '';
}

function headline(text: string): string {
  return /^#{3} (.*)$/m.exec(text)?.[1] ?? '';
}

function edit(github: Github, change: (text: string) => string): void {
  const [comment] = github.commentsOn(PULL_REQUEST);
  if (comment !== undefined) comment.body = change(comment.body);
}

/** A report in a line of comment-histories.txt. */
interface Reported
  extends Pick<DeskOptions, 'commentKey' | 'job' | 'matrix' | 'mode' | 'namespaces' | 'selector'> {
  is: 'red' | 'green' | 'failed' | 'cancelled';
  id: number;
  attempt?: number;
}

const RESULTS = { red: RED, green: GREEN, cancelled: CANCELLED };

async function reportAll(github: Github, all: readonly Reported[]): Promise<string[]> {
  const headlines: string[] = [];
  for (const [index, { is, id, attempt = 1, ...more }] of all.entries()) {
    const finishedAt = new Date(Date.parse(FINISHED_AT) + index * 60_000).toISOString();
    const options = { ...more, run: { id, number: id, attempt } };
    const told = is === 'failed' ? { ...FAILED, at: finishedAt } : { ...RESULTS[is], finishedAt };
    await report(github, told, options);
    const bodies = github.commentsOn(PULL_REQUEST).map((one) => one.body);
    headlines.push(bodies.map(headline).join(' | '));
  }
  return headlines;
}

/** Text as the page shows it, with the paths of links. */
function shown(text: string): string {
  return text
    .replaceAll(/<[^>]+>/g, '')
    .replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
    .replaceAll(/\(https?:\S+(\/\d+\/attempts\/\d+)\)/g, '($1)');
}

test('a comment after the reports of several runs', () =>
  expectPairs('comment-histories.txt', async (line) => {
    const github = await serveGithub();
    const headlines = await reportAll(github, JSON.parse(line));
    const text = github.commentsOn(PULL_REQUEST)[0]?.body ?? '';
    const [, below = ''] = text.split('<!-- namespace-teardown-gate:end -->');
    return { headlines, below: shown(below).trim().split(/\n+/) };
  }));

describe('when a comment is written', () => {
  test.each([
    { mode: 'off', result: RED, comments: 0 },
    { mode: 'on-failure', result: RED, comments: 1 },
    // With fail-on: never.
    { mode: 'on-failure', result: LENIENT, comments: 1 },
    { mode: 'on-failure', result: YELLOW, comments: 0 },
    { mode: 'on-failure', result: GREEN, comments: 0 },
    { mode: 'on-failure', result: FAILED, comments: 1 },
    { mode: 'always', result: YELLOW, comments: 1 },
    { mode: 'always', result: GREEN, comments: 1 },
    { mode: 'always', result: CANCELLED, comments: 0 },
  ] as const)('$mode, $result.outcome: $comments', async ({ mode, result, comments }) => {
    const github = await serveGithub();
    const { commentUrl, said } = await report(github, result, { mode });
    expect(github.commentsOn(PULL_REQUEST)).toHaveLength(comments);
    expect(commentUrl === '').toBe(comments === 0);
    expect(said).toEqual([]);
    if (mode === 'off') expect(github.requests).toEqual([]);
  });

  test('a failure of the gate is told, escaped', async () => {
    const github = await serveGithub();
    await report(github, FAILED);
    expect(headline(body(github))).toBe('🔴 The teardown gate could not work');
    expect(body(github)).not.toMatch(/@octocat|<img/);
  });
});

describe('whose comment it is', () => {
  const login = 'octocat';
  test.each([
    { who: 'the token of the workflow', found: true },
    { who: 'the token of the workflow, which nobody tells', tellsViewer: false, found: true },
    { who: 'an app', login: 'my-app[bot]', found: true },
    { who: 'a person with a token', login, found: true },
    { who: 'a person', by: { login: 'mallory', type: 'User' }, found: false },
    {
      who: 'a person with the name of the app',
      login: 'my-app[bot]',
      by: { login: 'my-app', type: 'User' },
      found: false,
    },
    {
      who: 'a person with the name of a bot',
      tellsViewer: false,
      by: { login: 'gitea-actions', type: 'User' },
      found: false,
    },
    { who: 'another bot', by: { login: 'other[bot]', type: 'Bot' }, found: false },
  ] as const)(
    'a comment with the marker by $who is ours: $found',
    async ({ who, found, ...row }) => {
      const { by, ...options } = { by: undefined, ...row };
      const github = await serveGithub(options);
      await report(github, RED);
      const [ours] = github.commentsOn(PULL_REQUEST);
      if (ours !== undefined && by !== undefined) ours.user = by;
      const before = ours?.body;
      await report(github, GREEN, { run: { id: 9_001 } });
      expect(ours?.body === before).toBe(!found);
      await report(github, RED, { run: { id: 9_002 } });
      expect(github.commentsOn(PULL_REQUEST)).toHaveLength(found ? 1 : 2);
    },
  );

  test.each([
    { what: 'quotes it', of: (text: string) => text.replaceAll(/^/gm, '> ') },
    { what: 'explains the marker', of: (text: string) => `Look:\n\n${text.split('\n')[0]}\n` },
    { what: 'has its source in a block of code', of: (text: string) => `\`\`\`\n${text}\n\`\`\`` },
  ])('a comment of the same person that $what is neither edited nor deleted', async ({ of }) => {
    const github = await serveGithub({ login });
    await report(github, RED);
    const theirs = of(body(github));
    github.addComment(PULL_REQUEST, theirs);
    await report(github, GREEN, { run: { id: 9_001 } });
    expect(github.commentsOn(PULL_REQUEST).map((one) => one.body)).toEqual([
      expect.stringContaining('✅'),
      theirs,
    ]);
  });

  test.each([
    { what: 'nothing', state: '' },
    { what: 'no JSON', state: 'bm9uc2Vuc2U=' },
    { what: 'no entry', state: 'eyJlbnRyaWVzIjpbeyJvdXRjb21lIjoiZ29uZSJ9LG51bGwsM119' },
    { what: 'garbage', state: 'a'.repeat(10_000) },
  ])('a state with $what is dropped, with line ends of Windows', async ({ state }) => {
    const github = await serveGithub();
    await report(github, RED);
    edit(github, (text) => text.replace(/:state \S+/, `:state ${state}`).replaceAll('\n', '\r\n'));
    await report(github, GREEN, { run: { id: 9_001 } });
    expect(readComment(body(github)).entries).toHaveLength(1);
    expect(headline(body(github))).toContain('✅');
  });
});

describe('two runs of a job at the same time', () => {
  const run = (id: number): DeskOptions => ({ run: { id, number: id } });

  test('that both created one are merged into the older one by the next', async () => {
    const github = await serveGithub();
    await report(github, RED, run(1));
    const second = await serveGithub();
    await report(second, RED, run(2));
    github.addComment(PULL_REQUEST, body(second));
    await report(github, GREEN, run(3));
    expect(headline(body(github))).toContain('✅');
    expect(readComment(body(github)).entries.map((entry) => entry.run)).toEqual([1, 2, 3]);
  });

  test.each([
    { what: 'broken off', answer: 'reset' },
    { what: 'lost by the server', answer: { status: 502, text: '<html>' } },
  ] as const)('one whose write is $what reads again before it writes', async ({ answer }) => {
    const github = await serveGithub();
    await report(github, RED, run(1));
    github.fail({ request: /^PATCH/, times: 1, answer });
    const { said } = await report(github, GREEN, run(2));
    expect(said).toEqual([]);
    expect(headline(body(github))).toContain('✅');
    const order = github.requests.map(({ method }) => method).join(' ');
    expect(order).toMatch(/PATCH POST? ?GET .*PATCH|PATCH GET .*PATCH/);
  });

  test('one whose first comment was made although the answer was lost makes no second one', async () => {
    const github = await serveGithub();
    github.fail({ request: /^POST .*comments/, times: 1, answer: { status: 502, text: '' } });
    github.onRequest = ({ method, path, body: sent }) => {
      if (method !== 'POST' || !path.endsWith('/comments')) return;
      github.onRequest = undefined;
      github.addComment(PULL_REQUEST, String((sent as { body: string }).body));
    };
    await report(github, RED);
    expect(headline(body(github))).toContain('🔴');
  });
});

describe('a failure is one sentence, and never more', () => {
  test('that names the failure and what to do', () =>
    expectPairs('comment-warnings.txt', async (line) => {
      const {
        request,
        head = 'octo-org/shop',
        event = 'pull_request',
        actor,
        is = 'red',
        ...answer
      } = JSON.parse(line);
      const github = await serveGithub();
      github.fail({ request: new RegExp(request), answer });
      const payload = { pull_request: { number: 42, head: { repo: { full_name: head } } } };
      const { said, commentUrl } = await report(github, RESULTS[is as 'red'], {
        event: { name: event, payload, actor },
      });
      expect(commentUrl).toBe('');
      return said;
    }));

  test('about an event without a pull request, which costs no request', async () => {
    const github = await serveGithub();
    const { said } = await report(github, RED, { event: { name: 'schedule', payload: {} } });
    expect(said).toEqual([
      expect.stringMatching(/^notice: no pull request comment: .*"schedule".*"pr-number"/),
    ]);
    expect(github.requests).toEqual([]);
  });

  test('about a missing token, if a comment was expected', async () => {
    const github = await serveGithub();
    const empty = { token: '' };
    const says = 'no pull request comment: the input "github-token" is empty';
    expect((await report(github, RED, empty)).said).toEqual([says]);
    expect((await report(github, GREEN, empty)).said).toEqual([]);
    expect(github.requests).toEqual([]);
  });

  test('or none, if the run is cancelled during the write', async () => {
    const github = await serveGithub();
    github.fail({ request: /comments/, answer: 'hang' });
    const cancel = new AbortController();
    github.onRequest = () => setTimeout(() => cancel.abort(), 50);
    const { said, commentUrl } = await report(github, RED, { cancelled: cancel.signal });
    expect(said).toEqual([]);
    expect(commentUrl).toBe('');
  });

  test.each([
    [0, 24_000],
    [45_000, 14_000],
    [120_000, 10_000],
  ])('a run that ends %s ms after its timeout publishes for at most %s ms', (late, most) => {
    expect(publishingMs({ run: { elapsedMs: 5_000 + late, timeoutMs: 5_000 } } as View)).toBe(most);
  });

  test('a run that was cancelled still writes what it knows', async () => {
    const github = await serveGithub();
    const { publisher } = desk({ github, cancelled: AbortSignal.abort() });
    expect(await publisher.comment(viewOf(RED))).not.toBe('');
  });
});
