import type { Remedy } from '../../model/finding.ts';
import type { CallFailure, ServiceRef } from '../error-kinds.ts';
import { kubectl, named } from './commands.ts';

/** How to get an answer again from what is behind a Service (or, without one, behind a URL). */
export function serviceRemedy(
  service: ServiceRef | undefined,
  text?: string,
  cause: CallFailure = 'other',
): Remedy {
  if (service === undefined) return { text: text ?? `Make the webhook answer${CURES[cause]}` };
  const { namespace, name } = service;
  const place = `Service ${namespace}/${name}`;
  if (cause === 'service-not-found') {
    return {
      text: text ?? `Bring ${place} back: install again what served it`,
      command: kubectl('get', 'all', '-n', namespace),
    };
  }
  if (cause === 'certificate') {
    return {
      text: text ?? `Renew the certificate of ${place}, or the caBundle that should trust it`,
      command: kubectl('describe', ...named('service', name), '-n', namespace),
    };
  }
  return {
    text:
      text ??
      `Bring a ready pod behind ${place}${cause === 'no-endpoints' ? '' : ` that answers${CURES[cause]}`}`,
    command: kubectl(
      'get',
      'endpointslices',
      '-n',
      namespace,
      '-l',
      `kubernetes.io/service-name=${name}`,
    ),
  };
}

const CURES: Record<CallFailure, string> = {
  'service-not-found': ' again',
  'no-endpoints': ' again',
  refused: ' on its port',
  certificate: ' with a certificate that its caBundle trusts',
  timeout: ' within its timeoutSeconds',
  other: ' as the API server expects',
};
