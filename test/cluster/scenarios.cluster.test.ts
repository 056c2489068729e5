import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Client } from './client.ts';
import {
  type Cluster,
  foreignKubeconfig,
  LoneClusters,
  SharedClusters,
  skipReason,
} from './clusters.ts';
import { PEOPLE } from './identities.ts';
import { findKindNode, whyNoKubelet } from './kind/node.ts';
import { loadPodImage } from './kind/pod-image.ts';
import { onePerCode, sample } from './one-per-code.ts';
import { followDuties } from './remedies.ts';
import { dropBundle, theBundle } from './run-gate.ts';
import { proveScenario, runScenario } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';

/** `CURE=1`: without the gate; each situation must hang, and go when its cure is done. */
const PROVE = Boolean(process.env['CURE']);
/** `FOLLOW=1`: afterwards, what each report says is to be done now, to the letter. */
const people = process.env['FOLLOW'] ? [...PEOPLE] : [];

async function judge(scenario: Scenario, cluster: Cluster): Promise<string[]> {
  if (PROVE) return proveScenario(scenario, cluster);
  const person = people.pop();
  if (person === undefined) return runScenario(scenario, cluster);
  try {
    return await runScenario(scenario, cluster, (world, run) =>
      followDuties(scenario, world, run, person),
    );
  } finally {
    people.push(person);
  }
}

/**
 * `SCENARIOS=codes`: of those that need no cluster of their own and no kubelet, one for every finding code.
 * `SCENARIOS=sample`: these, and in turn a part of the others.
 */
const anywhere = SCENARIOS.filter(({ needs }) => !needs);
const sampled = process.env['SCENARIOS'] === 'sample' ? sample(anywhere) : anywhere;
const shareable = sampled.filter(({ own }) => !own);
const together = process.env['SCENARIOS'] === 'codes' ? onePerCode(shareable) : shareable;
const alone = sampled.filter(({ own }) => own);
const onKubelet = SCENARIOS.filter(({ needs }) => needs === 'kubelet');
const foreign = foreignKubeconfig();

beforeAll(theBundle); // without one, nothing has to be set up
afterAll(dropBundle);

describe.concurrent('on one cluster, side by side', () => {
  const clusters = shared();
  for (const scenario of together) {
    declare(scenario, () => clusters.use((cluster) => judge(scenario, cluster)));
  }
});

if (sampled.length < anywhere.length) {
  console.log(`sample: ${sampled.length} of ${anywhere.length} scenarios; each day others`);
}

// What can only be shown elsewhere is neither passed nor skipped here; it is said once.
if (foreign === undefined) {
  console.log(`${onKubelet.length} scenarios need a kubelet: npm run test:kind runs them`);

  describe.concurrent('on a control plane of its own', () => {
    const clusters = new LoneClusters();
    afterAll(() => clusters.stop());
    for (const scenario of alone) {
      declare(scenario, () => clusters.use(scenario, (cluster) => judge(scenario, cluster)));
    }
  });
} else {
  console.log(
    `${alone.length} scenarios, and the tests of force, need a control plane of their own: npm run test:cluster runs them`,
  );
  const client = Client.fromKubeconfig(foreign);
  const unreachable = await whyNoKubelet(client);
  const node = await findKindNode(client);
  await client.close();

  describe('on a real node, one after the other', () => {
    const clusters = shared();
    beforeAll(async () => {
      if (node && unreachable === undefined) await loadPodImage(node);
    });
    for (const scenario of onKubelet) {
      const run = () => clusters.use((cluster) => runScenario(scenario, cluster));
      declare(scenario, run, unreachable);
    }
  });
}

function shared(): SharedClusters {
  const clusters = new SharedClusters();
  afterAll(() => clusters.stop());
  return clusters;
}

/** A skipped scenario says why in its title, where the reports show it. */
function declare(
  scenario: Scenario,
  run: () => Promise<string[]>,
  reason = skipReason(scenario) ??
    (PROVE ? undefined : scenario.notMet) ??
    (PROVE && !scenario.cure ? 'it has no cure' : undefined) ??
    (process.env['FOLLOW'] ? scenario.adviceFails : undefined),
): void {
  const title = `${scenario.id}: ${scenario.title}`;
  if (reason !== undefined) test.skip(`${title} (skipped: ${reason})`);
  else {
    test(title, async () => {
      const problems = await run();
      if (problems.length > 0) expect.fail(problems.join('\n'));
    });
  }
}
