import { customObject, customType, service, typeRef } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { CONTENT_FAILURE, resourceType, stuck } from './links.ts';

/** Types of which some object cannot be read, so that none can be listed. */

/** A type of two versions; its objects are stored in the old one, and nobody can convert them. */
const WIDGETS = 'example.com';

export async function createUnconvertible(
  world: World,
  service: { namespace: string; name: string },
  namespace: string,
): Promise<void> {
  const { client } = world;
  await world.createType(customType({ group: WIDGETS, kind: 'Widget', versions: ['v1'] }));
  await world.create(customObject(`${WIDGETS}/v1`, 'Widget', namespace, 'db'));
  const conversion = {
    strategy: 'Webhook',
    webhook: {
      clientConfig: { service: { ...service, path: '/convert' } },
      conversionReviewVersions: ['v1'],
    },
  };
  const next = customType({ group: WIDGETS, kind: 'Widget', versions: ['v1', 'v2'], conversion });
  await client.patch(typeRef(WIDGETS, 'Widget'), { spec: next['spec'] ?? null });
  const reads = `/apis/${WIDGETS}/v2/namespaces/${namespace}/widgets`;
  // Not 500 but 429, "storage is (re)initializing": the watch cache of the type cannot be filled.
  await world.answers(reads, (status) => status >= 400 && status !== 404);
}

function unconvertible(words: RegExp[]): Link {
  return {
    code: 'conversion-webhook-failing',
    subject: typeRef(WIDGETS, 'Widget'),
    says: words,
  };
}

const s13: Scenario = {
  id: 'S13',
  title: 'the conversion webhook of a type had its Service in the namespace',
  own: 'new',
  setUp: async (world) => {
    const { namespace } = world;
    await world.createNamespace();
    await world.create(service(namespace, 'conv', { selector: { app: 'conv' } }));
    await createUnconvertible(world, { namespace, name: 'conv' }, namespace);
  },
  settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /service "conv" not found/] }),
  expect: (world) => ({
    ...stuck([unconvertible([/conv\b/, new RegExp(world.namespace)])]),
    deadlock: true,
    notInspected: [`widgets.${WIDGETS}`],
  }),
};

/** Encrypted with a key that is gone. Only etcd can show it: the API has no way to make one. */
const storageUnreadable: Scenario = {
  id: 'storage-unreadable',
  title: 'a ConfigMap that the API server cannot decrypt',
  own: 'new',
  versions: ['1.36.3'], // 1.32.2 passes over what it cannot decode
  setUp: async (world) => {
    await world.createNamespace();
    const key = `configmaps/${world.namespace}/broken`;
    await world.storePastApi(key, 'k8s:enc:aescbc:v1:lost:garbage');
  },
  settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /unable to transform key/] }),
  expect: () => ({
    ...stuck([
      { code: 'storage-unreadable', subject: resourceType('v1', 'configmaps'), says: [/broken/] },
    ]),
    notInspected: ['configmaps'],
  }),
  beyondCommands: 'the API server needs its key, or a feature gate',
};

export const unreadableTypes = [s13, storageUnreadable];
