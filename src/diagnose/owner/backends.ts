import type { Details, WorkloadFacts } from '../../model/snapshot.ts';
import type { View } from '../draft.ts';
import { type Clue, WEIGHT } from './clue.ts';
import { groupsOf, type Held } from './held.ts';

/** Workloads behind the Services that serve or convert the type. */
export function serviceAccounts(view: View, held: Held, details: Details): Clue[] {
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

function selects(selector: Record<string, string>, workload: WorkloadFacts): boolean {
  const entries = Object.entries(selector);
  return entries.length > 0 && entries.every(([key, value]) => workload.podLabels[key] === value);
}
