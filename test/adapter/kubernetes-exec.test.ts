import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createRedactor } from '../../src/base/redact.ts';
import { base64, createAuthority } from '../stub/certificates.ts';
import {
  connectTo,
  TestClock,
  type To,
  temporaryFolder,
  valueIn,
  writeFile,
} from './connect-to.ts';
import { accepting, json, namespace } from './servers/answers.ts';
import { startServer } from './servers/http-server.ts';

const PATH = '/api/v1/namespaces/demo';
const V1 = 'client.authentication.k8s.io/v1';
const answer = json(namespace('demo'));

/** A folder with an executable `plugin` in it. */
function pluginFolder(script: string): string {
  const folder = temporaryFolder();
  chmodSync(writeFile(folder, 'plugin', `#!/bin/sh\n${script}\n`), 0o755);
  return folder;
}

function credential(status: object): string {
  return `cat <<'END'\n${JSON.stringify({ kind: 'ExecCredential', apiVersion: V1, status })}\nEND`;
}

/** Gives token-1, token-2 and so on, one per run; `status` may have more fields. */
function counting(status = ''): string {
  return `cd "$(dirname "$0")"
echo run >> runs
n=$(wc -l < runs | tr -d ' ')
echo '{"kind":"ExecCredential","apiVersion":"${V1}","status":{"token":"token-number-'$n'"${status}}}'`;
}

function runsIn(folder: string): number {
  const file = join(folder, 'runs');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').length : 0;
}

function connectWith(server: string, folder: string, exec: object = {}, to: To = {}) {
  const command = join(folder, 'plugin');
  const user = { exec: { apiVersion: V1, command, interactiveMode: 'Never', ...exec } };
  return connectTo(server, { ...to, folder, user });
}

// The plugins of these tests are shell scripts.
describe.skipIf(process.platform === 'win32')('an exec plugin', () => {
  test('in a folder beside the kubeconfig gives the token, once for many calls', async () => {
    const folder = pluginFolder(counting());
    const server = await startServer(answer);
    const api = await connectWith(server.url, folder, { command: './plugin' });
    await Promise.all(Array.from({ length: 20 }, () => api.get(PATH)));
    expect(server.requests[0]?.headers.authorization).toBe('Bearer token-number-1');
    expect(runsIn(folder)).toBe(1);
  });

  test('is found on PATH, gets its arguments and environment, and not the inputs', async () => {
    const script = `printf '%s|' "$@" > "$SEEN"; env > "$SEEN.env"; ${credential({ token: 'token-0001' })}`;
    const folder = pluginFolder(script);
    const seen = join(folder, 'seen');
    const exec = {
      command: 'plugin',
      args: ['get-token', 'a b'],
      env: [{ name: 'SEEN', value: seen }],
    };
    const env = {
      PATH: `${folder}:${process.env['PATH']}`,
      AWS_PROFILE: 'ci',
      INPUT_GITHUB_TOKEN: 'ghs_0000',
    };
    const server = await startServer(answer);
    valueIn(await (await connectWith(server.url, folder, exec, { options: { env } })).get(PATH));
    expect(readFileSync(seen, 'utf8')).toBe('get-token|a b|');
    const passedOn = readFileSync(`${seen}.env`, 'utf8');
    expect(passedOn).toContain('AWS_PROFILE=ci');
    expect(passedOn).not.toContain('ghs_0000');
  });

  test.each([
    { provides: false, cluster: undefined },
    {
      provides: true,
      cluster: {
        server: 'SERVER/prefix',
        'tls-server-name': 'api.example.com',
        'certificate-authority-data': 'CA',
      },
    },
  ])('is told about the cluster if it asks for it: $provides', async ({ provides, cluster }) => {
    const folder = pluginFolder(
      `cd "$(dirname "$0")"; printf '%s' "$KUBERNETES_EXEC_INFO" > info; ${credential({ token: 'token-0001' })}`,
    );
    const server = await startServer(answer);
    const ca = base64((await createAuthority('ca')).cert);
    await connectWith(
      `${server.url}/prefix/`,
      folder,
      { provideClusterInfo: provides },
      { cluster: { 'certificate-authority-data': ca, 'tls-server-name': 'api.example.com' } },
    );
    const info = readFileSync(join(folder, 'info'), 'utf8');
    expect(JSON.parse(info.replace(server.url, 'SERVER').replace(ca, 'CA'))).toEqual({
      kind: 'ExecCredential',
      apiVersion: V1,
      spec: { interactive: false, ...(cluster === undefined ? {} : { cluster }) },
    });
  });

  describe('that fails', () => {
    test('is quoted without its secrets, on one line', async () => {
      const folder = pluginFolder(
        `echo "Error: login failed" >&2; echo "  tried eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhYmMifQ.sig0123 and hunter2-secret; $PHRASE" >&2; exit 3`,
      );
      const redactor = createRedactor();
      redactor.add('hunter2-secret');
      const exec = { env: [{ name: 'PHRASE', value: 'correct horse battery' }] };
      const connecting = connectWith('http://127.0.0.1:1', folder, exec, { options: { redactor } });
      await expect(connecting).rejects.toMatchObject({
        message: `the credential plugin "${folder}/plugin" of user "u" failed with exit code 3: Error: login failed tried *** and ***; ***`,
      });
    });

    test('was killed: the message has the signal', async () => {
      const connecting = connectWith('http://127.0.0.1:1', pluginFolder('kill -9 $$'));
      await expect(connecting).rejects.toThrow(/" failed with SIGKILL$/);
    });

    test('does not exist: the message has the install hint', async () => {
      const exec = { command: 'no-such-plugin', installHint: 'Get it at https://example.com\n' };
      const connecting = connectWith('http://127.0.0.1:1', temporaryFolder(), exec);
      await expect(connecting).rejects.toMatchObject({
        message: 'the credential plugin "no-such-plugin" of user "u" is not installed',
        hint: 'Get it at https://example.com',
      });
    });

    test('hangs: it is killed with its child processes, and named', async () => {
      const folder = pluginFolder(
        'cd "$(dirname "$0")"; echo "open https://login.example.com and enter the code" >&2; sleep 600 & echo $! > pid; wait',
      );
      const limits = { options: { pluginTimeoutMs: 3_000 } };
      const connecting = connectWith('http://127.0.0.1:1', folder, {}, limits);
      await expect(connecting).rejects.toMatchObject({
        message: `the credential plugin "${folder}/plugin" of user "u" gave no answer within 3 s and was stopped: open https://login.example.com and enter the code`,
        hint: expect.stringContaining('without a person'),
      });
      const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
      await expect.poll(() => isAlive(pid)).toBe(false);
    });

    test('is stopped with the run', async () => {
      const stop = new AbortController();
      const folder = pluginFolder('sleep 600');
      const options = { signal: stop.signal };
      const connecting = connectWith('http://127.0.0.1:1', folder, {}, { options });
      setTimeout(() => stop.abort(), 20);
      await expect(connecting).rejects.toMatchObject({
        message: `the credential plugin "${folder}/plugin" of user "u" was stopped, because the run was`,
      });
    });

    test.each([
      { what: 'nothing', script: 'true' },
      { what: 'text', script: 'echo secret-token-0001' },
      { what: 'other JSON', script: "echo '{}'" },
      { what: 'no credential', script: credential({}) },
      { what: 'half a certificate', script: credential({ clientCertificateData: 'x' }) },
      { what: 'megabytes', script: 'yes secret-token | head -c 3000000' },
    ])('prints $what', async ({ script }) => {
      const folder = pluginFolder(script);
      await expect(connectWith('http://127.0.0.1:1', folder)).rejects.toMatchObject({
        message: `the credential plugin "${folder}/plugin" of user "u" printed no ExecCredential with a token or a client certificate`,
      });
    });

    test('has a configuration that cannot run', async () => {
      const exec = { args: ['a\0b'] };
      await expect(connectWith('http://127.0.0.1:1', temporaryFolder(), exec)).rejects.toThrow(
        'of user "u" cannot be started (ERR_INVALID_ARG_VALUE)',
      );
    });
  });

  describe('is run again', () => {
    test('a minute before its credential ends', async () => {
      const clock = new TestClock();
      const ends = new Date(clock.now() + 600_000).toISOString();
      const folder = pluginFolder(counting(`,"expirationTimestamp":"${ends}"`));
      const server = await startServer(answer);
      const api = await connectWith(server.url, folder, {}, { options: { clock } });
      clock.advance(530_000);
      await api.get(PATH);
      expect(runsIn(folder)).toBe(1);
      clock.advance(20_000);
      await api.get(PATH);
      expect(runsIn(folder)).toBe(2);
      expect(server.requests.map((request) => request.headers.authorization)).toEqual([
        'Bearer token-number-1',
        'Bearer token-number-2',
      ]);
    });

    test('once after a 401, however many calls got one', async () => {
      const folder = pluginFolder(counting());
      const server = await startServer(accepting('token-number-2'));
      const api = await connectWith(server.url, folder);
      const results = await Promise.all(Array.from({ length: 8 }, () => api.get(PATH)));
      expect(results.every((result) => result.ok)).toBe(true);
      expect(runsIn(folder)).toBe(2);
    });
  });
});

/** Killed processes whose parent is gone may stay in the process table until somebody collects them. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    const stat = `/proc/${pid}/stat`;
    return !existsSync(stat) || !/\) Z /.test(readFileSync(stat, 'utf8'));
  } catch {
    return false;
  }
}
