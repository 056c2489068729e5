import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http';
import { causeChain, describeError } from '../base/errors.ts';
import { type JsonObject, numberAt, parseObject, stringAt } from '../base/json.ts';
import { plainText, shorten } from '../base/text.ts';
import { failed, failureKindOf, type ReadFailure } from '../model/read.ts';
import { objectNameIn } from './paths.ts';
import type { Try, TryFailure } from './retry.ts';

/** What came back for a path, as far as it is needed to say what went wrong. */
export interface Answer {
  server: string;
  path: string;
  status: number;
  headers: IncomingHttpHeaders;
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
export function refusal(answer: Answer, text: string, nowMs: number): Try<never> {
  const body = parseObject(text);
  const status = body?.['kind'] === 'Status' ? body : undefined;
  const said = status === undefined ? saidInText(answer, text) : saidInStatus(answer, status);
  const isBusy = answer.status === 429 && !text.includes(BROKEN_CACHE);
  return failed({
    ...said,
    status: answer.status,
    again: isBusy ? 'busy' : TRANSIENT.has(answer.status) ? 'maybe' : undefined,
    retryAfterMs: retryAfterMs(headerOf(answer, 'retry-after'), status, nowMs),
  });
}

function saidInStatus(answer: Answer, status: JsonObject): ReadFailure {
  const kind = failureKindOf(answer.status);
  const said = stringAt(status, 'message') || stringAt(status, 'reason') || '';
  // Gateways in front of clusters answer with Status objects of their own ("cluster not found"). Only
  // one that names the object asked for says that this object does not exist; a virtual cluster may well
  // be called like the namespace that was made for it.
  const name = objectNameIn(answer.path);
  const [, resource] = /^\/api\/v1\/(\w+)\/[^/]+$/.exec(answer.path) ?? [];
  const isAbout =
    stringAt(status, 'reason') === 'NotFound' &&
    (name === undefined || stringAt(status, 'details', 'name') === name) &&
    (resource === undefined || stringAt(status, 'details', 'kind') === resource);
  return {
    kind: kind === 'not-found' && !isAbout ? 'unreadable' : kind,
    message: withMore(wordsOf(answer), said),
  };
}

function saidInText(answer: Answer, body: string): ReadFailure {
  const isPlain = body.trim() === '' || contentTypeOf(answer) === 'text/plain';
  const text = isPlain ? body.trim() : '';
  if (isPlain && SPEAKS_PLAIN.has(answer.status)) {
    return { kind: failureKindOf(answer.status), message: withMore(wordsOf(answer), text) };
  }
  // How an API server answers for an API group or version that it does not know (Go, net/http.NotFound).
  // No kind of its own: gateways written in Go answer with the same words.
  const isUnknownPath = answer.status === 404 && text === '404 page not found';
  const message =
    isUnknownPath && answer.path.startsWith('/apis/')
      ? `the server could not find the requested resource (${text})`
      : withMore(notKubernetes(answer), text);
  return { kind: 'unreadable', message };
}

function wordsOf({ status }: Answer): string {
  return `${status} ${STATUS_CODES[status] ?? 'Unknown'}`;
}

function withMore(words: string, more: string): string {
  return more === '' || words.endsWith(` ${more}`)
    ? words
    : `${words}: ${more.slice(0, MAX_READ_CHARS)}`;
}

/** A success that is not what an API server sends: a login page, a portal, half an answer. */
export function unreadable(answer: Answer): Try<never> {
  const message =
    contentTypeOf(answer) === 'application/json'
      ? `the server at ${answer.server} sent an answer that is not complete JSON`
      : notKubernetes(answer);
  return failed({ kind: 'unreadable', message });
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

/** Without parameters. */
export function contentTypeOf(answer: Answer): string {
  return (headerOf(answer, 'content-type') ?? '').split(';')[0]?.trim() ?? '';
}

/** One bounded line. */
export function clause(text: string): string {
  return shorten(plainText(text).replace(/\s+/g, ' ').trim(), MAX_MESSAGE_CHARS);
}

/** What the server wants us to wait: the header (seconds or a date), else the Status object. */
function retryAfterMs(
  header = '',
  status: JsonObject | undefined,
  nowMs: number,
): number | undefined {
  if (/^\d+$/.test(header)) return Number(header) * 1_000;
  const date = Date.parse(header);
  if (!Number.isNaN(date)) return Math.max(0, date - nowMs);
  const seconds = numberAt(status, 'details', 'retryAfterSeconds');
  return seconds === undefined ? undefined : seconds * 1_000;
}

/** A page of 500 objects with managedFields is a few MB; 500 of the largest objects etcd takes are not. */
export const MAX_BODY_MIB = 64;

interface Meaning {
  clause: string;
  /** Without it the next try may go better. A server that was too late once would be so again. */
  end?: 'for good' | 'late';
}

const closedEarly: Meaning = { clause: 'the connection was closed before the answer was complete' };
const late = (clause: string): Meaning => ({ clause, end: 'late' });
const forGood = (clause: string): Meaning => ({ clause, end: 'for good' });
const unknownAuthority = forGood('unknown certificate authority');
const tooLarge = forGood(`the answer is larger than ${MAX_BODY_MIB} MiB`);
const noTls = forGood('the server does not speak TLS (https) on this port');

/** By the code of Node or undici. */
const MEANINGS: Record<string, Meaning | undefined> = {
  ECONNREFUSED: { clause: 'connection refused' },
  ECONNRESET: { clause: 'connection reset' },
  EPIPE: { clause: 'connection reset' },
  ECONNABORTED: { clause: 'connection aborted' },
  UND_ERR_SOCKET: closedEarly,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: closedEarly,
  Z_BUF_ERROR: closedEarly,
  UND_ERR_PRX_CONN: { clause: 'the proxy closed the connection' },
  ENOTFOUND: { clause: 'host not found' },
  EAI_AGAIN: { clause: 'host not found: name resolution does not work at the moment' },
  EHOSTUNREACH: { clause: 'host unreachable' },
  ENETUNREACH: { clause: 'network unreachable' },

  UND_ERR_CONNECT_TIMEOUT: late('no connection within 10 s'),
  ETIMEDOUT: late('connection timed out'),

  CERT_HAS_EXPIRED: forGood('certificate has expired'),
  CERT_NOT_YET_VALID: forGood('certificate is not valid yet'),
  DEPTH_ZERO_SELF_SIGNED_CERT: forGood('unknown certificate authority (self-signed certificate)'),
  SELF_SIGNED_CERT_IN_CHAIN: unknownAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownAuthority,
  CERT_SIGNATURE_FAILURE: forGood('unknown certificate authority (signature does not match)'),
  CERT_UNTRUSTED: unknownAuthority,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: forGood('the server demands a client certificate'),
  'ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_UNKNOWN': forGood(
    'the server does not accept the client certificate',
  ),
  UND_ERR_PRX_TLS: forGood('the certificate of the proxy is not valid for its name'),
  Z_DATA_ERROR: forGood('the answer is damaged (gzip)'),
  UND_ERR_RES_EXCEEDED_MAX_SIZE: tooLarge,
};

/** No answer, or not a whole one. */
export function networkFailure(error: unknown): TryFailure {
  const known = causeChain(error).flatMap(
    (each) => (each instanceof Error && meaningOf(each)) || [],
  );
  const meaning = known.find(({ end }) => end === 'for good') ?? known[0];
  const message = shorten(meaning?.clause ?? describeError(error), 300);
  const kind = meaning?.end === 'late' ? 'timeout' : 'network';
  return { kind, message, again: meaning?.end === undefined ? 'maybe' : undefined };
}

function meaningOf(error: Error): Meaning | undefined {
  const proxy = /^Proxy response \((\d+)\)/.exec(error.message)?.[1];
  if (proxy !== undefined) {
    const clause = `the proxy answered ${proxy} when asked for a connection`;
    return Number(proxy) >= 500 ? { clause } : forGood(clause);
  }
  if (error.name === 'HTTPParserError') return forGood('the answer is not HTTP');
  const code = 'code' in error ? String(error.code) : '';
  if (code !== 'ERR_TLS_CERT_ALTNAME_INVALID') return MEANINGS[code];
  // Node's own sentence lists every name in the certificate.
  return forGood(`certificate is not valid${'host' in error ? ` for ${error.host}` : ''}`);
}
