import type { IncomingMessage, ServerResponse } from 'node:http';
import { arrayAt, type JsonObject, stringAt } from '../../../src/base/json.ts';
import { apiService, apiServiceRef, service } from '../objects.ts';
import { waitUntil } from '../wait-until.ts';
import { conditionsOf, type World } from '../world.ts';
import { type HttpsServer, startHttpsServer } from './https.ts';

/** What it does instead of its duty. */
interface Fault {
  status: number;
  message: string;
}

export interface ExtensionApi {
  group: string;
  /** Where its Service is; created by the caller. */
  namespace: string;
  /** Objects of its one type, `entries`, in every namespace. */
  entries?: string[];
  /** Its entries go when they are deleted; unless given, they stay. */
  deletes?: boolean;
  /** Undefined: it does its duty. */
  fault?: ((method: string, path: string) => Fault | undefined) | undefined;
}

export const EXTENSION_VERSION = 'v1';
const SERVICE = 'extension-api';

/** A real extension API server behind an APIService, as far as the aggregator can tell. */
export async function startExtensionApi(world: World, api: ExtensionApi): Promise<HttpsServer> {
  const { namespace } = api;
  const server = await startHttpsServer(world, [`${SERVICE}.${namespace}.svc`], (request, answer) =>
    respond(api, request, answer),
  );
  await world.create(service(namespace, SERVICE));
  return server;
}

/** Without a selector nobody else writes its endpoints. */
export async function connect(
  world: World,
  { namespace, name = SERVICE }: { namespace: string; name?: string },
  server: HttpsServer,
): Promise<void> {
  await world.create({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      namespace,
      name,
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: [server.address], conditions: { ready: true } }],
    ports: [{ port: server.port, protocol: 'TCP' }],
  });
  // Kubernetes before 1.34 looks at Endpoints.
  await world.create({
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {
      namespace,
      name,
      labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' },
    },
    subsets: [{ addresses: [{ ip: server.address }], ports: [{ port: server.port }] }],
  });
}

export async function register(
  world: World,
  api: ExtensionApi,
  server: HttpsServer,
): Promise<void> {
  await world.create(
    apiService(
      api.group,
      EXTENSION_VERSION,
      { namespace: api.namespace, name: SERVICE },
      { insecureSkipTLSVerify: false, caBundle: server.caBundle },
    ),
  );
}

export function available(world: World, group: string, status = 'True'): Promise<unknown> {
  return world.client.waitFor(
    apiServiceRef(group, EXTENSION_VERSION),
    `has Available=${status}`,
    (registration) =>
      conditionsOf(registration).some(
        (condition) => condition.type === 'Available' && condition.status === status,
      ),
  );
}

/** Available is not yet listed: aggregated discovery, from which the gate learns what there is, follows later. */
export function discovered(world: World, group: string): Promise<unknown> {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  return waitUntil(`${group} in aggregated discovery`, async () => {
    const { body } = await world.client.call('GET', '/apis', undefined, { accept });
    const found = arrayAt(body, 'items').find((one) => stringAt(one, 'metadata', 'name') === group);
    return arrayAt(found, 'versions').some(
      (version) =>
        stringAt(version, 'freshness') !== 'Stale' && arrayAt(version, 'resources').length > 0,
    );
  });
}

function respond(api: ExtensionApi, request: IncomingMessage, answer: ServerResponse): void {
  const path = new URL(request.url ?? '/', 'https://extension').pathname;
  const fault = api.fault?.(request.method ?? 'GET', path);
  const [status, body] = fault
    ? [fault.status, failure(fault.status, fault.message)]
    : duty(api, request.method ?? 'GET', path);
  answer.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function duty(
  { group, entries = [], deletes = false }: ExtensionApi,
  method: string,
  path: string,
): [status: number, body: JsonObject] {
  const groupVersion = `${group}/${EXTENSION_VERSION}`;
  const base = `/apis/${groupVersion}`;
  if (path === base) return [200, resourceList(groupVersion)];
  const collection = new RegExp(`^${base}(?:/namespaces/([^/]+))?/entries(?:/([^/]+))?$`).exec(
    path,
  );
  const name = collection?.[2];
  if (!collection || (name !== undefined && !entries.includes(name))) {
    return [404, failure(404, 'the server could not find the requested resource')];
  }
  if (method === 'DELETE') {
    if (deletes)
      entries.splice(0, entries.length, ...entries.filter((one) => name && one !== name));
    return [200, { apiVersion: 'v1', kind: 'Status', status: 'Success' }];
  }
  const items = entries.map((name) => ({
    metadata: { name, namespace: collection[1] ?? 'default', uid: `uid-of-${name}` },
  }));
  return [
    200,
    { apiVersion: groupVersion, kind: 'EntryList', metadata: { resourceVersion: '1' }, items },
  ];
}

const resourceList = (groupVersion: string): JsonObject => ({
  ...{ apiVersion: 'v1', kind: 'APIResourceList', groupVersion },
  resources: [
    {
      ...{ name: 'entries', singularName: 'entry', namespaced: true, kind: 'Entry' },
      verbs: ['get', 'list', 'delete', 'deletecollection'],
    },
  ],
});

function failure(code: number, message: string): JsonObject {
  const reason = { 404: 'NotFound', 503: 'ServiceUnavailable' }[code] ?? 'InternalError';
  return { apiVersion: 'v1', kind: 'Status', status: 'Failure', code, message, reason };
}
