import { describe, expect, test } from 'vitest';
import { createRedactor } from '../../src/base/redact.ts';

const JWT = 'eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJzeXN0ZW06c2EifQ.c2lnbmF0dXJl_-x';

describe('a registered secret', () => {
  test.each([
    { where: 'plain', text: 'said s3cr3t/+ value! loudly', want: 'said *** loudly' },
    { where: 'twice', text: 's3cr3t/+ value!s3cr3t/+ value!', want: '******' },
    { where: 'in a URL', text: '?q=s3cr3t%2F%2B%20value!&a=b', want: '?q=***&a=b' },
    { where: 'in base64', text: `data: ${btoa('s3cr3t/+ value!')}`, want: 'data: ***' },
  ])('is replaced $where', ({ text, want }) => {
    const redactor = createRedactor();
    redactor.add('s3cr3t/+ value!');
    expect(redactor.redact(text)).toBe(want);
  });

  test('is replaced as it reads inside JSON', () => {
    const redactor = createRedactor();
    redactor.add('quote " and \\ back');
    expect(redactor.redact(JSON.stringify({ a: 'quote " and \\ back' }))).toBe('{"a":"***"}');
  });

  test('is replaced with and without the line break of its file', () => {
    const redactor = createRedactor();
    redactor.add('token-from-a-file\n');
    expect(redactor.redact('a token-from-a-file b')).toBe('a *** b');
  });

  test('is replaced line by line, but not the frame that every certificate has', () => {
    const redactor = createRedactor();
    redactor.add(
      '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIabc\nzzzzYYYYxxxx\n-----END EC PRIVATE KEY-----\n',
    );
    expect(redactor.redact('one MHcCAQEEIabc two zzzzYYYYxxxx')).toBe('one *** two ***');
    expect(redactor.redact('needs -----END EC PRIVATE KEY----- there')).toContain('-----END');
  });

  test('that begins like another leaves no tail behind', () => {
    const redactor = createRedactor();
    redactor.add('password');
    redactor.add('password-and-more');
    expect(redactor.redact('password-and-more password')).toBe('*** ***');
  });

  test('of characters that mean something in patterns is taken literally', () => {
    const redactor = createRedactor();
    redactor.add('a.*(b)[c]$^|+?-/');
    expect(redactor.redact('x a.*(b)[c]$^|+?-/ y abbbbbbb')).toBe('x *** y abbbbbbb');
  });

  test('shorter than eight characters is ignored: it would mangle ordinary words', () => {
    const redactor = createRedactor();
    redactor.add('pods');
    redactor.add('');
    redactor.add(undefined);
    expect(redactor.redact('pods "a" not found')).toBe('pods "a" not found');
  });

  test('can come after texts were redacted already', () => {
    const redactor = createRedactor();
    redactor.add('first-secret');
    redactor.redact('x');
    redactor.add('second-secret');
    expect(redactor.redact('first-secret second-secret')).toBe('*** ***');
  });
});

describe('the shape of a secret', () => {
  test.each([
    { what: 'a JWT', text: `token ${JWT} was`, want: 'token *** was' },
    { what: 'a JWT without its end', text: JWT.slice(0, 60), want: '***' },
    {
      what: 'a bearer token',
      text: 'Authorization: Bearer abcdef0123456789==',
      want: 'Authorization: Bearer ***',
    },
    { what: 'basic authentication', text: 'basic dXNlcjpwYXNzd29yZDE=', want: 'basic ***' },
    { what: 'a token for EKS', text: 'k8s-aws-v1.aHR0cHM6Ly9zdHM x', want: '*** x' },
    { what: 'a Google token', text: 'ya29.a0AfH6SMBx-y_z x', want: '*** x' },
    { what: 'an OpenShift token', text: 'sha256~abcdefghijklmnopqrstuvwxyz x', want: '*** x' },
    { what: 'a GitHub token', text: 'ghs_16C7e42F292c6912E7710c838347Ae178B4a x', want: '*** x' },
    {
      what: 'a key',
      text: 'key: -----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----\nnext',
      want: 'key: ***\nnext',
    },
    { what: 'a key that was cut off', text: '-----BEGIN PRIVATE KEY----- MIIE abcd', want: '***' },
    {
      what: 'a password in a URL',
      text: 'via http://ci:hunter2@proxy:3128/x',
      want: 'via http://***@proxy:3128/x',
    },
    {
      what: 'a password with a slash-free @',
      text: 'socks5://a:b@c@host',
      want: 'socks5://***@host',
    },
  ])('$what', ({ text, want }) => {
    expect(createRedactor().redact(text)).toBe(want);
  });

  test.each([
    'Bearer authentication is not configured',
    'Basic information about the namespace',
    'https://10.0.0.1:6443/api/v1/namespaces/a@b',
    'see https://example.com/docs, and mail ops@example.com',
    'configmaps "eyJust-a-name" is forbidden',
    'widgets.ledger.example.com "a-b-c" not found',
    'Post "https://hooks.demo.svc:443/validate?timeout=5s": no endpoints available for service "hooks"',
  ])('is not seen in: %s', (text) => {
    expect(createRedactor().redact(text)).toBe(text);
  });

  test('is looked for in long texts made to be slow, and the search comes to an end', () => {
    const redactor = createRedactor();
    const parts = ['-----BEGIN A-----', '://', '://a:', 'a:', 'eyJ', 'eyJ-', 'Bearer ', '://a:b@'];
    for (const part of parts) redactor.redact(`://${part.repeat(100_000)}`);
  });
});
