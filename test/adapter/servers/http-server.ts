import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';

export interface Recorded {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  /** Names and values in turn, as received; in `headers` Node joins repeated ones. */
  rawHeaders: string[];
  body: string;
  /** Common name of the client certificate, where one was sent. */
  clientName: string | undefined;
}

/** Called for each request; `index` counts from 0. */
export type Answer = (request: Recorded, response: ServerResponse, index: number) => unknown;

export interface FakeServer {
  url: string;
  port: number;
  requests: Recorded[];
  connections: number;
  close(): Promise<void>;
}

export interface TlsOptions {
  key: string;
  cert: string;
  /** The authority of client certificates; if given, the server requests one. */
  clientCa?: string;
}

/** Starts an HTTP server on loopback, which stops at the end of the test. */
export async function startServer(answer: Answer, tls?: TlsOptions): Promise<FakeServer> {
  const requests: Recorded[] = [];
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const recorded = record(request, Buffer.concat(chunks).toString('utf8'));
      requests.push(recorded);
      answer(recorded, response, requests.length - 1);
    });
  };
  const server =
    tls === undefined
      ? createServer(listener)
      : createTlsServer(
          {
            key: tls.key,
            cert: tls.cert,
            ...(tls.clientCa === undefined
              ? {}
              : { ca: tls.clientCa, requestCert: true, rejectUnauthorized: false }),
          },
          listener,
        );
  const sockets = trackSockets(server);
  const port = await listen(server);
  const fake: FakeServer = {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    port,
    requests,
    get connections() {
      return sockets.accepted;
    },
    close: () => endServer(server, sockets.open),
  };
  onTestFinished(() => fake.close());
  return fake;
}

function record(request: IncomingMessage, body: string): Recorded {
  const socket = request.socket as TLSSocket;
  const subject = 'getPeerCertificate' in socket ? socket.getPeerCertificate()?.subject : undefined;
  return {
    method: request.method ?? '',
    url: request.url ?? '',
    headers: request.headers,
    rawHeaders: request.rawHeaders,
    body,
    clientName: subject?.CN === undefined ? undefined : String(subject.CN),
  };
}

export function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

export function trackSockets(server: Server): { open: Set<Socket>; accepted: number } {
  const tracked = { open: new Set<Socket>(), accepted: 0 };
  server.on('connection', (socket: Socket) => {
    tracked.accepted++;
    tracked.open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => tracked.open.delete(socket));
  });
  return tracked;
}

export function endServer(server: Server, open: Iterable<Socket>): Promise<void> {
  for (const socket of open) socket.destroy();
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
