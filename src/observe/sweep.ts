import type { JsonObject } from '../base/json.ts';
import { objectFacts, type PodFacts, podFacts, type ResourceType } from '../model/facts.ts';
import { failed, type Read, read } from '../model/read.ts';
import {
  type ContentCount,
  MAX_EXAMPLES,
  MAX_PODS,
  type ObjectGroup,
  type TypeContent,
  type Unread,
} from '../model/snapshot.ts';
import { inParallel, listIn } from './collections.ts';
import { type Reading, unreadOf } from './sources.ts';

/** Pods in full of all namespaces together; of one at most `MAX_PODS`. */
const MAX_PODS_IN_ALL = 5 * MAX_PODS;

interface Swept {
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

type Note = (namespace: string, unread: Unread[]) => void;

/** Lists every type in these namespaces: pods in full, the others as metadata. */
export async function sweep(
  namespaces: readonly string[],
  types: readonly ResourceType[],
  deps: Reading,
  note: Note,
): Promise<Map<string, Swept>> {
  const found = new Map(
    namespaces.map((name): [string, Swept] => [
      name,
      { content: new Array<TypeContent>(types.length), pods: NO_PODS },
    ]),
  );
  await inParallel([...types.entries()], async ([index, type]) => {
    const counts = await readContent(namespaces, type, deps);
    const nothing = { type, read: NOTHING };
    for (const [name, { content }] of found) {
      const count = counts.get(name) ?? NOTHING;
      content[index] = count === NOTHING ? nothing : { type, read: count };
      note(name, unreadContent(type, count));
    }
    if (!isPods(type)) return;
    const pods = await readPods(counts, type, deps, note);
    for (const [name, swept] of found) swept.pods = pods.get(name) ?? NO_PODS;
  });
  return found;
}

function unreadContent(type: ResourceType, result: Read<unknown>): Unread[] {
  const what = type.group === '' ? type.resource : `${type.resource}.${type.group}`;
  return unreadOf('content', what, result, type);
}

const NO_PODS: Read<PodFacts[]> = failed({
  kind: 'not-found',
  message: 'the server does not serve pods',
});

/** Of most types most namespaces have nothing: that is kept once. */
const NOTHING: Read<ContentCount> = read({ total: 0, queued: 0, terminating: [], guarded: [] });

async function readContent(
  namespaces: readonly string[],
  type: ResourceType,
  { api, signal }: Reading,
): Promise<Map<string, Read<ContentCount>>> {
  const folds = new Map<string, Fold>();
  const ends = await listIn(
    api,
    type,
    namespaces,
    {
      metadataOnly: true,
      onItem: (namespace, item) => {
        let fold = folds.get(namespace);
        if (fold === undefined) {
          fold = new Fold(type);
          folds.set(namespace, fold);
        }
        fold.add(item);
      },
      onRestart: (namespace) => folds.delete(namespace),
    },
    signal,
  );
  const countOf = (name: string): Read<ContentCount> => {
    const fold = folds.get(name);
    return fold === undefined ? NOTHING : read(fold.count);
  };
  return new Map([...ends].map(([name, end]) => [name, end.ok ? countOf(name) : end]));
}

async function readPods(
  counts: ReadonlyMap<string, Read<ContentCount>>,
  type: ResourceType,
  { api, signal }: Reading,
  note: Note,
): Promise<Map<string, Read<PodFacts[]>>> {
  const pods = new Map<string, PodFacts[]>([...counts.keys()].map((name) => [name, []]));
  const having = [...counts].flatMap(([name, count]) =>
    count.ok && count.value.total > 0 ? name : [],
  );
  const ends = await listIn(
    api,
    type,
    having,
    {
      maxItems: MAX_PODS,
      maxInAll: MAX_PODS_IN_ALL,
      onItem: (namespace, item) => pods.get(namespace)?.push(podFacts(item)),
      onRestart: (namespace) => pods.set(namespace, []),
    },
    signal,
  );
  return new Map(
    [...pods].map(([name, found]): [string, Read<PodFacts[]>] => {
      const count = counts.get(name);
      const end = ends.get(name);
      if (count?.ok === false) return [name, count];
      if (end?.ok === false) {
        note(name, unreadContent(type, end));
        return [name, end];
      }
      if (end?.value.complete === false) {
        const reason = `only the first ${found.length} are looked at one by one`;
        note(name, [{ source: 'content', what: 'more pods', reason }]);
      }
      return [name, read(found)];
    }),
  );
}

/**
 * Folds the objects of one type in one namespace while they are being read: memory depends on how many
 * kinds of blockage there are, not on how many objects.
 */
class Fold {
  private readonly type: ResourceType;
  private readonly groups = new Map<string, ObjectGroup>();
  readonly count: ContentCount = { total: 0, queued: 0, terminating: [], guarded: [] };

  constructor(type: ResourceType) {
    this.type = type;
  }

  add(item: JsonObject): void {
    const { count } = this;
    count.total++;
    const metadata = (item['metadata'] ?? {}) as JsonObject;
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
}
