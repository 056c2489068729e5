import { defineConfig } from 'vitest/config';

/** What needs no cluster. The scenarios on a real one have a configuration of their own. */
export default defineConfig({
  test: {
    include: ['test/{unit,stage,adapter,bundle}/**/*.test.ts'],
    // A limit for what hangs, not a measure: machines are slow when they are busy.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default', ['json', { outputFile: 'coverage/report.json' }]],
  },
});
