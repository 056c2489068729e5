import { statSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import { ActionError } from '../base/errors.ts';
import { arrayAt, at, isObject, type JsonObject, stringAt, stringsAt } from '../base/json.ts';
import { MIN_SECRET_LENGTH, type Redactor } from '../base/redact.ts';
import { type Access, configError, type Session } from './kubeconfig.ts';
import { type OidcConfig, validIdToken } from './oidc.ts';
import { checkPlugin, guardPlugin } from './plugin.ts';

/** Bound service account tokens rotate; the kubelet replaces the file well before the old one ends. */
const READ_AGAIN_MS = 60_000;
/** Renewed this long before it ends, because our clock and the server's differ. */
const RENEW_BEFORE_MS = 60_000;
/** Until the next try, while what there is still works. */
const TRY_AGAIN_MS = 10_000;

/** Finished values, ready for the wire; a new object whenever one of them changed. */
export interface Login {
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** PEM, as are `cert` and `key`. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** ms since the epoch, as is `expiresAt`. */
  renewAt: number;
  expiresAt: number;
}

export interface Credentials {
  /** Fresh enough to be sent. Throws an `ActionError` when there is nothing to be had. */
  current(): Promise<Login>;
  /** After a 401 for these: is there something else to try? */
  refresh(rejected: Login): Promise<boolean>;
  close(): void;
}

/** What KubeConfig makes of the chosen user; throws an `ActionError` for one that cannot log in. */
export function keepCredentials(session: Session): Credentials {
  const { access, clock, announce } = session;
  const closing = new AbortController();
  let login: Login | undefined;
  let running: Promise<Login> | undefined;
  announceSecrets(access.user.fields, announce);
  const { exec } = userFor(access);
  if (exec) checkPlugin(exec, ownerOf(access));

  /** Sixty calls at once must not start sixty logins. */
  const renew = (): Promise<Login> => {
    running ??= logIn(session, closing.signal)
      .then((fresh) => {
        if (login === undefined || !isSame(login, fresh)) login = fresh;
        return Object.assign(login, { renewAt: fresh.renewAt, expiresAt: fresh.expiresAt });
      })
      .finally(() => {
        running = undefined;
      });
    return running;
  };
  return {
    async current() {
      if (login !== undefined && clock.now() < login.renewAt) return login;
      try {
        return await renew();
      } catch (error) {
        // A hiccup of the plugin, or a token file that is just being replaced.
        if (login === undefined || clock.now() >= login.expiresAt) throw error;
        login.renewAt = clock.now() + TRY_AGAIN_MS;
        return login;
      }
    },
    refresh: async (rejected) =>
      (login !== undefined && login !== rejected) || (await renew()) !== rejected,
    close: () => closing.abort(),
  };
}

function ownerOf({ user }: Access): string {
  return `user "${user.name}"`;
}

/** By a new KubeConfig each time: it keeps what it was given, and after a 401 it has to ask again. */
async function logIn(session: Session, signal: AbortSignal): Promise<Login> {
  const { access, clock, announce } = session;
  const owner = ownerOf(access);
  const { 'auth-provider': provider, ...user } = userFor(access);
  const isFile = stringAt(provider, 'name') === 'tokenFile';
  const config = new KubeConfig();
  const wire: RequestOptions = {};
  let endOf = (): number => Number.POSITIVE_INFINITY;
  try {
    const settings = (at(provider, 'config') ?? {}) as OidcConfig;
    const valid = provider && !isFile ? await validIdToken(settings, session, signal) : undefined;
    if (valid) endOf = () => valid.expiresAt;
    const method = valid ? { token: valid.token } : isFile ? { 'auth-provider': provider } : {};
    config.loadFromString(kubeconfigOf(clusterFor(access), { ...user, ...method }));
    if (user['exec']) endOf = guardPlugin(config, session, signal);
    await config.applyToHTTPSOptions(wire);
  } catch (error) {
    endOf();
    throw explained(error, access);
  }
  const expiresAt = endOf();
  const authorization = authorizationOf(wire, isFile, owner, announce);
  const cert = pem(wire.cert, `the client-certificate of ${owner}`);
  const key = pem(wire.key, `the client-key of ${owner}`);
  announce(key);
  if ((cert === undefined) !== (key === undefined)) {
    // One file may hold both; kubectl accepts that only when it is named twice.
    throw configError(
      `${owner} of the kubeconfig has no "client-${cert === undefined ? 'certificate' : 'key'}"`,
      'A client certificate needs both, client-certificate(-data) and client-key(-data)',
    );
  }
  const now = clock.now();
  // Half of a lifetime that is shorter than the margin: else every call would start the plugin.
  const margin = Math.min(RENEW_BEFORE_MS, Math.max(0, (expiresAt - now) / 2));
  return {
    headers: { ...authorization, ...impersonation(access.user.fields) },
    ca: pem(wire.ca, `the certificate-authority of cluster "${access.cluster.name}"`),
    cert,
    key,
    renewAt: isFile ? now + READ_AGAIN_MS : expiresAt - margin,
    expiresAt,
  };
}

function explained(error: unknown, access: Access): ActionError {
  if (error instanceof ActionError) return error;
  if (error instanceof Error && 'path' in error && 'code' in error) {
    const { path, code } = error;
    const entries = Object.entries({ ...access.cluster.fields, ...access.user.fields });
    const [field = 'file'] = entries.find(([, value]) => value === path) ?? [];
    const why = code === 'ENOENT' ? 'no such file' : String(code);
    return configError(
      `cannot read the ${field} that ${access.source} names, ${path}: ${why}`,
      'Relative paths in a kubeconfig are relative to its folder',
    );
  }
  // No words of client-node: JSON.parse, for one, quotes what it cannot read.
  return configError(`cannot log in as ${ownerOf(access)} of ${access.source}`);
}

function isSame(one: Login, other: Login): boolean {
  const values = ({ headers, ca, cert, key }: Login) => JSON.stringify([headers, ca, cert, key]);
  return values(one) === values(other);
}

/** With nothing but this one to choose. */
function kubeconfigOf(cluster: JsonObject, user: JsonObject): string {
  const name = 'chosen';
  return JSON.stringify({
    'current-context': name,
    contexts: [{ name, context: { cluster: name, user: name } }],
    clusters: [{ name, cluster }],
    users: [{ name, user }],
  });
}

/** kubectl prefers the data to the file; client-node does not (config.ts, bufferFromFileOrString). */
function clusterFor({ server, cluster: { fields } }: Access): JsonObject {
  const { 'certificate-authority-data': data, 'certificate-authority': file } = fields;
  const isInsecure = fields['insecure-skip-tls-verify'] === true;
  // KubeConfig would refuse http; here it is for loopback only.
  const flags = { server, 'insecure-skip-tls-verify': isInsecure || server.startsWith('http:') };
  if (isInsecure) return flags;
  return { ...flags, [`certificate-authority${data ? '-data' : ''}`]: data || file };
}

/**
 * With one way to log in, in client-go's order; a client certificate comes on top. KubeConfig would
 * prefer a token to a token file, run a plugin beside a token, and send "undefined" as a password.
 */
function userFor(access: Access): JsonObject {
  const { token, tokenFile, username, password, exec, ...rest } = access.user.fields;
  const { 'auth-provider': authProvider, ...user } = rest;
  const provider = isObject(authProvider) ? String(authProvider['name']) : 'oidc';
  if (provider !== 'oidc') {
    throw configError(
      `${ownerOf(access)} logs in through the auth provider "${provider}", which is no longer supported`,
      HINTS[provider] ?? 'Use an exec credential plugin or a token instead',
    );
  }
  for (const field of ['client-certificate', 'client-key']) {
    if (user[`${field}-data`]) delete user[field];
  }
  const file = String(tokenFile ?? '');
  // A token beside it is for as long as there is nothing in the file.
  if (file !== '' && !(token && !statSync(file, { throwIfNoEntry: false })?.size)) {
    return { ...user, 'auth-provider': { name: 'tokenFile', config: { tokenFile: file } } };
  }
  if (token) return { ...user, token: String(token).trim() };
  if (username) return { ...user, username, password: password ?? '' };
  if (exec) return { ...user, exec };
  return authProvider ? { ...user, 'auth-provider': authProvider } : user;
}

/** kubectl dropped them in 1.26; client-node would run the shell command of the kubeconfig for gcp. */
const HINTS: Record<string, string | undefined> = {
  gcp: 'Use gke-gcloud-auth-plugin: gcloud container clusters get-credentials writes such a kubeconfig',
  azure: 'Use kubelogin: kubelogin convert-kubeconfig changes the kubeconfig',
};

/** client-node sends a token as it is: with the line break at its end, or none for an empty file. */
function authorizationOf(
  { headers, auth }: RequestOptions,
  isFile: boolean,
  owner: string,
  announce: Session['announce'],
): { authorization?: string } {
  const header = stringAt(headers as JsonObject | undefined, 'Authorization');
  if (header === undefined && !isFile) {
    return auth ? { authorization: `Basic ${Buffer.from(auth).toString('base64')}` } : {};
  }
  const token = (header ?? '').replace(/^Bearer /, '').trim();
  announce(token);
  if (/^[\x21-\x7e]+$/.test(token)) return { authorization: `Bearer ${token}` };
  throw configError(
    `the token of ${owner} is empty or has characters in it that no token has`,
    'Check that the token was written as one line, without quotes or control characters',
  );
}

/**
 * kubectl's `as`, `as-uid`, `as-groups` and `as-user-extra`, of which KubeConfig knows the first
 * (kubernetes-client/javascript#2373). A list is sent as repeated headers; joined by commas it would be
 * one group with a strange name.
 */
function impersonation(user: JsonObject): Record<string, string | string[]> {
  const extra = at(user, 'as-user-extra');
  const fields = isObject(extra) ? Object.keys(extra) : [];
  const headers: [string, string | string[]][] = [
    ['Impersonate-User', stringAt(user, 'as') ?? ''],
    ['Impersonate-Uid', stringAt(user, 'as-uid') ?? ''],
    ['Impersonate-Group', stringsAt(user, 'as-groups')],
    ...fields.map((key): [string, string[]] => [
      // Header names have few legal characters; the API server decodes percent signs.
      `Impersonate-Extra-${encodeURIComponent(key).replaceAll('(', '%28').replaceAll(')', '%29')}`,
      stringsAt(extra, key),
    ]),
  ];
  return Object.fromEntries(headers.filter(([, value]) => value.length > 0));
}

function pem(value: RequestOptions['ca' | 'key'], what: string): string | undefined {
  const text = value?.toString();
  if (text === undefined || text.includes('-----BEGIN ')) return text;
  throw configError(`${what} is not in PEM form`);
}

export function announcer(
  redactor: Redactor,
  onSecret?: (value: string) => void,
): Session['announce'] {
  const known = new Set<string>();
  return (secret = '') => {
    // Line by line: a masker that took a whole key would also hide the lines that every key has.
    for (const line of secret.split(/\r?\n/).map((part) => part.trim())) {
      const isFrame = /^(-----(BEGIN|END) |(Proc-Type|DEK-Info): )/.test(line);
      if (line.length < MIN_SECRET_LENGTH || known.has(line) || isFrame) continue;
      known.add(line);
      redactor.add(line);
      onSecret?.(line);
    }
  };
}

function announceSecrets(user: JsonObject, announce: Session['announce']): void {
  const text = (...path: string[]): string => stringAt(user, ...path) ?? '';
  announce(text('token'));
  if (text('username') !== '') {
    announce(text('password'));
    announce(Buffer.from(`${text('username')}:${text('password')}`).toString('base64'));
  }
  announce(text('client-key-data'));
  announce(Buffer.from(text('client-key-data'), 'base64').toString('utf8'));
  for (const field of ['access-token', 'id-token', 'refresh-token', 'client-secret']) {
    announce(text('auth-provider', 'config', field));
  }
  // People put keys into the plugin's environment and arguments.
  for (const entry of arrayAt(user, 'exec', 'env')) {
    const name = stringAt(entry, 'name') ?? '';
    // AWS_WEB_IDENTITY_TOKEN_FILE is the path of a secret, not the secret.
    if (/(SECRET|TOKEN|PASSWORD|_KEY)$/i.test(name)) announce(stringAt(entry, 'value'));
  }
  stringsAt(user, 'exec', 'args').forEach((arg, index, args) => {
    const match = /^--?(?:[a-z0-9-]*-)?(?:secret|password|token)(?:=(.*))?$/is.exec(arg);
    if (match) announce(match[1] ?? args[index + 1]);
  });
}
