import { GREEN_CONDITIONS } from '../../stub/green-conditions.ts';
import { configMap, pod, secret } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { namespaceRef, type World } from '../world.ts';
import { holdUntilWatched } from './hold.ts';
import { stuck } from './links.ts';

/** What becomes of a namespace when nothing, or something other than a hang, happens. */

export const deleted: Scenario = {
  id: 'deleted',
  title: 'goes by itself while the gate waits',
  ...holdUntilWatched(fillWithOrdinaryThings),
  inputs: { timeout: '60s' },
  expect: () => ({ outcome: 'deleted' }),
};

export const deletedByGate: Scenario = {
  id: 'deleted-by-gate',
  title: 'the gate asks for the deletion and waits',
  identity: 'teardown-gate',
  setUp: fillWithOrdinaryThings,
  delete: false,
  inputs: { delete: 'true', timeout: '60s' },
  expect: (world) => ({ outcome: 'deleted', mutations: [`delete namespaces/${world.namespace}`] }),
};

const recreatable = holdUntilWatched((world) => world.createNamespace());

export const recreated: Scenario = {
  id: 'S48',
  title: 'goes and is created again with the same name while the gate waits',
  identity: 'teardown-waiter', // a watch would see the moment in between, and say "deleted"
  ...recreatable,
  inputs: { timeout: '60s' },
  meanwhile: async (world, gate) => {
    await recreatable.meanwhile(world, gate);
    await world.gone(world.namespaceRef, { everyMs: 5 });
    await world.createNamespace();
  },
  expect: () => ({ outcome: 'recreated', notInspected: [/point into/] }),
};

export const notFound: Scenario = {
  id: 'S50a',
  title: 'the name never existed',
  setUp: async () => {},
  delete: false,
  expect: () => ({ outcome: 'not-found' }),
};

export const notFoundIsAnError: Scenario = {
  id: 'S50a-error',
  title: 'the name never existed, and that is to be an error',
  setUp: async () => {},
  delete: false,
  inputs: { 'if-not-found': 'error' },
  expect: () => ({ outcome: 'not-found', exitCode: 1 }),
};

export const notTerminating: Scenario = {
  id: 'not-terminating',
  title: 'it exists and its deletion was not requested',
  setUp: (world) => world.createNamespace().then(() => {}),
  delete: false,
  inputs: { timeout: '10m' },
  expect: () => ({
    outcome: 'not-terminating',
    also: ({ elapsedMs }) => {
      if (elapsedMs > 60_000) throw new Error(`waited ${elapsedMs} ms for what nobody started`);
    },
  }),
};

/**
 * The namespace controller is off; in its stead all five conditions are written green, as the
 * controller manager. Everything can be read, and nothing that can be read holds it.
 */
export const unexplained: Scenario = {
  id: 'unexplained',
  title: 'everything could be read and nothing explains it',
  own: { controllers: ['*', '-namespace-controller'] },
  setUp: (world) => world.createNamespace().then(() => {}),
  delete: async (world) => {
    await world.deleteNamespace();
    await emptyByHand(world);
    await world.client.patchStatus(
      world.namespaceRef,
      { conditions: greenConditions() },
      { fieldManager: 'kube-controller-manager' },
    );
  },
  expect: (world) => stuck([{ code: 'unexplained', subject: namespaceRef(world.namespace) }]),
  beyondCommands: 'nothing that can be read says what there is to do',
  cure: async ({ plane }) => {
    await plane?.controllerManager.stop();
    await plane?.controllerManager.start(['*']);
  },
};

async function fillWithOrdinaryThings(world: World): Promise<void> {
  await world.createNamespace();
  await world.createAll([
    configMap(world.namespace, 'settings'),
    secret(world.namespace, 'credentials'),
    pod(world.namespace, 'web'), // unscheduled: no kubelet has to confirm
  ]);
}

/** The publisher of root certificates and the ServiceAccount controller leave it alone by then. */
async function emptyByHand({ client, namespace }: World): Promise<void> {
  for (const kind of ['ConfigMap', 'ServiceAccount']) {
    for (const object of await client.list('v1', kind, namespace)) {
      await client.delete({ apiVersion: 'v1', kind, namespace, name: object.metadata.name });
    }
  }
}

function greenConditions(): { [key: string]: string }[] {
  const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, '');
  return GREEN_CONDITIONS.map((condition) => ({ ...condition, lastTransitionTime }));
}

export const lifecycle = [
  deleted,
  deletedByGate,
  recreated,
  notFound,
  notFoundIsAnError,
  notTerminating,
  unexplained,
];
