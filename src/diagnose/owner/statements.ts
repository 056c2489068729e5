import { type Condition, type ObjectFacts, trialKey } from '../../model/snapshot.ts';
import { type Actor, actorsOf } from '../actors.ts';
import { detailOf, eventsAbout, typeNamedBy } from '../content.ts';
import type { Context } from '../context.ts';
import { ABOUT_REMOVAL, LAST_WORDS_MS } from '../detail.ts';
import { type ContentError, classifyErrorText, FAILURE } from '../error-texts.ts';
import { nameOf } from '../results.ts';
import type { Held } from './held.ts';
import { currentLogLines } from './logs.ts';
import { isKubernetesComponent, matchesReporter, NODE_COMPONENTS } from './names.ts';

// What is said about held objects: by whom, when, and how bad it is. One list, newest first; all exports are filters of it.

/** A text about an object: of its status, of an Event, of its owner's log, or the answer to a dry run. */
interface Statement {
  text: string;
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
  /** It says, in whatever words, that the object works badly. */
  isPoor?: boolean;
}

/** Of texts of one time, those about the removal come first, and the longest says most: the others sum it up. */
function newestFirst(all: readonly Statement[]): Statement[] {
  const isMeant = ({ source, text }: Statement) => Number(ABOUT_REMOVAL.test(`${source} ${text}`));
  return all.toSorted(
    (a, b) => b.at.localeCompare(a.at) || isMeant(b) - isMeant(a) || b.text.length - a.text.length,
  );
}

/** Returns the current failures that the objects, the log of the owner and a dry run report, newest first, each text once. */
export function refusalsFor(context: Context, held: Held, owner?: Actor) {
  const all = held.objects.flatMap((object): Statement[] => {
    const { text } = invalidity(context, held, object.uid) ?? {};
    const source = `a dry run that removes the finalizer of ${nameOf(object)}`;
    const tried = text ? [{ text, source, at: context.now.takenAt, ...FAILURE_NOW }] : [];
    return [...tried, ...statusOf(context, object), ...eventsOf(context, object, owner)];
  });
  const logged = (owner ? currentLogLines(context, held, owner) : [])
    .filter(({ text, isError }) => isError && !NOISE.test(text))
    .map(({ text, pod, at }) => ({ text, source: `the log of ${pod}`, at, ...FAILURE_NOW }));
  const errors = newestFirst([...all, ...logged])
    .filter((one) => one.isNew && one.isFailure)
    .flatMap(({ text, ...by }) => errorsIn(context, text).map((error) => ({ error, ...by })));
  const texts = errors.map(({ error }) => error.text);
  return errors.filter(({ error }, at) => texts.indexOf(error.text) === at);
}

/** Returns the new texts of the status of the objects, also those that report no failure but a wait. */
export function statusTexts(context: Context, { objects }: Held): Statement[] {
  return newestFirst(objects.flatMap((one) => statusOf(context, one))).filter(({ isNew }) => isNew);
}

/** Returns what the status of an object says against it before a deletion. Work that has ended fails no more. */
export function troublesOf(context: Context, object: ObjectFacts): string[] {
  const { conditions, endedAt } = detailOf(context, object) ?? {};
  if (endedAt !== undefined) return [];
  // Beside Ready=True, any text but about the whole object is history, and any other condition that is False an option not in use.
  const isWell = saysWell(conditions);
  return statusOf(context, object)
    .filter((one) => (one.isFailure && (one.isGeneral || !isWell)) || one.isPoor)
    .map(({ text }) => text);
}

/** Returns the newest text, also from before the deletion, by which the objects are not well. */
export function lastComplaint(context: Context, { objects }: Held, by?: Actor) {
  const all = objects.flatMap((one) => [...statusOf(context, one), ...eventsOf(context, one, by)]);
  return newestFirst(all).find(({ isFailure, isGeneral }) => isFailure || isGeneral);
}

export function statusEvidence(context: Context, { objects }: Held): string[] {
  const all = newestFirst(objects.flatMap((one) => statusOf(context, one)));
  return all.slice(0, 10).map(({ at, isNew, source, text }) => {
    // Renderers write the time as an age.
    const written = at === '' ? 'written' : `written at ${at},`;
    return `${source}${isNew ? '' : `, ${written} before the deletion`}: ${text}`;
  });
}

const WAITING =
  /\ba?wait|\bterminating\b|\bstill\b|\buntil\b|\bremain|\bpending\b|\bblock|\bdepend|\bin use\b|\b(?:used|referenced) by\b|\b(?:must|cannot) be (?:deleted|removed|gone)|\bleft\b|\b(?:being|for) delet|\bexists?\b|\bnot (?:yet )?(?:been )?(?:gone|deleted|removed|finali[sz]ed|finished|ready)\b/i;
const FAILING =
  /\brefused|\btime(?:d )?-?out|\bunauthori[sz]ed|\bdenied|\bforbidden|no such host|x509|certificate (?:is|has|signed|not)|\b(?:code|status|http)\W{0,3}5\d\d\b|internal error|does not exist|not exist/i;

/** Reports whether a text says that another object must be deleted first, and not that a request failed. */
export function isWaitText(text: string): boolean {
  return WAITING.test(text) && !FAILING.test(text);
}

/** A validation error, which refuses every change of the object for all users. */
export function invalidity({ now }: Context, { finalizer }: Held, uid: string) {
  const trial = now.trials[trialKey(uid, finalizer)];
  if (trial?.answer !== 'refused') return undefined;
  const error = classifyErrorText(trial.message).find(({ kind }) => kind === 'invalid');
  return error && { ...error, text: trial.message };
}

const FAILURE_NOW = { isNew: true, isFailure: true, isGeneral: true };

/** Returns the Events about an object that no other program has reported; a Warning is a failure. */
function eventsOf(context: Context, object: ObjectFacts, owner?: Actor): Statement[] {
  const began = Date.parse(object.deletionTimestamp ?? '') - LAST_WORDS_MS;
  return eventsAbout(context, { objects: [object] })
    .filter(({ component, instance, message }) => {
      if (NOISE.test(message)) return false;
      const isOf = (actor: Actor): boolean => matchesReporter(actor, component, instance);
      return owner === undefined || isOf(owner)
        ? !NODE_COMPONENTS.test(component)
        : !isKubernetesComponent(component) && !actorsOf(context).some(isOf);
    })
    .map(({ at = '', message: text, reason, type }) => {
      const source = `Event ${reason} about ${nameOf(object)}`;
      const isNew = Date.parse(at) >= began || DURING_DELETION.test(text);
      const isFailure = type === 'Warning';
      return { text, source, at, isNew, isFailure, isGeneral: isFailure };
    });
}

function statusOf(context: Context, object: ObjectFacts): Statement[] {
  const detail = detailOf(context, object);
  // What only Kubernetes itself writes tells of the work of a Pod or Job, and not of the removal of a finalizer.
  const writers = object.statusWriters.map(({ manager }) => manager);
  if (!detail || (writers.length > 0 && writers.every(isKubernetesComponent))) return [];
  const of = `of ${nameOf(object)}`;
  const isFailure = (text: string, isStated: boolean, about = text): boolean =>
    (isStated ||
      // A text that counts its progress reports no failure.
      (FAILURE.test(text) && !/\b\d{1,3} ?%/.test(text)) ||
      classifyErrorText(text).some(({ kind }) => kind !== 'other')) &&
    (ABOUT_REMOVAL.test(about) || (detail.endedAt === undefined && !OTHER_WORK.test(about)));
  const conditions = detail.conditions.filter(isAgainstIt).map((condition): Statement => {
    const { type, status, reason } = condition;
    const what = `${type}${status && `=${status}`}${reason && ` (${reason})`}`;
    const text = condition.message || what;
    const isStated = (ABNORMAL.test(type) && status !== 'Unknown') || FAILED_REASON.test(reason);
    return {
      ...{ text, ...dateOf(context, object, text, condition) },
      source: `status condition ${what} ${of}`,
      isFailure: isFailure(text, isStated, `${type} ${reason} ${text}`),
      isGeneral: isStated || (status === 'False' && WELL.test(type)),
      isPoor: status === 'False' && WORK.test(type),
    };
  });
  const { errors = [], observedGeneration, unhealthy = [] } = detail;
  const isSick = detail.endedAt === undefined && !saysWell(detail.conditions);
  const all = [...(isSick ? unhealthy : []), ...detail.texts];
  const texts = all.map((text): Statement => {
    const date = dateOf(context, object, text, { observedGeneration });
    return {
      ...{ text, ...date, source: `the status ${of}` },
      isFailure: detail.texts.includes(text) && isFailure(text, errors.includes(text)),
      // A state is all that a status may say: `phase: Suspended (the licence has expired)`.
      isGeneral: unhealthy.includes(text),
      isPoor: unhealthy.includes(text),
    };
  });
  return [...conditions, ...texts].filter(({ text }) => !NOISE.test(text));
}

function errorsIn(context: Context, text: string): ContentError[] {
  const errors = classifyErrorText(text);
  // A terminating namespace accepts no new Events, and no clean-up needs them.
  if (errors.some((one) => 'resource' in one && one.resource === 'events')) return [];
  const known = errors.filter(({ kind }) => kind !== 'other');
  return (known.length > 0 ? known : errors.slice(0, 1)).map((error) => {
    // Other systems refuse with similar texts, which name no user, and no object by its resource or kind.
    const isForeign =
      error.kind === 'not-found'
        ? typeNamedBy(context, error.resource, error.group)?.group !== error.group
        : error.kind === 'forbidden' && error.user === undefined;
    return isForeign ? { kind: 'other', text: error.text } : error;
  });
}

/**
 * Dates a text of a status: by its own transition, by the last write of the status (of the writer that has been silent
 * longest), and by the generation that its writer has seen, which a deletion raises. Words that only make sense during a
 * deletion are new, whatever the dates. In a forecast the deletion lies ahead.
 */
function dateOf({ now }: Context, object: ObjectFacts, text: string, said: Partial<Condition>) {
  const { deletionTimestamp: since = now.takenAt, generation = 0, statusWriters } = object;
  const { observedGeneration: seen, lastTransitionTime: changed } = said;
  const isAhead = now.forecast !== undefined && since === now.takenAt;
  const whole = object.namespace === now.namespace.name ? now.namespace.deletionTimestamp : '';
  const isLate = (at: string): boolean =>
    !isAhead && (Date.parse(at) >= Date.parse(since) || Date.parse(at) > Date.parse(whole ?? ''));
  const isOfDeletion = DURING_DELETION.test(text) && !isAhead;
  // A condition of an older generation was not judged again by a later write of another part of the status.
  const isOlder = changed !== undefined && !isLate(changed) && (seen ?? generation) < generation;
  if (isOlder) return { at: changed, isNew: isOfDeletion };
  const writes = new Map(statusWriters.map(({ manager, time }) => [manager, time]));
  const [written] = [...writes.values()].flatMap((time) => time ?? []).sort();
  const dates = [changed, written].flatMap((date) => date ?? []).sort();
  const hasSeen = seen === undefined ? dates.length === 0 : seen >= generation;
  const isNew = isOfDeletion || hasSeen || dates.some(isLate);
  return { at: (isNew ? undefined : changed) ?? dates.at(-1) ?? '', isNew };
}

/** Words that only make sense while an object or its namespace is being deleted. */
const DURING_DELETION =
  /because it is being terminated|\bdeletion (?:is )?blocked|\bblock(?:s|ing|ed)? (?:the |its )?deletion|\b(?:wait\w*|pending) (?:for|until|on)\b.{0,150}\b(?:deletion|(?:be|is|are) (?:deleted|removed|gone|finalized))\b/i;
/** Conditions that say whether an object as a whole is well. */
const WELL = /^(?:Healthy|Available|Synced|Reconciled|Valid|Connected|\w*Ready)$/;
/** Conditions about the work of the controller itself, and not about what its object runs. */
const WORK = /^(?:InSync|Synced|Synchronized|Reconciled|Connected)$/;

function saysWell(conditions: readonly Condition[] = []): boolean {
  return conditions.some(({ type, status }) => status === 'True' && WELL.test(type));
}

/** Types that are well while they are False (Kubernetes API conventions, "Typical status properties"). */
const ABNORMAL =
  /^Not[A-Z]|[Uu]n(?:healthy|available|reachable)|[Ff]ail|[Ee]rror|[Dd]egraded|[Ss]talled|[Bb]locked|[Dd]enied|[Rr]efus|[Uu]nable|[Cc]onflict|[Tt]erminal|[Rr]ecoverable/;
/** `Ready=False` of a terminating object is a failure only if its reason or its text says so. */
const FAILED_REASON = /(?<!Not?)(?:Fail|Error|Denied|Refused)/;

/** Reports whether a condition says that something is not well, by its type and status, or else by its reason (`ReconcileFailed=False (LastReconcileCycleFailed)`). */
function isAgainstIt({ type, status, reason }: Condition): boolean {
  if (ABNORMAL.test(type)) return status !== 'False' || FAILED_REASON.test(reason);
  // A condition without a status is true while it exists (Argo CD, ApplicationCondition).
  return !['', 'True'].includes(status) || ABOUT_REMOVAL.test(type) || FAILED_REASON.test(reason);
}

/** Work that is no clean-up and fails by the deletion of the namespace: a sync, or what needs Pods or Deployments that are gone. */
const OTHER_WORK =
  /\b(?:sync|upgrade|install|rollout|deploy)(?:failed|error)\b.*because it is being terminated|\b(?:pods?|deployments|statefulsets|daemonsets|replicasets)(?:\.apps)? "[^"]+" not found/is;
/** Errors that a repeated request heals, and texts that only point to another one. */
const NOISE =
  /the object has been modified|please apply your changes to the latest version|StorageError: invalid object|\(see \.status\.\w+ for details\)/i;
