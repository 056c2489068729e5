import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { createWebhook } from './admission.ts';
import { foreignKubeconfig, onPlane, wantedVersion } from './clusters.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { apiService, apiServiceRef, configMap, customObject, customType, pod } from './objects.ts';
import { dropBundle, type GateRun, runGate, theBundle } from './run-gate.ts';
import { LIMIT_MS } from './run-scenario.ts';
import { DISCOVERY, statusSays } from './scenarios/links.ts';
import { World } from './world.ts';

/**
 * Many namespaces that hang, from one dead APIService, a dead webhook and forgotten operators: what each of them is
 * told has to be what a run for it alone tells.
 */

const GROUP = 'fleet.example.com';
const DEAD = `metrics.${GROUP}`;
const HOLD = 'example.com/hold';
/** What is in each, by its name. */
const NAMESPACES: Record<string, (namespace: string) => JsonObject[]> = {
  'own-entry': () => [],
  unknown: (name) => [configMap(name, 'precious', { finalizers: [HOLD] })],
  missing: (name) => [held(name, 'Widget', 'a'), held(name, 'Widget', 'b')],
  guarded: (name) => [held(name, 'Gadget', 'guarded')],
  several: (name) => [
    configMap(name, 'one', { finalizers: ['example.com/one', 'example.com/two'] }),
    held(name, 'Widget', 'some'),
    held(name, 'Gear', 'some'),
    pod(name, 'pinned', { metadata: { finalizers: [HOLD] } }),
  ],
};
for (let index = 0; index < 16; index++) {
  NAMESPACES[`fleet-${index}`] = (name) => (index % 2 === 0 ? [held(name, 'Widget', 'a')] : []);
}

function held(namespace: string, kind: string, name: string): JsonObject {
  const finalizers = [`${kind.toLowerCase()}s.${GROUP}/cleanup`];
  return customObject(`${GROUP}/v1`, kind, namespace, name, { finalizers });
}

const title = 'the shipped bundle and many namespaces';
describe.skipIf(foreignKubeconfig() !== undefined)(title, () => {
  let plane: ControlPlane;

  beforeAll(async () => {
    await theBundle();
    plane = await startControlPlane({ version: wantedVersion() });
    const worlds = new Map(
      Object.keys(NAMESPACES).map((name) => [
        name,
        new World({ ...onPlane(plane), namespace: name }),
      ]),
    );
    const guarded = worlds.get('guarded') as World;
    for (const kind of ['Widget', 'Gadget', 'Gear']) {
      await guarded.createType(customType({ group: GROUP, kind }));
    }
    await guarded.create(apiService(DEAD, 'v1beta1', { namespace: 'default', name: 'gone' }));
    await statusSays(guarded, apiServiceRef(DEAD, 'v1beta1'), 'is not available', '"False"');
    for (const [name, world] of worlds) {
      const objects = NAMESPACES[name]?.(name) ?? [];
      await world.createNamespace(name, objects.length === 0 ? { finalizers: [HOLD] } : {});
      await world.createAll(objects);
      await world.deleteNamespace();
    }
    // Nobody answers for it.
    const clientConfig = { service: { namespace: 'default', name: 'gone' } };
    await createWebhook(guarded, {
      ...{ operations: ['UPDATE'], apiGroup: GROUP, resource: 'gadgets' },
      clientConfig,
    });
    for (const world of worlds.values()) await world.settled({ [DISCOVERY]: ['True', /./] });
    // Their passes every few seconds would change what two runs are told about the same hang.
    await plane.controllerManager.stop();
    await plane.controllerManager.start(['*', '-namespace-controller', '-podgc']);
  });
  afterAll(async () => {
    await plane?.stop();
    await dropBundle();
  });

  function gate(...names: string[]): Promise<GateRun> {
    const kubeconfig = plane.kubeconfig('teardown-reader');
    const inputs = { namespace: names.join(), timeout: '0s', kubeconfig };
    return runGate(inputs, { limitMs: LIMIT_MS });
  }

  /** Everything that is said about a namespace, without times. */
  function told({ report, stdout, stderr }: GateRun, name: string): unknown {
    const found = report?.namespaces.find((namespace) => namespace.name === name);
    if (found === undefined) throw new Error(`nothing about ${name}:\n${stdout}\n${stderr}`);
    const { timeline, elapsedSeconds, ...rest } = found;
    const notInspected = found.notInspected.map(({ what, reason }) => `${what}: ${reason}`).sort();
    // Leases are renewed in between.
    const text = JSON.stringify({ ...rest, notInspected });
    return JSON.parse(text.replace(/(renewed at )[0-9T:.-]+Z/g, '$1…'));
  }

  test('each has the report of a run for it alone', { tags: 'core' }, async () => {
    const names = Object.keys(NAMESPACES);
    const together = await gate(...names);
    for (const name of names.slice(0, 7)) {
      expect(told(together, name), name).toEqual(told(await gate(name), name));
    }
  });
});
