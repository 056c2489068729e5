import { type JsonObject, stringAt } from '../base/json.ts';
import type { Redactor } from '../base/redact.ts';
import { type Clock, systemClock } from '../base/time.ts';
import { failed, type Read, read } from '../model/read.ts';
import type { CallOptions, ClusterTarget, KubernetesApi, Mutation } from './api.ts';
import { announcer, keepCredentials } from './credentials.ts';
import { discoverTypes } from './discovery.ts';
import { findAccess, ownNamespace, type Search } from './kubeconfig.ts';
import { listPages, PLAIN_JSON, readEvents, watchPath } from './list-and-watch.ts';
import { objectNameIn, withQuery } from './paths.ts';
import { chooseProxy } from './proxy.ts';
import { type Attempt, STOPPED, Throttle, withRetries } from './retry.ts';
import {
  type HttpRequest,
  type Limits,
  MAX_REQUESTS,
  openTransport,
  type Transport,
} from './transport.ts';

export interface ConnectOptions extends Search {
  redactor: Redactor;
  /** Hears every secret value, for the runner's masking. */
  onSecret?: (value: string) => void;
  debug?: (line: string) => void;
  userAgent: string;
  /** Ends a credential plugin that runs while we connect. */
  signal?: AbortSignal;

  /** For tests. */
  clock?: Clock;
  random?: () => number;
  pluginTimeoutMs?: number;
}

const PLUGIN_TIMEOUT_MS = 30_000;

/**
 * Chooses cluster and user and gets the first credentials; nothing is sent to the cluster yet. Throws
 * an `ActionError` that says what was looked at.
 */
export async function connect(options: ConnectOptions): Promise<KubernetesApi> {
  const { signal, redactor, userAgent, clock = systemClock, debug = () => undefined } = options;
  const { env, random = Math.random, pluginTimeoutMs = PLUGIN_TIMEOUT_MS } = options;
  const announce = announcer(redactor, options.onSecret);
  const access = findAccess(options);
  const session = { access, env, clock, redactor, announce, debug, userAgent, pluginTimeoutMs };
  const credentials = keepCredentials(session);
  const { server, cluster } = access;
  const proxy = chooseProxy(server, stringAt(cluster.fields, 'proxy-url'), env);
  announce(decodeURIComponent(proxy?.password ?? ''));
  const transport = openTransport(session, credentials, proxy);

  const stop = (): void => credentials.close();
  signal?.addEventListener('abort', stop, { once: true });
  const login = await transport.prepare().finally(() => signal?.removeEventListener('abort', stop));
  const target = {
    server,
    context: access.context,
    ownNamespace: ownNamespace(server, login.ca, options),
  };
  return clientOf(target, transport, clock, random);
}

const TIMEOUT_MS = 15_000;
const RETRIES = 3;
const THROTTLED_RETRIES = 8;

/** The API as the gate uses it, over one transport; `random` (0 to 1) is for the jitter of retries. */
function clientOf(
  target: ClusterTarget,
  transport: Transport,
  clock: Clock,
  random: () => number,
): KubernetesApi {
  const throttle = new Throttle(MAX_REQUESTS);

  /** Between two tries nobody's turn is taken. */
  const inTurn = (request: HttpRequest, options: CallOptions): Promise<Attempt<JsonObject>> => {
    const { signal } = options;
    const ask = (): Promise<Attempt<JsonObject>> => {
      options.onRequest?.();
      return transport.json(request, limits(options));
    };
    const wasThrottled = (result: Attempt<JsonObject>) => !result.ok && result.isThrottled === true;
    return throttle.run(ask, wasThrottled, signal).catch((error: unknown) => {
      if (signal?.aborted) return STOPPED;
      throw error;
    });
  };
  const getJson = (path: string, accept: string, options: CallOptions): Promise<Read<JsonObject>> =>
    withRetries(() => inTurn({ method: 'GET', path, accept }, options), {
      retries: options.retries ?? RETRIES,
      throttledRetries: options.retries ?? THROTTLED_RETRIES,
      signal: options.signal,
      clock,
      random,
    });

  return {
    target,
    clockOffsetMs: transport.clockOffsetMs,
    async get(path, options = {}) {
      const answer = await getJson(path, PLAIN_JSON, options);
      if (!answer.ok || isWhatWasAsked(answer.value, path)) return answer;
      const message = `the server at ${target.server} did not answer with the object that ${path} names`;
      return failed({ kind: 'unreadable', message });
    },
    list: (path, options) =>
      listPages(path, options, (page, accept) => getJson(page, accept, options)),
    async watch(path, options) {
      options.onRequest?.();
      const request = {
        method: 'GET',
        path: watchPath(path, options),
        accept: PLAIN_JSON,
      } as const;
      const opened = await transport.open(request, limits(options));
      if (opened.ok) return readEvents(opened.value, options);
      return opened.failure.status === 410 ? read('expired') : failed(opened.failure);
    },
    discover: (options = {}) => discoverTypes((path, accept) => getJson(path, accept, options)),
    async send(mutation, options = {}) {
      const { method, path, dryRun } = mutation;
      const asked = withQuery(path, { dryRun: dryRun === true ? 'All' : undefined });
      const request = { method, path: asked, accept: PLAIN_JSON, body: bodyOf(mutation) };
      const result = await inTurn(request, options);
      return result.ok ? result : failed(result.failure);
    },
    close: transport.close,
  };
}

function limits(options: CallOptions): Limits {
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
