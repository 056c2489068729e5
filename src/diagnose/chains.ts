import { escapeForRegExp } from '../base/text.ts';
import type { Read } from '../model/read.ts';
import {
  type NamespaceFacts,
  type ObjectFacts,
  partnerKey,
  type Wanted,
} from '../model/snapshot.ts';
import type { Actor } from './actors.ts';
import {
  behindId,
  type Context,
  detailOf,
  findingId,
  groupOf,
  groupsOf,
  itemsIn,
  type Link,
  linksTo,
  linksToHeld,
  subjectOf,
  typeName,
  typesOf,
  valueIn,
} from './context.ts';
import type { Held } from './owner/held.ts';
import { isAnnotationForOwner, statusTexts } from './owner/state.ts';
import { findingsOfPod, terminatingPods } from './rules/pods.ts';

/**
 * Returns what a held object waits for inside of its namespace, beyond the held objects that it owns: pods
 * that belong to it and have not ended, held objects that its status names, and another of its finalizers.
 */
export function linksInside(context: Context, held: Held, owner?: Actor): Link[] {
  const said = statusTexts(context, held, owner).map(({ text }) => text);
  return [
    ...podsOf(context, held).flatMap((pod) =>
      linksTo(findingsOfPod(context, pod), `Pod ${pod.name} belongs to it and has not ended`),
    ),
    ...linksBehind(context, held),
    ...said.flatMap((text) => linksNamedIn(context, held, text)),
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
  const others = otherTerminating(context);
  if (others.length === 0) return [];
  const said = statusTexts(context, held).filter(({ text }) => isWaitText(text));
  return others.flatMap((namespace) => {
    const why = held.objects.flatMap((object) => reasonFor(context, held, object, namespace) ?? []);
    const isSaid = said.some(({ text }) => isNamespaceNamed(text, namespace));
    const [reason] = isSaid ? [NAMED] : why;
    if (reason === undefined) return [];
    const because = `it waits until Namespace ${namespace.name} is deleted (${reason})`;
    return [{ namespace, because }];
  });
}

function otherTerminating({ now }: Context): NamespaceFacts[] {
  return itemsIn(now.cluster.namespaces).filter(
    ({ name, deletionTimestamp }) => deletionTimestamp !== undefined && name !== now.namespace.name,
  );
}

/** Reports whether the text names the namespace itself, and not as the place of something else. */
function isNamespaceNamed(text: string, { name }: NamespaceFacts): boolean {
  if (!text.includes(name)) return false;
  const place = '(?<!\\b(?:in|into|from|to|of) (?:the )?)';
  return new RegExp(
    `${place}namespaces?[\\s:/]+["'\`]?${escapeForRegExp(name)}(?![\\w-]|[./]\\w)`,
    'i',
  ).test(text);
}

const NAMED = 'its status names it as what it waits for';

function reasonFor(
  context: Context,
  held: Held,
  object: ObjectFacts,
  { name, owners, labels, annotations }: NamespaceFacts,
): string | undefined {
  const { references = [], mentions = [], deletionPolicy } = detailOf(context, object) ?? {};
  if (owners?.includes(object.uid)) return 'it owns it';
  const made = references.find(
    (one) =>
      one.kind === 'Namespace' && one.name === name && (one.isMade || /^status\./.test(one.field)),
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

/** The longest chain of owner references that is followed; a hostile cluster may have circles. */
const MAX_GENERATIONS = 10;

/** Returns the terminating pods that the held object owns, directly or through other objects. */
function podsOf(context: Context, { objects }: Held) {
  const owners = new Set(objects.map(({ uid }) => uid));
  return terminatingPods(context).filter((pod) =>
    ancestorsOf(context, pod).some(({ uid }) => owners.has(uid)),
  );
}

/** Returns the owners of an object, and their owners; an owner that was not read has no `object`. */
function ancestorsOf(context: Context, { ownerReferences, namespace }: ObjectFacts) {
  const found: {
    reference: ObjectFacts['ownerReferences'][number];
    uid: string;
    known: boolean;
  }[] = [];
  let references = ownerReferences;
  for (let step = 0; step < MAX_GENERATIONS && references.length > 0; step++) {
    references = references.flatMap((reference) => {
      const { read, object } = ownerOf(context, reference, namespace);
      found.push({ reference, uid: reference.uid, known: read });
      return object?.ownerReferences ?? [];
    });
  }
  return found;
}

/** Returns the object that an owner reference names: from the terminating content, or read by its name. */
function ownerOf(
  { now }: Context,
  { apiVersion, kind, name, uid }: ObjectFacts['ownerReferences'][number],
  namespace: string,
): { read: boolean; object?: ObjectFacts | undefined } {
  for (const { examples } of groupsOf(now)) {
    const object = examples.find((one) => one.uid === uid);
    if (object !== undefined) return { read: true, object };
  }
  const answer = now.partners[partnerKey({ group: groupOf(apiVersion), kind, namespace, name })];
  const object = valueIn(answer);
  // An object with the name of a deleted owner but another UID is not that owner.
  return { read: answer !== undefined, object: object?.uid === uid ? object : undefined };
}

/** Requests the owners of terminating pods that were not read yet, such as a ReplicaSet or a Job. */
export function wantOwnersOfPods(context: Context, wanted: Wanted): void {
  if (context.now.forecast !== undefined) return;
  const types = typesOf(context);
  for (const pod of terminatingPods(context).slice(0, MAX_PODS)) {
    for (const { reference, known } of ancestorsOf(context, pod)) {
      const type = types.find(
        ({ group, kind }) => group === groupOf(reference.apiVersion) && kind === reference.kind,
      );
      if (known || type === undefined || !type.verbs.includes('list')) continue;
      const namespace = type.namespaced ? pod.namespace : undefined;
      wanted.partners.push({ type, namespace, name: reference.name });
    }
  }
}

const MAX_PODS = 20;

const WAITING =
  /\bwait|\bstill\b|\buntil\b|\bremain|\bpending\b|\bblock|\bdepend|\b(?:in use|used|referenced)\b|\b(?:being|for) delet|\bexists?\b|\bnot (?:yet )?(?:been )?(?:gone|deleted|removed|finalized)\b/i;
const FAILING =
  /\brefused|\btime(?:d )?-?out|\bunauthori[sz]ed|\bdenied|\bforbidden|no such host|x509|certificate|\b5\d\d\b|internal error|does not exist|not exist/i;

/** Reports whether a text says that another object must be deleted first, and not that a request failed. */
function isWaitText(text: string): boolean {
  return WAITING.test(text) && !FAILING.test(text);
}

/**
 * Returns links to what a status text names literally as what is waited for: a held object or a terminating
 * pod, by its kind and name, or another finalizer of the same object.
 */
export function linksNamedIn(context: Context, held: Held, text: string): Link[] {
  if (!isWaitText(text)) return [];
  const because = NAMED;
  const [first] = held.objects;
  if (first === undefined) return [];
  const subject = subjectOf(first);
  // A text that names both finalizers says of one that it waits for the other: "waiting for B to remove A".
  const others = first.finalizers
    .filter((finalizer) => finalizer !== held.finalizer && isNamed(text, finalizer))
    .filter(
      (finalizer) => !isNamed(text, held.finalizer) || comesFirst(text, finalizer, held.finalizer),
    );
  return [
    ...others.map((finalizer) => ({
      id: findingId('object-finalizer', subject, finalizer),
      because,
    })),
    ...groupsOf(context.now).flatMap(({ type, examples, finalizers }) => {
      const isOther = (object: ObjectFacts): boolean =>
        held.objects.every(({ uid }) => uid !== object.uid) &&
        (isNamed(text, object.name) || refersTo(context, held, object));
      const [head] = examples;
      const isWaitedFor =
        head !== undefined &&
        finalizers.length > 0 &&
        examples.some(isOther) &&
        [type.kind, type.resource, typeName(type)].some((kind) => isKindNamed(text, kind));
      return isWaitedFor ? linksToHeld(head, because) : [];
    }),
    ...outsideNamedIn(context, held, text).flatMap((object) => linksToHeld(object, because)),
    ...terminatingPods(context)
      .filter(({ name }) => isNamed(text, name) && /\bpods?\b/i.test(text))
      .flatMap((pod) => linksTo(findingsOfPod(context, pod), because)),
    ...otherTerminating(context)
      .filter((namespace) => isNamespaceNamed(text, namespace))
      .map(({ name }) => ({ id: behindId(name), because })),
  ];
}

/** Reports whether the spec or status of a held object refers to the object. */
function refersTo(context: Context, { objects }: Held, { kind, name, namespace }: ObjectFacts) {
  const own = context.now.namespace.name;
  return objects.some((one) =>
    detailOf(context, one)?.references.some(
      (reference) =>
        reference.kind === kind &&
        reference.name === name &&
        (namespace === '' || (reference.namespace ?? own) === namespace),
    ),
  );
}

/**
 * Returns terminating objects outside of the namespace that a status names as what is waited for: by kind and name, or by
 * the kind of an object to which the held one refers.
 */
export function awaitedOutside(context: Context, held: Held): ObjectFacts[] {
  return waitTexts(context, held).flatMap((text) => outsideNamedIn(context, held, text));
}

function outsideNamedIn(context: Context, held: Held, text: string): ObjectFacts[] {
  return Object.values(context.now.partners)
    .flatMap((read) => valueIn(read) ?? [])
    .filter(
      (object) =>
        object.deletionTimestamp !== undefined &&
        isKindNamed(text, object.kind) &&
        (isNamed(text, object.name) || refersTo(context, held, object)),
    );
}

/** Returns cluster-scoped objects that a status names as what is waited for: `waiting for Network vpc`. */
export function namedInTexts(context: Context, held: Held): Wanted['partners'] {
  const texts = waitTexts(context, held);
  if (texts.length === 0) return [];
  const types = typesOf(context).filter(
    ({ kind, namespaced, verbs }) => !namespaced && kind !== 'Namespace' && verbs.includes('list'),
  );
  return types
    .flatMap((type) => {
      const name = new RegExp(
        `(?<![\\w.-])${type.kind}[\\s:/]+["'\`]?([a-z0-9][a-z0-9.-]*[a-z0-9])`,
        'g',
      );
      return texts.flatMap((text) =>
        Array.from(text.matchAll(name), ([, found = '']) => ({
          ...{ type, namespace: undefined, name: found },
        })),
      );
    })
    .slice(0, MAX_NAMED);
}

const MAX_NAMED = 3;

function waitTexts(context: Context, held: Held): string[] {
  return statusTexts(context, held).flatMap(({ text }) => (isWaitText(text) ? [text] : []));
}

/** Reports whether the text contains the name as a whole word, and not as a part of a longer name. */
function isNamed(text: string, name: string): boolean {
  return new RegExp(`(?<![\\w.-])${escapeForRegExp(name)}(?![\\w-]|[./]\\w)`).test(text);
}

/** Reports whether the text contains the kind in any spelling: `Part`, `parts`, `part/db`. */
function isKindNamed(text: string, kind: string): boolean {
  return new RegExp(`(?<![\\w.-])${escapeForRegExp(kind)}s?(?![\\w-]|\\.\\w)`, 'i').test(text);
}

function comesFirst(text: string, one: string, other: string): boolean {
  return text.indexOf(one) < text.indexOf(other);
}

/** Types that wait for no other object, and whose content is never read. */
export const NEVER_WAITING: ReadonlySet<string> = new Set([
  'Secret',
  'ConfigMap',
  'ServiceAccount',
]);

/** Returns the objects outside of the namespace that a held object names in its spec or status. */
export function namedOutside(context: Context, { objects, type }: Held): Wanted['partners'] {
  const own = context.now.namespace.name;
  const references = objects.flatMap((object) => detailOf(context, object)?.references ?? []);
  return references.flatMap(({ group, kind, namespace, name }) => {
    const alike = typesOf(context).filter((candidate) => candidate.kind === kind);
    const near = alike.find((candidate) =>
      group === undefined
        ? candidate.group === type.group || candidate.group === ''
        : candidate.group === group,
    );
    // A kind that only one group has needs no group.
    const found = near ?? (group === undefined && alike.length === 1 ? alike[0] : undefined);
    if (NEVER_WAITING.has(kind) || found === undefined || !found.verbs.includes('list')) return [];
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
  const isUnread = held.objects.every(({ uid }) => {
    const detail = now.details[uid];
    return detail !== undefined && isCut<unknown>(detail);
  });
  return isUnread && held.objects.length > 0 ? 'its status was not read in time' : undefined;
}
