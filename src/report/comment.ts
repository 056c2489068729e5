import { arrayAt, type Json, numberAt, parseObject, stringAt, valueAt } from '../base/json.ts';
import { codeHtml, plainText, shorten } from '../base/text.ts';
import { formatDuration } from '../base/time.ts';
import { findingsOf } from '../model/finding.ts';
import { OUTCOMES } from '../model/outcome.ts';
import type { RunResult } from '../model/result.ts';
import { isStillHeld } from './causes.ts';
import { longestThatFits, type RenderContext, runLink } from './markdown.ts';
import { outcomeSign } from './sentences.ts';
import type { Ending, Failure } from './view.ts';

/** Limit for the comment, with its hidden lines. The API refuses 65,536 characters. */
export const MAX_COMMENT_CHARS = 60_000;
const MAX_MESSAGE_CHARS = 1_000;
const MAX_TEXT_CHARS = 120;
/** Number of outcomes in the line about the last runs. */
const MAX_HISTORY = 5;
/** Limit for reports that are kept because they are still red. */
const MAX_OPEN = 30;

/** What a gate of the job reported in one run, as stored in the comment. */
export type Entry = NonNullable<ReturnType<typeof readEntry>>;

function readEntry(value: Json | undefined) {
  const outcome = [...OUTCOMES, 'error' as const].find((one) => one === valueAt(value, 'outcome'));
  if (outcome === undefined) return undefined;
  const text = (key: string): string => shorten(stringAt(value, key) ?? '', MAX_TEXT_CHARS);
  const number = (key: string): number => Math.max(0, numberAt(value, key) ?? 0);
  return {
    /** Id of the workflow run, ascending in time, and its number, for people. */
    run: number('run'),
    number: number('number'),
    attempt: number('attempt'),
    /** Time of the result, ISO 8601. */
    at: text('at'),
    /** Hash of the namespaces and the selector as in the workflow; empty if they are not known. */
    scope: text('scope').replace(/[^0-9a-f]/g, ''),
    /** Hash of the cluster; empty if none was reached, or if it was created by the job and is deleted with it. */
    cluster: text('cluster').replace(/[^0-9a-f]/g, ''),
    /** "error": the gate itself failed, so nothing is known. */
    outcome,
    isPass: valueAt(value, 'isPass') === true,
    seconds: number('seconds'),
    /** The namespaces and the selector, for people. */
    about: text('about'),
    /** Code and subject of the first root cause; empty if there was none. */
    code: text('code'),
    subject: text('subject'),
  };
}

/** Reports whether every namespace was deleted, whatever `fail-on` makes of it. */
export function isPassed({ verdict, namespaces }: RunResult): boolean {
  return verdict !== 'fail' && !namespaces.some(isStillHeld);
}

/** Returns the result of a run, as far as an entry stores it. */
export function resultOf(ending: Ending) {
  const none = { isPass: false, code: '', subject: '' };
  if (!('run' in ending)) {
    const seconds = Math.round(ending.elapsedMs / 1_000);
    return { ...none, at: ending.at, outcome: 'error' as const, seconds };
  }
  const { run, namespaces } = ending;
  const { diagnosis, root } = namespaces[0] ?? {};
  // For the reader of a history, the blocking object is clearer than the controller behind it.
  const [first = root] = diagnosis ? findingsOf(diagnosis, diagnosis.blockers) : [];
  return {
    at: run.finishedAt,
    outcome: run.outcome,
    isPass: isPassed(run),
    seconds: Math.round(run.elapsedMs / 1_000),
    code: root?.code ?? '',
    subject: first ? plainText(`${first.subject.kind} ${first.subject.name}`) : '',
  };
}

/** Compares by time: a late report of an older run is not newer, but one of a run that was started again is. */
function compare(a: Entry, b: Entry): number {
  if (a.run !== b.run && a.attempt === 1 && b.attempt === 1) return a.run - b.run;
  return a.at < b.at ? -1 : a.at > b.at ? 1 : 0;
}

/** Reports whether a later run examined the same namespaces in the same cluster. */
function isSuperseded(entry: Entry, all: readonly Entry[]): boolean {
  return all.some(
    (later) =>
      compare(later, entry) > 0 &&
      (entry.scope === '' || later.scope === entry.scope) &&
      (entry.cluster === '' || later.cluster === entry.cluster),
  );
}

function idOf({ run, attempt, scope, cluster }: Entry): string {
  return [run, attempt, scope, cluster].join('.');
}

/** Returns the known entries with `own`, in the order of time. A report that is published again replaces itself. */
function entriesWith(known: readonly Entry[], own: Entry): Entry[] {
  const all = new Map<string, Entry>();
  for (const entry of [...known, own]) {
    if (entry.at >= (all.get(idOf(entry))?.at ?? '')) all.set(idOf(entry), entry);
  }
  const ordered = [...all.values()].sort(compare);
  const open = openOf(ordered).slice(-MAX_OPEN);
  const last = ordered.slice(-MAX_HISTORY);
  return ordered.filter((entry) => last.includes(entry) || open.includes(entry));
}

/** Returns the red entries that no later run of the job has examined again: each keeps the comment red. */
function openOf(entries: readonly Entry[]): Entry[] {
  return entries.filter((entry) => !entry.isPass && !isSuperseded(entry, entries));
}

/** Returns the first line of the gate's comments. `key` is hexadecimal, so it cannot end the HTML comment. */
function markerLine(key: string): string {
  return `<!-- namespace-teardown-gate:v1 key=${key} -->`;
}

/** Reports whether a body is the gate's: the marker is its first line. A quotation begins with ">" or with words. */
export function hasMarker(body: string, key: string): boolean {
  return body.split(/\r?\n/, 1)[0] === markerLine(key);
}

const STATE = /^<!-- namespace-teardown-gate:state ([A-Za-z0-9+/=]+) -->\r?$/m;
const REPORT =
  /^<!-- namespace-teardown-gate:report ([0-9a-f.]+) -->\r?\n([\s\S]*?)\r?\n<!-- namespace-teardown-gate:end -->\r?$/m;

/** Returns the entries of a comment. People can edit it: what cannot be read is dropped. */
export function entriesIn(body: string): Entry[] {
  const state = Buffer.from(STATE.exec(body)?.[1] ?? '', 'base64').toString();
  const entries = arrayAt(parseObject(state), 'entries').map(readEntry);
  return entries.filter((entry) => entry !== undefined);
}

/** Reports whether two bodies tell the same, whatever a host or an editor made of their line ends. */
export function isSameComment(a: string, b: string): boolean {
  const [one, other] = [a, b].map((body) => [STATE.exec(body)?.[1], REPORT.exec(body)?.[1]].join());
  return one === other;
}

/** The part that one run adds to its comment. */
export interface CommentContent {
  /** The key in the marker of the comment. */
  key: string;
  /** The job, such as "preview / teardown (eu)". */
  job: string;
  own: Entry;
  /** Writes the report of this run in at most `maxChars` characters; empty if there is no room for it. */
  section: (maxChars: number) => string;
  /** Returns the address of a run, for links. */
  linkTo: (entry: Entry) => string | undefined;
}

/**
 * Renders the comment of a job, after the comments that it has (`known`; several only if two runs began at once). It has
 * the report of the newest run, or of the newest one whose failure no later run examined again, and the last outcomes.
 */
export function renderComment(
  { key, job, own, section, linkTo }: CommentContent,
  known: readonly string[] = [],
  maxChars = MAX_COMMENT_CHARS,
): string {
  const entries = entriesWith(known.flatMap(entriesIn), own);
  const open = openOf(entries);
  const shown = open.at(-1) ?? entries.at(-1) ?? own;
  const others = open.filter((entry) => entry !== shown);
  const title = (entry: Entry): string => outcomeText(entry, linkTo, entry.about);
  const history = entries.slice(-MAX_HISTORY).map((entry) => outcomeText(entry, linkTo));
  const state = Buffer.from(JSON.stringify({ entries })).toString('base64');
  const render = (report: string): string =>
    [
      markerLine(key),
      `<!-- namespace-teardown-gate:report ${idOf(shown)} -->`,
      report,
      '<!-- namespace-teardown-gate:end -->\n',
      ...others.map((entry) => `- Not examined again: ${title(entry)}`),
      `\n${codeHtml(job)}: ${history.join(' · ')}\n`,
      `<!-- namespace-teardown-gate:state ${state} -->\n`,
    ].join('\n');
  if (shown === own) {
    // A quotation cannot be mistaken for a line of the gate.
    return render(section(maxChars - render('').length).replaceAll('<!--', '&lt;!--'));
  }
  const reports = known.map((body) => REPORT.exec(body));
  const report = reports.find((found) => found?.[1] === idOf(shown))?.[2];
  const brief = render(`### ${title(shown)}`);
  const whole = report === undefined ? brief : render(report);
  return whole.length <= maxChars ? whole : brief;
}

/** Writes "🔴 preview-1: stuck after 5m 02s: owner-missing (Widget db) ([run 812](…))". */
function outcomeText(entry: Entry, linkTo: CommentContent['linkTo'], about = ''): string {
  const { attempt, code, isPass, number, outcome, seconds, subject } = entry;
  const label = `run ${number || '?'}${attempt > 1 ? `, attempt ${attempt}` : ''}`;
  const url = linkTo(entry);
  const run = url === undefined ? label : `[${label}](${url})`;
  const name = about && `${codeHtml(about)}: `;
  if (outcome === 'error') return `🔴 ${name}could not work (${run})`;
  const cause = code === '' ? '' : `: ${codeHtml(code)}${subject && ` (${codeHtml(subject)})`}`;
  const mark = outcomeSign(outcome, isPass ? 'pass' : 'fail');
  return `${mark} ${name}${outcome} after ${formatDuration(seconds * 1_000)}${cause} (${run})`;
}

/** Writes the section of one run in at most `maxChars` characters; empty if there is no room for it. */
export function sectionOf(ending: Ending, context: RenderContext, maxChars: number): string {
  if (!('run' in ending)) return failureSection(ending, context);
  return longestThatFits(ending, context, (text) => text.length <= maxChars);
}

export function failureSection(failure: Failure, context: RenderContext): string {
  const time = plainText(failure.at).replace(/^.*T(\d\d:\d\d).*$/, '$1 UTC');
  return [
    '### 🔴 The teardown gate could not work',
    codeHtml(failure.message, MAX_MESSAGE_CHARS),
    ...failure.hints.map((hint) => codeHtml(hint, MAX_MESSAGE_CHARS)),
    'The state of the namespaces is unknown.',
    `<sub>${runLink(context)} · ${time}</sub>`,
  ].join('\n\n');
}
