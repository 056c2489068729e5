import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ActionError } from '../../src/base/errors.ts';
import { createRedactor } from '../../src/base/redact.ts';
import { connect } from '../../src/kubernetes/connect.ts';
import { type Access, findAccess, type Search } from '../../src/kubernetes/kubeconfig.ts';
import { expectPairs } from '../stub/pairs.ts';

const SERVICE_ACCOUNT = 'var/run/secrets/kubernetes.io/serviceaccount';
const PEM = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(home, { recursive: true, force: true });
});

function write(name: string, content: string): string {
  const file = join(home, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}

/** Context, cluster and user of this name; the server says which file won. */
function simple(name: string, host = name): string {
  return `
apiVersion: v1
kind: Config
current-context: ${name}
clusters: [{ name: ${name}, cluster: { server: "https://${host}:6443" } }]
users: [{ name: ${name}, user: { token: token-of-${host} } }]
contexts: [{ name: ${name}, context: { cluster: ${name}, user: ${name} } }]
`;
}

function choose(options: Partial<Search> = {}): Access {
  return findAccess({ env: {}, homeDir: home, root: home, ...options });
}

function refusal(options: Partial<Search> = {}): {
  message: string;
  hint: string | undefined;
} {
  try {
    choose(options);
  } catch (error) {
    if (!(error instanceof ActionError)) throw error;
    return { message: error.message, hint: error.hint };
  }
  throw new Error('it was accepted');
}

function pod(): Record<string, string> {
  write(`${SERVICE_ACCOUNT}/token`, 'token-of-the-pod\n');
  write(`${SERVICE_ACCOUNT}/namespace`, 'runners\n');
  write(`${SERVICE_ACCOUNT}/ca.crt`, PEM);
  const env = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };
  // client-node looks at the environment of the process, whatever we look at.
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  return env;
}

/** Connecting reads certificates and tokens, and sends nothing. */
async function connected(options: Partial<Search> = {}) {
  const search = { env: {}, homeDir: home, root: home, ...options };
  const api = await connect({ ...search, redactor: createRedactor(), userAgent: 'test/1' });
  await api.close();
  return api;
}

test.each([
  { user: '{}', isAnonymous: true },
  { user: 'null', isAnonymous: true },
  { user: '{ as: someone }', isAnonymous: true },
  { user: "{ token: '' }", isAnonymous: true },
  { user: '{ token: token-of-a }', isAnonymous: false },
])('user $user has no credentials: $isAnonymous', async ({ user, isAnonymous }) => {
  const kubeconfig = write('k', simple('a').replace('{ token: token-of-a }', user));
  expect((await connected({ kubeconfig })).target).toMatchObject({ isAnonymous });
});

describe('where the kubeconfig comes from', () => {
  test('the input, KUBECONFIG, ~/.kube/config, and the service account of the pod, in this order', () => {
    const env = pod();
    expect(choose({ env })).toMatchObject({
      source: "the pod's service account",
      context: 'in-cluster',
      server: 'https://10.96.0.1',
      cluster: { caFile: join(home, SERVICE_ACCOUNT, 'ca.crt') },
      user: { authProvider: { config: { tokenFile: join(home, SERVICE_ACCOUNT, 'token') } } },
    });
    write('.kube/config', simple('home'));
    expect(choose({ env })).toMatchObject({ context: 'home', user: { token: 'token-of-home' } });
    const withVariable = { ...env, KUBECONFIG: write('env', simple('env')) };
    expect(choose({ env: withVariable }).server).toBe('https://env:6443');
    const kubeconfig = write('mine', simple('input'));
    expect(choose({ kubeconfig, env: withVariable })).toMatchObject({ source: kubeconfig });
  });

  test.each<[what: string, given: () => Partial<Search>]>([
    ['KUBECONFIG names no file', () => ({ env: { KUBECONFIG: join(home, 'none') } })],
    ['KUBECONFIG is empty', () => ({ env: { KUBECONFIG: write('none', '\n# empty\n') } })],
    ['the input names no file', () => ({ kubeconfig: join(home, 'none') })],
    ['the input is empty', () => ({ kubeconfig: write('none', '') })],
    ['a context is asked for', () => ({ context: 'green' })],
  ])('the cluster of the pod does not stand for another one: %s', (_, given) => {
    const { env, ...more } = given();
    write('.kube/config', more.context === undefined ? simple('home') : '');
    const { message } = refusal({ ...more, env: { ...pod(), ...env } });
    expect(message).toMatch(
      /^found no cluster to talk to: \S+ (?:has no contexts|does not exist)$/,
    );
  });

  test('an empty ~/.kube/config counts as missing; the tilde of an input is the home folder', () => {
    write('.kube/config', '\n# nothing yet\n');
    expect(choose({ env: pod() }).context).toBe('in-cluster');
    write('.kube/other', simple('tilde'));
    expect(choose({ kubeconfig: '~/.kube/other' }).context).toBe('tilde');
  });
});

describe('several files in KUBECONFIG', () => {
  const listed = (...files: string[]) => ({ env: { KUBECONFIG: files.join(delimiter) } });

  test('the first entry with a name has priority, and entries are not mixed', () => {
    const shared = (of: string, more: string) =>
      `clusters: [{ name: shared, cluster: { server: "https://${of}"${more} } }]`;
    const first = write(
      'a',
      `${shared('first', '')}
users: [{ name: red, user: {} }]
contexts: [{ name: ctx, context: { cluster: shared, user: red } }]`,
    );
    const second = write(
      'b',
      `current-context: ctx
${shared('second', ', tls-server-name: second')}
users: [{ name: red, user: { token: token-of-second } }]`,
    );
    const access = choose(listed('', join(home, 'missing'), first, second, first));
    expect(access).toMatchObject({ context: 'ctx', server: 'https://first' });
    expect(access.cluster.tlsServerName).toBeUndefined();
    expect(access.user.token).toBeUndefined();
    expect(access.source).toBe(`${first}, ${second}`);
  });

  test('an invalid file is an error, even if another one is valid', () => {
    const broken = write('broken', 'clusters: [');
    expect(refusal(listed(write('a', simple('a')), broken)).message).toBe(
      `cannot read kubeconfig ${broken}: not valid YAML of a kubeconfig`,
    );
  });
});

test('relative paths start at the folder of their own file', () => {
  const cluster = 'cluster: { server: "https://a", certificate-authority: pki/ca.crt }';
  const user = 'client-certificate: me.crt, client-key: ../me.key, tokenFile: token';
  const one = write('one/config', `current-context: x\nclusters: [{ name: c, ${cluster} }]`);
  const two = write(
    'two/config',
    `
users: [{ name: u, user: { ${user} } }]
contexts: [{ name: x, context: { cluster: c, user: u } }]
`,
  );
  const access = choose({ env: { KUBECONFIG: [one, two].join(delimiter) } });
  expect(access.cluster.caFile).toBe(join(home, 'one', 'pki', 'ca.crt'));
  expect(access.user).toMatchObject({
    certFile: join(home, 'two', 'me.crt'),
    keyFile: join(home, 'me.key'),
    authProvider: { config: { tokenFile: join(home, 'two', 'token') } },
  });
});

describe('the context', () => {
  const two = simple('blue').replace(/contexts: .*/, (line) =>
    line.replace(/]$/, ', { name: green, context: { cluster: blue } }]'),
  );

  test('can be named, and a user is not needed', () => {
    const access = choose({ kubeconfig: write('k', two), context: 'green' });
    expect(access).toMatchObject({ context: 'green', user: { name: '' } });
  });

  test.each<[says: string, cut: RegExp, context?: string]>([
    ['has no context "gren"; its contexts are "blue", "green"', /^$/, 'gren'],
    ['has no current-context; its contexts are "blue", "green"', /current-context: blue/],
    ['names cluster "blue", which is not in', /clusters: .*/],
    ['names user "blue", which is not in', /users: .*/],
  ])('that is wrong is an error: %s', (says, cut, context = '') => {
    const kubeconfig = write('k', two.replace(cut, ''));
    expect(refusal({ kubeconfig, context }).message).toContain(says);
  });
});

describe('a secret in place of the path of a kubeconfig', () => {
  const CONTENT = simple('a');
  const ONCE = Buffer.from(CONTENT).toString('base64');
  test.each<[what: string, value: string, isKubeconfig?: true]>([
    ['YAML', CONTENT, true],
    ['JSON', '{"apiVersion":"v1","clusters":[]}', true],
    ['base64', ONCE, true],
    ['base64 in lines', ONCE.replace(/.{60}/g, '$&\n'), true],
    ['a kubeconfig in base64, twice', Buffer.from(ONCE).toString('base64')],
    ['base64 with slashes', 'q7Zr2kX9/vB4mN8tL1pW6/aa+bcdefghij=='],
    ['a token', 'q7Zr2kX9vB4mN8tL1pW6'],
    ['a bootstrap token', 'abcdef.0123456789abcdef'],
    ['credentials', '[default] aws_secret_access_key = wJalrXUtnFEMI/K7'],
  ])('is recognized, or at least not shown: %s', (_, value, isKubeconfig) => {
    for (const given of [{ kubeconfig: value }, { env: { KUBECONFIG: value } }]) {
      const { message, hint } = refusal(given);
      expect(`${message} ${hint}`).not.toContain(value.slice(0, 12));
      expect(message).toContain(
        isKubeconfig
          ? 'holds the text of a kubeconfig; it must be the path of a file'
          : '(its name is not shown, because it may be a secret)',
      );
      if (isKubeconfig) expect(hint).toContain('printf');
    }
  });

  test.each(['~/config', '$RUNNER_TEMP/config'])('is not %s, which is shown', (KUBECONFIG) => {
    expect(refusal({ env: { KUBECONFIG } }).message).toContain(`${KUBECONFIG} does not exist`);
  });

  test('in a file that is not YAML is not quoted', () => {
    const kubeconfig = write('k', 'users:\n- name: u\n  user: {token: very-secret-token\n');
    const { message } = refusal({ kubeconfig });
    expect(message).toMatch(/not valid YAML of a kubeconfig$/);
    expect(message).not.toContain('secret');
  });

  test.each(['DATA+OMITTED', '"REDACTED"'])('that kubectl has left out is missed: %s', (token) => {
    const kubeconfig = write('k', simple('a').replace(/token: [^}\s]+/, `token: ${token}`));
    expect(refusal({ kubeconfig }).message).toMatch(/without --raw, "kubectl config view" leaves/);
  });
});

test('the server of a cluster is an https URL, or one of this machine', () =>
  expectPairs('servers.txt', (written) => {
    const kubeconfig = write('k', simple('a').replace('https://a:6443', written));
    try {
      return choose({ kubeconfig }).server;
    } catch {
      const { message } = refusal({ kubeconfig });
      expect(message).toMatch(/^the server of cluster "a" is not an https URL/);
      return 'refused';
    }
  }));

test.each([
  [`${SERVICE_ACCOUNT}/namespace`, 'runners\n', 'runners'],
  ['etc/resolv.conf', 'options x\nsearch ci.svc.cluster.local svc.cluster.local\n', 'ci'],
  ['etc/resolv.conf', 'search svc.example.com example.com\n', undefined],
])('the namespace in which the gate runs, by %s: %j', async (file, content, namespace) => {
  write(file, content);
  const { target } = await connected({ kubeconfig: write('k', simple('a')) });
  expect(target.ownNamespace).toBe(namespace);
});
