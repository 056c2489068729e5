import { accountSubject, configMap, grant, pluralOf, service, serviceAccount } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { readyPods } from '../servers/operator-process.ts';
import { containerStatus, unready } from '../servers/stand-in.ts';
import type { World } from '../world.ts';
import { ownerUnknown, ref } from './links.ts';
import {
  ADMIN,
  argo,
  FULL,
  NAMELESS,
  type Operator,
  type OperatorOptions,
  operatorRules,
  READ,
  rule,
  uninstall,
  workloadRef,
} from './operator.ts';
import { settledWithPod } from './pods.ts';
import {
  advises,
  advisesNot,
  asleepOrUnknown,
  either,
  guardedRef,
  HANGS,
  heldBy,
  KEPT,
  keeper,
  missingOrUnknown,
  nobodyKnown,
  owner,
  releaseGuarded,
  type Situation,
  type Step,
  settledByFinalizer,
  situation,
  writesStatus,
} from './situation.ts';
import {
  createEvent,
  createLease,
  createOwnLease,
  createServiceVersion,
  helm,
  installPolicyEngine,
  policyEngine,
  serveOwnWebhook,
} from './traces.ts';

/** Whose finalizer it is, and when nobody can tell. */

/** Somebody who is looked at like an owner, and may do no more than look. */
const reading = (world: World, kind = 'Widget') => [
  rule(world.domain('example.com'), [pluralOf(kind)], READ),
];

/** It is there, and the operator is uninstalled. */
const onlyPolicyEngine = (
  options?: Parameters<typeof installPolicyEngine>[2],
): Pick<Situation, 'own' | 'afterwards'> => ({
  own: true,
  afterwards: async (world, operator) => {
    await installPolicyEngine(world, operator, options);
    await uninstall(world, operator);
  },
});

const policyEngines: Scenario[] = [
  situation({
    ...onlyPolicyEngine(),
    id: 'S60',
    title: 'the operator is uninstalled; a policy engine lists its type and may read everything',
    expect: (world, operator) => ({
      ...missingOrUnknown(world, operator),
      never: [policyEngine(world)],
    }),
  }),
  situation({
    ...onlyPolicyEngine({ verbs: ['update', 'patch'] }),
    id: 'S60-able',
    title: 'the same, and the policy engine may change everything too',
    expect: (world, operator) => ({
      ...missingOrUnknown(world, operator),
      never: [policyEngine(world)],
    }),
  }),
  situation({
    ...onlyPolicyEngine({ verbs: ['update', 'patch'], replicas: 0 }),
    id: 'S60-asleep',
    title: 'the same, and the policy engine has 0 replicas',
    expect: (world, operator) => ({
      ...missingOrUnknown(world, operator),
      never: [policyEngine(world)],
    }),
  }),
  situation({
    id: 'S60-its-own',
    title: 'a nameless operator runs; the webhook on its own type leads to it',
    operator: { ...NAMELESS, name: 'acme-brain', namespace: 'acme' },
    afterwards: serveOwnWebhook,
    owner: 'owner-running',
  }),
];

/** A backup product protects what belongs to others. */
const backup =
  (more: OperatorOptions = {}) =>
  (world: World): OperatorOptions => {
    const group = world.domain('backup.example.org');
    return {
      name: 'vault-backup',
      namespace: 'backup-system',
      finalizer: `${group}/protect`,
      rules: [rule(world.domain('example.com'), ['widgets'], FULL), rule(group, ['backups'], FULL)],
      ...more,
    };
  };

/** Works on its type as ever, with its name in the status of every object. */
const widgetOperator: OperatorOptions = { name: 'widget-operator' };

const reportsStatus: Step = writesStatus({ conditions: [], phase: 'Ready' }, 'widget-operator');

const foreignFinalizers: Scenario[] = [
  situation({
    id: 'S61',
    title: 'a finalizer of a backup operator with 0 replicas; the operator of the type runs',
    operator: backup({ replicas: 0 }),
    bystanders: [widgetOperator],
    afterwards: reportsStatus,
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'S61-alive',
    title: 'the backup operator runs; the operator of the type has 0 replicas',
    operator: backup(),
    bystanders: [{ ...widgetOperator, replicas: 0 }],
    afterwards: reportsStatus,
    owner: 'owner-running',
  }),
  situation({
    id: 'S61-gone',
    title: 'the backup operator is uninstalled; the operator of the type runs',
    operator: backup(),
    bystanders: [widgetOperator],
    afterwards: async (world, operator) => {
      await reportsStatus(world, operator);
      await uninstall(world, operator);
    },
    expect: either(
      (_, { finalizer }) => ({ code: 'owner-missing', subject: 'any', finalizer }),
      nobodyKnown,
    ),
  }),
];

/** Rights of the install before this one, in a namespace where nothing runs any more. */
const oldInstall: Step = async (world, { group, kind }) => {
  const namespace = world.name('widget-old');
  const name = world.name('widget-old');
  await world.createNamespace(namespace);
  await world.createAll([
    serviceAccount(namespace, 'widget-operator'),
    ...grant(
      { name },
      [accountSubject(namespace, 'widget-operator')],
      operatorRules({ group, kind }),
    ),
  ]);
};

const leftovers: Scenario[] = [
  situation({
    id: 'S62',
    title: 'the operator runs as cluster-admin; the rights of its old install are left',
    own: true,
    operator: { ...ADMIN, namespace: 'platform', account: 'platform' },
    afterwards: oldInstall,
    owner: 'owner-running',
  }),
  situation({
    id: 'S62-asleep',
    title: 'the same, and the operator has 0 replicas',
    own: true,
    operator: { ...ADMIN, namespace: 'platform', account: 'platform', replicas: 0 },
    afterwards: oldInstall,
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'S62-nameless',
    title: 'the same, and what runs as cluster-admin has a name that says nothing',
    own: true,
    operator: { ...ADMIN, ...NAMELESS, name: 'controller-manager', namespace: 'platform' },
    behaviour: HANGS,
    afterwards: oldInstall,
    owner: 'owner-unknown',
  }),
];

/** Of two installations, in different namespaces. */
const SHOP = {
  ...NAMELESS,
  name: 'shop',
  metadata: { labels: { 'app.kubernetes.io/name': 'widgets' } },
};
const INSTANCE = 'app.kubernetes.io/instance';
const watches = (namespace: string) => ({ env: [{ name: 'WATCH_NAMESPACE', value: namespace }] });
const told = (flag: string, namespace: string) => ({ args: ['run', `${flag}=${namespace}`] });

const twice: Scenario[] = [
  situation({
    id: 'S63',
    title: 'two installs: the one for this namespace has 0 replicas, the other watches team-b',
    operator: (world) => ({ replicas: 0, container: watches(world.namespace) }),
    bystanders: [{ namespace: 'team-b-system', container: watches('team-b') }],
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'S63-args',
    title: 'the same with StatefulSets that are told by their arguments',
    operator: (world) => ({
      workload: 'StatefulSet',
      replicas: 0,
      container: told('--namespace', world.namespace),
    }),
    bystanders: [
      {
        workload: 'StatefulSet',
        namespace: 'team-b-system',
        container: told('--watch-namespace', 'team-b'),
      },
    ],
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'S63-awake',
    title: 'two installs: the one for this namespace runs, the one for team-b has 0 replicas',
    operator: (world) => ({ container: watches(`team-a,${world.namespace}`) }),
    bystanders: [{ namespace: 'team-b-system', replicas: 0, container: watches('team-b') }],
    owner: 'owner-running',
  }),
  situation({
    id: 'words-in-another-order',
    title: 'a program that runs elsewhere has the words of a bystander, which may change the type',
    operator: { name: 'cert-controller-manager', namespace: 'platform' },
    bystanders: [
      {
        ...{ name: 'cert-manager', namespace: 'certs', manager: 'cert-manager-issuing' },
        container: { name: 'cert-manager-controller' },
        rules: [rule('*', ['widgets', 'widgets/status'], ['*'])],
      },
    ],
    afterwards: async (world, operator) => {
      const status = { state: 'issued' };
      const by = { fieldManager: operator.manager };
      await world.client.patchStatus(guardedRef(world, operator), status, by);
      await uninstall(world, operator);
    },
    owner: 'owner-unknown',
  }),
  situation({
    id: 'class-in-settings',
    title:
      'the installation of the class is gone; another one, with its class in a ConfigMap, runs',
    spec: { widgetClass: 'blue' },
    operator: { ...SHOP, namespace: 'shop-blue', type: { metadata: SHOP.metadata } },
    bystanders: [{ ...SHOP, namespace: 'shop-green', settings: 'operator-config' }],
    afterwards: uninstall,
    owner: 'owner-unknown',
  }),
  situation({
    id: 'instance-of-argo',
    title:
      'Argo CD has labelled a type and a bystander as one application; the operator has 0 replicas',
    operator: {
      ...NAMELESS,
      name: 'brain',
      namespace: 'platform',
      replicas: 0,
      type: { metadata: { labels: { [INSTANCE]: 'add-ons' } } },
    },
    bystanders: [
      {
        ...NAMELESS,
        name: 'green',
        namespace: 'green',
        metadata: { labels: { [INSTANCE]: 'add-ons' } },
      },
    ],
    owner: 'owner-unknown',
  }),
  situation({
    id: 'S63-both',
    title: 'two installs that watch all namespaces: one has 0 replicas, the other runs',
    operator: { replicas: 0 },
    bystanders: [{ namespace: 'team-b-system' }],
    owner: 'owner-unknown',
  }),
  situation({
    id: 'S63-variable',
    title:
      'a variable of the only install has another namespace: of its objects, or of something else',
    operator: (world) => ({
      container: { env: [{ name: 'ACME_NAMESPACE', value: world.name('team-a') }] },
    }),
    before: (world) => world.createNamespace(world.name('team-a')),
    owner: {
      code: 'owner-running',
      certainty: ['likely'],
      says: [/it was started with ACME_NAMESPACE=/],
      advises: [/Find out whether this keeps/],
    },
  }),
  situation({
    id: 'S63-glob',
    title: 'a variable of the only install has a pattern of namespaces that leaves this one out',
    operator: (world) => ({
      container: { env: [{ name: 'ACME_NAMESPACES', value: `${world.name('team-a')},team-*` }] },
    }),
    behaviour: HANGS,
    before: (world) => world.createNamespace(world.name('team-a')),
    owner: {
      code: 'owner-not-acting',
      certainty: ['likely'],
      says: [/restrict it to other namespaces/],
    },
  }),
  situation({
    id: 'S63-configured',
    title: 'a variable of the only install has its namespaces from a ConfigMap',
    operator: {
      container: {
        env: [
          {
            name: 'ACME_NAMESPACES',
            valueFrom: { configMapKeyRef: { name: 'acme', key: 'namespaces', optional: true } },
          },
        ],
      },
    },
    behaviour: HANGS,
    owner: {
      code: 'owner-running',
      certainty: ['likely'],
      says: [/ACME_NAMESPACES from ConfigMap acme/],
      advises: [/Find out whether this keeps/],
    },
  }),
  situation({
    id: 'product-of-shared-name',
    title: 'the workload has a name that two products use; RBAC names the type for one of them',
    own: true,
    operator: {
      ...NAMELESS,
      group: 'redis.redis.opstreelabs.in',
      ownGroup: false,
      kind: 'Redis',
      name: 'redis-operator',
      namespace: 'caches',
      finalizer: 'redisFinalizer',
      type: { metadata: {} },
      replicas: 0,
    },
    bystanders: [
      {
        ...NAMELESS,
        name: 'redis-operator',
        namespace: 'other-caches',
        rules: [rule('databases.example.com', ['*'], FULL)],
      },
    ],
    owner: { code: 'owner-scaled-to-zero', certainty: ['likely'] },
  }),
  situation({
    id: 'S63-own-only',
    title: 'a variable of the only install restricts it to its own namespace',
    operator: {
      container: { env: [{ name: 'ACME_CURRENT_NAMESPACE_ONLY', value: 'true' }] },
    },
    behaviour: HANGS,
    owner: {
      code: 'owner-not-acting',
      certainty: ['likely'],
      says: [/restrict it to other namespaces/],
    },
  }),
];

/** Its container ends again and again. */
const crash: Step = (world, operator) =>
  world.client.patchStatus(ref('v1', 'Pod', operator.namespace, operator.name), {
    phase: 'Running',
    conditions: unready('Ready', 'ContainersReady'),
    containerStatuses: [
      containerStatus(
        { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } },
        {
          restartCount: 9,
          lastState: { terminated: { exitCode: 1, reason: 'Error', message: 'no license' } },
        },
      ),
    ],
  });

const workloads: Scenario[] = [
  situation({
    id: 'S64',
    title: 'the operator is a bare Pod, Running',
    operator: { workload: 'Pod' },
    owner: 'owner-running',
  }),
  situation({
    id: 'S64-replicaset',
    title: 'the operator is a ReplicaSet of its own, running',
    operator: { workload: 'ReplicaSet' },
    owner: 'owner-running',
  }),
  situation({
    id: 'S64-job',
    title: 'the operator is a Job whose pod runs',
    operator: { workload: 'Job' },
    owner: 'owner-running',
  }),
  situation({
    id: 'S64-cronjob',
    title: 'the operator is a CronJob that is suspended',
    operator: { workload: 'CronJob', replicas: 0 },
    owner: { code: ['owner-scaled-to-zero', 'owner-not-ready'] },
  }),
  situation({
    id: 'between-jobs',
    title: 'the operator is a CronJob, and none of its Jobs runs now',
    operator: { workload: 'CronJob', replicas: 0 },
    afterwards: (world, operator) =>
      world.client.patch(workloadRef(operator), {
        spec: { suspend: false, schedule: '0 3 1 1 *' },
      }),
    owner: { code: 'owner-running', says: [/may act only while its schedule runs a Job/] },
    cure: releaseGuarded,
    mayChange: () => [{ kind: 'Job' }],
  }),
  situation({
    id: 'S64-daemonset',
    title: 'the operator is a DaemonSet whose selector no node meets',
    operator: { workload: 'DaemonSet', replicas: 0 },
    owner: { code: ['owner-scaled-to-zero', 'owner-not-ready'] },
    cure: async (world, operator) => {
      const node = { 'kubernetes.io/hostname': world.name('node-1') };
      await world.client.patch(ref('apps/v1', 'DaemonSet', operator.namespace, operator.name), {
        spec: { template: { spec: { nodeSelector: node } } },
      });
    },
  }),
  situation({
    id: 'S64-crash',
    title: 'the operator is a bare Pod that crashes',
    operator: { workload: 'Pod' },
    afterwards: crash,
    owner: {
      code: 'owner-not-ready',
      says: [/is not ready: Pod \S+: CrashLoopBackOff, ended before: Error: no license/],
    },
    cure: async (world, operator) => {
      const conditions = [{ type: 'Ready', status: 'True' }];
      const pod = ref('v1', 'Pod', operator.namespace, operator.name);
      await world.client.patchStatus(pod, { conditions, containerStatuses: [] });
    },
  }),
  situation({
    id: 'S64-gone',
    title: 'the operator was a bare Pod; its account and its rights are left',
    operator: { workload: 'Pod' },
    afterwards: (world, operator) => uninstall(world, operator, ['rights', 'account']),
    owner: 'owner-missing',
  }),
];

const lockOf = ({ group, kind }: Operator): string => `${pluralOf(kind)}.${group}`;

const leases: Scenario[] = [
  situation({
    id: 'S65',
    title: 'a nameless cluster-admin with 0 replicas, and a stale Lease with the name of the group',
    own: true,
    operator: { ...ADMIN, ...NAMELESS, name: 'brain', namespace: 'platform', replicas: 0 },
    afterwards: (world, operator) =>
      createLease(world, {
        namespace: operator.namespace,
        name: lockOf(operator),
        holder: 'brain-7c9f6d5b4-x2xvq_1f0c',
        silentForSeconds: 600,
      }),
    expect: asleepOrUnknown,
  }),
  situation({
    id: 'S65-no-lease',
    title: 'a nameless cluster-admin with 0 replicas, and no Lease at all',
    own: true,
    operator: { ...ADMIN, ...NAMELESS, name: 'brain', namespace: 'platform', replicas: 0 },
    owner: 'owner-unknown',
    // It has no log in which anybody could look.
    expect: () => ({ also: advises(/if it is Deployment .*\/brain, which is not ready/) }),
  }),
  situation({
    id: 'S65-outside',
    title: 'the operator runs outside of the cluster, and renews its Lease',
    own: true, // such a Lease speaks for every operator of the name
    afterwards: async (world, operator) => {
      await uninstall(world, operator);
      await createLease(world, {
        namespace: operator.namespace,
        name: operator.name,
        holder: 'build-7_0b6e2f',
      });
    },
    expect: (world, operator) => ({
      chains: [
        [
          heldBy(world, operator),
          {
            code: ['owner-running', 'owner-unknown'],
            subject: 'any',
            finalizer: operator.finalizer,
            says: [/Lease/i],
          },
        ],
      ],
    }),
  }),
  situation({
    id: 'lease-of-the-group',
    title: 'two nameless workloads have the rights; one of them renews the Lease of the group',
    operator: { ...NAMELESS, name: 'brain', namespace: 'platform' },
    bystanders: [{ ...NAMELESS, name: 'migrator', namespace: 'platform' }],
    afterwards: (world, operator) => createOwnLease(world, operator, { name: lockOf(operator) }),
    owner: 'owner-running',
  }),
  situation({
    id: 'not-leading',
    title: 'its pod is Ready, and the Lease is held by a pod that is gone',
    behaviour: HANGS,
    afterwards: (world, { namespace, name }) =>
      createLease(world, {
        namespace,
        name,
        holder: `${name}-5d8f7c9b6-gone1_77aa`,
        silentForSeconds: 1_200,
      }),
    owner: {
      code: ['owner-not-acting', 'owner-running', 'owner-failing', 'owner-not-ready'],
      says: [/Lease|lead/i],
    },
  }),
];

/** The web UI of Argo CD: it may patch what it shows, and removes no finalizer. */
const argoServer: OperatorOptions = {
  ...argo,
  name: 'argocd-server',
  workload: 'Deployment',
  rules: [
    { apiGroups: ['*'], resources: ['*'], verbs: ['delete', 'get', 'patch'] },
    rule(
      'argoproj.io',
      ['applications'],
      ['create', 'get', 'list', 'watch', 'update', 'delete', 'patch'],
    ),
  ],
};

const flux = (name: string, replicas = 1): OperatorOptions => ({
  group: 'kustomize.toolkit.fluxcd.io',
  ownGroup: false,
  kind: 'Kustomization',
  name,
  namespace: 'gitops',
  replicas,
  finalizer: 'finalizers.fluxcd.io',
  manager: `gotk-${name}`,
  container: { name: 'manager' },
  rules: ['source', 'kustomize', 'helm', 'notification'].map((part) =>
    rule(`${part}.toolkit.fluxcd.io`, ['*'], ['*']),
  ),
});

const elsewhere: Scenario[] = [
  situation({
    id: 'S80',
    title: 'Argo CD runs in `gitops`; its finalizer came with a manifest',
    own: true,
    operator: argo,
    bystanders: [argoServer],
    owner: 'owner-running',
  }),
  situation({
    id: 'S80-asleep',
    title: 'the same, and its application controller has 0 replicas',
    own: true,
    operator: { ...argo, replicas: 0 },
    bystanders: [argoServer],
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'S80-server',
    title: 'only the web UI of Argo CD is left',
    own: true,
    operator: argo,
    bystanders: [argoServer],
    afterwards: (world, operator) => uninstall(world, operator),
    expect: missingOrUnknown,
  }),
  situation({
    id: 'S80-ingress',
    title: 'the AWS load balancer controller runs in `aws-system`; it holds an Ingress',
    operator: {
      group: 'networking.k8s.io',
      ownGroup: false,
      kind: 'Ingress',
      type: false,
      name: 'prod-aws-load-balancer-controller',
      namespace: 'aws-system',
      finalizer: 'ingress.k8s.aws/resources',
      manager: 'controller',
      rules: [rule('networking.k8s.io', ['ingresses', 'ingresses/status'], FULL)],
    },
    spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
    behaviour: HANGS,
    owner: { code: 'owner-running', certainty: ['likely'] },
  }),
  situation({
    id: 'S80-flux',
    title: 'the kustomize-controller of Flux has 0 replicas; its siblings run',
    own: true,
    operator: flux('kustomize-controller', 0),
    bystanders: ['source', 'helm', 'notification'].map((part) => flux(`${part}-controller`)),
    owner: 'owner-scaled-to-zero',
  }),
];

/** Three Deployments of one product, one account. */
const gizmo = (name: string, more: OperatorOptions = {}): OperatorOptions => ({
  name: `gizmo-${name}`,
  account: 'gizmo',
  namespace: 'gizmo-system',
  ...more,
});

const sharedAccounts: Scenario[] = [
  situation({
    id: 'S81',
    title: 'three Deployments share an account; the one that removes finalizers has 0 replicas',
    operator: gizmo('operator', { replicas: 0 }),
    bystanders: [gizmo('metrics', { rules: [] }), gizmo('webhooks', { rules: [] })],
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'S81-awake',
    title: 'the same, and it is another of the three that has 0 replicas',
    operator: gizmo('operator'),
    bystanders: [gizmo('metrics', { rules: [], replicas: 0 }), gizmo('webhooks', { rules: [] })],
    owner: 'owner-running',
  }),
  situation({
    id: 'S81-nameless',
    title: 'three nameless Deployments share an account, one of them with 0 replicas',
    operator: gizmo('operator', { ...NAMELESS, replicas: 0 }),
    bystanders: ['metrics', 'webhooks'].map((name) => gizmo(name, { ...NAMELESS, rules: [] })),
    owner: 'owner-unknown',
  }),
];

/** Runs, has the same rights, and has nothing to do with it. */
const helper: OperatorOptions = { ...NAMELESS, name: 'helper', namespace: 'platform' };
const brain: OperatorOptions = { ...NAMELESS, name: 'brain', namespace: 'platform', replicas: 0 };

const installs: Scenario[] = [
  situation({
    id: 'olm',
    title: 'a ClusterServiceVersion says which of two nameless workloads owns the type',
    own: true,
    operator: brain,
    bystanders: [helper],
    afterwards: (world, operator) => createServiceVersion(world, operator),
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'helm',
    title: 'type and one of two nameless workloads came with one Helm release',
    operator: (world) => {
      const annotations = helm('widgets', world.name('platform'));
      return { ...brain, metadata: { annotations }, type: { metadata: { annotations } } };
    },
    bystanders: (world) => [
      { ...helper, metadata: { annotations: helm('tools', world.name('platform')) } },
    ],
    owner: { code: 'owner-scaled-to-zero', certainty: ['likely'] },
  }),
  situation({
    id: 'helm-types',
    title: 'the type came with a Helm release of types; the operator has its name and 0 replicas',
    operator: (world) => {
      const namespace = world.name('widget-system');
      return {
        replicas: 0,
        metadata: { annotations: helm('widgets', namespace) },
        type: { metadata: { annotations: helm('widget-types', namespace) } },
      };
    },
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'status-writer',
    title: 'the finalizer came with a manifest; the status was written by one of two workloads',
    operator: { ...brain, container: { name: 'main' }, manager: 'kubectl-client-side-apply' },
    bystanders: [helper],
    afterwards: (world, operator) =>
      world.client.patchStatus(
        guardedRef(world, operator),
        { conditions: [{ type: 'Ready', status: 'True', reason: 'Created' }] },
        { fieldManager: operator.name },
      ),
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'conversion',
    title: 'the conversion webhook of the type leads to one of two nameless workloads',
    operator: (world) => ({
      ...brain,
      type: {
        versions: ['v1alpha1', 'v1'],
        conversion: {
          strategy: 'Webhook',
          webhook: {
            clientConfig: {
              service: { namespace: world.name('platform'), name: 'brain', path: '/convert' },
            },
            conversionReviewVersions: ['v1'],
          },
        },
      },
    }),
    bystanders: [helper],
    afterwards: (world, { namespace, name }) =>
      world.create(service(namespace, name, { selector: { app: name } })),
    owner: 'owner-scaled-to-zero',
  }),
];

const nameless = (world: World): OperatorOptions => ({ ...keeper(world), ...NAMELESS });
const POD = { ...KEPT, settle: settledWithPod };

const events: Scenario[] = [
  situation({
    ...POD,
    id: 'event-instance',
    title:
      'a pod of one of two nameless workloads reported an Event that names the finalizer: policy engines do that too',
    operator: nameless,
    behaviour: HANGS,
    bystanders: (world) => [{ ...nameless(world), name: world.name('pod-helper') }],
    afterwards: async (world, operator) => {
      const [pod] = await readyPods(world.client, operator);
      await createEvent(world, {
        about: guardedRef(world, operator),
        component: 'drain-controller',
        instance: pod?.metadata.name ?? '',
        type: 'Normal',
        note: `${operator.finalizer} stays until the pod is drained`,
        agoSeconds: 120,
      });
    },
    owner: 'owner-unknown',
  }),
  situation({
    ...POD,
    id: 'event-bystanders',
    title: 'a scheduler and a policy engine report about the held pod; its controller is gone',
    operator: nameless,
    bystanders: (world) => [
      {
        ...nameless(world),
        name: world.name('policy-reporter'),
        rules: readingPods,
        manager: 'reporter',
      },
    ],
    afterwards: async (world, operator) => {
      const about = guardedRef(world, operator);
      const reporter = { ...operator, name: world.name('policy-reporter') };
      const [pod] = await readyPods(world.client, reporter);
      await uninstall(world, operator);
      await createEvent(world, {
        about,
        component: 'default-scheduler',
        instance: 'default-scheduler-control-plane',
        note: '0/1 nodes are available',
        reason: 'FailedScheduling',
      });
      await createEvent(world, {
        about,
        component: 'policy-reporter',
        instance: pod?.metadata.name ?? '',
        note: 'policy require-limits: fail',
        reason: 'PolicyViolation',
      });
    },
    owner: 'owner-unknown',
  }),
  situation({
    ...POD,
    id: 'event-outside',
    title:
      'a controller that is not in this cluster has reported about the pod before its deletion',
    operator: (world) => ({
      ...nameless(world),
      finalizer: 'kueue.x-k8s.io/managed',
      manager: 'kueue',
    }),
    afterwards: async (world, operator) => {
      await uninstall(world, operator);
      await createEvent(world, {
        about: guardedRef(world, operator),
        component: 'kueue-workload-controller',
        instance: 'kueue-controller-manager-0',
        note: 'the workload ends in the manager cluster',
        type: 'Normal',
        reason: 'Stopped',
      });
    },
    owner: (world, operator) => [
      {
        ...ownerUnknown(guardedRef(world, operator), operator.finalizer),
        says: [/"kueue-workload-controller" reported an Event/],
      },
    ],
  }),
];

const readingPods = [rule('', ['pods'], READ)];

const bindings: Scenario[] = [
  situation({
    id: 'bound-as-group',
    title: 'the operator runs with the rights of all accounts of its namespace',
    operator: { boundAs: 'Group' },
    owner: 'owner-running',
  }),
  situation({
    id: 'bound-as-user',
    title: 'the operator is bound as a user and has 0 replicas',
    operator: { boundAs: 'User', replicas: 0 },
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'rights-on-all-types-of-the-group',
    title: 'a nameless operator may do everything in the group; a console may only look',
    operator: (world) => ({
      ...NAMELESS,
      name: 'brain',
      replicas: 0,
      rules: [{ apiGroups: [world.domain('example.com')], resources: ['*'], verbs: ['*'] }],
    }),
    bystanders: (world) => [{ name: 'widget-console', rules: reading(world) }],
    expect: either(
      (_, operator) => owner(operator, 'owner-scaled-to-zero', { certainty: ['likely'] }),
      nobodyKnown,
    ),
  }),
  situation({
    id: 'S66-console',
    title: 'the operator is uninstalled; a console that may only look runs',
    bystanders: (world) => [{ name: 'widget-console', rules: reading(world) }],
    afterwards: (world, operator) => uninstall(world, operator),
    expect: missingOrUnknown,
  }),
  situation({
    id: 'owner-namespace-terminating',
    own: true, // a namesake that runs elsewhere may act by other means than its account
    title: 'the namespace of the operator is being deleted too, and its Deployment is gone',
    afterwards: async (world, operator) => {
      const { namespace } = operator;
      await world.create(configMap(namespace, 'kept', { finalizers: ['example.net/kept'] }));
      await world.client.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
      await world.gone(ref('apps/v1', 'Deployment', namespace, operator.name));
    },
    settle: settledByFinalizer,
    expect: (world, operator) => ({
      chains: [
        [
          heldBy(world, operator),
          {
            code: 'owner-missing',
            subject: 'any',
            finalizer: operator.finalizer,
            says: [/widget-operator, which is in a terminating namespace/],
          },
        ],
      ],
    }),
  }),
];

/** The object names the class of one of several controllers of its type. */
const ofClass =
  (name: string): Step =>
  async (world, operator) => {
    const annotations = { [`${operator.group}/widget.class`]: name };
    await world.client.patch(guardedRef(world, operator), { metadata: { annotations } });
  };

const classes: Scenario[] = [
  situation({
    id: 'class-of-another',
    title:
      'the object names the class of an uninstalled controller; another part of the product runs',
    operator: { ...NAMELESS, name: 'net-blue' },
    bystanders: (world) => [
      {
        ...NAMELESS,
        name: 'net-controller',
        rules: operatorRules({ group: world.domain('example.com'), kind: 'Widget' }),
        metadata: { labels: { 'app.kubernetes.io/part-of': 'net-blue' } },
      },
    ],
    afterwards: async (world, operator) => {
      await ofClass('blue.widget.example.com')(world, operator);
      await uninstall(world, operator);
    },
    expect: (world, operator) => ({
      ...missingOrUnknown(world, operator),
      also: advisesNot(/more time/),
    }),
  }),
  situation({
    id: 'class-in-name',
    title: 'the object names a class, and so does the name of the only controller',
    operator: { ...NAMELESS, name: 'net-blue' },
    afterwards: ofClass('blue.widget.example.com'),
    owner: 'owner-running',
  }),
];

const writers: Scenario[] = [
  situation({
    id: 'writer-of-part',
    title: 'the writer of the finalizer is named after a part of the only program of that name',
    operator: { name: 'acme-vault', manager: 'acme-vault-secrets' },
    bystanders: (world) => [
      {
        ...NAMELESS,
        name: 'other',
        rules: operatorRules({ group: world.domain('example.com'), kind: 'Widget' }),
      },
    ],
    owner: 'owner-running',
  }),
  situation({
    id: 'restricted-product',
    title: 'the well-known operator watches only its own namespace, and writes as any other does',
    own: true, // the catalogue names this workload
    behaviour: HANGS,
    operator: (world) => ({
      ...NAMELESS,
      group: 'operator.victoriametrics.com',
      ownGroup: false,
      kind: 'VMAgent',
      name: 'victoria-metrics-operator',
      namespace: 'monitoring',
      finalizer: 'apps.victoriametrics.com/finalizer',
      container: {
        name: 'manager',
        env: [{ name: 'WATCH_NAMESPACE', value: world.name('monitoring') }],
      },
    }),
    owner: {
      code: 'owner-not-acting',
      certainty: ['likely'],
      advises: [
        /Let Deployment .*victoria-metrics-operator handle VMAgent .*it watches only monitoring/,
      ],
    },
  }),
];

export const whose = [
  ...classes,
  ...writers,
  ...policyEngines,
  ...foreignFinalizers,
  ...leftovers,
  ...twice,
  ...workloads,
  ...leases,
  ...elsewhere,
  ...sharedAccounts,
  ...installs,
  ...events,
  ...bindings,
];
