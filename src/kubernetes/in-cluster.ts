import { existsSync, readFileSync, statSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { type Access, type ClusterSettings, clusterSettings } from './access.ts';

export const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount';

type Environment = Readonly<Record<string, string | undefined>>;

/** What kubectl uses inside a pod when there is no kubeconfig. */
export function inClusterAccess(env: Environment, dir: string): Access | undefined {
  const host = env['KUBERNETES_SERVICE_HOST'] ?? '';
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '';
  const tokenFile = join(dir, 'token');
  if (host === '' || port === '' || !isFile(tokenFile)) return undefined;
  const caFile = join(dir, 'ca.crt');
  const cluster = clusterSettings('in-cluster', {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    ...(existsSync(caFile) ? { 'certificate-authority': caFile } : {}),
  });
  return {
    source: "the pod's service account",
    context: 'in-cluster',
    cluster,
    userName: 'service account of this pod',
    user: { tokenFile },
    ownNamespace: namespaceOf(dir),
  };
}

/**
 * The namespace that we run in, if the chosen cluster is the one around us. A kubeconfig may name that
 * cluster by another address, so the same certificate authority counts as well.
 */
export function ownNamespace(
  cluster: ClusterSettings,
  env: Environment,
  dir: string,
): string | undefined {
  const host = env['KUBERNETES_SERVICE_HOST'] ?? '';
  if (host === '') return undefined;
  const names = [host, `[${host}]`, 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
  const caFile = join(dir, 'ca.crt');
  const isSame =
    names.includes(new URL(cluster.server).hostname) ||
    (cluster.ca !== undefined &&
      existsSync(caFile) &&
      readFileSync(caFile, 'utf8').trim() === cluster.ca.trim());
  return isSame ? namespaceOf(dir) : undefined;
}

function namespaceOf(dir: string): string | undefined {
  const file = join(dir, 'namespace');
  if (!existsSync(file)) return undefined;
  return readFileSync(file, 'utf8').trim() || undefined;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
