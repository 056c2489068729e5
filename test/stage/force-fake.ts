import {
  arrayAt,
  at,
  isObject,
  type Json,
  type JsonObject,
  stringAt,
} from '../../src/base/json.ts';
import type {
  Discovery,
  KubernetesApi,
  ListEnd,
  ListOptions,
  Mutation,
  ResourceType,
} from '../../src/kubernetes/api.ts';
import { collectionPath, objectPath } from '../../src/kubernetes/paths.ts';
import { failed, type Read, type ReadFailure, read } from '../../src/model/read.ts';

export const PODS = type('', 'pods', 'Pod');
export const CONFIG_MAPS = type('', 'configmaps', 'ConfigMap');
export const WIDGETS = type('example.com', 'widgets', 'Widget');
export const DEMO = 'preview-1';
const NAMESPACES = '/api/v1/namespaces';

export function type(group: string, resource: string, kind: string): ResourceType {
  const verbs = ['get', 'list', 'patch', 'delete'];
  return { group, version: 'v1', resource, kind, namespaced: true, verbs };
}

/**
 * A small API server in memory, with the rules that forcing depends on: JSON Patch with `test`,
 * preconditions, /finalize, and objects that outlive their namespace.
 */
export class FakeCluster implements KubernetesApi {
  readonly target = { server: 'https://cluster.example', context: 'test', ownNamespace: 'ci' };
  readonly types = [PODS, CONFIG_MAPS, WIDGETS];
  failedGroups: Discovery['failedGroups'] = [];
  /** What really was written, in order: "PATCH /api/v1/…". */
  readonly mutations: string[] = [];
  readonly bodies: Json[] = [];
  readonly dryRuns: string[] = [];
  readonly reviews: string[] = [];
  /** Answers "patch configmaps" and the like with "no". */
  readonly denied = new Set<string>();
  /** Answers to a request that begins with this text, instead of doing it. */
  readonly failures = new Map<string, ReadFailure>();
  /** Runs right before a real write is carried out: the moment for everything that can go wrong. */
  beforeWrite: (request: Mutation, count: number) => void = () => undefined;
  /** Runs right after a real write: an owner that puts things back. */
  afterWrite: (request: Mutation) => void = () => undefined;
  private readonly store = new Map<string, JsonObject>();
  private version = 100;

  clockOffsetMs = (): number => 0;
  close = async (): Promise<void> => undefined;
  watch = async (): Promise<never> => {
    throw new Error('forcing does not watch');
  };

  put(path: string, object: JsonObject): JsonObject {
    const metadata = {
      ...(object['metadata'] as JsonObject),
      resourceVersion: `${++this.version}`,
    };
    const stored = { ...object, metadata };
    this.store.set(path, stored);
    return stored;
  }

  /** A namespace that is Terminating unless told otherwise. */
  namespace(
    over: { uid?: string; metadata?: JsonObject; spec?: Json[]; phase?: string } = {},
  ): void {
    const { uid = 'ns-uid', metadata = {}, spec = ['kubernetes'], phase = 'Terminating' } = over;
    const asked = phase === 'Terminating' ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {};
    this.put(`${NAMESPACES}/${DEMO}`, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name: DEMO,
        uid,
        creationTimestamp: '2025-12-31T00:00:00Z',
        labels: { ephemeral: 'true' },
        annotations: { keep: 'me' },
        ...asked,
        ...metadata,
      },
      spec: { finalizers: spec },
      status: { phase },
    });
  }

  object(of: ResourceType, name: string, metadata: JsonObject = {}, rest: JsonObject = {}): void {
    this.put(objectPath(of, DEMO, name), {
      metadata: {
        name,
        namespace: DEMO,
        uid: `uid-${name}`,
        creationTimestamp: '2025-12-31T01:00:00Z',
        ...metadata,
      },
      ...rest,
    });
  }

  held(of: ResourceType, name: string, ...finalizers: string[]): void {
    this.object(of, name, { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers });
  }

  read(path: string): JsonObject | undefined {
    return this.store.get(path);
  }

  remove(path: string): void {
    this.store.delete(path);
  }

  /** The namespace controller: queued objects are deleted, an empty namespace loses `kubernetes`. */
  settle(): void {
    const path = `${NAMESPACES}/${DEMO}`;
    const namespace = this.store.get(path);
    if (namespace === undefined || stringAt(namespace, 'status', 'phase') !== 'Terminating') return;
    const content = [...this.store].filter(([key]) => key.includes(`/namespaces/${DEMO}/`));
    const pods = content.filter(([key]) => key.includes('/pods/'));
    for (const [key, object] of pods.length > 0 ? pods : content) {
      const metadata = { ...(object['metadata'] as JsonObject) };
      metadata['deletionTimestamp'] ??= '2026-01-01T00:01:00Z';
      this.save(key, { ...object, metadata });
    }
    if ([...this.store.keys()].some((key) => key.includes(`/namespaces/${DEMO}/`))) return;
    const spec = arrayAt(namespace, 'spec', 'finalizers').filter((entry) => entry !== 'kubernetes');
    this.save(path, { ...namespace, spec: { finalizers: spec } });
  }

  async get(path: string): Promise<Read<JsonObject>> {
    const failure = this.failureOf(`GET ${path}`);
    if (failure !== undefined) return failed(failure);
    const object = this.store.get(path);
    return object === undefined ? notFound() : read(structuredClone(object));
  }

  async list(path: string, options: ListOptions): Promise<Read<ListEnd>> {
    const failure = this.failureOf(`LIST ${path}`);
    if (failure !== undefined) return failed(failure);
    const [, equal, notEqual] =
      /^metadata\.name=(.*)$|^metadata\.namespace!=(.*)$/.exec(options.fieldSelector ?? '') ?? [];
    const resource = path.split('/').at(-1) ?? '';
    const scope = path.includes('/namespaces/') ? `${path}/` : undefined;
    let handed = 0;
    for (const [key, object] of this.store) {
      const inPath =
        scope === undefined
          ? key.split('/').at(-2) === resource && key.startsWith(path.replace(`/${resource}`, ''))
          : key.startsWith(scope);
      if (!inPath) continue;
      if (equal !== undefined && stringAt(object, 'metadata', 'name') !== equal) continue;
      if (notEqual !== undefined && stringAt(object, 'metadata', 'namespace') === notEqual)
        continue;
      if (handed++ === options.maxItems) break;
      options.onItem(structuredClone(object));
    }
    return read({ resourceVersion: '1', complete: true });
  }

  async discover(): Promise<Read<Discovery>> {
    const failure = this.failureOf('DISCOVER');
    if (failure !== undefined) return failed(failure);
    return read({ types: this.types, failedGroups: this.failedGroups, aggregated: true });
  }

  async send(request: Mutation): Promise<Read<JsonObject>> {
    const line = `${request.method} ${request.path}`;
    if (request.path.endsWith('/selfsubjectaccessreviews')) return this.review(request);
    if (request.dryRun) this.dryRuns.push(line);
    else this.beforeWrite(request, this.mutations.length);
    const failure = this.failureOf(`${request.dryRun ? 'DRY ' : ''}${line}`);
    if (failure !== undefined) return failed(failure);
    const result = this.carryOut(structuredClone(request));
    if (request.dryRun) return result.answer;
    this.mutations.push(`${line}${result.answer.ok ? '' : ` ${result.answer.failure.status}`}`);
    this.bodies.push(request.body ?? null);
    if (result.answer.ok) result.store();
    if (result.answer.ok) this.afterWrite(request);
    return result.answer;
  }

  private review(request: Mutation): Read<JsonObject> {
    const asked = at(request.body as JsonObject, 'spec', 'resourceAttributes');
    const group = stringAt(asked, 'group') || '';
    const sub = stringAt(asked, 'subresource');
    const right = `${stringAt(asked, 'verb')} ${stringAt(asked, 'resource')}${group === '' ? '' : `.${group}`}${sub === undefined ? '' : `/${sub}`}`;
    this.reviews.push(right);
    return read({ status: { allowed: !this.denied.has(right) } });
  }

  private carryOut(request: Mutation): { answer: Read<JsonObject>; store: () => void } {
    const path = request.path.replace(/\/finalize$/, '');
    const current = this.store.get(path);
    const refuse = (answer: Read<JsonObject>) => ({ answer, store: () => undefined });
    if (current === undefined) return refuse(notFound());
    const isInside = path.includes(`/namespaces/${DEMO}/`);
    // Lifecycle admission: only DELETE passes for objects of a namespace that is not there.
    if (isInside && request.method !== 'DELETE' && !this.store.has(`${NAMESPACES}/${DEMO}`)) {
      return refuse(notFound());
    }
    switch (request.method) {
      case 'PATCH': {
        const patched = jsonPatch(current, request.body as JsonObject[]);
        if (patched === undefined) return refuse(failed(TEST_FAILED));
        return { answer: read(patched), store: () => this.save(path, patched) };
      }
      case 'PUT': {
        const body = request.body as JsonObject;
        if (differs(body, current, 'uid') || differs(body, current, 'resourceVersion')) {
          return refuse(failed(CONFLICT));
        }
        const next = { ...body, status: current['status'] ?? {} };
        return { answer: read(next), store: () => this.save(path, next) };
      }
      case 'DELETE': {
        const pinned = { metadata: at(request.body as JsonObject, 'preconditions') ?? {} };
        if (differs(pinned, current, 'uid') || differs(pinned, current, 'resourceVersion')) {
          return refuse(failed(CONFLICT));
        }
        return { answer: read(current), store: () => this.save(path, current) };
      }
      case 'POST':
        throw new Error(`unexpected ${request.method} ${request.path}`);
    }
  }

  /** Objects go when they were asked to and nothing holds them. */
  private save(path: string, object: JsonObject): void {
    const asked = stringAt(object, 'metadata', 'deletionTimestamp') !== undefined;
    const held = [
      ...arrayAt(object, 'metadata', 'finalizers'),
      ...arrayAt(object, 'spec', 'finalizers'),
    ];
    if (asked && held.length === 0) this.store.delete(path);
    else this.put(path, object);
  }

  private failureOf(line: string): ReadFailure | undefined {
    for (const [start, failure] of this.failures) if (line.startsWith(start)) return failure;
    return undefined;
  }
}

const TEST_FAILED: ReadFailure = {
  kind: 'invalid',
  status: 422,
  message: '422 Invalid: the server rejected our request due to an error in our request',
};
const CONFLICT: ReadFailure = {
  kind: 'conflict',
  status: 409,
  message: '409 Conflict: the object has been modified',
};

function notFound(): { ok: false; failure: ReadFailure } {
  return failed({ kind: 'not-found', status: 404, message: '404 NotFound: not found' });
}

function differs(wanted: JsonObject, current: JsonObject, key: string): boolean {
  const value = stringAt(wanted, 'metadata', key);
  return value !== undefined && value !== stringAt(current, 'metadata', key);
}

/** `test` and `remove`, all that forcing sends; `undefined` when a test fails. */
function jsonPatch(object: JsonObject, operations: readonly JsonObject[]): JsonObject | undefined {
  const result = structuredClone(object);
  for (const { op, path, value } of operations) {
    const keys = String(path)
      .slice(1)
      .split('/')
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
      .map((key) => (/^\d+$/.test(key) ? Number(key) : key));
    if (op === 'test' && at(result, ...keys) !== value) return undefined;
    if (op !== 'remove') continue;
    const parent = at(result, ...keys.slice(0, -1));
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

export function pathOf(of: ResourceType, name: string): string {
  return objectPath(of, DEMO, name);
}

export function pathOfAll(of: ResourceType): string {
  return collectionPath(of, DEMO);
}
