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
 * it; `read` fails once the object is deleted, which `field` or `name` identifies.
 */
export interface CleanupNeed {
  action: 'create' | 'read';
  group: string;
  kind: string;
  /** The purpose of the object, as the continuation of a sentence. */
  note: string;
  /** The field of the held object that names it, or what names it in turn; or a field above. */
  field?: string;
  /** Its name; `$name` is the name of the held object, `*` any text. */
  name?: string;
  /** Settings of the held object of which one is the condition; `$namespace` is its namespace. */
  when?: string[];
}

// A test checks every entry against the type: TypeScript reads the strings of a JSON file as `string`.
export const CATALOGUE = entries as CatalogueEntry[];

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
