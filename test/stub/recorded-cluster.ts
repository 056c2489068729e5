import type { ServerResponse } from 'node:http';
import {
  arrayAt,
  isObject,
  type Json,
  type JsonObject,
  recordAt,
  stringAt,
  stringsAt,
} from '../../src/base/json.ts';
import type { RecordedAnswer, RecordedCollection, Recording } from './recording.ts';

/** What a path names: a collection over all namespaces, one in a namespace, or an object. */
export interface Route {
  collection: RecordedCollection;
  namespace: string;
  name?: string | undefined;
  subresource?: string | undefined;
}

type Matcher = (object: JsonObject) => boolean;

interface Watcher {
  route: Route;
  matches: Matcher;
  response: ServerResponse;
}

/** Thrown for what the stub does not have, so that no test that needs it passes by accident. */
export class NotSupported extends Error {}

/** A recorded cluster, and the changes that a test or the demo can make. */
export class RecordedCluster {
  /** The streams that are open. */
  readonly watches = new Watches();
  readonly #recording: Recording;
  readonly #collections: ReadonlyMap<string, RecordedCollection>;
  readonly #gone = new Set<string>();
  #version: number;

  constructor(recording: Recording) {
    this.#recording = recording;
    const recordedMs = Date.parse(recording.recordedAt);
    this.#collections = new Map(
      recording.collections.map((one) => {
        const objects = one.objects.map((object) => renewed(object, recordedMs));
        return [`${prefixOf(one)}/${one.resource}`, { ...one, objects }];
      }),
    );
    const versions = recording.collections.map(({ resourceVersion }) => Number(resourceVersion));
    this.#version = Math.max(1, ...versions.filter(Number.isFinite));
  }

  /** The answer to a discovery path, as it was recorded; of a dead API, to every path in it. */
  discovery(path: string, isAggregated: boolean): RecordedAnswer | undefined {
    const { aggregated, legacy } = this.#recording.discovery;
    if (isAggregated && path in aggregated) return this.#withoutGone(aggregated[path], 'items');
    const [prefix = path] = /^\/apis\/[^/]+\/[^/]+/.exec(path) ?? [];
    if (this.#gone.has(prefix)) return undefined;
    const answer = legacy[prefix];
    if (prefix !== path) return answer?.status === 200 ? undefined : answer;
    return path === '/apis' ? this.#withoutGone(answer, 'groups') : answer;
  }

  /** Undefined: the server does not know the path. */
  route(path: string): Route | undefined {
    const [, prefix, inside, resource = '', name, subresource] =
      /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?(?:\/([a-z]+))?$/.exec(
        path,
      ) ?? [];
    if (prefix === undefined || this.#gone.has(prefix)) return undefined;
    if (inside !== undefined && name === undefined && /^(?:status|finalize)$/.test(resource)) {
      return { ...this.#at(`${prefix}/namespaces`), name: inside, subresource: resource };
    }
    return { ...this.#at(`${prefix}/${resource}`), namespace: inside ?? '', name, subresource };
  }

  #at(collectionPath: string): Route {
    const collection = this.#collections.get(collectionPath);
    if (collection === undefined) throw new NotSupported(`${collectionPath} was not recorded`);
    return { collection, namespace: '' };
  }

  list({ collection, namespace }: Route): JsonObject[] {
    return collection.objects.filter((object) => isIn(object, namespace));
  }

  get({ collection, namespace, name = '' }: Route): JsonObject | undefined {
    const found = collection.objects.find((object) => idOf(object) === `${namespace}/${name}`);
    if (found === undefined && collection.leftOut > 0) {
      throw new NotSupported(`"${name}" may be one of the objects that were not recorded`);
    }
    return found && withType(collection, found);
  }

  get resourceVersion(): string {
    return String(this.#version);
  }

  /** The objects in a namespace, of every type. */
  inside(namespace: string): { collection: RecordedCollection; object: JsonObject }[] {
    return [...this.#collections.values()].flatMap((collection) =>
      collection.namespaced
        ? this.list({ collection, namespace }).map((object) => ({ collection, object }))
        : [],
    );
  }

  remove(collection: RecordedCollection, object: JsonObject): void {
    collection.objects.splice(collection.objects.indexOf(object), 1);
    const resourceVersion = String(++this.#version);
    const metadata = { ...(object['metadata'] as JsonObject), resourceVersion };
    this.watches.tell('DELETED', collection, { ...object, metadata });
  }

  /** Deletes the content of the namespace, then the namespace, as the namespace controller does. */
  removeNamespace(name: string): void {
    for (const { collection, object } of this.inside(name)) this.remove(collection, object);
    this.#removeAt('/api/v1/namespaces', name);
  }

  deadApiServices(): string[] {
    const isDead = (service: JsonObject): boolean =>
      arrayAt(service, 'status', 'conditions').some(
        (condition) =>
          stringAt(condition, 'type') === 'Available' && stringAt(condition, 'status') !== 'True',
      );
    return this.list(this.#at(API_SERVICES)).filter(isDead).map(nameOf);
  }

  /** As after `kubectl delete apiservice`: the group-version is not served any more. */
  removeApiService(name: string): void {
    const { spec } = this.#removeAt(API_SERVICES, name);
    this.#gone.add(`/apis/${stringAt(spec, 'group')}/${stringAt(spec, 'version')}`);
  }

  #removeAt(collectionPath: string, name: string): JsonObject {
    const { collection } = this.#at(collectionPath);
    const found = collection.objects.find((object) => nameOf(object) === name);
    if (found !== undefined) this.remove(collection, found);
    return found ?? {};
  }

  #withoutGone(answer: RecordedAnswer | undefined, list: 'items' | 'groups') {
    if (this.#gone.size === 0 || !isObject(answer?.body)) return answer;
    const groups = arrayAt(answer.body, list).flatMap((group): Json[] => {
      if (!isObject(group)) return [];
      const name = stringAt(group, 'metadata', 'name') ?? stringAt(group, 'name');
      const versions = arrayAt(group, 'versions').filter(
        (version) => !this.#gone.has(`/apis/${name}/${stringAt(version, 'version')}`),
      );
      return versions.length === 0 ? [] : [{ ...group, versions }];
    });
    return { ...answer, body: { ...answer.body, [list]: groups } };
  }
}

/** One JSON document per line, until the client or the test ends it. */
class Watches {
  readonly #open = new Set<Watcher>();
  readonly #awaited = new Set<() => void>();

  /** Resolves as soon as somebody is watching: then the gate is waiting. */
  async untilOpen(): Promise<void> {
    if (this.#open.size > 0) return;
    await new Promise<void>((resolve) => this.#awaited.add(resolve));
  }

  endAll(): void {
    for (const { response } of this.#open) response.end();
  }

  serve(watcher: Watcher, now: readonly JsonObject[]): void {
    const { response, route } = watcher;
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.flushHeaders();
    for (const object of now) send(response, 'ADDED', withType(route.collection, object));
    this.#open.add(watcher);
    response.on('close', () => this.#open.delete(watcher));
    for (const resolve of this.#awaited) resolve();
    this.#awaited.clear();
  }

  tell(type: 'DELETED', collection: RecordedCollection, object: JsonObject): void {
    for (const { route, matches, response } of this.#open) {
      if (route.collection !== collection || !isIn(object, route.namespace)) continue;
      if (matches(object)) send(response, type, withType(collection, object));
    }
  }
}

const API_SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';

function send(response: ServerResponse, type: string, object: JsonObject): void {
  response.write(`${JSON.stringify({ type, object })}\n`);
}

/** `metadata.name=x`, `metadata.namespace!=x` and `label=value`: all that the gate asks for here. */
export function selection(query: URLSearchParams): Matcher {
  const fields = query.get('fieldSelector') ?? '';
  const [, field = '', not, wanted] = /^metadata\.(name|namespace)(!?)=(.*)$/.exec(fields) ?? [];
  if (fields !== '' && field === '') throw new NotSupported(`selector "${fields}"`);
  const [label = '', value] = (query.get('labelSelector') ?? '').split('=');
  return (object) =>
    (field === '' || (stringAt(object, 'metadata', field) === wanted) === (not === '')) &&
    (label === '' || recordAt(object, 'metadata', 'labels')[label] === value);
}

/** Items of built-in types carry no kind and apiVersion in a list; single objects always do. */
function withType({ group, version, kind }: RecordedCollection, object: JsonObject): JsonObject {
  return { kind, apiVersion: group === '' ? version : `${group}/${version}`, ...object };
}

function prefixOf({ group, version }: RecordedCollection): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
}

export function nameOf(object: JsonObject): string {
  return stringAt(object, 'metadata', 'name') ?? '';
}

function idOf(object: JsonObject): string {
  return `${stringAt(object, 'metadata', 'namespace') ?? ''}/${nameOf(object)}`;
}

function isIn(object: JsonObject, namespace: string): boolean {
  return namespace === '' || stringAt(object, 'metadata', 'namespace') === namespace;
}

/** Terminating, and held by finalizers. */
export function isHeld(object: JsonObject): boolean {
  const isTerminating = stringAt(object, 'metadata', 'deletionTimestamp') !== undefined;
  return isTerminating && stringsAt(object, 'metadata', 'finalizers').length > 0;
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
