import type { LabelRequirement, ObjectFacts } from '../../model/snapshot.ts';
import { type Actor, listOfOthers } from '../actors.ts';
import { matchesLabels } from '../admission/guards.ts';
import { type Context, listNames, specSettings } from '../context.ts';
import type { Held } from './held.ts';

// What the arguments and the environment of a controller leave out: namespaces, labels, classes.

/** Returns the sentence that an actor's arguments leave the held objects out. */
export function restrictionOf(
  context: Context,
  { objects, type }: Held,
  actor: Actor,
): string | undefined {
  const { selectors, watches } = actor;
  const { name, labels } = context.now.namespace;
  const isLeftOut = (by: (argument: string, object: ObjectFacts) => boolean): boolean =>
    objects.length > 0 &&
    objects.every((object) => selectors.some((argument) => by(argument, object)));
  const isElsewhere =
    watches?.includes(name) === false ||
    listOfOthers(context, actor) !== undefined ||
    !selectors.every((argument) => mayMatch(NAMESPACES, argument, labels));
  if (type.namespaced && isElsewhere)
    return 'its arguments or environment restrict it to other namespaces';
  if (isLeftOut((argument, object) => !mayMatch(OBJECTS, argument, object.labels)))
    return 'its arguments select objects by other labels';
  if (isLeftOut((argument, object) => isOfOtherClass(context, argument, object)))
    return 'its arguments are for another class than the object names';
  return undefined;
}

/** Returns what restricts it to other namespaces or objects. */
export function restrictionText(context: Context, actor: Actor): string[] {
  const { watches, selectors } = actor;
  const setting = listOfOthers(context, actor);
  if (setting !== undefined) return [setting];
  if (watches !== undefined) return [`it watches only ${listNames(watches)}`];
  return selectors;
}

/** `--namespace-selector=team=a`, `WATCH_NAMESPACE_SELECTOR=team: a`. */
const NAMESPACES = /^(?:--?)?(?:watch[-_])?namespace[-_](?:label[-_])?selector=(.*)$/i;
/** `--selector` and `--label-selector` may be about Secrets or pods of the controller itself. */
const OBJECTS = /^(?:--?)?(?:watch|object)[-_](?:label[-_]?)?selector=(.*)$/i;
/** A requirement of a selector that is written as a text: `a=b`, `a: b`, `a!=b`, `a in (b,c)`, `a`, `!a` (apimachinery). */
const REQUIREMENT =
  /(?:^|,)\s*(!?)([\w./-]+)\s*(?:(==?|!=|:)\s*([\w.-]*)|(in|notin)\s*\(([^)]*)\))?\s*(?=,|$)/g;

/** Reports whether labels match a setting of this name; other settings match. */
function mayMatch(option: RegExp, setting: string, labels: Record<string, string>): boolean {
  const [, selector = ''] = option.exec(setting) ?? [];
  const requirements = [...selector.matchAll(REQUIREMENT)].map(
    ([, not, key = '', sign, value = '', among, list]): LabelRequirement => {
      const isNegative = not === '!' || sign === '!=' || among === 'notin';
      const values = list?.split(',').map((one) => one.trim()) ?? (sign ? [value] : []);
      return { key, operator: isNegative ? 'NotIn' : 'In', values };
    },
  );
  return matchesLabels(requirements, labels);
}

/**
 * Reports whether an argument such as `--widget-class=blue` is for another class than the object names, in
 * `spec.widgetClass`, `spec.class` or an annotation such as `example.com/widget.class`. Other classes, as
 * `--storage-class`, are of what the controller makes.
 */
function isOfOtherClass(context: Context, argument: string, object: ObjectFacts): boolean {
  const [, option = '', values = ''] = /^--?([\w-]*class)(?:-name)?=(.+)$/.exec(argument) ?? [];
  const name = option.replaceAll('-', '');
  const own = ['class', `${object.kind.toLowerCase()}class`];
  const named = [
    ...specSettings(context, object).filter(([field]) => own.includes(field.toLowerCase())),
    ...Object.entries(object.annotations).filter(([key]) => /(?:^|[./-])class$/.test(key)),
  ].map(([, value]) => value);
  return (
    own.includes(name) && named.length > 0 && !named.some((one) => values.split(',').includes(one))
  );
}
