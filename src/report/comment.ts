import { arrayAt, type Json, numberAt, parseObject, stringAt, valueAt } from '../base/json.ts';
import { codeHtml, shorten } from '../base/text.ts';
import { OUTCOMES } from '../model/outcome.ts';
import type { RunResult } from '../model/result.ts';
import { isStillHeld } from './causes.ts';
import { outcomeSign } from './sentences.ts';
import type { Ending } from './view.ts';

/** With its hidden lines. The API refuses 65,536 characters. */
export const MAX_COMMENT_CHARS = 60_000;
const MAX_TEXT_CHARS = 120;
/** Outcomes in the line about the last runs. */
const MAX_HISTORY = 5;
const MAX_ENTRIES = 30;

/** What a gate of the job reported in one run, as stored in the comment. */
export type Entry = NonNullable<ReturnType<typeof readEntry>>;

function readEntry(value: Json) {
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
    /** "error": the gate itself failed, so nothing is known. */
    outcome,
    isPass: valueAt(value, 'isPass') === true,
    /** Hash of the namespaces and the selector as in the workflow; empty if they are not known. */
    scope: text('scope'),
    /** The namespaces and the selector, for people. */
    about: text('about'),
  };
}

/** Every namespace was deleted, whatever `fail-on` makes of it. */
export function isPassed({ verdict, namespaces }: RunResult): boolean {
  return verdict !== 'fail' && !namespaces.some(isStillHeld);
}

export function resultOf(ending: Ending) {
  if (!('run' in ending)) return { at: ending.at, outcome: 'error' as const, isPass: false };
  const { finishedAt, outcome } = ending.run;
  return { at: finishedAt, outcome, isPass: isPassed(ending.run) };
}

/** A late report of an older run is not newer, but one of a run that was started again is. */
function compare(a: Entry, b: Entry): number {
  if (a.run !== b.run && a.attempt === 1 && b.attempt === 1) return a.run - b.run;
  return a.at < b.at ? -1 : a.at > b.at ? 1 : 0;
}

function idOf({ run, attempt, scope }: Entry): string {
  return [run, attempt, scope].join('.');
}

/** The red entries whose namespaces no later run of the job has examined: each keeps the comment red. */
function openOf(entries: readonly Entry[]): Entry[] {
  return entries.filter(
    ({ isPass, scope }, at) =>
      !isPass && !entries.slice(at + 1).some((later) => scope === '' || later.scope === scope),
  );
}

/** `key` is hexadecimal, so it cannot end the HTML comment. */
function markerLine(key: string): string {
  return `<!-- namespace-teardown-gate:v1 key=${key} -->`;
}

/** A quotation begins with ">" or with words. */
export function hasMarker(body: string, key: string): boolean {
  return body.split(/\r?\n/, 1)[0] === markerLine(key);
}

const PARTS =
  /^<!-- namespace-teardown-gate:state ([\w+/=]*) -->\r?\n([\s\S]*?)\r?\n<!-- namespace-teardown-gate:end -->\r?$/m;

/** People can edit it: what cannot be read is dropped. */
export function readComment(body: string) {
  const [, state = '', report = ''] = PARTS.exec(body) ?? [];
  const stored = parseObject(Buffer.from(state, 'base64').toString());
  const entries = arrayAt(stored, 'entries').flatMap((one) => readEntry(one) ?? []);
  return { report, shown: stringAt(stored, 'shown'), entries };
}

/** The part that one run adds to its comment. */
export interface CommentContent {
  key: string;
  /** "preview / teardown (eu)". */
  job: string;
  own: Entry;
  /** The report of this run; empty if there is no room for it. */
  section: (maxBytes: number) => string;
  linkTo: (entry: Entry) => string | undefined;
}

/**
 * The report of the newest run, or of the newest one that keeps the comment red, and the last outcomes. `known`: the comments
 * that the job has; several only if two runs began at once.
 */
export function renderComment(
  { key, job, own, section, linkTo }: CommentContent,
  known: readonly string[] = [],
  maxChars = MAX_COMMENT_CHARS,
): string {
  const before = known.map(readComment);
  // A report that is published again replaces itself.
  const all = [...before.flatMap(({ entries }) => entries), own];
  const ordered = [...new Map(all.map((entry) => [idOf(entry), entry])).values()].sort(compare);
  const open = openOf(ordered);
  const shown = open.at(-1) ?? ordered.at(-1) ?? own;
  const last = ordered.slice(-MAX_HISTORY);
  const entries = ordered.filter((one) => last.includes(one) || open.includes(one));
  const title = (entry: Entry): string => outcomeText(entry, linkTo, entry.about);
  const stored = JSON.stringify({ shown: idOf(shown), entries: entries.slice(-MAX_ENTRIES) });
  const render = (report: string): string =>
    [
      markerLine(key),
      `<!-- namespace-teardown-gate:state ${Buffer.from(stored).toString('base64')} -->`,
      report,
      '<!-- namespace-teardown-gate:end -->\n',
      ...open.slice(-MAX_ENTRIES, -1).map((entry) => `- Not examined again: ${title(entry)}`),
      `\n${codeHtml(job)}: ${last.map((entry) => outcomeText(entry, linkTo)).join(' · ')}\n`,
    ].join('\n');
  // A quotation cannot be mistaken for a line of the gate.
  if (shown === own)
    return render(section(maxChars - render('').length).replaceAll('<!--', '&lt;!--'));
  const brief = `### ${title(shown)}`;
  const report = before.find((one) => one.shown === idOf(shown))?.report ?? brief;
  const whole = render(report);
  return whole.length <= maxChars ? whole : render(brief);
}

/** Writes "🔴 preview-1: stuck ([run 812](…))". */
function outcomeText(entry: Entry, linkTo: CommentContent['linkTo'], about = ''): string {
  const { attempt, isPass, number, outcome } = entry;
  const label = `run ${number || '?'}${attempt > 1 ? `, attempt ${attempt}` : ''}`;
  const url = linkTo(entry);
  const run = url === undefined ? label : `[${label}](${url})`;
  const name = about && `${codeHtml(about)}: `;
  if (outcome === 'error') return `🔴 ${name}could not work (${run})`;
  return `${outcomeSign(outcome, isPass ? 'pass' : 'fail')} ${name}${outcome} (${run})`;
}
