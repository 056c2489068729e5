import type { JsonObject } from '../../../src/base/json.ts';
import type { Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { objectFinalizer } from './links.ts';
import {
  createGuarded,
  install,
  NAMELESS,
  type Operator,
  type OperatorOptions,
  operatorOf,
  operatorRules,
  READ,
  rule,
  runPods,
  start,
} from './operator.ts';
import { RUNS, reports, waitsForAll } from './overheard.ts';
import {
  advisesNot,
  guardedRef,
  heldBy,
  owner,
  release,
  releaseGuarded,
  type Situation,
  type Step,
  situation,
} from './situation.ts';
import { createLease, createOwnLease } from './traces.ts';

/** What does, and what does not, keep a running controller from an object that is being deleted. */

const annotate =
  (annotations: (operator: Operator) => JsonObject): Step =>
  (world, operator) =>
    world.client.patch(guardedRef(world, operator), {
      metadata: { annotations: annotations(operator) },
    });

/** No command may undo what keeps no controller from removing its finalizer. */
const resumesNothing: Situation['expect'] = () => ({ also: advisesNot(/suspend|paused/) });

const CLUSTER: OperatorOptions = {
  ...NAMELESS,
  ...{ group: 'cluster.x-k8s.io', ownGroup: false, version: 'v1beta1', kind: 'Cluster' },
  ...{ name: 'capi-controller-manager', scope: 'cluster', finalizer: 'cluster.cluster.x-k8s.io' },
};

const clusterOptions = (world: World): OperatorOptions => ({
  ...CLUSTER,
  namespace: world.name('capi-system'),
});

export const ignoring: readonly Scenario[] = [
  situation({
    id: 'flux-suspended',
    title: 'a Kustomization of Flux is suspended, which Flux ignores for deletions',
    own: true,
    spec: { suspend: true, path: './deploy' },
    operator: {
      ...{ group: 'kustomize.toolkit.fluxcd.io', ownGroup: false, kind: 'Kustomization' },
      ...{ name: 'kustomize-controller', namespace: 'flux-system' },
      ...{ finalizer: 'finalizers.fluxcd.io', manager: 'gotk-kustomize-controller' },
    },
    ...RUNS,
    expect: resumesNothing,
  }),
  situation({
    id: 'keda-paused',
    title: 'a ScaledObject of KEDA is paused, which KEDA ignores for deletions',
    own: true,
    afterwards: annotate(() => ({ 'autoscaling.keda.sh/paused': 'true' })),
    operator: {
      ...{ group: 'keda.sh', ownGroup: false, version: 'v1alpha1', kind: 'ScaledObject' },
      ...{
        name: 'keda-operator',
        namespace: 'keda',
        finalizer: 'finalizer.keda.sh',
        manager: 'keda',
      },
    },
    ...RUNS,
    expect: resumesNothing,
  }),
  ...[
    ['paused-capital', 'paused', 'False'],
    ['paused-by-no', 'suspended', 'no'],
  ].map(([id = '', key, value = '']) =>
    situation({
      id,
      title: `the annotation \`${key}\` has the value "${value}", which is no pause`,
      afterwards: annotate(({ group }) => ({ [`${group}/${key}`]: value })),
      ...RUNS,
      expect: resumesNothing,
    }),
  ),
  situation({
    id: 'cluster-paused',
    title: 'the Cluster of Cluster API to which the object belongs is paused',
    own: true,
    operator: {
      ...NAMELESS,
      ...{ group: 'infrastructure.cluster.x-k8s.io', ownGroup: false, version: 'v1beta2' },
      ...{ kind: 'AWSMachine', name: 'capa-controller-manager', namespace: 'capa-system' },
      finalizer: 'awsmachine.infrastructure.cluster.x-k8s.io',
      rules: [
        ...operatorRules({ group: 'infrastructure.cluster.x-k8s.io', kind: 'AWSMachine' }),
        rule('cluster.x-k8s.io', ['clusters'], READ),
      ],
    },
    behaviour: waitsForAll('Cluster', 'cluster.x-k8s.io/v1beta1'),
    afterwards: async (world, operator) => {
      await world.ensureNamespace(world.name('capi-system'));
      const cluster = await install(world, clusterOptions(world));
      await start(world, cluster, {
        tells: false,
        cleanUp: ({ spec }) =>
          (spec as JsonObject)['paused'] === true ? 'it is paused' : undefined,
      });
      await createGuarded(world, cluster, 'prod', world.namespace, { paused: true });
      await world.client.patch(guardedRef(world, operator), {
        metadata: { labels: { 'cluster.x-k8s.io/cluster-name': 'prod' } },
      });
    },
    expect: (world, operator) => {
      const cluster = operatorOf(world, clusterOptions(world));
      const chain = [
        objectFinalizer(guardedRef(world, cluster, 'prod'), cluster.finalizer),
        owner(cluster, 'owner-not-acting', { advises: [/remove spec\.paused/] }),
      ];
      return { chains: [[heldBy(world, operator), ...chain], chain] };
    },
    cure: async (world) => {
      const cluster = operatorOf(world, clusterOptions(world));
      await world.client.patch(guardedRef(world, cluster, 'prod'), { spec: { paused: false } });
    },
  }),
  situation({
    id: 'told-to-ignore',
    title: 'an argument of the operator excludes the namespace that is deleted',
    operator: ({ namespace }) => ({
      container: { args: ['manager', `--ignored-namespaces=${namespace}`] },
    }),
    behaviour: { tells: false, cleanUp: () => 'not watched' },
    owner: {
      code: 'owner-not-acting',
      certainty: ['likely'],
      advises: [/Let Deployment .*widget-operator handle Widget db/],
    },
  }),
  situation({
    id: 'group-partly-paused',
    title: 'of two objects with the same finalizer, one is paused',
    behaviour: { tells: false, cleanUp: () => 'hangs' },
    afterwards: async (world, operator) => {
      await createGuarded(world, operator, 'db2');
      await annotate(({ group }) => ({ [`${group}/paused`]: 'true' }))(world, operator);
    },
    expect: (world, operator) => ({
      chains: [[{ ...heldBy(world, operator), count: 2 }, owner(operator, 'owner-running')]],
    }),
    cure: async (world, operator) => {
      await releaseGuarded(world, operator);
      await release(world, guardedRef(world, operator, 'db2'));
    },
  }),
  situation({
    id: 'lease-of-twin',
    title: 'a silent Lease in kube-system is that of another installation of the same program',
    own: true,
    ...RUNS,
    operator: ({ namespace }) => ({
      container: {
        args: [`--watch-namespace=${namespace}`, '--leader-election-namespace=kube-system'],
      },
    }),
    afterwards: async (world, { name }) => {
      const namespace = world.name('team-b-system');
      await world.ensureNamespace(namespace);
      const args = ['--watch-namespace=team-b', '--leader-election-namespace=kube-system'];
      const options = { name, namespace, scope: 'cluster', container: { args } } as const;
      const twin = await install(world, { ...options, type: false });
      await runPods(world, twin);
      await createOwnLease(world, twin, {
        namespace: 'kube-system',
        name: `${name}-team-b`,
        silentForSeconds: 900,
      });
    },
    expect: () => ({ also: advisesNot(/team-b|restart/) }),
  }),
  situation({
    id: 'workload-paused',
    title: 'a MachineDeployment is paused, and nothing else shows why its controller does not act',
    own: true,
    spec: { paused: true },
    operator: {
      ...CLUSTER,
      ...{ kind: 'MachineDeployment', namespace: 'capi-system' },
      finalizer: 'cluster.x-k8s.io/machinedeployment',
    },
    owner: {
      ...{ code: 'owner-not-acting', certainty: ['likely'] },
      says: [/may be configured to ignore MachineDeployment db/],
    },
  }),
  situation({
    id: 'paused-by-sibling-domain',
    title: 'an annotation of a neighbouring domain says that the object is not managed',
    own: true,
    operator: { group: 'kibana.k8s.example.com', ownGroup: false, kind: 'Kibana' },
    behaviour: {
      tells: false,
      cleanUp: ({ metadata: { annotations } }) =>
        annotations !== undefined && 'eck.k8s.example.com/managed' in (annotations as JsonObject)
          ? 'it is not managed'
          : undefined,
    },
    afterwards: annotate(() => ({ 'eck.k8s.example.com/managed': 'false' })),
    cure: annotate(() => ({ 'eck.k8s.example.com/managed': null })),
    owner: { code: 'owner-not-acting', says: [/may be configured to ignore/] },
  }),
  ...[
    {
      id: 'sync-refused',
      title: 'a sync was refused in the terminating namespace, and no clean-up',
      status: (world: World) => ({
        conditions: [
          {
            type: 'SyncError',
            message: `Failed sync attempt to 1a2b3c: deployments.apps "web" is forbidden: unable to create new content in namespace ${world.namespace} because it is being terminated`,
            lastTransitionTime: new Date().toISOString(),
          },
        ],
      }),
    },
    {
      id: 'pods-are-gone',
      title: 'the status says that Pods are gone, which the deletion did',
      status: () => ({
        conditions: [
          {
            ...{ type: 'Ready', status: 'False', reason: 'PodsNotReady' },
            message: 'Pods db-0, db-1 are not ready: pods "db-0" not found',
            lastTransitionTime: new Date().toISOString(),
          },
        ],
      }),
    },
    {
      id: 'result-of-ended-run',
      title: 'the status tells the result of a run that has ended',
      status: () => ({
        completionTime: new Date().toISOString(),
        conditions: [
          {
            ...{ type: 'Succeeded', status: 'False', reason: 'Failed' },
            message: 'Tasks Completed: 2 (Failed: 1, Cancelled 0), Skipped: 1',
            lastTransitionTime: new Date().toISOString(),
          },
        ],
      }),
    },
  ].map(({ status, ...told }) =>
    situation({
      ...told,
      settle: reports(status),
      ...RUNS,
      expect: () => ({ also: advisesNot(/Restore|removes the finalizer/) }),
    }),
  ),
  situation({
    id: 'lease-before-upgrade',
    title: 'an upgrade has changed the name of the Lease, and the old one is silent',
    afterwards: async (world, operator) => {
      const { name, namespace } = operator;
      const holder = `${name}-6c5f7d9b4-zzzzz_2b1c`;
      await createLease(world, { namespace, name, holder, silentForSeconds: 2_592_000 });
      await createOwnLease(world, operator, { name: '5b2c1f77.example.com' });
    },
    ...RUNS,
    expect: () => ({ also: advisesNot(/leader|restart/) }),
  }),
];
