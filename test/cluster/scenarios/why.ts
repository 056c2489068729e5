import { webhookRef } from '../admission.ts';
import type { Ref } from '../client.ts';
import { accountSubject, grant } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { type Operator, type OperatorOptions, operatorRules, READ } from './operator.ts';
import { guardedRef, owner, RIGHTS, restart, type Situation, situation } from './situation.ts';

/** The owner is known. Why does it not act? */

/** It may read the type, and change these objects of it. */
const named = (world: World, name: string): OperatorOptions => {
  const type = { apiGroups: [world.domain('example.com')], resources: ['widgets'] };
  return {
    rules: [
      { ...type, verbs: READ },
      { ...type, verbs: ['update', 'patch'], resourceNames: [name] },
    ],
  };
};

/** What an admin does who sees that a right is missing. */
async function grantAgain(world: World, operator: Operator): Promise<void> {
  const name = world.name('widget-writer');
  const subject = accountSubject(operator.namespace, operator.account);
  await world.createAll(grant({ name }, [subject], operatorRules(operator)));
}

/** It tells nobody, and goes on when the right is there again. */
const MAY_NOT = {
  behaviour: { tells: false },
  owner: { code: 'owner-failing', says: [/update|patch/] },
  cure: grantAgain,
  mayChange: () => RIGHTS,
} as const;

const rights: Scenario[] = [
  situation({
    ...MAY_NOT,
    id: 'S66-other-object',
    title: 'its right to change is about an object of another name',
    operator: (world) => named(world, 'cache'),
  }),
];

const MUTATING = 'MutatingWebhookConfiguration';

export const injector = (world: World): Ref => webhookRef(world, MUTATING, 'injector');

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

const told: Scenario[] = [
  paused('paused', 'an annotation tells the operator to leave the object alone', 'true', {
    owner: (_, operator) => [
      owner(operator, 'owner-not-acting', { says: [/paus/i], advises: [/again/] }),
    ],
  }),
];

export const why = [...rights, ...told];
