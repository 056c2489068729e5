import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AuditedRequest, requestsOf } from '../../bench/audit-count.ts';
import { inParallel, range } from '../../bench/situations.ts';
import type { JsonObject } from '../../src/base/json.ts';
import type { ReportNamespace } from '../../src/report/report-json.ts';
import { foreignKubeconfig, onPlane, wantedVersion } from './clusters.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import type { Identity } from './identities.ts';
import {
  accountSubject,
  apiService,
  apiServiceRef,
  configMap,
  customObject,
  customType,
  deployment,
  grant,
  pod,
  serviceAccount,
  volume,
  volumeClaim,
} from './objects.ts';
import { dropBundle, type GateRun, runGate, theBundle } from './run-gate.ts';
import { waitUntil } from './wait-until.ts';
import { conditionsOf, namespaceRef, World } from './world.ts';

/**
 * Many namespaces that hang, from one dead APIService and three forgotten operators: what each of them is
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
    'scaled-down': (name) => ({ objects: [held(name, 'Gadget', 'only')] }),
    'never-deployed': (name) => ({ objects: [held(name, 'Gear', 'only')] }),
    'behind-webhook': (name) => ({
      labels: { guarded: 'yes' },
      objects: [held(name, 'Gadget', 'guarded')],
    }),
    'behind-policy': (name) => ({
      labels: { ruled: 'yes' },
      objects: [held(name, 'Gadget', 'ruled')],
    }),
    several: (name) => ({
      labels: { guarded: 'yes', ruled: 'yes' },
      objects: [
        configMap(name, 'one', { finalizers: ['example.com/one', 'example.com/two'] }),
        held(name, 'Widget', 'some'),
        held(name, 'Gear', 'some'),
        pod(name, 'pinned', { metadata: { finalizers: [HOLD] } }),
      ],
    }),
    volume: (name) => ({
      objects: [
        volume(`disk-of-${name}`, { namespace: name, name: 'data' }, {}, { finalizers: [HOLD] }),
        volumeClaim(name, 'data', { volumeName: `disk-of-${name}` }, { finalizers: [HOLD] }),
      ],
    }),
    many: (name) => ({
      objects: range(230).map((index) =>
        held(name, 'Widget', `w-${String(index).padStart(3, '0')}`),
      ),
    }),
    pods: (name) => ({
      objects: range(3).map((index) =>
        pod(name, `web-${index}`, { metadata: { finalizers: [HOLD] } }),
      ),
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
    world = new World({ ...onPlane(plane), namespace: 'none', alone: true });
    for (const kind of ['Widget', 'Gadget', 'Gear']) {
      await world.createType(customType({ group: GROUP, kind }));
    }
    await installOperators();
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
    const [disk] = objects.filter(({ kind }) => kind === 'PersistentVolume');
    if (disk !== undefined) {
      await plane.admin.delete({
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        name: `disk-of-${name}`,
      });
    }
    await plane.admin.delete(namespaceRef(name));
  }

  /** One runs nowhere any more, one is scaled to zero, one has never had more than its rights. */
  async function installOperators(): Promise<void> {
    await world.createNamespace('operators');
    for (const kind of ['gadget', 'gear']) {
      const name = `${kind}-operator`;
      await world.create(serviceAccount('operators', name));
      const rules = [
        { apiGroups: [GROUP], resources: [`${kind}s`, `${kind}s/status`], verbs: ['*'] },
      ];
      await world.createAll(grant({ name }, [accountSubject('operators', name)], rules));
    }
    await world.create(
      deployment('operators', 'gadget-operator', {
        replicas: 0,
        serviceAccountName: 'gadget-operator',
      }),
    );
  }

  /** A webhook that nobody answers for, and a policy that says no; each for namespaces with its label. */
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
    await world.create({
      apiVersion: POLICY,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'ruled' },
      spec: {
        matchConstraints: { resourceRules: [gadgets] },
        validations: [
          { expression: 'false', messageExpression: "'kept in ' + object.metadata.namespace" },
        ],
      },
    });
    await world.create({
      apiVersion: POLICY,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: 'ruled' },
      spec: {
        policyName: 'ruled',
        validationActions: ['Deny'],
        matchResources: { namespaceSelector: { matchLabels: { ruled: 'yes' } } },
      },
    });
  }

  async function gate(
    inputs: Record<string, string>,
    identity: Identity = 'teardown-force',
    meanwhile?: () => Promise<unknown>,
  ): Promise<GateRun & { requests: AuditedRequest[] }> {
    const before = (await auditLines()).length;
    await plane.bind(identity);
    const run = await runGate(
      { timeout: '0s', kubeconfig: plane.kubeconfig(identity), ...inputs },
      {
        limitMs: LIMIT_MS,
        ...(meanwhile === undefined
          ? {}
          : {
              meanwhile: async (running) => {
                await running.says(/waiting up to/);
                await meanwhile();
              },
            }),
      },
    );
    // A watch is written down when it ends, which may be after the end of its client.
    await new Promise((resolve) => setTimeout(resolve, 500));
    return { ...run, requests: requestsOf((await auditLines()).slice(before), identity) };
  }

  async function auditLines(): Promise<string[]> {
    return (await readFile(plane.auditLog, 'utf8')).split('\n');
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
    const together = await gate({ namespace: [...ways, ...fleet].join(',') });
    for (const name of [...ways, 'fleet-000', 'fleet-001']) {
      const alone = await gate({ namespace: name });
      expect(told(together, name), name).toEqual(told(alone, name));
    }
  });
});
