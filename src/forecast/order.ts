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
  isKind,
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
import { isGitOps, RECREATING_KINDS, rankOf, reachesOut } from '../diagnose/owner/reach.ts';
import { findOwner } from '../diagnose/owner/verdict.ts';
import { isSameVersion } from '../diagnose/rules/apis.ts';
import { PROTECTION } from '../diagnose/waits.ts';
import { FINALIZE, NAMESPACE_TYPE, typeName } from '../model/facts/metadata.ts';
import { type Diagnosis, type Finding, findingsOf } from '../model/finding.ts';
import type { OrderEntry } from '../model/result.ts';
import type { ObjectFacts, ResourceType, Snapshot, TypeContent } from '../model/snapshot.ts';
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

type Unplaced = Omit<OrderStep, 'place'>;

function wholeTypeStep(type: ResourceType, why: string): Unplaced {
  return { type, matches: () => true, names: [], isWhole: true, why };
}

/**
 * Returns the objects that need a running controller to be deleted, and would lose it with the namespace: their
 * controller runs in the namespace or needs something in it. Objects that created them, or would create them
 * again, are deleted before them.
 */
export function orderOf(now: Snapshot): OrderStep[] {
  const { steps, isLeft } = judgedSteps(now);
  return steps.filter((step) => !isLeft(step));
}

/**
 * Returns the commands that an order leaves to a person: the deletion of objects whose controller deletes what it
 * deployed for them, in whatever namespace or cluster.
 */
export function commandsElsewhere(now: Snapshot): OrderEntry[] {
  const { steps, isLeft } = judgedSteps(now);
  const why =
    'their controller, or that of objects that they own, then deletes what it deployed, also outside of this namespace';
  return steps
    .filter(isLeft)
    .map((step) => ({ why, command: orderCommand(now.namespace.name, step), isByHand: true }));
}

function judgedSteps(now: Snapshot): {
  steps: OrderStep[];
  isLeft: (step: Pick<OrderStep, 'type'>) => boolean;
} {
  const context = contextOf(predict(now));
  const { steps, seen, dependent } = unplacedSteps(context);
  const left = typesThatReachOut(context, dependent, seen);
  return {
    steps: inDeletionOrder(context, steps, seen),
    isLeft: ({ type }) => left.has(typeName(type)),
  };
}

/**
 * Returns the types whose deletion may delete objects outside of the namespace, and whose controller would be lost or
 * needs something of the namespace: GitOps objects, objects with a manifest or a target namespace for another place, and the
 * owners of either. The deletion of the namespace alone may leave what they deployed.
 */
function typesThatReachOut(
  context: Context,
  dependent: readonly Held[],
  seen: readonly ObjectFacts[],
): ReadonlySet<string> {
  const reaching = dependent.filter((held) => reachesOut(context, held));
  const types = new Set(reaching.map(({ type }) => typeName(type)));
  if (reaching.some(({ type }) => isGitOps(type))) {
    for (const { type } of context.now.forecast?.present.content ?? []) {
      if (isGitOps(type)) types.add(typeName(type));
    }
  }
  const objects = reaching.flatMap((held) => held.objects);
  for (const { ownerReferences } of withAncestors(objects, seen)) {
    for (const reference of ownerReferences) {
      const type = servedType(context, reference);
      if (type !== undefined) types.add(typeName(type));
    }
  }
  return types;
}

/** Returns these objects and, of those that are known, the ones that own them, directly or through others. */
function withAncestors(
  objects: readonly ObjectFacts[],
  known: readonly ObjectFacts[],
): ObjectFacts[] {
  const found = [...objects];
  for (const { ownerReferences } of found) {
    for (const { uid } of ownerReferences) {
      const owner = known.find((one) => one.uid === uid);
      if (owner !== undefined && !found.includes(owner)) found.push(owner);
    }
  }
  return found;
}

/** Returns the known objects that an object names and that do not own it: its controller may need them. */
function neededBy(
  context: Context,
  object: ObjectFacts,
  known: readonly ObjectFacts[],
): ObjectFacts[] {
  const names = namedWholes(context, object);
  const above = new Set(withAncestors([object], known).map(({ uid }) => uid));
  return known.filter(
    ({ apiVersion, kind, name, uid }) =>
      !above.has(uid) && names.includes(keyOf(apiVersion, kind, name)),
  );
}

function unplacedSteps(context: Context): {
  steps: Unplaced[];
  seen: ObjectFacts[];
  dependent: Dependent[];
} {
  const { now } = context;
  const present = (now.forecast?.present.content ?? []).filter(
    ({ read }) => read.ok && read.value.total > 0,
  );
  const whole = present.flatMap((content) => wholeType(context, content));
  const dependent = heldObjects(context).flatMap((held): Dependent[] => {
    const why = dependencyOnNamespace(context, held);
    return why === undefined ? [] : [{ ...held, why }];
  });
  dependent.push(...consumersOf(context, dependent));
  const byType = Map.groupBy(dependent, ({ type }) => typeName(type)).values();
  const children = Array.from(byType, (held) => guardedStep(held, present));
  if (whole.length + children.length === 0) return { steps: [], seen: [], dependent };
  const recreating = present
    .filter(({ type }) => isGitOps(type))
    .map(({ type }) => wholeTypeStep(type, 'they would create again what is deleted'));
  const known = countsOf({ content: present }).flatMap(({ guarded: groups, sample }) => [
    ...groups.flatMap(({ examples }) => examples),
    ...(sample ? [sample] : []),
  ]);
  const objects = dependent.flatMap((held) => held.objects);
  const seen = [...objects, ...known];
  const made = [...objects, ...known.filter(({ kind }) => RECREATING_KINDS.includes(kind))];
  const all = [...recreating, ...parentsOf(context, made, seen), ...whole, ...children];
  const steps = Map.groupBy(all, ({ type }) => typeName(type)).values();
  return { steps: Array.from(steps, mergedStep), seen, dependent };
}

/** Returns the other held objects that name one of these, and so go before it. */
function consumersOf(context: Context, dependent: readonly Dependent[]): Dependent[] {
  const all = heldObjects(context);
  const known = all.flatMap(({ objects }) => objects);
  const first = dependent
    .filter(({ finalizer }) => !PROTECTION.test(finalizer))
    .flatMap(({ objects }) => objects);
  return all.flatMap((held): Dependent[] => {
    const { finalizer, type } = held;
    const isKnown = dependent.some(
      (one) => one.finalizer === finalizer && typeName(one.type) === typeName(type),
    );
    if (isKnown || isOfControllerManager(held)) return [];
    const [named] = held.objects
      .flatMap((one) => neededBy(context, one, known))
      .filter((one) => first.includes(one));
    return named === undefined ? [] : [{ ...held, why: `they name ${named.kind} ${named.name}` }];
  });
}

/** Joins the steps of one type, because its objects may be in the order for several reasons. */
function mergedStep(steps: readonly Unplaced[]): Unplaced {
  const [first] = steps as [Unplaced];
  return {
    type: first.type,
    matches: (object) => steps.some((step) => step.matches(object)),
    names: [...new Set(steps.flatMap(({ names }) => names))],
    isWhole: steps.some(({ isWhole }) => isWhole),
    isLast: steps.some(({ isLast }) => isLast),
    why: [...new Set(steps.map(({ why }) => why))].join('; '),
  };
}

/** Objects whose finalizer cannot be removed once the namespace is being deleted. */
interface Dependent extends Held {
  why: string;
}

function guardedStep(held: readonly Dependent[], present: readonly TypeContent[]): Unplaced {
  const [{ type }] = held as [Dependent];
  const content = present.find((one) => typeName(one.type) === typeName(type));
  const total = content?.read.ok === true ? content.read.value.total : 0;
  const count = held.reduce((most, one) => Math.max(most, one.count), 0);
  return {
    type,
    matches: ({ finalizers }) => held.some(({ finalizer }) => finalizers.includes(finalizer)),
    names: [...new Set(held.flatMap(({ objects }) => objects.map(({ name }) => name)))],
    // The other objects of a built-in type, such as Secrets, may be what the controller runs with.
    isWhole: count >= total && !isBuiltIn(type.group),
    isLast:
      RUN_WITH.has(typeName(type)) || held.every(({ finalizer }) => PROTECTION.test(finalizer)),
    why: listWords([...new Set(held.map(({ why }) => why))]),
  };
}

/**
 * Types that every server needs and that Kubernetes creates again at once. If a webhook guards these, no order
 * helps.
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
function wholeType(context: Context, { type, read }: TypeContent): Unplaced[] {
  if (FOUNDATIONS.has(typeName(type))) return [];
  const labels = (read.ok && read.value.sample?.labels) || {};
  const calls = [
    ...closedWebhooks(context, 'DELETE', type, labels),
    ...conversionsOf(itemsIn(context.now.cluster.conversions)).filter(
      ({ name, storedVersions }) =>
        name === typeName(type) && storedVersions.some((version) => version !== type.version),
    ),
    ...extensionApis(context).filter((server) => isSameVersion(server, type)),
  ];
  const call = calls.find(({ service }) => willBeDeleted(context, service.namespace));
  if (call === undefined) return [];
  const what = serviceText(call.service);
  return [
    wholeTypeStep(type, `${what}, which has to answer for their deletion, is in the namespace`),
  ];
}

/** Returns why the owner of a finalizer cannot do its work once the namespace is being deleted; undefined if it can. */
function dependencyOnNamespace(context: Context, held: Held): string | undefined {
  if (isOfControllerManager(held)) return undefined;
  const { owner, suspects } = findOwner(context, held);
  const inside = [owner, ...suspects]
    .flatMap((suspect) => suspect?.actor ?? [])
    .find(({ namespace }) => willBeDeleted(context, namespace));
  if (inside !== undefined) {
    const idle = isAlive(inside) ? '' : ', and is not running: it has to be started first';
    return `${actorText(inside)}, which removes their finalizer, is in the namespace${idle}`;
  }
  if (owner?.rights.isLocal) return 'the permissions of their controller are in the namespace';
  const needs = needsOfOwner(context, held, owner?.actor);
  const read = needs.flatMap(({ kind, text }) => (kind === 'object' ? [text] : []));
  if (read.length > 0) return `their controller may need ${listWords(read.slice(0, 3))}`;
  const created = needs.find(({ kind }) => kind === 'create');
  if (created !== undefined) return `their controller may have to create ${created.text}`;
  const guards = held.objects.flatMap(({ labels }) =>
    closedWebhooks(context, 'UPDATE', held.type, labels),
  );
  const guard = guards.find(({ service }) => willBeDeleted(context, service.namespace));
  return guard === undefined
    ? undefined
    : `webhook ${guard.name}, which has to answer, is in the namespace`;
}

/** Types of objects that controllers run with. */
const RUN_WITH: ReadonlySet<string> = new Set([
  ...['serviceaccounts', 'secrets', 'configmaps'],
  ...['roles.rbac.authorization.k8s.io', 'rolebindings.rbac.authorization.k8s.io'],
]);

/** Returns the objects of the namespace that created these objects, or their parents, and would create them again. */
function parentsOf(
  context: Context,
  objects: readonly ObjectFacts[],
  seen: readonly ObjectFacts[],
): Unplaced[] {
  const own = new Set(objects.map(({ uid }) => uid));
  const parents = new Map<string, ObjectFacts['ownerReferences'][number]>();
  const queue = [...objects];
  for (const { ownerReferences } of queue) {
    for (const reference of ownerReferences) {
      const { controller, uid } = reference;
      if (!controller || own.has(uid) || parents.has(uid)) continue;
      parents.set(uid, reference);
      queue.push(...seen.filter((object) => object.uid === uid).slice(0, 1));
    }
  }
  const byType = Map.groupBy(parents.values(), (parent) => servedType(context, parent));
  return [...byType].flatMap(([type, references]) =>
    type?.namespaced !== true
      ? []
      : {
          type,
          matches: ({ uid }) => parents.get(uid)?.kind === type.kind,
          names: references.map(({ name }) => name),
          isWhole: false,
          why: 'they created objects that are deleted first, and would create them again',
        },
  );
}

/**
 * Assigns positions: parents before children, an object before those that it refers to, and before the parent of its
 * controller; last what others may need. Types that wait for each other have the same position.
 */
function inDeletionOrder(
  context: Context,
  steps: readonly Unplaced[],
  objects: readonly ObjectFacts[],
): OrderStep[] {
  const before = new Map<string, Set<string>>();
  const names = new Set(steps.map(({ type }) => typeName(type)));
  const byKind = new Map(steps.map(({ type }) => [type.kind.toLowerCase(), typeName(type)]));
  const nameOf = (object: Pick<ObjectFacts, 'apiVersion' | 'kind'>): string | undefined => {
    const type = servedType(context, object);
    return type && typeName(type);
  };
  const precede = (first: string | undefined, second: string | undefined): void => {
    if (first === undefined || second === undefined || first === second) return;
    if (names.has(first)) before.set(second, (before.get(second) ?? new Set()).add(first));
  };
  // A parent that takes the controller of its children with it goes after them.
  const controllers = new Set(
    heldObjects(context).flatMap((held) => findOwner(context, held).owner?.actor?.owner?.uid ?? []),
  );
  for (const object of objects) {
    const own = nameOf(object);
    for (const parent of object.ownerReferences) {
      if (controllers.has(parent.uid)) precede(own, nameOf(parent));
      else precede(nameOf(parent), own);
    }
    const detail = context.now.details[object.uid];
    const above = withAncestors([object], objects);
    for (const { kind, name, field } of detail?.ok === true ? detail.value.references : []) {
      const isOwner = above.some((one) => isKind(one, kind) && one.name === name);
      if (field.startsWith('spec.') && !isOwner) precede(own, byKind.get(kind.toLowerCase()));
    }
    for (const other of neededBy(context, object, objects)) precede(own, nameOf(other));
  }
  for (const { type: first, isLast: isFirstLast } of steps) {
    for (const { type, isLast } of steps) {
      const isEarlier = isLast === true && isFirstLast !== true;
      if (isEarlier || rankOf(first) < rankOf(type)) precede(typeName(first), typeName(type));
    }
  }
  const placeOf = (name: string, seen: readonly string[] = []): number => {
    const within = [...seen, name];
    const earlier = [...(before.get(name) ?? [])].filter((other) => !within.includes(other));
    return Math.max(0, ...earlier.map((other) => placeOf(other, within) + 1));
  };
  return steps
    .map((step) => ({ ...step, place: placeOf(typeName(step.type)) }))
    .sort((a, b) => a.place - b.place);
}

/**
 * Returns the cluster-scoped objects that have to be deleted before the namespace. Their deletion affects the whole
 * cluster, so a person decides. A webhook in the namespace is one of them if it guards objects that cannot be
 * deleted before its own pods.
 */
export function commandsFirst(now: Snapshot, diagnosis: Diagnosis): OrderEntry[] {
  const context = contextOf(predict(now));
  const types = (now.forecast?.present.content ?? []).map(({ type }) => type);
  const last = [...types.filter((type) => FOUNDATIONS.has(typeName(type))), NAMESPACE_TYPE];
  const webhooks = last
    .flatMap((type) => closedWebhooks(context, 'DELETE', type, {}))
    .concat(closedWebhooks(context, 'UPDATE', FINALIZE, {}))
    .filter(({ service }) => willBeDeleted(context, service.namespace));
  const isNeeded = ({ code, subject }: Finding): boolean =>
    code === 'apiservice-unavailable' ||
    webhooks.some(
      ({ configuration: { kind, name } }) => kind === subject.kind && name === subject.name,
    );
  return findingsOf(diagnosis, diagnosis.rootCauses)
    .filter(isNeeded)
    .flatMap(({ remedies }) => remedies.slice(0, 1))
    .flatMap(({ command, risk, text }) => (command ? [{ why: `${text}: ${risk}`, command }] : []));
}

/** Returns the command by which a person deletes the objects of a step. */
export function orderCommand(namespace: string, { type, isWhole, names }: OrderStep): string {
  const which = isWhole ? [typeName(type), '--all'] : nameArgs(typeName(type), ...names);
  return kubectl('delete', ...which, '-n', namespace, '--wait');
}
