import type { ObjectKey } from './objects.ts';
import { noSuchResource } from './status.ts';

/** A resource type as in discovery. */
export interface ServedType {
  group: string;
  version: string;
  /** Plural, as in paths. */
  resource: string;
  kind: string;
  namespaced: boolean;
  verbs: string[];
  /** Defined by a CustomResourceDefinition. */
  isCustom: boolean;
  /** `status`, `scale`, `finalize`. */
  subresources: string[];
  /** `/api/v1/configmaps`: the collection over all namespaces. */
  collection: string;
}

export interface Route {
  type: ServedType;
  /** Empty for cluster-scoped objects and for a collection over all namespaces. */
  namespace: string;
  /** Absent for a collection. */
  name?: string;
  subresource?: string;
}

/** `/api/v1` or `/apis/<group>/<version>`, and the segments behind it; undefined for other paths. */
export function splitPath(path: string): { prefix: string; rest: string[] } | undefined {
  const match = /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/(.*))?$/.exec(path);
  if (match?.[1] === undefined) return undefined;
  const rest = (match[2] ?? '').split('/').filter((segment) => segment !== '');
  return { prefix: match[1], rest: rest.map(decodeURIComponent) };
}

export function parseRoute(types: readonly ServedType[], prefix: string, rest: string[]): Route {
  const [first, second, third, ...others] = rest;
  const find = (resource: string | undefined): ServedType | undefined =>
    types.find((type) => type.collection === `${prefix}/${resource}`);
  // `namespaces/x/finalize` is a subresource, `namespaces/x/configmaps` a collection in it.
  const ofNamespaces = find('namespaces')?.subresources.includes(third ?? '') ?? false;
  if (first === 'namespaces' && third !== undefined && !ofNamespaces) {
    return route(find(third), true, second ?? '', others);
  }
  return route(find(first), false, '', rest.slice(1));
}

function route(
  type: ServedType | undefined,
  inNamespace: boolean,
  namespace: string,
  rest: string[],
): Route {
  const [name, subresource, ...others] = rest;
  if (type === undefined || others.length > 0) throw noSuchResource();
  const needsNamespace = name !== undefined ? type.namespaced : false;
  if (inNamespace ? !type.namespaced : needsNamespace) throw noSuchResource();
  if (subresource !== undefined && !type.subresources.includes(subresource)) throw noSuchResource();
  return {
    type,
    namespace,
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
  };
}

export function keyOf(route: Route): ObjectKey {
  return {
    collection: route.type.collection,
    namespace: route.namespace,
    name: route.name ?? '',
  };
}

export function collectionPath(type: { group: string; version: string; resource: string }): string {
  const group = type.group === '' ? '/api' : `/apis/${type.group}`;
  return `${group}/${type.version}/${type.resource}`;
}
