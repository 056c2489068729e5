import { type ObjectFacts, partnerKey, type Reference } from '../../model/snapshot.ts';
import {
  type Context,
  detailOf,
  groupOf,
  groupsOf,
  itemsIn,
  type Link,
  linksToHeld,
  valueIn,
} from '../context.ts';
import type { Held } from './held.ts';

interface Partner {
  object: ObjectFacts;
  because: string;
}

/**
 * Returns links to objects of other namespaces or types for which the object waits: bound or referenced objects,
 * children.
 */
export function partnerLinks(context: Context, held: Held): Link[] {
  return [
    ...partnersOf(context, held),
    ...childrenOf(context, held),
    ...referrersOf(context, held),
  ].flatMap(({ object, because }) => linksToHeld(object, because));
}

/** Returns terminating, held objects that a held object names. */
export function partnersOf(context: Context, held: Held): Partner[] {
  const { now } = context;
  const fate = now.forecast === undefined ? 'is being deleted, too' : 'would be deleted with it';
  return held.objects.flatMap(({ uid, apiVersion }) => {
    const references = valueIn(now.details[uid])?.references ?? [];
    return references.flatMap((reference) => {
      const { group, kind, namespace, name, field } = reference;
      // An object that a spec names was made from it, or is shared by many: then that object waits for them.
      const isOwn = (object: ObjectFacts): boolean =>
        !field.startsWith('spec.') || namesBack(context, object, held);
      const outside = [group, groupOf(apiVersion), ''].flatMap((candidate) => {
        const object = valueIn(
          now.partners[partnerKey({ group: candidate, kind, namespace, name })],
        );
        return object?.deletionTimestamp === undefined ? [] : [object];
      });
      return [...outside, ...namedInside(context, held, reference)]
        .slice(0, 1)
        .filter(isOwn)
        .map((object) => ({ object, because: `${field} names it, and it ${fate}` }));
    });
  });
}

/** Returns the object of the namespace that a status names, as the first object of its group. */
function namedInside(
  context: Context,
  held: Held,
  { group, kind, namespace, name, field }: Reference,
): ObjectFacts[] {
  const own = context.now.namespace.name;
  if (!field.startsWith('status.') || (namespace ?? own) !== own) return [];
  return heldHere(
    context,
    (object) =>
      object.name === name &&
      object.kind === kind &&
      (group === undefined || groupOf(object.apiVersion) === group) &&
      held.objects.every(({ uid }) => uid !== object.uid),
  );
}

function namesBack(context: Context, object: ObjectFacts, { objects }: Held): boolean {
  const references = detailOf(context, object)?.references ?? [];
  return objects.some(
    ({ kind, namespace, name, uid }) =>
      object.ownerReferences.some((owner) => owner.uid === uid) ||
      references.some(
        (back) =>
          // A list of users in its status shows that it waits for them.
          back.field.startsWith('spec.') &&
          back.kind === kind &&
          (back.namespace ?? object.namespace) === namespace &&
          back.name === name,
      ),
  );
}

/** Returns terminating, held objects that the held object owns: in the namespace, or along the chain. */
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

/** Finalizers that protect an object while others use it: `pvc-as-source-protection`, `in-use.crossplane.io`. */
const PROTECTION = /protect|in-?use|usage/i;

/**
 * Returns held objects of the namespace whose specs name the held object, which its finalizer protects while they
 * use it.
 */
function referrersOf(context: Context, held: Held): Partner[] {
  if (!PROTECTION.test(held.finalizer)) return [];
  return heldHere(
    context,
    (object) =>
      namesBack(context, object, held) && detailOf(context, object)?.endedAt === undefined,
  ).map((object) => ({ object, because: 'it uses it, and has not finished' }));
}

/**
 * Returns the first object of each group of terminating, held objects of the namespace with such an object among
 * them.
 */
function heldHere({ now }: Context, isSuch: (object: ObjectFacts) => boolean): ObjectFacts[] {
  return groupsOf(now)
    .filter(({ examples }) => examples.some(isSuch))
    .flatMap(({ examples }) => examples.slice(0, 1));
}

/**
 * Returns the users of the held object, by UID: `status.reservedFor` of a ResourceClaim. `names`: without pods that
 * would be deleted with the namespace.
 */
export function usersOf(context: Context, held: Held): { links: Link[]; names: string[] } {
  const ending = new Set(itemsIn(context.now.forecast?.present.pods).map(({ uid }) => uid));
  const users = held.objects
    .flatMap((object) => detailOf(context, object)?.references ?? [])
    .filter(
      (one) => one.field.startsWith('status.') && one.uid !== undefined && !ending.has(one.uid),
    );
  const links = heldHere(context, ({ uid }) => users.some((user) => user.uid === uid)).flatMap(
    (object) => linksToHeld(object, 'it is used by it, and waits until it is deleted'),
  );
  return {
    links,
    names: users
      .filter(({ uid = '' }) => !ending.has(uid))
      .map(({ field, kind, name }) => `${field.replace('[]', '')} names ${kind} ${name}`),
  };
}

/** The longest way from a part to its whole: a hostile cluster may have circles. */
const MAX_WHOLES = 10;

/**
 * Returns the terminating, held objects of the namespace that the held objects are parts of, directly or through
 * others: their owners, and objects of their API group that their spec or a label names by kind and name.
 */
export function wholesOf(context: Context, { objects }: Held): ObjectFacts[] {
  const all = groupsOf(context.now).flatMap(({ examples }) => examples);
  const wholes = new Set<ObjectFacts>();
  let parts = objects;
  while (parts.length > 0 && wholes.size < MAX_WHOLES) {
    const owners = new Set(parts.flatMap((one) => one.ownerReferences.map(({ uid }) => uid)));
    const named = new Set(parts.flatMap((part) => namedWholes(context, part)));
    parts = all.filter(
      (one) =>
        !wholes.has(one) &&
        !objects.includes(one) &&
        (owners.has(one.uid) || named.has(keyOf(one.apiVersion, one.kind, one.name))),
    );
    for (const whole of parts) wholes.add(whole);
  }
  return [...wholes];
}

/**
 * Returns keys of objects of its API group that the object names: by a field `spec.clusterName` or `spec.clusterRef`, or
 * by a label `…/cluster-name`.
 */
function namedWholes(context: Context, { uid, apiVersion, labels }: ObjectFacts): string[] {
  const { siblings = [], references = [] } = detailOf(context, { uid }) ?? {};
  const named = siblings.map((one) => one.split('/') as [string, string]);
  const referred = references
    .filter(({ field }) => field.startsWith('spec.'))
    .map(({ kind, name }): [string, string] => [kind, name]);
  const labelled = Object.entries(labels).flatMap(([key, name]): [string, string][] => {
    const word = /^[^/]+\/([a-z-]+?)(?:-name)?$/.exec(key)?.[1];
    return word === undefined ? [] : [[word.replaceAll('-', ''), name]];
  });
  return [...named, ...referred, ...labelled].map(([kind, name]) => keyOf(apiVersion, kind, name));
}

function keyOf(apiVersion: string, kind: string, name: string): string {
  return `${groupOf(apiVersion)}/${kind.toLowerCase()}/${name}`;
}
