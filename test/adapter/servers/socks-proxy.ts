import { connect as connectTcp, createServer } from 'node:net';
import { onTestFinished } from 'vitest';
import { endServer, listen, trackSockets } from './http-server.ts';

interface SocksProxy {
  url: string;
  asked: string[];
}

/** SOCKS5 without authentication (RFC 1928): a greeting, one CONNECT, then bytes. */
export async function startSocksProxy(): Promise<SocksProxy> {
  const asked: string[] = [];
  const server = createServer((client) => {
    client.once('data', () => {
      client.write(Buffer.from([5, 0]));
      client.once('data', (request) => {
        const { host, port } = destination(request);
        asked.push(`${host}:${port}`);
        const upstream = connectTcp(port, host, () => {
          client.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
          upstream.pipe(client).pipe(upstream);
        });
        upstream.on('error', () => client.destroy());
        client.on('close', () => upstream.destroy());
      });
    });
  });
  const sockets = trackSockets(server);
  const port = await listen(server);
  onTestFinished(() => endServer(server, sockets.open));
  return { url: `socks5://127.0.0.1:${port}`, asked };
}

function destination(request: Buffer): { host: string; port: number } {
  const isName = request[3] === 3;
  const length = isName ? (request[4] ?? 0) : 4;
  const start = isName ? 5 : 4;
  const address = request.subarray(start, start + length);
  return {
    host: isName ? address.toString('latin1') : [...address].join('.'),
    port: request.readUInt16BE(start + length),
  };
}
