import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeError, describeInternalError } from '../../src/base/errors.ts';

describe('describeError', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:6443'), {
    code: 'ECONNREFUSED',
  });

  test.each<{ thrown: unknown; why: string; text: string }>([
    { thrown: new Error('no'), why: 'an Error', text: 'no' },
    { thrown: 'no', why: 'a string', text: 'no' },
    { thrown: undefined, why: 'undefined', text: 'unknown error' },
    { thrown: null, why: 'null', text: 'unknown error' },
    { thrown: '', why: 'an empty string', text: 'unknown error' },
    { thrown: new TypeError(''), why: 'an Error without a message', text: 'TypeError' },
    {
      thrown: new Error('fetch failed', { cause: refused }),
      why: 'a cause',
      text: 'fetch failed: connect ECONNREFUSED 127.0.0.1:6443',
    },
    {
      thrown: Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }),
      why: 'a code that the message does not name',
      text: 'socket hang up (ECONNRESET)',
    },
    {
      thrown: new AggregateError([refused, new Error('other')], ''),
      why: 'an AggregateError',
      text: 'AggregateError: connect ECONNREFUSED 127.0.0.1:6443',
    },
    {
      thrown: new Error('same', { cause: new Error('same') }),
      why: 'a cause with the same words',
      text: 'same',
    },
    {
      thrown: new Error('outer', { cause: 'text' }),
      why: 'a cause that is text',
      text: 'outer: text',
    },
    {
      thrown: { headers: { authorization: 'Bearer x' } },
      why: 'an object that may hold anything',
      text: 'unknown error',
    },
    { thrown: Object.create(null), why: 'an object without a prototype', text: 'unknown error' },
    {
      thrown: {
        toString: () => {
          throw new Error('no text');
        },
      },
      why: 'an object that cannot be shown',
      text: 'unknown error',
    },
  ])('says "$text" for $why', ({ thrown, text }) => {
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
