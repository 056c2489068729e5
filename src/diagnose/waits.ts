import { escapeForRegExp } from '../base/text.ts';
import { groupOf, isBuiltIn } from '../model/facts/metadata.ts';
import { itemsIn, type Read, valueIn } from '../model/read.ts';
import { type ObjectFacts, partnerKey, type Wanted } from '../model/snapshot.ts';
import type { Actor } from './actors.ts';
import { showObjectRemedy, withRole } from './commands.ts';
import { detailOf, groupsOf, isSameKind, terminatingPods, typesOf } from './content.ts';
import { type Context, isInside, remember } from './context.ts';
import { INPUT_KINDS } from './detail.ts';
import type { Held } from './owner/held.ts';
import { currentLogLines } from './owner/logs.ts';
import { domainOf, isOfOneProject } from './owner/names.ts';
import { isWaitText, statusTexts } from './owner/statements.ts';
import { idsOfHeld, namespaceSubject, type RuleResult, resultId } from './results.ts';
import { idsOfObject } from './rules/pods.ts';

type Tie = (context: Context, held: Held, to: ObjectFacts, texts: readonly string[]) => boolean;

/** When a held object waits for another terminating one; `texts` say what it waits for. */
const EDGES = {
  /** Its status names it. What its spec names is shared by many: it counts outside of the namespace, and if it names the held object. */
  named: (context, held, to) => {
    const isMutual = !isInside(context, to.namespace) && isInSpecOf(context, to, held);
    const fields = held.objects.flatMap((from) => fieldsNaming(context, from, to));
    return fields.some((field) => isMutual || field.startsWith('status.'));
  },
  /** It owns it: the only ones for which Kubernetes' own finalizers wait. */
  owned: (_, { objects }, part) =>
    part.ownerReferences.some(({ uid }) => objects.some((one) => one.uid === uid)),
  /** It was made for it: a label or annotation of its project names it (`example.com/cluster-name: db`). */
  part: (_, held, part) => isLabelled(held, part),
  /** The other one needs it, and its finalizer protects it meanwhile, or is on both (Secrets with credentials). */
  used: (context, held, user) => {
    const isShared = isBuiltIn(held.type.group) && user.finalizers.includes(held.finalizer);
    return (
      (PROTECTION.test(held.finalizer) || isShared) &&
      isInSpecOf(context, user, held) &&
      detailOf(context, user)?.endedAt === undefined
    );
  },
  /** Its status, or the log of its controller, says so. */
  told: (_, __, other, texts) => texts.some((text) => isAwaited(text, other)),
} satisfies Record<string, Tie>;

/** Finalizers that protect an object while others use it: `pvc-as-source-protection`, `in-use.crossplane.io`. */
export const PROTECTION = /protect|in-?use|usage/i;

/** Returns the terminating objects that a held one waits for: the first of each group, under which its finding stands. */
export function objectsAwaited(
  context: Context,
  held: Held,
  edges: readonly (keyof typeof EDGES)[] = ['named', 'owned', 'part', 'used', 'told'],
  texts: readonly string[] = waitTexts(context, held),
): ObjectFacts[] {
  const isTied = (object: ObjectFacts): boolean =>
    !held.objects.includes(object) &&
    edges.some((edge) => EDGES[edge](context, held, object, texts));
  const found = terminatingGroups(context).filter((group) => group.some(isTied));
  return [...new Set(found.flatMap(([head]) => head ?? []))];
}

/** Returns the ids of all findings that a held object waits for; `owner`: the one that is known to do so. */
export function idsAwaited(context: Context, held: Held, owner?: Actor): string[] {
  const lines = owner === undefined ? [] : currentLogLines(context, held, owner);
  const texts = [...waitTexts(context, held), ...lines.map(({ text }) => text)];
  const objects = objectsAwaited(context, held).flatMap((object) => idsOfObject(context, object));
  return [...objects, ...idsTold(context, held, texts)];
}

/** Returns the ids of objects, of other finalizers of the object, and of namespaces, that texts call awaited. */
export function idsTold(context: Context, held: Held, all: readonly string[]): string[] {
  const texts = all.filter(isWaitText);
  const isAhead = context.now.forecast !== undefined;
  const namespaces = isAhead ? [] : namespacesAwaited(context, held, texts);
  return [
    ...objectsAwaited(context, held, ['told'], texts).flatMap((one) => idsOfObject(context, one)),
    ...texts.flatMap((text) => finalizerAwaited(held, text)),
    ...namespaces.map(resultId),
  ];
}

/** Returns the terminating objects of the namespace by group, each of its pods, and those outside of it that were read by name. */
const terminatingGroups = remember((context: Context): ObjectFacts[][] => {
  const partners = Object.values(context.now.partners).flatMap((read) => valueIn(read) ?? []);
  const outside = partners.filter(({ deletionTimestamp }) => deletionTimestamp !== undefined);
  const alone = [...terminatingPods(context), ...outside].map((one) => [one]);
  return [...groupsOf(context.now).map(({ examples }) => examples), ...alone];
});

/** Returns the fields of an object that name another one, or have its UID. */
function fieldsNaming(context: Context, from: ObjectFacts, to: ObjectFacts): string[] {
  const own = groupOf(to.apiVersion);
  const { names = [], references = [] } = detailOf(context, from) ?? {};
  const named = references.filter(
    ({ group = own, kind, namespace = from.namespace, name, uid }) =>
      uid === to.uid ||
      (name === to.name &&
        isSameKind(to.kind, kind) &&
        group === own &&
        [namespace, ''].includes(to.namespace)),
  );
  return [...names.filter(({ name }) => name === to.uid), ...named].map(({ field }) => field);
}

function isInSpecOf(context: Context, from: ObjectFacts, { objects }: Held): boolean {
  const fields = objects.flatMap((to) => fieldsNaming(context, from, to));
  return fields.some((field) => field.startsWith('spec.'));
}

function waitTexts(context: Context, held: Held): string[] {
  return statusTexts(context, held)
    .map(({ text }) => text)
    .filter(isWaitText);
}

/** The end of a whole word, which is not the beginning of a longer name. */
const NAME_END = '(?![\\w-]|[./]\\w)';
const AWAITS =
  '\\b(?:wait\\w*|block\\w*|pending|depends?) (?:for|until|on|by)(?: the)?(?: deletion of)?';

/** Reports whether a text names an object as awaited: "waiting for cache", "g1 still exists", or with its kind. */
function isAwaited(text: string, object: ObjectFacts): boolean {
  if (!text.toLowerCase().includes(object.name)) return false;
  const name = `["'\`]?${escapeForRegExp(object.name)}${NAME_END}["'\`]?`;
  const kind = escapeForRegExp(object.kind);
  const place = `${escapeForRegExp(object.namespace)}/`;
  // `gadgets/cache`, `team-a/cache`, and not one of another namespace.
  const path = `(?:[\\w./-]{0,100}${kind}[\\w.-]{0,100}/)?(?:${place})?`;
  const whole = new RegExp(`(?<![\\w./-])${path}${name}`, 'i');
  // An ordinary word needs its kind or its namespace, or stands behind "waiting for".
  const near = new RegExp(`(?<![\\w.-])${kind}s?(?![\\w-])|${place}${name}|${AWAITS} ${name}`, 'i');
  const isDistinct = /[\d.-]/.test(object.name);
  const clauses = text.split(/[;.]\s/).filter(isWaitText);
  return clauses.some((one) => whole.test(one) && (isDistinct || near.test(one)));
}

/** Returns the id of another finalizer of the object that a text names first: "waiting for B to remove A". */
function finalizerAwaited({ objects: [object], finalizer }: Held, text: string): string[] {
  if (object === undefined) return [];
  const placeOf = (one: string): number =>
    text.search(new RegExp(`(?<![\\w.-])${escapeForRegExp(one)}${NAME_END}`));
  const named = object.finalizers.filter((one) => placeOf(one) >= 0);
  const [first = finalizer] = named.sort((a, b) => placeOf(a) - placeOf(b));
  return first === finalizer ? [] : idsOfHeld({ ...object, finalizers: [first] });
}

/** Finds the terminating namespaces that a held object waits for: a text or a label says so, or it stands for them. */
export function namespacesAwaited(context: Context, held: Held, texts = waitTexts(context, held)) {
  const { cluster, namespace: own } = context.now;
  return itemsIn(cluster.namespaces)
    .filter(
      (namespace) =>
        namespace.deletionTimestamp !== undefined &&
        namespace.name !== own.name &&
        (texts.some((text) => isNamespaceNamed(text, namespace.name)) ||
          isLabelled(held, namespace) ||
          held.objects.some((object) => standsFor(context, object, namespace.name))),
    )
    .map(({ name, deletionTimestamp }): RuleResult => {
      const subject = namespaceSubject(name);
      const text = `Examine Namespace ${name} in the same way, and resolve what holds it`;
      return {
        ...{ code: 'unexplained', subject },
        message: 'is being deleted as well, and has to be deleted first',
        evidence: [`deletionTimestamp ${deletionTimestamp}`],
        remedies: [withRole('now', { text }), showObjectRemedy(`See Namespace ${name}`, subject)],
      };
    });
}

/** Reports whether the text names the namespace itself, and not as the place of something else. */
function isNamespaceNamed(text: string, name: string): boolean {
  const before = '(?<!\\b(?:in|into|from|to|of) (?:the )?)namespaces?[\\s:/]+["\'`]?';
  return new RegExp(before + escapeForRegExp(name) + NAME_END, 'i').test(text);
}

/** Reports whether an object stands for a namespace: by a manifest, or by its status. */
function standsFor(context: Context, object: ObjectFacts, namespace: string): boolean {
  const { references = [], settings = [] } = detailOf(context, object) ?? {};
  const named = references.filter(({ kind, name }) => kind === 'Namespace' && name === namespace);
  const isMeant = named.some(({ field, isMade }) => isMade || field.startsWith('status.'));
  return isMeant && !settings.includes('spec.deletionPolicy=Orphan');
}

function isLabelled(held: Held, other: Pick<ObjectFacts, 'name' | 'labels' | 'annotations'>) {
  const projects = [domainOf(held.finalizer), held.type.group];
  return Object.entries({ ...other.labels, ...other.annotations }).some(([key, value]) => {
    const [domain = '', ...rest] = key.split('/');
    const isGeneral = isOfOneProject(domain, 'kubernetes.io') || rest.length === 0;
    if (isGeneral || !projects.some((one) => isOfOneProject(one, domain))) return false;
    return held.objects.some(
      ({ uid, namespace, name }) =>
        [uid, name, `${namespace}/${name}`].includes(value) ||
        // A SubnamespaceAnchor has the name of its namespace, which names the parent.
        (name === other.name && value === namespace),
    );
  });
}

export function namedOutside(context: Context, held: Held): Wanted['partners'] {
  const own = context.now.namespace.name;
  const references = held.objects.flatMap((one) => detailOf(context, one)?.references ?? []);
  return references.flatMap(({ kind, group, namespace = own, name }) => {
    // These wait for no other object, and their content is never read.
    const type = !INPUT_KINDS.includes(kind) && typeNamed(context, held.type.group, kind, group);
    if (!type || (type.namespaced && namespace === own)) return [];
    return { type, namespace: type.namespaced ? namespace : undefined, name };
  });
}

/** Returns the type of a kind: of the same group, of Kubernetes, of the same project, or the first that the server lists. */
export function typeNamed(context: Context, own: string, kind: string, group?: string) {
  const alike = typesOf(context).filter(
    (type) => isSameKind(type.kind, kind) && type.group === (group ?? type.group),
  );
  const near = [own, ''].flatMap((one) => alike.find((type) => type.group === one) ?? []);
  return near[0] ?? alike.find((type) => isOfOneProject(type.group, own)) ?? alike[0];
}

/** Names what a held object waits for and what was not read before the examination ended: its owner is then no root cause. */
export function unreadPartner(context: Context, held: Held): string | undefined {
  const { details, forecast, partners } = context.now;
  if (forecast !== undefined) return undefined;
  const isCut = (read?: Read<unknown>) => read?.ok === false && read.failure.kind === 'aborted';
  const cut = namedOutside(context, held).find(({ type, namespace, name }) => {
    const read = partners[partnerKey({ ...type, namespace, name })];
    return read === undefined || isCut(read);
  });
  if (cut !== undefined) return `names ${cut.type.kind} ${cut.name}`;
  const own = held.objects.map(({ uid }) => details[uid]);
  return own.length > 0 && own.every(isCut) ? 'has a status' : undefined;
}
