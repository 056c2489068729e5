import { describe, expect, test } from 'vitest';
import {
  afterAlone,
  countsOf,
  type ReportedTest,
  tallyOf,
  told,
  type VitestReport,
} from '../../scripts/verify/tally.ts';

const one = (
  fullName: string,
  status: ReportedTest['status'],
  ...tags: string[]
): ReportedTest => ({
  fullName,
  status,
  tags,
  failureMessages: status === 'failed' ? [`${fullName} went wrong`] : [],
});

const reportOf = (tests: ReportedTest[], status = 'passed', message = ''): VitestReport => ({
  testResults: [{ name: 'a.test.ts', status, message, assertionResults: tests }],
});

describe('a report is added up', () => {
  test.each<[string, VitestReport, string | undefined, number[]]>([
    [
      'by what came of each test',
      reportOf([one('a', 'passed'), one('b', 'failed'), one('c', 'skipped')], 'failed'),
      undefined,
      [1, 1, 1, 0],
    ],
    [
      'a test that nobody came to run has failed',
      reportOf([one('a', 'pending')], 'failed', 'set-up'),
      undefined,
      [0, 1, 0, 0],
    ],
    [
      'so has a file that could not be loaded',
      reportOf([], 'failed', 'syntax'),
      undefined,
      [0, 1, 0, 0],
    ],
    [
      'so has a file whose tests passed and whose end failed',
      reportOf([one('a', 'passed')], 'failed'),
      undefined,
      [1, 1, 0, 0],
    ],
    [
      'only what has the tag',
      reportOf([one('a', 'passed', 'core'), one('b', 'skipped')]),
      'core',
      [1, 0, 0, 0],
    ],
  ])('%s', (_, report, tag, counts) => {
    expect(countsOf(tallyOf(report, tag))).toEqual(counts);
  });
});

test('what passes alone has passed, and is told; what fails again, or does not run, has failed', async () => {
  const first = tallyOf(
    reportOf(
      [one('a', 'passed'), one('b', 'failed'), one('c', 'failed'), one('d', 'failed')],
      'failed',
    ),
  );
  const again: Record<string, VitestReport> = {
    b: reportOf([one('b', 'passed')]),
    c: reportOf([one('c', 'failed')], 'failed'),
    d: reportOf([one('d', 'skipped')]),
  };
  const tally = await afterAlone(first, async ({ test: name }) =>
    tallyOf(again[name ?? ''] ?? reportOf([])),
  );

  expect(countsOf(tally)).toEqual([2, 2, 0, 1]);
  expect(told(tally)).toEqual([
    'failed: c',
    '  c went wrong',
    'failed: d',
    '  d went wrong',
    'passed alone: b',
  ]);
});
