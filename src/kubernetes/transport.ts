import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { ActionError, describeError } from '../base/errors.ts';
import { at, type JsonObject, parseObject, stringAt } from '../base/json.ts';
import type { ReadFailure } from '../model/read.ts';
import type { Mutation } from './api.ts';
import { createDispatcher, type TlsOptions, tlsOptions } from './connections.ts';
import type { Credentials, Login } from './credentials.ts';
import {
  type Asked,
  type BadAnswer,
  clause,
  contentTypeOf,
  headerOf,
  networkFailure,
  refusal,
  unreadable,
} from './failures.ts';
import { type Access, configError, type Session } from './kubeconfig.ts';
import { type Attempt, type Failed, STOPPED } from './retry.ts';

/**
 * And connections: none waits for one, where its time limit would run already. More at once would only
 * queue in the API server's priority and fairness.
 */
export const MAX_REQUESTS = 8;
/** A page of 500 objects with managedFields is a few MB; 500 of the largest objects etcd takes are not. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
const MAX_ERROR_BYTES = 1024 * 1024;

export interface HttpRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With query, without the server and its prefix. */
  path: string;
  accept: string;
  body?: Mutation['body'];
}

export interface Limits {
  signal: AbortSignal | undefined;
  /** Of one answer; a login is not the server's time. */
  timeoutMs: number;
}

/** Requests and answers, as values: every way to fail gets its kind and its sentence here. */
export interface Transport {
  /** The first login; throws an `ActionError` when there is none, or its certificates are of no use. */
  prepare(): Promise<Login>;
  /** The whole answer. */
  json(request: HttpRequest, limits: Limits): Promise<Attempt<JsonObject>>;
  /** The body of a watch, still to come; the time limit ends with the headers. */
  open(request: HttpRequest, limits: Limits): Promise<Attempt<Readable>>;
  clockOffsetMs(): number;
  close(): Promise<void>;
}

interface Answer {
  status: number;
  headers: BadAnswer['headers'];
  /** Unread; whoever gets the answer has to read or destroy it. */
  body: Readable;
}

/** What one login needs; made again when it changes. */
interface Prepared {
  login: Login;
  /** Apart, because a watch keeps its connection: eight would leave none for the other calls. */
  calls: Dispatcher;
  watches: Dispatcher;
}

export function openTransport(
  session: Session,
  credentials: Credentials,
  proxy: URL | undefined,
): Transport {
  const { access, clock, redactor, userAgent } = session;
  const server = new URL(access.server);
  const prefix = server.pathname.replace(/\/$/, '');
  const via = proxy === undefined ? '' : ` (through the proxy ${proxy.protocol}//${proxy.host})`;
  const closing = new AbortController();
  const dispatchers: Dispatcher[] = [];
  let prepared: Prepared | undefined;
  let clockOffsetMs = 0;
  const debug = (line: string): void => session.debug(redactor.redact(line));

  const current = async (): Promise<Prepared> => {
    const login = await credentials.current();
    if (prepared?.login === login) return prepared;
    if (prepared !== undefined && isSameTls(prepared.login, login)) {
      prepared = { ...prepared, login };
      return prepared;
    }
    // Requests on the old connections may still run; `close` ends what is left of them.
    const options = { tls: tlsOf(login, access), proxy, ca: login.ca, closing: closing.signal };
    const calls = createDispatcher({ ...options, connections: MAX_REQUESTS });
    const watches = createDispatcher(options);
    dispatchers.push(calls, watches);
    prepared = { login, calls, watches };
    return prepared;
  };

  const send = async (
    { method, path, accept, body }: HttpRequest,
    { login, ...by }: Prepared,
    kind: 'calls' | 'watches',
    signal: AbortSignal,
  ): Promise<Answer> => {
    const type = method === 'PATCH' ? 'application/json-patch+json' : 'application/json';
    // Not fetch: it follows redirects and joins repeated headers, which changes impersonated groups.
    const sent = by[kind].request({
      origin: server.origin,
      path: prefix + path,
      method,
      headers: {
        ...login.headers,
        'user-agent': userAgent,
        accept,
        ...(kind === 'watches' ? {} : { 'accept-encoding': 'gzip' }),
        ...(body === undefined ? {} : { 'content-type': type }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
    });
    // undici looks at the signal only once there is a connection, which can take 10 s to fail.
    const answer = await unlessAborted(sent, signal);
    const serverNow = Date.parse(headerOf(answer, 'date') ?? '');
    if (!Number.isNaN(serverNow)) clockOffsetMs = serverNow - clock.now();
    return { status: answer.statusCode, headers: answer.headers, body: answer.body };
  };

  const broken = (error: unknown, { signal }: Limits): Failed => {
    if (signal?.aborted || closing.signal.aborted) return STOPPED;
    const own = failureOf(error);
    if (own !== undefined) return { ok: false, failure: own, isTransient: false };
    const { failure, ...rest } = networkFailure(error);
    return { ...rest, failure: { ...failure, message: failure.message + via } };
  };

  const attempt = async <T>(
    request: HttpRequest,
    limits: Limits,
    kind: 'calls' | 'watches',
    understand: (answer: Answer, asked: Asked) => Promise<Attempt<T>>,
  ): Promise<Attempt<T>> => {
    const startedAt = clock.now();
    const asked = { server: access.server, path: request.path };
    const once = (by: Prepared): Promise<Attempt<T>> =>
      within(limits, async (signal) => {
        const answer = await send(request, by, kind, signal);
        if (answer.status >= 200 && answer.status < 300) return understand(answer, asked);
        const text = await readBody(answer, MAX_ERROR_BYTES, '');
        return refusal({ ...answer, text }, asked, clock.now());
      });
    let result: Attempt<T>;
    try {
      const by = await unlessAborted(current(), limits.signal);
      result = await once(by);
      if (!result.ok && result.failure.status === 401) {
        const hasOther = await unlessAborted(credentials.refresh(by.login), limits.signal);
        if (hasOther) result = await once(await unlessAborted(current(), limits.signal));
      }
    } catch (error) {
      result = broken(error, limits);
    }
    if (!result.ok) {
      // Redacted before it is cut: half a secret has no shape any more.
      const message = clause(redactor.redact(result.failure.message));
      result = { ...result, failure: { ...result.failure, message } };
    }
    const end = result.ok ? 'ok' : result.failure.message;
    debug(
      `${request.method} ${request.path.split('?')[0]}: ${end} (${clock.now() - startedAt} ms)`,
    );
    return result;
  };

  return {
    async prepare() {
      const { login } = await current();
      debug(`context ${access.context} from ${access.source}: ${access.server}${via}`);
      return login;
    },
    json: (request, limits) =>
      attempt(request, limits, 'calls', async (answer, asked) => {
        const text = await readBody(answer, MAX_BODY_BYTES);
        const value = parseObject(text);
        if (value !== undefined) return { ok: true, value };
        return unreadable({ ...answer, text }, asked);
      }),
    open: (request, limits) =>
      attempt(request, limits, 'watches', async (answer, asked) => {
        if (contentTypeOf(answer) === 'application/json') return { ok: true, value: answer.body };
        discard(answer.body);
        return unreadable({ ...answer, text: '' }, asked);
      }),
    clockOffsetMs: () => clockOffsetMs,
    async close() {
      closing.abort();
      credentials.close();
      await Promise.all(dispatchers.map((dispatcher) => dispatcher.destroy()));
    },
  };
}

function tlsOf({ ca, cert, key }: Login, { cluster, context }: Access): TlsOptions {
  const isInsecure = at(cluster.fields, 'insecure-skip-tls-verify') === true;
  const servername = stringAt(cluster.fields, 'tls-server-name');
  try {
    return tlsOptions({ ca, cert, key, servername, isInsecure });
  } catch (error) {
    throw configError(
      `the certificates of context "${context}" cannot be used: ${describeError(error)}`,
      'Check that certificate and key belong together and are complete',
    );
  }
}

function isSameTls(one: Login, other: Login): boolean {
  return one.ca === other.ca && one.cert === other.cert && one.key === other.key;
}

class BodyTooLarge extends Error {}
class TooLate extends Error {}

/** Of the errors that are not the network's. */
function failureOf(error: unknown): ReadFailure | undefined {
  if (error instanceof TooLate) return { kind: 'timeout', message: error.message };
  if (error instanceof BodyTooLarge) return { kind: 'unreadable', message: error.message };
  // The plugin or the token file: no request went out, and none could be authenticated.
  if (error instanceof ActionError) return { kind: 'unauthorized', message: error.message };
  return undefined;
}

async function within<T>(
  { signal, timeoutMs }: Limits,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  try {
    return await work(AbortSignal.any([late.signal, ...(signal ? [signal] : [])]));
  } catch (error) {
    if (late.signal.aborted) throw new TooLate(`no answer within ${timeoutMs / 1_000} s`);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** The work goes on, for others who wait for it too; what becomes of it then is nobody's error. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal?.reason);
    void work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', stop));
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

/**
 * The whole body, unpacked; of one that is too long `instead`, where that is given. A body that is not
 * read to its end would keep its connection.
 */
async function readBody(
  { headers, body }: Answer,
  maxBytes: number,
  instead?: string,
): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    const isPacked = headers['content-encoding'] === 'gzip';
    for await (const chunk of (isPacked ? unpack(body) : body) as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxBytes) {
        throw new BodyTooLarge(`the answer is larger than ${maxBytes / 1024 / 1024} MiB`);
      }
    }
  } catch (error) {
    discard(body);
    if (error instanceof BodyTooLarge && instead !== undefined) return instead;
    throw error;
  }
  return Buffer.concat(chunks).toString('utf8');
}

function unpack(body: Readable): Readable {
  const gunzip = createGunzip();
  // pipe() does not hand errors on, and a body that breaks off would wait for ever.
  body.on('error', (error) => gunzip.destroy(error));
  return body.pipe(gunzip);
}

function discard(body: Readable): void {
  body.on('error', () => undefined).destroy();
}
