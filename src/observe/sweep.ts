import { type JsonObject, stringAt } from '../base/json.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { failed, type Read, type ReadFailure, read } from '../model/read.ts';
import {
  type ContentCount,
  MAX_EXAMPLES,
  MAX_PODS,
  type ObjectGroup,
  type PodFacts,
  type ResourceType,
  type TypeContent,
  type Unread,
} from '../model/snapshot.ts';
import { objectFacts, podFacts } from './parse.ts';
import { missingRight } from './sources.ts';

/** As many as the client sends at once: more would stand in the way of the calls that notice the end. */
export const CONCURRENT_LISTS = 8;
const PAGE = 500;

export interface Swept {
  content: TypeContent[];
  pods: Read<PodFacts[]>;
}

/**
 * What the namespace controller will try to empty: namespaced types with `delete`. Those without
 * `list` cannot be looked at by anybody and count as empty for the controller as well
 * (kubernetes/pkg/controller/namespace/deletion/namespaced_resources_deleter.go).
 */
export function sweepableTypes(types: readonly ResourceType[]): ResourceType[] {
  const wanted = types.filter(
    (type) => type.namespaced && type.verbs.includes('list') && type.verbs.includes('delete'),
  );
  // One storage behind two groups: counted once.
  const hasCoreEvents = wanted.some((type) => type.group === '' && type.resource === 'events');
  return wanted.filter(
    (type) => !(hasCoreEvents && type.group === 'events.k8s.io' && type.resource === 'events'),
  );
}

export function isPods(type: Pick<ResourceType, 'group' | 'resource'>): boolean {
  return type.group === '' && type.resource === 'pods';
}

/**
 * Lists every type in these namespaces: pods in full, the others as metadata. For several namespaces
 * one list of the whole cluster serves all, where that is allowed and not longer.
 */
export async function sweep(
  api: KubernetesApi,
  namespaces: readonly string[],
  types: readonly ResourceType[],
  signal: AbortSignal,
  note: (namespace: string, unread: Unread) => void,
): Promise<Map<string, Swept>> {
  const found = new Map(namespaces.map((name) => [name, { content: [], pods: NO_PODS } as Swept]));
  const contents = new Map(namespaces.map((name) => [name, new Array<TypeContent>(types.length)]));
  await inParallel([...types.entries()], CONCURRENT_LISTS, async ([index, type]) => {
    const counts = await readType(api, namespaces, type, signal);
    for (const name of namespaces) {
      const count = counts.get(name) as Read<ContentCount>;
      (contents.get(name) as TypeContent[])[index] = { type, read: count };
      if (!count.ok) note(name, unreadContent(type, count.failure));
    }
    if (!isPods(type)) return;
    await inParallel(namespaces, CONCURRENT_LISTS, async (name) => {
      const count = counts.get(name) as Read<ContentCount>;
      const swept = found.get(name) as Swept;
      if (!count.ok) swept.pods = count;
      else if (count.value.total === 0) swept.pods = read([]);
      else swept.pods = await readPods(api, name, type, signal, (unread) => note(name, unread));
    });
  });
  for (const [name, swept] of found) swept.content = contents.get(name) as TypeContent[];
  return found;
}

function unreadContent(type: ResourceType, failure: ReadFailure): Unread {
  const what = type.group === '' ? type.resource : `${type.resource}.${type.group}`;
  return {
    source: 'content',
    what,
    reason: failure.message,
    ...missingRight(failure, type, 'list'),
  };
}

const NO_PODS: Read<PodFacts[]> = failed({
  kind: 'not-found',
  message: 'the server does not serve pods',
});

export async function inParallel<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) await work(items[index] as T);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
}

async function readPods(
  api: KubernetesApi,
  namespace: string,
  type: ResourceType,
  signal: AbortSignal,
  note: (unread: Unread) => void,
): Promise<Read<PodFacts[]>> {
  const pods: PodFacts[] = [];
  const end = await api.list(collectionPath(type, namespace), {
    signal,
    maxItems: MAX_PODS,
    onItem: (item) => pods.push(podFacts(item, type)),
    onRestart: () => {
      pods.length = 0;
    },
  });
  if (!end.ok) {
    note(unreadContent(type, end.failure));
    return end;
  }
  if (!end.value.complete) {
    const reason = `only the first ${MAX_PODS} are looked at one by one`;
    note({ source: 'content', what: 'more pods', reason });
  }
  return read(pods);
}

async function readType(
  api: KubernetesApi,
  namespaces: readonly string[],
  type: ResourceType,
  signal: AbortSignal,
): Promise<Map<string, Read<ContentCount>>> {
  if (namespaces.length > 1) {
    const together = await readTogether(api, namespaces, type, signal);
    if (together !== undefined) return together;
  }
  const counts = new Map<string, Read<ContentCount>>();
  await inParallel(namespaces, CONCURRENT_LISTS, async (name) => {
    const fold = new Fold(type, [name]);
    const end = await api.list(collectionPath(type, name), { signal, ...fold.options });
    counts.set(name, end.ok ? read(fold.result(name)) : end);
  });
  return counts;
}

/** Undefined where one list for each namespace is cheaper, or the only one that is allowed. */
async function readTogether(
  api: KubernetesApi,
  namespaces: readonly string[],
  type: ResourceType,
  signal: AbortSignal,
): Promise<Map<string, Read<ContentCount>> | undefined> {
  const path = collectionPath(type);
  const fold = new Fold(type, namespaces);
  const first = await api.list(path, { signal, ...fold.options, maxItems: PAGE });
  if (!first.ok) return undefined;
  if (!first.value.complete) {
    if (!isWorthOneList(first.value.remaining, namespaces.length)) return undefined;
    fold.reset();
    const all = await api.list(path, { signal, ...fold.options });
    if (!all.ok) return undefined;
  }
  return new Map(namespaces.map((name) => [name, read(fold.result(name))]));
}

/**
 * Whether going on with the list of the whole cluster costs no more requests than a list for each
 * namespace. `remaining` is the server's estimate after the first page; without one, nobody knows.
 */
export function isWorthOneList(remaining: number | undefined, namespaces: number): boolean {
  return remaining !== undefined && Math.ceil(remaining / PAGE) + 1 <= namespaces;
}

const EMPTY: ContentCount = { total: 0, queued: 0, terminating: [], guarded: [] };

/**
 * Folds the objects of one type while they are being read: memory depends on how many kinds of
 * blockage there are, not on how many objects.
 */
export class Fold {
  private readonly type: ResourceType;
  private readonly wanted: ReadonlySet<string>;
  private readonly counts = new Map<string, ContentCount>();
  private readonly groups = new Map<string, ObjectGroup>();
  readonly options = {
    metadataOnly: true,
    limit: PAGE,
    onItem: (item: JsonObject): void => this.add(item),
    onRestart: (): void => this.reset(),
  };

  constructor(type: ResourceType, namespaces: readonly string[]) {
    this.type = type;
    this.wanted = new Set(namespaces);
  }

  private add(item: JsonObject): void {
    // A broken extension API server may ignore the namespace in the path, or leave it out.
    const only = this.wanted.size === 1 ? [...this.wanted][0] : undefined;
    const namespace = stringAt(item, 'metadata', 'namespace') ?? only;
    if (namespace === undefined || !this.wanted.has(namespace)) return;
    let count = this.counts.get(namespace);
    if (count === undefined) {
      count = { total: 0, queued: 0, terminating: [], guarded: [] };
      this.counts.set(namespace, count);
    }
    count.total++;
    const metadata = item['metadata'] as JsonObject;
    const since = metadata['deletionTimestamp'];
    const isTerminating = typeof since === 'string';
    if (!isTerminating) count.queued++;
    const finalizers = metadata['finalizers'];
    const isGuarded = Array.isArray(finalizers) && finalizers.length > 0;
    const isSample = !isTerminating && count.sample === undefined;
    if (!isTerminating && !isGuarded && !isSample) return;
    const facts = objectFacts(item, this.type);
    if (isSample) count.sample = facts;
    if (!isTerminating && !isGuarded) return;
    const managers = Object.fromEntries(
      facts.writers.map((writer) => [writer.finalizer, writer.manager]),
    );
    const key = JSON.stringify([
      namespace,
      isTerminating,
      facts.finalizers,
      facts.finalizers.map((name) => managers[name]),
    ]);
    const group = this.groups.get(key);
    if (group === undefined) {
      const made = {
        finalizers: facts.finalizers,
        managers,
        count: 1,
        since: isTerminating ? since : '',
        examples: [facts],
      };
      this.groups.set(key, made);
      (isTerminating ? count.terminating : count.guarded).push(made);
      return;
    }
    group.count++;
    if (isTerminating && since < group.since) group.since = since;
    if (group.examples.length < MAX_EXAMPLES) group.examples.push(facts);
  }

  reset(): void {
    this.counts.clear();
    this.groups.clear();
  }

  result(namespace: string): ContentCount {
    return this.counts.get(namespace) ?? EMPTY;
  }
}
