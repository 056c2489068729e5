import { arrayAt, type Json, type JsonObject, stringAt, stringsAt } from '../base/json.ts';
import { type Read, readOk } from '../model/read.ts';
import type { Discovery, ResourceType } from '../model/snapshot.ts';
import { unreadable } from './failures.ts';
import { type GetJson, PLAIN_JSON } from './list-and-watch.ts';

/**
 * Media types of aggregated discovery: v2 since Kubernetes 1.30, v2beta1 since 1.26. Servers require the parameters
 * in the order g, v, as. An older server answers in plain JSON.
 */
const AGGREGATED = [
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
  'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList',
  PLAIN_JSON,
].join(',');
const TOO_OLD =
  'the server does not answer with aggregated discovery: Kubernetes 1.26 or later is needed, and a proxy must leave the header Accept as it is';

interface GroupVersion {
  group: string;
  version: string;
  types: Read<ResourceType[]>;
}

export async function discoverTypes(get: GetJson): Promise<Read<Discovery>> {
  const [core, named] = await Promise.all([get('/api', AGGREGATED), get('/apis', AGGREGATED)]);
  if (!core.ok) return core;
  if (!named.ok) return named;
  const documents = [core.value, named.value];
  const isOld = (each: JsonObject) =>
    /^API(?:Versions|GroupList)$/.test(stringAt(each, 'kind') ?? '');
  if (documents.some(isOld)) return unreadable(TOO_OLD);
  const parts = documents.map(aggregated);
  const empty = parts.findIndex((part) => part.length === 0);
  if (empty !== -1) {
    const path = empty === 0 ? '/api' : '/apis';
    // No groups at all means an invalid answer, not an empty server.
    return unreadable(
      `the server names no resource types below ${path}, which every API server has`,
    );
  }
  // The namespace controller chooses in the same way (client-go, ServerPreferredResources): each type in the
  // first version that has it. The preferred version comes first.
  const chosen = new Map<string, ResourceType>();
  const failedGroups: Discovery['failedGroups'] = [];
  for (const { group, version, types } of parts.flat()) {
    if (!types.ok) failedGroups.push({ group, version, reason: types.failure.message });
    for (const type of types.ok ? types.value : []) {
      const name = `${type.resource}.${group}`;
      if (!chosen.has(name)) chosen.set(name, type);
    }
  }
  return readOk({ types: [...chosen.values()], failedGroups });
}

/** Returns the group-versions of an APIGroupDiscoveryList, in the order of preference. */
function aggregated(document: JsonObject): GroupVersion[] {
  if (stringAt(document, 'kind') !== 'APIGroupDiscoveryList') return [];
  return arrayAt(document, 'items').flatMap((item) => {
    const group = stringAt(item, 'metadata', 'name') ?? '';
    return arrayAt(item, 'versions').map((entry) => {
      const version = stringAt(entry, 'version') ?? '';
      // A stale entry is what the server last knew of a backend that does not respond. It may be outdated.
      const isStale = stringAt(entry, 'freshness') === 'Stale';
      const types = typesOf(entry, group, version);
      return {
        group,
        version,
        types: isStale
          ? unreadable('the API server has only an old list of its types (freshness: Stale)')
          : readOk(types),
      };
    });
  });
}

function typesOf(document: Json, group: string, version: string): ResourceType[] {
  return arrayAt(document, 'resources').flatMap((entry) => {
    const resource = stringAt(entry, 'resource') ?? '';
    const kind = stringAt(entry, 'responseKind', 'kind') ?? '';
    // client-go, and with it the namespace controller, also skips resources without a kind.
    if (resource === '' || kind === '' || resource.includes('/')) return [];
    const namespaced = stringAt(entry, 'scope') === 'Namespaced';
    const scales = arrayAt(entry, 'subresources').some(
      (one) => stringAt(one, 'subresource') === 'scale',
    );
    const verbs = stringsAt(entry, 'verbs');
    return [{ group, version, resource, kind, namespaced, verbs, ...(scales && { scales }) }];
  });
}
