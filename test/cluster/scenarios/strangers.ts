import { createPolicy, endIsRefused, refusesEnd } from '../admission.ts';
import type { Scenario } from '../scenario.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { stuck } from './links.ts';

const emptied = (world: World): Promise<unknown> =>
  waitUntil(
    'it to be empty',
    async () => (await world.client.list('v1', 'ServiceAccount', world.namespace)).length === 0,
  );

export const strangers: Scenario[] = [
  {
    id: 'finalize-denied',
    title: 'a policy denies the end of the namespace',
    setUp: async (world) => {
      await world.createNamespace();
      await createPolicy(world, {
        name: 'keep',
        operations: ['UPDATE'],
        apiGroup: '',
        resource: 'namespaces/finalize',
        expression: 'false',
        message: 'namespaces are kept',
      });
      await refusesEnd(world);
    },
    settle: async (world) => {
      await emptied(world);
      await endIsRefused(world);
    },
    expect: (world) =>
      stuck([
        {
          code: ['admission-denied', 'unexplained'],
          subject: 'any',
          says: [new RegExp(world.name('keep'))],
        },
      ]),
    cure: (world) =>
      world.client.delete({
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingAdmissionPolicyBinding',
        name: world.name('keep'),
      }),
    beyondCommands: 'only a person knows why the policy wants it to stay',
  },
];
