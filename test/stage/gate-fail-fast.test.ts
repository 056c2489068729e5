import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { examinationTimes } from '../../src/gate/examine.ts';
import { CONFIG_MAPS, type FakeCluster, WIDGETS } from './fake-cluster.ts';
import { causes, DEMO, events, type Stage, stage } from './gate-run.ts';

const FAST = { 'fail-fast': 'true', timeout: '30m' };
const SECOND = 1_000;
const CLEANUP = 'widgets.example.com/cleanup';

/** An object whose operator is scaled to zero: no controller will remove the finalizer. */
function abandoned(): Stage {
  const made = stage();
  made.cluster.namespace(DEMO);
  written(made, 'db');
  install(made.cluster, {}, 0);
  made.cluster.put('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com', {
    metadata: { name: 'widgets.example.com' },
    spec: { group: 'example.com', names: { kind: 'Widget' } },
  });
  return made;
}

/** An object whose finalizer the operator wrote. */
function written({ cluster, clock }: Stage, name: string): void {
  const fieldsV1 = { 'f:metadata': { 'f:finalizers': { [`v:"${CLEANUP}"`]: {} } } };
  cluster.object(WIDGETS, DEMO, name, {
    deletionTimestamp: new Date(clock.start - 50_000).toISOString(),
    finalizers: [CLEANUP],
    managedFields: [{ manager: 'widget-operator', operation: 'Update', fieldsV1 }],
  });
}

/** Its operator, with rights; ready or not. */
function install(cluster: FakeCluster, status: JsonObject, replicas = 1): void {
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const metadata = (name: string) => ({ metadata: { name, namespace: 'ops', uid: `uid-${name}` } });
  cluster.put('/apis/apps/v1/namespaces/ops/deployments/widget-operator', {
    ...metadata('widget-operator'),
    spec: { replicas, template: { spec: { serviceAccountName: 'operator' } } },
    status,
  });
  cluster.put(`${rbac}/clusterroles/operator`, {
    metadata: { name: 'operator' },
    rules: [
      {
        apiGroups: ['example.com'],
        resources: ['widgets', 'widgets/finalizers'],
        verbs: ['list', 'watch', 'update'],
      },
    ],
  });
  cluster.put(`${rbac}/clusterrolebindings/operator`, {
    metadata: { name: 'operator' },
    roleRef: { kind: 'ClusterRole', name: 'operator' },
    subjects: [{ kind: 'ServiceAccount', namespace: 'ops', name: 'operator' }],
  });
}

describe('fail-fast', () => {
  test('ends the wait when a permanent cause has not changed for 90 s, and not before', async () => {
    const { runOne, lines } = abandoned();
    const result = await runOne(FAST);
    expect(result).toMatchObject({ outcome: 'stuck', verdict: 'fail' });
    expect(causes(result)).toEqual(['owner-scaled-to-zero']);
    expect(result.elapsedMs).toBeGreaterThanOrEqual(90 * SECOND);
    expect(result.elapsedMs).toBeLessThanOrEqual(150 * SECOND);
    expect(lines.join('\n')).toContain('proven permanent');
    expect(events(result).at(-1)).toBe('still there: stuck');
  });

  test('does nothing unless it is set', async () => {
    const { runOne } = abandoned();
    const { elapsedMs } = await runOne({ ...FAST, 'fail-fast': 'false' });
    expect(elapsedMs).toBe(30 * 60 * SECOND);
  });

  // A rolling upgrade: one of the API servers does not know a built-in group version yet.
  test('does not end the wait while an API group cannot be discovered: it may be an upgrade', async () => {
    const { clock, cluster, runOne, lines } = stage(DEMO);
    cluster.failedGroups = [{ group: 'resource.k8s.io', version: 'v1', reason: '404' }];
    clock.at(400 * SECOND, () => {
      cluster.failedGroups = [];
      cluster.remove(DEMO);
    });
    const result = await runOne(FAST);
    expect(result).toMatchObject({ outcome: 'deleted', elapsedMs: 400 * SECOND });
    expect(lines.join('\n')).toContain('cannot be discovered');
    expect(lines.join('\n')).not.toContain('proven permanent');
  });

  test('does not end the wait if the cause disappears within 90 s', async () => {
    const { clock, cluster, runOne } = abandoned();
    clock.at(80 * SECOND, () => cluster.take(WIDGETS, DEMO, 'db'));
    clock.at(145 * SECOND, () => cluster.remove(DEMO)); // the controller looks again within a minute
    expect(await runOne(FAST)).toMatchObject({ outcome: 'deleted', elapsedMs: 145 * SECOND });
  });

  test('counts from the last change of the cause', async () => {
    const { clock, cluster, runOne } = abandoned();
    clock.at(100 * SECOND, () => cluster.held(CONFIG_MAPS, DEMO, 'late', 'some.random/finalizer'));
    const result = await runOne(FAST);
    expect(result.outcome).toBe('stuck');
    expect(result.elapsedMs).toBeGreaterThanOrEqual(190 * SECOND);
    expect(result.elapsedMs).toBeLessThanOrEqual(250 * SECOND);
  });
});

describe('examinationTimes', () => {
  test.each([
    { timeoutMs: 0, failFast: false, times: [] },
    { timeoutMs: 0, failFast: true, times: [] },
    { timeoutMs: 9_000, failFast: false, times: [3_000] },
    { timeoutMs: 45_000, failFast: false, times: [15_000] },
    { timeoutMs: 60_000, failFast: false, times: [30_000] },
    { timeoutMs: 300_000, failFast: false, times: [270_000] },
    { timeoutMs: 60_000, failFast: true, times: [30_000] },
    { timeoutMs: 120_000, failFast: true, times: [30_000, 60_000, 90_000] },
    { timeoutMs: 125_000, failFast: true, times: [30_000, 60_000, 90_000, 95_000] },
  ])('timeout $timeoutMs ms, fail-fast $failFast: $times', ({ timeoutMs, failFast, times }) => {
    expect(examinationTimes({ timeoutMs, failFast }, 0)).toEqual(times);
    expect(examinationTimes({ timeoutMs, failFast }, 7).map((at) => at - 7)).toEqual(times);
  });
});
