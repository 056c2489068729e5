import { tmpdir } from 'node:os';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { RunResult } from '../../src/model/result.ts';
import {
  addTeardown,
  currentRows,
  type Teardown,
  teardownsIn,
} from '../../src/report/comment-state.ts';
import { type Failure, viewOf } from '../../src/report/view.ts';
import type { Github } from '../stub/github.ts';
import { expectPairs } from '../stub/pairs.ts';
import { type DeskOptions, desk, PULL_REQUEST, report, teardown } from '../stub/publishing.ts';
import { deadApiService, deadlock, FINISHED_AT, gone, runOf, settled } from '../stub/results.ts';
import { serveGithub } from '../stub/serve.ts';

const RED = runOf([{ ...deadlock(), elapsedMs: 302_000 }]);
const GREEN = runOf([gone()]);
const YELLOW = runOf([settled('recreated', 'warn')]);
const LENIENT = runOf([{ ...deadlock(), verdict: 'warn' }]);
const FAILED: Failure = {
  message: 'cannot get namespace "x" on https://kind.example:6443: 401 Unauthorized',
  hints: ['The credentials are refused. @octocat <img src=x>'],
  at: FINISHED_AT,
  elapsedMs: 1_000,
};

/** The only comment there is. */
function body(github: Github, issue = PULL_REQUEST): string {
  const [only, ...more] = github.commentsOn(issue);
  expect(more).toEqual([]);
  return only?.body ?? '';
}

function headline(text: string): string {
  return /^#{3} (.*)$/m.exec(text)?.[1] ?? '';
}

/** Of a cluster of its own. */
function on(
  uid: string | undefined,
  result: RunResult,
  more: Partial<RunResult['cluster']> = {},
): RunResult {
  return {
    ...result,
    cluster: { ...result.cluster, ...(uid === undefined ? {} : { uid }), ...more },
  };
}

/** A report in a line of comment-histories.txt. */
interface Reported
  extends Pick<
    DeskOptions,
    'commentKey' | 'job' | 'matrix' | 'mode' | 'namespaces' | 'selector' | 'workflow'
  > {
  is: 'red' | 'green' | 'failed';
  /** Names of the namespaces in the result. */
  names?: string[];
  /** UID of kube-system. */
  cluster?: string;
  server?: string;
  /** Ages of the cluster and of the job. */
  clusterMinutes?: number;
  jobMinutes?: number;
  id?: number;
  number?: number;
  attempt?: number;
}

async function reportAll(github: Github, line: string): Promise<string[]> {
  const headlines: string[] = [];
  for (const [index, given] of (JSON.parse(line) as Reported[]).entries()) {
    const { is, names, cluster, server, clusterMinutes, jobMinutes, id, ...more } = given;
    const { number = id, attempt = 1, ...options } = more;
    const resultOf = (name: string) => (is === 'red' ? { ...deadlock(), name } : gone(name));
    const whole = names === undefined ? (is === 'red' ? RED : GREEN) : runOf(names.map(resultOf));
    const finishedAt = new Date(Date.parse(FINISHED_AT) + index * 60_000).toISOString();
    const result = on(
      cluster,
      { ...whole, finishedAt },
      {
        ...(server === undefined ? {} : { server }),
        ...(clusterMinutes === undefined
          ? {}
          : {
              createdAt: new Date(Date.parse(FINISHED_AT) - clusterMinutes * 60_000).toISOString(),
            }),
      },
    );
    await report(github, is === 'failed' ? FAILED : result, {
      ...options,
      ...(jobMinutes === undefined ? {} : { startedAt: Date.now() - jobMinutes * 60_000 }),
      run: { id: id ?? 9_000, number: number ?? 812, attempt },
    });
    headlines.push(
      github
        .commentsOn(PULL_REQUEST)
        .map((one) => headline(one.body))
        .join(' | '),
    );
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

test('a comment after reports of several runs, jobs and clusters', () =>
  expectPairs('comment-histories.txt', async (line) => {
    const github = await serveGithub();
    const headlines = await reportAll(github, line);
    const [first] = github.commentsOn(PULL_REQUEST);
    const text = first?.body ?? '';
    return {
      headlines,
      rows: (text.match(/^- .*\[run .*$/gm) ?? []).map(shown),
      history: shown(/^.*Teardowns: .*$/m.exec(text)?.[0] ?? ''),
      reports: (text.match(/^<!-- namespace-teardown-gate:story /gm) ?? []).length,
      stored: teardownsIn(text).map(
        ({ number, attempt, isPass }) => `${number}.${attempt} ${isPass}`,
      ),
    };
  }));

describe('when a comment is written', () => {
  test.each([
    { mode: 'off', result: RED, comments: 0 },
    { mode: 'off', result: GREEN, comments: 0 },
    { mode: 'on-failure', result: RED, comments: 1 },
    // With fail-on: never.
    { mode: 'on-failure', result: LENIENT, comments: 1 },
    { mode: 'on-failure', result: YELLOW, comments: 0 },
    { mode: 'on-failure', result: GREEN, comments: 0 },
    { mode: 'on-failure', result: FAILED, comments: 1 },
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

  test('a cancelled run does not change an existing comment', async () => {
    const github = await serveGithub();
    await report(github, RED);
    const before = body(github);
    await report(github, runOf([settled('cancelled', 'fail')]), { run: { id: 9_001 } });
    expect(body(github)).toBe(before);
  });
});

describe('a comment over time', () => {
  test('counts a run once, however often it is published', async () => {
    const github = await serveGithub();
    const { publisher } = desk({ github });
    await publisher.comment(viewOf(RED), true);
    await publisher.comment(viewOf(runOf([{ ...deadlock(), outcome: 'forced', verdict: 'warn' }])));
    expect(teardownsIn(body(github))).toMatchObject([{ outcome: 'forced' }]);
  });
});

describe('two clusters, jobs or gates in one comment', () => {
  test('several failed teardowns: the worst is visible, the others are folded', async () => {
    const github = await serveGithub();
    const commentKey = 'all';
    await report(github, runOf([deadlock()]), { commentKey, job: 'a' });
    await report(github, runOf([deadApiService()]), {
      commentKey,
      job: 'b',
      namespaces: ['preview-pr-57'],
    });
    await report(github, FAILED, { commentKey, job: 'c' });
    const text = body(github);
    expect(headline(text)).toBe('🔴 3 of 3 teardowns did not finish');
    for (const said of ['preview-pr-42', 'preview-pr-57', 'The teardown gate could not work']) {
      expect(text).toContain(said);
    }
    const open = text.replace(/<details>[\s\S]*?<\/details>/g, '');
    expect(open).not.toContain('The teardown gate could not work');
  });
});

test('a failed job without permission to write: the comment does not claim that the job passed in the last run', async () => {
  const github = await serveGithub();
  const say = (result: RunResult, job: string, id: number) =>
    report(github, result, { commentKey: 'all', job, mode: 'always', run: { id, number: id } });
  for (const job of ['a', 'b']) await say(on(`uid-${job}`, GREEN), job, 1);
  let isRefused = true;
  const test = (line: string): boolean => isRefused && /^(POST|PATCH)/.test(line);
  github.fail({ request: Object.assign(/./, { test }), answer: { status: 403, body: {} } });
  const { said } = await say(on('uid-a', RED), 'a', 2);
  isRefused = false;
  await say(on('uid-b', GREEN), 'b', 2);
  expect(said).toContainEqual(expect.stringMatching(/^warning: could not write the comment/));
  expect(headline(body(github))).toBe('✅ All 2 teardowns finished, 1 of them in an earlier run');
});

describe('a run that could not examine the namespaces', () => {
  test('is reported, escaped, and turns no comment green', async () => {
    const github = await serveGithub();
    await report(github, on('uid-a', RED), { run: { id: 1, number: 1 } });
    await report(github, FAILED, { run: { id: 2, number: 2 } });
    const text = body(github);
    expect(headline(text)).toMatch(/^🔴 .* is stuck: still there after 5m 02s/);
    expect(text).toContain('The teardown gate could not work');
    expect(text).not.toMatch(/@octocat|<img/);
    await report(github, on('uid-a', GREEN), { run: { id: 3, number: 3 } });
    expect(headline(body(github))).toContain('✅');
  });
});

describe('text that people wrote', () => {
  const edited = (github: Github, change: (text: string) => string): void => {
    const [comment] = github.commentsOn(PULL_REQUEST);
    if (comment !== undefined) comment.body = change(comment.body);
  };

  test('a comment with a note above the marker and with Windows line ends is found again', async () => {
    const github = await serveGithub();
    await report(github, RED, { run: { id: 1 } });
    edited(github, (text) => `I look into this. @team\n\n${text}`.replaceAll('\n', '\r\n'));
    await report(github, GREEN, { run: { id: 2 } });
    expect(headline(body(github))).toContain('✅');
    expect(teardownsIn(body(github))).toHaveLength(2);
  });

  test('a note above or below the report stays in its place, whichever job writes', async () => {
    const github = await serveGithub();
    await report(github, RED, { run: { id: 1 } });
    edited(
      github,
      (text) => `I look into this. @team\n\n${text}\n\nSee [the log](x).\n- [ ] todo\n`,
    );
    for (const [id, result] of [RED, GREEN, FAILED].entries()) {
      await report(github, result, { run: { id: 2 + id } });
      expect(body(github).split('\n')[0]).toBe('I look into this. @team');
      expect(body(github)).toMatch(/\n-->\n+See \[the log\]\(x\)\.\n- \[ \] todo$/);
      expect(teardownsIn(body(github))).toHaveLength(2 + id);
    }
    edited(github, (text) => text.replace(/^I look.*\n/, 'Found it.\n'));
    await report(github, GREEN, { run: { id: 9 } });
    expect(body(github).split('\n')[0]).toBe('Found it.');
    expect(body(github)).not.toContain('I look into this');
  });

  test('a note that leaves less room than the report needs', async () => {
    const github = await serveGithub();
    await report(github, RED, { run: { id: 1 } });
    const note = 'n'.repeat(20_000);
    edited(github, (text) => `${text}\n\n${note}`);
    const many = Array.from({ length: 60 }, (_, at) => ({
      ...deadlock(),
      name: `preview-${at}-${'x'.repeat(50)}`,
    }));
    const { said } = await report(github, runOf(many), { run: { id: 2 } });
    expect(said).toEqual([]);
    expect(body(github)).toContain(note);
    expect(body(github).length).toBeLessThan(65_536);
  });

  test('a section that a person deleted is replaced by one line', async () => {
    const github = await serveGithub();
    await report(github, RED, { run: { id: 2, number: 2 } });
    edited(github, (text) => text.replace(/<!-- \S+:story [\s\S]*:end -->/, 'Done!'));
    await report(github, GREEN, { run: { id: 1, number: 1 } });
    expect(headline(body(github))).toMatch(/^🔴 .*stuck after 5m 02s: .*\[run 2\]/);
  });

  test("300 comments of another user with the gate's marker cost one request", async () => {
    const github = await serveGithub();
    await report(github, RED, { run: { id: 1 } });
    const copy = body(github);
    for (let at = 0; at < 300; at++)
      github.addComment(PULL_REQUEST, copy, { login: 'mallory', type: 'User' });
    const before = github.requests.length;
    await report(github, GREEN, { run: { id: 2 } });
    const asked = github.requests.slice(before).filter(({ path }) => path === '/graphql');
    expect(asked).toHaveLength(1);
    expect(headline(github.commentsOn(PULL_REQUEST)[0]?.body ?? '')).toContain('✅');
  });

  test('a damaged line of the stored state does not affect the other lines', async () => {
    const github = await serveGithub();
    for (const id of [1, 2, 3]) await report(github, RED, { run: { id, number: id } });
    edited(github, (text) => {
      const lines = text.split('\n');
      const start = lines.indexOf('<!-- namespace-teardown-gate:state');
      lines[start + 2] = '!!! not base64 -->';
      return lines.join('\n');
    });
    await report(github, GREEN, { run: { id: 4, number: 4 } });
    expect(headline(body(github))).toContain('✅');
    expect(teardownsIn(body(github)).map(({ number }) => number)).toContain('1');
  });

  test.each([
    '',
    'bm9uc2Vuc2U=',
    'W251bGxd',
    'eyJvdXRjb21lIjoiZ29uZSJ9',
    '!!!',
    'a'.repeat(10_000),
  ])('the stored state "%s" is ignored', async (memory) => {
    const github = await serveGithub();
    await report(github, RED, { run: { id: 1 } });
    edited(github, (text) => text.replace(/(gate:state\n)[\s\S]*?(\n-->)/, `$1${memory}$2`));
    await report(github, GREEN, { run: { id: 2 } });
    expect(teardownsIn(body(github))).toHaveLength(1);
    expect(headline(body(github))).toContain('✅');
  });
});

describe('whose comment it is', () => {
  test("a comment of another user with the gate's marker is not changed", async () => {
    const github = await serveGithub();
    await report(github, RED);
    const ours = github.commentsOn(PULL_REQUEST)[0];
    const before = ours?.body ?? '';
    if (ours !== undefined) ours.user = { login: 'mallory', type: 'User' };
    await report(github, GREEN, { mode: 'always' });
    const comments = github.commentsOn(PULL_REQUEST);
    expect(comments).toHaveLength(2);
    expect(comments[0]?.body).toBe(before);
    expect(comments[1]?.body).toContain('✅');
  });

  test("a quotation of the gate's comment is not changed", async () => {
    const github = await serveGithub();
    await report(github, RED);
    const quote = body(github).replaceAll(/^/gm, '> ');
    github.addComment(PULL_REQUEST, `${quote}\n\nWhat is this?`);
    await report(github, GREEN);
    expect(github.commentsOn(PULL_REQUEST)[1]?.body).toMatch(/^> /);
  });

  test.each([
    { what: 'explains its marker', of: (text: string) => text.split('\n')[0] },
    { what: 'has its source in a block of code', of: (text: string) => `\`\`\`\n${text}\n\`\`\`` },
  ])('a comment of the same person that $what stays', async ({ of }) => {
    const github = await serveGithub({ login: 'octocat' });
    await report(github, RED);
    const theirs = `Look at this:\n\n${of(body(github))}\n\nWhat is this?`;
    github.addComment(PULL_REQUEST, theirs, { login: 'octocat', type: 'User' });
    await report(github, GREEN);
    expect(github.commentsOn(PULL_REQUEST).map((one) => one.body)).toEqual([
      expect.stringContaining('✅'),
      theirs,
    ]);
  });

  test.each([
    { who: 'an app', login: 'my-app[bot]' },
    { who: 'a person with a token', login: 'octocat' },
  ])('the comment of $who is found again', async ({ login }) => {
    const github = await serveGithub({ login });
    await report(github, RED);
    await report(github, GREEN, { run: { id: 9_001 } });
    expect(headline(body(github))).toContain('✅');
  });

  test('the comment of a person with the name of an app is not changed', async () => {
    const github = await serveGithub({ login: 'my-app[bot]' });
    await report(github, RED);
    const [comment] = github.commentsOn(PULL_REQUEST);
    if (comment !== undefined) comment.user = { login: 'my-app', type: 'User' };
    await report(github, GREEN);
    expect(headline(body(github))).toContain('🔴');
  });

  test('if the user of the token is unknown, the comment of a person named like a bot is not changed', async () => {
    const github = await serveGithub({ isViewerKnown: false });
    await report(github, RED);
    const [comment] = github.commentsOn(PULL_REQUEST);
    if (comment !== undefined) comment.user = { login: 'gitea-actions', type: 'User' };
    await report(github, GREEN);
    expect(headline(body(github))).toContain('🔴');
  });

  test("if the user of the token is unknown, the comment of the workflow bot is the gate's", async () => {
    const github = await serveGithub({ isViewerKnown: false });
    await report(github, RED);
    await report(github, GREEN, { run: { id: 9_001 } });
    expect(headline(body(github))).toContain('✅');
  });

  test('an update that is refused becomes a new comment, once', async () => {
    const github = await serveGithub();
    await report(github, RED);
    github.fail({ request: /^PATCH/, answer: { status: 403, body: { message: 'Forbidden' } } });
    const { said } = await report(github, RED, { run: { id: 9_001 } });
    expect(github.commentsOn(PULL_REQUEST)).toHaveLength(2);
    expect(said).toEqual([]);
  });
});

describe('writers at the same time', () => {
  const entries = (github: Github): number => teardownsIn(body(github)).length;

  test.each([2, 12])(
    '%i jobs that create at the same time end with one comment that has every report',
    async (count) => {
      const github = await serveGithub();
      const jobs = Array.from({ length: count }, (_, at) => `job-${at}`);
      await Promise.all(jobs.map((job) => report(github, RED, { commentKey: 'all', job })));
      expect(entries(github)).toBe(count);
      expect(headline(body(github))).toBe(`🔴 ${count} of ${count} teardowns did not finish`);
    },
  );

  test('a job that read before and writes after another job loses no report', async () => {
    const github = await serveGithub();
    await report(github, RED, { commentKey: 'all', job: 'first' });
    const before = body(github);
    // Somebody who has seen neither of the two writes over both.
    let isOverwritten = false;
    github.onRequest = ({ method, path }) => {
      if (isOverwritten || method !== 'GET' || !/comments\/\d+$/.test(path)) return;
      isOverwritten = true;
      const [comment] = github.commentsOn(PULL_REQUEST);
      if (comment !== undefined) comment.body = before;
    };
    await report(github, GREEN, { commentKey: 'all', job: 'second' });
    expect(isOverwritten).toBe(true);
    expect(entries(github)).toBe(2);
  });

  /** The comment before and after the other job has written its red row. */
  async function withRed(): Promise<{ github: Github; before: string; after: string }> {
    const github = await serveGithub();
    await report(github, GREEN, { commentKey: 'all', mode: 'always', job: 'first' });
    const before = body(github);
    await report(github, RED, { commentKey: 'all', job: 'red' });
    const after = body(github);
    write(github, before);
    return { github, before, after };
  }

  function write(github: Github, text: string): void {
    const [comment] = github.commentsOn(PULL_REQUEST);
    if (comment !== undefined) comment.body = text;
  }

  const green = { commentKey: 'all', job: 'green', mode: 'always' } as const;
  const limit = { message: 'You have exceeded a secondary rate limit' };
  test.each([
    { what: 'turned away', answer: { status: 403, headers: { 'retry-after': '6' }, body: limit } },
    { what: 'not answered', answer: 'hang' },
    { what: 'broken off', answer: 'reset' },
    { what: 'lost by the server', answer: { status: 502, text: '<html>' } },
  ] as const)(
    'a job whose write is $what reads the comment again before it writes',
    async ({ answer }) => {
      const { github, after } = await withRed();
      github.fail({ request: /^PATCH/, times: 1, answer });
      github.onRequest = ({ method }) => {
        if (method !== 'PATCH') return;
        write(github, after);
        github.onRequest = undefined;
      };
      await report(github, GREEN, { ...green, callTimeoutMs: 1_000 });
      expect(entries(github)).toBe(3);
      expect(headline(body(github))).toBe('🔴 1 of 3 teardowns did not finish');
    },
  );

  test('a job whose first write arrives after its second one restores the comment', async () => {
    const { github, after } = await withRed();
    github.fail({ request: /^PATCH/, times: 1, answer: 'hang' });
    const sent: string[] = [];
    let lists = 0;
    github.onRequest = ({ method, path, body: given }) => {
      if (method === 'PATCH') sent.push(String((given as JsonObject)['body']));
      if (method === 'PATCH' && sent.length === 1) write(github, after);
      // The second list is the late look: by then the first write has arrived.
      if (method === 'GET' && /issues\/\d+\/comments/.test(path) && ++lists === 2) {
        write(github, sent[0] ?? '');
      }
    };
    await report(github, GREEN, { ...green, callTimeoutMs: 1_000 });
    expect(lists).toBeGreaterThan(1);
    expect(headline(body(github))).toBe('🔴 1 of 3 teardowns did not finish');
  });

  test('a job whose first comment arrives after its second one merges both', async () => {
    const github = await serveGithub();
    github.fail({ request: /^POST .*comments/, times: 1, answer: 'hang' });
    let sent: string | undefined;
    let lists = 0;
    github.onRequest = ({ method, path, body: given }) => {
      if (method === 'POST' && path.endsWith('/comments'))
        sent ??= String((given as JsonObject)['body']);
      // Before and after each of the two; the last one is the late look.
      if (method === 'GET' && /issues\/\d+\/comments/.test(path) && ++lists === 4) {
        github.addComment(PULL_REQUEST, sent ?? '');
      }
    };
    await report(github, GREEN, { ...green, callTimeoutMs: 1_000 });
    expect(lists).toBeGreaterThan(3);
    expect(entries(github)).toBe(1);
  });

  test('a failed run reads the comment again at its end, and restores reports that a late write removed', async () => {
    const { github, before } = await withRed();
    let lists = 0;
    github.onRequest = ({ method, path }) => {
      if (method === 'GET' && /issues\/\d+\/comments/.test(path) && ++lists === 2)
        write(github, before);
    };
    await report(github, RED, { commentKey: 'all', job: 'red' });
    expect(lists).toBeGreaterThan(1);
    expect(headline(body(github))).toBe('🔴 1 of 2 teardowns did not finish');
    expect(body(github)).toContain('is stuck: still there after 5m 02s');
  });

  test('a passed run restores the failed row that it has read', async () => {
    const { github, before, after } = await withRed();
    write(github, after);
    let isLost = false;
    github.onRequest = ({ method, path }) => {
      if (isLost || method !== 'GET' || !/comments\/\d+$/.test(path)) return;
      isLost = true;
      const own = teardownsIn(body(github)).filter(({ where }) => !/red/.test(where));
      write(
        github,
        before.replace(
          /(gate:state\n)[\s\S]*?(\n-->)/,
          `$1${own.map((one) => Buffer.from(JSON.stringify(one)).toString('base64')).join('\n')}$2`,
        ),
      );
    };
    await report(github, GREEN, { commentKey: 'all', job: 'green', mode: 'always' });
    expect(isLost).toBe(true);
    expect(headline(body(github))).toBe('🔴 1 of 3 teardowns did not finish');
    expect(body(github)).toContain('is stuck: still there after 5m 02s');
  });

  test('give up with a message if no write is permitted', async () => {
    const github = await serveGithub();
    await report(github, RED, { commentKey: 'all', job: 'first' });
    const before = body(github);
    github.onRequest = ({ method }) => {
      const [comment] = github.commentsOn(PULL_REQUEST);
      if (method === 'GET' && comment !== undefined) comment.body = before;
    };
    const { said } = await report(github, RED, { commentKey: 'all', job: 'second' });
    expect(said).toEqual([
      expect.stringMatching(/^warning: .*others write into it at the same time/),
    ]);
  });

  test('duplicates of earlier writers are merged', async () => {
    const github = await serveGithub();
    await report(github, RED, { commentKey: 'all', job: 'first' });
    const [first] = github.commentsOn(PULL_REQUEST);
    const other = await serveGithub();
    await report(other, RED, { commentKey: 'all', job: 'second' });
    github.addComment(PULL_REQUEST, body(other));
    github.addComment(PULL_REQUEST, first?.body ?? '');
    await report(github, GREEN, { commentKey: 'all', job: 'first', run: { id: 9_001 } });
    expect(github.commentsOn(PULL_REQUEST)).toMatchObject([{ id: first?.id }]);
    expect(currentRows(teardownsIn(body(github))).rows.map(({ where }) => where)).toEqual([
      'preview / second',
      'preview / first',
    ]);
  });
});

test('many jobs with long sections stay within the limit of a host, and all have their row', async () => {
  const github = await serveGithub();
  const commentKey = 'all';
  const many = Array.from({ length: 40 }, (_, at) => ({
    ...deadlock(),
    name: `preview-${'x'.repeat(50)}-${at}`,
  }));
  for (let at = 0; at < 14; at++)
    await report(github, runOf(many), { commentKey, job: `job-${at}` });
  const text = body(github);
  expect(text.length).toBeLessThanOrEqual(60_000);
  expect(headline(text)).toMatch(/^🔴 \d+ of \d+ teardowns did not finish/);
  expect(text).toContain('40 namespaces: stuck');
});

test('a comment without room for all failed jobs does not turn green', () => {
  let all: Teardown[] = [];
  const tell = (result: RunResult, run: string, job: string): void => {
    all = addTeardown(all, teardown(result, { run, job, where: `preview / ${job}` }), []);
  };
  const jobs = Array.from({ length: 60 }, (_, at) => `part-${at}`);
  for (const job of jobs) {
    tell(RED, '1', job);
    expect(all.map((entry) => entry.job)).toContain(job);
  }
  for (const { job } of currentRows(all).rows) if (job !== 'rest') tell(GREEN, '2', job);
  expect(currentRows(all).rows.filter(({ isPass }) => !isPass)).toMatchObject([{ job: 'rest' }]);
});

test('all namespaces of a run are in one comment', async () => {
  const github = await serveGithub();
  const namespaces = [gone('a'), deadlock(), { ...deadApiService(), name: 'c' }];
  await report(github, runOf(namespaces));
  for (const name of ['a', 'preview-pr-42', 'c']) expect(body(github)).toContain(`\`${name}\``);
});

test("the gate's comment is found among 250 others", async () => {
  const github = await serveGithub();
  for (let at = 0; at < 250; at++) {
    github.addComment(PULL_REQUEST, `chatter ${at}`, { login: 'octocat', type: 'User' });
  }
  await report(github, RED);
  await report(github, GREEN, { run: { id: 9_001 } });
  const ours = github.commentsOn(PULL_REQUEST).filter(({ body: text }) => text.startsWith('<!--'));
  expect(ours).toMatchObject([{ body: expect.stringContaining('✅') }]);
});

describe('a failure is one warning, and never more', () => {
  const refused = { status: 403, body: { message: 'Resource not accessible by integration' } };

  test('the warning names the failure and the remedy', () =>
    expectPairs('comment-warnings.txt', async (line) => {
      const { request, ...answer } = JSON.parse(line);
      const github = await serveGithub();
      github.fail({ request: new RegExp(request), answer });
      const { said, commentUrl } = await report(github, RED);
      expect(commentUrl).toBe('');
      return said;
    }));

  const pullRequest = (full_name: string) => ({
    pull_request: { number: 42, head: { repo: { full_name } } },
  });

  test.each([
    {
      who: 'a fork',
      event: { name: 'pull_request', payload: pullRequest('fork/shop') },
      says: 'from a fork a read-only token',
    },
    {
      who: 'Dependabot',
      event: {
        name: 'pull_request',
        payload: pullRequest('octo-org/shop'),
        actor: 'dependabot[bot]',
      },
      says: 'Dependabot started a read-only token',
    },
  ])('for $who it is a notice, because nothing can be fixed', async ({ event, says }) => {
    const github = await serveGithub();
    github.fail({ request: /POST .*comments/, answer: refused });
    const { said } = await report(github, RED, { event });
    expect(said).toEqual([expect.stringMatching(new RegExp(`^notice: .*${says}`))]);
  });

  test('a run of Dependabot on the base branch has no read-only token', async () => {
    const github = await serveGithub();
    github.fail({ request: /POST .*comments/, answer: refused });
    const payload = pullRequest('octo-org/shop');
    const event = { name: 'pull_request_target', payload, actor: 'dependabot[bot]' };
    const { said } = await report(github, RED, { event });
    expect(said.join()).toMatch(/^warning: .*pull-requests: write/);
  });

  test('without a token, the log says why there is no comment, if one was expected', async () => {
    const github = await serveGithub();
    const empty = { token: '' };
    const says = 'no pull request comment: the input "github-token" is empty';
    expect((await report(github, RED, empty)).said).toEqual([says]);
    expect((await report(github, GREEN, empty)).said).toEqual([]);
    expect(github.requests).toEqual([]);
  });

  test('5 s after a cancellation, no comment is written', async () => {
    const github = await serveGithub();
    const cancel = new AbortController();
    let now = 0;
    const options = { github, cancelled: cancel.signal, now: () => now };
    const { publisher } = desk(options);
    cancel.abort();
    now = 2_000;
    expect(await publisher.comment(viewOf(RED))).not.toBe('');
    // A read of the first attempt may still be under way.
    const writes = () => github.requests.filter(({ method }) => method !== 'GET').length;
    const before = writes();
    now = 5_000;
    expect(await publisher.comment(viewOf(RED))).toBe('');
    expect(writes()).toBe(before);
  });

  test('a run that is cancelled during the write logs nothing about it', async () => {
    const github = await serveGithub();
    github.fail({ request: /comments/, answer: 'hang' });
    const cancel = new AbortController();
    github.onRequest = () => setTimeout(() => cancel.abort(), 50);
    const { said, commentUrl } = await report(github, RED, { cancelled: cancel.signal });
    expect(said).toEqual([]);
    expect(commentUrl).toBe('');
  });
});

describe('which pull request', () => {
  test('there is none: a notice, and no request is sent', async () => {
    const github = await serveGithub();
    const { said } = await report(github, RED, { event: { name: 'schedule', payload: {} } });
    expect(said).toEqual([
      expect.stringMatching(/^notice: no pull request comment: a scheduled run.*pr-number/),
    ]);
    expect(github.requests).toEqual([]);
  });

  test('the input names a pull request of another repository: a notice, and no comment', async () => {
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

  const sha = '9f3c2e1a7b5d4c6e8f0a1b2c3d4e5f6a7b8c9d0e';

  test('is found for a merge, a deleted branch and a workflow run of a fork', async () => {
    const github = await serveGithub();
    github.addPull({
      number: 3,
      commits: [sha],
      mergedAt: '2026-03-02T10:00:00Z',
      mergeCommitSha: sha,
    });
    github.addPull({ number: 4, headRef: 'feature/x' });
    github.addPull({ number: 5, headRef: 'patch-1', headOwner: 'fork', headSha: sha });
    const run = {
      head_repository: { owner: { login: 'fork' } },
      head_branch: 'patch-1',
      head_sha: sha,
    };
    const events: { issue: number; event: NonNullable<DeskOptions['event']> }[] = [
      { issue: 3, event: { name: 'push', payload: { after: sha, ref: 'refs/heads/main' } } },
      { issue: 4, event: { name: 'delete', payload: { ref_type: 'branch', ref: 'feature/x' } } },
      {
        issue: 5,
        event: { name: 'workflow_run', payload: { workflow_run: { pull_requests: [], ...run } } },
      },
    ];
    for (const { issue, event } of events) {
      await report(github, RED, { event });
      expect(github.commentsOn(issue)).toHaveLength(1);
    }
  });

  test('cannot be found because of an error: one warning', async () => {
    const github = await serveGithub();
    github.fail({ request: /commits/, answer: { status: 500, body: { message: 'oops' } } });
    const event = { name: 'status', payload: { sha } };
    const { said } = await report(github, RED, { event });
    const failed = 'warning: could not read the pull requests of the commit: 500 oops.';
    expect(said).toEqual([`${failed} The job summary has the report.`]);
    // A folder cannot be written, as a full summary.
    const other = await report(github, RED, { event, summaryFile: tmpdir() });
    expect(other.said.at(-1)).toBe(`${failed} The step log has the report.`);
  });

  test('cannot be read with "issues: write" alone, which is enough for the comment', async () => {
    const github = await serveGithub();
    github.fail({ request: /GET .*\/pulls\/42/, answer: { status: 403, body: { message: 'no' } } });
    const { said } = await report(github, RED);
    expect(said).toEqual([]);
    expect(github.commentsOn(PULL_REQUEST)).toHaveLength(1);
  });
});

describe.each(['gitea', 'forgejo'] as const)('on %s', (flavour) => {
  test('the workflow finds its comment again, among many', async () => {
    const github = await serveGithub({ flavour });
    for (let at = 0; at < 120; at++) {
      github.addComment(PULL_REQUEST, 'chatter', { login: 'someone', type: '' });
    }
    await report(github, RED);
    const { said } = await report(github, GREEN, { run: { id: 9_001 } });
    const ours = github
      .commentsOn(PULL_REQUEST)
      .filter(({ body: text }) => text.startsWith('<!--'));
    expect(ours).toMatchObject([{ body: expect.stringContaining('✅') }]);
    expect(said).toEqual([]);
  });

  test('a token that may not read its user finds its comment again', async () => {
    const github = await serveGithub({ flavour, login: 'ci-bot', isViewerKnown: false });
    await report(github, RED, { run: { id: 1 } });
    const [first] = github.commentsOn(PULL_REQUEST);
    await report(github, GREEN, { run: { id: 2 } });
    expect(github.commentsOn(PULL_REQUEST)).toMatchObject([{ id: first?.id }]);
    expect(headline(body(github))).toContain('✅');
    expect(body(github)).not.toContain(github.token);
  });

  test('a copy of its comment by another user is not its comment', async () => {
    const github = await serveGithub({ flavour, login: 'ci-bot', isViewerKnown: false });
    await report(github, RED, { run: { id: 1 } });
    const [comment] = github.commentsOn(PULL_REQUEST);
    if (comment !== undefined) comment.user = { login: 'mallory', type: '' };
    await report(github, GREEN, { run: { id: 2 } });
    expect(headline(body(github))).toContain('🔴');
  });

  test('find the pull request of a merge, and of a deleted branch', async () => {
    const github = await serveGithub({ flavour });
    const sha = '9f3c2e1a7b5d4c6e8f0a1b2c3d4e5f6a7b8c9d0e';
    github.addPull({ number: 3, commits: [sha], mergedAt: '2026-03-02T10:00:00Z' });
    github.addPull({ number: 4, headRef: 'feature/x', closedAt: '2026-03-02T10:00:00Z' });
    for (let number = 5; number < 70; number++) github.addPull({ number, headRef: 'other' });
    const push = { name: 'push', payload: { after: sha, ref: 'refs/heads/main' } };
    await report(github, RED, { event: push });
    expect(github.commentsOn(3)).toHaveLength(1);
    const removed = {
      name: 'delete',
      payload: { ref_type: 'branch', ref: 'refs/heads/feature/x' },
    };
    await report(github, RED, { event: removed });
    expect(github.commentsOn(4)).toHaveLength(1);
  });

  test('two workflows without a name, with equal job names, have a comment each', async () => {
    const github = await serveGithub({ flavour });
    const file = (name: string): JsonObject =>
      flavour === 'gitea'
        ? { path: `${name}.yml@refs/heads/main` }
        : { workflow_id: `${name}.yml` };
    const tell = async (run: number, name: string, result: RunResult): Promise<void> => {
      const request = new RegExp(`/actions/runs/${run}$`);
      github.fail({ request, answer: { status: 200, body: file(name) } });
      await report(github, result, { workflow: '', run: { id: run } });
    };
    await tell(101, 'api', RED);
    await tell(102, 'web', RED);
    await tell(103, 'web', GREEN);
    expect(github.commentsOn(PULL_REQUEST).map((one) => headline(one.body).split(' ')[0])).toEqual([
      '🔴',
      '✅',
    ]);
  });

  test('two such workflows share a comment, with a row each, if their files may not be read', async () => {
    const github = await serveGithub({ flavour });
    const tell = (id: number, namespace: string, result: RunResult) =>
      report(github, result, { workflow: '', run: { id }, namespaces: [namespace] });
    await tell(101, 'api', RED);
    await tell(102, 'web', GREEN);
    expect(headline(body(github))).toBe('🔴 1 of 2 teardowns did not finish');
  });

  test('links to the run in the form of the host, and mentions neither GitHub nor a job summary', async () => {
    const github = await serveGithub({ flavour });
    const { said } = await report(github, RED, { run: { id: 77, number: 5 } });
    const page = `${github.host.serverUrl}/octo-org/shop/actions/runs/5${flavour === 'gitea' ? '?by_index=1' : ''})`;
    expect(body(github)).toContain(page);
    github.fail({ request: /comments/, answer: { status: 502, text: '<html>' } });
    const again = await report(github, RED, { run: { id: 78 } });
    for (const text of [body(github), ...said, ...again.said]) {
      expect(text).not.toMatch(/GitHub|job summary/i);
    }
  });
});
