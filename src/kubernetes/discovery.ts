import { arrayAt, type Json, type JsonObject, stringAt, stringsAt, valueAt } from '../base/json.ts';
import { type Read, readOk } from '../model/read.ts';
import type { Discovery, ResourceType } from '../model/snapshot.ts';
import { unreadable } from './failures.ts';
import { type GetJson, PLAIN_JSON } from './list-and-watch.ts';

/**
 * Media types of aggregated discovery: v2 since Kubernetes 1.30, v2beta1 before. Servers require the parameters
 * in the order g, v, as.
 */
const AGGREGATED = [
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
  'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList',
  PLAIN_JSON,
].join(',');

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
  const parts = await Promise.all(
    documents.map((each) =>
      stringAt(each, 'kind') === 'APIGroupDiscoveryList' ? aggregated(each) : legacy(each, get),
    ),
  );
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

/**
 * Reads one document per group-version, for servers before 1.26 and proxies that remove Accept parameters.
 */
function legacy(document: JsonObject, get: GetJson): Promise<GroupVersion[]> {
  const isCore = stringAt(document, 'kind') === 'APIVersions';
  const groups = isCore ? [document] : arrayAt(document, 'groups');
  const listed = groups.flatMap((entry) => {
    const group = stringAt(entry, 'name') ?? '';
    const preferred = stringAt(entry, 'preferredVersion', 'version');
    return arrayAt(entry, 'versions')
      .flatMap((each) => stringAt(each, 'version') ?? stringAt(each) ?? [])
      .sort((a, b) => Number(b === preferred) - Number(a === preferred))
      .map((version) => ({ group, version }));
  });
  return Promise.all(
    listed.map(async ({ group, version }) => {
      const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
      const answer = await get(path, PLAIN_JSON);
      if (!answer.ok) return { group, version, types: answer };
      const isList = stringAt(answer.value, 'kind') === 'APIResourceList';
      const types = isList
        ? readOk(typesOf(answer.value, group, version))
        : unreadable(`${path} did not answer with an APIResourceList`);
      return { group, version, types };
    }),
  );
}

/**
 * Returns the types in `resources` of either document. The aggregated one uses other names for the same fields.
 */
function typesOf(document: Json, group: string, version: string): ResourceType[] {
  const entries = arrayAt(document, 'resources');
  return entries.flatMap((entry) => {
    const resource = stringAt(entry, 'resource') ?? stringAt(entry, 'name') ?? '';
    const kind = stringAt(entry, 'responseKind', 'kind') ?? stringAt(entry, 'kind') ?? '';
    const namespaced =
      stringAt(entry, 'scope') === 'Namespaced' || valueAt(entry, 'namespaced') === true;
    const isSubresource = resource.includes('/');
    // client-go, and with it the namespace controller, also skips resources without a kind.
    if (resource === '' || kind === '' || isSubresource) return [];
    const scales =
      arrayAt(entry, 'subresources').some((one) => stringAt(one, 'subresource') === 'scale') ||
      entries.some((one) => stringAt(one, 'name') === `${resource}/scale`);
    const verbs = stringsAt(entry, 'verbs');
    return [{ group, version, resource, kind, namespaced, verbs, ...(scales && { scales }) }];
  });
}
