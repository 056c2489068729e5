import { AsyncLocalStorage } from 'node:async_hooks';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, aroundEach, beforeEach, describe, expect, test } from 'vitest';
import { type Json, type JsonObject, numberAt, stringAt, stringsAt } from '../../src/base/json.ts';
import type { InputName } from '../../src/inputs.ts';
import type { KubernetesApi } from '../../src/kubernetes/api.ts';
import type { NamespaceResult } from '../../src/model/result.ts';
import { mutationsBy } from './audit.ts';
import type { Ref } from './client.ts';
import { type Cluster, Clusters, foreignKubeconfig, startLone } from './clusters.ts';
import type { ControlPlane } from './control-plane.ts';
import {
  bind,
  connectAs,
  createAccount,
  type Forced,
  type ForceOptions,
  force,
  manifest,
  prepareIdentities,
  storedIn,
  userOf,
} from './force-world.ts';
import { configMap, customType, deployment, pod, RBAC } from './objects.ts';
import { waitUntil } from './wait-until.ts';
import { namespaceRef, World } from './world.ts';

const HOLD = 'example.com/cleanup';
const KEEP = 'example.com/keep';

/** A control plane, and the gate's connections to it by their rights. */
interface Bed {
  cluster: Cluster;
  apis: Map<string, Promise<KubernetesApi>>;
}

const title = 'force-finalize on a real API server, with the shipped RBAC manifests';
describe.skipIf(foreignKubeconfig() !== undefined)(title, () => {
  const clusters = new Clusters(() =>
    startLone(
      // Or the pods of a node that does not exist would be gone before the gate looks, and Nodes made by
      // hand would be Unknown after 50 s.
      { controllers: ['*', '-pod-garbage-collector-controller', '-node-lifecycle-controller'] },
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
  function bed(): Bed {
    const mine = beds.getStore();
    if (mine === undefined) throw new Error('no test runs');
    return mine;
  }
  function thePlane(): ControlPlane {
    const { plane } = bed().cluster;
    if (plane === undefined) throw new Error('it is not a control plane of these tests');
    return plane;
  }

  function as(rights: string): Promise<KubernetesApi> {
    const { apis } = bed();
    const known = apis.get(rights) ?? connectAs(thePlane(), rights);
    apis.set(rights, known);
    return known;
  }

  /** With names of its own: the audit log of a control plane has all that was on it before. */
  function world(namespace = 'preview'): World {
    return new World({ ...bed().cluster, alone: false, namespace });
  }

  /** A terminating namespace in which every ConfigMap is held. */
  async function held(
    names: readonly string[],
    finalizers: string[] = [HOLD],
    metadata: JsonObject = {},
  ): Promise<World> {
    const made = world();
    await made.createNamespace(undefined, metadata);
    const { namespace } = made;
    for (let start = 0; start < names.length; start += 100) {
      await Promise.all(
        names
          .slice(start, start + 100)
          .map((name) => made.client.create(configMap(namespace, name, { finalizers }))),
      );
    }
    await made.deleteNamespace();
    for (const name of [names.at(-1) ?? '', names[0] ?? '']) {
      await made.terminating(mapRef(namespace, name));
    }
    return made;
  }

  async function run(
    rights: string,
    { namespace }: World,
    inputs: Partial<Record<InputName, string>> = {},
    options: ForceOptions = {},
  ): Promise<Omit<Forced, 'results'> & Named> {
    const given = { 'force-finalizers': HOLD, ...inputs };
    const forced = await force(await as(rights), [namespace], given, options);
    return { ...forced, ...named(forced.results[0]) };
  }

  function writes(rights: string, { namespace }: World): Promise<string[]> {
    return mutationsBy(thePlane().auditLog, userOf(rights), (place, name) =>
      [place, name].includes(namespace),
    );
  }

  describe.concurrent('objects', () => {
    test('mode plan says what mode objects does, and writes nothing', {
      tags: 'core',
    }, async () => {
      const made = await held(['a']);
      const finalizers = { 'force-finalizers': HOLD };
      const planned = await run('objects', made, { ...finalizers, 'force-finalize': 'plan' });
      expect(await writes('objects', made)).toEqual([]);
      expect(planned.outcome).toBe('stuck');
      const it = { target: 'configmaps/a', finalizer: HOLD };
      expect(planned.record.actions[0]).toEqual({ ...it, result: 'would be done' });
      const real = await run('objects', made, finalizers);
      expect(real.record.actions).toEqual([{ ...it, result: 'removed' }]);
      expect(real.outcome).toBe('forced');
    });

    test('only the allowed one of two finalizers is removed, also if their order changes meanwhile', {
      tags: 'core',
    }, async () => {
      const made = await held(['a'], [KEEP, HOLD]);
      const ref = mapRef(made.namespace, 'a');
      const { outcome } = await run(
        'objects',
        made,
        {},
        {
          beforeWrite: async (_, count) =>
            count === 0 && made.client.patch(ref, { metadata: { finalizers: [HOLD, KEEP] } }),
        },
      );
      expect(outcome).toBe('stuck');
      expect(stringsAt(await made.client.get(ref), 'metadata', 'finalizers')).toEqual([KEEP]);
      expect(await writes('objects', made)).toEqual(['patch configmaps/a', 'patch configmaps/a']);
      await made.end();
    });
  });

  describe.concurrent('overdue pods', () => {
    /** Overdue by the server's clock, on a node in this state. */
    async function lost(node: string, ready?: [status: string, agoMs: number]): Promise<World> {
      const made = world();
      const nodeName = made.name(node);
      await made.createNamespace();
      if (ready !== undefined) {
        await made.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName } });
        const at = (agoMs: number) =>
          new Date(Date.now() - agoMs).toISOString().replace(/\.\d+/, '');
        const [status, agoMs] = ready;
        await made.client.patchStatus(
          { apiVersion: 'v1', kind: 'Node', name: nodeName },
          {
            conditions: [
              {
                type: 'Ready',
                status,
                reason: 'Test',
                message: 'as told',
                lastHeartbeatTime: at(agoMs),
                lastTransitionTime: at(agoMs),
              },
            ],
          },
        );
      }
      await made.client.create(pod(made.namespace, 'lost', { nodeName, graceSeconds: 1 }));
      await made.deleteNamespace();
      await made.terminating(podRef(made.namespace, 'lost'));
      await new Promise((done) => setTimeout(done, 8_000));
      return made;
    }

    const pods = { 'force-pods': 'true' };

    test('of a node that does not exist are deleted with grace period 0', {
      tags: 'core',
    }, async () => {
      const made = await lost('no-such-node');
      const refused = await run('objects', made);
      expect(refused.refusals).toMatch(/pods\/lost: .*force-pods: true/);
      const planned = await run('objects', made, { ...pods, 'force-finalize': 'plan' });
      expect(planned.record.actions[0]).toEqual({
        target: 'pods/lost',
        finalizer: '',
        result: 'would be done',
      });
      expect(await made.client.find(podRef(made.namespace, 'lost'))).toBeDefined();
      const { outcome, record } = await run('objects', made, pods);
      expect(outcome).toBe('forced');
      expect(record.actions[0]?.result).toMatch(/deleted with grace period 0; may be left behind/);
      expect(await writes('objects', made)).toEqual(['delete pods/lost']);
    });
  });

  test.concurrent('a terminal run that is killed has announced every write that it made', async () => {
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
    await made.end();
  });

  describe.concurrent('attempts to make it harm something', { tags: 'core' }, () => {
    test.each(['kube-preview', 'openshift-preview'])(
      'protected %s, held and Terminating: nothing is written, with every permission given',
      async (namespace) => {
        const made = world(namespace);
        await made.createNamespace(undefined, { finalizers: [HOLD] });
        await made.client.create(configMap(made.namespace, 'a', { finalizers: [HOLD] }));
        await made.deleteNamespace();
        await made.terminating(mapRef(made.namespace, 'a'));
        const inputs = { ...EVERYTHING, 'force-namespaces': `${made.namespace},*` };
        const { refusals } = await run('namespace', made, inputs);
        expect(refusals).toMatch(/it is protected: names that begin with/);
        expect(await writes('namespace', made)).toEqual([]);
        await made.end();
      },
    );

    test('recreated between read and write: the new namespace is not touched', async () => {
      const made = await held(['a']);
      const { namespace, client } = made;
      const { record, outcome } = await run(
        'namespace',
        made,
        { 'force-finalize': 'namespace' },
        {
          beforeWrite: async (_, count) => {
            if (count > 0) return;
            await client.patch(mapRef(namespace, 'a'), { metadata: { finalizers: null } });
            await made.gone(made.namespaceRef);
            await made.createNamespace();
            await client.create(configMap(namespace, 'a', { finalizers: [HOLD] }));
          },
        },
      );
      expect(await writes('namespace', made)).toEqual(['patch configmaps/a']);
      expect(record.actions[0]?.result).toMatch(/^removed; perhaps by another client, since/);
      expect(outcome).toBe('forced');
      expect(stringsAt(await client.get(mapRef(namespace, 'a')), 'metadata', 'finalizers')).toEqual(
        [HOLD],
      );
      await made.end();
    });

    test('recreated and Terminating again before /finalize: the PUT is refused, and not repeated', async () => {
      const made = world();
      await made.createNamespace(undefined, {});
      await addSpecFinalizer(made, HOLD);
      await made.deleteNamespace();
      await made.settled();
      const { namespace, client } = made;
      const { outcome } = await run(
        'namespace',
        made,
        { 'force-finalize': 'namespace' },
        {
          beforeWrite: async (_, count) => {
            if (count > 0) return;
            await addSpecFinalizer(made, undefined);
            await made.gone(made.namespaceRef);
            await made.createNamespace(namespace, { finalizers: [KEEP] });
            await addSpecFinalizer(made, HOLD);
            await made.deleteNamespace();
          },
        },
      );
      expect(await writes('namespace', made)).toEqual([`update namespaces/finalize/${namespace}`]);
      expect(await codesOf(thePlane().auditLog, userOf('namespace'), namespace)).toEqual([409]);
      expect(outcome).toBe('forced');
      expect(stringsAt(await client.get(namespaceRef(namespace)), 'spec', 'finalizers')).toContain(
        HOLD,
      );
      await made.end();
    });
  });

  describe.concurrent('rights', () => {
    test('a missing one is quoted as the server says it; with it, it works', {
      tags: 'core',
    }, async () => {
      const made = world();
      const group = made.domain('ledger.example.com');
      await made.createNamespace();
      await made.createType(customType({ group, kind: 'Widget' }));
      const { namespace } = made;
      await made.client.create({
        apiVersion: `${group}/v1`,
        kind: 'Widget',
        metadata: { namespace, name: 'db', finalizers: [HOLD] },
      });
      await made.deleteNamespace();
      await made.terminating({ apiVersion: `${group}/v1`, kind: 'Widget', namespace, name: 'db' });

      await createAccount(thePlane().admin, 'short', ['reader']);
      const refused = await run('short', made);
      expect(refused.outcome).toBe('stuck');
      expect(refused.record.actions.map(({ result }) => result).join()).toMatch(
        /not done: 403 .*cannot patch resource "widgets".* \(tried twice\)/,
      );

      const rules = [{ apiGroups: [group], resources: ['widgets'], verbs: ['patch'] }];
      const name = 'force-extra';
      await thePlane().admin.create({
        apiVersion: `${RBAC}/v1`,
        kind: 'ClusterRole',
        metadata: { name },
        rules,
      });
      await bind(thePlane().admin, 'short', name);
      // Authorizers hear of a new binding a moment later.
      await waitUntil(
        'the grant to be enough',
        async () => (await run('short', made)).outcome === 'forced',
      );
      await made.end();
    });

    test('the reader can plan and can write nothing', { tags: 'core' }, async () => {
      const made = await held(['a']);
      const planned = await run('reader', made, { 'force-finalize': 'plan' });
      expect(planned.record.actions[0]?.result).toBe('would be done');
      const { record, outcome } = await run('reader', made);
      expect(outcome).toBe('stuck');
      expect(record.actions[0]?.result).toMatch(/^not done: 403 /);
      const { client, namespace } = made;
      const still = await client.get(mapRef(namespace, 'a'));
      expect(stringsAt(still, 'metadata', 'finalizers')).toEqual([HOLD]);
      await made.end();
    });
  });

  describe.concurrent('the namespace itself', () => {
    test('exactly one of three spec finalizers is removed; metadata, labels and annotations stay', async () => {
      const made = world();
      await made.createNamespace(undefined, { finalizers: [KEEP], annotations: { note: 'kept' } });
      await addSpecFinalizer(made, HOLD);
      await addSpecFinalizer(made, 'example.com/third');
      await made.deleteNamespace();
      await waitUntil(
        'the controller to have finished',
        async () =>
          !stringsAt(await made.client.get(made.namespaceRef), 'spec', 'finalizers').includes(
            'kubernetes',
          ),
      );
      const before = await made.client.get(made.namespaceRef);
      const { outcome, record } = await run('namespace', made, { 'force-finalize': 'namespace' });
      const after = await made.client.get(made.namespaceRef);
      expect(stringsAt(after, 'spec', 'finalizers')).toEqual(['example.com/third']);
      expect({ ...after.metadata, resourceVersion: '', managedFields: [] }).toEqual({
        ...before.metadata,
        resourceVersion: '',
        managedFields: [],
      });
      expect(outcome).toBe('stuck');
      expect(record.refused.map(({ reason }) => reason)).toContainEqual(
        expect.stringContaining(KEEP),
      );
      await made.end();
    });

    test('content that remains: refused; accepted: forced, and the orphans are all that etcd has', {
      tags: 'core',
    }, async () => {
      const made = world();
      const group = made.domain('ledger.example.com');
      await made.createNamespace();
      await made.createType(customType({ group, kind: 'Widget' }));
      const { namespace, client } = made;
      await client.create(deployment(namespace, 'web', { replicas: 1 }));
      await client.create(pod(namespace, 'held', { metadata: { finalizers: [KEEP] } }));
      const widget = { apiVersion: `${group}/v1`, kind: 'Widget', namespace, name: 'db' };
      await client.create({
        apiVersion: `${group}/v1`,
        kind: 'Widget',
        metadata: { namespace, name: 'db', finalizers: [KEEP] },
      });
      await made.deleteNamespace();
      await made.terminating({ apiVersion: 'v1', kind: 'Pod', namespace, name: 'held' });
      await made.settled();

      const refused = await run('namespace', made, { 'force-finalize': 'namespace' });
      expect(refused.refusals).toContain(`Pod held (${KEEP})`);
      expect(await writes('namespace', made)).toEqual([]);

      const { outcome, record } = await run('namespace', made, {
        'force-finalize': 'namespace',
        'force-orphans': 'accept',
      });
      expect(outcome).toBe('forced');
      expect(await writes('namespace', made)).toEqual([`update namespaces/finalize/${namespace}`]);
      const told = record.orphans.map(({ name }) => name).toSorted();
      const stored = (await storedIn(thePlane(), namespace))
        .map((key) => key.split('/').at(-1))
        .toSorted();
      expect(told).toEqual(stored);
      expect(record.orphans).toContainEqual(
        expect.objectContaining({
          apiVersion: `${group}/v1`,
          kind: 'Widget',
          name: 'db',
          finalizers: [KEEP],
        }),
      );
      expect(record.actions.at(-1)?.result).toContain(
        'returns 404 until a namespace of this name exists again',
      );

      // What the report says about them is true.
      const path = await client.pathOf(widget);
      const patch = { metadata: { finalizers: null } };
      const merge = { 'content-type': 'application/merge-patch+json' };
      expect((await client.call('PATCH', path, patch, merge)).status).toBe(404);
      await made.createNamespace(namespace);
      expect((await client.call('PATCH', path, patch, merge)).status).toBe(200);
      await made.end();
    });
  });

  describe.concurrent('the optional guard', { tags: 'core' }, () => {
    beforeEach(async () => {
      const roles = ['reader', 'force-objects', 'force-namespace'];
      await createAccount(thePlane().admin, 'guarded', roles);
      const name = (text: string) =>
        text.replace('system:serviceaccount:ci:teardown', userOf('guarded'));
      for (const object of await manifest('guard', name)) await thePlane().admin.create(object);
      const probe = configMap('default', 'guard-probe', {});
      await thePlane().admin.create(probe);
      await waitUntil('the policy to be in force', async () => {
        const api = await as('guarded');
        const sent = await api.send({
          method: 'PATCH',
          path: '/api/v1/namespaces/default/configmaps/guard-probe',
          body: [{ op: 'add', path: '/data', value: { a: 'b' } }],
          dryRun: true,
        });
        return (
          !sent.ok && /already being deleted|namespaces with its label/.test(sent.failure.message)
        );
      });
    });

    test('lets the gate do its work', async () => {
      const made = await held(['a'], [HOLD], { labels: { ephemeral: 'true' }, finalizers: [HOLD] });
      const { outcome, record } = await run('guarded', made, { 'force-finalize': 'namespace' });
      // The namespace may go before its own entry is looked at.
      const results = record.actions.map(({ result }) => result);
      expect(results.slice(0, 2)).toEqual(['removed', 'removed']);
      expect(results.slice(2).join()).toMatch(
        /^(?:|removed|nothing to do: nothing terminating has it)$/,
      );
      expect(outcome).toBe('forced');
    });

    test('keeps its identity from everything else', async () => {
      const made = await held(['a'], [HOLD, KEEP], { labels: { ephemeral: 'true' } });
      const unlabelled = await held(['a']);
      const api = await as('guarded');
      const send = async (path: string, body: JsonObject[]) => {
        const sent = await api.send({ method: 'PATCH', path, body });
        return sent.ok ? 'allowed' : sent.failure.message;
      };
      const own = `/api/v1/namespaces/${made.namespace}`;
      const remove = [{ op: 'remove', path: '/metadata/finalizers' }];
      expect(
        await send(`${own}/configmaps/a`, [{ op: 'add', path: '/data', value: { a: 'b' } }]),
      ).toContain('nothing but finalizers');
      expect(
        await send(`${own}/configmaps/a`, [
          { op: 'add', path: '/metadata/labels', value: { a: 'b' } },
        ]),
      ).toContain('nothing but finalizers');
      expect(
        await send(`${own}/configmaps/kube-root-ca.crt`, [
          { op: 'add', path: '/data', value: { a: 'b' } },
        ]),
      ).toMatch(/already being deleted|not found/);
      expect(await send(own, [{ op: 'add', path: '/metadata/labels/more', value: 'x' }])).toContain(
        'nothing but finalizers',
      );
      expect(
        await send(`/api/v1/namespaces/${unlabelled.namespace}/configmaps/a`, remove),
      ).toContain('namespaces with its label');
      expect(
        await send('/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt', [
          { op: 'add', path: '/data', value: {} },
        ]),
      ).toContain('already being deleted');
      await made.end();
      await unlabelled.end();
    });
  });

  /** Adds an entry to (or, without one, drops all foreign entries from) spec.finalizers. */
  async function addSpecFinalizer(
    made: World,
    entry: string | undefined,
    manager = 'kubectl',
  ): Promise<void> {
    for (let attempt = 0; attempt < 5; attempt++) {
      const now = await made.client.get(made.namespaceRef);
      const list = stringsAt(now, 'spec', 'finalizers');
      const finalizers =
        entry === undefined ? list.filter((one) => one === 'kubernetes') : [...list, entry];
      const answer = await made.client.call(
        'PUT',
        `/api/v1/namespaces/${made.namespace}/finalize?fieldManager=${manager}`,
        { ...now, spec: { finalizers } },
      );
      if (answer.status === 200) return;
    }
    throw new Error('spec.finalizers could not be changed');
  }
});

const EVERYTHING: Partial<Record<InputName, string>> = {
  'force-finalize': 'namespace',
  'force-finalizers': `${HOLD},${KEEP},kubernetes`,
  'force-pods': 'true',
  'force-orphans': 'accept',
};

/** A result by what tests ask of it. */
interface Named {
  outcome: string;
  record: NonNullable<NamespaceResult['forced']>;
  refusals: string;
  unread: string[];
}

function named(result: NamespaceResult | undefined): Named {
  const record = result?.forced ?? { mode: 'plan', actions: [], orphans: [], refused: [] };
  return {
    outcome: result?.outcome ?? 'none',
    record,
    refusals: record.refused.map(({ target, reason }) => `${target}: ${reason}`).join('\n'),
    unread: (result?.diagnosis?.notInspected ?? []).map(({ what }) => what),
  };
}

function podRef(namespace: string, name: string): Ref {
  return { apiVersion: 'v1', kind: 'Pod', namespace, name };
}

function mapRef(namespace: string, name: string): Ref {
  return { apiVersion: 'v1', kind: 'ConfigMap', namespace, name };
}

/** Answers to the real writes of this user on the namespace itself. */
async function codesOf(auditLog: string, user: string, namespace: string): Promise<number[]> {
  const events = (await readFile(auditLog, 'utf8'))
    .split('\n')
    .filter((line) => line.includes(`"${user}"`) && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Json);
  return events
    .filter((event) => stringAt(event, 'objectRef', 'name') === namespace)
    .filter((event) => ['patch', 'update'].includes(stringAt(event, 'verb') ?? ''))
    .filter((event) => !(stringAt(event, 'requestURI') ?? '').includes('dryRun=All'))
    .flatMap((event) => numberAt(event, 'responseStatus', 'code') ?? []);
}
