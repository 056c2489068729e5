import { listWords } from '../base/text.ts';
import { actorText, isAlive } from '../diagnose/actors.ts';
import { closedWebhooks, realRequest } from '../diagnose/admission/guards.ts';
import { kubectl, nameArgs, startRemedies } from '../diagnose/commands.ts';
import { conversionsOf, countsOf, extensionApis, servedType } from '../diagnose/content.ts';
import { type Context, contextOf, willBeDeleted } from '../diagnose/context.ts';
import { heldObjects } from '../diagnose/owner/finalizers.ts';
import { type Held, isOfControllerManager } from '../diagnose/owner/held.ts';
import { needsOfOwner } from '../diagnose/owner/needs.ts';
import { isGitOps, rankOf, reachesOut } from '../diagnose/owner/settings.ts';
import { findOwner } from '../diagnose/owner/verdict.ts';
import { serviceText } from '../diagnose/results.ts';
import { isSameVersion } from '../diagnose/rules/types.ts';
import { PROTECTION } from '../diagnose/waits.ts';
import { groupOf, isBuiltIn, typeName } from '../model/facts/metadata.ts';
import { itemsIn } from '../model/read.ts';
import type { OrderEntry } from '../model/result.ts';
import type { ObjectFacts, OwnerReference, ResourceType, Snapshot } from '../model/snapshot.ts';
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
  /** Their controller may then delete elsewhere as well, so it is left to a person. */
  isByHand: boolean;
}

type Counted = ReturnType<typeof countsOf>[number];
type Reason = Omit<OrderStep, 'place' | 'isByHand'>;

/**
 * Returns the objects that need a running controller to be deleted, and would lose it with the namespace: their
 * controller runs in the namespace or needs something in it. Objects that created them are deleted before them.
 */
export function orderOf(now: Snapshot): OrderStep[] {
  const context = contextOf(predict(now));
  const counts = countsOf({ content: now.forecast?.present.content ?? [] });
  const present = counts.filter(({ total }) => total > 0);
  const stuck = heldObjects(context).flatMap((held) => {
    const why = dependencyOnNamespace(context, held);
    return why === undefined ? [] : { ...held, why };
  });
  const guarded = present.flatMap((content) => guardedType(context, content));
  if (guarded.length + stuck.length === 0) return [];
  const known = present.flatMap(({ guarded, terminating, sample }) => [
    ...[...guarded, ...terminating].flatMap(({ examples }) => examples),
    ...(sample ? [sample] : []),
  ]);
  const held = stuck.map(({ type, finalizer, objects, count, why }): Reason => {
    const all = present.find((one) => typeName(one.type) === typeName(type))?.total ?? 0;
    return {
      ...{ type, why, names: objects.map(({ name }) => name) },
      matches: ({ finalizers }) => finalizers.includes(finalizer),
      isLast: isBuiltIn(type.group) || PROTECTION.test(finalizer),
      // The other objects of a built-in type, such as Secrets, may be what the controller runs with.
      isWhole: count >= all && !isBuiltIn(type.group),
    };
  });
  const uids = stuck.flatMap(({ objects }) => objects.map(({ uid }) => uid));
  const parents = ownerReferences(known, stuck).flatMap((owner): Reason[] => {
    const { controller, name, uid } = owner;
    const type = controller && !uids.includes(uid) ? servedType(context, owner) : undefined;
    const why = 'they created objects that are deleted first, and would create them again';
    const created = { why, names: [name], isWhole: false };
    return type?.namespaced ? [{ type, ...created, matches: (one) => one.uid === uid }] : [];
  });
  const gitOps = present.map(({ type }) => type).filter(isGitOps);
  const again = gitOps.map((type) => allOf(type, 'they would create again what is deleted'));
  const reasons = [...again, ...parents, ...guarded, ...held];
  const steps = Map.groupBy(reasons, ({ type }) => typeName(type));
  const reaching = stuck.filter((one) => reachesOut(context, one));
  // An owner takes what it owns with it.
  const owners = ownerReferences(known, reaching).flatMap((one) => servedType(context, one) ?? []);
  const others = reaching.some(({ type }) => isGitOps(type)) ? gitOps : [];
  const elsewhere = [...reaching.map(({ type }) => type), ...owners, ...others].map(typeName);
  return inDeletionOrder(Array.from(steps.values(), joined), known).map((step) => {
    return { ...step, isByHand: elsewhere.includes(typeName(step.type)) };
  });
}

/** What a person reads of a step. */
export function orderEntry(namespace: string, step: OrderStep): OrderEntry {
  const { isByHand, isWhole, names, type } = step;
  const which = isWhole ? [typeName(type), '--all'] : nameArgs(typeName(type), ...names);
  const command = kubectl('delete', ...which, '-n', namespace, '--wait');
  if (!isByHand) return { why: step.why, command };
  const why =
    'their controller, or that of objects that they own, then deletes what it deployed, also outside of this namespace';
  return { why, command, isByHand };
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
  const starts = actor?.wanted === 0 ? startRemedies(context, actor, '') : [];
  const [by = ''] = starts.flatMap(({ command }) => (command ? ` (${command})` : []));
  const idle = actor && !isAlive(actor) ? `, and is not running, so start it first${by}` : '';
  if (inside !== undefined)
    return `${actorText(inside)}, which removes their finalizer, is in the namespace${idle}`;
  // Before the deletion of the namespace there is nobody to remove it either.
  if (verdict === 'missing') return undefined;
  if (owner?.rights.isLocal) return 'the permissions of their controller are in the namespace';
  const needs = needsOfOwner(context, held, owner?.actor);
  const lost = needs.flatMap(({ lost = [] }) => lost);
  if (lost.length > 0) return `their controller may need ${listWords(lost.slice(0, 3))}${idle}`;
  const created = needs.find((need) => need.created)?.created;
  return created && `their controller may have to create ${created}${idle}`;
}

/**
 * Returns a step for a type whose objects can no longer be deleted after a server in the namespace was deleted.
 * Servers need objects of built-in types themselves: if a webhook guards those, no order helps.
 */
function guardedType(context: Context, { type, sample, guarded }: Counted): Reason[] {
  if (isBuiltIn(type.group)) return [];
  const object = { namespace: context.now.namespace.name, labels: {}, ...sample };
  const closed = (operation: 'DELETE' | 'UPDATE') =>
    closedWebhooks(context, realRequest(context, operation, type, object));
  const calls = [
    ...closed('DELETE'),
    ...(guarded.length > 0 ? closed('UPDATE') : []),
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

/** Returns the references to the owners of held objects, direct or through others that are known. */
function ownerReferences(known: readonly ObjectFacts[], held: readonly Held[]) {
  const found = new Set(held.flatMap(({ objects }) => objects));
  // A Set also visits what is added meanwhile.
  for (const { ownerReferences } of found) {
    for (const one of known) if (ownerReferences.some(({ uid }) => uid === one.uid)) found.add(one);
  }
  return [...found].flatMap(({ ownerReferences }) => ownerReferences);
}

/** Assigns positions: owners before what they own, last what others may need. Types that wait for each other share one. */
function inDeletionOrder(
  steps: readonly Reason[],
  known: readonly ObjectFacts[],
): Omit<OrderStep, 'isByHand'>[] {
  const isOf = ({ group, kind }: ResourceType, one: ObjectFacts | OwnerReference): boolean =>
    kind === one.kind && group === groupOf(one.apiVersion);
  const owns = (type: ResourceType, other: ResourceType): boolean =>
    known.some((one) => isOf(other, one) && one.ownerReferences.some((by) => isOf(type, by)));
  const earlierThan = ({ type, isLast }: Reason): Reason[] =>
    steps.filter(
      (one) =>
        one.type !== type &&
        (owns(one.type, type) || (isLast && !one.isLast) || rankOf(one.type) < rankOf(type)),
    );
  const placeOf = (step: Reason, above: readonly Reason[] = []): number => {
    const within = [...above, step];
    const others = earlierThan(step).filter((other) => !within.includes(other));
    return Math.max(0, ...others.map((other) => placeOf(other, within) + 1));
  };
  return steps.map((step) => ({ ...step, place: placeOf(step) })).sort((a, b) => a.place - b.place);
}
