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
import { Bench, misdeeds, NAME } from './bench.ts';

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

describe('logging in', () => {
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
});
