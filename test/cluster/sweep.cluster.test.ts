import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inParallel, range } from '../../bench/situations.ts';
import type { JsonObject } from '../../src/base/json.ts';
import type { ReportNamespace } from '../../src/report/report-json.ts';
import { foreignKubeconfig, onPlane, wantedVersion } from './clusters.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { apiService, apiServiceRef, configMap, customObject, customType, pod } from './objects.ts';
import { dropBundle, type GateRun, runGate, theBundle } from './run-gate.ts';
import { waitUntil } from './wait-until.ts';
import { conditionsOf, namespaceRef, World } from './world.ts';

/**
 * Many namespaces that hang, from one dead APIService, a dead webhook and forgotten operators: what each of them is
 * told has to be what a run for it alone tells, at little more than the price of one.
 */

const POLICY = 'admissionregistration.k8s.io/v1';
const GROUP = 'fleet.example.com';
const DEAD = `metrics.${GROUP}`;
const HOLD = 'example.com/hold';
const LIMIT_MS = 200_000;
/** Every one of them hangs in another way. */
const WAYS: Record<string, (namespace: string) => { labels?: JsonObject; objects: JsonObject[] }> =
  {
    'own-entry': () => ({ objects: [] }),
    unknown: (name) => ({ objects: [configMap(name, 'precious', { finalizers: [HOLD] })] }),
    missing: (name) => ({ objects: [held(name, 'Widget', 'a'), held(name, 'Widget', 'b')] }),
    'behind-webhook': (name) => ({
      labels: { guarded: 'yes' },
      objects: [held(name, 'Gadget', 'guarded')],
    }),
    several: (name) => ({
      labels: { guarded: 'yes' },
      objects: [
        configMap(name, 'one', { finalizers: ['example.com/one', 'example.com/two'] }),
        held(name, 'Widget', 'some'),
        held(name, 'Gear', 'some'),
        pod(name, 'pinned', { metadata: { finalizers: [HOLD] } }),
      ],
    }),
  };

function held(namespace: string, kind: string, name: string): JsonObject {
  const finalizers = [`${kind.toLowerCase()}s.${GROUP}/cleanup`];
  return customObject(`${GROUP}/v1`, kind, namespace, name, { finalizers });
}

const title = 'the shipped bundle and many namespaces';
describe.skipIf(foreignKubeconfig() !== undefined)(title, () => {
  let plane: ControlPlane;
  let world: World;
  const ways = Object.keys(WAYS);
  const fleet = range(16).map((index) => `fleet-${String(index).padStart(3, '0')}`);

  beforeAll(async () => {
    await theBundle();
    plane = await startControlPlane({ version: wantedVersion() });
    world = new World({ ...onPlane(plane), namespace: 'none' });
    for (const kind of ['Widget', 'Gadget', 'Gear']) {
      await world.createType(customType({ group: GROUP, kind }));
    }
    await world.create(apiService(DEAD, 'v1beta1', { namespace: 'default', name: 'gone' }));
    await plane.admin.waitFor(apiServiceRef(DEAD, 'v1beta1'), 'is not available', (registration) =>
      JSON.stringify(registration?.['status'] ?? '').includes('"False"'),
    );
    // Half of the fleet hangs by the operators that are gone, all of it by the dead API group.
    await inParallel(
      fleet,
      (name) => hang(name, index(name) % 2 === 0 ? 'missing' : 'own-entry'),
      8,
    );
    await inParallel(ways, (way) => hang(way, way), 4);
    await guard();
    await waitUntil(
      'all of them to hang',
      async () => {
        const hanging = (await plane.admin.list('v1', 'Namespace')).filter((namespace) =>
          conditionsOf(namespace).some(
            ({ type, status }) => type === 'NamespaceDeletionDiscoveryFailure' && status === 'True',
          ),
        );
        return hanging.length === ways.length + fleet.length;
      },
      { everyMs: 2_000 },
    );
    // Its passes every few seconds would change what two runs are told about the same hang.
    await plane.controllerManager.stop();
    await plane.controllerManager.start(['*', '-namespace-controller']);
  });
  afterAll(async () => {
    await plane?.stop();
    await dropBundle();
  });

  function index(name: string): number {
    return Number(name.split('-')[1]);
  }

  async function hang(name: string, way: string): Promise<void> {
    const { labels = {}, objects } = WAYS[way]?.(name) ?? { objects: [] };
    const all = { ...labels, fleet: name.startsWith('fleet-') ? 'yes' : 'no' };
    const finalizers = way === 'own-entry' ? [HOLD] : [];
    const metadata = { name, labels: all, finalizers };
    await plane.admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata });
    await inParallel(objects, (object) => plane.admin.create(object), 16);
    await plane.admin.delete(namespaceRef(name));
  }

  /** A webhook that nobody answers for, for namespaces with its label. */
  async function guard(): Promise<void> {
    const gadgets = {
      operations: ['UPDATE'],
      apiGroups: [GROUP],
      apiVersions: ['*'],
      resources: ['gadgets'],
    };
    await world.create({
      apiVersion: POLICY,
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'guard' },
      webhooks: [
        {
          name: 'guard.example.com',
          rules: [gadgets],
          namespaceSelector: { matchLabels: { guarded: 'yes' } },
          clientConfig: { service: { namespace: 'default', name: 'gone' } },
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
        },
      ],
    });
  }

  async function gate(namespace: string): Promise<GateRun> {
    await plane.bind('teardown-reader');
    const kubeconfig = plane.kubeconfig('teardown-reader');
    return runGate({ namespace, timeout: '0s', kubeconfig }, { limitMs: LIMIT_MS });
  }

  /** Everything that is said about a namespace, without times. */
  function told(run: GateRun, name: string): unknown {
    const found = run.report?.namespaces.find((namespace) => namespace.name === name);
    if (found === undefined)
      throw new Error(`nothing about ${name}:\n${run.stdout}\n${run.stderr}`);
    const { timeline, elapsedSeconds, notInspected, ...rest } = found;
    const sorted = notInspected.map(({ what, reason }) => `${what}: ${reason}`).sort();
    const same = { ...rest, notInspected: sorted } satisfies Partial<
      Record<keyof ReportNamespace, unknown>
    >;
    // Leases are renewed in between.
    return JSON.parse(JSON.stringify(same).replace(/(renewed at )[0-9T:.-]+Z/g, '$1…'));
  }

  test('each has the report of a run for it alone', { tags: 'core' }, async () => {
    const together = await gate([...ways, ...fleet].join(','));
    for (const name of [...ways, 'fleet-000', 'fleet-001']) {
      const alone = await gate(name);
      expect(told(together, name), name).toEqual(told(alone, name));
    }
  });
});
