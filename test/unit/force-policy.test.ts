import { describe, expect, test } from 'vitest';
import {
  matchesPattern,
  permissionFor,
  protectedBecause,
  saysNothing,
} from '../../src/model/policy.ts';

describe('matchesPattern', () => {
  test.each([
    ['preview-*', 'preview-42', true],
    ['preview-*', 'preview-', true],
    ['preview-*', 'my-preview-42', false],
    ['preview-*', 'preview', false],
    ['*-pr', 'app-pr', true],
    ['*-pr', 'app-prod', false],
    ['a*b*c', 'a1b2b3c', true],
    ['a*b*c', 'a1b2b3', false],
    ['*', '', true],
    ['', '', true],
    ['', 'x', false],
    ['exact', 'exact', true],
    ['exact', 'exactly', false],
    // Nothing but * is special: a dot is a dot.
    ['example.com/*', 'exampleXcom/cleanup', false],
    ['*.example.com/*', 'widgets.example.com/cleanup', true],
    ['[a-z]*', 'abc', false],
  ])('%s and %s: %s', (pattern, name, matches) => {
    expect(matchesPattern(pattern, name)).toBe(matches);
  });

  test('ends quickly on a pattern made to backtrack', () => {
    const started = performance.now();
    expect(matchesPattern('*a'.repeat(60), `${'a'.repeat(4_000)}b`)).toBe(false);
    expect(performance.now() - started).toBeLessThan(500);
  });
});

describe('permissionFor', () => {
  test('tells a name that is spelled out from one that a wildcard lets through', () => {
    const patterns = ['example.com/*', 'foo/bar'];
    expect(permissionFor(patterns, 'foo/bar')).toBe('exactly');
    expect(permissionFor(patterns, 'example.com/cleanup')).toBe('by-pattern');
    expect(permissionFor(patterns, 'foo/bar2')).toBeUndefined();
    expect(permissionFor([...patterns, 'example.com/cleanup'], 'example.com/cleanup')).toBe(
      'exactly',
    );
  });

  test.each(['*', '**'])('takes %s for a pattern that says nothing', (pattern) => {
    expect(saysNothing(pattern)).toBe(true);
  });

  test('takes a part of a name for a pattern that says something', () => {
    expect(saysNothing('p*')).toBe(false);
  });
});

describe('protectedBecause', () => {
  test.each([
    'default',
    'kube-system',
    'kube-public',
    'kube-node-lease',
    'kube-x',
    'openshift',
    'openshift-ingress',
    'ci',
    '',
  ])('protects "%s"', (name) => {
    expect(protectedBecause(name, 'ci')).toBeTypeOf('string');
  });

  test.each(['preview-1', 'defaults', 'kubed', 'my-kube-system', 'my-openshift', 'ci-2'])(
    'does not protect %s',
    (name) => {
      expect(protectedBecause(name, 'ci')).toBeUndefined();
    },
  );
});
