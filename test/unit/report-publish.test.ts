import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createRedactor } from '../../src/base/redact.ts';
import type { RunResult } from '../../src/model/result.ts';
import type { Told } from '../../src/publish/publish.ts';
import { teardownsIn } from '../../src/report/comment-state.ts';
import { startGithub } from '../stub/github.ts';
import { poison } from '../stub/poison.ts';
import { desk, PULL_REQUEST } from '../stub/publishing.ts';
import { schemaErrors } from '../stub/report-schema.ts';
import { deadlock, FINISHED_AT, forced, gone, runOf } from '../stub/results.ts';

const RED = runOf([deadlock()]);
const KIB = 1_024;

const told = (result: RunResult): Told => ({ result });

describe('publishing', () => {
  test('writes report.json, report.md and the summary, and says where', async () => {
    const { publisher, contents, said } = desk();
    expect(await publisher.files(told(RED))).toEqual({
      reportJsonPath: '/reports/report.json',
      reportMarkdownPath: '/reports/report.md',
    });
    expect(schemaErrors(JSON.parse(contents.get('/reports/report.json') ?? ''))).toEqual([]);
    expect(contents.get('/reports/report.md')).toContain('is stuck');
    expect(contents.get('/summary.md')).toContain('run 812, attempt 1');
    expect(said).toEqual([]);
  });

  test('adds to what the step has already written', async () => {
    const { publisher, contents } = desk();
    contents.set('/summary.md', 'Hello');
    await publisher.files(told(RED));
    expect(contents.get('/summary.md')).toMatch(/^Hello\n\n### 🔴/);
  });

  test('counts what the step has already written, in bytes', async () => {
    const { publisher, contents } = desk();
    contents.set('/summary.md', 'ä'.repeat(449 * KIB));
    await publisher.files(told(RED));
    const summary = contents.get('/summary.md') ?? '';
    expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(900 * KIB);
    expect(summary).toContain('shortened');
  });

  test('leaves a summary alone that has no room', async () => {
    const { publisher, contents, said } = desk();
    contents.set('/summary.md', 'x'.repeat(900 * KIB));
    await publisher.files(told(RED));
    expect(contents.get('/summary.md')).toHaveLength(900 * KIB);
    expect(said).toEqual([expect.stringMatching(/^warning: .*is full/)]);
  });

  test('a second time replaces the first', async () => {
    const { publisher, contents } = desk();
    contents.set('/summary.md', 'Grüße\n');
    await publisher.files(told(RED));
    await publisher.files(told(runOf([forced()])));
    const summary = contents.get('/summary.md') ?? '';
    expect(summary).toMatch(/^Grüße\n\n\n### 🟡/);
    expect(summary).not.toContain('🔴');
  });

  test('works without a summary file', async () => {
    const { publisher, contents, said } = desk({ summaryFile: undefined });
    await publisher.files(told(RED));
    expect(said).toEqual([]);
    expect([...contents.keys()]).toEqual(['/reports/report.json', '/reports/report.md']);
  });

  test('says in the summary why the gate could not work, safely, and has no report then', async () => {
    const { publisher, contents } = desk();
    const failure = {
      message: 'cannot get namespace "x": 401 <!-- namespace-teardown-gate:v1 key=0 -->\n# @team',
      hints: ['Look at `it`.'],
      at: FINISHED_AT,
    };
    await publisher.files({ failure, elapsedMs: 1 });
    expect([...contents.keys()]).toEqual(['/summary.md']);
    const summary = contents.get('/summary.md') ?? '';
    expect(summary).toMatch(/^### 🔴 This run could not look/);
    expect(summary).not.toMatch(/<!--|^# |@team|`/m);
    expect(summary).toContain('cannot get namespace');
  });

  const denied = async (): Promise<never> => {
    throw Object.assign(new Error("EACCES: permission denied, open '/x'"), { code: 'EACCES' });
  };

  test('goes on when a file cannot be written, with a warning each', async () => {
    const { publisher, contents, said } = desk({ files: { write: denied } });
    expect(await publisher.files(told(RED))).toEqual({
      reportJsonPath: '',
      reportMarkdownPath: '',
    });
    expect(said).toEqual([
      expect.stringMatching(/report\.json: EACCES.*report-dir/),
      expect.stringMatching(/report\.md: EACCES.*report-dir/),
    ]);
    expect(contents.get('/summary.md')).toContain('is stuck');
  });

  test('goes on when the summary cannot be written, and never changes the verdict', async () => {
    const before = JSON.stringify(RED);
    const { publisher, said } = desk({ files: { append: denied } });
    expect(await publisher.files(told(RED))).toMatchObject({
      reportJsonPath: '/reports/report.json',
    });
    expect(said).toEqual([expect.stringContaining('could not write the job summary')]);
    expect(JSON.stringify(RED)).toBe(before);
  });
});

test('on real files, in a folder that is not there yet', async () => {
  const home = await mkdtemp(join(tmpdir(), 'publish-'));
  try {
    const summaryFile = join(home, 'summary.md');
    await writeFile(summaryFile, 'Hello');
    const reportDir = join(home, 'a', 'b');
    const { publisher, said } = desk({ files: 'real', summaryFile, reportDir });
    const { reportJsonPath } = await publisher.files(told(RED));
    await publisher.files(told(runOf([gone()])));
    expect(said).toEqual([]);
    expect(await readFile(summaryFile, 'utf8')).toMatch(/^Hello\n\n### ✅ [^🔴]*$/u);
    expect(JSON.parse(await readFile(reportJsonPath, 'utf8'))).toMatchObject({
      outcome: 'deleted',
    });
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

describe('a secret in any text', () => {
  // Characters that every encoder on the way changes: a secret must be gone before it is encoded.
  const SECRET = 's3cr3t.value_with:signs|and<more>@home';
  const BEARER = 'Bearer abcdefghijklmnop.qrstuvwx-yz_0123456789';
  const secret = (text: string): string => `${text} ${SECRET} ${BEARER}`;
  const failure = { message: secret('cannot'), hints: [secret('try')], at: FINISHED_AT };

  test.each<{ what: string; given: Told }>([
    { what: 'of the cluster', given: told(poison(RED, secret)) },
    { what: 'of a failure', given: { failure, elapsedMs: 1 } },
  ])('$what is in no file, no summary, no comment and no log line', async ({ given }) => {
    const github = await startGithub();
    try {
      const redactor = createRedactor();
      redactor.add(SECRET);
      const names = { workflow: SECRET, job: SECRET, namespaces: [SECRET], matrix: { a: SECRET } };
      const { publisher, contents, said } = desk({ github, redactor, ...names });
      await publisher.files(given);
      await publisher.comment(given);
      const body = github.commentsOn(PULL_REQUEST)[0]?.body ?? '';
      expect(teardownsIn(body)).toHaveLength(1);
      const everything = [...contents.values(), body, ...said].join('\n');
      const all = `${everything}\n${JSON.stringify(teardownsIn(body))}`;
      const decoded = all.replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)));
      for (const text of [all, decoded]) {
        expect(text).not.toContain('s3cr3t');
        expect(text).not.toContain('qrstuvwx');
      }
      expect(decoded).toContain('***');
    } finally {
      await github.close();
    }
  });
});
