import type { JsonObject } from '../../src/base/json.ts';
import type { Ref } from './client.ts';
import { waitUntil } from './wait-until.ts';
import type { World } from './world.ts';

export interface WebhookOptions {
  kind?: 'ValidatingWebhookConfiguration' | 'MutatingWebhookConfiguration';
  operations: readonly string[];
  apiGroup: string;
  resource: string;
  /** A Service, or where a webhook of these tests listens. */
  clientConfig: JsonObject;
  failurePolicy?: 'Fail' | 'Ignore';
  timeoutSeconds?: number;
}

const API = 'admissionregistration.k8s.io/v1';

export function webhookName(world: World): string {
  return `guard.${world.domain('example.com')}`;
}

export function webhookRef(
  world: World,
  kind: NonNullable<WebhookOptions['kind']> = 'ValidatingWebhookConfiguration',
): Ref {
  return { apiVersion: API, kind, name: world.name('guard') };
}

/** A webhook that only sees the namespace under test: others are not disturbed. */
export async function createWebhook(world: World, options: WebhookOptions): Promise<void> {
  const { operations, apiGroup, resource, clientConfig } = options;
  const { kind, name } = webhookRef(world, options.kind);
  await world.create({
    apiVersion: API,
    kind,
    metadata: { name },
    webhooks: [
      {
        name: webhookName(world),
        rules: [
          {
            operations: [...operations],
            apiGroups: [apiGroup],
            apiVersions: ['*'],
            resources: [resource],
          },
        ],
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } },
        clientConfig,
        failurePolicy: options.failurePolicy ?? 'Fail',
        timeoutSeconds: options.timeoutSeconds ?? 5,
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  });
}

export function byService(namespace: string, name: string): JsonObject {
  return { service: { namespace, name, path: '/validate' } };
}

/** Admission configuration takes a moment to be followed: asks for a dry run until it is refused. */
export async function refusesDeletion(world: World, ref: Ref): Promise<void> {
  const path = `${await world.client.pathOf(ref)}?dryRun=All`;
  await world.client.waitFor(ref, 'is there', Boolean);
  await waitForRefusal(world, 'DELETE', path);
}

/** The same for updates. */
export async function refusesUpdate(world: World, ref: Ref): Promise<void> {
  const path = `${await world.client.pathOf(ref)}?dryRun=All`;
  await waitForRefusal(world, 'PATCH', path);
}

async function waitForRefusal(
  world: World,
  method: 'DELETE' | 'PATCH',
  path: string,
): Promise<void> {
  const body = method === 'PATCH' ? { metadata: { annotations: { probe: 'x' } } } : undefined;
  await waitUntil(`${method} ${path} to be refused`, async () => {
    const { status } = await world.client.call(
      method,
      path,
      body,
      method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {},
    );
    return status >= 400 && status !== 404 && status !== 409;
  });
}
