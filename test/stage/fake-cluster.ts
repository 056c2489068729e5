import {
  arrayAt,
  isObject,
  type Json,
  type JsonObject,
  stringAt,
  valueAt,
} from '../../src/base/json.ts';
import type {
  CallOptions,
  Fold,
  KubernetesApi,
  ListOptions,
  ListResult,
  Mutation,
  WatchEvent,
  WatchOptions,
} from '../../src/kubernetes/api.ts';
import { collectionPath, namespacePath, objectPath } from '../../src/kubernetes/paths.ts';
import { type Read, type ReadFailure, readFailed, readOk } from '../../src/model/read.ts';
import type { Discovery, ResourceType } from '../../src/model/snapshot.ts';
import type { FakeClock } from './fake-clock.ts';

export const PODS = type('', 'pods', 'Pod');
export const CONFIG_MAPS = type('', 'configmaps', 'ConfigMap');
export const WIDGETS = type('example.com', 'widgets', 'Widget');
/** The user that the gate is. */
const GATE_USER = 'gate';
const NAMESPACES = '/api/v1/namespaces';

function type(group: string, resource: string, kind: string): ResourceType {
  const verbs = ['get', 'list', 'watch', 'patch', 'delete'];
  return { group, version: 'v1', resource, kind, namespaced: true, verbs };
}

/** How the API server treats a watch. */
export type WatchMode =
  | 'fed' // tells every change
  | 'silent' // is open and says nothing
  | 'mute' // never even opens
  | 'forbidden'
  | 'ends'; // opens and is closed at once

type Answer = Read<JsonObject> | ((count: number) => Read<JsonObject> | undefined);

/**
 * An API server in memory: objects, errors to inject, and the requests and writes in order. It has the rules that writes
 * depend on: JSON Patch with `test`, preconditions, /finalize, objects that outlive their namespace, and a namespace
 * controller that can be let work.
 */
export class FakeCluster implements KubernetesApi {
  readonly target = { server: 'https://cluster.example', context: 'test', ownNamespace: 'ci' };
  types = [PODS, CONFIG_MAPS, WIDGETS];
  failedGroups: Discovery['failedGroups'] = [];
  watchMode: WatchMode = 'fed';
  /** Answers to a request that begins with this text, instead of the real one. */
  readonly answers = new Map<string, Answer>();
  /** `GET /path`, `LIST /path`, `WATCH /path`, `DISCOVER`, in order. */
  readonly requests: string[] = [];
  /** The writes that were no dry run: `DELETE /path {body}`. */
  readonly mutations: string[] = [];
  /** The writes with the status of what went wrong: `PATCH /path 422`. */
  readonly writes: string[] = [];
  /** The bodies of those that were carried out, or refused by a precondition. */
  readonly bodies: Json[] = [];
  /** How long the server takes for a write, in virtual time. */
  slownessMs = 0;
  /** Called right before a write is carried out, with the number of those before; tests change the cluster here. */
  beforeWrite: (request: Mutation, count: number) => void = () => undefined;
  /** Called right after it: an owner that puts things back. */
  afterWrite: (request: Mutation) => void = () => undefined;
  readonly #clock: FakeClock;
  readonly #objects = new Map<string, JsonObject>();
  readonly #watchers = new Set<WatchOptions>();
  #close = new AbortController();
  readonly #counts = new Map<string, number>();
  #version = 100;

  constructor(clock: FakeClock) {
    this.#clock = clock;
    this.#put('/version', { gitVersion: 'v1.36.3' });
    this.namespace('kube-system', { active: true });
  }

  clockOffsetMs(): number {
    return 0;
  }

  /** Logs by the path of the pod and container: `ops/web-0/main`. */
  readonly logs = new Map<string, string>();

  async text(path: string): Promise<Read<string>> {
    const given = this.#ask(`GET ${path}`, {});
    if (given !== undefined && !given.ok) return given;
    if (path === '/readyz') return readOk('ok');
    const [, namespace, pod, container] =
      /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/log\?container=([^&]+)/.exec(path) ?? [];
    const log = this.logs.get(`${namespace}/${pod}/${container}`);
    if (log !== undefined) return { ok: true, value: log };
    return { ok: false, failure: { kind: 'forbidden', message: '403 Forbidden' } };
  }

  async close(): Promise<void> {
    // Nothing is open.
  }

  /** Terminating since before the clock began, unless told otherwise. */
  namespace(
    name: string,
    over: { uid?: string; metadata?: JsonObject; conditions?: JsonObject[]; active?: boolean } = {},
  ): void {
    const { uid = `uid-of-${name}`, metadata = {}, conditions = GREEN, active = false } = over;
    const asked = active ? {} : { deletionTimestamp: this.#time(-60_000) };
    const path = namespacePath(name);
    const known = this.#objects.has(path);
    const object = this.#put(path, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, uid, creationTimestamp: this.#time(-3_600_000), ...asked, ...metadata },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: active ? 'Active' : 'Terminating', conditions: active ? [] : conditions },
    });
    this.feed({ type: known ? 'MODIFIED' : 'ADDED', object });
  }

  /** The namespace is gone, and who watches hears of it. */
  remove(name: string): void {
    const path = namespacePath(name);
    const object = this.#objects.get(path);
    this.#objects.delete(path);
    if (object !== undefined) this.feed({ type: 'DELETED', object });
  }

  /** A terminating object, held by finalizers. */
  held(of: ResourceType, namespace: string, name: string, ...finalizers: string[]): void {
    this.object(of, namespace, name, { deletionTimestamp: this.#time(-50_000), finalizers });
  }

  object(
    of: ResourceType,
    namespace: string,
    name: string,
    metadata: JsonObject = {},
    rest: JsonObject = {},
  ): void {
    this.#put(objectPath(of, namespace, name), {
      metadata: { name, namespace, uid: `uid-${of.resource}-${name}`, ...metadata },
      ...rest,
    });
  }

  take(of: ResourceType, namespace: string, name: string): void {
    this.#objects.delete(objectPath(of, namespace, name));
  }

  /** An object anywhere else: a CRD, a Deployment of another namespace. */
  put(path: string, object: JsonObject): void {
    this.#put(path, object);
  }

  /** What is stored, past every request. */
  peek(path: string): JsonObject | undefined {
    return this.#objects.get(path);
  }

  /** What is in a namespace, by path. */
  inside(namespace: string): [string, JsonObject][] {
    return [...this.#objects].filter(([path]) => path.includes(`/namespaces/${namespace}/`));
  }

  drop(path: string): void {
    const name = /^\/api\/v1\/namespaces\/([^/]+)$/.exec(path)?.[1];
    if (name !== undefined) this.remove(name);
    this.#objects.delete(path);
  }

  feed(event: WatchEvent): void {
    if (this.watchMode !== 'fed') return;
    for (const { onEvent, fieldSelector } of [...this.#watchers]) {
      const name = stringAt(event.object, 'metadata', 'name');
      if ([undefined, `metadata.name=${name}`].includes(fieldSelector))
        onEvent(structuredClone(event));
    }
  }

  /** The server ends every watch, as it does every few minutes. */
  closeWatches(): void {
    this.#close.abort();
    this.#close = new AbortController();
  }

  async get(path: string, options: CallOptions = {}): Promise<Read<JsonObject>> {
    const given = this.#ask(`GET ${path}`, options);
    if (given !== undefined) return given;
    const object = this.#objects.get(path);
    return object === undefined ? readFailed(NOT_FOUND) : readOk(structuredClone(object));
  }

  async list<T>(
    path: string,
    begin: () => Fold<T>,
    options: ListOptions = {},
  ): Promise<Read<ListResult<T>>> {
    const given = this.#ask(`LIST ${path}`, options);
    if (given !== undefined && !given.ok) return given;
    const fold = begin();
    let handed = 0;
    for (const [key, object] of this.#objects) {
      if (!isIn(key, path) || !matches(object, options)) continue;
      if (handed++ === options.maxItems) return readOk({ kept: fold.kept, complete: false });
      fold.add(structuredClone(object));
    }
    return readOk({ kept: fold.kept, complete: true });
  }

  async watch(path: string, options: WatchOptions): Promise<Read<undefined>> {
    const given = this.#ask(`WATCH ${path}`, options);
    if (given !== undefined && !given.ok) return given;
    if (this.watchMode === 'forbidden') return readFailed(FORBIDDEN);
    if (this.watchMode !== 'mute') options.onOpen?.();
    if (this.watchMode === 'ends') return readOk(undefined);
    this.#watchers.add(options);
    const closed = this.#close.signal;
    await aborted(AbortSignal.any([closed, ...(options.signal ? [options.signal] : [])]));
    this.#watchers.delete(options);
    return readOk(undefined);
  }

  async discover(options: CallOptions = {}): Promise<Read<Discovery>> {
    const given = this.#ask('DISCOVER', options);
    if (given !== undefined && !given.ok) return given;
    return readOk({ types: this.types, failedGroups: this.failedGroups });
  }

  async send(request: Mutation, options: CallOptions = {}): Promise<Read<JsonObject>> {
    if (options.signal?.aborted) return readFailed(ABORTED);
    const line = `${request.method} ${request.path}`;
    // Reads that use POST.
    if (line.endsWith('/selfsubjectaccessreviews')) return readOk({ status: { allowed: true } });
    if (line.endsWith('/selfsubjectreviews')) {
      return readOk({ status: { userInfo: { username: GATE_USER } } });
    }
    if (request.dryRun === true) {
      const usual = request.method === 'DELETE' ? readOk({}) : readFailed(MAY_NOT_PATCH);
      return this.#answerTo(`DRY ${line}`) ?? usual;
    }
    this.mutations.push(
      `${line} ${JSON.stringify(valueAt(request.body as JsonObject, 'preconditions'))}`,
    );
    this.beforeWrite(request, this.writes.length);
    if (this.slownessMs > 0) await this.#clock.sleep(this.slownessMs, options.signal);
    if (options.signal?.aborted) {
      this.writes.push(`${line} aborted`);
      return readFailed(ABORTED);
    }
    const given = this.#answerTo(line);
    const answer = given ?? this.#carryOut(request);
    this.writes.push(answer.ok ? line : `${line} ${answer.failure.status ?? ''}`.trim());
    if (given !== undefined) return given;
    this.bodies.push(request.body ?? null);
    if (answer.ok) this.afterWrite(request);
    return answer;
  }

  /** Acts as the namespace controller: deletes the content, then removes the finalizer `kubernetes`. */
  settle(name: string): void {
    const path = namespacePath(name);
    const namespace = this.peek(path);
    if (stringAt(namespace, 'metadata', 'deletionTimestamp') === undefined) return;
    // Kubernetes >= 1.33: pods first.
    const all = this.inside(name);
    const pods = all.filter(([key]) => key.includes('/pods/'));
    let left = all.length;
    for (const [key, object] of pods.length > 0 ? pods : all) {
      if (this.#save(key, this.#terminating(object))) left--;
    }
    const spec = arrayAt(namespace, 'spec', 'finalizers').filter((entry) => entry !== 'kubernetes');
    if (left === 0) this.#save(path, { ...(namespace as JsonObject), spec: { finalizers: spec } });
  }

  #carryOut({ method, path: target, body = {} }: Mutation): Read<JsonObject> {
    const path = target.replace(/\/finalize$/, '');
    const current = this.peek(path);
    if (current === undefined) return readFailed(NOT_FOUND);
    const [, place] = /\/namespaces\/([^/]+)\//.exec(path) ?? [];
    // Lifecycle admission: only DELETE passes for objects of a namespace that is not there.
    const isStranded = place !== undefined && this.peek(namespacePath(place)) === undefined;
    if (isStranded && method !== 'DELETE') return readFailed(NOT_FOUND);
    if (Array.isArray(body)) {
      const patched = jsonPatch(current, body);
      if (patched !== undefined) this.#save(path, patched);
      return patched === undefined ? readFailed(TEST_FAILED) : readOk(patched);
    }
    const pins = valueAt(body, method === 'PUT' ? 'metadata' : 'preconditions');
    for (const key of ['uid', 'resourceVersion']) {
      const pinned = stringAt(pins, key);
      if (pinned !== undefined && pinned !== stringAt(current, 'metadata', key))
        return readFailed(CONFLICT);
    }
    const next =
      method === 'PUT' ? { ...body, status: current['status'] ?? {} } : this.#terminating(current);
    this.#save(path, next);
    return readOk(structuredClone(this.peek(path) ?? next));
  }

  #terminating(object: JsonObject): JsonObject {
    const metadata = { ...(object['metadata'] as JsonObject) };
    metadata['deletionTimestamp'] ??= this.#time(0);
    const status = object['kind'] === 'Namespace' ? { phase: 'Terminating' } : object['status'];
    return { ...object, metadata, ...(status === undefined ? {} : { status }) };
  }

  /** Saves the object, or removes it if it is terminating without finalizers; returns whether it did. */
  #save(path: string, object: JsonObject): boolean {
    const asked = stringAt(object, 'metadata', 'deletionTimestamp') !== undefined;
    const held = ['metadata', 'spec'].flatMap((part) => arrayAt(object, part, 'finalizers'));
    if (asked && held.length === 0) this.drop(path);
    else this.#put(path, object);
    return asked && held.length === 0;
  }

  #put(path: string, object: JsonObject): JsonObject {
    const metadata = { ...(object['metadata'] as JsonObject | undefined) };
    metadata['resourceVersion'] = `${++this.#version}`;
    const stored = path === '/version' ? object : { ...object, metadata };
    this.#objects.set(path, stored);
    return stored;
  }

  #ask(line: string, { signal }: CallOptions): Read<JsonObject> | undefined {
    this.requests.push(line);
    return signal?.aborted ? readFailed(ABORTED) : this.#answerTo(line);
  }

  #answerTo(line: string): Read<JsonObject> | undefined {
    for (const [start, answer] of this.answers) {
      if (!line.startsWith(start)) continue;
      const count = this.#counts.get(start) ?? 0;
      this.#counts.set(start, count + 1);
      return typeof answer === 'function' ? answer(count) : answer;
    }
    return undefined;
  }

  #time(offsetMs: number): string {
    return new Date(this.#clock.now() + offsetMs).toISOString().replace(/\.\d+/, '');
  }
}

/** What the server answers, in words that begin with the status. */
const answer = (kind: ReadFailure['kind'], message: string): ReadFailure => ({
  ...{ kind, message, status: Number.parseInt(message, 10) },
});
export const NOT_FOUND = answer('not-found', '404 Not Found: not found');
export const FORBIDDEN = answer('forbidden', '403 Forbidden: you may not');
/** As RBAC words it; webhooks and policies have other words. */
const MAY_NOT_PATCH = answer(
  'forbidden',
  '403 Forbidden: widgets.example.com "db" is forbidden: User "ci" cannot patch resource "widgets"',
);
export const UNAUTHORIZED = answer('unauthorized', '401 Unauthorized');
export const REFUSED: ReadFailure = { kind: 'network', message: 'connection refused' };
const TIMED_OUT = '500 Internal Server Error: etcdserver: request timed out';
export const BROKEN = answer('server-error', TIMED_OUT);
export const CONFLICT = answer('conflict', '409 Conflict: Precondition failed');
const TEST_FAILED = answer(
  'invalid',
  '422 Invalid: the server rejected our request due to an error in our request',
);
const ABORTED: ReadFailure = { kind: 'aborted', message: 'the run was ended' };

/** As on Kubernetes >= 1.33 while a pod remains. */
const GREEN: JsonObject[] = [
  'NamespaceDeletionDiscoveryFailure',
  'NamespaceDeletionGroupVersionParsingFailure',
  'NamespaceDeletionContentFailure',
  'NamespaceContentRemaining',
  'NamespaceFinalizersRemaining',
].map((name) => ({ type: name, status: 'False', reason: '', message: '' }));

function isIn(key: string, collection: string): boolean {
  if (!key.startsWith(`${collection}/`)) {
    // All namespaces: /apis/apps/v1/deployments has /apis/apps/v1/namespaces/ops/deployments/x.
    const [, root = '', plural = ''] = /^(.*)\/([^/]+)$/.exec(collection) ?? [];
    return key.startsWith(`${root}/namespaces/`) && key.split('/').at(-2) === plural;
  }
  return !key.slice(collection.length + 1).includes('/');
}

function matches(
  object: JsonObject,
  { labelSelector = '', fieldSelector = '' }: ListOptions,
): boolean {
  const [key = '', value] = labelSelector.split('=');
  const [, name] = /^metadata\.name=(.*)$/.exec(fieldSelector) ?? [];
  return (
    (labelSelector === '' || stringAt(object, 'metadata', 'labels', key) === value) &&
    (name === undefined || stringAt(object, 'metadata', 'name') === name)
  );
}

/** `test` and `remove`, all that forcing sends; undefined when a test fails. */
function jsonPatch(object: JsonObject, operations: readonly JsonObject[]): JsonObject | undefined {
  const result = structuredClone(object);
  for (const { op, path, value } of operations) {
    const keys = String(path)
      .slice(1)
      .split('/')
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
      .map((key) => (/^\d+$/.test(key) ? Number(key) : key));
    if (op === 'test' && valueAt(result, ...keys) !== value) return undefined;
    if (op !== 'remove') continue;
    const parent = valueAt(result, ...keys.slice(0, -1));
    const last = keys.at(-1);
    if (Array.isArray(parent) && typeof last === 'number' && last < parent.length) {
      parent.splice(last, 1);
    } else if (isObject(parent)) {
      delete parent[String(last)];
    } else {
      return undefined;
    }
  }
  return result;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Paths that tests ask for by name. */
export const pathOf = {
  namespace: namespacePath,
  namespaces: NAMESPACES,
  all: (of: ResourceType, namespace: string): string => collectionPath(of, namespace),
};
