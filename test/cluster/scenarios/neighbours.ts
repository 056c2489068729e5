import { setTimeout as sleep } from 'node:timers/promises';
import { arrayAt, type JsonObject, valueAt } from '../../../src/base/json.ts';
import { byService, createWebhook, webhookRef } from '../admission.ts';
import { accountSubject, customType, grant, service, serviceAccount, typeRef } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { laterSecond, waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import {
  ADMIN,
  argo,
  FULL,
  NAMELESS,
  type Operator,
  type OperatorOptions,
  operatorOf,
  operatorRules,
  READ,
  rule,
  uninstall,
} from './operator.ts';
import {
  advisesNot,
  asleepOrUnknown,
  either,
  guardedRef,
  HANGS,
  missingOrUnknown,
  nobodyKnown,
  nobodyLeft,
  owner,
  RIGHTS,
  restart,
  type Situation,
  scaleUp,
  settledByFinalizer,
  situation,
  writesStatus,
} from './situation.ts';
import { createLease, createOwnLease, helm, serveHook } from './traces.ts';

/** Somebody innocent is near, and looks like the one who is wanted. */

/** One Helm release with a type, its nameless operator and a cluster-admin. */
const umbrella = (
  more: OperatorOptions = {},
): Pick<Situation, 'own' | 'operator' | 'bystanders'> => {
  const marked = (world: World, options: OperatorOptions): OperatorOptions => {
    const annotations = helm('platform', world.name('platform'));
    return { ...NAMELESS, namespace: 'platform', metadata: { annotations }, ...options };
  };
  return {
    own: true,
    operator: (world) => {
      const made = marked(world, { name: 'brain', ...more });
      return { ...made, type: { metadata: made.metadata ?? {} } };
    },
    bystanders: (world) => [marked(world, { ...ADMIN, name: 'gitops' })],
  };
};

/** Two products of one company, nameless both. */
const CACHE: OperatorOptions = {
  ...NAMELESS,
  group: 'cache.acme.example',
  kind: 'Cache',
  name: 'brain',
  namespace: 'cache-system',
};
const BACKUP: OperatorOptions = {
  ...NAMELESS,
  group: 'backup.acme.example',
  kind: 'Backup',
  type: {},
};

const COMPANY_LEASES: {
  id: string;
  title: string;
  rights: (world: World) => OperatorOptions;
  missing?: boolean;
}[] = [
  {
    id: 'company-lease',
    title: 'with rights on its own type',
    rights: () => ({}),
    missing: true,
  },
  { id: 'company-lease-admin', title: 'as cluster-admin', rights: () => ADMIN },
  {
    id: 'company-lease-uses',
    title: 'with rights on the type that it uses',
    rights: (world) => ({ rules: [rule(operatorOf(world, CACHE).group, ['caches'], FULL)] }),
  },
];

const lookalikes: Scenario[] = [
  situation({
    id: 'near-status',
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
      nobodyKnown,
    ),
  }),
  situation({
    ...umbrella(),
    id: 'umbrella-gone',
    title: 'one Helm release brought the type and a cluster-admin; the operator is uninstalled',
    afterwards: uninstall,
    expect: missingOrUnknown,
  }),
  situation({
    ...umbrella({ replicas: 0 }),
    id: 'umbrella-asleep',
    title: 'the same, and the operator is there, with 0 replicas',
    owner: { code: 'owner-scaled-to-zero', certainty: ['likely'] },
  }),
  ...COMPANY_LEASES.map(({ id, title, rights, missing }) =>
    situation({
      id,
      title: `another operator of the company holds a Lease of its domain, ${title}`,
      own: true,
      operator: CACHE,
      bystanders: (world) => [
        { ...BACKUP, ...rights(world), name: 'safe', namespace: 'backup-system' },
      ],
      afterwards: async (world, operator) => {
        await uninstall(world, operator);
        const safe = operatorOf(world, { name: 'safe', namespace: 'backup-system' });
        await createOwnLease(world, safe, { name: 'f1c5ece8.acme.example' });
      },
      expect: missing ? either((_, operator) => nobodyLeft(operator)) : either(nobodyKnown),
    }),
  ),
  situation({
    id: 'company-gateway',
    title: 'the gateway of a company checks only types of its groups; the operator is uninstalled',
    own: true,
    operator: CACHE,
    bystanders: [{ ...BACKUP, ...ADMIN, name: 'gateway', namespace: 'platform' }],
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
    expect: either(nobodyKnown),
  }),
  situation({
    id: 'name-with-prefix',
    own: true, // who may change everything could be anybody's owner
    title: 'the name of another product ends as that of the operator, which is uninstalled',
    operator: { name: 'backup-operator', namespace: 'backup-system' },
    bystanders: [{ ...ADMIN, name: 'etcd-backup-operator', namespace: 'etcd-system' }],
    afterwards: uninstall,
    expect: missingOrUnknown,
  }),
  situation({
    id: 'group-above',
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
    expect: asleepOrUnknown,
  }),
  situation({
    id: 'status-keeper',
    title: 'the operator is nameless and has 0 replicas; another one keeps the status of its type',
    operator: { ...NAMELESS, name: 'brain', namespace: 'platform', replicas: 0 },
    bystanders: [
      {
        name: 'widget-syncer',
        manager: 'widget-syncer',
        namespace: 'tools',
        container: { name: 'syncer' },
      },
    ],
    afterwards: writesStatus({ phase: 'Synced' }, 'widget-syncer'),
    expect: asleepOrUnknown,
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

/** Its process fails in these words, and no right or restoring helps. */
const failing = (
  words: string,
  says: RegExp,
  never?: RegExp,
): Pick<Situation, 'behaviour' | 'complains' | 'owner' | 'expect'> => ({
  behaviour: { isSlow: true, cleanUp: () => words },
  complains: true,
  owner: { code: 'owner-failing', says: [says] },
  ...(never === undefined ? {} : { expect: () => ({ deadlock: false, also: advisesNot(never) }) }),
});

/** It needs an object of its own group, and says so as client libraries do: by the kind in small letters. */
const issuerGone: Situation = {
  id: 'issuer-gone',
  title: 'the operator needs an object of this namespace that is gone, and names it by its kind',
  spec: { issuerRef: { kind: 'Issuer', name: 'ca' } },
  before: (world, operator) => world.create(customType({ group: operator.group, kind: 'Issuer' })),
  behaviour: { isSlow: true, cleanUp: (_, __, { group }) => `issuer.${group} "ca" not found` },
  complains: true,
  owner: { code: 'owner-failing', says: [/issuer/], advises: [/Remove this one finalizer/] },
  expect: () => ({ deadlock: true, also: advisesNot(/^(?:Fix|Restore)/) }),
};

const failed: Scenario[] = [
  situation(issuerGone),
  situation({
    ...issuerGone,
    id: 'issuer-elsewhere',
    title: 'the same, and the object is of another namespace',
    spec: { issuerRef: { kind: 'Issuer', name: 'ca', namespace: 'shared' } },
    owner: { code: 'owner-failing', says: [/issuer/], advises: [/^Create Issuer .* again/] },
    expect: () => ({ deadlock: false, also: advisesNot(/cannot be restored/) }),
    beyondCommands: 'nobody but its owner knows what was in it',
  }),
  situation({
    id: 'says-what-it-waits-for',
    title: 'the operator says that it waits for something that cannot be seen',
    behaviour: { hangs: true },
    settle: async (world, operator) => {
      await settledByFinalizer(world);
      const status = { message: 'waiting for the nightly backup to finish' };
      await writesStatus(status, operator.manager)(world, operator);
    },
    owner: {
      code: 'owner-running',
      says: [/nightly backup/],
      advises: [/Resolve what the status of Widget .* says, if that is why/],
    },
    expect: () => ({ also: advisesNot(/raise the timeout/) }),
    cure: restart,
  }),
  situation({
    ...failing('cannot log in: secrets "creds" not found', /creds/, /cannot be restored/),
    id: 'secret-elsewhere',
    title: 'the operator needs a Secret of a third namespace, which the object names',
    spec: { secretRef: { name: 'creds', namespace: 'shared' } },
    beyondCommands: 'nobody but its owner knows what was in the Secret',
  }),
  situation({
    ...failing('DeleteFailed: instance "db-1" not found', /db-1/, /[Rr]estore/),
    id: 'cloud-not-found',
    title: 'the operator does not find in the cloud what the object names',
    spec: { instanceName: 'db-1' },
    beyondCommands: 'somebody has to look into the cloud',
  }),
  situation({
    id: 'cloud-forbids',
    title: 'the cloud refuses what the operator asks of it',
    ...failing(
      'rpc error: code = PermissionDenied desc = forbidden: token lacks scope',
      /lacks scope/,
      /Grant|can-i/,
    ),
    owner: { code: 'owner-failing', says: [/lacks scope/], advises: [/^Resolve what is reported/] },
    beyondCommands: 'somebody has to grant it in the cloud',
  }),
  situation({
    ...failing(
      'jobs.batch "wipe" is forbidden: unable to create new content in namespace vault because it is being terminated',
      /vault/,
      /create jobs in the namespace/,
    ),
    id: 'other-terminating',
    title: 'the operator must create something in another namespace that is terminating',
    beyondCommands: 'the other namespace has to go first',
  }),
];

const chains: Scenario[] = [
  situation({
    id: 'invalid-gone',
    identity: 'teardown-force', // only who may change the object can try
    title:
      'the operator is uninstalled, and its type has got a field without which nothing is valid',
    operator: { name: 'sizing-operator', namespace: 'sizing-system' }, // a namesake elsewhere may be the owner
    afterwards: async (world, operator) => {
      await uninstall(world, operator);
      const { group, kind } = operator;
      const { spec } = structuredClone(customType({ group, kind }));
      const [version] = arrayAt(spec, 'versions') as [JsonObject];
      const schema = valueAt(version, 'schema', 'openAPIV3Schema') as JsonObject;
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
    owner: (_, operator) => [{ ...nobodyLeft(operator), advises: [/Make Widget db valid/] }],
    cure: async (world, operator) => {
      await world.client.patch(guardedRef(world, operator), {
        metadata: { finalizers: null },
        size: 1,
      });
    },
    mayChange: (_, { group, kind }) => [typeRef(group, kind)],
    beyondCommands: 'only a person knows what the field should say',
  }),
];

const rights: Scenario[] = [
  situation({
    id: 'impersonates',
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
        ...grant(
          { name },
          [accountSubject(namespace, 'deployer')],
          operatorRules({ group, kind: 'Widget' }),
        ),
      ]);
    },
    behaviour: { tells: false },
    expect: either(
      (_, one) => owner(one, 'owner-running'),
      (_, one) => owner(one, 'owner-failing'),
      nobodyKnown,
    ),
    beyondCommands: 'its work takes time',
  }),
  situation({
    id: 'rights-gone',
    own: true, // nobody else may be called so, without rights
    title:
      'what is called as the writer runs; a RoleBinding, which went with the namespace, let it act',
    operator: { rules: [rule('', ['namespaces'], READ)] },
    behaviour: { tells: false },
    afterwards: async (world, operator) => {
      const metadata = { namespace: world.namespace, name: 'widget-operator' };
      const subject = accountSubject(operator.namespace, operator.account);
      await world.createAll(grant(metadata, [subject], operatorRules(operator)));
    },
    expect: either((there, one) => ({
      ...nobodyKnown(there, one),
      says: [/may neither update nor patch/],
    })),
  }),
  situation({
    id: 'agent-outside',
    title: 'an agent in another cluster works by a token, and still writes the status',
    operator: { ...NAMELESS, name: 'agent', namespace: 'agent-system' },
    afterwards: (world, operator) => uninstall(world, operator, ['rights', 'account']),
    settle: async (world) => {
      const own = guardedRef(world, operatorOf(world));
      await world.terminating(own);
      await laterSecond();
      await world.client.patchStatus(own, { phase: 'Deleting' }, { fieldManager: 'manager' });
      await settledByFinalizer(world);
    },
    owner: 'owner-unknown',
  }),
  situation({
    id: 'leader-hangs',
    title: 'its own pod holds the Lease, and renews it no more',
    afterwards: async (world, operator) => {
      // What it holds it has taken since it is there.
      await sleep(30_000);
      await createOwnLease(world, operator, { silentForSeconds: 25 });
    },
    owner: { code: 'owner-not-acting', says: [/Lease.*does not renew it/] },
  }),
  situation({
    id: 'late-clock',
    title: 'its pod leads and renews its Lease, on a node whose clock is ten minutes late',
    afterwards: (world, operator) => createOwnLease(world, operator, { lateBySeconds: 600 }),
    owner: { code: 'owner-running', says: [/shows why/] },
  }),
  situation({
    id: 'early-clock',
    title: 'its pod holds the Lease and renews it no more, on a node whose clock is an hour ahead',
    afterwards: async (world, operator) => {
      await createOwnLease(world, operator, { lateBySeconds: -3_600, isOnce: true });
      await sleep(30_000);
    },
    owner: { code: 'owner-not-acting', says: [/does not renew it/] },
  }),
  situation({
    id: 'old-lease',
    title:
      'a StatefulSet that leads by no Lease any more; an old one names a pod that was called as its own is',
    operator: { workload: 'StatefulSet' },
    afterwards: (world, { namespace, name }) =>
      createLease(world, { namespace, name, holder: `${name}-0_77aa`, silentForSeconds: 86_400 }),
    owner: { code: 'owner-not-acting', says: [/runs, but may have no leader: Lease/] },
  }),
  situation({
    id: 'own-webhook-on-pods',
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

function reportNotReady(world: World, operator: Operator, reason: string, message: string) {
  const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, '');
  const condition = { type: 'Ready', status: 'False', reason, message, lastTransitionTime };
  const fieldManager = operator.manager;
  const status = { conditions: [condition] };
  return world.client.patchStatus(guardedRef(world, operator), status, { fieldManager });
}

/** The status of the object says so, since the deletion. */
const says =
  (message: string): NonNullable<Situation['settle']> =>
  async (world, operator) => {
    await world.terminating(guardedRef(world, operator));
    await laterSecond();
    await reportNotReady(world, operator, 'ReconciliationFailed', message);
    await settledByFinalizer(world);
  };

const more: Scenario[] = [
  situation({
    id: 'acts-as-a-team',
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
      'delete failed: deployments.apps "cart" is forbidden: User "system:serviceaccount:team-apps:deployer" cannot delete resource "deployments" in API group "apps" in the namespace "team-apps"',
    ),
    owner: { code: 'owner-failing', says: [/cannot delete/] },
    mayChange: () => RIGHTS,
    beyondCommands: 'somebody has to let the account of the team do it',
  }),
  situation({
    id: 'paused-for-flux',
    title: 'an annotation tells Flux, not the operator, to leave the object alone',
    afterwards: (world, operator) =>
      world.client.patch(guardedRef(world, operator), {
        metadata: { annotations: { 'kustomize.toolkit.fluxcd.io/reconcile': 'disabled' } },
      }),
    owner: { code: 'owner-running', says: [/shows why/] },
  }),
  situation({
    id: 'suspended-refused',
    title: 'the object is suspended, and what the operator does for its removal is refused',
    ...failing('cannot drop the schema: quota of the provider is used up', /used up/),
    spec: { suspend: true },
    beyondCommands: 'somebody has to make room at the provider',
  }),
  situation({
    id: 'old-words',
    title: 'what the status says is older than the deletion; somebody else has written it since',
    behaviour: HANGS,
    afterwards: async (world, operator) => {
      await reportNotReady(
        world,
        operator,
        'CreateFailed',
        'cannot create the schema: quota is used up',
      );
      await laterSecond();
    },
    settle: async (world, operator) => {
      const own = guardedRef(world, operator);
      await world.terminating(own);
      await laterSecond();
      await world.client.patchStatus(own, { replicas: 3 }, { fieldManager: 'widget-scaler' });
      await settledByFinalizer(world);
    },
    owner: {
      code: 'owner-running',
      says: [/before the deletion, says: cannot create the schema/],
    },
  }),
  situation({
    id: 'sibling-lease',
    title: 'a workload beside the operator leads by a Lease of its own; the operator has none',
    bystanders: [{ name: 'widget-operator-injector', namespace: 'widget-system', rules: [] }],
    afterwards: async (world, { namespace }) => {
      const name = 'widget-operator-injector';
      const injector = operatorOf(world, { namespace, name });
      await createOwnLease(world, injector, { name: `${name}-lock` });
    },
    owner: { code: 'owner-running', says: [/shows why/] },
  }),
  situation({
    id: 'own-guard',
    title: 'the webhook of the operator lets nobody else change its type; it runs and is slow',
    identity: 'teardown-force',
    unscheduled: true,
    behaviour: { cleanUp: () => 'busy', tells: false },
    before: async (world, { namespace, name, group }) => {
      await world.ensureNamespace(namespace);
      const { clientConfig } = await serveHook(world, { namespace, name }, 'node-own', (review) => {
        const user = JSON.stringify(valueAt(review, 'request', 'userInfo'));
        return /system:masters|kubeadm:cluster-admins|widget-operator/.test(user)
          ? 'allow'
          : { deny: 'not yours' };
      });
      await createWebhook(world, {
        operations: ['UPDATE'],
        apiGroup: group,
        resource: 'widgets',
        clientConfig,
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
    beyondCommands: 'its work takes time',
  }),
];

const traces: Scenario[] = [
  situation({
    id: 'trace-of-a-viewer',
    title: 'a binding that only lets look names an account of the product in this namespace',
    own: true,
    operator: { ...argo, namespace: 'argocd', workload: 'Deployment' },
    afterwards: async (world, operator) => {
      await uninstall(world, operator, ['rights']);
      const subject = accountSubject(world.namespace, 'argocd-application-controller');
      await world.createAll(grant({ name: 'looks' }, [subject], 'view'));
    },
    expect: (world, operator) => ({ ...missingOrUnknown(world, operator), deadlock: false }),
  }),
];

export const neighbours = [...lookalikes, ...failed, ...chains, ...rights, ...more, ...traces];
