import type { Ref } from '../client.ts';
import { customObject } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ref } from './links.ts';
import {
  FULL,
  install,
  type OperatorOptions,
  operatorOf,
  rule,
  start,
  uninstall,
  workloadRef,
} from './operator.ts';
import { owner, release, scaleUp, settledByFinalizer } from './situation.ts';

const SNAPSHOTS = 'snapshot.storage.k8s.io';
const BOUND = 'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection';
const CONTENT_BOUND = 'snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection';

/** Groups of Kubernetes ask for it. */
const APPROVED = {
  annotations: {
    'api-approved.kubernetes.io': 'https://github.com/kubernetes-csi/external-snapshotter/pull/814',
  },
};

const snapshotController = (replicas = 1): OperatorOptions => ({
  group: SNAPSHOTS,
  ownGroup: false,
  kind: 'VolumeSnapshot',
  name: 'snapshot-controller',
  namespace: 'kube-system',
  scope: 'cluster',
  replicas,
  finalizer: BOUND,
  type: { metadata: APPROVED },
  rules: [{ apiGroups: [SNAPSHOTS], resources: ['*'], verbs: ['*'] }],
});

/** A side-car of the driver's controller does the work on the storage. */
const driver = (replicas = 1): OperatorOptions => ({
  group: SNAPSHOTS,
  ownGroup: false,
  kind: 'VolumeSnapshotContent',
  name: 'disk-csi-controller',
  namespace: 'disk-csi',
  scope: 'cluster',
  replicas,
  manager: 'csi-snapshotter',
  finalizer: CONTENT_BOUND,
  type: { scope: 'Cluster', metadata: APPROVED },
  container: { name: 'csi-snapshotter', args: ['--csi-address=/csi/csi.sock'] },
  rules: [
    rule(
      SNAPSHOTS,
      ['volumesnapshotcontents', 'volumesnapshotcontents/status'],
      ['get', 'list', 'watch', 'update', 'patch'],
    ),
  ],
});

const contentRef = { apiVersion: `${SNAPSHOTS}/v1`, kind: 'VolumeSnapshotContent', name: 'snap-1' };
const snapshotRef = (world: World): Ref =>
  ref(`${SNAPSHOTS}/v1`, 'VolumeSnapshot', world.namespace, 'nightly');

async function createSnapshot(
  world: World,
  options: OperatorOptions,
  readyToUse = true,
): Promise<void> {
  const { client } = world;
  await world.createNamespace();
  await world.createNamespace('disk-csi');
  const controller = await install(world, options);
  await start(world, controller, {
    tells: false,
    cleanUp: async (_, as) => {
      if ((await as.find(contentRef)) === undefined) return undefined;
      await as.delete(contentRef);
      return 'waits for its content';
    },
  });
  await start(world, await install(world, driver()), {});
  await world.create(
    {
      ...contentRef,
      metadata: { name: contentRef.name, finalizers: [CONTENT_BOUND] },
      spec: {
        driver: 'disk.csi.example.com',
        deletionPolicy: 'Delete',
        source: { volumeHandle: 'disk-1' },
        volumeSnapshotRef: { ...snapshotRef(world) },
      },
    },
    { fieldManager: 'snapshot-controller' },
  );
  await client.patchStatus(
    contentRef,
    { readyToUse: true, snapshotHandle: 'snap-1' },
    { fieldManager: 'csi-snapshotter' },
  );
  await world.create(
    {
      ...customObject(`${SNAPSHOTS}/v1`, 'VolumeSnapshot', world.namespace, 'nightly', {
        finalizers: [BOUND],
      }),
      spec: { source: { persistentVolumeClaimName: 'data' } },
    },
    { fieldManager: 'snapshot-controller' },
  );
  await client.patchStatus(
    snapshotRef(world),
    {
      boundVolumeSnapshotContentName: contentRef.name,
      readyToUse,
      ...(readyToUse && { creationTime: '2026-01-01T00:00:00Z' }),
    },
    { fieldManager: 'snapshot-controller' },
  );
}

function snapshotChains(world: World, ...end: Link[]) {
  const snapshot = objectFinalizer(snapshotRef(world), BOUND);
  const content = objectFinalizer(contentRef, CONTENT_BOUND);
  const between = owner(operatorOf(world, snapshotController()), 'owner-running');
  return {
    anyOf: [
      { chains: [[snapshot, content, ...end]] },
      { chains: [[snapshot, between, content, ...end]] },
    ],
  };
}

const settledWithContent = async (world: World): Promise<void> => {
  await settledByFinalizer(world);
  await world.terminating(contentRef);
};

const s83: Scenario = {
  id: 'S83',
  title: 'a VolumeSnapshot waits for its content, and the driver that should remove it is gone',
  own: true,
  setUp: async (world) => {
    await createSnapshot(world, snapshotController());
    await uninstall(world, operatorOf(world, driver()));
  },
  settle: settledWithContent,
  expect: (world) => ({
    outcome: 'stuck',
    ...snapshotChains(world, {
      code: ['owner-missing', 'owner-unknown'],
      subject: 'any',
      finalizer: CONTENT_BOUND,
    }),
  }),
  cure: (world) => release(world, contentRef),
};

const s83Asleep: Scenario = {
  ...s83,
  id: 'S83-asleep',
  title: 'the same, and the driver has 0 replicas',
  setUp: async (world) => {
    await createSnapshot(world, snapshotController());
    const workload = workloadRef(operatorOf(world, driver()));
    await world.client.patch(workload, { spec: { replicas: 0 } });
    await waitUntil('the pod of the driver to go', async () => {
      const pods = await world.client.list('v1', 'Pod', 'disk-csi');
      return pods.length === 0;
    });
  },
  expect: (world) => ({
    outcome: 'stuck',
    ...snapshotChains(world, owner(operatorOf(world, driver()), 'owner-scaled-to-zero')),
  }),
  cure: (world) => scaleUp(world, operatorOf(world, driver())),
};

const SOURCE = 'snapshot.storage.kubernetes.io/pvc-as-source-protection';
const dataClaim = (world: World): Ref =>
  ref('v1', 'PersistentVolumeClaim', world.namespace, 'data');

/** The controller keeps a claim until its snapshots are taken; here it hangs, and they are or are not. */
const snapshotted = (id: string, title: string, isTaken: boolean): Scenario => ({
  ...s83Asleep,
  id,
  title,
  setUp: async (world) => {
    const controller = snapshotController();
    const rules = [...(controller.rules ?? []), rule('', ['persistentvolumeclaims'], FULL)];
    await createSnapshot(world, { ...controller, rules }, isTaken);
    await world.create(
      {
        ...dataClaim(world),
        metadata: { namespace: world.namespace, name: 'data', finalizers: [SOURCE] },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
      { fieldManager: 'snapshot-controller' },
    );
    const workload = workloadRef(operatorOf(world, driver()));
    await world.client.patch(workload, { spec: { replicas: 0 } });
  },
  expect: (world) => {
    const claim = objectFinalizer(dataClaim(world), SOURCE);
    const hang = {
      ...owner(operatorOf(world, snapshotController()), 'owner-running'),
      finalizer: SOURCE,
    };
    const rest = [
      objectFinalizer(snapshotRef(world), BOUND),
      objectFinalizer(contentRef, CONTENT_BOUND),
      owner(operatorOf(world, driver()), 'owner-scaled-to-zero'),
    ];
    return { outcome: 'stuck', chains: [[claim, ...(isTaken ? [hang] : rest)], rest] };
  },
  cure: async (world) => {
    await release(world, contentRef);
    await release(world, dataClaim(world));
  },
  beyondCommands: 'the stand-in of the snapshot controller releases no claim',
});

export const beyond = [
  s83,
  s83Asleep,
  snapshotted('claim-of-a-snapshot', 'a claim was the source of a snapshot that is taken', true),
];
