import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { classifyErrorText } from '../../src/diagnose/error-texts.ts';
import { expectPairs } from '../stub/pairs.ts';

const failed = (types: number, ...errors: string[]) =>
  `Failed to delete all resource types, ${types} remaining: ${errors.join(', ')}`;

const NO_SERVICE =
  'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://webhook-gone.demo.svc:443/validate?timeout=5s": service "webhook-gone" not found';

describe('a single error, in texts of real servers', () => {
  test('each alone, and as the one member of a condition', async () => {
    await expectPairs('error-texts.txt', (text) => {
      const [error, ...more] = classifyErrorText(text);
      expect([error?.text, ...more]).toEqual([text]);
      expect(classifyErrorText(failed(1, text))).toEqual([error]);
      return { ...error, text: undefined };
    });
  });

  test('an error inside the text of an operator', () => {
    const [error] = classifyErrorText(
      `could not delete database: timed out: ${NO_SERVICE}; will retry`,
    );
    expect(error).toMatchObject({ kind: 'webhook-unreachable', cause: 'service-not-found' });
  });

  test('an absent object may be named with its namespace, and its absence may be no failure', () => {
    const read = (text: string) => classifyErrorText(text)[0];
    expect(read('secret "team-1/login" not found')).toMatchObject({
      ...{ kind: 'not-found', namespace: 'team-1', name: 'login' },
    });
    expect(read('secrets "login" not found')).not.toHaveProperty('namespace');
    expect(read('secret "team-1/login" not found, assuming that it is deleted')?.kind).toBe(
      'other',
    );
  });

  test('a refusal whose free text quotes another error is still a refusal', () => {
    const [error] = classifyErrorText(
      'admission webhook "a.example.com" denied the request: failed calling webhook "b.example.com": x',
    );
    expect(error).toMatchObject({ kind: 'webhook-denied', webhook: 'a.example.com' });
  });

  test('a text that was cut off still names the webhook', () => {
    const [error] = classifyErrorText(NO_SERVICE.slice(0, 130));
    expect(error).toMatchObject({ kind: 'webhook-unreachable', cause: 'other' });
  });
});

describe('several errors in one message', () => {
  test('the same text for two types is one error', () => {
    expect(classifyErrorText(failed(2, NO_SERVICE, NO_SERVICE))).toEqual([
      expect.objectContaining({ kind: 'webhook-unreachable', text: NO_SERVICE }),
    ]);
  });

  test('members that contain a comma are not split', () => {
    const items = 'unexpected items still remain in namespace: demo for gvr: /v1, Resource=pods';
    const denied = 'admission webhook "a" denied the request: keep it, for ever, please';
    expect(classifyErrorText(failed(3, NO_SERVICE, denied, items)).map(({ text }) => text)).toEqual(
      [NO_SERVICE, denied, items],
    );
  });

  test('a refusal whose free text looks like another error keeps the rest, so that no other cause is read in it', () => {
    const denied = 'admission webhook "z" denied the request: no, Internal error occurred: ha';
    const items = 'unexpected items still remain in namespace: demo for gvr: /v1, Resource=pods';
    expect(classifyErrorText(failed(2, denied, items)).map(({ text }) => text)).toEqual([
      `${denied}, ${items}`,
    ]);
  });

  test('no text is lost if the number does not fit', () => {
    const texts = classifyErrorText(failed(9, 'a, b', NO_SERVICE)).map(({ text }) => text);
    expect(texts.join(', ')).toBe(`a, b, ${NO_SERVICE}`);
  });

  test('without a stated number, a refusal keeps the rest of the text', () => {
    const text = 'admission webhook "a" denied the request: no, Internal error occurred: ha';
    expect(classifyErrorText(text).map((error) => error.text)).toEqual([text]);
  });
});

describe('hostile texts', () => {
  test('an empty text has no errors', () => {
    expect(classifyErrorText('')).toEqual([]);
    expect(classifyErrorText(failed(0))).toEqual([]);
  });

  test('never throws, and never adds text', () => {
    const pieces = fc.constantFrom(
      ', ',
      '"',
      '\\"',
      "'",
      ' is forbidden: ',
      ' not found',
      'failed calling webhook "x"',
      'admission webhook "x" denied the request: ',
      "ValidatingAdmissionPolicy 'x' denied request: ",
      'conversion webhook for a/v1, Kind=B failed: ',
      'unable to transform key "/a/b/c/d"',
      'unexpected items still remain in namespace: ',
      'unable to create new content in namespace ',
      'Post "https://a.b.svc:443/',
      'User "',
      'a',
      '\n',
      '😀',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 60 }), fc.nat(5), (words, stated) => {
        const tail = words.join('');
        for (const text of [tail, failed(stated, tail)]) {
          for (const error of classifyErrorText(text)) {
            expect(text).toContain(error.text);
          }
        }
      }),
    );
  });

  test.each([
    'a',
    '"',
    '\\"',
    'a.',
    ', ',
    'a, ',
    'a"',
    'a "',
    'a is forbidden: ',
    '"a" is forbidden: ',
    ', a is forbidden: ',
    ', a "b" not found',
    'failed calling webhook "',
    'failed calling webhook "a": Post "https://',
    'admission webhook "',
    "ValidatingAdmissionPolicy '",
    'conversion webhook for a',
    ', conversion webhook for a/b, Kind=',
    'unable to transform key "/a/b/',
    'unable to create new content in namespace ',
    'unexpected items still remain in namespace: ',
    'no new finalizers can be added {"',
    'User "a',
    ', Internal error occurred: ',
    'service "a',
  ])('ends with 100 kB of %j', (unit) => {
    const text = unit.repeat(Math.ceil(100_000 / unit.length));
    classifyErrorText(text);
    classifyErrorText(failed(2, text));
    classifyErrorText(failed(999_999_999, text));
  });
});
