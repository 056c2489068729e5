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
    fault: 'the certificate is from an unknown authority',
    phase: 'connecting',
    tls: { isTrusted: false },
    outcome: 'error',
    says: /unknown certificate authority/,
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
