import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringAt } from '../../src/base/json.ts';
import { isKubernetesVersion, type KubernetesVersion, NEWEST_VERSION } from './build.ts';
import { ApiError, Client, type Ref } from './client.ts';
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.ts';
import { Etcd, restore, whenQuiet } from './etcd.ts';
import { IDENTITIES, IDENTITY_NAMESPACE, type Identity, identityObjects } from './identities.ts';
import { writeKubeconfigText } from './kubeconfig.ts';
import type { Scenario } from './scenario.ts';
import { takeAway } from './take-away.ts';

/** Where scenarios run. */
export interface Cluster {
  client: Client;
  plane: ControlPlane | undefined;
  alone: boolean;
  kubeconfig(identity: Identity): string | Promise<string>;
  /** Keeps it until the cluster stops. */
  leave(ref: Ref): void;
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
  const version = wantedVersion();
  const shown = !scenario.versions || scenario.versions.includes(version);
  return shown ? undefined : `only on ${scenario.versions?.join(', ')}`;
}

/** A cluster for as long as a test wants it. */
export async function sharedCluster(): Promise<Cluster> {
  const kubeconfig = foreignKubeconfig();
  return kubeconfig === undefined
    ? ownCluster({ version: wantedVersion() }, false)
    : foreignCluster(kubeconfig);
}

/** One for this scenario alone: names in it are as plain as in the books. */
export async function clusterFor(
  scenario: Pick<Scenario, 'own'>,
  version = wantedVersion(),
  say: (line: string) => void = () => {},
): Promise<Cluster> {
  const options = typeof scenario.own === 'object' ? scenario.own : {};
  return ownCluster({ ...options, version, say }, true);
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
    if (own !== undefined && own !== true) return inClusterOf({ own }, work);
    const lone = this.#idle.pop() ?? (await this.#start());
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
    const mine = last.then(async () => work(await cluster));
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
  return { cluster: { ...onPlane(plane), alone: true }, restore: () => restore(etcd, stored) };
}

async function inClusterOf<T>(
  scenario: Pick<Scenario, 'own'>,
  work: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const cluster = await clusterFor(scenario);
  try {
    return await work(cluster);
  } finally {
    await cluster.stop();
  }
}

async function ownCluster(
  options: Parameters<typeof startControlPlane>[0],
  alone: boolean,
): Promise<Cluster> {
  return { ...onPlane(await startControlPlane(options)), alone };
}

/** A cluster that tests share: everything in it goes with its control plane. */
export function onPlane(plane: ControlPlane): Cluster {
  return {
    client: plane.admin,
    plane,
    alone: false,
    kubeconfig: async (identity) => {
      await plane.bind(identity);
      return plane.kubeconfig(identity);
    },
    leave: () => {},
    stop: () => plane.stop(),
  };
}

/** The users of these tests become ServiceAccounts: no cluster lets us choose our tokens. */
async function foreignCluster(path: string): Promise<Cluster> {
  const client = Client.fromKubeconfig(path);
  const left: Ref[] = [];
  const folder = await mkdtemp(join(tmpdir(), 'teardown-gate-identities-'));
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: IDENTITY_NAMESPACE } },
    ...IDENTITIES.map((name) => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { namespace: IDENTITY_NAMESPACE, name },
    })),
    ...identityObjects(),
  ];
  for (const object of objects) await client.apply(object, { fieldManager: 'teardown-gate-tests' });
  const kubeconfigOf = async (identity: Identity): Promise<string> => {
    const token = await requestToken(client, identity);
    const file = join(folder, `${identity}.kubeconfig`);
    const { server, ca } = client.connection;
    await writeFile(file, writeKubeconfigText(identity, { server, ca, token }), {
      mode: 0o600,
    });
    return file;
  };
  // Written once: a gate of another scenario may be reading it.
  const written = new Map<Identity, Promise<string>>();
  return {
    client,
    plane: undefined,
    alone: false,
    kubeconfig: (identity) => {
      const file = written.get(identity) ?? kubeconfigOf(identity);
      written.set(identity, file);
      return file;
    },
    leave: (ref) => left.push(ref),
    stop: async () => {
      for (const ref of left) await takeAway(client, ref);
      await client.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function requestToken(client: Client, identity: Identity): Promise<string> {
  const path = `/api/v1/namespaces/${IDENTITY_NAMESPACE}/serviceaccounts/${identity}/token`;
  const answer = await client.call('POST', path, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 7_200 },
  });
  const token = stringAt(answer.body, 'status', 'token');
  if (token === undefined) throw new ApiError(`token of ${identity}`, answer);
  return token;
}
