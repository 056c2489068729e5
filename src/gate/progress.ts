import type { Log } from '../base/log.ts';
import {
  type Clocks,
  formatClock,
  formatDuration,
  serverTimestamp,
  type TimelineEntry,
} from '../base/time.ts';
import { namespaceConditions } from '../model/conditions.ts';
import { isBuiltIn, typeName } from '../model/facts/metadata.ts';
import { type Diagnosis, findingsOf } from '../model/finding.ts';
import type { ReadFailure } from '../model/read.ts';
import type { NamespaceFacts, WatchedFinalizer } from '../model/snapshot.ts';

/**
 * Time without a change after which the log says that the gate still waits. The following intervals are longer.
 */
const QUIET_MS = 60_000;
/** Limit for the timeline, so that the report remains readable when a namespace changes often. */
const MAX_TIMELINE = 50;
const MAX_TYPES_IN_A_LINE = 4;
/** Number of changes that are kept of each finalizer's count. */
const MAX_COUNTS = 50;

export type Progress = ReturnType<typeof startProgress>;

/** Writes a line per change, not per poll, into the log and the timeline. */
export function startProgress(
  start: NamespaceFacts,
  deps: Clocks & { log: Pick<Log, 'line'>; startedAt: number },
  earlier: readonly TimelineEntry[] = [],
) {
  const { clock, log, startedAt } = deps;
  const timeline = earlier.slice(0, MAX_TIMELINE - 2);
  let shown = '';
  let news = '';
  let newsAt = clock.now();
  const record = (event: string): void => {
    // The last entry always has a place.
    if (timeline.length >= MAX_TIMELINE) timeline.splice(MAX_TIMELINE - 1, 1);
    timeline.push({ at: serverTimestamp(deps), event });
  };
  const note = (text: string): void => {
    if (text === shown) return;
    shown = text;
    log.line(`${formatClock(clock.now() - startedAt).padStart(7)}  ${start.name}: ${text}`);
    record(text);
  };
  const watched = new Map<string, WatchedFinalizer['counts']>();
  let watchedGroups: string[] = [];
  const changed = (last: NamespaceFacts, trouble: ReadFailure | undefined): void => {
    const { finalizersRemaining, remaining } = namespaceConditions(last.conditions);
    const groups = remaining.map(({ group }) => group).filter((group) => !isBuiltIn(group));
    // The counts add up all types. When an API group is finished, the remaining objects may wait for another
    // controller.
    if (remaining.length > 0) {
      if (watchedGroups.some((group) => !groups.includes(group))) watched.clear();
      watchedGroups = groups;
    }
    for (const { finalizer, count } of trouble === undefined ? finalizersRemaining : []) {
      const counts = watched.get(finalizer) ?? [];
      if (counts.at(-1)?.count === count) continue;
      watched.set(finalizer, [...counts, { at: serverTimestamp(deps), count }].slice(-MAX_COUNTS));
    }
    const text =
      trouble === undefined
        ? describeRemaining(last)
        : `cannot be read at the moment, which does not mean that it was deleted: ${trouble.message}`;
    if (text === undefined || text === news) return;
    news = text;
    newsAt = clock.now();
    note(text);
  };
  record(describeStart(start));
  changed(start, undefined);
  /** Notes from time to time that the gate still waits, until the signal aborts. Never rejects. */
  const noteWhenQuiet = async (nextAt: number, over: AbortSignal): Promise<void> => {
    for (let quietMs = QUIET_MS; ; ) {
      const before = newsAt;
      await clock.sleep(Math.max(0, newsAt + quietMs - clock.now()), over);
      if (over.aborted) return;
      const isQuiet = newsAt === before;
      quietMs = isQuiet ? 2 * quietMs : QUIET_MS;
      if (!isQuiet) continue;
      const isAhead = nextAt > clock.now();
      const next = isAhead ? `; next examination at ${formatClock(nextAt - startedAt)}` : '';
      note(`no change for ${formatDuration(clock.now() - newsAt)}${next}`);
    }
  };
  return {
    changed,
    noteWhenQuiet,
    /** Number of objects that each finalizer has held while the same API groups remained. */
    watched: (): WatchedFinalizer[] =>
      [...watched].map(([finalizer, counts]) => ({ finalizer, counts })),
    note,
    examined(diagnosis: Diagnosis): void {
      const cause = causeText(diagnosis);
      if (cause !== undefined) note(cause);
    },
    end(event: string): TimelineEntry[] {
      if (timeline.at(-1)?.event !== event) record(event);
      return timeline;
    },
  };
}

/**
 * Returns the first root cause as a sentence. `unexplained` is left out: only the last examination reports it.
 */
export function causeText(diagnosis: Diagnosis): string | undefined {
  const [cause, ...others] = findingsOf(diagnosis, diagnosis.rootCauses);
  if (cause === undefined || cause.code === 'unexplained') return undefined;
  const more = others.length > 0 ? ` (and ${others.length} more)` : '';
  return `${cause.subject.kind} ${cause.subject.name} ${cause.message}${more}`;
}

export function describeStart({ deletionTimestamp }: NamespaceFacts): string {
  return deletionTimestamp === undefined
    ? 'its deletion was requested'
    : `terminating since ${deletionTimestamp}`;
}

/**
 * Describes the counts in the namespace's conditions, for the progress log only. They are incomplete while pods
 * remain on Kubernetes >= 1.33, and for types that fail.
 */
export function describeRemaining(namespace: NamespaceFacts): string | undefined {
  const { remaining, finalizersRemaining, contentFailure, discoveryFailures } = namespaceConditions(
    namespace.conditions,
  );
  const parts: string[] = [];
  const most = MAX_TYPES_IN_A_LINE;
  if (remaining.length > 0) {
    const sum = (some: typeof remaining): number =>
      some.reduce((total, { count }) => total + count, 0);
    const sorted = remaining.toSorted((a, b) => b.count - a.count);
    const types = sorted.slice(0, most).map(({ count, ...type }) => `${count} ${typeName(type)}`);
    const rest = sum(sorted.slice(most));
    if (rest > 0) types.push(`${rest} more`);
    const total = sum(remaining);
    parts.push(`${total} ${total === 1 ? 'object' : 'objects'} left (${types.join(', ')})`);
  }
  if (finalizersRemaining.length > 0) {
    const names = finalizersRemaining.slice(0, most).map(({ finalizer }) => finalizer);
    parts.push(`finalizers: ${names.join(', ')}`);
  }
  if (discoveryFailures.length > 0) {
    const groups = discoveryFailures.map(({ group, version }) => `${group}/${version}`);
    parts.push(`API groups that do not respond: ${groups.join(', ')}`);
  }
  if (contentFailure !== undefined) parts.push('some content could not be deleted');
  return parts.length === 0 ? undefined : parts.join('; ');
}
