import { escapeForRegExp, isKindNamed } from '../base/text.ts';
import type { Read } from '../model/read.ts';
import {
  type NamespaceFacts,
  type ObjectFacts,
  partnerKey,
  type ResourceType,
  type Wanted,
} from '../model/snapshot.ts';
import type { Actor } from './actors.ts';
import {
  behindId,
  type Context,
  detailOf,
  groupsOf,
  isKind,
  type Link,
  linksTo,
  linksToHeld,
  otherTerminating,
  servedType,
  typesOf,
  valueIn,
} from './context.ts';
import type { Held } from './owner/held.ts';
import { currentLogLines } from './owner/logs.ts';
import { referencesTo, terminatingObjects } from './owner/partners.ts';
import { isAnnotationForOwner } from './owner/pauses.ts';
import { isWaitText, statusTexts } from './owner/statements.ts';
import { findingsOfPod, terminatingPods } from './rules/pods.ts';

/**
 * Returns what a held object waits for inside of its namespace, beyond the held objects that it owns: pods
 * that belong to it and have not ended, held objects that its status names, and another of its finalizers.
 */
export function linksInside(context: Context, held: Held, owner?: Actor): Link[] {
  const statuses = statusTexts(context, held, owner);
  const lines = owner === undefined ? [] : currentLogLines(context, held, owner);
  return [
    ...podsOf(context, held).flatMap((pod) =>
      linksTo(findingsOfPod(context, pod), `Pod ${pod.name} belongs to it and has not ended`),
    ),
    ...linksBehind(context, held),
    ...statuses.flatMap(({ words }) => linksNamedIn(context, held, words)),
    ...lines.flatMap(({ text, beside }) => {
      // `"Waiting for the Gadget" Widget="team-1/db" Gadget="team-1/cache"`: the text has the kind, a field the name.
      const named = beside.filter((one) => isKindNamed(text, one.split(' ', 1)[0] ?? ''));
      return linksNamedIn(context, held, [text, ...named].join(' '), NAMED_IN_LOG);
    }),
  ];
}

/**
 * Returns the terminating namespaces that a held object waits for: its manifest or its status makes or names them as
 * such, or both name each other (a SubnamespaceAnchor has the name of its namespace, whose annotation names the
 * parent). A name alone is no reason: a controller does not wait for every namespace in which it works.
 */
export function namespacesBehind(
  context: Context,
  held: Held,
): { namespace: NamespaceFacts; because: string }[] {
  const texts = waitTexts(context, held);
  return otherTerminating(context).flatMap((namespace) => {
    const isSaid = texts.some((text) => isNamespaceNamed(text, namespace));
    const why = held.objects.flatMap((object) => reasonFor(context, held, object, namespace) ?? []);
    const [reason] = isSaid ? [NAMED] : why;
    if (reason === undefined) return [];
    const because = `it waits until Namespace ${namespace.name} is deleted (${reason})`;
    return [{ namespace, because }];
  });
}

/** Reports whether the text names the namespace itself, and not as the place of something else. */
function isNamespaceNamed(text: string, { name }: NamespaceFacts): boolean {
  const before = '(?<!\\b(?:in|into|from|to|of) (?:the )?)namespaces?[\\s:/]+["\'`]?';
  return new RegExp(before + escapeForRegExp(name) + NAME_END, 'i').test(text);
}

/** The end of a whole word, which is not the beginning of a longer name. */
const NAME_END = '(?![\\w-]|[./]\\w)';

const NAMED = 'its status names it as what it waits for';
const NAMED_IN_LOG = "its controller's log names it as what it waits for";

function reasonFor(
  context: Context,
  held: Held,
  object: ObjectFacts,
  { name, labels, annotations }: NamespaceFacts,
): string | undefined {
  const { references = [], mentions = [], deletionPolicy } = detailOf(context, object) ?? {};
  const made = references.find(
    (one) =>
      one.kind === 'Namespace' &&
      one.name === name &&
      (one.isMade || one.field.startsWith('status.')),
  );
  if (made !== undefined) return deletionPolicy === 'Orphan' ? undefined : `${made.field} names it`;
  if (object.name !== name && !mentions.includes(name)) return undefined;
  const own = [object.uid, object.name, object.namespace, `${object.namespace}/${object.name}`];
  const [back] =
    Object.entries({ ...labels, ...annotations }).find(
      ([key, value]) => key.includes('/') && own.includes(value) && isAnnotationForOwner(key, held),
    ) ?? [];
  return back === undefined ? undefined : `its ${back} names ${object.kind} ${object.name}`;
}

/** Links to everything that these namespaces wait for, which `diagnose` puts in their places. */
function linksBehind(context: Context, held: Held): Link[] {
  return namespacesBehind(context, held)
    .filter(({ namespace }) => context.now.behind?.[namespace.name] !== undefined)
    .map(({ namespace, because }) => ({ id: behindId(namespace.name), because }));
}

/** Returns the terminating pods that the held object owns, directly or through other objects. */
function podsOf(context: Context, { objects }: Held) {
  const known = objectsByUid(context);
  return terminatingPods(context).filter((pod) => {
    const owners = ownersAbove(pod, known);
    return objects.some(({ uid }) => owners.has(uid));
  });
}

/** Returns the objects that were read, among which the owners of others are. */
function objectsByUid({ now }: Context): Map<string, ObjectFacts> {
  const inside = groupsOf(now).flatMap(({ examples }) => examples);
  const byName = Object.values(now.partners).flatMap((read) => valueIn(read) ?? []);
  return new Map([...byName, ...inside].map((object) => [object.uid, object]));
}

/** Returns the owners of an object and their owners, by UID. A hostile cluster may have circles. */
function ownersAbove(
  { ownerReferences }: ObjectFacts,
  known: ReadonlyMap<string, ObjectFacts>,
): Map<string, ObjectFacts['ownerReferences'][number]> {
  const found = new Map(ownerReferences.map((reference) => [reference.uid, reference]));
  // A Map also visits the entries that are added meanwhile, each once.
  for (const uid of found.keys()) {
    for (const reference of known.get(uid)?.ownerReferences ?? []) {
      found.set(reference.uid, reference);
    }
  }
  return found;
}

/** Requests the owners of terminating pods that were not read yet, such as a ReplicaSet or a Job. */
export function wantOwnersOfPods(context: Context, wanted: Wanted): void {
  if (context.now.forecast !== undefined) return;
  const known = objectsByUid(context);
  for (const pod of terminatingPods(context).slice(0, MAX_PODS)) {
    for (const reference of ownersAbove(pod, known).values()) {
      const type = servedType(context, reference);
      if (known.has(reference.uid) || type === undefined) continue;
      const namespace = type.namespaced ? pod.namespace : undefined;
      wanted.partners.push({ type, namespace, name: reference.name });
    }
  }
}

const MAX_PODS = 20;

/**
 * Returns links to what a text names literally as what is waited for: a held object by its kind and name, a
 * terminating namespace, or another finalizer of the same object.
 */
export function linksNamedIn(context: Context, held: Held, text: string, because = NAMED): Link[] {
  if (!isWaitText(text)) return [];
  const [first] = held.objects;
  if (first === undefined) return [];
  const placeIn = (finalizer: string): number => text.indexOf(finalizer);
  // A text that names both finalizers says of one that it waits for the other: "waiting for B to remove A".
  const [other] = first.finalizers
    .filter((finalizer) => isNamed(text, finalizer))
    .sort((a, b) => placeIn(a) - placeIn(b));
  const finalizers = other === undefined || other === held.finalizer ? [] : [other];
  return [
    ...linksToHeld({ ...first, finalizers }, because),
    ...objectsNamedIn(context, held, text).flatMap(({ head }) => linksToHeld(head, because)),
    ...otherTerminating(context)
      .filter((namespace) => isNamespaceNamed(text, namespace))
      .map(({ name }) => ({ id: behindId(name), because })),
  ];
}

/**
 * Returns terminating objects that a text names as what is waited for: by kind and name, by their kind and number (`2
 * gadgets remaining`, if two are terminating), or by their kind, if one of both refers to the other.
 */
function objectsNamedIn(context: Context, { objects }: Held, text: string) {
  const clauses = text.split(/[;.]\s/).filter(isWaitText);
  const all = terminatingObjects(context);
  const counts = new Map<string, number>();
  for (const { object } of all) counts.set(object.kind, (counts.get(object.kind) ?? 0) + 1);
  return all.filter(
    ({ object }) =>
      !objects.includes(object) &&
      clauses.some(
        (clause) =>
          isPointedAt(clause, object) ||
          (isKindNamed(clause, object.kind) &&
            (isObjectNamed(clause, object) ||
              isCounted(clause, object.kind, counts.get(object.kind)) ||
              objects.some((held) => areTied(context, held, object)))),
      ),
  );
}

function areTied(context: Context, a: ObjectFacts, b: ObjectFacts): boolean {
  return referencesTo(context, a, b).length + referencesTo(context, b, a).length > 0;
}

/** Reports whether the text names the object, and not one of another namespace: `cache`, `gadgets/cache`, `team-a/cache`. */
function isObjectNamed(text: string, { kind, namespace, name }: ObjectFacts): boolean {
  const type = `(?:[\\w./-]{0,100}${escapeForRegExp(kind)}[\\w.-]{0,100}/)?`;
  const place = namespace === '' ? '' : `(?:${escapeForRegExp(namespace)}/)?`;
  const word = `(?<![\\w./-])${type}${place}${escapeForRegExp(name)}${NAME_END}`;
  return new RegExp(word, 'i').test(text);
}

/** Reports whether the text waits for a name, whatever its kind: "waiting for g1", "g1 still exists", "g1 is not ready". */
function isPointedAt(text: string, { name }: ObjectFacts): boolean {
  const word = `["'\`]?${escapeForRegExp(name)}${NAME_END}["'\`]?`;
  const before = `\\b(?:wait\\w*|block\\w*|pending|depends?) (?:for|until|on|by)(?: the)?(?: deletion of)? ${word}`;
  const after = `(?<![\\w./-])${word} (?:still exists|remains|is (?:still )?(?:being deleted|terminating|in use)|(?:is|was|has) not (?:yet )?(?:been )?(?:ready|deleted|gone|removed))`;
  return new RegExp(`${before}|${after}`, 'i').test(text);
}

function isCounted(text: string, kind: string, count = 0): boolean {
  const word = `(?<![\\w.-])${count} ${escapeForRegExp(kind)}(?:e?s)?(?![\\w-])`;
  return new RegExp(word, 'i').test(text);
}

/** Returns terminating objects outside of the namespace that a status names as what is waited for. */
export function awaitedOutside(context: Context, held: Held): ObjectFacts[] {
  return waitTexts(context, held)
    .flatMap((text) => objectsNamedIn(context, held, text))
    .flatMap(({ object, isOutside }) => (isOutside ? [object] : []));
}

/** The kind, the namespace and the name in `waiting for Network vpc`, `job "wipe"` and `Backup team-x/nightly remains`. */
const NAMED_OBJECT =
  /(?<![\w.-])([A-Za-z]\w*)[\s:/]+["'`]?(?:([a-z0-9-]+)\/)?([a-z0-9][a-z0-9.-]*[a-z0-9])/g;

/**
 * Returns objects outside of the namespace that texts name as what is waited for; without their namespace, in `homes`,
 * those of the controllers.
 */
export function namedInTexts(
  context: Context,
  texts: readonly string[],
  homes: readonly string[],
): Wanted['partners'] {
  const own = context.now.namespace.name;
  return texts
    .flatMap((text) => [...text.matchAll(NAMED_OBJECT)])
    .map(([, kind = '', place, name = '']) =>
      typesOf(context)
        .filter((type) => type.kind.toLowerCase() === kind.toLowerCase())
        .flatMap((type) =>
          placesFor(type, place, homes).map((namespace) => ({ type, namespace, name })),
        )
        .filter(({ namespace, type }) => namespace !== own && type.kind !== 'Namespace'),
    )
    .filter((found) => found.length > 0)
    .slice(0, MAX_NAMED)
    .flatMap((found) => found.slice(0, MAX_NAMESAKES));
}

function placesFor(
  { namespaced }: ResourceType,
  place: string | undefined,
  homes: readonly string[],
): (string | undefined)[] {
  if (place !== undefined) return namespaced ? [place] : [];
  return namespaced ? [...homes] : [undefined];
}

const MAX_NAMED = 3;
/** The number of types of one kind, in different API groups, that a name may be of. */
const MAX_NAMESAKES = 20;

/** Returns the texts of the status that say what is waited for. */
export function waitTexts(context: Context, held: Held): string[] {
  return statusTexts(context, held).flatMap(({ words }) => (isWaitText(words) ? [words] : []));
}

/** Reports whether the text contains the name as a whole word, and not as a part of a longer name. */
function isNamed(text: string, name: string): boolean {
  return new RegExp(`(?<![\\w.-])${escapeForRegExp(name)}${NAME_END}`).test(text);
}

/** Types that wait for no other object, and whose content is never read. */
const NEVER_WAITING = new Set(['Secret', 'ConfigMap', 'ServiceAccount']);

/** Returns the objects outside of the namespace that a held object names in its spec or status. */
export function namedOutside(context: Context, { objects, type }: Held): Wanted['partners'] {
  const own = context.now.namespace.name;
  const references = objects.flatMap((object) => detailOf(context, object)?.references ?? []);
  return references.flatMap(({ group, kind, namespace, name }) => {
    const alike = typesOf(context).filter(
      (candidate) => isKind(candidate, kind) && candidate.group === (group ?? candidate.group),
    );
    // A reference without a group means a kind of the same group or of Kubernetes, or one that only one group has.
    const found =
      alike.find((candidate) => candidate.group === type.group) ??
      alike.find((candidate) => candidate.group === '') ??
      (alike.length === 1 ? alike[0] : undefined);
    if (NEVER_WAITING.has(kind) || found === undefined) return [];
    if (!found.namespaced) return [{ type: found, namespace: undefined, name }];
    return (namespace ?? own) === own ? [] : [{ type: found, namespace, name }];
  });
}

/**
 * Says why the chain was not followed behind a held object: the examination ended before the objects were read
 * that it names. What it waits for is then unknown, and its owner is no root cause.
 */
export function chainCutText(context: Context, held: Held): string | undefined {
  const { now } = context;
  if (now.forecast !== undefined) return undefined;
  const isCut = <T>(answer: Read<T> | undefined): boolean =>
    answer === undefined || (!answer.ok && answer.failure.kind === 'aborted');
  const cut = namedOutside(context, held).find(({ type, namespace, name }) =>
    isCut(now.partners[partnerKey({ ...type, namespace, name })]),
  );
  if (cut !== undefined) return `it names ${cut.type.kind} ${cut.name}, which was not read in time`;
  const [other] = namespacesBehind(context, held);
  if (other !== undefined) return `Namespace ${other.namespace.name} was not read in time`;
  const details = held.objects.map(({ uid }) => now.details[uid]);
  const isUnread = details.every((detail) => detail !== undefined && isCut<unknown>(detail));
  return isUnread && details.length > 0 ? 'its status was not read in time' : undefined;
}
