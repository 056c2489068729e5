import { plainText, shorten } from '../base/text.ts';
import { formatDuration } from '../base/time.ts';
import type { Report, ReportNamespace } from '../model/result.ts';
import { table } from './blocks.ts';
import { toMarkdown } from './markup.ts';
import { counted, formatCount, listWords, name, said, toPlain, type Words } from './words.ts';

/** What many reports say together: how deletions end, how long they take, what holds them. */
export interface Statistics {
  reports: number;
  /** Namespaces that somebody waited for. */
  teardowns: number;
  outcomes: { outcome: string; count: number }[];
  /** Of teardowns that ended in `deleted` or `recreated`; undefined without any. */
  deletionSeconds: { median: number; p90: number; longest: number } | undefined;
  /** Most frequent first. */
  causes: CauseCount[];
}

export interface CauseCount {
  code: string;
  /** The finalizer where there is one, else the thing itself: what makes two causes the same. */
  what: string;
  /** Teardowns in which it was a root cause. */
  hangs: number;
  /** Share of all teardowns, 0 to 1. */
  share: number;
  /** Median time that those teardowns took before the gate gave up on them. */
  medianSeconds: number;
  lastSeen: string;
}

export function summarizeReports(reports: readonly Report[]): Statistics {
  const teardowns = reports.flatMap((report) =>
    report.namespaces
      .filter(({ outcome }) => outcome !== 'not-found' && outcome !== 'not-terminating')
      .map((namespace) => ({ namespace, at: report.generatedAt })),
  );
  const gone = teardowns
    .filter(({ namespace }) => namespace.outcome === 'deleted' || namespace.outcome === 'recreated')
    .map(({ namespace }) => namespace.elapsedSeconds);
  return {
    reports: reports.length,
    teardowns: teardowns.length,
    outcomes: countBy(teardowns.map(({ namespace }) => namespace.outcome)),
    deletionSeconds:
      gone.length === 0
        ? undefined
        : {
            median: percentile(gone, 0.5),
            p90: percentile(gone, 0.9),
            longest: Math.max(...gone),
          },
    causes: causesOf(teardowns),
  };
}

interface Seen {
  namespace: ReportNamespace;
  at: string;
}

function causesOf(teardowns: readonly Seen[]): CauseCount[] {
  const groups = new Map<string, { code: string; what: string; seen: Seen[] }>();
  for (const one of teardowns) {
    const byId = new Map(one.namespace.findings.map((finding) => [finding.id, finding]));
    const inThis = new Set<string>();
    for (const id of one.namespace.rootCauses) {
      const finding = byId.get(id);
      if (finding === undefined) continue;
      const what = finding.finalizer ?? thing(finding.subject, one.namespace.name);
      const key = `${finding.code}\n${what}`;
      // Two objects with the same finalizer are one cause of one hang.
      if (inThis.has(key)) continue;
      inThis.add(key);
      const group = groups.get(key) ?? { code: finding.code, what, seen: [] };
      group.seen.push(one);
      groups.set(key, group);
    }
  }
  return [...groups.values()]
    .map(({ code, what, seen }) => ({
      code,
      what,
      hangs: seen.length,
      share: seen.length / teardowns.length,
      medianSeconds: percentile(
        seen.map(({ namespace }) => namespace.elapsedSeconds),
        0.5,
      ),
      lastSeen: seen.map(({ at }) => at).reduce((last, at) => (at > last ? at : last)),
    }))
    .sort((a, b) => b.hangs - a.hangs || (a.code + a.what < b.code + b.what ? -1 : 1));
}

/** Every run has another namespace, so its name must not make two causes of one. */
function thing(subject: { kind: string; name: string }, namespace: string): string {
  return subject.kind === 'Namespace' && subject.name === namespace
    ? 'the namespace itself'
    : `${subject.kind} ${subject.name}`;
}

function countBy(values: readonly string[]): { outcome: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts]
    .map(([outcome, count]) => ({ outcome, count }))
    .sort((a, b) => b.count - a.count || (a.outcome < b.outcome ? -1 : 1));
}

/** Nearest rank: a number that was really measured. */
function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

export type StatisticsFormat = 'text' | 'markdown' | 'csv';

export function renderStatistics(statistics: Statistics, format: StatisticsFormat): string {
  switch (format) {
    case 'text':
      return statisticsText(statistics);
    case 'markdown':
      return statisticsMarkdown(statistics);
    case 'csv':
      return statisticsCsv(statistics);
  }
}

const HEADER = ['root cause', 'what', 'hangs', 'share', 'median wait', 'last seen'];

function headlines(statistics: Statistics): Words[] {
  const { deletionSeconds: took } = statistics;
  const outcomes: Words[] = statistics.outcomes.map(({ outcome, count }) => [
    `${formatCount(count)} `,
    said(outcome),
  ]);
  return [
    [
      `${counted(statistics.teardowns, 'teardown')} in ${counted(statistics.reports, 'report')}`,
      ...(outcomes.length === 0 ? [] : [': ', ...listWords(outcomes)]),
      '.',
    ],
    [
      took === undefined
        ? 'No namespace was deleted, so there is no deletion time.'
        : `Deletion takes ${seconds(took.median)} (median), ${seconds(took.p90)} (90%), ${seconds(took.longest)} at most.`,
    ],
  ];
}

function cells(cause: CauseCount): string[] {
  return [
    cause.code,
    cause.what,
    formatCount(cause.hangs),
    `${Math.round(cause.share * 100)}%`,
    seconds(cause.medianSeconds),
    cause.lastSeen.slice(0, 10),
  ].map((text) => shorten(plainText(text), 100));
}

function statisticsText(statistics: Statistics): string {
  const rows = [HEADER, ...statistics.causes.map(cells)];
  const widths = HEADER.map((_, at) => Math.max(...rows.map((row) => (row[at] ?? '').length)));
  const lines = rows.map((row) =>
    row
      .map((text, at) => text.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const body = statistics.causes.length === 0 ? ['Nothing hung.'] : lines;
  return `${[...headlines(statistics).map(toPlain), '', ...body].join('\n')}\n`;
}

function statisticsMarkdown(statistics: Statistics): string {
  const rows = statistics.causes.map((cause) => {
    const [code = '', what = '', ...rest] = cells(cause);
    return [
      toMarkdown([name(code)]),
      toMarkdown([name(what)]),
      ...rest.map((text) => toMarkdown([said(text)])),
    ];
  });
  const body = rows.length === 0 ? 'Nothing hung.' : table(HEADER, rows);
  return `${[...headlines(statistics).map((words) => toMarkdown(words)), body].join('\n\n')}\n`;
}

/** For spreadsheets: raw numbers, and no text that one would take for a formula. */
function statisticsCsv(statistics: Statistics): string {
  const rows = statistics.causes.map((cause) => [
    cause.code,
    cause.what,
    String(cause.hangs),
    cause.share.toFixed(4),
    String(cause.medianSeconds),
    cause.lastSeen,
  ]);
  const header = ['code', 'what', 'hangs', 'share', 'median_seconds', 'last_seen'];
  return [header, ...rows].map((row) => `${row.map(csvField).join(',')}\r\n`).join('');
}

function csvField(value: string): string {
  const text = plainText(value);
  const safe = /^[=+\-@]/.test(text) ? `'${text}` : text;
  return /[",;]/.test(safe) || safe !== text ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function seconds(value: number): string {
  return formatDuration(value * 1_000);
}
