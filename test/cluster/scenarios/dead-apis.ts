import { KUBESPHERE } from '../../stub/kubesphere.ts';
import { apiService, apiServiceRef } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { DISCOVERY, namespaceFinalizer, ownerMissing, statusSays, stuck } from './links.ts';
import { createKubeSphereNamespace } from './namespace-finalizers.ts';
import { advisesNot } from './situation.ts';
export const METRICS = 'metrics.k8s.io';

const unavailable = (group: string, version: string, reason: RegExp): Link => ({
  code: 'apiservice-unavailable',
  subject: apiServiceRef(group, version),
  says: [reason],
});

async function registerDead(
  world: World,
  group: string,
  backend: { namespace: string; name: string },
): Promise<void> {
  await world.create(apiService(group, 'v1beta1', backend));
  await statusSays(world, apiServiceRef(group, 'v1beta1'), 'is not available', '"False"');
}

export function settledByDiscovery(group: string) {
  return (world: World): Promise<unknown> =>
    world.settled({ [DISCOVERY]: ['True', new RegExp(group.replaceAll('.', '\\.'))] });
}

function deadApi(
  id: string,
  title: string,
  group: string,
  backend: { namespace: string; name: string },
): Scenario {
  return {
    id,
    title,
    own: 'new',
    setUp: async (world) => {
      await world.createNamespace();
      await registerDead(world, group, backend);
    },
    settle: settledByDiscovery(group),
    expect: () => ({
      ...stuck([unavailable(group, 'v1beta1', /ServiceNotFound|is not present|does not exist/)]),
      scope: 'cluster',
      notInspected: [group],
    }),
  };
}

const s7 = deadApi(
  'S7',
  'an APIService to a Service that does not exist; the namespace is empty',
  'metrics.example.com',
  { namespace: 'default', name: 'gone' },
);

const adapter = deadApi('SEED-1d', 'metrics.k8s.io of an uninstalled prometheus-adapter', METRICS, {
  namespace: 'monitoring',
  name: 'prometheus-adapter',
});
const seed1d: Scenario = {
  ...adapter,
  expect: () => ({
    ...stuck([
      {
        code: 'apiservice-unavailable',
        subject: apiServiceRef(METRICS, 'v1beta1'),
        says: [/whose namespace does not exist/],
        advises: [/^Delete APIService/m],
      },
    ]),
    scope: 'cluster',
    notInspected: [METRICS],
    // Nothing is left in a namespace that does not exist.
    also: advisesNot(/get all|Install the software behind/),
  }),
};

const seed2c: Scenario = {
  id: 'SEED-2c',
  title: 'a finalizer of KubeSphere on the namespace, and metrics.k8s.io down',
  namespace: 'kubesphere-system',
  own: 'new',
  setUp: async (world) => {
    await createKubeSphereNamespace(world);
    await registerDead(world, METRICS, { namespace: 'kube-system', name: 'metrics-server' });
  },
  settle: settledByDiscovery(METRICS),
  expect: (world) => ({
    ...stuck(
      [unavailable(METRICS, 'v1beta1', /ServiceNotFound|is not present|does not exist/)],
      [
        namespaceFinalizer(world.namespaceRef, KUBESPHERE),
        ownerMissing(world.namespaceRef, KUBESPHERE),
      ],
    ),
    notInspected: [METRICS],
  }),
};

/** The dead group could not be looked into, so emptiness cannot be known: that must be accepted. */
const seed2d: Scenario = {
  ...seed2c,
  id: 'SEED-2d',
  title: 'force namespace takes both entries off, one by one; forced only after a 404',
  identity: 'teardown-force',
  inputs: ({ namespace }) => ({
    'force-finalize': 'namespace',
    'force-namespaces': `${namespace.slice(0, 8)}*`,
    'force-finalizers': KUBESPHERE,
    'force-orphans': 'accept',
  }),
  expect: async (world) => ({
    ...(await seed2c.expect(world)),
    outcome: 'forced',
    mutations: [
      `patch namespaces/${world.namespace}`,
      `update namespaces/finalize/${world.namespace}`,
    ],
    also: async () => {
      if (await world.client.find(world.namespaceRef)) throw new Error('it is still there');
    },
  }),
};

export const deadApis = [s7, seed1d, seed2c, seed2d];
