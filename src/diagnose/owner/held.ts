import type { Subject } from '../../model/finding.ts';
import type { FinalizerWriter, ObjectFacts, ResourceType } from '../../model/snapshot.ts';
import { type CatalogueEntry, lookUpFinalizer } from '../catalogue.ts';
import { typeName } from '../display.ts';
import type { View } from '../draft.ts';

/** An object that a finalizer holds; its owner is wanted. */
export interface Held {
  finalizer: string;
  object: Subject;
  writers: readonly FinalizerWriter[];
  /** Absent for the namespace's own finalizers. */
  type?: ResourceType;
  facts?: ObjectFacts;
  /** How many objects are held alike. */
  count: number;
  /** It stands in spec.finalizers of the namespace, which other controllers serve than metadata's. */
  isInSpec?: boolean;
}

export function writerOf(held: Held): FinalizerWriter | undefined {
  return held.writers.find((entry) => entry.finalizer === held.finalizer);
}

export function knownOwner(held: Held): CatalogueEntry | undefined {
  const known = lookUpFinalizer(held.finalizer, {
    kind: held.object.kind,
    group: held.type?.group ?? '',
  });
  // The garbage collector and others look at metadata.finalizers alone.
  return held.isInSpec === true && known?.scope !== 'namespace' ? undefined : known;
}

/** Removed by a controller inside kube-controller-manager, which no workload shows. */
export function isOfControllerManager(held: Held): boolean {
  return knownOwner(held)?.workload.some(({ name }) => name === 'kube-controller-manager') ?? false;
}

/**
 * The type that the finalizer belongs to, as a CRD would be called: that of the object, or, on a
 * built-in object, the one that the finalizer's domain names (`widgets.example.com/cleanup` on a Pod).
 */
export function crdName(view: View, held: Held): string | undefined {
  if (held.type !== undefined && !isBuiltIn(held.type.group)) return typeName(held.type);
  const domain = held.finalizer.split('/')[0] ?? '';
  const named = view.now.content.find(({ type }) => typeName(type) === domain);
  return named === undefined || isBuiltIn(named.type.group) ? undefined : domain;
}

/**
 * API groups that a finalizer speaks for: that of its object, if it is an extension, and those whose
 * name is the domain of the finalizer or ends in it, or the other way round. A domain that could be a
 * type of the group must be one: `crowd.example.com/keep` is not the business of whoever made
 * `widgets.example.com`.
 */
export function groupsOf(view: View, held: Held): string[] {
  const own = held.type?.group ?? '';
  const isExtension = own !== '' && !isBuiltIn(own);
  const domain = held.finalizer.split('/')[0] ?? '';
  const served = view.now.discovery.ok ? view.now.discovery.value.groups : [];
  const fits = (group: string): boolean => {
    if (group === domain || group.endsWith(`.${domain}`)) return true;
    if (!domain.endsWith(`.${group}`)) return false;
    const types = view.now.content.filter(({ type }) => type.group === group);
    return types.length === 0 || types.some(({ type }) => typeName(type) === domain);
  };
  const related = served.filter(
    (group) => !isBuiltIn(group) && domain.includes('.') && fits(group),
  );
  return [...new Set([...(isExtension ? [own] : []), ...related])];
}

/** Groups that the API server itself serves: no dot, or under k8s.io without being anybody's CRD. */
export function isBuiltIn(group: string): boolean {
  return !group.includes('.') || BUILT_IN.has(group);
}

const BUILT_IN: ReadonlySet<string> = new Set([
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'events.k8s.io',
  'flowcontrol.apiserver.k8s.io',
  'internal.apiserver.k8s.io',
  'networking.k8s.io',
  'node.k8s.io',
  'rbac.authorization.k8s.io',
  'resource.k8s.io',
  'scheduling.k8s.io',
  'storage.k8s.io',
  'storagemigration.k8s.io',
]);
