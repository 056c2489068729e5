import type { Log } from '../base/log.ts';
import type { Clock } from '../base/time.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import type { ForcePlan } from './force-plan.ts';

/** What every step of applying a plan works with. */
export interface Run {
  api: KubernetesApi;
  clock: Clock;
  log: Log;
  /** Aborted: no new write is sent. */
  signal: AbortSignal;
  plan: Pick<ForcePlan, 'namespace' | 'label' | 'orphans'>;
}

/** Writes (or lists) at the same time. A ServiceAccount has few seats in priority and fairness. */
export const CONCURRENCY = 4;

/** Works through `items` in batches, so that whoever asks in between sees the effect of at most one. */
export async function inBatches<T>(
  items: readonly T[],
  work: (batch: readonly T[]) => Promise<'go-on' | 'stop'>,
): Promise<void> {
  for (let start = 0; start < items.length; start += CONCURRENCY) {
    if ((await work(items.slice(start, start + CONCURRENCY))) === 'stop') return;
  }
}
