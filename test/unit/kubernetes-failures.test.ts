import { expect, test } from 'vitest';
import { networkFailure } from '../../src/kubernetes/failures.ts';

function coded(code: string, message = 'something', more: object = {}): Error {
  return Object.assign(new Error(message), { code, ...more });
}

const refused = coded('ECONNREFUSED');
const HOST = { host: 'k8s.example' };
const PROXY = 'Proxy response (503) !== 200 when HTTP Tunneling';
const HANDSHAKE = 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE';

test.each<[error: unknown, clause: string, again: boolean]>([
  [refused, 'connection refused', true],
  // All addresses of a host, as Node reports them.
  [new AggregateError([refused, coded('ENETUNREACH')]), 'connection refused', true],
  [new TypeError('fetch failed', { cause: coded('ECONNRESET') }), 'connection reset', true],
  [coded('EAI_AGAIN'), 'host not found', true],
  [coded('UND_ERR_CONNECT_TIMEOUT'), 'connection timed out', false],
  [
    new Error('wrapped', { cause: coded('SELF_SIGNED_CERT_IN_CHAIN') }),
    ...(['unknown certificate authority', false] as const),
  ],
  [
    coded('ERR_TLS_CERT_ALTNAME_INVALID', 'altnames: DNS:a, DNS:b, and so on', HOST),
    ...(['certificate is not valid for this host', false] as const),
  ],
  [new Error(PROXY), 'the proxy answered 503 when asked for a connection', true],
  [
    coded('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA'),
    ...(['the server does not accept the client certificate', false] as const),
  ],
  // A gateway that restarts has no certificate yet.
  [coded(HANDSHAKE, 'handshake failure'), `handshake failure (${HANDSHAKE})`, true],
  [coded('EWHATEVER', 'it broke'), 'it broke (EWHATEVER)', true],
  ['thrown text', 'thrown text', true],
  [undefined, 'unknown error', true],
])('%s is described as %j', (error, clause, again) => {
  const described = networkFailure(error);
  expect(described.message).toBe(clause);
  expect(described.again).toBe(again ? 'maybe' : undefined);
});

test('a connection that takes too long is a timeout, not a broken network', () => {
  expect(networkFailure(coded('UND_ERR_CONNECT_TIMEOUT')).kind).toBe('timeout');
  expect(networkFailure(coded('ECONNRESET')).kind).toBe('network');
});
