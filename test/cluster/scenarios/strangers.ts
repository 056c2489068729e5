import { setTimeout as sleep } from 'node:timers/promises';
import { stringAt } from '../../../src/base/json.ts';
import { byService, createPolicy, createWebhook, webhookRef } from '../admission.ts';
import { refOf } from '../client.ts';
import { apiVersionOf } from '../inventory.ts';
import {
  apiService,
  apiServiceRef,
  customObject,
  customType,
  deployment,
  service,
  typeRef,
} from '../objects.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import { readyPods } from '../servers/operator-process.ts';
import { createDeadNode, runningStatus, runPodsIn, startStandIn } from '../servers/stand-in.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { CONTENT_FAILURE, deploymentRef, FINALIZERS, podRef, ref } from './links.ts';
import {
  clusterName,
  FULL,
  install,
  type Operator,
  type OperatorOptions,
  operatorOf,
  operatorRules,
  uninstall,
  workloadRef,
} from './operator.ts';
import {
  GUARDED,
  guardedRef,
  heldBy,
  missingOrUnknown,
  nobodyKnown,
  nobodyLeft,
  owner,
  RIGHTS,
  release,
  releaseGuarded,
  restart,
  type Step,
  scaleUp,
  settledByFinalizer,
  situation,
} from './situation.ts';
import { createLease, createServiceVersion } from './traces.ts';
import { createUnconvertible } from './unreadable-types.ts';
import { noPod, tryAgain } from './why.ts';

/** Installations as they are found in the field, by people who have not read the others. */

const HANGS = { hangs: true };
const ADMIN: OperatorOptions = { role: 'cluster-admin' };
const NAMELESS = { manager: 'manager', container: { name: 'manager' } };
const READ = ['get', 'list', 'watch'];
const RBAC = 'rbac.authorization.k8s.io/v1';

const rule = (apiGroup: string, resources: string[], verbs: string[]) => ({
  apiGroups: [apiGroup],
  resources,
  verbs,
});

/** Either of these chains behind the object. */
const either =
  (...ends: ((world: World, operator: Operator) => Link)[]) =>
  (world: World, operator: Operator): Partial<Expectation> => ({
    anyOf: ends.map((end) => ({ chains: [[heldBy(world, operator), end(world, operator)]] })),
  });
const asleep = (_: World, operator: Operator): Link => owner(operator, 'owner-scaled-to-zero');
const unknown = (world: World, operator: Operator): Link => nobodyKnown(world, operator);

/** Written as a whole, finalizer and all, by this manager, as a restore or a GitOps tool does. */
const madeBy =
  (manager: string, then?: Step): Step =>
  async (world, operator) => {
    const own = guardedRef(world, operator);
    await release(world, own);
    await world.client.delete(own);
    await world.gone(own);
    const { kind, finalizer, namespace: _ } = operator;
    const finalizers = [finalizer];
    const made = customObject(apiVersionOf(operator), kind, world.namespace, GUARDED, {
      finalizers,
    });
    await world.create({ ...made, spec: { size: 3 } }, { fieldManager: manager });
    await then?.(world, operator);
  };

const velero: OperatorOptions = {
  ...ADMIN,
  name: 'velero',
  namespace: 'velero',
  container: {
    name: 'velero',
    image: 'example.com/velero:1',
    command: ['/velero'],
    args: ['server'],
  },
};

const writers: Scenario[] = [
  situation({
    id: 'restored-asleep',
    own: true,
    title: 'a backup tool has restored the object; its operator has 0 replicas',
    operator: { replicas: 0 },
    bystanders: [velero],
    afterwards: madeBy('velero-server'),
    expect: either(asleep),
    cure: scaleUp,
  }),
  situation({
    id: 'restored-gone',
    own: true,
    title: 'the same, and the operator is uninstalled',
    bystanders: [velero],
    afterwards: madeBy('velero-server', (world, operator) => uninstall(world, operator)),
    expect: missingOrUnknown,
    cure: releaseGuarded,
  }),
  situation({
    id: 'made-whole',
    title: 'the operator made the object with its finalizer in one go, and has 0 replicas',
    operator: { replicas: 0 },
    afterwards: madeBy('widget-operator'),
    owner: 'owner-scaled-to-zero',
    cure: scaleUp,
  }),
  situation({
    id: 'made-whole-admin',
    own: true,
    title: 'the same as cluster-admin, and it runs',
    operator: ADMIN,
    behaviour: HANGS,
    afterwards: madeBy('widget-operator'),
    expect: either((_, operator) => owner(operator, 'owner-running'), unknown),
    cure: restart,
  }),
  situation({
    id: 'ray-queue',
    title: 'a queue that admits objects of the type runs; their nameless operator has 0 replicas',
    operator: {
      ...NAMELESS,
      group: 'ray.example.io',
      kind: 'RayCluster',
      name: 'kuberay-operator',
      namespace: 'ray-system',
      replicas: 0,
    },
    bystanders: (world) => [
      {
        ...NAMELESS,
        group: 'ray.example.io',
        kind: 'RayCluster',
        name: 'kueue-controller-manager',
        namespace: 'kueue-system',
        rules: [
          rule(world.domain('ray.example.io'), ['rayclusters'], FULL),
          rule(world.domain('ray.example.io'), ['rayclusters/status'], ['get', 'patch']),
          rule(world.domain('ray.example.io'), ['rayclusters/finalizers'], ['get', 'update']),
          rule('kueue.x-k8s.io', ['workloads'], ['*']),
        ],
      },
    ],
    afterwards: async (world) => {
      const queue = { namespace: world.name('kueue-system'), name: 'kueue-controller-manager' };
      await world.create(service(queue.namespace, queue.name, { selector: { app: queue.name } }));
      await createWebhook(world, {
        operations: ['CREATE'],
        apiGroups: [world.domain('ray.example.io'), 'batch', 'apps'],
        resource: '*',
        clientConfig: byService(queue.namespace, queue.name),
        failurePolicy: 'Ignore',
      });
    },
    expect: either(asleep, unknown),
    cure: scaleUp,
  }),
  situation({
    id: 'kopf',
    own: true,
    title: 'two operators of one framework, whose finalizer and manager are called after it',
    operator: {
      manager: 'kopf',
      finalizer: 'kopf.zalando.org/KopfFinalizerMarker',
      replicas: 0,
      container: {
        name: 'main',
        image: 'example.com/widgets:1',
        command: ['kopf', 'run', '/a.py'],
      },
    },
    bystanders: [
      {
        name: 'gadget-operator',
        namespace: 'gadgets',
        group: 'gadgets.example.org',
        kind: 'Gadget',
        type: {},
        container: {
          name: 'main',
          image: 'example.com/gadgets:1',
          command: ['kopf', 'run', '/b.py'],
        },
      },
      {
        name: 'postgres-operator',
        namespace: 'postgres',
        group: 'acid.zalando.org',
        ownGroup: false,
        kind: 'Postgresql',
        type: {},
      },
    ],
    owner: 'owner-scaled-to-zero',
    cure: scaleUp,
  }),
  situation({
    id: 'kopf-admin',
    own: true,
    title: 'the same; the other one is cluster-admin, and ours is built into an image',
    operator: {
      manager: 'kopf',
      finalizer: 'kopf.zalando.org/KopfFinalizerMarker',
      replicas: 0,
      container: { name: 'main', image: 'example.com/widgets:1' },
    },
    bystanders: [
      {
        ...ADMIN,
        name: 'gadget-operator',
        namespace: 'gadgets',
        group: 'gadgets.example.org',
        kind: 'Gadget',
        type: {},
        container: {
          name: 'main',
          image: 'example.com/gadgets:1',
          command: ['kopf', 'run', '/b.py'],
        },
      },
    ],
    expect: either(asleep, unknown),
    cure: scaleUp,
  }),
  situation({
    id: 'same-name',
    own: true,
    title: 'another product has an operator of the same name; ours is uninstalled',
    operator: {
      group: 'acid.zalan.example',
      kind: 'Postgresql',
      name: 'postgres-operator',
      namespace: 'zalando',
    },
    bystanders: [
      {
        group: 'crunchydata.example',
        kind: 'PostgresCluster',
        name: 'postgres-operator',
        namespace: 'pgo',
        type: {},
      },
    ],
    afterwards: (world, operator) => uninstall(world, operator),
    expect: missingOrUnknown,
    cure: releaseGuarded,
  }),
  situation({
    id: 'olm-copied',
    own: true,
    title: 'OLM has copied the ClusterServiceVersion into other namespaces; nameless, 0 replicas',
    operator: { ...NAMELESS, name: 'brain', namespace: 'operators', replicas: 0 },
    bystanders: [{ ...NAMELESS, name: 'helper', namespace: 'tools' }],
    afterwards: async (world, operator) => {
      await createServiceVersion(world, operator);
      const olm = 'operators.coreos.com/v1alpha1';
      const own = await world.client.get(
        ref(olm, 'ClusterServiceVersion', operator.namespace, 'widgets.v1.2.0'),
      );
      for (const namespace of [world.name('tools'), world.namespace]) {
        await world.create({
          apiVersion: olm,
          kind: 'ClusterServiceVersion',
          metadata: {
            namespace,
            name: 'widgets.v1.2.0',
            labels: { 'olm.copiedFrom': 'operators' },
          },
          spec: own['spec'] ?? {},
        });
      }
    },
    owner: 'owner-scaled-to-zero',
    cure: scaleUp,
  }),
];

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

const balanced = (world: World, ...ends: Link[]): Expectation => ({
  outcome: 'stuck',
  anyOf: ends.map((end) => ({
    chains: [[{ code: 'object-finalizer', subject: webRef(world), finalizer: BALANCER }, end]],
  })),
  never: [{ code: 'owner-missing' }],
});
const balancerUnknown = (world: World): Link => ({
  code: 'owner-unknown',
  subject: webRef(world),
  finalizer: BALANCER,
});

const clouds: Scenario[] = [
  {
    id: 'cloud-static',
    own: true,
    title: 'the cloud controllers run as a static pod, with credentials of their own',
    setUp: async (world) => {
      await world.createNamespace();
      await startStandIn(world, { node: 'master-1' });
      const node = await world.client.get({ apiVersion: 'v1', kind: 'Node', name: 'master-1' });
      const name = 'cloud-controller-manager-master-1';
      await world.create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          namespace: 'kube-system',
          name,
          labels: { component: 'cloud-controller-manager', tier: 'control-plane' },
          annotations: {
            'kubernetes.io/config.mirror': 'x',
            'kubernetes.io/config.source': 'file',
          },
          ownerReferences: [
            {
              apiVersion: 'v1',
              kind: 'Node',
              name: 'master-1',
              uid: stringAt(node, 'metadata', 'uid') ?? '',
              controller: true,
            },
          ],
        },
        spec: {
          nodeName: 'master-1',
          hostNetwork: true,
          tolerations: [{ operator: 'Exists' }],
          containers: [
            {
              name: 'cloud-controller-manager',
              image: 'example.com/cloud-controller-manager:1',
              command: ['/cloud-controller-manager'],
            },
          ],
        },
      });
      await world.client.patchStatus(podRef('kube-system', name), runningStatus());
      await createLease(world, {
        namespace: 'kube-system',
        name: 'cloud-controller-manager',
        holder: 'master-1_77aa',
      });
      await createBalancer(world);
    },
    settle: settledByFinalizer,
    expect: (world) =>
      balanced(world, {
        code: 'owner-running',
        subject: podRef('kube-system', 'cloud-controller-manager-master-1'),
        finalizer: BALANCER,
      }),
    cure: (world) => release(world, webRef(world)),
    beyondCommands: 'somebody has to look into the log of the cloud controllers',
  },
  {
    id: 'cloud-hidden',
    own: true,
    title: 'only the Lease shows that cloud controllers run; another balancer has the rights',
    setUp: async (world) => {
      await world.createNamespace();
      await createBalancer(world);
      await world.ensureNamespace('metallb-system');
      await install(world, {
        type: false,
        namespace: 'metallb-system',
        name: 'metallb-controller',
        scope: 'cluster',
        rules: [rule('', ['services', 'services/status'], [...READ, 'update', 'patch'])],
        container: { name: 'controller' },
      });
      await runPodsIn(world, 'metallb-system');
      await createLease(world, {
        namespace: 'kube-system',
        name: 'cloud-controller-manager',
        holder: 'ip-10-0-0-1_77aa',
      });
    },
    settle: settledByFinalizer,
    expect: (world) => ({
      ...balanced(world, balancerUnknown(world)),
      never: [
        { code: 'owner-missing' },
        { kind: 'Deployment', namespace: 'metallb-system', name: 'metallb-controller' },
      ],
    }),
    cure: (world) => release(world, webRef(world)),
  },
];

const OWN_PLACE = {
  name: 'POD_NAMESPACE',
  valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } },
};

const scopes: Scenario[] = [
  situation({
    id: 'each-its-own',
    title: 'every team has an operator of its own; ours was in the namespace',
    operator: {
      namespace: 'preview-each-its-own',
      container: {
        name: 'main',
        env: [{ ...OWN_PLACE, name: 'WATCH_NAMESPACE' }],
      },
    },
    bystanders: [
      {
        name: 'widget-operator-b',
        namespace: 'team-b',
        container: { name: 'widget-operator', env: [{ ...OWN_PLACE, name: 'WATCH_NAMESPACE' }] },
      },
    ],
    behaviour: HANGS,
    owner: (_, { finalizer }) => [{ code: 'owner-missing', subject: 'any', finalizer }],
    expect: () => ({ deadlock: true }),
    cure: releaseGuarded,
  }),
  situation({
    id: 'scope-elsewhere',
    title: 'what the other install watches stands in a ConfigMap; ours has 0 replicas',
    operator: { replicas: 0 },
    bystanders: [
      {
        name: 'widget-operator',
        namespace: 'team-b',
        container: {
          name: 'main',
          env: [
            {
              name: 'WATCH_NAMESPACE',
              valueFrom: { configMapKeyRef: { name: 'scope', key: 'namespaces', optional: true } },
            },
          ],
        },
      },
    ],
    expect: either(asleep, unknown),
    cure: scaleUp,
  }),
  situation({
    id: 'own-place',
    title: 'an argument names the namespace in which the operator lives; it has 0 replicas',
    operator: {
      replicas: 0,
      container: { name: 'main', args: ['--namespace=$(POD_NAMESPACE)'], env: [OWN_PLACE] },
    },
    expect: either(asleep, unknown),
    cure: scaleUp,
  }),
  situation({
    id: 'paused-whole',
    title: 'an object is part of one that is paused; their operator runs and leaves both alone',
    operator: (world) => ({
      rules: [{ apiGroups: [world.domain('example.com')], resources: ['*', '*/*'], verbs: ['*'] }],
    }),
    behaviour: { cleanUp: () => 'paused', tells: false },
    spec: { paused: true },
    afterwards: async (world, operator) => {
      const { group, finalizer, manager } = operator;
      await world.createType(customType({ group, kind: 'Part' }));
      const whole = await world.client.get(guardedRef(world, operator));
      const { apiVersion, kind, name } = guardedRef(world, operator);
      const uid = stringAt(whole, 'metadata', 'uid') ?? '';
      const part = ref(`${group}/v1`, 'Part', world.namespace, 'disk');
      await world.create({
        ...customObject(part.apiVersion, 'Part', world.namespace, 'disk'),
        metadata: {
          namespace: world.namespace,
          name: 'disk',
          ownerReferences: [{ apiVersion, kind, name, uid, controller: true }],
        },
      });
      await world.client.patch(
        part,
        { metadata: { finalizers: [finalizer] } },
        { fieldManager: manager },
      );
    },
    expect: (world, operator) => ({
      chains: 'any',
      rootCauses: [
        owner(operator, 'owner-running', { says: [/spec.paused/], advises: [/paused/] }),
      ],
      never: [{ code: 'owner-missing' }],
      also: ({ namespace }) => {
        const slow = namespace.findings.filter(({ message }) => /may be slow/.test(message));
        if (slow.length > 0) throw new Error(`called slow: ${slow[0]?.message} ${world.namespace}`);
      },
    }),
    cure: async (world, operator) => {
      await releaseGuarded(world, operator);
      await release(world, ref(`${operator.group}/v1`, 'Part', world.namespace, 'disk'));
    },
    beyondCommands: 'the stand-in of the operator stays paused',
  }),
  situation({
    id: 'other-pause',
    title: 'an annotation of another project under the same roof says paused; the operator runs',
    operator: { group: 'widgets.bob.github.io' },
    behaviour: HANGS,
    afterwards: (world, operator) =>
      world.client.patch(guardedRef(world, operator), {
        metadata: { annotations: { 'deploys.alice.github.io/paused': 'true' } },
      }),
    owner: (_, operator) => [
      owner(operator, 'owner-running', { says: [/nothing that can be seen/] }),
    ],
    cure: restart,
  }),
];

const firstPod = (world: World, { namespace }: Operator) =>
  waitUntil('the pod of the operator', async () => {
    const pods = await world.client.list('v1', 'Pod', namespace);
    return pods.find(({ status }) => stringAt(status ?? null, 'phase') !== 'Failed');
  });

const CONTAINER = {
  name: 'main',
  image: 'example.com/none:1',
  imageID: '',
  ready: false,
  restartCount: 0,
};

const unready: Scenario[] = [
  situation({
    id: 'pod-security',
    title: 'Pod Security refuses the pods of the operator',
    unscheduled: true,
    before: async (world, { namespace }) => {
      await world.ensureNamespace(namespace);
      await world.client.patch(
        { apiVersion: 'v1', kind: 'Namespace', name: namespace },
        { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } },
      );
    },
    afterwards: async (world, operator) => {
      await runPodsIn(world, operator.namespace);
      await noPod(/PodSecurity/)(world, operator);
    },
    owner: (_, operator) => [owner(operator, 'owner-not-ready', { says: [/PodSecurity/] })],
    cure: async (world, operator) => {
      await world.client.patch(
        { apiVersion: 'v1', kind: 'Namespace', name: operator.namespace },
        { metadata: { labels: null } },
      );
      await tryAgain(world, operator);
    },
    beyondCommands: 'somebody has to decide what the operator may do',
  }),
  situation({
    id: 'evicted',
    title: 'the pod of the operator was evicted, and the next one finds no node',
    unscheduled: true,
    afterwards: async (world, operator) => {
      const first = await firstPod(world, operator);
      await world.client.patchStatus(refOf(first), {
        phase: 'Failed',
        reason: 'Evicted',
        message: 'The node was low on resource: memory.',
      });
      const next = await waitUntil('the next pod', async () => {
        const pods = await world.client.list('v1', 'Pod', operator.namespace);
        return pods.find(({ metadata }) => metadata.name !== first.metadata.name);
      });
      await world.client.patchStatus(refOf(next), {
        conditions: [
          {
            type: 'PodScheduled',
            status: 'False',
            reason: 'Unschedulable',
            message: '0/3 nodes are available: 3 Insufficient memory.',
          },
        ],
      });
    },
    owner: (_, operator) => [owner(operator, 'owner-not-ready', { says: [/Insufficient memory/] })],
    cure: releaseGuarded,
    beyondCommands: 'somebody has to make room on the nodes',
  }),
  situation({
    id: 'init-image',
    title: 'an init container of the operator waits for its image',
    unscheduled: true,
    afterwards: async (world, operator) => {
      const pod = await firstPod(world, operator);
      await world.client.patchStatus(refOf(pod), {
        phase: 'Pending',
        conditions: [
          { type: 'PodScheduled', status: 'True' },
          {
            type: 'Initialized',
            status: 'False',
            reason: 'ContainersNotInitialized',
            message: 'containers with incomplete status: [certs]',
          },
        ],
        initContainerStatuses: [
          {
            ...CONTAINER,
            name: 'certs',
            state: { waiting: { reason: 'ImagePullBackOff', message: 'Back-off pulling image' } },
          },
        ],
        containerStatuses: [{ ...CONTAINER, state: { waiting: { reason: 'PodInitializing' } } }],
      });
    },
    owner: (_, operator) => [owner(operator, 'owner-not-ready', { says: [/Back-off pulling/] })],
    cure: releaseGuarded,
    beyondCommands: 'somebody has to bring the image',
  }),
  situation({
    id: 'probe-fails',
    title: 'the operator runs and is never ready: its probe fails',
    unscheduled: true,
    afterwards: async (world, operator) => {
      const pod = await firstPod(world, operator);
      const words = {
        reason: 'ContainersNotReady',
        message: 'containers with unready status: [main]',
      };
      await world.client.patchStatus(refOf(pod), {
        phase: 'Running',
        conditions: [
          { type: 'PodScheduled', status: 'True' },
          { type: 'Ready', status: 'False', ...words },
          { type: 'ContainersReady', status: 'False', ...words },
        ],
        containerStatuses: [
          { ...CONTAINER, state: { running: { startedAt: '2026-01-01T00:00:00Z' } } },
        ],
      });
    },
    owner: (_, operator) => [owner(operator, 'owner-not-ready', { says: [/unready status/] })],
    cure: releaseGuarded,
    beyondCommands: 'nobody knows what its probe asks for',
  }),
  situation({
    id: 'node-lost',
    title: 'the pod of the operator is on a node that is not ready',
    unscheduled: true,
    afterwards: async (world, operator) => {
      const node = world.name('lost');
      await createDeadNode(world, node);
      const pod = await firstPod(world, operator);
      await world.client.call('POST', await world.client.pathOf(refOf(pod), 'binding'), {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name: pod.metadata.name },
        target: { apiVersion: 'v1', kind: 'Node', name: node },
      });
      // As the node lifecycle controller leaves them (pkg/util/node, MarkPodsNotReady).
      await world.client.patchStatus(refOf(pod), {
        ...runningStatus(),
        conditions: [{ type: 'Ready', status: 'False' }],
      });
    },
    owner: (_, operator) => [owner(operator, 'owner-not-ready', { says: [/[Nn]ode/] })],
    cure: releaseGuarded,
    beyondCommands: 'somebody has to repair the node',
  }),
  situation({
    id: 'rollout-paused',
    title: 'the Deployment of the operator is paused and has never made a pod',
    unscheduled: true,
    afterwards: async (world, operator) => {
      const { metadata, spec } = await world.client.get(workloadRef(operator));
      await world.client.delete(workloadRef(operator), { propagationPolicy: 'Background' });
      await world.gone(workloadRef(operator));
      await world.create({
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: {
          namespace: operator.namespace,
          name: metadata.name,
          labels: metadata['labels'] ?? {},
        },
        spec: { ...(spec as object), paused: true },
      });
      await runPodsIn(world, operator.namespace);
    },
    owner: (_, operator) => [owner(operator, 'owner-not-ready', { says: [/paused/] })],
    cure: (world, operator) =>
      world.client.patch(workloadRef(operator), { spec: { paused: false } }),
  }),
  situation({
    id: 'between-runs',
    title: 'the operator is a CronJob between two runs',
    operator: { workload: 'CronJob' },
    unscheduled: true,
    afterwards: async (world, operator) => {
      await world.client.patch(workloadRef(operator), { spec: { schedule: '0 3 1 1 *' } });
      const jobs = await world.client.list('batch/v1', 'Job', operator.namespace);
      for (const job of jobs)
        await world.client.delete(refOf(job), { propagationPolicy: 'Background' });
    },
    owner: 'owner-running',
    cure: releaseGuarded,
    beyondCommands: 'its work takes time',
  }),
];

const emptied = (world: World): Promise<unknown> =>
  waitUntil(
    'it to be empty',
    async () => (await world.client.list('v1', 'ServiceAccount', world.namespace)).length === 0,
  );

const finishing = (
  id: string,
  title: string,
  resource: string,
  more: Partial<Scenario> = {},
): Scenario => ({
  id,
  title,
  setUp: async (world) => {
    await world.createNamespace();
    await createWebhook(world, {
      operations: ['UPDATE'],
      apiGroup: '',
      resource,
      clientConfig: byService(world.name('audit-system'), 'audit'),
      timeoutSeconds: 1,
    });
    await sleep(2_000);
  },
  settle: async (world) => {
    await emptied(world);
    await sleep(20_000);
  },
  expect: (world) => ({
    outcome: 'stuck',
    chains: [[{ code: 'admission-webhook-failing', subject: webhookRef(world) }]],
  }),
  cure: (world) => world.client.delete(webhookRef(world)),
  ...more,
});

const obstacles: Scenario[] = [
  situation({
    id: 'exempt-pods',
    title: 'a dead webhook on pods lets those of the operator pass; it has 0 replicas',
    operator: { replicas: 0 },
    afterwards: async (world, { namespace, name }) => {
      await createWebhook(world, {
        operations: ['CREATE'],
        resource: 'pods',
        clientConfig: byService(world.name('mesh'), 'gone'),
        sees: namespace,
        timeoutSeconds: 1,
      });
      await world.client.call(
        'PATCH',
        await world.client.pathOf(webhookRef(world)),
        [
          {
            op: 'add',
            path: '/webhooks/0/objectSelector',
            value: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: [name] }] },
          },
        ],
        { 'content-type': 'application/json-patch+json' },
      );
    },
    owner: 'owner-scaled-to-zero',
    expect: (world) => ({ never: [webhookRef(world)] }),
    cure: scaleUp,
  }),
  situation({
    id: 'exempt-conditions',
    title: 'the same by match conditions',
    operator: { replicas: 0 },
    afterwards: async (world, { namespace, name }) => {
      await createWebhook(world, {
        operations: ['CREATE'],
        resource: 'pods',
        clientConfig: byService(world.name('mesh'), 'gone'),
        sees: namespace,
        timeoutSeconds: 1,
      });
      await world.client.call(
        'PATCH',
        await world.client.pathOf(webhookRef(world)),
        [
          {
            op: 'add',
            path: '/webhooks/0/matchConditions',
            value: [
              {
                name: 'others',
                expression: `object.metadata.?labels.app.orValue('') != '${name}'`,
              },
            ],
          },
        ],
        { 'content-type': 'application/json-patch+json' },
      );
    },
    owner: 'owner-scaled-to-zero',
    expect: (world) => ({ never: [webhookRef(world)] }),
    cure: scaleUp,
  }),
  finishing(
    'finalize-refused',
    'a dead webhook is asked about the end of namespaces',
    'namespaces/finalize',
  ),
  finishing(
    'status-refused',
    'a dead webhook is asked about the conditions of namespaces: nobody needs them',
    'namespaces/status',
    {
      settle: (world) => world.gone(world.namespaceRef),
      expect: () => ({ outcome: 'not-found', chains: [] }),
    },
  ),
  finishing('every-update', 'a dead webhook is asked about every update of anything', '*/*', {
    own: true, // selectors of namespaces do not keep it from what is in none
  }),
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
      await sleep(2_000);
    },
    settle: async (world) => {
      await emptied(world);
      await sleep(20_000);
    },
    expect: (world) => ({
      outcome: 'stuck',
      chains: [
        [
          {
            code: ['admission-denied', 'unexplained'],
            subject: 'any',
            says: [new RegExp(world.name('keep'))],
          },
        ],
      ],
    }),
    cure: (world) =>
      world.client.delete({
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingAdmissionPolicyBinding',
        name: world.name('keep'),
      }),
    beyondCommands: 'only a person knows why the policy wants it to stay',
  },
  situation({
    id: 'mesh-asleep',
    title:
      'the operator runs; the validating webhook of a mesh with 0 replicas refuses its updates',
    behaviour: { tells: false },
    before: async (world) => {
      const namespace = world.name('istio-system');
      await world.createNamespace(namespace);
      await world.createAll([
        deployment(namespace, 'istiod', { replicas: 0 }),
        service(namespace, 'istiod', { selector: { app: 'istiod' } }),
      ]);
    },
    afterwards: (world, { group }) =>
      createWebhook(world, {
        operations: ['CREATE', 'UPDATE'],
        apiGroup: group,
        resource: '*',
        clientConfig: byService(world.name('istio-system'), 'istiod'),
        timeoutSeconds: 1,
      }).then(() => sleep(2_000)),
    owner: (world, operator) => [
      owner(operator, 'owner-failing'),
      {
        code: 'admission-webhook-failing',
        subject: webhookRef(world),
        says: [/istiod is scaled to zero/],
        advises: [/kubectl scale deployment istiod/],
      },
    ],
    cure: async (world) => {
      await world.client.delete(webhookRef(world));
    },
    mayChange: (world) => [deploymentRef(world.name('istio-system'), 'istiod')],
    beyondCommands: 'the stand-in of the mesh serves nothing',
  }),
  situation({
    id: 'inside-both',
    title: 'operator and its webhook on changes of the type were in the namespace',
    operator: { namespace: 'preview-inside-both' },
    behaviour: HANGS,
    afterwards: async (world, { namespace, name, group }) => {
      await world.create(service(namespace, name, { selector: { app: name } }));
      await createWebhook(world, {
        operations: ['UPDATE'],
        apiGroup: group,
        resource: 'widgets',
        clientConfig: byService(namespace, name),
        timeoutSeconds: 1,
      });
    },
    expect: (world, { finalizer }) => ({
      chains: 'any',
      rootCauses: [
        { code: 'owner-missing', subject: 'any', finalizer },
        { code: 'admission-webhook-failing', subject: webhookRef(world) },
      ],
      deadlock: true,
    }),
    cure: async (world, operator) => {
      await world.client.delete(webhookRef(world));
      await releaseGuarded(world, operator);
    },
  }),
  situation({
    id: 'invalid-running',
    title: 'the operator runs, and its type has got a field without which nothing is valid',
    unscheduled: true,
    afterwards: async (world, operator) => {
      const { group, kind } = operator;
      const { spec } = structuredClone(customType({ group, kind })) as {
        spec: {
          versions: [{ schema: { openAPIV3Schema: { required?: string[]; properties: object } } }];
        };
      };
      const schema = spec.versions[0].schema.openAPIV3Schema;
      schema.required = ['size'];
      schema.properties = { ...schema.properties, size: { type: 'integer' } };
      await world.client.patch(typeRef(group, kind), {
        spec: { versions: spec.versions },
      } as never);
      await sleep(3_000);
      await runPodsIn(world, operator.namespace);
    },
    settle: async (world, operator) => {
      await waitUntil('it to complain', async () => {
        const events = await world.client.list('v1', 'Event', operator.namespace);
        return events.some((event) => /Required value/.test(JSON.stringify(event)));
      });
      await settledByFinalizer(world);
    },
    owner: (_, operator) => [owner(operator, 'owner-failing', { says: [/size/] })],
    cure: async (world, operator) => {
      await world.client.patch(guardedRef(world, operator), {
        metadata: { finalizers: null },
        size: 1,
      });
    },
    beyondCommands: 'only a person knows what the field should say',
  }),
];

const roots: Scenario[] = [
  situation({
    id: 'two-troubles',
    own: true,
    title: 'the dead conversion of another group, and an operator with 0 replicas',
    operator: { group: 'tools.example.org', kind: 'Tool', name: 'tool-operator', replicas: 0 },
    before: async (world) => {
      await world.createNamespace('elsewhere');
      await createUnconvertible(world, { namespace: 'hooks', name: 'conv' }, 'elsewhere');
    },
    settle: (world) =>
      world.settled({
        [CONTENT_FAILURE]: ['True', /initializing|conv/],
        [FINALIZERS]: ['True', /./],
      }),
    expect: (world, operator) => ({
      chains: [
        [heldBy(world, operator), owner(operator, 'owner-scaled-to-zero')],
        [{ code: 'conversion-webhook-failing', subject: typeRef('example.com', 'Widget') }],
      ],
    }),
    cure: async (world, operator) => {
      await world.client.patch(typeRef('example.com', 'Widget'), {
        spec: { conversion: { strategy: 'None', webhook: null } },
      });
      await scaleUp(world, operator);
    },
    beyondCommands: 'nobody can bring back who converted',
  }),
  situation({
    id: 'one-sleeper',
    own: true,
    title: 'the operator with 0 replicas serves an API of its group as well',
    operator: { group: 'tools.example.org', kind: 'Tool', name: 'tool-operator', replicas: 0 },
    afterwards: async (world, { namespace, name, group }) => {
      await world.create(service(namespace, name, { selector: { app: name } }));
      await world.create(apiService(`metrics.${group}`, 'v1beta1', { namespace, name }));
      await world.client.waitFor(apiServiceRef(`metrics.${group}`, 'v1beta1'), 'is down', (found) =>
        JSON.stringify(found?.['status'] ?? '').includes('"False"'),
      );
    },
    settle: (world) =>
      world.settled({
        NamespaceDeletionDiscoveryFailure: ['True', /metrics/],
        [FINALIZERS]: ['True', /./],
      }),
    expect: (world, operator) => ({
      chains: [
        [heldBy(world, operator), owner(operator, 'owner-scaled-to-zero')],
        [
          {
            code: 'apiservice-unavailable',
            subject: apiServiceRef(`metrics.${operator.group}`, 'v1beta1'),
          },
          owner(operator, 'owner-scaled-to-zero'),
        ],
      ],
      notInspected: [`metrics.${operator.group}`],
    }),
    cure: async (world, operator) => {
      await world.client.delete(apiServiceRef(`metrics.${operator.group}`, 'v1beta1'));
      await scaleUp(world, operator);
    },
    beyondCommands: 'the stand-in of the operator serves no API',
  }),
  situation({
    id: 'two-finalizers',
    title: 'one operator with 0 replicas holds two objects by three finalizers',
    operator: { replicas: 0 },
    afterwards: async (world, operator) => {
      const { manager, finalizer, kind } = operator;
      await world.client.patch(
        guardedRef(world, operator),
        { metadata: { finalizers: [finalizer, `${finalizer}-secrets`] } },
        { fieldManager: manager },
      );
      await world.create(customObject(apiVersionOf(operator), kind, world.namespace, 'cache'));
      await world.client.patch(
        { ...guardedRef(world, operator), name: 'cache' },
        { metadata: { finalizers: [`${finalizer}-disks`] } },
        { fieldManager: manager },
      );
    },
    expect: (_, operator) => ({
      chains: 'any',
      rootCauses: ['', '-secrets', '-disks'].map((suffix) => ({
        ...owner(operator, 'owner-scaled-to-zero'),
        finalizer: `${operator.finalizer}${suffix}`,
      })),
    }),
    cure: scaleUp,
    beyondCommands: 'the stand-in of the operator knows one finalizer',
  }),
  {
    id: 'foreground-pods',
    title: 'a Deployment that was deleted in the foreground waits for a pod that somebody holds',
    setUp: async (world) => {
      await world.createNamespace();
      const namespace = world.name('guard-system');
      await world.ensureNamespace(namespace);
      const operator = await install(world, {
        namespace,
        name: 'pod-guard',
        group: 'guards.example.org',
        kind: 'Guard',
        scope: 'cluster',
        replicas: 0,
        rules: [
          ...operatorRules({ group: world.domain('guards.example.org'), kind: 'Guard' }),
          rule('', ['pods'], FULL),
        ],
      });
      await world.create(deployment(world.namespace, 'web'));
      await runPodsIn(world, world.namespace);
      const [pod] = await waitUntil('a pod', async () => {
        const pods = await readyPods(world.client, {
          ...operator,
          namespace: world.namespace,
          name: 'web',
        });
        return pods.length > 0 ? pods : undefined;
      });
      await world.client.patch(
        podRef(world.namespace, pod?.metadata.name ?? ''),
        { metadata: { finalizers: [`${operator.group}/watch`] } },
        { fieldManager: operator.manager },
      );
      await world.client.delete(deploymentRef(world.namespace, 'web'), {
        propagationPolicy: 'Foreground',
      });
      await sleep(3_000);
    },
    settle: async (world) => {
      await world.settled();
      await sleep(3_000);
    },
    expect: (world) => {
      const operator = operatorOf(world, {
        namespace: world.name('guard-system'),
        name: 'pod-guard',
        group: 'guards.example.org',
        kind: 'Guard',
      });
      return {
        outcome: 'stuck',
        chains: 'any',
        rootCauses: [
          { ...owner(operator, 'owner-scaled-to-zero'), finalizer: `${operator.group}/watch` },
        ],
        never: [{ kind: 'Pod', namespace: 'kube-system' }],
      };
    },
    cure: async (world) => {
      for (const pod of await world.client.list('v1', 'Pod', world.namespace)) {
        await release(world, refOf(pod));
      }
    },
    beyondCommands: 'the stand-in of the operator knows its own type only',
  },
];

const lost = (kind: 'ClusterRole' | 'ClusterRoleBinding', id: string, title: string): Scenario =>
  situation({
    id,
    own: true,
    title,
    behaviour: { tells: false },
    afterwards: (world, operator) =>
      world.client.delete({ apiVersion: RBAC, kind, name: clusterName(operator) }),
    expect: either(
      (_, operator) => owner(operator, 'owner-failing', { says: [/RBAC/] }),
      (world, operator) => ({ ...nobodyKnown(world, operator), says: [/no right/] }),
    ),
    cure: releaseGuarded,
    mayChange: () => RIGHTS,
    beyondCommands: 'somebody has to give it its rights again',
  });

const rights: Scenario[] = [
  lost('ClusterRoleBinding', 'binding-gone', 'the binding of the operator is gone; it runs'),
  lost('ClusterRole', 'role-gone', 'the role of the operator is gone, its binding is not; it runs'),
  situation({
    id: 'anybody',
    own: true,
    title: 'everybody who is authenticated may change the type; the operator is uninstalled',
    bystanders: [{ name: 'shop', namespace: 'shop', rules: [rule('', ['pods'], READ)] }],
    before: async (world, { group }) => {
      await world.createAll([
        {
          apiVersion: RBAC,
          kind: 'ClusterRole',
          metadata: { name: 'widgets-for-all' },
          rules: [rule(group, ['widgets', 'widgets/status'], FULL)],
        },
        {
          apiVersion: RBAC,
          kind: 'ClusterRoleBinding',
          metadata: { name: 'widgets-for-all' },
          roleRef: {
            apiGroup: 'rbac.authorization.k8s.io',
            kind: 'ClusterRole',
            name: 'widgets-for-all',
          },
          subjects: [
            { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:authenticated' },
          ],
        },
      ]);
    },
    afterwards: (world, operator) => uninstall(world, operator),
    expect: either(unknown, (_, operator) => nobodyLeft(operator)),
    cure: releaseGuarded,
  }),
];

export const strangers = [
  ...writers,
  ...clouds,
  ...scopes,
  ...unready,
  ...obstacles,
  ...roots,
  ...rights,
];
