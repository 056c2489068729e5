import { arrayAt, isObject, type JsonObject, stringAt } from '../../../src/base/json.ts';
import type { RecordedAnswer, RecordedCollection, Recording } from '../recording.ts';
import { Catalogue } from './catalogue.ts';
import { Lists } from './lists.ts';
import { Objects } from './objects.ts';
import { collectionPath, keyOf, parseRoute, type Route, splitPath } from './routes.ts';
import { NotSupported } from './status.ts';
import { Watches } from './watches.ts';

/** The served cluster and the changes a test or script can make. Paths identify the objects. */
export class Cluster {
  readonly objects: Objects;
  readonly catalogue: Catalogue;
  readonly lists: Lists;
  readonly watches: Watches;
  readonly #recorded: ReadonlyMap<string, RecordedCollection>;

  constructor(recording: Recording) {
    this.catalogue = new Catalogue(recording);
    this.#recorded = new Map(
      recording.collections.map((collection) => [collectionPath(collection), collection]),
    );
    this.objects = new Objects(collections(recording), newestVersion(recording));
    this.lists = new Lists(this.objects);
    this.watches = new Watches(this.objects);
  }

  route(path: string): Route {
    const split = splitPath(path);
    if (split === undefined) throw new Error(`${path} is no path of an object or a collection`);
    return parseRoute(this.catalogue.types, split.prefix, split.rest);
  }

  /** How the collection itself failed when it was recorded; nobody knows what is in it then. */
  recordedFault({ type, name }: Route): RecordedAnswer | undefined {
    const collection = this.#recorded.get(type.collection);
    if (collection === undefined) throw new NotSupported(`${type.collection} was not recorded`);
    if (name !== undefined && collection.leftOut > 0 && !this.#knows(type.collection, name)) {
      throw new NotSupported(`"${name}" may be one of the objects that were not recorded`);
    }
    return collection.error;
  }

  read(path: string): JsonObject | undefined {
    return this.objects.get(keyOf(this.route(path)));
  }

  /** Edits a copy and stores it, without any of the API server's rules; watchers are told. */
  change(path: string, edit: (object: JsonObject) => void): void {
    const copy = structuredClone(this.read(path));
    if (copy === undefined) throw new Error(`there is no ${path} to change`);
    edit(copy);
    this.objects.put(keyOf(this.route(path)), copy);
  }

  create(path: string, object: JsonObject): void {
    this.objects.put(keyOf(this.route(path)), object);
  }

  remove(path: string): void {
    this.objects.remove(keyOf(this.route(path)));
  }

  /** Removes all finalizers, as controllers do after cleaning up; a terminating object is deleted. */
  removeFinalizers(path: string): void {
    this.change(path, (object) => {
      if (isObject(object['metadata'])) delete object['metadata']['finalizers'];
    });
    if (stringAt(this.read(path), 'metadata', 'deletionTimestamp') !== undefined) this.remove(path);
  }

  /** Deletes the content of the namespace, then the namespace, as the namespace controller does. */
  removeNamespace(name: string): void {
    for (const collection of this.objects.collections()) {
      for (const object of this.objects.list(collection, name)) {
        const objectName = stringAt(object, 'metadata', 'name') ?? '';
        this.objects.remove({ collection, namespace: name, name: objectName });
      }
    }
    this.remove(`/api/v1/namespaces/${name}`);
  }

  /** As after `kubectl delete apiservice`. */
  removeApiService(name: string): void {
    const path = `/apis/apiregistration.k8s.io/v1/apiservices/${name}`;
    const spec = this.read(path)?.['spec'];
    const group = stringAt(spec, 'group');
    const version = stringAt(spec, 'version');
    if (group === undefined || version === undefined) throw new Error(`there is no ${path}`);
    this.catalogue.dropGroupVersion(group, version);
    this.remove(path);
  }

  #knows(collection: string, name: string): boolean {
    const recorded = this.#recorded.get(collection)?.objects ?? [];
    return [...recorded, ...this.objects.list(collection, '')].some(
      (object) => stringAt(object, 'metadata', 'name') === name,
    );
  }
}

function collections(recording: Recording): [string, JsonObject[]][] {
  return recording.collections
    .filter(({ error }) => error === undefined)
    .map((collection) => [
      collectionPath(collection),
      collection.objects.map((object) => renewed(object, Date.parse(recording.recordedAt))),
    ]);
}

/** A Lease that was recent when recorded stays recent for 15 minutes, longer than any test. */
function renewed(object: JsonObject, recordedMs: number): JsonObject {
  const spec = object['spec'];
  const at = isObject(spec) ? stringAt(spec, 'renewTime') : undefined;
  if (!isObject(spec) || at === undefined || recordedMs - Date.parse(at) > 20_000) return object;
  const time = new Date(recordedMs + 900_000).toISOString();
  // The gate computes the age of a Lease from the time at which the server wrote it.
  const metadata = {
    ...(object['metadata'] as JsonObject),
    managedFields: arrayAt(object, 'metadata', 'managedFields').map((entry) => ({
      ...(entry as JsonObject),
      time: `${time.slice(0, 19)}Z`,
    })),
  };
  return { ...object, metadata, spec: { ...spec, renewTime: time.replace('Z', '000Z') } };
}

function newestVersion({ collections: recorded }: Recording): number {
  return Math.max(1, ...recorded.map(({ resourceVersion }) => Number(resourceVersion) || 0));
}
