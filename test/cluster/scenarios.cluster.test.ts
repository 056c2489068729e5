import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Client } from './client.ts';
import { Clusters, foreignKubeconfig, skipReason } from './clusters.ts';
import { isCore, ofThisPart } from './core.ts';
import { findKindNode, whyNoKubelet } from './kind/node.ts';
import { loadPodImage } from './kind/pod-image.ts';
import { dropBundle, theBundle } from './run-gate.ts';
import { runScenario } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';

const foreign = foreignKubeconfig();
const chosen = ofThisPart(
  SCENARIOS.filter(({ needs, own }) => !needs && (foreign === undefined || !own)),
);
const onKubelet = ofThisPart(SCENARIOS.filter(({ needs }) => needs === 'kubelet'));

beforeAll(theBundle); // without one, nothing has to be set up
afterAll(dropBundle);

const clusters = new Clusters();
afterAll(() => clusters.stop());

describe.concurrent('each on a cluster of its own', () => {
  for (const scenario of chosen) declare(scenario);
});

// What can only be shown elsewhere is neither passed nor skipped here; it is said once.
if (foreign === undefined) {
  console.log(`${onKubelet.length} scenarios need a kubelet: they run on kind`);
} else {
  const alone = SCENARIOS.filter(({ own }) => own);
  console.log(
    `${alone.length} scenarios, and the tests of force, need a control plane of their own`,
  );
  const client = Client.fromKubeconfig(foreign);
  const unreachable = await whyNoKubelet(client);
  const node = await findKindNode(client);
  await client.close();

  describe('on a real node, one after the other', () => {
    beforeAll(async () => {
      if (node && unreachable === undefined) await loadPodImage(node);
    });
    for (const scenario of onKubelet) declare(scenario, unreachable);
  });
}

/** A skipped scenario says why in its title, where the reports show it. */
function declare(scenario: Scenario, reason = skipReason(scenario)): void {
  const title = `${scenario.id}: ${scenario.title}`;
  const tags = [isCore(scenario) ? 'core' : '', scenario.needs ?? ''].filter(Boolean);
  if (reason !== undefined) test.skip(`${title} (skipped: ${reason})`, { tags });
  else {
    test(title, { tags }, () =>
      clusters.use(async (cluster) => {
        const problems = await runScenario(scenario, cluster);
        if (problems.length > 0) expect.fail(problems.join('\n'));
      }, scenario.own),
    );
  }
}
