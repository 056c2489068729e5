import { existsSync } from 'node:fs';
import { basename, delimiter, dirname, join, resolve, sep } from 'node:path';
import { type Cluster, KubeConfig, type User } from '@kubernetes/client-node';
import { loadAll } from 'js-yaml';
import { ActionError } from '../base/errors.ts';
import { arrayAt, isObject, type JsonObject, stringAt, valueAt } from '../base/json.ts';
import { type Environment, NO_SUCH_FILE, readRegularFile } from '../base/process.ts';
import { listNames } from '../base/text.ts';

export interface Search {
  kubeconfig?: string | undefined;
  context?: string | undefined;
  env: Environment;
  homeDir: string;
  /** Above `/var/run/secrets`; for tests. */
  root?: string;
}

export interface Access {
  /** For messages. */
  source: string;
  context: string;
  /** An https URL (or http on loopback) without trailing slash, user info and query. */
  server: string;
  cluster: Cluster;
  user: User;
  proxyUrl?: string | undefined;
}

/**
 * As kubectl: KUBECONFIG, ~/.kube/config, in-cluster. KubeConfig.loadFromDefault refuses a missing file and a name that
 * two files have, and ends with localhost:8080, which would be another cluster.
 */
export function findAccess(search: Search): Access {
  const { kubeconfig = '', context = '', env, homeDir } = search;
  const named = kubeconfig || (env['KUBECONFIG'] ?? '');
  refuseContent(named);
  let names = named === '' ? [join(homeDir, '.kube', 'config')] : named.split(delimiter);
  // Nothing else expands the tilde in `with:` of a workflow or in `--kubeconfig=~/x`.
  if (kubeconfig !== '') names = [kubeconfig.replace(/^~(?=[/\\])/, homeDir)];
  const files = [...new Set(names.filter(Boolean).map((name) => resolve(name)))];
  const found = files.flatMap((file) => readKubeconfig(file) ?? []);
  if (found.some(({ config }) => config.contexts.length > 0)) return chooseAccess(found, context);
  // A file that is named stands for its cluster. In the cluster of this pod the namespace would not exist, and the
  // run would pass.
  const mayBePod = named + context === '';
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  const isInPod = host && port && existsSync(join(search.root ?? '', SERVICE_ACCOUNT, 'token'));
  if (mayBePod && isInPod) return podAccess(search);
  const tried = files.map(
    (file) => `${shownPath(file)} ${existsSync(file) ? 'has no contexts' : 'does not exist'}`,
  );
  if (mayBePod) tried.push('KUBECONFIG is not set', 'no service account of a pod was found');
  throw new ActionError(
    `found no cluster to talk to: ${tried.join(', ')}`,
    'Give the path of a kubeconfig (input "kubeconfig" or --kubeconfig), or set KUBECONFIG. If a step writes the file from a secret, check that the secret is set',
  );
}

/** The text of a kubeconfig in place of its path is visible in process lists and logs. The message must not repeat it. */
function refuseContent(value: string): void {
  const isContent = (text: string): boolean =>
    /(^|[\s{,"'])(apiVersion|clusters|current-context|contexts|users)["']?\s*:/.test(text);
  const decode = isContent(value) ? '' : ' | base64 -d';
  if (decode && !isContent(Buffer.from(value, 'base64').toString('utf8'))) return;
  throw new ActionError(
    'the input "kubeconfig" or the variable KUBECONFIG holds the text of a kubeconfig; it must be the path of a file',
    `Write it to a file in a step before, for example printf '%s' "$KUBECONFIG_CONTENT"${decode} > "$RUNNER_TEMP/kubeconfig" with the secret in env, and give that path`,
  );
}

/** People put a token in place of a path. What does not exist is shown only if it looks like a file: few secrets do. */
function shownPath(file: string): string {
  const isName = /^(?:~|\$[A-Z_]+|[a-z._-]{1,40}\d{0,4}(?:\.(?:ya?ml|json|conf|config))?)$/;
  const mayShow = (path: string): boolean =>
    existsSync(path) || (isName.test(basename(path)) && mayShow(dirname(path)));
  return mayShow(file) ? file : 'the file (its name is not shown, because it may be a secret)';
}

interface Kubeconfig {
  file: string;
  /** Has the fields that client-node does not know. */
  document: JsonObject;
  config: KubeConfig;
}

/** Undefined if the file does not exist. Parse errors are not quoted because they contain the text. */
function readKubeconfig(file: string): Kubeconfig | undefined {
  const read = readRegularFile(file);
  let problem = 'not valid YAML of a kubeconfig';
  if ('problem' in read) {
    if (read.problem === NO_SUCH_FILE) return undefined;
    problem = read.problem;
  } else {
    try {
      const text = read.bytes.toString('utf8');
      // A file without documents is a kubeconfig without entries.
      const [document = {}] = loadAll(text);
      const config = new KubeConfig();
      const isEmpty = isObject(document) && Object.keys(document).length === 0;
      config.loadFromString(isEmpty ? '{}' : text, { onInvalidEntry: 'filter' });
      config.makePathsAbsolute(dirname(file));
      if (/: "?(?:DATA\+OMITTED|REDACTED)\b/.test(text))
        problem = 'without --raw, "kubectl config view" leaves certificates and tokens out';
      else if (isObject(document)) return { file, document, config };
    } catch {}
  }
  throw new ActionError(
    `cannot read kubeconfig ${shownPath(file)}: ${problem}`,
    'Write the kubeconfig to a file in a step before, as YAML or JSON; base64 must be decoded first',
  );
}

/** Fields that client-node does not support, or no longer should. */
const UNSUPPORTED = ['auth-provider', 'username', 'as-uid', 'as-groups', 'as-user-extra'];

/** Chooses among the entries of all files. The first that has a name wins, and entries are never mixed. */
function chooseAccess(found: readonly Kubeconfig[], asked: string): Access {
  const source = found.map(({ file }) => file).join(', ');
  const [current = ''] = found.flatMap(({ config }) => config.currentContext || []);
  const name = asked || current;
  const contexts = found.flatMap(({ config }) => config.contexts);
  const context = contexts.find((one) => one.name === name);
  if (context === undefined) {
    const missing = name === '' ? 'current-context' : `context "${name}"`;
    const known = contexts.map((each) => `"${each.name}"`);
    throw new ActionError(
      `${source} has no ${missing}; its contexts are ${listNames(known, 20)}`,
      'Name one with the input "context" (or --context)',
    );
  }
  const clusters = found.flatMap(({ config }) => config.clusters);
  const cluster = clusters.find((one) => one.name === context.cluster);
  // A context without a user sends no credentials.
  const user = context.user ? findUser(found, context.user) : { name: '' };
  if (cluster === undefined || user === undefined) {
    const missing = user === undefined ? `user "${context.user}"` : `cluster "${context.cluster}"`;
    throw new ActionError(`context "${name}" names ${missing}, which is not in ${source}`);
  }
  const server = safeUrl(cluster.server, cluster.name);
  // client-node would look for a proxy agent, which the bundle does not have.
  const { proxyUrl, ...target } = cluster;
  return { source, context: name, server, cluster: { ...target, server }, user, proxyUrl };
}

/** Finds the user, and gives it one way to log in: a token file, a token or a plugin, beside a client certificate. */
function findUser(found: readonly Kubeconfig[], name: string): User | undefined {
  for (const { file, document, config } of found) {
    const user = config.getUser(name);
    if (user === null) continue;
    const entry = arrayAt(document, 'users').find((one) => stringAt(one, 'name') === name);
    const wrong = UNSUPPORTED.find((field) => valueAt(entry, 'user', field));
    if (wrong !== undefined)
      throw new ActionError(
        `user "${name}" has "${wrong}", which is not supported`,
        'Use an exec credential plugin (kubelogin for OIDC and Azure, gke-gcloud-auth-plugin for Google) or a token',
      );
    const { token, exec, ...other } = user;
    const path = stringAt(entry, 'user', 'tokenFile');
    const tokenFile = path && resolve(dirname(file), path);
    // A name without a folder is searched on PATH.
    const command = stringAt(exec, 'command') ?? '';
    if (command.includes(sep)) exec.command = resolve(dirname(file), command);
    if (tokenFile) return { ...other, authProvider: { name: 'file', config: { tokenFile } } };
    return { ...other, ...(token ? { token } : exec && { exec }) };
  }
  return undefined;
}

/** kubectl would send a token without TLS. */
function safeUrl(text: string, cluster: string): string {
  const url = URL.parse(text.includes('://') ? text : `https://${text}`);
  const isLocal = /^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(url?.hostname ?? '');
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && isLocal))
    return url.origin + url.pathname.replace(/\/+$/, '');
  throw new ActionError(
    `the server of cluster "${cluster}" is not an https URL: without TLS, credentials could be read on the way`,
    'http is only accepted for localhost (kubectl proxy)',
  );
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

function podAccess({ root = '' }: Search): Access {
  const config = new KubeConfig();
  config.loadFromCluster(root);
  const cluster = config.getCurrentCluster() as Cluster;
  const user = config.getCurrentUser() as User;
  const server = safeUrl(cluster.server, cluster.name);
  return { source: "the pod's service account", context: 'in-cluster', server, cluster, user };
}

/**
 * Of the pod, if this is one: without a mounted token its search list for DNS names tells (kubelet, pkg/kubelet/network/dns). A
 * kubeconfig may name the surrounding cluster by the address of a gateway: it does not show whether both are the same.
 */
export function ownNamespace({ root = '' }: Search): string | undefined {
  const read = (path: string): string => {
    const file = readRegularFile(join(root, path));
    return 'bytes' in file ? file.bytes.toString() : '';
  };
  const [, searched] = /^search\s+([a-z0-9-]+)\.svc\./m.exec(read('/etc/resolv.conf')) ?? [];
  return read(join(SERVICE_ACCOUNT, 'namespace')).trim() || searched;
}
