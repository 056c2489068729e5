import type { JsonObject } from '../../../src/base/json.ts';
import type { Ref } from '../client.ts';
import { apiVersionOf } from '../inventory.ts';
import { customObject } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import type { OperatorBehaviour } from '../servers/operator-process.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ref } from './links.ts';
import { install, type Operator, type OperatorOptions, operatorOf, start } from './operator.ts';
import {
  GUARDED,
  guardedRef,
  heldBy,
  owner,
  release,
  type Situation,
  scaleUp,
  settledByFinalizer,
  situation,
} from './situation.ts';

/** Controllers that only wait for something else in the namespace, and what they wait for. */

export const parts = (world: World): OperatorOptions => ({
  group: 'parts.example.org',
  kind: 'Part',
  namespace: world.name('part-system'),
  scope: 'cluster',
  replicas: 0,
});

const partOf = (world: World, namespace = world.namespace): Ref => {
  const { group, version } = operatorOf(world, parts(world));
  return ref(`${group}/${version}`, 'Part', namespace, `${GUARDED}-data`);
};

/** A held object beside the other, of a controller that is scaled to zero unless `more` says otherwise. */
export async function createPart(
  world: World,
  place = world.namespace,
  more: OperatorOptions = {},
  behaviour: OperatorBehaviour = {},
): Promise<void> {
  await world.createNamespace(world.name('part-system'));
  const operator = await install(world, { ...parts(world), ...more });
  const { apiVersion, kind, name } = partOf(world);
  const alsoAfter = [{ apiVersion, kind, namespace: place }];
  await start(world, operator, { alsoAfter, ...behaviour });
  const metadata = { finalizers: [operator.finalizer] };
  const part = customObject(apiVersion, kind, place, name, metadata);
  await world.create(part, { fieldManager: operator.manager });
}

const asleep = (world: World): Link =>
  owner(operatorOf(world, parts(world)), 'owner-scaled-to-zero');
export const partChain = (world: World, namespace?: string): Link[] => [
  objectFinalizer(partOf(world, namespace), operatorOf(world, parts(world)).finalizer),
  asleep(world),
];

/** As long as the part is there, the controller says these words and waits. */
const saysOfPart = (words: string): OperatorBehaviour => ({
  cleanUp: async ({ metadata }, client, { group }) => {
    const version = `${group.replace('example.com', 'parts.example.org')}/v1`;
    const left = await client.list(version, 'Part', metadata.namespace);
    return left.length > 0 ? words : undefined;
  },
});

const sibling: Situation = {
  id: 'chain-sibling',
  title: 'a status names the held sibling that its controller waits for',
  operator: (world) => ({
    rules: [
      { apiGroups: [world.domain('example.com')], resources: ['*'], verbs: ['*'] },
      { apiGroups: [world.domain('parts.example.org')], resources: ['*'], verbs: ['list'] },
    ],
  }),
  behaviour: saysOfPart(`Part ${GUARDED}-data still exists`),
  complains: true,
  afterwards: (world) => createPart(world),
  expect: (world, operator) => ({
    chains: [[heldBy(world, operator), ...partChain(world)], partChain(world)],
  }),
  cure: (world) => scaleUp(world, operatorOf(world, parts(world))),
};

/** Both controllers run, and each waits until the object of the other is deleted. */
const circle: Situation = {
  ...sibling,
  id: 'chain-circle',
  title: 'two objects of two controllers that run, which say that they wait for each other',
  afterwards: (world) => {
    const [own, others] = [world.domain('parts.example.org'), world.domain('example.com')];
    const rules = [{ apiGroups: [own, others], resources: ['*'], verbs: ['*'] }];
    return createPart(
      world,
      world.namespace,
      { replicas: 1, rules },
      {
        cleanUp: async ({ metadata }, client) => {
          const left = await client.list(`${others}/v1`, 'Widget', metadata.namespace);
          return left.length > 0 ? `Widget ${GUARDED} still uses it` : undefined;
        },
      },
    );
  },
  expect: (world, operator) => {
    const [part] = partChain(world) as [Link];
    const held = { ...part, advises: [/Remove this one finalizer/] };
    return { chains: [[heldBy(world, operator), held], [held]], deadlock: true };
  },
  cure: (world) => release(world, partOf(world)),
};

const links = (world: World): OperatorOptions => ({
  group: 'links.example.org',
  kind: 'Link',
  name: 'link-operator',
  namespace: world.name('link-system'),
  scope: 'cluster',
  type: { scope: 'Cluster' },
});
const ends = (world: World): OperatorOptions => ({
  group: 'ends.example.org',
  kind: 'End',
  name: 'end-operator',
  namespace: world.name('end-system'),
  scope: 'cluster',
  replicas: 0,
  type: { scope: 'Cluster' },
});

const LENGTH = 5;

interface Chained {
  object: Ref;
  operator: Operator;
}

/** The objects of the chain outside of the namespace, the last one first. */
function chainOf(world: World): Chained[] {
  const last = operatorOf(world, ends(world));
  const link = operatorOf(world, links(world));
  const named = (operator: Operator, name: string) => ({
    object: { apiVersion: apiVersionOf(operator), kind: operator.kind, name: world.name(name) },
    operator,
  });
  const middle = Array.from({ length: LENGTH }, (_, index) => named(link, `link-${index}`));
  return [named(last, 'end'), ...middle];
}

/** The controllers of the links, which hangs, and of the end. */
async function startChain(world: World): Promise<void> {
  await world.createNamespace(world.name('link-system'));
  await world.createNamespace(world.name('end-system'));
  await start(world, await install(world, links(world)), { hangs: true });
  await start(world, await install(world, ends(world)));
}

const long: Situation = {
  id: 'chain-long',
  title: 'a chain of six objects outside of the namespace, each held and named by the one before',
  behaviour: { hangs: true },
  afterwards: async (world, operator) => {
    await startChain(world);
    let next: Ref | undefined;
    for (const { object, operator: whose } of chainOf(world)) {
      const { apiVersion, kind, name } = object;
      const metadata = { name, finalizers: [whose.finalizer] };
      await world.create({ apiVersion, kind, metadata }, { fieldManager: whose.manager });
      if (next !== undefined) {
        const status = { nextRef: { ...next } };
        await world.client.patchStatus(object, status, { fieldManager: whose.manager });
      }
      next = object;
    }
    const status = { nextRef: { ...next } as JsonObject };
    await world.client.patchStatus(guardedRef(world, operator), status, {
      fieldManager: operator.manager,
    });
    for (const { object } of chainOf(world)) await world.client.delete(object);
  },
  settle: settledByFinalizer,
  expect: (world, operator) => ({
    chains: [
      [
        heldBy(world, operator),
        ...chainOf(world)
          .toReversed()
          .map(({ object, operator: whose }) => objectFinalizer(object, whose.finalizer)),
        owner(operatorOf(world, ends(world)), 'owner-scaled-to-zero'),
      ],
    ],
  }),
  cure: async (world, operator) => {
    for (const { object } of chainOf(world)) await release(world, object);
    await release(world, guardedRef(world, operator));
  },
  beyondCommands: 'the controllers between hang',
};

export const chains: readonly Scenario[] = [sibling, circle, long].map(situation);
