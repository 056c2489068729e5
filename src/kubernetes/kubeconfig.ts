import { existsSync, readFileSync } from 'node:fs';
import { basename, delimiter, dirname, join, resolve } from 'node:path';
import { type Cluster, KubeConfig, type User } from '@kubernetes/client-node';
import { loadAll } from 'js-yaml';
import { ActionError } from '../base/errors.ts';
import { arrayAt, isObject, type Json, type JsonObject, stringAt, valueAt } from '../base/json.ts';
import { type Environment, NO_SUCH_FILE, readRegularFile } from '../base/process.ts';
import { listNames } from '../base/text.ts';

export interface Search {
  /** Path of a kubeconfig. Otherwise KUBECONFIG, ~/.kube/config, in-cluster, in kubectl's order. */
  kubeconfig?: string | undefined;
  context?: string | undefined;
  env: Environment;
  homeDir: string;
  /** Root folder above `/var/run/secrets`; for tests. */
  root?: string;
}

/** The chosen cluster and user, before any credential was fetched. */
export interface Access {
  /** The source for messages: files, or "the pod's service account". */
  source: string;
  context: string;
  /** An https URL (or http on loopback) without trailing slash, user info and query. */
  server: string;
  cluster: Cluster;
  user: User;
  /** The proxy that the kubeconfig names, or an empty text. */
  proxyUrl: string;
}

export function configError(message: string, hint?: string): ActionError {
  return new ActionError('kube-config', message, hint);
}

/**
 * Finds the cluster and the user, as kubectl does. KubeConfig.loadFromDefault differs: it refuses a missing file
 * and a name that two files have, and ends with localhost:8080, which would be another cluster.
 */
export function findAccess(search: Search): Access {
  const { kubeconfig = '', context = '', env, homeDir } = search;
  const named = kubeconfig || (env['KUBECONFIG'] ?? '');
  refuseContent(named);
  let names = named.split(delimiter).filter(Boolean);
  if (named === '') names = [join(homeDir, '.kube', 'config')];
  // Nothing else expands the tilde in `with:` of a workflow or in `--kubeconfig=~/x`.
  if (kubeconfig !== '') names = [kubeconfig.replace(/^~(?=[/\\])/, homeDir)];
  const files = [...new Set(names.map((name) => resolve(name)))];
  const found = files.flatMap((file) => readKubeconfig(file) ?? []);
  const hasContexts = found.some(({ document }) => arrayAt(document, 'contexts').length > 0);
  if (hasContexts) return chooseAccess(found, context);
  // A file that is named stands for its cluster. In the cluster of this pod the namespace would not exist, and the
  // run would pass.
  const mayBePod = named + context === '';
  if (mayBePod && isInPod(search)) return podAccess(search);
  const tried = files.map(
    (file) => `${shownPath(file)} ${existsSync(file) ? 'has no contexts' : 'does not exist'}`,
  );
  if (mayBePod) tried.unshift('KUBECONFIG is not set');
  if (mayBePod) tried.push('no service account of a pod was found');
  throw configError(
    `found no cluster to talk to: ${tried.join(', ')}`,
    'Give the path of a kubeconfig (input "kubeconfig" or --kubeconfig), or set KUBECONFIG',
  );
}

/**
 * Refuses the text of a kubeconfig in place of its path: the secret would be visible in process lists and in logs
 * of the runner. The message must not repeat it.
 */
function refuseContent(value: string): void {
  const isBase64 = value.length > 60 && /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(value);
  const text = isBase64 ? Buffer.from(value, 'base64').toString('utf8') : value;
  if (!/(^|[\s{,"'])(apiVersion|clusters|current-context|contexts|users)["']?\s*:/.test(text))
    return;
  throw configError(
    'the input "kubeconfig" or the variable KUBECONFIG holds the text of a kubeconfig; it must be the path of a file',
    'Write it to a file in a step before, for example ' +
      `printf '%s' "$KUBECONFIG_CONTENT"${isBase64 ? ' | base64 -d' : ''} > "$RUNNER_TEMP/kubeconfig" ` +
      'with the secret in env, and give that path',
  );
}

/** Few secrets look like lower-case words, with a usual extension. */
const NAME_OF_FILE = /^[a-z._-]{1,40}\d{0,4}(?:\.(?:ya?ml|json|conf|config))?$/;

/**
 * Returns the path as messages show it. People put a token or a key in place of a path: what does not exist is
 * shown only if it looks like names of files.
 */
function shownPath(file: string): string {
  let path = file;
  for (; !existsSync(path) && path !== dirname(path); path = dirname(path)) {
    if (!NAME_OF_FILE.test(basename(path)))
      return 'the file (its name is not shown, because it may be a secret)';
  }
  return file;
}

interface Found {
  file: string;
  document: JsonObject;
}

/** A cluster, user or context of a kubeconfig. */
interface Entry {
  name: string;
  fields: JsonObject;
  /** Returns the text of a field; empty if there is none. */
  text: (field: string) => string;
  /** Returns the path in a field, which is relative to the folder of its file; empty if there is none. */
  path: (field: string) => string;
}

function entryOf(item: Json, section: string, file: string): Entry {
  const found = valueAt(item, section);
  const fields = isObject(found) ? found : {};
  const text = (field: string): string => stringAt(fields, field) ?? '';
  // kubectl prefers data to a file; KubeConfig does not.
  const path = (field: string): string =>
    text(field) === '' || text(`${field}-data`) !== '' ? '' : resolve(dirname(file), text(field));
  return { name: stringAt(item, 'name') ?? '', fields, text, path };
}

/**
 * Reads a kubeconfig, or returns undefined if the file does not exist. Parse errors are not quoted because they
 * contain the text.
 */
function readKubeconfig(file: string): Found | undefined {
  const read = readRegularFile(file);
  const unreadable = (why: string): ActionError =>
    configError(
      `cannot read kubeconfig ${shownPath(file)}: ${why}`,
      'Write the kubeconfig to a file in a step before, as YAML or JSON; base64 must be decoded first',
    );
  if ('problem' in read) {
    if (read.problem === NO_SUCH_FILE) return undefined;
    throw unreadable(read.problem);
  }
  let document: unknown;
  try {
    // kubectl also reads only the first document. A file without documents is a kubeconfig without entries.
    document = loadAll(read.bytes.toString('utf8'))[0] ?? {};
  } catch (error) {
    const mark = error instanceof Error && 'mark' in error ? error.mark : undefined;
    const line = isObject(mark) ? mark['line'] : undefined;
    throw unreadable(`not valid YAML${typeof line === 'number' ? ` (line ${line + 1})` : ''}`);
  }
  if (isObject(document)) return { file, document };
  throw unreadable('it is not a kubeconfig');
}

/** Fields that client-node does not support, or no longer should. */
const UNSUPPORTED = ['auth-provider', 'username', 'as-uid', 'as-groups', 'as-user-extra'];

function chooseAccess(found: readonly Found[], asked: string): Access {
  const source = found.map(({ file }) => file).join(', ');
  const entries = (section: string): Entry[] =>
    found.flatMap(({ file, document }) =>
      arrayAt(document, `${section}s`).map((item) => entryOf(item, section, file)),
    );
  // The first file that has a name wins, and entries are never mixed.
  const find = (section: string, name: string): Entry | undefined =>
    entries(section).find((entry) => entry.name === name);

  const current = found.map(({ document }) => stringAt(document, 'current-context'));
  const name = asked || current.find(Boolean) || '';
  const context = find('context', name);
  if (context === undefined) {
    const missing = name === '' ? 'current-context' : `context "${name}"`;
    const known = entries('context').map((each) => `"${each.name}"`);
    throw configError(
      `${source} has no ${missing}; its contexts are ${listNames(known, 20)}`,
      'Name one with the input "context" (or --context)',
    );
  }
  const [clusterName, userName] = [context.text('cluster'), context.text('user')];
  const cluster = find('cluster', clusterName);
  // A context without a user sends no credentials.
  const user = userName === '' ? entryOf({}, 'user', '') : find('user', userName);
  if (cluster === undefined || user === undefined) {
    const missing = user === undefined ? `user "${userName}"` : `cluster "${clusterName}"`;
    throw configError(`context "${name}" names ${missing}, which is not in ${source}`);
  }
  const wrong = UNSUPPORTED.find((field) => user.fields[field]);
  if (wrong !== undefined) {
    throw configError(
      `user "${userName}" has "${wrong}", which is not supported`,
      'Use an exec credential plugin (kubelogin for OIDC and Azure, gke-gcloud-auth-plugin for Google) or a token',
    );
  }
  const server = safeUrl(cluster.text('server'), clusterName);
  return {
    ...{ source, context: name, server, proxyUrl: cluster.text('proxy-url'), user: userOf(user) },
    cluster: {
      ...{ name: clusterName, server, tlsServerName: cluster.text('tls-server-name') },
      caData: cluster.text('certificate-authority-data'),
      caFile: cluster.path('certificate-authority'),
      skipTLSVerify: cluster.fields['insecure-skip-tls-verify'] === true,
    },
  };
}

/** Returns the user with one way to log in: a token file, a token or a plugin, beside a client certificate. */
function userOf({ name, fields: { exec }, text, path }: Entry): User {
  const [tokenFile, token] = [path('tokenFile'), text('token')];
  return {
    ...{ name, certData: text('client-certificate-data'), keyData: text('client-key-data') },
    ...{ certFile: path('client-certificate'), keyFile: path('client-key') },
    ...(text('as') && { impersonateUser: text('as') }),
    ...(tokenFile
      ? { authProvider: { name: 'tokenFile', config: { tokenFile } } }
      : token
        ? { token }
        : isObject(exec) && { exec }),
  };
}

/** Returns the URL if it is https, or http on loopback. kubectl would send a token without TLS. */
function safeUrl(text: string, cluster: string): string {
  const url = URL.parse(text.includes('://') ? text : `https://${text}`);
  const isLocal = /^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(url?.hostname ?? '');
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && isLocal)) {
    return url.origin + url.pathname.replace(/\/+$/, '');
  }
  throw configError(
    `the server of cluster "${cluster}" is not an https URL: without TLS, credentials could be read on the way`,
    'http is only accepted for localhost (kubectl proxy)',
  );
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

function isInPod({ env, root = '' }: Search): boolean {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  return Boolean(host && port) && existsSync(join(root, SERVICE_ACCOUNT, 'token'));
}

function podAccess({ root = '' }: Search): Access {
  const config = new KubeConfig();
  config.loadFromCluster(root);
  const cluster = config.getCurrentCluster() as Cluster;
  const user = config.getCurrentUser() as User;
  const server = safeUrl(cluster.server, cluster.name);
  return {
    source: "the pod's service account",
    context: 'in-cluster',
    server,
    cluster,
    user,
    proxyUrl: '',
  };
}

/**
 * Returns the namespace in which this process runs. A kubeconfig may name the surrounding cluster by the address
 * and authority of a gateway, so it does not show whether both are the same cluster.
 */
export function ownNamespace({ env, root = '' }: Search): string | undefined {
  const file = join(root, SERVICE_ACCOUNT, 'namespace');
  if (!env['KUBERNETES_SERVICE_HOST'] || !existsSync(file)) return undefined;
  return readFileSync(file, 'utf8').trim() || undefined;
}
