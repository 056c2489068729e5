import type { Clock } from '../base/time.ts';
import { serverTimestamp } from '../base/time.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import type { RollCall } from '../model/snapshot.ts';
import { readRoleBindings, readRoles, toGrants } from './grants.ts';
import { readWorkloads } from './workloads.ts';

/** It is a bonus: nobody waits long for it. */
const LIMIT_MS = 10_000;
/** A deletion this young may still have its workloads; an older one has lost them. */
const WORTHWHILE_MS = 30_000;

/**
 * Who is in the namespace while it still is: when an operator is deleted together with its objects,
 * its Deployment and its rights are gone before anybody asks who should have removed the finalizer.
 */
export async function callRoll(
  namespace: string,
  deps: { api: KubernetesApi; clock: Clock; signal: AbortSignal },
): Promise<RollCall> {
  const { api } = deps;
  const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(LIMIT_MS)]);
  const [workloads, roles, bound] = await Promise.all([
    readWorkloads(api, signal, namespace),
    readRoles(api, signal, namespace),
    readRoleBindings(api, signal, namespace),
  ]);
  return {
    at: serverTimestamp(deps),
    workloads,
    grants: toGrants(roles, bound),
  };
}

export function isWorthwhile(deletionTimestamp: string | undefined, serverNow: number): boolean {
  return (
    deletionTimestamp === undefined || serverNow - Date.parse(deletionTimestamp) < WORTHWHILE_MS
  );
}
