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
  ListOptions,
  ListResult,
  Mutation,
} from '../../src/kubernetes/api.ts';
import { namespacePath } from '../../src/kubernetes/paths.ts';
import { type Read, type ReadFailure, readFailed, readOk } from '../../src/model/read.ts';
import type { FakeClock } from './fake-clock.ts';
import { CONFLICT, FakeCluster, NOT_FOUND } from './fake-cluster.ts';

/**
 * The API server in memory with the rules that forcing depends on: JSON Patch with `test`, preconditions,
 * /finalize, objects that outlive their namespace, and a namespace controller that can be let work.
 */
export class ForceCluster extends FakeCluster {
  /** What really was written, in order: "PATCH /api/v1/… 422". */
  readonly writes: string[] = [];
  readonly bodies: Json[] = [];
  /** How long the server takes for a write, in virtual time. */
  slownessMs = 0;
  /** Runs right before a write is carried out: the moment for everything that can go wrong. */
  onWrite: (request: Mutation, count: number) => void = () => undefined;
  /** Runs right after it: an owner that puts things back. */
  afterWrite: (request: Mutation) => void = () => undefined;
  readonly #time: FakeClock;

  constructor(clock: FakeClock) {
    super(clock);
    this.#time = clock;
  }

  override async list<T>(
    path: string,
    begin: () => Fold<T>,
    options: ListOptions = {},
  ): Promise<Read<ListResult<T>>> {
    const [, name] = /^metadata\.name=(.*)$/.exec(options.fieldSelector ?? '') ?? [];
    const selecting = (): Fold<T> => {
      const fold = begin();
      const add = (item: JsonObject): void => {
        if (name === undefined || stringAt(item, 'metadata', 'name') === name) fold.add(item);
      };
      return { add, kept: fold.kept };
    };
    return super.list(path, selecting, options);
  }

  override async send(request: Mutation, options: CallOptions = {}): Promise<Read<JsonObject>> {
    if (request.path.endsWith('/selfsubjectaccessreviews')) {
      return readOk({ status: { allowed: true } });
    }
    if (request.dryRun === true || request.method === 'POST') return super.send(request, options);
    const line = `${request.method} ${request.path}`;
    this.onWrite(request, this.writes.length);
    if (this.slownessMs > 0) await this.#time.sleep(this.slownessMs, options.signal);
    if (options.signal?.aborted) {
      this.writes.push(`${line} aborted`);
      return readFailed({ kind: 'aborted', message: 'stopped before the answer came' });
    }
    const given = [...this.answers].find(([start]) => line.startsWith(start))?.[1];
    if (given !== undefined && typeof given !== 'function') {
      this.writes.push(`${line} ${given.ok ? '' : given.failure.status}`.trim());
      return given;
    }
    const answer = await this.#carryOut(request);
    this.writes.push(answer.ok ? line : `${line} ${answer.failure.status}`);
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
      const metadata = { ...(object['metadata'] as JsonObject) };
      metadata['deletionTimestamp'] ??= new Date(this.#time.now()).toISOString();
      if (this.#save(key, { ...object, metadata })) left--;
    }
    const spec = arrayAt(namespace, 'spec', 'finalizers').filter((entry) => entry !== 'kubernetes');
    if (left === 0) this.#save(path, { ...(namespace as JsonObject), spec: { finalizers: spec } });
  }

  async #carryOut(request: Mutation): Promise<Read<JsonObject>> {
    const path = request.path.replace(/\/finalize$/, '');
    const current = this.peek(path);
    if (current === undefined) return readFailed(NOT_FOUND);
    const [, place] = /\/namespaces\/([^/]+)\//.exec(path) ?? [];
    // Lifecycle admission: only DELETE passes for objects of a namespace that is not there.
    const isStranded = place !== undefined && this.peek(namespacePath(place)) === undefined;
    if (isStranded && request.method !== 'DELETE') return readFailed(NOT_FOUND);
    if (request.method === 'PATCH') {
      const patched = jsonPatch(current, request.body as JsonObject[]);
      if (patched === undefined) return readFailed(TEST_FAILED);
      this.#save(path, patched);
      return readOk(patched);
    }
    const body = request.body as JsonObject;
    const pins =
      request.method === 'PUT' ? valueAt(body, 'metadata') : valueAt(body, 'preconditions');
    for (const key of ['uid', 'resourceVersion']) {
      const pinned = stringAt(pins, key);
      if (pinned !== undefined && pinned !== stringAt(current, 'metadata', key)) {
        return readFailed(CONFLICT);
      }
    }
    const next = request.method === 'PUT' ? { ...body, status: current['status'] ?? {} } : current;
    this.#save(path, next);
    return readOk(next);
  }

  /** Saves the object, or removes it if it is terminating without finalizers; returns whether it did. */
  #save(path: string, object: JsonObject): boolean {
    const asked = stringAt(object, 'metadata', 'deletionTimestamp') !== undefined;
    const held = ['metadata', 'spec'].flatMap((part) => arrayAt(object, part, 'finalizers'));
    if (!asked || held.length > 0) {
      this.put(path, object);
      return false;
    }
    this.drop(path);
    return true;
  }
}

const TEST_FAILED: ReadFailure = {
  kind: 'invalid',
  status: 422,
  message: '422 Invalid: the server rejected our request due to an error in our request',
};

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
