import { LAST_WORDS_MS } from '../../model/facts/detail.ts';
import type { Condition, ObjectFacts, ResourceType } from '../../model/snapshot.ts';
import { trialKey } from '../../model/snapshot.ts';
import { type Actor, actorsOf } from '../actors.ts';
import { type Context, detailOf, eventsAbout, isForeseen, typesOf } from '../context.ts';
import { type ContentError, classifyErrorText, FAILURE } from '../error-texts.ts';
import type { Held } from './held.ts';
import { currentLogLines } from './logs.ts';
import { KUBERNETES_CONTROLLERS, matchesReporter, NODE_COMPONENTS } from './names.ts';

// Everything that is said about held objects is one list of dated texts, newest first; all exports are filters of it. This
// file alone decides whether a text is about the removal, whether it reports a failure, and whether it is newer than the deletion.

/** A text about an object: of its status, of an Event, of its owner's log, or the answer to a dry run. */
interface Statement {
  object: ObjectFacts;
  by: 'status' | 'Event' | 'log' | 'trial';
  text: string;
  /** The text behind the reason of its condition in words, or behind who reported the Event. */
  words: string;
  /** "status condition Ready=False (Failed) of Widget db", "the log of ops/widget-operator-0/manager". */
  source: string;
  /** The latest possible time of the text; empty if nothing dates it. */
  at: string;
  /** The text was written after the deletion, makes sense only during one, or nothing dates it. */
  isNew: boolean;
  /** The text reports a failure that may concern the removal. */
  isFailure: boolean;
  /** It says that the whole object is not well, or the status itself calls it a failure. */
  isGeneral: boolean;
  /** Only programs other than the owner wrote the status since the deletion, or ever; another one reported the Event. */
  isOfOthers: boolean;
}

/** An error of a statement, as far as it is understood. */
export interface Refusal extends Pick<Statement, 'source' | 'at'> {
  error: ContentError;
}

/** Returns what the status of the objects and their Events say, newest first. Without an owner, nobody is another program. */
function statementsAbout(
  context: Context,
  objects: readonly ObjectFacts[],
  owner?: Actor,
): Statement[] {
  return newestFirst(
    objects.flatMap((object) => [
      ...statusOf(context, object, owner),
      ...eventsOf(context, object, owner),
    ]),
  );
}

function newestFirst<T extends { at: string }>(all: readonly T[]): T[] {
  return all.toSorted((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
}

/** Returns the current failures that the objects, the log of the owner and a dry run report, newest first, each text once. */
export function refusalsFor(context: Context, held: Held, owner?: Actor): Refusal[] {
  const said = newestFirst([
    ...trialsOf(context, held),
    ...(owner === undefined ? [] : logOf(context, held, owner)),
    ...statementsAbout(context, held.objects, owner),
  ]);
  const errors = said
    .filter((one) => one.isNew && one.isFailure && !one.isOfOthers)
    .flatMap(({ text, source, at }) => errorsIn(text).map((error) => ({ error, source, at })));
  const unique = new Map(errors.toReversed().map((one) => [one.error.text, one]));
  return newestFirst([...unique.values()].reverse()).map((one) => ({
    ...one,
    error: asKubernetesError(context, one.error),
  }));
}

/** Returns the new texts of the status of the objects, also those that report no failure but a wait. */
export function statusTexts(context: Context, held: Held, owner?: Actor): Statement[] {
  return statementsAbout(context, held.objects, owner).filter(
    ({ by, isNew, isOfOthers }) => by === 'status' && isNew && !isOfOthers,
  );
}

/**
 * Returns the failures that count before a deletion. Beside a condition such as Ready=True, only conditions about the whole
 * object and failures do: any other text is history, and any other condition that is False says that an option is not in use.
 */
export function presentFailures(context: Context, object: ObjectFacts): Statement[] {
  const isWell = saysWell(detailOf(context, object)?.conditions);
  return statusOf(context, object).filter(
    ({ isFailure, isGeneral, isOfOthers }) => isFailure && !isOfOthers && (isGeneral || !isWell),
  );
}

/** Returns the newest failure from before the deletion, or in a status of other programs. */
export function lastComplaint(context: Context, held: Held, owner: Actor): Statement | undefined {
  return statementsAbout(context, held.objects, owner).find(
    ({ by, isFailure, isGeneral, isOfOthers }) =>
      (isFailure || isGeneral) && !(by === 'Event' && isOfOthers),
  );
}

/** Returns what the status of the objects says, for a report that names no owner; texts from before the deletion with their time. */
export function statusEvidence(context: Context, held: Held): string[] {
  return statementsAbout(context, held.objects)
    .filter(({ by, isOfOthers }) => by === 'status' && !isOfOthers)
    .map((one) => `${one.source}${one.isNew ? '' : `, ${ageText(one)}`}: ${one.text}`);
}

/** Returns when a text from before the deletion was written; renderers write the time as an age. */
export function ageText({ at, isOfOthers }: Pick<Statement, 'at' | 'isOfOthers'>): string {
  if (isOfOthers) return 'written by another program';
  return at === '' ? 'written before the deletion' : `written at ${at}, before the deletion`;
}

/** Conditions about the work of the controller itself, and not about what its object runs. */
const WORK = /^(?:InSync|Synced|Synchronized|Reconciled|Connected)$/;

/** Returns what the status of an object says against its health, whatever the words: Degraded, or Synced=False. */
export function poorHealth(context: Context, object: ObjectFacts): string[] {
  const { conditions = [], endedAt, unhealthy = [] } = detailOf(context, object) ?? {};
  if (endedAt !== undefined) return [];
  const failing = conditions
    .filter(({ type, status }) => status === 'False' && WORK.test(type))
    .map(({ type, reason, message }) => `${type}=False (${reason}) ${message}`.trim());
  return [...failing, ...(saysWell(conditions) ? [] : unhealthy)];
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

const WAITING =
  /\ba?wait|\bterminating\b|\bstill\b|\buntil\b|\bremain|\bpending\b|\bblock|\bdepend|\bin use\b|\b(?:used|referenced) by\b|\b(?:must|cannot) be (?:deleted|removed|gone)|\bleft\b|\b(?:being|for) delet|\bexists?\b|\bnot (?:yet )?(?:been )?(?:gone|deleted|removed|finali[sz]ed|finished|ready)\b/i;
const FAILING =
  /\brefused|\btime(?:d )?-?out|\bunauthori[sz]ed|\bdenied|\bforbidden|no such host|x509|certificate (?:is|has|signed|not)|\b(?:code|status|http)\W{0,3}5\d\d\b|internal error|does not exist|not exist/i;

/** Reports whether a text says that another object must be deleted first, and not that a request failed. */
export function isWaitText(text: string): boolean {
  return WAITING.test(text) && !FAILING.test(text);
}

/** A text that counts its progress reports no failure. */
export const PROGRESS = /\b\d{1,3} ?%/;

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

/** Returns the texts of a status, without noise. */
function statusOf(context: Context, object: ObjectFacts, owner?: Actor): Statement[] {
  const detail = detailOf(context, object);
  if (detail === undefined) return [];
  const common = {
    ...{ object, by: 'status' as const },
    isOfOthers: isStatusOfOthers(context, owner, object),
  };
  const reports = (text: string, isStated: boolean, about = text): boolean =>
    (isStated || isFailureText(text)) &&
    (ABOUT_REMOVAL.test(about.replace(NAMESPACE_ENDS, '')) ||
      (detail.endedAt === undefined && !OTHER_WORK.test(about)));
  const conditions = detail.conditions.flatMap((condition): Statement[] => {
    const { type, status, reason, lastTransitionTime: since } = condition;
    const text = condition.message || reason;
    const words = `${reason.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase()}: ${text}`;
    // A condition that is well counts if it has changed since the deletion and says what it waits for: `InUse=True`.
    const isMeant =
      isAgainstIt(condition) || (isWaitText(words) && isLater(context, object, since));
    if (!isMeant) return [];
    const is = `${type}${status === '' ? '' : `=${status}`}${reason === '' ? '' : ` (${reason})`}`;
    const isStated = ABNORMAL.test(type) || FAILED_REASON.test(reason);
    return [
      {
        ...{ ...common, text, words, ...dateOf(context, object, condition, text, since) },
        source: `status condition ${is} of ${object.kind} ${object.name}`,
        isFailure: reports(text, isStated, `${type} ${reason} ${text}`),
        isGeneral: isStated || (status === 'False' && WELL.test(type)),
      },
    ];
  });
  const texts = [...detail.texts, ...(detail.sentences ?? [])].map((text): Statement => {
    const date = dateOf(context, object, detail, text);
    // Of sentences in other fields, only what was written since the deletion may be about the removal.
    const isMeant = detail.texts.includes(text) || (date.isNew && OF_A_REMOVAL.test(text));
    return {
      ...{ ...common, text, words: text, ...date, isGeneral: false },
      source: `the status of ${object.kind} ${object.name}`,
      isFailure: isMeant && reports(text, detail.errors?.includes(text) === true),
    };
  });
  return [...conditions, ...texts].filter(({ text }) => text !== '' && !NOISE.test(text));
}

/** Returns the Events about an object, without noise; a Warning is a failure. */
function eventsOf(context: Context, object: ObjectFacts, owner?: Actor): Statement[] {
  const began = Date.parse(object.deletionTimestamp ?? '') - LAST_WORDS_MS;
  return eventsAbout(context, { objects: [object] })
    .filter(({ at, message }) => at !== undefined && !NOISE.test(message))
    .map(({ at = '', component, instance, message: text, reason, type }) => {
      const isFailure = type === 'Warning';
      return {
        ...{ object, by: 'Event', text, words: `by ${component}: ${text}`, at },
        ...{ isFailure, isGeneral: isFailure },
        source: `Event ${reason} about ${object.kind} ${object.name}`,
        isNew: Date.parse(at) >= began || DURING_DELETION.test(text),
        isOfOthers: isOfAnother(context, owner, component, instance),
      };
    });
}

const NEW_FAILURE = { isNew: true, isFailure: true, isGeneral: true, isOfOthers: false };

/** Returns the errors about these objects in the owner's log. */
function logOf(context: Context, held: Held, owner: Actor): Statement[] {
  return currentLogLines(context, held, owner)
    .filter(({ text, isError }) => isError && !NOISE.test(text))
    .map(({ text, pod, at, object }) => ({
      ...{ object, by: 'log', text, words: text, source: `the log of ${pod}`, at },
      ...NEW_FAILURE,
    }));
}

/** Returns the refusals of a dry run that no other request can escape. */
function trialsOf(context: Context, held: Held): Statement[] {
  return held.objects.flatMap((object) =>
    invalidity(context, held, object).map(({ text }) => ({
      ...{ object, by: 'trial', text, words: text, at: context.now.takenAt, ...NEW_FAILURE },
      source: `a dry run that removes the finalizer of ${object.kind} ${object.name}`,
    })),
  );
}

/** Returns the errors in the text of a failure. A terminating namespace accepts no new Events, and no clean-up needs them. */
function errorsIn(text: string): ContentError[] {
  const errors = classifyErrorText(text);
  if (errors.some((one) => 'resource' in one && one.resource === 'events')) return [];
  const known = errors.filter(({ kind }) => kind !== 'other');
  return known.length > 0 ? known : errors.slice(0, 1);
}

function isFailureText(text: string): boolean {
  return (
    (FAILURE.test(text) && !PROGRESS.test(text)) ||
    classifyErrorText(text).some(({ kind }) => kind !== 'other')
  );
}

/**
 * Reports an error as one of Kubernetes only if its text names a user, or an object by its resource or kind: other
 * systems refuse with similar texts. Client libraries write the kind in lower case: `issuer.cert-manager.io "x" not found`.
 */
function asKubernetesError(context: Context, error: ContentError): ContentError {
  const foreign: ContentError = { kind: 'other', text: error.text };
  if (error.kind === 'forbidden') return error.user === undefined ? foreign : error;
  if (error.kind !== 'not-found') return error;
  const type = typeOfResource(context, error);
  const isOurs =
    type !== undefined &&
    ([type.resource, type.kind].includes(error.resource) || type.group === error.group);
  return isOurs ? error : foreign;
}

/** Reports whether a text is of another program than the owner: many programs report about one object. */
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

function isStatusOfOthers(
  context: Context,
  owner: Actor | undefined,
  { deletionTimestamp = '', statusWriters }: ObjectFacts,
): boolean {
  const late = statusWriters.filter(
    ({ time = '' }) => Date.parse(time) >= Date.parse(deletionTimestamp),
  );
  const writers = late.length > 0 ? late : statusWriters;
  return writers.length > 0 && writers.every(({ manager }) => isOfAnother(context, owner, manager));
}

/** Reports whether the time is after the deletion of the object or of its namespace; in a forecast it lies ahead. */
function isLater(
  context: Context,
  { deletionTimestamp: since = '', namespace }: ObjectFacts,
  time = '',
): boolean {
  if (isForeseen(context, { since })) return false;
  const { name, deletionTimestamp: whole = '' } = context.now.namespace;
  const isAfterWhole = namespace === name && Date.parse(time) > Date.parse(whole);
  return isAfterWhole || Date.parse(time) >= Date.parse(since);
}

/**
 * Dates a text of a status: by its own transition, by the last write of the status (of the writer that has been silent
 * longest), and by the generation that its writer has seen, which a deletion raises. Words that only make sense during a
 * deletion are new, whatever the dates.
 */
function dateOf(
  context: Context,
  object: ObjectFacts,
  { observedGeneration: seen }: { observedGeneration?: number | undefined },
  text: string,
  transition?: string,
): Pick<Statement, 'at' | 'isNew'> {
  const { generation = 0, deletionTimestamp: since = '', statusWriters } = object;
  const writes = new Map(statusWriters.map(({ manager, time }) => [manager, time]));
  const [written] = [...writes.values()].flatMap((time) => time ?? []).sort();
  const dates = [transition, written].flatMap((date) => date ?? []);
  const isLate = dates.some((date) => isLater(context, object, date));
  const hasSeen = seen === undefined ? dates.length === 0 : seen >= generation;
  const isOfDeletion = DURING_DELETION.test(text) && !isForeseen(context, { since });
  // A condition of an older generation was not judged again by a later write of another part of the status.
  const isBehind =
    transition !== undefined &&
    !isLater(context, object, transition) &&
    (seen ?? generation) < generation;
  const isNew = isOfDeletion || (!isBehind && (isLate || hasSeen));
  return { at: isBehind ? transition : (dates.toSorted().at(-1) ?? ''), isNew };
}

/** Words that only make sense while an object or its namespace is being deleted. */
const DURING_DELETION =
  /because it is being terminated|\bdeletion (?:is )?blocked|\bblock(?:s|ing|ed)? (?:the |its )?deletion|\b(?:wait\w*|pending) (?:for|until|on)\b.{0,150}\b(?:deletion|(?:be|is|are) (?:deleted|removed|gone|finalized))\b/i;

/** Conditions that say whether an object as a whole is well. */
const WELL = /^(?:Healthy|Available|Synced|Reconciled|Valid|Connected|\w*Ready)$/;
const SURELY_WELL = /^(?:Ready|Healthy|Available|Synced)$/;

function saysWell(conditions: readonly Condition[] = []): boolean {
  return conditions.some(({ type, status }) => status === 'True' && SURELY_WELL.test(type));
}

/**
 * Types with "abnormal-true" and "normal-true" polarity (Kubernetes API conventions, "Typical status
 * properties"). For an unknown type only its text is known.
 */
const ABNORMAL =
  /^Not[A-Z]|[Uu]n(?:healthy|available|reachable)|[Ff]ail|[Ee]rror|[Dd]egraded|[Ss]talled|[Bb]locked|[Dd]enied|[Rr]efus|[Uu]nable|[Cc]onflict|[Tt]erminal|[Rr]ecoverable/;

/** Conditions about the removal itself are True while it goes on, well or badly: only the text decides. */
const ABOUT_REMOVAL = /delet|terminat|finali[sz]|clean/i;
const OF_A_REMOVAL = /^(?:error|fail|cannot|could not|unable)|delet|terminat|finali[sz]|clean/i;

/** `Ready=False` of a terminating object is a failure only if its reason or its text says so. */
const FAILED_REASON = /(?<!No)(?:Fail|Error|Denied|Refused)/;

/** Reports whether a condition says that something is not well, by its type and status, or else by its reason. */
function isAgainstIt({ type, status, reason }: Condition): boolean {
  // A condition without a status is true while it exists (Argo CD, ApplicationCondition).
  const isTrue = status === '' || status === 'True';
  return ABNORMAL.test(type)
    ? isTrue
    : !isTrue || ABOUT_REMOVAL.test(type) || FAILED_REASON.test(reason);
}

/**
 * Work that is no clean-up and fails by the deletion of the namespace: a sync or the like that may create nothing any
 * more, and Pods or Deployments that are gone.
 */
const OTHER_WORK =
  /\b(?:sync|upgrade|install|rollout|deploy)(?:failed|error)\b.*because it is being terminated|\b(?:pods?|deployments|statefulsets|daemonsets|replicasets)(?:\.apps)? "[^"]+" not found/is;
/** The words of NamespaceLifecycle (apiserver), which refuses any new object. */
const NAMESPACE_ENDS = /because it is being terminated/;

/** Errors that a repeated request heals. */
const NOISE =
  /the object has been modified|please apply your changes to the latest version|StorageError: invalid object/i;
