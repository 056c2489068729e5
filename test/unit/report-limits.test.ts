import { describe, expect, test } from 'vitest';
import type { NamespaceResult, RunResult } from '../../src/model/result.ts';
import { outputsOf } from '../../src/outputs.ts';
import { MAX_COMMENT_CHARS } from '../../src/report/comment.ts';
import { buildReport } from '../../src/report/json.ts';
import { renderLogLines } from '../../src/report/log-lines.ts';
import { renderMarkdownReport, renderSummary } from '../../src/report/markdown.ts';
import { renderText } from '../../src/report/text.ts';
import { commentOf } from '../stub/publishing.ts';
import { NO_CMARK, renderPage } from '../stub/rendered.ts';
import { schemaErrors } from '../stub/report-schema.ts';
import {
  deadlock,
  diagnosis,
  FINISHED_AT,
  finding,
  namespaceResult,
  runOf,
} from '../stub/results.ts';

const CONTEXT = { finishedAt: FINISHED_AT, reportPath: '/tmp/report.json' };
const WHERE = { reportJsonPath: '', reportMarkdownPath: '', commentUrl: '' };
const KIB = 1024;

/** Every object held by a finalizer of its own, so that nothing folds. */
function crowded(objects: number, name = 'crowded'): NamespaceResult {
  const findings = Array.from({ length: objects }, (_, at) => {
    const subject = { apiVersion: 'v1', kind: 'ConfigMap', namespace: name, name: `cm-${at}` };
    const owner = finding({
      code: 'owner-unknown',
      subject,
      finalizer: `f.example/${at}`,
      message: `nothing in the cluster shows who should remove f.example/${at}`,
      remedies: [
        { text: `Find out who wrote f.example/${at}`, command: `kubectl get cm cm-${at}` },
      ],
    });
    const held = finding({
      code: 'object-finalizer',
      subject,
      finalizer: `f.example/${at}`,
      message: `is held by finalizer f.example/${at}`,
      evidence: ['äöü '.repeat(50)],
      waitsFor: [owner.id],
    });
    return [held, owner];
  }).flat();
  return namespaceResult({ name, diagnosis: diagnosis(findings) });
}

const CROWD = runOf([crowded(20_000)]);
const MANY = runOf(Array.from({ length: 300 }, (_, at) => crowded(3, `preview-${at}`)));

describe('a namespace with 20,000 blocked objects', () => {
  test('is told within its limits and within seconds', { timeout: 120_000 }, () => {
    const started = process.cpuUsage();
    const summary = renderSummary(CROWD, CONTEXT, 900 * KIB);
    const comment = commentOf(CROWD, CONTEXT);
    const outputs = outputsOf(CROWD, WHERE, 1_000);
    const text = renderText(CROWD);
    const log = renderLogLines(CROWD);
    const file = renderMarkdownReport(CROWD, CONTEXT);
    const errors = schemaErrors(buildReport(CROWD));
    // Not the time on the wall: other tests run at the same time.
    expect(process.cpuUsage(started).user / 1_000_000).toBeLessThan(15);

    expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(900 * KIB);
    expect(comment.length).toBeLessThanOrEqual(MAX_COMMENT_CHARS);
    expect(Buffer.byteLength(outputs.blockers)).toBeLessThanOrEqual(50_000);
    expect(JSON.parse(outputs.blockers).length).toBeGreaterThan(100);
    expect(text.split('\n').length).toBeLessThan(200);
    expect(log.lines.length + (log.groups[0]?.lines.length ?? 0)).toBeLessThan(1_000);
    expect(file.length).toBeLessThan(8 * KIB * KIB);
    expect(errors).toEqual([]);
  });
});

describe('the ladder of shorter forms', () => {
  const sizes = [900 * KIB, 60_000, 20_000, 10_000, 5_000, 3_000, 1_500, 700, 300, 100, 10, 0];

  test.each(
    [CROWD, MANY, runOf([deadlock()])].flatMap((run) => sizes.map((bytes) => ({ run, bytes }))),
  )('fits into $bytes bytes', ({ run, bytes }) => {
    const text = renderSummary(run, CONTEXT, bytes);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(bytes);
    if (bytes >= 3_000) expect(text).toMatch(/^### 🔴/);
    // Whole sections only: what was opened is closed, a fence as well as a fold.
    expect(text.match(/<details>/g)?.length).toBe(text.match(/<\/details>/g)?.length);
    expect((text.match(/^ *```/gm)?.length ?? 0) % 2).toBe(0);
    if (text !== '') expect(text.endsWith('</sub>\n')).toBe(true);
  });

  test('says that it was shortened and where the rest is', () => {
    const short = renderSummary(CROWD, CONTEXT, 20_000);
    expect(short).toContain('shortened; the full report is in <code>/tmp/report.json</code>');
    expect(renderSummary(runOf([deadlock()]), CONTEXT, 900 * KIB)).not.toContain('shortened');
  });

  test('keeps why and what to do longest', () => {
    const short = renderSummary(runOf([deadlock()]), CONTEXT, 1_700);
    expect(short).toContain('**Why.**');
    expect(short).toContain('**What to do**');
    expect(short).not.toContain('<details>');
  });

  test.skipIf(NO_CMARK !== undefined)('leaves no page broken', { timeout: 120_000 }, () => {
    for (const run of [CROWD, MANY]) {
      for (const bytes of sizes.filter((size) => size >= 1_500 && size <= 60_000)) {
        const page = renderPage(renderSummary(run, CONTEXT, bytes));
        expect(page.elements).toContain('h3');
        expect(page.skeleton.endsWith('<p><sub></sub></p>')).toBe(true);
        expect(page.prose.join('')).not.toMatch(/\| ---|```|&#/);
      }
    }
  });
});

describe('the comment', () => {
  test.each([
    { what: 'ASCII', fill: 'x' },
    { what: 'what takes four bytes', fill: '\u{1f600}' },
    { what: 'what takes six characters as an entity', fill: '@' },
  ])('stays below its limit with $what', ({ fill }) => {
    const run: RunResult = runOf([crowded(500), crowded(500, fill.repeat(10))]);
    const body = commentOf(run, CONTEXT);
    expect(body.length).toBeLessThanOrEqual(MAX_COMMENT_CHARS);
    expect(body.startsWith('<!-- namespace-teardown-gate:v1 key=0123456789abcdef -->')).toBe(true);
  });
});

describe('annotations', () => {
  const failing = (count: number): NamespaceResult[] =>
    Array.from({ length: count }, (_, at) => crowded(1, `n-${at}`));

  test.each([
    { namespaces: 1, annotations: 1 },
    { namespaces: 10, annotations: 10 },
    { namespaces: 11, annotations: 10 },
    { namespaces: 300, annotations: 10 },
  ])('$namespaces namespaces have $annotations', ({ namespaces, annotations }) => {
    const shown = renderLogLines(runOf(failing(namespaces))).annotations;
    expect(shown).toHaveLength(annotations);
    for (const { message } of shown) expect(message.length).toBeLessThanOrEqual(500);
  });

  test('say how many more there are', () => {
    const last = renderLogLines(runOf(failing(12))).annotations.at(-1);
    expect(last).toMatchObject({ level: 'error', message: expect.stringContaining('3 more') });
  });
});
