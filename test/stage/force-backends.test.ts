import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { readHostedBackends } from '../../src/force/backends.ts';
import { DEMO, FakeCluster, WIDGETS } from './force-fake.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const NEVER = new AbortController().signal;
const SERVICE = { namespace: DEMO, name: 'hooks' };

function webhook(over: JsonObject = {}): FakeCluster {
  const cluster = new FakeCluster();
  cluster.put(`${ADMISSION}/validatingwebhookconfigurations/guard`, {
    metadata: { name: 'guard' },
    webhooks: [
      {
        name: 'guard.example.com',
        clientConfig: { service: SERVICE },
        rules: [{ apiGroups: ['example.com'], resources: ['widgets'], scope: '*' }],
        ...over,
      },
    ],
  });
  return cluster;
}

function widgetElsewhere(cluster: FakeCluster): FakeCluster {
  cluster.put('/apis/example.com/v1/namespaces/production/widgets/x', {
    metadata: { name: 'x', namespace: 'production' },
  });
  return cluster;
}

const ask = (cluster: FakeCluster) => readHostedBackends(cluster, DEMO, NEVER);
const onlyHere = {
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': DEMO } },
};

describe('readHostedBackends', () => {
  test('finds nothing where nothing calls a Service in the namespace', async () => {
    const cluster = webhook({ clientConfig: { service: { namespace: 'ops', name: 'hooks' } } });
    expect(await ask(widgetElsewhere(cluster))).toEqual({ usedElsewhere: [], unread: [] });
  });

  test('a webhook for a type that is only here is the business of the namespace', async () => {
    const cluster = webhook();
    cluster.object(WIDGETS, 'mine');
    expect(await ask(cluster)).toEqual({ usedElsewhere: [], unread: [] });
  });

  test('a webhook for a type with objects elsewhere is not', async () => {
    expect(await ask(widgetElsewhere(webhook()))).toEqual({
      usedElsewhere: [
        {
          what: 'ValidatingWebhookConfiguration guard (guard.example.com)',
          evidence: 'widgets.example.com are also in namespace production',
        },
      ],
      unread: [],
    });
  });

  test.each([
    ['its selector lets only this namespace through', onlyHere],
    [
      'the same as an expression',
      {
        namespaceSelector: {
          matchExpressions: [
            { key: 'kubernetes.io/metadata.name', operator: 'In', values: [DEMO] },
          ],
        },
      },
    ],
    ['its type is not served', { rules: [{ apiGroups: ['gone.io'], resources: ['x'] }] }],
    [
      'it is confined and its rule leaves cluster-scoped objects out',
      { ...onlyHere, rules: [{ apiGroups: ['*'], resources: ['*'], scope: 'Namespaced' }] },
    ],
  ])('a webhook does not count when %s', async (_, over) => {
    expect((await ask(widgetElsewhere(webhook(over)))).usedElsewhere).toEqual([]);
  });

  test.each([
    ['it is for everything', { rules: [{ apiGroups: ['*'], resources: ['*'] }] }],
    [
      'its selector names another namespace as well',
      {
        namespaceSelector: {
          matchExpressions: [
            { key: 'kubernetes.io/metadata.name', operator: 'In', values: [DEMO, 'production'] },
          ],
        },
      },
    ],
    [
      'its selector excludes',
      {
        namespaceSelector: {
          matchExpressions: [
            { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [DEMO] },
          ],
        },
      },
    ],
    [
      'it is confined, but its rule catches cluster-scoped objects',
      { ...onlyHere, rules: [{ apiGroups: ['*'], resources: ['*'], scope: '*' }] },
    ],
    [
      'a subresource is meant',
      { rules: [{ apiGroups: ['example.com'], resources: ['widgets/status'] }] },
    ],
  ])('a webhook counts when %s', async (_, over) => {
    expect((await ask(widgetElsewhere(webhook(over)))).usedElsewhere).toHaveLength(1);
  });

  test('a webhook counts when its type is cluster-scoped', async () => {
    const cluster = webhook({
      ...onlyHere,
      rules: [{ apiGroups: ['example.com'], resources: ['planets'] }],
    });
    cluster.types.push({ ...WIDGETS, resource: 'planets', kind: 'Planet', namespaced: false });
    expect((await ask(cluster)).usedElsewhere).toEqual([
      expect.objectContaining({ evidence: 'planets.example.com belong to the whole cluster' }),
    ]);
  });

  test('a mutating webhook counts as well', async () => {
    const cluster = widgetElsewhere(new FakeCluster());
    cluster.put(`${ADMISSION}/mutatingwebhookconfigurations/m`, {
      metadata: { name: 'm' },
      webhooks: [
        {
          name: 'm.x',
          clientConfig: { service: SERVICE },
          rules: [{ apiGroups: ['example.com'], resources: ['widgets'] }],
        },
      ],
    });
    expect((await ask(cluster)).usedElsewhere).toHaveLength(1);
  });

  test('an APIService always counts: every namespace needs its group to answer', async () => {
    const cluster = new FakeCluster();
    cluster.put('/apis/apiregistration.k8s.io/v1/apiservices/v1.m.io', {
      metadata: { name: 'v1.m.io' },
      spec: { service: SERVICE },
    });
    expect((await ask(cluster)).usedElsewhere).toEqual([
      { what: 'APIService v1.m.io', evidence: 'the whole cluster needs it' },
    ]);
  });

  test.each([
    [true, 1],
    [false, 0],
  ])('a conversion counts when objects of its type are elsewhere: %s', async (elsewhere, count) => {
    const cluster = elsewhere ? widgetElsewhere(new FakeCluster()) : new FakeCluster();
    cluster.put('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com', {
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        names: { plural: 'widgets' },
        conversion: { strategy: 'Webhook', webhook: { clientConfig: { service: SERVICE } } },
      },
    });
    expect((await ask(cluster)).usedElsewhere).toHaveLength(count);
  });

  test.each(['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'])(
    'what cannot be read is told, never taken for "none": %s',
    async (resource) => {
      const cluster = new FakeCluster();
      cluster.failures.set(`LIST ${ADMISSION}/${resource}`, { kind: 'forbidden', message: '403' });
      expect((await ask(cluster)).unread).toEqual([{ what: resource, reason: '403' }]);
    },
  );

  test('objects elsewhere that cannot be listed are told as unread', async () => {
    const cluster = webhook();
    cluster.failures.set('LIST /apis/example.com/v1/widgets', {
      kind: 'server-error',
      message: '500',
    });
    expect(await ask(cluster)).toEqual({
      usedElsewhere: [],
      unread: [
        {
          what: 'ValidatingWebhookConfiguration guard (guard.example.com)',
          reason: 'widgets.example.com of other namespaces could not be listed: 500',
        },
      ],
    });
  });
});
