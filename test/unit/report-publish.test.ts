import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createRedactor } from '../../src/base/redact.ts';
import { publish } from '../../src/publish/publish.ts';
import { historyIn } from '../../src/report/comment.ts';
import { startGithub } from '../stub/github.ts';
import { poison } from '../stub/poison.ts';
import { desk, PULL_REQUEST } from '../stub/publishing.ts';
import { schemaErrors } from '../stub/report-schema.ts';
import { deadlock, forced, gone, runOf } from '../stub/results.ts';

const RED = runOf([deadlock()]);
const KIB = 1_024;

describe('publishing', () => {
  test('writes report.json, report.md and the summary, and says where', async () => {
    const parts = desk();
    const published = await publish(RED, parts);
    expect(published).toMatchObject({
      reportJsonPath: '/reports/report.json',
      reportMarkdownPath: '/reports/report.md',
      commentUrl: '',
      warnings: [],
    });
    expect(schemaErrors(JSON.parse(parts.contents.get('/reports/report.json') ?? ''))).toEqual([]);
    expect(parts.contents.get('/reports/report.md')).toContain('is stuck');
    expect(parts.contents.get('/summary.md')).toContain('run 812, attempt 1');
    expect(parts.said).toEqual([]);
  });

  test('adds to what the step has already written', async () => {
    const parts = desk();
    parts.contents.set('/summary.md', 'Hello');
    await publish(RED, parts);
    expect(parts.contents.get('/summary.md')).toMatch(/^Hello\n\n### 🔴/);
  });

  test('counts what the step has already written, in bytes', async () => {
    const parts = desk();
    parts.contents.set('/summary.md', 'ä'.repeat(449 * KIB));
    await publish(RED, parts);
    const summary = parts.contents.get('/summary.md') ?? '';
    expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(900 * KIB);
    expect(summary).toContain('shortened');
  });

  test('leaves a summary alone that has no room', async () => {
    const parts = desk();
    parts.contents.set('/summary.md', 'x'.repeat(900 * KIB));
    const { warnings } = await publish(RED, parts);
    expect(parts.contents.get('/summary.md')).toHaveLength(900 * KIB);
    expect(warnings).toEqual([expect.stringContaining('is full')]);
  });

  test('a second time replaces the first', async () => {
    const parts = desk();
    parts.contents.set('/summary.md', 'Grüße\n');
    const { summaryStart } = await publish(RED, parts);
    await publish(runOf([forced()]), {
      ...parts,
      ...(summaryStart === undefined ? {} : { summaryStart }),
    });
    const summary = parts.contents.get('/summary.md') ?? '';
    expect(summary).toMatch(/^Grüße\n\n\n### 🟡/);
    expect(summary).not.toContain('🔴');
  });

  test('works without a summary file', async () => {
    const parts = desk();
    parts.summaryFile = undefined;
    expect((await publish(RED, parts)).warnings).toEqual([]);
    expect([...parts.contents.keys()]).toEqual(['/reports/report.json', '/reports/report.md']);
  });

  const denied = async (): Promise<never> => {
    throw Object.assign(new Error("EACCES: permission denied, open '/x'"), { code: 'EACCES' });
  };

  test('goes on when a file cannot be written, with a warning each', async () => {
    const parts = desk({ files: { write: denied } });
    const published = await publish(RED, parts);
    expect(published).toMatchObject({ reportJsonPath: '', reportMarkdownPath: '' });
    expect(published.warnings).toEqual([
      expect.stringMatching(/report\.json: EACCES.*report-dir/),
      expect.stringMatching(/report\.md: EACCES.*report-dir/),
    ]);
    expect(parts.contents.get('/summary.md')).toContain('is stuck');
  });

  test('goes on when the summary cannot be written', async () => {
    const parts = desk({ files: { append: denied } });
    const published = await publish(RED, parts);
    expect(published.warnings).toEqual([
      expect.stringContaining('could not write the job summary'),
    ]);
    expect(published.reportJsonPath).toBe('/reports/report.json');
  });

  test('never changes the verdict', async () => {
    const before = JSON.stringify(RED);
    await publish(RED, desk({ files: { append: denied, write: denied, size: denied } }));
    expect(JSON.stringify(RED)).toBe(before);
  });
});

test('on real files, in a folder that is not there yet', async () => {
  const home = await mkdtemp(join(tmpdir(), 'publish-'));
  try {
    const { files: _, ...parts } = desk();
    const summaryFile = join(home, 'summary.md');
    await writeFile(summaryFile, 'Hello');
    const reportDir = join(home, 'a', 'b');
    const first = await publish(RED, { ...parts, summaryFile, reportDir });
    expect(first.warnings).toEqual([]);
    await publish(runOf([gone()]), { ...parts, summaryFile, reportDir, summaryStart: 5 });
    expect(await readFile(summaryFile, 'utf8')).toMatch(/^Hello\n\n### ✅ [^🔴]*$/u);
    expect(JSON.parse(await readFile(first.reportJsonPath, 'utf8'))).toMatchObject({
      outcome: 'deleted',
    });
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

describe('a secret in any text of the cluster', () => {
  // Characters that every encoder on the way changes: a secret must be gone before it is encoded.
  const SECRET = 's3cr3t.value_with:signs|and<more>@home';
  const BEARER = 'Bearer abcdefghijklmnop.qrstuvwx-yz_0123456789';

  test('is in no file, no summary, no comment and no log line', async () => {
    const github = await startGithub();
    try {
      const redactor = createRedactor();
      redactor.add(SECRET);
      const parts = desk({ github, redactor });
      await publish(
        poison(RED, (text) => `${text} ${SECRET} ${BEARER}`),
        parts,
      );
      const [comment] = github.commentsOn(PULL_REQUEST);
      const body = comment?.body ?? '';
      const everything = [...parts.contents.values(), body, ...parts.said].join('\n');
      const told = `${everything}\n${JSON.stringify(historyIn(body))}`;
      const decoded = told.replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)));
      for (const text of [told, decoded]) {
        expect(text).not.toContain('s3cr3t');
        expect(text).not.toContain('qrstuvwx');
      }
      expect(decoded).toContain('***');
    } finally {
      await github.close();
    }
  });
});
