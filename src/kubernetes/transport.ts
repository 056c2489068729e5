import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { ActionError, describeError } from '../base/errors.ts';
import { isObject, type JsonObject } from '../base/json.ts';
import type { ReadFailure } from '../model/read.ts';
import { createDispatcher, tlsOptions } from './connections.ts';
import type { Credentials, Login } from './credentials.ts';
import {
  type BadAnswer,
  clause,
  contentTypeOf,
  headerOf,
  networkFailure,
  refusal,
  unreadable,
} from './failures.ts';
import { configError, type Session } from './kubeconfig.ts';
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
  body?: string;
  contentType?: string;
}

export interface Limits {
  signal: AbortSignal | undefined;
  /** Of one answer; a login is not the server's time. */
  timeoutMs: number;
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

/** Requests and answers, as values: every way to fail gets its kind and its sentence here. */
export class Transport {
  clockOffsetMs = 0;
  private readonly session: Session;
  private readonly credentials: Credentials;
  private readonly proxy: URL | undefined;
  private readonly server: URL;
  private readonly via: string;
  private prepared: Prepared | undefined;
  private readonly dispatchers: Dispatcher[] = [];
  private readonly closing = new AbortController();

  constructor(session: Session, credentials: Credentials, proxy: URL | undefined) {
    this.session = session;
    this.credentials = credentials;
    this.proxy = proxy;
    this.server = new URL(session.access.cluster.server);
    this.via = proxy === undefined ? '' : ` (through the proxy ${proxy.protocol}//${proxy.host})`;
  }

  /** The first login; throws an `ActionError` when there is none, or its certificates are of no use. */
  async prepare(): Promise<Login> {
    const { login } = await this.current();
    const { context, source, cluster } = this.session.access;
    this.debug(`context ${context} from ${source}: ${cluster.server}${this.via}`);
    return login;
  }

  /** The whole answer. */
  json(request: HttpRequest, limits: Limits): Promise<Attempt<JsonObject>> {
    return this.attempt(request, limits, 'calls', async (answer) => {
      const text = await readBody(answer, MAX_BODY_BYTES);
      const body = parse(text);
      return isObject(body)
        ? { ok: true, value: body }
        : unreadable({ ...answer, text }, this.asked(request));
    });
  }

  /** The body of a watch, still to come; the time limit ends with the headers. */
  open(request: HttpRequest, limits: Limits): Promise<Attempt<Readable>> {
    return this.attempt(request, limits, 'watches', async (answer) => {
      if (contentTypeOf(answer) === 'application/json') return { ok: true, value: answer.body };
      discard(answer.body);
      return unreadable({ ...answer, text: '' }, this.asked(request));
    });
  }

  async close(): Promise<void> {
    this.closing.abort();
    this.credentials.close();
    await Promise.all(this.dispatchers.map((dispatcher) => dispatcher.destroy()));
  }

  private async attempt<T>(
    request: HttpRequest,
    limits: Limits,
    kind: 'calls' | 'watches',
    understand: (answer: Answer) => Promise<Attempt<T>>,
  ): Promise<Attempt<T>> {
    const startedAt = this.session.clock.now();
    const once = (prepared: Prepared): Promise<Attempt<T>> =>
      within(limits, async (signal) => {
        const answer = await this.send(request, prepared, kind, signal);
        const isSuccess = answer.status >= 200 && answer.status < 300;
        return isSuccess ? understand(answer) : this.refused(request, answer);
      });
    let result: Attempt<T>;
    try {
      const prepared = await unlessAborted(this.current(), limits.signal);
      result = await once(prepared);
      if (!result.ok && result.failure.status === 401) {
        const refreshed = this.credentials.refresh(prepared.login);
        if (await unlessAborted(refreshed, limits.signal)) {
          result = await once(await unlessAborted(this.current(), limits.signal));
        }
      }
    } catch (error) {
      result = this.broken(error, limits);
    }
    if (!result.ok) result = { ...result, failure: this.clean(result.failure) };
    const ms = this.session.clock.now() - startedAt;
    const end = result.ok ? 'ok' : result.failure.message;
    this.debug(`${request.method} ${request.path.split('?')[0]}: ${end} (${ms} ms)`);
    return result;
  }

  private async send(
    request: HttpRequest,
    prepared: Prepared,
    kind: 'calls' | 'watches',
    signal: AbortSignal,
  ): Promise<Answer> {
    // Not fetch: it follows redirects and joins repeated headers, which changes impersonated groups.
    const sent = prepared[kind].request({
      origin: this.server.origin,
      path: this.server.pathname.replace(/\/$/, '') + request.path,
      method: request.method,
      headers: {
        ...prepared.login.headers,
        'user-agent': this.session.userAgent,
        accept: request.accept,
        ...(kind === 'watches' ? {} : { 'accept-encoding': 'gzip' }),
        ...(request.contentType === undefined ? {} : { 'content-type': request.contentType }),
      },
      ...(request.body === undefined ? {} : { body: request.body }),
      signal,
    });
    // undici looks at the signal only once there is a connection, which can take 10 s to fail.
    const { statusCode, headers, body } = await unlessAborted(sent, signal);
    const serverNow = Date.parse(headerOf({ headers }, 'date') ?? '');
    if (!Number.isNaN(serverNow)) this.clockOffsetMs = serverNow - this.session.clock.now();
    return { status: statusCode, headers, body };
  }

  private async refused(request: HttpRequest, answer: Answer): Promise<Failed> {
    const text = await readBody(answer, MAX_ERROR_BYTES).catch((error: unknown) => {
      if (error instanceof BodyTooLarge) return '';
      throw error;
    });
    return refusal({ ...answer, text }, this.asked(request), this.session.clock.now());
  }

  private broken(error: unknown, limits: Limits): Failed {
    if (limits.signal?.aborted || this.closing.signal.aborted) return STOPPED;
    const kind = kindOf(error);
    if (kind !== undefined) {
      const failure = { kind, message: error instanceof Error ? error.message : '' };
      return { ok: false, failure, isTransient: false };
    }
    const network = networkFailure(error);
    const message = `${network.failure.message}${this.via}`;
    return { ...network, failure: { ...network.failure, message } };
  }

  private clean(failure: ReadFailure): ReadFailure {
    // Redacted before it is cut: half a secret has no shape any more.
    return { ...failure, message: clause(this.session.redactor.redact(failure.message)) };
  }

  private asked({ path }: HttpRequest): { server: string; path: string } {
    return { server: this.session.access.cluster.server, path };
  }

  private debug(line: string): void {
    this.session.debug(this.session.redactor.redact(line));
  }

  private async current(): Promise<Prepared> {
    const login = await this.credentials.current();
    const old = this.prepared;
    if (old?.login === login) return old;
    if (old !== undefined && isSameTls(old.login, login)) {
      this.prepared = { ...old, login };
      return this.prepared;
    }
    // Requests on the old connections may still run; `close` ends what is left of them.
    const tls = this.tls(login);
    const options = { tls, proxy: this.proxy, ca: login.ca, closing: this.closing.signal };
    const calls = createDispatcher({ ...options, connections: MAX_REQUESTS });
    const watches = createDispatcher(options);
    this.dispatchers.push(calls, watches);
    this.prepared = { login, calls, watches };
    return this.prepared;
  }

  private tls({ ca, cert, key }: Login): ReturnType<typeof tlsOptions> {
    const { cluster, context } = this.session.access;
    const { skipTLSVerify: isInsecure, tlsServerName: servername } = cluster;
    try {
      return tlsOptions({ ca, cert, key, servername, isInsecure });
    } catch (error) {
      throw configError(
        `the certificates of context "${context}" cannot be used: ${describeError(error)}`,
        'Check that certificate and key belong together and are complete',
      );
    }
  }
}

function isSameTls(one: Login, other: Login): boolean {
  return one.ca === other.ca && one.cert === other.cert && one.key === other.key;
}

class BodyTooLarge extends Error {}
class TooLate extends Error {}

/** Of the errors that are not the network's. */
function kindOf(error: unknown): ReadFailure['kind'] | undefined {
  if (error instanceof TooLate) return 'timeout';
  if (error instanceof BodyTooLarge) return 'unreadable';
  // The plugin or the token file: no request went out, and none could be authenticated.
  return error instanceof ActionError ? 'unauthorized' : undefined;
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

/** The whole body, unpacked. A body that is not read to its end would keep its connection. */
async function readBody({ headers, body }: Answer, maxBytes: number): Promise<string> {
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

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
