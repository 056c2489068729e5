import { identitySubjects } from '../identities.ts';
import { configMap, grant, RBAC } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { FINALIZERS, ref } from './links.ts';

/** What the gate may not read is "not inspected"; it is never taken for empty. */

/** Keeps the rights until the gate has begun to wait. */
const UNTIL_WATCHED = 'tests.example.com/until-the-gate-looks';
const FINALIZER = 'some.random/finalizer';

const settledByFinalizer = (world: World): Promise<unknown> =>
  world.settled({ [FINALIZERS]: ['True', /some\.random\/finalizer in 1 resource instances/] });

const everything: Scenario = {
  id: 'forbidden-all',
  title: 'may get the namespace and nothing else',
  identity: 'teardown-waiter',
  setUp: async (world) => {
    await world.createNamespace();
    await world.create(configMap(world.namespace, 'precious', { finalizers: [FINALIZER] }));
  },
  settle: settledByFinalizer,
  expect: () => ({ outcome: 'inconclusive', notInspected: [/pods/, /configmaps/, /./] }),
};

/** The Role that lets the gate look is deleted with everything else in the namespace. */
const s51: Scenario = {
  id: 'S51',
  title: 'the RoleBinding of the identity was in the namespace: access vanishes while waiting',
  identity: 'teardown-guest',
  setUp: async (world) => {
    const { namespace } = world;
    await world.createNamespace();
    await world.createAll([
      configMap(namespace, 'precious', { finalizers: [FINALIZER] }),
      ...grant(
        { namespace, name: 'teardown', finalizers: [UNTIL_WATCHED] },
        identitySubjects('teardown-guest'),
        [
          { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] },
          { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list'] },
        ],
      ),
    ]);
  },
  settle: (world) => world.terminating(world.namespaceRef),
  meanwhile: async (world, gate) => {
    await gate.says(new RegExp(`${world.namespace}: terminating`));
    for (const kind of ['RoleBinding', 'Role']) {
      const held = ref(`${RBAC}/v1`, kind, world.namespace, 'teardown');
      await world.client.patch(held, { metadata: { finalizers: null } });
    }
  },
  inputs: { timeout: '20s' },
  expect: () => ({ outcome: 'inconclusive', notInspected: [/./] }),
};

export const access = [everything, s51];
