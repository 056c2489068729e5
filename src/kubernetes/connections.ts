import { BlockList, isIP, isIPv6 } from 'node:net';
import { type ConnectionOptions, createSecureContext, getCACertificates } from 'node:tls';
import { Agent, type buildConnector, type Dispatcher, ProxyAgent } from 'undici';
import { ActionError } from '../base/errors.ts';
import type { Environment } from '../base/process.ts';
import type { Redactor } from '../base/redact.ts';
import type { Clock } from '../base/time.ts';
import type { Access, Search } from './kubeconfig.ts';

export interface ConnectOptions extends Search {
  redactor: Redactor;
  debug?: (line: string) => void;
  userAgent: string;
  /** Ends a credential plugin that runs while the gate connects. */
  signal?: AbortSignal;

  /** For tests. */
  clock?: Clock;
  random?: () => number;
  pluginTimeoutMs?: number;
}

export interface Session extends Required<Omit<ConnectOptions, 'signal' | keyof Search>> {
  access: Access;
  env: Environment;
  /** Ends plugins, and connections that are still being opened. */
  closing: AbortController;
}

export type TlsOptions = buildConnector.BuildOptions;

type Trust = Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername' | 'rejectUnauthorized'>;

/** Without `ca` the roots of Node and of the system are trusted, as by kubectl: companies add their authority there. */
export function tlsOptions({ ca, cert, key, servername, rejectUnauthorized }: Trust): TlsOptions {
  const isInsecure = rejectUnauthorized === false;
  const roots = () => (['default', 'system'] as const).flatMap((store) => getCACertificates(store));
  return {
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    servername,
    // An explicit value keeps NODE_TLS_REJECT_UNAUTHORIZED in the environment from switching the check off.
    rejectUnauthorized: !isInsecure,
    // With `ca`, `cert` and `key`, undici would parse all certificates again for each connection.
    secureContext: createSecureContext({ ca: ca ?? (isInsecure ? undefined : roots()), cert, key }),
  };
}

/** `closing` ends connections that are still being opened: a destroyed dispatcher waits for them. */
export function createDispatcher(
  tls: TlsOptions,
  proxy: URL | undefined,
  closing: AbortSignal,
  connections: number | null = null,
): Dispatcher {
  // Managed clusters close HTTP/2 connections regularly, which resets every stream on them. The time limits of
  // undici are off because they would end a silent watch; the gate has its own.
  const common = { allowH2: false, connections, headersTimeout: 0, bodyTimeout: 0 };
  const connect = { ...tls, signal: closing };
  if (proxy === undefined) return new Agent({ ...common, connect });
  // Only the signal: the rest of the options is undici's.
  const proxyTls = { signal: closing } as TlsOptions;
  return new ProxyAgent({ ...common, uri: proxy.href, requestTls: connect, proxyTls });
}

/** The `proxy-url` of a cluster goes before the environment, as in kubectl; client-node ignores that (javascript#648). */
export function chooseProxy(url: URL, env: Environment, proxyUrl = ''): URL | undefined {
  const text = proxyUrl || environmentProxy(url, env);
  if (text === '') return undefined;
  const proxy = URL.parse(text.includes('://') ? text : `http://${text}`);
  const isUsable = /^https?:$/.test(proxy?.protocol ?? '') && !/%(?![\da-f]{2})/i.test(text);
  if (proxy !== null && isUsable) return proxy;
  const what = proxyUrl ? 'the "proxy-url" of the cluster' : 'the proxy in the environment';
  throw new ActionError(`${what} is not a valid URL that begins with http:// or https://`);
}

/** As a Go client (golang.org/x/net/http/httpproxy). Undici knows no CIDR blocks, and uses http_proxy for https URLs. */
function environmentProxy(url: URL, env: Environment): string {
  const either = (name: string): string => env[name] || env[name.toLowerCase()] || '';
  const proxy = either(url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY');
  if (proxy === '') return '';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const direct = `localhost,127.0.0.0/8,::1,${either('NO_PROXY').toLowerCase()}`.split(',');
  return direct.some((entry) => isBypassed(entry.trim(), host)) ? '' : proxy;
}

/** "example.com" stands for itself and its subdomains; a block without a prefix length is one address. */
function isBypassed(entry: string, host: string): boolean {
  const [network = '', bits] = entry.split('/');
  if (isIP(network) !== 0 && isIP(host) !== 0) {
    const family = (address: string) => (isIPv6(address) ? 'ipv6' : 'ipv4');
    const most = isIPv6(network) ? 128 : 32;
    const prefix = Number(bits || most);
    const list = new BlockList();
    if (prefix >= 0 && prefix <= most) list.addSubnet(network, prefix, family(network));
    return list.check(host, family(host));
  }
  const name = entry.replace(/^\*?\./, '').replace(/:\d+$/, '');
  return name === '*' || (name !== '' && (host === name || host.endsWith(`.${name}`)));
}
