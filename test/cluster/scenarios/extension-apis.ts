import { apiServiceRef } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import {
  available,
  connect,
  EXTENSION_VERSION,
  type ExtensionApi,
  type Fault,
  register,
  startExtensionApi,
} from '../servers/extension-api.ts';
import type { World } from '../world.ts';
import { settledByDiscovery } from './dead-apis.ts';
import { CONTENT_FAILURE, resourceType, stuck } from './links.ts';

/** Extension APIs with a live backend that does not do its duty. */

const GROUP = 'ledger.example.com';
const BACKEND = 'ledger-system';
const ENTRIES = resourceType(`${GROUP}/${EXTENSION_VERSION}`, `entries.${GROUP}`);

/** Registered and answering; what it does from then on is for `fault` to say. */
async function installExtension(world: World, api: ExtensionApi): Promise<void> {
  await world.createNamespace();
  await world.createNamespace(api.namespace);
  const server = await startExtensionApi(world, api);
  await connect(world, api, server);
  await register(world, api, server);
  await available(world, api.group);
}

function staleDiscovery(id: string, title: string, fault: Fault): Scenario {
  return {
    id,
    title,
    own: 'new',
    setUp: (world) =>
      installExtension(world, {
        group: GROUP,
        namespace: BACKEND,
        // The availability check asks for /apis/<group>/<version>, aggregated discovery for /apis.
        fault: (_method, path) => (path === '/apis' ? fault : undefined),
      }),
    settle: settledByDiscovery(GROUP),
    expect: () => ({
      ...stuck([
        {
          code: 'discovery-failed',
          subject: apiServiceRef(GROUP, EXTENSION_VERSION),
          says: [new RegExp(BACKEND)],
        },
      ]),
      scope: 'cluster',
      notInspected: [GROUP],
    }),
  };
}

const s11 = staleDiscovery(
  'S11',
  'the APIService is Available, but its backend answers 503 to /apis',
  { status: 503, message: 'warming up' },
);

/** Lists its objects like any API, and refuses to delete them. */
function refusesCollectionDelete(
  id: string,
  title: string,
  fault: { status: number; message: string },
  link: Link,
): Scenario {
  return {
    id,
    title,
    own: 'new',
    setUp: (world) =>
      installExtension(world, {
        group: GROUP,
        namespace: BACKEND,
        entries: ['january', 'february'],
        fault: (method) => (method === 'DELETE' ? fault : undefined),
      }),
    settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', new RegExp(fault.message)] }),
    expect: () => ({
      ...stuck([link]),
      queued: { kinds: ['Entry'], exactly: true },
    }),
    beyondCommands: 'whoever runs the extension API has to repair it',
  };
}

const seed4d500 = refusesCollectionDelete(
  'SEED-4d-500',
  'an extension API lists its objects and answers the collection DELETE with 500',
  { status: 500, message: 'ledger database is read-only' },
  { code: 'api-failing', subject: ENTRIES, says: [/ledger database is read-only/] },
);

/** The backend comes back while the gate waits: nobody has to touch the namespace. */
const seed3e: Scenario = {
  id: 'SEED-3e',
  title: 'the backend of an API comes back during the wait; the namespace goes by itself',
  own: 'new',
  setUp: async (world) => {
    const api: ExtensionApi = { group: GROUP, namespace: BACKEND };
    await world.createNamespace();
    await world.createNamespace(BACKEND);
    const server = await startExtensionApi(world, api);
    await register(world, api, server);
    await available(world, GROUP, 'False');
    comeBack.set(world, () => connect(world, api, server));
  },
  settle: settledByDiscovery(GROUP),
  meanwhile: async (world, gate) => {
    await gate.says(/ledger/); // it has seen what is wrong
    await comeBack.get(world)?.();
  },
  inputs: { timeout: '180s', 'fail-fast': 'true' },
  expect: () => ({
    outcome: 'deleted',
    also: ({ namespace }) => {
      const told = namespace.timeline.map(({ event }) => event).join('\n');
      if (!/ledger/.test(told)) throw new Error(`the timeline does not tell of it:\n${told}`);
    },
  }),
};
const comeBack = new WeakMap<World, () => Promise<void>>();

export const extensionApis = [s11, seed3e, seed4d500];
