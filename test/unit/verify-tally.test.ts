import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  afterAlone,
  countsOf,
  type ReportedTest,
  tallyOf,
  told,
  type VitestReport,
} from '../../scripts/verify/tally.ts';

const one = (title: string, status: ReportedTest['status'], ...tags: string[]): ReportedTest => ({
  ancestorTitles: [],
  title,
  status,
  tags,
  failureMessages: status === 'failed' ? [`${title} went wrong`] : [],
});

const reportOf = (tests: ReportedTest[], status = 'passed', message = ''): VitestReport => ({
  testResults: [{ name: 'a.test.ts', status, message, assertionResults: tests }],
});

const THREE = [one('a', 'passed'), one('b', 'failed'), one('c', 'skipped')];

test.each<[string, VitestReport, string | undefined, readonly number[]]>([
  ['by what came of each test', reportOf(THREE, 'failed'), undefined, [1, 1, 1, 0]],
  [
    'a test that nobody came to run has failed',
    ...([reportOf([one('a', 'pending')], 'failed', 'set-up'), undefined, [0, 1, 0, 0]] as const),
  ],
  ['so has a file that could not be loaded', reportOf([], 'failed', 'x'), undefined, [0, 1, 0, 0]],
  [
    'so has a file whose tests passed and whose end failed',
    ...([reportOf([one('a', 'passed')], 'failed'), undefined, [1, 1, 0, 0]] as const),
  ],
  [
    'only what has the tag',
    ...([reportOf([one('a', 'passed', 'x'), one('b', 'skipped')]), 'x', [1, 0, 0, 0]] as const),
  ],
])('a report is added up: %s', (...row) => {
  const [, report, tag, counts] = row;
  expect(countsOf(tallyOf(report, tag))).toEqual(counts);
});

test('what passes alone has passed, and is told; what fails again, or does not run, has failed', async () => {
  const failed = ['b', 'c', 'd'].map((name) => one(name, 'failed'));
  const first = tallyOf(reportOf([one('a', 'passed'), ...failed], 'failed'));
  const again = { b: 'passed', c: 'failed', d: 'skipped' } as const;
  const tally = await afterAlone(first, async ({ test: name }) => {
    const status = again[name as keyof typeof again];
    return tallyOf(reportOf([one(`${name}`, status)], status === 'failed' ? 'failed' : 'passed'));
  });

  expect(countsOf(tally)).toEqual([2, 2, 0, 1]);
  expect(told(tally)).toEqual([
    'failed: c',
    '  c went wrong',
    'failed: d',
    '  d went wrong',
    'passed alone: b',
  ]);
});

test('a test that failed is really run again: vitest finds it by its name', () => {
  const place = mkdtempSync(join(tmpdir(), 'teardown-gate-alone-'));
  try {
    symlinkSync(join(process.cwd(), 'node_modules'), join(place, 'node_modules'));
    writeFileSync(
      join(place, 'a.test.ts'),
      `import { existsSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
describe('group (1+1)', () => {
  test('fails once', () => {
    const before = existsSync('ran');
    writeFileSync('ran', '');
    expect(before).toBe(true);
  });
  test('fails always', () => expect(1).toBe(2));
});
`,
    );
    const script = join(process.cwd(), 'scripts/verify/tests.ts');
    const { status } = spawnSync(process.execPath, [script, 'small', 'a.test.ts'], { cwd: place });
    const [counts, ...lines] = readFileSync(join(place, 'coverage/small.txt'), 'utf8').split('\n');
    expect({ status, counts }).toEqual({ status: 1, counts: '1 1 0 1' });
    expect(lines).toContain('passed alone: group (1+1) > fails once');
    expect(lines).toContain('failed: group (1+1) > fails always');
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
});
