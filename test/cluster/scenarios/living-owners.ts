import { byService, createWebhook, refusesUpdate, webhookRef } from '../admission.ts';
import { customObject, customType, typeRef } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import { type OperatorBehaviour, startOperatorProcess, tell } from '../servers/operator-process.ts';
import type { World } from '../world.ts';
import { deploymentRef, FINALIZERS, objectFinalizer, ownerMissing, ref } from './links.ts';
import {
  createGuarded,
  install,
  type Operator,
  type OperatorOptions,
  operatorOf,
} from './operator.ts';
import { held, startOperatorPod } from './owners.ts';

/** The owner is there, and yet the finalizer stays. */

const elsewhere = (world: World): OperatorOptions => ({
  namespace: world.name('widget-system'),
  scope: 'cluster',
});

const living = (world: World): Operator => operatorOf(world, elsewhere(world));

/** In a namespace of its own, Ready, with a guarded object in the namespace under test. */
async function installLiving(
  world: World,
  more: OperatorOptions = {},
  behaviour?: OperatorBehaviour,
): Promise<Operator> {
  const options = { ...elsewhere(world), ...more };
  await world.createNamespace();
  await world.createNamespace(options.namespace);
  const operator = await install(world, options);
  await startOperatorPod(world, operator);
  await createGuarded(world, operator, 'db');
  if (behaviour) await startOperatorProcess(world, operator, behaviour);
  return operator;
}

const owner = (
  world: World,
  code: Link['code'],
  words: Pick<Link, 'says' | 'advises'> = {},
): Link => ({
  code,
  subject: deploymentRef(world.name('widget-system'), 'widget-operator'),
  finalizer: living(world).finalizer,
  ...words,
});

/** Its complaint is in the object's status: from then on there is something to find. */
async function settledWithComplaint(world: World): Promise<void> {
  const { group, kind } = living(world);
  await world.settled({ [FINALIZERS]: ['True', /\/cleanup in/] });
  await world.client.waitFor(
    ref(`${group}/v1`, kind, world.namespace, 'db'),
    'complains',
    (object) => JSON.stringify(object?.['status'] ?? '').includes('CleanupFailed'),
  );
}

const s40: Scenario = {
  id: 'S40',
  title: 'the controller runs, but its ClusterRole lacks patch on the type',
  setUp: (world) => installLiving(world, { verbs: ['get', 'list', 'watch'] }, {}).then(() => {}),
  settle: settledWithComplaint,
  expect: (world) => ({
    outcome: 'stuck',
    chains: [
      [held(world, living(world)), owner(world, 'owner-failing', { says: [/forbidden|403/i] })],
    ],
  }),
};

const BACK_OFF_MS = 150_000;

const s42: Scenario = {
  id: 'S42',
  title: 'the controller runs and is in back-off; 60 s are too short',
  setUp: (world) => installLiving(world, {}, { afterMs: BACK_OFF_MS }).then(() => {}),
  settle: (world) => world.settled({ [FINALIZERS]: ['True', /\/cleanup in/] }),
  inputs: { timeout: '60s', 'fail-fast': 'true' },
  expect: (world) => ({
    outcome: 'stuck',
    chains: [[held(world, living(world)), owner(world, 'owner-running')]],
    also: ({ elapsedMs }) => {
      if (elapsedMs < 59_000) throw new Error(`ended after ${elapsedMs} ms: fail-fast has fired`);
    },
  }),
};

const s42Patient: Scenario = {
  ...s42,
  id: 'S42-patient',
  title: 'the controller runs and is in back-off; 5 minutes are enough',
  inputs: { timeout: '5m', 'fail-fast': 'true' },
  expect: () => ({ outcome: 'deleted' }),
};

const READDED =
  'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, ' +
  'found new finalizers []string{"widgets.example.com/again"}';

/** The server's words, put into the status by hand: the bug is in no controller at hand. */
const s46: Scenario = {
  id: 'S46',
  title: 'the controller tries to put its finalizer back on a terminating object',
  setUp: (world) => installLiving(world).then(() => {}),
  settle: async (world) => {
    const operator = living(world);
    await world.settled({ [FINALIZERS]: ['True', /\/cleanup in/] });
    await tell(world.client, operator, world.namespace, 'db', `Widget "db" is invalid: ${READDED}`);
  },
  expect: (world) => ({
    outcome: 'stuck',
    chains: [
      [
        held(world, living(world)),
        owner(world, 'owner-failing', { says: [/no new finalizers can be added/] }),
      ],
    ],
  }),
};

/** No stand-in: its pod is never scheduled. */
const notReady: Scenario = {
  id: 'owner-not-ready',
  title: 'the Deployment of the operator wants one replica and has none ready',
  setUp: async (world) => {
    const options = elsewhere(world);
    await world.createNamespace();
    await world.createNamespace(options.namespace);
    await createGuarded(world, await install(world, options), 'db');
  },
  settle: (world) => world.settled({ [FINALIZERS]: ['True', /\/cleanup in/] }),
  expect: (world) => ({
    outcome: 'stuck',
    chains: [[held(world, living(world)), owner(world, 'owner-not-ready')]],
  }),
};

const BUCKETS = 'buckets.example.org';

/** Two operators that somebody wrote: one fails its clean-up, the other was uninstalled. */
const seed5c: Scenario = {
  id: 'SEED-5c',
  title: 'one home-made operator fails its clean-up, another one is gone',
  setUp: async (world) => {
    await installLiving(world, {}, { cleanUp: () => 'cannot drop database: connection refused' });
    const group = world.domain(BUCKETS);
    await world.createType(customType({ group, kind: 'Bucket' }));
    await world.create(
      customObject(`${group}/v1`, 'Bucket', world.namespace, 'assets', {
        finalizers: [`${group}/empty`],
      }),
      { fieldManager: 'bucket-operator' },
    );
  },
  settle: settledWithComplaint,
  expect: (world) => {
    const group = world.domain(BUCKETS);
    const finalizer = `${group}/empty`;
    return {
      outcome: 'stuck',
      chains: [
        [
          held(world, living(world)),
          owner(world, 'owner-failing', { says: [/cannot drop database/] }),
        ],
        [
          objectFinalizer(ref(`${group}/v1`, 'Bucket', world.namespace, 'assets'), finalizer),
          ownerMissing(typeRef(group, 'Bucket'), finalizer),
        ],
      ],
    };
  },
};

const MUTATING = 'MutatingWebhookConfiguration';

/** Its own update is refused before it reaches the object. */
const seed5e: Scenario = {
  id: 'SEED-5e',
  title: 'a mutating webhook that an uninstall left behind refuses the removal of the finalizer',
  setUp: async (world) => {
    const operator = await installLiving(world, {}, {});
    await createWebhook(world, {
      kind: MUTATING,
      operations: ['UPDATE'],
      apiGroup: operator.group,
      resource: 'widgets',
      clientConfig: byService(world.name('uninstalled'), 'guard'),
    });
    await refusesUpdate(world, ref(`${operator.group}/v1`, 'Widget', world.namespace, 'db'));
  },
  settle: settledWithComplaint,
  expect: (world) => ({
    outcome: 'stuck',
    chains: [
      [
        held(world, living(world)),
        owner(world, 'owner-failing'),
        { code: 'admission-webhook-failing', subject: webhookRef(world, MUTATING) },
      ],
    ],
  }),
};

/** Whoever uninstalled it deleted the type as well. The type waits for its object. */
const crdTerminating: Scenario = {
  id: 'crd-terminating',
  title: 'the type of the held object is being deleted too',
  setUp: async (world) => {
    const group = world.domain('example.com');
    const finalizer = `widgets.${group}/cleanup`;
    await world.createNamespace();
    await world.createType(customType({ group, kind: 'Widget' }));
    await world.create(
      customObject(`${group}/v1`, 'Widget', world.namespace, 'db', { finalizers: [finalizer] }),
      { fieldManager: 'widget-controller' },
    );
    await world.client.delete(typeRef(group, 'Widget'));
    await world.terminating(ref(`${group}/v1`, 'Widget', world.namespace, 'db'));
  },
  settle: (world) => world.settled({ [FINALIZERS]: ['True', /\/cleanup in/] }),
  expect: (world) => {
    const group = world.domain('example.com');
    const finalizer = `widgets.${group}/cleanup`;
    const type = typeRef(group, 'Widget');
    return {
      outcome: 'stuck',
      chains: [
        [
          objectFinalizer(ref(`${group}/v1`, 'Widget', world.namespace, 'db'), finalizer),
          ownerMissing(type, finalizer),
        ],
      ],
      contributing: [{ code: 'crd-terminating', subject: type }],
      also: ({ namespace }) => {
        const said = namespace.findings.some(({ code }) => code === 'crd-terminating');
        if (!said) throw new Error('nothing is said about the type being deleted');
      },
    };
  },
};

export const livingOwners = [s40, s42, s42Patient, s46, notReady, seed5c, seed5e, crdTerminating];
