import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { CONFIG_MAPS, DEMO, FakeCluster, PODS, pathOf, pathOfAll, WIDGETS } from './force-fake.ts';
import { CLEANUP, force, ownEntry, planOf, refusals, removeFrom, results } from './force-run.ts';

const NAMESPACE = `/api/v1/namespaces/${DEMO}`;
const FINALIZE = planOf([ownEntry('kubernetes')]);

function terminating(over: Parameters<FakeCluster['namespace']>[0] = {}): FakeCluster {
  const cluster = new FakeCluster();
  cluster.namespace(over);
  return cluster;
}

describe('the namespace own entries', () => {
  test('an empty namespace is finalized by a PUT of exactly what was read, without the entry', async () => {
    const cluster = terminating();
    const before = cluster.read(NAMESPACE);
    const ran = await force(cluster, FINALIZE);
    expect(cluster.mutations).toEqual([`PUT ${NAMESPACE}/finalize`]);
    expect(cluster.bodies[0]).toEqual({ ...before, spec: { finalizers: [] } });
    expect(ran).toMatchObject({ outcome: 'forced', writes: 1, record: { orphans: [] } });
  });

  test('exactly one of three spec entries goes when only that one is planned', async () => {
    const cluster = terminating({
      spec: ['openshift.io/origin', 'kubernetes', 'foregroundDeletion'],
    });
    const ran = await force(cluster, planOf([ownEntry('openshift.io/origin')]));
    expect(cluster.mutations).toHaveLength(1);
    expect(cluster.bodies[0]).toMatchObject({
      spec: { finalizers: ['kubernetes', 'foregroundDeletion'] },
    });
    expect(ran.outcome).toBeUndefined();
  });

  test('metadata entries go by patch, one by one, then spec entries, kubernetes last', async () => {
    const cluster = terminating({
      metadata: { finalizers: ['a.io/x', 'b.io/y'] },
      spec: ['kubernetes', 'c.io/z'],
    });
    const ran = await force(
      cluster,
      planOf([
        ownEntry('a.io/x', 'metadata'),
        ownEntry('b.io/y', 'metadata'),
        ownEntry('c.io/z'),
        ownEntry('kubernetes'),
      ]),
    );
    expect(cluster.mutations).toEqual([
      `PATCH ${NAMESPACE}`,
      `PATCH ${NAMESPACE}`,
      `PUT ${NAMESPACE}/finalize`,
      `PUT ${NAMESPACE}/finalize`,
    ]);
    expect(cluster.bodies[1]).toEqual([
      { op: 'test', path: '/metadata/uid', value: 'ns-uid' },
      { op: 'test', path: '/metadata/finalizers/0', value: 'b.io/y' },
      { op: 'remove', path: '/metadata/finalizers/0' },
    ]);
    expect(cluster.bodies[3]).toMatchObject({ spec: { finalizers: [] } });
    expect(ran.outcome).toBe('forced');
  });

  test('kubernetes stays while anything else would hold the namespace', async () => {
    const cluster = terminating({ metadata: { finalizers: ['new.io/since-the-plan'] } });
    const ran = await force(cluster, FINALIZE);
    expect(cluster.mutations).toEqual([]);
    expect(results(ran)[0]).toContain('new.io/since-the-plan would still hold the namespace');
  });

  test('the label is tested in the patch itself', async () => {
    const cluster = terminating({
      metadata: { finalizers: ['a.io/x'], labels: { 'x.io/e~h': '1' } },
    });
    const plan = planOf([ownEntry('a.io/x', 'metadata')], {
      label: { key: 'x.io/e~h', value: '1' },
    });
    cluster.beforeWrite = () =>
      cluster.namespace({ metadata: { finalizers: ['a.io/x'], labels: {} } });
    const ran = await force(cluster, plan);
    expect(cluster.bodies[0]).toContainEqual({
      op: 'test',
      path: '/metadata/labels/x.io~1e~0h',
      value: '1',
    });
    expect(cluster.mutations).toEqual([`PATCH ${NAMESPACE} 422`]);
    expect(results(ran)[0]).toContain('no longer has the label');
  });

  test.each([
    ['recreated', { uid: 'new-uid' }, 'another namespace has the name now'],
    ['Active', { phase: 'Active' }, 'not Terminating'],
  ])(
    'between read and PUT it is %s: refused by the server, and not repeated',
    async (_, over, reason) => {
      const cluster = terminating();
      cluster.beforeWrite = () => cluster.namespace(over);
      const ran = await force(cluster, FINALIZE);
      expect(cluster.mutations).toEqual([`PUT ${NAMESPACE}/finalize 409`]);
      expect(results(ran)[0]).toContain(reason);
      expect(ran.writes).toBe(0);
    },
  );

  test('a change by somebody else is read again, and kept', async () => {
    const cluster = terminating();
    cluster.beforeWrite = (_, count) => {
      if (count === 0) cluster.namespace({ metadata: { annotations: { keep: 'me', and: 'me' } } });
    };
    await force(cluster, FINALIZE);
    expect(cluster.mutations).toEqual([
      `PUT ${NAMESPACE}/finalize 409`,
      `PUT ${NAMESPACE}/finalize`,
    ]);
    expect(cluster.bodies[1]).toMatchObject({ metadata: { annotations: { and: 'me' } } });
  });

  test('an entry that is put back is told, and the namespace is not called forced', async () => {
    const cluster = terminating({ metadata: { finalizers: ['a.io/x'] } });
    cluster.afterWrite = () =>
      cluster.namespace({
        metadata: {
          finalizers: ['a.io/x'],
          managedFields: [
            {
              manager: 'tenant-operator',
              fieldsV1: { 'f:metadata': { 'f:finalizers': { 'v:"a.io/x"': {} } } },
            },
          ],
        },
      });
    const ran = await force(
      cluster,
      planOf([ownEntry('a.io/x', 'metadata'), ownEntry('kubernetes')]),
    );
    expect(results(ran)).toEqual([
      `namespaces/${DEMO} a.io/x: removed, and added again by manager tenant-operator`,
    ]);
    expect(ran.outcome).toBeUndefined();
  });

  test('is not touched when freeing the objects was enough', async () => {
    const cluster = terminating();
    cluster.held(WIDGETS, 'a', CLEANUP);
    const ran = await force(cluster, planOf([removeFrom(WIDGETS), ownEntry('kubernetes')]));
    expect(cluster.mutations).toEqual([`PATCH ${pathOf(WIDGETS, 'a')}`]);
    expect(ran.outcome).toBe('forced');
  });
});

describe('what would be left behind', () => {
  function inhabited(): FakeCluster {
    const cluster = terminating();
    cluster.held(WIDGETS, 'kiali', 'kiali.io/finalizer');
    cluster.object(CONFIG_MAPS, 'settings');
    cluster.object(PODS, 'web');
    return cluster;
  }
  const accepting = { ...FINALIZE, orphans: 'accept' } as const;

  test('refuses over content that the plan did not know of, and names it', async () => {
    const cluster = inhabited();
    const ran = await force(cluster, FINALIZE);
    expect(cluster.mutations).toEqual([]);
    expect(refusals(ran)).toEqual([
      `namespaces/${DEMO}: content remains: configmaps/settings, pods/web, widgets.example.com/kiali (kiali.io/finalizer); only force-orphans: accept would finalize the namespace and leave it behind`,
    ]);
    expect(ran.outcome).toBeUndefined();
  });

  test.each([
    [
      'a type that cannot be listed',
      (c: FakeCluster) =>
        c.failures.set(`LIST ${pathOfAll(WIDGETS)}`, { kind: 'forbidden', message: '403' }),
    ],
    [
      'a dead API group',
      (c: FakeCluster) => {
        c.failedGroups = [{ group: 'm.io', version: 'v1', reason: 'Stale' }];
      },
    ],
    [
      'unreadable discovery',
      (c: FakeCluster) => c.failures.set('DISCOVER', { kind: 'timeout', message: 'no answer' }),
    ],
  ])('refuses over %s', async (_, breakIt) => {
    const cluster = terminating();
    breakIt(cluster);
    const ran = await force(cluster, FINALIZE);
    expect(cluster.mutations).toEqual([]);
    expect(refusals(ran)[0]).toContain('not everything could be read');
    const accepted = await force(cluster, accepting);
    expect(accepted.outcome).toBe('forced');
    expect(accepted.unread).toHaveLength(1);
    expect(results(accepted).at(-1)).toContain('not searched for what is left behind');
  });

  test('accepted: is listed in the log before the write and completely in the record after it', async () => {
    const cluster = inhabited();
    const logged: string[][] = [];
    const ran = await force(cluster, accepting, {
      log: {
        line: () => undefined,
        group: (_, more) => logged.push([`${cluster.mutations.length} writes`, ...more]),
        notice: () => undefined,
        warning: () => undefined,
        error: () => undefined,
        debug: () => undefined,
      },
    });
    expect(logged[0]?.slice(0, 4)).toEqual([
      '0 writes',
      'configmaps/settings uid uid-settings',
      'pods/web uid uid-web',
      'widgets.example.com/kiali (kiali.io/finalizer) uid uid-kiali',
    ]);
    expect(ran.outcome).toBe('forced');
    expect(ran.record.orphans).toEqual([
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        name: 'settings',
        uid: 'uid-settings',
        finalizers: [],
      },
      { apiVersion: 'v1', kind: 'Pod', name: 'web', uid: 'uid-web', finalizers: [] },
      {
        apiVersion: 'example.com/v1',
        kind: 'Widget',
        name: 'kiali',
        uid: 'uid-kiali',
        finalizers: ['kiali.io/finalizer'],
      },
    ]);
    expect(results(ran).at(-1)).toMatch(
      /3 objects are left behind: .* answers 404 until a namespace of this name exists again/,
    );
  });

  test('is still told when its type cannot be listed any more afterwards', async () => {
    const cluster = inhabited();
    cluster.afterWrite = () =>
      cluster.failures.set(`LIST ${pathOfAll(WIDGETS)}`, { kind: 'server-error', message: '500' });
    const ran = await force(cluster, accepting);
    expect(ran.record.orphans.map(({ name }) => name)).toContain('kiali');
    expect(ran.unread).toEqual([{ what: 'widgets.example.com', reason: '500' }]);
  });

  test('does not count what a new namespace of the same name holds', async () => {
    const cluster = inhabited();
    cluster.afterWrite = () => {
      cluster.namespace({
        uid: 'new-uid',
        phase: 'Active',
        metadata: { creationTimestamp: '2026-01-01T00:11:00Z' },
      });
      cluster.object(CONFIG_MAPS, 'new', { creationTimestamp: '2026-01-01T00:11:01Z' });
    };
    const ran = await force(cluster, accepting);
    expect(ran.record.orphans.map(({ name }) => name)).toEqual(['settings', 'web', 'kiali']);
  });
});

describe('before the first write', () => {
  const both = planOf([
    removeFrom(WIDGETS),
    ownEntry('a.io/x', 'metadata'),
    ownEntry('kubernetes'),
  ]);
  function ready(): FakeCluster {
    const cluster = terminating({ metadata: { finalizers: ['a.io/x'] } });
    cluster.held(WIDGETS, 'a', CLEANUP);
    return cluster;
  }

  test('asks for every right and tries every write without storing it', async () => {
    const cluster = ready();
    await force(cluster, both);
    expect(cluster.reviews).toEqual([
      'patch widgets.example.com',
      'patch namespaces',
      'update namespaces/finalize',
    ]);
    expect(cluster.dryRuns).toEqual([
      `PATCH ${pathOf(WIDGETS, 'a')}`,
      `PATCH ${NAMESPACE}`,
      `PUT ${NAMESPACE}/finalize`,
    ]);
  });

  test('missing rights are named together, with the rules that grant just these, and nothing is written', async () => {
    const cluster = ready();
    cluster.denied.add('patch widgets.example.com').add('update namespaces/finalize');
    const ran = await force(cluster, both);
    expect(cluster.mutations).toEqual([]);
    expect(refusals(ran)).toEqual([
      `namespaces/${DEMO}: rights are missing: patch widgets.example.com, update namespaces/finalize; these rules grant just them: [{apiGroups: ["example.com"], resources: ["widgets"], verbs: ["patch"]}, {apiGroups: [""], resources: ["namespaces/finalize"], verbs: ["update"]}]`,
    ]);
    expect(ran.grant).toContain(
      '  - {apiGroups: ["example.com"], resources: ["widgets"], verbs: ["patch"]}',
    );
    expect(results(ran)).toHaveLength(3);
  });

  test('mode plan does not hold missing rights on namespaces against the objects', async () => {
    const cluster = ready();
    cluster.denied.add('update namespaces/finalize');
    const ran = await force(cluster, { ...both, mode: 'plan' });
    expect(results(ran)).toEqual([
      `namespaces/${DEMO} a.io/x: not done: rights are missing: update namespaces/finalize`,
      `namespaces/${DEMO} kubernetes: not done: rights are missing: update namespaces/finalize`,
      `widgets.example.com/a ${CLEANUP}: would be done`,
    ]);
  });

  test('a right that only the dry run shows to be missing counts as missing', async () => {
    const cluster = ready();
    cluster.failures.set('DRY PATCH', {
      kind: 'forbidden',
      status: 403,
      message:
        '403 Forbidden: widgets.example.com "a" is forbidden: User "x" cannot patch resource "widgets"',
    });
    const ran = await force(cluster, both);
    expect(cluster.mutations).toEqual([]);
    expect(refusals(ran)[0]).toContain('rights are missing: patch widgets.example.com');
  });

  test('what admission refuses is not tried; the rest is', async () => {
    const cluster = ready();
    cluster.failures.set(`DRY PATCH ${pathOf(WIDGETS, 'a')}`, {
      kind: 'invalid',
      status: 400,
      message: '400: admission webhook "guard" denied the request: keep it',
    });
    const ran = await force(cluster, both, { settleMs: 0 });
    expect(results(ran)[0]).toContain('admission webhook "guard" denied the request: keep it');
    expect(cluster.mutations).toEqual([]); // and then the namespace is refused: content remains
    expect(refusals(ran)[0]).toContain('content remains: widgets.example.com/a');
  });

  test('a webhook that takes no dry runs says nothing about the real write', async () => {
    const cluster = ready();
    cluster.failures.set('DRY PATCH', {
      kind: 'invalid',
      status: 400,
      message: '400: admission webhook "guard" does not support dry run',
    });
    expect((await force(cluster, both)).outcome).toBe('forced');
  });

  test('mode plan goes as far as here, and no further', async () => {
    const cluster = ready();
    const before = structuredClone(cluster.read(NAMESPACE) as JsonObject);
    const ran = await force(cluster, { ...both, mode: 'plan' });
    expect(cluster.mutations).toEqual([]);
    expect(cluster.read(NAMESPACE)).toEqual(before);
    expect(results(ran)).toEqual([
      `widgets.example.com/a ${CLEANUP}: would be done`,
      `namespaces/${DEMO} a.io/x: would be done`,
      `namespaces/${DEMO} kubernetes: would be done`,
    ]);
    expect(ran.outcome).toBeUndefined();
    expect(ran.record.mode).toBe('plan');
  });
});
