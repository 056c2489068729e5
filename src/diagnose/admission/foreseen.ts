import { FINALIZE, KUBERNETES_FINALIZER, NAMESPACE_TYPE } from '../../model/facts/metadata.ts';
import type { Diagnosis, NotInspected } from '../../model/finding.ts';
import {
  type Candidate,
  type Forecast,
  type LabelRequirement,
  type ObjectFacts,
  type ResourceType,
  type Trial,
  trialKey,
  type Wanted,
} from '../../model/snapshot.ts';
import {
  apiVersionOf,
  type Context,
  countsOf,
  detailOf,
  isAggregated,
  listNames,
  typeName,
} from '../context.ts';
import { classifyErrorText, isAdmissionError } from '../error-texts.ts';
import type { AdmissionRequest } from './expressions.ts';
import {
  denialOf,
  type Guard,
  guardsAsked,
  guardsFor,
  isGuardAsked,
  mayRefuse,
  realRequests,
} from './guards.ts';
import { type Judgement, judgeAdmission } from './judge.ts';

/** An object whose deletion a forecast judges, and the key of its dry run, which kubectl accepts as a name. */
interface Sample {
  type: ResourceType;
  object: Candidate & Pick<ObjectFacts, 'uid'>;
  key: string;
}

/** Lists one object of each type, objects to which only some webhooks or policies apply, and the namespace. */
export function collectSamples({ now: { forecast, namespace } }: Context): Sample[] {
  if (forecast === undefined) return [];
  const searched = Object.values(forecast.samples ?? {}).flatMap(({ sample }) => sample ?? []);
  const inside = countsOf(forecast.present).flatMap(({ type, sample }) => {
    const mine = searched.filter(
      ({ apiVersion, kind }) => kind === type.kind && apiVersion === apiVersionOf(type),
    );
    const all = sample === undefined ? [] : [sample, ...mine];
    return [...new Map(all.map((one) => [one.uid, one])).values()].map((object, index) => {
      const key = index === 0 ? typeName(type) : `${typeName(type)}/${object.name}`;
      return { type, object, key };
    });
  });
  const object = { ...namespace, namespace: '' };
  return [...inside, { type: NAMESPACE_TYPE, object, key: typeName(NAMESPACE_TYPE) }];
}

const deletionOf = (context: Context, { type, object }: Sample): AdmissionRequest =>
  realRequests(context, 'DELETE', type, object)[0];

/** Judges the deletion of each sample. */
export function foreseenAdmission(context: Context): (Judgement & { what: string })[] {
  const samples = collectSamples(context).filter(({ type }) => !isAggregated(context, type));
  return samples.map((sample) => {
    const { type, key } = sample;
    const who = type === NAMESPACE_TYPE ? 'the user who deletes it' : 'the namespace controller';
    const trial = context.now.forecast?.deletions[key];
    const judged = judgeAdmission(context, deletionOf(context, sample), who, trial);
    return { ...judged, what: `${who} delete ${typeName(type)}` };
  });
}

/** Returns the last request of the namespace controller. */
function endOf(context: Context): AdmissionRequest {
  const own = { ...context.now.namespace, namespace: '' };
  return realRequests(context, 'UPDATE', FINALIZE, own)[0];
}

function trialOfEnd({ now: { namespace, trials } }: Context): Trial | undefined {
  return trials[trialKey(namespace.uid, KUBERNETES_FINALIZER)];
}

/** Judges the last request of the namespace controller. */
export function judgeLastRequest(context: Context): Judgement {
  return judgeAdmission(context, endOf(context), 'the namespace controller', trialOfEnd(context));
}

/**
 * Returns what a forecast could not try, and refusals of the gate's own requests, which prove nothing about other
 * users.
 */
export function openQuestions(context: Context): Diagnosis['notInspected'] {
  const { forecast, namespace, takenAt } = context.now;
  if (forecast === undefined) return [];
  const judged = namespace.deletionTimestamp === takenAt ? foreseenAdmission(context) : [];
  judged.push({ ...judgeLastRequest(context), what: 'the namespace be deleted' });
  return [
    ...collectSamples(context).flatMap((sample) =>
      untried(context, deletionOf(context, sample), sample.key, forecast.deletions[sample.key]),
    ),
    ...untried(context, endOf(context), 'the namespace', trialOfEnd(context)),
    ...slowDeletions(forecast),
    ...unevaluatedGuards(context),
    ...cutNames(context),
    ...Object.values(forecast.samples ?? {}).flatMap((one) => one.unsearched ?? []),
    ...judged.flatMap(({ questions, what }) =>
      questions.map((reason) => ({ what: `whether admission lets ${what}`, reason })),
    ),
  ];
}

/** Returns what could not be tried, with the guards that would decide, and the rule to add. */
function untried(
  context: Context,
  { operation, type, object }: AdmissionRequest,
  what: string,
  trial: Trial | undefined,
): NotInspected[] {
  if (trial?.answer !== 'unknown' && trial?.answer !== 'refused') return [];
  // A refusal is a finding. An answer about dry runs alone leaves the question open.
  const isRefusal = classifyErrorText(trial.message).some(isAdmissionError);
  if (trial.answer === 'refused' && isRefusal) return [];
  const asked = guardsAsked(context, operation, type, object) ?? [];
  const remedy =
    type === FINALIZE
      ? 'the right to update namespaces/finalize lets the gate try it'
      : 'rbac/forecast.yaml lets the gate try it by dry runs';
  const who = listNames(asked.map(({ text }) => text));
  const reason = trial.message + (asked.length === 0 ? '' : `; asked is ${who}: ${remedy}`);
  return [{ what: `whether admission lets ${what} be deleted`, reason }];
}

/** Returns held objects with more names in their specs than were compared with the objects of the namespace. */
function cutNames(context: Context): NotInspected[] {
  return countsOf(context.now.forecast?.present ?? { content: [] })
    .flatMap(({ guarded }) => guarded.flatMap(({ examples }) => examples))
    .filter((object) => detailOf(context, object)?.hasMoreNames)
    .map(({ kind, name }) => ({
      what: `whether ${kind} ${name} names what its owner needs`,
      reason: 'it is too large: only a part of its names was compared',
    }));
}

/** Longer than a deletion should take. The API server deletes one object after the other (apiserver, registry/store.go). */
const LONG_SECONDS = 600;

function slowDeletions({ deletions, present }: Forecast): NotInspected[] {
  return countsOf(present).flatMap(({ type, total }) => {
    const trial = deletions[typeName(type)];
    const seconds = trial?.answer === 'accepted' ? (trial.seconds ?? 0) : 0;
    if (seconds * total < LONG_SECONDS) return [];
    const reason = `admission takes ${seconds} s for each of ${total}, one after the other`;
    return [{ what: `whether ${typeName(type)} are deleted in time`, reason }];
  });
}

/**
 * Returns guards that may decide otherwise about objects that were not tried: their expressions look at the object and
 * could not be evaluated.
 */
function unevaluatedGuards(context: Context): NotInspected[] {
  const { forecast } = context.now;
  if (forecast === undefined) return [];
  const samples = Map.groupBy(collectSamples(context), ({ type }) => typeName(type));
  return countsOf(forecast.present).flatMap(({ type, total }) => {
    const tried = samples.get(typeName(type)) ?? [];
    const isAccepted = tried.every(({ key }) => forecast.deletions[key]?.answer === 'accepted');
    if (tried.length >= total || !isAccepted) return [];
    const isOpen = (guard: Guard): boolean =>
      tried.some((sample) => {
        const request = deletionOf(context, sample);
        const asked = isGuardAsked(guard, request);
        const isUndecided = guard.policy && denialOf(guard, request) === undefined;
        return asked === undefined || (asked && isUndecided);
      });
    return guardsFor(context, 'DELETE', type)
      .filter((guard) => guard.mayDeny && guard.looksAt.length === 0)
      .filter((guard) => isSelective(guard) && isOpen(guard))
      .map(({ text }) => ({
        what: `whether ${text} lets all ${typeName(type)} be deleted`,
        reason: `its expressions look at the object and could not be evaluated; ${tried.length} of ${total} were tried`,
      }));
  });
}

/** Returns which objects to search, so that each guard has one to which it applies. */
export function wantedSamples(
  context: Context,
  type: ResourceType,
  known: readonly Sample[],
): NonNullable<Wanted['samples']> {
  const isMeant = (guard: Guard, candidate: Candidate): boolean =>
    mayRefuse(guard, realRequests(context, 'DELETE', type, candidate)[0]);
  return guardsFor(context, 'DELETE', type)
    .filter(({ mayDeny }) => mayDeny)
    .filter((guard) => isSelective(guard) && !known.some(({ object }) => isMeant(guard, object)))
    .map((guard) => ({
      key: `${typeName(type)} ${guard.text}`,
      type,
      text: guard.text,
      labelSelector: guard.objectSelector.map(selectorText).join(','),
      isMeant: (candidate) => isMeant(guard, candidate),
    }));
}

/** Reports whether the decision of the guard about a deletion depends on the object; `object` is null then. */
function isSelective({ matchConditions, objectSelector, policy }: Guard): boolean {
  const { rules = [], validations = [], variables = [] } = policy ?? {};
  const own = [...validations, ...variables].map(({ expression }) => expression);
  return (
    objectSelector.length > 0 ||
    rules.some(({ resourceNames }) => resourceNames.length > 0) ||
    [...matchConditions, ...own].some((text) => /\boldObject\b/.test(text))
  );
}

/** Writes a requirement as a Kubernetes label selector (apimachinery pkg/labels/selector.go). */
function selectorText({ key, operator, values }: LabelRequirement): string {
  if (values.length > 0) return `${key} ${operator.toLowerCase()} (${values.join(',')})`;
  return operator === 'Exists' ? key : `!${key}`;
}
