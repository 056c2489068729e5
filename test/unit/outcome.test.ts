import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  FAIL_ON,
  IF_NOT_FOUND,
  OUTCOMES,
  type Outcome,
  type Policy,
  type Verdict,
  verdict,
  worstOutcome,
} from '../../src/model/outcome.ts';

const DEFAULT: Policy = { failOn: 'not-deleted', ifNotFound: 'ok' };

describe('verdict', () => {
  /** One row per outcome, one column per `fail-on`: the table of the documentation. */
  const TABLE: Record<Outcome, Record<Policy['failOn'], Verdict>> = {
    clear: { 'not-deleted': 'pass', stuck: 'pass', never: 'pass' },
    'would-hang': { 'not-deleted': 'fail', stuck: 'fail', never: 'warn' },
    deleted: { 'not-deleted': 'pass', stuck: 'pass', never: 'pass' },
    recreated: { 'not-deleted': 'warn', stuck: 'warn', never: 'warn' },
    forced: { 'not-deleted': 'warn', stuck: 'warn', never: 'warn' },
    'not-found': { 'not-deleted': 'pass', stuck: 'pass', never: 'pass' },
    progressing: { 'not-deleted': 'fail', stuck: 'warn', never: 'warn' },
    stuck: { 'not-deleted': 'fail', stuck: 'fail', never: 'warn' },
    inconclusive: { 'not-deleted': 'fail', stuck: 'fail', never: 'warn' },
    'not-terminating': { 'not-deleted': 'fail', stuck: 'fail', never: 'warn' },
    cancelled: { 'not-deleted': 'fail', stuck: 'fail', never: 'fail' },
  };

  test.each(OUTCOMES.flatMap((outcome) => FAIL_ON.map((failOn) => ({ outcome, failOn }))))(
    '$outcome with fail-on: $failOn',
    ({ outcome, failOn }) => {
      expect(verdict(outcome, { failOn, ifNotFound: 'ok' })).toBe(TABLE[outcome][failOn]);
    },
  );

  test.each(FAIL_ON)(
    'not-found fails with if-not-found: error, also with fail-on: %s',
    (failOn) => {
      expect(verdict('not-found', { failOn, ifNotFound: 'error' })).toBe('fail');
    },
  );

  test('if-not-found decides about nothing else', () => {
    for (const outcome of OUTCOMES.filter((one) => one !== 'not-found')) {
      for (const failOn of FAIL_ON) {
        const [ok, error] = IF_NOT_FOUND.map((ifNotFound) =>
          verdict(outcome, { failOn, ifNotFound }),
        );
        expect(ok, outcome).toBe(error);
      }
    }
  });
});

describe('worstOutcome', () => {
  test.each<{ outcomes: Outcome[]; worst: Outcome; policy?: Partial<Policy> }>([
    { outcomes: [], worst: 'deleted' },
    { outcomes: ['deleted'], worst: 'deleted' },
    { outcomes: ['deleted', 'not-found'], worst: 'not-found' },
    { outcomes: ['recreated', 'deleted'], worst: 'recreated' },
    { outcomes: ['forced', 'recreated'], worst: 'forced' },
    { outcomes: ['progressing', 'stuck', 'deleted'], worst: 'stuck' },
    { outcomes: ['stuck', 'inconclusive'], worst: 'stuck' },
    { outcomes: ['cancelled', 'stuck'], worst: 'cancelled' },
    { outcomes: ['not-found', 'progressing'], worst: 'progressing' },
    {
      outcomes: ['not-found', 'progressing'],
      policy: { ifNotFound: 'error', failOn: 'stuck' },
      worst: 'not-found',
    },
    {
      outcomes: ['not-found', 'stuck'],
      policy: { ifNotFound: 'error', failOn: 'never' },
      worst: 'not-found',
    },
    {
      outcomes: ['not-found', 'stuck'],
      policy: { ifNotFound: 'error' },
      worst: 'stuck',
    },
  ])('of $outcomes ($policy) is $worst', ({ outcomes, worst, policy }) => {
    expect(worstOutcome(outcomes, { ...DEFAULT, ...policy })).toBe(worst);
  });

  test('never has a milder verdict than any of them, in whatever order', () => {
    const severity: Verdict[] = ['pass', 'warn', 'fail'];
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
          const isFailed = verdict(worst, policy) === 'fail';
          const anyFailed = outcomes.some((outcome) => verdict(outcome, policy) === 'fail');
          expect(isFailed).toBe(anyFailed);
          expect(worstOutcome([...outcomes].reverse(), policy)).toBe(worst);
          expect(severity).toContain(verdict(worst, policy));
        },
      ),
    );
  });
});
