import { type JsonObject, stringAt } from '../../../src/base/json.ts';
import { createWebhook, refusesDeletion, webhookRef } from '../admission.ts';
import type { Ref } from '../client.ts';
import { configMap, customObject, pod } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import { startStandIn } from '../servers/stand-in.ts';
import { startWebhook } from '../servers/webhook.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import {
  CONTENT_FAILURE,
  configMapRef,
  namespaceFinalizer,
  objectFinalizer,
  ownerUnknown,
  podRef,
  ref,
  stuck,
} from './links.ts';
import {
  FULL,
  install,
  type Operator,
  type OperatorOptions,
  operatorOf,
  rule,
  start,
  uninstall,
  workloadRef,
} from './operator.ts';
import { settledWithPod } from './pods.ts';
import {
  GUARDED,
  guardedRef,
  owner,
  release,
  restart,
  scaleUp,
  settledByFinalizer,
  situation,
} from './situation.ts';
import { claim, claimRef } from './volumes.ts';

/** Chains that leave the namespace, and hangs in which nobody is at fault who is near. */

const PROTECTION = 'kubernetes.io/pvc-protection';

/** A claim that a running pod uses, and that somebody has asked to go. */
async function createClaimInUse(world: World, confirms: boolean): Promise<void> {
  const node = world.name('node-ready');
  await world.createNamespace();
  await startStandIn(world, { node, namespaces: [world.namespace], confirms });
  await world.create(claim(world));
  const options = { nodeName: node, graceSeconds: 1, claims: ['data'] };
  await world.create(pod(world.namespace, 'db-0', options));
  await world.client.waitFor(claimRef(world), 'is protected', (found) =>
    JSON.stringify(found?.metadata['finalizers'] ?? []).includes(PROTECTION),
  );
  await world.client.waitFor(
    podRef(world.namespace, 'db-0'),
    'runs',
    (found) => stringAt(found, 'status', 'phase') === 'Running',
  );
  await world.client.delete(claimRef(world));
  await world.terminating(claimRef(world));
}

const inactive = (world: World): Link => ({
  code: 'namespace-controller-inactive',
  subject: world.namespaceRef,
});

/** Every controller of kube-controller-manager died with it, not only the one of namespaces. */
const s75: Scenario = {
  id: 'S75',
  title: 'kube-controller-manager dies after its first pass; a claim waits for it',
  own: 'new',
  setUp: (world) => createClaimInUse(world, false),
  settle: async (world) => {
    await settledWithPod(world);
    await world.plane?.controllerManager.stop();
    // The kubelet confirms that the pod has ended.
    await world.client.delete(podRef(world.namespace, 'db-0'), { gracePeriodSeconds: 0 });
    await world.leaderLeaseExpires();
  },
  expect: (world) => ({
    outcome: 'stuck',
    anyOf: [
      { chains: [[inactive(world)]] },
      { chains: [[objectFinalizer(claimRef(world), PROTECTION), inactive(world)]] },
      {
        chains: [
          [inactive(world)],
          [objectFinalizer(claimRef(world), PROTECTION), inactive(world)],
        ],
      },
    ],
    never: [{ code: 'owner-running' }],
  }),
  cure: (world) => startControllers(world),
  beyondCommands: 'kube-controller-manager has to be started where it runs',
};

async function startControllers({ plane }: World): Promise<void> {
  await plane?.controllerManager.stop();
  await plane?.controllerManager.start(['*']);
}

const tenants = (replicas: number): OperatorOptions => ({
  kind: 'Tenant',
  name: 'tenant-operator',
  scope: 'cluster',
  replicas,
  type: { scope: 'Cluster' },
});

const tenantRef = (world: World, { group }: Operator): Ref => ({
  apiVersion: `${group}/v1`,
  kind: 'Tenant',
  name: world.name('acme'),
});

/** The garbage collector hears of new types every 30 s: when it collects one, it knows the type. */
async function collectorKnows(world: World, type: { apiVersion: string; kind: string }) {
  const make = async (name: string, ownerReferences: JsonObject[]) =>
    world.create({ ...type, metadata: { name: world.name(name), ownerReferences } });
  const parent = await make('probe', []);
  const uid = parent.metadata['uid'] ?? null;
  const child = await make('probe-child', [{ ...type, name: parent.metadata.name, uid }]);
  await world.client.delete({ ...type, name: parent.metadata.name });
  await world.gone({ ...type, name: child.metadata.name }, { timeoutMs: 90_000 });
}

function dependentOfNamespace(
  id: string,
  title: string,
  replicas: number,
  code: Link['code'],
): Scenario {
  const ours = (world: World): OperatorOptions => ({
    ...tenants(replicas),
    namespace: world.name('tenant-system'),
  });
  return {
    id,
    title,
    setUp: async (world) => {
      const namespace = await world.createNamespace();
      await world.createNamespace(world.name('tenant-system'));
      const operator = await install(world, ours(world));
      await start(world, operator, { hangs: true });
      const { apiVersion, kind, name } = tenantRef(world, operator);
      await collectorKnows(world, { apiVersion, kind });
      const uid = namespace.metadata['uid'] ?? null;
      await world.create(
        {
          apiVersion,
          kind,
          metadata: {
            name,
            finalizers: [operator.finalizer],
            ownerReferences: [
              {
                apiVersion: 'v1',
                kind: 'Namespace',
                name: world.namespace,
                uid,
                blockOwnerDeletion: true,
              },
            ],
          },
        },
        { fieldManager: operator.manager },
      );
      await collectorKnows(world, { apiVersion, kind }); // what was made before its probe, too
    },
    delete: (world) => world.client.delete(world.namespaceRef, { propagationPolicy: 'Foreground' }),
    settle: async (world) => {
      await world.terminating(tenantRef(world, operatorOf(world, ours(world))));
      await world.settled();
    },
    expect: (world) => {
      const operator = operatorOf(world, ours(world));
      return stuck([
        namespaceFinalizer(world.namespaceRef, 'foregroundDeletion'),
        objectFinalizer(tenantRef(world, operator), operator.finalizer),
        owner(operator, code),
      ]);
    },
    cure: async (world) => {
      const operator = operatorOf(world, ours(world));
      await (replicas === 0 ? scaleUp(world, operator) : restart(world, operator));
    },
  };
}

const s76 = dependentOfNamespace(
  'S76',
  'deleted in the foreground: a cluster-scoped dependent is held, its operator has 0 replicas',
  0,
  'owner-scaled-to-zero',
);
const s76Alive = dependentOfNamespace(
  'S76-alive',
  'the same, and the operator of the dependent runs',
  1,
  'owner-running',
);

const disks = (world: World): OperatorOptions => ({
  group: 'disks.example.org',
  kind: 'Disk',
  namespace: world.name('disk-system'),
  scope: 'cluster',
  replicas: 0,
});

/** The operator of the parent does what it should: it waits for what the parent owns. */
const s76Children = situation({
  id: 'S76-children',
  title: 'a parent waits for its child, whose operator has 0 replicas',
  operator: (world) => ({
    rules: [
      { apiGroups: [world.domain('example.com')], resources: ['*'], verbs: ['*'] },
      { apiGroups: [world.domain('disks.example.org')], resources: ['*'], verbs: ['list'] },
    ],
  }),
  behaviour: {
    tells: false,
    cleanUp: async ({ metadata }, client, { group }) => {
      const disk = group.replace('example.com', 'disks.example.org');
      const left = await client.list(`${disk}/v1`, 'Disk', metadata.namespace);
      return left.length > 0 ? 'waits for its disks' : undefined;
    },
  },
  afterwards: async (world, operator) => {
    await world.createNamespace(world.name('disk-system'));
    const diskOperator = await install(world, disks(world));
    await start(world, diskOperator);
    const parent = await world.client.get(guardedRef(world, operator));
    const { apiVersion, kind, metadata } = parent;
    await world.create(
      customObject(`${diskOperator.group}/v1`, 'Disk', world.namespace, `${GUARDED}-data`, {
        finalizers: [diskOperator.finalizer],
        ownerReferences: [
          {
            apiVersion,
            kind,
            name: metadata.name,
            uid: metadata['uid'] ?? null,
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      }),
      { fieldManager: diskOperator.manager },
    );
  },
  expect: (world) => ({
    chains: 'any',
    rootCauses: [owner(operatorOf(world, disks(world)), 'owner-scaled-to-zero')],
  }),
  cure: (world) => scaleUp(world, operatorOf(world, disks(world))),
});

/** The pod must not lose its volume: what holds the claim is right. */
const keepsProtection: Pick<Awaited<ReturnType<Scenario['expect']>>, 'chains' | 'also'> = {
  chains: 'any',
  also: ({ namespace }) => {
    const wrong = namespace.findings
      .flatMap(({ remedies }) => remedies)
      .filter(({ text, command = '' }) => /pvc-protection/.test(text + command));
    if (wrong.length > 0) throw new Error(`would lose data: ${JSON.stringify(wrong)}`);
  },
};

const s77: Scenario = {
  id: 'S77',
  title: 'a claim is in use by a running pod whose deletion a live webhook denies',
  setUp: async (world) => {
    await createClaimInUse(world, true);
    const clientConfig = await startWebhook(world, () => ({ deny: 'db-0 is the primary' }));
    await createWebhook(world, { operations: ['DELETE'], resource: 'pods', clientConfig });
    await refusesDeletion(world, podRef(world.namespace, 'db-0'));
  },
  settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /is the primary/] }),
  expect: (world) => ({
    outcome: 'stuck',
    ...keepsProtection,
    rootCauses: [{ code: 'admission-denied', subject: webhookRef(world) }],
  }),
  cure: (world) => world.client.delete(webhookRef(world)),
  beyondCommands: 'the owner of the webhook has to let it through',
};

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

const TWO = ['one.example.org/hold', 'two.example.net/hold'];

const several = (id: string, title: string, finalizers: readonly string[]): Scenario => ({
  id,
  title,
  setUp: async (world) => {
    await world.createNamespace();
    await world.create(configMap(world.namespace, 'precious', { finalizers: [...finalizers] }));
  },
  settle: settledByFinalizer,
  expect: (world) => {
    const held = configMapRef(world.namespace, 'precious');
    return {
      outcome: 'stuck',
      chains: [...new Set(finalizers)].map((finalizer) => [
        objectFinalizer(held, finalizer),
        ownerUnknown(held, finalizer),
      ]),
    };
  },
  cure: (world) => release(world, configMapRef(world.namespace, 'precious')),
});

const s84 = several('S84', 'two finalizers on one object, and nobody knows either', TWO);

const HOLD = 'hold.example.net/by-hand';

const s84Half = situation({
  id: 'S84-half',
  title: 'of two finalizers on one object one has an owner that runs, the other has nobody',
  behaviour: { hangs: true },
  afterwards: (world, operator) =>
    world.client.patch(guardedRef(world, operator), {
      metadata: { finalizers: [operator.finalizer, HOLD] },
    }),
  expect: (world, operator) => {
    const guarded = guardedRef(world, operator);
    return {
      chains: [
        [objectFinalizer(guarded, operator.finalizer), owner(operator, 'owner-running')],
        [objectFinalizer(guarded, HOLD), ownerUnknown(guarded, HOLD)],
      ],
    };
  },
  cure: async (world, operator) => {
    const finalizers = [operator.finalizer];
    await world.client.patch(guardedRef(world, operator), { metadata: { finalizers } });
    await restart(world, operator);
  },
  beyondCommands: 'the stand-in of the operator hangs until it is restarted',
});

export const beyond = [
  s75,
  s76,
  s76Alive,
  s76Children,
  s77,
  s83,
  s83Asleep,
  snapshotted(
    'claim-snapshotted',
    'a claim is the source of a snapshot that is not taken yet',
    false,
  ),
  snapshotted('claim-of-a-snapshot', 'a claim was the source of a snapshot that is taken', true),
  s84,
  s84Half,
];
