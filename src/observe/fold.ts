import type { JsonObject } from '../base/json.ts';
import type { ResourceType } from '../kubernetes/api.ts';
import {
  type ContentCount,
  MAX_EXAMPLES,
  type ObjectFacts,
  type ObjectGroup,
} from '../model/snapshot.ts';
import { objectFacts } from './facts.ts';

/**
 * Folds the objects of one type while they are being read: memory depends on how many kinds of
 * blockage there are, not on how many objects.
 */
export class ContentFold {
  private total = 0;
  private queued = 0;
  private readonly groups = new Map<string, ObjectGroup>();
  private readonly type: ResourceType;

  constructor(type: ResourceType) {
    this.type = type;
  }

  add(object: JsonObject): ObjectFacts | undefined {
    this.total++;
    const metadata = object['metadata'] as JsonObject | undefined;
    const deletionTimestamp = metadata?.['deletionTimestamp'];
    if (typeof deletionTimestamp !== 'string') {
      this.queued++;
      return undefined;
    }
    const facts = objectFacts(object, this.type);
    const managers = Object.fromEntries(
      facts.writers.map((writer) => [writer.finalizer, writer.manager]),
    );
    const key = JSON.stringify([facts.finalizers, facts.finalizers.map((name) => managers[name])]);
    const group = this.groups.get(key);
    if (group === undefined) {
      this.groups.set(key, {
        finalizers: facts.finalizers,
        managers,
        count: 1,
        since: deletionTimestamp,
        examples: [facts],
      });
    } else {
      group.count++;
      if (deletionTimestamp < group.since) group.since = deletionTimestamp;
      if (group.examples.length < MAX_EXAMPLES) group.examples.push(facts);
    }
    return facts;
  }

  /** The list starts again from its first page. */
  reset(): void {
    this.total = 0;
    this.queued = 0;
    this.groups.clear();
  }

  result(): ContentCount {
    return { total: this.total, queued: this.queued, terminating: [...this.groups.values()] };
  }
}
