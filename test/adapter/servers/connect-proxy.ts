import { createServer, request as httpRequest, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { endServer, listen, trackSockets } from './http-server.ts';

interface ConnectProxy {
  url: string;
  /** What was asked for: `CONNECT 127.0.0.1:6443`, `GET http://127.0.0.1:8001/version`. */
  asked: string[];
  authorizations: (string | undefined)[];
}

interface ConnectProxyOptions {
  /** Answers CONNECT with this status. */
  refuse?: number;
  /** Speaks TLS itself. */
  tls?: { key: string; cert: string };
}

/** A forwarding proxy on loopback. */
export async function startConnectProxy(options: ConnectProxyOptions = {}): Promise<ConnectProxy> {
  const { refuse, tls } = options;
  const asked: string[] = [];
  const authorizations: (string | undefined)[] = [];
  const forward: RequestListener = (request, response) => {
    asked.push(`${request.method} ${request.url}`);
    request.pipe(
      httpRequest(
        request.url ?? '',
        { method: request.method, headers: request.headers },
        (got) => {
          response.writeHead(got.statusCode ?? 502, got.headers);
          got.pipe(response);
        },
      ),
    );
  };
  const server = tls === undefined ? createServer(forward) : createTlsServer(tls, forward);
  server.on('connect', (request, socket: Socket, head) => {
    asked.push(`CONNECT ${request.url}`);
    authorizations.push(request.headers['proxy-authorization']);
    if (refuse !== undefined) {
      socket.end(`HTTP/1.1 ${refuse} Refused\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    const [host, port] = (request.url ?? '').split(':');
    const upstream = connectTcp(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    upstream.on('error', () => socket.destroy());
    socket.on('error', () => upstream.destroy());
    socket.on('close', () => upstream.destroy());
  });
  const sockets = trackSockets(server);
  const port = await listen(server);
  onTestFinished(() => endServer(server, sockets.open));
  const scheme = tls === undefined ? 'http' : 'https';
  return { url: `${scheme}://127.0.0.1:${port}`, asked, authorizations };
}
