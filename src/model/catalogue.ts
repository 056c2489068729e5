import { matchesGlob } from '../base/text.ts';
import entries from './finalizers.json' with { type: 'json' };

/**
 * A well-known finalizer: its owner and what it protects. Names and default-install workloads are conventions: a
 * starting point and a text, not proof that this owner wrote this finalizer.
 */
export interface CatalogueEntry {
  /** `*` stands for any text. */
  match: string;
  /** Kinds; `*` is any kind, `*.group` any kind of that API group. */
  on: string[];
  /** The scope of its objects; `namespace` is the Namespace object itself. */
  scope: 'namespaced' | 'cluster' | 'namespace';
  owner: string;
  /** Of a default installation; names may hold `*`, the namespace is a hint. Empty: not in the cluster, or unknown. */
  workload: { namespace: string; name: string }[];
  /** Several projects use the finalizer or the name: a workload of it is the likely owner if RBAC names the type for it. */
  anyController?: true;
  /** All that the owner creates or reads in the namespace before. Absent: it may need anything that the object names. */
  needs?: CleanupNeed[];
  actsWhenPaused?: true;
  protects: string;
  leakIfRemoved: string;
  remedy: string;
  /** The part of the remedy that remains if the owner is not installed. Empty: nothing; absent: all of it. */
  withoutOwner?: string;
  prevention?: string;
  /** The product's own way to delete the object and keep what it stands for: a merge patch, and what then stays. */
  escape?: { patch: object; namespaced?: object; leaves: string };
  /** The source file that defines the finalizer; empty when it was only seen in use. */
  source: string;
}

/**
 * A type of object in the same namespace that an owner needs to clean up. A terminating namespace refuses to `create`
 * it; `read` fails once the object is deleted, which one of `field`, `via` and `name` identifies.
 */
export interface CleanupNeed {
  action: 'create' | 'read';
  group: string;
  kind: string;
  /** The purpose of the object, as the continuation of a sentence. */
  note: string;
  /** The field of the held object that names it, or a field above. */
  field?: string;
  /** The kind of an object that the held one names, and that names it in turn. */
  via?: string;
  /** Its name; `$name` is the name of the held object, `*` any text. */
  name?: string;
  /** Settings of the held object of which one is the condition; `$namespace` is its namespace. */
  when?: string[];
}

// A test checks every entry against the type: TypeScript reads the strings of a JSON file as `string`.
const CATALOGUE = entries as CatalogueEntry[];

/** Exact names first, then by the length of the text before the first `*`. */
const weightOf = ({ match }: CatalogueEntry): number =>
  match.includes('*') ? match.indexOf('*') : 1_000;
const BY_WEIGHT = CATALOGUE.toSorted((a, b) => weightOf(b) - weightOf(a));

export function lookUpFinalizer(
  finalizer: string,
  { kind, group }: { kind: string; group: string },
): CatalogueEntry | undefined {
  const fits = (on: string): boolean => {
    // Patterns apply to the Namespace object only where they name it: its finalizers have other purposes.
    if (on === '*') return group !== '' || kind !== 'Namespace';
    return on.startsWith('*.') ? `.${group}`.endsWith(on.slice(1)) : kind === on;
  };
  return BY_WEIGHT.find(({ match, on }) => matchesGlob(match, finalizer) && on.some(fits));
}

/** Returns the name of the product; undefined for a family of controllers ("an operator written with kopf"). */
export function productName({ owner }: CatalogueEntry): string | undefined {
  return /^(?:an?|the) /.test(owner) ? undefined : owner.replace(/;.*| \(.*/, '');
}

/** Reports whether the workload has the name of the entry's owner, perhaps behind the name of a release. */
export function isWorkloadOf(entry: CatalogueEntry, name: string): boolean {
  return entry.workload.some((known) => isNamedAs(known.name, name));
}

function isNamedAs(known: string, name: string): boolean {
  // Every operator made with kubebuilder is called `…-controller-manager`.
  const isOwn = known.includes('-') && known !== 'controller-manager';
  return matchesGlob(known, name) || (isOwn && name.endsWith(`-${known}`));
}

/**
 * Returns the entries whose owner has the name of this workload. Names that any program may have are left out, and patterns
 * of many, such as `*-operator-controller-manager`.
 */
export function entriesOfWorkload(
  name: string,
  isOfAnyone: (known: string) => boolean,
): CatalogueEntry[] {
  const isMeant = (known: string): boolean =>
    !known.startsWith('*') && !isOfAnyone(known) && isNamedAs(known, name);
  return CATALOGUE.filter(({ workload }) => workload.some((known) => isMeant(known.name)));
}

/** Returns the products whose controller has this name. */
export function productsOf(name: string): CatalogueEntry[] {
  return CATALOGUE.filter((entry) => isExactWorkloadName(entry, name));
}

/** A name of one word identifies none. */
export function isExactWorkloadName({ workload }: CatalogueEntry, program: string): boolean {
  return program.includes('-') && workload.some(({ name }) => name === program);
}

export function domainOf(finalizer: string): string {
  return finalizer.split('/')[0] as string;
}
