import type { Clock } from './clock.ts';
import type { KubernetesApi } from './kubernetes/api.ts';

/**
 * Now, by the API server's clock. Deletion timestamps, grace periods and Leases are the server's, and a
 * runner's clock may be wrong by hours: every time that is compared or reported is the server's.
 */
export function serverTime(deps: {
  api: Pick<KubernetesApi, 'clockOffsetMs'>;
  clock: Clock;
}): number {
  return deps.clock.now() + deps.api.clockOffsetMs();
}

/** The same as ISO 8601. */
export function serverTimestamp(deps: Parameters<typeof serverTime>[0]): string {
  return new Date(serverTime(deps)).toISOString();
}
