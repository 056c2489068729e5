import { describe, expect, test } from 'vitest';
import { stringAt } from '../../src/base/json.ts';
import type { FinalizerAction, PodAction } from '../../src/force/force-plan.ts';
import { CONFIG_MAPS, DEMO, FakeCluster, PODS, pathOf, pathOfAll, WIDGETS } from './force-fake.ts';
import { CLEANUP, force, planOf, refusals, removeFrom, results } from './force-run.ts';

const NAMESPACE = `/api/v1/namespaces/${DEMO}`;
const ONE = planOf([removeFrom(WIDGETS)], { mode: 'objects' });

function clusterWith(...names: string[]): FakeCluster {
  const cluster = new FakeCluster();
  cluster.namespace();
  for (const name of names) cluster.held(WIDGETS, name, CLEANUP);
  return cluster;
}

describe('removing a finalizer from objects', () => {
  test('patches what it tested, and the namespace goes by itself', async () => {
    const cluster = clusterWith('a');
    const ran = await force(cluster, ONE);
    expect(cluster.mutations).toEqual([`PATCH ${pathOf(WIDGETS, 'a')}`]);
    expect(cluster.bodies).toEqual([
      [
        { op: 'test', path: '/metadata/uid', value: 'uid-a' },
        { op: 'test', path: '/metadata/finalizers/0', value: CLEANUP },
        { op: 'remove', path: '/metadata/finalizers/0' },
      ],
    ]);
    expect(results(ran)).toEqual([`widgets.example.com/a ${CLEANUP}: removed`]);
    expect(ran).toMatchObject({ outcome: 'forced', writes: 1 });
  });

  test('says what may be left behind by what it removed', async () => {
    const action = { ...removeFrom(WIDGETS), leak: 'a database' } as FinalizerAction;
    const ran = await force(clusterWith('a'), planOf([action], { mode: 'objects' }));
    expect(results(ran)).toEqual([
      `widgets.example.com/a ${CLEANUP}: removed; may be left behind: a database`,
    ]);
  });

  test('leaves the other finalizers of the object alone', async () => {
    const cluster = clusterWith();
    cluster.held(WIDGETS, 'a', 'first.io/x', CLEANUP, 'last.io/y');
    const ran = await force(cluster, ONE, { settleMs: 0 });
    expect(cluster.read(pathOf(WIDGETS, 'a'))).toMatchObject({
      metadata: { finalizers: ['first.io/x', 'last.io/y'] },
    });
    expect(ran.outcome).toBeUndefined();
  });

  test('removes an entry that is there twice, in one patch', async () => {
    const cluster = clusterWith();
    cluster.held(WIDGETS, 'a', CLEANUP, 'other.io/x', CLEANUP);
    await force(cluster, ONE, { settleMs: 0 });
    expect(cluster.mutations).toHaveLength(1);
    expect(cluster.read(pathOf(WIDGETS, 'a'))).toMatchObject({
      metadata: { finalizers: ['other.io/x'] },
    });
  });

  test('reaches the last of 500 objects, one write each, and tells them as one', async () => {
    const names = Array.from({ length: 500 }, (_, index) => `w-${index}`);
    const cluster = clusterWith(...names);
    const ran = await force(cluster, ONE);
    expect(cluster.mutations).toHaveLength(500);
    expect(new Set(cluster.mutations).size).toBe(500);
    expect(results(ran)).toEqual([
      expect.stringMatching(
        /^500 objects of widgets\.example\.com \(w-0, .* and 490 more\) example\.com\/cleanup: removed$/,
      ),
    ]);
  });

  test('never touches an object without deletionTimestamp, and says so', async () => {
    const cluster = clusterWith('a');
    cluster.object(WIDGETS, 'alive', { finalizers: [CLEANUP] });
    const ran = await force(cluster, ONE, { settleMs: 0 });
    expect(cluster.mutations).toEqual([`PATCH ${pathOf(WIDGETS, 'a')}`]);
    expect(refusals(ran)).toEqual([
      `widgets.example.com/alive: has ${CLEANUP} and no deletionTimestamp: only terminating objects are touched`,
    ]);
  });

  test('ignores objects of another namespace in a careless answer', async () => {
    const cluster = clusterWith();
    cluster.held(WIDGETS, 'a', CLEANUP);
    const stray = cluster.read(pathOf(WIDGETS, 'a'));
    cluster.put(pathOf(WIDGETS, 'a'), {
      ...stray,
      metadata: { ...(stray?.['metadata'] as object), namespace: 'production' },
    });
    await force(cluster, ONE, { settleMs: 0 });
    expect(cluster.mutations).toEqual([]);
  });
});

describe('things that move between read and write', () => {
  test('a changed order of finalizers: reads again and takes the right one', async () => {
    const cluster = clusterWith('a');
    cluster.beforeWrite = (_, count) => {
      if (count === 0) cluster.held(WIDGETS, 'a', 'new.io/first', CLEANUP);
    };
    await force(cluster, ONE, { settleMs: 0 });
    expect(cluster.mutations).toEqual([
      `PATCH ${pathOf(WIDGETS, 'a')} 422`,
      `PATCH ${pathOf(WIDGETS, 'a')}`,
    ]);
    expect(cluster.read(pathOf(WIDGETS, 'a'))).toMatchObject({
      metadata: { finalizers: ['new.io/first'] },
    });
  });

  test('an object that keeps moving is read again three times, then left', async () => {
    const cluster = clusterWith('a');
    let turn = 0;
    cluster.beforeWrite = () => {
      turn++;
      cluster.held(WIDGETS, 'a', ...Array.from({ length: turn }, (_, at) => `x.io/${at}`), CLEANUP);
    };
    const ran = await force(cluster, ONE, { settleMs: 0 });
    expect(cluster.mutations).toHaveLength(4);
    expect(results(ran)[0]).toMatch(/not done: 422 .* \(read again 3 times\)$/);
    expect(ran).toMatchObject({ writes: 0, outcome: undefined });
  });

  test('another object of the same name is left alone', async () => {
    const cluster = clusterWith('a');
    cluster.beforeWrite = () =>
      cluster.object(WIDGETS, 'a', {
        uid: 'another',
        deletionTimestamp: '2026-01-01T00:00:00Z',
        finalizers: [CLEANUP],
      });
    const ran = await force(cluster, ONE, { settleMs: 0 });
    expect(cluster.mutations).toEqual([`PATCH ${pathOf(WIDGETS, 'a')} 422`]);
    expect(results(ran)[0]).toContain('another object has the name now');
  });

  test('an object that went by itself is fine', async () => {
    const cluster = clusterWith('a', 'b');
    cluster.beforeWrite = (request) => cluster.remove(request.path);
    const action = { ...removeFrom(WIDGETS), leak: 'a database' } as FinalizerAction;
    const ran = await force(cluster, planOf([action], { mode: 'objects' }));
    expect(results(ran)).toEqual([
      `widgets.example.com/a ${CLEANUP}: no longer there`,
      `widgets.example.com/b ${CLEANUP}: no longer there`,
    ]);
    expect(ran.writes).toBe(0);
  });

  test('a recreated namespace is not written to, although its objects look the same', async () => {
    const cluster = clusterWith('a', 'b', 'c', 'd', 'e', 'f');
    cluster.beforeWrite = (_, count) => {
      if (count === 0) cluster.namespace({ uid: 'new-uid' });
    };
    const ran = await force(cluster, ONE);
    // The first batch of four was on its way; each of them pins its own object.
    expect(cluster.mutations).toHaveLength(4);
    expect(results(ran).slice(-2)).toEqual([
      `widgets.example.com/e ${CLEANUP}: not done: another namespace has the name now (UID new-uid)`,
      `widgets.example.com/f ${CLEANUP}: not done: another namespace has the name now (UID new-uid)`,
    ]);
  });

  test.each([
    ['recreated', { uid: 'new-uid' }, undefined, 'another namespace has the name now'],
    ['Active', { phase: 'Active' }, undefined, 'not Terminating'],
    [
      'without the label',
      { metadata: { labels: {} } },
      { key: 'ephemeral', value: 'true' },
      'no longer has the label ephemeral=true',
    ],
  ])('nothing is written to a namespace that is %s by then', async (_, over, label, reason) => {
    const cluster = clusterWith('a');
    cluster.namespace(over);
    const ran = await force(cluster, { ...ONE, label });
    expect(cluster.mutations).toEqual([]);
    expect(cluster.dryRuns).toEqual([]);
    expect(results(ran)[0]).toContain(reason);
  });

  test('a label that is taken off on the way stops the rest', async () => {
    const cluster = clusterWith(...Array.from({ length: 20 }, (_, index) => `w-${index}`));
    cluster.beforeWrite = (_, count) => {
      if (count === 3) cluster.namespace({ metadata: { labels: {} } });
    };
    const ran = await force(cluster, { ...ONE, label: { key: 'ephemeral', value: 'true' } });
    expect(cluster.mutations).toHaveLength(4);
    expect(results(ran).at(-1)).toContain('16 objects');
  });

  test('a protected name is refused here as well, however the plan came about', async () => {
    const cluster = clusterWith('a');
    const ran = await force(cluster, { ...ONE, namespace: { name: 'kube-system', uid: 'ns-uid' } });
    expect(cluster.mutations).toEqual([]);
    expect(refusals(ran)[0]).toContain('protected');
  });
});

describe('errors', () => {
  test('throttling is waited for, longer each time', async () => {
    const cluster = clusterWith('a');
    let left = 2;
    cluster.beforeWrite = (request) => {
      const start = `PATCH ${request.path}`;
      if (left-- > 0)
        cluster.failures.set(start, { kind: 'throttled', status: 429, message: '429' });
      else cluster.failures.delete(start);
    };
    const ran = await force(cluster, ONE, { settleMs: 0 });
    expect(results(ran)).toEqual([`widgets.example.com/a ${CLEANUP}: removed`]);
    expect(ran.slept.slice(0, 2)).toEqual([1_000, 2_000]);
  });

  test('an unanswered write is looked up before it is repeated', async () => {
    const cluster = clusterWith('a');
    cluster.beforeWrite = (request) => {
      cluster.remove(request.path); // it did arrive
      cluster.failures.set(`PATCH ${request.path}`, { kind: 'timeout', message: 'no answer' });
    };
    const ran = await force(cluster, ONE);
    expect(results(ran)).toEqual([`widgets.example.com/a ${CLEANUP}: removed`]);
    expect(ran).toMatchObject({ writes: 1, outcome: 'forced' });
  });

  test('a refusal is quoted, and the other objects are still done', async () => {
    const cluster = clusterWith('a', 'b');
    cluster.failures.set(`PATCH ${pathOf(WIDGETS, 'a')}`, {
      kind: 'forbidden',
      status: 403,
      message: '403 Forbidden: not this one',
    });
    const ran = await force(cluster, ONE, { settleMs: 0 });
    expect(results(ran)).toEqual([
      `widgets.example.com/a ${CLEANUP}: not done: 403 Forbidden: not this one`,
      `widgets.example.com/b ${CLEANUP}: removed`,
    ]);
  });

  test('a namespace that cannot be read again is not written to', async () => {
    const cluster = clusterWith('a');
    cluster.failures.set(`GET ${NAMESPACE}`, { kind: 'forbidden', status: 403, message: '403' });
    const ran = await force(cluster, ONE);
    expect(cluster.mutations).toEqual([]);
    expect(ran.outcome).toBeUndefined();
  });

  test('no new write after the run was cancelled', async () => {
    const cluster = clusterWith(...Array.from({ length: 20 }, (_, index) => `w-${index}`));
    const cancel = new AbortController();
    cluster.beforeWrite = (_, count) => {
      if (count === 3) cancel.abort();
    };
    const ran = await force(cluster, ONE, { signal: cancel.signal });
    expect(cluster.mutations.length).toBeLessThanOrEqual(4);
    expect(results(ran).at(-1)).toContain('not done: the run was cancelled');
  });

  test('nothing is repeated after the run was cancelled', async () => {
    const cluster = clusterWith('a');
    const cancel = new AbortController();
    let sent = 0;
    cluster.beforeWrite = (request) => {
      sent++;
      cancel.abort();
      cluster.held(WIDGETS, 'a', 'new.io/first', CLEANUP);
      expect(request.path).toBe(pathOf(WIDGETS, 'a'));
    };
    await force(cluster, ONE, { signal: cancel.signal });
    expect(sent).toBe(1);
  });

  test('a repeated run picks up where the first one stopped', async () => {
    const cluster = clusterWith(...Array.from({ length: 6 }, (_, index) => `w-${index}`));
    const cancel = new AbortController();
    cluster.beforeWrite = (_, count) => count === 3 && cancel.abort();
    await force(cluster, ONE, { signal: cancel.signal });
    const ran = await force(cluster, ONE);
    expect(ran.outcome).toBe('forced');
    expect(cluster.mutations).toHaveLength(6);
  });
});

describe('afterwards', () => {
  test('a finalizer that is back is not called removed, and whoever put it there is named', async () => {
    const cluster = clusterWith('a');
    cluster.held(WIDGETS, 'a', CLEANUP, 'other.io/x');
    cluster.afterWrite = () =>
      cluster.object(WIDGETS, 'a', {
        deletionTimestamp: '2026-01-01T00:00:00Z',
        finalizers: ['other.io/x', CLEANUP],
        managedFields: [
          {
            manager: 'widget-operator',
            operation: 'Update',
            time: '2026-01-01T00:10:00Z',
            fieldsV1: { 'f:metadata': { 'f:finalizers': { [`v:"${CLEANUP}"`]: {} } } },
          },
        ],
      });
    const ran = await force(cluster, ONE, { settleMs: 0 });
    expect(results(ran)).toEqual([
      `widgets.example.com/a ${CLEANUP}: removed, and added again by manager widget-operator`,
    ]);
    expect(ran.outcome).toBeUndefined();
  });

  test('what was queued behind a pod is done in a round of its own, after a new plan', async () => {
    const cluster = clusterWith();
    cluster.held(PODS, 'web', CLEANUP);
    cluster.object(CONFIG_MAPS, 'settings', { finalizers: [CLEANUP] });
    const ran = await force(cluster, planOf([removeFrom(PODS)], { mode: 'objects' }), {
      replan: async () => planOf([removeFrom(CONFIG_MAPS)], { mode: 'objects' }),
    });
    expect(cluster.mutations).toEqual([
      `PATCH ${pathOf(PODS, 'web')}`,
      `PATCH ${pathOf(CONFIG_MAPS, 'settings')}`,
    ]);
    expect(ran.outcome).toBe('forced');
    expect(ran.log).toContain('Looked again: the plan has changed');
  });

  test('nothing was written and the namespace is gone all the same: that is not forced', async () => {
    const cluster = clusterWith();
    cluster.settle();
    expect(await force(cluster, ONE)).toMatchObject({ outcome: 'deleted', writes: 0 });
  });

  test('a type that cannot be listed is told', async () => {
    const cluster = clusterWith('a');
    cluster.failures.set(`LIST ${pathOfAll(WIDGETS)}`, {
      kind: 'server-error',
      status: 500,
      message: '500: conversion failed',
    });
    const ran = await force(cluster, ONE, { settleMs: 0 });
    expect(cluster.mutations).toEqual([]);
    expect(results(ran)[0]).toContain('500: conversion failed');
  });
});

describe('overdue pods', () => {
  const action: PodAction = {
    step: 'overdue-pods',
    node: 'node-1',
    nodeState: 'does not exist',
    count: 1,
    examples: ['web'],
  };
  const plan = planOf([action], { mode: 'objects' });
  const overdue = { deletionTimestamp: '2026-01-01T00:01:00Z' };
  const onNode = { spec: { nodeName: 'node-1' } };

  test('are deleted with grace period 0, pinned to what was read', async () => {
    const cluster = clusterWith();
    cluster.object(PODS, 'web', overdue, onNode);
    const version = stringAt(cluster.read(pathOf(PODS, 'web')), 'metadata', 'resourceVersion');
    const ran = await force(cluster, plan);
    expect(cluster.mutations).toEqual([`DELETE ${pathOf(PODS, 'web')}`]);
    expect(cluster.bodies[0]).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
      preconditions: { uid: 'uid-web', resourceVersion: version },
    });
    expect(results(ran)[0]).toMatch(
      /^pods\/web: deleted with grace period 0; may be left behind: containers that still run on node node-1/,
    );
  });

  test('are left alone once their node is back', async () => {
    const cluster = clusterWith();
    cluster.object(PODS, 'web', overdue, onNode);
    cluster.put('/api/v1/nodes/node-1', {
      metadata: { name: 'node-1' },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    const ran = await force(cluster, plan, { settleMs: 0 });
    expect(cluster.mutations).toEqual([]);
    expect(results(ran)[0]).toContain('the node is Ready');
  });

  test.each([
    ['its grace period still runs', { deletionTimestamp: '2026-01-01T00:09:58Z' }, onNode],
    ['it is on another node', overdue, { spec: { nodeName: 'node-2' } }],
    ['nobody asked for it', {}, onNode],
  ])('a pod is left alone while %s', async (_, metadata, rest) => {
    const cluster = clusterWith();
    cluster.object(PODS, 'web', metadata, rest);
    await force(cluster, plan, { settleMs: 0 });
    expect(cluster.mutations).toEqual([]);
  });

  test('a pod that finalizers still hold is not called gone', async () => {
    const cluster = clusterWith();
    cluster.object(PODS, 'web', { ...overdue, finalizers: ['other.io/x'] }, onNode);
    const ran = await force(cluster, plan, { settleMs: 0 });
    expect(results(ran)).toEqual([
      'pods/web: deleted with grace period 0; still there, held by other.io/x',
    ]);
  });

  test('a dry run says so in the body, where the API server looks for it', async () => {
    const cluster = clusterWith();
    cluster.object(PODS, 'web', overdue, onNode);
    const sent: unknown[] = [];
    const original = cluster.send.bind(cluster);
    cluster.send = async (request) => {
      if (request.dryRun) sent.push(request.body);
      return original(request);
    };
    await force(cluster, { ...plan, mode: 'plan' });
    expect(sent).toMatchObject([{ dryRun: ['All'] }]);
    expect(cluster.mutations).toEqual([]);
  });
});
