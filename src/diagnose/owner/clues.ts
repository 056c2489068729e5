import { listNames } from '../../base/text.ts';
import type { CatalogueEntry } from '../../model/catalogue.ts';
import { groupOf, isBuiltIn, typeName } from '../../model/facts/metadata.ts';
import { itemsIn } from '../../model/read.ts';
import type { ResourceType, Wanted } from '../../model/snapshot.ts';
import { type Actor, accountText, actorsOf, actorText, isStatic } from '../actors.ts';
import { typesOf } from '../content.ts';
import { type Context, remember } from '../context.ts';
import { classifyErrorText } from '../error-texts.ts';
import {
  type Account,
  ableAccounts,
  departedGrant,
  hasNoRight,
  isRbacRead,
  NOBODY,
  type Rights,
  rightsOf,
  roleGone,
  unboundRoles,
} from '../rights.ts';
import {
  type FinalizerDomain,
  finalizerDomain,
  type Held,
  identifiesController,
  isControllerOfType,
  isNamedAfterType,
  isSetByHand,
  knownFinalizer,
  lateWrites,
  specificFieldManager,
  statusManagers,
  writerOf,
} from './held.ts';
import { isRenewed, leasesOfProgram, runsAs } from './leases.ts';
import { logLinesNaming } from './logs.ts';
import {
  containsName,
  domainOf,
  FRAMEWORKS,
  hasProgramName,
  identifiesProgram,
  isDefaultWorkload,
  isExactWorkloadName,
  isFrameworkName,
  isGeneralTool,
  isNameOfProduct,
  isOfOneCompany,
  isSameName,
  isWorkloadOf,
  withoutRelease,
  workloadsOfProgram,
} from './names.ts';
import { mayLeaveOut, restrictionOf } from './settings.ts';
import { statusTexts } from './statements.ts';

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
  /** What shows that it has lost a right; `isOnType`: to change the type; `role`: the ClusterRole that is bound to nobody. */
  lost?: { text: string; isOnType: boolean; role?: string } | undefined;
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
  actors: readonly Actor[];
  candidates: readonly Suspect[];
}

/** One kind of evidence about who owns a finalizer. */
interface ClueRow {
  kind: string;
  /**
   * `decides`: only one program can leave it. `marks`: leads by itself. `supports`: the most of them lead where nobody has
   * the marks. `able`: ties it to the type, and leads nowhere.
   */
  weight: 'decides' | 'marks' | 'supports' | 'able';
  /** The sentence that the report shows about the suspect. */
  text: string;
  /** Returns what finds the clue for a candidate: a detail for the sentence, or undefined. */
  finds: (question: OwnerQuestion, candidate: Suspect) => string | undefined;
}

/** A clue that was found. */
type Clue = Omit<ClueRow, 'finds'>;

/** Every clue, in the order in which suspects are listed. */
export const CLUES = [
  { kind: 'log', weight: 'decides', text: 'its log names the object', finds: namedInLog },
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
    kind: 'installation',
    weight: 'supports',
    text: 'it has the Helm release or the app.kubernetes.io labels of the CRD',
    finds: isInstalledWithType,
  },
  {
    kind: 'namesake',
    weight: 'supports',
    text: 'one of its names fits the writer or the product',
    finds: isNamesake,
  },
  { kind: 'part', weight: 'supports', text: 'it has lost its rights', finds: hasLostRight },
  {
    kind: 'permission',
    weight: 'able',
    text: 'an RBAC rule that names the type lets it change the objects',
    finds: isPermitted,
  },
  {
    kind: 'told',
    weight: 'able',
    text: 'its settings name this namespace, and no role that is left gives it a right here',
    finds: isTold,
  },
] as const satisfies readonly ClueRow[];

type ClueKind = (typeof CLUES)[number]['kind'];

export function questionAbout(context: Context, held: Held): OwnerQuestion {
  const names = (held.objects.length > 0 ? held.objects : [held.subject]).map(({ name }) => name);
  const subresource = held.isInSpec === true ? 'finalize' : undefined;
  const rights = (account: Account): Rights =>
    rightsOf(context, account, held.type, names, subresource);
  const actors = actorsOf(context);
  const domain = finalizerDomain(context, held);
  const lost = lostRight(context, held, domain);
  const workloads = actors.map((actor) => {
    // A static pod acts by credentials of its own, which RBAC does not show.
    const own = isStatic(actor) ? { ...rights(NOBODY), impersonates: true } : rights(actor.account);
    return {
      ...{ actor, account: actor.account, clues: [] },
      ...{ rights: own, lost: lost(actor, own) },
    };
  });
  const used = new Set(actors.map(({ account }) => accountText(account)));
  // An account with the name and the right of a controller that handles all objects is left of an earlier installation of it.
  const isLeft = ({ name }: Account, { change }: Rights): boolean =>
    name !== 'default' &&
    workloads.some(
      ({ actor, account, rights: own }) =>
        account.name === name && own.change === change && !mayLeaveOut(actor),
    );
  const idle = ableAccounts(context, held.type).accounts.flatMap((account) => {
    const own = rights(account);
    const isOut = used.has(accountText(account)) || isLeft(account, own);
    return isOut ? [] : [{ actor: undefined, account, clues: [], rights: own }];
  });
  return {
    ...{ context, held, domain, actors },
    known: knownFinalizer(held),
    writer: writerOf(held)?.manager ?? '',
    program: specificFieldManager(held),
    candidates: [...workloads, ...idle],
  };
}

/** Returns all candidates that something ties to the finalizer, with their clues and what contradicts them, best first. */
export function suspectsFor(question: OwnerQuestion): Suspect[] {
  const found = question.candidates.flatMap((candidate): Suspect[] => {
    const isOther = isOfAnother(question, candidate);
    const clues = CLUES.flatMap(({ finds, ...clue }): Clue[] => {
      if (isOther && ['writer', 'namesake'].includes(clue.kind)) return [];
      const detail = finds(question, candidate);
      if (detail === undefined) return [];
      return [{ ...clue, text: detail === '' ? clue.text : `${clue.text}: ${detail}` }];
    });
    return clues.length === 0 ? [] : [contradicted(question, { ...candidate, clues })];
  });
  return [...found, ...absentProgram(question, found)].toSorted(compareSuspects);
}

/** Reports whether it works for another product: many programs have a name alike, as `postgres-operator`. */
function isOfAnother({ context, domain, held }: OwnerQuestion, suspect: Suspect): boolean {
  const { account, lost, rights } = suspect;
  const isAtWork = rights.worksElsewhere && !rights.reachesGroup && !lost;
  return isAtWork && !(account && roleGone(context, account)) && domain.types.includes(held.type);
}

/** Why a suspect is none that has no right to change the object. */
export const MAY_NOT_CHANGE = 'it may neither update nor patch the object';

/** Adds why a workload is not the owner, whatever points to it. */
function contradicted(question: OwnerQuestion, suspect: Suspect): Suspect {
  const { context, held } = question;
  const { actor } = suspect;
  if (actor === undefined) return suspect;
  const { apiVersion = '', kind } = actor.owner ?? {};
  const isOperand = groupOf(apiVersion) === held.type.group && kind === held.type.kind;
  const restriction = restrictionOf(context, held, actor);
  const against = isOperand
    ? 'it is an operand: the workload belongs to an object of the type'
    : (restriction ?? (mayAct(question, suspect, actor) ? undefined : MAY_NOT_CHANGE));
  return { ...suspect, against, restriction };
}

/** Reports whether it may change the object, or something shows that it could: a lost right is a state of the owner. */
function mayAct({ context, held: { type } }: OwnerQuestion, suspect: Suspect, { account }: Actor) {
  const { lost, rights } = suspect;
  if (mayChange(suspect) || lost !== undefined || !isRbacRead(context)) return true;
  if (departedGrant(context, account, type) !== undefined || hasClue(suspect, 'told')) return true;
  return isDecided(suspect)
    ? rights.reachesGroup || hasNoRight(context, account, type)
    : hasClue(suspect, 'namesake') && (rights.reachesGroup || hasNoRight(context, account));
}

function mayChange({ rights }: Pick<Suspect, 'rights'>): boolean {
  return rights.change !== undefined || rights.impersonates;
}

/** Returns the program that wrote the finalizer, if nothing in the cluster is named after it. */
function absentProgram(question: OwnerQuestion, found: readonly Suspect[]): Suspect[] {
  const { context, held, actors, program } = question;
  if (program === '') return [];
  const isHere =
    isControllerOfType(held, program) ||
    actors.some((actor) => hasProgramName(actor, program)) ||
    found.some((one) => hasClue(one, 'writer', 'namesake', 'catalogue'));
  if (isHere) return [];
  const { finds, ...writer } = CLUES.find(({ kind }) => kind === 'writer') as ClueRow;
  const clue = { ...writer, text: `${writer.text}: field manager "${program}"` };
  const rights = rightsOf(context, NOBODY, held.type, []);
  return [{ actor: undefined, account: undefined, program, rights, clues: [clue] }];
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
  return clues.some(({ weight }) => weight !== 'able');
}

/** Reports whether a workload exists, whether or not it has replicas. */
export function workloadExists(suspect: Suspect | undefined): boolean {
  return suspect?.actor !== undefined && !suspect.actor.isGone;
}

/** Returns "Deployment ops/widget-operator", or the account that no workload uses. */
export function suspectText({ actor, account, program }: Suspect): string {
  if (actor !== undefined) return actorText(actor);
  return account === undefined ? `"${program}"` : accountText(account);
}

/** What a clue says with it. */
const IMPLIED: Record<string, ClueKind> = { marks: 'permission', decides: 'namesake' };

export function evidenceFor(suspect: Suspect): string[] {
  const { actor, clues, rights } = suspect;
  const because = rights.because.slice(0, 3).join('; ');
  const isShown = clues.some(({ text }) => text.includes(because));
  return [
    ...clues
      .filter(({ kind }) => !clues.some((one) => IMPLIED[one.weight] === kind))
      .map(({ text }) => text),
    ...(isShown ? [] : [`RBAC: ${because}`]),
    ...(actor && !actor.isGone
      ? [`${actorText(actor)}: ${actor.ready} of ${actor.wanted} ready`]
      : []),
    ...(actor?.selectors[0] ? [`it was started with ${actor.selectors.join(' ')}`] : []),
  ];
}

const MAX_EXCLUDED = 5;

export function exclusionEvidence(excluded: readonly Suspect[]): string[] {
  const told = excluded.slice(0, MAX_EXCLUDED);
  return told.map(
    (one) => `ruled out ${suspectText(one)}: ${one.against}, although ${one.clues[0]?.text}`,
  );
}

export function unreadEvidence(labels: readonly string[]): string[] {
  return labels.length === 0 ? [] : [`${listNames(labels, 3)} could not be read`];
}

/** The log of who may change everything names what others do. The evidence has the lines. */
function namedInLog({ context, held }: OwnerQuestion, { actor, rights }: Suspect) {
  if (actor === undefined || rights.change === 'everything') return undefined;
  return logLinesNaming(context, held, actor).length > 0 ? '' : undefined;
}

/** A webhook of an operator, and not an operator for webhooks (`webhook-operator`). */
const WEBHOOK = /\bwebhook\b(?!-(?:controller|manager|operator)\b)/;
const CONTROLLER = /(?:controller|manager|operator)\b/;

/**
 * Reports whether the workload has such a name, or, with a right to the type, such a program, if nobody beside it is called
 * so: a dashboard may run the image of the operator, and External Secrets' cert-controller runs that of `external-secrets`.
 */
function isNamed({ candidates }: OwnerQuestion, one: Suspect, isIt: (name: string) => boolean) {
  const mayBe = (other: Suspect): boolean =>
    other.actor?.isGone === true || mayChange(other) || other.lost !== undefined;
  const isCalled = ({ actor }: Suspect, names = [actor?.name ?? '']): boolean =>
    actor !== undefined &&
    withoutRelease(actor, names).some((name) => identifiesProgram(name) && isIt(name));
  const isBeside = (other: Suspect): boolean =>
    other.actor?.namespace === one.actor?.namespace && mayBe(other) && isCalled(other);
  const { name = '', programs = [] } = one.actor ?? {};
  const isPart = !mayBe(one) || WEBHOOK.test(name) || candidates.some(isBeside);
  return isCalled(one, isPart ? [name] : programs);
}

function isWriter(question: OwnerQuestion, candidate: Suspect) {
  const { program } = question;
  const { actor, account } = candidate;
  const isIt = (name = ''): boolean => isSameName(name, program);
  return (actor ? isNamed(question, candidate, isIt) : isIt(account?.name))
    ? `field manager "${program}"`
    : undefined;
}

function isKnown(question: OwnerQuestion, candidate: Suspect) {
  const { known, candidates } = question;
  if (known === undefined || known.anyController) return undefined;
  const isProduct = (one: Suspect): boolean =>
    one.actor !== undefined &&
    (isDefaultWorkload(known, one.actor) ||
      isNamed(question, one, (name) => isExactWorkloadName(known, name)));
  const isIt =
    candidate.actor === undefined
      ? isExactWorkloadName(known, candidate.account?.name ?? '') && !candidates.some(isProduct)
      : isProduct(candidate);
  return isIt ? known.owner : undefined;
}

/** A ServiceAccount that no workload uses stands for a controller that is gone. */
function isMarked(question: OwnerQuestion, suspect: Suspect) {
  const { actor, account, rights } = suspect;
  const { context, domain, held } = question;
  const isOfTypes = domain.types.length > 0 && domain.relation !== 'foreign';
  const isMeant = isOfTypes && rights.change !== undefined && account !== undefined;
  if (!isMeant || !(actor ? isOwnAccount(actor) : !isActive(question, account))) return undefined;
  if (isPartner(question, suspect)) return undefined;
  const all = domain.types.map((type) =>
    type === held.type ? rights : rightsOf(context, account, type, []),
  );
  return all.every((one) => one.isMarked)
    ? [...new Set(all.flatMap(({ because }) => because))].slice(0, 3).join('; ')
    : undefined;
}

/** Reports whether it is the controller of another company's type, by its name: Kueue starts RayJobs, and an operator of Environments may be cluster-admin. */
export function isPartner(question: OwnerQuestion, { actor, rights }: Suspect): boolean {
  const { context, domain, held, program } = question;
  const own = domain.types.length > 0 ? domain.types : [held.type];
  if (!actor || own.some((type) => isNamedAfterType({ ...held, type }, actor.name))) return false;
  const names = [actor.name, ...actor.programs].map(productOf);
  // Where neither the domain nor the writer tells whose the finalizer is, it may be any administrator's.
  const isTelling = program !== '' || ['own', 'other'].includes(domain.relation);
  return typesOf(context).some(
    (type) =>
      isOfType(type, names) &&
      !own.some(({ group }) => isOfOneCompany(group, type.group)) &&
      ((rights.change === 'everything' && isTelling) ||
        rightsOf(context, actor.account, type, []).isMarked),
  );
}

/** Any workload may run as the account of a controller, its webhook as well: the name of one that acts as itself tells. */
function isOwnAccount({ name, programs, account }: Actor): boolean {
  if (WEBHOOK.test(name)) return false;
  if (CONTROLLER.test(name) || account.name === 'default') return true;
  const words = account.name.split(/[-.]/).filter((word) => word.length > 2);
  return words.some((word) => [name, ...programs].some((own) => own.includes(word)));
}

/** Reports whether something was written or renewed under the account's name of late, or under one that any program may have. */
function isActive({ context, held }: OwnerQuestion, { name }: Account): boolean {
  return (
    leasesOfProgram(context, name).some((lease) => isRenewed(context, lease)) ||
    lateWrites(held).some(({ manager }) => isSameName(manager, name) || isFrameworkName(manager))
  );
}

/** Reports whether the catalogue knows it as the controller of another finalizer: Crossplane may change its providers' managed resources. */
export function isKnownForAnother({ known }: OwnerQuestion, { actor }: Suspect): boolean {
  return (
    actor !== undefined &&
    known !== undefined &&
    known.workload.length > 0 &&
    !isWorkloadOf(known, actor.name) &&
    isNameOfProduct(actor.name)
  );
}

function hasLostRight({ domain, held }: OwnerQuestion, { lost }: Suspect) {
  const isMeant = !isSetByHand(held) && domain.types.includes(held.type);
  return isMeant && lost?.isOnType ? lost.text : undefined;
}

/**
 * Returns what shows that a workload has lost its right: the status quotes that the server refused it, a part of the rights
 * of a controller is left, its role is gone, or one of its name is bound to nobody.
 */
function lostRight(context: Context, held: Held, { types }: FinalizerDomain) {
  const { type } = held;
  const unbound = [type, ...types].flatMap((one) => unboundRoles(context, one));
  const refused = statusTexts(context, held).flatMap(({ text }) =>
    classifyErrorText(text).flatMap((error) =>
      error.kind === 'forbidden' && typeName(error) === typeName(type) ? error.user : [],
    ),
  );
  return (actor: Actor, rights: Rights): Suspect['lost'] => {
    const { account, namespace, name } = actor;
    if (mayChange({ rights }) || WEBHOOK.test(name)) return undefined;
    const onType = (text: string) => ({ text, isOnType: true });
    if (refused.includes(`system:serviceaccount:${account.namespace}:${account.name}`))
      return onType('the status of the object says so');
    if (rights.isHalfMarked) return onType('a part of those of a controller is left');
    // A copy of an operator for another namespace has its role by a RoleBinding there, which may not have been read.
    const isHomeRead = context.now.places[account.namespace ?? '']?.roleBindings?.ok === true;
    const role = unbound.find((one) => isHomeRead && isRoleOf(one, actor));
    if (role !== undefined) return { ...onType(`ClusterRole ${role} is bound to nobody`), role };
    // Of that role nobody knows the type: names have to tell, and who works for another one has not lost this right.
    const gone = rights.worksElsewhere ? undefined : roleGone(context, account);
    if (gone === undefined) return undefined;
    const text = `ClusterRole ${gone}, which is bound to it, does not exist`;
    const isItsOwn = CONTROLLER.test(name) || isRoleOf(gone, actor);
    return { text, isOnType: isNamedAfterType(held, isItsOwn ? `${namespace}/${name}` : name) };
  };
}

/** Returns the RoleBindings that show whether such workloads have lost a role, or work on their own namespace. */
export function placesOfRoles(context: Context, held: Held): Wanted['places'] {
  const roles = unboundRoles(context, held.type);
  const question = questionAbout(context, held);
  return question.candidates.flatMap((candidate) => {
    const { actor, rights } = candidate;
    if (actor === undefined || rights.change !== undefined) return [];
    const isMeant =
      [isWriter, isKnown, isNamesake].some((finds) => finds(question, candidate) !== undefined) ||
      (runsAs(context, actor, question.writer) && !rights.worksElsewhere) ||
      roles.some((name) => isRoleOf(name, actor));
    return isMeant ? [{ namespace: actor.namespace, sources: ['roles', 'roleBindings'] }] : [];
  });
}

/** Recognizes the products `memcached` and `acme-memcached` of Memcacheds, or of their group, and not `memcached-session`. */
function isOfType({ kind, group }: ResourceType, products: readonly string[]): boolean {
  const words = [kind.toLowerCase(), group.replace(/\..*/, '')].filter(({ length }) => length > 2);
  return products.some((name) => words.some((word) => name.replaceAll('-', '').endsWith(word)));
}

function productOf(name: string): string {
  return name.replace(/(?:-(?:controller|manager|operator))+$/, '');
}

/** Recognizes `widget-operator-manager-role` and `acme:widget-operator:system` of `widget-operator`, but not of an application `widget-frontend`. */
function isRoleOf(role: string, { namespace, name, account }: Actor): boolean {
  const stem = role.replace(/(?:-cluster)?-?role$/i, '');
  return [name, `${namespace}-${name}`, account.name].some(
    (own) =>
      identifiesProgram(own) &&
      (stem.split(':').includes(own) ||
        (CONTROLLER.test(own) && (containsName(role, own) || productOf(own) === productOf(stem)))),
  );
}

/** What installs a program writes this on all of its parts. Argo CD writes `instance` on all that an Application deploys. */
function isInstalledWithType({ context, held, domain }: OwnerQuestion, { actor }: Suspect) {
  if (domain.relation !== 'own' || actor === undefined) return undefined;
  const type = typeName(held.type);
  const crd = itemsIn(context.now.cluster.definitions).find(({ name }) => name === type);
  const [own, its] = [actor.annotations, crd?.annotations ?? {}].map((by) =>
    ['name', 'namespace'].map((key) => by[`meta.helm.sh/release-${key}`] ?? '').join('/'),
  );
  const name = actor.labels['app.kubernetes.io/name'];
  const names = ['name', 'part-of'].map((key) => crd?.labels[`app.kubernetes.io/${key}`]);
  return (own !== '/' && own === its) || (name && names.includes(name)) ? '' : undefined;
}

/**
 * Finds workloads of such a name, and those with a container or command of a name that many programs have: a framework
 * (`kopf run handlers.py`), or `manager` if it writes the status and its permissions are for nothing else. Such a name ties
 * only one that has or had a right to the type, or is named after it: itself, or by its namespace, if it has no name of its own.
 */
function isNamesake(question: OwnerQuestion, candidate: Suspect) {
  const { candidates, context, domain, held, known, writer } = question;
  const { actor, lost, rights } = candidate;
  if (actor === undefined || WEBHOOK.test(actor.name)) return undefined;
  const isTied = (): boolean =>
    rights.change === 'named' ||
    lost !== undefined ||
    // Applications have containers called `app` or `server`, and no rights either.
    ((FRAMEWORKS.test(writer) || CONTROLLER.test(actor.name)) &&
      ((rights.watch === 'named' && !rights.changesSibling) ||
        hasNoRight(context, actor.account))) ||
    isNamedAfterType(held, identifiesProgram(actor.name) ? actor.name : actor.namespace);
  // Of a framework no status tells: one that works for nothing else may change everything, or has lost its right and is left
  // with a part of it, or its role with nobody.
  const isLeft = (): boolean =>
    (rights.change === 'everything' && !rights.worksElsewhere) ||
    (!rights.changesSibling &&
      (rights.reachesGroup ||
        (!rights.worksElsewhere &&
          unboundRoles(context, held.type, [held.type.resource]).length > 0)));
  // Everybody's operators write as `manager`: of the finalizer of another domain that says nothing.
  const isForeign =
    domain.relation === 'other' ||
    (domain.relation === 'foreign' && !hasCommonLabel(domainOf(held.finalizer), held.type.group));
  const runsIt =
    !isForeign &&
    !isGeneralTool(actor) &&
    isFrameworkName(writer) &&
    runsAs(context, actor, writer) &&
    (FRAMEWORKS.test(writer)
      ? isTied() || isLeft()
      : isTied() && !rights.worksElsewhere && writesStatus(held, writer));
  const by = alikeIn(question).find((one) => one.actor === actor);
  if (runsIt || by) return `field manager "${by?.name ?? writer}"`;
  if (known && isWorkloadOf(known, actor.name)) return known.owner;
  // Where nobody has the marks, one that is called as the controller, and works for nothing else, has lost its right.
  const isLost = !rights.change && !rights.worksElsewhere && actor.account.name !== 'default';
  const product = productOf(actor.name);
  const isIt = product !== actor.name && domain.types.some((type) => isOfType(type, [product]));
  const isAlone = (): boolean => candidates.every((one) => isMarked(question, one) === undefined);
  return isLost && isIt && !known?.workload[0] && isAlone() ? actor.name : undefined;
}

/** Reports whether two domains share more than their end: `ory.hydra.sh` and `hydra.ory.sh`. */
function hasCommonLabel(one: string, other: string): boolean {
  const [labels, others] = [one, other].map((domain) => domain.split('.').slice(0, -1));
  return labels?.some((label) => others?.includes(label)) === true;
}

function writesStatus({ objects }: Held, writer: string): boolean {
  return objects.flatMap((one) => one.statusWriters).some(({ manager }) => manager === writer);
}

/** A program writes under one name: the status tells where the writer of the finalizer is not known (`unknown`: no user agent, as of kube-rs). */
const alikeIn = remember(({ actors, domain, held, writer }: OwnerQuestion) => {
  const isHidden = writer === '' || writer === 'unknown' || writer.includes('/');
  const isOwn = domain.relation === 'own' || domain.relation === 'none';
  return (isHidden && isOwn ? statusManagers(held) : [writer])
    .filter((name) => identifiesController(held, name))
    .flatMap((name) => workloadsOfProgram(actors, name).map((actor) => ({ actor, name })));
});

/** Reports whether a right to change the type ties a program to the finalizer: many may change built-in types, and of another group's finalizer only programs with a right on that group know. */
export function isTiedByRight(question: OwnerQuestion, { account, rights }: Suspect): boolean {
  const { context, domain, held } = question;
  const { group, namespaced } = held.type;
  const others = domain.types.filter((one) => one !== held.type);
  if (others.length === 0) return !(namespaced && isBuiltIn(group));
  // Not every program of a company has types of its own.
  const mayBeOfCompany = domain.relation === 'foreign' && !isBuiltIn(group) && !rights.isMarked;
  const own = others.map((type) => rightsOf(context, account ?? NOBODY, type, []));
  return mayBeOfCompany || rights.isLocal || own.some(({ change, watch }) => change ?? watch);
}

/** Finds workloads that may change the objects by a rule that names the type, or could and are gone. */
function isPermitted(question: OwnerQuestion, suspect: Suspect) {
  const { context, held } = question;
  const { actor, rights } = suspect;
  if (actor === undefined) return undefined;
  const isMeant = actor.isGone || !isGeneralTool(actor);
  const by = isMeant ? departedGrant(context, actor.account, held.type, true) : undefined;
  const isIt =
    (by !== undefined || rights.change === 'named') &&
    isTiedByRight(question, suspect) &&
    !isPartner(question, suspect);
  if (!isIt) return undefined;
  return by
    ? `RoleBinding ${by}, deleted with this namespace`
    : rights.because.slice(0, 3).join('; ');
}

/** A Role of this namespace, which was deleted with it, may have given its right to who is told to work here. */
function isTold({ context: { now } }: OwnerQuestion, { actor, rights }: Suspect) {
  const isIt =
    actor?.watches?.includes(now.namespace.name) === true &&
    rights.change === undefined &&
    !rights.worksElsewhere &&
    !isGeneralTool(actor);
  return isIt ? '' : undefined;
}
