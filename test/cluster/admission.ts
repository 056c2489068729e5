import type { JsonObject } from '../../src/base/json.ts';
import type { Ref } from './client.ts';
import { waitUntil } from './wait-until.ts';
import type { World } from './world.ts';

const API = 'admissionregistration.k8s.io/v1';
export const WEBHOOK = 'guard.example.com';
/** Only the namespace under test: others are not disturbed. */
const itsNamespace = ({ namespace }: World): JsonObject => ({
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
});

/** What admission is asked about. */
interface Asked {
  operations: readonly string[];
  /** Of the core group unless given. */
  apiGroup?: string;
  resource: string;
  scope?: '*' | 'Namespaced';
}

const ruleOf = ({ operations, apiGroup = '', resource, scope = '*' }: Asked) => ({
  ...{ operations: [...operations], apiGroups: [apiGroup], apiVersions: ['*'] },
  ...{ resources: [resource], scope },
});

export const webhookRef = (): Ref => ({
  ...{ apiVersion: API, kind: 'ValidatingWebhookConfiguration', name: 'guard' },
});

/** `clientConfig`: a Service, or where a webhook of these tests listens. */
export async function createWebhook(
  world: World,
  { clientConfig, ...asked }: Asked & { clientConfig: JsonObject },
): Promise<void> {
  const { apiVersion, kind, name } = webhookRef();
  const webhook = {
    name: WEBHOOK,
    rules: [ruleOf(asked)],
    ...itsNamespace(world),
    clientConfig,
    ...{ failurePolicy: 'Fail', timeoutSeconds: 5, sideEffects: 'None' },
    admissionReviewVersions: ['v1'],
  };
  await world.create({ apiVersion, kind, metadata: { name }, webhooks: [webhook] });
}

export function byService(namespace: string, name: string): JsonObject {
  return { service: { namespace, name, path: '/validate' } };
}

/** As before Kubernetes 1.22: today's API takes only webhooks that can be asked about dry runs. */
export async function refusesDryRuns(world: World): Promise<void> {
  const found = await world.client.get(webhookRef());
  const [webhook] = found['webhooks'] as [JsonObject];
  const { resourceVersion: _, ...metadata } = found.metadata;
  const stored = { ...found, metadata, webhooks: [{ ...webhook, sideEffects: 'Some' }] };
  await world.storePastApi('validatingwebhookconfigurations/guard', JSON.stringify(stored));
}

/** A ValidatingAdmissionPolicy and its binding. `expression`: in CEL; what is not true is refused. */
export async function createPolicy(
  world: World,
  name: string,
  asked: Asked,
  validation: { expression: string; message: string },
): Promise<void> {
  const kind = 'ValidatingAdmissionPolicy';
  const metadata = { name };
  const matchConstraints = { resourceRules: [ruleOf(asked)] };
  const spec = { failurePolicy: 'Fail', matchConstraints, validations: [validation] };
  await world.create({ apiVersion: API, kind, metadata, spec });
  const matchResources = itsNamespace(world);
  const bound = { policyName: name, validationActions: ['Deny'], matchResources };
  await world.create({ apiVersion: API, kind: `${kind}Binding`, metadata, spec: bound });
}

/** Admission configuration takes a moment to be followed: asks for a dry run until it is refused. */
export async function refusesDeletion(world: World, ref: Ref): Promise<void> {
  await world.client.waitFor(ref, 'is there', Boolean);
  await refused(world, ref, 'DELETE');
}

/** The same for updates. */
export function refusesUpdate(world: World, ref: Ref): Promise<void> {
  return refused(world, ref, 'PATCH', { metadata: { annotations: { probe: 'x' } } });
}

async function refused(
  world: World,
  ref: Ref,
  method: 'DELETE' | 'PATCH',
  body?: JsonObject,
): Promise<void> {
  const path = `${await world.client.pathOf(ref)}?dryRun=All`;
  const headers = body && { 'content-type': 'application/merge-patch+json' };
  await waitUntil(`${method} ${path} to be refused`, async () => {
    const { status } = await world.client.call(method, path, body, headers);
    return status >= 400 && status !== 404 && status !== 409;
  });
}
