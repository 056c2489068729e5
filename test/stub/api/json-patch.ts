import { isDeepStrictEqual } from 'node:util';
import { isObject, type Json } from '../../../src/base/json.ts';
import { badRequest, NotSupported, patchRejected } from './status.ts';

interface Operation {
  op: string;
  path: string;
  value?: Json;
}

/** RFC 6902, with the operations that pin and remove finalizers; returns a changed copy. */
export function applyJsonPatch(target: Json, patch: Json): Json {
  if (!Array.isArray(patch)) {
    const what = patch === null ? 'null' : typeof patch;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${what} into Go value of type []handlers.jsonPatchOp`,
    );
  }
  const result = structuredClone(target);
  for (const operation of patch) applyOperation(result, operation as unknown as Operation);
  return result;
}

function applyOperation(document: Json, operation: Operation): void {
  const { op, path, value } = operation;
  if (!['test', 'add', 'remove', 'replace'].includes(op)) {
    throw new NotSupported(`JSON Patch operation "${op}"`);
  }
  if (typeof path !== 'string' || !path.startsWith('/')) throw patchRejected();
  const keys = path.slice(1).split('/').map(unescapeKey);
  const last = keys.pop() ?? '';
  let parent: Json | undefined = document;
  for (const key of keys) parent = child(parent, key);
  if (op === 'test') {
    // A member that is not there equals null (evanphx/json-patch, as the API server uses it).
    if (!isDeepStrictEqual(child(parent, last) ?? null, value ?? null)) throw patchRejected();
  } else if (Array.isArray(parent)) {
    changeArray(parent, last, operation);
  } else if (isObject(parent)) {
    if (op !== 'add' && !Object.hasOwn(parent, last)) throw patchRejected();
    if (op === 'remove') delete parent[last];
    else parent[last] = value;
  } else {
    throw patchRejected();
  }
}

function changeArray(array: Json[], key: string, { op, value }: Operation): void {
  const index = op === 'add' && key === '-' ? array.length : Number(key);
  const last = op === 'add' ? array.length : array.length - 1;
  if (!/^(\d+|-)$/.test(key) || !(index >= 0 && index <= last)) throw patchRejected();
  if (op === 'remove') array.splice(index, 1);
  else array.splice(index, op === 'add' ? 0 : 1, value ?? null);
}

function child(value: Json | undefined, key: string): Json | undefined {
  if (Array.isArray(value)) return value[Number(key)];
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function unescapeKey(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~');
}
