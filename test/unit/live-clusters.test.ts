import { setImmediate as soon } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Client } from '../cluster/client.ts';
import { type Cluster, Clusters, type Lone } from '../cluster/clusters.ts';

/** Control planes that only say who uses them. */
function planes({ restores = true } = {}) {
  const seen = { started: 0, stopped: 0, users: new Map<string, number>(), most: 0 };
  const start = async (): Promise<Lone> => {
    const server = `https://127.0.0.1:${++seen.started}`;
    const client = { connection: { server, ca: '', token: '' } } as Client;
    const stop = async () => void seen.stopped++;
    return { cluster: { client, stop } as unknown as Cluster, restore: async () => restores };
  };
  const work = async ({ client: { connection } }: Cluster): Promise<string> => {
    const count = (seen.users.get(connection.server) ?? 0) + 1;
    seen.users.set(connection.server, count);
    seen.most = Math.max(seen.most, count);
    await soon();
    seen.users.set(connection.server, count - 1);
    return connection.server;
  };
  return { seen, clusters: new Clusters(start), work };
}

test('no two situations are on one control plane at the same time; one after the other may be', async () => {
  const { seen, clusters, work } = planes();
  await Promise.all([clusters.use(work), clusters.use(work), clusters.use(work)]);
  await clusters.use(work);
  await clusters.stop();
  expect(seen).toMatchObject({ most: 1, started: 3, stopped: 3 });
});

test.each<[string, boolean, (cluster: Cluster) => Promise<unknown>]>([
  ['a situation that went wrong', true, () => Promise.reject(new Error('wrong'))],
  ['a store that does not become as it was', false, async () => undefined],
])('after %s the next one gets another control plane', async (_, restores, first) => {
  const { seen, clusters, work } = planes({ restores });
  await clusters.use(first).catch(() => undefined);
  expect(seen.stopped).toBe(1);
  expect(await clusters.use(work)).toBe('https://127.0.0.1:2');
});
