import { describe, expect, test } from 'vitest';
import { buildReport, type Report } from '../../src/report/report-json.ts';
import { renderStatistics, summarizeReports } from '../../src/report/statistics.ts';
import {
  deadApiService,
  deadlock,
  foretold,
  gone,
  recorded,
  runOf,
  settled,
} from '../stub/results.ts';

function at(day: number, ...namespaces: Parameters<typeof runOf>[0]): Report {
  return {
    ...buildReport(runOf(namespaces)),
    generatedAt: `2026-03-0${day}T10:05:02.000Z`,
  };
}

/** A week of a team, and twice a look at the whole cluster, where the same namespaces hang on. */
const WEEK: Report[] = [
  at(1, gone('preview-pr-1', 38_000)),
  at(1, gone('preview-pr-2', 41_000), gone('preview-pr-3', 90_000)),
  at(2, deadlock('preview-pr-42')),
  at(3, { ...deadlock('preview-pr-43'), elapsedMs: 200_000 }),
  at(4, deadApiService('team-1'), deadApiService('team-2')),
  at(5, recorded('S32', 'preview-pr-44')),
  at(6, deadApiService('team-1'), deadApiService('team-2'), deadApiService('team-3')),
  at(6, recorded('unexplained', 'odd')),
  at(7, settled('not-found', 'pass'), settled('not-terminating', 'fail')),
  at(7, foretold('S4', 'preview-pr-45')),
];

describe('statistics over reports', () => {
  const week = summarizeReports(WEEK);

  test('count teardowns, not namespaces for which no run waited', () => {
    expect(week).toMatchObject({ reports: 10, teardowns: 12 });
    expect(week.outcomes).toEqual([
      { outcome: 'stuck', count: 9 },
      { outcome: 'deleted', count: 3 },
    ]);
  });

  test('contain the durations of deletions', () => {
    expect(week.deletionSeconds).toEqual({ median: 41, p90: 90, longest: 90 });
  });

  test('count causes by a name that is the same in every run: namespaces, frequency and first time', () => {
    expect(week.causes[0]).toMatchObject({
      code: 'apiservice-unavailable',
      what: 'APIService v1beta1.metrics.k8s.io',
      namespaces: 3,
      reports: 2,
      hangs: 5,
      since: deadApiService('team-1').deletionTimestamp,
      lastSeen: '2026-03-06T10:05:02.000Z',
    });
    expect(week.causes[1]).toMatchObject({
      code: 'owner-missing',
      what: 'widgets.example.com/cleanup',
      namespaces: 2,
      reports: 2,
    });
    expect(week.causes.find(({ code }) => code === 'unexplained')?.what).toBe(
      'the namespace itself',
    );
  });

  test('are empty without reports', () => {
    expect(summarizeReports([])).toEqual({
      reports: 0,
      teardowns: 0,
      outcomes: [],
      deletionSeconds: undefined,
      causes: [],
    });
    expect(renderStatistics(summarizeReports([]), 'text')).toContain('Nothing hung.');
  });

  test.each([
    { format: 'text', file: 'statistics.txt' },
    { format: 'markdown', file: 'statistics.md' },
    { format: 'csv', file: 'statistics.csv' },
  ] as const)('as $format', async ({ format, file }) => {
    await expect(renderStatistics(week, format).replaceAll('\r\n', '\n')).toMatchFileSnapshot(
      `golden/${file}`,
    );
  });

  test.each([
    { finalizer: '=1+1', field: "'=1+1" },
    { finalizer: '@x', field: "'@x" },
    { finalizer: 'a"b,c', field: 'a""b,c' },
    { finalizer: 'a\nb', field: 'a b' },
  ])('quote $finalizer in CSV', ({ finalizer, field }) => {
    const namespace = deadlock('n');
    for (const finding of namespace.diagnosis?.findings ?? []) finding.finalizer = finalizer;
    const csv = renderStatistics(summarizeReports([at(1, namespace)]), 'csv');
    expect(csv).toContain(field);
    expect(csv.split('\r\n')).toHaveLength(3);
  });
});
