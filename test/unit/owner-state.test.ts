import { expect, test } from 'vitest';
import { contextOf } from '../../src/diagnose/context.ts';
import { finalizerDomain, type Held } from '../../src/diagnose/owner/held.ts';
import { pausedBy, protectionsOf } from '../../src/diagnose/owner/pauses.ts';
import { escapeRemedies } from '../../src/diagnose/owner/remedies.ts';
import {
  lastComplaint,
  poorHealth,
  refusalsFor,
  statusTexts,
} from '../../src/diagnose/owner/statements.ts';
import { objectDetail } from '../../src/model/facts/detail.ts';
import { forbidsDeletion } from '../../src/model/facts/metadata.ts';
import { workloadFacts } from '../../src/model/facts/workloads.ts';
import { readOk } from '../../src/model/read.ts';
import { CLEANUP, DELETED_AT, DEMO, objectFacts, snapshot, typeOf, WIDGETS } from './snapshots.ts';

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
    'a phase that says so, with its reason',
    { phase: 'Suspended', message: 'the licence has expired' },
    'phase: Suspended (the licence has expired)',
  ],
  [
    'the same below',
    { sync: { state: 'Paused', message: 'by ops' } },
    'sync.state: Paused (by ops)',
  ],
  ['a phase alone', { phase: 'Stopped' }, undefined],
  ['a phase that is well', { phase: 'Ready', message: 'all is done' }, undefined],
])('what was said before the deletion: %s', (_, status, expected) => {
  const detail = objectDetail({ metadata: { generation: 1 }, ...{ status } } as never);
  const context = contextOf(snapshot({ details: { 'uid-widgets-db': readOk(detail) } }));
  const statusWriters = [{ manager: 'widget-operator', time: LONG_AGO }];
  const held = { ...HELD, objects: HELD.objects.map((object) => ({ ...object, statusWriters })) };
  const said = lastComplaint(context, held);
  expect(said?.text).toBe(expected);
  expect(said?.at ?? LONG_AGO).toBe(LONG_AGO);
});

test.each<[string, object, string | undefined]>([
  [
    'an annotation',
    { annotations: { 'example.com/paused': 'true' } },
    'annotation example.com/paused=true',
  ],
  ['text in a field', { spec: { paused: 'true' } }, 'spec.paused: true'],
  ['a state', { spec: { managementState: 'Unmanaged' } }, 'spec.managementState: Unmanaged'],
  ['another state', { spec: { managementState: 'Managed' } }, undefined],
  ['a field without a word of pausing', { spec: { unmanaged: true } }, 'spec.unmanaged: true'],
  [
    'a policy',
    { annotations: { 'example.com/reconcile-policy': 'skip' } },
    'annotation example.com/reconcile-policy=skip',
  ],
  ['another policy', { annotations: { 'example.com/reconcile-policy': 'manage' } }, undefined],
])('a pause by %s', (_, { spec, ...facts }: { spec?: object }, by) => {
  const details = { 'uid-widgets-db': readOk(objectDetail({ spec: { ...spec } })) };
  const objects = HELD.objects.map((object) => ({ ...object, ...facts }));
  expect(pausedBy(contextOf(snapshot({ details })), { ...HELD, objects })?.by).toBe(by);
});

test.each<[string, Partial<Held>, object, string | undefined]>([
  [
    'a built-in type',
    { type: typeOf('batch', 'jobs', 'Job') },
    { spec: { suspend: true } },
    undefined,
  ],
  [
    'a known product, by its annotation',
    { finalizer: 'finalizer.managedresource.crossplane.io' },
    { annotations: { 'crossplane.io/paused': 'true' } },
    'annotation crossplane.io/paused=true',
  ],
  [
    'a known product, by a field of what the object runs',
    { finalizer: 'finalizer.managedresource.crossplane.io' },
    { spec: { paused: true } },
    'spec.paused: true',
  ],
  [
    'a condition of failed work',
    {},
    { status: { conditions: [{ type: 'Reconcile', status: 'False' }] } },
    undefined,
  ],
  ['another setting', {}, { annotations: { 'example.com/backup': 'disabled' } }, undefined],
])('a pause of %s', (_, of, { spec, status, ...facts }: { spec?: object; status?: object }, by) => {
  const type = of.type ?? WIDGETS;
  const [object] = [objectFacts(type, 'db', { finalizers: [of.finalizer ?? CLEANUP] })];
  const details = {
    [object.uid]: readOk(objectDetail({ spec: { ...spec }, status: { ...status } })),
  };
  const held = { ...HELD, ...of, objects: [{ ...object, ...facts }] };
  expect(pausedBy(contextOf(snapshot({ details })), held)?.by).toBe(by);
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
    'a state that says by itself that something failed',
    { phase: 'ReconcileFailed' },
    { errors: ['phase: ReconcileFailed'] },
  ],
  [
    'an error in a list of messages',
    { state: 'error', messages: ['Error: cannot delete: AccessDenied, StatusCode: 403'] },
    { errors: ['Error: cannot delete: AccessDenied, StatusCode: 403'] },
  ],
  [
    'a sentence about other work',
    { notes: ['the nightly backup failed and is repeated'] },
    { quotes: ['the nightly backup failed and is repeated'] },
  ],
  [
    'the whole answer of a server',
    { error: '{"type":"x","message":"cannot delete: AccessDenied"}' },
    { errors: ['cannot delete: AccessDenied'] },
  ],
  [
    'a list of errors',
    {
      lastErrors: [{ taskID: 'vpc', description: 'DependencyViolation: vpc-1 has 2 dependencies' }],
    },
    { errors: ['DependencyViolation: vpc-1 has 2 dependencies'] },
  ],
  [
    'an error that begins with a bracket',
    { lastErrors: [{ description: '[Operation: TriggerDelete] cause: leases "a" is forbidden' }] },
    { errors: ['[Operation: TriggerDelete] cause: leases "a" is forbidden'] },
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
    'a failed removal beside a healthy phase, in the words of a cloud',
    { phase: 'Running', message: 'failed to delete bucket b_1: {"code": 403}' },
    { errors: ['failed to delete bucket b_1: {"code": 403}'] },
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
          lastTransitionTime: LONG_AGO,
        },
      ],
    },
    {},
  ],
  [
    'an old text that makes sense only during a deletion',
    {
      conditions: [
        {
          ...CONDITION,
          type: 'Synced',
          status: 'False',
          message: 'unable to create new content in namespace demo because it is being terminated',
          observedGeneration: 1,
          lastTransitionTime: LONG_AGO,
        },
      ],
    },
    { errors: ['unable to create new content in namespace demo because it is being terminated'] },
  ],
  [
    'a condition about an older generation that has changed since the deletion',
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
    { errors: ['upgrade failed'] },
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

test.each<[string, unknown, boolean]>([
  ['preventDestroy', true, true],
  ['deletionProtection', true, true],
  ['deletionProtectionEnabled', true, true],
  ['enableDeletionProtection', true, true],
  ['disableApiTermination', true, true],
  ['termination-lock', 'enabled', true],
  ['maintenanceMode', 'on', true],
  ['terminationPolicy', 'DoNotTerminate', true],
  ['example.com/allow-delete', 'false', true],
  ['allowVolumeDeletion', false, true],
  ['allowDeleteProtection', false, false],
  ['preventDestroy', false, false],
  ['enableDeletionProtection', false, false],
  ['disableDeletionProtection', true, false],
  ['allowDelete', true, false],
  ['deletionPolicy', 'Retain', false],
  ['deletionWindowInDays', '7', false],
  ['maintenanceWindow', 'on', false],
  ['cancelOnDelete', false, false],
  ['blockOwnerDeletion', true, false],
  ['forceDestroy', false, false],
  ['terminationGracePeriodSeconds', '0', false],
])('%s: %s forbids a deletion: %s', (key, value, expected) => {
  expect(forbidsDeletion(key, `${value}`)).toBe(expected);
});

test('keys of a map of texts may be names, like its texts; what selects pods names nothing', () => {
  const spec = { secretKeys: { creds: 'token' }, nodeSelector: { pool: 'fast' } };
  const { names = [] } = objectDetail({ spec });
  expect(names.map(({ name }) => name).sort()).toEqual(['creds', 'token']);
});

const MINUTE_MS = 60_000;

/** What a forecast asks about an object with this content, besides what the words of its status say. */
function questionsAbout(object: object, annotations: Record<string, string> = {}) {
  const now = snapshot({ details: { 'uid-widgets-db': readOk(objectDetail({ ...object })) } });
  const objects = HELD.objects.map((one) => ({ ...one, annotations }));
  const held = { ...HELD, objects };
  const health = objects.flatMap((one) => poorHealth(contextOf(now), one));
  return [...health, ...protectionsOf(contextOf(now), held)];
}

function since(minutes: number, condition: object) {
  const takenAt = Date.parse(snapshot({}).takenAt);
  const lastTransitionTime = new Date(takenAt - minutes * MINUTE_MS).toISOString();
  return { status: 'False', reason: 'X', message: '', lastTransitionTime, ...condition };
}

const READY = since(60, { type: 'Ready', status: 'True' });

test.each<[string, object, string[]]>([
  ['a state', { state: 'Unreachable' }, ['state: Unreachable']],
  ['a state below', { health: { status: 'Degraded' } }, ['health.status: Degraded']],
  ['work that failed', { conditions: [since(31, { type: 'InSync' })] }, ['InSync=False (X)']],
  [
    'work that failed beside a state that is well',
    { conditions: [READY, since(31, { type: 'Reconciled', message: 'locked' })] },
    ['Reconciled=False (X) locked'],
  ],
  ['a state that contradicts a condition', { conditions: [READY], state: 'Offline' }, []],
  ['a condition about the pods', { conditions: [since(60, { type: 'Ready' })] }, []],
  ['a state of one of many', { members: [{ state: 'Offline' }] }, []],
  ['a field that is no state', { mode: 'Offline' }, []],
  ['work that has ended', { state: 'Degraded', completionTime: LONG_AGO }, []],
])('a forecast asks about poor health: %s', (_, status, expected) => {
  expect(questionsAbout({ status })).toEqual(expected.map((text) => expect.stringContaining(text)));
});

test('a forecast asks about protections of the owner, and of nobody else', () => {
  const spec = { storage: { preventDestroy: true }, deletionProtection: false };
  const annotations = { 'example.com/protect-deletion': 'true', 'other.io/allow-delete': 'false' };
  expect(questionsAbout({ spec }, annotations)).toEqual([
    expect.stringContaining('by annotation example.com/protect-deletion: true'),
    expect.stringContaining('by spec.storage.preventDestroy: true'),
  ]);
});

const FROM_CONFIG_MAP = {
  name: 'PLACE',
  valueFrom: { configMapKeyRef: { name: 'settings', key: 'place' } },
};

test.each<[object, string[] | undefined]>([
  [{ args: ['--dry-run'] }, ['--dry-run']],
  [{ args: ['--dry-run=false'] }, undefined],
  [{ args: ['--disabled-controllers=a,b'] }, ['--disabled-controllers=a,b']],
  [{ env: [{ name: 'WATCH_NAMESPACE', value: 'shop' }] }, undefined],
  [
    { args: ['--watch-namespace=$(PLACE)'], env: [FROM_CONFIG_MAP] },
    ['PLACE from ConfigMap settings'],
  ],
  [{ args: ['--password=$(PLACE)'], env: [FROM_CONFIG_MAP] }, undefined],
  [{ args: ['--config', '/a.yaml'] }, ['the file or object of --config=/a.yaml']],
  [{ args: ['--config-reloader-cpu-request=10m'] }, undefined],
])('%j limits a controller by %j', (container, expected) => {
  const template = { spec: { containers: [{ name: 'manager', ...container }] } };
  const metadata = { namespace: 'ops', name: 'manager' };
  const workload = { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { template } };
  expect(workloadFacts('apps/v1', 'Deployment')(workload).limits).toEqual(expected);
});

test.each(['k8s://team-1/creds/token', '@secrets:team-1/creds:password', 'team-1/creds,team-1/b'])(
  'the text %s may name an object of its namespace',
  (source) => {
    const metadata = { name: 'db', namespace: 'team-1' };
    const { names = [] } = objectDetail({ metadata, spec: { source } });
    expect(names.map(({ name }) => name)).toContain('creds');
  },
);

test('long texts of a status are cut where they are read', () => {
  const long = `cannot do ${'x y '.repeat(250_000)}`;
  const conditions = [{ type: 'Ready', status: 'False', reason: 'R', message: long }];
  const detail = objectDetail({ status: { message: long, lastError: long, conditions } });
  expect(detail.texts).toHaveLength(1);
  expect(JSON.stringify(detail).length).toBeLessThan(20_000);
});

test.each([
  ['platform.example.com', 'widget.finalizers.platform.example.com', 'own'],
  ['platform.example.com', 'finalizers.widget.platform.example.com', 'own'],
  ['platform.example.com', 'gadget.finalizers.platform.example.com', 'unclear'],
])('of the group %s, the domain %s is %s', (group, domain, relation) => {
  const type = { ...WIDGETS, group };
  const discovery = readOk({ types: [type], failedGroups: [] });
  const context = contextOf({ ...snapshot(), discovery });
  const held = { ...HELD, type, finalizer: domain };
  expect(finalizerDomain(context, held).relation).toBe(relation);
});

test.each([
  ['networkRef', 'Network'],
  ['tokenSecretRef', 'Secret'],
  ['network', undefined],
])('a name in the field %s refers to an object of the kind %s', (field, kind) => {
  const { references } = objectDetail({ spec: { [field]: 'app' } });
  expect(references.map((one) => one.kind)).toEqual(kind === undefined ? [] : [kind]);
});

test('of an exception that a status has as JSON, its message is the text', () => {
  const failure = { type: 'ReconciliationException', message: 'access denied', stackTrace: '…' };
  const error = JSON.stringify(failure);
  expect(objectDetail({ status: { error } }).errors).toEqual(['access denied']);
  expect(objectDetail({ status: { error: `${error} …` } }).texts).toEqual([`${error} …`]);
});

test.each(['a', '[', 'a ', '\n'])(
  'a status with a million times %j is read in linear time',
  (unit) => {
    const error = unit.repeat(1_000_000);
    expect(
      objectDetail({ status: { lastErrorDetail: error, phase: 'Failed', text: error } }),
    ).toBeDefined();
  },
);

test('a product that has a setting for it is asked to delete the object without what it stands for', () => {
  const type = { ...WIDGETS, group: 'storage.cnrm.cloud.google.com' };
  const held = { ...HELD, type, finalizer: 'cnrm.cloud.google.com/finalizer' };
  const [first] = escapeRemedies(held);
  expect(first?.command).toMatch(
    /^kubectl patch widgets\.storage\S* db -n preview-7 --type=merge -p/,
  );
  expect(first?.command).toContain('"cnrm.cloud.google.com/deletion-policy":"abandon"');
  expect(first?.risk).toBe('The Google Cloud resource stays, with its data and cost');
  expect(escapeRemedies(HELD)).toEqual([]);
});

test.each([
  [true, 's3.aws.m.upbound.io', 'managementPolicies', 'deletionPolicy'],
  [false, 's3.aws.upbound.io', 'deletionPolicy', 'managementPolicies'],
])(
  'a managed resource of Crossplane (namespaced: %s) of %s is kept by %s',
  (...[namespaced, group, has, lacks]) => {
    const type = { ...WIDGETS, group, namespaced };
    const finalizer = 'finalizer.managedresource.crossplane.io';
    const command = escapeRemedies({ ...HELD, type, finalizer })[0]?.command;
    expect(command).toContain(has);
    expect(command).not.toContain(lacks);
    expect(command).not.toContain('Delete');
  },
);

test('its command reaches each of the objects that are held alike', () => {
  const objects = ['db', 'cache'].map((name) => objectFacts(WIDGETS, name, {}));
  const finalizer = 'finalizer.managedresource.crossplane.io';
  const [first] = escapeRemedies({ ...HELD, finalizer, objects, count: 5 });
  expect(first?.command).toContain('widgets.example.com db cache -n ');
  expect(first?.text).toContain('db, cache (the first 2 of 5) without what they stand for');
});

test('a key names the kind of an input, whatever its case', () => {
  const spec = {
    configmapRef: { name: 'a' },
    tlsSecretName: 'b',
    serviceaccountRef: { name: 'c' },
  };
  const { references } = objectDetail({ spec });
  expect(references.map(({ kind }) => kind)).toEqual(['ConfigMap', 'Secret', 'ServiceAccount']);
});
