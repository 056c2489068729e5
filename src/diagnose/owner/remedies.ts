import { shellQuote } from '../../base/text.ts';
import { NAMESPACE_TYPE, removalPatch } from '../../model/facts.ts';
import type { Remedy, Subject } from '../../model/finding.ts';
import type { NamespaceFacts, ObjectFacts, ResourceType } from '../../model/snapshot.ts';
import { type Actor, actorsOf, actorText, isAlive, isEnding } from '../actors.ts';
import {
  forceCommand,
  kubectl,
  lookRemedy,
  namespaceArgs,
  objectArgs,
  patchCommand,
  preventionRemedies,
  withoutPeriod,
  withRole,
} from '../commands.ts';
import { type Context, listNames, listWords, shortQuote, typeName } from '../context.ts';
import { waysToChange } from '../rights.ts';
import { type Held, knownFinalizer } from './held.ts';
import { hasProgramName, identifiesProgram } from './names.ts';
import { invalidity, kindOfResource, leaseSeconds, type Refusal } from './state.ts';
import type { Suspect } from './suspects.ts';
import type { Sync } from './syncs.ts';

// The remedies for an owner, by its state. The sentence about the owner is in owner.ts.

export function scaleUpRemedies(context: Context, actor: Actor): Remedy[] {
  const { apiVersion, kind, owner, uid, scaledBy } = actor;
  const place = objectArgs(actor);
  const who = actorText(actor);
  const manager = scaledBy?.manager ?? '';
  const scalers = actorsOf(context).filter(
    (other) => isAlive(other) && identifiesProgram(manager) && hasProgramName(other, manager),
  );
  const undone =
    owner?.controller === true
      ? `. ${owner.kind} ${owner.name} controls it and may set that back: then change it there`
      : scalers.length > 0
        ? `. Field manager "${manager}" has set its replicas, runs (${listNames(scalers.map(actorText), 3)}), and may set that back: then change it there`
        : '';
  const then = `it then removes the finalizer, and Kubernetes finishes the deletion within about ${10 + leaseSeconds(context, actor)} s${undone}`;
  switch (kind) {
    case 'DaemonSet':
      return [
        withRole('now', {
          text: `Let nodes take the pods of ${who} again; ${then}`,
          ...(Object.keys(actor.nodeSelector).length === 0
            ? { command: kubectl('describe', ...place) }
            : {
                command: patchCommand(place, [
                  { op: 'remove', path: '/spec/template/spec/nodeSelector' },
                ]),
                risk: 'its pods start on every node that its tolerations allow',
              }),
        }),
      ];
    case 'CronJob':
    case 'Job':
      return [
        withRole('now', {
          text: `Resume ${who}; ${then}`,
          command: patchCommand(place, [{ op: 'replace', path: '/spec/suspend', value: false }]),
        }),
      ];
    default: {
      const isOwn = ['Deployment', 'StatefulSet', 'ReplicaSet'].includes(kind);
      const type = isOwn ? undefined : `${kind.toLowerCase()}.${apiVersion.split('/')[0]}`;
      const scale = { command: kubectl('scale', ...objectArgs(actor, type), '--replicas=1') };
      const words = isOwn ? `Scale ${who} up` : `Give ${who} replicas again`;
      return [withRole('now', { text: `${words}; ${then}`, ...((isOwn || uid) && scale) })];
    }
  }
}

/** Returns the remedy to read its log. `kubectl logs` takes a type only with a slash. */
export function logRemedy({ now }: Context, actor: Actor): Remedy {
  const { kind, namespace, name, pods } = actor;
  const hasLogs = ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job', 'Pod'].includes(
    kind,
  );
  const isHint = now.logs === undefined && now.forecast === undefined;
  const of = hasLogs ? `${kind.toLowerCase()}/${name}` : `pod/${pods[0]?.name ?? name}`;
  return lookRemedy(
    `Read the log of ${actorText(actor)}${isHint ? '. With owner-logs, this gate reads the log itself and quotes its lines about the object' : ''}`,
    kubectl('logs', of, ...namespaceArgs(namespace), '--all-containers', '--tail=50'),
  );
}

/** Returns the remedy to restart the owner. `because`: why a restart is known to help. */
export function restartRemedies(context: Context, actor: Actor, because?: string): Remedy[] {
  if (!['Deployment', 'StatefulSet', 'DaemonSet'].includes(actor.kind)) return [];
  if (isEnding(context, actor)) return [];
  return [
    withRole(because === undefined ? 'or' : 'now', {
      text:
        because ?? `If ${actorText(actor)} is in back-off, a restart makes it try again at once`,
      command: kubectl('rollout', 'restart', ...objectArgs(actor)),
    }),
  ];
}

export function resumeRemedy(type: ResourceType, object: ObjectFacts, by: string): Remedy {
  const text = `Let its controller act on ${object.kind} ${object.name} again: remove ${by}`;
  const annotation = /^annotation ([^=]+)=/.exec(by)?.[1];
  const field = /^(spec\.\w+): true$/.exec(by)?.[1];
  const place = objectArgs(object, typeName(type));
  if (annotation !== undefined) {
    return withRole('now', { text, command: kubectl('annotate', ...place, `${annotation}-`) });
  }
  if (field === undefined) return withRole('now', { text });
  const path = `/${field.replace('.', '/')}`;
  return withRole('now', {
    text,
    command: patchCommand(place, [{ op: 'replace', path, value: false }]),
    // Jobs and similar types stop the described work by this field, not their controller.
    ...(field.startsWith('spec.suspend') && {
      risk: 'the suspended work starts again as well',
    }),
  });
}

/** Ends a sync as `argocd app terminate-op` does (argo-cd server/application, TerminateOperation). */
export function endSyncRemedy({ type, namespace, name }: Sync): Remedy {
  const phase = '/status/operationState/phase';
  return withRole('now', {
    text: `End the sync of Application ${name}, as "argocd app terminate-op" does; Argo CD then removes the finalizer`,
    command: patchCommand(
      [typeName(type), name, '-n', namespace],
      [
        { op: 'test', path: phase, value: 'Running' },
        { op: 'replace', path: phase, value: 'Terminating' },
      ],
    ),
    risk: 'the sync is reported as failed, and its remaining steps do not run',
  });
}

export function installRemedy(
  { finalizer }: Held,
  what: string,
  isElsewhere = true,
  isManaged = false,
): Remedy {
  if (isManaged) {
    const text = `Ask the provider of the cluster why ${what} has not removed ${finalizer}; only the provider can install that controller`;
    return withRole('now', { text });
  }
  const place = isElsewhere ? ' in another namespace' : '';
  const text = `Install ${what} again${place}. It removes ${finalizer}, and Kubernetes then finishes the deletion within about 10 s`;
  return withRole('now', { text });
}

export function cureRemedies(
  given: { context: Context; held: Held; candidate: Suspect; actor: Actor; removal: Remedy[] },
  refusal: Refusal | undefined,
  lacksRight: boolean,
  isCircle: boolean,
): Remedy[] {
  const { context, held, candidate, actor } = given;
  const { account, rights } = candidate;
  const error = refusal?.error;
  const user =
    account?.namespace === undefined
      ? undefined
      : `system:serviceaccount:${account.namespace}:${account.name}`;
  const first = isCircle
    ? orderRemedies(context, held, 'the objects that their controller needs')
    : [];
  if (error?.kind === 'forbidden' || (error === undefined && lacksRight)) {
    const verb = error?.verb ?? 'patch';
    const type =
      error === undefined || error.resource === '' ? typeName(held.type) : typeName(error);
    const who = error?.user ?? user;
    if (who !== undefined) {
      const types = error === undefined ? [type, ...waysToChange(held.type).slice(1)] : [type];
      const own =
        rights.watch === undefined ? ['list', 'watch', 'update', 'patch'] : ['update', 'patch'];
      const verbs = error?.verb === undefined ? own : [error.verb];
      const isLate = context.now.forecast === undefined;
      const restarts = isLate ? restartRemedies(context, actor) : [];
      const late = isLate ? ': a Role cannot be created in a terminating namespace' : '';
      const soon =
        restarts.length > 0
          ? '. The next attempt of the controller may be up to 17 minutes away; a restart makes it try at once'
          : '';
      // A status text is no reason to grant an account permissions other than these.
      const isItsBusiness = who === user && type === typeName(held.type);
      const names = isItsBusiness && types.length === 1 ? namesToGrant(held, verbs) : [];
      const object = names.length > 0 ? `${type}/${names[0]}` : type;
      const asked = /in the namespace \\?"([^"\\]+)/.exec(error?.text ?? '')?.[1];
      const isElsewhere = asked !== undefined && asked !== context.now.namespace.name;
      const isCluster = asked === undefined && /at the cluster scope/.test(error?.text ?? '');
      const place =
        isCluster || !held.type.namespaced ? [] : ['-n', asked ?? context.now.namespace.name];
      const by = isElsewhere
        ? ` in namespace ${asked}, by a Role and a RoleBinding there`
        : `, by a ClusterRole and a ClusterRoleBinding${late}`;
      return [
        withRole('now', {
          text: `Grant ${listWords(verbs)} on ${types.join(' and ')} to ${who}${by}${soon}`,
          ...(isItsBusiness &&
            !isElsewhere &&
            grant(
              `${context.now.namespace.name}-${account?.name}-${type}`,
              { verbs, types, names, who },
              restarts,
            )),
        }),
        lookRemedy(
          `See whether ${who} has the permission now`,
          `${kubectl('auth', 'can-i', verb, object, ...place, `--as=${who}`)} || true`,
        ),
        ...(isLate && isEnding(context, actor)
          ? [{ ...installRemedy(held, actorText(actor)), role: 'or' as const }]
          : []),
        ...first,
      ];
    }
  }
  switch (error?.kind) {
    case 'not-found': {
      const what = `${kindOfResource(context, error)} ${error.name}`;
      const place = /\bin (?:the )?namespace \\?["']?([a-z0-9-]+)/.exec(error.text)?.[1];
      const restored = place === undefined ? what : `${what} in namespace ${place}`;
      const restore = { text: `Restore ${restored}, which the controller needs` };
      // The API server does not say in which namespace it searched.
      const lost = place === undefined && context.now.forecast === undefined ? given.removal : [];
      return [
        withRole('now', restore),
        ...lost.map((remedy) => ({
          ...remedy,
          text: `If ${what} was in this namespace, where nothing can be created: ${remedy.text}`,
        })),
      ];
    }
    case 'namespace-terminating':
      return [
        withRole('now', {
          text: `Do the controller's work by hand: it must create ${error.resource ?? 'an object'} in namespace ${error.namespace}, which accepts no new objects while it is terminating`,
        }),
      ];
    case 'new-finalizers-refused':
      return [
        withRole('now', {
          text: 'Update the controller to a version that does not add finalizers to what is being deleted',
        }),
      ];
    case 'webhook-unreachable':
    case 'webhook-denied':
    case 'policy-denied':
      return [];
    case 'unavailable':
    case 'timeout':
      return [
        withRole('now', { text: 'Restore the service that the controller needs for its clean-up' }),
      ];
    case undefined:
      return [];
    default:
      return [
        withRole('now', {
          text: `Fix the error that it reports; it then removes the finalizer: "${shortQuote(error?.text ?? '')}"`,
        }),
      ];
  }
}

/**
 * Returns the names of the held objects, if a rule may name them: requests without a name need a rule without
 * names.
 */
function namesToGrant({ objects, count }: Held, verbs: readonly string[]): string[] {
  const isByName = verbs.every((verb) => ['get', 'update', 'patch', 'delete'].includes(verb));
  return isByName && objects.length === count ? [...new Set(objects.map(({ name }) => name))] : [];
}

/**
 * Returns the commands that grant a permission. They add to the role of an earlier run, which may name other
 * objects.
 */
function grant(
  name: string,
  right: Record<'verbs' | 'types' | 'names', readonly string[]> & { who: string },
  restarts: readonly Remedy[],
): Pick<Remedy, 'command' | 'risk'> {
  const { verbs, types, names, who } = right;
  const made = (kind: string, ...words: string[]): string =>
    `${kubectl('create', kind, name, ...words, '--dry-run=client', '-o', 'yaml')} | ${kubectl('auth', 'reconcile', '-f', '-')}`;
  const only = names.map((one) => `--resource-name=${one}`);
  const commands = [
    made('clusterrole', `--verb=${verbs}`, `--resource=${types}`, ...only),
    made('clusterrolebinding', `--clusterrole=${name}`, `--user=${who}`),
    ...restarts.flatMap(({ command }) => command ?? []),
  ];
  const what = only.length > 0 ? ' with objects of these names' : '';
  const risk = `the account may then do this${what} in every namespace, until the ClusterRole and its binding are deleted`;
  return { command: commands.join(' && '), risk };
}

/**
 * Returns the remedy to delete objects before the owner of their finalizers, as the gate does with `delete:
 * ordered`.
 */
export function orderRemedies(context: Context, held: Held, before: string): Remedy[] {
  const { kind } = held.subject;
  const text = `delete the ${kind} objects, and wait until they are deleted, before ${before} and the namespace`;
  return preventionRemedies(context, text, {
    command: kubectl(
      'delete',
      typeName(held.type),
      '--all',
      ...namespaceArgs(held.subject.namespace),
      '--wait',
    ),
  });
}

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
  if (held.isInSpec === true) return [specRemoval(namespace, held)];
  const isNamespace = held.type === NAMESPACE_TYPE;
  const object = isNamespace ? { ...namespace, kind: 'Namespace', namespace: '' } : held.objects[0];
  if (object === undefined) return [];
  const [invalid] = held.objects.slice(0, 1).flatMap((one) => invalidity(context, held, one));
  if (invalid !== undefined) {
    const what = `${object.kind} ${object.name}`;
    const text = `Make ${what} valid, or let its type accept it as it is: until then every change of it is refused, also the removal of a finalizer: "${shortQuote(invalid.text)}"`;
    return [withRole('now', { text })];
  }
  const remove = object.finalizers.filter(
    (name) => name === held.finalizer || siblings.includes(name),
  );
  const what = remove.length === 1 ? 'this one finalizer' : `these ${remove.length} finalizers`;
  const risk = leakText(held);
  const place = isNamespace ? 'metadata.finalizers of ' : '';
  const inside = content.flatMap(({ type, read }) =>
    (read.ok && object.namespace === namespace.name ? read.value.terminating : [])
      .filter(({ finalizers }) => finalizers.includes(held.finalizer))
      .map(({ count }) => ({ count, resource: type.resource })),
  );
  const total = inside.reduce((sum, { count }) => sum + count, 0);
  const types = new Set(inside.map(({ resource }) => resource));
  const isRefused =
    refusedBy === undefined
      ? ''
      : `; as of now ${refusedBy.kind} ${refusedBy.name} refuses that as well`;
  const one = withRole('or', {
    text: `Remove ${what} from ${place}${object.kind} ${object.name}${total > 1 ? `, the first of ${total}` : ''}${isRefused}`,
    command: patchCommand(objectArgs(object, typeName(held.type)), removalPatch(object, remove)),
    risk,
  });
  const all = total > 1 ? forceCommand(object.namespace, [...new Set(remove)]) : undefined;
  if (all === undefined) return [one];
  return [
    one,
    withRole('or', {
      text: `Let this gate remove it from the ${total} ${types.size > 1 ? 'objects' : held.type.resource}${isRefused}`,
      command: all,
      risk,
    }),
  ];
}

/** Returns the removal as the fix: from all objects, and as an alternative from a single one. */
export function removalAsFirstStep(removal: readonly Remedy[]): Remedy[] {
  const [first, ...others] = removal.toReversed();
  return first === undefined ? [] : [{ ...first, role: 'now' }, ...others];
}

/**
 * Returns the removal from spec.finalizers. Other writes to the namespace keep that list without an error; only PUT
 * /finalize changes it, and removes every entry that its body omits (kubernetes
 * pkg/registry/core/namespace/strategy.go). The body carries uid and resourceVersion as just read, which the server
 * takes as preconditions.
 */
function specRemoval({ name, uid }: NamespaceFacts, held: Held): Remedy {
  const removal = `del(.spec.finalizers[] | select(. == ${JSON.stringify(held.finalizer)}))`;
  const filter = `if .metadata.uid == ${JSON.stringify(uid)} then ${removal} else error("not this namespace") end`;
  return withRole('or', {
    text: `Remove this one entry from spec.finalizers of Namespace ${name}; only PUT /finalize can change them (the command needs jq)`,
    command: [
      kubectl('get', 'namespace', name, '-o', 'json'),
      `jq ${shellQuote(filter)}`,
      kubectl('replace', '--raw', `/api/v1/namespaces/${name}/finalize`, '-f', '-'),
    ].join(' | '),
    risk: leakText(held),
  });
}

/** Returns what is leaked when the finalizer is removed by hand. */
function leakText(held: Held): string {
  const known = knownFinalizer(held);
  return known === undefined
    ? 'external resources that its controller would have deleted may be leaked; the cluster does not show which'
    : withoutPeriod(known.leakIfRemoved);
}

/** Returns the catalogue's advice; `isMissing`: for an owner that is not installed. */
export function knownRemedies(held: Held, isMissing = false): Remedy[] {
  const known = knownFinalizer(held);
  const text = isMissing ? (known?.withoutOwner ?? known?.remedy) : known?.remedy;
  return text ? [withRole(isMissing ? 'or' : 'now', { text: withoutPeriod(text) })] : [];
}
