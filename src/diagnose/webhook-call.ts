import type { CallFailure, ServiceRef } from './error-kinds.ts';

const URL_IN_CALL = /(?:Post|Get) \\?"?(https:\/\/[^\s"\\]{1,2048})/;
const SERVICE_HOST = /^https:\/\/([^./:]{1,63})\.([^./:]{1,63})\.svc(?:[.:/]|$)/;

/** Where a webhook call went and what became of it: `: Post "https://a.b.svc:443/x": <cause>`. */
export function readWebhookCall(rest: string): {
  cause: CallFailure;
  service: ServiceRef | undefined;
  url: string | undefined;
} {
  const url = URL_IN_CALL.exec(rest)?.[1]?.replace(/:$/, '');
  const host = url === undefined ? null : SERVICE_HOST.exec(url);
  const service = host?.[1] && host[2] ? { namespace: host[2], name: host[1] } : undefined;
  return { cause: failureOf(rest), service, url };
}

const FAILURES: [CallFailure, RegExp][] = [
  ['no-endpoints', /no endpoints available for service/],
  ['service-not-found', /service \\?"[^"\\]{1,253}\\?" not found/],
  ['refused', /connection refused/],
  [
    'timeout',
    /deadline exceeded|Client\.Timeout|i\/o timeout|handshake timeout|timed out|request canceled/,
  ],
  ['certificate', /x509: |tls: |certificate/],
];

function failureOf(text: string): CallFailure {
  return FAILURES.find(([, pattern]) => pattern.test(text))?.[0] ?? 'other';
}
