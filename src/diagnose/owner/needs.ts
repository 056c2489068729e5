import { escapeForRegExp, matchesGlob } from '../../base/text.ts';
import type { CleanupNeed } from '../../model/catalogue.ts';
import { serviceAddresses } from '../../model/facts/programs.ts';
import { hasPodEnded } from '../../model/facts/workloads.ts';
import {
  type Candidate,
  type ObjectFacts,
  partnerKey,
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
  isBuiltIn,
  isInside,
  itemsIn,
  servedType,
  shortQuote,
  typeName,
  willBeDeleted,
} from '../context.ts';
import type { ContentError } from '../error-texts.ts';
import { type Account, departedGrant } from '../rights.ts';
import { type Held, knownFinalizer, writerOf } from './held.ts';
import { hasWord } from './logs.ts';
import { findNamedObject, foundInputs, type Named, objectsNamedBy, PLAIN } from './partners.ts';
import { isAnnotationForOwner } from './pauses.ts';
import { poorHealth, presentFailures, typeOfResource } from './statements.ts';
import { findOwner } from './verdict.ts';

/** Something that the owner of a finalizer may need for its clean-up, and that it lacks or will lack. */
export interface Need {
  /** `object`: goes with the namespace. `create`: a terminating namespace refuses it. `absent`: does not exist. */
  kind: 'object' | 'create' | 'absent' | 'state';
  /** The thing and its source: "Secret creds (spec.secretRef)". */
  text: string;
  /** The same in a sentence: "it may need Secret creds (spec.secretRef), deleted with this namespace". */
  clause: string;
  /** `likely`: the catalogue or the status of an earlier deletion says that it is needed. */
  certainty: 'likely' | 'unknown';
}

interface Question {
  context: Context;
  held: Held;
  actor?: Actor | undefined;
  account?: Account | undefined;
}

/** What an owner may need in a namespace that is going or gone. */
const NEEDS: readonly {
  needs: string;
  /** Finds it before it is missed: in a forecast what will go, in a hang what is gone. */
  finds?: (question: Question) => Need[];
  /** Recognizes it by an error of the owner. */
  error?: (question: Question, error: ContentError) => string | undefined;
  /** It can be granted from outside; for all else the namespace accepts nothing new, and waiting never helps. */
  isGrantable?: true;
}[] = [
  { needs: 'to create an object or a pod', finds: creations, error: refusedCreation },
  { needs: 'a Secret or the like, or another object', finds: inputsLacking, error: absentHere },
  { needs: 'a Service', finds: servicesGoing },
  { needs: 'a ServiceAccount as which it acts', error: lostAccount },
  { needs: 'a right', error: lostBinding, isGrantable: true },
  { needs: 'that its work succeeds', finds: complaints },
];

/** Returns everything that the owner may need and lacks, or will lack after the deletion; the surest first. */
export function needsOfOwner(context: Context, held: Held, actor?: Actor): Need[] {
  const needs = NEEDS.flatMap(({ finds }) => finds?.({ context, held, actor }) ?? []);
  return [...new Map(needs.map((need) => [need.clause, need])).values()].toSorted(
    (a, b) => Number(a.certainty === 'unknown') - Number(b.certainty === 'unknown'),
  );
}

/** Finds what the owner needs and was deleted with this namespace, by an error of it. */
export function lostWithNamespace(question: Question, error: ContentError) {
  return NEEDS.flatMap(({ error: shows, isGrantable = false }) => {
    const text = shows?.(question, error);
    return text === undefined ? [] : { text, isGrantable };
  })[0];
}

/** Returns what the catalogue knows that the owner creates here while it cleans up, or the pods that a spec has templates for. */
function creations({ context, held }: Question): Need[] {
  const { cluster, forecast, namespace } = context.now;
  // An object that was deleted before the namespace may have been cleaned up in time.
  if (!forecast && held.since < (namespace.deletionTimestamp ?? '')) return [];
  const known = listed(context, held, 'create')?.flatMap(({ kind, note, when = [] }) => {
    const isNamed = when.some((one) => one.includes('$namespace'));
    return isNamed || isInside(context, held.subject.namespace) ? `a ${kind} (${note})` : [];
  });
  const tasks = (forecast ? held.objects : []).flatMap((object) => {
    const { endedAt, templates = [] } = detailOf(context, object) ?? {};
    const jobs = itemsIn(cluster.jobs).filter(({ owner }) => owner?.uid === object.uid);
    const pods = itemsIn(forecast?.present.pods).filter(
      (pod) => hasPodEnded(pod) && pod.ownerReferences.some(({ uid }) => uid === object.uid),
    );
    const made = [
      ...jobs.map(({ name }) => `Job ${name}`),
      ...pods.map(({ name }) => `Pod ${name}`),
    ];
    return [
      ...(endedAt ? [] : templates.map((field) => `a Pod (${field})`)),
      ...made.slice(0, 3).map((one) => `something like ${one}, which it made for this object`),
    ];
  });
  const certainty = known ? 'likely' : 'unknown';
  return (known ?? tasks).map((text) => {
    const clause = `it may have to create ${text} here, which a terminating namespace refuses`;
    return { kind: 'create', text, clause, certainty };
  });
}

function refusedCreation({ context }: Question, error: ContentError): string | undefined {
  return error.kind === 'namespace-terminating' && isInside(context, error.namespace)
    ? `it must create ${error.resource ?? 'an object'} here${ACCEPTS_NOTHING}`
    : undefined;
}

const ACCEPTS_NOTHING = ', and a terminating namespace accepts nothing new';

/** Returns what the held objects name, by references or in any other way that `reasonToRead` knows. */
export function namedByOwner(context: Context, held: Held): Named[] {
  const found = foundInputs(context.now).flatMap((object): Named[] => {
    const by = reasonToRead(context, held, object);
    const type = by && servedType(context, object);
    return type ? [{ type, namespace: object.namespace, name: object.name, by }] : [];
  });
  const reads = listed(context, held, 'read') ?? [];
  const told = held.objects.flatMap((object) =>
    (detailOf(context, object)?.names ?? []).flatMap(({ field: by, name }) =>
      reads
        .filter(({ field }) => field === by)
        .flatMap(
          (need) => servedType(context, { apiVersion: `${need.group}/`, kind: need.kind }) ?? [],
        )
        .map((type) => ({ type, namespace: object.namespace, name, by })),
    ),
  );
  return [...objectsNamedBy(context, held.objects), ...told, ...found];
}

/** Returns what the owner may read: what the held objects name, and the built-in objects that these name in turn. */
function inputsOf(context: Context, held: Held) {
  const direct = namedByOwner(context, held).map((one) => ({ ...one, source: one.by }));
  const behind = direct.flatMap(({ by, ...named }) => {
    const object = findNamedObject(context, named);
    const source = `which ${named.type.kind} ${named.name} names`;
    return objectsNamedBy(context, object ? [object] : [])
      .filter(({ type }) => isBuiltIn(type.group))
      .map((next) => ({ ...next, by, source }));
  });
  return [...direct, ...behind].flatMap((one) => {
    const certainty = certaintyOf(context, held, one);
    const text = `${one.type.kind} ${one.name} (${one.source})`;
    return certainty === undefined ? [] : { ...one, certainty, text };
  });
}

/** Returns the inputs that go with the namespace, are gone with it, do not exist, or report a failure themselves. */
function inputsLacking({ context, held, actor }: Question): Need[] {
  const { forecast, partners } = context.now;
  return inputsOf(context, held).flatMap(({ type, namespace, name, certainty, text }): Need[] => {
    const object = findNamedObject(context, { type, namespace, name });
    const is = (kind: Need['kind'], clause: string) => [{ kind, text, clause, certainty }];
    if (object && willBeDeleted(context, namespace)) {
      const isLacking = isUnprotected(object, held, actor);
      return isLacking ? is('object', `it may need ${text}, deleted with this namespace`) : [];
    }
    const said = object && !object.deletionTimestamp && failureOf(context, held, object);
    if (object) return said ? is('state', `${text} says: ${said}`) : [];
    const isHere = isInside(context, namespace);
    // Whether a host was a Service, cannot be told once it is deleted.
    if (!forecast && isHere && type.kind !== 'Service' && isEmpty(context, typeName(type)))
      return is('object', `it may need ${text}, which does not exist here`);
    const read = partners[partnerKey({ ...type, namespace, name })];
    // A Secret of this namespace may be one that the owner has yet to write.
    const isMeant = type.group === held.type.group || !isHere;
    return read?.ok && isMeant ? is('absent', `${text} does not exist`) : [];
  });
}

function isEmpty({ now }: Context, type: string): boolean {
  return countsOf(now).some((one) => typeName(one.type) === type && one.total === 0);
}

/** Returns the failure that an object reports, unless it names a held object: it waits for that in turn. */
function failureOf(context: Context, held: Held, object: ObjectFacts): string | undefined {
  const said = presentFailures(context, object).map(({ text }) => text);
  const found = [...said, ...poorHealth(context, object)].find((text) =>
    held.objects.every(({ namespace, name }) => !hasWord(text, `${namespace}/${name}`)),
  );
  return found && shortQuote(found);
}

/** Reports whether nothing keeps the object until the clean-up ends, and whether the owner reads it but did not create it. */
function isUnprotected(object: ObjectFacts, held: Held, actor: Actor | undefined): boolean {
  const makers = [...(actor?.programs ?? []), writerOf(held)?.manager];
  const isOutput =
    object.ownerReferences.some(({ uid }) => held.objects.some((one) => one.uid === uid)) ||
    (isBuiltIn(groupOf(object.apiVersion)) &&
      (object.managers ?? []).some((name) => makers.includes(name)));
  return object.finalizers.length === 0 && !isOutput;
}

/** Words for what does not exist, in texts of clients and servers of any kind. */
const ABSENT =
  /not found|notfound|not exist|missing|no such|(?:cannot|can't|could not|couldn't|unable to) (?:be )?(?:find|found|get|read)/i;

/** Recognizes an object of this namespace that an error calls missing: the held object names it, or the text says where. */
function absentHere({ context, held }: Question, error: ContentError): string | undefined {
  const { kind, text } = error;
  const { name: here } = context.now.namespace;
  const lost = (what: string): string => `${what} does not exist${ACCEPTS_NOTHING}`;
  const inputs = inputsOf(context, held).filter(({ namespace }) => isInside(context, namespace));
  if (kind === 'not-found') {
    const { name, namespace } = error;
    const what = `${typeOfResource(context, error)?.kind ?? error.resource} ${name}`;
    if (held.objects.some((one) => `${one.kind} ${one.name}` === what)) return undefined;
    const details = held.objects.flatMap((object) => detailOf(context, object) ?? []);
    const isNamed = details.some(
      ({ names = [], references = [] }) =>
        names.some((one) => one.field.startsWith('spec.') && one.name === name) &&
        references.every((one) => one.name !== name || isInside(context, one.namespace ?? here)),
    );
    const isSaid = [
      `${here}/${name}`,
      `${name}.${here}`,
      `namespace ${here}`,
      `namespace: ${here}`,
    ].some((words) => hasWord(text.replaceAll(/["'`\\]/g, ''), words));
    // Operators name what they make after the object that it is for: `rabbit-default-user`.
    const isMade = inputs.some((one) => `${name}-`.startsWith(`${one.name}-`));
    const isHere = namespace === undefined ? isNamed || isSaid || isMade : namespace === here;
    return isHere ? lost(what) : undefined;
  }
  if (!['other', 'unavailable', 'timeout'].includes(kind)) return undefined;
  const input = inputs.find((one) => one.type.kind !== 'Service' && hasWord(text, one.name));
  const isLeft =
    input &&
    (findNamedObject(context, input) !== undefined ||
      countsOf(context.now).some(
        (one) => typeName(one.type) === typeName(input.type) && one.queued > 0,
      ));
  if (input && !isLeft && ABSENT.test(text)) return lost(input.text);
  // `credential "team-1/login" was not found`
  const word = `(?<![\\w./-])${escapeForRegExp(here)}/([a-z0-9][-a-z0-9.]*[a-z0-9])`;
  const [, path] = new RegExp(`${word}["'\`)]* (?:\\w+ ){0,2}(?:not|missing)\\b`).exec(text) ?? [];
  if (path && ABSENT.test(text) && held.objects.every((one) => one.name !== path))
    return lost(`${here}/${path}`);
  const address = serviceAddresses(text).find((one) => isInside(context, one.split('.')[1]));
  return address && isEmpty(context, 'services')
    ? lost(`Service ${address.split('.')[0]}`)
    : undefined;
}

/** Returns the Services of this namespace that the settings of a controller address. */
function servicesGoing({ context, actor }: Question): Need[] {
  const { forecast, namespace } = context.now;
  if (!forecast && !isEmpty(context, 'services')) return [];
  const fate = forecast ? 'deleted with this namespace' : 'which does not exist here';
  const here = (actor?.addresses ?? []).filter((one) => one.endsWith(`.${namespace.name}`));
  return here.map((address) => {
    const text = `Service ${address.split('.')[0]} (its settings address it)`;
    return { kind: 'object', text, clause: `it may need ${text}, ${fate}`, certainty: 'unknown' };
  });
}

/** An account that may not impersonate a ServiceAccount, with its namespace, has no permission any more. */
const IMPERSONATED =
  /"(?:system:serviceaccount:[^"\\:]{1,63}:)?([^"\\:]{1,253})\\?" is forbidden: .{1,500} cannot impersonate resource \\?"serviceaccounts\\?" .{1,99} in the namespace \\?"([^"\\]{1,63})/;

function lostAccount({ context }: Question, { kind, text }: ContentError): string | undefined {
  const [, name, place] = (kind === 'forbidden' && IMPERSONATED.exec(text)) || [];
  return isInside(context, place)
    ? `ServiceAccount ${name}, as which it acts, was deleted with this namespace`
    : undefined;
}

function lostBinding({ context, account }: Question, { kind }: ContentError): string | undefined {
  const binding = kind === 'forbidden' && account && departedGrant(context, account);
  return binding
    ? `RoleBinding ${binding}, which gave it permissions here, was deleted with this namespace`
    : undefined;
}

/** A text of NamespaceLifecycle (apiserver), which only an earlier deletion can have caused. */
const TERMINATING = /because it is being terminated/;

/** Returns the failures that the held objects report before their deletion: the clean-up may fail in the same way. */
function complaints({ context, held }: Question): Need[] {
  const working = held.objects.filter((object) => !detailOf(context, object)?.endedAt);
  return (context.now.forecast ? working : []).flatMap((object) =>
    presentFailures(context, object).map(({ text }): Need => {
      const clause = `${object.kind} ${object.name} says in its status: ${shortQuote(text)}`;
      return {
        kind: 'state',
        text,
        clause,
        certainty: TERMINATING.test(text) ? 'likely' : 'unknown',
      };
    }),
  );
}

/** Returns why the owner may read an object: a held one names or selects it, its name, or a mark of the owner's project. */
function reasonToRead(
  context: Context,
  held: Held,
  { apiVersion, kind, name, labels, allAnnotations = {} }: ObjectFacts & Candidate,
): string | undefined {
  const isOwn = (key: string): boolean => key.includes('/') && isAnnotationForOwner(key, held);
  const isReadBy = (field: string): boolean =>
    isOwn(/^metadata\.annotations\[(.*)\]$/.exec(field)?.[1] ?? `${held.type.group}/`);
  const isInput = groupOf(apiVersion) === '' && ['Secret', 'ConfigMap'].includes(kind);
  for (const object of held.objects) {
    const { names = [], selectors = [] } = detailOf(context, object) ?? {};
    const isNamed = (one: (typeof names)[number]): boolean =>
      one.name === name && (one.kind ?? kind) === kind && isReadBy(one.field);
    const isSelected = ({ requirements }: (typeof selectors)[number]): boolean =>
      matchesLabels(requirements, labels);
    const named = names.find(isNamed) ?? selectors.find(isSelected);
    if (named !== undefined) return named.field.replace(/\.name$/, '');
    if (isInput && name.startsWith(`${object.name}-`)) return 'by its name';
  }
  if (listed(context, held, 'read')?.some((need) => isCalled(held, need, name)))
    return 'by its name';
  const { annotations = {} } = context.now.namespace;
  const key = Object.keys(annotations).find((one) => annotations[one] === name && isOwn(one));
  if (key !== undefined) return `annotation ${key} of the namespace`;
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
  const readable = held.filter((one) => one.objects.some((object) => detailOf(context, object)));
  return readable.map((one) => {
    const { owner } = findOwner(context, one);
    return {
      key: `${typeName(type)} of ${typeName(one.type)} ${one.finalizer}`,
      type,
      isMeant: (candidate) => {
        const by = reasonToRead(context, one, candidate);
        const isRead = by && certaintyOf(context, one, { type, name: candidate.name, by });
        return isRead !== undefined && isUnprotected(candidate, one, owner?.actor);
      },
    };
  });
}

/**
 * Returns what the catalogue knows that the owner creates or reads for these objects; undefined where that is not known. Of
 * a built-in object only that is needed: a Pod's containers use what its spec names, not the owner of its finalizer.
 */
function listed(
  context: Context,
  held: Held,
  action: CleanupNeed['action'],
): CleanupNeed[] | undefined {
  const needs = knownFinalizer(held)?.needs ?? (isBuiltIn(held.type.group) ? [] : undefined);
  const settings = held.objects.flatMap((one) => detailOf(context, one)?.settings ?? []);
  const isSet = (one: string): boolean =>
    settings.includes(one.replace('$namespace', context.now.namespace.name));
  return needs?.filter((need) => need.action === action && (need.when?.some(isSet) ?? true));
}

/**
 * Returns how certain it is that the owner needs the object. Of a known product it needs what the catalogue lists, and
 * may need what else a listed field names: a ClusterSecretStore instead of a SecretStore, and what that names in turn.
 */
function certaintyOf(
  context: Context,
  held: Held,
  { type, name, by }: Pick<Named, 'type' | 'name' | 'by'>,
): Need['certainty'] | undefined {
  // Every namespace has these.
  if (PLAIN.includes(type.kind) && ['kube-root-ca.crt', 'default'].includes(name)) return undefined;
  const named = listed(context, held, 'read')?.filter((need) =>
    need.field === undefined ? isCalled(held, need, name) : by.startsWith(need.field),
  );
  if (named === undefined) return 'unknown';
  const isListed = named.some(({ group, kind }) => kind === type.kind && group === type.group);
  return isListed ? 'likely' : named.some(({ field }) => field) ? 'unknown' : undefined;
}

/** Reports whether the need is an object of this name. */
function isCalled({ objects }: Held, need: CleanupNeed, name: string): boolean {
  return objects.some((one) => matchesGlob((need.name ?? '').replace('$name', one.name), name));
}
