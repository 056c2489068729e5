import { expect, test } from 'vitest';
import {
  collectionPath,
  namespacePath,
  objectNameIn,
  objectPath,
  withQuery,
} from '../../src/kubernetes/paths.ts';
import { expectPairs } from '../stub/pairs.ts';

const pods = { group: '', version: 'v1', resource: 'pods' };
const entries = { group: 'ledger.example.com', version: 'v2', resource: 'entries' };

test.each([
  [namespacePath('demo'), '/api/v1/namespaces/demo'],
  [collectionPath(pods), '/api/v1/pods'],
  [collectionPath(pods, 'demo'), '/api/v1/namespaces/demo/pods'],
  [collectionPath(entries, 'demo'), '/apis/ledger.example.com/v2/namespaces/demo/entries'],
  [objectPath(entries, undefined, 'a'), '/apis/ledger.example.com/v2/entries/a'],
  [objectPath(pods, 'demo', 'a'), '/api/v1/namespaces/demo/pods/a'],
  // RBAC objects have colons, and some names of custom resources worse.
  [
    objectPath(entries, undefined, 'system:a/b?c#d%'),
    '/apis/ledger.example.com/v2/entries/system%3Aa%2Fb%3Fc%23d%25',
  ],
  // A query has no undefined values.
  [withQuery('/a', {}), '/a'],
  [withQuery('/a', { b: undefined }), '/a'],
  [withQuery('/a', { b: 'c=d e', f: 1 }), '/a?b=c%3Dd%20e&f=1'],
])('%s', (path, want) => {
  expect(path).toBe(want);
});

test.each(['', '.', '..'])('refuses the name "%s", which would lead to another path', (name) => {
  expect(() => namespacePath(name)).toThrow(TypeError);
});

test('objectNameIn returns the name of the object at a path', () =>
  expectPairs('object-names.txt', (path) => objectNameIn(path) ?? 'none'));
