import { arrayAt, isObject, type JsonObject, stringAt, stringsAt } from '../../src/base/json.ts';
import type { ResourceType } from '../../src/model/snapshot.ts';
import type { Client, KubeObject } from './client.ts';

/** Every type the server serves, in its preferred version, from aggregated discovery. */
export async function servedTypes(client: Client): Promise<ResourceType[]> {
  const accept = {
    accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
  };
  const documents = await Promise.all(
    ['/api', '/apis'].map((path) => client.call('GET', path, undefined, accept)),
  );
  return documents.flatMap(({ body }) => arrayAt(body, 'items').flatMap(typesOfGroup));
}

function typesOfGroup(item: unknown): ResourceType[] {
  if (!isObject(item)) return [];
  const group = stringAt(item, 'metadata', 'name') ?? '';
  const seen = new Set<string>();
  return arrayAt(item, 'versions').flatMap((version) =>
    arrayAt(version, 'resources').flatMap((resource) => {
      const name = stringAt(resource, 'resource') ?? '';
      if (seen.has(name)) return []; // an earlier version is preferred
      seen.add(name);
      return {
        group,
        version: stringAt(version, 'version') ?? '',
        resource: name,
        kind: stringAt(resource, 'responseKind', 'kind') ?? '',
        namespaced: stringAt(resource, 'scope') === 'Namespaced',
        verbs: stringsAt(resource, 'verbs'),
      };
    }),
  );
}

export function apiVersionOf({ group, version }: Pick<ResourceType, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

export interface Listed {
  type: ResourceType;
  objects: KubeObject[];
  /** Why it could not be listed. */
  error?: string;
}

/** All that a namespace holds, of every type that can be listed there. */
export async function contentOf(client: Client, namespace: string): Promise<Listed[]> {
  const types = await servedTypes(client);
  return Promise.all(
    types
      .filter((type) => type.namespaced && type.verbs.includes('list'))
      // The same Events are served twice.
      .filter((type) => !(type.group === 'events.k8s.io' && type.resource === 'events'))
      .map((type) => listOf(client, type, namespace)),
  );
}

export async function listOf(
  client: Client,
  type: ResourceType,
  namespace?: string,
): Promise<Listed> {
  try {
    return { type, objects: await client.list(apiVersionOf(type), type.kind, namespace) };
  } catch (error) {
    return { type, objects: [], error: error instanceof Error ? error.message : String(error) };
  }
}

/** A namespace in a few lines, for people. */
export async function describeNamespace(client: Client, name: string): Promise<string[]> {
  const namespace = await client.find({ apiVersion: 'v1', kind: 'Namespace', name });
  if (namespace === undefined) return [`namespace ${name}: not there`];
  const content = await contentOf(client, name);
  return [
    `namespace ${name}: ${stringAt(namespace, 'status', 'phase')}, metadata.finalizers ${list(namespace, 'metadata', 'finalizers')}, spec.finalizers ${list(namespace, 'spec', 'finalizers')}`,
    ...arrayAt(namespace, 'status', 'conditions').map(
      (condition) =>
        `  ${stringAt(condition, 'type')}=${stringAt(condition, 'status')} ${stringAt(condition, 'message')}`,
    ),
    ...content.flatMap(describeListed),
  ];
}

function describeListed({ type, objects, error }: Listed): string[] {
  if (error !== undefined) return [`  ${type.resource}: ${error}`];
  return objects.slice(0, 5).map(({ metadata }) => {
    const asked = metadata['deletionTimestamp'] !== undefined ? 'terminating' : 'queued';
    return `  ${type.kind}/${metadata.name} ${asked} ${list({ metadata }, 'metadata', 'finalizers')}`;
  });
}

function list(object: JsonObject, ...path: string[]): string {
  return `[${stringsAt(object, ...path).join(', ')}]`;
}
