import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { foreignKubeconfig, onPlane, wantedVersion } from './clusters.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { type Identity, identitySubjects } from './identities.ts';
import { configMap, grant, RBAC } from './objects.ts';
import { dropBundle, type GateRun, runGate, theBundle } from './run-gate.ts';
import { World } from './world.ts';

/** What only real servers can show: a restart, a store that stalls, and rights as RBAC grants them. */

const HOLD = 'example.com/cleanup';
const LIMIT_MS = 200_000;

const title = 'the shipped bundle and a control plane of its own';
describe.skipIf(foreignKubeconfig() !== undefined)(title, () => {
  let plane: ControlPlane;

  beforeAll(async () => {
    await theBundle();
    plane = await startControlPlane({ version: wantedVersion() });
  });
  afterAll(async () => {
    await plane?.stop();
    await dropBundle();
  });

  /** A namespace that a finalizer holds. */
  async function held(base: string): Promise<World> {
    const world = new World({ ...onPlane(plane), namespace: base });
    await world.createNamespace();
    await world.create(configMap(world.namespace, 'precious', { finalizers: [HOLD] }));
    await world.deleteNamespace();
    await world.terminating(configMapOf(world));
    return world;
  }

  function configMapOf({ namespace }: World) {
    return { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: 'precious' };
  }

  async function release(world: World): Promise<void> {
    await plane.admin.patch(configMapOf(world), { metadata: { finalizers: null } });
  }

  function only({ report }: GateRun) {
    const namespace = report?.namespaces[0];
    if (namespace === undefined) throw new Error('there is no report');
    return namespace;
  }

  /** Gives the guest, who has no rights at all, just these. */
  async function grantGuest(name: string, rules: JsonObject[]): Promise<void> {
    for (const object of grant({ name }, identitySubjects('teardown-guest'), rules)) {
      await plane.admin.create(object);
    }
  }

  async function revoke(name: string): Promise<void> {
    for (const kind of ['ClusterRoleBinding', 'ClusterRole']) {
      await plane.admin.delete({ apiVersion: `${RBAC}/v1`, kind, name });
    }
  }

  /** The right to see this one namespace, and nothing else. */
  function getOnly({ namespace }: World): JsonObject {
    return {
      apiGroups: [''],
      resources: ['namespaces'],
      resourceNames: [namespace],
      verbs: ['get'],
    };
  }

  /** The gate as one of the identities; `meanwhile` begins when it waits. */
  async function gateOn(
    { namespace }: World,
    identity: Identity,
    timeout: string,
    meanwhile: () => unknown = () => undefined,
  ): Promise<GateRun> {
    await plane.bind(identity);
    const inputs = { namespace, timeout, kubeconfig: plane.kubeconfig(identity) };
    return runGate(inputs, {
      limitMs: LIMIT_MS,
      meanwhile: async (gate) => {
        await gate.says(/waiting up to/);
        await meanwhile();
      },
    });
  }

  test('a restart of the API server does not end the wait, and is not taken for the end', {
    tags: 'core',
  }, async () => {
    const world = await held('restart');

    const run = await gateOn(world, 'teardown-reader', '90s', async () => {
      await plane.restartApiServer();
      await release(world);
    });

    expect(run.outputs['outcome'], run.stdout).toBe('deleted');
    expect(run.exitCode).toBe(0);
    expect(run.stdout).toContain('which does not mean that it was deleted');
  });

  test('"get" on this one namespace: says what it could not read, and the rules that would show it', async () => {
    const world = await held('one-hidden');
    await grantGuest('one-hidden', [getOnly(world)]);

    const run = await gateOn(world, 'teardown-guest', '8s');
    await revoke('one-hidden');

    expect(run.outputs['outcome'], run.stdout).toBe('inconclusive');
    expect(run.exitCode).toBe(1);
    const unread = only(run).notInspected.map(({ what }) => what);
    expect(unread).toEqual(expect.arrayContaining(['configmaps', 'secrets', 'pods']));
    for (const text of [run.stdout, run.summary]) {
      expect(text).toMatch(
        /apiGroups: \[''\], resources: \[[^\]]*\bconfigmaps\b[^\]]*\], verbs: \[list\]/,
      );
    }
  });

  // Last: kube-controller-manager loses its Lease over it, and ends.
  test('a store that stalls is "could not read", and not "deleted"', async () => {
    const world = await held('stalled');
    const etcd = pidOf(`etcd .*${plane.dataDir}`);
    let run: GateRun;
    try {
      run = await gateOn(world, 'teardown-reader', '25s', () => process.kill(etcd, 'SIGSTOP'));
    } finally {
      process.kill(etcd, 'SIGCONT');
    }

    expect(['stuck', 'inconclusive'], run.stdout).toContain(run.outputs['outcome']);
    expect(run.exitCode).toBe(1);
    expect(only(run).notInspected.length).toBeGreaterThan(0);
    expect(run.elapsedMs).toBeLessThan(25_000 + 75_000);
  });
});

function pidOf(pattern: string): number {
  return Number(execFileSync('pgrep', ['-f', pattern], { encoding: 'utf8' }).trim().split('\n')[0]);
}
