import type { RequestOptions } from 'node:https';
import { isDeepStrictEqual } from 'node:util';
import { KubeConfig, type User } from '@kubernetes/client-node';
import { ActionError, describeError } from '../base/errors.ts';
import { isObject, type JsonObject, stringAt, stringsAt, valueAt } from '../base/json.ts';
import { type Environment, readRegularFile } from '../base/process.ts';
import type { Redactor } from '../base/redact.ts';
import { type TlsOptions, tlsOptions } from './connections.ts';
import { type Access, configError, readNamedFile, type Session } from './kubeconfig.ts';
import { logInByPlugin, variablesOf } from './plugin.ts';

/**
 * Interval for reading a token file again. Bound service account tokens rotate; the kubelet replaces the file
 * long before the token expires.
 */
const READ_AGAIN_MS = 60_000;
/** Time before expiry at which credentials are renewed, because the clocks of gate and server differ. */
const RENEW_BEFORE_MS = 60_000;
/** Time until the next attempt while the current credentials still work. */
const TRY_AGAIN_MS = 10_000;

/** Credentials that are ready to be sent. */
export interface Login {
  /** Headers of every request. */
  headers: Record<string, string | string[]>;
  /** The certificates and key of `tls`, as PEM. */
  trust: { ca: string | undefined; cert: string | undefined; key: string | undefined };
  /** TLS options; a new object only if `trust` has changed. */
  tls: TlsOptions;
  /** Milliseconds since the epoch, like `expiresAt`. */
  renewAt: number;
  expiresAt: number;
}

export type Credentials = ReturnType<typeof keepCredentials>;

/**
 * Returns the credentials of the chosen user and renews them. Throws an `ActionError` if the user cannot log in.
 */
export function keepCredentials(session: Session) {
  const { access, clock, env, redactor } = session;
  let login: Login | undefined;
  let running: Promise<Login> | undefined;
  addSecrets(access.user.fields, env, redactor);

  /** Renews once for all concurrent calls, so that sixty calls do not start sixty logins. */
  const renew = (): Promise<Login> => {
    running ??= logIn(session, login)
      .then((fresh) => {
        login = fresh;
        return fresh;
      })
      .finally(() => {
        running = undefined;
      });
    return running;
  };
  return {
    /** Returns valid credentials. Throws an `ActionError` if there are none. */
    async current(): Promise<Login> {
      if (login !== undefined && clock.now() < login.renewAt) return login;
      try {
        return await renew();
      } catch (error) {
        // The plugin may fail for a moment, or a token file is just being replaced.
        if (login === undefined || clock.now() >= login.expiresAt) throw error;
        login.renewAt = clock.now() + TRY_AGAIN_MS;
        return login;
      }
    },
    /** Returns credentials that differ from those that the API server has just refused with 401, if there are any. */
    async replaceRejected(rejected: Login): Promise<Login | undefined> {
      const isOther = ({ tls, headers }: Login): boolean =>
        tls !== rejected.tls || !isDeepStrictEqual(headers, rejected.headers);
      if (login !== undefined && isOther(login)) return login;
      const fresh = await renew();
      return isOther(fresh) ? fresh : undefined;
    },
  };
}

/**
 * Logs in with a new KubeConfig each time. A KubeConfig keeps its credentials, but after a 401 new ones are
 * needed.
 */
async function logIn(session: Session, previous: Login | undefined): Promise<Login> {
  const { access, clock, redactor } = session;
  const { cluster, context } = access;
  const owner = `user "${access.user.name}"`;
  const config = new KubeConfig();
  const options: RequestOptions = {};
  const { user, isFile = false, exec } = userFor(session);
  const trusted = withoutFiles(cluster.fields, access);
  let expiresAt = Number.POSITIVE_INFINITY;
  config.loadFromClusterAndUser(
    {
      name: cluster.name,
      server: access.server,
      caData: stringAt(trusted, 'certificate-authority-data') ?? '',
      tlsServerName: stringAt(trusted, 'tls-server-name') ?? '',
      // KubeConfig refuses http otherwise; here it is only that of loopback.
      skipTLSVerify:
        trusted['insecure-skip-tls-verify'] === true || access.server.startsWith('http:'),
    },
    user,
  );
  if (exec !== undefined) {
    // The time limit, the environment and the end of a plugin are ours; see plugin.ts.
    const isAuthProvider = (): boolean => true;
    const applyAuthentication = async (_: User, given: RequestOptions): Promise<void> => {
      const credential = await logInByPlugin(exec, trusted, session);
      expiresAt = credential.expiresAt;
      const { token, cert, key } = credential;
      if (cert !== undefined) Object.assign(given, { cert, key });
      if (token !== undefined)
        given.headers = { ...given.headers, Authorization: `Bearer ${token}` };
    };
    config.addAuthenticator({ isAuthProvider, applyAuthentication });
  }
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    if (error instanceof ActionError) throw error;
    throw configError(`cannot log in as ${owner} of ${access.source}`);
  }

  const { headers: given, servername, rejectUnauthorized } = options;
  const { Authorization: sent, ...more } = (given ?? {}) as Record<string, string>;
  const authorization = authorizationOf(sent ?? (isFile ? '' : undefined), owner, redactor);
  const headers = Object.entries({ ...more, authorization, ...impersonation(access.user.fields) });
  const trust = {
    ca: pem(options.ca, `the certificate-authority of cluster "${cluster.name}"`),
    cert: pem(options.cert, `the client-certificate of ${owner}`),
    key: pem(options.key, `the client-key of ${owner}`),
  };
  redactor.add(trust.key);
  if ((trust.cert === undefined) !== (trust.key === undefined)) {
    // One file may contain certificate and key; kubectl accepts that only if it is named twice.
    throw configError(
      `${owner} of the kubeconfig has no "client-${trust.cert === undefined ? 'certificate' : 'key'}"`,
      'A client certificate needs both, client-certificate(-data) and client-key(-data)',
    );
  }
  let tls = isDeepStrictEqual(trust, previous?.trust) ? previous?.tls : undefined;
  try {
    tls ??= tlsOptions({ ...trust, servername, rejectUnauthorized });
  } catch (error) {
    throw configError(
      `the certificates of context "${context}" cannot be used: ${describeError(error)}`,
      'Check that certificate and key belong together and are complete',
    );
  }
  const now = clock.now();
  // The margin is at most half of the lifetime. Otherwise every call would start the plugin if the lifetime is
  // shorter than the margin.
  const margin = Math.min(RENEW_BEFORE_MS, Math.max(0, (expiresAt - now) / 2));
  return {
    headers: Object.fromEntries(headers.filter(([, value]) => value.length > 0)),
    trust,
    tls,
    renewAt: isFile ? now + READ_AGAIN_MS : expiresAt - margin,
    expiresAt,
  };
}

/**
 * Replaces the files that these fields name by their contents, because client-node would read a device or a pipe
 * endlessly.
 */
function withoutFiles(fields: JsonObject, access: Access): JsonObject {
  const result = { ...fields };
  for (const field of ['certificate-authority', 'client-certificate', 'client-key']) {
    const path = stringAt(fields, field) ?? '';
    if (path === '') continue;
    const content = readNamedFile(path, field, access);
    pem(content, `the ${field} of ${access.source}`);
    result[`${field}-data`] = content.toString('base64');
    delete result[field];
  }
  return result;
}

/**
 * Returns the user with one way to log in, in client-go's order; a client certificate is added to it. KubeConfig
 * would prefer a token to a token file, and run a plugin beside a token.
 */
function userFor(session: Session): { user: User; isFile?: boolean; exec?: JsonObject } {
  const { access } = session;
  const { token, tokenFile, username, exec, ...fields } = access.user.fields;
  const pems = withoutFiles(fields, access);
  const user = {
    name: access.user.name,
    certData: stringAt(pems, 'client-certificate-data') ?? '',
    keyData: stringAt(pems, 'client-key-data') ?? '',
    impersonateUser: stringAt(fields, 'as') ?? '',
  };
  const file = String(tokenFile ?? '');
  const read = readRegularFile(file);
  const isEmpty = 'problem' in read || read.bytes.length === 0;
  // A token beside the file is used while the file is empty.
  if (file !== '' && !(token && isEmpty)) {
    const content = readNamedFile(file, 'tokenFile', access).toString('utf8');
    return { user: { ...user, token: content }, isFile: true };
  }
  if (token) return { user: { ...user, token: String(token) } };
  if (isObject(exec) && !username) return { user, exec };
  if (!username && !fields['auth-provider']) return { user };
  throw configError(
    `user "${access.user.name}" logs in with ${username ? 'a password' : 'an auth provider'}, which is not supported`,
    'Use an exec credential plugin instead (kubelogin for OIDC and Azure, gke-gcloud-auth-plugin for Google), or a token',
  );
}

/**
 * Returns the Authorization header, or an empty text for none. client-node would send a token with its final line break, and none for an
 * empty file.
 */
function authorizationOf(header: string | undefined, owner: string, redactor: Redactor): string {
  if (header === undefined) return '';
  const token = header.replace(/^Bearer /, '').trim();
  redactor.add(token);
  if (/^[\x21-\x7e]+$/.test(token)) return `Bearer ${token}`;
  throw configError(
    `the token of ${owner} is empty or has characters in it that no token has`,
    'Check that the token was written as one line, without quotes or control characters',
  );
}

/**
 * Returns the headers for kubectl's `as-uid`, `as-groups` and `as-user-extra`; KubeConfig supports only `as`
 * (kubernetes-client/javascript#2373). A list is sent as repeated headers: joined by commas it would be one
 * group with a strange name.
 */
function impersonation(user: JsonObject): Record<string, string | string[]> {
  const extra = valueAt(user, 'as-user-extra');
  const extras = Object.keys(isObject(extra) ? extra : {}).map((key): [string, string[]] => [
    // Header names allow few characters; the API server decodes percent signs.
    `Impersonate-Extra-${encodeURIComponent(key).replaceAll('(', '%28').replaceAll(')', '%29')}`,
    stringsAt(extra, key),
  ]);
  return {
    'Impersonate-Uid': stringAt(user, 'as-uid') ?? '',
    'Impersonate-Group': stringsAt(user, 'as-groups'),
    ...Object.fromEntries(extras),
  };
}

function pem(value: RequestOptions['ca' | 'key'], what: string): string | undefined {
  const text = value?.toString();
  if (text === undefined || text.includes('-----BEGIN ')) return text;
  throw configError(`${what} is not in PEM form`);
}

/** Names of variables and options that contain a secret and not the path of one. */
const SECRET = /(?:secret|token|pass|password|passphrase|key|credentials?)$/i;

function addSecrets(user: JsonObject, env: Environment, { add }: Redactor): void {
  const text = (...path: string[]): string => stringAt(user, ...path) ?? '';
  add(text('token'));
  add(text('password'));
  add(text('client-key-data'));
  add(Buffer.from(text('client-key-data'), 'base64').toString('utf8'));
  for (const field of ['access-token', 'id-token', 'refresh-token', 'client-secret']) {
    add(text('auth-provider', 'config', field));
  }
  if (!isObject(user['exec'])) return;
  // A plugin may repeat its environment in its output, also the variables that the gate sets.
  // The key of a cache is not a secret. Masking it would hide it in the whole job.
  const own = Object.entries(env).filter(
    ([name]) => !/(?<!secret|access|api|private)_key$/i.test(name),
  );
  for (const [name, value] of [...variablesOf(user['exec']), ...own]) {
    if (SECRET.test(name) && !/^[~.]{0,2}\//.test(value ?? '')) add(value);
  }
  stringsAt(user, 'exec', 'args').forEach((arg, index, args) => {
    const [, name = '', value] = /^--?([\w-]+)(?:=(.*))?$/s.exec(arg) ?? [];
    if (SECRET.test(name)) add(value ?? args[index + 1]);
  });
}
