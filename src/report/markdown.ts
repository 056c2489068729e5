import type { RunResult } from '../model/result.ts';
import { clockTime } from './ages.ts';
import { type Detail, FILE, LADDER } from './detail.ts';
import { foldedSections } from './folds.ts';
import { clusterWords, markOf, nothingToTell } from './headline.ts';
import { leadSections, openingSections } from './lead.ts';
import { toMarkdown } from './markup.ts';
import { overviewSections } from './overview.ts';
import { type Story, type Told, tellStory } from './story.ts';
import { capitalized, name, said } from './words.ts';

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
  const story = tellStory(result);
  return longestThatFits(
    (detail, isShortened) => renderDocument(story, context, detail, isShortened),
    (text) => Buffer.byteLength(text) <= maxBytes,
  );
}

/** report.md: everything, for whoever downloads it. */
export function renderMarkdownReport(result: RunResult, context: RenderContext): string {
  return renderDocument(tellStory(result), context, FILE, false);
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

function renderDocument(
  story: Story,
  context: RenderContext,
  detail: Detail,
  isShortened: boolean,
): string {
  const sections = [...bodySections(story, detail), footer(story.run, context, isShortened)];
  return `${sections.join('\n\n')}\n`;
}

/** All namespaces, the worst first; those that simply went have only their line in the table. */
export function bodySections(story: Story, detail: Detail): string[] {
  const [only, ...others] = story.namespaces;
  if (only === undefined) return [nothingMatched(story.run)];
  if (others.length === 0) return fullSections(only, story.run, detail, '###');
  return [
    ...overviewSections(story, detail),
    ...story.namespaces
      .filter(needsTelling)
      .slice(0, detail.namespaces)
      .flatMap((told) => oneOfMany(told, story.run, detail)),
  ];
}

function nothingMatched(result: RunResult): string {
  const { outcome, verdict } = result;
  return `### ${markOf(outcome, verdict)} ${toMarkdown(capitalized([nothingToTell(result)]))}`;
}

function fullSections(
  { result, narrative }: Told,
  run: RunResult,
  detail: Detail,
  level: '###' | '####',
): string[] {
  return [
    ...leadSections(narrative, detail, level),
    ...foldedSections(result, narrative, run, detail),
  ];
}

function oneOfMany(told: Told, run: RunResult, detail: Detail): string[] {
  if (told.sameAs === undefined) return fullSections(told, run, detail, '####');
  return [
    ...openingSections({ ...told.narrative, fault: undefined }, detail, '####'),
    `The same as for ${toMarkdown([name(told.sameAs.name)])} above, with the same remedy.`,
  ];
}

function needsTelling({ result }: Told): boolean {
  return result.verdict !== 'pass' || result.forced !== null;
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
