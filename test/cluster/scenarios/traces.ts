import type { JsonObject } from '../../../src/base/json.ts';
import { type Ref, refOf } from '../client.ts';
import { customType, service } from '../objects.ts';
import { startStandIn } from '../servers/stand-in.ts';
import { startWebhookServer } from '../servers/webhook.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import type { Operator } from './operator.ts';

/** What operators leave in a cluster, by which one can tell whose a finalizer is. */

/** As client-go writes times that need microseconds. */
function microTime(agoSeconds: number): string {
  return new Date(Date.now() - agoSeconds * 1_000).toISOString().replace('Z', '000Z');
}

export interface LeaseOptions {
  namespace: string;
  name: string;
  holder: string;
  /** Renewed last so long ago and never again; unless given, its holder renews it. */
  silentForSeconds?: number;
  /** How late the clock is by which its holder renews it. */
  lateBySeconds?: number;
  /** It renews it once, and no more. */
  isOnce?: boolean;
  /** Its field manager. */
  manager?: string;
}

export async function createLease(world: World, options: LeaseOptions): Promise<void> {
  const { namespace, name, holder, silentForSeconds, lateBySeconds = 0, isOnce } = options;
  const made = await world.create(
    {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace, name },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: 15,
        acquireTime: microTime((silentForSeconds ?? 0) + 3_600),
        renewTime: microTime(silentForSeconds ?? lateBySeconds),
      },
    },
    { fieldManager: options.manager ?? 'Go-http-client' },
  );
  if (silentForSeconds !== undefined) {
    // Nor has anybody written it just now, as far as the server tells.
    await world.client.patch(refOf(made), { metadata: { managedFields: [{}] } });
    return;
  }
  if (isOnce) return;
  const renewal = setInterval(() => {
    void world.client
      .patch(refOf(made), { spec: { renewTime: microTime(lateBySeconds) } })
      .catch(() => undefined); // the server restarts, or the scenario has ended
  }, 3_000);
  world.atEnd(() => clearInterval(renewal));
}

export interface EventOptions {
  about: Ref;
  /** Name of the controller. */
  component: string;
  /** Its pod. */
  instance: string;
  note: string;
  reason?: string;
  type?: 'Warning' | 'Normal';
  agoSeconds?: number;
}

/** As recorders of today write them. */
export async function createEvent(world: World, options: EventOptions): Promise<Ref> {
  const { about, component, instance, note, agoSeconds = 0 } = options;
  const { metadata } = await world.client.get(about);
  const event = await world.create({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace: about.namespace ?? 'default', name: `${about.name}.${component}` },
    regarding: { ...about, uid: metadata['uid'] ?? null },
    reportingController: component,
    reportingInstance: instance,
    action: 'Reconcile',
    reason: options.reason ?? 'Reconciling',
    type: options.type ?? 'Warning',
    note,
    eventTime: microTime(agoSeconds),
  });
  return refOf(event);
}

/** What the Operator Lifecycle Manager knows of an operator. */
export async function createServiceVersion(world: World, operator: Operator): Promise<void> {
  const { group, version, kind, namespace, name } = operator;
  const olm = 'operators.coreos.com';
  await world.createType(
    customType({ group: olm, kind: 'ClusterServiceVersion', versions: ['v1alpha1'] }),
  );
  await world.create({
    apiVersion: `${olm}/v1alpha1`,
    kind: 'ClusterServiceVersion',
    metadata: { namespace, name: `${kind.toLowerCase()}s.v1.2.0` },
    spec: {
      displayName: `${kind}s`,
      version: '1.2.0',
      customresourcedefinitions: {
        owned: [{ kind, name: `${kind.toLowerCase()}s.${group}`, version }],
      },
      install: { strategy: 'deployment', spec: { deployments: [{ name }] } },
    },
  });
}

/** As Helm marks what a release brought. */
export function helm(release: string, namespace: string): JsonObject {
  return {
    'meta.helm.sh/release-name': release,
    'meta.helm.sh/release-namespace': namespace,
  };
}

/** A webhook that answers, behind a Service whose pods run on a node of their own. */
export async function serveHook(
  world: World,
  { namespace, name }: { namespace: string; name: string },
  node: string,
  judge: Parameters<typeof startWebhookServer>[2] = () => 'allow',
) {
  const server = await startWebhookServer(world, [`${name}.${namespace}.svc`], judge);
  await world.create(
    service(namespace, name, {
      selector: { app: name },
      ports: [{ port: 443, targetPort: server.port, protocol: 'TCP' }],
    }),
  );
  await startStandIn(world, {
    node: world.name(node),
    namespaces: [namespace],
    podIP: server.address,
  });
  return {
    clientConfig: { service: { namespace, name, path: '/validate' }, caBundle: server.caBundle },
    hasEndpoints: () =>
      waitUntil('the webhook to have endpoints', async () => {
        const slices = await world.client.list('discovery.k8s.io/v1', 'EndpointSlice', namespace);
        return JSON.stringify(slices).includes(server.address);
      }),
  };
}
