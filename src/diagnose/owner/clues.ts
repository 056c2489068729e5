import { listNames } from '../../base/text.ts';
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
  rolesGone,
  unboundRoles,
} from '../rights.ts';
import {
  type FinalizerDomain,
  finalizerDomain,
  type Held,
  identifiesController,
  isNamedAfterType,
  isSetByHand,
  knownFinalizer,
  lateWrites,
  specificFieldManager,
  statusWriters,
  wordsOfFinalizer,
  writerOf,
} from './held.ts';
import { isRenewed, leasesOfProgram, runsAs } from './leases.ts';
import { logLinesNaming } from './logs.ts';
import {
  containsName,
  FRAMEWORKS,
  hasProgramName,
  identifiesProgram,
  isExactWorkloadName,
  isFrameworkName,
  isGeneralTool,
  isNameOfProduct,
  isOfOneCompany,
  isSameName,
  isWorkloadOf,
  restOf,
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
  /** What shows that it has lost a right; `isOnType`: to change the type; `isOwn`: all that its own role allowed; `role`: the ClusterRole that is bound to nobody. */
  lost?: { text: string; isOnType: boolean; isOwn?: boolean; role?: string } | undefined;
}

/** Everything that clues read about one held finalizer, computed once. */
export type OwnerQuestion = ReturnType<typeof questionAbout>;

/** Evidence about who owns a finalizer. */
interface Clue {
  kind: string;
  /** `decides`: only one program can leave it. `marks`: leads by itself. `supports`: the most of them lead where nobody has the marks. `able`: leads only who is down, and alone in that. */
  weight: 'decides' | 'marks' | 'supports' | 'able';
  /** The sentence that the report shows about the suspect. */
  text: string;
}

interface ClueRow extends Omit<Clue, 'kind'> {
  /** Reports whether a candidate has the clue, perhaps with a detail for the sentence. */
  finds: (question: OwnerQuestion, candidate: Suspect) => string | boolean | undefined;
}

/** Every clue, in the order in which suspects are listed. */
export const CLUES = {
  log: {
    weight: 'decides',
    text: 'its log names the object',
    // The log of who may change everything names what others do. The evidence has the lines.
    finds: ({ context, held }, { actor, rights: { change } }) =>
      actor && change !== 'everything' && logLinesNaming(context, held, actor).length > 0,
  },
  writer: {
    weight: 'decides',
    text: 'it has the name of the writer of this finalizer (managedFields)',
    finds: ({ isWriter, program }, candidate) =>
      isWriter(candidate) && `field manager "${program}"`,
  },
  catalogue: {
    weight: 'decides',
    text: 'the finalizer is well known, and this is its workload',
    finds: isKnown,
  },
  marks: {
    weight: 'marks',
    text: 'RBAC rules that name the type or its group give it the rights of a controller',
    finds: isMarked,
  },
  installation: {
    weight: 'supports',
    text: 'it has the Helm release or the app.kubernetes.io labels of the CRD',
    finds: isInstalledWithType,
  },
  namesake: {
    weight: 'supports',
    text: 'its name fits the writer, the product or the finalizer',
    finds: isNamesake,
  },
  part: {
    weight: 'supports',
    text: 'it has lost its rights',
    // Programs of the network write the status of any pod.
    finds: ({ domain, held }, { lost, rights }) =>
      (domain.types.includes(held.type) ||
        (domain.relation !== 'foreign' && !rights.isHalfMarked)) &&
      !isSetByHand(held) &&
      lost?.isOnType &&
      lost.text,
  },
  permission: {
    weight: 'able',
    text: 'an RBAC rule that names the type lets it change the objects',
    finds: isPermitted,
  },
  told: {
    weight: 'able',
    text: 'its settings name this namespace, and no role that is left gives it a right here',
    // A Role of this namespace, which was deleted with it, may have given its right to who is told to work here.
    finds: ({ context: { now } }, { actor, rights }) =>
      actor?.watches?.includes(now.namespace.name) &&
      rights.change === undefined &&
      !rights.worksElsewhere &&
      !isGeneralTool(actor),
  },
} as const satisfies Record<string, ClueRow>;

type ClueKind = keyof typeof CLUES;

export function questionAbout(context: Context, held: Held) {
  const names = (held.objects.length > 0 ? held.objects : [held.subject]).map(({ name }) => name);
  const subresource = held.isInSpec === true ? 'finalize' : undefined;
  const rights = (account: Account): Rights =>
    rightsOf(context, account, held.type, names, subresource);
  const actors = actorsOf(context);
  const domain = finalizerDomain(context, held);
  const known = knownFinalizer(held);
  const product = known?.workload[0] && known;
  const program = specificFieldManager(held);
  const lost = lostRight(context, held, domain);
  const workloads = actors.map((actor) => {
    const { account } = actor;
    // A static pod acts by credentials of its own, which RBAC does not show.
    const own = isStatic(actor) ? { ...rights(NOBODY), impersonates: true } : rights(account);
    return { actor, account, clues: [], rights: own, lost: lost(actor, own) };
  });
  const idle = ableAccounts(context, held.type).accounts.flatMap((account) => {
    const own = rights(account);
    // One with the name and the right of a controller that handles all objects is left of an earlier installation of it.
    const isOut = workloads.some(
      ({ actor, account: { namespace, name }, rights: { change } }) =>
        name === account.name &&
        (namespace === account.namespace ||
          (name !== 'default' && change === own.change && !mayLeaveOut(actor))),
    );
    return isOut ? [] : [{ actor: undefined, account, clues: [], rights: own }];
  });
  const candidates: readonly Suspect[] = [...workloads, ...idle];
  return {
    ...{ context, held, domain, actors, candidates },
    /** What is known of the finalizer, if that names the workload of its owner. */
    product,
    isProduct: calledAs(candidates, (name) => !!product && isExactWorkloadName(product, name)),
    /** The field manager of the finalizer. */
    writer: writerOf(held)?.manager ?? '',
    /** The same, if it is the name of one program. */
    program,
    isWriter: calledAs(candidates, (name) => isSameName(name, program)),
  };
}

/** Returns all candidates that something ties to the finalizer, with their clues and what contradicts them, best first. */
export function suspectsFor(question: OwnerQuestion): Suspect[] {
  const found = question.candidates.flatMap((candidate): Suspect[] => {
    const isOther = isOfAnother(question, candidate);
    const clues = Object.entries<ClueRow>(CLUES).flatMap(([kind, { finds, text, weight }]) => {
      if (isOther && ['writer', 'namesake'].includes(kind)) return [];
      const detail = finds(question, candidate);
      return detail ? [{ kind, weight, text: detail === true ? text : `${text}: ${detail}` }] : [];
    });
    return clues.length === 0 ? [] : [contradicted(question, { ...candidate, clues })];
  });
  return [...found, ...absentProgram(question, found)].toSorted((a, b) => orderOf(b) - orderOf(a));
}

/** Reports whether it works for another product: many programs have a name alike, as `postgres-operator`. */
function isOfAnother({ context, domain, held }: OwnerQuestion, { account, rights }: Suspect) {
  const isAtWork = rights.worksElsewhere && !rights.reachesGroup;
  return isAtWork && !rolesGone(context, account ?? NOBODY)[0] && domain.types.includes(held.type);
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
  const of = isDecided(suspect) ? type : undefined;
  const isNamed = of !== undefined || hasClue(suspect, 'namesake');
  return isNamed && (rights.reachesGroup || hasNoRight(context, account, of));
}

function mayChange({ rights }: Pick<Suspect, 'rights'>): boolean {
  return rights.change !== undefined || rights.impersonates;
}

/** Returns the program that wrote the finalizer, if nothing in the cluster is named after it. */
function absentProgram(question: OwnerQuestion, found: readonly Suspect[]): Suspect[] {
  const { context, held, actors, program } = question;
  const isHere =
    program === '' ||
    // `postgrescluster-controller`, of PostgresClusters, is inside of a program, which may have any name.
    isSameName(program, `${held.type.kind}-controller`) ||
    actors.some((actor) => hasProgramName(actor, program)) ||
    found.some((one) => hasClue(one, 'writer', 'namesake', 'catalogue'));
  if (isHere) return [];
  const { text, weight } = CLUES.writer;
  const clue = { kind: 'writer', weight, text: `${text}: field manager "${program}"` };
  const rights = rightsOf(context, NOBODY, held.type, []);
  return [{ actor: undefined, account: undefined, program, rights, clues: [clue] }];
}

/** Orders suspects by the first clue, in the order of the table, that one has and the other has not. */
function orderOf({ clues }: Suspect): number {
  const found = clues.map(({ kind }) => kind);
  return Object.keys(CLUES).reduce((rank, kind) => 2 * rank + Number(found.includes(kind)), 0);
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
  const told = clues.filter(({ kind }) => !clues.some((one) => IMPLIED[one.weight] === kind));
  const ready = actor && `${actorText(actor)}: ${actor.ready} of ${actor.wanted} ready`;
  return [
    ...told.map(({ text }) => text),
    ...(clues.some(({ text }) => text.includes(because)) ? [] : [`RBAC: ${because}`]),
    ...(ready && !actor.isGone ? [ready] : []),
    ...(actor?.selectors[0] ? [`it was started with ${actor.selectors.join(' ')}`] : []),
  ];
}

export function exclusionEvidence(excluded: readonly Suspect[]): string[] {
  return excluded
    .slice(0, 5)
    .map((one) => `ruled out ${suspectText(one)}: ${one.against}, although ${one.clues[0]?.text}`);
}

export function unreadEvidence(labels: readonly string[]): string[] {
  return labels.length === 0 ? [] : [`${listNames(labels, 3)} could not be read`];
}

/** A webhook of an operator, and not an operator for webhooks (`webhook-operator`). */
const WEBHOOK = /\bwebhook\b(?!-(?:controller|manager|operator)\b)/;
const CONTROLLER = /(?:controllers?|manager|operator)\b/;

/** Recognizes who has such a name, or, with a right to the type, runs such a program where nobody beside it is called so: a dashboard may run the image of the operator. */
function calledAs(candidates: readonly Suspect[], isIt: (name: string) => boolean) {
  const mayBe = (one: Suspect): boolean =>
    one.actor?.isGone === true || mayChange(one) || one.lost !== undefined;
  const has = (by: Actor, names = [by.name]): boolean =>
    withoutRelease(by, names).some((name) => identifiesProgram(name) && isIt(name));
  const called = candidates.filter((one) => one.actor && mayBe(one) && has(one.actor));
  const isBeside = ({ actor, rights }: Suspect): boolean =>
    called.some(
      (by) => by.actor?.namespace === actor?.namespace && (by.rights.isMarked || !rights.isMarked),
    );
  return (one: Suspect): boolean => {
    const { actor, account } = one;
    if (actor === undefined) return isIt(account?.name ?? '');
    const isPart = !mayBe(one) || WEBHOOK.test(actor.name) || isBeside(one);
    return has(actor, isPart ? [actor.name] : actor.programs);
  };
}

function isKnown({ product, isProduct }: OwnerQuestion, candidate: Suspect) {
  if (product === undefined || product.anyController) return false;
  const isUsual = product.workload.some(
    ({ name, namespace }) =>
      name === candidate.actor?.name && namespace === candidate.actor.namespace,
  );
  return (isUsual || isProduct(candidate)) && product.owner;
}

/** A ServiceAccount that no workload uses stands for a controller that is gone. */
function isMarked(question: OwnerQuestion, suspect: Suspect) {
  const { actor, account, rights } = suspect;
  const { context, domain, held, writer } = question;
  const isOfTypes = domain.types.length > 0 && domain.relation !== 'foreign';
  const isMeant = isOfTypes && rights.change !== undefined && account !== undefined;
  if (!isMeant || !(actor ? isOwnAccount(question, actor) : !isActive(question, account)))
    return false;
  const all = domain.types.map((type) =>
    type === held.type ? rights : rightsOf(context, account, type, []),
  );
  // Consoles have rules for a whole group as well.
  const isCalled =
    actor &&
    (CONTROLLER.test(actor.name) || domain.types.some((one) => isOfType(one, [actor.name])));
  const isOn = (one: Rights): boolean =>
    one.isMarked || (isCalled === true && one.isOnGroup) || (one !== rights && one.isHalfMarked);
  // Roles of kopf operators name no status, but the peerings of kopf.
  const isOfKopf = writer === 'kopf' && rights.isOfKopf && rights.change === 'named';
  const isIt = (isOfKopf || all.every(isOn)) && !isPartner(question, suspect);
  return isIt && [...new Set(all.flatMap(({ because }) => because))].slice(0, 3).join('; ');
}

const hasMarked = remember((question: OwnerQuestion): boolean =>
  question.candidates.some((one) => isMarked(question, one) !== false),
);

/** Reports whether it is the controller of another company's type by two of three: its name, the marks, a right to everything. Kueue starts RayJobs, and an operator of Environments may be cluster-admin. */
export function isPartner(question: OwnerQuestion, { actor, rights }: Suspect): boolean {
  const { context, domain, held, program } = question;
  const own = domain.types.length > 0 ? domain.types : [held.type];
  if (!actor || own.some((type) => isNamedAfterType(type, actor.name))) return false;
  const names = [actor.name, ...actor.programs].map(productOf);
  // Where neither the domain nor the writer tells whose the finalizer is, it may be any administrator's.
  const isTelling = program !== '' || ['own', 'other'].includes(domain.relation);
  const isAdmin = rights.change === 'everything' && isTelling;
  return typesOf(context).some(
    (type) =>
      !own.some(({ group }) => isOfOneCompany(group, type.group)) &&
      ((isAdmin && isOfType(type, names)) ||
        ((isAdmin || isNamedAfterType(type, names.join('/'))) &&
          rightsOf(context, actor.account, type, []).isMarked)),
  );
}

/** Any workload may run as the account of a controller: its name tells, and where one of those that share the account is called a controller, it is that one. */
function isOwnAccount({ actors, held }: OwnerQuestion, actor: Actor): boolean {
  const { name, programs, account, namespace } = actor;
  const all = actors.filter((one) => one.namespace === namespace);
  const sharers = all.filter((one) => one.account.name === account.name);
  // `widget-operator-api` is a part of `widget-operator`.
  const ends = sharers.flatMap((one) => restOf(name, one.name));
  if (WEBHOOK.test(name) || ends.some((end) => !CONTROLLER.test(end))) return false;
  if (CONTROLLER.test(name)) return true;
  if (sharers.some((one) => CONTROLLER.test(one.name))) return false;
  if (account.name === 'default') return isOfType(held.type, [name]);
  const words = account.name.split(/[-.]/).filter((word) => word.length > 2);
  return words.some((word) => [name, ...programs].some((own) => own.includes(word)));
}

/** Reports whether something was written or renewed under the account's name of late, or under one that any program may have. */
export function isActive({ context, held }: OwnerQuestion, { name }: Account): boolean {
  const leases = identifiesProgram(name) ? leasesOfProgram(context, name) : [];
  return (
    leases.some((lease) => isRenewed(context, lease)) ||
    lateWrites(held).some(({ manager }) => isSameName(manager, name) || isFrameworkName(manager))
  );
}

/** Reports whether the catalogue knows it as the controller of another finalizer: Crossplane may change its providers' managed resources. */
export function isKnownForAnother({ product }: OwnerQuestion, { actor }: Suspect): boolean {
  return !!product && !!actor && isNameOfProduct(actor.name) && !isWorkloadOf(product, actor.name);
}

/** Returns what shows that a workload has lost its right: a refusal, half of the marks of a controller, or a role that is gone or bound to nobody. */
function lostRight(context: Context, held: Held, { types }: FinalizerDomain) {
  const { type } = held;
  const unbound = (types[0] ? types : [type]).flatMap((one) => unboundRoles(context, one));
  const anyGroup = unboundRoles(context, { ...type, group: '*' });
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
    const isIts = (one: string): boolean => isHomeRead && isRoleOf(one, actor);
    const role = unbound.find(isIts);
    if (role) return { ...onType(`ClusterRole ${role} is bound to nobody`), role };
    // A role for all groups, or one that is gone, tells no type: names have to, and who works for another one has not lost this right.
    const wide = anyGroup.find(isIts);
    const lost = rights.worksElsewhere ? undefined : (wide ?? rolesGone(context, account)[0]);
    if (lost === undefined) return undefined;
    const fate = wide ? ' is bound to nobody' : ', which is bound to it, does not exist';
    const isOwn = isRoleOf(lost, actor);
    const all = [namespace, lost, ...actor.programs];
    const names = CONTROLLER.test(name) || isOwn ? all : [name, lost];
    const isOnType = [type, ...types].some((one) => isNamedAfterType(one, names.join('/')));
    const text = `ClusterRole ${lost}${fate}`;
    return { text, isOnType, isOwn, ...(isOnType && wide && { role: wide }) };
  };
}

/** Returns the RoleBindings that show whether such workloads have lost a role, or work on their own namespace. */
export function placesOfRoles(context: Context, held: Held): Wanted['places'] {
  const types = [held.type, { ...held.type, group: '*' }];
  const roles = types.flatMap((type) => unboundRoles(context, type));
  const question = questionAbout(context, held);
  return question.candidates.flatMap((candidate) => {
    const { actor, rights } = candidate;
    if (actor === undefined || rights.change !== undefined) return [];
    const isMeant = isNamesake(question, candidate) || roles.some((name) => isRoleOf(name, actor));
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
  const stem = role.replace(/(?:-cluster)?-?role(?:-cluster)?$/i, '');
  return [name, `${namespace}-${name}`, account.name.replace(/-account$/, '')].some(
    (own) =>
      identifiesProgram(own) &&
      (stem.split(':').includes(own) ||
        (CONTROLLER.test(own) && (containsName(role, own) || productOf(own) === productOf(stem)))),
  );
}

/** What installs a program writes this on all of its parts. Argo CD writes `instance` on all that an Application deploys. */
function isInstalledWithType({ context, held, domain }: OwnerQuestion, { actor }: Suspect) {
  const type = typeName(held.type);
  const crd = itemsIn(context.now.cluster.definitions).find(({ name }) => name === type);
  if (domain.relation !== 'own' || !actor || !crd) return false;
  const isOfRelease = ['meta.helm.sh/release-name', 'meta.helm.sh/release-namespace'].every(
    (key) => actor.annotations[key] && actor.annotations[key] === crd.annotations[key],
  );
  const name = actor.labels['app.kubernetes.io/name'] ?? '';
  const names = ['name', 'part-of'].map((key) => crd.labels[`app.kubernetes.io/${key}`]);
  return isOfRelease || names.includes(name);
}

/**
 * Finds workloads of such a name, those that the finalizer names (`acme.dev/env-reaper`), and those that run a framework, or a
 * `manager` that writes the status and may change nothing else, where a right or a name ties them to the type.
 */
function isNamesake(question: OwnerQuestion, candidate: Suspect) {
  const { context, domain, held, product, program, writer } = question;
  const { actor, lost, rights } = candidate;
  if (actor === undefined || WEBHOOK.test(actor.name)) return false;
  // Applications have containers called `app` or `server`, and no rights either. The command of a framework tells.
  const isCommand = FRAMEWORKS.test(writer);
  const isUser = rights.isUser && !(isCommand && rights.change);
  const isForNothingElse = !isUser && !rights.worksElsewhere && !rights.worksOnBuiltIn;
  const isTied = (): boolean =>
    (rights.change === 'named' && !isUser) ||
    lost !== undefined ||
    ((isCommand || CONTROLLER.test(actor.name)) && isForNothingElse) ||
    isNamedAfterType(held.type, identifiesProgram(actor.name) ? actor.name : actor.namespace);
  // Everybody's operators write as `manager`: of the finalizer of another domain that says nothing.
  // `controller`, `autoneg` and `neg` of `controller.autoneg.dev/neg`.
  const words = held.finalizer.replace(/\.\w+(?=\/|$)/, '').split(/[./]/);
  const isForeign = ['other', 'foreign'].includes(domain.relation);
  const runsIt =
    !isForeign &&
    !isGeneralTool(actor) &&
    isFrameworkName(writer) &&
    runsAs(context, actor, writer) &&
    isTied() &&
    (isCommand ||
      (!rights.worksElsewhere && statusWriters(held).some((by) => by.manager === writer)));
  const by = alikeIn(question).find((one) => one.actor === actor);
  if (runsIt || by) return `field manager "${by?.name ?? writer}"`;
  if (product && isWorkloadOf(product, actor.name)) return product.owner;
  const own = productOf(actor.name);
  const isAble = rights.change === 'named' || lost !== undefined;
  const isOwn = isAble && !rights.worksElsewhere && domain.relation !== 'other';
  const called = program || knownFinalizer(held) ? [] : wordsOfFinalizer(held);
  const isCalled = called.some((word) =>
    own.split('-').some((part) => part === word || (word.length > 3 && part.startsWith(word))),
  );
  const isSpelt = own !== actor.name && words.includes(actor.name);
  if (isSpelt ? isAble : isOwn && (words.includes(own) || isCalled)) return actor.name;
  // Where nobody has the marks, one that is called as the controller, and works for nothing else, has lost its right.
  const isLost = !rights.change && !rights.worksElsewhere && actor.account.name !== 'default';
  const isIt = own !== actor.name && domain.types.some((type) => isOfType(type, [own]));
  return isLost && isIt && !hasMarked(question) && actor.name;
}

/** Returns the field managers of the status that are controllers. Of another product's finalizer they tell nothing. */
export function statusManagers({ domain: { relation }, held }: OwnerQuestion): string[] {
  const isMeant = relation === 'own' || relation === 'none';
  const names = (isMeant ? statusWriters(held) : []).map(({ manager }) => manager);
  return [...new Set(names)].filter((name) => identifiesController(held, name));
}

/** A program writes under one name: the status tells where the writer of the finalizer is not known (`unknown`: no user agent, as of kube-rs). */
const alikeIn = remember((question: OwnerQuestion) => {
  const { actors, held, writer } = question;
  const isHidden = writer === '' || writer === 'unknown' || writer.includes('/');
  const own = identifiesController(held, writer) ? [writer] : [];
  return (isHidden ? statusManagers(question) : own).flatMap((name) =>
    workloadsOfProgram(actors, name).map((actor) => ({ actor, name })),
  );
});

/** Reports whether a right to change the type ties a program to the finalizer: many may change built-in types, and of another group's finalizer only programs with a right on that group know. */
export function isTiedByRight(question: OwnerQuestion, { account, rights }: Suspect): boolean {
  const { context, domain, held } = question;
  const others = domain.types.filter((one) => one !== held.type);
  const isShared = isBuiltIn(held.type.group);
  if (others.length === 0) return !(held.type.namespaced && isShared);
  // Not every program of a company has types of its own.
  const mayBeOfCompany = domain.relation === 'foreign' && !isShared && !rights.isMarked;
  const own = others.map((type) => rightsOf(context, account ?? NOBODY, type, []));
  return mayBeOfCompany || rights.isLocal || own.some(({ change, watch }) => change ?? watch);
}

/** Finds workloads that may change the objects by a rule that names the type, or could and are gone. */
function isPermitted(question: OwnerQuestion, suspect: Suspect) {
  const { context, held } = question;
  const { actor, rights } = suspect;
  if (actor === undefined || rights.isUser || !isTiedByRight(question, suspect)) return false;
  const by = !isGeneralTool(actor) && departedGrant(context, actor.account, held.type, true);
  const isIt = (by || rights.change === 'named') && !isPartner(question, suspect);
  const how = by ? [`RoleBinding ${by}, deleted with this namespace`] : rights.because.slice(0, 3);
  return isIt && how.join('; ');
}
