import { ActionError } from '../base/errors.ts';
import type { ClusterSettings } from './access.ts';
import type { ConnectionSettings } from './connection-settings.ts';
import { parseProxy, proxyFor } from './proxy.ts';
import { Agent, type Dispatcher, ProxyAgent, Socks5ProxyAgent } from './undici-parts.ts';

/**
 * And connections: none waits for one, where its time limit would run already. More at once would only
 * queue in the API server's priority and fairness.
 */
export const MAX_REQUESTS = 8;

type Environment = Readonly<Record<string, string | undefined>>;

/** How connections are made: directly, or through this proxy. A `proxy-url` wins, as in kubectl. */
export function chooseProxy(cluster: ClusterSettings, env: Environment): URL | undefined {
  if (cluster.proxyUrl === undefined) {
    return supported(proxyFor(new URL(cluster.server), env), 'the proxy in the environment');
  }
  const proxy = cluster.proxyUrl.includes('://') ? parseProxy(cluster.proxyUrl) : undefined;
  return supported(proxy ?? new URL('none:'), 'the "proxy-url" of the cluster');
}

function supported(proxy: URL | undefined, what: string): URL | undefined {
  if (proxy === undefined || SCHEMES.includes(proxy.protocol)) return proxy;
  throw new ActionError('kube-config', `${what} is not one of http://, https:// or socks5://`);
}

const SCHEMES = ['http:', 'https:', 'socks5:', 'socks5h:'];

/**
 * Two, because a watch keeps its connection: eight open watches would leave none for the calls that
 * have to notice the end.
 */
export interface Dispatchers {
  calls: Dispatcher;
  watches: Dispatcher;
}

export function createDispatchers(
  settings: ConnectionSettings,
  proxy: URL | undefined,
  closing: AbortSignal,
): Dispatchers {
  return {
    calls: createDispatcher(settings, proxy, closing, MAX_REQUESTS),
    watches: createDispatcher(settings, proxy, closing, null),
  };
}

function createDispatcher(
  settings: ConnectionSettings,
  proxy: URL | undefined,
  closing: AbortSignal,
  connections: number | null,
): Dispatcher {
  // Managed clusters close HTTP/2 connections on purpose, which resets every stream on them. The time
  // limits are ours: undici's would end a watch in which nothing happens.
  const common = { allowH2: false, connections, headersTimeout: 0, bodyTimeout: 0 };
  // A destroyed dispatcher still waits for connections that are being made, and the process with it.
  const connect = { ...settings.connect, signal: closing };
  if (proxy === undefined) return new Agent({ ...common, connect });
  if (proxy.protocol.startsWith('socks5')) {
    // undici leaves names to the proxy to resolve, which is what the "h" asks for.
    const uri = proxy.href.replace(/^socks5h:/, 'socks5:');
    return new Socks5ProxyAgent(uri, { ...common, requestTls: connect });
  }
  return new ProxyAgent({
    ...common,
    uri: proxy.href,
    requestTls: connect,
    proxyTls: {
      ...(proxy.protocol === 'https:' ? settings.proxyConnect() : {}),
      signal: closing,
    },
  });
}
