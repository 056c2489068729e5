import { codeHtml, plainText } from '../base/text.ts';
import { formatDuration } from '../base/time.ts';
import {
  addTeardown,
  currentRows,
  isStale,
  STATE_LINE,
  stateBlock,
  type Teardown,
  teardownId,
  teardownsIn,
} from './comment-state.ts';
import { longestThatFits, markdownFold, type RenderContext, runLink } from './markdown.ts';
import { outcomeSign } from './sentences.ts';
import type { Ending, Failure } from './view.ts';

/** Limit for the comment, with marker, state and footer. The API refuses 65,536 characters. */
export const MAX_COMMENT_CHARS = 60_000;
/** Limit for the comment together with the notes of people. */
const MAX_BODY_CHARS = 65_000;
const MAX_MESSAGE_CHARS = 1_000;

/** Returns the first line of the gate's comments. `key` is hexadecimal, so it cannot end the HTML comment. */
function markerLine(key: string): string {
  return `<!-- namespace-teardown-gate:v1 key=${key} -->`;
}

/**
 * Reports whether a body is a report: it has the marker on a line of its own, since people may write a note above it, and
 * then the state. Not in a quote (">") nor in a block of code: people explain the marker, and such a comment is theirs.
 */
export function hasMarker(body: string, key: string): boolean {
  const lines = body.split(/\r?\n/);
  const at = lines.indexOf(markerLine(key));
  const fences = lines.slice(0, at).filter((line) => /^ {0,3}(?:```|~~~)/.test(line));
  return at >= 0 && fences.length % 2 === 0 && lines.slice(at).includes(STATE_LINE);
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

/** The part that one run adds to a comment. */
export interface CommentContent {
  /** The key in the marker of the gate's comments. */
  key: string;
  own: Teardown;
  /** Namespaces that the run saw deleted. */
  gone: readonly string[];
  section: (maxChars: number) => string;
  /** Returns the address of a run, for links. */
  linkTo: (teardown: Teardown) => string | undefined;
}

/** Returns the notes that people wrote above and below the report. */
function notesAround(body: string): { above: string; below: string } {
  const [, above = '', report = ''] =
    /^([\s\S]*?)^(<!-- namespace-teardown-gate:v1 [\s\S]*)$/m.exec(body) ?? [];
  const [, below = ''] =
    /^<!-- namespace-teardown-gate:state\r?\n[\s\S]*?^-->([\s\S]*)$/m.exec(report) ?? [];
  return { above: above.trim(), below: below.trim() };
}

/**
 * Renders a row for each job and cluster, the worst first, with its section. The comment is green only if every row is.
 * Reports of other jobs are kept from all bodies that were read (`seen`), and notes of people from the bodies that are
 * replaced (`replaced`). The `signature` shows a writer its own comment.
 */
export function renderComment(
  content: CommentContent,
  { seen = [], replaced = [] }: { seen?: readonly string[]; replaced?: readonly string[] },
  signature: string | undefined,
  maxChars = MAX_COMMENT_CHARS,
): string {
  const notes = replaced.map(notesAround);
  const around = (side: 'above' | 'below'): string[] =>
    [...new Set(notes.map((note) => note[side]))].filter((note) => note !== '');
  const [above, below] = [around('above'), around('below')];
  const noteChars = [...above, ...below].reduce((sum, note) => sum + note.length + 2, 0);
  const room = Math.min(maxChars, MAX_BODY_CHARS - noteChars);
  return [...above, renderReport(content, seen, signature, room), ...below].join('\n\n');
}

/** The content of a comment: all entries, and those of them that have a row. */
interface Table extends Pick<CommentContent, 'linkTo'> {
  all: readonly Teardown[];
  rows: readonly Teardown[];
}

function renderReport(
  { key, own, gone, section, linkTo }: CommentContent,
  seen: readonly string[],
  signature: string | undefined,
  maxChars: number,
): string {
  const teardowns = addTeardown(seen.flatMap(teardownsIn), own, gone);
  const { rows, failed } = currentRows(teardowns);
  const table: Table = { all: teardowns, rows, linkTo };
  const isAlone = rows.length < 2;
  const told = [...rows.filter((row) => isAlone || !isGreen(row)), ...failed];
  const render = (sections: ReadonlyMap<Teardown, string>): string => {
    const parts = told.flatMap((row, index) => {
      const text = sections.get(row);
      // A person has deleted it.
      if (text === undefined)
        return isAlone && index === 0 ? [`### ${rowTitle(row, rows)}, ${runOf(row, linkTo)}`] : [];
      const first = `<!-- namespace-teardown-gate:story ${teardownId(row)} -->`;
      const whole = `${first}\n${text}\n<!-- namespace-teardown-gate:end -->`;
      return index === 0 ? [whole] : [markdownFold(rowTitle(row, rows), whole)];
    });
    return `${[
      markerLine(key),
      ...(isAlone ? [] : [overview(table), rowList(table)]),
      ...parts,
      ...historySections(own, table),
      stateBlock(teardowns, signature),
    ].join('\n\n')}\n`;
  };
  // Sections of other jobs may take half of the room; a job whose section does not fit has its link.
  const found = new Map(seen.flatMap((body) => [...sectionsIn(body)]));
  const kept = new Map<Teardown, string>();
  for (const row of told) {
    const text = row === own ? undefined : found.get(teardownId(row));
    if (text === undefined) continue;
    const more = new Map(kept).set(row, text);
    if (render(more).length < maxChars / 2 + render(new Map()).length / 2) kept.set(row, text);
  }
  if (!told.includes(own)) return render(kept);
  const room = maxChars - render(new Map(kept).set(own, '')).length;
  // A quotation cannot be mistaken for a line of the gate.
  const foreseen = foreseenText(own, teardowns);
  const story = section(room - foreseen.length);
  const mine = story === '' ? '' : `${story}${foreseen}`.replaceAll('<!--', '&lt;!--');
  return render(mine === '' ? kept : new Map(kept).set(own, mine));
}

function sectionsIn(body: string): Map<string, string> {
  const found = new Map<string, string>();
  const parts =
    /^<!-- namespace-teardown-gate:story ([A-Za-z0-9.-]+) -->\n([\s\S]*?)\n<!-- namespace-teardown-gate:end -->$/gm;
  for (const [, id = '', text = ''] of body.replaceAll('\r\n', '\n').matchAll(parts)) {
    if (!found.has(id)) found.set(id, text);
  }
  return found;
}

const FORECASTS: readonly Teardown['outcome'][] = ['clear', 'would-hang'];

/** Returns a sentence about whether the last forecast in this comment, of the same namespaces and cluster, was right. */
function foreseenText(own: Teardown, all: readonly Teardown[]): string {
  if (own.outcome === 'error' || FORECASTS.includes(own.outcome)) return '';
  const forecast = all.findLast(
    ({ outcome, cluster, scope, at }) =>
      FORECASTS.includes(outcome) &&
      cluster !== '' &&
      cluster === own.cluster &&
      scope === own.scope &&
      at < own.at,
  );
  if (forecast === undefined) return '';
  const isSame = forecast.code === own.code && forecast.subject === own.subject;
  const verdict = (): string => {
    if (forecast.outcome === 'clear') return own.isPass ? 'foreseen' : 'not foreseen';
    if (own.isPass) return 'it did not hang';
    return isSame ? 'foreseen' : 'another cause than foreseen';
  };
  return `\n\nThe last forecast in this comment said ${forecast.outcome}${causeOf(forecast)}: ${verdict()}.`;
}

function rowMark({ outcome, isPass }: Teardown): string {
  return outcome === 'error' ? '🔴' : outcomeSign(outcome, isPass ? 'pass' : 'fail');
}

function isGreen(row: Teardown): boolean {
  return row.isPass && rowMark(row) === '✅';
}

function overview({ all, rows }: Table): string {
  const open = rows.filter(({ isPass }) => !isPass);
  const live = open.filter((row) => !isStale(row, all));
  const isRed = live.some((row) => rowMark(row) === '🔴');
  const mark = isRed ? '🔴' : rows.every(isGreen) ? '✅' : '🟡';
  if (open.length === 0) {
    // A job of the last run may have failed without being able to write the comment.
    const earlier = rows.filter((row) => all.some((other) => isOfLaterRun(other, row))).length;
    const when = earlier === 0 ? '' : `, ${earlier} of them in an earlier run`;
    return `### ${mark} All ${rows.length} teardowns finished${when}`;
  }
  const silent = open.length - live.length;
  const have = silent === 1 ? 'has' : 'have';
  const parts = [
    live.length === 0 ? '' : `${live.length} of ${rows.length} teardowns did not finish`,
    silent === 0 ? '' : `${silent} of ${rows.length} ${have} not reported for some time`,
  ];
  return `### ${mark} ${parts.filter((part) => part !== '').join('; ')}`;
}

function isOfLaterRun(other: Teardown, { workflow, number }: Teardown): boolean {
  return other.workflow === workflow && Number(other.number) > Number(number);
}

function rowList({ all, rows, linkTo }: Table): string {
  const lines = rows.map((row) => {
    const known = isStale(row, all)
      ? `⚪ ${rowPlace(row, rows)}: no later run has checked it; it was ${rowMark(row)} ${stateText(row)}`
      : rowTitle(row, rows);
    return `- ${known}, ${runOf(row, linkTo)}`;
  });
  return lines.join('\n');
}

/** Returns the job of a row. Adds the namespaces or the cluster if rows of the same job differ by them. */
function rowPlace(row: Teardown, rows: readonly Teardown[]): string {
  const alike = rows.filter(({ where }) => where === row.where);
  const differs = (key: 'about' | 'cluster'): boolean =>
    row[key] !== '' && alike.some((other) => other[key] !== row[key]);
  return [
    codeHtml(row.where),
    ...(differs('about') ? [`for ${codeHtml(row.about)}`] : []),
    ...(differs('cluster') ? [`in the cluster ${codeHtml(row.cluster.slice(0, 8))}`] : []),
  ].join(' ');
}

function rowTitle(row: Teardown, rows: readonly Teardown[]): string {
  return `${rowMark(row)} ${rowPlace(row, rows)}: ${stateText(row)}`;
}

/** Writes "stuck after 5m 02s: owner-missing (Widget db)". */
function stateText(row: Teardown): string {
  if (row.outcome === 'error') return 'could not work';
  return `${row.outcome} after ${formatDuration(row.seconds * 1_000)}${causeOf(row)}`;
}

function causeOf({ code, subject }: Teardown): string {
  if (code === '') return '';
  return `: ${codeHtml(code)}${subject === '' ? '' : ` (${codeHtml(subject)})`}`;
}

function runOf(row: Teardown, linkTo: CommentContent['linkTo'], word = 'run'): string {
  const { number, attempt } = row;
  const label = `${word} ${number === '' ? '?' : number}${attempt > 1 ? `, attempt ${attempt}` : ''}`;
  const url = linkTo(row);
  return url === undefined ? label : `[${label}](${url})`;
}

function historySections(own: Teardown, { all, rows, linkTo }: Table): string[] {
  if (all.length < 2) return [];
  const items = all.map((entry) => {
    const outcome = entry.outcome === 'deleted' ? '' : ` ${entry.outcome}`;
    const here = entry === own ? ' ← this run' : '';
    return `${rowMark(entry)} ${formatDuration(entry.seconds * 1_000)}${outcome}${here}`;
  });
  const line = items.join(' · ');
  if (!rows.every(({ isPass }) => isPass))
    return [markdownFold('Teardowns of this pull request', line)];
  return [`${lastFailureText(all, linkTo)}Teardowns: ${line}`];
}

/** Writes "Run 12 hung 5m 02s on Widget db; gone since run 13. " */
function lastFailureText(all: readonly Teardown[], linkTo: CommentContent['linkTo']): string {
  const at = all.findLastIndex(({ isPass }) => !isPass);
  const begin = all.slice(0, Math.max(0, at)).findLastIndex(({ isPass }) => isPass) + 1;
  // The hang is more informative than a later run that could not examine the namespaces.
  const failure =
    all.slice(begin, at + 1).findLast(({ outcome }) => outcome !== 'error') ?? all[at];
  if (failure === undefined) return '';
  const label = runOf(failure, linkTo, 'Run');
  const later = all.slice(at + 1);
  const since = later.find(({ job, isPass }) => isPass && job === failure.job) ?? later[0];
  const end = since === undefined ? '. ' : `; deleted since ${runOf(since, linkTo)}. `;
  if (failure.outcome === 'error') return `${label} could not work${end}`;
  const cause = failure.subject || failure.code;
  const on = cause === '' ? '' : ` on ${codeHtml(cause)}`;
  return `${label} hung ${formatDuration(failure.seconds * 1_000)}${on}${end}`;
}
