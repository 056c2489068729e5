import type { JsonObject } from '../../../src/base/json.ts';
import type { Ref } from '../client.ts';
import { customType, secret, volumeClaim } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { logLine } from '../servers/container-logs.ts';
import { laterSecond } from '../wait-until.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ownerMissing, ref } from './links.ts';
import { logging } from './logs.ts';
import {
  ADMIN,
  createGuarded,
  FULL,
  NAMELESS,
  type Operator,
  type OperatorOptions,
  operatorRules,
  rule,
} from './operator.ts';
import { reports } from './overheard.ts';
import {
  GUARDED,
  guardedRef,
  HANGS,
  heldBy,
  nobodyLeft,
  owner,
  release,
  releaseGuarded,
  type Situation,
  type Step,
  settledByFinalizer,
  situation,
} from './situation.ts';

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

const PULSAR = 'resource.streamnative.io';
const topicRef = ({ namespace }: World) =>
  ref(`${PULSAR}/v1alpha1`, 'PulsarTopic', namespace, 'orders');

const ORC = 'openstack.k-orc.cloud';
const cloudsRef = ({ namespace }: World) => ref('v1', 'Secret', namespace, 'clouds');
const ARANGO = 'database.arangodb.com';
const OF_CLAIM = `pvc.${ARANGO}/member-exists`;
const claimRef = ({ namespace }: World) => ref('v1', 'PersistentVolumeClaim', namespace, 'db-1');

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
            advises: [/^Let this gate remove .* from the 2 objects/m],
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
];

const innocents: Scenario[] = [
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
    id: 'inside-with-resizer',
    title: 'the operator was in the namespace; another program may change the claim that it held',
    operator: ({ namespace }) =>
      product(ARANGO, 'ArangoDeployment', {
        ...{ namespace, name: 'arango-deployment-operator' },
        ...{ manager: 'arangodb_operator', finalizer: `${ARANGO}/remove-child-finalizers` },
        rules: [rule(ARANGO, ['*'], ['*']), rule('', ['persistentvolumeclaims'], ['*'])],
      }),
    bystanders: [
      {
        ...{ name: 'pvc-autoresizer', namespace: 'pvc-autoresizer' },
        rules: [rule('', ['persistentvolumeclaims'], FULL)],
      },
      { ...ADMIN, name: 'velero', namespace: 'velero' },
    ],
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

export const plainSight = [...reasons, ...innocents];
