import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeError, describeInternalError } from '../../src/base/errors.ts';

describe('describeError', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:6443'), {
    code: 'ECONNREFUSED',
  });

  const ADDRESS = 'connect ECONNREFUSED 127.0.0.1:6443';
  const unshown = {
    toString: () => {
      throw new Error('no text');
    },
  };

  test.each<[why: string, thrown: unknown, text: string]>([
    ['an Error', new Error('no'), 'no'],
    ['a string', 'no', 'no'],
    ['undefined', undefined, 'unknown error'],
    ['null', null, 'unknown error'],
    ['an empty string', '', 'unknown error'],
    ['an Error without a message', new TypeError(''), 'TypeError'],
    ['a cause', new Error('fetch failed', { cause: refused }), `fetch failed: ${ADDRESS}`],
    [
      'a code that the message does not name',
      Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }),
      'socket hang up (ECONNRESET)',
    ],
    [
      'an AggregateError',
      new AggregateError([refused, new Error('other')], ''),
      `AggregateError: ${ADDRESS}`,
    ],
    ['a cause with the same words', new Error('same', { cause: new Error('same') }), 'same'],
    ['a cause that is text', new Error('outer', { cause: 'text' }), 'outer: text'],
    ['what may hold anything', { headers: { authorization: 'Bearer x' } }, 'unknown error'],
    ['an object without a prototype', Object.create(null), 'unknown error'],
    ['an object that cannot be shown', unshown, 'unknown error'],
  ])('of %s', (_, thrown, text) => {
    expect(describeError(thrown)).toBe(text);
  });

  test('ends if causes form a circle', () => {
    const one = new Error('one');
    const two = new Error('two', { cause: one });
    one.cause = two;
    expect(describeError(one)).toBe('one: two');
  });

  test('always returns a text, whatever was thrown', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (thrown) => {
        expect(describeError(thrown).length).toBeGreaterThan(0);
        expect(describeError(new Error('x', { cause: thrown })).length).toBeGreaterThan(0);
      }),
    );
  });
});

test('an internal error names its kind, and never a value, whatever was thrown', () => {
  const secret = 'pl4nt3d\n    at secret (pl4nt3d.js:1:1)';
  const thrown = fc.oneof(
    fc.constantFrom(Error, TypeError, RangeError).map((Kind) => new Kind(secret)),
    fc.constant(Object.assign(new Error(secret), { name: secret })),
    fc.constant(Object.assign(new Error('x'), { stack: `Error: y\n    at ${secret}` })),
    fc.constant(new Error('outer', { cause: new Error(secret) })),
    fc.constant(secret),
    fc.constant({ message: secret }),
    fc.anything().map((value) => [value, secret]),
  );
  fc.assert(
    fc.property(thrown, (error) => {
      const { message, frames } = describeInternalError(error);
      expect(message).toMatch(/^internal error \([A-Za-z]+\): [^\n]+$/);
      expect([message, ...frames].join('\n')).not.toContain('pl4nt3d');
    }),
  );
});
