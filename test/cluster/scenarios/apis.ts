import { byService, createWebhook, refusesDeletion, WEBHOOK, webhookRef } from '../admission.ts';
import {
  apiService,
  apiServiceRef,
  configMap,
  customObject,
  customType,
  deployment,
  pod,
  RBAC,
  service,
  typeRef,
} from '../objects.ts';
import type { Expectation, Scenario } from '../scenario.ts';
import {
  available,
  connect,
  EXTENSION_VERSION,
  type ExtensionApi,
  register,
  startExtensionApi,
} from '../servers/extension-api.ts';
import type { World } from '../world.ts';
import { CONTENT_FAILURE, DISCOVERY, ref, resourceType, statusSays, stuck } from './links.ts';
import { rule } from './operator.ts';

/** What holds the namespace is no object in it: an API, a webhook, or the namespace controller itself. */

const METRICS = 'metrics.example.com';
const LEDGER = 'ledger.example.com';
const WIDGETS = 'example.com';
const BACKEND = 'ledger-system';

const discoveryFails = (group: string) => (world: World) =>
  world.settled({ [DISCOVERY]: ['True', new RegExp(group.replaceAll('.', '\\.'))] });
const contentFails = (words: RegExp) => (world: World) =>
  world.settled({ [CONTENT_FAILURE]: ['True', words] });

const s7: Scenario = {
  id: 'S7',
  title: 'an APIService to a Service that does not exist; the namespace is empty',
  own: 'new',
  setUp: async (world) => {
    await world.createNamespace();
    await world.create(apiService(METRICS, 'v1beta1', { namespace: 'default', name: 'gone' }));
    await statusSays(world, apiServiceRef(METRICS, 'v1beta1'), 'is not available', '"False"');
  },
  settle: discoveryFails(METRICS),
  expect: () => ({
    ...stuck([
      {
        code: 'apiservice-unavailable',
        subject: apiServiceRef(METRICS, 'v1beta1'),
        says: [/ServiceNotFound|is not present|does not exist/],
      },
    ]),
    notInspected: [METRICS],
  }),
};

/** Registered and answering; what it does instead of its duty from then on is for `fault` to say. */
const extension =
  (more: Pick<ExtensionApi, 'entries' | 'fault'>): Scenario['setUp'] =>
  async (world) => {
    const api: ExtensionApi = { group: LEDGER, namespace: BACKEND, ...more };
    await world.createNamespace();
    await world.createNamespace(BACKEND);
    const server = await startExtensionApi(world, api);
    await connect(world, api, server);
    await register(world, api, server);
    await available(world, api.group);
  };

const s11: Scenario = {
  id: 'S11',
  title: 'the APIService is Available, but its backend answers 503 to /apis',
  own: 'new',
  // The availability check asks for /apis/<group>/<version>, aggregated discovery for /apis.
  setUp: extension({
    fault: (_, path) => (path === '/apis' ? { status: 503, message: 'warming up' } : undefined),
  }),
  settle: discoveryFails(LEDGER),
  expect: () => ({
    ...stuck([
      {
        code: 'discovery-failed',
        subject: apiServiceRef(LEDGER, EXTENSION_VERSION),
        says: [new RegExp(BACKEND)],
      },
    ]),
    notInspected: [LEDGER],
  }),
};

const READ_ONLY = { status: 500, message: 'ledger database is read-only' };

const seed4d500: Scenario = {
  id: 'SEED-4d-500',
  title: 'an extension API lists its objects and answers the collection DELETE with 500',
  own: 'new',
  setUp: extension({
    entries: ['january', 'february'],
    fault: (method) => (method === 'DELETE' ? READ_ONLY : undefined),
  }),
  settle: contentFails(/ledger database is read-only/),
  expect: () => ({
    ...stuck([
      {
        code: 'api-failing',
        subject: resourceType(`${LEDGER}/${EXTENSION_VERSION}`, `entries.${LEDGER}`),
        says: [/ledger database is read-only/],
      },
    ]),
    queued: { kinds: ['Entry'], exactly: true },
  }),
  beyondCommands: 'whoever runs the extension API has to repair it',
};

/** Objects of the type are stored in its old version, and nobody can convert them. */
const s13: Scenario = {
  id: 'S13',
  title: 'the conversion webhook of a type had its Service in the namespace',
  own: 'new',
  setUp: async (world) => {
    const { client, namespace } = world;
    await world.createNamespace();
    await world.create(service(namespace, 'conv', { selector: { app: 'conv' } }));
    await world.createType(customType({ group: WIDGETS, kind: 'Widget', versions: ['v1'] }));
    await world.create(customObject(`${WIDGETS}/v1`, 'Widget', namespace, 'db'));
    const conversion = {
      strategy: 'Webhook',
      webhook: {
        clientConfig: { service: { namespace, name: 'conv', path: '/convert' } },
        conversionReviewVersions: ['v1'],
      },
    };
    const versions = ['v1', 'v2'];
    const { spec = null } = customType({ group: WIDGETS, kind: 'Widget', versions, conversion });
    await client.patch(typeRef(WIDGETS, 'Widget'), { spec });
    // Not 500 but 429, "storage is (re)initializing": the watch cache of the type cannot be filled.
    await world.answers(
      `/apis/${WIDGETS}/v2/namespaces/${namespace}/widgets`,
      (status) => status >= 400 && status !== 404,
    );
  },
  settle: contentFails(/service "conv" not found/),
  expect: (world) => ({
    ...stuck([
      {
        code: 'conversion-webhook-failing',
        subject: typeRef(WIDGETS, 'Widget'),
        says: [/conv\b/, new RegExp(world.namespace)],
      },
    ]),
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
  settle: contentFails(/unable to transform key/),
  expect: () => ({
    ...stuck([
      { code: 'storage-unreadable', subject: resourceType('v1', 'configmaps'), says: [/broken/] },
    ]),
    notInspected: ['configmaps'],
  }),
  beyondCommands: 'the API server needs its key, or a feature gate',
};

/** Nobody processes the namespace: its objects have not even been asked to go. */
const s44: Scenario = {
  id: 'S44',
  title: 'kube-controller-manager is stopped',
  own: 'new',
  setUp: async (world) => {
    await world.createNamespace();
    await world.createAll([configMap(world.namespace, 'settings'), pod(world.namespace, 'web')]);
    await world.plane?.controllerManager.stop();
  },
  settle: (world) => world.leaderLeaseExpires(),
  expect: (world) => ({
    ...stuck([{ code: 'namespace-controller-inactive', subject: world.namespaceRef }]),
    queued: { kinds: ['ConfigMap', 'Pod', 'ServiceAccount'], exactly: true },
  }),
  beyondCommands: 'kube-controller-manager has to be started where it runs',
};

/** The namespace controller is there, but its rights were cut: seen after hand-made RBAC hardening. */
const deletionForbidden: Scenario = {
  id: 'deletion-forbidden',
  title: 'the namespace controller may not delete Leases',
  own: 'new',
  setUp: async (world) => {
    await world.createNamespace();
    const groups = ['', 'apps', 'autoscaling', 'batch', 'discovery.k8s.io', 'events.k8s.io'];
    const more = ['networking.k8s.io', 'policy', RBAC, 'resource.k8s.io', 'storage.k8s.io'];
    const verbs = ['delete', 'get', 'list', 'update', 'watch'];
    await world.client.patch(
      {
        apiVersion: `${RBAC}/v1`,
        kind: 'ClusterRole',
        name: 'system:controller:namespace-controller',
      },
      {
        rules: [
          rule('', ['namespaces', 'namespaces/finalize', 'namespaces/status'], verbs),
          {
            apiGroups: [...groups, ...more],
            resources: ['*'],
            verbs: ['delete', 'deletecollection', 'get', 'list'],
          },
        ],
      },
    );
  },
  settle: contentFails(/leases.* is forbidden/),
  beyondCommands: 'a restart of kube-apiserver restores what was cut',
  expect: () =>
    stuck([
      {
        code: 'deletion-forbidden',
        subject: resourceType('coordination.k8s.io/v1', 'leases.coordination.k8s.io'),
        says: [/namespace-controller/],
      },
    ]),
};

/** A webhook on the deletion of a type with one object: admission of a collection delete is only asked about objects. */
async function guardLedger(world: World, hooks: string): Promise<void> {
  await world.createType(customType({ group: LEDGER, kind: 'Ledger' }));
  await world.create(customObject(`${LEDGER}/v1`, 'Ledger', world.namespace, 'books'));
  await createWebhook(world, {
    operations: ['DELETE'],
    apiGroup: LEDGER,
    resource: 'ledgers',
    clientConfig: byService(hooks, 'guard'),
  });
  await refusesDeletion(world, ref(`${LEDGER}/v1`, 'Ledger', world.namespace, 'books'));
}

const guardFails = (because: RegExp): Expectation => ({
  ...stuck([
    {
      code: 'admission-webhook-failing',
      subject: webhookRef(),
      says: [new RegExp(WEBHOOK), because],
    },
  ]),
  queued: { kinds: ['Ledger'], exactly: true },
});

const s15: Scenario = {
  id: 'S15',
  title: 'a webhook on DELETE whose Service was in the namespace',
  setUp: async (world) => {
    await world.createNamespace();
    await world.create(service(world.namespace, 'guard'));
    await guardLedger(world, world.namespace);
  },
  settle: contentFails(/service "guard" not found/),
  expect: () => ({
    ...guardFails(/not found|does not exist|gone|missing/),
    deadlock: true,
  }),
};

const s19: Scenario = {
  id: 'S19',
  title: 'a webhook whose Service is there, without a ready endpoint',
  setUp: async (world) => {
    for (const name of [world.namespace, 'hooks', 'another']) await world.createNamespace(name);
    await world.create(service('hooks', 'guard', { selector: { app: 'guard' } }));
    // A Service selects no pods of another namespace.
    await world.create(deployment('another', 'guard', { replicas: 0 }));
    await guardLedger(world, 'hooks');
  },
  // Refused where kube-proxy answers for it.
  settle: contentFails(/no endpoints available for service "guard"|connection refused/),
  expect: () => guardFails(/no ready endpoint/),
};

export const apis = [s7, s11, seed4d500, s13, storageUnreadable, s44, deletionForbidden, s15, s19];
