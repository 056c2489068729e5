import { escapeForRegExp, matchesGlob } from '../../base/text.ts';
import type { CleanupNeed } from '../../model/catalogue.ts';
import { canName } from '../../model/facts/detail.ts';
import { serviceAddresses } from '../../model/facts/programs.ts';
import { hasPodEnded } from '../../model/facts/workloads.ts';
import {
  type Candidate,
  type ObjectFacts,
  partnerKey,
  type Reference,
  type ResourceType,
  type Wanted,
} from '../../model/snapshot.ts';
import type { Actor } from '../actors.ts';
import { matchesLabels } from '../admission/guards.ts';
import {
  type Context,
  countsOf,
  detailOf,
  groupOf,
  groupsOf,
  isBuiltIn,
  isInside,
  isKind,
  itemsIn,
  servedType,
  shortQuote,
  typeName,
  typesOf,
  valueIn,
  willBeDeleted,
} from '../context.ts';
import type { ContentError } from '../error-texts.ts';
import { type Account, departedGrant } from '../rights.ts';
import { type Held, knownFinalizer, writerOf } from './held.ts';
import { hasWord } from './logs.ts';
import { namedByConvention } from './partners.ts';
import { isAnnotationForOwner } from './pauses.ts';
import { poorHealth, presentFailures, typeOfResource } from './statements.ts';
import { findOwner } from './verdict.ts';

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
  const all = (
    kind: Need['kind'],
    texts: readonly string[],
    certainty: Need['certainty'] = 'unknown',
  ): Need[] => texts.map((text) => ({ kind, text, certainty }));
  const needs: Need[] = [
    ...all('create', neededCreations(context, held), 'likely'),
    ...all('create', tasksOf(context, held)),
    ...neededObjects(context, held, actor),
    ...all('object', servicesHere(context, actor)),
    ...complaints(context, held),
    ...all('state', [
      ...absentObjects(context, held).map(({ what }) => `${what} does not exist`),
      ...failedInputs(context, held).map(
        ({ what, by, failure }) => `${what} (${by}) says: ${shortQuote(failure)}`,
      ),
    ]),
  ];
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
  /** The object between: its kind, and the field of the held object that names it. */
  via?: { kind: string; by: string };
}

/** Returns what the specs of these objects name and a clean-up may read, in this namespace or cluster-scoped. */
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

/**
 * Returns what the references of a spec name. An object of the cluster may mean its reader's namespace, as a ClusterSecretStore
 * with the credentials of each tenant, or that of its controller: a forecast sees which one has the object.
 */
function referredTo(context: Context, object: ObjectFacts): Named[] {
  const { forecast, namespace: own } = context.now;
  return (detailOf(context, object)?.references ?? [])
    .filter(
      ({ field, isMade, isAddress }) =>
        field.startsWith('spec.') && !isMade && (isAddress || canName(field)),
    )
    .flatMap((reference) => {
      const type = typeNamed(context, reference, groupOf(object.apiVersion));
      if (type === undefined) return [];
      const { name, field } = reference;
      const here = object.namespace || (forecast && own.name);
      const namespace = type.namespaced ? (reference.namespace ?? here) : undefined;
      if (type.namespaced && namespace === undefined) return [];
      return { type, namespace, name, by: field };
    });
}

function typeNamed(context: Context, { group, kind, isAddress }: Reference, own: string) {
  const isRead = PLAIN.includes(kind) || isAddress;
  const fits = typesOf(context).filter(
    (type) =>
      isKind(type, kind) &&
      (group ?? type.group) === type.group &&
      (isRead || !isBuiltIn(type.group)),
  );
  return fits.find((type) => type.group === own) ?? fits[0];
}

/** Returns the object, if it was read and exists: by its name, or among the terminating content. */
export function findNamedObject({ now }: Context, { type, namespace = '', name }: Named) {
  const key = partnerKey({ ...type, namespace, name });
  const others = [...groupsOf(now).flatMap(({ examples }) => examples), ...searched(now)];
  return (
    valueIn(now.partners[key]) ??
    others.find((one) => partnerKey({ ...one, group: groupOf(one.apiVersion) }) === key)
  );
}

/** Returns the objects of the namespace that a forecast searched for. */
function searched({ forecast }: Context['now']) {
  return Object.values(forecast?.samples ?? {}).flatMap(({ sample }) => sample ?? []);
}

/** Returns what the held objects name, by references or in any other way that `reasonToRead` knows. */
export function namedByOwner(context: Context, held: Held): Named[] {
  const found = searched(context.now).flatMap((object): Named[] => {
    const by = reasonToRead(context, held, object);
    const type = by === undefined ? undefined : servedType(context, object);
    if (by === undefined || type === undefined) return [];
    return [{ type, namespace: object.namespace, name: object.name, by }];
  });
  return [...objectsNamedBy(context, held.objects), ...found];
}

/** Returns what the owner may read: what the held objects name, and the built-in objects that these name in turn. */
function tiesOf(context: Context, held: Held): Named[] {
  const listed = held.objects.flatMap((object) =>
    (detailOf(context, object)?.names ?? []).flatMap(({ field: by, name }) =>
      listedReads(context, held)
        .filter(({ field }) => field === by)
        .flatMap((need) => typesOf(context).filter((type) => isOfType(need, type)))
        .map((type) => ({ type, namespace: object.namespace, name, by })),
    ),
  );
  const direct = [...namedByOwner(context, held), ...listed];
  const behind = direct.flatMap((named) => {
    const object = findNamedObject(context, named);
    if (object === undefined) return [];
    const by = `which ${object.kind} ${object.name} names`;
    return objectsNamedBy(context, [object])
      .filter(({ type }) => isBuiltIn(type.group))
      .map((next) => ({ ...next, by, via: { kind: object.kind, by: named.by } }));
  });
  return [...direct, ...behind].filter((one) => mayRead(context, held, one));
}

/** Reports whether the owner may read the object: not what Kubernetes creates in every namespace. */
function mayRead(context: Context, held: Held, one: Named): boolean {
  const isEverywhere =
    ['kube-root-ca.crt', 'default'].includes(one.name) && PLAIN.includes(one.type.kind);
  return !isEverywhere && certaintyOf(context, held, one) !== undefined;
}

/** Returns what the owner may read in this namespace. Whether a host was a Service, cannot be told once it is deleted. */
function tiesHere(context: Context, held: Held): Named[] {
  return tiesOf(context, held).filter(
    ({ namespace, type }) => isInside(context, namespace) && type.kind !== 'Service',
  );
}

/** Returns the Services of this namespace that the settings of a controller address. */
function servicesHere({ now }: Context, actor: Actor | undefined): string[] {
  return (actor?.addresses ?? []).flatMap((address) => {
    const [name = '', namespace] = address.split('.');
    return namespace === now.namespace.name ? [`Service ${name} (its settings address it)`] : [];
  });
}

/** Returns what the owner needs of this namespace, of types without any objects left: "Secret creds (spec.secretRef)". */
export function goneNeeds(context: Context, held: Held, actor?: Actor): string[] {
  const empty = countsOf(context.now).filter(({ total }) => total === 0);
  const isGone = (name: string): boolean => empty.some(({ type }) => typeName(type) === name);
  const gone = tiesHere(context, held).filter(({ type }) => isGone(typeName(type)));
  return [
    ...new Set([
      ...gone.map(({ type, name, by }) => `${type.kind} ${name} (${by})`),
      ...(isGone('services') ? servicesHere(context, actor) : []),
    ]),
  ];
}

/**
 * Returns the objects that the specs of the held objects name, that stay, and whose own status reports a failure: the owner
 * may fail with what they configure, such as credentials. The chain leads to those that are being deleted. A failure that
 * names a held object waits for it in turn. What the catalogue lists is what an owner needs of this namespace; any owner may
 * wait for a server of its own API group, as a Database for a MariaDB.
 */
export function failedInputs(
  context: Context,
  held: Held,
): { what: string; by: string; failure: string }[] {
  const isAboutHeld = (text: string): boolean =>
    held.objects.some(({ namespace, name }) => hasWord(text, `${namespace}/${name}`));
  const servers = namedByOwner(context, held).filter(({ type }) => type.group === held.type.group);
  return [...tiesOf(context, held), ...servers].flatMap((named) => {
    const object = willBeDeleted(context, named.namespace)
      ? undefined
      : findNamedObject(context, named);
    if (object === undefined || object.deletionTimestamp !== undefined) return [];
    const said = [
      ...presentFailures(context, object).map(({ text }) => text),
      ...poorHealth(context, object),
    ];
    const failure = said.find((text) => !isAboutHeld(text));
    const what = `${named.type.kind} ${[named.namespace, named.name].filter(Boolean).join('/')}`;
    return failure === undefined ? [] : [{ what, by: named.by, failure }];
  });
}

/** Returns what the catalogue knows that the owner creates in this namespace while it cleans up: beside the object, or by name. */
export function neededCreations(context: Context, held: Held): string[] {
  return listedNeeds(context, held)
    .filter(({ action, when = [] }) => {
      const isNamed = when.some((setting) => setting.includes('$namespace'));
      return action === 'create' && (isNamed || isInside(context, held.subject.namespace));
    })
    .map(({ kind, note }) => `a ${kind} (${note})`);
}

/** Returns objects without finalizers that the owner may read and that are deleted with the namespace. */
function neededObjects(context: Context, held: Held, actor: Actor | undefined): Need[] {
  return tiesOf(context, held).flatMap((one): Need[] => {
    const object = willBeDeleted(context, one.namespace) && findNamedObject(context, one);
    if (!object || !isUnprotected(object, held, actor)) return [];
    const text = `${object.kind} ${object.name} (${one.by})`;
    return [{ kind: 'object', text, certainty: certaintyOf(context, held, one) ?? 'unknown' }];
  });
}

/**
 * Returns why the owner may read this object for its clean-up: a held object or the Namespace names or selects it, it is
 * named after a held object, or it carries a label or an annotation of the owner's project.
 */
function reasonToRead(
  context: Context,
  held: Held,
  { apiVersion, kind, name, labels, allAnnotations = {} }: ObjectFacts & Candidate,
): string | undefined {
  const isOwn = (key: string): boolean => key.includes('/') && isAnnotationForOwner(key, held);
  const isReadBy = (field: string): boolean =>
    isOwn(/^metadata\.annotations\[(.*)\]$/.exec(field)?.[1] ?? `${held.type.group}/`);
  const isInput = groupOf(apiVersion) === '' && INPUTS.includes(kind);
  for (const object of held.objects) {
    const { names = [], selectors = [] } = detailOf(context, object) ?? {};
    const named =
      names.find(
        (one) => one.name === name && (one.kind ?? kind) === kind && isReadBy(one.field),
      ) ?? selectors.find(({ requirements }) => matchesLabels(requirements, labels));
    if (named !== undefined) return named.field.replace(/\.name$/, '');
    if (isInput && name.startsWith(`${object.name}-`)) return 'by its name';
  }
  const { annotations = {} } = context.now.namespace;
  const key = Object.keys(annotations).find((one) => annotations[one] === name && isOwn(one));
  if (key !== undefined) return `annotation ${key} of the namespace`;
  if (listedReads(context, held).some((need) => isCalled(held, need, name))) return 'by its name';
  const mark = isInput ? Object.keys({ ...labels, ...allAnnotations }).find(isOwn) : undefined;
  return mark && `it has ${mark}`;
}

/** Returns what to search for in a forecast: objects that the owners of finalizers may read, or have left here. */
export function wantedInputs(
  context: Context,
  held: readonly Held[],
  type: ResourceType,
): NonNullable<Wanted['samples']> {
  if (isBuiltIn(type.group) && !PLAIN.includes(type.kind)) return [];
  // Until the specs are read, the names in them are not known.
  const readable = held.filter(
    (one) =>
      one.objects.some(({ uid }) => context.now.details[uid] !== undefined) &&
      (knownNeeds(one) === undefined ||
        listedReads(context, one).some((need) => isOfType(need, type))),
  );
  return readable.map((one) => {
    const { owner } = findOwner(context, one);
    return {
      key: `${typeName(type)} of ${typeName(one.type)} ${one.finalizer}`,
      type,
      text: `the owner of ${one.finalizer}`,
      isMeant: (candidate) => {
        const { namespace, name } = candidate;
        if (!isUnprotected(candidate, one, owner?.actor)) return false;
        const by = reasonToRead(context, one, candidate);
        if (by === undefined) return false;
        return mayRead(context, one, { type, namespace, name, by });
      },
    };
  });
}

/** Returns custom objects of the type's group that the held objects name and that do not exist. */
export function absentObjects(context: Context, held: Held): { what: string; isHere: boolean }[] {
  if (knownNeeds(held) !== undefined) return [];
  const named = held.objects.flatMap((object) => referredTo(context, object));
  return named.flatMap(({ type, namespace, name, by }) => {
    const found = context.now.partners[partnerKey({ ...type, namespace, name })];
    // A Secret without a namespace may be one that the owner has yet to write.
    const isInput = type.group === held.type.group || !isInside(context, namespace);
    return isInput && found?.ok && found.value === undefined
      ? [{ what: `${type.kind} ${name} (${by})`, isHere: isInside(context, namespace) }]
      : [];
  });
}

/**
 * Returns what the catalogue knows that the owner of the finalizer needs; undefined where that is not known. Of an object
 * of a built-in type only that is needed: a Pod's containers use what its spec names, not the owner of its finalizer.
 */
function knownNeeds(held: Held): readonly CleanupNeed[] | undefined {
  return knownFinalizer(held)?.needs ?? (isBuiltIn(held.type.group) ? [] : undefined);
}

/** Returns what the catalogue says that the owner needs for these objects. */
function listedNeeds(context: Context, held: Held): CleanupNeed[] {
  const settings = held.objects.flatMap((object) => detailOf(context, object)?.settings ?? []);
  const { name: own } = context.now.namespace;
  return (knownNeeds(held) ?? []).filter(
    ({ when }) =>
      when === undefined || when.some((one) => settings.includes(one.replace('$namespace', own))),
  );
}

/** Returns what the catalogue says that the owner reads. */
function listedReads(context: Context, held: Held): CleanupNeed[] {
  return listedNeeds(context, held).filter(({ action }) => action === 'read');
}

function isOfType(need: CleanupNeed, { group, kind }: ResourceType): boolean {
  return `${need.group}/${need.kind}` === `${group}/${kind}`;
}

/**
 * Returns how certain it is that the owner needs the object. Of a known product it needs what the catalogue lists, and
 * may need what else a listed field names: a ClusterSecretStore instead of a SecretStore, and what that names in turn.
 */
function certaintyOf(
  context: Context,
  held: Held,
  { type, name, by, via }: Named,
): Need['certainty'] | undefined {
  const reads = listedReads(context, held);
  const isListed = (need: CleanupNeed): boolean => {
    if (need.field !== undefined) return by.startsWith(need.field);
    return need.via === undefined ? isCalled(held, need, name) : need.via === via?.kind;
  };
  if (reads.some((need) => isOfType(need, type) && isListed(need))) return 'likely';
  const isBehind = reads.some(({ field }) => field && (via?.by ?? by).startsWith(field));
  return isBehind || knownNeeds(held) === undefined ? 'unknown' : undefined;
}

/** Reports whether the need is an object of this name. */
function isCalled({ objects }: Held, need: { name?: string }, name: string): boolean {
  return objects.some((one) => matchesGlob((need.name ?? '').replace('$name', one.name), name));
}

/** Reports whether nothing keeps the object until the clean-up ends, and whether the owner reads it but did not create it. */
function isUnprotected(object: ObjectFacts, held: Held, actor: Actor | undefined): boolean {
  const uids = held.objects.map(({ uid }) => uid);
  const makers = [...(actor?.programs ?? []), writerOf(held)?.manager];
  const isOutput =
    object.ownerReferences.some(({ uid }) => uids.includes(uid)) ||
    (isBuiltIn(groupOf(object.apiVersion)) &&
      (object.managers ?? []).some((name) => makers.includes(name)));
  return object.finalizers.length === 0 && !isOutput;
}

/** Returns the pods that the owner may have to start here: by a template in the spec, or like a task that the object owns. */
function tasksOf({ now }: Context, held: Held): string[] {
  if (knownNeeds(held) !== undefined) return [];
  const uids = new Set(held.objects.map(({ uid }) => uid));
  const details = held.objects.flatMap(({ uid }) => valueIn(now.details[uid]) ?? []);
  const fields = details.flatMap((one) => (one.endedAt ? [] : (one.templates ?? [])));
  const jobs = itemsIn(now.cluster.jobs).filter(({ owner }) => owner && uids.has(owner.uid));
  const pods = itemsIn(now.forecast?.present.pods).filter(
    (pod) => hasPodEnded(pod) && pod.ownerReferences.some(({ uid }) => uids.has(uid)),
  );
  const tasks = [...jobs.map((one) => `Job ${one.name}`), ...pods.map((one) => `Pod ${one.name}`)];
  return [
    ...[...new Set(fields)].map((field) => `a Pod (${field})`),
    ...tasks.slice(0, 3).map((name) => `something like ${name}, which it made for this object`),
  ];
}

/** A text of NamespaceLifecycle (apiserver), which only an earlier deletion can have caused. */
const TERMINATING = /because it is being terminated/;

/**
 * Returns texts of the status that report a failure: the clean-up may fail in the same way. Work that has ended is not
 * tried again.
 */
function complaints(context: Context, held: Held): Need[] {
  return held.objects.flatMap((object) =>
    detailOf(context, object)?.endedAt === undefined
      ? presentFailures(context, object).map(
          ({ text }): Need => ({
            kind: 'state',
            text: `${object.kind} ${object.name} says in its status: ${shortQuote(text)}`,
            certainty: TERMINATING.test(text) ? 'likely' : 'unknown',
          }),
        )
      : [],
  );
}

/** What an error shows to be gone with this namespace; `isGrantable`: a permission, which can be granted from outside. */
interface Lost {
  text: string;
  isGrantable: boolean;
}

/**
 * Finds what the owner needs and was deleted with this namespace: a Secret that the object names, the
 * RoleBinding that let it act here. Nothing can be created in a terminating namespace, so it is a circle.
 */
export function lostWithNamespace(
  context: Context,
  held: Held,
  account: Account | undefined,
  error: ContentError,
): Lost | undefined {
  const { name: here } = context.now.namespace;
  const hopeless = (text: string): Lost => ({ text, isGrantable: false });
  if (error.kind === 'namespace-terminating') {
    const what = error.resource ?? 'an object';
    return error.namespace === here
      ? hopeless(`it must create ${what} here, and a terminating namespace accepts nothing new`)
      : undefined;
  }
  if (error.kind === 'forbidden') {
    const [, name, place] = IMPERSONATED.exec(error.text) ?? [];
    if (place === here) {
      return hopeless(`ServiceAccount ${name}, as which it acts, was deleted with this namespace`);
    }
    const binding = account && departedGrant(context, account);
    const text = `RoleBinding ${binding}, which gave it permissions here, was deleted with this namespace`;
    return binding ? { text, isGrantable: true } : undefined;
  }
  // A text that it does not exist does not show that it ever did.
  const absent = absentHere(context, held, error);
  return absent === undefined
    ? undefined
    : hopeless(`${absent} does not exist, and a terminating namespace accepts nothing new`);
}

/** An account that may not impersonate a ServiceAccount, with its namespace, has no permission any more. */
const IMPERSONATED =
  /"(?:system:serviceaccount:[^"\\:]{1,63}:)?([^"\\:]{1,253})\\?" is forbidden: .{1,500} cannot impersonate resource \\?"serviceaccounts\\?" .{1,99} in the namespace \\?"([^"\\]{1,63})/;

const ABSENT =
  /not found|notfound|not exist|missing|no such|(?:cannot|can't|could not|couldn't|unable to) (?:be )?(?:find|found|get|read)/i;

/** Words of a failed connection, in Go, Java, Python and of servers. */
const UNREACHABLE =
  /no such host|name resolution|unknown ?host|no servers|\b(?:lookup|dial|connect\w*|unreachable|refused|unavailable|time(?:d )?-?out|deadline)\b/i;

/** Returns the object of this namespace that an error calls missing: a held object, or what it names, names it, or the text says where. */
function absentHere(context: Context, held: Held, error: ContentError): string | undefined {
  const { kind, text } = error;
  const { now } = context;
  const { name: here } = now.namespace;
  const ties = tiesHere(context, held);
  const place = escapeForRegExp(here);
  const isInside = new RegExp(`namespace[ :]{1,2}["'\`\\\\]*${place}(?![\\w-]|\\.\\w)`);
  if (kind === 'not-found') {
    const { name, namespace } = error;
    const type = typeOfResource(context, error);
    const what = `${type?.kind ?? error.resource} ${name}`;
    if (held.objects.some((one) => `${one.kind} ${one.name}` === what)) return undefined;
    if (namespace !== undefined) return namespace === here ? what : undefined;
    // Operators name what they make after the object that it is for: `rabbit-default-user`.
    const isHere =
      ties.some((one) => `${name}-`.startsWith(`${one.name}-`)) ||
      [`${here}/${name}`, `${name}.${here}`].some((word) => hasWord(text, word)) ||
      isInside.test(text) ||
      held.objects.some((one) => isNamedHere(context, one, name));
    return isHere ? what : undefined;
  }
  if (!['other', 'unavailable', 'timeout'].includes(kind)) return undefined;
  if (ABSENT.test(text)) {
    const tie = ties.find((one) => hasWord(text, one.name));
    if (tie !== undefined) return `${tie.type.kind} ${tie.name} (${tie.by})`;
    // `credential "team-1/login" was not found`, `secret "login" from namespace "team-1"`.
    const word = '([a-z0-9][a-z0-9.-]*[a-z0-9])';
    const path = `(?<![\\w./-])${place}/${word}["'\`)]* (?:\\w+ ){0,2}(?:not|missing)\\b|${word}["'\`]* (?:in|from) (?:the )?${isInside.source}`;
    const [, inPath, before] = new RegExp(path, 'i').exec(text) ?? [];
    const name = inPath ?? before;
    if (name && held.objects.every((one) => one.name !== name)) return `${here}/${name}`;
  }
  const isEmpty = countsOf(now).some(
    ({ type, total }) => typeName(type) === 'services' && total === 0,
  );
  if (!isEmpty || !UNREACHABLE.test(text)) return undefined;
  const address = serviceAddresses(text).find((one) => one.endsWith(`.${here}`));
  const service = address?.split('.')[0];
  return service && `Service ${service}`;
}

/** Reports whether a field of the spec is this name, and no reference says that it is in another namespace. */
function isNamedHere(context: Context, object: ObjectFacts, name: string): boolean {
  const { names = [], references = [] } = detailOf(context, object) ?? {};
  return (
    names.some((one) => one.field.startsWith('spec.') && one.name === name) &&
    references.every(
      (one) => one.name !== name || isInside(context, one.namespace ?? object.namespace),
    )
  );
}
