import { defineConfig } from 'vitest/config';

/** A cluster that is there already, such as kind: what needs a control plane of its own is not for it. */
const foreign = Boolean(process.env['CLUSTER_KUBECONFIG']);

/** The scenario catalogue on a real control plane, or on any cluster (CLUSTER_KUBECONFIG). */
export default defineConfig({
  test: {
    include: [`test/cluster/**/${foreign ? '{scenarios,image}' : '*'}.cluster.test.ts`],
    // Every scenario twice, before and after its deletion: npm run test:forecast. `FORECASTS=codes`: one for every finding code.
    exclude: [
      ...(foreign ? [] : ['test/cluster/image.cluster.test.ts']), // needs nodes
      ...(process.env['FORECASTS'] ? [] : ['test/cluster/forecast.cluster.test.ts']),
      ...(process.env['SIDE_BY_SIDE'] ? [] : ['test/cluster/side-by-side.cluster.test.ts']),
    ],
    // The scenarios, one file, keep a core busy; the other files wait for half of their time, so two of them fill one.
    // Not more: real controllers lose their Leases on a machine that is too busy.
    maxWorkers: 2,
    testTimeout: 660_000, // more than one wait for what never comes
    globalSetup: 'test/cluster/build-first.ts',
    hookTimeout: 120_000,
    // Real controllers on a busy machine may miss a moment. What fails twice in a row is broken.
    retry: process.env['CI'] ? 1 : 0,
    // Scenarios mostly wait for controllers, but every control plane that runs for one of them needs a part of a core.
    maxConcurrency: Number(process.env['CLUSTER_CONCURRENCY'] ?? 6),
    reporters: [
      'default',
      [
        'json',
        {
          outputFile:
            process.env['CLUSTER_REPORT'] ?? `coverage/${foreign ? 'kind' : 'cluster'}-report.json`,
        },
      ],
    ],
  },
});
