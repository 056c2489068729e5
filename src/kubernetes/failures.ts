import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http';
import { causeChain, describeError, errorCode } from '../base/errors.ts';
import { type JsonObject, numberAt, parseObject, stringAt } from '../base/json.ts';
import { plainText, shorten, shortQuote } from '../base/text.ts';
import { failureKindOf, type ReadFailure, readFailed } from '../model/read.ts';
import { objectNameIn } from './paths.ts';
import type { Try, TryFailure } from './retry.ts';

/** The parts of an answer that are needed to describe a failure. */
export interface Answer {
  server: string;
  path: string;
  status: number;
  headers: IncomingHttpHeaders;
}

const MAX_MESSAGE_CHARS = 500;
/**
 * Limit for reading an error text. Far beyond what is shown, so that the cut cannot split a secret that would be
 * visible.
 */
const MAX_READ_CHARS = 8_000;

const TRANSIENT = new Set([429, 500, 502, 503, 504]);
/**
 * Statuses whose body may be plain text: overload protection, the aggregator and old authorizers send no Status.
 */
const PLAIN_TEXT_STATUSES = new Set([401, 403, ...TRANSIENT]);
/** Message of a 429 that is not about load (apiserver pkg/storage/cacher/ready.go). */
const BROKEN_CACHE = 'storage is (re)initializing';

/** Returns the failure for an unsuccessful answer. Its message is raw; `shortLine` shortens it. */
export function refusedAnswer(answer: Answer, text: string, nowMs: number): Try<never> {
  const body = parseObject(text);
  const status = body?.['kind'] === 'Status' ? body : undefined;
  const said =
    status === undefined ? failureFromText(answer, text) : failureFromStatus(answer, status);
  const isBusy = answer.status === 429 && !text.includes(BROKEN_CACHE);
  return readFailed({
    ...said,
    status: answer.status,
    again: isBusy ? 'busy' : TRANSIENT.has(answer.status) ? 'maybe' : undefined,
    retryAfterMs: retryAfterMs(answer, status, nowMs),
  });
}

function failureFromStatus(answer: Answer, status: JsonObject): ReadFailure {
  const kind = failureKindOf(answer.status);
  const said = stringAt(status, 'message') || stringAt(status, 'reason') || '';
  // Gateways in front of clusters also answer with Status objects ("cluster not found"). Only a Status that
  // names the requested object says that the object does not exist. A virtual cluster may even have the same
  // name as its namespace.
  const name = objectNameIn(answer.path);
  const [, resource] = /^\/api\/v1\/(\w+)\/[^/]+$/.exec(answer.path) ?? [];
  const isAbout =
    stringAt(status, 'reason') === 'NotFound' &&
    (name === undefined || stringAt(status, 'details', 'name') === name) &&
    (resource === undefined || stringAt(status, 'details', 'kind') === resource);
  return {
    kind: kind === 'not-found' && !isAbout ? 'unreadable' : kind,
    message: withDetail(statusLine(answer), said),
  };
}

function failureFromText(answer: Answer, body: string): ReadFailure {
  const isPlain = body.trim() === '' || contentTypeOf(answer) === 'text/plain';
  const text = isPlain ? body.trim() : '';
  if (isPlain && PLAIN_TEXT_STATUSES.has(answer.status)) {
    return { kind: failureKindOf(answer.status), message: withDetail(statusLine(answer), text) };
  }
  // An API server answers so for an unknown API group or version (Go, net/http.NotFound). The answer has no
  // failure kind of its own, because gateways written in Go send the same text.
  const isUnknownPath = answer.status === 404 && text === '404 page not found';
  const message =
    isUnknownPath && answer.path.startsWith('/apis/')
      ? `the server could not find the requested resource (${text})`
      : withDetail(notKubernetes(answer), text);
  return { kind: 'unreadable', message };
}

function statusLine({ status }: Answer): string {
  return `${status} ${STATUS_CODES[status] ?? 'Unknown'}`;
}

function withDetail(words: string, more: string): string {
  return more === '' || words.endsWith(` ${more}`)
    ? words
    : `${words}: ${more.slice(0, MAX_READ_CHARS)}`;
}

/**
 * Returns the failure for a successful answer that an API server does not send: a login page, a portal, half an
 * answer.
 */
export function unreadableAnswer(answer: Answer): Try<never> {
  const message =
    contentTypeOf(answer) === 'application/json'
      ? `the server at ${answer.server} sent an answer that is not complete JSON`
      : notKubernetes(answer);
  return unreadable(message);
}

/** Returns the failure for an answer of another form than an API server sends. */
export function unreadable(message: string): Try<never> {
  return readFailed({ kind: 'unreadable', message });
}

function notKubernetes(answer: Answer): string {
  const to = URL.parse(headerOf(answer, 'location') ?? '')?.host;
  const type = contentTypeOf(answer) || 'no content type';
  const redirect = to === undefined ? '' : `, a redirect to ${to}`;
  return `the server at ${answer.server} did not answer like a Kubernetes API server (${answer.status}, ${type}${redirect})`;
}

export function headerOf({ headers }: Answer, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Returns the media type without parameters. */
export function contentTypeOf(answer: Answer): string {
  return (headerOf(answer, 'content-type') ?? '').split(';')[0]?.trim() ?? '';
}

/** Returns a text as one line of limited length. */
export function shortLine(text: string): string {
  return shortQuote(plainText(text), MAX_MESSAGE_CHARS);
}

/**
 * Returns how long the server asks to wait: from the header (seconds or a date), else from the Status object.
 */
function retryAfterMs(answer: Answer, status: JsonObject | undefined, nowMs: number) {
  const header = headerOf(answer, 'retry-after') ?? '';
  if (/^\d+$/.test(header)) return Number(header) * 1_000;
  const date = Date.parse(header);
  if (!Number.isNaN(date)) return Math.max(0, date - nowMs);
  const seconds = numberAt(status, 'details', 'retryAfterSeconds');
  return seconds === undefined ? undefined : seconds * 1_000;
}

/**
 * Limit for a body. A page of 500 objects with managedFields has a few MB; a page of the largest objects that
 * etcd accepts is larger.
 */
export const MAX_BODY_MIB = 64;

/** A clause for the report, and whether another attempt can help. */
interface ErrorExplanation {
  clause: string;
  /** Set if another attempt is useless. `late`: the server was too slow and would be again. */
  end?: 'for good' | 'late';
}

const UNKNOWN_AUTHORITY = 'unknown certificate authority';
const CLOSED_EARLY = 'the connection was closed before the answer was complete';
const NO_TLS = 'the server does not speak TLS (https) on this port';

/** Clauses for the error codes of Node and undici: those that another attempt may help, and the others. */
const PASSING: Record<string, string | undefined> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  ECONNABORTED: 'connection aborted',
  UND_ERR_SOCKET: CLOSED_EARLY,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: CLOSED_EARLY,
  Z_BUF_ERROR: CLOSED_EARLY,
  UND_ERR_PRX_CONN: 'the proxy closed the connection',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host not found: name resolution does not work at the moment',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
};
const LATE: Record<string, string | undefined> = {
  UND_ERR_CONNECT_TIMEOUT: 'no connection within 10 s',
  ETIMEDOUT: 'connection timed out',
};
const FOR_GOOD: Record<string, string | undefined> = {
  CERT_HAS_EXPIRED: 'certificate has expired',
  CERT_NOT_YET_VALID: 'certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: `${UNKNOWN_AUTHORITY} (self-signed certificate)`,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  CERT_SIGNATURE_FAILURE: `${UNKNOWN_AUTHORITY} (signature does not match)`,
  CERT_UNTRUSTED: UNKNOWN_AUTHORITY,
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'the server demands a client certificate',
  'ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_UNKNOWN': 'the server does not accept the client certificate',
  UND_ERR_PRX_TLS: 'the certificate of the proxy is not valid for its name',
  Z_DATA_ERROR: 'the answer is damaged (gzip)',
  UND_ERR_HEADERS_OVERFLOW: 'the headers of the answer are larger than 16 KiB',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: `the answer is larger than ${MAX_BODY_MIB} MiB`,
};

/** Describes a request without an answer, or with half an answer. */
export function networkFailure(error: unknown): TryFailure {
  const known = causeChain(error).flatMap(
    (each) => (each instanceof Error && explainError(each)) || [],
  );
  const explanation = known.find(({ end }) => end === 'for good') ?? known[0];
  const message = shorten(explanation?.clause ?? describeError(error), 300);
  const kind = explanation?.end === 'late' ? 'timeout' : 'network';
  return { kind, message, again: explanation?.end === undefined ? 'maybe' : undefined };
}

function explainError(error: Error): ErrorExplanation | undefined {
  const proxy = /^Proxy response \((\d+)\)/.exec(error.message)?.[1];
  if (proxy !== undefined) {
    const clause = `the proxy answered ${proxy} when asked for a connection`;
    return Number(proxy) >= 500 ? { clause } : { clause, end: 'for good' };
  }
  const code = errorCode(error);
  if (PASSING[code]) return { clause: PASSING[code] };
  if (LATE[code]) return { clause: LATE[code], end: 'late' };
  let clause = FOR_GOOD[code];
  if (error.name === 'HTTPParserError') clause = 'the answer is not HTTP';
  // Node's own message lists every name in the certificate.
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    clause = `certificate is not valid${'host' in error ? ` for ${error.host}` : ''}`;
  }
  return clause === undefined ? undefined : { clause, end: 'for good' };
}
