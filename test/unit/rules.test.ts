import { describe, expect, test } from 'vitest';
import { viewOf } from '../../src/diagnose/ask.ts';
import type { Draft, Rule } from '../../src/diagnose/draft.ts';
import { apiserviceUnavailable } from '../../src/diagnose/rules/apiservice-unavailable.ts';
import { contentDeleting } from '../../src/diagnose/rules/content-deleting.ts';
import { contentFailure } from '../../src/diagnose/rules/content-failure.ts';
import { crdTerminating } from '../../src/diagnose/rules/crd-terminating.ts';
import { discoveryFailed } from '../../src/diagnose/rules/discovery-failed.ts';
import { namespaceControllerInactive } from '../../src/diagnose/rules/namespace-controller-inactive.ts';
import { namespaceFinalizer } from '../../src/diagnose/rules/namespace-finalizer.ts';
import { namespaceSpecFinalizer } from '../../src/diagnose/rules/namespace-spec-finalizer.ts';
import { objectFinalizer } from '../../src/diagnose/rules/object-finalizer.ts';
import { podGracePeriod } from '../../src/diagnose/rules/pod-grace-period.ts';
import { podOverdue } from '../../src/diagnose/rules/pod-overdue.ts';
import { unexplained } from '../../src/diagnose/rules/unexplained.ts';
import { volumeInUse } from '../../src/diagnose/rules/volume-in-use.ts';
import { failed, read } from '../../src/model/read.ts';
import type { ApiServiceFacts, Snapshot } from '../../src/model/snapshot.ts';
import {
  apiService,
  CLAIMS,
  CLEANUP,
  CONFIG_MAPS,
  condition,
  conditions,
  contentOf,
  crd,
  DEMO,
  detailsOf,
  earlier,
  failureOf,
  GREEN,
  group,
  namespaceFacts,
  nodeFacts,
  objectFacts,
  PODS,
  podFacts,
  snapshot,
  typeOf,
  unreadable,
  WIDGETS,
  withPods,
} from './snapshots.ts';

function drafts(rule: Rule, now: Snapshot, before?: Snapshot): Draft[] {
  return rule(viewOf(now, before));
}

/** `code kind/name`, the part of a draft that says what is blamed. */
function blamed(rule: Rule, now: Snapshot, before?: Snapshot): string[] {
  return drafts(rule, now, before).map(
    ({ code, subject, finalizer, count }) =>
      `${code} ${subject.kind}/${subject.name}${finalizer === undefined ? '' : ` ${finalizer}`}${count === undefined ? '' : ` x${count}`}`,
  );
}

const METRICS = { group: 'metrics.example.com', version: 'v1beta1' };
const STALE = { ...METRICS, reason: 'its APIService does not answer (freshness Stale)' };
const DOWN: Partial<ApiServiceFacts> = {
  available: {
    status: 'False',
    reason: 'ServiceNotFound',
    message: 'service/backend in "ops" is not present',
    since: '2026-03-02T09:00:00Z',
  },
};
const METRICS_API = 'v1beta1.metrics.example.com';

function failingDiscovery(over: Partial<Snapshot> = {}): Snapshot {
  return snapshot({
    discovery: read({ namespacedTypes: 3, groups: ['apps'], failedGroups: [STALE] }),
    ...over,
  });
}

const withServices = (...services: ApiServiceFacts[]): Partial<Snapshot> => ({
  details: detailsOf({ apiServices: read(services) }),
});

describe('apiservice-unavailable', () => {
  test.each<{ what: string; now: Snapshot; are: string[] }>([
    {
      what: 'an APIService whose backend does not exist',
      now: failingDiscovery(withServices(apiService(METRICS_API, DOWN))),
      are: [`apiservice-unavailable APIService/${METRICS_API}`],
    },
    {
      what: 'one that was never evaluated',
      now: failingDiscovery(withServices(apiService(METRICS_API, { available: undefined }))),
      are: [`apiservice-unavailable APIService/${METRICS_API}`],
    },
    {
      what: 'one of which nothing is known (status Unknown)',
      now: failingDiscovery(
        withServices(
          apiService(METRICS_API, {
            available: { status: 'Unknown', reason: 'EndpointsAccessError', message: 'timeout' },
          }),
        ),
      ),
      are: [`apiservice-unavailable APIService/${METRICS_API}`],
    },
    {
      what: 'nothing when the APIService is fine: that is discovery-failed',
      now: failingDiscovery(withServices(apiService(METRICS_API))),
      are: [],
    },
    {
      what: 'no bystander that is down too, but whose group can be discovered',
      now: failingDiscovery(
        withServices(apiService(METRICS_API, DOWN), apiService('v1.other.example.com', DOWN)),
      ),
      are: [`apiservice-unavailable APIService/${METRICS_API}`],
    },
    {
      what: 'nothing when all groups answer, whatever APIServices say',
      now: snapshot(withServices(apiService(METRICS_API, DOWN))),
      are: [],
    },
    {
      what: 'nothing when APIServices could not be read',
      now: failingDiscovery({ details: detailsOf({ apiServices: failed(failureOf()) }) }),
      are: [],
    },
    {
      what: 'what the condition says when discovery could not be read',
      now: failingDiscovery({
        discovery: failed(failureOf()),
        namespace: namespaceFacts({
          conditions: conditions(
            condition(
              'NamespaceDeletionDiscoveryFailure',
              'True',
              `Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: metrics.example.com/v1beta1: stale GroupVersion discovery: metrics.example.com/v1beta1`,
            ),
          ),
        }),
        ...withServices(apiService(METRICS_API, DOWN)),
      }),
      are: [`apiservice-unavailable APIService/${METRICS_API}`],
    },
    {
      what: 'nothing when the condition is old and discovery works again',
      now: snapshot({
        namespace: namespaceFacts({
          conditions: conditions(
            condition(
              'NamespaceDeletionDiscoveryFailure',
              'True',
              'Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: metrics.example.com/v1beta1: stale GroupVersion discovery: metrics.example.com/v1beta1',
            ),
          ),
        }),
        ...withServices(apiService(METRICS_API, DOWN)),
      }),
      are: [],
    },
  ])('blames $what', ({ now, are }) => {
    expect(blamed(apiserviceUnavailable, now)).toEqual(are);
  });

  test('concerns the cluster, holds the namespace, and quotes the condition', () => {
    const [draft] = drafts(
      apiserviceUnavailable,
      failingDiscovery(withServices(apiService(METRICS_API, DOWN))),
    );
    expect(draft).toMatchObject({ scope: 'cluster', since: '2026-03-02T09:00:00Z' });
    expect(draft?.blocksNamespace).toBeDefined();
    expect(draft?.waitsForNamespace).toBeUndefined();
    expect(draft?.message).toContain('which does not exist');
    expect(draft?.evidence.join()).toContain('service/backend in "ops" is not present');
  });

  test('is a deadlock when the backend was in this namespace', () => {
    const service = { namespace: DEMO, name: 'backend', port: 443 };
    const [draft] = drafts(
      apiserviceUnavailable,
      failingDiscovery(withServices(apiService(METRICS_API, { ...DOWN, service }))),
    );
    expect(draft?.waitsForNamespace).toContain(`Service ${DEMO}/backend`);
  });

  test.each([
    { reason: 'ServiceNotFound', says: 'which does not exist' },
    { reason: 'ServicePortError', says: 'does not listen on the port' },
    { reason: 'EndpointsNotFound', says: 'has no ready endpoints' },
    { reason: 'MissingEndpoints', says: 'has no ready endpoints' },
    { reason: 'FailedDiscoveryCheck', says: 'does not answer as it should' },
    { reason: 'SomethingNew', says: 'which is not available' },
  ])('words the reason $reason', ({ reason, says }) => {
    const available = { status: 'False', reason, message: 'm' };
    const [draft] = drafts(
      apiserviceUnavailable,
      failingDiscovery(withServices(apiService(METRICS_API, { available }))),
    );
    expect(draft?.message).toContain(says);
  });
});

describe('discovery-failed', () => {
  test.each<{ what: string; now: Snapshot; are: string[] }>([
    {
      what: 'a group whose APIService looks fine',
      now: failingDiscovery(withServices(apiService(METRICS_API))),
      are: [`discovery-failed APIService/${METRICS_API}`],
    },
    {
      what: 'a group whose APIService could not be read',
      now: failingDiscovery({ details: detailsOf({ apiServices: failed(failureOf()) }) }),
      are: [`discovery-failed APIService/${METRICS_API}`],
    },
    {
      what: 'a group that has no APIService',
      now: failingDiscovery(withServices()),
      are: [`discovery-failed APIService/${METRICS_API}`],
    },
    {
      what: 'nothing that apiservice-unavailable explains',
      now: failingDiscovery(withServices(apiService(METRICS_API, DOWN))),
      are: [],
    },
    {
      what: 'the namespace, when the controller could discover nothing at all',
      now: snapshot({
        namespace: namespaceFacts({
          conditions: conditions(
            condition(
              'NamespaceDeletionDiscoveryFailure',
              'True',
              'Get "https://10.0.0.1/apis": EOF',
            ),
          ),
        }),
      }),
      are: [`discovery-failed Namespace/${DEMO}`],
    },
    { what: 'nothing when all groups answer', now: snapshot(), are: [] },
  ])('blames $what', ({ now, are }) => {
    expect(blamed(discoveryFailed, now)).toEqual(are);
  });

  test('says "looks available" only of an APIService that was seen', () => {
    const message = (now: Snapshot) => drafts(discoveryFailed, now)[0]?.message;
    expect(message(failingDiscovery(withServices(apiService(METRICS_API))))).toContain(
      'looks available',
    );
    const unseen = failingDiscovery({ details: detailsOf({ apiServices: failed(failureOf()) }) });
    expect(message(unseen)).not.toContain('looks available');
    expect(drafts(discoveryFailed, unseen)[0]?.evidence.join()).toContain('could not be read');
    const absent = failingDiscovery(withServices());
    expect(message(absent)).not.toContain('looks available');
    expect(drafts(discoveryFailed, absent)[0]?.evidence.join()).toContain('there is no APIService');
  });

  test('is a deadlock when the backend was in this namespace', () => {
    const service = { namespace: DEMO, name: 'backend', port: 443 };
    const [draft] = drafts(
      discoveryFailed,
      failingDiscovery(withServices(apiService(METRICS_API, { service }))),
    );
    expect(draft?.waitsForNamespace).toContain(`Service ${DEMO}/backend`);
  });
});

describe('namespace-finalizer and namespace-spec-finalizer', () => {
  test('one finding for each entry, with its owner', () => {
    const now = snapshot({ namespace: namespaceFacts({ finalizers: ['a.example.org/x', 'b'] }) });
    expect(blamed(namespaceFinalizer, now)).toEqual([
      `namespace-finalizer Namespace/${DEMO} a.example.org/x`,
      `owner-unknown Namespace/${DEMO} a.example.org/x`,
      `namespace-finalizer Namespace/${DEMO} b`,
      `owner-unknown Namespace/${DEMO} b`,
    ]);
  });

  test('says when the namespace controller has finished and only the entry is left', () => {
    const now = snapshot({
      namespace: namespaceFacts({ finalizers: ['a.example.org/x'], specFinalizers: [] }),
    });
    expect(drafts(namespaceFinalizer, now)[0]?.evidence.join()).toContain('has finished');
  });

  test.each([
    { spec: ['kubernetes'], are: [] },
    { spec: [], are: [] },
    {
      spec: ['kubernetes', 'x.example.org/y'],
      are: [
        `namespace-spec-finalizer Namespace/${DEMO} x.example.org/y`,
        `owner-unknown Namespace/${DEMO} x.example.org/y`,
      ],
    },
  ])('spec.finalizers $spec', ({ spec, are }) => {
    const now = snapshot({ namespace: namespaceFacts({ specFinalizers: spec }) });
    expect(blamed(namespaceSpecFinalizer, now)).toEqual(are);
  });
});

describe('object-finalizer', () => {
  test.each<{ what: string; now: Snapshot; are: string[] }>([
    {
      what: 'one finding per finalizer of an object',
      now: snapshot({
        content: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, ['a/b', 'c/d'], { names: ['x'] })])],
      }),
      are: [
        'object-finalizer ConfigMap/x a/b',
        'owner-unknown ConfigMap/x a/b',
        'object-finalizer ConfigMap/x c/d',
        'owner-unknown ConfigMap/x c/d',
      ],
    },
    {
      what: 'one finding for many equal objects',
      now: snapshot({
        content: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, ['a/b'], { count: 1_200 })])],
      }),
      are: [
        'object-finalizer ConfigMap/configmaps-0 a/b x1200',
        'owner-unknown ConfigMap/configmaps-0 a/b',
      ],
    },
    {
      what: 'nothing for objects that nobody asked to go',
      now: snapshot({ content: [contentOf(CONFIG_MAPS, [], 7)] }),
      are: [],
    },
    {
      what: 'nothing for terminating objects without finalizers',
      now: snapshot({ content: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, [])])] }),
      are: [],
    },
    {
      what: 'nothing about what could not be read',
      now: snapshot({ content: [unreadable(CONFIG_MAPS)] }),
      are: [],
    },
  ])('$what', ({ now, are }) => {
    expect(blamed(objectFinalizer, now)).toEqual(are);
  });

  test('keeps ten examples and quotes the first object and its writer', () => {
    const [draft] = drafts(
      objectFinalizer,
      snapshot({
        content: [
          contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 70, manager: 'operator' })]),
        ],
      }),
    );
    expect(draft?.examples).toHaveLength(10);
    expect(draft?.evidence).toEqual([
      expect.stringContaining('the first of 70 such objects'),
      expect.stringContaining('"operator" wrote the finalizer'),
    ]);
  });
});

describe('pods', () => {
  const LATER = '2026-03-02T10:09:00Z';
  const notReady = { ready: 'Unknown', readyReason: 'NodeStatusUnknown: kubelet stopped' };

  test.each<{ what: string; now: Snapshot; are: string[] }>([
    {
      what: 'a grace period that runs, the last of them first',
      now: withPods([
        podFacts('a', { deletionTimestamp: '2026-03-02T10:02:00Z' }),
        podFacts('b', { deletionTimestamp: LATER }),
      ]),
      are: ['pod-grace-period Pod/b x2'],
    },
    { what: 'an overdue pod', now: withPods([podFacts('a')]), are: [] },
    {
      what: 'a pod that no node has',
      now: withPods([podFacts('a', { deletionTimestamp: LATER, nodeName: undefined })]),
      are: [],
    },
  ])('pod-grace-period: $what', ({ now, are }) => {
    expect(blamed(podGracePeriod, now)).toEqual(are);
  });

  test('pod-grace-period leaves the snapshot as it was', () => {
    const now = withPods([
      podFacts('a', { deletionTimestamp: '2026-03-02T10:02:00Z' }),
      podFacts('b', { deletionTimestamp: LATER }),
    ]);
    const before = structuredClone(now);
    drafts(podGracePeriod, now);
    expect(now).toEqual(before);
  });

  test.each<{ what: string; now: Snapshot; are: string[] }>([
    {
      what: 'a pod on a node that is not ready',
      now: withPods([podFacts('a')], { nodes: nodeFacts('node-1', notReady) }),
      are: ['pod-node-unavailable Node/node-1'],
    },
    {
      what: 'a pod on a node that does not exist any more',
      now: withPods([podFacts('a')], {
        nodes: nodeFacts('node-1', { exists: false, ready: undefined }),
      }),
      are: ['pod-node-unavailable Node/node-1'],
    },
    {
      what: 'a pod on a node that never reported',
      now: withPods([podFacts('a')], { nodes: nodeFacts('node-1', { ready: undefined }) }),
      are: ['pod-node-unavailable Node/node-1'],
    },
    {
      what: 'a pod on a ready node',
      now: withPods([podFacts('a')], { nodes: nodeFacts('node-1') }),
      are: ['pod-not-confirmed Pod/a'],
    },
    {
      what: 'pods of two nodes, node by node',
      now: withPods([podFacts('a'), podFacts('b', { nodeName: 'node-2' }), podFacts('c')], {
        nodes: { ...nodeFacts('node-1', notReady), ...nodeFacts('node-2') },
      }),
      are: ['pod-node-unavailable Node/node-1 x2', 'pod-not-confirmed Pod/b'],
    },
    {
      what: 'a pod whose node could not be read is not blamed on the node',
      now: withPods([podFacts('a')], { nodes: { 'node-1': failed(failureOf()) } }),
      are: ['pod-not-confirmed Pod/a'],
    },
    {
      what: 'a pod that its kubelet has confirmed and a finalizer holds',
      now: withPods([podFacts('a', { deletionGracePeriodSeconds: 0, finalizers: ['x/y'] })]),
      are: [],
    },
    {
      what: 'a pod that no node has',
      now: withPods([podFacts('a', { nodeName: undefined })]),
      are: [],
    },
    {
      what: 'a pod in its grace period',
      now: withPods([podFacts('a', { deletionTimestamp: LATER })]),
      are: [],
    },
    {
      what: 'pods that could not be listed',
      now: snapshot({ pods: failed(failureOf()) }),
      are: [],
    },
  ])('podOverdue: $what', ({ now, are }) => {
    expect(blamed(podOverdue, now)).toEqual(are);
  });

  test('a thousand overdue pods are one finding with words that can be read', () => {
    const pods = Array.from({ length: 1_000 }, (_, index) => podFacts(`web-${index}`));
    for (const nodes of [nodeFacts('node-1'), nodeFacts('node-1', notReady)]) {
      const found = drafts(podOverdue, withPods(pods, { nodes }));
      expect(found).toHaveLength(1);
      expect(found[0]).toMatchObject({ count: 1_000 });
      expect(found[0]?.examples).toHaveLength(10);
      const words = [found[0]?.message, found[0]?.blocksNamespace, ...(found[0]?.evidence ?? [])];
      for (const text of words) expect(text?.length).toBeLessThan(400);
    }
  });
});

describe('volume-in-use', () => {
  const PROTECTION = 'kubernetes.io/pvc-protection';
  const claims = (...names: string[]) =>
    contentOf(CLAIMS, [group(CLAIMS, [PROTECTION], { names })]);
  const user = podFacts('db-0', { claims: ['data'], finalizers: ['x/y'] });

  test('a claim that a scheduled pod still names; whatever holds the pod holds the claim', () => {
    const now = withPods([user], {
      content: [contentOf(PODS, [group(PODS, ['x/y'], { names: ['db-0'] })]), claims('data')],
    });
    const [draft] = drafts(volumeInUse, now);
    expect(draft?.subject).toEqual({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      namespace: DEMO,
      name: 'data',
    });
    expect(draft?.waitsFor?.map(({ id }) => id)).toContain(`object-finalizer:Pod/${DEMO}/db-0:x/y`);
    expect(blamed(objectFinalizer, now).filter((line) => line.includes('Claim'))).toEqual([]);
  });

  test.each<{ what: string; now: Snapshot }>([
    {
      what: 'a pod that is not scheduled',
      now: withPods([{ ...user, nodeName: undefined }], { content: [claims('data')] }),
    },
    { what: 'another claim', now: withPods([user], { content: [claims('logs')] }) },
    { what: 'no pod at all', now: snapshot({ content: [claims('data')] }) },
    {
      what: 'a claim that nobody asked to go',
      now: withPods([user], { content: [contentOf(CLAIMS, [], 1)] }),
    },
    {
      what: 'a claim of another finalizer',
      now: withPods([user], {
        content: [contentOf(CLAIMS, [group(CLAIMS, ['x/y'], { names: ['data'] })])],
      }),
    },
  ])('is not said because of $what', ({ now }) => {
    expect(blamed(volumeInUse, now)).toEqual([]);
  });

  test('the other finalizers of the same claim are still held', () => {
    const now = withPods([user], {
      content: [contentOf(CLAIMS, [group(CLAIMS, [PROTECTION, 'x/y'], { names: ['data'] })])],
    });
    expect(blamed(objectFinalizer, now)[0]).toBe('object-finalizer PersistentVolumeClaim/data x/y');
  });
});

describe('namespace-controller-inactive', () => {
  const silent = namespaceFacts({ conditions: [], statusWrittenAt: undefined });
  const lease = (renewTime: string, durationSeconds: number | undefined = 15) =>
    detailsOf({
      leases: {
        'kube-system': read([
          {
            namespace: 'kube-system',
            name: 'other',
            holder: 'x',
            renewTime: '2020-01-01T00:00:00Z',
            durationSeconds: 15,
          },
          {
            namespace: 'kube-system',
            name: 'kube-controller-manager',
            holder: 'x',
            renewTime,
            durationSeconds,
          },
        ]),
      },
    });
  const YOUNG = '2026-03-02T10:00:30Z';
  const OLD = '2026-03-02T09:59:00Z';

  test.each<{ what: string; now: Partial<Snapshot>; is: boolean }>([
    {
      what: 'silence for more than 90 s',
      now: { namespace: { ...silent, deletionTimestamp: OLD } },
      is: true,
    },
    {
      what: 'a stale Lease, however young the deletion',
      now: {
        namespace: { ...silent, deletionTimestamp: YOUNG },
        details: lease('2026-03-02T10:01:00Z'),
      },
      is: true,
    },
    {
      what: 'a Lease without a duration that nobody renewed for 15 s',
      now: {
        namespace: { ...silent, deletionTimestamp: YOUNG },
        details: lease('2026-03-02T10:01:14Z', undefined),
      },
      is: true,
    },
    {
      what: 'silence with a fresh Lease: a backlog',
      now: {
        namespace: { ...silent, deletionTimestamp: YOUNG },
        details: lease('2026-03-02T10:01:28Z'),
      },
      is: false,
    },
    {
      what: 'a young deletion',
      now: { namespace: { ...silent, deletionTimestamp: YOUNG } },
      is: false,
    },
    {
      what: 'conditions that somebody wrote',
      now: { namespace: { ...silent, conditions: GREEN, deletionTimestamp: OLD } },
      is: false,
    },
    {
      what: 'conditions of somebody else only',
      now: {
        namespace: {
          ...silent,
          conditions: [condition('Ready', 'False')],
          deletionTimestamp: OLD,
        },
      },
      is: true,
    },
    {
      what: 'a namespace with which the controller has finished',
      now: { namespace: { ...silent, specFinalizers: [], deletionTimestamp: OLD } },
      is: false,
    },
    {
      what: 'content that is all terminating',
      now: {
        namespace: { ...silent, deletionTimestamp: OLD },
        content: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, ['x/y'])])],
      },
      is: false,
    },
    {
      what: 'content in the queue',
      now: {
        namespace: { ...silent, deletionTimestamp: OLD },
        content: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, ['x/y'])], 3)],
      },
      is: true,
    },
    {
      what: 'nothing left, while an API group cannot be discovered, which holds it as well',
      now: {
        namespace: { ...silent, deletionTimestamp: OLD },
        discovery: read({
          namespacedTypes: 0,
          groups: [],
          failedGroups: [{ group: 'metrics.k8s.io', version: 'v1beta1', reason: '503' }],
        }),
      },
      is: false,
    },
  ])('$what: $is', ({ now, is }) => {
    expect(blamed(namespaceControllerInactive, snapshot(now))).toEqual(
      is ? [`namespace-controller-inactive Namespace/${DEMO}`] : [],
    );
  });

  test('does not say what became of content that could not be read', () => {
    const [draft] = drafts(
      namespaceControllerInactive,
      snapshot({
        namespace: { ...silent, deletionTimestamp: OLD },
        content: [unreadable(CONFIG_MAPS)],
      }),
    );
    expect(draft?.evidence.join()).not.toContain('nothing in it has been asked to go');
  });
});

describe('content-failure', () => {
  const failing = (message: string, over: Partial<Snapshot> = {}): Snapshot =>
    snapshot({
      namespace: namespaceFacts({
        conditions: conditions(
          condition(
            'NamespaceDeletionContentFailure',
            'True',
            `Failed to delete all resource types, 1 remaining: ${message}`,
          ),
        ),
      }),
      ...over,
    });
  const queued = { content: [contentOf(CONFIG_MAPS, [], 2), contentOf(WIDGETS, [], 1)] };
  const CUT_OFF =
    'Delete "https://10.0.0.1:6443/api/v1/namespaces/preview-7/configmaps": stream error: stream ID 7943; INTERNAL_ERROR; received from peer';
  const unreachable = (cause: string) =>
    `Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://guard.ops.svc:443/validate?timeout=5s": ${cause}`;

  test.each<{ what: string; now: Snapshot; are: string[] }>([
    {
      what: 'a webhook whose Service is gone, by the name of the webhook when nothing else is known',
      now: failing(unreachable('service "guard" not found')),
      are: ['admission-webhook-failing ValidatingWebhookConfiguration/guard.example.com'],
    },
    {
      what: 'a webhook that says no',
      now: failing('admission webhook "guard.example.com" denied the request: kept for ten years'),
      are: ['admission-denied ValidatingWebhookConfiguration/guard.example.com'],
    },
    {
      what: 'a policy that says no',
      now: failing(
        `secrets "Unknown" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'all' denied request: no`,
      ),
      are: ['admission-denied ValidatingAdmissionPolicy/keep'],
    },
    {
      what: 'a conversion, by the CRD',
      now: failing(
        'conversion webhook for example.com/v1, Kind=Widget failed: Post "https://conv.ops.svc:443/convert?timeout=30s": service "conv" not found',
        queued,
      ),
      are: ['conversion-webhook-failing CustomResourceDefinition/widgets.example.com'],
    },
    {
      what: 'a right that the namespace controller lacks',
      now: failing(
        'leases.coordination.k8s.io is forbidden: User "system:serviceaccount:kube-system:namespace-controller" cannot deletecollection resource "leases" in API group "coordination.k8s.io" in the namespace "preview-7"',
        { content: [contentOf(typeOf('coordination.k8s.io', 'leases', 'Lease'), [], 1)] },
      ),
      are: ['deletion-forbidden APIResource/leases.coordination.k8s.io'],
    },
    {
      what: 'an object that cannot be read from storage, by the type in the key',
      now: failing(
        'Internal error occurred: unable to transform key "/registry/configmaps/preview-7/broken": identity transformer tried to read encrypted data',
        queued,
      ),
      are: ['storage-unreadable APIResource/configmaps'],
    },
    {
      what: 'words that nobody knows: types that are left and not built in come first',
      now: failing('ledger database is read-only', queued),
      are: ['api-failing APIResource/widgets.example.com'],
    },
    {
      what: 'words that nobody knows and nothing left: nobody',
      now: failing('ledger database is read-only', { content: [contentOf(CONFIG_MAPS)] }),
      are: [],
    },
    {
      what: 'overdue pods: rules of their own look for them',
      now: failing(
        'unexpected items still remain in namespace: preview-7 for gvr: /v1, Resource=pods',
        queued,
      ),
      are: [],
    },
    {
      what: 'a request that is cut off, with more objects than one request can delete: slow, not broken',
      now: failing(CUT_OFF, { content: [contentOf(CONFIG_MAPS, [], 100_000)] }),
      are: ['content-deleting APIResource/configmaps x100000'],
    },
    {
      what: 'a request that is cut off after the last object was asked to go: their finalizers explain it',
      now: failing(CUT_OFF, {
        content: [contentOf(CONFIG_MAPS, [{ ...group(CONFIG_MAPS, [CLEANUP]), count: 100_000 }])],
      }),
      are: [],
    },
    {
      what: 'a request that is cut off while an uncommon type is left: that one, not the crowd',
      now: failing(CUT_OFF, {
        content: [contentOf(CONFIG_MAPS, [], 100_000), contentOf(WIDGETS, [], 1)],
      }),
      are: ['api-failing APIResource/widgets.example.com'],
    },
    {
      what: 'a request that is cut off with few objects: the API',
      now: failing(CUT_OFF, queued),
      are: ['api-failing APIResource/widgets.example.com'],
    },
    { what: 'nothing when the condition is green', now: snapshot(queued), are: [] },
    {
      what: 'a LIST of our own that fails with 500',
      now: snapshot({
        content: [
          unreadable(WIDGETS, {
            kind: 'server-error',
            status: 500,
            message: '500: index is corrupt',
          }),
        ],
      }),
      are: ['api-failing APIResource/widgets.example.com'],
    },
    {
      what: 'a right that we lack ourselves: nobody',
      now: snapshot({ content: [unreadable(WIDGETS)] }),
      are: [],
    },
    ...(['timeout', 'network', 'aborted', 'not-found', 'unreadable', 'throttled'] as const).map(
      (kind) => ({
        what: `a LIST of our own that ended with ${kind}: nobody`,
        now: snapshot({ content: [unreadable(WIDGETS, { kind, message: 'no answer' })] }),
        are: [],
      }),
    ),
  ])('blames $what', ({ now, are }) => {
    expect(blamed(contentFailure, now)).toEqual(are);
  });

  test.each([
    { text: 'service "guard" not found', says: 'does not exist' },
    { text: 'no endpoints available for service "guard"', says: 'has no ready endpoints' },
    { text: 'dial tcp 10.96.0.7:443: connect: connection refused', says: 'refuses the connection' },
    { text: 'x509: certificate signed by unknown authority', says: 'certificate' },
    { text: 'context deadline exceeded', says: 'does not answer in time' },
    { text: 'EOF', says: 'does not answer' },
  ])('says why a webhook could not be asked: $text', ({ text, says }) => {
    const [draft] = drafts(contentFailure, failing(unreachable(text)));
    expect(draft?.message).toContain(says);
    expect(draft?.blocksNamespace).toBeDefined();
  });
});

describe('crd-terminating', () => {
  test('contributes, and never holds the namespace itself', () => {
    const details = detailsOf({
      crds: crd({
        deletionTimestamp: '2026-03-02T09:59:00Z',
        conditions: [
          condition('Terminating', 'True', 'instances remain', 'InstanceDeletionInProgress'),
        ],
      }),
    });
    const [draft, ...others] = drafts(crdTerminating, snapshot({ details }));
    expect(others).toEqual([]);
    expect(draft).toMatchObject({ code: 'crd-terminating', scope: 'cluster' });
    expect(draft?.evidence.join()).toContain('InstanceDeletionInProgress');
    expect(draft?.blocksNamespace).toBeUndefined();
  });

  test.each([
    { what: 'a CRD that nobody deletes', crds: crd() },
    { what: 'a CRD that is not there', crds: { 'widgets.example.com': read(undefined) } },
    { what: 'a CRD that could not be read', crds: { 'widgets.example.com': failed(failureOf()) } },
  ])('does not concern $what', ({ crds }) => {
    expect(blamed(crdTerminating, snapshot({ details: detailsOf({ crds }) }))).toEqual([]);
  });
});

describe('content-deleting', () => {
  test('says how many are left, how fast they go and how long it takes', () => {
    const before = earlier([contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 80 })])]);
    const now = snapshot({
      content: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 50 })])],
    });
    const [draft] = drafts(contentDeleting, now, before);
    expect(draft).toMatchObject({
      count: 50,
      message: expect.stringContaining('80 objects 30 s ago, 50 now'),
    });
    expect(draft?.evidence[0]).toBe('80 then, 50 now, 60 a minute, so about 50 s to go');
  });

  test('does not divide by the speed of what lost a finalizer only', () => {
    const before = earlier([
      contentOf(WIDGETS, [group(WIDGETS, [CLEANUP, 'x/y'], { names: ['a'] })]),
    ]);
    const now = snapshot({
      content: [contentOf(WIDGETS, [group(WIDGETS, ['x/y'], { names: ['a'] })])],
    });
    const [draft] = drafts(contentDeleting, now, before);
    expect(`${draft?.message} ${draft?.evidence.join()}`).not.toMatch(/NaN|Infinity/);
  });

  test('is one finding for the groups of one type', () => {
    const groups = (count: number) => [
      group(WIDGETS, [CLEANUP], { count }),
      group(WIDGETS, ['x/y'], { count: count + 1 }),
    ];
    expect(
      blamed(
        contentDeleting,
        snapshot({ content: [contentOf(WIDGETS, groups(3))] }),
        earlier([contentOf(WIDGETS, groups(9))]),
      ),
    ).toEqual(['content-deleting APIResource/widgets.example.com x7']);
  });

  test('says nothing after a single look', () => {
    expect(blamed(contentDeleting, snapshot())).toEqual([]);
  });
});

describe('unexplained', () => {
  test('says what was looked at', () => {
    const draft = unexplained(
      viewOf(snapshot({ content: [contentOf(CONFIG_MAPS, [], 2), contentOf(WIDGETS)] })),
    );
    expect(draft.evidence.join('\n')).toContain('looked at 2 resource types: 2 objects');
    expect(draft.evidence.join('\n')).toContain('spec.finalizers: kubernetes');
    expect(draft.blocksNamespace).toBeDefined();
  });
});

test('no rule changes what it looks at', () => {
  const rules: Rule[] = [
    apiserviceUnavailable,
    contentDeleting,
    contentFailure,
    crdTerminating,
    discoveryFailed,
    namespaceControllerInactive,
    namespaceFinalizer,
    namespaceSpecFinalizer,
    objectFinalizer,
    podGracePeriod,
    podOverdue,
    volumeInUse,
  ];
  const now = withPods(
    [podFacts('a'), podFacts('b', { deletionTimestamp: '2026-03-02T10:09:00Z' })],
    {
      namespace: namespaceFacts({ finalizers: ['x/y'], specFinalizers: ['kubernetes', 'z'] }),
      content: [
        contentOf(WIDGETS, [group(WIDGETS, [CLEANUP, 'x/y'], { names: ['a'] })], 2),
        contentOf(CLAIMS, [
          {
            ...group(CLAIMS, ['kubernetes.io/pvc-protection']),
            examples: [objectFacts(CLAIMS, 'c')],
          },
        ]),
      ],
    },
  );
  const kept = structuredClone(now);
  for (const rule of rules) rule(viewOf(now, earlier([])));
  expect(now).toEqual(kept);
});
