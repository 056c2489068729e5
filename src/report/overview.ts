import { formatDuration } from '../duration.ts';
import { table } from './blocks.ts';
import type { Detail } from './detail.ts';
import { markOf, stateWords } from './headline.ts';
import { toMarkdown } from './markup.ts';
import type { NamespaceResult, RunResult } from './report.ts';
import { namespaceCause } from './summary-line.ts';
import { formatCount, name } from './words.ts';

/** Several namespaces in one report: how many did not pass, and a line for each. */
export function overviewSections(
  ordered: readonly NamespaceResult[],
  run: RunResult,
  detail: Detail,
): string[] {
  const failed = ordered.filter(({ verdict }) => verdict === 'fail').length;
  const mark = markOf(run.outcome, run.verdict);
  const took = formatDuration(run.elapsedMs);
  const headline =
    failed === 0
      ? `### ${mark} All ${formatCount(ordered.length)} namespaces passed (${took})`
      : `### ${mark} ${formatCount(failed)} of ${formatCount(ordered.length)} namespaces did not pass (${took})`;
  const rows = ordered
    .slice(0, detail.overview)
    .map((namespace) => [
      `${markOf(namespace.outcome, namespace.verdict)} ${toMarkdown([name(namespace.name)])}`,
      stateWords(namespace),
      toMarkdown(namespaceCause(namespace, run)),
    ]);
  if (rows.length === 0) return [headline];
  const left = ordered.length - rows.length;
  const rest = left > 0 ? [`And ${formatCount(left)} more namespaces.`] : [];
  if (rows.length === 0) return [headline];
  return [headline, table(['namespace', 'outcome', 'why'], rows), ...rest];
}
