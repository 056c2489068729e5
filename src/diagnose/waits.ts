import { escapeForRegExp, isKindNamed } from '../base/text.ts';
import { domainOf } from '../model/catalogue.ts';
import type { Read } from '../model/read.ts';
import {
  type NamespaceFacts,
  type ObjectFacts,
  partnerKey,
  type Reference,
  type ResourceType,
  type Wanted,
} from '../model/snapshot.ts';
import type { Actor } from './actors.ts';
import {
  behindId,
  type Context,
  detailOf,
  groupOf,
  groupsOf,
  isBuiltIn,
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
import { isOfOneProject } from './owner/names.ts';
import { isWaitText, statusTexts } from './owner/statements.ts';
import { findingsOfPod, linksToObject, terminatingPods } from './rules/pods.ts';

// What a held object waits for: other terminating objects, pods, another of its finalizers, namespaces.

/** A terminating object, and the one under which its finding stands: the first of its group. */
interface Terminating {
  object: ObjectFacts;
  head: ObjectFacts;
  isOutside: boolean;
}

/** A held object, and the texts that say what it waits for. */
interface Waiting {
  context: Context;
  held: Held;
  texts: readonly Said[];
}

interface Said {
  text: string;
  because: string;
}

/** Why a held object waits for another terminating one; the row says when. */
const EDGES = {
  /**
   * Its status names it. What its spec names was made from it, or is shared by many and then waits for them: it counts
   * only outside of the namespace, and if its own spec names the held object.
   */
  named: ({ context, held }, { object: to, isOutside }) => {
    const isMutual = isOutside && isInSpecOf(context, to, held);
    const references = held.objects.flatMap((from) => referencesTo(context, from, to));
    const named = references.find(({ field }) => field.startsWith('status.') || isMutual);
    const isNamedByUid = held.objects.some((from) =>
      detailOf(context, from)?.uids?.includes(to.uid),
    );
    const field = named?.field ?? (isNamedByUid ? 'its status' : undefined);
    const fate = context.now.forecast === undefined ? 'is being deleted, too' : WOULD_BE_DELETED;
    return field && `${field} names it, and it ${fate}`;
  },
  owned: ({ held }, { object: { ownerReferences } }) =>
    ownerReferences.some(({ uid }) => held.objects.some((owner) => owner.uid === uid))
      ? 'it owns it, and waits until it is deleted'
      : undefined,
  /**
   * It protects itself from those that use it: their specs name it, and its finalizer says so or is on them as well (Secrets
   * with the credentials for custom objects).
   */
  used: ({ context, held }, { object: user }) => {
    const isShared = isBuiltIn(held.type.group) && user.finalizers.includes(held.finalizer);
    const isUser =
      (PROTECTION.test(held.finalizer) || isShared) &&
      isInSpecOf(context, user, held) &&
      detailOf(context, user)?.endedAt === undefined;
    return isUser ? 'it uses it, and has not finished' : undefined;
  },
  /** Its status, or the log of its controller, says that it waits for it. */
  told: ({ context, held, texts }, { object }) =>
    texts.find(({ text }) => isAwaited(context, held, text, object))?.because,
} satisfies Record<string, (waiting: Waiting, to: Terminating) => string | undefined>;

const WOULD_BE_DELETED = 'would be deleted with it';
const NAMED = 'its status names it as what it waits for';
const NAMED_IN_LOG = "its controller's log names it as what it waits for";

/** Finalizers that protect an object while others use it: `pvc-as-source-protection`, `in-use.crossplane.io`. */
export const PROTECTION = /protect|in-?use|usage/i;

type EdgeName = keyof typeof EDGES;

/** A terminating object that a held one waits for. Its finding stands under `object`, the first of its group. */
interface Wait {
  object: ObjectFacts;
  isOutside: boolean;
  because: string;
}

/** Returns the terminating objects that a held one waits for: by these edges, or by all of them. */
export function objectsAwaited(
  context: Context,
  held: Held,
  edges = Object.keys(EDGES) as readonly EdgeName[],
  texts = edges.includes('told') ? waitTexts(context, held) : [],
): Wait[] {
  const all = terminatingObjects(context).filter(({ object }) => !held.objects.includes(object));
  return edges.flatMap((edge) =>
    all.flatMap((to) => {
      const because = EDGES[edge]({ context, held, texts }, to);
      return because === undefined ? [] : [{ object: to.head, isOutside: to.isOutside, because }];
    }),
  );
}

/** Returns links to everything that a held object waits for, as far as its owner is known to do so. */
export function linksOfWaits(context: Context, held: Held, owner?: Actor): Link[] {
  const texts = [
    ...waitTexts(context, held, owner),
    ...(owner === undefined ? [] : waitsInLog(context, held, owner)),
  ];
  return [
    ...objectsAwaited(context, held, undefined, texts).flatMap(({ object, because }) =>
      linksToObject(context, object, because),
    ),
    ...linksToPods(context, held),
    ...texts.flatMap((said) => finalizerAwaited(held, said)),
    ...namespaceLinks(context, namespacesAwaited(context, held, texts)),
  ];
}

/** Returns links to what one text names as awaited. */
export function linksOfText(context: Context, held: Held, text: string, because = NAMED): Link[] {
  if (!isWaitText(text)) return [];
  const said = { text, because };
  return [
    ...objectsAwaited(context, held, ['told'], [said]).flatMap(({ object }) =>
      linksToHeld(object, because),
    ),
    ...finalizerAwaited(held, said),
    ...namespaceLinks(context, namespacesAwaited(context, held, [said])),
  ];
}

/** Returns the terminating objects of the namespace, and those outside of it that were read by name. */
export function terminatingObjects({ now }: Context): Terminating[] {
  const inside = groupsOf(now).flatMap(({ examples }) =>
    examples.map((object) => ({ object, head: examples[0] ?? object, isOutside: false })),
  );
  const outside = Object.values(now.partners)
    .flatMap((read) => valueIn(read) ?? [])
    .filter(({ deletionTimestamp }) => deletionTimestamp !== undefined)
    .map((object) => ({ object, head: object, isOutside: true }));
  return [...inside, ...outside];
}

/** Returns the references in the spec and the status of an object to another one. */
export function referencesTo(context: Context, from: ObjectFacts, to: ObjectFacts): Reference[] {
  const own = groupOf(to.apiVersion);
  return (detailOf(context, from)?.references ?? []).filter(
    ({ group = own, kind, namespace = from.namespace, name }) =>
      name === to.name &&
      isKind(to, kind) &&
      group === own &&
      [namespace, ''].includes(to.namespace),
  );
}

/** Reports whether the spec of an object names one of the held objects. */
export function isInSpecOf(context: Context, from: ObjectFacts, { objects }: Held): boolean {
  return objects.some((to) =>
    referencesTo(context, from, to).some(({ field }) => field.startsWith('spec.')),
  );
}

/** Returns the texts of the status that say what is waited for. */
function waitTexts(context: Context, held: Held, owner?: Actor): Said[] {
  return statusTexts(context, held, owner)
    .filter(({ words }) => isWaitText(words))
    .map(({ words }) => ({ text: words, because: NAMED }));
}

/** `"Waiting for the Gadget" Widget="team-1/db" Gadget="team-1/cache"`: the text has the kind, a field the name. */
function waitsInLog(context: Context, held: Held, owner: Actor): Said[] {
  return currentLogLines(context, held, owner)
    .map(({ text, beside }) => {
      const named = beside.filter((one) => isKindNamed(text, one.split(' ', 1)[0] ?? ''));
      return { text: [text, ...named].join(' '), because: NAMED_IN_LOG };
    })
    .filter(({ text }) => isWaitText(text));
}

/** The end of a whole word, which is not the beginning of a longer name. */
const NAME_END = '(?![\\w-]|[./]\\w)';

/**
 * Reports whether a text names an object as awaited: by its name where it says what is waited for, or by its kind and
 * either its name, the number of all that are terminating, or a reference between both.
 */
function isAwaited(context: Context, held: Held, text: string, object: ObjectFacts): boolean {
  const name = `["'\`]?${escapeForRegExp(object.name)}${NAME_END}["'\`]?`;
  const kind = escapeForRegExp(object.kind);
  // `gadgets/cache`, `team-a/cache`, and not one of another namespace.
  const path = `(?:[\\w./-]{0,100}${kind}[\\w.-]{0,100}/)?(?:${escapeForRegExp(object.namespace)}/)?`;
  const matches = (clause: string, words: string): boolean => new RegExp(words, 'i').test(clause);
  return text
    .split(/[;.]\s/)
    .filter(isWaitText)
    .some(
      (clause) =>
        matches(clause, `${AWAITS} ${name}`) ||
        matches(clause, `(?<![\\w./-])${name} ${STAYS}`) ||
        (isKindNamed(clause, object.kind) &&
          (matches(clause, `(?<![\\w./-])${path}${name}`) ||
            matches(clause, `(?<![\\w.-])${countOf(context, object)} ${kind}(?:e?s)?(?![\\w-])`) ||
            held.objects.some((one) => isTied(context, one, object)))),
    );
}

const AWAITS =
  '\\b(?:wait\\w*|block\\w*|pending|depends?) (?:for|until|on|by)(?: the)?(?: deletion of)?';
const STAYS =
  '(?:still exists|remains|is (?:still )?(?:being deleted|terminating|in use)|(?:is|was|has) not (?:yet )?(?:been )?(?:ready|deleted|gone|removed))';

/** Returns how many of its kind are terminating. */
function countOf(context: Context, { kind }: ObjectFacts): number {
  return terminatingObjects(context).filter(({ object }) => object.kind === kind).length;
}

function isTied(context: Context, a: ObjectFacts, b: ObjectFacts): boolean {
  return referencesTo(context, a, b).length + referencesTo(context, b, a).length > 0;
}

/** Returns a link to another finalizer of the object that a text names first: "waiting for B to remove A". */
function finalizerAwaited({ objects, finalizer }: Held, { text, because }: Said): Link[] {
  const [object] = objects;
  const placeOf = (one: string): number =>
    text.search(new RegExp(`(?<![\\w.-])${escapeForRegExp(one)}${NAME_END}`));
  const [first] = (object?.finalizers ?? [])
    .filter((one) => placeOf(one) >= 0)
    .sort((a, b) => placeOf(a) - placeOf(b));
  return object === undefined || first === undefined || first === finalizer
    ? []
    : linksToHeld({ ...object, finalizers: [first] }, because);
}

interface NamespaceWait {
  namespace: NamespaceFacts;
  because: string;
}

/** Returns the terminating namespaces that a held object waits for: a text names them as such, or it stands for them. */
export function namespacesAwaited(
  context: Context,
  held: Held,
  texts: readonly Said[] = waitTexts(context, held),
): NamespaceWait[] {
  return otherTerminating(context).flatMap((namespace) => {
    const said = texts.find(({ text }) => isNamespaceNamed(text, namespace));
    const [why] = held.objects.flatMap((one) => namespaceTie(context, held, one, namespace) ?? []);
    const reason = said?.because ?? why;
    if (reason === undefined) return [];
    return [
      { namespace, because: `it waits until Namespace ${namespace.name} is deleted (${reason})` },
    ];
  });
}

/** Links to everything that these namespaces wait for, as far as it was read; `diagnose` puts it in their places. */
function namespaceLinks({ now }: Context, waits: readonly NamespaceWait[]): Link[] {
  return waits
    .filter(({ namespace: { name } }) => now.behind?.[name] !== undefined)
    .map(({ namespace: { name }, because }) => ({ id: behindId(name), because }));
}

/** Reports whether the text names the namespace itself, and not as the place of something else. */
function isNamespaceNamed(text: string, { name }: NamespaceFacts): boolean {
  const before = '(?<!\\b(?:in|into|from|to|of) (?:the )?)namespaces?[\\s:/]+["\'`]?';
  return new RegExp(before + escapeForRegExp(name) + NAME_END, 'i').test(text);
}

/**
 * Says why an object stands for a namespace: it has a manifest of it, its status refers to it, or the namespace names it in
 * a label or annotation of the object's project (`example.com/child-of: db`).
 */
function namespaceTie(
  context: Context,
  { finalizer, type }: Held,
  object: ObjectFacts,
  { name, labels, annotations }: NamespaceFacts,
): string | undefined {
  const { references = [], deletionPolicy } = detailOf(context, object) ?? {};
  const made = references.find(
    (one) =>
      one.kind === 'Namespace' &&
      one.name === name &&
      (one.isMade || one.field.startsWith('status.')),
  );
  if (made !== undefined) return deletionPolicy === 'Orphan' ? undefined : `${made.field} names it`;
  // A SubnamespaceAnchor has the name of its namespace, which names the parent.
  const parent = object.name === name ? [object.namespace] : [];
  const names = [object.uid, object.name, `${object.namespace}/${object.name}`, ...parent];
  const back = Object.entries({ ...labels, ...annotations }).find(([key, value]) => {
    const [domain = '', ...rest] = key.split('/');
    const projects = [domainOf(finalizer), type.group];
    return (
      rest.length > 0 &&
      names.includes(value) &&
      projects.some((own) => isOfOneProject(own, domain))
    );
  });
  return back && `its ${back[0]} names ${object.kind} ${object.name}`;
}

/** Returns links to the terminating pods that the held object owns, directly or through other objects. */
export function linksToPods(context: Context, { objects }: Held): Link[] {
  return terminatingPods(context)
    .filter((pod) => {
      const owners = ownersAbove(context, pod);
      return objects.some(({ uid }) => owners.has(uid));
    })
    .flatMap((pod) =>
      linksTo(findingsOfPod(context, pod), `Pod ${pod.name} belongs to it and has not ended`),
    );
}

/** Returns the owners of an object and their owners, by UID. A hostile cluster may have circles. */
function ownersAbove(
  { now }: Context,
  { ownerReferences }: ObjectFacts,
): Map<string, ObjectFacts['ownerReferences'][number]> {
  const inside = groupsOf(now).flatMap(({ examples }) => examples);
  const byName = Object.values(now.partners).flatMap((read) => valueIn(read) ?? []);
  const known = new Map([...byName, ...inside].map((object) => [object.uid, object]));
  const found = new Map(ownerReferences.map((reference) => [reference.uid, reference]));
  // A Map also visits the entries that are added meanwhile, each once.
  for (const uid of found.keys()) {
    for (const reference of known.get(uid)?.ownerReferences ?? []) {
      found.set(reference.uid, reference);
    }
  }
  return found;
}

type Partners = Wanted['partners'];

/** Returns the owners of terminating pods to read, such as a ReplicaSet or a Job. */
export function ownersOfPods(context: Context): Partners {
  return terminatingPods(context)
    .slice(0, MAX_PODS)
    .flatMap((pod) =>
      [...ownersAbove(context, pod).values()].flatMap((owner) => {
        const type = servedType(context, owner);
        if (type === undefined) return [];
        return { type, namespace: type.namespaced ? pod.namespace : undefined, name: owner.name };
      }),
    );
}

const MAX_PODS = 20;

/** Types that wait for no other object, and whose content is never read. */
const NEVER_WAITING = new Set(['Secret', 'ConfigMap', 'ServiceAccount']);

/**
 * Returns the objects outside of the namespace that a held object names in its spec or status, and those that its texts
 * name as awaited; without their namespace, in `homes`, those of the controllers.
 */
export function namedOutside(
  context: Context,
  held: Held,
  homes: readonly string[] = [],
): Partners {
  const own = context.now.namespace.name;
  const references = held.objects.flatMap((one) => detailOf(context, one)?.references ?? []);
  const told = waitTexts(context, held)
    .flatMap(({ text }) => [...text.matchAll(NAMED_OBJECT)])
    .map(([, kind = '', place, name = '']) => {
      const places = place === undefined ? homes : [place];
      return isKind({ kind: 'Namespace' }, kind)
        ? []
        : placesOf(typeNamed(context, held, kind), places, name);
    })
    .filter((found) => found.length > 0);
  return [
    ...references.flatMap(({ group, kind, namespace = own, name }) =>
      placesOf(typeNamed(context, held, kind, group), [namespace], name),
    ),
    ...told.slice(0, MAX_TOLD).flat(),
  ].filter(({ namespace }) => namespace !== own);
}

const MAX_TOLD = 3;
/** The kind, the namespace and the name in `waiting for Network vpc`, `job "wipe"` and `Backup team-x/nightly remains`. */
const NAMED_OBJECT =
  /(?<![\w.-])([A-Za-z]\w*)[\s:/]+["'`]?(?:([a-z0-9-]+)\/)?([a-z0-9][a-z0-9.-]*[a-z0-9])/g;

/** Returns the type of a kind: of the same group or of Kubernetes, or one that only one group has. */
function typeNamed(
  context: Context,
  { type: { group: own } }: Held,
  kind: string,
  group?: string,
): ResourceType | undefined {
  const alike = typesOf(context).filter(
    (type) => isKind(type, kind) && type.group === (group ?? type.group),
  );
  const found = [own, ''].flatMap((one) => alike.find((type) => type.group === one) ?? []);
  const [type = alike.length === 1 ? alike[0] : undefined] = found;
  return type && !NEVER_WAITING.has(type.kind) ? type : undefined;
}

function placesOf(
  type: ResourceType | undefined,
  places: readonly string[],
  name: string,
): Partners {
  if (type === undefined) return [];
  return (type.namespaced ? places : [undefined]).map((namespace) => ({ type, namespace, name }));
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
  const [other] = namespacesAwaited(context, held);
  if (other !== undefined) return `Namespace ${other.namespace.name} was not read in time`;
  const details = held.objects.map(({ uid }) => now.details[uid]);
  const isUnread = details.every((detail) => detail !== undefined && isCut<unknown>(detail));
  return isUnread && details.length > 0 ? 'its status was not read in time' : undefined;
}
