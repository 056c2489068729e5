import type { KubernetesApi } from '../kubernetes/api.ts';
import type { Read } from '../model/read.ts';
import type { WorkloadFacts } from '../model/snapshot.ts';
import { all, many } from './collections.ts';
import { workloadFacts } from './owner-facts.ts';

const PLURALS = {
  Deployment: 'deployments',
  StatefulSet: 'statefulsets',
  DaemonSet: 'daemonsets',
} as const;

/** Deployments, StatefulSets and DaemonSets of one namespace, or of the whole cluster. */
export function readWorkloads(
  api: KubernetesApi,
  signal: AbortSignal,
  namespace?: string,
): Promise<Read<WorkloadFacts[]>> {
  const place = namespace === undefined ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
  const kinds = Object.keys(PLURALS) as (keyof typeof PLURALS)[];
  return all(
    kinds.map((kind) =>
      many(
        api,
        `/apis/apps/v1/${place}${PLURALS[kind]}`,
        (item) => workloadFacts(item, kind),
        signal,
      ),
    ),
  );
}
