import { type Context, type RuleResult, resultId } from '../context.ts';
import { departedGrant } from '../rights.ts';
import type { Held } from './held.ts';
import { goneNeeds, neededCreations } from './needs.ts';
import { lostDefinition, pausedBy } from './state.ts';
import type { Suspect } from './suspects.ts';

/** An obstacle that the owner meets later. A finding that contains `name` is about it already. */
interface Obstacle {
  name: string;
  text: string;
}

/**
 * Returns what holds the object once the owner acts again, in the order in which the owner meets it. `shown`: the
 * findings about what keeps it from acting now. `guards` refuse the removal of the finalizer.
 */
export function nextObstacles(
  context: Context,
  held: Held,
  owner: Suspect | undefined,
  shown: readonly RuleResult[],
  guards: readonly RuleResult[],
): string[] {
  if (context.now.forecast !== undefined) return [];
  const told = shown.flatMap((one) => [one.message, one.waitsForNamespace, ...one.evidence]);
  const ids = shown.flatMap((one) => [resultId(one), ...(one.waitsFor ?? []).map(({ id }) => id)]);
  const hidden = guards.filter((guard) => !ids.includes(resultId(guard)));
  const runs = shown.some(({ code }) => code === 'owner-failing');
  const obstacles = [
    ...(runs ? [] : refusingToAct(context, held, owner)),
    ...hidden.map(({ subject: { kind, name }, message }) => ({
      name,
      text: `${kind} ${name} ${message}`,
    })),
    ...lacking(context, held),
  ];
  return obstacles.flatMap(({ name, text }) => (told.join('\n').includes(name) ? [] : [text]));
}

/** Returns why an owner that does not run now would run and not act. */
function refusingToAct(context: Context, held: Held, owner: Suspect | undefined): Obstacle[] {
  const paused = pausedBy(context, held);
  const lost = lostDefinition(context, held);
  const binding = owner?.account && departedGrant(context, owner.account);
  const found: Obstacle[] = [];
  if (paused !== undefined) {
    const { object, by } = paused;
    const text = `its controller is configured to ignore ${object.kind} ${object.name}: ${by}`;
    found.push({ name: by, text });
  }
  if (lost !== undefined && lost.since === undefined) {
    const { type, name } = lost;
    const text = `${type.kind} ${name}, which defines ${held.type.kind}, no longer exists`;
    found.push({ name, text });
  }
  if (binding !== undefined) {
    const text = `RoleBinding ${binding}, which gave its controller permissions here, was deleted with this namespace`;
    found.push({ name: binding, text });
  }
  return found;
}

/** Returns what the owner needs and cannot get in a namespace that is being deleted. */
function lacking(context: Context, held: Held): Obstacle[] {
  return [
    ...goneNeeds(context, held).map(({ what, by }) => ({
      name: what,
      text: `its controller may need ${what} (${by}), which no longer exists`,
    })),
    ...neededCreations(context, held).map((what) => ({
      name: what,
      text: `its controller may have to create ${what} here, which a terminating namespace refuses`,
    })),
  ];
}
