import { stringAt } from '../../../src/base/json.ts';
import {
  createPolicy,
  createWebhook,
  policyRef,
  refusesDeletion,
  webhookRef,
} from '../admission.ts';
import { secret } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { startWebhook } from '../servers/webhook.ts';
import { waitUntil } from '../wait-until.ts';
import { CONTENT_FAILURE, ref, stuck } from './links.ts';
import { liveWebhook } from './webhooks.ts';

/** Somebody is there, and says no. */

const RETENTION = 'ledgers are kept for ten years';

const deniedByWebhook: Scenario = {
  beyondCommands: 'the owner of the webhook has to let it through',
  ...liveWebhook(
    'denied-by-webhook',
    'a live webhook says no to the deletion',
    { deny: RETENTION },
    new RegExp(RETENTION),
    (world) => ({
      code: 'admission-denied',
      subject: webhookRef(world),
      says: [new RegExp(RETENTION)],
    }),
  ),
};

const KEEP_SECRETS = 'keep-secrets';

const deniedByPolicy: Scenario = {
  id: 'denied-by-policy',
  title: 'a ValidatingAdmissionPolicy says no to the deletion of Secrets',
  setUp: async (world) => {
    const kept = ref('v1', 'Secret', world.namespace, 'credentials');
    await world.createNamespace();
    await world.create(secret(world.namespace, kept.name));
    await createPolicy(world, {
      name: KEEP_SECRETS,
      operations: ['DELETE'],
      apiGroup: '',
      resource: 'secrets',
      expression: 'false',
      message: 'secrets are removed by the vault only',
    });
    await refusesDeletion(world, kept);
  },
  settle: (world) =>
    world.settled({ [CONTENT_FAILURE]: ['True', /ValidatingAdmissionPolicy .* denied request/] }),
  expect: (world) => ({
    ...stuck([
      {
        code: 'admission-denied',
        subject: policyRef(world, KEEP_SECRETS),
        says: [/by the vault only/],
      },
    ]),
    queued: { kinds: ['Secret'], exactly: true },
  }),
  mayChange: (world) => [
    { kind: 'ValidatingAdmissionPolicyBinding', name: policyRef(world, KEEP_SECRETS).name },
  ],
};

/** It decides nothing, it fails: on DELETE there is no object. */
const failingPolicy: Scenario = {
  id: 'policy-fails',
  title: 'a ValidatingAdmissionPolicy has an expression that fails on every deletion',
  setUp: async (world) => {
    const kept = ref('v1', 'Secret', world.namespace, 'credentials');
    await world.createNamespace();
    await world.create(secret(world.namespace, kept.name));
    await createPolicy(world, {
      name: KEEP_SECRETS,
      operations: ['UPDATE', 'DELETE'],
      apiGroup: '',
      resource: 'secrets',
      expression: "object.metadata.labels.team == 'blue'",
      message: 'secrets have a team',
    });
    await refusesDeletion(world, kept);
  },
  settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /resulted in error/] }),
  expect: (world) => ({
    ...stuck([
      {
        code: 'admission-denied',
        subject: policyRef(world, KEEP_SECRETS),
        says: [/resulted in error/],
        advises: [/Fix the error of/, /failurePolicy.*Ignore/],
      },
    ]),
    queued: { kinds: ['Secret'], exactly: true },
  }),
};

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

export const denials = [deniedByWebhook, deniedByPolicy, failingPolicy, s50b];
