import type { Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { createGuarded, install, type Operator, operatorOf, start } from './operator.ts';
import { GUARDED, missingOrUnknown, releaseGuarded, settledByFinalizer } from './situation.ts';

/**
 * A cluster operator, elsewhere, runs a second operator in the namespace itself. To give that one its rights it
 * has to have them, too.
 */
const entity = (world: World): Operator =>
  operatorOf(world, { name: 'db-entity-operator', manager: 'acme-entity-operator' });

const inside: Scenario = {
  id: 'shape-inside',
  title: 'the operator was in the namespace; the one that made it runs, with the same rights',
  namespace: 'preview-shape-inside',
  setUp: async (world) => {
    const namespace = world.name('acme-operators');
    await world.createNamespace();
    await world.createNamespace(namespace);
    const made = await install(world, {
      name: 'db-entity-operator',
      manager: 'acme-entity-operator',
    });
    await start(world, made, { hangs: true });
    const maker = await install(world, {
      name: 'widget-cluster-operator',
      namespace,
      scope: 'cluster',
      type: false,
    });
    await start(world, maker, { alsoAfter: [], cleanUp: () => 'not mine', tells: false });
    await createGuarded(world, made, GUARDED);
  },
  settle: settledByFinalizer,
  expect: (world) => {
    return {
      outcome: 'stuck',
      ...missingOrUnknown(world, entity(world)),
      never: [{ kind: 'Deployment', name: 'widget-cluster-operator' }],
    };
  },
  cure: (world) => releaseGuarded(world, entity(world)),
};

export const shapes: readonly Scenario[] = [inside];
