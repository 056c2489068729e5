import { type JsonObject, stringAt } from '../base/json.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { type Read, read } from '../model/read.ts';
import type { NodeFacts } from '../model/snapshot.ts';
import { many } from './collections.ts';
import { nodeFacts } from './facts.ts';

/** Nodes of a big drained pool; what holds the namespace is plain from the first of them. */
const MAX_NODES = 50;

/** Namespaces other than this one that wait to be gone: do they wait for the same? */
export function readTerminatingNamespaces(
  api: KubernetesApi,
  except: string,
  signal: AbortSignal,
): Promise<Read<string[]>> {
  const nameOf = (item: JsonObject): string[] => {
    const name = stringAt(item, 'metadata', 'name') ?? '';
    const isTerminating = stringAt(item, 'metadata', 'deletionTimestamp') !== undefined;
    return isTerminating && name !== except ? [name] : [];
  };
  return many(api, '/api/v1/namespaces', nameOf, signal, { metadataOnly: true });
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
