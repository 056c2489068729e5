import type { ObjectGroup, Snapshot, TypeContent } from '../model/snapshot.ts';
import { type ForceAction, listNames, typeName } from './force-plan.ts';

/** What a finalized namespace would leave behind, as far as a snapshot can tell. */
export interface Remains {
  content: string[];
  unread: string[];
}

/**
 * What the snapshot holds and no earlier action of the plan takes away. Queued objects count only
 * when nothing is going to move: behind a held pod they are deleted as soon as the pod is gone. This
 * is a forecast for the plan; before the namespace itself is written to, everything is read again.
 */
export function remainsAfter(snapshot: Snapshot, earlier: readonly ForceAction[]): Remains {
  const remains: Remains = { content: [], unread: [] };
  if (snapshot.discovery.ok) {
    for (const { group, version, reason } of snapshot.discovery.value.failedGroups) {
      remains.unread.push(`${group}/${version} (${reason})`);
    }
  } else {
    remains.unread.push(`the list of resource types (${snapshot.discovery.failure.message})`);
  }
  for (const content of snapshot.content) {
    const name = typeName(content.type);
    if (!content.read.ok) {
      remains.unread.push(`${name} (${content.read.failure.message})`);
      continue;
    }
    const { terminating, queued } = content.read.value;
    for (const group of terminating) {
      if (!isCovered(content, group, earlier)) remains.content.push(describeGroup(content, group));
    }
    if (queued > 0 && earlier.length === 0)
      remains.content.push(`${name} (${queued} not terminating)`);
  }
  return remains;
}

function isCovered(
  { type }: TypeContent,
  group: ObjectGroup,
  earlier: readonly ForceAction[],
): boolean {
  const freed = group.finalizers.every((finalizer) =>
    earlier.some(
      (action) =>
        action.step === 'object-finalizer' &&
        action.finalizer === finalizer &&
        typeName(action.type) === typeName(type),
    ),
  );
  if (group.finalizers.length > 0) return freed;
  // Nothing holds it, and yet it is there: only a pod has somebody else to wait for, its kubelet.
  const isPod = typeName(type) === 'pods';
  return isPod && earlier.some((action) => action.step === 'overdue-pods');
}

function describeGroup({ type }: TypeContent, group: ObjectGroup): string {
  const names = group.examples.map(({ name }) => name);
  const held = group.finalizers.length === 0 ? '' : ` (${group.finalizers.join(', ')})`;
  return group.count === 1
    ? `${typeName(type)}/${names[0] ?? ''}${held}`
    : `${group.count} ${typeName(type)}${held}: ${listNames(names, group.count, 3)}`;
}

export function describeRemains({ content, unread }: Remains): string {
  const parts = [
    ...(content.length > 0 ? [`content remains: ${listNames(content)}`] : []),
    ...(unread.length > 0 ? [`not everything could be read: ${listNames(unread)}`] : []),
  ];
  return parts.join('; ');
}

export function isEmpty({ content, unread }: Remains): boolean {
  return content.length === 0 && unread.length === 0;
}
