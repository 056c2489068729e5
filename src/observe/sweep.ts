import type { JsonObject } from '../base/json.ts';
import type { Fold } from '../kubernetes/api.ts';
import { objectFacts, type PodFacts, type ResourceType, typeName } from '../model/facts.ts';
import { type Read, readFailed, readOk } from '../model/read.ts';
import {
  type ContentCount,
  MAX_EXAMPLES,
  MAX_PODS,
  type NamespaceContent,
  type ObjectGroup,
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
 * Returns the types that the namespace controller empties: namespaced types with `delete`. Types without
 * `list` cannot be read, and count as empty for the controller as well
 * (kubernetes/pkg/controller/namespace/deletion/namespaced_resources_deleter.go).
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
  snapshots: readonly NamespaceContent[],
  served: readonly ResourceType[],
  deps: Reading,
): Promise<void> {
  const names = snapshots.map(({ namespace }) => namespace.name);
  await inParallel([...sweepableTypes(served).entries()], async ([index, type]) => {
    const ends = await listIn(type, names, () => contentTally(type), { metadataOnly: true }, deps);
    const countIn = (name: string): Read<ContentCount> => {
      const end = ends.get(name);
      if (end?.ok === false) return end;
      return end?.value.kept === undefined ? NO_CONTENT : readOk(end.value.kept);
    };
    const nothing = { type, read: NO_CONTENT };
    for (const { namespace, content, unread } of snapshots) {
      const read = countIn(namespace.name);
      content[index] = read === NO_CONTENT ? nothing : { type, read };
      unread.push(...notInspectedEntries(typeName(type), read, type));
    }
    if (typeName(type) !== 'pods') return;
    const having = names.filter((name) => countIn(name).ok && countIn(name) !== NO_CONTENT);
    const pods = await readInNamespaces(PODS_IN_FULL, having, deps);
    for (const snapshot of snapshots) {
      const count = countIn(snapshot.namespace.name);
      const { value, unread = [] } = pods.get(snapshot.namespace.name) ?? { value: readOk([]) };
      snapshot.pods = count.ok ? value : count;
      snapshot.unread.push(...(count.ok ? unread : []));
    }
  });
}

const PODS_IN_FULL = { ...POD_SOURCE, options: { maxItems: MAX_PODS } };

export const NO_PODS: Read<PodFacts[]> = readFailed({
  kind: 'not-found',
  message: 'the server does not serve pods',
});

/** Shared result for types without objects, which are most of them in most namespaces. */
const NO_CONTENT: Read<ContentCount> = readOk({
  total: 0,
  queued: 0,
  terminating: [],
  guarded: [],
});

/**
 * Folds the objects of one type in one namespace while they are read. Memory depends on the number of groups,
 * not on the number of objects.
 */
function contentTally(type: ResourceType): Fold<ContentCount> {
  const groups = new Map<string, ObjectGroup>();
  const kept: ContentCount = { total: 0, queued: 0, terminating: [], guarded: [] };
  const add = (item: JsonObject): void => {
    kept.total++;
    const metadata = (item['metadata'] ?? {}) as JsonObject;
    const since = metadata['deletionTimestamp'];
    const isTerminating = typeof since === 'string';
    if (!isTerminating) kept.queued++;
    const finalizers = metadata['finalizers'];
    const isGuarded = Array.isArray(finalizers) && finalizers.length > 0;
    const isSample = !isTerminating && kept.sample === undefined;
    if (!isTerminating && !isGuarded && !isSample) return;
    const facts = objectFacts(item, type);
    if (isSample) kept.sample = facts;
    if (!isTerminating && !isGuarded) return;
    const writers = facts.writers.map(({ finalizer, manager }) => [finalizer, manager]);
    const key = JSON.stringify([isTerminating, facts.finalizers, writers]);
    let group = groups.get(key);
    if (group === undefined) {
      const began = isTerminating ? since : '';
      group = { finalizers: facts.finalizers, count: 0, since: began, examples: [] };
      groups.set(key, group);
      (isTerminating ? kept.terminating : kept.guarded).push(group);
    }
    group.count++;
    if (isTerminating && since < group.since) group.since = since;
    if (group.examples.length < MAX_EXAMPLES) group.examples.push(facts);
  };
  return { add, kept };
}
