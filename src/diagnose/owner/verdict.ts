import type { Certainty } from '../../model/finding.ts';
import type { ClusterSources, NamespaceSources } from '../../model/snapshot.ts';
import { WORKLOAD_SOURCES } from '../actors.ts';
import { type Context, isInside, itemsIn } from '../context.ts';
import { departedGrant, mayOthersChange } from '../rights.ts';
import { CLUES, DECIDING, NAMING, PROOFS } from './clues.ts';
import { DOUBTS } from './doubts.ts';
import { applyExclusions, type Excluded } from './exclusions.ts';
import { definitionNames, type Held, knownFinalizer } from './held.ts';
import {
  hasClue,
  hasObjectClue,
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
  /** Why the suspect to which the clues point is not named. */
  doubt?: string | undefined;
  /** See `Finding.wasDeletedWithNamespace`; only with verdict `missing`. */
  wasDeletedWithNamespace?: boolean;
}

const OWNERSHIPS = new WeakMap<Context, Map<string, Ownership>>();

/** Returns who owns the finalizer; computed once per examination. */
export function findOwner(context: Context, held: Held): Ownership {
  const known = OWNERSHIPS.get(context) ?? new Map<string, Ownership>();
  OWNERSHIPS.set(context, known);
  const { finalizer, subject, isInSpec, objects } = held;
  const key = JSON.stringify([finalizer, subject, isInSpec, objects.map(({ uid }) => uid)]);
  const found = known.get(key) ?? judge(questionAbout(context, held));
  known.set(key, found);
  return found;
}

/** Returns the first answer of a table, from the most to the least certain. */
function judge(question: OwnerQuestion): Ownership {
  const { context } = question;
  const { left, excluded } = applyExclusions(suspectsFor(question), question);
  const ranked = left.filter(pointsToSuspect).toSorted(compareSuspects);
  const unread = unreadSources(context);
  const powerless = excluded.filter(
    ({ suspect, by }) => by.isForLackOfPermission && workloadExists(suspect),
  );
  const { best: first, doubt } = singledOut(
    ranked,
    powerless.map(({ suspect }) => suspect),
  );
  // An unread source could show another suspect with more clues about the type.
  const best = first && (hasObjectClue(first) || unread.length === 0) ? first : undefined;
  const suspects = ranked.filter((one) => one !== best && workloadExists(one));
  const common = {
    suspects,
    excluded: excluded.filter(({ suspect }) => pointsToSuspect(suspect)),
    unread,
  };
  if (best !== undefined && workloadExists(best)) {
    const isProven =
      hasClue(best, ...PROOFS) && !suspects.some(hasObjectClue) && unread.length === 0;
    const certainty = isProven ? 'proven' : 'likely';
    return { certainty, verdict: 'found', owner: best, others: [], ...common };
  }
  const owner = best ?? ranked.find((one) => !workloadExists(one) && one.account !== undefined);
  const wasSeen = best !== undefined && wasDeletedWithNamespace(question, best);
  const isKnown =
    best !== undefined &&
    (isInside(context, best.account?.namespace) || best.rights.change === 'named');
  const alive = othersAlive(left, powerless, isKnown);
  const others = [
    ...alive,
    ...(best === undefined ? [] : permissionOfOthers(question, best)),
    ...powerless.flatMap(({ suspect }) =>
      hasObjectClue(suspect)
        ? [`${suspectText(suspect)} may act with permissions that RBAC does not show`]
        : [],
    ),
  ];
  const isNobodyLeft = suspects.length === 0 && alive.length === 0 && isExpectedHere(question);
  if (unread.length === 0 && (wasSeen || isNobodyLeft)) {
    const isProven =
      wasSeen &&
      couldChange(question, best) &&
      hasClue(best, ...PROOFS) &&
      suspects.length === 0 &&
      others.length === 0;
    const certainty = isProven ? 'proven' : 'likely';
    return {
      ...{ certainty, verdict: 'missing', owner, others, ...common },
      wasDeletedWithNamespace: isProven,
    };
  }
  return { certainty: 'unknown', verdict: 'unknown', owner, others, doubt, ...common };
}

/** Reports whether RBAC let it remove the finalizer. A reader of the type may have the name of the finalizer's writer. */
function couldChange({ context, held }: OwnerQuestion, { account, rights }: Suspect): boolean {
  return (
    rights.change !== undefined ||
    (account !== undefined && departedGrant(context, account, held.type) !== undefined)
  );
}

/**
 * Returns programs that may act although no clue points to them, in sentences. `isKnown`: the suspect that was deleted
 * ran in this namespace, where its permissions went with it, or RBAC still names the type for it. Permissions for
 * everything and controllers without permission then say nothing about this object.
 */
function othersAlive(
  left: readonly Suspect[],
  powerless: readonly Excluded[],
  isKnown: boolean,
): string[] {
  const unnamed = left.filter((one) =>
    workloadExists(one) ? !pointsToSuspect(one) : hasClue(one, 'outside', 'quoted'),
  );
  const able = [...unnamed, ...powerless.map(({ suspect }) => suspect)].flatMap((one) =>
    one.clues
      .filter(
        ({ kind, about }) =>
          kind === 'quoted' || (about === 'anyone' && !(isKnown && kind === 'wide')),
      )
      .map(({ text }) => (one.actor === undefined ? text : `${suspectText(one)}: ${text}`)),
  );
  // Permissions on other products show the other purpose of a controller.
  const departed = powerless.flatMap(({ suspect, by }) =>
    !isKnown && (hasClue(suspect, ...NAMING) || !suspect.rights.worksElsewhere)
      ? [`${suspectText(suspect)} exists, but ${by.reason}`]
      : [],
  );
  return [...new Set([...able, ...departed])];
}

/**
 * Returns a sentence if RBAC names the type for another user, group or ServiceAccount: a token of it may be used
 * anywhere. That is no sign of an active program, and enough to rule out proof.
 */
function permissionOfOthers({ context, held }: OwnerQuestion, suspect: Suspect): string[] {
  return suspect.account !== undefined && mayOthersChange(context, held.type, suspect.account)
    ? [
        'RBAC lets another user, group or ServiceAccount change objects of this type, or did so before the deletion',
      ]
    : [];
}

/** Orders suspects by the first clue, in the order of the table, that one has and the other has not. */
function compareSuspects(a: Suspect, b: Suspect): number {
  const row = CLUES.find(({ kind }) => hasClue(a, kind) !== hasClue(b, kind));
  return row === undefined ? 0 : hasClue(a, row.kind) ? -1 : 1;
}

/** Returns the suspect to which clues point more than to any other, unless there is a doubt. */
function singledOut(
  ranked: readonly Suspect[],
  powerless: readonly Suspect[],
): { best?: Suspect; doubt?: string } {
  const best = leadingSuspect(ranked);
  if (best === undefined || hasClue(best, 'log', 'quoted'))
    return best === undefined ? {} : { best };
  const found = DOUBTS.find(({ isAboutPowerless, applies }) =>
    (isAboutPowerless ? powerless : ranked).some((rival) => applies(best, rival)),
  );
  return found === undefined
    ? { best }
    : { doubt: `${suspectText(best)} is not named: ${found.reason}` };
}

/** Returns the only suspect with the first clue that decides; else the one to which most of the others point. */
function leadingSuspect(ranked: readonly Suspect[]): Suspect | undefined {
  const [best, ...rivals] = ranked;
  const [first] = best?.clues ?? [];
  if (best === undefined || first === undefined || best.program !== undefined) return undefined;
  if (DECIDING.includes(first.kind)) {
    return rivals.some((rival) => hasClue(rival, first.kind)) ? undefined : best;
  }
  const able = ranked.filter((suspect) => hasClue(suspect, 'permission'));
  const [leader, next] = ranked
    .map((suspect) => ({ suspect, kinds: kindsThatCount(suspect, able) }))
    .toSorted((a, b) => b.kinds - a.kinds);
  return leader !== undefined && leader.kinds > (next?.kinds ?? 0) ? leader.suspect : undefined;
}

/** Returns how many kinds of clues that may name an owner point to it. `able`: the suspects with a permission. */
function kindsThatCount(suspect: Suspect, able: readonly Suspect[]): number {
  const counts = {
    likely: true,
    alone: true,
    'with a permission': able.includes(suspect),
    'with the only permission': able.length === 1 && able[0] === suspect,
    ranks: false,
  };
  return CLUES.filter((row) => 'names' in row && hasClue(suspect, row.kind) && counts[row.names])
    .length;
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
  if (domain.relation === 'unclear') return false;
  const definitions = itemsIn(context.now.cluster.definitions).map(({ name }) => name);
  return definitionNames(context, held).some((name) => definitions.includes(name));
}
