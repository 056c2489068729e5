import { arrayAt, type JsonObject, stringAt, stringsAt } from '../../../src/base/json.ts';
import { createWebhook, refusesUpdate, webhookRef } from '../admission.ts';
import { type KubeObject, type Ref, refOf } from '../client.ts';
import { pod, podSpec, volume, volumeClaim } from '../objects.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import { containerStatus, createDeadNode, startStandIn } from '../servers/stand-in.ts';
import { startWebhook } from '../servers/webhook.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import {
  CONTENT_FAILURE,
  FINALIZERS,
  objectFinalizer,
  ownerMissing,
  ownerUnknown,
  podRef,
  ref,
  statusSays,
  stuck,
} from './links.ts';

/** Pods, which go first since Kubernetes 1.33: while one remains, nothing else is even asked to go; and their volumes. */

const DUAL_PODS = 'dual-pods.llm-d.ai/provider';
const TRACKING = 'batch.kubernetes.io/job-tracking';
const VSPHERE = 'cns.vmware.com/pvc-protection';
const CLAIM = 'kubernetes.io/pvc-protection';
const nodeRef = (name: string): Ref => ({ apiVersion: 'v1', kind: 'Node', name });
const claimRef = ({ namespace }: World): Ref =>
  ref('v1', 'PersistentVolumeClaim', namespace, 'data');
const byDualPods = { fieldManager: 'dual-pods-controller' };

/** Conditions alone do not tell: before 1.33 they name the pod, since then they are green. */
export async function settledWithPod(world: World): Promise<void> {
  await world.settled();
  for (const { metadata } of await world.client.list('v1', 'Pod', world.namespace)) {
    await world.terminating(podRef(world.namespace, metadata.name));
  }
}

/** Overdue: the one second of grace is over, and the controller has noticed. */
export async function settledOverdue(world: World): Promise<void> {
  await world.settled({
    [CONTENT_FAILURE]: ['True', /unexpected items still remain .*Resource=pods/],
  });
  await waitUntil('its pods to be overdue', async () => {
    const pods = await world.client.list('v1', 'Pod', world.namespace);
    return pods.every((one) => isPast(stringAt(one, 'metadata', 'deletionTimestamp')));
  });
}

/** Since more than a second: the gate's last look is then later than the kubelet may take. */
const isPast = (at = ''): boolean => !(Date.parse(at) + 1_000 > Date.now());

const s5: Scenario = {
  id: 'S5',
  title: 'a pod with a finalizer whose controller was removed; all conditions are green',
  setUp: async (world) => {
    const held = podRef(world.namespace, 'provider-0');
    await world.createNamespace();
    await world.create(pod(world.namespace, held.name));
    await world.client.patch(held, { metadata: { finalizers: [DUAL_PODS] } }, byDualPods);
  },
  settle: settledWithPod,
  expect: ({ namespace }) => {
    const held = podRef(namespace, 'provider-0');
    return stuck([objectFinalizer(held, DUAL_PODS), ownerMissing(held, DUAL_PODS)]);
  },
};

/** On a node that is ready, and whose kubelet confirms no end. */
async function onReadyNode(world: World, name: string, graceSeconds: number): Promise<void> {
  const node = 'node-ready';
  await world.createNamespace();
  await startStandIn(world, { node, namespaces: [world.namespace], confirms: false });
  await world.create(pod(world.namespace, name, { nodeName: node, graceSeconds }));
}

const s30: Scenario = {
  id: 'S30',
  title: 'a pod with 600 s of grace on a ready node',
  setUp: (world) => onReadyNode(world, 'stubborn', 600),
  settle: settledWithPod,
  expect: ({ namespace }) => ({
    outcome: 'progressing',
    chains: [
      [{ code: 'pod-grace-period', subject: podRef(namespace, 'stubborn'), says: [/until/] }],
    ],
  }),
};

const seed5a: Scenario = {
  id: 'SEED-5a',
  title: 'an overdue pod on a ready node: the kubelet cannot finish it',
  setUp: (world) => onReadyNode(world, 'web-0', 1),
  settle: settledOverdue,
  expect: ({ namespace }) =>
    stuck([
      {
        code: 'pod-not-confirmed',
        subject: podRef(namespace, 'web-0'),
        advises: [/kubelet/],
      },
    ]),
};

export const lostNode = (node: string): Expectation =>
  stuck([{ code: 'pod-node-unavailable', subject: nodeRef(node), says: [/web-0|not ready/i] }]);

const s28: Scenario = {
  id: 'S28',
  title: 'an overdue pod on a node that is not ready',
  setUp: async (world) => {
    await world.createNamespace();
    await createDeadNode(world, 'node-dead');
    await world.create(pod(world.namespace, 'web-0', { nodeName: 'node-dead', graceSeconds: 1 }));
  },
  settle: settledOverdue,
  expect: () => lostNode('node-dead'),
};

/** Part of the control plane: this is how it appears where it runs as a static pod. */
const CONTROLLER_MANAGER = ref('v1', 'Pod', 'kube-system', 'kube-controller-manager');

/** The job controller would take its finalizer off a finished pod, and may not. */
const s21: Scenario = {
  id: 'S21',
  title: 'a webhook on pod UPDATE fails because its ServiceAccount is gone',
  identity: 'teardown-force', // may try the removal as a dry run: nobody else hears the refusal
  setUp: async (world) => {
    const { namespace } = world;
    const deny = 'serviceaccounts "workload" not found';
    await world.createNamespace();
    await startStandIn(world, { node: 'node-1', namespaces: [namespace] });
    const clientConfig = await startWebhook(world, () => deny);
    await world.create({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { namespace, name: 'migrate' },
      spec: { template: { spec: { ...podSpec(), restartPolicy: 'Never' } } },
    });
    const running = await waitUntil('the pod of the Job to run', async () => {
      const pods = await world.client.list('v1', 'Pod', namespace);
      return pods.find((one) => stringAt(one, 'status', 'phase') === 'Running');
    });
    const operations = ['CREATE', 'UPDATE'];
    await createWebhook(world, { operations, resource: 'pods', clientConfig });
    await refusesUpdate(world, refOf(running));
    await finish(world, running);
  },
  settle: settledWithPod,
  mayChange: () => [webhookRef()],
  expect: async (world) => {
    const [finished] = await world.client.list('v1', 'Pod', world.namespace);
    const subject = podRef(world.namespace, finished?.metadata.name ?? 'none');
    return stuck([
      objectFinalizer(subject, TRACKING),
      { code: 'owner-failing', subject: CONTROLLER_MANAGER, finalizer: TRACKING },
      {
        code: 'admission-denied',
        subject: webhookRef(),
        says: [/serviceaccounts "workload" not found/],
      },
    ]);
  },
};

/** As the kubelet reports it; from here on the job controller wants to let the pod go. */
async function finish(world: World, running: KubeObject): Promise<void> {
  await world.client.patchStatus(refOf(running), {
    phase: 'Succeeded',
    conditions: arrayAt(running, 'status', 'conditions'),
    containerStatuses: [containerStatus({ terminated: { exitCode: 0, reason: 'Completed' } })],
  });
}

/** Only since somebody deleted the claim itself is it a blocker; since 1.33 the namespace waits. */
const s25a: Scenario = {
  id: 'S25a',
  title: 'a claim, deleted before the namespace, is in use by a pod with a finalizer',
  setUp: async (world) => {
    const { namespace } = world;
    const held = { nodeName: 'node-ready', graceSeconds: 1, metadata: { finalizers: [DUAL_PODS] } };
    await world.createNamespace();
    await startStandIn(world, { node: 'node-ready', namespaces: [namespace] });
    await world.create(volumeClaim(namespace, 'data'));
    await world.create(pod(namespace, 'db-0', { ...held, claims: ['data'] }), byDualPods);
    await world.create(pod(namespace, 'web-0', held), byDualPods);
    await world.client.waitFor(claimRef(world), 'is protected', (found) =>
      stringsAt(found, 'metadata', 'finalizers').includes(CLAIM),
    );
    await world.client.delete(claimRef(world));
    await world.terminating(claimRef(world));
  },
  settle: settledWithPod,
  expect: (world) => {
    const held = podRef(world.namespace, 'db-0');
    const chain: Link[] = [objectFinalizer(held, DUAL_PODS), ownerUnknown(held, DUAL_PODS)];
    return stuck([{ code: 'volume-in-use', subject: claimRef(world) }, ...chain], chain);
  },
  mayChange: (world) => [podRef(world.namespace, 'web-0')],
};

const s26: Scenario = {
  id: 'S26',
  title: 'a claim with a finalizer of its driver, whose volume is still attached to a node',
  setUp: async (world) => {
    const { client, namespace } = world;
    const disk: JsonObject = { driver: 'csi.vsphere.vmware.com', volumeHandle: 'disk-1' };
    await world.createNamespace();
    await world.create(volume('pv-data', { namespace, name: 'data' }, { csi: disk }));
    await world.create(volumeClaim(namespace, 'data', { volumeName: 'pv-data' }));
    await statusSays(world, claimRef(world), 'is bound', '"Bound"');
    const finalizers = { metadata: { finalizers: [CLAIM, VSPHERE] } };
    await client.patch(claimRef(world), finalizers, { fieldManager: 'vsphere-syncer' });
    const attachment = await world.create({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name: 'csi-attachment', finalizers: ['external-attacher/csi-vsphere'] },
      spec: {
        attacher: 'csi.vsphere.vmware.com',
        nodeName: 'worker-3',
        source: { persistentVolumeName: 'pv-data' },
      },
    });
    await client.patchStatus(refOf(attachment), { attached: true });
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

export const pods = [s5, s30, seed5a, s28, s21, s25a, s26];
