import { statSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { type Cluster, KubeConfig, type User } from '@kubernetes/client-node';
import { ActionError } from '../base/errors.ts';
import { arrayAt, at, isObject, type JsonObject, stringAt, stringsAt } from '../base/json.ts';
import { MIN_SECRET_LENGTH, type Redactor } from '../base/redact.ts';
import { configError, type Session } from './kubeconfig.ts';
import { validIdToken } from './oidc.ts';
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

/** What KubeConfig makes of the chosen cluster and user, kept until it has to be renewed. */
export class Credentials {
  private readonly session: Session;
  private readonly owner: string;
  private readonly closing = new AbortController();
  private login: Login | undefined;
  private running: Promise<Login> | undefined;

  /** Throws an `ActionError` for a user that nobody could log in as. */
  constructor(session: Session) {
    const { user, written } = session.access;
    this.session = session;
    this.owner = `user "${user.name}"`;
    announceSecrets(user, session.announce);
    const { exec } = userFor(user, written.user, this.owner);
    if (exec) checkPlugin(exec, this.owner);
  }

  /** Fresh enough to be sent. Throws an `ActionError` when there is nothing to be had. */
  async current(): Promise<Login> {
    const { login } = this;
    const now = this.session.clock.now();
    if (login !== undefined && now < login.renewAt) return login;
    try {
      return await this.renew();
    } catch (error) {
      // A hiccup of the plugin, or a token file that is just being replaced.
      if (login === undefined || this.session.clock.now() >= login.expiresAt) throw error;
      login.renewAt = this.session.clock.now() + TRY_AGAIN_MS;
      return login;
    }
  }

  /** After a 401 for these: is there something else to try? */
  async refresh(rejected: Login): Promise<boolean> {
    if (this.login !== undefined && this.login !== rejected) return true;
    return (await this.renew()) !== rejected;
  }

  close(): void {
    this.closing.abort();
  }

  /** Sixty calls at once must not start sixty logins. */
  private renew(): Promise<Login> {
    this.running ??= this.logIn()
      .then((fresh) => {
        this.login = this.login !== undefined && isSame(this.login, fresh) ? this.login : fresh;
        return Object.assign(this.login, { renewAt: fresh.renewAt, expiresAt: fresh.expiresAt });
      })
      .finally(() => {
        this.running = undefined;
      });
    return this.running;
  }

  /** A new KubeConfig each time: it keeps what it was given, and after a 401 it has to ask again. */
  private async logIn(): Promise<Login> {
    const { access, clock, announce } = this.session;
    const user = userFor(access.user, access.written.user, this.owner);
    const { signal } = this.closing;
    const { authProvider, ...others } = user;
    const config = new KubeConfig();
    const wire: RequestOptions = {};
    let endOf = (): number => Number.POSITIVE_INFINITY;
    try {
      if (authProvider?.name === 'oidc') {
        const { token, expiresAt } = await validIdToken(
          authProvider.config ?? {},
          this.session,
          signal,
        );
        config.loadFromClusterAndUser(plainCluster(access.cluster), { ...others, token });
        endOf = () => expiresAt;
      } else {
        config.loadFromClusterAndUser(plainCluster(access.cluster), user);
        if (user.exec) endOf = guardPlugin(config, this.session, signal);
      }
      await config.applyToHTTPSOptions(wire);
    } catch (error) {
      endOf();
      throw this.explained(error);
    }
    const expiresAt = endOf();
    const isFile = authProvider?.name === 'tokenFile';
    const authorization = authorizationOf(wire, isFile, this.owner, announce);
    const cert = pem(wire.cert, `the client-certificate of ${this.owner}`);
    const key = pem(wire.key, `the client-key of ${this.owner}`);
    announce(key);
    if ((cert === undefined) !== (key === undefined)) {
      // One file may hold both; kubectl accepts that only when it is named twice.
      throw configError(
        `${this.owner} of the kubeconfig has no "client-${cert === undefined ? 'certificate' : 'key'}"`,
        'A client certificate needs both, client-certificate(-data) and client-key(-data)',
      );
    }
    const now = clock.now();
    // Half of a lifetime that is shorter than the margin: else every call would start the plugin.
    const margin = Math.min(RENEW_BEFORE_MS, Math.max(0, (expiresAt - now) / 2));
    return {
      headers: { ...authorization, ...impersonation(access.written.user) },
      ca: pem(wire.ca, `the certificate-authority of cluster "${access.cluster.name}"`),
      cert,
      key,
      renewAt: isFile ? now + READ_AGAIN_MS : expiresAt - margin,
      expiresAt,
    };
  }

  private explained(error: unknown): ActionError {
    if (error instanceof ActionError) return error;
    const { source } = this.session.access;
    if (error instanceof Error && 'path' in error && 'code' in error) {
      const why = error.code === 'ENOENT' ? 'no such file' : String(error.code);
      const hint = 'Relative paths in a kubeconfig are relative to its folder';
      return configError(`cannot read ${error.path}, which ${source} names: ${why}`, hint);
    }
    // No words of client-node: JSON.parse, for one, quotes what it cannot read.
    return configError(`cannot log in as ${this.owner} of ${source}`);
  }
}

function isSame(one: Login, other: Login): boolean {
  const values = ({ headers, ca, cert, key }: Login) => JSON.stringify([headers, ca, cert, key]);
  return values(one) === values(other);
}

/** kubectl prefers the data to the file; client-node does not (config.ts, bufferFromFileOrString). */
function plainCluster({ proxyUrl: _, caFile, caData, ...cluster }: Cluster): Cluster {
  // http is for loopback only here, where KubeConfig would refuse it.
  if (cluster.skipTLSVerify || cluster.server.startsWith('http:')) {
    return { ...cluster, skipTLSVerify: true };
  }
  if (caData) return { ...cluster, caData };
  return caFile ? { ...cluster, caFile } : cluster;
}

/**
 * With one way to log in, in client-go's order; a client certificate comes on top. KubeConfig would
 * prefer a token to a token file, run a plugin beside a token, and send "undefined" as a password.
 */
function userFor(user: User, written: JsonObject, owner: string): User {
  const { token, username, password, exec, authProvider, certFile, keyFile, ...bare } = user;
  const provider = isObject(authProvider) ? String(authProvider['name']) : 'oidc';
  if (provider !== 'oidc') {
    throw configError(
      `${owner} logs in through the auth provider "${provider}", which is no longer supported`,
      HINTS[provider] ?? 'Use an exec credential plugin or a token instead',
    );
  }
  const base: User = {
    ...bare,
    ...(bare.certData || !certFile ? {} : { certFile }),
    ...(bare.keyData || !keyFile ? {} : { keyFile }),
  };
  const tokenFile = stringAt(written, 'tokenFile') ?? '';
  // A token beside it is for as long as there is nothing in the file.
  if (tokenFile !== '' && !(token && !statSync(tokenFile, { throwIfNoEntry: false })?.size)) {
    return { ...base, authProvider: { name: 'tokenFile', config: { tokenFile } } };
  }
  if (token) return { ...base, token: token.trim() };
  if (username) return { ...base, username, password: password ?? '' };
  if (exec) return { ...base, exec };
  return authProvider ? { ...base, authProvider } : base;
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

function announceSecrets(user: User, announce: Session['announce']): void {
  announce(user.token);
  if (user.username) {
    announce(user.password);
    announce(Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64'));
  }
  announce(user.keyData);
  announce(Buffer.from(user.keyData ?? '', 'base64').toString('utf8'));
  const config = at(user.authProvider, 'config');
  for (const field of ['access-token', 'id-token', 'refresh-token', 'client-secret']) {
    announce(stringAt(config, field));
  }
  // People put keys into the plugin's environment and arguments.
  for (const entry of arrayAt(user.exec, 'env')) {
    const name = stringAt(entry, 'name') ?? '';
    // AWS_WEB_IDENTITY_TOKEN_FILE is the path of a secret, not the secret.
    if (/(SECRET|TOKEN|PASSWORD|_KEY)$/i.test(name)) announce(stringAt(entry, 'value'));
  }
  stringsAt(user.exec, 'args').forEach((arg, index, args) => {
    const match = /^--?(?:[a-z0-9-]*-)?(?:secret|password|token)(?:=(.*))?$/is.exec(arg);
    if (match) announce(match[1] ?? args[index + 1]);
  });
}
