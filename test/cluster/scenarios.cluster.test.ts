import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, clusterFor, sharedCluster, skipReason } from './clusters.ts';
import { dropBundle, theBundle } from './run-gate.ts';
import { runScenario } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';

const together = SCENARIOS.filter((scenario) => !scenario.own);
const alone = SCENARIOS.filter((scenario) => scenario.own);

beforeAll(theBundle); // without one, nothing has to be set up
afterAll(dropBundle);

describe.concurrent('on one cluster, side by side', () => {
  let cluster: Promise<Cluster>;
  beforeAll(async () => {
    cluster = sharedCluster();
    await cluster;
  });
  afterAll(async () => (await cluster).stop());

  for (const scenario of together) {
    declare(scenario, async () => runScenario(scenario, await cluster));
  }
});

describe.concurrent('on a control plane of its own', () => {
  for (const scenario of alone) {
    declare(scenario, async () => {
      const own = await clusterFor(scenario);
      try {
        return await runScenario(scenario, own);
      } finally {
        await own.stop();
      }
    });
  }
});

/** A skipped scenario says why in its title, where the reports show it. */
function declare(scenario: Scenario, run: () => Promise<string[]>): void {
  const reason = skipReason(scenario);
  const title = `${scenario.id}: ${scenario.title}`;
  if (reason !== undefined) test.skip(`${title} (skipped: ${reason})`);
  else test(title, async () => expect(await run()).toEqual([]));
}
