import { describeError } from '../base/errors.ts';
import { shorten } from '../base/text.ts';

export interface NetworkFailure {
  /** For example `connection refused`. */
  clause: string;
  /** Might the next try go better? */
  isTransient: boolean;
  isTimeout: boolean;
}

const CLAUSES: Record<string, string | undefined> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  ECONNABORTED: 'connection aborted',
  UND_ERR_SOCKET: 'the connection was closed before the answer was complete',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the connection was closed before the answer was complete',
  UND_ERR_PRX_CONN: 'the proxy closed the connection',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host not found: name resolution does not work at the moment',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  UND_ERR_CONNECT_TIMEOUT: 'no connection within 10 s',
  ETIMEDOUT: 'connection timed out',
  Z_BUF_ERROR: 'the connection was closed before the answer was complete',
};

/** What waiting does not change. */
const PERMANENT: Record<string, string | undefined> = {
  CERT_HAS_EXPIRED: 'certificate has expired',
  CERT_NOT_YET_VALID: 'certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'unknown certificate authority (self-signed certificate)',
  SELF_SIGNED_CERT_IN_CHAIN: 'unknown certificate authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'unknown certificate authority',
  UNABLE_TO_GET_ISSUER_CERT: 'unknown certificate authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'unknown certificate authority',
  CERT_SIGNATURE_FAILURE: 'unknown certificate authority (signature does not match)',
  CERT_UNTRUSTED: 'unknown certificate authority',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server does not speak TLS (https) on this port',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the server does not speak TLS (https) on this port',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'the server demands a client certificate',
  'ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_UNKNOWN': 'the server does not accept the client certificate',
  UND_ERR_PRX_TLS: 'the certificate of the proxy is not valid for its name',
  Z_DATA_ERROR: 'the answer is damaged (gzip)',
};

export function describeNetworkError(error: unknown): NetworkFailure {
  const chain = causesOf(error);
  for (const link of chain) {
    const code = codeOf(link);
    const permanent = PERMANENT[code];
    if (permanent !== undefined) return { clause: permanent, isTransient: false, isTimeout: false };
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
      return { clause: wrongName(link), isTransient: false, isTimeout: false };
    }
    const refused = /^Proxy response \((\d+)\)/.exec(link.message);
    if (refused !== null) {
      const clause = `the proxy answered ${refused[1]} when asked for a connection`;
      return { clause, isTransient: Number(refused[1]) >= 500, isTimeout: false };
    }
    if (link.name === 'HTTPParserError') {
      return { clause: 'the answer is not HTTP', isTransient: false, isTimeout: false };
    }
  }
  const known = chain.map(codeOf).find((code) => CLAUSES[code] !== undefined);
  const isTimeout = known === 'UND_ERR_CONNECT_TIMEOUT' || known === 'ETIMEDOUT';
  const clause = (known === undefined ? undefined : CLAUSES[known]) ?? describeError(error);
  // A server that let one try run into its limit would let the next ones do so too.
  return { clause: shorten(clause, 300), isTransient: !isTimeout, isTimeout };
}

/** Node's own sentence lists every name in the certificate. */
function wrongName(error: Error): string {
  const host = 'host' in error && typeof error.host === 'string' ? ` for ${error.host}` : '';
  return `certificate is not valid${host}`;
}

/** Outermost first; all addresses of a host that failed count as one link. */
function causesOf(error: unknown): Error[] {
  const chain: Error[] = [];
  let current = error;
  while (current instanceof Error && chain.length < 8) {
    chain.push(current);
    current = current.cause ?? (current instanceof AggregateError ? current.errors[0] : undefined);
  }
  return chain;
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}
