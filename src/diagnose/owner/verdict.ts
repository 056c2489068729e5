import { isBuiltIn } from '../../model/facts/metadata.ts';
import type { Certainty } from '../../model/finding.ts';
import { itemsIn } from '../../model/read.ts';
import type { ClusterSources, NamespaceSources } from '../../model/snapshot.ts';
import { isEndingNamespace, WORKLOAD_SOURCES } from '../actors.ts';
import { eventsAbout } from '../content.ts';
import { type Context, isInside, remember } from '../context.ts';
import { departedGrant, NOBODY, unboundRoles, writersOutsideCluster } from '../rights.ts';
import {
  hasClue,
  isActive,
  isDecided,
  isKnownForAnother,
  isMoreThanAble,
  isPartner,
  isTiedByRight,
  type OwnerQuestion,
  questionAbout,
  type Suspect,
  statusManagers,
  suspectsFor,
  suspectText,
  workloadExists,
} from './clues.ts';
import {
  definitionNames,
  type Held,
  isOftenProviderManaged,
  isProviderManaged,
  lateWrites,
} from './held.ts';
import { holderOf, isRenewed, leasesOfGroups, leasesOfProgram, runsAs } from './leases.ts';
import {
  HARMLESS_WRITERS,
  hasProgramName,
  identifiesProgram,
  isFrameworkName,
  isGeneralTool,
  isKubernetesComponent,
  isNameOfProduct,
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

/** A question with all who could be the answer. */
type Case = ReturnType<typeof caseOf>;

function caseOf(question: OwnerQuestion) {
  const all = suspectsFor(question);
  return {
    ...{ ...question, all },
    /** Those that clues tie to the finalizer, best first, and that nothing contradicts. */
    tied: all.filter(({ against }) => against === undefined),
    excluded: all.filter(({ against }) => against !== undefined),
    /** Those that may act by a permission alone. */
    able: question.candidates.filter((one) => isAble(question, one)),
    /** Many may change a built-in type: few of them watch it as well. */
    handlers: question.candidates.filter((one) => isHandler(question, one)),
  };
}

const ownerships = remember((_: Context) => new Map<string, Ownership>());

/** Returns who owns the finalizer; computed once per examination. */
export function findOwner(context: Context, held: Held): Ownership {
  const known = ownerships(context);
  const { finalizer, subject, isInSpec, objects } = held;
  const key = JSON.stringify([finalizer, subject, isInSpec, objects.map(({ uid }) => uid)]);
  const found = known.get(key) ?? judge(caseOf(questionAbout(context, held)));
  known.set(key, found);
  return found;
}

/** A setting that gives a controller a class or a share of the objects. */
const SHARE = /(?:class|shard|instance-?id|controller[-_]id)[\w-]*=/i;

/** The four answers: who leads by the clues; several; nobody, so that it is missing; not known. */
function judge(the: Case): Ownership {
  const { context, held, all, product } = the;
  // One whose arguments leave the object out stands back behind all others, also behind who acts from outside; without a clue
  // that decides, behind all that may act. What was installed with it, as a dashboard, is restricted as well.
  const isHere = writersOutsideCluster(context, held.type).length === 0;
  const isFurther = (one: Suspect): boolean =>
    all.every(({ actor }) => actor !== one.actor) && !isPartner(the, one);
  const further = the.able.filter(isFurther);
  const isAlone = the.tied.length + further.length === 0;
  const restricted = the.excluded.filter((one) => isHere && one.restriction && one.rights.change);
  const decided = the.tied.some(isDecided) ? [] : restricted.filter(isDecided);
  const last = isAlone ? restricted.filter((one) => hasClue(one, 'marks', 'namesake')) : [];
  const led = [decided, the.tied, last].map((tied) => leading({ ...the, tied }));
  const best = led.find((one) => one !== undefined) ?? onlyDown(the);
  const suspects = the.tied.filter((one) => one !== best && workloadExists(one));
  const unread = unreadSources(context);
  const common = { suspects, excluded: the.excluded.filter((one) => one !== best), unread };
  // One that runs the same program and may not change the object may have lost its right.
  const isAlike = ({ actor }: Suspect): boolean =>
    actor !== undefined && (hasProgramName(actor, the.program) || actor.name === best?.actor?.name);
  const mayBeIt = all.filter((one) => isDecided(one) || isAlike(one));
  const isOnly = best !== undefined && isDecided(best) && mayBeIt.length === 1;
  if (best !== undefined && workloadExists(best)) {
    // Which objects are those of its class or its share, is not known.
    const isWhole =
      best.restriction === undefined && !best.actor?.selectors.some((one) => SHARE.test(one));
    const certainty = isOnly && isWhole && unread.length === 0 ? 'proven' : 'likely';
    return { certainty, verdict: 'found', owner: best, others: [], ...common };
  }
  const others = othersAlive(the, best, further);
  // Beside an account or a program that is gone, a permission alone makes nobody the controller; and beside a program of a
  // known product, only another part of that.
  const rivals = suspects.filter((one) =>
    best?.program && product
      ? hasClue(one, 'catalogue', 'namesake')
      : !isKnownForAnother(the, one) && (best === undefined || isMoreThanAble(one)),
  );
  const wasSeen = best !== undefined && wasSeenDeleted(the, best);
  const handlers = the.handlers.filter(isFurther);
  const gone = best ?? handlers.find(({ actor }) => !actor);
  const isGone = best ?? (gone ? !handlers[1] : isExpectedHere(the));
  if (unread.length === 0 && rivals.length === 0 && (wasSeen || (others.length === 0 && isGone))) {
    const certainty = wasSeen && isOnly && others.length === 0 ? 'proven' : 'likely';
    return { certainty, verdict: 'missing', owner: gone, others, ...common };
  }
  const alive = handlers.filter(({ actor }) => actor);
  const more = !isBuiltIn(held.type.group) ? further : alive.length > 5 ? [] : alive;
  return {
    ...{ certainty: 'unknown', verdict: 'unknown', others, ...common },
    owner: gone ?? the.tied.find((one) => one.account !== undefined && !workloadExists(one)),
    suspects: [...suspects, ...more],
  };
}

/** One clue outweighs all kinds below, and a right, which counts 1. */
const WEIGHTS = { decides: 100, marks: 10, supports: 2, able: 0 };

/** What supports one that a clue decides for tells it from no other; a right does. */
function rankOf(one: Suspect): number {
  const counted = one.clues.filter(({ weight }) => weight !== 'supports' || !isDecided(one));
  return counted.reduce((sum, { weight }) => sum + WEIGHTS[weight], one.rights.change ? 1 : 0);
}

/** Returns the one with the most clues, of those with a clue that decides if there are any, if more than a permission ties it to the finalizer. */
function leading(the: Case): Suspect | undefined {
  const { tied, able, excluded, handlers, writer } = the;
  const decided = tied.filter(isDecided);
  // Beside a workload, an account is left of an earlier installation.
  const workloads = decided.filter(({ actor }) => actor !== undefined);
  const isLeft = ({ actor, account }: Suspect): boolean =>
    !actor &&
    tied.some((one) => one.actor?.namespace === account?.namespace && one.rights.isMarked);
  const others = tied.filter((one) => !isKnownForAnother(the, one) && !isLeft(one));
  const pool = [workloads, decided, others].find(([first]) => first !== undefined) ?? [];
  const ranks = pool.map(rankOf);
  const [best, ...more] = pool.filter((_, at) => ranks[at] === Math.max(...ranks));
  if (best === undefined || more.length > 0 || !isMoreThanAble(best)) return undefined;
  if (isDecided(best)) return hasRival(the, best) ? undefined : best;
  const isCalled = hasClue(best, 'namesake', 'part');
  // Who may change everything restores what others have written: only a name that frameworks give tells, of the one who may.
  const isOnlyName =
    hasClue(best, 'namesake') &&
    isFrameworkName(writer) &&
    able.every(({ actor }) => actor === best.actor);
  const isElsewhere = ({ actor, rights }: Suspect): boolean =>
    rights.change === 'named' && actor?.namespace !== best.actor?.namespace;
  const isContradicted =
    // A console of the release has its labels as well, and may be told the same: they give it no right.
    (hasClue(best, 'told') && !isCalled) ||
    (best.rights.change === 'everything' && !isOnlyName) ||
    isStatusOfAnother(the, best) ||
    // An addition to a product has a domain of its company, and the product's name in it.
    (the.domain.isShared && able.some(isElsewhere)) ||
    excluded.some(
      (one) =>
        one.restriction === undefined &&
        (isDecided(one) || (hasClue(one, 'installation') && !hasClue(best, 'installation'))),
    ) ||
    // One that may act and is down explains a hang better.
    ((best.actor?.ready ?? 0) > 0 &&
      [...able, ...handlers].some(({ actor }) => actor?.ready === 0));
  return isContradicted ? undefined : best;
}

/** Returns the only one of those that may act that is down: that explains a hang best where nobody else has more than a right. */
function onlyDown(the: Case): Suspect | undefined {
  const acting = [...the.able, ...the.handlers].map(({ actor }) => actor);
  const down = new Set(acting.filter((actor) => actor?.ready === 0));
  const best = the.tied.find(({ actor }) => down.has(actor));
  const isRival = (one: Suspect): boolean => one !== best && isMoreThanAble(one);
  const isIt = down.size === 1 && the.domain.types.length > 0 && !the.tied.some(isRival);
  // Who writes under a name that frameworks give runs under it.
  const isWriter =
    !isFrameworkName(the.writer) || (best?.actor && runsAs(the.context, best.actor, the.writer));
  return isIt && isWriter && outsidePrograms(the).length === 0 ? best : undefined;
}

/** Reports whether another one may be meant: one that has written since this one is down, or a second installation with other values of options. */
function hasRival({ actors, held, tied, writer }: Case, best: Suspect): boolean {
  const valuesOf = ({ actor }: Suspect): string => (actor?.selectors ?? []).join();
  const optionsOf = (one: Suspect): string => valuesOf(one).replace(/=[^,]*/g, '');
  const late = best.actor?.ready === 0 ? lateWrites(held) : [];
  const atWork = actors.filter((one) => late.some(({ manager }) => hasProgramName(one, manager)));
  return tied.some((one) => {
    const isDouble =
      isDecided(one) ||
      (hasClue(one, 'namesake') && !isFrameworkName(writer)) ||
      (hasClue(one, 'marks') && optionsOf(one) === optionsOf(best));
    const hasWritten = one !== best && atWork.some((actor) => actor === one.actor);
    return (isDouble && one.actor && valuesOf(one) !== valuesOf(best)) || hasWritten;
  });
}

/** Reports whether another program writes the status. */
function isStatusOfAnother(the: Case, { actor }: Suspect): boolean {
  return statusManagers(the).some((manager) => {
    const writers = workloadsOfProgram(the.actors, manager);
    return writers.length > 0 && writers.every((one) => one !== actor);
  });
}

/** Reports whether a permission alone makes it one that may act. General tools may change everything. */
function isAble(question: OwnerQuestion, one: Suspect): boolean {
  const { actor, lost, rights } = one;
  if (actor === undefined || actor.isGone) return false;
  return rights.change === 'named'
    ? isTiedByRight(question, one)
    : (rights.change !== undefined || lost?.isOwn === true) && !isGeneralTool(actor);
}

/** Reports whether rules that name the type let it watch and change the objects. An account that no workload uses is that of a controller of built-in types which is gone, unless it also creates them, or is for one namespace, as those of tools are. */
function isHandler(question: OwnerQuestion, { actor, account, rights }: Suspect): boolean {
  const { domain, held, product } = question;
  if ([rights.change, rights.watch].some((reach) => reach !== 'named')) return false;
  if (actor) return !actor.isGone && !isNameOfProduct(actor.name) && !isGeneralTool(actor);
  const isOpen = isBuiltIn(held.type.group) && !product && domain.relation !== 'other';
  const isTool = !held.type.namespaced || rights.isLocal || (rights.creates && !rights.isMarked);
  return isOpen && !isTool && account?.name !== 'default' && !isActive(question, account ?? NOBODY);
}

/** Begins the sentences about those that no workload in the cluster shows. */
export const RUNS_OUTSIDE_TEXT = 'it may run outside of the cluster';

/** Returns what shows that somebody may act, in sentences: who may change the objects, controllers that were ruled out, and programs that no workload in the cluster shows. */
function othersAlive(the: Case, best: Suspect | undefined, able: readonly Suspect[]): string[] {
  const { context, domain, excluded, held, product } = the;
  const home = best?.account?.namespace;
  // Beside a well-known product, or one that is gone, somebody's permission for everything says nothing.
  const named = able.filter(
    ({ actor, rights }) =>
      rights.change === 'named' || (!product && (home === undefined || actor?.namespace === home)),
  );
  // Of a known product, or where something is left of who is gone, a role is left of it as well. In a forecast it frees nothing.
  const isLeft = product || best || context.now.forecast;
  const unbound = isLeft ? [] : domain.types.flatMap((type) => unboundRoles(context, type, true));
  // One that is told to work on other namespaces, and has its right there, works on none of these objects.
  const ruledOut = excluded.filter(
    (one) => workloadExists(one) && (!one.restriction || one.rights.change),
  );
  return [
    ...named.map(
      (one) => `${suspectText(one)}: ${one.lost?.text ?? 'RBAC lets it change the objects'}`,
    ),
    ...(isInside(context, home)
      ? []
      : [
          ...[...new Set(unbound)].map(
            (name) => `ClusterRole ${name}, with the rights of a controller, is bound to nobody`,
          ),
          ...ruledOut.map((one) => `${suspectText(one)} exists, but ${one.against}`),
        ]),
    ...(isProviderManaged(held)
      ? ['the provider of the cluster usually runs the controller of this finalizer']
      : []),
    ...[...new Set(outsidePrograms(the))].map((text) => `${RUNS_OUTSIDE_TEXT} (${text})`),
  ];
}

/** Returns what shows programs outside: renewed Leases, users and groups with permissions, late writes, a cloud provider. */
function outsidePrograms(question: OwnerQuestion): string[] {
  const { context, held, domain, actors, candidates, program } = question;
  const accounts = candidates.flatMap(({ actor, account }) => (actor ? [] : (account?.name ?? [])));
  const names = [program, ...accounts.filter(identifiesProgram)];
  const leases = [
    ...leasesOfGroups(context, domain),
    ...names.flatMap((name) => leasesOfProgram(context, name)),
  ].filter((lease) => isRenewed(context, lease) && !holderOf(context, lease));
  const writers = lateWrites(held).filter(
    ({ manager }) =>
      !HARMLESS_WRITERS.test(manager) && workloadsOfProgram(actors, manager).length === 0,
  );
  // Who has reported nothing since the deletion may be uninstalled.
  const reporters = eventsAbout(context, held).filter(
    ({ at = '', component, instance }) =>
      !(Date.parse(at) < Date.parse(held.since)) &&
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
  // kind, k3s and Docker start nodes, and run no controllers.
  const providers = nodes.value.flatMap(
    ({ providerId }) => /^(?!kind|k3[ds]|docker)\w+/.exec(providerId)?.[0] ?? [],
  );
  return providers.slice(0, 1).map((name) => `the nodes belong to the provider "${name}"`);
}

/** Reports whether the gate saw the workload deleted with its namespace, in which no pod runs any more. */
function wasSeenDeleted({ context, held, actors }: OwnerQuestion, { actor, rights }: Suspect) {
  if (!actor || !isEndingNamespace(context, actor.namespace)) return false;
  const pods = actors.flatMap((one) => (one.namespace === actor.namespace ? one.pods : []));
  const by = rights.change ?? departedGrant(context, actor.account, held.type);
  return by !== undefined && pods.every(({ phase }) => phase !== 'Running');
}

/** The sources of an answer: of the cluster, of the namespace itself, and of the suspects' namespaces. */
export const OWNER_SOURCES = {
  cluster: [
    ...WORKLOAD_SOURCES,
    ...(['leases', 'clusterRoles', 'clusterRoleBindings', 'apiServices', 'definitions'] as const),
    ...(['validatingWebhooks', 'mutatingWebhooks'] as const),
  ],
  here: ['roles', 'roleBindings', 'events'],
  elsewhere: ['pods', 'services', 'events'],
} satisfies Record<string, (keyof ClusterSources | keyof NamespaceSources)[]>;

const SOURCES: ReadonlySet<string> = new Set(Object.values(OWNER_SOURCES).flat());

/** Returns sources that were not read, or were cut by a limit: absence there proves nothing. */
function unreadSources({ now }: Context): string[] {
  const asked = [now.cluster.deployments, now.cluster.clusterRoleBindings, now.cluster.leases];
  const unread = now.unread.flatMap(({ source, what }) => (SOURCES.has(source ?? '') ? what : []));
  return asked.includes(undefined) ? [...unread, 'workloads, RBAC and Leases'] : unread;
}

/** Reports whether the owner must be in this cluster: its type is defined here, or its product has known names. */
function isExpectedHere({ context, domain, held, product }: OwnerQuestion): boolean {
  const definitions = itemsIn(context.now.cluster.definitions).map(({ name }) => name);
  const isDefined = definitionNames(context, held).some((name) => definitions.includes(name));
  return product !== undefined || (domain.relation !== 'foreign' && isDefined);
}
