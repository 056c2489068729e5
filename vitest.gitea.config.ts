import { defineConfig } from 'vitest/config';

/** The action on a real Gitea with its runner, and a real control plane. */
export default defineConfig({
  test: {
    include: ['test/gitea/**/*.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 3_600_000, // the first build of Gitea
    maxConcurrency: 4,
    retry: process.env['CI'] ? 1 : 0,
    reporters: ['default', ['json', { outputFile: 'coverage/gitea-report.json' }]],
  },
});
