import { expect, test } from 'vitest';
import { networkFailure } from '../../src/kubernetes/failures.ts';

function coded(code: string, message = 'something', more: object = {}): Error {
  return Object.assign(new Error(message), { code, ...more });
}

test.each([
  { error: coded('ECONNREFUSED'), clause: 'connection refused', again: true },
  {
    // All addresses of a host, as Node reports them.
    error: new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')]),
    clause: 'connection refused',
    again: true,
  },
  {
    error: new TypeError('fetch failed', { cause: coded('ECONNRESET') }),
    clause: 'connection reset',
    again: true,
  },
  {
    error: coded('EAI_AGAIN'),
    clause: 'host not found',
    again: true,
  },
  { error: coded('UND_ERR_CONNECT_TIMEOUT'), clause: 'connection timed out', again: false },
  {
    error: new Error('wrapped', { cause: coded('SELF_SIGNED_CERT_IN_CHAIN') }),
    clause: 'unknown certificate authority',
    again: false,
  },
  {
    error: coded('ERR_TLS_CERT_ALTNAME_INVALID', 'altnames: DNS:a, DNS:b, and so on', {
      host: 'k8s.example',
    }),
    clause: 'certificate is not valid for this host',
    again: false,
  },
  {
    error: new Error('Proxy response (503) !== 200 when HTTP Tunneling'),
    clause: 'the proxy answered 503 when asked for a connection',
    again: true,
  },
  {
    error: coded('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA'),
    clause: 'the server does not accept the client certificate',
    again: false,
  },
  {
    // A gateway that restarts has no certificate yet.
    error: coded('ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE', 'handshake failure'),
    clause: 'handshake failure (ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE)',
    again: true,
  },
  { error: coded('EWHATEVER', 'it broke'), clause: 'it broke (EWHATEVER)', again: true },
  { error: 'thrown text', clause: 'thrown text', again: true },
  { error: undefined, clause: 'unknown error', again: true },
])('$clause', ({ error, clause, again }) => {
  const described = networkFailure(error);
  expect(described.message).toBe(clause);
  expect(described.again).toBe(again ? 'maybe' : undefined);
});

test('a connection that takes too long is a timeout, not a broken network', () => {
  expect(networkFailure(coded('UND_ERR_CONNECT_TIMEOUT')).kind).toBe('timeout');
  expect(networkFailure(coded('ECONNRESET')).kind).toBe('network');
});
