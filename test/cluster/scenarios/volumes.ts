import { type JsonObject, stringsAt } from '../../../src/base/json.ts';
import { refOf } from '../client.ts';
import { pod, volume, volumeClaim, workload } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import { createDeadNode, startStandIn } from '../servers/stand-in.ts';
import type { World } from '../world.ts';
import { holdUntilWatched } from './hold.ts';
import {
  FINALIZERS,
  objectFinalizer,
  ownerMissing,
  ownerUnknown,
  podRef,
  ref,
  statusSays,
  stuck,
} from './links.ts';
import { settledWithPod } from './pods.ts';
import { nodeRef, settledOverdue } from './pods-and-nodes.ts';

/** Claims, volumes and what is attached. */

const POD_FINALIZER = 'dual-pods.llm-d.ai/provider';
const VSPHERE = 'cns.vmware.com/pvc-protection';

export const claimRef = (world: World) =>
  ref('v1', 'PersistentVolumeClaim', world.namespace, 'data');

export const claim = (world: World, volumeName?: string, finalizers: string[] = []): JsonObject =>
  volumeClaim(world.namespace, 'data', volumeName === undefined ? {} : { volumeName }, {
    finalizers,
  });

const diskOf = (world: World, finalizers: string[] = []): JsonObject =>
  volume(
    world.name('pv-data'),
    { namespace: world.namespace, name: 'data' },
    { csi: { driver: 'csi.vsphere.vmware.com', volumeHandle: 'disk-1' } },
    { finalizers },
  );

const volumeRef = (world: World) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  name: world.name('pv-data'),
});

async function createUsedClaim(world: World): Promise<void> {
  const node = world.name('node-ready');
  await world.createNamespace();
  await startStandIn(world, { node, namespaces: [world.namespace] });
  await world.create(claim(world));
  await world.create(
    pod(world.namespace, 'db-0', {
      nodeName: node,
      graceSeconds: 1,
      claims: ['data'],
      metadata: { finalizers: [POD_FINALIZER] },
    }),
    { fieldManager: 'dual-pods-controller' },
  );
  await world.create(
    pod(world.namespace, 'web-0', {
      ...{ nodeName: node, graceSeconds: 1 },
      metadata: { finalizers: [POD_FINALIZER] },
    }),
    { fieldManager: 'dual-pods-controller' },
  );
  await world.client.waitFor(claimRef(world), 'is protected', (found) =>
    JSON.stringify(found?.metadata['finalizers'] ?? []).includes('pvc-protection'),
  );
}

function podChain(world: World) {
  const held = podRef(world.namespace, 'db-0');
  return [objectFinalizer(held, POD_FINALIZER), ownerUnknown(held, POD_FINALIZER)];
}

function bothChains(world: World) {
  return [
    [{ code: 'volume-in-use' as const, subject: claimRef(world) }, ...podChain(world)],
    podChain(world),
  ];
}

/** Only since somebody deleted the claim itself is it a blocker; since 1.33 the namespace waits. */
const s25a: Scenario = {
  id: 'S25a',
  title: 'a claim, deleted before the namespace, is in use by a pod with a finalizer',
  setUp: async (world) => {
    await createUsedClaim(world);
    await world.client.delete(claimRef(world));
    await world.terminating(claimRef(world));
  },
  settle: settledWithPod,
  expect: (world) => ({ outcome: 'stuck', chains: bothChains(world) }),
  mayChange: (world) => [podRef(world.namespace, 'web-0')],
};

/** As a StatefulSet whose claims are deleted with it, deleted by `kubectl delete --cascade=foreground`. */
const foregroundSet: Scenario = {
  id: 'claim-of-foreground-set',
  title:
    'a StatefulSet deleted in the foreground owns a pod on a dead node, and the claim of that pod',
  versions: ['1.36.3'],
  setUp: async (world) => {
    const { client, namespace } = world;
    const node = world.name('node-dead');
    await world.createNamespace();
    await createDeadNode(world, node);
    const set = await world.create(workload('StatefulSet', namespace, 'db', { replicas: 0 }));
    const reference = { ...refOf(set), uid: set.metadata['uid'] ?? '', blockOwnerDeletion: true };
    const { namespace: _, ...owner } = reference;
    const metadata = { ownerReferences: [owner] };
    await world.create(claim(world));
    await client.patch(claimRef(world), { metadata });
    await client.waitFor(claimRef(world), 'is protected', (found) =>
      JSON.stringify(found?.metadata['finalizers'] ?? []).includes('pvc-protection'),
    );
    await world.create(
      pod(namespace, 'db-0', { nodeName: node, graceSeconds: 1, claims: ['data'], metadata }),
    );
    await client.delete(refOf(set), { propagationPolicy: 'Foreground' });
    await world.terminating(claimRef(world));
  },
  settle: settledOverdue,
  expect: (world) => {
    const lost: Link = { code: 'pod-node-unavailable', subject: nodeRef(world, 'node-dead') };
    const set = ref('apps/v1', 'StatefulSet', world.namespace, 'db');
    return {
      outcome: 'stuck',
      chains: [
        [objectFinalizer(set, 'foregroundDeletion'), lost],
        [
          objectFinalizer(set, 'foregroundDeletion'),
          { code: 'volume-in-use', subject: claimRef(world) },
          lost,
        ],
        [{ code: 'volume-in-use', subject: claimRef(world) }, lost],
        [lost],
      ],
    };
  },
};

const s26: Scenario = {
  id: 'S26',
  title: 'a claim with a finalizer of its driver, whose volume is still attached to a node',
  setUp: async (world) => {
    await world.createNamespace();
    await world.create(diskOf(world));
    await world.create(claim(world, world.name('pv-data'), []));
    await statusSays(world, claimRef(world), 'is bound', '"Bound"');
    const finalizers = ['kubernetes.io/pvc-protection', VSPHERE];
    await world.client.patch(
      claimRef(world),
      { metadata: { finalizers } },
      { fieldManager: 'vsphere-syncer' },
    );
    const attachment = await world.create({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: {
        name: world.name('csi-attachment'),
        finalizers: ['external-attacher/csi-vsphere'],
      },
      spec: {
        attacher: 'csi.vsphere.vmware.com',
        nodeName: 'worker-3',
        source: { persistentVolumeName: world.name('pv-data') },
      },
    });
    await world.client.patchStatus(refOf(attachment), { attached: true });
  },
  settle: async (world) => {
    await world.settled({ [FINALIZERS]: ['True', /cns\.vmware\.com/] });
    await world.client.waitFor(
      claimRef(world),
      'is left by its protection controller',
      (found) => found !== undefined && stringsAt(found, 'metadata', 'finalizers').length === 1,
    );
  },
  expect: (world) =>
    stuck([objectFinalizer(claimRef(world), VSPHERE), ownerMissing(claimRef(world), VSPHERE)]),
};

const s27: Scenario = {
  id: 'S27',
  title: 'a PersistentVolume stays, the namespace goes',
  ...holdUntilWatched(async (world) => {
    await world.createNamespace();
    await world.create(diskOf(world, ['external-attacher/csi-vsphere']));
    await world.create(claim(world, world.name('pv-data')));
    await statusSays(world, claimRef(world), 'is bound', '"Bound"');
    await world.client.delete(volumeRef(world));
  }),
  inputs: { timeout: '60s' },
  expect: () => ({
    outcome: 'deleted',
    also: async ({ world }) => {
      await world.client.get(volumeRef(world)); // it is still there, and that changed nothing
    },
  }),
};

export const volumes = [s25a, foregroundSet, s26, s27];
