import { stringAt } from '../../../src/base/json.ts';
import { createWebhook, refusesDeletion, webhookRef } from '../admission.ts';
import type { Ref } from '../client.ts';
import { secret } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { startWebhook } from '../servers/webhook.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { CONTENT_FAILURE, ref } from './links.ts';
import { liveWebhook } from './webhooks.ts';

/** Somebody is there, and says no. */

const RETENTION = 'ledgers are kept for ten years';

const deniedByWebhook = liveWebhook(
  'denied-by-webhook',
  'a live webhook says no to the deletion',
  { deny: RETENTION },
  new RegExp(RETENTION),
  (world) => ({
    code: 'admission-denied',
    subject: webhookRef(world),
    says: [new RegExp(RETENTION)],
  }),
);

const POLICY = 'admissionregistration.k8s.io/v1';
const policyRef = (world: World): Ref => ({
  apiVersion: POLICY,
  kind: 'ValidatingAdmissionPolicy',
  name: world.name('keep-secrets'),
});

const deniedByPolicy: Scenario = {
  id: 'denied-by-policy',
  title: 'a ValidatingAdmissionPolicy says no to the deletion of Secrets',
  setUp: async (world) => {
    const { name } = policyRef(world);
    const kept = ref('v1', 'Secret', world.namespace, 'credentials');
    await world.createNamespace();
    await world.create(secret(world.namespace, kept.name));
    await world.create({
      apiVersion: POLICY,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            {
              operations: ['DELETE'],
              apiGroups: [''],
              apiVersions: ['v1'],
              resources: ['secrets'],
            },
          ],
        },
        validations: [{ expression: 'false', message: 'secrets are removed by the vault only' }],
      },
    });
    await world.create({
      apiVersion: POLICY,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name },
      spec: {
        policyName: name,
        validationActions: ['Deny'],
        matchResources: {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } },
        },
      },
    });
    await refusesDeletion(world, kept);
  },
  settle: (world) =>
    world.settled({ [CONTENT_FAILURE]: ['True', /ValidatingAdmissionPolicy .* denied request/] }),
  expect: (world) => ({
    outcome: 'stuck',
    chains: [
      [{ code: 'admission-denied', subject: policyRef(world), says: [/by the vault only/] }],
    ],
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
      if (elapsedMs > 15_000) throw new Error(`waited ${elapsedMs} ms for what nobody started`);
    },
  }),
};

export const denials = [deniedByWebhook, deniedByPolicy, s50b];
