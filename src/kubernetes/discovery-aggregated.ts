import { arrayAt, type Json, type JsonObject, stringAt, stringsAt } from '../base/json.ts';
import type { FailedGroup, ResourceType } from './api.ts';
import type { GroupsRead, ServedGroup } from './discovery-groups.ts';

/** The whole document: `/api` or `/apis` as APIGroupDiscoveryList. */
export function aggregatedGroups(document: JsonObject): GroupsRead {
  const groups: ServedGroup[] = [];
  const failedGroups: FailedGroup[] = [];
  for (const item of arrayAt(document, 'items')) {
    const name = stringAt(item, 'metadata', 'name') ?? '';
    const versions: ServedGroup['versions'] = [];
    for (const entry of arrayAt(item, 'versions')) {
      const version = stringAt(entry, 'version') ?? '';
      // The server's last knowledge of a backend that does not answer; it is not what is there now.
      if (stringAt(entry, 'freshness') === 'Stale') {
        failedGroups.push({ group: name, version, reason: 'freshness: Stale' });
        continue;
      }
      const types = arrayAt(entry, 'resources').flatMap((type) => toType(type, name, version));
      versions.push({ version, types });
    }
    // Versions come in the order of preference, stale ones excepted.
    groups.push({ name, preferredVersion: versions[0]?.version ?? '', versions });
  }
  return { groups, failedGroups };
}

function toType(entry: Json, group: string, version: string): ResourceType[] {
  const resource = stringAt(entry, 'resource');
  const kind = stringAt(entry, 'responseKind', 'kind') ?? '';
  // client-go leaves these out as well, and so does the namespace controller.
  if (resource === undefined || kind === '') return [];
  const categories = stringsAt(entry, 'categories');
  return [
    {
      group,
      version,
      resource,
      kind,
      namespaced: stringAt(entry, 'scope') === 'Namespaced',
      verbs: stringsAt(entry, 'verbs'),
      ...(categories.length === 0 ? {} : { categories }),
    },
  ];
}
