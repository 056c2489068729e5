import type { ObjectFacts } from '../../model/snapshot.ts';
import type { Actor } from '../actors.ts';
import { type Context, detailOf, isBuiltIn } from '../context.ts';
import { departedGrant, isRbacRead, rightsOf } from '../rights.ts';
import { typesOfDomain } from './held.ts';
import { hasClue, hasObjectClue, type OwnerQuestion, type Suspect } from './suspects.ts';

/** A reason why a suspect cannot be the owner, whatever points to it. */
interface Exclusion {
  /** The sentence that the report shows about the suspect. */
  reason: string;
  /** RBAC may have changed since, so what it excludes may still be alive. */
  isForLackOfPermission?: boolean;
  /** Its arguments leave the namespace out: a change of them makes it act. */
  isRestriction?: boolean;
  excludes: (suspect: Suspect, question: OwnerQuestion) => boolean;
}

/** Every exclusion, in the order in which they are tried. */
export const EXCLUSIONS: readonly Exclusion[] = [
  {
    reason: 'its arguments or environment restrict it to other namespaces',
    isRestriction: true,
    excludes: ({ actor }, question) => actor !== undefined && !watchesNamespace(actor, question),
  },
  {
    reason: 'its arguments select objects by other labels',
    excludes: ({ actor }, { held: { objects } }) =>
      actor !== undefined &&
      objects.length > 0 &&
      objects.every(({ labels }) =>
        actor.selectors.some((selector) => !mayMatch(OBJECTS, selector, labels)),
      ),
  },
  {
    reason: 'its arguments are for another class than the object names',
    excludes: ({ actor }, { context, held: { objects, type } }) =>
      actor !== undefined &&
      !isBuiltIn(type.group) &&
      objects.length > 0 &&
      objects.every((object) =>
        actor.selectors.some((argument) => isOfOtherClass(context, argument, object)),
      ),
  },
  {
    reason: 'it is an operand: the workload belongs to an object of the type',
    excludes: ({ actor }, question) => actor !== undefined && isOperandOf(actor, question),
  },
  {
    reason: 'it may neither update nor patch the object, and nothing shows that it tried',
    isForLackOfPermission: true,
    excludes: (suspect, { context, held }) =>
      isRbacRead(context) &&
      !suspect.actor?.isGone &&
      suspect.program === undefined &&
      suspect.rights.change === undefined &&
      !suspect.rights.impersonates &&
      !triedToAct(suspect) &&
      (suspect.account === undefined ||
        departedGrant(context, suspect.account, held.type) === undefined),
  },
  {
    reason: 'the domain of the finalizer is another API group, on which it has no permission',
    isForLackOfPermission: true,
    excludes: ({ account, program }, question) => {
      const { context, held, domain } = question;
      if (domain.relation !== 'other') return false;
      return (
        program === undefined &&
        account !== undefined &&
        typesOfDomain(context, held, domain).every((type) => {
          const { change, watch } = rightsOf(context, account, type, []);
          return change === undefined && watch === undefined;
        })
      );
    },
  },
];

/** A suspect that cannot be the owner, and why. */
export interface Excluded {
  suspect: Suspect;
  by: Exclusion;
}

/** Separates the suspects that an exclusion rules out. */
export function applyExclusions(
  suspects: readonly Suspect[],
  question: OwnerQuestion,
): { left: Suspect[]; excluded: Excluded[] } {
  const left: Suspect[] = [];
  const excluded: Excluded[] = [];
  for (const suspect of suspects) {
    const by = EXCLUSIONS.find(({ excludes }) => excludes(suspect, question));
    if (by === undefined) left.push(suspect);
    else excluded.push({ suspect, by });
  }
  return { left, excluded };
}

/**
 * Reports whether it lost a permission: a refusal names it, or a clue is about this object and it still watches the
 * type.
 */
function triedToAct(suspect: Suspect): boolean {
  return hasClue(suspect, 'quoted') || (hasObjectClue(suspect) && suspect.rights.reachesGroup);
}

function watchesNamespace(actor: Actor, { context: { now }, held }: OwnerQuestion): boolean {
  const { watches, ignores = [], selectors } = actor;
  const { name, labels } = now.namespace;
  return (
    !held.type.namespaced ||
    (watches?.includes(name) !== false &&
      !ignores.includes(name) &&
      selectors.every((selector) => mayMatch(NAMESPACES, selector, labels)))
  );
}

const NAMESPACES = /^--?(?:watch-)?namespace-(?:label-)?selector=(.*)$/;
/** `--selector` and `--label-selector` may be about Secrets or pods of the controller itself. */
const OBJECTS = /^--?(?:watch|object)-(?:label-?)?selector=(.*)$/;

/**
 * Reports whether labels may match an argument, such as `--namespace-selector=team=a`; only equality is compared, and
 * other arguments match.
 */
function mayMatch(option: RegExp, argument: string, labels: Record<string, string>): boolean {
  const [, selector = ''] = option.exec(argument) ?? [];
  return selector.split(',').every((requirement) => {
    const [, key = '', value] = /^([\w./-]+)==?([\w.-]*)$/.exec(requirement) ?? [];
    return value === undefined || labels[key] === value;
  });
}

/**
 * Reports whether an argument such as `--widget-class=blue` and a field such as `spec.widgetClass` or `spec.class` of a
 * Widget differ. Other classes, as `--storage-class`, are of what the controller makes.
 */
function isOfOtherClass(context: Context, argument: string, object: ObjectFacts): boolean {
  const own = ['class', `${object.kind.toLowerCase()}class`];
  const [, option = '', values = ''] = /^--?([\w-]*class)(?:-name)?=(.+)$/.exec(argument) ?? [];
  if (!own.includes(option.replaceAll('-', ''))) return false;
  const { siblings = [] } = detailOf(context, object) ?? {};
  const named = siblings.map((one) => one.split('/')).filter(([field = '']) => own.includes(field));
  return named.length > 0 && named.every(([, value = '']) => !values.split(',').includes(value));
}

function isOperandOf({ owner }: Actor, { held: { type } }: OwnerQuestion): boolean {
  return owner?.kind === type.kind && owner.apiVersion.startsWith(`${type.group}/`);
}
