import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Json, type JsonObject, numberAt, stringAt, stringsAt } from '../../src/base/json.ts';
import type { KubernetesApi } from '../../src/kubernetes/api.ts';
import type { ActivePolicy } from '../../src/model/policy.ts';
import { mutationsBy } from './audit.ts';
import type { Ref } from './client.ts';
import { foreignKubeconfig, wantedVersion } from './clusters.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import {
  bind,
  connectAs,
  explain,
  type Forced,
  type ForceOptions,
  force,
  GATE_NAMESPACE,
  manifest,
  policy,
  prepareIdentities,
  storedIn,
  userOf,
} from './force-world.ts';
import { configMap, deployment, pod } from './objects.ts';
import { waitUntil } from './wait-until.ts';
import { namespaceRef, World } from './world.ts';

const HOLD = 'example.com/cleanup';
const KEEP = 'example.com/keep';

const title = 'force-finalize on a real API server, with the shipped RBAC manifests';
describe.skipIf(foreignKubeconfig() !== undefined)(title, () => {
  let plane: ControlPlane;
  const apis = new Map<string, Promise<KubernetesApi>>();

  beforeAll(async () => {
    plane = await startControlPlane({
      version: wantedVersion(),
      // Or the pods of a node that does not exist would be gone before the gate looks.
      controllers: ['*', '-pod-garbage-collector-controller'],
    });
    await prepareIdentities(plane);
  });

  afterAll(async () => {
    for (const api of apis.values()) await (await api).close();
    await plane.stop();
  });

  function as(rights: string): Promise<KubernetesApi> {
    const known = apis.get(rights) ?? connectAs(plane, rights);
    apis.set(rights, known);
    return known;
  }

  function world(): World {
    return new World({
      client: plane.admin,
      plane,
      namespace: 'preview',
      alone: false,
      kubeconfig: (identity) => plane.kubeconfig(identity),
      leave: () => undefined, // it goes with its cluster
    });
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
    await Promise.all(
      names.map((name) => made.client.create(configMap(namespace, name, { finalizers }))),
    );
    await made.deleteNamespace();
    for (const name of names) await made.terminating(mapRef(namespace, name));
    return made;
  }

  async function run(
    rights: string,
    { namespace }: World,
    over: Partial<ActivePolicy>,
    options: ForceOptions = {},
  ): Promise<Forced> {
    return force(await as(rights), namespace, policy({ finalizers: [HOLD], ...over }), options);
  }

  function writes(rights: string, { namespace }: World): Promise<string[]> {
    return mutationsBy(plane.auditLog, userOf(rights), (place, name) =>
      [place, name].includes(namespace),
    );
  }

  describe.concurrent('objects', () => {
    test('500 objects are freed by 500 patches and nothing else; the namespace goes', async () => {
      const names = Array.from({ length: 500 }, (_, index) => `held-${index}`);
      const made = await held(names);
      const { record, outcome } = await run('objects', made, {});
      expect(outcome).toBe('forced');
      expect(record.actions).toEqual([
        {
          target: expect.stringMatching(/^500 objects of configmaps/),
          finalizer: HOLD,
          result: 'removed',
        },
      ]);
      expect(record.orphans).toEqual([]);
      const written = await writes('objects', made);
      expect(written.toSorted()).toEqual(
        names.map((name) => `patch configmaps/${name}`).toSorted(),
      );
      expect(await storedIn(plane, made.namespace)).toEqual([]);
    });

    test('mode plan says what mode objects does, and writes nothing', async () => {
      const made = await held(['a']);
      const finalizers = ['example.com/*'];
      const planned = await run('objects', made, { mode: 'plan', finalizers });
      expect(await writes('objects', made)).toEqual([]);
      expect(planned.outcome).toBeUndefined();
      const real = await run('objects', made, { finalizers });
      const upToObjects = planned.plan.actions.filter(({ step }) => step === 'object-finalizer');
      expect(real.plan.actions).toEqual(upToObjects);
      expect(real.outcome).toBe('forced');
    });

    test('only the allowed one of two finalizers goes, also when their order changes meanwhile', async () => {
      const made = await held(['a'], [KEEP, HOLD]);
      const ref = mapRef(made.namespace, 'a');
      const { outcome } = await run(
        'objects',
        made,
        {},
        {
          settleMs: 0,
          beforeWrite: async (_, count) =>
            count === 0 && made.client.patch(ref, { metadata: { finalizers: [HOLD, KEEP] } }),
        },
      );
      expect(outcome).toBeUndefined();
      expect(stringsAt(await made.client.get(ref), 'metadata', 'finalizers')).toEqual([KEEP]);
      expect(await writes('objects', made)).toEqual(['patch configmaps/a', 'patch configmaps/a']);
      await made.end();
    });

    test('what is not terminating stays as it is, although its finalizer is allowed', async () => {
      const made = world();
      await made.createNamespace();
      const { namespace } = made;
      await made.client.create(pod(namespace, 'first', { metadata: { finalizers: [KEEP] } }));
      await made.client.create(configMap(namespace, 'queued', { finalizers: [HOLD] }));
      await made.deleteNamespace();
      await made.terminating({ apiVersion: 'v1', kind: 'Pod', namespace, name: 'first' });
      if (await made.deletesPodsFirst()) {
        const { record } = await run('objects', made, {}, { settleMs: 0 });
        expect(await writes('objects', made)).toEqual([]);
        expect(record.refused.map(({ target }) => target)).toContainEqual(
          expect.stringContaining('2 configmaps'),
        );
      }
      await made.end();
    });

    test('what is queued behind a pod is freed in a second round', async () => {
      const made = world();
      await made.createNamespace();
      const { namespace } = made;
      await made.client.create(pod(namespace, 'first', { metadata: { finalizers: [HOLD] } }));
      await made.client.create(configMap(namespace, 'queued', { finalizers: [HOLD] }));
      await made.deleteNamespace();
      await made.terminating({ apiVersion: 'v1', kind: 'Pod', namespace, name: 'first' });
      const { outcome } = await run('objects', made, {}, { settleMs: 60_000 });
      expect(outcome).toBe('forced');
      expect(await writes('objects', made)).toEqual([
        'patch pods/first',
        'patch configmaps/queued',
      ]);
    });

    test('an overdue pod of a node that does not exist is deleted with grace period 0', async () => {
      const made = world();
      await made.createNamespace();
      await made.client.create(
        pod(made.namespace, 'lost', { nodeName: 'no-such-node', graceSeconds: 1 }),
      );
      await made.deleteNamespace();
      await made.terminating({
        apiVersion: 'v1',
        kind: 'Pod',
        namespace: made.namespace,
        name: 'lost',
      });
      await new Promise((done) => setTimeout(done, 8_000)); // overdue by the server's clock
      const refusedFirst = await run('objects', made, {}, { settleMs: 0 });
      expect(refusedFirst.record.refused).toContainEqual({
        target: 'pods/lost',
        reason: expect.stringContaining('force-pods: true'),
      });
      const planned = await run('objects', made, { mode: 'plan', pods: true });
      expect(planned.record.actions).toContainEqual({
        target: 'pods/lost',
        finalizer: '',
        result: 'would be done',
      });
      expect(
        await made.client.find({
          apiVersion: 'v1',
          kind: 'Pod',
          namespace: made.namespace,
          name: 'lost',
        }),
      ).toBeDefined();
      const { outcome } = await run('objects', made, { pods: true }, { settleMs: 60_000 });
      expect(outcome).toBe('forced');
      expect(await writes('objects', made)).toEqual(['delete pods/lost']);
    });
  });

  describe.concurrent('attempts to make it harm something', () => {
    test.each([
      ['a name that the patterns do not cover', { namespaces: ['staging-*'] }, {}],
      ['a pattern that covers everything', { namespaces: ['*'] }, {}],
      ['a label that it does not carry', { label: { key: 'ephemeral', value: 'true' } }, {}],
      ['another UID than at the start', {}, { startUid: 'another' }],
      [
        'a finalizer that only a wildcard allows and nobody blames',
        { finalizers: ['other.io/*'] },
        {},
      ],
    ])('%s: nothing is written', async (_, over, options) => {
      const made = await held(['a']);
      const { record, outcome } = await run(
        'namespace',
        made,
        { mode: 'namespace', ...over },
        { settleMs: 0, ...options },
      );
      expect(outcome).not.toBe('forced');
      expect(record.refused.length).toBeGreaterThan(0);
      expect(await writes('namespace', made)).toEqual([]);
      await made.end();
    });

    test('an Active namespace: nothing is written, with every permission given', async () => {
      const made = world();
      await made.createNamespace(undefined, { finalizers: [HOLD] });
      const { record } = await run('namespace', made, EVERYTHING);
      expect(record.refused[0]?.reason).toContain('only a Terminating namespace');
      expect(await writes('namespace', made)).toEqual([]);
      await made.end();
    });

    test.each(['default', 'kube-system', 'kube-node-lease', GATE_NAMESPACE])(
      'protected %s: nothing is written, with every permission given',
      async (namespace) => {
        const api = await as('namespace');
        const given = policy({ ...EVERYTHING, namespaces: [namespace, '*'] });
        const { record } = await force(api, namespace, given);
        expect(record.refused[0]?.reason).toContain('protected');
        const written = await mutationsBy(plane.auditLog, userOf('namespace'), (place, name) =>
          [place, name].includes(namespace),
        );
        expect(written).toEqual([]);
      },
    );

    test('recreated between read and write: the new namespace is not touched', async () => {
      const made = await held(['a']);
      const { namespace, client } = made;
      const { record, outcome } = await run(
        'namespace',
        made,
        { mode: 'namespace' },
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
      expect(record.actions[0]?.result).toContain('another object has the name now');
      expect(outcome).toBe('recreated');
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
        { mode: 'namespace' },
        {
          settleMs: 0,
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
      expect(await codesOf(plane.auditLog, userOf('namespace'), namespace)).toEqual([409]);
      expect(outcome).toBe('recreated');
      expect(stringsAt(await client.get(namespaceRef(namespace)), 'spec', 'finalizers')).toContain(
        HOLD,
      );
      await made.end();
    });

    test('the label is taken off on the way: the rest is left alone', async () => {
      const names = Array.from({ length: 40 }, (_, index) => `held-${index}`);
      const made = await held(names, [HOLD], { labels: { ephemeral: 'true' } });
      const { record } = await run(
        'objects',
        made,
        { label: { key: 'ephemeral', value: 'true' } },
        {
          settleMs: 0,
          beforeWrite: async (_, count) =>
            count === 3 &&
            made.client.patch(made.namespaceRef, { metadata: { labels: { ephemeral: null } } }),
        },
      );
      expect(await writes('objects', made)).toHaveLength(4);
      expect(record.actions.at(-1)).toMatchObject({
        target: expect.stringContaining('36 objects'),
        result: expect.stringContaining('no longer has the label ephemeral=true'),
      });
      await made.end();
    });

    test('a namespace that holds the Service of a webhook for other namespaces is refused', async () => {
      const made = await held(['a']);
      await made.create({
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        metadata: { name: made.name('guard') },
        webhooks: [
          {
            name: `guard.${made.domain('example.com')}`,
            clientConfig: { service: { namespace: made.namespace, name: 'hooks' } },
            rules: [
              {
                apiGroups: [''],
                apiVersions: ['v1'],
                operations: ['CREATE'],
                resources: ['configmaps'],
              },
            ],
            failurePolicy: 'Ignore',
            timeoutSeconds: 1,
            sideEffects: 'None',
            admissionReviewVersions: ['v1'],
          },
        ],
      });
      const { record } = await run('namespace', made, EVERYTHING);
      await made.end();
      expect(record.refused[0]?.reason).toMatch(
        /holds the Service of ValidatingWebhookConfiguration .*configmaps are also in namespace/,
      );
      expect(await writes('namespace', made)).toEqual([]);
    });
  });

  describe.concurrent('rights', () => {
    test('missing ones are named with the rules that grant just these; with them, it works', async () => {
      const made = world();
      const group = made.domain('ledger.example.com');
      await made.createNamespace();
      await made.createType(widgetType(group));
      const { namespace } = made;
      await made.client.create({
        apiVersion: `${group}/v1`,
        kind: 'Widget',
        metadata: { namespace, name: 'db', finalizers: [HOLD] },
      });
      await made.deleteNamespace();
      await made.terminating({ apiVersion: `${group}/v1`, kind: 'Widget', namespace, name: 'db' });

      await plane.admin.create({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { namespace: GATE_NAMESPACE, name: 'short' },
      });
      await bind(plane.admin, 'short', 'namespace-teardown-gate-reader');
      const refused = await run('short', made, {});
      expect(await writes('short', made)).toEqual([]);
      expect(refused.record.refused).toContainEqual({
        target: `namespaces/${namespace}`,
        reason: `rights are missing: patch widgets.${group}; these rules grant just them: [{apiGroups: ["${group}"], resources: ["widgets"], verbs: ["patch"]}]`,
      });

      const { load } = await import('js-yaml');
      const role = load((refused.grant ?? []).join('\n')) as JsonObject;
      await plane.admin.create(role);
      await bind(plane.admin, 'short', stringAt(role, 'metadata', 'name') ?? '');
      // Authorizers hear of a new binding a moment later.
      await waitUntil(
        'the grant to be enough',
        async () => (await run('short', made, {})).outcome === 'forced',
      );
      await made.end();
    });

    test('the reader sees all that a diagnosis asks for', async () => {
      const made = world();
      const group = made.domain('ledger.example.com');
      await made.createNamespace();
      await made.createType(widgetType(group));
      const { namespace } = made;
      const metadata = { namespace, name: 'db', finalizers: [`${group}/cleanup`] };
      await made.client.create({ apiVersion: `${group}/v1`, kind: 'Widget', metadata });
      await made.deleteNamespace();
      await made.settled();
      const { diagnosis, snapshot } = await explain(await as('reader'), namespace);
      expect(diagnosis.notInspected).toEqual([]);
      expect(unreadIn(snapshot)).toEqual([]);
      await made.end();
    });

    test('the reader can plan and can write nothing', async () => {
      const made = await held(['a']);
      const { record, outcome } = await run('reader', made, {});
      expect(outcome).toBeUndefined();
      expect(record.refused.at(-1)?.reason).toContain('rights are missing: patch configmaps');
      expect(await mutationsBy(plane.auditLog, userOf('reader'), () => true)).toEqual([]);
      await made.end();
    });
  });

  describe.concurrent('the namespace itself', () => {
    test('exactly one of three spec finalizers goes; metadata, labels and annotations stay', async () => {
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
      const { outcome, record } = await run(
        'namespace',
        made,
        { mode: 'namespace' },
        { settleMs: 0 },
      );
      const after = await made.client.get(made.namespaceRef);
      expect(stringsAt(after, 'spec', 'finalizers')).toEqual(['example.com/third']);
      expect({ ...after.metadata, resourceVersion: '', managedFields: [] }).toEqual({
        ...before.metadata,
        resourceVersion: '',
        managedFields: [],
      });
      expect(outcome).toBeUndefined();
      expect(record.refused.map(({ reason }) => reason)).toContainEqual(
        expect.stringContaining(KEEP),
      );
      await made.end();
    });

    test('metadata and spec entries that are allowed go one by one, and then it is gone', async () => {
      const made = world();
      await made.createNamespace(undefined, { finalizers: [HOLD, KEEP] });
      await addSpecFinalizer(made, 'example.com/third');
      await made.deleteNamespace();
      await made.settled();
      const { outcome, record } = await run('namespace', made, {
        mode: 'namespace',
        finalizers: ['example.com/*'],
      });
      expect(record.refused).toEqual([]);
      expect(outcome).toBe('forced');
      const { namespace } = made;
      expect(await writes('namespace', made)).toEqual([
        `patch namespaces/${namespace}`,
        `patch namespaces/${namespace}`,
        `update namespaces/finalize/${namespace}`,
      ]);
    });

    test('an entry that its owner puts back is reported with the owner, and not as forced', async () => {
      const made = world();
      await made.createNamespace(undefined, { finalizers: [KEEP] });
      await addSpecFinalizer(made, HOLD);
      await made.deleteNamespace();
      await waitUntil(
        'the controller to have finished',
        async () =>
          stringsAt(await made.client.get(made.namespaceRef), 'spec', 'finalizers').length === 1,
      );
      const { outcome, record } = await run(
        'namespace',
        made,
        { mode: 'namespace' },
        {
          settleMs: 0,
          afterWrite: () => addSpecFinalizer(made, HOLD, 'tenant-operator'),
        },
      );
      expect(outcome).toBeUndefined();
      expect(record.actions).toContainEqual({
        target: `namespaces/${made.namespace}`,
        finalizer: HOLD,
        result: 'removed, and added again by manager tenant-operator',
      });
      await made.end();
    });

    test('content that remains: refused; accepted: forced, and the orphans are all that etcd has', async () => {
      const made = world();
      const group = made.domain('ledger.example.com');
      await made.createNamespace();
      await made.createType(widgetType(group));
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

      const refused = await run('namespace', made, { mode: 'namespace' }, { settleMs: 0 });
      expect(refused.record.refused.at(-1)?.reason).toContain(`pods/held (${KEEP})`);
      expect(await writes('namespace', made)).toEqual([]);

      const { outcome, record } = await run('namespace', made, {
        mode: 'namespace',
        orphans: 'accept',
      });
      expect(outcome).toBe('forced');
      expect(await writes('namespace', made)).toEqual([`update namespaces/finalize/${namespace}`]);
      const told = record.orphans.map(({ name }) => name).toSorted();
      const stored = (await storedIn(plane, namespace))
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
        'answers 404 until a namespace of this name exists again',
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

    test('a repeated run after it is gone changes nothing', async () => {
      const made = await held(['a']);
      expect((await run('objects', made, {})).outcome).toBe('forced');
      const before = await writes('objects', made);
      await expect(run('objects', made, {})).rejects.toThrow('is not there');
      expect(await writes('objects', made)).toEqual(before);
    });
  });

  describe('the optional guard', () => {
    beforeAll(async () => {
      await plane.admin.create({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { namespace: GATE_NAMESPACE, name: 'guarded' },
      });
      for (const role of ['reader', 'force-objects', 'force-namespace'])
        await bind(plane.admin, 'guarded', `namespace-teardown-gate-${role}`);
      const name = (text: string) =>
        text.replace('system:serviceaccount:ci:teardown', userOf('guarded'));
      for (const object of await manifest('guard', name)) await plane.admin.create(object);
      const probe = configMap('default', 'guard-probe', {});
      await plane.admin.create(probe);
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
      const { outcome, record } = await run('guarded', made, { mode: 'namespace' });
      expect(record.actions.map(({ result }) => result)).toEqual(['removed', 'removed']);
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

  /** Last, and alone: a dead API group disturbs every namespace. */
  describe('a dead API group', () => {
    test('nothing is finalized over what cannot be read, unless that is accepted', async () => {
      const made = world();
      await made.createNamespace(undefined, { finalizers: [HOLD] });
      const service = { apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService' };
      await plane.admin.create({
        ...service,
        metadata: { name: 'v1beta1.metrics.example.com' },
        spec: {
          group: 'metrics.example.com',
          version: 'v1beta1',
          service: { namespace: 'monitoring', name: 'gone' },
          groupPriorityMinimum: 100,
          versionPriority: 100,
          insecureSkipTLSVerify: true,
        },
      });
      await made.deleteNamespace();
      await made.settled({
        NamespaceDeletionDiscoveryFailure: ['True', /metrics\.example\.com/],
      });
      const refused = await run('namespace', made, { mode: 'namespace' }, { settleMs: 0 });
      expect(refused.record.refused.at(-1)?.reason).toContain('metrics.example.com/v1beta1');
      expect(await writes('namespace', made)).toEqual([]);

      const accepted = await run('namespace', made, { mode: 'namespace', orphans: 'accept' });
      expect(accepted.outcome).toBe('forced');
      const { namespace } = made;
      expect(await writes('namespace', made)).toEqual([
        `patch namespaces/${namespace}`,
        `update namespaces/finalize/${namespace}`,
      ]);
      expect(accepted.unread.map(({ what }) => what)).toEqual(['metrics.example.com/v1beta1']);
      expect(accepted.record.orphans).toHaveLength((await storedIn(plane, namespace)).length);
      await plane.admin.delete({ ...service, name: 'v1beta1.metrics.example.com' });
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

const EVERYTHING: Partial<ActivePolicy> = {
  mode: 'namespace',
  namespaces: ['*', 'preview-*'],
  finalizers: ['*', HOLD, KEEP, 'kubernetes'],
  pods: true,
  orphans: 'accept',
};

function mapRef(namespace: string, name: string): Ref {
  return { apiVersion: 'v1', kind: 'ConfigMap', namespace, name };
}

function widgetType(group: string): JsonObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          },
        },
      ],
    },
  };
}

/** Every failed read anywhere in it, in the server's words. */
function unreadIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('ok' in value && value.ok === false) return [JSON.stringify(value)];
  return Object.values(value).flatMap(unreadIn);
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
