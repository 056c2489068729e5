import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { networkInterfaces } from 'node:os';
import { createAuthority, issue } from '../../stub/certificates.ts';
import type { World } from '../world.ts';

export interface HttpsServer {
  port: number;
  /** Where an API server on this machine reaches it, never loopback: EndpointSlices refuse that. */
  address: string;
  /** PEM, base64: as `caBundle` fields want it. */
  caBundle: string;
}

/** An HTTPS server in the test process that ends with the scenario. */
export async function startHttpsServer(
  world: World,
  names: readonly string[],
  onRequest: RequestListener,
): Promise<HttpsServer> {
  const address = machineAddress();
  const authority = await createAuthority('test-server-ca');
  const certificate = await issue(authority, {
    hosts: [...names, 'localhost', '127.0.0.1', address],
  });
  const server = createServer({ cert: certificate.cert, key: certificate.key }, onRequest).listen(
    0,
    '0.0.0.0',
  );
  await once(server, 'listening');
  world.atEnd(() => {
    server.close();
    server.closeAllConnections(); // some answers never come, on purpose
  });
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('no port was given');
  return { port: bound.port, address, caBundle: Buffer.from(authority.cert).toString('base64') };
}

/** `CLUSTER_HOST_ADDRESS`: this machine as a cluster in containers sees it. */
export function machineAddress(): string {
  const given = process.env['CLUSTER_HOST_ADDRESS'];
  if (given) return given;
  const found = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal);
  if (!found) throw new Error('this machine has no IPv4 address but loopback');
  return found.address;
}
