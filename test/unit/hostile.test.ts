import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { questionsOf } from '../../src/diagnose/ask.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { type Diagnosis, NAMESPACE } from '../../src/model/finding.ts';
import { isPermanent, outcomeOf } from '../../src/model/outcome.ts';
import { failed, read } from '../../src/model/read.ts';
import type { Details, Snapshot, TypeContent } from '../../src/model/snapshot.ts';
import { apiServiceFacts, namespaceFacts, nodeFacts, podFacts } from '../../src/observe/facts.ts';
import { ContentFold } from '../../src/observe/fold.ts';
import {
  attachmentFacts,
  crdFacts,
  eventFacts,
  leaseFacts,
  objectStatus,
  serviceFacts,
  webhookFacts,
  workloadFacts,
} from '../../src/observe/owner-facts.ts';
import { readRecordedLooks } from './recorded-looks.ts';
import {
  CLAIMS,
  CLEANUP,
  CONFIG_MAPS,
  contentOf,
  DEMO,
  detailsOf,
  failureOf,
  grant,
  group,
  NOW,
  objectFacts,
  PODS,
  snapshot,
  WIDGETS,
} from './snapshots.ts';

/** Text as hostile as a cluster can make it. */
const text = fc.oneof(
  fc.constantFrom(
    '',
    'x',
    '::error::no',
    '<script>',
    '`|$(rm -rf /)',
    'a\nb\rc\u0000\u202e',
    '__proto__',
    'constructor',
    CLEANUP,
    'example.com',
    'kubernetes.io/pvc-protection',
    'widgets.example.com',
    DEMO,
    '2026-03-02T10:00:00Z',
    'not a time',
    'True',
    'False',
    'NamespaceDeletionContentFailure',
    'Failed to delete all resource types, 99 remaining: ',
    'failed calling webhook "": ',
    'Discovery failed for some groups, 3 failing: unable to retrieve',
    'x'.repeat(5_000),
  ),
  fc.string({ unit: 'binary', maxLength: 30 }),
);
const scalar = fc.oneof(text, fc.constantFrom<unknown>(null, true, 0, -1, 1.5, [], {}));
const texts = fc.array(scalar, { maxLength: 4 });
const labels = fc.dictionary(text, scalar, { maxKeys: 3 });

const metadata = fc.record(
  {
    name: scalar,
    namespace: scalar,
    uid: scalar,
    resourceVersion: scalar,
    deletionTimestamp: scalar,
    deletionGracePeriodSeconds: scalar,
    finalizers: fc.oneof(texts, scalar),
    labels,
    ownerReferences: fc.array(fc.dictionary(text, scalar, { maxKeys: 3 }), { maxLength: 2 }),
    managedFields: fc.array(
      fc.record(
        {
          manager: scalar,
          time: scalar,
          fieldsV1: fc.dictionary(text, fc.dictionary(text, labels, { maxKeys: 2 }), {
            maxKeys: 2,
          }),
        },
        { requiredKeys: [] },
      ),
      { maxLength: 3 },
    ),
  },
  { requiredKeys: [] },
);
const object = fc.record(
  {
    metadata: fc.oneof(metadata, metadata, scalar),
    spec: fc.oneof(
      fc.record(
        {
          finalizers: texts,
          nodeName: scalar,
          group: scalar,
          version: scalar,
          replicas: scalar,
          service: labels,
          selector: labels,
          volumes: fc.array(fc.dictionary(text, labels, { maxKeys: 2 }), { maxLength: 2 }),
        },
        { requiredKeys: [] },
      ),
      scalar,
    ),
    status: fc.oneof(
      fc.record(
        {
          conditions: fc.array(
            fc.record(
              { type: scalar, status: scalar, reason: scalar, message: scalar },
              { requiredKeys: [] },
            ),
            { maxLength: 4 },
          ),
          message: scalar,
        },
        { requiredKeys: [] },
      ),
      scalar,
    ),
    webhooks: fc.array(
      fc.record(
        {
          name: scalar,
          failurePolicy: scalar,
          clientConfig: fc.dictionary(text, labels, { maxKeys: 2 }),
          rules: fc.array(fc.dictionary(text, texts, { maxKeys: 3 }), { maxLength: 2 }),
        },
        { requiredKeys: [] },
      ),
      { maxLength: 2 },
    ),
    message: scalar,
    reason: scalar,
    involvedObject: labels,
  },
  { requiredKeys: [] },
) as unknown as fc.Arbitrary<JsonObject>;

const objects = fc.array(object, { maxLength: 4 });

/** As the observer would have read them. */
const snapshots = fc
  .record({
    namespace: object,
    pods: objects,
    configMaps: objects,
    widgets: objects,
    claims: objects,
    others: objects,
    failedGroups: fc.array(fc.record({ group: text, version: text, reason: text }), {
      maxLength: 2,
    }),
    discoveryWorks: fc.boolean(),
    unreadable: fc.boolean(),
    message: text,
    withDetails: fc.boolean(),
  })
  .map((world): Snapshot => {
    const fold = (type: typeof PODS, list: JsonObject[]): TypeContent => {
      const content = new ContentFold(type);
      for (const one of list) content.add(one);
      return { type, read: read(content.result()) };
    };
    const failure = failureOf({ kind: 'server-error', message: world.message });
    const { others } = world;
    const uids = world.widgets.map((one) => namespaceFacts(one).uid);
    const details: Details = detailsOf({
      apiServices: read(others.map(apiServiceFacts)),
      workloads: read(others.map((one) => workloadFacts(one, 'Deployment'))),
      webhooks: read(others.flatMap((one) => webhookFacts(one, 'MutatingWebhookConfiguration'))),
      grants: read([grant('/'), grant(`${DEMO}/x`)]),
      attachments: read(others.map(attachmentFacts)),
      otherTerminating: read(['b', 'a']),
      crds: { 'widgets.example.com': read(others[0] && crdFacts(others[0])) },
      services: { 'ops/x': read(others[0] && serviceFacts(others[0])), '/': read(undefined) },
      events: { ops: read(others.map(eventFacts)) },
      leases: { 'kube-system': read(others.map(leaseFacts)) },
      statuses: Object.fromEntries(
        uids.map((uid, index) => [
          uid,
          index % 2 ? failed(failure) : read(objectStatus(others[0] ?? {})),
        ]),
      ),
      trials: Object.fromEntries(
        uids.map((uid) => [
          `${uid} ${CLEANUP}`,
          { answer: 'refused' as const, message: world.message },
        ]),
      ),
    });
    return {
      takenAt: NOW,
      namespace: namespaceFacts(world.namespace),
      discovery: world.discoveryWorks
        ? read({
            namespacedTypes: 4,
            groups: ['example.com', ''],
            failedGroups: world.failedGroups,
          })
        : failed(failure),
      content: [
        fold(PODS, world.pods),
        fold(CONFIG_MAPS, world.configMaps),
        fold(CLAIMS, world.claims),
        world.unreadable ? { type: WIDGETS, read: failed(failure) } : fold(WIDGETS, world.widgets),
      ],
      pods: world.unreadable
        ? failed(failure)
        : read(
            world.pods
              .map((pod) => podFacts(pod, PODS))
              .filter(({ deletionTimestamp }) => deletionTimestamp !== undefined),
          ),
      nodes: { 'node-1': read(nodeFacts(others[0] ?? {})) },
      ...(world.withDetails ? { details } : {}),
    };
  });

function isSound(diagnosis: Diagnosis): void {
  const ids = diagnosis.findings.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const list of [diagnosis.blockers, diagnosis.rootCauses, ...diagnosis.deadlocks]) {
    for (const id of list) expect(ids).toContain(id);
  }
  for (const { from, to } of diagnosis.edges) {
    expect([NAMESPACE, ...ids]).toContain(from);
    expect([NAMESPACE, ...ids]).toContain(to);
  }
  for (const finding of diagnosis.findings) {
    for (const words of [finding.message, ...finding.evidence]) expect(typeof words).toBe('string');
    expect(finding.message).not.toContain('[object Object]');
    expect(finding.examples?.length ?? 0).toBeLessThanOrEqual(10);
  }
  expect(['progressing', 'stuck', 'inconclusive']).toContain(outcomeOf(diagnosis));
  isPermanent(diagnosis);
}

describe('whatever a cluster contains', () => {
  test('there is a sound diagnosis, never an error', () => {
    fc.assert(
      fc.property(snapshots, fc.option(snapshots, { nil: undefined }), (now, before) => {
        isSound(diagnose(now, before));
        questionsOf(now, before);
      }),
      { numRuns: 100 },
    );
  });

  test('a cluster that is a mixture of two recorded ones is diagnosed soundly as well', () => {
    const recorded = readRecordedLooks();
    const pick = fc.constantFrom(...recorded);
    fc.assert(
      fc.property(pick, pick, pick, (a, b, c) => {
        const details = b.now.details;
        isSound(diagnose({ ...a.now, ...(details === undefined ? {} : { details }) }, c.before));
      }),
      { numRuns: 100 },
    );
  });
});

describe('objects that refer to each other', () => {
  test('owner references in a circle change nothing', () => {
    const owned = (name: string, by: string) =>
      objectFacts(WIDGETS, name, {
        finalizers: ['x/y'],
        ownerReferences: [
          { apiVersion: 'example.com/v1', kind: 'Widget', name: by, uid: `uid-widgets-${by}` },
        ],
      });
    const content = [
      contentOf(WIDGETS, [
        { ...group(WIDGETS, ['x/y'], { count: 2 }), examples: [owned('a', 'b'), owned('b', 'a')] },
      ]),
    ];
    const diagnosis = diagnose(snapshot({ content }));
    isSound(diagnosis);
    expect(diagnosis.deadlocks).toEqual([]);
    expect(diagnosis.blockers).toHaveLength(1);
  });
});
