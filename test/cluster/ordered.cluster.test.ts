import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { type JsonObject, stringAt } from '../../src/base/json.ts';
import { byService, createWebhook } from './admission.ts';
import { refOf } from './client.ts';
import { Clusters, foreignKubeconfig } from './clusters.ts';
import { storedIn } from './force-world.ts';
import { gate, guarded, inside, rootsOf } from './foresight.ts';
import { apiVersionOf } from './inventory.ts';
import {
  apiServiceRef,
  configMap,
  customObject,
  deployment,
  secret,
  service,
  volumeClaim,
} from './objects.ts';
import { DELETING_TIMEOUT } from './run-scenario.ts';
import { createGuarded, type Operator } from './scenarios/operator.ts';
import { guardedRef } from './scenarios/situation.ts';
import {
  available,
  connect,
  discovered,
  EXTENSION_VERSION,
  register,
  startExtensionApi,
} from './servers/extension-api.ts';
import { startWebhook, startWebhookServer } from './servers/webhook.ts';
import { waitUntil } from './wait-until.ts';
import { conditionsOf, inNamespace, namespaceRef, World } from './world.ts';

/** Hangs that `delete: true` makes and `delete: ordered` does not, and what a forecast must not call one. */
const clusters = new Clusters();

describe.skipIf(foreignKubeconfig() !== undefined)('on a control plane of its own', () => {
  afterAll(() => clusters.stop());

  describe.concurrent('an ordered deletion', () => {
    test('deletes the objects of an operator in the namespace first; an ordinary deletion hangs', {
      tags: 'core',
    }, async () => {
      await within('inside', async (world) => {
        const operator = await inside(world);
        await createGuarded(world, operator, 'a');
        await createGuarded(world, operator, 'b');
        const foreseen = await gate(world, { forecast: 'true' });
        expect(foreseen.result.outcome, foreseen.text).toBe('would-hang');
        expect(foreseen.result.order?.map(({ command }) => command)).toEqual([
          `kubectl delete widgets.${operator.group} --all -n ${world.namespace} --wait`,
        ]);
        expect(foreseen.writes).toEqual([]);
        expect(foreseen.text).toContain('delete: ordered');
        const { result, writes, text } = await gate(world, { delete: 'ordered' });
        expect(result.outcome).toBe('deleted');
        expect(result.deletions).toMatchObject([
          { kind: 'Widget', result: 'deletion requested' },
          { kind: 'Widget', result: 'deletion requested' },
        ]);
        expect(text).toContain('was deleted');
        expect(
          writes.map(({ verb, resource, name }) => `${verb} ${resource}/${name}`).sort(),
        ).toEqual([`delete namespaces/${world.namespace}`, 'delete widgets/a', 'delete widgets/b']);
        expect(await leftIn(world)).toEqual([]);
      });
      await within('inside-at-once', async (world) => {
        const operator = await inside(world);
        await createGuarded(world, operator, 'a');
        const { result } = await gate(world, { delete: 'true', timeout: DELETING_TIMEOUT });
        expect(result.outcome).toBe('stuck');
        expect(rootsOf(result)).toContainEqual(expect.stringContaining('owner-missing'));
      });
    });

    const DEADLOCKS: Record<string, [build: (world: World) => Promise<unknown>, foreseen: string]> =
      {
        'a Job in the namespace': [
          async (world) =>
            createGuarded(world, await inside(world, { workload: 'Job', name: 'cleaner' }), 'a'),
          'would-hang',
        ],
        'an operator elsewhere that needs a Secret here': [
          (world) => needing(world, secret(world.namespace, 'creds'), 'credentialsSecretRef'),
          'inconclusive',
        ],
        'an operator elsewhere that leads by a Lease here': [
          (world) => needing(world, leaseOf(world, 'creds')),
          'inconclusive',
        ],
      };
    for (const [title, [build, foreseen]] of Object.entries(DEADLOCKS)) {
      test(`goes through with ${title}; an ordinary one hangs`, async () => {
        const name = title.replaceAll(' ', '-').slice(-16).toLowerCase();
        await within(name, async (world) => {
          await build(world);
          expect((await gate(world, { forecast: 'true' })).result.outcome).toBe(foreseen);
          const { result } = await gate(world, { delete: 'ordered' });
          expect(result).toMatchObject({ outcome: 'deleted', deletions: [{ name: 'a' }] });
          expect(await leftIn(world)).toEqual([]);
        });
        await within(`${name}-at-once`, async (world) => {
          await build(world);
          const { result } = await gate(world, { delete: 'true', timeout: DELETING_TIMEOUT });
          expect(result.outcome).toBe('stuck');
        });
      });
    }

    test('says that an APIService whose backend is in the namespace has to be deleted first', async () => {
      await within('books', async (world) => {
        const { namespace } = world;
        const group = world.domain('ledger.example.com');
        let isGoing = false;
        const api = {
          ...{ group, namespace, entries: ['january', 'february'], deletes: true },
          // Its pod goes with the namespace: from then on nobody answers.
          fault: () => (isGoing ? { status: 503, message: 'it is gone' } : undefined),
        };
        const server = await startExtensionApi(world, api);
        await connect(world, api, server);
        await register(world, api, server);
        await available(world, group);
        await discovered(world, group);
        const { result, text } = await gate(world, { forecast: 'true' });
        expect(result.outcome).toBe('would-hang');
        expect(result.leftBehind).toMatchObject([{ kind: 'APIService', breaksOthers: true }]);
        expect(text).toMatch(
          /kubectl delete apiservice[\s\S]*kubectl delete entries[\s\S]*kubectl delete namespace/,
        );
        const ordered = await gate(
          world,
          { delete: 'ordered', timeout: DELETING_TIMEOUT },
          {
            beforeSend: async ({ method, path, dryRun }) => {
              isGoing ||=
                method === 'DELETE' && !dryRun && path.endsWith(`/namespaces/${namespace}`);
            },
          },
        );
        expect(ordered.log).toMatch(
          /not done, because it is cluster-scoped: kubectl delete apiservice \S+ \(.*disappears for the whole cluster\)/,
        );
        expect(ordered.result).toMatchObject({
          outcome: 'stuck',
          deletions: [{ kind: 'Entry' }, { kind: 'Entry' }],
        });
        await world.client.delete(apiServiceRef(group, EXTENSION_VERSION));
        expect((await gate(world, { timeout: '120s' })).result.outcome).toBe('deleted');
      });
    });

    test('continues where a deleted object is created again', async () => {
      await within('applied', async (world) => {
        const operator = await inside(world);
        await createGuarded(world, operator, 'a');
        let more = 0;
        const { log } = await gate(
          world,
          { delete: 'ordered', timeout: '30s' },
          {
            beforeSend: async ({ method, path, dryRun }) => {
              const isOfWidget = method === 'DELETE' && !dryRun && path.includes('/widgets/');
              if (isOfWidget) await createGuarded(world, operator, `again-${more++}`);
            },
          },
        );
        expect(log).toContain('requested its deletion');
      });
    });

    test('deletes parents before the children that they would make again', async () => {
      await within('parents', async (world) => {
        const child = await inside(world);
        const parent = await inside(world, { kind: 'Store' });
        await createGuarded(world, parent, 'shop');
        keepMaking(world, parent, 'shop', child);
        await seen(world, child, 'db');
        expect(await typesInOrder(world)).toEqual(['stores', 'widgets']);
        const { result, log } = await gate(world, { delete: 'ordered', timeout: '90s' });
        // The garbage collector may delete the child before the gate does, once its parent is deleted.
        expect(log).toMatch(/first 1 stores/);
        expect(log).not.toMatch(/(?:first|waiting for) 1 widgets[\s\S]*first 1 stores/);
        expect(result.outcome).toBe('deleted');
        expect(await leftIn(world)).toEqual([]);
      });
    });

    test('says that a webhook in the namespace has to be deleted first if it guards its own backend', async () => {
      await within('self-guarded', async (world) => {
        const { namespace } = world;
        const server = await startWebhookServer(world, [`guard.${namespace}.svc`], () => 'allow');
        await world.create(service(namespace, 'guard'));
        await connect(world, { namespace, name: 'guard' }, server);
        await createWebhook(world, {
          ...{ operations: ['DELETE'], resource: 'configmaps' },
          clientConfig: { ...byService(namespace, 'guard'), caBundle: server.caBundle },
        });
        const { log, writes } = await gate(world, { delete: 'ordered', timeout: DELETING_TIMEOUT });
        expect(log).toMatch(
          /not done, because it is cluster-scoped: kubectl delete validatingwebhookconfiguration \S+ \(.*all its webhooks stop/,
        );
        expect(writes.map(({ resource }) => resource)).toEqual(['namespaces']);
      });
    });

    test('leaves GitOps objects whose controller would be lost to a person, and their owners', async () => {
      await within('reaching', async (world) => {
        const tool = await inside(world, { group: 'argoproj.io', kind: 'Application' });
        const own = await inside(world, { kind: 'Tenant', name: 'tenant-operator' });
        const server = 'https://prod.example.com:6443';
        const spec = { destination: { namespace: world.namespace, server } };
        await createGuarded(world, own, 'team');
        const team = await world.client.get(guardedRef(world, own, 'team'));
        await createGuarded(world, tool, 'prod', world.namespace, spec);
        await world.client.patch(guardedRef(world, tool, 'prod'), {
          metadata: { ownerReferences: [ownerOf(team)] },
        });
        const foreseen = await gate(world, { forecast: 'true' });
        const why = expect.stringContaining('also outside of this namespace');
        const command = (type: string): string =>
          `kubectl delete ${type} --all -n ${world.namespace} --wait`;
        expect(foreseen.result.order).toMatchObject([
          { why, command: command(`applications.${tool.group}`), isByHand: true },
          { why, command: command(`tenants.${own.group}`), isByHand: true },
        ]);
        const { log, result } = await gate(world, {
          delete: 'ordered',
          timeout: DELETING_TIMEOUT,
        });
        expect(log).toMatch(
          /not done, because it may reach beyond this namespace: kubectl delete applications/,
        );
        expect(result.deletions).toEqual([]);
      });
    });

    test('explains an object that remains while its operator runs, and continues', {
      tags: 'core',
    }, async () => {
      await within('refusing', async (world) => {
        const operator = await inside(world, {}, { cleanUp: () => 'bucket shop-7 is not empty' });
        await createGuarded(world, operator, 'a');
        const { result, log } = await gate(world, {
          delete: 'ordered',
          'order-timeout': '10s',
          timeout: '40s',
        });
        expect(log).toMatch(
          /Widget a could not be deleted in time: .*bucket shop-7 is not empty.*; the teardown continues/,
        );
        expect(result).toMatchObject({
          outcome: 'stuck',
          deletions: [{ result: 'deletion requested' }],
        });
        expect(result.deletionTimestamp).toBeDefined();
        expect(result.timeline.map(({ event }) => event).join('\n')).toContain(
          'could not be deleted in time',
        );
      });
    });

    test('deletes the objects that a webhook in the namespace guards while it still answers', async () => {
      await within('guarded', async (world) => {
        const operator = await guarded(world);
        await createGuarded(world, operator, 'a');
        const { result } = await gate(world, { forecast: 'true' });
        expect(result.outcome).toBe('would-hang');
        expect(result.order?.map(({ why }) => why).join()).toContain('guard');
        // It is asked about this namespace only.
        expect(result.leftBehind).toMatchObject([
          { kind: 'ValidatingWebhookConfiguration', breaksOthers: false },
        ]);
        const ordered = await gate(world, { delete: 'ordered' });
        expect(ordered.result).toMatchObject({ outcome: 'deleted', deletions: [{ name: 'a' }] });
        expect(await leftIn(world)).toEqual([]);
      });
      await within('guarded-at-once', async (world) => {
        const operator = await guarded(world);
        await createGuarded(world, operator, 'a');
        const { result } = await gate(world, { delete: 'true', timeout: DELETING_TIMEOUT });
        expect(result.outcome).toBe('stuck');
      });
    });

    test('asks nothing of an object that was made again after it was read', {
      tags: 'core',
    }, async () => {
      await within('made-again', async (world) => {
        const operator = await inside(world);
        await createGuarded(world, operator, 'a');
        let old: string | undefined;
        const { result } = await gate(
          world,
          { delete: 'ordered', timeout: '60s' },
          {
            beforeSend: async ({ method, path, dryRun }) => {
              if (method !== 'DELETE' || dryRun || !path.endsWith('/a') || old !== undefined)
                return;
              const one = guardedRef(world, operator, 'a');
              old = stringAt(await world.client.get(one), 'metadata', 'uid');
              await world.client.delete(one);
              await world.client.waitFor(one, 'is gone', (found) => found === undefined);
              await createGuarded(world, operator, 'a');
            },
          },
        );
        // The first one went by itself, and the other got a turn of its own.
        expect(old).toBeDefined();
        expect(result.deletions?.map(({ uid }) => uid === old)).toEqual([true, false]);
        expect(result.deletions?.map(({ result: said }) => said)).toEqual([
          'deleted',
          'deletion requested',
        ]);
        expect(result.outcome).toBe('deleted');
      });
    });

    test('deletes the objects of an operator in another namespace of the run first', async () => {
      await within('two', async (world) => {
        const operators = world.name('two-operators');
        const operator = await inside(world, { namespace: operators, scope: 'cluster' });
        await createGuarded(world, operator, 'a');
        const both = { namespace: `${world.namespace},${operators}` };
        const foreseen = await gate(world, { ...both, forecast: 'true' });
        expect(rootsOf(foreseen.result).join()).toContain(`is in namespace ${operators}`);
        const { result } = await gate(world, { ...both, delete: 'ordered', timeout: '120s' });
        expect(result).toMatchObject({ outcome: 'deleted', deletions: [{ name: 'a' }] });
      });
    });

    test('does not wait for what this identity may not delete, and says so', {
      tags: 'core',
    }, async () => {
      await within('forbidden', async (world) => {
        await createGuarded(world, await inside(world), 'a');
        const { result, log } = await gate(
          world,
          { delete: 'ordered', timeout: DELETING_TIMEOUT },
          { identity: 'teardown-gate' },
        );
        expect(log).toMatch(
          /Widget a cannot be deleted: 403 .*\n.*this identity is not allowed to delete any of them/,
        );
        expect(log).not.toContain('could not be deleted in time');
        expect(result).toMatchObject({ outcome: 'stuck', deletions: [{ name: 'a' }] });
      });
    });

    test('that is cancelled asks for nothing more', { tags: 'core' }, async () => {
      await within('cancelled', async (world) => {
        const operator = await inside(world, {}, { cleanUp: () => 'not yet' });
        await createGuarded(world, operator, 'a');
        const { result, log } = await gate(
          world,
          { delete: 'ordered', timeout: '60s' },
          { cancelAt: /first 1/ },
        );
        expect(result.outcome).toBe('cancelled');
        expect(log).not.toContain('teardown continues');
        const namespace = await world.client.get(namespaceRef(world.namespace));
        expect(namespace.metadata['deletionTimestamp']).toBeUndefined();
      });
    });

    test(
      'refuses protected namespaces; a forecast may look at them, and the server does not let them go',
      { tags: 'core' },
      () =>
        clusters.use(async (cluster) => {
          const world = new World({ ...cluster, namespace: 'kube-system' });
          const named = { namespace: 'kube-public' };
          await expect(gate(world, { ...named, delete: 'ordered' })).rejects.toThrow(
            'never deleted',
          );
          expect((await gate(world, { ...named, forecast: 'true' })).result.outcome).toBe(
            'inconclusive',
          );
        }),
    );
  });

  describe.concurrent('a forecast foresees no hang that ends by itself:', () => {
    const SITUATIONS: Record<string, (world: World) => Promise<unknown>> = {
      'nothing in it': async () => {},
      'workloads with pods': async (world) => {
        await world.create(deployment(world.namespace, 'web'));
        await world.create({
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { namespace: world.namespace, name: 'bare' },
          spec: { containers: [{ name: 'main', image: 'example.com/none' }] },
        });
        await waitUntil('the pods of the Deployment', async () => {
          const pods = await world.client.list('v1', 'Pod', world.namespace);
          return pods.some(({ metadata }) => metadata.name.startsWith('web-'));
        });
      },
      'a Job with tracked pods': (world) =>
        world.create({
          apiVersion: 'batch/v1',
          kind: 'Job',
          metadata: {
            namespace: world.namespace,
            name: 'once',
            finalizers: ['foregroundDeletion'],
          },
          spec: {
            template: {
              spec: {
                restartPolicy: 'Never',
                containers: [{ name: 'main', image: 'example.com/none' }],
              },
            },
          },
        }),
      'a claim that a pod uses': async (world) => {
        const { namespace } = world;
        await world.create(volumeClaim(namespace, 'data', { storageClassName: 'none' }));
        await world.create({
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { namespace, name: 'user' },
          spec: {
            containers: [{ name: 'main', image: 'example.com/none' }],
            volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
          },
        });
      },
      'what it is bound to names each other, and goes with it': async (world) => {
        const place = { namespace: world.name('elsewhere'), scope: 'cluster' } as const;
        const operator = await inside(world, place);
        const disks = await inside(world, { ...place, kind: 'Disk', type: { scope: 'Cluster' } });
        const { namespace } = world;
        const of = ({ group, kind }: Operator, name: string) => ({
          apiVersion: `${group}/v1`,
          kind,
          name,
        });
        const [one, two] = ['one', 'two'].map((name) => of(disks, world.name(name)));
        const widget = { ...of(operator, 'a'), namespace };
        await createGuarded(world, operator, 'a', namespace, {
          oneRef: one ?? null,
          twoRef: two ?? null,
        });
        for (const [disk, other] of [
          [one, two],
          [two, one],
        ]) {
          await world.create({
            ...disk,
            metadata: { name: disk?.name ?? '', finalizers: [disks.finalizer] },
            spec: { deletionPolicy: 'Delete', otherRef: other ?? null, widgetRef: widget },
          });
        }
      },
      'an operator that lives elsewhere': async (world) => {
        const operator = await inside(world, {
          namespace: world.name('elsewhere'),
          scope: 'cluster',
        });
        await createGuarded(world, operator, 'a');
      },
    };
    for (const [title, build] of Object.entries(SITUATIONS)) {
      test(title, () =>
        within(title.replaceAll(' ', '-').slice(0, 24).toLowerCase(), async (world) => {
          await build(world);
          const foreseen = await gate(world, { forecast: 'true' });
          expect([foreseen.result.outcome, rootsOf(foreseen.result)]).toEqual(['clear', []]);
          expect(foreseen.writes).toEqual([]);
          const { result } = await gate(world, { delete: 'true', timeout: '90s' });
          expect(result.outcome).toBe('deleted');
        }),
      );
    }

    test('a load balancer whose cloud controller is not visible, as in a managed cluster', () =>
      within('cloud', async (world) => {
        const { namespace } = world;
        await world.create(
          {
            apiVersion: 'v1',
            kind: 'Service',
            metadata: {
              namespace,
              name: 'front',
              finalizers: ['service.kubernetes.io/load-balancer-cleanup'],
            },
            spec: { type: 'LoadBalancer', ports: [{ port: 80 }], selector: { app: 'front' } },
          },
          { fieldManager: 'cloud-controller-manager' },
        );
        await world.client.patchStatus(
          { apiVersion: 'v1', kind: 'Service', namespace, name: 'front' },
          { loadBalancer: { ingress: [{ ip: '198.51.100.1' }] } },
          { fieldManager: 'cloud-controller-manager' },
        );
        const { result } = await gate(world, { forecast: 'true' });
        expect([result.outcome, rootsOf(result)]).toEqual(['clear', []]);
      }));

    test('an object that is deleted just before its deletion is tried', () =>
      within('going-meanwhile', async (world) => {
        const { namespace } = world;
        await world.create(configMap(namespace, 'a'));
        await createWebhook(world, {
          operations: ['DELETE'],
          resource: 'configmaps',
          clientConfig: await startWebhook(world, () => 'allow'),
        });
        const tried: string[] = [];
        const { result } = await gate(
          world,
          { forecast: 'true' },
          {
            beforeSend: async ({ path }) => {
              if (!path.includes('/configmaps/')) return;
              tried.push(path.split('/').at(-1) ?? '');
              if (path.endsWith('/a')) {
                await world.client.delete({
                  apiVersion: 'v1',
                  kind: 'ConfigMap',
                  namespace,
                  name: 'a',
                });
              }
            },
          },
        );
        expect(tried).toEqual(['a']);
        expect([result.outcome, rootsOf(result)]).toEqual(['clear', []]);
      }));

    test('one that is terminating already is explained as it is, and one that is not there is said', () =>
      within('going', async (world) => {
        await world.create(
          configMap(world.namespace, 'held', { finalizers: ['example.com/hold'] }),
        );
        await world.deleteNamespace();
        await world.settled();
        const { result, log } = await gate(world, { forecast: 'true' });
        expect(result.outcome).toBe('would-hang');
        expect(log).toContain('it has been terminating since');
        const absent = await gate(world, { forecast: 'true', namespace: 'is-not-there' });
        expect(absent.result.outcome).toBe('not-found');
      }));
  });
});

/** It lives elsewhere, and does its work as long as this object of the namespace is there. */
async function needing(world: World, need: JsonObject, field?: string): Promise<void> {
  const made = await world.create(need);
  const behaviour = {
    cleanUp: async () => {
      const home = await world.client.get(namespaceRef(world.namespace));
      const isGoing = home.metadata['deletionTimestamp'] !== undefined;
      if (isGoing && conditionsOf(home).length === 0) return 'not yet';
      return (await world.client.find(refOf(made))) ? undefined : 'not without it';
    },
    tells: false,
  };
  const place = { namespace: world.name('platform'), scope: 'cluster' as const };
  const operator = await inside(world, place, behaviour);
  if (field === undefined) {
    const [pod] = await world.client.list('v1', 'Pod', operator.namespace);
    await world.client.patch(refOf(made), {
      spec: { holderIdentity: `${pod?.metadata.name}_1`, renewTime: microTime() },
    });
  }
  const spec = field === undefined ? {} : { [field]: { name: 'creds' } };
  await createGuarded(world, operator, 'a', world.namespace, spec);
}

function leaseOf({ namespace }: World, name: string): JsonObject {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { namespace, name },
    spec: { leaseDurationSeconds: 15, acquireTime: microTime() },
  };
}

function microTime(): string {
  return new Date().toISOString().replace('Z', '000Z');
}

/** A controller that makes a child as long as nobody has asked its parent to go. */
function keepMaking(world: World, parent: Operator, name: string, child: Operator): void {
  const stop = new AbortController();
  world.atEnd(() => stop.abort());
  const ref = guardedRef(world, parent, name);
  void (async () => {
    while (!stop.signal.aborted) {
      const there = await world.client.find(ref).catch(() => undefined);
      if (there !== undefined && there.metadata['deletionTimestamp'] === undefined) {
        const owned = parent.kind === 'Kustomization' ? {} : { ownerReferences: [ownerOf(there)] };
        await world.client
          .create(
            customObject(apiVersionOf(child), child.kind, world.namespace, 'db', {
              finalizers: [child.finalizer].filter(Boolean),
              ...owned,
            }),
            { fieldManager: child.manager },
          )
          .catch(() => undefined);
      }
      await sleep(200, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  })();
}

/** The types whose objects an ordered deletion would delete first, in its order. */
async function typesInOrder(world: World): Promise<(string | undefined)[]> {
  const { result } = await gate(world, { forecast: 'true' });
  return (result.order ?? []).map(({ command }) => /^kubectl delete (\w+)\./.exec(command)?.[1]);
}

function ownerOf({ apiVersion, kind, metadata }: JsonObject): JsonObject {
  const { name, uid } = metadata as JsonObject;
  return { apiVersion, kind, name, uid, controller: true } as JsonObject;
}

function seen(world: World, operator: Operator, name: string): Promise<unknown> {
  return world.client.waitFor(guardedRef(world, operator, name), 'is there', Boolean);
}

function within(name: string, work: (world: World) => Promise<void>): Promise<void> {
  return clusters.use((cluster) => inNamespace({ ...cluster, namespace: `ordered-${name}` }, work));
}

async function leftIn(world: World): Promise<string[]> {
  if (world.plane === undefined) return [];
  return storedIn(world.plane, world.namespace);
}
