import { existsSync, readFileSync, statSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { delimiter, dirname, join, resolve } from 'node:path';
import { loadAll } from 'js-yaml';
import { ActionError } from '../base/errors.ts';
import { arrayAt, at, isObject, type JsonObject, stringAt } from '../base/json.ts';
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

/** An entry of a kubeconfig as written (kubeconfig.v1), but with absolute paths. */
interface Entry {
  name: string;
  fields: JsonObject;
  /** Undefined where it is of no file. */
  file?: string;
}

/** What the parts of one connection share. */
export interface Session {
  access: Access;
  env: Environment;
  clock: Clock;
  redactor: Redactor;
  /** Tells everybody who hides secrets, before one can appear in any text. */
  announce: (secret: string | undefined) => void;
  debug: (line: string) => void;
  userAgent: string;
  pluginTimeoutMs: number;
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
  const listed = list.split(delimiter).filter((name) => name !== '');
  // Nobody expands the tilde of a workflow's `with:` or of `--kubeconfig=~/x`.
  const asked = kubeconfig === '' ? listed : [kubeconfig.replace(/^~(?=[/\\])/, homeDir)];
  const names = kubeconfig + list === '' ? [join(homeDir, '.kube', 'config')] : asked;
  const files = [...new Set(names.map((name) => resolve(name)))];
  const found = files.flatMap((file) => readKubeconfig(file) ?? []);
  if (kubeconfig !== '' && found.length === 0) {
    const hint = 'Check the path; in a container job the file must exist inside the container';
    throw configError(`cannot read kubeconfig ${files[0]}: no such file`, hint);
  }
  const merged = merge(found);
  const source = found.map(({ file }) => file);
  if (SECTIONS.some((section) => merged[section].size > 0)) {
    return choose(merged, context, source.join(', '));
  }
  const inCluster = kubeconfig + context === '' ? inClusterAccess(search) : undefined;
  if (inCluster !== undefined) return inCluster;
  const origin = list === '' ? '' : ' (from KUBECONFIG)';
  const tried = [
    ...(kubeconfig + list === '' ? ['KUBECONFIG is not set'] : []),
    ...files.map(
      (file) => `${file}${origin} ${source.includes(file) ? 'is empty' : 'does not exist'}`,
    ),
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

/** `undefined` when there is no such file. Parse errors are not quoted: they contain the text. */
function readKubeconfig(file: string): Found | undefined {
  const unreadable = (why: string, hint?: string): ActionError =>
    configError(`cannot read kubeconfig ${file}: ${why}`, hint);
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw unreadable(REASONS[code] ?? `the system says ${code}`);
  }
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

const REASONS: Record<string, string | undefined> = {
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
};

const SECTIONS = ['clusters', 'users', 'contexts'] as const;
type Merged = Record<(typeof SECTIONS)[number], Map<string, Entry>> & { currentContext: string };

const TEXTS =
  /^(server|certificate-authority|client-|tls-server|proxy-|token|user|password|as(-uid)?$|cluster)/;

/**
 * kubectl's rule: the first file that sets a value or a name wins, and entries are never mixed: of two
 * users "red" the second is ignored as a whole. KubeConfig.mergeConfig refuses a name that comes twice
 * and lets the last current-context win (kubernetes-client/javascript#1306).
 */
function merge(found: readonly Found[]): Merged {
  const [clusters, users, contexts] = SECTIONS.map(() => new Map<string, Entry>());
  const merged = { clusters, users, contexts, currentContext: '' } as Merged;
  for (const { file, document } of found) {
    merged.currentContext ||= stringAt(document, 'current-context') ?? '';
    for (const section of SECTIONS) {
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
        if (merged[section].has(name)) continue;
        const kind = section.slice(0, -1);
        const fields = withAbsolutePaths(at(item, kind), file);
        // YAML turns an unquoted 12345678 into a number, and kubectl refuses it as well.
        const wrong = Object.keys(fields).find(
          (field) => TEXTS.test(field) && typeof (fields[field] ?? '') !== 'string',
        );
        if (wrong !== undefined) {
          throw configError(`"${wrong}" of ${kind} "${name}" must be a text; put it in quotes`);
        }
        merged[section].set(name, { name, fields, file });
      }
    }
  }
  return merged;
}

/**
 * They are relative to the folder of their own file. KubeConfig.makePathsAbsolute knows neither
 * `tokenFile` nor a plugin that lies beside the kubeconfig.
 */
function withAbsolutePaths(entry: unknown, file: string): JsonObject {
  // Not a typo: kubectl writes tokenFile in camel case, unlike every other field of a user entry.
  const { 'token-file': tokenFile, ...content } = isObject(entry) ? entry : {};
  if (tokenFile !== undefined) content['tokenFile'] ??= tokenFile;
  for (const field of ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile']) {
    const path = stringAt(content, field) ?? '';
    if (path !== '') content[field] = resolve(dirname(file), path);
  }
  const command = stringAt(content, 'exec', 'command') ?? '';
  // A bare command is looked up on PATH.
  if (isObject(content['exec']) && /[/\\]/.test(command)) {
    content['exec'] = { ...content['exec'], command: resolve(dirname(file), command) };
  }
  return content;
}

function choose(merged: Merged, asked: string, source: string): Access {
  const name = asked === '' ? merged.currentContext : asked;
  const contexts = [...merged.contexts.values()].filter(({ fields }) =>
    stringAt(fields, 'cluster'),
  );
  const context = contexts.find((each) => each.name === name)?.fields;
  if (context === undefined) {
    const known = contexts.map((each) => `"${each.name}"`);
    const more = known.length > 20 ? ` and ${known.length - 20} more` : '';
    const has =
      known.length === 0 ? 'no contexts' : `the contexts ${known.slice(0, 20).join(', ')}`;
    throw name === ''
      ? configError(
          `${source} has no current-context; it has ${has}${more}`,
          'Name one with the input "context" (or --context)',
        )
      : configError(`there is no context "${name}" in ${source}; it has ${has}${more}`);
  }
  const clusterName = stringAt(context, 'cluster') ?? '';
  const userName = stringAt(context, 'user') ?? '';
  const cluster = merged.clusters.get(clusterName);
  const user = userName === '' ? { name: '', fields: {} } : merged.users.get(userName);
  const address = stringAt(cluster?.fields, 'server') ?? '';
  if (cluster !== undefined && address === '') {
    throw configError(`cluster "${clusterName}" of the kubeconfig has no "server"`);
  }
  if (cluster === undefined || user === undefined) {
    const missing = user === undefined ? `user "${userName}"` : `cluster "${clusterName}"`;
    throw configError(`context "${name}" names ${missing}, which is not in ${source}`);
  }
  const url = safeUrl(address, `the server of cluster "${clusterName}"`);
  const server = url.origin + url.pathname.replace(/\/+$/, '');
  return { source, context: name, server, cluster, user };
}

/** https, or http on loopback: kubectl would send a token through the open net. */
export function safeUrl(text: string, what: string): URL {
  const withScheme = text.includes('://') ? text : `https://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
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
 * What kubectl uses inside a pod when there is no kubeconfig (client-go, rest.InClusterConfig).
 * KubeConfig.loadFromCluster takes http for the ports 80, 8080 and 8001, and cannot do without a ca.crt.
 */
function inClusterAccess({ env, root = '' }: Search): Access | undefined {
  const tokenFile = join(root, SERVICE_ACCOUNT, 'token');
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port || statSync(tokenFile, { throwIfNoEntry: false })?.isFile() !== true)
    return undefined;
  const certificate = join(root, SERVICE_ACCOUNT, 'ca.crt');
  return {
    source: "the pod's service account",
    context: 'in-cluster',
    server: new URL(`https://${isIPv6(host) ? `[${host}]` : host}:${port}`).origin,
    cluster: {
      name: 'in-cluster',
      fields: existsSync(certificate) ? { 'certificate-authority': certificate } : {},
    },
    user: { name: 'service account of this pod', fields: { tokenFile } },
  };
}

/**
 * The namespace that we run in, if the chosen cluster is the one around us. A kubeconfig may name that
 * cluster by another address, so the same certificate authority (PEM) counts as well.
 */
export function ownNamespace(
  server: string,
  ca: string | undefined,
  { env, root = '' }: Search,
): string | undefined {
  const host = env['KUBERNETES_SERVICE_HOST'] ?? '';
  if (host === '') return undefined;
  const contentOf = (name: string): string | undefined => {
    const file = join(root, SERVICE_ACCOUNT, name);
    return existsSync(file) ? readFileSync(file, 'utf8').trim() || undefined : undefined;
  };
  const names = [host, `[${host}]`, 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
  const isOurs =
    names.includes(new URL(server).hostname) ||
    (ca !== undefined && ca.trim() === contentOf('ca.crt'));
  return isOurs ? contentOf('namespace') : undefined;
}
