import type { Details, Grant, WorkloadFacts } from '../../observe/details.ts';
import type { View } from '../draft.ts';
import { groupsOf, type Held, isBuiltIn, knownOwner, writerOf } from './held.ts';

/** A controller that may be the owner, and what speaks for it. */
export interface Candidate {
  serviceAccount: { namespace: string; name: string };
  /** Undefined: nothing in the cluster runs as this ServiceAccount. */
  workload: WorkloadFacts | undefined;
  /** The workload that was in the namespace when the gate began and is not there any more. */
  gone?: WorkloadFacts;
  /** How well it is proven; only for choosing among candidates. */
  weight: number;
  evidence: string[];
}

/**
 * How much each kind of evidence says. RBAC that a manifest author wrote for exactly this type is
 * the best there is: who may not change an object cannot remove its finalizer.
 */
const WEIGHT = {
  refusedByName: 40,
  grantedFinalizers: 30,
  service: 25,
  grantedStatus: 20,
  catalogue: 15,
  grantedChange: 10,
  writer: 5,
  powerful: 2,
} as const;

/** Roles that are handed out to people and to everything: they tell nothing about a type's owner. */
const GENERAL_ROLES = /^ClusterRole (?:cluster-admin|admin|edit|view|system:.*)$/;

/** Owner candidates, best first. Empty also when workloads or grants could not be read. */
export function candidatesFor(view: View, held: Held): Candidate[] {
  const details = view.now.details;
  if (details === undefined) return [];
  const found = new Map<string, Candidate>();
  const add = (account: Candidate['serviceAccount'], weight: number, evidence: string): void => {
    for (const candidate of withWorkloads(view, details, account)) {
      const key = `${account.namespace}/${account.name} ${candidate.workload?.uid ?? ''}`;
      const known = found.get(key) ?? candidate;
      known.weight = Math.max(known.weight, weight);
      if (!known.evidence.includes(evidence)) known.evidence.push(evidence);
      found.set(key, known);
    }
  };
  for (const { account, weight, evidence } of [
    ...grantedAccounts(view, held, details),
    ...writingAccounts(view, held, details),
    ...powerfulAccounts(view, held, details),
    ...serviceAccounts(view, held, details),
    ...cataloguedAccounts(held, details),
  ]) {
    add(account, weight, evidence);
  }
  const writer = writerOf(held)?.manager;
  for (const candidate of found.values()) {
    if (writer !== undefined && isCalled(candidate, writer)) {
      candidate.weight += WEIGHT.writer;
      candidate.evidence.push(`the finalizer was written by field manager "${writer}"`);
    }
  }
  return [...found.values()].sort((a, b) => b.weight - a.weight || readiness(b) - readiness(a));
}

export interface Clue {
  account: Candidate['serviceAccount'];
  weight: number;
  evidence: string;
}

function grantedAccounts(view: View, held: Held, details: Details): Clue[] {
  const rollCall = view.now.rollCall?.grants;
  const grants = [
    ...(details.grants?.ok === true ? details.grants.value : []),
    ...(rollCall?.ok === true ? rollCall.value : []),
  ];
  const groups = groupsOf(view, held);
  const resource = held.type?.resource;
  return grants
    .filter((grant) => grant.namespace === undefined || grant.namespace === view.now.namespace.name)
    .filter((grant) => !GENERAL_ROLES.test(grant.role))
    .flatMap((grant) => {
      const group = groups.find((name) => grant.apiGroups.includes(name));
      if (group === undefined || !grant.verbs.some((verb) => verb !== 'watch')) return [];
      const own = group === held.type?.group ? resource : undefined;
      const hit = grantedResource(grant, own);
      if (hit === undefined) return [];
      const { namespace, name } = grant.serviceAccount;
      return {
        account: grant.serviceAccount,
        weight: hit.weight,
        evidence: `RBAC: ServiceAccount ${namespace}/${name} may change ${hit.resource} of ${group} (${grant.role}, binding ${grant.binding})`,
      };
    });
}

/**
 * ServiceAccounts of the namespace itself that may change everything: an operator that was part of the
 * environment. Such accounts elsewhere may be anybody's and are no clue.
 */
function powerfulAccounts(view: View, held: Held, details: Details): Clue[] {
  if (details.grants?.ok !== true || held.type === undefined || isBuiltIn(held.type.group)) {
    return [];
  }
  return details.grants.value
    .filter(
      ({ serviceAccount, apiGroups, resources, verbs }) =>
        serviceAccount.namespace === view.now.namespace.name &&
        apiGroups.includes('*') &&
        resources.includes('*') &&
        verbs.some((verb) => verb !== 'watch'),
    )
    .map(({ serviceAccount, role, binding }) => ({
      account: serviceAccount,
      weight: WEIGHT.powerful,
      evidence: `RBAC: ServiceAccount ${serviceAccount.namespace}/${serviceAccount.name} may change everything (${role}, binding ${binding})`,
    }));
}

/** `resource` is undefined when only the finalizer's domain points to the group. */
function grantedResource(
  grant: Grant,
  resource: string | undefined,
): { resource: string; weight: number } | undefined {
  const { resources } = grant;
  if (resource === undefined) {
    return { resource: resources.join(', '), weight: WEIGHT.grantedChange };
  }
  if (resources.includes(`${resource}/finalizers`)) {
    return { resource: `${resource}/finalizers`, weight: WEIGHT.grantedFinalizers };
  }
  if (resources.includes(`${resource}/status`)) {
    return { resource: `${resource}/status`, weight: WEIGHT.grantedStatus };
  }
  if (resources.includes(resource) || resources.includes('*')) {
    return { resource, weight: WEIGHT.grantedChange };
  }
  return undefined;
}

/** Workloads behind the Services that serve or convert the type. */
function serviceAccounts(view: View, held: Held, details: Details): Clue[] {
  const groups = groupsOf(view, held);
  return backendsOf(view, groups, details).flatMap(({ service, evidence }) => {
    const read = details.services[`${service.namespace}/${service.name}`];
    if (read?.ok !== true || read.value === undefined || details.workloads?.ok !== true) return [];
    const { selector, namespace } = read.value;
    return details.workloads.value
      .filter((workload) => workload.namespace === namespace && selects(selector, workload))
      .map((workload) => ({
        account: { namespace, name: workload.serviceAccount },
        weight: WEIGHT.service,
        evidence: `${evidence}, which selects the pods of ${workload.kind} ${workload.namespace}/${workload.name}`,
      }));
  });
}

export interface Backend {
  service: { namespace: string; name: string };
  evidence: string;
}

/** Services that belong to whoever made these API groups: conversion, aggregation, admission. */
export function backendsOf(view: View, groups: readonly string[], details: Details): Backend[] {
  const backends: Backend[] = [];
  for (const crd of Object.values(details.crds)) {
    const service = crd.ok ? crd.value?.conversionService : undefined;
    if (service === undefined || !crd.ok || !groups.includes(crd.value?.group ?? '')) continue;
    backends.push({
      service,
      evidence: `CRD ${crd.value?.name} converts through Service ${service.namespace}/${service.name}`,
    });
  }
  for (const { name, group, service } of view.now.details?.apiServices?.ok === true
    ? view.now.details.apiServices.value
    : []) {
    if (service === undefined || !groups.includes(group)) continue;
    backends.push({
      service,
      evidence: `APIService ${name} is served by Service ${service.namespace}/${service.name}`,
    });
  }
  for (const webhook of details.webhooks?.ok === true ? details.webhooks.value : []) {
    const isForGroup = webhook.rules.some(({ apiGroups }) =>
      apiGroups.some((group) => groups.includes(group)),
    );
    if (webhook.service === undefined || !isForGroup) continue;
    const { namespace, name } = webhook.service;
    backends.push({
      service: webhook.service,
      evidence: `webhook ${webhook.name} of this API group is served by Service ${namespace}/${name}`,
    });
  }
  return backends;
}

/** Where a default installation runs the well-known owner: a convention, so it has to be there. */
function cataloguedAccounts(held: Held, details: Details): Clue[] {
  const known = knownOwner(held);
  if (known === undefined || details.workloads?.ok !== true) return [];
  return details.workloads.value
    .filter(({ namespace, name }) =>
      known.workload.some((entry) => entry.namespace === namespace && entry.name === name),
    )
    .map((workload) => ({
      account: { namespace: workload.namespace, name: workload.serviceAccount },
      weight: WEIGHT.catalogue,
      evidence: `${held.finalizer} is a well-known finalizer of ${known.owner}, which runs as ${workload.kind} ${workload.namespace}/${workload.name} by default`,
    }));
}

/**
 * Workloads that are called as the field manager that wrote the finalizer. The name is the writer's
 * own (managedFields), not a pattern; names that every framework uses say nothing.
 */
function writingAccounts(view: View, held: Held, details: Details): Clue[] {
  const writer = writerOf(held)?.manager ?? '';
  if (!isTelling(writer)) return [];
  return [...present(details), ...departed(view, details)]
    .filter(({ name, containers }) => name === writer || containers.includes(writer))
    .map((workload) => ({
      account: { namespace: workload.namespace, name: workload.serviceAccount },
      weight: 0, // what it weighs is added for every candidate that is called so
      evidence: `${workload.kind} ${workload.namespace}/${workload.name} is called as the writer of the finalizer`,
    }));
}

/** Whether the name of a field manager says who it is. */
export function isTelling(manager: string): boolean {
  return manager !== '' && !ANYBODY.test(manager);
}

/** Tools of people, and the names that frameworks give to any controller. */
const ANYBODY =
  /^(?:kubectl(?:-.*)?|helm|manager|controller|operator|main|app|server|node|python.*|java|unknown|Mozilla|OpenAPI-Generator|Go-http-client|kube-controller-manager)$/;

function present(details: Details): WorkloadFacts[] {
  return details.workloads?.ok === true ? details.workloads.value : [];
}

/** What was in the namespace at the start and, by a complete read, is not there any more. */
function departed(view: View, details: Details): WorkloadFacts[] {
  const rollCall = view.now.rollCall?.workloads;
  if (rollCall?.ok !== true || details.workloads?.ok !== true) return [];
  const here = new Set(details.workloads.value.map(({ uid }) => uid));
  return rollCall.value.filter(({ uid }) => !here.has(uid));
}

function withWorkloads(
  view: View,
  details: Details,
  account: Candidate['serviceAccount'],
): Candidate[] {
  const runsAs = ({ namespace, serviceAccount }: WorkloadFacts): boolean =>
    namespace === account.namespace && serviceAccount === account.name;
  const base = { serviceAccount: account, weight: 0 };
  const workloads = present(details).filter(runsAs);
  if (workloads.length > 0) {
    return workloads.map((workload) => ({
      ...base,
      workload,
      evidence: [
        `${workload.kind} ${workload.namespace}/${workload.name} runs as ServiceAccount ${account.name}`,
      ],
    }));
  }
  const gone = departed(view, details).find(runsAs);
  if (gone === undefined) return [{ ...base, workload: undefined, evidence: [] }];
  const evidence = `${gone.kind} ${gone.namespace}/${gone.name}, which ran as ServiceAccount ${account.name}, was there at ${view.now.rollCall?.at} and is not any more`;
  return [{ ...base, workload: undefined, gone, evidence: [evidence] }];
}

function selects(selector: Record<string, string>, workload: WorkloadFacts): boolean {
  const entries = Object.entries(selector);
  return entries.length > 0 && entries.every(([key, value]) => workload.podLabels[key] === value);
}

/** Not a search by name: it only corroborates a candidate that something else has pointed to. */
function isCalled(candidate: Candidate, manager: string): boolean {
  return (
    candidate.workload?.name === manager ||
    candidate.workload?.containers.includes(manager) === true ||
    candidate.gone?.name === manager ||
    candidate.gone?.containers.includes(manager) === true ||
    candidate.serviceAccount.name === manager
  );
}

function readiness(candidate: Candidate): number {
  return candidate.workload === undefined ? -1 : candidate.workload.ready;
}
