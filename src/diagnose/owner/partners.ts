import type { ObjectFacts } from '../../model/snapshot.ts';
import {
  type Context,
  detailOf,
  groupOf,
  groupsOf,
  idsOfHeld,
  itemsIn,
  specSettings,
} from '../context.ts';
import { terminatingObjects } from '../waits.ts';
import type { Held } from './held.ts';

/**
 * Returns the users of the held object, by UID: `status.reservedFor` of a ResourceClaim. `names`: without pods that
 * would be deleted with the namespace.
 */
export function usersOf(context: Context, held: Held): { links: string[]; names: string[] } {
  const ending = new Set(itemsIn(context.now.forecast?.present.pods).map(({ uid }) => uid));
  const users = held.objects
    .flatMap((object) => detailOf(context, object)?.references ?? [])
    .filter(
      (one) => one.field.startsWith('status.') && one.uid !== undefined && !ending.has(one.uid),
    );
  const links = terminatingObjects(context)
    .filter(({ object }) => users.some(({ uid }) => uid === object.uid))
    .flatMap(({ head }) => idsOfHeld(head));
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
  const named = specSettings(context, { uid }).map(([field, name]) => {
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
function namedWholes(context: Context, part: ObjectFacts): string[] {
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
function keyOf(apiVersion: string, kind: string, name: string): string {
  return `${groupOf(apiVersion)}/${kind.toLowerCase()}/${name}`;
}
