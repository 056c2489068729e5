import { ActionError } from '../base/errors.ts';
import { isObject, type JsonObject } from '../base/json.ts';
import type { Redactor } from '../base/redact.ts';
import type { Clock } from '../base/time.ts';
import type { ReadFailure } from '../model/read.ts';
import { BodyTooLarge, readBody } from './body.ts';
import type { Connection, HttpRequest, OpenAnswer, Timer } from './connection.ts';
import { type BadAnswer, clause, failureOf, notKubernetes, retryAfterMs } from './failures.ts';
import { describeNetworkError } from './network-errors.ts';
import { ABORTED, type Attempt } from './retry.ts';

export interface ExchangeOptions {
  connection: Connection;
  clock: Clock;
  redactor: Redactor;
  /** For the end of "connection refused": "(through the proxy http://proxy:3128)". */
  via: string;
  debug: (line: string) => void;
}

export interface Limits {
  signal: AbortSignal | undefined;
  timeoutMs: number;
}

export type Opened = { ok: true; answer: OpenAnswer } | (Attempt<never> & { ok: false });

/** One request and its answer, as values: every way to fail gets its kind and its sentence here. */
export class Exchange {
  private readonly options: ExchangeOptions;

  constructor(options: ExchangeOptions) {
    this.options = options;
  }

  /** The whole answer as JSON. */
  async json(request: HttpRequest, limits: Limits): Promise<Attempt<JsonObject>> {
    return this.timed(request, limits, async (signal, timer) => {
      const answer = await this.options.connection.open(request, signal, timer);
      if (!isSuccess(answer)) return this.refusal(request, answer);
      const text = await readBody(answer);
      const body = parse(text);
      if (isObject(body)) return { ok: true, value: body };
      return this.unreadable(request, answer, text);
    });
  }

  /** The headers of a success, with the body still to come; the time limit ends with the headers. */
  async open(request: HttpRequest, limits: Limits): Promise<Attempt<OpenAnswer>> {
    return this.timed(request, limits, async (signal, timer) => {
      const answer = await this.options.connection.open(request, signal, timer);
      if (!isSuccess(answer)) return this.refusal(request, answer);
      if (contentType(answer).startsWith('application/json')) return { ok: true, value: answer };
      answer.body.on('error', () => undefined).destroy();
      return this.unreadable(request, answer, '');
    });
  }

  private async timed<T>(
    request: HttpRequest,
    limits: Limits,
    work: (signal: AbortSignal, timer: Timer) => Promise<Attempt<T>>,
  ): Promise<Attempt<T>> {
    const startedAt = this.options.clock.now();
    const late = new AbortController();
    let timeout: NodeJS.Timeout | undefined;
    const timer: Timer = {
      start: () => {
        clearTimeout(timeout);
        timeout = setTimeout(() => late.abort(), limits.timeoutMs);
      },
      stop: () => clearTimeout(timeout),
    };
    const signal = AbortSignal.any([late.signal, ...(limits.signal ? [limits.signal] : [])]);
    let result: Attempt<T>;
    try {
      result = await work(signal, timer);
    } catch (error) {
      result = this.broken(error, limits, late.signal.aborted);
    } finally {
      timer.stop();
    }
    const ms = this.options.clock.now() - startedAt;
    const end = result.ok ? 'ok' : result.failure.message;
    this.debug(`${request.method} ${request.path.split('?')[0]}: ${end} (${ms} ms)`);
    return result;
  }

  private async refusal(request: HttpRequest, answer: OpenAnswer): Promise<Attempt<never>> {
    const text = await readBody(answer, MAX_ERROR_BYTES).catch((error: unknown) => {
      if (error instanceof BodyTooLarge) return '';
      throw error;
    });
    const bad = badAnswer(answer, text);
    const wait = retryAfterMs(headerOf(answer, 'retry-after'), text, this.options.clock.now());
    return {
      ok: false,
      failure: this.clean(failureOf(bad, this.asked(request))),
      isTransient: answer.status === 429 || RETRIED.has(answer.status),
      isThrottled: answer.status === 429 && !text.includes(BROKEN_CACHE),
      ...(wait === undefined ? {} : { retryAfterMs: wait }),
    };
  }

  private unreadable(request: HttpRequest, answer: OpenAnswer, text: string): Attempt<never> {
    const isJson = contentType(answer).startsWith('application/json');
    const message = isJson
      ? `the server at ${this.options.connection.server} sent an answer that is not complete JSON`
      : notKubernetes(badAnswer(answer, text), this.asked(request));
    const failure = { kind: 'unreadable' as const, status: answer.status, message };
    return { ok: false, failure: this.clean(failure), isTransient: false };
  }

  private broken(error: unknown, limits: Limits, isLate: boolean): Attempt<never> & { ok: false } {
    const fail = (kind: ReadFailure['kind'], message: string, isTransient: boolean) => ({
      ok: false as const,
      failure: this.clean({ kind, message }),
      isTransient,
    });
    if (limits.signal?.aborted || this.options.connection.isClosed) {
      return { ok: false, failure: ABORTED, isTransient: false };
    }
    if (isLate) return fail('timeout', `no answer within ${limits.timeoutMs / 1_000} s`, false);
    if (error instanceof BodyTooLarge) return fail('unreadable', error.message, false);
    // The plugin or the token file: no request went out, and none could be authenticated.
    if (error instanceof ActionError) return fail('unauthorized', error.message, false);
    const network = describeNetworkError(error);
    const kind = network.isTimeout ? 'timeout' : 'network';
    return fail(kind, `${network.clause}${this.options.via}`, network.isTransient);
  }

  private clean(failure: ReadFailure): ReadFailure {
    // Redacted before it is cut: half a secret has no shape any more.
    return { ...failure, message: clause(this.options.redactor.redact(failure.message)) };
  }

  private asked(request: HttpRequest): { server: string; path: string } {
    return { server: this.options.connection.server, path: request.path };
  }

  debug(line: string): void {
    this.options.debug(this.options.redactor.redact(line));
  }
}

/** A 429 that says nothing about load (apiserver pkg/storage/cacher/ready.go). */
const BROKEN_CACHE = 'storage is (re)initializing';
const MAX_ERROR_BYTES = 1024 * 1024;
const RETRIED = new Set([500, 502, 503, 504]);

function isSuccess(answer: OpenAnswer): boolean {
  return answer.status >= 200 && answer.status < 300;
}

function badAnswer(answer: OpenAnswer, text: string): BadAnswer {
  const location = headerOf(answer, 'location') ?? '';
  const redirectHost = URL.canParse(location) ? new URL(location).host : undefined;
  return { status: answer.status, contentType: contentType(answer), text, redirectHost };
}

function contentType(answer: OpenAnswer): string {
  return headerOf(answer, 'content-type') ?? '';
}

function headerOf(answer: OpenAnswer, name: string): string | undefined {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
