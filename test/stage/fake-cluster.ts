import { type JsonObject, stringAt, valueAt } from '../../src/base/json.ts';
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
export const EVENTS = type('', 'events', 'Event');
/** The user that the gate is. */
export const GATE_USER = 'gate';
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

/** An API server in memory: objects, errors to inject, and the requests and writes in order. */
export class FakeCluster implements KubernetesApi {
  readonly target = { server: 'https://cluster.example', context: 'test', ownNamespace: 'ci' };
  types = [PODS, CONFIG_MAPS, WIDGETS];
  failedGroups: Discovery['failedGroups'] = [];
  /** Lists that start again once, after everything was handed over. */
  readonly restarts = new Set<string>();
  /** Lists that asked for metadata only. */
  readonly metadataOnly: string[] = [];
  watchMode: WatchMode = 'fed';
  /** Answers to a request that begins with this text, instead of the real one. */
  readonly answers = new Map<string, Answer>();
  /** `GET /path`, `LIST /path`, `WATCH /path`, `DISCOVER`, in order. */
  readonly requests: string[] = [];
  /** The writes that were no dry run: `DELETE /path {body}`. */
  readonly mutations: string[] = [];
  readonly dryRuns: string[] = [];
  /** Called right before a write is carried out; tests change the cluster here. */
  beforeWrite: (request: Mutation) => void = () => undefined;
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

  requestsSent(): number {
    return this.requests.length;
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
      if (fieldSelector === `metadata.name=${name}`) onEvent(structuredClone(event));
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
    if (options.metadataOnly === true) this.metadataOnly.push(path);
    if (this.restarts.delete(path)) await this.list(path, begin, options);
    const fold = begin();
    let handed = 0;
    for (const [key, object] of this.#objects) {
      if (!isIn(key, path) || !matches(object, options.labelSelector)) continue;
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
      this.dryRuns.push(line);
      const usual = request.method === 'DELETE' ? readOk({}) : readFailed(MAY_NOT_PATCH);
      return this.#answerTo(`DRY ${line}`) ?? usual;
    }
    this.mutations.push(
      `${line} ${JSON.stringify(valueAt(request.body as JsonObject, 'preconditions'))}`,
    );
    this.beforeWrite(request);
    const given = this.#answerTo(line);
    if (given !== undefined) return given;
    return this.#delete(request);
  }

  /** A namespace begins to terminate; everything else is for the tests of forcing. */
  #delete({ method, path, body }: Mutation): Read<JsonObject> {
    if (method !== 'DELETE') throw new Error(`nobody should ${method} ${path}`);
    const current = this.#objects.get(path);
    if (current === undefined) return readFailed(NOT_FOUND);
    for (const key of ['uid', 'resourceVersion']) {
      const wanted = stringAt(body as JsonObject, 'preconditions', key);
      const found = stringAt(current, 'metadata', key);
      if (wanted !== undefined && wanted !== found) return readFailed(CONFLICT);
    }
    const metadata = { ...(current['metadata'] as JsonObject), deletionTimestamp: this.#time(0) };
    const status = { phase: 'Terminating' };
    return readOk(structuredClone(this.#put(path, { ...current, metadata, status })));
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

export const NOT_FOUND: ReadFailure = {
  kind: 'not-found',
  status: 404,
  message: '404 Not Found: not found',
};
export const FORBIDDEN: ReadFailure = {
  kind: 'forbidden',
  status: 403,
  message: '403 Forbidden: you may not',
};
/** As RBAC words it; webhooks and policies have other words. */
const MAY_NOT_PATCH: ReadFailure = {
  ...FORBIDDEN,
  message:
    '403 Forbidden: widgets.example.com "db" is forbidden: User "ci" cannot patch resource "widgets"',
};
export const UNAUTHORIZED: ReadFailure = {
  kind: 'unauthorized',
  status: 401,
  message: '401 Unauthorized',
};
export const REFUSED: ReadFailure = { kind: 'network', message: 'connection refused' };
export const BROKEN: ReadFailure = {
  kind: 'server-error',
  status: 500,
  message: '500 Internal Server Error: etcdserver: request timed out',
};
export const CONFLICT: ReadFailure = {
  kind: 'conflict',
  status: 409,
  message: '409 Conflict: Precondition failed',
};
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

function matches(object: JsonObject, selector = ''): boolean {
  const [key = '', value] = selector.split('=');
  return selector === '' || stringAt(object, 'metadata', 'labels', key) === value;
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
