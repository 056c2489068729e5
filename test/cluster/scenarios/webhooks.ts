import {
  byService,
  createWebhook,
  refusesDeletion,
  type WebhookOptions,
  webhookName,
  webhookRef,
} from '../admission.ts';
import type { Ref } from '../client.ts';
import { customObject, customType, deployment, service } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { holdUntilWatched } from './hold.ts';
import { CONTENT_FAILURE, ref, stuck } from './links.ts';

/** Webhooks and policies that refuse what the namespace controller wants to delete. */

const ledgerGroup = (world: World): string => world.domain('ledger.example.com');
const ledgerRef = (world: World): Ref =>
  ref(`${ledgerGroup(world)}/v1`, 'Ledger', world.namespace, 'books');

/** A type with one object: admission of a collection delete is only asked about objects. */
async function createLedger(world: World): Promise<void> {
  const group = ledgerGroup(world);
  await world.createNamespace();
  await world.createType(customType({ group, kind: 'Ledger' }));
  await world.create(customObject(`${group}/v1`, 'Ledger', world.namespace, 'books'));
}

async function guardLedger(
  world: World,
  clientConfig: Parameters<typeof createWebhook>[1]['clientConfig'],
  more: Pick<WebhookOptions, 'failurePolicy' | 'timeoutSeconds' | 'name' | 'condition'> = {},
): Promise<void> {
  await createWebhook(world, {
    operations: ['DELETE'],
    apiGroup: ledgerGroup(world),
    resource: 'ledgers',
    clientConfig,
    ...more,
  });
  if (more.failurePolicy === undefined) await refusesDeletion(world, ledgerRef(world));
}

const failing = (world: World, ...says: RegExp[]): Link => ({
  code: 'admission-webhook-failing',
  subject: webhookRef(world),
  says: [new RegExp(webhookName(world)), ...says],
});

export const contentFails = (words: RegExp) => (world: World) =>
  world.settled({ [CONTENT_FAILURE]: ['True', words] });

const LEDGER_QUEUED = { kinds: ['Ledger'], exactly: true };

const s15: Scenario = {
  id: 'S15',
  title: 'a webhook on DELETE whose Service was in the namespace',
  setUp: async (world) => {
    await createLedger(world);
    await world.create(service(world.namespace, 'guard'));
    await guardLedger(world, byService(world.namespace, 'guard'));
  },
  settle: contentFails(/service "guard" not found/),
  expect: (world) => ({
    ...stuck([failing(world, /not found|does not exist|gone|missing/)]),
    deadlock: true,
    queued: LEDGER_QUEUED,
  }),
};

const s17: Scenario = {
  id: 'S17',
  title: 'the same webhook with failurePolicy Ignore',
  ...holdUntilWatched(async (world) => {
    await createLedger(world);
    await world.create(service(world.namespace, 'guard'));
    await guardLedger(world, byService(world.namespace, 'guard'), { failurePolicy: 'Ignore' });
  }),
  inputs: { timeout: '60s' },
  expect: () => ({ outcome: 'deleted' }),
};

/** Pods labelled `app: guard` in that namespace would be its backend, if they were ready. */
export function noReadyEndpoint(
  id: string,
  title: string,
  createBackend: (world: World, namespace: string) => Promise<unknown> = async () => {},
  because = /no ready endpoint/,
): Scenario {
  return {
    id,
    title,
    setUp: async (world) => {
      const hooks = world.name('hooks');
      await createLedger(world);
      await world.createNamespace(hooks);
      await world.create(service(hooks, 'guard', { selector: { app: 'guard' } }));
      await createBackend(world, hooks);
      await guardLedger(world, byService(hooks, 'guard'));
    },
    // Refused where kube-proxy answers for it.
    settle: contentFails(/no endpoints available for service "guard"|connection refused/),
    expect: (world) => ({
      ...stuck([failing(world, because)]),
      queued: LEDGER_QUEUED,
    }),
    cure: (world) => world.client.delete(webhookRef(world)),
  };
}

const s19 = noReadyEndpoint(
  'S19',
  'a webhook whose Service is there, without a ready endpoint',
  async (world) => {
    // A Service selects no pods of another namespace.
    const another = world.name('another');
    await world.createNamespace(another);
    await world.create(deployment(another, 'guard', { replicas: 0 }));
  },
);

export const webhooks = [s15, s17, s19];
