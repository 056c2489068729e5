import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { forecastOf } from '../../src/forecast/outcome.ts';
import { type Diagnosis, FINDING_CODES, type Finding } from '../../src/model/finding.ts';
import {
  FAIL_ON,
  IF_NOT_FOUND,
  isPermanent,
  OUTCOMES,
  type Outcome,
  outcomeOf,
  type Policy,
  verdictOf,
  worstOutcome,
} from '../../src/model/outcome.ts';
import { readFailed } from '../../src/model/read.ts';
import type { Snapshot, TypeContent } from '../../src/model/snapshot.ts';
import {
  CLEANUP,
  CONFIG_MAPS,
  contentOf,
  earlier,
  failureOf,
  group,
  podFacts,
  snapshot,
  unreadable,
  WIDGETS,
  withPods,
} from './snapshots.ts';

const DEFAULT: Policy = { failOn: 'not-deleted', ifNotFound: 'ok' };

test('every outcome has a verdict under every policy', async () => {
  const policies = FAIL_ON.flatMap((failOn) =>
    IF_NOT_FOUND.map((ifNotFound): Policy => ({ failOn, ifNotFound })),
  );
  const told = policies.flatMap((policy) => [
    `fail-on ${policy.failOn}, if-not-found ${policy.ifNotFound}`,
    ...OUTCOMES.map((outcome) => `  ${outcome}: ${verdictOf(outcome, policy)}`),
  ]);
  await expect(`${told.join('\n')}\n`).toMatchFileSnapshot('golden/verdicts.txt');
});

describe('worstOutcome', () => {
  const LENIENT = { failOn: 'stuck', ifNotFound: 'error' } as const;
  const CARELESS = { failOn: 'never', ifNotFound: 'error' } as const;

  test.each<[outcomes: Outcome[], worst: Outcome, policy?: Partial<Policy>]>([
    [[], 'deleted'],
    [['deleted'], 'deleted'],
    [['clear', 'clear'], 'clear'],
    [['clear', 'inconclusive'], 'inconclusive'],
    [['deleted', 'not-found'], 'not-found'],
    [['recreated', 'deleted'], 'recreated'],
    [['forced', 'recreated'], 'forced'],
    [['progressing', 'stuck', 'deleted'], 'stuck'],
    [['stuck', 'inconclusive'], 'stuck'],
    [['cancelled', 'stuck'], 'cancelled'],
    [['not-found', 'progressing'], 'progressing'],
    [['not-found', 'progressing'], 'not-found', LENIENT],
    [['not-found', 'stuck'], 'not-found', CARELESS],
    [['not-found', 'stuck'], 'stuck', { ifNotFound: 'error' }],
  ])('of %j is %s', (outcomes, worst, policy) => {
    expect(worstOutcome(outcomes, { ...DEFAULT, ...policy })).toBe(worst);
  });

  test('never has a milder verdict than one of its outcomes, in any order', () => {
    const policies = fc.record({
      failOn: fc.constantFrom(...FAIL_ON),
      ifNotFound: fc.constantFrom(...IF_NOT_FOUND),
    });
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...OUTCOMES), { minLength: 1, maxLength: 6 }),
        policies,
        (outcomes, policy) => {
          const worst = worstOutcome(outcomes, policy);
          const isFailed = verdictOf(worst, policy) === 'fail';
          const anyFailed = outcomes.some((outcome) => verdictOf(outcome, policy) === 'fail');
          expect(isFailed).toBe(anyFailed);
          expect(worstOutcome([...outcomes].reverse(), policy)).toBe(worst);
        },
      ),
    );
  });
});

describe('outcomeOf', () => {
  const held = [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, ['x/y'])])];
  const widgets = (count: number) => [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count })])];

  const unseen = snapshot({
    discovery: readFailed(failureOf()),
    pods: readFailed(failureOf()),
    unread: [{ source: 'discovery', what: 'API discovery', reason: '403' }],
  });
  const grace = withPods([podFacts('a', { deletionTimestamp: '2026-03-02T10:09:00Z' })]);
  const of = (content: TypeContent[], more: Partial<Snapshot> = {}) =>
    snapshot({ content, ...more });
  const nothing = contentOf(CONFIG_MAPS);

  test.each<[what: string, is: string, now: Snapshot, before?: Snapshot]>([
    ['a held object', 'stuck', of(held), earlier(held)],
    ['a held object, seen once', 'stuck', of(held)],
    ['nothing that explains it, all read', 'stuck', of([nothing])],
    ['nothing, and something unread', 'inconclusive', of([nothing, unreadable(WIDGETS)])],
    ['a held object, and something unread', 'stuck', of([...held, unreadable(WIDGETS)])],
    ['nothing readable at all', 'inconclusive', unseen],
    ['objects that get fewer', 'progressing', of(widgets(5)), earlier(widgets(9))],
    ['a grace period', 'progressing', grace],
  ])('%s: %s', (_, is, now, before) => {
    const found = diagnose(now, before);
    expect(outcomeOf(found)).toBe(is);
  });
});

/** A diagnosis with one cause that holds one object. */
function caused(given: Partial<Finding>, more: Partial<Diagnosis> = {}): Diagnosis {
  const finding = (id: string, waitsFor: string[], over: Partial<Finding>): Finding => ({
    id,
    code: 'object-finalizer',
    subject: { apiVersion: 'v1', kind: 'ConfigMap', name: id },
    message: 'is held',
    evidence: [],
    scope: 'namespace',
    waitsFor,
    remedies: [],
    ...over,
  });
  return {
    ...diagnose(snapshot()),
    findings: [finding('held', ['cause'], {}), finding('cause', [], given)],
    blockers: ['held'],
    rootCauses: ['cause'],
    movement: { kind: 'none' },
    ...more,
  };
}

describe('isPermanent', () => {
  const PERMANENT = [
    'owner-missing',
    'owner-scaled-to-zero',
    'owner-not-acting',
    'apiservice-unavailable',
    'conversion-webhook-failing',
    'admission-webhook-failing',
    'admission-denied',
    'deletion-forbidden',
    'storage-unreadable',
  ];

  test.each(FINDING_CODES)('%s', (code) => {
    expect(isPermanent(caused({ code, certainty: 'proven' }))).toBe(PERMANENT.includes(code));
  });

  const movements = [
    { kind: 'grace-period', until: 'x' },
    { kind: 'shrinking', before: 2, now: 1 },
  ] as const;
  test.each<[what: string, given: Partial<Finding>, more?: Partial<Diagnosis>]>([
    ['it is no root cause', {}, { rootCauses: [] }],
    ['the owner is only likely', { certainty: 'likely' }],
    ['it may not be paused', { code: 'owner-not-acting', certainty: 'likely' }],
    ['the owner is unknown', { code: 'owner-unknown', certainty: 'unknown' }],
    ['it was seen once', { code: 'unexplained' }, { movement: { kind: 'unknown' } }],
    ['a grace period runs', {}, { movement: movements[0] }],
    ['content shrinks', {}, { movement: movements[1] }],
  ])('is false if %s', (_, given, more) => {
    expect(isPermanent(caused({ code: 'owner-missing', ...given }, more))).toBe(false);
  });
});

const UNKNOWN = { code: 'owner-unknown', certainty: 'unknown' } as const;
const UNREAD = [{ what: 'pods', reason: '403' }];

test.each<[what: string, diagnosis: Diagnosis, is: string]>([
  ['a cause', caused({ code: 'owner-missing' }), 'would-hang'],
  ['an owner of whom nothing is known', caused(UNKNOWN), 'inconclusive'],
  ['no cause', caused({}, { rootCauses: [] }), 'clear'],
  [
    'no cause, and something unread',
    caused({}, { rootCauses: [], notInspected: UNREAD }),
    'inconclusive',
  ],
])('a forecast with %s', (_, diagnosis, is) => {
  expect(forecastOf(diagnosis)).toBe(is);
});
