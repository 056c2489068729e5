import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import type { ControlPlane } from '../test/cluster/control-plane.ts';

export interface PassedRequest {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  refused: boolean;
}

export interface ApiProxyOptions {
  /** Before each request is handed on; requests do not wait for each other. */
  delayMs?: number;
  /** Answer 429 instead? */
  refuses?: (inFlight: number) => boolean;
}

export interface ApiProxy {
  url: string;
  requests: PassedRequest[];
  close(): Promise<void>;
}

/** Plain HTTP on loopback in front of the API server; connections on both sides are kept. */
export async function startApiProxy(
  plane: ControlPlane,
  { delayMs = 0, refuses = () => false }: ApiProxyOptions = {},
): Promise<ApiProxy> {
  const { server: target, ca } = plane.admin.connection;
  const upstream = new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: ca === undefined ? {} : { ca },
  });
  const requests: PassedRequest[] = [];
  let inFlight = 0;

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    inFlight++;
    response.once('close', () => {
      inFlight--;
    });
    const { method = 'GET', url = '/', headers } = request;
    const refused = refuses(inFlight);
    requests.push({ method, url, headers, refused });
    if (refused) return refuse(request, response);
    if (delayMs > 0) await sleep(delayMs);
    const { host: _host, connection: _connection, ...rest } = headers;
    await upstream.stream(
      {
        origin: target,
        path: url,
        method: method as 'GET',
        headers: rest as Record<string, string>,
        ...(headers['content-length'] === undefined && headers['transfer-encoding'] === undefined
          ? {}
          : { body: request }),
      },
      ({ statusCode, headers: answered }) => response.writeHead(statusCode, answered),
    );
  };
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await upstream.destroy();
    },
  };
}

/** As the API server's priority and fairness says it. */
function refuse(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  const body = JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    message: 'too many requests, please try again later',
    reason: 'TooManyRequests',
    code: 429,
  });
  response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '1' });
  response.end(body);
}
