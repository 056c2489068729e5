import type { Log } from '../base/log.ts';
import { type Clocks, formatClock, serverTimestamp, type TimelineEntry } from '../base/time.ts';
import { namespaceConditions } from '../model/conditions.ts';
import { typeName } from '../model/facts/metadata.ts';
import { type Diagnosis, findingsOf } from '../model/finding.ts';
import type { NamespaceFacts } from '../model/snapshot.ts';
import type { Follower } from './follow.ts';

const MAX_TIMELINE = 50;
const MAX_IN_A_LINE = 4;

export type Progress = ReturnType<typeof startProgress>;

/** Writes a line per change, not per poll, into the log and the timeline. */
export function startProgress(
  start: NamespaceFacts,
  deps: Clocks & { log: Pick<Log, 'line'>; startedAt: number },
  earlier: readonly TimelineEntry[] = [],
) {
  const { clock, log, startedAt } = deps;
  const timeline = earlier.slice(0, MAX_TIMELINE - 2);
  let news: string | undefined;
  const record = (event: string): void => {
    if (timeline.at(-1)?.event === event) return;
    // The last entry always has a place.
    if (timeline.length >= MAX_TIMELINE) timeline.pop();
    timeline.push({ at: serverTimestamp(deps), event });
  };
  const note = (text: string): void => {
    if (timeline.at(-1)?.event === text) return;
    log.line(`${formatClock(clock.now() - startedAt).padStart(7)}  ${start.name}: ${text}`);
    record(text);
  };
  const changed = (one: Pick<Follower, 'ended' | 'last' | 'trouble'>): void => {
    const { ended, last, trouble } = one;
    const unread = `cannot be read at the moment, which does not mean that it was deleted: ${trouble?.message}`;
    const state = trouble === undefined ? describeRemaining(last) : unread;
    const text = ended === undefined ? state : 'event' in ended ? ended.event : undefined;
    if (text === undefined || (ended === undefined && text === news)) return;
    news = text;
    note(text);
  };
  record(describeStart(start));
  changed({ last: start });
  const end = (event: string): TimelineEntry[] => {
    record(event);
    return timeline;
  };
  return { changed, note, end };
}

/** The first root cause. `unexplained` is left out: only the last examination reports it. */
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

/** For the log only: the counts are incomplete while pods remain (Kubernetes >= 1.33), and for types that fail. */
export function describeRemaining(namespace: NamespaceFacts): string | undefined {
  const { remaining, finalizersRemaining } = namespaceConditions(namespace.conditions);
  const few = (texts: readonly string[]): string => texts.slice(0, MAX_IN_A_LINE).join(', ');
  const total = remaining.reduce((sum, { count }) => sum + count, 0);
  const types = remaining
    .toSorted((a, b) => b.count - a.count)
    .map(({ count, ...type }) => `${count} ${typeName(type)}`);
  const names = few(finalizersRemaining.map(({ finalizer }) => finalizer));
  const parts = [
    total > 0 && `${total} ${total === 1 ? 'object' : 'objects'} left (${few(types)})`,
    names && `finalizers: ${names}`,
  ];
  return parts.filter(Boolean).join('; ') || undefined;
}
