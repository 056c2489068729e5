import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createRedactor, redactDeep } from '../../src/base/redact.ts';
import { readComment } from '../../src/report/comment.ts';
import { type Failure, type View, viewOf } from '../../src/report/view.ts';
import { startGithub } from '../stub/github.ts';
import { poison } from '../stub/poison.ts';
import { desk, PULL_REQUEST } from '../stub/publishing.ts';
import { schemaErrors } from '../stub/report-schema.ts';
import { deadlock, FINISHED_AT, forced, runOf } from '../stub/results.ts';

const RED = runOf([deadlock()]);
const KIB = 1_024;

describe('publishing', () => {
  test('writes the report files and the summary, and logs their paths', async () => {
    const { publisher, folder, read, said } = desk();
    const reportDir = join(folder, 'not', 'there', 'yet');
    expect(await publisher.files(viewOf(RED))).toMatchObject({
      'report.json': join(reportDir, 'report.json'),
      'report.md': join(reportDir, 'report.md'),
    });
    expect(schemaErrors(JSON.parse(read('not/there/yet/report.json')))).toEqual([]);
    expect(read('not/there/yet/report.md')).toContain('is stuck');
    expect(read('not/there/yet/report.xml')).toContain('<failure ');
    expect(read('not/there/yet/metrics.prom')).toContain('teardown_outcome');
    expect(read('summary.md')).toContain('run 812, attempt 1');
    expect(said).toEqual([]);
  });

  test('appends to the summary of the step, and replaces its own text the second time', async () => {
    const { publisher, read, write } = desk();
    write('summary.md', 'Grüße\n');
    await publisher.files(viewOf(RED));
    expect(read('summary.md')).toMatch(/^Grüße\n\n\n### 🔴/);
    await publisher.files(viewOf(runOf([forced()])));
    expect(read('summary.md')).toMatch(/^Grüße\n\n\n### 🟡[^🔴]*$/u);
  });

  test('counts the bytes that the step has already written, and changes no summary without room', async () => {
    const some = desk();
    some.write('summary.md', 'ä'.repeat(449 * KIB));
    await some.publisher.files(viewOf(RED));
    expect(Buffer.byteLength(some.read('summary.md'))).toBeLessThanOrEqual(900 * KIB);
    expect(some.read('summary.md')).toContain('shortened');
    const full = desk();
    full.write('summary.md', 'x'.repeat(900 * KIB));
    await full.publisher.files(viewOf(RED));
    expect(full.read('summary.md')).toHaveLength(900 * KIB);
    expect(full.said).toEqual([expect.stringMatching(/^warning: .*is full/)]);
  });

  test('works without a summary file', async () => {
    const { publisher, folder, said } = desk({ summaryFile: undefined });
    await publisher.files(viewOf(RED));
    expect(said).toEqual([]);
    expect(readdirSync(folder)).toEqual(['not']);
  });

  test('writes into the summary why the gate could not work, escaped, and no report', async () => {
    const { publisher, folder, read } = desk();
    const failure = {
      message: 'cannot get namespace "x": 401 <!-- namespace-teardown-gate:v1 key=0 -->\n# @team',
      hints: ['Look at `it`.'],
      at: FINISHED_AT,
    };
    await publisher.files(failure);
    expect(readdirSync(folder)).toEqual(['summary.md']);
    expect(read('summary.md')).toMatch(/^### 🔴 The teardown gate could not work/);
    expect(read('summary.md')).not.toMatch(/<!--|^# |@team|`/m);
    expect(read('summary.md')).toContain('cannot get namespace');
  });

  test('continues if a file cannot be written, with a warning each', async () => {
    const { publisher, read, said } = desk({ reportDir: '/dev/null/nope' });
    expect(await publisher.files(viewOf(RED))).toEqual({});
    const files = ['report\\.json', 'report\\.md', 'report\\.xml', 'metrics\\.prom'];
    expect(said).toEqual(
      files.map((file) => expect.stringMatching(new RegExp(`${file}: ENOTDIR.*report-dir`))),
    );
    expect(read('summary.md')).toContain('is stuck');
  });

  test('continues if the summary cannot be written, and never changes the verdict', async () => {
    const before = JSON.stringify(RED);
    const { publisher, said } = desk({ summaryFile: tmpdir() });
    expect((await publisher.files(viewOf(RED)))['report.json']).toMatch(/report\.json$/);
    expect(said).toEqual([expect.stringMatching(/could not write the job summary: EISDIR/)]);
    expect(JSON.stringify(RED)).toBe(before);
  });
});

describe('a secret in any text', () => {
  // Characters that every encoder on the way changes: a secret must be gone before it is encoded.
  const SECRET = 's3cr3t.value_with:signs|and<more>@home';
  const BEARER = 'Bearer abcdefghijklmnop.qrstuvwx-yz_0123456789';
  const secret = (text: string): string => `${text} ${SECRET} ${BEARER}`;
  const failure = { message: secret('cannot'), hints: [secret('try')], at: FINISHED_AT };
  const redactor = createRedactor();
  redactor.add(SECRET);
  // What is told is made of texts without secrets; names are the publisher's own to clean.
  const clean = viewOf(poison(RED, secret), redactor.redact);

  test.each<{ what: string; given: View | Failure }>([
    { what: 'of the cluster', given: clean },
    { what: 'of a failure', given: redactDeep(failure, redactor.redact) },
  ])('$what is in no file, no summary, no comment and no log line', async ({ given }) => {
    const github = await startGithub();
    try {
      const names = { workflow: SECRET, job: SECRET, namespaces: [SECRET], matrix: { a: SECRET } };
      const { publisher, read, said } = desk({ github, redactor, ...names });
      const paths = await publisher.files(given);
      await publisher.comment(given);
      const files = Object.values(paths).map((path) => readFileSync(path, 'utf8'));
      const body = github.commentsOn(PULL_REQUEST)[0]?.body ?? '';
      expect(readComment(body).entries).toHaveLength(1);
      const everything = [...files, read('summary.md'), body, ...said].join('\n');
      const all = `${everything}\n${JSON.stringify(readComment(body).entries)}`;
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
