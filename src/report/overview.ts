import { formatDuration } from '../base/time.ts';
import { table } from './blocks.ts';
import type { Detail } from './detail.ts';
import { markOf, stateWords } from './headline.ts';
import { toMarkdown } from './markup.ts';
import type { Story } from './story.ts';
import { causeOf } from './summary-line.ts';
import { formatCount, name } from './words.ts';

/** Several namespaces in one report: how many did not pass, and a line for each. */
export function overviewSections({ run, namespaces }: Story, detail: Detail): string[] {
  const failed = namespaces.filter(({ result }) => result.verdict === 'fail').length;
  const mark = markOf(run.outcome, run.verdict);
  const took = formatDuration(run.elapsedMs);
  const headline =
    failed === 0
      ? `### ${mark} All ${formatCount(namespaces.length)} namespaces passed (${took})`
      : `### ${mark} ${formatCount(failed)} of ${formatCount(namespaces.length)} namespaces did not pass (${took})`;
  const rows = namespaces
    .slice(0, detail.overview)
    .map(({ result, narrative }) => [
      `${markOf(result.outcome, result.verdict)} ${toMarkdown([name(result.name)])}`,
      stateWords(result),
      toMarkdown(causeOf(narrative, result.name), detail.chars),
    ]);
  if (rows.length === 0) return [headline];
  const left = namespaces.length - rows.length;
  const rest = left > 0 ? [`And ${formatCount(left)} more namespaces.`] : [];
  return [headline, table(['namespace', 'outcome', 'why'], rows), ...rest];
}
