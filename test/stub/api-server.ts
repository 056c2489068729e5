import { writeFile } from 'node:fs/promises';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Json, JsonObject } from '../../src/base/json.ts';
import { base64, createAuthority, issue } from './certificates.ts';
import { kubeconfigText } from './kubeconfig-text.ts';
import { NotSupported, RecordedCluster, type Route, selection } from './recorded-cluster.ts';
import type { Recording } from './recording.ts';
import { statusObject } from './status-object.ts';

export interface RecordedRequest {
  method: string;
  /** With the query. */
  path: string;
  /** The feature that was asked for and that the stub does not have (answered with 501). */
  notSupported?: string;
}

export interface ApiServerOptions {
  recording: Recording;
  /** Its holder may do everything; nobody else may do anything. */
  token?: string;
  /** Serves https with its own certificate authority, which the kubeconfig contains. */
  tls?: boolean;
}

export interface ApiServer {
  readonly url: string;
  /** In the order of their arrival. */
  readonly requests: RecordedRequest[];
  /** Writes a kubeconfig for the holder of the token; returns its path. */
  kubeconfig(path: string): Promise<string>;
  /** Changes the served cluster now; watchers are told. */
  mutate<T>(change: (cluster: RecordedCluster) => T): T;
  close(): Promise<void>;
}

export const ADMIN_TOKEN = 'token-of-the-cluster-admin';

/**
 * Serves a recorded cluster over HTTP on loopback, in the words of the real API server as far as the gate meets them.
 * It accepts dry runs and changes nothing. Everything else is answered with 501 and noted.
 *
 * Its clock (the `Date` header) goes on from the time of the recording, so that deletionTimestamps
 * and Leases are as old as they were.
 */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { recording, token = ADMIN_TOKEN } = options;
  const cluster = new RecordedCluster(recording);
  const startedAt = Date.now();
  const recordedAt = Date.parse(recording.recordedAt);
  const requests: RecordedRequest[] = [];
  const authority = options.tls === true ? await createAuthority('cluster') : undefined;
  const server = authority ? createHttpsServer(await issue(authority)) : createHttpServer();
  server.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    const { method = 'GET', url = '/', headers } = request;
    const record: RecordedRequest = { method, path: url };
    requests.push(record);
    await text(request);
    response.setHeader('Date', new Date(recordedAt + Date.now() - startedAt).toUTCString());
    let reply: Reply | undefined;
    try {
      const isKnown = headers.authorization === `Bearer ${token}`;
      const call = { method, url: new URL(url, 'http://localhost'), accept: headers.accept ?? '' };
      reply = isKnown
        ? answer(cluster, recording, call, response)
        : failure(401, 'Unauthorized', 'Unauthorized');
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      record.notSupported = `${method} ${url}: ${why}`;
      reply = { status: 501, body: `not supported by the recorded API server: ${why}\n` };
    }
    if (reply === undefined) return;
    const isText = typeof reply.body === 'string';
    const type = reply.contentType ?? (isText ? 'text/plain' : 'application/json');
    response.writeHead(reply.status, { 'Content-Type': type });
    response.end(isText ? reply.body : JSON.stringify(reply.body));
  });
  await listen(server);

  const scheme = authority === undefined ? 'http' : 'https';
  const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    requests,
    kubeconfig: async (path) => {
      const trusted = authority && { 'certificate-authority-data': base64(authority.cert) };
      await writeFile(
        path,
        kubeconfigText({ server: url, cluster: trusted ?? {}, user: { token } }),
      );
      return path;
    },
    mutate: (change) => change(cluster),
    close: async () => {
      cluster.watches.endAll();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

interface Call {
  method: string;
  url: URL;
  accept: string;
}

/** Text goes out as it is, everything else as JSON. */
interface Reply {
  status: number;
  contentType?: string;
  body: Json;
}

const failure = (status: number, reason: string, message: string, details?: JsonObject): Reply => ({
  status,
  body: statusObject(status, reason, message, details),
});

/** Undefined: a watch, which writes its own. */
function answer(
  cluster: RecordedCluster,
  { version }: Recording,
  { method, url, accept }: Call,
  response: ServerResponse,
): Reply | undefined {
  const { pathname: path, searchParams: query } = url;
  if (path === '/readyz') return { status: 200, body: 'ok' };
  if (path === '/version') return { status: 200, body: version };
  if (path.endsWith('/selfsubjectaccessreviews')) {
    return { status: 201, body: { status: { allowed: true } } };
  }
  if (path.endsWith('/selfsubjectreviews')) {
    return { status: 201, body: { status: { userInfo: { username: 'admin' } } } };
  }
  const discovered = cluster.discovery(path, accept.includes('as=APIGroupDiscoveryList'));
  if (discovered !== undefined) return discovered;
  const route = cluster.route(path);
  if (route === undefined) return { status: 404, body: '404 page not found\n' };
  if (route.collection.error !== undefined) return route.collection.error;
  const matches = selection(query);
  if (query.get('watch') === '1') {
    cluster.watches.serve({ route, matches, response }, cluster.list(route).filter(matches));
    return undefined;
  }
  if (route.name === undefined) return listed(cluster, route, query, accept);
  const object = cluster.get(route);
  if (object === undefined) {
    const { group, resource } = route.collection;
    const details = { name: route.name, ...(group !== '' && { group }), kind: resource };
    const type = group === '' ? resource : `${resource}.${group}`;
    return failure(404, 'NotFound', `${type} "${route.name}" not found`, details);
  }
  // A second DELETE of what is terminating changes nothing, and answers with the object.
  const isHarmless = method === 'GET' || method === 'DELETE' || query.get('dryRun') === 'All';
  if (!isHarmless) throw new NotSupported('writing');
  return { status: 200, body: object };
}

function listed(
  cluster: RecordedCluster,
  route: Route,
  query: URLSearchParams,
  accept: string,
): Reply {
  const { group, version, kind } = route.collection;
  if (query.has('continue')) throw new NotSupported('a second page');
  const all = cluster.list(route).filter(selection(query));
  const limit = Number(query.get('limit') ?? all.length);
  const metadata = {
    resourceVersion: cluster.resourceVersion,
    ...(all.length > limit && { continue: 'more' }),
  };
  const items = all.slice(0, limit);
  if (!accept.includes('as=PartialObjectMetadataList')) {
    const apiVersion = group === '' ? version : `${group}/${version}`;
    return { status: 200, body: { kind: `${kind}List`, apiVersion, metadata, items } };
  }
  const meta = { apiVersion: 'meta.k8s.io/v1' };
  const shown = items.map((object) => ({
    ...{ ...meta, kind: 'PartialObjectMetadata' },
    metadata: object['metadata'] ?? {},
  }));
  return {
    status: 200,
    body: { ...meta, kind: 'PartialObjectMetadataList', metadata, items: shown },
  };
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
}
