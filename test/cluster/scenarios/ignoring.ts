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
import { RUNS, waitsForAll } from './overheard.ts';
import {
  advisesNot,
  guardedRef,
  heldBy,
  nobodyKnown,
  owner,
  release,
  releaseGuarded,
  type Situation,
  type Step,
  situation,
} from './situation.ts';
import { createOwnLease } from './traces.ts';

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
    owner: (world, operator) => [
      {
        ...nobodyKnown(world, operator),
        advises: [/Let Deployment .*widget-operator watch Namespace/],
      },
    ],
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
];
