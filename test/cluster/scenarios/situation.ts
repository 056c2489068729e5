import type { JsonObject } from '../../../src/base/json.ts';
import type { FindingCode } from '../../../src/model/finding.ts';
import type { Ref } from '../client.ts';
import { apiVersionOf } from '../inventory.ts';
import { typeRef } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import {
  type OperatorBehaviour,
  type Operator as Process,
  startOperatorProcess,
} from '../servers/operator-process.ts';
import type { World } from '../world.ts';
import { FINALIZERS, objectFinalizer, ownerMissing, ref } from './links.ts';
import {
  createGuarded,
  install,
  type Operator,
  type OperatorOptions,
  operatorOf,
  runPods,
  start,
  workloadRef,
} from './operator.ts';

type Step = (world: World, operator: Operator) => Promise<unknown>;

/**
 * Most hangs are one story: an operator lives in a namespace of its own, has set its finalizer on an
 * object of the namespace under test, and does not remove it. This tells it with one fact changed.
 */
export interface Situation extends Pick<Scenario, 'id' | 'title' | 'beyondCommands'> {
  /** Whose finalizer it is; unless given, a Deployment in `widget-system`. */
  operator?: OperatorOptions;
  /** Unless given, an operator of which the gate says that it runs hangs. */
  behaviour?: OperatorBehaviour;
  /** No node takes its pods. */
  unscheduled?: true;
  /** What keeps it is told in the status of the object; the gate looks after that. */
  complains?: true;
  /** Others that are installed too, with rights on the type or without. They are innocent. */
  bystanders?: readonly OperatorOptions[];
  /** What happens after the finalizer was set, before the namespace is deleted. */
  afterwards?: Step;
  /** What happens when it hangs. */
  later?: Step;
  /** How the chain goes on behind the object: its operator in this state. */
  owner: FindingCode | Omit<Link, 'subject'>;
  /** Chains beside that one. */
  beside?: readonly (readonly Link[])[];
}

/** The object in the namespace under test that the finalizer holds. */
export const GUARDED = 'db';

export function situation(told: Situation): Scenario {
  const { id, title, bystanders = [], owner } = told;
  const link = typeof owner === 'string' ? { code: owner } : owner;
  // An operator that runs and would work removes its finalizer.
  const behaviour = told.behaviour ?? (link.code === 'owner-running' ? { hangs: true } : undefined);
  const theOperator = (world: World): Operator => operatorOf(world, away(told.operator));
  return {
    ...{ id, title },
    ...(told.beyondCommands === undefined ? {} : { beyondCommands: told.beyondCommands }),
    setUp: async (world) => {
      await world.createNamespace();
      const operator = await installed(world, away(told.operator));
      for (const other of bystanders) {
        await runPods(world, await installed(world, { type: false, ...away(other) }));
      }
      if (told.unscheduled) await startOperatorProcess(world, operator, behaviour);
      else await start(world, operator, behaviour);
      await createGuarded(world, operator, GUARDED);
      await told.afterwards?.(world, operator);
    },
    settle: async (world) => {
      await settledByFinalizer(world);
      await told.later?.(world, theOperator(world));
      if (!told.complains) return;
      await world.client.waitFor(guardedRef(world, theOperator(world)), 'complains', (object) =>
        JSON.stringify(object?.['status'] ?? '').includes('CleanupFailed'),
      );
    },
    expect: (world) => {
      const operator = theOperator(world);
      const { finalizer } = operator;
      const behind = { ...link, subject: workloadRef(operator), finalizer };
      return {
        outcome: 'stuck',
        chains: [[heldBy(world, operator), behind], ...(told.beside ?? [])],
        never: bystanders.map((one) => {
          const { kind, namespace = '', name } = workloadRef(operatorOf(world, away(one)));
          return { kind, namespace, name };
        }),
      };
    },
  };
}

async function installed(world: World, options: OperatorOptions): Promise<Operator> {
  await world.ensureNamespace(options.namespace ?? world.namespace);
  return install(world, options);
}

function away(options: OperatorOptions = {}): OperatorOptions {
  return { scope: 'cluster', namespace: 'widget-system', ...options };
}

export function guardedRef(world: World, operator: Process, name = GUARDED): Ref {
  return ref(apiVersionOf(operator), operator.kind, world.namespace, name);
}

export function heldBy(world: World, operator: Operator): Link {
  return objectFinalizer(guardedRef(world, operator), operator.finalizer);
}

/** The type of the object, which nobody looks after any more. */
export function nobodyLeft({ group, kind, finalizer }: Operator): Link {
  return ownerMissing(typeRef(group, kind), finalizer);
}

export function settledByFinalizer(world: World): Promise<unknown> {
  return world.settled({ [FINALIZERS]: ['True', / in \d+ resource instances/] });
}

/** This manager has written the status of the object. */
export const writesStatus =
  (status: JsonObject, fieldManager: string): Step =>
  (world, operator) =>
    world.client.patchStatus(guardedRef(world, operator), status, { fieldManager });
