import entries from './finalizers.json' with { type: 'json' };

/**
 * Well-known finalizers: who removes them and what they protect. Names and default-install workloads
 * are conventions: a starting point and a text, not proof that this owner wrote this finalizer.
 */
export interface CatalogueEntry {
  match: string;
  matchKind: 'exact' | 'prefix' | 'glob';
  /** Kinds that carry it; `*` is any kind, `*.group` any kind of that API group. */
  on: string[];
  /** Where its objects live; `namespace` is the Namespace object itself. */
  scope: 'namespaced' | 'cluster' | 'namespace';
  owner: string;
  /** Where a default installation runs the owner; names may hold `*`. Empty: not in the cluster, or unknown. */
  workload: { namespace: string; name: string }[];
  protects: string;
  leakIfRemoved: string;
  remedy: string;
  blocksNamespace: boolean;
  /** Where the finalizer was traced to; empty when it was only seen in use. */
  source: string;
}

export interface FinalizerHolder {
  kind: string;
  /** Empty for the core group. */
  group: string;
}

// A test checks every entry against the type: TypeScript reads the strings of a JSON file as `string`.
const CATALOGUE = entries as CatalogueEntry[];

const EXACT = new Map<string, CatalogueEntry[]>();
const PREFIXES: CatalogueEntry[] = [];
const GLOBS: { pattern: RegExp; entry: CatalogueEntry }[] = [];
for (const entry of CATALOGUE) {
  if (entry.matchKind === 'exact')
    EXACT.set(entry.match, [...(EXACT.get(entry.match) ?? []), entry]);
  else if (entry.matchKind === 'prefix') PREFIXES.push(entry);
  else GLOBS.push({ pattern: globPattern(entry.match), entry });
}
PREFIXES.sort((a, b) => b.match.length - a.match.length);

/** Exact beats prefix, the longest prefix wins, a glob comes last. The kind must fit, where it is known. */
export function lookUpFinalizer(
  finalizer: string,
  on?: FinalizerHolder,
): CatalogueEntry | undefined {
  const fits = (entry: CatalogueEntry) =>
    on === undefined || entry.on.some((kind) => fitsKind(kind, on));
  return (
    EXACT.get(finalizer)?.find(fits) ??
    PREFIXES.find((entry) => finalizer.startsWith(entry.match) && fits(entry)) ??
    GLOBS.find(({ pattern, entry }) => pattern.test(finalizer) && fits(entry))?.entry
  );
}

/** What stays behind for ever when the finalizer is removed by hand; undefined when nobody knows. */
export function leakOf(finalizer: string, on?: FinalizerHolder): string | undefined {
  return lookUpFinalizer(finalizer, on)?.leakIfRemoved;
}

function fitsKind(kind: string, on: FinalizerHolder): boolean {
  // The Namespace itself only where it is meant: it holds its finalizers for reasons of its own.
  if (kind === '*') return on.kind !== 'Namespace' || on.group !== '';
  if (!kind.startsWith('*.')) return kind === on.kind;
  return on.group === kind.slice(2) || on.group.endsWith(kind.slice(1));
}

/** `*` is any text but not nothing. */
function globPattern(glob: string): RegExp {
  const parts = glob.split('*').map((part) => part.replace(/[.\\+?^${}()|[\]]/g, '\\$&'));
  // Finalizers are at most 316 characters long and hold at most two of these: no blow-up.
  return new RegExp(`^${parts.join('.+')}$`);
}
