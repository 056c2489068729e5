import { createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { endServer, listen, trackSockets } from './http-server.ts';

interface RawServer {
  url: string;
  port: number;
  connections: number;
}

/** Bytes on a socket, for what no HTTP server can be made to do; `request` has the bytes that came. */
export async function startRawServer(
  onRequest: (socket: Socket, request: string, index: number) => void,
): Promise<RawServer> {
  const server = createServer();
  const sockets = trackSockets(server);
  let requests = 0;
  server.on('connection', (socket) => {
    socket.on('data', (data) => onRequest(socket, data.toString('latin1'), requests++));
  });
  const port = await listen(server);
  onTestFinished(() => endServer(server, sockets.open));
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    get connections() {
      return sockets.accepted;
    },
  };
}

/** A port that nobody listens on. */
export async function closedPort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await endServer(server, []);
  return port;
}
