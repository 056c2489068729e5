import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent } from 'undici';
import type { Identity } from '../identities.ts';
import { readKubeconfig, writeKubeconfigText } from '../kubeconfig.ts';
import type { World } from '../world.ts';

export interface Blindness {
  /** Of the requests that fail: "GET /api/v1/pods". */
  to: RegExp;
  status: 403 | 500;
}

/**
 * Lets the gate see the cluster through a proxy that refuses some of its reads: what a role without a
 * rule, or a server with a fault, does to it.
 */
export async function blindGate(
  world: World,
  identity: Identity,
  { to, status }: Blindness,
): Promise<void> {
  const connection = readKubeconfig(await world.kubeconfig(identity));
  const upstream = new Agent({
    connect: connection.ca === undefined ? {} : { ca: connection.ca },
  });
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', url = '/', headers } = request;
    if (to.test(`${method} ${url.split('?')[0]}`)) {
      request.resume();
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(refusal(status, url)));
      return;
    }
    const { host: _host, connection: _connection, ...rest } = headers;
    const hasBody = method !== 'GET' && method !== 'DELETE';
    await upstream.stream(
      {
        origin: connection.server,
        path: url,
        method: method as 'GET',
        headers: rest as Record<string, string>,
        ...(hasBody ? { body: request } : {}),
      },
      ({ statusCode, headers: answered }) => {
        response.writeHead(statusCode, answered as Record<string, string>);
        return response;
      },
    );
  };
  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const folder = await mkdtemp(join(tmpdir(), 'blind-gate-'));
  world.atEnd(async () => {
    server.close();
    server.closeAllConnections();
    await upstream.destroy();
    await rm(folder, { recursive: true });
  });
  const { port } = server.address() as AddressInfo;
  const file = join(folder, 'kubeconfig');
  const text = writeKubeconfigText('blind', identity, {
    ...connection,
    server: `http://127.0.0.1:${port}`,
  });
  await writeFile(file, text, { mode: 0o600 });
  world.gateKubeconfig = file;
}

function refusal(code: number, url: string) {
  const what = url.split('?')[0];
  return {
    apiVersion: 'v1',
    kind: 'Status',
    status: 'Failure',
    code,
    reason: code === 403 ? 'Forbidden' : 'InternalError',
    message: code === 403 ? `${what} is forbidden` : `Internal error occurred: ${what}`,
  };
}
