import { readFileSync } from 'node:fs';
import { ActionError } from '../base/errors.ts';
import { at, type Json, type JsonObject, stringAt } from '../base/json.ts';

/** The cluster and the user that were chosen, before any credential was fetched. */
export interface Access {
  /** Where it came from, for messages: files, or "the pod's service account". */
  source: string;
  context: string;
  cluster: ClusterSettings;
  userName: string;
  /** The user entry as written. */
  user: JsonObject;
  ownNamespace: string | undefined;
}

export interface ClusterSettings {
  /** With path prefix, without trailing slash, user info and query. */
  server: string;
  /** PEM; without it the roots of Node and of the system are trusted. */
  ca: string | undefined;
  isInsecure: boolean;
  serverName: string | undefined;
  /** Of the kubeconfig; it wins over the environment. */
  proxyUrl: string | undefined;
  /** For credential plugins that ask for the cluster: the entry as written. */
  entry: JsonObject;
}

export function clusterSettings(name: string, entry: JsonObject): ClusterSettings {
  const server = stringField(entry, 'server', `cluster "${name}"`);
  if (server === undefined) {
    throw new ActionError('kube-config', `cluster "${name}" of the kubeconfig has no "server"`);
  }
  const isInsecure = at(entry, 'insecure-skip-tls-verify') === true;
  return {
    server: serverUrl(server, name),
    ca: isInsecure ? undefined : pemField(entry, 'certificate-authority', `cluster "${name}"`),
    isInsecure,
    serverName: stringField(entry, 'tls-server-name', `cluster "${name}"`),
    proxyUrl: stringField(entry, 'proxy-url', `cluster "${name}"`),
    entry,
  };
}

function serverUrl(text: string, cluster: string): string {
  const withScheme = text.includes('://') ? text : `https://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw new ActionError('kube-config', `the server of cluster "${cluster}" is not an https URL`);
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new ActionError(
      'kube-config',
      `the server of cluster "${cluster}" is ${url.origin}: without TLS, credentials could be read on the way`,
      { hint: 'Use an https URL; http is only accepted for localhost (kubectl proxy)' },
    );
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** `<field>-data` in base64 wins over the file, as in kubectl. */
export function pemField(entry: JsonObject, field: string, owner: string): string | undefined {
  const data = stringField(entry, `${field}-data`, owner);
  const file = stringField(entry, field, owner);
  if (data === undefined && file === undefined) return undefined;
  const where = data === undefined ? `file ${file}` : `"${field}-data"`;
  const pem = data === undefined ? readPem(file ?? '', field, owner) : decodeBase64(data);
  if (!pem.includes('-----BEGIN ')) {
    throw new ActionError('kube-config', `the ${field} of ${owner} (${where}) is not in PEM form`);
  }
  return pem;
}

function decodeBase64(data: string): string {
  return Buffer.from(data, 'base64').toString('utf8');
}

function readPem(file: string, field: string, owner: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    const why = code === 'ENOENT' ? 'no such file' : code;
    throw new ActionError('kube-config', `cannot read the ${field} of ${owner}, ${file}: ${why}`, {
      cause: error,
      hint: 'Relative paths in a kubeconfig are relative to its folder',
    });
  }
}

/** YAML turns an unquoted 12345678 into a number, and kubectl refuses it as well. */
export function stringField(entry: JsonObject, field: string, owner: string): string | undefined {
  const value: Json | undefined = at(entry, field);
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw new ActionError('kube-config', `"${field}" of ${owner} must be a text; put it in quotes`);
}

export function nameOf(entry: JsonObject, field: string): string {
  return stringAt(entry, field) ?? '';
}
