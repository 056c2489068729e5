import { parseObject } from '../base/json.ts';
import { plainText, shorten } from '../base/text.ts';
import { findingsOf } from '../model/finding.ts';
import { OUTCOMES } from '../model/outcome.ts';
import type { RunResult } from '../model/result.ts';
import { isStillHeld } from './causes.ts';
import type { Ending } from './view.ts';

/**
 * The report of one job of one run, as stored in the comment: for its history, and for its rows as long as
 * no later run examined the same namespaces.
 */
export type Teardown = {
  [K in keyof typeof FIELDS]: Exclude<ReturnType<(typeof FIELDS)[K]>, undefined>;
};

/** Number of runs of a workflow without a report of a job, after which the job counts as no longer reporting. */
const MISSED_RUNS = 3;
const MAX_SILENCE_MS = 14 * 24 * 3_600_000;
const MAX_HISTORY = 20;
/** Limit for the state in a comment. An entry has about 700 characters. */
const MAX_STATE_CHARS = 20_000;
const MAX_LEFT = 20;
const MAX_TEXT_CHARS = 120;

/** Reports whether every namespace was deleted, whatever `fail-on` makes of it. */
export function isPassed({ verdict, namespaces }: RunResult): boolean {
  return verdict !== 'fail' && !namespaces.some(isStillHeld);
}

/** Returns the result of a run, as far as a teardown stores it. */
export function storedResult(ending: Ending) {
  if (!('run' in ending)) {
    const seconds = Math.round(ending.elapsedMs / 1_000);
    return { ...NOTHING_KNOWN, at: ending.at, outcome: 'error' as const, seconds };
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
    cluster: id(run.cluster.uid),
    left: namesOf(run.namespaces.filter((one) => one.verdict === 'fail' || isStillHeld(one))),
    isSettled: false,
    code: root?.code ?? '',
    subject: first ? shortText(plainText(`${first.subject.kind} ${first.subject.name}`)) : '',
  };
}

/**
 * Returns the names. A name that cannot be parsed counts as "and others", so that the group is never reported as
 * deleted.
 */
function namesOf(namespaces: readonly { name: string }[]): string[] {
  const names = namespaces.slice(0, MAX_LEFT).map(({ name }) => shortText(name));
  return namespaces.length > MAX_LEFT ? [...names, '…'] : names;
}

const NOTHING_KNOWN = {
  isPass: false,
  cluster: '',
  left: [] as string[],
  isSettled: false,
  code: '',
  subject: '',
};

/**
 * Adds the report `next`; `gone` are the namespaces that it saw deleted. A report that is published again replaces
 * itself. `known` has the entries that other writers added meanwhile, so that a repeated write loses none of them.
 */
export function addTeardown(
  known: readonly Teardown[],
  next: Teardown,
  gone: readonly string[],
): Teardown[] {
  const all = new Map<string, Teardown>();
  for (const entry of [...known, next]) {
    const same = all.get(teardownId(entry));
    const isNews = same === undefined || entry.at > same.at || entry === next;
    const newest = isNews ? entry : same;
    const isSettled =
      newest.isSettled || (same?.at === entry.at && (entry.isSettled || same.isSettled));
    all.set(teardownId(entry), isSettled === newest.isSettled ? newest : { ...newest, isSettled });
  }
  const settled = [...all.values()].map((entry) => settledEntry(entry, next, gone));
  return entriesWithRoom(settled.sort(byRun), teardownId(next));
}

/**
 * Reports whether a body has the entry of this run (`own`), and all open entries of the bodies that were read (`seen`).
 * A row that had no room may be represented by the row for the rest.
 */
export function isUpToDate(
  body: string,
  seen: readonly string[],
  { own, gone }: { own: Teardown; gone: readonly string[] },
): boolean {
  const told = teardownsIn(body);
  const { rows } = currentRows(addTeardown(seen.flatMap(teardownsIn), own, gone));
  const open = rows.filter((row) => !row.isPass && row.job !== REST);
  const keyOf = (one: Teardown): string => [teardownId(one), one.at, one.outcome].join(' ');
  const keys = new Set(told.map(keyOf));
  const hasRest = told.some(({ job }) => job === REST);
  return keys.has(keyOf(own)) && (hasRest || open.every((row) => keys.has(keyOf(row))));
}

/** Returns the id of a section in the comment: letters, digits and characters that cannot end an HTML comment. */
export function teardownId(entry: Teardown): string {
  const { run, number, attempt, job, scope, cluster, address } = entry;
  const parts = [run === '' ? `n${number}` : run, attempt, job, scope, cluster || address];
  return parts.join('.').replaceAll('--', '-');
}

/**
 * Marks an entry as settled if another job, or the same job with other inputs, saw its namespaces deleted. This requires
 * the UID of the cluster: one address may lead to several clusters.
 */
function settledEntry(entry: Teardown, next: Teardown, gone: readonly string[]): Teardown {
  const isThere = next.cluster !== '' && next.cluster === entry.cluster;
  if (entry.left.length === 0 || !isThere || !isLater(next, entry)) return entry;
  const left = entry.left.filter((name) => !gone.includes(name));
  return { ...entry, left, isSettled: entry.isSettled || left.length === 0 };
}

/** Keeps, as long as there is room: the newest entry, then the rows, the worst first, then the latest other entries. */
function entriesWithRoom(ordered: readonly Teardown[], told: string): Teardown[] {
  const { rows } = currentRows(ordered);
  const others = ordered.filter((entry) => !rows.includes(entry)).slice(-MAX_HISTORY);
  const isTold = (entry: Teardown): boolean => teardownId(entry) === told;
  const wanted = [...rows, ...others.reverse()];
  let chars = 0;
  const kept = [...wanted.filter(isTold), ...wanted.filter((one) => !isTold(one))].filter(
    (entry) => {
      chars += encode(entry).length + 1;
      return chars <= MAX_STATE_CHARS;
    },
  );
  const lost = rows.find((row) => !row.isPass && !kept.includes(row));
  const remembered = ordered.filter((entry) => kept.includes(entry));
  if (lost === undefined) return remembered;
  const rest = summaryEntry(lost);
  const known = remembered.filter((entry) => teardownId(entry) !== teardownId(rest));
  return [...known, rest].sort(byRun);
}

const REST = 'rest';
/**
 * Returns the row for all rows without room, so that a comment does not turn green because of entries that it has
 * dropped. No job reports under this id, so the row is removed like that of a job that stopped reporting.
 */
function summaryEntry(lost: Teardown): Teardown {
  const where = 'others, for which there is no room here';
  const nowhere = { scope: '', about: '', address: '', isOwnCluster: false };
  return { ...lost, ...NOTHING_KNOWN, ...nowhere, job: REST, where };
}

/**
 * Returns the entries that no later run replaced, the worst first. A later run replaces an entry if it examined the
 * same namespaces in the same cluster. An entry that passed is kept only until its job reports again. A run that failed
 * before it could examine the namespaces of an open row has no row (`failed`): both are shown as one teardown.
 */
export function currentRows(all: readonly Teardown[]) {
  const rank = (entry: Teardown): number => {
    if (entry.isPass) return 0;
    if (isStale(entry, all)) return 1;
    return 2 + OUTCOMES.indexOf(entry.outcome === 'error' ? 'inconclusive' : entry.outcome);
  };
  const current = all.filter(
    (entry) => !entry.isSettled && !all.some((later) => supersedes(later, entry)),
  );
  const open = current.filter(({ isPass }) => !isPass);
  const failed = current.filter((entry) => open.some((row) => isFailedExamination(entry, row)));
  const rows = current.filter((entry) => !failed.includes(entry));
  return { rows: rows.sort((a, b) => rank(b) - rank(a) || (a.where < b.where ? -1 : 1)), failed };
}

function isFailedExamination(later: Teardown, open: Teardown): boolean {
  const isAbout = later.scope === open.scope || later.scope === '';
  const isError = later.outcome === 'error' && open.outcome !== 'error';
  return isError && later.job === open.job && isAbout && isLater(later, open);
}

function supersedes(later: Teardown, entry: Teardown): boolean {
  if (later.job !== entry.job || !isLater(later, entry)) return false;
  if (entry.isPass || entry.isOwnCluster) return true;
  const isSameScope = later.scope === entry.scope;
  if (entry.outcome === 'error') {
    return later.outcome === 'error' || isSameScope || entry.scope === '';
  }
  return isSameScope && isSameCluster(later, entry);
}

/**
 * Reports whether the later runs of its workflow have no report of the job: it was renamed or removed, or the
 * cluster was deleted. The result is then unknown, so the row is neither red for ever nor green.
 */
export function isStale(entry: Teardown, all: readonly Teardown[]): boolean {
  if (entry.isPass) return false;
  // A run of its job that could not examine the namespaces counts as a report.
  const reports = [entry, ...all.filter((other) => isFailedExamination(other, entry)).sort(byRun)];
  const last = reports.at(-1) ?? entry;
  const runs = all.filter((other) => other.workflow === entry.workflow && isLater(other, last));
  const newest = Math.max(...all.map(({ at }) => Date.parse(at) || 0));
  return (
    new Set(runs.map(({ run }) => run)).size >= MISSED_RUNS ||
    newest - Date.parse(last.at) > MAX_SILENCE_MS
  );
}

function isSameCluster(a: Teardown, b: Teardown): boolean {
  return a.cluster !== '' && b.cluster !== '' ? a.cluster === b.cluster : a.address === b.address;
}

/**
 * Compares runs by their numbers, not by time: a late report of an older run is not newer. Only a run that was started
 * again is not older than the runs that ended before it.
 */
function isLater(a: Teardown, b: Teardown): boolean {
  const wasRunAgain = a.run !== b.run && b.attempt > 1 && Date.parse(b.at) > Date.parse(a.at);
  return compareRuns(a, b) > 0 && !wasRunAgain;
}

function compareRuns(a: Teardown, b: Teardown): number {
  const [first, second] = [BigInt(a.run || 0), BigInt(b.run || 0)];
  return first === second ? a.attempt - b.attempt : first > second ? 1 : -1;
}

function byRun(a: Teardown, b: Teardown): number {
  return compareRuns(a, b) || (a.at < b.at ? -1 : a.at > b.at ? 1 : 0);
}

/** The first line of the state in a comment. */
export const STATE_LINE = '<!-- namespace-teardown-gate:state';
const BLOCK = /^<!-- namespace-teardown-gate:state\r?\n([\s\S]*?)^-->/m;

/**
 * Writes the hidden block, one line of base64 per entry: it has no character that could end the HTML comment or mean
 * anything to Markdown, and if one line is damaged, the others can still be read.
 */
export function stateBlock(all: readonly Teardown[], signature: string | undefined): string {
  const lines = all.map(encode);
  if (signature !== undefined) lines.unshift(`by ${signature}`);
  return [STATE_LINE, ...lines, '-->'].join('\n');
}

/** Returns the entries of a comment. People can edit comments: a line that is no valid entry is dropped. */
export function teardownsIn(body: string): Teardown[] {
  return stateLines(body).flatMap(readTeardown);
}

export function signatureIn(body: string): string | undefined {
  const line = stateLines(body).find((one) => one.startsWith('by '));
  return line === undefined ? undefined : /^by ([0-9a-f]{16,64})$/.exec(line)?.[1];
}

function stateLines(body: string): string[] {
  return (BLOCK.exec(body)?.[1] ?? '').split(/\r?\n/);
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64');
}

const digits = textMatching(/^\d{1,19}$/);
/** Text that is harmless in an HTML comment. */
const id = textMatching(/^[A-Za-z0-9-]{1,64}$/);

/** Parsers by field: an invalid required field makes the entry invalid; other invalid fields are left empty. */
const FIELDS = {
  /** Id of the workflow run, digits only; empty if the host does not provide it. */
  run: digits,
  attempt: finiteNumber,
  /** Number of the run within its workflow, for people. */
  number: digits,
  /** Hashes of the workflow, and of the workflow, the job and its matrix. */
  workflow: id,
  job: id,
  /** "preview / teardown (eu)". */
  where: shortText,
  /** Hash of the namespaces and the selector as in the workflow; empty if they are not known. */
  scope: id,
  /** The namespaces and the selector, for people. */
  about: shortText,
  /** ISO 8601. */
  at: textMatching(/^[0-9T:.Z+-]{1,40}$/),
  /** "error": the gate itself failed, so nothing is known. */
  outcome: (value: unknown) => [...OUTCOMES, 'error' as const].find((known) => known === value),
  /** Whether the outcome passes, whatever `fail-on` makes of it. */
  isPass: (value: unknown) => (typeof value === 'boolean' ? value : undefined),
  seconds: finiteNumber,
  /** UID of kube-system; empty if it could not be read, or the cluster could not be reached. */
  cluster: id,
  /** Hash of the API server's address; empty if no cluster could be reached. */
  address: id,
  /** The cluster was created by the job that reported, and is deleted with it. */
  isOwnCluster: (value: unknown) => value === true,
  /** Namespaces that did not pass. */
  left: (value: unknown) =>
    Array.isArray(value) ? value.slice(0, MAX_LEFT + 1).map(shortText) : undefined,
  /** Other jobs have seen since that all of these were deleted. */
  isSettled: (value: unknown) => value === true,
  /** Code and subject of the first root cause; empty when there was none. */
  code: shortText,
  subject: shortText,
};

function readTeardown(line: string): Teardown[] {
  const given = parseObject(Buffer.from(line, 'base64').toString()) ?? {};
  const read = Object.entries(FIELDS).map(([key, field]) => [key, field(given[key])] as const);
  if (read.some(([, one]) => one === undefined)) return [];
  return [Object.fromEntries(read) as unknown as Teardown];
}

function finiteNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function textMatching(shape: RegExp): (value: unknown) => string {
  return (value) => (typeof value === 'string' && shape.test(value) ? value : '');
}

function shortText(value: unknown): string {
  return typeof value === 'string' ? shorten(value, MAX_TEXT_CHARS) : '';
}
