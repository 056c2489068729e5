import { ActionError } from '../base/errors.ts';
import { arrayAt, at, isObject, type Json, type JsonObject, stringAt } from '../base/json.ts';
import { type ClusterSettings, stringField } from './access.ts';

const API_GROUP = 'client.authentication.k8s.io';
const SUPPORTED = [`${API_GROUP}/v1`, `${API_GROUP}/v1beta1`];

/** The `exec` section of a user entry, checked. */
export interface ExecConfig {
  command: string;
  args: string[];
  env: { name: string; value: string }[];
  apiVersion: string;
  providesClusterInfo: boolean;
  installHint: string | undefined;
}

/** What a plugin gave us; `expiresAt` in ms since the epoch. */
export interface ExecCredential {
  token?: string;
  cert?: string;
  key?: string;
  expiresAt?: number;
}

export function execConfig(exec: JsonObject, owner: string): ExecConfig {
  const command = stringField(exec, 'command', owner);
  if (command === undefined) {
    throw new ActionError('kube-config', `the exec section of ${owner} has no "command"`);
  }
  const apiVersion = stringField(exec, 'apiVersion', owner) ?? '';
  if (!SUPPORTED.includes(apiVersion)) {
    throw new ActionError(
      'kube-config',
      `the credential plugin "${command}" of ${owner} is configured for "${apiVersion}"; supported are ${SUPPORTED.join(' and ')}`,
      { hint: 'Update the plugin and write the kubeconfig again with it' },
    );
  }
  if (stringAt(exec, 'interactiveMode') === 'Always') {
    throw new ActionError(
      'kube-config',
      `the credential plugin "${command}" of ${owner} needs a terminal (interactiveMode: Always)`,
      { hint: 'Use a login that works without a person, for example a service account token' },
    );
  }
  return {
    command,
    args: arrayAt(exec, 'args').map(String),
    env: arrayAt(exec, 'env').flatMap((entry) => {
      const name = stringAt(entry, 'name');
      return name === undefined ? [] : [{ name, value: stringAt(entry, 'value') ?? '' }];
    }),
    apiVersion,
    providesClusterInfo: at(exec, 'provideClusterInfo') === true,
    installHint: stringField(exec, 'installHint', owner),
  };
}

/** The JSON for the environment variable KUBERNETES_EXEC_INFO. */
export function execInfo(config: ExecConfig, cluster: ClusterSettings): string {
  return JSON.stringify({
    kind: 'ExecCredential',
    apiVersion: config.apiVersion,
    spec: {
      ...(config.providesClusterInfo ? { cluster: clusterInfo(cluster) } : {}),
      interactive: false,
    },
  });
}

function clusterInfo(cluster: ClusterSettings): JsonObject {
  const extensions = arrayAt(cluster.entry, 'extensions');
  const own = extensions.find((entry) => stringAt(entry, 'name') === `${API_GROUP}/exec`);
  const info: Record<string, Json | undefined> = {
    server: cluster.server,
    'tls-server-name': cluster.serverName,
    'insecure-skip-tls-verify': cluster.isInsecure ? true : undefined,
    'certificate-authority-data':
      cluster.ca === undefined ? undefined : Buffer.from(cluster.ca).toString('base64'),
    'proxy-url': cluster.proxyUrl,
    'disable-compression': at(cluster.entry, 'disable-compression'),
    config: at(own, 'extension') ?? null,
  };
  return info;
}

/** The clause says what is wrong with the output; it never quotes it, for it may hold the token. */
export function parseExecCredential(
  stdout: string,
  config: ExecConfig,
): ExecCredential | { problem: string } {
  let output: unknown;
  try {
    output = JSON.parse(stdout);
  } catch {
    return {
      problem: stdout.trim() === '' ? 'printed nothing' : 'printed something that is not JSON',
    };
  }
  if (!isObject(output) || output['kind'] !== 'ExecCredential') {
    return { problem: 'printed JSON that is not an ExecCredential' };
  }
  const apiVersion = stringAt(output, 'apiVersion');
  if (apiVersion !== config.apiVersion) {
    return { problem: `answered in version "${apiVersion}" instead of "${config.apiVersion}"` };
  }
  const token = stringAt(output, 'status', 'token') || undefined;
  const cert = stringAt(output, 'status', 'clientCertificateData') || undefined;
  const key = stringAt(output, 'status', 'clientKeyData') || undefined;
  if (token === undefined && cert === undefined && key === undefined) {
    return { problem: 'gave neither a token nor a client certificate' };
  }
  if ((cert === undefined) !== (key === undefined)) {
    return { problem: 'gave a client certificate without its key, or the other way round' };
  }
  const expiresAt = Date.parse(stringAt(output, 'status', 'expirationTimestamp') ?? '');
  return {
    ...(token === undefined ? {} : { token }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
    ...(Number.isNaN(expiresAt) ? {} : { expiresAt }),
  };
}
