import { type JsonObject, stringAt } from '../base/json.ts';
import { failed, type Read, read } from '../model/read.ts';
import type { Discovery, ResourceType } from './api.ts';
import { aggregatedGroups } from './discovery-aggregated.ts';
import type { ServedGroup } from './discovery-groups.ts';
import { legacyGroups } from './discovery-legacy.ts';
import type { GetJson } from './list.ts';

/** v2 since Kubernetes 1.30, v2beta1 before; servers demand the parameters in the order g, v, as. */
const AGGREGATED = [
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
  'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList',
  'application/json',
].join(',');

export async function discoverTypes(get: GetJson): Promise<Read<Discovery>> {
  const [core, named] = await Promise.all([get('/api', AGGREGATED), get('/apis', AGGREGATED)]);
  if (!core.ok) return core;
  if (!named.ok) return named;
  const documents = [core.value, named.value];
  const parts = await Promise.all(
    documents.map((document) =>
      isAggregated(document) ? aggregatedGroups(document) : legacyGroups(document, get),
    ),
  );
  const empty = parts.findIndex((part) => part.groups.length + part.failedGroups.length === 0);
  if (empty !== -1) return namesNothing(empty === 0 ? '/api' : '/apis');
  return read({
    types: parts.flatMap((part) => part.groups).flatMap(preferredTypes),
    failedGroups: parts.flatMap((part) => part.failedGroups),
    aggregated: documents.every(isAggregated),
  });
}

/** Every API server has types of its own below both: none at all is no answer, and not "empty". */
function namesNothing(path: string): Read<never> {
  return failed({
    kind: 'unreadable',
    message: `the server names no resource types below ${path}, which every API server has`,
  });
}

function isAggregated(document: JsonObject): boolean {
  return stringAt(document, 'kind') === 'APIGroupDiscoveryList';
}

/**
 * As the namespace controller sees it (client-go, ServerPreferredResources): each type in the group's
 * preferred version, or in the first version that has it.
 */
function preferredTypes(group: ServedGroup): ResourceType[] {
  const chosen = new Map<string, ResourceType>();
  for (const { version, types } of group.versions) {
    for (const type of types) {
      if (chosen.has(type.resource) && version !== group.preferredVersion) continue;
      chosen.set(type.resource, type);
    }
  }
  return [...chosen.values()];
}
