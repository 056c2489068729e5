import { clockTime } from './ages.ts';
import { type Detail, FILE, LADDER } from './detail.ts';
import { foldedSections } from './folds.ts';
import { clusterWords } from './headline.ts';
import { leadSections, openingSections } from './lead.ts';
import { toMarkdown } from './markup.ts';
import { narrate } from './narrative.ts';
import { worstFirst } from './order.ts';
import { overviewSections } from './overview.ts';
import type { NamespaceResult, RunResult } from './report.ts';
import { sameCauseAs } from './shared-cause.ts';
import { name, said } from './words.ts';

export interface RenderContext {
  /** Address of this run, for links; ours, never from the cluster. */
  runUrl?: string;
  /** "run 812, attempt 1". */
  runLabel?: string;
  /** Where report.json lies. */
  reportPath?: string;
  /** ISO 8601, our clock. */
  finishedAt: string;
}

/** The job summary, in the longest form that stays below `maxBytes`. */
export function renderSummary(result: RunResult, context: RenderContext, maxBytes: number): string {
  return longestThatFits(
    (detail, isShortened) => renderDocument(result, context, detail, isShortened),
    (text) => Buffer.byteLength(text) <= maxBytes,
  );
}

/** report.md: everything, for whoever downloads it. */
export function renderMarkdownReport(result: RunResult, context: RenderContext): string {
  return renderDocument(result, context, FILE, false);
}

/** Empty when not even the shortest form fits: then there is no room to say anything. */
export function longestThatFits(
  render: (detail: Detail, isShortened: boolean) => string,
  fits: (text: string) => boolean,
): string {
  for (const [at, detail] of LADDER.entries()) {
    const text = render(detail, at > 0);
    if (fits(text)) return text;
  }
  return '';
}

export function renderDocument(
  result: RunResult,
  context: RenderContext,
  detail: Detail,
  isShortened: boolean,
): string {
  return `${[...bodySections(result, detail), footer(result, context, isShortened)].join('\n\n')}\n`;
}

/** All namespaces, the worst first; those that simply went have only their line in the table. */
export function bodySections(result: RunResult, detail: Detail): string[] {
  const ordered = worstFirst(result.namespaces);
  const [only] = ordered;
  if (only === undefined) return ['### ✅ No namespace matched the selector'];
  if (ordered.length === 1) {
    const told = narrate(only, result);
    return [...leadSections(told, detail, '###'), ...foldedSections(only, told, result, detail)];
  }
  const same = sameCauseAs(ordered);
  return [
    ...overviewSections(ordered, result, detail),
    ...ordered
      .filter(needsTelling)
      .slice(0, detail.namespaces)
      .flatMap((namespace) => oneOfMany(namespace, same.get(namespace), result, detail)),
  ];
}

function oneOfMany(
  namespace: NamespaceResult,
  same: NamespaceResult | undefined,
  result: RunResult,
  detail: Detail,
): string[] {
  const told = narrate(namespace, result);
  if (same === undefined) {
    return [
      ...leadSections(told, detail, '####'),
      ...foldedSections(namespace, told, result, detail),
    ];
  }
  return [
    ...openingSections({ ...told, fault: undefined }, detail, '####'),
    `The same as for ${toMarkdown([name(same.name)])} above, with the same remedy.`,
  ];
}

function needsTelling(namespace: NamespaceResult): boolean {
  return namespace.verdict !== 'pass' || namespace.forced !== null;
}

export function footer(result: RunResult, context: RenderContext, isShortened: boolean): string {
  const inspected = Math.max(
    0,
    ...result.namespaces.map(({ diagnosis }) => diagnosis?.inspectedTypes ?? 0),
  );
  const run = toMarkdown([said(context.runLabel ?? 'this run')]);
  const parts = [
    context.runUrl === undefined ? run : `[${run}](${context.runUrl})`,
    clockTime(context.finishedAt),
    toMarkdown(clusterWords(result)),
    inspected === 0 ? '' : `${inspected} resource types inspected`,
    isShortened
      ? `shortened; the full report is in ${toMarkdown([name(context.reportPath ?? 'report.json')])}`
      : '',
  ];
  return `<sub>${parts.filter((part) => part !== '').join(' · ')}</sub>`;
}
