import { readFileSync } from 'node:fs';
import { KubeConfig } from '@kubernetes/client-node';

/** Where an API server is and who we are to it. */
export interface Connection {
  server: string;
  /** PEM. */
  ca: string | undefined;
  token?: string;
  /** Client certificate and key, PEM. */
  clientCert?: { cert: string; key: string };
}

/** The current context of any kubeconfig with a token or a client certificate. */
export function readKubeconfig(path: string): Connection {
  const config = new KubeConfig();
  config.loadFromFile(path);
  const cluster = config.getCurrentCluster();
  const user = config.getCurrentUser();
  if (!cluster) throw new Error(`the kubeconfig ${path} has no current cluster`);
  const cert = pem(user?.certData, user?.certFile);
  const key = pem(user?.keyData, user?.keyFile);
  return {
    server: cluster.server,
    ca: pem(cluster.caData, cluster.caFile),
    ...(user?.token === undefined ? {} : { token: user.token }),
    ...(cert !== undefined && key !== undefined ? { clientCert: { cert, key } } : {}),
  };
}

/** A kubeconfig with one context, for `kubectl` as well as for the gate. */
export function writeKubeconfigText(context: string, user: string, connection: Connection): string {
  if (connection.token === undefined)
    throw new Error('only token users are written to kubeconfigs');
  return `apiVersion: v1
kind: Config
current-context: ${context}
clusters:
- name: ${context}
  cluster:
    server: ${connection.server}
    certificate-authority-data: ${Buffer.from(connection.ca ?? '').toString('base64')}
users:
- name: ${user}
  user:
    token: ${connection.token}
contexts:
- name: ${context}
  context:
    cluster: ${context}
    user: ${user}
`;
}

function pem(data: string | undefined, file: string | undefined): string | undefined {
  if (data !== undefined) return Buffer.from(data, 'base64').toString('utf8');
  return file === undefined ? undefined : readFileSync(file, 'utf8');
}
