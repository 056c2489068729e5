import type { Details, Grant, WorkloadFacts } from '../../model/snapshot.ts';
import type { View } from '../draft.ts';
import { type Clue, WEIGHT } from './clue.ts';
import { groupsOf, type Held, isBuiltIn } from './held.ts';
import { present } from './workloads.ts';

/** Roles that are handed out to people and to everything: they tell nothing about a type's owner. */
const GENERAL_ROLES = /^ClusterRole (?:cluster-admin|admin|edit|view|system:.*)$/;

export function grantedAccounts(view: View, held: Held, details: Details): Clue[] {
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
export function powerfulAccounts(view: View, held: Held, details: Details): Clue[] {
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

/** Whether RBAC lets the workload change the object at all. */
export function mayChange(
  view: View,
  held: Held,
  details: Details,
  workload: WorkloadFacts,
): boolean {
  const { type } = held;
  if (type === undefined || details.grants?.ok !== true) return false;
  return details.grants.value.some(
    ({ serviceAccount, namespace, apiGroups, resources, verbs }) =>
      serviceAccount.namespace === workload.namespace &&
      serviceAccount.name === workload.serviceAccount &&
      (namespace === undefined || namespace === view.now.namespace.name) &&
      verbs.some((verb) => verb !== 'watch') &&
      (apiGroups.includes('*') || apiGroups.includes(type.group)) &&
      (resources.includes('*') || resources.includes(type.resource)),
  );
}

/** Few are named: on some clusters half of what runs may do anything. */
const MAX_POWERFUL = 5;

/** Workloads that run, may change the object only because they may change everything, and are not gone. */
export function powerful(view: View, held: Held, details: Details): WorkloadFacts[] {
  return present(details)
    .filter((workload) => workload.ready > 0 && mayChange(view, held, details, workload))
    .slice(0, MAX_POWERFUL);
}
