import type { LabelRequirement, ObjectFacts } from '../../model/snapshot.ts';
import { type Actor, actorsOf } from '../actors.ts';
import { matchesLabels } from '../admission/guards.ts';
import { type Context, detailOf, groupOf, typesOf } from '../context.ts';
import { departedGrant, isRbacRead, rightsOf } from '../rights.ts';
import { typesOfDomain } from './held.ts';
import { isHolder, leasesOfGroups } from './leases.ts';
import { hasClue, hasObjectClue, type OwnerQuestion, type Suspect } from './suspects.ts';

/** A reason why a suspect cannot be the owner, whatever points to it. */
interface Exclusion {
  /** The sentence that the report shows about the suspect. */
  reason: string;
  /** RBAC may have changed since, so what it excludes may still be alive. */
  isForLackOfPermission?: boolean;
  /** Its arguments leave the namespace or the objects out: a change of them makes it act. */
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
    isRestriction: true,
    excludes: ({ actor }, { held: { objects } }) =>
      actor !== undefined &&
      objects.length > 0 &&
      objects.every(({ labels }) =>
        actor.selectors.some((selector) => !mayMatch(OBJECTS, selector, labels)),
      ),
  },
  {
    reason: 'its arguments are for another class than the object names',
    excludes: ({ actor }, { context, held: { objects } }) =>
      actor !== undefined &&
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
    excludes: (suspect, question) =>
      isRbacRead(question.context) &&
      !suspect.actor?.isGone &&
      suspect.program === undefined &&
      suspect.rights.change === undefined &&
      !suspect.rights.impersonates &&
      !actsForType(suspect, question) &&
      (suspect.account === undefined ||
        departedGrant(question.context, suspect.account, question.held.type) === undefined),
  },
  {
    reason:
      'the domain of the finalizer is another API group, in which it may change nothing and which no permission of it names',
    isForLackOfPermission: true,
    excludes: ({ account, program }, question) => {
      const { context, held, domain } = question;
      if (domain.relation !== 'other') return false;
      return (
        program === undefined &&
        account !== undefined &&
        typesOfDomain(context, held, domain).every((type) => {
          const { change, watch } = rightsOf(context, account, type, []);
          return change === undefined && watch !== 'named';
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
 * Reports whether it may have lost a permission: a refusal names it, it leads by a Lease of the group, or a clue is about
 * this object and it still has a permission that names the group.
 */
function actsForType(suspect: Suspect, { context, domain }: OwnerQuestion): boolean {
  const { actor, rights } = suspect;
  const leads =
    actor !== undefined && leasesOfGroups(context, domain).some((lease) => isHolder(actor, lease));
  return hasClue(suspect, 'quoted') || leads || (hasObjectClue(suspect) && rights.reachesGroup);
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

/** `--namespace-selector=team=a`, `WATCH_NAMESPACE_SELECTOR=team: a`. */
const NAMESPACES = /^(?:--?)?(?:watch[-_])?namespace[-_](?:label[-_])?selector=(.*)$/i;
/** `--selector` and `--label-selector` may be about Secrets or pods of the controller itself. */
const OBJECTS = /^(?:--?)?(?:watch|object)[-_](?:label[-_]?)?selector=(.*)$/i;

/** Reports whether labels match a setting of this name; other settings match. */
function mayMatch(option: RegExp, setting: string, labels: Record<string, string>): boolean {
  const [, selector = ''] = option.exec(setting) ?? [];
  return matchesLabels(requirementsIn(selector), labels);
}

/**
 * A requirement of a selector that is written as a text: `a=b`, `a: b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`
 * (apimachinery pkg/labels/selector.go).
 */
const REQUIREMENT =
  /(?:^|,)\s*(!?)([\w./-]+)\s*(?:(==?|!=|:)\s*([\w.-]*)|(in|notin)\s*\(([^)]*)\))?\s*(?=,|$)/g;

function requirementsIn(selector: string): LabelRequirement[] {
  return [...selector.matchAll(REQUIREMENT)].map(
    ([, not, key = '', sign, value = '', among, list]) => {
      const isNegative = not === '!' || sign === '!=' || among === 'notin';
      const values = list?.split(',').map((one) => one.trim()) ?? (sign ? [value] : []);
      return { key, operator: isNegative ? 'NotIn' : 'In', values };
    },
  );
}

/**
 * Reports whether an argument such as `--widget-class=blue` is for another class than the object names: a Widget in
 * `spec.widgetClass` or `spec.class`, any object in an annotation such as `example.com/widget.class` or
 * `widget.example.com/class`. Other classes, as `--storage-class`, are of what the controller makes.
 */
function isOfOtherClass(context: Context, argument: string, object: ObjectFacts): boolean {
  const { name, values } = classSetting(argument);
  const named = namedClasses(context, object).filter(({ names }) => names.includes(name));
  return named.length > 0 && named.every(({ value }) => !values.includes(value));
}

function classSetting(setting: string): { name: string; values: string[] } {
  const [, option = '', values = ''] = /^--?([\w-]*class)(?:-name)?=(.+)$/.exec(setting) ?? [];
  return { name: option.replaceAll('-', ''), values: values.split(',') };
}

/**
 * Returns the classes that the object names, each with the names that an argument for it may have. A field such as
 * `dbInstanceClass` may be a size of machines: for a forecast it names a class only if a setting or a type of classes exists. After
 * the deletion it always does, because a controller may have its class from settings that are not read.
 */
function namedClasses(
  context: Context,
  object: ObjectFacts,
): { names: readonly string[]; value: string }[] {
  const own = ['class', `${object.kind.toLowerCase()}class`];
  const { siblings = [] } = detailOf(context, object) ?? {};
  const fields = siblings.flatMap((one) => {
    const [field = '', value = ''] = one.split('/');
    return own.includes(field.toLowerCase()) && value !== '' ? [{ names: own, value }] : [];
  });
  const isServed = (name: string): boolean =>
    typesOf(context).some(({ kind }) => kind.toLowerCase() === name) ||
    actorsOf(context).some(({ selectors }) =>
      selectors.some((setting) => classSetting(setting).name === name),
    );
  const annotated = Object.entries(object.annotations).flatMap(([key, value]) => {
    const [, domain, word = ''] = /^(?:([\w-]+)[\w.-]*\/)?(?:([\w-]+)\.)?class$/.exec(key) ?? [];
    return domain === undefined || value === ''
      ? []
      : [{ names: ['class', `${word || domain}class`], value }];
  });
  const isMeant = context.now.forecast === undefined || own.some(isServed);
  return [...(isMeant ? fields : []), ...annotated];
}

/** Returns the classes that the object names, in such a field or annotation. */
export function classesOf(context: Context, object: ObjectFacts): string[] {
  return namedClasses(context, object).map(({ value }) => value);
}

function isOperandOf({ owner }: Actor, { held: { type } }: OwnerQuestion): boolean {
  return `${groupOf(owner?.apiVersion ?? '')}/${owner?.kind}` === `${type.group}/${type.kind}`;
}
