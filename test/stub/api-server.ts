import { writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { generate } from 'selfsigned';
import type { Json } from '../../src/base/json.ts';
import { Cluster } from './api/cluster.ts';
import { type Handling, handleRequest } from './api/handle.ts';
import type { Identity } from './api/identities.ts';
import type { Recording } from './recording.ts';

export interface RecordedRequest {
  method: string;
  /** With the query. */
  path: string;
  user: string | undefined;
  accept: string | undefined;
  contentType: string | undefined;
  body: Json | undefined;
  /** Absent while the answer is not there yet. */
  status?: number;
  /** The feature that was asked for and that the stub does not have (answered with 501). */
  notSupported?: string;
}

export interface ApiServerOptions {
  recording: Recording;
  /** The user of each token; one token that may do everything unless given. */
  tokens?: Readonly<Record<string, Identity>>;
  /** Serves https with its own certificate authority, which the kubeconfig contains. */
  tls?: boolean;
}

export interface ApiServer {
  readonly url: string;
  /** In the order of their arrival. */
  readonly requests: RecordedRequest[];
  /** Writes a kubeconfig for the holder of `token` (the first one unless given); returns its path. */
  kubeconfig(path: string, token?: string): Promise<string>;
  /** Changes the served cluster now; watchers are told. */
  mutate<T>(change: (cluster: Cluster) => T): T;
  close(): Promise<void>;
}

export const ADMIN_TOKEN = 'token-of-the-cluster-admin';
const ADMIN: Identity = { username: 'admin', groups: ['system:masters'] };

/**
 * Serves a recorded cluster over HTTP on loopback, with the semantics and the words of the real API
 * server as far as the gate can meet them. Everything else is answered with 501 and noted.
 *
 * Its clock (the `Date` header) goes on from the time of the recording, so that deletionTimestamps
 * and Leases are as old as they were.
 */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const cluster = new Cluster(options.recording);
  const tokens = options.tokens ?? { [ADMIN_TOKEN]: ADMIN };
  const startedAt = Date.now();
  const recordedAt = Date.parse(options.recording.recordedAt);
  const requests: RecordedRequest[] = [];
  const handling: Handling = {
    cluster,
    tokens,
    requests,
    version: options.recording.version,
    now: () => new Date(recordedAt + Date.now() - startedAt),
  };
  const certificate = options.tls === true ? await createCertificate() : undefined;
  const server = certificate === undefined ? createHttpServer() : createHttpsServer(certificate);
  server.on('request', (request, response) => void handleRequest(handling, request, response));
  await listen(server);

  const scheme = certificate === undefined ? 'http' : 'https';
  const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    requests,
    kubeconfig: async (path, token = Object.keys(tokens)[0] ?? '') => {
      await writeFile(path, kubeconfigText(url, certificate?.cert, token));
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

async function createCertificate(): Promise<{ cert: string; key: string }> {
  const altNames = [{ type: 7 as const, ip: '127.0.0.1' }];
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'kube-apiserver' }], {
    algorithm: 'sha256',
    extensions: [{ name: 'subjectAltName', altNames }],
  });
  return { cert, key };
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
}

function kubeconfigText(server: string, ca: string | undefined, token: string): string {
  const authority =
    ca === undefined
      ? ''
      : `\n    certificate-authority-data: ${Buffer.from(ca).toString('base64')}`;
  return `apiVersion: v1
kind: Config
current-context: recorded
clusters:
- name: recorded
  cluster:
    server: ${server}${authority}
users:
- name: recorded
  user:
    token: ${token}
contexts:
- name: recorded
  context:
    cluster: recorded
    user: recorded
`;
}
