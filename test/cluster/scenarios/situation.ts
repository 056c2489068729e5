import type { JsonObject } from '../../../src/base/json.ts';
import type { FindingCode } from '../../../src/model/finding.ts';
import type { Ref } from '../client.ts';
import { apiVersionOf } from '../inventory.ts';
import { typeRef } from '../objects.ts';
import type { Expectation, Link, Scenario } from '../scenario.ts';
import {
  type OperatorBehaviour,
  type Operator as Process,
  readyPods,
  startOperatorProcess,
} from '../servers/operator-process.ts';
import type { World } from '../world.ts';
import { FINALIZERS, objectFinalizer, ownerMissing, ownerUnknown, ref } from './links.ts';
import {
  createGuarded,
  FULL,
  install,
  type Operator,
  type OperatorOptions,
  operatorOf,
  rule,
  runPods,
  start,
  workloadRef,
} from './operator.ts';

export type Step = (world: World, operator: Operator) => Promise<unknown>;

/**
 * Most hangs are one story: an operator lives in a namespace of its own, has set its finalizer on an
 * object of the namespace under test, and does not remove it. This tells it with one fact changed.
 */
export interface Situation
  extends Omit<Scenario, 'setUp' | 'settle' | 'expect' | 'cure' | 'mayChange'> {
  /** Whose finalizer it is. `namespace` without the suffix of the run; unless given, `widget-system`. */
  operator?: OperatorOptions | ((world: World) => OperatorOptions);
  /** Unless given, an operator of which the gate says that it runs hangs. */
  behaviour?: OperatorBehaviour;
  /** No node takes its pods. */
  unscheduled?: true;
  /** What keeps it is told in the status of the object; the gate looks after that. */
  complains?: true;
  /** Others that are installed too, with rights on the type or without. They are innocent. */
  bystanders?: readonly OperatorOptions[] | ((world: World) => readonly OperatorOptions[]);
  /** Of the object. */
  spec?: JsonObject;
  /** What is there before any of them. */
  before?: Step;
  /** What happens after the finalizer was set, before the namespace is deleted. */
  afterwards?: Step;
  settle?: Step;
  /** How the chain goes on behind the object: its operator in this state, or something else. */
  owner?: FindingCode | Omit<Link, 'subject'> | ((world: World, operator: Operator) => Link[]);
  expect?: (world: World, operator: Operator) => Partial<Expectation>;
  /** Unless given: who hangs is restarted, who sleeps is scaled up, and else the finalizer is removed. */
  cure?: Step;
  mayChange?: (world: World, operator: Operator) => readonly Partial<Ref>[];
}

/** The object in the namespace under test that the finalizer holds. */
export const GUARDED = 'db';
export const HANGS = { hangs: true };

export function situation(told: Situation): Scenario {
  const { operator: options, bystanders, before, afterwards, owner, ...rest } = told;
  // An operator that runs and would work removes its finalizer.
  const isRunning = typeof owner !== 'function' && linkCode(owner) === 'owner-running';
  const behaviour = told.behaviour ?? (isRunning ? HANGS : undefined);
  const { unscheduled, complains } = told;
  const ours = (world: World): OperatorOptions =>
    away(world, typeof options === 'function' ? options(world) : options);
  const theOperator = (world: World): Operator => operatorOf(world, ours(world));
  const others = (world: World): OperatorOptions[] =>
    (typeof bystanders === 'function' ? bystanders(world) : (bystanders ?? [])).map((one) =>
      away(world, one),
    );
  return {
    // Programs of the same name in other scenarios could have been the owner.
    ...(owner === 'owner-missing' ? { own: true } : {}),
    ...rest,
    setUp: async (world) => {
      await world.createNamespace();
      await before?.(world, theOperator(world));
      const operator = await installed(world, ours(world));
      for (const other of others(world)) {
        await runPods(world, await installed(world, { type: false, ...other }));
      }
      if (unscheduled) await startOperatorProcess(world, operator, behaviour);
      else await start(world, operator, behaviour);
      await createGuarded(world, operator, GUARDED, world.namespace, told.spec);
      await afterwards?.(world, operator);
    },
    settle: async (world) => {
      await (told.settle?.(world, theOperator(world)) ?? settledByFinalizer(world));
      if (!complains) return;
      const guarded = guardedRef(world, theOperator(world));
      await world.client.waitFor(guarded, 'complains', (object) =>
        JSON.stringify(object?.['status'] ?? '').includes('CleanupFailed'),
      );
    },
    expect: (world) => {
      const operator = theOperator(world);
      const innocent = others(world).map((one) => workloadRef(operatorOf(world, one)));
      const chain =
        typeof owner === 'function' ? owner(world, operator) : linkTo(owner, world, operator);
      const more = told.expect?.(world, operator) ?? {};
      return {
        outcome: 'stuck',
        chains: [[heldBy(world, operator), ...chain]],
        ...more,
        never: [
          ...innocent.map(({ kind, namespace = '', name }) => ({ kind, namespace, name })),
          ...(more.never ?? []),
        ],
      };
    },
    cure: (world) => (told.cure ?? usualCure(behaviour, ours(world)))(world, theOperator(world)),
    mayChange: (world) => told.mayChange?.(world, theOperator(world)) ?? [],
  };
}

async function installed(world: World, options: OperatorOptions): Promise<Operator> {
  await world.ensureNamespace(options.namespace ?? world.namespace);
  return install(world, options);
}

function away(world: World, options: OperatorOptions = {}): OperatorOptions {
  const namespace = world.name(options.namespace ?? 'widget-system');
  return { scope: 'cluster', ...options, namespace };
}

function usualCure(behaviour: OperatorBehaviour | undefined, { replicas }: OperatorOptions): Step {
  if (behaviour?.hangs) return restart;
  return replicas === 0 ? scaleUp : releaseGuarded;
}

const linkCode = (told: FindingCode | Omit<Link, 'subject'> | undefined) =>
  typeof told === 'object' ? told.code : told;

function linkTo(
  told: FindingCode | Omit<Link, 'subject'> | undefined,
  world: World,
  operator: Operator,
): Link[] {
  if (told === undefined) return [];
  if (told === 'owner-missing') return [nobodyLeft(operator)];
  if (told === 'owner-unknown') return [nobodyKnown(world, operator)];
  const { code, ...words } = typeof told === 'string' ? { code: told } : told;
  return [owner(operator, code, words)];
}

export function guardedRef(world: World, operator: Process, name = GUARDED): Ref {
  return ref(apiVersionOf(operator), operator.kind, world.namespace, name);
}

export function heldBy(world: World, operator: Operator): Link {
  return objectFinalizer(guardedRef(world, operator), operator.finalizer);
}

/** The workload of the operator, in this state. */
export function owner(
  operator: Operator,
  code: Link['code'],
  words: Pick<Link, 'says' | 'advises' | 'certainty'> = {},
): Link {
  return { code, subject: workloadRef(operator), finalizer: operator.finalizer, ...words };
}

/** The type of the object, which nobody looks after any more. */
export function nobodyLeft({ group, kind, finalizer }: Operator): Link {
  return ownerMissing(typeRef(group, kind), finalizer);
}

export function nobodyKnown(world: World, operator: Operator): Link {
  return ownerUnknown(guardedRef(world, operator), operator.finalizer);
}

export function settledByFinalizer(world: World): Promise<unknown> {
  return world.settled({ [FINALIZERS]: ['True', / in \d+ resource instances/] });
}

/** This manager has written the status of the object. */
export const writesStatus =
  (status: JsonObject, fieldManager: string): Step =>
  (world, operator) =>
    world.client.patchStatus(guardedRef(world, operator), status, { fieldManager });

/** Holds pods until they are drained. */
export const keeper = (world: World): OperatorOptions => ({
  group: '',
  ownGroup: false,
  kind: 'Pod',
  type: false,
  name: world.name('pod-keeper'),
  namespace: 'platform',
  finalizer: `${world.domain('keep.example.com')}/drain`,
  rules: [rule('', ['pods'], FULL)],
});

/** What some remedy has to say. */
export const advises =
  (words: RegExp): NonNullable<Expectation['also']> =>
  ({ namespace }) => {
    const told = namespace.findings.flatMap(({ remedies }) => remedies.map(({ text }) => text));
    if (!told.some((text) => words.test(text))) throw new Error(`advises only ${told.join(' | ')}`);
  };

/** What no remedy may say. */
export const advisesNot =
  (words: RegExp): NonNullable<Expectation['also']> =>
  ({ namespace }) => {
    const wrong = namespace.findings
      .flatMap(({ remedies }) => remedies.map(({ text, command }) => `${text} ${command ?? ''}`))
      .filter((text) => words.test(text));
    if (wrong.length > 0) throw new Error(`advises what does not help: ${wrong.join(' | ')}`);
  };

/** What a command may touch that gives somebody a right again. */
export const RIGHTS = ['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'].map((kind) => ({
  kind,
}));

/** Cures. */

export async function restart({ client }: World, operator: Operator): Promise<void> {
  const bare = operator.workload === 'Pod' ? await client.get(workloadRef(operator)) : undefined;
  for (const { metadata } of await readyPods(client, operator)) {
    await client.delete(ref('v1', 'Pod', operator.namespace, metadata.name));
  }
  if (bare === undefined) return;
  const { namespace, name, labels } = bare.metadata;
  await client.waitFor(workloadRef(operator), 'is gone', (found) => found === undefined);
  const { nodeName: _, ...spec } = bare['spec'] as JsonObject;
  await client.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: namespace ?? '', name, labels: labels ?? {} },
    spec,
  });
}

export async function scaleUp({ client }: World, operator: Operator): Promise<void> {
  const suspended = operator.workload === 'Job' || operator.workload === 'CronJob';
  const spec = suspended ? { suspend: false } : { replicas: 1 };
  await client.patch(workloadRef(operator), { spec });
}

/** What a person does who knows that nobody else will. */
export async function release({ client }: World, held: Ref): Promise<void> {
  await client.patch(held, { metadata: { finalizers: null } });
}

export async function releaseGuarded(world: World, operator: Operator): Promise<void> {
  await release(world, guardedRef(world, operator));
}
