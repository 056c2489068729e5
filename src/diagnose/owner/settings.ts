import { listNames } from '../../base/text.ts';
import { forbidsDeletion, isBuiltIn } from '../../model/facts/metadata.ts';
import type { ObjectFacts, ResourceType } from '../../model/snapshot.ts';
import { type Actor, listOfOthers } from '../actors.ts';
import { detailOf } from '../content.ts';
import type { Context } from '../context.ts';
import { nameOf } from '../results.ts';
import { type Held, knownFinalizer } from './held.ts';
import { domainOf, isOfOneCompany, isOfOneProject } from './names.ts';

// What settings say: an object to its controller, to leave it alone or not to delete it; arguments, what a controller leaves
// out; the spec of an object, where its controller deletes more than that.

/** Finds what pauses the controller for all held objects. */
export function pausedBy(context: Context, held: Held) {
  const known = knownFinalizer(held);
  if (known?.actsWhenPaused) return undefined;
  const pauses = held.objects.flatMap((object) => {
    const told = Object.entries(object.annotations).filter(([key, value]) =>
      PAUSE.test(`${key.slice(key.indexOf('/') + 1)}=${value}`),
    );
    const own = told.find(([key]) => isAnnotationForOwner(key, held));
    // A suspended Job, for example, says nothing about other controllers: only fields of custom objects count.
    const detail = isBuiltIn(held.type.group) ? undefined : detailOf(context, object);
    const isSet = (one: string): boolean => FIELD.test(one) && PAUSE.test(one.slice(5));
    const annotation = own ?? told.find(([key]) => isOfOneCompany(domainOf(key), held.type.group));
    const field = annotation ? undefined : detail?.settings?.find(isSet)?.split('=');
    const [key, value] = annotation ?? field ?? [];
    const by = annotation ? `annotation ${key}=${value}` : `${key}: ${value}`;
    // Most known products stop by a field what they run, and not themselves.
    const isGuess = annotation === undefined && known !== undefined;
    // A field, or an annotation of a neighbour, may stop something else than the controller that deletes the object.
    return key ? [{ object, field, key, by, isUnclear: own === undefined, isGuess }] : [];
  });
  return pauses.length === held.objects.length ? pauses[0] : undefined;
}

export type Pause = NonNullable<ReturnType<typeof pausedBy>>;

/** A field of the spec; OpenShift's operators have `managementState: Unmanaged` (openshift/api operator/v1). */
const FIELD = /^spec\.(?:\w+=true|managementState=Unmanaged)$/;
/** `crossplane.io/paused: "true"`, `cluster.x-k8s.io/paused: ""` and `…/reconcile: disabled`, but not `…/paused: "false"`. */
const PAUSE =
  /^(?:(?:is-?)?(?:paused?|suspend(?:ed)?|ignored?|unmanaged|(?:pause|skip|ignore|disable|suspend|do-?not)-?reconcil\w*|reconcil\w*-paused?)=(?!(?:false|no|off|0|disabled?)$)|(?:(?:[\w-]+-)?reconcil(?:e|iation)(?:-?(?:loop|policy))?|managed)=(?:disabled?|false|paused?|off|skip)$|managementState=)/i;

/** Reports whether an annotation is for the owner: one that pauses another product (Flux, not to apply it) is not. */
export function isAnnotationForOwner(annotation: string, { finalizer, type }: Held): boolean {
  const [domain = '', name] = annotation.split('/');
  const projects = [domainOf(finalizer), type.group];
  return name === undefined || projects.some((own) => isOfOneProject(own, domain));
}

/** Returns fields and annotations of the held objects that forbid a deletion, to their owner or to a cloud. */
export function protectionsOf(context: Context, held: Held): string[] {
  return held.objects.flatMap((object) => {
    const annotations = Object.entries(object.annotations)
      .filter(([key, value]) => isAnnotationForOwner(key, held) && forbidsDeletion(key, value))
      .map(([key, value]) => `annotation ${key}: ${value}`);
    const fields = detailOf(context, object)?.protections ?? [];
    const what = `${nameOf(object)} may be protected from deletion by`;
    return [...annotations, ...fields].map((by) => `${what} ${by}`);
  });
}

/** Returns how the arguments or the environment of a controller leave out the held objects, with the setting. */
export function restrictionOf(context: Context, { objects, type }: Held, actor: Actor) {
  const { selectors, watches } = actor;
  const { name, labels } = context.now.namespace;
  const others =
    listOfOthers(context, actor) ??
    (watches?.includes(name) === false
      ? listNames(watches)
      : selectors.find((one) => !mayMatch(NAMESPACES, one, labels)));
  if (type.namespaced && others) return `it watches only other namespaces: ${others}`;
  const argumentThat = (leavesOut: (argument: string, object: ObjectFacts) => boolean) =>
    objects[0] && selectors.find((one) => objects.every((object) => leavesOut(one, object)));
  const selector = argumentThat((one, object) => !mayMatch(OBJECTS, one, object.labels));
  if (selector) return `it selects objects by other labels: ${selector}`;
  const ofClass = argumentThat((one, object) => isOfOtherClass(context, one, object));
  return ofClass && `it is for another class than the object names: ${ofClass}`;
}

/** Reports whether a controller may leave objects out: by its arguments, or by settings that are not read. */
export function mayLeaveOut({ selectors, watches, limits = [] }: Actor): boolean {
  return watches !== undefined || selectors.length + limits.length > 0;
}

/** `--namespace-selector=team=a`, `WATCH_NAMESPACE_SELECTOR=team: a`. */
const NAMESPACES = /^(?:--?)?(?:watch[-_])?namespace[-_](?:label[-_])?selector=(.*)$/i;
/** `--selector` and `--label-selector` may be about Secrets or pods of the controller itself. */
const OBJECTS = /^(?:--?)?(?:watch|object)[-_](?:label[-_]?)?selector=(.*)$/i;
/** A requirement of a selector that is written as a text: `a=b` or `a: b`. All others may match. */
const REQUIREMENT = /(?:^|,)\s*([\w./-]+)\s*(?:==?|:)\s*([\w.-]*)\s*(?=,|$)/g;

function mayMatch(option: RegExp, setting: string, labels: Record<string, string>): boolean {
  const [, selector = ''] = option.exec(setting) ?? [];
  return [...selector.matchAll(REQUIREMENT)].every(([, key = '', value]) => labels[key] === value);
}

/** Reports whether `--widget-class=blue` is for another class than the object names; `--storage-class` is of what its controller makes. */
function isOfOtherClass(context: Context, argument: string, object: ObjectFacts): boolean {
  const [, option = '', values = ''] = /^--?([\w-]*class)(?:-name)?=(.+)$/.exec(argument) ?? [];
  const own = ['class', `${object.kind.toLowerCase()}class`];
  if (!own.includes(option.replaceAll('-', ''))) return false;
  // `spec.widgetClass`, `spec.class` or an annotation such as `example.com/widget.class`.
  const field = new RegExp(`^spec\\.(?:${own.join('|')})=(.+)$`, 'i');
  const named = [
    ...(detailOf(context, object)?.settings ?? []).flatMap((one) => field.exec(one)?.[1] ?? []),
    ...Object.entries(object.annotations).flatMap(([key, value]) =>
      /(?:^|[./-])class$/.test(key) ? value : [],
    ),
  ];
  return named.length > 0 && !named.some((one) => values.split(',').includes(one));
}

/** GitOps tools apply deleted objects again, so that their own have to be deleted first: those of earlier kinds create later ones. */
const RECREATING =
  /(?:\.|^)(?:toolkit\.fluxcd\.io|argoproj\.io|fleet\.cattle\.io|kappctrl\.k14s\.io)$/;
const KINDS = 'ApplicationSet Application GitRepo Bundle Kustomization HelmRelease App'.split(' ');

export function isGitOps(type: ResourceType): boolean {
  return rankOf(type) < KINDS.length;
}

/** Returns the position of a type among the GitOps kinds. All other types come last. */
export function rankOf({ group, kind }: ResourceType): number {
  return RECREATING.test(group) && KINDS.includes(kind) ? KINDS.indexOf(kind) : KINDS.length;
}

/** A setting with the namespace in which a controller deploys something, as `spec.targetNamespace` of a k3s HelmChart. */
const TARGET =
  /^spec\.(?:(?:target|destination|release|install)\w*namespace|(?:target|destination|forProvider)\.namespace)=(.+)$/i;

/** Reports whether the controller may delete objects outside of the namespace: those of a GitOps tool, a manifest or a target namespace. */
export function reachesOut(context: Context, held: Pick<Held, 'type' | 'objects'>) {
  const { type, objects } = held;
  if (isGitOps(type)) return true;
  return objects.some((object) => {
    const { references = [], settings = [] } = detailOf(context, object) ?? {};
    const targets = settings.flatMap((one) => TARGET.exec(one)?.[1] ?? []);
    const makes = references.flatMap(({ isMade, namespace }) => (isMade ? [namespace] : []));
    return [...targets, ...makes].some((place) => place !== context.now.namespace.name);
  });
}

export const REACHING_RISK =
  'the controller then deletes what it deployed for them, also outside of this namespace';
