import {
  type CatalogueEntry,
  domainOf,
  entriesOfWorkload,
  isExactWorkloadName,
  isWorkloadOf,
} from '../../model/catalogue.ts';
import type { ResourceType, Wanted } from '../../model/snapshot.ts';
import { type Actor, accountText, actorsOf, actorText, isStatic } from '../actors.ts';
import { type Context, groupOf, isBuiltIn, itemsIn, shortQuote, typeName } from '../context.ts';
import {
  type Account,
  ableAccounts,
  departedGrant,
  hadRights,
  hasNoRight,
  isRbacRead,
  isSameAccount,
  NO_RIGHTS,
  type Rights,
  rightsOf,
  rolesLost,
  unboundRoles,
} from '../rights.ts';
import {
  type FinalizerDomain,
  finalizerDomain,
  type Held,
  identifiesController,
  isControllerOfType,
  isKnownWorkload,
  isNamedAfterType,
  isOfNoDomain,
  isSetByHand,
  knownFinalizer,
  lateWrites,
  specificFieldManager,
  statusManagers,
  typesOfDomain,
  writerOf,
} from './held.ts';
import { holderOf, isRenewed, leasesOfGroups, leasesOfProgram } from './leases.ts';
import { logLinesNaming } from './logs.ts';
import {
  FRAMEWORKS,
  hasProgramName,
  hasWorkloadName,
  identifiesProgram,
  isExactProduct,
  isFrameworkName,
  isGeneralTool,
  isSameName,
  workloadsOfProgram,
} from './names.ts';
import { restrictionOf } from './restrictions.ts';

// Who may own a finalizer: the candidates, and the clues that point to them.

/** A controller that may own the finalizer: a workload, an account that no workload uses, or a program that nothing here is named after. */
export interface Suspect {
  actor: Actor | undefined;
  account: Account | undefined;
  program?: string;
  rights: Rights;
  clues: Clue[];
  /** Why it is not the owner, in the sentence that the report shows. */
  against?: string | undefined;
  /** The same, if its arguments leave the object out. */
  restriction?: string | undefined;
}

/** Everything that clues read about one held finalizer, computed once. */
export interface OwnerQuestion {
  context: Context;
  held: Held;
  known: CatalogueEntry | undefined;
  /** The field manager of the finalizer. */
  writer: string;
  /** The same, if it is the name of one program. */
  program: string;
  domain: FinalizerDomain;
  /** Somebody else's domain: several controllers put finalizers of their own on a shared type. */
  isForeign: boolean;
  actors: readonly Actor[];
  candidates: readonly Suspect[];
}

/** One kind of evidence about who owns a finalizer. */
interface ClueRow {
  kind: string;
  /**
   * `decides`: only one program can leave it. `marks`: leads by itself. `supports`: two, one of them a permission, lead
   * where nobody has the marks.
   */
  weight: 'decides' | 'marks' | 'supports';
  /** The sentence that the report shows about the suspect. */
  text: string;
  /** Returns what finds the clue for a candidate: a detail for the sentence, or undefined. */
  finds: (question: OwnerQuestion) => (candidate: Suspect) => string | undefined;
}

/** A clue that was found. */
type Clue = Omit<ClueRow, 'finds'>;

/** Every clue, in the order in which suspects are listed. */
export const CLUES = [
  {
    kind: 'log',
    weight: 'decides',
    text: 'its log names the object',
    finds: namedInLog,
  },
  {
    kind: 'writer',
    weight: 'decides',
    text: 'it has the name of the writer of this finalizer (managedFields)',
    finds: isWriter,
  },
  {
    kind: 'catalogue',
    weight: 'decides',
    text: 'the finalizer is well known, and this is its workload',
    finds: isKnown,
  },
  {
    kind: 'marks',
    weight: 'marks',
    text: 'RBAC rules that name the type and its status or finalizers let it change both, as its controller does',
    finds: isMarked,
  },
  {
    kind: 'status',
    weight: 'supports',
    text: 'it writes the status of the object (managedFields)',
    finds: writesStatus,
  },
  {
    kind: 'installation',
    weight: 'supports',
    text: 'it has the OLM package, the Helm release or the app.kubernetes.io labels of the CRD',
    finds: isInstalledWithType,
  },
  {
    kind: 'lease',
    weight: 'supports',
    text: 'it leads by a Lease named after the API group',
    finds: leads,
  },
  {
    kind: 'namesake',
    weight: 'supports',
    text: 'a part of it has a name like that of the writer of the finalizer, or of its product',
    finds: isNamesake,
  },
  {
    kind: 'part',
    weight: 'supports',
    text: 'it has lost its rights: only a part of those of a controller is left, or a role of its name with them is bound to nobody',
    finds: hasLostRole,
  },
  {
    kind: 'permission',
    weight: 'supports',
    text: 'an RBAC rule that names the type lets it change the objects',
    finds: isPermitted,
  },
] as const satisfies readonly ClueRow[];

type ClueKind = (typeof CLUES)[number]['kind'];

export function questionAbout(context: Context, held: Held): OwnerQuestion {
  const names =
    held.objects.length === 0 ? [held.subject.name] : held.objects.map(({ name }) => name);
  const subresource = held.isInSpec === true ? 'finalize' : undefined;
  const ofAccounts = new Map<string, Rights>();
  const rights = (account: Account): Rights => {
    const key = accountText(account);
    const found = ofAccounts.get(key) ?? rightsOf(context, account, held.type, names, subresource);
    ofAccounts.set(key, found);
    return found;
  };
  const actors = actorsOf(context);
  const used = new Set(actors.map(({ account }) => accountText(account)));
  const idle = ableAccounts(context, held.type).accounts.filter(
    (account) => !used.has(accountText(account)),
  );
  const domain = finalizerDomain(context, held);
  return {
    ...{ context, held, domain, actors },
    known: knownFinalizer(held),
    writer: writerOf(held)?.manager ?? '',
    program: specificFieldManager(held),
    isForeign: domain.relation === 'unclear' && !isOfNoDomain(held),
    candidates: [
      ...actors.map((actor) => ({
        ...{ actor, account: actor.account, clues: [] },
        // A static pod acts by credentials of its own, which RBAC does not show.
        rights: isStatic(actor) ? { ...NO_RIGHTS, impersonates: true } : rights(actor.account),
      })),
      ...idle.map((account) => ({ actor: undefined, account, clues: [], rights: rights(account) })),
    ],
  };
}

/** Returns all candidates that something ties to the finalizer, with their clues and what contradicts them, best first. */
export function suspectsFor(question: OwnerQuestion): Suspect[] {
  const { context, held, domain, candidates } = question;
  const rows = CLUES.map(({ finds, ...clue }) => ({ clue, find: finds(question) }));
  const found = candidates.flatMap((candidate) => {
    const clues = rows.flatMap(({ clue, find }): Clue[] => {
      const detail = find(candidate);
      if (detail === undefined) return [];
      return [{ ...clue, text: detail === '' ? clue.text : `${clue.text}: ${detail}` }];
    });
    const suspect = { ...candidate, clues };
    const restriction = candidate.actor && restrictionOf(context, held, candidate.actor);
    const against = restriction ?? contradiction(question, suspect);
    return clues.length === 0 ? [] : [{ ...suspect, against, restriction }];
  });
  // Many programs may change a built-in type of namespaces: a permission on one ties nobody.
  const isCommon =
    held.type.namespaced && isBuiltIn(held.type.group) && domain.relation !== 'other';
  const tied = found.filter((one) => one.against || !isCommon || isMoreThanAble(one));
  const all = [...tied, ...absentProgram(question, found)];
  return all.filter((one) => !standsBack(one, all)).toSorted(compareSuspects);
}

/** A webhook stands back behind a workload with its account that is called a controller. */
function standsBack({ against, actor, account }: Suspect, all: readonly Suspect[]): boolean {
  return (
    against === undefined &&
    WEBHOOK.test(actor?.name ?? '') &&
    all.some(
      (one) =>
        one.against === undefined &&
        !WEBHOOK.test(one.actor?.name ?? '') &&
        (isDecided(one) || CONTROLLER.test(one.actor?.name ?? '')) &&
        isSameAccount(one.account, account),
    )
  );
}

const WEBHOOK = /\bwebhook\b/;
export const CONTROLLER = /\b(?:controller|manager|operator)\b/;

/** Why a suspect is none that has no right to change the object. */
export const MAY_NOT_CHANGE = 'it may neither update nor patch the object';

/**
 * Returns why a workload is no candidate, whatever points to it. A lost right is a state of the owner, and no reason to
 * look elsewhere, where something shows that it had one: a copy for another namespace never had.
 */
function contradiction(question: OwnerQuestion, suspect: Suspect): string | undefined {
  const { context, held, writer } = question;
  const { type } = held;
  const { actor, rights } = suspect;
  if (actor === undefined) return undefined;
  const { apiVersion = '', kind } = actor.owner ?? {};
  if (groupOf(apiVersion) === type.group && kind === type.kind) {
    return 'it is an operand: the workload belongs to an object of the type';
  }
  const isDecisive = isDecided(suspect);
  const isNamesake = hasClue(suspect, 'namesake');
  const isOfFramework = FRAMEWORKS.test(writer);
  const isNamedAfter = (name: string): boolean => isNamedAfterType(held, name.replaceAll('-', ''));
  // A sibling of one framework changes another type of the group.
  const isAlike =
    identifiesProgram(writer) ||
    (isOfFramework && !rights.changesSibling) ||
    isNamedAfter(actor.name);
  // One without any right may work elsewhere, by a kubeconfig: then no role here waits for an account.
  const isBereft =
    isNamedAfter(`${actor.namespace}/${actor.name}`) ||
    (isOfFramework && unboundRoles(context, type, [type.resource]).length > 0);
  const mayAct =
    rights.change !== undefined ||
    rights.impersonates ||
    !isRbacRead(context) ||
    hasClue(suspect, 'log', 'part', 'lease') ||
    (rights.reachesGroup &&
      (isDecisive ||
        hasClue(suspect, 'status') ||
        (isNamesake && !isBuiltIn(type.group) && isAlike))) ||
    ((isDecisive || isNamesake) &&
      !rights.worksElsewhere &&
      hadRights(context, actor.account, type)) ||
    ((isDecisive || (isNamesake && isBereft)) &&
      !WEBHOOK.test(actor.name) &&
      hasNoRight(context, actor.account)) ||
    departedGrant(context, actor.account, type) !== undefined;
  return mayAct ? undefined : MAY_NOT_CHANGE;
}

/** Returns the program that wrote the finalizer, if nothing in the cluster is named after it. */
function absentProgram(question: OwnerQuestion, found: readonly Suspect[]): Suspect[] {
  const { held, actors, program } = question;
  const isHere =
    found.some((one) => hasClue(one, 'writer')) ||
    actors.some((actor) => isNamed(held, actor, program));
  const isPart =
    !isKnownWorkload(held, program) && found.some((one) => hasClue(one, 'namesake', 'catalogue'));
  const isInside = isControllerOfType(held, program) && !isKnownWorkload(held, program);
  if (program === '' || isHere || isPart || isInside) return [];
  const [, { finds, ...writer }] = CLUES;
  const clue = { ...writer, text: `${writer.text}: field manager "${program}"` };
  return [{ actor: undefined, account: undefined, program, rights: NO_RIGHTS, clues: [clue] }];
}

/** Orders suspects by the first clue, in the order of the table, that one has and the other has not. */
function compareSuspects(a: Suspect, b: Suspect): number {
  const row = CLUES.find(({ kind }) => hasClue(a, kind) !== hasClue(b, kind));
  return row === undefined ? 0 : hasClue(a, row.kind) ? -1 : 1;
}

export function hasClue({ clues }: Suspect, ...kinds: ClueKind[]): boolean {
  return clues.some(({ kind }) => kinds.some((one) => one === kind));
}

/** Reports whether a clue decides: only one program can leave it. */
export function isDecided({ clues }: Suspect): boolean {
  return clues.some(({ weight }) => weight === 'decides');
}

/** Reports whether something beside a permission ties it to the finalizer. */
export function isMoreThanAble({ clues }: Suspect): boolean {
  return clues.some(({ kind }) => kind !== 'permission');
}

/** Reports whether a workload exists, whether or not it has replicas. */
export function workloadExists(suspect: Suspect | undefined): boolean {
  return suspect?.actor !== undefined && !suspect.actor.isGone;
}

/** Returns "Deployment ops/widget-operator", or the account that no workload uses. */
export function suspectText({ actor, account, program }: Suspect): string {
  if (actor !== undefined) return actorText(actor);
  return account === undefined ? `a program that calls itself "${program}"` : accountText(account);
}

/** General tools apply and restore what belongs to others. They are meant only where RBAC names the type for them. */
function isOtherTool({ actor, rights }: Suspect): boolean {
  return actor !== undefined && isGeneralTool(actor) && rights.change !== 'named';
}

function namedInLog({ context, held }: OwnerQuestion) {
  return (candidate: Suspect) => {
    if (candidate.actor === undefined || isOtherTool(candidate)) return undefined;
    const [line] = logLinesNaming(context, held, candidate.actor);
    return line && `log of ${line.pod}: ${shortQuote(line.text)}`;
  };
}

/** Where the catalogue knows the workload of this name, another one with its image is not meant. Static pods add their node. */
function isNamed(held: Held, actor: Actor, program: string): boolean {
  return isKnownWorkload(held, program)
    ? hasWorkloadName(actor, program) ||
        (isStatic(actor) && actor.name.startsWith(`${program}-`)) ||
        (isKnownWorkload(held, actor.name) && hasProgramName(actor, program))
    : hasProgramName(actor, program);
}

function isWriter({ held, program }: OwnerQuestion) {
  return ({ actor, account }: Suspect) => {
    const isIt = actor ? isNamed(held, actor, program) : isSameName(account?.name ?? '', program);
    return program !== '' && isIt ? `field manager "${program}"` : undefined;
  };
}

function isKnown({ known, actors }: OwnerQuestion) {
  const exact = known === undefined ? [] : actors.filter((actor) => isExactProduct(known, actor));
  return ({ actor, account }: Suspect) => {
    const isIt = actor
      ? exact.includes(actor)
      : exact.length === 0 && known && isExactWorkloadName(known, account?.name ?? '');
    return isIt ? known?.owner : undefined;
  };
}

/**
 * Returns the types of which the marks name the owner: the object's own, where the finalizer's domain is that of its group,
 * none, or a framework's; those of another group whose domain it is. The domain of a company is above the groups of
 * several products.
 */
function typesToMark({ context, held, domain, isForeign }: OwnerQuestion): ResourceType[] {
  const isAbove = (group: string): boolean =>
    group !== held.type.group && group.endsWith(`.${domainOf(held.finalizer)}`);
  const types = isForeign ? [] : typesOfDomain(context, held, domain);
  return types.filter(({ group }) => !isBuiltIn(group) && !isAbove(group));
}

/** A ServiceAccount that no workload uses stands for a controller that is gone. */
function isMarked(question: OwnerQuestion) {
  const { context, held } = question;
  const types = typesToMark(question);
  return ({ actor, account, rights }: Suspect) => {
    const isMeant = types.length > 0 && rights.change !== undefined && account !== undefined;
    if (!isMeant || (actor === undefined && isActive(question, account))) return undefined;
    const all = types.map((type) =>
      type === held.type ? rights : rightsOf(context, account, type, []),
    );
    // A group of which it has some types only is shared by several products.
    return all.every((one) => one.isMarked || (one.isOfGroup && actor === undefined))
      ? [...new Set(all.flatMap(({ because }) => because))].slice(0, 3).join('; ')
      : undefined;
  };
}

/** Reports whether something was written or renewed under the account's name of late, or under one that any program may have. */
function isActive({ context, held }: OwnerQuestion, { name }: Account): boolean {
  return (
    leasesOfProgram(context, name).some((lease) => isRenewed(context, lease)) ||
    lateWrites(held).some(({ manager }) => isSameName(manager, name) || isFrameworkName(manager))
  );
}

/**
 * Reports whether the catalogue names other workloads for this finalizer, and this one for another: Crossplane may change
 * the managed resources of its providers, which remove the finalizer.
 */
export function isKnownForAnother({ known }: OwnerQuestion, { actor }: Suspect): boolean {
  return (
    actor !== undefined &&
    known !== undefined &&
    known.workload.length > 0 &&
    !isWorkloadOf(known, actor.name) &&
    entriesOfWorkload(actor.name, isFrameworkName).length > 0
  );
}

/** Many write the status of built-in types. */
function hasLostRole(question: OwnerQuestion) {
  const { context, held } = question;
  const isMeant = !isSetByHand(held) && typesToMark(question).includes(held.type);
  return ({ actor, rights }: Suspect) => {
    if (!isMeant || actor === undefined || rights.change !== undefined) return undefined;
    const role = rolesLost(context, actor.account, held.type).find((name) => isRoleOf(name, actor));
    return role === undefined ? (rights.isHalfMarked ? '' : undefined) : `ClusterRole ${role}`;
  };
}

/** Returns the RoleBindings that show whether such workloads have lost a role, or work on their own namespace. */
export function placesOfRoles(context: Context, held: Held): Wanted['places'] {
  const roles = unboundRoles(context, held.type);
  const question = questionAbout(context, held);
  const alike = [isWriter, isKnown, isNamesake].map((finds) => finds(question));
  return question.candidates.flatMap((candidate) => {
    const { actor, rights } = candidate;
    const isMeant =
      ((rights.isBare || roles.length > 0) &&
        alike.some((find) => find(candidate) !== undefined)) ||
      roles.some((name) => actor && isRoleOf(name, actor));
    return actor && isMeant
      ? [{ namespace: actor.namespace, sources: ['roles', 'roleBindings'] }]
      : [];
  });
}

/** Recognizes the role `widget-operator-manager-role` of `widget-operator-controller-manager`. */
function isRoleOf(role: string, { namespace, name, account }: Actor): boolean {
  const stem = role.replace(/(?:-manager)?(?:-cluster)?-?role$/i, '');
  return [name, `${namespace}-${name}`, account.name].some(
    (own) => stem.includes('-') && `${own}-`.startsWith(`${stem}-`),
  );
}

/** A program writes under one name: who writes the status under another than the finalizer's writer did not write that. */
function writesStatus({ held, isForeign, domain, actors, writer }: OwnerQuestion) {
  const isMeant = !isForeign && domain.relation !== 'other';
  const found = statusManagers(held)
    .filter((one) => isMeant && (!writer || writer.includes('/') || isSameName(one, writer)))
    .map((manager) => ({ manager, workloads: new Set(workloadsOfProgram(actors, manager)) }));
  return ({ actor }: Suspect) => {
    const by = found.find(({ workloads }) => actor && workloads.has(actor));
    return by && `field manager "${by.manager}"`;
  };
}

const NAME_LABEL = 'app.kubernetes.io/name';

/** Several programs may be parts of one project, and Argo CD writes `instance` on all that an Application deploys. */
function isInstalledWithType({ context, held, domain }: OwnerQuestion) {
  const types = typesOfDomain(context, held, domain).map(typeName);
  const { clusterServiceVersions, definitions } = context.now.cluster;
  const packages = itemsIn(clusterServiceVersions).filter(({ owned }) =>
    owned.some((name) => types.includes(name)),
  );
  const own = itemsIn(definitions).filter(
    ({ name }) => domain.relation === 'own' && types.includes(name),
  );
  const labels = own.flatMap((one) => [
    one.labels[NAME_LABEL],
    one.labels['app.kubernetes.io/part-of'],
  ]);
  const releases = own.flatMap((one) => releaseOf(one) ?? []);
  return ({ actor }: Suspect) => {
    if (actor === undefined) return undefined;
    const by = packages.find(({ deployments }) => deployments.includes(actor.name));
    if (by !== undefined) return `ClusterServiceVersion ${by.namespace}/${by.name}`;
    const isAlike =
      labels.includes(actor.labels[NAME_LABEL] ?? 'none') ||
      releases.includes(releaseOf(actor) ?? '');
    return isAlike ? '' : undefined;
  };
}

/** Returns what Helm writes on everything that it installs. */
function releaseOf({ annotations }: Pick<Actor, 'annotations'>): string | undefined {
  const [namespace, name] = ['release-namespace', 'release-name'].map(
    (key) => annotations[`meta.helm.sh/${key}`],
  );
  return name && `${namespace}/${name}`;
}

/** A Lease behind a hash ends with the domain of a company, whose operators may use each other's types. */
function leads({ context, domain }: OwnerQuestion) {
  const leases = leasesOfGroups(context, domain)
    .filter(({ name }) => domain.groups.some((group) => name.includes(group)))
    .map((lease) => ({ lease, leader: holderOf(context, lease) }));
  return ({ actor }: Suspect) => {
    const found = leases.find(({ leader }) => leader !== undefined && leader === actor);
    return found && `${found.lease.namespace}/${found.lease.name}, by ${found.lease.holder}`;
  };
}

/**
 * Finds workloads of such a name, and those with a container or command of a name that many programs have: a framework
 * (`kopf run handlers.py`), or `manager` if it writes the status and its permissions are for nothing else.
 */
function isNamesake({ held, actors, known, writer }: OwnerQuestion) {
  const alike = new Set(
    identifiesController(held, writer) ? workloadsOfProgram(actors, writer) : [],
  );
  const isTelling =
    FRAMEWORKS.test(writer) ||
    held.objects.some(({ statusWriters }) =>
      statusWriters.some(({ manager }) => manager === writer),
    );
  return ({ actor, rights }: Suspect) => {
    if (actor === undefined) return undefined;
    const runsIt =
      isFrameworkName(writer) &&
      actor.programs.includes(writer) &&
      (FRAMEWORKS.test(writer) || (isTelling && !rights.worksElsewhere));
    if (runsIt || alike.has(actor)) return `field manager "${writer}"`;
    return known && isWorkloadOf(known, actor.name) ? known.owner : undefined;
  };
}

/** Finds workloads that may change the objects by a rule that names the type, and those that could and are gone. */
function isPermitted({ context, held }: OwnerQuestion) {
  return ({ actor, rights: { change, because } }: Suspect) => {
    if (actor === undefined) return undefined;
    const by = actor.isGone ? departedGrant(context, actor.account, held.type, true) : undefined;
    if (by !== undefined) return `RoleBinding ${by}, deleted with it`;
    return change === 'named' ? because.slice(0, 3).join('; ') : undefined;
  };
}
