import { byService, createWebhook, refusesDeletion, webhookRef } from '../admission.ts';
import type { Ref } from '../client.ts';
import { customObject, customType } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { CONTENT_FAILURE, stuck } from './links.ts';
import { install, type Operator, type OperatorOptions, operatorOf } from './operator.ts';
import { GUARDED, guardedRef } from './situation.ts';
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

export const obstacles = [...matching];
