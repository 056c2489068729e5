import type { Log } from '../base/log.ts';
import { type Clock, serverTimestamp, type TimelineEntry } from '../base/time.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import type { NotInspected } from '../model/finding.ts';
import type { ForceRecord } from '../model/result.ts';
import { type ForceAction, manyTarget } from './plan.ts';

/** Up to this many objects with the same result are named one by one; more are one row. */
const ONE_BY_ONE = 10;

/** What became of one object. */
export interface Done {
  name: string;
  /** Whether we brought it about: what went by itself leaves nothing behind on our account. */
  byUs: boolean;
  result: string;
}

export interface JournalDeps {
  api: KubernetesApi;
  clock: Clock;
  log: Pick<Log, 'line' | 'group'>;
}

/** Everything that was done, refused and left behind, as it happens. */
export class Journal {
  readonly actions: ForceRecord['actions'] = [];
  readonly refused: ForceRecord['refused'] = [];
  readonly unread: NotInspected[] = [];
  readonly timeline: TimelineEntry[] = [];
  orphans: ForceRecord['orphans'] = [];
  /** Writes that changed, or may have changed, the cluster. */
  writes = 0;
  /** What could not be done, by action and UID; a later round does not try it again. */
  readonly givenUp = new Set<string>();
  private readonly deps: JournalDeps;

  constructor(deps: JournalDeps) {
    this.deps = deps;
  }

  refuse(target: string, reason: string): void {
    this.refused.push({ target, reason });
    this.deps.log.line(`refused: ${target}: ${reason}`);
  }

  note(target: string, result: string, finalizer = ''): void {
    this.actions.push({ target, finalizer, result });
    const event = `${target}${finalizer === '' ? '' : ` ${finalizer}`}: ${result}`;
    this.timeline.push({ at: serverTimestamp(this.deps), event });
    this.deps.log.line(event);
  }

  /** Results of single objects of a type; equal ones are told together when they are many. */
  tell({ finalizer, leaves }: ForceAction, type: string, done: Iterable<Done>): void {
    for (const group of Map.groupBy(done, ({ result }) => result).values()) {
      const [{ byUs, result }] = group as [Done];
      const text =
        byUs && leaves !== undefined ? `${result}; may be left behind: ${leaves}` : result;
      const names = group.map(({ name }) => name);
      const rows = group.length > ONE_BY_ONE ? [names] : names.map((name) => [name]);
      for (const row of rows) this.note(manyTarget(type, row), text, finalizer);
    }
  }
}
