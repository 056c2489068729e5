import { configMap } from '../objects.ts';
import type { RunningGate, Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { configMapRef } from './links.ts';

const HOLD = 'tests.example.com/until-the-gate-looks';

/**
 * Keeps the namespace until the gate has begun to wait, on a slow machine too: what then goes, goes
 * while somebody is watching.
 */
export function holdUntilWatched(
  setUp: (world: World) => Promise<unknown>,
): Pick<Scenario, 'setUp' | 'settle'> & Required<Pick<Scenario, 'meanwhile'>> {
  return {
    setUp: async (world) => {
      await setUp(world);
      await world.create(configMap(world.namespace, 'held', { finalizers: [HOLD] }));
    },
    settle: (world) => world.terminating(world.namespaceRef),
    meanwhile: async (world: World, gate: RunningGate) => {
      await gate.says(new RegExp(`${world.namespace}: terminating`));
      await world.client.patch(configMapRef(world.namespace, 'held'), {
        metadata: { finalizers: null },
      });
    },
  };
}
