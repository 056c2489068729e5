import { setTimeout as sleep } from 'node:timers/promises';
import { arrayAt, at, type JsonObject } from '../../../src/base/json.ts';
import { byService, createWebhook, refusesDeletion, webhookRef } from '../admission.ts';
import type { Ref } from '../client.ts';
import {
  configMap,
  customObject,
  customType,
  secret,
  service,
  serviceAccount,
  typeRef,
} from '../objects.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import { type OperatorBehaviour, readyPods } from '../servers/operator-process.ts';
import { startStandIn } from '../servers/stand-in.ts';
import { startWebhook, startWebhookServer } from '../servers/webhook.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { CONTENT_FAILURE, objectFinalizer, ref, resourceType } from './links.ts';
import {
  clusterName,
  createGuarded,
  FULL,
  install,
  type Operator,
  type OperatorOptions,
  operatorOf,
  operatorRules,
  start,
  uninstall,
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
  releaseGuarded,
  restart,
  type Situation,
  type Step,
  scaleUp,
  settledByFinalizer,
  situation,
} from './situation.ts';
import { createLease, helm } from './traces.ts';

/** Somebody innocent is near, and looks like the one who is wanted. */

const HANGS = { hangs: true };
const ADMIN: OperatorOptions = { role: 'cluster-admin' };
const NAMELESS = { manager: 'manager', container: { name: 'manager' } };
const NOBODY_IS_MISSING = { code: 'owner-missing' as const };
const RBAC = 'rbac.authorization.k8s.io';
const READ = ['get', 'list', 'watch'];

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

const unknown = (world: World, operator: Operator): Link => nobodyKnown(world, operator);

/** What no remedy may say. */
const advisesNot =
  (words: RegExp): NonNullable<Expectation['also']> =>
  ({ namespace }) => {
    const wrong = namespace.findings
      .flatMap(({ remedies }) => remedies.map(({ text, command }) => `${text} ${command ?? ''}`))
      .filter((text) => words.test(text));
    if (wrong.length > 0) throw new Error(`advises what does not help: ${wrong.join(' | ')}`);
  };

const gone: Step = (world, operator) => uninstall(world, operator);

const lookalikes: Scenario[] = [
  situation({
    id: 'U1',
    title: 'another ingress controller reports the status of an Ingress whose owner is uninstalled',
    own: true,
    operator: {
      group: 'networking.k8s.io',
      ownGroup: false,
      kind: 'Ingress',
      type: false,
      name: 'aws-load-balancer-controller',
      namespace: 'kube-system',
      finalizer: 'ingress.k8s.aws/resources',
      manager: 'controller',
      rules: [rule('networking.k8s.io', ['ingresses', 'ingresses/status'], FULL)],
    },
    spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
    bystanders: [
      {
        group: 'networking.k8s.io',
        ownGroup: false,
        kind: 'Ingress',
        name: 'ingress-nginx-controller',
        namespace: 'ingress-nginx',
        container: { name: 'controller', command: ['/nginx-ingress-controller'] },
        rules: [
          rule('networking.k8s.io', ['ingresses'], READ),
          rule('networking.k8s.io', ['ingresses/status'], ['update']),
        ],
      },
    ],
    afterwards: async (world, operator) => {
      await world.client.patchStatus(
        guardedRef(world, operator),
        { loadBalancer: { ingress: [{ ip: '203.0.113.7' }] } },
        { fieldManager: 'nginx-ingress-controller' },
      );
      await uninstall(world, operator);
    },
    expect: either(
      (world, operator) => ({
        code: 'owner-missing',
        subject: guardedRef(world, operator),
        finalizer: operator.finalizer,
      }),
      unknown,
    ),
    cure: releaseGuarded,
  }),
  situation({
    id: 'U2',
    title: 'one Helm release brought the type and a cluster-admin; the operator is uninstalled',
    own: true,
    operator: (world) => {
      const annotations = helm('platform', world.name('platform'));
      return {
        ...NAMELESS,
        name: 'brain',
        namespace: 'platform',
        metadata: { annotations },
        type: { metadata: { annotations } },
      };
    },
    bystanders: (world) => [
      {
        ...NAMELESS,
        ...ADMIN,
        name: 'gitops',
        namespace: 'platform',
        metadata: { annotations: helm('platform', world.name('platform')) },
      },
    ],
    afterwards: gone,
    expect: missingOrUnknown,
    cure: releaseGuarded,
  }),
  situation({
    id: 'U2b',
    title: 'the same, and the operator is there, with 0 replicas',
    own: true,
    operator: (world) => {
      const annotations = helm('platform', world.name('platform'));
      return {
        ...NAMELESS,
        name: 'brain',
        namespace: 'platform',
        replicas: 0,
        metadata: { annotations },
        type: { metadata: { annotations } },
      };
    },
    bystanders: (world) => [
      {
        ...NAMELESS,
        ...ADMIN,
        name: 'gitops',
        namespace: 'platform',
        metadata: { annotations: helm('platform', world.name('platform')) },
      },
    ],
    owner: 'owner-scaled-to-zero',
    cure: scaleUp,
  }),
  ...[true, false].map((isAdmin) =>
    situation({
      id: isAdmin ? 'U3' : 'U3b',
      title: `another operator of the company holds a Lease of its domain, ${isAdmin ? 'as cluster-admin' : 'with rights on its own type'}`,
      own: true,
      operator: {
        ...NAMELESS,
        group: 'cache.acme.example',
        kind: 'Cache',
        name: 'brain',
        namespace: 'cache-system',
      },
      bystanders: [
        {
          ...NAMELESS,
          ...(isAdmin ? ADMIN : {}),
          group: 'backup.acme.example',
          kind: 'Backup',
          name: 'safe',
          namespace: 'backup-system',
          type: {},
        },
      ],
      afterwards: async (world, operator) => {
        await uninstall(world, operator);
        const safe = operatorOf(world, { name: 'safe', namespace: 'backup-system' });
        const [pod] = await readyPods(world.client, safe);
        await createLease(world, {
          namespace: 'backup-system',
          name: 'f1c5ece8.acme.example',
          holder: `${pod?.metadata.name}_9d41c0`,
        });
      },
      expect: isAdmin ? either(unknown) : either((_, operator) => nobodyLeft(operator)),
      cure: releaseGuarded,
    }),
  ),
  situation({
    id: 'U4',
    title: 'the gateway of a company checks only types of its groups; the operator is uninstalled',
    own: true,
    operator: {
      ...NAMELESS,
      group: 'cache.acme.example',
      kind: 'Cache',
      name: 'brain',
      namespace: 'cache-system',
    },
    bystanders: [
      {
        ...NAMELESS,
        ...ADMIN,
        group: 'backup.acme.example',
        kind: 'Backup',
        name: 'gateway',
        namespace: 'platform',
        type: {},
      },
    ],
    afterwards: async (world, operator) => {
      await uninstall(world, operator);
      await world.create(service('platform', 'gateway', { selector: { app: 'gateway' } }));
      await createWebhook(world, {
        operations: ['CREATE'],
        apiGroups: ['cache.acme.example', 'backup.acme.example'],
        resource: '*',
        clientConfig: byService('platform', 'gateway'),
      });
    },
    expect: either(unknown),
    cure: releaseGuarded,
  }),
  situation({
    id: 'U5',
    title: 'the name of another product ends as that of the operator, which is uninstalled',
    operator: { name: 'backup-operator', namespace: 'backup-system' },
    bystanders: [{ ...ADMIN, name: 'etcd-backup-operator', namespace: 'etcd-system' }],
    afterwards: gone,
    expect: missingOrUnknown,
    cure: releaseGuarded,
  }),
  situation({
    id: 'U6',
    title: 'the domain of the finalizer is the group of another product, above that of the type',
    own: true,
    operator: (world) => ({
      ...NAMELESS,
      group: 'cache.example.com',
      kind: 'Cache',
      name: 'vault',
      namespace: 'vault-system',
      replicas: 0,
      finalizer: `${world.domain('example.com')}/backup`,
      rules: [
        rule(world.domain('cache.example.com'), ['caches'], FULL),
        rule(world.domain('example.com'), ['backups', 'backups/status'], FULL),
      ],
      type: {},
    }),
    before: async (world) => {
      await world.createType(customType({ group: world.domain('example.com'), kind: 'Backup' }));
    },
    bystanders: [
      {
        ...NAMELESS,
        group: 'cache.example.com',
        kind: 'Cache',
        name: 'cache-operator',
        namespace: 'cache-system',
      },
    ],
    expect: either((_, operator) => owner(operator, 'owner-scaled-to-zero'), unknown),
    cure: scaleUp,
  }),
  situation({
    id: 'U7',
    title: 'a nameless cluster-admin has 0 replicas; another one keeps the status of the type',
    operator: { ...NAMELESS, ...ADMIN, name: 'brain', namespace: 'platform', replicas: 0 },
    bystanders: [
      {
        name: 'widget-syncer',
        manager: 'widget-syncer',
        namespace: 'tools',
        container: { name: 'syncer' },
      },
    ],
    expect: either((_, operator) => owner(operator, 'owner-scaled-to-zero'), unknown),
    cure: scaleUp,
  }),
  situation({
    id: 'U8',
    title: 'an install by OLM looks at another namespace; the one for this namespace is gone',
    operator: { name: 'widget-operator', namespace: 'team-a' },
    bystanders: [
      {
        name: 'widget-operator',
        namespace: 'team-b',
        container: {
          env: [
            {
              name: 'POD_NAMESPACE',
              valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } },
            },
          ],
          args: ['--leader-elect', '--watch-namespace=$(POD_NAMESPACE)'],
        },
      },
    ],
    afterwards: gone,
    expect: missingOrUnknown,
    cure: releaseGuarded,
  }),
];

const shard = (name: string, selector: string, more: OperatorOptions = {}): OperatorOptions => ({
  group: 'kustomize.toolkit.fluxcd.io',
  ownGroup: false,
  kind: 'Kustomization',
  name,
  namespace: 'flux-system',
  account: 'kustomize-controller',
  finalizer: 'finalizers.fluxcd.io',
  manager: 'gotk-kustomize-controller',
  container: {
    name: 'manager',
    image: 'example.com/kustomize-controller:1',
    args: [`--watch-label-selector=${selector}`],
  },
  rules: [rule('kustomize.toolkit.fluxcd.io', ['*'], ['*'])],
  ...more,
});

/** Its process fails in these words. */
const fails = (words: string): OperatorBehaviour => ({
  isSlow: true,
  cleanUp: () => words,
});

const failing: Scenario[] = [
  situation({
    id: 'U9',
    title: 'the shard of Flux that the object is in has 0 replicas; the main one runs',
    own: true,
    operator: shard('kustomize-controller-shard1', 'sharding.fluxcd.io/key=shard1', {
      replicas: 0,
    }),
    bystanders: [
      {
        ...shard('kustomize-controller', '!sharding.fluxcd.io/key'),
        account: 'kustomize-controller-main',
      },
    ],
    afterwards: (world, operator) =>
      world.client.patch(guardedRef(world, operator), {
        metadata: { labels: { 'sharding.fluxcd.io/key': 'shard1' } },
      }),
    expect: either((_, operator) => owner(operator, 'owner-scaled-to-zero'), unknown),
    cure: scaleUp,
  }),
  situation({
    id: 'U11',
    title: 'the operator needs a Secret of a third namespace, which the object names',
    behaviour: fails('cannot log in: secrets "creds" not found'),
    complains: true,
    spec: { secretRef: { name: 'creds', namespace: 'shared' } },
    owner: (_, operator) => [owner(operator, 'owner-failing', { says: [/creds/] })],
    expect: () => ({ deadlock: false, also: advisesNot(/cannot be restored/) }),
    cure: releaseGuarded,
    beyondCommands: 'nobody but its owner knows what was in the Secret',
  }),
  situation({
    id: 'U12',
    title: 'the operator does not find in the cloud what the object names',
    behaviour: fails('DeleteFailed: instance "db-1" not found'),
    complains: true,
    spec: { instanceName: 'db-1' },
    owner: (_, operator) => [owner(operator, 'owner-failing', { says: [/db-1/] })],
    expect: () => ({ deadlock: false, also: advisesNot(/[Rr]estore/) }),
    cure: releaseGuarded,
    beyondCommands: 'somebody has to look into the cloud',
  }),
  situation({
    id: 'U13',
    title: 'the cloud refuses what the operator asks of it',
    behaviour: fails('rpc error: code = PermissionDenied desc = forbidden: token lacks scope'),
    complains: true,
    owner: (_, operator) => [owner(operator, 'owner-failing', { says: [/lacks scope/] })],
    expect: () => ({ deadlock: false, also: advisesNot(/Grant|can-i/) }),
    cure: releaseGuarded,
    beyondCommands: 'somebody has to grant it in the cloud',
  }),
  situation({
    id: 'U14',
    title: 'the operator must create something in another namespace that is terminating',
    behaviour: fails(
      'jobs.batch "wipe" is forbidden: unable to create new content in namespace vault because it is being terminated',
    ),
    complains: true,
    owner: (_, operator) => [owner(operator, 'owner-failing', { says: [/vault/] })],
    expect: () => ({ deadlock: false, also: advisesNot(/create jobs in the namespace/) }),
    cure: releaseGuarded,
    beyondCommands: 'the other namespace has to go first',
  }),
];

/** Two that are held by types of a cluster. */
const CROSS = 'acme.example';
const CLAIM = 'finalizer.claims.acme.example';
const crossplane: OperatorOptions = {
  group: CROSS,
  ownGroup: false,
  kind: 'Database',
  name: 'composer',
  namespace: 'composer-system',
  scope: 'cluster',
  manager: 'composer',
  finalizer: CLAIM,
  rules: [rule(CROSS, ['*'], ['*'])],
};
const provider: OperatorOptions = {
  group: 'cloud.acme.example',
  ownGroup: false,
  kind: 'Instance',
  name: 'provider-cloud',
  namespace: 'composer-system',
  scope: 'cluster',
  replicas: 0,
  manager: 'provider-cloud',
  type: { scope: 'Cluster' },
  finalizer: 'finalizer.managed.acme.example',
};
const compositeRef: Ref = {
  apiVersion: `${CROSS}/v1`,
  kind: 'XDatabase',
  name: 'db-x2k4',
};
const managedRef: Ref = {
  apiVersion: 'cloud.acme.example/v1',
  kind: 'Instance',
  name: 'db-x2k4-1',
};

const chains: Scenario[] = [
  {
    id: 'U10',
    title: 'a claim waits for its composite, that for a managed one whose provider has 0 replicas',
    own: true,
    setUp: async (world) => {
      await world.createNamespace();
      await world.createNamespace('composer-system');
      const composer = await install(world, crossplane);
      const cloud = await install(world, provider);
      await world.createType(
        customType({ group: CROSS, kind: 'XDatabase', scope: 'Cluster', versions: ['v1'] }),
      );
      await start(world, composer, { tells: false, cleanUp: () => 'waits' });
      await start(world, cloud);
      const { client } = world;
      const managed = { ...managedRef, metadata: { name: managedRef.name } };
      await world.create({ ...managed, spec: {} });
      await client.patch(
        managedRef,
        { metadata: { finalizers: [cloud.finalizer] } },
        { fieldManager: 'provider-cloud' },
      );
      await world.create({
        ...compositeRef,
        metadata: { name: compositeRef.name },
        spec: { resourceRefs: [{ ...managedRef }] },
      });
      const finalizer = 'composite.acme.example/cleanup';
      await client.patch(
        compositeRef,
        { metadata: { finalizers: [finalizer] } },
        { fieldManager: 'composer' },
      );
      await createGuarded(world, composer, GUARDED, world.namespace, {
        resourceRef: { ...compositeRef },
      });
      await client.delete(compositeRef);
      await client.delete(managedRef);
    },
    settle: settledByFinalizer,
    expect: (world) => {
      const composer = operatorOf(world, crossplane);
      const cloud = operatorOf(world, provider);
      const held = [
        objectFinalizer(guardedRef(world, composer), CLAIM),
        objectFinalizer(compositeRef, 'composite.acme.example/cleanup'),
        objectFinalizer(managedRef, cloud.finalizer),
      ];
      return { outcome: 'stuck', chains: [[...held, owner(cloud, 'owner-scaled-to-zero')]] };
    },
    cure: async (world) => {
      await scaleUp(world, operatorOf(world, provider));
      for (const one of [managedRef, compositeRef]) {
        await world.client.patch(one, { metadata: { finalizers: null } });
      }
      await releaseGuarded(world, operatorOf(world, crossplane));
    },
  },
  situation({
    id: 'U15',
    identity: 'teardown-force', // only who may change the object can try
    title:
      'the operator is uninstalled, and its type has got a field without which nothing is valid',
    afterwards: async (world, operator) => {
      await uninstall(world, operator);
      const { group, kind } = operator;
      const { spec } = structuredClone(customType({ group, kind }));
      const [version] = arrayAt(spec, 'versions') as [JsonObject];
      const schema = at(version, 'schema', 'openAPIV3Schema') as JsonObject;
      // What has not changed is not validated again (CRD validation ratcheting), but for the object as a whole.
      schema['required'] = ['size'];
      (schema['properties'] as JsonObject)['size'] = { type: 'integer' };
      await world.client.patch(typeRef(group, kind), { spec: { versions: [version] } });
      const path = `${await world.client.pathOf(guardedRef(world, operator))}?dryRun=All`;
      await waitUntil('the type to refuse', async () => {
        const patch = { metadata: { annotations: { probe: 'x' } } };
        const type = { 'content-type': 'application/merge-patch+json' };
        return (await world.client.call('PATCH', path, patch, type)).status === 422;
      });
    },
    owner: (_, operator) => [{ ...nobodyLeft(operator), advises: [/size|schema|valid/i] }],
    cure: async (world, operator) => {
      await world.client.patch(guardedRef(world, operator), {
        metadata: { finalizers: null },
        size: 1,
      });
    },
    mayChange: (_, { group, kind }) => [typeRef(group, kind)],
  }),
  {
    id: 'U16',
    title: 'a parent deleted in the foreground waits for a child whose deletion a webhook denies',
    setUp: async (world) => {
      await world.createNamespace();
      const parent = await world.create(configMap(world.namespace, 'parent'));
      await world.create(
        secret(world.namespace, 'child', {
          ownerReferences: [
            {
              apiVersion: 'v1',
              kind: 'ConfigMap',
              name: 'parent',
              uid: parent.metadata['uid'] ?? null,
              blockOwnerDeletion: true,
            },
          ],
        }),
      );
      const clientConfig = await startWebhook(world, () => ({ deny: 'kept for ten years' }));
      await createWebhook(world, { operations: ['DELETE'], resource: 'secrets', clientConfig });
      const child = ref('v1', 'Secret', world.namespace, 'child');
      await refusesDeletion(world, child);
      const own = ref('v1', 'ConfigMap', world.namespace, 'parent');
      await world.client.delete(own, { propagationPolicy: 'Foreground' });
      await world.terminating(own);
    },
    settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /denied/] }),
    expect: (world) => ({
      outcome: 'stuck',
      chains: 'any',
      rootCauses: [{ code: 'admission-denied', subject: webhookRef(world) }],
      never: [{ code: 'owner-running' }],
    }),
    cure: (world) => world.client.delete(webhookRef(world)),
  },
];

const rights: Scenario[] = [
  situation({
    id: 'U17',
    title: 'the operator acts by impersonating an account that may',
    operator: {
      name: 'tenant-operator',
      namespace: 'tenant-system',
      rules: [rule('', ['serviceaccounts'], ['impersonate'])],
    },
    before: async (world, { group }) => {
      const namespace = world.name('tenants');
      const name = world.name('deployer');
      await world.createNamespace(namespace);
      await world.createAll([
        serviceAccount(namespace, 'deployer'),
        {
          apiVersion: `${RBAC}/v1`,
          kind: 'ClusterRole',
          metadata: { name },
          rules: operatorRules({ group, kind: 'Widget' }),
        },
        {
          apiVersion: `${RBAC}/v1`,
          kind: 'ClusterRoleBinding',
          metadata: { name },
          roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name },
          subjects: [{ kind: 'ServiceAccount', namespace, name: 'deployer' }],
        },
      ]);
    },
    behaviour: { tells: false },
    expect: (world, operator) => ({
      ...either(
        (_, one) => owner(one, 'owner-running'),
        (_, one) => owner(one, 'owner-failing'),
        unknown,
      )(world, operator),
      never: [NOBODY_IS_MISSING],
    }),
    cure: releaseGuarded,
  }),
  situation({
    id: 'U18',
    title: 'the rights of the operator were deleted, all of them; it runs',
    behaviour: { tells: false },
    afterwards: async ({ client }, operator) => {
      for (const kind of ['ClusterRoleBinding', 'ClusterRole']) {
        await client.delete({ apiVersion: `${RBAC}/v1`, kind, name: clusterName(operator) });
      }
    },
    expect: (world, operator) => ({
      ...either((_, one) => owner(one, 'owner-failing'), unknown)(world, operator),
      never: [NOBODY_IS_MISSING],
    }),
    cure: releaseGuarded,
  }),
  situation({
    id: 'U19',
    title: 'an agent in another cluster works by a token, and still writes the status',
    operator: { ...NAMELESS, name: 'agent', namespace: 'agent-system' },
    afterwards: (world, operator) => uninstall(world, operator, ['rights', 'account']),
    settle: async (world) => {
      const own = guardedRef(world, operatorOf(world));
      await world.terminating(own);
      await sleep(1_500);
      await world.client.patchStatus(own, { phase: 'Deleting' }, { fieldManager: 'manager' });
      await settledByFinalizer(world);
    },
    owner: 'owner-unknown',
    expect: () => ({ never: [NOBODY_IS_MISSING] }),
    cure: releaseGuarded,
  }),
  situation({
    id: 'U20',
    title: 'its own pod holds the Lease, and has not renewed it for long',
    behaviour: HANGS,
    afterwards: async (world, operator) => {
      const [pod] = await readyPods(world.client, operator);
      await createLease(world, {
        namespace: operator.namespace,
        name: operator.name,
        holder: `${pod?.metadata.name}_77aa`,
        silentForSeconds: 1_200,
      });
    },
    owner: (_, operator) => [owner(operator, 'owner-running', { says: [/Lease.*renewed/] })],
    cure: restart,
  }),
  situation({
    id: 'U21',
    title: 'the operator has 0 replicas, and its own dead webhook refuses every pod',
    operator: { replicas: 0 },
    afterwards: async (world, { namespace, name }) => {
      await world.create(service(namespace, name, { selector: { app: name } }));
      await createWebhook(world, {
        operations: ['CREATE'],
        resource: 'pods',
        clientConfig: byService(namespace, name),
        sees: namespace,
        timeoutSeconds: 1,
      });
    },
    expect: (world, operator) => ({
      chains: 'any',
      rootCauses: [
        owner(operator, 'owner-scaled-to-zero'),
        { code: 'admission-webhook-failing', subject: webhookRef(world) },
      ],
    }),
    cure: async (world, operator) => {
      await world.client.delete(webhookRef(world));
      await scaleUp(world, operator);
    },
  }),
];

/** The status of the object says so, since the deletion. */
const says =
  (message: string): NonNullable<Situation['settle']> =>
  async (world, operator) => {
    await world.terminating(guardedRef(world, operator));
    await sleep(1_500);
    const condition = {
      type: 'Ready',
      status: 'False',
      reason: 'ReconciliationFailed',
      message,
      lastTransitionTime: new Date().toISOString().replace(/\.\d+/, ''),
    };
    await world.client.patchStatus(
      guardedRef(world, operator),
      { conditions: [condition] },
      { fieldManager: operator.manager },
    );
    await settledByFinalizer(world);
  };

const more: Scenario[] = [
  situation({
    id: 'U29',
    title: 'Flux acts as an account of a team, as which a shop of that team runs too',
    own: true,
    operator: {
      ...shard('kustomize-controller', ''),
      container: { name: 'manager', image: 'example.com/kustomize-controller:1' },
      rules: [
        rule('kustomize.toolkit.fluxcd.io', ['*'], ['*']),
        rule('', ['serviceaccounts'], ['impersonate']),
      ],
    },
    behaviour: { cleanUp: () => 'refused', tells: false },
    bystanders: [
      {
        name: 'shop',
        namespace: 'team-apps',
        account: 'deployer',
        rules: [rule('', ['pods'], READ)],
      },
    ],
    settle: says(
      'delete failed: deployments.apps "shop" is forbidden: User "system:serviceaccount:team-apps:deployer" cannot delete resource "deployments" in API group "apps" in the namespace "team-apps"',
    ),
    owner: (_, operator) => [owner(operator, 'owner-failing', { says: [/cannot delete/] })],
    cure: releaseGuarded,
    mayChange: () => RIGHTS,
  }),
  situation({
    id: 'U30',
    title: 'an annotation tells Flux, not the operator, to leave the object alone',
    behaviour: HANGS,
    afterwards: (world, operator) =>
      world.client.patch(guardedRef(world, operator), {
        metadata: { annotations: { 'kustomize.toolkit.fluxcd.io/reconcile': 'disabled' } },
      }),
    owner: 'owner-running',
    expect: () => ({ also: advisesNot(/annotat/) }),
    cure: restart,
  }),
  situation({
    id: 'U31',
    title: 'the object is suspended, and what the operator does for its removal is refused',
    behaviour: fails('cannot drop the schema: quota of the provider is used up'),
    complains: true,
    spec: { suspend: true },
    owner: (_, operator) => [owner(operator, 'owner-failing', { says: [/used up/] })],
    cure: releaseGuarded,
    beyondCommands: 'somebody has to make room at the provider',
  }),
  situation({
    id: 'U32',
    title: 'the webhook of the operator lets nobody else change its type; it runs and is slow',
    identity: 'teardown-force',
    unscheduled: true,
    behaviour: { cleanUp: () => 'busy', tells: false },
    before: async (world, { namespace, name, group }) => {
      await world.ensureNamespace(namespace);
      const server = await startWebhookServer(world, [`${name}.${namespace}.svc`], (review) => {
        const user = JSON.stringify(at(review, 'request', 'userInfo'));
        return /system:masters|widget-operator/.test(user) ? 'allow' : { deny: 'not yours' };
      });
      await world.create(
        service(namespace, name, {
          selector: { app: name },
          ports: [{ port: 443, targetPort: server.port, protocol: 'TCP' }],
        }),
      );
      const node = world.name('node-own');
      await startStandIn(world, { node, namespaces: [namespace], podIP: server.address });
      await createWebhook(world, {
        operations: ['UPDATE'],
        apiGroup: group,
        resource: 'widgets',
        clientConfig: {
          service: { namespace, name, path: '/validate' },
          caBundle: server.caBundle,
        },
        failurePolicy: 'Ignore',
      });
    },
    afterwards: async (world, { namespace }) => {
      await waitUntil('the webhook to have endpoints', async () => {
        const slices = await world.client.list('discovery.k8s.io/v1', 'EndpointSlice', namespace);
        return /"ready":true/.test(JSON.stringify(slices));
      });
      await sleep(2_000);
    },
    owner: 'owner-running',
    expect: (world) => ({ never: [webhookRef(world)] }),
    cure: releaseGuarded,
  }),
];

const GROUP = 'example.com';

const apis: Scenario[] = [
  {
    id: 'U22',
    title: 'two types have lost a version, objects of one are stored in it',
    own: true,
    setUp: async (world) => {
      await world.createNamespace();
      const { client } = world;
      for (const kind of ['Gadget', 'Widget']) {
        const stored = kind === 'Gadget' ? ['v1alpha1'] : ['v1alpha1', 'v1'];
        await world.createType(customType({ group: GROUP, kind, versions: stored }));
        const version = kind === 'Gadget' ? 'v1alpha1' : 'v1';
        await world.create(customObject(`${GROUP}/${version}`, kind, world.namespace, GUARDED));
        const crd = typeRef(GROUP, kind);
        const spec = (versions: string[]) =>
          customType({ group: GROUP, kind, versions })['spec'] ?? null;
        await client.patch(crd, { spec: spec(['v1alpha1', 'v1']) });
        await client.patchStatus(crd, { storedVersions: ['v1'] });
        await client.patch(crd, { spec: spec(['v1']) });
      }
      const list = `/apis/${GROUP}/v1/gadgets`;
      await world.answers(list, (status) => status >= 400 && status !== 404);
    },
    settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /./] }),
    expect: () => ({
      outcome: 'stuck',
      notInspected: [`gadgets.${GROUP}`],
      chains: [
        [
          {
            code: 'api-failing',
            subject: resourceType(`${GROUP}/v1`, `gadgets.${GROUP}`),
            advises: [/served/],
          },
        ],
      ],
    }),
    cure: async ({ client }) => {
      const both = customType({ group: GROUP, kind: 'Gadget', versions: ['v1alpha1', 'v1'] });
      const { versions } = both['spec'] as { versions: JsonObject[] };
      const known = versions.map((version) =>
        version['name'] === 'v1alpha1' ? { ...version, served: false } : version,
      );
      await client.patch(typeRef(GROUP, 'Gadget'), { spec: { versions: known } });
    },
  },
];

const argo: OperatorOptions = {
  group: 'argoproj.io',
  ownGroup: false,
  version: 'v1alpha1',
  kind: 'Application',
  name: 'argocd-application-controller',
  namespace: 'argocd',
  finalizer: 'resources-finalizer.argocd.argoproj.io',
  manager: 'kubectl-client-side-apply',
  rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }],
};

const traces: Scenario[] = [
  situation({
    id: 'U23',
    title: 'a binding that only lets look names an account of the product in this namespace',
    own: true,
    operator: argo,
    afterwards: async (world, operator) => {
      await uninstall(world, operator, ['rights']);
      await world.create({
        apiVersion: `${RBAC}/v1`,
        kind: 'ClusterRoleBinding',
        metadata: { name: 'looks' },
        roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'view' },
        subjects: [
          {
            kind: 'ServiceAccount',
            namespace: world.namespace,
            name: 'argocd-application-controller',
          },
        ],
      });
    },
    expect: (world, operator) => ({ ...missingOrUnknown(world, operator), deadlock: false }),
    cure: releaseGuarded,
  }),
  {
    id: 'U24',
    title: 'Rancher runs in another cluster; its agent runs here',
    own: true,
    setUp: async (world) => {
      await world.createNamespace(world.namespace, {
        finalizers: ['controller.cattle.io/namespace-auth'],
      });
      await world.createNamespace('cattle-system');
      const agent = await install(world, {
        type: false,
        name: 'cattle-cluster-agent',
        namespace: 'cattle-system',
        scope: 'cluster',
        role: 'cluster-admin',
      });
      await start(world, agent, HANGS);
    },
    expect: () => ({ outcome: 'stuck', chains: 'any', never: [NOBODY_IS_MISSING] }),
    cure: async ({ client, namespaceRef }) =>
      client.patch(namespaceRef, { metadata: { finalizers: null } }),
  },
];

export const neighbours = [...lookalikes, ...failing, ...chains, ...rights, ...more, ...apis, ...traces];
