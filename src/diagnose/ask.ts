import type { Details } from '../observe/details.ts';
import type { ResourceType, Snapshot, TypeContent } from '../observe/snapshot.ts';
import { matchesRules } from './admission.ts';
import { parseConditions } from './conditions.ts';
import type { View } from './draft.ts';
import { namespaceSubject } from './draft.ts';
import { backendsOf, candidatesFor } from './ownership/candidates.ts';
import { crdName, groupsOf, type Held, isOfControllerManager } from './ownership/held.ts';
import { noQuestions, type ObjectRef, type Questions } from './questions.ts';
import { CONTROLLER_LEASE, isUnprocessed } from './rules/namespace-controller-inactive.ts';
import { heldObjects } from './rules/object-finalizer.ts';

/** How many blocking objects are looked at more closely; the others have the same causes, mostly. */
const MAX_CLOSER_LOOKS = 10;

export function viewOf(now: Snapshot, before?: Snapshot): View {
  return {
    now,
    before,
    conditions: parseConditions(now.namespace.conditions),
    nowMs: Date.parse(now.takenAt),
  };
}

/**
 * What else has to be read before the findings can be explained. Asked again after each answer, until
 * nothing is left to ask. A clean namespace raises no question and costs no request.
 */
export function questionsOf(now: Snapshot, before?: Snapshot): Questions {
  const view = viewOf(now, before);
  const details = now.details;
  const helds = heldIn(view).slice(0, MAX_CLOSER_LOOKS);
  const questions = noQuestions();
  const ownable = helds.filter((held) => !isOfControllerManager(held));
  const errors = view.conditions.contentFailure?.errors ?? [];
  questions.crds = unique([
    ...ownable.flatMap((held) => crdName(view, held) ?? []),
    ...relatedCrds(view, ownable),
    ...errors.flatMap((error) =>
      error.kind === 'conversion-failed' ? convertedCrd(view, error) : [],
    ),
  ]).filter((name) => details?.crds[name] === undefined);
  questions.statuses = helds
    .flatMap((held) => refOf(held) ?? [])
    .filter((ref) => details?.statuses[ref.uid] === undefined);
  questions.owners = ownable.length > 0 && details?.workloads === undefined;
  questions.provider = ownable.length > 0 && details?.isOnProvider === undefined;
  questions.webhooks =
    details?.webhooks === undefined &&
    (helds.some(({ type }) => type !== undefined) ||
      errors.some(({ kind }) => kind === 'webhook-unreachable' || kind === 'webhook-denied'));
  questions.attachments =
    details?.attachments === undefined &&
    helds.some(({ object }) => object.kind === 'PersistentVolumeClaim');
  if (isUnprocessed(view)) questions.leases = [CONTROLLER_LEASE.namespace];
  if (details !== undefined) askAboutOwners(view, helds, details, questions);
  questions.leases = unique(questions.leases).filter((name) => details?.leases[name] === undefined);
  questions.events = unique(questions.events).filter((name) => details?.events[name] === undefined);
  questions.services = unique(questions.services).filter(
    (key) => details?.services[key] === undefined,
  );
  return questions;
}

/** Once workloads and grants are known, the owner's own surroundings are what is missing. */
function askAboutOwners(
  view: View,
  helds: readonly Held[],
  details: Details,
  questions: Questions,
): void {
  for (const held of helds) {
    const { type } = held;
    for (const { service } of backendsOf(view, groupsOf(view, held), details)) {
      questions.services.push(`${service.namespace}/${service.name}`);
    }
    if (type !== undefined) {
      const matching = (details.webhooks?.ok === true ? details.webhooks.value : []).filter(
        (webhook) => webhook.failurePolicy === 'Fail' && matchesRules(webhook, 'UPDATE', type),
      );
      for (const { service } of matching) {
        if (service !== undefined) questions.services.push(`${service.namespace}/${service.name}`);
      }
    }
    const isOfManager = isOfControllerManager(held);
    const best = isOfManager ? undefined : candidatesFor(view, held)[0];
    if (best !== undefined) {
      if (best.workload === undefined) questions.leases.push(best.serviceAccount.namespace);
      else questions.events.push(best.workload.namespace);
    } else if (!isOfManager) {
      // Nobody may change the type: one that only watches it may have been refused.
      questions.events.push(...watchersOf(view, held, details));
    }
    const isAlive = isOfManager || (best?.workload?.ready ?? 0) > 0;
    const ref = refOf(held);
    const key = `${ref?.uid} ${held.finalizer}`;
    if (
      isAlive &&
      ref !== undefined &&
      held.facts !== undefined &&
      details.trials[key] === undefined
    ) {
      const index = held.facts.finalizers.indexOf(held.finalizer);
      questions.trials.push({ ...ref, finalizer: held.finalizer, index });
    }
  }
}

/** Namespaces of ServiceAccounts that may watch the type. */
function watchersOf(view: View, held: Held, details: Details): string[] {
  if (details.grants?.ok !== true) return [];
  const groups = groupsOf(view, held);
  return details.grants.value
    .filter(
      ({ apiGroups, verbs }) =>
        verbs.includes('watch') && groups.some((group) => apiGroups.includes(group)),
    )
    .map(({ serviceAccount }) => serviceAccount.namespace);
}

/** Everything that a finalizer holds here: objects, one per group, and the namespace itself. */
function heldIn(view: View): Held[] {
  const { namespace } = view.now;
  const subject = namespaceSubject(namespace.name);
  const own = namespace.finalizers.map(
    (finalizer): Held => ({ finalizer, object: subject, writers: namespace.writers, count: 1 }),
  );
  const spec = namespace.specFinalizers
    .filter((finalizer) => finalizer !== 'kubernetes')
    .map(
      (finalizer): Held => ({ finalizer, object: subject, writers: [], count: 1, isInSpec: true }),
    );
  return [...own, ...spec, ...heldObjects(view).map(({ held }) => held)];
}

/** Types of the groups that a foreign finalizer points to: their CRDs may name a Service. */
function relatedCrds(view: View, helds: readonly Held[]): string[] {
  const groups = helds.flatMap((held) =>
    groupsOf(view, held).filter((group) => group !== held.type?.group),
  );
  return view.now.content
    .filter(({ type }: TypeContent) => groups.includes(type.group))
    .slice(0, MAX_CLOSER_LOOKS)
    .map(({ type }) => `${type.resource}.${type.group}`);
}

function convertedCrd(view: View, error: { group: string; objectKind: string }): string[] {
  return view.now.content
    .filter(({ type }) => type.group === error.group && type.kind === error.objectKind)
    .map(({ type }: { type: ResourceType }) => `${type.resource}.${type.group}`);
}

function refOf(held: Held): ObjectRef | undefined {
  if (held.type === undefined || held.facts === undefined) return undefined;
  const { namespace, name, uid } = held.facts;
  return { type: held.type, namespace, name, uid };
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}
