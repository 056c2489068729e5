import type { AgentOptions, RequestOptions } from 'node:https';
import { createSecureContext, getCACertificates, type SecureContextOptions } from 'node:tls';
import { KubeConfig } from '@kubernetes/client-node';
import type { buildConnector } from 'undici';
import { ActionError, describeError } from '../errors.ts';
import type { Access } from './access.ts';
import type { Credentials } from './credentials.ts';
import { impersonationHeaders } from './impersonation.ts';

export type Headers = Record<string, string | string[]>;

export interface ConnectionSettings {
  /** Sent with every request. */
  headers: Headers;
  /** For undici's connector. */
  connect: buildConnector.BuildOptions;
  /** For a TLS connection to a proxy, whose certificate the cluster's authority need not have signed. */
  proxyConnect: () => buildConnector.BuildOptions;
}

/**
 * client-node maps one finished cluster and user to TLS options and headers. It gets values only: its
 * own handling of plugins, token files and merging is not what kubectl does.
 */
export async function connectionSettings(
  access: Access,
  credentials: Credentials,
): Promise<ConnectionSettings> {
  const config = new KubeConfig();
  config.loadFromString(JSON.stringify(finished(access, credentials)));
  const options: RequestOptions & AgentOptions = {};
  await config.applyToHTTPSOptions(options);
  const made = config.createDispatcherOptions(config.getCurrentCluster(), options);
  const { ca, cert, key, servername } = made.type === 'agent' ? made.connect : {};

  const authority = ca ?? (access.cluster.isInsecure ? undefined : trustedRoots());
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: 30_000 };
  return {
    headers: { ...authorization(credentials, options), ...impersonationHeaders(access.user) },
    connect: {
      ...keepAlive,
      ...(servername === undefined ? {} : { servername }),
      // Said outright, so that NODE_TLS_REJECT_UNAUTHORIZED in the environment cannot switch it off.
      rejectUnauthorized: !access.cluster.isInsecure,
      // Made once: undici would parse all certificates again for each connection.
      secureContext: secureContext({ ca: authority, cert, key }, access),
    },
    proxyConnect: () => ({
      ...keepAlive,
      rejectUnauthorized: true,
      ca: [...trustedRoots(), ...(access.cluster.ca === undefined ? [] : [access.cluster.ca])],
    }),
  };
}

function finished(access: Access, credentials: Credentials): object {
  const { cluster } = access;
  const base64 = (pem: string | undefined): string | undefined =>
    pem === undefined ? undefined : Buffer.from(pem).toString('base64');
  return {
    clusters: [
      {
        name: 'cluster',
        cluster: {
          server: cluster.server,
          'certificate-authority-data': base64(cluster.ca),
          // client-node refuses http:// otherwise; we only come here with http:// on loopback.
          'insecure-skip-tls-verify': cluster.isInsecure || cluster.server.startsWith('http:'),
          'tls-server-name': cluster.serverName,
        },
      },
    ],
    users: [
      {
        name: 'user',
        user: {
          token: credentials.token,
          'client-certificate-data': base64(credentials.cert),
          'client-key-data': base64(credentials.key),
        },
      },
    ],
    contexts: [{ name: 'context', context: { cluster: 'cluster', user: 'user' } }],
    'current-context': 'context',
  };
}

/** client-node leaves a name and password to the https module, which we do not use. */
function authorization(credentials: Credentials, options: RequestOptions): Headers {
  const bearer = new Map(Object.entries(options.headers ?? {})).get('Authorization');
  if (typeof bearer === 'string') return { authorization: bearer };
  if (credentials.username === undefined) return {};
  const pair = `${credentials.username}:${credentials.password ?? ''}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

function secureContext(
  options: { [field in 'ca' | 'cert' | 'key']: SecureContextOptions[field] | undefined },
  access: Access,
): ReturnType<typeof createSecureContext> {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  try {
    return createSecureContext(Object.fromEntries(given));
  } catch (error) {
    throw new ActionError(
      'kube-config',
      `the certificates of context "${access.context}" cannot be used: ${describeError(error)}`,
      { cause: error, hint: 'Check that certificate and key belong together and are complete' },
    );
  }
}

/** Node trusts its own list only; kubectl trusts the system's, where companies put their authority. */
function trustedRoots(): string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system')])];
}
