import { stringAt } from '../base/json.ts';
import type { KubernetesApi, ResourceType } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { failed, type Read, read } from '../model/read.ts';
import {
  type ContentCount,
  MAX_POD_FACTS,
  type PodFacts,
  type TypeContent,
} from '../model/snapshot.ts';
import { podFacts } from './facts.ts';
import { ContentFold } from './fold.ts';

/** As many as the client sends at once: more would stand in the way of the calls that notice the end. */
const CONCURRENT_LISTS = 8;

export interface Swept {
  content: TypeContent[];
  pods: Read<PodFacts[]>;
}

/**
 * What the namespace controller will try to empty: namespaced types with `delete`. Those without
 * `list` cannot be looked at by anybody and count as empty for the controller as well
 * (kubernetes/pkg/controller/namespace/deletion/namespaced_resources_deleter.go).
 */
export function sweepableTypes(types: readonly ResourceType[]): ResourceType[] {
  const wanted = types.filter(
    (type) => type.namespaced && type.verbs.includes('list') && type.verbs.includes('delete'),
  );
  // One storage behind two groups: counted once.
  const hasCoreEvents = wanted.some((type) => type.group === '' && type.resource === 'events');
  return wanted.filter(
    (type) => !(hasCoreEvents && type.group === 'events.k8s.io' && type.resource === 'events'),
  );
}

export function isPods(type: ResourceType): boolean {
  return type.group === '' && type.resource === 'pods';
}

/** Lists every type in the namespace, pods first and in full, the others as metadata. */
export async function sweep(
  api: KubernetesApi,
  namespace: string,
  types: readonly ResourceType[],
  signal: AbortSignal,
): Promise<Swept> {
  const ordered = [...types.filter(isPods), ...types.filter((type) => !isPods(type))];
  const results = new Array<TypeContent>(ordered.length);
  const pods: PodFacts[] = [];
  let podsRead: Read<PodFacts[]> = failed({
    kind: 'not-found',
    message: 'the server does not serve pods',
  });
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < ordered.length; index = next++) {
      const type = ordered[index] as ResourceType;
      const content = await readType(api, namespace, type, signal, isPods(type) ? pods : undefined);
      results[index] = { type, read: content };
      if (isPods(type)) podsRead = content.ok ? read(pods) : content;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_LISTS }, worker));
  return { content: results, pods: podsRead };
}

async function readType(
  api: KubernetesApi,
  namespace: string,
  type: ResourceType,
  signal: AbortSignal,
  pods: PodFacts[] | undefined,
): Promise<Read<ContentCount>> {
  const fold = new ContentFold(type);
  const end = await api.list(collectionPath(type, namespace), {
    signal,
    metadataOnly: pods === undefined,
    onItem: (item) => {
      // A broken extension API server may ignore the namespace in the path.
      const owner = stringAt(item, 'metadata', 'namespace');
      if (owner !== undefined && owner !== namespace) return;
      const facts = fold.add(item);
      if (pods !== undefined && facts !== undefined && pods.length < MAX_POD_FACTS) {
        pods.push(podFacts(item, type));
      }
    },
    onRestart: () => {
      fold.reset();
      if (pods !== undefined) pods.length = 0;
    },
  });
  // 404 and 405 on a listed type: the controller takes it for empty too, but we say what we saw.
  return end.ok ? read(fold.result()) : end;
}
