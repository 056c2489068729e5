import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { createRedactor } from '../../src/base/redact.ts';
import type { KubernetesApi } from '../../src/kubernetes/api.ts';
import { connect } from '../../src/kubernetes/connect.ts';
import { base64 } from '../stub/certificates.ts';
import { kubeconfigText } from '../stub/kubeconfig-text.ts';

/** Where an API server is and who we are to it. */
export interface Connection {
  server: string;
  /** PEM. */
  ca: string | undefined;
  token?: string;
  /** Client certificate and key, PEM. */
  clientCert?: { cert: string; key: string };
}

interface KubeconfigFile {
  'current-context': string;
  contexts: { name: string; context: { cluster: string; user: string } }[];
  clusters: { name: string; cluster: Record<string, string> }[];
  users: { name: string; user: Record<string, string> }[];
}

/** The current context of any kubeconfig with a token or a client certificate. */
export function readKubeconfig(path: string): Connection {
  const config = load(readFileSync(path, 'utf8')) as KubeconfigFile;
  const context = config.contexts.find(({ name }) => name === config['current-context'])?.context;
  const cluster = config.clusters.find(({ name }) => name === context?.cluster)?.cluster;
  const user = config.users.find(({ name }) => name === context?.user)?.user;
  const server = cluster?.['server'];
  if (server === undefined) throw new Error(`the kubeconfig ${path} has no current cluster`);
  const cert = pem(user?.['client-certificate-data'], user?.['client-certificate']);
  const key = pem(user?.['client-key-data'], user?.['client-key']);
  const token = user?.['token'];
  return {
    server,
    ca: pem(cluster?.['certificate-authority-data'], cluster?.['certificate-authority']),
    ...(token === undefined ? {} : { token }),
    ...(cert !== undefined && key !== undefined ? { clientCert: { cert, key } } : {}),
  };
}

/** Of the holder of the token. */
export function writeKubeconfigText(
  name: string,
  { server, ca = '', token }: Connection,
  namespace = 'default',
): string {
  if (token === undefined) throw new Error('only token users are written to kubeconfigs');
  const cluster = { 'certificate-authority-data': base64(ca) };
  return kubeconfigText({ server, cluster, user: { token }, name, namespace });
}

/** The gate's own transport, as the user of a kubeconfig. */
export function connectGate(kubeconfig: string, userAgent: string): Promise<KubernetesApi> {
  const redactor = createRedactor();
  return connect({ kubeconfig, env: {}, redactor, userAgent, homeDir: '/nonexistent' });
}

function pem(data: string | undefined, file: string | undefined): string | undefined {
  if (data !== undefined) return Buffer.from(data, 'base64').toString('utf8');
  return file === undefined ? undefined : readFileSync(file, 'utf8');
}
