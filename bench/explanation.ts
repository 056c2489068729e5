import type { Report } from '../src/report/report-json.ts';
import type { Ended } from './run-command.ts';

/**
 * What the gate found, one line per fact, without times: two explanations are the same when their
 * lines are.
 */
export function explanationOf({ stdout, stderr, exitCode }: Ended): string[] {
  const report = parse(stdout);
  if (report === undefined) return [`no report; exit code ${exitCode}: ${stderr.trim()}`];
  return report.namespaces.flatMap(({ name, outcome, findings, rootCauses, notInspected }) => [
    `${name}: ${outcome}`,
    ...findings.map(
      ({ id, code, finalizer, waitsFor }) =>
        `${name}: ${code} ${id} ${finalizer ?? ''} waits for [${[...waitsFor].sort().join(', ')}]`,
    ),
    ...rootCauses.map((id) => `${name}: root cause ${id}`),
    ...notInspected.map(({ what }) => `${name}: not inspected: ${what}`),
  ]);
}

export function differences(expected: readonly string[], found: readonly string[]): string[] {
  return [
    ...expected.filter((line) => !found.includes(line)).map((line) => `missing: ${line}`),
    ...found.filter((line) => !expected.includes(line)).map((line) => `not expected: ${line}`),
  ];
}

/** A benchmark of a gate that explains nothing would be worth nothing. */
export function mustExplain(ended: Ended, finalizer: string): void {
  const namespaces = parse(ended.stdout)?.namespaces ?? [];
  const isExplained = (at: (typeof namespaces)[number]): boolean =>
    at.notInspected.length === 0 && at.findings.some((each) => each.finalizer === finalizer);
  if (namespaces.length === 0 || !namespaces.every(isExplained)) {
    throw new Error(
      `the gate did not explain what hangs; exit code ${ended.exitCode}:\n${ended.stdout.slice(0, 2_000)}\n${ended.stderr.slice(0, 2_000)}`,
    );
  }
}

function parse(stdout: string): Report | undefined {
  try {
    return JSON.parse(stdout) as Report;
  } catch {
    return undefined;
  }
}
