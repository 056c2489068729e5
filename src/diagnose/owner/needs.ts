import { matchesGlob } from '../../base/text.ts';
import {
  type ObjectFacts,
  partnerKey,
  type Reference,
  type ResourceType,
  type Wanted,
} from '../../model/snapshot.ts';
import type { Actor } from '../actors.ts';
import {
  type Context,
  countsOf,
  detailOf,
  groupOf,
  groupsOf,
  isBuiltIn,
  isInside,
  itemsIn,
  servedType,
  shortQuote,
  typeName,
  typesOf,
  valueIn,
  willBeDeleted,
} from '../context.ts';
import { FAILURE } from '../error-texts.ts';
import { guardsAsked } from '../guards.ts';
import { type Held, knownFinalizer, writerOf } from './held.ts';
import { leaseHere } from './leases.ts';
import { namedByConvention } from './partners.ts';
import { isAnnotationForOwner, troublesOf } from './state.ts';

/**
 * A thing that the owner of a finalizer may need for its clean-up and that a deletion of the namespace takes away:
 * an object of the namespace, the permission to create one, or a capability that it lacks already.
 */
export interface Need {
  /** `object`: is deleted with the namespace. `create`: is refused while it terminates. `state`: is already missing. */
  kind: 'object' | 'create' | 'state';
  /** The thing and its source: "Secret creds (spec.secretRef)"; for a `state` a clause. */
  text: string;
  /** `likely`: the catalogue or the status of an earlier deletion says that it is needed. */
  certainty: 'likely' | 'unknown';
}

/** Returns everything that the owner may need and that a deletion of the namespace takes away, the surest first. */
export function needsOfOwner(context: Context, held: Held, actor?: Actor): Need[] {
  const lease = actor && leaseHere(context, actor);
  const unsure = (kind: Need['kind'], texts: readonly string[]): Need[] =>
    texts.map((text) => ({ kind, text, certainty: 'unknown' }));
  const needs: Need[] = [
    ...neededCreations(held).map((text): Need => ({ kind: 'create', text, certainty: 'likely' })),
    ...unsure('create', possibleCreations(context, held, actor)),
    ...neededObjects(context, held, actor),
    ...unsure(
      'state',
      absentObjects(context, held).map((what) => `${what} does not exist`),
    ),
  ].filter(({ certainty }) => certainty === 'likely' || !knownFinalizer(held)?.needsNothingElse);
  needs.push(
    ...complaints(context, held),
    ...unsure('object', lease ? [`Lease ${lease.name}, by which it leads`] : []),
  );
  const unique = new Map(needs.map((need) => [need.text, need]));
  return [...unique.values()].toSorted(
    (a, b) => Number(a.certainty === 'unknown') - Number(b.certainty === 'unknown'),
  );
}

/** Kinds of the core group from which a controller reads its inputs. */
const INPUTS: readonly string[] = ['Secret', 'ConfigMap'];
const PLAIN: readonly string[] = [...INPUTS, 'ServiceAccount'];

/** A place where an object that another one names can be: one lookup for each type that has this kind. */
export interface Named {
  type: ResourceType;
  namespace: string | undefined;
  name: string;
  /** The field that names it, or another object that names it. */
  by: string;
}

/**
 * Returns objects that the specs of these objects name and a clean-up may read: Secrets, ConfigMaps,
 * ServiceAccounts, custom objects, in this namespace or cluster-scoped.
 */
export function objectsNamedBy(context: Context, objects: readonly ObjectFacts[]): Named[] {
  return objects.flatMap((object) => [
    ...referredTo(context, object),
    ...namedByConvention(context, object).flatMap(({ group, kind, name, by }) =>
      typesOf(context)
        .filter((type) => type.kind.toLowerCase() === kind && type.group === group)
        .map((type) => ({
          type,
          namespace: type.namespaced ? object.namespace : undefined,
          name,
          by,
        })),
    ),
  ]);
}

function referredTo(context: Context, object: ObjectFacts): Named[] {
  return (detailOf(context, object)?.references ?? [])
    .filter(({ field, isMade }) => field.startsWith('spec.') && !isMade)
    .flatMap((reference) => {
      const type = typeNamed(context, reference, groupOf(object.apiVersion));
      if (type === undefined) return [];
      const namespace = type.namespaced
        ? (reference.namespace ?? (object.namespace || undefined))
        : undefined;
      return { type, namespace, name: reference.name, by: reference.field };
    });
}

function typeNamed(context: Context, { group, kind, isAddress }: Reference, own: string) {
  const isRead = PLAIN.includes(kind) || isAddress;
  const fits = typesOf(context).filter(
    (type) =>
      type.kind === kind &&
      (group ?? type.group) === type.group &&
      (!isBuiltIn(type.group) || isRead),
  );
  return fits.find((type) => type.group === own) ?? fits[0];
}

/** Returns the object, if it was read and exists: by its name, or among the terminating content. */
export function findNamedObject({ now }: Context, { type, namespace = '', name }: Named) {
  return (
    valueIn(now.partners[partnerKey({ ...type, namespace: namespace || undefined, name })]) ??
    groupsOf(now)
      .filter((group) => typeName(group.type) === typeName(type))
      .flatMap(({ examples }) => examples)
      .find((one) => one.name === name && one.namespace === namespace)
  );
}

/**
 * Returns the parameters without which a bound policy refuses changes of the held objects: by their name, or, for a
 * selector, any object of their type.
 */
function parametersOf(context: Context, { type, objects }: Held) {
  const guards = objects.flatMap((object) => guardsAsked(context, 'UPDATE', type, object) ?? []);
  return guards.flatMap(({ binding, policy }) => {
    const { name, namespace, parameterNotFoundAction } = binding?.paramRef ?? {};
    const kind = policy?.paramKind && servedType(context, policy.paramKind);
    if (parameterNotFoundAction !== 'Deny' || kind === undefined) return [];
    const by = `parameters of policy ${policy?.name}`;
    return { type: kind, namespace: namespace ?? context.now.namespace.name, name, by };
  });
}

/** Returns the parameters that have a name. */
export function parametersFor(context: Context, held: Held): Named[] {
  return parametersOf(context, held).flatMap(({ name, ...rest }) =>
    name === undefined ? [] : { ...rest, name },
  );
}

/** Returns objects that the specs of the held objects name, and objects of the core group that these name in turn. */
function namedByHeldObjects(context: Context, held: Held): Named[] {
  // The containers of a pod use the objects that its spec names, not the owner of its finalizer.
  if (isBuiltIn(held.type.group)) return [];
  const direct = objectsNamedBy(context, held.objects);
  if (knownFinalizer(held)?.needsNothingElse) return direct.filter((one) => isListed(held, one));
  const behind = direct.flatMap((named) => {
    const object = findNamedObject(context, named);
    if (object === undefined) return [];
    const by = `which ${object.kind} ${object.name} names`;
    return objectsNamedBy(context, [object])
      .filter(({ type }) => isBuiltIn(type.group))
      .map((next) => ({ ...next, by }));
  });
  return [...direct, ...behind];
}

/**
 * Returns the objects of this namespace that the specs of the held objects name. Whether the host of an address, as in
 * `s3://backups`, was a Service, nobody can tell once it is gone.
 */
export function namedInNamespace(context: Context, held: Held): Named[] {
  return namedByHeldObjects(context, held).filter(
    ({ namespace, type }) => isInside(context, namespace) && type.kind !== 'Service',
  );
}

/** Returns objects of this namespace that the held objects need, of types without any objects left. */
export function goneNeeds(context: Context, held: Held): { what: string; by: string }[] {
  const counts = countsOf(context.now);
  return namedInNamespace(context, held).flatMap(({ type, name, by }) => {
    const count = counts.find((one) => typeName(one.type) === typeName(type));
    return count?.total === 0 ? [{ what: `${type.kind} ${name}`, by }] : [];
  });
}

/** Returns what the catalogue knows that the owner creates in the namespace while it cleans up. */
export function neededCreations(held: Held): string[] {
  const needs = knownFinalizer(held)?.needs ?? [];
  return needs.flatMap(({ action, kind, note }) =>
    action === 'create' ? [`a ${kind} (${note})`] : [],
  );
}

/**
 * Returns objects without finalizers that the held objects name, directly or through another object, or that are named
 * after them, and that are deleted with the namespace.
 */
function neededObjects(context: Context, held: Held, actor: Actor | undefined): Need[] {
  if (isBuiltIn(held.type.group)) return [];
  const read = [...namedByHeldObjects(context, held), ...parametersFor(context, held)];
  const named = read.flatMap((one): Need[] => {
    const object = willBeDeleted(context, one.namespace)
      ? findNamedObject(context, one)
      : undefined;
    if (object === undefined || !isUnprotected(object, held, actor)) return [];
    const text = `${object.kind} ${object.name} (${one.by})`;
    return [{ kind: 'object', text, certainty: isListed(held, one) ? 'likely' : 'unknown' }];
  });
  const { present, samples } = context.now.forecast ?? {};
  const unnamed = (present?.content ?? []).flatMap(({ type, read }): string[] => {
    if (!read.ok || read.value.queued === 0) return [];
    const notes = [
      ...listedReads(held, type).flatMap(({ field, note }) => (field === undefined ? [note] : [])),
      ...parametersOf(context, held)
        .filter((one) => one.name === undefined && typeName(one.type) === typeName(type))
        .map(({ by }) => by),
    ];
    return notes.slice(0, 1).map((note) => `${type.kind} (${note})`);
  });
  const namesakes = Object.values(samples ?? {})
    .flatMap(({ sample }) => sample ?? [])
    .filter((one) => isNamedAfter(held, one) && isUnprotected(one, held, actor))
    .map(({ kind, name }) => `${kind} ${name} (by its name)`);
  return [
    ...named,
    ...[...unnamed, ...namesakes].map(
      (text): Need => ({ kind: 'object', text, certainty: 'unknown' }),
    ),
  ];
}

/** Reports whether the object is named after a held object, as `db-credentials` after `db`. */
function isNamedAfter({ objects, type }: Held, { kind, name }: { kind?: string; name: string }) {
  return kind !== type.kind && objects.some((object) => name.startsWith(`${object.name}-`));
}

/** Returns what to search for: a Secret or ConfigMap that is named after an object with a finalizer. */
export function wantedNamesakes(
  held: readonly Held[],
  type: ResourceType,
): NonNullable<Wanted['samples']> {
  if (type.group !== '' || !INPUTS.includes(type.kind)) return [];
  const custom = held.filter((one) => !isBuiltIn(one.type.group));
  return custom.map((one) => ({
    key: `${typeName(type)} of ${typeName(one.type)} ${one.finalizer}`,
    type,
    text: `the owner of ${one.finalizer}`,
    labelSelector: '',
    isMeant: (candidate) => isNamedAfter(one, candidate),
  }));
}

/** Returns custom objects of the owner's groups that the held objects name and that do not exist. */
export function absentObjects(context: Context, held: Held): string[] {
  if (knownFinalizer(held)?.needsNothingElse) return [];
  const named = held.objects.flatMap((object) => referredTo(context, object));
  return named.flatMap(({ type, namespace, name, by }) => {
    const found = context.now.partners[partnerKey({ ...type, namespace, name })];
    // A Secret without a namespace may be one that the owner has yet to write.
    const isInput = type.group === held.type.group || !isInside(context, namespace);
    return isInput && found?.ok && found.value === undefined
      ? [`${type.kind} ${name} (${by})`]
      : [];
  });
}

/** Returns what the catalogue says that the owner reads of this type. */
function listedReads(held: Held, { group, kind }: ResourceType) {
  return (knownFinalizer(held)?.needs ?? []).filter(
    (need) => need.action === 'read' && need.kind === kind && matchesGlob(need.group, group),
  );
}

function isListed(held: Held, { type, by }: Named): boolean {
  return listedReads(held, type).some(({ field = '' }) => by.startsWith(field));
}

/**
 * Reports whether nothing keeps the object until the clean-up ends, and whether the owner reads it but did not
 * create it.
 */
function isUnprotected(object: ObjectFacts, held: Held, actor: Actor | undefined): boolean {
  const makers = [...(actor?.programs ?? []), writerOf(held)?.manager];
  const uids = held.objects.map(({ uid }) => uid);
  const isOutput =
    object.ownerReferences.some(({ uid }) => uids.includes(uid)) ||
    (isBuiltIn(groupOf(object.apiVersion)) &&
      object.managers?.some((name) => makers.includes(name)));
  return object.finalizers.length === 0 && !isOutput;
}

const MAX_TASKS = 3;

/**
 * Returns what the owner may create in the namespace: a pod by a template in the spec, or something like a Job or an
 * ended Pod that the held object controls, or like a bare one that the owner created.
 */
function possibleCreations(context: Context, held: Held, actor: Actor | undefined): string[] {
  const { now } = context;
  const templates = held.objects.flatMap((object) => detailOf(context, object)?.templates ?? []);
  const uids = new Set(held.objects.map(({ uid }) => uid));
  const jobs = itemsIn(now.cluster.jobs)
    .filter(({ labels, namespace, owner }) =>
      owner === undefined
        ? isInside(context, namespace) && isLabelledFor(held, labels)
        : uids.has(owner.uid),
    )
    .map(({ name }) => `Job ${name}`);
  const pods = itemsIn(now.forecast?.present.pods)
    .filter(({ ownerReferences, managers = [], phase }) => {
      // A pod that runs on is an operand; a task ends.
      if (phase !== 'Succeeded' && phase !== 'Failed') return false;
      const controller = ownerReferences.find((one) => one.controller);
      return controller === undefined
        ? managers.some((name) => actor?.programs.includes(name))
        : uids.has(controller.uid);
    })
    .map(({ name }) => `Pod ${name}`);
  return [
    ...[...new Set(templates)].map((field) => `a Pod (${field})`),
    ...[...jobs, ...pods]
      .slice(0, MAX_TASKS)
      .map((name) => `something like ${name}, which it made for this object`),
  ];
}

/** Reports whether a label of the owner's project names a held object: `example.com/widget: db`. */
function isLabelledFor(held: Held, labels: Record<string, string>): boolean {
  return Object.entries(labels).some(
    ([key, value]) =>
      key.includes('/') &&
      isAnnotationForOwner(key, held) &&
      held.objects.some(({ name }) => name === value),
  );
}

/** Texts of an API that refuses or cannot be reached: the clean-up would get the same answer. */
const REFUSED =
  /because it is being terminated|denied|forbidden|unauthori[sz]ed|not authori[sz]ed|invalid (?:token|key|grant)|permission|credential|\b40[13]\b|connection refused|i\/o timeout|deadline ?exceeded|no such host|no route to host|x509:/i;
/** A text of NamespaceLifecycle (apiserver), which only an earlier deletion can have caused. */
const TERMINATING = /because it is being terminated/;

/**
 * Returns texts of the status that report a failure: the clean-up may fail in the same way. Work that has ended is not
 * tried again.
 */
function complaints(context: Context, held: Held): Need[] {
  return held.objects.flatMap((object) =>
    detailOf(context, object)?.endedAt === undefined
      ? troublesOf(context, object)
          .filter(({ isStated, text }) => isStated || REFUSED.test(text) || FAILURE.test(text))
          .map(
            ({ text }): Need => ({
              kind: 'state',
              text: `${object.kind} ${object.name} says in its status: ${shortQuote(text)}`,
              certainty: TERMINATING.test(text) ? 'likely' : 'unknown',
            }),
          )
      : [],
  );
}
