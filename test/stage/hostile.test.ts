import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isObject, type Json, type JsonObject } from '../../src/base/json.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { wantedFor } from '../../src/diagnose/wanted.ts';
import { foresee } from '../../src/forecast/predict.ts';
import { namespaceFacts } from '../../src/model/facts/metadata.ts';
import { type Diagnosis, NAMESPACE_NODE } from '../../src/model/finding.ts';
import { isPermanent, outcomeOf } from '../../src/model/outcome.ts';
import { readFailed, readOk } from '../../src/model/read.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { observe } from '../../src/observe/observe.ts';
import { readRecordedLooks } from '../unit/recorded-looks.ts';
import { FakeClock } from './fake-clock.ts';
import { FakeCluster } from './fake-cluster.ts';
import { DEMO } from './gate-run.ts';

/** Text as hostile as a cluster can make it, and words that mean something at some place. */
const text = fc.oneof(
  fc.constantFrom(
    ...['', 'x', '::error::no', '<script>', '`|$(rm -rf /)', 'a\nb\rc\u0000\u202e', '__proto__'],
    ...['constructor', 'example.com', 'widgets', 'widgets.example.com', DEMO, 'True', 'False', '*'],
    ...['widgets.example.com/cleanup', 'kubernetes.io/pvc-protection', 'foregroundDeletion'],
    ...['2026-03-02T09:59:00Z', 'not a time', 'Fail', 'ServiceAccount', 'ClusterRole', 'update'],
    ...['Failed to delete all resource types, 99 remaining: ', 'failed calling webhook "": '],
    ...['NamespaceDeletionContentFailure', 'Discovery failed for some groups, 3 failing: x'],
    'x'.repeat(5_000),
  ),
  fc.string({ unit: 'binary', maxLength: 20 }),
);
const scalar: fc.Arbitrary<Json> = fc.oneof(
  text,
  fc.constantFrom<Json>(null, true, 0, -1, 1.5, [], {}),
);
const texts = fc.array(scalar, { maxLength: 3 });

/** Every field that anything reads, each with a value that may be of any type. */
const SHAPE = {
  metadata: [
    ...['name', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp'],
    ...['deletionTimestamp', 'deletionGracePeriodSeconds', 'finalizers', 'labels', 'annotations'],
    ...['ownerReferences', 'managedFields'],
  ],
  spec: [
    ...['finalizers', 'nodeName', 'group', 'version', 'versions', 'names', 'replicas', 'service'],
    ...['selector', 'template', 'volumes', 'containers', 'conversion', 'suspend', 'nodeSelector'],
    ...['matchConstraints', 'matchConditions', 'policyName', 'holderIdentity', 'renewTime'],
    ...['serviceAccountName', 'source', 'install', 'customresourcedefinitions', 'taints'],
  ],
  status: [
    ...['conditions', 'phase', 'message', 'readyReplicas', 'containerStatuses', 'storedVersions'],
    ...['attached', 'observedGeneration', 'boundVolumeSnapshotContentName'],
  ],
  top: ['webhooks', 'rules', 'subjects', 'roleRef', 'involvedObject', 'message', 'reason', 'type'],
};
const INNER = [
  ...['type', 'status', 'reason', 'message', 'name', 'namespace', 'kind', 'apiVersion', 'uid'],
  ...['manager', 'time', 'fieldsV1', 'operation', 'subresource', 'apiGroups', 'resources', 'verbs'],
  ...['operations', 'clientConfig', 'service', 'controller', 'matchLabels', 'spec', 'containers'],
];
const inner = fc.dictionary(fc.constantFrom(...INNER), fc.oneof(scalar, texts), { maxKeys: 5 });
const value = fc.oneof(scalar, texts, inner, fc.array(inner, { maxLength: 2 }));
const part = (keys: string[]): fc.Arbitrary<Json> =>
  fc.oneof(
    { arbitrary: fc.dictionary(fc.constantFrom(...keys), value, { maxKeys: 8 }), weight: 5 },
    { arbitrary: scalar, weight: 1 },
  ) as fc.Arbitrary<Json>;
const object = fc
  .tuple(part(SHAPE.metadata), part(SHAPE.spec), part(SHAPE.status), part(SHAPE.top), fc.nat(9))
  .map(([metadata, spec, status, top, kind]): JsonObject => {
    const rest = isObject(top) ? top : {};
    // Most are on their way out and held, so that somebody asks who should have acted.
    const held = {
      name: 'db',
      namespace: DEMO,
      uid: `u${kind}`,
      deletionTimestamp: '2026-03-02T09:59:00Z',
      finalizers: ['widgets.example.com/cleanup'],
    };
    const meta = kind < 3 || !isObject(metadata) ? metadata : { ...held, ...metadata };
    return { ...rest, metadata: meta, spec, status };
  });
const objects = fc.array(object, { maxLength: 3 });

/** A server that answers every list and every GET with one of these, or with a failure. */
class HostileCluster extends FakeCluster {
  constructor(clock: FakeClock, lists: JsonObject[][], failure: string) {
    super(clock);
    let asked = 0;
    const next = (): JsonObject[] => lists[asked++ % lists.length] as JsonObject[];
    this.list = async (_, begin) => {
      const items = next();
      if (failure !== '' && asked % 5 === 0) {
        return readFailed({ kind: 'server-error', status: 500, message: failure });
      }
      const fold = begin();
      for (const item of items) fold.add(structuredClone(item));
      return readOk({ kept: fold.kept, complete: true });
    };
    this.get = async () => {
      const [first] = next();
      return first === undefined
        ? readFailed({ kind: 'not-found', status: 404, message: failure })
        : readOk(structuredClone(first));
    };
    this.send = async () => readFailed({ kind: 'invalid', status: 422, message: failure });
  }
}

async function see(lists: JsonObject[][], failure: string): Promise<Snapshot> {
  const clock = new FakeClock();
  const cluster = new HostileCluster(clock, lists, failure);
  cluster.failedGroups = failure === '' ? [] : [{ group: failure, version: 'v1', reason: failure }];
  const known = { name: DEMO, deletionTimestamp: '2026-03-02T09:59:00Z' };
  const namespace = { ...namespaceFacts(lists[0]?.[0] ?? {}), ...known };
  const deps = { api: cluster, clock, signal: new AbortController().signal };
  const [snapshot] = await observe([namespace], (now) => wantedFor(now), deps);
  return snapshot as Snapshot;
}

function isSound(diagnosis: Diagnosis): void {
  const ids = diagnosis.findings.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of [diagnosis.blockers, diagnosis.rootCauses, ...diagnosis.deadlocks].flat())
    expect(ids).toContain(id);
  for (const { from, to } of diagnosis.edges)
    expect([NAMESPACE_NODE, ...ids]).toEqual(expect.arrayContaining([from, to]));
  for (const finding of diagnosis.findings) {
    for (const words of [finding.message, ...finding.evidence]) expect(typeof words).toBe('string');
    expect(finding.message).not.toMatch(/\[object Object\]|undefined|NaN/);
    expect(finding.examples?.length ?? 0).toBeLessThanOrEqual(10);
  }
  expect(['progressing', 'stuck', 'inconclusive']).toContain(outcomeOf(diagnosis));
  isPermanent(diagnosis);
}

describe('whatever a cluster contains', () => {
  test('is read and diagnosed without an error', async () => {
    let held = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(objects, { minLength: 1, maxLength: 9 }),
        fc.oneof(fc.constant(''), text),
        async (lists, failure) => {
          const now = await see(lists, failure);
          const found = diagnose(now);
          isSound(found);
          isSound(diagnose(now, now));
          if (found.findings.some(({ code }) => code === 'object-finalizer')) held++;
          const present = { content: now.content, pods: now.pods };
          foresee({ ...now, forecast: { deletions: {}, together: [], present } }, true);
        },
      ),
      { numRuns: 50 },
    );
    expect(held).toBeGreaterThan(10);
  });

  test('is diagnosed in time, with hundreds of finalizers', () => {
    const now = readRecordedLooks()[0]?.now as Snapshot;
    const finalizers = Array.from({ length: 600 }, (_, at) => `f${at}.example.com/x`);
    const startedAt = performance.now();
    diagnose({ ...now, namespace: { ...now.namespace, finalizers } });
    expect(performance.now() - startedAt).toBeLessThan(15_000);
  });

  test('is diagnosed without an error, also as a mixture of two recorded clusters', () => {
    const pick = fc.constantFrom(...readRecordedLooks());
    fc.assert(
      fc.property(pick, pick, pick, (a, b, c) => {
        isSound(diagnose({ ...a.now, cluster: b.now.cluster, places: b.now.places }, c.before));
      }),
      { numRuns: 30 },
    );
  });
});
