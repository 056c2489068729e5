import { defineConfig } from 'vitest/config';

/** The action on a real Gitea with its runner, and a real control plane. */
export default defineConfig({
  test: {
    include: ['test/gitea/**/*.test.ts'],
    testTimeout: 900_000, // several runs of a workflow, on a machine that does other things
    hookTimeout: 3_600_000, // the first build of Gitea
    maxConcurrency: 4,
    reporters: ['default', ['json', { outputFile: 'coverage/gitea-report.json' }]],
  },
});
