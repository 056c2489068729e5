import { isObject, type JsonObject, stringAt } from '../../../src/base/json.ts';

/** One change of one object, as a watch tells it. `before` is absent for a new object. */
export interface Change {
  /** Path of the collection. */
  collection: string;
  resourceVersion: number;
  before: JsonObject | undefined;
  after: JsonObject | undefined;
}

/** What a key looks like: `<collection> <namespace>/<name>`; etcd's order within a collection. */
export interface ObjectKey {
  /** `/api/v1/configmaps`, `/apis/apps/v1/deployments`: the collection's path without a namespace. */
  collection: string;
  /** Empty for cluster-scoped objects. */
  namespace: string;
  name: string;
}

/**
 * Objects by collection, with one resourceVersion for all of them as in etcd. Objects are replaced,
 * never changed in place, so a list that was handed out stays what it was.
 */
export class Objects {
  readonly #collections = new Map<string, Map<string, JsonObject>>();
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #history: Change[] = [];
  #resourceVersion = 0;

  get resourceVersion(): number {
    return this.#resourceVersion;
  }

  /** Changes are known from here on; a watch from an older version is answered with 410. */
  readonly #oldest: number;

  constructor(collections: Iterable<[string, readonly JsonObject[]]>, resourceVersion: number) {
    for (const [collection, objects] of collections) {
      const entries = objects.map((object): [string, JsonObject] => [nameKey(object), object]);
      this.#collections.set(collection, new Map(entries.sort(byKey)));
    }
    this.#resourceVersion = resourceVersion;
    this.#oldest = resourceVersion;
  }

  get oldestVersion(): number {
    return this.#oldest;
  }

  collections(): string[] {
    return [...this.#collections.keys()];
  }

  get(key: ObjectKey): JsonObject | undefined {
    return this.#collections.get(key.collection)?.get(`${key.namespace}/${key.name}`);
  }

  /** In the order of their keys; an empty namespace means all of them. */
  list(collection: string, namespace: string): JsonObject[] {
    const objects = [...(this.#collections.get(collection)?.values() ?? [])];
    if (namespace === '') return objects;
    return objects.filter((object) => stringAt(object, 'metadata', 'namespace') === namespace);
  }

  /**
   * Stores an object with the next resourceVersion. The same object in other versions of its group
   * (autoscaling/v1 and /v2, events) has the same UID and gets the same metadata.
   */
  put(key: ObjectKey, object: JsonObject): JsonObject {
    const resourceVersion = ++this.#resourceVersion;
    const metadata = { ...asObject(object['metadata']), resourceVersion: String(resourceVersion) };
    const stored = { ...object, metadata };
    this.#store(key.collection, `${key.namespace}/${key.name}`, stored);
    for (const [collection, id, twin] of this.#twins(key, stored)) {
      this.#store(collection, id, { ...twin, metadata });
    }
    return stored;
  }

  remove(key: ObjectKey): void {
    const object = this.get(key);
    if (object === undefined) return;
    this.#resourceVersion++;
    for (const [collection, id] of this.#twins(key, object)) this.#store(collection, id, undefined);
    this.#store(key.collection, `${key.namespace}/${key.name}`, undefined);
  }

  changesSince(resourceVersion: number): Change[] {
    return this.#history.filter((change) => change.resourceVersion > resourceVersion);
  }

  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #store(collection: string, id: string, after: JsonObject | undefined): void {
    const objects = this.#collections.get(collection) ?? new Map<string, JsonObject>();
    const before = objects.get(id);
    if (after === undefined) objects.delete(id);
    else objects.set(id, after);
    const isNew = before === undefined;
    this.#collections.set(collection, isNew ? new Map([...objects].sort(byKey)) : objects);
    const change = { collection, resourceVersion: this.#resourceVersion, before, after };
    this.#history.push(change);
    for (const listener of [...this.#listeners]) listener(change);
  }

  #twins(key: ObjectKey, object: JsonObject): [string, string, JsonObject][] {
    const id = `${key.namespace}/${key.name}`;
    const uid = stringAt(object, 'metadata', 'uid');
    return [...this.#collections].flatMap(([collection, objects]) => {
      const twin = collection === key.collection ? undefined : objects.get(id);
      const isTwin = twin !== undefined && stringAt(twin, 'metadata', 'uid') === uid;
      return isTwin ? [[collection, id, twin] as [string, string, JsonObject]] : [];
    });
  }
}

export function nameKey(object: JsonObject): string {
  const namespace = stringAt(object, 'metadata', 'namespace') ?? '';
  return `${namespace}/${stringAt(object, 'metadata', 'name') ?? ''}`;
}

function byKey([a]: [string, JsonObject], [b]: [string, JsonObject]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function asObject(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
