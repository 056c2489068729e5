import type { Clock } from '../base/time.ts';
import { serverTimestamp } from '../base/time.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { read } from '../model/read.ts';
import type { NamespaceFacts, PodFacts, Snapshot } from '../model/snapshot.ts';
import { readNodes } from './cluster.ts';
import { sweep, sweepableTypes } from './sweep.ts';

export interface ObserveDeps {
  api: KubernetesApi;
  clock: Clock;
  /** Ends the reading; what was not read by then is "not inspected". */
  signal: AbortSignal;
}

/**
 * Reads the cluster into plain data. Never throws and never judges: what could not be read stays in
 * the snapshot as a failed read.
 */
export async function observe(namespace: NamespaceFacts, deps: ObserveDeps): Promise<Snapshot> {
  const { api, signal } = deps;
  const takenAt = serverTimestamp(deps);
  const discovery = await api.discover({ signal });
  const types = discovery.ok ? sweepableTypes(discovery.value.types) : [];
  const swept = await sweep(api, namespace.name, types, signal);
  const nodes = swept.pods.ok
    ? await readNodes(api, nodesOfOverdue(swept.pods.value, takenAt), signal)
    : {};
  return {
    takenAt,
    namespace,
    discovery: discovery.ok
      ? read({
          namespacedTypes: types.length,
          groups: [...new Set(discovery.value.types.map(({ group }) => group))].filter(Boolean),
          failedGroups: discovery.value.failedGroups,
        })
      : discovery,
    content: swept.content,
    pods: swept.pods,
    nodes,
  };
}

/** Pods whose grace period is over, by the server's clock, wait for the kubelet of their node. */
function nodesOfOverdue(pods: readonly PodFacts[], now: string): string[] {
  const names = pods
    .filter(
      (pod) =>
        pod.deletionTimestamp !== undefined && Date.parse(pod.deletionTimestamp) <= Date.parse(now),
    )
    .flatMap((pod) => pod.nodeName ?? []);
  return [...new Set(names)];
}
