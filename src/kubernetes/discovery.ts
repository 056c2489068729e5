import { arrayAt, type Json, stringAt, stringsAt } from '../base/json.ts';
import { type Read, readOk } from '../model/read.ts';
import type { Discovery, ResourceType } from '../model/snapshot.ts';
import { unreadable } from './failures.ts';
import { type GetJson, PLAIN_JSON } from './list-and-watch.ts';
import { isPathSegment } from './paths.ts';

/** v2 since Kubernetes 1.30, v2beta1 since 1.26. Servers require the parameters in the order g, v, as. */
const AGGREGATED = [
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
  'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList',
  PLAIN_JSON,
].join(',');

/** Reads each type in the first version that has it, as the namespace controller (client-go, ServerPreferredResources). */
export async function discoverTypes(get: GetJson): Promise<Read<Discovery>> {
  const chosen = new Map<string, ResourceType>();
  const failedGroups: Discovery['failedGroups'] = [];
  for (const answer of await Promise.all([get('/api', AGGREGATED), get('/apis', AGGREGATED)])) {
    if (!answer.ok) return answer;
    const items = arrayAt(answer.value, 'items');
    // No groups at all means an invalid answer, not an empty server.
    if (stringAt(answer.value, 'kind') !== 'APIGroupDiscoveryList' || items.length === 0)
      return unreadable(
        'the server does not answer with aggregated discovery: Kubernetes 1.26 or later is needed, and a proxy must leave the header Accept as it is',
      );
    for (const item of items) {
      const group = stringAt(item, 'metadata', 'name') ?? '';
      for (const entry of arrayAt(item, 'versions')) {
        const version = stringAt(entry, 'version') ?? '';
        // A stale entry is what the server last knew of a backend that does not respond. It may be outdated.
        if (stringAt(entry, 'freshness') === 'Stale') {
          const reason = 'the API server has only an old list of its types (freshness: Stale)';
          failedGroups.push({ group, version, reason });
          continue;
        }
        for (const type of typesOf(entry, group, version)) {
          const name = `${type.resource}.${group}`;
          if (!chosen.has(name)) chosen.set(name, type);
        }
      }
    }
  }
  return readOk({ types: [...chosen.values()], failedGroups });
}

function typesOf(document: Json, group: string, version: string): ResourceType[] {
  return arrayAt(document, 'resources').flatMap((entry) => {
    const resource = stringAt(entry, 'resource') ?? '';
    const kind = stringAt(entry, 'responseKind', 'kind') ?? '';
    // client-go, and with it the namespace controller, also skips resources without a kind. No path can name "..".
    if (kind === '' || ![group || 'v1', version, resource].every(isPathSegment)) return [];
    const namespaced = stringAt(entry, 'scope') === 'Namespaced';
    return [{ group, version, resource, kind, namespaced, verbs: stringsAt(entry, 'verbs') }];
  });
}
