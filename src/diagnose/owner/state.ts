import {
  type Condition,
  type ObjectDetail,
  type ObjectFacts,
  partnerKey,
  type ResourceType,
  trialKey,
} from '../../model/snapshot.ts';
import { type Actor, actorsOf } from '../actors.ts';
import { domainOf } from '../catalogue.ts';
import {
  type Context,
  detailOf,
  eventsAbout,
  groupOf,
  isBuiltIn,
  isForeseen,
  itemsIn,
  servedType,
  typeName,
  typesOf,
} from '../context.ts';
import { type ContentError, classifyErrorText, FAILURE } from '../error-texts.ts';
import { type Held, knownFinalizer, LAST_WORDS_MS } from './held.ts';
import { currentLogLines } from './logs.ts';
import { KUBERNETES_CONTROLLERS, matchesReporter, NODE_COMPONENTS } from './names.ts';
import { wholesOf } from './partners.ts';

/** An error that the owner, or the API server for it, reported. */
export interface Refusal {
  error: ContentError;
  /** The source of the error. */
  source: string;
  /** The object of the error. */
  object: ObjectFacts;
  /** The time of the report, as far as that is known. */
  at: string;
}

/**
 * Returns the current refusals of the requests of `owner` about these objects; newest first. Conflicts and retries
 * are noise. Without an owner, returns those of kube-controller-manager.
 */
export function refusalsFor(context: Context, held: Held, owner?: Actor): Refusal[] {
  const said = held.objects.flatMap((object) => [
    ...fromStatus(context, owner, object),
    ...fromEvents(context, owner, object),
    ...fromTrial(context, held, object),
  ]);
  if (owner !== undefined) said.push(...fromLogs(context, held, owner));
  const bySaying = new Map<string, (typeof said)[number]>();
  for (const one of said) if (!bySaying.has(one.error.text)) bySaying.set(one.error.text, one);
  return [...bySaying.values()]
    .toSorted((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0))
    .map((refusal) => ({ ...refusal, error: asKubernetesError(context, refusal.error) }));
}

/**
 * Reports an error as one of Kubernetes only if its text names a user, or an object by its resource or kind: other
 * systems refuse with similar texts. Client libraries write the kind in lower case: `issuer.cert-manager.io "x" not found`.
 */
function asKubernetesError(context: Context, error: ContentError): ContentError {
  const isOurs = (): boolean => {
    if (error.kind === 'forbidden') return error.user !== undefined;
    if (error.kind !== 'not-found') return true;
    return typesOf(context).some(
      ({ group, resource, kind }) =>
        [resource, kind].includes(error.resource) ||
        `${kind.toLowerCase()}.${group}` === `${error.resource}.${error.group}`,
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
  return KUBERNETES_CONTROLLERS.test(component) || actorsOf(context).some(isOf);
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

function fromTrial(context: Context, held: Held, object: ObjectFacts): Refusal[] {
  const source = `a dry run that removes the finalizer of ${object.kind} ${object.name}`;
  return invalidity(context, held, object).map((error) => ({
    error,
    source,
    object,
    at: context.now.takenAt,
  }));
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

/** A text of an object's status. */
interface Statement {
  text: string;
  source: string;
  /** The latest possible time of the text, if known: its own transition, or the last write of the status. */
  at: string;
  /** The text was written after the deletion, or nothing dates it. */
  isCurrent: boolean;
  /** The text reports trouble, and not only a state. */
  isTrouble: boolean;
  /** The status itself calls this a failure. */
  isStated: boolean;
  /** The text is about other work than the removal. */
  isOtherWork: boolean;
  isCondition: boolean;
  object: ObjectFacts;
}

/**
 * Returns the texts of a status, without noise. A condition that is well counts only if it has changed since the
 * deletion and says what it waits for: `InUse=True`. None if only other programs wrote the status since the deletion, or ever.
 */
function statementsOf(
  context: Context,
  owner: Actor | undefined,
  object: ObjectFacts,
): Statement[] {
  const detail = detailOf(context, object);
  if (detail === undefined || isStatusOfOthers(context, owner, object)) return [];
  const isOtherWork = (words: string): boolean => isAboutOtherWork(detail, object, words);
  const isNew = ({ lastTransitionTime: at = '', message }: Condition): boolean =>
    isWaitText(message) && Date.parse(at) >= Date.parse(object.deletionTimestamp ?? '');
  const told = detail.conditions.filter((one) => isFailure(one) || isNew(one));
  const conditions = told.map((condition) => {
    const { type, status, reason, message: text, lastTransitionTime } = condition;
    const is = `${type}${status === '' ? '' : `=${status}`}${reason === '' ? '' : ` (${reason})`}`;
    const source = `status condition ${is} of ${object.kind} ${object.name}`;
    const isStated = ABNORMAL.test(type) || FAILED_REASON.test(reason);
    const isTrouble = isFailure(condition);
    const isOther = isOtherWork(`${type} ${text}`);
    const kind = { isTrouble, isStated, isOtherWork: isOther, isCondition: true };
    return { text, source, ...kind, ...dateOf(context, object, lastTransitionTime, condition) };
  });
  const date = dateOf(context, object, undefined, detail);
  const source = `the status of ${object.kind} ${object.name}`;
  const texts = detail.texts.map((text) => {
    const isStated = detail.errors?.includes(text) === true;
    const kind = { isTrouble: true, isStated, isOtherWork: isOtherWork(text), isCondition: false };
    return { text, source, ...kind, ...date };
  });
  const sentences = (detail.sentences ?? []).map((text) => {
    const kind = { isTrouble: false, isStated: false, isOtherWork: false, isCondition: false };
    return { text, source, ...kind, ...date };
  });
  return [...conditions, ...texts, ...sentences]
    .filter(({ text }) => text !== '' && !NOISE.test(text))
    .map((statement) => ({ ...statement, object }));
}

/**
 * Dates a text of a status: by its own transition, by the last write of the status, and by the generation that its
 * writer has seen, which a deletion raises. A transition alone does not make a text old: the message may have changed since.
 */
function dateOf(
  context: Context,
  object: ObjectFacts,
  transition: string | undefined,
  { observedGeneration }: { observedGeneration?: number | undefined },
): Pick<Statement, 'at' | 'isCurrent'> {
  const { generation = 0, deletionTimestamp: since = '' } = object;
  // In a forecast the deletion lies ahead, so no text is newer.
  const began = isForeseen(context, { since }) ? Number.POSITIVE_INFINITY : Date.parse(since);
  const dates = [transition, lastStatusWrite(object)].flatMap((date) => date ?? []);
  const isLate = dates.some((date) => Date.parse(date) >= began);
  const hasSeen =
    observedGeneration === undefined ? dates.length === 0 : observedGeneration >= generation;
  // A condition with a generation of its own was not judged again by a later write of another part of the status.
  const isBehind = transition !== undefined && (observedGeneration ?? generation) < generation;
  return { at: dates.toSorted().at(-1) ?? '', isCurrent: !isBehind && (isLate || hasSeen) };
}

function fromStatus(context: Context, owner: Actor | undefined, object: ObjectFacts): Refusal[] {
  return statementsOf(context, owner, object)
    .filter(({ isCurrent, isTrouble, isOtherWork }) => isCurrent && isTrouble && !isOtherWork)
    .flatMap(({ text, source, isStated, at }) =>
      refusal(text, source, isStated).map((one) => ({ ...one, object, at })),
    );
}

/** Returns the texts of the objects since the deletion, also those that report no error but a wait. */
export function statusTexts(context: Context, held: Held, owner?: Actor): Statement[] {
  return held.objects.flatMap((object) =>
    statementsOf(context, owner, object).filter(({ isCurrent }) => isCurrent),
  );
}

/** Returns what the status of the objects says, for a report that names no owner; texts from before the deletion with their time. */
export function statusEvidence(context: Context, held: Held): string[] {
  return held.objects
    .flatMap((object) => statementsOf(context, undefined, object))
    .filter(({ isCurrent, isTrouble, isOtherWork }) => isCurrent || (isTrouble && !isOtherWork))
    .map(
      ({ text, source, isCurrent, at }) =>
        `${source}${isCurrent ? '' : `, last written at ${at}, before the deletion`}: ${text}`,
    );
}

const WELL = /^(?:Ready|Healthy|Available|Synced)$/;

/**
 * Returns the troubles that the status of an object reports; the object is not being deleted. Beside a condition such as
 * Ready=True, only other conditions do: any other text is history.
 */
export function troublesOf(context: Context, object: ObjectFacts): Statement[] {
  const { conditions = [] } = detailOf(context, object) ?? {};
  const isWell = conditions.some(({ type, status }) => WELL.test(type) && status === 'True');
  return statementsOf(context, undefined, object).filter(
    ({ isTrouble, isOtherWork, isCondition }) =>
      isTrouble && !isOtherWork && (isCondition || !isWell),
  );
}

/** Returns what the status of an object says of its own failure. */
export function failureOf(context: Context, object: ObjectFacts): string | undefined {
  return troublesOf(context, object).find(({ text, isStated }) => isStated || FAILURE.test(text))
    ?.text;
}

const WAITING =
  /\bwait|\bstill\b|\buntil\b|\bremain|\bpending\b|\bblock|\bdepend|\bin use\b|\b(?:used|referenced) by\b|\bmust be (?:deleted|removed|gone)|\b(?:being|for) delet|\bexists?\b|\bnot (?:yet )?(?:been )?(?:gone|deleted|removed|finalized)\b/i;
const FAILING =
  /\brefused|\btime(?:d )?-?out|\bunauthori[sz]ed|\bdenied|\bforbidden|no such host|x509|certificate (?:is|has|signed|not)|\b(?:code|status|http)\W{0,3}5\d\d\b|internal error|does not exist|not exist/i;

/** Reports whether a text says that another object must be deleted first, and not that a request failed. */
export function isWaitText(text: string): boolean {
  return WAITING.test(text) && !FAILING.test(text);
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
  const isTrue = told === '' || told === 'True';
  return ABNORMAL.test(type) ? isTrue : !isTrue || ABOUT_REMOVAL.test(type);
}

/** `Ready=False` of a terminating object is a failure only if its reason or its text says so. */
const FAILED_REASON = /(?<!No)(?:Fail|Error|Denied|Refused)/;

/** Returns the last write of the writer that has been silent longest: no text of the status is surely newer. */
function lastStatusWrite({ statusWriters }: ObjectFacts): string | undefined {
  const last = new Map(statusWriters.map(({ manager, time }) => [manager, time]));
  return [...last.values()].flatMap((time) => time ?? []).sort()[0];
}

/**
 * Reports whether a text is about other work than the removal: work that ended before the deletion (a failed backup can
 * still be deleted), or work beside which the state is healthy.
 */
function isAboutOtherWork(
  { besideHealthy, endedAt }: ObjectDetail,
  { deletionTimestamp }: ObjectFacts,
  words: string,
): boolean {
  const wasOver = Date.parse(endedAt ?? '') < Date.parse(deletionTimestamp ?? '');
  return (wasOver || besideHealthy?.includes(words) === true) && !ABOUT_REMOVAL.test(words);
}

function fromEvents(context: Context, owner: Actor | undefined, object: ObjectFacts): Refusal[] {
  const began = Date.parse(object.deletionTimestamp ?? '') - LAST_WORDS_MS;
  return warningsAbout(context, [object], owner)
    .filter(({ at }) => Date.parse(at) >= began)
    .flatMap(({ message, reason, at }) =>
      refusal(message, `Event ${reason} about ${object.kind} ${object.name}`, true).map(
        (error) => ({ ...error, object, at }),
      ),
    );
}

function warningsAbout(
  context: Context,
  objects: readonly ObjectFacts[],
  owner: Actor | undefined,
) {
  return eventsAbout(context, { objects }).flatMap((event) => {
    const { type, at, component, instance, message } = event;
    if (type !== 'Warning' || at === undefined || NOISE.test(message)) return [];
    return isOfAnother(context, owner, component, instance) ? [] : [{ ...event, at }];
  });
}

/** Returns the last error from before the deletion: a Warning Event, or a status text that was not written since. */
export function lastComplaint(
  context: Context,
  held: Held,
  owner: Actor,
): { who: string; text: string; source: string } | undefined {
  const warnings = warningsAbout(context, held.objects, owner).map(
    ({ at, reason, message: text }) => ({
      at,
      who: `the last Warning Event before the deletion (${at})`,
      text,
      source: `Event ${reason} at ${at}, before the deletion`,
    }),
  );
  const statuses = held.objects.flatMap((object) =>
    statementsOf(context, owner, object)
      .filter(
        ({ text, isCurrent, isStated, isOtherWork }) =>
          !isCurrent && !isOtherWork && (isStated || FAILURE.test(text)),
      )
      .map(({ text }) => {
        const at = lastStatusWrite(object) ?? '';
        const source = `the status of ${object.kind} ${object.name}, last written at ${at}, before the deletion`;
        return { at, who: `${source},`, text, source };
      }),
  );
  return [...warnings, ...statuses].toSorted((a, b) => (a.at < b.at ? 1 : -1))[0];
}

/** Returns errors about these objects in the owner's log. */
function fromLogs(context: Context, held: Held, owner: Actor): Refusal[] {
  return currentLogLines(context, held, owner)
    .filter(({ text, isError }) => isError && !NOISE.test(text))
    .flatMap(({ text, pod, object, at }) =>
      refusal(text, `the log of ${pod}`, true).map((error) => ({ ...error, object, at })),
    );
}

const NOISE =
  /the object has been modified|please apply your changes to the latest version|StorageError: invalid object/i;

/** A text that counts its progress reports no failure. */
export const PROGRESS = /\b\d{1,3} ?%/;

function refusal(
  text: string,
  source: string,
  isStated: boolean,
): { error: ContentError; source: string }[] {
  const errors = classifyErrorText(text);
  // A terminating namespace accepts no new Events, and no clean-up needs them.
  if (errors.some((one) => one.kind === 'namespace-terminating' && one.resource === 'events')) {
    return [];
  }
  const known = errors.filter(({ kind }) => kind !== 'other');
  const others = isStated || (FAILURE.test(text) && !PROGRESS.test(text)) ? errors.slice(0, 1) : [];
  return (known.length > 0 ? known : others).map((error) => ({ error, source }));
}

/** Returns the kind of a resource, by its name in an error: `secrets`, `secret` and `Secret` are one. */
export function kindOfResource(context: Context, { resource }: { resource: string }): string {
  const type = typesOf(context).find(({ resource: plural, kind }) =>
    [plural, kind.toLowerCase()].includes(resource.toLowerCase()),
  );
  return type?.kind ?? resource;
}

/** An object for which its controller is paused; `by`: what pauses it, as `annotation x=true`. */
export interface Pause {
  object: ObjectFacts;
  by: string;
}

/**
 * Finds an annotation, a field or a condition that shows the controller to be paused for all held objects, or for an object
 * that they are parts of.
 */
export function pausedBy(context: Context, held: Held): Pause | undefined {
  if (knownFinalizer(held)?.actsWhenPaused) return undefined;
  const [first, ...others] = held.objects.map((object) => pauseOf(context, held, object));
  if (first !== undefined && others.every((other) => other !== undefined)) return first;
  return wholesOf(context, held)
    .filter(({ apiVersion }) => isAnnotationForOwner(apiVersion, held))
    .map((whole) => pauseOf(context, held, whole))
    .find((pause) => pause !== undefined);
}

function pauseOf(context: Context, held: Held, object: ObjectFacts): Pause | undefined {
  for (const what of ['annotation', 'label'] as const) {
    const told = Object.entries(object[`${what}s`]).find(
      ([key, value]) => isPause(key, value) && isAnnotationForOwner(key, held),
    );
    if (told !== undefined) return { object, by: `${what} ${told[0]}=${told[1]}` };
  }
  // A pause is for the controller of the type; a suspended Job, for example, says nothing about other controllers.
  if (isBuiltIn(groupOf(object.apiVersion))) return undefined;
  const { suspended, conditions = [] } = detailOf(context, object) ?? {};
  if (suspended !== undefined) return { object, by: suspended };
  const paused = conditions.find(
    ({ type, status }) => status === 'True' && isPause(kebab(type), status),
  );
  return paused && { object, by: `status condition ${paused.type}=True` };
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
  const made = crd?.madeBy;
  const maker = made && servedType(context, made);
  const labels = Object.entries({ ...crd?.labels, ...held.objects[0]?.labels });
  const named = labels.flatMap(([label, name]): Definition[] => {
    const [, domain = '', word = ''] = /^([^/]+)\/([a-z-]+)-name$/.exec(label) ?? [];
    const type = typesOf(context).find(
      ({ kind, group, namespaced }) =>
        !namespaced && kebab(kind) === word && `.${domain}`.endsWith(`.${group}`),
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
    if (found?.ok !== true) continue;
    const since = found.value?.deletionTimestamp;
    if (since !== undefined || found.value === undefined) return { ...one, since };
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
    ({ namespace, holder = '' }) =>
      namespace === actor.namespace && holder.startsWith(`${actor.name}-`),
  );
  return Math.max(0, ...own.map(({ durationSeconds = 15 }) => durationSeconds));
}

/** Reports whether an annotation is for the owner: one that pauses another product (Flux, not to apply it) is not. */
export function isAnnotationForOwner(annotation: string, { finalizer, type }: Held): boolean {
  const [domain = '', name] = annotation.split('/');
  return (
    name === undefined ||
    [domainOf(finalizer), type.group].some((own) => isOfOneProject(own, domain))
  );
}

/** Reports whether two domains are equal, or one is below the other: `crossplane.io`, `aws.crossplane.io`. */
export function isOfOneProject(one: string, other: string): boolean {
  return `.${one}`.endsWith(`.${other}`) || `.${other}`.endsWith(`.${one}`);
}

/**
 * Recognizes `crossplane.io/paused: "true"`, `cluster.x-k8s.io/paused: ""` and `…/reconcile: disabled`, but not
 * `…/reconcile-policy: …`.
 */
function isPause(key: string, value: string): boolean {
  const name = key.slice(key.indexOf('/') + 1).toLowerCase();
  if (PAUSE.test(name)) return !/^(?:false|no|off|0|disabled?)$/i.test(value);
  return (
    /^(?:reconcil(?:e|iation)(?:-?loop)?|managed)$/.test(name) &&
    /^(?:disabled?|false|paused?|off)$/i.test(value)
  );
}

const PAUSE =
  /^(?:is-?)?(?:paused?|suspend(?:ed)?|ignored?|(?:pause|skip|ignore|disable|suspend|do-?not)-?reconcil\w*|reconcil\w*-paused?)$/;
