import { lowerFirst, shellQuote } from '../../base/text.ts';
import { productName } from '../../model/catalogue.ts';
import { NAMESPACE_TYPE, removalPatch } from '../../model/facts/metadata.ts';
import type { Remedy, Subject } from '../../model/finding.ts';
import type { ObjectFacts, ResourceType } from '../../model/snapshot.ts';
import { type Actor, actorText, isEnding } from '../actors.ts';
import { changerRemedy, refusesOtherChange } from '../admission/refusals.ts';
import { memoryFix, undoneText } from '../backends.ts';
import {
  forceCommand,
  kubectl,
  lookRemedy,
  nameArgs,
  namespaceArgs,
  objectArgs,
  patchCommand,
  permissionRemedy,
  preventionRemedies,
  withoutPeriod,
  withRole,
} from '../commands.ts';
import {
  type Context,
  detailOf,
  isBuiltIn,
  isForeseen,
  isInside,
  listNames,
  listWords,
  servedType,
  shortQuote,
  typeName,
} from '../context.ts';
import { type ContentError, classifyErrorText, isAdmissionError } from '../error-texts.ts';
import { waysToChange } from '../rights.ts';
import type { Suspect } from './clues.ts';
import {
  type Held,
  isOftenProviderManaged,
  isProviderManaged,
  knownFinalizer,
  specificFieldManager,
} from './held.ts';
import { lostWithNamespace } from './needs.ts';
import { headsOf } from './partners.ts';
import { REACHING_RISK, reachesOut } from './reach.ts';
import { invalidity, kindOfResource, refusalsFor, typeOfResource } from './statements.ts';

// The remedies for an owner, by its state. The sentence about the owner is in owner.ts.

/** Returns the remedy that gives a workload without pods its pods back. */
export function scaleUpRemedy(actor: Actor): Remedy {
  const { apiVersion, kind } = actor;
  const place = objectArgs(actor);
  const who = actorText(actor);
  const then = `once it has removed the finalizer, Kubernetes continues the deletion within about 10 s${undoneText(actor)}`;
  switch (kind) {
    case 'DaemonSet':
      return withRole('now', {
        text: `Let nodes take the pods of ${who} again; ${then}`,
        ...(Object.keys(actor.nodeSelector).length === 0
          ? { command: kubectl('describe', ...place) }
          : {
              command: patchCommand(place, [
                { op: 'remove', path: '/spec/template/spec/nodeSelector' },
              ]),
              risk: 'its pods start on every node that its tolerations allow',
            }),
      });
    case 'CronJob':
    case 'Job':
      return withRole('now', {
        text: `Resume ${who}; ${then}`,
        command: patchCommand(place, [{ op: 'replace', path: '/spec/suspend', value: false }]),
      });
    default: {
      const [group] = apiVersion.split('/');
      const type = group === 'apps' ? undefined : `${kind.toLowerCase()}.${group}`;
      const command = kubectl('scale', ...objectArgs(actor, type), '--replicas=1');
      return withRole('now', { text: `Scale ${who} up; ${then}`, command });
    }
  }
}

/** Returns the command that reads its log; none where no pod of it has a log. Its pods may not have been read. */
export function logRemedies({ now }: Context, actor: Actor): Remedy[] {
  const { kind, namespace, name, pods } = actor;
  const hasLogs = ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job', 'Pod'].includes(
    kind,
  );
  // A container that was never started (no image, no node) has no log.
  const started = pods.find(
    ({ phase, containers = [] }) =>
      phase === 'Running' || containers.some(({ restarts = 0 }) => restarts > 0),
  );
  if (started === undefined && !(hasLogs && pods.length === 0 && actor.ready > 0)) return [];
  const isHint = now.logs === undefined && now.forecast === undefined;
  const of = hasLogs ? `${kind.toLowerCase()}/${name}` : `pod/${started?.name}`;
  return [
    lookRemedy(
      `Read the log of ${actorText(actor)}${isHint ? '. With owner-logs, this gate reads the log itself and quotes its lines about the object' : ''}`,
      kubectl('logs', of, ...namespaceArgs(namespace), '--all-containers', '--tail=50'),
    ),
  ];
}

/** Returns the remedies for pods of the owner that are not ready: what ended a container is in the log before its restart. */
export function podRemedies(actor: Actor, who: string, then: string): Remedy[] {
  const has = (reason: RegExp): boolean =>
    actor.pods.some(({ troubles }) => troubles.some((text) => reason.test(text)));
  const isCrash = has(/CrashLoopBackOff/);
  const fix =
    memoryFix(actor, who) ??
    (has(/ImagePull|ErrImage|InvalidImageName/)
      ? `Correct the image of ${who}, or the Secret by which it is pulled`
      : `Fix what keeps ${who} from being ready`);
  const [crashed] = actor.pods.filter(({ ready }) => !ready);
  return [
    withRole('now', { text: `${fix}; ${then}` }),
    ...(isCrash && crashed
      ? [
          lookRemedy(
            `Read why ${who} crashed`,
            kubectl(
              ...['logs', `pod/${crashed.name}`, ...namespaceArgs(actor.namespace)],
              ...['--previous', '--all-containers', '--tail=50'],
            ),
          ),
        ]
      : []),
    describeRemedy(actor),
  ];
}

function describeRemedy(actor: Actor): Remedy {
  const command = kubectl('describe', ...objectArgs(actor));
  return lookRemedy(`See the state of ${actorText(actor)}`, command);
}

/** Returns the remedy to restart the owner, for a state that a restart is known to end. */
export function restartRemedies(context: Context, actor: Actor, text: string): Remedy[] {
  return restartCommands(context, actor).map((command) => withRole('now', { text, command }));
}

/** Returns the command that restarts a workload, if there is one. */
export function restartCommands(context: Context, actor: Actor): string[] {
  const canRestart = ['Deployment', 'StatefulSet', 'DaemonSet'].includes(actor.kind);
  return canRestart && !isEnding(context, actor)
    ? [kubectl('rollout', 'restart', ...objectArgs(actor))]
    : [];
}

/** Returns the remedy for what the status has said since the deletion. */
export function statusRemedy({ kind, name }: ObjectFacts, words: string): Remedy {
  return sayingRemedy(`the status of ${kind} ${name}`, words);
}

/** Returns the remedy for what a status or an Event has said since the deletion: it need not be about the clean-up. */
export function sayingRemedy(what: string, words: string): Remedy {
  const isAbsence = classifyErrorText(words).some(({ kind }) => kind === 'not-found');
  const text = isAbsence
    ? `Create what ${what} calls missing, unless it belongs in this namespace: a terminating namespace accepts no new objects`
    : `Resolve what ${what} says, if that is why the finalizer stays; otherwise give the deletion more time`;
  return withRole('now', { text });
}

/** Returns the remedy that removes a pause; `by` as `pausedBy` writes it. */
export function resumeRemedy(type: ResourceType, object: ObjectFacts, by: string): Remedy {
  const what = `Let its controller act on ${object.kind} ${object.name} again`;
  // A condition only reports a pause that is set somewhere else.
  if (by.startsWith('status '))
    return withRole('now', { text: `${what}: end the pause that ${by} reports` });
  const text = `${what}: remove ${by}`;
  const place = objectArgs(object, typeName(type));
  const [, how = '', key] = /^(annotation|label) ([^=]+)=/.exec(by) ?? [];
  if (key !== undefined) {
    const verb = how === 'label' ? 'label' : 'annotate';
    return withRole('now', { text, command: kubectl(verb, ...place, `${key}-`) });
  }
  const [field = '', value] = by.split(': ');
  const path = `/${field.replaceAll('.', '/')}`;
  return withRole('now', {
    text: `${what}, if ${field} stops its controller and not only what ${object.name} runs: remove ${by}`,
    command: patchCommand(place, [
      { op: 'replace', path, value: value === 'true' ? false : 'Managed' },
    ]),
    risk: 'what the field stops then starts again',
  });
}

/**
 * Returns the remedy to install the owner again: a workload that was seen, or what is known of it by name. `where`: what
 * follows "again", such as " in another namespace".
 */
export function installRemedy(held: Held, workload: string | undefined, where: string): Remedy {
  const { finalizer } = held;
  const known = knownFinalizer(held);
  const writer = specificFieldManager(held);
  const what =
    (known && productName(known)) ??
    workload ??
    (writer !== ''
      ? `"${writer}"`
      : `the controller of ${isBuiltIn(held.type.group) ? finalizer : held.type.kind}`);
  const text =
    known && isProviderManaged(known)
      ? `Ask the provider of the cluster why ${what} has not removed ${finalizer}; only the provider can install that controller`
      : `Install ${what} again${where}. Once it has removed ${finalizer}, Kubernetes continues the deletion within about 10 s`;
  return withRole('now', { text });
}

/** Answers that ask for fewer requests, in the words of clouds and of HTTP. */
const THROTTLED =
  /throttl|\brate (?:limit )?exceeded|\brate.?limit|too many requests|RequestLimitExceeded|\bSlowDown\b/i;

/** Returns the remedies for an owner whose requests fail; what refuses them by admission has a finding of its own. */
export function cureRemedies(
  owner: { context: Context; held: Held; candidate: Suspect; actor: Actor; removal: Remedy[] },
  error: ContentError | undefined,
  lacksRight: boolean,
): Remedy[] {
  if (error === undefined) return lacksRight ? grantRemedies(owner) : [];
  if (error.kind === 'forbidden') return grantRemedies(owner, error);
  if (isAdmissionError(error)) return [];
  if (THROTTLED.test(error.text)) {
    const text = `Give ${actorText(owner.actor)} more time: raise the timeout. Its requests are throttled, which ends by itself: "${shortQuote(error.text)}"`;
    return [withRole('now', { text })];
  }
  if (refusesOtherChange(error)) return [changerRemedy(error.text)];
  if (error.kind !== 'not-found') {
    const text = `Resolve what is reported; ${actorText(owner.actor)} then removes the finalizer: "${shortQuote(error.text)}"`;
    return [withRole('now', { text })];
  }
  // The API server does not say in which namespace it searched; a reference of the object may.
  const { context, held } = owner;
  const place =
    error.namespace ??
    held.objects
      .flatMap((object) => detailOf(context, object)?.references ?? [])
      .find(({ name, namespace }) => name === error.name && namespace !== undefined)?.namespace;
  const path = [place, error.name].filter((part) => part !== undefined).join('/');
  const what = `${kindOfResource(owner.context, error)} ${path}`;
  // Cluster-scoped objects are in none.
  const isNamespaced = typeOfResource(owner.context, error)?.namespaced !== false;
  const removal =
    (place === undefined || isInside(context, place)) && isNamespaced ? owner.removal : [];
  const create = `Create ${what} again, which the controller needs`;
  if (removal.length === 0 || !isInside(owner.context, owner.held.subject.namespace)) {
    return [withRole('now', { text: create })];
  }
  return [
    ...removalAsFirstStep(removal).map((one) => ({
      ...one,
      text: `If ${what} was in this namespace, which accepts no new objects: ${lowerFirst(one.text)}`,
    })),
    withRole('or', { text: `If it was in another namespace: ${lowerFirst(create)}` }),
  ];
}

/**
 * Returns the remedies that grant a permission that the owner lacks. They add to the role of an earlier run, which may
 * name other objects. A text from the cluster is no reason to grant permissions on anything but the held objects.
 */
function grantRemedies(
  { context, held, candidate, actor }: Parameters<typeof cureRemedies>[0],
  error?: ContentError & { kind: 'forbidden' },
): Remedy[] {
  const { account, rights } = candidate;
  const user = `system:serviceaccount:${account?.namespace}:${account?.name}`;
  const type = typeName(held.type);
  if (error !== undefined && `${error.user} ${typeName(error)}` !== `${user} ${type}`) {
    return checkRemedies(context, error);
  }
  const change =
    rights.watch === undefined ? ['list', 'watch', 'update', 'patch'] : ['update', 'patch'];
  const verbs = error?.verb === undefined ? change : [error.verb];
  const types = [type, ...waysToChange(held.type).slice(1)];
  // Requests without a name need a rule without names.
  const isByName = verbs.every((verb) => ['get', 'update', 'patch', 'delete'].includes(verb));
  const isComplete = held.objects.length === held.count;
  const names = isByName && isComplete ? held.objects.map(({ name }) => name) : [];
  const role = `${context.now.namespace.name}-${account?.name}-${type}`;
  const made = (kind: string, ...words: string[]): string =>
    `${kubectl('create', kind, role, ...words, '--dry-run=client', '-o', 'yaml')} | ${kubectl('auth', 'reconcile', '-f', '-')}`;
  const only = [...new Set(names)].map((one) => `--resource-name=${one}`);
  const restart = restartCommands(context, actor);
  const commands = [
    made('clusterrole', `--verb=${verbs}`, `--resource=${types}`, ...only),
    made('clusterrolebinding', `--clusterrole=${role}`, `--user=${user}`),
    ...restart,
  ];
  const then =
    restart.length > 0
      ? 'After a restart, the controller tries at once'
      : 'The next attempt of the controller may be up to 17 minutes away';
  const grant = {
    text: `Grant ${listWords(verbs)} on ${types.join(' and ')} to ${user}, by a ClusterRole: a Role ${isForeseen(context, held) ? 'would be deleted with this namespace' : 'cannot be created in a terminating namespace'}. ${then}`,
    command: commands.join(' && '),
    risk: `the account may then do this${only.length > 0 ? ' with objects of these names' : ''} in every namespace, until the ClusterRole and its binding are deleted`,
  };
  return [withRole('now', grant)];
}

/** The end of the API server's refusal (apiserver endpoints/handlers/responsewriters/errors.go, forbiddenMessage). */
const REFUSED_PLACE = /in the namespace \\?"([^"\\]+)\\?"/;

/** Returns how to see whether the refusal still stands, and the narrowest grant that would end it. */
function checkRemedies(context: Context, error: ContentError & { kind: 'forbidden' }): Remedy[] {
  const { now } = context;
  const { user, verb, text } = error;
  const quote = `"${shortQuote(text)}"`;
  if (user === undefined || verb === undefined || error.resource === '') {
    return [withRole('now', { text: `Resolve what refuses the request: ${quote}` })];
  }
  const type = typeName(error);
  const place = REFUSED_PLACE.exec(error.message)?.[1];
  const by =
    place === undefined
      ? 'a ClusterRole'
      : place === now.namespace.name
        ? 'a ClusterRole: a Role cannot be created in a terminating namespace'
        : `a Role in Namespace ${place}, no ClusterRole`;
  return [
    permissionRemedy(user, verb, type, place),
    withRole('now', {
      text: `If ${user} is meant to ${verb} ${type}, let it by ${by}: ${quote}`,
    }),
  ];
}

/**
 * Returns the remedy to delete objects before the owner of their finalizers, as the gate does with `delete:
 * ordered`. An object outside of the namespace is deleted by its controller: the object of the namespace that leads to it
 * is deleted instead.
 */
export function orderRemedies(context: Context, held: Held, before: string): Remedy[] {
  const heads = isInside(context, held.subject.namespace) ? [] : headsOf(context, held);
  const [first] = heads;
  const type = (first && servedType(context, first)) ?? held.type;
  const objects = first ? heads.filter(({ kind }) => kind === first.kind) : held.objects;
  const { kind, namespace } = first ?? held.subject;
  const names = objects.map(({ name }) => name).slice(0, MAX_NAMES);
  const all = Math.max(objects.length, first ? 0 : held.count);
  // `--all` would delete what other namespaces use. The other objects of a built-in type, such as Secrets, may be what
  // this clean-up needs.
  const isWhole = !isBuiltIn(type.group) && isInside(context, namespace);
  const more = all > names.length ? ` (the first ${names.length} of ${all})` : '';
  const what = isWhole ? `the ${kind} objects` : `${kind} ${listNames(names)}${more}`;
  const text = `delete ${what}, and wait until ${names.length === 1 && !isWhole ? 'it is' : 'they are'} deleted, before ${before} and the namespace`;
  const which = isWhole ? [typeName(type), '--all'] : nameArgs(typeName(type), ...names);
  return preventionRemedies(context, text, {
    command: kubectl('delete', ...which, ...namespaceArgs(namespace), '--wait'),
    ...(reachesOut(context, held) && { risk: REACHING_RISK }),
  });
}

/** The most names in one command; the same command works for the rest. */
const MAX_NAMES = 10;

/**
 * Returns the last resort, a removal by hand. `siblings` are removed in the same patch: a second patch would be
 * invalid after the first. `refusedBy` would refuse that as well.
 */
export function removalRemedies(
  context: Context,
  held: Held,
  siblings: readonly string[],
  refusedBy?: Subject,
): Remedy[] {
  const { namespace, content } = context.now;
  if (held.isInSpec === true) return [specRemoval(context, held)];
  const isNamespace = held.type === NAMESPACE_TYPE;
  const object = isNamespace ? { ...namespace, kind: 'Namespace', namespace: '' } : held.objects[0];
  if (object === undefined) return [];
  const [invalid] = held.objects
    .slice(0, 1)
    .flatMap((one) => invalidity(context, held, one))
    .filter((error) => !refusesOtherChange(error));
  if (invalid !== undefined) {
    const what = `${object.kind} ${object.name}`;
    const text = `Make ${what} valid, or let its type accept it as it is: until then every change of it is refused, also the removal of a finalizer: "${shortQuote(invalid.text)}"`;
    return [withRole('now', { text })];
  }
  const remove = object.finalizers.filter(
    (name) => name === held.finalizer || siblings.includes(name),
  );
  const what = remove.length === 1 ? 'this one finalizer' : `these ${remove.length} finalizers`;
  const risk = leakText(context, held);
  const place = isNamespace ? 'metadata.finalizers of ' : '';
  const inside = content.flatMap(({ type, read }) =>
    (read.ok && object.namespace === namespace.name ? read.value.terminating : [])
      .filter(({ finalizers }) => finalizers.includes(held.finalizer))
      .map(({ count }) => ({ count, type })),
  );
  // One name may be that of several controllers, as `finalizers.fluxcd.io`.
  const own = inside.filter(({ type }) => type.group === held.type.group);
  const total = own.reduce((sum, { count }) => sum + count, 0);
  const types = new Set(own.map(({ type }) => type.resource));
  const isRefused =
    refusedBy === undefined
      ? ''
      : `; as of now ${refusedBy.kind} ${refusedBy.name} refuses that as well`;
  const one = withRole('or', {
    text: `Remove ${what} from ${place}${object.kind} ${object.name}${total > 1 ? `, the first of ${total}` : ''}${isRefused}`,
    command: patchCommand(objectArgs(object, typeName(held.type)), removalPatch(object, remove)),
    risk,
  });
  // Forcing takes every finalizer of this name, also that of another controller.
  const isAlone = own.length === inside.length;
  const all =
    total > 1 && isAlone ? forceCommand(object.namespace, [...new Set(remove)]) : undefined;
  if (all === undefined) return [one];
  const text = `Let this gate remove it from the ${total} ${types.size > 1 ? 'objects' : held.type.resource}${isRefused}`;
  return [withRole('or', { text, command: all, risk })];
}

/** Returns the product's own way to delete the object and keep what it stands for, which its running controller obeys. */
export function escapeRemedies(held: Held): Remedy[] {
  const { type, objects } = held;
  const [object] = objects;
  const known = knownFinalizer(held);
  if (known?.escape === undefined || object === undefined) return [];
  const { patch, leaves } = known.escape;
  return [
    withRole('or', {
      text: `Let ${productName(known) ?? 'its controller'} delete ${object.kind} ${object.name} without what it stands for`,
      command: kubectl(
        'patch',
        ...objectArgs(object, typeName(type)),
        '--type=merge',
        '-p',
        JSON.stringify(patch),
      ),
      risk: withoutPeriod(leaves),
    }),
  ];
}

/** Returns the removal as the fix: from all objects, and as an alternative from a single one. */
export function removalAsFirstStep(removal: readonly Remedy[]): Remedy[] {
  const [first, ...others] = removal.toReversed();
  return first === undefined ? [] : [{ ...first, role: 'now' }, ...others];
}

/**
 * Puts the removal before the return of a controller whose clean-up reaches beyond the namespace: what it deployed there
 * may be in use.
 */
export function removalBeforeReach(
  context: Context,
  held: Held,
  remedies: readonly Remedy[],
  removal: readonly Remedy[],
): readonly Remedy[] {
  const offered = removal.filter((one) => remedies.includes(one));
  if (offered[0] === undefined || !reachesOut(context, held)) return remedies;
  const others = remedies.filter((one) => !offered.includes(one));
  return [
    ...removalAsFirstStep(offered),
    ...others.map((one) =>
      one.role === 'now' ? { ...one, role: 'or' as const, risk: REACHING_RISK } : one,
    ),
  ];
}

/**
 * Returns the removal from spec.finalizers. Other writes to the namespace keep that list without an error; only PUT
 * /finalize changes it, and removes every entry that its body omits (kubernetes
 * pkg/registry/core/namespace/strategy.go). The body carries uid and resourceVersion as just read, which the server
 * takes as preconditions.
 */
function specRemoval(context: Context, held: Held): Remedy {
  const { name, uid } = context.now.namespace;
  const removal = `del(.spec.finalizers[] | select(. == ${JSON.stringify(held.finalizer)}))`;
  const filter = `if .metadata.uid == ${JSON.stringify(uid)} then ${removal} else error("not this namespace") end`;
  return withRole('or', {
    text: `Remove this one entry from spec.finalizers of Namespace ${name}; only PUT /finalize can change them (the command needs jq)`,
    command: [
      kubectl('get', 'namespace', name, '-o', 'json'),
      `jq ${shellQuote(filter)}`,
      kubectl('replace', '--raw', `/api/v1/namespaces/${name}/finalize`, '-f', '-'),
    ].join(' | '),
    risk: leakText(context, held),
  });
}

/** Words of clouds and of HTTP for what does not exist; Kubernetes has others for its own objects. */
const GONE_OUTSIDE = /\b404\b|\w*NotFound(?:Exception|Fault)?\b|\bNoSuch[A-Z]\w*/;

/** Returns what is leaked when the finalizer is removed by hand; nothing, where its controller was told that it is gone. */
function leakText(context: Context, held: Held): string {
  const [gone] = refusalsFor(context, held).filter(
    ({ error }) =>
      error.kind === 'other' &&
      GONE_OUTSIDE.test(error.text) &&
      lostWithNamespace(context, held, undefined, error) === undefined,
  );
  if (gone !== undefined) {
    return `if what its controller no longer finds is the external resource, nothing is leaked: "${shortQuote(gone.error.text)}"`;
  }
  const known = knownFinalizer(held);
  return known === undefined
    ? 'external resources that its controller would have deleted may be leaked; the cluster does not show which'
    : withoutPeriod(known.leakIfRemoved);
}

/**
 * Returns the catalogue's advice if no owner is established: for its usual owner, under that condition. `isMissing`: for
 * an owner that is not installed.
 */
export function knownRemedies(held: Held, isMissing = false): Remedy[] {
  const known = knownFinalizer(held);
  if (known === undefined) return [];
  const owner = productName(known)?.replace(/,.*/, '') ?? 'the usual controller of this finalizer';
  const { remedy, withoutOwner, prevention = '' } = known;
  const advice = (role: 'or' | 'next', text: string): Remedy[] =>
    text === '' ? [] : [withRole(role, { text: withoutPeriod(text) })];
  // What a running controller needs helps nobody where it is missing, unless a provider may run it.
  const isIdle = remedy === '' || (isMissing && !isOftenProviderManaged(held));
  const usual = isIdle ? '' : `If the owner is ${owner}: ${lowerFirst(remedy)}`;
  return [
    ...advice('or', (isMissing ? withoutOwner : undefined) ?? usual),
    ...advice('next', prevention),
  ];
}
