import type { JsonObject } from '../../../src/base/json.ts';
import { createWebhook, refusesDeletion, webhookRef } from '../admission.ts';
import type { Ref } from '../client.ts';
import { customObject, customType, podSpec, secret, volumeClaim } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import { logLine } from '../servers/container-logs.ts';
import { containerStatus, unready } from '../servers/stand-in.ts';
import { startWebhook } from '../servers/webhook.ts';
import { laterSecond } from '../wait-until.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ownerMissing, ref, stuck } from './links.ts';
import { logging } from './logs.ts';
import {
  ADMIN,
  createGuarded,
  FULL,
  NAMELESS,
  type Operator,
  type OperatorOptions,
  operatorRules,
  READ,
  rule,
  uninstall,
} from './operator.ts';
import { reports } from './overheard.ts';
import { settledWithPod } from './pods.ts';
import {
  GUARDED,
  guardedRef,
  HANGS,
  heldBy,
  nobodyKnown,
  nobodyLeft,
  owner,
  release,
  releaseGuarded,
  type Situation,
  type Step,
  scaleUp,
  settledByFinalizer,
  situation,
  writesStatus,
} from './situation.ts';
import { reported } from './strangers.ts';
import { createLease, createOwnLease } from './traces.ts';
import { contentFails } from './webhooks.ts';

/** The reason, or whose the finalizer is, stands in plain sight, but in words that no convention gives. */

/** A product under its own names, whose controller writes as any other does. */
const product = (group: string, kind: string, more: OperatorOptions = {}): OperatorOptions => ({
  ...{ group, kind, ownGroup: false, version: 'v1alpha1', type: { metadata: {} }, ...NAMELESS },
  ...more,
});

const inTheField = (told: Situation): Scenario =>
  situation({ own: true, behaviour: HANGS, cure: releaseGuarded, ...told });

const condition = (type: string, status: string, reason: string, message: string): JsonObject => ({
  conditions: [
    {
      ...{ type, status, reason, message },
      lastTransitionTime: new Date().toISOString().replace(/\.\d+/, ''),
    },
  ],
});

/** So late that whole seconds show it to be after the deletion. */
const later =
  (step: Step): Step =>
  async (world, operator) => {
    await settledByFinalizer(world);
    await laterSecond();
    await step(world, operator);
  };

const notReady = (reason: string, message: string) =>
  later(reports(() => condition('Ready', 'False', reason, message)));

const STORES = 'external-secrets.example.io';

/** A store with the credentials, outside of the namespace, that has said so since before the deletion. */
const createStore =
  (status: JsonObject): Step =>
  async (world) => {
    const kind = 'ClusterStore';
    await world.createType(customType({ group: STORES, kind, scope: 'Cluster' }));
    const type = { apiVersion: `${STORES}/v1`, kind };
    await world.create({ ...type, metadata: { name: 'vault' }, spec: {} });
    const fieldManager = 'store-controller';
    await world.client.patchStatus({ ...type, name: 'vault' }, status, { fieldManager });
  };

const inStore = (id: string, title: string, status: JsonObject, more: Partial<Situation>) =>
  inTheField({
    ...{ id, title, before: createStore(status) },
    operator: product(STORES, 'PushSecret', {
      ...{ name: 'external-secrets', manager: 'external-secrets' },
      finalizer: `pushsecret.${STORES}/finalizer`,
    }),
    spec: { storeRef: { kind: 'ClusterStore', name: 'vault' } },
    ...more,
  });

const createSecret =
  (name: string): Step =>
  (world) =>
    world.create(secret(world.namespace, name));

/** Finalizers of another object of the namespace, written by this field manager. */
const hold = ({ client }: World, held: Ref, finalizers: string[], fieldManager: string) =>
  client.patch(held, { metadata: { finalizers } }, { fieldManager });

/** These objects are freed besides the usual one. */
const releasing =
  (...others: ((world: World, operator: Operator) => Ref)[]): Step =>
  async (world, operator) => {
    await releaseGuarded(world, operator);
    for (const other of others) await release(world, other(world, operator));
  };

/** No workload is called a suspect. */
const noClue = (world: World, operator: Operator) => ({
  ...nobodyKnown(world, operator),
  says: [/its controller is not known: /],
});

const PULSAR = 'resource.streamnative.io';
const topicRef = ({ namespace }: World) =>
  ref(`${PULSAR}/v1alpha1`, 'PulsarTopic', namespace, 'orders');

const ORC = 'openstack.k-orc.cloud';
const networkRef = ({ namespace }: World) => ref(`${ORC}/v1alpha1`, 'Network', namespace, 'app');
const cloudsRef = ({ namespace }: World) => ref('v1', 'Secret', namespace, 'clouds');
const OF_ORC = [`${ORC}/network`, `${ORC}/subnet`];

const DNS = 'dns.gardener.cloud';
const ARANGO = 'database.arangodb.com';
const OF_CLAIM = `pvc.${ARANGO}/member-exists`;
const claimRef = ({ namespace }: World) => ref('v1', 'PersistentVolumeClaim', namespace, 'db-1');

const KUBEDB = 'kubedb.com';

/** Its Lease has the name that Kubebuilder invents. */
const splunk = product('enterprise.splunk.com', 'Standalone', {
  ...{ name: 'splunk-operator-controller-manager', namespace: 'splunk-operator' },
  ...{
    manager: 'splunk-operator-controller-manager',
    finalizer: 'enterprise.splunk.com/delete-pvc',
  },
});

/** Somebody runs an operator of this company on a machine of their own. */
const leadFromOutside: Step = (world, { namespace }) =>
  createLease(world, {
    ...{ namespace, name: '270bec8c.splunk.com' },
    holder: 'laptop.local_8c1f42b0-6f0f-4a55-8d5f-0d4f4f1f0c7e',
  });

const reasons: Scenario[] = [
  inTheField({
    id: 'token-of-connection',
    title: 'the connection of a topic needs a Secret that was deleted with the namespace',
    operator: product(PULSAR, 'PulsarConnection', {
      name: 'pulsar-resources-operator',
      finalizer: 'cloud.streamnative.io/finalizer',
      rules: ['PulsarConnection', 'PulsarTopic'].flatMap((kind) =>
        operatorRules({ group: PULSAR, kind }),
      ),
    }),
    spec: { authentication: { token: { secretRef: { name: 'pulsar-token', key: 'TOKEN' } } } },
    before: createSecret('pulsar-token'),
    afterwards: async (world, operator) => {
      const [group, kind] = [PULSAR, 'PulsarTopic'];
      await world.createType(customType({ group, kind, versions: [operator.version] }));
      const spec = { connectionRef: { name: GUARDED } };
      const topic = { ...operator, kind };
      await createGuarded(world, topic, 'orders', world.namespace, spec);
      const ready = condition('Ready', 'True', 'Reconciled', '');
      const { manager: fieldManager } = operator;
      await world.client.patchStatus(topicRef(world), ready, { fieldManager });
    },
    settle: notReady('AuthenticationError', 'secrets "pulsar-token" not found'),
    expect: (world, operator) => ({
      chains: [
        [
          heldBy(world, operator),
          owner(operator, 'owner-failing', {
            ...{
              certainty: ['likely'],
              says: [/can never succeed: .*Secret pulsar-token does not/],
            },
            advises: [/remove it from the 2 objects/],
          }),
        ],
        [
          objectFinalizer(topicRef(world), operator.finalizer),
          // Nothing was written to the topic since the deletion.
          owner(operator, 'owner-running', { certainty: ['likely'] }),
        ],
      ],
      deadlock: true,
    }),
    cure: releasing(topicRef),
  }),
  inTheField({
    id: 'ports-in-use',
    title:
      'a failure is told under Progressing=True; a network and a Secret are held for what failed',
    operator: product(ORC, 'Subnet', {
      ...{ name: 'orc-controller-manager', type: { metadata: {} } },
      finalizer: `${ORC}/subnet`,
      manager: `${ORC}/subnetcontroller`,
      rules: [
        ...['Subnet', 'Network'].flatMap((kind) => operatorRules({ group: ORC, kind })),
        rule('', ['secrets'], FULL),
      ],
    }),
    spec: { cloudCredentialsRef: { secretName: 'clouds' }, resource: { networkRef: 'app' } },
    before: createSecret('clouds'),
    afterwards: async (world, { version }) => {
      await world.createType(customType({ group: ORC, kind: 'Network', versions: [version] }));
      const { apiVersion, kind, namespace = '', name } = networkRef(world);
      const network = customObject(apiVersion, kind, namespace, name);
      await world.create({ ...network, spec: { cloudCredentialsRef: { secretName: 'clouds' } } });
      for (const one of [networkRef(world), cloudsRef(world)]) {
        await hold(world, one, OF_ORC, `${ORC}/networkcontroller`);
      }
    },
    settle: later(async (world, operator) => {
      const text = 'got 409 instead: {"NeutronError": {"type": "SubnetInUse"}}';
      await reports(() => condition('Progressing', 'True', 'TransientError', text))(
        world,
        operator,
      );
      const waits = 'Waiting for dependent Subnet objects to be deleted';
      await world.client.patchStatus(
        networkRef(world),
        condition('Progressing', 'True', 'Progressing', waits),
        { fieldManager: `${ORC}/networkcontroller` },
      );
    }),
    expect: (world, operator) => {
      const failed = [
        heldBy(world, operator),
        owner(operator, 'owner-failing', { says: [/\(TransientError\) .*SubnetInUse/] }),
      ];
      const network = OF_ORC.map((one) => [objectFinalizer(networkRef(world), one), ...failed]);
      const held = (one: string, behind: Link[]) => [
        objectFinalizer(cloudsRef(world), one),
        ...behind,
      ];
      const clouds = OF_ORC.flatMap((one) => network.map((behind) => held(one, behind)));
      return { chains: [failed, ...network, ...clouds, held(operator.finalizer, failed)] };
    },
    cure: releasing(networkRef, cloudsRef),
    beyondCommands: 'somebody has to remove the ports from the subnet',
  }),
  inTheField({
    id: 'awaits-what-it-names',
    title:
      'an object waits for the Secret that it names, which is held by a finalizer of its group',
    operator: product(ORC, 'Subnet', {
      ...{ name: 'orc-controller-manager', manager: 'orc-controller-manager' },
      finalizer: `${ORC}/subnet`,
      rules: [...operatorRules({ group: ORC, kind: 'Subnet' }), rule('', ['secrets'], FULL)],
    }),
    spec: { cloudCredentialsRef: { secretName: 'clouds' } },
    before: createSecret('clouds'),
    afterwards: (world) => hold(world, cloudsRef(world), [`${ORC}/copy`], 'orc-controller-manager'),
    settle: later(
      reports(() =>
        condition('Ready', 'False', 'Deleting', 'waiting until Secret clouds is deleted'),
      ),
    ),
    expect: (world, operator) => {
      const copy = `${ORC}/copy`;
      const clouds = [
        objectFinalizer(cloudsRef(world), copy),
        { ...owner(operator, 'owner-running'), finalizer: copy },
      ];
      return { chains: [clouds, [heldBy(world, operator), ...clouds]] };
    },
    cure: releasing(cloudsRef),
  }),
  inTheField({
    id: 'class-elsewhere',
    title: 'what the status calls missing belongs in a namespace that lives',
    operator: product('platform.confluent.io', 'KafkaTopic', {
      name: 'confluent-operator',
      namespace: 'confluent',
      finalizer: 'kafkatopic.finalizers.platform.confluent.io',
    }),
    spec: { kafkaRestClassRef: { name: 'preview-rest', namespace: 'confluent' } },
    settle: notReady(
      'Failed',
      'reconciler failed: kafkarestclasses.platform.confluent.io "preview-rest" not found',
    ),
    owner: {
      ...{ code: 'owner-failing', certainty: ['likely'], says: [/"preview-rest" not found/] },
      advises: [/Resolve what is reported/],
    },
    beyondCommands: 'somebody has to create the class again',
  }),
  inStore(
    'store-fails',
    'the store that the object names has reported since before that its credentials are refused',
    condition('Ready', 'False', 'InvalidProviderConfig', 'permission denied: token has expired'),
    {
      owner: {
        ...{ code: 'owner-running', certainty: ['likely'] },
        says: [/may need ClusterStore vault \(spec\.storeRef\), which says: .*token has expired/],
        advises: [/Find out whether this keeps .*ClusterStore vault/],
      },
      beyondCommands: 'somebody has to renew the token',
    },
  ),
  inStore(
    'store-awaits-it',
    'the store that the object names waits for the object itself',
    condition(
      'Ready',
      'False',
      'DeletionFailed',
      'PushSecret preview-store-awaits-it/db still exists',
    ),
    { owner: 'owner-running' },
  ),
  inStore(
    'store-works',
    'the store that the object names is ready, and a part of it that is not used is not',
    {
      conditions: [
        ...(condition('Ready', 'True', 'Valid', 'store validated')['conditions'] as JsonObject[]),
        ...(condition('Capable', 'False', 'ReadOnly', 'cannot list')['conditions'] as JsonObject[]),
      ],
    },
    { owner: 'owner-running' },
  ),
  inTheField({
    id: 'lock-in-log',
    title: 'a line at level info of the log says that the operator fails to get a lock',
    operator: product('netbox.dev', 'IpAddress', {
      name: 'netbox-operator',
      finalizer: 'ipaddress.netbox.dev/finalizer',
    }),
    ...logging((world, operator) => ({
      [operator.name]: logLine(operator, 'info', 'failed to lock parent prefix 10.0.0.0/24', {
        namespace: world.namespace,
        name: GUARDED,
      }),
    })),
    owner: { code: 'owner-failing', says: [/says: failed to lock parent prefix/] },
    beyondCommands: 'somebody has to free the lock',
  }),
  inTheField({
    id: 'led-from-outside',
    title: 'the Lease of its API group is renewed from outside of the cluster, so its pod waits',
    operator: splunk,
    afterwards: leadFromOutside,
    owner: {
      ...{
        code: 'owner-running',
        says: [/may not lead: Lease .*splunk\.com .* by laptop\.local_/],
      },
      advises: [/end the process that holds the Lease/],
    },
    beyondCommands: 'somebody has to end the process outside',
  }),
  inTheField({
    id: 'leads-by-node',
    title: 'its pod has the network of its node, and leads under the name of the node',
    operator: splunk,
    afterwards: async (world, { namespace, name }) => {
      const holder = `${world.name('node-1')}_8c1f42b0-6f0f-4a55-8d5f-0d4f4f1f0c7e`;
      for (const lock of ['270bec8c.splunk.com', `${name}-lock`]) {
        await createLease(world, { namespace, name: lock, holder });
      }
    },
    owner: { code: 'owner-running', says: [/shows why/] },
  }),
  inTheField({
    id: 'leads-by-another',
    title: 'another program outside has such a Lease; its own pod leads by one of another name',
    operator: splunk,
    afterwards: async (world, operator) => {
      await leadFromOutside(world, operator);
      await createOwnLease(world, operator, { name: 'enterprise-lock' });
    },
    owner: { code: 'owner-running', says: [/shows why/] },
  }),
  inTheField({
    id: 'plain-secret',
    title: 'the log calls a Secret missing that a plain field of the spec names',
    operator: product('networking.cfargotunnel.com', 'Tunnel', {
      name: 'cloudflare-operator',
      finalizer: 'cfargotunnel.com/finalizer',
    }),
    spec: { cloudflare: { domain: 'example.com', secret: 'cloudflare-secrets' } },
    before: createSecret('cloudflare-secrets'),
    ...logging((world, operator) => ({
      [operator.name]: logLine(
        operator,
        'error',
        'Reconciler error',
        { namespace: world.namespace, name: GUARDED },
        'Secret "cloudflare-secrets" not found',
      ),
    })),
    expect: (world, operator) => ({
      chains: [
        [
          heldBy(world, operator),
          owner(operator, 'owner-failing', {
            says: [/can never succeed: .*Secret cloudflare-secrets does not exist/],
            advises: [/^Remove this one finalizer from Tunnel/],
          }),
        ],
      ],
      deadlock: true,
    }),
  }),
  inTheField({
    id: 'nameless-crash',
    title:
      'the only program with rights on the type writes as any other does, and is told to crash',
    operator: product('hydra.ory.sh', 'OAuth2Client', {
      name: 'hydra-maester',
      finalizer: 'finalizer.ory.hydra.sh',
    }),
    unscheduled: true,
    afterwards: async (world, operator) => {
      await writesStatus(condition('Ready', 'True', 'Registered', ''), 'manager')(world, operator);
      await reported({
        phase: 'Running',
        conditions: unready('Ready', 'ContainersReady'),
        containerStatuses: [
          containerStatus(
            { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s restarting failed' } },
            {
              name: 'manager',
              restartCount: 11,
              lastState: { terminated: { exitCode: 2, reason: 'Error' } },
            },
          ),
        ],
      })(world, operator);
    },
    owner: { code: 'owner-not-ready', certainty: ['likely'], says: [/exit code 2/] },
    beyondCommands: 'somebody has to correct the program',
  }),
];

/** Its class is the value of an annotation, and of an argument of who serves it. */
const ofDnsClass = (name: string): OperatorOptions =>
  product(DNS, 'DNSEntry', {
    ...{ namespace: `dns-${name}`, name: 'dns-controller-manager', finalizer: `${DNS}/compound` },
    ...{ manager: 'dns-controller-manager', container: { args: [`--dns-class=${name}`] } },
  });

/** What guards Services of load balancers, and is uninstalled. */
const openelb: OperatorOptions = {
  ...{ group: '', ownGroup: false, kind: 'Service', type: false, ...NAMELESS },
  ...{ name: 'openelb-manager', namespace: 'openelb-system' },
  finalizer: 'finalizer.lb.kubesphere.io/v1alpha1',
  rules: [rule('', ['services'], FULL), rule('network.kubesphere.io', ['*'], ['*'])],
};

/** Cloud controllers that a tenant runs here, under the name of those that the cluster's own provider runs outside. */
const cloudControllers = ({ namespace }: World): OperatorOptions => ({
  ...{ group: '', ownGroup: false, kind: 'Service', type: false, namespace },
  ...{ name: 'cloud-controller-manager', manager: 'cloud-controller-manager' },
  finalizer: 'service.k8s.alibaba/resources',
  rules: [rule('', ['services'], FULL), rule('kubevirt.io', ['virtualmachines'], READ)],
});

const admiralty: OperatorOptions = {
  ...{ group: '', ownGroup: false, kind: 'Pod', type: false, ...NAMELESS },
  ...{ name: 'multicluster-scheduler', namespace: 'admiralty' },
  finalizer: 'multicluster.admiralty.io/multiclusterForegroundDeletion',
  rules: [rule('', ['pods'], FULL), rule('multicluster.admiralty.io', ['*'], ['*'])],
};

const typeOf =
  (group: string, kind: string): Step =>
  (world) =>
    world.createType(customType({ group, kind }));

const bystander = (name: string, ...rules: JsonObject[]): OperatorOptions => ({
  ...{ name, namespace: name, rules },
});

const VELERO: OperatorOptions = { ...ADMIN, name: 'velero', namespace: 'velero' };

const innocents: Scenario[] = [
  inTheField({
    id: 'balancer-replaced',
    title: 'what guards the Service is uninstalled; its successor looks after Services as well',
    operator: openelb,
    bystanders: [bystander('metallb', rule('', ['services', 'services/status'], FULL))],
    before: typeOf('network.kubesphere.io', 'Eip'),
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }], loadBalancerClass: 'openelb.io/openelb' },
    afterwards: async (world, operator) => {
      await uninstall(world, operator);
      await writesStatus({ loadBalancer: { ingress: [{ ip: '192.0.2.9' }] } }, 'metallb')(
        world,
        operator,
      );
    },
    owner: (world, operator) => [noClue(world, operator)],
  }),
  inTheField({
    id: 'managed-namesake',
    title: 'a workload of the namespace has the name of what the provider runs outside',
    operator: cloudControllers,
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
    owner: (world, operator) => [
      {
        ...nobodyKnown(world, operator),
        advises: [/^Ask the provider of the cluster why Alibaba cloud/],
      },
    ],
  }),
  inTheField({
    id: 'class-by-argument',
    title: 'an annotation names the class of one of two installations, which has 0 replicas',
    operator: { ...ofDnsClass('preview'), replicas: 0 },
    bystanders: [
      {
        ...ofDnsClass('garden'),
        type: false,
        rules: operatorRules({ group: DNS, kind: 'DNSEntry' }),
      },
    ],
    behaviour: {},
    afterwards: (world, operator) =>
      world.client.patch(guardedRef(world, operator), {
        metadata: { annotations: { [`${DNS}/class`]: 'preview' } },
      }),
    owner: { code: 'owner-scaled-to-zero', certainty: ['likely'] },
    cure: scaleUp,
  }),
  inTheField({
    id: 'product-elsewhere',
    title: 'the finalizer is well known; the only workload of its product watches other namespaces',
    operator: product('cluster.redpanda.com', 'Topic', {
      ...{ name: 'redpanda-operator', namespace: 'mesh', manager: 'redpanda-operator' },
      finalizer: 'operator.redpanda.com/finalizer',
      container: { args: ['--namespace=team-a'] },
    }),
    owner: {
      code: 'owner-not-acting',
      certainty: ['likely'],
      says: [/its arguments or environment restrict it/],
      advises: [/^Let Deployment mesh\/redpanda-operator handle/],
    },
  }),
  inTheField({
    id: 'four-beside',
    title: 'what guards the pod is uninstalled; four products beside may change pods',
    ...{ versions: ['1.36.3'], spec: podSpec(), settle: settledWithPod },
    operator: admiralty,
    before: typeOf('multicluster.admiralty.io', 'PodChaperon'),
    bystanders: [
      { ...bystander('istio-cni-node', rule('', ['pods'], FULL)), workload: 'DaemonSet' },
      bystander('kyverno', rule('kyverno.io', ['*'], ['*']), rule('', ['pods', 'secrets'], FULL)),
      bystander(
        'kueue',
        rule('kueue.x-k8s.io', ['*'], ['*']),
        rule('', ['pods', 'pods/finalizers'], FULL),
      ),
      VELERO,
    ],
    afterwards: (world, operator) => uninstall(world, operator),
    owner: (world, operator) => [noClue(world, operator)],
  }),
  inTheField({
    id: 'inside-with-resizer',
    title: 'the operator was in the namespace; another program may change the claim that it held',
    operator: ({ namespace }) =>
      product(ARANGO, 'ArangoDeployment', {
        ...{ namespace, name: 'arango-deployment-operator' },
        ...{ manager: 'arangodb_operator', finalizer: `${ARANGO}/remove-child-finalizers` },
        rules: [rule(ARANGO, ['*'], ['*']), rule('', ['persistentvolumeclaims'], ['*'])],
      }),
    bystanders: [bystander('pvc-autoresizer', rule('', ['persistentvolumeclaims'], FULL)), VELERO],
    afterwards: async (world, operator) => {
      const { apiVersion, kind, metadata } = await world.client.get(guardedRef(world, operator));
      const uid = metadata['uid'] ?? '';
      await world.create(
        volumeClaim(
          world.namespace,
          'db-1',
          {},
          {
            ownerReferences: [{ apiVersion, kind, name: GUARDED, uid, controller: true }],
          },
        ),
      );
      await hold(world, claimRef(world), [OF_CLAIM], operator.manager);
    },
    expect: (world, operator) => ({
      chains: [
        [heldBy(world, operator), nobodyLeft(operator)],
        [
          objectFinalizer(claimRef(world), OF_CLAIM),
          ownerMissing(claimRef(world), OF_CLAIM, {
            says: [/wrote the finalizer .*, and no workload has this name/],
          }),
        ],
      ],
    }),
    cure: releasing(claimRef),
  }),
];

const pg = ({ namespace }: World) => ref(`${KUBEDB}/v1`, 'Postgres', namespace, 'pg');

const doNotTerminate: Scenario = {
  id: 'do-not-terminate',
  title: 'a webhook denies the deletion for the sake of a field of the object, which it names',
  own: true,
  setUp: async (world) => {
    const deny = `postgres "pg" can't be terminated. To delete, change spec.deletionPolicy`;
    await world.createNamespace();
    await world.createType(customType({ group: KUBEDB, kind: 'Postgres' }));
    await world.create(customObject(`${KUBEDB}/v1`, 'Postgres', world.namespace, 'pg'));
    await createWebhook(world, {
      ...{ operations: ['DELETE'], apiGroup: KUBEDB, resource: 'postgress' },
      clientConfig: await startWebhook(world, () => ({ deny })),
    });
    await refusesDeletion(world, pg(world));
  },
  settle: contentFails(/can't be terminated/),
  expect: (world) => ({
    ...stuck([{ code: 'admission-denied', subject: webhookRef(world), says: [/deletionPolicy/] }]),
    ...{ scope: 'namespace', queued: { kinds: ['Postgres'], exactly: true } },
  }),
  cure: (world) => world.client.delete(webhookRef(world)),
  beyondCommands: 'somebody has to decide what becomes of the database',
};

export const plainSight = [...reasons, ...innocents, doNotTerminate];
