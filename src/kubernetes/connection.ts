import type { Readable } from 'node:stream';
import type { Clock } from '../base/time.ts';
import type { Access } from './access.ts';
import { connectionSettings, type Headers } from './connection-settings.ts';
import type { CredentialSource, Credentials } from './credentials.ts';
import { createDispatchers, type Dispatchers } from './dispatchers.ts';

export interface HttpRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With query, without the server and its prefix. */
  path: string;
  accept: string;
  body?: string;
  contentType?: string;
  /** A watch keeps its connection, so it does not take one that calls need. */
  isWatch?: boolean;
}

export interface OpenAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** Unread; whoever gets the answer has to read or destroy it. */
  body: Readable;
}

/** The time limit of one call. */
export interface Timer {
  start(): void;
  stop(): void;
}

/** What one set of credentials needs; made again when they change. */
interface Prepared {
  credentials: Credentials;
  headers: Headers;
  dispatchers: Dispatchers;
}

export interface ConnectionOptions {
  access: Access;
  source: CredentialSource;
  proxy: URL | undefined;
  clock: Clock;
  userAgent: string;
}

/** Requests with the credentials of the moment, over connections that are kept. */
export class Connection {
  clockOffsetMs = 0;
  readonly server: string;
  private readonly options: ConnectionOptions;
  private readonly origin: string;
  private readonly prefix: string;
  private prepared: Prepared | undefined;
  private readonly retired: Dispatchers[] = [];
  private readonly closing = new AbortController();

  constructor(options: ConnectionOptions) {
    const url = new URL(options.access.cluster.server);
    this.options = options;
    this.server = options.access.cluster.server;
    this.origin = url.origin;
    this.prefix = url.pathname.replace(/\/$/, '');
  }

  /** The first credentials; throws an `ActionError` when they cannot be had or used. */
  async prepare(): Promise<void> {
    await this.current();
  }

  /**
   * Settles with the headers. Rejects with what the network said, or an `ActionError` when there are no
   * credentials. The timer runs while the server has the request: a login is not the server's time.
   */
  async open(request: HttpRequest, signal: AbortSignal, timer: Timer): Promise<OpenAnswer> {
    const prepared = await unlessAborted(this.current(), signal);
    timer.start();
    const answer = await this.send(request, prepared, signal);
    if (answer.status !== 401) return answer;
    timer.stop();
    const hasOther = await unlessAborted(this.options.source.refresh(prepared.credentials), signal);
    timer.start();
    if (!hasOther) return answer;
    answer.body.on('error', () => undefined).destroy();
    return this.send(request, await unlessAborted(this.current(), signal), signal);
  }

  get isClosed(): boolean {
    return this.closing.signal.aborted;
  }

  async close(): Promise<void> {
    this.closing.abort();
    this.options.source.close();
    const all = [
      ...this.retired,
      ...(this.prepared === undefined ? [] : [this.prepared.dispatchers]),
    ];
    await Promise.all(all.flatMap((each) => [each.calls.destroy(), each.watches.destroy()]));
  }

  private async send(
    request: HttpRequest,
    prepared: Prepared,
    signal: AbortSignal,
  ): Promise<OpenAnswer> {
    const { calls, watches } = prepared.dispatchers;
    // Not fetch: it follows redirects and joins repeated headers, which changes impersonated groups.
    const sent = (request.isWatch === true ? watches : calls).request({
      origin: this.origin,
      path: this.prefix + request.path,
      method: request.method,
      headers: {
        ...prepared.headers,
        'user-agent': this.options.userAgent,
        accept: request.accept,
        ...(request.isWatch === true ? {} : { 'accept-encoding': 'gzip' }),
        ...(request.contentType === undefined ? {} : { 'content-type': request.contentType }),
      },
      ...(request.body === undefined ? {} : { body: request.body }),
      signal,
    });
    // undici looks at the signal only once there is a connection, which can take 10 s to fail.
    const answer = await unlessAborted(sent, signal);
    this.readClock(answer.headers['date']);
    return { status: answer.statusCode, headers: answer.headers, body: answer.body };
  }

  private readClock(date: string | string[] | undefined): void {
    const serverNow = typeof date === 'string' ? Date.parse(date) : Number.NaN;
    if (!Number.isNaN(serverNow)) this.clockOffsetMs = serverNow - this.options.clock.now();
  }

  private async current(): Promise<Prepared> {
    const credentials = await this.options.source.current();
    return this.prepared?.credentials === credentials ? this.prepared : this.build(credentials);
  }

  private build(credentials: Credentials): Prepared {
    const settings = connectionSettings(this.options.access, credentials);
    const old = this.prepared;
    const isSameIdentity =
      old?.credentials.cert === credentials.cert && old?.credentials.key === credentials.key;
    const dispatchers =
      old !== undefined && isSameIdentity
        ? old.dispatchers
        : createDispatchers(settings, this.options.proxy, this.closing.signal);
    // Requests on the old connections may still run; `close` ends what is left of them.
    if (old !== undefined && dispatchers !== old.dispatchers) this.retired.push(old.dispatchers);
    this.prepared = { credentials, headers: settings.headers, dispatchers };
    return this.prepared;
  }
}

/** The work goes on, for others who wait for it too; what becomes of it then is nobody's error. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}
