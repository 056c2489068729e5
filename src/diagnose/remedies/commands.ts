import { shellQuote } from '../../base/text.ts';

/** One kubectl call; every word is quoted, so names from the cluster stay words. */
export function kubectl(...words: string[]): string {
  return ['kubectl', ...words].map(shellQuote).join(' ');
}

/**
 * Type and name as arguments. Roles and their like may be called `--all`, which kubectl would take
 * for a flag (apimachinery pkg/api/validation/path): with the type in front it stays a name.
 */
export function named(type: string, ...names: string[]): string[] {
  return names.some((name) => name.startsWith('-'))
    ? names.map((name) => `${type}/${name}`)
    : [type, ...names];
}

export interface FinalizerEntry {
  uid: string;
  finalizer: string;
  /** Where it stands in `metadata.finalizers`. */
  index: number;
}

/**
 * Removes exactly this entry of exactly this object. If it was replaced or its list has moved, a
 * `test` fails and the server answers 422 without changing anything.
 */
export function removalPatch({ uid, finalizer, index }: FinalizerEntry): string {
  return JSON.stringify([
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path: `/metadata/finalizers/${index}`, value: finalizer },
    { op: 'remove', path: `/metadata/finalizers/${index}` },
  ]);
}

/** A JSON patch on the command line. */
export function patchCommand(target: string[], patch: string): string {
  return kubectl('patch', ...target, '--type=json', '-p', patch);
}

/** Namespaces that this gate never forces, so it must not be recommended for them either. */
const PROTECTED = /^(?:default$|kube-|openshift)/;

/** This gate, told to remove the finalizer from everything in the namespace that is terminating. */
export function forceCommand(namespace: string, finalizer: string): string | undefined {
  if (PROTECTED.test(namespace)) return undefined;
  const words = ['--force-finalize', 'objects', '--force-namespaces', namespace];
  return ['namespace-teardown-gate', namespace, ...words, '--force-finalizers', finalizer]
    .map(shellQuote)
    .join(' ');
}
