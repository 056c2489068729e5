import { BlockList, isIP, isIPv6 } from 'node:net';
import { createSecureContext, getCACertificates, type SecureContextOptions } from 'node:tls';
import { Agent, type buildConnector, type Dispatcher, ProxyAgent, Socks5ProxyAgent } from 'undici';
import type { Environment } from '../base/process.ts';
import { configError } from './kubeconfig.ts';

/** Options for undici about the other end of a TLS connection. */
export type TlsOptions = buildConnector.BuildOptions;

/** Certificates as PEM. Without `ca` the roots of Node and of the system are trusted. */
interface Trust extends Pick<SecureContextOptions, 'ca' | 'cert' | 'key'> {
  servername?: string | undefined;
  rejectUnauthorized?: boolean | undefined;
}

/** Builds the TLS options. Throws the message of OpenSSL for certificates that cannot be used. */
export function tlsOptions({ ca, cert, key, servername, rejectUnauthorized }: Trust): TlsOptions {
  const isInsecure = rejectUnauthorized === false;
  return {
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    servername,
    // An explicit value keeps NODE_TLS_REJECT_UNAUTHORIZED in the environment from switching the check off.
    rejectUnauthorized: !isInsecure,
    // With `ca`, `cert` and `key`, undici would parse all certificates again for each connection.
    secureContext: createSecureContext({
      ca: ca ?? (isInsecure ? undefined : trustedRoots()),
      cert,
      key,
    }),
  };
}

/**
 * Returns the root certificates of the system. Node trusts only its own list; kubectl trusts the system's list,
 * where companies add their authority.
 */
function trustedRoots(): string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system')])];
}

/**
 * Creates a dispatcher. `ca` (PEM) may also have signed the certificate of a proxy. `closing` ends connections
 * that are still being opened, because a destroyed dispatcher waits for them. The number of `connections` is
 * unlimited by default.
 */
export function createDispatcher(options: {
  tls: TlsOptions;
  proxy: URL | undefined;
  ca?: Trust['ca'];
  closing: AbortSignal;
  connections?: number;
}): Dispatcher {
  const { proxy, ca, closing, connections = null } = options;
  // Managed clusters close HTTP/2 connections regularly, which resets every stream on them. The time limits of
  // undici are off because they would end a silent watch; the gate has its own.
  const common = { allowH2: false, connections, headersTimeout: 0, bodyTimeout: 0 };
  const connect = { ...options.tls, signal: closing };
  if (proxy === undefined) return new Agent({ ...common, connect });
  if (proxy.protocol.startsWith('socks5')) {
    // undici lets the proxy resolve host names, which is what the "h" means.
    const uri = proxy.href.replace(/^socks5h:/, 'socks5:');
    return new Socks5ProxyAgent(uri, { ...common, requestTls: connect });
  }
  const isTls = proxy.protocol === 'https:';
  const trusted = isTls ? tlsOptions({ ca: [...trustedRoots(), ...(ca ? [ca].flat() : [])] }) : {};
  const proxyTls = { ...trusted, signal: closing };
  return new ProxyAgent({ ...common, uri: proxy.href, requestTls: connect, proxyTls });
}

const SCHEMES = ['http:', 'https:', 'socks5:', 'socks5h:'];

/**
 * Returns the proxy for a server, or undefined for a direct connection. The `proxy-url` of a cluster has
 * priority over the environment, as in kubectl; client-node ignores the environment
 * (kubernetes-client/javascript#648).
 */
export function chooseProxy(url: URL, env: Environment, proxyUrl = ''): URL | undefined {
  const proxy = proxyUrl === '' ? environmentProxy(url, env) : URL.parse(proxyUrl);
  if (proxy === undefined) return undefined;
  const what = proxyUrl === '' ? 'the proxy in the environment' : 'the "proxy-url" of the cluster';
  if (proxy !== null && /%(?![\da-f]{2})/i.test(proxy.username + proxy.password)) {
    throw configError(`${what} has a % in its name or password that must be written as %25`);
  }
  if (proxy !== null && SCHEMES.includes(proxy.protocol)) return proxy;
  throw configError(`${what} is not one of http://, https:// or socks5://`);
}

/**
 * Returns the proxy that a Go client such as kubectl would use for this URL, by the rules of
 * golang.org/x/net/http/httpproxy; `null` for an invalid one. Other clients differ: undici does not support CIDR
 * blocks in NO_PROXY and uses http_proxy for https URLs.
 */
function environmentProxy(url: URL, env: Environment): URL | null | undefined {
  const either = (name: string): string => env[name] || env[name.toLowerCase()] || '';
  const text = either(url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY');
  if (text === '') return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  const direct = `localhost,127.0.0.0/8,::1,${either('NO_PROXY').toLowerCase()}`.split(',');
  if (direct.some((entry) => bypassesProxy(entry.trim(), host, port))) return undefined;
  // "proxy.example:3128" means an http proxy.
  return URL.parse(text.includes('://') ? text : `http://${text}`);
}

function bypassesProxy(entry: string, host: string, port: string): boolean {
  const parts = isIP(entry) === 0 ? /^\[?(.*?)\]?(?::(\d+))?$/.exec(entry) : [entry, entry];
  const [, name = '', wantedPort = port] = parts ?? [];
  if (name === '' || wantedPort !== port) return false;
  if (name === '*' || isInBlock(host, name)) return true;
  // "example.com" matches itself and its subdomains, ".example.com" only subdomains.
  const suffix = name.replace(/^\*\./, '.');
  return suffix.startsWith('.')
    ? host.endsWith(suffix)
    : host === suffix || host.endsWith(`.${suffix}`);
}

/** Reports whether an address is in a block. A block without a prefix length is one address. */
function isInBlock(host: string, block: string): boolean {
  const [network = '', bits] = block.split('/');
  const most = isIPv6(network) ? 128 : 32;
  const prefix = Number(bits === '' ? Number.NaN : (bits ?? most));
  if (isIP(network) === 0 || isIP(host) === 0) return false;
  if (!Number.isInteger(prefix) || prefix < 0 || prefix > most) return false;
  const list = new BlockList();
  list.addSubnet(network, prefix, isIPv6(network) ? 'ipv6' : 'ipv4');
  return list.check(host, isIPv6(host) ? 'ipv6' : 'ipv4');
}
