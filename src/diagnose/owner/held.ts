import { type CatalogueEntry, lookUpFinalizer } from '../../model/catalogue.ts';
import { isBuiltIn, typeName } from '../../model/facts/metadata.ts';
import type { Subject } from '../../model/finding.ts';
import type { FinalizerWriter, ObjectFacts, ResourceType } from '../../model/snapshot.ts';
import { realRequest } from '../admission/guards.ts';
import { servedType, typesOf } from '../content.ts';
import type { Context } from '../context.ts';
import { subjectOf } from '../results.ts';
import { domainOf, GENERAL_TOOLS, identifiesProgram, productsOf } from './names.ts';

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
  const { deletionTimestamp: since = '', finalizers, writers } = object;
  const common = { subject: subjectOf(object), type, objects: [object], count: 1, since, writers };
  return [...new Set(finalizers)].map((finalizer) => ({ finalizer, ...common }));
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
export function identifiesController({ type }: Held, manager: string): boolean {
  return (
    identifiesProgram(manager) && (!GENERAL_TOOLS.test(manager) || isNamedAfterType(type, manager))
  );
}

/** Returns the field manager of the finalizer if it identifies one program, else nothing. The author of the whole object may have copied it, unless it is named after the type. */
export function specificFieldManager(held: Held): string {
  const { manager = '', isAuthor } = writerOf(held) ?? {};
  const mayBeCopied = isAuthor === true && !isNamedAfterType(held.type, manager);
  const isOwn = identifiesController(held, manager) && !isSetForAnother(held, manager);
  return isOwn && !mayBeCopied ? manager : '';
}

/** Reports whether it is another program of the product: one may set what another removes (snapshot-controller, csi-snapshotter). */
function isSetForAnother(held: Held, manager: string): boolean {
  const { match = '', workload = [] } = knownFinalizer(held) ?? {};
  const isOfProduct = productsOf(manager).some((one) => domainOf(one.match) === domainOf(match));
  return isOfProduct && workload.length > 0 && !isKnownWorkload(held, manager);
}

export function statusWriters({ objects }: Held) {
  return objects.flatMap((object) => object.statusWriters);
}

/** Returns the writes to these objects since the deletion began; none in a forecast. */
export function lateWrites({ objects, since }: Held) {
  return objects.flatMap((object) => {
    const { lateWriters = [], statusWriters } = object;
    const late = statusWriters.filter(({ time = '' }) => Date.parse(time) > Date.parse(since));
    return [...late, ...lateWriters].map((writer) => ({ object, ...writer }));
  });
}

/** Reports whether the finalizer belongs to no project and no person, or to any controller of a framework or product. */
function isOfNoDomain(held: Held): boolean {
  const isAnyones = knownFinalizer(held)?.anyController === true;
  const domain = domainOf(held.finalizer);
  // `widgets.finalizer.name` and `finalizer.widget`, as in examples of Kubebuilder.
  const isDomain =
    /^(?!finalizers?\.[^.]*$).*\./.test(domain) && !/\bfinalizers?(?:\.name)?$/.test(domain);
  return isAnyones || (!isDomain && !isSetByHand(held));
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
export function isNamedAfterType({ kind, group }: ResourceType, name: string): boolean {
  const words = [kind.toLowerCase(), ...withoutCommonLabels(group).split('.').slice(0, -1)];
  const lower = name.toLowerCase().replaceAll('-', '');
  return !isBuiltIn(group) && words.some((word) => word.length > 2 && lower.includes(word));
}

/** Reports whether a cloud provider often runs the owner where the cluster does not show it. */
export function isOftenProviderManaged(held: Held): boolean {
  const { workload } = knownFinalizer(held) ?? {};
  return workload === undefined
    ? ['services', 'ingresses.networking.k8s.io'].includes(typeName(held.type))
    : isProviderManaged(held) || workload.some(({ namespace }) => namespace === 'kube-system');
}

export function isProviderManaged(held: Held): boolean {
  return /\(managed\b/.test(knownFinalizer(held)?.owner ?? '');
}

/**
 * The product to which a finalizer's name belongs. `own`: that of the object's type. `other`: its domain belongs to
 * another API group that is served. `none`: to no project, or to any controller of a framework. `foreign`: to somebody
 * else, as several controllers put finalizers of their own on a shared type.
 */
export interface FinalizerDomain {
  relation: 'own' | 'other' | 'none' | 'foreign';
  /** API groups, without the built-in ones. */
  groups: string[];
  /** The types of these groups, or the object's own: their controller has the marks, and their CRDs explain the finalizer. */
  types: ResourceType[];
  /** Only the product's name is that of the type's group. */
  isShared?: boolean;
}

export function finalizerDomain(context: Context, held: Held): FinalizerDomain {
  const { group } = held.type;
  const domain = domainOf(held.finalizer);
  const all = typesOf(context);
  const own = isBuiltIn(group) ? [] : [held.type];
  const groups = own.map((type) => type.group);
  // `apps.` and `operator.` of one project are siblings.
  const project = withoutCommonLabels(domain);
  const ofGroup = all.flatMap((one) => (one.group === group ? behindTypeIn(project, one) : []));
  // The product of `kmm.node.kubernetes.io` and `kmm.sigs.x-k8s.io` is `kmm`: neither a kind nor another company has that name.
  const labels = group.split('.');
  const isTaken = (label: string, words: readonly string[], kind: string): boolean =>
    kind.toLowerCase() === label || (words.includes(label) && words.at(-2) !== labels.at(-2));
  const isProduct = (label: string): boolean =>
    labels.includes(label) && !all.some((one) => isTaken(label, one.group.split('.'), one.kind));
  const isShared =
    own.length > 0 && !domain.endsWith(group) && project.split('.').slice(0, -2).some(isProduct);
  const isOwn = groups.some((one) =>
    [project, ...ofGroup].some((name) => `.${withoutCommonLabels(one)}`.endsWith(`.${name}`)),
  );
  // Above the type's group there may be the group of another product; of that, `operator.` is any product's part. Built-in types have no group.
  const others = all.filter(
    (type) =>
      type.group !== group &&
      ([domain, ...(isOwn ? [] : [project, behindTypeIn(project, type)])].includes(type.group) ||
        (own.length === 0 && domain !== project && type.group.endsWith(`.${project}`))),
  );
  if (others[0]) return { relation: 'other', groups: [others[0].group], types: others };
  if (isOwn || isShared) return { relation: 'own', groups, types: own, isShared: !isOwn };
  const isNone = isOfNoDomain(held);
  // The types of a company, of which any program may have set it.
  const below = all.filter(({ group }) => domain.includes('.') && group.endsWith(`.${domain}`));
  return { relation: isNone ? 'none' : 'foreign', groups, types: isNone ? own : below };
}

/** Labels that any project puts in front of its own name. */
const COMMON_LABEL =
  /^(?:operator|controller|apps?|sigs|foreground|background|v\d+)$|finali[sz]|clean|delet|remov|purge|protect|teardown/;

/** Returns the words by which a finalizer may call its controller, and not those of its company and its type: `lb` of `lb.acme.dev/finalizer`. */
export function wordsOfFinalizer({ finalizer, type }: Held): string[] {
  const own = `${typeName(type)} ${type.kind}`.toLowerCase();
  const [end = '', company] = /([\w-]+)\.\w+(?=\/|$)/.exec(finalizer) ?? [];
  const words = finalizer.replace(end, '').split(/[./-]+/);
  return words.filter((one) => identifiesProgram(one) && one !== company && !own.includes(one));
}

/** Returns what is behind the first label of a domain, if that is a type's name, or words with which its kind begins or ends (`kubeadm` of KubeadmControlPlane, `api-key` of ApiKey). */
function behindTypeIn(domain: string, { kind, resource }: ResourceType) {
  const [label = '', ...rest] = domain.split('.');
  const part = label.replaceAll('-', '');
  const isPart = resource.startsWith(part) || kind.toLowerCase().endsWith(part);
  return isPart && rest.length > 1 ? rest.join('.') : undefined;
}

/** At least two labels stay: `apps.example.com` becomes `example.com`, `operator.io` does not change. */
function withoutCommonLabels(domain: string): string {
  const own = domain.split('.').filter((label) => !COMMON_LABEL.test(label));
  return own.length > 1 ? own.join('.') : domain;
}

/** Returns the names of the CRDs which explain the finalizer: of the object's own type, or of the other group. */
export function definitionNames(context: Context, held: Held): string[] {
  const types = finalizerDomain(context, held).types.slice(0, 3);
  const custom = [held.type, ...types].filter(({ group }) => !isBuiltIn(group));
  return [...new Set(custom.map(typeName))];
}

/** Returns the update that removes the finalizer, which its controller sends as well. */
export function removalRequest(context: Context, { objects, subject, type }: Held) {
  const [object = { namespace: subject.namespace ?? '', labels: {} }] = objects;
  return realRequest(context, 'UPDATE', type, object);
}
