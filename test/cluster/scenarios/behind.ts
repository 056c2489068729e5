import type { JsonObject } from '../../../src/base/json.ts';
import { conditionsOf } from '../../../src/model/facts/metadata.ts';
import type { Ref } from '../client.ts';
import type { Scenario } from '../scenario.ts';
import type { OperatorBehaviour } from '../servers/operator-process.ts';
import { namespaceRef, type World } from '../world.ts';
import { createPart, parts } from './chains.ts';
import { type OperatorOptions, operatorOf } from './operator.ts';
import {
  guardedRef,
  heldBy,
  type Situation,
  scaleUp,
  settledByFinalizer,
  situation,
} from './situation.ts';

/** Objects that stand for another namespace, which is terminating, and objects that only name one. */

/** Another namespace, held by a Part whose controller is scaled to zero. */
const other = (world: World, name = world.name('child')): Ref => namespaceRef(name);

type Stands = Pick<Situation, 'own' | 'behaviour' | 'spec' | 'owner' | 'complains'> & {
  /** Its name, where the object has the same one. */
  name?: string;
  metadata?: (world: World) => JsonObject;
  /** Of the object, which names the other namespace in its spec, or in its status. */
  naming?: (name: string) => JsonObject;
  isInStatus?: true;
  kind?: string;
};

const beside = (id: string, title: string, given: Stands): Scenario => {
  const { name: own, metadata, naming, isInStatus, kind = 'Environment', ...rest } = given;
  const nameOf = (world: World): string => own ?? world.name('child');
  return situation({
    id,
    title,
    operator: (world): OperatorOptions => ({
      kind,
      group: 'tenancy.example.com',
      rules: [
        { apiGroups: [world.domain('tenancy.example.com')], resources: ['*'], verbs: ['*'] },
        { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] },
      ],
    }),
    afterwards: async (world, operator) => {
      const name = nameOf(world);
      await world.createNamespace(name, metadata?.(world));
      await createPart(world, name);
      const guarded = guardedRef(world, operator);
      if (naming && isInStatus) {
        await world.client.patchStatus(guarded, naming(name), { fieldManager: operator.manager });
      } else if (naming) await world.client.patch(guarded, { spec: naming(name) });
      await world.client.delete(other(world, name));
    },
    settle: async (world) => {
      await settledByFinalizer(world);
      await world.client.waitFor(other(world, nameOf(world)), 'has conditions', (found) =>
        conditionsOf(found).some(({ type }) => type === 'NamespaceFinalizersRemaining'),
      );
    },
    ...(given.owner === undefined && {
      expect: (world, operator) => ({
        chains: [
          [heldBy(world, operator), { code: 'unexplained', subject: namespaceRef(nameOf(world)) }],
        ],
      }),
      cure: (world) => scaleUp(world, operatorOf(world, parts(world))),
    }),
    ...rest,
  });
};

/** The controller waits until the namespace is deleted that the object stands for. */
const waitsFor = (nameOf: (spec: JsonObject, name: string) => string): OperatorBehaviour => ({
  tells: false,
  cleanUp: async (object, client) => {
    const told = { ...(object['spec'] as JsonObject), ...(object['status'] as JsonObject) };
    const name = nameOf(told, object.metadata.name);
    const found = await client.find(namespaceRef(name));
    return found === undefined ? undefined : `waiting for namespace ${name} to be deleted`;
  },
});
const target = ({ target: name }: JsonObject): string => `${name}`;
const naming = (name: string): JsonObject => ({ target: name });

export const behind: readonly Scenario[] = [
  beside('behind-status', 'a status names the namespace that is waited for', {
    naming,
    behaviour: { ...waitsFor(target), tells: true },
    complains: true,
  }),
];
