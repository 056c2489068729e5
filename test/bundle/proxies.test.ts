import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { closedPort } from '../adapter/servers/raw-server.ts';
import { type ApiServer, startApiServer } from '../stub/api-server.ts';
import { base64, createAuthority, issue, type KeyPair } from '../stub/certificates.ts';
import { type FaultProxy, startFaultProxy } from '../stub/fault-proxy.ts';
import { plantedSecret } from '../stub/planted.ts';
import { readRecording } from '../stub/recordings.ts';
import { runStep, type StepRun } from '../stub/runner.ts';
import { annotations, Bench, misdeeds, NAME } from './bench.ts';

/** The way to the API server through a real proxy; all the rules of NO_PROXY are a table elsewhere. */

const TINYPROXY = spawnSync('tinyproxy', ['-v']).status === 0;
/** Loopback never goes through a proxy: the server needs another address of this machine. */
const ADDRESS = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
const REASON = !TINYPROXY
  ? ' (skipped: tinyproxy is not installed)'
  : ADDRESS === undefined
    ? ' (skipped: this machine has only loopback)'
    : '';

const bench = new Bench();
const open: { close(): Promise<void> }[] = [];
const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const each of open.splice(0)) await each.close();
});
afterAll(() => bench.remove());

interface Tinyproxy {
  url: string;
  port: number;
  /** Hosts that it was asked to connect to. */
  asked(): string;
}

async function startTinyproxy(login?: { user: string; password: string }): Promise<Tinyproxy> {
  const port = await closedPort();
  const auth = login === undefined ? '' : `BasicAuth ${login.user} ${login.password}\n`;
  const log = bench.file('');
  const config = bench.file(
    `Port ${port}\nListen 127.0.0.1\nTimeout 60\nLogLevel Connect\nLogFile "${log}"\nMaxClients 50\n${auth}`,
  );
  const child = spawn('tinyproxy', ['-d', '-c', config], { stdio: 'ignore' });
  children.push(child);
  while (!(await isListening(port))) {
    if (child.exitCode !== null) throw new Error(`tinyproxy ended:\n${readFileSync(log, 'utf8')}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const userInfo = login === undefined ? '' : `${login.user}:${login.password}@`;
  return {
    url: `http://${userInfo}127.0.0.1:${port}`,
    port,
    asked: () => readFileSync(log, 'utf8'),
  };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

interface World {
  token: string;
  server: ApiServer;
  /** TLS on all addresses, with a certificate for ours. */
  front: FaultProxy;
  /** Where the gate goes. */
  url: string;
  authority: KeyPair;
}

async function world(): Promise<World> {
  const token = plantedSecret();
  const server = await startApiServer({
    recording: readRecording('S4'),
    token,
  });
  const authority = await createAuthority('cluster');
  const tls = await issue(authority, { hosts: ['127.0.0.1', ADDRESS ?? 'localhost'] });
  const front = await startFaultProxy({ target: server.url, tls, host: '0.0.0.0' });
  open.unshift(front, server);
  const { port } = new URL(front.url);
  return { token, server, front, url: `https://${ADDRESS ?? '127.0.0.1'}:${port}`, authority };
}

function guard(
  { token, url, authority }: World,
  env: Record<string, string>,
  proxyUrl?: string,
): Promise<StepRun> {
  return runStep({
    inputs: {
      namespace: NAME,
      timeout: '1s',
      kubeconfig: bench.kubeconfig({
        server: url,
        cluster: {
          'certificate-authority-data': base64(authority.cert),
          ...(proxyUrl === undefined ? {} : { 'proxy-url': proxyUrl }),
        },
        user: { token },
      }),
    },
    env: { RUNNER_DEBUG: '1', ...env },
  });
}

describe.skipIf(REASON !== '')(`through tinyproxy${REASON}`, () => {
  test('of the environment, with a name and a password, also for the watch', async () => {
    const at = await world();
    const proxy = await startTinyproxy({ user: 'robot', password: plantedSecret() });

    const run = await guard(at, { https_proxy: proxy.url });

    expect(run.outputs['outcome'], run.stdout).toBe('stuck');
    expect(proxy.asked()).toContain(`CONNECT ${new URL(at.url).host}`);
    expect(at.front.lines.some((line) => line.includes('watch=1'))).toBe(true);
    expect(misdeeds(run)).toEqual([]);
  });

  test('of the kubeconfig, which has priority over the environment', async () => {
    const at = await world();
    const proxy = await startTinyproxy();

    const run = await guard(at, { HTTPS_PROXY: 'http://127.0.0.1:9', NO_PROXY: '*' }, proxy.url);

    expect(run.outputs['outcome'], run.stdout).toBe('stuck');
    expect(proxy.asked()).toContain(`CONNECT ${new URL(at.url).host}`);
  });
});

describe('without a proxy', () => {
  test('NODE_EXTRA_CA_CERTS adds a certificate authority', async () => {
    const at = await world();
    const extra = bench.file(at.authority.cert);
    const kubeconfig = bench.kubeconfig({ server: at.front.url, user: { token: at.token } });
    const inputs = { namespace: NAME, timeout: '1s', kubeconfig };

    const [without, withExtra] = await Promise.all([
      runStep({ inputs }),
      runStep({ inputs, env: { NODE_EXTRA_CA_CERTS: extra } }),
    ]);

    expect(annotations(without)).toEqual([
      expect.stringContaining('unknown certificate authority'),
    ]);
    expect(withExtra.outputs['outcome'], withExtra.stdout).toBe('stuck');
  });
});
