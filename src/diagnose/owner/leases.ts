import { escapeForRegExp } from '../../base/text.ts';
import { itemsIn } from '../../model/read.ts';
import type { LeaseFacts } from '../../model/snapshot.ts';
import { type Actor, actorsOf } from '../actors.ts';
import type { Context } from '../context.ts';
import { type FinalizerDomain, finalizerDomain, type Held, statusWriters } from './held.ts';
import { containsName, hasProgramName, programNames, workloadsOfPod } from './names.ts';

/** Decides everything about Leases of leader election: whose they are, who holds them, whether they are renewed. */

/** Reports whether the holder still leads: after the Lease's duration any other replica may take over (client-go). */
export function isRenewed({ nowMs }: Context, { renewTime, durationSeconds }: LeaseFacts): boolean {
  return nowMs - Date.parse(renewTime ?? '') <= 1_000 * (durationSeconds ?? 15) + 5_000;
}

/** Returns the Leases named after the groups of a domain, or after a hash in front of their parent domain. */
export function leasesOfGroups({ now }: Context, { groups }: FinalizerDomain): LeaseFacts[] {
  return itemsIn(now.cluster.leases).filter(({ name }) =>
    groups.some((group) => {
      const parent = group.split('.').slice(1).join('.');
      return (
        name.includes(group) || new RegExp(`^[a-f0-9]{6,}\\.${escapeForRegExp(parent)}$`).test(name)
      );
    }),
  );
}

/** Returns the Leases that a program has written, and those that are named after it. */
export function leasesOfProgram({ now }: Context, program: string): LeaseFacts[] {
  return itemsIn(now.cluster.leases).filter(({ name, writers = [] }) =>
    [name, ...writers].some((one) => containsName(one, program)),
  );
}

/** Returns the workload whose pod holds the Lease. */
export function holderOf(context: Context, { namespace, holder }: LeaseFacts): Actor | undefined {
  const near = actorsOf(context).filter((actor) => actor.namespace === namespace);
  return workloadsOfPod(near, podOf(holder))[0];
}

/** client-go makes the holder `<pod>_<uuid>`. */
function podOf(holder = ''): string {
  return holder.replace(/_[^_]*$/, '');
}

/** Reports whether a pod of the workload holds the Lease: client-go adds `_` and an ID to its name, cert-manager `-external-` and a controller. */
export function isHolder({ pods }: Actor, { holder = '', renewTime }: LeaseFacts): boolean {
  return pods.some(
    ({ name, creationTimestamp }) =>
      (name === podOf(holder) || holder.startsWith(`${name}-external-`)) &&
      // Pods of a StatefulSet and static pods have the names of those before them.
      !(Date.parse(renewTime ?? '') < Date.parse(creationTimestamp ?? '')),
  );
}

/** Reports whether a part of the workload has this name, or wrote under it the Lease that a pod of it holds: images hide what they run. */
export function runsAs({ now }: Context, actor: Actor, name: string): boolean {
  return (
    actor.programs.includes(name) ||
    itemsIn(now.cluster.leases).some(
      (lease) => lease.writers?.includes(name) === true && isHolder(actor, lease),
    )
  );
}

/** Returns a Lease which shows that the workload does not lead: a pod of it, which may be gone, does not renew it, or another process holds it. */
export function lostLease(context: Context, held: Held, actor: Actor): LeaseFacts | undefined {
  // cert-manager leads by Leases in kube-system.
  const beside = itemsIn(context.now.cluster.leases).filter(
    (lease) =>
      lease.namespace === actor.namespace ||
      (lease.namespace === 'kube-system' && isRenewed(context, lease)),
  );
  // One from before all pods of today is left of an earlier version, which used another Lease or needed one.
  const began = Math.min(...actor.pods.map((pod) => Date.parse(pod.creationTimestamp ?? '')));
  const isOfToday = ({ renewTime = '' }: LeaseFacts): boolean => began < Date.parse(renewTime);
  const own = beside.filter(
    (one) => isHolder(actor, one) || (isOfToday(one) && holderOf(context, one) === actor),
  );
  // The other pods of one that leads handle no objects.
  if (own.some((lease) => isRenewed(context, lease))) return undefined;
  const meant = [
    ...leasesOfGroups(context, finalizerDomain(context, held)),
    ...programNames(actor).flatMap((name) => leasesOfProgram(context, name)),
  ];
  const isAnothers = (lease: LeaseFacts): boolean =>
    actorsOf(context).some((one) => isHolder(one, lease) && containsName(lease.name, one.name)) ||
    // A pod with the node's network may hold it under the name of its node, and client-go's example holds it under a UUID.
    actor.pods.some((pod) => pod.nodeName?.split('.')[0] === podOf(lease.holder).split('.')[0]) ||
    (isRenewed(context, lease) && !lease.holder?.includes('_'));
  const lost =
    own[0] ?? meant.find((lease) => beside.includes(lease) && lease.holder && !isAnothers(lease));
  const end = Date.parse(lost?.renewTime ?? '') + 1_000 * (lost?.durationSeconds ?? 15);
  const its = statusWriters(held).filter(({ manager }) => hasProgramName(actor, manager));
  // One that has written since leads by another Lease.
  return its.some(({ time = '' }) => Date.parse(time) > end) ? undefined : lost;
}
