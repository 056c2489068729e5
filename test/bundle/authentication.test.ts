import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { base64, createAuthority, issue } from '../adapter/servers/certificates.ts';
import { type Recorded, startServer } from '../adapter/servers/http-server.ts';
import { type ApiServer, startApiServer } from '../stub/api-server.ts';
import { type FaultProxy, startFaultProxy } from '../stub/fault-proxy.ts';
import { unauthorized } from '../stub/faults.ts';
import { plantedSecret } from '../stub/planted.ts';
import { readRecording } from '../stub/recordings.ts';
import { runStep, type StepRun, startStep } from '../stub/runner.ts';
import { annotations, Bench, misdeeds, NAME } from './bench.ts';

/** That every way to log in reaches the wire; how each one behaves is tested on the transport itself. */

const bench = new Bench();
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});
afterAll(() => bench.remove());

async function serve(...tokens: string[]): Promise<ApiServer> {
  const admin = { username: 'admin', groups: ['system:masters'] };
  const server = await startApiServer({
    recording: readRecording('S4'),
    tokens: Object.fromEntries(tokens.map((token) => [token, admin])),
  });
  open.unshift(server);
  return server;
}

async function between(server: ApiServer, ...rules: Parameters<FaultProxy['add']>) {
  const proxy = await startFaultProxy({ target: server.url, rules });
  open.unshift(proxy);
  return proxy;
}

function guard(
  server: string,
  user: JsonObject,
  more: Partial<Parameters<typeof runStep>[0]> = {},
) {
  return {
    ...more,
    inputs: {
      namespace: NAME,
      timeout: '2s',
      kubeconfig: bench.kubeconfig({ server, user }),
      ...more.inputs,
    },
  };
}

/** A credential plugin that is a shell script. */
function plugin(script: string): string {
  const path = bench.file(`#!/bin/sh\n${script}\n`, { mode: 0o700 });
  chmodSync(path, 0o700);
  return path;
}

function exec(command: string, more: JsonObject = {}): JsonObject {
  return {
    exec: {
      apiVersion: 'client.authentication.k8s.io/v1',
      command,
      interactiveMode: 'IfAvailable',
      ...more,
    },
  };
}

function credential(token: string): string {
  return JSON.stringify({
    kind: 'ExecCredential',
    apiVersion: 'client.authentication.k8s.io/v1',
    status: { token },
  });
}

function expectStuck(run: StepRun): void {
  expect(run.outputs['outcome'], run.stdout).toBe('stuck');
  expect(misdeeds(run)).toEqual([]);
}

describe('logging in', { timeout: 120_000 }, () => {
  test('with a token', async () => {
    const token = plantedSecret();
    const server = await serve(token);

    expectStuck(await runStep(guard(server.url, { token })));
  });

  test('with a client certificate', async () => {
    const authority = await createAuthority('cluster');
    const client = await issue(authority, { commonName: 'ci-robot' });
    const seen: Recorded[] = [];
    const server = await startServer(
      (request, response) => {
        seen.push(request);
        response.writeHead(404, { 'content-type': 'application/json' });
        response.end(
          JSON.stringify({
            kind: 'Status',
            reason: 'NotFound',
            details: { name: NAME, kind: 'namespaces' },
          }),
        );
      },
      { ...(await issue(authority)), clientCa: authority.cert },
    );

    const run = await runStep({
      inputs: {
        namespace: NAME,
        kubeconfig: bench.kubeconfig({
          server: server.url,
          cluster: { 'certificate-authority-data': base64(authority.cert) },
          user: {
            'client-certificate-data': base64(client.cert),
            'client-key-data': base64(client.key),
          },
        }),
      },
    });

    expect(run.outputs['outcome'], run.stdout).toBe('not-found');
    expect(new Set(seen.map(({ clientName }) => clientName))).toEqual(new Set(['ci-robot']));
    expect(misdeeds(run, [client.key.split('\n')[1] ?? ''])).toEqual([]);
  });

  test('with a token file that is replaced in the middle of the wait', async () => {
    const [first, second] = [plantedSecret(), plantedSecret()];
    const server = await serve(first, second);
    const tokenFile = bench.file(`${first}\n`);
    const proxy = await between(server);
    const step = await startStep(guard(proxy.url, { tokenFile }, { inputs: { timeout: '6s' } }));
    await step.says(/waiting up to/);

    // The new one is written, and from now on the old one is refused.
    writeFileSync(tokenFile, `${second}\n`);
    proxy.add({
      request: /./,
      fault: (exchange) => {
        if (exchange.headers.authorization === `Bearer ${first}`) return unauthorized(exchange);
        return exchange.pass();
      },
    });
    const run = await step.ended;

    expectStuck(run);
    expect(run.report?.namespaces[0]?.rootCauses).toHaveLength(1);
  });

  test('with a plugin, again after a 401 in the middle of the wait', async () => {
    const [first, second] = [plantedSecret(), plantedSecret()];
    const server = await serve(first, second);
    const file = bench.file(credential(first));
    const calls = join(bench.folder, 'plugin-calls');
    const command = plugin(`echo "$KUBERNETES_EXEC_INFO" >> ${calls}\ncat ${file}`);
    const proxy = await between(server);
    const step = await startStep(guard(proxy.url, exec(command), { inputs: { timeout: '6s' } }));
    await step.says(/waiting up to/);

    writeFileSync(file, credential(second));
    proxy.add({
      request: /./,
      fault: (exchange) => {
        if (exchange.headers.authorization === `Bearer ${first}`) return unauthorized(exchange);
        return exchange.pass();
      },
    });

    expectStuck(await step.ended);
  });

  test('with a plugin that gives the same refused token again', async () => {
    const token = plantedSecret();
    const server = await serve('another');
    const command = plugin(`cat ${bench.file(credential(token))}`);

    const run = await runStep(guard(server.url, exec(command)));

    expect(annotations(run)).toEqual([expect.stringContaining('401 Unauthorized')]);
    expect(run.outputs['outcome']).toBe('error');
    expect(misdeeds(run)).toEqual([]);
  });

  test('with a plugin that fails: its last words are shown, without secrets', async () => {
    const server = await serve('another');
    const command = plugin(`echo "AccessDenied: Bearer ${plantedSecret()}" >&2; exit 3`);

    const run = await runStep(guard(server.url, exec(command)));

    expect(annotations(run)).toEqual([
      expect.stringMatching(
        /credential plugin .* failed with exit code 3: AccessDenied: Bearer \*\*\*/,
      ),
    ]);
    expect(misdeeds(run)).toEqual([]);
  });

  test('with a plugin that is not installed', async () => {
    const user = exec('no-such-auth-plugin', { installHint: 'Install it with gcloud.' });

    const run = await runStep(guard('http://127.0.0.1:9', user));

    expect(annotations(run)).toEqual([
      expect.stringMatching(/plugin "no-such-auth-plugin" of user "recorded" is not installed/),
    ]);
    expect(run.stdout).toContain('Install it with gcloud.');
  });

  test('with a plugin that needs a terminal', async () => {
    const run = await runStep(
      guard('http://127.0.0.1:9', exec('kubelogin', { interactiveMode: 'Always' })),
    );

    expect(annotations(run)).toEqual([expect.stringMatching(/needs a terminal/)]);
  });

  test('as another user, in groups and with more', async () => {
    const token = plantedSecret();
    const server = await serve(token);
    const headers: Record<string, string | string[] | undefined>[] = [];
    const proxy = await between(server, {
      request: /./,
      fault: (exchange) => {
        headers.push(exchange.headers);
        exchange.pass();
      },
    });

    const run = await runStep(
      guard(proxy.url, {
        token,
        as: 'system:serviceaccount:ci:gate',
        'as-uid': '1234',
        'as-groups': ['one', 'two'],
        'as-user-extra': { 'example.com/scope': ['narrow'] },
      }),
    );

    expectStuck(run);
    expect(headers[0]).toMatchObject({
      authorization: `Bearer ${token}`,
      'impersonate-user': 'system:serviceaccount:ci:gate',
      'impersonate-uid': '1234',
      'impersonate-group': 'one, two',
      'impersonate-extra-example.com%2fscope': 'narrow',
    });
  });

  test('by several files in KUBECONFIG, merged as kubectl does', async () => {
    const token = plantedSecret();
    const server = await serve(token);
    const contexts = bench.file(
      JSON.stringify({
        'current-context': 'merged',
        contexts: [{ name: 'merged', context: { cluster: 'c', user: 'u' } }],
      }),
    );
    const clusters = bench.file(
      JSON.stringify({
        'current-context': 'ignored',
        clusters: [{ name: 'c', cluster: { server: server.url } }],
      }),
    );
    const users = bench.file(
      JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:9' } }],
        users: [{ name: 'u', user: { token } }],
      }),
    );

    const run = await runStep({
      inputs: { namespace: NAME, timeout: '2s' },
      env: { KUBECONFIG: [contexts, '/nonexistent/config', clusters, users].join(':') },
    });

    expectStuck(run);
    expect(run.stdout).toContain('context merged');
  });
});
