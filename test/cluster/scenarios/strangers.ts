import { createPolicy, endIsRefused, refusesEnd } from '../admission.ts';
import { service } from '../objects.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { ownerUnknown, ref, stuck } from './links.ts';
import { release, settledByFinalizer } from './situation.ts';

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

export const strangers = [...clouds, ...obstacles];
