import { domainOf } from '../../model/catalogue.ts';
import { forbidsDeletion } from '../../model/facts/metadata.ts';
import type { ObjectFacts } from '../../model/snapshot.ts';
import { type Context, detailOf, groupOf, isBuiltIn } from '../context.ts';
import { type Held, knownFinalizer } from './held.ts';
import { isOfOneProject } from './names.ts';
import { wholesOf } from './partners.ts';
import { kebab } from './statements.ts';

// What an object itself says to its controller: to leave it alone, or not to delete it.

/** An object for which its controller is paused; `by`: what pauses it, as `annotation x=true`. */
export interface Pause {
  object: ObjectFacts;
  by: string;
  /** The pause may stop something else than the controller that deletes the object. */
  isUnclear: boolean;
  /** A field of a known product, most of which stop by it what they run, and not themselves. */
  isGuess?: boolean;
}

/**
 * Finds an annotation, a field or a condition that shows the controller to be paused for all held objects, or for an object
 * that they are parts of.
 */
export function pausedBy(context: Context, held: Held): Pause | undefined {
  const known = knownFinalizer(held);
  if (known?.actsWhenPaused) return undefined;
  const [first, ...others] = held.objects
    .map((object) => pauseOf(context, held, object))
    .map((pause) => pause && { ...pause, isGuess: known !== undefined && pause.isField });
  if (first !== undefined && others.every((other) => other !== undefined)) return first;
  return wholesOf(context, held)
    .filter(({ apiVersion }) => isAnnotationForOwner(apiVersion, held))
    .map((whole) => pauseOf(context, held, whole))
    .find((pause) => pause !== undefined);
}

function pauseOf(context: Context, held: Held, object: ObjectFacts) {
  for (const what of ['annotation', 'label'] as const) {
    const told = Object.entries(object[`${what}s`]).filter(([key, value]) => isPause(key, value));
    const own = told.find(([key]) => isAnnotationForOwner(key, held));
    const [key, value] = own ?? told.find(([one]) => sharesDomain(one, held)) ?? [];
    if (key !== undefined) {
      const isUnclear = what === 'label' || own === undefined;
      return { object, by: `${what} ${key}=${value}`, isUnclear, isField: false };
    }
  }
  // A pause is for the controller of the type; a suspended Job, for example, says nothing about other controllers.
  if (isBuiltIn(groupOf(object.apiVersion))) return undefined;
  const { suspended, settings = [], conditions = [] } = detailOf(context, object) ?? {};
  const field =
    suspended ??
    settings.find((one) => /^spec\.\w+=true$/.test(one) && isPause(one.slice(5, -5), 'true'));
  if (field !== undefined) {
    return { object, by: field.replace('=', ': '), isUnclear: true, isField: true };
  }
  const paused = conditions.find(
    ({ type, status }) => status === 'True' && isPause(kebab(type), status),
  );
  if (paused === undefined) return undefined;
  const { type, reason } = paused;
  const by = `status condition ${type}=True${reason === '' ? '' : ` (${reason})`}`;
  return { object, by, isUnclear: true, isField: false };
}

/**
 * Reports whether a key has the domain of a neighbour of the type's group, `eck.k8s.example.com` beside `kibana.k8s.example.com`,
 * or of the same organization with the kind in front: `rediscluster.example.com`.
 */
function sharesDomain(key: string, { type }: Held): boolean {
  if (!key.includes('/')) return false;
  const domain = key.replace(/\/.*/, '');
  const [label = '', ...rest] = domain.split('.');
  const isOfKind = [type.kind.toLowerCase(), type.resource].includes(label);
  const parent = /^[^.]+(\.[^.]+\.[^.]+\..+)$/.exec(type.group)?.[1];
  return (
    (isOfKind && type.group.endsWith(`.${rest.join('.')}`)) ||
    (parent !== undefined && domain.endsWith(parent))
  );
}

/** Returns fields and annotations of the held objects that forbid a deletion, to their owner or to a cloud. */
export function protectionsOf(context: Context, held: Held): string[] {
  return held.objects.flatMap((object) => {
    const annotations = Object.entries(object.annotations)
      .filter(([key, value]) => isAnnotationForOwner(key, held) && forbidsDeletion(key, value))
      .map(([key, value]) => `annotation ${key}: ${value}`);
    const isCustom = !isBuiltIn(groupOf(object.apiVersion));
    const fields = (isCustom && detailOf(context, object)?.protections) || [];
    return [...annotations, ...fields].map(
      (by) => `${object.kind} ${object.name} may be protected from deletion by ${by}`,
    );
  });
}

/** Reports whether an annotation is for the owner: one that pauses another product (Flux, not to apply it) is not. */
export function isAnnotationForOwner(annotation: string, { finalizer, type }: Held): boolean {
  const [domain = '', name] = annotation.split('/');
  return (
    name === undefined ||
    [domainOf(finalizer), type.group].some((own) => isOfOneProject(own, domain))
  );
}

/**
 * Recognizes `crossplane.io/paused: "true"`, `cluster.x-k8s.io/paused: ""` and `…/reconcile: disabled`, but not
 * `…/reconcile-policy: …`.
 */
function isPause(key: string, value: string): boolean {
  return PAUSE.test(`${key.slice(key.indexOf('/') + 1)}=${value}`);
}

const PAUSE =
  /^(?:(?:is-?)?(?:paused?|suspend(?:ed)?|ignored?|unmanaged|(?:pause|skip|ignore|disable|suspend|do-?not)-?reconcil\w*|reconcil\w*-paused?)=(?!(?:false|no|off|0|disabled?)$)|(?:(?:[\w-]+-)?reconcil(?:e|iation)(?:-?(?:loop|policy))?|managed)=(?:disabled?|false|paused?|off|skip)$)/i;
