import { type JsonObject, stringAt, stringsAt } from '../base/json.ts';
import type { Fold, ListResult } from '../kubernetes/api.ts';
import { finalizerWriters, objectFacts, typeName } from '../model/facts/metadata.ts';
import { type Read, readFailed, readOk } from '../model/read.ts';
import {
  type ContentCount,
  MAX_EXAMPLES,
  MAX_PODS,
  type ObjectGroup,
  type PodFacts,
  type ResourceType,
  type Snapshot,
} from '../model/snapshot.ts';
import { POD_SOURCE } from '../model/sources.ts';
import {
  inParallel,
  listIn,
  notInspectedEntries,
  type Reading,
  readInNamespaces,
} from './collections.ts';

/**
 * Returns the types that the namespace controller empties (pkg/controller/namespace/deletion/
 * namespaced_resources_deleter.go). Types without `list` count as empty for it as well.
 */
export function sweepableTypes(types: readonly ResourceType[]): ResourceType[] {
  return types.filter(
    ({ group, resource, namespaced, verbs }) =>
      namespaced &&
      verbs.includes('list') &&
      verbs.includes('delete') &&
      // Both groups of Events have the same storage. Events are counted once.
      !(group === 'events.k8s.io' && resource === 'events'),
  );
}

/** Lists every type in the namespaces of these snapshots: pods in full as well, the others as metadata. */
export async function readNamespaceContents(
  snapshots: readonly Snapshot[],
  served: readonly ResourceType[],
  deps: Reading,
): Promise<void> {
  const names = snapshots.map(({ namespace }) => namespace.name);
  await inParallel([...sweepableTypes(served).entries()], async ([index, type]) => {
    const ends = await listIn(type, names, () => contentTally(type), { metadataOnly: true }, deps);
    const listed = snapshots.map((snapshot) => {
      const { name } = snapshot.namespace;
      const end = ends.get(name) as Read<ListResult<ContentCount>>;
      const read = end.ok ? readOk(end.value.kept) : end;
      snapshot.content[index] = { type, read };
      snapshot.unread.push(...notInspectedEntries(typeName(type), read, type));
      return { snapshot, name, read };
    });
    if (typeName(type) !== 'pods') return;
    const having = listed.filter(({ read }) => read.ok && read.value.total > 0);
    const inFull = having.map(({ name }) => name);
    const pods = await readInNamespaces(PODS_IN_FULL, inFull, deps);
    for (const { snapshot, name, read } of listed) {
      const { value, unread = [] } = pods.get(name) ?? { value: readOk([]) };
      snapshot.pods = read.ok ? value : read;
      snapshot.unread.push(...unread);
    }
  });
}

const PODS_IN_FULL = { ...POD_SOURCE, maxItems: MAX_PODS };

export const NO_PODS: Read<PodFacts[]> = readFailed({
  kind: 'not-found',
  message: 'the server does not serve pods',
});

/** Memory depends on the number of groups, not on the number of objects. */
function contentTally(type: ResourceType): Fold<ContentCount> {
  const groups = new Map<string, ObjectGroup>();
  const kept: ContentCount = { total: 0, queued: 0, terminating: [], guarded: [] };
  const add = (item: JsonObject): void => {
    kept.total++;
    const since = stringAt(item, 'metadata', 'deletionTimestamp') ?? '';
    const isTerminating = since !== '';
    if (!isTerminating) kept.queued++;
    const finalizers = stringsAt(item, 'metadata', 'finalizers');
    if (!isTerminating && kept.sample === undefined) kept.sample = objectFacts(item, type);
    if (!isTerminating && finalizers.length === 0) return;
    const writers = finalizerWriters(item).map(({ finalizer, manager }) => [finalizer, manager]);
    const key = JSON.stringify([isTerminating, finalizers, writers]);
    const group = groups.get(key) ?? { finalizers, count: 0, since, examples: [] };
    groups.set(key, group);
    if (group.count === 0) (isTerminating ? kept.terminating : kept.guarded).push(group);
    group.count++;
    if (since < group.since) group.since = since;
    // The facts of ten thousand objects would take time, and are not needed.
    if (group.examples.length < MAX_EXAMPLES) group.examples.push(objectFacts(item, type));
  };
  return { add, kept };
}
