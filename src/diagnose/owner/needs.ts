import { matchesGlob } from '../../base/text.ts';
import {
  type Condition,
  type ObjectFacts,
  partnerKey,
  type Reference,
  type ResourceType,
} from '../../model/snapshot.ts';
import type { Actor } from '../actors.ts';
import type { CatalogueEntry } from '../catalogue.ts';
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
} from '../context.ts';
import { guardsAsked } from '../guards.ts';
import { type Held, knownFinalizer, writerOf } from './held.ts';
import { leaseHere } from './leases.ts';

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
  const needs: Need[] = [
    ...neededToCreate(context, held, actor),
    ...neededObjects(context, held, actor),
    ...absentObjects(context, held).map(
      (what): Need => ({ kind: 'state', text: `${what} does not exist`, certainty: 'unknown' }),
    ),
    ...complaints(context, held),
  ];
  if (lease !== undefined) {
    const text = `Lease ${lease.name}, by which it leads`;
    needs.push({ kind: 'object', text, certainty: 'unknown' });
  }
  const unique = new Map(needs.map((need) => [need.text, need]));
  return [...unique.values()].toSorted(
    (a, b) => Number(a.certainty === 'unknown') - Number(b.certainty === 'unknown'),
  );
}

/** Kinds of the core group from which a controller reads its inputs. */
const PLAIN: readonly string[] = ['Secret', 'ConfigMap', 'ServiceAccount'];

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
  return objects.flatMap((object) =>
    (detailOf(context, object)?.references ?? [])
      .filter(({ field, isMade }) => field.startsWith('spec.') && !isMade)
      .flatMap((reference) => {
        const type = typeNamed(context, reference, groupOf(object.apiVersion));
        if (type === undefined) return [];
        const namespace = type.namespaced
          ? (reference.namespace ?? (object.namespace || undefined))
          : undefined;
        return { type, namespace, name: reference.name, by: reference.field };
      }),
  );
}

function typeNamed(context: Context, { group, kind, isAddress }: Reference, own: string) {
  const isRead = PLAIN.includes(kind) || isAddress === true;
  const fits = typesOf(context).filter(
    (type) =>
      type.kind === kind &&
      (group === undefined || type.group === group) &&
      type.verbs.includes('list') &&
      (isBuiltIn(type.group) ? type.group === '' && isRead : true),
  );
  return fits.find((type) => type.group === own) ?? fits[0];
}

/** Returns the object, if it was read and exists: by its name, or among the terminating content. */
export function findNamedObject({ now }: Context, { type, namespace, name }: Named) {
  const isIt = (one: ObjectFacts): boolean =>
    one.name === name && (one.namespace || undefined) === namespace;
  return (
    valueIn(now.partners[partnerKey({ ...type, namespace, name })]) ??
    groupsOf(now)
      .filter((group) => typeName(group.type) === typeName(type))
      .flatMap(({ examples }) => examples)
      .find(isIt)
  );
}

/** Returns the parameters in this namespace without which a bound policy refuses changes of the held objects. */
export function parametersFor(context: Context, { type, objects }: Held): Named[] {
  const guards = objects.flatMap((object) => guardsAsked(context, 'UPDATE', type, object) ?? []);
  return guards.flatMap(({ binding, policy }) => {
    const { name, namespace, parameterNotFoundAction } = binding?.paramRef ?? {};
    const kind = policy?.paramKind && servedType(context, policy.paramKind);
    const place = namespace ?? context.now.namespace.name;
    if (parameterNotFoundAction !== 'Deny' || name === undefined || !kind?.namespaced) return [];
    return { type: kind, namespace: place, name, by: `parameters of policy ${policy?.name}` };
  });
}

/** Returns objects that the specs of the held objects name, and objects of the core group that these name in turn. */
function namedByHeldObjects(context: Context, held: Held): Named[] {
  // The containers of a pod use the objects that its spec names, not the owner of its finalizer.
  if (isBuiltIn(held.type.group)) return [];
  const direct = objectsNamedBy(context, held.objects);
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
 * Returns objects of this namespace without finalizers that the held objects name, directly or through another
 * object.
 */
function neededObjects(context: Context, held: Held, actor: Actor | undefined): Need[] {
  if (isBuiltIn(held.type.group)) return [];
  const listedNeeds = knownFinalizer(held)?.needs?.filter(({ action }) => action === 'read') ?? [];
  const read = [...namedByHeldObjects(context, held), ...parametersFor(context, held)];
  const named = read.flatMap((one): Need[] => {
    const object = isInside(context, one.namespace) ? findNamedObject(context, one) : undefined;
    if (object === undefined || !isUnprotected(object, held, actor)) return [];
    const isCatalogued = listedNeeds.some((need) => isOfType(need, one.type));
    const text = `${object.kind} ${object.name} (${one.by})`;
    return [{ kind: 'object', text, certainty: isCatalogued ? 'likely' : 'unknown' }];
  });
  const unnamed = context.now.forecast?.present.content.flatMap(({ type, read }): Need[] => {
    const isPresent = read.ok && read.value.queued > 0 && read.value.guarded.length === 0;
    const need = listedNeeds.find((one) => isOfType(one, type));
    if (!isPresent || need === undefined || isBuiltIn(type.group)) return [];
    return [{ kind: 'object', text: `${type.kind} (${need.note})`, certainty: 'unknown' }];
  });
  return [...named, ...(unnamed ?? [])];
}

/** Returns custom objects of the owner's groups that the held objects name and that do not exist. */
export function absentObjects(context: Context, held: Held): string[] {
  const { group } = held.type;
  return objectsNamedBy(context, held.objects).flatMap(({ type, namespace, name, by }) => {
    const found = context.now.partners[partnerKey({ ...type, namespace, name })];
    const isOwn = !isBuiltIn(type.group) && `.${group}`.endsWith(`.${type.group}`);
    return isOwn && found?.ok && found.value === undefined ? [`${type.kind} ${name} (${by})`] : [];
  });
}

function isOfType(
  need: NonNullable<CatalogueEntry['needs']>[number],
  { group, kind }: ResourceType,
): boolean {
  return need.kind === kind && matchesGlob(need.group, group);
}

/**
 * Reports whether nothing keeps the object until the clean-up ends, and whether the owner reads it but did not
 * create it.
 */
function isUnprotected(object: ObjectFacts, held: Held, actor: Actor | undefined): boolean {
  const makers = [...(actor?.programs ?? []), writerOf(held)?.manager];
  const isOutput =
    object.ownerReferences.some(({ uid }) => held.objects.some((one) => one.uid === uid)) ||
    ([...PLAIN, 'Service'].includes(object.kind) &&
      object.managers?.some((name) => makers.includes(name)));
  return object.finalizers.length === 0 && !isOutput;
}

/** Returns what the owner creates in the namespace: by the catalogue, by a template in the spec, by earlier objects. */
function neededToCreate(context: Context, held: Held, actor: Actor | undefined): Need[] {
  const templates = held.objects.flatMap((object) => detailOf(context, object)?.templates ?? []);
  return [
    ...neededCreations(held).map((text): Need => ({ kind: 'create', text, certainty: 'likely' })),
    ...[...new Set(templates)].map(
      (field): Need => ({ kind: 'create', text: `a Pod (${field})`, certainty: 'unknown' }),
    ),
    ...tasksOf(context, held, actor).map(
      (name): Need => ({
        kind: 'create',
        text: `something like ${name}, which it made for this object`,
        certainty: 'unknown',
      }),
    ),
  ];
}

const MAX_TASKS = 3;

/** Returns Jobs and bare Pods in the namespace that the held object controls, or that its owner created. */
function tasksOf({ now }: Context, held: Held, actor: Actor | undefined): string[] {
  const uids = new Set(held.objects.map(({ uid }) => uid));
  const isMade = (managers: readonly string[] = []): boolean =>
    managers.some((name) => actor?.programs.includes(name));
  const jobs = itemsIn(now.cluster.jobs)
    .filter(
      ({ namespace, owner }) => namespace === now.namespace.name && uids.has(owner?.uid ?? ''),
    )
    .map(({ name }) => `Job ${name}`);
  const pods = itemsIn(now.forecast?.present.pods)
    .filter(({ ownerReferences, managers }) => {
      const controller = ownerReferences.find((one) => one.controller);
      return controller === undefined ? isMade(managers) : uids.has(controller.uid);
    })
    .map(({ name }) => `Pod ${name}`);
  return [...jobs, ...pods].slice(0, MAX_TASKS);
}

/** Texts of an API that refuses or cannot be reached: the clean-up would get the same answer. */
const REFUSED =
  /because it is being terminated|denied|forbidden|unauthori[sz]ed|not authori[sz]ed|invalid (?:token|key|grant)|\b40[13]\b|connection refused|i\/o timeout|deadline ?exceeded|no such host|no route to host|x509:/i;
/** Words that in a failed condition are about a refusal; other texts of a status use them for success as well. */
const ABOUT_RIGHTS = /permission|credential|expired/i;
/** A text of NamespaceLifecycle (apiserver), which only an earlier deletion can have caused. */
const TERMINATING = /because it is being terminated/;
/** The shortest error that counts: a shorter one may end before the deletion. */
const LASTING_MS = 5 * 60_000;

/**
 * Returns conditions by which an external system has refused the owner for a while, and other texts of the status that
 * say so: it may refuse the clean-up as well. Work that has ended is not tried again.
 */
function complaints(context: Context, held: Held): Need[] {
  const isLasting = ({ type, status, message, lastTransitionTime }: Condition): boolean => {
    const isFailure = status !== 'True' || /fail|error|degraded|denied/i.test(type);
    const lastsMs = context.nowMs - Date.parse(lastTransitionTime ?? '');
    const isRefusal = REFUSED.test(message) || ABOUT_RIGHTS.test(message);
    return isFailure && !(lastsMs < LASTING_MS) && isRefusal;
  };
  return held.objects.flatMap((object) => {
    const { conditions = [], texts = [], endedAt } = detailOf(context, object) ?? {};
    const failed = conditions.filter(isLasting).map(({ type, status, message, ...condition }) => {
      const { lastTransitionTime: since } = condition;
      const at = since === undefined ? '' : ` since ${since}`;
      return { message, said: `has ${type}=${status}${at}` };
    });
    const other = texts
      .filter((text) => endedAt === undefined && REFUSED.test(text))
      .map((message) => ({ message, said: 'says in its status' }));
    return [...failed, ...other].map(
      ({ message, said }): Need => ({
        kind: 'state',
        text: `${object.kind} ${object.name} ${said}: ${shortQuote(message)}`,
        certainty: TERMINATING.test(message) ? 'likely' : 'unknown',
      }),
    );
  });
}
