import { FINALIZE, KUBERNETES_FINALIZER, NAMESPACE_TYPE } from '../../model/facts/metadata.ts';
import { hasPodEnded } from '../../model/facts/workloads.ts';
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
  itemsIn,
  listNames,
  resultId,
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
  kubeletOf,
  mayDeny,
  mayRefuse,
  objectSelectorOf,
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

/** Judges the deletion of each sample; a kubelet deletes a pod once more, when its containers have ended. */
export function foreseenAdmission(context: Context) {
  const { forecast } = context.now;
  const alive = itemsIn(forecast?.present.pods).filter((pod) => !hasPodEnded(pod));
  const node = alive.flatMap(({ nodeName }) => nodeName ?? [])[0];
  const samples = collectSamples(context).filter(({ type }) => !isAggregated(context, type));
  return samples.flatMap(({ type, object, key }) => {
    const who = type === NAMESPACE_TYPE ? 'the user who deletes it' : 'the namespace controller';
    const [request] = realRequests(context, 'DELETE', type, object);
    const what = `${who} delete ${typeName(type)}`;
    const judged = judgeAdmission(context, request, who, forecast?.deletions[key]);
    if (typeName(type) !== 'pods' || node === undefined) return [{ ...judged, what }];
    const kubelet = `the kubelet of node ${node}`;
    const last = judgeAdmission(
      context,
      { ...request, requester: kubeletOf(node) },
      kubelet,
      undefined,
    );
    const known = judged.results.map(resultId);
    const results = last.results.filter((one) => !known.includes(resultId(one)));
    const isNew = (question: string): boolean => !judged.questions.includes(question);
    return [
      { ...judged, what },
      { ...last, results, questions: last.questions.filter(isNew), what: `${kubelet} delete pods` },
    ];
  });
}

/**
 * Returns what a forecast could not try, and refusals of the gate's own requests, which prove nothing about other
 * users.
 */
export function openQuestions(context: Context): Diagnosis['notInspected'] {
  const { forecast, namespace, takenAt, trials } = context.now;
  if (forecast === undefined) return [];
  const tried = collectSamples(context).flatMap(({ type, object, key }) => {
    const [request] = realRequests(context, 'DELETE', type, object);
    return untriedEntries(context, request, key, forecast.deletions[key]);
  });
  const end = trials[trialKey(namespace.uid, KUBERNETES_FINALIZER)];
  const judged = namespace.deletionTimestamp === takenAt ? foreseenAdmission(context) : [];
  judged.push({ ...judgeLastRequest(context), what: 'the namespace be deleted' });
  return [
    ...tried,
    ...untriedEntries(context, endOf(context), 'the namespace', end),
    ...slowDeletions(forecast),
    ...unevaluatedGuards(context),
    ...cutNames(context),
    ...Object.values(forecast.samples ?? {}).flatMap((one) => one.unsearched ?? []),
    ...judged.flatMap(({ questions, what }) =>
      questions.map((reason) => ({ what: `whether admission lets ${what}`, reason })),
    ),
  ];
}

/**
 * Returns what could not be tried; with a missing permission, also the guards that would decide, and the rule to
 * add.
 */
function untriedEntries(
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
  const held = countsOf(context.now.forecast?.present ?? { content: [] }).flatMap(({ guarded }) =>
    guarded.flatMap(({ examples }) => examples),
  );
  return held
    .filter((object) => detailOf(context, object)?.hasMoreNames)
    .map(({ kind, name }) => ({
      what: `whether ${kind} ${name} names what its owner needs`,
      reason: 'it is too large: only a part of its names was compared',
    }));
}

const LONG_SECONDS = 600;

/**
 * Returns types whose objects take long to delete: the API server deletes them one by one (apiserver,
 * registry/store.go).
 */
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
    const isUnknown = (guard: Guard): boolean =>
      tried.some(({ object }) => {
        const [request] = realRequests(context, 'DELETE', type, object);
        const asked = isGuardAsked(guard, request);
        const isOpen = guard.policy !== undefined && denialOf(guard.policy, request) === undefined;
        return asked === undefined || (asked && isOpen);
      });
    return guardsFor(context, 'DELETE', type)
      .filter((guard) => mayDeny(guard) && guard.looksAt.length === 0)
      .filter((guard) => isSelective(guard) && isUnknown(guard))
      .map(({ text }) => ({
        what: `whether ${text} lets all ${typeName(type)} be deleted`,
        reason: `its expressions look at the object and could not be evaluated; ${tried.length} of ${total} were tried`,
      }));
  });
}

/** Returns the last request of the namespace controller. */
function endOf(context: Context): AdmissionRequest {
  const own = { ...context.now.namespace, namespace: '' };
  return realRequests(context, 'UPDATE', FINALIZE, own)[0];
}

/** Judges the last request of the namespace controller. */
export function judgeLastRequest(context: Context): Judgement {
  const trial = context.now.trials[trialKey(context.now.namespace.uid, KUBERNETES_FINALIZER)];
  return judgeAdmission(context, endOf(context), 'the namespace controller', trial);
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
    .filter(mayDeny)
    .filter((guard) => isSelective(guard) && !known.some(({ object }) => isMeant(guard, object)))
    .map((guard) => ({
      key: `${typeName(type)} ${guard.text}`,
      type,
      text: guard.text,
      labelSelector: objectSelectorOf(guard).map(selectorText).join(','),
      isMeant: (candidate) => isMeant(guard, candidate),
    }));
}

/** Reports whether the decision of the guard about a deletion depends on the object; `object` is null then. */
function isSelective(guard: Guard): boolean {
  const { webhook, policy } = guard;
  const texts = [
    ...((webhook ?? policy)?.matchConditions ?? []),
    ...[...(policy?.validations ?? []), ...(policy?.variables ?? [])].map(
      ({ expression }) => expression,
    ),
  ];
  const names = policy?.rules.flatMap(({ resourceNames }) => resourceNames) ?? [];
  return (
    objectSelectorOf(guard).length + names.length > 0 ||
    texts.some((text) => /\boldObject\b/.test(text))
  );
}

/** Writes a requirement as a Kubernetes label selector (apimachinery pkg/labels/selector.go). */
function selectorText({ key, operator, values }: LabelRequirement): string {
  if (values.length > 0) return `${key} ${operator.toLowerCase()} (${values.join(',')})`;
  return operator === 'Exists' ? key : `!${key}`;
}
