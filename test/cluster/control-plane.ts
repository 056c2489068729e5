import { rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { atProcessEnd } from './at-process-end.ts';
import { buildControlPlane, type KubernetesVersion, NEWEST_VERSION } from './build.ts';
import { Client, type Ref, waitForServer } from './client.ts';
import { type Ports, type Prepared, prepareDataDir } from './control-plane-files.ts';
import { apiServerFlags, controllerManagerFlags, etcdFlags } from './control-plane-flags.ts';
import {
  IDENTITIES,
  type Identity,
  identityObjects,
  MAY_CHANGE,
  type PERSON,
} from './identities.ts';
import { Server } from './processes.ts';
import { waitUntil } from './wait-until.ts';

export interface ControlPlaneOptions {
  version?: KubernetesVersion;
  /** As for `--controllers`; for example `['*', '-pod-garbage-collector-controller']`. */
  controllers?: readonly string[];
  apiServerFlags?: readonly string[];
  /** Hears what takes long (the first build). */
  say?: (line: string) => void;
}

const LEADER_LEASE: Ref = {
  ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
  namespace: 'kube-system',
  name: 'kube-controller-manager',
};
const DEFAULT_SERVICE_ACCOUNT: Ref = {
  ...{ apiVersion: 'v1', kind: 'ServiceAccount' },
  namespace: 'default',
  name: 'default',
};
const POLITE_MS = 3_000;
const RESTART_MS = 1_000;
const ATTEMPTS = 4;

const running = new Set<ControlPlane>();
let endsWithProcess = false;

export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const version = options.version ?? NEWEST_VERSION;
  const binary = await buildControlPlane(version, options.say);
  for (let attempt = 1; ; attempt++) {
    const plane = await ControlPlane.prepare(binary, version, options);
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

/** No servers and no data stay behind. */
function endWithProcess(): void {
  if (endsWithProcess) return;
  endsWithProcess = true;
  atProcessEnd(() => {
    for (const plane of running) plane.kill();
    running.clear();
  });
}

/** etcd, kube-apiserver and kube-controller-manager on loopback, with a data folder of their own. */
export class ControlPlane {
  readonly version: KubernetesVersion;
  readonly server: string;
  readonly dataDir: string;
  /** JSON lines, one event per request: the witness of who did what. */
  readonly auditLog: string;
  /** As a member of system:masters. */
  readonly admin: Client;
  /** Makes etcd keys readable, for faults that the API does not let anybody make. */
  readonly etcdEndpoint: string;
  readonly controllerManager: {
    /** Also where it has ended by itself, and starts again. */
    readonly running: boolean;
    start(controllers?: readonly string[]): Promise<void>;
    stop(): Promise<void>;
  };
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
    this.auditLog = join(prepared.dataDir, 'audit.log');
    this.server = `https://127.0.0.1:${prepared.ports.apiServer}`;
    this.etcdEndpoint = `http://127.0.0.1:${prepared.ports.etcd}`;
    const isRunning = (): boolean => this.#controllerManager?.isWanted ?? false;
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
  ): Promise<ControlPlane> {
    return new ControlPlane(binary, version, options, await prepareDataDir());
  }

  async start(): Promise<void> {
    this.#etcd = this.#launch('etcd', etcdFlags(this.dataDir, this.#ports));
    this.#launchApiServer();
    await this.#apiServerReady();
    this.#launchControllerManager(this.#options.controllers);
    await Promise.all(IDENTITIES.map((one) => MAY_CHANGE.includes(one) || this.bind(one)));
    await this.#controllersReady();
  }

  /** Gives one of the identities its permissions. */
  async bind(identity: Identity): Promise<void> {
    const options = { fieldManager: 'teardown-gate-tests' };
    for (const object of identityObjects([identity])) await this.admin.apply(object, options);
  }

  /** Path of a kubeconfig for this user. */
  kubeconfig(user: Identity | 'admin' | typeof PERSON): string {
    return join(this.dataDir, `${user}.kubeconfig`);
  }

  lostAPort(): boolean {
    return [this.#etcd, this.#apiServer].some((server) => server?.lostItsPort());
  }

  /** On the same port. And the controller manager with it: it ends when it could not renew its Lease for 10 s. */
  async restartApiServer(): Promise<void> {
    const { running } = this.controllerManager;
    if (running) await this.controllerManager.stop();
    await this.#apiServer?.stop(POLITE_MS);
    this.#launchApiServer();
    await this.#apiServerReady();
    if (running) await this.controllerManager.start();
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

  #launch(name: string, flags: readonly string[], died?: () => void): Server {
    return Server.start(this.#binary, name, flags, this.#logOf(name), died);
  }

  #launchApiServer(): void {
    const flags = apiServerFlags(this.dataDir, this.#ports);
    const more = this.#options.apiServerFlags ?? [];
    this.#apiServer = this.#launch('kube-apiserver', [...flags, ...more]);
  }

  /** It ends by itself when a busy machine keeps it from renewing its Lease; then it starts again, as a kubelet would do it. */
  #launchControllerManager(controllers: readonly string[] = ['*']): void {
    const flags = [
      ...controllerManagerFlags(this.dataDir),
      `--controllers=${controllers.join(',')}`,
    ];
    this.#controllerManager = this.#launch('kube-controller-manager', flags, () => {
      setTimeout(() => {
        if (running.has(this)) this.#launchControllerManager(controllers);
      }, RESTART_MS);
    });
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
