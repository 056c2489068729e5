import { defineConfig } from 'vitest/config';

/** The README's first workflow, run for real: act, a control plane and an embedded GitHub API. */
export default defineConfig({
  test: {
    include: ['test/workflow/**/*.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 900_000, // the first build of the control plane
    reporters: ['default', ['json', { outputFile: 'coverage/workflow-report.json' }]],
  },
});
