import type { JsonObject } from '../base/json.ts';
import type { TypeRef } from '../model/facts/metadata.ts';
import type { Mutation } from './api.ts';

export function namespacePath(name: string): string {
  return `/api/v1/namespaces/${segment(name)}`;
}

/** Without a namespace: all objects of a cluster-scoped type, or of all namespaces. */
export function collectionPath(type: TypeRef, namespace?: string): string {
  const version = segment(type.version);
  const root = type.group === '' ? `/api/${version}` : `/apis/${segment(type.group)}/${version}`;
  const scope = namespace === undefined ? '' : `/namespaces/${segment(namespace)}`;
  return `${root}${scope}/${segment(type.resource)}`;
}

export function objectPath(type: TypeRef, namespace: string | undefined, name: string): string {
  return `${collectionPath(type, namespace)}/${segment(name)}`;
}

/** Returns the name of the object at a path; `undefined` for collections and for paths that are not resources. */
export function objectNameIn(path: string): string | undefined {
  const [, rest = ''] = /^\/(?:api|apis\/[^/]+)\/[^/]+\/([^?]+)/.exec(path) ?? [];
  const [collection, first, second = 'status', third] = rest.split('/');
  const isInside = collection === 'namespaces' && second !== 'status' && second !== 'finalize';
  const name = isInside ? third : first;
  return name === undefined ? undefined : decodeURIComponent(name);
}

export function deleteRequest(path: string, options: JsonObject): Mutation {
  return { method: 'DELETE', path, body: { apiVersion: 'v1', kind: 'DeleteOptions', ...options } };
}

export function withQuery(
  path: string,
  query: Record<string, string | number | undefined>,
): string {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`);
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
}

/** Encoding does not change "." and "..", and a server would resolve them to another object. */
export function isPathSegment(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..';
}

function segment(name: string): string {
  if (!isPathSegment(name)) throw new TypeError(`"${name}" cannot be part of an API path`);
  return encodeURIComponent(name);
}
