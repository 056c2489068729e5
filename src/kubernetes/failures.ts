import { STATUS_CODES } from 'node:http';
import { causesOf, describeError } from '../base/errors.ts';
import { type JsonObject, numberAt, parseObject, stringAt } from '../base/json.ts';
import { plainText, shorten } from '../base/text.ts';
import { failureKindOf, type ReadFailure } from '../model/read.ts';
import { objectNameIn } from './paths.ts';
import type { Failed } from './retry.ts';

/** An HTTP answer, as far as it is needed to say what went wrong. */
export interface BadAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

export interface Asked {
  server: string;
  path: string;
}

const MAX_MESSAGE_CHARS = 500;
/** Far beyond what is shown, so that cutting here cannot halve a secret that would be seen. */
const MAX_READ_CHARS = 8_000;

const TRANSIENT = new Set([429, 500, 502, 503, 504]);
/** Overload protection and the aggregator answer in plain text, and so do old authorizers. */
const SPEAKS_PLAIN = new Set([401, 403, ...TRANSIENT]);
/** A 429 that says nothing about load (apiserver pkg/storage/cacher/ready.go). */
const BROKEN_CACHE = 'storage is (re)initializing';

/** An answer that is no success. The message is raw and not cut yet: that is `clause`. */
export function refusal(answer: BadAnswer, asked: Asked, nowMs: number): Failed {
  const status = statusObject(answer.text);
  const wait = retryAfterMs(headerOf(answer, 'retry-after'), status, nowMs);
  return {
    ok: false,
    failure: { ...said(answer, status, asked), status: answer.status },
    isTransient: TRANSIENT.has(answer.status),
    isThrottled: answer.status === 429 && !answer.text.includes(BROKEN_CACHE),
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
  };
}

function said(answer: BadAnswer, status: JsonObject | undefined, asked: Asked): ReadFailure {
  const words = `${answer.status} ${STATUS_CODES[answer.status] ?? 'Unknown'}`;
  const kind = failureKindOf(answer.status);
  if (status !== undefined) {
    const reason = stringAt(status, 'reason');
    const message = (stringAt(status, 'message') || reason || '').slice(0, MAX_READ_CHARS);
    return {
      kind: kind === 'not-found' && !isAbout(status, asked.path) ? 'unreadable' : kind,
      message: message === '' ? words : `${words}: ${message}`,
    };
  }
  const isPlain = answer.text.trim() === '' || contentTypeOf(answer) === 'text/plain';
  const text = isPlain ? answer.text.slice(0, MAX_READ_CHARS).trim() : '';
  const more = text === '' ? '' : `: ${text}`;
  if (isPlain && SPEAKS_PLAIN.has(answer.status)) return { kind, message: `${words}${more}` };
  // How an API server answers for an API group or version that it does not know (Go, net/http.NotFound).
  // No kind of its own: gateways written in Go answer with the same words.
  if (answer.status === 404 && text === '404 page not found' && asked.path.startsWith('/apis/')) {
    const message = `the server could not find the requested resource (${text})`;
    return { kind: 'unreadable', message };
  }
  return { kind: 'unreadable', message: `${notKubernetes(answer, asked)}${more}` };
}

/** A success that is not what an API server sends: a login page, a portal, half an answer. */
export function unreadable(answer: BadAnswer, asked: Asked): Failed {
  const message =
    contentTypeOf(answer) === 'application/json'
      ? `the server at ${asked.server} sent an answer that is not complete JSON`
      : notKubernetes(answer, asked);
  const failure: ReadFailure = { kind: 'unreadable', status: answer.status, message };
  return { ok: false, failure, isTransient: false };
}

function notKubernetes(answer: BadAnswer, { server }: Asked): string {
  const location = headerOf(answer, 'location') ?? '';
  const to = URL.canParse(location) ? `, a redirect to ${new URL(location).host}` : '';
  const type = contentTypeOf(answer) || 'no content type';
  return `the server at ${server} did not answer like a Kubernetes API server (${answer.status}, ${type}${to})`;
}

export function headerOf(
  { headers }: Pick<BadAnswer, 'headers'>,
  name: string,
): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Without parameters. */
export function contentTypeOf(answer: Pick<BadAnswer, 'headers'>): string {
  return (headerOf(answer, 'content-type') ?? '').split(';')[0]?.trim() ?? '';
}

/** One bounded line. */
export function clause(text: string): string {
  return shorten(plainText(text).replace(/\s+/g, ' ').trim(), MAX_MESSAGE_CHARS);
}

function statusObject(text: string): JsonObject | undefined {
  const body = parseObject(text);
  return body?.['kind'] === 'Status' ? body : undefined;
}

/**
 * Gateways in front of clusters answer with Status objects of their own ("cluster not found"). Only one
 * that names the object asked for says that this object does not exist.
 */
function isAbout(status: JsonObject, path: string): boolean {
  if (stringAt(status, 'reason') !== 'NotFound') return false;
  const name = objectNameIn(path);
  return name === undefined || stringAt(status, 'details', 'name') === name;
}

/** What the server wants us to wait: the header (seconds or a date), else the Status object. */
function retryAfterMs(
  header: string | undefined,
  status: JsonObject | undefined,
  nowMs: number,
): number | undefined {
  if (header !== undefined && /^\d+$/.test(header)) return Number(header) * 1_000;
  const date = Date.parse(header ?? '');
  if (!Number.isNaN(date)) return Math.max(0, date - nowMs);
  const seconds = numberAt(status, 'details', 'retryAfterSeconds');
  return seconds === undefined ? undefined : seconds * 1_000;
}

const CLOSED_EARLY = 'the connection was closed before the answer was complete';
const UNKNOWN_AUTHORITY = 'unknown certificate authority';
const NO_TLS = 'the server does not speak TLS (https) on this port';

/** By the code of Node or undici. */
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

/** A server that let one try run into its limit would let the next ones do so too. */
const LATE: Record<string, string | undefined> = {
  UND_ERR_CONNECT_TIMEOUT: 'no connection within 10 s',
  ETIMEDOUT: 'connection timed out',
};

/** What waiting does not change. */
const PERMANENT: Record<string, string | undefined> = {
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
};

/** No answer, or not a whole one. */
export function networkFailure(error: unknown): Failed {
  const known = causesOf(error).flatMap((each) => (each instanceof Error && meaningOf(each)) || []);
  const meaning = known.find(({ end }) => end === 'for good') ?? known[0];
  const message = shorten(meaning?.clause ?? describeError(error), 300);
  const kind = meaning?.end === 'late' ? 'timeout' : 'network';
  return { ok: false, failure: { kind, message }, isTransient: meaning?.end === undefined };
}

/** Without an `end` the next try may go better. */
function meaningOf(error: Error): { clause: string; end?: 'for good' | 'late' } | undefined {
  const proxy = /^Proxy response \((\d+)\)/.exec(error.message)?.[1];
  if (proxy !== undefined) {
    const clause = `the proxy answered ${proxy} when asked for a connection`;
    return Number(proxy) >= 500 ? { clause } : { clause, end: 'for good' };
  }
  const code = 'code' in error ? String(error.code) : '';
  // Node's own sentence lists every name in the certificate.
  const host = 'host' in error && typeof error.host === 'string' ? ` for ${error.host}` : '';
  const isOtherName = code === 'ERR_TLS_CERT_ALTNAME_INVALID';
  const clause = isOtherName ? `certificate is not valid${host}` : PERMANENT[code];
  if (clause !== undefined) return { clause, end: 'for good' };
  if (error.name === 'HTTPParserError')
    return { clause: 'the answer is not HTTP', end: 'for good' };
  if (LATE[code] !== undefined) return { clause: LATE[code], end: 'late' };
  return PASSING[code] === undefined ? undefined : { clause: PASSING[code] };
}
