import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { KubeConfig, type User } from '@kubernetes/client-node';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

/**
 * What @kubernetes/client-node lacks, as far as it is why src/kubernetes has code of its own. A test that
 * fails after an update means that upstream has fixed it: take the named code out.
 */

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'upstream-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

function write(name: string, content: string, mode = 0o600): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  chmodSync(file, mode);
  return file;
}

function kubeconfig(server: string, user: object = {}, cluster: object = {}): string {
  return JSON.stringify({
    'current-context': 'x',
    clusters: [{ name: 'c', cluster: { server, ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  });
}

function loaded(text: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromString(text);
  return config;
}

/** What goes on the wire for this user. */
async function wire(user: Omit<User, 'name'>, server = 'https://a'): Promise<RequestOptions> {
  const config = new KubeConfig();
  const cluster = { name: 'c', server, skipTLSVerify: true };
  config.loadFromClusterAndUser(cluster, { name: 'u', ...user });
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  return options;
}

const headersOf = async (user: Omit<User, 'name'>) => (await wire(user)).headers;

describe('kubeconfig.ts', () => {
  const loadDefault = (...files: string[]): KubeConfig => {
    vi.stubEnv('KUBECONFIG', files.join(delimiter));
    const config = new KubeConfig();
    config.loadFromDefault();
    return config;
  };

  test('findAccess: a missing file in KUBECONFIG fails', () => {
    const file = write('a', kubeconfig('https://a'));
    expect(() => loadDefault(join(folder, 'missing'), file)).toThrow('ENOENT');
  });

  test('chooseAccess: a name that two files have fails', () => {
    const files = [write('a', kubeconfig('https://a')), write('b', kubeconfig('https://b'))];
    expect(() => loadDefault(...files)).toThrow('Duplicate cluster: c');
  });

  test('findAccess: ends with localhost:8080', () => {
    vi.stubEnv('KUBECONFIG', '');
    vi.stubEnv('HOME', folder);
    const config = new KubeConfig();
    config.loadFromDefault();
    expect(config.getCurrentCluster()?.server).toBe('http://localhost:8080');
  });

  test('findUser: tokenFile is not known', () => {
    const file = write('a', kubeconfig('https://a', { tokenFile: 'token' }));
    const config = new KubeConfig();
    config.loadFromFile(file);
    expect(JSON.stringify(config.getCurrentUser())).not.toContain('token"');
  });
});

describe('login.ts', () => {
  test('findUser: a token wins over a token file', async () => {
    const authProvider = {
      name: 'tokenFile',
      config: { tokenFile: write('token', 'of-the-file') },
    };
    expect(await headersOf({ token: 'written', authProvider })).toEqual({
      Authorization: 'Bearer written',
    });
  });

  test('logIn: a token file is sent as it is, and an empty one means no user', async () => {
    const by = (content: string) =>
      headersOf({ authProvider: { name: 't', config: { tokenFile: write('token', content) } } });
    expect(await by('token\n')).toEqual({ Authorization: 'Bearer token\n' });
    expect(await by('')).toEqual({});
  });

  test('UNSUPPORTED: groups are not known', () => {
    const user = {
      as: 'robot',
      'as-uid': '1',
      'as-groups': ['ops'],
      'as-user-extra': { a: ['b'] },
    };
    const read = JSON.stringify(loaded(kubeconfig('https://a', user)).getCurrentUser());
    expect(read).toContain('robot');
    expect(read).not.toContain('ops');
  });
});

describe.skipIf(process.platform === 'win32')('plugin.ts', () => {
  const credential = '{"status":{"token":"t"}}';
  const run = (script: string) =>
    headersOf({ exec: { command: write('plugin', `#!/bin/sh\n${script}\n`, 0o700) } });

  test('logInByPlugin: the inputs are handed on, and KUBERNETES_EXEC_INFO is not set', async () => {
    vi.stubEnv('INPUT_GITHUB_TOKEN', 'ghs_0000');
    const script = `test -n "$INPUT_GITHUB_TOKEN" && test -z "$KUBERNETES_EXEC_INFO" && echo '${credential}'`;
    expect(await run(script)).toEqual({ Authorization: 'Bearer t' });
  });

  test('logInByPlugin: standard input is not /dev/null', async () => {
    const script = `test ! -c /dev/stdin && echo '${credential}'`;
    expect(await run(script)).toEqual({ Authorization: 'Bearer t' });
  });

  test('logInByPlugin: JSON of any kind is taken, and other text is quoted', async () => {
    expect(await run(`echo '${credential}'`)).toEqual({ Authorization: 'Bearer t' });
    await expect(run('echo secret-token')).rejects.toThrow('secret-tok');
  });
});

test('connections.ts: proxies of the environment are not looked at', () => {
  vi.stubEnv('HTTPS_PROXY', 'http://127.0.0.1:1');
  const config = loaded(kubeconfig('https://k8s.example'));
  expect(config.createDispatcherOptions(config.getCurrentCluster(), {}).type).toBe('none');
});

test('scripts/build.ts: the package does not say that it has no side effects', async () => {
  const manifest = '@kubernetes/client-node/package.json';
  const { default: content } = await import(manifest, { with: { type: 'json' } });
  expect(content.sideEffects).toBeUndefined();
});
