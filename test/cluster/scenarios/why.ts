import type { Scenario } from '../scenario.ts';
import { guardedRef, owner, restart, type Situation, situation } from './situation.ts';

/** The owner is known. Why does it not act? */

/** Annotations that tell operators to leave an object alone. */
const paused = (id: string, title: string, value: string, more: Pick<Situation, 'owner'>) =>
  situation({
    id,
    title,
    behaviour: {
      hangs: value === 'false',
      tells: false,
      cleanUp: ({ metadata }) =>
        JSON.stringify(metadata['annotations'] ?? {}).includes('"true"') ? 'paused' : undefined,
    },
    afterwards: (world, operator) =>
      world.client.patch(guardedRef(world, operator), {
        metadata: { annotations: { [`${operator.group}/paused`]: value } },
      }),
    ...more,
    cure: async (world, operator) => {
      await world.client.patch(guardedRef(world, operator), { metadata: { annotations: null } });
      if (value === 'false') await restart(world, operator);
    },
  });

export const why: Scenario[] = [
  paused('paused', 'an annotation tells the operator to leave the object alone', 'true', {
    owner: (_, operator) => [
      owner(operator, 'owner-not-acting', { says: [/paus/i], advises: [/again/] }),
    ],
  }),
];
