import { readFileSync } from 'node:fs';
import type { Command } from './arguments.ts';
import { ActionError, describeError } from './errors.ts';
import type { Report } from './report/report.ts';
import { renderStatistics, summarizeReports } from './report/statistics.ts';

/** What many reports have in common. Throws an `ActionError` for a file that is no report. */
export function statisticsOf({ files, format }: Extract<Command, { run: 'stats' }>): string {
  return renderStatistics(summarizeReports(files.map(readReport)), format);
}

function readReport(path: string): Report {
  let report: unknown;
  try {
    report = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new ActionError('invalid-input', `cannot read "${path}": ${describeError(error)}`);
  }
  const isReport =
    typeof report === 'object' &&
    report !== null &&
    'schemaVersion' in report &&
    report.schemaVersion === 1;
  if (!isReport) {
    throw new ActionError('invalid-input', `"${path}" is no report.json of this gate, version 1`);
  }
  return report as Report;
}
