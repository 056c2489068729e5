import { configMap, customObject, customType, pod, secret, service, typeRef } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { tell } from '../servers/operator-process.ts';
import type { World } from '../world.ts';
import { deploymentRef, objectFinalizer, ownerMissing, podRef, ref, stuck } from './links.ts';
import {
  createGuarded,
  FULL,
  install,
  type Operator,
  operatorOf,
  rule,
  start,
} from './operator.ts';
import { settledWithPod } from './pods.ts';
import {
  GUARDED,
  guardedRef,
  heldBy,
  nobodyLeft,
  settledByFinalizer,
  situation,
  writesStatus,
} from './situation.ts';

/** A controller that should remove its finalizer, and why it does not: the everyday of it is in everyday.ts. */

const READDED =
  'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, ' +
  'found new finalizers []string{"widgets.example.com/again"}';
const PAUSED = { metadata: { annotations: { 'example.com/paused': 'true' } } };
const BUCKET = {
  group: 'buckets.example.org',
  kind: 'Bucket',
  finalizer: 'buckets.example.org/empty',
};
const preview = 'preview-seed-5c';

const situations: Scenario[] = [
  situation({
    id: 'S3',
    title: 'the Deployment of the operator is scaled to zero',
    operator: { replicas: 0 },
    owner: 'owner-scaled-to-zero',
  }),
  // A backup product protects what belongs to others; the operator of the type works on it as ever.
  situation({
    id: 'S61-alive',
    title: 'the backup operator runs; the operator of the type has 0 replicas',
    operator: {
      ...{ name: 'vault-backup', namespace: 'backup-system' },
      finalizer: 'backup.example.org/protect',
      rules: [
        rule('example.com', ['widgets'], FULL),
        rule('backup.example.org', ['backups'], FULL),
      ],
    },
    bystanders: [{ name: 'widget-operator', replicas: 0 }],
    afterwards: writesStatus({ conditions: [], phase: 'Ready' }, 'widget-operator'),
    owner: 'owner-running',
  }),
  situation({
    id: 'paused',
    title: 'an annotation tells the operator to leave the object alone',
    behaviour: {
      tells: false,
      cleanUp: ({ metadata }) =>
        JSON.stringify(metadata['annotations'] ?? {}).includes('"true"') ? 'paused' : undefined,
    },
    afterwards: (world, operator) => world.client.patch(guardedRef(world, operator), PAUSED),
    owner: { code: 'owner-not-acting', says: [/paus/i], advises: [/again/] },
  }),
  // The server's words, put into the status by hand: the bug is in no controller at hand.
  situation({
    id: 'S46',
    title: 'the controller tries to put its finalizer back on a terminating object',
    behaviour: { hangs: true },
    later: (world, operator) =>
      tell(
        world.client,
        operator,
        guardedRef(world, operator),
        `Widget "${GUARDED}" is invalid: ${READDED}`,
      ),
    owner: { code: 'owner-failing', says: [/no new finalizers can be added/] },
  }),
  // Nobody schedules its pod: the node that it needs is not there.
  situation({
    id: 'owner-not-ready',
    title: 'the Deployment of the operator wants one replica and has none ready',
    unscheduled: true,
    owner: 'owner-not-ready',
  }),
  situation({
    id: 'SEED-5c',
    title: 'one home-made operator fails its clean-up, another one is gone',
    behaviour: { cleanUp: () => 'cannot drop database: connection refused' },
    complains: true,
    afterwards: async (world) => {
      const { group, kind, finalizer } = BUCKET;
      await world.createType(customType({ group, kind }));
      await world.create(
        customObject(`${group}/v1`, kind, world.namespace, 'assets', { finalizers: [finalizer] }),
        { fieldManager: 'bucket-operator' },
      );
    },
    owner: { code: 'owner-failing', says: [/cannot drop database/] },
    beside: [
      [
        objectFinalizer(
          ref('buckets.example.org/v1', 'Bucket', preview, 'assets'),
          BUCKET.finalizer,
        ),
        ownerMissing(typeRef(BUCKET.group, BUCKET.kind), BUCKET.finalizer),
      ],
    ],
    beyondCommands: 'the database of the living operator is not in the cluster',
  }),
];

/** Whoever uninstalled it deleted the type as well. The type waits for its object. */
const crdTerminating: Scenario = {
  id: 'crd-terminating',
  title: 'the type of the held object is being deleted too',
  setUp: async (world) => {
    const { group, kind, finalizer } = operatorOf(world);
    await world.createNamespace();
    await world.createType(customType({ group, kind }));
    await world.create(
      customObject(`${group}/v1`, kind, world.namespace, GUARDED, { finalizers: [finalizer] }),
      { fieldManager: 'widget-controller' },
    );
    await world.client.delete(typeRef(group, kind));
    await world.terminating(guardedRef(world, operatorOf(world)));
  },
  settle: settledByFinalizer,
  expect: (world) => {
    const operator = operatorOf(world);
    return {
      ...stuck([heldBy(world, operator), nobodyLeft(operator)]),
      contributing: [{ code: 'crd-terminating', subject: typeRef(operator.group, operator.kind) }],
      also: ({ namespace }) => {
        const said = namespace.findings.some(({ code }) => code === 'crd-terminating');
        if (!said) throw new Error('nothing is said about the type being deleted');
      },
    };
  },
};

/** Only the cluster-scoped part of the operator outlives the namespace. */
const s4: Scenario = {
  id: 'S4',
  title: 'the operator was in the namespace and went first; its object is left',
  namespace: 'preview-pr-42',
  setUp: (world) => setUpPreview(world).then(() => {}),
  settle: settledByFinalizer,
  expect: (world) => {
    const operator = operatorOf(world);
    return { ...stuck([heldBy(world, operator), nobodyLeft(operator)]), deadlock: true };
  },
};

/** The operator guards the pod of its object too: everything else queues up behind that pod. */
const s4Queued: Scenario = {
  ...s4,
  id: 'S4-queued',
  title: 'the same, and its finalizer is on a pod too: 40 other objects are queued',
  inputs: { timeout: '15s' }, // the grace period of the pod has to end
  setUp: async (world) => {
    const operator = await setUpPreview(world);
    const guarded = podRef(world.namespace, 'db-0');
    await world.create(pod(world.namespace, guarded.name));
    const metadata = { finalizers: [operator.finalizer] };
    await world.client.patch(guarded, { metadata }, { fieldManager: operator.name });
    // A script that deletes the parts before the namespace, in the wrong order: the operator first.
    const workload = deploymentRef(world.namespace, operator.name);
    await world.client.delete(workload, { propagationPolicy: 'Foreground' });
    await world.gone(workload);
    await world.client.delete(guardedRef(world, operator));
  },
  settle: settledWithPod,
  expect: async (world) => {
    const operator = operatorOf(world);
    const { finalizer } = operator;
    const guarded = podRef(world.namespace, 'db-0');
    const expected = stuck(
      [heldBy(world, operator), nobodyLeft(operator)],
      [objectFinalizer(guarded, finalizer), ownerMissing(guarded, finalizer)],
    );
    const kinds = ['ConfigMap', 'Secret', 'Service', 'ServiceAccount'];
    const isQueued = await world.deletesPodsFirst();
    return { ...expected, deadlock: true, ...(isQueued ? { queued: { kinds } } : {}) };
  },
};

/** A preview environment: an operator, its object, and 40 ordinary things. */
async function setUpPreview(world: World): Promise<Operator> {
  const { namespace } = world;
  await world.createNamespace(undefined, { labels: { 'app.kubernetes.io/part-of': 'preview' } });
  const operator = await install(world, { scope: 'cluster' });
  await start(world, operator, { hangs: true });
  await createGuarded(world, operator, GUARDED);
  for (let index = 1; index <= 12; index++) {
    const name = `service-${index}`;
    await world.createAll([
      configMap(namespace, `${name}-settings`),
      secret(namespace, `${name}-credentials`),
      service(namespace, name, { selector: { app: name } }),
    ]);
  }
  return operator;
}

export const owners = [...situations, crdTerminating, s4, s4Queued];
