import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import {
  apiServiceFacts,
  finalizerWriters,
  namespaceFacts,
  nodeFacts,
  objectFacts,
  podFacts,
} from '../../src/observe/facts.ts';
import { ContentFold } from '../../src/observe/fold.ts';
import {
  attachmentFacts,
  crdFacts,
  eventFacts,
  grantRules,
  grantsOf,
  isOnProvider,
  leaseFacts,
  objectStatus,
  serviceFacts,
  webhookFacts,
  workloadFacts,
} from '../../src/observe/owner-facts.ts';
import { cpuMs } from './cpu-time.ts';
import { CONFIG_MAPS, PODS, WIDGETS } from './snapshots.ts';

/** An entry of managedFields that owns these finalizers. */
function owns(manager: string, finalizers: string[], over: JsonObject = {}): JsonObject {
  const set = Object.fromEntries([['.', {}], ...finalizers.map((name) => [`v:"${name}"`, {}])]);
  return {
    manager,
    operation: 'Update',
    time: '2026-03-02T09:30:00Z',
    fieldsV1: { 'f:metadata': { 'f:finalizers': set } },
    ...over,
  };
}

function metadata(over: JsonObject): JsonObject {
  return { metadata: { name: 'db', namespace: 'demo', uid: 'u', resourceVersion: '7', ...over } };
}

/** Every form that the API server admits as a name of a finalizer. */
const LEGAL_FINALIZERS = [
  'kubernetes',
  'foregroundDeletion',
  'orphan',
  'endpoint-appmgr',
  'kubernetes.io/pvc-protection',
  'example.com/a',
  'example.com/A.b-c_d.E',
  'example.com/cleanup__init__._b_1',
  'a/b',
  '0.1/2',
  'toString',
  'constructor',
  'hasOwnProperty/constructor',
  `${'d'.repeat(63)}.${'e'.repeat(63)}.example.com/${'n'.repeat(63)}`,
];

describe('finalizerWriters', () => {
  test.each(LEGAL_FINALIZERS)('finds the writer of %s', (finalizer) => {
    const object = metadata({
      finalizers: [finalizer],
      managedFields: [owns('someone', ['other']), owns('operator', [finalizer])],
    });
    expect(finalizerWriters(object)).toEqual([
      { finalizer, manager: 'operator', operation: 'Update', time: '2026-03-02T09:30:00Z' },
    ]);
  });

  test.each<{ what: string; managedFields: JsonObject[]; managers: string[] }>([
    { what: 'nobody', managedFields: [], managers: [] },
    {
      what: 'an entry without fields',
      managedFields: [{ manager: 'kubectl', fieldsV1: {} }],
      managers: [],
    },
    {
      what: 'an entry for another finalizer',
      managedFields: [owns('kubectl', ['x/z'])],
      managers: [],
    },
    {
      what: 'the last of two writers, by time and not by place',
      managedFields: [
        owns('late', ['x/y'], { time: '2026-03-02T09:50:00Z' }),
        owns('early', ['x/y'], { time: '2026-03-02T09:10:00Z' }),
      ],
      managers: ['late'],
    },
    {
      what: 'the one with a time before the one without',
      managedFields: [
        owns('timed', ['x/y']),
        { ...owns('timeless', ['x/y']), time: null as unknown as string },
      ],
      managers: ['timed'],
    },
    {
      what: 'an apply',
      managedFields: [owns('argocd-controller', ['x/y'], { operation: 'Apply' })],
      managers: ['argocd-controller'],
    },
    {
      what: 'a writer without a name',
      managedFields: [owns('', ['x/y'])],
      managers: [''],
    },
  ])('names $what', ({ managedFields, managers }) => {
    const object = metadata({ finalizers: ['x/y'], managedFields });
    expect(finalizerWriters(object).map(({ manager }) => manager)).toEqual(managers);
  });

  test('keeps the order of the finalizers, with different writers', () => {
    const object = metadata({
      finalizers: ['b/b', 'a/a', 'c/c'],
      managedFields: [owns('one', ['a/a']), owns('two', ['b/b'])],
    });
    expect(
      finalizerWriters(object).map(({ finalizer, manager }) => `${finalizer} ${manager}`),
    ).toEqual(['b/b two', 'a/a one']);
  });
});

describe('namespaceFacts', () => {
  test('reads both lists of finalizers, the conditions and when the controller last wrote', () => {
    const facts = namespaceFacts({
      metadata: {
        name: 'preview-7',
        uid: 'u',
        resourceVersion: '12',
        creationTimestamp: '2026-03-01T00:00:00Z',
        deletionTimestamp: '2026-03-02T00:00:00Z',
        labels: { team: 'a', broken: 7 },
        finalizers: ['x/y'],
        managedFields: [
          owns('rancher', ['x/y']),
          {
            manager: 'kube-controller-manager',
            subresource: 'status',
            time: '2026-03-02T00:00:06Z',
          },
          { manager: 'kube-controller-manager', time: '2026-03-02T00:00:09Z' },
          { manager: 'kubectl', subresource: 'status', time: '2026-03-02T00:00:11Z' },
        ],
      },
      spec: { finalizers: ['kubernetes', 'openshift.io/origin'] },
      status: {
        phase: 'Terminating',
        conditions: [
          { type: 'A', status: 'True', reason: 'R', message: 'M', lastTransitionTime: 'T' },
          { type: 'B' },
          { status: 'True' },
          null,
        ],
      },
    });
    expect(facts).toEqual({
      name: 'preview-7',
      uid: 'u',
      resourceVersion: '12',
      phase: 'Terminating',
      creationTimestamp: '2026-03-01T00:00:00Z',
      deletionTimestamp: '2026-03-02T00:00:00Z',
      labels: { team: 'a' },
      finalizers: ['x/y'],
      writers: [
        { finalizer: 'x/y', manager: 'rancher', operation: 'Update', time: '2026-03-02T09:30:00Z' },
      ],
      specFinalizers: ['kubernetes', 'openshift.io/origin'],
      conditions: [
        { type: 'A', status: 'True', reason: 'R', message: 'M', lastTransitionTime: 'T' },
        { type: 'B', status: '', reason: '', message: '' },
      ],
      statusWrittenAt: '2026-03-02T00:00:06Z',
    });
  });

  test('of an empty object are empty, and it is not terminating', () => {
    expect(namespaceFacts({})).toMatchObject({
      uid: '',
      deletionTimestamp: undefined,
      finalizers: [],
      specFinalizers: [],
      conditions: [],
    });
  });
});

describe('podFacts', () => {
  test('names the claims of its volumes, those that live as long as the pod included', () => {
    const facts = podFacts(
      {
        metadata: { name: 'db-0', deletionGracePeriodSeconds: 30 },
        spec: {
          nodeName: 'node-1',
          volumes: [
            { name: 'data', persistentVolumeClaim: { claimName: 'data-db-0' } },
            { name: 'scratch', ephemeral: { volumeClaimTemplate: {} } },
            { name: 'config', configMap: { name: 'settings' } },
            'nonsense',
          ],
        },
        status: { phase: 'Running' },
      },
      PODS,
    );
    expect(facts).toMatchObject({
      apiVersion: 'v1',
      kind: 'Pod',
      nodeName: 'node-1',
      deletionGracePeriodSeconds: 30,
      claims: ['data-db-0', 'db-0-scratch'],
    });
  });
});

describe('facts about owners', () => {
  test.each([
    {
      what: 'a Deployment without replicas in its spec wants one',
      object: { spec: {}, status: { readyReplicas: 1 } },
      kind: 'Deployment' as const,
      is: { wanted: 1, ready: 1, serviceAccount: 'default' },
    },
    {
      what: 'a Deployment scaled to zero',
      object: { spec: { replicas: 0 }, status: {} },
      kind: 'Deployment' as const,
      is: { wanted: 0, ready: 0 },
    },
    {
      what: 'a DaemonSet wants as many as there are nodes for it',
      object: { spec: {}, status: { desiredNumberScheduled: 3, numberReady: 2 } },
      kind: 'DaemonSet' as const,
      is: { wanted: 3, ready: 2 },
    },
    {
      what: 'a DaemonSet without status wants none',
      object: {},
      kind: 'DaemonSet' as const,
      is: { wanted: 0, ready: 0 },
    },
  ])('workload: $what', ({ object, kind, is }) => {
    expect(workloadFacts(object, kind)).toMatchObject(is);
  });

  test('grants: verbs that neither watch nor change, and rules without resources, do not count', () => {
    expect(
      grantRules({
        rules: [
          { apiGroups: ['a'], resources: ['x'], verbs: ['get', 'list'] },
          { apiGroups: ['a'], resources: ['x'], verbs: ['get', 'watch', 'patch', 'delete'] },
          { nonResourceURLs: ['/metrics'], verbs: ['*'] },
          'nonsense',
        ],
      }),
    ).toEqual([{ apiGroups: ['a'], resources: ['x'], verbs: ['watch', 'patch'] }]);
  });

  test('grants: only ServiceAccounts; without a namespace they are of the binding', () => {
    const rule = { apiGroups: ['a'], resources: ['x'], verbs: ['patch'] };
    const grants = grantsOf(
      {
        metadata: { namespace: 'demo', name: 'b' },
        roleRef: { kind: 'Role', name: 'r' },
        subjects: [
          { kind: 'User', name: 'jane' },
          { kind: 'ServiceAccount', name: 'here' },
          { kind: 'ServiceAccount', namespace: 'ops', name: 'there' },
        ],
      },
      (kind, namespace, name) => (`${kind} ${namespace} ${name}` === 'Role demo r' ? [rule] : []),
    );
    expect(grants).toEqual([
      {
        serviceAccount: { namespace: 'demo', name: 'here' },
        role: 'Role r',
        binding: 'b',
        namespace: 'demo',
        ...rule,
      },
      {
        serviceAccount: { namespace: 'ops', name: 'there' },
        role: 'Role r',
        binding: 'b',
        namespace: 'demo',
        ...rule,
      },
    ]);
  });

  test('webhooks: failurePolicy is Fail unless said, selectors in both spellings', () => {
    const facts = webhookFacts(
      {
        metadata: { name: 'guard' },
        webhooks: [
          {
            name: 'a.example.com',
            clientConfig: { service: { namespace: 'ops', name: 'guard' } },
            rules: [{ apiGroups: ['*'], resources: ['*/*'], operations: ['DELETE'] }],
            namespaceSelector: {
              matchLabels: { env: 'preview' },
              matchExpressions: [{ key: 'skip', operator: 'DoesNotExist' }],
            },
            matchConditions: [{ name: 'x', expression: 'true' }],
          },
          { name: 'b.example.com', failurePolicy: 'Ignore', clientConfig: { url: 'https://x/y' } },
          null,
        ],
      },
      'MutatingWebhookConfiguration',
    );
    expect(facts[0]).toEqual({
      configuration: { kind: 'MutatingWebhookConfiguration', name: 'guard' },
      name: 'a.example.com',
      failurePolicy: 'Fail',
      service: { namespace: 'ops', name: 'guard' },
      url: undefined,
      rules: [{ apiGroups: ['*'], resources: ['*/*'], operations: ['DELETE'] }],
      namespaceSelector: [
        { key: 'env', operator: 'In', values: ['preview'] },
        { key: 'skip', operator: 'DoesNotExist', values: [] },
      ],
      objectSelector: [],
      hasMatchConditions: true,
    });
    expect(facts[1]).toMatchObject({
      failurePolicy: 'Ignore',
      service: undefined,
      url: 'https://x/y',
    });
  });

  test.each([
    { id: '', is: false },
    { id: 'kind://docker/kind/kind-worker', is: false },
    { id: 'k3s://node-1', is: false },
    { id: 'aws:///eu-west-1a/i-0abc', is: true },
    { id: 'gce://project/zone/name', is: true },
  ])('a node with providerID "$id" is of a cloud provider: $is', ({ id, is }) => {
    expect(isOnProvider({ spec: { providerID: id } })).toBe(is);
  });
});

describe('ContentFold', () => {
  function fold(objects: JsonObject[]) {
    const content = new ContentFold(CONFIG_MAPS);
    for (const object of objects) content.add(object);
    return content.result();
  }
  const held = (name: string, finalizers: string[], over: JsonObject = {}): JsonObject =>
    metadata({
      name,
      uid: `uid-${name}`,
      deletionTimestamp: '2026-03-02T10:00:00Z',
      finalizers,
      ...over,
    });

  test('of nothing is nothing', () => {
    expect(fold([])).toEqual({ total: 0, queued: 0, terminating: [] });
  });

  test('counts what nobody asked to go as queued, whatever finalizers it has', () => {
    const result = fold([metadata({}), metadata({ finalizers: ['x/y'] }), held('a', [])]);
    expect(result).toMatchObject({ total: 3, queued: 2, terminating: [{ count: 1 }] });
  });

  test('folds equal finalizers of equal writers, and keeps ten examples in the order of the list', () => {
    const result = fold(
      Array.from({ length: 25 }, (_, index) => held(`object-${index + 10}`, ['x/y'])),
    );
    expect(result.terminating).toHaveLength(1);
    expect(result.terminating[0]).toMatchObject({ count: 25, finalizers: ['x/y'] });
    expect(result.terminating[0]?.examples.map(({ name }) => name)).toEqual(
      Array.from({ length: 10 }, (_, index) => `object-${index + 10}`),
    );
  });

  test('keeps different writers apart, and says who', () => {
    const result = fold([
      held('a', ['x/y'], { managedFields: [owns('kubectl', ['x/y'])] }),
      held('b', ['x/y'], { managedFields: [owns('operator', ['x/y'])] }),
      held('c', ['x/y']),
    ]);
    expect(result.terminating.map(({ managers }) => managers)).toEqual([
      { 'x/y': 'kubectl' },
      { 'x/y': 'operator' },
      {},
    ]);
  });

  test('since is the earliest deletion of the group', () => {
    const result = fold([
      held('a', ['x/y'], { deletionTimestamp: '2026-03-02T10:00:05Z' }),
      held('b', ['x/y'], { deletionTimestamp: '2026-03-02T10:00:01Z' }),
      held('c', ['x/y'], { deletionTimestamp: '2026-03-02T10:00:09Z' }),
    ]);
    expect(result.terminating[0]?.since).toBe('2026-03-02T10:00:01Z');
  });

  test('forgets everything when the list starts again', () => {
    const content = new ContentFold(CONFIG_MAPS);
    content.add(held('a', ['x/y']));
    content.add(metadata({}));
    content.reset();
    content.add(held('b', ['z/z']));
    expect(content.result()).toMatchObject({
      total: 1,
      queued: 0,
      terminating: [{ finalizers: ['z/z'], count: 1 }],
    });
  });

  test('10,000 objects are folded in time, and cost the memory of ten', () => {
    const content = new ContentFold(CONFIG_MAPS);
    const ms = cpuMs(() => {
      for (let index = 0; index < 10_000; index++) {
        content.add(
          held(`object-${index}`, ['x/y', 'z/z'], { managedFields: [owns('operator', ['x/y'])] }),
        );
      }
    });
    expect(content.result().terminating[0]).toMatchObject({ count: 10_000 });
    expect(content.result().terminating[0]?.examples).toHaveLength(10);
    expect(ms).toBeLessThan(1_000);
  });
});

describe('objects that no API server should send', () => {
  const READERS: Record<string, (object: JsonObject) => unknown> = {
    namespaceFacts,
    objectFacts: (object) => objectFacts(object, WIDGETS),
    podFacts: (object) => podFacts(object, PODS),
    nodeFacts,
    apiServiceFacts,
    crdFacts,
    objectStatus,
    workloadFacts: (object) => workloadFacts(object, 'Deployment'),
    daemonSetFacts: (object) => workloadFacts(object, 'DaemonSet'),
    grantRules,
    grantsOf: (object) => grantsOf(object, () => grantRules(object)),
    webhookFacts: (object) => webhookFacts(object, 'ValidatingWebhookConfiguration'),
    serviceFacts,
    eventFacts,
    leaseFacts,
    attachmentFacts,
    isOnProvider,
    fold: (object) => {
      const content = new ContentFold(WIDGETS);
      content.add(object);
      return content.result();
    },
  };
  const KEYS = [
    'metadata',
    'spec',
    'status',
    'conditions',
    'finalizers',
    'managedFields',
    'fieldsV1',
    'f:metadata',
    'f:finalizers',
    'labels',
    'ownerReferences',
    'deletionTimestamp',
    'uid',
    'name',
    'type',
    'rules',
    'webhooks',
    'subjects',
    'volumes',
    '__proto__',
    'constructor',
  ];
  const leaf = fc.oneof(
    fc.constantFrom<unknown>(null, true, 0, -1, '', 'x/y', '2026-03-02T10:00:00Z', [], {}),
    fc.string(),
  );
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { maxDepth: 5 },
      leaf,
      fc.array(tie('json'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...KEYS), tie('json'), { maxKeys: 6 }),
    ),
  }));
  const objects = fc.dictionary(fc.constantFrom(...KEYS), json, { maxKeys: 6 });

  test.each(Object.entries(READERS))('%s reads them without an error', (_name, reader) => {
    fc.assert(
      fc.property(objects, (object) => {
        reader(object as JsonObject);
      }),
      { numRuns: 200 },
    );
  });

  test.each<{ what: string; object: JsonObject }>([
    { what: 'without metadata', object: {} },
    { what: 'with metadata that is null', object: { metadata: null } },
    { what: 'with metadata that is a list', object: { metadata: [] } },
    { what: 'with metadata that is text', object: { metadata: 'text' } },
    { what: 'without a UID', object: { metadata: { name: 'a' } } },
    { what: 'with finalizers that are text', object: metadata({ finalizers: 'x/y' }) },
    {
      what: 'with finalizers of all kinds',
      object: metadata({ finalizers: [1, null, 'x/y', {}] }),
    },
    { what: 'with managedFields that are a map', object: metadata({ managedFields: {} }) },
    { what: 'that is its own prototype', object: JSON.parse('{"__proto__":{"metadata":{}}}') },
  ])('an object $what', ({ object }) => {
    for (const reader of Object.values(READERS)) reader(object);
    const facts = objectFacts(object, WIDGETS);
    expect(facts.apiVersion).toBe('example.com/v1');
    expect(facts.finalizers.every((finalizer) => typeof finalizer === 'string')).toBe(true);
  });
});
