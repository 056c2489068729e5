/**
 * `npm run test:kind`: the scenario catalogue on a cluster with real nodes. It creates and deletes
 * namespaces, webhooks and RBAC, so it never takes the cluster that kubectl happens to point at.
 */
import { spawnSync } from 'node:child_process';

const kubeconfig = process.env['CLUSTER_KUBECONFIG'];
if (kubeconfig === undefined || kubeconfig === '') {
  console.error(`CLUSTER_KUBECONFIG is not set; make a cluster for these tests alone and name its kubeconfig:

  kind create cluster --name teardown-gate --kubeconfig kind.kubeconfig
  CLUSTER_KUBECONFIG=$PWD/kind.kubeconfig npm run test:kind
  kind delete cluster --name teardown-gate`);
  process.exitCode = 3;
} else {
  const args = ['run', '--config', 'vitest.cluster.config.ts'];
  const run = spawnSync('vitest', [...args, ...process.argv.slice(2)], {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  process.exitCode = run.status ?? 1;
}
