import { type JsonObject, stringAt, stringsAt } from '../base/json.ts';
import type { ResourceType } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import type { NotInspected } from '../model/finding.ts';
import type { ForceRecord } from '../model/result.ts';
import { sweepableTypes } from '../observe/sweep.ts';
import { typeName } from './force-plan.ts';
import type { Remains } from './remains.ts';
import { CONCURRENCY, type Run } from './run.ts';

const ALL_TYPES = 'the list of resource types';

export type Orphan = ForceRecord['orphans'][number];

export interface Leftovers {
  objects: (Orphan & { type: string })[];
  /** What could not be listed: leftovers of these are unknown, not absent. */
  unread: NotInspected[];
}

/**
 * Every object that still answers in the namespace, over all types. Objects are stored by type, name
 * and namespace name, so this also works, and matters most, when the namespace itself is gone.
 * `createdBefore` leaves out what belongs to a new namespace of the same name.
 */
export async function listLeftovers(run: Run, createdBefore?: string): Promise<Leftovers> {
  const discovery = await run.api.discover({ signal: run.signal });
  if (!discovery.ok) {
    const unread = { what: ALL_TYPES, reason: discovery.failure.message };
    return { objects: [], unread: [unread] };
  }
  const { types, failedGroups } = discovery.value;
  const queue = sweepableTypes(types);
  const found = new Map<string, Orphan & { type: string }>();
  const unread = failedGroups.map(({ group, version, reason }) => ({
    what: `${group}/${version}`,
    reason,
  }));
  const worker = async (): Promise<void> => {
    for (let type = queue.shift(); type !== undefined; type = queue.shift()) {
      const failure = await listType(run, type, (orphan, created) => {
        // One object may be served by two groups.
        if (createdBefore === undefined || created < createdBefore) found.set(orphan.uid, orphan);
      });
      if (failure !== undefined) unread.push({ what: typeName(type), reason: failure });
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  const byName = (a: Orphan & { type: string }, b: Orphan & { type: string }): number =>
    `${a.type}/${a.name}`.localeCompare(`${b.type}/${b.name}`);
  return { objects: [...found.values()].sort(byName), unread };
}

async function listType(
  run: Run,
  type: ResourceType,
  onOrphan: (orphan: Orphan & { type: string }, created: string) => void,
): Promise<string | undefined> {
  const namespace = run.plan.namespace.name;
  const end = await run.api.list(collectionPath(type, namespace), {
    signal: run.signal,
    metadataOnly: true,
    onItem: (item) => {
      if (stringAt(item, 'metadata', 'namespace') !== namespace) return;
      onOrphan(toOrphan(item, type), stringAt(item, 'metadata', 'creationTimestamp') ?? '');
    },
  });
  return end.ok ? undefined : end.failure.message;
}

function toOrphan(item: JsonObject, type: ResourceType): Orphan & { type: string } {
  return {
    type: typeName(type),
    apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
    kind: type.kind,
    name: stringAt(item, 'metadata', 'name') ?? '',
    uid: stringAt(item, 'metadata', 'uid') ?? '',
    finalizers: stringsAt(item, 'metadata', 'finalizers'),
  };
}

export function remainsOf({ objects, unread }: Leftovers): Remains {
  return {
    content: objects.map(describeLeftover),
    unread: unread.map(({ what, reason }) => `${what} (${reason})`),
  };
}

/** What was seen before and could not be looked for afterwards is still counted as left behind. */
export function withUnseen(after: Leftovers, before: Leftovers | undefined): Leftovers {
  const seen = new Set(after.objects.map(({ uid }) => uid));
  const unread = new Set(after.unread.map(({ what }) => what));
  const unseen = (before?.objects ?? []).filter(
    ({ uid, type, apiVersion }) =>
      !seen.has(uid) && (unread.has(type) || unread.has(apiVersion) || unread.has(ALL_TYPES)),
  );
  return { ...after, objects: [...after.objects, ...unseen] };
}

export function describeLeftover({ type, name, finalizers }: Leftovers['objects'][number]): string {
  return `${type}/${name}${finalizers.length === 0 ? '' : ` (${finalizers.join(', ')})`}`;
}

export function orphansOf({ objects }: Leftovers): Orphan[] {
  return objects.map(({ apiVersion, kind, name, uid, finalizers }) => ({
    apiVersion,
    kind,
    name,
    uid,
    finalizers,
  }));
}
