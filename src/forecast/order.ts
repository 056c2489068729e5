import { actorText, isAlive } from '../diagnose/actors.ts';
import { closedWebhooks, realRequest } from '../diagnose/admission/guards.ts';
import { kubectl, nameArgs } from '../diagnose/commands.ts';
import {
  type Context,
  contextOf,
  conversionsOf,
  countsOf,
  extensionApis,
  isBuiltIn,
  itemsIn,
  listWords,
  servedType,
  serviceText,
  willBeDeleted,
} from '../diagnose/context.ts';
import { heldObjects } from '../diagnose/owner/finalizers.ts';
import { type Held, isOfControllerManager } from '../diagnose/owner/held.ts';
import { needsOfOwner } from '../diagnose/owner/needs.ts';
import { isGitOps, rankOf, reachesOut } from '../diagnose/owner/reach.ts';
import { findOwner } from '../diagnose/owner/verdict.ts';
import { isSameVersion } from '../diagnose/rules/apis.ts';
import { PROTECTION } from '../diagnose/waits.ts';
import { typeName } from '../model/facts/metadata.ts';
import type { OrderEntry } from '../model/result.ts';
import type { ObjectFacts, ResourceType, Snapshot, TypeContent } from '../model/snapshot.ts';
import { predict } from './predict.ts';

/** Objects of one type that have to be deleted before the namespace. */
export interface OrderStep {
  type: ResourceType;
  /** Reports whether the step deletes this object of the type. */
  matches: (object: ObjectFacts) => boolean;
  names: string[];
  /** Whether all objects of the type in the namespace may be deleted. */
  isWhole: boolean;
  /** Whether other objects may need these: their controller runs with them, or a finalizer protects them. */
  isLast?: boolean;
  why: string;
  /** Steps with the same position are deleted together, lower ones first. */
  place: number;
}

type Reason = Omit<OrderStep, 'place'>;

/**
 * Returns the objects that need a running controller to be deleted, and would lose it with the namespace: their
 * controller runs in the namespace or needs something in it. Objects that created them are deleted before them.
 */
export function orderOf(now: Snapshot): OrderStep[] {
  const { steps, left } = judgedSteps(now);
  return steps.filter(({ type }) => !left.has(typeName(type)));
}

/** Returns the commands that an order leaves to a person, since a controller may then delete elsewhere as well. */
export function commandsElsewhere(now: Snapshot): OrderEntry[] {
  const { steps, left } = judgedSteps(now);
  const why =
    'their controller, or that of objects that they own, then deletes what it deployed, also outside of this namespace';
  return steps
    .filter(({ type }) => left.has(typeName(type)))
    .map((step) => ({ why, command: orderCommand(now.namespace.name, step), isByHand: true }));
}

/** Returns all steps, and the names of the types that are left to a person. */
function judgedSteps(now: Snapshot): { steps: OrderStep[]; left: ReadonlySet<string> } {
  const context = contextOf(predict(now));
  const present = (context.now.forecast?.present.content ?? []).filter(
    ({ read }) => read.ok && read.value.total > 0,
  );
  const counts = countsOf({ content: present });
  const dependents = heldObjects(context).flatMap((held) => {
    const why = dependencyOnNamespace(context, held);
    return why === undefined ? [] : [{ ...held, why }];
  });
  const guarded = present.flatMap((content) => guardedType(context, content));
  if (guarded.length + dependents.length === 0) return { steps: [], left: new Set() };
  const gitOps = present.map(({ type }) => type).filter(isGitOps);
  const known = [
    ...dependents.flatMap(({ objects }) => objects),
    ...counts.flatMap((count) => count.guarded.flatMap(({ examples }) => examples)),
    ...counts.flatMap(({ sample }) => sample ?? []),
  ];
  const held = dependents.map(({ type, finalizer, objects, count, why }): Reason => {
    const all = counts.find((one) => typeName(one.type) === typeName(type))?.total ?? 0;
    return {
      ...{ type, why, names: objects.map(({ name }) => name) },
      matches: ({ finalizers }) => finalizers.includes(finalizer),
      isLast: isBuiltIn(type.group) || PROTECTION.test(finalizer),
      // The other objects of a built-in type, such as Secrets, may be what the controller runs with.
      isWhole: count >= all && !isBuiltIn(type.group),
    };
  });
  const heldUids = new Set(dependents.flatMap(({ objects }) => objects.map(({ uid }) => uid)));
  const makers = ownersOf(known, heldUids).filter(
    ({ controller, uid }) => controller && !heldUids.has(uid),
  );
  const parents = [...Map.groupBy(makers, (maker) => servedType(context, maker))].flatMap(
    ([type, owners]): Reason[] =>
      type?.namespaced !== true
        ? []
        : [
            {
              ...{ type, names: owners.map(({ name }) => name), isWhole: false },
              matches: ({ uid }) => owners.some((owner) => owner.uid === uid),
              why: 'they created objects that are deleted first, and would create them again',
            },
          ],
  );
  const again = gitOps.map((type) => allOf(type, 'they would create again what is deleted'));
  const reasons = Map.groupBy([...again, ...parents, ...guarded, ...held], ({ type }) =>
    typeName(type),
  );
  const reaching = dependents.filter((one) => reachesOut(context, one));
  const reachingUids = new Set(reaching.flatMap(({ objects }) => objects.map(({ uid }) => uid)));
  const left = [
    ...reaching.map(({ type }) => type),
    // An owner takes what it owns with it.
    ...ownersOf(known, reachingUids).flatMap((owner) => servedType(context, owner) ?? []),
    ...(reaching.some(({ type }) => isGitOps(type)) ? gitOps : []),
  ];
  const steps = inDeletionOrder(context, Array.from(reasons.values(), joined), known);
  return { steps, left: new Set(left.map(typeName)) };
}

function allOf(type: ResourceType, why: string): Reason {
  return { type, matches: () => true, names: [], isWhole: true, why };
}

function joined(reasons: readonly Reason[]): Reason {
  const [{ type }] = reasons as [Reason];
  return {
    type,
    matches: (object) => reasons.some((reason) => reason.matches(object)),
    names: [...new Set(reasons.flatMap(({ names }) => names))],
    isWhole: reasons.some(({ isWhole }) => isWhole),
    isLast: reasons.every(({ isLast }) => isLast),
    why: listWords([...new Set(reasons.map(({ why }) => why))]),
  };
}

/** Returns why the owner of a finalizer cannot do its work once the namespace is being deleted; undefined if it can. */
function dependencyOnNamespace(context: Context, held: Held): string | undefined {
  if (isOfControllerManager(held)) return undefined;
  const { owner, suspects, verdict } = findOwner(context, held);
  const inside = [owner, ...suspects]
    .flatMap((suspect) => suspect?.actor ?? [])
    .find(({ namespace }) => willBeDeleted(context, namespace));
  const actor = inside ?? owner?.actor;
  const idle =
    actor === undefined || isAlive(actor) ? '' : ', and is not running: it has to be started first';
  if (inside !== undefined) {
    return `${actorText(inside)}, which removes their finalizer, is in the namespace${idle}`;
  }
  // Before the deletion of the namespace there is nobody to remove it either.
  if (verdict === 'missing') return undefined;
  if (owner?.rights.isLocal) return 'the permissions of their controller are in the namespace';
  const needs = needsOfOwner(context, held, owner?.actor);
  const read = needs.flatMap(({ kind, text }) => (kind === 'object' ? [text] : []));
  if (read.length > 0) return `their controller may need ${listWords(read.slice(0, 3))}${idle}`;
  const created = needs.find(({ kind }) => kind === 'create');
  return created && `their controller may have to create ${created.text}${idle}`;
}

/**
 * Returns a step for a type whose objects can no longer be deleted after a server in the namespace was deleted.
 * Servers need objects of built-in types themselves: if a webhook guards those, no order helps.
 */
function guardedType(context: Context, { type, read }: TypeContent): Reason[] {
  if (isBuiltIn(type.group) || !read.ok) return [];
  const object = { namespace: context.now.namespace.name, labels: {}, ...read.value.sample };
  const calls = [
    ...closedWebhooks(context, realRequest(context, 'DELETE', type, object)),
    ...(read.value.guarded.length > 0
      ? closedWebhooks(context, realRequest(context, 'UPDATE', type, object))
      : []),
    ...conversionsOf(itemsIn(context.now.cluster.conversions)).filter(
      ({ name, storedVersions }) =>
        name === typeName(type) && storedVersions.some((version) => version !== type.version),
    ),
    ...extensionApis(context).filter((server) => isSameVersion(server, type)),
  ];
  const call = calls.find(({ service }) => willBeDeleted(context, service.namespace));
  if (call === undefined) return [];
  const what = serviceText(call.service);
  return [allOf(type, `${what}, which has to answer for their deletion, is in the namespace`)];
}

/** Returns the references to the owners of these objects, direct or through others that are known. */
function ownersOf(known: readonly ObjectFacts[], uids: ReadonlySet<string>) {
  const found = new Set(known.filter(({ uid }) => uids.has(uid)));
  // A Set also visits what is added meanwhile.
  for (const { ownerReferences } of found) {
    const above = known.filter(({ uid }) => ownerReferences.some((owner) => owner.uid === uid));
    for (const one of above) found.add(one);
  }
  return [...found].flatMap(({ ownerReferences }) => ownerReferences);
}

/** Assigns positions: owners before what they own, last what others may need. Types that wait for each other share one. */
function inDeletionOrder(
  context: Context,
  steps: readonly Reason[],
  known: readonly ObjectFacts[],
): OrderStep[] {
  const nameOf = (one: Pick<ObjectFacts, 'apiVersion' | 'kind'>): string => {
    const type = servedType(context, one);
    return type === undefined ? '' : typeName(type);
  };
  const owned = new Set(
    known.flatMap((one) =>
      one.ownerReferences.map((owner) => `${nameOf(owner)} owns ${nameOf(one)}`),
    ),
  );
  const earlierThan = ({ type, isLast = false }: Reason): Reason[] =>
    steps.filter(
      (one) =>
        one.type !== type &&
        (owned.has(`${typeName(one.type)} owns ${typeName(type)}`) ||
          (isLast && one.isLast !== true) ||
          rankOf(one.type) < rankOf(type)),
    );
  const placeOf = (step: Reason, above: readonly Reason[] = []): number => {
    const within = [...above, step];
    const others = earlierThan(step).filter((other) => !within.includes(other));
    return Math.max(0, ...others.map((other) => placeOf(other, within) + 1));
  };
  return steps.map((step) => ({ ...step, place: placeOf(step) })).sort((a, b) => a.place - b.place);
}

/** Returns the command by which a person deletes the objects of a step. */
export function orderCommand(namespace: string, { type, isWhole, names }: OrderStep): string {
  const which = isWhole ? [typeName(type), '--all'] : nameArgs(typeName(type), ...names);
  return kubectl('delete', ...which, '-n', namespace, '--wait');
}
