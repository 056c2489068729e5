import { redirectToItself, reply } from '../../stub/faults.ts';
import type { FaultRow } from './row.ts';

/** Nothing listens on port 9 of loopback, and `.invalid` never resolves. */
const NOBODY = 'http://127.0.0.1:9';

export const CONNECTING: readonly FaultRow[] = [
  {
    fault: 'nobody listens',
    phase: 'connecting',
    server: () => NOBODY,
    outcome: 'error',
    says: /cannot get namespace "preview-pr-42" on http:\/\/127\.0\.0\.1:9: connection refused/,
  },
  {
    fault: 'the host has no address',
    phase: 'connecting',
    server: () => 'https://api.no-such-cluster.invalid:6443',
    outcome: 'error',
    says: /on https:\/\/api\.no-such-cluster\.invalid:6443: host not found/,
  },
  {
    fault: 'the certificate is from an unknown authority',
    phase: 'connecting',
    tls: { isTrusted: false },
    outcome: 'error',
    says: /unknown certificate authority/,
  },
  {
    fault: 'the certificate has expired',
    phase: 'connecting',
    tls: { isExpired: true },
    outcome: 'error',
    says: /certificate has expired/,
  },
  {
    fault: 'the certificate is for another name',
    phase: 'connecting',
    tls: { hosts: ['api.example.com'] },
    outcome: 'error',
    says: /certificate is not valid for 127\.0\.0\.1/,
  },
  {
    fault: 'https is asked of a server without TLS',
    phase: 'connecting',
    server: (url) => url.replace('http://', 'https://'),
    outcome: 'error',
    says: /does not speak TLS/,
  },
  {
    fault: 'http is asked of a server with TLS',
    phase: 'connecting',
    tls: {},
    server: (url) => url.replace('https://', 'http://'),
    outcome: 'error',
    says: /the connection was closed|connection reset/,
  },
  {
    fault: 'the server offers HTTP/2, whose GOAWAY would end every request at once',
    phase: 'connecting',
    tls: { protocols: ['h2', 'http/1.1'] },
    outcome: 'stuck',
    says: /preview-pr-42 is stuck/,
    rootCauses: ['owner-missing'],
    check: ({ proxy }) => proxy.protocols.filter((agreed) => agreed === 'h2').map(String),
  },
  {
    fault: 'the path prefix of the server is wrong',
    phase: 'connecting',
    server: (url) => `${url}/k8s/clusters/c-1`,
    outcome: 'error',
    says: /404/,
  },
  {
    fault: 'every request is redirected to itself',
    phase: 'connecting',
    rules: [{ request: /./, fault: redirectToItself }],
    outcome: 'error',
    says: /did not answer like a Kubernetes API server \(302/,
    check: ({ proxy }) =>
      proxy.lines.length < 10 ? [] : [`asked ${proxy.lines.length} times: it followed`],
  },
  {
    fault: 'a proxy answers everything itself',
    phase: 'connecting',
    rules: [{ request: /./, fault: reply(200, 'ok') }],
    outcome: 'error',
    says: /did not answer like a Kubernetes API server \(200, text\/plain\)/,
  },
];
