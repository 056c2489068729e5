import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseConditions } from '../../src/diagnose/conditions.ts';
import type { Condition } from '../../src/model/snapshot.ts';
import { GREEN_CONDITIONS } from '../stub/green-conditions.ts';

const GREEN: Condition[] = GREEN_CONDITIONS;

function isTrue(type: string, message: string): Condition {
  return { type, status: 'True', reason: 'Whatever', message };
}

const discovery = (message: string) =>
  parseConditions([isTrue('NamespaceDeletionDiscoveryFailure', message)]);
const remaining = (message: string) =>
  parseConditions([isTrue('NamespaceContentRemaining', message)]);
const finalizers = (message: string) =>
  parseConditions([isTrue('NamespaceFinalizersRemaining', message)]);

describe('parseConditions as a whole', () => {
  test('says that a namespace without conditions has none', () => {
    expect(parseConditions([])).toEqual({
      present: false,
      discoveryFailures: [],
      remaining: [],
      finalizersRemaining: [],
    });
  });

  test('finds nothing in five green conditions, although they are present', () => {
    expect(parseConditions(GREEN)).toEqual({
      present: true,
      discoveryFailures: [],
      remaining: [],
      finalizersRemaining: [],
    });
  });

  test('takes nothing from types that others put there', () => {
    const parsed = parseConditions([
      isTrue('example.com/Frozen', 'pods. has 5 resource instances'),
      isTrue('constructor', 'x'),
    ]);
    expect(parsed.present).toBe(false);
    expect(parsed.remaining).toEqual([]);
  });
});

describe('NamespaceContentRemaining', () => {
  test.each([
    {
      from: 'one object of the core group (1.32.2 and 1.36.3)',
      message: 'Some resources are remaining: configmaps. has 1 resource instances',
      entries: [{ group: '', resource: 'configmaps', count: 1 }],
    },
    {
      from: 'bpfman#432',
      message:
        'Some resources are remaining: configmaps. has 1 resource instances, daemonsets.apps has 1 resource instances',
      entries: [
        { group: '', resource: 'configmaps', count: 1 },
        { group: 'apps', resource: 'daemonsets', count: 1 },
      ],
    },
    {
      from: 'starrocks#147',
      message:
        'Some resources are remaining: services. has 2 resource instances, starrocksclusters.starrocks.com has 1 resource instances',
      entries: [
        { group: '', resource: 'services', count: 2 },
        { group: 'starrocks.com', resource: 'starrocksclusters', count: 1 },
      ],
    },
    {
      from: 'a group of several labels',
      message:
        'Some resources are remaining: entries.ledger.example.com has 12000 resource instances',
      entries: [{ group: 'ledger.example.com', resource: 'entries', count: 12_000 }],
    },
    {
      from: 'a list that has become empty, as zero counts are left out',
      message: 'Some resources are remaining: ',
      entries: [],
    },
  ])('reads $from', ({ message, entries }) => {
    const parsed = remaining(message);
    expect(parsed.remaining).toEqual(entries);
  });

  test('leaves out entries that it does not understand and keeps the others', () => {
    const parsed = remaining(
      'Some resources are remaining: pods. has many resource instances, kialis.kiali.io has 1 resource instances',
    );
    expect(parsed.remaining).toEqual([{ group: 'kiali.io', resource: 'kialis', count: 1 }]);
  });
});

describe('NamespaceFinalizersRemaining', () => {
  test.each([
    {
      from: 'one finalizer (1.32.2 and 1.36.3)',
      message:
        'Some content in the namespace has finalizers remaining: some.random/finalizer in 1 resource instances',
      entries: [{ finalizer: 'some.random/finalizer', count: 1 }],
    },
    {
      from: 'two finalizers on one object',
      message:
        'Some content in the namespace has finalizers remaining: alive.example.com/cleanup in 1 resource instances, dead.example.com/cleanup in 1 resource instances',
      entries: [
        { finalizer: 'alive.example.com/cleanup', count: 1 },
        { finalizer: 'dead.example.com/cleanup', count: 1 },
      ],
    },
    {
      from: 'starrocks#147',
      message:
        'Some content in the namespace has finalizers remaining: starrocks.com.service/protection in 2 resource instances',
      entries: [{ finalizer: 'starrocks.com.service/protection', count: 2 }],
    },
    {
      from: 'a finalizer without domain',
      message:
        'Some content in the namespace has finalizers remaining: endpoint-appmgr in 1 resource instances',
      entries: [{ finalizer: 'endpoint-appmgr', count: 1 }],
    },
    {
      from: 'the first wording of this condition',
      message: 'Some finalizers are remaining: kiali.io/finalizer in 1 resource instances',
      entries: [{ finalizer: 'kiali.io/finalizer', count: 1 }],
    },
    {
      from: 'underscores, which finalizers may have',
      message:
        'Some content in the namespace has finalizers remaining: a.b/cleanup__init__._b_1 in 3 resource instances',
      entries: [{ finalizer: 'a.b/cleanup__init__._b_1', count: 3 }],
    },
  ])('reads $from', ({ message, entries }) => {
    const parsed = finalizers(message);
    expect(parsed.finalizersRemaining).toEqual(entries);
  });
});

describe('NamespaceDeletionDiscoveryFailure', () => {
  const prefix = (n: number) =>
    `Discovery failed for some groups, ${n} failing: unable to retrieve the complete list of server APIs: `;

  test.each([
    {
      from: '1.27 and later, where the group-version appears twice',
      message: `${prefix(1)}metrics.example.com/v1beta1: stale GroupVersion discovery: metrics.example.com/v1beta1`,
      failures: [
        {
          group: 'metrics.example.com',
          version: 'v1beta1',
          error: 'stale GroupVersion discovery: metrics.example.com/v1beta1',
        },
      ],
    },
    {
      from: 'two versions of one group (KubeVirt)',
      message: `${prefix(2)}subresources.kubevirt.io/v1: stale GroupVersion discovery: subresources.kubevirt.io/v1, subresources.kubevirt.io/v1alpha3: stale GroupVersion discovery: subresources.kubevirt.io/v1alpha3`,
      failures: [
        {
          group: 'subresources.kubevirt.io',
          version: 'v1',
          error: 'stale GroupVersion discovery: subresources.kubevirt.io/v1',
        },
        {
          group: 'subresources.kubevirt.io',
          version: 'v1alpha3',
          error: 'stale GroupVersion discovery: subresources.kubevirt.io/v1alpha3',
        },
      ],
    },
    {
      from: 'before 1.27: 503',
      message: `${prefix(1)}metrics.k8s.io/v1beta1: the server is currently unable to handle the request`,
      failures: [
        {
          group: 'metrics.k8s.io',
          version: 'v1beta1',
          error: 'the server is currently unable to handle the request',
        },
      ],
    },
    {
      from: 'kubernetes#75788, with two groups',
      message: `${prefix(2)}custom.metrics.k8s.io/v1beta1: the server is currently unable to handle the request, external.metrics.k8s.io/v1beta1: the server could not find the requested resource`,
      failures: [
        {
          group: 'custom.metrics.k8s.io',
          version: 'v1beta1',
          error: 'the server is currently unable to handle the request',
        },
        {
          group: 'external.metrics.k8s.io',
          version: 'v1beta1',
          error: 'the server could not find the requested resource',
        },
      ],
    },
    {
      from: 'an error with a comma and a URL in it',
      message: `${prefix(2)}a.example.com/v1: an error on the server ("oops, try later") has prevented the request from succeeding, b.example.com/v1: Get "https://10.0.0.1:443/apis/b.example.com/v1?timeout=32s": net/http: request canceled`,
      failures: [
        {
          group: 'a.example.com',
          version: 'v1',
          error:
            'an error on the server ("oops, try later") has prevented the request from succeeding',
        },
        {
          group: 'b.example.com',
          version: 'v1',
          error:
            'Get "https://10.0.0.1:443/apis/b.example.com/v1?timeout=32s": net/http: request canceled',
        },
      ],
    },
    {
      from: 'the core group, which has no name',
      message: `${prefix(1)}v1: stale GroupVersion discovery: v1`,
      failures: [{ group: '', version: 'v1', error: 'stale GroupVersion discovery: v1' }],
    },
  ])('reads $from', ({ message, failures }) => {
    const parsed = discovery(message);
    expect(parsed.discoveryFailures).toEqual(failures);
    expect(parsed.discoveryRaw).toBeUndefined();
  });

  test('keeps the raw error when discovery failed as a whole', () => {
    const message = 'Get "https://127.0.0.1:6443/api?timeout=32s": EOF';
    expect(discovery(message).discoveryRaw).toBe(message);
  });
});

describe('NamespaceDeletionContentFailure', () => {
  const content = (message: string) =>
    parseConditions([isTrue('NamespaceDeletionContentFailure', message)]);

  test('has what the errors say', () => {
    const message =
      'Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: demo for gvr: /v1, Resource=pods';
    expect(content(message).contentFailure).toMatchObject({
      errors: [{ kind: 'unexpected-items', count: 1 }],
    });
  });

  test('classifies a message without the known prefix all the same', () => {
    const message = 'admission webhook "a.example.com" denied the request: no';
    expect(content(message).contentFailure?.errors[0]?.kind).toBe('webhook-denied');
  });
});

describe('hostile messages', () => {
  const types = [...GREEN.map((condition) => condition.type), 'Other'];

  test('never throws, whatever the conditions say', () => {
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
        (conditions) => {
          expect(parseConditions(conditions).present).toBe(
            conditions.some((condition) => condition.type !== 'Other'),
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
    const started = performance.now();
    for (const prefix of [
      '',
      'Some resources are remaining: ',
      'Some finalizers are remaining: ',
      'Failed to delete all resource types, 7 remaining: ',
      'Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: ',
    ]) {
      parseConditions(types.map((type) => isTrue(type, prefix + text)));
    }
    // 30 messages; anything quadratic in 100 kB takes minutes.
    expect(performance.now() - started).toBeLessThan(3_000);
  });
});
