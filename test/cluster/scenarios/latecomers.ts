import { type JsonObject, stringAt } from '../../../src/base/json.ts';
import { endIsRefused, policyRef, refusesEnd, webhookRef } from '../admission.ts';
import type { Ref } from '../client.ts';
import { grant, pluralOf, podSpec } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import { runPodsIn } from '../servers/stand-in.ts';
import { startWebhook } from '../servers/webhook.ts';
import { laterSecond, waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { deploymentRef, objectFinalizer, podRef, ref, specFinalizer } from './links.ts';
import {
  FULL,
  install,
  NAMELESS,
  type Operator,
  type OperatorOptions,
  operatorRules,
  READ,
  rule,
  runPods,
  start,
} from './operator.ts';
import {
  guardedRef,
  HANGS,
  heldBy,
  nobodyKnown,
  owner,
  RIGHTS,
  release,
  releaseGuarded,
  restart,
  type Step,
  settledByFinalizer,
  situation,
} from './situation.ts';

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
        advises: [/Limit policy .* to CREATE/],
      },
    ],
    cure: (world) => world.client.delete(bindingRef(world)),
    mayChange: (world) => [bindingRef(world)],
  });
}

/** A webhook of these tests, or a dead one, about such requests for this namespace. */
async function guard(world: World, rules: JsonObject, webhook: JsonObject): Promise<void> {
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } };
  await world.create({
    apiVersion: ADMISSION_API,
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: webhookRef(world).name },
    webhooks: [
      {
        name: `guard.${world.domain('example.com')}`,
        rules: [{ operations: ['UPDATE'], apiVersions: ['*'], ...rules }],
        failurePolicy: 'Fail',
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        namespaceSelector,
        ...webhook,
      },
    ],
  });
}

function endRefused(
  id: string,
  title: string,
  identity: NonNullable<Scenario['identity']>,
  link: (world: World) => Link,
): Scenario {
  return {
    id,
    title,
    identity,
    setUp: async (world) => {
      await world.createNamespace();
      const clientConfig = await startWebhook(world, () => ({ deny: 'team red keeps it' }));
      await guard(world, { apiGroups: [''], resources: ['namespaces/finalize'] }, { clientConfig });
      await refusesEnd(world);
    },
    settle: async (world) => {
      await world.settled();
      await endIsRefused(world);
    },
    expect: (world) => ({ outcome: 'stuck', chains: [[link(world)]] }),
    cure: (world) => world.client.delete(webhookRef(world)),
    mayChange: (world) => [webhookRef(world)],
    ...(identity === 'teardown-force'
      ? {}
      : { beyondCommands: 'whether it is the webhook cannot be asked without the right to' }),
  };
}

const admission: Scenario[] = [
  mutated(
    'put-back',
    'a mutating policy puts the finalizer back whenever somebody removes it',
    ({ finalizer }) => finalizer,
    /puts .* back/,
  ),
  mutated(
    'adds-another',
    'a mutating policy adds another finalizer to what is updated, which the API server refuses',
    () => 'company.example.net/keep',
    /adds a finalizer/,
  ),
  situation({
    id: 'put-back-untried',
    title: 'the same, and whether the policy puts it back cannot be asked without the right to',
    versions: ['1.36.3'],
    behaviour: { tells: false, isSlow: true },
    afterwards: setsFinalizer(({ finalizer }) => finalizer),
    owner: { code: 'owner-running', says: [/whether .*keeper.* could not be tried/] },
    cure: (world) => world.client.delete(bindingRef(world)),
    mayChange: (world) => [bindingRef(world)],
    beyondCommands: 'whether it is the policy cannot be asked without the right to',
  }),
  endRefused(
    'end-refused',
    'a webhook denies the end of the namespace',
    'teardown-force',
    (world) => ({
      code: 'admission-denied',
      subject: webhookRef(world),
      says: [/team red keeps it/],
    }),
  ),
  endRefused('end-unasked', 'the same; who looks may not ask', 'teardown-reader', (world) => ({
    code: 'unexplained',
    subject: world.namespaceRef,
    says: [
      /unless webhook \S+ of ValidatingWebhookConfiguration guard.* refuses the last step of its deletion/,
    ],
  })),
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

/** The namespace controller has dropped its own entry; others are left. */
const controllerIsDone = (world: World): Promise<unknown> =>
  world.client.waitFor(
    world.namespaceRef,
    'has lost "kubernetes"',
    (found) => !JSON.stringify(found?.['spec']).includes('"kubernetes"'),
  );

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
      const path = await world.client.pathOf(world.namespaceRef, 'finalize');
      const finalizers = ['kubernetes', 'tenancy.example.com/tenant'];
      const found = await world.client.get(world.namespaceRef);
      await world.client.call('PUT', `${path}?fieldManager=manager`, {
        ...found,
        spec: { finalizers },
      });
    },
    settle: controllerIsDone,
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

const FAILED = {
  phase: 'Failed',
  message: 'pg_dump: exit status 1',
  completionTime: '2026-01-01T00:10:00Z',
};
const backups: OperatorOptions = { kind: 'Backup', name: 'backup-operator' };
const failed: Step = (world, operator) =>
  world.client.patchStatus(guardedRef(world, operator), FAILED, { fieldManager: operator.manager });

/** This is written to the status once the deletion has begun. */
const writes =
  (words: (world: World) => JsonObject): Step =>
  async (world, operator) => {
    await world.terminating(guardedRef(world, operator));
    await laterSecond();
    const { manager } = operator;
    await world.client.patchStatus(guardedRef(world, operator), words(world), {
      fieldManager: manager,
    });
    await settledByFinalizer(world);
  };

const owners: Scenario[] = [
  situation({
    id: 'fails-to-go',
    title: 'a backup that had failed is deleted; its status now says why it cannot be deleted',
    operator: backups,
    behaviour: HANGS,
    afterwards: failed,
    settle: writes(() => ({ ...FAILED, message: 'cannot delete the archive: bucket is locked' })),
    owner: (_, operator) => [owner(operator, 'owner-failing', { says: [/bucket is locked/] })],
    cure: restart,
    beyondCommands: 'only a person can unlock the bucket',
  }),
  situation({
    id: 'granted-here-nameless',
    title: 'an operator without a name of its own had its rights in the namespace, and runs',
    own: true,
    operator: { ...NAMELESS, rules: [rule('', ['events'], ['create', 'patch'])] },
    behaviour: { isSlow: true },
    afterwards: async (world, operator) => {
      const { namespace, account } = operator;
      const subject = { kind: 'ServiceAccount', namespace, name: account };
      const place = { namespace: world.namespace, name: account };
      await world.createAll(grant(place, [subject], operatorRules(operator)));
    },
    expect: (world, operator) => ({
      chains: [[heldBy(world, operator), nobodyKnown(world, operator)]],
    }),
    cure: releaseGuarded,
    mayChange: () => RIGHTS,
  }),
];

export const latecomers = [...admission, ...claims, ...namespaces, ...owners];
