import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isKubernetesVersion, type KubernetesVersion, NEWEST_VERSION } from './build.ts';
import { Client } from './client.ts';
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.ts';
import { Etcd, restore, whenQuiet } from './etcd.ts';
import { IDENTITIES, IDENTITY_NAMESPACE, type Identity, identityObjects } from './identities.ts';
import { writeKubeconfigText } from './kubeconfig.ts';
import { serviceAccount } from './objects.ts';
import type { Scenario } from './scenario.ts';

/** Where scenarios run. */
export interface Cluster {
  client: Client;
  /** Absent on a cluster that these tests did not start. */
  plane: ControlPlane | undefined;
  kubeconfig(identity: Identity): string | Promise<string>;
  stop(): Promise<void>;
}

/** `CLUSTER_VERSION`: which Kubernetes the tests start. */
export function wantedVersion(text = process.env['CLUSTER_VERSION']): KubernetesVersion {
  if (text === undefined || text === '') return NEWEST_VERSION;
  if (isKubernetesVersion(text)) return text;
  throw new Error(`CLUSTER_VERSION is "${text}"; there is a control plane for 1.36.3 and 1.32.2`);
}

/** `CLUSTER_KUBECONFIG`: a cluster that is there already, for example kind. */
export function foreignKubeconfig(): string | undefined {
  return process.env['CLUSTER_KUBECONFIG'] || undefined;
}

/** Why the scenario cannot be shown on the control plane that these tests start. */
export function skipReason(scenario: Scenario): string | undefined {
  if (foreignKubeconfig() !== undefined) return undefined;
  const shown = !scenario.versions || scenario.versions.includes(wantedVersion());
  return shown ? undefined : `only on ${scenario.versions?.join(', ')}`;
}

/** One for this scenario alone; or the one that is there already. */
export async function clusterFor(
  scenario: Pick<Scenario, 'own'>,
  version = wantedVersion(),
  say: (line: string) => void = () => {},
): Promise<Cluster> {
  const foreign = foreignKubeconfig();
  if (foreign !== undefined) return foreignCluster(foreign);
  const options = typeof scenario.own === 'object' ? scenario.own : {};
  return onPlane(await startControlPlane({ ...options, version, say }));
}

/**
 * Clusters in which one situation has everything to itself, so that no two ever see each other. Control planes serve
 * many of them, one after the other: what is stored is made as it was in between, and where that does not help, or a
 * situation went wrong, the next gets another. A cluster that is there already serves one at a time as well.
 */
export class Clusters {
  readonly #idle: Lone[] = [];
  readonly #start: () => Promise<Lone>;
  #foreign: { cluster: Promise<Cluster>; last: Promise<unknown> } | undefined;

  constructor(start: () => Promise<Lone> = () => startLone()) {
    this.#start = start;
  }

  async use<T>(
    work: (cluster: Cluster) => Promise<T>,
    own: Scenario['own'] = undefined,
  ): Promise<T> {
    const kubeconfig = foreignKubeconfig();
    if (kubeconfig !== undefined) return this.#inForeign(kubeconfig, work);
    const isApart = own !== undefined && own !== true;
    const lone = isApart
      ? { cluster: await clusterFor({ own }), restore: async () => false }
      : (this.#idle.pop() ?? (await this.#start()));
    // Another client: what this one has seen of the types is true no more.
    const client = new Client(lone.cluster.client.connection);
    let isAsBefore = false;
    try {
      const result = await work({ ...lone.cluster, client });
      isAsBefore = await lone.restore().catch(() => false);
      return result;
    } finally {
      await client.close();
      if (isAsBefore) this.#idle.push(lone);
      else await lone.cluster.stop();
    }
  }

  async #inForeign<T>(kubeconfig: string, work: (cluster: Cluster) => Promise<T>): Promise<T> {
    this.#foreign ??= { cluster: foreignCluster(kubeconfig), last: Promise.resolve() };
    const { cluster, last } = this.#foreign;
    const mine = last.then(async () => {
      const one = await cluster;
      const client = new Client(one.client.connection);
      return work({ ...one, client }).finally(() => client.close());
    });
    this.#foreign.last = mine.catch(() => undefined);
    return mine;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map(({ cluster }) => cluster.stop()));
    await (await this.#foreign?.cluster)?.stop();
  }
}

export interface Lone {
  cluster: Cluster;
  /** Makes what is stored as it was before the first situation. Returns whether it is. */
  restore(): Promise<boolean>;
}

/** `prepare` makes what every situation on it finds. */
export async function startLone(
  options: ControlPlaneOptions = {},
  prepare: (plane: ControlPlane) => Promise<void> = async () => {},
): Promise<Lone> {
  const plane = await startControlPlane({ version: wantedVersion(), ...options });
  await prepare(plane);
  const etcd = new Etcd(plane.etcdEndpoint);
  const stored = await whenQuiet(etcd);
  return { cluster: onPlane(plane), restore: () => restore(etcd, stored) };
}

/** Everything in it goes with its control plane. */
export function onPlane(plane: ControlPlane): Cluster {
  return {
    client: plane.admin,
    plane,
    kubeconfig: async (identity) => {
      await plane.bind(identity);
      return plane.kubeconfig(identity);
    },
    stop: () => plane.stop(),
  };
}

/** The users of these tests become ServiceAccounts: no cluster lets us choose our tokens. */
async function foreignCluster(path: string): Promise<Cluster> {
  const client = Client.fromKubeconfig(path);
  const folder = await mkdtemp(join(tmpdir(), 'teardown-gate-identities-'));
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: IDENTITY_NAMESPACE } },
    ...IDENTITIES.map((name) => serviceAccount(IDENTITY_NAMESPACE, name)),
    ...identityObjects(),
  ];
  for (const object of objects) await client.apply(object, { fieldManager: 'teardown-gate-tests' });
  return {
    client,
    plane: undefined,
    kubeconfig: async (identity) => {
      const token = await client.tokenOf(IDENTITY_NAMESPACE, identity);
      const file = join(folder, `${identity}.kubeconfig`);
      const { server, ca } = client.connection;
      const text = writeKubeconfigText(identity, { server, ca, token });
      await writeFile(file, text, { mode: 0o600 });
      return file;
    },
    stop: async () => {
      await client.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
