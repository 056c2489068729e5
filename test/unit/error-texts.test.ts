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
    expect(read('secrets "login" not found')).toMatchObject({ namespace: undefined });
    expect(read('secret "team-1/login" not found, assuming that it is deleted')?.kind).toBe(
      'other',
    );
  });

  test('a refusal that quotes another error is still a refusal; what was cut off still names the webhook', () => {
    const quotes =
      'admission webhook "a.example.com" denied the request: failed calling webhook "b.example.com": x';
    expect(classifyErrorText(quotes)[0]).toMatchObject({
      ...{ kind: 'webhook-denied', webhook: 'a.example.com' },
    });
    expect(classifyErrorText(NO_SERVICE.slice(0, 130))[0]).toMatchObject({
      ...{ kind: 'webhook-unreachable', cause: 'other' },
    });
  });
});

describe('several errors in one message', () => {
  const ITEMS = 'unexpected items still remain in namespace: demo for gvr: /v1, Resource=pods';
  const KEEP = 'admission webhook "a" denied the request: keep it, for ever, please';
  const LOOKS = 'admission webhook "z" denied the request: no, Internal error occurred: ha';

  test.each<[what: string, text: string, errors: string[]]>([
    ['the same for two types is one', failed(2, NO_SERVICE, NO_SERVICE), [NO_SERVICE]],
    ['no member is split', failed(3, NO_SERVICE, KEEP, ITEMS), [NO_SERVICE, KEEP, ITEMS]],
    // So that no other cause is read in its free text.
    [
      'a refusal that looks like another keeps the rest',
      failed(2, LOOKS, ITEMS),
      [`${LOOKS}, ${ITEMS}`],
    ],
    ['without a stated number, a refusal keeps the rest', LOOKS, [LOOKS]],
    ['none', '', []],
    ['none of none', failed(0), []],
  ])('%s', (_, text, errors) => {
    expect(classifyErrorText(text).map((error) => error.text)).toEqual(errors);
  });

  test('no text is lost if the number does not fit', () => {
    const texts = classifyErrorText(failed(9, 'a, b', NO_SERVICE)).map(({ text }) => text);
    expect(texts.join(', ')).toBe(`a, b, ${NO_SERVICE}`);
  });
});

describe('hostile texts', () => {
  const UNITS = [
    ...['a', '"', '\\"', 'a.', ', ', 'a, ', 'a"', 'a "', 'User "a', 'service "a'],
    ...['a is forbidden: ', '"a" is forbidden: ', ', a is forbidden: ', ', a "b" not found'],
    ...['failed calling webhook "', 'failed calling webhook "a": Post "https://'],
    ...['admission webhook "', "ValidatingAdmissionPolicy '", 'conversion webhook for a'],
    ...[', conversion webhook for a/b, Kind=', 'unable to transform key "/a/b/'],
    ...['unable to create new content in namespace ', 'no new finalizers can be added {"'],
    ...['unexpected items still remain in namespace: ', ', Internal error occurred: '],
  ];

  test('never throws, and never adds text', () => {
    const ends = [' not found', 'x" denied the request: ', "x' denied request: ", ' failed: '];
    const pieces = fc.constantFrom(...UNITS, ...ends, 'x"', '\n', '😀');
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

  test.each(UNITS)('ends with 100 kB of %j', (unit) => {
    const text = unit.repeat(Math.ceil(100_000 / unit.length));
    classifyErrorText(text);
    classifyErrorText(failed(2, text));
    classifyErrorText(failed(999_999_999, text));
  });
});
