import { existsSync, readFileSync, statSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { basename, delimiter, dirname, join, resolve } from 'node:path';
import { CORE_SCHEMA, loadAll, mergeTag } from 'js-yaml';
import { ActionError } from '../base/errors.ts';
import { arrayAt, isObject, type JsonObject, stringAt, valueAt } from '../base/json.ts';
import { type Environment, NO_SUCH_FILE, readRegularFile } from '../base/process.ts';
import type { Redactor } from '../base/redact.ts';
import type { Clock } from '../base/time.ts';

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
  cluster: Entry;
  user: Entry;
}

/** An entry of a kubeconfig (kubeconfig.v1) with absolute paths, after the merge. */
interface Entry {
  name: string;
  fields: JsonObject;
  /** File of the entry; undefined for a service account. */
  file?: string;
}

export interface ConnectOptions extends Search {
  redactor: Redactor;
  debug?: (line: string) => void;
  userAgent: string;
  /** Ends a credential plugin that runs while the gate connects. */
  signal?: AbortSignal;

  /** Clock; for tests. */
  clock?: Clock;
  random?: () => number;
  pluginTimeoutMs?: number;
}

/** State that the parts of one connection share. */
export interface Session extends Required<Omit<ConnectOptions, keyof Search | 'signal'>> {
  access: Access;
  env: Environment;
  /** Ends plugins, and connections that are still being opened. */
  closing: AbortController;
}

export function configError(message: string, hint?: string): ActionError {
  return new ActionError('kube-config', message, hint);
}

/**
 * Finds the cluster and the user. The last fallback of KubeConfig.loadFromDefault, localhost:8080, is left out:
 * an answer from there would be about another cluster. loadFromDefault also fails for a file in KUBECONFIG that
 * does not exist; kubectl and this function skip it.
 */
export function findAccess(search: Search): Access {
  const { kubeconfig = '', context = '', env, homeDir } = search;
  const list = kubeconfig === '' ? (env['KUBECONFIG'] ?? '') : '';
  refuseContent(kubeconfig, 'the input "kubeconfig"');
  refuseContent(list, 'the environment variable KUBECONFIG');
  const isDefault = kubeconfig + list === '';
  let names = list.split(delimiter).filter((name) => name !== '');
  if (isDefault) names = [join(homeDir, '.kube', 'config')];
  // Nothing else expands the tilde in `with:` of a workflow or in `--kubeconfig=~/x`.
  if (kubeconfig !== '') names = [kubeconfig.replace(/^~(?=[/\\])/, homeDir)];
  const files = [...new Set(names.map((name) => resolve(name)))];
  const found = files.flatMap((file) => readKubeconfig(file) ?? []);
  if (kubeconfig !== '' && found.length === 0) {
    const hint = 'Check the path; in a container job the file must exist inside the container';
    throw configError(`cannot read kubeconfig ${files.map(shownPath)}: ${NO_SUCH_FILE}`, hint);
  }
  const hasEntries = ({ document }: Found): boolean =>
    SECTIONS.some((section) => arrayAt(document, section).length > 0);
  if (found.some(hasEntries)) return chooseAccess(found, context);
  // A file that is named stands for its cluster. In the cluster of this pod the namespace would not exist, and the run would pass.
  const mayBePod = kubeconfig + list + context === '';
  const pod = mayBePod ? serviceAccount(search) : undefined;
  if (pod !== undefined) return chooseAccess([pod], context);
  const tried = [
    ...(isDefault ? ['KUBECONFIG is not set'] : []),
    ...(files.length === 0 ? ['KUBECONFIG names no file'] : []),
    ...files.map((file) => {
      const isThere = found.some((each) => each.file === file);
      const origin = list === '' ? '' : ' (from KUBECONFIG)';
      const path = isDefault ? file : shownPath(file);
      return `${path}${origin} ${isThere ? 'has no clusters, users or contexts' : 'does not exist'}`;
    }),
    ...(mayBePod ? ['no service account of a pod was found'] : []),
  ];
  throw configError(
    `found no cluster to talk to: ${tried.join(', ')}`,
    'Give the path of a kubeconfig (input "kubeconfig" or --kubeconfig), or set KUBECONFIG',
  );
}

/**
 * Refuses the text of a kubeconfig in place of its path. Reading it would work, but the secret would be visible
 * in process lists, in logs of the runner and in error messages. The message must not repeat it.
 */
function refuseContent(value: string, where: string): void {
  const isBase64 = value.length > 60 && /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(value);
  const text = isBase64 ? Buffer.from(value, 'base64').toString('utf8') : value;
  const fields = /(^|[\s{,"'])(apiVersion|clusters|current-context|contexts|users)["']?\s*:/;
  if (!fields.test(text)) return;
  const form = isBase64 ? 'a kubeconfig in base64' : 'the text of a kubeconfig';
  throw configError(
    `${where} holds ${form}; it must be the path of a file`,
    'Write it to a file in a step before, for example ' +
      `printf '%s' "$KUBECONFIG_CONTENT"${isBase64 ? ' | base64 -d' : ''} > "$RUNNER_TEMP/kubeconfig" ` +
      'with the secret in env, and give that path',
  );
}

/** Words, with few digits behind them, names with a usual extension, and variables that nobody has expanded: few secrets look so. */
const NAME_OF_FILE =
  /^(?=.{1,60}$)(?:\.?(?:[a-z]*(?:[A-Z][a-z]+)*|[A-Z]+)\d{0,6}(?:[-_.@](?:[a-z]*(?:[A-Z][a-z]+)*|[A-Z]+)\d{0,6})*|[\w.-]+\.(?:ya?ml|json|conf|config|crt|pem)|\$\{?\w+\}?|\$\{\{ [\w.]+ \}\})$/;

/**
 * Returns the path as messages show it. People put a token, a key or a kubeconfig in base64 in place of a path, and these may
 * contain slashes and dots: what does not exist is shown only if it looks like names of files.
 */
function shownPath(file: string): string {
  const missing: string[] = [];
  for (let path = file; !existsSync(path) && path !== dirname(path); path = dirname(path)) {
    missing.push(basename(path));
  }
  const isPath = missing.every((name) => NAME_OF_FILE.test(name));
  return isPath ? file : '(its name is not shown, because it may be a secret)';
}

interface Found {
  file: string;
  document: JsonObject;
}

/** Reads a file that a kubeconfig names in one of its fields. Throws an `ActionError`. */
export function readNamedFile(path: string, field: string, { source }: Access): Buffer {
  const read = readRegularFile(path);
  if ('bytes' in read) return read.bytes;
  throw configError(
    `cannot read the ${field} that ${source} names, ${shownPath(path)}: ${read.problem}`,
    `Relative paths in a kubeconfig are relative to its folder; content belongs in a field such as "${field}-data" or "token"`,
  );
}

/**
 * Reads a kubeconfig, or returns undefined if the file does not exist. Parse errors are not quoted because they
 * contain the text.
 */
function readKubeconfig(file: string): Found | undefined {
  const unreadable = (why: string, hint?: string): ActionError =>
    configError(`cannot read kubeconfig ${shownPath(file)}: ${why}`, hint);
  const read = readRegularFile(file);
  if ('problem' in read) {
    if (read.problem === NO_SUCH_FILE) return undefined;
    throw unreadable(read.problem, 'Write the kubeconfig to a file in a step before');
  }
  const { bytes } = read;
  // "> config" in Windows PowerShell writes UTF-16.
  const isUtf16 = bytes[0] === 0xff && bytes[1] === 0xfe;
  let document: unknown;
  try {
    // kubectl also reads only the first document. A file without documents is a kubeconfig without entries.
    const text = bytes.toString(isUtf16 ? 'utf16le' : 'utf8');
    document = loadAll(text, { schema: CORE_SCHEMA.withTags(mergeTag) })[0] ?? {};
  } catch (error) {
    const mark = error instanceof Error && 'mark' in error ? error.mark : undefined;
    const line = isObject(mark) ? mark['line'] : undefined;
    throw unreadable(`not valid YAML${typeof line === 'number' ? ` (line ${line + 1})` : ''}`);
  }
  if (isObject(document)) return { file, document };
  const hint = 'Write the kubeconfig as YAML or JSON text; content in base64 must be decoded first';
  throw unreadable('it is not a kubeconfig', hint);
}

const SECTIONS = ['clusters', 'users', 'contexts'] as const;

/**
 * Merges files by kubectl's rule: the first file that sets a value or a name has priority, and entries are never
 * mixed. Of two users "red" the second one is ignored as a whole. KubeConfig.mergeConfig refuses a name that
 * occurs twice and uses the last current-context (kubernetes-client/javascript#1306).
 */
function mergeSection(found: readonly Found[], section: string): Map<string, Entry> {
  const kind = section.slice(0, -1);
  const merged = new Map<string, Entry>();
  for (const { file, document } of found) {
    const unusable = (problem: string): ActionError =>
      configError(`cannot use kubeconfig ${file}: ${problem}`);
    const names = new Set<string>();
    for (const item of arrayAt(document, section)) {
      const name = stringAt(item, 'name');
      if (name === undefined) throw unusable(`an entry of "${section}" has no name that is a text`);
      if (names.has(name)) throw unusable(`"${section}" has two entries named "${name}"`);
      names.add(name);
      const fields = fieldsOf(valueAt(item, kind), `${kind} "${name}"`, file);
      if (!merged.has(name)) merged.set(name, { name, file, fields });
    }
  }
  return merged;
}

const TEXTS =
  /^(server|certificate-authority|client-|tls-server|proxy-|token|user|password|as(-uid)?$|cluster)/;

/**
 * Returns the fields of an entry with absolute paths. Paths are relative to the folder of their file:
 * KubeConfig.makePathsAbsolute supports neither `tokenFile` nor a plugin beside the kubeconfig. kubectl prefers
 * data to a file; KubeConfig does not (config.ts, bufferFromFileOrString).
 */
function fieldsOf(entry: unknown, owner: string, file: string): JsonObject {
  // Both spellings exist: kubectl writes tokenFile in camel case, unlike every other field of a user entry.
  const { 'token-file': tokenFile, ...fields } = isObject(entry) ? entry : {};
  if (tokenFile !== undefined) fields['tokenFile'] ??= tokenFile;
  // YAML reads an unquoted 12345678 as a number. kubectl refuses it as well.
  const wrong = Object.keys(fields).find(
    (field) => TEXTS.test(field) && typeof (fields[field] ?? '') !== 'string',
  );
  if (wrong !== undefined) {
    throw configError(`"${wrong}" of ${owner} must be a text; put it in quotes`);
  }
  for (const field of ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile']) {
    const path = stringAt(fields, field) ?? '';
    if (path !== '') fields[field] = resolve(dirname(file), path);
    if (fields[`${field}-data`]) delete fields[field];
  }
  const command = stringAt(fields, 'exec', 'command') ?? '';
  // A command without a slash is searched on PATH.
  if (isObject(fields['exec']) && /[/\\]/.test(command)) {
    fields['exec'] = { ...fields['exec'], command: resolve(dirname(file), command) };
  }
  return fields;
}

function chooseAccess(found: readonly Found[], asked: string): Access {
  const clusters = mergeSection(found, 'clusters');
  const users = mergeSection(found, 'users');
  const contexts = mergeSection(found, 'contexts');
  const source = found.map(({ file }) => file).join(', ');
  const current = found.map(({ document }) => stringAt(document, 'current-context'));
  const name = asked || current.find(Boolean) || '';
  const context = contexts.get(name)?.fields;
  if (context === undefined) {
    const known = [...contexts.keys()].map((each) => `"${each}"`);
    const more = known.length > 20 ? ` and ${known.length - 20} more` : '';
    const shown = `the contexts ${known.slice(0, 20).join(', ')}${more}`;
    const has = `it has ${known.length === 0 ? 'no contexts' : shown}`;
    if (name !== '') throw configError(`there is no context "${name}" in ${source}; ${has}`);
    const hint = 'Name one with the input "context" (or --context)';
    throw configError(`${source} has no current-context; ${has}`, hint);
  }
  const clusterName = stringAt(context, 'cluster') ?? '';
  const userName = stringAt(context, 'user') ?? '';
  const cluster = clusters.get(clusterName);
  const user = userName === '' ? { name: '', fields: {} } : users.get(userName);
  if (cluster === undefined || user === undefined) {
    const missing = user === undefined ? `user "${userName}"` : `cluster "${clusterName}"`;
    throw configError(`context "${name}" names ${missing}, which is not in ${source}`);
  }
  const address = stringAt(cluster.fields, 'server') ?? '';
  if (address === '')
    throw configError(`cluster "${clusterName}" of the kubeconfig has no "server"`);
  const url = safeUrl(address, `the server of cluster "${clusterName}"`);
  const server = url.origin + url.pathname.replace(/\/+$/, '');
  return { source, context: name, server, cluster, user };
}

/**
 * Returns the URL if it is https, or http on loopback. kubectl would send a token over an unencrypted
 * connection.
 */
function safeUrl(text: string, what: string): URL {
  const url = URL.parse(text.includes('://') ? text : `https://${text}`);
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') {
    throw configError(`${what} is not an https URL`);
  }
  if (url.protocol === 'https:') return url;
  if (/^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(url.hostname)) return url;
  throw configError(
    `${what} is ${url.origin}: without TLS, credentials could be read on the way`,
    'Use an https URL; http is only accepted for localhost (kubectl proxy)',
  );
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/**
 * Returns the service account of the pod as a kubeconfig, which kubectl uses in a pod without any other
 * (client-go, rest.InClusterConfig). KubeConfig.loadFromCluster uses http for the ports 80, 8080 and 8001, and
 * requires a ca.crt.
 */
function serviceAccount({ env, root = '' }: Search): Found | undefined {
  const tokenFile = join(root, SERVICE_ACCOUNT, 'token');
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port || !isFile(tokenFile)) return undefined;
  const ca = join(root, SERVICE_ACCOUNT, 'ca.crt');
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  const trust = isFile(ca) ? { 'certificate-authority': ca } : {};
  const [name, user] = ['in-cluster', 'service account of this pod'];
  const document = {
    'current-context': name,
    contexts: [{ name, context: { cluster: name, user } }],
    clusters: [{ name, cluster: { server, ...trust } }],
    users: [{ name: user, user: { tokenFile } }],
  };
  return { file: "the pod's service account", document };
}

/**
 * Returns the namespace in which this process runs. A kubeconfig may name the surrounding cluster by the address
 * and authority of a gateway, so it does not show whether both are the same cluster.
 */
export function ownNamespace({ env, root = '' }: Search): string | undefined {
  const file = join(root, SERVICE_ACCOUNT, 'namespace');
  if (!env['KUBERNETES_SERVICE_HOST'] || !isFile(file)) return undefined;
  return readFileSync(file, 'utf8').trim() || undefined;
}
