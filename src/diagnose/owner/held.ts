import { type CatalogueEntry, lookUpFinalizer } from '../../model/catalogue.ts';
import type { Subject } from '../../model/finding.ts';
import type { FinalizerWriter, ObjectFacts, ResourceType } from '../../model/snapshot.ts';
import { type Context, isBuiltIn, servedType, subjectOf, typeName, typesOf } from '../context.ts';
import { domainOf, GENERAL_TOOLS, identifiesProgram, isSameName, productsOf } from './names.ts';

/** A finalizer, and what it holds: objects of one type, or the Namespace itself. */
export interface Held {
  finalizer: string;
  subject: Subject;
  type: ResourceType;
  /** The first objects; empty for the Namespace itself. */
  objects: ObjectFacts[];
  /** The number of objects that are held alike. */
  count: number;
  /** Since when, ISO 8601. */
  since: string;
  writers: readonly FinalizerWriter[];
  /** The finalizer is an entry of the Namespace's spec.finalizers, which other controllers serve than metadata's. */
  isInSpec?: boolean;
}

/** Returns each finalizer of one object. */
export function finalizersOfObject(context: Context, object: ObjectFacts): Held[] {
  const type = servedType(context, object);
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

export function writerOf({ writers, finalizer }: Held): FinalizerWriter | undefined {
  return writers.find((entry) => entry.finalizer === finalizer);
}

/** Reports whether a person added the finalizer to an existing object, with kubectl or a console. */
export function isSetByHand(held: Held): boolean {
  const { manager = '' } = writerOf(held) ?? {};
  return /^(?:kubectl-(?:edit|patch|replace)|k9s|lens.*|Mozilla)$/.test(manager);
}

/** Reports whether a field manager identifies the program that reconciles these objects. */
export function identifiesController(held: Held, manager: string): boolean {
  return (
    identifiesProgram(manager) && (!GENERAL_TOOLS.test(manager) || isNamedAfterType(held, manager))
  );
}

/**
 * Returns the field manager that wrote the finalizer, if it identifies one program; else an empty string. The author
 * of the whole object may have copied the finalizer from a manifest or a backup, unless it is named after the type.
 */
export function specificFieldManager(held: Held): string {
  const { manager = '', isAuthor } = writerOf(held) ?? {};
  const mayBeCopied = isAuthor === true && !isNamedAfterType(held, manager);
  const isOwn = identifiesController(held, manager) && !isSetForAnother(held, manager);
  return isOwn && !mayBeCopied ? manager : '';
}

/** Reports whether it is another program of the product: one may set what another removes (snapshot-controller, csi-snapshotter). */
function isSetForAnother(held: Held, manager: string): boolean {
  const known = knownFinalizer(held);
  return (
    known !== undefined &&
    known.workload.length > 0 &&
    known.workload.every(({ name }) => name !== manager) &&
    productsOf(manager).some(({ match }) => domainOf(match) === domainOf(known.match))
  );
}

/** Returns the field managers of the status. */
export function statusManagers(held: Held): string[] {
  const managers = held.objects.flatMap(({ statusWriters }) =>
    statusWriters.map(({ manager }) => manager),
  );
  return [...new Set(managers)].filter((manager) => identifiesController(held, manager));
}

/** Returns the names that identify programs: of the finalizer's writer and of the status. */
export function controllerNames(held: Held): string[] {
  const { manager = '' } = writerOf(held) ?? {};
  return [...(identifiesController(held, manager) ? [manager] : []), ...statusManagers(held)];
}

/**
 * Returns the field managers that have written the status of these objects since the deletion began. In a forecast nobody
 * has: the deletion lies ahead.
 */
export function lateWriters({ objects, since }: Held) {
  return objects.flatMap((object) =>
    object.statusWriters
      .filter(({ time = '' }) => Date.parse(time) > Date.parse(since))
      .map(({ manager, time }) => ({ object, manager, time })),
  );
}

/** Returns the writes to these objects since the deletion began, of their status or anything else. */
export function lateWrites(held: Held) {
  const others = held.objects.flatMap((object) =>
    (object.lateWriters ?? []).map((writer) => ({ object, ...writer })),
  );
  return [...lateWriters(held), ...others];
}

/** Reports whether the finalizer belongs to no project and no person, or to any controller of a framework or product. */
export function isOfNoDomain(held: Held): boolean {
  const isAnyones = knownFinalizer(held)?.anyController === true;
  const domain = domainOf(held.finalizer);
  // `widgets.finalizer.name`, as in examples of Kubebuilder.
  const isDomain = domain.includes('.') && !/\bfinalizers?(?:\.name)?$/.test(domain);
  const isBare = !isDomain && !isSetByHand(held);
  return !isBuiltIn(held.type.group) && (isAnyones || isBare);
}

export function knownFinalizer(held: Held): CatalogueEntry | undefined {
  const { kind } = held.subject;
  const known = lookUpFinalizer(held.finalizer, { kind, group: held.type.group });
  // The garbage collector and other controllers look at metadata.finalizers alone.
  return held.isInSpec === true && known?.scope !== 'namespace' ? undefined : known;
}

/** Reports whether the catalogue names this workload as the owner. */
export function isKnownWorkload(held: Held, workload: string): boolean {
  return knownFinalizer(held)?.workload.some(({ name }) => name === workload) ?? false;
}

/** Reports whether a controller inside kube-controller-manager removes it, which no workload shows. */
export function isOfControllerManager(held: Held): boolean {
  return isKnownWorkload(held, 'kube-controller-manager');
}

/** Recognizes `widget-operator`, of Widgets. Many programs are named after built-in types. */
export function isNamedAfterType({ type: { kind, group } }: Held, name: string): boolean {
  const words = [kind.toLowerCase(), ...group.split('.').slice(0, 1)];
  const lower = name.toLowerCase();
  return !isBuiltIn(group) && words.some((word) => word.length > 2 && lower.includes(word));
}

/** Recognizes `postgrescluster-controller`, of PostgresClusters: a controller inside of a program, which may have any name. */
export function isControllerOfType({ type: { kind } }: Held, manager: string): boolean {
  return ['controller', 'reconciler'].some((role) => isSameName(manager, `${kind}-${role}`));
}

/** Reports whether a cloud provider often runs the owner where the cluster does not show it. */
export function isOftenProviderManaged(held: Held): boolean {
  const known = knownFinalizer(held);
  if (known === undefined)
    return ['services', 'ingresses.networking.k8s.io'].includes(typeName(held.type));
  return (
    isProviderManaged(known) || known.workload.some(({ namespace }) => namespace === 'kube-system')
  );
}

export function isProviderManaged({ owner }: CatalogueEntry): boolean {
  return /\(managed\b/.test(owner);
}

/**
 * The product to which a finalizer's name belongs. `own`: that of the object's type. `other`: its domain belongs to
 * another API group that is served. `unclear`: the name does not say, as `cleanup`, or a name below the type's group
 * that is none of its types (`chains.tekton.dev`).
 */
export interface FinalizerDomain {
  relation: 'own' | 'other' | 'unclear';
  /** API groups, without the built-in ones. */
  groups: string[];
}

export function finalizerDomain(context: Context, held: Held): FinalizerDomain {
  const own = held.type.group;
  const ownGroups = isBuiltIn(own) ? [] : [own];
  const domain = domainOf(held.finalizer);
  const types = typesOf(context);
  const served = [...new Set(types.map(({ group }) => group))].filter((group) => group !== own);
  // Above the type's group there may be the group of another product.
  if (served.includes(domain)) return { relation: 'other', groups: [domain] };
  const belongsTo = (group: string): boolean =>
    isDomainOfGroup(domain, group, types, group === own ? held.type.kind : '');
  if (ownGroups.some(belongsTo)) return { relation: 'own', groups: ownGroups };
  const others = served.filter(belongsTo);
  return others.length > 0
    ? { relation: 'other', groups: others }
    : { relation: 'unclear', groups: ownGroups };
}

/** Labels that any project puts in front of its own name. */
const COMMON_LABEL =
  /^(?:operator|controller|apps?|foreground|background)$|finali[sz]|clean|delet|remov|purge|protect|teardown/;

/**
 * Reports whether a domain is the group, above it, or below it by a type of the group, by what its kind begins with
 * (`kubeadm` of KubeadmControlPlane), or by a common label. `apps.` and `operator.` of one project are siblings.
 */
function isDomainOfGroup(
  domain: string,
  group: string,
  types: readonly ResourceType[],
  kind: string,
): boolean {
  const project = withoutCommonLabel(domain);
  if ([domain, project].some((name) => group === name || group.endsWith(`.${name}`))) return true;
  const root = domain.endsWith(`.${group}`) ? group : withoutCommonLabel(group);
  if (!domain.endsWith(`.${root}`)) return false;
  const own = types.filter((type) => type.group === group);
  const names = own.flatMap((type) => [type.resource, type.kind.toLowerCase()]);
  const [beginning = ''] = /^[A-Z]+[a-z0-9]{3,}(?=[A-Z])/.exec(kind) ?? [];
  names.push(beginning.toLowerCase());
  return domain
    .slice(0, -root.length - 1)
    .split('.')
    .every((label) => names.includes(label) || COMMON_LABEL.test(label));
}

/**
 * Removes the first label if it is a common one. At least two labels stay: `apps.example.com` becomes
 * `example.com`, `operator.io` does not change.
 */
function withoutCommonLabel(domain: string): string {
  const [label = '', ...rest] = domain.split('.');
  return rest.length > 1 && COMMON_LABEL.test(label) ? rest.join('.') : domain;
}

/** Returns the types that a domain belongs to: the object's own, or all of the other groups. */
export function typesOfDomain(context: Context, held: Held, domain: FinalizerDomain) {
  const { relation, groups } = domain;
  return relation === 'other'
    ? typesOf(context).filter(({ group }) => groups.includes(group))
    : [held.type];
}

/** Returns the names of the CRDs which explain the finalizer: of the object's own type, or of the other group. */
export function definitionNames(context: Context, held: Held): string[] {
  const types = typesOfDomain(context, held, finalizerDomain(context, held));
  const custom = [held.type, ...(types.length < 4 ? types : [])].filter(
    ({ group }) => !isBuiltIn(group),
  );
  return [...new Set(custom.map(typeName))];
}
