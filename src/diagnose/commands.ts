import { shellQuote } from '../base/text.ts';
import { removalPatch } from '../model/facts.ts';
import type { Remedy } from '../model/finding.ts';
import { protectedBecause } from '../model/outcome.ts';
import type { ObjectFacts, ResourceType } from '../model/snapshot.ts';
import { type Context, typeName } from './context.ts';

export { removalPatch };

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

/** `-n` and the namespace, for what is in one. */
export function inNamespace(namespace: string | undefined): string[] {
  return namespace === undefined || namespace === '' ? [] : ['-n', namespace];
}

/** A JSON patch on the command line. */
export function patchCommand(target: string[], patch: object[]): string {
  return kubectl('patch', ...target, '--type=json', '-p', JSON.stringify(patch));
}

/** The object as an argument of kubectl, with its place. */
export function target(
  type: ResourceType,
  { namespace, name }: Pick<ObjectFacts, 'namespace' | 'name'>,
): string[] {
  return [...named(typeName(type), name), ...inNamespace(namespace)];
}

/**
 * This gate, told to remove the finalizers from everything in the namespace that is terminating; it waits only as
 * long as it takes to see whether anything moves.
 */
export function forceCommand(namespace: string, finalizers: readonly string[]): string | undefined {
  if (protectedBecause(namespace) !== undefined) return undefined;
  return [
    'namespace-teardown-gate',
    namespace,
    ...['--timeout', '30s'],
    ...['--force-finalize', 'objects', '--force-namespaces', namespace],
    ...['--force-finalizers', finalizers.join(',')],
  ]
    .map(shellQuote)
    .join(' ');
}

/** Entries of the catalogue are sentences; remedies are items of a list. */
export function withoutPeriod(sentence: string): string {
  return sentence.replace(/\.$/, '');
}

export function role(role: NonNullable<Remedy['role']>, remedy: Omit<Remedy, 'role'>): Remedy {
  return { ...remedy, role };
}

/**
 * What has to be done before the namespace is deleted: the business of a forecast, else of the next run;
 * then `late` helps this time. `text` begins with its verb in lower case.
 */
export function beforehand(
  { now: { forecast } }: Context,
  text: string,
  rest: Pick<Remedy, 'command' | 'risk'> = {},
  late: Remedy[] = [],
): Remedy[] {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  if (forecast !== undefined) return [role('now', { text: begun, ...rest })];
  // The same command twice would fail the second time.
  const own = late.length === 0 ? rest : {};
  return [role('next', { text: begun, ...own }), ...late];
}
