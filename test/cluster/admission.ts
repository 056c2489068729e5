import type { JsonObject } from '../../src/base/json.ts';
import { writesSince } from './audit.ts';
import type { Ref } from './client.ts';
import { waitUntil } from './wait-until.ts';
import type { World } from './world.ts';

export interface WebhookOptions {
  kind?: 'ValidatingWebhookConfiguration' | 'MutatingWebhookConfiguration';
  /** Of the configuration, where there are several. */
  name?: string;
  operations: readonly string[];
  apiGroup?: string;
  apiGroups?: readonly string[];
  apiVersions?: readonly string[];
  resource: string;
  scope?: 'Cluster' | 'Namespaced';
  /** CEL; it sees nothing else. */
  condition?: string;
  /** The only namespace that it sees; unless given, the one under test. */
  sees?: string;
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
  name = 'guard',
): Ref {
  return { apiVersion: API, kind, name: world.name(name) };
}

/** A webhook that only sees the namespace under test: others are not disturbed. */
export async function createWebhook(world: World, options: WebhookOptions): Promise<void> {
  const { operations, apiGroup = '', apiVersions = ['*'], resource, clientConfig } = options;
  const { kind, name } = webhookRef(world, options.kind, options.name);
  const { scope } = options;
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
            apiGroups: [...(options.apiGroups ?? [apiGroup])],
            apiVersions: [...apiVersions],
            resources: [resource],
            ...(scope === undefined ? {} : { scope }),
          },
        ],
        namespaceSelector: {
          matchLabels: { 'kubernetes.io/metadata.name': options.sees ?? world.namespace },
        },
        ...(options.condition === undefined
          ? {}
          : { matchConditions: [{ name: 'concerns-us', expression: options.condition }] }),
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

/** As before Kubernetes 1.22: today's API takes only webhooks that can be asked about dry runs. */
export async function refusesDryRuns(world: World): Promise<void> {
  const ref = webhookRef(world);
  const found = await world.client.get(ref);
  const [webhook] = found['webhooks'] as [JsonObject];
  const { resourceVersion: _, ...metadata } = found.metadata;
  const stored = { ...found, metadata, webhooks: [{ ...webhook, sideEffects: 'Some' }] };
  await world.storePastApi(`validatingwebhookconfigurations/${ref.name}`, JSON.stringify(stored));
}

/** Admission configuration takes a moment to be followed: asks for a dry run until it is refused. */
export async function refusesDeletion(world: World, ref: Ref, options = ''): Promise<void> {
  const path = `${await world.client.pathOf(ref)}?dryRun=All${options}`;
  await world.client.waitFor(ref, 'is there', Boolean);
  await waitForRefusal(world, 'DELETE', path);
}

/** The same for updates. */
export async function refusesUpdate(world: World, ref: Ref, subresource?: string): Promise<void> {
  const path = `${await world.client.pathOf(ref, subresource)}?dryRun=All`;
  await waitForRefusal(world, 'PATCH', path);
}

/** The same for the last step of the deletion of the namespace. */
export async function refusesEnd(world: World): Promise<void> {
  const path = await world.client.pathOf(world.namespaceRef, 'finalize');
  await waitUntil(`PUT ${path} to be refused`, async () => {
    const now = await world.client.get(world.namespaceRef);
    const { status } = await world.client.call('PUT', `${path}?dryRun=All`, now);
    return status >= 400 && status !== 404 && status !== 409;
  });
}

/** Waits until the namespace controller was refused the end of the namespace twice, where the server tells of it. */
export async function endIsRefused({ plane, namespace }: World): Promise<void> {
  if (plane === undefined) return;
  const user = 'system:serviceaccount:kube-system:namespace-controller';
  await waitUntil(`the end of ${namespace} to be refused`, async () => {
    const ends = (await writesSince(plane.auditLog, user, 0)).filter(
      ({ subresource, name, code }) =>
        subresource === 'finalize' && name === namespace && code >= 400,
    );
    return ends.length > 1;
  });
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

export interface PolicyOptions {
  name: string;
  operations: readonly string[];
  apiGroup: string;
  resource: string;
  /** CEL; what is not true is refused. */
  expression: string;
  message?: string;
  /** CEL; the policy looks at nothing else. */
  condition?: string;
  /** Named expressions that the others read. */
  variables?: readonly { name: string; expression: string }[];
  failurePolicy?: 'Fail' | 'Ignore';
  /** Its parameters are in this ConfigMap, without which it refuses everything. */
  params?: { namespace?: string; name: string };
}

export function policyRef(world: World, name: string): Ref {
  return { apiVersion: API, kind: 'ValidatingAdmissionPolicy', name: world.name(name) };
}

/** A ValidatingAdmissionPolicy and its binding, for the namespace under test. */
export async function createPolicy(world: World, options: PolicyOptions): Promise<void> {
  const { operations, apiGroup, resource, expression, message, condition, params } = options;
  const { failurePolicy = 'Fail', variables = [] } = options;
  const { apiVersion, kind, name } = policyRef(world, options.name);
  const rule = {
    operations: [...operations],
    apiGroups: [apiGroup],
    apiVersions: ['*'],
    resources: [resource],
  };
  await world.create({
    apiVersion,
    kind,
    metadata: { name },
    spec: {
      failurePolicy,
      variables: [...variables],
      ...(params === undefined ? {} : { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } }),
      matchConstraints: { resourceRules: [rule] },
      ...(condition === undefined
        ? {}
        : { matchConditions: [{ name: 'concerns-us', expression: condition }] }),
      validations: [{ expression, ...(message && { message }) }],
    },
  });
  await world.create({
    apiVersion,
    kind: `${kind}Binding`,
    metadata: { name },
    spec: {
      policyName: name,
      validationActions: ['Deny'],
      ...(params === undefined ? {} : { paramRef: { ...params, parameterNotFoundAction: 'Deny' } }),
      matchResources: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } },
      },
    },
  });
}
