import { domainOf } from '../../model/catalogue.ts';
import { forbidsDeletion } from '../../model/facts/metadata.ts';
import type { ObjectFacts } from '../../model/snapshot.ts';
import { type Context, detailOf, groupOf, isBuiltIn } from '../context.ts';
import { type Held, knownFinalizer } from './held.ts';
import { isOfOneProject } from './names.ts';
import { wholesOf } from './partners.ts';

// What an object itself says to its controller: to leave it alone, or not to delete it.

/** An object for which its controller is paused; `by`: what pauses it, as `annotation x=true` or `spec.paused: true`. */
export interface Pause {
  object: ObjectFacts;
  by: string;
  /** A field, or an annotation of a neighbour, may stop something else than the controller that deletes the object. */
  isUnclear: boolean;
  /** A field of a known product, most of which stop by it what they run, and not themselves. */
  isGuess: boolean;
}

/** Finds what pauses the controller for all held objects, or for an object that they are parts of. */
export function pausedBy(context: Context, held: Held): Pause | undefined {
  const known = knownFinalizer(held);
  if (known?.actsWhenPaused) return undefined;
  const find = (object: ObjectFacts): Pause[] => {
    const told = Object.entries(object.annotations).filter(([key, value]) => isPause(key, value));
    const own = told.find(([key]) => isAnnotationForOwner(key, held));
    const near = told.find(([key]) => organizationOf(key) === organizationOf(held.type.group));
    const annotation = own ?? near;
    const by = annotation ? `annotation ${annotation.join('=')}` : pauseField(context, object);
    const isGuess = annotation === undefined && known !== undefined;
    return by ? [{ object, by, isUnclear: own === undefined, isGuess }] : [];
  };
  const own = held.objects.flatMap(find);
  if (own.length === held.objects.length && own[0] !== undefined) return own[0];
  return wholesOf(context, held)
    .filter(({ apiVersion }) => isAnnotationForOwner(apiVersion, held))
    .flatMap(find)[0];
}

/** A suspended Job, for example, says nothing about other controllers: only fields of custom objects count. */
function pauseField(context: Context, object: ObjectFacts): string | undefined {
  const detail = isBuiltIn(groupOf(object.apiVersion)) ? undefined : detailOf(context, object);
  const isSet = (one: string): boolean => FIELD.test(one) && PAUSE.test(one.slice(5));
  return detail?.settings?.find(isSet)?.replace('=', ': ');
}

/** A field of the spec; OpenShift's operators have `managementState: Unmanaged` (openshift/api operator/v1). */
const FIELD = /^spec\.(?:\w+=true|managementState=Unmanaged)$/;

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

/** `eck.k8s.elastic.co` and `kibana.k8s.elastic.co` are of one organization, `elastic.co`. */
function organizationOf(key: string): string {
  return key.replace(/\/.*/, '').split('.').slice(-2).join('.');
}

/** Reports whether an annotation is for the owner: one that pauses another product (Flux, not to apply it) is not. */
export function isAnnotationForOwner(annotation: string, { finalizer, type }: Held): boolean {
  const [domain = '', name] = annotation.split('/');
  return (
    name === undefined ||
    [domainOf(finalizer), type.group].some((own) => isOfOneProject(own, domain))
  );
}

function isPause(key: string, value: string): boolean {
  return PAUSE.test(`${key.slice(key.indexOf('/') + 1)}=${value}`);
}

/** `crossplane.io/paused: "true"`, `cluster.x-k8s.io/paused: ""` and `…/reconcile: disabled`, but not `…/paused: "false"`. */
const PAUSE =
  /^(?:(?:is-?)?(?:paused?|suspend(?:ed)?|ignored?|unmanaged|(?:pause|skip|ignore|disable|suspend|do-?not)-?reconcil\w*|reconcil\w*-paused?)=(?!(?:false|no|off|0|disabled?)$)|(?:(?:[\w-]+-)?reconcil(?:e|iation)(?:-?(?:loop|policy))?|managed)=(?:disabled?|false|paused?|off|skip)$|managementState=)/i;
