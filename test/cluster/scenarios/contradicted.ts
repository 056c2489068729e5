import type { Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { createGuarded, type OperatorOptions, READ, rule } from './operator.ts';
import {
  guardedRef,
  heldBy,
  owner,
  RIGHTS,
  release,
  releaseGuarded,
  situation,
} from './situation.ts';

/** One source points to somebody, and another one says that it is not this one, or that it may be others as well. */

const groupOf = (world: World): string => world.domain('example.com');

/** May watch these types of its group and write their status, and change none. */
const lostRights =
  (...groups: readonly string[]) =>
  (world: World): OperatorOptions => ({
    finalizer: `${groupOf(world)}/cleanup`,
    rules: ['example.com', ...groups].flatMap((group) => [
      rule(world.domain(group), ['widgets'], READ),
      rule(world.domain(group), ['widgets/status'], ['patch']),
    ]),
  });

const SILENT = { tells: false };

const duties: Scenario[] = [
  situation({
    id: 'lost-for-two-objects',
    title: 'the operator has lost its right; it is granted for the objects that are held',
    operator: lostRights(),
    behaviour: SILENT,
    afterwards: (world, operator) => createGuarded(world, operator, 'second'),
    expect: (world, operator) => {
      const advises = [/--resource-name=db --resource-name=second/];
      const end = owner(operator, 'owner-failing', { advises });
      return { chains: [[{ ...heldBy(world, operator), count: 2 }, end]] };
    },
    cure: async (world, operator) => {
      await release(world, { ...guardedRef(world, operator), name: 'second' });
      await releaseGuarded(world, operator);
    },
    mayChange: () => RIGHTS,
  }),
];

export const contradicted = [...duties];
