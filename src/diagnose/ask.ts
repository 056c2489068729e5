import type { Details, ResourceType, Snapshot } from '../model/snapshot.ts';
import { noQuestions, type ObjectRef, type Questions } from '../observe/questions.ts';
import { matchesRules } from './admission.ts';
import { parseConditions } from './conditions.ts';
import { namespaceSubject, type View } from './draft.ts';
import type { ContentError } from './error-kinds.ts';
import { backendsOf } from './owner/backends.ts';
import { candidatesFor, isTelling } from './owner/candidates.ts';
import {
  crdName,
  groupsOf,
  type Held,
  isOfControllerManager,
  knownOwner,
  writerOf,
} from './owner/held.ts';
import { isInitializing } from './rules/dead-conversions.ts';
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
 * What else has to be read before the findings can be explained, asked again after each answer until
 * nothing is left to ask. Each round asks only what the last one made necessary: a clean namespace
 * costs no request, and nobody reads webhooks for an owner that is not there.
 */
export function questionsOf(now: Snapshot, before?: Snapshot): Questions {
  const view = viewOf(now, before);
  const questions = noQuestions();
  askAboutApis(view, questions);
  for (const held of heldIn(view).slice(0, MAX_CLOSER_LOOKS)) askAboutOwner(view, held, questions);
  return unanswered(questions, now.details);
}

/** Errors that an extension API server may have sent, in which its type is not named. */
const NAMELESS: ReadonlySet<ContentError['kind']> = new Set<ContentError['kind']>([
  'other',
  'forbidden',
  'unavailable',
  'timeout',
]);

/** Groups that fail, errors of the namespace controller, and whether it works at all. */
function askAboutApis(view: View, questions: Questions): void {
  const { conditions } = view;
  const { discovery } = view.now;
  const errors = conditions.contentFailure?.errors ?? [];
  const failsDiscovery =
    !discovery.ok ||
    discovery.value.failedGroups.length > 0 ||
    conditions.discoveryFailures.length > 0;
  questions.otherTerminating =
    failsDiscovery ||
    isUnprocessed(view) ||
    errors.some((error) => error.kind === 'conversion-failed' || isInitializing(error));
  questions.apiServices =
    failsDiscovery ||
    errors.some(({ kind }) => NAMELESS.has(kind)) ||
    view.now.content.some(({ read }) => !read.ok && read.failure.kind === 'server-error');
  questions.webhooks = errors.some(
    ({ kind }) => kind === 'webhook-unreachable' || kind === 'webhook-denied',
  );
  questions.crds.push(
    ...errors.flatMap((error) => (error.kind === 'conversion-failed' ? crdOf(view, error) : [])),
  );
  questions.conversions = errors.some(isInitializing);
  const conversions = view.now.details?.conversions;
  for (const { conversionService } of conversions?.ok === true ? conversions.value : []) {
    if (conversionService === undefined) continue;
    questions.services.push(`${conversionService.namespace}/${conversionService.name}`);
  }
  if (isUnprocessed(view)) questions.leases.push(CONTROLLER_LEASE.namespace);
}

function askAboutOwner(view: View, held: Held, questions: Questions): void {
  if (isOfControllerManager(held)) {
    askWhetherRefused(view, held, questions);
    return;
  }
  const details = view.now.details;
  const crd = crdName(view, held);
  if (crd !== undefined) questions.crds.push(crd);
  const known = knownOwner(held);
  const groups = groupsOf(view, held);
  const hasPlace = known !== undefined && known.workload.length > 0;
  const hasWriter = isTelling(writerOf(held)?.manager ?? '');
  // Without any of these, no workload and no right could be tied to the finalizer.
  if (groups.length === 0 && !hasPlace && !hasWriter) {
    askAboutVolume(held, questions);
    return;
  }
  questions.workloads = true;
  questions.grants = true;
  questions.namespaceGrants = mayHaveRoleBindings(view);
  if (details?.workloads === undefined) return;
  const best = candidatesFor(view, held)[0];
  if (best === undefined) {
    questions.apiServices ||= groups.some((group) => !isOfCrd(view, group));
    // They lead to the workload that serves them: where nothing runs, there is none.
    questions.webhooks ||= groups.length > 0 && runsAnything(details);
    questions.provider ||=
      known?.workload.some(({ namespace }) => namespace === 'kube-system') === true;
    askAboutBackends(view, groups, details, questions);
    // Nobody may change the type: one that only watches it may have been refused, and said so.
    questions.events.push(...watchersOf(view, groups, details));
    if (groups.length > 0) askAboutStatus(held, questions);
    askAboutVolume(held, questions);
  } else if (best.workload === undefined) {
    questions.leases.push(best.serviceAccount.namespace);
  } else if (best.workload.ready > 0 && best.workload.wanted > 0) {
    questions.events.push(best.workload.namespace);
    askWhetherRefused(view, held, questions);
  }
}

/** The sweep counted them, unless it could not. */
function mayHaveRoleBindings(view: View): boolean {
  const bindings = view.now.content.find(
    ({ type }) => type.group === 'rbac.authorization.k8s.io' && type.resource === 'rolebindings',
  );
  if (bindings === undefined) return !view.now.discovery.ok;
  return !bindings.read.ok || bindings.read.value.total > 0;
}

function runsAnything({ workloads }: Details): boolean {
  return workloads?.ok !== true || workloads.value.length > 0;
}

/** It runs: what stands in its way? */
function askWhetherRefused(view: View, held: Held, questions: Questions): void {
  const { type, facts } = held;
  const ref = refOf(held);
  askAboutStatus(held, questions);
  askAboutVolume(held, questions);
  if (type === undefined || facts === undefined || ref === undefined) return;
  questions.webhooks = true;
  const webhooks = view.now.details?.webhooks;
  for (const webhook of webhooks?.ok === true ? webhooks.value : []) {
    const isInTheWay =
      webhook.failurePolicy === 'Fail' && matchesRules(webhook, 'UPDATE', type) && webhook.service;
    if (isInTheWay) questions.services.push(`${isInTheWay.namespace}/${isInTheWay.name}`);
  }
  const index = facts.finalizers.indexOf(held.finalizer);
  questions.trials.push({ ...ref, finalizer: held.finalizer, index });
}

function askAboutStatus(held: Held, questions: Questions): void {
  const ref = refOf(held);
  if (ref !== undefined) questions.statuses.push(ref);
}

function askAboutVolume(held: Held, questions: Questions): void {
  if (held.object.kind !== 'PersistentVolumeClaim') return;
  askAboutStatus(held, questions);
  questions.attachments = true;
}

/** Services that serve, convert or guard the type: the workload behind them is the owner's. */
function askAboutBackends(
  view: View,
  groups: readonly string[],
  details: Details,
  questions: Questions,
): void {
  for (const { service } of backendsOf(view, groups, details)) {
    questions.services.push(`${service.namespace}/${service.name}`);
  }
}

/** Namespaces of ServiceAccounts that may watch the type. */
function watchersOf(view: View, groups: readonly string[], details: Details): string[] {
  const grants = details.grants;
  if (grants?.ok !== true) return [];
  const fits = (namespace: string | undefined): boolean =>
    namespace === undefined || namespace === view.now.namespace.name;
  return grants.value
    .filter(({ namespace }) => fits(namespace))
    .filter(
      ({ apiGroups, verbs }) =>
        verbs.includes('watch') && groups.some((group) => apiGroups.includes(group)),
    )
    .map(({ serviceAccount }) => serviceAccount.namespace);
}

/** Everything that a finalizer holds here: objects, one per group, and the namespace itself. */
function heldIn(view: View): Held[] {
  const { namespace } = view.now;
  const object = namespaceSubject(namespace.name);
  const own = namespace.finalizers.map(
    (finalizer): Held => ({ finalizer, object, writers: namespace.writers, count: 1 }),
  );
  const spec = namespace.specFinalizers
    .filter((finalizer) => finalizer !== 'kubernetes')
    .map((finalizer): Held => ({ finalizer, object, writers: [], count: 1, isInSpec: true }));
  return [...own, ...spec, ...heldObjects(view).map(({ held }) => held)];
}

function isOfCrd(view: View, group: string): boolean {
  return Object.values(view.now.details?.crds ?? {}).some(
    (read) => read.ok && read.value?.group === group,
  );
}

function crdOf(view: View, error: { group: string; objectKind: string }): string[] {
  return view.now.content
    .filter(({ type }) => type.group === error.group && type.kind === error.objectKind)
    .map(({ type }: { type: ResourceType }) => `${type.resource}.${type.group}`);
}

function refOf(held: Held): ObjectRef | undefined {
  if (held.type === undefined || held.facts === undefined) return undefined;
  const { namespace, name, uid } = held.facts;
  // Without a UID no answer could be told from another object's.
  return uid === '' ? undefined : { type: held.type, namespace, name, uid };
}

/** What is known is not asked again, whatever came of it. */
function unanswered(questions: Questions, known: Details | undefined): Questions {
  if (known === undefined) return { ...questions, ...uniqueLists(questions) };
  return {
    crds: unique(questions.crds).filter((name) => known.crds[name] === undefined),
    statuses: uniqueBy(questions.statuses, ({ uid }) => uid).filter(
      ({ uid }) => known.statuses[uid] === undefined,
    ),
    services: unique(questions.services).filter((key) => known.services[key] === undefined),
    events: unique(questions.events).filter((name) => known.events[name] === undefined),
    leases: unique(questions.leases).filter((name) => known.leases[name] === undefined),
    trials: questions.trials.filter(
      ({ uid, finalizer }) => known.trials[`${uid} ${finalizer}`] === undefined,
    ),
    workloads: questions.workloads && known.workloads === undefined,
    grants: questions.grants && known.grants === undefined,
    namespaceGrants: questions.namespaceGrants && known.grants === undefined,
    webhooks: questions.webhooks && known.webhooks === undefined,
    conversions: questions.conversions && known.conversions === undefined,
    apiServices: questions.apiServices && known.apiServices === undefined,
    otherTerminating: questions.otherTerminating && known.otherTerminating === undefined,
    attachments: questions.attachments && known.attachments === undefined,
    provider: questions.provider && known.isOnProvider === undefined,
  };
}

function uniqueLists(
  questions: Questions,
): Pick<Questions, 'crds' | 'statuses' | 'services' | 'events' | 'leases'> {
  return {
    crds: unique(questions.crds),
    statuses: uniqueBy(questions.statuses, ({ uid }) => uid),
    services: unique(questions.services),
    events: unique(questions.events),
    leases: unique(questions.leases),
  };
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}

function uniqueBy<T>(values: readonly T[], key: (value: T) => string): T[] {
  return [...new Map(values.map((value) => [key(value), value])).values()];
}
