import { productsOf } from '../../model/catalogue.ts';
import type { Certainty } from '../../model/finding.ts';
import type { ClusterSources, NamespaceSources } from '../../model/snapshot.ts';
import { isEndingNamespace, WORKLOAD_SOURCES } from '../actors.ts';
import { type Context, eventsAbout, isBuiltIn, isInside, itemsIn } from '../context.ts';
import { departedGrant, hadRights, unboundRoles, writersOutsideCluster } from '../rights.ts';
import {
  CONTROLLER,
  hasClue,
  isDecided,
  isKnownForAnother,
  isMoreThanAble,
  type OwnerQuestion,
  questionAbout,
  type Suspect,
  suspectsFor,
  suspectText,
  workloadExists,
} from './clues.ts';
import {
  definitionNames,
  type Held,
  isControllerOfType,
  isKnownWorkload,
  isNamedAfterType,
  isOftenProviderManaged,
  isProviderManaged,
  lateWrites,
  statusManagers,
  typesOfDomain,
  writerOf,
} from './held.ts';
import { holderOf, isLeftOver, isRenewed, leasesOfGroups, leasesOfProgram } from './leases.ts';
import {
  HARMLESS_WRITERS,
  hasProgramName,
  hasWorkloadName,
  identifiesProgram,
  isFrameworkName,
  isGeneralTool,
  isKubernetesComponent,
  matchesReporter,
  workloadsOfProgram,
} from './names.ts';

/** The owner of a finalizer, and the certainty of the answer. */
export interface Ownership {
  certainty: Certainty;
  /** `found`: the owner exists, in whatever state. `missing`: no controller was found. `unknown`: undecided. */
  verdict: 'found' | 'missing' | 'unknown';
  /** The owner; with `missing` and `unknown`, the suspect that is gone. */
  owner: Suspect | undefined;
  /** The other suspects, best first. */
  suspects: Suspect[];
  /** Those that something contradicts. */
  excluded: Suspect[];
  /** Sources that could contradict and were not read. */
  unread: string[];
  /** What shows that somebody may act besides, in sentences. Any of it rules out that an owner is missing. */
  others: string[];
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

/** The four answers: who leads by the clues; several; nobody, so that it is missing; not known. */
function judge(question: OwnerQuestion): Ownership {
  const { context, held, known } = question;
  const all = suspectsFor(question);
  const excluded = all.filter(({ against }) => against !== undefined);
  const tied = all.filter(({ against }) => against === undefined);
  const able = question.candidates.filter((one) => isAble(question, one));
  const best = leading(question, tied, able, excluded) ?? leftOut(question, tied, able, excluded);
  const suspects = tied.filter((one) => one !== best && workloadExists(one));
  const unread = unreadSources(context);
  const common = { suspects, unread, excluded: excluded.filter((one) => one !== best) };
  const isOnly =
    best !== undefined &&
    isDecided(best) &&
    !excluded.some((one) => one !== best && isDecided(one)) &&
    !tied.some((one) => one !== best && (isDecided(one) || hasClue(one, 'status')));
  if (best !== undefined && workloadExists(best)) {
    const isWhole = unread.length === 0 && !best.restriction && sharesOf(best).length === 0;
    const isSure = isOnly && isWhole && !isPowerless(question, best) && isNamed(question, best);
    const certainty = isSure ? 'proven' : 'likely';
    return { certainty, verdict: 'found', owner: best, others: [], ...common };
  }
  const further = able.filter(({ actor }) => all.every((one) => one.actor !== actor));
  const others = othersAlive(question, best, further, excluded);
  // Beside an account or a program that is gone, a permission alone makes nobody the controller.
  const isGone = best !== undefined && best.actor === undefined;
  const rivals = suspects.filter(
    (one) =>
      (isMoreThanAble(one) || !isGone) &&
      (hasClue(one, 'catalogue', 'namesake') || !best?.program || !known?.workload[0]) &&
      !isKnownForAnother(question, one),
  );
  const wasSeen = best !== undefined && wasSeenDeleted(question, best);
  const isNobodyLeft = others.length === 0 && (best !== undefined || isExpectedHere(question));
  if (unread.length === 0 && rivals.length === 0 && (wasSeen || isNobodyLeft)) {
    const certainty = wasSeen && isOnly && others.length === 0 ? 'proven' : 'likely';
    // Deployers outside of the cluster use accounts as well: only one that is called a controller, or as its type, is meant.
    const [account, ...more] = question.candidates.filter(({ actor, account: one, rights }) => {
      const name = `${one?.namespace}/${one?.name}`;
      const isCalledSo = CONTROLLER.test(name) || isNamedAfterType(held, name.replaceAll('-', ''));
      return actor === undefined && rights.change === 'named' && rights.watch && isCalledSo;
    });
    const owner = best ?? (more.length === 0 ? account : undefined);
    return { certainty, verdict: 'missing', owner, others, ...common };
  }
  return {
    ...{ certainty: 'unknown', verdict: 'unknown', others, ...common },
    owner: best ?? tied.find((one) => one.account !== undefined && !workloadExists(one)),
    // Many may change a built-in type.
    suspects: isBuiltIn(held.type.group)
      ? suspects.filter(isMoreThanAble)
      : [...suspects, ...further],
  };
}

/**
 * Reports whether a workload of another name may not change the object, and nothing shows that it ever could: a dashboard
 * may run the image of the operator.
 */
function isPowerless({ context, held, program }: OwnerQuestion, suspect: Suspect): boolean {
  const { actor } = suspect;
  return (
    actor !== undefined &&
    !actor.isGone &&
    !mayChange(suspect) &&
    !hasClue(suspect, 'catalogue', 'log') &&
    !hasWorkloadName(actor, program) &&
    !hadRights(context, actor.account, held.type)
  );
}

/** Reports whether more than its account has the name of the writer: any workload may run as the account of an operator. */
function isNamed({ program }: OwnerQuestion, suspect: Suspect): boolean {
  const { actor } = suspect;
  const account = { namespace: undefined, name: '' };
  return (
    hasClue(suspect, 'catalogue', 'log') ||
    (actor !== undefined && hasProgramName({ ...actor, account }, program))
  );
}

function mayChange({ rights }: Suspect): boolean {
  return rights.change !== undefined || rights.impersonates;
}

/**
 * Returns the one that leads: of those with a clue that decides, or else of all, the one with the most clues, if something
 * beside a permission ties it to the finalizer.
 */
function leading(
  question: OwnerQuestion,
  tied: readonly Suspect[],
  able: readonly Suspect[],
  excluded: readonly Suspect[],
): Suspect | undefined {
  const decided = tied.filter(isDecided);
  const pool = decided[0] ? decided : tied.filter((one) => !isKnownForAnother(question, one));
  const points = pool.map((one) => pointsOf(question, one));
  const most = Math.max(...points);
  const [best, ...more] = pool.filter((_, at) => points[at] === most);
  if (best === undefined || more.length > 0 || !isMoreThanAble(best)) return undefined;
  if (isDecided(best)) return hasRival(question, best, tied) ? undefined : best;
  // What shows a workload cannot tell it from an account with the marks whose workload is gone.
  const isGone = (one: Suspect): boolean => !workloadExists(one) && hasClue(one, 'marks');
  if (workloadExists(best) && pool.some(isGone)) return undefined;
  // Who may change everything has a right on any type, and restores what others have written: only an operator that was made
  // cluster-admin, and is the only one, is known by the name of its framework.
  const isAnybody =
    !isFrameworkName(question.writer) ||
    !hasClue(best, 'namesake') ||
    able.some(({ actor }) => actor !== best.actor);
  if (best.rights.change === 'everything' && isAnybody) return undefined;
  // What is about the type alone names none of the controllers that share it.
  if (question.isForeign && !hasClue(best, 'namesake')) return undefined;
  return isContradicted(question, best, able, excluded) ? undefined : best;
}

/** One more clue of a kind outweighs all of the kinds below. */
const POINTS = { decides: 100, marks: 10, supports: 1 };

function pointsOf({ held, program }: OwnerQuestion, one: Suspect): number {
  const found = one.clues.map(({ kind, weight }) => {
    if (kind === 'permission' || (weight === 'supports' && isDecided(one))) return 0;
    const isNamed = one.actor && hasWorkloadName(one.actor, program);
    const extra = kind === 'log' ? 21 : kind === 'writer' ? (isNamed ? 21 : 20) : 0;
    return POINTS[weight] + extra;
  });
  const sum = found.reduce((all, points) => all + points, 0);
  // A part of the product that runs does not do the work of the one that wrote the finalizer and is gone. Who has several
  // clues that decide and may not change the object has lost its right: that is its state.
  const mayAct =
    one.program === undefined ? mayChange(one) || sum > 200 : isKnownWorkload(held, one.program);
  const isMeant = one.rights.change === 'named' || !hasClue(one, 'log');
  return sum + (isMeant ? 2_000 : 0) + (mayAct ? 1_000 : 0);
}

/** Reports whether another one may be meant: a second installation of the program, told apart by nothing but its arguments. */
function hasRival(question: OwnerQuestion, best: Suspect, tied: readonly Suspect[]): boolean {
  const settings = ({ actor }: Suspect): string => (actor?.selectors ?? []).join();
  const isActive = ({ actor }: Suspect): boolean =>
    lateWrites(question.held).some(({ manager }) => actor && hasProgramName(actor, manager));
  const isPart = isPowerless(question, best);
  const shares = sharesOf(best);
  return tied.some((one) => {
    const isShared = sharesOf(one).some((share) => shares.includes(share));
    const isAlike = isDecided(one) || (isShared && hasClue(one, 'marks'));
    return (
      (isPart && hasClue(one, 'marks')) ||
      (best.actor?.ready === 0 && isActive(one)) ||
      (isAlike && settings(one) !== settings(best))
    );
  });
}

/** Reports whether somebody else is at work: another program writes the status, or one that may act and is down explains a hang better. */
function isContradicted(
  { held, actors }: OwnerQuestion,
  best: Suspect,
  able: readonly Suspect[],
  excluded: readonly Suspect[],
): boolean {
  const isOfAnother = statusManagers(held).some((manager) => {
    const writers = workloadsOfProgram(actors, manager);
    return (
      writers.length + productsOf(manager).length > 0 &&
      !isControllerOfType(held, manager) &&
      !writers.some((one) => one === best.actor)
    );
  });
  const isRuledOut = excluded.some(
    (one) =>
      one.restriction === undefined &&
      (isDecided(one) || (hasClue(one, 'installation') && !hasClue(best, 'installation'))),
  );
  const isOneDown = (best.actor?.ready ?? 0) > 0 && able.some(({ actor }) => actor?.ready === 0);
  return isOfAnother || isRuledOut || isOneDown;
}

/** Returns the one whose arguments leave the object out, if it alone has a deciding clue or the marks, and nobody else may act. */
function leftOut(
  { context, held }: OwnerQuestion,
  tied: readonly Suspect[],
  able: readonly Suspect[],
  excluded: readonly Suspect[],
): Suspect | undefined {
  const restricted = excluded.filter(
    (one) => one.restriction && one.rights.change && workloadExists(one),
  );
  const decisive = [...tied, ...restricted].filter(isDecided);
  const left = able.filter(({ actor }) => excluded.every((one) => one.actor !== actor));
  const marked = restricted.filter((one) => hasClue(one, 'marks'));
  const [only, ...more] = decisive.length > 0 ? decisive : [...tied, ...left, ...marked];
  const isAlone = more.length === 0 && writersOutsideCluster(context, held.type).length === 0;
  return only?.restriction !== undefined && isAlone ? only : undefined;
}

/** An argument that gives a controller a class or a share of the objects; which objects these are is not known. */
const SHARE =
  /^(?:--?(?:[\w.-]+-)?(?:class(?:es|-name)?|shards?(?:-[\w-]+)?|instance-?id)|(?:\w+_)?(?:SHARD(?:_\w+)?|CONTROLLER_ID))=/;

/** Returns the names of such arguments: the object may be left to another installation. */
function sharesOf({ actor }: Suspect): string[] {
  return (actor?.selectors ?? []).flatMap((one) => SHARE.exec(one)?.[0] ?? []);
}

/** Reports whether a permission alone makes it one that may act: many may change built-in types, and general tools everything. */
function isAble({ held }: OwnerQuestion, { actor, rights: { change } }: Suspect): boolean {
  if (change === undefined || actor === undefined || actor.isGone) return false;
  return change === 'named' ? !isBuiltIn(held.type.group) : !isGeneralTool(actor);
}

/**
 * Returns what shows that somebody may act, in sentences: who may change the objects, controllers that were ruled out and to
 * which clues point, and programs that no workload in the cluster shows. Who was deleted with the namespace had its
 * permissions there: those for everything then say nothing about this object.
 */
function othersAlive(
  question: OwnerQuestion,
  best: Suspect | undefined,
  able: readonly Suspect[],
  excluded: readonly Suspect[],
): string[] {
  const { context, held, known } = question;
  const wasHere = isInside(context, best?.account?.namespace);
  // Beside a well-known product, or an account made for this type, somebody's permission for everything says nothing.
  const isProduct = known !== undefined && known.workload.length > 0 && !known.anyController;
  const isMade =
    isProduct || (best?.account !== undefined && (isDecided(best) || hasClue(best, 'marks')));
  const named = able
    .filter(
      ({ actor, rights }) =>
        rights.change !== 'everything' ||
        !(wasHere || isMade) ||
        (!isProduct && !wasHere && actor?.namespace === best?.account?.namespace),
    )
    .map((one) => `${suspectText(one)}: RBAC lets it change the objects`);
  const roles = [held.type, ...typesOfDomain(context, held, question.domain)].flatMap((type) =>
    unboundRoles(context, type),
  );
  const unbound = [...new Set(roles)].map(
    (name) => `ClusterRole ${name}, with the rights of a controller, is bound to nobody`,
  );
  // Many run a container with the name of the writer, and may do nothing outside of their own namespace.
  const isAlike = ({ actor, rights }: Suspect): boolean =>
    rights.isBare &&
    actor !== undefined &&
    isNamedAfterType(held, `${actor.namespace}/${actor.name}`.replaceAll('-', ''));
  const isSigned = (one: Suspect): boolean =>
    isDecided(one) ||
    hasClue(one, 'marks', 'status', 'installation') ||
    (hasClue(one, 'namesake') && (identifiesProgram(question.writer) || isAlike(one)));
  const ruledOut = excluded
    .filter((one) => workloadExists(one) && isSigned(one))
    .map((one) => `${suspectText(one)} exists, but ${one.against}`);
  return [
    ...named,
    ...(wasHere ? [] : [...unbound, ...ruledOut]),
    ...(known !== undefined && isProviderManaged(known)
      ? ['the provider of the cluster usually runs the controller of this finalizer']
      : []),
    ...outsidePrograms(question).map((text) => `${RUNS_OUTSIDE_TEXT}: ${text}`),
  ];
}

/** Begins the sentences about those that no workload in the cluster shows. */
export const RUNS_OUTSIDE_TEXT = 'it may run outside of the cluster';

/**
 * Returns what shows programs that no workload shows: renewed Leases, users and groups with permissions on the type, late
 * writes, a cloud provider. An account that no workload uses is that of a controller which is gone.
 */
function outsidePrograms(question: OwnerQuestion): string[] {
  const { context, held, domain, actors, candidates, program } = question;
  const leases = [...leasesOfGroups(context, domain), ...leasesOfProgram(context, program)].filter(
    (lease) =>
      isRenewed(context, lease) &&
      holderOf(context, lease) === undefined &&
      !isLeftOver(context, lease),
  );
  // Any controller may write under a common word, such as `controller`, or under its API group, `example.com/widgets`,
  // which no workload can have as its name: it is outside only if none here may change it.
  const mayBeHere = candidates.some(({ actor, rights }) => actor && rights.change !== undefined);
  const isCommon = (manager: string): boolean =>
    isFrameworkName(manager) || manager.includes('/') || isControllerOfType(held, manager);
  const writers = lateWrites(held).filter(
    ({ manager }) =>
      !HARMLESS_WRITERS.test(manager) &&
      !(isCommon(manager) && mayBeHere) &&
      workloadsOfProgram(actors, manager).length === 0,
  );
  const reporters = eventsAbout(context, held).filter(
    ({ component, instance }) =>
      !isKubernetesComponent(component) &&
      !actors.some((actor) => matchesReporter(actor, component, instance)),
  );
  return [
    ...leases.map(({ namespace, name, holder }) => `${holder} renews Lease ${namespace}/${name}`),
    ...writersOutsideCluster(context, held.type).map((who) => `${who} may change the type`),
    ...reporters.map(({ component }) => `"${component}" reported an Event about the object`),
    ...writers.map(({ object: { kind, name }, manager: by }) => `"${by}" writes ${kind} ${name}`),
    ...cloudProvider(context, held),
  ];
}

function cloudProvider({ now }: Context, held: Held): string[] {
  if (!isOftenProviderManaged(held)) return [];
  const nodes = now.cluster.providerNodes;
  if (nodes?.ok !== true) return ['whether the nodes belong to a cloud provider could not be read'];
  const providers = nodes.value.flatMap(({ providerId }) => /^\w+/.exec(providerId)?.[0] ?? []);
  return providers.slice(0, 1).map((name) => `the nodes belong to the provider "${name}"`);
}

/**
 * Reports whether the gate saw the workload deleted together with a namespace: its own one is terminating, and no pod
 * runs there any more. A copy of an operator has not written the finalizer: it wants no pods, or is younger.
 */
function wasSeenDeleted(question: OwnerQuestion, { actor, rights }: Suspect): boolean {
  const { context, held, actors, known } = question;
  if (actor === undefined || (known && isProviderManaged(known))) return false;
  const { time = '' } = writerOf(held) ?? {};
  const isCopy =
    (actor.uid !== undefined && actor.wanted === 0) ||
    (time !== '' && (actor.creationTimestamp ?? '') > time);
  const beside = actors.filter(({ namespace }) => namespace === actor.namespace);
  return (
    isEndingNamespace(context, actor.namespace) &&
    !isCopy &&
    !beside.some(({ pods }) => pods.some(({ phase }) => phase === 'Running')) &&
    (rights.change !== undefined || departedGrant(context, actor.account, held.type) !== undefined)
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

/** Reports whether the owner must be in this cluster: its type is defined here, or its product has known names. */
function isExpectedHere({ context, held, known, isForeign }: OwnerQuestion): boolean {
  if ((known?.workload.length ?? 0) > 0) return true;
  const definitions = itemsIn(context.now.cluster.definitions).map(({ name }) => name);
  return !isForeign && definitionNames(context, held).some((name) => definitions.includes(name));
}
