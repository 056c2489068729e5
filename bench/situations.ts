import { arrayAt, type JsonObject, stringsAt } from '../src/base/json.ts';
import type { Client, Ref } from '../test/cluster/client.ts';
import type { ControlPlane } from '../test/cluster/control-plane.ts';
import { configMap, customType } from '../test/cluster/objects.ts';
import { waitUntil } from '../test/cluster/wait-until.ts';
import { conditionsOf, namespaceRef } from '../test/cluster/world.ts';

/** What everything here is held by. Nobody removes it. */
export const FINALIZER = 'example.com/hold';
/** The namespace that the tools are asked about, with one blocked object. */
export const STUCK = 'bench-stuck';

const GROUPS = 30;
const REQUESTS_AT_ONCE = 64;
const SETTLE_MS = 10 * 60_000;
const AGGREGATED =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';

/** Runs them a few at a time. */
export async function inParallel<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
  atOnce = REQUESTS_AT_ONCE,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) await work(items[index] as T);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

export function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** CRDs number `from` to `to`, in 30 groups; returns when discovery shows them all. */
export async function createTypes(client: Client, from: number, to: number): Promise<void> {
  await inParallel(
    range(to - from).map((index) => from + index),
    (index) => client.create(customType(typeNumber(index))),
    8,
  );
  await waitUntil(`discovery of ${to} custom types`, async () => {
    const { body } = await client.call('GET', '/apis', undefined, { accept: AGGREGATED });
    const groups = arrayAt(body, 'items').filter((group) =>
      /\.bench\.example\.com$/.test(String((group as JsonObject & Named).metadata?.name)),
    );
    const types = groups.flatMap((group) => arrayAt(group, 'versions'));
    const count = types.reduce((sum: number, each) => sum + arrayAt(each, 'resources').length, 0);
    return count === to;
  });
}

interface Named {
  metadata?: { name?: string };
}

function typeNumber(index: number): { group: string; kind: string } {
  return { group: `g${index % GROUPS}.bench.example.com`, kind: `Thing${index}` };
}

/** Namespaced types that can be listed, as `kubectl api-resources` counts them. */
export async function countListableTypes(client: Client): Promise<number> {
  const roots = await Promise.all(
    ['/api', '/apis'].map((path) => client.call('GET', path, undefined, { accept: AGGREGATED })),
  );
  const seen = new Set<string>();
  for (const group of roots.flatMap(({ body }) => arrayAt(body, 'items'))) {
    const name = String((group as JsonObject & Named).metadata?.name ?? '');
    for (const version of arrayAt(group, 'versions')) {
      for (const type of arrayAt(version, 'resources')) {
        const { resource, scope } = type as { resource?: string; scope?: string };
        if (scope === 'Namespaced' && stringsAt(type, 'verbs').includes('list')) {
          seen.add(`${resource}.${name}`);
        }
      }
    }
  }
  return seen.size;
}

/** Namespaces that are Terminating and held by this many ConfigMaps each; 0: by themselves. */
export async function createStuck(
  plane: ControlPlane,
  wanted: readonly { name: string; objects: number }[],
): Promise<void> {
  const { admin } = plane;
  for (const { name, objects } of wanted) {
    const metadata = { name, ...(objects === 0 ? { finalizers: [FINALIZER] } : {}) };
    await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata });
    const path = `/api/v1/namespaces/${name}/configmaps`;
    await inParallel(range(objects), async (index) => {
      const object = configMap(name, `held-${index}`, { finalizers: [FINALIZER] });
      await mustWork(admin, 'POST', path, object);
      // Asked for here, 64 at once: the namespace controller would do it one by one.
      await mustWork(admin, 'DELETE', `${path}/held-${index}`);
    });
  }
  await inParallel(wanted, ({ name }) => admin.delete(namespaceRef(name)), 8);
  for (const { name, objects } of wanted) {
    await admin.waitFor(
      namespaceRef(name),
      'has been processed by the namespace controller',
      (namespace) =>
        objects === 0
          ? stringsAt(namespace, 'spec', 'finalizers').length === 0
          : conditionsOf(namespace).some(
              ({ type, status }) => type === 'NamespaceFinalizersRemaining' && status === 'True',
            ),
      { timeoutMs: SETTLE_MS, everyMs: 500 },
    );
  }
}

async function mustWork(
  client: Client,
  method: 'POST' | 'DELETE',
  path: string,
  body?: JsonObject,
): Promise<void> {
  const answer = await client.call(method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
}

/**
 * The namespace controller goes through all types of a stuck namespace every 8 s or so. While
 * something is measured it is off: its requests would be in the times of whoever is unlucky.
 */
export async function withNamespaceController<T>(
  plane: ControlPlane,
  work: () => Promise<T>,
): Promise<T> {
  await restartControllers(plane, ['*']);
  const value = await work();
  await restartControllers(plane, ['*', '-namespace-controller']);
  return value;
}

async function restartControllers(plane: ControlPlane, controllers: string[]): Promise<void> {
  await plane.controllerManager.stop();
  await plane.controllerManager.start(controllers);
}

/**
 * A namespace that goes the moment its finalizer is removed: empty, Terminating, and done with by
 * the namespace controller (whose part is played here).
 */
export async function createReleasable(client: Client, name: string): Promise<Ref> {
  const ref = namespaceRef(name);
  const metadata = { name, finalizers: [FINALIZER] };
  await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata });
  await client.delete(ref);
  const path = await client.pathOf(ref, 'finalize');
  const answer = await client.call('PUT', path, {
    ...(await client.get(ref)),
    spec: { finalizers: [] },
  });
  if (answer.status !== 200) throw new Error(`finalize ${name}: ${answer.status} ${answer.text}`);
  return ref;
}

export async function release(client: Client, ref: Ref): Promise<void> {
  await client.patch(ref, { metadata: { finalizers: null } });
}
