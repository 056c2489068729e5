import { at, isObject, type JsonObject, stringAt, stringsAt } from '../base/json.ts';

/**
 * kubectl's `as`, `as-uid`, `as-groups` and `as-user-extra`. A list is sent as repeated headers; joined
 * by commas it would be one group with a strange name.
 */
export function impersonationHeaders(user: JsonObject): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  const name = stringAt(user, 'as') ?? '';
  const uid = stringAt(user, 'as-uid') ?? '';
  const groups = stringsAt(user, 'as-groups');
  if (name !== '') headers['Impersonate-User'] = name;
  if (uid !== '') headers['Impersonate-Uid'] = uid;
  if (groups.length > 0) headers['Impersonate-Group'] = groups;
  const extra = at(user, 'as-user-extra');
  if (isObject(extra)) {
    for (const key of Object.keys(extra)) {
      headers[`Impersonate-Extra-${headerKey(key)}`] = stringsAt(extra, key);
    }
  }
  return headers;
}

/** Header names have few legal characters; the API server decodes percent signs. */
function headerKey(key: string): string {
  return encodeURIComponent(key).replace(/[()]/g, (char) => (char === '(' ? '%28' : '%29'));
}
