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

  const SAYS = [
    ...['', 'Some resources are remaining: ', 'Some finalizers are remaining: '],
    'Failed to delete all resource types, 7 remaining: ',
    'Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: ',
  ];
  const UNITS = ['a', 'a.', 'a, ', 'a.b/v1: x, ', '"', '\\"', '\n'];

  // 30 messages each: anything quadratic in 100 kB takes minutes and runs into the limit for what hangs.
  test.each([...UNITS, 'pods. has 1 resource instances, '])(
    'reads 100 kB of %j in linear time',
    (unit) => {
      const text = unit.repeat(100_000 / unit.length);
      for (const says of SAYS) namespaceConditions(types.map((type) => isTrue(type, says + text)));
    },
  );
});
