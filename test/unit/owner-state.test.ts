import { expect, test } from 'vitest';
import { actorsOf } from '../../src/diagnose/actors.ts';
import { contextOf } from '../../src/diagnose/context.ts';
import type { Held } from '../../src/diagnose/owner/held.ts';
import {
  leaseSeconds,
  lostAgent,
  pausedBy,
  refusalsFor,
  statusTexts,
} from '../../src/diagnose/owner/state.ts';
import { objectDetail } from '../../src/model/facts.ts';
import { readOk } from '../../src/model/read.ts';
import {
  CLEANUP,
  DELETED_AT,
  DEMO,
  objectFacts,
  podFacts,
  snapshot,
  WIDGETS,
} from './snapshots.ts';

const LONG_AGO = new Date(Date.parse(DELETED_AT) - 3_600_000).toISOString();
const LATER = new Date(Date.parse(DELETED_AT) + 1_000).toISOString();

const HELD: Held = {
  finalizer: CLEANUP,
  type: WIDGETS,
  subject: { apiVersion: 'example.com/v1', kind: 'Widget', namespace: DEMO, name: 'db' },
  objects: [{ ...objectFacts(WIDGETS, 'db', { finalizers: [CLEANUP] }), generation: 2 }],
  count: 1,
  since: DELETED_AT,
  writers: [],
};

/** An agent with a pod on each of these nodes. */
function agent(kind: string, object: object, nodes: Record<string, boolean>) {
  const owner = { apiVersion: 'apps/v1', kind, name: 'agent', uid: 'agent' };
  const pods = Object.entries(nodes).map(([nodeName, ready]) =>
    podFacts(`agent-${nodeName}`, {
      namespace: 'ops',
      deletionTimestamp: undefined,
      nodeName,
      ready,
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
    }),
  );
  const now = snapshot({ details: { 'uid-widgets-db': readOk(objectDetail({ ...object })) } });
  now.places['ops'] = { pods: readOk(pods) };
  const context = contextOf(now);
  const [actor] = actorsOf(context);
  if (actor === undefined) throw new Error('no agent');
  return lostAgent(context, HELD, actor);
}

test.each<[string, string, object, Record<string, boolean>, string | undefined]>([
  [
    'its pod there is not ready',
    'DaemonSet',
    { spec: { nodeID: 'b' } },
    { a: true, b: false },
    'b',
  ],
  ['it has no pod there', 'DaemonSet', { status: { ownerID: 'b' } }, { a: true }, 'b'],
  [
    'its pod there is ready',
    'DaemonSet',
    { spec: { nodeID: 'b' } },
    { a: false, b: true },
    undefined,
  ],
  ['the object names no node', 'DaemonSet', { spec: { size: 3 } }, { a: false }, undefined],
  ['a Deployment runs anywhere', 'StatefulSet', { spec: { nodeID: 'b' } }, { a: true }, undefined],
])('of a node that the object names, %s', (_, kind, object, nodes, expected) => {
  expect(agent(kind, object, nodes)?.node).toBe(expected);
});

test.each([
  ['a holder', 'agent-1_0b5e', 60],
  ['a holder of another name', 'x_1', 0],
  ['no holder: it was released', '', 0],
])('the next leader waits for a Lease with %s', (_, holder, seconds) => {
  const now = snapshot();
  const pod = podFacts('agent', { namespace: 'ops', deletionTimestamp: undefined });
  now.places['ops'] = { pods: readOk([pod]) };
  const lease = { namespace: 'ops', name: 'agent', holder, durationSeconds: 60 };
  now.cluster.leases = readOk([lease, { ...lease, namespace: 'other' }] as never);
  const context = contextOf(now);
  const [actor] = actorsOf(context);
  expect(actor && leaseSeconds(context, actor)).toBe(seconds);
});

test.each([
  ['the deletion has begun', false, ['AccessDenied: not authorized']],
  ['the deletion lies ahead', true, []],
])('a status that was written during the examination, when %s', (_, isForecast, expected) => {
  const message = 'AccessDenied: not authorized';
  const conditions = [
    {
      type: 'Synced',
      status: 'False',
      reason: 'ReconcileError',
      message,
      lastTransitionTime: LONG_AGO,
    },
  ];
  const now = snapshot({
    takenAt: DELETED_AT,
    details: { 'uid-widgets-db': readOk(objectDetail({ status: { conditions } })) },
  });
  if (isForecast) now.forecast = {} as never;
  const statusWriters = [{ manager: 'widget-operator', time: LATER }];
  const objects = HELD.objects.map((object) => ({ ...object, statusWriters }));
  const refusals = refusalsFor(contextOf(now), { ...HELD, objects });
  expect(refusals.map(({ error }) => error.text)).toEqual(expected);
});

test.each<[string, object, string | undefined]>([
  [
    'an annotation',
    { annotations: { 'example.com/paused': 'true' } },
    'annotation example.com/paused=true',
  ],
  ['a label', { labels: { 'example.com/ignore': 'true' } }, 'label example.com/ignore=true'],
  ['a label of another product', { labels: { 'flux.io/ignore': 'true' } }, undefined],
  ['text in a field', { spec: { paused: 'true' } }, 'spec.paused: true'],
  ['protection', { spec: { deletionProtection: true } }, 'spec.deletionProtection: true'],
  ['a state', { spec: { managementState: 'Unmanaged' } }, 'spec.managementState: Unmanaged'],
  ['another state', { spec: { managementState: 'Managed' } }, undefined],
])('a pause by %s', (_, { spec, ...facts }: { spec?: object }, by) => {
  const details = { 'uid-widgets-db': readOk(objectDetail({ spec: { ...spec } })) };
  const objects = HELD.objects.map((object) => ({ ...object, ...facts }));
  expect(pausedBy(contextOf(snapshot({ details })), { ...HELD, objects })?.by).toBe(by);
});

const CONDITION = { lastTransitionTime: LATER, reason: 'Cleanup' };

test.each<[string, object, { errors?: string[]; quotes?: string[] }]>([
  [
    'a condition with a negated type',
    {
      conditions: [{ ...CONDITION, type: 'NotReady', status: 'True', message: 'topic is in use' }],
    },
    { errors: ['topic is in use'], quotes: ['topic is in use'] },
  ],
  [
    'a list of errors',
    {
      lastErrors: [{ taskID: 'vpc', description: 'DependencyViolation: vpc-1 has 2 dependencies' }],
    },
    { errors: ['DependencyViolation: vpc-1 has 2 dependencies'] },
  ],
  [
    'an error in another language',
    { lastError: 'Löschen nicht möglich: Datenbank ist in Benutzung' },
    { errors: ['Löschen nicht möglich: Datenbank ist in Benutzung'] },
  ],
  [
    'an error that begins with "no"',
    { error: 'no such bucket: preview' },
    { errors: ['no such bucket: preview'] },
  ],
  [
    'a message beside a failed state',
    { lastOperation: { type: 'Delete', state: 'Error', description: 'Waiting for the shoot' } },
    { errors: ['Error: Waiting for the shoot'] },
  ],
  [
    'conditions that are well, with words of failure',
    {
      conditions: [
        { ...CONDITION, type: 'Degraded', status: 'False', message: 'nothing has failed' },
        { ...CONDITION, type: 'Available', status: 'True', message: 'no failures' },
      ],
    },
    {},
  ],
  ['a list of no errors', { errors: [], lastError: 'none', failureMessage: 'no failures' }, {}],
  [
    'words of failure beside a healthy phase',
    { phase: 'Running', message: 'last backup failed over to zone b' },
    { quotes: ['last backup failed over to zone b'] },
  ],
  [
    'a failed removal beside a healthy phase',
    { phase: 'Running', message: 'failed to delete the bucket' },
    { errors: ['failed to delete the bucket'] },
  ],
  [
    'an error with the announcement of another attempt',
    {
      conditions: [
        { ...CONDITION, type: 'Synced', status: 'False', message: 'AccessDenied, will be retried' },
      ],
    },
    { errors: ['AccessDenied, will be retried'] },
  ],
  [
    'entries of a list that say when they failed, long ago',
    {
      events: [{ type: 'Warning', reason: 'Error', message: 'disk full', time: LONG_AGO }],
      history: [{ phase: 'Failed', message: 'upload failed', finishedAt: LONG_AGO }],
    },
    {},
  ],
  [
    'an error with a time beside it, long ago',
    { lastError: 'upload failed: disk full', lastErrorTime: LONG_AGO },
    {},
  ],
  [
    'a failed entry of a list that says when it began',
    { tasks: [{ phase: 'Failed', message: 'bucket is not empty', startTime: LONG_AGO }] },
    { errors: ['Failed: bucket is not empty'] },
  ],
  [
    'a condition about an older generation',
    {
      conditions: [
        {
          ...CONDITION,
          type: 'Synced',
          status: 'False',
          message: 'upgrade failed',
          observedGeneration: 1,
        },
      ],
    },
    {},
  ],
])('the status of a held object: %s', (_, status, { errors = [], quotes = errors }) => {
  const object = { metadata: { deletionTimestamp: DELETED_AT }, status: { ...status } };
  const context = contextOf(
    snapshot({ details: { 'uid-widgets-db': readOk(objectDetail(object)) } }),
  );
  expect(refusalsFor(context, HELD).map(({ error }) => error.text)).toEqual(errors);
  expect(statusTexts(context, HELD).map(({ text }) => text)).toEqual(
    expect.arrayContaining(quotes),
  );
  if (quotes.length === 0) expect(statusTexts(context, HELD)).toEqual(errors);
});
