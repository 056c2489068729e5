import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { logLine, plainText } from '../../src/base/text.ts';
import type { RunResult } from '../../src/model/result.ts';
import { outputsOf } from '../../src/outputs.ts';
import { renderComment } from '../../src/report/comment.ts';
import { stateBlock, type Teardown, teardownsIn } from '../../src/report/comment-state.ts';
import { buildReport } from '../../src/report/json.ts';
import { renderLogLines } from '../../src/report/log-lines.ts';
import { renderMarkdownReport, renderSummary } from '../../src/report/markdown.ts';
import { prose } from '../../src/report/markup.ts';
import { renderStatistics, summarizeReports } from '../../src/report/statistics.ts';
import { renderText } from '../../src/report/text.ts';
import { NASTY_TEXTS } from '../stub/nasty.ts';
import { poison } from '../stub/poison.ts';
import { commentOf, teardown } from '../stub/publishing.ts';
import { NO_CMARK, type Page, renderPage } from '../stub/rendered.ts';
import {
  deadApiService,
  deadlock,
  FINISHED_AT,
  forced,
  gracePeriod,
  notSeen,
  ownerUnknown,
  runOf,
  severalCauses,
} from '../stub/results.ts';
import { commandsIn } from '../stub/runner-commands.ts';

const RUN_URL = 'https://github.com/octo-org/shop/actions/runs/1';
const CONTEXT = { runUrl: RUN_URL, finishedAt: FINISHED_AT };
const KEY = '0123456789abcdef';

/** Every member that can hold text of a cluster is there in at least one of them. */
const RUNS: RunResult[] = [
  runOf([deadlock()]),
  runOf([severalCauses(), notSeen(), deadApiService(), gracePeriod(), ownerUnknown(), forced()]),
];

/** Alone, and in the middle of something longer. */
const POISONS = NASTY_TEXTS.flatMap((text) => [
  { shown: JSON.stringify(text).slice(0, 60), with: () => text, isAlone: true },
  {
    shown: `… ${JSON.stringify(text).slice(0, 60)} …`,
    with: (was: string) => `${was} ${text} x`,
    isAlone: false,
  },
]);

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

function comment(run: RunResult): string {
  return commentOf(run, CONTEXT, history(run), 10_000_000);
}

/** As read from an earlier comment, of another job: with the texts of an earlier cluster in it. */
function history(run: RunResult): Teardown[] {
  const text = run.cluster.version;
  // Rows are sorted by where they are.
  const texts = { where: `z ${text}`, about: text, cluster: text, code: text, subject: text };
  const told = ['1', '2'].map((job) => teardown(run, { ...texts, run: job, job, left: [text] }));
  return teardownsIn(stateBlock(told, undefined));
}

const RENDERINGS: { name: string; render: (run: RunResult) => string }[] = [
  { name: 'comment', render: comment },
  {
    name: 'statistics',
    render: (run) => renderStatistics(summarizeReports([buildReport(run)]), 'markdown'),
  },
];

describe.skipIf(NO_CMARK !== undefined)('text of the cluster changes no page', () => {
  describe.each(RENDERINGS)('$name', ({ render }) => {
    const alone = RUNS.map((run) => renderPage(render(poison(run, () => 'word'))));
    const inside = RUNS.map((run) => renderPage(render(poison(run, (was) => `${was} word x`))));

    test.each(POISONS)('$shown', ({ with: text, isAlone }) => {
      for (const [at, run] of RUNS.entries()) {
        const harmless = (isAlone ? alone : inside)[at] as Page;
        expectHarmless(renderPage(render(poison(run, text))), harmless);
      }
    });
  });

  test.each([
    { name: 'report.md', render: (run: RunResult) => renderMarkdownReport(run, CONTEXT) },
    { name: 'comment', render: comment },
  ])('$name, whatever else it is made of', ({ render }) => {
    const [run] = RUNS as [RunResult];
    const harmless = renderPage(render(poison(run, () => 'word')));
    const pieces = fc.array(
      fc.oneof(
        fc.constantFrom(...NASTY_TEXTS.filter((text) => text.length < 100)),
        fc.string({ unit: 'binary', maxLength: 20 }),
        fc.constantFrom(...' \n|`<>&@#:/.*_(['),
      ),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(pieces, (parts) => {
        expectHarmless(renderPage(render(poison(run, () => parts.join('')))), harmless);
      }),
      { numRuns: 100 },
    );
  });
});

if (NO_CMARK !== undefined) test('pages are not judged', ({ skip }) => skip(NO_CMARK));

describe.skipIf(NO_CMARK !== undefined)('names', () => {
  test.each(NASTY_TEXTS.map((text) => ({ text, shown: JSON.stringify(text).slice(0, 60) })))(
    '$shown reads on the page as it is',
    ({ text }) => {
      const run = poison(RUNS[0] as RunResult, () => text);
      const expected = squeeze(plainText(Array.from(text.toWellFormed()).slice(0, 100).join('')));
      const shown = renderPage(renderSummary(run, CONTEXT, 10_000_000)).code.map(squeeze);
      expect(shown.some((code) => code.includes(expected))).toBe(true);
    },
  );
});

describe('the marker of the comment', () => {
  test.each(POISONS)('occurs once with $shown', ({ with: text }) => {
    for (const run of RUNS) {
      const body = comment(poison(run, text));
      expect(body.startsWith(`<!-- namespace-teardown-gate:v1 key=${KEY} -->\n`)).toBe(true);
      expect(body.match(/gate:v1 key=[0-9a-f]{16} -->$/gm)).toHaveLength(1);
      const ours = /^<!-- namespace-teardown-gate:(v1 key=\S+ -->|story \S+ -->|end -->|state)$/gm;
      expect(body.match(/<!--/g)).toHaveLength(body.match(ours)?.length ?? 0);
      expect(teardownsIn(body)).toHaveLength(3);
    }
  });
});

test.each(NASTY_TEXTS)('%j as the cluster or in a story can be no line of ours', (text) => {
  const story = `${text}\n<!-- namespace-teardown-gate:v1 key=${KEY} -->\n<!-- namespace-teardown-gate:end -->`;
  const run = runOf([deadlock()]);
  const own = teardown({ ...run, cluster: { ...run.cluster, uid: text } });
  const content = {
    key: KEY,
    signature: undefined,
    teardowns: [own],
    own,
    earlier: [],
    linkTo: () => undefined,
  };
  const body = renderComment({ ...content, story: () => story });
  expect(body.match(/^<!--/gm)).toHaveLength(4);
  expect(body.match(/<!--/g)).toHaveLength(4);
});

/** What log and terminal show, before the logger has made lines of it. */
function linesOf(run: RunResult): string[] {
  const { lines, groups, annotations } = renderLogLines(run);
  return [
    ...lines,
    ...groups.flatMap(({ title, lines: inside }) => [title, ...inside]),
    ...annotations.flatMap(({ title, message }) => [title, message]),
    ...renderText(run).split('\n'),
  ];
}

describe('the log has no command of the cluster', () => {
  test.each(POISONS)('$shown', ({ with: text }) => {
    for (const run of RUNS) {
      const all = linesOf(poison(run, text)).map(logLine);
      expect(commandsIn(all.join('\n'))).toEqual([]);
    }
  });

  test('for any text', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...NASTY_TEXTS, '::', '##[', 'error', ']', ' ', '\r')),
        (parts) => {
          expect(commandsIn(logLine(parts.join('')))).toEqual([]);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('lines', () => {
  test.each(POISONS)('of terminal and log stay lines with $shown', ({ with: text }) => {
    for (const run of RUNS) {
      const all = linesOf(poison(run, text));
      expect(all.filter((line) => plainText(line) !== line)).toEqual([]);
    }
  });
});

describe('outputs', () => {
  const where = { reportJsonPath: '/r.json', reportMarkdownPath: '/r.md', commentUrl: '' };

  test.each(POISONS)('are whole with $shown', ({ with: text }) => {
    for (const run of RUNS) {
      const outputs = outputsOf(poison(run, text), where, 1_000);
      expect(Array.isArray(JSON.parse(outputs.blockers))).toBe(true);
      expect(Buffer.byteLength(outputs.blockers)).toBeLessThanOrEqual(50_000);
      expect(typeof JSON.parse(outputs.outcomes)).toBe('object');
      for (const name of ['root-cause', 'summary-text', 'blocking-finalizer'] as const) {
        expect(outputs[name]).not.toMatch(/[\r\n]/);
      }
      expect(outputs['summary-text']).not.toMatch(/[<>@`]/);
    }
  });
});

describe('prose', () => {
  test.each([
    { text: 'is held by finalizer a.b/c', html: 'is held by finalizer <code>a.b/c</code>' },
    { text: 'it wrote it, 5m 02s ago.', html: 'it wrote it, 5m 02s ago.' },
    { text: 'at 10:00:11 UTC', html: 'at 10:00:11 UTC' },
    { text: 'is "gone" (really)', html: 'is "gone" (really)' },
    { text: '1. item', html: '1&#46; item' },
    { text: 'see #1 @me', html: 'see <code>&#35;1 &#64;me</code>' },
    { text: 'commit deadbeef', html: 'commit <code>deadbeef</code>' },
    { text: 'held by kubernetes', names: ['kubernetes'], html: 'held by <code>kubernetes</code>' },
    { text: 'www.example.com', html: '<code>www&#46;example&#46;com</code>' },
    { text: 'a\nb', html: 'a b' },
  ])('$text', ({ text, names, html }) => {
    expect(prose(text, names)).toBe(html);
  });
});

function squeeze(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
