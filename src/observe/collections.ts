import type { JsonObject } from '../base/json.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { type Read, read } from '../model/read.ts';

/** `undefined` when the API server says that the object does not exist: a fact, not a failed read. */
export async function one<T>(
  api: KubernetesApi,
  path: string,
  facts: (object: JsonObject) => T,
  signal: AbortSignal,
): Promise<Read<T | undefined>> {
  const got = await api.get(path, { signal });
  if (got.ok) return read(facts(got.value));
  return got.failure.kind === 'not-found' ? read(undefined) : got;
}

/** A whole collection of things that there are few of. */
export async function many<T>(
  api: KubernetesApi,
  path: string,
  facts: (object: JsonObject) => T | T[],
  signal: AbortSignal,
  options: {
    fieldSelector?: string;
    maxItems?: number;
    metadataOnly?: boolean;
    limit?: number;
  } = {},
): Promise<Read<T[]>> {
  const found: T[] = [];
  const end = await api.list(path, {
    ...options,
    signal,
    onItem: (item) => {
      const value = facts(item);
      if (Array.isArray(value)) found.push(...value);
      else found.push(value);
    },
    onRestart: () => {
      found.length = 0;
    },
  });
  return end.ok ? read(found) : end;
}

/** All of several collections, or the first failure: half of the workloads proves nothing. */
export async function all<T>(reads: Promise<Read<T[]>>[]): Promise<Read<T[]>> {
  const results = await Promise.all(reads);
  const values: T[] = [];
  for (const result of results) {
    if (!result.ok) return result;
    values.push(...result.value);
  }
  return read(values);
}
