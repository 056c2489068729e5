import type { RequestOptions } from 'node:https';
import { isDeepStrictEqual } from 'node:util';
import { KubeConfig } from '@kubernetes/client-node';
import { ActionError, describeError } from '../base/errors.ts';
import { readRegularFile } from '../base/process.ts';
import { type Session, type TlsOptions, tlsOptions } from './connections.ts';
import { logInByPlugin } from './plugin.ts';

/** Bound service account tokens rotate; the kubelet replaces the file long before the token expires. */
const READ_AGAIN_MS = 60_000;
/** Before they expire, because the clocks of gate and server differ. */
const RENEW_BEFORE_MS = 60_000;
const TRY_AGAIN_MS = 10_000;

export interface Login {
  headers: Record<string, string>;
  /** The certificates and key of `tls`, as PEM. */
  trust: Record<'ca' | 'cert' | 'key', string | undefined>;
  /** A new object only if `trust` has changed. */
  tls: TlsOptions;
  /** Milliseconds since the epoch, like `expiresAt`. */
  renewAt: number;
  expiresAt: number;
}

export type Credentials = ReturnType<typeof keepCredentials>;

export function keepCredentials(session: Session) {
  const { clock } = session;
  let login: Login | undefined;
  let running: Promise<Login> | undefined;

  /** Once for all concurrent calls, so that sixty calls do not start sixty logins. */
  const renew = async (): Promise<Login> => {
    running ??= logIn(session, login).finally(() => {
      running = undefined;
    });
    login = await running;
    return login;
  };
  return {
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
    /** Returns credentials that differ from those that the API server has just refused, if there are any. */
    async replaceRejected(rejected: Login): Promise<Login | undefined> {
      const isOther = ({ tls, headers }: Login): boolean =>
        tls !== rejected.tls || !isDeepStrictEqual(headers, rejected.headers);
      if (login !== undefined && isOther(login)) return login;
      const fresh = await renew();
      return isOther(fresh) ? fresh : undefined;
    },
  };
}

/** Logs in with a new KubeConfig each time: it keeps its credentials, but after a 401 new ones are needed. */
async function logIn(session: Session, previous: Login | undefined): Promise<Login> {
  const { access, clock, redactor } = session;
  const { exec, ...user } = access.user;
  const config = new KubeConfig();
  const options: Omit<RequestOptions, 'headers'> & { headers?: Record<string, string> } = {};
  // KubeConfig refuses http otherwise; here it is only that of loopback.
  const isPlain = access.server.startsWith('http:');
  const cluster = isPlain ? { ...access.cluster, skipTLSVerify: true } : access.cluster;
  config.loadFromClusterAndUser(cluster, user);
  const tokenFile: string | undefined = user.authProvider?.config?.tokenFile;
  for (const path of [cluster.caFile, user.certFile, user.keyFile, tokenFile]) {
    // KubeConfig would wait for the writer of a pipe. The path is not shown: people put a secret in its place.
    const read = path ? readRegularFile(path) : {};
    if ('problem' in read)
      throw new ActionError(
        `cannot read a file that user "${user.name}" or its cluster names in ${access.source}: ${read.problem}`,
        'Relative paths in a kubeconfig are relative to its folder; content belongs in a field such as "client-key-data"',
      );
  }
  await config.applyToHTTPSOptions(options);
  const ca = options.ca?.toString();
  const plugin = exec === undefined ? undefined : await logInByPlugin(exec, ca, session);
  const cert = plugin?.cert ?? options.cert?.toString();
  const key = plugin?.key ?? options.key?.toString();
  redactor.add(key);
  const { Authorization: sent = '', ...headers } = options.headers ?? {};
  const token = plugin?.token ?? sent.replace(/^Bearer /, '').trim();
  redactor.add(token);
  if (!/^[\x21-\x7e]*$/.test(token) || (tokenFile && token === ''))
    throw new ActionError(
      `the token of user "${user.name}" is empty or has characters in it that no token has`,
      'Check that the token was written as one line, without quotes or control characters',
    );
  const trust = { ca, cert, key };
  let tls = isDeepStrictEqual(trust, previous?.trust) ? previous?.tls : undefined;
  try {
    const { servername, rejectUnauthorized } = options;
    tls ??= tlsOptions({ ...trust, servername, rejectUnauthorized });
  } catch (error) {
    throw new ActionError(
      `the certificates of context "${access.context}" cannot be used: ${describeError(error)}`,
      'Check that certificate and key belong together and are complete',
    );
  }
  const now = clock.now();
  const expiresAt = plugin?.expiresAt ?? Infinity;
  // At most half of the lifetime: otherwise every call would start the plugin.
  const margin = Math.min(RENEW_BEFORE_MS, Math.max(0, (expiresAt - now) / 2));
  return {
    headers: token === '' ? headers : { ...headers, authorization: `Bearer ${token}` },
    trust,
    tls,
    renewAt: tokenFile ? now + READ_AGAIN_MS : expiresAt - margin,
    expiresAt,
  };
}
