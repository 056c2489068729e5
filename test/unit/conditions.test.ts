import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { namespaceConditions } from '../../src/model/conditions.ts';
import type { Condition } from '../../src/model/snapshot.ts';
import { GREEN_CONDITIONS } from '../stub/green-conditions.ts';
import { expectPairs } from '../stub/pairs.ts';

function isTrue(type: string, message: string): Condition {
  return { type, status: 'True', reason: 'Whatever', message };
}

describe('namespaceConditions', () => {
  const others = [
    isTrue('example.com/Frozen', 'pods. has 5 resource instances'),
    isTrue('constructor', 'x'),
  ];
  test.each<[what: string, given: Condition[], present: boolean]>([
    ['without conditions', [], false],
    ['with five green ones', GREEN_CONDITIONS, true],
    ['with types that others put there', others, false],
  ])('finds nothing in a namespace %s', (_, given, present) => {
    const nothing = { discoveryFailures: [], remaining: [], finalizersRemaining: [] };
    expect(namespaceConditions(given)).toEqual({ present, ...nothing });
  });

  test('reads what namespace controllers write', () =>
    expectPairs('conditions.txt', (line) => {
      const [, type = '', message = ''] = /^(\w+): (.*)$/.exec(line) ?? [];
      const parsed = Object.entries(namespaceConditions([isTrue(type, message)]));
      return Object.fromEntries(parsed.filter(([, value]) => value !== true && `${value}` !== ''));
    }));

  const types = [...GREEN_CONDITIONS.map((condition) => condition.type), 'Other'];

  test('never throws, whatever the conditions contain', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            type: fc.constantFrom(...types),
            status: fc.constantFrom('True', 'False', 'Unknown', ''),
            reason: fc.string(),
            message: fc.string({ unit: 'binary', maxLength: 60 }),
          }),
          { maxLength: 8 },
        ),
        (given) => {
          expect(namespaceConditions(given).present).toBe(
            given.some(({ type }) => type !== 'Other'),
          );
        },
      ),
    );
  });

  test.each([
    ['a', 100_000],
    ['a.', 50_000],
    ['a, ', 33_000],
    ['a.b/v1: x, ', 9_000],
    ['"', 100_000],
    ['\\"', 50_000],
    ['\n', 100_000],
    ['pods. has 1 resource instances, ', 3_000],
  ])('reads 100 kB of %j in linear time', (unit, times) => {
    const text = unit.repeat(times);
    for (const prefix of [
      '',
      'Some resources are remaining: ',
      'Some finalizers are remaining: ',
      'Failed to delete all resource types, 7 remaining: ',
      'Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: ',
    ]) {
      namespaceConditions(types.map((type) => isTrue(type, prefix + text)));
    }
    // 30 messages: anything quadratic in 100 kB takes minutes and runs into the limit for what hangs.
  });
});
