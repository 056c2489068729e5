import { type JsonObject, stringAt } from '../../../src/base/json.ts';
import { type Ref, refOf } from '../client.ts';
import {
  apiService,
  apiServiceRef,
  customType,
  pod,
  podSpec,
  service,
  typeRef,
  workload,
} from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { readyPods } from '../servers/operator-process.ts';
import { bind, createDeadNode, startStandIn } from '../servers/stand-in.ts';
import { laterSecond, waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import {
  CONTENT_FAILURE,
  DISCOVERY,
  objectFinalizer,
  ownerMissing,
  podRef,
  ref,
  statusSays,
  stuck,
} from './links.ts';
import {
  ADMIN,
  argo,
  FULL,
  firstPod,
  install,
  NAMELESS,
  type Operator,
  type OperatorOptions,
  operatorOf,
  operatorRules,
  READ,
  rule,
  runPods,
  uninstall,
  workloadRef,
} from './operator.ts';
import { settledWithPod } from './pods.ts';
import { settledOverdue } from './pods-and-nodes.ts';
import {
  advises,
  advisesNot,
  asleepOrUnknown,
  either,
  GUARDED,
  guardedRef,
  HANGS,
  heldBy,
  KEPT,
  keeper,
  missingOrUnknown,
  nobodyKnown,
  owner,
  RIGHTS,
  release,
  releaseGuarded,
  restart,
  type Step,
  settledByFinalizer,
  situation,
  writesStatus,
} from './situation.ts';
import { createEvent } from './traces.ts';

/** What teams with preview environments meet, told by people who have read none of the others. */

const now = () => new Date().toISOString().replace(/\.\d+/, '');

const scaledBy =
  (fieldManager: string): Step =>
  async ({ client }, operator) => {
    for (const replicas of [2, 0]) {
      await client.patch(workloadRef(operator), { spec: { replicas } }, { fieldManager });
    }
  };

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

const KRUISE = 'apps.kruise.io';
const cloneSetRef = (world: World, { namespace, name }: Operator) =>
  ref(`${world.domain(KRUISE)}/v1`, 'CloneSet', namespace, name);

/** A type that scales as Deployments do. */
function cloneSets(world: World): JsonObject {
  const type = customType({ group: world.domain(KRUISE), kind: 'CloneSet' });
  const { versions } = type['spec'] as { versions: { subresources: JsonObject }[] };
  for (const { subresources } of versions) {
    subresources['scale'] = {
      specReplicasPath: '.spec.replicas',
      statusReplicasPath: '.status.replicas',
    };
  }
  return type;
}

const workloads: Scenario[] = [
  situation({
    id: 'clone-set-asleep',
    title: 'the operator is a workload of a custom type, which has 0 replicas',
    operator: { workload: 'Pod' },
    afterwards: async (world, operator) => {
      await world.createType(cloneSets(world));
      const { apiVersion, kind, namespace = '', name } = cloneSetRef(world, operator);
      const template = { metadata: { labels: { app: name } }, spec: podSpec(name) };
      await world.create({
        apiVersion,
        kind,
        metadata: { namespace, name },
        spec: { replicas: 0, template },
      });
      await uninstall(world, operator, ['rights', 'account']);
    },
    owner: (world, operator) => [
      {
        code: 'owner-scaled-to-zero',
        subject: cloneSetRef(world, operator),
        finalizer: operator.finalizer,
        advises: [/kubectl scale cloneset\./],
      },
    ],
    beyondCommands: 'nobody here makes pods of such a workload',
  }),
  situation({
    id: 'cleaned-up',
    title: 'the operator is uninstalled; the Job that cleaned up after it is left, completed',
    afterwards: async (world, operator) => {
      await uninstall(world, operator, ['rights', 'account']);
      const { namespace, account } = operator;
      const job = ref('batch/v1', 'Job', namespace, 'widget-operator-uninstall');
      await world.create(workload('Job', namespace, job.name, { podSpec: podSpec(account) }));
      const running = await waitUntil('its pod', async () =>
        (await world.client.list('v1', 'Pod', namespace)).find(
          (one) => stringAt(one, 'status', 'phase') === 'Running',
        ),
      );
      await world.client.patchStatus(refOf(running), { phase: 'Succeeded' });
      await statusSays(world, job, 'is complete', '"Complete"');
    },
    owner: 'owner-missing',
  }),
  situation({
    id: 'ghost-pod',
    own: true, // programs of the same name in other scenarios could have been the owner
    title: 'the operator is uninstalled; its last pod is terminating on a lost node',
    unscheduled: true,
    afterwards: async (world, operator) => {
      const node = world.name('lost');
      await createDeadNode(world, node);
      const last = await firstPod(world, operator.namespace);
      await bind(world.client, refOf(last), node);
      // As the node lifecycle controller leaves them (pkg/util/node, MarkPodsNotReady).
      await world.client.patchStatus(refOf(last), {
        phase: 'Running',
        conditions: [{ type: 'Ready', status: 'False' }],
      });
      await world.client.delete(workloadRef(operator), { propagationPolicy: 'Background' });
      await world.terminating(refOf(last));
    },
    owner: (_, operator) => [ownerMissing(workloadRef(operator), operator.finalizer)],
  }),
];

const moved = (world: World): OperatorOptions => ({
  name: 'widget-controller',
  namespace: world.name('widgets-new'),
  scope: 'cluster',
  type: false,
});

const configRef = (world: World, { group }: Operator): Ref => ({
  apiVersion: `${group}/v1`,
  kind: 'Config',
  name: world.name('shared'),
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
  situation({
    id: 'scaled-by-another',
    title: 'a program that runs has taken the replicas of the operator, and may do so again',
    operator: { replicas: 0 },
    bystanders: [{ name: 'idle-scaler', namespace: 'idle-system', rules: [] }],
    afterwards: scaledBy('idle-scaler'),
    owner: 'owner-scaled-to-zero',
    expect: () => ({
      also: advises(/"idle-scaler" has set its replicas and may set that back/),
    }),
  }),
  situation({
    id: 'scaled-by-hand',
    title: 'a person has taken the replicas of the operator; the same program runs',
    operator: { replicas: 0 },
    bystanders: [{ name: 'idle-scaler', namespace: 'idle-system', rules: [] }],
    afterwards: scaledBy('kubectl'),
    owner: 'owner-scaled-to-zero',
    expect: () => ({ also: advisesNot(/set that back/) }),
  }),
  situation({
    id: 'refused-another',
    title: 'the operator is uninstalled; the object says what was refused to a GitOps agent',
    bystanders: [
      {
        name: 'fleet-agent',
        namespace: 'fleet-system',
        rules: [rule('', ['configmaps'], FULL)],
      },
    ],
    afterwards: (world, operator) => uninstall(world, operator),
    settle: async (world, operator) => {
      const { group } = operator;
      const account = `system:serviceaccount:${world.name('fleet-system')}:fleet-agent`;
      const message = `widgets.${group} "db" is forbidden: User "${account}" cannot patch resource "widgets" in API group "${group}" in the namespace "${world.namespace}"`;
      const conditions = () => [
        {
          type: 'Synced',
          status: 'False',
          reason: 'ApplyFailed',
          message,
          lastTransitionTime: now(),
        },
      ];
      await status(() => ({ conditions: conditions() }), 'fleet-agent')(world, operator);
    },
    expect: (world, operator) => ({
      ...missingOrUnknown(world, operator),
      also: advisesNot(/grant/i),
    }),
  }),
  situation({
    id: 'config-in-use',
    title: 'what the object names is being deleted too, and waits for all that use it',
    operator: (world) => ({ rules: [rule(world.domain('example.com'), ['*', '*/*'], ['*'])] }),
    before: async (world, operator) => {
      const { group, manager } = operator;
      await world.createType(customType({ group, kind: 'Config', scope: 'Cluster' }));
      const { apiVersion, kind, name } = configRef(world, operator);
      await world.create({ apiVersion, kind, metadata: { name } });
      await world.client.patch(
        configRef(world, operator),
        { metadata: { finalizers: [`in-use.${group}`] } },
        { fieldManager: manager },
      );
    },
    afterwards: async (world, operator) => {
      const { kind, name } = configRef(world, operator);
      const spec = { configRef: { kind, name } };
      await world.client.patch(guardedRef(world, operator), { spec });
      await world.client.delete(configRef(world, operator));
    },
    owner: 'owner-running',
    cure: async (world, operator) => {
      await restart(world, operator);
      await release(world, configRef(world, operator));
    },
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
    ...KEPT,
    id: 'event-of-others',
    title: 'the kubelet and a policy engine complain about the held pod, not its owner, which runs',
    operator: keeper,
    behaviour: HANGS,
    bystanders: (world) => [
      { ...keeper(world), name: world.name('policy-engine'), rules: [rule('', ['pods'], READ)] },
    ],
    afterwards: async (world, operator) => {
      const about = guardedRef(world, operator);
      const engine = { ...operator, name: world.name('policy-engine') };
      const [pod] = await readyPods(world.client, engine);
      const agoSeconds = -600;
      await createEvent(world, {
        about,
        component: 'kubelet',
        instance: 'node-1',
        reason: 'Unhealthy',
        note: 'Readiness probe failed: connection refused',
        agoSeconds,
      });
      await createEvent(world, {
        about,
        component: 'policies',
        instance: pod?.metadata.name ?? '',
        reason: 'PolicyViolation',
        note: 'policy require-labels failed: label team is missing',
        agoSeconds,
      });
    },
    settle: settledWithPod,
    owner: 'owner-running',
  }),
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

/** Two nameless installs with the same rights, told by their arguments what they look at; ours has 0 replicas. */
const patterns: Scenario = situation({
  id: 'namespaces-by-pattern',
  title: 'two installs look at namespaces by pattern; the one for previews has 0 replicas',
  operator: {
    ...NAMELESS,
    container: { name: 'manager', args: ['--watch-namespaces=preview-.*'] },
    replicas: 0,
  },
  bystanders: (world) => [
    {
      name: 'widget-operator-prod',
      namespace: 'widgets-prod',
      manager: 'manager',
      rules: operatorRules({ group: world.domain('example.com'), kind: 'Widget' }),
      container: { name: 'manager', args: ['--watch-namespaces=prod-.*'] },
    },
  ],
  expect: asleepOrUnknown,
});

const scopes: Scenario[] = [
  patterns,
  situation({
    id: 'watches-secrets-at-home',
    title: 'a nameless cluster-admin runs, and is told in which namespace to watch Secrets',
    own: true,
    operator: (world) => ({
      ...ADMIN,
      ...NAMELESS,
      container: {
        name: 'manager',
        env: [{ name: 'SECRETS_WATCH_NAMESPACE', value: world.name('widget-system') }],
      },
    }),
    behaviour: HANGS,
    expect: (world, operator) => either(nobodyKnown)(world, operator),
    cure: releaseGuarded,
  }),
  situation({
    id: 'put-on-by-hand',
    title: 'a person has put a finalizer on the object with kubectl; the operator of the type runs',
    operator: {
      name: 'widget-operator',
      manager: 'kubectl-edit',
      finalizer: 'acme.example.net/hold',
    },
    afterwards: writesStatus({ phase: 'Ready' }, 'widget-operator'),
    behaviour: HANGS,
    expect: (world, operator) => ({
      chains: [[heldBy(world, operator), nobodyKnown(world, operator)]],
      never: [{ kind: 'Deployment', name: 'widget-operator' }],
      also: advisesNot(/restart/),
    }),
    cure: releaseGuarded,
  }),
  situation({
    id: 'kept-by-hand',
    title: 'the same with a finalizer without a domain; the operator has 0 replicas',
    operator: { manager: 'kubectl-edit', finalizer: 'do-not-delete', replicas: 0 },
    afterwards: writesStatus({ phase: 'Ready' }, 'widget-operator'),
    owner: 'owner-unknown',
    expect: () => ({ also: advisesNot(/kubectl scale/) }),
    cure: releaseGuarded,
  }),
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
  situation({
    id: 'refused-elsewhere',
    title: 'the operator may not read a Secret of another namespace, as its status says',
    behaviour: HANGS,
    settle: async (world, operator) => {
      const vault = world.name('vault');
      const account = `system:serviceaccount:${operator.namespace}:${operator.name}`;
      const message = `reading credentials: secrets "login" is forbidden: User "${account}" cannot get resource "secrets" in API group "" in the namespace "${vault}"`;
      const failed = { type: 'Ready', status: 'False', reason: 'DeleteFailed', message };
      const conditions = [{ ...failed, lastTransitionTime: now() }];
      await status(() => ({ conditions }), operator.name)(world, operator);
    },
    owner: {
      code: 'owner-failing',
      says: [/cannot get/],
      advises: [/a Role in Namespace vault/, /See whether .* has the permission now/],
    },
    cure: releaseGuarded,
    mayChange: () => RIGHTS,
    beyondCommands: 'whether the operator is meant to read that Secret, only a person knows',
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
  ...workloads,
  ...bystanders,
  ...words,
  ...backends,
  ...scopes,
  ...endings,
  ...conditions,
  ...apis,
];
