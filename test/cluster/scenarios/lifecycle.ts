import { setTimeout as sleep } from 'node:timers/promises';
import { arrayAt, stringsAt } from '../../../src/base/json.ts';
import { GREEN_CONDITIONS } from '../../stub/green-conditions.ts';
import { ApiError } from '../client.ts';
import { identitySubjects } from '../identities.ts';
import { configMap, grant, pod, RBAC, secret } from '../objects.ts';
import type { RunningGate, Scenario } from '../scenario.ts';
import { namespaceRef, type World } from '../world.ts';
import {
  configMapRef,
  FINALIZERS,
  namespaceFinalizer,
  objectFinalizer,
  ownerMissing,
  ownerUnknown,
  REMAINING,
  ref,
  resourceType,
  specFinalizer,
  stuck,
} from './links.ts';

/** What becomes of a namespace: it goes, it hangs by a finalizer that nobody knows, or it is not being deleted. */

const HELD = 'precious';
const UNTIL_WATCHED = 'tests.example.com/until-the-gate-looks';
const release = ({ client, namespace }: World, name: string): Promise<unknown> =>
  client.patch(configMapRef(namespace, name), { metadata: { finalizers: null } });

/**
 * Keeps the namespace until the gate has begun to wait, on a slow machine too: what then goes, goes
 * while somebody is watching.
 */
function holdUntilWatched(
  setUp: (world: World) => Promise<unknown>,
): Pick<Scenario, 'setUp' | 'settle'> & Required<Pick<Scenario, 'meanwhile'>> {
  return {
    setUp: async (world) => {
      await setUp(world);
      await world.create(configMap(world.namespace, HELD, { finalizers: [UNTIL_WATCHED] }));
    },
    settle: (world) => world.terminating(world.namespaceRef),
    meanwhile: async (world: World, gate: RunningGate) => {
      await gate.says(new RegExp(`${world.namespace}: terminating`));
      await release(world, HELD);
    },
  };
}

async function fillWithOrdinaryThings(world: World): Promise<void> {
  await world.createNamespace();
  await world.createAll([
    configMap(world.namespace, 'settings'),
    secret(world.namespace, 'credentials'),
    pod(world.namespace, 'web'), // unscheduled: no kubelet has to confirm
  ]);
}

const recreatable = holdUntilWatched((world) => world.createNamespace());

const goes: Scenario[] = [
  {
    id: 'deleted',
    title: 'goes by itself while the gate waits',
    ...holdUntilWatched(fillWithOrdinaryThings),
    inputs: { timeout: '60s' },
    expect: () => ({ outcome: 'deleted' }),
  },
  {
    id: 'deleted-by-gate',
    title: 'the gate asks for the deletion and waits',
    identity: 'teardown-gate',
    setUp: fillWithOrdinaryThings,
    delete: false,
    inputs: { delete: 'true', timeout: '60s' },
    expect: (world) => ({
      outcome: 'deleted',
      mutations: [`delete namespaces/${world.namespace}`],
    }),
  },
  {
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
  },
  {
    id: 'S50a',
    title: 'the name never existed',
    setUp: async () => {},
    delete: false,
    expect: () => ({ outcome: 'not-found' }),
  },
  {
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
  },
];

const INVENTED = 'some.random/finalizer';

const s1: Scenario = {
  id: 'S1',
  title: 'a ConfigMap with a finalizer that nobody knows',
  setUp: async (world) => {
    await world.createNamespace();
    await world.create(configMap(world.namespace, HELD, { finalizers: [INVENTED] }));
  },
  settle: (world) =>
    world.settled({
      [REMAINING]: ['True', /configmaps\. has 1 resource instances/],
      [FINALIZERS]: ['True', new RegExp(INVENTED)],
    }),
  expect: (world) => {
    const held = configMapRef(world.namespace, HELD);
    return stuck([
      objectFinalizer(held, INVENTED),
      ownerUnknown(held, INVENTED, { says: [/kubectl/] }),
    ]);
  },
};

const nth = (index: number): string => `item-${String(index).padStart(3, '0')}`;

const s43: Scenario = {
  id: 'S43',
  title: '80 objects whose finalizers a process removes one by one',
  setUp: async (world) => {
    await world.createNamespace();
    const finalizers = ['slow.example.com/cleanup'];
    for (let index = 0; index < 80; index++) {
      await world.create(configMap(world.namespace, nth(index), { finalizers }));
    }
  },
  settle: (world) =>
    world.settled({ [FINALIZERS]: ['True', /slow\.example\.com\/cleanup in 80 resource/] }),
  meanwhile: async (world, gate) => {
    await gate.says(new RegExp(world.namespace));
    // The pace is the situation: some go during the time-out, and it is too short for all.
    for (let index = 0; index < 25; index++, await sleep(400)) await release(world, nth(index));
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

/** The Role that lets the gate look is deleted with everything else in the namespace. */
const s51: Scenario = {
  id: 'S51',
  title: 'the RoleBinding of the identity was in the namespace: access vanishes while waiting',
  identity: 'teardown-guest',
  setUp: async (world) => {
    const { namespace } = world;
    await world.createNamespace();
    await world.createAll([
      configMap(namespace, HELD, { finalizers: [INVENTED] }),
      ...grant(
        { namespace, name: 'teardown', finalizers: [UNTIL_WATCHED] },
        identitySubjects('teardown-guest'),
        [
          { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] },
          { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list'] },
        ],
      ),
    ]);
  },
  settle: (world) => world.terminating(world.namespaceRef),
  meanwhile: async (world, gate) => {
    await gate.says(new RegExp(`${world.namespace}: terminating`));
    for (const kind of ['RoleBinding', 'Role']) {
      const granted = ref(`${RBAC}/v1`, kind, world.namespace, 'teardown');
      await world.client.patch(granted, { metadata: { finalizers: null } });
    }
  },
  inputs: { timeout: '20s' },
  expect: () => ({ outcome: 'inconclusive', notInspected: [/./] }),
};

/** The namespace's own two lists of finalizers; no condition covers them. */
const RANCHER = 'controller.cattle.io/namespace-auth';
const OPENSHIFT = 'openshift.io/origin';

const s34: Scenario = {
  id: 'S34',
  title: 'a finalizer of Rancher on the namespace, and no Rancher',
  setUp: (world) => world.createNamespace(undefined, { finalizers: [RANCHER] }).then(() => {}),
  // Its controller's part is done when it has taken "kubernetes" out: the conditions are green by then.
  settle: (world) =>
    world.namespaceIs(
      'has no spec.finalizers left',
      (namespace) => arrayAt(namespace, 'spec', 'finalizers').length === 0,
    ),
  expect: ({ namespaceRef: it }) =>
    stuck([namespaceFinalizer(it, RANCHER), ownerMissing(it, RANCHER)]),
};

const s37a: Scenario = {
  id: 'S37a',
  title: 'spec.finalizers with openshift.io/origin besides kubernetes',
  setUp: async (world) => {
    await world.createNamespace();
    await addSpecFinalizer(world, OPENSHIFT);
  },
  settle: lostKubernetes,
  expect: ({ namespaceRef: it }) =>
    stuck([specFinalizer(it, OPENSHIFT), ownerUnknown(it, OPENSHIFT, { advises: [/\/finalize/] })]),
};

/** Only /finalize can write this list, and only an Active namespace can get new entries. Without one: drops all foreign ones. */
export async function addSpecFinalizer(world: World, entry?: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const namespace = await world.client.get(world.namespaceRef);
    const list = stringsAt(namespace, 'spec', 'finalizers');
    const finalizers =
      entry === undefined ? list.filter((one) => one === 'kubernetes') : [...list, entry];
    const path = await world.client.pathOf(world.namespaceRef, 'finalize');
    const wanted = { ...namespace, spec: { finalizers } };
    const answer = await world.client.call('PUT', `${path}?fieldManager=kubectl`, wanted);
    if (answer.status === 200) return;
    if (attempt === 5) throw new ApiError('PUT /finalize', answer);
  }
}

/** Its controller has dropped its own entry; others are left. */
export function lostKubernetes(world: World): Promise<unknown> {
  return world.namespaceIs('has lost "kubernetes"', (namespace) => {
    const left = stringsAt(namespace, 'spec', 'finalizers');
    return left.length > 0 && !left.includes('kubernetes');
  });
}

/**
 * The namespace controller is off; in its stead all five conditions are written green, as the
 * controller manager. Everything can be read, and nothing that can be read holds it.
 */
const unexplained: Scenario = {
  id: 'unexplained',
  title: 'everything could be read and nothing explains it',
  own: { controllers: ['*', '-namespace-controller'] },
  setUp: (world) => world.createNamespace().then(() => {}),
  delete: async (world) => {
    const { client, namespace } = world;
    await world.deleteNamespace();
    // The publisher of root certificates and the ServiceAccount controller leave it alone by then.
    for (const kind of ['ConfigMap', 'ServiceAccount']) {
      for (const { metadata } of await client.list('v1', kind, namespace)) {
        await client.delete(ref('v1', kind, namespace, metadata.name));
      }
    }
    const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, '');
    const conditions = GREEN_CONDITIONS.map((one) => ({ ...one, lastTransitionTime }));
    const fieldManager = 'kube-controller-manager';
    await client.patchStatus(world.namespaceRef, { conditions }, { fieldManager });
  },
  expect: (world) => stuck([{ code: 'unexplained', subject: namespaceRef(world.namespace) }]),
  beyondCommands: 'nothing that can be read says what there is to do',
};

export const lifecycle = [...goes, s1, s43, s51, s34, s37a, unexplained];
