import type { JsonObject } from '../../../src/base/json.ts';
import { refOf } from '../client.ts';
import {
  apiService,
  apiServiceRef,
  customType,
  pod,
  service,
  typeRef,
  workload,
} from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { startStandIn } from '../servers/stand-in.ts';
import { laterSecond } from '../wait-until.ts';
import type { World } from '../world.ts';
import { CONTENT_FAILURE, DISCOVERY, objectFinalizer, podRef, statusSays, stuck } from './links.ts';
import {
  argo,
  FULL,
  firstPod,
  install,
  NAMELESS,
  type OperatorOptions,
  operatorOf,
  operatorRules,
  READ,
  rule,
  runPods,
  workloadRef,
} from './operator.ts';
import { settledOverdue } from './pods-and-nodes.ts';
import {
  advisesNot,
  either,
  GUARDED,
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
import { createEvent } from './traces.ts';

/** What teams with preview environments meet, told by people who have read none of the others. */

const now = () => new Date().toISOString().replace(/\.\d+/, '');

/** This is the status once the deletion has begun. */
const status =
  (words: () => JsonObject, manager?: string): Step =>
  async (world, operator) => {
    await world.terminating(guardedRef(world, operator));
    await laterSecond();
    const fieldManager = manager ?? operator.manager;
    await world.client.patchStatus(guardedRef(world, operator), words(), { fieldManager });
    await settledByFinalizer(world);
  };

const moved = (world: World): OperatorOptions => ({
  name: 'widget-controller',
  namespace: world.name('widgets-new'),
  scope: 'cluster',
  type: false,
});

const bystanders: Scenario[] = [
  situation({
    id: 'moved-elsewhere',
    title: 'the operator has moved and runs by another name; the old one is left with 0 replicas',
    operator: { replicas: 0 },
    afterwards: async (world) => {
      await world.ensureNamespace(moved(world).namespace ?? '');
      await runPods(world, await install(world, moved(world)));
    },
    settle: status(() => ({ phase: 'Deleting' }), 'widget-controller'),
    expect: either(
      (world, { finalizer }) => ({
        ...owner(operatorOf(world, moved(world)), 'owner-running'),
        finalizer,
      }),
      nobodyKnown,
    ),
    cure: releaseGuarded,
    beyondCommands: 'the stand-in of the one that runs does nothing',
  }),
];

const backup = (world: World): OperatorOptions => ({
  group: 'backup.example.net',
  kind: 'Plan',
  name: 'backup-operator',
  namespace: world.name('backup-system'),
  scope: 'cluster',
  finalizer: `plans.${world.domain('backup.example.net')}/keep`,
  rules: [
    rule(world.domain('backup.example.net'), ['*'], ['*']),
    rule(world.domain('example.com'), ['widgets'], FULL),
  ],
});

const words: Scenario[] = [
  situation({
    id: 'two-on-one',
    title: 'two finalizers on one object: the owner of one complains, that of the other is silent',
    behaviour: { cleanUp: () => 'bucket service answers 503' },
    complains: true,
    afterwards: async (world, operator) => {
      await world.ensureNamespace(backup(world).namespace ?? '');
      const plans = await install(world, backup(world));
      await runPods(world, plans);
      await world.client.call(
        'PATCH',
        `${await world.client.pathOf(guardedRef(world, operator))}?fieldManager=backup-operator`,
        [{ op: 'add', path: '/metadata/finalizers/-', value: plans.finalizer }],
        { 'content-type': 'application/json-patch+json' },
      );
    },
    expect: (world, operator) => {
      const plans = operatorOf(world, backup(world));
      const held = objectFinalizer(guardedRef(world, operator), plans.finalizer);
      return {
        chains: [
          [heldBy(world, operator), owner(operator, 'owner-failing', { says: [/503/] })],
          [held, owner(plans, 'owner-running')],
        ],
      };
    },
    beyondCommands: 'the service has to come back',
  }),
  situation({
    id: 'argo-deletion-error',
    title: 'a condition without a status says what Argo CD failed at',
    own: true,
    operator: argo,
    behaviour: HANGS,
    settle: status(
      () => ({
        conditions: [
          {
            type: 'DeletionError',
            message: 'dial tcp: lookup dev.example.com: no such host',
            lastTransitionTime: now(),
          },
        ],
      }),
      'argocd-application-controller',
    ),
    owner: { code: 'owner-failing', says: [/no such host/] },
  }),
  situation({
    id: 'state-error',
    title: 'the status has no conditions, but a state and a message beside it',
    behaviour: HANGS,
    settle: status(() => ({
      phase: 'Deleting',
      state: 'Error',
      message: 'bucket "assets" is not empty: 12 objects left',
    })),
    owner: { code: 'owner-failing', says: [/is not empty/] },
  }),
  {
    id: 'unmount-fails',
    versions: ['1.36.3'], // before, Events do not wait until the pods have gone
    title: 'an overdue pod on a ready node, of which the kubelet says what it cannot unmount',
    setUp: async (world) => {
      const node = world.name('node-ready');
      const about = podRef(world.namespace, 'web-0');
      await world.createNamespace();
      await startStandIn(world, { node, namespaces: [world.namespace], confirms: false });
      await world.create(pod(world.namespace, about.name, { nodeName: node, graceSeconds: 1 }));
      await world.client.delete(about);
      await world.terminating(about);
      await createEvent(world, {
        about,
        component: 'kubelet',
        instance: node,
        reason: 'FailedUnmount',
        note: 'UnmountVolume.TearDown failed for volume "data": device is busy',
      });
      // A warning from before the deletion, and no warning.
      await createEvent(world, {
        ...{ about, component: 'attachdetach-controller', instance: 'controller-manager' },
        ...{ reason: 'FailedAttachVolume', note: 'Multi-Attach error for volume "data"' },
        agoSeconds: 600,
      });
      await createEvent(world, {
        ...{ about, component: 'taint-eviction-controller', instance: 'controller-manager' },
        ...{ reason: 'TaintManagerEviction', note: 'Cancelling deletion of Pod', type: 'Normal' },
      });
    },
    settle: settledOverdue,
    expect: (world) =>
      stuck([
        {
          code: 'pod-not-confirmed',
          subject: podRef(world.namespace, 'web-0'),
          says: [/device is busy/],
        },
      ]),
    cure: (world) =>
      world.client.delete(podRef(world.namespace, 'web-0'), { gracePeriodSeconds: 0 }),
  },
];

const backends: Scenario[] = [
  situation({
    id: 'conversion-asleep',
    title: 'the operator converts its type itself, and has 0 replicas',
    own: 'new',
    operator: { replicas: 0 },
    afterwards: async (world, { group, kind, namespace, name }) => {
      await world.create(service(namespace, name, { selector: { app: name } }));
      const conversion = {
        strategy: 'Webhook',
        webhook: {
          clientConfig: { service: { namespace, name, path: '/convert' } },
          conversionReviewVersions: ['v1'],
        },
      };
      const next = customType({ group, kind, versions: ['v1', 'v2'], conversion });
      await world.client.patch(typeRef(group, kind), { spec: next['spec'] ?? null });
      const reads = `/apis/${group}/v2/namespaces/${world.namespace}/widgets/${GUARDED}`;
      await world.answers(reads, (answer) => answer >= 400 && answer !== 404);
    },
    settle: (world) =>
      world.settled({ [CONTENT_FAILURE]: ['True', /conversion webhook|initializing/] }),
    expect: (_, operator) => ({
      chains: [
        [
          {
            code: 'conversion-webhook-failing',
            subject: typeRef(operator.group, operator.kind),
            says: [/Deployment .*widget-operator is scaled to zero/],
            advises: [/kubectl scale deployment/],
          },
        ],
      ],
      notInspected: [/widgets/],
    }),
    cure: async (world, operator) => {
      await world.client.patch(typeRef(operator.group, operator.kind), {
        spec: { conversion: { strategy: 'None', webhook: null } },
      });
      await releaseGuarded(world, operator);
    },
    mayChange: (_, operator) => [workloadRef(operator)],
    beyondCommands: 'nobody here converts',
  }),
];

const scopes: Scenario[] = [
  situation({
    id: 'deployed-as-a-team',
    title:
      'an agent acts as an account of a team, as which a shop runs too, and says what is refused',
    operator: (world) => ({
      ...NAMELESS,
      name: 'deploy-agent',
      rules: [
        ...operatorRules({ group: world.domain('example.com'), kind: 'Widget' }),
        rule('', ['serviceaccounts'], ['impersonate']),
      ],
    }),
    behaviour: HANGS,
    bystanders: [
      {
        name: 'shop',
        namespace: 'team-apps',
        account: 'deployer',
        rules: [rule('', ['pods'], READ)],
      },
    ],
    settle: async (world, operator) => {
      const account = `system:serviceaccount:${world.name('team-apps')}:deployer`;
      const message = `deployments.apps "cart" is forbidden: User "${account}" cannot delete resource "deployments" in API group "apps" in the namespace "team"`;
      const failed = { type: 'Ready', status: 'False', reason: 'DeleteFailed', message };
      const conditions = [{ ...failed, lastTransitionTime: now() }];
      await status(() => ({ conditions }), 'deploy-agent')(world, operator);
    },
    owner: { code: 'owner-failing', says: [/cannot delete/] },
    cure: releaseGuarded,
    mayChange: () => RIGHTS,
    beyondCommands: 'somebody has to let the account of the team do it',
  }),
];

const endings: Scenario[] = [
  situation({
    id: 'ending-asleep',
    versions: ['1.36.3'], // before 1.33 the workload does not wait for the pod
    title: 'the namespace of the operator terminates too, held by a pod; it has 0 replicas',
    operator: { replicas: 0 },
    afterwards: async (world, { namespace }) => {
      const finalizers = ['hold.example.net/by-hand'];
      await world.create(pod(namespace, 'other', { metadata: { finalizers } }));
      await world.client.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
      await world.terminating(podRef(namespace, 'other'));
    },
    owner: { code: 'owner-scaled-to-zero', says: [/is being deleted itself/] },
    expect: () => ({ also: advisesNot(/kubectl scale/) }),
    cure: async (world, operator) => {
      await release(world, podRef(operator.namespace, 'other'));
      await releaseGuarded(world, operator);
    },
  }),
];

/** What a condition says in its type or its reason, and its message alone does not. */
const conditions: Scenario[] = (
  [
    [
      'reason-says-failed',
      { type: 'Ready', status: 'False', reason: 'DeleteFailed', message: 'bucket is in use' },
      'owner-failing',
    ],
    [
      'terminal-says-so',
      { type: 'ACK.Terminal', status: 'True', message: 'subnet has dependencies' },
      'owner-failing',
    ],
    [
      'counts-no-errors',
      { type: 'Ready', status: 'False', reason: 'NoError', message: '3 of 5 gone, errors: 0' },
      'owner-running',
    ],
  ] as const
).map(([id, condition, code]) =>
  situation({
    id,
    title: `a condition ${condition.type}=${condition.status} says "${condition.message}"`,
    behaviour: HANGS,
    settle: status(() => ({ conditions: [{ ...condition, lastTransitionTime: now() }] })),
    owner: (_, operator) => [
      owner(operator, code, code === 'owner-failing' ? { says: [RegExp(condition.message)] } : {}),
    ],
    cure: restart,
  }),
);

const pendingApi = (world: World) => ({ group: world.domain('metrics.test'), version: 'v1beta1' });

const apis: Scenario[] = [
  {
    id: 'api-pending',
    title: 'the only pod behind an extension API finds no node',
    own: 'new',
    setUp: async (world) => {
      const home = world.name('metrics');
      const { group, version } = pendingApi(world);
      await world.createNamespace();
      await world.ensureNamespace(home);
      await world.create(workload('Deployment', home, 'adapter'));
      await world.create(service(home, 'adapter', { selector: { app: 'adapter' } }));
      const waiting = await firstPod(world, home);
      const message = '0/3 nodes are available: 3 Insufficient cpu.';
      await world.client.patchStatus(refOf(waiting), {
        conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
      });
      await world.create(apiService(group, version, { namespace: home, name: 'adapter' }));
      await statusSays(world, apiServiceRef(group, version), 'is down', '"False"');
    },
    settle: (world) => world.settled({ [DISCOVERY]: ['True', /metrics/] }),
    expect: (world) => {
      const { group, version } = pendingApi(world);
      const says = [/Insufficient cpu/];
      return {
        ...stuck([
          { code: 'apiservice-unavailable', subject: apiServiceRef(group, version), says },
        ]),
        notInspected: [group],
      };
    },
    cure: (world) => {
      const { group, version } = pendingApi(world);
      return world.client.delete(apiServiceRef(group, version));
    },
  },
];

export const newcomers = [
  ...bystanders,
  ...words,
  ...backends,
  ...scopes,
  ...endings,
  ...conditions,
  ...apis,
];
