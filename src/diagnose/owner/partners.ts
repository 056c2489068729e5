import { canName } from '../../model/facts/detail.ts';
import {
  type ObjectFacts,
  partnerKey,
  type Reference,
  type ResourceType,
} from '../../model/snapshot.ts';
import {
  type Context,
  detailOf,
  groupOf,
  groupsOf,
  isBuiltIn,
  isKind,
  specSettings,
  typesOf,
  valueIn,
} from '../context.ts';
import type { Held } from './held.ts';

// What an object names: by a reference, or by the conventions that products use instead.

/** Kinds of the core group that a controller reads for its own work. */
export const PLAIN: readonly string[] = ['Secret', 'ConfigMap', 'ServiceAccount'];

/** A place where an object that another one names can be. */
export interface Named {
  type: ResourceType;
  namespace: string | undefined;
  name: string;
  /** The field that names it. */
  by: string;
}

/** Returns what the specs and labels of these objects name and a clean-up may read. */
export function objectsNamedBy(context: Context, objects: readonly ObjectFacts[]): Named[] {
  return objects.flatMap((object) => [
    ...referredTo(context, object),
    ...namedByConvention(context, object),
  ]);
}

/**
 * Returns what the references of a spec name. An object of the cluster may mean its reader's namespace, as a ClusterSecretStore
 * with the credentials of each tenant, or that of its controller: a forecast sees which one has the object.
 */
function referredTo(context: Context, object: ObjectFacts): Named[] {
  const { forecast, namespace: own } = context.now;
  return (detailOf(context, object)?.references ?? []).flatMap((reference) => {
    const { field, isAddress, isMade, name } = reference;
    const isMeant = field.startsWith('spec.') && !isMade && (isAddress || canName(field));
    const type = isMeant ? typeNamed(context, reference, groupOf(object.apiVersion)) : undefined;
    if (type === undefined) return [];
    const here = object.namespace || (forecast && own.name);
    const namespace = type.namespaced ? (reference.namespace ?? here) : undefined;
    return type.namespaced && !namespace ? [] : [{ type, namespace, name, by: field }];
  });
}

function typeNamed(context: Context, { group, kind, isAddress }: Reference, own: string) {
  const isRead = PLAIN.includes(kind) || isAddress;
  const fits = typesOf(context).filter(
    (type) =>
      isKind(type, kind) &&
      (group ?? type.group) === type.group &&
      (isRead || !isBuiltIn(type.group)),
  );
  return fits.find((type) => type.group === own) ?? fits[0];
}

/** Returns what a field `spec.cluster` or `spec.clusterName` of its API group names, or a label `GROUP/cluster-name`. */
function namedByConvention(context: Context, object: ObjectFacts): Named[] {
  const own = groupOf(object.apiVersion);
  const fields = specSettings(context, object).map(([field, name]) => {
    return { domain: own, word: field, name, by: `spec.${field}` };
  });
  const labels = Object.entries(object.labels).map(([key, name]) => {
    const [domain = '', word = ''] = key.split('/');
    return { domain, word, name, by: `label ${key}` };
  });
  return [...fields, ...labels].flatMap(({ domain, word, name, by }) => {
    const kind = word.replace(/(?:Name|Ref|-name)$/, '').replaceAll('-', '');
    return typesOf(context)
      .filter((type) => isKind(type, kind) && [domain, own].includes(type.group))
      .map((type) => ({
        type,
        namespace: type.namespaced ? object.namespace : undefined,
        name,
        by,
      }));
  });
}

/** Returns the object, if it was read and exists: by its name, or among the content. */
export function findNamedObject(
  { now }: Context,
  { type, namespace = '', name }: Omit<Named, 'by'>,
) {
  const key = partnerKey({ ...type, namespace, name });
  const others = [...groupsOf(now).flatMap(({ examples }) => examples), ...foundInputs(now)];
  return (
    valueIn(now.partners[key]) ??
    others.find((one) => partnerKey({ ...one, group: groupOf(one.apiVersion) }) === key)
  );
}

/** Returns the objects of the namespace that a forecast searched for. */
export function foundInputs({ forecast }: Context['now']): ObjectFacts[] {
  return Object.values(forecast?.samples ?? {}).flatMap(({ sample }) => sample ?? []);
}

/** Returns the terminating objects of which the held objects are parts: their owners, and what they name. */
export function wholesOf(context: Context, { objects }: Held): ObjectFacts[] {
  const owners = new Set(objects.flatMap((one) => one.ownerReferences.map(({ uid }) => uid)));
  const named = objectsNamedBy(context, objects).map((one) => findNamedObject(context, one));
  return groupsOf(context.now)
    .flatMap(({ examples }) => examples)
    .filter((one) => !objects.includes(one) && (owners.has(one.uid) || named.includes(one)));
}
