import { plainText, shorten } from '../base/text.ts';
import { formatDuration } from '../base/time.ts';
import type { Outcome } from '../model/outcome.ts';
import { type Cause, causesOf, namespacesOf } from './causes.ts';
import { statisticsMetrics } from './open-metrics.ts';
import type { Report, ReportNamespace } from './report-json.ts';
import {
  counted,
  diagnosed,
  formatCount,
  joinWords,
  listWords,
  literal,
  phrase,
  toMarkdown,
  toPlain,
  type Words,
} from './words.ts';

/** Outcomes without a wait, among them those of forecasts. */
const NO_TEARDOWN: readonly Outcome[] = ['not-found', 'not-terminating', 'clear', 'would-hang'];

/** A namespace for which a run waited. */
type Seen = ReportNamespace & { report: Report; diagnosis: ReportNamespace };

/** Summarizes many reports: how deletions end, how long they take, what holds them. */
export function summarizeReports(reports: readonly Report[]) {
  const teardowns = reports.flatMap((report) =>
    report.namespaces
      .filter(({ outcome, basis }) => basis === undefined && !NO_TEARDOWN.includes(outcome))
      .map((namespace): Seen => ({ ...namespace, report, diagnosis: namespace })),
  );
  const gone = teardowns
    .filter(({ outcome }) => outcome === 'deleted' || outcome === 'recreated')
    .map(({ elapsedSeconds }) => elapsedSeconds);
  return {
    reports: reports.length,
    /** Namespaces for which a run waited. */
    teardowns: teardowns.length,
    outcomes: countBy(teardowns.map(({ outcome }) => outcome)),
    /** Durations of teardowns that ended in `deleted` or `recreated`. */
    deletionSeconds:
      gone.length === 0
        ? undefined
        : {
            median: percentile(gone, 0.5),
            p90: percentile(gone, 0.9),
            longest: Math.max(...gone),
          },
    /** Forecasts that were compared with the later teardown; undefined without any. */
    forecasts: forecastCounts(teardowns),
    /** Causes, those of most namespaces first. */
    causes: causesOf(teardowns)
      .map((cause) => causeCount(cause, teardowns.length))
      .sort(
        (a, b) =>
          b.namespaces - a.namespaces ||
          b.hangs - a.hangs ||
          (a.code + a.what < b.code + b.what ? -1 : 1),
      ),
  };
}

/** Counts over many reports how often a forecast was right. */
function forecastCounts(teardowns: readonly Seen[]) {
  const compared = teardowns.flatMap(({ hindsight, outcome }) =>
    hindsight === undefined || hindsight.verdict === 'not-comparable'
      ? []
      : [{ ...hindsight, isHang: outcome !== 'deleted' && outcome !== 'recreated' }],
  );
  const count = (is: (one: (typeof compared)[number]) => boolean): number =>
    compared.filter(is).length;
  if (compared.length === 0) return undefined;
  return {
    compared: compared.length,
    foreseen: count(({ verdict }) => verdict === 'foreseen'),
    open: count(({ verdict }) => verdict === 'open'),
    notForeseen: count(({ verdict }) => verdict === 'not-foreseen'),
    /** Forecasts of `clear` before a hang. */
    missedHangs: count(
      ({ verdict, isHang, outcome }) => isHang && verdict === 'not-foreseen' && outcome === 'clear',
    ),
    /** Forecasts of a hang before a deletion. */
    falseAlarms: count(({ verdict, isHang }) => !isHang && verdict === 'not-foreseen'),
  };
}

function causeCount(cause: Cause<Seen>, teardowns: number) {
  const [{ finding, namespace }] = cause;
  const { kind, name } = finding.subject;
  // Every run has another namespace, so its name must not be part of the name of a cause.
  const isAboutHome = kind === 'Namespace' && name === namespace.name;
  const seen = namespacesOf(cause);
  const unique = (values: unknown[]): number => new Set(values).size;
  const waits = seen.map(({ elapsedSeconds }) => elapsedSeconds);
  const times = seen.map(({ report }) => report.generatedAt).sort();
  const began = seen.flatMap(({ deletionTimestamp }) => deletionTimestamp ?? []).sort();
  return {
    code: finding.code,
    /** The finalizer, or else the object itself. */
    what: finding.finalizer ?? (isAboutHome ? 'the namespace itself' : `${kind} ${name}`),
    /** Namespaces, each counted once over all reports. */
    namespaces: unique(seen.map(({ name, uid }) => `${name} ${uid}`)),
    reports: unique(seen.map(({ report }) => report)),
    /** Teardowns in which it was a root cause, and their share of all, 0 to 1. */
    hangs: seen.length,
    share: seen.length / teardowns,
    /** The median duration of the teardowns that this cause held. */
    medianSeconds: percentile(waits, 0.5),
    /** The first time at which it held a namespace, according to the reports: ISO 8601. */
    since: began[0] ?? times[0] ?? '',
    lastSeen: times.at(-1) ?? '',
  };
}

export type Statistics = ReturnType<typeof summarizeReports>;
type CauseCount = Statistics['causes'][number];

function countBy(values: readonly string[]) {
  return [...Map.groupBy(values, (value) => value)]
    .map(([outcome, all]) => ({ outcome, count: all.length }))
    .sort((a, b) => b.count - a.count || (a.outcome < b.outcome ? -1 : 1));
}

/** Returns the percentile by nearest rank, which is always a measured value. */
function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

const FORMATS = {
  text: (all: Statistics) => `${statisticsLines(all).map(toPlain).join('\n')}\n`,
  markdown: (all: Statistics) =>
    `${statisticsLines(all)
      .map((line) => `- ${toMarkdown(line)}`)
      .join('\n')}\n`,
  csv: statisticsCsv,
  prometheus: statisticsMetrics,
};

export function renderStatistics(statistics: Statistics, format: keyof typeof FORMATS): string {
  return FORMATS[format](statistics);
}

/** Writes the summary, and a line for each cause. */
function statisticsLines(all: Statistics): Words[] {
  const { causes, deletionSeconds: took, forecasts } = all;
  const outcomes = all.outcomes.map(
    ({ outcome, count }) => phrase`${formatCount(count)} ${diagnosed(outcome)}`,
  );
  const teardowns = `${counted(all.teardowns, 'teardown')} in ${counted(all.reports, 'report')}`;
  const lines: Words[] = [
    joinWords([[teardowns], listWords(outcomes)], ': '),
    [
      took === undefined
        ? 'No namespace was deleted, so there is no deletion time.'
        : `Deletion takes ${seconds(took.median)} (median), ${seconds(took.p90)} (90%), ${seconds(took.longest)} at most.`,
    ],
  ];
  if (forecasts !== undefined) {
    const { compared, foreseen, open, notForeseen, missedHangs, falseAlarms } = forecasts;
    lines.push([
      `${counted(compared, 'forecast')} compared with what happened: ${formatCount(foreseen)} foreseen, `,
      `${formatCount(open)} left open, ${formatCount(notForeseen)} not foreseen `,
      `(${counted(missedHangs, 'hang')} called clear, ${counted(falseAlarms, 'false alarm')}).`,
    ]);
  }
  if (causes.length === 0) lines.push(['Nothing hung.']);
  for (const { code, what, ...cause } of causes) {
    lines.push([
      ...phrase`${literal(code)}, ${diagnosed(shorten(what, MAX_WHAT_CHARS))}`,
      `: ${counted(cause.namespaces, 'namespace')} in ${counted(cause.reports, 'report')}, `,
      `${Math.round(cause.share * 100)}% of the teardowns, median wait ${seconds(cause.medianSeconds)}, `,
      diagnosed(`since ${cause.since.slice(0, 10)}, last seen ${cause.lastSeen.slice(0, 10)}`),
    ]);
  }
  return lines;
}

const MAX_WHAT_CHARS = 100;

/** The columns for spreadsheets: raw numbers, and no text that could be read as a formula. */
const CSV_COLUMNS: Record<string, (cause: CauseCount) => string | number> = {
  code: ({ code }) => code,
  what: ({ what }) => what,
  hangs: ({ hangs }) => hangs,
  share: ({ share }) => share.toFixed(4),
  median_seconds: ({ medianSeconds }) => medianSeconds,
  last_seen: ({ lastSeen }) => lastSeen,
  namespaces: ({ namespaces }) => namespaces,
  reports: ({ reports }) => reports,
  since: ({ since }) => since,
};

function statisticsCsv({ causes }: Statistics): string {
  const rows = causes.map((cause) => Object.values(CSV_COLUMNS).map((cell) => String(cell(cause))));
  return [Object.keys(CSV_COLUMNS), ...rows]
    .map((row) => `${row.map(csvField).join(',')}\r\n`)
    .join('');
}

function csvField(value: string): string {
  const text = plainText(value);
  const safe = /^[=+\-@]/.test(text) ? `'${text}` : text;
  return /[",;]/.test(safe) || safe !== text ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function seconds(value: number): string {
  return formatDuration(value * 1_000);
}
