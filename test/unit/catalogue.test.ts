import { describe, expect, test } from 'vitest';
import { isWorkloadOf } from '../../src/diagnose/owner/names.ts';
import { type CatalogueEntry, lookUpFinalizer } from '../../src/model/catalogue.ts';
import entries from '../../src/model/finalizers.json' with { type: 'json' };
import { expectPairs } from '../stub/pairs.ts';

const CATALOGUE = entries as CatalogueEntry[];
const core = (kind: string) => ({ kind, group: '' });

describe('every entry of the catalogue', () => {
  /** TypeScript reads JSON strings as `string`, so the unions are checked here. */
  const SHAPE: Record<keyof CatalogueEntry, (value: unknown) => boolean> = {
    match: isText,
    on: (value) => Array.isArray(value) && value.length > 0 && value.every(isText),
    scope: (value) => ['namespaced', 'cluster', 'namespace'].includes(value as string),
    owner: isText,
    workload: (value) =>
      (value as object[]).every(
        (place) =>
          Object.keys(place).sort().join() === 'name,namespace' &&
          Object.values(place).every(isText),
      ),
    anyController: (value) => value === undefined || value === true,
    needs: (value) => value === undefined || (value as Record<string, string>[]).every(isNeed),
    actsWhenPaused: (value) => value === undefined || value === true,
    protects: isSentence,
    leakIfRemoved: isSentence,
    remedy: (value) => value === '' || isSentence(value),
    withoutOwner: (value) => value === undefined || value === '' || isSentence(value),
    prevention: (value) => value === undefined || isSentence(value),
    escape: (value) => {
      const { patch, namespaced = {}, leaves, ...rest } = (value ?? {}) as Record<string, unknown>;
      const isWhole = [patch, namespaced].every(isPatch) && isSentence(leaves);
      return value === undefined || (isWhole && Object.keys(rest).length === 0);
    },
    source: (value) => typeof value === 'string',
  };

  /** What it creates, or what it reads: a read says which, else any object of the type would count. */
  function isNeed({
    action,
    group = '',
    kind = '',
    note,
    field,
    name,
    when,
    ...rest
  }: Record<string, unknown>) {
    const which = [field, name].filter((one) => one !== undefined);
    return (
      (action === 'read' ? which.length === 1 : action === 'create' && which.length === 0) &&
      isTextOrAbsent(field, /^(?:spec|metadata\.annotations)\b/) &&
      ((when ?? []) as string[]).every((one) => /^(?:spec|metadata)\.[^=]+=./.test(one)) &&
      /^[A-Z]\w+$/.test(`${kind}`) &&
      /^(?:\*|[a-z0-9.-]*)$/.test(`${group}`) &&
      isText(note) &&
      !/\.$/.test(`${note}`) &&
      Object.keys(rest).length === 0
    );
  }

  function isPatch(value: unknown): boolean {
    return typeof value === 'object' && value !== null;
  }

  function isTextOrAbsent(value: unknown, form: RegExp): boolean {
    return value === undefined || (typeof value === 'string' && form.test(value));
  }

  const OPTIONAL = [
    ...['anyController', 'needs', 'actsWhenPaused'],
    ...['withoutOwner', 'prevention', 'escape'],
  ];

  test('has exactly the fields of its type', () => {
    for (const entry of entries) {
      const fields = Object.keys(SHAPE).filter(
        (field) => field in entry || !OPTIONAL.includes(field),
      );
      expect(Object.keys(entry)).toEqual(fields);
      for (const [field, isRight] of Object.entries(SHAPE)) {
        const value = entry[field as keyof CatalogueEntry];
        expect(isRight(value), `${entry.match} ${field}: ${JSON.stringify(value)}`).toBe(true);
      }
    }
  });

  test('has advice for a hang or for the next deletion, each in its place', () => {
    for (const { match, remedy, prevention, withoutOwner } of CATALOGUE) {
      expect(remedy + (prevention ?? ''), match).not.toBe('');
      const late = [remedy, withoutOwner].filter((text) =>
        /^Delete [^,.;]* before /.test(text ?? ''),
      );
      expect(late, match).toEqual([]);
    }
  });

  test('says that any controller may own it unless it names an exact workload', () => {
    const inexact = CATALOGUE.filter(({ workload }) =>
      workload.every(({ name }) => name.includes('*')),
    );
    for (const { match, anyController } of inexact) expect(anyController, match).toBe(true);
    // A library, and workloads whose name other projects use as well.
    const ambiguous = CATALOGUE.filter((entry) => entry.anyController && !inexact.includes(entry));
    expect(ambiguous.map(({ match }) => match)).toEqual([
      'postgres-operator.acid.zalan.do',
      'inferenceservice.finalizers',
      'wrangler.cattle.io/*',
      '*.infrastructure.cluster.x-k8s.io',
      'redisFinalizer',
      'redisClusterFinalizer',
      'redisReplicationFinalizer',
      'operator.redpanda.com/finalizer',
    ]);
  });

  test('is found by its name for each of its kinds', () => {
    for (const entry of entries) {
      for (const kind of entry.on) {
        const on = kind.startsWith('*.')
          ? { kind: 'Thing', group: kind.slice(2) }
          : core(kind === '*' ? 'Thing' : kind);
        const name = entry.match.replaceAll('*', 'x');
        expect(lookUpFinalizer(name, on), `${name} on ${kind}`).toBe(entry);
      }
    }
  });
});

test('a finalizer of a kind is found by its name, by a prefix, or not at all', () =>
  expectPairs('finalizers.txt', (line) => {
    const [, finalizer = '', kind = '', group = ''] = /^(.*) on (\w+)\.?(.*)$/.exec(line) ?? [];
    return lookUpFinalizer(finalizer, { kind, group })?.match ?? 'none';
  }));

function isText(value: unknown): boolean {
  return typeof value === 'string' && value.trim() === value && value !== '';
}

function isSentence(value: unknown): boolean {
  return isText(value) && /\.$/.test(value as string);
}

test.each([
  ['eventbus-controller', 'EventBus', 'controller-manager', true],
  // Every operator made with Kubebuilder is called so.
  ['eventbus-controller', 'EventBus', 'gatekeeper-controller-manager', false],
  ['chaosengine.litmuschaos.io/finalizer', 'ChaosEngine', 'team-chaos-operator-ce', true],
])('%s of %s is of workload %s: %s', (finalizer, kind, name, isIt) => {
  const group = kind === 'EventBus' ? 'argoproj.io' : 'litmuschaos.io';
  const entry = lookUpFinalizer(finalizer, { kind, group });
  expect(entry !== undefined && isWorkloadOf(entry, name)).toBe(isIt);
});
