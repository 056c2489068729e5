import { matchesGlob } from '../base/text.ts';

/** What the inputs allow. Everything here is a permission; nothing is a wish. */
export interface ForcePolicy {
  mode: 'off' | ForceMode;
  /** Patterns of namespaces that may be forced. */
  namespaces: string[];
  /** A label that the namespace must carry as well. */
  label: { key: string; value: string } | undefined;
  /** Patterns of finalizers that may be removed. */
  finalizers: string[];
  /** May overdue pods whose node is gone be deleted with grace period 0. */
  pods: boolean;
  /** May the namespace be finalized while content remains or could not be read. */
  orphans: 'refuse' | 'accept';
}

export type ForceMode = 'plan' | 'objects' | 'namespace';

export type ActivePolicy = ForcePolicy & { mode: ForceMode };

export function isActive(policy: ForcePolicy): policy is ActivePolicy {
  return policy.mode !== 'off';
}

/**
 * Why this namespace is never written to, whatever the inputs say; `undefined` when it is not
 * protected. Both the plan and every single write ask.
 */
export function protectedBecause(name: string, ownNamespace?: string): string | undefined {
  if (name === '') return 'it has no name';
  if (name === 'default') return '"default" belongs to the cluster';
  if (name.startsWith('kube-')) return 'names that begin with "kube-" belong to Kubernetes';
  if (name.startsWith('openshift')) return 'names that begin with "openshift" belong to OpenShift';
  if (name === ownNamespace) return 'the gate itself runs in it';
  return undefined;
}

/** How a name is allowed: by an entry that spells it out, or only by one with a wildcard. */
type Permission = 'exactly' | 'by-pattern';

export function permissionFor(patterns: readonly string[], name: string): Permission | undefined {
  if (patterns.some((pattern) => !pattern.includes('*') && pattern === name)) return 'exactly';
  return patterns.some((pattern) => matchesGlob(pattern, name)) ? 'by-pattern' : undefined;
}
