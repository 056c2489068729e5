import { setTimeout as sleep } from 'node:timers/promises';
import { configMap } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import {
  configMapRef,
  FINALIZERS,
  objectFinalizer,
  ownerUnknown,
  REMAINING,
  resourceType,
  stuck,
} from './links.ts';

/** Objects of which nobody removes the finalizer. */

const INVENTED = 'some.random/finalizer';

function inventedFinalizer(id: string, title: string, finalizer: string): Scenario {
  return {
    id,
    title,
    setUp: async (world) => {
      await world.createNamespace();
      await world.create(configMap(world.namespace, 'precious', { finalizers: [finalizer] }));
    },
    settle: (world) =>
      world.settled({
        [REMAINING]: ['True', /configmaps\. has 1 resource instances/],
        [FINALIZERS]: ['True', new RegExp(finalizer)],
      }),
    expect: (world) => {
      const held = configMapRef(world.namespace, 'precious');
      return stuck([
        objectFinalizer(held, finalizer),
        ownerUnknown(held, finalizer, { says: [/kubectl/] }),
      ]);
    },
  };
}

const s1 = inventedFinalizer('S1', 'a ConfigMap with a finalizer that nobody knows', INVENTED);
const seed5d = inventedFinalizer(
  'SEED-5d',
  'a ConfigMap with an invented finalizer, by a runbook reader',
  'example.invented/never-removed',
);

/** 80 ConfigMaps go one by one: it is slow, not stuck. */
const s43: Scenario = {
  id: 'S43',
  title: '80 objects whose finalizers a process removes one by one',
  setUp: async (world) => {
    await world.createNamespace();
    for (let index = 0; index < 80; index++) {
      await world.create(
        configMap(world.namespace, nthName(index), { finalizers: ['slow.example.com/cleanup'] }),
      );
    }
  },
  settle: (world) =>
    world.settled({ [FINALIZERS]: ['True', /slow\.example\.com\/cleanup in 80 resource/] }),
  meanwhile: async (world, gate) => {
    await gate.says(new RegExp(world.namespace));
    // The pace is the situation: some go during the time-out, and it is too short for all.
    for (let index = 0; index < 25; index++, await sleep(400)) {
      const held = configMapRef(world.namespace, nthName(index));
      await world.client.patch(held, { metadata: { finalizers: null } });
    }
  },
  expect: () => ({
    outcome: 'progressing',
    chains: [
      [
        {
          code: 'content-deleting',
          subject: resourceType('v1', 'configmaps'),
          says: [/\d+\D+\d+/],
        },
      ],
    ],
  }),
};

function nthName(index: number): string {
  return `item-${String(index).padStart(3, '0')}`;
}

export const finalizers = [s1, seed5d, s43];
