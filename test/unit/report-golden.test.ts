import { describe, expect, test } from 'vitest';
import type { NamespaceResult, RunResult } from '../../src/model/result.ts';
import {
  type RenderContext,
  renderMarkdownReport,
  renderSummary,
} from '../../src/report/markdown.ts';
import { renderText, rootCauseSentence, summaryText } from '../../src/report/plain-text.ts';
import { viewOf } from '../../src/report/view.ts';
import { endOfLog } from '../stub/publishing.ts';
import {
  deadApiService,
  deadlock,
  forced,
  foretold,
  gone,
  leavesBehind,
  notSeen,
  recorded,
  runOf,
  settled,
} from '../stub/results.ts';

const CONTEXT: RenderContext = {
  runUrl: 'https://github.com/octo-org/shop/actions/runs/9001/attempts/1',
  runLabel: 'run 812, attempt 1',
};

const renamed = (scenario: string, prefix: string, count: number): NamespaceResult[] =>
  Array.from({ length: count }, (_, at) => recorded(scenario, `${prefix}-${at + 1}`));

/** A Monday morning: forty namespaces, from one dead add-on, a sleeping operator and two more. */
const FORTY = [
  ...renamed('SEED-1d', 'team', 31),
  ...renamed('S3', 'shop', 5),
  ...renamed('S31', 'edge', 3),
  recorded('S1', 'odd'),
];

/** One situation, one pair of files: everything that is told about it, as a reader gets it. */
const SITUATIONS: { name: string; run: RunResult }[] = [
  { name: 'deadlock', run: runOf([deadlock()]) },
  { name: 'dead-apiservice', run: runOf([deadApiService()]) },
  { name: 'owner-refused', run: runOf([recorded('S40')]) },
  { name: 'owner-unknown', run: runOf([recorded('S1')]) },
  { name: 'denied-by-webhook', run: runOf([recorded('S22')]) },
  { name: 'lost-node', run: runOf([recorded('S28')]) },
  { name: 'pod-and-claim', run: runOf([recorded('S25a')]) },
  { name: 'several-causes', run: runOf([recorded('S32')]) },
  { name: 'not-seen', run: runOf([notSeen()]) },
  { name: 'shrinking', run: runOf([recorded('S43')]) },
  { name: 'unexplained', run: runOf([recorded('unexplained')]) },
  { name: 'at-once', run: runOf([recorded('S3')], { timeoutMs: 0 }) },
  { name: 'forced', run: runOf([forced()]) },
  { name: 'left-behind', run: runOf([leavesBehind()]) },
  { name: 'forecast', run: runOf([foretold('S4')], { kind: 'forecast', timeoutMs: 0 }) },
  {
    name: 'several-namespaces',
    run: runOf([
      gone('preview-pr-1'),
      deadlock('preview-pr-42'),
      deadlock('preview-pr-43'),
      deadApiService(),
      { ...settled('recreated', 'warn'), name: 'preview-pr-77' },
    ]),
  },
];

describe.each(SITUATIONS)('the report of $name', ({ name, run }) => {
  const view = viewOf(run);

  test('as job summary', async () => {
    await expect(renderSummary(view, CONTEXT, 900 * 1024)).toMatchFileSnapshot(`golden/${name}.md`);
  });

  test('as text: terminal, annotations, outputs', async () => {
    await expect(asText(run)).toMatchFileSnapshot(`golden/${name}.txt`);
  });
});

/** Why the API server did not accept the deletion. */
const REFUSALS = [
  'namespaces "preview-pr-42" is forbidden: User "ci" cannot delete resource "namespaces" in API group "" in the namespace "preview-pr-42"',
  'Internal error occurred: failed calling webhook "namespaces.example.com": failed to call webhook: Post "https://guard.guard-system.svc:443/namespaces?timeout=5s": no endpoints available for service "guard"',
];

test('namespaces without a diagnosis', async () => {
  const ends = [
    runOf([settled('not-terminating', 'fail')]),
    runOf([{ ...settled('not-terminating', 'fail'), name: 'default' }]),
    ...REFUSALS.map((refusal) => runOf([{ ...settled('not-terminating', 'fail'), refusal }])),
    runOf([settled('recreated', 'warn')]),
    runOf([settled('not-found', 'fail')]),
    runOf([settled('cancelled', 'fail')]),
    runOf([settled('stuck', 'fail')]),
    runOf([gone()]),
    runOf([gone('a'), gone('b', 41_000)]),
    runOf([], { outcome: 'not-found', verdict: 'fail' }),
    runOf([], { outcome: 'deleted' }),
    runOf([{ ...settled('clear', 'pass') }], { kind: 'forecast', timeoutMs: 0 }),
  ];
  const texts = ends.map((run) => `${renderSummary(viewOf(run), CONTEXT, 10_000)}\n${asText(run)}`);
  await expect(texts.join('\n')).toMatchFileSnapshot('golden/no-diagnosis.txt');
});

test('report.md has the content of the summary, in full', () => {
  const view = viewOf(runOf([deadlock()]));
  expect(renderMarkdownReport(view, CONTEXT)).toBe(renderSummary(view, CONTEXT, 900 * 1024));
});

test('forty namespaces fit on a screen, and into a comment', async () => {
  const run = runOf(FORTY, { timeoutMs: 0 });
  const markdown = renderSummary(viewOf(run), CONTEXT, 20_000);
  await expect(markdown).toMatchFileSnapshot('golden/forty-namespaces.md');
  await expect(asText(run)).toMatchFileSnapshot('golden/forty-namespaces.txt');
  expect(renderText(viewOf(run)).split('\n').length).toBeLessThan(40);
});

test('the terminal shows the whole order of a forecast beside many causes; of several, the deletion', () => {
  const textOf = (...all: NamespaceResult[]) =>
    renderText(viewOf(runOf(all, { kind: 'forecast', timeoutMs: 0 })));
  expect(textOf(foretold('known-needs'))).toMatch(
    /ServiceAccount default.*\n {2}6\. Then delete the namespace/s,
  );
  expect(textOf(foretold('S4'), foretold('known-needs'))).not.toContain('the order of this report');
});

function asText(run: RunResult): string {
  const view = viewOf(run);
  const { lines, groups, annotations } = endOfLog(view);
  return [
    renderText(view),
    `==== first line of the step log, its groups and annotations`,
    lines[0],
    ...groups.map(({ title, lines: inside }) => `▸ ${title}: ${inside.length} lines`),
    ...annotations.map(({ level, title, message }) => `${level} [${title}] ${message}`),
    `==== outputs root-cause and summary-text`,
    rootCauseSentence(view),
    summaryText(view),
    '',
  ].join('\n');
}
