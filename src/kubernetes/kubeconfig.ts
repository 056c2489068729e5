import { existsSync, readFileSync, statSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { type Cluster, KubeConfig, type User } from '@kubernetes/client-node';
import { loadAll } from 'js-yaml';
import { ActionError } from '../base/errors.ts';
import { arrayAt, at, isObject, type JsonObject, stringAt } from '../base/json.ts';
import type { Redactor } from '../base/redact.ts';
import type { Clock } from '../base/time.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

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
  /** `server` is an https URL (http on loopback) without trailing slash, user info and query. */
  cluster: Cluster;
  user: User;
  /** Both as written: the types above know not all fields of kubeconfig.v1. */
  written: { cluster: JsonObject; user: JsonObject };
  /** The file that the user's entry is in. */
  userFile: string | undefined;
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
interface Entry {
  file: string;
  content: JsonObject;
}
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
        const content = withAbsolutePaths(at(item, kind), file);
        // YAML turns an unquoted 12345678 into a number, and kubectl refuses it as well.
        const wrong = Object.keys(content).find(
          (field) => TEXTS.test(field) && typeof (content[field] ?? '') !== 'string',
        );
        if (wrong !== undefined) {
          throw configError(`"${wrong}" of ${kind} "${name}" must be a text; put it in quotes`);
        }
        merged[section].set(name, { file, content });
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
  const document = SECTIONS.map((section) => {
    const kind = section.slice(0, -1);
    return [
      section,
      [...merged[section]].map(([name, { content }]) => ({ name, [kind]: content })),
    ];
  });
  const config = new KubeConfig();
  // What is wrong with entries that are not chosen does not matter.
  config.loadFromString(JSON.stringify(Object.fromEntries(document)), { onInvalidEntry: 'filter' });
  const name = asked === '' ? merged.currentContext : asked;
  config.setCurrentContext(name);
  const context = config.getContextObject(name);
  if (context === null) {
    const known = config.getContexts().map((each) => `"${each.name}"`);
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
  const cluster = config.getCurrentCluster();
  const user = context.user ? config.getCurrentUser() : { name: '' };
  const clusterEntry = merged.clusters.get(context.cluster);
  const userEntry = merged.users.get(context.user ?? '');
  if (clusterEntry !== undefined && cluster === null) {
    throw configError(`cluster "${context.cluster}" of the kubeconfig has no "server"`);
  }
  if (clusterEntry === undefined || cluster === null || user === null) {
    const missing = user === null ? `user "${context.user}"` : `cluster "${context.cluster}"`;
    throw configError(`context "${name}" names ${missing}, which is not in ${source}`);
  }
  const written = { cluster: clusterEntry.content, user: userEntry?.content ?? {} };
  const address = stringAt(written.cluster, 'server') ?? '';
  const url = safeUrl(address, `the server of cluster "${cluster.name}"`);
  const server = url.origin + url.pathname.replace(/\/+$/, '');
  const userFile = userEntry?.file;
  return { source, context: name, cluster: { ...cluster, server }, user, written, userFile };
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

/** What kubectl uses inside a pod when there is no kubeconfig. */
function inClusterAccess({ env, root = '' }: Search): Access | undefined {
  const tokenFile = join(root, SERVICE_ACCOUNT, 'token');
  const isPod = env['KUBERNETES_SERVICE_HOST'] && env['KUBERNETES_SERVICE_PORT'];
  if (!isPod || statSync(tokenFile, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  const config = new KubeConfig();
  config.loadFromCluster(root);
  const { caFile = '', ...cluster } = config.getCurrentCluster() as Cluster;
  // It takes http for the ports 80, 8080 and 8001, and cannot do without a ca.crt; rest.InClusterConfig
  // of client-go does neither.
  const server = new URL(cluster.server.replace(/^http:/, 'https:')).origin;
  return {
    source: "the pod's service account",
    context: 'in-cluster',
    cluster: { ...cluster, server, ...(existsSync(caFile) ? { caFile } : {}) },
    user: { name: 'service account of this pod' },
    written: { cluster: {}, user: { tokenFile } },
    userFile: undefined,
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
