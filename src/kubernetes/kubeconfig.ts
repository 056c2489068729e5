import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  statSync,
} from 'node:fs';
import { isIPv6 } from 'node:net';
import { delimiter, dirname, join, resolve } from 'node:path';
import { loadAll } from 'js-yaml';
import { ActionError } from '../base/errors.ts';
import { arrayAt, isObject, type JsonObject, stringAt, valueAt } from '../base/json.ts';
import type { Environment } from '../base/process.ts';
import type { Redactor } from '../base/redact.ts';
import type { Clock } from '../base/time.ts';

export interface Search {
  /** Path of a kubeconfig; otherwise KUBECONFIG, ~/.kube/config, in-cluster, in kubectl's order. */
  kubeconfig?: string | undefined;
  context?: string | undefined;
  env: Environment;
  homeDir: string;
  /** Above `/var/run/secrets`; for tests. */
  root?: string;
}

/** The cluster and the user that were chosen, before any credential was fetched. */
export interface Access {
  /** Where it came from, for messages: files, or "the pod's service account". */
  source: string;
  context: string;
  /** An https URL (http on loopback) without trailing slash, user info and query. */
  server: string;
  cluster: Entry;
  user: Entry;
}

/** An entry of a kubeconfig as written (kubeconfig.v1), but with absolute paths and without doubles. */
interface Entry {
  name: string;
  fields: JsonObject;
  /** Undefined where it is of no file. */
  file?: string;
}

export interface ConnectOptions extends Search {
  redactor: Redactor;
  debug?: (line: string) => void;
  userAgent: string;
  /** Ends a credential plugin that runs while we connect. */
  signal?: AbortSignal;

  /** For tests. */
  clock?: Clock;
  random?: () => number;
  pluginTimeoutMs?: number;
}

/** What the parts of one connection share. */
export interface Session
  extends Required<Pick<ConnectOptions, 'debug' | 'clock' | 'random' | 'pluginTimeoutMs'>> {
  access: Access;
  env: Environment;
  redactor: Redactor;
  userAgent: string;
  /** Ends plugins and connections that are still being made. */
  closing: AbortController;
}

export function configError(message: string, hint?: string): ActionError {
  return new ActionError('kube-config', message, hint === undefined ? {} : { hint });
}

/**
 * Never localhost:8080, which KubeConfig.loadFromDefault ends with: an answer from there would be about
 * another cluster. That also fails for a file in KUBECONFIG that does not exist; kubectl skips it.
 */
export function findAccess(search: Search): Access {
  const { kubeconfig = '', context = '', env, homeDir } = search;
  const list = kubeconfig === '' ? (env['KUBECONFIG'] ?? '') : '';
  refuseContent(kubeconfig, 'the input "kubeconfig"');
  refuseContent(list, 'the environment variable KUBECONFIG');
  const isDefault = kubeconfig + list === '';
  let names = list.split(delimiter).filter((name) => name !== '');
  if (isDefault) names = [join(homeDir, '.kube', 'config')];
  // Nobody expands the tilde of a workflow's `with:` or of `--kubeconfig=~/x`.
  if (kubeconfig !== '') names = [kubeconfig.replace(/^~(?=[/\\])/, homeDir)];
  const files = [...new Set(names.map((name) => resolve(name)))];
  const found = files.flatMap((file) => readKubeconfig(file) ?? []);
  if (kubeconfig !== '' && found.length === 0) {
    const hint = 'Check the path; in a container job the file must exist inside the container';
    throw configError(`cannot read kubeconfig ${files[0]}: no such file`, hint);
  }
  const hasEntries = ({ document }: Found): boolean =>
    SECTIONS.some((section) => arrayAt(document, section).length > 0);
  if (found.some(hasEntries)) return choose(found, context);
  const pod = kubeconfig + context === '' ? serviceAccount(search) : undefined;
  if (pod !== undefined) return choose([pod], context);
  const tried = [
    ...(isDefault ? ['KUBECONFIG is not set'] : []),
    ...files.map((file) => {
      const isEmpty = found.some((each) => each.file === file);
      const origin = list === '' ? '' : ' (from KUBECONFIG)';
      return `${file}${origin} ${isEmpty ? 'is empty' : 'does not exist'}`;
    }),
    'no service account of a pod was found',
  ];
  throw configError(
    `found no cluster to talk to: ${tried.join(', ')}`,
    'Give the path of a kubeconfig (input "kubeconfig" or --kubeconfig), or set KUBECONFIG',
  );
}

/**
 * People put the secret itself where a path belongs. Reading it would work, but the text would then be
 * in process lists, logs of the runner and error messages; the message must not repeat it.
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

interface Found {
  file: string;
  document: JsonObject;
}

const MAX_FILE_BYTES = 10 * 1024 * 1024;

type FileRead = { bytes: Buffer } | { problem: string; isMissing: boolean };

/** Reads a file that a person has named. A device, a pipe or a very large file could block the process. */
export function readRegularFile(path: string): FileRead {
  const unreadable = (problem: string): FileRead => ({ problem, isMissing: false });
  let descriptor: number | undefined;
  try {
    // Without O_NONBLOCK, opening a pipe waits for its writer. Windows has no such flag.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) return unreadable('it is a folder');
    if (!stats.isFile()) return unreadable('it is a device or a pipe and not a file');
    if (stats.size > MAX_FILE_BYTES) return unreadable('it is larger than 10 MB');
    return { bytes: readFileSync(descriptor) };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    if (code === 'ENOENT' || code === 'ENOTDIR')
      return { problem: 'no such file', isMissing: true };
    return unreadable(PROBLEMS.get(code) ?? `the system says ${code}`);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

const PROBLEMS = new Map([
  ['EACCES', 'permission denied'],
  ['EISDIR', 'it is a folder'],
]);

/** Reads a file that a kubeconfig names in one of its fields. Throws an `ActionError`. */
export function readNamedFile(path: string, field: string, { source }: Access): Buffer {
  const read = readRegularFile(path);
  if ('bytes' in read) return read.bytes;
  throw configError(
    `cannot read the ${field} that ${source} names, ${path}: ${read.problem}`,
    'Relative paths in a kubeconfig are relative to its folder',
  );
}

/** Returns undefined if the file does not exist. Parse errors are not quoted: they contain the text. */
function readKubeconfig(file: string): Found | undefined {
  const unreadable = (why: string, hint?: string): ActionError =>
    configError(`cannot read kubeconfig ${file}: ${why}`, hint);
  const read = readRegularFile(file);
  if ('problem' in read) {
    if (read.isMissing) return undefined;
    throw unreadable(read.problem, 'Write the kubeconfig to a file in a step before');
  }
  const { bytes } = read;
  // What "> config" writes in Windows PowerShell.
  const isUtf16 = bytes[0] === 0xff && bytes[1] === 0xfe;
  let document: unknown;
  try {
    // The first document, as kubectl does it; none at all is a kubeconfig without entries.
    document = loadAll(bytes.toString(isUtf16 ? 'utf16le' : 'utf8'))[0] ?? {};
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
 * kubectl's rule: the first file that sets a value or a name wins, and entries are never mixed: of two
 * users "red" the second is ignored as a whole. KubeConfig.mergeConfig refuses a name that comes twice
 * and lets the last current-context win (kubernetes-client/javascript#1306).
 */
function merge(found: readonly Found[], section: (typeof SECTIONS)[number]): Map<string, Entry> {
  const merged = new Map<string, Entry>();
  for (const { file, document } of found) {
    const names = new Set<string>();
    for (const item of arrayAt(document, section)) {
      const name = stringAt(item, 'name');
      if (name === undefined || names.has(name)) {
        const problem =
          name === undefined
            ? `an entry of "${section}" has no name`
            : `"${section}" has two entries named "${name}"`;
        throw configError(`cannot use kubeconfig ${file}: ${problem}`);
      }
      names.add(name);
      const kind = section.slice(0, -1);
      const entry = {
        name,
        file,
        fields: fieldsOf(valueAt(item, kind), `${kind} "${name}"`, file),
      };
      if (!merged.has(name)) merged.set(name, entry);
    }
  }
  return merged;
}

const TEXTS =
  /^(server|certificate-authority|client-|tls-server|proxy-|token|user|password|as(-uid)?$|cluster)/;

/**
 * Paths are relative to the folder of their own file: KubeConfig.makePathsAbsolute knows neither
 * `tokenFile` nor a plugin that lies beside the kubeconfig. kubectl prefers data to a file; KubeConfig
 * does not (config.ts, bufferFromFileOrString).
 */
function fieldsOf(entry: unknown, owner: string, file: string): JsonObject {
  // Not a typo: kubectl writes tokenFile in camel case, unlike every other field of a user entry.
  const { 'token-file': tokenFile, ...fields } = isObject(entry) ? entry : {};
  if (tokenFile !== undefined) fields['tokenFile'] ??= tokenFile;
  // YAML turns an unquoted 12345678 into a number, and kubectl refuses it as well.
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
  // A bare command is looked up on PATH.
  if (isObject(fields['exec']) && /[/\\]/.test(command)) {
    fields['exec'] = { ...fields['exec'], command: resolve(dirname(file), command) };
  }
  return fields;
}

function choose(found: readonly Found[], asked: string): Access {
  const clusters = merge(found, 'clusters');
  const users = merge(found, 'users');
  const contexts = merge(found, 'contexts');
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

/** https, or http on loopback: kubectl would send a token through the open net. */
export function safeUrl(text: string, what: string): URL {
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

/**
 * As a kubeconfig, what kubectl uses inside a pod when there is none (client-go, rest.InClusterConfig).
 * KubeConfig.loadFromCluster takes http for the ports 80, 8080 and 8001, and cannot do without a ca.crt.
 */
function serviceAccount({ env, root = '' }: Search): Found | undefined {
  const tokenFile = join(root, SERVICE_ACCOUNT, 'token');
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  const hasToken = statSync(tokenFile, { throwIfNoEntry: false })?.isFile() === true;
  if (!host || !port || !hasToken) return undefined;
  const ca = join(root, SERVICE_ACCOUNT, 'ca.crt');
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  const trust = existsSync(ca) ? { 'certificate-authority': ca } : {};
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
 * The namespace that we run in. A kubeconfig may name the cluster around us by the address and authority of
 * a gateway, so no other cluster can be told from it for sure.
 */
export function ownNamespace({ env, root = '' }: Search): string | undefined {
  const file = join(root, SERVICE_ACCOUNT, 'namespace');
  if (!env['KUBERNETES_SERVICE_HOST'] || !existsSync(file)) return undefined;
  return readFileSync(file, 'utf8').trim() || undefined;
}
