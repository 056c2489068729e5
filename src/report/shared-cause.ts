import type { NamespaceResult } from '../model/result.ts';

/**
 * One dead add-on holds every namespace: told once for all of them, else the second telling would push
 * other things out of sight. Maps each namespace to the earlier one whose causes are its own.
 */
export function sameCauseAs(
  ordered: readonly NamespaceResult[],
): ReadonlyMap<NamespaceResult, NamespaceResult> {
  const first = new Map<string, NamespaceResult>();
  const same = new Map<NamespaceResult, NamespaceResult>();
  for (const namespace of ordered) {
    const key = clusterCauses(namespace);
    if (key === '') continue;
    const earlier = first.get(key);
    if (earlier === undefined) first.set(key, namespace);
    else same.set(namespace, earlier);
  }
  return same;
}

/** Root causes outside of the namespace, where there are no others; empty otherwise. */
function clusterCauses({ diagnosis, forced }: NamespaceResult): string {
  if (diagnosis === undefined || diagnosis.rootCauses.length === 0 || forced !== null) return '';
  const roots = new Set(diagnosis.rootCauses);
  const causes = diagnosis.findings.filter(({ id }) => roots.has(id));
  return causes.every(({ scope }) => scope === 'cluster') ? diagnosis.rootCauses.join('\n') : '';
}
