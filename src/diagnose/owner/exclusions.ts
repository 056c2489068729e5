import type { LabelRequirement, ObjectFacts } from '../../model/snapshot.ts';
import { type Actor, listOfOthers } from '../actors.ts';
import { matchesLabels } from '../admission/guards.ts';
import { type Context, groupOf, listNames, specSettings } from '../context.ts';
import { departedGrant, hadRights, isRbacRead, rightsOf } from '../rights.ts';
import { hasClue } from './clues.ts';
import { typesOfDomain } from './held.ts';
import { isHolder, leasesOfGroups } from './leases.ts';
import { isDecided, type OwnerQuestion, type Suspect } from './suspects.ts';

/** A reason why a suspect stands back, whatever points to it. */
interface Exclusion {
  /** The sentence that the report shows about the suspect. */
  reason: string;
  /** Its arguments leave the namespace or the objects out: a change of them makes it act. */
  isRestriction?: boolean;
  excludes: (suspect: Suspect, actor: Actor, question: OwnerQuestion) => boolean;
}

/** Every exclusion, in the order in which they are tried. */
export const EXCLUSIONS: readonly Exclusion[] = [
  {
    reason: 'its arguments or environment restrict it to other namespaces',
    isRestriction: true,
    excludes: (_, actor, question) => !watchesNamespace(actor, question),
  },
  {
    reason: 'its arguments select objects by other labels',
    isRestriction: true,
    excludes: (_, { selectors }, { held: { objects } }) =>
      objects.length > 0 &&
      objects.every(({ labels }) =>
        selectors.some((selector) => !mayMatch(OBJECTS, selector, labels)),
      ),
  },
  {
    reason: 'its arguments are for another class than the object names',
    isRestriction: true,
    excludes: (_, { selectors }, { context, held: { objects } }) =>
      objects.length > 0 &&
      objects.every((object) =>
        selectors.some((argument) => isOfOtherClass(context, argument, object)),
      ),
  },
  {
    reason: 'it is an operand: the workload belongs to an object of the type',
    excludes: (_, { owner }, { held: { type } }) =>
      `${groupOf(owner?.apiVersion ?? '')}/${owner?.kind}` === `${type.group}/${type.kind}`,
  },
  {
    reason: 'it may neither update nor patch the object, and nothing shows that it tried',
    excludes: (suspect, actor, question) =>
      isRbacRead(question.context) && !mayAct(suspect, actor, question),
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
    const { actor } = suspect;
    const by = actor && EXCLUSIONS.find(({ excludes }) => excludes(suspect, actor, question));
    if (by === undefined) left.push(suspect);
    else excluded.push({ suspect, by });
  }
  return { left, excluded };
}

/**
 * Reports whether it may act, or has tried: a lost permission is a state of the owner, and no reason to look elsewhere.
 * Of a finalizer of another group, it has to have a permission there as well.
 */
function mayAct(suspect: Suspect, actor: Actor, question: OwnerQuestion): boolean {
  const { context, held, domain } = question;
  const { rights } = suspect;
  if (actor.isGone) {
    return (
      rights.change !== undefined ||
      departedGrant(context, actor.account, held.type) !== undefined ||
      isDecided(suspect)
    );
  }
  const isAtHome =
    domain.relation !== 'other' ||
    typesOfDomain(context, held, domain).some((type) => {
      const { change, watch } = rightsOf(context, actor.account, type, []);
      return change !== undefined || watch === 'named';
    });
  return (
    (rights.change !== undefined && isAtHome) ||
    rights.impersonates ||
    hasClue(suspect, 'log', 'said', 'part') ||
    ((isDecided(suspect) || hasClue(suspect, 'status')) && rights.reachesGroup) ||
    departedGrant(context, actor.account, held.type) !== undefined ||
    ((isDecided(suspect) || hasClue(suspect, 'container')) &&
      hadRights(context, actor.account, held.type)) ||
    leasesOfGroups(context, domain).some((lease) => isHolder(actor, lease))
  );
}

function watchesNamespace(actor: Actor, { context, held }: OwnerQuestion): boolean {
  const { watches, ignores = [], selectors } = actor;
  const { name, labels } = context.now.namespace;
  return (
    !held.type.namespaced ||
    (watches?.includes(name) !== false &&
      !ignores.includes(name) &&
      listOfOthers(context, actor) === undefined &&
      selectors.every((selector) => mayMatch(NAMESPACES, selector, labels)))
  );
}

/** Returns what restricts it to other namespaces or objects. */
export function restrictionText(context: Context, actor: Actor): string[] {
  const { watches, ignores = [], selectors } = actor;
  const setting = listOfOthers(context, actor);
  if (setting !== undefined) return [setting];
  if (watches !== undefined) return [`it watches only ${listNames(watches)}`];
  if (ignores.length > 0) return [`it ignores ${listNames(ignores)}`];
  return selectors;
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
  const [, option = '', values = ''] = /^--?([\w-]*class)(?:-name)?=(.+)$/.exec(argument) ?? [];
  const name = option.replaceAll('-', '');
  const named = namedClasses(context, object).filter(({ names }) => names.includes(name));
  return named.length > 0 && named.every(({ value }) => !values.split(',').includes(value));
}

/** Returns the classes that the object names, each with the names that an argument for it may have. */
function namedClasses(
  context: Context,
  object: ObjectFacts,
): { names: readonly string[]; value: string }[] {
  const own = ['class', `${object.kind.toLowerCase()}class`];
  const fields = specSettings(context, object).flatMap(([field, value]) =>
    own.includes(field.toLowerCase()) ? [{ names: own, value }] : [],
  );
  const annotated = Object.entries(object.annotations).flatMap(([key, value]) => {
    const [, domain, word = ''] = /^(?:([\w-]+)[\w.-]*\/)?(?:([\w-]+)\.)?class$/.exec(key) ?? [];
    return domain === undefined || value === ''
      ? []
      : [{ names: ['class', `${word || domain}class`], value }];
  });
  return [...fields, ...annotated];
}

/** Returns the classes that the object names, in such a field or annotation. */
export function classesOf(context: Context, object: ObjectFacts): string[] {
  return namedClasses(context, object).map(({ value }) => value);
}
