import { type JsonObject, stringAt } from '../../../src/base/json.ts';
import { policyRef } from '../admission.ts';
import type { Ref } from '../client.ts';
import { pluralOf, podSpec } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import { runPodsIn } from '../servers/stand-in.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { deploymentRef, objectFinalizer, podRef, ref, specFinalizer } from './links.ts';
import { addSpecFinalizers, hasLostKubernetes } from './namespace-finalizers.ts';
import {
  FULL,
  install,
  NAMELESS,
  type Operator,
  type OperatorOptions,
  READ,
  rule,
  runPods,
  start,
} from './operator.ts';
import { guardedRef, owner, release, type Step, situation } from './situation.ts';

const ADMISSION_API = 'admissionregistration.k8s.io/v1';

const mutatorRef = (world: World): Ref => ({
  ...policyRef(world, 'keeper'),
  kind: 'MutatingAdmissionPolicy',
});
const bindingRef = (world: World): Ref => ({
  ...policyRef(world, 'keeper'),
  kind: 'MutatingAdmissionPolicyBinding',
});

/** A policy that sets these finalizers at every update of the operator's objects. */
const setsFinalizer =
  (finalizerOf: (operator: Operator) => string): Step =>
  async (world, operator) => {
    const { name } = mutatorRef(world);
    const apiVersions = ['*'];
    const resourceRule = {
      operations: ['UPDATE'],
      apiGroups: [operator.group],
      apiVersions,
      resources: [pluralOf(operator.kind)],
    };
    const value = JSON.stringify([finalizerOf(operator)]);
    await world.create({
      apiVersion: ADMISSION_API,
      kind: 'MutatingAdmissionPolicy',
      metadata: { name },
      spec: {
        failurePolicy: 'Fail',
        reinvocationPolicy: 'Never',
        matchConstraints: { resourceRules: [resourceRule] },
        mutations: [
          {
            patchType: 'JSONPatch',
            jsonPatch: {
              expression: `[JSONPatch{op: "add", path: "/metadata/finalizers", value: ${value}}]`,
            },
          },
        ],
      },
    });
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } };
    await world.create({
      apiVersion: ADMISSION_API,
      kind: 'MutatingAdmissionPolicyBinding',
      metadata: { name },
      spec: { policyName: name, matchResources: { namespaceSelector } },
    });
    const path = `${await world.client.pathOf(guardedRef(world, operator))}?dryRun=All`;
    const patch = { metadata: { finalizers: null } };
    await waitUntil('the policy to be followed', async () => {
      const headers = { 'content-type': 'application/merge-patch+json' };
      const { text } = await world.client.call('PATCH', path, patch, headers);
      return text.includes(`"finalizers":${value}`);
    });
  };

function mutated(
  id: string,
  title: string,
  finalizerOf: (operator: Operator) => string,
  says: RegExp,
): Scenario {
  return situation({
    id,
    title,
    versions: ['1.36.3'],
    identity: 'teardown-force',
    behaviour: { tells: false, isSlow: true },
    afterwards: setsFinalizer(finalizerOf),
    owner: (world, operator) => [
      owner(operator, 'owner-failing'),
      {
        code: 'admission-denied',
        subject: mutatorRef(world),
        says: [says],
        advises: [/Exempt this namespace/],
      },
    ],
    cure: (world) => world.client.delete(bindingRef(world)),
    mayChange: (world) => [bindingRef(world)],
  });
}

const admission: Scenario[] = [
  mutated(
    'put-back',
    'a mutating policy puts the finalizer back whenever somebody removes it',
    ({ finalizer }) => finalizer,
    /puts .* back/,
  ),
];

const claimRef = (world: World): Ref =>
  ref('resource.k8s.io/v1', 'ResourceClaim', world.namespace, 'gpu');
const PROTECTION = 'resource.kubernetes.io/delete-protection';

/** As the scheduler leaves it, for one consumer. */
async function createReserved(world: World, consumer: JsonObject): Promise<void> {
  const { apiVersion, kind, name } = claimRef(world);
  const exactly = { deviceClassName: 'gpu.example.com', allocationMode: 'ExactCount', count: 1 };
  const metadata = { namespace: world.namespace, name, finalizers: [PROTECTION] };
  const requests = [{ name, exactly }];
  await world.create({ apiVersion, kind, metadata, spec: { devices: { requests } } });
  const result = { request: name, driver: 'gpu.example.com', pool: 'node-1', device: 'gpu-0' };
  await world.client.patchStatus(claimRef(world), {
    allocation: { devices: { results: [result] } },
    reservedFor: [consumer],
  });
}

const keeper: OperatorOptions = {
  group: '',
  ownGroup: false,
  kind: 'Pod',
  type: false,
  name: 'pod-keeper',
  namespace: 'keeper-system',
  scope: 'cluster',
  replicas: 0,
  finalizer: 'keep.example.com/drain',
  rules: [rule('', ['pods'], FULL)],
};

const claims: Scenario[] = [
  {
    id: 'claim-reserved',
    title: 'a ResourceClaim is reserved for a pod that an operator with 0 replicas holds',
    own: true,
    versions: ['1.36.3'],
    setUp: async (world) => {
      await world.createNamespace();
      await world.createNamespace('keeper-system');
      const operator = await install(world, keeper);
      const { finalizer, name: manager } = operator;
      await start(world, operator);
      const train = podRef(world.namespace, 'train');
      const made = await world.create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { namespace: world.namespace, name: 'train' },
        spec: {
          ...podSpec(),
          terminationGracePeriodSeconds: 1,
          resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }],
        },
      });
      const metadata = { finalizers: [finalizer] };
      await world.client.patch(train, { metadata }, { fieldManager: manager });
      await runPodsIn(world, world.namespace);
      // Of a pod that no node has taken yet, the claim is given back.
      await world.client.waitFor(
        train,
        'runs',
        (found) => stringAt(found, 'status', 'phase') === 'Running',
      );
      const uid = stringAt(made, 'metadata', 'uid') ?? '';
      await createReserved(world, { resource: 'pods', name: 'train', uid });
      await world.client.delete(claimRef(world));
    },
    settle: async (world) => {
      await world.settled();
      await world.terminating(podRef(world.namespace, 'train'));
      await world.terminating(claimRef(world));
    },
    expect: (world) => {
      const finalizer = 'keep.example.com/drain';
      const pod = objectFinalizer(podRef(world.namespace, 'train'), finalizer);
      const subject = deploymentRef('keeper-system', 'pod-keeper');
      const asleep: Link = { code: 'owner-scaled-to-zero', subject, finalizer };
      return {
        outcome: 'stuck',
        chains: [
          [pod, asleep],
          [objectFinalizer(claimRef(world), PROTECTION), pod, asleep],
        ],
      };
    },
    cure: (world) => release(world, podRef(world.namespace, 'train')),
  },
];

const tenancy = (name: string, group: string, kind: string): OperatorOptions => ({
  ...NAMELESS,
  group,
  ownGroup: false,
  kind,
  type: { scope: 'Cluster' },
  name,
  namespace: name,
  scope: 'cluster',
  rules: [
    rule('', ['namespaces'], READ),
    rule('', ['namespaces/finalize'], ['update']),
    rule(group, [pluralOf(kind), `${pluralOf(kind)}/status`], FULL),
  ],
});

const namespaces: Scenario[] = [
  {
    id: 'tenant-asleep',
    title:
      'of two operators that may end namespaces, that of the domain in spec.finalizers has 0 replicas',
    own: true,
    setUp: async (world) => {
      await world.createNamespace();
      for (const name of ['tenant-operator', 'project-operator']) await world.createNamespace(name);
      const tenants = tenancy('tenant-operator', 'tenancy.example.com', 'Tenant');
      await install(world, { ...tenants, replicas: 0 });
      const projects = tenancy('project-operator', 'projects.example.org', 'Project');
      await runPods(world, await install(world, projects));
      await addSpecFinalizers(world, ['tenancy.example.com/tenant'], 'manager');
    },
    settle: hasLostKubernetes,
    expect: (world) => ({
      outcome: 'stuck',
      chains: [
        [
          specFinalizer(world.namespaceRef, 'tenancy.example.com/tenant'),
          {
            code: 'owner-scaled-to-zero',
            subject: deploymentRef('tenant-operator', 'tenant-operator'),
            finalizer: 'tenancy.example.com/tenant',
            certainty: ['likely'],
          },
        ],
      ],
      never: [{ kind: 'Deployment', name: 'project-operator' }],
    }),
    beyondCommands: 'nothing runs in its pods here',
  },
];

export const latecomers = [...admission, ...claims, ...namespaces];
