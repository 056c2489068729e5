import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** What needs no cluster; vitest.live.config.ts has the rest. */
export default defineConfig({
  test: {
    include: ['test/{unit,stage,adapter,bundle}/**/*.test.ts'],
    // Tests of processes mostly wait; vitest would leave one core of two idle.
    maxWorkers: Math.max(3, availableParallelism()),
    // A limit for what hangs, not a measure: machines are slow when they are busy.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // .ci/run tries what failed once more, alone.
    reporters: ['default', 'json'],
    outputFile: { json: 'coverage/unit.json' },
  },
});
