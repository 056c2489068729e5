/** JSON as it came from the API server: nothing is dropped, renamed or turned into a Date. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json | undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `undefined` for what is no JSON, and for JSON that is no object. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Follows keys into JSON of unknown shape; anything unexpected on the way is `undefined`. */
export function at(value: Json | undefined, ...keys: (string | number)[]): Json | undefined {
  let current: Json | undefined = value;
  for (const key of keys) {
    if (typeof key === 'number') current = Array.isArray(current) ? current[key] : undefined;
    else current = isObject(current) && Object.hasOwn(current, key) ? current[key] : undefined;
  }
  return current;
}

export function stringAt(
  value: Json | undefined,
  ...keys: (string | number)[]
): string | undefined {
  const found = at(value, ...keys);
  return typeof found === 'string' ? found : undefined;
}

export function numberAt(
  value: Json | undefined,
  ...keys: (string | number)[]
): number | undefined {
  const found = at(value, ...keys);
  return typeof found === 'number' ? found : undefined;
}

export function arrayAt(value: Json | undefined, ...keys: (string | number)[]): Json[] {
  const found = at(value, ...keys);
  return Array.isArray(found) ? found : [];
}

export function stringsAt(value: Json | undefined, ...keys: (string | number)[]): string[] {
  return arrayAt(value, ...keys).filter((item): item is string => typeof item === 'string');
}

/** String values only; a label map with anything else in it loses just that entry. */
export function recordAt(
  value: Json | undefined,
  ...keys: (string | number)[]
): Record<string, string> {
  const found = at(value, ...keys);
  if (!isObject(found)) return {};
  return Object.fromEntries(
    Object.entries(found).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
}
