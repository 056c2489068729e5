import { describe, expect, test } from 'vitest';
import { NAMESPACE_NODE } from '../../src/model/finding.ts';
import { OUTCOMES, VERDICTS } from '../../src/model/outcome.ts';
import type { NamespaceResult } from '../../src/model/result.ts';
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
  deadApiService,
  deadlock,
  diagnosis,
  finding,
  namespaceResult,
  recorded,
  runOf,
} from '../stub/results.ts';

const CONTEXT = {};
const WHERE = {};
const KIB = 1024;

/** Every object held by a finalizer of its own, so that nothing folds. */
function crowded(objects: number, name = 'crowded'): NamespaceResult {
  const findings = Array.from({ length: objects }, (_, at) => {
    const subject = { apiVersion: 'v1', kind: 'ConfigMap', namespace: name, name: `cm-${at}` };
    const owner = finding({
      code: 'owner-unknown',
      subject,
      finalizer: `f.example/${name}-${at}`,
      message: `has finalizer f.example/${name}-${at}, and nothing shows which controller should remove it`,
      continuation: 'nothing in the cluster shows which controller should remove it',
      remedies: [
        {
          role: 'look',
          text: `Find out who wrote it`,
          command: `kubectl get cm cm-${at} -n ${name}`,
        },
        {
          role: 'or',
          text: 'Remove it',
          command: `kubectl patch cm cm-${at} -n ${name} -p '${'x'.repeat(250)}'`,
        },
      ],
    });
    const held = finding({
      code: 'object-finalizer',
      subject,
      finalizer: `f.example/${name}-${at}`,
      message: `is held by finalizer f.example/${name}-${at}`,
      evidence: ['äöü '.repeat(50)],
      waitsFor: [owner.id],
    });
    return [held, owner];
  }).flat();
  return namespaceResult({ name, diagnosis: diagnosis(findings) });
}

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

describe('a namespace with 3,000 blocked objects', () => {
  test('is reported within the limit of every output', () => {
    const view = CROWD_VIEW;
    const summary = renderSummary(view, CONTEXT, 900 * KIB);
    const comment = commentOf(CROWD, CONTEXT);
    const outputs = outputsOf(view, WHERE, 1_000);
    const text = renderText(view);
    const log = endOfLog(view);
    const file = renderMarkdownReport(view, CONTEXT);
    const errors = schemaErrors(buildReport(CROWD));

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
  });

  test('says that it was shortened, with a link to the full report', () => {
    const runUrl = 'https://github.com/octo-org/shop/actions/runs/9001';
    const view = CROWD_VIEW;
    expect(renderSummary(view, { ...CONTEXT, runUrl }, 20_000)).toContain(
      `shortened; [the run](${runUrl})`,
    );
    expect(renderSummary(view, CONTEXT, 20_000)).toMatch(/shortened<\/sub>\n$/);
    expect(renderSummary(viewOf(runOf([deadlock()])), CONTEXT, 900 * KIB)).not.toContain(
      'shortened',
    );
  });

  test('keeps the cause and the fix longest', () => {
    const short = renderSummary(viewOf(runOf([deadlock()])), CONTEXT, 1_500);
    expect(short).toContain('**Cause.**');
    expect(short).toContain('**Fix.**');
    expect(short).not.toContain('<details>');
  });

  test('is valid Markdown at every length', () => {
    for (const view of [CROWD_VIEW, MANY_VIEW]) {
      for (const bytes of [20_000, 5_000, 1_500]) {
        const page = renderPage(renderSummary(view, CONTEXT, bytes));
        expect(page.elements).toContain('h3');
        expect(page.skeleton.endsWith('<p><sub></sub></p>')).toBe(true);
        expect(page.prose.join('')).not.toMatch(/\| ---|```|&#/);
      }
    }
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
    const shown = endOfLog(viewOf(runOf(failing(namespaces)))).annotations;
    expect(shown).toHaveLength(annotations);
    for (const { message } of shown) expect(message.length).toBeLessThanOrEqual(500);
  });
});
