import { tmpdir } from 'node:os';
import type { JsonObject } from '../../../src/base/json.ts';
import { kubeconfigText } from '../bench.ts';
import type { ActionCase } from './case.ts';

const SERVER = 'http://127.0.0.1:9';

function file(what: string, content: string, says: RegExp): ActionCase {
  return { what, inputs: ({ bench }) => ({ kubeconfig: bench.file(content) }), says };
}

function user(what: string, entry: JsonObject, says: RegExp): ActionCase {
  return file(what, kubeconfigText({ server: SERVER, user: entry }), says);
}

function cluster(what: string, entry: JsonObject, says: RegExp): ActionCase {
  const { server = SERVER, ...rest } = entry;
  return file(what, kubeconfigText({ server: server as string, cluster: rest }), says);
}

const CONTENT = kubeconfigText({ server: SERVER, user: { token: 'pl4nt3d-token-in-content' } });
/** Each line ten times the one before. */
const BOMB = `a: &a [x,x,x,x,x,x,x,x,x,x]\n${'bcdefghij'
  .split('')
  .map((name, at) => {
    const before = `*${'abcdefghij'[at]}`;
    return `${name}: &${name} [${Array(10).fill(before).join(',')}]`;
  })
  .join('\n')}\n`;

/** Where the kubeconfig should be, and what is in it. */
export const KUBECONFIGS: readonly ActionCase[] = [
  {
    what: 'a kubeconfig that is not there',
    inputs: () => ({ kubeconfig: '/nonexistent/config' }),
    says: /cannot read kubeconfig \/nonexistent\/config: no such file/,
  },
  {
    what: 'a folder as kubeconfig',
    inputs: () => ({ kubeconfig: tmpdir() }),
    says: /it is a folder/,
  },
  {
    what: 'the text of a kubeconfig in place of its path',
    inputs: () => ({ kubeconfig: CONTENT }),
    says: /"kubeconfig" holds the text of a kubeconfig; it must be the path of a file/,
  },
  {
    what: 'a kubeconfig in base64 in place of its path',
    inputs: () => ({ kubeconfig: Buffer.from(CONTENT).toString('base64') }),
    says: /"kubeconfig" holds a kubeconfig in base64/,
  },
  {
    what: 'no kubeconfig anywhere',
    inputs: () => ({ kubeconfig: '' }),
    says: /found no cluster to talk to: KUBECONFIG is not set, .*does not exist/,
  },
  {
    what: 'a KUBECONFIG of files that are not there',
    inputs: () => ({ kubeconfig: '' }),
    env: () => ({ KUBECONFIG: '/nonexistent/a:/nonexistent/b' }),
    says: /found no cluster to talk to: \/nonexistent\/a \(from KUBECONFIG\) does not exist/,
  },
  {
    what: 'the text of a kubeconfig in KUBECONFIG',
    inputs: () => ({ kubeconfig: '' }),
    env: () => ({ KUBECONFIG: CONTENT }),
    says: /KUBECONFIG holds the text of a kubeconfig/,
  },
  {
    what: 'the variables of a pod without its files',
    inputs: () => ({ kubeconfig: '' }),
    env: () => ({ KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }),
    says: /found no cluster to talk to: .*no service account of a pod was found/,
  },
  {
    what: 'a context that does not exist',
    inputs: ({ kubeconfig }) => ({ kubeconfig, context: 'prod' }),
    says: /there is no context "prod" in .*; it has the contexts "recorded"/,
  },
  file('an empty file', '', /found no cluster to talk to: .* is empty/),
  file('no YAML', 'a: b: c: [', /not valid YAML/),
  file('bytes of something else', '\u0000\u0001\u007fELF', /not valid YAML|is not a kubeconfig/),
  file('a list', '- a\n- b\n', /it is not a kubeconfig/),
  file('base64 in the file', Buffer.from(CONTENT).toString('base64'), /it is not a kubeconfig/),
  file('brackets without end', '['.repeat(50_000), /not valid YAML/),
  file('YAML that grows', BOMB, /found no cluster|not valid YAML|no current-context/),
  file('a YAML tag that runs code', 'a: !!js/function "function(){}"\n', /not valid YAML/),
  file(
    'no context',
    JSON.stringify({ clusters: [{ name: 'a', cluster: {} }] }),
    /has no current-context/,
  ),
  file(
    'a context without its cluster',
    JSON.stringify({
      'current-context': 'a',
      contexts: [{ name: 'a', context: { cluster: 'gone' } }],
    }),
    /names cluster "gone", which is not in/,
  ),
  file(
    'a context without its user',
    JSON.stringify({
      'current-context': 'a',
      clusters: [{ name: 'c', cluster: { server: SERVER } }],
      contexts: [{ name: 'a', context: { cluster: 'c', user: 'gone' } }],
    }),
    /names user "gone", which is not in/,
  ),
  file(
    'a name twice',
    JSON.stringify({ clusters: [{ name: 'c' }, { name: 'c' }] }),
    /"clusters" has two entries named "c"/,
  ),
  cluster('a server that is no URL', { server: 'https://[' }, /is not an https URL/),
  cluster('a server of another protocol', { server: 'ftp://example.com' }, /is not an https URL/),
  cluster(
    'a server without TLS',
    { server: 'http://10.0.0.1:8080' },
    /without TLS, credentials could be read/,
  ),
  cluster(
    'an authority that is not there',
    { 'certificate-authority': 'ca.crt' },
    /cannot read the certificate-authority .*no such file/,
  ),
  cluster(
    'an authority that is none',
    { 'certificate-authority-data': 'bm9uZQ==' },
    /is not in PEM form/,
  ),
  cluster(
    'a proxy that is none',
    { 'proxy-url': 'proxy:3128' },
    /"proxy-url" .* is not one of http/,
  ),
  cluster(
    'a proxy of another protocol',
    { 'proxy-url': 'socks4://p:1080' },
    /is not one of http:\/\/, https:\/\/ or socks5/,
  ),
  user('a token as number', { token: 12_345_678 }, /"token" of user "recorded" must be a text/),
  user(
    'a token of two lines',
    { token: 'pl4nt3d\npl4nt3d' },
    /token of user "recorded" is empty or has characters/,
  ),
  user('a token file that is not there', { tokenFile: 'gone' }, /cannot read the tokenFile .*gone/),
  user(
    'a certificate without key',
    { 'client-certificate-data': Buffer.from('-----BEGIN CERTIFICATE-----').toString('base64') },
    /has no "client-key"/,
  ),
  user(
    'a certificate that is broken',
    {
      'client-certificate-data': Buffer.from('-----BEGIN CERTIFICATE-----\nxx').toString('base64'),
      'client-key-data': Buffer.from('-----BEGIN PRIVATE KEY-----\nxx').toString('base64'),
    },
    /certificates of context "recorded" cannot be used/,
  ),
  user(
    'an old auth provider',
    { 'auth-provider': { name: 'gcp' } },
    /auth provider "gcp", which is no longer supported/,
  ),
  user(
    'a plugin without command',
    { exec: { apiVersion: 'client.authentication.k8s.io/v1' } },
    /exec section .* has no "command"/,
  ),
  user(
    'a plugin of an old version',
    { exec: { apiVersion: 'client.authentication.k8s.io/v1alpha1', command: 'x' } },
    /is configured for "client\.authentication\.k8s\.io\/v1alpha1"/,
  ),
  user(
    'a plugin that is not installed',
    { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'no-such-plugin' } },
    /plugin "no-such-plugin" of user "recorded" is not installed/,
  ),
];
