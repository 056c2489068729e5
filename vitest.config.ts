import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** What needs no cluster. The scenarios on a real one have a configuration of their own. */
export default defineConfig({
  test: {
    include: ['test/{unit,stage,adapter,bundle}/**/*.test.ts'],
    // Tests of processes mostly wait; vitest would leave one core of two idle.
    maxWorkers: Math.max(3, availableParallelism()),
    // A limit for what hangs, not a measure: machines are slow when they are busy.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // Real processes and sockets starve on a busy machine. What fails twice in a row is broken.
    retry: process.env['CI'] ? 1 : 0,
    reporters: [
      'default',
      ['json', { outputFile: process.env['TEST_REPORT'] ?? 'coverage/report.json' }],
    ],
  },
});
