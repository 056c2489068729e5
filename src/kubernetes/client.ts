import { type JsonObject, stringAt } from '../base/json.ts';
import { Throttle } from '../base/throttle.ts';
import type { Clock } from '../base/time.ts';
import { failed, type Read } from '../model/read.ts';
import type {
  CallOptions,
  ClusterTarget,
  Discovery,
  KubernetesApi,
  ListEnd,
  ListOptions,
  Mutation,
  WatchEnd,
  WatchOptions,
} from './api.ts';
import type { Connection, HttpRequest } from './connection.ts';
import { discoverTypes } from './discovery.ts';
import { MAX_REQUESTS } from './dispatchers.ts';
import type { Exchange } from './exchange.ts';
import { listPages, PLAIN_JSON } from './list.ts';
import { objectNameIn, withQuery } from './paths.ts';
import { ABORTED, type Attempt, withRetries } from './retry.ts';
import { readEvents, watchPath } from './watch.ts';

const TIMEOUT_MS = 15_000;
const RETRIES = 3;
const THROTTLED_RETRIES = 8;

export interface ClientParts {
  target: ClusterTarget;
  connection: Connection;
  exchange: Exchange;
  clock: Clock;
  random: () => number;
}

/** The API as the gate uses it, over one connection to one cluster. */
export class Client implements KubernetesApi {
  readonly target: ClusterTarget;
  private readonly parts: ClientParts;
  private readonly throttle = new Throttle(MAX_REQUESTS);

  constructor(parts: ClientParts) {
    this.target = parts.target;
    this.parts = parts;
  }

  clockOffsetMs(): number {
    return this.parts.connection.clockOffsetMs;
  }

  async get(path: string, options: CallOptions = {}): Promise<Read<JsonObject>> {
    const answer = await this.getJson(path, PLAIN_JSON, options);
    if (!answer.ok || isWhatWasAsked(answer.value, path)) return answer;
    return failed({
      kind: 'unreadable',
      message: `the server at ${this.target.server} did not answer with the object that ${path} names`,
    });
  }

  list(path: string, options: ListOptions): Promise<Read<ListEnd>> {
    return listPages(path, options, (page, accept) => this.getJson(page, accept, options));
  }

  async watch(path: string, options: WatchOptions): Promise<Read<WatchEnd>> {
    options.onRequest?.();
    const opened = await this.parts.exchange.open(
      { method: 'GET', path: watchPath(path, options), accept: PLAIN_JSON, isWatch: true },
      limits(options),
    );
    if (!opened.ok) {
      return opened.failure.status === 410
        ? { ok: true, value: 'expired' }
        : failed(opened.failure);
    }
    return readEvents(opened.value.body, options);
  }

  discover(options: CallOptions = {}): Promise<Read<Discovery>> {
    return discoverTypes((path, accept) => this.getJson(path, accept, options));
  }

  async send(request: Mutation, options: CallOptions = {}): Promise<Read<JsonObject>> {
    const { method, path, dryRun } = request;
    const body = bodyOf(request);
    const patchType = request.contentType ?? 'application/json-patch+json';
    const result = await this.inTurn(
      {
        method,
        path: withQuery(path, { dryRun: dryRun === true ? 'All' : undefined }),
        accept: PLAIN_JSON,
        ...(body === undefined
          ? {}
          : {
              body: JSON.stringify(body),
              contentType: method === 'PATCH' ? patchType : 'application/json',
            }),
      },
      options,
    );
    return result.ok ? result : failed(result.failure);
  }

  close(): Promise<void> {
    return this.parts.connection.close();
  }

  private getJson(path: string, accept: string, options: CallOptions): Promise<Read<JsonObject>> {
    const { clock, random } = this.parts;
    return withRetries(() => this.inTurn({ method: 'GET', path, accept }, options), {
      retries: options.retries ?? RETRIES,
      throttledRetries: options.retries ?? THROTTLED_RETRIES,
      signal: options.signal,
      clock,
      random,
    });
  }

  /** Between two tries nobody's turn is taken. */
  private inTurn(request: HttpRequest, options: CallOptions): Promise<Attempt<JsonObject>> {
    const { signal } = options;
    return this.throttle
      .run(
        () => {
          options.onRequest?.();
          return this.parts.exchange.json(request, limits(options));
        },
        (result) => !result.ok && result.isThrottled === true,
        signal,
      )
      .catch((error: unknown) => {
        if (signal?.aborted) return { ok: false, failure: ABORTED, isTransient: false };
        throw error;
      });
  }
}

function limits(options: CallOptions): { signal: AbortSignal | undefined; timeoutMs: number } {
  return { signal: options.signal, timeoutMs: options.timeoutMs ?? TIMEOUT_MS };
}

/**
 * JSON alone proves nothing: portals and gateways speak it too, and a namespace without its UID would
 * look like a new one.
 */
function isWhatWasAsked(answer: JsonObject, path: string): boolean {
  if (!/^\/apis?\//.test(path)) return true;
  if (stringAt(answer, 'kind') === undefined || stringAt(answer, 'apiVersion') === undefined) {
    return false;
  }
  const name = objectNameIn(path);
  return name === undefined || stringAt(answer, 'metadata', 'name') === name;
}

/** A DELETE with a body ignores `?dryRun=All` (apiserver, handlers/delete.go): there it goes inside. */
function bodyOf({ method, body, dryRun }: Mutation): Mutation['body'] {
  if (method !== 'DELETE' || dryRun !== true || Array.isArray(body)) return body;
  return { apiVersion: 'v1', kind: 'DeleteOptions', ...body, dryRun: ['All'] };
}
