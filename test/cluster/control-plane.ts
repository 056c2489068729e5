import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildControlPlane, type KubernetesVersion, NEWEST_VERSION } from './build.ts';
import { createAuthority, issueClient, issueServer } from './certificates.ts';
import { Client, type Ref, waitForServer } from './client.ts';
import { IDENTITIES, type Identity, identityObjects } from './identities.ts';
import { type Connection, writeKubeconfigText } from './kubeconfig.ts';
import { freePorts, Server } from './processes.ts';
import { waitUntil } from './wait-until.ts';

export interface ControlPlaneOptions {
  version?: KubernetesVersion;
  /** As for `--controllers`; for example `['*', '-pod-garbage-collector-controller']`. */
  controllers?: readonly string[];
  apiServerFlags?: readonly string[];
  controllerManagerFlags?: readonly string[];
  /** Hears what takes long (the first build). */
  say?: (line: string) => void;
}

/** etcd, kube-apiserver and kube-controller-manager on loopback, with a data folder of their own. */
export interface ControlPlane {
  readonly version: KubernetesVersion;
  readonly server: string;
  /** PEM of the authority that signed the API server's certificate. */
  readonly ca: string;
  readonly dataDir: string;
  /** JSON lines, one event per request: the witness of who did what. */
  readonly auditLog: string;
  /** As a member of system:masters. */
  readonly admin: Client;
  /** Path of a kubeconfig for this user. */
  kubeconfig(user: Identity | 'admin'): string;
  /** Makes etcd keys readable, for faults that the API does not let anybody make. */
  readonly etcdEndpoint: string;
  readonly controllerManager: {
    readonly running: boolean;
    start(controllers?: readonly string[]): Promise<void>;
    stop(): Promise<void>;
  };
  /** Stops the API server and starts it on the same port, with other flags if given. */
  restartApiServer(extraFlags?: readonly string[]): Promise<void>;
  /** Where the logs of the servers are. */
  readonly logs: readonly string[];
  stop(): Promise<void>;
}

const CONTROLLER_MANAGER = 'system:kube-controller-manager';
const LEADER_LEASE: Ref = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  namespace: 'kube-system',
  name: 'kube-controller-manager',
};
const DEFAULT_SERVICE_ACCOUNT: Ref = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  namespace: 'default',
  name: 'default',
};
const POLITE_MS = 3_000;
const ATTEMPTS = 4;

const running = new Set<ControlPlaneProcesses>();
let endsWithProcess = false;

export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const version = options.version ?? NEWEST_VERSION;
  const binary = await buildControlPlane(version, options.say);
  for (let attempt = 1; ; attempt++) {
    const plane = await ControlPlaneProcesses.prepare(binary, version, options);
    try {
      running.add(plane);
      endWithProcess();
      await plane.start();
      return plane;
    } catch (error) {
      // Between choosing a port and listening on it, somebody else may have taken it.
      const unlucky = plane.lostAPort();
      await plane.stop();
      if (!unlucky || attempt === ATTEMPTS) throw error;
    }
  }
}

/** Ctrl-C, an uncaught error, process.exit(): no servers and no data stay behind. */
function endWithProcess(): void {
  if (endsWithProcess) return;
  endsWithProcess = true;
  const endAll = (): void => {
    for (const plane of running) plane.kill();
    running.clear();
  };
  process.once('exit', endAll);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      endAll();
      process.kill(process.pid, signal); // our handler is gone: this time it ends the process
    });
  }
}

class ControlPlaneProcesses implements ControlPlane {
  readonly version: KubernetesVersion;
  readonly server: string;
  readonly ca: string;
  readonly dataDir: string;
  readonly auditLog: string;
  readonly admin: Client;
  readonly etcdEndpoint: string;
  readonly controllerManager: ControlPlane['controllerManager'];
  readonly #binary: string;
  readonly #options: ControlPlaneOptions;
  readonly #ports: Ports;
  #etcd: Server | undefined;
  #apiServer: Server | undefined;
  #controllerManager: Server | undefined;

  private constructor(
    binary: string,
    version: KubernetesVersion,
    options: ControlPlaneOptions,
    prepared: Prepared,
  ) {
    this.#binary = binary;
    this.version = version;
    this.#options = options;
    this.dataDir = prepared.dataDir;
    this.#ports = prepared.ports;
    this.ca = prepared.ca;
    this.auditLog = join(prepared.dataDir, 'audit.log');
    this.server = `https://127.0.0.1:${prepared.ports.apiServer}`;
    this.etcdEndpoint = `http://127.0.0.1:${prepared.ports.etcd}`;
    const isRunning = (): boolean => this.#controllerManager?.running ?? false;
    this.controllerManager = {
      get running() {
        return isRunning();
      },
      start: (controllers) => this.#startControllerManager(controllers),
      stop: async () => this.#controllerManager?.stop(POLITE_MS),
    };
    this.admin = new Client({ server: this.server, ca: prepared.ca, token: prepared.adminToken });
  }

  static async prepare(
    binary: string,
    version: KubernetesVersion,
    options: ControlPlaneOptions,
  ): Promise<ControlPlaneProcesses> {
    return new ControlPlaneProcesses(binary, version, options, await prepareDataDir());
  }

  async start(): Promise<void> {
    this.#etcd = this.#launch('etcd', etcdFlags(this.dataDir, this.#ports));
    this.#launchApiServer();
    await this.#apiServerReady();
    this.#launchControllerManager(this.#options.controllers);
    await Promise.all(identityObjects().map((object) => this.admin.create(object)));
    await this.#controllersReady();
  }

  kubeconfig(user: Identity | 'admin'): string {
    return join(this.dataDir, `${user}.kubeconfig`);
  }

  get logs(): string[] {
    return ['etcd', 'kube-apiserver', 'kube-controller-manager'].map((name) => this.#logOf(name));
  }

  lostAPort(): boolean {
    return [this.#etcd, this.#apiServer].some((server) => server?.lostItsPort());
  }

  async restartApiServer(extraFlags: readonly string[] = []): Promise<void> {
    await this.#apiServer?.stop(POLITE_MS);
    this.#launchApiServer(extraFlags);
    await this.#apiServerReady();
  }

  async stop(): Promise<void> {
    running.delete(this);
    await this.#controllerManager?.stop(POLITE_MS);
    // Without etcd the API server would spend minutes in its graceful shutdown: etcd goes last.
    await this.#apiServer?.stop(POLITE_MS);
    await this.#etcd?.stop(POLITE_MS);
    await this.admin.close();
    await rm(this.dataDir, { recursive: true, force: true });
  }

  /** At once and without waiting, for a process that is ending. */
  kill(): void {
    for (const server of [this.#controllerManager, this.#apiServer, this.#etcd]) server?.kill();
    rmSync(this.dataDir, { recursive: true, force: true, maxRetries: 3 });
  }

  #launch(name: string, flags: readonly string[]): Server {
    return Server.start(this.#binary, name, flags, this.#logOf(name));
  }

  #launchApiServer(extraFlags: readonly string[] = []): void {
    const flags = apiServerFlags(this.dataDir, this.#ports);
    const more = this.#options.apiServerFlags ?? [];
    this.#apiServer = this.#launch('kube-apiserver', [...flags, ...more, ...extraFlags]);
  }

  #launchControllerManager(controllers: readonly string[] = ['*']): void {
    this.#controllerManager = this.#launch('kube-controller-manager', [
      ...controllerManagerFlags(this.dataDir),
      `--controllers=${controllers.join(',')}`,
      ...(this.#options.controllerManagerFlags ?? []),
    ]);
  }

  async #startControllerManager(controllers?: readonly string[]): Promise<void> {
    // Its predecessor's Lease would keep it waiting for 15 s.
    await this.admin.delete(LEADER_LEASE);
    this.#launchControllerManager(controllers ?? this.#options.controllers);
    await this.#controllersReady();
  }

  async #apiServerReady(): Promise<void> {
    const isAlive = (): boolean => Boolean(this.#etcd?.running && this.#apiServer?.running);
    if (await waitForServer(this.admin, isAlive)) return;
    const dead = this.#etcd?.running ? this.#apiServer : this.#etcd;
    throw new Error(`${dead?.name} did not become ready; its log ends:\n${dead?.logTail()}`);
  }

  /** Ready is when it leads and when a new namespace would get its ServiceAccount. */
  async #controllersReady(): Promise<void> {
    const controllers = this.#options.controllers ?? ['*'];
    const signs = [LEADER_LEASE];
    if (controllers.includes('*')) signs.push(DEFAULT_SERVICE_ACCOUNT);
    for (const sign of signs) {
      await waitUntil(
        () => `kube-controller-manager; its log ends:\n${this.#controllerManager?.logTail()}`,
        () => this.admin.find(sign),
        { everyMs: 50 },
      );
    }
  }

  #logOf(name: string): string {
    return join(this.dataDir, `${name}.log`);
  }
}

interface Ports {
  etcd: number;
  etcdPeer: number;
  apiServer: number;
}

interface Prepared {
  dataDir: string;
  ports: Ports;
  ca: string;
  adminToken: string;
}

/** Ports, certificates, tokens and kubeconfigs: all that the servers need to start. */
async function prepareDataDir(): Promise<Prepared> {
  const [dataDir, [etcd = 0, etcdPeer = 0, apiServer = 0], ca, frontProxyCa] = await Promise.all([
    mkdtemp(join(tmpdir(), 'teardown-gate-cluster-')),
    freePorts(3),
    createAuthority('control-plane-ca'),
    createAuthority('front-proxy-ca'),
  ]);
  const [serving, frontProxy] = await Promise.all([
    issueServer(ca, ['127.0.0.1', 'localhost', 'kubernetes.default.svc']),
    issueClient(frontProxyCa, 'front-proxy-client'),
  ]);
  const serviceAccounts = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const server = `https://127.0.0.1:${apiServer}`;
  const users = [CONTROLLER_MANAGER, 'admin', ...IDENTITIES].map((name) => ({
    name,
    token: randomBytes(24).toString('hex'),
  }));
  const tokens = users.map(
    ({ name, token }) => `${token},${name},${name}${name === 'admin' ? ',system:masters' : ''}`,
  );
  const files: Record<string, string> = {
    'ca.crt': ca.cert,
    'serving.crt': serving.cert,
    'serving.key': serving.key,
    'front-proxy-ca.crt': frontProxyCa.cert,
    'front-proxy.crt': frontProxy.cert,
    'front-proxy.key': frontProxy.key,
    'service-accounts.key': serviceAccounts.privateKey,
    'service-accounts.pub': serviceAccounts.publicKey,
    'audit-policy.yaml': AUDIT_POLICY,
    'tokens.csv': `${tokens.join('\n')}\n`,
  };
  for (const { name, token } of users) {
    const connection: Connection = { server, ca: ca.cert, token };
    const file = name === CONTROLLER_MANAGER ? 'controller-manager' : name;
    files[`${file}.kubeconfig`] = writeKubeconfigText('control-plane', name, connection);
  }
  await Promise.all(
    Object.entries(files).map(([name, text]) =>
      writeFile(join(dataDir, name), text, { mode: 0o600 }),
    ),
  );
  const adminToken = users.find(({ name }) => name === 'admin')?.token ?? '';
  return { dataDir, ports: { etcd, etcdPeer, apiServer }, ca: ca.cert, adminToken };
}

/** Who, what, when and the answer, without bodies: enough to prove that somebody wrote nothing. */
const AUDIT_POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  users: ["system:apiserver"]
- level: Metadata
`;

function etcdFlags(dataDir: string, ports: Ports): string[] {
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  const client = `http://127.0.0.1:${ports.etcd}`;
  return [
    `--data-dir=${join(dataDir, 'etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    '--unsafe-no-fsync', // nothing here has to survive a power cut
    '--log-level=warn',
  ];
}

function apiServerFlags(dataDir: string, ports: Ports): string[] {
  const file = (name: string): string => join(dataDir, name);
  return [
    `--etcd-servers=http://127.0.0.1:${ports.etcd}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    '--endpoint-reconciler-type=none', // loopback may not be in the endpoints of `kubernetes`
    `--secure-port=${ports.apiServer}`,
    `--cert-dir=${file('apiserver')}`,
    `--tls-cert-file=${file('serving.crt')}`,
    `--tls-private-key-file=${file('serving.key')}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--authorization-mode=RBAC',
    `--token-auth-file=${file('tokens.csv')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${file('service-accounts.pub')}`,
    `--service-account-signing-key-file=${file('service-accounts.key')}`,
    '--enable-aggregator-routing=true', // no kube-proxy: straight to the endpoints
    `--requestheader-client-ca-file=${file('front-proxy-ca.crt')}`,
    '--requestheader-allowed-names=front-proxy-client',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${file('front-proxy.crt')}`,
    `--proxy-client-key-file=${file('front-proxy.key')}`,
    `--audit-policy-file=${file('audit-policy.yaml')}`,
    `--audit-log-path=${file('audit.log')}`,
    '--v=1',
  ];
}

function controllerManagerFlags(dataDir: string): string[] {
  return [
    `--kubeconfig=${join(dataDir, 'controller-manager.kubeconfig')}`,
    '--secure-port=0', // nobody asks for its metrics
    '--leader-elect=true', // its Lease is evidence of a living controller manager
    '--use-service-account-credentials=true',
    `--service-account-private-key-file=${join(dataDir, 'service-accounts.key')}`,
    `--root-ca-file=${join(dataDir, 'ca.crt')}`,
    '--kube-api-qps=200',
    '--kube-api-burst=400',
    '--v=1',
  ];
}
