import { domainOf, entriesOfWorkload, productsOf } from '../../model/catalogue.ts';
import type { Certainty } from '../../model/finding.ts';
import type { ClusterSources, NamespaceSources } from '../../model/snapshot.ts';
import { type Actor, accountText, isEndingNamespace, WORKLOAD_SOURCES } from '../actors.ts';
import { type Context, eventsAbout, isBuiltIn, isInside, itemsIn } from '../context.ts';
import {
  departedGrant,
  isRbacRead,
  isSameAccount,
  unboundRoles,
  writersOutsideCluster,
} from '../rights.ts';
import { hasClue, isKnownForAnother, marked, suspectsFor, unusedAccounts } from './clues.ts';
import { applyExclusions, classesOf, type Excluded } from './exclusions.ts';
import {
  definitionNames,
  type Held,
  isControllerOfType,
  isKnownWorkload,
  isOfNoDomain,
  isOftenProviderManaged,
  isProviderManaged,
  knownFinalizer,
  lateWrites,
  specificFieldManager,
  statusManagers,
  writerOf,
} from './held.ts';
import { holderOf, isLeftOver, isRenewed, leasesOfGroups, leasesOfProgram } from './leases.ts';
import {
  containsName,
  FRAMEWORKS,
  HARMLESS_WRITERS,
  hasProgramName,
  hasWorkloadName,
  isFrameworkName,
  isGeneralTool,
  isKubernetesComponent,
  isOfOneProject,
  isSameName,
  matchesReporter,
  workloadsOfProgram,
} from './names.ts';
import {
  isDecided,
  isMoreThanAble,
  isTied,
  type OwnerQuestion,
  questionAbout,
  rightsOfSuspect,
  type Suspect,
  suspectText,
  workloadExists,
} from './suspects.ts';

/** The owner of a finalizer, and the certainty of the answer. */
export interface Ownership {
  certainty: Certainty;
  /** `found`: the owner exists, in whatever state. `missing`: no controller was found. `unknown`: undecided. */
  verdict: 'found' | 'missing' | 'unknown';
  /** The owner; with `missing` and `unknown`, the suspect that is gone. */
  owner: Suspect | undefined;
  /** The other suspects, best first. */
  suspects: Suspect[];
  excluded: Excluded[];
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

function judge(question: OwnerQuestion): Ownership {
  const { left, excluded } = applyExclusions(suspectsFor(question), question);
  const tied = withoutWebhooks(left.filter((one) => isTied(question, one)));
  const unread = unreadSources(question.context);
  const named = tied.some(isDecided) ? decided(question, tied) : leading(question, tied, excluded);
  const best = named ?? leftOut(question, tied, excluded) ?? calledAfterGroup(question, tied);
  const suspects = tied.filter((one) => one !== best && workloadExists(one));
  const ruledOut = excluded.filter(({ suspect }) => suspect.actor !== best?.actor);
  const common = { suspects, excluded: best === undefined ? excluded : ruledOut, unread };
  const isOnly =
    best !== undefined &&
    isDecided(best) &&
    excluded.every(({ suspect }) => !isDecided(suspect)) &&
    tied.every((one) => one === best || !(isDecided(one) || hasClue(one, 'status')));
  if (best !== undefined && workloadExists(best)) {
    const certainty =
      isOnly &&
      unread.length === 0 &&
      best.restriction === undefined &&
      shareNames(best).length === 0
        ? 'proven'
        : 'likely';
    return { certainty, verdict: 'found', owner: best, others: [], ...common };
  }
  const seen = [...tied, ...excluded.map(({ suspect }) => suspect)];
  const able = lastResorts(question).filter(({ actor }) =>
    seen.every((one) => one.actor !== actor),
  );
  const others = othersAlive(question, best, able, excluded);
  // Beside an account or a program that is gone, a permission alone makes nobody the controller.
  const isNameOnly = best !== undefined && best.actor === undefined;
  const rivals = suspects.filter(
    (one) =>
      !(isNameOnly && !isMoreThanAble(one)) &&
      !(one.actor && isKnownForAnother(question.held, one.actor)) &&
      !(best?.program !== undefined && isOfOtherProduct(question, one)),
  );
  const wasSeen = best !== undefined && wasSeenDeleted(question, best);
  const isNobodyLeft = others.length === 0 && (best !== undefined || isExpectedHere(question));
  if (unread.length === 0 && rivals.length === 0 && (wasSeen || isNobodyLeft)) {
    const isProven = wasSeen && isOnly && others.length === 0;
    const certainty = isProven ? 'proven' : 'likely';
    const answer = { certainty, verdict: 'missing', owner: best, others } as const;
    return { ...answer, ...common };
  }
  const owner = best ?? tied.find((one) => one.account !== undefined && !workloadExists(one));
  const more = isBuiltIn(question.held.type.group) ? [] : able;
  return {
    ...{ certainty: 'unknown', verdict: 'unknown', owner, others, ...common },
    suspects: [...suspects, ...more],
  };
}

/**
 * Returns the one whose arguments leave the object out, if it alone has a deciding clue; or if it alone has the marks,
 * and nobody else may act.
 */
function leftOut(
  question: OwnerQuestion,
  tied: readonly Suspect[],
  excluded: readonly Excluded[],
): Suspect | undefined {
  const able = excluded.flatMap(({ suspect, by }) =>
    by.isRestriction && suspect.rights.change !== undefined && workloadExists(suspect)
      ? { ...suspect, restriction: by.reason }
      : [],
  );
  const all = [...tied, ...able];
  const others = lastResorts(question).filter(({ actor }) =>
    excluded.every(({ suspect }) => suspect.actor !== actor),
  );
  const [only, ...more] = all.some(isDecided)
    ? all.filter(isDecided)
    : [...tied, ...others, ...able.filter((one) => hasClue(one, 'marks'))];
  if (only?.restriction === undefined || more.length > 0) return undefined;
  return outsidePrograms(question).length > 0 ? undefined : only;
}

/** A workload that is called a webhook stands back behind another one with its account. */
function withoutWebhooks(suspects: readonly Suspect[]): Suspect[] {
  const isWebhook = ({ actor }: Suspect): boolean => /\bwebhook\b/.test(actor?.name ?? '');
  return suspects.filter(
    (one) =>
      !isWebhook(one) ||
      suspects.every((other) => isWebhook(other) || !isSameAccount(other.account, one.account)),
  );
}

/**
 * Returns the only one that may act, if it is called after the API group, `capsule` of `capsule.clastix.io`, and one of its
 * programs as what wrote the finalizer: administrators of the cluster are called after products as well.
 */
function calledAfterGroup(question: OwnerQuestion, tied: readonly Suspect[]): Suspect | undefined {
  const [only, ...more] = lastResorts(question);
  const [word = ''] = question.held.type.group.split('.');
  if (
    only?.actor === undefined ||
    more.length > 0 ||
    tied.some((one) => one.actor !== only.actor) ||
    !only.actor.programs.includes(writerOf(question.held)?.manager ?? '')
  ) {
    return undefined;
  }
  const words = [only.actor.name, only.actor.namespace].flatMap((name) => name.split('-'));
  const isMeant = question.domain.relation === 'own' || isOfNoDomain(question.held);
  return isMeant && words.includes(word) ? only : undefined;
}

/** Reports whether the catalogue knows who removes the finalizer, and that its workloads are called otherwise. */
function isOfOtherProduct({ held }: OwnerQuestion, one: Suspect): boolean {
  const isKnown = (knownFinalizer(held)?.workload.length ?? 0) > 0;
  return isKnown && !hasClue(one, 'catalogue', 'product');
}

/** Returns the one to which the clues that decide point. Who lacks what the others have stands back. */
function decided(question: OwnerQuestion, tied: readonly Suspect[]): Suspect | undefined {
  const manager = specificFieldManager(question.held);
  let left = tied.filter(isDecided);
  const prefer = (isBetter: (one: Suspect) => boolean): void => {
    const better = left.filter(isBetter);
    if (better.length > 0) left = better;
  };
  // Its log shows who works on the object, where nothing here has the name of the writer. A part of the product that runs
  // does not do the work of the one that wrote the finalizer and is gone.
  prefer(({ program, rights, clues }) =>
    program === undefined
      ? rights.change === 'named' || !clues.some(({ kind }) => kind === 'log')
      : isKnownWorkload(question.held, program),
  );
  // What has several clues that decide and may not change the object has lost its right: that is its state.
  prefer(
    (one) =>
      one.program !== undefined ||
      one.rights.change !== undefined ||
      one.rights.impersonates ||
      decisionsOf(one) > 1,
  );
  const most = Math.max(...left.map(decisionsOf));
  prefer((one) => decisionsOf(one) === most);
  prefer((one) => hasClue(one, 'log', 'writer'));
  prefer((one) => hasClue(one, 'marks'));
  // Of several workloads of one installation, the name tells.
  if (left.every(({ account }) => isSameAccount(account, left[0]?.account))) {
    prefer(({ actor }) => actor !== undefined && hasWorkloadName(actor, manager));
  }
  const [best, ...more] = left;
  if (best === undefined || more.length > 0) return undefined;
  const rivals = tied.filter((one) => one !== best && (isDecided(one) || hasClue(one, 'marks')));
  const settings = ({ actor }: Suspect): string => (actor?.selectors ?? []).join();
  const isOfOther = (one: Suspect): boolean =>
    (best.actor?.ready === 0 && isActive(question, one)) ||
    // Two installations of one program are told apart by nothing but their arguments.
    ((isDecided(one) || shareNames(one).some((name) => shareNames(best).includes(name))) &&
      settings(one) !== settings(best));
  return rivals.some(isOfOther) ? undefined : best;
}

function decisionsOf({ clues }: Suspect): number {
  return clues.filter(({ weight }) => weight === 'decides').length;
}

/** Reports whether it has written to the object since the deletion began. */
function isActive({ held }: OwnerQuestion, { actor }: Suspect): boolean {
  return (
    actor !== undefined && lateWrites(held).some(({ manager }) => hasProgramName(actor, manager))
  );
}

/**
 * Returns the only one with the marks, or, where nobody has them, the one with the most clues: two kinds, one of them a
 * permission. Who has lost its permission is known by what it has said or written.
 */
function leading(
  question: OwnerQuestion,
  suspects: readonly Suspect[],
  excluded: readonly Excluded[],
): Suspect | undefined {
  const tied = suspects.filter(
    ({ actor }) => actor === undefined || !isKnownForAnother(question.held, actor),
  );
  const marked = tied.filter((one) => hasClue(one, 'marks'));
  const weightOf = ({ clues }: Suspect): number =>
    clues.filter(({ kind }) => marked.length === 0 || !['container', 'permission'].includes(kind))
      .length;
  const permitted = tied.filter((one) => hasClue(one, 'permission'));
  const able =
    marked.length > 0
      ? marked
      : permitted.length > 0
        ? permitted.filter(({ clues }) => clues.length > 1)
        : tied.filter(({ rights }) => isRbacRead(question.context) && rights.change === undefined);
  const most = Math.max(...able.map(weightOf));
  const [best, ...more] = able.filter((one) => weightOf(one) === most);
  if (best === undefined || more.length > 0) return undefined;
  // Several controllers put finalizers of their own domains on a shared type: what is about the type alone names none.
  const isForeign = question.domain.relation === 'unclear' && !isOfNoDomain(question.held);
  if (isForeign && !hasClue(best, 'author', 'container', 'product')) return undefined;
  const isContradicted =
    isStatusOfAnother(question, best) ||
    isOneDownBeside(question, best) ||
    isOfUnknownClass(question, best) ||
    excluded.some(
      ({ suspect, by }) =>
        !by.isRestriction &&
        (isDecided(suspect) ||
          (hasClue(suspect, 'installation') && !hasClue(best, 'installation'))),
    );
  return isContradicted ? undefined : best;
}

/** Reports whether another program of the cluster, or a well-known one, writes the status. An application may name its controllers as it likes. */
function isStatusOfAnother({ held, actors }: OwnerQuestion, { actor }: Suspect): boolean {
  return statusManagers(held).some((manager) => {
    const writers = workloadsOfProgram(actors, manager);
    return (
      writers.length + productsOf(manager).length > 0 &&
      !isControllerOfType(held, manager) &&
      !writers.some((one) => one === actor)
    );
  });
}

/** Reports whether it runs beside another one that may act and is down, which explains a hang better. */
function isOneDownBeside(question: OwnerQuestion, { actor }: Suspect): boolean {
  return (
    actor !== undefined &&
    actor.ready > 0 &&
    question.actors.some((one) => one.ready === 0 && !one.isGone && isAble(question, one))
  );
}

/** Reports whether the object names a class, which one controller of several handles, and nothing of this one is called so. */
function isOfUnknownClass(
  { context, held: { objects } }: OwnerQuestion,
  { actor }: Suspect,
): boolean {
  const own = [...(actor?.programs ?? []), ...(actor?.selectors ?? [])];
  const names = objects.flatMap((object) => classesOf(context, object));
  return names.some((name) => !own.some((one) => containsName(one, name.split('.')[0] ?? name)));
}

/** An argument that gives a controller a class or a share of the objects; which objects these are is not known. */
const SHARE =
  /^(?:--?(?:[\w.-]+-)?(?:class(?:es|-name)?|shards?(?:-[\w-]+)?|instance-?id)|(?:\w+_)?(?:SHARD(?:_\w+)?|CONTROLLER_ID))=/;

/** Returns the names of such arguments: the object may be left to another installation. */
function shareNames({ actor }: Suspect): string[] {
  return (actor?.selectors ?? []).flatMap((one) =>
    SHARE.test(one) ? (one.split('=')[0] ?? []) : [],
  );
}

/**
 * Reports whether a permission makes it one that may act. Many may change built-in types, or everything: general tools, and
 * products that are installed for other types, remove no finalizer of others.
 */
function isAble({ context, held, rightsOf }: OwnerQuestion, actor: Actor): boolean {
  const { change } = rightsOf(actor.account);
  if (change === undefined || actor.isGone) return false;
  if (change === 'named' && !isBuiltIn(held.type.group)) return true;
  // Somebody else is named.
  const isKnown =
    (knownFinalizer(held)?.workload.length ?? 0) > 0 || specificFieldManager(held) !== '';
  if (isGeneralTool(actor) || (isKnown && change === 'named')) return false;
  const own = [domainOf(held.finalizer), held.type.group];
  // Operators for one database share names: only a product whose API is served is installed.
  const installed = entriesOfWorkload(actor.name, isFrameworkName)
    .map(({ match }) => domainOf(match))
    .filter((domain) => isServed(context, domain.split('.').slice(-2).join('.')));
  return (
    installed.length === 0 ||
    installed.some((domain) => own.some((one) => isOfOneProject(one, domain)))
  );
}

function isServed(context: Context, domain: string): boolean {
  const { discovery } = context.now;
  if (!discovery.ok || isOfOneProject('kubernetes.io', domain)) return true;
  const { types, failedGroups } = discovery.value;
  return [...types, ...failedGroups].some(({ group }) => isOfOneProject(group, domain));
}

/** Returns the workloads that only their permission makes suspects. */
function lastResorts(question: OwnerQuestion): Suspect[] {
  return question.actors
    .filter((actor) => isAble(question, actor))
    .map((actor) => ({
      actor,
      account: actor.account,
      clues: [],
      rights: rightsOfSuspect(question, actor, actor.account),
    }));
}

/**
 * Returns what shows that somebody may act, in sentences: who may change the objects, controllers that were ruled out and to
 * which clues point, and programs that no workload in the cluster shows. Who was deleted with the namespace had its
 * permissions there: those for everything then say nothing about this object.
 */
function othersAlive(
  question: OwnerQuestion,
  best: Suspect | undefined,
  lastResort: readonly Suspect[],
  excluded: readonly Excluded[],
): string[] {
  const wasHere = isInside(question.context, best?.account?.namespace);
  const able = lastResort
    .filter(({ rights }) => !wasHere || rights.change !== 'everything')
    .map((one) => `${suspectText(one)}: RBAC lets it change the objects`);
  const known = knownFinalizer(question.held);
  const provider =
    known !== undefined && isProviderManaged(known)
      ? ['the provider of the cluster usually runs the controller of this finalizer']
      : [];
  const unbound = wasHere
    ? []
    : unboundRoles(question.context, question.held.type).map(
        (name) => `ClusterRole ${name}, with the rights of a controller, is bound to nobody`,
      );
  const ruledOut = excluded.flatMap(({ suspect, by }) =>
    !wasHere &&
    workloadExists(suspect) &&
    (isDecided(suspect) ||
      hasClue(suspect, 'marks', 'status', 'installation', 'author') ||
      (suspect.rights.change !== undefined &&
        !by.isRestriction &&
        (best === undefined || !isBuiltIn(question.held.type.group))))
      ? [`${suspectText(suspect)} exists, but ${by.reason}`]
      : [],
  );
  return [
    ...new Set([
      ...able,
      ...unbound,
      ...provider,
      ...ruledOut,
      ...outsidePrograms(question).map((text) => `${RUNS_OUTSIDE_TEXT}: ${text}`),
    ]),
  ];
}

/** Begins the sentences about those that no workload in the cluster shows. */
export const RUNS_OUTSIDE_TEXT = 'it may run outside of the cluster';

/**
 * Returns what shows programs that no workload shows: renewed Leases, users and groups with permissions on the type, late
 * writes and Events, accounts with permissions in use elsewhere, a cloud provider.
 */
function outsidePrograms(question: OwnerQuestion): string[] {
  const { context, held, domain, actors, rightsOf } = question;
  const leases = [
    ...leasesOfGroups(context, domain),
    ...leasesOfProgram(context, specificFieldManager(held)),
  ].filter(
    (lease) =>
      isRenewed(context, lease) &&
      holderOf(context, lease) === undefined &&
      !isLeftOver(context, lease),
  );
  const departed = marked(question).flatMap(({ actor, account }) => (actor ? [] : (account ?? [])));
  // Any controller may write under a common word, such as `controller`, or under its API group, `example.com/widgets`,
  // which no workload can have as its name: it is outside only if none here may change it.
  const isOf = (actor: Actor, manager: string): boolean => {
    const { change, reachesGroup } = rightsOf(actor.account);
    return (
      hasProgramName(actor, manager) ||
      (reachesGroup && actor.programs.includes(manager)) ||
      (change !== undefined &&
        (isFrameworkName(manager) ||
          manager.includes('/') ||
          isControllerOfType(held, manager) ||
          workloadsOfProgram(actors, manager).includes(actor)))
    );
  };
  const writers = lateWrites(held).filter(
    ({ manager }) =>
      !HARMLESS_WRITERS.test(manager) &&
      !(isFrameworkName(manager) && departed.length > 0) &&
      !actors.some((actor) => isOf(actor, manager)),
  );
  const reporters = eventsAbout(context, held).filter(
    ({ component, instance }) =>
      !isKubernetesComponent(component) &&
      !actors.some((actor) => matchesReporter(actor, component, instance)),
  );
  const homes = itemsIn(context.now.cluster.namespaces).map(({ name }) => name);
  // The deleted workload used the account with the writer's name, or with the marks, which operators made with kopf lack.
  const idle = unusedAccounts(question).filter((account) => {
    const { change, isOfKubernetes } = rightsOf(account);
    return (
      change === 'named' &&
      !isOfKubernetes &&
      !isSameName(account.name, writerOf(held)?.manager ?? '') &&
      !FRAMEWORKS.test(writerOf(held)?.manager ?? '') &&
      !departed.some(
        ({ namespace, name }) => namespace === account.namespace && name === account.name,
      ) &&
      homes.includes(account.namespace ?? '') &&
      !isEndingNamespace(context, account.namespace)
    );
  });
  return [
    ...leases.map(({ namespace, name, holder }) => `${holder} renews Lease ${namespace}/${name}`),
    ...idle.map((account) => `no workload uses ${accountText(account)}, which may change the type`),
    ...writersOutsideCluster(context, held.type).map((who) => `${who} may change the type`),
    ...reporters.map(({ component }) => `"${component}" reported an Event about the object`),
    ...writers.map(({ object: { kind, name }, manager }) => `"${manager}" writes ${kind} ${name}`),
    ...cloudProvider(context, held),
  ];
}

function cloudProvider({ now }: Context, held: Held): string[] {
  if (!isOftenProviderManaged(held)) return [];
  const nodes = now.cluster.providerNodes;
  if (nodes?.ok !== true) return ['whether the nodes belong to a cloud provider could not be read'];
  const providers = nodes.value.flatMap(
    ({ providerId }) => /^(?!kind:|k3s:)\w+/.exec(providerId)?.[0] ?? [],
  );
  return providers.slice(0, 1).map((name) => `the nodes belong to the provider "${name}"`);
}

/**
 * Reports whether the gate saw the workload deleted together with a namespace: its own one is terminating, and no pod
 * runs there any more. A copy of an operator has not written the finalizer: it wants no pods, or is younger.
 */
function wasSeenDeleted(
  { context, held, actors }: OwnerQuestion,
  { actor, rights }: Suspect,
): boolean {
  const known = knownFinalizer(held);
  if (actor === undefined || (known && isProviderManaged(known))) return false;
  if (!isEndingNamespace(context, actor.namespace)) return false;
  const { time = '' } = writerOf(held) ?? {};
  const isCopy =
    (actor.uid !== undefined && actor.wanted === 0) ||
    (time !== '' && (actor.creationTimestamp ?? '') > time);
  const stillRuns = actors.some(
    ({ namespace, pods }) =>
      namespace === actor.namespace && pods.some(({ phase }) => phase === 'Running'),
  );
  return (
    !isCopy &&
    !stillRuns &&
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
function isExpectedHere({ context, held, domain }: OwnerQuestion): boolean {
  if ((knownFinalizer(held)?.workload.length ?? 0) > 0) return true;
  if (domain.relation === 'unclear' && !isOfNoDomain(held)) return false;
  const definitions = itemsIn(context.now.cluster.definitions).map(({ name }) => name);
  return definitionNames(context, held).some((name) => definitions.includes(name));
}
