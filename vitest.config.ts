import { defineConfig } from 'vitest/config';

/** What needs no cluster. The scenarios on a real one have a configuration of their own. */
export default defineConfig({
  test: {
    include: ['test/{unit,stage,adapter,bundle}/**/*.test.ts'],
    reporters: ['default', ['json', { outputFile: 'coverage/report.json' }]],
  },
});
