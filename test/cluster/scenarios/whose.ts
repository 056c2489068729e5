import { accountSubject, grant, service, serviceAccount } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { readyPods } from '../servers/operator-process.ts';
import type { World } from '../world.ts';
import { ownerUnknown, ref } from './links.ts';
import {
  ADMIN,
  FULL,
  NAMELESS,
  type OperatorOptions,
  operatorRules,
  READ,
  rule,
  uninstall,
  workloadRef,
} from './operator.ts';
import { settledWithPod } from './pods.ts';
import {
  guardedRef,
  HANGS,
  heldBy,
  KEPT,
  keeper,
  missingOrUnknown,
  releaseGuarded,
  type Situation,
  type Step,
  situation,
  writesStatus,
} from './situation.ts';
import {
  createEvent,
  createLease,
  createServiceVersion,
  helm,
  installPolicyEngine,
  policyEngine,
} from './traces.ts';

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
    id: 'S61-alive',
    title: 'the backup operator runs; the operator of the type has 0 replicas',
    operator: backup(),
    bystanders: [{ ...widgetOperator, replicas: 0 }],
    afterwards: reportsStatus,
    owner: 'owner-running',
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
    id: 'S62-nameless',
    title: 'a nameless operator runs as cluster-admin; the rights of its old install are left',
    own: true,
    operator: { ...ADMIN, ...NAMELESS, name: 'controller-manager', namespace: 'platform' },
    behaviour: HANGS,
    afterwards: oldInstall,
    owner: 'owner-unknown',
  }),
];
const told = (flag: string, namespace: string) => ({ args: ['run', `${flag}=${namespace}`] });

const twice: Scenario[] = [
  situation({
    id: 'S63-args',
    title:
      'two installs of StatefulSets: the one for this namespace has 0 replicas, the other watches team-b by its arguments',
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
];

const workloads: Scenario[] = [
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
];

const leases: Scenario[] = [
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

/** Three Deployments of one product, one account. */
const gizmo = (name: string, more: OperatorOptions = {}): OperatorOptions => ({
  name: `gizmo-${name}`,
  account: 'gizmo',
  namespace: 'gizmo-system',
  ...more,
});

const sharedAccounts: Scenario[] = [
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
    id: 'class-in-name',
    title: 'the object names a class, and so does the name of the only controller',
    operator: { ...NAMELESS, name: 'net-blue' },
    afterwards: ofClass('blue.widget.example.com'),
    owner: 'owner-running',
  }),
];

const writers: Scenario[] = [
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
  ...sharedAccounts,
  ...installs,
  ...events,
  ...bindings,
];
