import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { ActionError } from '../base/errors.ts';
import { type JsonObject, parseObject, stringAt } from '../base/json.ts';
import { unlessAborted } from '../base/time.ts';
import { type Read, readFailed, readOk } from '../model/read.ts';
import type { CallOptions, KubernetesApi, Mutation } from './api.ts';
import { createDispatcher, type Session, type TlsOptions } from './connections.ts';
import { discoverTypes } from './discovery.ts';
import { type Exchanged, exchange, TOO_LATE } from './exchange.ts';
import {
  type Answer,
  contentTypeOf,
  headerOf,
  MAX_BODY_MIB,
  networkFailure,
  refusedAnswer,
  shortLine,
  unreadable,
  unreadableAnswer,
} from './failures.ts';
import { listPages, PLAIN_JSON, readEvents, watchPath } from './list-and-watch.ts';
import type { Credentials, Login } from './login.ts';
import { objectNameIn, withQuery } from './paths.ts';
import { STOPPED_REQUEST, Throttle, type Try, withRetries } from './retry.ts';

/** Of requests and of connections: a request never waits for a connection, because its time limit would already run. */
const MAX_REQUESTS = 8;
const TIMEOUT_MS = 15_000;

interface Call<T> {
  method: 'GET' | Mutation['method'];
  path: string;
  accept: string;
  body?: Mutation['body'];
  /** Its answer lasts for minutes, so it takes no place. */
  isWatch?: true;
  options: CallOptions & { maxBytes?: number };
  readBody: (got: Exchanged, answer: Answer) => Try<T>;
}

export function openHttp(
  session: Session,
  credentials: Credentials,
  proxy: URL | undefined,
): Omit<KubernetesApi, 'target'> {
  const { access, clock, redactor, debug, closing } = session;
  const server = new URL(access.server);
  const via = proxy === undefined ? '' : ` (through the proxy ${proxy.protocol}//${proxy.host})`;
  const throttle = new Throttle(MAX_REQUESTS);
  const dispatchers = new Map<TlsOptions, { calls: Dispatcher; watches: Dispatcher }>();
  let clockOffsetMs = 0;
  debug(`context ${access.context} from ${access.source}: ${access.server}${via}`);

  /** Requests on the connections of an earlier login may still run; `close` ends them. */
  const dispatcherFor = ({ tls }: Login, isWatch = false): Dispatcher => {
    // Each watch occupies a connection: eight of them would leave none for other calls.
    const made = dispatchers.get(tls) ?? {
      calls: createDispatcher(tls, proxy, closing.signal, MAX_REQUESTS),
      watches: createDispatcher(tls, proxy, closing.signal),
    };
    dispatchers.set(tls, made);
    return isWatch ? made.watches : made.calls;
  };

  const send = async <T>(call: Call<T>, login: Login): Promise<Try<T>> => {
    const { method, path, accept, body, isWatch, options, readBody } = call;
    const { timeoutMs = TIMEOUT_MS, maxBytes: mostBytes = MAX_BODY_MIB * 2 ** 20 } = options;
    const onHead = (headers: Answer['headers']): void => {
      const serverNow = Date.parse(headerOf({ headers }, 'date') ?? '');
      if (!Number.isNaN(serverNow)) clockOffsetMs = serverNow - clock.now();
    };
    const type = method === 'PATCH' ? 'application/json-patch+json' : 'application/json';
    try {
      const request = {
        origin: server.origin,
        path: server.pathname.replace(/\/$/, '') + path,
        method,
        headers: {
          ...{ ...login.headers, 'user-agent': session.userAgent, accept },
          ...(isWatch ? {} : { 'accept-encoding': 'gzip' }),
          ...(body === undefined ? {} : { 'content-type': type }),
        },
        body: body === undefined ? null : JSON.stringify(body),
      };
      const dispatcher = dispatcherFor(login, isWatch);
      const limits = { ...options, timeoutMs, mostBytes, isStream: isWatch === true, onHead };
      const got = await exchange(dispatcher, request, limits);
      const { status, headers } = got;
      const answer = { server: access.server, path, status, headers };
      if (status >= 200 && status < 300) return readBody(got, answer);
      return refusedAnswer(answer, got.text);
    } catch (error) {
      if (error !== TOO_LATE) throw error;
      return readFailed({ kind: 'timeout', message: `no answer within ${timeoutMs / 1_000} s` });
    }
  };

  /** After a 401, once more with other credentials. */
  const sendAs = async <T>(call: Call<T>): Promise<Try<T>> => {
    const { signal } = call.options;
    try {
      const login = await unlessAborted(credentials.current(), signal);
      const result = await send(call, login);
      if (result.ok || result.failure.status !== 401) return result;
      const other = await unlessAborted(credentials.replaceRejected(login), signal);
      return other === undefined ? result : await send(call, other);
    } catch (error) {
      if (signal?.aborted || closing.signal.aborted) return STOPPED_REQUEST;
      // The plugin or the token file failed: no request was sent, and none could be authenticated.
      if (error instanceof ActionError)
        return readFailed({ kind: 'unauthorized', message: error.message });
      const failure = networkFailure(error);
      return readFailed({ ...failure, message: failure.message + via });
    }
  };

  const attempt = async <T>(call: Call<T>): Promise<Try<T>> => {
    const result = await sendAs(call);
    // Redaction comes before the cut: half a secret is not recognized any more.
    const message = result.ok ? 'ok' : shortLine(redactor.redact(result.failure.message));
    debug(`${call.method} ${call.path.split('?')[0]}: ${message}`);
    if (result.ok) return result;
    const { again, ...failure } = result.failure;
    // The effect of a mutation without an answer is unknown: it is repeated only if the server refused to process it.
    const mayRepeat = call.method === 'GET' || again === 'busy';
    return readFailed({ ...failure, message, again: mayRepeat ? again : undefined });
  };

  const run = <T>(call: Call<T>): Promise<Read<T>> => {
    const { isWatch, options } = call;
    const once = (): Promise<Try<T>> => attempt(call);
    return withRetries(isWatch ? once : () => throttle.run(once, options.signal), options, session);
  };

  const readBody: Call<JsonObject>['readBody'] = ({ text }, answer) => {
    const value = parseObject(text);
    return value === undefined ? unreadableAnswer(answer) : readOk(value);
  };
  const read = (path: string, accept: string, options: CallOptions): Promise<Read<JsonObject>> =>
    run({ method: 'GET', path, accept, options, readBody });

  return {
    async get(path, options = {}) {
      const answer = await read(path, PLAIN_JSON, options);
      if (!answer.ok || isRequestedObject(answer.value, path)) return answer;
      return unreadable(
        `the server at ${access.server} did not answer with the object that ${path} names`,
      );
    },
    list: (path, begin, options = {}) =>
      listPages(path, begin, options, (page, accept) => read(page, accept, options)),
    discover: (options = {}) => discoverTypes((path, accept) => read(path, accept, options)),
    send({ method, path, body, dryRun }, options = {}) {
      // A DELETE with a body ignores `?dryRun=All` (apiserver, handlers/delete.go).
      const isInBody = method === 'DELETE' && dryRun === true;
      return run({
        ...{ method, accept: PLAIN_JSON, options, readBody },
        path: withQuery(path, { dryRun: dryRun === true ? 'All' : undefined }),
        body: isInBody ? { ...body, dryRun: ['All'] } : body,
      });
    },
    // A secret that is cut later is not recognized any more.
    text: (path, options) =>
      run<string>({
        ...{ method: 'GET', path, accept: '*/*', options: { ...options, retries: 0 } },
        readBody: ({ text }, answer) => {
          const isText = ['text/plain', ''].includes(contentTypeOf(answer));
          return isText ? readOk(redactor.redact(text)) : unreadableAnswer(answer);
        },
      }),
    async watch(path, options) {
      const opened = await run<Readable>({
        ...{ method: 'GET', path: watchPath(path, options), accept: PLAIN_JSON, isWatch: true },
        options: { ...options, retries: 0 },
        readBody: ({ stream }, answer) => {
          if (contentTypeOf(answer) === 'application/json' && stream) return readOk(stream);
          stream?.destroy();
          return unreadableAnswer(answer);
        },
      });
      return opened.ok ? readEvents(opened.value, options) : opened;
    },
    clockOffsetMs: () => clockOffsetMs,
    async close() {
      closing.abort();
      const all = [...dispatchers.values()].flatMap((each) => Object.values(each));
      await Promise.all(all.map((dispatcher) => dispatcher.destroy()));
    },
  };
}

/** JSON alone is no proof: portals and gateways send it too, and a namespace without UID would look like a new one. */
function isRequestedObject(answer: JsonObject, path: string): boolean {
  const [, version] = /^\/apis?\/(v\d+\w*|[^/]+\/[^/]+)/.exec(path) ?? [];
  if (version === undefined) return true;
  const isVersion = stringAt(answer, 'apiVersion') === version;
  return isVersion && stringAt(answer, 'metadata', 'name') === objectNameIn(path);
}
