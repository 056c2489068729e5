import { beforeAll } from 'vitest';
import { Client } from './client.ts';
import { foreignKubeconfig } from './clusters.ts';
import { ofThisPart } from './core.ts';
import { eachScenario } from './each-scenario.ts';
import { findKindNode, whyNoKubelet } from './kind/node.ts';
import { loadPodImage } from './kind/pod-image.ts';
import { runScenario } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';

type InCluster = Parameters<Parameters<typeof eachScenario>[1]>[1];

const judge = (scenario: Scenario, inCluster: InCluster): Promise<string[]> =>
  inCluster((cluster) => runScenario(scenario, cluster));

const foreign = foreignKubeconfig();
const here = SCENARIOS.filter(({ needs, own }) => !needs && (foreign === undefined || !own));
const onKubelet = SCENARIOS.filter(({ needs }) => needs);
eachScenario(ofThisPart(here), judge);

// What can only be shown elsewhere is neither passed nor skipped here; it is said once.
if (foreign === undefined) {
  console.log(`${onKubelet.length} scenarios need a kubelet: they run on kind`);
} else {
  const alone = SCENARIOS.filter(({ own }) => own);
  console.log(
    `${alone.length} scenarios, and the tests of force, need a control plane of their own`,
  );
  const client = Client.fromKubeconfig(foreign);
  const skipped = await whyNoKubelet(client);
  const node = await findKindNode(client);
  await client.close();
  beforeAll(async () => {
    if (node && skipped === undefined) await loadPodImage(node);
  });
  eachScenario(ofThisPart(onKubelet), judge, { inTurn: true, skipped });
}
