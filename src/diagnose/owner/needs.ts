import { escapeForRegExp, matchesGlob, shortQuote } from '../../base/text.ts';
import type { CleanupNeed } from '../../model/catalogue.ts';
import { groupOf, isBuiltIn, typeName } from '../../model/facts/metadata.ts';
import { serviceAddresses } from '../../model/facts/programs.ts';
import { hasPodEnded } from '../../model/facts/workloads.ts';
import { itemsIn, valueIn } from '../../model/read.ts';
import { type Candidate, type ObjectFacts, partnerKey } from '../../model/snapshot.ts';
import type { Actor } from '../actors.ts';
import { matchesLabels } from '../admission/guards.ts';
import { countsOf, detailOf, groupsOf, servedType, typeNamedBy } from '../content.ts';
import { type Context, isInside, willBeDeleted } from '../context.ts';
import { canName, INPUT_KINDS } from '../detail.ts';
import type { ContentError, ErrorOf } from '../error-texts.ts';
import { nameOf } from '../results.ts';
import { typeNamed } from '../waits.ts';
import { type Held, knownFinalizer, writerOf } from './held.ts';
import { hasWord } from './logs.ts';
import { isAnnotationForOwner } from './settings.ts';
import { troublesOf } from './statements.ts';
import { findOwner } from './verdict.ts';

// What an object names, and what the clean-up of its owner needs of that in a namespace that is going or gone.

/** A place where an object that another one names can be, and the field that names it. */
type Named = ReturnType<typeof objectsNamedBy>[number];

/** Returns what the references of these specs name and a clean-up may read. */
function objectsNamedBy(context: Context, objects: readonly ObjectFacts[]) {
  const { forecast, namespace: own } = context.now;
  return objects.flatMap((object) => {
    // A ClusterSecretStore may mean its reader's namespace, or that of its controller: a forecast sees which one has the object.
    const here = object.namespace || (forecast && own.name);
    const { references = [] } = detailOf(context, object) ?? {};
    return references.flatMap(({ field, group, isAddress, isMade, kind, name, ...given }) => {
      if (!field.startsWith('spec.') || isMade || !(isAddress || canName(field))) return [];
      const type = typeNamed(context, groupOf(object.apiVersion), kind, group);
      if (!type || (isBuiltIn(type.group) && !INPUT_KINDS.includes(kind) && !isAddress)) return [];
      const namespace = type.namespaced ? (given.namespace ?? here) : undefined;
      return type.namespaced && !namespace ? [] : [{ type, namespace, name, by: field }];
    });
  });
}

function findNamedObject({ now }: Context, place: Omit<Named, 'by'>) {
  const { type, namespace = '', name } = place;
  const key = partnerKey({ ...type, namespace, name });
  const all = [...groupsOf(now).flatMap(({ examples }) => examples), ...foundInputs(now)];
  const found = all.find((one) => partnerKey({ ...one, group: groupOf(one.apiVersion) }) === key);
  return valueIn(now.partners[key]) ?? found;
}

function foundInputs({ forecast }: Context['now']): ObjectFacts[] {
  return Object.values(forecast?.samples ?? {}).flatMap(({ sample }) => sample ?? []);
}

/** What may keep an owner from its clean-up. */
export interface Doubt {
  /** A sentence: "it may need Secret creds (spec.secretRef), deleted with this namespace". */
  says: string;
  /** `likely`: the catalogue or the status of an earlier deletion says that it is needed. */
  certainty: 'likely' | 'unknown';
  /** What the namespace takes with it, or no longer lets in: waiting never helps. */
  lost?: string;
  created?: string;
  /** What lets it act, if more than to find out is known. */
  fix?: string | undefined;
}

export const CLOSED = 'and a terminating namespace accepts nothing new';

export function lostDoubt({ now }: Context, what: string, certainty: Doubt['certainty']) {
  const fate = now.forecast ? 'deleted with this namespace' : 'which does not exist here';
  return { says: `it may need ${what}, ${fate}`, certainty, lost: what };
}

/** Returns everything that the owner may need and lacks, or will lack after the deletion; the surest first. */
export function needsOfOwner(context: Context, held: Held, actor?: Actor): Doubt[] {
  const { forecast } = context.now;
  const services = forecast ? servicesHere(context, actor?.addresses) : [];
  // A clean-up may fail as the object says of other work.
  const complaints = (forecast ? held.objects : []).flatMap((object) =>
    troublesOf(context, object).map((text): Doubt => {
      // A text of NamespaceLifecycle (apiserver), which only an earlier deletion can have caused.
      const certainty = /because it is being terminated/.test(text) ? 'likely' : 'unknown';
      return { says: `${nameOf(object)} says in its status: ${shortQuote(text)}`, certainty };
    }),
  );
  const needs = [
    ...creations(context, held),
    ...inputsLacking(context, held, actor),
    ...services.map((one) => lostDoubt(context, `${one} (its settings address it)`, 'unknown')),
    ...complaints,
  ];
  const unique = new Map(needs.map((need) => [need.says, need]));
  // `likely` sorts before `unknown`.
  return [...unique.values()].sort((a, b) => a.certainty.localeCompare(b.certainty));
}

/** Says what the owner needs and was deleted with this namespace, by an error of it: waiting never helps. */
export function lostWithNamespace(context: Context, held: Held, error: ContentError) {
  if (error.kind === 'namespace-terminating') {
    const text = `it must create ${error.resource ?? 'an object'} here, ${CLOSED}`;
    return isInside(context, error.namespace) ? text : undefined;
  }
  const absent = absentHere(context, held, error);
  return absent && `${absent} does not exist, ${CLOSED}`;
}

/** Returns what the catalogue knows that the owner creates here while it cleans up, or the pods that a spec has templates for. */
function creations(context: Context, held: Held): Doubt[] {
  const { cluster, forecast, namespace } = context.now;
  // An object that was deleted before the namespace may have been cleaned up in time.
  if (held.since < (namespace.deletionTimestamp ?? '')) return [];
  const known = listed(context, held, 'create')?.flatMap(({ kind, note, when = [] }) => {
    const isNamed = when.some((one) => one.includes('$namespace'));
    return isNamed || isInside(context, held.subject.namespace) ? [`a ${kind} (${note})`] : [];
  });
  const made = [
    ...itemsIn(cluster.jobs).map((job) => ({ ...job, ownerReferences: [job.owner] })),
    ...itemsIn(forecast?.present.pods).filter(hasPodEnded),
  ];
  const tasks = (forecast ? held.objects : []).flatMap((object) => {
    const { endedAt, templates = [] } = detailOf(context, object) ?? {};
    const own = made.filter((one) => one.ownerReferences.some((by) => by?.uid === object.uid));
    return [
      ...(endedAt ? [] : templates).map((field) => `a Pod (${field})`),
      ...own.slice(0, 3).map(({ kind, name }) => `something like ${kind} ${name}`),
    ];
  });
  const certainty = known ? 'likely' : 'unknown';
  return (known ?? tasks).map((text) => {
    const [what] = text.split(' (', 1);
    return { says: `it may have to create ${what} here, ${CLOSED}`, certainty, created: text };
  });
}

/** Returns what the owner may read: what the held objects name, and the built-in objects that these name in turn. */
export function placesOfInputs(context: Context, held: Held) {
  const found = foundInputs(context.now).flatMap((object) => {
    const by = reasonToRead(context, held, object);
    const type = by && servedType(context, object);
    return type ? [{ type, namespace: object.namespace, name: object.name, by }] : [];
  });
  return [...objectsNamedBy(context, held.objects), ...found].flatMap((one) => {
    const own = findNamedObject(context, one);
    const source = `which ${one.type.kind} ${one.name} names`;
    const behind = objectsNamedBy(context, own ? [own] : [])
      .filter(({ type }) => isBuiltIn(type.group))
      .map((next) => ({ ...next, by: one.by, source }));
    return [{ ...one, source: one.by }, ...behind];
  });
}

function inputsOf(context: Context, held: Held) {
  return placesOfInputs(context, held).flatMap((input) => {
    const certainty = certaintyOf(context, held, input);
    const text = `${input.type.kind} ${input.name} (${input.source})`;
    const object = findNamedObject(context, input);
    const isHere = isInside(context, input.namespace);
    const isGone = isHere && object === undefined && isEmpty(context, input.type);
    return certainty ? [{ ...input, certainty, isGone, isHere, object, text }] : [];
  });
}

/** Returns the inputs that go with the namespace, are gone with it, do not exist, or report a failure themselves. */
function inputsLacking(context: Context, held: Held, actor: Actor | undefined): Doubt[] {
  const { forecast, partners } = context.now;
  return inputsOf(context, held).flatMap((input): Doubt[] => {
    const { certainty, isGone, isHere, object, text, type } = input;
    if (object && willBeDeleted(context, input.namespace))
      return isUnprotected(object, held, actor) ? [lostDoubt(context, text, certainty)] : [];
    if (object) {
      const [said] = object.deletionTimestamp ? [] : troublesOf(context, object);
      return said ? [{ says: `${text} says: ${shortQuote(said)}`, certainty }] : [];
    }
    // Whether a host was a Service, cannot be told once it is deleted.
    if (!forecast && isGone && type.kind !== 'Service')
      return [lostDoubt(context, text, certainty)];
    // A Secret of this namespace may be one that the owner has yet to write.
    const isMeant = type.group === held.type.group || !isHere;
    const isRead = partners[partnerKey({ ...input, ...type })]?.ok === true;
    const fix = isHere ? undefined : `Create ${text} again, as it was`;
    return isRead && isMeant ? [{ says: `${text} does not exist`, certainty, fix }] : [];
  });
}

function isEmpty({ now }: Context, type: Parameters<typeof typeName>[0]): boolean {
  return countsOf(now).some((one) => typeName(one.type) === typeName(type) && one.total === 0);
}

/** Reports whether nothing keeps the object until the clean-up ends, and whether the owner reads it but did not create it. */
function isUnprotected(object: ObjectFacts, held: Held, actor: Actor | undefined): boolean {
  const makers = [...(actor?.programs ?? []), writerOf(held)?.manager];
  const { apiVersion, finalizers, managers = [], ownerReferences } = object;
  const isPart = ownerReferences.some(({ uid }) => held.objects.some((one) => one.uid === uid));
  const isOutput = isBuiltIn(groupOf(apiVersion)) && managers.some((one) => makers.includes(one));
  return finalizers.length === 0 && !isPart && !isOutput;
}

/** Words for what does not exist, in texts of clients and servers of any kind. */
const ABSENT =
  /not found|notfound|not exist|missing|no such|(?:cannot|can't|could not|couldn't|unable to) (?:be )?(?:find|found|get|read)/i;

/** Recognizes an object of this namespace that an error calls missing: a held object names it, or the text says where. */
function absentHere(context: Context, held: Held, error: ContentError): string | undefined {
  const { name: here } = context.now.namespace;
  const named = error.kind === 'not-found' ? namedAbsent(context, held, error) : undefined;
  if (named || !['not-found', 'other', 'unavailable'].includes(error.kind)) return named;
  const [service] = servicesHere(context, serviceAddresses(error.text));
  if (service && isEmpty(context, { group: '', resource: 'services' })) return service;
  // `credential "team-1/login" was not found`
  const place = `(?<![\\w./-])${escapeForRegExp(here)}/([a-z0-9][-a-z0-9.]*[a-z0-9])`;
  const absent = new RegExp(`${place}["'\`)]* (?:\\w+ ){0,2}(?:not|missing)\\b`);
  const [, name] = absent.exec(error.text) ?? [];
  if (name && held.objects.every((one) => one.name !== name)) return `${here}/${name}`;
  if (error.kind === 'unavailable' || !ABSENT.test(error.text)) return undefined;
  return inputsOf(context, held).find(({ isGone, name }) => isGone && hasWord(error.text, name))
    ?.text;
}

/** Reports what the API server has not found, if it was in this namespace: the text or a held object says so. */
function namedAbsent(context: Context, held: Held, error: ErrorOf<'not-found'>) {
  const { name: here } = context.now.namespace;
  const { name, namespace, resource, text } = error;
  const what = `${typeNamedBy(context, resource, error.group)?.kind ?? resource} ${name}`;
  if (held.objects.some((one) => nameOf(one) === what)) return undefined;
  if (namespace !== undefined) return namespace === here ? what : undefined;
  // Operators name what they make after the object that it is for: `rabbit-default-user`.
  const isNamed = held.objects.some((object) => {
    const { names = [], references = [] } = detailOf(context, object) ?? {};
    const inSpec = names.filter(({ field }) => field.startsWith('spec.'));
    const same = references.filter((one) => one.name === name);
    const isHere = same.every((one) => isInside(context, one.namespace ?? here));
    return isHere && inSpec.some((one) => `${name}-`.startsWith(`${one.name}-`));
  });
  const plain = text.replaceAll(/["'`\\]/g, '').replaceAll('namespace: ', 'namespace ');
  const places = [`${here}/${name}`, `${name}.${here}`, `namespace ${here}`];
  return isNamed || places.some((words) => hasWord(plain, words)) ? what : undefined;
}

/** Returns the Services of this namespace that have one of the addresses. */
function servicesHere({ now }: Context, addresses: readonly string[] = []): string[] {
  const own = addresses.filter((one) => one.endsWith(`.${now.namespace.name}`));
  return own.map((one) => `Service ${one.split('.')[0]}`);
}

/** Returns why the owner may read an object: a held one names or selects it, its name, or a mark of the owner's project. */
function reasonToRead(context: Context, held: Held, candidate: ObjectFacts & Candidate) {
  const { apiVersion, kind, name, labels, allAnnotations = {} } = candidate;
  const isOwn = (key: string): boolean => key.includes('/') && isAnnotationForOwner(key, held);
  const isReadBy = (field: string): boolean =>
    isOwn(/^metadata\.annotations\[(.*)\]$/.exec(field)?.[1] ?? `${held.type.group}/`);
  const isInput = groupOf(apiVersion) === '' && ['Secret', 'ConfigMap'].includes(kind);
  for (const object of held.objects) {
    const { names = [], selectors = [] } = detailOf(context, object) ?? {};
    const named =
      names.find(
        (one) => one.name === name && (one.kind ?? kind) === kind && isReadBy(one.field),
      ) ?? selectors.find(({ requirements }) => matchesLabels(requirements, labels));
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
export function wantedInputs(context: Context, held: readonly Held[], type: Held['type']) {
  if (isBuiltIn(type.group) && !INPUT_KINDS.includes(type.kind)) return [];
  // Until the specs are read, the names in them are not known.
  const readable = held.filter((one) => one.objects.some((object) => detailOf(context, object)));
  return readable.map((one) => {
    const { owner } = findOwner(context, one);
    return {
      key: `${typeName(type)} of ${typeName(one.type)} ${one.finalizer}`,
      type,
      isMeant: (candidate: ObjectFacts & Candidate) => {
        const by = reasonToRead(context, one, candidate);
        const isRead = by && certaintyOf(context, one, { type, name: candidate.name, by });
        return isRead !== undefined && isUnprotected(candidate, one, owner?.actor);
      },
    };
  });
}

/** Returns what the catalogue knows that the owner creates or reads for these objects; undefined where that is not known. */
function listed(context: Context, held: Held, action: CleanupNeed['action']) {
  // A Pod's containers use what its spec names, not the owner of its finalizer.
  const needs = knownFinalizer(held)?.needs ?? (isBuiltIn(held.type.group) ? [] : undefined);
  const settings = held.objects.flatMap((one) => detailOf(context, one)?.settings ?? []);
  const isSet = (one: string): boolean =>
    settings.includes(one.replace('$namespace', context.now.namespace.name));
  return needs?.filter((need) => need.action === action && (need.when?.some(isSet) ?? true));
}

/** Returns how certain it is that the owner needs the object: of a known product it needs what the catalogue lists. */
function certaintyOf(context: Context, held: Held, { type, name, by }: Omit<Named, 'namespace'>) {
  const reads = listed(context, held, 'read');
  // Every namespace has these two.
  const isEverywhere = /^(?:ConfigMap kube-root-ca\.crt|ServiceAccount default)$/;
  if (reads === undefined && isEverywhere.test(`${type.kind} ${name}`)) return undefined;
  if (reads === undefined) return 'unknown' as const;
  const alike = reads.filter(({ kind }) => kind === type.kind);
  const isNamed = alike.some(({ field }) => field !== undefined && by.startsWith(field));
  const isListed = isNamed || alike.some((need) => isCalled(held, need, name));
  return isListed ? ('likely' as const) : undefined;
}

function isCalled({ objects }: Held, need: CleanupNeed, name: string): boolean {
  return objects.some((one) => matchesGlob((need.name ?? '').replace('$name', one.name), name));
}
