import { stringAt } from '../../../src/base/json.ts';
import { createWebhook, webhookRef } from '../admission.ts';
import type { Scenario } from '../scenario.ts';
import { startWebhook } from '../servers/webhook.ts';
import { waitUntil } from '../wait-until.ts';

/** The DELETE that somebody sent was refused, so the namespace is as alive as ever. */
const s50b: Scenario = {
  id: 'S50b',
  title: 'it is Active because a webhook refused its DELETE',
  setUp: async (world) => {
    const clientConfig = await startWebhook(world, () => ({ deny: 'ask the platform team' }));
    await world.createNamespace();
    await createWebhook(world, {
      operations: ['DELETE'],
      apiGroup: '',
      resource: 'namespaces',
      clientConfig,
    });
    const path = await world.client.pathOf(world.namespaceRef);
    await waitUntil('the webhook to refuse the DELETE', async () => {
      const dryRun = await world.client.call('DELETE', `${path}?dryRun=All`);
      return dryRun.status === 403;
    });
    const answer = await world.client.call('DELETE', path);
    if (!stringAt(answer.body, 'message')?.includes('platform team')) throw new Error(answer.text);
    // The namespace has to be taken away afterwards.
    world.atEnd(() => world.client.delete(webhookRef(world)));
  },
  delete: false,
  inputs: { timeout: '60s' },
  expect: () => ({
    outcome: 'not-terminating',
    also: ({ elapsedMs }) => {
      if (elapsedMs > 50_000) throw new Error(`waited ${elapsedMs} ms for what nobody started`);
    },
  }),
};

export const denials = [s50b];
