import type { Clock } from './clock.ts';
import { parseConditions } from './diagnose/conditions.ts';
import type { Diagnosis } from './diagnose/diagnosis.ts';
import { formatClock } from './duration.ts';
import type { KubernetesApi } from './kubernetes/api.ts';
import type { Log } from './log.ts';
import type { NamespaceFacts } from './observe/snapshot.ts';
import type { ReadFailure } from './read.ts';
import { serverTimestamp } from './server-time.ts';
import type { TimelineEntry } from './timeline.ts';

/** A timeline is for reading; a namespace that flaps for an hour does not fill the report. */
const MAX_TIMELINE = 50;
const MAX_TYPES_IN_A_LINE = 4;

export interface ProgressDeps {
  api: Pick<KubernetesApi, 'clockOffsetMs'>;
  clock: Clock;
  log: Log;
}

/** One line per change, not per poll, in the log and in the timeline. */
export class Progress {
  private readonly timeline: TimelineEntry[] = [];
  private readonly name: string;
  readonly startedAt: number;
  private readonly deps: ProgressDeps;
  private shown = '';
  private news = '';
  /** When something changed last (ms since the epoch). */
  newsAt: number;

  constructor(start: NamespaceFacts, startedAt: number, deps: ProgressDeps) {
    this.name = start.name;
    this.startedAt = startedAt;
    this.deps = deps;
    this.newsAt = deps.clock.now();
    this.record(describeStart(start));
    this.changed(start, undefined);
  }

  changed(last: NamespaceFacts, trouble: ReadFailure | undefined): void {
    const text =
      trouble === undefined
        ? describeRemaining(last)
        : `cannot be read at the moment, which does not mean that it is gone: ${trouble.message}`;
    if (text === undefined || text === this.news) return;
    this.news = text;
    this.newsAt = this.deps.clock.now();
    this.note(text);
  }

  looked(diagnosis: Diagnosis): void {
    const cause = diagnosis.findings.find(({ id }) => id === diagnosis.rootCauses[0]);
    if (cause === undefined) return;
    const more =
      diagnosis.rootCauses.length > 1 ? ` (and ${diagnosis.rootCauses.length - 1} more)` : '';
    this.note(`${cause.subject.kind} ${cause.subject.name} ${cause.message}${more}`);
  }

  note(text: string): void {
    if (text === this.shown) return;
    this.shown = text;
    const elapsed = formatClock(this.deps.clock.now() - this.startedAt).padStart(7);
    this.deps.log.line(`${elapsed}  ${this.name}: ${text}`);
    this.record(text);
  }

  end(event: string): TimelineEntry[] {
    this.record(event);
    return this.timeline;
  }

  private record(event: string): void {
    // The end always has its place.
    if (this.timeline.length >= MAX_TIMELINE) this.timeline.splice(MAX_TIMELINE - 1, 1);
    this.timeline.push({ at: serverTimestamp(this.deps), event });
  }
}

export function describeStart({ deletionTimestamp }: NamespaceFacts): string {
  return deletionTimestamp === undefined
    ? 'its deletion was asked for'
    : `terminating since ${deletionTimestamp}`;
}

/**
 * What the namespace's conditions count. Only for progress: they say nothing while pods remain on
 * Kubernetes >= 1.33, and nothing about types that fail.
 */
export function describeRemaining(namespace: NamespaceFacts): string | undefined {
  const { remaining, finalizersRemaining, contentFailure, discoveryFailures } = parseConditions(
    namespace.conditions,
  );
  const parts: string[] = [];
  if (remaining.length > 0) {
    const total = remaining.reduce((sum, { count }) => sum + count, 0);
    const sorted = [...remaining].sort((a, b) => b.count - a.count);
    const types = sorted
      .slice(0, MAX_TYPES_IN_A_LINE)
      .map(
        ({ count, resource, group }) =>
          `${count} ${group === '' ? resource : `${resource}.${group}`}`,
      );
    const rest = sorted.slice(MAX_TYPES_IN_A_LINE).reduce((sum, { count }) => sum + count, 0);
    if (rest > 0) types.push(`${rest} more`);
    parts.push(`${total} ${total === 1 ? 'object' : 'objects'} left (${types.join(', ')})`);
  }
  if (finalizersRemaining.length > 0) {
    const names = finalizersRemaining
      .slice(0, MAX_TYPES_IN_A_LINE)
      .map(({ finalizer }) => finalizer);
    parts.push(`finalizers: ${names.join(', ')}`);
  }
  if (discoveryFailures.length > 0) {
    const groups = discoveryFailures.map(({ group, version }) => `${group}/${version}`);
    parts.push(`API groups that do not answer: ${groups.join(', ')}`);
  }
  if (contentFailure !== undefined) parts.push('some content could not be deleted');
  return parts.length === 0 ? undefined : parts.join('; ');
}
