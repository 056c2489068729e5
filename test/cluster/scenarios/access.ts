import { identitySubjects } from '../identities.ts';
import { configMap, customType, secret } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { configMapRef, FINALIZERS, objectFinalizer, ownerUnknown } from './links.ts';

/** What the gate may not read is "not inspected"; it is never taken for empty. */

const FINALIZER = 'some.random/finalizer';

/** With a type of its own that `teardown-partial` may not list. */
async function createNamespaceAndType(world: World): Promise<void> {
  await world.createNamespace();
  await world.createType(customType({ group: 'example.com', kind: 'Widget' }));
}

const settledByFinalizer = (world: World): Promise<unknown> =>
  world.settled({ [FINALIZERS]: ['True', /some\.random\/finalizer in 1 resource instances/] });

/** The ConfigMap explains the hang; Secrets and Widgets might hold it as well, nobody knows. */
const partly: Scenario = {
  id: 'forbidden-partly',
  title: 'may not list Secrets and Widgets; a ConfigMap holds the namespace',
  own: true,
  identity: 'teardown-partial',
  setUp: async (world) => {
    await createNamespaceAndType(world);
    await world.create(configMap(world.namespace, 'precious', { finalizers: [FINALIZER] }));
  },
  settle: settledByFinalizer,
  expect: (world) => {
    const held = configMapRef(world.namespace, 'precious');
    return {
      outcome: 'stuck',
      chains: [[objectFinalizer(held, FINALIZER), ownerUnknown(held, FINALIZER)]],
      notInspected: [/secrets/, /widgets\.example\.com/],
    };
  },
};

const holder: Scenario = {
  id: 'forbidden-holder',
  title: 'may not list Secrets and Widgets; all that remains is a Secret',
  own: true,
  identity: 'teardown-partial',
  setUp: async (world) => {
    await createNamespaceAndType(world);
    await world.create(secret(world.namespace, 'precious', { finalizers: [FINALIZER] }));
  },
  settle: settledByFinalizer,
  expect: () => ({
    outcome: 'inconclusive',
    notInspected: [/secrets/, /widgets\.example\.com/],
  }),
};

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
    const rbac = 'rbac.authorization.k8s.io';
    await world.createNamespace();
    await world.createAll([
      configMap(namespace, 'precious', { finalizers: [FINALIZER] }),
      {
        apiVersion: `${rbac}/v1`,
        kind: 'Role',
        metadata: { namespace, name: 'teardown' },
        rules: [
          { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] },
          { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list'] },
        ],
      },
      {
        apiVersion: `${rbac}/v1`,
        kind: 'RoleBinding',
        metadata: { namespace, name: 'teardown' },
        roleRef: { apiGroup: rbac, kind: 'Role', name: 'teardown' },
        subjects: identitySubjects('teardown-guest'),
      },
    ]);
  },
  // The controller starts 5 s after the DELETE: until then the gate can see the namespace.
  settle: (world) => world.terminating(world.namespaceRef),
  inputs: { timeout: '20s' },
  expect: () => ({ outcome: 'inconclusive', notInspected: [/./] }),
};

export const access = [partly, holder, everything, s51];
