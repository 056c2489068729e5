import type { TimelineEntry } from '../base/time.ts';
import { serverTimestamp } from '../base/time.ts';
import type { NotInspected } from '../model/finding.ts';
import type { ForceRecord } from '../model/result.ts';
import type { ForceAction, Refusal } from './force-plan.ts';
import type { Leftovers } from './leftovers.ts';
import { describeMany, finalizerOf, leakText } from './render-plan.ts';
import type { Run } from './run.ts';

/** Up to this many objects with the same result are named one by one; more are one entry. */
const ONE_BY_ONE = 10;

export interface Done {
  name: string;
  /** Whether we brought it about: what went by itself leaves nothing behind on our account. */
  byUs: boolean;
  result: string;
}

/** Everything that was done, refused and left behind, as it happens. */
export class Journal {
  readonly actions: ForceRecord['actions'] = [];
  readonly refused: Refusal[] = [];
  readonly unread: NotInspected[] = [];
  readonly timeline: TimelineEntry[] = [];
  orphans: ForceRecord['orphans'] = [];
  /** What was there right before the namespace's own entries were touched. */
  inventory: Leftovers | undefined;
  /** Writes that changed, or may have changed, the cluster. */
  writes = 0;
  private readonly run: Run;

  constructor(run: Run) {
    this.run = run;
  }

  event(text: string): void {
    this.timeline.push({ at: serverTimestamp(this.run), event: text });
    this.run.log.line(text);
  }

  refuse(target: string, reason: string): void {
    if (this.refused.some((known) => known.target === target && known.reason === reason)) return;
    this.refused.push({ target, reason });
    this.run.log.line(`refused: ${target}: ${reason}`);
  }

  /** Something to know that is no write of its own. */
  note(target: string, result: string): void {
    this.actions.push({ target, finalizer: '', result });
    this.event(`${target}: ${result}`);
  }

  /** One result for an action as a whole. */
  act(target: string, action: ForceAction, byUs: boolean, result: string): void {
    const leak = byUs ? leakText(action) : undefined;
    const text = leak === undefined ? result : `${result}; may be left behind: ${leak}`;
    this.actions.push({ target, finalizer: finalizerOf(action), result: text });
    const finalizer = finalizerOf(action);
    this.event(`${target}${finalizer === '' ? '' : ` ${finalizer}`}: ${text}`);
  }

  /** Results of the single objects of an action; equal ones are told together when they are many. */
  actOnObjects(type: string, action: ForceAction, objects: readonly Done[]): void {
    for (const group of Map.groupBy(objects, ({ result }) => result).values()) {
      const first = group[0] as Done;
      if (group.length > ONE_BY_ONE) {
        const names = group.map(({ name }) => name);
        const target = describeMany(type, group.length, names);
        this.act(target, action, first.byUs, first.result);
      } else {
        for (const { name, byUs, result } of group) {
          this.act(`${type}/${name}`, action, byUs, result);
        }
      }
    }
  }
}
