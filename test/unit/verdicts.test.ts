import { describe, expect, test } from 'vitest';
import { viewOf } from '../../src/diagnose/ask.ts';
import { contradictionsOf } from '../../src/diagnose/contradictions.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { notInspected } from '../../src/diagnose/not-inspected.ts';
import { type Diagnosis, FINDING_CODES, type FindingCode } from '../../src/model/finding.ts';
import { isPermanent, outcomeOf } from '../../src/model/outcome.ts';
import { failed, read } from '../../src/model/read.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import {
  CLAIMS,
  CLEANUP,
  CONFIG_MAPS,
  condition,
  conditions,
  contentOf,
  detailsOf,
  earlier,
  failureOf,
  GREEN,
  group,
  namespaceFacts,
  PODS,
  podFacts,
  snapshot,
  unreadable,
  WIDGETS,
  withPods,
} from './snapshots.ts';

const NO = failed(failureOf());
const AT_500 = failed(failureOf({ kind: 'server-error', status: 500, message: '500: broken' }));

describe('notInspected', () => {
  const listed = (now: Partial<Snapshot>) => notInspected(viewOf(snapshot(now)));

  test('lists nothing when everything could be read', () => {
    expect(listed({ content: [contentOf(CONFIG_MAPS)], details: detailsOf() })).toEqual([]);
  });

  test.each<{ what: string; now: Partial<Snapshot>; is: unknown }>([
    {
      what: 'the namespace itself',
      now: { trouble: failureOf() },
      is: {
        what: 'namespace preview-7',
        reason: '403 Forbidden: no',
        grant: { apiGroup: '', resource: 'namespaces', verb: 'get' },
      },
    },
    {
      what: 'discovery as a whole',
      now: { discovery: AT_500 },
      is: { what: 'all resource types (API discovery)', reason: '500: broken' },
    },
    {
      what: 'one API group',
      now: {
        discovery: read({
          namespacedTypes: 1,
          groups: [],
          failedGroups: [{ group: 'metrics.k8s.io', version: 'v1beta1', reason: 'stale' }],
        }),
      },
      is: { what: 'API group metrics.k8s.io/v1beta1', reason: 'stale' },
    },
    {
      what: 'a type that may not be listed, with the right that is missing',
      now: { content: [unreadable(WIDGETS)] },
      is: {
        what: 'widgets.example.com',
        reason: '403 Forbidden: no',
        grant: { apiGroup: 'example.com', resource: 'widgets', verb: 'list' },
      },
    },
    {
      what: 'a type whose LIST fails: no right would help',
      now: { content: [{ type: CONFIG_MAPS, read: AT_500 }] },
      is: { what: 'configmaps', reason: '500: broken' },
    },
    {
      what: 'a node',
      now: { nodes: { 'node-1': NO } },
      is: {
        what: 'node node-1',
        reason: '403 Forbidden: no',
        grant: { apiGroup: '', resource: 'nodes', verb: 'get' },
      },
    },
    ...(
      [
        ['apiServices', 'APIServices', 'apiregistration.k8s.io', 'apiservices'],
        ['workloads', 'workloads of the cluster', 'apps', 'deployments'],
        ['grants', 'RBAC of the cluster', 'rbac.authorization.k8s.io', 'clusterroles'],
        [
          'webhooks',
          'webhook configurations',
          'admissionregistration.k8s.io',
          'validatingwebhookconfigurations',
        ],
        ['attachments', 'VolumeAttachments', 'storage.k8s.io', 'volumeattachments'],
        ['isOnProvider', 'nodes', '', 'nodes'],
      ] as const
    ).map(([key, what, apiGroup, resource]) => ({
      what: `${key}`,
      now: { details: detailsOf({ [key]: NO }) },
      is: { what, reason: '403 Forbidden: no', grant: { apiGroup, resource, verb: 'list' } },
    })),
    {
      what: 'a CRD',
      now: { details: detailsOf({ crds: { 'widgets.example.com': NO } }) },
      is: {
        what: 'CRD widgets.example.com',
        reason: '403 Forbidden: no',
        grant: {
          apiGroup: 'apiextensions.k8s.io',
          resource: 'customresourcedefinitions',
          verb: 'get',
        },
      },
    },
    {
      what: 'a Service',
      now: { details: detailsOf({ services: { 'ops/guard': NO } }) },
      is: expect.objectContaining({ what: 'Service ops/guard' }),
    },
    {
      what: 'events',
      now: { details: detailsOf({ events: { ops: NO } }) },
      is: expect.objectContaining({ what: 'events in namespace ops' }),
    },
    {
      what: 'Leases',
      now: { details: detailsOf({ leases: { ops: NO } }) },
      is: expect.objectContaining({ what: 'Leases in namespace ops' }),
    },
    {
      what: 'the status of a held object, by its name',
      now: {
        content: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { names: ['db'] })])],
        details: detailsOf({ statuses: { 'uid-widgets-db': NO } }),
      },
      is: {
        what: 'status of Widget db',
        reason: '403 Forbidden: no',
        grant: { apiGroup: 'example.com', resource: 'widgets', verb: 'get' },
      },
    },
  ])('lists $what', ({ now, is }) => {
    expect(listed(now)).toEqual([is]);
  });

  test('does not list an object that went away meanwhile', () => {
    const gone = failed(failureOf({ kind: 'not-found', status: 404 }));
    expect(
      listed({
        content: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { names: ['db'] })])],
        details: detailsOf({ statuses: { 'uid-widgets-db': gone } }),
      }),
    ).toEqual([]);
  });
});

describe('contradictions', () => {
  const lines = (now: Snapshot, before?: Snapshot): string[] =>
    contradictionsOf(viewOf(now, before));
  const finalizers = (text: string) =>
    namespaceFacts({
      conditions: conditions(
        condition('NamespaceContentRemaining', 'True', 'Some resources are remaining: '),
        condition(
          'NamespaceFinalizersRemaining',
          'True',
          `Some content in the namespace has finalizers remaining: ${text}`,
        ),
      ),
    });

  test('the conditions say "empty" and a pod is there (Kubernetes >= 1.33)', () => {
    const pod = podFacts('db-0', { finalizers: ['x/y'], nodeName: undefined });
    expect(lines(withPods([pod]))).toEqual([
      expect.stringContaining('"All content successfully removed", but 1 object is still there'),
    ]);
  });

  test('the conditions still name a finalizer that no object has any more', () => {
    const now = snapshot({
      namespace: finalizers('old/one in 3 resource instances'),
      content: [contentOf(CONFIG_MAPS)],
    });
    expect(lines(now)).toEqual([expect.stringContaining('still name finalizer old/one')]);
  });

  test.each<{ what: string; now: Snapshot; before?: Snapshot }>([
    { what: 'all agree that it is empty', now: snapshot() },
    {
      what: 'there are no conditions at all',
      now: snapshot({
        namespace: namespaceFacts({ conditions: [] }),
        content: [contentOf(CONFIG_MAPS, [], 3)],
      }),
    },
    {
      what: 'all agree on the finalizer',
      now: snapshot({
        namespace: finalizers('x/y in 1 resource instances'),
        content: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, ['x/y'])])],
      }),
    },
    {
      what: 'something could not be read: the finalizer may be there',
      now: snapshot({
        namespace: finalizers('x/y in 1 resource instances'),
        content: [unreadable(CONFIG_MAPS)],
      }),
    },
    {
      what: 'objects with the finalizer are going one by one, and are not blamed',
      now: snapshot({
        namespace: finalizers('x/y in 80 resource instances'),
        content: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, ['x/y'], { count: 50 })])],
      }),
      before: earlier([contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, ['x/y'], { count: 80 })])]),
    },
    {
      what: 'a claim in use has the finalizer, under a code of its own',
      now: withPods([podFacts('db-0', { claims: ['data'] })], {
        namespace: finalizers('kubernetes.io/pvc-protection in 1 resource instances'),
        content: [
          contentOf(PODS, [group(PODS, [], { names: ['db-0'] })]),
          contentOf(CLAIMS, [group(CLAIMS, ['kubernetes.io/pvc-protection'], { names: ['data'] })]),
        ],
      }),
    },
    {
      what: 'queued objects may have the finalizer: theirs are not known',
      now: snapshot({
        namespace: finalizers('x/y in 1 resource instances'),
        content: [contentOf(CONFIG_MAPS, [], 1)],
      }),
    },
  ])('none when $what', ({ now, before }) => {
    expect(lines(now, before)).toEqual([]);
  });
});

describe('outcomeOf', () => {
  const held = [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, ['x/y'])])];

  test.each<{ what: string; now: Snapshot; before?: Snapshot; is: string }>([
    { what: 'a held object', now: snapshot({ content: held }), before: earlier(held), is: 'stuck' },
    { what: 'a held object, seen once', now: snapshot({ content: held }), is: 'stuck' },
    {
      what: 'nothing that explains it, all read',
      now: snapshot({ content: [contentOf(CONFIG_MAPS)] }),
      is: 'stuck',
    },
    {
      what: 'nothing that explains it, and something unread',
      now: snapshot({ content: [contentOf(CONFIG_MAPS), unreadable(WIDGETS)] }),
      is: 'inconclusive',
    },
    {
      what: 'a held object, and something unread',
      now: snapshot({ content: [...held, unreadable(WIDGETS)] }),
      is: 'stuck',
    },
    {
      what: 'nothing readable at all',
      now: snapshot({ discovery: NO, pods: NO }),
      is: 'inconclusive',
    },
    {
      what: 'objects that get fewer',
      now: snapshot({ content: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 5 })])] }),
      before: earlier([contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 9 })])]),
      is: 'progressing',
    },
    {
      what: 'a grace period',
      now: withPods([podFacts('a', { deletionTimestamp: '2026-03-02T10:09:00Z' })]),
      is: 'progressing',
    },
  ])('$what: $is', ({ now, before, is }) => {
    expect(outcomeOf(diagnose(now, before))).toBe(is);
  });
});

test('a hang without a root cause is inconclusive only because of what could not be read', () => {
  const nothing: Diagnosis = { ...diagnose(snapshot()), rootCauses: [], notInspected: [] };
  const unread = [{ what: 'pods', reason: '403' }];
  expect(outcomeOf(nothing)).toBe('stuck');
  expect(outcomeOf({ ...nothing, notInspected: unread })).toBe('inconclusive');
});

describe('isPermanent', () => {
  /** Somebody has to act; the others may heal by themselves. */
  const PERMANENT: readonly FindingCode[] = [
    'owner-missing',
    'owner-scaled-to-zero',
    'owner-unknown',
    'apiservice-unavailable',
    'conversion-webhook-failing',
    'admission-webhook-failing',
    'admission-denied',
    'deletion-forbidden',
    'storage-unreadable',
  ];
  const base = diagnose(snapshot({ namespace: namespaceFacts({ conditions: GREEN }) }));
  const only = (code: FindingCode, given: Partial<Diagnosis> = {}): Diagnosis => ({
    ...base,
    findings: [{ ...(base.findings[0] as Diagnosis['findings'][number]), id: 'x', code }],
    rootCauses: ['x'],
    movement: { kind: 'none', comparedMs: 30_000 },
    ...given,
  });

  test.each(FINDING_CODES)('%s', (code) => {
    expect(isPermanent(only(code))).toBe(PERMANENT.includes(code));
  });

  test.each<{ what: string; given: Partial<Diagnosis> }>([
    { what: 'it is no root cause', given: { rootCauses: [] } },
    { what: 'a grace period runs', given: { movement: { kind: 'grace-period', until: 'x' } } },
    {
      what: 'content shrinks',
      given: { movement: { kind: 'shrinking', before: 2, now: 1, comparedMs: 1 } },
    },
  ])('not when $what', ({ given }) => {
    expect(isPermanent(only('owner-missing', given))).toBe(false);
  });
});
