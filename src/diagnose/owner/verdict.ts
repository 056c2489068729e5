import { productsOf } from '../../model/catalogue.ts';
import type { Certainty } from '../../model/finding.ts';
import type { ClusterSources, NamespaceSources } from '../../model/snapshot.ts';
import { accountText, isEndingNamespace, WORKLOAD_SOURCES } from '../actors.ts';
import { type Context, eventsAbout, groupOf, isBuiltIn, isInside, itemsIn } from '../context.ts';
import {
  departedGrant,
  hadRights,
  isRbacRead,
  isSameAccount,
  unboundRoles,
  writersOutsideCluster,
} from '../rights.ts';
import {
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
  writerOf,
} from './held.ts';
import { holderOf, isLeftOver, isRenewed, leasesOfGroups, leasesOfProgram } from './leases.ts';
import {
  FRAMEWORKS,
  HARMLESS_WRITERS,
  hasProgramName,
  hasWorkloadName,
  identifiesProgram,
  isFrameworkName,
  isGeneralTool,
  isKubernetesComponent,
  isSameName,
  matchesReporter,
  workloadsOfProgram,
} from './names.ts';
import { restrictionOf } from './restrictions.ts';

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
  excluded: Excluded[];
  /** Sources that could contradict and were not read. */
  unread: string[];
  /** What shows that somebody may act besides, in sentences. Any of it rules out that an owner is missing. */
  others: string[];
}

export interface Excluded {
  suspect: Suspect;
  /** The sentence that the report shows about the suspect. */
  reason: string;
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

/** The four answers: who has a deciding clue; who leads; several; nobody. */
function judge(question: OwnerQuestion): Ownership {
  const { context, held, known } = question;
  const { tied, excluded } = separate(question);
  const able = question.candidates.filter((one) => isAble(question, one));
  const best =
    (tied.some(isDecided) ? decided(question, tied) : leading(question, tied, able, excluded)) ??
    leftOut(question, tied, able, excluded);
  const suspects = tied.filter((one) => one !== best && workloadExists(one));
  const unread = unreadSources(context);
  const common = {
    ...{ suspects, unread },
    excluded: excluded.filter(({ suspect }) => !best || suspect.actor !== best.actor),
  };
  const isOnly =
    best !== undefined &&
    isDecided(best) &&
    excluded.every(({ suspect }) => !isDecided(suspect)) &&
    tied.every((one) => one === best || !(isDecided(one) || hasClue(one, 'status')));
  if (best !== undefined && workloadExists(best)) {
    const isWhole = unread.length === 0 && !best.restriction && sharesOf(best).length === 0;
    const isSure = isOnly && isWhole && !isNamedByImage(question, best);
    const certainty = isSure ? 'proven' : 'likely';
    return { certainty, verdict: 'found', owner: best, others: [], ...common };
  }
  const seen = [...tied, ...excluded.map(({ suspect }) => suspect)].map(({ actor }) => actor);
  const further = able.filter(({ actor }) => !seen.includes(actor));
  const others = othersAlive(question, best, tied, further, excluded);
  // Beside an account or a program that is gone, a permission alone makes nobody the controller.
  // Nor beside a program of a product that the catalogue knows anything but its names.
  const rivals = suspects.filter(
    (one) =>
      !(best && best.actor === undefined && !isMoreThanAble(one)) &&
      !(
        best?.program !== undefined &&
        known?.workload[0] &&
        !hasClue(one, 'catalogue', 'namesake')
      ) &&
      !isKnownForAnother(question, one),
  );
  const wasSeen = best !== undefined && wasSeenDeleted(question, best);
  const isNobodyLeft = others.length === 0 && (best !== undefined || isExpectedHere(question));
  if (unread.length === 0 && rivals.length === 0 && (wasSeen || isNobodyLeft)) {
    const certainty = wasSeen && isOnly && others.length === 0 ? 'proven' : 'likely';
    return { certainty, verdict: 'missing', owner: best, others, ...common };
  }
  return {
    ...{ certainty: 'unknown', verdict: 'unknown', others, ...common },
    owner: best ?? tied.find((one) => one.account !== undefined && !workloadExists(one)),
    suspects: [...suspects, ...(isBuiltIn(held.type.group) ? [] : further)],
  };
}

/**
 * Reports whether a name of its containers alone points to one that may not change the object, and nothing shows that it
 * could: a dashboard may run the image of the operator.
 */
function isNamedByImage({ context, held, program }: OwnerQuestion, suspect: Suspect): boolean {
  const { actor, rights, clues } = suspect;
  return (
    actor !== undefined &&
    workloadExists(suspect) &&
    clues.every(({ kind, weight }) => weight !== 'decides' || kind === 'writer') &&
    rights.change === undefined &&
    !rights.impersonates &&
    !hasWorkloadName(actor, program) &&
    !isSameName(actor.account.name, program) &&
    !hadRights(context, actor.account, held.type)
  );
}

/** Separates the suspects that something contradicts, and leaves out those that nothing ties to the finalizer. */
function separate(question: OwnerQuestion): { tied: Suspect[]; excluded: Excluded[] } {
  const { context, held, domain } = question;
  // Many programs may change a built-in type of namespaces: a permission on one ties nobody.
  const isCommon =
    held.type.namespaced && isBuiltIn(held.type.group) && domain.relation !== 'other';
  const tied: Suspect[] = [];
  const excluded: Excluded[] = [];
  for (const suspect of suspectsFor(question)) {
    const { actor } = suspect;
    const restriction = actor && restrictionOf(context, held, actor);
    const reason = restriction ?? contradiction(question, suspect);
    if (reason !== undefined) excluded.push({ suspect: { ...suspect, restriction }, reason });
    else if (!isCommon || isMoreThanAble(suspect)) tied.push(suspect);
  }
  // A workload that is called a webhook stands back behind another one with its account: the owner, or one called so.
  const isCalled = ({ actor }: Suspect, words: RegExp): boolean => words.test(actor?.name ?? '');
  const isWebhook = (one: Suspect): boolean => isCalled(one, /\bwebhook\b/);
  const isServed = ({ account }: Suspect): boolean =>
    tied.some(
      (one) =>
        !isWebhook(one) &&
        (isDecided(one) || isCalled(one, /\b(?:controller|manager|operator)\b/)) &&
        isSameAccount(one.account, account),
    );
  return { tied: tied.filter((one) => !isWebhook(one) || !isServed(one)), excluded };
}

/**
 * Returns why a workload is no candidate, whatever points to it. A lost right is a state of the owner, and no reason to
 * look elsewhere, where something shows that it had one: a copy for another namespace never had.
 */
function contradiction(question: OwnerQuestion, suspect: Suspect): string | undefined {
  const { context, held } = question;
  const { actor, rights } = suspect;
  if (actor === undefined) return undefined;
  const { apiVersion = '', kind } = actor.owner ?? {};
  if (groupOf(apiVersion) === held.type.group && kind === held.type.kind) {
    return 'it is an operand: the workload belongs to an object of the type';
  }
  const isDecisive = isDecided(suspect);
  const mayAct =
    rights.change !== undefined ||
    rights.impersonates ||
    !isRbacRead(context) ||
    hasClue(suspect, 'log', 'part', 'lease') ||
    (isDecisive && actor.isGone) ||
    ((isDecisive || hasClue(suspect, 'status')) && rights.reachesGroup) ||
    (hasClue(suspect, 'namesake') &&
      rights.reachesGroup &&
      !isBuiltIn(held.type.group) &&
      (identifiesProgram(question.writer) ||
        isNamedAfterType(held, actor.name.replaceAll('-', '')))) ||
    ((isDecisive || hasClue(suspect, 'namesake')) &&
      !rights.worksElsewhere &&
      hadRights(context, actor.account, held.type)) ||
    departedGrant(context, actor.account, held.type) !== undefined;
  return mayAct ? undefined : 'it may neither update nor patch the object';
}

/**
 * Returns the one whose arguments leave the object out, if it alone has a deciding clue; or if it alone has the marks,
 * and nobody else may act.
 */
function leftOut(
  { context, held }: OwnerQuestion,
  tied: readonly Suspect[],
  able: readonly Suspect[],
  excluded: readonly Excluded[],
): Suspect | undefined {
  const restricted = excluded.flatMap(({ suspect }) =>
    suspect.restriction && suspect.rights.change && workloadExists(suspect) ? [suspect] : [],
  );
  const left = able.filter(({ actor }) => excluded.every(({ suspect }) => suspect.actor !== actor));
  const decisive = [...tied, ...restricted].filter(isDecided);
  const marked = restricted.filter((one) => hasClue(one, 'marks'));
  const [only, ...more] = decisive.length > 0 ? decisive : [...tied, ...left, ...marked];
  const isAlone = more.length === 0 && writersOutsideCluster(context, held.type).length === 0;
  return only?.restriction !== undefined && isAlone ? only : undefined;
}

/** Returns the one to which the clues that decide point. Who lacks what the others have stands back. */
function decided(question: OwnerQuestion, tied: readonly Suspect[]): Suspect | undefined {
  const { held, program } = question;
  const decisionsOf = ({ clues }: Suspect): number =>
    clues.filter(({ weight }) => weight === 'decides').length;
  // A part of the product that runs does not do the work of the one that wrote the finalizer and is gone. Who has several
  // clues that decide and may not change the object has lost its right: that is its state.
  const mayAct = (one: Suspect): boolean =>
    one.program === undefined
      ? one.rights.change !== undefined || one.rights.impersonates || decisionsOf(one) > 1
      : isKnownWorkload(held, one.program);
  const preferences: ((one: Suspect) => boolean)[] = [
    (one) => one.rights.change === 'named' || !hasClue(one, 'log'),
    mayAct,
    (one) => decisionsOf(one) > 1,
    (one) => hasClue(one, 'log', 'writer'),
    (one) => hasClue(one, 'marks'),
    // Of several workloads of one installation, the name tells.
    ({ actor, account }) =>
      actor !== undefined &&
      hasWorkloadName(actor, program) &&
      left.every((one) => isSameAccount(one.account, account)),
  ];
  let left = tied.filter(isDecided);
  for (const isBetter of preferences) {
    const better = left.filter(isBetter);
    if (better.length > 0) left = better;
  }
  const [best, ...more] = left;
  if (best === undefined || more.length > 0) return undefined;
  // Two installations of one program are told apart by nothing but their arguments.
  const settings = ({ actor }: Suspect): string => (actor?.selectors ?? []).join();
  const isActive = ({ actor }: Suspect): boolean =>
    actor !== undefined && lateWrites(held).some(({ manager }) => hasProgramName(actor, manager));
  const isPart = isNamedByImage(question, best);
  const isRival = (one: Suspect): boolean =>
    (isPart && hasClue(one, 'marks')) ||
    (best.actor?.ready === 0 && isActive(one)) ||
    ((isDecided(one) || sharesOf(one).some((share) => sharesOf(best).includes(share))) &&
      settings(one) !== settings(best));
  const rivals = tied.filter((one) => isDecided(one) || hasClue(one, 'marks'));
  return rivals.some((one) => one !== best && isRival(one)) ? undefined : best;
}

/** An argument that gives a controller a class or a share of the objects; which objects these are is not known. */
const SHARE =
  /^(?:--?(?:[\w.-]+-)?(?:class(?:es|-name)?|shards?(?:-[\w-]+)?|instance-?id)|(?:\w+_)?(?:SHARD(?:_\w+)?|CONTROLLER_ID))=/;

/** Returns the names of such arguments: the object may be left to another installation. */
function sharesOf({ actor }: Suspect): string[] {
  return (actor?.selectors ?? []).flatMap((one) => SHARE.exec(one)?.[0] ?? []);
}

/**
 * Returns the only one with the marks, or, where nobody has them, the one with the most clues: two kinds, one of them a
 * permission. Who has lost its permission is known by what it has written.
 */
function leading(
  question: OwnerQuestion,
  suspects: readonly Suspect[],
  others: readonly Suspect[],
  excluded: readonly Excluded[],
): Suspect | undefined {
  const { context, held, actors, isForeign, writer } = question;
  const tied = suspects.filter((one) => !isKnownForAnother(question, one));
  // The only one that may change the type at all, by rights on everything, under the name of any controller.
  const isOnly = ({ actor }: Suspect): boolean =>
    isFrameworkName(writer) && others.every((one) => one.actor === actor);
  const marked = tied.filter((one) => hasClue(one, 'marks'));
  const permitted = tied.filter((one) => hasClue(one, 'permission'));
  const able =
    marked.length > 0
      ? marked
      : permitted.length > 0
        ? permitted.filter(isMoreThanAble)
        : tied.filter(
            (one) =>
              (isRbacRead(context) && !one.rights.change) ||
              (isOnly(one) && hasClue(one, 'namesake')),
          );
  const weightOf = ({ clues }: Suspect): number =>
    clues.filter(({ kind }) => kind !== 'permission').length;
  const most = Math.max(...able.map(weightOf));
  const [best, ...more] = able.filter((one) => weightOf(one) === most);
  if (best === undefined || more.length > 0) return undefined;
  // What is about the type alone names none of the controllers that share it.
  if (isForeign && !hasClue(best, 'namesake')) return undefined;
  // Another program of the cluster, or a well-known one, that writes the status works on the object.
  const isOfAnother = statusManagers(held).some((manager) => {
    const writers = workloadsOfProgram(actors, manager);
    return (
      writers.length + productsOf(manager).length > 0 &&
      !isControllerOfType(held, manager) &&
      !writers.some((one) => one === best.actor)
    );
  });
  const isContradicted = excluded.some(
    ({ suspect }) =>
      suspect.restriction === undefined &&
      (isDecided(suspect) || (hasClue(suspect, 'installation') && !hasClue(best, 'installation'))),
  );
  // One that may act and is down explains a hang better.
  const isOneDown =
    best.actor && best.actor.ready > 0 && others.some((one) => one.actor?.ready === 0);
  return isOfAnother || isContradicted || isOneDown ? undefined : best;
}

/**
 * Reports whether a permission alone makes it one that may act. Many may change built-in types, or everything: general
 * tools remove no finalizer of others.
 */
function isAble({ held, known, program }: OwnerQuestion, suspect: Suspect): boolean {
  const { actor, rights } = suspect;
  const { change } = rights;
  if (change === undefined || actor === undefined || actor.isGone) return false;
  if (change === 'named' && !isBuiltIn(held.type.group)) return true;
  // Somebody else is named.
  const isNamed = (known?.workload.length ?? 0) > 0 || program !== '';
  return !isGeneralTool(actor) && !(isNamed && change === 'named');
}

/**
 * Returns what shows that somebody may act, in sentences: who may change the objects, controllers that were ruled out and to
 * which clues point, and programs that no workload in the cluster shows. Who was deleted with the namespace had its
 * permissions there: those for everything then say nothing about this object.
 */
function othersAlive(
  question: OwnerQuestion,
  best: Suspect | undefined,
  tied: readonly Suspect[],
  able: readonly Suspect[],
  excluded: readonly Excluded[],
): string[] {
  const { context, held, known } = question;
  const wasHere = isInside(context, best?.account?.namespace);
  const named = able
    .filter(({ rights }) => !wasHere || rights.change !== 'everything')
    .map((one) => `${suspectText(one)}: RBAC lets it change the objects`);
  const unbound = unboundRoles(context, held.type).map(
    (name) => `ClusterRole ${name}, with the rights of a controller, is bound to nobody`,
  );
  // Many run a container with the name of the writer, and may do nothing outside of their own namespace.
  const isAlike = ({ actor }: Suspect): boolean =>
    FRAMEWORKS.test(question.writer) ||
    (actor !== undefined &&
      isNamedAfterType(held, `${actor.namespace}/${actor.name}`.replaceAll('-', '')));
  const isSigned = (one: Suspect): boolean =>
    isDecided(one) ||
    hasClue(one, 'marks', 'status', 'installation') ||
    (hasClue(one, 'namesake') &&
      (identifiesProgram(question.writer) || (one.rights.isBare && isAlike(one)))) ||
    (one.rights.change !== undefined && !isBuiltIn(held.type.group));
  const ruledOut = excluded.flatMap(({ suspect, reason }) =>
    workloadExists(suspect) && isSigned(suspect)
      ? [`${suspectText(suspect)} exists, but ${reason}`]
      : [],
  );
  return [
    ...named,
    ...(wasHere ? [] : [...unbound, ...ruledOut]),
    ...(known !== undefined && isProviderManaged(known)
      ? ['the provider of the cluster usually runs the controller of this finalizer']
      : []),
    ...outsidePrograms(question, tied).map((text) => `${RUNS_OUTSIDE_TEXT}: ${text}`),
  ];
}

/** Begins the sentences about those that no workload in the cluster shows. */
export const RUNS_OUTSIDE_TEXT = 'it may run outside of the cluster';

/**
 * Returns what shows programs that no workload shows: renewed Leases, users and groups with permissions on the type, late
 * writes, accounts with permissions in use elsewhere, a cloud provider.
 */
function outsidePrograms(question: OwnerQuestion, tied: readonly Suspect[]): string[] {
  const { context, held, domain, actors, candidates, writer, program } = question;
  const leases = [...leasesOfGroups(context, domain), ...leasesOfProgram(context, program)].filter(
    (lease) =>
      isRenewed(context, lease) &&
      holderOf(context, lease) === undefined &&
      !isLeftOver(context, lease),
  );
  const departed = tied.filter((one) => !one.actor && hasClue(one, 'marks'));
  // Any controller may write under a common word, such as `controller`, or under its API group, `example.com/widgets`,
  // which no workload can have as its name: it is outside only if none here may change it.
  const mayBeHere = candidates.some(({ actor, rights }) => actor && rights.change !== undefined);
  const isCommon = (manager: string): boolean =>
    isFrameworkName(manager) || manager.includes('/') || isControllerOfType(held, manager);
  const writers = lateWrites(held).filter(
    ({ manager }) =>
      !HARMLESS_WRITERS.test(manager) &&
      !(isFrameworkName(manager) && departed.length > 0) &&
      !(isCommon(manager) && mayBeHere) &&
      workloadsOfProgram(actors, manager).length === 0,
  );
  const homes = itemsIn(context.now.cluster.namespaces).map(({ name }) => name);
  // The deleted workload used the account with the writer's name, or with the marks, which operators made with kopf lack.
  const used = candidates.flatMap(({ actor, account, rights }) =>
    actor === undefined &&
    account !== undefined &&
    rights.change === 'named' &&
    !departed.some((one) => one.account === account) &&
    !isSameName(account.name, writer) &&
    !FRAMEWORKS.test(writer) &&
    homes.includes(account.namespace ?? '') &&
    !isEndingNamespace(context, account.namespace)
      ? [account]
      : [],
  );
  const reporters = eventsAbout(context, held).filter(
    ({ component, instance }) =>
      !isKubernetesComponent(component) &&
      !actors.some((actor) => matchesReporter(actor, component, instance)),
  );
  return [
    ...leases.map(({ namespace, name, holder }) => `${holder} renews Lease ${namespace}/${name}`),
    ...used.map((account) => `no workload uses ${accountText(account)}, which may change the type`),
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
  const providers = nodes.value.flatMap(
    ({ providerId }) => /^(?!kind:|k3s:)\w+/.exec(providerId)?.[0] ?? [],
  );
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
