import { describe, expect, test } from 'vitest';
import { NAMESPACE_NODE } from '../../src/model/finding.ts';
import { OUTCOMES, VERDICTS } from '../../src/model/outcome.ts';
import { outputsOf } from '../../src/outputs.ts';
import { hasMarker, MAX_COMMENT_CHARS } from '../../src/report/comment.ts';
import { renderJunit } from '../../src/report/junit.ts';
import { renderMarkdownReport, renderSummary } from '../../src/report/markdown.ts';
import { renderMetrics } from '../../src/report/open-metrics.ts';
import { renderText } from '../../src/report/plain-text.ts';
import { buildReport, reportJson } from '../../src/report/report-json.ts';
import { type View, viewOf } from '../../src/report/view.ts';
import { toMarkdown } from '../../src/report/words.ts';
import { commentOf, endOfLog, KEY } from '../stub/publishing.ts';
import { renderPage } from '../stub/rendered.ts';
import { schemaErrors } from '../stub/report-schema.ts';
import {
  crowded,
  deadApiService,
  deadlock,
  diagnosis,
  namespaceResult,
  recorded,
  runOf,
} from '../stub/results.ts';

const CONTEXT = {};
const WHERE = {};
const KIB = 1024;

/** Many times what any output has room for. */
const CROWD = runOf([crowded(3_000)]);
const CROWD_VIEW = viewOf(CROWD);
const MANY_VIEW = viewOf(
  runOf(Array.from({ length: 300 }, (_, at) => crowded(3, `preview-${at}`))),
);
const SIXTY = runOf([crowded(60)]);
const FIFTY = runOf([
  ...Array.from({ length: 40 }, (_, at) => deadApiService(`team-${at}`)),
  ...Array.from({ length: 10 }, (_, at) => crowded(1, `odd-${at}`)),
]);

test('a namespace with 3,000 blocked objects is reported within the limit of every output', () => {
  const view = CROWD_VIEW;
  const { blockers } = outputsOf(view, WHERE, 1_000);
  const { lines, groups } = endOfLog(view);
  const summary = renderSummary(view, CONTEXT, 900 * KIB);
  expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(900 * KIB);
  expect(commentOf(CROWD, CONTEXT).length).toBeLessThanOrEqual(MAX_COMMENT_CHARS);
  expect(Buffer.byteLength(blockers)).toBeLessThanOrEqual(50_000);
  expect(JSON.parse(blockers).length).toBeGreaterThan(100);
  expect(renderText(view).split('\n').length).toBeLessThan(200);
  expect(lines.length + (groups[0]?.lines.length ?? 0)).toBeLessThan(1_000);
  expect(renderMarkdownReport(view, CONTEXT).length).toBeLessThan(8 * KIB * KIB);
  expect(schemaErrors(buildReport(CROWD))).toEqual([]);
});

test('a report reads each finding a bounded number of times, however many there are', () => {
  const readsOf = (objects: number): number => {
    const namespace = crowded(objects);
    let reads = 0;
    for (const one of namespace.diagnosis?.findings ?? []) {
      const { id } = one;
      Object.defineProperty(one, 'id', { enumerable: true, get: () => [id, reads++][0] });
    }
    const run = runOf([namespace]);
    const view = viewOf(run);
    renderSummary(view, CONTEXT, 60_000);
    renderText(view);
    buildReport(run);
    return reads / objects;
  };
  const few = readsOf(100);
  expect(few).toBeGreaterThan(1);
  expect(readsOf(800)).toBeLessThan(1.5 * few);
});

test('in a comment without room for it, the report of an earlier run is one line', () => {
  const earlier = commentOf(runOf([deadlock()]), CONTEXT, [], { scope: 'e'.repeat(16), run: 1 });
  const body = (maxChars: number): string =>
    commentOf(
      runOf([namespaceResult({ outcome: 'deleted', verdict: 'pass' })]),
      CONTEXT,
      [earlier],
      { maxChars },
    );
  expect(body(60_000)).toContain('**Cause.**');
  expect(body(2_500).length).toBeLessThanOrEqual(2_500);
  expect(body(2_500)).toMatch(/^### 🔴 <code>preview&#45;|^### 🔴 <code>preview-/m);
});

describe('one comment', () => {
  test.each([
    { what: '60 causes', run: SIXTY, causes: 60 },
    { what: '50 namespaces with 11 causes', run: FIFTY, causes: 11 },
  ])('of $what has a remedy for every cause, the most frequent first', ({ run, causes }) => {
    const view = viewOf(run);
    const body = commentOf(run, CONTEXT);
    expect(body.length).toBeLessThanOrEqual(MAX_COMMENT_CHARS);
    expect(view.causes).toHaveLength(causes);
    for (const { remedies } of view.causes) {
      const [first] = remedies[0]?.actions ?? [];
      const told = toMarkdown(first?.text ?? 'nothing to do');
      expect(body).toContain([...(first?.commands ?? [])][0] ?? told);
    }
    const most = Math.max(...view.causes.map(({ namespaces }) => namespaces.length));
    expect(view.causes[0]?.namespaces).toHaveLength(most);
  });

  test.each([
    { what: 'ASCII', fill: 'x' },
    { what: 'what takes four bytes', fill: '\u{1f600}' },
    { what: 'what takes six characters as an entity', fill: '|' },
  ])('stays below its limit with $what', ({ fill }) => {
    const body = commentOf(runOf([crowded(500), crowded(500, fill.repeat(10))]), CONTEXT);
    expect(body.length).toBeLessThanOrEqual(MAX_COMMENT_CHARS);
    expect(hasMarker(body, KEY)).toBe(true);
  });
});

/** A screen of 390 pixels has room for about 45 characters; what does not wrap has to be a block that scrolls. */
test.each([
  { what: '60 causes', run: SIXTY },
  { what: '50 namespaces', run: FIFTY },
  { what: 'three causes', run: runOf([recorded('S32')]) },
  { what: 'nothing that could be seen', run: runOf([recorded('forbidden-all')]) },
])('a page of $what wraps on a narrow screen: no table, and lists of few levels', ({ run }) => {
  const text = renderSummary(viewOf(run), CONTEXT, 900 * KIB);
  expect(renderPage(text).elements).not.toContain('table');
  const levels = [...text.matchAll(/^( *)- /gm)].map(([, indent = '']) => indent.length / 2);
  expect(Math.max(...levels)).toBeLessThanOrEqual(5);
});

describe('a namespace of which little is known', () => {
  const RENDERERS = [
    (view: View) => renderSummary(view, CONTEXT, 900 * KIB),
    renderText,
    renderJunit,
    renderMetrics,
    reportJson,
    (view: View) => JSON.stringify(outputsOf(view, WHERE, 1_000)),
  ];
  const nowhere = { ...diagnosis([]), blockers: ['x'], rootCauses: ['y'], deadlocks: [['z']] };
  const lost = { ...nowhere, edges: [{ from: NAMESPACE_NODE, to: 'x', because: 'w' }] };

  test.each(OUTCOMES.flatMap((outcome) => [undefined, lost].map((found) => ({ outcome, found }))))(
    '$outcome is rendered, without a diagnosis and with one whose ids lead nowhere',
    ({ outcome, found }) => {
      for (const verdict of VERDICTS) {
        const none = { ...namespaceResult({ outcome, verdict, diagnosis: found }), uid: '' };
        const unknown = { ...none, deletionTimestamp: undefined, conditions: [], timeline: [] };
        for (const kind of ['teardown', 'forecast'] as const) {
          const view = viewOf(runOf([unknown], { kind, timeoutMs: 0 }));
          for (const render of RENDERERS) expect(render(view)).not.toMatch(/undefined|NaN/);
        }
      }
    },
  );
});

describe('the ladder of shorter forms', () => {
  const sizes = [900 * KIB, 60_000, 20_000, 10_000, 5_000, 3_000, 1_500, 700, 300, 100, 10, 0];

  test.each(
    [CROWD_VIEW, MANY_VIEW, viewOf(runOf([deadlock()]))].flatMap((view) =>
      sizes.map((bytes) => ({ view, bytes })),
    ),
  )('fits into $bytes bytes', ({ view, bytes }) => {
    const text = renderSummary(view, CONTEXT, bytes);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(bytes);
    if (bytes >= 3_000) expect(text).toMatch(/^### 🔴/);
    // Whole blocks only: what was opened is closed, a fence as well as a fold.
    expect(text.match(/<details>/g)?.length).toBe(text.match(/<\/details>/g)?.length);
    expect((text.match(/^ *```/gm)?.length ?? 0) % 2).toBe(0);
    if (text !== '') expect(text.endsWith('</sub>\n')).toBe(true);
    // Valid Markdown at every length.
    if (text === '' || bytes > 60_000) return;
    const page = renderPage(text);
    expect(page.skeleton.endsWith('<p><sub></sub></p>')).toBe(true);
    expect(page.prose.join('')).not.toMatch(/\| ---|```|&#/);
  });

  test('says that it was shortened, with a link to the full report; the cause and the fix stay longest', () => {
    const runUrl = 'https://github.com/octo-org/shop/actions/runs/9001';
    const link = `shortened; [the run](${runUrl})`;
    expect(renderSummary(CROWD_VIEW, { ...CONTEXT, runUrl }, 20_000)).toContain(link);
    expect(renderSummary(CROWD_VIEW, CONTEXT, 20_000)).toMatch(/shortened<\/sub>\n$/);
    const whole = viewOf(runOf([deadlock()]));
    expect(renderSummary(whole, CONTEXT, 900 * KIB)).not.toContain('shortened');
    const short = renderSummary(whole, CONTEXT, 1_500);
    expect(short).toMatch(/\*\*Cause\.\*\*[\s\S]*\*\*Fix\.\*\*/);
    expect(short).not.toContain('<details>');
  });
});

test.each([
  [1, 1],
  [10, 10],
  [11, 10],
  [300, 10],
])('%i namespaces have %i annotations', (namespaces, annotations) => {
  const failing = Array.from({ length: namespaces }, (_, at) => crowded(1, `n-${at}`));
  const shown = endOfLog(viewOf(runOf(failing))).annotations;
  expect(shown).toHaveLength(annotations);
  for (const { message } of shown) expect(message.length).toBeLessThanOrEqual(500);
});
