import { type ObjectFacts, partnerKey } from '../../model/snapshot.ts';
import {
  type Context,
  detailOf,
  groupOf,
  groupsOf,
  type Link,
  linksToHeld,
  valueIn,
} from '../context.ts';
import type { Held } from './held.ts';

interface Partner {
  object: ObjectFacts;
  because: string;
}

/** What the object waits for across a border: bound or referenced objects, children, dependents. */
export function partnerLinks(context: Context, held: Held): Link[] {
  return [
    ...partnersOf(context, held),
    ...childrenOf(context, held),
    ...referrersOf(context, held),
  ].flatMap(({ object, because }) => linksToHeld(object, because));
}

/** Objects that a held one names and that are on their way out and held themselves. */
export function partnersOf(context: Context, held: Held): Partner[] {
  const { now } = context;
  const fate = now.forecast === undefined ? 'is being deleted, too' : 'would be deleted with it';
  return held.objects.flatMap(({ uid, apiVersion }) => {
    const references = valueIn(now.details[uid])?.references ?? [];
    return references.flatMap(({ group, kind, namespace, name, field }) =>
      [group, groupOf(apiVersion), '']
        .flatMap((candidate) => {
          const key = partnerKey({ group: candidate, kind, namespace, name });
          const object = valueIn(now.partners[key]);
          const isHeld = object?.deletionTimestamp !== undefined && object.finalizers.length > 0;
          // What a spec names is made from it, or shared by many, and then it is what waits for them.
          const isOwn =
            !field.startsWith('spec.') ||
            (object !== undefined && namesBack(context, object, held));
          return isHeld && isOwn ? [{ object, because: `${field} names it, and it ${fate}` }] : [];
        })
        .slice(0, 1),
    );
  });
}

/** Of these, those that name the held one in turn: whoever looks after it waits until they are gone. */
export function boundPartners(context: Context, held: Held): Partner[] {
  return partnersOf(context, held).filter(({ object }) => namesBack(context, object, held));
}

function namesBack(context: Context, object: ObjectFacts, { objects }: Held): boolean {
  const references = detailOf(context, object)?.references ?? [];
  return objects.some(
    ({ kind, namespace, name, uid }) =>
      object.ownerReferences.some((owner) => owner.uid === uid) ||
      references.some(
        (back) =>
          // A list of users in its status says that it waits for them.
          back.field.startsWith('spec.') &&
          back.kind === kind &&
          (back.namespace ?? object.namespace) === namespace &&
          back.name === name,
      ),
  );
}

/** Terminating objects that the held one owns, and that are held themselves: of the namespace, or along the chain. */
export function childrenOf(context: Context, held: Held): Partner[] {
  const owners = new Set(held.objects.map(({ uid }) => uid));
  const isChild = ({ ownerReferences }: ObjectFacts): boolean =>
    ownerReferences.some(({ uid }) => owners.has(uid));
  const outside = Object.values(context.now.partners)
    .flatMap((read) => valueIn(read) ?? [])
    .filter((one) => one.deletionTimestamp !== undefined && isChild(one));
  const because = 'it owns it, and waits until it is deleted';
  return [...heldHere(context, isChild), ...outside].map((object) => ({ object, because }));
}

/** Finalizers that protect an object as long as something uses it: `pvc-as-source-protection`, `in-use.crossplane.io`. */
const PROTECTION = /protect|in-?use|usage/i;

/** Held objects of the namespace whose specs name the held one, which its finalizer protects while they use it. */
function referrersOf(context: Context, held: Held): Partner[] {
  if (!PROTECTION.test(held.finalizer)) return [];
  return heldHere(
    context,
    (object) =>
      namesBack(context, object, held) && detailOf(context, object)?.endedAt === undefined,
  ).map((object) => ({ object, because: 'it uses it, and has not finished' }));
}

/** The first of each group of terminating objects of the namespace that are held and among which is such a one. */
function heldHere({ now }: Context, isSuch: (object: ObjectFacts) => boolean): ObjectFacts[] {
  return groupsOf(now)
    .filter(({ finalizers, examples }) => finalizers.length > 0 && examples.some(isSuch))
    .flatMap(({ examples }) => examples.slice(0, 1));
}

/** Who uses the held one, by UID: `status.reservedFor` of a ResourceClaim. */
export function usersOf(context: Context, held: Held): { links: Link[]; names: string[] } {
  const users = held.objects
    .flatMap((object) => detailOf(context, object)?.references ?? [])
    .filter((one) => one.uid !== undefined && one.field.startsWith('status.'));
  const links = heldHere(context, ({ uid }) => users.some((user) => user.uid === uid)).flatMap(
    (object) => linksToHeld(object, 'it is used by it, and waits until it is deleted'),
  );
  return {
    links,
    names: users.map(({ field, kind, name }) => `${field.replace('[]', '')} names ${kind} ${name}`),
  };
}

/** Terminating objects of the namespace that own the held ones, and that are held themselves. */
export function parentsOf({ now }: Context, { objects }: Held): ObjectFacts[] {
  const owners = new Set(objects.flatMap((one) => one.ownerReferences.map(({ uid }) => uid)));
  return groupsOf(now).flatMap(({ examples }) => examples.filter(({ uid }) => owners.has(uid)));
}
