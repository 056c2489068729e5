import { actorText, isAlive } from '../diagnose/actors.ts';
import { kubectl } from '../diagnose/commands.ts';
import {
  type Context,
  contextOf,
  conversionsOf,
  countsOf,
  detailOf,
  extensionApis,
  itemsIn,
  listWords,
  servedType,
  serviceText,
  willBeDeleted,
} from '../diagnose/context.ts';
import { closedWebhooks } from '../diagnose/guards.ts';
import { heldObjects } from '../diagnose/owner/finalizers.ts';
import { type Held, isOfControllerManager } from '../diagnose/owner/held.ts';
import { needsOfOwner } from '../diagnose/owner/needs.ts';
import { findOwner } from '../diagnose/owner/verdict.ts';
import { isSameVersion } from '../diagnose/rules/apis.ts';
import { FINALIZE, NAMESPACE_TYPE, typeName } from '../model/facts.ts';
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
  /** Whether these are all objects of the type in the namespace. */
  isWhole: boolean;
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
  const { steps, reach } = judgedSteps(now);
  return reach === undefined ? steps : steps.filter(({ type }) => !isGitOps(type));
}

/**
 * Returns the commands that an order leaves to a person: the deletion of GitOps objects that also deletes what they
 * deployed to other namespaces. One such object can own others, so none of them is deleted then.
 */
export function commandsElsewhere(now: Snapshot): OrderEntry[] {
  const { steps, reach } = judgedSteps(now);
  if (reach === undefined) return [];
  return steps
    .filter(({ type }) => isGitOps(type))
    .map((step) => ({ why: reach, command: orderCommand(now.namespace.name, step) }));
}

function judgedSteps(now: Snapshot): { steps: OrderStep[]; reach: string | undefined } {
  const context = contextOf(predict(now));
  const { steps, seen, dependent } = unplacedSteps(context);
  return {
    steps: inDeletionOrder(context, steps, seen),
    reach: reachOfGitOps(context, dependent),
  };
}

/**
 * Says why the deletion of GitOps objects whose controller would be lost may reach beyond the namespace. If their
 * controller stays, the deletion of the namespace has the same effect.
 */
function reachOfGitOps(context: Context, dependent: readonly Held[]): string | undefined {
  const { cluster, namespace } = context.now;
  const held = dependent.filter(({ type }) => isGitOps(type));
  if (held.length > 0 && !cluster.namespaces?.ok) return 'the namespaces could not be read';
  for (const { kind, name, uid } of held.flatMap(({ objects }) => objects)) {
    const mentions = detailOf(context, { uid })?.mentions;
    if (mentions === undefined) return `the spec of ${kind} ${name} could not be read`;
    const place = itemsIn(cluster.namespaces).find(
      (one) => one.name !== namespace.name && mentions.includes(one.name),
    );
    if (place !== undefined) {
      return `${kind} ${name} names Namespace ${place.name}: its controller deletes what it deployed there, too`;
    }
  }
  const many = held.find(({ count, objects }) => count > objects.length);
  return many && `not all of ${many.count} ${many.type.resource} were read`;
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

/** Joins the steps of one type, because its objects may be in the order for several reasons. */
function mergedStep(steps: readonly Unplaced[]): Unplaced {
  const [first] = steps as [Unplaced];
  return {
    type: first.type,
    matches: (object) => steps.some((step) => step.matches(object)),
    names: [...new Set(steps.flatMap(({ names }) => names))],
    isWhole: steps.some(({ isWhole }) => isWhole),
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
    isWhole: count >= total,
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

/** GitOps tools apply deleted objects again, so their own objects have to be deleted first. */
const RECREATING =
  /(?:\.|^)(?:toolkit\.fluxcd\.io|argoproj\.io|fleet\.cattle\.io|kappctrl\.k14s\.io)$/;
/** Kinds of GitOps tools. A kind creates objects of later kinds. */
const RECREATING_KINDS = [
  ...['ApplicationSet', 'Application', 'GitRepo', 'Bundle', 'Kustomization', 'HelmRelease', 'App'],
];

function isGitOps(type: ResourceType): boolean {
  return rankOf(type) < RECREATING_KINDS.length;
}

/** Returns the position of a type among the GitOps kinds. All other types come last. */
function rankOf({ group, kind }: ResourceType): number {
  const rank = RECREATING.test(group) ? RECREATING_KINDS.indexOf(kind) : -1;
  return rank < 0 ? RECREATING_KINDS.length : rank;
}

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
 * controller. Types that wait for
 * each other have the same position.
 */
function inDeletionOrder(
  context: Context,
  steps: readonly Unplaced[],
  objects: readonly ObjectFacts[],
): OrderStep[] {
  const before = new Map<string, Set<string>>();
  const names = new Set(steps.map(({ type }) => typeName(type)));
  const byKind = new Map(steps.map(({ type }) => [type.kind, typeName(type)]));
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
    for (const { kind, field } of detail?.ok === true ? detail.value.references : []) {
      if (field.startsWith('spec.')) precede(own, byKind.get(kind));
    }
  }
  for (const { type: first } of steps) {
    for (const { type } of steps) {
      if (rankOf(first) < rankOf(type)) precede(typeName(first), typeName(type));
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
  const which = isWhole ? ['--all'] : names;
  return kubectl('delete', typeName(type), ...which, '-n', namespace, '--wait');
}
