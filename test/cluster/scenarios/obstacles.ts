import {
  byService,
  createWebhook,
  refusesDeletion,
  refusesUpdate,
  webhookRef,
} from '../admission.ts';
import type { Ref } from '../client.ts';
import { customObject, customType, pluralOf } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { CONTENT_FAILURE, stuck } from './links.ts';
import { install, type Operator, type OperatorOptions, operatorOf } from './operator.ts';
import { GUARDED, guardedRef, heldBy, owner, situation } from './situation.ts';
import { serveHook } from './traces.ts';

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

export const obstacles = [...matching, ...leftWebhooks];
