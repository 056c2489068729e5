import { type JsonObject, stringAt } from '../../../src/base/json.ts';
import { createPolicy, endIsRefused, refusesEnd } from '../admission.ts';
import { refOf } from '../client.ts';
import { service } from '../objects.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import {
  bind,
  createDeadNode,
  runningStatus,
  runPodsIn,
  startStandIn,
} from '../servers/stand-in.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { ownerUnknown, podRef, ref, stuck } from './links.ts';
import { type Operator, workloadRef } from './operator.ts';
import { owner, release, type Step, settledByFinalizer, situation } from './situation.ts';
import { createLease } from './traces.ts';
import { deadInjector, injector } from './why.ts';

const BALANCER = 'service.kubernetes.io/load-balancer-cleanup';
const webRef = (world: World) => ref('v1', 'Service', world.namespace, 'web');

async function createBalancer(world: World): Promise<void> {
  await world.create(service(world.namespace, 'web', { type: 'LoadBalancer' }));
  await world.client.patch(
    webRef(world),
    { metadata: { finalizers: [BALANCER] } },
    { fieldManager: 'cloud-controller-manager' },
  );
}

const createNode = (world: World, providerID: string) =>
  world.create({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: world.name('node') },
    spec: { providerID },
  });

const balanced = (world: World, ...ends: Link[]): Expectation => ({
  outcome: 'stuck',
  anyOf: ends.map((end) => ({
    chains: [[{ code: 'object-finalizer', subject: webRef(world), finalizer: BALANCER }, end]],
  })),
  never: [{ code: 'owner-missing' }],
});

const clouds: Scenario[] = [
  {
    id: 'cloud-static',
    own: true,
    title: 'the cloud controllers run as a static pod, with credentials of their own',
    setUp: async (world) => {
      await world.createNamespace();
      await startStandIn(world, { node: 'master-1' });
      const node = await world.client.get({ apiVersion: 'v1', kind: 'Node', name: 'master-1' });
      const name = 'cloud-controller-manager-master-1';
      await world.create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          namespace: 'kube-system',
          name,
          labels: { component: 'cloud-controller-manager', tier: 'control-plane' },
          annotations: {
            'kubernetes.io/config.mirror': 'x',
            'kubernetes.io/config.source': 'file',
          },
          ownerReferences: [
            {
              apiVersion: 'v1',
              kind: 'Node',
              name: 'master-1',
              uid: stringAt(node, 'metadata', 'uid') ?? '',
              controller: true,
            },
          ],
        },
        spec: {
          nodeName: 'master-1',
          hostNetwork: true,
          tolerations: [{ operator: 'Exists' }],
          containers: [
            {
              name: 'cloud-controller-manager',
              image: 'example.com/cloud-controller-manager:1',
              command: ['/cloud-controller-manager'],
            },
          ],
        },
      });
      await world.client.patchStatus(podRef('kube-system', name), runningStatus());
      await createLease(world, {
        namespace: 'kube-system',
        name: 'cloud-controller-manager',
        holder: 'master-1_77aa',
      });
      await createBalancer(world);
    },
    settle: settledByFinalizer,
    expect: (world) =>
      balanced(world, {
        code: 'owner-running',
        subject: podRef('kube-system', 'cloud-controller-manager-master-1'),
        finalizer: BALANCER,
      }),
    cure: (world) => release(world, webRef(world)),
    beyondCommands: 'somebody has to look into the log of the cloud controllers',
  },
  {
    id: 'cloud-nodes',
    own: true,
    title: 'a cloud provider runs the cloud controllers, and the cluster shows only its nodes',
    setUp: async (world) => {
      await world.createNamespace();
      await createNode(world, 'aws:///eu-central-1a/i-0abc');
      await createBalancer(world);
      await world.client.patchStatus(
        webRef(world),
        { loadBalancer: { ingress: [{ hostname: 'web.elb.example.com' }] } },
        { fieldManager: 'cloud-controller-manager' },
      );
    },
    settle: settledByFinalizer,
    expect: (world) => balanced(world, ownerUnknown(webRef(world), BALANCER)),
    cure: (world) => release(world, webRef(world)),
  },
];

const firstPod = (world: World, { namespace }: Operator) =>
  waitUntil('the pod of the operator', async () => {
    const pods = await world.client.list('v1', 'Pod', namespace);
    return pods.find(({ status }) => stringAt(status ?? null, 'phase') !== 'Failed');
  });

/** What the kubelet says of the operator's pod. */
export const reported =
  (status: JsonObject): Step =>
  async (world, operator) =>
    world.client.patchStatus(refOf(await firstPod(world, operator)), status);

const notReady: Scenario[] = [
  situation({
    id: 'set-refused',
    title: 'a dead webhook refuses the pods of the operator, a StatefulSet',
    operator: { workload: 'StatefulSet' },
    unscheduled: true,
    before: deadInjector('Fail'),
    afterwards: async (world, operator) => {
      await runPodsIn(world, operator.namespace);
      await waitUntil('an Event about the refusal', async () => {
        const events = await world.client.list('v1', 'Event', operator.namespace);
        return events.some((event) => /FailedCreate/.test(JSON.stringify(event)));
      });
    },
    owner: (world, operator) => [
      owner(operator, 'owner-not-ready'),
      { code: 'admission-webhook-failing', subject: injector(world) },
    ],
    cure: async (world, operator) => {
      await world.client.delete(injector(world));
      await world.client.patch(workloadRef(operator), {
        spec: { template: { metadata: { annotations: { look: 'again' } } } },
      });
    },
  }),
  situation({
    id: 'node-lost',
    title: 'the pod of the operator is on a node that is not ready',
    unscheduled: true,
    afterwards: async (world, operator) => {
      const node = world.name('lost');
      await createDeadNode(world, node);
      const pod = await firstPod(world, operator);
      await bind(world.client, refOf(pod), node);
      // As the node lifecycle controller leaves them (pkg/util/node, MarkPodsNotReady).
      await world.client.patchStatus(refOf(pod), {
        ...runningStatus(),
        conditions: [{ type: 'Ready', status: 'False' }],
      });
    },
    owner: { code: 'owner-not-ready', says: [/[Nn]ode/] },
    beyondCommands: 'somebody has to repair the node',
  }),
];

const emptied = (world: World): Promise<unknown> =>
  waitUntil(
    'it to be empty',
    async () => (await world.client.list('v1', 'ServiceAccount', world.namespace)).length === 0,
  );

const obstacles: Scenario[] = [
  {
    id: 'finalize-denied',
    title: 'a policy denies the end of the namespace',
    setUp: async (world) => {
      await world.createNamespace();
      await createPolicy(world, {
        name: 'keep',
        operations: ['UPDATE'],
        apiGroup: '',
        resource: 'namespaces/finalize',
        expression: 'false',
        message: 'namespaces are kept',
      });
      await refusesEnd(world);
    },
    settle: async (world) => {
      await emptied(world);
      await endIsRefused(world);
    },
    expect: (world) =>
      stuck([
        {
          code: ['admission-denied', 'unexplained'],
          subject: 'any',
          says: [new RegExp(world.name('keep'))],
        },
      ]),
    cure: (world) =>
      world.client.delete({
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingAdmissionPolicyBinding',
        name: world.name('keep'),
      }),
    beyondCommands: 'only a person knows why the policy wants it to stay',
  },
];

export const strangers = [...clouds, ...notReady, ...obstacles];
