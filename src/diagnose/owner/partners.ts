import type { ObjectFacts, Reference } from '../../model/snapshot.ts';
import {
  type Context,
  detailOf,
  groupOf,
  groupsOf,
  isBuiltIn,
  isInside,
  isKind,
  itemsIn,
  type Link,
  linksToHeld,
  valueIn,
} from '../context.ts';
import { linksToObject } from '../rules/pods.ts';
import type { Held } from './held.ts';

interface Partner {
  object: ObjectFacts;
  because: string;
}

/** A terminating object, and the object under which its finding stands: the first one of its group. */
interface Terminating {
  object: ObjectFacts;
  head: ObjectFacts;
  isOutside: boolean;
}

/** Returns the terminating objects of the namespace, and those outside of it that were read by name. */
export function terminatingObjects({ now }: Context): Terminating[] {
  const inside = groupsOf(now).flatMap(({ examples }) =>
    examples.map((object) => ({ object, head: examples[0] ?? object, isOutside: false })),
  );
  const outside = Object.values(now.partners)
    .flatMap((read) => valueIn(read) ?? [])
    .filter(({ deletionTimestamp }) => deletionTimestamp !== undefined)
    .map((object) => ({ object, head: object, isOutside: true }));
  return [...inside, ...outside];
}

/** Returns the references in the spec and the status of an object to another one. */
export function referencesTo(context: Context, from: ObjectFacts, to: ObjectFacts): Reference[] {
  const own = groupOf(to.apiVersion);
  return (detailOf(context, from)?.references ?? []).filter(
    ({ group = own, kind, namespace = from.namespace, name }) =>
      name === to.name &&
      isKind(to, kind) &&
      group === own &&
      [namespace, ''].includes(to.namespace),
  );
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
  ].flatMap(({ object, because }) => linksToObject(context, object, because));
}

/**
 * Returns terminating objects that the status of a held object names. An object that its spec names was made from it, or
 * is shared by many, and then waits for them: it counts only outside of the namespace, and if its own spec names the
 * held object.
 */
export function partnersOf(context: Context, held: Held): Partner[] {
  const fate =
    context.now.forecast === undefined ? 'is being deleted, too' : 'would be deleted with it';
  const all = terminatingObjects(context).filter(({ object }) => !held.objects.includes(object));
  return held.objects.flatMap((from) =>
    all.flatMap(({ object: to, head, isOutside }) => {
      const isMutual = isOutside && isNamedIn(context, to, 'spec.', held);
      const named = referencesTo(context, from, to).find(
        ({ field }) => field.startsWith('status.') || isMutual,
      );
      const { uids = [] } = detailOf(context, from) ?? {};
      const field = named?.field ?? (uids.includes(to.uid) ? 'its status' : undefined);
      return field ? [{ object: head, because: `${field} names it, and it ${fate}` }] : [];
    }),
  );
}

/**
 * Returns cluster-scoped objects that a held object names, that name it back, and whose end its controller waits for: a
 * setting says `Foreground`, as `compositeDeletePolicy` of a Crossplane claim. A forecast does not examine what holds them.
 */
export function foregroundParts(context: Context, held: Held): ObjectFacts[] {
  const parts = Object.values(context.now.partners).flatMap((read) => valueIn(read) ?? []);
  return held.objects.flatMap((from) => {
    const { settings = [] } = detailOf(context, from) ?? {};
    if (!settings.some((one) => /=foreground$/i.test(one))) return [];
    return parts.filter(
      (to) =>
        to.namespace === '' &&
        to.deletionTimestamp === undefined &&
        to.finalizers.length > 0 &&
        referencesTo(context, from, to).some(({ field }) => field.startsWith('spec.')) &&
        isNamedIn(context, to, 'spec.', held),
    );
  });
}

/** Reports whether such a field of an object names one of the held objects. */
function isNamedIn(context: Context, from: ObjectFacts, place: string, { objects }: Held): boolean {
  return objects.some((to) =>
    referencesTo(context, from, to).some(({ field }) => field.startsWith(place)),
  );
}

/** Returns terminating objects that the held object owns: in the namespace, or along the chain. */
export function childrenOf(context: Context, held: Held): Partner[] {
  const owners = new Set(held.objects.map(({ uid }) => uid));
  const because = 'it owns it, and waits until it is deleted';
  return terminatingObjects(context)
    .filter(({ object }) => object.ownerReferences.some(({ uid }) => owners.has(uid)))
    .map(({ head }) => ({ object: head, because }));
}

/**
 * Returns the terminating objects of the namespace which lead to objects outside of it: they name or own these, directly
 * or through others. Their controllers delete those objects as well.
 */
export function headsOf(context: Context, { objects }: Held): ObjectFacts[] {
  const all = terminatingObjects(context);
  const chain = new Set(objects);
  for (const to of chain) {
    for (const { object: from } of all) {
      const isOwner = to.ownerReferences.some(({ uid }) => uid === from.uid);
      const { uids = [] } = detailOf(context, from) ?? {};
      if (isOwner || uids.includes(to.uid) || referencesTo(context, from, to).length > 0) {
        chain.add(from);
      }
    }
  }
  const inside = [...chain].filter(({ namespace }) => isInside(context, namespace));
  const isPart = ({ ownerReferences }: ObjectFacts): boolean =>
    ownerReferences.some((owner) => inside.some(({ uid }) => uid === owner.uid));
  return inside.filter((object) => !isPart(object));
}

/** Finalizers that protect an object while others use it: `pvc-as-source-protection`, `in-use.crossplane.io`. */
export const PROTECTION = /protect|in-?use|usage/i;

/**
 * Returns held objects of the namespace whose specs name the held object, which its finalizer protects while they use it:
 * by its name, or because they have the finalizer as well, as Secrets with the credentials for custom objects do.
 */
function referrersOf(context: Context, held: Held): Partner[] {
  return terminatingObjects(context)
    .filter(
      ({ object }) =>
        PROTECTION.test(held.finalizer) ||
        (isBuiltIn(held.type.group) && object.finalizers.includes(held.finalizer)),
    )
    .filter(({ object }) => isNamedIn(context, object, 'spec.', held))
    .filter(({ object }) => detailOf(context, object)?.endedAt === undefined)
    .map(({ head }) => ({ object: head, because: 'it uses it, and has not finished' }));
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
  const links = terminatingObjects(context)
    .filter(({ object }) => users.some(({ uid }) => uid === object.uid))
    .flatMap(({ head }) => linksToHeld(head, 'it is used by it, and waits until it is deleted'));
  return {
    links,
    names: users.map(({ field, kind, name }) => `${field.replace('[]', '')} names ${kind} ${name}`),
  };
}

/** The longest way from a part to its whole. */
const MAX_GENERATIONS = 5;

/**
 * Returns the terminating, held objects of the namespace that the held objects are parts of, directly or through
 * others: their owners, and objects of their API group that their spec or a label names by kind and name.
 */
export function wholesOf(context: Context, { objects }: Held): ObjectFacts[] {
  const all = groupsOf(context.now).flatMap(({ examples }) => examples);
  const found = new Set(objects);
  for (let step = 0; step < MAX_GENERATIONS; step++) {
    const owners = new Set([...found].flatMap((one) => one.ownerReferences.map(({ uid }) => uid)));
    const named = new Set([...found].flatMap((part) => namedWholes(context, part)));
    const wholes = all.filter(
      (one) => owners.has(one.uid) || named.has(keyOf(one.apiVersion, one.kind, one.name)),
    );
    for (const whole of wholes) found.add(whole);
  }
  return [...found].slice(objects.length);
}

/** An object that another one names by a convention, without a reference. */
interface NamedByConvention {
  group: string;
  /** In lower case. */
  kind: string;
  name: string;
  by: string;
}

/**
 * Returns what an object names by a field `spec.cluster` or `spec.clusterName`, of its API group, or by a label
 * `GROUP/cluster` or `GROUP/cluster-name`.
 */
export function namedByConvention(
  context: Context,
  { uid, apiVersion, labels }: ObjectFacts,
): NamedByConvention[] {
  const group = groupOf(apiVersion);
  const { siblings = [] } = detailOf(context, { uid }) ?? {};
  const named = siblings.map((one) => {
    const [field = '', name = ''] = one.split('/');
    const kind = field.replace(/(?:Name|Ref)$/, '').toLowerCase();
    return { group, kind, name, by: `spec.${field}` };
  });
  const labelled = Object.entries(labels).flatMap(([key, name]) => {
    const [, domain = '', word] = /^([^/]+)\/([a-z-]+?)(?:-name)?$/.exec(key) ?? [];
    const kind = word?.replaceAll('-', '');
    return kind === undefined
      ? []
      : [...new Set([domain, group])].map((own) => ({
          group: own,
          kind,
          name,
          by: `label ${key}`,
        }));
  });
  return [...named, ...labelled];
}

/** Returns keys of objects that the object names; see `keyOf`. */
export function namedWholes(context: Context, part: ObjectFacts): string[] {
  const { references = [] } = detailOf(context, part) ?? {};
  return [
    ...references.map(({ group, kind, name }) =>
      keyOf(group === undefined ? part.apiVersion : `${group}/`, kind, name),
    ),
    ...namedByConvention(context, part).map(({ group, kind, name }) =>
      keyOf(`${group}/`, kind, name),
    ),
  ];
}

/** Returns a key of an object by its API group, kind and name. */
export function keyOf(apiVersion: string, kind: string, name: string): string {
  return `${groupOf(apiVersion)}/${kind.toLowerCase()}/${name}`;
}
