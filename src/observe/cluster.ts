import { stringAt } from '../json.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { type Read, read } from '../read.ts';
import { apiServiceFacts, namespaceFacts, nodeFacts } from './facts.ts';
import type { ApiServiceFacts, NamespaceFacts, NodeFacts } from './snapshot.ts';

/** Nodes of a big drained pool; what holds the namespace is plain from the first of them. */
const MAX_NODES = 50;

export async function readVersion(api: KubernetesApi, signal: AbortSignal): Promise<Read<string>> {
  const got = await api.get('/version', { signal });
  return got.ok ? read(stringAt(got.value, 'gitVersion') ?? 'unknown') : got;
}

export async function readApiServices(
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Read<ApiServiceFacts[]>> {
  const services: ApiServiceFacts[] = [];
  const end = await api.list('/apis/apiregistration.k8s.io/v1/apiservices', {
    signal,
    onItem: (item) => services.push(apiServiceFacts(item)),
    onRestart: () => {
      services.length = 0;
    },
  });
  return end.ok ? read(services) : end;
}

/** Namespaces other than this one that wait to be gone: do they wait for the same? */
export async function readTerminatingNamespaces(
  api: KubernetesApi,
  except: string,
  signal: AbortSignal,
): Promise<Read<NamespaceFacts[]>> {
  const found: NamespaceFacts[] = [];
  const end = await api.list('/api/v1/namespaces', {
    signal,
    onItem: (item) => {
      if (stringAt(item, 'metadata', 'deletionTimestamp') === undefined) return;
      const facts = namespaceFacts(item);
      if (facts.name !== except) found.push(facts);
    },
    onRestart: () => {
      found.length = 0;
    },
  });
  return end.ok ? read(found) : end;
}

/** A node that the server does not know is a fact, not a failed read. */
export async function readNodes(
  api: KubernetesApi,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Record<string, Read<NodeFacts>>> {
  const entries = await Promise.all(
    names.slice(0, MAX_NODES).map(async (name): Promise<[string, Read<NodeFacts>]> => {
      const got = await api.get(`/api/v1/nodes/${encodeURIComponent(name)}`, { signal });
      if (got.ok) return [name, read(nodeFacts(got.value))];
      if (got.failure.kind !== 'not-found') return [name, got];
      return [
        name,
        read({
          name,
          exists: false,
          ready: undefined,
          readyReason: undefined,
          readySince: undefined,
          taints: [],
        }),
      ];
    }),
  );
  return Object.fromEntries(entries);
}
