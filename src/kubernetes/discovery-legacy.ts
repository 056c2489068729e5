import { arrayAt, at, type Json, type JsonObject, stringAt, stringsAt } from '../base/json.ts';
import type { FailedGroup, ResourceType } from './api.ts';
import type { GroupsRead, ServedGroup } from './discovery-groups.ts';
import { type GetJson, PLAIN_JSON } from './list.ts';

interface GroupVersion {
  group: string;
  version: string;
}

/** Servers before 1.26, and proxies that drop Accept parameters: one request per group-version. */
export async function legacyGroups(document: JsonObject, get: GetJson): Promise<GroupsRead> {
  const listed = stringAt(document, 'kind') === 'APIVersions' ? core(document) : named(document);
  const failedGroups: FailedGroup[] = [];
  const groups = await Promise.all(
    listed.map(async ({ name, preferredVersion, versions }): Promise<ServedGroup> => {
      const results = await Promise.all(
        versions.map(async (version) => {
          const types = await typesOf({ group: name, version }, get);
          if ('reason' in types) failedGroups.push({ group: name, version, reason: types.reason });
          return { version, types: 'reason' in types ? undefined : types };
        }),
      );
      return {
        name,
        preferredVersion,
        versions: results.flatMap(({ version, types }) =>
          types === undefined ? [] : [{ version, types }],
        ),
      };
    }),
  );
  return { groups, failedGroups };
}

type ListedGroup = { name: string; preferredVersion: string; versions: string[] };

function core(document: JsonObject): ListedGroup[] {
  const versions = stringsAt(document, 'versions');
  return [{ name: '', preferredVersion: versions[0] ?? '', versions }];
}

function named(document: JsonObject): ListedGroup[] {
  return arrayAt(document, 'groups').map((group) => ({
    name: stringAt(group, 'name') ?? '',
    preferredVersion: stringAt(group, 'preferredVersion', 'version') ?? '',
    versions: arrayAt(group, 'versions').flatMap((entry) => stringAt(entry, 'version') ?? []),
  }));
}

async function typesOf(
  of: GroupVersion,
  get: GetJson,
): Promise<ResourceType[] | { reason: string }> {
  const path = of.group === '' ? `/api/${of.version}` : `/apis/${of.group}/${of.version}`;
  const answer = await get(path, PLAIN_JSON);
  if (!answer.ok) return { reason: answer.failure.message };
  if (stringAt(answer.value, 'kind') !== 'APIResourceList') {
    return { reason: `${path} did not answer with an APIResourceList` };
  }
  return arrayAt(answer.value, 'resources').flatMap((entry) => toType(entry, of));
}

function toType(entry: Json, of: GroupVersion): ResourceType[] {
  const resource = stringAt(entry, 'name') ?? '';
  const isSubresource = resource.includes('/');
  if (resource === '' || isSubresource) return [];
  const categories = stringsAt(entry, 'categories');
  return [
    {
      ...of,
      resource,
      kind: stringAt(entry, 'kind') ?? '',
      namespaced: at(entry, 'namespaced') === true,
      verbs: stringsAt(entry, 'verbs'),
      ...(categories.length === 0 ? {} : { categories }),
    },
  ];
}
