import { chmodSync } from 'node:fs';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { type ApiServer, startApiServer } from '../stub/api-server.ts';
import { base64, createAuthority, issue } from '../stub/certificates.ts';
import { type FaultRule, startFaultProxy } from '../stub/fault-proxy.ts';
import { reply } from '../stub/faults.ts';
import { startGithub } from '../stub/github.ts';
import { leaksIn, plantedSecret } from '../stub/planted.ts';
import { readRecording } from '../stub/recordings.ts';
import { runStep } from '../stub/runner.ts';
import { runTerminal } from '../stub/terminal.ts';
import { Bench, everythingWritten, misdeeds, NAME } from './bench.ts';

/** Secrets in every place that can hold one, searched for in everything that leaves the process. */

const bench = new Bench();
afterAll(() => bench.remove());

interface Planting {
  form: string;
  /** With the token that the server takes, where the form has one. */
  user: (token: string) => JsonObject;
  cluster?: JsonObject;
  /** Changes the address of the server. */
  address?: (url: string) => string;
  outcome: 'stuck' | 'error';
  env?: () => Record<string, string>;
}

function plugin(script: string): string {
  const path = bench.file(`#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o700);
  return path;
}

function exec(command: string, more: JsonObject = {}): JsonObject {
  const apiVersion = 'client.authentication.k8s.io/v1';
  return { exec: { apiVersion, command, interactiveMode: 'Never', ...more } };
}

function credential(status: JsonObject): string {
  return JSON.stringify({
    kind: 'ExecCredential',
    apiVersion: 'client.authentication.k8s.io/v1',
    status,
  });
}

const withUserInfo = (url: string): string => url.replace('://', `://admin:${plantedSecret()}@`);

const PLANTINGS: readonly Planting[] = [
  { form: 'a token', user: (token) => ({ token }), outcome: 'stuck' },
  { form: 'a refused token', user: () => ({ token: plantedSecret() }), outcome: 'error' },
  {
    form: 'a password',
    user: () => ({ username: 'admin', password: plantedSecret() }),
    outcome: 'error',
  },
  {
    form: 'a token file',
    user: (token) => ({ tokenFile: bench.file(`${token}\n`) }),
    outcome: 'stuck',
  },
  {
    form: 'the output of a plugin',
    user: (token) => exec(plugin(`cat ${bench.file(credential({ token }))}`)),
    outcome: 'stuck',
  },
  {
    form: 'the errors of a plugin',
    user: () =>
      exec(
        plugin(
          `echo "POST https://robot:${plantedSecret()}@login.example.com Authorization: Bearer ${plantedSecret()}" >&2; exit 1`,
        ),
      ),
    outcome: 'error',
  },
  {
    form: 'the environment and the arguments of a plugin that repeats them',
    user: () =>
      exec(plugin('echo "$CLIENT_SECRET $SETTINGS $@" >&2; exit 1'), {
        env: [
          { name: 'CLIENT_SECRET', value: plantedSecret() },
          { name: 'SETTINGS', value: plantedSecret() },
        ],
        args: [
          ...['--client-secret', plantedSecret(), `--token=${plantedSecret()}`, plantedSecret()],
          ...[`-p${plantedSecret()}`, `echo "x:${plantedSecret()}"`, `KEY=${plantedSecret()}`],
        ],
      }),
    outcome: 'error',
  },
  {
    form: 'the user info of the server',
    user: (token) => ({ token }),
    address: withUserInfo,
    outcome: 'stuck',
  },
  {
    form: 'the password of a proxy that nobody runs',
    user: (token) => ({ token }),
    cluster: { 'proxy-url': `http://robot:${plantedSecret()}@127.0.0.1:9` },
    outcome: 'error',
  },
  {
    form: 'the password of a proxy in the environment',
    user: (token) => ({ token }),
    address: () => 'https://10.255.255.1:6443',
    env: () => ({ HTTPS_PROXY: `http://robot:${plantedSecret()}@127.0.0.1:9` }),
    outcome: 'error',
  },
];

/** What a careless server or gateway says: everything that it was sent. */
const ECHO: FaultRule = {
  request: new RegExp(`namespaces/${NAME}/(configmaps|pods|services)`),
  fault: (exchange) => {
    const text = `upstream error, request was ${JSON.stringify(exchange.headers)}`;
    return reply(500, text)(exchange);
  },
};

function serve(token: string): Promise<ApiServer> {
  return startApiServer({ recording: readRecording('S4'), token });
}

describe('a secret', () => {
  // They mostly wait for each other's servers.
  test.concurrent.for(PLANTINGS)(
    'in $form is printed nowhere',
    async (planting, { onTestFinished }) => {
      const token = plantedSecret();
      const server = await serve(token);
      const proxy = await startFaultProxy({ target: server.url, rules: [ECHO] });
      const github = await startGithub();
      onTestFinished(async () => {
        for (const each of [proxy, github, server]) await each.close();
      });
      const { user, cluster = {}, address = (url) => url } = planting;
      const kubeconfig = bench.kubeconfig({
        server: address(proxy.url),
        cluster,
        user: user(token),
      });
      const env = { RUNNER_DEBUG: '1', ...planting.env?.() };

      const isInTerminal = /^(a token|the errors of a plugin)$/.test(planting.form);
      const args = [NAME, '--now', '--kubeconfig', kubeconfig];
      const [run, terminal] = await Promise.all([
        runStep({
          inputs: { namespace: NAME, timeout: '1s', comment: 'always', kubeconfig },
          event: { name: 'pull_request', payload: { pull_request: { number: 5 } } },
          githubApiUrl: github.url,
          token: github.token,
          env,
        }),
        isInTerminal ? runTerminal(args, env) : undefined,
      ]);

      expect(run.outputs['outcome'], run.stdout).toBe(planting.outcome);
      // Also of a gate that could not work.
      expect(github.commentsOn(5)).toHaveLength(1);
      expect(misdeeds(run, [github.token])).toEqual([]);
      expect(leaksIn(everythingWritten(run, github, 5), [github.token])).toEqual([]);
      if (terminal === undefined) return;
      expect(terminal.exitCode).toBe(planting.outcome === 'stuck' ? 1 : 2);
      expect(leaksIn(terminal.stdout + terminal.stderr, [github.token])).toEqual([]);
    },
  );

  test('in a client key is printed nowhere, also if the key cannot be used', async () => {
    const authority = await createAuthority('cluster');
    const client = await issue(authority);
    const lines = client.key.split('\n').filter((line) => line !== '' && !line.startsWith('-----'));
    const broken = client.key.replace(lines[1] ?? '', 'x'.repeat(64));

    for (const key of [client.key, broken]) {
      const run = await runStep({
        inputs: {
          namespace: NAME,
          kubeconfig: bench.kubeconfig({
            server: 'https://127.0.0.1:9',
            cluster: { 'certificate-authority-data': base64(authority.cert) },
            user: {
              'client-certificate-data': base64(client.cert),
              'client-key-data': base64(key),
            },
          }),
        },
        env: { RUNNER_DEBUG: '1' },
      });

      expect(run.outputs['outcome']).toBe('error');
      expect(misdeeds(run, [lines[0] ?? '', base64(key)])).toEqual([]);
    }
  });

  test('in the token for GitHub is printed nowhere, although GitHub repeats it', async () => {
    const token = plantedSecret();
    const server = await serve(token);
    const github = await startGithub();
    onTestFinished(async () => {
      for (const each of [github, server]) await each.close();
    });
    github.fail({
      request: /./,
      answer: { status: 403, body: { message: `Bad token ${github.token}, Bearer ${token}` } },
    });

    const run = await runStep({
      inputs: {
        namespace: NAME,
        timeout: '1s',
        comment: 'always',
        kubeconfig: bench.kubeconfig({ server: server.url, user: { token } }),
      },
      event: { name: 'pull_request', payload: { pull_request: { number: 5 } } },
      githubApiUrl: github.url,
      token: github.token,
      env: { RUNNER_DEBUG: '1' },
    });

    expect(run.stdout).toMatch(/403 .*\*\*\*/);
    expect(run.outputs['outcome']).toBe('stuck');
    expect(misdeeds(run, [github.token])).toEqual([]);
  });

  test('would be found: whole, in part and in base64', () => {
    const secret = plantedSecret();
    for (const text of [
      secret,
      secret.slice(0, 20),
      ...['', 'a', 'ab'].map((before) => Buffer.from(`${before}${secret}`).toString('base64')),
    ]) {
      expect(leaksIn(`before ${text} after`)).not.toEqual([]);
    }
    expect(leaksIn('nothing of the kind')).toEqual([]);
  });
});
