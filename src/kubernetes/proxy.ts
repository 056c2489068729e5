import { BlockList, isIP, isIPv4 } from 'node:net';
import type { Environment } from '../base/process.ts';
import { configError } from './kubeconfig.ts';

/** How to reach a server: directly, or through this proxy. A `proxy-url` wins, as in kubectl. */
export function chooseProxy(
  server: string,
  proxyUrl: string | undefined,
  env: Environment,
): URL | undefined {
  if (!proxyUrl) return environmentProxy(new URL(server), env);
  const proxy = proxyUrl.includes('://') ? parseProxy(proxyUrl) : undefined;
  return supported(proxy ?? new URL('none:'), 'the "proxy-url" of the cluster');
}

/** client-node looks at no proxy of the environment (kubernetes-client/javascript#648). */
export function environmentProxy(url: URL, env: Environment): URL | undefined {
  return supported(proxyFor(url, env), 'the proxy in the environment');
}

function supported(proxy: URL | undefined, what: string): URL | undefined {
  if (proxy === undefined || SCHEMES.includes(proxy.protocol)) return proxy;
  throw configError(`${what} is not one of http://, https:// or socks5://`);
}

const SCHEMES = ['http:', 'https:', 'socks5:', 'socks5h:'];

/**
 * The proxy that a Go client, kubectl for one, would use for this URL, by the rules of
 * golang.org/x/net/http/httpproxy. Others differ: undici knows no CIDR blocks in NO_PROXY and takes
 * http_proxy for https URLs.
 */
export function proxyFor(url: URL, env: Environment): URL | undefined {
  const variable = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const proxy = parseProxy(either(env, variable));
  if (proxy === undefined || isDirect(url, either(env, 'NO_PROXY'))) return undefined;
  return proxy;
}

function either(env: Environment, name: string): string {
  return env[name] || env[name.toLowerCase()] || '';
}

/** `proxy.example:3128` without a scheme is an http proxy. */
export function parseProxy(text: string): URL | undefined {
  if (text === '') return undefined;
  for (const candidate of [text, `http://${text}`]) {
    const url = URL.canParse(candidate) ? new URL(candidate) : undefined;
    // "proxy.example:3128" parses as well, with the host as scheme.
    if (url !== undefined && url.hostname !== '') return url;
  }
  return undefined;
}

function isDirect(url: URL, noProxy: string): boolean {
  const host = withoutBrackets(url.hostname.toLowerCase());
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  if (host === 'localhost' || isLoopbackAddress(host)) return true;
  return noProxy
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== '' && covers(entry, host, port));
}

function covers(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  if (entry.includes('/')) return inBlock(entry, host);
  const { name, wantedPort } = splitPort(entry);
  if (name === '' || (wantedPort !== '' && wantedPort !== port)) return false;
  if (isIP(name) !== 0) return isSameAddress(name, host);
  // "example.com" covers itself and everything below, ".example.com" only what is below.
  if (name.startsWith('*.')) return host.endsWith(name.slice(1));
  if (name.startsWith('.')) return host.endsWith(name);
  return host === name || host.endsWith(`.${name}`);
}

function splitPort(entry: string): { name: string; wantedPort: string } {
  if (isIP(entry) !== 0) return { name: entry, wantedPort: '' };
  const match = /^(.*?):(\d*)$/.exec(entry);
  return match === null
    ? { name: withoutBrackets(entry), wantedPort: '' }
    : { name: withoutBrackets(match[1] ?? ''), wantedPort: match[2] ?? '' };
}

function inBlock(entry: string, host: string): boolean {
  const [network = '', bits = ''] = entry.split('/');
  const isV4 = isIPv4(network);
  if (isIP(network) === 0 || isIP(host) === 0 || !/^\d{1,3}$/.test(bits)) return false;
  if (Number(bits) > (isV4 ? 32 : 128)) return false;
  const block = new BlockList();
  block.addSubnet(network, Number(bits), isV4 ? 'ipv4' : 'ipv6');
  return block.check(host, isIPv4(host) ? 'ipv4' : 'ipv6');
}

function isSameAddress(a: string, b: string): boolean {
  return isIP(b) !== 0 && inBlock(`${a}/${isIPv4(a) ? 32 : 128}`, b);
}

function isLoopbackAddress(host: string): boolean {
  return inBlock('127.0.0.0/8', host) || isSameAddress('::1', host);
}

function withoutBrackets(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
}
