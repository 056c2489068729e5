import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { logLine, plainText } from '../../src/base/text.ts';
import type { Finding } from '../../src/model/finding.ts';
import type { RunResult } from '../../src/model/result.ts';
import { outputsOf } from '../../src/outputs.ts';
import { readComment } from '../../src/report/comment.ts';
import { renderMarkdownReport } from '../../src/report/markdown.ts';
import { renderText } from '../../src/report/plain-text.ts';
import { buildReport, reportJson } from '../../src/report/report-json.ts';
import { viewOf } from '../../src/report/view.ts';
import { diagnosed, literal, toMarkdown } from '../../src/report/words.ts';
import { NASTY_TEXTS } from '../stub/nasty.ts';
import { poison } from '../stub/poison.ts';
import { commentOf, endOfLog, KEY } from '../stub/publishing.ts';
import { JUDGES, type Judge, MICROMARK, type Page, renderPage } from '../stub/rendered.ts';
import {
  diagnosis,
  FINISHED_AT,
  finding,
  forced,
  foreseen,
  leavesBehind,
  namespaceResult,
  runOf,
  settled,
} from '../stub/results.ts';
import { commandsIn } from '../stub/runner-commands.ts';

const RUN_URL = 'https://github.com/octo-org/shop/actions/runs/1';
const CONTEXT = { runUrl: RUN_URL };

/** A finding with every member that can hold text of a cluster. */
const EVERYTHING: Finding = finding({
  ...{ code: 'owner-failing', certainty: 'likely', scope: 'cluster', count: 3 },
  subject: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'ops', name: 'operator' },
  ...{ finalizer: 'a.example/b', message: 'is refused: no', quote: 'no', since: FINISHED_AT },
  ...{ continuation: 'nobody acts', evidence: ['a line'] },
  examples: ['a', 'b'].map((name) => ({ apiVersion: 'v1', kind: 'Pod', namespace: 'n', name })),
  remedies: (['now', 'or', 'look', 'next'] as const).map((role) => ({
    ...{ role, text: `do ${role}`, command: `kubectl ${role}`, risk: 'some' },
  })),
});

const WITH_EVERYTHING = namespaceResult({
  name: 'n',
  conditions: [{ type: 'T', status: 'True', reason: 'R', message: 'M' }],
  timeline: [{ at: FINISHED_AT, event: 'timeout' }],
  diagnosis: {
    ...diagnosis([EVERYTHING]),
    queued: [{ apiVersion: 'v1', kind: 'Secret', count: 2 }],
    notInspected: [
      { what: 'secrets', reason: 'no', grant: { apiGroup: '', resource: 'secrets', verb: 'list' } },
      { what: 'nodes', reason: 'never' },
    ],
    movement: { kind: 'grace-period', until: FINISHED_AT },
  },
});

/** Every member that can hold text of a cluster is there in at least one of them. */
const RUNS: RunResult[] = [
  runOf([WITH_EVERYTHING]),
  runOf([forced(), leavesBehind(), { ...foreseen(WITH_EVERYTHING), name: 'f' }]),
];

/** Alone, and in the middle of something longer. */
const POISONS = NASTY_TEXTS.flatMap((text) => {
  const shown = JSON.stringify(text).slice(0, 60);
  return [
    { shown, with: () => text, isAlone: true },
    { shown: `… ${shown} …`, with: (was: string) => `${was} ${text} x`, isAlone: false },
  ];
});

const ELEMENTS = new Set(
  'h3 h4 p code strong em ol ul li pre table thead tbody tr th td details summary sub br a'.split(
    ' ',
  ),
);
const ATTRIBUTES = new Set(['a.href', 'code.class', 'pre.lang', 'ol.start']);

/** What GitHub's filters turn into links in text outside of code. */
const REFERENCES = [
  /(^|[^\w])@[a-z\d]/i,
  /#\d/,
  /\bGH-\d/i,
  /\b[0-9a-f]{7,40}\b/,
  /(https?|ftp):\/\//i,
  /www\./i,
  /[\w.+-]+@[\w-]/,
];

function expectHarmless(page: Page, harmless: Page): void {
  expect([...page.elements].filter((tag) => !ELEMENTS.has(tag))).toEqual([]);
  expect([...page.attributes].filter((attribute) => !ATTRIBUTES.has(attribute))).toEqual([]);
  expect(page.links).toEqual(harmless.links);
  expect(page.comments).toHaveLength(harmless.comments.length);
  expect(page.prose.flatMap((text) => REFERENCES.filter((one) => one.test(text)))).toEqual([]);
  expect(page.skeleton).toBe(harmless.skeleton);
}

/** After the comment of an earlier run about other namespaces, with texts of the same cluster in it. */
function comment(run: RunResult): string {
  const text = run.cluster.version;
  const texts = { about: text, code: text, subject: text, scope: 'e'.repeat(16), run: 9_000 };
  const options = { job: text, maxChars: 10_000_000 };
  const earlier = commentOf(runOf([settled('stuck', 'fail')]), CONTEXT, [], {
    ...options,
    ...texts,
  });
  return commentOf(run, CONTEXT, [earlier], options);
}

/** The comment is the same page with a history; the file alone does not depend on the length of texts. */
const RENDERINGS: { what: string; runs: RunResult[]; render: (run: RunResult) => string }[] = [
  { what: 'report', runs: RUNS, render: (run) => renderMarkdownReport(viewOf(run), CONTEXT) },
  { what: 'comment', runs: [runOf([leavesBehind()])], render: comment },
];

describe.each(JUDGES)(
  'text from the cluster cannot change a page, according to $name',
  (judge: Judge) => {
    if (judge.missing !== undefined) {
      test('nothing', ({ skip }) => skip(judge.missing));
      return;
    }
    describe.each(RENDERINGS)('$what', ({ render, runs }) => {
      const page = (run: RunResult): Page => renderPage(render(run), judge);
      const alone = runs.map((run) => page(poison(run, () => 'word')));
      const inside = runs.map((run) => page(poison(run, (was) => `${was} word x`)));

      test.each(POISONS)('$shown', ({ with: text, isAlone }) => {
        for (const [at, run] of runs.entries()) {
          const harmless = (isAlone ? alone : inside)[at] as Page;
          expectHarmless(page(poison(run, text)), harmless);
        }
      });
    });
  },
);

test('report.md is harmless with any texts', () => {
  const [run] = RUNS as [RunResult];
  const page = (text: string): Page =>
    renderPage(renderMarkdownReport(viewOf(poison(run, () => text)), CONTEXT));
  const harmless = page('word');
  const pieces = fc.array(
    fc.oneof(
      fc.constantFrom(...NASTY_TEXTS.filter((text) => text.length < 100)),
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.constantFrom(...' \n|`<>&@#:/.*_(['),
    ),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(pieces, (parts) => expectHarmless(page(parts.join('')), harmless)),
    { numRuns: 100 },
  );
});

test.each(NASTY_TEXTS.map((text) => ({ text, shown: JSON.stringify(text).slice(0, 60) })))(
  'names such as $shown read on the page as they are',
  ({ text }) => {
    const expected = squeeze(plainText(Array.from(text.toWellFormed()).slice(0, 100).join('')));
    const { code } = renderPage(toMarkdown(`x ${literal(text)} y`).toWellFormed(), MICROMARK);
    expect(code.map(squeeze).some((one) => one.includes(expected)) || expected === '').toBe(true);
  },
);

/** What log and terminal show, before the logger has made lines of it. */
function linesOf(run: RunResult): string[] {
  const { lines, groups, annotations } = endOfLog(viewOf(run));
  return [
    ...lines,
    ...groups.flatMap(({ title, lines: inside }) => [title, ...inside]),
    ...annotations.flatMap(({ title, message }) => [title, message]),
    ...renderText(viewOf(run)).split('\n'),
  ];
}

describe('with any text of the cluster', () => {
  const where = { 'report.json': '/r.json', 'report.md': '/r.md' };

  test.each(POISONS)('log, outputs, report.json and comment are what they are: $shown', (row) => {
    for (const one of RUNS) {
      const run = poison(one, row.with);
      const view = viewOf(run);
      // Log and terminal have no command and no line break of it.
      const all = linesOf(run);
      expect(all.filter((line) => plainText(line) !== line)).toEqual([]);
      expect(commandsIn(all.map(logLine).join('\n'))).toEqual([]);
      // Outputs are complete.
      const outputs = outputsOf(view, where, 1_000);
      expect(Array.isArray(JSON.parse(outputs.blockers))).toBe(true);
      expect(Buffer.byteLength(outputs.blockers)).toBeLessThanOrEqual(50_000);
      expect(typeof JSON.parse(outputs.outcomes)).toBe('object');
      for (const name of ['root-cause', 'summary-text', 'blocking-finalizer'] as const)
        expect(outputs[name]).not.toMatch(/[\r\n]/);
      expect(outputs['summary-text']).not.toMatch(/[<>@`]/);
      const values = Object.values(outputs);
      expect(values.filter((value) => plainText(value) !== value)).toEqual([]);
      expect(values.flatMap(commandsIn)).toEqual([]);
      // report.json prints without a command, and remains the same value.
      const json = reportJson(view);
      expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(buildReport(view.run))));
      expect(json.split('\n').filter((line) => plainText(line) !== line)).toEqual([]);
      expect(commandsIn(json)).toEqual([]);
      // The marker of the comment occurs once, with what is remembered, and the end of the report.
      const body = comment(run);
      expect(body.startsWith(`<!-- namespace-teardown-gate:v1 key=${KEY} -->\n`)).toBe(true);
      expect(body.match(/<!--/g)).toHaveLength(3);
      expect(readComment(body).entries).toHaveLength(2);
    }
  });

  test('no line of the log is a command', () => {
    const pieces = fc.constantFrom(...NASTY_TEXTS, '::', '##[', 'error', ']', ' ', '\r');
    fc.assert(
      fc.property(fc.array(pieces), (parts) => {
        expect(commandsIn(logLine(parts.join('')))).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});

test.each([
  { what: 'control characters', codes: [0x00, 0x0a, 0x1b, 0x7f, 0x85, 0x9b, 0x9d] },
  { what: 'bidirectional controls', codes: [0x061c, 0x200e, 0x202e, 0x2066, 0x206a] },
  { what: 'line separators', codes: [0x2028, 0x2029] },
  { what: 'fillers and joiners', codes: [0xad, 0x034f, 0x115f, 0x180e, 0x200b, 0x2060, 0x3164] },
  { what: 'annotations', codes: [0xfff9, 0xfffa, 0xfffb] },
  { what: 'tags and variations', codes: [0xe0001, 0xe0041, 0xe007f, 0xfe0f, 0xe0100, 0xe01ef] },
])('$what are replaced in a text', ({ codes }) => {
  for (const code of codes) expect(plainText(`a${String.fromCodePoint(code)}b`)).toBe('a b');
});

test('what can be seen remains in a text', () => {
  const text = 'e\u0301 \u5b57 \u0627\u0644 \u{1f600} \u00a0\u3000 ##a #[ - -- x';
  expect(logLine(text)).toBe(text);
});

test.each([
  [diagnosed('is held by finalizer a.b/c'), 'is held by finalizer `a.b/c`'],
  [diagnosed('it wrote it, 5m 02s ago.'), 'it wrote it, 5m 02s ago.'],
  [diagnosed('is "gone" (really)'), 'is "gone" (really)'],
  [diagnosed('1. item'), '1 item'],
  [diagnosed('see #1 @me'), 'see `#1 @me`'],
  [diagnosed('commit deadbeef'), 'commit `deadbeef`'],
  [diagnosed('held by kubernetes', ['kubernetes']), 'held by `kubernetes`'],
  [diagnosed('a\nb'), 'a b'],
  [literal('policy x: label "team" is required'), '`policy x: label "team" is required`'],
  [diagnosed('Ready=False (Gone): no'), '`Ready=False` (Gone): no'],
  [literal('a|b'), '<code>a&#124;b</code>'],
  [literal('a`b'), '``a`b``'],
  [literal('`b'), '`` `b ``'],
  [literal(' '), '(empty)'],
  [`${literal('a')}${literal('b')}`, '`a` `b`'],
])('%j is a piece of a text as %s', (word, is) => {
  expect(toMarkdown(word)).toBe(is);
});

test('redaction does not change the fixed words of the program', () => {
  const [run] = RUNS as [RunResult];
  const words = ['teardown', 'stuck', 'fail', 'likely', 'now', 'grace-period', 'owner-failing'];
  const redacted = viewOf(run, (text) => (words.includes(text) ? '***' : text)).run;
  expect(redacted).toEqual(run);
  expect(JSON.stringify(viewOf(run, () => '***').run)).not.toContain('a.example');
});

function squeeze(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
