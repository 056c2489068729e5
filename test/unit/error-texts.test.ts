import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { classifyErrorText } from '../../src/diagnose/error-texts.ts';

const failed = (types: number, ...errors: string[]) =>
  `Failed to delete all resource types, ${types} remaining: ${errors.join(', ')}`;

const NO_SERVICE =
  'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://webhook-gone.demo.svc:443/validate?timeout=5s": service "webhook-gone" not found';

describe('one error, in the words of real servers', () => {
  test.each([
    {
      text: NO_SERVICE,
      detail: {
        kind: 'webhook-unreachable',
        webhook: 'guard.example.com',
        cause: 'service-not-found',
        service: { namespace: 'demo', name: 'webhook-gone' },
        url: 'https://webhook-gone.demo.svc:443/validate?timeout=5s',
      },
    },
    {
      text: 'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://hooks.demo.svc:443/validate?timeout=5s": no endpoints available for service "hooks"',
      detail: {
        kind: 'webhook-unreachable',
        cause: 'no-endpoints',
        service: { namespace: 'demo', name: 'hooks' },
      },
    },
    {
      text: 'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://hooks.demo.svc:443/validate?timeout=5s": dial tcp 10.96.12.1:443: connect: connection refused',
      detail: { kind: 'webhook-unreachable', cause: 'refused' },
    },
    {
      text: 'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://hooks.demo.svc:443/validate?timeout=5s": tls: failed to verify certificate: x509: certificate signed by unknown authority',
      detail: { kind: 'webhook-unreachable', cause: 'certificate' },
    },
    {
      text: 'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://127.0.0.1:9443/validate?timeout=1s": context deadline exceeded',
      detail: {
        kind: 'webhook-unreachable',
        cause: 'timeout',
        service: undefined,
        url: 'https://127.0.0.1:9443/validate?timeout=1s',
      },
    },
    {
      text: 'Internal error occurred: failed calling webhook "vnbroutingpeer-v1.netbird.io": failed to call webhook: Post "https://netbird-webhook.netbird.svc:443/validate-netbird-io-v1?timeout=10s": service "netbird-webhook" not found',
      detail: {
        kind: 'webhook-unreachable',
        webhook: 'vnbroutingpeer-v1.netbird.io',
        cause: 'service-not-found',
      },
    },
    {
      // Before 1.20, without the second clause.
      text: 'Internal error occurred: failed calling webhook "a.example.com": Post https://a.demo.svc:443/x?timeout=30s: service "a" not found',
      detail: {
        kind: 'webhook-unreachable',
        webhook: 'a.example.com',
        cause: 'service-not-found',
        service: { namespace: 'demo', name: 'a' },
        url: 'https://a.demo.svc:443/x?timeout=30s',
      },
    },
    {
      text: 'failed calling webhook "a.example.com"; no further details available',
      detail: { kind: 'webhook-unreachable', webhook: 'a.example.com', cause: 'other' },
    },
    {
      text: 'admission webhook "guard.example.com" denied the request: ledgers are kept for ten years',
      detail: {
        kind: 'webhook-denied',
        webhook: 'guard.example.com',
        message: 'ledgers are kept for ten years',
      },
    },
    {
      text: 'admission webhook "guard.example.com" denied the request without explanation',
      detail: { kind: 'webhook-denied', message: 'without explanation' },
    },
    {
      text: 'admission webhook "guard.example.com" does not support dry run',
      detail: { kind: 'dry-run-unsupported', webhook: 'guard.example.com' },
    },
    {
      text: `secrets "Unknown" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'keep-all' denied request: secrets stay, always`,
      detail: {
        kind: 'policy-denied',
        policy: 'keep',
        binding: 'keep-all',
        message: 'secrets stay, always',
      },
    },
    {
      text: "widgets.example.com \"Unknown\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
      detail: { kind: 'policy-denied', policy: 'p', binding: 'b' },
    },
    {
      text: `policy 'mutate' with binding 'mutate-all' denied request: no`,
      detail: {
        kind: 'policy-denied',
        policy: 'mutate',
        binding: 'mutate-all',
      },
    },
    {
      text: 'conversion webhook for example.com/v1, Kind=Widget failed: Post "https://conv.demo.svc:443/convert?timeout=30s": service "conv" not found',
      detail: {
        kind: 'conversion-failed',
        group: 'example.com',
        version: 'v1',
        objectKind: 'Widget',
        cause: 'service-not-found',
        service: { namespace: 'demo', name: 'conv' },
      },
    },
    {
      // cert-manager#3135: an unquoted URL, and quotes that were escaped once more.
      text: 'conversion webhook for acme.cert-manager.io/v1alpha2, Kind=Challenge failed: Post https://cert-manager-webhook.cert-manager.svc:443/convert?timeout=30s: service \\"cert-manager-webhook\\" not found',
      detail: {
        kind: 'conversion-failed',
        group: 'acme.cert-manager.io',
        version: 'v1alpha2',
        objectKind: 'Challenge',
        cause: 'service-not-found',
        service: { namespace: 'cert-manager', name: 'cert-manager-webhook' },
        url: 'https://cert-manager-webhook.cert-manager.svc:443/convert?timeout=30s',
      },
    },
    {
      text: 'storage is (re)initializing: failed to list example.com/v1, Kind=Widget: conversion webhook for example.com/v2, Kind=Widget failed: Post "https://conv.demo.svc:443/convert?timeout=30s": service "conv" not found',
      detail: { kind: 'conversion-failed', version: 'v2', cause: 'service-not-found' },
    },
    {
      text: 'conversion webhook for example.com/v1, Kind=Widget returned 1 objects, expected 2',
      detail: { kind: 'conversion-failed', cause: 'other', service: undefined },
    },
    {
      text: 'leases.coordination.k8s.io is forbidden: User "system:serviceaccount:kube-system:namespace-controller" cannot deletecollection resource "leases" in API group "coordination.k8s.io" in the namespace "demo"',
      detail: {
        kind: 'forbidden',
        user: 'system:serviceaccount:kube-system:namespace-controller',
        verb: 'deletecollection',
        resource: 'leases',
        group: 'coordination.k8s.io',
      },
    },
    {
      text: 'secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" at the cluster scope',
      detail: { kind: 'forbidden', user: 'jane', verb: 'list', resource: 'secrets', group: '' },
    },
    {
      text: 'pods "p" is forbidden: exceeded quota: compute, requested: cpu=1, used: cpu=4, limited: cpu=4',
      detail: { kind: 'forbidden', user: undefined, resource: 'pods', group: '' },
    },
    {
      text: 'forbidden: User "jane" cannot get path "/apis"',
      detail: { kind: 'forbidden', user: 'jane', verb: 'get', resource: '' },
    },
    {
      text: 'jobs.batch "cleanup" is forbidden: unable to create new content in namespace demo because it is being terminated',
      detail: { kind: 'namespace-terminating', namespace: 'demo', resource: 'jobs' },
    },
    {
      text: 'unexpected items still remain in namespace: demo for gvr: /v1, Resource=pods',
      detail: {
        kind: 'unexpected-items',
      },
    },
    {
      text: 'unexpected items still remain in namespace: demo for gvr: example.com/v1, Resource=widgets',
      detail: { kind: 'unexpected-items' },
    },
    {
      text: 'Internal error occurred: unable to transform key "/registry/configmaps/demo/broken": identity transformer tried to read encrypted data',
      detail: {
        kind: 'storage',
        problem: 'unreadable',
        resource: 'configmaps',
        name: 'broken',
      },
    },
    {
      text: 'Internal error occurred: unable to transform key "/registry/example.com/widgets/demo/w": no matching prefix found',
      detail: { kind: 'storage', group: 'example.com', resource: 'widgets', name: 'w' },
    },
    {
      text: 'Internal error occurred: unable to transform key "/registry/services/specs/demo/web": no matching prefix found',
      detail: { kind: 'storage', group: undefined, resource: 'services', name: 'web' },
    },
    {
      text: 'illegal base64 data at input byte 4',
      detail: {
        kind: 'storage',
        problem: 'unreadable',
        resource: undefined,
        name: undefined,
      },
    },
    {
      text: 'Internal error occurred: StorageError: corrupt object, Code: 7, Key: /registry/secrets/demo/a, ResourceVersion: 0, AdditionalErrorMsg: data from the storage is not transformable revision=0: no matching prefix found',
      detail: { kind: 'storage', problem: 'unreadable' },
    },
    {
      text: 'storage is (re)initializing',
      detail: { kind: 'storage', problem: 'initializing' },
    },
    {
      text: 'Timeout: request did not complete within requested timeout - context deadline exceeded',
      detail: { kind: 'timeout' },
    },
    {
      text: 'the server was unable to return a response in the time allotted, but may still be processing the request (delete widgets.example.com)',
      detail: { kind: 'timeout' },
    },
    {
      text: 'the server is currently unable to handle the request (delete entries.ledger.example.com)',
      detail: { kind: 'unavailable' },
    },
    {
      text: 'an error on the server ("internal error") has prevented the request from succeeding',
      detail: { kind: 'unavailable' },
    },
    {
      text: 'Pod "p" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"d.e/f", "g.h/i"}',
      detail: { kind: 'new-finalizers-refused' },
    },
    {
      text: 'Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than these',
      detail: { kind: 'invalid' },
    },
    {
      text: 'reconcile failed: secrets "cloud-credentials" not found',
      detail: { kind: 'not-found', resource: 'secrets', name: 'cloud-credentials' },
    },
    {
      text: 'Delete "https://10.0.0.1:6443/api/v1/namespaces/many/configmaps": stream error: stream ID 7943; INTERNAL_ERROR; received from peer',
      detail: { kind: 'timeout' },
    },
    { text: 'entries are protected until 2030, ask finance', detail: { kind: 'other' } },
    { text: 'Internal error occurred: boom', detail: { kind: 'other' } },
  ])('$detail.kind: $text', ({ text, detail }) => {
    // Alone, and as the one member of a condition: the same answer.
    for (const whole of [text, failed(1, text)]) {
      const errors = classifyErrorText(whole);
      expect(errors).toHaveLength(1);
      expect(errors[0]).toMatchObject({ ...detail, text, count: 1 });
    }
  });

  test('an operator that passes an error on, with words of its own around it', () => {
    const [error] = classifyErrorText(
      `could not delete database: timed out: ${NO_SERVICE}; will retry`,
    );
    expect(error).toMatchObject({ kind: 'webhook-unreachable', cause: 'service-not-found' });
  });

  test('free text of a refusal that quotes another error stays a refusal', () => {
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
  test('the same words for two types are one error that came twice', () => {
    expect(classifyErrorText(failed(2, NO_SERVICE, NO_SERVICE))).toEqual([
      expect.objectContaining({ kind: 'webhook-unreachable', text: NO_SERVICE, count: 2 }),
    ]);
  });

  test('the same words with commas in them, which nothing else could split', () => {
    const text = 'entries are protected, ask finance, or wait';
    expect(classifyErrorText(failed(3, text, text, text))).toEqual([
      { kind: 'other', text, count: 3 },
    ]);
  });

  test('members that contain a comma are not torn apart', () => {
    const items = 'unexpected items still remain in namespace: demo for gvr: /v1, Resource=pods';
    const denied = 'admission webhook "a" denied the request: keep it, for ever, please';
    expect(classifyErrorText(failed(3, NO_SERVICE, denied, items)).map(({ text }) => text)).toEqual(
      [NO_SERVICE, denied, items],
    );
  });

  test('a refusal whose free text looks like the next error is put together by the sorting', () => {
    const denied = 'admission webhook "z" denied the request: no, Internal error occurred: ha';
    const items = 'unexpected items still remain in namespace: demo for gvr: /v1, Resource=pods';
    expect(classifyErrorText(failed(2, denied, items)).map(({ text }) => text)).toEqual([
      denied,
      items,
    ]);
  });

  test('errors with unknown beginnings are split when their number is stated and fits', () => {
    expect(classifyErrorText(failed(2, 'accounts are frozen', 'entries are kept'))).toEqual([
      { kind: 'other', text: 'accounts are frozen', count: 1 },
      { kind: 'other', text: 'entries are kept', count: 1 },
    ]);
  });

  test('unknown errors beside one with a comma of its own', () => {
    const items = 'unexpected items still remain in namespace: demo for gvr: /v1, Resource=pods';
    const errors = classifyErrorText(failed(3, 'accounts are frozen', 'entries are kept', items));
    expect(errors.map(({ kind }) => kind)).toEqual(['other', 'other', 'unexpected-items']);
  });

  test('nothing is lost when the number does not fit', () => {
    const texts = classifyErrorText(failed(9, 'a, b', NO_SERVICE)).map(({ text }) => text);
    expect(texts.join(', ')).toBe(`a, b, ${NO_SERVICE}`);
  });

  test('without a stated number, a refusal keeps all that follows', () => {
    const text = 'admission webhook "a" denied the request: no, Internal error occurred: ha';
    expect(classifyErrorText(text).map((error) => error.text)).toEqual([text]);
  });
});

describe('hostile texts', () => {
  test('an empty text has no errors', () => {
    expect(classifyErrorText('')).toEqual([]);
    expect(classifyErrorText(failed(0))).toEqual([]);
  });

  test('never throws, never invents words, and counts at least one of each', () => {
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
            expect(error.count).toBeGreaterThan(0);
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
  ])('comes to an end with 100 kB of %j', (unit) => {
    const text = unit.repeat(Math.ceil(100_000 / unit.length));
    classifyErrorText(text);
    classifyErrorText(failed(2, text));
    classifyErrorText(failed(999_999_999, text));
  });
});
