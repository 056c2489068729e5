import type { Subject } from '../../model/finding.ts';
import type { FinalizerWriter, ObjectFacts, ResourceType } from '../../model/snapshot.ts';
import { type CatalogueEntry, domainOf, lookUpFinalizer } from '../catalogue.ts';
import { type Context, isBuiltIn, subjectOf, typeName, typeOf, typesOf } from '../context.ts';
import { GITOPS, isTelling } from './names.ts';

/** What a finalizer holds: objects of one type, or the Namespace itself. Its owner is wanted. */
export interface Held {
  finalizer: string;
  subject: Subject;
  type: ResourceType;
  /** The first of them; empty for the Namespace itself. */
  objects: ObjectFacts[];
  /** How many objects are held alike. */
  count: number;
  /** Since when, ISO 8601. */
  since: string;
  writers: readonly FinalizerWriter[];
  /** It stands in spec.finalizers of the Namespace, which other controllers serve than metadata's. */
  isInSpec?: boolean;
}

export function writerOf({ writers, finalizer }: Held): FinalizerWriter | undefined {
  return writers.find((entry) => entry.finalizer === finalizer);
}

/** A person has put it on the object, which was there already: with kubectl, or a console. */
export function isByHand(held: Held): boolean {
  const { isAuthor, manager = '' } = writerOf(held) ?? {};
  return (
    isAuthor !== true && /^(?:kubectl-(?:edit|patch|replace)|k9s|lens.*|Mozilla)$/.test(manager)
  );
}

/** Whether the name of a field manager says who looks after the object. */
export function tellsOf(held: Held): (manager: string) => boolean {
  return (manager) =>
    isTelling(manager) && (!GITOPS.test(manager) || isCalledAfterType(held, manager));
}

/**
 * What wrote the finalizer, where its name says who it is. Who made the object as a whole, and is not called after
 * its type, may have found the finalizer in a manifest or a backup.
 */
export function tellingWriter(held: Held): string {
  const writer = writerOf(held);
  const manager = writer?.manager ?? '';
  const mayBeCopied = writer?.isAuthor === true && !isCalledAfterType(held, manager);
  return !mayBeCopied && tellsOf(held)(manager) ? manager : '';
}

/** Who has written to the status of these objects since the deletion began. */
export function lateWriters({ objects, since }: Held) {
  return objects.flatMap((object) =>
    object.statusWriters
      .filter(({ time }) => Date.parse(time ?? '') > Date.parse(since))
      .map(({ manager }) => ({ object, manager })),
  );
}

/** Names that tell, of what wrote the finalizer or writes the status. */
export function namesToldBy(held: Held): string[] {
  return [writerOf(held)?.manager ?? '', ...statusManagers(held)].filter(tellsOf(held));
}

/** Who writes the status; that of a built-in type has many writers, and tells nothing about a finalizer. */
export function statusManagers({ objects, type }: Held): string[] {
  if (isBuiltIn(type.group)) return [];
  const managers = objects.flatMap(({ statusWriters }) => statusWriters.map((one) => one.manager));
  return [...new Set(managers)];
}

export function catalogued(held: Held): CatalogueEntry | undefined {
  const { kind } = held.subject;
  const known = lookUpFinalizer(held.finalizer, { kind, group: held.type.group });
  // The garbage collector and others look at metadata.finalizers alone.
  return held.isInSpec === true && known?.scope !== 'namespace' ? undefined : known;
}

/** Removed by a controller inside kube-controller-manager, which no workload shows. */
export function isOfControllerManager(held: Held): boolean {
  return catalogued(held)?.workload.some(({ name }) => name === 'kube-controller-manager') ?? false;
}

/** As in `widget-operator`; many have to do with built-in types. */
export function isCalledAfterType({ type: { kind, group } }: Held, name: string): boolean {
  const words = [kind.toLowerCase(), ...group.split('.').slice(0, 1)];
  const lower = name.toLowerCase();
  return !isBuiltIn(group) && words.some((word) => word.length > 2 && lower.includes(word));
}

/**
 * A cloud provider runs what belongs into kube-system, or is managed, where nobody can see it; and whatever
 * else makes load balancers (GKE's network endpoint groups).
 */
export function isOftenManaged(held: Held): boolean {
  const known = catalogued(held);
  if (known === undefined)
    return ['services', 'ingresses.networking.k8s.io'].includes(typeName(held.type));
  return isManaged(known) || known.workload.some(({ namespace }) => namespace === 'kube-system');
}

export function isManaged({ owner }: CatalogueEntry): boolean {
  return /\(managed\b/.test(owner);
}

/**
 * Whose controllers a finalizer speaks for. `own`: those of the object's type. `other`: its domain names
 * another API group that is served, so whoever made that one is meant; or it is a name below the type's group
 * that is none of its types: a product beside the first one (`chains.tekton.dev`). `unclear`: nothing says.
 */
export interface Meant {
  relation: 'own' | 'other' | 'unclear';
  /** API groups, without the built-in ones. */
  groups: string[];
}

export function meantBy(context: Context, held: Held): Meant {
  const own = held.type.group;
  const ownGroups = isBuiltIn(own) ? [] : [own];
  // `widgets.example.com` is a domain as well as `example.com/widgets` is one.
  const domain = domainOf(held.finalizer);
  // Without a domain it can only be meant for whoever made the type, or for people; a built-in type has many users.
  if (!domain.includes('.')) {
    const isOwn = ownGroups.length > 0 && !isByHand(held);
    return { relation: isOwn ? 'own' : 'unclear', groups: ownGroups };
  }
  const types = typesOf(context);
  const served = [...new Set(types.map(({ group }) => group))].filter(
    (group) => !isBuiltIn(group) && group !== own,
  );
  // Above the type's group there may be the group of another product.
  if (served.includes(domain)) return { relation: 'other', groups: [domain] };
  const fits = (group: string): boolean =>
    speaksFor(domain, group, types, group === own ? held.type.kind : '');
  if (ownGroups.some(fits)) return { relation: 'own', groups: ownGroups };
  if (ownGroups.some((group) => domain.endsWith(`.${group}`))) {
    return { relation: 'other', groups: [] };
  }
  const others = served.filter(fits);
  return others.length > 0
    ? { relation: 'other', groups: others }
    : { relation: 'unclear', groups: ownGroups };
}

/** What projects put in front of their group to make a finalizer's domain. */
const COMMON_LABEL =
  /^(?:operator|controller|foreground|background)$|finali[sz]|clean|delet|remov|purge|protect|teardown/;

/**
 * The domain is the group, or below or above it. One below has to be a type of the group, what its kind begins with
 * (`kubeadm` of KubeadmControlPlane), or a word that any project uses: `crowd.example.com/keep` is not the business of
 * whoever made `widgets.example.com`.
 */
function speaksFor(
  domain: string,
  group: string,
  types: readonly ResourceType[],
  kind: string,
): boolean {
  const project = domain.replace(/^[a-z0-9-]*finalizers?\./, '');
  if ([domain, project].some((name) => group === name || group.endsWith(`.${name}`))) return true;
  if (!domain.endsWith(`.${group}`)) return false;
  const prefix = domain.slice(0, -group.length - 1);
  const own = types.filter((type) => type.group === group);
  const names = own.flatMap((type) => [type.resource, type.kind.toLowerCase()]);
  const [beginning = ''] = /^[A-Z]+[a-z0-9]{3,}(?=[A-Z])/.exec(kind) ?? [];
  names.push(beginning.toLowerCase());
  return prefix
    .split('.')
    .every((label) => COMMON_LABEL.test(label) || own.length === 0 || names.includes(label));
}

/** Types of the meant groups: the object's own where that is meant, else all that are served. */
export function meantTypes(context: Context, held: Held, { relation, groups }: Meant): string[] {
  if (relation !== 'other') return groups.length === 0 ? [] : [typeName(held.type)];
  return typesOf(context)
    .filter(({ group }) => groups.includes(group))
    .map(typeName);
}

/** The CRD that explains the finalizer: the object's own, or one of the group that is meant. */
export function definitionNames(context: Context, held: Held): string[] {
  const types = meantTypes(context, held, meantBy(context, held));
  const domain = domainOf(held.finalizer);
  const ownType = isBuiltIn(held.type.group) ? [] : [typeName(held.type)];
  return [...new Set([...ownType, ...types.filter((name) => name === domain || types.length < 4)])];
}

/** Each finalizer of an object that is held by itself. */
export function heldObject(context: Context, object: ObjectFacts): Held[] {
  const type = typeOf(context, object);
  if (type === undefined) return [];
  return [...new Set(object.finalizers)].map((finalizer) => ({
    finalizer,
    subject: subjectOf(object),
    type,
    objects: [object],
    count: 1,
    since: object.deletionTimestamp ?? '',
    writers: object.writers,
  }));
}
