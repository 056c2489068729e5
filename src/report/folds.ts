import type { Diagnosis } from '../model/finding.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import { withAges } from './ages.ts';
import { folded, table } from './blocks.ts';
import { ageOf, chainLinks, chainSection } from './chain-section.ts';
import type { Detail } from './detail.ts';
import { forcedSection } from './forced.ts';
import { prose, toMarkdown } from './markup.ts';
import type { Narrative } from './narrative.ts';
import { messageWords } from './sentences.ts';
import { subjectWords } from './subjects.ts';
import { counted, formatCount, name, said } from './words.ts';

/** Everything that is there for whoever wants to check or to dig; each section can be left out alone. */
export function foldedSections(
  namespace: NamespaceResult,
  told: Narrative,
  run: RunResult,
  detail: Detail,
): string[] {
  // One that went has nothing to unfold.
  const isTold = namespace.diagnosis === undefined && namespace.forced === null;
  if (isTold && namespace.verdict !== 'fail') return [];
  return [
    forcedSection(namespace.forced, detail),
    ...(told.diagnosis === undefined
      ? []
      : [
          chainSection(namespace.name, told, told.diagnosis, run, detail),
          findingsSection(namespace, told, told.diagnosis, run, detail),
        ]),
    readSection(namespace, told.diagnosis, run, detail),
  ].filter((section) => section !== '');
}

interface Part {
  /** For the title of the fold, so that one knows what one would unfold. */
  title: string;
  text: string;
}

/** What else was read, in one fold: most readers never open it. */
function readSection(
  namespace: NamespaceResult,
  diagnosis: Diagnosis | undefined,
  run: RunResult,
  detail: Detail,
): string {
  const parts = [
    ...(diagnosis === undefined
      ? []
      : [queuedPart(diagnosis, detail), notInspectedPart(diagnosis, detail)]),
    conditionsPart(namespace, detail),
    timelinePart(namespace, run, detail),
  ].filter((part) => part !== undefined);
  if (parts.length === 0) return '';
  const titles = parts.map(({ title }) => title).join(', ');
  const content = parts.map(({ text }) => text).join('\n\n');
  return folded(`Details: ${titles}`, content);
}

/** Only where there is more than the chains tell. */
function findingsSection(
  namespace: NamespaceResult,
  told: Narrative,
  diagnosis: Diagnosis,
  run: RunResult,
  detail: Detail,
): string {
  const isAllTold =
    detail.hasEvidence && chainLinks(told.chains).length === diagnosis.findings.length;
  if (detail.findings === 0 || isAllTold || diagnosis.findings.length === 0) return '';
  const home = namespace.name;
  const shown = diagnosis.findings.slice(0, detail.findings);
  const rows = shown.map((finding) => [
    toMarkdown([name(finding.code)]),
    toMarkdown(subjectWords(finding.subject, home)),
    `${toMarkdown(messageWords(finding), detail.chars)}${ageOf(finding, run)}`,
    formatCount(finding.count ?? 1),
  ]);
  const left = diagnosis.findings.length - shown.length;
  return folded(
    `All findings (${formatCount(diagnosis.findings.length)})`,
    withRest(table(['code', 'what', 'why', 'objects'], rows), left, 'finding'),
  );
}

function queuedPart(diagnosis: Diagnosis, detail: Detail): Part | undefined {
  if (detail.rows === 0 || diagnosis.queued.length === 0) return undefined;
  const total = diagnosis.queued.reduce((sum, { count }) => sum + count, 0);
  const shown = diagnosis.queued.slice(0, detail.rows);
  const rows = shown.map(({ apiVersion, kind, count }) => [
    toMarkdown([name(kind)]),
    toMarkdown([name(apiVersion)]),
    formatCount(count),
  ]);
  const content = table(['kind', 'apiVersion', 'objects'], rows);
  return {
    title: counted(total, 'queued object'),
    text: titled(
      `Queued: ${counted(total, 'object')} that nobody has asked to go yet, so no cause`,
      withRest(content, diagnosis.queued.length - shown.length, 'kind'),
    ),
  };
}

function notInspectedPart(diagnosis: Diagnosis, detail: Detail): Part | undefined {
  if (detail.rows === 0 || diagnosis.notInspected.length === 0) return undefined;
  const shown = diagnosis.notInspected.slice(0, detail.rows);
  const rows = shown.map(({ what, reason }) => [
    toMarkdown([said(what)]),
    prose(reason, [], detail.chars),
  ]);
  const left = diagnosis.notInspected.length - shown.length;
  const content = table(['what', 'why not'], rows);
  return {
    title: `${formatCount(diagnosis.notInspected.length)} not inspected`,
    text: titled('Not inspected', withRest(content, left, 'entry', 'entries')),
  };
}

function conditionsPart(namespace: NamespaceResult, detail: Detail): Part | undefined {
  if (!detail.hasRawData || namespace.conditions.length === 0) return undefined;
  const rows = namespace.conditions
    .slice(0, 20)
    .map(({ type, status, reason, message }) => [
      `${toMarkdown([name(type)])} ${toMarkdown([name(status)])}`,
      toMarkdown([name(reason)]),
      prose(message, [], detail.chars),
    ]);
  return {
    title: 'conditions',
    text: titled(
      "The namespace's own conditions, as the cluster words them",
      table(['condition', 'reason', 'message'], rows),
    ),
  };
}

function timelinePart(
  namespace: NamespaceResult,
  run: RunResult,
  detail: Detail,
): Part | undefined {
  if (!detail.hasRawData || namespace.timeline.length === 0) return undefined;
  const shown = namespace.timeline.slice(-detail.rows);
  const rows = shown.map(({ at, event }) => [
    prose(withAges(at, run.finishedAt)),
    prose(withAges(event, run.finishedAt), [], detail.chars),
  ]);
  return { title: 'timeline', text: titled('Timeline', table(['when', 'what'], rows)) };
}

function titled(title: string, content: string): string {
  return `**${title}**\n\n${content}`;
}

function withRest(content: string, left: number, noun: string, plural = `${noun}s`): string {
  if (left <= 0) return content;
  return `${content}\n\nAnd ${formatCount(left)} more ${left === 1 ? noun : plural}; report.json has all of them.`;
}
