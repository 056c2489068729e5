import { defineConfig } from 'vitest/config';

/** The scenario catalogue on a real control plane, or on any cluster (CLUSTER_KUBECONFIG). */
export default defineConfig({
  test: {
    include: ['test/cluster/**/*.cluster.test.ts'],
    testTimeout: 240_000,
    hookTimeout: 900_000, // the first build of the control plane
    // Scenarios mostly wait for controllers; more at once would only make the two slower.
    maxConcurrency: Number(process.env['CLUSTER_CONCURRENCY'] ?? 8),
    reporters: ['default', ['json', { outputFile: 'coverage/cluster-report.json' }]],
  },
});
