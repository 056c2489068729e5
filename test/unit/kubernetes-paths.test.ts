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
  { path: namespacePath('demo'), want: '/api/v1/namespaces/demo' },
  { path: collectionPath(pods), want: '/api/v1/pods' },
  { path: collectionPath(pods, 'demo'), want: '/api/v1/namespaces/demo/pods' },
  {
    path: collectionPath(entries, 'demo'),
    want: '/apis/ledger.example.com/v2/namespaces/demo/entries',
  },
  { path: objectPath(entries, undefined, 'a'), want: '/apis/ledger.example.com/v2/entries/a' },
  { path: objectPath(pods, 'demo', 'a'), want: '/api/v1/namespaces/demo/pods/a' },
  // RBAC objects have colons, and some names of custom resources worse.
  {
    path: objectPath(entries, undefined, 'system:a/b?c#d%'),
    want: '/apis/ledger.example.com/v2/entries/system%3Aa%2Fb%3Fc%23d%25',
  },
])('$want', ({ path, want }) => {
  expect(path).toBe(want);
});

test.each(['', '.', '..'])('refuses the name "%s", which would lead to another path', (name) => {
  expect(() => namespacePath(name)).toThrow(TypeError);
});

test('objectNameIn returns the name of the object at a path', () =>
  expectPairs('object-names.txt', (path) => objectNameIn(path) ?? 'none'));

test('a query has no undefined values', () => {
  expect(withQuery('/a', {})).toBe('/a');
  expect(withQuery('/a', { b: undefined })).toBe('/a');
  expect(withQuery('/a', { b: 'c=d e', f: 1 })).toBe('/a?b=c%3Dd%20e&f=1');
});
