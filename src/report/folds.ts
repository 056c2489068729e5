import type { Diagnosis, Finding } from '../diagnose/diagnosis.ts';
import { NAMESPACE } from '../diagnose/diagnosis.ts';
import { formatDuration } from '../duration.ts';
import { bullets, folded, table } from './blocks.ts';
import type { Detail } from './detail.ts';
import { diagram } from './diagram.ts';
import { forcedSection } from './forced.ts';
import { prose, toMarkdown } from './markup.ts';
import type { Narrative } from './narrative.ts';
import type { NamespaceResult, RunResult } from './report.ts';
import { findingSubject, messageWords, subjectWords } from './sentences.ts';
import { formatCount, name, said, type Words } from './words.ts';

/** Everything that is there for whoever wants to check or to dig; each section can be left out alone. */
export function foldedSections(
  namespace: NamespaceResult,
  told: Narrative,
  run: RunResult,
  detail: Detail,
): string[] {
  const { diagnosis } = namespace;
  return [
    forcedSection(namespace.forced, detail),
    ...(diagnosis === undefined
      ? []
      : [
          evidenceSection(namespace, told, diagnosis, run, detail),
          findingsSection(namespace, diagnosis, run, detail),
          queuedSection(diagnosis, detail),
          notInspectedSection(diagnosis, detail),
        ]),
    conditionsSection(namespace, detail),
    timelineSection(namespace, detail),
  ].filter((section) => section !== '');
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
      from === undefined
        ? `Namespace ${toMarkdown([name(home)])}`
        : cell(findingSubject(from, home)),
      to === undefined ? '*nobody: this is the root cause*' : cell(findingSubject(to, home)),
      prose(because, [], detail.chars),
    ]);
  const evidence = links
    .filter((link) => link.evidence.length > 0)
    .slice(0, detail.rows)
    .map(
      (link) =>
        `${toMarkdown(findingSubject(link, home))} ${toMarkdown(messageWords(link), detail.chars)}${ageOf(link, run)}:\n${link.evidence
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
    told.terms.length === 0
      ? ''
      : told.terms.map((term) => `<sub>${toMarkdown(term)}</sub>`).join('<br>\n'),
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

function findingsSection(
  namespace: NamespaceResult,
  diagnosis: Diagnosis,
  run: RunResult,
  detail: Detail,
): string {
  if (detail.findings === 0 || diagnosis.findings.length === 0) return '';
  const home = namespace.name;
  const shown = diagnosis.findings.slice(0, detail.findings);
  const rows = shown.map((finding) => [
    toMarkdown([name(finding.code)]),
    cell(subjectWords(finding.subject, home)),
    `${toMarkdown(messageWords(finding), detail.chars)}${ageOf(finding, run)}`,
    formatCount(finding.count ?? 1),
  ]);
  return folded(
    `All findings (${formatCount(diagnosis.findings.length)})`,
    withRest(
      table(['code', 'what', 'why', 'objects'], rows),
      diagnosis.findings.length - shown.length,
      'finding',
    ),
  );
}

function queuedSection(diagnosis: Diagnosis, detail: Detail): string {
  if (detail.rows === 0 || diagnosis.queued.length === 0) return '';
  const total = diagnosis.queued.reduce((sum, { count }) => sum + count, 0);
  const shown = diagnosis.queued.slice(0, detail.rows);
  const rows = shown.map(({ apiVersion, kind, count }) => [
    toMarkdown([name(kind)]),
    toMarkdown([name(apiVersion)]),
    formatCount(count),
  ]);
  return folded(
    `Queued: not asked to go yet, so no cause (${formatCount(total)} objects)`,
    withRest(
      table(['kind', 'apiVersion', 'objects'], rows),
      diagnosis.queued.length - shown.length,
      'kind',
    ),
  );
}

function notInspectedSection(diagnosis: Diagnosis, detail: Detail): string {
  if (detail.rows === 0 || diagnosis.notInspected.length === 0) return '';
  const shown = diagnosis.notInspected.slice(0, detail.rows);
  const rows = shown.map(({ what, reason }) => [
    toMarkdown([said(what)]),
    prose(reason, [], detail.chars),
  ]);
  return folded(
    `Not inspected (${formatCount(diagnosis.notInspected.length)})`,
    withRest(
      table(['what', 'why not'], rows),
      diagnosis.notInspected.length - shown.length,
      'entry',
      'entries',
    ),
  );
}

function conditionsSection(namespace: NamespaceResult, detail: Detail): string {
  if (!detail.hasRawData || namespace.conditions.length === 0) return '';
  const rows = namespace.conditions
    .slice(0, 20)
    .map(({ type, status, reason, message }) => [
      cell([name(type)]),
      cell([name(status)]),
      cell([name(reason)]),
      toMarkdown([{ name: message }], detail.chars),
    ]);
  return folded(
    "The namespace's own conditions, as read",
    table(['type', 'status', 'reason', 'message'], rows),
  );
}

function timelineSection(namespace: NamespaceResult, detail: Detail): string {
  if (!detail.hasRawData || namespace.timeline.length === 0) return '';
  const shown = namespace.timeline.slice(-detail.rows);
  const rows = shown.map(({ at, event }) => [
    toMarkdown([name(at)]),
    prose(event, [], detail.chars),
  ]);
  return folded('Timeline', table(['at', 'event'], rows));
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
