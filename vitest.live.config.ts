import { defineConfig } from 'vitest/config';

/** What needs real servers: control planes, a kind cluster (CLUSTER_KUBECONFIG), operators, act. */
export default defineConfig({
  test: {
    include: ['test/{cluster,operators,workflow}/**/*.test.ts'],
    tags: [
      { name: 'core', description: 'in every run of .ci/run: one for each thing that is promised' },
      { name: 'kubelet', description: 'needs a node whose pods really run' },
      { name: 'agents', description: 'needs programs of the node as well, which are built first' },
    ],
    globalSetup: 'test/cluster/build-first.ts',
    // Limits for what hangs, not measures. The longest test follows several copies of one situation, one after the other.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    // Situations mostly wait; with more at once, real controllers lose their Leases on a busy machine.
    maxWorkers: 1,
    maxConcurrency: 3,
  },
});
