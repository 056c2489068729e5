import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ActionError } from '../../src/base/errors.ts';
import { createRedactor } from '../../src/base/redact.ts';
import { connect } from '../../src/kubernetes/connect.ts';
import { type Access, findAccess, type Search } from '../../src/kubernetes/kubeconfig.ts';

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

function write(name: string, content: string | Buffer): string {
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
    expect(error.code).toBe('kube-config');
    return { message: error.message, hint: error.hint };
  }
  throw new Error('it was accepted');
}

function pod(): Record<string, string> {
  write(`${SERVICE_ACCOUNT}/token`, 'token-of-the-pod\n');
  write(`${SERVICE_ACCOUNT}/namespace`, 'runners\n');
  write(`${SERVICE_ACCOUNT}/ca.crt`, PEM);
  return address('10.96.0.1', '443');
}

/** client-node looks at the environment of the process, whatever we look at. */
function address(host: string, port: string): Record<string, string> {
  const env = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port };
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
  { user: '{ as: someone }', isAnonymous: true },
  { user: "{ token: '' }", isAnonymous: true },
  { user: '{ token: token-of-a }', isAnonymous: false },
])('user $user has no credentials: $isAnonymous', async ({ user, isAnonymous }) => {
  const kubeconfig = write('k', simple('a').replace('{ token: token-of-a }', user));
  expect((await connected({ kubeconfig })).target).toMatchObject({ isAnonymous });
});

describe('where the kubeconfig comes from', () => {
  test('the input has the first priority', () => {
    const kubeconfig = write('mine', simple('input'));
    const env = { ...pod(), KUBECONFIG: write('env', simple('env')) };
    write('.kube/config', simple('home'));
    const access = choose({ kubeconfig, env });
    expect(access.server).toBe('https://input:6443');
    expect(access.source).toBe(kubeconfig);
  });

  test('KUBECONFIG has the second priority', () => {
    const env = { ...pod(), KUBECONFIG: write('env', simple('env')) };
    write('.kube/config', simple('home'));
    expect(choose({ env }).server).toBe('https://env:6443');
  });

  test('~/.kube/config has the third priority', () => {
    write('.kube/config', simple('home'));
    expect(choose({ env: pod() })).toMatchObject({
      context: 'home',
      server: 'https://home:6443',
      user: { name: 'home', fields: { token: 'token-of-home' } },
    });
  });

  test('the service account of the pod has the last priority', () => {
    expect(choose({ env: pod() })).toMatchObject({
      source: "the pod's service account",
      context: 'in-cluster',
      server: 'https://10.96.0.1',
      cluster: { fields: { 'certificate-authority': join(home, SERVICE_ACCOUNT, 'ca.crt') } },
      user: { fields: { tokenFile: join(home, SERVICE_ACCOUNT, 'token') } },
    });
  });

  test.each([
    { what: 'is missing', content: undefined },
    { what: 'is empty', content: '' },
  ])('a file in KUBECONFIG that $what is not replaced by the cluster of the pod', ({ content }) => {
    const KUBECONFIG =
      content === undefined ? join(home, 'none.yaml') : write('empty.yaml', content);
    expect(refusal({ env: { ...pod(), KUBECONFIG } }).message).toMatch(/^found no cluster/);
  });

  test('a pod with an IPv6 address', () => {
    pod();
    const env = address('fd00::1', '6443');
    expect(choose({ env }).server).toBe('https://[fd00::1]:6443');
  });

  test('a pod whose API server has a port that others use for http', () => {
    pod();
    const env = address('10.96.0.1', '8080');
    expect(choose({ env }).server).toBe('https://10.96.0.1:8080');
  });

  test('a pod without a certificate authority trusts those of the system', async () => {
    const env = pod();
    rmSync(join(home, SERVICE_ACCOUNT, 'ca.crt'));
    expect((await connected({ env })).target.ownNamespace).toBe('runners');
  });

  test('~/.kube/config is not read if KUBECONFIG names missing files, as in kubectl', () => {
    write('.kube/config', simple('home'));
    const missing = join(home, 'missing');
    expect(refusal({ env: { KUBECONFIG: missing } }).message).toBe(
      `found no cluster to talk to: ${missing} (from KUBECONFIG) does not exist`,
    );
  });

  test('an empty file counts as missing', () => {
    write('.kube/config', '\n# nothing yet\n');
    expect(choose({ env: pod() }).context).toBe('in-cluster');
  });

  test('an empty file that was asked for is not replaced by the service account of the pod', () => {
    const kubeconfig = write('empty', '');
    expect(refusal({ env: pod(), kubeconfig }).message).toMatch(/^found no cluster to talk to/);
  });

  test('the tilde of an input is the home folder', () => {
    write('.kube/other', simple('tilde'));
    expect(choose({ kubeconfig: '~/.kube/other' }).context).toBe('tilde');
  });
});

describe('several files in KUBECONFIG', () => {
  const listed = (...files: string[]) => ({ env: { KUBECONFIG: files.join(delimiter) } });

  test('the first entry with a name has priority, and entries are not mixed', () => {
    const first = write(
      'a',
      `
clusters: [{ name: shared, cluster: { server: "https://first" } }]
users: [{ name: red, user: {} }]
contexts: [{ name: ctx, context: { cluster: shared, user: red } }]
`,
    );
    const second = write(
      'b',
      `
current-context: ctx
clusters: [{ name: shared, cluster: { server: "https://second", tls-server-name: second } }]
users: [{ name: red, user: { token: token-of-second } }]
`,
    );
    const access = choose(listed(first, second));
    expect(access.context).toBe('ctx');
    expect(access.server).toBe('https://first');
    expect(access.cluster.fields).not.toHaveProperty('tls-server-name');
    expect(access.user.fields).toEqual({});
    expect(access.source).toBe(`${first}, ${second}`);
  });

  test('the first current-context has priority', () => {
    const files = [write('a', 'kind: Config'), write('b', simple('b')), write('c', simple('c'))];
    expect(choose(listed(...files)).context).toBe('b');
  });

  test('missing, empty and repeated files are skipped', () => {
    const file = write('a', simple('a'));
    const access = choose(listed('', join(home, 'missing'), write('empty', ''), file, file));
    expect(access.context).toBe('a');
  });

  test.each([
    { given: 'none.yaml', says: /^cannot read kubeconfig \S+none\.yaml: no such file$/ },
    {
      given: 'sekrit0123456789abcdefTOKEN',
      says: /^cannot read kubeconfig \(its name is not shown/,
    },
  ])('a missing file is named only if the input has the form of a path: $given', (row) => {
    expect(refusal({ kubeconfig: row.given, env: {}, homeDir: home }).message).toMatch(row.says);
  });

  test('an invalid file is an error, even if another one is valid', () => {
    const broken = write('broken', 'clusters: [');
    expect(refusal(listed(write('a', simple('a')), broken)).message).toBe(
      `cannot read kubeconfig ${broken}: not valid YAML (line 1)`,
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
users: [{ name: u, user: { ${user}, exec: { command: ./bin/plugin } } }]
contexts: [{ name: x, context: { cluster: c, user: u } }]
`,
  );
  const access = choose({ env: { KUBECONFIG: [one, two].join(delimiter) } });
  expect(access.cluster.fields['certificate-authority']).toBe(join(home, 'one', 'pki', 'ca.crt'));
  expect(access.user.fields).toEqual({
    'client-certificate': join(home, 'two', 'me.crt'),
    'client-key': join(home, 'me.key'),
    tokenFile: join(home, 'two', 'token'),
    exec: { command: join(home, 'two', 'bin', 'plugin') },
  });
});

test('a plugin without a folder in its name is looked up on PATH', () => {
  const kubeconfig = write('k', simple('a').replace('token: token-of-a', 'exec: { command: aws }'));
  expect(choose({ kubeconfig }).user.fields['exec']).toEqual({ command: 'aws' });
});

describe('the context', () => {
  const two = `${simple('blue')}
`.replace(/contexts: .*/, (line) =>
    line.replace(/]$/, ', { name: green, context: { cluster: blue } }]'),
  );

  test('can be named, and a user is not needed', () => {
    const access = choose({ kubeconfig: write('k', two), context: 'green' });
    expect(access).toMatchObject({ context: 'green', user: { name: '', fields: {} } });
  });

  test('that does not exist is an error that lists the others', () => {
    const kubeconfig = write('k', two);
    expect(refusal({ kubeconfig, context: 'gren' }).message).toBe(
      `there is no context "gren" in ${kubeconfig}; it has the contexts "blue", "green"`,
    );
  });

  test('that is not set is an error that lists the others', () => {
    const kubeconfig = write('k', two.replace('current-context: blue', ''));
    expect(refusal({ kubeconfig }).message).toBe(
      `${kubeconfig} has no current-context; it has the contexts "blue", "green"`,
    );
  });

  test('that was asked for is not replaced by the service account of the pod', () => {
    expect(refusal({ env: pod(), context: 'green' }).message).toMatch(/^found no cluster/);
  });

  test.each([
    {
      part: 'cluster',
      cut: /clusters: .*/,
      says: 'context "blue" names cluster "blue", which is not in',
    },
    { part: 'user', cut: /users: .*/, says: 'context "blue" names user "blue", which is not in' },
  ])('without its $part', ({ cut, says }) => {
    const kubeconfig = write('k', simple('blue').replace(cut, ''));
    expect(refusal({ kubeconfig }).message).toBe(`${says} ${kubeconfig}`);
  });
});

describe('a file that cannot be used', () => {
  test('is not YAML; the text, which may hold secrets, is not quoted', () => {
    const kubeconfig = write('k', 'users:\n- name: u\n  user: {token: very-secret-token\n');
    const { message } = refusal({ kubeconfig });
    expect(message).toMatch(/not valid YAML \(line \d+\)$/);
    expect(message).not.toContain('secret');
  });

  test('is YAML, but no kubeconfig', () => {
    const kubeconfig = write('k', 'services: { web: { image: nginx } }');
    expect(refusal({ kubeconfig }).message).toMatch(/^found no cluster to talk to/);
  });

  test('is a page', () => {
    const kubeconfig = write('k', '<html>: <title>Sign in</title>');
    expect(refusal({ kubeconfig }).message).toContain(`${kubeconfig} has no clusters, users`);
  });

  test('merges YAML maps, as kubectl does', () => {
    const user = 'user: &shared { token: token-of-a }';
    const text = simple('a').replace('user: { token: token-of-a }', user);
    const merged = `${text}common: { <<: *shared }\n`.replace(
      'cluster: { server: "https://a:6443" }',
      'cluster: { <<: { server: "https://merged:6443" } }',
    );
    expect(choose({ kubeconfig: write('k', merged) }).server).toBe('https://merged:6443');
  });

  const TWICE = Buffer.from(Buffer.from(simple('a')).toString('base64')).toString('base64');
  test.each([
    { what: 'a kubeconfig in base64, twice', value: TWICE },
    { what: 'base64 with slashes', value: 'q7Zr2kX9/vB4mN8tL1pW6/aa+bcdefghij==' },
    { what: 'a token', value: 'q7Zr2kX9vB4mN8tL1pW6' },
    { what: 'a bootstrap token', value: 'abcdef.0123456789abcdef' },
    {
      what: 'a text with credentials',
      value: '[default] aws_secret_access_key = wJalrXUtnFEMI/K7',
    },
  ])('is $what in place of a path: its text is not shown', ({ value }) => {
    for (const { message, hint } of [
      refusal({ kubeconfig: value }),
      refusal({ env: { KUBECONFIG: value } }),
    ]) {
      expect(`${message} ${hint}`).not.toContain(value.slice(0, 12));
      expect(message).toContain('(its name is not shown, because it may be a secret)');
    }
  });

  test('has an entry without a name', () => {
    const kubeconfig = write('k', 'users: [{ user: {} }]');
    expect(refusal({ kubeconfig }).message).toContain('an entry of "users" has no name');
  });

  test.each(['12345678', 'true', '{ a: b }'])('has %s where a text belongs', (token) => {
    const kubeconfig = write('k', simple('a').replace('token-of-a', token));
    expect(refusal({ kubeconfig }).message).toBe(
      '"token" of user "a" must be a text; put it in quotes',
    );
  });

  test('has a number where an address belongs', () => {
    const kubeconfig = write('k', simple('a').replace('"https://a:6443"', '6443'));
    expect(refusal({ kubeconfig }).message).toBe(
      '"server" of cluster "a" must be a text; put it in quotes',
    );
  });

  test('written by Windows PowerShell as UTF-16 can be used', () => {
    const kubeconfig = write('k', Buffer.from(`\ufeff${simple('a')}`, 'utf16le'));
    expect(choose({ kubeconfig }).context).toBe('a');
  });
});

describe('the content of a kubeconfig instead of its path', () => {
  test.each([
    { what: 'YAML', text: simple('a'), says: 'the text of a kubeconfig' },
    { what: 'JSON', text: '{"apiVersion":"v1","clusters":[]}', says: 'the text of a kubeconfig' },
    {
      what: 'base64',
      text: Buffer.from(simple('a')).toString('base64'),
      says: 'a kubeconfig in base64',
    },
    {
      what: 'base64 in lines',
      text: Buffer.from(simple('a')).toString('base64').replace(/.{60}/g, '$&\n'),
      says: 'a kubeconfig in base64',
    },
  ])('as $what is refused with advice and not repeated', ({ text, says }) => {
    const input = refusal({ kubeconfig: text });
    expect(input.message).toBe(
      `the input "kubeconfig" holds ${says}; it must be the path of a file`,
    );
    expect(input.hint).toContain('printf');
    const variable = refusal({ env: { KUBECONFIG: text } });
    expect(variable.message).toBe(
      `the environment variable KUBECONFIG holds ${says}; it must be the path of a file`,
    );
  });

  test('a long path is not mistaken for content', () => {
    const kubeconfig = join(home, 'a'.repeat(100), 'b'.repeat(100));
    expect(refusal({ kubeconfig }).message).toContain('no such file');
  });
});

describe('the server', () => {
  const at = (server: string) =>
    choose({ kubeconfig: write('k', simple('a').replace('https://a:6443', server)) });

  test.each([
    { written: 'https://k8s.example', want: 'https://k8s.example' },
    { written: 'https://k8s.example:443/', want: 'https://k8s.example' },
    {
      written: 'https://rancher.example/k8s/clusters/c-1/',
      want: 'https://rancher.example/k8s/clusters/c-1',
    },
    { written: 'https://user:pass@k8s.example?x=1', want: 'https://k8s.example' },
    { written: 'k8s.example:6443', want: 'https://k8s.example:6443' },
    { written: 'http://localhost:8001', want: 'http://localhost:8001' },
    { written: 'http://127.0.0.1:8001', want: 'http://127.0.0.1:8001' },
    { written: 'http://[::1]:8001', want: 'http://[::1]:8001' },
  ])('$written is $want', ({ written, want }) => {
    expect(at(written).server).toBe(want);
  });

  test('that is missing is named', () => {
    const kubeconfig = write('k', simple('a').replace('server: "https://a:6443"', ''));
    expect(refusal({ kubeconfig }).message).toBe('cluster "a" of the kubeconfig has no "server"');
  });
});

test.each([true, false])(
  'the namespace in which the gate runs is known only in a pod, whatever the kubeconfig names: %s',
  async (isInPod) => {
    const env = pod();
    const authority = Buffer.from(`${PEM}#`).toString('base64');
    const cluster = `"https://k8s.example", certificate-authority-data: ${authority}`;
    const kubeconfig = write('k', simple('a').replace('"https://a:6443"', cluster));
    const { target } = await connected({ kubeconfig, env: isInPod ? env : {} });
    expect(target.ownNamespace).toBe(isInPod ? 'runners' : undefined);
  },
);
