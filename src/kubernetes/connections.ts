import { createSecureContext, getCACertificates, type SecureContextOptions } from 'node:tls';
import { Agent, type buildConnector, type Dispatcher, ProxyAgent, Socks5ProxyAgent } from 'undici';

/** What undici needs to know of the other end of a TLS connection. */
export type TlsOptions = buildConnector.BuildOptions;

export interface Trust {
  /** PEM, as are `cert` and `key`; without it the roots of Node and of the system are trusted. */
  ca?: SecureContextOptions['ca'];
  cert?: string | undefined;
  key?: string | undefined;
  servername?: string | undefined;
  isInsecure?: boolean;
}

/** Throws what OpenSSL says of certificates that cannot be used. */
export function tlsOptions({ ca, cert, key, servername, isInsecure = false }: Trust): TlsOptions {
  const roots = ca || (isInsecure ? undefined : trustedRoots());
  return {
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    ...(servername ? { servername } : {}),
    // Said outright, so that NODE_TLS_REJECT_UNAUTHORIZED in the environment cannot switch it off.
    rejectUnauthorized: !isInsecure,
    // Made once: undici would parse all certificates again for each connection.
    secureContext: createSecureContext({
      ...(roots === undefined ? {} : { ca: roots }),
      ...(cert === undefined || key === undefined ? {} : { cert, key }),
    }),
  };
}

/** Node trusts its own list only; kubectl trusts the system's, where companies put their authority. */
function trustedRoots(): string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system')])];
}

export interface DispatcherOptions {
  tls: TlsOptions;
  proxy: URL | undefined;
  /** An authority (PEM) that may have signed the certificate of a proxy, too. */
  ca?: string | undefined;
  /** Ends connections that are still being made: a destroyed dispatcher waits for them. */
  closing?: AbortSignal;
  /** At most; any number unless given. */
  connections?: number;
}

/** KubeConfig would make a dispatcher for every call, and with it a connection (config.ts). */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { proxy, ca, closing, connections = null } = options;
  // Managed clusters close HTTP/2 connections on purpose, which resets every stream on them. The time
  // limits are ours: undici's would end a watch in which nothing happens.
  const common = { allowH2: false, connections, headersTimeout: 0, bodyTimeout: 0 };
  const ending = closing === undefined ? {} : { signal: closing };
  const connect = { ...options.tls, ...ending };
  if (proxy === undefined) return new Agent({ ...common, connect });
  if (proxy.protocol.startsWith('socks5')) {
    // undici leaves names to the proxy to resolve, which is what the "h" asks for.
    const uri = proxy.href.replace(/^socks5h:/, 'socks5:');
    return new Socks5ProxyAgent(uri, { ...common, requestTls: connect });
  }
  const isTls = proxy.protocol === 'https:';
  const trusted = isTls ? tlsOptions({ ca: [...trustedRoots(), ...(ca ? [ca] : [])] }) : {};
  const proxyTls = { ...trusted, ...ending };
  return new ProxyAgent({ ...common, uri: proxy.href, requestTls: connect, proxyTls });
}
