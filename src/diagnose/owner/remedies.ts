import { listNames, listWords, lowerFirst, shortQuote } from '../../base/text.ts';
import { isBuiltIn, NAMESPACE_TYPE, removalPatch, typeName } from '../../model/facts/metadata.ts';
import type { Remedy, Subject } from '../../model/finding.ts';
import { itemsIn } from '../../model/read.ts';
import { type ResourceType, trialKey } from '../../model/snapshot.ts';
import { type Actor, actorText, isEnding } from '../actors.ts';
import { refusesOtherChange } from '../admission/refusals.ts';
import {
  fixRemedy,
  forceCommand,
  kubectl,
  lookRemedy,
  nameArgs,
  namespaceArgs,
  objectArgs,
  patchCommand,
  preventionRemedies,
  shellCommand,
  withoutPeriod,
  withRole,
} from '../commands.ts';
import { groupsOf, servedType, typeNamedBy } from '../content.ts';
import { type Context, isInside } from '../context.ts';
import { type ContentError, type ErrorOf, isAdmissionError } from '../error-texts.ts';
import { nameOf } from '../results.ts';
import { hasOne, rolesGone, unboundRoles, waysToChange } from '../rights.ts';
import type { Suspect } from './clues.ts';
import {
  finalizerDomain,
  type Held,
  isOftenProviderManaged,
  isProviderManaged,
  isSetByHand,
  knownFinalizer,
  specificFieldManager,
} from './held.ts';
import { isHolder } from './leases.ts';
import { productName } from './names.ts';
import { type Pause, REACHING_RISK, reachesOut } from './settings.ts';
import { invalidity, refusalsFor } from './statements.ts';

// What helps against the states of an owner, and the removal by hand.

const LOGGED = ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job', 'Pod'];
const RESTARTED = ['Deployment', 'StatefulSet', 'DaemonSet'];

/** Returns the command that reads its log; none where no pod of it has a log. Its pods may not have been read. */
export function logRemedies({ now }: Context, actor: Actor): Remedy[] {
  const { kind, namespace, name, pods } = actor;
  // A pod without an image or a node has no log; one that has ended has.
  const started = pods.find(({ phase }) => phase !== 'Pending');
  const hasLogs = LOGGED.includes(kind);
  if (started === undefined && !(hasLogs && actor.ready > 0)) return [];
  const isUnasked = now.logs === undefined && now.forecast === undefined;
  const hint = '. With owner-logs, this gate reads the log itself and quotes its lines';
  const leases = itemsIn(now.cluster.leases);
  const leader = pods.find((pod) => leases.some((one) => isHolder({ ...actor, pods: [pod] }, one)));
  // Of several pods kubectl reads one, and only that which leads says why.
  const one = (pods.length > 1 && leader) || (hasLogs ? undefined : started);
  const of = one ? `pod/${one.name}` : `${kind.toLowerCase()}/${name}`;
  const words = [...namespaceArgs(namespace), '--all-containers', '--tail=50'];
  const text = `Read the log of ${actorText(actor)}${isUnasked ? hint : ''}`;
  return [lookRemedy(text, kubectl('logs', of, ...words))];
}

/** Returns the command for a state that a restart is known to end. */
export function restartCommands(context: Context, actor: Actor): string[] {
  if (!RESTARTED.includes(actor.kind) || isEnding(context, actor)) return [];
  return [kubectl('rollout', 'restart', ...objectArgs(actor))];
}

/** Returns the dry run that shows which guard refuses the removal, which no Event and no status reports. */
export function attemptRemedies(context: Context, held: Held): Remedy[] {
  const { finalizer, type } = held;
  const [object] = held.objects;
  const tried = context.now.trials[trialKey(object?.uid ?? '', finalizer)];
  if (!object || tried?.answer === 'accepted') return [];
  const text = `Try to remove ${finalizer} from ${nameOf(object)} as a dry run: a refusal says what stops the controller`;
  const target = objectArgs(object, typeName(type));
  const command = patchCommand(target, removalPatch(object, [finalizer]));
  return [lookRemedy(text, `${command} --dry-run=server`)];
}

/** Returns the remedy for what was said since the deletion: it need not be about the clean-up. */
export function sayingRemedy(what: string): Remedy {
  const text = `Resolve what ${what} says, if that is why the finalizer stays; otherwise give the deletion more time`;
  return fixRemedy(text);
}

export function resumeRemedy(type: ResourceType, { object, by, field, key }: Pause): Remedy {
  const target = objectArgs(object, typeName(type));
  const text = `Let its controller act on ${nameOf(object)} again: remove ${by}`;
  if (!field) return fixRemedy(text, { command: kubectl('annotate', ...target, `${key}-`) });
  const path = `/${key.replaceAll('.', '/')}`;
  const ended = { op: 'replace', path, value: field[1] === 'true' ? false : 'Managed' };
  const risk = 'what the field stops then starts again, which may be more than its controller';
  return fixRemedy(text, { command: patchCommand(target, [ended]), risk });
}

/** Returns the remedy to install the owner again, or without a place to find it, under the best name that is known. */
export function installRemedy(context: Context, held: Held, workload?: string, where?: string) {
  const { finalizer, type } = held;
  const known = knownFinalizer(held);
  const writer = specificFieldManager(held);
  const called = (known && productName(known)) || workload || (writer && `"${writer}"`);
  const isOwn = finalizerDomain(context, held).types.includes(type);
  const what = called || `the controller of ${isOwn ? type.kind : finalizer}`;
  const find = `Find ${what}, here or outside of the cluster, and make sure that it runs`;
  const way = where === undefined ? find : `Install ${what} again${where}`;
  const ask = `Ask the provider of the cluster why ${what} has not removed ${finalizer}; only the provider can install that controller`;
  const text = isProviderManaged(held) ? ask : `${way}; it then removes the finalizer`;
  if (!reachesOut(context, held)) return fixRemedy(text);
  return withRole('or', { text, risk: REACHING_RISK });
}

/** An owner that exists. */
export type Sufferer = { context: Context; held: Held; candidate: Suspect; actor: Actor };

/** Returns the remedies for an owner whose requests fail, or which lacks a right; what refuses them by admission has a finding of its own. */
export function cureRemedies(owner: Sufferer, error?: ContentError): Remedy[] {
  const { actor, context, held } = owner;
  if (error === undefined || error.kind === 'forbidden') return grantRemedies(owner, error);
  if (isAdmissionError(error) || refusesOtherChange(error, held.type)) return [];
  const called = error.kind === 'invalid' && held.type.kind === error.resource ? held.objects : [];
  const invalid = called.find(({ name }) => error.text.includes(`"${name}" is invalid: `));
  if (invalid !== undefined) return [validityRemedy(invalid, error.text)];
  const resolve = `Resolve the reported error; ${actorText(actor)} then removes the finalizer`;
  if (error.kind !== 'not-found') return [fixRemedy(resolve)];
  const kind = typeNamedBy(context, error.resource, error.group)?.kind ?? error.resource;
  const text = `Create ${kind} ${error.name} again, which the controller needs, unless it belongs in this namespace: a terminating namespace accepts no new objects`;
  return [fixRemedy(text)];
}

/** Returns the remedies that grant a permission that the owner lacks. They add to the role of an earlier run, which may name other objects. */
function grantRemedies(owner: Sufferer, error?: ErrorOf<'forbidden'>): Remedy[] {
  const { context, held, candidate, actor } = owner;
  const { account, rights } = candidate;
  const user = `system:serviceaccount:${account?.namespace}:${account?.name}`;
  const type = typeName(held.type);
  // A text from the cluster is no reason to grant permissions on anything but the held objects.
  if (error !== undefined && `${error.user} ${typeName(error)}` !== `${user} ${type}`) {
    const quote = shortQuote(error.text);
    return [fixRemedy(`Let the request pass, if it is meant to be allowed: "${quote}"`)];
  }
  const watch = rights.watch === undefined ? ['get', 'list', 'watch'] : [];
  const verbs = error?.verb === undefined ? [...watch, 'update', 'patch'] : [error.verb];
  const types = [type, ...waysToChange(held.type).slice(1)];
  // Requests without a name need a rule without names.
  const isByName = verbs.every((verb) => ['get', 'update', 'patch', 'delete'].includes(verb));
  // Its own role also has what it needs besides: that of its name, or the only one with the marks that nobody has.
  const unbound = error || isBuiltIn(held.type.group) ? [] : unboundRoles(context, held.type, true);
  const own = candidate.lost?.role ?? (unbound[1] ? undefined : unbound[0]);
  const names = !own && isByName && held.objects.length === held.count ? held.objects : [];
  const only = [...new Set(names.map(({ name }) => `--resource-name=${name}`))];
  const role = own ?? `${context.now.namespace.name}-${account?.name}-${type}`;
  const made = (kind: string, ...words: string[]): string =>
    `${kubectl('create', kind, role, ...words, '--dry-run=client', '-o', 'yaml')} | ${kubectl('auth', 'reconcile', '-f', '-')}`;
  // Without the Role by which it leads, a controller that was restarted waits for ever.
  const { roles, roleBindings } = context.now.places[account?.namespace ?? ''] ?? {};
  const bound = itemsIn(roleBindings).map((binding) => binding.role.name);
  const lead = itemsIn(own ? roles : undefined).find(
    ({ name, rules }) =>
      !bound.includes(name) && rules.some((one) => hasOne(one.resources, 'leases')),
  )?.name;
  const home = namespaceArgs(account?.namespace);
  const commands = [
    ...(own ? [] : [made('clusterrole', `--verb=${verbs}`, `--resource=${types}`, ...only)]),
    made('clusterrolebinding', `--clusterrole=${role}`, `--user=${user}`),
    ...(lead ? [made('rolebinding', ...home, `--role=${lead}`, `--user=${user}`)] : []),
    // Its next attempt may be up to 17 minutes away.
    ...restartCommands(context, actor),
  ];
  const text = own
    ? `Bind ClusterRole ${own}${lead ? ` and Role ${lead}` : ''} to ${user} again`
    : `Grant ${listWords(verbs)} on ${types.join(' and ')} to ${user}, by a ClusterRole: a terminating namespace accepts no new Role`;
  const what = only.length > 0 ? 'this with objects of these names' : 'this';
  const risk = own
    ? 'the account may then do all that the role allows, in every namespace'
    : `the account may then do ${what} in every namespace, until the ClusterRole and its binding are deleted`;
  const grant = fixRemedy(text, { command: commands.join(' && '), risk });
  const gone = account && !own ? rolesGone(context, account) : [];
  if (gone.length === 0) return [grant];
  const again = `Create ClusterRole ${listNames(gone)} again, as installed with ${actorText(actor)}: a binding for ${user} is left`;
  return [fixRemedy(again), withRole('or', grant)];
}

/** Returns the remedy to delete objects before the owner of their finalizers, as the gate does with `delete: ordered`. */
export function orderRemedies(context: Context, held: Held, before: string): Remedy[] {
  const { subject, type } = held;
  if (type === NAMESPACE_TYPE) return [];
  const end = `before ${before ? `${before} and ` : ''}the namespace`;
  if (!isInside(context, subject.namespace)) {
    // Its controller deletes it when what leads to it is deleted.
    return preventionRemedies(context, `delete what uses ${nameOf(subject)} ${end}`);
  }
  // What an object of another type has made goes with it, and is made again before.
  const makers = held.objects.map((one) => one.ownerReferences.find((by) => by.controller));
  const made = makers[0] && makers.every(Boolean) ? servedType(context, makers[0]) : undefined;
  const of = made?.namespaced && !isBuiltIn(made.group) ? made : type;
  // The other objects of a built-in type, such as Secrets, may be what this clean-up needs.
  const { args, text } = isBuiltIn(of.group)
    ? argsOf(held)
    : { args: [typeName(of), '--all'], text: `the ${of.kind} objects` };
  return preventionRemedies(context, `delete ${text}, and wait until that is done, ${end}`, {
    command: kubectl('delete', ...args, ...namespaceArgs(subject.namespace), '--wait'),
    ...(reachesOut(context, held) && { risk: REACHING_RISK }),
  });
}

/** Returns the objects for one command; the same command works for the rest. */
function argsOf({ count, objects, subject, type }: Held) {
  const names = objects.map(({ name }) => name).slice(0, 10);
  const more = count > names.length ? ` (the first ${names.length} of ${count})` : '';
  const text = `${subject.kind} ${listNames(names)}${more}`;
  return { args: nameArgs(typeName(type), ...names), text };
}

/** Returns the removal by hand, of `siblings` in the same patch (a second would be invalid after it); `refusedBy` would refuse that as well. */
export function removalRemedies(
  context: Context,
  held: Held,
  siblings: readonly string[],
  refusedBy?: Subject,
): Remedy[] {
  const { namespace, content } = context.now;
  const { finalizer, isInSpec, objects, type } = held;
  if (isInSpec) return [specRemoval(context, held)];
  const isNamespace = type === NAMESPACE_TYPE;
  const object = isNamespace ? { ...namespace, kind: 'Namespace', namespace: '' } : objects[0];
  if (object === undefined) return [];
  const invalid = invalidity(context, held, object.uid);
  if (invalid !== undefined && !refusesOtherChange(invalid, type))
    return [validityRemedy(object, invalid.text)];
  const remove = object.finalizers.filter((one) => one === finalizer || siblings.includes(one));
  const but = refusedBy ? `; ${nameOf(refusedBy)} still refuses that too` : '';
  const risk = leakText(context, held);
  const groups = isInside(context, object.namespace) ? groupsOf({ content }) : [];
  const alike = groups.filter(({ finalizers }) => finalizers.includes(finalizer));
  const total = alike.reduce((sum, { count }) => sum + count, 0);
  // Forcing takes every finalizer of this name, also that of another controller (`finalizers.fluxcd.io`).
  const isShared = alike.some((group) => group.type.group !== type.group);
  const force = total > 1 && !isShared ? forceCommand(namespace.name, remove) : undefined;
  if (force !== undefined) {
    const text = `Let this gate remove ${listNames(remove)} from the ${total} objects of this namespace`;
    return [withRole('or', { text: text + but, command: force, risk })];
  }
  const what = remove.length === 1 ? 'this one finalizer' : `these ${remove.length} finalizers`;
  const from = `${isNamespace ? 'metadata.finalizers of ' : ''}${nameOf(object)}${held.count > 1 ? `, the first of ${held.count}` : ''}`;
  const command = patchCommand(objectArgs(object, typeName(type)), removalPatch(object, remove));
  return [withRole('or', { text: `Remove ${what} from ${from}${but}`, command, risk })];
}

/** Returns the product's own way to delete the object and keep what it stands for, which its running controller obeys. */
export function escapeRemedies(held: Held): Remedy[] {
  const { subject, type } = held;
  const known = knownFinalizer(held);
  if (known?.escape === undefined) return [];
  const { leaves, namespaced, patch: usual } = known.escape;
  const patch = JSON.stringify((type.namespaced && namespaced) || usual);
  const { args, text: which } = argsOf(held);
  const target = [...args, ...namespaceArgs(subject.namespace)];
  const text = `Let ${productName(known) ?? 'its controller'} delete only ${which}`;
  const command = kubectl('patch', ...target, '--type=merge', '-p', patch);
  return [withRole('or', { text, command, risk: lowerFirst(withoutPeriod(leaves)) })];
}

/** Returns the remedy for an object that no update can leave as it is, also the removal of a finalizer. */
function validityRemedy(object: { kind: string; name: string }, error: string): Remedy {
  const text = `Make ${nameOf(object)} valid, or let its type accept it as it is: until then every change of it is refused, also the removal of a finalizer`;
  return fixRemedy(`${text}: "${shortQuote(error)}"`);
}

export function removalAsFirstStep(removal: readonly Remedy[]): Remedy[] {
  return removal.map((one) => ({ ...one, role: 'now' }));
}

/** Returns the removal from spec.finalizers by PUT /finalize, which removes all that its body omits, and takes uid and resourceVersion as preconditions. */
function specRemoval(context: Context, held: Held): Remedy {
  const { name, uid } = context.now.namespace;
  const removal = `del(.spec.finalizers[] | select(. == ${JSON.stringify(held.finalizer)}))`;
  const filter = `if .metadata.uid == ${JSON.stringify(uid)} then ${removal} else error("not this namespace") end`;
  return withRole('or', {
    text: `Remove this one entry from spec.finalizers of Namespace ${name}; only PUT /finalize can change them (the command needs jq)`,
    command: [
      kubectl('get', 'namespace', name, '-o', 'json'),
      shellCommand('jq', filter),
      kubectl('replace', '--raw', `/api/v1/namespaces/${name}/finalize`, '-f', '-'),
    ].join(' | '),
    risk: leakText(context, held),
  });
}

/** Words of clouds and of HTTP for what does not exist; Kubernetes has others for its own objects. */
const GONE_OUTSIDE =
  /\b404\b|NotFound(?:Exception|Fault)?\b|\bNoSuch[A-Z]|\b(?:delet|remov|drop|destroy)\w*(?:: .{0,200}| (?:the )?(\w+)\b.{0,200}\b\1) ["'][^"']{1,200}["'] does not exist/i;
/** A 404 of the way to the external resource says nothing about the resource. */
const ON_THE_WAY =
  /\b(?:log ?in|auth(?:enticat\w+|ori[sz]\w+)?|credentials?|tokens?|no handler|routes?)\b/i;

/** Reports whether an error says that what its controller would delete does not exist. */
export function isGoneOutside({ kind, text }: ContentError): boolean {
  return kind === 'other' && GONE_OUTSIDE.test(text) && !ON_THE_WAY.test(text);
}

function leakText(context: Context, held: Held): string {
  if (refusalsFor(context, held).some(({ error }) => isGoneOutside(error)))
    return 'if what its controller no longer finds is the external resource, nothing is leaked';
  const known = knownFinalizer(held)?.leakIfRemoved;
  if (known !== undefined) return lowerFirst(withoutPeriod(known));
  return isSetByHand(held)
    ? 'whoever set it may have meant to keep the object'
    : 'external resources that its controller would have deleted may be leaked; the cluster does not show which';
}

/** Returns the catalogue's advice if no owner is established, for its usual owner; `isMissing`: where that is not installed. */
export function knownRemedies({ now }: Context, held: Held, isMissing = false): Remedy[] {
  const known = knownFinalizer(held);
  if (known === undefined) return [];
  const owner = (productName(known) ?? known.owner).replace(/[,;(].*/, '').trim();
  const { remedy, withoutOwner, prevention = '' } = known;
  // What a running controller needs helps nobody where it is missing, unless a provider may run it.
  const isIdle = remedy === '' || (isMissing && !isOftenProviderManaged(held));
  const usual = isIdle ? '' : `If the owner is ${owner}: ${lowerFirst(remedy)}`;
  return [
    withRole('or', { text: withoutPeriod((isMissing ? withoutOwner : undefined) ?? usual) }),
    // Where a forecast finds nobody to act, no order of deletions helps.
    withRole('next', { text: now.forecast ? '' : withoutPeriod(prevention) }),
  ].filter(({ text }) => text !== '');
}
