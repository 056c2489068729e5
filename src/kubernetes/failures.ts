import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http';
import { causeChain, describeError, errorCode } from '../base/errors.ts';
import { type JsonObject, numberAt, parseObject, stringAt } from '../base/json.ts';
import { plainText, shortQuote } from '../base/text.ts';
import { failureKindOf, readFailed } from '../model/read.ts';
import { objectNameIn } from './paths.ts';
import type { Try, TryFailure } from './retry.ts';

export interface Answer {
  server: string;
  path: string;
  status: number;
  headers: IncomingHttpHeaders;
}

const MAX_MESSAGE_CHARS = 500;
/** Far beyond what is shown, so that the cut cannot split a secret that would be visible. */
const MAX_READ_CHARS = 8_000;

const TRANSIENT = [429, 500, 502, 503, 504];
/** Statuses whose body need not be a Status: overload protection, the aggregator and authorizers send plain text. */
const PLAIN_TEXT_STATUSES = [401, 403, ...TRANSIENT];
/** The answer to a path that is not served, such as an API group that was removed (apiserver pkg/server/mux/pathrecorder.go). */
const UNKNOWN_PATH = '404 page not found';
const NOT_SERVED = 'the server does not serve this path; its API group may have been removed';
/** Message of a 429 that is not about load (apiserver pkg/storage/cacher/ready.go). */
const BROKEN_CACHE = 'storage is (re)initializing';

export function refusedAnswer(answer: Answer, text: string): Try<never> {
  const { status, path } = answer;
  const body = parseObject(text);
  const isPlain = text.trim() === '' || contentTypeOf(answer) === 'text/plain';
  let kind = failureKindOf(status);
  let words = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`;
  // A gateway in front of the API server answers in JSON of its own: Rancher in `message`, Google in `error`.
  const said = stringAt(body, 'message') || stringAt(body, 'error', 'message');
  const more = said || stringAt(body, 'reason') || (isPlain ? text.trim() : '');
  if (body?.['kind'] === 'Status') {
    if (kind === 'not-found' && !saysNotFound(body, path)) kind = 'unreadable';
  } else if (!(isPlain || body) || !PLAIN_TEXT_STATUSES.includes(status)) {
    kind = 'unreadable';
    const isGroup = path.startsWith('/apis/') && text.trim() === UNKNOWN_PATH;
    words = isGroup ? `${words}: ${NOT_SERVED}` : notKubernetes(answer);
  }
  const isBusy = status === 429 && !text.includes(BROKEN_CACHE);
  const isSaid = more === '' || words.endsWith(` ${more}`);
  const seconds = headerOf(answer, 'retry-after') ?? numberAt(body, 'details', 'retryAfterSeconds');
  return readFailed({
    ...{ kind, status, message: isSaid ? words : `${words}: ${more.slice(0, MAX_READ_CHARS)}` },
    again: isBusy ? 'busy' : TRANSIENT.includes(status) ? 'maybe' : undefined,
    retryAfterMs: (Number(seconds) || 0) * 1_000,
  });
}

/** Gateways also answer with Status objects ("cluster not found"), and a virtual cluster may be named as its namespace. */
function saysNotFound(status: JsonObject, path: string): boolean {
  const name = objectNameIn(path);
  const [, resource] = /^\/api\/v1\/(\w+)\/[^/]+$/.exec(path) ?? [];
  return (
    stringAt(status, 'reason') === 'NotFound' &&
    (name === undefined || stringAt(status, 'details', 'name') === name) &&
    (resource === undefined || stringAt(status, 'details', 'kind') === resource)
  );
}

/** A success that an API server does not send: a login page, half an answer. */
export function unreadableAnswer(answer: Answer): Try<never> {
  const isCut = contentTypeOf(answer) === 'application/json';
  const cut = `the server at ${answer.server} sent an answer that is not complete JSON`;
  return unreadable(isCut ? cut : notKubernetes(answer));
}

export function unreadable(message: string): Try<never> {
  return readFailed({ kind: 'unreadable', message });
}

function notKubernetes(answer: Answer): string {
  const to = URL.parse(headerOf(answer, 'location') ?? '')?.host;
  const type = contentTypeOf(answer) || 'no content type';
  const redirect = to === undefined ? '' : `, a redirect to ${to}`;
  return `the server at ${answer.server} did not answer like a Kubernetes API server (${answer.status}, ${type}${redirect})`;
}

/** A proxy may add a header that the server has sent already: undici gives a list then. */
export function headerOf({ headers }: Pick<Answer, 'headers'>, name: string): string | undefined {
  return [headers[name]].flat()[0];
}

export function contentTypeOf(answer: Answer): string {
  return (headerOf(answer, 'content-type') ?? '').split(';')[0]?.trim() ?? '';
}

export function shortLine(text: string): string {
  return shortQuote(plainText(text), MAX_MESSAGE_CHARS);
}

/** A page of 500 objects with managedFields has a few MB; one of the largest objects that etcd accepts is larger. */
export const MAX_BODY_MIB = 64;

/** Clauses for the error codes of Node and undici. `end`: another attempt is useless. */
const CLAUSES: readonly (readonly [code: RegExp, clause: string, end?: 'for good' | 'late'])[] = [
  [/^ECONNREFUSED$/, 'connection refused'],
  [/^(?:ECONNRESET|EPIPE)$/, 'connection reset'],
  [
    /^(?:UND_ERR_SOCKET|UND_ERR_RES_CONTENT_LENGTH_MISMATCH|Z_BUF_ERROR)$/,
    'the connection was closed before the answer was complete',
  ],
  [/^(?:ENOTFOUND|EAI_AGAIN)$/, 'host not found'],
  [/^(?:UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, 'connection timed out', 'late'],
  [
    /^CERT_HAS_EXPIRED$/,
    'the certificate of the server has expired, or the clock here is wrong',
    'for good',
  ],
  // Node's own message lists every name in the certificate.
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'certificate is not valid for this host', 'for good'],
  [/SELF_SIGNED|^UNABLE_TO_|^CERT_/, 'unknown certificate authority', 'for good'],
  [
    /^ERR_SSL_.*ALERT_(?:.*CERTIFICATE|UNKNOWN_CA)/,
    'the server does not accept the client certificate',
    'for good',
  ],
  [
    /^ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/,
    'the server does not speak TLS (https) on this port',
    'for good',
  ],
  [/^HPE_/, 'the answer is not HTTP', 'for good'],
  [/^Z_DATA_ERROR$/, 'the answer is damaged (gzip)', 'for good'],
  [
    /^(?:UND_ERR_RES_EXCEEDED_MAX_SIZE|ERR_BUFFER_TOO_LARGE)$/,
    `the answer is larger than ${MAX_BODY_MIB} MiB`,
    'for good',
  ],
];

export function networkFailure(error: unknown): TryFailure {
  const chain = causeChain(error);
  const known = chain.flatMap((each) =>
    CLAUSES.filter(([code]) => code.test(errorCode(each))).slice(0, 1),
  );
  const [, clause, end] = known.find((one) => one[2] === 'for good') ?? known[0] ?? [];
  const proxy = chain.join(' ').match(/Proxy response \((\d+)\)/)?.[1];
  const refused = proxy && `the proxy answered ${proxy} when asked for a connection`;
  const isFinal = end !== undefined || Number(proxy) < 500;
  return {
    kind: end === 'late' ? 'timeout' : 'network',
    message: refused ?? clause ?? describeError(error),
    again: isFinal ? undefined : 'maybe',
  };
}
