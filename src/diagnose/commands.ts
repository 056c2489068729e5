import { shellQuote, upperFirst } from '../base/text.ts';
import type { Remedy, Subject } from '../model/finding.ts';
import { protectedBecause } from '../model/outcome.ts';
import type { Context } from './context.ts';

/** Writes one kubectl call; every word is quoted, so that a name from the cluster stays one word. */
export function kubectl(...words: string[]): string {
  return ['kubectl', ...words].map(shellQuote).join(' ');
}

/**
 * Returns type and name as arguments. Roles and similar types may have the name `--all`, which kubectl would take
 * for a flag (apimachinery pkg/api/validation/path): with the type in front it stays a name.
 */
export function nameArgs(type: string, ...names: string[]): string[] {
  return names.some((name) => name.startsWith('-'))
    ? names.map((name) => `${type}/${name}`)
    : [type, ...names];
}

/** Returns `-n` and the namespace, for namespaced objects. */
export function namespaceArgs(namespace: string | undefined): string[] {
  return namespace === undefined || namespace === '' ? [] : ['-n', namespace];
}

/** Writes a JSON patch as a kubectl call. */
export function patchCommand(target: string[], patch: object[]): string {
  return kubectl('patch', ...target, '--type=json', '-p', JSON.stringify(patch));
}

/** Returns an object as arguments of kubectl, with its namespace; its kind is unambiguous for Kubernetes' own types. */
export function objectArgs(
  { kind, namespace, name }: Pick<Subject, 'kind' | 'namespace' | 'name'>,
  type = kind.toLowerCase(),
): string[] {
  return [...nameArgs(type, name), ...namespaceArgs(namespace)];
}

/**
 * Writes the call of this gate that removes the finalizers from all terminating objects of the namespace. It waits
 * only as long as it takes to see whether the content becomes less.
 */
export function forceCommand(namespace: string, finalizers: readonly string[]): string | undefined {
  if (protectedBecause(namespace) !== undefined) return undefined;
  return [
    // This code does not know how the gate was started; npx needs no installation.
    ...['npx', 'namespace-teardown-gate'],
    namespace,
    ...['--timeout', '30s'],
    ...['--force-finalize', 'objects', '--force-namespaces', namespace],
    ...['--force-finalizers', finalizers.join(',')],
  ]
    .map(shellQuote)
    .join(' ');
}

/** Removes the full stop: entries of the catalogue are sentences, remedies are items of a list. */
export function withoutPeriod(sentence: string): string {
  return sentence.replace(/\.$/, '');
}

export function withRole(role: NonNullable<Remedy['role']>, remedy: Omit<Remedy, 'role'>): Remedy {
  return { ...remedy, role };
}

export function lookRemedy(text: string, command: string): Remedy {
  return { text, command, role: 'look' };
}

/** Returns the remedy that sends a plain GET; an error is an answer, although kubectl then fails. */
export function rawRemedy(what: string, path: string): Remedy {
  const command = `${kubectl('get', '--raw', path)} || true`;
  return lookRemedy(`See what the API server answers for ${what}`, command);
}

/** Returns the remedy that asks whether a user has a permission; "no" is an answer, although kubectl then fails. */
export function permissionRemedy(
  user: string,
  verb: string,
  type: string,
  namespace: string | undefined,
): Remedy {
  const asked = kubectl('auth', 'can-i', verb, type, ...namespaceArgs(namespace), `--as=${user}`);
  return lookRemedy(`See whether ${user} has the permission now`, `${asked} || true`);
}

/** Returns the remedy that shows the whole object. */
export function showObjectRemedy(
  text: string,
  object: Parameters<typeof objectArgs>[0],
  type?: string,
): Remedy {
  return lookRemedy(text, kubectl('get', ...objectArgs(object, type), '-o', 'yaml'));
}

/**
 * Returns the remedies for the time before the namespace is deleted: of a forecast now, otherwise of the next run;
 * then `late` helps this time. `text` begins with its verb in lower case.
 */
export function preventionRemedies(
  { now: { forecast } }: Context,
  text: string,
  rest: Pick<Remedy, 'command' | 'risk'> = {},
  late: Remedy[] = [],
): Remedy[] {
  const remedy = { text: upperFirst(text), ...rest };
  if (forecast !== undefined) return [withRole('now', remedy)];
  // The same command twice would fail the second time.
  return [withRole('next', late.length === 0 ? remedy : { text: remedy.text }), ...late];
}
