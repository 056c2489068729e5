import type { Diagnosis, Finding } from '../diagnose/diagnosis.ts';
import { NAMESPACE } from '../diagnose/diagnosis.ts';
import { formatDuration } from '../duration.ts';
import { withAges } from './ages.ts';
import { bullets, folded, table } from './blocks.ts';
import type { Detail } from './detail.ts';
import { diagram } from './diagram.ts';
import { forcedSection } from './forced.ts';
import { prose, toMarkdown } from './markup.ts';
import type { Narrative } from './narrative.ts';
import type { NamespaceResult, RunResult } from './report.ts';
import { findingSentence, linkWords, messageWords, subjectWords } from './sentences.ts';
import { capitalized, counted, formatCount, name, said, type Words } from './words.ts';

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
          evidenceSection(namespace, told, told.diagnosis, run, detail),
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
  return folded(`What else was read: ${titles}`, content);
}

function evidenceSection(
  namespace: NamespaceResult,
  told: Narrative,
  diagnosis: Diagnosis,
  run: RunResult,
  detail: Detail,
): string {
  if (!detail.hasEvidence || told.chains.length === 0) return '';
  const home = namespace.name;
  const links = uniqueLinks(told);
  const edges = chainEdges(told, diagnosis);
  const rows = edges
    .slice(0, detail.rows)
    .map(({ from, to, because }) => [
      from === undefined ? `Namespace ${toMarkdown([name(home)])}` : cell(linkWords(from, home)),
      to === undefined ? '*nobody: this is the root cause*' : cell(linkWords(to, home)),
      prose(because, [], detail.chars),
    ]);
  const evidence = links
    .filter((link) => link.evidence.length > 0)
    .slice(0, detail.rows)
    .map(
      (link) =>
        `${toMarkdown(capitalized(findingSentence(link, home)), detail.chars)}${ageOf(link, run)}:\n${link.evidence
          .slice(0, 20)
          .map((line) => `  - ${prose(line, [], detail.chars)}`)
          .join('\n')}`,
    );
  const parts = [
    rows.length === 0 ? '' : table(['', 'waits for', 'because'], rows),
    bullets(evidence),
    diagnosis.contradictions.length === 0
      ? ''
      : bullets(diagnosis.contradictions.slice(0, 10).map((line) => prose(line, [], detail.chars))),
    detail.hasDiagram ? diagram(diagnosis, home) : '',
  ].filter((part) => part !== '');
  return folded('The chain, with evidence', parts.join('\n\n'));
}

function uniqueLinks(told: Narrative): Finding[] {
  return [
    ...new Map(told.chains.flatMap(({ links }) => links).map((link) => [link.id, link])).values(),
  ];
}

interface ChainEdge {
  from: Finding | undefined;
  to: Finding | undefined;
  because: string;
}

/** The edges along the chains, once each, ending at each root cause. */
function chainEdges(told: Narrative, diagnosis: Diagnosis): ChainEdge[] {
  const because = new Map(
    diagnosis.edges.map((edge) => [`${edge.from}\n${edge.to}`, edge.because]),
  );
  const edges = new Map<string, ChainEdge>();
  for (const { links, isDeadlock } of told.chains) {
    let from: Finding | undefined;
    for (const to of links) {
      const key = `${from?.id ?? NAMESPACE}\n${to.id}`;
      edges.set(key, { from, to, because: because.get(key) ?? to.message });
      from = to;
    }
    if (from === undefined) continue;
    const back = because.get(`${from.id}\n${NAMESPACE}`);
    const closing = back ?? from.message;
    if (isDeadlock || back === undefined)
      edges.set(`${from.id}\n`, { from, to: undefined, because: closing });
  }
  return [...edges.values()];
}

/** Only where there is more than the chains tell. */
function findingsSection(
  namespace: NamespaceResult,
  told: Narrative,
  diagnosis: Diagnosis,
  run: RunResult,
  detail: Detail,
): string {
  const isAllTold = detail.hasEvidence && uniqueLinks(told).length === diagnosis.findings.length;
  if (detail.findings === 0 || isAllTold || diagnosis.findings.length === 0) return '';
  const home = namespace.name;
  const shown = diagnosis.findings.slice(0, detail.findings);
  const rows = shown.map((finding) => [
    toMarkdown([name(finding.code)]),
    cell(subjectWords(finding.subject, home)),
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

function cell(words: Words): string {
  return toMarkdown(words);
}

function ageOf(finding: Finding, run: RunResult): string {
  const age = Date.parse(run.finishedAt) - Date.parse(finding.since ?? '');
  return Number.isNaN(age) ? '' : `, for ${formatDuration(age)}`;
}

function withRest(content: string, left: number, noun: string, plural = `${noun}s`): string {
  if (left <= 0) return content;
  return `${content}\n\nAnd ${formatCount(left)} more ${left === 1 ? noun : plural}; report.json has all of them.`;
}
