import { defineConfig } from 'vitest/config';

/** Real operators as processes against a real control plane. */
export default defineConfig({
  test: {
    include: ['test/operators/*.test.ts'],
    maxWorkers: 1,
    testTimeout: 420_000,
    hookTimeout: 900_000, // the first build of the control plane
    retry: process.env['CI'] ? 1 : 0,
    maxConcurrency: Number(process.env['CLUSTER_CONCURRENCY'] ?? 4),
    // What takes too long and is ended has then said how far it came.
    reporters: [
      'verbose',
      [
        'json',
        { outputFile: `${process.env['OPERATORS_RESULTS'] ?? 'coverage/operators'}-report.json` },
      ],
    ],
  },
});
