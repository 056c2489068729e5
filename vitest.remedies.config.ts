import { defineConfig } from 'vitest/config';

/** Follows the reports of all scenarios, command by command, on real control planes. */
export default defineConfig({
  test: {
    include: ['test/cluster/remedies.test.ts'],
    maxWorkers: 1,
    testTimeout: 900_000, // several copies of one situation, one after the other
    globalSetup: 'test/cluster/build-first.ts',
    hookTimeout: 120_000,
    retry: process.env['CI'] ? 1 : 0,
    // They mostly wait. Each has a person of its own on the shared control plane.
    maxConcurrency: Number(process.env['CLUSTER_CONCURRENCY'] ?? 12),
    reporters: ['default', ['json', { outputFile: 'coverage/remedies-report.json' }]],
  },
});
