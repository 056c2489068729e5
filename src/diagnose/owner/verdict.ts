import type { Certainty } from '../../model/finding.ts';
import type { ClusterSources, NamespaceSources } from '../../model/snapshot.ts';
import { type Actor, listOfOthers, WORKLOAD_SOURCES } from '../actors.ts';
import {
  type Context,
  isBuiltIn,
  isForeseen,
  isInside,
  itemsIn,
  listNames,
  typeName,
} from '../context.ts';
import { departedGrant, othersWhoMayChange } from '../rights.ts';
import { CLUES, isOfNoDomain, isSetForAnother, RUNS_OUTSIDE_TEXT } from './clues.ts';
import { applyExclusions, classesOf, type Excluded } from './exclusions.ts';
import {
  definitionNames,
  type Held,
  isControllerOfType,
  isProviderManaged,
  knownFinalizer,
  lateWriters,
  statusManagers,
  writerOf,
} from './held.ts';
import { holderOf, lostLease } from './leases.ts';
import { logLinesNaming } from './logs.ts';
import {
  containsName,
  HARMLESS_WRITERS,
  hasProgramName,
  isSameName,
  isSameProgram,
  workloadsOfProgram,
} from './names.ts';
import {
  hasClue,
  hasClueThat,
  hasObjectClue,
  mayHaveWritten,
  type OwnerQuestion,
  pointsToSuspect,
  questionAbout,
  type Suspect,
  suspectsFor,
  suspectText,
  wasDeletedWithNamespace,
  workloadExists,
} from './suspects.ts';

/** The owner of a finalizer, and the certainty of the answer. */
export interface Ownership {
  certainty: Certainty;
  /** `found`: the owner exists, in whatever state. `missing`: no controller was found. `unknown`: undecided. */
  verdict: 'found' | 'missing' | 'unknown';
  /** The owner; with `missing` and `unknown`, the suspect that was deleted. */
  owner: Suspect | undefined;
  /** The other suspects, best first. */
  suspects: Suspect[];
  excluded: Excluded[];
  /** Sources that could contradict and were not read. */
  unread: string[];
  /** Programs that may act besides the owner, in sentences. Any of them rules out that a missing owner is proven. */
  others: string[];
  /** All other users that RBAC lets change the type, in a sentence. Any of them rules out proof. */
  permitted: string[];
  /** Why the suspect to which the clues point is not named. */
  doubt?: string | undefined;
  /** See `Finding.wasDeletedWithNamespace`; only with verdict `missing`. */
  wasDeletedWithNamespace?: boolean;
  /** Only the other objects of the type can still show that somebody else may remove the finalizer. */
  dependsOnSiblings?: boolean;
}

const OWNERSHIPS = new WeakMap<Context, Map<string, Ownership>>();

/** Returns who owns the finalizer; computed once per examination. */
export function findOwner(context: Context, held: Held): Ownership {
  const known = OWNERSHIPS.get(context) ?? new Map<string, Ownership>();
  OWNERSHIPS.set(context, known);
  const { finalizer, subject, isInSpec, objects } = held;
  const key = JSON.stringify([finalizer, subject, isInSpec, objects.map(({ uid }) => uid)]);
  const found =
    known.get(key) ?? withActiveSuspect(context, held, judge(questionAbout(context, held)));
  known.set(key, found);
  return found;
}

/**
 * Accepts the only suspect that a rule for the type lets act and that has a dated sign of life. Any other clue to somebody
 * else leaves the question open, and so does its work on other products: a platform's controller makes objects for others.
 * A forecast needs a controller that acts, not its name.
 */
function withActiveSuspect(context: Context, held: Held, ownership: Ownership): Ownership {
  const { suspects, excluded, others, doubt, owner, unread } = ownership;
  const [only, ...more] = suspects.filter((one) => hasClue(one, 'permission'));
  const rivals = [...suspects, ...excluded.map(({ suspect }) => suspect)].filter(
    (one) => one !== only && (hasClueThat(one, 'proven', 'likely') || hasClue(one, 'called')),
  );
  const outside = others.filter((text) => text.startsWith(RUNS_OUTSIDE_TEXT));
  const doubts = [owner, doubt].filter((one) => one !== undefined);
  const isAlone = [more, rivals, outside, doubts, unread].every(({ length }) => length === 0);
  const isOfType = isForeseen(context, held) || only?.rights.worksElsewhere === false;
  if (!isAlone || !isOfType || only?.actor === undefined || !isActive(context, held, only.actor)) {
    return ownership;
  }
  const rest = suspects.filter((one) => one !== only);
  return { ...ownership, certainty: 'likely', verdict: 'found', owner: only, suspects: rest };
}

/**
 * Reports whether a program of its name, or one that names itself after the API group, has written the finalizer and,
 * since the deletion began, the status of every held object: a controller that was deleted before cannot have written it.
 */
function isActive(context: Context, held: Held, actor: Actor): boolean {
  const isOwn = ({ manager, time }: { manager: string; time?: string | undefined }): boolean =>
    time !== undefined &&
    (actor.programs.includes(manager) ||
      (!isBuiltIn(held.type.group) && manager.startsWith(`${held.type.group}/`)));
  const writer = writerOf(held);
  const written = lateWriters(context, held).filter(isOwn);
  return (
    writer !== undefined &&
    isOwn(writer) &&
    !isSetForAnother(held, writer.manager) &&
    held.objects.every((object) => written.some((one) => one.object === object))
  );
}

/** Returns the first answer of a table, from the most to the least certain. */
function judge(question: OwnerQuestion): Ownership {
  const { context } = question;
  const { left, excluded } = applyExclusions(suspectsFor(question), question);
  const ranked = left.filter((one) => pointsToSuspect(question, one)).toSorted(compareSuspects);
  const unread = unreadSources(context);
  const ruledOut = excluded.filter(({ suspect }) => workloadExists(suspect));
  const { best: first, doubt } = singledOut(question, ranked, left, ruledOut);
  // An unread source could show another suspect with more clues about the type.
  const isLeading = first !== undefined && (hasObjectClue(first) || hasClue(first, 'marks'));
  const best = isLeading || unread.length === 0 ? first : undefined;
  const isPointedTo =
    best !== undefined &&
    hasClueThat(best, 'proven') &&
    ranked.every((one) => one === best || !hasObjectClue(one));
  const suspects = ranked.filter((one) => one !== best && workloadExists(one));
  const common = {
    suspects,
    excluded: excluded.filter(({ suspect }) => pointsToSuspect(question, suspect)),
    unread,
  };
  if (best !== undefined && workloadExists(best)) {
    const isSure = isPointedTo && unread.length === 0 && !mayBeOfAnotherShare(best);
    const certainty = isSure ? 'proven' : 'likely';
    return { certainty, verdict: 'found', owner: best, others: [], permitted: [], ...common };
  }
  const owner = best ?? ranked.find((one) => one.account !== undefined && !workloadExists(one));
  const wasSeen = best !== undefined && wasDeletedWithNamespace(question, best);
  const alive = othersAlive(question, left, ruledOut, isInside(context, best?.account?.namespace));
  const others = [
    ...alive,
    ...ruledOut.flatMap(({ suspect, by }) =>
      by.isForLackOfPermission && hasClueThat(suspect, 'proven', 'likely')
        ? [`${suspectText(suspect)} may act with permissions that RBAC does not show`]
        : [],
    ),
  ];
  const isNobodyLeft = alive.length === 0 && isExpectedHere(question);
  // Beside the marks of the one that is gone, a permission alone makes nobody the controller.
  const rivals = suspects.filter(
    ({ clues }) =>
      best === undefined ||
      !hasClue(best, 'marks') ||
      clues.some(({ kind }) => kind !== 'permission' && kind !== 'able'),
  );
  if (unread.length === 0 && rivals.length === 0 && (wasSeen || isNobodyLeft)) {
    const dependsOnSiblings =
      wasSeen && isPointedTo && couldChange(question, best) && others.length === 0;
    // The name of the gate's own user, which may change everything, is read together with the siblings.
    const permitted = dependsOnSiblings ? permissionOfOthers(question, best) : [];
    if (dependsOnSiblings) others.push(...signsOfOthers(question, best));
    const isProven =
      dependsOnSiblings && mayHaveWritten(question, best) && others.length + permitted.length === 0;
    const certainty = isProven ? 'proven' : 'likely';
    // An application of the namespace may have a permission on the type as well.
    const named = owner?.clues.some(({ names }) => names !== undefined) ? owner : undefined;
    return {
      ...{ certainty, verdict: 'missing', owner: named, others, permitted, ...common },
      ...{ dependsOnSiblings, wasDeletedWithNamespace: isProven },
    };
  }
  return {
    certainty: 'unknown',
    verdict: 'unknown',
    owner,
    others,
    permitted: [],
    doubt,
    ...common,
  };
}

/** An argument that gives a controller a class or a share of the objects; which objects these are is not known. */
const SHARE =
  /^(?:--?(?:[\w.-]+-)?(?:class(?:es|-name)?|shards?(?:-[\w-]+)?|instance-?id)|(?:\w+_)?(?:SHARD(?:_\w+)?|CONTROLLER_ID))=/;

/** Reports whether its arguments may leave the object to another installation. */
function mayBeOfAnotherShare({ actor }: Suspect): boolean {
  return (actor?.selectors ?? []).some((argument) => SHARE.test(argument));
}

/**
 * Reports whether RBAC let it remove the finalizer. A reader of the type may have the name of the finalizer's writer. A
 * finalizer that belongs to no group of the cluster needs a rule that names the type.
 */
function couldChange(
  { context, held, domain }: OwnerQuestion,
  { account, rights }: Suspect,
): boolean {
  const isNamed = domain.relation === 'unclear';
  return (
    (isNamed ? rights.change === 'named' : rights.change !== undefined) ||
    (account !== undefined && departedGrant(context, account, held.type, isNamed) !== undefined)
  );
}

/**
 * Returns what shows that somebody may still remove the finalizer, in sentences. Nothing does if no other program has
 * written any object of the type; if, since the deletion began, nobody but Kubernetes itself and people with kubectl has
 * written any object of the type, in any namespace; and if no other namespace that stays has an object with this finalizer.
 */
function signsOfOthers({ context: { now }, held }: OwnerQuestion, { actor }: Suspect): string[] {
  const { type, finalizer, since } = held;
  const siblings = now.siblings?.[typeName(type)];
  if (siblings?.ok !== true) {
    return [`who writes ${typeName(type)} in the whole cluster could not be read`];
  }
  const staying = itemsIn(now.cluster.namespaces)
    .filter(({ deletionTimestamp }) => deletionTimestamp === undefined)
    .map(({ name }) => name);
  const isOther = (manager: string): boolean =>
    actor === undefined || !hasProgramName(actor, manager);
  const signs = siblings.value.flatMap(({ namespace, name, finalizers, writes }) => {
    const what = `${type.kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
    const written = writes.filter(({ manager }) => !HARMLESS_WRITERS.test(manager));
    const beside = written.filter(({ manager }) => isOther(manager));
    // Times in managedFields are whole seconds.
    const late = written.filter(({ time = '' }) => !(Date.parse(time) < Date.parse(since)));
    return [
      ...beside.map(({ manager }) => `"${manager}" has written ${what} as well`),
      ...late.map(
        ({ manager }) =>
          `since the deletion began, "${manager}" has written ${what}: the deleted controller before its end, or another one`,
      ),
      ...(finalizers.includes(finalizer) && staying.includes(namespace)
        ? [`${what} has the finalizer as well, so another controller may handle both`]
        : []),
    ];
  });
  return [...new Set(signs)].slice(0, MAX_SIGNS);
}

const MAX_SIGNS = 3;

/**
 * Returns programs that may act although no clue points to them, in sentences. `wasHere`: a suspect that was deleted
 * ran in this namespace, where its permissions were deleted with it. Permissions for everything and controllers that
 * were ruled out then say nothing about this object.
 */
function othersAlive(
  question: OwnerQuestion,
  left: readonly Suspect[],
  ruledOut: readonly Excluded[],
  wasHere: boolean,
): string[] {
  const unnamed = left.filter((one) => !workloadExists(one) || !pointsToSuspect(question, one));
  const able = [...unnamed, ...ruledOut.map(({ suspect }) => suspect)]
    .filter(({ rights }) => !wasHere || rights.change !== 'everything')
    .flatMap((one) =>
      one.clues
        .filter(({ kind, about }) => about === 'anyone' || kind === 'quoted')
        .map(({ text }) => (one.actor === undefined ? text : `${suspectText(one)}: ${text}`)),
    );
  // Permissions on other products show the other purpose of a controller.
  const departed = ruledOut.flatMap(({ suspect, by }) =>
    !wasHere && (hasClueThat(suspect, 'proven', 'likely') || !suspect.rights.worksElsewhere)
      ? [`${suspectText(suspect)} exists, but ${by.reason}`]
      : [],
  );
  return [...new Set([...able, ...departed])];
}

/** Returns a sentence about everybody else whom RBAC lets change the type: any of them may remove the finalizer. */
function permissionOfOthers({ context, held }: OwnerQuestion, suspect: Suspect): string[] {
  if (suspect.account === undefined) return [];
  const others = othersWhoMayChange(context, held.type, suspect.account);
  return others.length === 0
    ? []
    : [
        `RBAC lets ${listNames(others, 3)} change objects of this type, or did so before the deletion`,
      ];
}

/** Orders suspects by the first clue, in the order of the table, that one has and the other has not. */
function compareSuspects(a: Suspect, b: Suspect): number {
  const row = CLUES.find(({ kind }) => hasClue(a, kind) !== hasClue(b, kind));
  return row === undefined ? 0 : hasClue(a, row.kind) ? -1 : 1;
}

/** A reason to name no owner, although the clues point to one suspect. */
interface Doubt {
  /** The sentence that the report shows about this suspect. */
  reason: string;
  /** The rivals are the workloads that were ruled out, instead of the suspects. */
  isAboutRuledOut?: boolean;
  /** The doubt is about a suspect whose log names the object, and the only one about it. */
  isAboutLog?: boolean;
  applies: (
    best: Suspect,
    rival: Suspect,
    question: OwnerQuestion,
    ranked: readonly Suspect[],
  ) => boolean;
}

/**
 * Reports whether it is the only workload that a clue points to, a rule that names the type lets it act, and its log
 * reports an error about the object. Backup tools, which may change everything, log errors about any object.
 */
function failsAlone(best: Suspect, { context, held }: OwnerQuestion, ranked: readonly Suspect[]) {
  return (
    ranked.every((one) => one === best || one.program !== undefined) &&
    best.actor !== undefined &&
    hasClue(best, 'permission') &&
    logLinesNaming(context, held, best.actor).some(({ isError }) => isError)
  );
}

/** Reports whether its name or its arguments contain the class, or its first part: `istio` of `istio.ingress.example.com`. */
function servesClass({ actor }: Suspect, name: string): boolean {
  const [first = name] = name.split('.');
  return [...(actor?.programs ?? []), ...(actor?.selectors ?? [])].some((own) =>
    containsName(own, first),
  );
}

/** Every doubt about the suspect to which the clues point. */
export const DOUBTS: readonly Doubt[] = [
  {
    reason:
      'its log names the object, but the writer of the finalizer has another name and may be another program',
    isAboutLog: true,
    applies: (best, rival, question, ranked) =>
      hasClue(rival, 'writer') && !hasClue(best, 'writer') && !failsAlone(best, question, ranked),
  },
  {
    reason: 'another installation of its program has other arguments that select objects',
    applies: ({ actor }, rival) =>
      actor !== undefined &&
      rival.actor !== undefined &&
      actor.selectors.join() !== rival.actor.selectors.join() &&
      isSameProgram(actor, rival.actor),
  },
  {
    reason:
      'it is in this namespace, and the provider of the cluster usually runs the controller of this well-known finalizer',
    applies: ({ account }, _, { context, held }) => {
      const known = knownFinalizer(held);
      return (
        known !== undefined && isProviderManaged(known) && isInside(context, account?.namespace)
      );
    },
  },
  {
    reason: 'another suspect has written to the object since the deletion began, and it has not',
    applies: (best, rival) => hasClue(rival, 'active') && !hasClue(best, 'active'),
  },
  {
    reason: 'a pod of another workload holds the Lease by which it would lead',
    applies: ({ actor }, _, { context, held }) => {
      const lease = actor && lostLease(context, held, actor);
      const holder = lease && holderOf(context, lease);
      return holder !== undefined && holder !== actor;
    },
  },
  {
    reason: 'its arguments or environment list namespaces, and this one is not among them',
    applies: ({ actor }, _, { context }) =>
      actor !== undefined && listOfOthers(context, actor) !== undefined,
  },
  {
    reason:
      'the object names a class, so one controller of several handles it, and only clues about its type point to this one',
    applies: (best, _, { context, held: { objects } }) =>
      !hasClueThat(best, 'proven') &&
      objects.some((object) => classesOf(context, object).some((name) => !servesClass(best, name))),
  },
  {
    reason:
      'it may change everything, as backup and GitOps tools do, and a controller of the type exists',
    applies: ({ rights, clues }, rival) =>
      rights.change === 'everything' &&
      clues.every(({ kind }) => ['writer', 'author', 'able'].includes(kind)) &&
      hasClue(rival, 'permission'),
  },
  {
    reason: 'a clue points only to a controller that was ruled out',
    isAboutRuledOut: true,
    applies: (best, rival) =>
      rival.clues.some(
        ({ kind, names }) =>
          !hasClue(best, kind) &&
          (names === 'proven' ||
            (names === 'likely' &&
              !hasClueThat(best, 'proven') &&
              (kind === 'installation' || !hasClue(best, 'marks')))),
      ),
  },
];

/** Returns the suspect to which the clues point, unless there is a doubt. */
function singledOut(
  question: OwnerQuestion,
  ranked: readonly Suspect[],
  all: readonly Suspect[],
  ruledOut: readonly Excluded[],
): { best?: Suspect | undefined; doubt?: string } {
  const best = suspectPointedTo(question, ranked, all);
  if (best === undefined) return { best };
  const doubts = DOUBTS.filter(({ isAboutLog = false }) => isAboutLog === hasClue(best, 'log'));
  const found = doubts.find(({ isAboutRuledOut, applies }) =>
    isAboutRuledOut
      ? ruledOut.some(({ suspect }) => applies(best, suspect, question, ranked))
      : ranked.some((rival) => applies(best, rival, question, ranked)),
  );
  return found === undefined
    ? { best }
    : { doubt: `${suspectText(best)} is not confirmed as the owner: ${found.reason}` };
}

/**
 * Returns the only suspect with the first clue that proves; without such a clue, the only one with the marks, and else the
 * only one that any other clue names.
 */
function suspectPointedTo(
  question: OwnerQuestion,
  ranked: readonly Suspect[],
  all: readonly Suspect[],
): Suspect | undefined {
  const [first] = ranked;
  const proof = first?.clues.find(({ names }) => names === 'proven');
  const [marked, ...more] = ranked.filter((one) => hasClue(one, 'marks'));
  if (proof === undefined && marked !== undefined && more.length === 0) {
    if (!isStatusOfAnother(question, marked) && !isOneDownBeside(marked, all)) return marked;
  }
  const named = ranked.filter((one) =>
    proof === undefined ? isNamed(one) : hasClue(one, proof.kind),
  );
  return named.length === 1 && named[0]?.program === undefined ? named[0] : undefined;
}

/** Reports whether it runs beside another one that may act and is down, which explains a hang better. */
function isOneDownBeside({ actor }: Suspect, all: readonly Suspect[]): boolean {
  return (
    actor !== undefined &&
    actor.ready > 0 &&
    all.some(
      (one) => one.actor?.ready === 0 && !one.actor.isGone && one.rights.change !== undefined,
    )
  );
}

/** Reports whether a field manager that identifies another program writes the status. */
function isStatusOfAnother({ held }: OwnerQuestion, { actor, account }: Suspect): boolean {
  return statusManagers(held).some((manager) => {
    if (isControllerOfType(held, manager)) return false;
    return actor === undefined
      ? !isSameName(manager, account?.name ?? '')
      : workloadsOfProgram([actor], manager).length === 0;
  });
}

/** Reports whether a clue names it. A clue about the type does so only together with a permission on it. */
function isNamed(suspect: Suspect): boolean {
  return suspect.clues.some(
    ({ kind, about, names }) =>
      names === 'likely' &&
      kind !== 'marks' &&
      (about === 'object' || hasClue(suspect, 'permission')),
  );
}

/** The sources of an answer: of the cluster, of the namespace itself, and of the suspects' namespaces. */
export const OWNER_SOURCES = {
  cluster: [
    ...WORKLOAD_SOURCES,
    ...(['leases', 'clusterRoles', 'clusterRoleBindings', 'apiServices', 'definitions'] as const),
    ...(['validatingWebhooks', 'mutatingWebhooks', 'clusterServiceVersions'] as const),
  ],
  here: ['roles', 'roleBindings', 'events'],
  elsewhere: ['pods', 'services', 'events'],
} satisfies Record<string, (keyof ClusterSources | keyof NamespaceSources)[]>;

const SOURCES: ReadonlySet<string> = new Set(Object.values(OWNER_SOURCES).flat());

/** Returns sources that were not read, or were cut by a limit: absence there proves nothing. */
export function unreadSources({ now }: Context): string[] {
  const asked = [now.cluster.deployments, now.cluster.clusterRoleBindings, now.cluster.leases];
  const unread = now.unread
    .filter(({ source }) => SOURCES.has(source ?? ''))
    .map(({ what }) => what);
  return asked.includes(undefined) ? [...unread, 'workloads, RBAC and Leases'] : unread;
}

/**
 * Reports whether the owner must be in this cluster: its type is defined here, its product has known names, or it
 * led here.
 */
function isExpectedHere({ context, held, domain }: OwnerQuestion): boolean {
  if ((knownFinalizer(held)?.workload.length ?? 0) > 0) return true;
  if (domain.relation === 'unclear' && !isOfNoDomain(held)) return false;
  const definitions = itemsIn(context.now.cluster.definitions).map(({ name }) => name);
  return definitionNames(context, held).some((name) => definitions.includes(name));
}
