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
import { customObject, customType, pluralOf } from '../objects.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import { blindGate } from '../servers/blind-proxy.ts';
import type { World } from '../world.ts';
import { CONTENT_FAILURE, stuck } from './links.ts';
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
  owner,
  release,
  releaseGuarded,
  type Step,
  scaleUp,
  settledByFinalizer,
  situation,
} from './situation.ts';
import { serveHook } from './traces.ts';

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

const policies: Scenario[] = [
  situation({
    id: 'S71',
    title: 'a policy lets only the account of the operator change the type; the operator runs',
    identity: 'teardown-force', // may try the removal as a dry run, and is refused
    afterwards: onlyFor(account),
    owner: 'owner-running',
    expect: (world) => ({ never: [{ kind: policyRef(world, GUARD).kind }] }),
  }),
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
  twins('S73-first', 'two webhooks of one name see this namespace; the first is dead', {
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

const leftWebhooks: Scenario[] = [
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
        // The types of a missing provider are a cause each, which the report tells as one.
        if (rootCauses.length === all.length) return;
        if (all.every(({ state }) => state === 'uninstalled')) return;
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
];

export const obstacles = [...policies, ...matching, ...leftWebhooks, ...many, ...unread];
