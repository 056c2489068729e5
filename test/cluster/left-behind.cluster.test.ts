import { afterAll, describe, expect, test } from 'vitest';
import { type JsonObject, stringAt } from '../../src/base/json.ts';
import type { NamespaceResult } from '../../src/model/result.ts';
import type { Ref } from './client.ts';
import { Clusters, foreignKubeconfig } from './clusters.ts';
import { gate } from './foresight.ts';
import { accountSubject, customType, grant, pluralOf, volume, volumeClaim } from './objects.ts';
import { laterSecond } from './wait-until.ts';
import { inNamespace, namespaceRef, type World } from './world.ts';

const clusters = new Clusters();

describe.skipIf(foreignKubeconfig() !== undefined).concurrent('what stayed behind', () => {
  afterAll(() => clusters.stop());

  test('is what points into the namespace, and nothing that only looks so', {
    tags: 'core',
  }, async () => {
    await within('left', async (world) => {
      const { namespace } = world;
      const before = await gate(world, { forecast: 'true' });
      expect(before.result).toMatchObject({ outcome: 'clear', leftBehind: [] });
      const wanted = await plant(world, namespace);
      await plant(world, 'other');
      await world.create(volumeOf('old', { namespace, name: 'x' }, 'Delete'));
      const foreseen = await gate(world, { forecast: 'true' });
      expect(foreseen.result.leftBehindUnread).toEqual([]);
      expect(namesOf(foreseen.result)).toEqual(wanted);
      const { result, text } = await gate(world, { delete: 'true', 'fail-on-left-behind': 'true' });
      expect(result).toMatchObject({ outcome: 'deleted', verdict: 'fail' });
      expect(namesOf(result)).toEqual(expect.arrayContaining(wanted));
      expect(result.leftBehind?.[0]?.breaksOthers).toBe(true);
      expect(text).toContain('Left behind');
    });
  });

  test('is every volume of its claims, in whatever phase, and none of an earlier namespace', {
    tags: 'core',
  }, async () => {
    await within('volumes', async (world) => {
      const { namespace } = world;
      const bind = (claim: string, options: Bound) => bound(world, claim, options);
      const first = await bind('data', { policy: 'Retain' });
      await world.deleteNamespace();
      await world.gone(namespaceRef(namespace));
      await phaseOf(world, first, 'Released');
      await laterSecond();
      await world.createNamespace();
      const again = await bind('data', { policy: 'Retain', suffix: 'again' });
      const early = await bind('cache', { policy: 'Retain' });
      await world.client.delete(claimRef(namespace, 'cache'));
      await phaseOf(world, early, 'Released');
      const late = await bind('cache', { policy: 'Retain', suffix: 'again' });
      // No plug-in of Kubernetes can remove such a volume.
      const failing = await bind('broken', { policy: 'Delete', source: NFS });
      // Its driver is gone.
      const forgotten = await bind('forgotten', { policy: 'Delete', driver: 'csi.example.com' });
      const foreseen = await gate(world, { forecast: 'true' });
      expect(namesOf(foreseen.result)).toEqual(
        [again, early, late].map((name) => `PersistentVolume ${name}`).sort(),
      );
      const { result } = await gate(world, { delete: 'true' });
      expect(result.outcome).toBe('deleted');
      expect(namesOf(result)).toEqual(
        [again, early, late, failing, forgotten].map((name) => `PersistentVolume ${name}`).sort(),
      );
      const why = (volume: string): string | undefined =>
        result.leftBehind?.find(({ name }) => name === volume)?.why;
      expect(why(again)).toBe(
        `its spec.claimRef names PersistentVolumeClaim ${namespace}/data (Released, reclaim policy Retain): the volume, and what is on it, still exist`,
      );
      expect(why(failing)).toMatch(/\(Failed: .*plugin.*, reclaim policy Delete\): the volume/);
      expect(why(forgotten)).toContain('it should be deleted automatically, and is still there');
    });
  });
});

function within(name: string, work: (world: World) => Promise<void>): Promise<void> {
  return clusters.use((cluster) => inNamespace({ ...cluster, namespace: `left-${name}` }, work));
}

function namesOf({ leftBehind = [] }: NamespaceResult): string[] {
  return leftBehind.map(({ kind, name }) => `${kind} ${name}`).sort();
}

function volumeOf(name: string, claimed: JsonObject, policy: string): JsonObject {
  const reference = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...claimed };
  return volume(name, reference, { persistentVolumeReclaimPolicy: policy });
}

const NFS = { nfs: { server: '192.0.2.1', path: '/' } };

interface Bound {
  policy: string;
  suffix?: string;
  driver?: string;
  source?: JsonObject;
}

/** A claim and its volume, bound to each other by kube-controller-manager; the name of the volume. */
async function bound(
  world: World,
  claim: string,
  { policy, suffix = '', driver, source }: Bound,
): Promise<string> {
  const { namespace } = world;
  const name = `${namespace}-${claim}${suffix}`;
  const made = volumeOf(name, { namespace, name: claim }, policy);
  const { csi, ...spec } = made['spec'] as JsonObject;
  const annotations = driver && { 'pv.kubernetes.io/provisioned-by': driver };
  await world.create({
    ...made,
    metadata: { name, ...(annotations && { annotations }) },
    spec: { ...spec, ...(source ?? { csi }) } as JsonObject,
  });
  await world.create(volumeClaim(namespace, claim, { volumeName: name }));
  await phaseOf(world, name, 'Bound');
  return name;
}

function claimRef(namespace: string, name: string): Ref {
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name };
}

function phaseOf(world: World, name: string, phase: string): Promise<unknown> {
  return world.client.waitFor(
    { apiVersion: 'v1', kind: 'PersistentVolume', name },
    `is ${phase}`,
    (found) => stringAt(found, 'status', 'phase') === phase,
  );
}

/** What points into a namespace, of every kind; says what of it has to be listed. */
async function plant(world: World, namespace: string): Promise<string[]> {
  const suffix = namespace;
  const group = `${suffix}.example.com`;
  const account = accountSubject(namespace, 'op');
  const elsewhere = accountSubject('default', 'op');
  await world.create(volumeOf(`kept-${suffix}`, { namespace, name: 'data' }, 'Retain'));
  const role = `role-${suffix}`;
  for (const [name, subjects] of Object.entries({
    alone: [account],
    shared: [elsewhere, account],
    others: [elsewhere],
  })) {
    await world.createAll(grant({ name: `${name}-${suffix}` }, subjects, role));
  }
  const inDefault = { namespace: 'default', name: `elsewhere-${suffix}` };
  await world.createAll(grant(inDefault, [account], role));
  await world.create({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: `hook-${suffix}` },
    webhooks: [
      {
        name: 'hook.example.com',
        clientConfig: { service: { namespace, name: 'hook' } },
        rules: [
          { apiGroups: [group], apiVersions: ['*'], operations: ['CREATE'], resources: ['*'] },
        ],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        failurePolicy: 'Fail',
      },
    ],
  });
  await world.createType(
    customType({
      group: `converted.${suffix}.example.com`,
      kind: 'Gear',
      versions: ['v1', 'v2'],
      conversion: {
        strategy: 'Webhook',
        webhook: {
          conversionReviewVersions: ['v1'],
          clientConfig: { service: { namespace, name: 'conversion' } },
        },
      },
    }),
  );
  return [
    `PersistentVolume kept-${suffix}`,
    `ClusterRoleBinding alone-${suffix}`,
    `ClusterRoleBinding shared-${suffix}`,
    `RoleBinding elsewhere-${suffix}`,
    `ValidatingWebhookConfiguration hook-${suffix}`,
    `CustomResourceDefinition ${pluralOf('Gear')}.converted.${group}`,
  ].sort();
}
