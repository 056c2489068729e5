import {
  byService,
  createPolicy,
  createWebhook,
  policyRef,
  refusesDeletion,
  refusesUpdate,
  webhookRef,
} from '../admission.ts';
import type { Ref } from '../client.ts';
import { configMap, customObject, customType, pluralOf } from '../objects.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import { blindGate } from '../servers/blind-proxy.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { CONTENT_FAILURE, ref, stuck } from './links.ts';
import {
  createGuarded,
  install,
  type Operator,
  type OperatorOptions,
  operatorOf,
  start,
  uninstall,
} from './operator.ts';
import {
  GUARDED,
  guardedRef,
  HANGS,
  heldBy,
  missingOrUnknown,
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
} from './situation.ts';
import { serveHook, serveOwnWebhook } from './traces.ts';

/** Admission that refuses some and not others, many at once, and what could not be read. */

const GUARD = 'only-operators';

const account = ({ namespace, account: name }: Pick<Operator, 'namespace' | 'account'>): string =>
  `system:serviceaccount:${namespace}:${name}`;

/** Nobody changes objects of the type but this account. */
const onlyFor =
  (whom: (operator: Operator) => string, condition?: string): Step =>
  async (world, operator) => {
    await createPolicy(world, {
      name: GUARD,
      operations: ['UPDATE'],
      apiGroup: operator.group,
      resource: pluralOf(operator.kind),
      expression: `request.userInfo.username == '${whom(operator)}'`,
      message: 'only its operator may change it',
      ...(condition === undefined ? {} : { condition }),
    });
    await refusesUpdate(world, guardedRef(world, operator));
  };

const bindingRef = (world: World): Ref => ({
  ...policyRef(world, GUARD),
  kind: 'ValidatingAdmissionPolicyBinding',
});

const MAP = 'MutatingAdmissionPolicy';

/** It would add a label to whatever is changed, and divides by zero first. */
const brokenMutation: Step = async (world, operator) => {
  const { apiVersion, name } = policyRef(world, GUARD);
  await world.create({
    apiVersion,
    kind: MAP,
    metadata: { name },
    spec: {
      failurePolicy: 'Fail',
      reinvocationPolicy: 'Never',
      matchConstraints: {
        resourceRules: [
          {
            operations: ['UPDATE'],
            apiGroups: [operator.group],
            apiVersions: ['*'],
            resources: [pluralOf(operator.kind)],
          },
        ],
      },
      mutations: [
        {
          patchType: 'ApplyConfiguration',
          applyConfiguration: {
            expression:
              'Object{metadata: Object.metadata{labels: {"share": string(100 / size(object.metadata.name.split("-")) / (size(object.metadata.name) - 2))}}}',
          },
        },
      ],
    },
  });
  await world.create({
    apiVersion,
    kind: `${MAP}Binding`,
    metadata: { name },
    spec: {
      policyName: name,
      matchResources: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } },
      },
    },
  });
  await refusesUpdate(world, guardedRef(world, operator));
};

const denied = (world: World, kind = 'ValidatingAdmissionPolicy'): Link => ({
  code: 'admission-denied',
  subject: { ...policyRef(world, GUARD), kind },
});

const PARAMETERS = { namespace: 'default', name: 'retention' };

const policies: Scenario[] = [
  situation({
    id: 'S71',
    title: 'a policy lets only the account of the operator change the type; the operator runs',
    identity: 'teardown-force', // may try the removal as a dry run, and is refused
    afterwards: onlyFor(account),
    owner: 'owner-running',
    expect: (world) => ({ never: [{ kind: policyRef(world, GUARD).kind }] }),
  }),
  situation({
    id: 'S71-asleep',
    title: 'the same, by a condition of the policy; the operator has 0 replicas',
    identity: 'teardown-force',
    operator: { replicas: 0 },
    afterwards: (world, operator) =>
      onlyFor(() => 'nobody', `request.userInfo.username != '${account(operator)}'`)?.(
        world,
        operator,
      ) ?? Promise.resolve(),
    owner: 'owner-scaled-to-zero',
    expect: (world) => ({ never: [{ kind: policyRef(world, GUARD).kind }] }),
  }),
  situation({
    id: 'S71-moved',
    title: 'the policy still names the account that the operator had before it moved',
    identity: 'teardown-force',
    complains: true,
    afterwards: onlyFor(({ account: name }) => `system:serviceaccount:legacy:${name}`),
    owner: (world, operator) => [owner(operator, 'owner-failing'), denied(world)],
    cure: (world) => world.client.delete(bindingRef(world)),
    mayChange: (world) => [bindingRef(world)],
  }),
  situation({
    id: 'S71-mutating',
    title: 'a mutating policy fails on every change of the type',
    versions: ['1.36.3'],
    identity: 'teardown-force',
    complains: true,
    afterwards: brokenMutation,
    owner: (world, operator) => [owner(operator, 'owner-failing'), denied(world, MAP)],
    cure: (world) => world.client.delete({ ...bindingRef(world), kind: `${MAP}Binding` }),
    mayChange: (world) => [{ ...bindingRef(world), kind: `${MAP}Binding` }],
    beyondCommands: 'the owner of the policy has to fix it',
  }),
  {
    id: 'S71-parameter',
    title: 'a policy on deletions has lost its parameters, without which it refuses',
    setUp: async (world) => {
      await world.createNamespace();
      await world.create(configMap(world.namespace, 'books'));
      await createPolicy(world, {
        name: GUARD,
        operations: ['DELETE'],
        apiGroup: '',
        resource: 'configmaps',
        expression: 'true',
        message: 'never said',
        params: { ...PARAMETERS, name: world.name(PARAMETERS.name) },
      });
      await refusesDeletion(world, ref('v1', 'ConfigMap', world.namespace, 'books'));
    },
    settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /parameterNotFoundAction/] }),
    expect: (world) => stuck([denied(world)]),
    cure: (world) => world.create(configMap(PARAMETERS.namespace, world.name(PARAMETERS.name))),
    mayChange: (world) => [
      bindingRef(world),
      { kind: 'ConfigMap', name: world.name(PARAMETERS.name) },
    ],
  },
];

const HOLD = 'hold.example.net/by-hand';
const LEDGERS: OperatorOptions = { group: 'ledger.example.com', kind: 'Ledger' };
const uninstalled = (world: World) => byService(world.name('uninstalled'), 'guard');

/** A type of two versions with one object that is held by hand, or by nothing. */
async function createLedger(world: World, finalizers: string[]): Promise<Operator> {
  const operator = operatorOf(world, LEDGERS);
  const { group, kind } = operator;
  await world.createNamespace();
  await world.createType(customType({ group, kind, versions: ['v1beta1', 'v1'] }));
  await world.create(customObject(`${group}/v1`, kind, world.namespace, GUARDED, { finalizers }));
  return operator;
}

const ledgerRef = (world: World): Ref => guardedRef(world, operatorOf(world, LEDGERS));

const failing = (world: World, name: string): Link => ({
  code: 'admission-webhook-failing',
  subject: webhookRef(world, undefined, name),
});

/** A dead webhook that the API server does call, or does not. */
function ledgerWebhook(
  id: string,
  title: string,
  how: Partial<Parameters<typeof createWebhook>[1]>,
): Scenario {
  return {
    id,
    title,
    setUp: async (world) => {
      const { group } = await createLedger(world, []);
      await createWebhook(world, {
        name: 'matching',
        operations: ['DELETE'],
        apiGroup: group,
        resource: 'ledgers',
        clientConfig: uninstalled(world),
        ...how,
      });
      await refusesDeletion(world, ledgerRef(world));
    },
    settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /not found/] }),
    expect: (world) => stuck([failing(world, 'matching')]),
    cure: (world) => world.client.delete(webhookRef(world, undefined, 'matching')),
  };
}

const matching: Scenario[] = [
  {
    id: 'S72',
    title: 'two dead webhooks that do not match: of cluster scope, and exact about another version',
    setUp: async (world) => {
      const { group } = await createLedger(world, [HOLD]);
      const dead = {
        operations: ['DELETE', 'UPDATE'],
        apiGroup: group,
        resource: 'ledgers',
        clientConfig: uninstalled(world),
      };
      await createWebhook(world, { ...dead, name: 'cluster', scope: 'Cluster' });
      await createWebhook(world, {
        ...dead,
        name: 'exact',
        matchPolicy: 'Exact',
        apiVersions: ['v1beta1'],
      });
    },
    settle: settledByFinalizer,
    expect: (world) => ({
      outcome: 'stuck',
      ...missingOrUnknown(world, { ...operatorOf(world, LEDGERS), finalizer: HOLD }),
      never: ['cluster', 'exact'].map((name) => webhookRef(world, undefined, name)),
    }),
    cure: (world) => release(world, ledgerRef(world)),
  },
  ledgerWebhook('S72-equivalent', 'a dead webhook about another version, which is equivalent', {
    matchPolicy: 'Equivalent',
    apiVersions: ['v1beta1'],
  }),
  ledgerWebhook('S72-namespaced', 'a dead webhook about what is in namespaces', {
    scope: 'Namespaced',
    resource: '*',
  }),
  twins('S73', 'two webhooks of one name; only the second sees this namespace, and is dead', {
    first: 'sees another namespace',
    dead: 'second',
  }),
  twins('S73-live', 'two webhooks of one name see this namespace; the first answers', {
    first: 'answers',
    dead: 'second',
  }),
  twins('S73-first', 'the same, and it is the first that is dead', {
    first: 'answers',
    dead: 'first',
  }),
];

/** Two configurations with a webhook of the same name each, as of a chart that is installed twice. */
function twins(
  id: string,
  title: string,
  { first, dead }: { first: 'sees another namespace' | 'answers'; dead: 'first' | 'second' },
): Scenario {
  const names = dead === 'second' ? ['a-guard', 'b-guard'] : ['b-guard', 'a-guard'];
  const [innocent = '', guilty = ''] = names;
  return {
    id,
    title,
    setUp: async (world) => {
      const { group } = await createLedger(world, []);
      const webhook = { operations: ['DELETE'], apiGroup: group, resource: 'ledgers' };
      await createWebhook(world, {
        ...webhook,
        name: innocent,
        ...(first === 'answers'
          ? { clientConfig: await liveService(world) }
          : { clientConfig: byService(world.name('team-b'), 'guard'), sees: 'team-b' }),
      });
      await createWebhook(world, { ...webhook, name: guilty, clientConfig: uninstalled(world) });
      await refusesDeletion(world, ledgerRef(world));
    },
    settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /not found/] }),
    expect: (world) => ({
      ...stuck([failing(world, guilty)]),
      never: [webhookRef(world, undefined, innocent)],
    }),
    cure: (world) => world.client.delete(webhookRef(world, undefined, guilty)),
  };
}

/** A webhook behind a Service, with nothing against anything. */
async function liveService(world: World) {
  const namespace = world.name('guards');
  const name = 'guard';
  await world.createNamespace(namespace);
  const hook = await serveHook(world, { namespace, name }, 'node-guards');
  const { kind: _, ...options } = { kind: 'Ledger', name, namespace, scope: 'cluster' as const };
  await install(world, { ...options, type: false, rules: [] });
  await hook.hasEndpoints();
  return hook.clientConfig;
}

/** Its own webhook on changes of its type. */
const ownWebhook: typeof serveOwnWebhook = (world, operator, more = {}) =>
  serveOwnWebhook(world, operator, {
    operations: ['CREATE', 'UPDATE'],
    timeoutSeconds: 2,
    ...more,
  });

async function uninstallButWebhook(world: World, operator: Operator): Promise<void> {
  const { namespace, name } = operator;
  await uninstall(world, operator);
  await world.client.delete(ref('v1', 'Service', namespace, name));
}

const innocentWebhook: NonNullable<Situation['expect']> = (world) => ({
  never: [webhookRef(world)],
});

const leftWebhooks: Scenario[] = [
  situation({
    id: 'S74',
    own: true, // programs of the same name in other scenarios could have been the owner
    title: 'the operator is uninstalled; its webhook on changes of its type is left, and dead',
    identity: 'teardown-force',
    afterwards: async (world, operator) => {
      await ownWebhook(world, operator);
      await uninstallButWebhook(world, operator);
      await refusesUpdate(world, guardedRef(world, operator));
    },
    expect: (world, operator) => ({
      chains: [
        [heldBy(world, operator), nobodyLeft(operator)],
        [
          heldBy(world, operator),
          { code: 'admission-webhook-failing', subject: webhookRef(world) },
        ],
      ],
    }),
    cure: async (world, operator) => {
      await world.client.delete(webhookRef(world));
      await waitUntil('the webhook to be forgotten', () =>
        releaseGuarded(world, operator).then(
          () => true,
          () => false,
        ),
      );
    },
  }),
  situation({
    id: 'S74-ignore',
    own: true, // as above
    title: 'the same, and the webhook that is left lets everything pass',
    identity: 'teardown-force',
    afterwards: async (world, operator) => {
      await ownWebhook(world, operator, { failurePolicy: 'Ignore' });
      await uninstallButWebhook(world, operator);
    },
    owner: 'owner-missing',
    expect: innocentWebhook,
  }),
  situation({
    id: 'S74-other-namespace',
    title: 'the same, and the webhook that is left looks at another namespace only',
    identity: 'teardown-force',
    afterwards: async (world, operator) => {
      await ownWebhook(world, operator, { sees: 'team-b' });
      await uninstallButWebhook(world, operator);
    },
    owner: 'owner-missing',
    expect: innocentWebhook,
  }),
  situation({
    id: 'S74-asleep',
    title: 'the operator has 0 replicas, and so has the webhook that it serves itself',
    identity: 'teardown-force',
    operator: { replicas: 0 },
    // Its pods answer here: scaled up, it passes its own webhook.
    before: async (world, operator) => {
      await world.createNamespace(operator.namespace);
      const { clientConfig } = await serveHook(world, operator, 'node-operator');
      await createWebhook(world, {
        operations: ['UPDATE'],
        apiGroup: operator.group,
        resource: pluralOf(operator.kind),
        clientConfig,
        timeoutSeconds: 2,
        // Switched on when the finalizer has been set.
        failurePolicy: 'Ignore',
      });
    },
    unscheduled: true, // by the stand-in above
    afterwards: async (world, operator) => {
      const { webhooks } = await world.client.get(webhookRef(world));
      const [webhook] = webhooks as [Record<string, string>];
      await world.client.patch(webhookRef(world), {
        webhooks: [{ ...webhook, failurePolicy: 'Fail' }],
      });
      await refusesUpdate(world, guardedRef(world, operator));
    },
    expect: (world, operator) => {
      const held = heldBy(world, operator);
      const asleep = owner(operator, 'owner-scaled-to-zero');
      const webhook: Link = {
        code: 'admission-webhook-failing',
        subject: webhookRef(world),
      };
      return {
        anyOf: [
          { chains: [[held, asleep]] },
          {
            chains: [
              [held, asleep],
              [held, webhook, asleep],
            ],
          },
          { chains: [[held, webhook, asleep]] },
          { chains: [[held, asleep, webhook]], rootCauses: [asleep] },
        ],
      };
    },
  }),
];

const KINDS = [
  'Bucket',
  'Queue',
  'Topic',
  'Table',
  'Instance',
  'Network',
  'Subnet',
  'Role',
  'Key',
  'Zone',
  'Record',
  'Cache',
  'Stream',
];

interface Provider {
  name: string;
  kinds: readonly string[];
  state: 'asleep' | 'uninstalled';
}

const providerOptions = (world: World, { name, kinds, state }: Provider): OperatorOptions => ({
  group: `${name}.example.com`,
  kind: kinds[0] ?? '',
  name: `provider-${name}`,
  namespace: world.name('providers'),
  scope: 'cluster',
  replicas: state === 'asleep' ? 0 : 1,
  finalizer: `${world.domain(`${name}.example.com`)}/managed`,
  rules: [{ apiGroups: [world.domain(`${name}.example.com`)], resources: ['*'], verbs: ['*'] }],
});

/** Providers of a cloud, each with one object of each of its kinds in the namespace. */
function providers(id: string, title: string, all: readonly Provider[]): Scenario {
  const last = (world: World, provider: Provider): Operator =>
    operatorOf(world, providerOptions(world, provider));
  return {
    id,
    title,
    setUp: async (world) => {
      await world.createNamespace();
      await world.createNamespace(world.name('providers'));
      for (const provider of all) {
        const operator = await install(world, providerOptions(world, provider));
        const { group } = operator;
        const more = provider.kinds.slice(1);
        for (const kind of more) await world.createType(customType({ group, kind }));
        const alsoAfter = more.map((kind) => ({
          apiVersion: `${group}/v1`,
          kind,
          namespace: world.namespace,
        }));
        await start(world, operator, { alsoAfter });
        for (const kind of provider.kinds) {
          await createGuarded(world, { ...operator, kind }, GUARDED);
        }
        if (provider.state === 'uninstalled') await uninstall(world, operator);
      }
    },
    settle: settledByFinalizer,
    ...(all.some(({ state }) => state === 'uninstalled')
      ? {
          beyondCommands:
            'only the provider, installed again, frees them all; the command is for one object',
        }
      : {}),
    expect: (world) => ({
      outcome: 'stuck',
      chains: 'any',
      rootCauses: all.map((provider): Link => {
        const operator = last(world, provider);
        return provider.state === 'asleep'
          ? owner(operator, 'owner-scaled-to-zero')
          : { code: 'owner-missing', subject: 'any', finalizer: operator.finalizer };
      }),
      never: [{ code: 'owner-unknown' }],
      also: ({ namespace: { rootCauses } }) => {
        if (rootCauses.length === all.length) return;
        throw new Error(`${all.length} causes are told as ${rootCauses.length}`);
      },
    }),
    cure: async (world) => {
      for (const provider of all) {
        const operator = last(world, provider);
        if (provider.state === 'asleep') await scaleUp(world, operator);
        else for (const kind of provider.kinds) await releaseGuarded(world, { ...operator, kind });
      }
    },
  };
}

const many: Scenario[] = [
  {
    ...providers('S70', '13 kinds of one provider that is uninstalled', [
      { name: 'cloud', kinds: KINDS, state: 'uninstalled' },
    ]),
    own: true, // other scenarios have a provider of this name, which may have lost a permission
  },
  providers('S70-asleep', '13 kinds of one provider with 0 replicas', [
    { name: 'cloud', kinds: KINDS, state: 'asleep' },
  ]),
  providers('S70-two', 'six kinds of a provider with 0 replicas, seven of one that is gone', [
    { name: 'cloud', kinds: KINDS.slice(0, 6), state: 'asleep' },
    { name: 'edge', kinds: KINDS.slice(6), state: 'uninstalled' },
  ]),
];

/** Nobody is certain about anything, and nothing is forced. */
const unsure = (world: World, operator: Operator, ...likely: Link[]): Partial<Expectation> => {
  const held = heldBy(world, operator);
  return {
    anyOf: [
      { chains: [[held, nobodyKnown(world, operator)]] },
      ...likely.map((link) => ({ chains: [[held, { ...link, certainty: ['likely' as const] }]] })),
    ],
    never: [{ code: 'owner-missing' }],
  };
};

const unread: Scenario[] = [
  situation({
    id: 'S85',
    title: 'the operator is a DaemonSet that runs; the gate may not list DaemonSets',
    operator: { workload: 'DaemonSet' },
    behaviour: HANGS,
    afterwards: (world) =>
      blindGate(world, 'teardown-reader', {
        to: /^GET \/apis\/apps\/v1\/daemonsets$/,
        status: 403,
      }),
    expect: (world, operator) => ({
      ...unsure(world, operator, owner(operator, 'owner-running'), {
        code: 'owner-running',
        subject: 'any',
        finalizer: operator.finalizer,
      }),
      notInspected: [/daemonsets/i],
    }),
  }),
  situation({
    id: 'S85-pods',
    title: 'the operator is a bare Pod that runs; listing pods of the cluster answers 500',
    operator: { workload: 'Pod' },
    behaviour: HANGS,
    afterwards: (world, { namespace }) =>
      blindGate(world, 'teardown-reader', {
        to: new RegExp(`^GET /api/v1/(namespaces/${namespace}/)?pods$`),
        status: 500,
      }),
    expect: (world, operator) => ({
      ...unsure(world, operator),
      notInspected: [/pods/i],
    }),
  }),
  situation({
    id: 'S85-bindings',
    title: 'the operator has 0 replicas; listing ClusterRoleBindings answers 500',
    operator: { replicas: 0 },
    afterwards: (world) =>
      blindGate(world, 'teardown-reader', { to: /clusterrolebindings$/, status: 500 }),
    expect: (world, operator) => ({
      ...unsure(world, operator, owner(operator, 'owner-scaled-to-zero')),
      notInspected: [/clusterrolebindings/i],
    }),
  }),
  situation({
    id: 'S85-gone',
    title: 'the operator is uninstalled; the gate may not list Leases',
    afterwards: async (world, operator) => {
      await uninstall(world, operator);
      await blindGate(world, 'teardown-reader', { to: /\/leases$/, status: 403 });
    },
    expect: (world, operator) => ({
      ...unsure(world, operator),
      notInspected: [/leases/i],
    }),
  }),
];

export const obstacles = [...policies, ...matching, ...leftWebhooks, ...many, ...unread];
