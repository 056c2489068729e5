import { service } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { readyPods } from '../servers/operator-process.ts';
import type { World } from '../world.ts';
import { FULL, NAMELESS, type OperatorOptions, rule, uninstall } from './operator.ts';
import { settledWithPod } from './pods.ts';
import {
  guardedRef,
  HANGS,
  KEPT,
  keeper,
  type Step,
  situation,
  writesStatus,
} from './situation.ts';
import { createEvent, createLease, createServiceVersion, helm } from './traces.ts';

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

const leases: Scenario[] = [
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
];

const classes: Scenario[] = [];

export const whose = [
  ...classes,
  ...foreignFinalizers,
  ...twice,
  ...leases,
  ...installs,
  ...events,
];
