import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { foreignKubeconfig, onPlane, wantedVersion } from './clusters.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { configMap } from './objects.ts';
import { dropBundle, type GateRun, runGate, theBundle } from './run-gate.ts';
import { configMapRef } from './scenarios/links.ts';
import { World } from './world.ts';

/** What only real servers can show: a restart, and a store that stalls. */

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

  const configMapOf = ({ namespace }: World) => configMapRef(namespace, 'precious');

  async function release(world: World): Promise<void> {
    await plane.admin.patch(configMapOf(world), { metadata: { finalizers: null } });
  }

  function only({ report }: GateRun) {
    const namespace = report?.namespaces[0];
    if (namespace === undefined) throw new Error('there is no report');
    return namespace;
  }

  /** `meanwhile` begins when it waits. */
  async function gateOn(
    { namespace }: World,
    timeout: string,
    meanwhile: () => unknown = () => undefined,
  ): Promise<GateRun> {
    const inputs = { namespace, timeout, kubeconfig: plane.kubeconfig('teardown-reader') };
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

    const run = await gateOn(world, '90s', async () => {
      await plane.restartApiServer();
      await release(world);
    });

    expect(run.outputs['outcome'], run.stdout).toBe('deleted');
    expect(run.exitCode).toBe(0);
    expect(run.stdout).toContain('which does not mean that it was deleted');
  });

  // Last: kube-controller-manager loses its Lease over it, and ends.
  test('a store that stalls is "could not read", and not "deleted"', async () => {
    const world = await held('stalled');
    const etcd = pidOf(`etcd .*${plane.dataDir}`);
    let run: GateRun;
    try {
      run = await gateOn(world, '25s', () => process.kill(etcd, 'SIGSTOP'));
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
