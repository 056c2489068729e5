import { describe, expect, test } from 'vitest';
import type { RunResult } from '../../src/model/result.ts';
import { renderLogLines } from '../../src/report/log-lines.ts';
import {
  type RenderContext,
  renderMarkdownReport,
  renderSummary,
} from '../../src/report/markdown.ts';
import { rootCauseSentence, summaryText } from '../../src/report/summary-line.ts';
import { renderText } from '../../src/report/text.ts';
import { commentOf, teardown } from '../stub/publishing.ts';
import {
  deadApiService,
  deadlock,
  EXPLAINED,
  FINISHED_AT,
  gone,
  runOf,
  settled,
} from '../stub/results.ts';

const CONTEXT: RenderContext = {
  runUrl: 'https://github.com/octo-org/shop/actions/runs/9001/attempts/1',
  runLabel: 'run 812, attempt 1',
  reportPath: '/home/runner/work/_temp/teardown/report.json',
  finishedAt: FINISHED_AT,
};

/** One situation, one file: everything that is told about it, as a reader gets it. */
const SITUATIONS: { name: string; run: RunResult }[] = [
  ...Object.entries(EXPLAINED).map(([name, result]) => ({ name, run: runOf([result()]) })),
  { name: 'not-terminating', run: runOf([settled('not-terminating', 'fail')]) },
  { name: 'recreated', run: runOf([settled('recreated', 'warn')]) },
  { name: 'not-found', run: runOf([settled('not-found', 'fail')]) },
  { name: 'cancelled', run: runOf([settled('cancelled', 'fail')]) },
  { name: 'at-once', run: runOf([{ ...deadlock(), elapsedMs: 900 }], { timeoutMs: 0 }) },
  {
    name: 'nothing-matched',
    run: runOf([], { outcome: 'not-found', verdict: 'fail' }),
  },
  {
    name: 'several-namespaces',
    run: runOf([
      gone('preview-pr-1'),
      deadlock(),
      deadApiService(),
      { ...deadApiService(), name: 'preview-pr-58' },
      { ...settled('recreated', 'warn'), name: 'preview-pr-77' },
    ]),
  },
];

describe.each(SITUATIONS)('the report of $name', ({ name, run }) => {
  test('as job summary', async () => {
    await expect(renderSummary(run, CONTEXT, 900 * 1024)).toMatchFileSnapshot(`golden/${name}.md`);
  });

  test('as text: terminal, log, outputs', async () => {
    const { lines, groups, annotations } = renderLogLines(run);
    const text = [
      section('terminal'),
      renderText(run),
      section('end of the step log'),
      ...lines,
      ...groups.flatMap((group) => [`▸ ${group.title}`, ...group.lines.map((line) => `│ ${line}`)]),
      ...annotations.map(({ level, title, message }) => `${level} [${title}] ${message}`),
      section('output root-cause'),
      rootCauseSentence(run),
      section('output summary-text'),
      summaryText(run),
      '',
    ].join('\n');
    await expect(text).toMatchFileSnapshot(`golden/${name}.txt`);
  });
});

describe('the comment', () => {
  const earlier = [
    teardown(runOf([gone('preview-pr-42', 41_000)]), { run: '8999', number: '810' }),
    teardown(runOf([deadlock()]), { run: '9000', number: '811' }),
  ];

  test('is the summary with marker and history', async () => {
    const body = commentOf(runOf([deadlock()]), CONTEXT, earlier);
    await expect(body).toMatchFileSnapshot('golden/comment-red.md');
  });

  test('turns green with one line about what had been wrong', async () => {
    const body = commentOf(runOf([gone()]), CONTEXT, earlier);
    await expect(body).toMatchFileSnapshot('golden/comment-green.md');
  });

  test('has a row for every job and cluster, the worst first', async () => {
    const run = runOf([deadApiService()]);
    const other = teardown(runOf([deadlock()]), {
      job: '1'.repeat(16),
      where: 'preview / teardown (eu)',
      cluster: 'aaaaaaaa-0000',
    });
    const passed = teardown(runOf([gone()]), { job: '2'.repeat(16), where: 'sweep / all' });
    const silent = {
      ...other,
      run: '7',
      number: '3',
      at: '2026-01-02T10:00:00Z',
      job: '3'.repeat(16),
    };
    const body = commentOf(run, CONTEXT, [other, passed, silent]);
    await expect(body).toMatchFileSnapshot('golden/comment-rows.md');
  });
});

test('report.md says the same as the summary, at length', () => {
  const run = runOf([deadlock()]);
  expect(renderMarkdownReport(run, CONTEXT)).toBe(renderSummary(run, CONTEXT, 900 * 1024));
});

function section(title: string): string {
  return `==== ${title} ====`;
}
