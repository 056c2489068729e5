import type { JsonObject } from '../../../src/base/json.ts';
import { refOf } from '../client.ts';
import type { World } from '../world.ts';

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
  /** Its field manager. */
  manager?: string;
}

export async function createLease(world: World, options: LeaseOptions): Promise<void> {
  const { namespace, name, holder, silentForSeconds } = options;
  const made = await world.create(
    {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace, name },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: 15,
        acquireTime: microTime((silentForSeconds ?? 0) + 3_600),
        renewTime: microTime(silentForSeconds ?? 0),
      },
    },
    { fieldManager: options.manager ?? 'Go-http-client' },
  );
  if (silentForSeconds !== undefined) {
    // Nor has anybody written it just now, as far as the server tells.
    await world.client.patch(refOf(made), { metadata: { managedFields: [{}] } });
    return;
  }
  const renewal = setInterval(() => {
    void world.client
      .patch(refOf(made), { spec: { renewTime: microTime(0) } })
      .catch(() => undefined); // the server restarts, or the scenario has ended
  }, 3_000);
  world.atEnd(() => clearInterval(renewal));
}

/** As Helm marks what a release brought. */
export function helm(release: string, namespace: string): JsonObject {
  return {
    'meta.helm.sh/release-name': release,
    'meta.helm.sh/release-namespace': namespace,
  };
}
