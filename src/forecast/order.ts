import { actorText, isAlive } from '../diagnose/actors.ts';
import { closedWebhooks } from '../diagnose/admission/guards.ts';
import { kubectl, nameArgs } from '../diagnose/commands.ts';
import {
  type Context,
  contextOf,
  conversionsOf,
  countsOf,
  extensionApis,
  isBuiltIn,
  itemsIn,
  listWords,
  servedType,
  serviceText,
  willBeDeleted,
} from '../diagnose/context.ts';
import { heldObjects } from '../diagnose/owner/finalizers.ts';
import { type Held, isOfControllerManager } from '../diagnose/owner/held.ts';
import { needsOfOwner } from '../diagnose/owner/needs.ts';
import { keyOf, namedWholes } from '../diagnose/owner/partners.ts';
import { isGitOps, rankOf, reachesOut } from '../diagnose/owner/reach.ts';
import { findOwner } from '../diagnose/owner/verdict.ts';
import { isSameVersion } from '../diagnose/rules/apis.ts';
import { PROTECTION } from '../diagnose/waits.ts';
import { typeName } from '../model/facts/metadata.ts';
import { type Diagnosis, findingsOf } from '../model/finding.ts';
import type { OrderEntry } from '../model/result.ts';
import type {
  ObjectFacts,
  OwnerReference,
  ResourceType,
  Snapshot,
  TypeContent,
} from '../model/snapshot.ts';
import { predict } from './predict.ts';

/** Objects of one type that have to be deleted before the namespace. */
export interface OrderStep {
  type: ResourceType;
  /** Reports whether the step deletes this object of the type. */
  matches: (object: ObjectFacts) => boolean;
  /** Names of the first objects, for people. */
  names: string[];
  /** Whether all objects of the type in the namespace may be deleted. */
  isWhole: boolean;
  /** Whether other objects may need these: their controller runs with them, or a finalizer protects them. */
  isLast?: boolean;
  why: string;
  /** Position of the step. Steps with the same position are deleted together, lower ones first. */
  place: number;
}

/** Why objects of a type are in the order. */
type Reason = Omit<OrderStep, 'place'>;

/** Objects whose finalizer cannot be removed once the namespace is being deleted. */
type Dependent = Held & { why: string };

/**
 * Returns the objects that need a running controller to be deleted, and would lose it with the namespace: their
 * controller runs in the namespace or needs something in it. Objects that created them, or would create them
 * again, are deleted before them.
 */
export function orderOf(now: Snapshot): OrderStep[] {
  const { steps, left } = judgedSteps(now);
  return steps.filter(({ type }) => !left.has(typeName(type)));
}

/**
 * Returns the commands that an order leaves to a person: the deletion of objects whose controller deletes what it
 * deployed for them, in whatever namespace or cluster.
 */
export function commandsElsewhere(now: Snapshot): OrderEntry[] {
  const { steps, left } = judgedSteps(now);
  const why =
    'their controller, or that of objects that they own, then deletes what it deployed, also outside of this namespace';
  return steps
    .filter(({ type }) => left.has(typeName(type)))
    .map((step) => ({ why, command: orderCommand(now.namespace.name, step), isByHand: true }));
}

function judgedSteps(now: Snapshot): { steps: OrderStep[]; left: ReadonlySet<string> } {
  const context = contextOf(predict(now));
  const present = (context.now.forecast?.present.content ?? []).filter(
    ({ read }) => read.ok && read.value.total > 0,
  );
  const dependents = heldObjects(context).flatMap((held): Dependent[] => {
    const why = dependencyOnNamespace(context, held);
    return why === undefined ? [] : [{ ...held, why }];
  });
  const guarded = present.flatMap((content) => guardedType(context, content));
  if (guarded.length + dependents.length === 0) return { steps: [], left: new Set() };
  const held = dependents.flatMap(({ objects }) => objects);
  const known = countsOf({ content: present }).flatMap((count) => [
    ...count.guarded.flatMap(({ examples }) => examples),
    ...(count.sample ? [count.sample] : []),
  ]);
  const seen = [...held, ...known];
  const gitOps = present.filter(({ type }) => isGitOps(type));
  const steps = Map.groupBy(
    [
      ...gitOps.map(({ type }) => allOf(type, 'they would create again what is deleted')),
      ...parentsOf(context, held, seen),
      ...guarded,
      ...dependents.map((dependent) => reasonOf(dependent, present)),
    ],
    ({ type }) => typeName(type),
  );
  const ordered = inDeletionOrder(context, Array.from(steps.values(), joined), seen);
  const reaching = dependents.filter((one) => reachesOut(context, one));
  // An owner takes what it owns with it.
  const owners = ownersOf(
    reaching.flatMap(({ objects }) => objects),
    seen,
  );
  const left = [
    ...reaching.map(({ type }) => type),
    ...owners.flatMap((owner) => servedType(context, owner) ?? []),
    ...(reaching.some(({ type }) => isGitOps(type)) ? gitOps.map(({ type }) => type) : []),
  ];
  return { steps: ordered, left: new Set(left.map(typeName)) };
}

function allOf(type: ResourceType, why: string): Reason {
  return { type, matches: () => true, names: [], isWhole: true, why };
}

function reasonOf(dependent: Dependent, present: readonly TypeContent[]): Reason {
  const { type, finalizer, objects, count, why } = dependent;
  const [{ total } = { total: 0 }] = countsOf({
    content: present.filter((one) => typeName(one.type) === typeName(type)),
  });
  return {
    ...{ type, why, names: objects.map(({ name }) => name) },
    matches: ({ finalizers }) => finalizers.includes(finalizer),
    isLast: FOUNDATIONS.has(typeName(type)) || PROTECTION.test(finalizer),
    // The other objects of a built-in type, such as Secrets, may be what the controller runs with.
    isWhole: count >= total && !isBuiltIn(type.group),
  };
}

/** Joins the reasons of one type into a step. */
function joined(reasons: readonly Reason[]): Reason {
  const [{ type }] = reasons as [Reason];
  return {
    type,
    matches: (object) => reasons.some((reason) => reason.matches(object)),
    names: [...new Set(reasons.flatMap(({ names }) => names))],
    isWhole: reasons.some(({ isWhole }) => isWhole),
    isLast: reasons.every(({ isLast }) => isLast),
    why: listWords([...new Set(reasons.map(({ why }) => why))]),
  };
}

/** Returns why the owner of a finalizer cannot do its work once the namespace is being deleted; undefined if it can. */
function dependencyOnNamespace(context: Context, held: Held): string | undefined {
  if (isOfControllerManager(held)) return undefined;
  const { owner, suspects, verdict } = findOwner(context, held);
  const inside = [owner, ...suspects]
    .flatMap((suspect) => suspect?.actor ?? [])
    .find(({ namespace }) => willBeDeleted(context, namespace));
  const actor = inside ?? owner?.actor;
  const idle =
    actor === undefined || isAlive(actor) ? '' : ', and is not running: it has to be started first';
  if (inside !== undefined) {
    return `${actorText(inside)}, which removes their finalizer, is in the namespace${idle}`;
  }
  // Before the deletion of the namespace there is nobody to remove it either.
  if (verdict === 'missing') return undefined;
  if (owner?.rights.isLocal) return 'the permissions of their controller are in the namespace';
  const needs = needsOfOwner(context, held, owner?.actor);
  const read = needs.flatMap(({ kind, text }) => (kind === 'object' ? [text] : []));
  if (read.length > 0) return `their controller may need ${listWords(read.slice(0, 3))}${idle}`;
  const created = needs.find(({ kind }) => kind === 'create');
  return created && `their controller may have to create ${created.text}${idle}`;
}

/**
 * Types that every server and controller needs, and that Kubernetes creates again at once. If a webhook guards these, no
 * order helps.
 */
const FOUNDATIONS: ReadonlySet<string> = new Set([
  ...['pods', 'services', 'endpoints', 'secrets', 'configmaps', 'serviceaccounts', 'events'],
  ...['deployments.apps', 'statefulsets.apps', 'daemonsets.apps', 'replicasets.apps'],
  ...['controllerrevisions.apps', 'endpointslices.discovery.k8s.io', 'leases.coordination.k8s.io'],
  ...['roles.rbac.authorization.k8s.io', 'rolebindings.rbac.authorization.k8s.io'],
  'events.events.k8s.io',
]);

/**
 * Returns a step for a type whose objects can no longer be deleted after a server in the namespace was deleted.
 */
function guardedType(context: Context, { type, read }: TypeContent): Reason[] {
  if (FOUNDATIONS.has(typeName(type))) return [];
  const labels = (read.ok && read.value.sample?.labels) || {};
  const calls = [
    ...closedWebhooks(context, 'DELETE', type, labels),
    ...(read.ok && read.value.guarded.length > 0
      ? closedWebhooks(context, 'UPDATE', type, labels)
      : []),
    ...conversionsOf(itemsIn(context.now.cluster.conversions)).filter(
      ({ name, storedVersions }) =>
        name === typeName(type) && storedVersions.some((version) => version !== type.version),
    ),
    ...extensionApis(context).filter((server) => isSameVersion(server, type)),
  ];
  const call = calls.find(({ service }) => willBeDeleted(context, service.namespace));
  if (call === undefined) return [];
  const what = serviceText(call.service);
  return [allOf(type, `${what}, which has to answer for their deletion, is in the namespace`)];
}

/** Returns the references to the owners of these objects, direct or through others that are known. */
function ownersOf(
  objects: readonly ObjectFacts[],
  known: readonly ObjectFacts[],
): OwnerReference[] {
  const found = new Set(objects);
  for (const { ownerReferences } of found) {
    for (const { uid } of ownerReferences) {
      for (const one of known) if (one.uid === uid) found.add(one);
    }
  }
  return [...found].flatMap(({ ownerReferences }) => ownerReferences);
}

/** Returns the objects of the namespace that created these objects, or their parents, and would create them again. */
function parentsOf(
  context: Context,
  objects: readonly ObjectFacts[],
  seen: readonly ObjectFacts[],
): Reason[] {
  const own = new Set(objects.map(({ uid }) => uid));
  const makers = ownersOf(objects, seen).filter(
    ({ controller, uid }) => controller && !own.has(uid),
  );
  const byType = Map.groupBy(makers, (maker) => servedType(context, maker));
  return [...byType].flatMap(([type, parents]) =>
    type?.namespaced !== true
      ? []
      : {
          type,
          matches: ({ uid }) => parents.some((parent) => parent.uid === uid),
          names: parents.map(({ name }) => name),
          isWhole: false,
          why: 'they created objects that are deleted first, and would create them again',
        },
  );
}

/**
 * Assigns positions: parents before children, an object before those that it names, last what others may need. Types that
 * wait for each other have the same position.
 */
function inDeletionOrder(
  context: Context,
  steps: readonly Reason[],
  objects: readonly ObjectFacts[],
): OrderStep[] {
  const earlier = new Map(steps.map(({ type }) => [typeName(type), new Set<string>()]));
  const precede = (first: ResourceType | undefined, second: ResourceType | undefined): void => {
    if (first === undefined || second === undefined || first === second) return;
    if (earlier.has(typeName(first))) earlier.get(typeName(second))?.add(typeName(first));
  };
  const byKey = Map.groupBy(objects, ({ apiVersion, kind, name }) => keyOf(apiVersion, kind, name));
  for (const object of objects) {
    const own = servedType(context, object);
    for (const parent of object.ownerReferences) precede(servedType(context, parent), own);
    const owners = ownersOf([object], objects).map(({ uid }) => uid);
    for (const other of namedWholes(context, object).flatMap((name) => byKey.get(name) ?? [])) {
      if (!owners.includes(other.uid)) precede(own, servedType(context, other));
    }
  }
  for (const { type: first, isLast: isFirstLast } of steps) {
    for (const { type: second, isLast } of steps) {
      const isBefore = isLast === true && isFirstLast !== true;
      if (isBefore || rankOf(first) < rankOf(second)) precede(first, second);
    }
  }
  const placeOf = (name: string, above: readonly string[] = []): number => {
    const within = [...above, name];
    const others = [...(earlier.get(name) ?? [])].filter((other) => !within.includes(other));
    return Math.max(0, ...others.map((other) => placeOf(other, within) + 1));
  };
  return steps
    .map((step) => ({ ...step, place: placeOf(typeName(step.type)) }))
    .sort((a, b) => a.place - b.place);
}

/**
 * Returns the deletions of cluster-scoped objects that no order of the namespace's own objects replaces. They affect the
 * whole cluster, so a person decides.
 */
export function commandsFirst(now: Snapshot, diagnosis: Diagnosis): OrderEntry[] {
  const codes = ['apiservice-unavailable'];
  // Objects that are deleted before the server of their webhook do not need it.
  if (judgedSteps(now).steps.length === 0) codes.push('admission-webhook-failing');
  const entries = findingsOf(diagnosis, diagnosis.rootCauses)
    .filter(({ code }) => codes.includes(code))
    .flatMap(({ remedies }) => remedies.slice(0, 1))
    .flatMap(({ command, risk, text }) => (command ? [{ why: `${text}: ${risk}`, command }] : []));
  return [...new Map(entries.map((entry) => [entry.command, entry])).values()];
}

/** Returns the command by which a person deletes the objects of a step. */
export function orderCommand(namespace: string, { type, isWhole, names }: OrderStep): string {
  const which = isWhole ? [typeName(type), '--all'] : nameArgs(typeName(type), ...names);
  return kubectl('delete', ...which, '-n', namespace, '--wait');
}
