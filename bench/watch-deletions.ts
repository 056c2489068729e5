import { createInterface } from 'node:readline';
import { Agent, request } from 'undici';
import type { ControlPlane } from '../test/cluster/control-plane.ts';

export interface Deletion {
  /** `performance.now()` when the DELETED event of this namespace arrived here. */
  seen: Promise<number>;
  close(): void;
}

/** A watch of its own, which is open when this returns. */
export async function watchDeletions(plane: ControlPlane, name: string): Promise<Deletion> {
  const { server, ca, token } = plane.admin.connection;
  const dispatcher = new Agent({ bodyTimeout: 0, connect: ca === undefined ? {} : { ca } });
  const url = new URL('/api/v1/namespaces', server);
  url.search = `watch=1&fieldSelector=metadata.name%3D${name}`;
  const answer = await request(url, {
    dispatcher,
    headers: { authorization: `Bearer ${token}` },
  });
  if (answer.statusCode !== 200) throw new Error(`watch of ${name}: ${answer.statusCode}`);
  const lines = createInterface({ input: answer.body });
  lines.on('error', () => undefined); // of the end that close() makes
  const seen = new Promise<number>((resolve) => {
    lines.on('line', (line) => {
      if (line.startsWith('{"type":"DELETED"')) resolve(performance.now());
    });
  });
  return { seen, close: () => void dispatcher.destroy() };
}
