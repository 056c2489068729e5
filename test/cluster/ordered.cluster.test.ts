import { afterAll, describe, expect, test } from 'vitest';
import { stringAt } from '../../src/base/json.ts';
import { Clusters, foreignKubeconfig } from './clusters.ts';
import { storedIn } from './force-world.ts';
import { gate, guarded, inside, rootsOf } from './foresight.ts';
import { apiServiceRef } from './objects.ts';
import { DELETING_TIMEOUT } from './run-scenario.ts';
import { createGuarded } from './scenarios/operator.ts';
import { guardedRef } from './scenarios/situation.ts';
import {
  available,
  connect,
  discovered,
  EXTENSION_VERSION,
  register,
  startExtensionApi,
} from './servers/extension-api.ts';
import { inNamespace, namespaceRef, World } from './world.ts';

/** Hangs that `delete: true` makes and `delete: ordered` does not, and what a forecast must not call one. */
const clusters = new Clusters();
const CORE = { tags: 'core' };

describe.skipIf(foreignKubeconfig() !== undefined).concurrent('an ordered deletion', () => {
  afterAll(() => clusters.stop());

  test(
    'deletes the objects of an operator in the namespace first; an ordinary deletion hangs',
    CORE,
    async () => {
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
    },
  );

  test('says that an APIService whose backend is in the namespace has to be deleted first', async () => {
    await within('books', async (world) => {
      const { namespace } = world;
      const group = 'ledger.example.com';
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
            isGoing ||= method === 'DELETE' && !dryRun && path.endsWith(`/namespaces/${namespace}`);
          },
        },
      );
      expect(ordered.result).toMatchObject({
        outcome: 'stuck',
        deletions: [{ kind: 'Entry' }, { kind: 'Entry' }],
      });
      await world.client.delete(apiServiceRef(group, EXTENSION_VERSION));
      expect((await gate(world, { timeout: '120s' })).result.outcome).toBe('deleted');
    });
  });

  test('explains an object that remains while its operator runs, and continues', CORE, async () => {
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
  });

  test('asks nothing of an object that was made again after it was read', CORE, async () => {
    await within('made-again', async (world) => {
      const operator = await inside(world);
      await createGuarded(world, operator, 'a');
      let old: string | undefined;
      const { result } = await gate(
        world,
        { delete: 'ordered', timeout: '60s' },
        {
          beforeSend: async ({ method, path, dryRun }) => {
            if (method !== 'DELETE' || dryRun || !path.endsWith('/a') || old !== undefined) return;
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

  test('does not wait for what this identity may not delete, and says so', CORE, async () => {
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

  test('that is cancelled asks for nothing more', CORE, async () => {
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
    CORE,
    () =>
      clusters.use(async (cluster) => {
        const world = new World({ ...cluster, namespace: 'kube-system' });
        const named = { namespace: 'kube-public' };
        await expect(gate(world, { ...named, delete: 'ordered' })).rejects.toThrow('never deleted');
        expect((await gate(world, { ...named, forecast: 'true' })).result.outcome).toBe(
          'inconclusive',
        );
      }),
  );
});

function within(name: string, work: (world: World) => Promise<void>): Promise<void> {
  return clusters.use((cluster) => inNamespace({ ...cluster, namespace: `ordered-${name}` }, work));
}

async function leftIn(world: World): Promise<string[]> {
  if (world.plane === undefined) return [];
  return storedIn(world.plane, world.namespace);
}
