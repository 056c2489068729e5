import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, Clusters, skipReason } from './clusters.ts';
import { isCore } from './core.ts';
import { dropBundle, theBundle } from './run-gate.ts';
import type { Scenario } from './scenario.ts';

type InCluster = <T>(work: (cluster: Cluster) => Promise<T>) => Promise<T>;
type Judge = (scenario: Scenario, inCluster: InCluster) => Promise<string[]>;

interface Options {
  inTurn?: boolean;
  skipped?: string | undefined;
  isInCore?: (scenario: Scenario) => boolean;
}

/** Declares tests, each with a cluster to itself; `judge` returns what is wrong. What is skipped says why in its title. */
export function eachScenario(
  scenarios: readonly Scenario[],
  judge: Judge,
  { inTurn = false, skipped, isInCore = isCore }: Options = {},
): void {
  beforeAll(theBundle);
  afterAll(dropBundle);
  (inTurn ? describe : describe.concurrent)('each on a cluster of its own', () => {
    const clusters = new Clusters();
    afterAll(() => clusters.stop());
    for (const scenario of scenarios) {
      const { id, needs = '', own } = scenario;
      const title = `${id}: ${scenario.title}`;
      const tags = [isInCore(scenario) ? 'core' : '', needs].filter(Boolean);
      const reason = skipped ?? skipReason(scenario);
      if (reason !== undefined) test.skip(`${title} (skipped: ${reason})`, { tags });
      else {
        test(title, { tags }, async () => {
          const problems = await judge(scenario, (work) => clusters.use(work, own));
          if (problems.length > 0) expect.fail(problems.join('\n'));
        });
      }
    }
  });
}
