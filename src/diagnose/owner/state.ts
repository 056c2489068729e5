import { escapeForRegExp } from '../../base/text.ts';
import {
  type EventFacts,
  type ObjectDetail,
  type ObjectFacts,
  partnerKey,
  type ResourceType,
  trialKey,
} from '../../model/snapshot.ts';
import { type Actor, actorsOf, isAlive } from '../actors.ts';
import { domainOf } from '../catalogue.ts';
import {
  type Context,
  detailOf,
  eventsAbout,
  groupOf,
  isBuiltIn,
  isForeseen,
  itemsIn,
  typeName,
  typesOf,
} from '../context.ts';
import { type ContentError, classifyErrorText } from '../error-texts.ts';
import { type Held, LAST_WORDS_MS } from './held.ts';
import { logLinesAbout } from './logs.ts';
import { KUBERNETES_CONTROLLERS, matchesReporter, NODE_COMPONENTS, programNames } from './names.ts';
import { wholesOf } from './partners.ts';

/** An error that the owner, or the API server for it, reported. */
export interface Refusal {
  error: ContentError;
  /** The source of the error. */
  source: string;
  /** The object of the error. */
  object: ObjectFacts;
}

/**
 * Returns the current refusals of the requests of `owner` about these objects; newest first. Conflicts and retries
 * are noise. Without an owner, returns those of kube-controller-manager.
 */
export function refusalsFor(context: Context, held: Held, owner?: Actor): Refusal[] {
  const said = held.objects.flatMap((object) => [
    ...(isStatusOfOthers(context, owner, object) ? [] : fromStatus(context, object)),
    ...fromEvents(context, held, owner, object),
    ...fromTrial(context, held, object),
  ]);
  if (owner !== undefined) said.push(...fromLogs(context, held, owner));
  const bySaying = new Map<string, (typeof said)[number]>();
  for (const one of said) if (!bySaying.has(one.error.text)) bySaying.set(one.error.text, one);
  return [...bySaying.values()]
    .toSorted((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0))
    .map(({ at: _, ...refusal }) => ({
      ...refusal,
      error: asKubernetesError(context, refusal.error),
    }));
}

/**
 * Reports an error as one of Kubernetes only if its text names a user, or an object by its resource or kind, which
 * people write in lower case for well-known kinds: other systems refuse with similar texts.
 */
function asKubernetesError({ now }: Context, error: ContentError): ContentError {
  const isOurs = (): boolean => {
    if (error.kind === 'forbidden') return error.user !== undefined;
    if (error.kind !== 'not-found' || !now.discovery.ok) return true;
    return now.discovery.value.types.some(
      ({ group, resource, kind }) =>
        [resource, kind].includes(error.resource) ||
        // Client libraries also write `issuer.cert-manager.io "x" not found`.
        ((error.group === group || (error.group === '' && isBuiltIn(group))) &&
          kind.toLowerCase() === error.resource),
    );
  };
  return isOurs() ? error : { kind: 'other', text: error.text };
}

/** Reports whether the error is of another program than the owner: many programs report about one object. */
function isOfAnother(
  context: Context,
  owner: Actor | undefined,
  component: string,
  instance = '',
): boolean {
  if (NODE_COMPONENTS.test(component)) return true;
  const isOf = (actor: Actor): boolean => matchesReporter(actor, component, instance);
  if (owner === undefined || isOf(owner)) return false;
  return (
    KUBERNETES_CONTROLLERS.test(component) ||
    actorsOf(context).some((one) => isAlive(one) && isOf(one))
  );
}

/** Reports whether only other programs wrote the status since the deletion, or ever. */
function isStatusOfOthers(
  context: Context,
  owner: Actor | undefined,
  { deletionTimestamp, statusWriters }: ObjectFacts,
): boolean {
  const late = statusWriters.filter(
    ({ time }) => Date.parse(time ?? '') >= Date.parse(deletionTimestamp ?? ''),
  );
  const writers = late.length > 0 ? late : statusWriters;
  return writers.length > 0 && writers.every(({ manager }) => isOfAnother(context, owner, manager));
}

type Dated = Refusal & { at: string };

function fromTrial(context: Context, held: Held, object: ObjectFacts): Dated[] {
  const source = `a dry run that removes the finalizer of ${object.kind} ${object.name}`;
  return invalidity(context, held, object).map((error) => ({ error, source, object, at: '' }));
}

/** Finds a validation error, which refuses every change of the object for all users. */
export function invalidity(
  { now }: Context,
  { finalizer }: Held,
  { uid }: ObjectFacts,
): ContentError[] {
  const trial = now.trials[trialKey(uid, finalizer)];
  if (trial?.answer !== 'refused') return [];
  return classifyErrorText(trial.message)
    .filter(({ kind }) => kind === 'invalid')
    .map((error) => ({ ...error, text: trial.message }));
}

function fromStatus(context: Context, object: ObjectFacts): Dated[] {
  const detail = detailOf(context, object);
  if (detail === undefined) return [];
  const written = lastStatusWrite(object) ?? '';
  return statementsIn(context, detail, object).flatMap(({ condition, text, source }) => {
    if (condition === undefined && isOtherWork(detail, object, text)) return [];
    const { reason = '', lastTransitionTime: at = written } = condition ?? {};
    const isStated =
      condition === undefined ? detail.errors?.includes(text) === true : saysFailure(condition);
    return refusal(text || reason, source, isStated).map((one) => ({ ...one, object, at }));
  });
}

/** Returns the abnormal conditions of an object and the other texts of its status. */
function statementsIn(context: Context, detail: ObjectDetail, object: ObjectFacts) {
  const source = `the status of ${object.kind} ${object.name}`;
  const began = deletedAt(context, object);
  const texts = textsOf(detail, object, began, detail.texts).map((text) => ({
    condition: undefined,
    text,
    source,
  }));
  return [...conditionTexts(detail, object, began, isFailure), ...texts];
}

/** Returns when the deletion of the object began. In a forecast it lies ahead, so no text is newer. */
function deletedAt(context: Context, { deletionTimestamp: since = '' }: ObjectFacts): number {
  return isForeseen(context, { since }) ? Number.POSITIVE_INFINITY : Date.parse(since);
}

/** Returns the plain texts of a status, with the time of its last write: they have no time of their own. */
function textsOf(
  { observedGeneration = -1 }: ObjectDetail,
  object: ObjectFacts,
  began: number,
  texts: readonly string[] = [],
): readonly string[] {
  const written = lastStatusWrite(object);
  const isLate = Date.parse(written ?? '') >= began;
  const hasSeen = observedGeneration >= (object.generation ?? 0);
  return isLate || hasSeen || written === undefined ? texts : [];
}

type Condition = ObjectDetail['conditions'][number];

/** Returns the conditions that are current and match. */
function conditionTexts(
  detail: ObjectDetail,
  object: ObjectFacts,
  began: number,
  matches: (condition: Condition) => boolean,
) {
  return detail.conditions
    .filter((condition) => matches(condition) && isCurrent(condition, detail, object, began))
    .map((condition) => {
      const { type, status, reason } = condition;
      const is = `${type}${status === '' ? '' : `=${status}`}${reason === '' ? '' : ` (${reason})`}`;
      const source = `status condition ${is} of ${object.kind} ${object.name}`;
      return { condition, text: condition.message, source };
    });
}

/** Returns the texts of the objects since the deletion, also those that report no error but a wait. */
export function statusTexts(context: Context, held: Held, owner?: Actor) {
  return held.objects.flatMap((object) => {
    const detail = detailOf(context, object);
    if (detail === undefined || isStatusOfOthers(context, owner, object)) return [];
    const began = deletedAt(context, object);
    const source = `the status of ${object.kind} ${object.name}`;
    // A condition that is well by its type may still tell of a failure.
    const failures = ({ status, message }: Condition): boolean =>
      status === 'True' && FAILURE.test(message);
    return [
      ...statementsIn(context, detail, object),
      ...conditionTexts(detail, object, began, failures),
      ...textsOf(detail, object, began, detail.sentences).map((text) => ({ text, source })),
    ]
      .filter(({ text }) => text !== '' && !NOISE.test(text))
      .map((said) => ({ text: said.text, source: said.source, object }));
  });
}

/**
 * Types with "abnormal-true" and "normal-true" polarity (Kubernetes API conventions, "Typical status
 * properties"). For an unknown type only its text is known.
 */
const ABNORMAL =
  /^Not[A-Z]|[Uu]n(?:healthy|available|reachable)|[Ff]ail|[Ee]rror|[Dd]egraded|[Ss]talled|[Bb]locked|[Dd]enied|[Rr]efus|[Uu]nable|[Cc]onflict|[Tt]erminal|[Rr]ecoverable/;

/**
 * Types of conditions about the removal itself: True while it goes on, well or badly, so that only the text
 * decides.
 */
const ABOUT_REMOVAL = /delet|terminat|finali[sz]|clean/i;

function isFailure({ type, status: told }: Condition): boolean {
  // A condition without a status is true while it exists (Argo CD, ApplicationCondition).
  const status = told === '' ? 'True' : told;
  if (ABNORMAL.test(type)) return status === 'True';
  return status !== 'True' || ABOUT_REMOVAL.test(type);
}

/**
 * Reports whether type or reason of a condition is a failure. `Ready=False` of a terminating object needs a text
 * that says so.
 */
function saysFailure({ type, reason }: Condition): boolean {
  return ABNORMAL.test(type) || /(?<!No)(?:Fail|Error|Denied|Refused)/.test(reason);
}

/** Returns the last write of the writer that has been silent longest: no text of the status is surely newer. */
function lastStatusWrite({ statusWriters }: ObjectFacts): string | undefined {
  const last = new Map(statusWriters.map(({ manager, time }) => [manager, time]));
  return [...last.values()].flatMap((time) => time ?? []).sort()[0];
}

/**
 * Reports whether a text is about other work than the removal: work that ended before the deletion (a failed backup can
 * still be deleted), or work beside which the state is healthy.
 */
function isOtherWork(
  { besideHealthy, endedAt }: ObjectDetail,
  { deletionTimestamp }: ObjectFacts,
  words: string,
): boolean {
  const wasOver = Date.parse(endedAt ?? '') < Date.parse(deletionTimestamp ?? '');
  return (wasOver || besideHealthy?.includes(words) === true) && !ABOUT_REMOVAL.test(words);
}

/** Reports whether a text is from after the deletion, which raises the generation, or about the current generation. */
function isCurrent(
  condition: Condition,
  detail: ObjectDetail,
  object: ObjectFacts,
  began: number,
): boolean {
  const { generation } = object;
  if (Date.parse(condition.lastTransitionTime ?? '') >= began) return true;
  const { type, reason, message } = condition;
  if (isOtherWork(detail, object, `${type} ${reason} ${message}`)) return false;
  const observed = condition.observedGeneration ?? detail.observedGeneration;
  if (observed !== undefined && generation !== undefined && observed >= generation) return true;
  // The error is older, but the status was written again since: it still applies.
  if (Date.parse(lastStatusWrite(object) ?? '') >= began) return true;
  return observed === undefined && condition.lastTransitionTime === undefined;
}

function fromEvents(
  context: Context,
  held: Held,
  owner: Actor | undefined,
  object: ObjectFacts,
): Dated[] {
  const deleted = Date.parse(object.deletionTimestamp ?? '');
  const began = isHealthy(context, object) ? deleted : deleted - LAST_WORDS_MS;
  const about = eventsAbout(context, held).filter(({ regarding }) => regarding.uid === object.uid);
  const elsewhere = Object.entries(context.now.places).flatMap(([place, { events }]) =>
    place === object.namespace ? [] : itemsIn(events).filter((event) => mentions(event, object)),
  );
  return [...about, ...elsewhere]
    .filter(
      (event) =>
        event.type === 'Warning' &&
        Date.parse(event.at ?? '') >= began &&
        !isOfAnother(context, owner, event.component, event.instance),
    )
    .flatMap((event) =>
      refusal(event.message, `Event ${event.reason} about ${object.kind} ${object.name}`, true).map(
        (error) => ({ ...error, object, at: event.at ?? '' }),
      ),
    );
}

function isHealthy(context: Context, object: ObjectFacts): boolean {
  const conditions = detailOf(context, object)?.conditions ?? [];
  return conditions.some(
    ({ type, status }) => /^(?:Ready|Available|Healthy|Synced)$/.test(type) && status === 'True',
  );
}

/** Returns the last error from before the deletion: a Warning Event, or a status text that was not written since. */
export function lastComplaint(
  context: Context,
  held: Held,
  owner: Actor,
): { who: string; text: string; source: string } | undefined {
  const warnings = eventsAbout(context, held).flatMap(
    ({ type, component, instance, at, reason, message: text }) =>
      type !== 'Warning' || at === undefined || isOfAnother(context, owner, component, instance)
        ? []
        : {
            at,
            who: `the last Warning Event before the deletion (${at})`,
            text,
            source: `Event ${reason} at ${at}, before the deletion`,
          },
  );
  const statuses = held.objects.flatMap((object) => {
    const detail = detailOf(context, object);
    const at = lastStatusWrite(object) ?? '';
    const isEarlier = Date.parse(at) < Date.parse(object.deletionTimestamp ?? '');
    if (detail === undefined || !isEarlier || isStatusOfOthers(context, owner, object)) return [];
    const source = `the status of ${object.kind} ${object.name}, last written at ${at}, before the deletion`;
    const said = [
      ...detail.conditions.filter(isFailure).map(({ message }) => message),
      ...detail.texts,
    ].filter((text) => FAILURE.test(text) || detail.errors?.includes(text));
    return said
      .filter((text) => !NOISE.test(text) && !isOtherWork(detail, object, text))
      .map((text) => ({ at, who: `${source},`, text, source }));
  });
  return [...warnings, ...statuses].toSorted((a, b) => (a.at < b.at ? 1 : -1))[0];
}

/** Reports whether an Event mentions the object: Events about it cannot be written into a terminating namespace. */
function mentions({ message }: EventFacts, { kind, namespace, name }: ObjectFacts) {
  const isNamed = new RegExp(`(?:^|[^a-z0-9.-])${escapeForRegExp(name)}(?:[^a-z0-9.-]|$)`);
  return (
    isNamed.test(message) &&
    (namespace === '' || message.includes(namespace)) &&
    message.toLowerCase().includes(kind.toLowerCase().slice(0, -1))
  );
}

/** The time for which an error in a log counts after the controller logged another text about the object. */
const LOG_ERROR_MS = 60_000;

/** Returns errors about these objects in the owner's log. */
function fromLogs(context: Context, held: Held, owner: Actor): Dated[] {
  const lines = logLinesAbout(context, held, owner);
  const newest = Math.max(...lines.map(({ at }) => Date.parse(at) || 0));
  return lines
    .filter(({ isError, at }) => isError && (Date.parse(at) || 0) >= newest - LOG_ERROR_MS)
    .flatMap(({ text, pod, object, at }) =>
      refusal(text, `log of ${pod}`, true).map((error) => ({ ...error, object, at })),
    );
}

/** Texts of a failure without a known signature; "0 failed", "no errors" and "errors: 0" are no failures. */
const FAILURE =
  /(?<!\b(?:0|no|without|not|zero) )\b(?:errors?|failed|fails|failure|failing|cannot|can ?not|could not|denied|refused|rejected|forbidden|unable|unauthorized|invalid|timed out|timeout|\w*exception|expired|missing|not found|does not exist)\b(?!\s*[:=]\s*(?:0|none|null|<?nil>?)(?![\w.]))/i;

const NOISE =
  /the object has been modified|Operation cannot be fulfilled|please apply your changes to the latest version|StorageError: invalid object|will (?:be )?retr|requeue/i;

function refusal(
  text: string,
  source: string,
  isStated: boolean,
): { error: ContentError; source: string }[] {
  if (text === '' || NOISE.test(text)) return [];
  const errors = classifyErrorText(text);
  // A terminating namespace accepts no new Events, and no clean-up needs them.
  if (errors.some((one) => one.kind === 'namespace-terminating' && one.resource === 'events')) {
    return [];
  }
  const known = errors.filter(({ kind }) => kind !== 'other');
  if (known.length > 0) return known.map((error) => ({ error, source }));
  const isFailing = isStated || FAILURE.test(text);
  return isFailing ? errors.slice(0, 1).map((error) => ({ error, source })) : [];
}

/** Returns the kind of a resource, by its name in an error: `secrets`, `secret` and `Secret` are one. */
export function kindOfResource(context: Context, { resource }: { resource: string }): string {
  const names = ({ resource: plural, kind }: ResourceType): string[] => [
    plural,
    kind.toLowerCase(),
  ];
  const type = typesOf(context).find((one) => names(one).includes(resource.toLowerCase()));
  return type?.kind ?? resource;
}

/** Finds an annotation, label or field that pauses the controller for an object or for its owner. */
export function pausedBy(
  context: Context,
  held: Held,
): { object: ObjectFacts; by: string } | undefined {
  const wholes = wholesOf(context, held).filter(({ apiVersion }) =>
    isAnnotationForOwner(apiVersion, held),
  );
  for (const object of [...held.objects, ...wholes]) {
    const told = Object.entries(object.annotations).find(
      ([key, value]) => isPause(key, value) && isAnnotationForOwner(key, held),
    );
    if (told !== undefined) return { object, by: `annotation ${told[0]}=${told[1]}` };
    const suspended = detailOf(context, object)?.suspended;
    if (suspended !== undefined) return { object, by: `${suspended}: true` };
  }
  return undefined;
}

/** An object that defines the type of the held ones and starts their controller. */
export interface Definition {
  type: ResourceType;
  name: string;
  /** The field that names it. */
  field: string;
}

/**
 * Returns the definitions that the held objects or their CRD name: the CRD's controller (a Crossplane XRD), or a label
 * `…/<kind>-name` (`kro.run/resource-graph-definition-name`).
 */
export function definingObjects(context: Context, held: Held): Definition[] {
  const crd = itemsIn(context.now.cluster.definitions).find(
    ({ name }) => name === typeName(held.type),
  );
  const kinds = typesOf(context).filter(
    ({ namespaced, verbs }) => !namespaced && verbs.includes('list'),
  );
  const made = crd?.madeBy;
  const maker =
    made &&
    kinds.find(({ kind, group }) => kind === made.kind && group === groupOf(made.apiVersion));
  const labels = Object.entries({ ...crd?.labels, ...held.objects[0]?.labels });
  const named = labels.flatMap(([label, name]): Definition[] => {
    const [, domain = '', word = ''] = /^([^/]+)\/([a-z-]+)-name$/.exec(label) ?? [];
    const type = kinds.find(
      ({ kind, group }) => kebab(kind) === word && `.${domain}`.endsWith(`.${group}`),
    );
    return type === undefined ? [] : [{ type, name, field: `label ${label}` }];
  });
  return maker === undefined || made === undefined
    ? named
    : [{ type: maker, name: made.name, field: `ownerReference of CRD ${crd?.name}` }, ...named];
}

function kebab(kind: string): string {
  return kind.replace(/(?<=[a-z])(?=[A-Z])/g, '-').toLowerCase();
}

/**
 * Returns a definition that was deleted: its product has stopped the controller of the type. `since`: its deletion began
 * then, and the product may have stopped the controller.
 */
export function lostDefinition(
  context: Context,
  held: Held,
): (Definition & { since: string | undefined }) | undefined {
  for (const one of definingObjects(context, held)) {
    const found = context.now.partners[partnerKey({ ...one.type, ...one, namespace: undefined })];
    const since = found?.ok ? found.value?.deletionTimestamp : undefined;
    if (since !== undefined || (found?.ok && found.value === undefined)) return { ...one, since };
  }
  return undefined;
}

/**
 * Returns a ConfigMap owned by a pod that has ended: the other pods of the workload may wait until that pod is
 * deleted.
 */
export function deadLeader({ now }: Context, { namespace, pods }: Actor) {
  for (const lock of itemsIn(now.places[namespace]?.locks)) {
    const pod = pods.find(({ uid, phase }) => phase === 'Failed' && lock.pods.includes(uid));
    if (pod !== undefined) return { lock, pod };
  }
  return undefined;
}

/** Returns a node that a held object names and on which the DaemonSet that serves it has no ready pod. */
export function lostAgent(
  context: Context,
  held: Held,
  { kind, pods }: Actor,
): { node: string; pod: string | undefined; object: ObjectFacts } | undefined {
  if (kind !== 'DaemonSet' || pods.length === 0) return undefined;
  for (const object of held.objects) {
    for (const node of detailOf(context, object)?.nodes ?? []) {
      const own = pods.filter(({ nodeName }) => nodeName === node);
      if (own.every(({ ready }) => !ready)) return { node, pod: own[0]?.name, object };
    }
  }
  return undefined;
}

/**
 * Returns how long the next leader waits before it may act: a candidate that finds a Lease with a holder waits for
 * its whole duration, however old the Lease is (client-go, leader election).
 */
export function leaseSeconds({ now }: Context, actor: Actor): number {
  const own = itemsIn(now.cluster.leases).filter(
    ({ namespace, name, holder = '' }) =>
      namespace === actor.namespace &&
      holder !== '' &&
      (holder.startsWith(`${actor.name}-`) || name === actor.name || isOfActor(actor, name)),
  );
  return Math.max(0, ...own.map(({ durationSeconds = 15 }) => durationSeconds));
}

function isOfActor(actor: Actor, lease: string): boolean {
  return programNames(actor).some((name) => name.includes('-') && lease.includes(name));
}

/** Reports whether an annotation is for the owner: one that pauses another product (Flux, not to apply it) is not. */
export function isAnnotationForOwner(annotation: string, { finalizer, type }: Held): boolean {
  const [domain = '', name] = annotation.split('/');
  if (name === undefined) return true;
  return [domainOf(finalizer), type.group].some(
    (own) =>
      own.endsWith(`.${domain}`) ||
      domain.endsWith(`.${own}`) ||
      // Two labels (`github.io`, `x-k8s.io`, `co.uk`) are shared by many unrelated projects.
      own.split('.').slice(-3).join('.') === domain.split('.').slice(-3).join('.'),
  );
}

/**
 * Recognizes `crossplane.io/paused: "true"`, `cluster.x-k8s.io/paused: ""` and `…/reconcile: disabled`, but not
 * `…/reconcile-policy: …`.
 */
function isPause(key: string, value: string): boolean {
  const name = key.slice(key.indexOf('/') + 1).toLowerCase();
  if (PAUSE.test(name)) return value !== 'false';
  return (
    /^(?:reconcil(?:e|iation)(?:-?loop)?|managed)$/.test(name) &&
    /^(?:disabled?|false|paused?|off)$/i.test(value)
  );
}

const PAUSE =
  /^(?:is-?)?(?:paused?|suspend(?:ed)?|ignored?|(?:pause|skip|ignore|disable|suspend|do-?not)-?reconcil\w*|reconcil\w*-paused?)$/;
