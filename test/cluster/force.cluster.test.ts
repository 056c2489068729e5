import { AsyncLocalStorage } from 'node:async_hooks';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, aroundEach, beforeEach, describe, expect, test } from 'vitest';
import { type JsonObject, stringsAt } from '../../src/base/json.ts';
import type { InputName } from '../../src/inputs.ts';
import type { KubernetesApi } from '../../src/kubernetes/api.ts';
import type { NamespaceResult } from '../../src/model/result.ts';
import { mutationsBy, writesSince } from './audit.ts';
import type { KubeObject, Ref } from './client.ts';
import { type Cluster, Clusters, foreignKubeconfig, startLone } from './clusters.ts';
import type { ControlPlane } from './control-plane.ts';
import {
  bind,
  connectAs,
  createAccount,
  type ForceOptions,
  force,
  manifest,
  prepareIdentities,
  storedIn,
  userOf,
} from './force-world.ts';
import { configMap, customObject, customType, deployment, pod, RBAC } from './objects.ts';
import { addSpecFinalizer, lostKubernetes } from './scenarios/lifecycle.ts';
import { configMapRef, podRef, ref } from './scenarios/links.ts';
import { settledOverdue } from './scenarios/pods.ts';
import { waitUntil } from './wait-until.ts';
import { World } from './world.ts';

/** Each mode and each kind of refusal once: what test/stage shows on a fake is true of a real API server. */

const HOLD = 'example.com/cleanup';
const KEEP = 'example.com/keep';
const WIDGETS = 'ledger.example.com';
const core = { tags: 'core' };

/** A control plane, and the gate's connections to it by their rights. */
interface Bed {
  cluster: Cluster;
  apis: Map<string, Promise<KubernetesApi>>;
}

const title = 'force-finalize on a real API server, with the shipped RBAC manifests';
describe.skipIf(foreignKubeconfig() !== undefined).concurrent(title, () => {
  const clusters = new Clusters(() =>
    startLone(
      // Or the pods of a node that does not exist would be gone before the gate looks.
      { controllers: ['*', '-pod-garbage-collector-controller'] },
      prepareIdentities,
    ),
  );
  afterAll(() => clusters.stop());

  /** What the test that runs has for itself. */
  const beds = new AsyncLocalStorage<Bed>();
  aroundEach((runTest) =>
    clusters.use(async (cluster) => {
      const apis: Bed['apis'] = new Map();
      try {
        await beds.run({ cluster, apis }, runTest);
      } finally {
        for (const api of apis.values()) await (await api).close();
      }
    }),
  );
  const bed = (): Bed => beds.getStore() as Bed;
  const thePlane = (): ControlPlane => bed().cluster.plane as ControlPlane;

  function as(rights: string): Promise<KubernetesApi> {
    const { apis } = bed();
    const known = apis.get(rights) ?? connectAs(thePlane(), rights);
    apis.set(rights, known);
    return known;
  }

  let count = 0;
  /** With a name of its own: the audit log of a control plane has all that was on it before. */
  const world = (base = 'preview'): World =>
    new World({ ...bed().cluster, namespace: `${base}-${++count}` });

  /** A terminating namespace in which every ConfigMap is held. */
  async function held(
    names: readonly string[],
    finalizers: string[] = [HOLD],
    metadata: JsonObject = {},
    made = world(),
  ): Promise<World> {
    await made.createNamespace(undefined, metadata);
    const { namespace } = made;
    for (const name of names) await made.create(configMap(namespace, name, { finalizers }));
    await made.deleteNamespace();
    for (const name of names) await made.terminating(configMapRef(namespace, name));
    return made;
  }

  async function run(
    rights: string,
    { namespace }: World,
    inputs: Partial<Record<InputName, string>> = {},
    options: ForceOptions = {},
  ): Promise<Named> {
    const given = { 'force-finalizers': HOLD, ...inputs };
    return named(await force(await as(rights), namespace, given, options));
  }

  function writes(rights: string, { namespace }: World): Promise<string[]> {
    return mutationsBy(thePlane().auditLog, userOf(rights), { of: namespace });
  }

  const finalizersOf = async (of: Ref, ...path: string[]): Promise<string[]> =>
    stringsAt(await bed().cluster.client.get(of), ...path, 'finalizers');

  test('mode plan says what mode objects does, and writes nothing', core, async () => {
    const made = await held(['a']);
    const planned = await run('objects', made, { 'force-finalize': 'plan' });
    expect(await writes('objects', made)).toEqual([]);
    expect(planned.outcome).toBe('stuck');
    const it = { target: 'configmaps/a', finalizer: HOLD };
    expect(planned.record.actions[0]).toEqual({ ...it, result: 'would be done' });
    const real = await run('objects', made);
    expect(real.record.actions).toEqual([{ ...it, result: 'removed' }]);
    expect(real.outcome).toBe('forced');
  });

  test(
    'only the allowed one of two finalizers is removed, also if their order changes',
    core,
    async () => {
      const made = await held(['a'], [KEEP, HOLD]);
      const it = configMapRef(made.namespace, 'a');
      const reorder = { metadata: { finalizers: [HOLD, KEEP] } };
      const { outcome } = await run(
        ...(['objects', made, {}] as const),
        before(() => made.client.patch(it, reorder)),
      );
      expect(outcome).toBe('stuck');
      expect(await finalizersOf(it, 'metadata')).toEqual([KEEP]);
      expect(await writes('objects', made)).toEqual(['patch configmaps/a', 'patch configmaps/a']);
    },
  );

  test(
    'overdue pods of a node that does not exist are deleted with grace period 0',
    core,
    async () => {
      const made = world();
      const lost = podRef(made.namespace, 'lost');
      await made.createNamespace();
      await made.create(pod(made.namespace, 'lost', { nodeName: 'no-such-node', graceSeconds: 1 }));
      await made.deleteNamespace();
      await settledOverdue(made);
      await waitUntil('the plan to name it', async () => {
        const planned = await run('objects', made, { ...PODS, 'force-finalize': 'plan' });
        return planned.record.actions[0]?.target === 'pods/lost';
      });
      const refused = await run('objects', made);
      expect(refused.refusals).toMatch(/pods\/lost: .*force-pods: true/);
      expect(await made.client.find(lost)).toBeDefined();
      const { outcome, record } = await run('objects', made, PODS);
      expect(outcome).toBe('forced');
      expect(record.actions[0]?.result).toMatch(/deleted with grace period 0; may be left behind/);
      expect(await writes('objects', made)).toEqual(['delete pods/lost']);
    },
  );

  test('a terminal run that is killed has announced every write that it made', async () => {
    const names = Array.from({ length: 300 }, (_, index) => `held-${index}`);
    const made = await held(names);
    await as('objects');
    const child = spawn(process.execPath, [
      ...[join(import.meta.dirname, '../../src/index.ts'), made.namespace, '--now'],
      ...['--kubeconfig', join(thePlane().dataDir, 'gate-objects.kubeconfig')],
      ...['--force-finalize', 'objects', '--force-namespaces', 'preview-*'],
      ...['--force-finalizers', HOLD],
    ]);
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log += text;
      if (log.includes('configmaps/held-150 ')) child.kill('SIGKILL');
    });
    await once(child, 'close');
    const written = await writes('objects', made);
    expect(written.length).toBeGreaterThan(0);
    expect(written.length).toBeLessThan(names.length);
    for (const one of written) {
      const name = one.replace('patch configmaps/', '');
      expect(log).toContain(`removing ${HOLD} from configmaps/${name} (UID `);
    }
  });

  test('a protected namespace: nothing is written, with every permission given', core, async () => {
    const made = await held(['a'], [HOLD], { finalizers: [HOLD] }, world('kube-preview'));
    const everything = {
      ...{ 'force-finalize': 'namespace', 'force-finalizers': `${HOLD},${KEEP},kubernetes` },
      ...{ ...PODS, 'force-orphans': 'accept', 'force-namespaces': `${made.namespace},*` },
    };
    const { refusals } = await run('namespace', made, everything);
    expect(refusals).toMatch(/it is protected: names that begin with/);
    expect(await writes('namespace', made)).toEqual([]);
  });

  test('recreated between read and write: the new namespace is not touched', core, async () => {
    const made = await held(['a']);
    const it = configMapRef(made.namespace, 'a');
    const again = before(async () => {
      await made.client.patch(it, { metadata: { finalizers: null } });
      await made.gone(made.namespaceRef);
      await made.createNamespace();
      await made.client.create(configMap(made.namespace, 'a', { finalizers: [HOLD] }));
    });
    const { record, outcome } = await run('namespace', made, NAMESPACE, again);
    expect(await writes('namespace', made)).toEqual(['patch configmaps/a']);
    expect(record.actions[0]?.result).toMatch(/^removed; perhaps by another client, since/);
    expect(outcome).toBe('forced');
    expect(await finalizersOf(it, 'metadata')).toEqual([HOLD]);
  });

  test(
    'recreated and Terminating again before /finalize: the PUT is refused, and not repeated',
    core,
    async () => {
      const made = world();
      const { namespace } = made;
      await made.createNamespace();
      await addSpecFinalizer(made, HOLD);
      await made.deleteNamespace();
      await made.settled();
      const again = before(async () => {
        await addSpecFinalizer(made);
        await made.gone(made.namespaceRef);
        await made.createNamespace(namespace, { finalizers: [KEEP] });
        await addSpecFinalizer(made, HOLD);
        await made.deleteNamespace();
      });
      const { outcome } = await run('namespace', made, NAMESPACE, again);
      const tried = await writesSince(thePlane().auditLog, userOf('namespace'), 0);
      const its = tried.filter(({ name }) => name === namespace);
      expect(its.map(({ verb, subresource, code }) => [verb, subresource, code])).toEqual([
        ['update', 'finalize', 409],
      ]);
      expect(outcome).toBe('forced');
      expect(await finalizersOf(made.namespaceRef, 'spec')).toContain(HOLD);
    },
  );

  test(
    'a right that is missing is quoted as the server says it; with it, it works',
    core,
    async () => {
      const made = world();
      const it = ref(`${WIDGETS}/v1`, 'Widget', made.namespace, 'db');
      await made.createNamespace();
      await made.createType(customType({ group: WIDGETS, kind: 'Widget' }));
      await made.create(widget(made.namespace, [HOLD]));
      await made.deleteNamespace();
      await made.terminating(it);
      const { admin } = thePlane();
      await createAccount(admin, 'short', ['reader']);
      const planned = await run('short', made, { 'force-finalize': 'plan' });
      expect(planned.record.actions[0]?.result).toBe('would be done');
      const refused = await run('short', made);
      expect(refused.outcome).toBe('stuck');
      expect(refused.record.actions.map(({ result }) => result).join()).toMatch(
        /not done: 403 .*cannot patch resource "widgets"/,
      );
      const rules = [{ apiGroups: [WIDGETS], resources: ['widgets'], verbs: ['patch'] }];
      const metadata = { name: 'force-extra' };
      await admin.create({ apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata, rules });
      await bind(admin, 'short', metadata.name);
      // Authorizers hear of a new binding a moment later.
      await waitUntil(
        'the grant to be enough',
        async () => (await run('short', made)).outcome === 'forced',
      );
    },
  );

  test('exactly one of three spec finalizers is removed; metadata stays', async () => {
    const made = world();
    const annotations = { note: 'kept' };
    await made.createNamespace(undefined, { finalizers: [KEEP], annotations });
    for (const entry of [HOLD, 'example.com/third']) await addSpecFinalizer(made, entry);
    await made.deleteNamespace();
    await lostKubernetes(made);
    const lasting = ({ metadata }: KubeObject) => ({
      ...{ ...metadata, resourceVersion: '', managedFields: [] },
    });
    const before = await made.client.get(made.namespaceRef);
    const { outcome, record } = await run('namespace', made, NAMESPACE);
    const after = await made.client.get(made.namespaceRef);
    expect(stringsAt(after, 'spec', 'finalizers')).toEqual(['example.com/third']);
    expect(lasting(after)).toEqual(lasting(before));
    expect(outcome).toBe('stuck');
    expect(record.refused.map(({ reason }) => reason).join()).toContain(KEEP);
  });

  test(
    'content that remains: refused; accepted: forced, and the orphans are all that etcd has',
    core,
    async () => {
      const made = world();
      const { namespace, client } = made;
      await made.createNamespace();
      await made.createType(customType({ group: WIDGETS, kind: 'Widget' }));
      await made.create(deployment(namespace, 'web', { replicas: 1 }));
      await made.create(pod(namespace, 'held', { metadata: { finalizers: [KEEP] } }));
      await made.create(widget(namespace, [KEEP]));
      await made.deleteNamespace();
      await made.terminating(podRef(namespace, 'held'));
      await made.settled();

      const refused = await run('namespace', made, NAMESPACE);
      expect(refused.refusals).toContain(`Pod held (${KEEP})`);
      expect(await writes('namespace', made)).toEqual([]);

      const accepting = { ...NAMESPACE, 'force-orphans': 'accept' };
      const { outcome, record } = await run('namespace', made, accepting);
      expect(outcome).toBe('forced');
      expect(await writes('namespace', made)).toEqual([`update namespaces/finalize/${namespace}`]);
      const stored = (await storedIn(thePlane(), namespace)).map((key) => key.split('/').at(-1));
      expect(record.orphans.map(({ name }) => name).toSorted()).toEqual(stored.toSorted());
      expect(record.orphans).toContainEqual(
        expect.objectContaining({ kind: 'Widget', name: 'db', finalizers: [KEEP] }),
      );
      expect(record.actions.at(-1)?.result).toContain('only a new namespace of this name');
      // What the report says about them is true.
      const it = ref(`${WIDGETS}/v1`, 'Widget', namespace, 'db');
      const free = { metadata: { finalizers: null } };
      await expect(client.patch(it, free)).rejects.toThrow('404');
      await made.createNamespace(namespace);
      await client.patch(it, free);
    },
  );

  describe.concurrent('the optional guard', core, () => {
    beforeEach(async () => {
      const { admin } = thePlane();
      await createAccount(admin, 'guarded', ['reader', 'force-objects', 'force-namespace']);
      const name = (text: string) =>
        text.replace('system:serviceaccount:ci:teardown', userOf('guarded'));
      for (const object of await manifest('guard', name)) await admin.create(object);
      await admin.create(configMap('default', 'guard-probe'));
      const probe = '/api/v1/namespaces/default/configmaps/guard-probe';
      await waitUntil('the policy to be in force', async () =>
        /already being deleted|namespaces with its label/.test(
          await sent(probe, '/data', { a: 'b' }, true),
        ),
      );
    });

    /** The answer to the addition, or without a value the removal, of this field. */
    async function sent(
      path: string,
      field: string,
      value?: JsonObject | string,
      dryRun = false,
    ): Promise<string> {
      const api = await as('guarded');
      const op = value === undefined ? 'remove' : 'add';
      const body = [{ op, path: field, ...(value === undefined ? {} : { value }) }];
      const answer = await api.send({ method: 'PATCH', path, body, dryRun });
      return answer.ok ? 'allowed' : answer.failure.message;
    }

    test('lets the gate do its work', async () => {
      const made = await held(['a'], [HOLD], { labels: { ephemeral: 'true' }, finalizers: [HOLD] });
      const { outcome, record } = await run('guarded', made, NAMESPACE);
      // The namespace may go before its own entry is looked at.
      const results = record.actions.map(({ result }) => result);
      expect(results.slice(0, 2)).toEqual(['removed', 'removed']);
      expect(results.slice(2).join()).toMatch(
        /^(?:|removed|nothing to do: nothing terminating has it)$/,
      );
      expect(outcome).toBe('forced');
    });

    test('keeps its identity from everything else', async () => {
      const { namespace } = await held(['a'], [HOLD, KEEP], { labels: { ephemeral: 'true' } });
      const unlabelled = await held(['a']);
      const own = `/api/v1/namespaces/${namespace}`;
      const other = `/api/v1/namespaces/${unlabelled.namespace}`;
      const system = '/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt';
      const [onlyFinalizers, labelled] = ['nothing but finalizers', 'namespaces with its label'];
      const data = { a: 'b' };
      expect(await sent(`${own}/configmaps/a`, '/data', data)).toContain(onlyFinalizers);
      expect(await sent(`${own}/configmaps/a`, '/metadata/labels', data)).toContain(onlyFinalizers);
      expect(await sent(own, '/metadata/labels/more', 'x')).toContain(onlyFinalizers);
      expect(await sent(`${other}/configmaps/a`, '/metadata/finalizers')).toContain(labelled);
      expect(await sent(system, '/data', {})).toContain('already being deleted');
    });
  });
});

const NAMESPACE = { 'force-finalize': 'namespace' };
const PODS = { 'force-pods': 'true' };

const widget = (namespace: string, finalizers: string[]): JsonObject =>
  customObject(`${WIDGETS}/v1`, 'Widget', namespace, 'db', { finalizers });

/** Before the first write. */
const before = (work: () => Promise<unknown>): ForceOptions => ({
  beforeWrite: async (_, count) => {
    if (count === 0) await work();
  },
});

/** A result by what tests ask of it. */
interface Named {
  outcome: string;
  record: NonNullable<NamespaceResult['forced']>;
  refusals: string;
}

function named(result: NamespaceResult | undefined): Named {
  const record = result?.forced ?? { mode: 'plan', actions: [], orphans: [], refused: [] };
  const refusals = record.refused.map(({ target, reason }) => `${target}: ${reason}`).join('\n');
  return { outcome: result?.outcome ?? 'none', record, refusals };
}
