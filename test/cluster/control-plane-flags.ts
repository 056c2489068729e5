import { join } from 'node:path';
import type { Ports } from './control-plane-files.ts';

/** Command lines of the servers. What is not said here is the default that every cluster has. */

export function etcdFlags(dataDir: string, ports: Ports): string[] {
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  const client = `http://127.0.0.1:${ports.etcd}`;
  return [
    `--data-dir=${join(dataDir, 'etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    '--unsafe-no-fsync', // nothing here has to survive a power cut
    '--log-level=warn',
  ];
}

export function apiServerFlags(dataDir: string, ports: Ports): string[] {
  const file = (name: string): string => join(dataDir, name);
  return [
    `--etcd-servers=http://127.0.0.1:${ports.etcd}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    '--endpoint-reconciler-type=none', // loopback may not be in the endpoints of `kubernetes`
    `--secure-port=${ports.apiServer}`,
    `--cert-dir=${file('apiserver')}`,
    `--tls-cert-file=${file('serving.crt')}`,
    `--tls-private-key-file=${file('serving.key')}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--authorization-mode=RBAC',
    `--token-auth-file=${file('tokens.csv')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${file('service-accounts.pub')}`,
    `--service-account-signing-key-file=${file('service-accounts.key')}`,
    '--enable-aggregator-routing=true', // no kube-proxy: straight to the endpoints
    `--requestheader-client-ca-file=${file('front-proxy-ca.crt')}`,
    '--requestheader-allowed-names=front-proxy-client',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${file('front-proxy.crt')}`,
    `--proxy-client-key-file=${file('front-proxy.key')}`,
    `--audit-policy-file=${file('audit-policy.yaml')}`,
    `--audit-log-path=${file('audit.log')}`,
    // In megabytes; a log that begins anew at 100 would lose what tests look for.
    '--audit-log-maxsize=2000',
    // Nobody here is to be kept waiting for others, and every request would pay for it.
    '--enable-priority-and-fairness=false',
    '--v=1',
  ];
}

export function controllerManagerFlags(dataDir: string): string[] {
  return [
    `--kubeconfig=${join(dataDir, 'controller-manager.kubeconfig')}`,
    '--secure-port=0', // nobody asks for its metrics
    '--leader-elect=true', // its Lease is evidence of a living controller manager
    '--use-service-account-credentials=true',
    `--service-account-private-key-file=${join(dataDir, 'service-accounts.key')}`,
    `--root-ca-file=${join(dataDir, 'ca.crt')}`,
    '--kube-api-qps=200',
    '--kube-api-burst=400',
    '--v=1',
  ];
}
