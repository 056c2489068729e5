import { domainOf } from '../../model/catalogue.ts';
import { LAST_WORDS_MS } from '../../model/facts/detail.ts';
import { forbidsDeletion } from '../../model/facts/metadata.ts';
import {
  type Condition,
  type ObjectDetail,
  type ObjectFacts,
  type ResourceType,
  trialKey,
} from '../../model/snapshot.ts';
import { type Actor, actorsOf } from '../actors.ts';
import {
  type Context,
  detailOf,
  eventsAbout,
  groupOf,
  isBuiltIn,
  isForeseen,
  listNames,
  shortQuote,
  typesOf,
} from '../context.ts';
import { type ContentError, classifyErrorText, FAILURE } from '../error-texts.ts';
import { type Held, knownFinalizer } from './held.ts';
import { currentLogLines } from './logs.ts';
import {
  isOfOneProject,
  KUBERNETES_CONTROLLERS,
  matchesReporter,
  NODE_COMPONENTS,
} from './names.ts';
import { wholesOf } from './partners.ts';

/** An error that the owner, or the API server for it, reported. */
export interface Refusal {
  error: ContentError;
  /** The source of the error. */
  source: string;
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
  const bySaying = new Map<string, Refusal>();
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
  const at = context.now.takenAt;
  return invalidity(context, held, object).map((error) => ({ error, source, at }));
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
  /** The text behind the reason of its condition in words, as `waiting for infrastructure deletion`. */
  words: string;
  source: string;
  /** The latest possible time of the text, if known: its own transition, or the last write of the status. */
  at: string;
  /** The text was written after the deletion, or nothing dates it. */
  isCurrent: boolean;
  /** The text reports trouble, and neither a mere state nor other work than the removal. */
  isTrouble: boolean;
  /** The status itself calls this a failure. */
  isStated: boolean;
  /** A condition about the whole object, or one that is called a failure. */
  isGeneral: boolean;
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
  const wordsOf = ({ reason, message }: Condition): string =>
    `${kebab(reason).replaceAll('-', ' ')}: ${message}`;
  const isNew = (one: Condition): boolean =>
    isWaitText(wordsOf(one)) &&
    Date.parse(one.lastTransitionTime ?? '') >= Date.parse(object.deletionTimestamp ?? '');
  const told = detail.conditions.filter((one) => isFailure(one) || isNew(one));
  const conditions = told.map((condition) => {
    const { type, status, reason, message: text, lastTransitionTime } = condition;
    const is = `${type}${status === '' ? '' : `=${status}`}${reason === '' ? '' : ` (${reason})`}`;
    const source = `status condition ${is} of ${object.kind} ${object.name}`;
    const isStated = ABNORMAL.test(type) || FAILED_REASON.test(reason);
    const isTrouble = !isAboutOtherWork(detail, `${type} ${reason} ${text}`);
    const date = dateOf(context, object, lastTransitionTime, condition);
    const isGeneral = isStated || WELL.test(type);
    return { text, words: wordsOf(condition), source, isTrouble, isStated, isGeneral, ...date };
  });
  const date = dateOf(context, object, undefined, detail);
  const source = `the status of ${object.kind} ${object.name}`;
  const texts = detail.texts.map((text) => {
    const isStated = detail.errors?.includes(text) === true;
    const isTrouble = !isAboutOtherWork(detail, text);
    return { text, words: text, source, isTrouble, isStated, isGeneral: false, ...date };
  });
  const sentences = (detail.sentences ?? []).map((text) => {
    const kind = { isTrouble: false, isStated: false, isGeneral: false };
    return { text, words: text, source, ...kind, ...date };
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
  // A condition with a generation of its own was not judged again by a later write of another part of the status. A
  // controller may report a generation that its cache has outdated, so a transition since the deletion counts more.
  const isBehind =
    transition !== undefined &&
    !(Date.parse(transition) >= began) &&
    (observedGeneration ?? generation) < generation;
  const at = isBehind ? transition : dates.toSorted().at(-1);
  return { at: at ?? '', isCurrent: !isBehind && (isLate || hasSeen) };
}

function fromStatus(context: Context, owner: Actor | undefined, object: ObjectFacts): Refusal[] {
  return statementsOf(context, owner, object)
    .filter(({ isCurrent, isTrouble }) => isCurrent && isTrouble)
    .flatMap(({ text, source, isStated, at }) => refusals(text, isStated, { source, at }));
}

/** Returns the texts of the objects since the deletion, also those that report no error but a wait. */
export function statusTexts(context: Context, held: Held, owner?: Actor): Statement[] {
  return held.objects.flatMap((object) =>
    statementsOf(context, owner, object).filter(({ isCurrent }) => isCurrent),
  );
}

/** Returns the Warning Events about the objects since the deletion, newest first, whoever reported them. */
export function lateWarnings(context: Context, held: Held) {
  const all = held.objects.flatMap((object) =>
    warningsAbout(context, [object], undefined)
      .filter(({ at }) => Date.parse(at) >= Date.parse(object.deletionTimestamp ?? ''))
      .map((event) => {
        const what = `Event ${event.reason} about ${object.kind} ${object.name}`;
        return { ...event, what };
      }),
  );
  const oldestFirst = all.toSorted((a, b) => (a.at < b.at ? -1 : 1));
  // The baseline may have the same Event; the last of equal ones counts.
  return [...new Map(oldestFirst.map((one) => [one.what + one.message, one])).values()].reverse();
}

/** Returns what the status of the objects says, for a report that names no owner; texts from before the deletion with their time. */
export function statusEvidence(context: Context, held: Held): string[] {
  return held.objects
    .flatMap((object) => statementsOf(context, undefined, object))
    .map(
      ({ text, source, isCurrent, at }) =>
        `${source}${isCurrent ? '' : `, last written at ${at}, before the deletion`}: ${text}`,
    );
}

const WELL = /^(?:Ready|Healthy|Available|Synced)$/;

/** Returns the failures that the status of an object reports, whenever they were written. */
export function failuresOf(
  context: Context,
  object: ObjectFacts,
  owner: Actor | undefined = undefined,
): Statement[] {
  return statementsOf(context, owner, object).filter(
    ({ isTrouble, isStated, text }) => isTrouble && (isStated || FAILURE.test(text)),
  );
}

/**
 * Returns the failures that count before a deletion. Beside a condition such as Ready=True, only conditions about the whole
 * object and failures do: any other text is history, and any other condition that is False says that an option is not in use.
 */
export function presentFailures(context: Context, object: ObjectFacts): Statement[] {
  const isWell = saysWell(detailOf(context, object)?.conditions);
  return failuresOf(context, object).filter(({ isGeneral }) => isGeneral || !isWell);
}

function saysWell(conditions: readonly Condition[] = []): boolean {
  return conditions.some(({ type, status }) => status === 'True' && WELL.test(type));
}

/** Conditions about the work of the controller itself, and not about what its object runs. */
const WORK = /^(?:InSync|Synced|Synchronized|Reconciled|Connected)$/;
/**
 * Returns what the status of an object says against its health, whatever the words of its messages: a state such as
 * Degraded, or a condition such as Synced that is False.
 */
export function poorHealth(context: Context, object: ObjectFacts): string[] {
  const { conditions = [], endedAt, unhealthy = [] } = detailOf(context, object) ?? {};
  if (endedAt !== undefined) return [];
  const failing = conditions
    .filter(({ type, status }) => status === 'False' && WORK.test(type))
    .map(({ type, reason, message }) => `${type}=False (${reason}) ${message}`.trim());
  return [...failing, ...(saysWell(conditions) ? [] : unhealthy)];
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

/** Reports whether it is a failure by its type and status, or, where these say that all is well, by its reason. */
function isFailure({ type, status: told, reason }: Condition): boolean {
  // A condition without a status is true while it exists (Argo CD, ApplicationCondition).
  const isTrue = told === '' || told === 'True';
  return ABNORMAL.test(type)
    ? isTrue
    : !isTrue || ABOUT_REMOVAL.test(type) || FAILED_REASON.test(reason);
}

/** `Ready=False` of a terminating object is a failure only if its reason or its text says so. */
const FAILED_REASON = /(?<!No)(?:Fail|Error|Denied|Refused)/;

/** Returns the last write of the writer that has been silent longest: no text of the status is surely newer. */
function lastStatusWrite({ statusWriters }: ObjectFacts): string | undefined {
  const last = new Map(statusWriters.map(({ manager, time }) => [manager, time]));
  return [...last.values()].flatMap((time) => time ?? []).sort()[0];
}

/**
 * Reports whether a text is about other work than the removal: work that has ended (a failed backup can
 * still be deleted), or work beside which the state is healthy.
 */
function isAboutOtherWork({ besideHealthy, endedAt }: ObjectDetail, words: string): boolean {
  const isOther =
    endedAt !== undefined || besideHealthy?.includes(words) === true || OTHER_WORK.test(words);
  return isOther && !ABOUT_REMOVAL.test(words.replace(NAMESPACE_ENDS, ''));
}

/**
 * Work that is no clean-up and fails by the deletion of the namespace: a sync or the like that may create nothing any
 * more, and Pods or Deployments that are gone.
 */
const OTHER_WORK =
  /\b(?:sync|upgrade|install|rollout|deploy)(?:failed|error)\b.*because it is being terminated|\b(?:pods?|deployments|statefulsets|daemonsets|replicasets)(?:\.apps)? "[^"]+" not found/is;
/** The words of NamespaceLifecycle (apiserver), which refuses any new object. */
const NAMESPACE_ENDS = /because it is being terminated/;

function fromEvents(context: Context, owner: Actor | undefined, object: ObjectFacts): Refusal[] {
  const began = Date.parse(object.deletionTimestamp ?? '') - LAST_WORDS_MS;
  return warningsAbout(context, [object], owner)
    .filter(({ at }) => Date.parse(at) >= began)
    .flatMap(({ message, reason, at }) => {
      const source = `Event ${reason} about ${object.kind} ${object.name}`;
      return refusals(message, true, { source, at });
    });
}

function warningsAbout(
  context: Context,
  objects: readonly ObjectFacts[],
  owner: Actor | undefined,
) {
  return eventsOf(context, objects, owner).filter(({ type }) => type === 'Warning');
}

/** Returns the Events about the objects that no other program than the owner is known to have reported, without noise. */
function eventsOf(context: Context, objects: readonly ObjectFacts[], owner: Actor | undefined) {
  return eventsAbout(context, { objects }).flatMap((event) => {
    const { at, component, instance, message } = event;
    if (at === undefined || NOISE.test(message)) return [];
    return isOfAnother(context, owner, component, instance) ? [] : [{ ...event, at }];
  });
}

/**
 * Returns the errors that are the last Events of the owner about the held objects: nothing better followed. A status that
 * is well makes them history.
 */
export function recentWarnings(context: Context, held: Held, owner: Actor): string[] {
  return held.objects.flatMap((object) => {
    if (saysWell(detailOf(context, object)?.conditions)) return [];
    const events = eventsOf(context, [object], owner);
    const last = events.toSorted((a, b) => (a.at < b.at ? -1 : 1)).at(-1);
    return last?.type === 'Warning' && FAILURE.test(last.message)
      ? `Event ${last.reason} about ${object.kind} ${object.name} says: ${shortQuote(last.message)}`
      : [];
  });
}

/**
 * Returns the last error of objects whose status says nothing since the deletion: a Warning Event, or a text of the status,
 * which is older or which other programs have written.
 */
export function lastComplaint(
  context: Context,
  held: Held,
  owner: Actor,
): { who: string; text: string; source: string; isOfOthers?: true } | undefined {
  const warnings = warningsAbout(context, held.objects, owner).map(
    ({ at, reason, message: text }) => ({
      at,
      who: `the last Warning Event before the deletion (${at})`,
      text,
      source: `Event ${reason} at ${at}, before the deletion`,
    }),
  );
  const statuses = held.objects.flatMap((object) => {
    const isOfOthers = isStatusOfOthers(context, owner, object);
    const managers = new Set(object.statusWriters.map(({ manager }) => `"${manager}"`));
    return failuresOf(context, object, isOfOthers ? undefined : owner).map(({ text, at }) => {
      const how = isOfOthers
        ? `written by ${listNames([...managers])}`
        : `last written at ${at}, before the deletion`;
      const source = `the status of ${object.kind} ${object.name}, ${how}`;
      return {
        at,
        who: `${source},`,
        text,
        source,
        ...(isOfOthers && { isOfOthers: true as const }),
      };
    });
  });
  return [...warnings, ...statuses].toSorted((a, b) => (a.at < b.at ? 1 : -1))[0];
}

/** Returns errors about these objects in the owner's log. */
function fromLogs(context: Context, held: Held, owner: Actor): Refusal[] {
  return currentLogLines(context, held, owner)
    .filter(({ text, isError }) => isError && !NOISE.test(text))
    .flatMap(({ text, pod, at }) => refusals(text, true, { source: `the log of ${pod}`, at }));
}

const NOISE =
  /the object has been modified|please apply your changes to the latest version|StorageError: invalid object/i;

/** Reports whether the status, an Event or the log of the owner has an error that a repeated request heals, such as a conflict. */
export function reportsConflict(context: Context, held: Held, owner: Actor): boolean {
  const texts = held.objects.flatMap((object) => {
    const { conditions = [], texts: others = [] } = detailOf(context, object) ?? {};
    return [...conditions.map(({ message }) => message), ...others];
  });
  const events = eventsAbout(context, held).map(({ message }) => message);
  const lines = currentLogLines(context, held, owner).map(({ text }) => text);
  return [...texts, ...events, ...lines].some((text) => NOISE.test(text));
}

/** A text that counts its progress reports no failure. */
export const PROGRESS = /\b\d{1,3} ?%/;

function refusals(text: string, isStated: boolean, from: Omit<Refusal, 'error'>): Refusal[] {
  const errors = classifyErrorText(text);
  // A terminating namespace accepts no new Events, and no clean-up needs them.
  if (errors.some((one) => 'resource' in one && one.resource === 'events')) return [];
  const known = errors.filter(({ kind }) => kind !== 'other');
  const others = isStated || (FAILURE.test(text) && !PROGRESS.test(text)) ? errors.slice(0, 1) : [];
  return (known.length > 0 ? known : others).map((error) => ({ ...from, error }));
}

/** Returns the kind of a resource, by its name in an error: `secrets`, `secret` and `Secret` are one. */
export function kindOfResource(context: Context, error: { resource: string }): string {
  return typeOfResource(context, error)?.kind ?? error.resource;
}

/** Returns the served type that a text names by its resource or kind; of several groups the one that it names. */
export function typeOfResource(
  context: Context,
  { resource, group = '' }: { resource: string; group?: string },
): ResourceType | undefined {
  const named = typesOf(context).filter(({ resource: plural, kind }) =>
    [plural, kind.toLowerCase()].includes(resource.toLowerCase()),
  );
  return named.find((type) => type.group === group) ?? named[0];
}

/** An object for which its controller is paused; `by`: what pauses it, as `annotation x=true`. */
export interface Pause {
  object: ObjectFacts;
  by: string;
  /** The pause may stop something else than the controller that deletes the object. */
  isUnclear: boolean;
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
    // Most types stop by a field what they run. Of a known product the catalogue says whether its controller stops.
    .map((pause) =>
      known && !known.stoppedBySpec && pause?.by.startsWith('spec.') ? undefined : pause,
    );
  if (first !== undefined && others.every((other) => other !== undefined)) return first;
  return wholesOf(context, held)
    .filter(({ apiVersion }) => isAnnotationForOwner(apiVersion, held))
    .map((whole) => pauseOf(context, held, whole))
    .find((pause) => pause !== undefined);
}

function pauseOf(context: Context, held: Held, object: ObjectFacts): Pause | undefined {
  for (const what of ['annotation', 'label'] as const) {
    const told = Object.entries(object[`${what}s`]).filter(([key, value]) => isPause(key, value));
    const own = told.find(([key]) => isAnnotationForOwner(key, held));
    const [key, value] = own ?? told.find(([one]) => isOfSibling(one, held)) ?? [];
    if (key !== undefined) {
      return { object, by: `${what} ${key}=${value}`, isUnclear: what === 'label' || !own };
    }
  }
  // A pause is for the controller of the type; a suspended Job, for example, says nothing about other controllers.
  if (isBuiltIn(groupOf(object.apiVersion))) return undefined;
  const { suspended, conditions = [] } = detailOf(context, object) ?? {};
  if (suspended !== undefined) return { object, by: suspended, isUnclear: true };
  const paused = conditions.find(
    ({ type, status }) => status === 'True' && isPause(kebab(type), status),
  );
  if (paused === undefined) return undefined;
  const { type, reason } = paused;
  const by = `status condition ${type}=True${reason === '' ? '' : ` (${reason})`}`;
  return { object, by, isUnclear: true };
}

function kebab(kind: string): string {
  return kind.replace(/(?<=[a-z])(?=[A-Z])/g, '-').toLowerCase();
}

/** A node without a ready pod of a DaemonSet; `pod` is the one that is not ready. */
export interface LostAgent {
  node: string;
  pod: string | undefined;
  object: ObjectFacts;
}

/** Returns a node that a held object names and on which the DaemonSet that serves it has no ready pod. */
export function lostAgent(
  context: Context,
  held: Held,
  { kind, pods }: Actor,
): LostAgent | undefined {
  if (kind !== 'DaemonSet' || pods.length === 0) return undefined;
  for (const object of held.objects) {
    for (const node of detailOf(context, object)?.nodes ?? []) {
      const own = pods.filter(({ nodeName }) => nodeName === node);
      if (own.every(({ ready }) => !ready)) return { node, pod: own[0]?.name, object };
    }
  }
  return undefined;
}

/** Reports whether an annotation is for the owner: one that pauses another product (Flux, not to apply it) is not. */
export function isAnnotationForOwner(annotation: string, { finalizer, type }: Held): boolean {
  const [domain = '', name] = annotation.split('/');
  return (
    name === undefined ||
    [domainOf(finalizer), type.group].some((own) => isOfOneProject(own, domain))
  );
}

/** Reports whether the key has the domain of a neighbour of the type's group: `eck.k8s.example.com`, `kibana.k8s.example.com`. */
function isOfSibling(annotation: string, { type }: Held): boolean {
  const parent = /^[^.]+(\.[^.]+\.[^.]+\..+)$/.exec(type.group)?.[1];
  return parent !== undefined && annotation.replace(/\/.*/, '').endsWith(parent);
}

/**
 * Recognizes `crossplane.io/paused: "true"`, `cluster.x-k8s.io/paused: ""` and `…/reconcile: disabled`, but not
 * `…/reconcile-policy: …`.
 */
function isPause(key: string, value: string): boolean {
  return PAUSE.test(`${key.slice(key.indexOf('/') + 1)}=${value}`);
}

const PAUSE =
  /^(?:(?:is-?)?(?:paused?|suspend(?:ed)?|ignored?|(?:pause|skip|ignore|disable|suspend|do-?not)-?reconcil\w*|reconcil\w*-paused?)=(?!(?:false|no|off|0|disabled?)$)|(?:reconcil(?:e|iation)(?:-?loop)?|managed)=(?:disabled?|false|paused?|off)$)/i;
