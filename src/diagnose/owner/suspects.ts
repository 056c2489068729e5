import { type Actor, accountText, actorsOf, actorText, isStatic } from '../actors.ts';
import { type Context, isBuiltIn } from '../context.ts';
import { type Account, NO_RIGHTS, type Rights, rightsOf } from '../rights.ts';
import { type FinalizerDomain, finalizerDomain, type Held } from './held.ts';

/** Everything that clues read about one held finalizer, computed once. */
export interface OwnerQuestion {
  context: Context;
  held: Held;
  domain: FinalizerDomain;
  actors: readonly Actor[];
  /** Returns the permissions that RBAC grants an account on the held objects. */
  rightsOf: (account: Account) => Rights;
}

/** One kind of evidence about who owns a finalizer. */
export interface ClueRow {
  kind: string;
  /**
   * `decides`: only one program can leave it. `marks`: leads by itself. `supports`: two, one of them a permission, lead
   * where nobody has the marks.
   */
  weight: 'decides' | 'marks' | 'supports';
  /** The sentence that the report shows about the suspect. */
  text: string;
  pointsTo: (question: OwnerQuestion) => Pointer[];
}

/** A clue that was found. */
type Clue = Omit<ClueRow, 'pointsTo'>;

/** A controller that may own the finalizer. */
export interface Suspect {
  /** Undefined: an account that no workload uses, or a program that no workload is named after. */
  actor: Actor | undefined;
  account: Account | undefined;
  /** The name of a program that no workload in the cluster matches. */
  program?: string | undefined;
  clues: Clue[];
  rights: Rights;
  /** Why its arguments leave the object out. */
  restriction?: string;
}

/** The suspect to which a clue points. */
export type Pointer = Pick<Suspect, 'actor' | 'account' | 'program'> & { detail: string };

export function questionAbout(context: Context, held: Held): OwnerQuestion {
  const names =
    held.objects.length === 0 ? [held.subject.name] : held.objects.map(({ name }) => name);
  const subresource = held.isInSpec === true ? 'finalize' : undefined;
  const known = new Map<string, Rights>();
  const rights = (account: Account): Rights => {
    const key = accountText(account);
    const found = known.get(key) ?? rightsOf(context, account, held.type, names, subresource);
    known.set(key, found);
    return found;
  };
  return {
    context,
    held,
    domain: finalizerDomain(context, held),
    actors: actorsOf(context),
    rightsOf: rights,
  };
}

export function rightsOfSuspect(
  question: OwnerQuestion,
  actor: Actor | undefined,
  account: Account | undefined,
): Rights {
  // A static pod acts by credentials of its own, which RBAC does not show.
  if (actor !== undefined && isStatic(actor)) return { ...NO_RIGHTS, impersonates: true };
  return account === undefined ? NO_RIGHTS : question.rightsOf(account);
}

/** Returns "Deployment ops/widget-operator", or the account that no workload uses. */
export function suspectText({
  actor,
  account,
  program,
}: Omit<Suspect, 'clues' | 'rights'>): string {
  if (actor !== undefined) return actorText(actor);
  if (account !== undefined) return accountText(account);
  return `a program that calls itself "${program}"`;
}

/** Reports whether a workload exists, whether or not it has replicas. */
export function workloadExists(suspect: Suspect | undefined): boolean {
  return suspect?.actor !== undefined && !suspect.actor.isGone;
}

/**
 * Reports whether a clue ties it to the finalizer. Many programs may change a built-in type of namespaces: a permission on
 * one ties nobody, unless the finalizer belongs to a group whose types it may change, too.
 */
export function isTied({ held, domain }: OwnerQuestion, { clues }: Suspect): boolean {
  const { group, namespaced } = held.type;
  const isCommon = namespaced && isBuiltIn(group) && domain.relation !== 'other';
  return clues.some(({ kind }) => !isCommon || kind !== 'permission');
}

/** Reports whether a clue decides: only one program can leave it. */
export function isDecided({ clues }: Suspect): boolean {
  return clues.some(({ weight }) => weight === 'decides');
}

/** Reports whether something beside a permission ties it to the finalizer. */
export function isMoreThanAble({ clues }: Suspect): boolean {
  return clues.some(({ kind }) => kind !== 'permission');
}
