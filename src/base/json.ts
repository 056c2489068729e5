/** JSON as it came from the API server: nothing is dropped, renamed or turned into a Date. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json | undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

type Path = (string | number)[];

/** `undefined` if anything on the way is missing or of another type. */
export function valueAt(value: Json | undefined, ...path: Path): Json | undefined {
  let current: Json | undefined = value;
  for (const key of path) {
    if (typeof key === 'number') current = Array.isArray(current) ? current[key] : undefined;
    else current = isObject(current) && Object.hasOwn(current, key) ? current[key] : undefined;
  }
  return current;
}

export function stringAt(value: Json | undefined, ...path: Path): string | undefined {
  const found = valueAt(value, ...path);
  return typeof found === 'string' ? found : undefined;
}

export function numberAt(value: Json | undefined, ...path: Path): number | undefined {
  const found = valueAt(value, ...path);
  return typeof found === 'number' ? found : undefined;
}

export function arrayAt(value: Json | undefined, ...path: Path): Json[] {
  const found = valueAt(value, ...path);
  return Array.isArray(found) ? found : [];
}

export function stringsAt(value: Json | undefined, ...path: Path): string[] {
  return arrayAt(value, ...path).filter((item) => typeof item === 'string');
}

/** Has no prototype: names from the cluster may be `constructor` or `__proto__`. */
export function dictionary<T>(entries: Iterable<readonly [string, T]> = []): Record<string, T> {
  return Object.assign(Object.create(null), Object.fromEntries(entries));
}

/** A label map with another value than a text loses only that entry. */
export function recordAt(value: Json | undefined, ...path: Path): Record<string, string> {
  const found = valueAt(value, ...path);
  const entries = Object.entries(isObject(found) ? found : {});
  return dictionary(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
