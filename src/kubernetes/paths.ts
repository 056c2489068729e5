import type { JsonObject } from '../base/json.ts';
import type { TypeRef } from '../model/facts/metadata.ts';
import type { Mutation } from './api.ts';

export function namespacePath(name: string): string {
  return `/api/v1/namespaces/${segment(name)}`;
}

/**
 * Returns the path of a collection. Without a namespace: all objects of a cluster-scoped type, or of all
 * namespaces.
 */
export function collectionPath(type: TypeRef, namespace?: string): string {
  const version = segment(type.version);
  const root = type.group === '' ? `/api/${version}` : `/apis/${segment(type.group)}/${version}`;
  const scope = namespace === undefined ? '' : `/namespaces/${segment(namespace)}`;
  return `${root}${scope}/${segment(type.resource)}`;
}

export function objectPath(type: TypeRef, namespace: string | undefined, name: string): string {
  return `${collectionPath(type, namespace)}/${segment(name)}`;
}

/**
 * Returns the name of the object at a path; `undefined` for collections and for paths that are not resources.
 */
export function objectNameIn(path: string): string | undefined {
  const parts = (path.split('?')[0] ?? '').split('/').slice(1);
  const afterVersion = parts[0] === 'api' ? 2 : parts[0] === 'apis' ? 3 : undefined;
  if (afterVersion === undefined) return undefined;
  let rest = parts.slice(afterVersion);
  const isNamespaced =
    rest[0] === 'namespaces' && rest.length > 2 && !NAMESPACE_SUBRESOURCES.has(rest[2] ?? '');
  if (isNamespaced) rest = rest.slice(2);
  return rest[1] === undefined ? undefined : decodeURIComponent(rest[1]);
}

const NAMESPACE_SUBRESOURCES = new Set(['finalize', 'status']);

/** Returns a DELETE with DeleteOptions as the body, which contain the preconditions. */
export function deleteRequest(path: string, options: JsonObject): Mutation {
  return { method: 'DELETE', path, body: { apiVersion: 'v1', kind: 'DeleteOptions', ...options } };
}

/** Adds a query to a path that may already have one. */
export function withQuery(
  path: string,
  query: Record<string, string | number | undefined>,
): string {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`);
  if (pairs.length === 0) return path;
  return `${path}${path.includes('?') ? '&' : '?'}${pairs.join('&')}`;
}

/**
 * Reports whether a name can be a segment of a path. Encoding does not change "." and "..", and a server would
 * resolve them to another object.
 */
export function isPathSegment(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..';
}

function segment(name: string): string {
  if (!isPathSegment(name)) {
    throw new TypeError(`"${name}" cannot be part of an API path`);
  }
  return encodeURIComponent(name);
}
