import type { Certainty } from '../../model/finding.ts';
import type { ClusterSources, PlaceSources } from '../../model/snapshot.ts';
import {
  type Actor,
  accountText,
  actorsOf,
  actorText,
  isAlive,
  isStatic,
  WORKLOAD_SOURCES,
} from '../actors.ts';
import { domainOf, productsOf } from '../catalogue.ts';
import { type Context, isBuiltIn, isInside, listed, typesOf } from '../context.ts';
import {
  type Account,
  ableAccounts,
  departedGrant,
  isRbacRead,
  isSameAccount,
  mayOthersChange,
  NO_RIGHTS,
  outsiders,
  type Rights,
  rightsOf,
} from '../rights.ts';
import {
  type Evidence,
  holderOf,
  isRenewed,
  leasesOf,
  leasesOfWriter,
  type OwnerEvidence,
  ownerEvidence,
  sharesAccount,
  writersOf,
} from './evidence.ts';
import {
  catalogued,
  definitionNames,
  type Held,
  isCalledAfterType,
  isOftenManaged,
  lateWriters,
  meantBy,
  namesToldBy,
  tellingWriter,
  writerOf,
} from './held.ts';
import { isOfAnyController, isSameProgram, isTelling, OF_NOBODY, speaksAs } from './names.ts';

/** Somebody who may be the owner, and what speaks for it. */
export interface Candidate {
  /** Undefined: an account that has the rights, and nothing that uses it. */
  actor: Actor | undefined;
  account: Account | undefined;
  evidence: Evidence[];
  rights: Rights;
}

/** Who should remove a finalizer, and how sure that is. */
export interface Attribution {
  certainty: Certainty;
  /** `found`: the owner is there, whatever its state. `missing`: nobody is. `unknown`: nobody can say. */
  verdict: 'found' | 'missing' | 'unknown';
  /** The owner; where nobody was found, who is known to be gone, if anybody is. */
  owner: Candidate | undefined;
  /** Who else could be it, best first. */
  candidates: Candidate[];
  /** Sources that could contradict and were not read. */
  unread: string[];
  /** What speaks for somebody being alive who may be the owner, besides `owner`. */
  reservations: string[];
  /** See `Finding.wasDeletedWithNamespace`; only with verdict `missing`. */
  wasDeletedWithNamespace?: boolean;
}

/**
 * Identity before ability, vetoes before sums, and the lower answer when in doubt. Readiness never chooses:
 * the one that sleeps is what is looked for.
 */
export function attribute(context: Context, held: Held): Attribution {
  const unread = unreadSources(context);
  const gaps = unread.map((label) => `${label} could not be read`);
  const all = candidatesFor(context, held);
  const able = all.filter((candidate) => !isVetoed(context, held, candidate));
  const present = able.filter(({ actor }) => actor !== undefined && !actor.isGone);
  const best = choose(context, held, present) ?? chooseActing(context, held, all);
  const others = present.filter((candidate) => candidate !== best?.candidate);
  if (best !== undefined) {
    const isProven = best.isClear && unread.length === 0;
    return {
      certainty: isProven ? 'proven' : 'likely',
      verdict: 'found',
      owner: best.candidate,
      candidates: others.filter(hasIdentity),
      unread,
      reservations: [
        ...gaps,
        ...textsOf(signsOfLife(context, held, all, { owner: best.candidate })),
      ],
    };
  }
  const gone = goneOwner(context, held, able);
  const signs = signsOfLife(context, held, all, { gone });
  const reservations = [...gaps, ...textsOf(signs)];
  const isKnowable = gone !== undefined || hasPlace(context, held) || hasLed(context, held);
  const isAnybodyThere = present.some(hasIdentity) || signs.some(({ isLife }) => isLife);
  const common = { unread, reservations };
  return !isAnybodyThere && gaps.length === 0 && isKnowable
    ? {
        ...{ certainty: 'proven', verdict: 'missing', owner: gone, candidates: [], ...common },
        wasDeletedWithNamespace:
          reservations.length === 0 && gone !== undefined && wasSeenDeleted(context, held, gone),
      }
    : {
        certainty: 'unknown',
        verdict: 'unknown',
        owner: gone,
        candidates: [
          ...present,
          ...all.filter(
            (one) =>
              !present.includes(one) &&
              (isUnexplained(context, held, one) || isDisabled(context, held, one)),
          ),
        ],
        ...common,
      };
}

/**
 * Reports whether the gate saw this workload before or while it was deleted with the namespace. A direct clue has to
 * identify it (its own field manager wrote the finalizer, say), and nobody else may have permission on the type by name:
 * whatever else changes such objects may be the owner, seen or not.
 */
function wasSeenDeleted(context: Context, held: Held, gone: Candidate): boolean {
  const { actor, evidence } = gone;
  const isIdentified = evidence.some(
    ({ kind, strength }) => strength === 'direct' || kind === 'catalogue',
  );
  if (actor?.isGone !== true || !isIdentified) return false;
  if (mayOthersChange(context, held.type, actor.account)) return false;
  const { baseline, cluster } = context.now;
  const wasHere =
    isInside(context, actor.namespace) &&
    listed(baseline?.workloads).some(({ uid }) => uid === actor.uid);
  const home = listed(cluster.namespaces).find(({ name }) => name === actor.namespace);
  const stillRuns = actorsOf(context).some(
    ({ namespace, pods, programs }) =>
      namespace === actor.namespace &&
      pods.some(({ phase }) => phase === 'Running') &&
      programs.some((program) => actor.programs.includes(program)),
  );
  return (wasHere || home?.deletionTimestamp !== undefined) && !stillRuns;
}

function textsOf(signs: readonly Sign[]): string[] {
  return [...new Set(signs.map(({ text }) => text))];
}

/**
 * Sources that an answer rests on: each could show somebody, or contradict. Of the cluster, of the namespace itself,
 * and of those in which somebody may be who is meant.
 */
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

/** What was not read, or cut by a limit; its absence proves nothing about who is there. */
function unreadSources({ now }: Context): string[] {
  const asked = [now.cluster.deployments, now.cluster.clusterRoleBindings, now.cluster.leases];
  const unread = now.unread
    .filter(({ source }) => SOURCES.has(source ?? ''))
    .map(({ what }) => what);
  return asked.includes(undefined) ? [...unread, 'workloads, RBAC and Leases'] : unread;
}

/** Who evidence points to, and who may change the objects at all. */
function candidatesFor(context: Context, held: Held): Candidate[] {
  const names =
    held.objects.length === 0 ? [held.subject.name] : held.objects.map(({ name }) => name);
  const subresource = held.isInSpec === true ? 'finalize' : undefined;
  const rights = (account: Account | undefined, actor?: Actor): Rights => {
    if (actor !== undefined && isStatic(actor)) return { ...NO_RIGHTS, impersonates: true };
    return account === undefined
      ? NO_RIGHTS
      : rightsOf(context, account, held.type, names, subresource);
  };
  const found = new Map<string, Candidate>();
  const add = ({ actor, account }: Omit<OwnerEvidence, 'evidence'>): Candidate => {
    const key =
      actor === undefined ? JSON.stringify(account) : `${actorText(actor)} ${actor.isGone}`;
    const known = found.get(key) ?? {
      actor,
      account,
      evidence: [],
      rights: rights(account, actor),
    };
    found.set(key, known);
    return known;
  };
  for (const pointer of ownerEvidence(context, held)) {
    const { evidence, rights: own } = add(pointer);
    const { strength, kind, text } = pointer.evidence;
    const isNamed =
      kind === 'name' ? own.reconciles : own.change === 'named' || own.watch === 'named';
    if (evidence.some((known) => known.text === text)) continue;
    evidence.push({
      ...pointer.evidence,
      strength: strength !== 'shared' ? strength : isNamed ? 'identity' : 'hint',
    });
  }
  const actors = actorsOf(context);
  for (const actor of actors) {
    const own = rights(actor.account, actor);
    if (own.change !== undefined || own.watch === 'named') add({ actor, account: actor.account });
  }
  for (const account of ableAccounts(context, held.type).accounts) {
    const isUsed = actors.some((actor) => !actor.isGone && isSameAccount(actor.account, account));
    const { change } = rights(account);
    if (!isUsed && (change === 'named' || (change !== undefined && isCalledAs(held, account))))
      add({ actor: undefined, account });
  }
  return [...found.values()];
}

/** Its name is the one that the finalizer's writer, or that of the status, goes by. */
function isCalledAs(held: Held, { name }: Account): boolean {
  return namesToldBy(held).some((manager) => isSameProgram(manager, name));
}

/**
 * It cannot be the owner, whatever speaks for it: it may not change the object (unless something shows that
 * it tried, or that it works on just this object), it does not look at this namespace, or it is what the owner
 * makes of such objects: a database is not its operator.
 */
function isVetoed(context: Context, held: Held, candidate: Candidate): boolean {
  const { actor, evidence, rights } = candidate;
  if (actor !== undefined && (!looksHere(context, held, actor) || isMadeOf(held, actor))) {
    return true;
  }
  if (rights.change !== undefined || !isRbacRead(context) || actor?.isGone) return false;
  const tried = evidence.some(isOf('refusal'));
  // Who only reports in the status never had another right.
  const telling = evidence.filter((one) => one.kind !== 'status' || !rights.reconciles);
  // By a rule for all types, a policy engine watches them as well: only the product itself, or who writes their
  // status, has lost a right. A namesake for another namespace has rights there, and none in the whole cluster.
  const worksOnIt =
    (rights.watch === 'named' && telling.some(isIdentity)) ||
    (rights.watch !== undefined && evidence.some(isOf('catalogue'))) ||
    ((rights.watch !== undefined || rights.servesGroup) && telling.some(isOf('status')));
  // Rules about built-in types are nobody's own; who wrote the finalizer and still watches has lost a right.
  const isWatching =
    rights.watch !== undefined &&
    isBuiltIn(held.type.group) &&
    evidence.some(({ strength }) => strength === 'direct');
  return !tried && !worksOnIt && !isWatching;
}

/**
 * RBAC of the cluster and of this namespace is not all there is: a right may have gone with the namespace, or be
 * about others only, or another authorizer may give it. Who has no other business is not out of the question.
 */
function mayActOtherwise({ rights: { impersonates, worksElsewhere } }: Candidate): boolean {
  return impersonates || !worksElsewhere;
}

/** It is there and was at work on just this, by rights that could not be seen. */
function isUnexplained(context: Context, held: Held, candidate: Candidate): boolean {
  const { actor, evidence } = candidate;
  return (
    isHere(context, held, actor) &&
    evidence.some(({ strength }) => strength === 'direct') &&
    mayActOtherwise(candidate)
  );
}

/** Its rules are those of the type's reconciler, but for the right to change the objects. */
function isDisabled(context: Context, held: Held, { actor, evidence, rights }: Candidate): boolean {
  return (
    isHere(context, held, actor) &&
    rights.change === undefined &&
    rights.watch === 'named' &&
    rights.reconciles &&
    evidence.length > 0
  );
}

/** It may act as somebody RBAC does not tell, and is the only one who is called as the writer, by its own name. */
function chooseActing(
  context: Context,
  held: Held,
  candidates: readonly Candidate[],
): Choice | undefined {
  const manager = writerOf(held)?.manager ?? '';
  const [candidate, ...others] = candidates.filter(
    (one) =>
      one.rights.change === undefined &&
      isUnexplained(context, held, one) &&
      [one.actor?.name, one.account?.name, ...ownPrograms(one)].includes(manager),
  );
  return candidate?.rights.impersonates && others.length === 0
    ? { candidate, isClear: true }
    : undefined;
}

function ownPrograms({ actor }: Candidate): string[] {
  return actor !== undefined && isStatic(actor) ? actor.programs : [];
}

function looksHere({ now }: Context, { type }: Held, { watches }: Actor): boolean {
  return !type.namespaced || watches === undefined || watches.includes(now.namespace.name);
}

function isHere(context: Context, held: Held, actor: Actor | undefined): boolean {
  return actor !== undefined && !actor.isGone && looksHere(context, held, actor);
}

function isMadeOf({ type }: Held, actor: Actor): boolean {
  if (isBuiltIn(type.group)) return false;
  return [actor, actor.owner].some(
    (one) => one?.kind === type.kind && one.apiVersion.startsWith(`${type.group}/`),
  );
}

function hasIdentity({ evidence }: Candidate): boolean {
  return evidence.some(isIdentity);
}

function isIdentity({ strength }: Evidence): boolean {
  return strength !== 'hint';
}

function isOf(kind: Evidence['kind']): (one: Evidence) => boolean {
  return (one) => one.kind === kind;
}

/** They tell who serves the type. */
const SERVING: readonly Evidence['kind'][] = ['webhook', 'conversion', 'server'];

/** They tell who works on such objects, by the name that it does so. */
const BY_NAME: readonly Evidence['kind'][] = ['status', 'event'];

/** They tell who has to do with the type, not who has put this finalizer there. */
const ON_THE_TYPE: readonly Evidence['kind'][] = [...SERVING, ...BY_NAME, 'lease', 'release'];

/**
 * What wrote the finalizer has another name than this one, under which it would have written that as well. A name
 * with a slash is set by hand: by default it ends before the first (apiserver pkg/endpoints/handlers, managerOrUserAgent).
 */
function isByAnother(held: Held, { actor, evidence }: Candidate): boolean {
  const writer = writerOf(held)?.manager ?? '';
  const tells = tellingWriter(held) !== '' || isOfAnyController(writer);
  const isIts =
    actor?.programs.some((program) => isSameProgram(program, writer)) === true ||
    evidence.some(isOf('writer'));
  return tells && !writer.includes('/') && !isIts;
}

interface Choice {
  candidate: Candidate;
  /** Nothing points to anybody else, and what points to this one is not only indirect. */
  isClear: boolean;
}

function choose(
  context: Context,
  held: Held,
  candidates: readonly Candidate[],
): Choice | undefined {
  const direct = candidates.filter(({ evidence }) =>
    evidence.some(({ strength }) => strength === 'direct'),
  );
  if (direct.length > 0) {
    const candidate = most(direct, 'direct') ?? most(direct, 'identity');
    if (candidate === undefined || isReplaced(held, candidate, candidates)) return undefined;
    if (isPassedOn(context, held, candidate, candidates)) return undefined;
    const contradicts = candidates.some(
      (other) =>
        other !== candidate && kindsOf(other, 'identity') > kindsOf(candidate, 'identity') + 1,
    );
    return { candidate, isClear: direct.length === 1 && !contradicts };
  }
  const writers = candidates.filter((candidate) => isCalledAsWriter(context, held, candidate));
  const called = candidates.filter((candidate) =>
    candidate.evidence.some(
      (one) =>
        isIdentity(one) && !isRefuted(context, held, { candidate, one, candidates, writers }),
    ),
  );
  const known = called.filter(({ evidence }) =>
    evidence.some((one) => isIdentity(one) && one.kind !== 'name'),
  );
  const identified = known.length > 0 ? known : called;
  return identified.length > 0
    ? chooseIdentified(context, held, identified, candidates)
    : guess(context, held, candidates, writers);
}

/**
 * Who may change everything, and is not called after the type, may have written what somebody else had set: backup
 * tools restore objects with their finalizers.
 */
function isPassedOn(
  context: Context,
  held: Held,
  candidate: Candidate,
  candidates: readonly Candidate[],
): boolean {
  const { rights, evidence } = candidate;
  return (
    rights.change === 'everything' &&
    meantBy(context, held).relation === 'own' &&
    evidence.every(({ kind, strength }) => strength === 'hint' || kind === 'writer') &&
    !isCalledAfterType(held, writerOf(held)?.manager ?? '') &&
    candidates.some((other) => other !== candidate && mayReconcile(context, held, other))
  );
}

/** What speaks for it as somebody who has to do with the type, where something else wrote the finalizer. */
function isRefuted(
  context: Context,
  held: Held,
  given: {
    candidate: Candidate;
    one: Evidence;
    candidates: readonly Candidate[];
    writers: readonly Candidate[];
  },
): boolean {
  const { candidate, one, candidates, writers } = given;
  if (!ON_THE_TYPE.includes(one.kind)) return false;
  if (writers.some(({ rights }) => changesByName(rights)) && !writers.includes(candidate)) {
    return true;
  }
  if (!BY_NAME.includes(one.kind)) return false;
  // Where the finalizer is not of the type's own domain, and a person or somebody with a name of its own has put it
  // there, who works on the type has nothing to do with it.
  const writer = writerOf(held)?.manager ?? '';
  const isNameless = isOfAnyController(writer);
  if (meantBy(context, held).relation !== 'own' && writer !== '' && !isNameless) return true;
  const isFamiliar = isNameless || isLabelled(candidate);
  return isByAnother(held, candidate) && (!isFamiliar || hasRival(candidate, candidates));
}

/** By rules about the type somebody else could be the one as well. */
function hasRival(candidate: Candidate, candidates: readonly Candidate[]): boolean {
  return candidates.some((other) => other !== candidate && changesByName(other.rights));
}

function chooseIdentified(
  context: Context,
  held: Held,
  identified: readonly Candidate[],
  candidates: readonly Candidate[],
): Choice | undefined {
  const candidate = most(identified, 'identity');
  if (candidate === undefined) return undefined;
  const isBy = (kinds: readonly Evidence['kind'][]): boolean =>
    candidate.evidence.every((one) => !isIdentity(one) || kinds.includes(one.kind));
  // What only serves the type may stand beside the one that reconciles it.
  const isServer = isBy(SERVING) && !isLabelled(candidate);
  if (isServer && hasRival(candidate, candidates.filter(isLabelled))) return undefined;
  // A domain that is not that of the object's type: who made either may not be who put it here.
  const isContested =
    meantBy(context, held).relation !== 'own' &&
    !isBuiltIn(held.type.group) &&
    catalogued(held) === undefined;
  const isDoubtful = isContested || (isBy(ON_THE_TYPE) && isByAnother(held, candidate));
  return { candidate, isClear: identified.length === 1 && !isDoubtful };
}

/** A name, or a label, tells only where nobody else has such rights. */
function guess(
  context: Context,
  held: Held,
  candidates: readonly Candidate[],
  writers: readonly Candidate[],
): Choice | undefined {
  const [only, ...others] = candidates.filter(
    (candidate) => isDedicated(context, held, candidate) || writers.includes(candidate),
  );
  if (only === undefined || others.length > 0 || only.rights.watch === undefined) return undefined;
  const isUsual = isBuiltIn(held.type.group);
  const isCommon = isUsual && meantBy(context, held).relation === 'unclear';
  const isAlone = candidates.every(
    (one) =>
      one === only ||
      !(isCommon ? one.rights.watch !== undefined : mayReconcile(context, held, one)),
  );
  const isRuled = isUsual || only.rights.change === 'named';
  return isRuled && isAlone ? { candidate: only, isClear: false } : undefined;
}

/**
 * It sleeps, and somebody else with rights on the type, by another account, has written the status since the
 * deletion: whether that one has taken over cannot be told.
 */
function isReplaced(
  held: Held,
  { actor: asleep, account }: Candidate,
  candidates: readonly Candidate[],
): boolean {
  if (asleep === undefined || isAlive(asleep)) return false;
  const late = lateWriters(held);
  return candidates.some(
    ({ actor, account: other, rights, evidence }) =>
      actor !== undefined &&
      isAlive(actor) &&
      rights.change === 'named' &&
      evidence.some(isOf('status')) &&
      late.some(({ manager }) => speaksAs(actor, manager)) &&
      !isSameAccount(other, account),
  );
}

/**
 * `manager` or `controller` is what any program may be called. Where rules about the type leave few, and the
 * finalizer's writer is called as just one of all who may write it, that one may be meant.
 */
function isCalledAsWriter(context: Context, held: Held, { actor, rights }: Candidate): boolean {
  const writer = writerOf(held)?.manager ?? '';
  if (!isOfAnyController(writer) || rights.change === undefined) return false;
  if (actor?.programs.includes(writer) !== true) return false;
  const { relation } = meantBy(context, held);
  return relation !== 'other' || meantRights(context, held, actor).some(changesByName);
}

/** The one with the most kinds of evidence; undefined on a tie. */
function most(
  candidates: readonly Candidate[],
  strength: 'direct' | 'identity',
): Candidate | undefined {
  const ranked = candidates.toSorted((a, b) => kindsOf(b, strength) - kindsOf(a, strength));
  const [first, second] = ranked;
  if (first === undefined || second === undefined) return first;
  return kindsOf(first, strength) > kindsOf(second, strength) ? first : undefined;
}

function kindsOf({ evidence }: Candidate, strength: Evidence['strength']): number {
  return new Set(evidence.flatMap((one) => (one.strength === strength ? one.kind : []))).size;
}

/**
 * Its rules are written for the reconciler of just this type (its status or finalizers, with a watch), and
 * it is called after the type or was labelled together with it. That is a hint and no more.
 */
function isDedicated(context: Context, held: Held, candidate: Candidate): boolean {
  const { actor, rights } = candidate;
  // What wrote the finalizer has a name of its own, which this one does not have.
  if (tellingWriter(held) !== '') return false;
  // A known product has other names.
  if ((catalogued(held)?.workload.length ?? 0) > 0) return false;
  if (actor === undefined || rights.change === undefined || rights.watch === undefined)
    return false;
  if (sharesAccount(context, actor)) return false;
  if (meantBy(context, held).relation === 'unclear') return false;
  // The domain may be that of a company with an operator for each of its types.
  const isForAll = meantRights(context, held, actor).every(({ watch }) => watch !== undefined);
  const isMarked = isLabelled(candidate) || isCalledAfterType(held, actor.name);
  return isMarked && isForAll && mayReconcile(context, held, candidate);
}

/** On each type that the finalizer speaks for: of one that is not the type's own, its reconciler knows nothing. */
function meantRights(context: Context, held: Held, { account }: Actor): Rights[] {
  const { relation, groups } = meantBy(context, held);
  const meant =
    relation === 'other'
      ? typesOf(context).filter(({ group }) => groups.includes(group))
      : [held.type];
  return meant.map((type) => rightsOf(context, account, type, []));
}

function changesByName({ change, watch }: Rights): boolean {
  return change === 'named' && watch !== undefined;
}

function mayReconcile(context: Context, held: Held, { actor }: Candidate): boolean {
  return (
    actor !== undefined &&
    meantRights(context, held, actor).some((one) => changesByName(one) && one.reconciles)
  );
}

function isLabelled({ evidence }: Candidate): boolean {
  return evidence.some(isOf('labels'));
}

/** Something that shows that somebody who may be the owner lives, or would if it had replicas. */
interface Sign {
  text: string;
  /** Enough to say that nobody is missing; without it, only to keep hands off. */
  isLife: boolean;
}

/**
 * Everything that speaks for somebody besides `owner` being at work. Where nobody was found, all who could
 * act count, identified or not, asleep or not; beside an owner, only who is near it.
 */
function signsOfLife(
  context: Context,
  held: Held,
  candidates: readonly Candidate[],
  { owner, gone }: { owner?: Candidate; gone?: Candidate | undefined },
): Sign[] {
  const life = (text: string): Sign => ({ text, isLife: true });
  const others = candidates.filter(({ actor }) => isHere(context, held, actor));
  if (owner !== undefined) {
    return others
      .filter((candidate) => candidate !== owner && isNear(candidate, owner))
      .map(({ actor }) => life(`${stateText(actor as Actor)} and may be its owner as well`));
  }
  const able = others.flatMap(({ actor, rights }) =>
    actor !== undefined &&
    // Who only watches may have lost the right to change; built-in types have many who watch.
    (rights.change !== undefined || (rights.watch === 'named' && !isBuiltIn(held.type.group))) &&
    !isSomebodyElse(held, actor, rights)
      ? [life(`${stateText(actor)} and may ${abilityText(rights)}`)]
      : [],
  );
  // Whoever holds it and was seen is judged for itself.
  const leases = [
    ...leasesOf(context, meantBy(context, held)),
    ...leasesOfWriter(context, held, (lease) => [lease.name, ...writersOf(lease)]),
  ]
    .filter((lease) => isRenewed(context, lease) && holderOf(context, lease) === undefined)
    .map(({ namespace, name, holder }) =>
      life(`Lease ${namespace}/${name} is renewed by ${holder}`),
    );
  const fromOutside = (who: string): string => `${who} may change it, from outside of the cluster`;
  const users = ableAccounts(context, held.type)
    .accounts.filter((account) => {
      const { change, watch } = rightsOf(context, account, held.type, []);
      return account.namespace === undefined && change === 'named' && watch !== undefined;
    })
    .map((account) => fromOutside(accountText(account)));
  return [
    ...able,
    ...leases,
    ...outsiders(context, held.type).map((who) => life(fromOutside(who))),
    ...outOfSight(context, held).map(life),
    ...unseenWriters(context, held, candidates).map(life),
    ...pointedTo(context, held, others, wasHere(context, held, gone)),
    ...mayHaveHadRights(context, held, gone).map(life),
    ...users.map((text) => ({ text, isLife: false })),
  ];
}

/** It runs, and evidence points to it too, or it has rights of its own on the type. */
function isNear(candidate: Candidate, owner: Candidate): boolean {
  const { actor, account, rights } = candidate;
  if (actor === undefined || !mayRun(actor)) return false;
  // Several programs of one product often share one account: rights alone do not tell them apart.
  const isOfOwnAccount = !isSameAccount(account, owner.account);
  const mayAct = rights.change === 'named' && rights.watch !== undefined && isOfOwnAccount;
  return hasIdentity(candidate) || mayAct;
}

/** A tool without a watch acts when it is told to; a known product looks after its own finalizers. */
function isSomebodyElse(held: Held, { name, programs }: Actor, rights: Rights): boolean {
  if (rights.change !== undefined && rights.watch === undefined) return true;
  if (rights.change === 'named' || rights.watch === 'named') return false;
  const names = [name, ...programs].filter((own) => !isOfAnyController(own));
  const products = names.flatMap(productsOf);
  const own = catalogued(held);
  const domain = domainOf(held.finalizer);
  return (
    products.length > 0 &&
    !isCalledAfterType(held, name) &&
    !products.some(({ owner, match }) => owner === own?.owner || domainOf(match) === domain)
  );
}

function mayRun(actor: Actor): boolean {
  return isAlive(actor) || (!actor.isGone && actor.wanted > 0);
}

function stateText(actor: Actor): string {
  const state = isAlive(actor) ? 'runs' : actor.wanted === 0 ? 'is scaled to zero' : 'is there';
  return `${actorText(actor)} ${state}`;
}

function abilityText({ change }: Rights): string {
  switch (change) {
    case 'named':
      return 'change objects of this type';
    case 'everything':
      return 'change everything';
    case undefined:
      return 'watch objects of this type';
  }
}

function outOfSight({ now }: Context, held: Held): string[] {
  if (!isOftenManaged(held)) return [];
  const nodes = now.cluster.providerNodes;
  if (nodes?.ok !== true) return ['whether a cloud provider runs it could not be read'];
  const isProvider = nodes.value.some(
    ({ providerId }) => providerId !== '' && !/^(?:kind|k3s):\/\//.test(providerId),
  );
  return isProvider
    ? ['the nodes belong to a cloud provider, which may run it where this cluster does not show it']
    : [];
}

/** Writes to the status since the deletion, but for those of who was seen and cannot be the owner, or is gone. */
function unseenWriters(context: Context, held: Held, candidates: readonly Candidate[]): string[] {
  const gone = candidates.flatMap(({ actor }) => (actor?.isGone ? actor.programs : []));
  const seen = actorsOf(context).flatMap(({ programs }) => programs.filter(isTelling));
  const late = lateWriters(held)
    .filter(({ manager }) => !OF_NOBODY.test(manager) && ![...gone, ...seen].includes(manager))
    .map(
      ({ object: { kind, name }, manager }) =>
        `"${manager}" has updated the status of ${kind} ${name} since the deletion began`,
    );
  return [...new Set(late)];
}

/** What set the finalizer went with this namespace: namesakes elsewhere look after their own. */
function wasHere(context: Context, held: Held, gone: Candidate | undefined): boolean {
  if (gone === undefined || !isInside(context, (gone.actor ?? gone.account)?.namespace))
    return false;
  return (
    gone.evidence.some(({ strength }) => strength === 'direct') ||
    (gone.rights.change === 'named' && gone.account?.name === tellingWriter(held))
  );
}

/**
 * Who runs, or wants to, and is pointed to, whatever rights could be seen. That is life where a right that could
 * not be seen explains it; where the one who did it is known to have gone, only one that went as well.
 */
function pointedTo(
  context: Context,
  held: Held,
  candidates: readonly Candidate[],
  isGoneKnown: boolean,
): Sign[] {
  return candidates.flatMap((candidate) => {
    const { actor, account, evidence } = candidate;
    // Who is only called so is not named as the owner, and reason enough to keep hands off.
    const pointer = evidence.find((one) => isIdentity(one) || one.kind === 'name');
    if (actor === undefined || pointer === undefined) return [];
    if (!mayRun(actor) && pointer.strength !== 'direct') return [];
    const isTold = pointer.strength === 'direct' || evidence.some(isOf('catalogue'));
    const hadRight = account !== undefined && departedGrant(context, account) !== undefined;
    // Whose finalizer it is by its domain has no other business.
    const isMeant = meantRights(context, held, actor).some(changesByName);
    const mayHave = isMeant || mayActOtherwise(candidate);
    const isLife = isTold && (hadRight || !isGoneKnown) && mayHave;
    return [{ text: `${stateText(actor)}, and ${pointer.text}`, isLife }];
  });
}

/**
 * A controller that is called after the type, and nothing shows what else it is for: its rights were those of a
 * RoleBinding here, or may have been where nobody has seen those that went.
 */
function mayHaveHadRights(context: Context, held: Held, gone: Candidate | undefined): string[] {
  if (wasHere(context, held, gone)) return [];
  // A gate that came late may have found none any more.
  const isSeen = listed(context.now.baseline?.roleBindings).length > 0;
  const manager = writerOf(held)?.manager ?? '';
  return actorsOf(context)
    .filter(
      (actor) =>
        isHere(context, held, actor) &&
        !isInside(context, actor.namespace) &&
        isCalledAfterType(held, actor.name) &&
        (actor.programs.includes(manager) || /operator|controller|manager/.test(actor.name)),
    )
    .filter(({ account }) => {
      const { change, worksElsewhere } = rightsOf(context, account, held.type, []);
      const isIdle = change === undefined && !worksElsewhere;
      return isIdle && (!isSeen || departedGrant(context, account) !== undefined);
    })
    .map(
      (actor) =>
        `${stateText(actor)}, and ${isSeen ? 'had' : 'may have had'} its rights in this namespace`,
    );
}

/** What is known to be gone: a workload that was there, or an account with rights that nobody uses. */
function goneOwner(
  context: Context,
  held: Held,
  candidates: readonly Candidate[],
): Candidate | undefined {
  const departed = candidates.filter(({ actor }) => actor?.isGone);
  const { relation } = meantBy(context, held);
  const identified =
    most(departed.filter(hasIdentity), 'direct') ?? most(departed.filter(hasIdentity), 'identity');
  if (identified !== undefined) return identified;
  const [onlyGone] = departed;
  if (departed.length === 1 && onlyGone !== undefined && relation === 'own') {
    const { evidence, rights } = onlyGone;
    if (evidence.length > 0 || rights.reconciles) return onlyGone;
  }
  if (relation === 'other') return undefined;
  const accounts = candidates.filter(
    ({ actor, account, evidence, rights }) =>
      actor === undefined &&
      (rights.reconciles ||
        evidence.some(isOf('refusal')) ||
        (account !== undefined && isCalledAs(held, account))),
  );
  return accounts.length === 1 ? accounts[0] : undefined;
}

/** What wrote the finalizer led in this cluster, by a Lease that it has left behind. */
function hasLed(context: Context, held: Held): boolean {
  return leasesOfWriter(context, held, writersOf).some(
    (lease) => !isRenewed(context, lease) && holderOf(context, lease) === undefined,
  );
}

/** A place where the owner would have to be: its type is defined here, or its product has known names. */
function hasPlace(context: Context, held: Held): boolean {
  if ((catalogued(held)?.workload.length ?? 0) > 0) return true;
  const { relation } = meantBy(context, held);
  if (relation === 'unclear' && tellingWriter(held) === '') return false;
  const definitions = listed(context.now.cluster.definitions).map(({ name }) => name);
  return definitionNames(context, held).some((name) => definitions.includes(name));
}
