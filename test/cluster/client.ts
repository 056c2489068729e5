import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, type Dispatcher, request } from 'undici';
import { isObject, type Json, type JsonObject, stringAt } from '../../src/base/json.ts';
import { type Connection, readKubeconfig } from './kubeconfig.ts';
import { type WaitOptions, waitUntil } from './wait-until.ts';

/** Enough to find an object: what `kubectl get` is told. */
export interface Ref {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name: string;
}

export interface Metadata extends JsonObject {
  name: string;
  namespace?: string;
}

export interface KubeObject extends JsonObject {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
}

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** Parsed when it is JSON. */
  body: Json;
  text: string;
}

export interface CallOptions {
  /** Name in `managedFields`; unless given, that of `kubectl create`. */
  fieldManager?: string;
  subresource?: 'status' | 'scale' | 'finalize' | 'binding' | 'token';
  dryRun?: boolean;
}

export interface DeleteOptions {
  gracePeriodSeconds?: number;
  propagationPolicy?: 'Foreground' | 'Background' | 'Orphan';
  uid?: string;
}

export class ApiError extends Error {
  readonly status: number;
  constructor(what: string, answer: Answer) {
    super(`${what}: ${answer.status} ${stringAt(answer.body, 'message') ?? answer.text}`);
    this.name = 'ApiError';
    this.status = answer.status;
  }
}

/**
 * A small client of its own for building situations and for looking at them. It shares nothing with
 * the gate's transport, so that the tests have a second opinion.
 */
export class Client {
  readonly connection: Connection;
  readonly #dispatcher: Dispatcher;
  readonly #kinds = new Map<string, Map<string, { plural: string; namespaced: boolean }>>();

  constructor(connection: Connection) {
    this.connection = connection;
    this.#dispatcher = new Agent({
      connections: 32,
      connect: {
        ...(connection.ca === undefined ? {} : { ca: connection.ca }),
        ...connection.clientCert,
      },
    });
  }

  static fromKubeconfig(path: string): Client {
    return new Client(readKubeconfig(path));
  }

  /** The same server as somebody else. */
  as(token: string): Client {
    const { server, ca } = this.connection;
    return new Client({ server, ca, token });
  }

  close(): Promise<void> {
    return this.#dispatcher.destroy();
  }

  /** Any request; every HTTP status is an answer, only a broken connection throws. */
  async call(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: Json,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const { server, token } = this.connection;
    const response = await request(new URL(path, server), {
      dispatcher: this.#dispatcher,
      method,
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.body.text();
    return { status: response.statusCode, headers: response.headers, body: parse(text), text };
  }

  /** Undefined when it does not exist; any other refusal throws. */
  async find(ref: Ref): Promise<KubeObject | undefined> {
    const path = await this.pathOf(ref).catch((error: unknown) => {
      if (error instanceof UnknownKind) return undefined;
      throw error;
    });
    if (path === undefined) return undefined;
    const answer = await this.call('GET', path);
    return answer.status === 404 ? undefined : objectOf(`get ${describe(ref)}`, answer);
  }

  async get(ref: Ref): Promise<KubeObject> {
    return objectOf(`get ${describe(ref)}`, await this.call('GET', await this.pathOf(ref)));
  }

  async list(apiVersion: string, kind: string, namespace?: string): Promise<KubeObject[]> {
    const path = await this.collectionPath(apiVersion, kind, namespace);
    return itemsOf(`list ${kind}`, await this.call('GET', path));
  }

  async create<T extends JsonObject>(object: T, options: CallOptions = {}): Promise<KubeObject> {
    const wanted = asKubeObject(object);
    const { apiVersion, kind, metadata } = wanted;
    const path = await this.collectionPath(apiVersion, kind, metadata.namespace);
    const answer = await this.call('POST', path + query(options), wanted);
    return objectOf(`create ${describe(refOf(wanted))}`, answer);
  }

  /** Server-side apply: creates it or makes these fields so. */
  async apply<T extends JsonObject>(object: T, options: CallOptions = {}): Promise<KubeObject> {
    const wanted = asKubeObject(object);
    const path = `${await this.pathOf(refOf(wanted), options.subresource)}${query(options)}&force=true`;
    const answer = await this.call('PATCH', path, wanted, {
      'content-type': 'application/apply-patch+yaml',
    });
    return objectOf(`apply ${describe(refOf(wanted))}`, answer);
  }

  async patch(ref: Ref, patch: JsonObject, options: CallOptions = {}): Promise<KubeObject> {
    const path = (await this.pathOf(ref, options.subresource)) + query(options);
    const answer = await this.call('PATCH', path, patch, {
      'content-type': 'application/merge-patch+json',
    });
    return objectOf(`patch ${describe(ref)}`, answer);
  }

  patchStatus(ref: Ref, status: JsonObject, options: CallOptions = {}): Promise<KubeObject> {
    return this.patch(ref, { status }, { ...options, subresource: 'status' });
  }

  /** Asks for the deletion; fine when it is not there. */
  async delete(ref: Ref, { uid, ...options }: DeleteOptions = {}): Promise<void> {
    const answer = await this.call('DELETE', await this.pathOf(ref), {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      ...options,
      ...(uid === undefined ? {} : { preconditions: { uid } }),
    });
    if (answer.status !== 404) mustSucceed(`delete ${describe(ref)}`, answer);
  }

  /** A token of a ServiceAccount; `more`: of the request's spec. */
  async tokenOf(namespace: string, name: string, more: JsonObject = {}): Promise<string> {
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', namespace, name };
    const answer = await this.call('POST', await this.pathOf(account, 'token'), {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 7_200, ...more },
    });
    const token = stringAt(answer.body, 'status', 'token');
    if (token === undefined) throw new ApiError(`token of ${namespace}/${name}`, answer);
    return token;
  }

  /** Reads the object until the predicate holds for it (`undefined`: it does not exist). */
  async waitFor<T>(
    ref: Ref,
    what: string,
    predicate: (object: KubeObject | undefined) => T | undefined | false,
    options: WaitOptions = {},
  ): Promise<T> {
    let last: KubeObject | undefined;
    return waitUntil(
      () => `${describe(ref)} ${what}; last seen: ${JSON.stringify(last?.['status'] ?? last)}`,
      async () => {
        last = await this.find(ref);
        return predicate(last);
      },
      options,
    );
  }

  /** Path of an object, its plural looked up in the server's discovery. */
  async pathOf(ref: Ref, subresource?: string): Promise<string> {
    const collection = await this.collectionPath(ref.apiVersion, ref.kind, ref.namespace);
    return `${collection}/${encodeURIComponent(ref.name)}${subresource ? `/${subresource}` : ''}`;
  }

  async collectionPath(apiVersion: string, kind: string, namespace?: string): Promise<string> {
    const { plural, namespaced } = await this.#resource(apiVersion, kind);
    const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const within = namespaced && namespace !== undefined ? `/namespaces/${namespace}` : '';
    return `${base}${within}/${plural}`;
  }

  async #resource(
    apiVersion: string,
    kind: string,
  ): Promise<{ plural: string; namespaced: boolean }> {
    const known = this.#kinds.get(apiVersion)?.get(kind);
    if (known) return known;
    const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const answer = await this.call('GET', base);
    const kinds = new Map<string, { plural: string; namespaced: boolean }>();
    for (const entry of isObject(answer.body) ? listAt(answer.body, 'resources') : []) {
      const plural = stringAt(entry, 'name') ?? '';
      if (plural.includes('/')) continue;
      kinds.set(stringAt(entry, 'kind') ?? '', {
        plural,
        namespaced: entry['namespaced'] === true,
      });
    }
    this.#kinds.set(apiVersion, kinds);
    const found = kinds.get(kind);
    if (!found) throw new UnknownKind(`the server does not serve ${kind} in ${apiVersion}`);
    return found;
  }
}

/** The type is not served (any more, or yet): its objects cannot be looked for. */
export class UnknownKind extends Error {}

export function refOf(object: KubeObject): Ref {
  const { namespace, name } = object.metadata;
  const { apiVersion, kind } = object;
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

/** Differs if one of the objects was changed. */
export function versionsOf(objects: readonly KubeObject[]): string {
  return objects.map(({ metadata }) => stringAt(metadata, 'resourceVersion')).join();
}

export function describe({ kind, namespace, name }: Ref): string {
  return [kind, namespace, name].filter((part) => part !== undefined).join('/');
}

/** API servers that just started refuse connections for a moment; an answer of any kind is enough. */
export async function waitForServer(client: Client, isAlive: () => boolean): Promise<boolean> {
  for (const deadline = Date.now() + 180_000; isAlive() && Date.now() < deadline; await sleep(50)) {
    const answer = await client.call('GET', '/readyz').catch(() => undefined);
    if (answer?.status === 200) return true;
  }
  return false;
}

function asKubeObject(object: JsonObject): KubeObject {
  const metadata = object['metadata'];
  const apiVersion = stringAt(object, 'apiVersion');
  const kind = stringAt(object, 'kind');
  if (apiVersion === undefined || kind === undefined || !isObject(metadata)) {
    throw new Error(`not a Kubernetes object: ${JSON.stringify(object).slice(0, 200)}`);
  }
  return { ...object, apiVersion, kind, metadata: { name: '', ...metadata } };
}

function objectOf(what: string, answer: Answer): KubeObject {
  mustSucceed(what, answer);
  if (!isObject(answer.body)) throw new ApiError(what, answer);
  return asKubeObject(answer.body);
}

function itemsOf(what: string, answer: Answer): KubeObject[] {
  mustSucceed(what, answer);
  const list = isObject(answer.body) ? answer.body : {};
  const apiVersion = stringAt(list, 'apiVersion') ?? '';
  const kind = (stringAt(list, 'kind') ?? '').replace(/List$/, '');
  // Items of a list carry neither apiVersion nor kind.
  return listAt(list, 'items').map((item) => asKubeObject({ apiVersion, kind, ...item }));
}

function mustSucceed(what: string, answer: Answer): void {
  if (answer.status >= 300) throw new ApiError(what, answer);
}

function listAt(object: JsonObject, key: string): JsonObject[] {
  const list = object[key];
  return Array.isArray(list) ? list.filter(isObject) : [];
}

function query({ fieldManager = 'kubectl-create', dryRun }: CallOptions): string {
  const manager = encodeURIComponent(fieldManager);
  return `?fieldManager=${manager}${dryRun ? '&dryRun=All' : ''}`;
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
