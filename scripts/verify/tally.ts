import { stripVTControlCharacters } from 'node:util';

/** A test as vitest's JSON report has it. */
export interface ReportedTest {
  ancestorTitles: readonly string[];
  title: string;
  /** `pending`: nobody came to run it, as after a set-up that failed. */
  status: 'passed' | 'failed' | 'skipped' | 'pending' | 'todo';
  failureMessages: readonly string[];
  tags?: readonly string[];
}

export interface VitestReport {
  testResults: readonly {
    /** Path of the file. */
    name: string;
    status: string;
    message: string;
    assertionResults: readonly ReportedTest[];
  }[];
}

export interface Failure {
  file: string;
  /** Name of the test as `patternOf` has it; absent where the file itself fails, and so all that is in it. */
  test?: string;
  /** First lines of what it said. */
  how: string;
}

export interface Tally {
  passed: number;
  failed: readonly Failure[];
  /** Names of tests that failed beside others and passed when nothing else ran; `passed` does not count them. */
  passedAlone: readonly string[];
  /** A skipped test says why in its title. */
  skipped: readonly string[];
}

const LINES_OF_A_FAILURE = 12;
/** So many tests that pass only alone are no accident. */
export const MOST_PASSED_ALONE = 10;

/** What vitest's `-t` compares with its pattern (its JSON report has blanks instead in `fullName`). */
function patternOf({ ancestorTitles, title }: ReportedTest): string {
  return [...ancestorTitles, title].join(' > ');
}

/** Adds a report up. `tag`: that of the tests that were asked for; vitest reports all others as skipped. */
export function tallyOf(report: VitestReport, tag?: string): Tally {
  const failed: Failure[] = [];
  const skipped: string[] = [];
  let passed = 0;
  for (const { name: file, status, message, assertionResults } of report.testResults) {
    const before = failed.length;
    for (const test of assertionResults) {
      if (tag !== undefined && !test.tags?.includes(tag)) continue;
      if (test.status === 'passed') passed++;
      else if (test.status === 'skipped' || test.status === 'todo') skipped.push(patternOf(test));
      else {
        const how = test.failureMessages.join('\n') || `it was not run: ${message}`;
        failed.push({ file, test: patternOf(test), how: firstLines(how) });
      }
    }
    if (status === 'failed' && failed.length === before)
      failed.push({ file, how: firstLines(message) });
  }
  return { passed, failed, passedAlone: [], skipped };
}

/** The tally after each failure was tried once more by `again`, which returns what came of it. */
export async function afterAlone(
  first: Tally,
  again: (failure: Failure) => Promise<Tally | undefined>,
): Promise<Tally> {
  const failed: Failure[] = [];
  const passedAlone = [...first.passedAlone];
  for (const failure of first.failed) {
    const alone = await again(failure);
    if (alone !== undefined && alone.passed > 0 && alone.failed.length === 0) {
      passedAlone.push(nameOf(failure));
    } else failed.push(failure);
  }
  return { ...first, failed, passedAlone };
}

/** How many passed, failed, were skipped and passed alone. */
export function countsOf({ passed, failed, skipped, passedAlone }: Tally): number[] {
  return [passed + passedAlone.length, failed.length, skipped.length, passedAlone.length];
}

/** What a person wants to read about it, line by line. */
export function told({ failed, passedAlone, skipped }: Tally): string[] {
  return [
    ...failed.flatMap((failure) => [
      `failed: ${nameOf(failure)}`,
      ...failure.how.split('\n').map((line) => `  ${line}`),
    ]),
    ...passedAlone.map((name) => `passed alone: ${name}`),
    ...skipped.map((name) => `skipped: ${name}`),
  ];
}

function nameOf({ file, test }: Failure): string {
  return test ?? file;
}

function firstLines(text: string): string {
  const lines = stripVTControlCharacters(text).trim().split('\n');
  return lines.slice(0, LINES_OF_A_FAILURE).join('\n');
}
