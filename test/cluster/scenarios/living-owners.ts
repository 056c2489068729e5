import { customObject, customType, typeRef } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { tell } from '../servers/operator-process.ts';
import { runPodsIn } from '../servers/stand-in.ts';
import { objectFinalizer, ownerMissing, ref, stuck } from './links.ts';
import {
  GUARDED,
  guardedRef,
  heldBy,
  owner,
  RIGHTS,
  releaseGuarded,
  settledByFinalizer,
  situation,
} from './situation.ts';

/** The owner is there, and yet the finalizer stays. */

const s40 = situation({
  id: 'S40',
  title: 'the controller runs, but its ClusterRole lacks patch on the type',
  operator: { verbs: ['get', 'list', 'watch'] },
  complains: true,
  owner: { code: 'owner-failing', says: [/forbidden|403/i] },
  mayChange: () => RIGHTS,
});

const READDED =
  'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, ' +
  'found new finalizers []string{"widgets.example.com/again"}';

/** The server's words, put into the status by hand: the bug is in no controller at hand. */
const s46 = situation({
  id: 'S46',
  title: 'the controller tries to put its finalizer back on a terminating object',
  behaviour: { hangs: true },
  settle: async (world, operator) => {
    await settledByFinalizer(world);
    const guarded = guardedRef(world, operator);
    await tell(world.client, operator, guarded, `Widget "${GUARDED}" is invalid: ${READDED}`);
  },
  owner: { code: 'owner-failing', says: [/no new finalizers can be added/] },
});

/** Nobody schedules its pod: the node that it needs is not there. */
const notReady = situation({
  id: 'owner-not-ready',
  title: 'the Deployment of the operator wants one replica and has none ready',
  unscheduled: true,
  owner: 'owner-not-ready',
  cure: (world, operator) => runPodsIn(world, operator.namespace),
});

const BUCKETS = 'buckets.example.org';

/** Two operators that somebody wrote: one fails its clean-up, the other was uninstalled. */
const seed5c = situation({
  id: 'SEED-5c',
  title: 'one home-made operator fails its clean-up, another one is gone',
  behaviour: { cleanUp: () => 'cannot drop database: connection refused' },
  complains: true,
  afterwards: async (world) => {
    const group = world.domain(BUCKETS);
    await world.createType(customType({ group, kind: 'Bucket' }));
    await world.create(
      customObject(`${group}/v1`, 'Bucket', world.namespace, 'assets', {
        finalizers: [`${group}/empty`],
      }),
      { fieldManager: 'bucket-operator' },
    );
  },
  expect: (world, operator) => {
    const group = world.domain(BUCKETS);
    const finalizer = `${group}/empty`;
    const bucket = ref(`${group}/v1`, 'Bucket', world.namespace, 'assets');
    return {
      chains: [
        [
          heldBy(world, operator),
          owner(operator, 'owner-failing', { says: [/cannot drop database/] }),
        ],
        [objectFinalizer(bucket, finalizer), ownerMissing(typeRef(group, 'Bucket'), finalizer)],
      ],
    };
  },
  cure: async (world, operator) => {
    await releaseGuarded(world, operator);
    const group = world.domain(BUCKETS);
    const bucket = ref(`${group}/v1`, 'Bucket', world.namespace, 'assets');
    await world.client.patch(bucket, { metadata: { finalizers: null } });
  },
  beyondCommands: 'the database of the living operator is not in the cluster',
});

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
  settle: settledByFinalizer,
  expect: (world) => {
    const group = world.domain('example.com');
    const finalizer = `widgets.${group}/cleanup`;
    const type = typeRef(group, 'Widget');
    return {
      ...stuck([
        objectFinalizer(ref(`${group}/v1`, 'Widget', world.namespace, 'db'), finalizer),
        ownerMissing(type, finalizer),
      ]),
      contributing: [{ code: 'crd-terminating', subject: type }],
      also: ({ namespace }) => {
        const said = namespace.findings.some(({ code }) => code === 'crd-terminating');
        if (!said) throw new Error('nothing is said about the type being deleted');
      },
    };
  },
};

export const livingOwners = [s40, s46, notReady, seed5c, crdTerminating];
