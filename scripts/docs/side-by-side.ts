import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from '../../test/stub/action-yml.ts';

/** Both ways of deletion in the same scenarios, written by `npm run test:live -- side-by-side`. */
export const RESULTS = 'docs/performance/side-by-side.json';

export interface SideBySide {
  timeout: string;
  /** `outcomes` and `seconds`: with `delete: true`, and with `delete: ordered`. */
  rows: { id: string; title: string; outcomes: string[]; seconds: number[] }[];
}

/** Differences of at most so many seconds are not listed: they are those of a busy machine. */
const ALIKE_SECONDS = 10;

/** Returns the comparison in docs/ordered-deletion.md: a summary, and the scenarios that differ. */
export function sideBySide(): string {
  const { timeout, rows } = JSON.parse(
    readFileSync(join(REPOSITORY, RESULTS), 'utf8'),
  ) as SideBySide;
  const isDeleted = (outcome = ''): boolean => outcome === 'deleted';
  const avoided = rows.filter(({ outcomes: [a, b] }) => !isDeleted(a) && isDeleted(b));
  const caused = rows.filter(({ outcomes: [a, b] }) => isDeleted(a) && !isDeleted(b));
  const longer = rows.map(({ seconds: [a = 0, b = 0] }) => b - a).sort((a, b) => a - b);
  const median = longer[Math.floor(longer.length / 2)] ?? 0;
  const differing = rows.filter(
    ({ outcomes: [a, b], seconds: [plain = 0, ordered = 0] }) =>
      isDeleted(a) !== isDeleted(b) || Math.abs(ordered - plain) > ALIKE_SECONDS,
  );
  const lines = differing.map(({ id, title, outcomes: [a, b], seconds: [plain, ordered] }) => {
    const text = title.replaceAll('|', '\\|');
    return `| ${id}: ${text} | ${a}, ${plain} s | ${b}, ${ordered} s |`;
  });
  const summary = `${rows.length} scenarios, each with a timeout of ${timeout}. Ordered deletion avoided ${avoided.length} hangs and caused ${caused.length}. It took ${longer[0]} s to ${longer.at(-1)} s longer, in half of the scenarios at most ${median} s.`;
  const alike = `In none of them do the outcomes differ, or the times by more than ${ALIKE_SECONDS} s.`;
  if (lines.length === 0) return `${summary} ${alike}`;
  return [
    `${summary} The table has the scenarios in which the outcomes differ, or the times by more than ${ALIKE_SECONDS} s.`,
    '',
    '| scenario | `delete: true` | `delete: ordered` |',
    '| --- | --- | --- |',
    ...lines,
  ].join('\n');
}
