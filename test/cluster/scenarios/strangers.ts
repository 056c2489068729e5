import { setTimeout as sleep } from 'node:timers/promises';
import { type JsonObject, stringAt } from '../../../src/base/json.ts';
import {
  byService,
  createPolicy,
  createWebhook,
  refusesEnd,
  refusesUpdate,
  webhookRef,
} from '../admission.ts';
import { refOf } from '../client.ts';
import { apiVersionOf } from '../inventory.ts';
import { apiService, apiServiceRef, customObject, customType, service } from '../objects.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import {
  bind,
  containerStatus,
  createDeadNode,
  runningStatus,
  runPodsIn,
  startStandIn,
  unready,
} from '../servers/stand-in.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { FINALIZERS, ownerUnknown, podRef, ref, statusSays, stuck } from './links.ts';
import { ADMIN, type Operator, type OperatorOptions, uninstall, workloadRef } from './operator.ts';
import {
  asleepOrUnknown,
  either,
  GUARDED,
  guardedRef,
  heldBy,
  missingOrUnknown,
  owner,
  release,
  releaseGuarded,
  type Step,
  scaleUp,
  settledByFinalizer,
  situation,
} from './situation.ts';
import { createEvent, createLease } from './traces.ts';
import { deadInjector, injector } from './why.ts';

/** Installations as they are found in the field, by people who have not read the others. */

const asleep = (_: World, operator: Operator): Link => owner(operator, 'owner-scaled-to-zero');

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
  }),
  situation({
    id: 'restored-gone',
    own: true,
    title: 'the same, and the operator is uninstalled',
    bystanders: [velero],
    afterwards: madeBy('velero-server', (world, operator) => uninstall(world, operator)),
    expect: missingOrUnknown,
  }),
  situation({
    id: 'made-whole',
    title: 'the operator made the object with its finalizer in one go, and has 0 replicas',
    operator: { replicas: 0 },
    afterwards: madeBy('widget-operator'),
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'made-whole-admin',
    own: true,
    title: 'the same; the operator may do everything',
    operator: { ...ADMIN, replicas: 0 },
    afterwards: madeBy('widget-operator'),
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'made-whole-gone',
    own: true,
    title: 'the same, and it is uninstalled; a namesake elsewhere has nothing to do with the type',
    bystanders: [{ name: 'widget-operator', namespace: 'namesakes', rules: [] }],
    afterwards: madeBy('widget-operator', (world, operator) => uninstall(world, operator)),
    // It might have had its rights by a RoleBinding here, which nobody has seen.
    expect: missingOrUnknown,
  }),
  situation({
    id: 'other-name',
    own: true,
    title:
      'only the program of the operator is called as it writes; it may do everything, and has 0 replicas',
    operator: {
      ...ADMIN,
      name: 'platform',
      manager: 'widget-operator',
      replicas: 0,
      container: { name: 'main', command: ['/widget-operator'] },
    },
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'longer-name',
    own: true,
    title:
      'what wrote is gone; another product, which may do everything, is called as its beginning',
    operator: { name: 'widget-operator-lite' },
    bystanders: [{ ...ADMIN, name: 'widget-operator', namespace: 'widgets' }],
    afterwards: (world, operator) => uninstall(world, operator),
    expect: missingOrUnknown,
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
    expect: asleepOrUnknown,
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

const createNode = (world: World, providerID: string) =>
  world.create({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: world.name('node') },
    spec: { providerID },
  });

const balanced = (world: World, ...ends: Link[]): Expectation => ({
  outcome: 'stuck',
  anyOf: ends.map((end) => ({
    chains: [[{ code: 'object-finalizer', subject: webRef(world), finalizer: BALANCER }, end]],
  })),
  never: [{ code: 'owner-missing' }],
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
    id: 'cloud-nodes',
    own: true,
    title: 'a cloud provider runs the cloud controllers, and the cluster shows only its nodes',
    setUp: async (world) => {
      await world.createNamespace();
      await createNode(world, 'aws:///eu-central-1a/i-0abc');
      await createBalancer(world);
      await world.client.patchStatus(
        webRef(world),
        { loadBalancer: { ingress: [{ hostname: 'web.elb.example.com' }] } },
        { fieldManager: 'cloud-controller-manager' },
      );
    },
    settle: settledByFinalizer,
    expect: (world) => balanced(world, ownerUnknown(webRef(world), BALANCER)),
    cure: (world) => release(world, webRef(world)),
  },
];

const OWN_PLACE = {
  name: 'POD_NAMESPACE',
  valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } },
};

const scopes: Scenario[] = [
  situation({
    id: 'own-place',
    title: 'an argument names the namespace in which the operator lives; it has 0 replicas',
    operator: {
      replicas: 0,
      container: { name: 'main', args: ['--namespace=$(POD_NAMESPACE)'], env: [OWN_PLACE] },
    },
    expect: asleepOrUnknown,
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
        owner(operator, 'owner-not-acting', { says: [/spec.paused/], advises: [/paused/] }),
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
    afterwards: (world, operator) =>
      world.client.patch(guardedRef(world, operator), {
        metadata: { annotations: { 'deploys.alice.github.io/paused': 'true' } },
      }),
    owner: { code: 'owner-running', says: [/shows why/] },
  }),
];

const firstPod = (world: World, { namespace }: Operator) =>
  waitUntil('the pod of the operator', async () => {
    const pods = await world.client.list('v1', 'Pod', namespace);
    return pods.find(({ status }) => stringAt(status ?? null, 'phase') !== 'Failed');
  });

/** What the kubelet says of the operator's pod. */
export const reported =
  (status: JsonObject): Step =>
  async (world, operator) =>
    world.client.patchStatus(refOf(await firstPod(world, operator)), status);

const notReady: Scenario[] = [
  situation({
    id: 'init-image',
    title: 'an init container of the operator waits for its image',
    unscheduled: true,
    afterwards: reported({
      phase: 'Pending',
      conditions: unready('Initialized'),
      initContainerStatuses: [
        containerStatus(
          { waiting: { reason: 'ImagePullBackOff', message: 'Back-off pulling image' } },
          { name: 'certs' },
        ),
      ],
      containerStatuses: [containerStatus({ waiting: { reason: 'PodInitializing' } })],
    }),
    owner: { code: 'owner-not-ready', says: [/Back-off pulling/] },
    beyondCommands: 'somebody has to bring the image',
  }),
  situation({
    id: 'set-refused',
    title: 'a dead webhook refuses the pods of the operator, a StatefulSet',
    operator: { workload: 'StatefulSet' },
    unscheduled: true,
    before: deadInjector('Fail'),
    afterwards: async (world, operator) => {
      await runPodsIn(world, operator.namespace);
      await waitUntil('an Event about the refusal', async () => {
        const events = await world.client.list('v1', 'Event', operator.namespace);
        return events.some((event) => /FailedCreate/.test(JSON.stringify(event)));
      });
    },
    owner: (world, operator) => [
      owner(operator, 'owner-not-ready'),
      { code: 'admission-webhook-failing', subject: injector(world) },
    ],
    cure: async (world, operator) => {
      await world.client.delete(injector(world));
      await world.client.patch(workloadRef(operator), {
        spec: { template: { metadata: { annotations: { look: 'again' } } } },
      });
    },
  }),
  situation({
    id: 'mount-fails',
    title: 'the pod of the operator waits for a Secret that its volume names',
    unscheduled: true,
    afterwards: async (world, operator) => {
      await reported({
        phase: 'Pending',
        conditions: unready('Ready'),
        containerStatuses: [containerStatus({ waiting: { reason: 'ContainerCreating' } })],
      })(world, operator);
      await createEvent(world, {
        about: refOf(await firstPod(world, operator)),
        component: 'kubelet',
        instance: 'node-1',
        reason: 'FailedMount',
        note: 'MountVolume.SetUp failed for volume "certs" : secret "webhook-certs" not found',
      });
    },
    owner: { code: 'owner-not-ready', says: [/are ready: Pod \S+: FailedMount: .*webhook-certs/] },
    beyondCommands: 'nobody knows what was in the Secret',
  }),
  situation({
    id: 'probe-fails',
    title: 'the operator runs and is never ready: its probe fails',
    unscheduled: true,
    afterwards: reported({
      phase: 'Running',
      conditions: unready('Ready', 'ContainersReady'),
      containerStatuses: [containerStatus({ running: { startedAt: '2026-01-01T00:00:00Z' } })],
    }),
    owner: { code: 'owner-not-ready', says: [/unready status/] },
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
      await bind(world.client, refOf(pod), node);
      // As the node lifecycle controller leaves them (pkg/util/node, MarkPodsNotReady).
      await world.client.patchStatus(refOf(pod), {
        ...runningStatus(),
        conditions: [{ type: 'Ready', status: 'False' }],
      });
    },
    owner: { code: 'owner-not-ready', says: [/[Nn]ode/] },
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
    owner: { code: 'owner-not-ready', says: [/paused/] },
    cure: (world, operator) =>
      world.client.patch(workloadRef(operator), { spec: { paused: false } }),
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
    await (resource === 'namespaces/status'
      ? refusesUpdate(world, world.namespaceRef, 'status')
      : refusesEnd(world));
  },
  settle: async (world) => {
    await emptied(world);
    await sleep(20_000);
  },
  expect: (world) => stuck([{ code: 'admission-webhook-failing', subject: webhookRef(world) }]),
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
      await refusesEnd(world);
    },
    settle: async (world) => {
      await emptied(world);
      await sleep(20_000);
    },
    expect: (world) =>
      stuck([
        {
          code: ['admission-denied', 'unexplained'],
          subject: 'any',
          says: [new RegExp(world.name('keep'))],
        },
      ]),
    cure: (world) =>
      world.client.delete({
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingAdmissionPolicyBinding',
        name: world.name('keep'),
      }),
    beyondCommands: 'only a person knows why the policy wants it to stay',
  },
];

const roots: Scenario[] = [
  situation({
    id: 'one-sleeper',
    own: 'new',
    title: 'the operator with 0 replicas serves an API of its group as well',
    operator: { group: 'tools.example.org', kind: 'Tool', name: 'tool-operator', replicas: 0 },
    afterwards: async (world, { namespace, name, group }) => {
      await world.create(service(namespace, name, { selector: { app: name } }));
      await world.create(apiService(`metrics.${group}`, 'v1beta1', { namespace, name }));
      await statusSays(world, apiServiceRef(`metrics.${group}`, 'v1beta1'), 'is down', '"False"');
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
];

export const strangers = [...writers, ...clouds, ...scopes, ...notReady, ...obstacles, ...roots];
