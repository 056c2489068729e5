import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  arrayAt,
  isObject,
  type Json,
  type JsonObject,
  numberAt,
  stringAt,
  stringsAt,
  valueAt,
} from '../../src/base/json.ts';
import { escapeForRegExp } from '../../src/base/text.ts';
import type { Client, KubeObject, Ref } from '../cluster/client.ts';
import { writeKubeconfigText } from '../cluster/kubeconfig.ts';
import { serveContainerLogs } from '../cluster/servers/container-logs.ts';
import { machineAddress } from '../cluster/servers/https.ts';
import { bind, reportNode } from '../cluster/servers/stand-in.ts';
import type { World } from '../cluster/world.ts';

export interface KubeletOptions {
  node: string;
  /** Where the files of its pods live, until it ends. */
  folder: string;
  /** Where the logs of its pods stay. */
  logs: string;
  /** The program in an image, as its entry point; undefined: its containers only seem to run. */
  entryPoint(image: string): readonly string[] | undefined;
}

const STEP_MS = 300;
const PROBE_EVERY_MS = 1_000;
const RENEW_EVERY_MS = 8_000;
/** A real kubelet begins with 10 s and goes up to five minutes. */
const LONGEST_BACK_OFF_MS = 10_000;
/** A real one gives 30 s unless the pod says otherwise. */
const LONGEST_GRACE_MS = 5_000;

/**
 * A node whose kubelet runs the programs of its pods as processes of this machine: each with a token of its
 * pod's ServiceAccount, its own host name, its volumes in a folder. Pods are Ready when their own probes say
 * so, crash and are restarted, and end when they are deleted. There is no isolation: ports must differ.
 */
export async function startKubelet(world: World, options: KubeletOptions): Promise<void> {
  const { client } = world;
  await world.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: options.node } });
  await reportNode(client, options.node, 'True');
  const runs = new Map<string, PodRun>();
  await serveContainerLogs(world, options.node, ({ namespace, pod }) => {
    const file = join(options.logs, `${namespace}_${pod}.log`);
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  });
  const leash = holdLeash();
  const stop = new AbortController();
  const working = work(client, options, runs, leash, stop.signal);
  world.atEnd(async () => {
    stop.abort();
    await working;
    await Promise.all([...runs.values()].map((run) => run.stop(0)));
    leash.end();
    await rm(options.folder, { recursive: true, force: true, maxRetries: 5 });
  });
}

async function work(
  client: Client,
  options: KubeletOptions,
  runs: Map<string, PodRun>,
  leash: Leash,
  stop: AbortSignal,
): Promise<void> {
  let renewedAt = Date.now();
  while (!stop.aborted) {
    if (Date.now() - renewedAt > RENEW_EVERY_MS) {
      renewedAt = Date.now();
      await reportNode(client, options.node, 'True').catch(() => {});
    }
    const pods = await client.list('v1', 'Pod').catch(() => undefined);
    if (pods) {
      for (const pod of pods) {
        const uid = stringAt(pod, 'metadata', 'uid') ?? '';
        const run = runs.get(uid) ?? new PodRun(client, options, leash, pod);
        runs.set(uid, run);
        run.look(pod);
      }
      const there = new Set(pods.map((pod) => stringAt(pod, 'metadata', 'uid')));
      for (const [uid, run] of runs) {
        if (there.has(uid)) continue;
        runs.delete(uid);
        await run.stop(0);
      }
    }
    await sleep(STEP_MS, undefined, { signal: stop }).catch(() => {});
  }
}

/** One pod on this node. */
class PodRun {
  readonly #client: Client;
  readonly #options: KubeletOptions;
  readonly #leash: Leash;
  readonly #ref: Ref;
  readonly #uid: string;
  readonly #folder: string;
  #busy = false;
  #child: ChildProcess | undefined;
  #startedAt = 0;
  #startAt = 0;
  #restarts = 0;
  #probedAt = 0;
  #ready = false;
  #terminated: JsonObject | undefined;
  #told = '';
  readonly #written = new Map<string, string>();

  constructor(client: Client, options: KubeletOptions, leash: Leash, pod: KubeObject) {
    const { name, namespace = '' } = pod.metadata;
    this.#client = client;
    this.#options = options;
    this.#leash = leash;
    this.#ref = { apiVersion: 'v1', kind: 'Pod', namespace, name };
    this.#uid = stringAt(pod, 'metadata', 'uid') ?? '';
    // As the kubelet's own; a longer name would leave no room for the path of a socket.
    this.#folder = join(options.folder, this.#uid);
  }

  /** Does what there is to do, unless it is still at it. Whatever fails is tried again. */
  look(pod: KubeObject): void {
    if (this.#busy) return;
    this.#busy = true;
    this.#sync(pod)
      .catch(() => {})
      .finally(() => {
        this.#busy = false;
      });
  }

  async stop(graceMs: number): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(graceMs > 0 ? 'SIGTERM' : 'SIGKILL');
    const impatient = setTimeout(() => child.kill('SIGKILL'), graceMs);
    await ended;
    clearTimeout(impatient);
  }

  async #sync(pod: KubeObject): Promise<void> {
    const node = stringAt(pod, 'spec', 'nodeName');
    if (pod.metadata['deletionTimestamp'] !== undefined) {
      if (node !== this.#options.node) return;
      const seconds = numberAt(pod, 'metadata', 'deletionGracePeriodSeconds') ?? 30;
      await this.stop(Math.min(seconds * 1_000, LONGEST_GRACE_MS));
      await this.#client.delete(this.#ref, { gracePeriodSeconds: 0, uid: this.#uid });
      return;
    }
    if (node === undefined) return bind(this.#client, this.#ref, this.#options.node);
    if (node !== this.#options.node) return;
    const container = valueAt(pod, 'spec', 'containers', 0);
    const entryPoint = this.#options.entryPoint(stringAt(container, 'image') ?? '');
    if (entryPoint !== undefined) {
      await this.#writeVolumes(pod);
      if (this.#child === undefined && Date.now() >= this.#startAt) {
        await this.#start(pod, container, entryPoint);
      }
      await this.#probe(container);
    }
    await this.#report(pod, entryPoint === undefined);
  }

  async #start(
    pod: KubeObject,
    container: Json | undefined,
    [program = '', ...before]: readonly string[],
  ): Promise<void> {
    const env = await this.#environment(pod, container);
    const given = [...stringsAt(container, 'command').slice(1), ...stringsAt(container, 'args')];
    const args = [...before, ...given].map((arg) => expand(this.#localPaths(arg, container), env));
    const log = openSync(this.#logFile, 'a');
    const child = spawn(program, args, { cwd: this.#folder, env, stdio: ['ignore', log, log] });
    closeSync(log);
    this.#child = child;
    this.#startedAt = Date.now();
    const { pid = 0 } = child;
    if (pid > 0) this.#leash.hold(pid);
    child.once('error', () => this.#ended(child, container, 127));
    child.once('exit', (code) => {
      this.#leash.release(pid);
      this.#ended(child, container, code ?? 137);
    });
  }

  #ended(child: ChildProcess, container: Json | undefined, exitCode: number): void {
    if (this.#child !== child) return; // it was stopped
    const says = stringAt(container, 'terminationMessagePolicy') === 'FallbackToLogsOnError';
    this.#child = undefined;
    this.#ready = false;
    this.#terminated = {
      exitCode,
      reason: exitCode === 0 ? 'Completed' : 'Error',
      startedAt: time(this.#startedAt),
      finishedAt: time(),
      ...(says ? { message: this.#logTail() } : {}),
    };
    this.#restarts++;
    this.#startAt = Date.now() + Math.min(1_000 * 2 ** (this.#restarts - 1), LONGEST_BACK_OFF_MS);
  }

  /** As the container would see it; a kubeconfig stands for the files of its ServiceAccount. */
  async #environment(
    pod: KubeObject,
    container: Json | undefined,
  ): Promise<Record<string, string>> {
    const kubeconfig = join(this.#folder, 'kubeconfig');
    await writeFile(kubeconfig, await this.#kubeconfig(pod), { mode: 0o600 });
    // The rest of what is mounted there is in the kubeconfig.
    await mkdir(join(this.#folder, 'serviceaccount'), { recursive: true });
    await writeFile(join(this.#folder, 'serviceaccount', 'namespace'), this.#ref.namespace ?? '');
    const env: Record<string, string> = {
      PATH: process.env['PATH'] ?? '',
      HOME: this.#folder,
      TMPDIR: this.#folder,
      HOSTNAME: this.#ref.name,
      POD_NAMESPACE: this.#ref.namespace ?? '',
      KUBECONFIG: kubeconfig,
    };
    for (const entry of arrayAt(container, 'env')) {
      const field = stringAt(entry, 'valueFrom', 'fieldRef', 'fieldPath');
      // Of Secrets and ConfigMaps, only what is optional is asked for here, and none of it is there.
      if (field === undefined && valueAt(entry, 'valueFrom') !== undefined) continue;
      const value =
        field === undefined
          ? (stringAt(entry, 'value') ?? '')
          : (stringAt(withAddress(pod), ...field.split('.')) ?? '');
      env[stringAt(entry, 'name') ?? ''] = expand(this.#localPaths(value, container), env);
    }
    return env;
  }

  async #kubeconfig(pod: KubeObject): Promise<string> {
    const { namespace = '', name } = this.#ref;
    const account = stringAt(pod, 'spec', 'serviceAccountName') ?? 'default';
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name, uid: this.#uid };
    const token = await this.#client.tokenOf(namespace, account, { boundObjectRef });
    const { server, ca } = this.#client.connection;
    return writeKubeconfigText('in-cluster', { server, ca, token }, namespace);
  }

  /** Secrets and ConfigMaps follow what the cluster has, as they do in a real pod. */
  async #writeVolumes(pod: KubeObject): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    for (const volume of arrayAt(pod, 'spec', 'volumes')) {
      const folder = join(this.#folder, stringAt(volume, 'name') ?? '');
      await mkdir(folder, { recursive: true });
      const secret = stringAt(volume, 'secret', 'secretName');
      const config = stringAt(volume, 'configMap', 'name');
      const name = secret ?? config;
      if (name === undefined) continue;
      const kind = secret === undefined ? 'ConfigMap' : 'Secret';
      const { namespace = '' } = this.#ref;
      const found = await this.#client.find({ apiVersion: 'v1', kind, namespace, name });
      const source = valueAt(volume, secret === undefined ? 'configMap' : 'secret');
      if (!found && isObject(source) && source['optional'] !== true) {
        throw new Error(`${kind} ${name} is not there`);
      }
      const data = isObject(found?.['data']) ? found['data'] : {};
      for (const [key, value] of Object.entries(data)) {
        const file = join(folder, key);
        // Who watches the file would read it half written, several times a second.
        if (this.#written.get(file) === value) continue;
        const encoding = secret === undefined ? 'utf8' : 'base64';
        await writeFile(file, Buffer.from(String(value), encoding));
        this.#written.set(file, String(value));
      }
    }
  }

  /** What is mounted at a path in the container has another path here. */
  #localPaths(text: string, container: Json | undefined): string {
    let local = text;
    for (const mount of arrayAt(container, 'volumeMounts')) {
      const path = (stringAt(mount, 'mountPath') ?? '').replace(/\/$/, '');
      const here = join(this.#folder, stringAt(mount, 'name') ?? '');
      local = local.replace(
        new RegExp(`(^|[=,])${escapeForRegExp(path)}(?=/|,|$)`, 'g'),
        `$1${here}`,
      );
    }
    return local;
  }

  async #probe(container: Json | undefined): Promise<void> {
    if (this.#child === undefined || Date.now() - this.#probedAt < PROBE_EVERY_MS) return;
    this.#probedAt = Date.now();
    const probe = valueAt(container, 'readinessProbe', 'httpGet');
    const named = stringAt(probe, 'port');
    const port =
      numberAt(probe, 'port') ??
      arrayAt(container, 'ports')
        .filter((one) => stringAt(one, 'name') === named)
        .map((one) => numberAt(one, 'containerPort'))[0];
    const isTls = stringAt(probe, 'scheme') === 'HTTPS';
    this.#ready =
      port === undefined ? true : await answersWell(isTls, port, stringAt(probe, 'path') ?? '/');
  }

  async #report(pod: KubeObject, seeming: boolean): Promise<void> {
    const running = seeming || this.#child !== undefined;
    const ready = seeming || (this.#child !== undefined && this.#ready);
    const key = JSON.stringify([running, ready, this.#restarts]);
    if (key === this.#told) return;
    await this.#client.patchStatus(this.#ref, this.#status(pod, running, ready), {
      fieldManager: 'kubelet',
    });
    this.#told = key;
  }

  #status(pod: KubeObject, running: boolean, ready: boolean): JsonObject {
    const backOff = `back-off ${Math.max(1, Math.round((this.#startAt - Date.now()) / 1_000))}s`;
    const notReady = { reason: 'ContainersNotReady', message: 'containers with unready status' };
    const { namespace, name } = this.#ref;
    const stateOf = (container: string): JsonObject => {
      if (running) return { running: { startedAt: time(this.#startedAt || Date.now()) } };
      const message = `${backOff} restarting failed container=${container} pod=${name}_${namespace}`;
      return { waiting: { reason: 'CrashLoopBackOff', message } };
    };
    const address = machineAddress();
    return {
      ...{ phase: 'Running', hostIP: address, podIP: address, podIPs: [{ ip: address }] },
      startTime: stringAt(pod, 'status', 'startTime') ?? time(),
      conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => {
        const holds = ready || !type.endsWith('Ready');
        const base = { type, status: holds ? 'True' : 'False', lastTransitionTime: time() };
        return holds ? base : { ...base, ...notReady };
      }),
      containerStatuses: arrayAt(pod, 'spec', 'containers').map((one) => ({
        ...{ name: stringAt(one, 'name') ?? '', image: stringAt(one, 'image') ?? '', imageID: '' },
        ...{ ready, started: running, restartCount: this.#restarts },
        state: stateOf(stringAt(one, 'name') ?? ''),
        lastState: this.#terminated === undefined ? {} : { terminated: this.#terminated },
      })),
    };
  }

  get #logFile(): string {
    return join(this.#options.logs, `${this.#ref.namespace}_${this.#ref.name}.log`);
  }

  #logTail(): string {
    return readFileSync(this.#logFile, 'utf8').trimEnd().split('\n').slice(-3).join('\n');
  }
}

/** `$(NAME)` in arguments and values, as Kubernetes has it. */
function expand(text: string, env: Record<string, string>): string {
  return text.replace(/\$\(([^)]+)\)/g, (whole, name: string) => env[name] ?? whole);
}

/** Its address is in its status, which the pod that was listed may not have yet. */
function withAddress(pod: KubeObject): JsonObject {
  const address = machineAddress();
  return { ...pod, status: { podIP: address, hostIP: address } };
}

function answersWell(isTls: boolean, port: number, path: string): Promise<boolean> {
  const send = isTls ? httpsRequest : httpRequest;
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, path, timeout: 1_000, rejectUnauthorized: false };
    const asked = send(options, (answer) => {
      answer.resume();
      const { statusCode = 500 } = answer;
      resolve(statusCode >= 200 && statusCode < 400);
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(false));
    asked.end();
  });
}

function time(ms = Date.now()): string {
  return new Date(ms).toISOString().replace(/\.\d+/, '');
}

interface Leash {
  hold(pid: number): void;
  /** It has ended: its number may be another program's soon. */
  release(pid: number): void;
  end(): void;
}

/** However hard the tests die, the pipe closes, and no program outlives them. */
function holdLeash(): Leash {
  const script = `pids=; while read -r what pid; do case $what in
hold) pids="$pids,$pid," ;; release) pids="\${pids%%,$pid,*}\${pids#*,$pid,}" ;; esac; done
IFS=,; kill -KILL $pids 2>/dev/null`;
  const shell = spawn('sh', ['-c', script], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // Ctrl-C in a terminal must not end it first
  });
  shell.stdin?.on('error', () => {});
  return {
    hold: (pid) => shell.stdin?.write(`hold ${pid}\n`),
    release: (pid) => shell.stdin?.write(`release ${pid}\n`),
    end: () => shell.stdin?.end(),
  };
}
