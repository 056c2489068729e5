import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRedactor, redactDeep } from '../../src/base/redact.ts';
import { shortQuote } from '../../src/base/text.ts';
import { expectPairs } from '../stub/pairs.ts';

describe('a registered secret', () => {
  const SECRET = 's3cr3t/+ value!';
  test.each<[where: string, secret: string, text: string, want: string]>([
    ['plain', SECRET, 'said s3cr3t/+ value! loudly', 'said *** loudly'],
    ['twice', SECRET, 's3cr3t/+ value!s3cr3t/+ value!', '******'],
    ['in a URL', SECRET, '?q=s3cr3t%2F%2B%20value!&a=b', '?q=***&a=b'],
    ['in base64', SECRET, `data: ${btoa('s3cr3t/+ value!')}`, 'data: ***'],
    ['in JSON', 'quote " and \\ back', JSON.stringify({ a: 'quote " and \\ back' }), '{"a":"***"}'],
    ['without its line break', 'token-from-a-file\n', 'a token-from-a-file b', 'a *** b'],
    ['literally', 'a.*(b)[c]$^|+?-/', 'x a.*(b)[c]$^|+?-/ y abbbbbbb', 'x *** y abbbbbbb'],
    ['with half a surrogate pair', 'half \ud800 a pair', 'half \ufffd a pair', '***'],
    ['not if it would damage words', 'pods', 'pods "a" not found', 'pods "a" not found'],
    ['not if it is empty', '', 'pods "a" not found', 'pods "a" not found'],
  ])('is replaced %s', (_, secret, text, want) => {
    const redactor = createRedactor();
    redactor.add(secret);
    redactor.add(undefined);
    expect(redactor.redact(text)).toBe(want);
  });

  test('is replaced line by line, except the lines that every certificate has', () => {
    const redactor = createRedactor();
    redactor.add(
      '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIabc\nzzzzYYYYxxxx\n-----END EC PRIVATE KEY-----\n',
    );
    expect(redactor.redact('one MHcCAQEEIabc two zzzzYYYYxxxx')).toBe('one *** two ***');
    expect(redactor.redact('needs -----END EC PRIVATE KEY----- there')).toContain('-----END');
  });

  test('that begins like another one is replaced as a whole, and may be added later', () => {
    const redactor = createRedactor();
    redactor.add('password');
    redactor.redact('x');
    redactor.add('password-and-more');
    expect(redactor.redact('password-and-more password')).toBe('*** ***');
  });

  test.each([8, 44_000, 1_000_000])('of %i characters is replaced', (length) => {
    // A secret counts without spaces around it as well.
    const secret = `x${fc.sample(fc.string({ unit: 'grapheme-ascii', minLength: 7, maxLength: 7 }), 1)[0]}`;
    const long = secret.repeat(length / 8);
    const redactor = createRedactor();
    redactor.add(long);
    expect(redactor.redact(`before ${long} after`)).toBe('before *** after');
    expect(redactor.redact(`before ${long.slice(1)}`)).toBe(`before ${long.slice(1)}`);
  });

  test('of thousands of lines is replaced line by line', () => {
    const lines = Array.from({ length: 3_000 }, (_, index) => `${index}-`.padEnd(64, 'k3y'));
    const redactor = createRedactor();
    redactor.add(lines.join('\n'));
    expect(redactor.redact(lines.slice(1).join(' '))).toBe(lines.slice(1).fill('***').join(' '));
  });

  test('is replaced in any text, whatever other secrets there are', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', '\\', '$', '.'), maxLength: 24 });
    fc.assert(
      fc.property(fc.array(word), fc.array(word), (words, texts) => {
        const redactor = createRedactor();
        for (const secret of words) redactor.add(secret);
        const clean = redactor.redact([...texts, ...words].join(''));
        const secrets = words.filter(({ length }) => length >= 8);
        expect(secrets.filter((secret) => clean.includes(secret))).toEqual([]);
      }),
    );
  });

  test('redacts a text and an object once, however often a result contains them', () => {
    const seen: string[] = [];
    const mask = (text: string): string => {
      seen.push(text);
      return text.replace('secret', '***');
    };
    const held = { name: 'a secret', outcome: 'secret' };
    const clean = redactDeep([[held, held], { text: 'a secret', held }], mask, new Set(['secret']));
    const masked = { name: 'a ***', outcome: 'secret' };
    expect(clean).toEqual([[masked, masked], { text: 'a ***', held: masked }]);
    expect(seen).toEqual(['a secret']);
  });
});

describe('the shape of a secret', () => {
  test('is recognized, and ordinary words are not', () =>
    expectPairs('redacted.txt', (line) => createRedactor().redact(line.replaceAll('\\n', '\n'))));

  test('is searched in linear time', () => {
    const redactor = createRedactor();
    const parts = ['-----BEGIN A-----', '://', '://a:', 'a:', 'eyJ', 'eyJ-', 'Bearer ', '://a:b@'];
    parts.push('authorization: a ', '--token ', '"password":"\\\\"');
    parts.push('password=', 'token: "', 'glpat-', 'SG.', '?sig=', 'AKIAIOSFODNN7EXAMPLE ');
    for (const part of parts) redactor.redact(`://${part.repeat(30_000)}`);
  });
});

test('a secret in a quotation that is shortened is masked before', () => {
  const rest = `: ${'the same answer came back; '.repeat(20)}giving up`;
  for (const [address, secret] of [
    ['mongodb+srv://u:S3cretPassw0rd16@cluster0.abcde.mongodb.net/orders?w=majority', 'S3cret'],
    ['https://files.example.com/api/v1/releases/download?token=A1b2C3d4E5f6G7h8I9j0K', 'I9j0K'],
  ] as const) {
    const quote = shortQuote(`cannot read ${address}${rest}`);
    expect(quote).toContain('***');
    expect(quote).not.toContain(secret);
  }
});
