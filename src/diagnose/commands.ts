import { listWords, shellQuote, upperFirst } from '../base/text.ts';
import { OUT_OF_MEMORY } from '../model/facts/workloads.ts';
import type { Remedy, Subject } from '../model/finding.ts';
import { protectedBecause } from '../model/outcome.ts';
import { partnerKey, type Wanted } from '../model/snapshot.ts';
import { type Actor, actorText } from './actors.ts';
import { servedType } from './content.ts';
import type { Context } from './context.ts';
import { identifiesProgram } from './owner/names.ts';

/** Writes one call; every word is quoted, so that a name from the cluster stays one word. */
export function shellCommand(...words: string[]): string {
  return words.map(shellQuote).join(' ');
}

export function kubectl(...words: string[]): string {
  return shellCommand('kubectl', ...words);
}

/** Returns type and name as arguments. A Role may be called `--all`: with the type in front it is no flag (pkg/api/validation/path). */
export function nameArgs(type: string, ...names: string[]): string[] {
  const isFlag = names.some((name) => name.startsWith('-'));
  return isFlag ? names.map((name) => `${type}/${name}`) : [type, ...names];
}

export function namespaceArgs(namespace: string | undefined): string[] {
  return namespace === undefined || namespace === '' ? [] : ['-n', namespace];
}

export function patchCommand(target: string[], patch: object[]): string {
  return kubectl('patch', ...target, '--type=json', '-p', JSON.stringify(patch));
}

/** Returns an object as arguments of kubectl, with its namespace; its kind is unambiguous for Kubernetes' own types. */
export function objectArgs(object: Omit<Subject, 'apiVersion'>, type?: string): string[] {
  const { kind, namespace, name } = object;
  return [...nameArgs(type ?? kind.toLowerCase(), name), ...namespaceArgs(namespace)];
}

/** Writes the call of this gate that removes the finalizers; it waits only as long as it takes to see whether the content becomes less. */
export function forceCommand(namespace: string, finalizers: readonly string[]): string | undefined {
  if (protectedBecause(namespace) !== undefined) return undefined;
  const force = ['--force-finalize', 'objects', '--force-namespaces', namespace];
  const only = ['--force-finalizers', finalizers.join(',')];
  // This code does not know how the gate was started; npx needs no installation.
  const gate = ['npx', 'namespace-teardown-gate', namespace, '--timeout', '30s'];
  return shellCommand(...gate, ...force, ...only);
}

/** Removes the full stop: entries of the catalogue are sentences, remedies are items of a list. */
export function withoutPeriod(sentence: string): string {
  return sentence.replace(/\.$/, '');
}

export function withRole(role: NonNullable<Remedy['role']>, remedy: Omit<Remedy, 'role'>): Remedy {
  return { ...remedy, role };
}

type How = Pick<Remedy, 'command' | 'risk'>;

/** Returns the remedy that a person carries out first. */
export function fixRemedy(text: string, how: How = {}): Remedy {
  return { text, ...how, role: 'now' };
}

export function lookRemedy(text: string, command: string): Remedy {
  return { text, command, role: 'look' };
}

export function showObjectRemedy(text: string, object: Parameters<typeof objectArgs>[0]): Remedy {
  return lookRemedy(text, kubectl('get', ...objectArgs(object), '-o', 'yaml'));
}

/** Returns the remedy for the time before the deletion: of a forecast now, otherwise of the next run. */
export function preventionRemedies({ now }: Context, text: string, how: How = {}): Remedy[] {
  return [withRole(now.forecast ? 'now' : 'next', { text: upperFirst(text), ...how })];
}

/** Returns the objects without which the pods of a workload do not start. */
export function neededToStart(context: Context, actor: Actor): Wanted['partners'] {
  const { account, namespace, requires = [] } = actor;
  return [{ kind: 'ServiceAccount', name: account.name }, ...requires].flatMap(({ kind, name }) => {
    const type = servedType(context, { apiVersion: 'v1', kind });
    return type ? [{ type, namespace, name }] : [];
  });
}

/** Returns the remedies that give a workload without pods its pods back. `then`: what happens next. */
export function startRemedies(context: Context, actor: Actor, then: string): [Remedy, ...Remedy[]] {
  const { owner, scaledBy } = actor;
  const absent = neededToStart(context, actor).flatMap(({ type, namespace, name }) => {
    const read = context.now.partners[partnerKey({ ...type, namespace, name })];
    return read?.ok && read.value === undefined ? `${type.kind} ${namespace}/${name}` : [];
  });
  const all = listWords([...new Set(absent)]);
  const create = all && `first create ${all}, without which its pods do not start. Then `;
  const { text, ...how } = scaleUp(actor);
  const start = upperFirst(create + text);
  const { manager = '' } = scaledBy ?? {};
  // What manages it would have set back what a person set; `kubectl scale` leaves no field manager.
  const isByHand = /^(?:|kubectl.*|oc|Mozilla|k9s|lens.*|node-fetch|dashboard)$/i.test(manager);
  const known = identifiesProgram(manager) && `field manager "${manager}"`;
  const by = !isByHand && (owner ? `${owner.kind} ${owner.name}` : known);
  if (!by) return [fixRemedy(`${start}; ${then}`, how)];
  const through = `${create}start ${actorText(actor)} through ${by}, which manages it (by its settings, or in Git); ${then}`;
  const byHand = `${start} by hand, which helps until ${by} undoes it`;
  return [fixRemedy(upperFirst(through)), withRole('or', { text: byHand, ...how })];
}

function scaleUp(actor: Actor): Omit<Remedy, 'role'> {
  const { apiVersion, kind, nodeSelector } = actor;
  const who = actorText(actor);
  if (kind === 'Job' || kind === 'CronJob') {
    const patch = { op: 'replace', path: '/spec/suspend', value: false };
    return { text: `resume ${who}`, command: patchCommand(objectArgs(actor), [patch]) };
  }
  if (kind === 'DaemonSet') {
    const patch = { op: 'remove', path: '/spec/template/spec/nodeSelector' };
    const text = `let nodes take the pods of ${who} again`;
    if (Object.keys(nodeSelector).length === 0) return { text };
    const risk = 'its pods start on every node that its tolerations allow';
    return { text, command: patchCommand(objectArgs(actor), [patch]), risk };
  }
  const [group] = apiVersion.split('/');
  const type = group === 'apps' ? undefined : `${kind.toLowerCase()}.${group}`;
  const command = kubectl('scale', ...objectArgs(actor, type), '--replicas=1');
  return { text: `scale ${who} up`, command };
}

/** Returns the remedies for pods that are not ready: what ended a container is in the log before its restart. */
export function podRemedies(actor: Actor, then: string): Remedy[] {
  const who = actorText(actor);
  const { namespace, pods } = actor;
  const all = pods.flatMap(({ troubles }) => troubles).join('\n');
  const [, missing] = /ConfigError: ((?:secret|configmap) "\S+") not found/.exec(all) ?? [];
  const fix = all.includes(OUT_OF_MEMORY)
    ? `Raise the memory limit of ${who}`
    : all.includes('Image')
      ? `Correct the image of ${who}, or the Secret by which it is pulled`
      : missing
        ? `Create ${missing} in namespace ${namespace} again, which ${who} needs`
        : `Fix what keeps ${who} from being ready`;
  const crashed = all.includes('CrashLoopBackOff') && pods.find(({ ready }) => !ready);
  const words = [...namespaceArgs(namespace), '--previous', '--all-containers', '--tail=50'];
  const look = crashed
    ? lookRemedy(`Read why ${who} crashed`, kubectl('logs', `pod/${crashed.name}`, ...words))
    : lookRemedy(`See the state of ${who}`, kubectl('describe', ...objectArgs(actor)));
  return [fixRemedy(`${fix}; ${then}`), look];
}
