import { createSecureContext, getCACertificates, type SecureContextOptions } from 'node:tls';
import type { buildConnector } from 'undici';
import { ActionError, describeError } from '../base/errors.ts';
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

/** What one finished cluster and user are on the wire: TLS options and headers. */
export function connectionSettings(access: Access, credentials: Credentials): ConnectionSettings {
  const { ca, isInsecure, serverName } = access.cluster;
  const { cert, key } = credentials;
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: 30_000 };
  return {
    headers: { ...authorization(credentials), ...impersonationHeaders(access.user) },
    connect: {
      ...keepAlive,
      ...(serverName === undefined ? {} : { servername: serverName }),
      // Said outright, so that NODE_TLS_REJECT_UNAUTHORIZED in the environment cannot switch it off.
      rejectUnauthorized: !isInsecure,
      // Made once: undici would parse all certificates again for each connection.
      secureContext: secureContext(
        { ca: ca ?? (isInsecure ? undefined : trustedRoots()), cert, key },
        access,
      ),
    },
    proxyConnect: () => ({
      ...keepAlive,
      rejectUnauthorized: true,
      ca: [...trustedRoots(), ...(ca === undefined ? [] : [ca])],
    }),
  };
}

/** A token wins over a name with a password, as in client-go's transport. */
function authorization({ token, username, password }: Credentials): Headers {
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  if (username === undefined) return {};
  const pair = `${username}:${password ?? ''}`;
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
