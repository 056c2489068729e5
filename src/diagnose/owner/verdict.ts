import type { Certainty } from '../../model/finding.ts';
import type { ClusterSources, PlaceSources } from '../../model/snapshot.ts';
import { WORKLOAD_SOURCES } from '../actors.ts';
import { type Context, isInside, listed } from '../context.ts';
import { isSameAccount } from '../rights.ts';
import { CLUES, type ClueKind } from './clues.ts';
import { type Excluded, exclude } from './exclusions.ts';
import { definitionNames, type Held, knownFinalizer, specificFieldManager } from './held.ts';
import { isRenewed, leasesOfProgram } from './leases.ts';
import { isSameProgram } from './names.ts';
import { permissionOfOthers, whoElseMayAct } from './others.ts';
import {
  hasClue,
  isPresent,
  mayRun,
  type OwnerQuestion,
  questionAbout,
  type Suspect,
  suspectsFor,
  wasDeletedWithNamespace,
} from './suspects.ts';

/** Who should remove a finalizer, and how well that is known. */
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
  /** Who may act besides the owner, in sentences. Any of them rules out that a missing owner is proven. */
  others: string[];
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

/** The table of what may be said, from what is known best to what is not known. */
function judge(question: OwnerQuestion): Ownership {
  const { context } = question;
  const { left, excluded } = exclude(suspectsFor(question), question);
  const ranked = left.toSorted(compare);
  const unread = unreadSources(context);
  const best = singledOut(ranked);
  const suspects = ranked.filter((one) => one !== best && isPresent(one));
  const common = { suspects, excluded, unread };
  if (best !== undefined && isPresent(best)) {
    const isProven = isDirect(best) && !suspects.some(isDirect) && unread.length === 0;
    const certainty = isProven ? 'proven' : 'likely';
    return { certainty, verdict: 'found', owner: best, others: [], ...common };
  }
  const owner = best ?? ranked.find((one) => !isPresent(one) && one.account !== undefined);
  const wasSeen = best !== undefined && wasDeletedWithNamespace(question, best);
  const ranHere = wasSeen || (best !== undefined && isInside(context, best.account?.namespace));
  const active = whoElseMayAct(question, excluded, ranHere);
  const others = [...active, ...(best === undefined ? [] : permissionOfOthers(question, best))];
  const isNobodyLeft = suspects.length === 0 && active.length === 0 && isExpectedHere(question);
  if (unread.length === 0 && (wasSeen || isNobodyLeft)) {
    const isProven = wasSeen && isDirect(best) && suspects.length === 0 && others.length === 0;
    const certainty = isProven ? 'proven' : 'likely';
    return {
      ...{ certainty, verdict: 'missing', owner, others, ...common },
      wasDeletedWithNamespace: isProven,
    };
  }
  return { certainty: 'unknown', verdict: 'unknown', owner, others, ...common };
}

function isDirect({ clues }: Suspect): boolean {
  return clues.some(({ about }) => about === 'object');
}

/** Orders suspects by the first clue, in the order of the table, that one has and the other has not. */
function compare(a: Suspect, b: Suspect): number {
  const row = CLUES.find(({ kind }) => hasClue(a, kind) !== hasClue(b, kind));
  return row === undefined ? 0 : hasClue(a, row.kind) ? -1 : 1;
}

/**
 * Returns the suspect to which clues point more than to any other, unless another installation of its program may be
 * meant. A Lease, a status or an Event exists for the one that runs, so only a log or a named account decides.
 */
function singledOut(ranked: readonly Suspect[]): Suspect | undefined {
  const best = leading(ranked);
  if (best === undefined || hasClue(best, 'log', 'quoted')) return best;
  return ranked.some((other) => isOtherInstallation(best, other)) ? undefined : best;
}

/** Reports whether two workloads run one program, with arguments that select different objects. */
function isOtherInstallation({ actor: one }: Suspect, { actor: other }: Suspect): boolean {
  return (
    one !== undefined &&
    other !== undefined &&
    one !== other &&
    !other.isGone &&
    isSameProgram(one, other) &&
    one.selectors.join() !== other.selectors.join()
  );
}

function leading(ranked: readonly Suspect[]): Suspect | undefined {
  const [best, ...rivals] = ranked;
  const [first] = best?.clues ?? [];
  if (best === undefined || first === undefined || best.program !== undefined) return undefined;
  if (first.about === 'object') {
    // Two installations of one program have the same first clue. What only the running one can have decides nothing.
    const isOnly = rivals.every((rival) => !hasClue(rival, first.kind));
    return isOnly && !mayBeSucceeded(best, rivals) ? best : undefined;
  }
  const [leader, next] = ranked
    .map((suspect) => ({ suspect, kinds: kindsAboutType(suspect) }))
    .toSorted((a, b) => b.kinds - a.kinds);
  return leader !== undefined && leader.kinds > (next?.kinds ?? 0) ? leader.suspect : undefined;
}

/**
 * Reports whether a reconciler of the type under another account may own what this suspect wrote: the suspect is scaled
 * to zero and the other one is active, or the suspect may change everything, as backup and GitOps tools do.
 */
function mayBeSucceeded(
  { actor, account, rights, clues }: Suspect,
  rivals: readonly Suspect[],
): boolean {
  const isScaledToZero = actor !== undefined && !mayRun(actor);
  const isTool =
    rights.change === 'everything' &&
    clues.every(({ kind }) => kind === 'writer' || kind === 'author');
  return rivals.some(
    (rival) =>
      hasClue(rival, 'permission') &&
      !isSameAccount(rival.account, account) &&
      (isTool || (isScaledToZero && hasClue(rival, 'active'))),
  );
}

/** Clues that several programs of an installation may have, so that they name nobody. */
const SHARED_CLUES: readonly ClueKind[] = [
  'product',
  'permission',
  'called',
  'serves',
  'reports',
  'active',
];
/** Clues that count without a permission that names the type. */
const SUFFICIENT_CLUES: readonly ClueKind[] = ['package', 'lease'];

function kindsAboutType(suspect: Suspect): number {
  const isPermitted = hasClue(suspect, 'permission');
  const counted = suspect.clues.filter(({ kind }) =>
    isPermitted ? !SHARED_CLUES.includes(kind) : SUFFICIENT_CLUES.includes(kind),
  );
  return new Set(counted.map(({ kind }) => kind)).size;
}

/** Sources on which an answer rests: of the cluster, of the namespace itself, and of the suspects' namespaces. */
export const OWNER_SOURCES = {
  cluster: [
    ...WORKLOAD_SOURCES,
    ...(['leases', 'clusterRoles', 'clusterRoleBindings', 'apiServices', 'definitions'] as const),
    ...(['validatingWebhooks', 'mutatingWebhooks', 'clusterServiceVersions'] as const),
  ],
  here: ['roles', 'roleBindings', 'events'],
  elsewhere: ['pods', 'services', 'events'],
} satisfies Record<string, (keyof ClusterSources | keyof PlaceSources)[]>;

const SOURCES: ReadonlySet<string> = new Set(Object.values(OWNER_SOURCES).flat());

/** Returns what was not read, or was cut by a limit: its absence proves nothing. */
export function unreadSources({ now }: Context): string[] {
  const asked = [now.cluster.deployments, now.cluster.clusterRoleBindings, now.cluster.leases];
  const unread = now.unread
    .filter(({ source }) => SOURCES.has(source ?? ''))
    .map(({ what }) => what);
  return asked.includes(undefined) ? [...unread, 'workloads, RBAC and Leases'] : unread;
}

/** The owner would have to be in this cluster: its type is defined here, its product has known names, or it led here. */
function isExpectedHere({ context, held, domain }: OwnerQuestion): boolean {
  if ((knownFinalizer(held)?.workload.length ?? 0) > 0) return true;
  const manager = specificFieldManager(held);
  if (leasesOfProgram(context, manager).some((lease) => !isRenewed(context, lease))) return true;
  if (domain.relation === 'unclear' && manager === '') return false;
  const definitions = listed(context.now.cluster.definitions).map(({ name }) => name);
  return definitionNames(context, held).some((name) => definitions.includes(name));
}
